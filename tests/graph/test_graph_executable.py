# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Executable graphs: launched, updated as a whole and node by node, closed."""

from __future__ import annotations

import ctypes
import gc
import weakref

import pytest
from buffers import ForeignStream
from graphs import ONE, SIZE, content, eventually, stays, watched
from helpers import output_of

from cuda_core_cffi import LEGACY_DEFAULT_STREAM, CUDAError, LaunchConfig, LegacyPinnedMemoryResource, live_objects
from cuda_core_cffi.graph import (
    ExecutableChildGraphNode,
    ExecutableEventRecordNode,
    ExecutableEventWaitNode,
    ExecutableGraphNode,
    ExecutableHostCallbackNode,
    ExecutableKernelNode,
    ExecutableMemcpyNode,
    ExecutableMemsetNode,
    Graph,
    GraphCompleteOptions,
    GraphDefinition,
)


def filled(value: int, buffer) -> GraphDefinition:
    """Return a graph that fills a buffer."""
    graph = GraphDefinition()
    graph.memset(buffer, value, SIZE)
    return graph


def test_it_is_launched_many_times(graph, stream, memory):
    calls = []
    graph.memset(memory[0], 1, SIZE).callback(lambda: calls.append(1))
    executable = graph.instantiate()
    assert type(executable) is Graph
    executable.upload(stream)
    for _ in range(5):
        executable.launch(stream)
    assert content(memory[0], stream) == b"\1" * SIZE
    assert len(calls) == 5
    executable.close()


def test_an_empty_graph_is_launched(graph, stream):
    with graph.instantiate() as executable:
        executable.launch(stream)
        stream.sync()


def test_it_is_launched_in_streams_of_others(graph, stream, memory):
    graph.memset(memory[0], 1, SIZE)
    with graph.instantiate() as executable:
        executable.launch(ForeignStream(stream))
        executable.launch(LEGACY_DEFAULT_STREAM)
        LEGACY_DEFAULT_STREAM.sync()
    assert content(memory[0], stream) == b"\1" * SIZE
    for value in (None, 5, "stream"):
        with graph.instantiate() as executable, pytest.raises(TypeError):
            executable.launch(value)


def test_it_is_launched_in_the_stream_that_is_given_whichever_was_first(graph, device, memory):
    order = []
    graph.callback(lambda: order.append("graph"))
    with graph.instantiate() as executable, device.create_stream() as first, device.create_stream() as second:
        event = device.create_event()
        for stream in (first, second, first, second, second, first):
            order.clear()
            executable.launch(stream)
            stream.callback(lambda: order.append("stream"))
            stream.record(event)
            event.sync()
            assert order == ["graph", "stream"]


def test_it_does_not_keep_the_stream_that_it_was_first_launched_in(graph, device, memory):
    graph.memset(memory[0], 1, SIZE)
    with graph.instantiate() as executable:
        before = live_objects()["stream"]
        stream = device.create_stream()
        for _ in range(2):
            executable.launch(stream)
        stream.sync()
        watch = weakref.ref(stream)
        del stream
        for _ in range(3):
            gc.collect()
        assert watch() is None
        assert live_objects()["stream"] == before
        for _ in range(20):  # one of these C handles may lie where that of the first lay
            with device.create_stream() as stream:
                executable.launch(stream)
                stream.sync()
        assert content(memory[0], LEGACY_DEFAULT_STREAM) == b"\1" * SIZE


def test_it_comes_from_a_definition():
    with pytest.raises(RuntimeError, match=r"GraphDefinition\.instantiate"):
        Graph()
    for cls in (ExecutableGraphNode, ExecutableKernelNode, ExecutableMemsetNode):
        with pytest.raises(RuntimeError, match=r"graph\[node\]"):
            cls()


@pytest.mark.parametrize("launched", [False, True])
def test_a_closed_one_is_refused(graph, stream, memory, launched):
    node = graph.memset(memory[0], 1, SIZE)
    executable = graph.instantiate()
    view = executable[node]
    if launched:
        executable.launch(stream)
    assert not executable.is_closed
    executable.close()
    executable.close()
    assert executable.is_closed
    assert executable.handle == 0
    assert repr(executable) == "<Graph handle=0x0 closed>"
    for use in (
        lambda: executable.launch(stream),
        lambda: executable.upload(stream),
        lambda: executable.update(graph),
        lambda: view.update(dst=memory[0], value=1, width=SIZE),
        lambda: view.is_enabled,
        view.disable,
    ):
        with pytest.raises(RuntimeError, match="this Graph is closed"):
            use()


@pytest.mark.parametrize("used", [False, True])
def test_a_closed_stream_is_refused(graph, device, used):
    stream = device.create_stream()
    with graph.instantiate() as executable:
        if used:
            executable.launch(stream)
            stream.sync()
        stream.close()
        for use in (executable.launch, executable.upload):
            with pytest.raises(RuntimeError, match="this Stream is closed"):
                use(stream)
    with pytest.raises(RuntimeError, match="this Stream is closed"):
        graph.instantiate({"upload_stream": stream})


def test_options(graph, stream, memory):
    graph.memset(memory[0], 1, SIZE)
    for options in (
        GraphCompleteOptions(upload_stream=stream),
        {"use_node_priority": True},
        {"device_launch": True},
        {"auto_free_on_launch": True},
    ):
        with graph.instantiate(options) as executable:
            executable.launch(stream)
            stream.sync()
    with pytest.raises(ValueError, match="exclude"):
        graph.instantiate({"auto_free_on_launch": True, "device_launch": True})
    with pytest.raises(TypeError, match="upload_stream"):
        graph.instantiate({"upload_streams": stream})


def test_a_graph_for_device_launch_cannot_call_the_host(graph, memory):
    graph.memset(memory[0], 1, SIZE).callback(lambda: None)
    with pytest.raises(CUDAError, match="device_launch"):
        graph.instantiate({"device_launch": True})


def test_memory_that_is_not_freed_stops_the_next_launch(graph, device, stream):
    node = graph.allocate(SIZE)
    with graph.instantiate() as executable:
        executable.launch(stream)
        with pytest.raises(CUDAError, match="cuGraphLaunch"):
            executable.launch(stream)
        device.memory_resource.deallocate(node.dptr, SIZE, stream)
        executable.launch(stream)
        device.memory_resource.deallocate(node.dptr, SIZE, stream)
        stream.sync()


def test_memory_is_freed_by_the_next_launch_on_request(graph, device, stream):
    node = graph.allocate(SIZE)
    with graph.instantiate({"auto_free_on_launch": True}) as executable:
        for _ in range(3):
            executable.launch(stream)
        device.memory_resource.deallocate(node.dptr, SIZE, stream)
        stream.sync()


def test_a_graph_that_allocates_has_one_executable_at_a_time(graph):
    graph.allocate(SIZE)
    executable = graph.instantiate()
    with pytest.raises(CUDAError, match="cuGraphInstantiateWithParams"):
        graph.instantiate()
    executable.close()
    graph.instantiate().close()


def test_executables_are_compared_by_handle(graph):
    with graph.instantiate() as one, graph.instantiate() as other:
        assert one == one
        assert one != other
        assert hash(one) != hash(other)


def test_a_changed_definition_does_not_change_it(graph, stream, memory):
    node = graph.memset(memory[0], 1, SIZE)
    with graph.instantiate() as executable:
        node.update(value=2)
        graph.memset(memory[1], 3, SIZE)
        executable.launch(stream)
        assert content(memory[0], stream) == b"\1" * SIZE
        assert content(memory[1], stream) == bytes(SIZE)


def test_all_nodes_are_updated_from_another_definition(stream, memory):
    with filled(1, memory[0]) as one, filled(2, memory[1]) as other, one.instantiate() as executable:
        executable.update(other)
        executable.launch(stream)
        assert content(memory[0], stream) == bytes(SIZE)
        assert content(memory[1], stream) == b"\2" * SIZE
        executable.update(one)
        executable.launch(stream)
        assert content(memory[0], stream) == b"\1" * SIZE


def change_nodes(graph, memory, store):
    graph.memset(memory[0], 1, SIZE).memset(memory[1], 1, SIZE).join()


def change_edges(graph, memory, store):
    graph.memset(memory[0], 1, SIZE)
    graph.memset(memory[1], 1, SIZE)


def change_type(graph, memory, store):
    graph.memset(memory[0], 1, SIZE).memcpy(memory[1], memory[0], SIZE)


@pytest.mark.parametrize(
    ("change", "text"),
    [(change_nodes, "nodes or edges differ"), (change_edges, "nodes or edges differ"), (change_type, "another type")],
)
def test_an_update_that_cannot_be_tells_why(graph, stream, memory, store, change, text):
    graph.memset(memory[0], 1, SIZE).memset(memory[1], 1, SIZE)
    with graph.instantiate() as executable, GraphDefinition() as other:
        change(other, memory, store)
        with pytest.raises(CUDAError, match=text) as caught:
            executable.update(other)
        assert caught.value.name == "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"
        executable.launch(stream)
        assert content(memory[1], stream) == b"\1" * SIZE


def test_a_refused_update_names_the_node(graph, stream, memory):
    with LegacyPinnedMemoryResource().allocate(SIZE, stream) as host, GraphDefinition() as other:
        graph.memcpy(memory[0], memory[1], SIZE)
        node = other.memcpy(host, memory[1], SIZE)
        with graph.instantiate() as executable, pytest.raises(CUDAError) as caught:
            executable.update(other)
        assert repr(node) in str(caught.value)


@pytest.mark.parametrize("source", [None, 5, "graph"])
def test_updates_come_from_definitions(graph, source):
    with graph.instantiate() as executable, pytest.raises(TypeError, match="GraphDefinition"):
        executable.update(source)


def test_updates_come_from_definitions_that_are_there(graph):
    other = GraphDefinition()
    other.close()
    with graph.instantiate() as executable, pytest.raises(RuntimeError, match="closed"):
        executable.update(other)


def test_views_are_of_classes_for_what_nodes_do(graph, store, memory, device):
    with device.create_event() as event, GraphDefinition() as child, graph.instantiate():
        nodes = {
            graph.launch(ONE, store, memory[0], 1): ExecutableKernelNode,
            graph.memset(memory[0], 1, 1): ExecutableMemsetNode,
            graph.memcpy(memory[0], memory[1], 1): ExecutableMemcpyNode,
            graph.embed(child): ExecutableChildGraphNode,
            graph.record(event): ExecutableEventRecordNode,
            graph.wait(event): ExecutableEventWaitNode,
            graph.callback(print): ExecutableHostCallbackNode,
        }
        empty = graph.empty()
        with graph.instantiate() as executable:
            for node, cls in nodes.items():
                view = executable[node]
                assert type(view) is cls
                assert isinstance(view, ExecutableGraphNode)
                assert repr(view) == f"<{cls.__name__} of {node!r} in {executable!r}>"
            assert type(executable[empty]) is ExecutableGraphNode
            with pytest.raises(ValueError, match="not in the definition"):
                executable[graph._entry]
            with pytest.raises(TypeError):
                iter(executable)


def test_views_are_of_nodes_of_the_definition(graph, memory):
    node = graph.memset(memory[0], 1, 1)
    with graph.instantiate() as executable, GraphDefinition() as other:
        with pytest.raises(ValueError, match="not in the definition"):
            executable[other.memset(memory[0], 1, 1)]
        with pytest.raises(TypeError, match="GraphNode"):
            executable[0]
        view = executable[node]
        node.destroy()
        with pytest.raises(RuntimeError, match="destroyed"):
            view.update(dst=memory[0], value=1, width=1)
        with pytest.raises(RuntimeError, match="destroyed"):
            executable[node]


def test_a_kernel_is_set_in_an_executable(graph, store, memory, stream):
    node = graph.launch(ONE, store, memory[0], 1)
    with graph.instantiate() as executable:
        executable[node].update(config=LaunchConfig(grid=2, block=2), kernel=store, args=(memory[1], 2))
        executable.launch(stream)
        assert content(memory[0], stream, 4) == bytes(4)
        assert content(memory[1], stream, 4) == b"\2\0\0\0"
        assert node.config == ONE
        with pytest.raises(ValueError, match="argument"):
            executable[node].update(config=ONE, kernel=store, args=())
        with pytest.raises(ValueError, match=r"Graph\.update"):
            executable[node].update(
                config=LaunchConfig(grid=1, block=1, priority=-1), kernel=store, args=(memory[1], 2)
            )


def test_a_fill_is_set_in_an_executable(graph, memory, stream):
    node = graph.memset(memory[0], 1, SIZE)
    with graph.instantiate() as executable:
        executable[node].update(dst=memory[1], value=2, width=SIZE)
        executable.launch(stream)
        assert content(memory[0], stream) == bytes(SIZE)
        assert content(memory[1], stream) == b"\2" * SIZE
        with pytest.raises(CUDAError):
            executable[node].update(dst=memory[1], value=2, width=8, height=2, pitch=16)
        executable.launch(stream)
        stream.sync()


def test_a_copy_is_set_in_an_executable(graph, memory, stream):
    node = graph.memset(memory[0], 3, SIZE).memcpy(memory[1], memory[0], SIZE)
    with graph.instantiate() as executable:
        executable[node].update(dst=memory[2].handle, src=memory[0], size=8, dst_owner=memory[2])
        executable.launch(stream)
        assert content(memory[1], stream) == bytes(SIZE)
        assert content(memory[2], stream) == b"\3" * 8 + bytes(SIZE - 8)
        with pytest.raises(ValueError, match="at least 1"):
            executable[node].update(dst=memory[2], src=memory[0], size=0)


def test_a_function_is_set_in_an_executable(graph, stream):
    calls = []
    node = graph.callback(lambda: calls.append(1))
    with graph.instantiate() as executable:
        executable[node].update(lambda: calls.append(2))
        executable.launch(stream)
        stream.sync()
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(calls.append)
        executable[node].update(function, user_data=3)
        del function
        gc.collect()
        executable.launch(stream)
        stream.sync()
    assert calls == [2, 3]
    assert node.callback is not None


def test_events_are_set_in_an_executable(graph, device, stream):
    with device.create_event() as first, device.create_event({"timing_enabled": True}) as second:
        recorded = graph.record(first)
        waited = recorded.wait(first)
        before = live_objects()["event"]
        with graph.instantiate() as executable:
            executable[recorded].update(second)
            executable[waited].update(second)
            executable.launch(stream)
            stream.sync()
            assert second - second == 0  # it was recorded
        assert live_objects()["event"] == before
        assert recorded.event == first


def test_a_graph_inside_is_set_in_an_executable(graph, stream, memory):
    with filled(1, memory[0]) as child, filled(2, memory[1]) as other, GraphDefinition() as different:
        node = graph.embed(child)
        with graph.instantiate() as executable:
            executable[node].update(other)
            executable.launch(stream)
            assert content(memory[0], stream) == bytes(SIZE)
            assert content(memory[1], stream) == b"\2" * SIZE
            different.empty()
            with pytest.raises(CUDAError):
                executable[node].update(different)
            executable.launch(stream)
            stream.sync()


def test_nodes_are_disabled_and_enabled(graph, store, memory, stream):
    kernel = graph.launch(ONE, store, memory[0], 1)
    fill = graph.memset(memory[1], 1, SIZE)
    copy = graph.join(kernel, fill).memcpy(memory[2], memory[1], SIZE)
    with graph.instantiate() as executable:
        views = [executable[node] for node in (kernel, fill, copy)]
        assert [view.is_enabled for view in views] == [True] * 3
        for view in views:
            view.disable()
        executable.launch(stream)
        assert [view.is_enabled for view in views] == [False] * 3
        assert [content(buffer, stream) for buffer in memory[:3]] == [bytes(SIZE)] * 3
        for view in views:
            view.enable()
        executable.launch(stream)
        assert content(memory[0], stream, 4) == b"\1\0\0\0"
        assert content(memory[2], stream) == b"\1" * SIZE


def test_nodes_inside_nodes_are_set_and_disabled_in_an_executable(graph, memory, stream):
    with filled(1, memory[0]) as child:
        (inner,) = graph.embed(child).child_graph.nodes()
    with graph.instantiate() as executable:
        executable[inner].update(dst=memory[1], value=2, width=SIZE)
        executable.launch(stream)
        assert content(memory[0], stream) == bytes(SIZE)
        assert content(memory[1], stream) == b"\2" * SIZE


# Launches that outlive what made them


@pytest.mark.parametrize("is_set", [False, True])
def test_a_captured_launch_keeps_what_the_executable_does_or_is_refused(graph, device, stream, memory, is_set):
    owner, seen = watched()
    node = graph.memset(memory[0].handle, 1, SIZE, dst_owner=None if is_set else owner)
    executable = graph.instantiate()
    if is_set:
        executable[node].update(dst=memory[1].handle, value=1, width=SIZE, dst_owner=owner)
    del owner
    node.destroy()
    builder = device.create_graph_builder().begin_building()
    refusal = None
    try:
        executable.launch(builder)
    except CUDAError as error:
        refusal = error.call, error.name
    executable.close()
    if refusal is None:
        captured = builder.end_building().complete()
        assert stays(seen)
        captured.launch(stream)
        stream.sync()
        captured.close()
    else:
        assert refusal in {
            ("cuGraphLaunch", "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"),
            ("cuGraphLaunch", "CUDA_ERROR_NOT_PERMITTED"),
        }
        with pytest.raises(CUDAError, match="cuStreamEndCapture"):
            builder.end_building()
        builder.stream.sync()
    builder.close()
    assert eventually(lambda: seen() is None)


def test_a_launch_keeps_what_it_uses_at_exit_too():
    """It may run longer than the interpreter, which must not free what it uses."""
    text = output_of(
        """
        import ctypes, os
        from cuda_core_cffi import Device, ffi, lib
        from cuda_core_cffi.graph import GraphDefinition

        class Owner:
            def __del__(self):
                os.write(1, b"freed")

        device = Device(0)
        device.set_current()
        stream = device.create_stream()
        buffer = device.allocate(64, stream)
        graph = GraphDefinition()
        graph.memset(buffer.handle, 0, 64, dst_owner=Owner())
        executable = graph.instantiate()
        usleep = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p).value
        assert lib.cuLaunchHostFunc(stream.cdata, ffi.cast("CUhostFn", usleep), ffi.cast("void *", 500_000)) == 0
        executable.launch(stream)
        del graph, executable
        """
    )
    assert text == ""
