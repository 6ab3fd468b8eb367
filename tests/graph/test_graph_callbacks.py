# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Host functions in graphs: of Python and of C, with exceptions, threads and the end of the process."""

from __future__ import annotations

import ctypes
import gc
import threading
import time

import numpy
import pytest
from graphs import SIZE, eventually, run, watched
from helpers import Gate, output_of

from cuda_core_cffi import Device, LegacyPinnedMemoryResource, ffi
from cuda_core_cffi.graph import HostCallbackNode

HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Unlikely(Exception):
    """Raised by host functions of these tests."""


def fail() -> None:
    """Raise."""
    raise Unlikely("in a host function")


def test_a_python_function_is_called_in_order(graph, stream):
    calls = []
    node = graph.callback(lambda: calls.append(1)).join().callback(lambda: calls.append(2))
    assert type(node) is HostCallbackNode
    with graph.instantiate() as executable:
        for _ in range(3):
            executable.launch(stream)
        stream.sync()
    assert calls == [1, 2] * 3


def test_a_python_function_sees_what_came_before(graph, device, stream, memory):
    seen = []
    with LegacyPinnedMemoryResource().allocate(SIZE, stream) as host:
        view = numpy.asarray(host)
        graph.memset(memory[0], 5, SIZE).memcpy(host, memory[0], SIZE).callback(lambda: seen.append(view.tobytes()))
        run(graph, stream)
    assert seen == [b"\5" * SIZE]


def test_it_runs_in_another_thread(graph, stream):
    threads = []
    graph.callback(lambda: threads.append(threading.get_ident()))
    run(graph, stream)
    assert threads != [threading.get_ident()]


def test_a_node_tells_its_function(graph):
    def function():
        pass

    node = graph.callback(function)
    assert node.callback is function
    assert repr(node) == f"<HostCallbackNode handle={node.handle:#x} callback=function>"
    c_function = HOST_FUNCTION(lambda data: None)
    c_node = graph.callback(c_function)
    assert c_node.callback is None
    assert f"cfunc={ctypes.cast(c_function, ctypes.c_void_p).value:#x}" in repr(c_node)


def test_the_function_is_replaced(graph, stream):
    calls = []
    node = graph.callback(lambda: calls.append(1))
    owner, seen = watched()
    node.update(lambda owner=owner: calls.append(2))
    run(graph, stream)
    node.update(lambda: calls.append(3))
    del owner
    assert eventually(lambda: seen() is None)
    run(graph, stream)
    assert calls == [2, 3]


def test_a_clone_has_the_function(graph, stream):
    calls = []
    node = graph.callback(lambda: calls.append(1))
    with graph.clone() as clone:
        (copy,) = clone.nodes()
        assert copy.callback is node.callback
        graph.close()
        run(clone, stream)
    assert calls == [1]


@pytest.mark.parametrize("sync", ["stream", "event", "device"])
def test_what_it_raises_is_raised_by_the_next_call_that_synchronises(graph, device, stream, sync):
    graph.callback(fail)
    with graph.instantiate() as executable:
        executable.launch(stream)
        with stream.record() as event:
            waits = {"stream": stream.sync, "event": event.sync, "device": device.sync}[sync]
            with pytest.raises(Unlikely, match="in a host function"):
                waits()
            waits()


def test_several_exceptions_come_as_a_group(graph, stream):
    graph.callback(fail).join().callback(fail)
    with graph.instantiate() as executable:
        executable.launch(stream)
        with pytest.raises(BaseExceptionGroup, match="several host callbacks") as caught:
            stream.sync()
        assert [type(error) for error in caught.value.exceptions] == [Unlikely, Unlikely]
        stream.sync()


def test_what_follows_a_function_that_raises_runs(graph, stream, memory):
    calls = []
    graph.callback(fail).join().callback(lambda: calls.append(1))
    with pytest.raises(Unlikely):
        run(graph, stream)
    assert calls == [1]


def test_an_exit_in_a_function_is_no_exit(graph, stream):
    def leave():
        raise SystemExit(3)

    graph.callback(leave)
    with pytest.raises(SystemExit):
        run(graph, stream)


def test_a_ctypes_function(graph, stream):
    got = []
    function = HOST_FUNCTION(got.append)
    graph.callback(function, user_data=1234).join().callback(function)
    run(graph, stream)
    assert got == [1234, None]


def test_a_cffi_function(graph, stream):
    got = []
    function = ffi.callback("void(void *)", lambda data: got.append(int(ffi.cast("intptr_t", data))))
    value = ffi.new("int *", 5)
    graph.callback(function, user_data=ffi.cast("void *", 77)).join().callback(function, user_data=value)
    graph.callback(function)
    run(graph, stream)
    assert sorted(got) == sorted([77, int(ffi.cast("intptr_t", value)), 0])


@pytest.mark.parametrize("data", [b"bytes", bytearray(b"bytes"), memoryview(b"bytes")])
def test_bytes_for_a_c_function(graph, stream, data):
    got = []
    graph.callback(HOST_FUNCTION(lambda address: got.append(ctypes.string_at(address, 5))), user_data=data)
    run(graph, stream)
    assert got == [b"bytes"]


@pytest.mark.parametrize(
    ("prototype", "text"),
    [
        (ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p), "returns c_int"),
        (ctypes.CFUNCTYPE(None), "are none"),
        (ctypes.CFUNCTYPE(None, ctypes.c_int), "are c_int"),
        (ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p), "c_void_p, c_void_p"),
        (ctypes.PYFUNCTYPE(None, ctypes.c_void_p), "expects the GIL"),
    ],
)
def test_other_ctypes_functions_are_refused(graph, prototype, text):
    function = prototype(lambda *_: None)
    with pytest.raises(TypeError, match=text):
        graph.callback(function)
    assert graph.nodes() == set()


def test_a_function_of_c_that_is_replaced_or_copied_is_the_one_that_is_called(graph, stream):
    got = []
    node = graph.callback(HOST_FUNCTION(lambda data: got.append("first")))
    with graph.instantiate() as executable, graph.clone() as clone:
        node.update(HOST_FUNCTION(lambda data: got.append(data)), user_data=5)
        executable.launch(stream)
        stream.sync()
        assert got == ["first"]
        executable.update(graph)
        executable.launch(stream)
        executable[node].update(HOST_FUNCTION(lambda data: got.append(data)), user_data=6)
        gc.collect()
        executable.launch(stream)
        stream.sync()
        assert got == ["first", 5, 6]
        graph.close()
        gc.collect()
        run(clone, stream)
        assert got == ["first", 5, 6, "first"]


def test_a_ctypes_function_of_a_library_must_be_declared(graph):
    function = ctypes.CDLL(None).free
    with pytest.raises(TypeError, match="returns c_int"):
        graph.callback(function)
    function.restype = None
    with pytest.raises(TypeError, match="unspecified"):
        graph.callback(function)
    function.argtypes = [ctypes.c_void_p]
    graph.callback(function)


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda: ffi.callback("void(int)", lambda number: None), TypeError),
        (lambda: ffi.cast("void *", 5), TypeError),
        (lambda: ffi.cast("void(*)(void *)", 0), ValueError),
        (lambda: 5, TypeError),
        (lambda: None, TypeError),
    ],
)
def test_what_is_no_host_function_is_refused(graph, function, error):
    with pytest.raises(error):
        graph.callback(function())
    assert graph.nodes() == set()


def test_user_data_is_for_c_functions(graph):
    with pytest.raises(ValueError, match=r"functools\.partial"):
        graph.callback(fail, user_data=b"bytes")
    with pytest.raises(TypeError, match="user_data"):
        graph.callback(HOST_FUNCTION(lambda data: None), user_data=1.5)


@pytest.mark.skipif(not hasattr(ctypes, "PyDLL"), reason="this interpreter has no ctypes.PyDLL")
def test_functions_run_while_threads_have_the_gil(graph, stream):
    """Threads compute, and sleep in C with the GIL: host functions wait for it, and go on."""
    calls = []
    graph.callback(lambda: calls.append(1))
    nap = ctypes.PyDLL(None).usleep
    done = threading.Event()

    def hold():
        while not done.is_set():
            nap(2000)

    threads = [threading.Thread(target=hold) for _ in range(2)]
    with graph.instantiate() as executable:
        for thread in threads:
            thread.start()
        for _ in range(20):
            executable.launch(stream)
        stream.sync()
        done.set()
        for thread in threads:
            thread.join()
    assert len(calls) == 20


def test_many_threads_launch_and_synchronise(device):
    """Each thread with a graph of its own, whose functions take the GIL while the others wait, close and collect."""
    from cuda_core_cffi.graph import GraphDefinition

    calls = []

    def work():
        Device(0).set_current()
        with device.create_stream() as stream:
            for _ in range(5):
                with GraphDefinition() as graph, device.allocate(SIZE, stream) as buffer:
                    graph.memset(buffer, 1, SIZE).callback(lambda: calls.append(1)).join().callback(gc.collect)
                    with graph.instantiate() as executable:
                        for _ in range(3):
                            executable.launch(stream)
                        stream.sync()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 60


def test_an_executable_is_launched_and_closed_by_different_threads(graph, stream, memory):
    graph.memset(memory[0], 1, SIZE)
    errors = []
    for _ in range(20):
        executable = graph.instantiate()

        def launch(executable=executable):
            try:
                while True:
                    for _ in range(32):
                        executable.launch(stream)
                    stream.sync()  # no more than a few wait, however fast they come
            except RuntimeError as error:
                errors.append(str(error))

        threads = [threading.Thread(target=launch) for _ in range(2)]
        for thread in threads:
            thread.start()
        time.sleep(0.001)
        executable.close()
        for thread in threads:
            thread.join()
        stream.sync()
    assert errors == ["this Graph is closed"] * 40


def test_a_function_may_outlast_its_graph(graph, stream):
    calls = []
    with Gate(stream) as gate:
        graph.callback(lambda: calls.append(1))
        executable = graph.instantiate()
        executable.launch(stream)
        executable.close()
        graph.close()
        gc.collect()
        gate.open()
        stream.sync()
    assert calls == [1]


@pytest.mark.parametrize(
    "wrap",
    ["call", "ctypes.CFUNCTYPE(None, ctypes.c_void_p)(call)", "ffi.callback('void(void *)', call)"],
    ids=["Python", "ctypes", "CFFI"],
)
@pytest.mark.parametrize("captured", [False, True], ids=["defined", "captured"])
def test_a_process_ends_while_functions_wait_to_be_called(wrap, captured):
    """What runs at exit is waited for; nothing is called afterwards, when the functions are gone."""
    text = output_of(
        """
        import ctypes, os, sys, threading, time
        from cuda_core_cffi import Device, ffi
        from cuda_core_cffi.graph import GraphDefinition

        device = Device(0)
        device.set_current()
        stream = device.create_stream()
        begun = threading.Event()
        def call(*_):
            os.write(1, b"begin ")
            begun.set()
            time.sleep(0.02)
            os.write(1, b"end ")
        wrap = eval("lambda: " + sys.argv[1])
        if sys.argv[2] == "True":
            builder = device.create_graph_builder()
            builder.begin_building()
            for _ in range(200):
                builder.stream.callback(wrap())
            executable = builder.end_building().complete()
        else:
            graph = GraphDefinition()
            node = graph._entry
            for _ in range(200):
                node = node.callback(wrap()).join()
            executable = graph.instantiate()
        executable.launch(stream)
        begun.wait(60)
        """,
        wrap,
        str(captured),
    )
    turns = len(text.split()) // 2
    assert 1 <= turns < 200
    assert text.split() == ["begin", "end"] * turns
