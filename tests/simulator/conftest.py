# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest
from sim_driver import Driver, c_void_p, simulator


@pytest.fixture
def sim() -> Iterator[ModuleType]:
    module = simulator()
    if not module.library_path().exists():
        pytest.skip(f"{module.library_path()} has not been built")
    module.clear_reports()
    yield module
    module.clear_faults()
    module.clear_reports()


@pytest.fixture
def driver(sim: ModuleType) -> Driver:
    """A driver that is started, with no context current."""
    driver = Driver()
    driver.cuInit(0)
    driver.cuCtxSetCurrent(None)
    return driver


@pytest.fixture
def cu(driver: Driver) -> Iterator[Driver]:
    """A driver with the primary context of device 0 current."""
    before: c_void_p = driver.out(c_void_p, "cuCtxGetCurrent")
    driver.start()
    yield driver
    driver.cuCtxSynchronize()
    driver.cuCtxSetCurrent(before)
    driver.cuDevicePrimaryCtxRelease_v2(0)
