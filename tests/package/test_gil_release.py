# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Whatever ends, ends without the GIL where it calls the driver.

The driver frees page-locked memory when the device is idle. A host callback that waits for the GIL keeps the device
busy, so a thread that holds the GIL while it frees such memory waits for ever. The cases are in gil_cases.py. They run
one after the other in a child process, which ends when one of them takes too long. The simulated device begins its work
late there, so that memory which goes back before work that uses it is found as well.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from gil_cases import CASES, WAITING
from helpers import LIMIT, SUPPORT, child_environment

FOLDER = SUPPORT


@pytest.fixture(scope="module")
def outcomes() -> dict[str, dict[str, Any]]:
    """Return what each case printed; what a process said at its end is the outcome of the case that ended it."""
    found: dict[str, dict[str, Any]] = {}
    while left := [name for name in CASES if name not in found]:
        done = subprocess.run(
            [sys.executable, str(FOLDER / "gil_cases.py"), *left],
            env=child_environment(str(FOLDER), CUDA_SIM_DELAY_SECONDS="0.004"),
            capture_output=True,
            text=True,
            timeout=4 * LIMIT,
            check=False,
        )
        for line in done.stdout.splitlines():
            outcome = json.loads(line)
            found[outcome["name"]] = outcome
        if culprit := next((name for name in left if name not in found), None):
            found[culprit] = {"ended": f"exit status {done.returncode}: {done.stderr}"}
    return found


@pytest.mark.parametrize("name", CASES)
def test_what_ends_lets_a_host_callback_have_the_gil(name: str, outcomes: dict[str, Any], is_simulated: bool) -> None:
    outcome = outcomes[name]
    assert "ended" not in outcome, outcome["ended"]
    assert outcome["left"] == 0
    if is_simulated and name in WAITING:
        assert outcome["waited"], "the case did not free page-locked memory while the callback waited"
