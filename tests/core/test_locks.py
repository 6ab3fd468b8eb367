# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Locks where a signal handler or a finalizer comes in between. Cases: interrupted_cases.py."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from helpers import SUPPORT, child_environment
from interrupted_cases import CASES

TEN_MINUTES = 600


@pytest.fixture(scope="module")
def ended() -> tuple[list[str], str]:
    """Return the cases that ended well, all in one process, and its standard error."""
    program = [sys.executable, "-X", "faulthandler", str(SUPPORT / "interrupted_cases.py")]
    with subprocess.Popen(
        program, env=child_environment(str(SUPPORT)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        try:
            printed, errors = child.communicate(timeout=TEN_MINUTES)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGABRT)  # which prints where it hangs
            printed, errors = child.communicate()
    return printed.split(), errors


@pytest.mark.parametrize("case", CASES)
def test_a_call_may_be_interrupted_by_one_that_uses_the_same_object(ended: tuple[list[str], str], case: str) -> None:
    names, errors = ended
    assert case in names, errors
