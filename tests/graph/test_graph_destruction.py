# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""How graphs and what they keep end, and what other libraries do with them: sentences 16 to 20 of docs/graphs.md."""

from __future__ import annotations

import ctypes
import gc
import threading
import warnings
import weakref

import pytest
from graphs import ONE, SIZE, buffers_alive, eventually, filling, keeps, run, stays, watched
from helpers import Gate, no_release_thread, output_of
from scenarios import PTX

from cuda_core_cffi import (
    Buffer,
    CUDAError,
    CUDAWarning,
    Device,
    MemoryResource,
    ObjectCode,
    ffi,
    lib,
    live_objects,
    simulator,
)
from cuda_core_cffi._lifetime.references import flush_releases
from cuda_core_cffi._streams.callbacks import raised
from cuda_core_cffi.graph import GraphDefinition

HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def test_16_the_order_of_destruction_is_free(device, buffers_before):
    for turn in range(6):
        stream = device.create_stream()
        buffer = device.allocate(SIZE, stream)
        code = ObjectCode.from_ptx(PTX)
        kernel = code.get_kernel("store")
        event = device.create_event()
        graph = GraphDefinition()
        node = graph.launch(ONE, kernel, buffer, 1).memset(buffer, 1, 4).record(event)
        node.callback(lambda: None)
        executable = graph.instantiate()
        executable.launch(stream)
        things = [buffer, kernel, code, event, graph, executable, stream]
        del buffer, kernel, code, event, graph, executable, stream, node
        things = things[turn:] + things[:turn]
        while things:
            thing = things.pop()
            if turn % 2:
                thing.close()
            del thing
        Device(0).sync()
        assert eventually(keeps(buffers_before))


def test_20_in_the_child_of_a_fork_a_handle_is_a_number_still():
    text = output_of(
        """
        import os, warnings
        from cuda_core_cffi import Device
        from cuda_core_cffi.graph import GraphDefinition

        warnings.simplefilter("ignore")  # of the fork itself
        device = Device(0)
        device.set_current()
        stream = device.create_stream()
        with GraphDefinition() as graph, device.allocate(64, stream) as buffer:
            graph.memset(buffer, 1, 64)
            child = os.fork()
            if child == 0:
                os._exit(7 if graph.handle else 1)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), graph.handle != 0)
        stream.close()
        """
    )
    assert text == "7 True"


def test_20_a_host_function_cannot_be_the_first_to_ask(stream, memory):
    told = []

    def ask():
        for definition in (known, unknown):
            try:
                told.append(definition.handle)
            except CUDAError as error:
                told.append(error.name)

    with GraphDefinition() as known, GraphDefinition() as unknown, GraphDefinition() as graph:
        for definition in (known, unknown):
            definition.memset(memory[0], 1, 4)
        handle = known.handle
        graph.callback(ask)
        run(graph, stream)
        assert told == [handle, "CUDA_ERROR_NOT_PERMITTED"]
        assert unknown.handle


def test_20_executables_of_other_libraries_keep_what_the_definition_did(device, stream, buffers_before):
    graph, _ = filling(device, stream, 1)
    made, parameters = ffi.new("CUgraphExec *"), ffi.new("CUDA_GRAPH_INSTANTIATE_PARAMS *")
    handle = graph.cdata
    with device.allocate(SIZE, stream) as later:
        graph.memset(later, 2, SIZE)
    assert lib.cuGraphInstantiateWithParams(made, handle, parameters) == 0
    graph.close()
    assert stays(keeps(buffers_before + 2))
    with Gate(stream) as gate:
        assert lib.cuGraphLaunch(made[0], stream.cdata) == 0
        assert lib.cuGraphExecDestroy(made[0]) == 0
        assert stays(keeps(buffers_before + 2))
        gate.open()
        stream.sync()
    assert eventually(keeps(buffers_before))


def test_17_nothing_is_released_in_a_thread_of_the_drivers(stream, graph, memory):
    threads = []
    drivers = set()

    class Told:
        def __del__(self):
            threads.append(threading.get_native_id())

    for turn in range(3):
        node = graph.memset(memory[0].handle, 1, 4, dst_owner=Told())
        node.callback(lambda: drivers.add(threading.get_native_id()))
        executable = graph.instantiate()
        executable.launch(stream)
        node.destroy()
        executable.close()
        stream.sync()
        assert eventually(lambda turn=turn: len(threads) == turn + 1)
    assert drivers
    assert not drivers.intersection(threads)


def test_17_the_driver_releases_while_another_thread_has_the_gil(graph, memory):
    """The last reference goes in a call that holds the GIL: if releasing took the GIL, both would wait for ever."""
    owner, seen = watched()
    graph.memset(memory[0].handle, 1, 4, dst_owner=owner)
    del owner
    executable = ffi.new("CUgraphExec *")
    parameters = ffi.new("CUDA_GRAPH_INSTANTIATE_PARAMS *")
    assert lib.cuGraphInstantiateWithParams(executable, graph.cdata, parameters) == 0
    for node in graph.nodes():
        node.destroy()
    address = ffi.new("void **")
    found = ffi.new("CUdriverProcAddressQueryResult *")
    assert lib.cuGetProcAddress(b"cuGraphExecDestroy", address, 12000, 0, found) == 0
    with_gil = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(int(ffi.cast("uintptr_t", address[0])))
    assert with_gil(int(ffi.cast("uintptr_t", executable[0]))) == 0
    assert eventually(lambda: seen() is None)


def test_17_releasing_does_not_break_a_capture(device, stream, graph, memory):
    """Another library captures in the strictest mode, which forbids queries and frees, while something is released."""
    before = lib.ccc_refs_count()
    node = graph.memset(memory[0], 1, SIZE)
    with graph.instantiate() as executable, device.create_stream() as captured:
        with device.allocate(SIZE, stream) as buffer:
            executable[node].update(dst=buffer, value=1, width=SIZE)
        executable.launch(stream)
        executable[node].update(dst=memory[0], value=1, width=SIZE)
        mode = lib.CU_STREAM_CAPTURE_MODE_GLOBAL
        assert lib.cuStreamBeginCapture(captured.cdata, mode) == 0
        assert eventually(lambda: lib.ccc_refs_count() == before + 3)  # the definition's, and the executable's two
        made = ffi.new("CUgraph *")
        assert lib.cuStreamEndCapture(captured.cdata, made) == 0
        assert lib.cuGraphDestroy(made[0]) == 0


@pytest.mark.simulator_only("only the simulated driver fails on request")
@pytest.mark.parametrize(("turn", "told"), [(1, 0), (2, 1)])
def test_17_without_another_mode_of_capture_all_is_released(device, stream, buffers_before, turn, told):
    graph, _ = filling(device, stream)
    with simulator.fail("cuThreadExchangeStreamCaptureMode", "CUDA_ERROR_UNKNOWN", turn) as fault:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            graph.close()
            assert eventually(keeps(buffers_before))
            flush_releases()
        assert fault.left == 0
    assert [warning.category for warning in caught] == [CUDAWarning] * told
    mode = ffi.new("CUstreamCaptureMode *", lib.CU_STREAM_CAPTURE_MODE_GLOBAL)
    assert lib.cuThreadExchangeStreamCaptureMode(mode) == 0  # what could not be set back is not the next test's


@pytest.mark.parametrize("wrap", [lambda function: function, HOST_FUNCTION], ids=["Python", "C"])
def test_18_what_python_collects_in_a_host_function_goes_later(device, stream, buffers_before, wrap):
    kept = [[device.allocate(SIZE, stream), device.create_event(), device.create_stream()] for _ in range(3)]
    before = live_objects()
    in_function = []

    def drop(*_):
        kept.pop()
        gc.collect()
        in_function.append({kind: live_objects()[kind] for kind in ("buffer", "stream")})

    with GraphDefinition() as graph:
        graph.callback(wrap(drop))
        with no_release_thread():  # which may destroy them while the function goes on
            run(graph, stream)
    assert in_function == [{kind: before[kind] for kind in ("buffer", "stream")}]
    assert eventually(lambda: live_objects()["stream"] == before["stream"] - 1)
    assert eventually(lambda: live_objects()["event"] == before["event"] - 1)  # one was recorded behind the launch
    assert buffers_alive() == before["buffer"] - 1
    assert not raised
    kept.clear()


def test_18_memory_of_a_resource_in_python_goes_later(device, stream, memory):
    threads = []

    class Resource(MemoryResource):
        def deallocate(self, ptr, size, stream=None):
            threads.append(threading.get_ident())

    kept = [Buffer.from_handle(memory[0].handle, SIZE, mr=Resource()) for _ in range(3)]
    in_function = []

    def drop():
        kept.clear()
        gc.collect()
        in_function.append(threading.get_ident())

    with GraphDefinition() as graph:
        graph.callback(drop)
        run(graph, stream)
    assert eventually(lambda: len(threads) == 3)
    assert in_function[0] not in threads


def test_19_a_function_with_a_weak_reference_to_its_graph_is_freed(device, stream):
    graph = GraphDefinition()
    seen = weakref.ref(graph)
    calls = []
    graph.callback(lambda: calls.append(seen() is not None))
    run(graph, stream)
    del graph
    assert eventually(lambda: seen() is None and not live_objects()["graph"])
    assert calls == [True]
