# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What a tracking resource remembers: its history, and what is outstanding from where."""

from __future__ import annotations

import sys
import time

import pytest
from buffers import SIZE, HostResource
from tracking import UPSTREAMS, host_tracked, make_upstream

from cuda_core_cffi import DeviceMemoryResource
from cuda_core_cffi._memory.tracking import FEW_PLACES
from cuda_core_cffi.utils import TrackingMemoryResource

upstream = pytest.fixture(params=UPSTREAMS)(make_upstream)
host = pytest.fixture(host_tracked)


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
