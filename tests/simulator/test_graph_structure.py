# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

"""Graphs as descriptions: nodes, edges, clones and what is refused."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from sim_driver import Driver, byref, c_int, c_size_t, c_uint, c_uint64, c_void_p, ctypes, time
from sim_graphs import (
    EMPTY,
    GRAPH,
    HOST,
    KERNEL,
    MEMSET,
    ChildParams,
    EdgeData,
    FillParams,
    Graphs,
    InstantiateParams,
    NodeParams,
    ask,
    handles,
)

HANDLES = 1 << 10  # in pictures


def kind(cu: Driver, node: c_void_p) -> int:
    return ask(cu, c_int, "cuGraphNodeGetType", node).value


def link(cu: Driver, graph: c_void_p, *pairs: tuple[c_void_p, c_void_p]) -> str:
    tails, heads = handles([a for a, _ in pairs]), handles([b for _, b in pairs])
    return cu.status("cuGraphAddDependencies", graph, tails, heads, c_size_t(len(pairs)))


def unlink(cu: Driver, graph: c_void_p, *pairs: tuple[c_void_p, c_void_p]) -> str:
    tails, heads = handles([a for a, _ in pairs]), handles([b for _, b in pairs])
    return cu.status("cuGraphRemoveDependencies", graph, tails, heads, c_size_t(len(pairs)))


def test_a_graph_lists_its_nodes_in_the_order_in_which_they_were_made(graphs: Graphs) -> None:
    graph = graphs.graph()
    assert graphs.nodes(graph) == []
    a, b = graphs.empty(graph), graphs.empty(graph)
    c = graphs.empty(graph, b, a)
    assert graphs.nodes(graph) == [a.value, b.value, c.value]
    assert sorted(graphs.list("cuGraphGetRootNodes", graph)) == sorted([a.value, b.value])
    assert sorted(graphs.edges(graph)) == sorted([(b.value, c.value), (a.value, c.value)])
    assert graphs.list("cuGraphNodeGetDependencies", c) == [b.value, a.value]
    assert graphs.list("cuGraphNodeGetDependentNodes", a) == [c.value]


def test_lists_that_are_longer_end_in_null_and_shorter_ones_hold_the_first(graphs: Graphs, cu: Driver) -> None:
    graph = graphs.graph()
    a, b = graphs.empty(graph), graphs.empty(graph)
    room, count = (c_void_p * 4)(7, 7, 7, 7), c_size_t(4)
    cu.cuGraphGetNodes(graph, room, byref(count))
    assert (list(room), count.value) == ([a.value, b.value, None, None], 2)
    count.value = 1
    cu.cuGraphGetNodes(graph, room, byref(count))
    assert count.value == 1


def test_an_array_without_room_is_refused(graphs: Graphs, cu: Driver) -> None:
    graph, count = graphs.graph(), c_size_t(7)
    cu.cuGraphGetNodes(graph, None, byref(count))
    assert count.value == 0
    assert cu.status("cuGraphGetNodes", graph, (c_void_p * 1)(), byref(count)) == "INVALID_VALUE"


def test_the_last_root_comes_first(graphs: Graphs, cu: Driver) -> None:
    graph = graphs.graph()
    a, b, c, d = (graphs.empty(graph) for _ in range(4))
    assert link(cu, graph, (c, d), (a, d), (b, d)) == "SUCCESS"
    assert graphs.list("cuGraphGetRootNodes", graph) == [c.value, b.value, a.value]
    assert graphs.list("cuGraphNodeGetDependencies", d) == [c.value, a.value, b.value]


def test_nodes_tell_their_kind_graph_and_number(graphs: Graphs, cu: Driver) -> None:
    graph = graphs.graph()
    memory = cu.alloc(64)
    nodes = [
        graphs.empty(graph),
        graphs.host(graph, lambda: None),
        graphs.kernel(graph, "nothing"),
        graphs.fill(graph, memory, 1, 64),
        graphs.child(graph, graph),
    ]
    assert [kind(cu, node) for node in nodes] == [EMPTY, HOST, KERNEL, MEMSET, GRAPH]
    assert [ask(cu, c_uint, "cuGraphNodeGetLocalId", node).value for node in nodes] == [0, 1, 2, 3, 4]
    assert {ask(cu, c_void_p, "cuGraphNodeGetContainingGraph", node).value for node in nodes} == {graph.value}
    assert len({ask(cu, c_uint64, "cuGraphNodeGetToolsId", node).value for node in nodes}) == 5
    assert ask(cu, c_uint, "cuGraphGetId", graph).value != ask(cu, c_uint, "cuGraphGetId", graphs.graph()).value
    cu.cuMemFree_v2(memory)


def test_edges_come_and_go(graphs: Graphs, cu: Driver) -> None:
    graph = graphs.graph()
    a, b, c = (graphs.empty(graph) for _ in range(3))
    assert link(cu, graph, (a, b), (b, c)) == "SUCCESS"
    assert unlink(cu, graph, (a, b)) == "SUCCESS"
    assert graphs.edges(graph) == [(b.value, c.value)]
    cu.cuGraphDestroyNode(b)
    assert graphs.edges(graph) == []
    assert graphs.nodes(graph) == [a.value, c.value]
    assert link(cu, graph) == unlink(cu, graph) == "SUCCESS"


def test_edges_that_cannot_be_are_refused(graphs: Graphs, cu: Driver) -> None:
    graph, other = graphs.graph(), graphs.graph()
    a, b, c, stranger = graphs.empty(graph), graphs.empty(graph), graphs.empty(graph), graphs.empty(other)
    assert link(cu, graph, (a, b)) == "SUCCESS"
    for pair in ((a, b), (a, stranger), (stranger, a), (a, a)):
        assert link(cu, graph, pair) == "INVALID_VALUE"
        assert graphs.edges(graph) == [(a.value, b.value)]
    for pair in ((b, c), (b, a), (stranger, a)):
        assert unlink(cu, graph, pair) == "INVALID_VALUE"
        assert graphs.edges(graph) == [(a.value, b.value)]
    assert cu.status("cuGraphAddDependencies", graph, None, None, c_size_t(1)) == "INVALID_VALUE"


def test_what_comes_before_a_change_of_edges_that_is_refused_is_done(graphs: Graphs, cu: Driver) -> None:
    graph = graphs.graph()
    a, b, c = (graphs.empty(graph) for _ in range(3))
    for pairs in ([(a, b), (a, b)], [(b, c), (a, b), (a, c)]):
        assert link(cu, graph, *pairs) == "INVALID_VALUE"
    assert graphs.edges(graph) == [(a.value, b.value), (b.value, c.value)]
    for pairs in ([(a, b), (a, b)], [(b, c), (a, c)]):
        assert unlink(cu, graph, *pairs) == "INVALID_VALUE"
    assert graphs.edges(graph) == []


@pytest.mark.parametrize("which", ["stranger", "twice", "destroyed", "null"])
def test_nodes_depend_on_nodes_of_their_graph_only(graphs: Graphs, cu: Driver, which: str) -> None:
    graph, other = graphs.graph(), graphs.graph()
    a, b, stranger, gone = graphs.empty(graph), graphs.empty(graph), graphs.empty(other), graphs.empty(graph)
    cu.cuGraphDestroyNode(gone)
    after = {"stranger": [stranger], "twice": [a, a], "destroyed": [gone], "null": [c_void_p(None)]}[which]
    count = c_size_t(len(after))
    assert cu.status("cuGraphAddEmptyNode", byref(c_void_p()), graph, handles(after), count) == "INVALID_VALUE"
    assert cu.status("cuGraphAddEmptyNode", byref(c_void_p()), graph, None, c_size_t(1)) == "INVALID_VALUE"
    assert graphs.nodes(graph) == [a.value, b.value]


def test_edge_data_is_kept_and_must_not_be_lost(graphs: Graphs, cu: Driver) -> None:
    graph = graphs.graph()
    a, b = graphs.kernel(graph, "nothing"), graphs.kernel(graph, "nothing")
    data = EdgeData(port=1, type=1)
    cu.cuGraphAddDependencies_v2(graph, handles([a]), handles([b]), byref(data), c_size_t(1))
    count, found, read = c_size_t(1), (c_void_p * 1)(), EdgeData()
    cu.cuGraphNodeGetDependencies_v2(b, found, byref(read), byref(count))
    assert (found[0], read.port, read.type) == (a.value, 1, 1)
    assert cu.status("cuGraphNodeGetDependencies", b, found, byref(count)) == "LOSSY_QUERY"
    assert cu.status("cuGraphNodeGetDependentNodes", a, found, byref(count)) == "LOSSY_QUERY"
    assert cu.status("cuGraphGetEdges", graph, found, (c_void_p * 1)(), byref(count)) == "LOSSY_QUERY"
    assert cu.status("cuGraphNodeGetDependencies", b, None, byref(count)) == "SUCCESS"
    cu.cuGraphRemoveDependencies_v2(graph, handles([a]), handles([b]), byref(data), c_size_t(1))
    assert graphs.edges(graph) == []


def test_without_its_data_an_edge_of_any_kind_is_removed(graphs: Graphs, cu: Driver) -> None:
    graph = graphs.graph()
    a, b = graphs.kernel(graph, "nothing"), graphs.kernel(graph, "nothing")
    ends, data, count = (handles([a]), handles([b])), EdgeData(port=1, type=1), c_size_t(1)
    wrong = EdgeData(port=2, type=1)
    cu.cuGraphAddDependencies_v2(graph, *ends, byref(data), count)
    assert cu.status("cuGraphRemoveDependencies_v2", graph, *ends, byref(wrong), count) == "INVALID_VALUE"
    assert cu.status("cuGraphAddDependencies_v2", graph, *ends, None, count) == "INVALID_VALUE"
    cu.cuGraphRemoveDependencies_v2(graph, *ends, None, count)
    assert cu.status("cuGraphRemoveDependencies_v2", graph, *ends, byref(data), count) == "INVALID_VALUE"
    assert graphs.edges(graph) == []


def test_edge_data_that_means_nothing_is_refused(graphs: Graphs, cu: Driver) -> None:
    graph = graphs.graph()
    empty, kernel, last = graphs.empty(graph), graphs.kernel(graph, "nothing"), graphs.kernel(graph, "nothing")
    for node, after, data in (
        (empty, last, EdgeData(port=1, type=1)),
        (kernel, empty, EdgeData(port=1, type=1)),
        (kernel, last, EdgeData(port=1)),
        (kernel, last, EdgeData(type=1)),
        (empty, last, EdgeData(port=2)),
        (kernel, last, EdgeData(port=3)),
        (kernel, last, EdgeData(to=1)),
        (kernel, last, EdgeData(type=2)),
        (kernel, last, EdgeData(pad=(1, 0, 0, 0, 0))),
    ):
        ends = handles([node]), handles([after])
        assert cu.status("cuGraphAddDependencies_v2", graph, *ends, byref(data), c_size_t(1)) == "INVALID_VALUE"


@pytest.mark.parametrize(("port", "kind"), [(1, 1), (2, 1), (2, 0)])
def test_kernels_are_followed_by_kernels_in_three_ways_of_their_own(
    graphs: Graphs, cu: Driver, port: int, kind: int
) -> None:
    graph, data = graphs.graph(), EdgeData(port=port, type=kind)
    a, b = graphs.kernel(graph, "nothing"), graphs.kernel(graph, "nothing")
    cu.cuGraphAddDependencies_v2(graph, handles([a]), handles([b]), byref(data), c_size_t(1))
    graphs.run(graph)


def test_a_node_that_is_added_follows_kernels_by_the_same_rules(graphs: Graphs, cu: Driver) -> None:
    graph, memory = graphs.graph(), cu.alloc(64)
    params, data = NodeParams(type=MEMSET), EdgeData(port=1, type=1)
    params.fill = FillParams(memory.value, 0, 7, 1, 64, 1)
    call = (byref(c_void_p()), graph, handles([graphs.kernel(graph, "nothing")]), byref(data), c_size_t(1))
    assert cu.status("cuGraphAddNode_v2", *call, byref(params)) == "INVALID_VALUE"
    params = NodeParams(type=KERNEL)
    params.kernel = graphs.kernel_params("nothing")
    cu.cuGraphAddNode_v2(*call, byref(params))
    graphs.run(graph)
    cu.cuMemFree_v2(memory)


def test_a_clone_is_independent_and_its_nodes_are_found(graphs: Graphs, cu: Driver) -> None:
    graph, inner = graphs.graph(), graphs.graph()
    graphs.empty(inner)
    a = graphs.empty(graph)
    b = graphs.child(graph, inner, a)
    assert link(cu, graph, (graphs.empty(graph), a)) == "SUCCESS"
    clone: c_void_p = cu.out(c_void_p, "cuGraphClone", graph)
    graphs.graphs.append(clone)
    twin: c_void_p = cu.out(c_void_p, "cuGraphNodeFindInClone", b, clone)
    assert kind(cu, twin) == GRAPH
    assert twin.value != b.value
    assert graphs.list("cuGraphNodeGetDependencies", twin) == [
        cu.out(c_void_p, "cuGraphNodeFindInClone", a, clone).value
    ]
    late = graphs.empty(graph)
    cu.cuGraphDestroyNode(a)
    assert len(graphs.nodes(clone)) == 3
    assert len(graphs.edges(clone)) == 2
    cu.cuGraphDestroyNode(twin)
    for node, where in ((late, clone), (b, graph), (b, clone)):
        found = c_void_p(7)
        assert cu.status("cuGraphNodeFindInClone", byref(found), node, where) == "INVALID_VALUE"
        assert found.value is None


def test_a_child_graph_belongs_to_its_node(graphs: Graphs, cu: Driver, sim: ModuleType) -> None:
    graph, inner = graphs.graph(), graphs.graph()
    graphs.empty(inner)
    before = sim.live()["graphs"].number
    node = graphs.child(graph, inner)
    child: c_void_p = ask(cu, c_void_p, "cuGraphChildGraphNodeGetGraph", node)
    assert sim.live()["graphs"].number == before
    assert child.value != inner.value
    assert len(graphs.nodes(child)) == 1
    graphs.empty(child)
    assert len(graphs.nodes(inner)) == 1
    assert cu.status("cuGraphDestroy", child) == "INVALID_VALUE"
    cu.cuGraphDestroyNode(node)
    assert cu.status("cuGraphGetNodes", child, None, byref(c_size_t())) == "INVALID_VALUE"


def test_a_graph_may_be_moved_into_a_node(graphs: Graphs, cu: Driver, sim: ModuleType) -> None:
    graph, inner = graphs.graph(), graphs.graph()
    graphs.empty(inner)
    before = sim.live()["graphs"].number

    def move(child: c_void_p, into: c_void_p, ownership: int = 1) -> str:
        params = NodeParams(type=GRAPH)
        params.child = ChildParams(child.value, ownership)
        return cu.status("cuGraphAddNode_v2", byref(c_void_p()), into, None, None, c_size_t(0), byref(params))

    assert move(inner, graph, -1) == move(inner, graph, 2) == move(graph, graph) == "INVALID_VALUE"
    assert move(inner, graph) == "SUCCESS"
    assert sim.live()["graphs"].number == before - 1
    assert move(inner, graphs.graph()) == move(graph, inner) == "INVALID_VALUE"
    assert cu.status("cuGraphDestroy", inner) == "INVALID_VALUE"
    assert cu.status("cuGraphInstantiateWithFlags", byref(c_void_p()), inner, c_uint64(0)) == "INVALID_VALUE"
    graphs.run(graph)


def test_the_graph_of_a_node_is_replaced(graphs: Graphs, cu: Driver, sim: ModuleType) -> None:
    graph, one, two, seen = graphs.graph(), graphs.graph(), graphs.graph(), []
    graphs.host(one, lambda: seen.append(1))
    graphs.host(two, lambda: seen.append(2))
    node = graphs.child(graph, one)
    old: c_void_p = ask(cu, c_void_p, "cuGraphChildGraphNodeGetGraph", node)
    before = graphs.instantiate(graph)
    params = NodeParams(type=GRAPH)
    params.child = ChildParams(two.value, 0)
    cu.cuGraphNodeSetParams(node, byref(params))
    assert cu.status("cuGraphGetNodes", old, None, byref(c_size_t())) == "INVALID_VALUE"
    graphs.run(graph)
    cu.cuGraphLaunch(before, None)
    cu.cuStreamSynchronize(None)
    live = sim.live()["graphs"].number
    params.child.ownership = 1
    cu.cuGraphNodeSetParams(node, byref(params))
    assert ask(cu, c_void_p, "cuGraphChildGraphNodeGetGraph", node).value == two.value
    assert sim.live()["graphs"].number == live - 1
    graphs.run(graph)
    assert seen == [2, 1, 2]
    for bad in (graph, two):
        params.child.graph = bad.value
        assert cu.status("cuGraphNodeSetParams", node, byref(params)) == "INVALID_VALUE"


def test_a_cycle_is_found_when_the_graph_is_instantiated(graphs: Graphs, cu: Driver) -> None:
    graph = graphs.graph()
    start = graphs.empty(graph)
    a = graphs.empty(graph, start)
    b = graphs.empty(graph, a)
    after = graphs.empty(graph, b)
    assert link(cu, graph, (b, a)) == "SUCCESS"
    params = InstantiateParams()
    call = ("cuGraphInstantiateWithParams", byref(c_void_p()), graph, byref(params))
    assert cu.status(*call) == "INVALID_VALUE"
    assert params.result == 2
    assert params.node in (a.value, b.value)
    node, log = c_void_p(), ctypes.create_string_buffer(64)
    older = ("cuGraphInstantiate_v2", byref(executable := c_void_p()), graph, byref(node), log, c_size_t(64))
    assert cu.status(*older) == "INVALID_VALUE"
    assert (node.value, log.value) == (None, b"")
    assert unlink(cu, graph, (b, a)) == "SUCCESS"
    assert cu.status("cuGraphInstantiateWithParams", byref(executable), graph, byref(params)) == "SUCCESS"
    assert (params.result, params.node) == (0, None)
    cu.cuGraphExecDestroy(executable)
    assert after.value in graphs.nodes(graph)


def test_handles_that_are_stale_or_wrong_are_refused(graphs: Graphs, cu: Driver) -> None:
    graph = graphs.graph()
    node = graphs.empty(graph)
    stream = cu.stream()
    cu.cuGraphDestroy(graph)
    assert cu.status("cuGraphDestroy", graph) == "INVALID_VALUE"
    assert cu.status("cuGraphDestroyNode", node) == "INVALID_VALUE"
    for wrong in (graph, node, stream, c_void_p(None), c_void_p(12345)):
        assert cu.status("cuGraphDestroy", wrong) == "INVALID_VALUE"
        assert cu.status("cuGraphGetNodes", wrong, None, byref(c_size_t())) == "INVALID_VALUE"
        assert cu.status("cuGraphClone", byref(c_void_p()), wrong) == "INVALID_VALUE"
        assert cu.status("cuGraphNodeGetType", wrong, byref(c_int())) == "INVALID_VALUE"
        assert cu.status("cuGraphExecDestroy", wrong) == "INVALID_VALUE"
        assert cu.status("cuGraphLaunch", wrong, stream) == "INVALID_VALUE"
    cu.cuStreamDestroy_v2(stream)


def test_null_results_and_unknown_flags_are_refused(graphs: Graphs, cu: Driver) -> None:
    graph = graphs.graph()
    node = graphs.empty(graph)
    for call in (
        ("cuGraphCreate", None, 0),
        ("cuGraphCreate", byref(c_void_p()), 1),
        ("cuGraphClone", None, graph),
        ("cuGraphAddEmptyNode", None, graph, None, c_size_t(0)),
        ("cuGraphGetNodes", graph, None, None),
        ("cuGraphNodeGetType", node, None),
        ("cuGraphGetEdges", graph, (c_void_p * 1)(), None, byref(c_size_t(1))),
        ("cuGraphInstantiateWithFlags", None, graph, c_uint64(0)),
        ("cuGraphInstantiateWithFlags", byref(c_void_p()), graph, c_uint64(64)),
        ("cuGraphInstantiateWithFlags", byref(c_void_p()), graph, c_uint64(5)),
        ("cuGraphInstantiateWithParams", byref(c_void_p()), graph, None),
        ("cuGraphAddNode_v2", byref(c_void_p()), graph, None, None, c_size_t(0), None),
        ("cuGraphDebugDotPrint", graph, None, 0),
        ("cuGraphChildGraphNodeGetGraph", node, byref(c_void_p())),
    ):
        assert cu.status(*call) == "INVALID_VALUE", call


def test_any_node_can_be_made_from_one_structure(graphs: Graphs, cu: Driver) -> None:
    graph, memory = graphs.graph(), cu.alloc(64)
    params = NodeParams(type=MEMSET)
    params.fill = FillParams(memory.value, 0, 7, 1, 64, 1)
    node: c_void_p = cu.out(c_void_p, "cuGraphAddNode_v2", graph, None, None, c_size_t(0), byref(params))
    params.fill.value = 9
    cu.cuGraphNodeSetParams(node, byref(params))
    read = NodeParams()
    cu.cuGraphNodeGetParams(node, byref(read))
    assert (read.type, read.fill.target, read.fill.value) == (MEMSET, memory.value, 9)
    graphs.run(graph)
    assert cu.read(memory, 64) == b"\x09" * 64
    for damage in ("reserved0", "reserved2", "pad"):
        bad = NodeParams.from_buffer_copy(params)
        if damage == "reserved2":
            bad.reserved2 = 1
        else:
            getattr(bad, damage)[-1] = 1
        assert (
            cu.status("cuGraphAddNode_v2", byref(c_void_p()), graph, None, None, c_size_t(0), byref(bad))
            == "INVALID_VALUE"
        )
    wrong = NodeParams(type=HOST)
    assert cu.status("cuGraphNodeSetParams", node, byref(wrong)) == "INVALID_VALUE"
    unknown = NodeParams(type=99)
    call = ("cuGraphAddNode_v2", byref(c_void_p()), graph, None, None, c_size_t(0), byref(unknown))
    assert cu.status(*call) == "INVALID_VALUE"
    cu.cuMemFree_v2(memory)


def test_a_graph_is_written_for_graphviz(graphs: Graphs, cu: Driver, tmp_path: Path) -> None:
    graph, inner = graphs.graph(), graphs.graph()
    graphs.kernel(inner, "nothing")
    first = graphs.empty(graph)
    graphs.child(graph, inner, first)
    text = graphs.dot(graph, tmp_path / "graph.dot")
    number = ask(cu, c_uint, "cuGraphGetId", graph).value
    assert text.startswith("digraph dot {\n")
    assert text.endswith("}\n")
    assert text.count("{") == text.count("}")
    child = ask(cu, c_void_p, "cuGraphChildGraphNodeGetGraph", c_void_p(graphs.nodes(graph)[1]))
    inside = ask(cu, c_uint, "cuGraphGetId", child).value
    # The layout of an H200's driver, line by line.
    assert text == (
        f'digraph dot {{\nsubgraph cluster_{number} {{\nlabel="graph_{number}" graph[style="dashed"];\n'
        f'"graph_{number}_node_0"[style="solid" shape="rectangle" label="0\nEMPTY\n"];\n\n'
        f'"graph_{number}_node_1"[style="solid" shape="rectangle" label="1\ngraph_{inside}\n"];\n\n'
        f'"graph_{number}_node_0" -> "graph_{number}_node_1";\n}}\n'
        f'subgraph cluster_{inside} {{\nlabel="graph_{inside}" graph[style="dashed"];\n'
        f'"graph_{inside}_node_0"[style="bold" shape="octagon" label="0\nnothing\n"];\n\n}}\n}}\n'
    )
    assert f"node handle: 0x{first.value:016X}" in graphs.dot(graph, tmp_path / "graph.dot", 1 << 10)
    assert "block: 1 1 1" in graphs.dot(graph, tmp_path / "graph.dot", 1)
    assert "cooperative" in graphs.dot(graph, tmp_path / "graph.dot", 1)
    missing = str(tmp_path / "no" / "graph.dot").encode()
    assert cu.status("cuGraphDebugDotPrint", graph, missing, 0) == "OPERATING_SYSTEM"


def test_handles_are_told_of_nodes_and_functions(graphs: Graphs, cu: Driver, tmp_path: Path) -> None:
    graph = graphs.graph()
    node = graphs.kernel(graph, "nothing")
    text = graphs.dot(graph, tmp_path / "graph.dot", HANDLES).lower()
    for handle in (node, graphs.function("nothing")):
        assert f"{handle.value:x}" in text


def test_fills_and_copies_tell_their_bytes(graphs: Graphs, cu: Driver, tmp_path: Path) -> None:
    graph, memory = graphs.graph(), cu.alloc(256)
    graphs.fill(graph, memory, 1, 77)
    graphs.copy(graph, memory, c_uint64(memory.value + 128), 99)
    text = graphs.dot(graph, tmp_path / "graph.dot")
    assert ",77)" in text
    assert "(DtoD,99)" in text
    cu.cuMemFree_v2(memory)


def test_a_hundred_thousand_nodes_are_no_trouble(graphs: Graphs, cu: Driver) -> None:
    started = time.monotonic()
    chain, star = graphs.graph(), graphs.graph()
    node, after, one = c_void_p(), (c_void_p * 1)(), c_size_t(1)
    add = cu.library.cuGraphAddEmptyNode
    add(byref(node), chain, None, c_size_t(0))
    centre = graphs.empty(star)
    for _ in range(99_999):
        after[0] = node.value
        assert add(byref(node), chain, after, one) == 0
        after[0] = centre.value
        assert add(byref(c_void_p()), star, after, one) == 0
    ends = graphs.nodes(star)[1:]
    cu.cuGraphAddEmptyNode(byref(c_void_p()), star, (c_void_p * len(ends))(*ends), c_size_t(len(ends)))
    clone: c_void_p = cu.out(c_void_p, "cuGraphClone", star)
    graphs.run(clone)
    cu.cuGraphDestroy(clone)
    for graph in (chain, star):
        executable = graphs.instantiate(graph)
        for _ in range(3):
            cu.cuGraphLaunch(executable, None)
        cu.cuStreamSynchronize(None)
    cu.cuGraphDestroyNode(centre)
    assert len(graphs.edges(star)) == 99_999
    assert time.monotonic() - started < 30


def test_graphs_may_be_nested_deeply(graphs: Graphs, cu: Driver) -> None:
    seen: list[int] = []
    graph: c_void_p = graphs.graph()
    graphs.host(graph, lambda: seen.append(1))
    for _ in range(5000):
        outer: c_void_p = graphs.graph()
        params = NodeParams(type=GRAPH)
        params.child = ChildParams(graph.value, 1)
        cu.cuGraphAddNode_v2(byref(c_void_p()), outer, None, None, c_size_t(0), byref(params))
        graph = outer
    clone: c_void_p = cu.out(c_void_p, "cuGraphClone", graph)
    graphs.run(graph)
    graphs.run(clone)
    cu.cuGraphDestroy(clone)
    cu.cuGraphDestroy(graph)
    assert seen == [1, 1]
