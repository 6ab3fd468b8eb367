# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Pools and buffers in several processes at once."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from typing import Any

import ipc_child
import pytest
from buffers import content
from ipc_child import SPAWN, Child, ChildError, make_pool

from cuda_core_cffi import Buffer, Device, DeviceMemoryResource, Stream

SIZE = 4096


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    """Return another process, one for all these tests: starting one takes long."""
    with Child() as child:
        yield child


@pytest.fixture(params=["device", "pinned"])
def pool(request: pytest.FixtureRequest, device: Device) -> Iterator[Any]:
    """Return a pool for several processes, of each kind."""
    pool = make_pool(request.param)
    yield pool
    pool.close()


@pytest.fixture
def device_pool(device: Device) -> Iterator[DeviceMemoryResource]:
    pool = make_pool("device")
    yield pool
    pool.close()


def filled(pool: Any, value: int, stream: Stream, size: int = SIZE) -> Buffer:
    """Return a buffer full of a value, which is there when this returns."""
    buffer = pool.allocate(size, stream)
    buffer.fill(value, stream=stream)
    stream.sync()
    return buffer


# sending


def test_both_processes_have_the_same_memory(child: Child, pool: Any, stream: Stream) -> None:
    with filled(pool, 1, stream) as buffer:
        assert child(ipc_child.read_and_fill, buffer, 2) == bytes([1]) * SIZE
        assert content(buffer, stream) == bytes([2]) * SIZE


def test_the_other_process_knows_what_it_got(child: Child, pool: Any, stream: Stream) -> None:
    with filled(pool, 1, stream) as buffer:
        told = child(ipc_child.describe_buffer, buffer)
    assert told == {
        "kind": type(pool).__name__,
        "uuid": pool.uuid,
        "size": SIZE,
        "shared": True,
        "mapped": (True, True),
        "owned": True,
        "device": pool.device_id,
        "access": (True, pool.is_host_accessible),
    }


def test_a_mapped_pool_does_not_allocate(child: Child, pool: Any) -> None:
    with pytest.raises(ChildError, match="TypeError: only the process that created a pool allocates"):
        child(ipc_child.allocate_from, pool)


def test_a_mapped_pool_is_mapped_once_and_found_again(child: Child, pool: Any, stream: Stream) -> None:
    child(ipc_child.keep, "pool", pool)
    assert child(ipc_child.is_kept, "pool", pool) is True
    with filled(pool, 3, stream) as buffer:
        # an ordinary pickle is enough now
        assert child(ipc_child.read_pickled, pickle.dumps(buffer)) == bytes([3]) * SIZE
    child(ipc_child.forget)


def test_without_its_pool_a_pickled_buffer_is_an_error(child: Child, pool: Any, stream: Stream) -> None:
    with filled(pool, 3, stream) as buffer, pytest.raises(ChildError, match="RuntimeError: no pool is registered as"):
        child(ipc_child.read_pickled, pickle.dumps(buffer))


def test_a_pool_is_mapped_from_its_handle_and_a_buffer_from_its_descriptor(
    child: Child, pool: Any, stream: Stream
) -> None:
    with filled(pool, 4, stream) as buffer:
        answer = child(ipc_child.map_by_hand, type(pool), pool.allocation_handle, buffer.ipc_descriptor)
    assert answer == {"content": bytes([4]) * SIZE, "uuid": pool.uuid}


def test_an_integer_handle_stays_the_callers(child: Child, pool: Any, stream: Stream) -> None:
    with filled(pool, 5, stream) as buffer:
        answer = child(ipc_child.map_by_number, type(pool), pool.allocation_handle, buffer.ipc_descriptor, pool.uuid)
    assert answer == {
        "content": bytes([5]) * SIZE,
        "uuid before": None,
        "unpicklable": True,
        "registered": True,
        "open": True,
    }


def test_a_child_gets_pools_buffers_and_handles_as_arguments(device: Device, stream: Stream) -> None:
    pool = make_pool("device")
    with filled(pool, 6, stream) as buffer, device.create_event({"ipc_enabled": True}) as event:
        process = SPAWN.Process(target=ipc_child.check_arguments, args=(pool, buffer, pool.allocation_handle, event))
        process.start()
        process.join(ipc_child.LIMIT)
        assert process.exitcode == 0
        assert content(buffer, stream)[:1] == b"\x07"
        assert event.is_done is True
    pool.close()


def test_workers_of_a_pool_fill_buffers_that_come_through_queues(device_pool: Any, stream: Stream) -> None:
    buffers = [filled(device_pool, 0, stream) for _ in range(4)]
    with SPAWN.Pool(2) as workers:
        assert workers.starmap(ipc_child.read_and_fill, [(buffer, 10 + i) for i, buffer in enumerate(buffers)])
        workers.close()
        workers.join()
    assert [content(buffer, stream)[0] for buffer in buffers] == [10, 11, 12, 13]
    for buffer in buffers:
        buffer.close()


def test_buffers_pass_through_a_queue(child: Child, device_pool: Any, stream: Stream) -> None:
    with filled(device_pool, 8, stream) as buffer:
        question, answer = SPAWN.Queue(), SPAWN.Queue()
        process = SPAWN.Process(target=ipc_child.answer_queue, args=(question, answer))
        process.start()
        for _ in range(3):
            question.put(buffer)
            assert answer.get(timeout=ipc_child.LIMIT) == bytes([8]) * SIZE
        question.put(None)
        process.join(ipc_child.LIMIT)
        assert process.exitcode == 0
        for queue in (question, answer):
            queue.close()
            queue.join_thread()


def test_a_third_process_gets_what_the_second_imported(stream: Stream, device: Device) -> None:
    with Child() as first, Child() as second:
        pool = first(ipc_child.create_pool)
        assert pool.is_mapped
        with first(ipc_child.create_buffer, 9) as buffer:
            assert buffer.is_mapped
            assert second(ipc_child.read_and_fill, buffer, 19) == bytes([9]) * SIZE
            assert content(buffer, stream) == bytes([19]) * SIZE
        first(ipc_child.forget)
        pool.close()


# importing more than once


def test_importing_twice_gives_the_same_memory_until_both_are_closed(child: Child, pool: Any, stream: Stream) -> None:
    with filled(pool, 11, stream) as buffer:
        assert child(ipc_child.import_twice, pool, buffer.ipc_descriptor) == {
            "equal": True,
            "after one close": bytes([11]) * SIZE,
            "imported anew": bytes([11]) * SIZE,
        }


def test_the_last_of_two_buffers_waits_for_the_stream_of_the_other(child: Child, pool: Any, stream: Stream) -> None:
    with filled(pool, 12, stream) as buffer:
        assert child(ipc_child.close_in_two_streams, pool, buffer.ipc_descriptor) == []
        assert content(buffer, stream) == bytes([13]) * SIZE


def test_a_pool_may_be_mapped_more_than_once(child: Child, pool: Any, stream: Stream) -> None:
    with filled(pool, 22, stream) as buffer:
        told = child(ipc_child.map_twice, type(pool), pool.allocation_handle, buffer.ipc_descriptor)
    assert told == (bytes([22]) * SIZE, bytes([22]) * SIZE)


def test_many_threads_import_the_same_buffers(child: Child, device_pool: Any, stream: Stream) -> None:
    buffers = [filled(device_pool, 20 + i, stream) for i in range(4)]
    assert child(ipc_child.import_in_threads, device_pool, [buffer.ipc_descriptor for buffer in buffers]) == 0
    for buffer in buffers:
        buffer.close()


# one side goes first


def test_the_exporter_may_exit_first(stream: Stream, device: Device) -> None:
    with Child() as child:
        pool = child(ipc_child.create_pool)
        buffer = child(ipc_child.create_buffer, 14)
    assert content(buffer, stream) == bytes([14]) * SIZE
    buffer.close()
    pool.close()


def test_the_exporter_may_be_killed(stream: Stream, device: Device) -> None:
    child = Child()
    pool = child(ipc_child.create_pool)
    buffer = child(ipc_child.create_buffer, 15)
    child.kill()
    assert content(buffer, stream) == bytes([15]) * SIZE
    buffer.close()
    pool.close()
    child.end()


def test_the_importer_may_be_killed(pool: Any, stream: Stream) -> None:
    with filled(pool, 16, stream) as buffer:
        child = Child()
        child(ipc_child.keep, "buffer", buffer)
        child.kill()
        child.end()
        assert content(buffer, stream) == bytes([16]) * SIZE
    with filled(pool, 17, stream) as buffer:
        assert content(buffer, stream) == bytes([17]) * SIZE


def test_a_mapped_buffer_keeps_the_mapped_pool(child: Child, pool: Any, stream: Stream) -> None:
    with filled(pool, 18, stream) as buffer:
        assert child(ipc_child.close_pool_first, pool, buffer.ipc_descriptor) == bytes([18]) * SIZE


def test_a_closed_mapped_pool_imports_nothing_and_can_be_mapped_again(child: Child, pool: Any, stream: Stream) -> None:
    with filled(pool, 21, stream) as buffer:
        with pytest.raises(ChildError, match=f"RuntimeError: this {type(pool).__name__} is closed"):
            child(ipc_child.import_from_closed, pool, buffer.ipc_descriptor)
        assert child(ipc_child.read_and_fill, buffer, 21) == bytes([21]) * SIZE


# untrusted input


def test_a_descriptor_that_claims_too_much_is_refused(child: Child, pool: Any, stream: Stream) -> None:
    with filled(pool, 1, stream) as buffer:
        assert child(ipc_child.import_claiming, pool, buffer.ipc_descriptor, [SIZE, 1, 0]) == [SIZE, 1, 0]
        for size in (2**40, 2**64 - 1):
            with pytest.raises(ChildError, match=f"ValueError: the descriptor claims {size} bytes"):
                child(ipc_child.import_claiming, pool, buffer.ipc_descriptor, [size])


def test_damaged_payloads_are_errors_and_no_crashes(child: Child, pool: Any, stream: Stream) -> None:
    with filled(pool, 1, stream) as buffer:
        assert child(ipc_child.import_damaged_buffers, pool, buffer.ipc_descriptor) == (0, 202)
        assert child(ipc_child.read_and_fill, buffer, 1) == bytes([1]) * SIZE


def test_a_buffer_of_another_pool_is_refused(child: Child, pool: Any, device_pool: Any, stream: Stream) -> None:
    with filled(device_pool, 1, stream) as buffer, pytest.raises(ChildError, match="memory of the pool"):
        child(ipc_child.import_claiming, pool, buffer.ipc_descriptor, [SIZE])


# nothing is left


def test_nothing_stays_open_in_either_process(child: Child, device: Device, stream: Stream) -> None:
    def once() -> None:
        for kind in ("device", "pinned"):
            pool = make_pool(kind)
            with filled(pool, 1, stream) as buffer:
                child(ipc_child.read_and_fill, buffer, 2)
                child(ipc_child.describe_buffer, buffer)
            pool.close()

    once()  # what multiprocessing opens for good is open now
    before, before_there = len(ipc_child.descriptors()), child(ipc_child.count_descriptors)
    for _ in range(3):
        once()
    assert len(ipc_child.descriptors()) == before
    assert child(ipc_child.count_descriptors) == before_there
    assert child(ipc_child.live_after_collection) == {}


def test_a_pool_closed_before_its_memory_is_free_goes_later(child: Child, pool: Any, stream: Stream) -> None:
    with filled(pool, 1, stream) as buffer:
        child(ipc_child.read_and_fill, buffer, 2)
        before = child(ipc_child.count_descriptors)
        assert child(ipc_child.close_while_busy, pool, buffer.ipc_descriptor)
        child(ipc_child.read_and_fill, buffer, 3)
        assert child(ipc_child.count_descriptors) == before


def test_no_child_is_left(child: Child) -> None:
    running = {os.getpid(), child.process.pid}
    assert {process.pid for process in ipc_child.multiprocessing.active_children()} <= running
