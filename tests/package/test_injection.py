# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""An exception at any line of the package loses no driver object."""

from __future__ import annotations

import os
import subprocess
import sys

from helpers import SUPPORT, child_environment
from signal_storm import OPERATIONS

PROGRAM = SUPPORT / "injection.py"
LIMIT = 600
# for each operation; 0 for all. PyPy collects garbage after each that leaves some
POINTS = os.environ.get("CUDA_TEST_INJECTION_POINTS", "40" if sys.implementation.name == "cpython" else "5")


def test_an_exception_at_any_line_loses_nothing() -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), POINTS],
        env=child_environment(str(SUPPORT), MALLOC_PERTURB_="85"),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line for line in lines if len(line) != 2] == []
    points = {name: int(count) for name, count in lines}
    assert points.keys() == OPERATIONS.keys()
    assert min(points.values()) >= (int(POINTS) or 30)
