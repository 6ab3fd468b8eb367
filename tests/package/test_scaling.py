# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Operations on many objects: what was once quadratic in their number.

Where driver calls tell, they are counted. Otherwise there are so many objects that a quadratic time would be longer
than a child process is given. ``python -m benchmarks.scaling`` measures these and others.
"""

from __future__ import annotations

import pytest
from graphs import SIZE
from helpers import Gate, collect, output_of

from cuda_core_cffi import simulator
from cuda_core_cffi.graph import GraphDefinition
from cuda_core_cffi.graph.allocated import Ranges

MANY = 500
START = """
import gc, time
from cuda_core_cffi import Buffer, Device, LegacyPinnedMemoryResource, ffi, lib
from cuda_core_cffi.graph import GraphDefinition

device = Device(0)
device.set_current()
stream = device.create_stream()
graph = GraphDefinition()

def left():
    end = time.monotonic() + 20  # the release thread may have some of them in hand
    while lib.ccc_refs_count() and time.monotonic() < end:
        time.sleep(0.001)
    return lib.ccc_refs_count()
"""
vast = pytest.mark.simulator_only("other drivers may take long for so many objects themselves")
counted = pytest.mark.simulator_only("only the simulated driver tells which calls were made")


@counted
def test_calls_query_few_of_the_events_that_are_waited_for(device, stream, memory):
    with device.create_stream() as other, Gate(other), GraphDefinition() as graph:
        nodes = [graph.memset(memory[0], 1, SIZE) for _ in range(MANY)]
        with graph.instantiate() as executable:
            for node in nodes:
                executable[node].update(dst=memory[1], value=2, width=SIZE)
            executable.launch(other)
            for node in nodes:
                executable[node].update(dst=memory[0], value=3, width=SIZE)
            with simulator.trace("cuEventQuery") as trace:
                for _ in range(MANY):
                    graph.empty()
        assert 0 < len(trace) <= 20 * MANY


@counted
def test_calls_in_a_capture_do_not_look_at_all_buffers_that_were_closed_in_it(device, stream):
    buffers = [device.allocate(SIZE, stream) for _ in range(MANY)]
    with stream.create_graph_builder() as builder:
        builder.begin_building()
        with simulator.trace("cuStreamIsCapturing") as trace:
            for buffer in buffers:
                buffer.close()
            for _ in range(MANY):
                GraphDefinition().close()
        assert len(trace) <= 4 * MANY
        builder.end_building()


@counted
def test_an_edge_is_added_without_a_look_at_all_edges_of_a_node(graph):
    """A node with many edges, and others with few: only the edges of those are listed."""
    hub = graph.empty()
    others = [graph.empty() for _ in range(MANY)]
    room = []
    for other in others:
        with simulator.trace() as trace:
            hub.pred.add(other)
        room.append(len(trace))
    assert max(room) <= 6
    assert hub.pred == set(others)
    for other in others[::2]:
        hub.pred.discard(other)
    assert hub.pred == set(others[1::2])


@vast
def test_a_definition_with_many_host_functions_is_closed():
    code = """
for _ in range(1_000_000):
    graph.callback(list)
graph.close()
print(left())
"""
    assert output_of(START + code) == "0"


def test_many_tensors_are_deleted():
    code = """
import numpy
memory = numpy.zeros(64, numpy.int8)
freed = []

class Resource(LegacyPinnedMemoryResource):
    def deallocate(self, ptr, size, stream=None):
        freed.append(ptr)

mr = Resource()
arrays = [numpy.from_dlpack(Buffer.from_handle(memory.ctypes.data, 64, mr=mr)) for _ in range(200_000)]
lib.ccc_release_pause()
arrays.clear()
while len(freed) < 200_000:
    gc.collect()
    numpy.from_dlpack(Buffer.from_handle(memory.ctypes.data, 64, mr=mr))
print(len(freed) >= 200_000)
"""
    assert output_of(START + code) == "True"


@vast
def test_each_of_many_nodes_of_an_executable_is_set():
    code = """
with device.allocate(64, stream) as buffer:
    nodes = [graph.memset(buffer, 1, 64) for _ in range(150_000)]
    executable = graph.instantiate()
    for _ in range(2):
        for node in nodes:
            executable[node].update(dst=buffer, value=2, width=64)
    executable.close()
    graph.close()
print(left())
"""
    assert output_of(START + code) == "0"


@vast
def test_many_allocation_nodes_are_used():
    code = """
nodes = [graph.allocate(512) for _ in range(20_000)]
for node in nodes:
    node.memcpy(node.dptr, node.dptr + 8, 8)
    node.memcpy(node.dptr + 500, node.dptr, 8)
print(len(graph.nodes()))
"""
    assert output_of(START + code) == "60000"


@vast
def test_many_exceptions_wait_for_another_stream():
    code = """
import sys
from cuda_core_cffi._streams.callbacks import MOST_RAISED, raised
shown = []
sys.unraisablehook = lambda unraisable: shown.append(None)
other = device.create_stream()
for _ in range(60_000):
    other.callback(lambda: 1 // 0)
lib.cuCtxSynchronize()
for _ in range(60_000):
    stream.callback(list)
    stream.sync()
try:
    other.sync()
except ExceptionGroup as group:
    gc.collect()  # PyPy shows them when it collects
    print(len(group.exceptions) == MOST_RAISED, len(shown) + MOST_RAISED, len(raised))
"""
    assert output_of(START + code) == "True 60000 0"


@pytest.mark.parametrize("forward", [False, True])
def test_edges_of_a_node_with_many_are_changed_at_once(graph, forward):
    hub, others = graph.empty(), [graph.empty() for _ in range(20_000)]
    edges = hub.succ if forward else hub.pred
    edges |= set(others)
    edges.update(others, others)  # there already, and named twice
    assert len(edges) == len(others)
    edges -= set(others[::2])
    assert edges == set(others[1::2])
    edges.update(*others)
    assert len(edges) == len(others)
    edges.clear()
    assert len(edges) == 0
    edges.discard(graph._entry)
    with pytest.raises(Exception, match="entry of a graph has no edges"):
        edges.add(graph._entry)


def test_ranges_are_found_until_their_owner_is_gone():
    class Owner:
        pass

    first, second, base = Owner(), Owner(), 1 << 50
    ranges = Ranges()
    assert base not in ranges
    for start, size in [(base, 512), (base + 4096, 512), (base + 512, 512), (base + 100, 5000)]:
        ranges.add(first, start, size)
        assert start in ranges
        assert start + size - 1 in ranges
    assert len(ranges) == 1
    assert base - 1 not in ranges
    assert base + 5100 not in ranges
    for power in (40, 41, 39):
        ranges.add(second, 1 << power, 16)
    assert [1 << power in ranges for power in (38, 39, 40, 41, 42)] == [False, True, True, True, False]
    assert len(ranges) == 4
    ranges.add(second, base + 1024, 1024)  # the driver gives an address to one graph at a time: that of before is gone
    del first
    collect()
    assert [base + start in ranges for start in (0, 1023, 1024, 2047, 2048)] == [False, False, True, True, False]


def test_ranges_of_owners_that_are_gone_are_forgotten():
    class Owner:
        pass

    ranges, last = Ranges(), Owner()
    for number in range(1000):
        ranges.add(Owner(), number << 20, 16)
    collect()
    for number in range(1000, 1200):
        ranges.add(last, number << 20, 16)
    assert len(ranges) <= 1200
    for number in range(1200, 2000):
        ranges.add(last, number << 20, 16)
    assert len(ranges) == 1000
