# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Who keeps what the nodes of graphs inside nodes use: the sentences of docs/graphs.md, by their numbers."""

from __future__ import annotations

import threading

import pytest
from graphs import ONE, SIZE, content, eventually, filling, keeps, run, stays, watched
from helpers import Gate, in_threads, opened_before
from scenarios import PTX

from cuda_core_cffi import Buffer, CUDAError, ObjectCode, ffi, lib, live_objects, simulator
from cuda_core_cffi.graph import GraphDefinition

CHILDREN = ("child", "nested child")
BODIES = ("if", "else", "while", "switch", "body in a body", "child in a body")
KINDS = (*CHILDREN, *BODIES)
FAILURE = "CUDA_ERROR_UNKNOWN"


def fill(definition, device, stream, value=3):
    """Add a node that fills a buffer which only the graph has."""
    with device.allocate(SIZE, stream) as buffer:
        return definition.memset(buffer, value, SIZE)


def nested(graph, child):
    """Embed a graph that another one is embedded in; return the outer node and the inner one."""
    with GraphDefinition() as between:
        between.embed(child)
        node = graph.embed(between)
    (inner,) = node.child_graph.nodes()
    return node, inner


def inside(kind, graph, device, stream):
    """Put a graph that fills a buffer inside a node; return the node, the graph that fills, and its node."""
    child, _ = filling(device, stream, 3)
    with child:
        if kind == "child":
            node = graph.embed(child)
            inner = node.child_graph
        elif kind == "nested child":
            node, between = nested(graph, child)
            inner = between.child_graph
        elif kind == "child in a body":
            node = graph.if_then(graph.create_condition(1))
            inner = node.then.embed(child).child_graph
    if kind in BODIES[:-1]:
        condition = graph.create_condition(kind in ("if", "switch", "body in a body"))
        if kind == "if":
            node = graph.if_then(condition)
            inner = node.then
        elif kind == "else":
            node = graph.if_else(condition)
            inner = node.else_
        elif kind == "while":
            node = graph.while_loop(condition)
            inner = node.body
        elif kind == "switch":
            node = graph.switch(condition, 3)
            inner = node.branches[1]
        else:
            node = graph.if_then(condition)
            inner = node.then.switch(graph.create_condition(1), 2).branches[1]
        fill(inner, device, stream)
    (filled,) = inner.nodes()
    return node, inner, filled


def waits_for_launches(kind):
    """The driver destroys an executable with conditional nodes when its launches are done, and waits for that."""
    return kind in BODIES


def content_at(address, stream):
    with Buffer.from_handle(address, SIZE) as memory:
        return content(memory, stream)


def user_objects(calls):
    return [call.function for call in calls if "UserObject" in call.function]


@pytest.mark.simulator_only("only the simulated driver tells what it was called with")
@pytest.mark.parametrize("kind", KINDS)
def test_9_executables_have_no_user_objects_of_graphs_inside(device, stream, buffers_before, kind):
    """With user objects a launch takes the driver four times as long."""
    with simulator.trace() as calls:
        graph = GraphDefinition()
        inside(kind, graph, device, stream)
        run(graph, stream)
        graph.close()
    assert user_objects(calls) == []
    assert "cuGraphLaunch" in {call.function for call in calls}
    assert eventually(keeps(buffers_before))


@pytest.mark.parametrize("kind", KINDS)
def test_9_an_executable_keeps_what_graphs_inside_use(device, stream, buffers_before, kind):
    graph = GraphDefinition()
    node, inner, filled = inside(kind, graph, device, stream)
    address = filled.dptr
    executable = graph.instantiate()
    filled.destroy()
    node.destroy()
    del node, inner, filled
    graph.close()
    assert stays(keeps(buffers_before + 1))
    with Gate(stream) as gate:
        executable.launch(stream)
        if not waits_for_launches(kind):
            executable.close()
        assert stays(keeps(buffers_before + 1))
        if kind != "while":
            with Buffer.from_handle(address, SIZE) as memory:
                gate.open()
                assert content(memory, stream) == b"\3" * SIZE
        gate.open()
        stream.sync()
    executable.close()
    assert eventually(keeps(buffers_before))


@pytest.mark.parametrize("kind", BODIES)
def test_16_an_executable_with_conditional_nodes_is_closed_once_launches_are_done(device, stream, kind):
    with GraphDefinition() as graph:
        inside(kind, graph, device, stream)
        executable = graph.instantiate()
    with Gate(stream) as gate:
        executable.launch(stream)
        opened_before(gate, executable.close)


@pytest.mark.parametrize("kind", KINDS)
def test_1_a_definition_keeps_what_graphs_inside_use(device, stream, buffers_before, kind):
    graph = GraphDefinition()
    inside(kind, graph, device, stream)
    graph.memset(device.allocate(SIZE, stream), 1, 4)
    assert stays(keeps(buffers_before + 2))
    graph.close()
    assert eventually(keeps(buffers_before))


@pytest.mark.parametrize("kind", KINDS)
def test_2_code_and_owners_of_graphs_inside_are_kept(device, stream, memory, kind):
    before = live_objects()["library"]
    owner, seen = watched()
    graph = GraphDefinition()
    _, inner, _ = inside(kind, graph, device, stream)
    with ObjectCode.from_ptx(PTX) as code, code.get_kernel("store") as kernel:
        inner.launch(ONE, kernel, memory[0], 0x05050505).memset(memory[0].handle + 4, 6, 4, dst_owner=owner)
    del owner, kernel, code, inner, _
    executable = graph.instantiate()
    graph.close()
    assert stays(lambda: seen() is not None and live_objects()["library"] == before + 1)
    executable.launch(stream)
    assert content(memory[0], stream, 8) == (b"\0" * 8 if kind == "while" else b"\5\5\5\5\6\6\6\6")
    executable.close()
    assert eventually(lambda: seen() is None and live_objects()["library"] == before)


@pytest.mark.parametrize("kind", CHILDREN)  # drivers refuse host functions in bodies
def test_2_functions_of_graphs_inside_are_kept(device, stream, kind):
    owner, seen = watched()
    graph = GraphDefinition()
    calls = []
    with GraphDefinition() as child:
        child.callback(lambda owner=owner: calls.append(owner is not None))
        node = graph.embed(child) if kind == "child" else nested(graph, child)[0]
    del owner
    clone = graph.clone()
    executable = graph.instantiate()
    node.destroy()
    graph.close()
    for made in (executable, clone.instantiate()):
        made.launch(stream)
        stream.sync()
        made.close()
    assert calls == [True, True]
    assert stays(seen)
    clone.close()
    assert eventually(lambda: seen() is None)


@pytest.mark.parametrize("kind", KINDS)
def test_5_destroying_a_node_lets_go_of_all_graphs_inside(device, stream, buffers_before, graph, kind):
    beside = fill(graph, device, stream)
    node, inner, filled = inside(kind, graph, device, stream)
    fill(inner, device, stream)
    filled.memset(filled.dptr, 1, 4)
    assert stays(keeps(buffers_before + 3))
    node.destroy()
    assert eventually(keeps(buffers_before + 1))
    inside(kind, graph, device, stream)  # the driver may give it the same handles
    assert stays(keeps(buffers_before + 2))
    if kind in CHILDREN:  # drivers refuse graphs with conditions that no node uses
        run(graph, stream)
    beside.destroy()
    assert eventually(keeps(buffers_before + 1))


@pytest.mark.parametrize("kind", KINDS)
def test_4_nodes_of_graphs_inside_are_changed(device, stream, buffers_before, graph, kind):
    _, inner, filled = inside(kind, graph, device, stream)
    with device.allocate(SIZE, stream) as other:
        filled.update(dst=other)
        address = other.handle
    assert eventually(keeps(buffers_before + 1))
    run(graph, stream)
    if kind != "while":
        assert content_at(address, stream) == b"\3" * SIZE
    filled.destroy()
    assert eventually(keeps(buffers_before))
    fill(inner, device, stream).destroy()
    fill(inner, device, stream)
    assert eventually(keeps(buffers_before + 1))


@pytest.mark.parametrize("kind", CHILDREN)
def test_10_a_clone_keeps_what_graphs_inside_use(device, stream, buffers_before, kind):
    graph = GraphDefinition()
    _, inner, filled = inside(kind, graph, device, stream)
    address = filled.dptr
    clone = graph.clone()
    filled.destroy()
    fill(inner, device, stream)
    del inner, filled
    graph.close()
    assert eventually(keeps(buffers_before + 1))
    run(clone, stream)
    assert content_at(address, stream) == b"\3" * SIZE
    (outer,) = clone.nodes()
    (node,) = outer.child_graph.nodes()
    (node if kind == "child" else outer).destroy()
    assert eventually(keeps(buffers_before))
    clone.close()


@pytest.mark.parametrize("copy", ["clone", "embed", "update"])
@pytest.mark.parametrize("filled_before", [False, True])
def test_10_what_is_inside_the_graphs_of_a_copy_goes_with_its_node(
    device, stream, buffers_before, graph, copy, filled_before
):
    """The graph inside a graph inside is destroyed in the copy, and its node changed."""
    original = GraphDefinition()
    for _ in range(3):
        with GraphDefinition() as child:
            if filled_before:
                fill(child, device, stream)
            _, inner = nested(original, child)
            if not filled_before:
                fill(inner.child_graph, device, stream)
            del inner
    if copy == "clone":
        made = original.clone()
    elif copy == "embed":
        made = graph.embed(original).child_graph
    else:
        node = graph.embed(made := GraphDefinition())
        made.close()
        node.update(original)
        made = node.child_graph
    first, second, third = made.nodes()
    (inner,) = first.child_graph.nodes()
    inner.destroy()
    assert stays(keeps(buffers_before + 3))  # the original has it
    original.close()
    assert eventually(keeps(buffers_before + 2))
    second.destroy()
    assert eventually(keeps(buffers_before + 1))
    (inner,) = third.child_graph.nodes()
    (filled,) = inner.child_graph.nodes()
    filled.update(value=4)
    assert stays(keeps(buffers_before + 1))
    filled.destroy()
    assert eventually(keeps(buffers_before))
    if copy == "clone":
        made.close()


@pytest.mark.parametrize("kind", CHILDREN)
def test_10_a_graph_inside_can_be_cloned(device, stream, buffers_before, kind):
    source = GraphDefinition()
    node, inner, filled = inside(kind, source, device, stream)
    address = filled.dptr
    made = (inner if kind == "child" else node.child_graph).clone()
    del node, inner, filled
    source.close()
    assert stays(keeps(buffers_before + 1))
    run(made, stream)
    assert content_at(address, stream) == b"\3" * SIZE
    made.close()
    assert eventually(keeps(buffers_before))


@pytest.mark.parametrize("kind", CHILDREN)
@pytest.mark.parametrize("call", ["embed", "update"])
def test_nothing_is_kept_where_the_driver_refuses_a_graph_that_is_inside_a_node(
    device, stream, buffers_before, graph, kind, call
):
    with GraphDefinition() as source:
        node, inner, _ = inside(kind, source, device, stream)
        refused = inner if kind == "child" else node.child_graph
        if call == "embed":
            with pytest.raises(CUDAError, match="CUDA_ERROR_NOT_SUPPORTED"):
                graph.embed(refused)
        else:
            same = refused.clone()
            executable = same.instantiate()
            with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_VALUE"):
                executable.update(refused)
            executable.close()
            same.close()
        assert stays(keeps(buffers_before + 1))
        del node, inner, _, refused
    assert eventually(keeps(buffers_before))


def test_4_another_graph_in_place_of_the_one_inside_replaces_what_is_kept(device, stream, buffers_before, graph):
    child, _ = filling(device, stream, 1)
    node, _ = nested(graph, child)
    child.close()
    other, filled = filling(device, stream, 2)
    address = filled.dptr
    executable = graph.instantiate()
    node.update(other)
    other.close()
    assert stays(keeps(buffers_before + 2))
    executable.close()
    assert eventually(keeps(buffers_before + 1))
    run(graph, stream)
    assert content_at(address, stream) == b"\2" * SIZE
    (inner,) = node.child_graph.nodes()
    inner.destroy()
    assert eventually(keeps(buffers_before))


@pytest.mark.simulator_only("only the simulated driver tells what it was called with")
def test_11_an_update_replaces_what_is_kept_of_graphs_inside(device, stream, buffers_before):
    executable, addresses = None, []
    with simulator.trace() as calls:
        for _ in range(2):
            graph = GraphDefinition()
            _, _, filled = inside("child in a body", graph, device, stream)
            addresses.append(filled.dptr)
            del _, filled
            if executable is None:
                executable = graph.instantiate()
            else:
                with Gate(stream) as gate:
                    executable.launch(stream)
                    executable.update(graph)
                    graph.close()
                    assert stays(keeps(buffers_before + 2))
                    gate.open()
                    stream.sync()
            graph.close()
        assert eventually(keeps(buffers_before + 1))
        executable.launch(stream)
        assert content_at(addresses[1], stream) == b"\3" * SIZE
        executable.close()
    assert user_objects(calls) == []
    assert eventually(keeps(buffers_before))


@pytest.mark.simulator_only("only the simulated driver tells what it was called with")
def test_13_what_the_child_of_an_executable_is_set_to_is_kept_by_it(device, stream, buffers_before, graph):
    with simulator.trace() as calls:
        child, _ = filling(device, stream, 1)
        node = graph.embed(child)
        child.close()
        executable = graph.instantiate()
        for value in (2, 3):  # the second replaces the first
            other, filled = filling(device, stream, value)
            address = filled.dptr
            executable[node].update(other)
            other.close()
            assert eventually(keeps(buffers_before + 2))
            executable.launch(stream)
            assert content_at(address, stream) == bytes([value]) * SIZE
        with simulator.fail("cuGraphExecNodeSetParams", FAILURE), pytest.raises(CUDAError):
            executable[node].update(filling(device, stream)[0])
        assert eventually(keeps(buffers_before + 2))
        executable.update(graph)
        assert eventually(keeps(buffers_before + 1))
        executable.close()
    assert user_objects(calls) == []


@pytest.mark.simulator_only("only the simulated driver tells what it was called with")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shown", ["before", "after", "inner before", "inner after", "node"])
def test_20_executables_of_other_libraries_keep_what_graphs_inside_use(device, stream, buffers_before, kind, shown):
    graph = GraphDefinition()
    made, parameters = ffi.new("CUgraphExec *"), ffi.new("CUDA_GRAPH_INSTANTIATE_PARAMS *")
    if shown == "before":
        assert graph.handle
    node, inner, filled = inside(kind, graph, device, stream)
    if shown == "inner before":
        assert inner.handle
        fill(inner, device, stream).destroy()
    fill(inner, device, stream)
    if shown in ("after", "inner after"):
        assert (graph if shown == "after" else inner).handle
    if shown == "node":
        assert node.handle
    with simulator.trace() as calls:
        assert lib.cuGraphInstantiateWithParams(made, ffi.cast("CUgraph", graph._state.handle), parameters) == 0
        with graph.instantiate():
            pass
    assert user_objects(calls) == []
    address = filled.dptr
    assert stays(keeps(buffers_before + 2))
    node.destroy()
    del inner, node, filled
    graph.close()
    assert stays(keeps(buffers_before + 2))
    assert lib.cuGraphLaunch(made[0], stream.cdata) == 0
    stream.sync()
    if kind != "while":
        assert content_at(address, stream) == b"\3" * SIZE
    assert lib.cuGraphExecDestroy(made[0]) == 0
    assert eventually(keeps(buffers_before))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shown", [False, True])
def test_5_of_a_graph_that_others_know_a_node_lets_go_of_graphs_inside(
    device, stream, buffers_before, graph, kind, shown
):
    if shown:
        assert graph.handle
    node, inner, filled = inside(kind, graph, device, stream)
    assert graph.handle
    fill(inner, device, stream)
    filled.destroy()
    assert eventually(keeps(buffers_before + 1))
    node.destroy()
    assert eventually(keeps(buffers_before))


def test_20_a_host_function_cannot_be_the_first_to_ask_for_a_graph_inside(device, stream, buffers_before):
    told = []

    def ask(known, unknown):
        for definition in (known, unknown):
            try:
                told.append(definition.handle)
            except CUDAError as error:
                told.append(error.name)

    with GraphDefinition() as first, GraphDefinition() as second, GraphDefinition() as third:
        asked = [inside("if", graph, device, stream)[1] for graph in (first, second)]
        handle = asked[0].handle
        third.callback(lambda: ask(*asked))
        run(third, stream)
        assert told == [handle, "CUDA_ERROR_NOT_PERMITTED"]
        assert asked[1].handle
        asked.clear()
    assert eventually(keeps(buffers_before))


@pytest.mark.simulator_only("only the simulated driver fails on request")
@pytest.mark.parametrize("call", ["cuGraphAddNode", "cuGraphNodeSetParams"])
def test_7_a_graph_that_could_not_be_embedded_leaves_nothing(device, stream, buffers_before, graph, call):
    child, _ = filling(device, stream, 1)
    node = graph.embed(child)
    child.close()
    other, _ = filling(device, stream, 2)
    with simulator.fail(call, FAILURE), pytest.raises(CUDAError, match=call):
        graph.embed(other) if call == "cuGraphAddNode" else node.update(other)
    other.close()
    assert eventually(keeps(buffers_before + 1))
    run(graph, stream)
    node.destroy()
    assert eventually(keeps(buffers_before))


@pytest.mark.simulator_only("only the simulated driver fails on request")
@pytest.mark.parametrize("call", ["cuGraphNodeFindInClone", "cuGraphChildGraphNodeGetGraph"])
def test_5_what_the_driver_does_not_tell_of_goes_with_what_is_around_it(device, stream, buffers_before, graph, call):
    child, _ = filling(device, stream, 3)
    with GraphDefinition() as between, child:
        between.embed(child)
        with simulator.fail(call, FAILURE):
            node = graph.embed(between)
    assert stays(keeps(buffers_before + 1))
    run(graph, stream)
    (inner,) = node.child_graph.nodes()
    inner.destroy()
    node.destroy()
    assert eventually(keeps(buffers_before))


def test_10_a_graph_is_embedded_in_what_is_captured(device, stream, buffers_before):
    """The driver may destroy that at any time, so that it keeps what the nodes use."""
    source = GraphDefinition()
    _, inner, filled = inside("nested child", source, device, stream)
    address = filled.dptr
    with device.create_graph_builder() as builder:
        builder.begin_building()
        builder.embed(source)
        del inner, filled, _
        source.close()
        assert stays(keeps(buffers_before + 1))
        executable = builder.end_building().complete()
    executable.launch(stream)
    assert content_at(address, stream) == b"\3" * SIZE
    executable.close()
    assert eventually(keeps(buffers_before))


def test_5_threads_embed_change_and_destroy_in_one_graph(device, stream, buffers_before):
    graph = GraphDefinition()
    child, _ = filling(device, stream)
    places = [graph, *(graph.if_then(graph.create_condition(1)).then for _ in range(2))]
    alone = threading.Lock()  # a graph with conditional nodes may have one executable at a time

    def work(number: int) -> None:
        device.set_current()
        for turn in range(30):
            node = places[(number + turn) % 3].embed(child)
            (filled,) = node.child_graph.nodes()
            with device.allocate(SIZE, stream) as other:
                filled.update(dst=other)
            fill(node.child_graph, device, stream)
            if turn % 5 == number:
                with alone:
                    graph.instantiate().close()
            if turn % 10 == 0:
                node.destroy()
            elif turn % 3 == 0:
                filled.destroy()

    in_threads(4, work)
    run(graph, stream)
    places.clear()
    for node in graph.nodes():
        node.destroy()
    assert eventually(keeps(buffers_before + 1))
    graph.close()
    child.close()
    assert eventually(keeps(buffers_before))
