# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes that another thread destroys after a method has looked whether they are there, and before it asks the driver.

The tests destroy first, and then let the look find what it would have found before.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from graphs import ONE, SIZE

from cuda_core_cffi import ffi, lib
from cuda_core_cffi.graph import GraphDefinition, GraphNode

GONE = "was destroyed, or the graph that it is in is gone"


def destroy_unseen(node):
    """Destroy a node, and have methods find it there."""
    inner = node._definition._state.inner.get(node._handle, [])
    node.destroy()
    assert not node.is_valid
    node._is_there = True
    for graph in inner:
        graph.is_valid = True


@pytest.mark.parametrize(
    "use",
    [
        lambda node, others: node.memset(others.buffer, 2, SIZE),
        lambda node, others: node.memcpy(others.buffer, others.buffer.handle + SIZE // 2, 4),
        lambda node, others: node.callback(int),
        lambda node, others: node.launch(ONE, others.kernel, others.buffer, 1),
        lambda node, others: others.graph.join(others.first, node),
        lambda node, others: node.update(value=3),
        lambda node, others: node.value,
        lambda node, others: GraphNode._kind(node),
        lambda node, others: set(node.pred),
        lambda node, others: set(node.succ),
        lambda node, others: node.pred.add(others.first),
        lambda node, others: others.first.succ.add(node),
        lambda node, others: others.last.pred.discard(node),
        lambda node, others: node.succ.clear(),
        lambda node, others: others.executable[node].update(dst=others.buffer, value=3, width=4),
        lambda node, others: others.executable[node].is_enabled,
        lambda node, others: others.executable[node].disable(),
    ],
)
def test_a_node_that_is_gone_is_not_named_to_the_driver(graph, store, memory, use):
    buffer = memory[0]
    others = SimpleNamespace(buffer=buffer, kernel=store, graph=graph, first=graph.memset(buffer, 1, SIZE))
    node = others.first.memset(buffer, 2, SIZE)
    others.last = node.memset(buffer, 3, SIZE)
    others.executable = graph.instantiate()
    destroy_unseen(node)
    with pytest.raises(RuntimeError, match=GONE):
        use(node, others)
    assert graph.nodes() == {others.first, others.last}
    others.executable.close()


def test_a_kernel_node_that_is_gone_is_not_named_to_the_driver(graph, store, memory):
    node = graph.launch(ONE, store, memory[0], 1)
    destroy_unseen(node)
    for use in (lambda: node.kernel, lambda: node.config, lambda: node.update(config=ONE)):
        with pytest.raises(RuntimeError, match=GONE):
            use()


def test_graphs_inside_a_node_that_is_gone_are_not_named_to_the_driver(graph, memory):
    with GraphDefinition() as child:
        child.memset(memory[0], 1, SIZE)
        embedded = graph.embed(child)
    conditional = graph.if_then(graph.create_condition())
    bodies = [embedded.child_graph, *conditional.branches]
    within = [body.memset(memory[0], 1, SIZE) for body in bodies]
    for node in (embedded, conditional):
        destroy_unseen(node)
    for body, node in zip(bodies, within, strict=True):
        node._is_there = True
        for use in (body.nodes, body.edges, body.empty, body.instantiate, body.clone, node._read):
            with pytest.raises(RuntimeError, match=GONE):
                use()
    assert graph.nodes() == set()


@pytest.mark.parametrize(
    "name",
    [
        lambda graph, before, after: graph.nodes(),
        lambda graph, before, after: graph.edges(),
        lambda graph, before, after: set(before.succ),
        lambda graph, before, after: set(after.pred),
    ],
    ids=["nodes", "edges", "succ", "pred"],
)
def test_a_node_that_the_driver_names_is_there(graph, memory, name):
    before = graph.callback(int)
    node = before.memset(memory[0], 1, SIZE)
    after = node.callback(int)
    victim = graph.callback(int)
    # as if the node had the handle of a graph that was inside another
    assert lib.ccc_graph_destroy_node(graph._c_handle, victim.handle, [node.handle], 1, ffi.NULL) == 0
    victim._definition._state.forget(victim.handle)
    with pytest.raises(RuntimeError, match=GONE):
        assert node.value
    name(graph, before, after)
    assert node.value == 1


def test_what_gets_the_handle_of_a_node_that_is_gone_can_be_used(graph, memory):
    for _ in range(200):
        node = graph.memset(memory[0], 1, SIZE)
        after = node.callback(int)
        assert after.pred == {node}
        after.destroy()
        node.destroy()
    for _ in range(200):
        node = graph.if_then(graph.create_condition())
        assert node.then.empty().pred == set()
        node.destroy()
    nodes = [graph.empty() for _ in range(100)]
    assert graph.nodes() == set(nodes)
