# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""No order of use and close, from any number of threads, crashes; the loser gets the error that it is closed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from close_races import SCENARIOS
from helpers import SUPPORT

PROGRAM = SUPPORT / "close_races.py"
SECONDS = float(os.environ.get("CUDA_TEST_RACE_SECONDS", "0.5"))


@pytest.mark.parametrize("name", SCENARIOS)
def test_threads_close_what_others_use(name):
    paths = [str(PROGRAM.parent), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", str(PROGRAM), name, str(SECONDS)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) > 0
