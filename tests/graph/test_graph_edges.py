# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Edges as live sets."""

from __future__ import annotations

from collections.abc import MutableSet

import pytest

from cuda_core_cffi import CUDAError, lib, simulator
from cuda_core_cffi.graph import AdjacencySetProxy, GraphDefinition


@pytest.fixture
def nodes(graph):
    """Return five nodes without edges."""
    return [graph.empty() for _ in range(5)]


def test_it_is_a_mutable_set(nodes):
    first, second, *_ = nodes
    assert isinstance(first.succ, MutableSet)
    assert isinstance(first.succ, AdjacencySetProxy)
    assert first.succ == set()
    assert len(first.succ) == 0
    assert second not in first.succ
    with pytest.raises(TypeError):
        hash(first.succ)


def test_an_edge_is_seen_from_both_sides(graph, nodes):
    first, second, *_ = nodes
    first.succ.add(second)
    assert second in first.succ
    assert first in second.pred
    assert graph.edges() == {(first, second)}
    second.pred.discard(first)
    assert first.succ == set()
    assert graph.edges() == set()


def test_sets_are_live(nodes):
    first, second, third, *_ = nodes
    after = first.succ
    first.succ.add(second)
    third.pred.add(first)
    assert after == {second, third}
    assert set(after) == {second, third}
    assert repr(after) in (
        f"AdjacencySetProxy({{{second!r}, {third!r}}})",
        f"AdjacencySetProxy({{{third!r}, {second!r}}})",
    )


def test_adding_twice_and_discarding_what_is_not_there_do_nothing(nodes):
    first, second, third, *_ = nodes
    first.succ.add(second)
    first.succ.add(second)
    first.succ.update([second, second, third], third)
    first.succ.discard(nodes[4])
    first.succ.discard("no node")
    assert first.succ == {second, third}
    with pytest.raises(KeyError):
        first.succ.remove(nodes[4])


def test_set_operators(nodes):
    first, a, b, c, d = nodes
    first.succ |= {a, b}
    assert first.succ == {a, b}
    first.succ -= {a, c}
    assert first.succ == {b}
    first.succ ^= {b, c, d}
    assert first.succ == {c, d}
    first.succ &= {d}
    assert first.succ == {d}
    assert first.succ | {a} == {d, a}
    assert type(first.succ | {a}) is set
    first.succ.clear()
    assert first.succ == set()


def test_sets_are_assigned(nodes):
    first, a, b, c, d = nodes
    d.pred = {a, b}
    d.pred = [b, c]
    assert d.pred == {b, c}
    assert a.succ == set()
    first.succ = (a, d)
    assert d.pred == {first, b, c}
    d.pred = ()
    assert d.pred == set()
    assert first.succ == {a}


def test_other_edges_stay(graph, nodes):
    a, b, c, d, e = nodes
    a.succ = {b, c}
    b.succ = {d}
    c.succ = {d, e}
    d.pred.clear()
    assert graph.edges() == {(a, b), (a, c), (c, e)}


def test_an_edge_to_itself_is_refused(graph, nodes):
    node = nodes[0]
    for add in (lambda: node.succ.add(node), lambda: node.pred.update(nodes), lambda: setattr(node, "succ", {node})):
        with pytest.raises(CUDAError, match="to itself") as caught:
            add()
        assert caught.value.name == "CUDA_ERROR_INVALID_VALUE"
        assert caught.value.status == lib.CUDA_ERROR_INVALID_VALUE
    assert graph.edges() == set()


def test_an_edge_across_graphs_is_refused(graph, nodes):
    with GraphDefinition() as other:
        stranger = other.empty()
        with pytest.raises(CUDAError, match="another graph"):
            nodes[0].succ |= {nodes[1], stranger}
        assert graph.edges() == set()  # not even the one that is possible
        assert stranger not in nodes[0].succ
        nodes[0].succ.discard(stranger)


def test_the_entry_has_no_edges(graph, nodes):
    with pytest.raises(CUDAError, match="entry"):
        nodes[0].pred.add(graph._entry)
    assert graph._entry.succ == set()


@pytest.mark.parametrize("value", [None, 5, "node"])
def test_only_nodes_are_added(nodes, value):
    with pytest.raises(TypeError, match="GraphNode"):
        nodes[0].succ.add(value) if value is not None else nodes[0].succ.update([value])


def test_a_cycle_is_refused_when_the_graph_is_instantiated(graph, nodes):
    a, b, c, *_ = nodes
    a.succ = {b}
    b.succ = {c}
    c.succ = {a}
    with pytest.raises(CUDAError, match="cycle") as caught:
        graph.instantiate()
    assert caught.value.call == "cuGraphInstantiateWithParams"
    c.succ.clear()
    graph.instantiate().close()


@pytest.mark.simulator_only("only the simulated driver records its calls")
def test_bulk_edits_are_one_call_of_the_driver(nodes):
    first, *others = nodes
    trace = simulator.trace("cuGraphAddDependencies", "cuGraphRemoveDependencies")
    add, remove = "cuGraphAddDependencies_v2", "cuGraphRemoveDependencies_v2"
    with trace:
        first.succ |= set(others)
    assert trace.names == [add]
    with trace:
        first.succ -= set(others[:2])
    assert trace.names == [remove]
    with trace:
        first.succ = others[:2]
    assert sorted(trace.names) == [add, remove]
    with trace:
        first.succ.clear()
        first.succ.clear()
    assert trace.names == [remove]


def test_a_set_of_neighbours_belongs_to_a_node():
    with pytest.raises(TypeError, match="node must be a GraphNode"):
        AdjacencySetProxy(iter(()), True)
