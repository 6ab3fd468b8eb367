# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The memory resource that counts, limits and remembers what goes through it."""

from __future__ import annotations

import gc
import pathlib
import sys
import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest
from buffers import DATA, SIZE, HostResource, content, write
from helpers import output_of

from cuda_core_cffi import (
    Buffer,
    CUDAError,
    Device,
    DeviceMemoryResource,
    LegacyPinnedMemoryResource,
    PinnedMemoryResource,
    VirtualMemoryResource,
    simulator,
)
from cuda_core_cffi._memory import SynchronousMemoryResource
from cuda_core_cffi._memory.tracking import FEW_PLACES
from cuda_core_cffi.utils import TrackingMemoryResource

TESTS = str(pathlib.Path(__file__).parent)
THREADS = 8
ROUNDS = 200

UPSTREAMS = {
    "pool": DeviceMemoryResource,
    "synchronous": SynchronousMemoryResource,
    "pinned": lambda device: LegacyPinnedMemoryResource(),
    "pinned pool": lambda device: PinnedMemoryResource({}),
    "virtual": VirtualMemoryResource,
    "Python": lambda device: HostResource(),
    "tracking": lambda device: TrackingMemoryResource(DeviceMemoryResource(device)),
}


@pytest.fixture(params=UPSTREAMS)
def upstream(request, device):
    """Return a resource of each kind."""
    made = UPSTREAMS[request.param](device)
    yield made
    if isinstance(made, PinnedMemoryResource):
        made.close()


@pytest.fixture
def host():
    """Return a tracking resource over one that is written in Python."""
    return TrackingMemoryResource(HostResource())


class RecordingResource(HostResource):
    """Remembers what it was asked for and what came back."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, ...]] = []

    def allocate(self, size, stream=None):
        self.calls.append(("allocate", size, stream))
        return super().allocate(size, stream)

    def deallocate(self, ptr, size, stream=None):
        self.calls.append(("deallocate", size, stream))
        super().deallocate(ptr, size, stream)


def collect() -> None:
    """Collect garbage; PyPy runs finalizers some time after."""
    for _ in range(3):
        gc.collect()


def used(mr: TrackingMemoryResource) -> tuple[int, int]:
    return (mr.statistics.current_bytes, mr.statistics.current_count)


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

    def work() -> None:
        Device(0).set_current()
        for size in range(1, ROUNDS + 1):
            buffer = mr.allocate(size)
            if size % 50:
                buffer.close()
            else:
                kept.append(buffer)

    in_threads(work)
    total = THREADS * ROUNDS * (ROUNDS + 1) // 2
    statistics = mr.statistics
    assert (statistics.total_bytes, statistics.total_count) == (total, THREADS * ROUNDS)
    assert (statistics.current_bytes, statistics.current_count) == (sum(b.size for b in kept), len(kept))
    assert sorted(a.address for a in mr.outstanding()) == sorted(b.handle for b in kept)
    closers = [threading.Thread(target=lambda: [b.close() for b in kept]) for _ in range(2)]
    for thread in closers:
        thread.start()
    for thread in closers:
        thread.join()
    assert used(mr) == (0, 0)


def in_threads(work) -> None:
    """Run work in all threads at once; raise the first error."""
    barrier, errors = threading.Barrier(THREADS), []

    def run() -> None:
        barrier.wait()
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


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
    with pytest.raises(RuntimeError, match="on no device"):
        _ = TrackingMemoryResource(LegacyPinnedMemoryResource()).device_id


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


# The limit


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


def test_at_the_limit_tensors_that_are_gone_are_let_go_first(host):
    mr = TrackingMemoryResource(host, limit=SIZE)
    capsule = mr.allocate(SIZE).__dlpack__()
    del capsule
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

    def work() -> None:
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

    in_threads(work)
    statistics = mr.statistics
    assert statistics.peak_bytes <= limit
    assert (statistics.current_bytes, statistics.total_count) == (0, THREADS * ROUNDS)
    mr.allocate(limit).close()  # and nothing stayed promised


# The history


def test_the_history_tells_what_happened_and_what_was_in_use():
    mr = TrackingMemoryResource(HostResource(), limit=100, max_history=10)
    start = time.monotonic()
    first, second = mr.allocate(10), mr.allocate(20)
    first_at, second_at = first.handle, second.handle
    first.close()
    with pytest.raises(MemoryError):
        mr.allocate(200)
    second.close()
    history = mr.history
    assert [tuple(event)[1:] for event in history.tolist()] == [
        ("allocate", first_at, 10, 10, 1),
        ("allocate", second_at, 20, 30, 2),
        ("free", first_at, 10, 20, 1),
        ("refuse", 0, 200, 20, 1),
        ("free", second_at, 20, 0, 0),
    ]
    times = [start, *history["time"], time.monotonic()]
    assert times == sorted(times)


def test_the_history_keeps_the_newest_events():
    mr = TrackingMemoryResource(HostResource(), max_history=4)
    for size in range(1, 10):
        mr.allocate(size).close()
        events = [(event["event"], event["size"]) for event in mr.history]
        expected = [(name, number) for number in range(1, size + 1) for name in ("allocate", "free")]
        assert events == expected[-4:]


def test_without_a_history_there_are_no_events(host):
    host.allocate(SIZE).close()
    assert len(host.history) == 0
    assert host.history.dtype.names == ("time", "event", "address", "size", "bytes", "count")


def test_the_history_is_a_copy():
    mr = TrackingMemoryResource(HostResource(), max_history=4)
    mr.allocate(SIZE).close()
    mr.history["size"] = 0
    assert list(mr.history["size"]) == [SIZE, SIZE]


def test_a_history_too_long_for_the_host_is_a_memory_error():
    with pytest.raises(MemoryError):
        TrackingMemoryResource(HostResource(), max_history=2**60)


def test_plot_without_history_says_why(host):
    with pytest.raises(ValueError, match="max_history is 0"):
        host.plot()


def test_plot_without_matplotlib_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    mr = TrackingMemoryResource(HostResource(), max_history=4)
    mr.allocate(SIZE).close()
    with pytest.raises(ImportError, match="plot needs matplotlib"):
        mr.plot()


def test_plot_draws_the_bytes_in_use():
    pytest.importorskip("matplotlib").use("Agg")
    mr = TrackingMemoryResource(HostResource(), limit=100, max_history=10)
    with mr.allocate(30), pytest.raises(MemoryError):
        mr.allocate(90)
    axes = mr.plot()
    lines = {line.get_label(): list(line.get_ydata()) for line in axes.get_lines()}
    assert lines == {"in use": [30, 30, 0], "refused": [30], "limit": [100, 100]}
    assert mr.plot(axes) is axes


# Leaks


def test_outstanding_tells_what_was_not_closed_and_where_it_was_made(upstream):
    mr = TrackingMemoryResource(upstream, max_frames=2)
    first, second, third = mr.allocate(1), mr.allocate(2), made_in_a_function(mr)
    second.close()
    found = mr.outstanding()
    assert [(a.address, a.size) for a in found] == [(first.handle, 1), (third.handle, 3)]
    here = test_outstanding_tells_what_was_not_closed_and_where_it_was_made.__name__
    assert found[0].stack[-1].name == here
    assert [place.name for place in found[1].stack] == [here, "made_in_a_function"]
    assert "return mr.allocate(3)" in "".join(found[1].stack.format())
    assert found[0].time <= found[1].time <= time.monotonic()
    for buffer in (first, third):
        buffer.close()
    assert mr.outstanding() == []


def made_in_a_function(mr):
    return mr.allocate(3)


def test_the_place_is_where_the_program_called_this_package(device, stream):
    mr = TrackingMemoryResource(TrackingMemoryResource(DeviceMemoryResource(device), max_frames=1), max_frames=1)
    before, device.memory_resource = device.memory_resource, mr
    here = test_the_place_is_where_the_program_called_this_package.__name__
    try:
        with device.allocate(SIZE, stream) as buffer, buffer.copy_to(stream=stream):
            assert [a.stack[-1].name for a in mr.outstanding()] == [here, here]
            assert [a.stack[-1].name for a in mr.upstream.outstanding()] == [here, here]
    finally:
        device.memory_resource = before


def test_places_are_not_remembered_unless_asked_for(host):
    with host.allocate(SIZE):
        assert list(host.outstanding()[0].stack) == []


def test_places_of_what_has_gone_back_are_forgotten():
    mr = TrackingMemoryResource(HostResource(), max_frames=1)
    with mr.allocate(SIZE):
        for _ in range(3 * FEW_PLACES):
            mr.allocate(SIZE).close()
        assert len(mr._places) <= FEW_PLACES + 1
        assert len(mr.outstanding()[0].stack) == 1


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
    example = pathlib.Path(TESTS).parent / "examples" / "memory_usage.py"
    code = """
        import os, runpy, sys
        os.chdir(sys.argv[2])
        sys.path.append(os.path.dirname(sys.argv[1]))
        runpy.run_path(sys.argv[1])["main"]()
        """
    printed = output_of(code, str(example), str(tmp_path))
    assert "peak 34.0 MiB, 15 allocations, 5 not freed" in printed
    assert printed.count("from compute, line") == 5
