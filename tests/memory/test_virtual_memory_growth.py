# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers in virtual memory that grow, where they are or by moving, and what others see of them."""

from __future__ import annotations

import contextlib
import gc
import itertools

import pytest
from buffers import content
from consumer import Consumer
from helpers import SUPPORT, Gate, in_thread, in_threads, opened_before, output_of
from interruptions import times_interrupted
from virtual_memory import UNIT, access, blocked, buffer_with_room, mark, marks, roomy

from cuda_core_cffi import (
    Buffer,
    Device,
    LaunchConfig,
    Program,
    UnavailableError,
    VirtualMemoryBuffer,
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


def in_the_way(buffer: Buffer, move: bool) -> contextlib.AbstractContextManager[None]:
    """Return a block in which a buffer has to move to grow, or a block that changes nothing."""
    return blocked(buffer) if move else contextlib.nullcontext()


def grown_from(mr: VirtualMemoryResource, buffer: Buffer, size: int, move: bool, config: object = None) -> Buffer:
    """Return the larger buffer that a resource makes of another, and check which addresses it has."""
    address = buffer.handle
    with in_the_way(buffer, move):
        grown = mr.modify_allocation(buffer, size, config)
    assert not move or grown.handle not in (0, address)
    return grown


def test_a_buffer_grows_where_it_is(stream, mr):
    with buffer_with_room(mr, 2 * UNIT, 3 * UNIT, stream) as buffer:
        address, values = buffer.handle, mark(buffer, stream)
        with mr.modify_allocation(buffer, 4 * UNIT + 1) as grown:
            assert (grown.handle, grown.size) == (address, 5 * UNIT)
            assert marks(grown, stream, 2) == values
            assert mark(grown, stream) == marks(grown, stream, 5)


def test_a_buffer_moves_where_it_has_no_room(stream, mr):
    with mr.allocate(2 * UNIT, stream) as buffer:
        values = mark(buffer, stream)
        with grown_from(mr, buffer, 5 * UNIT, move=True) as grown:
            assert grown.size == 5 * UNIT
            assert marks(grown, stream, 2) == values
            assert mark(grown, stream) == marks(grown, stream, 5)


@pytest.mark.parametrize("move", [True, False])
def test_the_buffer_that_has_grown_stays_as_it_was(stream, mr, move):
    with mr.allocate(2 * UNIT, stream) as buffer:
        address = buffer.handle
        with grown_from(mr, buffer, 4 * UNIT, move) as grown:
            assert isinstance(grown, VirtualMemoryBuffer)
            assert grown is not buffer
            assert (grown.memory_resource, grown.is_mapped) == (mr, False)
            assert (buffer.handle, buffer.size, buffer.is_closed) == (address, 2 * UNIT, False)


@pytest.mark.parametrize("move", [True, False])
def test_both_buffers_have_the_same_memory(stream, mr, move):
    with mr.allocate(UNIT, stream) as buffer, grown_from(mr, buffer, 2 * UNIT, move) as grown:
        grown.fill(7, stream=stream)
        assert set(content(buffer, stream)) == {7}
        buffer.fill(8, stream=stream)
        assert set(content(grown, stream)[:UNIT]) == {8}
        assert set(content(grown, stream)[UNIT:]) == {7}


@pytest.mark.parametrize("move", [True, False])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_buffers_of_the_same_memory_are_closed_in_any_order(stream, mr, move, order):
    buffers = [mr.allocate(UNIT, stream)]
    for size in (2 * UNIT, 3 * UNIT):
        buffers.append(grown_from(mr, buffers[-1], size, move))
    buffers[-1].fill(6, stream=stream)
    for index in order:
        for other in buffers:
            assert other.is_closed or set(content(other, stream)) == {6}
        buffers[index].close()


@pytest.mark.simulator_only("only the simulated driver counts its objects")
@pytest.mark.parametrize("move", [True, False])
def test_each_part_of_the_memory_is_freed_with_its_last_buffer(stream, mr, move):
    from cuda_core_cffi import simulator

    def physical() -> int:
        return simulator.live()["physical allocations"].number

    before = physical()
    buffer = mr.allocate(UNIT, stream)
    grown = grown_from(mr, buffer, 2 * UNIT, move)
    assert physical() == before + 2
    grown.close()
    assert physical() == before + 1
    grown = grown_from(mr, buffer, 2 * UNIT, move)
    buffer.close()
    assert physical() == before + 2
    grown.close()
    assert physical() == before


def test_a_buffer_grows_by_every_other_of_the_same_memory(stream, mr):
    with mr.allocate(UNIT, stream) as buffer:
        values = mark(buffer, stream)
        with mr.modify_allocation(buffer, 2 * UNIT) as first, mr.modify_allocation(buffer, 2 * UNIT) as second:
            assert marks(first, stream, 1) == marks(second, stream, 1) == values
            assert first.handle != second.handle  # the addresses behind the buffer are the first one's
            first.fill(1, stream=stream)
            assert set(content(second, stream)[:UNIT]) == {1}


def test_work_in_the_streams_of_all_buffers_is_waited_for(device, mr):
    with device.create_stream() as one, device.create_stream() as other, Gate(one) as gate:
        buffer = mr.allocate(UNIT, one)
        grown = mr.modify_allocation(buffer, 2 * UNIT)
        grown.set_deallocation_stream(other)
        buffer.fill(3, stream=one)
        grown.close()
        opened_before(gate, buffer.close)


@pytest.mark.simulator_only("only the simulated driver tells which calls were made")
@pytest.mark.parametrize("move", [True, False])
def test_nothing_is_copied(stream, mr, move):
    from cuda_core_cffi import simulator

    with mr.allocate(1, stream) as buffer:
        with in_the_way(buffer, move), simulator.trace() as trace:
            grown = mr.modify_allocation(buffer, 2 * UNIT)
        assert not [name for name in trace.names if "Memcpy" in name or "Memset" in name]
        assert ("cuMemRetainAllocationHandle" in trace.names) == move
        grown.close()


def test_growth_repeated_many_times_keeps_everything(stream, mr):
    places = set()
    buffer = mr.allocate(UNIT, stream)
    values = mark(buffer, stream)
    for count in range(2, 34):
        smaller = buffer
        buffer = grown_from(mr, buffer, count * UNIT, move=count % 4 == 0)
        smaller.close()
        places.add(buffer.handle)
        assert buffer.size == count * UNIT
        if count % 8 == 1:
            assert marks(buffer, stream, len(values)) == values
        values = mark(buffer, stream)
    assert marks(buffer, stream, 33) == values
    with buffer.copy_to(stream=stream) as copy:
        assert content(copy, stream) == content(buffer, stream)
    buffer.close()
    assert len(places) > 2


@pytest.mark.parametrize("scenario", ["grow", "move"])
def test_a_buffer_whose_growth_an_exception_interrupts_works(scenario):
    assert times_interrupted(scenario) > 5


@pytest.mark.parametrize("size", [0, 1, UNIT, 3 * UNIT - 1, 3 * UNIT])
def test_a_buffer_that_has_the_size_already_is_returned(stream, mr, size):
    with mr.allocate(3 * UNIT, stream) as buffer:
        address, values = buffer.handle, mark(buffer, stream)
        assert mr.modify_allocation(buffer, size) is buffer
        assert (buffer.handle, buffer.size) == (address, 3 * UNIT)
        assert marks(buffer, stream, 3) == values


@pytest.mark.parametrize("move", [True, False])
def test_a_buffer_without_memory_grows(stream, mr, move):
    with mr.allocate(0, stream) as buffer, mr.modify_allocation(buffer, UNIT) as grown:
        assert (buffer.handle, buffer.size, grown.size) == (0, 0, UNIT)
        mark(grown, stream)


@pytest.mark.parametrize("move", [True, False])
def test_rights_are_those_to_the_memory_that_is_added(stream, mr, move):
    def rights(buffer: Buffer) -> list[int]:
        return [access(buffer.handle + start, DEVICE, 0) for start in range(0, buffer.size, UNIT)]

    with mr.allocate(UNIT, stream) as buffer, grown_from(mr, buffer, 2 * UNIT, move, {"self_access": "r"}) as grown:
        assert (rights(buffer), rights(grown)) == ([READ_WRITE], [READ_WRITE, READ_ONLY])
        options = VirtualMemoryResourceOptions(self_access=None)
        with grown_from(mr, grown, 3 * UNIT, move, options) as larger:
            assert rights(larger) == [READ_WRITE, READ_ONLY, NOTHING]
        assert mr.modify_allocation(grown, UNIT, options) is grown
        assert rights(grown) == [READ_WRITE, READ_ONLY]
        with grown_from(mr, grown, 3 * UNIT, move) as larger:
            assert rights(larger) == [READ_WRITE, READ_ONLY, READ_WRITE]


def test_a_buffer_with_memory_that_devices_may_only_read_takes_no_values(stream, mr):
    with mr.allocate(1, stream) as buffer, mr.modify_allocation(buffer, 2 * UNIT, {"self_access": "r"}) as grown:
        buffer.write_value(1, stream=stream)
        with pytest.raises(ValueError, match="read-only"):
            grown.write_value(1, stream=stream)
        with mr.modify_allocation(grown, 3 * UNIT) as larger, pytest.raises(ValueError, match="read-only"):
            larger.write_value(1, stream=stream)


@pytest.mark.parametrize("move", [True, False])
def test_a_buffer_is_closed_in_the_stream_of_the_one_that_it_grew_from(device, mr, move):
    with device.create_stream() as stream, Gate(stream) as gate, mr.allocate(1, stream) as buffer:
        grown = grown_from(mr, buffer, 2 * UNIT, move)
        opened_before(gate, grown.close)


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
        with mr.modify_allocation(buffer, 2 * UNIT) as grown:
            assert grown != buffer == same
            assert hash(grown) == hash(Buffer.from_handle(grown.handle, 2 * UNIT))


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
        with grown_from(mr, buffer, 4 * UNIT, move) as grown:
            grown[UNIT:].fill(5, stream=stream)
            launch(stream, LaunchConfig(grid=1, block=32), bump, grown, half, 8)
            data = content(grown, stream)
    assert [data[start] for start in range(0, 4 * UNIT, half)] == [3, 3, 6, 6, 6, 6, 6, 6]
    assert data[1] == 1
    assert data[UNIT + 1] == 5


# --- What others see ------------------------------------------------------------------------------------------


def test_a_tensor_keeps_the_memory_of_a_buffer_that_has_grown(stream, mr):
    buffer = mr.allocate(1, stream)
    buffer.fill(7, stream=stream)
    capsule = buffer.__dlpack__(stream=stream.handle)
    address = buffer.handle
    grown = mr.modify_allocation(buffer, 2 * UNIT)
    buffer.close()
    grown.close()
    assert set(content(Buffer.from_handle(address, UNIT), stream)) == {7}
    del capsule
    gc.collect()


def test_a_slice_of_a_buffer_that_has_grown_shares_its_memory(stream, mr):
    with mr.allocate(1, stream) as buffer:
        buffer.fill(2, stream=stream)
        part = buffer[8:24]
        with grown_from(mr, buffer, 2 * UNIT, move=True) as grown:
            part.fill(9, stream=stream)
            assert content(grown, stream)[:32] == bytes([2] * 8 + [9] * 16 + [2] * 8)
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


def test_the_cuda_array_interface_is_of_each_buffer(stream, mr):
    with mr.allocate(1, stream) as buffer, grown_from(mr, buffer, 2 * UNIT, move=True) as grown:
        for each in (buffer, grown):
            interface = each.__cuda_array_interface__
            assert (interface["data"], interface["shape"]) == ((each.handle, False), (each.size,))
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
        with grown_from(mr, buffer, 2 * UNIT, move) as grown:
            array = numpy.asarray(grown)
            assert array.shape == (2 * UNIT,)
            assert set(array[:UNIT].tolist()) == {6}
            array[:] = 9
            assert set(content(grown, stream)) == set(content(buffer, stream)) == {9}
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
                    with mr.modify_allocation(buffer, size * UNIT) as grown:
                        assert set(content(grown, stream)[:UNIT]) == {index}

    in_threads(6, work)


def test_threads_grow_one_buffer_at_once(device, stream):
    mr = VirtualMemoryResource(device)
    with mr.allocate(UNIT, stream) as buffer:
        values = mark(buffer, stream)

        def grow(index: int) -> None:
            Device(0).set_current()
            with Device(0).create_stream() as own:
                for count in range(2, 8):
                    with mr.modify_allocation(buffer, count * UNIT) as grown:
                        assert grown.size == count * UNIT
                        assert marks(grown, own, 1) == values

        in_threads(6, grow)
        assert buffer.size == UNIT


def test_a_thread_without_a_context_may_allocate_grow_and_close(device):
    mr, sizes = VirtualMemoryResource(device), []

    def work() -> None:
        with mr.allocate(1) as buffer, mr.modify_allocation(buffer, 2 * UNIT) as grown:
            sizes.append(grown.size)

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
        rights = lambda buffer: [access(buffer.handle + start, 1, 1) for start in range(0, buffer.size, UNIT)]
        print(rights(buffer), access(buffer.handle, 1, 0))
        grown = mr.modify_allocation(buffer, 2 * UNIT)
        with blocked(grown):
            moved = mr.modify_allocation(grown, 3 * UNIT)
        print(rights(moved))
        if sys.argv[2] == "rw":
            moved.fill(7, stream=away)
            away.sync()
        own = mr.modify_allocation(moved, 4 * UNIT, {})
        print(rights(own), access(own.handle + 3 * UNIT, 1, 0))
        last = mr.modify_allocation(own, 5 * UNIT)
        print(rights(last))
        for each in (grown, moved, own, last):
            each.close()
"""


@pytest.mark.parametrize(("allowed", "flags"), [("rw", READ_WRITE), ("r", READ_ONLY)])
def test_peers_have_the_rights_that_they_are_given(is_simulated, allowed, flags):
    if not is_simulated and (len(Device.get_all_devices()) < 2 or not Device(0).can_access_peer(1)):
        pytest.skip("needs two GPUs that can access each other")
    printed = output_of(PEERS, str(SUPPORT), allowed, CUDA_SIM_DEVICES="2").splitlines()
    assert printed == [f"{[flags]} 3", f"{[flags] * 3}", f"{[flags] * 3 + [0]} 3", f"{[flags] * 3 + [0, flags]}"]
