# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Virtual memory when the driver fails: allocation and growth do all or nothing, whichever call it is."""

from __future__ import annotations

import gc
import warnings

import pytest
from buffers import content
from virtual_memory import UNIT, VIRTUAL_KINDS, access, blocked, free, raw_allocation, reserve, roomy

from cuda_core_cffi import CUDAError, CUDAWarning, VirtualMemoryResource, ffi, lib, live_objects, simulator

pytestmark = pytest.mark.simulator_only("only the simulated driver fails on request")

ERROR = "CUDA_ERROR_UNKNOWN"
OUT_OF_MEMORY = "CUDA_ERROR_OUT_OF_MEMORY"
DEVICE = lib.CU_MEM_LOCATION_TYPE_DEVICE


def state() -> tuple[object, ...]:
    """Return what is alive, here and in the driver."""
    for _ in range(3):  # PyPy runs finalizers some time after a collection
        gc.collect()
    live = simulator.live()
    return live_objects()["buffer"], *(live[kind] for kind in VIRTUAL_KINDS), live["primary contexts retained"]


@pytest.fixture
def mr(device) -> VirtualMemoryResource:
    """Return a resource whose first buffer can grow where it is."""
    return roomy(device)


@pytest.mark.parametrize("call", ["cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemSetAccess"])
def test_an_allocation_that_fails_leaves_nothing_behind(stream, mr, call):
    before = state()
    with simulator.fail(call, ERROR) as fault, pytest.raises(CUDAError) as caught:
        mr.allocate(1, stream)
    assert (caught.value.call, caught.value.name, fault.left) == (call, ERROR, 0)
    assert state() == before
    mr.allocate(1, stream).close()


# Where a buffer of two mappings grows: the calls, and which of its name each is.
IN_PLACE = [("cuMemCreate", 1), ("cuMemMap", 1), ("cuMemSetAccess", 1)]
MOVE = [
    ("cuMemAddressReserve", 2), ("cuMemRetainAllocationHandle", 1), ("cuMemMap", 1), ("cuMemSetAccess", 1),
    ("cuMemRetainAllocationHandle", 2), ("cuMemMap", 2), ("cuMemSetAccess", 2), ("cuMemCreate", 1), ("cuMemMap", 3),
    ("cuMemSetAccess", 3),
]  # fmt: skip


def check_failed_growth(stream, mr, call: str, nth: int) -> None:
    """Let a buffer of two mappings fail to grow, and see that it is what it was and can grow afterwards."""
    with mr.allocate(1, stream) as first, mr.modify_allocation(first, 2 * UNIT) as buffer:
        buffer.fill(6, stream=stream)
        stream.sync()
        address, before = buffer.handle, state()
        with simulator.fail(call, ERROR, nth) as fault, pytest.raises(CUDAError) as caught:
            mr.modify_allocation(buffer, 3 * UNIT)
        assert (caught.value.call, caught.value.name, fault.left) == (call, ERROR, 0)
        assert (buffer.handle, buffer.size, buffer.is_closed) == (address, 2 * UNIT, False)
        assert state() == before
        rights = [access(address + start, DEVICE, 0) for start in (0, UNIT)]
        assert rights == [lib.CU_MEM_ACCESS_FLAGS_PROT_READWRITE] * 2
        with mr.modify_allocation(buffer, 3 * UNIT) as grown:
            assert set(content(grown, stream)[: 2 * UNIT]) == {6}


@pytest.mark.parametrize(("call", "nth"), IN_PLACE)
def test_growth_in_place_that_fails_changes_nothing(stream, mr, call, nth):
    check_failed_growth(stream, mr, call, nth)


@pytest.mark.parametrize(("call", "nth"), MOVE)
def test_a_move_that_fails_changes_nothing(stream, mr, call, nth):
    first = mr.allocate(1)  # takes the place with room
    taken = reserve(UNIT, first.handle + 2 * UNIT)
    first.close()
    check_failed_growth(stream, mr, call, nth)
    free(taken, UNIT)


def test_a_buffer_moves_where_the_addresses_behind_it_cannot_be_asked_for(stream, mr):
    with mr.allocate(1, stream) as buffer:
        buffer.fill(2, stream=stream)
        with simulator.fail("cuMemAddressReserve", ERROR):
            grown = mr.modify_allocation(buffer, 2 * UNIT)
        with grown:
            assert grown.handle != buffer.handle
            assert set(content(grown, stream)[:UNIT]) == {2}


def test_out_of_memory_once_is_cured_by_a_collection(stream, mr):
    with simulator.fail("cuMemCreate", OUT_OF_MEMORY):
        buffer = mr.allocate(1, stream)
    with simulator.fail("cuMemCreate", OUT_OF_MEMORY):
        grown = mr.modify_allocation(buffer, 2 * UNIT)
    before = state()
    with simulator.fail("cuMemCreate", OUT_OF_MEMORY, count=2), pytest.raises(CUDAError) as caught:
        mr.modify_allocation(grown, 3 * UNIT)
    assert (caught.value.name, caught.value.call) == (OUT_OF_MEMORY, "cuMemCreate")
    assert (state(), grown.size) == (before, 2 * UNIT)
    buffer.close()
    grown.close()


def test_a_buffer_larger_than_the_device_leaves_the_old_one(stream, mr):
    with mr.allocate(1, stream) as buffer:
        with pytest.raises(CUDAError) as caught:
            mr.modify_allocation(buffer, 1 << 40)
        assert (caught.value.name, buffer.size) == (OUT_OF_MEMORY, UNIT)


def test_a_handle_that_cannot_be_released_is_a_warning(stream, mr):
    with simulator.fail("cuMemRelease", ERROR), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        buffer = mr.allocate(1, stream)
        stream.record().close()  # tells of failures in cleanup that nothing has told of yet
    assert [w.category for w in caught] == [CUDAWarning]
    assert "cuMemRelease" in str(caught[0].message)
    buffer.fill(1, stream=stream)
    handle = ffi.new("CUmemGenericAllocationHandle *")
    assert lib.cuMemRetainAllocationHandle(handle, ffi.cast("void *", buffer.handle)) == 0
    assert lib.cuMemRelease(handle[0]) == lib.cuMemRelease(handle[0]) == 0
    before = simulator.live()["physical allocations"].number
    buffer.close()
    assert simulator.live()["physical allocations"].number == before - 1


@pytest.mark.parametrize("call", ["cuMemUnmap", "cuMemAddressFree", "cuStreamSynchronize"])
def test_a_close_that_fails_is_a_warning_and_other_buffers_work(stream, mr, call):
    with mr.allocate(1, stream) as buffer, blocked(buffer):
        grown = mr.modify_allocation(buffer, 2 * UNIT)
        address = grown.handle
        buffer.fill(3, stream=stream)
        stream.sync()
        with simulator.fail(call, ERROR) as fault, pytest.warns(CUDAWarning, match=call):
            grown.close()
        assert fault.left == 0
        assert set(content(buffer, stream)) == {3}
    if call == "cuMemUnmap":
        assert lib.cuMemUnmap(address, UNIT) == 0
    if call != "cuStreamSynchronize":
        free(address, 2 * UNIT)


@pytest.mark.parametrize("call", ["cuPointerGetAttribute", "cuStreamSynchronize", "cuMemUnmap", "cuMemAddressFree"])
def test_a_deallocation_that_fails_is_an_exception(stream, mr, call):
    address = raw_allocation(0, UNIT)
    with simulator.fail(call, ERROR), pytest.raises(CUDAError) as caught:
        mr.deallocate(address, UNIT, stream)
    assert (caught.value.call, caught.value.name) == (call, ERROR)
    if call == "cuMemAddressFree":
        free(address, UNIT)  # unmapped already
    else:
        mr.deallocate(address, UNIT, stream)


@pytest.mark.parametrize("call", ["cuMemGetAllocationGranularity"])
def test_a_resource_that_cannot_be_made_is_an_exception(device, call):
    with simulator.fail(call, ERROR), pytest.raises(CUDAError, match=call):
        VirtualMemoryResource(device)
