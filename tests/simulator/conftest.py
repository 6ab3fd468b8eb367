# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from ptx_runner import ON_GPU, SEED, Runner, make_gpu, nvrtc, variants
from sim_driver import Driver, c_void_p, simulator
from sim_graphs import Graphs, made
from sim_nvml import Nvml

from cuda_core_cffi._core.errors import UnavailableError


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
def driver(sim: ModuleType) -> Iterator[Driver]:
    """A driver that is started, with no context current; the one that was is current again afterwards."""
    driver = Driver()
    driver.cuInit(0)
    before: c_void_p = driver.out(c_void_p, "cuCtxGetCurrent")
    driver.cuCtxSetCurrent(None)
    yield driver
    driver.cuCtxSetCurrent(before)


@pytest.fixture
def cu(driver: Driver) -> Iterator[Driver]:
    """A driver with the primary context of device 0 current."""
    driver.start()
    yield driver
    driver.cuCtxSynchronize()
    driver.cuDevicePrimaryCtxRelease_v2(0)


@pytest.fixture
def nvml(sim: ModuleType) -> Iterator[Nvml]:
    """NVML, started; what was set of the devices is reset afterwards."""
    nvml = Nvml()
    nvml.nvmlInit_v2()
    yield nvml
    sim.clear_faults()
    sim.reset_sensors()
    nvml.nvmlShutdown()


@pytest.fixture(scope="session")
def gpu() -> Any:
    try:
        nvrtc()
    except UnavailableError as error:
        pytest.skip(str(error))
    return make_gpu()


@pytest.fixture(
    scope="session",
    params=list(range(4)),
    ids=lambda options: ("oldest", "oldest-debug", "newest", "newest-debug")[options],
)
def ptx(request: pytest.FixtureRequest, gpu: Any) -> Runner:
    """A runner for each: oldest and newest architecture, optimised and for debugging."""
    return Runner(gpu, variants()[request.param])


@pytest.fixture(scope="session")
def newest(gpu: Any) -> Runner:
    return Runner(gpu, variants()[-2])


@pytest.fixture
def broken(newest: Runner) -> Iterator[Runner]:
    """A runner whose kernel is going to fail; the context is new afterwards."""
    if ON_GPU:
        pytest.skip("simulator_only: a real context stays broken for the rest of the process")
    newest.libraries.clear()
    yield newest
    newest.gpu.reset()
    newest.libraries.clear()
    simulator().clear_reports()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(SEED)


@pytest.fixture
def graphs(cu: Driver) -> Iterator[Graphs]:
    """What makes graphs, with the primary context current; they are destroyed after the test."""
    with made(cu) as graphs:
        yield graphs
