# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Graph builders: what is captured, and when they may be used."""

from __future__ import annotations

import copy
import gc
import threading
import weakref

import pytest
from graphs import ONE, SIZE, content, finish, run
from helpers import in_thread, in_threads

from cuda_core_cffi import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    CUDAError,
    Device,
    EventOptions,
    LaunchBatch,
    LaunchConfig,
    PreparedLaunch,
    Stream,
    launch,
    live_objects,
)
from cuda_core_cffi.graph import Graph, GraphBuilder, GraphDefinition, KernelNode, MemsetNode

# What is captured


def test_work_is_captured_and_not_run(builder, memory, stream):
    memory[0].fill(1, stream=builder)
    assert content(memory[0], stream) == bytes(SIZE)
    finish(builder, stream)
    assert content(memory[0], stream) == b"\1" * SIZE


def test_a_graph_is_launched_many_times(builder, memory, stream, store):
    launch(builder, ONE, store, memory[0], 7)
    memory[0].copy_to(memory[1], stream=builder)
    graph = builder.end_building().complete()
    for _ in range(3):
        memory[1].fill(0, stream=stream)
        graph.launch(stream)
        assert content(memory[1], stream, 4) == b"\7\0\0\0"
    graph.close()


def test_every_kind_of_launch_takes_a_builder(builder, memory, stream, store):
    prepared = PreparedLaunch(ONE, store)
    launch(builder, ONE, store, memory[0], 1)
    prepared.launch(builder, memory[1], 2)
    LaunchBatch([(prepared, memory[2], 3), (prepared, memory[3], 4)]).launch(builder)
    finish(builder, stream)
    assert [content(buffer, stream, 1) for buffer in memory] == [b"\1", b"\2", b"\3", b"\4"]


def launches_of(kernel, buffer):
    """Return every kind of launch, each a function of a stream."""
    prepared = PreparedLaunch(ONE, kernel)
    return (
        lambda queue: launch(queue, ONE, kernel, buffer, 1),
        lambda queue: prepared.launch(queue, buffer, 1),
        LaunchBatch([(prepared, buffer, 1)]).launch,
    )


def test_a_builder_that_is_not_building_takes_no_launch(device, memory, stream, store):
    with device.create_graph_builder() as builder:
        for start in launches_of(store, memory[0]):
            start(stream)  # the second launch is on the fast path
            memory[0].fill(0, stream=stream)
            with pytest.raises(RuntimeError, match="that is building: call begin_building first"):
                start(builder)
        builder.begin_building()
        for start in launches_of(store, memory[0]):
            start(builder)
        builder.end_building()
        for start in launches_of(store, memory[0]):
            with pytest.raises(RuntimeError, match="it is built; call begin_building of another one"):
                start(builder)
        assert len(builder.graph_definition.nodes()) == 3
        assert content(memory[0], stream) == bytes(SIZE)


def test_a_builder_whose_capture_failed_takes_no_launch(builder, memory, stream, store):
    branch = builder.split(2)[1]
    memory[0].fill(0, stream=branch)
    with pytest.raises(CUDAError, match="UNJOINED"):
        builder.end_building()
    for queue in (builder, branch):
        for start in launches_of(store, memory[0]):
            with pytest.raises(RuntimeError, match="its capture failed"):
                start(queue)
    branch.close()
    assert content(memory[0], stream) == bytes(SIZE)


def test_branches_and_bodies_take_launches_while_they_are_building(builder, memory, stream, store):
    branch = builder.split(2)[1]
    launch(branch, ONE, store, memory[0], 1)
    builder.join(builder, branch)
    body = builder.if_then(builder.create_condition(1))
    with pytest.raises(RuntimeError, match="call begin_building first"):
        launch(body, ONE, store, memory[1], 2)
    launch(body.begin_building(), ONE, store, memory[1], 2)
    body.end_building()
    finish(builder, stream)
    assert [content(buffer, stream, 1) for buffer in memory[:2]] == [b"\1", b"\2"]


def test_a_builder_that_is_not_building_is_its_stream_for_all_else(device, memory, stream, graph):
    graph.memset(memory[2], 3, SIZE)
    with device.create_graph_builder() as builder, graph.instantiate() as executable:
        memory[0].fill(1, stream=builder)
        memory[0].copy_to(memory[1], stream=builder)
        executable.launch(builder)
        stream.wait(builder)
        assert [content(buffer, stream, 1) for buffer in memory[:3]] == [b"\1", b"\1", b"\3"]


def test_a_launch_in_a_builder_warns_of_nothing(builder, memory, store, recwarn):
    launch(builder, ONE, store, memory[0], 1)
    assert not recwarn.list


@pytest.mark.parametrize(
    "start",
    [
        launch,
        lambda queue, config, kernel, *values: PreparedLaunch(config, kernel).launch(queue, *values),
    ],
    ids=["launch", "prepared launch"],
)
def test_a_launch_in_a_builder_that_fails_says_why(builder, memory, stream, store, start):
    config = LaunchConfig(grid=1, block=2048)
    for queue in (stream, builder):  # the second launch is on the fast path
        with pytest.raises(CUDAError, match="2048 threads in block"):
            start(queue, config, store, memory[0], 1)


def test_its_address_is_that_of_its_stream(builder):
    assert builder.__cuda_stream__() == (0, builder.stream.handle)
    assert Device().create_stream(builder).handle == builder.stream.handle


def test_its_stream_can_be_asked_what_it_is(builder, memory, stream):
    memory[0].fill(1, stream=builder)
    assert builder.stream.is_nonblocking
    assert builder.stream.priority == 0
    assert builder.stream.context.handle
    assert repr(builder.stream).startswith("<Stream handle=")
    with pytest.raises(CUDAError, match="cuStreamGetFlags failed: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"):
        Stream.from_handle(builder.stream.handle).is_nonblocking  # noqa: B018
    finish(builder, stream)
    assert content(memory[0], stream) == b"\1" * SIZE


def test_events_order_what_several_streams_capture(builder, memory, device, stream):
    memory[0].fill(1, stream=builder)
    with device.create_stream() as side:
        side.wait(builder)
        memory[0].copy_to(memory[1], stream=side)
        builder.stream.wait(side.record())
        memory[1].copy_to(memory[2], stream=builder)
        finish(builder, stream)
    assert content(memory[2], stream) == b"\1" * SIZE


def test_kernels_that_start_early_are_captured_with_their_edges(builder, memory, stream, store):
    early = LaunchConfig(grid=1, block=1, programmatic_stream_serialization=True)
    launch(builder, ONE, store, memory[0], 1)
    launch(builder, early, store, memory[1], 2)
    memory[1].copy_to(memory[2], stream=builder)
    graph = builder.end_building().graph_definition
    (first,) = (node for node in graph.nodes() if not node.pred)
    (second,) = first.succ
    (copy,) = second.succ
    assert second.pred == {first}
    assert graph.edges() == {(first, second), (second, copy)}
    with builder.complete() as executable, graph.clone() as clone:
        executable.launch(stream)
        assert [content(memory[index], stream, 1) for index in range(3)] == [b"\1", b"\2", b"\2"]
        executable.update(clone)
        executable.launch(stream)
        stream.sync()
    second.pred = ()
    assert (first.succ, second.pred) == (set(), set())
    second.pred.add(first)
    run(graph, stream)


@pytest.mark.parametrize("field", ["programmatic_event", "launch_completion_event"])
def test_events_of_launches_order_what_is_captured(builder, memory, device, stream, store, field):
    one, other = builder.split(2)
    with device.create_event() as event:
        launch(one, LaunchConfig(grid=1, block=1, **{field: event}), store, memory[0], 1)
        other.stream.wait(event)
        launch(other, ONE, store, memory[1], 2)
        builder.join(one, other)
        memory[1].copy_to(memory[2], stream=builder)
        graph = builder.end_building().graph_definition
    kernels = [node for node in graph.nodes() if type(node) is KernelNode]
    assert {node.pred == set() for node in kernels} == {True, False}
    assert set().union(*(node.pred for node in kernels)) < set(kernels)
    with builder.complete() as executable:
        executable.launch(stream)
    assert [content(memory[index], stream, 1) for index in range(3)] == [b"\1", b"\2", b"\2"]


def test_a_stream_that_exists_is_captured(stream, memory):
    builder = stream.create_graph_builder()
    assert builder.stream is stream
    builder.begin_building()
    memory[0].fill(1, stream=stream)
    builder.end_building()
    assert [type(node) for node in builder.graph_definition.nodes()] == [MemsetNode]
    builder.close()
    stream.sync()  # it is still there


def test_the_default_stream_of_a_thread_is_captured(device, memory, stream):
    with PER_THREAD_DEFAULT_STREAM.create_graph_builder() as builder:
        builder.begin_building()
        memory[0].fill(1, stream=PER_THREAD_DEFAULT_STREAM)
        finish(builder, stream)
    assert content(memory[0], stream) == b"\1" * SIZE


def test_the_legacy_default_stream_is_not(device):
    with pytest.raises(ValueError, match="legacy default stream cannot be captured"):
        LEGACY_DEFAULT_STREAM.create_graph_builder()


def test_a_closed_stream_is_not_captured(device):
    stream = device.create_stream()
    stream.close()
    with pytest.raises(RuntimeError, match="this Stream is closed"):
        stream.create_graph_builder()


def test_captured_events_say_nothing_of_work(builder, device):
    event = builder.stream.record(options=EventOptions())
    with pytest.raises(CUDAError, match="recorded in a capture"):
        event.is_done  # noqa: B018
    with pytest.raises(CUDAError, match="INVALIDATED"):
        builder.close()


# Callbacks


def test_a_callback_comes_in_order(builder, stream):
    calls = []
    builder.callback(lambda: calls.append(1))
    builder.callback(lambda: calls.append(2))
    finish(builder, stream)
    assert calls == [1, 2]


def test_a_callback_is_kept_by_the_graph(builder, stream):
    calls = []

    def function():
        calls.append(1)

    kept = weakref.ref(function)
    builder.callback(function)
    del function
    graph = builder.end_building().complete()
    builder.close()
    gc.collect()
    assert kept() is not None
    graph.launch(stream)
    stream.sync()
    graph.close()
    assert calls == [1]


def test_a_callback_that_raises_is_heard_of(builder, stream):
    def fail():
        raise ArithmeticError("in a host function")

    builder.callback(fail)
    with pytest.raises(ArithmeticError):
        finish(builder, stream)
    builder.close()


def test_user_data_of_a_python_function_is_refused(builder):
    with pytest.raises(ValueError, match="user_data is for C functions"):
        builder.callback(lambda: None, user_data=b"1")
    with pytest.raises(TypeError, match="callable"):
        builder.callback(1)


# Graphs inside


def test_a_builder_is_embedded(builder, device, memory, stream):
    memory[0].fill(1, stream=builder)
    with device.create_graph_builder() as child:
        memory[0].copy_to(memory[1], stream=child.begin_building())
        with pytest.raises(RuntimeError, match="is being built"):
            builder.embed(child)
        child.end_building()
        builder.embed(child)
    memory[1].copy_to(memory[2], stream=builder)
    finish(builder, stream)
    assert content(memory[2], stream) == b"\1" * SIZE


def test_a_definition_is_embedded(builder, graph, memory, stream):
    graph.memset(memory[0], 2, SIZE)
    builder.embed(graph)
    finish(builder, stream)
    assert content(memory[0], stream) == b"\2" * SIZE


def test_nothing_else_is_embedded(builder, stream):
    with pytest.raises(TypeError, match="child must be a GraphDefinition, not Stream"):
        builder.embed(stream)


# The graph


def test_the_definition_is_the_graph_that_is_completed(builder, memory, stream):
    memory[0].fill(1, stream=builder)
    definition = builder.end_building().graph_definition
    assert type(definition) is GraphDefinition
    assert builder.graph_definition is definition
    (fill,) = definition.nodes()
    fill.memcpy(memory[1], memory[0], SIZE)
    with builder.complete() as graph:
        graph.launch(stream)
        graph[fill].update(dst=memory[0], value=3, width=SIZE)
        graph.launch(stream)
    assert content(memory[1], stream) == b"\3" * SIZE


def test_the_definition_outlives_the_builder(builder, memory, stream):
    memory[0].fill(1, stream=builder)
    definition = builder.end_building().graph_definition
    builder.close()
    with definition, definition.instantiate() as graph:
        graph.launch(stream)
    assert content(memory[0], stream) == b"\1" * SIZE


@pytest.mark.parametrize("end", [GraphBuilder.close, lambda builder: None], ids=["closed", "collected"])
def test_a_graph_nobody_asked_for_goes_with_the_builder(device, end):
    before = live_objects()["graph"]
    builder = device.create_graph_builder().begin_building()
    assert live_objects()["graph"] == before + 1
    end(builder.end_building())
    del builder
    gc.collect()
    assert live_objects()["graph"] == before


def test_a_graph_goes_when_its_definition_is_closed(device):
    before = live_objects()["graph"]
    with device.create_graph_builder() as builder:
        builder.begin_building().end_building().graph_definition.close()
        assert live_objects()["graph"] == before


def test_a_stream_may_go_once_the_graph_is_built(device):
    stream = device.create_stream()
    with stream.create_graph_builder().begin_building() as builder:
        before = live_objects()["stream"]
        builder.end_building()
        stream.close()
        assert live_objects()["stream"] == before - 1


def test_threads_that_ask_at_once_get_the_same_definition(device):
    for _ in range(300):
        with device.create_graph_builder() as builder:
            builder.begin_building().end_building()
            assert len(set(map(id, in_threads(4, lambda number: builder.graph_definition)))) == 1


def test_a_callback_in_a_captured_graph_can_be_replaced(builder, stream):
    calls = []
    builder.callback(lambda: calls.append(1))
    (node,) = builder.end_building().graph_definition.nodes()
    node.update(lambda: calls.append(2))
    with builder.complete() as graph:
        graph.launch(stream)
        stream.sync()
    assert calls == [2]


def test_a_graph_is_updated_from_a_builder(device, memory, stream):
    first, second = (device.create_graph_builder().begin_building() for _ in range(2))
    memory[0].fill(1, stream=first)
    memory[0].fill(2, stream=second)
    with first.end_building().complete() as graph:
        with pytest.raises(ValueError, match="is being built"):
            graph.update(second)
        graph.update(second.end_building())
        graph.launch(stream)
        assert content(memory[0], stream) == b"\2" * SIZE
    first.close()
    second.close()


def test_options_are_taken(builder, memory, stream, tmp_path):
    memory[0].fill(1, stream=builder)
    builder.end_building()
    with builder.complete({"upload_stream": stream, "auto_free_on_launch": True}) as graph:
        assert type(graph) is Graph
    builder.debug_dot_print(tmp_path / "graph.dot", {"verbose": True})
    assert (tmp_path / "graph.dot").read_text().startswith("digraph")
    with pytest.raises(TypeError, match="has no option 'sorted'"):
        builder.complete({"sorted": True})


# The course of building


def test_a_builder_is_made_by_a_device_or_a_stream_only():
    with pytest.raises(NotImplementedError, match=r"use Device\.create_graph_builder"):
        GraphBuilder()


def test_methods_that_return_the_builder(device):
    with device.create_graph_builder() as builder:
        assert builder.begin_building() is builder
        assert builder.end_building() is builder


def test_it_tells_whether_it_is_building(device):
    builder = device.create_graph_builder()
    assert (builder.is_building, builder.is_join_required, builder.is_closed) == (False, False, False)
    assert repr(builder) == f"<GraphBuilder stream={builder.stream.handle:#x}>"
    builder.begin_building()
    assert builder.is_building
    assert repr(builder).endswith(" building>")
    assert not builder.end_building().is_building
    builder.close()
    builder.close()
    assert (builder.is_building, builder.is_closed, repr(builder)) == (False, True, "<GraphBuilder closed>")


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_every_mode_captures(device, memory, stream, mode):
    with device.create_graph_builder() as builder:
        builder.begin_building(mode)
        memory[0].fill(1, stream=builder)
        finish(builder, stream)
    assert content(memory[0], stream) == b"\1" * SIZE


def test_there_is_no_other_mode(device):
    with device.create_graph_builder() as builder:
        with pytest.raises(ValueError, match="mode must be one of 'global', 'thread_local', 'relaxed', not 'local'"):
            builder.begin_building("local")
        assert not builder.is_building


def test_building_is_not_resumed(builder):
    with pytest.raises(RuntimeError, match="cannot begin building: it is being built"):
        builder.begin_building()
    builder.end_building()
    with pytest.raises(RuntimeError, match="cannot begin building: it is built"):
        builder.begin_building()


def test_what_needs_a_builder_that_is_building(device):
    uses = {
        "end_building": lambda b: b.end_building(),
        "split": lambda b: b.split(2),
        "callback": lambda b: b.callback(print),
        "create_condition": lambda b: b.create_condition(),
        "embed": lambda b: b.embed(b),
    }
    with device.create_graph_builder() as builder:
        for name, use in uses.items():
            with pytest.raises(RuntimeError, match=f"{name} is for a GraphBuilder that is building"):
                use(builder)
        builder.begin_building().end_building()
        for name, use in uses.items():
            with pytest.raises(RuntimeError, match=f"{name} is for a GraphBuilder that is building"):
                use(builder)


def test_what_needs_a_graph_that_is_built(device):
    uses = (
        lambda b: b.complete(),
        lambda b: b.graph_definition,
        lambda b: b.debug_dot_print("nowhere"),
    )
    with device.create_graph_builder() as builder:
        for use in uses:
            with pytest.raises(RuntimeError, match="begin_building was not called"):
                use(builder)
        builder.begin_building()
        for use in uses:
            with pytest.raises(RuntimeError, match="it is being built"):
                use(builder)


def test_a_closed_builder_is_of_no_use(builder, memory, store):
    builder.end_building().close()
    for use in (
        lambda: builder.stream,
        lambda: builder.__cuda_stream__(),
        lambda: builder.complete(),
        lambda: builder.begin_building(),
        lambda: builder.callback(print),
        lambda: memory[0].fill(1, stream=builder),
        lambda: launch(builder, ONE, store, memory[0], 1),
    ):
        with pytest.raises(RuntimeError, match="this GraphBuilder is closed"):
            use()


def test_a_builder_can_be_neither_copied_nor_compared(builder):
    with pytest.raises(TypeError, match="cannot be pickled or copied"):
        copy.copy(builder)
    assert builder == builder
    assert builder != builder.stream
    assert weakref.ref(builder)() is builder


def test_another_thread_may_end_a_relaxed_capture(builder, memory, stream):
    memory[0].fill(1, stream=builder)
    in_thread(builder.end_building)
    with builder.complete() as graph:
        graph.launch(stream)
    assert content(memory[0], stream) == b"\1" * SIZE


def test_of_several_threads_one_ends_a_capture(device, stream):
    def end(number):
        try:
            builder.end_building()
        except RuntimeError:
            return 0
        return 1

    for _ in range(30):
        with device.create_graph_builder() as builder:
            builder.begin_building()
            assert sum(in_threads(4, end)) == 1
            builder.complete().close()
        device.allocate(SIZE, stream).close()  # which no capture that goes on forbids


def test_threads_capture_beside_each_other(device, memory, stream):
    def capture(number):
        device.set_current()
        with device.create_graph_builder() as builder:
            builder.begin_building("thread_local")
            for _ in range(50):
                memory[number].fill(number + 1, stream=builder)
            finish(builder, stream)

    threads = [threading.Thread(target=capture, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [content(buffer, stream, 1) for buffer in memory] == [b"\1", b"\2", b"\3", b"\4"]
