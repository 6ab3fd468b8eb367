# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes that run kernels, added the short way: from the second with arguments of the same types on."""

from __future__ import annotations

import gc
import threading

import pytest
from graphs import ONE, SIZE, content, eventually, run, stays, watched
from scenarios import PTX

from cuda_core_cffi import Buffer, CUDAError, LaunchConfig, ObjectCode, ffi, launch, live_objects, simulator
from cuda_core_cffi.graph import GraphDefinition, KernelNode, parameters
from cuda_core_cffi.graph.state import USUAL_NODES

THREE = LaunchConfig(grid=3, block=(4, 2), shmem_size=64)
COOPERATIVE = LaunchConfig(grid=1, block=1, is_cooperative=True)
PARAMETERS = 70
WIDE = f""".version 8.0
.target sm_80
.address_size 64
.visible .entry wide({", ".join(f".param .u32 p{index}" for index in range(PARAMETERS))})
{{
    ret;
}}
"""


@pytest.fixture
def known(store, memory):
    """Return a kernel whose nodes are added the short way."""
    with GraphDefinition() as other:
        for config in (ONE, THREE):
            other.launch(config, store, memory[0], 1)
    return store


@pytest.fixture
def short(known, monkeypatch):
    """Return such a kernel in a test where there is no other way."""

    def other_way(*_):
        pytest.fail("the node was added the long way")

    monkeypatch.setattr(parameters, "kernel_call", other_way)
    return known


def buffers():
    """Count the buffers that have not gone back."""
    gc.collect()
    return live_objects()["buffer"]


def test_such_a_node_runs(graph, short, memory, stream):
    graph.launch(ONE, short, memory[0], 0x01020304).launch(ONE, short, memory[1], 7)
    run(graph, stream)
    assert content(memory[0], stream, 4) == b"\4\3\2\1"
    assert content(memory[1], stream, 4) == b"\7\0\0\0"


def test_a_launch_in_a_stream_prepares_for_it(graph, store, memory, stream, monkeypatch):
    launch(stream, ONE, store, memory[0], 1)
    monkeypatch.setattr(parameters, "kernel_call", None)
    graph.launch(ONE, store, memory[0], 2)
    run(graph, stream)
    assert content(memory[0], stream, 4) == b"\2\0\0\0"


def test_such_a_node_tells_what_it_runs(graph, short, memory):
    node = graph.launch(THREE, short, memory[0], 1)
    assert type(node) is KernelNode
    assert (node.grid, node.block, node.shmem_size) == ((3, 1, 1), (4, 2, 1), 64)
    assert (node.config, node.kernel) == (THREE, short)
    assert repr(node) == f"<KernelNode handle={node.handle:#x} kernel={short.handle:#x}>"


def test_such_nodes_in_a_row_tell_what_each_of_them_runs(graph, known, memory, stream):
    other = ObjectCode.from_ptx(PTX).get_kernel("store")
    address = memory[0].handle
    for kernel in (known, other):
        launch(stream, ONE, kernel, address, 0)
    first = graph.launch(ONE, known, address, 1)
    nodes = [first, first.launch(THREE, known, address, 2), first.launch(ONE, other, address, 3)]
    nodes.append(nodes[1].launch(ONE, known, memory[1], 4).launch(ONE, known, address, 5))
    nodes[1].update(kernel=other, args=(address, 6))
    first.destroy()
    nodes[0] = nodes[1].launch(ONE, other, address, 7)
    assert [node.kernel for node in nodes] == [other, other, other, known]
    assert [node.config for node in nodes] == [ONE, THREE, ONE, ONE]
    nodes[3].update(args=(address, 8))
    other.close()
    assert nodes[0].kernel.handle == nodes[2].kernel.handle != nodes[3].kernel.handle == known.handle


def test_such_a_node_comes_after_what_it_was_added_to(graph, short, memory):
    first = graph.launch(ONE, short, memory[0], 1)
    second = first.launch(ONE, short, memory[0], 2)
    joined = first.join(second)
    assert (first.pred, second.pred, joined.pred) == (set(), {first}, {first, second})


def test_one_after_several_takes_the_long_way(builder, known, memory, stream):
    one, other = builder.split(2)
    for branch, buffer in ((one, memory[0]), (other, memory[1])):
        launch(branch, ONE, known, buffer, 1)
    builder = builder.join(one, other)
    node = builder._tail("test").launch(ONE, known, memory[2], 5)  # as it is added to a capture
    builder._continue(node)
    with builder.end_building().complete() as executable:
        executable.launch(stream)
    assert content(memory[2], stream, 4) == b"\5\0\0\0"


def test_there_is_one_object_for_it(graph, short, memory):
    nodes = [graph.launch(ONE, short, memory[0], index) for index in range(3)]
    assert {id(node) for node in graph.nodes()} == {id(node) for node in nodes}


def test_objects_that_are_gone_are_forgotten_and_others_are_not(graph, short, memory):
    kept = [graph.launch(ONE, short, memory[0], 0)]
    for index in range(4 * USUAL_NODES):
        node = graph.launch(ONE, short, memory[0], index)
        if index % 100 == 0:
            kept.append(node)
            gc.collect()
    assert len(graph._state.nodes) <= 2 * USUAL_NODES
    found = {node.handle: node for node in graph.nodes()}
    assert len(found) == 4 * USUAL_NODES + 1
    assert all(found[node.handle] is node for node in kept)


def test_it_keeps_its_buffers_and_code(device, stream):
    before = live_objects()["library"], buffers()
    with GraphDefinition() as graph:
        with ObjectCode.from_ptx(PTX) as code, code.get_kernel("store") as kernel:
            for _ in range(2):
                with device.allocate(SIZE, stream) as buffer:
                    node = graph.launch(ONE, kernel, buffer, 1)
        del kernel, code, buffer
        assert stays(lambda: (live_objects()["library"], buffers()) == (before[0] + 1, before[1] + 2))
        run(graph, stream)
        node.destroy()
        assert eventually(lambda: buffers() == before[1] + 1)
    assert eventually(lambda: (live_objects()["library"], buffers()) == before)


def test_an_update_replaces_what_it_keeps(device, stream, graph, short, monkeypatch):
    monkeypatch.undo()
    before = buffers()
    first, second = (device.allocate(SIZE, stream) for _ in range(2))
    node = graph.launch(THREE, short, first, 1)
    first.close()
    node.update(config=ONE)
    assert stays(lambda: buffers() == before + 2)
    assert (node.config, node.kernel) == (ONE, short)
    node.update(args=(second, 0x05050505))
    assert eventually(lambda: buffers() == before + 1)
    run(graph, stream)
    assert content(second, stream, 4) == b"\5" * 4
    second.close()
    assert stays(lambda: buffers() == before + 1)
    node.destroy()
    assert eventually(lambda: buffers() == before)


def test_what_a_buffer_of_python_belongs_to_is_kept(graph, known, memory, stream):
    owner, seen = watched()
    with Buffer.from_handle(memory[0].handle, SIZE, owner=owner) as buffer:
        graph.launch(ONE, known, buffer, 3).destroy()  # now the short way could be taken
        node = graph.launch(ONE, known, buffer, 3)
    del owner, buffer
    assert stays(seen)
    run(graph, stream)
    assert content(memory[0], stream, 4) == b"\3\0\0\0"
    node.destroy()
    assert eventually(lambda: seen() is None)


def test_a_clone_keeps_it_too(device, stream, graph, short):
    before = buffers()
    with device.allocate(SIZE, stream) as buffer:
        graph.launch(THREE, short, buffer, 9)
        address = buffer.handle
    with graph.clone() as clone:
        graph.close()
        assert stays(lambda: buffers() == before + 1)
        (node,) = clone.nodes()
        assert (node.config, node.kernel) == (THREE, short)
        node.update(config=ONE)
        run(clone, stream)
        with Buffer.from_handle(address, SIZE) as memory:
            assert content(memory, stream, 4) == b"\x09\0\0\0"
    assert eventually(lambda: buffers() == before)


def test_attributes_take_the_long_way(graph, known, memory):
    node = graph.launch(COOPERATIVE, known, memory[0], 1)
    assert node.config == COOPERATIVE
    assert graph.launch(ONE, known, memory[0], 1).config == ONE


def test_many_arguments_take_the_long_way(graph, device):
    with ObjectCode.from_ptx(WIDE.encode()) as code, code.get_kernel("wide") as kernel:
        for start in (0, 1000):
            node = graph.launch(ONE, kernel, *range(start, start + PARAMETERS))
            pointers = node._read().kernelParams
            assert [ffi.cast("uint32_t *", pointers[index])[0] for index in (0, PARAMETERS - 1)] == [
                start,
                start + PARAMETERS - 1,
            ]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [((), ValueError), ((1, 2, 3), ValueError), (("text", 1), TypeError), ((1, 2**33), OverflowError)],
)
def test_bad_arguments_are_refused(graph, known, memory, arguments, error):
    with pytest.raises(error):
        graph.launch(ONE, known, *arguments)
    assert graph.nodes() == set()


def test_what_is_closed_or_gone_is_refused(graph, known, memory, device, stream):
    node = graph.launch(ONE, known, memory[0], 1)
    gone = node.launch(ONE, known, memory[0], 1)
    gone.destroy()
    with pytest.raises(RuntimeError, match="this KernelNode was destroyed"):
        gone.launch(ONE, known, memory[0], 1)
    with device.allocate(SIZE, stream) as buffer:
        graph.launch(ONE, known, buffer, 1).destroy()
    with pytest.raises(RuntimeError, match="the Buffer is closed"):
        graph.launch(ONE, known, buffer, 1)
    assert graph.nodes() == {node}
    graph.close()
    with pytest.raises(RuntimeError, match="this KernelNode was destroyed, or its graph is gone"):
        node.launch(ONE, known, memory[0], 1)
    with pytest.raises(RuntimeError, match="this GraphDefinition is closed"):
        graph.launch(ONE, known, memory[0], 1)


def test_a_closed_kernel_is_refused(graph, short, memory):
    short.close()
    with pytest.raises(RuntimeError, match="this Kernel is closed"):
        graph.launch(ONE, short, memory[0], 1)


@pytest.mark.simulator_only("only the simulated driver fails on request")
@pytest.mark.parametrize("call", ["cuCtxGetCurrent", "cuUserObjectCreate", "cuGraphRetainUserObject", "cuGraphAddNode"])
def test_one_that_the_driver_refuses_leaves_nothing(device, stream, graph, short, call):
    before = buffers()
    assert graph.handle  # who asks for it may copy the graph: from then on the driver keeps what nodes use
    with device.allocate(SIZE, stream) as buffer:
        graph.launch(ONE, short, buffer, 1).destroy()
        with simulator.fail(call, "CUDA_ERROR_UNKNOWN"), pytest.raises(CUDAError, match=call):
            graph.launch(ONE, short, buffer, 1)
    assert eventually(lambda: buffers() == before)
    assert graph.nodes() == set()


@pytest.mark.simulator_only("only the simulated driver fails on request")
@pytest.mark.parametrize("call", ["cuGraphCreate", "cuGraphAddNode", "cuGraphKernelNodeSetAttribute"])
def test_attributes_that_the_driver_refuses_leave_no_node_in_a_graph_that_allocates(graph, known, memory, call):
    allocation = graph.allocate(SIZE)
    with simulator.fail(call, "CUDA_ERROR_UNKNOWN"), pytest.raises(CUDAError, match=call):
        allocation.launch(COOPERATIVE, known, memory[0], 1)
    assert graph.nodes() == {allocation}
    node = allocation.launch(COOPERATIVE, known, memory[0], 1)
    assert graph.nodes() == {allocation, node}
    assert node.config == COOPERATIVE


def test_without_a_context_it_is_refused(graph, short, memory):
    failures = []

    def add():
        try:
            graph.launch(ONE, short, memory[0], 1)
        except CUDAError as error:
            failures.append(str(error))

    thread = threading.Thread(target=add)
    thread.start()
    thread.join()
    assert len(failures) == 1
    assert "no CUDA context is current" in failures[0]
    assert graph.nodes() == set()


def test_several_threads_add_to_one_graph(graph, short, memory, device):
    count, turns = 4, 300

    def add():
        device.set_current()
        node = graph
        for turn in range(turns):
            node = node.launch(ONE, short, memory[0], turn)

    threads = [threading.Thread(target=add) for _ in range(count)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        assert all(node.graph is graph for node in graph.nodes())
    for thread in threads:
        thread.join()
    assert len(graph.nodes()) == count * turns
    assert len(graph.edges()) == count * (turns - 1)


def test_a_builder_takes_a_configuration_that_was_not_looked_at(builder, known, memory, graph, stream):
    config = LaunchConfig(grid=1, block=1, cluster=1)
    graph.launch(config, known, memory[1], 1)  # which leaves that to the driver
    launch(builder, ONE, known, memory[1], 1)
    launch(builder, config, known, memory[1], 2)
    with builder.end_building().complete() as executable:
        executable.launch(stream)
    assert content(memory[1], stream, 4) == b"\2\0\0\0"


def test_a_builder_whose_stream_is_closed_says_so(short, memory, device):
    with device.create_stream() as stream, stream.create_graph_builder() as builder:
        launch(builder.begin_building(), ONE, short, memory[0], 1)
        stream.close()
        with pytest.raises(RuntimeError, match="this Stream is closed"):
            launch(builder, ONE, short, memory[0], 1)
        builder.close()
        with pytest.raises(RuntimeError, match="this GraphBuilder is closed"):
            launch(builder, ONE, short, memory[0], 1)
