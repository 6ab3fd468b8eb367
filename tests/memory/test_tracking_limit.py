# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The limit of what goes through a tracking resource: what it allows, what it refuses, what is tried first."""

from __future__ import annotations

import gc
import threading
import time

import pytest
from buffers import SIZE, HostResource
from helpers import collect, in_threads
from tracking import ROUNDS, THREADS, UPSTREAMS, RecordingResource, host_tracked, make_upstream, used

from cuda_core_cffi import CUDAError, Device, DeviceMemoryResource, simulator
from cuda_core_cffi.utils import TrackingMemoryResource

upstream = pytest.fixture(params=UPSTREAMS)(make_upstream)
host = pytest.fixture(host_tracked)


def test_the_limit_itself_may_be_used(upstream):
    mr = TrackingMemoryResource(upstream, limit=SIZE)
    assert mr.limit == SIZE
    with mr.allocate(SIZE):
        assert used(mr) == (SIZE, 1)


def test_beyond_the_limit_is_a_memory_error_and_the_resource_below_is_not_asked():
    mr = TrackingMemoryResource(RecordingResource(), limit=100)
    with mr.allocate(60):
        mr.upstream.calls.clear()
        with pytest.raises(MemoryError, match="41 bytes more would go beyond the limit of 100: 60 are in use"):
            mr.allocate(41)
        assert mr.upstream.calls == []
        mr.allocate(40).close()
    assert mr.statistics == (0, 0, 100, 2, 100, 2)


@pytest.mark.simulator_only("counts driver calls")
def test_beyond_the_limit_no_driver_call_is_made(device, stream):
    mr = TrackingMemoryResource(DeviceMemoryResource(device), limit=SIZE)
    with simulator.trace() as trace, pytest.raises(MemoryError):
        mr.allocate(SIZE + 1, stream)
    assert trace.names == []


def test_a_limit_of_nothing_allows_empty_buffers_only(host):
    mr = TrackingMemoryResource(host, limit=0)
    mr.allocate(0).close()
    with pytest.raises(MemoryError):
        mr.allocate(1)


@pytest.mark.parametrize("size", [SIZE + 1, 2**64 - 1])
def test_a_size_beyond_the_limit_at_once_is_refused(host, size):
    mr = TrackingMemoryResource(host, limit=SIZE)
    with mr.allocate(1), pytest.raises(MemoryError):
        mr.allocate(size)


def test_what_was_closed_may_be_used_again(upstream):
    mr = TrackingMemoryResource(upstream, limit=SIZE)
    for _ in range(5):
        mr.allocate(SIZE).close()


def test_at_the_limit_garbage_is_collected_first(upstream):
    mr = TrackingMemoryResource(upstream, limit=SIZE)
    for _ in range(3):
        cycle = [mr.allocate(SIZE)]
        cycle.append(cycle)
        del cycle
    collect()


def test_more_than_the_limit_is_refused_without_a_collection(upstream, monkeypatch):
    mr = TrackingMemoryResource(upstream, limit=SIZE)
    collections: list[None] = []
    monkeypatch.setattr(gc, "collect", lambda *generation: collections.append(None))
    with pytest.raises(MemoryError, match=f"{SIZE + 1} bytes more would go beyond the limit of {SIZE}: 0 are in use"):
        mr.allocate(SIZE + 1)
    assert collections == []


def test_at_the_limit_tensors_that_are_gone_are_let_go_first(host):
    mr = TrackingMemoryResource(host, limit=SIZE)
    capsule = mr.allocate(SIZE).__dlpack__()
    del capsule
    mr.allocate(SIZE).close()


def test_at_the_limit_what_the_release_thread_is_freeing_is_waited_for():
    started = threading.Event()

    class Slow(HostResource):
        def deallocate(self, ptr, size, stream=None):
            started.set()
            time.sleep(0.1)
            super().deallocate(ptr, size, stream)

    mr = TrackingMemoryResource(Slow(), limit=SIZE)
    tensor = mr.allocate(SIZE).__dlpack__()
    del tensor
    collect()
    assert started.wait(10), "the release thread did not free it"
    mr.allocate(SIZE).close()


def test_an_allocation_that_fails_below_takes_nothing_of_the_limit(device):
    class Broken(HostResource):
        def allocate(self, size, stream=None):
            raise OSError("no memory today")

    mr = TrackingMemoryResource(Broken(), limit=SIZE)
    for _ in range(2):
        with pytest.raises(OSError, match="today"):
            mr.allocate(SIZE)
    assert mr.statistics == (0, 0, 0, 0, 0, 0)
    closed = DeviceMemoryResource(device, {})
    closed.close()
    mr = TrackingMemoryResource(closed, limit=SIZE)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="closed"):
            mr.allocate(SIZE)


@pytest.mark.simulator_only("only the simulated driver fails on request")
def test_a_driver_that_fails_leaves_the_limit_as_it_was(device, stream):
    mr = TrackingMemoryResource(DeviceMemoryResource(device), limit=SIZE)
    with simulator.fail("cuMemAllocFromPoolAsync", "CUDA_ERROR_UNKNOWN"), pytest.raises(CUDAError):
        mr.allocate(SIZE, stream)
    mr.allocate(SIZE, stream).close()


def test_what_is_being_allocated_counts_towards_the_limit():
    class Slow(HostResource):
        def allocate(self, size, stream=None):
            with pytest.raises(MemoryError, match="0 are in use"):
                mr.allocate(1)
            return super().allocate(size, stream)

    mr = TrackingMemoryResource(Slow(), limit=SIZE)
    mr.allocate(SIZE).close()
    mr.allocate(SIZE).close()


def test_threads_never_go_beyond_the_limit(device):
    limit = (THREADS - 1) * SIZE  # one of the threads has to wait for another
    mr = TrackingMemoryResource(DeviceMemoryResource(device), limit=limit, max_history=1)
    refused = []

    def work(number: int) -> None:
        Device(0).set_current()
        for _ in range(ROUNDS):
            while True:
                try:
                    buffer = mr.allocate(SIZE)
                except MemoryError:
                    refused.append(1)
                    time.sleep(0)
                else:
                    break
            assert mr.statistics.current_bytes <= limit
            buffer.close()

    in_threads(THREADS, work)
    statistics = mr.statistics
    assert statistics.peak_bytes <= limit
    assert (statistics.current_bytes, statistics.total_count) == (0, THREADS * ROUNDS)
    mr.allocate(limit).close()  # and nothing stayed promised
