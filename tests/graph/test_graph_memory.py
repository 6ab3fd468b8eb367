# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Memory that graphs allocate and free."""

from __future__ import annotations

import copy
import gc
import pickle
import warnings

import pytest
from graphs import ONE, SIZE, content, eventually, finish

from cuda_core_cffi import CUDAError, Device, GraphMemoryResource, MemoryResource, launch, live_objects
from cuda_core_cffi._memory.graph_memory import GraphMemoryResourceAttributes
from cuda_core_cffi.graph import AllocNode, FreeNode, GraphBuilder


@pytest.fixture
def resource(device):
    """Return the resource of the device; what the driver holds for graphs is given back before and after."""
    resource = GraphMemoryResource(device)
    resource.trim()
    yield resource
    gc.collect()
    resource.trim()


def kinds(builder: GraphBuilder) -> list[str]:
    """Return what nodes a built graph has, in alphabetical order."""
    return sorted(type(node).__name__ for node in builder.graph_definition.nodes())


# Allocations


def test_an_allocation_and_a_free_become_nodes(builder, resource, memory, stream):
    memory[0].fill(7, stream=builder)
    with resource.allocate(SIZE, builder) as between:
        assert between.size == SIZE
        assert between.memory_resource is resource
        memory[0].copy_to(between, stream=builder)
        between.copy_to(memory[1], stream=builder)
    builder.end_building()
    assert kinds(builder) == ["AllocNode", "FreeNode", "MemcpyNode", "MemcpyNode", "MemsetNode"]
    with builder.complete() as graph:
        for _ in range(3):
            graph.launch(stream)
    assert content(memory[1], stream) == b"\7" * SIZE


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("part", [False, True])
def test_a_graph_whose_nodes_use_its_own_memory_is_destroyed_with_it(device, resource, memory, inside, part):
    before = live_objects()

    def use():
        builder = device.create_graph_builder().begin_building()
        buffer = resource.allocate(SIZE, builder)
        used = buffer[: SIZE // 2] if part else buffer
        if inside:
            body = builder.if_then(builder.create_condition(1))
            node = body.graph_definition.memcpy(memory[0], used, SIZE // 2)
            builder.end_building()
        else:
            node = builder.end_building().graph_definition.memcpy(memory[0], used, SIZE // 2)
        node.memset(used, 2, SIZE // 2).update(value=3)
        buffer.close()
        if part:
            used.close()
        node.update(size=4)
        assert node.size == 4

    use()
    assert eventually(lambda: live_objects() == before)


def test_a_closed_buffer_of_a_graph_is_refused(builder, resource, memory, store):
    buffer = resource.allocate(SIZE, builder)
    definition = builder.end_building().graph_definition
    buffer.close()
    for add in (
        lambda: definition.memset(buffer, 1, SIZE),
        lambda: definition.memcpy(memory[0], buffer, 4),
        lambda: definition.launch(ONE, store, buffer, 1),
    ):
        with pytest.raises(RuntimeError, match="Buffer is closed"):
            add()


def test_memory_of_a_capture_that_was_given_up_needs_no_free(device, builder, resource, stream):
    buffer = resource.allocate(SIZE, builder)
    with pytest.raises(CUDAError):
        builder.stream.sync()  # which invalidates the capture
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        buffer.close()


def test_memory_of_a_graph_waits_while_another_capture_in_its_stream_is_given_up(builder, device, resource, stream):
    buffer = resource.allocate(SIZE, builder)
    address = buffer.handle
    graph = builder.end_building().complete()
    graph.launch(stream)
    buffer.set_deallocation_stream(stream)
    with device.create_stream() as other, stream.create_graph_builder() as given_up:
        given_up.begin_building()
        with pytest.raises(CUDAError):
            stream.sync()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            buffer.close()
        with pytest.raises(CUDAError):
            graph.launch(other)  # it is allocated still
        with pytest.raises(CUDAError, match="INVALIDATED"):
            given_up.close()
        assert eventually(lambda: live_objects()["buffer"] == 0)
        stream.sync()
        graph.launch(other)
        resource.deallocate(address, SIZE, other)
        other.sync()
    graph.close()


def test_a_node_has_the_address_of_the_buffer(builder, resource):
    with resource.allocate(SIZE, builder) as buffer:
        address = buffer.handle
    nodes = {type(node): node for node in builder.end_building().graph_definition.nodes()}
    assert (nodes[AllocNode].dptr, nodes[AllocNode].bytesize, nodes[AllocNode].device_id) == (address, SIZE, 0)
    assert nodes[FreeNode].dptr == address


def test_kernels_use_the_memory(builder, resource, memory, stream, store):
    buffer = resource.allocate(SIZE, builder)
    launch(builder, ONE, store, buffer, 9)
    buffer[:4].copy_to(memory[0][:4], stream=builder)
    buffer.close()
    finish(builder, stream)
    assert content(memory[0], stream, 4) == b"\x09\0\0\0"


def test_branches_allocate(builder, resource, memory, stream):
    _, branch = builder.split(2)
    buffer = resource.allocate(SIZE, branch)
    buffer.fill(3, stream=branch)
    GraphBuilder.join(builder, branch)
    buffer.copy_to(memory[0], stream=builder)
    buffer.close(builder)
    finish(builder, stream)
    assert content(memory[0], stream) == b"\3" * SIZE


def test_a_copy_of_a_buffer_is_allocated_in_the_graph(builder, resource, memory, stream):
    with resource.allocate(SIZE, builder) as buffer:
        buffer.fill(4, stream=builder)
        with buffer.copy_to(stream=builder) as copied:
            assert copied.memory_resource is resource
            copied.copy_to(memory[0], stream=builder)
    finish(builder, stream)
    assert content(memory[0], stream) == b"\4" * SIZE


def test_memory_is_freed_by_address(builder, resource, stream):
    buffer = resource.allocate(SIZE, builder)
    resource.deallocate(buffer.handle, SIZE, stream=builder)
    resource.deallocate(0, 0, stream=builder)
    builder.end_building()
    assert kinds(builder) == ["AllocNode", "FreeNode"]
    buffer.close()  # it is not allocated: nothing to free


def test_an_empty_buffer_is_no_node(builder, resource):
    with resource.allocate(0, builder) as buffer:
        assert (buffer.size, buffer.handle) == (0, 0)
    builder.end_building()
    assert kinds(builder) == []


def test_a_size_that_cannot_be_is_refused_and_does_no_harm(builder, resource):
    with pytest.raises(TypeError, match="size must be an int"):
        resource.allocate("8", builder)
    with pytest.raises(ValueError, match="size must not be negative"):
        resource.allocate(-1, builder)
    builder.end_building()


# Memory that is there after the launch


def test_memory_that_a_graph_does_not_free_can_be_used_afterwards(builder, resource, stream):
    out = resource.allocate(SIZE, builder)
    out.fill(5, stream=builder)
    graph = builder.end_building().complete()
    graph.launch(stream)
    assert content(out, stream) == b"\5" * SIZE
    with pytest.raises(CUDAError):
        graph.launch(stream)  # it is allocated still
    address = out.handle
    out.close(stream)
    graph.launch(stream)
    resource.deallocate(address, SIZE, stream=stream)
    graph.launch(stream)
    resource.deallocate(address, SIZE, stream=stream)
    stream.sync()
    graph.close()


def test_memory_that_is_freed_with_the_next_launch(builder, resource, stream):
    out = resource.allocate(SIZE, builder)
    out.fill(5, stream=builder)
    with builder.end_building().complete({"auto_free_on_launch": True}) as graph:
        for _ in range(3):
            graph.launch(stream)
        assert content(out, stream) == b"\5" * SIZE
        out.close(stream)
        stream.sync()


def test_a_buffer_keeps_its_graph_so_that_the_address_is_nobody_elses(builder, resource, device):
    before = live_objects()["graph"]
    buffer = resource.allocate(SIZE, builder)
    builder.end_building().close()
    assert live_objects()["graph"] == before
    with device.create_graph_builder() as other:
        other.begin_building()
        with resource.allocate(SIZE, other) as another:
            assert another.handle != buffer.handle
        other.end_building()
    buffer.close()
    assert live_objects()["graph"] == before - 1


def test_a_buffer_of_a_capture_that_failed_is_freed_nowhere(builder, resource, is_simulated):
    buffer = resource.allocate(SIZE, builder)
    with pytest.raises(CUDAError):
        builder.stream.sync()
    with pytest.raises(CUDAError):
        builder.end_building()
    if is_simulated:
        from cuda_core_cffi import simulator

        with simulator.trace() as trace:
            buffer.close()
        assert "cuMemFreeAsync" not in trace.names
    buffer.close()


def test_a_buffer_of_another_graph_is_not_freed_by_the_one_that_is_captured(resource, stream):
    first = stream.create_graph_builder().begin_building()
    buffer = resource.allocate(SIZE, first)
    first.end_building()
    second = stream.create_graph_builder().begin_building()
    buffer.close()
    second.end_building()
    assert kinds(second) == []
    first.close()
    second.close()


# Where not to allocate


def test_a_stream_that_is_not_captured_is_refused(device, resource, stream):
    for refused in (stream, device.create_graph_builder(), device.default_stream):
        with pytest.raises(RuntimeError, match="the stream is not being captured"):
            resource.allocate(SIZE, refused)
    with pytest.raises(TypeError, match="needs a Stream"):
        resource.allocate(SIZE)


def test_a_closed_builder_is_refused(builder, resource):
    builder.close()
    with pytest.raises(RuntimeError, match="this GraphBuilder is closed"):
        resource.allocate(SIZE, builder)


def test_pools_do_not_allocate_in_a_capture(builder, device, memory, stream):
    for refused in (
        lambda: device.allocate(SIZE, builder),
        lambda: memory[0].copy_to(stream=builder),
    ):
        with pytest.raises(RuntimeError, match="comes from a GraphMemoryResource"):
            refused()
    device.allocate(SIZE, stream).close()  # elsewhere they do
    memory[0].fill(1, stream=builder)
    finish(builder, stream)  # nothing has happened to the capture
    assert content(memory[0], stream) == b"\1" * SIZE


# What there is of it


def test_there_is_one_resource_for_a_device(device, resource):
    assert GraphMemoryResource(0) is GraphMemoryResource(device) is resource
    assert isinstance(resource, MemoryResource)
    assert (resource.device_id, repr(resource)) == (0, "<GraphMemoryResource device=0>")
    assert (resource.is_device_accessible, resource.is_host_accessible, resource.is_managed) == (True, False, False)
    with pytest.raises(ValueError, match="device_id"):
        GraphMemoryResource(len(Device.get_all_devices()))
    assert copy.copy(resource) is copy.deepcopy(resource) is pickle.loads(pickle.dumps(resource)) is resource


def test_closing_it_does_nothing(builder, resource):
    resource.close()
    resource.allocate(SIZE, builder).close()
    builder.end_building()


def test_attributes_tell_what_graphs_use(builder, resource, stream):
    resource.trim()  # what earlier graphs left reserved
    idle = resource.attributes.used_mem_current
    size = 64 << 20  # drivers count in steps of 32 MiB, of which some may be left over
    out = resource.allocate(size, builder)
    graph = builder.end_building().complete()
    graph.launch(stream)
    stream.sync()
    attributes = resource.attributes
    assert attributes.used_mem_current >= idle + size
    assert attributes.used_mem_high >= attributes.used_mem_current
    assert attributes.reserved_mem_high >= attributes.reserved_mem_current >= attributes.used_mem_current
    assert repr(attributes).startswith("GraphMemoryResourceAttributes(reserved_mem_current=")
    out.close(stream)
    stream.sync()
    graph.close()
    builder.close()
    resource.trim()
    assert attributes.used_mem_current == idle
    attributes.used_mem_high = 0
    attributes.reserved_mem_high = 0
    assert attributes.used_mem_high == attributes.used_mem_current
    assert attributes.reserved_mem_high == attributes.reserved_mem_current


def test_high_water_marks_are_set_to_0_only(resource):
    for name in ("used_mem_high", "reserved_mem_high"):
        with pytest.raises(AttributeError, match=f"{name} can only be set to 0, .* not to 1"):
            setattr(resource.attributes, name, 1)
        with pytest.raises(TypeError, match=f"{name} must be an int"):
            setattr(resource.attributes, name, None)
    with pytest.raises(AttributeError):
        resource.attributes.used_mem_current = 0
    with pytest.raises(RuntimeError, match="use the resource's attributes"):
        GraphMemoryResourceAttributes()
