# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ctypes

import pytest
from sim_driver import Driver, byref, c_int, c_size_t, run_alone


def attribute(driver: Driver, number: int) -> int:
    return driver.out(c_int, "cuDeviceGetAttribute", number, 0).value


def test_the_name_says_that_the_device_is_simulated(driver: Driver) -> None:
    name = ctypes.create_string_buffer(100)
    driver.cuDeviceGetName(name, 100, 0)
    assert b"Simulated" in name.value


def test_a_short_name_buffer_gets_the_beginning(driver: Driver) -> None:
    name = ctypes.create_string_buffer(4)
    driver.cuDeviceGetName(name, 4, 0)
    assert name.value == b"Sim"


def test_every_attribute_of_this_driver_has_a_value(driver: Driver) -> None:
    for number in range(1, 148):
        attribute(driver, number)


@pytest.mark.parametrize("number", [0, -1, 9999])
def test_an_unknown_attribute_is_an_invalid_value(driver: Driver, number: int) -> None:
    assert driver.status("cuDeviceGetAttribute", byref(c_int()), number, 0) == "INVALID_VALUE"


@pytest.mark.parametrize("ordinal", [-1, 99])
def test_a_device_that_does_not_exist_is_an_invalid_device(driver: Driver, ordinal: int) -> None:
    assert driver.status("cuDeviceGet", byref(c_int()), ordinal) == "INVALID_DEVICE"
    assert driver.status("cuDeviceGetAttribute", byref(c_int()), 1, ordinal) == "INVALID_DEVICE"
    assert driver.status("cuDevicePrimaryCtxRetain", byref(ctypes.c_void_p()), ordinal) == "INVALID_DEVICE"


def test_a_device_is_found_again_by_its_pci_address(driver: Driver) -> None:
    text = ctypes.create_string_buffer(20)
    driver.cuDeviceGetPCIBusId(text, 20, 0)
    assert driver.out(c_int, "cuDeviceGetByPCIBusId", text.value).value == 0


def test_uuids_are_the_same_in_both_versions(driver: Driver) -> None:
    old, new = ctypes.create_string_buffer(16), ctypes.create_string_buffer(16)
    driver.cuDeviceGetUuid(old, 0)
    driver.cuDeviceGetUuid_v2(new, 0)
    assert old.raw == new.raw != bytes(16)


def test_null_results_are_invalid_values(driver: Driver) -> None:
    assert driver.status("cuDeviceGet", None, 0) == "INVALID_VALUE"
    assert driver.status("cuDeviceTotalMem_v2", None, 0) == "INVALID_VALUE"


def test_the_environment_describes_the_machine() -> None:
    printed = run_alone(
        """
        cu.cuInit(0)
        print(cu.out(c_int, "cuDeviceGetCount").value, cu.out(c_size_t, "cuDeviceTotalMem_v2", 2).value)
        print(cu.out(c_int, "cuDeviceGetAttribute", 75, 1).value, cu.out(c_int, "cuDeviceGetAttribute", 76, 1).value)
        print(cu.out(c_int, "cuDeviceGetAttribute", 97, 0).value, cu.out(c_int, "cuDeviceGetAttribute", 120, 0).value)
        print(cu.out(c_int, "cuDriverGetVersion").value, cu.status("cuDeviceGetAttribute", byref(c_int()), 144, 0))
        uuids = set()
        for device in range(3):
            uuid = ctypes.create_string_buffer(16)
            cu.cuDeviceGetUuid_v2(uuid, device)
            uuids.add(uuid.raw)
        print(len(uuids))
        """,
        CUDA_SIM_DEVICES="3",
        CUDA_SIM_MEMORY="64M",
        CUDA_SIM_COMPUTE_CAPABILITY="8.6",
        CUDA_SIM_DRIVER_VERSION="12020",
    )
    assert printed.split("\n") == ["3 67108864", "8 6", "101376 0", "12020 INVALID_VALUE", "3", ""]


def test_a_machine_without_devices_has_no_device() -> None:
    assert run_alone('print(cu.status("cuInit", 0))', CUDA_SIM_DEVICES="0").strip() == "NO_DEVICE"


def test_devices_reach_each_other_but_not_themselves() -> None:
    printed = run_alone(
        """
        cu.cuInit(0)
        print(*(cu.out(c_int, "cuDeviceCanAccessPeer", a, b).value for a in range(2) for b in range(2)))
        print(cu.status("cuDeviceGetP2PAttribute", byref(c_int()), 2, 0, 0))
        print(cu.out(c_int, "cuDeviceGetP2PAttribute", 2, 0, 1).value)
        """,
        CUDA_SIM_DEVICES="2",
    )
    assert printed.split("\n")[:3] == ["0 1 1 0", "INVALID_DEVICE", "1"]


def test_texture_widths_need_a_known_format(driver: Driver) -> None:
    assert driver.out(c_size_t, "cuDeviceGetTexture1DLinearMaxWidth", 0x20, 4, 0).value > 0
    assert driver.status("cuDeviceGetTexture1DLinearMaxWidth", byref(c_size_t()), 0x7777, 4, 0) == "INVALID_VALUE"
