# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Pools of managed memory: where it should be, what the buffers are, and drivers and devices that lack something."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from buffers import ManagedResource, content
from helpers import output_of

from cuda_core_cffi import (
    LEGACY_DEFAULT_STREAM,
    Buffer,
    CUDAError,
    Device,
    Host,
    ManagedBuffer,
    ManagedMemoryResource,
    ManagedMemoryResourceOptions,
    ffi,
    lib,
    live_objects,
)
from cuda_core_cffi.typing import ManagedMemoryLocationType

SIZE = 64
KEEP_ALL = 2**64 - 1
# options of a pool, its preferred_location, its device_id, and preferred_location of its buffers
PLACES = [
    (None, None, -1, lambda: None),
    ({}, None, -1, lambda: None),
    ({"preferred_location": 0}, ("device", 0), 0, lambda: Device(0)),
    ({"preferred_location": -1}, ("host", None), -1, Host),
    ({"preferred_location": 0, "preferred_location_type": "device"}, ("device", 0), 0, lambda: Device(0)),
    ({"preferred_location_type": "host"}, ("host", None), -1, Host),
    ({"preferred_location": 0, "preferred_location_type": "host_numa"}, ("host_numa", 0), -1, lambda: Host(0)),
    (ManagedMemoryResourceOptions(0, ManagedMemoryLocationType.DEVICE), ("device", 0), 0, lambda: Device(0)),
]


@pytest.fixture(params=[None, {}, {"preferred_location": 0}], ids=["borrowed", "owned", "on a device"])
def pool(device, request):
    """Return a pool of each kind."""
    pool = ManagedMemoryResource(request.param)
    yield pool
    pool.close()


# Where the memory should be


@pytest.mark.parametrize(("options", "preferred", "device_id", "_"), PLACES)
def test_a_pool_tells_where_its_memory_should_be(device, options, preferred, device_id, _):
    pool = ManagedMemoryResource(options)
    assert (pool.preferred_location, pool.device_id) == (preferred, device_id)
    if preferred is not None:
        assert type(pool.preferred_location[0]) is ManagedMemoryLocationType
    assert pool.is_handle_owned is (options is not None)
    pool.close()


@pytest.mark.parametrize(("options", "_", "__", "place"), PLACES)
def test_buffers_of_a_pool_should_be_where_the_pool_says(stream, options, _, __, place):
    pool = ManagedMemoryResource(options)
    with pool.allocate(SIZE, stream) as buffer:
        assert buffer.preferred_location == place()
    pool.close()


@pytest.mark.parametrize(
    ("location", "kind", "error", "text"),
    [
        (99, None, ValueError, "99"), (-2, None, ValueError, "-1 for the host.*not -2"),
        (True, None, TypeError, "bool"), ("0", None, TypeError, "str"), (0.0, "device", TypeError, "float"),
        (None, "device", ValueError, "'device', not None"), (-1, "device", ValueError, "'device', not -1"),
        (99, "device", ValueError, "99"), (0, "host", ValueError, "None for 'host', not 0"),
        (-1, "host", ValueError, "not -1"), (-1, "host_numa", ValueError, "NUMA node.*not -1"),
        (2**31, "host_numa", ValueError, str(2**31)), (None, "gpu", ValueError, "'gpu'"), (0, 5, ValueError, "not 5"),
    ],
)  # fmt: skip
def test_places_that_make_no_sense_are_refused(device, location, kind, error, text):
    with pytest.raises(error, match=text):
        ManagedMemoryResource({"preferred_location": location, "preferred_location_type": kind})


def test_a_node_that_does_not_exist_is_refused_by_the_driver(device):
    with pytest.raises(CUDAError, match=r"cuMemPoolCreate failed: CUDA_ERROR_INVALID_VALUE"):
        ManagedMemoryResource({"preferred_location": 12345, "preferred_location_type": "host_numa"})


def test_without_a_number_the_node_nearest_to_the_current_device_is_preferred(device):
    node = device.properties.host_numa_id
    if node < 0:
        pytest.skip("the device knows no NUMA node")
    pool = ManagedMemoryResource({"preferred_location_type": "host_numa"})
    assert pool.preferred_location == ("host_numa", node)
    pool.close()


def test_without_a_context_there_is_no_nearest_node(device):
    assert lib.cuCtxSetCurrent(ffi.NULL) == 0
    try:
        with pytest.raises(CUDAError, match=r"host_numa.*set_current"):
            ManagedMemoryResource({"preferred_location_type": "host_numa"})
    finally:
        device.set_current()


@pytest.fixture
def change_property(device):
    """Return a function that makes the device say something else of itself."""
    told = device.properties.__dict__
    before = dict(told)
    yield told.__setitem__
    told.clear()
    told.update(before)


def test_a_device_without_nodes_has_no_nearest_one(device, change_property):
    change_property("host_numa_id", -1)
    with pytest.raises(ValueError, match="device 0 knows no NUMA node"):
        ManagedMemoryResource({"preferred_location_type": "host_numa"})


@pytest.mark.parametrize("options", [None, {}])
def test_a_device_that_shares_no_memory_with_the_host_is_warned_of(device, change_property, options):
    change_property("concurrent_managed_access", False)
    with pytest.warns(UserWarning, match="device 0 has no concurrent managed access") as caught:
        ManagedMemoryResource(options).close()
    assert caught[0].filename == __file__
    change_property("concurrent_managed_access", True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ManagedMemoryResource(options).close()


# Borrowed and owned


def test_without_options_the_current_pool_is_borrowed(device):
    current, before = ffi.new("CUmemoryPool *"), live_objects()
    nowhere = ffi.new("CUmemLocation *", {"type": lib.CU_MEM_LOCATION_TYPE_NONE, "id": 0})
    assert lib.cuMemGetMemPool(current, nowhere, lib.CU_MEM_ALLOCATION_TYPE_MANAGED) == 0
    pool = ManagedMemoryResource()
    assert pool.cdata == current[0]
    pool.close()
    assert not pool.is_closed
    assert live_objects() == before


def test_with_options_a_pool_is_created_and_closed(device):
    before = live_objects()["pool"]
    pool = ManagedMemoryResource({})
    assert live_objects()["pool"] == before + 1
    pool.close()
    assert (pool.is_closed, pool.handle, live_objects()["pool"]) == (True, 0, before)


@pytest.mark.parametrize(("options", "error"), [({"prefered_location": 0}, "did you mean"), (0, "int"), ([], "list")])
def test_wrong_options_are_refused(device, options, error):
    with pytest.raises(TypeError, match=error):
        ManagedMemoryResource(options)


def test_options_are_unhashable_and_compare_by_value():
    assert ManagedMemoryResourceOptions(0, "device") == ManagedMemoryResourceOptions(
        0, ManagedMemoryLocationType.DEVICE
    )
    assert ManagedMemoryResourceOptions() == ManagedMemoryResourceOptions(None, None)
    with pytest.raises(TypeError, match="unhashable"):
        hash(ManagedMemoryResourceOptions())


@pytest.mark.parametrize(
    ("options", "where"),
    [({}, ""), ({"preferred_location": 0}, " preferred=device:0"), ({"preferred_location": -1}, " preferred=host")],
)
def test_repr_shows_place_and_handle(device, options, where):
    pool = ManagedMemoryResource(options)
    assert repr(pool) == f"<ManagedMemoryResource{where} handle={pool.handle:#x}>"
    pool.close()


def test_a_pool_says_what_its_memory_is(pool):
    assert (pool.is_device_accessible, pool.is_host_accessible, pool.is_managed) == (True, True, True)


def test_a_pool_keeps_freed_memory(pool, stream):
    assert pool.attributes.release_threshold == KEEP_ALL
    pool.allocate(SIZE, stream).close()
    stream.sync()
    assert pool.attributes.reserved_mem_current >= SIZE


def test_a_closed_pool_allocates_no_more_and_its_buffers_stay_valid(stream):
    pool = ManagedMemoryResource({})
    buffer = pool.allocate(SIZE, stream)
    pool.close()
    with pytest.raises(RuntimeError, match="this ManagedMemoryResource is closed"):
        pool.allocate(SIZE, stream)
    buffer.fill(3, stream=stream)
    stream.sync()
    assert bytes(np.asarray(buffer)) == b"\3" * SIZE
    buffer.close()


# The memory


def test_host_and_device_share_the_memory(device, pool, stream):
    with pool.allocate(SIZE, stream) as buffer, device.allocate(SIZE, stream) as copy:
        stream.sync()
        np.asarray(buffer)[:] = np.arange(SIZE)
        copy.copy_from(buffer, stream=stream)
        assert content(copy, stream) == bytes(range(SIZE))
        buffer.fill(7, stream=stream)
        stream.sync()
        assert bytes(np.asarray(buffer)) == b"\7" * SIZE


def test_buffers_know_that_they_are_managed(pool, stream):
    with pool.allocate(SIZE, stream) as buffer:
        assert type(buffer) is ManagedBuffer
        assert buffer.memory_resource is pool
        assert (buffer.is_device_accessible, buffer.is_host_accessible, buffer.is_managed) == (True, True, True)
        assert buffer.device_id == pool.device_id
        assert buffer.__dlpack_device__() == (13, 0)
        assert repr(buffer) == f"<Buffer ptr={buffer.handle:#x} size={SIZE}>"


def test_a_copy_of_a_buffer_comes_from_the_same_pool(pool, stream):
    with pool.allocate(SIZE, stream) as buffer, buffer.copy_to(stream=stream) as copy:
        assert type(copy) is ManagedBuffer
        assert copy.memory_resource is pool


def test_zero_bytes_are_a_buffer_without_memory(pool, stream):
    with pool.allocate(0, stream) as buffer:
        assert (type(buffer), buffer.size, buffer.handle) == (ManagedBuffer, 0, 0)


def test_the_default_stream_is_that_of_the_preferred_device(device):
    pool = ManagedMemoryResource({"preferred_location": 0})
    assert lib.cuCtxSetCurrent(ffi.NULL) == 0
    buffer = pool.allocate(SIZE)
    buffer.close()
    with pytest.raises(CUDAError, match="set_current"):
        ManagedMemoryResource({}).allocate(SIZE)
    device.set_current()
    pool.close()


# Wrapped memory


@pytest.fixture
def pointer(device):
    """Return the address of managed memory that another library allocated."""
    pointer = ffi.new("CUdeviceptr *")
    assert lib.cuMemAllocManaged(pointer, SIZE, lib.CU_MEM_ATTACH_GLOBAL) == 0
    yield int(pointer[0])
    assert lib.cuMemFree(pointer[0]) == 0


def test_borrowed_managed_memory_is_not_freed(pointer, stream):
    owner = object()
    for given in (None, owner):
        buffer = ManagedBuffer.from_handle(pointer, SIZE, owner=given)
        assert isinstance(buffer, ManagedBuffer)
        assert (buffer.is_managed, buffer.owner, buffer.memory_resource) == (True, given, None)
        buffer.fill(1, stream=stream)
        stream.sync()
        assert bytes(np.asarray(buffer)) == b"\1" * SIZE
        buffer.close()
    assert ffi.buffer(ffi.cast("char *", pointer), 2)[:] == b"\1\1"


def test_memory_of_a_resource_goes_back_to_it(stream):
    mr = ManagedResource()
    given_back = []
    mr.deallocate = lambda ptr, size, stream: (
        given_back.append((ptr, size)),
        type(mr).deallocate(mr, ptr, size, stream),
    )
    buffer = mr.allocate(SIZE, stream)
    address = buffer.handle
    assert isinstance(buffer, ManagedBuffer)
    assert buffer.memory_resource is mr
    buffer.close()
    buffer.close()
    assert given_back == [(address, SIZE)]


def test_wrapping_checks_its_arguments(pointer):
    with pytest.raises(ValueError, match="mr or owner"):
        ManagedBuffer.from_handle(pointer, SIZE, mr=ManagedResource(), owner=object())
    with pytest.raises(TypeError, match="MemoryResource"):
        ManagedBuffer.from_handle(pointer, SIZE, mr=5)
    with pytest.raises(ValueError, match="-1"):
        ManagedBuffer.from_handle(pointer, -1)
    with pytest.raises(RuntimeError, match=r"use ManagedMemoryResource.allocate or ManagedBuffer.from_handle"):
        ManagedBuffer()


def test_a_buffer_of_the_default_stream_token_is_ordered_by_it(pointer):
    with ManagedBuffer.from_handle(pointer, SIZE, stream=LEGACY_DEFAULT_STREAM) as buffer:
        assert buffer.__cuda_array_interface__["stream"] == LEGACY_DEFAULT_STREAM.handle


def test_a_plain_buffer_of_managed_memory_knows_it(pointer):
    with Buffer.from_handle(pointer, SIZE) as buffer:
        assert (buffer.is_managed, buffer.is_host_accessible, buffer.__dlpack_device__()) == (True, True, (13, 0))


# Older drivers

OLDER_DRIVER = """
    from cuda_core_cffi import *
    Device(0).set_current()
    for options in (None, {}, {"preferred_location": 0}):
        try:
            ManagedMemoryResource(options)
        except UnavailableError as error:
            print(error)
"""


@pytest.mark.simulator_only("the simulated driver can be made older")
def test_drivers_for_cuda_12_have_no_pools_of_managed_memory():
    said = (
        "pools of managed memory need a driver for CUDA 13.0; the installed one is for 12.9: update the NVIDIA driver"
    )
    assert output_of(OLDER_DRIVER, CUDA_SIM_DRIVER_VERSION="12090").splitlines() == [said] * 3
