# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Builders that split and join, and those of the bodies of conditional nodes."""

from __future__ import annotations

import pytest
from graphs import ONE, SIZE, content, eventually, finish

from cuda_core_cffi import CUDAError, launch, live_objects
from cuda_core_cffi.graph import GraphBuilder, GraphDefinition, IfElseNode, IfNode, SwitchNode, WhileNode

# Split and join


def test_branches_come_after_what_was_before_and_before_what_comes_after(builder, memory, stream):
    memory[0].fill(5, stream=builder)
    first, second, third = builder.split(3)
    assert first is builder
    memory[0].copy_to(memory[1], stream=first)
    memory[0].copy_to(memory[2], stream=second)
    memory[0].copy_to(memory[3], stream=third)
    assert GraphBuilder.join(first, second, third) is builder
    memory[0].fill(0, stream=builder)
    definition = builder.end_building().graph_definition
    assert (len(definition.nodes()), len(definition.edges())) == (5, 6)
    with builder.complete() as graph:
        graph.launch(stream)
    assert [content(buffer, stream, 1) for buffer in memory] == [b"\0", b"\5", b"\5", b"\5"]


def test_branches_split_again(builder, memory, stream):
    _, left = builder.split(2)
    _, further = left.split(2)
    memory[0].fill(1, stream=left)
    memory[1].fill(2, stream=further)
    assert GraphBuilder.join(further, left) is further  # neither is where it began
    assert (left.is_closed, further.is_closed) == (True, False)
    builder.join(builder, further)
    finish(builder, stream)
    assert [content(buffer, stream, 1) for buffer in memory[:2]] == [b"\1", b"\2"]


def test_a_branch_tells_that_it_has_to_be_joined(builder):
    _, branch = builder.split(2)
    assert (branch.is_building, branch.is_join_required, builder.is_join_required) == (True, True, False)
    assert branch.stream != builder.stream
    GraphBuilder.join(branch, builder)
    assert (branch.is_building, branch.is_closed) == (False, True)
    builder.end_building()


def test_a_branch_neither_begins_nor_ends_nor_has_a_graph(builder):
    _, branch = builder.split(2)
    with pytest.raises(RuntimeError, match="came from split: join it"):
        branch.end_building()
    with pytest.raises(RuntimeError, match="came from split"):
        branch.begin_building()
    for use in (branch.complete, lambda: branch.graph_definition, lambda: branch.debug_dot_print("nowhere")):
        with pytest.raises(RuntimeError, match="came from split: the graph is that"):
            use()
    builder.join(builder, branch).end_building()
    assert builder.graph_definition.nodes() == set()


def test_a_branch_that_is_not_joined_fails_the_capture_with_the_reason(builder, memory, stream):
    _, branch = builder.split(2)
    memory[0].fill(1, stream=branch)
    with pytest.raises(CUDAError, match="join the builders that came from split") as caught:
        builder.end_building()
    assert caught.value.name == "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"
    assert (builder.is_building, branch.is_building) == (False, False)
    branch.stream.sync()  # both streams can be used
    builder.stream.sync()
    branch.close()


def test_branches_call_functions_of_the_host(builder, stream):
    calls = []
    _, branch = builder.split(2)
    branch.callback(lambda: calls.append(1))
    GraphBuilder.join(builder, branch).callback(lambda: calls.append(2))
    finish(builder, stream)
    assert calls == [1, 2]


@pytest.mark.parametrize("count", [1, 0, -1])
def test_a_split_makes_two_at_least(builder, count):
    with pytest.raises(ValueError, match=f"count must be at least 2, not {count}"):
        builder.split(count)
    with pytest.raises(TypeError, match="count must be an int, not float"):
        builder.split(2.0)


def test_a_join_takes_two_at_least_of_one_capture(builder, device):
    _, branch = builder.split(2)
    with device.create_graph_builder() as other:
        for wrong in ((), (builder,), (branch, branch)):
            with pytest.raises(ValueError, match="two different GraphBuilders at least"):
                GraphBuilder.join(*wrong)
        with pytest.raises(RuntimeError, match="join is for a GraphBuilder that is building"):
            GraphBuilder.join(builder, other)
        other.begin_building()
        with pytest.raises(ValueError, match="came from one by split"):
            GraphBuilder.join(branch, other)
        with pytest.raises(TypeError, match="not Stream"):
            GraphBuilder.join(builder, other.stream)
    assert not branch.is_closed
    GraphBuilder.join(builder, branch)
    with pytest.raises(RuntimeError, match="this GraphBuilder is closed"):
        GraphBuilder.join(builder, branch)


# Bodies of conditional nodes


@pytest.mark.parametrize("value", [0, 1])
def test_if_then(builder, memory, stream, value):
    then = builder.if_then(builder.create_condition(value))
    assert (then.is_building, then.is_join_required) == (False, False)
    memory[0].fill(1, stream=then.begin_building())
    then.end_building()
    memory[1].fill(2, stream=builder)
    finish(builder, stream)
    assert (content(memory[0], stream, 1), content(memory[1], stream, 1)) == (bytes([value]), b"\2")


@pytest.mark.parametrize("value", [0, 1])
def test_if_else(builder, memory, stream, value):
    bodies = builder.if_else(builder.create_condition(value))
    for number, body in enumerate(bodies, 1):
        memory[0].fill(number, stream=body.begin_building())
        body.end_building()
    finish(builder, stream)
    assert content(memory[0], stream, 1) == (b"\1" if value else b"\2")


@pytest.mark.parametrize("value", [0, 2, 3])
def test_switch(builder, memory, stream, value):
    bodies = builder.switch(builder.create_condition(value), 3)
    assert len(bodies) == 3
    for number, body in enumerate(bodies, 1):
        memory[0].fill(number, stream=body.begin_building())
        body.end_building()
    finish(builder, stream)
    assert content(memory[0], stream, 1) == bytes([value + 1 if value < 3 else 0])


def test_a_loop_runs_until_a_kernel_says_so(builder, memory, stream, setters):
    condition = builder.create_condition(1)
    memory[0].fill(0, stream=builder)
    memory[0][:4].fill(b"\5\0\0\0", stream=builder)
    body = builder.while_loop(condition)
    launch(body.begin_building(), ONE, setters[1], condition, memory[0])
    memory[0].copy_to(memory[1], stream=body)
    body.end_building()
    finish(builder, stream)
    assert content(memory[1], stream, 4) == bytes(4)


def test_conditional_nodes_inside_bodies(builder, memory, stream):
    outer = builder.if_then(builder.create_condition(1)).begin_building()
    inner = outer.if_then(outer.create_condition(1)).begin_building()
    memory[0].fill(4, stream=inner)
    inner.end_building()
    outer.end_building()
    finish(builder, stream)
    assert content(memory[0], stream, 1) == b"\4"


def test_bodies_split_and_join(builder, memory, stream):
    body = builder.if_then(builder.create_condition(1)).begin_building()
    _, branch = body.split(2)
    memory[0].fill(1, stream=branch)
    GraphBuilder.join(body, branch)
    body.end_building()
    finish(builder, stream)
    assert content(memory[0], stream, 1) == b"\1"


def test_a_body_can_be_filled_without_capture(builder, memory, stream):
    body = builder.if_then(builder.create_condition(1))
    assert type(body.graph_definition) is GraphDefinition
    body.graph_definition.memset(memory[0], 6, SIZE)
    finish(builder, stream)
    assert content(memory[0], stream) == b"\6" * SIZE


def test_the_graph_of_a_body_is_not_there_while_it_is_captured(builder, memory):
    body = builder.if_then(builder.create_condition(1))
    early = body.graph_definition
    memory[0].fill(1, stream=body.begin_building())
    with pytest.raises(RuntimeError, match="it is being built"):
        body.graph_definition  # noqa: B018
    body.end_building()
    assert body.graph_definition is early
    assert len(early.nodes()) == 1
    with pytest.raises(RuntimeError, match="complete that"):
        body.complete()
    builder.end_building()


def test_a_builder_knows_its_conditional_nodes(builder):
    kinds = (IfNode, IfElseNode, WhileNode, SwitchNode)
    condition = builder.create_condition
    bodies = [
        builder.if_then(condition()),
        *builder.if_else(condition()),
        builder.while_loop(condition()),
        *builder.switch(condition(), 2),
    ]
    definition = builder.end_building().graph_definition
    found = {type(node): node for node in definition.nodes()}
    assert found.keys() == set(kinds)
    assert [body.graph_definition for body in bodies] == [b for kind in kinds for b in found[kind].branches]


def test_a_condition_of_another_graph_is_refused(builder, device):
    with device.create_graph_builder() as other:
        condition = other.begin_building().create_condition()
        with pytest.raises(ValueError, match="belongs to another graph"):
            builder.if_then(condition)
        other.if_then(condition)
        other.end_building()
    with pytest.raises(OverflowError, match="default_value must be 0 to"):
        builder.create_condition(-1)
    builder.end_building()


def test_builders_go_in_any_order(device, memory):
    before = live_objects()
    builder = device.create_graph_builder().begin_building()
    body = builder.if_then(builder.create_condition(1)).begin_building()
    memory[0].fill(1, stream=body)
    definition = body.end_building().graph_definition
    builder.close()
    assert not definition.is_valid
    with pytest.raises(RuntimeError, match="closed"):
        definition.nodes()
    del builder, body, definition
    assert eventually(lambda: live_objects() == before)
