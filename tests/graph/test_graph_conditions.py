# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Conditional nodes: which bodies run."""

from __future__ import annotations

import gc

import pytest
from graphs import ONE, SIZE, content, run

from cuda_core_cffi import CUDAError
from cuda_core_cffi.graph import GraphCondition, GraphDefinition, IfElseNode, IfNode, SwitchNode, WhileNode
from cuda_core_cffi.typing import GraphConditionalType


@pytest.mark.parametrize(("value", "ran"), [(0, False), (1, True), (7, True)])
def test_if(graph, memory, stream, value, ran):
    node = graph.if_then(graph.create_condition(value))
    assert type(node) is IfNode
    node.then.memset(memory[0], 1, SIZE)
    run(graph, stream)
    assert content(memory[0], stream) == (b"\1" if ran else b"\0") * SIZE


@pytest.mark.parametrize("value", [0, 1])
def test_if_else(graph, memory, stream, value):
    node = graph.if_else(graph.create_condition(value))
    assert type(node) is IfElseNode
    node.then.memset(memory[0], 1, SIZE)
    node.else_.memset(memory[0], 2, SIZE)
    run(graph, stream)
    assert content(memory[0], stream) == (b"\1" if value else b"\2") * SIZE


@pytest.mark.parametrize("value", [0, 1, 2, 3])
def test_switch(graph, memory, stream, value):
    node = graph.switch(graph.create_condition(value), 3)
    assert type(node) is SwitchNode
    assert len(node.branches) == 3
    for number, branch in enumerate(node.branches, 1):
        branch.memset(memory[0], number, SIZE)
    run(graph, stream)
    assert content(memory[0], stream) == bytes([value + 1 if value < 3 else 0]) * SIZE


def test_a_kernel_sets_a_condition(graph, memory, stream, setters):
    condition = graph.create_condition()
    node = graph.launch(ONE, setters[0], condition, 1).if_else(condition)
    node.then.memset(memory[0], 1, SIZE)
    node.else_.memset(memory[0], 2, SIZE)
    run(graph, stream)
    assert content(memory[0], stream) == b"\1" * SIZE
    (kernel,) = node.pred
    kernel.update(args=(condition, 0))
    run(graph, stream)
    assert content(memory[0], stream) == b"\2" * SIZE


def test_while(graph, memory, stream, setters):
    condition = graph.create_condition(1)
    node = graph.memset(memory[0], b"\5\0\0\0", 1).while_loop(condition)
    assert type(node) is WhileNode
    body = node.body.launch(ONE, setters[1], condition, memory[0])
    body.memcpy(memory[1], memory[0], 4)
    with graph.instantiate() as executable:
        for _ in range(2):
            executable.launch(stream)
            assert content(memory[0], stream, 4) == bytes(4)


def test_a_loop_whose_condition_is_0_does_not_run(graph, memory, stream):
    graph.while_loop(graph.create_condition(0)).body.memset(memory[0], 1, SIZE)
    run(graph, stream)
    assert content(memory[0], stream) == bytes(SIZE)


def test_conditions_inside_conditions(graph, memory, stream):
    outer = graph.if_then(graph.create_condition(1))
    inner = outer.then.switch(graph.create_condition(1), 2)
    inner.branches[1].memset(memory[0], 4, SIZE)
    run(graph, stream)
    assert content(memory[0], stream) == b"\4" * SIZE


def test_a_node_tells_what_it_is(graph):
    condition = graph.create_condition(1)
    assert type(condition) is GraphCondition
    node = graph.if_then(condition)
    assert node.condition is condition
    assert node.cond_type is GraphConditionalType.IF
    assert node.branches == (node.then,)
    assert node.then.is_valid
    assert repr(node) == f"<IfNode handle={node.handle:#x} condition={condition.handle:#x}>"
    switch = graph.switch(graph.create_condition(), 2)
    assert (switch.cond_type, repr(switch)[-11:]) == ("switch", "branches=2>")
    assert graph.while_loop(graph.create_condition()).cond_type == "while"


def test_a_node_comes_back_as_what_it_is(graph):
    handle = graph.if_else(graph.create_condition()).handle
    gc.collect()
    (node,) = graph.nodes()
    assert type(node) is IfElseNode
    assert node.handle == handle
    assert node.else_ is node.branches[1]


def test_bodies_go_with_the_node(graph, memory):
    node = graph.if_then(graph.create_condition())
    body = node.then
    inner = body.memset(memory[0], 1, 4)
    node.destroy()
    assert not body.is_valid
    assert not inner.is_valid
    with pytest.raises(RuntimeError, match="destroyed"):
        body.empty()


def test_a_body_keeps_the_whole(memory):
    def body():
        graph = GraphDefinition()
        return graph.if_then(graph.create_condition(1)).then

    found = body()
    gc.collect()
    assert found.is_valid
    found.memset(memory[0], 1, 4)


@pytest.mark.parametrize("condition", [None, 5, "condition"])
def test_only_conditions_decide(graph, condition):
    for add in (graph.if_then, graph.if_else, graph.while_loop, lambda value: graph.switch(value, 2)):
        with pytest.raises(TypeError, match="GraphCondition"):
            add(condition)


def test_conditions_of_other_graphs_are_refused(graph):
    with GraphDefinition() as other:
        condition = other.create_condition()
        with pytest.raises(ValueError, match="another graph"):
            graph.if_then(condition)
        with pytest.raises(ValueError, match="another graph"):
            graph.if_then(GraphCondition())
        other.if_then(condition)


@pytest.mark.parametrize(
    ("count", "error"), [(0, ValueError), (-1, ValueError), ("2", TypeError), (2**32, OverflowError)]
)
def test_bad_numbers_of_branches_are_refused(graph, count, error):
    condition = graph.create_condition()
    with pytest.raises(error, match="count"):
        graph.switch(condition, count)
    graph.if_then(condition)


@pytest.mark.parametrize(
    ("value", "error"), [(-1, OverflowError), (2**32, OverflowError), (1.5, TypeError), ("1", TypeError)]
)
def test_bad_default_values_are_refused(graph, value, error):
    with pytest.raises(error, match="default_value"):
        graph.create_condition(value)


def test_a_condition_that_nothing_uses_is_told(graph):
    graph.empty()
    graph.create_condition()
    with pytest.raises(CUDAError, match="no conditional node uses"):
        graph.instantiate()


def test_a_graph_with_conditions_is_neither_cloned_nor_embedded(graph):
    graph.if_then(graph.create_condition())
    with pytest.raises(CUDAError):
        graph.clone()
    with GraphDefinition() as other, pytest.raises(CUDAError):
        other.embed(graph)


def test_what_bodies_use_is_kept(graph, device, stream, memory):
    node = graph.if_then(graph.create_condition(1))
    with device.allocate(SIZE, stream) as buffer:
        first = node.then.memset(buffer, 6, SIZE)
    first.memcpy(memory[0], first.dptr, SIZE)
    with graph.instantiate() as executable:
        graph.close()
        executable.launch(stream)
        assert content(memory[0], stream) == b"\6" * SIZE


def test_updates_reach_bodies(graph, memory, stream):
    node = graph.if_then(graph.create_condition(1))
    fill = node.then.memset(memory[0], 1, SIZE)
    with graph.instantiate() as executable:
        fill.update(value=2)
        executable.update(graph)
        executable.launch(stream)
        assert content(memory[0], stream) == b"\2" * SIZE
