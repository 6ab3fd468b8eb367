# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""``lib``: its functions and constants, which CFFI writes and the build makes smaller."""

from __future__ import annotations

import pytest

from cuda_core_cffi import Device, lib
from cuda_core_cffi._core.ffi import ffi


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CUDA_SUCCESS", 0),
        ("CUDA_ERROR_UNKNOWN", 999),
        ("CU_DEVICE_INVALID", -2),
        ("CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_ID_ANY", 2**32 - 1),
        ("CCC_NO_LIMIT", 2**64 - 1),
    ],
)
def test_a_constant_has_its_sign_and_all_its_bits(name: str, value: int) -> None:
    if not hasattr(lib, name):
        pytest.skip(f"the header of the build has no {name}")
    assert getattr(lib, name) == value


def test_a_constant_is_the_size_of_an_array() -> None:
    assert ffi.sizeof("char[CU_IPC_HANDLE_SIZE]") == lib.CU_IPC_HANDLE_SIZE == 64


def test_an_enumeration_has_the_values_of_the_constants() -> None:
    values = ffi.typeof("CUresult").relements
    assert len(values) > 50
    assert values == {name: getattr(lib, name) for name in values}


def test_the_address_of_a_function_is_that_of_one_to_call() -> None:
    version = ffi.new("int[2]")
    assert lib.cuDriverGetVersion(version) == lib.CUDA_SUCCESS
    assert ffi.addressof(lib, "cuDriverGetVersion")(version + 1) == lib.CUDA_SUCCESS
    assert version[0] == version[1] > 0


@pytest.mark.parametrize("count", [1, 5000])
def test_a_list_is_copied_for_a_pointer(device: Device, count: int) -> None:
    ordinals = ffi.new("int[]", [-1] * count)
    with device.allocate(16) as buffer:
        status = lib.cuPointerGetAttributes(
            count,
            [lib.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL] * count,
            [ordinals + number for number in range(count)],
            int(buffer.handle),
        )
    assert status == lib.CUDA_SUCCESS
    assert list(ordinals) == [0] * count


@pytest.mark.parametrize("items", [["nothing"], [2**40], [0, None], [0.5]])
def test_an_item_that_is_no_value_is_refused(items: list[object]) -> None:
    with pytest.raises((TypeError, OverflowError)):
        lib.cuPointerGetAttributes(len(items), items, [ffi.NULL] * len(items), 0)
