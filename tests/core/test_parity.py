# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What CPython does in C and PyPy in Python gives the same results, errors and warnings. Cases: parity_cases.py.

CPython runs them both ways, each in a process of its own: the second imports the functions in Python for those in C.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from helpers import LIMIT, SUPPORT, child_environment
from parity_cases import OPERATIONS

pytestmark = pytest.mark.skipif(sys.implementation.name == "pypy", reason="PyPy has one form of them")
FEWEST = {"lifetime": 30, "devices": 45, "buffers": 250, "fill": 75, "copy": 60, "textures": 60,
          "order": 100, "wait": 80, "launches": 104, "captures": 74, "export": 175, "read": 60,
          "failures": 30}  # fmt: skip


def outcomes(form: str) -> dict[str, list[str]]:
    """Return what the operations did in one form."""
    done = subprocess.run(
        [sys.executable, str(SUPPORT / "parity_cases.py"), form],
        env=child_environment(str(SUPPORT)),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def forms() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    with ThreadPoolExecutor() as threads:
        in_c, in_python = threads.map(outcomes, ("c", "python"))
    return in_c, in_python


@pytest.mark.parametrize("operation", sorted(set(OPERATIONS) - {"failures"}))
def test_both_forms_do_the_same(operation: str, forms: tuple[dict[str, list[str]], dict[str, list[str]]]) -> None:
    in_c, in_python = (form[operation] for form in forms)
    assert len(in_c) >= FEWEST[operation]
    assert in_c == in_python


@pytest.mark.simulator_only("injects faults")
def test_both_forms_fail_in_the_same_way(forms: tuple[dict[str, list[str]], dict[str, list[str]]]) -> None:
    in_c, in_python = (form["failures"] for form in forms)
    assert len(in_c) >= FEWEST["failures"]
    assert all("CUDA_ERROR_UNKNOWN" in text for text in in_c)
    assert in_c == in_python
