# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

"""Updates of executable graphs: as a whole, of single nodes, and why they are refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sim_driver import (
    Driver,
    Gate,
    LaunchAttribute,
    LaunchConfig,
    byref,
    c_int,
    c_size_t,
    c_uint,
    c_uint64,
    c_void_p,
    ctypes,
    offset,
)
from sim_graphs import (
    GRAPH,
    HOST,
    MEM_ALLOC,
    MEMSET,
    NODE_PRIORITY,
    AllocParams,
    ChildParams,
    EdgeData,
    FillParams,
    Graphs,
    HostParams,
    NodeParams,
    User,
    ask,
    copy_params,
    handles,
)

OK, ERROR, TOPOLOGY, TYPE, _, PARAMETERS, UNSUPPORTED, FUNCTION, ATTRIBUTES = range(9)
COOPERATIVE, CLUSTER, PRIORITY, PREFERRED_CLUSTER, UPDATABLE, CARVEOUT, NVLINK_CENTRIC = 2, 4, 8, 11, 13, 14, 16


class ResultInfo(ctypes.Structure):
    _fields_ = [("result", c_int), ("node", c_void_p), ("source", c_void_p)]


class AttributeValue(ctypes.Structure):
    _fields_ = [("words", c_uint * 16)]


def update(cu: Driver, executable: c_void_p, graph: c_void_p) -> tuple[int, int | None, int | None]:
    info = ResultInfo(77)
    status = cu.status("cuGraphExecUpdate_v2", executable, graph, byref(info))
    assert status == ("SUCCESS" if info.result == OK else "GRAPH_EXEC_UPDATE_FAILURE")
    return info.result, info.node, info.source


def set_attribute(cu: Driver, node: c_void_p, number: int, *words: int) -> str:
    value = AttributeValue((c_uint * 16)(*words))
    return cu.status("cuGraphKernelNodeSetAttribute", node, number, byref(value))


def get_attribute(cu: Driver, node: c_void_p, number: int) -> list[int]:
    value = AttributeValue()
    cu.cuGraphKernelNodeGetAttribute(node, number, byref(value))
    return list(value.words)


# --- Whole graphs -----------------------------------------------------------------------------------------------------


def test_an_update_takes_over_the_parameters_of_a_graph_like_it(cu: Driver, graphs: Graphs) -> None:
    memory, seen = cu.alloc(64), []

    def build(value: int) -> c_void_p:
        graph, inner = graphs.graph(), graphs.graph()
        graphs.kernel(inner, "store", offset(memory, 32), c_uint(value))
        filled = graphs.fill(graph, memory, value, 16)
        child = graphs.child(graph, inner)
        stored = graphs.kernel(graph, "store", offset(memory, 16), c_uint(value), after=[filled, child])
        graphs.host(graph, lambda: seen.append(value), stored)
        return graph

    executable = graphs.instantiate(build(1))
    assert update(cu, executable, build(2)) == (OK, None, None)
    cu.cuGraphLaunch(executable, None)
    cu.cuStreamSynchronize(None)
    read = cu.read(memory, 36)
    assert (read[:16], read[16], read[32], seen) == (b"\2" * 16, 2, 2, [2])
    node, result = c_void_p(), c_int()
    cu.cuGraphExecUpdate(executable, build(3), byref(node), byref(result))
    assert (result.value, node.value) == (OK, None)
    cu.cuMemFree_v2(memory)


def test_launches_under_way_keep_what_they_started_with(cu: Driver, graphs: Graphs) -> None:
    graph, other, gate, seen = graphs.graph(), graphs.graph(), Gate(), []
    graphs.host(graph, lambda: seen.append("old"), graphs.host(graph, gate.wait))
    graphs.host(other, lambda: seen.append("new"), graphs.host(other, lambda: None))
    executable, stream = graphs.instantiate(graph), cu.stream()
    cu.cuGraphLaunch(executable, stream)
    assert update(cu, executable, other)[0] == OK
    cu.cuGraphLaunch(executable, stream)
    gate.open()
    cu.cuStreamSynchronize(stream)
    assert seen == ["old", "new"]
    cu.cuStreamDestroy_v2(stream)


def test_another_shape_is_refused_with_the_place(cu: Driver, graphs: Graphs) -> None:
    def build(*edges: tuple[int, int], count: int = 4) -> tuple[c_void_p, list[c_void_p]]:
        graph = graphs.graph()
        nodes = [graphs.empty(graph) for _ in range(count)]
        for tail, head in edges:
            cu.cuGraphAddDependencies(graph, handles([nodes[tail]]), handles([nodes[head]]), c_size_t(1))
        return graph, nodes

    graph, _ = build((0, 1), (0, 2), (1, 3), (2, 3))
    executable = graphs.instantiate(graph)
    assert update(cu, executable, build((0, 1), (0, 2), (1, 3), (2, 3))[0]) == (OK, None, None)
    assert update(cu, executable, build(count=3)[0]) == (TOPOLOGY, None, None)
    more_ends, nodes = build((0, 1), (0, 2), (1, 3))
    assert update(cu, executable, more_ends) == (TOPOLOGY, nodes[2].value, None)
    assert update(cu, graphs.instantiate(more_ends), graph) == (TOPOLOGY, None, None)
    fewer, nodes = build((0, 1), (1, 2), (2, 3))
    assert update(cu, executable, fewer) == (TOPOLOGY, nodes[3].value, None)
    crossed, nodes = build((0, 1), (1, 2), (1, 3), (2, 3))
    result, node, source = update(cu, executable, crossed)
    assert (result, node, source) == (TOPOLOGY, nodes[2].value, nodes[1].value)
    cu.cuGraphLaunch(executable, None)


def test_the_last_node_of_another_kind_is_named(cu: Driver, graphs: Graphs) -> None:
    graph, other = graphs.graph(), graphs.graph()
    graphs.empty(graph)
    graphs.kernel(graph, "nothing")
    graphs.kernel(other, "nothing")
    last = graphs.empty(other)
    assert update(cu, graphs.instantiate(graph), other) == (TYPE, last.value, None)


def test_edges_keep_their_kind(cu: Driver, graphs: Graphs) -> None:
    def build(*data: int) -> tuple[c_void_p, list[c_void_p]]:
        graph = graphs.graph()
        nodes = [graphs.kernel(graph, "nothing") for _ in range(2)]
        edge = (handles(nodes[:1]), handles(nodes[1:]), byref(EdgeData(*data)), c_size_t(1))
        cu.cuGraphAddDependencies_v2(graph, *edge)
        return graph, nodes

    executable = graphs.instantiate(build(1, 0, 1)[0])
    assert update(cu, executable, build(1, 0, 1)[0]) == (OK, None, None)
    plain, nodes = build(0, 0, 0)
    assert update(cu, executable, plain) == (TOPOLOGY, nodes[1].value, nodes[0].value)


def refused(cu: Driver, graphs: Graphs, first: Callable[[c_void_p], c_void_p], second: Callable[..., c_void_p]) -> int:
    graph, other = graphs.graph(), graphs.graph()
    first(graph)
    executable = graphs.instantiate(graph)
    node = second(other)
    result = update(cu, executable, other)
    assert result[1] == (None if result[0] == OK else node.value)
    cu.cuGraphExecDestroy(executable)
    return result[0]


def test_reasons_for_refusals_are_told_with_the_node(cu: Driver, graphs: Graphs) -> None:
    memory, host, known = cu.alloc(64), ctypes.create_string_buffer(64), cu.pinned(64)
    address, pinned = ctypes.addressof(host), ctypes.addressof(known)
    context: c_void_p = cu.out(c_void_p, "cuCtxCreate_v4", None, 0, 0)
    elsewhere = cu.out(c_void_p, "cuModuleLoadData", b".version 8.0\n.target sm_52\n.address_size 64\n.entry f(){ret;}")
    foreign: c_void_p = cu.out(c_void_p, "cuModuleGetFunction", elsewhere, b"f")
    foreign_memory = cu.alloc(64)
    cu.cuCtxPopCurrent_v2(byref(c_void_p()))

    def rectangle(graph: c_void_p, height: int, value: int = 0) -> c_void_p:
        params = FillParams(memory.value, 8, value, 1, 8, height)
        return graphs.node("MemsetNode", graph, [], byref(params), graphs.context)

    def box(graph: c_void_p, height: int) -> c_void_p:
        params = copy_params(memory, offset(memory, 32), 4)
        params.height, params.source.pitch, params.target.pitch = height, 8, 8
        return graphs.node("MemcpyNode", graph, [], byref(params), graphs.context)

    def kernel_of(graph: c_void_p, function: c_void_p) -> c_void_p:
        params = graphs.kernel_params("nothing")
        params.function = function.value
        return graphs.node("KernelNode_v2", graph, [], byref(params))

    def cooperative(graph: c_void_p) -> c_void_p:
        node = graphs.kernel(graph, "nothing")
        assert set_attribute(cu, node, COOPERATIVE, 1) == "SUCCESS"
        return node

    def kernel(graph: c_void_p) -> c_void_p:
        return graphs.kernel(graph, "nothing")

    cases = [
        (kernel, lambda g: graphs.empty(g), TYPE),
        (kernel, lambda g: graphs.kernel(g, "count"), OK),
        (kernel, lambda g: kernel_of(g, foreign), FUNCTION),
        (kernel, cooperative, ATTRIBUTES),
        (lambda g: graphs.copy(g, memory, address, 8), lambda g: graphs.copy(g, memory, address, 16), OK),
        (lambda g: graphs.copy(g, memory, address, 8), lambda g: graphs.copy(g, memory, memory, 8), PARAMETERS),
        (lambda g: graphs.copy(g, memory, address, 8), lambda g: graphs.copy(g, memory, pinned, 8), OK),
        (lambda g: graphs.copy(g, pinned, memory, 8), lambda g: graphs.copy(g, address, memory, 8), OK),
        (lambda g: box(g, 1), lambda g: box(g, 2), PARAMETERS),
        (lambda g: box(g, 2), lambda g: box(g, 1), PARAMETERS),
        (lambda g: box(g, 2), lambda g: box(g, 3), PARAMETERS),
        (lambda g: box(g, 2), lambda g: box(g, 2), OK),
        (lambda g: graphs.copy(g, memory, memory, 8), lambda g: graphs.copy(g, foreign_memory, memory, 8), PARAMETERS),
        (lambda g: graphs.fill(g, memory, 1, 8), lambda g: graphs.fill(g, memory, 2, 16), OK),
        (lambda g: rectangle(g, 2), lambda g: rectangle(g, 2, 5), OK),
        (lambda g: rectangle(g, 2), lambda g: rectangle(g, 3), PARAMETERS),
        (lambda g: graphs.alloc(g, 64)[0], lambda g: graphs.alloc(g, 64)[0], UNSUPPORTED),
    ]
    for first, second, expected in cases:
        assert refused(cu, graphs, first, second) == expected
    cu.cuMemFree_v2(memory)
    cu.cuMemFreeHost(c_void_p(pinned))
    for graph in graphs.graphs:
        cu.cuGraphDestroy(graph)
    graphs.graphs.clear()
    cu.cuCtxDestroy_v2(context)


def test_priorities_are_fixed_where_they_count(cu: Driver, graphs: Graphs) -> None:
    def build(priority: int) -> c_void_p:
        graph = graphs.graph()
        assert set_attribute(cu, graphs.kernel(graph, "nothing"), PRIORITY, priority & 0xFFFFFFFF) == "SUCCESS"
        return graph

    strict = graphs.instantiate(build(-1), NODE_PRIORITY)
    assert update(cu, strict, build(-2))[0] == ATTRIBUTES
    assert update(cu, strict, build(-1))[0] == OK
    assert update(cu, graphs.instantiate(build(-1)), build(-2))[0] == OK


def test_a_graph_with_memory_updates_its_own_executable(cu: Driver, graphs: Graphs) -> None:
    graph = graphs.graph()
    allocated, address = graphs.alloc(graph, 64)
    filled = graphs.fill(graph, address, 1, 64, allocated)
    graphs.free(graph, address, filled)
    executable = graphs.instantiate(graph)
    params = FillParams(address.value, 0, 2, 1, 64, 1)
    cu.cuGraphMemsetNodeSetParams(filled, byref(params))
    assert update(cu, executable, graph)[0] == OK
    cu.cuGraphLaunch(executable, None)
    cu.cuStreamSynchronize(None)


def test_an_update_replaces_the_user_objects(cu: Driver, graphs: Graphs) -> None:
    graph, other, old, new = graphs.graph(), graphs.graph(), User(cu), User(cu)
    gate, stream = Gate(), cu.stream()
    graphs.host(graph, gate.wait)
    graphs.host(other, lambda: None)
    cu.cuGraphRetainUserObject(graph, old.handle, 1, 1)
    cu.cuGraphRetainUserObject(other, new.handle, 1, 1)
    executable = graphs.instantiate(graph)
    cu.cuGraphLaunch(executable, stream)
    cu.cuGraphDestroy(graph)
    assert update(cu, executable, other)[0] == OK
    cu.cuGraphDestroy(other)
    assert old.alive()
    gate.open()
    assert old.gone()
    assert new.alive()
    cu.cuGraphExecDestroy(executable)
    assert new.gone()
    cu.cuStreamSynchronize(stream)
    cu.cuStreamDestroy_v2(stream)


def test_wrong_arguments_of_updates(cu: Driver, graphs: Graphs) -> None:
    graph = graphs.graph()
    executable, info = graphs.instantiate(graph), ResultInfo(77)
    assert cu.status("cuGraphExecUpdate_v2", executable, graph, None) == "INVALID_VALUE"
    assert cu.status("cuGraphExecUpdate_v2", graph, graph, byref(info)) == "INVALID_VALUE"
    assert info.result == ERROR
    assert cu.status("cuGraphExecUpdate_v2", executable, executable, byref(info)) == "INVALID_VALUE"
    assert cu.status("cuGraphExecUpdate", executable, graph, None, None) == "INVALID_VALUE"


def test_a_hundred_thousand_nodes_are_updated_in_seconds(cu: Driver, graphs: Graphs) -> None:
    graph = graphs.graph()
    node, after, one = c_void_p(), (c_void_p * 1)(), c_size_t(1)
    cu.cuGraphAddEmptyNode(byref(node), graph, None, c_size_t(0))
    for _ in range(99_999):
        after[0] = node.value
        cu.library.cuGraphAddEmptyNode(byref(node), graph, after, one)
    executable = graphs.instantiate(graph)
    for _ in range(3):
        assert update(cu, executable, graph)[0] == OK


# --- Single nodes -----------------------------------------------------------------------------------------------------


def test_single_nodes_of_an_executable_change(cu: Driver, graphs: Graphs) -> None:
    memory, target, seen = cu.alloc(64), ctypes.create_string_buffer(16), []
    graph = graphs.graph()
    filled = graphs.fill(graph, memory, 1, 16)
    stored = graphs.kernel(graph, "store", memory, c_uint(1), after=[filled])
    copied = graphs.copy(graph, ctypes.addressof(target), memory, 8, stored)
    called = graphs.host(graph, lambda: seen.append("old"), copied)
    executable, other = graphs.instantiate(graph), graphs.graph()
    graphs.host(other, lambda: seen.append("new"))
    cu.cuGraphExecMemsetNodeSetParams(
        executable, filled, byref(FillParams(memory.value, 0, 9, 1, 16, 1)), graphs.context
    )
    params = graphs.kernel_params("store", memory, c_uint(7))
    cu.cuGraphExecKernelNodeSetParams_v2(executable, stored, byref(params))
    copy = copy_params(ctypes.addressof(target) + 8, memory, 8)
    cu.cuGraphExecMemcpyNodeSetParams(executable, copied, byref(copy), graphs.context)
    host = ask(cu, HostParams, "cuGraphHostNodeGetParams", c_void_p(graphs.nodes(other)[0]))
    cu.cuGraphExecHostNodeSetParams(executable, called, byref(host))
    cu.cuGraphLaunch(executable, None)
    cu.cuStreamSynchronize(None)
    assert (target.raw, seen) == (bytes(8) + b"\7\0\0\0" + b"\x09" * 4, ["new"])
    cu.cuGraphExecKernelNodeSetParams(executable, stored, byref(graphs.kernel_params("store", memory, c_uint(6))))
    graphs.run(graph)
    assert (target.raw[:8], seen) == (b"\1\0\0\0\1\1\1\1", ["new", "old"])
    cu.cuMemFree_v2(memory)


def test_nodes_of_any_kind_change_by_one_structure(cu: Driver, graphs: Graphs) -> None:
    memory, graph = cu.alloc(64), graphs.graph()
    node = graphs.fill(graph, memory, 1, 64)
    allocated, _ = graphs.alloc(graph, 64)
    executable = graphs.instantiate(graph)
    params = NodeParams(type=MEMSET)
    params.fill = FillParams(memory.value, 0, 8, 1, 64, 1)
    cu.cuGraphExecNodeSetParams(executable, node, byref(params))
    cu.cuGraphLaunch(executable, None)
    assert cu.read(memory, 64) == b"\x08" * 64
    assert cu.status("cuGraphExecNodeSetParams", executable, node, byref(NodeParams(type=HOST))) == "INVALID_VALUE"
    alloc = NodeParams(type=MEM_ALLOC)
    assert cu.status("cuGraphExecNodeSetParams", executable, allocated, byref(alloc)) == "NOT_SUPPORTED"
    cu.cuMemFree_v2(memory)
    cu.cuMemFree_v2(ask_address(cu, allocated))


def ask_address(cu: Driver, node: c_void_p) -> c_uint64:
    return c_uint64(ask(cu, AllocParams, "cuGraphMemAllocNodeGetParams", node).address)


def test_changes_of_nodes_that_are_refused(cu: Driver, graphs: Graphs) -> None:
    memory, graph = cu.alloc(64), graphs.graph()
    filled, copied = graphs.fill(graph, memory, 1, 16), graphs.copy(graph, memory, offset(memory, 32), 8)
    kernel = graphs.kernel(graph, "nothing")
    executable = graphs.instantiate(graph)
    late = graphs.fill(graph, memory, 1, 16)
    flat, tall = FillParams(memory.value, 0, 9, 1, 16, 1), FillParams(memory.value, 8, 9, 1, 8, 2)
    box = copy_params(memory, offset(memory, 32), 8)
    box.height, box.source.pitch, box.target.pitch = 2, 8, 8
    host = ctypes.create_string_buffer(8)
    for call in (
        ("cuGraphExecMemsetNodeSetParams", executable, late, byref(flat), graphs.context),
        ("cuGraphExecMemsetNodeSetParams", executable, copied, byref(flat), graphs.context),
        ("cuGraphExecMemsetNodeSetParams", executable, filled, byref(tall), graphs.context),
        ("cuGraphExecMemsetNodeSetParams", graph, filled, byref(flat), graphs.context),
        ("cuGraphExecMemcpyNodeSetParams", executable, copied, byref(box), graphs.context),
        (
            "cuGraphExecMemcpyNodeSetParams",
            executable,
            copied,
            byref(copy_params(memory, ctypes.addressof(host), 8)),
            graphs.context,
        ),
        ("cuGraphExecKernelNodeSetParams_v2", executable, kernel, None),
        ("cuGraphExecHostNodeSetParams", executable, kernel, None),
        ("cuGraphExecChildGraphNodeSetParams", executable, kernel, graph),
    ):
        assert cu.status(*call) == "INVALID_VALUE", call
    cu.cuMemFree_v2(memory)


def test_child_graphs_of_executables_change(cu: Driver, graphs: Graphs) -> None:
    inner, other, unlike, graph, seen = (*(graphs.graph() for _ in range(4)), [])
    graphs.host(inner, lambda: seen.append("old"))
    graphs.host(other, lambda: seen.append("new"))
    graphs.empty(unlike)
    node = graphs.child(graph, inner)
    executable = graphs.instantiate(graph)
    call = ("cuGraphExecChildGraphNodeSetParams", executable, node, unlike)
    assert cu.status(*call) == "GRAPH_EXEC_UPDATE_FAILURE"
    cu.cuGraphExecChildGraphNodeSetParams(executable, node, other)
    cu.cuGraphLaunch(executable, None)
    cu.cuStreamSynchronize(None)
    params = NodeParams(type=GRAPH)
    params.child = ChildParams(inner.value, 0)
    cu.cuGraphExecNodeSetParams(executable, node, byref(params))
    cu.cuGraphLaunch(executable, None)
    cu.cuStreamSynchronize(None)
    assert seen == ["new", "old"]


def test_events_of_executables_change(cu: Driver, graphs: Graphs) -> None:
    graph, first, second = graphs.graph(), cu.event(), cu.event()
    recorded = graphs.node("EventRecordNode", graph, [], first)
    waited = graphs.node("EventWaitNode", graph, [recorded], first)
    executable = graphs.instantiate(graph)
    cu.cuGraphExecEventRecordNodeSetEvent(executable, recorded, second)
    cu.cuGraphExecEventWaitNodeSetEvent(executable, waited, second)
    cu.cuGraphLaunch(executable, None)
    cu.cuStreamSynchronize(None)
    milliseconds = ctypes.c_float()
    assert cu.status("cuEventElapsedTime", byref(milliseconds), first, first) == "INVALID_HANDLE"
    assert cu.status("cuEventElapsedTime", byref(milliseconds), second, second) == "SUCCESS"
    for event in (first, second):
        cu.cuEventDestroy_v2(event)


def test_nodes_can_be_switched_off_and_on(cu: Driver, graphs: Graphs) -> None:
    memory, graph = cu.alloc(4), graphs.graph()
    filled = graphs.fill(graph, memory, 1, 4)
    stored = graphs.kernel(graph, "store", memory, c_uint(2), after=[filled])
    empty = graphs.empty(graph, stored)
    executable, enabled = graphs.instantiate(graph), c_uint(9)
    for on, expected in ((0, b"\1\1\1\1"), (1, b"\2\0\0\0")):
        cu.cuGraphNodeSetEnabled(executable, stored, on)
        cu.cuGraphNodeGetEnabled(executable, stored, byref(enabled))
        assert enabled.value == on
        cu.cuGraphLaunch(executable, None)
        assert cu.read(memory, 4) == expected
    assert cu.status("cuGraphNodeSetEnabled", executable, empty, 0) == "INVALID_VALUE"
    assert cu.status("cuGraphNodeGetEnabled", executable, empty, byref(enabled)) == "INVALID_VALUE"
    assert cu.status("cuGraphNodeGetEnabled", executable, stored, None) == "INVALID_VALUE"
    cu.cuMemFree_v2(memory)


# --- Attributes of kernels --------------------------------------------------------------------------------------------


def test_kernel_nodes_have_attributes(cu: Driver, graphs: Graphs) -> None:
    graph = graphs.graph()
    node, other = graphs.kernel(graph, "nothing"), graphs.kernel(graph, "nothing")
    assert get_attribute(cu, node, COOPERATIVE)[0] == 0
    assert get_attribute(cu, node, CARVEOUT)[0] == 0
    assert set_attribute(cu, node, COOPERATIVE, 1) == set_attribute(cu, node, CARVEOUT, 50) == "SUCCESS"
    for given, told in ((-99, -5), (99, 0), (-1, -1)):
        assert set_attribute(cu, other, PRIORITY, c_uint(given).value) == "SUCCESS"
        assert c_int(get_attribute(cu, other, PRIORITY)[0]).value == told
    params = graphs.kernel_params("count", grid=2)
    cu.cuGraphKernelNodeSetParams_v2(node, byref(params))
    assert [get_attribute(cu, node, which)[0] for which in (COOPERATIVE, CARVEOUT)] == [1, 50]
    cu.cuGraphKernelNodeCopyAttributes(other, node)
    assert [get_attribute(cu, other, which)[0] for which in (COOPERATIVE, CARVEOUT, PRIORITY)] == [1, 50, 0]
    graphs.run(graph)
    assert set_attribute(cu, node, UPDATABLE, 1) == "NOT_SUPPORTED"
    for number, word in ((CARVEOUT, 101), (3, 1), (99, 0), (PREFERRED_CLUSTER, 0), (NVLINK_CENTRIC, 0)):
        assert set_attribute(cu, node, number, word) == "INVALID_VALUE"
    assert cu.status("cuGraphKernelNodeGetAttribute", node, 3, byref(AttributeValue())) == "INVALID_VALUE"
    assert cu.status("cuGraphKernelNodeSetAttribute", node, COOPERATIVE, None) == "INVALID_VALUE"
    assert set_attribute(cu, graphs.empty(graph), COOPERATIVE, 1) == "INVALID_VALUE"


def test_clusters_and_cooperation_are_checked_when_they_are_set(cu: Driver, graphs: Graphs) -> None:
    graph = graphs.graph()
    node = graphs.node("KernelNode_v2", graph, [], byref(graphs.kernel_params("nothing", grid=6, block=32)))
    assert set_attribute(cu, node, CLUSTER, 4, 1, 1) == "INVALID_CLUSTER_SIZE"
    assert set_attribute(cu, node, CLUSTER, 2, 1, 1) == "SUCCESS"
    executable = graphs.instantiate(graph)
    three = byref(graphs.kernel_params("nothing", grid=3, block=32))
    assert cu.status("cuGraphKernelNodeSetParams_v2", node, three) == "INVALID_CLUSTER_SIZE"
    assert cu.status("cuGraphExecKernelNodeSetParams_v2", executable, node, three) == "INVALID_CLUSTER_SIZE"
    other = graphs.node("KernelNode_v2", graph, [], three)
    assert cu.status("cuGraphKernelNodeCopyAttributes", other, node) == "INVALID_VALUE"
    graphs.run(graph)
    assert get_attribute(cu, node, CLUSTER)[:3] == [2, 1, 1]
    assert set_attribute(cu, other, COOPERATIVE, 1) == "SUCCESS"
    many = byref(graphs.kernel_params("nothing", grid=1 << 20))
    assert cu.status("cuGraphKernelNodeSetParams_v2", other, many) == "COOPERATIVE_LAUNCH_TOO_LARGE"
    executable = graphs.instantiate(graph)
    status = cu.status("cuGraphExecKernelNodeSetParams_v2", executable, other, many)
    assert status == "COOPERATIVE_LAUNCH_TOO_LARGE"


def test_a_cluster_of_zeros_is_none(cu: Driver, graphs: Graphs) -> None:
    graph = graphs.graph()
    node = graphs.node("KernelNode_v2", graph, [], byref(graphs.kernel_params("nothing", grid=4)))
    for words in ((2, 1, 1), (0, 0, 0)):
        assert set_attribute(cu, node, CLUSTER, *words) == "SUCCESS"
        assert get_attribute(cu, node, CLUSTER)[:3] == list(words)
    assert set_attribute(cu, node, CLUSTER, 2, 0, 0) == "INVALID_CLUSTER_SIZE"
    params = graphs.kernel_params("nothing", grid=3)
    cu.cuGraphKernelNodeSetParams_v2(node, byref(params))
    graphs.run(graph)


@pytest.mark.parametrize("number", [COOPERATIVE, CLUSTER])
def test_captured_launches_keep_their_attributes(cu: Driver, graphs: Graphs, number: int) -> None:
    stream, graph = cu.stream(1), c_void_p()
    rows = (LaunchAttribute * 1)(LaunchAttribute(number))
    rows[0].value[0] = rows[0].value[1] = rows[0].value[2] = 1
    config = LaunchConfig((1, 1, 1), (1, 1, 1), 0, stream.value, ctypes.addressof(rows), 1)
    cu.cuStreamBeginCapture_v2(stream, 2)
    cu.cuLaunchKernelEx(byref(config), graphs.function("nothing"), None, None)
    cu.cuStreamEndCapture(stream, byref(graph))
    graphs.graphs.append(graph)
    assert get_attribute(cu, c_void_p(graphs.nodes(graph)[0]), number)[0] == 1
    cu.cuStreamDestroy_v2(stream)
