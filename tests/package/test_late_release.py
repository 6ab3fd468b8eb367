# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What a program drops without closing it goes soon, although the program makes no call any more.

The release thread sees to that; here nothing but Python runs meanwhile. On PyPy garbage is collected, too.
"""

from __future__ import annotations

import ctypes
import gc
import pathlib
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Iterator

import pytest
from buffers import HostResource
from consumer import Consumer
from graphs import SIZE, Owner, buffers_alive, filling, watched
from helpers import LIMIT, PYPY, Gate, collect, in_thread, output_of, soon

from cuda_core_cffi import (
    Buffer,
    CUDAWarning,
    MemoryResource,
    ffi,
    get_c_api,
    lib,
    live_objects,
    simulator,
)
from cuda_core_cffi._lifetime.host_memory import unfinished
from cuda_core_cffi.graph import GraphDefinition

MANY = 20_000
HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def gone(seen: weakref.ref[Owner], collecting: bool = PYPY) -> bool:
    """Tell whether what is watched goes soon."""
    return soon(lambda: seen() is None, collecting)


@pytest.fixture
def held_up(device) -> Iterator[tuple[object, Gate]]:
    """Return a stream that is held up, and its gate."""
    with device.create_stream() as other, Gate(other) as gate:
        yield other, gate


# graphs


def launched(stream, owner) -> None:
    """Launch a graph with a function that refers to the owner, and drop the graph and its executable."""
    definition = GraphDefinition()
    definition.callback(lambda: owner)
    definition.instantiate().launch(stream)


def test_a_graph_that_has_run_and_was_dropped(stream):
    owner, seen = watched()
    launched(stream, owner)
    stream.sync()
    del owner
    assert gone(seen)


def test_a_graph_that_was_dropped_while_it_runs(held_up):
    stream, gate = held_up
    owner, seen = watched()
    launched(stream, owner)
    del owner
    gc.collect()
    time.sleep(0.2)
    assert seen() is not None
    gate.open()
    assert gone(seen)


def test_a_definition_that_was_dropped_before_it_ran(device):
    owner, seen = watched()
    GraphDefinition().callback(lambda owner=owner: None)
    del owner
    assert gone(seen)


def test_what_an_update_of_an_executable_replaces(held_up, memory):
    stream, gate = held_up
    owner, seen = watched()
    with GraphDefinition() as graph:
        node = graph.memset(memory[0], 1, SIZE)
        with graph.instantiate() as executable:
            executable[node].update(dst=memory[1].handle, value=1, width=SIZE, dst_owner=owner)
            executable.launch(stream)
            executable[node].update(dst=memory[0], value=1, width=SIZE)
            del owner
            gate.open()
            assert gone(seen)
            stream.sync()


def test_what_the_driver_has_kept(device, stream, buffers_before):
    """The driver counts what clones use; it tells when that is gone in a thread of its own."""
    graph, _ = filling(device, stream)
    owner, seen = watched()
    graph.callback(lambda owner=owner: None)
    clone = graph.clone()
    clone.instantiate().launch(stream)
    stream.sync()
    del owner, graph, clone, _
    gc.collect()
    assert gone(seen)
    assert soon(lambda: buffers_alive() == buffers_before)


def test_a_launch_that_was_captured(stream):
    owner, seen = watched()
    definition = GraphDefinition()
    definition.callback(lambda owner=owner: None)
    builder = stream.create_graph_builder().begin_building()
    builder.embed(definition)
    builder.callback(lambda owner=owner: None)
    executable = builder.end_building().complete()
    executable.launch(stream)
    stream.sync()
    del owner, definition, builder, executable
    gc.collect()
    assert gone(seen)


def test_a_buffer_that_was_closed_in_a_capture_which_is_dropped(device, buffers_before):
    stream = device.create_stream()
    buffer = device.allocate(SIZE, stream)
    builder = stream.create_graph_builder().begin_building()
    buffer.close()
    time.sleep(0.05)
    assert buffers_alive() == buffers_before + 1
    del builder
    assert soon(lambda: buffers_alive() == buffers_before)
    stream.close()


def test_a_buffer_that_was_closed_in_a_capture_of_another_library(device, stream, builder, buffers_before):
    """It goes back when that capture is over, although one of this package goes on."""
    buffer, graph = device.allocate(SIZE, stream), ffi.new("CUgraph *")
    assert lib.cuStreamBeginCapture(stream.cdata, lib.CU_STREAM_CAPTURE_MODE_RELAXED) == 0
    buffer.close()
    time.sleep(0.05)
    assert buffers_alive() == buffers_before + 1
    assert lib.cuStreamEndCapture(stream.cdata, graph) == 0
    assert soon(lambda: buffers_alive() == buffers_before)
    assert lib.cuGraphDestroy(graph[0]) == 0


def test_looking_for_it_does_not_break_captures(device, held_up):
    """The release thread queries and destroys while another thread captures in the strictest mode."""
    stream, gate = held_up
    owner, seen = watched()
    launched(stream, owner)
    del owner
    collect()
    with device.create_stream() as captured:
        assert lib.cuStreamBeginCapture(captured.cdata, lib.CU_STREAM_CAPTURE_MODE_GLOBAL) == 0
        time.sleep(0.1)
        gate.open()
        reached = gone(seen)
        graph = ffi.new("CUgraph *")
        assert lib.cuStreamEndCapture(captured.cdata, graph) == 0
        assert lib.cuGraphDestroy(graph[0]) == 0
    assert reached


# streams


@pytest.mark.parametrize("wrap", [lambda function: function, HOST_FUNCTION], ids=["Python", "C"])
def test_a_function_that_a_stream_has_called(stream, wrap):
    owner, seen = watched()
    stream.callback(wrap(lambda *_, owner=owner: None))
    del owner
    assert gone(seen, collecting=PYPY or wrap is HOST_FUNCTION)  # functions of ctypes refer to themselves


def test_what_is_collected_in_a_host_function(device, stream):
    before = live_objects()
    cycle = [device.create_event(), device.create_stream()]
    cycle.append(cycle)
    del cycle
    stream.callback(lambda: gc.collect() and None)
    assert soon(lambda: live_objects() == before)


def test_memory_of_a_resource_in_python_that_is_dropped_in_a_host_function(stream, memory):
    freed = []

    class Resource(MemoryResource):
        def deallocate(self, ptr, size, stream=None):
            freed.append(ptr)

    kept = [Buffer.from_handle(memory[0].handle, SIZE, mr=Resource()) for _ in range(100)]
    stream.callback(lambda: kept.clear() or (gc.collect() and None))
    assert soon(lambda: len(freed) == 100)


@pytest.mark.simulator_only("hardware may read ordinary memory during the call")
def test_the_source_of_a_copy(device, held_up):
    stream, gate = held_up
    with device.allocate(1 << 20, stream) as buffer:
        for _ in range(5):
            buffer.copy_from(b"1" * (1 << 20), stream=stream)
        assert len(unfinished) == 5
        gate.open()
        assert soon(lambda: not unfinished)


@pytest.mark.simulator_only("hardware may read ordinary memory during the call")
def test_sources_of_copies_in_several_streams(device, held_up):
    stream, gate = held_up
    size = 1 << 20
    with (
        device.create_stream() as other,
        Gate(other) as second,
        device.allocate(size, stream) as buffer,
        device.allocate(size, other) as another,
    ):
        buffer.copy_from(b"1" * size, stream=stream)
        another.copy_from(b"1" * size, stream=other)
        second.open()
        other.sync()
        assert len(unfinished) == 1
        gate.open()
        assert soon(lambda: not unfinished)


# tensors


def delete_in_c(consumer: Consumer) -> None:
    """Delete a tensor in a thread without the GIL, as another library may."""
    pointer = int(ffi.cast("uintptr_t", consumer.managed.deleter))
    delete = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(pointer)  # which lets go of the GIL
    in_thread(lambda: delete(consumer.address))


def test_a_tensor_of_memory_that_python_gives_back(device):
    mr = HostResource()
    consumer = Consumer(mr.allocate(SIZE).__dlpack__())
    gc.collect()
    assert len(mr.live) == 1
    delete_in_c(consumer)
    assert soon(lambda: not mr.live)


@pytest.mark.simulator_only("only the simulated driver fails on request")
def test_a_failure_of_cleanup_where_a_tensor_is_deleted(device, stream):
    with device.allocate(SIZE, stream) as buffer:
        address, consumer = buffer.handle, Consumer(buffer.__dlpack__(stream=-1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with simulator.fail("cuMemFreeAsync", "CUDA_ERROR_UNKNOWN"):
            delete_in_c(consumer)
        assert soon(lambda: caught)
    assert [warning.category for warning in caught] == [CUDAWarning]
    assert "cuMemFreeAsync" in str(caught[0].message)
    simulator.clear_reports()  # of the memory that was not freed
    assert lib.cuMemFreeAsync(address, stream.cdata) == 0


@pytest.mark.simulator_only("only the simulated driver fails on request")
def test_a_failure_of_cleanup_in_code_of_another_library(device):
    stream = device.create_stream()
    handle, c_handle = stream.cdata, stream.c_handle
    api = ctypes.cast(get_c_api(), ctypes.POINTER(ctypes.c_void_p))
    retain = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(api[4])
    release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(api[5])
    assert retain(c_handle) == 1
    stream.close()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with simulator.fail("cuStreamDestroy", "CUDA_ERROR_UNKNOWN"):
            release(c_handle)
        assert soon(lambda: caught)
    assert [warning.category for warning in caught] == [CUDAWarning]
    assert lib.cuStreamDestroy(handle) == 0


# many at once, among threads


def test_many_at_once(stream):
    count = lib.ccc_refs_count()
    owner, seen = watched()
    graph = GraphDefinition()
    for _ in range(MANY):
        graph.callback(lambda owner=owner: None)
    for _ in range(5):  # PyPy keeps them all until it collects, and a GPU takes a second for each
        graph.instantiate()
    del owner, graph, _
    assert gone(seen)
    assert soon(lambda: lib.ccc_refs_count() <= count)  # less: what an earlier test left has gone too


def test_it_runs_beside_calls_of_other_threads(device, stream):
    """Graphs and functions come and go in threads that flush releases at the same time."""
    count = lib.ccc_refs_count()
    end = time.monotonic() + 1
    seen = []

    def work() -> None:
        device.set_current()
        with device.create_stream() as own:
            while time.monotonic() < end:
                owner, reference = watched()
                seen.append(reference)
                launched(own, owner)
                own.callback(lambda owner=owner: None)
                if len(seen) % 7 == 0:
                    own.sync()
                if len(seen) % 5 == 0:
                    time.sleep(0.006)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert soon(lambda: all(reference() is None for reference in seen))
    assert soon(lambda: lib.ccc_refs_count() == count)


def test_an_error_there_goes_to_the_hook(stream, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: told.append(unraisable.exc_value))

    class Bad:
        def __del__(self):
            raise ZeroDivisionError

    bad = Bad()
    stream.callback(lambda bad=bad: None)
    del bad
    assert soon(lambda: told)
    assert [type(error) for error in told] == [ZeroDivisionError]
    owner, seen = watched()
    stream.callback(lambda owner=owner: None)
    del owner
    assert gone(seen)


# the thread

START = """
import ctypes, gc, os, pathlib, sys, threading, time, warnings, weakref
from cuda_core_cffi import Device, ffi, lib
from cuda_core_cffi.graph import GraphDefinition

warnings.simplefilter("ignore")  # of forks
device = Device(0)
device.set_current()
stream = device.create_stream()

class Owner:
    pass

def names():
    return [path.read_text().strip() for path in pathlib.Path("/proc/self/task").glob("*/comm")]

def hold_up(seconds):
    global function
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: time.sleep(seconds))
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert lib.cuLaunchHostFunc(stream.cdata, ffi.cast("CUhostFn", address), ffi.NULL) == 0

def launched(call=lambda: None):
    definition = GraphDefinition()
    definition.callback(call)
    definition.instantiate().launch(stream)

def wait(reached):
    end = time.monotonic() + 10
    while not reached() and time.monotonic() < end:
        time.sleep(0.001)
        if sys.implementation.name == "pypy":
            gc.collect()
    return reached()
"""
NEEDS_PROC = pytest.mark.skipif(not pathlib.Path("/proc/self/task").exists(), reason="threads are counted in /proc")


@NEEDS_PROC
def test_programs_that_never_need_the_thread_have_none():
    text = output_of(
        START
        + """
with device.allocate(64, stream) as buffer, device.create_event() as event, GraphDefinition() as graph:
    buffer.fill(1, stream=stream)
    stream.record(event)
    executable = graph.instantiate()
    executable.launch(stream)
    stream.sync()
    executable.close()
print("ccc-release" in names())
launched()
stream.sync()
gc.collect()
print(wait(lambda: "ccc-release" in names()))
"""
    )
    assert text == "False\nTrue"


@NEEDS_PROC
def test_the_thread_sleeps_when_there_is_nothing_to_do():
    text = output_of(
        START
        + """
def switches():
    for path in pathlib.Path("/proc/self/task").iterdir():
        if (path / "comm").read_text().strip() == "ccc-release":
            lines = (path / "status").read_text().splitlines()
            return sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)

hold_up(0.5)
launched()
gc.collect()
time.sleep(0.3)
first = switches()  # while it waits for work
print(0 < first < 60)
stream.sync()
wait(lambda: lib.ccc_refs_count() == 0)
time.sleep(0.3)
before = switches()
time.sleep(0.5)
print(switches() - before)
"""
    )
    assert text == "True\n0"


@pytest.mark.parametrize(
    "ending",
    [
        "",
        "sys.exit(0)",
        "gc.collect(); time.sleep(0.02)",
        "gc.collect(); stream.sync()",
        "threading.Thread(target=lambda: time.sleep(0.3)).start()",
        "threading.Thread(target=lambda: time.sleep(10), daemon=True).start()",
    ],
)
def test_at_exit_with_work_under_way(ending):
    text = output_of(
        START
        + f"""
hold_up(0.3)
for _ in range(50):
    launched()
buffer = device.allocate(1 << 20, stream)
buffer.copy_from(b"1" * (1 << 20), stream=stream)
print("end")
{ending}
"""
    )
    assert text == "end"


def test_at_exit_a_finalizer_that_the_thread_runs_is_waited_for():
    text = output_of(
        START
        + """
import atexit

class Slow:
    def __del__(self):
        began.set()
        time.sleep(0.3)
        print("released", flush=True)

began = threading.Event()
slow = Slow()
stream.callback(lambda slow=slow: None)
del slow
wait(began.is_set)
"""
    )
    assert text == "released"


def test_at_exit_while_much_is_released():
    """A program may end at any moment."""
    text = output_of(
        START
        + """
import subprocess
code = sys.argv[1]
children = [subprocess.Popen([sys.executable, "-c", code, str(number / 200)]) for number in range(8)]
print([child.wait() for child in children] == [0] * len(children))
""",
        START
        + """
graph = GraphDefinition()
for _ in range(3000):
    graph.callback(lambda owner=Owner(): None)
del graph, _
gc.collect()
time.sleep(float(sys.argv[1]))
""",
    )
    assert text == "True"


FORK = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # CPython 3.12 warns of forks where there are threads

def child(work):
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        print(work(), flush=True)
        sys.exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
NEEDS_FORK = pytest.mark.skipif(not hasattr(sys.modules["os"], "fork"), reason="there is no fork() here")


@NEEDS_FORK
@NEEDS_PROC
@pytest.mark.parametrize("before", ["", "time.sleep(0.05)", "stream.sync(); time.sleep(0.3)"])
def test_a_child_of_fork_has_no_such_thread(before):
    text = output_of(
        START
        + FORK
        + f"""
owner = Owner()
seen = weakref.ref(owner)
hold_up(0.2)
launched(lambda owner=owner: None)
del owner
gc.collect()
{before}
child(lambda: "ccc-release" in names())
print(wait(lambda: seen() is None))
"""
    )
    assert text == "False\n0\nTrue"


@NEEDS_FORK
def test_a_child_of_fork_starts_a_thread_of_its_own():
    """Of a process that has not used the driver: there, tensors of a resource in Python are what can be released."""
    text = output_of(
        FORK
        + """
import os, sys, time
import numpy
from cuda_core_cffi import Buffer, MemoryResource

class Resource(MemoryResource):
    is_device_accessible, is_host_accessible, device_id = False, True, -1
    freed = 0
    def deallocate(self, ptr, size, stream=None):
        Resource.freed += 1

memory = numpy.zeros(64, numpy.int8)

def use():
    array = numpy.from_dlpack(Buffer.from_handle(memory.ctypes.data, 64, mr=Resource()))
    before = Resource.freed
    del array
    end = time.monotonic() + 10
    while Resource.freed == before and time.monotonic() < end:
        time.sleep(0.001)
        __import__("gc").collect()
    return Resource.freed

print(use())
child(use)
print(use())
"""
    )
    assert text == "1\n2\n0\n2"
