# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The properties of a device: one for each attribute of the driver."""

from __future__ import annotations

import warnings

import pytest
from helpers import output_of

from cuda_core_cffi import CUDAError, Device, ffi, lib
from cuda_core_cffi._device.properties import BoolProperty, DeprecatedProperty, DeviceProperties, IntProperty

PREFIX = "CU_DEVICE_ATTRIBUTE_"
NEWEST_ATTRIBUTE = 13000  # the CUDA version that brought it
PROPERTIES = {name: value for name, value in vars(DeviceProperties).items() if isinstance(value, IntProperty)}


def read(name: str) -> int:
    """Return a property of device 0, deprecated or not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return getattr(Device(0).properties, name)


def test_there_are_as_many_as_the_peer_has() -> None:
    assert len(PROPERTIES) == 143


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_property_is_named_after_an_attribute_of_the_header(name: str) -> None:
    if lib.CUDA_VERSION < NEWEST_ATTRIBUTE:
        pytest.skip("built with a header that is older than the newest property")
    assert hasattr(lib, PREFIX + name.upper())


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_property_has_its_type(name: str) -> None:
    wanted = bool if isinstance(PROPERTIES[name], BoolProperty) else int
    assert type(read(name)) is wanted


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_property_has_the_value_of_its_attribute_or_its_default(name: str) -> None:
    value = ffi.new("int *")
    number = getattr(lib, PREFIX + name.upper(), 0)  # 0 is no attribute
    status = lib.cuDeviceGetAttribute(value, number, 0)
    if status == lib.CUDA_ERROR_INVALID_VALUE:  # newer than the driver
        assert read(name) == (-1 if name == "host_numa_id" else 0)
    else:
        kind = bool if isinstance(PROPERTIES[name], BoolProperty) else int
        assert read(name) == kind(value[0])


def test_properties_are_one_object_of_a_device(device: Device) -> None:
    assert device.properties is device.properties


def test_they_cannot_be_constructed() -> None:
    with pytest.raises(RuntimeError, match=r"use Device\.properties"):
        DeviceProperties()


def test_they_cannot_be_set(device: Device) -> None:
    with pytest.raises(AttributeError, match="'warp_size' cannot be set"):
        device.properties.warp_size = 64  # type: ignore[misc]
    assert device.properties.warp_size == 32


def test_an_unknown_name_is_no_attribute(device: Device) -> None:
    with pytest.raises(AttributeError):
        _ = device.properties.number_of_wheels  # type: ignore[attr-defined]


def test_the_class_documents_each() -> None:
    assert "CU_DEVICE_ATTRIBUTE_WARP_SIZE" in (DeviceProperties.warp_size.__doc__ or "")  # type: ignore[attr-defined]


def test_the_deprecated_one_warns_where_it_is_used(device: Device) -> None:
    with pytest.warns(DeprecationWarning, match="gpu_overlap is deprecated: use async_engine_count") as caught:
        _ = device.properties.gpu_overlap
    assert caught[0].filename == __file__


def test_the_deprecated_one_warns_every_time(device: Device) -> None:
    assert [name for name, item in PROPERTIES.items() if isinstance(item, DeprecatedProperty)] == ["gpu_overlap"]
    for _ in range(2):
        with pytest.warns(DeprecationWarning, match="gpu_overlap"):
            _ = device.properties.gpu_overlap


@pytest.mark.simulator_only("counts driver calls")
def test_a_property_is_asked_for_once(device: Device) -> None:
    from cuda_core_cffi import simulator

    properties = DeviceProperties._create(0)
    with simulator.trace("cuDeviceGetAttribute") as trace:
        assert properties.max_threads_per_block == properties.max_threads_per_block == 1024
    assert len(trace) == 1


@pytest.mark.simulator_only("injects a fault")
@pytest.mark.parametrize(("name", "default"), [("mps_enabled", False), ("numa_config", 0), ("host_numa_id", -1)])
def test_an_attribute_unknown_to_the_driver_gives_a_default(device: Device, name: str, default: int) -> None:
    from cuda_core_cffi import simulator

    with simulator.fail("cuDeviceGetAttribute", "CUDA_ERROR_INVALID_VALUE"):
        value = getattr(DeviceProperties._create(0), name)
    assert value == default
    assert type(value) is type(default)


@pytest.mark.simulator_only("injects a fault")
def test_another_error_is_raised_and_not_kept(device: Device) -> None:
    from cuda_core_cffi import simulator

    properties = DeviceProperties._create(0)
    with (
        simulator.fail("cuDeviceGetAttribute", "CUDA_ERROR_UNKNOWN"),
        pytest.raises(CUDAError, match="cuDeviceGetAttribute failed: CUDA_ERROR_UNKNOWN"),
    ):
        _ = properties.warp_size
    assert properties.warp_size == 32


@pytest.mark.simulator_only("chooses the driver's version")
def test_an_old_driver_gives_defaults_for_newer_attributes() -> None:
    text = output_of(
        """
        from cuda_core_cffi import Device
        properties = Device(0).properties
        print(properties.host_alloc_dma_buf_supported, properties.warp_size)
        """,
        CUDA_SIM_DRIVER_VERSION="12020",
    )
    assert text == "False 32"


def test_values_that_every_gpu_has(device: Device) -> None:
    properties = device.properties
    assert properties.warp_size == 32
    assert properties.max_threads_per_block == 1024
    assert properties.multiprocessor_count > 0
    assert properties.unified_addressing is True
