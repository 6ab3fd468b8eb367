# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Host functions in streams: when they are called, how long they are kept, in captures and among threads.

What makes a function one of the host is tested with graphs, in test_graph_callbacks.py; what they raise, in
test_callback_exceptions.py.
"""

from __future__ import annotations

import ctypes
import gc
import threading
import time
import weakref
from collections.abc import Iterator

import numpy
import pytest
from graphs import SIZE, Owner, eventually, stays, watched
from helpers import Gate, collect, no_release_thread, opened_before

from cuda_core_cffi import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    CUDAError,
    Device,
    LegacyPinnedMemoryResource,
    Stream,
    ffi,
    lib,
)
from cuda_core_cffi.graph import GraphDefinition

HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
BEFORE_ALL = (
    "from cuda_core_cffi import Device\ndevice = Device(0)\ndevice.set_current()\nstream = device.create_stream()\n"
)


class Unlikely(Exception):
    """Raised by host functions of these tests."""


def fail() -> None:
    """Raise."""
    raise Unlikely("in a host function")


@pytest.fixture
def other(device: Device) -> Iterator[Stream]:
    """Return another stream."""
    with device.create_stream() as other:
        yield other
        other.sync()


# order


def test_functions_are_called_in_order(stream):
    calls = []
    for number in range(20):
        assert stream.callback(lambda number=number: calls.append(number)) is None
    stream.sync()
    assert calls == list(range(20))


def test_a_function_sees_what_came_before_it(stream, memory):
    seen = []
    with LegacyPinnedMemoryResource().allocate(SIZE, stream) as host:
        view = numpy.asarray(host)
        memory[0].fill(5, stream=stream)
        memory[0].copy_to(host, stream=stream)
        stream.callback(lambda: seen.append(view.tobytes()))
        host.fill(6, stream=stream)
        stream.sync()
    assert seen == [b"\5" * SIZE]


def test_what_follows_waits_for_the_function(stream, other):
    opened = threading.Event()
    stream.callback(lambda: opened.wait(60) and None)
    other.wait(stream)
    event = other.record()
    assert not event.is_done
    opened.set()
    event.sync()
    assert event.is_done


def test_it_runs_in_another_thread(stream):
    threads = []
    stream.callback(lambda: threads.append(threading.get_ident()))
    stream.sync()
    assert len(threads) == 1
    assert threads != [threading.get_ident()]


@pytest.mark.parametrize("default", [LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM], ids=["legacy", "per thread"])
def test_default_streams_call_functions(device, default):
    calls = []
    default.callback(lambda: calls.append(1))
    default.sync()
    assert calls == [1]


def test_a_stream_of_another_library_calls_functions(stream):
    calls = []
    Stream.from_handle(stream.handle).callback(lambda: calls.append(1))
    stream.sync()
    assert calls == [1]


# functions of C


def test_functions_of_c_are_called(stream):
    got = []
    ctypes_function = HOST_FUNCTION(got.append)
    cffi_function = ffi.callback("void(void *)", lambda data: got.append(int(ffi.cast("intptr_t", data))))
    stream.callback(ctypes_function, user_data=1234)
    stream.callback(ctypes_function)
    stream.callback(cffi_function, user_data=ffi.cast("void *", 77))
    stream.sync()
    assert got == [1234, None, 77]


def test_a_function_of_a_library_is_called(stream):
    library = ctypes.CDLL(None)
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    library.free.restype, library.free.argtypes = None, [ctypes.c_void_p]
    stream.callback(library.free, user_data=library.malloc(16))
    stream.sync()


def test_bytes_for_a_function_of_c_are_copied(stream):
    got = []
    data = bytearray(b"bytes")
    with Gate(stream) as gate:
        stream.callback(HOST_FUNCTION(lambda address: got.append(ctypes.string_at(address, 5))), user_data=data)
        data[:] = b"other"
        gc.collect()
        gate.open()
        stream.sync()
    assert got == [b"bytes"]


@pytest.mark.parametrize(
    ("function", "data", "error", "text"),
    [
        (5, None, TypeError, "must be callable, not int"),
        (fail, 5, ValueError, r"functools\.partial"),
        (ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda _: 0), None, TypeError, "returns c_int"),
        (ctypes.CFUNCTYPE(None)(lambda: None), None, TypeError, "are none"),
        (HOST_FUNCTION(), None, ValueError, "NULL"),
        (ffi.cast("void(*)(int)", 1), None, TypeError, r"must be a void\(\*\)\(void \*\)"),
        (HOST_FUNCTION(lambda _: None), 1.5, TypeError, "user_data must be an address or bytes-like, not float"),
        (HOST_FUNCTION(lambda _: None), memoryview(numpy.array([None, 1])), TypeError, "references to Python objects"),
    ],
    ids=[
        *("no function", "data for Python", "another result", "no argument", "NULL", "another argument", "odd data"),
        "objects",
    ],
)
def test_what_is_no_host_function_is_refused(stream, function, data, error, text):
    with pytest.raises(error, match=text):
        stream.callback(function, user_data=data)


def test_user_data_is_named(stream):
    with pytest.raises(TypeError, match="positional"):
        stream.callback(HOST_FUNCTION(lambda _: None), 5)


def test_a_closed_stream_takes_no_function(device):
    stream = device.create_stream()
    stream.close()
    owner, seen = watched()
    with pytest.raises(RuntimeError, match="this Stream is closed"):
        stream.callback(lambda owner=owner: None)
    del owner
    assert eventually(lambda: seen() is None)


# how long they are kept


@pytest.mark.parametrize("wrap", [lambda function: function, HOST_FUNCTION], ids=["Python", "C"])
def test_a_function_is_kept_until_it_was_called(stream, wrap):
    owner, seen = watched()
    with Gate(stream) as gate:
        stream.callback(wrap(lambda *_, owner=owner: None))
        del owner
        assert stays(lambda: seen() is not None)
        gate.open()
        stream.sync()
        assert eventually(lambda: seen() is None)


@pytest.mark.parametrize("then", [Stream.sync, lambda stream: stream.callback(int)], ids=["sync", "next callback"])
def test_it_is_let_go_of_when_the_package_next_looks(stream, then):
    owner, seen = watched()
    with no_release_thread():
        stream.callback(lambda owner=owner: None)
        del owner
        event = stream.record()
        while not event.is_done:
            time.sleep(0.001)
        collect()
        assert seen() is not None
        then(stream)
        collect()
        assert seen() is None


def test_a_stream_may_be_closed_before_its_function_is_called(device, stream):
    calls = []
    closed = device.create_stream()
    with Gate(stream):
        closed.wait(stream)
        closed.callback(lambda: calls.append(1))
        closed.close()
        gc.collect()
    assert eventually(lambda: calls == [1])


def test_nothing_is_let_go_of_in_the_thread_that_called_the_function(stream):
    owner = Owner()
    threads: dict[str, int] = {}
    weakref.finalize(owner, lambda: threads.update(released=threading.get_ident()))
    stream.callback(lambda owner=owner: threads.update(called=threading.get_ident()))
    del owner
    stream.sync()
    assert eventually(lambda: "released" in threads)
    assert threads["released"] != threads["called"]


@pytest.mark.parametrize("wrap", [lambda function: function, HOST_FUNCTION], ids=["Python", "C"])
def test_what_is_collected_in_a_function_is_destroyed_later_without_a_warning(device, stream, wrap):
    made = device.create_event(), device.allocate(SIZE, stream)
    cycle = [made]
    cycle.append(cycle)
    del made, cycle
    stream.callback(wrap(lambda *_: gc.collect() and None))
    stream.sync()


def test_many_functions_leave_nothing(stream):
    calls = []
    for _ in range(2000):
        stream.callback(lambda: calls.append(1))
    stream.sync()
    assert len(calls) == 2000


# what they may not do


@pytest.mark.simulator_only("a driver may also refuse by another error, or wait for ever")
def test_the_driver_may_not_be_called_in_a_function(device, stream, other):
    stream.callback(lambda: other.sync())
    stream.callback(lambda: other.callback(fail))
    stream.callback(lambda: device.create_stream())
    with pytest.raises(ExceptionGroup) as caught:
        stream.sync()
    assert [error.name for error in caught.value.exceptions] == ["CUDA_ERROR_NOT_PERMITTED"] * 3
    assert all("function that the driver calls" in str(error) for error in caught.value.exceptions)
    assert caught.value.exceptions[0].call == "cuStreamSynchronize"


# capture


def begin(stream: Stream) -> None:
    """Begin to capture a stream, as another library does."""
    assert lib.cuStreamBeginCapture(stream.cdata, lib.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) == 0


def end(stream: Stream) -> int:
    """End a capture and return the graph's handle."""
    graph = ffi.new("CUgraph *")
    assert lib.cuStreamEndCapture(stream.cdata, graph) == 0
    return graph[0]


def run_twice(handle: int, stream: Stream) -> None:
    """Run a captured graph twice, and destroy it."""
    executable = ffi.new("CUgraphExec *")
    assert lib.cuGraphInstantiate(executable, handle, 0) == 0
    assert lib.cuGraphDestroy(handle) == 0
    for _ in range(2):
        assert lib.cuGraphLaunch(executable[0], stream.cdata) == 0
    try:
        stream.sync()
    finally:
        assert lib.cuGraphExecDestroy(executable[0]) == 0


def test_in_a_stream_that_is_captured_it_becomes_a_node(stream):
    calls, got = [], []
    begin(stream)
    stream.callback(lambda: calls.append(1))
    stream.callback(HOST_FUNCTION(lambda address: got.append(ctypes.string_at(address, 5))), user_data=b"bytes")
    handle = end(stream)
    gc.collect()
    stream.sync()
    assert calls == []
    run_twice(handle, stream)
    assert calls == [1, 1]
    assert got == [b"bytes", b"bytes"]


def test_in_the_stream_of_a_builder_it_becomes_a_node(device, stream):
    calls = []

    def function() -> None:
        calls.append(1)

    with stream.create_graph_builder() as builder:
        builder.begin_building()
        stream.callback(function)
        builder.callback(function)
        builder.end_building()
        assert [node.callback for node in builder.graph_definition.nodes()] == [function, function]
        with builder.complete() as executable:
            executable.launch(stream)
            stream.sync()
    assert calls == [1, 1]


def test_the_captured_graph_keeps_the_function(stream):
    owner, seen = watched()
    begin(stream)
    stream.callback(lambda owner=owner: None)
    del owner
    handle = end(stream)
    assert stays(lambda: seen() is not None)
    run_twice(handle, stream)
    assert eventually(lambda: seen() is None)


def test_what_a_captured_function_raises_is_raised_by_the_stream_it_runs_in(stream, other):
    begin(stream)
    stream.callback(fail)
    handle = end(stream)
    with pytest.raises(ExceptionGroup) as caught:
        run_twice(handle, other)
    assert len(caught.value.exceptions) == 2
    stream.sync()


def test_a_capture_that_has_failed_takes_no_function(stream):
    owner, seen = watched()
    begin(stream)
    assert lib.cuStreamSynchronize(stream.cdata) != 0
    with pytest.raises(CUDAError) as caught:
        stream.callback(lambda owner=owner: None)
    assert caught.value.name == "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
    del owner, caught
    graph = ffi.new("CUgraph *")
    assert lib.cuStreamEndCapture(stream.cdata, graph) != 0
    assert eventually(lambda: seen() is None)


# threads


@pytest.mark.skipif(not hasattr(ctypes, "PyDLL"), reason="this interpreter has no ctypes.PyDLL")
def test_functions_run_while_threads_have_the_gil(stream):
    """Threads sleep in C with the GIL: functions wait for it, and go on."""
    calls = []
    nap = ctypes.PyDLL(None).usleep
    done = threading.Event()

    def hold() -> None:
        while not done.is_set():
            nap(2000)

    threads = [threading.Thread(target=hold) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        stream.callback(lambda: calls.append(1))
    stream.sync()
    done.set()
    for thread in threads:
        thread.join()
    assert len(calls) == 20


def test_a_function_may_take_a_lock_that_the_waiting_thread_had(stream):
    calls = []
    lock = threading.Lock()

    def take() -> None:
        with lock:
            calls.append(1)

    with lock:
        for _ in range(10):
            stream.callback(take)
    stream.sync()
    assert len(calls) == 10


def test_waiting_lets_other_threads_and_the_function_run(stream):
    gate = threading.Event()

    class Opening:
        """Opens what the stream waits for."""

        open = gate.set

    stream.callback(lambda: gate.wait(60) and None)
    opened_before(Opening, stream.sync)


# graphs and streams


def test_graphs_and_streams_agree(stream):
    """The same function with the same data does the same in both."""
    got = []
    function = HOST_FUNCTION(lambda address: got.append(ctypes.string_at(address, 2)))
    stream.callback(function, user_data=b"ab")
    with GraphDefinition() as graph:
        graph.callback(function, user_data=b"ab")
        with graph.instantiate() as executable:
            executable.launch(stream)
            stream.sync()
    assert got == [b"ab", b"ab"]
