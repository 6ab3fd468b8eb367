# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Another process for the tests of sharing: it calls what it is told to, and sends back what came of it.

What it calls are functions of this module, because a spawned process can import only modules.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import random
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from buffers import content
from helpers import Gate, collect

from cuda_core_cffi import (
    Buffer,
    CUDAWarning,
    Device,
    DeviceMemoryResource,
    Event,
    PinnedMemoryResource,
    live_objects,
    simulator,
)
from cuda_core_cffi._core.descriptors import seal
from cuda_core_cffi._memory.ipc import IPCAllocationHandle, IPCBufferDescriptor
from cuda_core_cffi._streams.event import IPCEventDescriptor

LIMIT = 120  # seconds, for anything that could hang
SEED = 20260101
SPAWN = multiprocessing.get_context("spawn")

kept: dict[str, Any] = {}  # what a function leaves for a later one
gates: list[Gate] = []
complaints: list[str] = []  # what cleanup could not do


class ChildError(Exception):
    """The function raised in the child: the name of the exception, and its text."""


class Child:
    """A spawned process: ``child(function, *arguments)`` calls a function of this module there."""

    def __init__(self) -> None:
        self._pipe, theirs = SPAWN.Pipe()
        self.process = SPAWN.Process(target=serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def __call__(self, function: Callable[..., Any], *arguments: Any) -> Any:
        self._pipe.send((function, arguments))
        assert self._pipe.poll(LIMIT), f"{function.__name__} hangs"
        worked, value = self._pipe.recv()
        if worked:
            return value
        raise ChildError(value)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def kill(self) -> None:
        """End the process as SIGKILL does."""
        self.process.kill()
        self.process.join(LIMIT)

    def end(self) -> None:
        """Let the process end, and wait for that."""
        self._pipe.close()
        self.process.join(LIMIT)
        assert self.process.exitcode is not None, "the child does not end"
        self.process.close()


def serve(pipe: Connection) -> None:
    """Be the child."""
    warnings.simplefilter("always", CUDAWarning)
    warnings.showwarning = lambda message, *_: complaints.append(str(message))
    while True:
        try:
            function, arguments = pipe.recv()
        except EOFError:
            return
        except Exception as error:  # what came could not be unpickled
            pipe.send((False, f"{type(error).__name__}: {error}"))
            continue
        try:
            answer = (True, function(*arguments))
        except Exception as error:
            answer = (False, f"{type(error).__name__}: {error}")
        function = arguments = None
        collect()
        if complaints:
            answer = (False, "; ".join(complaints))
            complaints.clear()
        pipe.send(answer)
        answer = None
        collect()


def mutations(payload: bytes, count: int) -> Iterator[bytes]:
    """Give payloads that are nearly right, and some that are not at all."""
    source = random.Random(SEED)
    yield bytes(len(payload))
    yield bytes([255]) * len(payload)
    for _ in range(count):
        changed = bytearray(payload)
        for _ in range(source.randint(1, 4)):
            changed[source.randrange(len(payload))] ^= source.randint(1, 255)
        yield bytes(changed)


def descriptors() -> list[str]:
    """Tell what this process has open."""
    links = []
    for number in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:  # the one that lists the folder
            continue
    return sorted(links)


# What the tests of events let a child do.


def describe_event(event: Event) -> tuple[object, ...]:
    """Tell what an event is."""
    with event:
        return (
            event.is_ipc_enabled,
            event.is_timing_enabled,
            event.is_blocking_sync,
            event.device.device_id,
        )


def wait_for_event(event: Event | IPCEventDescriptor) -> tuple[bool, bool]:
    """Let a stream wait for an event; tell whether the event and what follows in the stream are done."""
    if isinstance(event, IPCEventDescriptor):
        event = Event.from_ipc_descriptor(event)
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    stream.wait(event)
    after = stream.record()
    kept.update(event=event, stream=stream, after=after)
    return event.is_done, after.is_done


def finish_waiting() -> tuple[bool, bool]:
    """Wait for what wait_for_event submitted, and tell as it does."""
    kept["stream"].sync()
    answer = kept["event"].is_done, kept["after"].is_done
    forget()
    return answer


def forget() -> None:
    """Close what a function kept."""
    for item in kept.values():
        item.close()
    kept.clear()


def record_behind_a_gate(event: Event) -> None:
    """Record an event in a stream that is held up."""
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    gate = Gate(stream)
    stream.record(event)
    kept.update(event=event, stream=stream)
    gates.append(gate)


def open_the_gate() -> None:
    """Let that stream go on."""
    with gates.pop():
        pass
    forget()


def subtract_events(event: Event) -> str:
    """Return why there is no time between two events."""
    device = Device(0)
    device.set_current()
    with device.create_stream() as stream, event:
        stream.record(event)
        event.sync()
        try:
            return f"{event - event} ms"
        except RuntimeError as error:
            return str(error)


def keep_event_for(event: Event) -> None:
    """Keep an event."""
    kept["event"] = event


def descriptor_of_kept_event() -> IPCEventDescriptor:
    """Describe an imported event to a third process."""
    return kept["event"].ipc_descriptor


def create_and_record_event() -> Event:
    """Return an event that is recorded and done; it stays here as well."""
    device = Device(0)
    device.set_current()
    kept["event"] = event = device.create_event({"ipc_enabled": True})
    device.default_stream.record(event)
    event.sync()
    return event


def create_and_describe_event() -> IPCEventDescriptor:
    """Describe an event that lasts as long as this process."""
    return create_and_record_event().ipc_descriptor


def import_damaged_events(descriptor: IPCEventDescriptor) -> tuple[int, int]:
    """Count damaged descriptors of which the driver makes an event all the same, and those that it refuses."""
    imported = refused = 0
    for payload in mutations(seal(descriptor._payload), 200):
        try:
            Event.from_ipc_descriptor(IPCEventDescriptor._create(payload, False, 0)).close()
            imported += 1
        except ValueError:
            refused += 1
    return imported, refused


# What the tests of memory let a child do.


def make_pool(kind: str) -> Any:
    """Return a new pool for several processes."""
    options = {"ipc_enabled": True}
    return PinnedMemoryResource(options) if kind == "pinned" else DeviceMemoryResource(0, options)


def use_device() -> Device:
    """Return the device, current."""
    device = Device(0)
    device.set_current()
    return device


def read(buffer: Buffer) -> bytes:
    """Return what is in a buffer."""
    with use_device().create_stream() as stream:
        return content(buffer, stream)


def read_and_fill(buffer: Buffer, value: int) -> bytes:
    """Return what is in a buffer, and fill it; the work is done and the buffer closed when this returns."""
    with use_device().create_stream() as stream, buffer:
        before = content(buffer, stream)
        buffer.fill(value, stream=stream)
        buffer.close(stream)
        stream.sync()
        return before


def describe_buffer(buffer: Buffer) -> dict[str, Any]:
    """Tell what a buffer and its pool are."""
    with buffer:
        pool: Any = buffer.memory_resource
        return {
            "kind": type(pool).__name__,
            "uuid": pool.uuid,
            "size": buffer.size,
            "shared": pool.is_ipc_enabled,
            "mapped": (buffer.is_mapped, pool.is_mapped),
            "owned": pool.is_handle_owned,
            "device": buffer.device_id,
            "access": (buffer.is_device_accessible, buffer.is_host_accessible),
        }


def allocate_from(pool: Any) -> None:
    """Try what a mapped pool refuses."""
    with use_device().create_stream() as stream:
        pool.allocate(64, stream).close()


def keep(name: str, item: Any) -> None:
    """Keep something."""
    kept[name] = item


def is_kept(name: str, item: Any) -> bool:
    """Tell whether this is what was kept."""
    return kept[name] is item


def read_pickled(data: bytes) -> bytes:
    """Return what is in a buffer that was pickled without multiprocessing."""
    with pickle.loads(data) as buffer:
        return read(buffer)


def map_by_hand(kind: type, handle: IPCAllocationHandle, descriptor: IPCBufferDescriptor) -> dict[str, Any]:
    """Map a pool from its handle and a buffer from its descriptor."""
    pool = map_pool(kind, handle)
    handle.close()  # the pool has its own
    with use_device().create_stream() as stream:
        with Buffer.from_ipc_descriptor(pool, descriptor, stream=stream) as buffer:
            answer = {"content": content(buffer, stream), "uuid": pool.allocation_handle.uuid}
        stream.sync()
    pool.close()
    return answer


def map_pool(kind: type, handle: Any) -> Any:
    """Map a pool of a kind."""
    return kind.from_allocation_handle(*([0] if kind is DeviceMemoryResource else []), handle)


def map_by_number(
    kind: type, handle: IPCAllocationHandle, descriptor: IPCBufferDescriptor, key: UUID
) -> dict[str, Any]:
    """Map a pool from the number of its descriptor, and tell what became of it."""
    pool = map_pool(kind, int(handle))
    answer: dict[str, Any] = {"uuid before": pool.uuid}
    try:
        pickle.dumps(pool)
    except RuntimeError as error:
        answer["unpicklable"] = "call register(uuid)" in str(error)
    answer["registered"] = pool.register(key) is pool and kind.from_registry(key) is pool
    with Buffer.from_ipc_descriptor(pool, descriptor) as buffer:
        answer["content"] = read(buffer)
    pool.close()
    answer["open"] = os.fstat(int(handle)) is not None
    handle.close()
    return answer


def check_arguments(pool: Any, buffer: Buffer, handle: IPCAllocationHandle, event: Event) -> None:
    """Be a process that gets everything as arguments; exit with an error if something is wrong."""
    assert buffer.memory_resource is pool
    assert handle.uuid == pool.uuid
    with use_device().create_stream() as stream:
        assert set(content(buffer, stream)) == {6}
        buffer.fill(7, stream=stream)
        stream.record(event)
        buffer.close(stream)
        stream.sync()


def answer_queue(question: Any, answer: Any) -> None:
    """Be a process that reads buffers from a queue."""
    while True:
        buffer = question.get(timeout=LIMIT)
        if buffer is None:
            return
        with buffer:
            answer.put(read(buffer))


def tell_through_queues(questions: Any, answers: Any) -> None:
    """Be a process that tells what comes through a queue; it makes no context current."""
    while (item := questions.get(timeout=LIMIT)) is not None:
        try:
            answers.put(tell(item))
        except Exception as error:
            answers.put(error)


def tell(item: Any) -> tuple[object, ...]:
    """Tell what something is, in a thread that may have no current context."""
    if isinstance(item, IPCEventDescriptor):
        item = Event.from_ipc_descriptor(item)
    match item:
        case Event():
            with item:
                return "event", item.is_ipc_enabled, item.is_done
        case Buffer():
            with item:
                return "buffer", item.is_mapped, item.size, item.memory_resource.uuid  # type: ignore[union-attr]
        case IPCBufferDescriptor():
            return "buffer descriptor", item.size
        case IPCAllocationHandle():
            with contextlib.closing(item):
                return "allocation handle", os.fstat(int(item)) is not None, item.uuid
    with contextlib.closing(item):
        return "pool", item.is_mapped, item.uuid


def pass_on(questions: Any, answers: Any) -> None:
    """Be a process that sends what it gets to another one, and closes it at once."""
    while (item := questions.get(timeout=LIMIT)) is not None:
        answers.put(item)
        item.close()  # before the queue's thread has pickled it, as a rule
    answers.put(None)


def create_pool() -> Any:
    """Return a pool of this process."""
    use_device()
    kept["pool"] = make_pool("device")
    return kept["pool"]


def create_buffer(value: int) -> Buffer:
    """Return a buffer of that pool."""
    with use_device().create_stream() as stream:
        kept["buffer"] = buffer = kept["pool"].allocate(4096, stream)
        buffer.fill(value, stream=stream)
        stream.sync()
        buffer.set_deallocation_stream(Device(0).default_stream)
        return buffer


def import_twice(pool: Any, descriptor: IPCBufferDescriptor) -> dict[str, Any]:
    """Import the same memory twice, close one buffer, then the other, then import it again."""
    with use_device().create_stream() as stream:
        first, second = (Buffer.from_ipc_descriptor(pool, descriptor, stream=stream) for _ in range(2))
        answer: dict[str, Any] = {"equal": first == second}
        first.close()
        stream.sync()
        answer["after one close"] = content(second, stream)
        second.close()
        stream.sync()
        with Buffer.from_ipc_descriptor(pool, descriptor, stream=stream) as third:
            answer["imported anew"] = content(third, stream)
        stream.sync()
    pool.close()
    return answer


def close_in_two_streams(pool: Any, descriptor: IPCBufferDescriptor) -> list[Any]:
    """Close one of two buffers behind work that is held up, then the other; return what the simulator objects to."""
    device = use_device()
    with device.create_stream() as held, device.create_stream() as free:
        first = Buffer.from_ipc_descriptor(pool, descriptor, stream=held)
        second = Buffer.from_ipc_descriptor(pool, descriptor, stream=free)
        with Gate(held) as gate:
            first.fill(13, stream=held)
            first.close()
            second.close()
            ordered = free.record().is_done is False
            gate.open()
        free.sync()
    pool.close()
    if not ordered:
        return ["the free did not wait"]
    return simulator.reports() if os.environ["CUDA_CORE_CFFI_DRIVER"] == "simulator" else []


def close_while_busy(pool: Any, descriptor: IPCBufferDescriptor) -> bool:
    """Close a buffer and its pool behind work that is held up; return whether that did not wait for the work."""
    with use_device().create_stream() as held:
        buffer = Buffer.from_ipc_descriptor(pool, descriptor, stream=held)
        with Gate(held):
            buffer.close()
            pool.close()
            return held.record().is_done is False


def import_in_threads(pool: Any, offered: list[IPCBufferDescriptor]) -> int:
    """Import and close the same buffers in many threads; return how many of them failed."""
    device = use_device()

    def work(number: int) -> bool:
        device.set_current()
        with device.create_stream() as stream:
            for i in range(25):
                which = (number + i) % len(offered)
                with Buffer.from_ipc_descriptor(pool, offered[which], stream=stream) as buffer:
                    if set(content(buffer, stream)) != {20 + which}:
                        return False
            stream.sync()
        return True

    with ThreadPoolExecutor(8) as threads:
        failures = list(threads.map(work, range(8))).count(False)
    pool.close()
    return failures


def close_pool_first(pool: Any, descriptor: IPCBufferDescriptor) -> bytes:
    """Return what is in a buffer whose pool is closed."""
    with Buffer.from_ipc_descriptor(pool, descriptor) as buffer:
        pool.close()
        return read(buffer)


def import_from_closed(pool: Any, descriptor: IPCBufferDescriptor) -> None:
    """Try to import from a pool that is closed."""
    pool.close()
    Buffer.from_ipc_descriptor(pool, descriptor).close()


def import_claiming(pool: Any, descriptor: IPCBufferDescriptor, sizes: list[int]) -> list[int]:
    """Import a buffer that is claimed to have other sizes; return the sizes of what came of it."""
    imported = []
    for size in sizes:
        claim = IPCBufferDescriptor._create(seal(descriptor._payload), size, descriptor._pool)
        with Buffer.from_ipc_descriptor(pool, claim) as buffer:
            imported.append(buffer.size)
    pool.close()
    return imported


def import_damaged_buffers(pool: Any, descriptor: IPCBufferDescriptor) -> tuple[int, int]:
    """Count damaged descriptors of which the driver makes memory all the same, and those that it refuses."""
    imported = refused = 0
    for payload in mutations(seal(descriptor._payload), 200):
        try:
            Buffer.from_ipc_descriptor(pool, IPCBufferDescriptor._create(payload, descriptor.size)).close()
            imported += 1
        except ValueError:
            refused += 1
    pool.close()
    return imported, refused


def count_descriptors() -> int:
    """Count what is open."""
    collect()
    return len(descriptors())


def live_after_collection() -> dict[str, int]:
    """Tell which driver objects are alive."""
    collect()
    return {kind: count for kind, count in live_objects().items() if count}


def map_twice(kind: type, handle: IPCAllocationHandle, descriptor: IPCBufferDescriptor) -> tuple[bytes, bytes]:
    """Map a pool twice; import from the second when the first is closed, and from a third when that is closed too."""
    first, second = map_pool(kind, int(handle)), map_pool(kind, int(handle))
    first.close()
    with Buffer.from_ipc_descriptor(second, descriptor) as buffer:
        before = read(buffer)
    Device(0).default_stream.sync()
    second.close()
    third = map_pool(kind, int(handle))
    with Buffer.from_ipc_descriptor(third, descriptor) as buffer:
        after = read(buffer)
    third.close()
    handle.close()
    return before, after
