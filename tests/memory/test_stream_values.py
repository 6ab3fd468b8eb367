# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Values that streams write to memory, and for which they wait, alone and in batches."""

from __future__ import annotations

import threading
import time

import numpy
import pytest
from buffers import DATA, PINNED, ForeignStream, ManagedResource, Owner, content
from stream_values import BYTES, words_for

from cuda_core_cffi import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    Buffer,
    CUDAError,
    DeviceMemoryResource,
    LegacyPinnedMemoryResource,
    PinnedMemoryResource,
    UnavailableError,
    VirtualMemoryResource,
    simulator,
)
from cuda_core_cffi._memory import SynchronousMemoryResource
from cuda_core_cffi.typing import StreamWaitValueType
from cuda_core_cffi.utils import (
    FlushRemoteWrites,
    MemoryBarrier,
    TrackingMemoryResource,
    WaitValue,
    WriteValue,
    batch_mem_op,
)

LONG = 2**40 + 7
WIDTHS = [32, 64]


@pytest.fixture
def other(device):
    """Return a second stream."""
    with device.create_stream() as stream:
        yield stream
        stream.sync()


@pytest.fixture
def words(device, stream, other):
    """Return integers in pinned memory, all 0."""
    with words_for(device, stream, other) as words:
        yield words


def reached(event) -> bool:
    """Tell whether an event is reached within what is more than enough for a stream that does not wait."""
    end = time.monotonic() + 0.1
    while not event.is_done and time.monotonic() < end:
        time.sleep(0.001)
    return event.is_done


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("resource", [SynchronousMemoryResource, VirtualMemoryResource, LegacyPinnedMemoryResource])
def test_a_value_is_written_at_its_offset_and_nowhere_else(device, stream, resource, bits):
    with resource(*() if resource is LegacyPinnedMemoryResource else (device,)).allocate(BYTES) as buffer:
        buffer.fill(0, stream=stream)
        assert buffer.write_value(0x01020304, stream=stream, offset=16, bits=bits) is None
        expected = bytearray(buffer.size)
        expected[16:20] = b"\4\3\2\1"
        assert content(buffer, stream) == expected


@pytest.mark.parametrize("bits", WIDTHS)
def test_the_largest_value_is_written(stream, words, bits):
    words.buffer.write_value(2**bits - 1, stream=stream, bits=bits)
    stream.sync()
    assert words.array(bits)[:2].tolist() == [2**bits - 1, 0]


def test_a_value_is_written_after_what_came_before_in_the_stream(device, stream, words):
    with device.allocate(BYTES, stream) as data:
        data.fill(5, stream=stream)
        data[:8].copy_to(words.buffer[:8], stream=stream)
        words.buffer.write_value(1, stream=stream, offset=8)
        while words.short[2] != 1:
            time.sleep(0)
        assert words.long[0] == 0x0505050505050505
        stream.sync()


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize(
    ("condition", "value", "not_yet", "enough"),
    [
        ("geq", 5, [0, 4, "wraps"], [5, 6]),
        ("eq", 5, [4, 6], [5]),
        ("and", 6, [0, 1, 8], [2, 4, 7]),
        ("nor", "all but 1", ["all", 1], [0, 2]),
    ],
)
def test_a_stream_waits_until_its_condition_holds(stream, other, words, bits, condition, value, not_yet, enough):
    largest = 2**bits - 1
    named = {"all": largest, "all but 1": largest - 1, "wraps": largest}
    value = named.get(value, value)
    for last in enough:
        words.array(bits)[0] = named.get(not_yet[0], not_yet[0])
        words.ends_with(last, 0, bits)
        words.buffer.wait_value(value, condition, stream=stream, bits=bits)
        event = stream.record()
        for number in not_yet:
            words.array(bits)[0] = named.get(number, number)
            assert not reached(event)
        words.buffer.write_value(last, stream=other, bits=bits)
        stream.sync()
        assert event.is_done


def test_a_counter_that_wraps_around_is_waited_for(stream, words):
    words.short[0] = 3  # 5 more than 2 ** 32 - 2
    words.buffer.wait_value(2**32 - 2, stream=stream)
    stream.sync()


def test_members_of_the_enumeration_are_conditions(stream, words):
    words.short[0] = 7
    for condition in StreamWaitValueType:
        words.buffer.wait_value(7, condition, stream=stream)
    stream.sync()


def test_what_follows_a_wait_sees_what_was_written_before_the_value(device, stream, other, words):
    with device.allocate(BYTES, stream) as data, device.allocate(BYTES, stream) as copy:
        data.fill(0, stream=stream)
        other.wait(stream)
        words.ends_with(1)
        words.buffer.wait_value(1, stream=stream)
        data.copy_to(copy, stream=stream)
        data.fill(9, stream=other)
        words.buffer.write_value(1, stream=other)
        assert content(copy, stream) == b"\x09" * BYTES


def test_the_host_ends_a_wait(stream, words):
    words.ends_with(1, 1)
    words.buffer.wait_value(1, stream=stream, offset=4)
    words.buffer.write_value(2, stream=stream, offset=8)
    assert words.short[2] == 0
    words.short[1] = 1
    stream.sync()
    assert words.short[2] == 2


def test_other_threads_run_while_one_waits_for_a_stream_that_waits(stream, words):
    words.ends_with(1)
    words.buffer.wait_value(1, stream=stream)
    waiter = threading.Thread(target=stream.sync)
    waiter.start()
    words.short[0] = 1
    waiter.join()


@pytest.mark.parametrize("default", [LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM])
def test_default_and_foreign_streams_take_operations(device, stream, words, default):
    words.buffer.write_value(1, stream=default)
    words.buffer.wait_value(1, stream=default)
    default.sync()
    words.buffer.write_value(2, stream=ForeignStream(stream))
    words.buffer.wait_value(2, "eq", stream=ForeignStream(stream))
    stream.sync()
    assert words.short[0] == 2


def test_slices_and_memory_of_others_are_written(device, stream, words):
    words.buffer[8:16].write_value(1, stream=stream, offset=4)
    with Buffer.from_handle(words.buffer.handle, BYTES, owner=words) as borrowed:
        borrowed.write_value(2, stream=stream, offset=16)
        stream.sync()
    assert words.short[:5].tolist() == [0, 0, 0, 1, 2]


@pytest.mark.parametrize("use", ["write_value", "wait_value"])
@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"offset": BYTES}, ValueError, "not in a buffer of 64 bytes"),
        ({"offset": BYTES - 4, "bits": 64}, ValueError, "8 bytes at offset 60"),
        ({"offset": -4}, ValueError, "offset -4"),
        ({"offset": 2}, ValueError, "not a multiple of 4 bytes"),
        ({"offset": 4, "bits": 64}, ValueError, "not a multiple of 8 bytes"),
        ({"offset": 1.0}, TypeError, "offset must be an int"),
        ({"bits": 16}, ValueError, "bits must be 32 or 64"),
        ({"bits": True}, ValueError, "bits must be 32 or 64"),
        ({"value": 2**32}, OverflowError, "does not fit in 32 bits"),
        ({"value": 2**64, "bits": 64}, OverflowError, "does not fit in 64 bits"),
        ({"value": -1}, OverflowError, "does not fit"),
        ({"value": "1"}, TypeError, "value must be an int"),
        ({"value": True}, TypeError, "value must be an int"),
        ({"stream": None}, TypeError, "needs a Stream"),
    ],
)
def test_wrong_arguments_are_refused(stream, words, use, arguments, error, text):
    with pytest.raises(error, match=text):
        getattr(words.buffer, use)(**{"value": 1, "stream": stream, **arguments})
    assert not words.long.any()


def test_unknown_conditions_are_refused(stream, words):
    with pytest.raises(ValueError, match=r"condition must be one of 'geq', 'eq', 'and', 'nor', not '>='"):
        words.buffer.wait_value(1, ">=", stream=stream)


def test_the_alignment_is_that_of_the_address(stream, words):
    with pytest.raises(ValueError, match="not a multiple of 4 bytes"):
        words.buffer[2:].write_value(1, stream=stream)
    words.buffer[2:].write_value(1, stream=stream, offset=2)
    stream.sync()
    assert words.short[1] == 1


def test_managed_memory_is_refused(device, stream):
    with ManagedResource().allocate(BYTES, stream) as buffer:
        for use in (buffer.write_value, buffer.wait_value):
            with pytest.raises(ValueError, match="managed memory"):
                use(0, stream=stream)


POOLS = {
    "the device's pool": lambda device, stream: device.allocate(BYTES, stream),
    "own pool": lambda device, stream: DeviceMemoryResource(device, {"max_size": 2**22}).allocate(BYTES, stream),
    "pool of the host": lambda device, stream: PinnedMemoryResource().allocate(BYTES, stream),
    "tracked pool": lambda device, stream: TrackingMemoryResource(device.memory_resource).allocate(BYTES, stream),
}


@pytest.mark.parametrize("pool", POOLS)
def test_memory_of_a_pool_is_refused(device, stream, pool):
    with POOLS[pool](device, stream) as buffer:
        for use in (buffer.write_value, buffer.wait_value, buffer[8:].write_value):
            with pytest.raises(ValueError, match=r"cannot use memory of a pool.*LegacyPinnedMemoryResource"):
                use(0, stream=stream)
        with pytest.raises(ValueError, match="batch_mem_op cannot use memory of a pool"):
            batch_mem_op(stream, [WriteValue(buffer, 1)])
        with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_VALUE"):  # an address tells nothing
            batch_mem_op(stream, [WriteValue(buffer.handle, 1)])


def test_ordinary_memory_of_the_host_is_refused(device, stream):
    owner = Owner(DATA)
    with Buffer.from_handle(owner.address, BYTES, owner=owner) as buffer:
        for use in (buffer.write_value, buffer.wait_value):
            with pytest.raises(ValueError, match="memory that a device can use"):
                use(0, stream=stream)


def test_memory_that_may_only_be_read_is_not_written(device, stream):
    if not device.properties.virtual_memory_management_supported:
        pytest.skip("the device has no virtual memory")
    with VirtualMemoryResource(device, {"self_access": "r"}).allocate(BYTES) as buffer:
        with pytest.raises(ValueError, match="read-only"):
            buffer.write_value(1, stream=stream)
        with pytest.raises(ValueError, match="read-only"):
            buffer[8:].write_value(1, stream=stream)
        with pytest.raises(ValueError, match="batch_mem_op: the memory is read-only"):
            batch_mem_op(stream, [WriteValue(buffer, 1)])


def test_closed_buffers_and_streams_are_refused(device, stream):
    closed = device.allocate(BYTES, stream)
    closed.close()
    ended = device.create_stream()
    ended.close()
    with PINNED.allocate(BYTES) as buffer:
        for use in ("write_value", "wait_value"):
            with pytest.raises(RuntimeError, match="Buffer is closed"):
                getattr(closed, use)(0, stream=stream)
            with pytest.raises(RuntimeError, match="Stream is closed"):
                getattr(buffer, use)(0, stream=ended)
        with pytest.raises(RuntimeError, match="Stream is closed"):
            batch_mem_op(ended, [WriteValue(buffer, 1)])
    with pytest.raises(RuntimeError, match="Buffer is closed"):
        batch_mem_op(stream, [WriteValue(closed, 1)])


def test_what_a_device_cannot_do_is_refused(device, stream, words, monkeypatch):
    for name in ("can_use_stream_wait_value_nor", "can_use_64_bit_stream_mem_ops", "can_flush_remote_writes"):
        monkeypatch.setitem(vars(device.properties), name, False)
    for use in (
        lambda: words.buffer.wait_value(0, "nor", stream=stream),
        lambda: words.buffer.wait_value(0, stream=stream, flush=True),
        lambda: words.buffer.wait_value(0, stream=stream, bits=64),
        lambda: words.buffer.write_value(0, stream=stream, bits=64),
        lambda: batch_mem_op(stream, [FlushRemoteWrites()]),
        lambda: batch_mem_op(stream, [WaitValue(words.buffer, 0, "nor")]),
    ):
        with pytest.raises(UnavailableError, match="the device"):
            use()


def test_remote_writes_are_flushed_where_the_device_can(device, stream, words):
    if device.properties.can_flush_remote_writes:
        words.buffer.wait_value(0, stream=stream, flush=True)
        batch_mem_op(stream, [FlushRemoteWrites(), WaitValue(words.buffer, 0, flush=True)])
        stream.sync()
    else:
        with pytest.raises(UnavailableError, match="can_flush_remote_writes"):
            words.buffer.wait_value(0, stream=stream, flush=True)


def test_a_batch_is_done_in_its_order(device, stream, words):
    with SynchronousMemoryResource(device).allocate(BYTES) as own:
        operations = [
            WriteValue(words.buffer, 5),
            WaitValue(words.buffer, 5, "eq"),
            WriteValue(words.buffer, LONG, offset=8, bits=64),
            MemoryBarrier(),
            WaitValue(words.buffer.handle + 8, LONG, bits=64),
            WriteValue(own, 1, offset=4),
            MemoryBarrier("device"),
            WriteValue(words.buffer, 6),
            WriteValue(words.buffer.handle, 3, offset=16),
        ]
        assert batch_mem_op(stream, operations) is None
        assert content(own, stream)[4:8] == b"\1\0\0\0"
    assert words.short[[0, 4]].tolist() == [6, 3]
    assert words.long[1] == LONG


def test_a_batch_waits_in_the_middle(stream, words):
    words.ends_with(1)
    batch_mem_op(
        stream,
        [WriteValue(words.buffer, 1, offset=4), WaitValue(words.buffer, 1), WriteValue(words.buffer, 1, offset=8)],
    )
    event = stream.record()
    assert not reached(event)
    assert words.short[:3].tolist() == [0, 1, 0]
    words.short[0] = 1
    stream.sync()
    assert words.short[2] == 1


def test_the_largest_batch_is_taken(stream, words):
    batch_mem_op(stream, [WriteValue(words.buffer, number) for number in range(255)])
    stream.sync()
    assert words.short[0] == 254
    with pytest.raises(ValueError, match="at most 255 operations, not 256"):
        batch_mem_op(stream, [WriteValue(words.buffer, 1)] * 256)


def test_a_batch_of_nothing_does_nothing(stream):
    batch_mem_op(stream, [])
    batch_mem_op(stream, ())


@pytest.mark.parametrize(
    ("operation", "error", "text"),
    [
        (lambda b: WriteValue(b, 2**32), OverflowError, "fit in 32 bits"),
        (lambda b: WriteValue(b, 1, offset=BYTES), ValueError, "not in a buffer"),
        (lambda b: WriteValue(b, 1, bits=8), ValueError, "bits must be"),
        (lambda b: WriteValue(b.handle + 2, 1), ValueError, "not a multiple of 4"),
        (lambda b: WriteValue(2**64 - 2, 1), OverflowError, "64-bit addresses"),
        (lambda b: WriteValue("memory", 1), TypeError, "Buffer or an address, not str"),
        (lambda b: WriteValue(True, 1), TypeError, "Buffer or an address, not bool"),
        (lambda b: WriteValue(b.handle, 1, owner=b), ValueError, "owner is for graphs"),
        (lambda b: WaitValue(b, 1, "ne"), ValueError, "condition must be"),
        (lambda b: MemoryBarrier("grid"), ValueError, "scope must be one of 'system', 'device'"),
        (lambda b: "write", TypeError, "must be a WriteValue, WaitValue, MemoryBarrier or FlushRemoteWrites, not str"),
    ],
)
def test_a_batch_with_a_wrong_operation_is_refused_as_a_whole(stream, words, operation, error, text):
    with pytest.raises(error, match=text) as caught:
        batch_mem_op(stream, [WriteValue(words.buffer, 1), operation(words.buffer)])
    assert "operations[1]" in " ".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    stream.sync()
    assert words.short[0] == 0


def test_operations_must_be_a_sequence(stream, words):
    for wrong in (WriteValue(words.buffer, 1), "operations", 5):
        with pytest.raises(TypeError, match="must be a sequence of operations"):
            batch_mem_op(stream, wrong)


def test_addresses_of_nothing_fail_in_the_driver(stream):
    with pytest.raises(CUDAError, match="cuStreamBatchMemOp"):
        batch_mem_op(stream, [WriteValue(64, 1)])


def test_operations_are_values_that_can_be_compared(words):
    assert WriteValue(words.buffer, 1) == WriteValue(words.buffer, 1, offset=0)
    assert WaitValue(64, 1, "geq") == WaitValue(64, 1)
    assert WaitValue(64, 1) != WaitValue(64, 1, flush=True)
    assert len({MemoryBarrier(), MemoryBarrier("system"), FlushRemoteWrites()}) == 2


@pytest.mark.simulator_only("only there driver calls are traced")
def test_each_operation_and_each_batch_is_one_call_of_the_driver(stream, words):
    words.buffer.write_value(0, stream=stream, bits=64)  # asks the device, once, what it can do
    with simulator.trace() as trace:
        words.buffer.write_value(1, stream=stream)
        words.buffer.wait_value(1, stream=stream)
        batch_mem_op(stream, [WriteValue(words.buffer, 2), WaitValue(words.buffer, 2)])
    assert trace.names == ["cuStreamWriteValue32_v2", "cuStreamWaitValue32_v2", "cuStreamBatchMemOp_v2"]


def test_integers_of_numpy_are_values_and_offsets(stream, words):
    words.buffer.write_value(numpy.uint32(7), stream=stream, offset=numpy.int64(4))
    stream.sync()
    assert words.short[1] == 7
