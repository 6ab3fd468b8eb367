# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Signal handlers that raise, wherever they come, crash nothing; objects work afterwards, and none is lost."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from helpers import SUPPORT, child_environment
from signal_storm import OPERATIONS

PROGRAM = SUPPORT / "signal_storm.py"
LIMIT = 600
SECONDS = os.environ.get("CUDA_TEST_STORM_SECONDS", "0.5")


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_signal_handler_that_raises_crashes_nothing(name: str) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), SECONDS, name],
        env=child_environment(str(SUPPORT), MALLOC_PERTURB_="85"),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    interrupted, _, lost = done.stdout.partition(" {")
    assert interrupted.startswith(f"{name} ")
    assert lost == "}\n", done.stdout
