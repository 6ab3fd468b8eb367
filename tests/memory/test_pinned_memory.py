# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Pools of pinned host memory: borrowed and owned, used from the host and the device, and on older drivers."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from buffers import content
from helpers import alive, output_of

from cuda_core_cffi import (
    LEGACY_DEFAULT_STREAM,
    Buffer,
    CUDAError,
    Device,
    PinnedMemoryResource,
    PinnedMemoryResourceOptions,
    ffi,
    lib,
)
from cuda_core_cffi._core.errors import check

SIZE = 64
MEBIBYTE = 2**20
KEEP_ALL = 2**64 - 1
OPTIONS = {"borrowed": None, "owned": {}, "on a node": {"numa_id": 0}}
HOST = {"type": lib.CU_MEM_LOCATION_TYPE_HOST, "id": 0}


@pytest.fixture(params=OPTIONS)
def pool(device, request):
    """Return a pool of each kind."""
    pool = PinnedMemoryResource(OPTIONS[request.param])
    yield pool
    pool.close()


# Borrowed and owned


def test_without_options_the_hosts_current_pool_is_borrowed(device):
    current, before = ffi.new("CUmemoryPool *"), alive()
    assert lib.cuMemGetMemPool(current, ffi.new("CUmemLocation *", HOST), lib.CU_MEM_ALLOCATION_TYPE_PINNED) == 0
    pool = PinnedMemoryResource()
    assert pool.cdata == current[0]
    assert (pool.is_handle_owned, pool.numa_id, pool.is_closed) == (False, -1, False)
    pool.close()
    assert not pool.is_closed
    assert alive() == before


@pytest.mark.parametrize("options", [{}, {"max_size": 2**25}, {"numa_id": 0}, PinnedMemoryResourceOptions()])
def test_with_options_a_pool_is_created(device, options):
    before = alive()["pool"]
    pool = PinnedMemoryResource(options)
    assert pool.is_handle_owned
    assert pool.handle not in (0, PinnedMemoryResource().handle)
    assert alive()["pool"] == before + 1
    pool.close()
    assert alive()["pool"] == before


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"maxsize": 1}, TypeError, "did you mean 'max_size'"), ({"max_size": -1}, ValueError, "not -1"),
        ({"max_size": 2**64}, ValueError, str(2**64)), ({"max_size": "1"}, TypeError, "str"),
        ({"numa_id": -1}, ValueError, "not -1"), ({"numa_id": 2**31}, ValueError, str(2**31)),
        ({"numa_id": 0.0}, TypeError, "float"), ({"numa_id": True}, TypeError, "bool"), (0, TypeError, "int"),
    ],
)  # fmt: skip
def test_wrong_options_are_refused(device, options, error, text):
    with pytest.raises(error, match=text):
        PinnedMemoryResource(options)


def test_a_node_that_does_not_exist_is_refused_by_the_driver(device):
    with pytest.raises(CUDAError, match=r"cuMemPoolCreate.*CUDA_ERROR_INVALID_VALUE.*LegacyPinnedMemoryResource"):
        PinnedMemoryResource({"numa_id": 12345})


def test_options_are_unhashable_and_compare_by_value():
    assert PinnedMemoryResourceOptions(max_size=1, numa_id=2) == PinnedMemoryResourceOptions(False, 1, 2)
    assert PinnedMemoryResourceOptions() == PinnedMemoryResourceOptions(False, 0, None)
    with pytest.raises(TypeError, match="unhashable"):
        hash(PinnedMemoryResourceOptions())


def test_a_pool_says_what_its_memory_is(pool):
    assert (pool.is_device_accessible, pool.is_host_accessible, pool.is_managed) == (True, True, False)
    assert pool.device_id == -1


@pytest.mark.parametrize(("options", "node", "where"), [({}, -1, ""), ({"numa_id": 0}, 0, " numa=0")])
def test_a_pool_tells_its_node(device, options, node, where):
    pool = PinnedMemoryResource(options)
    assert pool.numa_id == node
    assert repr(pool) == f"<PinnedMemoryResource{where} handle={pool.handle:#x}>"
    pool.close()


def test_a_pool_keeps_freed_memory(pool, stream):
    assert pool.attributes.release_threshold == KEEP_ALL
    pool.allocate(MEBIBYTE, stream).close()
    stream.sync()
    assert pool.attributes.reserved_mem_current >= MEBIBYTE
    assert pool.attributes.used_mem_high >= MEBIBYTE


# The memory


def test_every_device_has_access(pool):
    access, place = ffi.new("CUmemAccess_flags *"), ffi.new("CUmemLocation *")
    place.type = lib.CU_MEM_LOCATION_TYPE_DEVICE
    for device in Device.get_all_devices():
        place.id = device.device_id
        assert lib.cuMemPoolGetAccess(access, pool.cdata, place) == 0
        assert access[0] == lib.CU_MEM_ACCESS_FLAGS_PROT_READWRITE


def test_what_the_host_writes_the_device_reads(device, pool, stream):
    with pool.allocate(SIZE, stream) as buffer, device.allocate(SIZE, stream) as copy:
        stream.sync()
        np.asarray(buffer)[:] = np.arange(SIZE)
        copy.copy_from(buffer, stream=stream)
        assert content(copy, stream) == bytes(range(SIZE))


def test_what_the_device_writes_the_host_reads(pool, stream):
    with pool.allocate(SIZE, stream) as buffer:
        buffer.fill(7, stream=stream)
        stream.sync()
        assert bytes(np.asarray(buffer)) == b"\7" * SIZE


def test_buffers_are_what_the_host_and_devices_can_access(pool, stream):
    with pool.allocate(SIZE, stream) as buffer:
        assert type(buffer) is Buffer
        assert buffer.memory_resource is pool
        assert (buffer.is_device_accessible, buffer.is_host_accessible, buffer.is_managed) == (True, True, False)
        assert (buffer.device_id, buffer.__dlpack_device__()) == (-1, (3, 0))


def test_buffers_are_shared_with_numpy_without_a_copy(pool, stream):
    with pool.allocate(SIZE, stream) as buffer:
        stream.sync()
        np.asarray(buffer)[:] = 5
        assert list(np.from_dlpack(buffer)) == [5] * SIZE


def test_borrowed_memory_of_a_pool_is_still_known_to_be_the_hosts(pool, stream):
    with pool.allocate(SIZE, stream) as buffer:
        again = Buffer.from_handle(buffer.handle, SIZE, owner=buffer)
        assert (again.is_device_accessible, again.is_host_accessible, again.is_managed) == (True, True, False)
        ordinal = ffi.new("int *")
        check(lib.cuPointerGetAttribute(ordinal, lib.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, buffer.handle))
        assert again.device_id == max(ordinal[0], -1)
        again.close()


def test_zero_bytes_are_a_buffer_without_memory(pool, stream):
    with pool.allocate(0, stream) as buffer:
        assert (buffer.size, buffer.handle) == (0, 0)


# The default stream, which needs a context


def test_the_default_stream_is_the_default(pool, stream):
    with pool.allocate(SIZE) as buffer:
        buffer.fill(1, stream=LEGACY_DEFAULT_STREAM)
        LEGACY_DEFAULT_STREAM.sync()
        assert buffer.__cuda_array_interface__["stream"] == LEGACY_DEFAULT_STREAM.handle


def test_without_a_context_the_default_stream_cannot_be_found(device, pool):
    assert lib.cuCtxSetCurrent(ffi.NULL) == 0
    try:
        with pytest.raises(CUDAError, match="set_current"):
            pool.allocate(SIZE)
        with pytest.raises(CUDAError, match="set_current"):
            pool.deallocate(0, 0)
    finally:
        device.set_current()


@pytest.mark.parametrize("ending", ["close", "collect"])
def test_a_buffer_of_the_default_stream_goes_where_no_context_is_current(pool, ending):
    used, before = pool.attributes.used_mem_current, alive()
    buffers = [pool.allocate(SIZE)]

    def end() -> None:
        if ending == "close":
            buffers[0].close()
        buffers.clear()
        gc.collect()

    thread = threading.Thread(target=end)
    thread.start()
    thread.join()
    for _ in range(3):
        gc.collect()
    assert alive() == before
    assert pool.attributes.used_mem_current == used


def test_a_buffer_of_another_librarys_stream_may_go_back_in_the_default_stream(pool, stream):
    class Foreign:
        def __cuda_stream__(self):
            return (0, stream.handle)

    used = pool.attributes.used_mem_current
    buffer = pool.allocate(SIZE, Foreign())
    buffer.set_deallocation_stream(LEGACY_DEFAULT_STREAM)
    assert lib.cuCtxSetCurrent(ffi.NULL) == 0
    buffer.close()
    Device(0).set_current()
    assert pool.attributes.used_mem_current == used


# Closing, sharing, running out


def test_a_closed_pool_allocates_no_more(device, stream):
    pool = PinnedMemoryResource({})
    pool.close()
    pool.close()
    assert (pool.is_closed, pool.handle) == (True, 0)
    for size in (SIZE, 0):
        with pytest.raises(RuntimeError, match="this PinnedMemoryResource is closed"):
            pool.allocate(size, stream)


def test_buffers_of_a_closed_pool_stay_valid(device, stream):
    pool = PinnedMemoryResource({})
    buffer = pool.allocate(SIZE, stream)
    pool.close()
    buffer.fill(3, stream=stream)
    stream.sync()
    assert bytes(np.asarray(buffer)) == b"\3" * SIZE
    buffer.close()


@pytest.mark.parametrize("closed", [False, True])
def test_memory_can_go_back_by_address_after_close_too(device, stream, closed):
    pool = PinnedMemoryResource({})
    keep = pool.allocate(SIZE, stream)  # the driver's pool lives as long as its memory
    pointer = ffi.new("CUdeviceptr *")
    assert lib.cuMemAllocFromPoolAsync(pointer, SIZE, pool.cdata, stream.cdata) == 0
    stream.sync()
    if closed:
        pool.close()
    pool.deallocate(int(pointer[0]), SIZE, stream)
    keep.close()
    pool.close()


def test_more_than_a_pool_may_hold_is_out_of_memory(device, stream):
    pool = PinnedMemoryResource({"max_size": 2**25})
    with pytest.raises(CUDAError, match=r"cuMemAllocFromPoolAsync failed: CUDA_ERROR_OUT_OF_MEMORY.*close buffers"):
        pool.allocate(2**30, stream)
    pool.allocate(SIZE, stream).close()
    pool.close()


# Older drivers

OLDER_DRIVER = """
    from cuda_core_cffi import *
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    for options in (None, {}, {"numa_id": 0}):
        try:
            pool = PinnedMemoryResource(options)
            pool.allocate(64, stream).fill(1, stream=stream)
            print("made")
        except CUDAError as error:
            print(type(error).__name__, error)
"""
NEEDS_13 = "UnavailableError cuMemGetMemPool needs a driver for CUDA 13.0; the installed one is for {}: update the"


@pytest.mark.simulator_only("the simulated driver can be made older")
@pytest.mark.parametrize(
    ("version", "name", "owned"),
    [("12090", "12.9", "made"), ("12060", "12.6", "made"), ("12030", "12.3", "CUDAError cuMemPoolCreate failed: ")],
)
def test_drivers_for_cuda_12_have_no_current_pool_and_perhaps_only_those_on_nodes(version, name, owned):
    lines = output_of(OLDER_DRIVER, CUDA_SIM_DRIVER_VERSION=version).splitlines()
    assert lines[0].startswith(NEEDS_13.format(name))
    assert lines[0].endswith("with options, {} for example, a new pool is created")
    assert lines[1].startswith(owned)
    assert ("numa_id" in lines[1]) == (owned != "made")
    assert lines[2] == "made"
