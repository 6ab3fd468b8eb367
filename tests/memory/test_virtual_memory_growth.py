# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers in virtual memory that grow, where they are or by moving, and what others see of them."""

from __future__ import annotations

import contextlib
import gc
import threading
import time

import pytest
from buffers import content
from consumer import Consumer
from helpers import SUPPORT, Gate, in_thread, in_threads, output_of
from interruptions import times_interrupted
from virtual_memory import UNIT, access, blocked, buffer_with_room, mark, marks, roomy

from cuda_core_cffi import (
    Buffer,
    Device,
    LaunchConfig,
    Program,
    UnavailableError,
    VirtualMemoryResource,
    VirtualMemoryResourceOptions,
    launch,
    lib,
)
from cuda_core_cffi._core.libraries import NVRTC_LIBRARY

pytestmark = pytest.mark.usefixtures("no_virtual_memory_left")

DEVICE = lib.CU_MEM_LOCATION_TYPE_DEVICE
READ_ONLY = lib.CU_MEM_ACCESS_FLAGS_PROT_READ
READ_WRITE = lib.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
NOTHING = lib.CU_MEM_ACCESS_FLAGS_PROT_NONE


@pytest.fixture
def mr(device) -> VirtualMemoryResource:
    """Return a resource whose first buffer can grow where it is, if the driver follows hints."""
    return roomy(device)


# --- Growth ---------------------------------------------------------------------------------------------------


def test_a_buffer_grows_where_it_is(stream, mr):
    with buffer_with_room(mr, 2 * UNIT, 3 * UNIT, stream) as buffer:
        address, values = buffer.handle, mark(buffer, stream)
        assert mr.modify_allocation(buffer, 4 * UNIT + 1) is buffer
        assert (buffer.handle, buffer.size) == (address, 5 * UNIT)
        assert marks(buffer, stream, 2) == values
        assert mark(buffer, stream) == marks(buffer, stream, 5)


def test_a_buffer_moves_where_it_has_no_room(stream, mr):
    with mr.allocate(2 * UNIT, stream) as buffer, blocked(buffer):
        address, values = buffer.handle, mark(buffer, stream)
        assert mr.modify_allocation(buffer, 5 * UNIT) is buffer
        assert buffer.handle not in (0, address)
        assert buffer.size == 5 * UNIT
        assert marks(buffer, stream, 2) == values
        assert mark(buffer, stream) == marks(buffer, stream, 5)


@pytest.mark.simulator_only("only the simulated driver tells which calls were made")
@pytest.mark.parametrize("move", [True, False])
def test_nothing_is_copied(stream, mr, move):
    from cuda_core_cffi import simulator

    with mr.allocate(1, stream) as buffer:
        with blocked(buffer) if move else contextlib.nullcontext(), simulator.trace() as trace:
            mr.modify_allocation(buffer, 2 * UNIT)
        assert not [name for name in trace.names if "Memcpy" in name or "Memset" in name]
        assert ("cuMemRetainAllocationHandle" in trace.names) == move


def test_growth_repeated_many_times_keeps_everything(stream, mr):
    places = set()
    with mr.allocate(UNIT, stream) as buffer:
        values = mark(buffer, stream)
        for count in range(2, 34):
            with blocked(buffer) if count % 4 == 0 else contextlib.nullcontext():
                mr.modify_allocation(buffer, count * UNIT)
            places.add(buffer.handle)
            assert buffer.size == count * UNIT
            if count % 8 == 1:
                assert marks(buffer, stream, len(values)) == values
            values = mark(buffer, stream)
        assert marks(buffer, stream, 33) == values
        with buffer.copy_to(stream=stream) as copy:
            assert content(copy, stream) == content(buffer, stream)
    assert len(places) > 2


@pytest.mark.parametrize("scenario", ["grow", "move"])
def test_a_buffer_whose_growth_an_exception_interrupts_works(scenario):
    assert times_interrupted(scenario) > 5


@pytest.mark.parametrize("size", [0, 1, UNIT, 3 * UNIT - 1, 3 * UNIT])
def test_a_size_that_is_there_already_changes_nothing(stream, mr, size):
    with mr.allocate(3 * UNIT, stream) as buffer:
        address, values = buffer.handle, mark(buffer, stream)
        assert mr.modify_allocation(buffer, size) is buffer
        assert (buffer.handle, buffer.size) == (address, 3 * UNIT)
        assert marks(buffer, stream, 3) == values


@pytest.mark.simulator_only("only the simulated driver tells which calls were made")
def test_a_size_that_is_there_already_only_sets_the_rights(stream, mr):
    from cuda_core_cffi import simulator

    with mr.allocate(1, stream) as buffer:
        mr.modify_allocation(buffer, 2 * UNIT)
        with simulator.trace() as trace:
            mr.modify_allocation(buffer, 2 * UNIT)
        assert trace.names == ["cuMemSetAccess"] * 2


@pytest.mark.parametrize("move", [True, False])
def test_new_rights_are_those_to_the_whole_buffer(stream, mr, move):
    with mr.allocate(UNIT, stream) as buffer:
        with blocked(buffer) if move else contextlib.nullcontext():
            mr.modify_allocation(buffer, 2 * UNIT, {"self_access": "r"})
        assert [access(buffer.handle + start, DEVICE, 0) for start in (0, UNIT)] == [READ_ONLY] * 2
        mr.modify_allocation(buffer, 2 * UNIT, VirtualMemoryResourceOptions(self_access=None))
        assert [access(buffer.handle + start, DEVICE, 0) for start in (0, UNIT)] == [NOTHING] * 2
        mr.modify_allocation(buffer, 2 * UNIT)
        assert [access(buffer.handle + start, DEVICE, 0) for start in (0, UNIT)] == [READ_WRITE] * 2


def test_memory_without_rights_is_not_accessible(device):
    mr = VirtualMemoryResource(device, {"self_access": None})
    assert (mr.is_device_accessible, mr.is_host_accessible) == (False, False)
    with mr.allocate(1) as buffer:
        assert access(buffer.handle, DEVICE, 0) == NOTHING
        assert not hasattr(buffer, "__cuda_array_interface__")


def test_equality_follows_the_address_and_the_size(stream, mr):
    with mr.allocate(1, stream) as buffer:
        same = Buffer.from_handle(buffer.handle, UNIT)
        assert buffer == same
        mr.modify_allocation(buffer, 2 * UNIT)
        assert buffer != same
        assert hash(buffer) == hash(Buffer.from_handle(buffer.handle, 2 * UNIT))


def test_only_open_buffers_of_this_resource_can_grow(device, stream, mr):
    with pytest.raises(TypeError, match="must be a Buffer, not int"):
        mr.modify_allocation(7, UNIT)
    with device.allocate(1, stream) as other, pytest.raises(ValueError, match="not allocated by this resource"):
        mr.modify_allocation(other, UNIT)
    with VirtualMemoryResource(device).allocate(1) as other, pytest.raises(ValueError, match="not allocated"):
        mr.modify_allocation(other, 2 * UNIT)
    buffer = mr.allocate(1, stream)
    buffer.close()
    for size in (UNIT, 2 * UNIT):
        with pytest.raises(RuntimeError, match="is closed"):
            mr.modify_allocation(buffer, size)


def test_a_closed_buffer_does_not_grow_although_a_tensor_needs_its_memory(stream, mr):
    buffer = mr.allocate(1, stream)
    capsule = buffer.__dlpack__(stream=stream.handle)
    buffer.close()
    for size in (UNIT, 2 * UNIT):
        with pytest.raises(RuntimeError, match="is closed"):
            mr.modify_allocation(buffer, size)
    del capsule


def test_a_buffer_stays_in_one_kind_of_place(mr):
    with mr.allocate(1) as buffer:
        with pytest.raises(ValueError, match="'host_numa'"):
            mr.modify_allocation(buffer, 2 * UNIT, {"location_type": "host_numa"})
        assert buffer.size == UNIT


KERNEL = """
extern "C" __global__ void bump(unsigned char *memory, unsigned long long stride, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) memory[i * stride] += 1;
}
"""


@pytest.fixture
def bump(device):
    """Return a kernel that adds 1 to every so many bytes."""
    try:
        NVRTC_LIBRARY.version()
    except UnavailableError as error:
        pytest.skip(str(error))
    with Program(KERNEL, "c++") as program, program.compile("cubin") as code, code.get_kernel("bump") as kernel:
        yield kernel


@pytest.mark.parametrize("move", [True, False])
def test_kernels_read_and_write_memory_that_has_grown(stream, mr, bump, move):
    half = UNIT // 2
    with mr.allocate(UNIT, stream) as buffer:
        buffer.fill(1, stream=stream)
        launch(stream, LaunchConfig(grid=1, block=32), bump, buffer, half, 2)
        with blocked(buffer) if move else contextlib.nullcontext():
            mr.modify_allocation(buffer, 4 * UNIT)
        tail = Buffer.from_handle(buffer.handle + UNIT, 3 * UNIT, owner=buffer)
        tail.fill(5, stream=stream)
        launch(stream, LaunchConfig(grid=1, block=32), bump, buffer, half, 8)
        data = content(buffer, stream)
    assert [data[start] for start in range(0, 4 * UNIT, half)] == [3, 3, 6, 6, 6, 6, 6, 6]
    assert data[1] == 1
    assert data[UNIT + 1] == 5


# --- What others see ------------------------------------------------------------------------------------------


def test_a_tensor_keeps_the_addresses_that_it_was_given(stream, mr):
    buffer = mr.allocate(1, stream)
    buffer.fill(7, stream=stream)
    capsule = buffer.__dlpack__(stream=stream.handle)
    address = buffer.handle
    with blocked(buffer):
        mr.modify_allocation(buffer, 2 * UNIT)
    assert buffer.handle != address
    old = Buffer.from_handle(address, UNIT)
    assert set(content(old, stream)) == {7}
    old.fill(8, stream=stream)  # the memory is the same
    assert set(content(buffer, stream)[:UNIT]) == {8}
    buffer.close()
    assert set(content(old, stream)) == {8}
    del capsule
    gc.collect()


def test_a_slice_keeps_the_addresses_that_it_was_cut_from(stream, mr):
    with mr.allocate(1, stream) as buffer:
        buffer.fill(2, stream=stream)
        part = buffer[8:24]
        address = part.handle
        with blocked(buffer):
            mr.modify_allocation(buffer, 2 * UNIT)
        assert (part.handle, buffer.handle != address - 8) == (address, True)
        part.fill(9, stream=stream)  # the memory is the same
        assert content(buffer, stream)[:32] == bytes([2] * 8 + [9] * 16 + [2] * 8)
        with pytest.raises(ValueError, match="not allocated by this resource"):
            mr.modify_allocation(part, UNIT)
        part.close()


def test_a_tensor_taken_by_its_consumer_keeps_the_addresses(stream, mr):
    buffer = mr.allocate(1, stream)
    consumer = Consumer(buffer.__dlpack__(stream=stream.handle))
    address = buffer.handle
    buffer.fill(4, stream=stream)
    buffer.close()
    assert set(content(Buffer.from_handle(address, UNIT), stream)) == {4}
    consumer.delete()


def test_the_cuda_array_interface_follows_the_buffer(stream, mr):
    with mr.allocate(1, stream) as buffer:
        interface = buffer.__cuda_array_interface__
        assert (interface["data"], interface["shape"]) == ((buffer.handle, False), (UNIT,))
        assert interface["stream"] == stream.handle
        with blocked(buffer):
            mr.modify_allocation(buffer, 2 * UNIT)
        interface = buffer.__cuda_array_interface__
        assert (interface["data"], interface["shape"]) == ((buffer.handle, False), (2 * UNIT,))
        assert interface["stream"] == stream.handle


def test_device_memory_is_shown_as_such(mr):
    with mr.allocate(1) as buffer:
        assert buffer.__dlpack_device__() == (2, 0)
        with pytest.raises(BufferError, match="host"):
            buffer.__buffer__(0)


# --- Memory of the host ---------------------------------------------------------------------------------------

HOST_LOCATIONS = ["host", "host_numa", "host_numa_current"]


def host_resource(device: Device, location: str) -> VirtualMemoryResource:
    """Return a resource of host memory, or skip."""
    needed = "host" if location == "host" else "host_numa"
    if not getattr(device.properties, f"{needed}_virtual_memory_management_supported"):
        pytest.skip(f"the device does not support virtual memory of location {location}")
    return roomy(device, location_type=location, handle_type=None)


@pytest.mark.parametrize("location", HOST_LOCATIONS)
def test_host_memory_says_what_it_is(device, location):
    mr = host_resource(device, location)
    assert (mr.device_id, mr.is_device_accessible, mr.is_host_accessible, mr.is_managed) == (-1, True, True, False)
    with mr.allocate(1) as buffer:
        assert (buffer.device_id, buffer.is_device_accessible, buffer.is_host_accessible) == (-1, True, True)
        assert buffer.__dlpack_device__() == (3, 0)


@pytest.mark.parametrize("location", HOST_LOCATIONS)
@pytest.mark.parametrize("move", [True, False])
def test_host_and_device_share_host_memory_that_grows(device, stream, location, move):
    import numpy

    mr = host_resource(device, location)
    with mr.allocate(UNIT, stream) as buffer:
        buffer.fill(6, stream=stream)
        stream.sync()
        with blocked(buffer) if move else contextlib.nullcontext():
            mr.modify_allocation(buffer, 2 * UNIT)
        array = numpy.asarray(buffer)
        assert array.shape == (2 * UNIT,)
        assert set(array[:UNIT].tolist()) == {6}
        array[:] = 9
        assert set(content(buffer, stream)) == {9}
        del array


# --- Threads --------------------------------------------------------------------------------------------------


def test_threads_share_a_resource(device):
    mr = VirtualMemoryResource(device)

    def work(index: int) -> None:
        Device(0).set_current()
        with Device(0).create_stream() as stream:
            for size in range(1, 4):
                with mr.allocate(1, stream) as buffer:
                    buffer.fill(index, stream=stream)
                    mr.modify_allocation(buffer, size * UNIT)
                    assert set(content(buffer, stream)[:UNIT]) == {index}

    in_threads(6, work)


def test_threads_that_grow_one_buffer_do_so_one_after_the_other(device, stream):
    mr = VirtualMemoryResource(device)
    with mr.allocate(UNIT, stream) as buffer:
        mark(buffer, stream)

        def grow(index: int) -> None:
            Device(0).set_current()
            for count in range(index, 16, 3):
                mr.modify_allocation(buffer, count * UNIT)

        in_threads(6, grow)
        assert buffer.size == 15 * UNIT
        assert marks(buffer, stream, 1) == mark(buffer, stream)[:1]


def test_one_growth_of_a_buffer_waits_for_another(device, mr):
    order = []
    with device.create_stream() as stream, mr.allocate(1, stream) as buffer, blocked(buffer), Gate(stream) as gate:
        address = buffer.handle
        first = threading.Thread(target=lambda: (mr.modify_allocation(buffer, 2 * UNIT), order.append("moved")))
        first.start()
        while buffer.handle == address:  # it has its new addresses, and waits to leave the old ones
            time.sleep(0.001)
        second = threading.Thread(target=lambda: (mr.modify_allocation(buffer, UNIT), order.append("same size")))
        second.start()
        second.join(0.1)
        order.append("opened")
        gate.open()
        first.join()
        second.join()
    assert (order[0], sorted(order[1:])) == ("opened", ["moved", "same size"])  # the second may be first to tell


def test_a_thread_without_a_context_may_allocate_grow_and_close(device):
    mr, sizes = VirtualMemoryResource(device), []

    def work() -> None:
        with mr.allocate(1) as buffer:
            sizes.append(mr.modify_allocation(buffer, 2 * UNIT).size)

    in_thread(work)
    assert sizes == [2 * UNIT]


# --- Peers ----------------------------------------------------------------------------------------------------

PEERS = """
    import sys
    from cuda_core_cffi import Device, VirtualMemoryResource, ffi, lib
    sys.path.insert(0, sys.argv[1])
    from virtual_memory import UNIT, access, blocked
    device, other = Device(0), Device(1)
    other.set_current()
    away = other.create_stream()
    device.set_current()
    mr = VirtualMemoryResource(device, {"peers": [other, 1, 0], "peer_access": sys.argv[2]})
    with mr.allocate(1) as buffer:
        rights = lambda: [access(buffer.handle + start, 1, 1) for start in range(0, buffer.size, UNIT)]
        print(rights(), access(buffer.handle, 1, 0))
        mr.modify_allocation(buffer, 2 * UNIT)
        with blocked(buffer):
            mr.modify_allocation(buffer, 3 * UNIT)
        print(rights())
        if sys.argv[2] == "rw":
            buffer.fill(7, stream=away)
            away.sync()
        mr.modify_allocation(buffer, 3 * UNIT, {})
        print(rights(), access(buffer.handle, 1, 0))
        mr.modify_allocation(buffer, 4 * UNIT)
        print(rights())
"""


@pytest.mark.parametrize(("allowed", "flags"), [("rw", READ_WRITE), ("r", READ_ONLY)])
def test_peers_have_the_rights_that_they_are_given(is_simulated, allowed, flags):
    if not is_simulated and (len(Device.get_all_devices()) < 2 or not Device(0).can_access_peer(1)):
        pytest.skip("needs two GPUs that can access each other")
    printed = output_of(PEERS, str(SUPPORT), allowed, CUDA_SIM_DEVICES="2").splitlines()
    assert printed == [f"{[flags]} 3", f"{[flags] * 3}", "[0, 0, 0] 3", f"{[flags] * 4}"]
