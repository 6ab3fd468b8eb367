# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Many threads at work: on objects of their own, and on objects that they share."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest
from graphs import eventually
from helpers import LIMIT, in_threads

from cuda_core_cffi import (
    Buffer,
    Device,
    DeviceMemoryResource,
    LegacyPinnedMemoryResource,
    ManagedMemoryResource,
    MemoryResource,
    PinnedMemoryResource,
    ffi,
    live_objects,
)
from cuda_core_cffi._launching.arguments import Parameter, object_slot

THREADS = 8
ROUNDS = 200
SIZE = 64
PINNED = LegacyPinnedMemoryResource()


class HostResource(MemoryResource):
    """A resource written in Python, which counts what goes back to it."""

    is_device_accessible = False
    is_host_accessible = True
    device_id = -1

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.live: dict[int, Any] = {}

    def allocate(self, size, stream=None):
        memory = ffi.new("char[]", size)
        address = int(ffi.cast("uintptr_t", memory))
        with self.lock:
            self.live[address] = memory
        return Buffer.from_handle(address, size, mr=self, stream=stream)

    def deallocate(self, ptr, size, stream=None):
        with self.lock:
            del self.live[ptr]


def in_all_threads(work: Callable[[Device, int], None]) -> None:
    """Run work(device, number) in all threads at once, each with device 0 current."""

    def run(number: int) -> None:
        device = Device(0)
        device.set_current()
        work(device, number)

    in_threads(THREADS, run)


def test_threads_allocate_record_and_free_in_streams_of_their_own(device):
    def work(device: Device, number: int) -> None:
        with device.create_stream() as stream, device.create_event() as event:
            for size in range(1, ROUNDS):
                buffer = device.allocate(size, stream)
                buffer.fill(number, stream=stream)
                stream.record(event)
                if size % 2:
                    buffer.close()
            event.sync()
            stream.sync()

    in_all_threads(work)


def test_what_each_thread_writes_stays_its_own(device):
    def work(device: Device, number: int) -> None:
        with device.create_stream() as stream, PINNED.allocate(SIZE) as host:
            for turn in range(ROUNDS):
                value = (number * ROUNDS + turn) % 251
                with device.allocate(SIZE, stream) as one, device.allocate(SIZE, stream) as other:
                    one.fill(value, stream=stream)
                    other.copy_from(one, stream=stream)
                    other.copy_to(host, stream=stream)
                stream.sync()
                assert ffi.buffer(ffi.cast("char *", host.handle), SIZE)[:] == bytes([value]) * SIZE

    in_all_threads(work)


@pytest.mark.parametrize("kind", ["pool", "device pool", "pinned", "pinned pool", "managed pool"])
def test_threads_share_a_resource_and_a_stream(device, stream, kind):
    mr = {
        "pool": lambda: DeviceMemoryResource(device, {}),
        "device pool": lambda: device.memory_resource,
        "pinned": lambda: PINNED,
        "pinned pool": lambda: PinnedMemoryResource({}),
        "managed pool": lambda: ManagedMemoryResource({}),
    }[kind]()
    buffers: list[Buffer] = []

    def work(device: Device, number: int) -> None:
        for _ in range(ROUNDS // 4):
            buffers.append(mr.allocate(SIZE, stream))
            if len(buffers) > THREADS:
                buffers.pop().close()  # most likely another thread's

    in_all_threads(work)
    while buffers:
        buffers.pop().close()
    stream.sync()
    if mr not in (PINNED, device.memory_resource):
        assert mr.attributes.used_mem_current == 0
        mr.close()


def test_threads_that_close_the_same_objects_end_each_once(device):
    before = live_objects()
    streams = [device.create_stream() for _ in range(ROUNDS)]
    events = [device.create_event() for _ in range(ROUNDS)]
    buffers = [device.allocate(SIZE, stream) for stream in streams]
    pinned = [PINNED.allocate(SIZE) for _ in range(ROUNDS)]

    def work(device: Device, number: int) -> None:
        for things in (streams, buffers, events, pinned):
            for thing in things:
                thing.close()

    in_all_threads(work)
    assert live_objects() == before


def test_threads_that_use_what_another_closes_get_an_error_or_a_result(device, stream):
    for _ in range(20):
        buffer, other = device.allocate(SIZE, stream), device.allocate(SIZE, stream)
        stream.sync()

        def work(device: Device, number: int, buffer=buffer, other=other) -> None:
            if number == 0:
                buffer.close()
                return
            for use in (lambda: buffer.__dlpack__(stream=-1), lambda: hash(buffer), lambda: repr(buffer)):
                try:
                    use()
                except (RuntimeError, BufferError) as error:
                    assert "closed" in str(error)  # noqa: PT017

        in_all_threads(work)
        other.close()


def test_threads_set_the_deallocation_stream_of_one_buffer(device):
    streams = [device.create_stream() for _ in range(THREADS)]
    buffer = device.allocate(SIZE, streams[0])

    def work(device: Device, number: int) -> None:
        for _ in range(ROUNDS):
            buffer.set_deallocation_stream(streams[number])

    in_all_threads(work)
    for stream in streams:
        stream.close()
    assert live_objects()["stream"] >= 1
    buffer.close()


def test_threads_ask_for_a_stream_that_others_replace_and_close(device, stream):
    with device.allocate(SIZE, stream) as buffer:

        def work(device: Device, number: int) -> None:
            for _ in range(ROUNDS):
                if number % 2:
                    with device.create_stream() as own:
                        buffer.set_deallocation_stream(own)
                else:
                    buffer.__dlpack__(stream=stream.handle)
                    assert buffer.__cuda_array_interface__["stream"]

        in_all_threads(work)


def test_a_stream_is_given_to_a_buffer_or_not_while_another_thread_closes_it(device):
    before = live_objects()
    streams = [device.create_stream() for _ in range(THREADS)]
    buffers = [device.allocate(SIZE, streams[0]) for _ in range(ROUNDS)]
    together = threading.Barrier(THREADS, timeout=LIMIT)

    def work(device: Device, number: int) -> None:
        for buffer in buffers:
            together.wait()
            try:
                if number % 2:
                    buffer.close()
                else:
                    buffer.set_deallocation_stream(streams[number])
            except RuntimeError as error:
                assert "closed" in str(error)  # noqa: PT017

    in_all_threads(work)
    for stream in streams:
        stream.close()
    assert live_objects() == before


def test_a_buffer_that_another_thread_closes_while_it_is_packed_is_refused():
    class Closing:
        is_closed = False

        @property
        def _driver_handle(self):
            self.is_closed = True
            return 4096

    slot = object_slot(None, Parameter(0, None, None))
    with pytest.raises(RuntimeError, match="the Closing is closed"):
        slot.pack(Closing())


def test_threads_export_and_drop_tensors(device, stream):
    mr = HostResource()
    with device.allocate(SIZE, stream) as shared, mr.allocate(SIZE) as host:

        def work(device: Device, number: int) -> None:
            for turn in range(ROUNDS):
                shared.__dlpack__(stream=-1, max_version=(1, 0) if turn % 2 else None)
                host.__dlpack__()
                host.__buffer__(0)
                with mr.allocate(SIZE) as own:
                    capsule = own.__dlpack__()
                del capsule

        in_all_threads(work)
        assert len(mr.live) >= 1
    assert eventually(lambda: mr.live == {})


def test_objects_go_in_threads_without_a_context(device, stream):
    things = [
        [device.allocate(SIZE, stream), device.allocate(SIZE), PINNED.allocate(SIZE, stream), device.create_event()]
        for _ in range(THREADS)
    ]

    def release(number: int) -> None:
        things.pop()
        gc.collect()

    in_threads(THREADS, release)
