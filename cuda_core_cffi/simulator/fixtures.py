# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Fixtures for tests that need a CUDA device and have none.

In a ``conftest.py``::

    pytest_plugins = ["cuda_core_cffi.simulator.fixtures"]
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

import pytest

from cuda_core_cffi import CUDAError, Device, simulator

__all__ = ["simulated_device"]

KERNEL_SECONDS: Final = 60


@pytest.fixture
def simulated_device() -> Iterator[Device]:
    """Give a test a simulated device, current in its thread.

    A kernel that runs for longer than a minute is ended, unless ``CUDA_SIM_KERNEL_SECONDS`` sets another limit (0: no
    limit). Faults that the test injected are taken back afterwards. A test that misused the driver (a double free, a
    use after free, an access out of bounds) fails with the reports, and so does one whose kernel failed. The device
    recovers from that, so the tests that follow run.

    Yields
    ------
    Device
        Device 0.

    Raises
    ------
    RuntimeError
        If the process already uses another driver.
    CUDAError
        After the test, if the device has failed and there is no report.

    Notes
    -----
    A test that provokes a failure on purpose ends with ``simulator.clear_reports()`` and ``simulator.recover()``.
    """
    os.environ.setdefault("CUDA_SIM_KERNEL_SECONDS", str(KERNEL_SECONDS))  # read when the driver starts
    simulator.use()
    simulator.recover()
    device = Device(0)
    device.set_current()
    if _failure(device):  # work of a test without this fixture
        simulator.recover()
    simulator.clear_reports()
    yield device
    simulator.clear_faults()
    broken = _failure(device)
    simulator.recover()
    reports = simulator.reports()
    simulator.clear_reports()
    if reports:
        pytest.fail("the test misused the driver:\n" + "\n".join(report.message for report in reports), pytrace=False)
    if broken:
        raise broken


def _failure(device: Device) -> CUDAError | None:
    """Wait for the device, and return the error if it has failed."""
    try:
        device.sync()
    except CUDAError as error:
        return error
    return None
