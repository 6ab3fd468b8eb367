# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Slices of buffers: parts that share the memory."""

from __future__ import annotations

import contextlib
import itertools
import threading
import weakref

import numpy
import pytest
from buffers import DATA, PINNED, SIZE, ForeignStream, HostResource, Owner, content, fresh, write
from helpers import Gate, alive, collect, collect_and_release

from cuda_core_cffi import (
    Buffer,
    DeviceMemoryResource,
    ManagedBuffer,
    ManagedMemoryResource,
    simulator,
)

pytestmark = pytest.mark.usefixtures("device")

KINDS = ["device", "pinned", "host resource", "owner", "borrowed"]


@pytest.fixture(params=KINDS)
def whole(request, device, stream):
    """Return a buffer of each kind that holds DATA."""
    owner = Owner()
    if request.param in ("device", "pinned"):
        buffer = fresh(request.param, device, stream)
    elif request.param == "host resource":
        buffer = HostResource().allocate(SIZE)
    else:
        buffer = Buffer.from_handle(owner.address, SIZE, owner=owner if request.param == "owner" else None)
    write(buffer, DATA, stream)
    yield buffer
    buffer.close()


# What a slice is

BOUNDS = [None, 0, 1, 17, SIZE - 1, SIZE, SIZE + 1, 10**30, -1, -17, -SIZE, -SIZE - 1]


def test_a_slice_is_where_python_puts_it(stream, whole):
    for start, stop in itertools.product(BOUNDS, BOUNDS):
        with whole[start:stop] as part:
            expected = DATA[start:stop]
            assert part.size == len(expected)
            assert part.handle == whole.handle + slice(start, stop).indices(SIZE)[0]
            if start in (None, 17, -17) and stop != 0:
                assert content(part, stream) == expected


def test_a_slice_of_a_slice_is_a_part_of_the_part(stream, whole):
    with whole[8:-8] as part, part[8:-8] as inner, inner[-4:] as last:
        assert (inner.handle, inner.size) == (whole.handle + 16, SIZE - 32)
        assert content(last, stream) == DATA[8:-8][8:-8][-4:]


def test_a_slice_shares_the_memory(stream, whole):
    if not whole.is_device_accessible:
        pytest.skip("a device does not fill memory of the host")
    with whole[10:20] as part:
        part.fill(255, stream=stream)
        assert content(whole, stream) == DATA[:10] + b"\xff" * 10 + DATA[20:]


def test_a_slice_says_what_the_whole_says(whole):
    with whole[8:24] as part, whole[SIZE:] as empty:
        for one in (part, empty):
            assert isinstance(one, Buffer)
            assert one.memory_resource is whole.memory_resource
            assert one.owner is whole.owner
            for name in ("is_device_accessible", "is_host_accessible", "is_managed"):
                assert getattr(one, name) == getattr(whole, name)
            assert one.__dlpack_device__() == whole.__dlpack_device__()


def test_a_slice_of_everything_equals_the_whole(whole):
    with whole[:] as part, whole[1:] as rest:
        assert part == whole
        assert hash(part) == hash(whole)
        assert rest != whole


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "a", None, (slice(0, 1), slice(0, 1)), ...])
def test_a_buffer_takes_slices_only(whole, wrong):
    with pytest.raises(TypeError, match=f"takes slices such as .* not {type(wrong).__name__}"):
        whole[wrong]


@pytest.mark.parametrize("bound", ["a", 1.0, b"1"])
def test_the_bounds_of_a_slice_are_integers(whole, bound):
    with pytest.raises(TypeError, match="integers"):
        whole[bound:]


@pytest.mark.parametrize("step", [2, -1, 10**20])
def test_the_step_of_a_slice_is_one(whole, step):
    with pytest.raises(ValueError, match=f"step 1, not {step}"):
        whole[::step]
    with pytest.raises(ValueError, match="zero"):
        whole[::0]


def test_a_buffer_is_neither_iterable_nor_sized(whole):
    for use in (iter, list, len, lambda buffer: 0 in buffer):
        with pytest.raises(TypeError):
            use(whole)
    assert whole


def test_a_closed_buffer_has_no_slices(whole):
    part = whole[1:]
    part.close()
    with pytest.raises(RuntimeError, match="this Buffer is closed"):
        part[1:]
    with whole[2:] as other:
        whole.close()
        with pytest.raises(RuntimeError, match="this Buffer is closed"):
            whole[:]
        with other[1:] as inner:
            assert inner.size == SIZE - 3
            assert (part.handle, whole.handle, other.is_closed) == (0, 0, False)


def test_a_closed_slice_is_refused(stream, whole):
    part = whole[8:16]
    part.close()
    part.close()
    for use in (
        lambda: part.copy_to(bytearray(8), stream=stream),
        lambda: part.copy_from(bytes(8), stream=stream),
        lambda: part.fill(0, stream=stream),
        lambda: part.set_deallocation_stream(stream),
    ):
        with pytest.raises(RuntimeError, match="this Buffer is closed"):
            use()
    assert content(whole, stream) == DATA


@pytest.mark.simulator_only("only there driver calls are traced")
def test_slicing_and_closing_a_slice_call_no_driver(device, stream):
    with device.allocate(SIZE, stream) as whole, simulator.trace() as trace:
        whole[8:][8:].close()
        collect()
        assert trace.names == []


@pytest.mark.parametrize("kind", ["allocated", "wrapped"])
def test_a_slice_of_managed_memory_is_managed(device, stream, kind):
    with ManagedMemoryResource().allocate(SIZE, stream) as memory, contextlib.ExitStack() as stack:
        whole = memory
        if kind == "wrapped":
            whole = stack.enter_context(ManagedBuffer.from_handle(memory.handle, SIZE, owner=memory))
        write(whole, DATA, stream)
        with whole[8:24][4:] as part:
            assert isinstance(part, ManagedBuffer)
            assert (part.is_managed, part.is_host_accessible) == (True, True)
            assert content(part, stream) == DATA[12:24]
            part.close()
            with pytest.raises(RuntimeError, match="this ManagedBuffer is closed"):
                part.fill(0, stream=stream)


# When the memory goes back


# the order in which members end; collecting takes its time
ORDERS = {"close": list(itertools.permutations(range(4))), "collect": [(0, 1, 2, 3), (3, 2, 1, 0), (1, 0, 3, 2)]}


def family(whole: Buffer) -> list[Buffer]:
    """Return a buffer, two slices and a slice of a slice."""
    part = whole[8:32]
    return [whole, part, part[8:], whole[40:]]


@pytest.mark.parametrize("ending", ["close", "collect"])
@pytest.mark.parametrize("kind", ["device", "pinned"])
def test_the_memory_goes_back_with_the_last_of_whole_and_slices(device, stream, kind, ending):
    before = alive()["buffer"]
    for order in ORDERS[ending]:
        members = dict(enumerate(family(fresh(kind, device, stream))))
        write(members[0], DATA, stream)
        for index in order:
            assert alive()["buffer"] == before + 1
            last = members[order[-1]]
            assert content(last, stream) == {0: DATA, 1: DATA[8:32], 2: DATA[16:32], 3: DATA[40:]}[order[-1]]
            del last
            if ending == "close":
                members[index].close()
            else:
                del members[index]
                collect()
        assert alive()["buffer"] == before


@pytest.mark.parametrize("ending", ["close", "collect"])
def test_a_resource_gets_the_whole_back_once_with_the_last(ending):
    class Resource(HostResource):
        def deallocate(self, ptr, size, stream=None):
            super().deallocate(ptr, size, stream)
            self.back.append((ptr, size))

    for order in ORDERS[ending]:
        resource = Resource()
        resource.back = []
        members = dict(enumerate(family(resource.allocate(SIZE))))
        address = members[0].handle
        for index in order:
            assert resource.back == []
            if ending == "close":
                members[index].close()
                members[index].close()
            else:
                del members[index]
                collect()
        assert resource.back == [(address, SIZE)]


def test_an_owner_is_kept_until_the_last_is_closed():
    owner = Owner()
    kept = weakref.ref(owner)
    members = family(Buffer.from_handle(owner.address, SIZE, owner=owner))
    del owner
    for member in members:
        collect()
        assert kept() is not None
        member.close()
    collect()
    assert kept() is None


def test_a_resource_that_fails_to_take_back_says_so_at_the_last_close():
    class Refusing(HostResource):
        def deallocate(self, ptr, size, stream=None):
            super().deallocate(ptr, size, stream)
            raise ValueError("no")

    whole = Refusing().allocate(SIZE)
    part = whole[8:]
    whole.close()
    with pytest.raises(ValueError, match="no"):
        part.close()


def test_a_slice_keeps_the_pool(device, stream):
    before = alive()
    pool = DeviceMemoryResource(device, {})
    part = pool.allocate(SIZE, stream)[8:]
    pool.close()
    del pool
    collect()
    assert alive()["pool"] == before["pool"] + 1
    part.close()
    del part
    collect()
    assert alive() == before


def test_threads_may_close_the_members_of_a_family(device, stream):
    before = alive()["buffer"]
    for _ in range(50):
        members = family(device.allocate(SIZE, stream)) * 2
        threads = [threading.Thread(target=member.close) for member in members]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert alive()["buffer"] == before


# In whose order


@pytest.mark.parametrize("named_by", ["close", "set_deallocation_stream"])
@pytest.mark.parametrize("member", range(4))
def test_any_member_may_name_the_stream_for_all(device, stream, member, named_by):
    with device.create_stream() as other:
        members = family(device.allocate(SIZE, stream))
        if named_by == "close":
            members.pop(member).close(other)
        else:
            members[member].set_deallocation_stream(other)
        for left in members:
            assert left.__cuda_array_interface__["stream"] == other.handle
            left.close()


def test_the_memory_goes_back_after_the_work_of_the_stream_named_last(device, stream):
    with device.create_stream() as other, Gate(other) as gate:
        whole = PINNED.allocate(SIZE, stream)
        part = whole[8:]
        part.close(other)
        opened = []
        timer = threading.Timer(0.1, lambda: (opened.append(True), gate.open()))
        timer.start()
        whole.close()  # pinned memory goes back at once: this waits for the stream
        assert opened
        timer.join()


def test_the_owner_of_a_foreign_stream_is_kept_as_long_as_the_memory(device, stream):
    for name in (
        lambda whole, part, foreign: part.set_deallocation_stream(foreign),
        lambda whole, part, foreign: part.close(foreign),
    ):
        whole = device.allocate(SIZE, stream)
        part = whole[8:][8:]
        foreign = ForeignStream(stream)
        kept = weakref.ref(foreign)
        name(whole, part, foreign)
        del foreign, part
        collect()
        assert kept() is not None
        whole.close()
        del whole
        for _ in range(2):
            collect_and_release()
        assert kept() is None


def test_a_slice_keeps_the_owner_of_the_stream_that_the_whole_was_allocated_in(device, stream):
    foreign = ForeignStream(stream)
    kept = weakref.ref(foreign)
    part = device.allocate(SIZE, foreign)[8:]
    del foreign
    collect()
    assert kept() is not None
    part.close()
    del part
    collect()
    assert kept() is None


def test_a_resource_gets_the_stream_that_a_slice_named(stream):
    given = []

    class Resource(HostResource):
        def deallocate(self, ptr, size, stream=None):
            super().deallocate(ptr, size, stream)
            given.append(stream)

    whole = Resource().allocate(SIZE)
    whole[8:].close(stream)
    whole.close()
    assert [one.handle for one in given] == [stream.handle]


# What slices are used for


@pytest.mark.parametrize("kind", ["device", "pinned"])
def test_disjoint_parts_of_one_buffer_are_copied(device, stream, kind):
    with fresh(kind, device, stream) as whole, whole[: SIZE // 2] as one, whole[SIZE // 2 :] as other:
        write(whole, DATA, stream)
        one.copy_to(other, stream=stream)
        assert content(whole, stream) == DATA[: SIZE // 2] * 2


@pytest.mark.parametrize(("to", "come"), [(0, 1), (1, 0), (0, 0), (0, 31), (31, 0)])
@pytest.mark.parametrize("options", [None, {}])
def test_parts_that_overlap_are_not_copied(device, stream, to, come, options):
    with device.allocate(SIZE, stream) as whole, whole[to : to + 32] as dst, whole[come : come + 32] as src:
        write(whole, DATA, stream)
        for copy_ in (dst.copy_from, lambda src, **more: src.copy_to(dst, **more)):
            with pytest.raises(ValueError, match="source and destination have bytes in common"):
                copy_(src, stream=stream, options=options)
        assert content(whole, stream) == DATA


def test_copying_a_slice_to_a_new_buffer_allocates_as_much_as_the_slice(device, stream):
    with device.allocate(SIZE, stream) as whole, whole[8:24] as part:
        write(whole, DATA, stream)
        with part.copy_to(stream=stream) as made:
            assert (made.size, made.memory_resource) == (16, whole.memory_resource)
            assert content(made, stream) == DATA[8:24]


def test_other_libraries_see_the_part(device, stream):
    with PINNED.allocate(SIZE, stream) as whole, whole[8:24] as part:
        write(whole, DATA, stream)
        assert part.__cuda_array_interface__["data"] == (whole.handle + 8, False)
        assert part.__cuda_array_interface__["shape"] == (16,)
        array = numpy.asarray(part)
        assert array.tobytes() == DATA[8:24]
        array[0] = 99
        del array
        assert content(whole, stream)[8] == 99


def test_a_dlpack_tensor_of_a_slice_keeps_the_memory(device, stream):
    before = alive()["buffer"]
    whole = PINNED.allocate(SIZE, stream)
    write(whole, DATA, stream)
    part = whole[8:24]
    array = numpy.from_dlpack(part)
    part.close()
    whole.close()
    assert alive()["buffer"] == before + 1
    assert array.tobytes() == DATA[8:24]
    del array
    collect()
    assert alive()["buffer"] == before


def test_a_dlpack_tensor_of_a_foreign_slice_keeps_the_memory():
    owner = Owner()
    kept = weakref.ref(owner)
    whole = Buffer.from_handle(owner.address, SIZE, owner=owner)
    array = numpy.from_dlpack(whole[8:24])
    whole.close()
    del owner, whole
    collect()
    assert kept() is not None
    assert array.tobytes() == DATA[8:24]
    del array
    for _ in range(2):
        collect_and_release()
    assert kept() is None


def test_a_memoryview_of_a_slice_is_of_the_part(stream):
    with PINNED.allocate(SIZE, stream) as whole, whole[-8:] as part:
        write(whole, DATA, stream)
        view = part.__buffer__(0)
        assert bytes(view) == DATA[-8:]
        view.release()


def test_an_enormous_borrowed_buffer_has_slices():
    with Buffer.from_handle(0x1000, 2**64 - 0x1000) as whole, whole[-1:] as last, whole[2**63 :] as half:
        assert (last.handle, last.size) == (2**64 - 1, 1)
        assert (half.handle, half.size) == (2**63 + 0x1000, 2**63 - 0x1000)
    with pytest.raises(OverflowError, match="64-bit addresses"):
        Buffer.from_handle(0x1001, 2**64 - 0x1000)


@pytest.mark.simulator_only("only the simulated driver fails on request")
def test_a_failing_end_of_the_last_slice_is_told(device, stream):
    whole = device.allocate(SIZE, stream)
    part = whole[8:]
    whole.close()
    with simulator.fail("cuMemFreeAsync", "CUDA_ERROR_UNKNOWN"), pytest.warns(match="cuMemFreeAsync"):
        part.close()
