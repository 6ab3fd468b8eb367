# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes that write values to memory and wait for them, defined and captured."""

from __future__ import annotations

import gc

import pytest
from buffers import PINNED
from graphs import SIZE, content, eventually, finish, keeps, run, stays, watched
from stream_values import words_for

from cuda_core_cffi import CUDAError
from cuda_core_cffi.graph import BatchMemOpNode, ExecutableBatchMemOpNode, GraphDefinition, MemsetNode
from cuda_core_cffi.typing import StreamMemoryBarrierType, StreamWaitValueType
from cuda_core_cffi.utils import MemoryBarrier, WaitValue, WriteValue, batch_mem_op

LONG = 2**40 + 7


@pytest.fixture
def words(device, stream):
    """Return integers in pinned memory, all 0."""
    with words_for(device, stream) as words:
        yield words


def test_a_node_writes_and_waits(graph, stream, words):
    node = graph.batch_mem_op(
        [
            WriteValue(words.buffer, 5),
            WaitValue(words.buffer, 5, "eq"),
            MemoryBarrier(),
            WriteValue(words.buffer, LONG, offset=8, bits=64),
        ]
    )
    assert type(node) is BatchMemOpNode
    run(graph, stream)
    assert words.short[0] == 5
    assert words.long[1] == LONG


def test_what_comes_after_a_node_waits_for_the_value(graph, stream, words, memory):
    graph.batch_mem_op([WaitValue(words.buffer, 3)]).memset(memory[0], 7, 4).batch_mem_op([WriteValue(words.buffer, 4)])
    words.ends_with(3)
    with graph.instantiate() as executable:
        executable.launch(stream)
        event = stream.record()
        assert not event.is_done
        words.short[0] = 3
        assert content(memory[0], stream, 4) == b"\7" * 4
    assert words.short[0] == 4


def test_a_node_tells_its_operations(graph, words):
    address = words.buffer.handle
    node = graph.batch_mem_op(
        [
            WriteValue(words.buffer, 5, offset=4),
            WriteValue(address, LONG, offset=8, bits=64),
            WaitValue(words.buffer, 6, "and", offset=16),
            WaitValue(address, LONG, "nor", bits=64),
            MemoryBarrier("device"),
        ]
    )
    assert node.operations == (
        WriteValue(address + 4, 5),
        WriteValue(address + 8, LONG, bits=64),
        WaitValue(address + 16, 6, StreamWaitValueType.AND),
        WaitValue(address, LONG, StreamWaitValueType.NOR, bits=64),
        MemoryBarrier(StreamMemoryBarrierType.DEVICE),
    )
    assert repr(node) == f"<BatchMemOpNode handle={node.handle:#x} operations=5>"
    assert node.type.name == "CU_GRAPH_NODE_TYPE_BATCH_MEM_OP"


def test_the_operations_of_a_node_make_the_same_node(graph, stream, words):
    node = graph.batch_mem_op([WriteValue(words.buffer, 5), WaitValue(words.buffer, 5, "and")])
    other = node.batch_mem_op(node.operations)
    assert other.operations == node.operations
    run(graph, stream)


def test_operations_are_replaced_in_a_definition(graph, stream, words):
    node = graph.batch_mem_op([WriteValue(words.buffer, 5)])
    with graph.instantiate() as executable:
        assert node.update([WriteValue(words.buffer, 6), WaitValue(words.buffer, 6)]) is None
        assert len(node.operations) == 2
        executable.launch(stream)
        stream.sync()
        assert words.short[0] == 5
    run(graph, stream)
    assert words.short[0] == 6


def test_operations_are_changed_in_an_executable(graph, stream, words):
    node = graph.batch_mem_op([WriteValue(words.buffer, 5), WaitValue(words.buffer, 5, "eq")])
    with graph.instantiate() as executable:
        view = executable[node]
        assert type(view) is ExecutableBatchMemOpNode
        view.update([WriteValue(words.buffer, 6, offset=4), WaitValue(words.buffer, 2, "and", offset=4)])
        executable.launch(stream)
        stream.sync()
    assert words.short[:2].tolist() == [0, 6]
    assert node.operations[0].value == 5


@pytest.mark.parametrize(
    "change",
    [
        lambda b: [WriteValue(b, 1)],
        lambda b: [WaitValue(b, 0), WaitValue(b, 0)],
        lambda b: [WriteValue(b, 1, bits=64), WaitValue(b, 1)],
    ],
)
def test_an_executable_keeps_the_number_and_the_kinds_of_operations(graph, stream, words, change):
    node = graph.batch_mem_op([WriteValue(words.buffer, 5), WaitValue(words.buffer, 5)])
    with graph.instantiate() as executable:
        with pytest.raises(CUDAError):
            executable[node].update(change(words.buffer))
        executable.launch(stream)
        stream.sync()
    assert words.short[0] == 5


def test_an_executable_is_updated_from_a_definition(graph, stream, words):
    graph.batch_mem_op([WriteValue(words.buffer, 5)])
    with graph.instantiate() as executable, GraphDefinition() as other:
        other.batch_mem_op([WriteValue(words.buffer, 7)])
        executable.update(other)
        executable.launch(stream)
        stream.sync()
    assert words.short[0] == 7


@pytest.mark.parametrize(
    ("operations", "error", "text"),
    [
        ([], ValueError, "at least one operation"),
        ([WriteValue(64, 2**32)], OverflowError, "32 bits"),
        ([WriteValue(66, 1)], ValueError, "multiple of 4"),
        (["write"], TypeError, "must be a WriteValue"),
        (5, TypeError, "sequence"),
        ([MemoryBarrier()] * 256, ValueError, "at most 255"),
    ],
)
def test_wrong_operations_add_and_change_nothing(graph, stream, words, operations, error, text):
    node = graph.batch_mem_op([WriteValue(words.buffer, 1)])
    before = node.operations
    with graph.instantiate() as executable:
        for use in (graph.batch_mem_op, node.batch_mem_op, node.update, executable[node].update):
            with pytest.raises(error, match=text):
                use(operations)
    assert graph.nodes() == {node}
    assert node.operations == before


def test_closed_buffers_are_refused(graph, device, stream):
    closed = device.allocate(SIZE, stream)
    closed.close()
    with pytest.raises(RuntimeError, match="closed"):
        graph.batch_mem_op([WriteValue(closed, 1)])
    with pytest.raises(RuntimeError, match="closed"):
        graph.batch_mem_op([WriteValue(64, 1, owner=closed)])
    assert graph.nodes() == set()


def test_a_graph_keeps_the_memory_of_its_operations(stream, buffers_before):
    with GraphDefinition() as graph:
        first, second = PINNED.allocate(SIZE), PINNED.allocate(SIZE)
        node = graph.batch_mem_op([WriteValue(first, 1), WriteValue(second, 2), WaitValue(second, 2)])
        first.close()
        second.close()
        assert stays(keeps(buffers_before + 2))
        run(graph, stream)
        with PINNED.allocate(SIZE) as third:
            node.update([WriteValue(third, 1)])
        assert eventually(keeps(buffers_before + 1))
    assert eventually(keeps(buffers_before))


def test_memory_of_pools_and_graphs_is_refused(graph, device, stream):
    with device.allocate(SIZE, stream) as buffer, pytest.raises(ValueError, match="cannot use memory of a pool"):
        graph.batch_mem_op([WriteValue(buffer, 1)])
    allocation = graph.allocate(SIZE)
    for memory in (allocation.dptr, allocation.dptr + 8):
        with pytest.raises(ValueError, match=r"operations\[0\] cannot use memory of a pool"):
            allocation.batch_mem_op([WriteValue(memory, 1)])
    assert graph.nodes() == {allocation}


def test_addresses_that_the_driver_cannot_use_fail_when_the_graph_is_launched(graph, device, stream):
    with device.allocate(SIZE, stream) as buffer:
        graph.batch_mem_op([WriteValue(buffer.handle, 1)])
        with graph.instantiate() as executable:
            with pytest.raises(CUDAError, match="cuGraphLaunch failed: CUDA_ERROR_INVALID_VALUE"):
                executable.launch(stream)
            stream.sync()


def test_a_graph_keeps_the_owner_of_an_address(graph, words):
    owner, seen = watched()
    node = graph.batch_mem_op([WriteValue(words.buffer.handle, 1, owner=owner)])
    del owner
    assert stays(seen)
    node.destroy()
    gc.collect()
    assert eventually(lambda: seen() is None)


def test_an_executable_keeps_what_it_was_changed_to(graph, stream, words, buffers_before):
    node = graph.batch_mem_op([WriteValue(words.buffer, 1)])
    with graph.instantiate() as executable:
        other = PINNED.allocate(SIZE)
        executable[node].update([WriteValue(other, 2)])
        other.close()
        assert stays(keeps(buffers_before + 1))
        executable.launch(stream)
        stream.sync()
        executable[node].update([WriteValue(words.buffer, 3)])
        assert eventually(keeps(buffers_before))


def test_operations_are_captured(builder, stream, words):
    words.buffer.write_value(5, stream=builder)
    words.buffer.wait_value(5, "eq", stream=builder)
    words.buffer.write_value(LONG, stream=builder, offset=8, bits=64)
    batch_mem_op(builder, [WriteValue(words.buffer, 6), MemoryBarrier(), WaitValue(words.buffer, 6)])
    stream.sync()
    assert not words.long.any()
    finish(builder, stream)
    assert words.short[0] == 6
    assert words.long[1] == LONG


def test_what_was_captured_is_a_node_that_can_be_changed(builder, stream, words, memory):
    memory[0].fill(1, stream=builder)
    batch_mem_op(builder, [WriteValue(words.buffer, 5), WaitValue(words.buffer, 5)])
    definition = builder.end_building().graph_definition
    kinds = {type(node): node for node in definition.nodes()}
    assert set(kinds) == {MemsetNode, BatchMemOpNode}
    node = kinds[BatchMemOpNode]
    assert node.operations == (WriteValue(words.buffer.handle, 5), WaitValue(words.buffer.handle, 5))
    node.update([WriteValue(words.buffer, 8)])
    run(definition, stream)
    assert words.short[0] == 8


def test_wrong_operations_do_not_end_a_capture(builder, stream, words):
    words.buffer.write_value(1, stream=builder)
    with pytest.raises(ValueError, match="not in a buffer"):
        words.buffer.write_value(1, stream=builder, offset=4096)
    with pytest.raises(ValueError, match="at most"):
        batch_mem_op(builder, [WriteValue(words.buffer, 1)] * 256)
    finish(builder, stream)
    assert words.short[0] == 1


def test_a_graph_inside_another_writes(graph, stream, words):
    with GraphDefinition() as child:
        child.batch_mem_op([WriteValue(words.buffer, 5)])
        node = graph.embed(child)
    (inner,) = node.child_graph.nodes()
    assert type(inner) is BatchMemOpNode
    run(graph, stream)
    assert words.short[0] == 5


def test_operations_are_drawn(graph, words):
    address = words.buffer.handle
    graph.batch_mem_op([WriteValue(address, 5), WaitValue(address, 5, "eq"), MemoryBarrier()])
    expected = rf"memory operations\nwrite 5 at {address:#x}\nwait for eq 5 at {address:#x}\nbarrier, system"
    assert f'label="{expected}"' in graph.to_dot()
