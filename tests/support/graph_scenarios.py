# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What test_every_failure.py does with graphs: importing this adds to the scenarios.

What cannot be destroyed keeps what it uses for ever. So where a graph or an executable ends here, it uses nothing:
nodes are given addresses, or destroyed before.
"""

from __future__ import annotations

import os
from typing import Any

from buffers import SIZE
from scenarios import SCENARIOS, World

from cuda_core_cffi import GraphMemoryResource, LaunchConfig
from cuda_core_cffi.graph import GraphDefinition
from cuda_core_cffi.texture import OpaqueArrayOptions
from cuda_core_cffi.utils import WriteValue


def with_graph(work: Any) -> Any:
    """Return a scenario that does something with a new graph, and closes it."""

    def scenario(w: World) -> None:
        with GraphDefinition() as graph:
            work(w, graph)

    return scenario


def nothing() -> None:
    """Be a host function."""


def change_kernel(w: World, graph: GraphDefinition) -> None:
    """Add a kernel node, read it and change it."""
    node = graph.launch(LaunchConfig(grid=1, block=1, priority=0), w.kernel, w.buffer, 1)
    node.update(args=(w.buffer, 2))
    node.update(config=LaunchConfig(grid=2, block=1, is_cooperative=True))
    node.destroy()


def change_memory(w: World, graph: GraphDefinition) -> None:
    """Add nodes that fill and copy, and change them."""
    fill = graph.memset(w.buffer, 1, SIZE)
    fill.update(value=2)
    fill.destroy()
    copy = graph.memcpy(w.pinned.handle, w.buffer.handle, SIZE)
    copy.update(size=8)
    with w.device.create_opaque_array(OpaqueArrayOptions((4, 4), "uint8", 1)) as array:
        copy.update(dst=array, src=w.buffer.handle)
        copy.destroy()


def change_operations(w: World, graph: GraphDefinition) -> None:
    """Add a node of memory operations, read it, and change it, also in an executable."""
    node = graph.batch_mem_op([WriteValue(w.buffer.handle, 1)])
    assert len(node.operations) == 1
    node.update([WriteValue(w.buffer.handle, 2)])
    with graph.instantiate() as executable:
        executable[node].update([WriteValue(w.buffer.handle, 3)])


def change_event(w: World, graph: GraphDefinition) -> None:
    """Add nodes for events, and change them."""
    recorded, waited = graph.record(w.event), graph.wait(w.event)
    recorded.event.close()
    waited.update(w.event)
    assert waited.event == w.event
    recorded.destroy()
    waited.destroy()


def change_edges(w: World, graph: GraphDefinition) -> None:
    """Add, remove and read edges, and remove a node."""
    first, second = graph.empty(), graph.empty()
    first.succ = {second}
    assert second.pred == {first}
    assert len(graph.edges()) == 1
    assert len(graph.nodes()) == 2
    first.succ.clear()
    second.destroy()


def change_child(w: World, graph: GraphDefinition) -> None:
    """Embed a graph, and another in its place."""
    with GraphDefinition() as child:
        child.memset(w.buffer.handle, 1, SIZE)
        node = graph.embed(child)
        node.update(child)


def allocate(w: World, graph: GraphDefinition) -> None:
    """Allocate and free in a graph."""
    node = graph.allocate(SIZE)
    assert node.bytesize == SIZE
    free = node.deallocate(node.dptr)
    assert free.dptr == node.dptr


def change_executable(w: World, graph: GraphDefinition) -> None:
    """Change nodes of an executable, and launch it."""
    fill = graph.memset(w.buffer.handle, 1, SIZE)
    with graph.instantiate({"upload_stream": w.stream}) as executable:
        executable[fill].update(dst=w.buffer, value=2, width=SIZE)
        executable[fill].disable()
        assert not executable[fill].is_enabled
        for _ in range(2):
            executable.launch(w.stream)
        w.stream.sync()  # what is replaced goes at once, not a little later
        executable[fill].update(dst=w.buffer, value=3, width=SIZE)
        executable.launch(w.stream)
        w.stream.sync()
        executable.update(graph)


def call_host(w: World, graph: GraphDefinition) -> None:
    """Add a host function, change it and read it."""
    node = graph.callback(nothing)
    node.update(nothing)
    assert node.callback is nothing
    node.destroy()


def launch_graph(w: World, graph: GraphDefinition) -> None:
    """Launch a graph."""
    graph.memset(w.buffer.handle, 1, SIZE)
    with graph.instantiate() as executable:
        executable.upload(w.stream)
        executable.launch(w.stream)
    w.stream.sync()


def capture(w: World) -> None:
    """Capture branches and a host function, and launch the graph."""
    with w.device.create_graph_builder() as builder:
        builder.begin_building()
        _, branch = builder.split(2)
        w.buffer.fill(1, stream=branch)
        builder.join(branch, builder)
        builder.end_building().complete().close()


def capture_function(w: World) -> None:
    """Capture a host function."""
    with w.device.create_graph_builder() as builder:
        builder.begin_building().callback(nothing)
        (node,) = builder.end_building().graph_definition.nodes()
        node.destroy()


def capture_body(w: World) -> None:
    """Capture the body of a conditional node."""
    with w.stream.create_graph_builder() as builder:
        builder.begin_building()
        with builder.if_then(builder.create_condition(1)) as body:
            w.buffer.fill(1, stream=body.begin_building())
            body.end_building()
        builder.end_building()


def capture_memory(w: World) -> None:
    """Capture an allocation and a free, and one without a free."""
    resource = GraphMemoryResource(w.device)
    with w.stream.create_graph_builder() as builder:
        builder.begin_building()
        with resource.allocate(SIZE, builder) as buffer:
            w.of_graphs.add(buffer.handle)
            buffer.fill(1, stream=builder)
        left = resource.allocate(SIZE, builder)
        w.of_graphs.add(left.handle)
        with builder.end_building().complete() as graph:
            graph.launch(w.stream)
            left.close()
    w.stream.sync()


def account_for_memory(w: World) -> None:
    """Ask what graphs use."""
    resource = GraphMemoryResource(w.device)
    resource.attributes.used_mem_high = 0
    assert resource.attributes.used_mem_high == resource.attributes.used_mem_current
    resource.trim()


def free_while_capturing(w: World) -> None:
    """Close a buffer whose stream is being captured, and one whose stream is not."""
    kept, other = w.pool.allocate(SIZE, w.stream), w.pool.allocate(SIZE, w.other)
    with w.stream.create_graph_builder() as builder:
        builder.begin_building()
        kept.close()
        other.close()
        builder.end_building()


def allocate_while_capturing(w: World) -> Any:
    """Allocate in a stream, while another one is being captured."""
    with w.stream.create_graph_builder() as builder:
        builder.begin_building()
        return w.pool.allocate(SIZE, w.other)


def update_graph(w: World, graph: GraphDefinition) -> None:
    """Update an executable from a clone of its definition."""
    node = graph.memset(w.buffer.handle, 1, SIZE)
    with graph.instantiate() as executable, graph.clone() as clone:
        node.update(value=3)
        executable.update(clone)


SCENARIOS.update(
    {
        "graph": with_graph(lambda w, graph: None),
        "graph node": with_graph(lambda w, graph: graph.empty()),
        "graph kernel": with_graph(change_kernel),
        "graph memory": with_graph(change_memory),
        "graph memory operations": with_graph(change_operations),
        "graph event": with_graph(change_event),
        "graph function": with_graph(call_host),
        "graph edges": with_graph(change_edges),
        "graph inside a graph": with_graph(change_child),
        "graph allocation": with_graph(allocate),
        "graph condition": with_graph(lambda w, graph: graph.if_then(graph.create_condition(1)).then.empty()),
        "graph print": with_graph(lambda w, graph: graph.debug_dot_print(os.devnull)),
        "graph executable": with_graph(change_executable),
        "graph launch": with_graph(launch_graph),
        "captured graph": capture,
        "captured function": capture_function,
        "captured body": capture_body,
        "captured allocation": capture_memory,
        "memory of graphs": account_for_memory,
        "free while capturing": free_while_capturing,
        "allocation while capturing": allocate_while_capturing,
        "graph update": with_graph(update_graph),
    }
)
