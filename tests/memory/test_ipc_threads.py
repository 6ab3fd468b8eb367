# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Sharing between processes from any thread: ``multiprocessing.Queue.put`` pickles in one that has no context."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from multiprocessing.reduction import ForkingPickler
from typing import Any

import ipc_child
import pytest
from helpers import in_thread
from ipc_child import LIMIT, SPAWN, Child, make_pool

from cuda_core_cffi import Device, Event, Stream, ffi, lib

SIZE = 4096


class Things:
    """One of each kind that can be sent to other processes."""

    def __init__(self, device: Device, stream: Stream) -> None:
        self.pools = {kind: make_pool(kind) for kind in ("device", "pinned")}
        self.buffers = {kind: pool.allocate(SIZE, stream) for kind, pool in self.pools.items()}
        self.event = device.create_event({"ipc_enabled": True})
        stream.sync()

    def close(self) -> None:
        for item in (*self.buffers.values(), *self.pools.values(), self.event):
            item.close()

    def told(self, kind: str) -> tuple[object, ...]:
        """Return what the other process should tell of each."""
        kind, _, where = kind.partition(" of ")
        match kind:
            case "event" | "event descriptor":
                return "event", True, True
            case "buffer":
                return "buffer", True, SIZE, self.pools[where].uuid
            case "buffer descriptor":
                return "buffer descriptor", SIZE
            case "allocation handle":
                return "allocation handle", True, self.pools[where].uuid
        return "pool", True, self.pools[where].uuid


KINDS: dict[str, Callable[[Things], Any]] = {
    "event": lambda things: things.event,
    "event descriptor": lambda things: things.event.ipc_descriptor,
    "buffer of device": lambda things: things.buffers["device"],
    "buffer of pinned": lambda things: things.buffers["pinned"],
    "buffer descriptor of device": lambda things: things.buffers["device"].ipc_descriptor,
    "buffer descriptor of pinned": lambda things: things.buffers["pinned"].ipc_descriptor,
    "pool of device": lambda things: things.pools["device"],
    "pool of pinned": lambda things: things.pools["pinned"],
    "allocation handle of device": lambda things: things.pools["device"].allocation_handle,
    "allocation handle of pinned": lambda things: things.pools["pinned"].allocation_handle,
}


@pytest.fixture
def things(device: Device, stream: Stream) -> Iterator[Things]:
    with contextlib.closing(Things(device, stream)) as things:
        yield things


@contextlib.contextmanager
def served(function: Callable[..., None], *queues: Any) -> Iterator[None]:
    """Run a function with queues in another process, and end it with a None in the first queue."""
    process = SPAWN.Process(target=function, args=queues)
    process.start()
    try:
        yield
    except BaseException:
        process.kill()
        raise
    else:
        queues[0].put(None)
    finally:
        process.join(LIMIT)
    assert process.exitcode == 0


def close_queue(queue: Any) -> None:
    queue.close()
    queue.join_thread()


def no_context() -> None:
    """Check that this thread has no current context."""
    current = ffi.new("CUcontext *")
    assert lib.cuCtxGetCurrent(current) == 0
    assert current[0] == ffi.NULL


def test_everything_passes_through_a_queue(things: Things) -> None:
    questions, answers = SPAWN.Queue(), SPAWN.Queue()
    with served(ipc_child.tell_through_queues, questions, answers):
        for kind, make in KINDS.items():
            questions.put(make(things))
            assert answers.get(timeout=LIMIT) == things.told(kind), kind
    close_queue(questions)
    close_queue(answers)


@pytest.mark.parametrize("kind", KINDS)
def test_everything_is_pickled_and_described_in_a_thread_without_a_context(things: Things, kind: str) -> None:
    pickled = []

    def work() -> None:
        no_context()
        pickled.append(ForkingPickler.dumps(KINDS[kind](things)))
        no_context()

    in_thread(work)
    assert len(pickled) == 1


def test_what_was_imported_passes_on_although_it_is_closed_at_once(things: Things) -> None:
    first, second, answers = SPAWN.Queue(), SPAWN.Queue(), SPAWN.Queue()
    with served(ipc_child.pass_on, first, second), served(ipc_child.tell_through_queues, second, answers):
        for kind in ("event", "buffer of device", "buffer of pinned"):
            first.put(KINDS[kind](things))
            assert answers.get(timeout=LIMIT) == things.told(kind), kind
    for queue in (first, second, answers):
        close_queue(queue)


def test_an_imported_object_that_is_closed_still_names_the_memory_of_the_other_process(device: Device) -> None:
    with Child() as child:
        pool = child(ipc_child.create_pool)
        buffer, event = child(ipc_child.create_buffer, 1), child(ipc_child.create_and_record_event)
        buffer.close()
        event.close()
        assert buffer.ipc_descriptor.size == SIZE
        assert Event.from_ipc_descriptor(event.ipc_descriptor) is not None
        pool.close()
        child(ipc_child.forget)


def test_an_own_object_that_is_closed_names_nothing(things: Things) -> None:
    descriptor = things.buffers["device"].ipc_descriptor
    assert descriptor.size == SIZE
    for item in (things.buffers["device"], things.event):
        item.close()
        with pytest.raises(RuntimeError, match=r"this (Buffer|Event) is closed"):
            item.get_ipc_descriptor()
