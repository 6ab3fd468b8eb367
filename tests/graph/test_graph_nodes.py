# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What nodes do: each kind with its parameters, and how they are changed in a definition."""

from __future__ import annotations

import numpy
import pytest
from graphs import ONE, SIZE, content, run

from cuda_core_cffi import CUDAError, Device, Event, Kernel, LaunchConfig, LegacyPinnedMemoryResource
from cuda_core_cffi.graph import (
    AllocNode,
    EventRecordNode,
    EventWaitNode,
    FreeNode,
    GraphDefinition,
    KernelNode,
    MemcpyNode,
    MemsetNode,
)
from cuda_core_cffi.graph.parameters import NOT_FOR_NODES
from cuda_core_cffi.typing import GraphMemoryType

THREE = LaunchConfig(grid=3, block=(4, 2), shmem_size=64)


@pytest.fixture
def host(device, stream):
    """Return pinned memory of the host."""
    with LegacyPinnedMemoryResource().allocate(SIZE, stream) as buffer:
        yield buffer


def test_a_kernel_runs(graph, store, memory, stream):
    node = graph.launch(ONE, store, memory[0], 0x01020304)
    assert type(node) is KernelNode
    run(graph, stream)
    assert content(memory[0], stream, 4) == b"\4\3\2\1"


def test_a_kernel_node_tells_what_it_runs(graph, store, memory):
    node = graph.launch(THREE, store, memory[0], 1)
    assert (node.grid, node.block, node.shmem_size) == ((3, 1, 1), (4, 2, 1), 64)
    assert node.config == THREE
    assert node.kernel == store
    assert isinstance(node.kernel, Kernel)
    assert repr(node) == f"<KernelNode handle={node.handle:#x} kernel={store.handle:#x}>"


def test_parts_of_a_kernel_node_are_updated(graph, store, memory, stream):
    node = graph.launch(THREE, store, memory[0], 1)
    node.update(config=ONE)
    assert node.config == ONE
    node.update(args=(memory[1], 2))
    assert node.config == ONE
    node.update(config=THREE, kernel=store, args=(memory[1], 3))
    assert node.config == THREE
    run(graph, stream)
    assert content(memory[0], stream, 4) == bytes(4)
    assert content(memory[1], stream, 4) == b"\3\0\0\0"


def test_another_kernel_needs_its_arguments(graph, store, memory):
    node = graph.launch(ONE, store, memory[0], 1)
    with pytest.raises(ValueError, match="args"):
        node.update(kernel=store)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [((), ValueError), ((1, 2, 3), ValueError), (("text", 1), TypeError), ((1, 2**33), OverflowError)],
)
def test_bad_kernel_arguments_are_refused(graph, store, arguments, error):
    with pytest.raises(error):
        graph.launch(ONE, store, *arguments)
    assert graph.nodes() == set()


def test_bad_kernels_and_configurations_are_refused(graph, store, memory):
    with pytest.raises(TypeError, match="LaunchConfig"):
        graph.launch(1, store, memory[0], 1)
    with pytest.raises(TypeError, match="Kernel"):
        graph.launch(ONE, "store", memory[0], 1)
    with pytest.raises(TypeError, match="args"):
        graph.launch(ONE, store, memory[0], 1).update(args=5)


@pytest.mark.parametrize("field", NOT_FOR_NODES)
def test_what_only_launches_in_streams_have_is_refused(graph, device, store, memory, field):
    node = graph.launch(ONE, store, memory[0], 1)
    with device.create_event() as event:
        config = LaunchConfig(grid=1, block=1)
        setattr(config, field, True if field == "programmatic_stream_serialization" else event)
        with pytest.raises(ValueError, match=f"{field} is for launches in streams.* GraphBuilder"):
            graph.launch(config, store, memory[0], 1)
        with pytest.raises(ValueError, match=field):
            node.update(config=config)
        with graph.instantiate() as executable, pytest.raises(ValueError, match=field):
            executable[node].update(config=config, kernel=store, args=(memory[0], 1))
    assert graph.nodes() == {node}


def test_closed_buffers_and_kernels_are_refused(graph, device, stream, store, memory):
    closed = device.allocate(4, stream)
    closed.close()
    for add in (
        lambda: graph.launch(ONE, store, closed, 1),
        lambda: graph.memset(closed, 1, 1),
        lambda: graph.memcpy(memory[0], closed, 1),
        lambda: graph.memset(memory[0].handle, 1, 1, dst_owner=closed),
    ):
        with pytest.raises(RuntimeError, match="closed"):
            add()
    other = Kernel.from_handle(store.handle)
    other.close()
    with pytest.raises(RuntimeError, match="Kernel is closed"):
        graph.launch(ONE, other, memory[0], 1)


def test_a_cooperative_kernel(graph, store, memory, stream, device):
    if not device.properties.cooperative_launch:
        pytest.skip("the device has no cooperative launches")
    cooperative = LaunchConfig(grid=2, block=4, is_cooperative=True)
    node = graph.launch(cooperative, store, memory[0], 6)
    assert node.config == cooperative
    run(graph, stream)
    assert content(memory[0], stream, 4) == b"\6\0\0\0"
    node.update(config=ONE)
    assert node.config == ONE
    node.update(config=cooperative)
    assert node.config == cooperative


def test_a_clustered_kernel(graph, store, memory, stream, device):
    if device.compute_capability < (9, 0):
        pytest.skip("the device has no clusters")
    clustered = LaunchConfig(grid=2, cluster=2, block=4)
    node = graph.launch(clustered, store, memory[0], 7)
    assert node.config == clustered
    assert node.grid == (4, 1, 1)
    run(graph, stream)
    assert content(memory[0], stream, 4) == b"\7\0\0\0"
    node.update(args=(memory[0], 8))
    assert node.config == clustered
    node.update(config=ONE)
    assert node.config == ONE
    run(graph, stream)
    assert content(memory[0], stream, 4) == b"\x08\0\0\0"


def test_a_kernel_with_a_priority(graph, store, memory):
    urgent = LaunchConfig(grid=1, block=1, priority=-1)
    node = graph.launch(urgent, store, memory[0], 7)
    assert node.config == urgent
    node.update(config=ONE)
    assert node.config == ONE


@pytest.mark.parametrize(
    ("value", "element"),
    [(7, b"\7"), (b"\1\2", b"\1\2"), (numpy.uint32(0x01020304), b"\4\3\2\1"), (bytearray(b"\x08"), b"\x08")],
)
def test_a_row_is_filled(graph, memory, stream, value, element):
    node = graph.memset(memory[0], value, 8)
    assert type(node) is MemsetNode
    assert (node.dptr, node.element_size, node.width, node.height) == (memory[0].handle, len(element), 8, 1)
    assert node.value == int.from_bytes(element, "little")
    run(graph, stream)
    assert content(memory[0], stream) == element * 8 + bytes(SIZE - 8 * len(element))


def test_rows_are_filled(graph, memory, stream):
    node = graph.memset(memory[0], b"\1\2", 3, 4, 16)
    assert (node.width, node.height, node.pitch) == (3, 4, 16)
    assert repr(node) == f"<MemsetNode handle={node.handle:#x} dptr={memory[0].handle:#x} value=513 elem=2>"
    run(graph, stream)
    assert content(memory[0], stream, 64) == (b"\1\2" * 3 + bytes(10)) * 4
    assert content(memory[0], stream)[64:] == bytes(SIZE - 64)


def test_parts_of_a_memset_node_are_updated(graph, memory, stream):
    node = graph.memset(memory[0], 1, 8)
    node.update(value=b"\2\2")
    assert (node.value, node.element_size, node.width) == (0x0202, 2, 8)
    node.update(width=4)
    node.update(dst=memory[1])
    node.update(height=2, pitch=32)
    assert (node.dptr, node.width, node.height, node.pitch) == (memory[1].handle, 4, 2, 32)
    run(graph, stream)
    assert content(memory[1], stream, 64) == (b"\2" * 8 + bytes(24)) * 2
    assert content(memory[0], stream) == bytes(SIZE)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((1, 0), ValueError, "width"),
        ((1, 1.5), TypeError, "width"),
        ((1, True), TypeError, "width"),
        ((1, 4, 0), ValueError, "height"),
        ((1, 4, 2, 3), ValueError, "pitch"),
        ((1, 4, 2, -8), ValueError, "pitch"),
        ((1, 4, 2, "8"), TypeError, "pitch"),
        ((1, SIZE + 1), ValueError, "fewer"),
        ((1, 4, 3, SIZE // 2), ValueError, "fewer"),
        ((256, 4), OverflowError, "256"),
        ((b"\1\2\3", 4), ValueError, "1, 2 or 4"),
        ((1.5, 4), TypeError, "value"),
        ((1, 2**64), OverflowError, "width"),
        ((1, 2**40, 2**40, 2**40), OverflowError, "addresses"),
    ],
)
def test_bad_fills_are_refused(graph, memory, arguments, error, text):
    with pytest.raises(error, match=text):
        graph.memset(memory[0], *arguments)
    assert graph.nodes() == set()


def test_memory_is_copied(graph, memory, stream):
    node = graph.memset(memory[0], 3, SIZE).memcpy(memory[1], memory[0], 100)
    assert type(node) is MemcpyNode
    assert (node.dst, node.src, node.size) == (memory[1].handle, memory[0].handle, 100)
    assert f"dst={memory[1].handle:#x}(D) src={memory[0].handle:#x}(D) size=100" in repr(node)
    run(graph, stream)
    assert content(memory[1], stream) == b"\3" * 100 + bytes(SIZE - 100)


def test_memory_is_copied_to_and_from_the_host(graph, memory, host, stream):
    to_host = graph.memset(memory[0], 3, SIZE).memcpy(host, memory[0], SIZE)
    from_host = to_host.memcpy(memory[1], host, SIZE)
    assert "(H) src" in repr(to_host)
    assert "(H) size" in repr(from_host)
    assert (to_host.dst, from_host.src) == (host.handle, host.handle)
    run(graph, stream)
    assert content(memory[1], stream) == b"\3" * SIZE


def test_parts_of_a_memcpy_node_are_updated(graph, memory, stream):
    node = graph.memset(memory[0], 3, SIZE).memcpy(memory[1], memory[0], 100)
    node.update(size=50)
    node.update(dst=memory[2])
    node.update(src=memory[0].handle + 8)
    assert (node.dst, node.src, node.size) == (memory[2].handle, memory[0].handle + 8, 50)
    run(graph, stream)
    assert content(memory[2], stream) == b"\3" * 50 + bytes(SIZE - 50)


@pytest.mark.parametrize(
    ("size", "error"),
    [(0, ValueError), (-1, ValueError), (SIZE + 1, ValueError), (1.5, TypeError), (2**64, OverflowError)],
)
def test_bad_copies_are_refused(graph, memory, size, error):
    with pytest.raises(error):
        graph.memcpy(memory[1], memory[0], size)
    with pytest.raises(error):
        graph.memcpy(memory[1], memory[0], 4).update(size=size)


@pytest.mark.parametrize("value", ["text", None, 1.5, True, -1])
def test_only_buffers_and_addresses_are_memory(graph, memory, value):
    for add in (
        lambda: graph.memset(value, 1, 1),
        lambda: graph.memcpy(value, memory[0], 1),
        lambda: graph.memcpy(memory[0], value, 1),
    ):
        with pytest.raises((TypeError, OverflowError)):
            add()


def test_owners_are_for_addresses(graph, memory):
    with pytest.raises(ValueError, match="dst_owner"):
        graph.memset(memory[0], 1, 1, dst_owner=memory[1])
    with pytest.raises(ValueError, match="src_owner"):
        graph.memcpy(memory[0], memory[1], 1, src_owner=object())
    node = graph.memset(memory[0], 1, 1)
    with pytest.raises(ValueError, match="dst_owner"):
        node.update(dst_owner=object())
    copy = graph.memcpy(memory[0], memory[1], 1)
    with pytest.raises(ValueError, match="src_owner"):
        copy.update(src_owner=object())


def test_memory_is_allocated_and_freed(graph, memory, stream):
    allocated = graph.allocate(SIZE)
    assert type(allocated) is AllocNode
    filled = allocated.memset(allocated.dptr, 4, SIZE)
    copied = filled.memcpy(memory[0], allocated.dptr, SIZE)
    assert "(D) size" in repr(copied)
    freed = copied.deallocate(allocated.dptr)
    assert type(freed) is FreeNode
    assert freed.dptr == allocated.dptr != 0
    with graph.instantiate() as executable:
        for _ in range(3):
            executable.launch(stream)
        assert content(memory[0], stream) == b"\4" * SIZE


def test_an_allocation_tells_what_it_is(graph, device):
    node = graph.allocate(SIZE, device=device)
    assert (node.bytesize, node.device_id, node.memory_type, node.peer_access) == (SIZE, device.device_id, "device", ())
    assert isinstance(node.memory_type, GraphMemoryType)
    assert repr(node) == f"<AllocNode handle={node.handle:#x} dptr={node.dptr:#x} size={SIZE}>"
    assert graph.allocate(SIZE, device=0).device_id == 0
    assert graph.allocate(SIZE, memory_type=None).memory_type == "device"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"size": 0}, ValueError),
        ({"size": -1}, ValueError),
        ({"size": "1"}, TypeError),
        ({"size": 4, "memory_type": "disk"}, ValueError),
        ({"size": 4, "device": 1000}, (ValueError, CUDAError)),
        ({"size": 4, "peer_access": [None]}, TypeError),
    ],
)
def test_bad_allocations_are_refused(graph, arguments, error):
    with pytest.raises(error):
        graph.allocate(**arguments)
    assert graph.nodes() == set()


def test_only_what_was_allocated_is_freed(graph, memory):
    with pytest.raises(CUDAError):
        graph.deallocate(memory[0].handle)
    with pytest.raises(TypeError, match="dptr"):
        graph.deallocate(memory[0])
    with pytest.raises(TypeError, match="dptr"):
        graph.deallocate(True)


def test_nodes_of_a_graph_that_allocates_cannot_be_removed(graph):
    allocated = graph.allocate(SIZE)
    after = allocated.join()
    for remove in (after.destroy, after.pred.clear):
        with pytest.raises(CUDAError) as caught:
            remove()
        assert any("neither nodes nor edges" in note for note in caught.value.__notes__)
    assert after.is_valid
    assert graph.nodes() == {allocated, after}


def test_a_graph_that_allocates_is_neither_cloned_nor_embedded(graph):
    graph.allocate(SIZE)
    with pytest.raises(CUDAError, match="cuGraphClone"):
        graph.clone()
    with GraphDefinition() as other, pytest.raises(CUDAError):
        other.embed(graph)


def test_events_are_recorded_and_waited_for(graph, device, stream):
    with device.create_event() as event, device.create_event() as other:
        recorded = graph.record(event)
        waited = recorded.wait(event)
        assert (type(recorded), type(waited)) == (EventRecordNode, EventWaitNode)
        assert recorded.event == waited.event == event
        assert isinstance(recorded.event, Event)
        assert recorded.event.device == device
        assert repr(recorded) == f"<EventRecordNode handle={recorded.handle:#x} event={event.handle:#x}>"
        recorded.update(other)
        waited.update(other)
        assert recorded.event == waited.event == other
        run(graph, stream)
        assert other.is_done


def test_an_event_of_a_node_outlives_the_one_given(graph, device):
    event = device.create_event()
    node = graph.record(event)
    handle = event.handle
    event.close()
    again = node.event
    assert (again.handle, again.is_closed, again.is_timing_enabled) == (handle, False, False)
    graph.close()
    assert again.is_done
    again.close()


@pytest.mark.parametrize("value", [None, 5, "event"])
def test_only_events_are_recorded_and_waited_for(graph, value):
    for add in (graph.record, graph.wait):
        with pytest.raises(TypeError, match="Event"):
            add(value)


def test_a_closed_event_is_refused(graph, device):
    event = device.create_event()
    event.close()
    with pytest.raises(RuntimeError, match="Event is closed"):
        graph.record(event)


def test_an_event_in_a_graph_measures_time(graph, device, stream, memory):
    timed = {"timing_enabled": True}
    with device.create_event(timed) as start, device.create_event(timed) as end:
        graph.record(start).memset(memory[0], 1, SIZE).record(end)
        run(graph, stream)
        assert end - start >= 0


def test_the_graph_inside_a_node_is_replaced(graph, memory, stream):
    with GraphDefinition() as first, GraphDefinition() as second:
        first.memset(memory[0], 1, SIZE)
        second.memset(memory[0], 2, SIZE).memset(memory[1], 3, SIZE)
        node = graph.embed(first)
        inside = node.child_graph
        assert repr(node) == f"<ChildGraphNode handle={node.handle:#x} child={inside.handle:#x}>"
        node.update(second)
    assert not inside.is_valid
    assert len(node.child_graph.nodes()) == 2
    run(graph, stream)
    assert content(memory[0], stream) + content(memory[1], stream) == b"\2" * SIZE + b"\3" * SIZE


def test_nodes_of_another_device_are_given_its_context(graph, memory, stream):
    """The context of a node stays what it was, whichever is current when it is changed."""
    node = graph.memset(memory[0], 1, 4)

    def work():
        node.update(value=2)

    from helpers import in_thread

    in_thread(work)
    run(graph, stream)
    assert content(memory[0], stream, 4) == b"\2" * 4
    Device(0).set_current()
