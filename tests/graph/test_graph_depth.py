# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs inside graphs, more deeply than functions may call one another."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import pytest
from graphs import SIZE, buffers_alive, content, eventually, finish, keeps, run
from helpers import PYPY, SUPPORT, run_python

from cuda_core_cffi.graph import GraphDefinition

CALLS = 80  # that functions may be deep in one another here
DEPTH = 4 if PYPY else 2 * CALLS  # PyPy frees one graph of a chain in each collection


@contextlib.contextmanager
def few_calls() -> Iterator[None]:
    """Have Python raise RecursionError for functions that are much deeper in one another than the caller."""
    frame, depth, before = sys._getframe(), 0, sys.getrecursionlimit()
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    sys.setrecursionlimit(depth + CALLS)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def nest(graph: GraphDefinition, depth: int) -> list[GraphDefinition]:
    """Put a body into a body, and so on, and return all of them: the innermost last."""
    bodies = [graph]
    for _ in range(depth):
        bodies.append(bodies[-1].if_then(bodies[-1].create_condition(1)).then)
    return bodies


def embedded(innermost: GraphDefinition, depth: int) -> GraphDefinition:
    """Return a graph that runs a graph, which runs a graph, and so on; close the others."""
    for _ in range(depth):
        outer = GraphDefinition()
        outer.embed(innermost)
        innermost.close()
        innermost = outer
    return innermost


def test_graphs_are_embedded_deeply(memory, stream):
    innermost = GraphDefinition()
    innermost.memset(memory[0], 1, SIZE)
    with few_calls(), embedded(innermost, DEPTH) as graph, graph.clone() as clone, GraphDefinition() as other:
        node = other.embed(clone)
        node.update(graph)
        run(other, stream)
        with graph.instantiate() as executable:
            executable.update(clone)
    assert content(memory[0], stream) == b"\1" * SIZE


def test_what_is_used_deep_inside_is_kept(device, stream, buffers_before):
    buffer, innermost = device.allocate(SIZE, stream), GraphDefinition()
    innermost.memset(buffer, 1, SIZE)
    buffer.close()
    graph = embedded(innermost, DEPTH)
    assert buffers_alive() == buffers_before + 1
    with graph.clone() as clone, graph.instantiate() as executable:
        assert graph.handle  # from now on the driver keeps it
        graph.close()
        executable.launch(stream)
        run(clone, stream)
        assert buffers_alive() == buffers_before + 1
    assert eventually(keeps(buffers_before))


def test_bodies_deep_inside_go_with_the_graph(device, stream, buffers_before):
    buffer, graph = device.allocate(SIZE, stream), GraphDefinition()
    bodies = nest(graph, DEPTH)
    node = bodies[-1].memset(buffer, 1, SIZE)
    buffer.close()
    with few_calls():
        run(graph, stream)
        graph.close()
    assert not node.is_valid
    assert not any(body.is_valid for body in bodies)
    del bodies, node
    assert eventually(keeps(buffers_before))


def test_bodies_deep_inside_go_with_the_node(graph, device, stream, buffers_before):
    bodies = nest(graph, DEPTH)
    with device.allocate(SIZE, stream) as buffer:
        bodies[-1].memset(buffer, 1, SIZE)
    (outermost,) = graph.nodes()
    with few_calls():
        outermost.destroy()
    assert not any(body.is_valid for body in bodies[1:])
    assert eventually(keeps(buffers_before))


def test_builders_of_bodies_deep_inside_are_given_up(builder, memory, stream):
    bodies = [builder]
    with few_calls():
        for _ in range(DEPTH):
            bodies.append(bodies[-1].if_then(bodies[-1].create_condition(1)).begin_building())
        memory[0].fill(1, stream=bodies[-1])
        builder.close()
    assert not any(body.is_building for body in bodies)
    memory[0].fill(2, stream=bodies[-1])  # not captured any more
    bodies[-1].stream.sync()
    for body in bodies:
        body.close()
    assert content(memory[0], stream) == b"\2" * SIZE


def test_a_deep_graph_is_drawn_with_all_that_is_inside(graph, memory):
    bodies = nest(graph, DEPTH)
    bodies[-1].memset(memory[0], 1, SIZE)
    with few_calls():
        text = graph.to_dot()
    assert text.count("subgraph") == DEPTH
    assert text.count("{") == text.count("}") == DEPTH + 1
    assert f'{"n" + "0_0_" * DEPTH}0 [label="fill' in text


def test_a_builder_embeds_a_deep_graph(builder, memory, stream):
    innermost = GraphDefinition()
    innermost.memset(memory[0], 1, SIZE)
    with few_calls(), embedded(innermost, DEPTH) as child:
        builder.embed(child)
        finish(builder, stream)
    assert content(memory[0], stream) == b"\1" * SIZE


@pytest.mark.simulator_only("real drivers may need a larger stack")
def test_threads_with_a_small_stack_use_deep_graphs():
    done = run_python(
        """
        import sys, threading
        sys.path.insert(0, sys.argv[1])
        from graphs import SIZE, run
        from cuda_core_cffi import Device, live_objects
        from cuda_core_cffi.graph import GraphDefinition

        device = Device()
        device.set_current()
        stream, graphs = device.create_stream(), [GraphDefinition() for _ in range(3)]
        buffer = device.allocate(SIZE, stream)
        before = live_objects()["buffer"]
        innermost = []
        for graph in graphs:
            for _ in range(1500):
                graph = graph.if_then(graph.create_condition(1)).then
            innermost.append(graph)

        def use():
            device.set_current()
            for body in innermost:
                body.memset(buffer, 1, SIZE)
            run(graphs[0], stream)
            next(iter(graphs[1].nodes())).destroy()
            assert graphs[2].handle
            for graph in graphs:
                graph.close()

        threading.stack_size(64 << 10)
        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        print([graph.is_valid for graph in graphs + innermost])
        """,
        str(SUPPORT),
    )
    assert done.stdout.split() == ["[False,"] + ["False,"] * 4 + ["False]"], done.stderr
