# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers: allocation, end, and what they say of themselves."""

from __future__ import annotations

import copy
import pickle
import threading
import warnings
import weakref

import numpy
import pytest
from buffers import PINNED, SIZE, ForeignStream, content, fresh
from helpers import Gate, alive, collect, in_thread

from cuda_core_cffi import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    Buffer,
    Stream,
    ffi,
    lib,
)

pytestmark = pytest.mark.usefixtures("device")


# Allocation


@pytest.mark.parametrize("how", ["positional", "keyword", "none", "absent"])
@pytest.mark.parametrize("kind", ["device", "pinned"])
def test_the_stream_of_an_allocation_may_be_given_in_every_way(device, stream, kind, how):
    allocate = device.allocate if kind == "device" else PINNED.allocate
    buffer = {
        "positional": lambda: allocate(SIZE, stream),
        "keyword": lambda: allocate(SIZE, stream=stream),
        "none": lambda: allocate(SIZE, stream=None),
        "absent": lambda: allocate(SIZE),
    }[how]()
    assert (buffer.size, buffer.is_closed) == (SIZE, False)
    assert buffer.handle != 0
    buffer.close()


@pytest.mark.parametrize("stream", [LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM], ids=["legacy", "per-thread"])
def test_a_default_stream_can_order_an_allocation(device, stream):
    with device.allocate(SIZE, stream) as buffer:
        buffer.fill(7, stream=stream)
        assert content(buffer, stream) == bytes([7]) * SIZE


def test_memory_can_be_allocated_and_freed_where_no_context_is_current(device):
    def work() -> None:
        device.memory_resource.allocate(SIZE).close()

    in_thread(work)


@pytest.mark.parametrize("kind", ["device", "pinned"])
def test_an_empty_buffer_is_legal(device, stream, kind):
    with fresh(kind, device, stream, 0) as empty, fresh(kind, device, stream, 0) as other:
        assert (empty.size, empty.handle, empty.is_closed) == (0, 0, False)
        empty.copy_to(other, stream=stream)
        empty.fill(1, stream=stream)
        empty.fill(b"abcd", stream=stream)
        assert empty.copy_to(stream=stream).size == 0


@pytest.mark.parametrize("kind", ["device", "pinned"])
@pytest.mark.parametrize(
    ("size", "error", "text"),
    [(-1, ValueError, "negative, not -1"), (2**64, OverflowError, str(2**64)), ("64", TypeError, "str"),
     (64.0, TypeError, "float"), (None, TypeError, "NoneType"), (numpy.float32(64), TypeError, "float32")],
)  # fmt: skip
def test_a_wrong_size_is_refused_with_its_value(device, stream, kind, size, error, text):
    with pytest.raises(error, match=f"size must .*{text}"):
        fresh(kind, device, stream, size)


@pytest.mark.parametrize("kind", ["device", "pinned"])
def test_a_size_may_be_a_numpy_integer_and_becomes_an_int(device, stream, kind):
    with fresh(kind, device, stream, numpy.int64(SIZE)) as buffer:
        assert buffer.size == SIZE
        assert type(buffer.size) is int


@pytest.mark.parametrize("wrong", ["stream", 1, object()])
def test_a_stream_that_is_none_is_a_type_error(device, wrong):
    with pytest.raises(TypeError, match="needs a Stream"):
        device.allocate(SIZE, wrong)


@pytest.mark.parametrize("kind", ["device", "pinned"])
def test_a_closed_stream_is_refused_and_named(device, kind):
    stream = device.create_stream()
    stream.close()
    with pytest.raises(RuntimeError, match="Stream is closed"):
        fresh(kind, device, stream)


def test_buffers_are_not_constructed_directly():
    with pytest.raises(RuntimeError, match=r"Device\.allocate"):
        Buffer()


# The end of a buffer


@pytest.mark.parametrize("kind", ["device", "pinned"])
def test_closing_gives_the_memory_back_and_may_be_repeated(device, stream, kind):
    before = alive()["buffer"]
    buffer = fresh(kind, device, stream)
    assert alive()["buffer"] == before + 1
    buffer.close()
    assert alive()["buffer"] == before
    buffer.close()
    buffer.close(stream)
    assert buffer.is_closed
    assert buffer.handle == 0
    assert buffer.cdata == ffi.cast("CUdeviceptr", 0)


@pytest.mark.parametrize("kind", ["device", "pinned"])
def test_collecting_gives_the_memory_back(device, stream, kind):
    before = alive()["buffer"]
    buffer = fresh(kind, device, stream)
    del buffer
    collect()
    assert alive()["buffer"] == before


def test_leaving_a_with_block_closes(device, stream):
    with device.allocate(SIZE, stream) as buffer:
        assert not buffer.is_closed
    assert buffer.is_closed


@pytest.mark.parametrize("kind", ["device", "pinned"])
@pytest.mark.parametrize("how", ["close", "set_deallocation_stream"])
def test_the_stream_of_the_end_can_be_chosen(device, stream, kind, how):
    other = device.create_stream()
    buffer = fresh(kind, device, stream)
    if how == "close":
        buffer.close(other)
    else:
        buffer.set_deallocation_stream(other)
        assert lib.ccc_buffer_stream(buffer._c_handle) == other.handle
        buffer.close()
    other.close()


@pytest.mark.simulator_only("it reports the use of freed memory")
@pytest.mark.parametrize("how", ["allocation", "close", "set_deallocation_stream", "foreign"])
@pytest.mark.parametrize("kind", ["device", "pinned"])
def test_memory_goes_back_in_the_order_of_the_chosen_stream(device, stream, kind, how):
    from cuda_core_cffi import simulator

    with device.create_stream() as busy, Gate(busy) as gate:
        buffer = fresh(kind, device, busy if how == "allocation" else stream)
        stream.sync()
        buffer.fill(1, stream=busy)  # not done yet when the buffer is closed
        if how == "set_deallocation_stream":
            buffer.set_deallocation_stream(busy)
        if kind == "pinned":  # it goes back at once: closing waits for the stream
            threading.Timer(0.05, gate.open).start()
        buffer.close({"close": busy, "foreign": ForeignStream(busy)}.get(how))
        gate.open()
        busy.sync()
        assert simulator.reports() == []


@pytest.mark.parametrize("wrong", [1, "stream", object()])
def test_a_deallocation_stream_that_is_none_is_a_type_error(device, stream, wrong):
    with device.allocate(SIZE, stream) as buffer:
        with pytest.raises(TypeError, match="set_deallocation_stream"):
            buffer.set_deallocation_stream(wrong)
        with pytest.raises(TypeError, match="set_deallocation_stream"):
            buffer.close(wrong)
        assert not buffer.is_closed


def test_a_closed_deallocation_stream_is_refused_and_the_buffer_stays_open(device, stream):
    closed = device.create_stream()
    closed.close()
    with device.allocate(SIZE, stream) as buffer:
        with pytest.raises(RuntimeError, match="Stream is closed"):
            buffer.close(closed)
        assert not buffer.is_closed


def test_a_closed_buffer_takes_no_deallocation_stream(device, stream):
    buffer = device.allocate(SIZE, stream)
    buffer.close()
    with pytest.raises(RuntimeError, match="Buffer is closed"):
        buffer.set_deallocation_stream(stream)


@pytest.mark.parametrize("kind", ["device", "pinned"])
def test_a_buffer_outlives_the_stream_that_it_came_from(device, kind):
    stream = device.create_stream()
    before = alive()["stream"]
    buffer = fresh(kind, device, stream)
    stream.close()
    assert alive()["stream"] == before
    buffer.close()
    assert alive()["stream"] == before - 1


@pytest.mark.parametrize("kind", ["device", "pinned"])
@pytest.mark.parametrize("ending", ["close", "collect"])
@pytest.mark.parametrize("token", [False, True], ids=["stream", "default stream"])
def test_memory_goes_back_where_no_context_is_current(device, stream, kind, ending, token):
    buffers = [fresh(kind, device, LEGACY_DEFAULT_STREAM if token else stream)]

    def work() -> None:
        if ending == "close":
            buffers.pop().close()
        else:
            buffers.clear()
            collect()

    before = alive()["buffer"]
    in_thread(work)
    assert alive()["buffer"] == before - 1


@pytest.mark.parametrize("kind", ["device", "pinned"])
@pytest.mark.parametrize("token", [False, True], ids=["stream", "default stream"])
def test_memory_goes_back_where_another_context_is_current(device, stream, kind, token):
    buffer = fresh(kind, device, LEGACY_DEFAULT_STREAM if token else stream)
    other = ffi.new("CUcontext *")
    assert lib.cuCtxCreate(other, ffi.NULL, 0, 0) == 0
    try:
        buffer.close()
        now = ffi.new("CUcontext *")
        assert lib.cuCtxGetCurrent(now) == 0
        assert now[0] == other[0]
    finally:
        assert lib.cuCtxDestroy(other[0]) == 0
        device.set_current()


def test_memory_from_a_foreign_stream_goes_back_in_a_default_stream_without_a_context(device, stream):
    buffer = device.allocate(SIZE, ForeignStream(stream))
    buffer.set_deallocation_stream(LEGACY_DEFAULT_STREAM)
    in_thread(buffer.close)
    assert buffer.is_closed


@pytest.mark.parametrize("kind", ["device", "pinned"])
@pytest.mark.parametrize("how", ["allocate", "allocate in one of ours for it", "set_deallocation_stream"])
def test_a_buffer_keeps_the_owner_of_its_foreign_stream(device, stream, kind, how):
    foreign = ForeignStream(stream)
    owner = weakref.ref(foreign)
    if how == "allocate":
        buffer = fresh(kind, device, foreign)
    elif how == "allocate in one of ours for it":
        buffer = fresh(kind, device, device.create_stream(foreign))
    else:
        buffer = fresh(kind, device, stream)
        buffer.set_deallocation_stream(foreign)
    del foreign
    collect()
    assert owner() is not None
    buffer.close()
    del buffer
    collect()
    assert owner() is None


@pytest.mark.parametrize("part", ["the whole", "a slice"])
def test_memory_goes_back_before_the_owner_of_its_foreign_stream(device, part):
    buffer = device.allocate(SIZE, ForeignStream(device.create_stream()))
    if part == "a slice":
        buffer = buffer[8:]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del buffer  # the last that refers to the stream, which is destroyed
        collect()
    assert not [str(warning.message) for warning in caught]


def test_closing_from_many_threads_frees_once(device, stream):
    before = alive()["buffer"]
    for _ in range(50):
        buffer = device.allocate(SIZE, stream)
        barrier = threading.Barrier(4)

        def close(buffer=buffer, barrier=barrier) -> None:
            barrier.wait()
            buffer.close()

        threads = [threading.Thread(target=close) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert alive()["buffer"] == before


# What a buffer says of itself


def test_equality_goes_by_pointer_and_size():
    one, same = Buffer.from_handle(0x1000, 16), Buffer.from_handle(0x1000, 16)
    assert one == same
    assert hash(one) == hash(same)
    assert one != Buffer.from_handle(0x1000, 17)
    assert one != Buffer.from_handle(0x1001, 16)
    assert one != 0x1000
    assert one != Stream.from_handle(0x1000)


def test_equality_hash_and_size_stay_after_close(device, stream):
    buffer = device.allocate(SIZE, stream)
    alias = Buffer.from_handle(buffer.handle, SIZE)
    before = hash(buffer)
    buffer.close()
    assert hash(buffer) == before
    assert buffer == alias
    assert buffer.size == SIZE
    assert buffer.memory_resource is device.memory_resource


def test_repr_shows_address_and_size(device, stream):
    buffer = device.allocate(SIZE, stream)
    assert repr(buffer) == f"<Buffer ptr={buffer.handle:#x} size=64>"
    buffer.close()
    assert repr(buffer) == "<Buffer ptr=0x0 size=64>"


def test_the_handle_is_an_int_and_the_cdata_typed(device, stream):
    with device.allocate(SIZE, stream) as buffer:
        assert type(buffer.handle) is int
        assert ffi.typeof(buffer.cdata) is ffi.typeof("CUdeviceptr")
        assert int(buffer.cdata) == buffer.handle


@pytest.mark.parametrize("action", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_buffer_is_neither_pickled_nor_copied_by_python(device, stream, action):
    with device.allocate(SIZE, stream) as buffer, pytest.raises(TypeError, match=r"pickle|copied"):
        action(buffer)


def test_a_buffer_can_be_weakly_referenced(device, stream):
    with device.allocate(SIZE, stream) as buffer:
        assert weakref.ref(buffer)() is buffer


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("device", (0, True, False, False)), ("pinned", (0, True, True, False)), ("host", (-1, False, True, False)),
     ("managed", (0, True, True, True))],
)  # fmt: skip
def test_the_driver_tells_what_memory_of_unknown_origin_is(device, stream, kind, expected):
    keep = None
    if kind == "managed":
        pointer = ffi.new("CUdeviceptr *")
        assert lib.cuMemAllocManaged(pointer, SIZE, lib.CU_MEM_ATTACH_GLOBAL) == 0
        address = int(pointer[0])
    elif kind == "host":
        keep = ffi.new("char[]", SIZE)
        address = int(ffi.cast("uintptr_t", keep))
    else:
        keep = fresh(kind, device, stream)
        address = keep.handle
    with Buffer.from_handle(address, SIZE) as buffer:
        found = (buffer.device_id, buffer.is_device_accessible, buffer.is_host_accessible, buffer.is_managed)
    if kind == "managed":
        assert lib.cuMemFree(address) == 0
    assert found == expected


def test_a_closed_buffer_of_unknown_origin_cannot_be_asked_where_it_is(device):
    buffer = Buffer.from_handle(0x1000, 16)
    buffer.close()
    with pytest.raises(RuntimeError, match="Buffer is closed"):
        _ = buffer.is_device_accessible


def test_memory_of_a_resource_is_what_the_resource_says(device, stream):
    with device.allocate(SIZE, stream) as buffer:
        flags = (buffer.device_id, buffer.is_device_accessible, buffer.is_host_accessible, buffer.is_managed)
        assert flags == (0, True, False, False)
        assert buffer.owner is None
    with PINNED.allocate(SIZE) as pinned:
        assert (pinned.is_device_accessible, pinned.is_host_accessible, pinned.is_managed) == (True, True, False)
        assert pinned.device_id == -1


def test_an_address_that_the_driver_does_not_know_is_not_filled(device, stream):
    with Buffer.from_handle(0x10, SIZE) as wild, device.allocate(SIZE, stream) as buffer:
        with pytest.raises(ValueError, match="memory that a device can use"):
            wild.fill(0, stream=stream)
        assert not buffer.is_closed
