# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

"""Captured streams: what becomes a node, and what comes before it."""

from __future__ import annotations

import itertools
from types import ModuleType

import pytest
from sim_driver import (
    LEGACY,
    NON_BLOCKING,
    PER_THREAD,
    Driver,
    HostFunction,
    LaunchAttribute,
    LaunchConfig,
    byref,
    c_int,
    c_size_t,
    c_uint,
    c_uint64,
    c_void_p,
    ctypes,
)
from sim_graphs import (
    BATCH_MEM_OP,
    EVENT_RECORD,
    GLOBAL,
    HOST,
    KERNEL,
    MEM_ALLOC,
    MEM_FREE,
    MEMCPY,
    MEMSET,
    RELAXED,
    WAIT_EVENT,
    CopyParams,
    EdgeData,
    Graphs,
    KernelParams,
    ask,
    handles,
)
from sim_kernels import KERNELS

NONE, ACTIVE, INVALIDATED = range(3)
EXTERNAL = 1


def begin(cu: Driver, stream: c_void_p, mode: int = RELAXED) -> None:
    cu.cuStreamBeginCapture_v2(stream, mode)


def end(graphs: Graphs, stream: c_void_p) -> c_void_p:
    graph = c_void_p()
    graphs.cu.cuStreamEndCapture(stream, byref(graph))
    graphs.graphs.append(graph)
    return graph


def kinds(graphs: Graphs, graph: c_void_p) -> list[int]:
    return [ask(graphs.cu, c_int, "cuGraphNodeGetType", c_void_p(node)).value for node in graphs.nodes(graph)]


def info(cu: Driver, stream: c_void_p) -> tuple[int, int, int | None, list[int]]:
    """Return status, number, graph and the nodes that come before the next."""
    status, number, graph, nodes, count = c_int(9), c_uint64(), c_void_p(), c_void_p(), c_size_t()
    cu.cuStreamGetCaptureInfo_v2(stream, byref(status), byref(number), byref(graph), byref(nodes), byref(count))
    found = list((c_void_p * count.value).from_address(nodes.value)) if count.value and nodes.value else []
    return status.value, number.value, graph.value, found


@pytest.fixture
def stream(cu: Driver) -> c_void_p:
    stream = cu.stream(NON_BLOCKING)
    yield stream
    cu.status("cuStreamEndCapture", stream, byref(c_void_p()))
    cu.cuStreamDestroy_v2(stream)


def test_nothing_runs_until_the_graph_is_launched(cu: Driver, graphs: Graphs, stream: c_void_p) -> None:
    memory, ran = cu.alloc(64), []
    cu.cuMemsetD8_v2(memory, 0, c_size_t(64))
    begin(cu, stream)
    cu.cuMemsetD8Async(memory, 1, c_size_t(64), stream)
    cu.launch(stream, lambda: ran.append(1))
    graph = end(graphs, stream)
    assert cu.read(memory, 1) == b"\0"
    assert kinds(graphs, graph) == [MEMSET, HOST]
    first, second = graphs.nodes(graph)
    assert graphs.edges(graph) == [(first, second)]
    graphs.run(graph, stream)
    assert (cu.read(memory, 64), ran) == (b"\1" * 64, [1])
    cu.cuStreamSynchronize(stream)
    cu.cuMemFree_v2(memory)


def test_the_status_of_a_stream_tells_its_capture(cu: Driver, graphs: Graphs, stream: c_void_p) -> None:
    assert info(cu, stream) == (NONE, 0, None, [])
    begin(cu, stream)
    status, number, graph, nodes = info(cu, stream)
    assert (status, nodes) == (ACTIVE, [])
    cu.launch(stream, lambda: None)
    assert info(cu, stream) == (ACTIVE, number, graph, graphs.nodes(c_void_p(graph)))
    assert ask(cu, c_int, "cuStreamIsCapturing", stream).value == ACTIVE
    first = c_uint64()
    cu.cuStreamGetCaptureInfo(stream, byref(c_int()), byref(first))
    assert first.value == number
    assert end(graphs, stream).value == graph
    begin(cu, stream)
    assert info(cu, stream)[1] != number
    end(graphs, stream)
    assert ask(cu, c_int, "cuStreamIsCapturing", stream).value == NONE


def test_a_copy_between_contexts_is_refused(cu: Driver, stream: c_void_p) -> None:
    a, b = cu.alloc(256), cu.alloc(256)
    context: c_void_p = cu.out(c_void_p, "cuCtxGetCurrent")
    begin(cu, stream)
    refused = "STREAM_CAPTURE_UNSUPPORTED"
    assert cu.status("cuMemcpyPeerAsync", a, context, b, context, c_size_t(16), stream) == refused
    assert cu.status("cuStreamEndCapture", stream, byref(c_void_p())) == "STREAM_CAPTURE_INVALIDATED"
    for pointer in (a, b):
        cu.cuMemFree_v2(pointer)


def test_copies_of_every_shape_become_nodes(cu: Driver, graphs: Graphs, stream: c_void_p) -> None:
    a, b, host = cu.alloc(256), cu.alloc(256), ctypes.create_string_buffer(b"abcdefgh" * 32, 256)
    pinned = cu.pinned(256)
    begin(cu, stream, GLOBAL)
    cu.cuMemcpyHtoDAsync_v2(a, host, c_size_t(256), stream)
    cu.cuMemcpyDtoDAsync_v2(b, a, c_size_t(128), stream)
    cu.cuMemcpyAsync(c_uint64(b.value + 128), c_uint64(a.value + 64), c_size_t(128), stream)
    box = CopyParams(width=8, height=2, depth=2)
    box.source.type, box.source.device, box.source.pitch, box.source.height = 2, b.value, 16, 4
    box.target.type, box.target.device, box.target.pitch, box.target.height = 2, a.value, 8, 2
    cu.cuMemcpy3DAsync_v2(byref(box), stream)
    cu.cuMemcpyDtoHAsync_v2(pinned, a, c_size_t(256), stream)
    cu.cuMemcpyDtoHAsync_v2(host, b, c_size_t(0), stream)
    graph = end(graphs, stream)
    assert kinds(graphs, graph) == [MEMCPY] * 5
    nodes = graphs.nodes(graph)
    assert graphs.edges(graph) == list(itertools.pairwise(nodes))
    read = ask(cu, CopyParams, "cuGraphMemcpyNodeGetParams", c_void_p(nodes[0]))
    assert (read.source.type, read.source.host, read.target.device, read.width) == (
        1,
        ctypes.addressof(host),
        a.value,
        256,
    )
    read = ask(cu, CopyParams, "cuGraphMemcpyNodeGetParams", c_void_p(nodes[3]))
    assert (read.width, read.height, read.depth, read.source.pitch, read.source.height) == (8, 2, 2, 16, 4)
    host.value = b"ABCDEFGH" * 32
    graphs.run(graph, stream)
    assert pinned.raw[:32] == b"ABCDEFGH" * 4
    assert cu.read(b, 256) == b"ABCDEFGH" * 32
    for pointer in (a, b):
        cu.cuMemFree_v2(pointer)
    cu.cuMemFreeHost(pinned)


def test_fills_of_every_element_become_nodes(cu: Driver, graphs: Graphs, stream: c_void_p) -> None:
    memory = cu.alloc(64)
    begin(cu, stream)
    cu.cuMemsetD8Async(memory, 1, c_size_t(64), stream)
    cu.cuMemsetD16Async(memory, 2, c_size_t(4), stream)
    cu.cuMemsetD2D32Async(c_uint64(memory.value + 16), c_size_t(16), 3, c_size_t(1), c_size_t(2), stream)
    graph = end(graphs, stream)
    assert kinds(graphs, graph) == [MEMSET] * 3
    graphs.run(graph)
    expected = b"\2\0" * 4 + b"\1" * 8 + (b"\3\0\0\0" + b"\1" * 12) * 2 + b"\1" * 16
    assert cu.read(memory, 64) == expected
    cu.cuMemFree_v2(memory)


def test_kernels_keep_their_configuration(cu: Driver, graphs: Graphs, stream: c_void_p) -> None:
    memory, value = cu.alloc(4), c_uint(7)
    pointers = (c_void_p * 2)(ctypes.addressof(memory), ctypes.addressof(value))
    begin(cu, stream)
    cu.cuLaunchKernel(graphs.function("store"), 2, 1, 1, 32, 1, 1, 16, stream, pointers, None)
    rows = (LaunchAttribute * 1)(LaunchAttribute(4))
    rows[0].value[0], rows[0].value[1], rows[0].value[2] = 2, 1, 1
    config = LaunchConfig((4, 1, 1), (1, 1, 1), 0, stream.value, ctypes.addressof(rows), 1)
    cu.cuLaunchKernelEx(byref(config), graphs.function("nothing"), None, None)
    cu.cuLaunchCooperativeKernel(graphs.function("nothing"), 1, 1, 1, 1, 1, 1, 0, stream, None)
    value.value = 8
    graph = end(graphs, stream)
    assert kinds(graphs, graph) == [KERNEL] * 3
    read = ask(cu, KernelParams, "cuGraphKernelNodeGetParams_v2", c_void_p(graphs.nodes(graph)[0]))
    assert (list(read.grid), list(read.block), read.shared) == ([2, 1, 1], [32, 1, 1], 16)
    assert read.function == graphs.function("store").value
    graphs.run(graph)
    assert cu.read(memory, 4) == b"\7\0\0\0"
    cu.cuMemFree_v2(memory)


def test_a_free_that_is_refused_adds_nothing(cu: Driver, graphs: Graphs, stream: c_void_p) -> None:
    begin(cu, stream)
    memory: c_uint64 = cu.out(c_uint64, "cuMemAllocAsync", c_size_t(64), stream)
    cu.cuMemFreeAsync(memory, stream)
    assert cu.status("cuMemFreeAsync", memory, stream) == "INVALID_VALUE"
    assert kinds(graphs, end(graphs, stream)) == [MEM_ALLOC, MEM_FREE]


def test_a_launch_that_is_refused_ends_the_capture(cu: Driver, graphs: Graphs, stream: c_void_p) -> None:
    begin(cu, stream)
    launch = ("cuLaunchKernel", graphs.function("nothing"), 1, 1, 1, 2048, 1, 1, 0, stream, None, None)
    assert cu.status(*launch) == "INVALID_VALUE"
    assert info(cu, stream)[0] == INVALIDATED
    assert cu.status("cuStreamEndCapture", stream, byref(c_void_p())) == "STREAM_CAPTURE_INVALIDATED"


def test_kernels_of_libraries_keep_their_handle(cu: Driver, graphs: Graphs, stream: c_void_p) -> None:
    library = c_void_p()
    cu.cuLibraryLoadData(byref(library), KERNELS, None, None, 0, None, None, 0)
    kernel: c_void_p = cu.out(c_void_p, "cuLibraryGetKernel", library, b"nothing")
    begin(cu, stream)
    cu.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, None, None)
    graph = end(graphs, stream)
    read = ask(cu, KernelParams, "cuGraphKernelNodeGetParams_v2", c_void_p(graphs.nodes(graph)[0]))
    function: c_void_p = cu.out(c_void_p, "cuKernelGetFunction", kernel)
    assert (read.kernel, read.function, read.context) == (kernel.value, function.value, graphs.context.value)
    graphs.run(graph)
    cu.cuLibraryUnload(library)


def test_memory_is_allocated_and_freed_by_nodes(cu: Driver, graphs: Graphs, stream: c_void_p, sim: ModuleType) -> None:
    before = sim.live()["graph allocations"].number  # what tests of failing frees have left
    begin(cu, stream)
    address: c_uint64 = cu.out(c_uint64, "cuMemAllocAsync", c_size_t(64), stream)
    cu.cuMemsetD8Async(address, 5, c_size_t(64), stream)
    cu.cuMemFreeAsync(address, stream)
    pool = cu.pool()
    kept = cu.from_pool(pool, 32, stream)
    graph = end(graphs, stream)
    assert kinds(graphs, graph) == [MEM_ALLOC, MEMSET, MEM_FREE, MEM_ALLOC]
    assert cu.pool_attribute(pool, 7) == 0
    graphs.run(graph, stream)
    assert sim.live()["graph allocations"].number == before + 1
    cu.cuMemFreeAsync(kept, stream)
    cu.cuMemPoolDestroy(pool)
    begin(cu, stream)
    memory: c_uint64 = cu.out(c_uint64, "cuMemAllocAsync", c_size_t(64), PER_THREAD)
    assert cu.status("cuMemFreeAsync", memory, stream) == "INVALID_VALUE"
    assert graphs.nodes(end(graphs, stream)) == []
    cu.cuMemFreeAsync(memory, stream)


def test_values_in_memory_become_nodes(cu: Driver, graphs: Graphs, stream: c_void_p) -> None:
    memory = cu.alloc(8)
    begin(cu, stream)
    cu.cuStreamWriteValue32_v2(stream, memory, 4, 0)
    cu.cuStreamWaitValue32_v2(stream, memory, 4, 1)
    graph = end(graphs, stream)
    assert kinds(graphs, graph) == [BATCH_MEM_OP] * 2
    graphs.run(graph)
    assert cu.read(memory, 4) == b"\4\0\0\0"
    cu.cuMemFree_v2(memory)


# --- Events -----------------------------------------------------------------------------------------------------------


def test_events_fork_and_join(cu: Driver, graphs: Graphs, stream: c_void_p) -> None:
    other, fork, joined = cu.stream(NON_BLOCKING), cu.event(2), cu.event(2)
    begin(cu, stream)
    cu.launch(stream, lambda: None)
    cu.cuEventRecord(fork, stream)
    cu.cuStreamWaitEvent(other, fork, 0)
    assert info(cu, other)[:3] == info(cu, stream)[:3]
    cu.launch(other, lambda: None)
    cu.launch(stream, lambda: None)
    cu.cuEventRecord(joined, other)
    cu.cuStreamWaitEvent(stream, joined, 0)
    cu.launch(stream, lambda: None)
    graph = end(graphs, stream)
    a, b, c, d = graphs.nodes(graph)
    assert sorted(graphs.edges(graph)) == sorted([(a, b), (a, c), (b, d), (c, d)])
    assert ask(cu, c_int, "cuStreamIsCapturing", other).value == NONE
    graphs.run(graph)
    for event in (fork, joined):
        cu.cuEventDestroy_v2(event)
    cu.cuStreamDestroy_v2(other)


def test_external_events_become_nodes(cu: Driver, graphs: Graphs, stream: c_void_p) -> None:
    event = cu.event()
    assert cu.status("cuEventRecordWithFlags", event, stream, EXTERNAL) == "ILLEGAL_STATE"
    assert cu.status("cuStreamWaitEvent", stream, event, EXTERNAL) == "ILLEGAL_STATE"
    begin(cu, stream)
    cu.cuEventRecordWithFlags(event, stream, EXTERNAL)
    cu.cuStreamWaitEvent(stream, event, EXTERNAL)
    graph = end(graphs, stream)
    assert kinds(graphs, graph) == [EVENT_RECORD, WAIT_EVENT]
    graphs.run(graph)
    cu.cuEventSynchronize(event)
    cu.cuEventDestroy_v2(event)


def test_work_that_was_not_joined_is_an_error(cu: Driver, graphs: Graphs, stream: c_void_p, sim: ModuleType) -> None:
    other, fork = cu.stream(NON_BLOCKING), cu.event(2)
    before = sim.live()["graphs"]
    begin(cu, stream)
    cu.cuEventRecord(fork, stream)
    cu.cuStreamWaitEvent(other, fork, 0)
    cu.launch(other, lambda: None)
    graph = c_void_p(7)
    assert cu.status("cuStreamEndCapture", stream, byref(graph)) == "STREAM_CAPTURE_UNJOINED"
    assert graph.value is None
    assert sim.live()["graphs"] == before
    assert [info(cu, which)[0] for which in (stream, other)] == [NONE, NONE]
    cu.cuStreamSynchronize(stream)
    begin(cu, stream)
    cu.cuEventRecord(fork, stream)
    cu.cuStreamWaitEvent(other, fork, 0)
    cu.launch(other, lambda: None)
    cu.cuStreamDestroy_v2(other)
    assert cu.status("cuStreamEndCapture", stream, byref(graph)) == "STREAM_CAPTURE_UNJOINED"
    cu.cuEventDestroy_v2(fork)


def test_a_fork_without_work_needs_no_join(cu: Driver, graphs: Graphs, stream: c_void_p) -> None:
    other, fork = cu.stream(NON_BLOCKING), cu.event(2)
    begin(cu, stream)
    cu.launch(stream, lambda: None)
    cu.cuEventRecord(fork, stream)
    cu.cuStreamWaitEvent(other, fork, 0)
    assert len(graphs.nodes(end(graphs, stream))) == 1
    cu.cuStreamDestroy_v2(other)
    cu.cuEventDestroy_v2(fork)


def test_dependencies_on_the_world_outside_are_refused(cu: Driver, graphs: Graphs, stream: c_void_p) -> None:
    other, event, never = cu.stream(NON_BLOCKING), cu.event(2), cu.event(2)
    cu.cuEventRecord(event, other)
    begin(cu, stream)
    cu.cuStreamWaitEvent(stream, never, 0)
    assert cu.status("cuStreamWaitEvent", stream, event, 0) == "STREAM_CAPTURE_ISOLATION"
    assert info(cu, stream)[0] == INVALIDATED
    assert cu.status("cuStreamEndCapture", stream, byref(c_void_p())) == "STREAM_CAPTURE_INVALIDATED"
    for which in (event, never):
        cu.cuEventDestroy_v2(which)
    cu.cuStreamDestroy_v2(other)


def test_captures_do_not_merge(cu: Driver, graphs: Graphs, stream: c_void_p) -> None:
    other, event = cu.stream(NON_BLOCKING), cu.event(2)
    begin(cu, stream)
    begin(cu, other)
    cu.cuEventRecord(event, other)
    assert cu.status("cuStreamWaitEvent", stream, event, 0) == "STREAM_CAPTURE_MERGE"
    assert [info(cu, which)[0] for which in (stream, other)] == [INVALIDATED, INVALIDATED]
    for which in (stream, other):
        assert cu.status("cuStreamEndCapture", which, byref(c_void_p())) == "STREAM_CAPTURE_INVALIDATED"
    cu.cuEventDestroy_v2(event)
    cu.cuStreamDestroy_v2(other)


def test_events_of_a_capture_cannot_be_asked(cu: Driver, graphs: Graphs, stream: c_void_p) -> None:
    event, plain = cu.event(), cu.event()
    cu.cuEventRecord(plain, PER_THREAD)
    for ask_event in ("cuEventQuery", "cuEventSynchronize"):
        begin(cu, stream)
        cu.cuEventRecord(event, stream)
        assert cu.status("cuEventElapsedTime", byref(ctypes.c_float()), plain, event) == "CAPTURED_EVENT"
        assert info(cu, stream)[0] == ACTIVE
        assert cu.status(ask_event, event) == "CAPTURED_EVENT"
        assert cu.status("cuStreamEndCapture", stream, byref(c_void_p())) == "STREAM_CAPTURE_INVALIDATED"
    for which in (event, plain):
        cu.cuEventDestroy_v2(which)


def test_events_mean_nothing_after_their_capture(cu: Driver, graphs: Graphs, stream: c_void_p) -> None:
    event, other = cu.event(2), cu.stream(NON_BLOCKING)
    begin(cu, stream)
    cu.cuEventRecord(event, stream)
    end(graphs, stream)
    for call in (("cuEventQuery", event), ("cuEventSynchronize", event), ("cuStreamWaitEvent", other, event, 0)):
        assert cu.status(*call) == "INVALID_VALUE", call
    begin(cu, stream)
    assert cu.status("cuStreamWaitEvent", stream, event, 0) == "INVALID_VALUE"
    assert cu.status("cuStreamEndCapture", stream, byref(c_void_p())) == "STREAM_CAPTURE_INVALIDATED"
    cu.cuEventRecord(event, other)
    cu.cuEventSynchronize(event)
    cu.cuEventDestroy_v2(event)
    cu.cuStreamDestroy_v2(other)


# --- Graphs that are there --------------------------------------------------------------------------------------------


def test_capture_can_go_on_in_a_graph(cu: Driver, graphs: Graphs, stream: c_void_p) -> None:
    graph = graphs.graph()
    graphs.empty(graph)
    b = graphs.empty(graph)
    cu.cuStreamBeginCaptureToGraph(stream, graph, handles([b, b]), None, c_size_t(2), RELAXED)
    assert info(cu, stream)[2:] == (graph.value, [b.value])
    cu.launch(stream, lambda: None)
    found = c_void_p()
    cu.cuStreamEndCapture(stream, byref(found))
    assert found.value == graph.value
    assert graphs.edges(graph) == [(b.value, graphs.nodes(graph)[2])]
    graphs.run(graph)
    stranger = graphs.empty(graphs.graph())
    bad = ("cuStreamBeginCaptureToGraph", stream, graph, handles([stranger]), None, c_size_t(1), RELAXED)
    assert cu.status(*bad) == "INVALID_VALUE"
    assert cu.status("cuStreamBeginCaptureToGraph", stream, None, None, None, c_size_t(0), RELAXED) == "INVALID_VALUE"


def test_a_graph_can_be_used_while_it_is_captured_but_loses_no_node(
    cu: Driver, graphs: Graphs, stream: c_void_p
) -> None:
    graph, seen = graphs.graph(), []
    node = graphs.host(graph, lambda: seen.append(1))
    cu.cuStreamBeginCaptureToGraph(stream, graph, handles([node]), None, c_size_t(1), RELAXED)
    cu.launch(stream, lambda: seen.append(2))
    assert cu.status("cuGraphDestroyNode", node) == "ILLEGAL_STATE"
    before = graphs.instantiate(graph)
    cu.launch(stream, lambda: seen.append(3))
    cu.cuStreamEndCapture(stream, byref(c_void_p()))
    cu.cuGraphLaunch(before, stream)
    cu.cuStreamSynchronize(stream)
    assert seen == [1, 2]


def test_a_graph_is_captured_by_one_stream_at_a_time(cu: Driver, graphs: Graphs, stream: c_void_p) -> None:
    graph, other = graphs.graph(), cu.stream(NON_BLOCKING)
    cu.cuStreamBeginCaptureToGraph(stream, graph, None, None, c_size_t(0), RELAXED)
    again = ("cuStreamBeginCaptureToGraph", other, graph, None, None, c_size_t(0), RELAXED)
    assert cu.status(*again) == "ILLEGAL_STATE"
    cu.cuStreamEndCapture(stream, byref(c_void_p()))
    cu.cuStreamBeginCaptureToGraph(*again[1:])
    cu.cuStreamEndCapture(other, byref(c_void_p()))
    cu.cuStreamDestroy_v2(other)


def test_the_graph_of_a_capture_is_not_destroyed(cu: Driver, graphs: Graphs, stream: c_void_p) -> None:
    # Not asked of a GPU.
    graph = graphs.graph()
    cu.cuStreamBeginCaptureToGraph(stream, graph, None, None, c_size_t(0), RELAXED)
    assert cu.status("cuGraphDestroy", graph) == "INVALID_VALUE"


def test_dependencies_can_be_changed(cu: Driver, graphs: Graphs, stream: c_void_p) -> None:
    update = "cuStreamUpdateCaptureDependencies"
    assert cu.status(update, stream, None, c_size_t(0), 0) == "ILLEGAL_STATE"
    begin(cu, stream)
    cu.launch(stream, lambda: None)
    graph = c_void_p(info(cu, stream)[2])
    first = graphs.nodes(graph)[0]
    extra = graphs.kernel(graph, "nothing")
    cu.cuStreamUpdateCaptureDependencies(stream, handles([extra, c_void_p(first)]), c_size_t(2), 0)
    assert info(cu, stream)[3] == [first, extra.value]
    for flags, expected in ((0, [first, extra.value]), (1, [extra.value])):
        cu.cuStreamUpdateCaptureDependencies(stream, handles([extra, extra]), c_size_t(2), flags)
        assert info(cu, stream)[3] == expected
    stranger = graphs.empty(graphs.graph())
    for flags in (0, 1):
        assert cu.status(update, stream, handles([extra, stranger]), c_size_t(2), flags) == "INVALID_VALUE"
        assert cu.status(update, stream, None, c_size_t(1), flags) == "INVALID_VALUE"
    assert cu.status(update, stream, handles([extra]), c_size_t(1), 2) == "INVALID_VALUE"
    assert info(cu, stream)[3] == [extra.value]
    data = EdgeData(port=1, type=1)
    cu.cuStreamUpdateCaptureDependencies_v2(stream, handles([extra]), byref(data), c_size_t(1), 1)
    nodes = c_void_p()
    lossy = ("cuStreamGetCaptureInfo_v2", stream, byref(c_int()), None, None, byref(nodes), byref(c_size_t()))
    assert cu.status(*lossy) == "LOSSY_QUERY"
    read, count = c_void_p(), c_size_t()
    cu.cuStreamGetCaptureInfo_v3(stream, byref(c_int()), None, None, byref(nodes), byref(read), byref(count))
    assert (count.value, EdgeData.from_address(read.value).port) == (1, 1)
    cu.cuStreamUpdateCaptureDependencies(stream, None, c_size_t(0), 1)
    cu.launch(stream, lambda: None)
    assert graphs.edges(end(graphs, stream)) == []


def test_serialization_by_program_makes_an_edge_of_that_kind(cu: Driver, graphs: Graphs, stream: c_void_p) -> None:
    begin(cu, stream)
    cu.cuLaunchKernel(graphs.function("nothing"), 1, 1, 1, 1, 1, 1, 0, stream, None, None)
    rows = (LaunchAttribute * 1)(LaunchAttribute(6))
    rows[0].value[0] = 1
    config = LaunchConfig((1, 1, 1), (1, 1, 1), 0, stream.value, ctypes.addressof(rows), 1)
    cu.cuLaunchKernelEx(byref(config), graphs.function("nothing"), None, None)
    graph = end(graphs, stream)
    read, count = EdgeData(), c_size_t(1)
    cu.cuGraphGetEdges_v2(graph, (c_void_p * 1)(), (c_void_p * 1)(), byref(read), byref(count))
    assert (read.port, read.type) == (1, 1)
    graphs.run(graph)


def test_a_capture_of_many_nodes_is_no_trouble(cu: Driver, graphs: Graphs, stream: c_void_p) -> None:
    memory = cu.alloc(4)
    begin(cu, stream)
    fill = cu.library.cuMemsetD8Async
    size = c_size_t(4)
    for value in range(20_000):
        assert fill(memory, value & 255, size, stream) == 0
    graph = end(graphs, stream)
    graphs.run(graph)
    assert cu.read(memory, 4) == bytes([19_999 & 255]) * 4
    cu.cuMemFree_v2(memory)


def test_callbacks_and_host_functions(cu: Driver, graphs: Graphs, stream: c_void_p) -> None:
    begin(cu, stream)
    function = HostFunction(lambda _: None)
    cu.cuLaunchHostFunc_v2(stream, function, None, 1)
    assert cu.status("cuLaunchHostFunc", stream, None, None) == "INVALID_VALUE"
    assert kinds(graphs, end(graphs, stream)) == [HOST]


def test_per_thread_streams_are_captured_and_legacy_ones_are_not(cu: Driver, graphs: Graphs) -> None:
    assert cu.status("cuStreamBeginCapture_v2", LEGACY, RELAXED) == "STREAM_CAPTURE_UNSUPPORTED"
    assert cu.status("cuStreamBeginCapture_v2", None, RELAXED) == "STREAM_CAPTURE_UNSUPPORTED"
    begin(cu, PER_THREAD)
    cu.launch(PER_THREAD, lambda: None)
    assert kinds(graphs, end(graphs, PER_THREAD)) == [HOST]
