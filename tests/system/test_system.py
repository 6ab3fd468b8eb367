# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What the driver tells of the machine."""

from __future__ import annotations

import pytest
from helpers import output_of

from cuda_core_cffi import Device, driver, system

ASK = "from cuda_core_cffi import system; print(system.get_num_devices(), system.get_user_mode_driver_version())"


def test_every_device_counts() -> None:
    count = system.get_num_devices()
    assert type(count) is int
    assert count == len(Device.get_all_devices()) > 0


def test_the_version_is_the_driver_s() -> None:
    error, version = driver.cuDriverGetVersion()
    assert error == driver.CUresult.CUDA_SUCCESS
    major, minor = system.get_user_mode_driver_version()
    assert major * 1000 + minor * 10 == version


@pytest.mark.simulator_only("chooses the devices and the version")
def test_nothing_is_taken_for_granted() -> None:
    assert output_of(ASK, CUDA_SIM_DEVICES="3", CUDA_SIM_DRIVER_VERSION="12090") == "3 (12, 9)"


def test_no_context_is_needed() -> None:
    code = "; ".join([ASK, "from cuda_core_cffi import driver", "print(int(driver.cuCtxGetCurrent()[1] or 0))"])
    assert output_of(code).splitlines()[1] == "0"


@pytest.mark.parametrize(
    "ask",
    [
        "get_user_mode_driver_version",
        pytest.param("get_num_devices", marks=pytest.mark.simulator_only("a GPU's NVML is there without the driver")),
    ],
)
def test_without_a_driver_that_is_told(ask: str) -> None:
    code = f"""
        from cuda_core_cffi import UnavailableError, system
        try:
            system.{ask}()
        except UnavailableError as error:
            print("/no/such/file" in str(error))
    """
    assert output_of(code, CUDA_CORE_CFFI_DRIVER="/no/such/file") == "True"
