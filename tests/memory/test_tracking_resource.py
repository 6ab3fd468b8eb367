# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The memory resource that tracks what goes through it: what it counts, and its buffers."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
from buffers import DATA, SIZE, HostResource, content, write
from helpers import ROOT, SUPPORT, collect, in_threads, output_of
from tracking import ROUNDS, THREADS, UPSTREAMS, RecordingResource, host_tracked, make_upstream, used

from cuda_core_cffi import (
    Buffer,
    Device,
    DeviceMemoryResource,
    LegacyPinnedMemoryResource,
    VirtualMemoryResource,
)
from cuda_core_cffi._memory import SynchronousMemoryResource
from cuda_core_cffi.utils import TrackingMemoryResource

TESTS = str(SUPPORT)

upstream = pytest.fixture(params=UPSTREAMS)(make_upstream)
host = pytest.fixture(host_tracked)


# Counting


def test_allocations_are_counted_until_they_are_closed(upstream):
    mr = TrackingMemoryResource(upstream)
    first, second = mr.allocate(SIZE), mr.allocate(2 * SIZE)
    assert mr.statistics == (3 * SIZE, 2, 3 * SIZE, 2, 3 * SIZE, 2)
    first.close()
    first.close()
    third = mr.allocate(SIZE)
    second.close()
    assert mr.statistics == (SIZE, 1, 3 * SIZE, 2, 4 * SIZE, 3)
    third.close()
    assert mr.statistics == (0, 0, 3 * SIZE, 2, 4 * SIZE, 3)


def test_the_statistics_have_names(host):
    with host.allocate(SIZE):
        assert host.statistics._asdict() == {
            "current_bytes": SIZE, "current_count": 1, "peak_bytes": SIZE, "peak_count": 1, "total_bytes": SIZE,
            "total_count": 1,
        }  # fmt: skip


def test_an_empty_buffer_counts_as_an_allocation_of_no_bytes(upstream):
    mr = TrackingMemoryResource(upstream)
    buffer = mr.allocate(0)
    assert mr.statistics == (0, 1, 0, 1, 0, 1)
    buffer.close()
    assert used(mr) == (0, 0)


def test_a_collected_buffer_is_not_counted_any_more(upstream):
    mr = TrackingMemoryResource(upstream)
    buffer = mr.allocate(SIZE)
    assert used(mr) == (SIZE, 1)
    del buffer
    collect()
    assert used(mr) == (0, 0)


def test_a_buffer_counts_until_its_last_dlpack_consumer_lets_go(upstream, stream):
    mr = TrackingMemoryResource(upstream)
    buffer = mr.allocate(SIZE, stream)
    capsule = buffer.__dlpack__(stream=-1)
    buffer.close()
    assert used(mr) == (SIZE, 1)
    del capsule
    collect()
    assert used(mr) == (0, 0)


def test_an_array_keeps_host_memory_counted(host):
    buffer = host.allocate(SIZE)
    array = np.from_dlpack(buffer)
    del buffer
    collect()
    assert used(host) == (SIZE, 1)
    array[:] = 5
    del array
    collect()
    assert used(host) == (0, 0)


def test_memory_that_cannot_go_back_is_not_counted_any_more(host):
    buffer = host.allocate(SIZE)
    host.upstream.live.clear()  # now it does not know the memory
    with pytest.raises(KeyError):
        buffer.close()
    assert used(host) == (0, 0)


def test_a_device_that_uses_it_is_counted(device, stream):
    mr = TrackingMemoryResource(device.memory_resource)
    before, device.memory_resource = device.memory_resource, mr
    try:
        with device.allocate(SIZE, stream) as buffer, buffer.copy_to(stream=stream) as copied:
            assert (buffer.memory_resource, copied.memory_resource) == (mr, mr)
            assert used(mr) == (2 * SIZE, 2)
    finally:
        device.memory_resource = before
    assert used(mr) == (0, 0)


def test_nested_resources_each_count(device):
    inner = TrackingMemoryResource(DeviceMemoryResource(device))
    outer = TrackingMemoryResource(inner)
    with inner.allocate(SIZE), outer.allocate(2 * SIZE) as buffer:
        assert (buffer.memory_resource, outer.upstream) == (outer, inner)
        assert (used(outer), used(inner)) == ((2 * SIZE, 1), (3 * SIZE, 2))
    assert (used(outer), used(inner)) == ((0, 0), (0, 0))


def test_memory_allocated_elsewhere_goes_back_uncounted(host):
    buffer = host.upstream.allocate(SIZE)
    address = buffer.handle
    other = host.allocate(SIZE)
    host.deallocate(address, SIZE)
    assert used(host) == (SIZE, 1)
    with pytest.raises(KeyError):
        buffer.close()  # the upstream resource has it back
    other.close()


def test_threads_are_counted_exactly(device):
    mr = TrackingMemoryResource(DeviceMemoryResource(device), limit=2**40, max_history=10)
    kept: list[Buffer] = []

    def work(number: int) -> None:
        Device(0).set_current()
        for size in range(1, ROUNDS + 1):
            buffer = mr.allocate(size)
            if size % 50:
                buffer.close()
            else:
                kept.append(buffer)

    in_threads(THREADS, work)
    total = THREADS * ROUNDS * (ROUNDS + 1) // 2
    statistics = mr.statistics
    assert (statistics.total_bytes, statistics.total_count) == (total, THREADS * ROUNDS)
    assert (statistics.current_bytes, statistics.current_count) == (sum(b.size for b in kept), len(kept))
    assert sorted(a.address for a in mr.outstanding()) == sorted(b.handle for b in kept)
    in_threads(2, lambda number: [b.close() for b in kept])
    assert used(mr) == (0, 0)


# Buffers


def test_buffers_are_those_of_the_resource_below(upstream, stream):
    mr = TrackingMemoryResource(upstream)
    with upstream.allocate(SIZE, stream) as plain, mr.allocate(SIZE, stream) as buffer:
        assert buffer.memory_resource is mr
        assert type(buffer) is type(plain)
        assert buffer.size == plain.size
        for name in ("is_device_accessible", "is_host_accessible", "is_managed"):
            assert getattr(buffer, name) == getattr(plain, name) == getattr(mr, name)
        assert buffer.__dlpack_device__() == plain.__dlpack_device__()


def test_the_device_is_that_of_the_resource_below(device):
    assert TrackingMemoryResource(DeviceMemoryResource(device)).device_id == 0
    assert TrackingMemoryResource(HostResource()).device_id == -1
    assert TrackingMemoryResource(LegacyPinnedMemoryResource()).device_id == -1


@pytest.mark.parametrize("make", [DeviceMemoryResource, SynchronousMemoryResource])
def test_buffers_can_be_written_and_read(make, device, stream):
    mr = TrackingMemoryResource(make(device))
    with mr.allocate(SIZE, stream) as buffer:
        write(buffer, DATA, stream)
        with buffer.copy_to(stream=stream) as copied:
            assert content(copied, stream) == DATA


def test_a_buffer_counts_until_its_last_slice_is_closed(upstream, stream):
    mr = TrackingMemoryResource(upstream)
    whole = mr.allocate(SIZE, stream)
    middle = whole[8:]
    part = middle[8:]
    middle.close()
    whole.close()
    assert (used(mr), part.memory_resource) == ((SIZE, 1), mr)
    part.close()
    assert used(mr) == (0, 0)


def test_tracked_virtual_memory_does_not_grow(device, stream):
    mr = TrackingMemoryResource(VirtualMemoryResource(device))
    with mr.allocate(SIZE, stream) as buffer, pytest.raises(ValueError, match="was not allocated by this resource"):
        mr.upstream.modify_allocation(buffer, 2 * buffer.size)


def test_the_stream_reaches_the_resource_below(device, stream):
    mr = TrackingMemoryResource(RecordingResource())
    with device.create_stream() as other:
        mr.allocate(SIZE, stream).close(other)
        mr.allocate(SIZE, stream=stream).close()
        assert mr.upstream.calls == [
            ("allocate", SIZE, stream),
            ("deallocate", SIZE, other),
            ("allocate", SIZE, stream),
            ("deallocate", SIZE, stream),
        ]


def test_buffers_keep_the_resource_below_alive():
    upstream = HostResource()
    alive, live = weakref.ref(upstream), upstream.live
    buffer = TrackingMemoryResource(upstream).allocate(SIZE)
    del upstream
    collect()
    assert alive() is not None
    assert len(live) == 1
    buffer.close()
    assert live == {}
    del buffer
    collect()
    assert alive() is None


def test_the_count_outlives_the_resource_where_a_tensor_needs_it(device, stream):
    mr = TrackingMemoryResource(DeviceMemoryResource(device), limit=SIZE, max_history=5)
    capsule = mr.allocate(SIZE, stream).__dlpack__(stream=-1)
    del mr
    collect()
    del capsule
    collect()


@pytest.mark.parametrize("answer", [None, 0x1000, "buffer"])
def test_a_resource_below_that_gives_no_buffer_is_a_type_error(answer):
    class Odd(HostResource):
        def allocate(self, size, stream=None):
            return answer

    mr = TrackingMemoryResource(Odd(), limit=SIZE)
    for _ in range(2):  # nothing stays promised
        with pytest.raises(TypeError, match=r"Odd\.allocate returned no Buffer"):
            mr.allocate(SIZE)
    assert mr.statistics.total_count == 0


def test_a_resource_below_that_gives_a_closed_buffer_is_a_runtime_error():
    class Closed(HostResource):
        def allocate(self, size, stream=None):
            buffer = super().allocate(size, stream)
            buffer.close()
            return buffer

    mr = TrackingMemoryResource(Closed(), limit=SIZE)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="Buffer is closed"):
            mr.allocate(SIZE)
    assert mr.statistics.total_count == 0


@pytest.mark.parametrize(
    ("size", "error"),
    [("1", TypeError), (1.0, TypeError), (-1, ValueError), (2**64, OverflowError), (-(2**70), ValueError)],
)
@pytest.mark.parametrize("limit", [None, SIZE])
def test_a_wrong_size_is_refused(size, error, limit):
    mr = TrackingMemoryResource(HostResource(), limit=limit)
    with pytest.raises(error, match="size must"):
        mr.allocate(size)


@pytest.mark.parametrize("upstream", [None, 1, HostResource])
def test_what_is_below_must_be_a_resource(upstream):
    with pytest.raises(TypeError, match="upstream must be a MemoryResource"):
        TrackingMemoryResource(upstream)


@pytest.mark.parametrize("name", ["limit", "max_history", "max_frames"])
@pytest.mark.parametrize(
    ("value", "error"), [(-1, ValueError), (2**64, ValueError), (1.5, TypeError), (True, TypeError)]
)
def test_a_wrong_number_is_refused(name, value, error):
    with pytest.raises(error, match=name):
        TrackingMemoryResource(HostResource(), **{name: value})


def test_the_repr_tells_what_is_in_use(device):
    mr = TrackingMemoryResource(LegacyPinnedMemoryResource())
    with mr.allocate(SIZE):
        assert repr(mr) == f"<TrackingMemoryResource of <LegacyPinnedMemoryResource>: {SIZE} bytes in 1 allocation>"
    assert repr(mr).endswith("0 bytes in 0 allocations>")


# Ends of processes


def test_an_interpreter_may_end_with_memory_outstanding():
    printed = output_of(
        """
        from cuda_core_cffi import Device
        from cuda_core_cffi.utils import TrackingMemoryResource

        device = Device(0)
        device.set_current()
        mr = TrackingMemoryResource(device.memory_resource, limit=1000, max_history=10, max_frames=3)
        buffer, other = mr.allocate(100), mr.allocate(200)
        capsule = other.__dlpack__(stream=-1)
        cycle = [mr, mr.allocate(300)]
        cycle.append(cycle)
        print(mr.statistics.current_bytes)
        """
    )
    assert printed == "600"


def test_a_child_of_fork_goes_on_counting_whatever_other_threads_were_doing():
    printed = output_of(
        """
        import os, signal, sys, threading
        sys.path.append(sys.argv[1])
        from buffers import HostResource
        from cuda_core_cffi import ffi, lib
        from cuda_core_cffi.utils import TrackingMemoryResource

        ROOM = 100_000
        mr = TrackingMemoryResource(HostResource(), limit=10**9, max_history=ROOM)
        buffer = mr.allocate(100)
        for _ in range(ROOM):
            lib.ccc_meter_refuse(mr._meter, 1)
        rows, done = ffi.new("ccc_meter_record[]", ROOM), threading.Event()

        def read():
            while not done.is_set():
                lib.ccc_meter_history(mr._meter, rows)  # holds the lock of the meters nearly all the time

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        for _ in range(5):
            pid = os.fork()
            if not pid:
                signal.alarm(20)  # rather than hang
                other = mr.allocate(5)
                assert mr.statistics.current_bytes == 105
                other.close()
                assert len(mr.outstanding()) == mr.statistics.current_count == 1
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        done.set()
        thread.join()
        buffer.close()
        print(mr.statistics.current_bytes)
        """,
        TESTS,
        PYTHONWARNINGS="ignore",
    )
    assert printed == "0"


def test_the_example_runs(tmp_path):
    example = ROOT / "examples" / "memory_usage.py"
    code = """
        import os, runpy, sys
        os.chdir(sys.argv[2])
        sys.path.append(os.path.dirname(sys.argv[1]))
        runpy.run_path(sys.argv[1])["main"]()
        """
    printed = output_of(code, str(example), str(tmp_path))
    assert "peak 34.0 MiB, 15 allocations, 5 not freed" in printed
    assert printed.count("from compute, line") == 5
