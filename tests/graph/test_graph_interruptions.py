# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Builders and nodes whose methods an exception interrupts: no capture stays, and nothing is released twice.

Each test runs a scenario of ``tests/support/interruptions.py`` in a process of its own.
"""

from __future__ import annotations

import pytest
from interruptions import SCENARIOS, times_interrupted

OF_MEMORY = {"grow", "move"}  # for tests/memory


@pytest.mark.parametrize("scenario", sorted(SCENARIOS.keys() - OF_MEMORY))
def test_an_exception_before_any_line_leaves_streams_that_can_be_captured(scenario):
    assert times_interrupted(scenario) > 5


def test_signals_at_any_time_leave_streams_that_can_be_captured():
    assert times_interrupted("storm") > 5
