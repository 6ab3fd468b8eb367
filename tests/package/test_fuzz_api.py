# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The fuzzer of the public API finds the faults that are planted for it, and shortens what led there."""

from __future__ import annotations

import os
import pathlib
import platform
import subprocess
import sys

import pytest
from helpers import LIMIT, ROOT

import cuda_core_cffi

SCRIPT = ROOT / "tests" / "fuzz_api.py"
SEED = 1
IS_CPYTHON = platform.python_implementation() == "CPython"


def fuzz(*arguments: str, fault: str = "") -> subprocess.CompletedProcess[str]:
    """Run the fuzzer; with a fault, on the planted class."""
    package = pathlib.Path(cuda_core_cffi.__file__).parents[1]
    path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))
    # where the faults are planted does not matter, and a GPU takes longer to start than a sequence may
    variables = {**os.environ, "PYTHONPATH": path, "PLANTED_FAULT": fault, "CUDA_CORE_CFFI_DRIVER": "simulator"}
    modules = ("--modules", "planted_faults") if fault else ()
    return subprocess.run(
        [sys.executable, str(SCRIPT), "--seed", str(SEED), *modules, *arguments],
        env={name: value for name, value in variables.items() if name != "PYTHONSAFEPATH"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def shortest(output: str) -> list[str]:
    """Return the sequence that was printed for the only finding."""
    _, _, finding = output.partition("\n=== ")
    lines = finding.partition("\n---\n")[0].splitlines()[1:]
    return [line for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize(
    ("fault", "kind", "steps"),
    [
        ("Crashing", "crash: SIGSEGV", 3),  # make, close, use
        ("Hanging", "hang: hang", 3),
        ("Wrong", "exception: SystemError from Wrong.push", 4),
        ("Endless", "exception: EndlessError from elements", 2),
        pytest.param(
            *("Leaking", "leak: leak of driver: streams", 2),
            marks=pytest.mark.skipif(not IS_CPYTHON, reason="leaks are judged on CPython only"),
        ),
    ],
)
def test_a_planted_fault_is_found_and_its_sequence_shortened(fault, kind, steps):
    done = fuzz("--threads", "1", "--sequences", "1", "--jobs", "1", "--steps", "60", "--limit", "1", fault=fault)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"=== {kind}" in done.stdout
    assert len(shortest(done.stdout)) == steps, done.stdout


def test_a_race_is_found(tmp_path):
    quick = ("--seconds", "20", "--sequences", "20", "--shrink", "3")
    done = fuzz("--threads", "4", *quick, "--keep", str(tmp_path), fault="Racing")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "=== crash: SIGSEGV" in done.stdout
    assert list(tmp_path.glob("crash-*.txt"))


def test_a_finding_can_be_run_again(tmp_path):
    quick = ("--sequences", "1", "--steps", "60")
    fuzz("--threads", "1", *quick, "--keep", str(tmp_path), fault="Crashing")
    (file,) = tmp_path.iterdir()
    done = fuzz("--replay", str(file), fault="Crashing")
    assert done.returncode == 1, done.stdout + done.stderr
    assert len(shortest(done.stdout)) == 3, done.stdout


def test_a_seed_gives_the_same_sequence(tmp_path):
    def sequence(seed: int) -> str:
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        fuzz("--threads", "1", "--sequences", "1", "--shrink", "0", "--keep", str(folder), fault="Wrong")
        return next(folder.iterdir()).read_text()

    assert sequence(SEED) == sequence(SEED)


def test_what_there_is_to_call_is_found_by_introspection():
    listed = fuzz("--list").stdout
    for name in (
        "Buffer(",
        ".set_deallocation_stream(stream)",
        "GraphDefinition(",
        "copy_batch(stream, srcs, dsts, options)",
    ):
        assert name in listed
    callable_names = listed.partition("Never called")[0]
    assert "from_handle" not in callable_names
    assert "\nlib(" not in callable_names
