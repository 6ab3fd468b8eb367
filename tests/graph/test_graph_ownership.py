# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Who keeps what: a test for each sentence of docs/graphs.md that has a number, up to 15."""

from __future__ import annotations

import ctypes
import gc
import pathlib
import re

import pytest
from graphs import ONE, SIZE, content, eventually, filling, keeps, run, stays, watched
from helpers import ROOT, Gate, in_threads, switch_interval
from scenarios import PTX

from cuda_core_cffi import (
    Buffer,
    CUDAError,
    ObjectCode,
    live_objects,
    simulator,
)
from cuda_core_cffi.graph import GraphDefinition

MODULES = ("test_graph_ownership.py", "test_graph_destruction.py")
PAGE = ROOT / "docs" / "graphs.md"


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not installed with the tests")
def test_every_sentence_has_a_test():
    numbers = set(re.findall(r"^(\d+)\. ", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    here = pathlib.Path(__file__).parent
    text = "".join((here / name).read_text(encoding="utf-8") for name in MODULES)
    assert numbers == set(re.findall(r"^def test_(\d+)_", text, re.MULTILINE))


def test_1_a_definition_keeps_memory(device, stream, buffers_before):
    graph, node = filling(device, stream, 7)
    other = device.allocate(SIZE, stream)
    node.memcpy(other, node.dptr, SIZE)
    assert stays(keeps(buffers_before + 2))
    run(graph, stream)
    assert content(other, stream) == b"\7" * SIZE
    other.close()
    graph.close()
    assert eventually(keeps(buffers_before))


def test_2_a_definition_keeps_code_events_and_functions(device, stream, memory):
    graph = GraphDefinition()
    before = live_objects()
    owner, seen = watched()
    calls = []
    with ObjectCode.from_ptx(PTX) as code, code.get_kernel("store") as kernel, device.create_event() as event:
        node = graph.launch(ONE, kernel, memory[0], 0x01020304)
        node.record(event).wait(event).callback(lambda owner=owner: calls.append(owner is not None))
    del owner, kernel, code, event
    gc.collect()
    assert live_objects()["library"] == before["library"] + 1
    assert live_objects()["event"] == before["event"] + 1
    run(graph, stream)
    assert content(memory[0], stream, 4) == b"\4\3\2\1"
    assert calls == [True]
    graph.close()
    assert eventually(lambda: seen() is None and live_objects()["library"] == before["library"])
    assert live_objects()["event"] == before["event"]


def test_3_what_an_address_belongs_to_is_kept_as_its_owner(graph, memory):
    owner, seen = watched()
    node = graph.memcpy(memory[0].handle, memory[1].handle, 4, dst_owner=owner)
    del owner
    assert stays(seen)
    node.destroy()
    assert eventually(lambda: seen() is None)


def test_3_a_buffer_as_owner_keeps_its_memory(device, stream, buffers_before):
    with GraphDefinition() as graph:
        buffer = device.allocate(SIZE, stream)
        address = buffer.handle + 4
        node = graph.memset(address, 1, 4, dst_owner=buffer)
        buffer.close()
        assert stays(keeps(buffers_before + 1))
        assert node.dptr == address
    assert eventually(keeps(buffers_before))


def test_3_the_owner_of_a_foreign_buffer_is_kept(graph, memory):
    owner, seen = watched()
    with Buffer.from_handle(memory[0].handle, SIZE, owner=owner) as buffer:
        node = graph.memset(buffer, 1, 4)
    del owner, buffer
    assert stays(seen)
    node.destroy()
    assert eventually(lambda: seen() is None)


def test_4_setting_parameters_replaces_what_was_kept(device, stream, buffers_before):
    graph, node = filling(device, stream)
    with device.allocate(SIZE, stream) as other:
        node.update(dst=other)
    assert eventually(keeps(buffers_before + 1))
    node.update(value=2)
    assert stays(keeps(buffers_before + 1))
    graph.close()
    assert eventually(keeps(buffers_before))


def test_4_what_stays_the_same_stays_kept(device, stream, buffers_before):
    graph = GraphDefinition()
    source, target, other = (device.allocate(SIZE, stream) for _ in range(3))
    source.fill(3, stream=stream)
    node = graph.memcpy(target, source, SIZE)
    node.update(dst=other)
    source.close()
    target.close()
    assert eventually(keeps(buffers_before + 2))
    run(graph, stream)
    assert content(other, stream) == b"\3" * SIZE
    node.update(src=other.handle, dst=other.handle + 512, size=512)
    assert eventually(keeps(buffers_before + 1))
    graph.close()
    other.close()
    assert eventually(keeps(buffers_before))


def test_4_another_kernel_argument_replaces_the_buffer_but_not_the_kernel(device, stream, store, buffers_before):
    graph = GraphDefinition()
    first, second = (device.allocate(SIZE, stream) for _ in range(2))
    node = graph.launch(ONE, store, first, 1)
    first.close()
    assert stays(keeps(buffers_before + 2))
    node.update(args=(second, 0x05050505))
    assert eventually(keeps(buffers_before + 1))
    node.update(config=ONE)
    run(graph, stream)
    assert content(second, stream, 4) == b"\5" * 4
    second.close()
    assert stays(keeps(buffers_before + 1))
    graph.close()
    assert eventually(keeps(buffers_before))


def test_4_of_several_threads_that_set_a_node_one_lets_go(device, stream, buffers_before):
    graph = GraphDefinition()
    node = graph.memset(device.allocate(SIZE, stream), 1, SIZE)
    graph.memset(device.allocate(SIZE, stream), 1, SIZE)

    def work(number: int) -> None:
        device.set_current()
        for value in range(300):
            with device.allocate(SIZE, stream) as buffer:
                node.update(dst=buffer, value=value % 256)
            if number == 0 and value % 10 == 0:
                graph.clone().close()

    with switch_interval(1e-6):
        in_threads(4, work)
    assert eventually(keeps(buffers_before + 2))
    with graph.clone():
        graph.close()
        assert stays(keeps(buffers_before + 2))
    assert eventually(keeps(buffers_before))


def test_5_of_several_threads_that_destroy_a_node_one_does(device, stream, buffers_before, graph):
    for _ in range(20):
        node = graph.memset(device.allocate(SIZE, stream), 1, SIZE)
        in_threads(3, lambda number, node=node: node.destroy())
        assert not node.is_valid
    assert eventually(keeps(buffers_before))
    assert graph.nodes() == set()


def test_5_destroying_a_node_lets_go(device, stream, buffers_before):
    graph, node = filling(device, stream)
    node.destroy()
    assert eventually(keeps(buffers_before))
    graph.close()


def test_5_destroying_a_node_lets_go_of_the_graphs_inside(device, stream, buffers_before, graph):
    child, _ = filling(device, stream)
    node = graph.embed(child)
    child.close()
    inside = device.allocate(SIZE, stream)
    node.child_graph.memset(inside, 1, 4)
    inside.close()
    assert stays(keeps(buffers_before + 2))
    node.destroy()
    assert eventually(keeps(buffers_before))


@pytest.mark.parametrize("size", [4])
def test_6_where_setting_fails_everything_is_what_it_was(device, stream, buffers_before, size):
    graph, node = filling(device, stream, 8)
    with device.allocate(SIZE, stream) as other, pytest.raises(ValueError, match="fewer"):
        node.update(dst=other, width=2 * SIZE)
    assert eventually(keeps(buffers_before + 1))
    assert (node.value, node.width) == (8, SIZE)
    run(graph, stream)
    graph.close()
    assert eventually(keeps(buffers_before))


def test_7_a_node_that_could_not_be_added_leaves_nothing(device, stream, buffers_before, graph):
    owner, seen = watched()
    gone = graph.empty()
    gone.destroy()
    with device.allocate(SIZE, stream) as buffer:
        with pytest.raises(RuntimeError):
            gone.memset(buffer, 1, 4)
        with pytest.raises(RuntimeError):
            gone.callback(lambda owner=owner: None)
        with pytest.raises(CUDAError):
            graph.memset(64, 1, 4, dst_owner=owner)
    del owner
    assert eventually(keeps(buffers_before))
    assert eventually(lambda: seen() is None)
    assert graph.nodes() == set()


@pytest.mark.simulator_only("only the simulated driver fails on request")
@pytest.mark.parametrize(
    ("shown", "call"),
    [
        (False, "cuGraphAddNode"),
        (True, "cuGraphAddNode"),
        (True, "cuUserObjectCreate"),
        (True, "cuGraphRetainUserObject"),
    ],
)
def test_7_nor_does_one_that_the_driver_refuses(graph, memory, shown, call):
    if shown:
        assert graph.handle
    owner, seen = watched()
    with simulator.fail(call, "CUDA_ERROR_UNKNOWN"), pytest.raises(CUDAError, match=call):
        graph.memset(memory[0].handle, 1, 4, dst_owner=owner)
    del owner
    assert eventually(lambda: seen() is None)
    assert graph.nodes() == set()


def test_8_user_data_is_copied(graph, stream):
    got = []
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: got.append(ctypes.string_at(data, 5)))
    given = bytearray(b"hello")
    graph.callback(function, user_data=given)
    given[:] = b"other"
    del given, function
    gc.collect()
    run(graph, stream)
    assert got == [b"hello"]


def test_9_an_executable_keeps_what_the_definition_kept(device, stream, buffers_before):
    graph, node = filling(device, stream, 4)
    address = node.dptr
    executable = graph.instantiate()
    with device.allocate(SIZE, stream) as other:
        node.update(dst=other)
    graph.close()
    assert eventually(keeps(buffers_before + 1))
    executable.launch(stream)
    with Buffer.from_handle(address, SIZE) as memory:
        assert content(memory, stream) == b"\4" * SIZE
    executable.close()
    assert eventually(keeps(buffers_before))


def test_10_a_clone_keeps_what_the_original_kept(device, stream, buffers_before):
    graph, node = filling(device, stream)
    clone = graph.clone()
    node.destroy()
    graph.close()
    assert stays(keeps(buffers_before + 1))
    run(clone, stream)
    (copy,) = clone.nodes()
    with device.allocate(SIZE, stream) as other:
        copy.update(dst=other)
    assert eventually(keeps(buffers_before + 1))
    copy.destroy()
    assert eventually(keeps(buffers_before))
    clone.close()


def test_10_an_embedded_graph_keeps_what_the_original_kept(device, stream, buffers_before, graph):
    child, _ = filling(device, stream)
    node = graph.embed(child)
    child.close()
    assert stays(keeps(buffers_before + 1))
    run(graph, stream)
    (inner,) = node.child_graph.nodes()
    inner.destroy()
    assert eventually(keeps(buffers_before))


@pytest.mark.simulator_only("only the simulated driver fails on request")
@pytest.mark.parametrize("call", ["cuUserObjectCreate", "cuGraphRetainUserObject"])
@pytest.mark.parametrize("copy", ["embed", "handle", "cdata", "c_handle"])
def test_10_a_copy_that_cannot_keep_is_not_made(device, stream, buffers_before, graph, copy, call):
    """The driver takes over one of two keeps, and refuses the other: then each is kept once, and no copy is made."""
    child, first = filling(device, stream, 1)
    second_buffer = device.allocate(SIZE, stream)
    second = child.memset(second_buffer, 2, SIZE)
    second_buffer.close()
    assert graph.handle  # of a graph that others know, the driver has all that is kept

    def make():
        return graph.embed(child) if copy == "embed" else getattr(child, copy)

    with simulator.fail(call, "CUDA_ERROR_UNKNOWN", 2), pytest.raises(CUDAError, match=call):
        make()
    assert graph.nodes() == set()
    assert stays(keeps(buffers_before + 2))
    run(child, stream)
    assert stays(keeps(buffers_before + 2))
    made = make()
    first.destroy()
    second.destroy()
    assert (
        eventually(keeps(buffers_before))
        if copy in ("handle", "cdata", "c_handle")
        else stays(keeps(buffers_before + 2))
    )
    child.close()
    if copy == "embed":
        made.destroy()
    assert eventually(keeps(buffers_before))


@pytest.mark.simulator_only("only the simulated driver tells what it was called with")
def test_10_executables_of_a_clone_and_of_its_original_have_no_user_objects(device, stream, buffers_before):
    """With user objects a launch takes the driver four times as long."""
    definition, _ = filling(device, stream)
    with simulator.trace() as calls:
        clone = definition.clone()
        for made in (definition, clone):
            run(made, stream)
            made.close()
    assert [call.function for call in calls if "UserObject" in call.function] == []
    assert "cuGraphClone" in {call.function for call in calls}
    assert eventually(keeps(buffers_before))


@pytest.mark.simulator_only("only the simulated driver fails on request")
def test_10_a_clone_that_the_driver_refuses_keeps_nothing(device, stream, buffers_before):
    definition, node = filling(device, stream)
    with simulator.fail("cuGraphClone", "CUDA_ERROR_UNKNOWN"), pytest.raises(CUDAError, match="cuGraphClone"):
        definition.clone()
    node.destroy()
    assert eventually(keeps(buffers_before))
    definition.close()


def test_11_an_update_replaces_what_the_executable_keeps(device, stream, buffers_before):
    first, _ = filling(device, stream, 1)
    executable = first.instantiate()
    first.close()
    second, node = filling(device, stream, 2)
    address = node.dptr
    assert stays(keeps(buffers_before + 2))
    executable.update(second)
    second.close()
    assert eventually(keeps(buffers_before + 1))
    executable.launch(stream)
    with Buffer.from_handle(address, SIZE) as memory:
        assert content(memory, stream) == b"\2" * SIZE
    executable.close()
    assert eventually(keeps(buffers_before))


def test_12_a_failed_update_changes_nothing(device, stream, buffers_before):
    first, node = filling(device, stream, 1)
    address = node.dptr
    executable = first.instantiate()
    first.close()
    second, node = filling(device, stream, 2)
    node.join()
    with pytest.raises(CUDAError):
        executable.update(second)
    second.close()
    assert eventually(keeps(buffers_before + 1))
    executable.launch(stream)
    with Buffer.from_handle(address, SIZE) as memory:
        assert content(memory, stream) == b"\1" * SIZE
    executable.close()
    assert eventually(keeps(buffers_before))


def test_13_what_a_node_of_an_executable_is_set_to_is_kept_by_it(device, stream, buffers_before):
    graph, node = filling(device, stream, 1)
    executable = graph.instantiate()
    for value in (2, 3):  # the second replaces the first
        with device.allocate(SIZE, stream) as other:
            executable[node].update(dst=other, value=value, width=SIZE)
            address = other.handle
        assert eventually(keeps(buffers_before + 2))
        executable.launch(stream)
        with Buffer.from_handle(address, SIZE) as memory:
            assert content(memory, stream) == bytes([value]) * SIZE
    executable.update(graph)
    assert eventually(keeps(buffers_before + 1))
    with device.allocate(SIZE, stream) as other:
        executable[node].update(dst=other, value=4, width=SIZE)
    assert stays(keeps(buffers_before + 2))
    executable.close()
    assert eventually(keeps(buffers_before + 1))
    graph.close()
    assert eventually(keeps(buffers_before))


def test_14_a_launch_keeps_what_it_uses(device, stream, buffers_before):
    graph, node = filling(device, stream, 6)
    target = device.allocate(SIZE, stream)
    node.memcpy(target, node.dptr, SIZE)
    executable = graph.instantiate()
    graph.close()
    with Gate(stream) as gate:
        executable.launch(stream)
        executable.close()
        del executable, node, graph
        assert stays(keeps(buffers_before + 2))
        gate.open()
        assert content(target, stream) == b"\6" * SIZE
    target.close()
    assert eventually(keeps(buffers_before))


def test_14_a_launch_keeps_what_a_node_of_the_executable_was_set_to(device, stream, buffers_before):
    graph, node = filling(device, stream, 6)
    executable = graph.instantiate()
    with device.allocate(SIZE, stream) as other:
        executable[node].update(dst=other, value=1, width=SIZE)
    with Gate(stream) as gate:
        executable.launch(stream)
        executable.close()
        graph.close()
        assert stays(keeps(buffers_before + 2))
        gate.open()
        stream.sync()
    assert eventually(keeps(buffers_before))


def test_15_what_an_update_replaces_waits_for_launches(device, stream, buffers_before):
    first, _ = filling(device, stream, 1)
    executable = first.instantiate()
    first.close()
    second, _ = filling(device, stream, 2)
    with Gate(stream) as gate:
        executable.launch(stream)
        executable.update(second)
        second.close()
        assert stays(keeps(buffers_before + 2))
        gate.open()
        stream.sync()
    assert eventually(keeps(buffers_before + 1))
    executable.close()
    assert eventually(keeps(buffers_before))


def test_15_what_setting_a_node_replaces_waits_for_its_launches_only(device, stream, buffers_before):
    graph, node = filling(device, stream, 1)
    executable = graph.instantiate()
    with device.create_stream() as other_stream:
        with device.allocate(SIZE, stream) as old:
            executable[node].update(dst=old, value=2, width=SIZE)
        executable.launch(stream)
        stream.sync()
        with device.allocate(SIZE, stream) as new:
            executable[node].update(dst=new, value=3, width=SIZE)
        with Gate(other_stream) as gate:
            executable.launch(other_stream)
            assert eventually(keeps(buffers_before + 2))  # the old one's launch is done
            executable.close()
            assert stays(keeps(buffers_before + 2))
            gate.open()
    graph.close()
    assert eventually(keeps(buffers_before))
