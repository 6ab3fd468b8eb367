# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Run test suites of numba-cuda, unmodified, with this package in the place of cuda-core, on the simulated driver.

    python tests/clients/numba_cuda_suites.py [--jobs N] [--write] [--sample | MODULE ...]

Python is one that has numba-cuda and this package. Each module of ``cudadrv`` and ``cudapy`` runs in a process of its
own. What fails is compared with numba_cuda_failures.json, which has the reason of each: a test that fails and is not
listed there is an error, and so is one that is listed and does not. ``--write`` prints what fails, with what it said.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections import Counter

from cuda_core_cffi import simulator

HERE = pathlib.Path(__file__).resolve().parent
KNOWN = HERE / "numba_cuda_failures.json"
SUITES = ("cudadrv", "cudapy")
SAMPLE = (
    "cudadrv.",
    *(
        f"cudapy.test_{name}"
        for name in (
            "atomics",
            "blackscholes",
            "caching",
            "constmem",
            "cooperative_groups",
            "datetime",
            "debug",
            "device_func",
            "extending",
            "gufunc",
            "inspect",
            "ipc",
            "lang",
            "localmem",
            "matmul",
            "multithreads",
            "operator",
            "record_dtype",
            "reduction",
            "sm",
            "sync",
            "userexc",
            "warning",
        )
    ),
)
LIMIT = 400  # seconds for one module


def modules() -> list[str]:
    """Return the names of the test modules, the largest first."""
    spec = importlib.util.find_spec("numba_cuda")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("numba-cuda is not installed")
    root = pathlib.Path(next(iter(spec.submodule_search_locations))) / "numba" / "cuda" / "tests"
    files = [file for suite in SUITES for file in (root / suite).glob("test_*.py")]
    files.sort(key=lambda file: file.stat().st_size, reverse=True)
    return [f"{file.parent.name}.{file.stem}" for file in files]


def run(name: str, folder: pathlib.Path) -> dict[str, tuple[str, str]]:
    """Run a module, or one test, in a process; return the outcome of each test, and why it failed."""
    file = folder / f"{name}.json"
    environment = dict(os.environ, CUDA_CORE_CFFI_DRIVER="simulator")
    environment["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [str(folder), environment.get("LD_LIBRARY_PATH")]))
    command = [sys.executable, "-m", "cuda_core_cffi.as_cuda_core", str(HERE / "unittest_results.py")]
    try:
        done = subprocess.run(
            [*command, f"numba.cuda.tests.{name}", str(file)],
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        ended = f"exit status {done.returncode}: {done.stderr[-300:]}"
        is_broken = done.returncode != 0
    except subprocess.TimeoutExpired:
        ended, is_broken = f"not done after {LIMIT} s", True
    outcomes = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        found = json.loads(line)
        outcomes[found["test"]] = (found["outcome"], found["why"])
    unfinished = [test for test, (outcome, _) in outcomes.items() if outcome == "begun"]
    for test in unfinished:
        outcomes[test] = ("failed", ended)
    if is_broken and not unfinished:
        outcomes[name] = ("failed", ended)
    return outcomes


def run_module(module: str, folder: pathlib.Path) -> dict[str, tuple[str, str]]:
    """Run a module, and once more alone what failed after another test: an error that stays fails all that follow."""
    began = time.monotonic()
    outcomes = run(module, folder)
    failed = [test for test, (outcome, _) in outcomes.items() if outcome == "failed" and test != module]
    for test in failed[1:]:
        outcomes |= run(test, folder)
    print(f"{module}: {counts_of(outcomes)} ({time.monotonic() - began:.0f} s)", file=sys.stderr, flush=True)
    return outcomes


def counts_of(outcomes: dict[str, tuple[str, str]]) -> str:
    """Return how many tests passed, failed and were skipped, in words."""
    counts = Counter(outcome for outcome, _ in outcomes.values())
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in ("passed", "failed", "skipped"))


def main() -> int:
    """Run what was asked for, and compare it with what is known."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many modules run at a time")
    parser.add_argument("--write", action="store_true", help="print the list of what fails, with what it said")
    parser.add_argument("--sample", action="store_true", help="the drivers' suite, and some modules of the other")
    parser.add_argument("modules", nargs="*", help="some of them, such as cudadrv.test_events; by default all")
    arguments = parser.parse_args()
    asked = arguments.modules or [name for name in modules() if not arguments.sample or name.startswith(SAMPLE)]
    outcomes: dict[str, tuple[str, str]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "libcuda.so.1").symlink_to(simulator.library_path())  # where cuda-bindings finds it
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for found in pool.map(lambda module: run_module(module, folder), asked):
                outcomes |= found
    failed = {name: why for name, (outcome, why) in sorted(outcomes.items()) if outcome == "failed"}
    if arguments.write:
        print(json.dumps(failed, indent=1))
        return 0
    known = {
        name for name in json.loads(KNOWN.read_text()) if f"{name}.".startswith(tuple(f"{module}." for module in asked))
    }
    for name in sorted(failed.keys() - known):
        print(f"fails: {name}: {failed[name]}")
    for name in sorted(known - failed.keys()):
        print(f"listed, but does not fail: {name}")
    print(f"numba-cuda: {counts_of(outcomes)}")
    return int(failed.keys() != known)


if __name__ == "__main__":
    sys.exit(main())
