# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What driver calls answer without a current context, and with another: the same as hardware did."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sim_driver import HERE

PROBE = HERE / "context_probe.py"
LIMIT = 120  # seconds
# Where hardware crashes, the simulated driver reports misuse.
CRASH = "CRASHED(-11)"
MISUSE = "MISUSE"


def answers(text: str) -> dict[str, str]:
    """Return the answers by the name of the case."""
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return {name: answer for name, _, answer in (line.partition(" ") for line in lines)}


RECORDED = answers(Path(__file__).with_name("context_answers.txt").read_text())


@pytest.fixture(scope="module")
def simulated() -> dict[str, str]:
    """Return what the simulated driver answers."""
    environment = {
        **os.environ,
        "CUDA_CORE_CFFI_DRIVER": "simulator",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    done = subprocess.run(
        [sys.executable, str(PROBE)], env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return answers(done.stdout)


def test_every_case_was_recorded(simulated: dict[str, str]) -> None:
    assert simulated.keys() == RECORDED.keys()


@pytest.mark.parametrize("name", RECORDED)
def test_the_simulated_driver_answers_as_hardware_did(simulated: dict[str, str], name: str) -> None:
    if simulated[name] == "AttributeError":
        pytest.skip("the header of this build is older than this function")
    assert simulated[name] == RECORDED[name].replace(CRASH, MISUSE)
