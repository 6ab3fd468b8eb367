# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs as they are defined: nodes that keep their identity, clones, graphs inside graphs."""

from __future__ import annotations

import gc
import threading

import pytest
from graphs import SIZE, content, run
from helpers import in_thread

from cuda_core_cffi import CUDAError, Device, driver, live_objects
from cuda_core_cffi.graph import (
    ChildGraphNode,
    EmptyNode,
    GraphCondition,
    GraphDebugPrintOptions,
    GraphDefinition,
    GraphNode,
    MemsetNode,
)


def test_a_new_graph_is_empty(graph):
    assert graph.nodes() == set()
    assert graph.edges() == set()
    assert graph.is_valid
    assert graph.handle != 0
    assert repr(graph) == f"<GraphDefinition handle={graph.handle:#x}>"


def test_graphs_are_equal_by_handle(graph):
    with GraphDefinition() as other:
        assert graph != other
        assert graph == graph
        assert hash(graph) != hash(other)
        assert graph != graph.handle


def test_methods_of_a_node_add_what_comes_after_it(graph, memory):
    first = graph.empty()
    second = first.memset(memory[0], 1, 4)
    third = second.join(first)
    assert graph.nodes() == {first, second, third}
    assert graph.edges() == {(first, second), (second, third), (first, third)}
    assert first.graph == graph
    assert isinstance(third, EmptyNode)


def test_the_entry_adds_nodes_that_nothing_comes_before(graph):
    entry = graph._entry
    node = entry.join()
    assert set(node.pred) == set()
    assert repr(entry) == "<GraphNode entry>"
    assert entry.type is None
    assert entry.handle is None
    assert entry.is_valid


def test_join_of_a_graph_comes_after_the_nodes_given(graph):
    first, second = graph.empty(), graph.empty()
    assert set(graph.join(first, second, first).pred) == {first, second}


def test_the_same_node_is_the_same_object(graph, memory):
    node = graph.memset(memory[0], 1, 4)
    (found,) = graph.nodes()
    assert found is node
    handle = node.handle
    del node, found
    gc.collect()
    (again,) = graph.nodes()
    assert type(again) is MemsetNode
    assert again.handle == handle


def test_more_nodes_and_edges_than_are_asked_for_at_first(graph):
    nodes = [graph.empty()]
    for _ in range(100):
        nodes.append(nodes[-1].join())
    hub = graph.join(*nodes)
    assert len(graph.nodes()) == 102
    assert len(graph.edges()) == 201
    assert set(hub.pred) == set(nodes)
    assert len(hub.pred) == 101


def test_a_node_knows_the_drivers_type(graph):
    assert graph.empty().type is driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_EMPTY


def test_a_node_without_a_graph(graph):
    node = GraphNode()
    assert not node.is_valid
    assert node.graph is None
    assert node.type is None
    node.destroy()
    with pytest.raises(RuntimeError, match="destroyed"):
        node.join()
    with pytest.raises(RuntimeError, match="destroyed"):
        graph.join(node)


def test_destroying_a_node_removes_its_edges(graph):
    first, second, third = (graph.empty() for _ in range(3))
    first.succ = {second}
    second.succ = {third}
    second.destroy()
    assert graph.nodes() == {first, third}
    assert graph.edges() == set()
    assert not second.is_valid
    assert "destroyed" in repr(second)
    second.destroy()


def test_a_node_is_initialised_once(graph):
    node = graph.empty()
    with pytest.raises(RuntimeError, match="this EmptyNode is initialised already"):
        node.__init__()
    assert node.graph is graph


def test_a_destroyed_node_is_refused(graph, memory):
    node = graph.memset(memory[0], 1, 4)
    node.destroy()
    for use in (
        node.join,
        lambda: node.pred.add(graph.empty()),
        lambda: graph.empty().succ.add(node),
        lambda: node.value,
        lambda: node.update(value=2),
        lambda: len(node.succ),
    ):
        with pytest.raises(RuntimeError, match="MemsetNode was destroyed"):
            use()


def test_a_destroyed_node_is_not_equal_to_one_with_its_handle(graph):
    gone = graph.empty()
    gone.destroy()
    others = [graph.empty() for _ in range(3)]
    assert gone not in others
    assert gone == gone


def test_a_closed_graph_is_refused():
    graph = GraphDefinition()
    node = graph.empty()
    graph.close()
    graph.close()
    assert not graph.is_valid
    assert not node.is_valid
    assert graph.handle == 0
    for use in (graph.empty, graph.nodes, graph.edges, graph.instantiate, node.join, graph.to_dot):
        with pytest.raises(RuntimeError, match=r"closed|destroyed"):
            use()
    with pytest.raises(RuntimeError, match="closed"):
        graph.clone()
    node.destroy()


def test_a_node_keeps_its_graph(device):
    node = GraphDefinition().empty()
    gc.collect()
    assert node.is_valid
    assert node.graph.nodes() == {node}
    assert live_objects()["graph"] == 1


def test_a_clone_is_a_graph_of_its_own(graph, memory, stream):
    graph.memset(memory[0], 1, SIZE).memset(memory[1], 2, SIZE)
    with graph.clone() as clone:
        assert clone != graph
        assert len(clone.nodes()) == 2
        assert len(clone.edges()) == 1
        for node in clone.nodes():
            node.update(value=3)
        run(graph, stream)
        assert content(memory[0], stream) == b"\1" * SIZE
        graph.close()
        run(clone, stream)
        assert content(memory[0], stream) == content(memory[1], stream) == b"\3" * SIZE


def test_a_graph_runs_inside_another(graph, memory, stream):
    with GraphDefinition() as child:
        inner = child.memset(memory[0], 5, SIZE)
        node = graph.memset(memory[1], 6, SIZE).embed(child)
        inner.destroy()  # the graph was copied
    assert isinstance(node, ChildGraphNode)
    assert len(node.child_graph.nodes()) == 1
    run(graph, stream)
    assert content(memory[0], stream) == b"\5" * SIZE


def test_what_is_added_to_a_graph_inside_another_runs(graph, memory, stream):
    with GraphDefinition() as child:
        child.empty()
        node = graph.embed(child)
    (first,) = node.child_graph.nodes()
    first.memset(memory[0], 9, SIZE)
    run(graph, stream)
    assert content(memory[0], stream) == b"\x09" * SIZE


def test_the_graph_inside_a_node_is_one_object(graph):
    with GraphDefinition() as child:
        node = graph.embed(child)
        assert node.child_graph is node.child_graph
        assert node.child_graph != child


def test_closing_a_graph_inside_a_node_does_nothing(graph):
    with GraphDefinition() as child:
        node = graph.embed(child)
    with node.child_graph as inside:
        inside.empty()
    assert inside.is_valid
    assert node.child_graph is inside
    assert len(inside.nodes()) == 1


def test_a_graph_inside_a_node_goes_with_the_node(graph):
    with GraphDefinition() as middle, GraphDefinition() as innermost:
        innermost.empty()
        middle.embed(innermost)
        node = graph.embed(middle)
    inside = node.child_graph
    (holder,) = inside.nodes()
    (leaf,) = holder.child_graph.nodes()
    node.destroy()
    assert not inside.is_valid
    assert not holder.is_valid
    assert not leaf.is_valid
    assert inside.handle == 0
    with pytest.raises(RuntimeError, match="node destroyed"):
        inside.empty()


def test_a_graph_inside_a_node_keeps_the_whole(memory):
    def inside():
        with GraphDefinition() as child:
            child.empty()
            return GraphDefinition().embed(child).child_graph

    found = inside()
    gc.collect()
    assert found.is_valid
    assert len(found.nodes()) == 1
    found.memset(memory[0], 1, 4)


def test_a_graph_cannot_be_embedded_in_itself(graph):
    with GraphDefinition() as child:
        child.empty()
        inside = graph.embed(child).child_graph
    for outer, inner in ((graph, graph), (graph, inside), (inside, graph)):
        with pytest.raises(ValueError, match="clone it"):
            outer.embed(inner)


@pytest.mark.parametrize("child", [None, 5, "graph"])
def test_only_graphs_are_embedded(graph, child):
    with pytest.raises(TypeError, match="GraphDefinition"):
        graph.embed(child)


def test_a_closed_graph_is_not_embedded(graph):
    child = GraphDefinition()
    child.close()
    with pytest.raises(RuntimeError, match="closed"):
        graph.embed(child)


def test_nodes_of_other_graphs_are_refused(graph):
    with GraphDefinition() as other:
        node = other.empty()
        with pytest.raises(ValueError, match="another graph"):
            graph.join(node)
        with pytest.raises(TypeError, match="GraphNode"):
            graph.join(other)


def test_without_a_current_context_nodes_that_need_one_are_refused(memory):
    address = memory[0].handle

    def work():
        with GraphDefinition() as graph:
            graph.empty()
            with pytest.raises(CUDAError, match="no CUDA context is current"):
                graph.memset(address, 1, 4)
            with pytest.raises(CUDAError, match="no CUDA context is current"):
                graph.create_condition()
            assert len(graph.nodes()) == 1

    in_thread(work)


def test_a_graph_can_be_changed_from_many_threads(graph):
    def work():
        Device(0).set_current()
        for _ in range(50):
            graph.empty().join().destroy()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(graph.nodes()) == 200


def test_the_driver_prints_a_graph(graph, memory, tmp_path):
    graph.memset(memory[0], 1, 4).join()
    graph.debug_dot_print(str(tmp_path / "plain.dot"))
    graph.debug_dot_print(tmp_path / "full.dot", {"verbose": True})
    plain, full = ((tmp_path / name).read_text() for name in ("plain.dot", "full.dot"))
    assert plain.startswith("digraph")
    assert len(full) > len(plain)


def test_printing_to_nowhere_is_an_error(graph, tmp_path):
    with pytest.raises(CUDAError, match="cuGraphDebugDotPrint"):
        graph.debug_dot_print(tmp_path / "missing" / "graph.dot", GraphDebugPrintOptions(handles=True))


def test_conditions_are_equal_by_handle(graph):
    assert GraphCondition() == GraphCondition()
    assert GraphCondition().handle == 0
    assert GraphCondition() != 0
    assert hash(GraphCondition()) == hash(GraphCondition())
    assert repr(GraphCondition()) == "<GraphCondition handle=0x0>"
