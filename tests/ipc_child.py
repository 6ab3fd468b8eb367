# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Another process for the tests of sharing: it calls what it is told to, and sends back what came of it.

What it calls are functions of this module, because a spawned process can import only modules.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

from helpers import Gate

from cuda_core_cffi import CUDAError, Device, Event
from cuda_core_cffi._event import IPCEventDescriptor

LIMIT = 120  # seconds, for anything that could hang
SEED = 20260101
SPAWN = multiprocessing.get_context("spawn")

kept: dict[str, Any] = {}  # what a function leaves for a later one
gates: list[Gate] = []


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
        pipe.send(answer)
        function = arguments = answer = None
        gc.collect()


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
    for payload in mutations(descriptor._payload, 200):
        try:
            Event.from_ipc_descriptor(IPCEventDescriptor._init(payload, False, 0)).close()
            imported += 1
        except CUDAError:
            refused += 1
    return imported, refused
