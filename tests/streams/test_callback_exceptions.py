# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What host functions of streams raise, who raises it again, and the end of the process."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator

import pytest
from graphs import Owner, eventually, watched
from helpers import FREE_THREADED, in_thread, in_threads, output_of, run_python, soon

from cuda_core_cffi import LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM, Device, Stream, ffi, lib
from cuda_core_cffi._lifetime.references import flush_releases
from cuda_core_cffi._streams.callbacks import MOST_RAISED

BEFORE_ALL = """
from cuda_core_cffi import Device
device = Device(0)
device.set_current()
stream = device.create_stream()
"""


class Unlikely(Exception):
    """Raised by host functions of these tests."""


def fail() -> None:
    """Raise."""
    raise Unlikely("in a host function")


def closed_handle(stream: Stream) -> int:
    """Return the handle that a closed stream had."""
    return int(lib.ccc_identity(stream._c_handle))


@pytest.fixture
def other(device: Device) -> Iterator[Stream]:
    """Return another stream."""
    with device.create_stream() as other:
        yield other
        other.sync()


# what they raise

WAITS: dict[str, Callable[[Device, Stream], None]] = {
    "stream": lambda device, stream: stream.sync(),
    "stream, wrapped": lambda device, stream: Stream.from_handle(stream.handle).sync(),
    "new event": lambda device, stream: stream.record().sync(),
    "event": lambda device, stream: stream.record(device.create_event()).sync(),
    "device": lambda device, stream: device.sync(),
}


@pytest.mark.parametrize("wait", WAITS)
def test_what_it_raises_is_raised_by_the_next_call_that_waits_for_the_stream(device, stream, wait):
    stream.callback(fail)
    with pytest.raises(Unlikely, match="in a host function") as caught:
        WAITS[wait](device, stream)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "fail"
    WAITS[wait](device, stream)


def test_a_wait_for_another_stream_does_not_raise_it(device, stream, other):
    with device.create_event() as event:
        other.record(event)
        stream.callback(fail)
        other.wait(stream)
        other.sync()
        event.sync()
        other.record().sync()
        LEGACY_DEFAULT_STREAM.sync()
        with pytest.raises(Unlikely):
            stream.sync()


def test_an_event_is_of_the_stream_that_recorded_it_last(device, stream, other):
    with device.create_event() as event:
        stream.record(event)
        stream.callback(fail)
        other.record(event)
        stream.wait(event)
        event.sync()
        stream.record(event)
        with pytest.raises(Unlikely):
            event.sync()


@pytest.mark.parametrize("default", [LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM], ids=["legacy", "per thread"])
def test_what_a_default_stream_called_is_raised_by_its_sync(device, stream, default):
    default.callback(fail)
    stream.sync()
    with pytest.raises(Unlikely):
        default.sync()


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="nothing is counted: all waits for a collection")
@pytest.mark.skipif(FREE_THREADED, reason="what a thread has made waits for that thread to run Python, or a collection")
def test_an_exception_that_was_told_is_in_no_cycle(stream):
    owner, seen = watched()

    def function(owner: Owner = owner) -> None:
        raise Unlikely

    stream.callback(function)
    del owner, function
    gc.collect()
    gc.disable()
    try:
        with contextlib.suppress(Unlikely):
            stream.sync()
        flush_releases()
        assert seen() is None
    finally:
        gc.enable()


def test_each_thread_has_a_default_stream_of_its_own(device):
    def wait() -> None:
        device.set_current()
        PER_THREAD_DEFAULT_STREAM.sync()

    PER_THREAD_DEFAULT_STREAM.callback(fail)
    in_thread(wait)
    with pytest.raises(Unlikely):
        PER_THREAD_DEFAULT_STREAM.sync()


def test_what_the_function_of_a_graph_raises_any_wait_raises(graph, stream, other):
    graph.callback(fail)
    with graph.instantiate() as executable:
        executable.launch(stream)
        other.wait(stream)
        with pytest.raises(Unlikely):
            other.sync()
        stream.sync()


def test_what_a_closed_stream_called_the_device_raises(device):
    with device.create_stream() as stream:
        stream.callback(fail)
    with pytest.raises(Unlikely):
        device.sync()


@pytest.mark.parametrize("where", ["closed streams", "a stream", "a graph"])
def test_the_oldest_exceptions_are_shown_if_nobody_waits_for_many(device, stream, graph, monkeypatch, where):
    shown: list[int] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: shown.append(unraisable.exc_value.args[0]))
    numbers = iter(range(MOST_RAISED + 5))

    def count() -> None:
        raise Unlikely(next(numbers))

    def work(done: Stream) -> None:
        with done.record() as event:
            while not event.is_done:
                time.sleep(0)

    if where == "a graph":
        graph.callback(count)
    with graph.instantiate() as executable:
        for _ in range(MOST_RAISED + 5):
            if where == "a graph":
                executable.launch(stream)
                work(stream)
            elif where == "a stream":
                stream.callback(count)
                work(stream)
            else:
                with device.create_stream() as closed:
                    closed.callback(count)
                    work(closed)
    # PyPy shows them when it collects, in whichever thread is there first
    assert soon(lambda: sorted(shown) == [0, 1, 2, 3, 4])
    with pytest.raises(ExceptionGroup) as raised:
        device.sync()
    assert [error.args[0] for error in raised.value.exceptions] == list(range(5, MOST_RAISED + 5))
    assert sorted(shown) == [0, 1, 2, 3, 4]


def test_streams_are_told_apart_by_a_number_that_is_not_given_again(stream, other):
    """The simulated driver gives no handle again, so what follows tells nothing there."""
    number = ffi.new("unsigned long long *")
    assert lib.cuStreamGetId(stream.cdata, number) == 0
    source = lib.ccc_source(stream._c_handle)
    assert source == 2 * number[0] + 3
    assert source == lib.ccc_source(Stream.from_handle(stream.handle)._c_handle)
    assert source != lib.ccc_source(other._c_handle)


def test_no_later_stream_raises_what_a_closed_one_called(device):
    """The driver gives handles again, and the system the identities of threads."""
    with device.create_stream() as closed:
        closed.callback(fail)
        event = closed.record()
        while not event.is_done:
            time.sleep(0.001)
    streams = []
    while len(streams) < 50 and (not streams or streams[-1].handle != closed_handle(closed)):
        streams.append(device.create_stream())
    for stream in streams:
        stream.sync()
        stream.record().sync()
        Stream.from_handle(stream.handle).sync()
        stream.close()
    with pytest.raises(Unlikely):
        event.sync()
    event.close()


def test_no_later_thread_raises_what_the_default_stream_of_one_that_ended_called(device):
    def call() -> None:
        device.set_current()
        PER_THREAD_DEFAULT_STREAM.callback(fail)
        with PER_THREAD_DEFAULT_STREAM.record() as event:
            while not event.is_done:
                time.sleep(0.001)

    def wait() -> None:
        device.set_current()
        PER_THREAD_DEFAULT_STREAM.sync()

    in_thread(call)
    for _ in range(5):
        in_thread(wait)
    with pytest.raises(Unlikely):
        device.sync()


def test_several_exceptions_come_as_a_group_in_their_order(stream):
    for number in range(3):
        stream.callback(lambda number=number: int(f"number {number}"))
    with pytest.raises(ExceptionGroup, match="several host callbacks raised") as caught:
        stream.sync()
    assert [str(error)[-10:] for error in caught.value.exceptions] == [f"'number {n}'" for n in range(3)]
    stream.sync()


def test_what_follows_a_function_that_raises_runs(stream):
    calls = []
    stream.callback(fail)
    stream.callback(lambda: calls.append(1))
    with pytest.raises(Unlikely):
        stream.sync()
    assert calls == [1]


def test_an_exit_in_a_function_is_no_exit(stream):
    stream.callback(lambda: exit(3))
    with pytest.raises(SystemExit):
        stream.sync()


def test_an_exception_that_was_told_keeps_nothing(stream):
    owner, seen = watched()

    def function(owner: Owner = owner) -> None:
        raise Unlikely

    stream.callback(function)
    del owner, function
    with pytest.raises(Unlikely) as caught:
        stream.sync()
    del caught
    assert eventually(lambda: seen() is None)


def test_eight_threads_with_a_stream_each_get_what_their_functions_raised(device):
    lock = threading.Lock()
    calls: dict[int, int] = {}

    def work(number: int) -> list[str]:
        device.set_current()
        told = []

        def call(turn: int) -> None:
            with lock:
                calls[number] = calls.get(number, 0) + 1
            raise Unlikely(f"{number} {turn}")

        with device.create_stream() as stream:
            for turn in range(10):
                stream.callback(lambda turn=turn: call(turn))
                stream.callback(gc.collect)
                with stream.record() as event:  # closed: PyPy may keep what a thread raised last, and all that it names
                    try:
                        (event if turn % 2 else stream).sync()
                    except Unlikely as error:
                        told.append(str(error))
        return told

    for number, told in enumerate(in_threads(8, work)):
        assert told == [f"{number} {turn}" for turn in range(10)]
    assert calls == dict.fromkeys(range(8), 10)


# the end of the process


def test_a_process_ends_while_functions_wait_to_be_called():
    """What runs at exit is waited for; nothing is called afterwards."""
    text = output_of(
        BEFORE_ALL
        + """
import ctypes, os, threading, time
begun = threading.Event()
def call(*_):
    os.write(1, b"begin ")
    begun.set()
    time.sleep(0.05)
    os.write(1, b"end ")
for _ in range(50):
    stream.callback(call)
    stream.callback(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(call), user_data=b"bytes")
begun.wait(60)
"""
    )
    turns = len(text.split()) // 2
    assert 1 <= turns < 50
    assert text.split() == ["begin", "end"] * turns


def test_what_nobody_was_told_of_is_told_at_exit():
    done = run_python(
        BEFORE_ALL
        + """
import sys, threading
called = threading.Event()
def first():
    raise RuntimeError("the first")
def second():
    called.set()
    raise RuntimeError("the second")
stream.callback(first)
stream.callback(second)
called.wait(60)
"""
    )
    assert done.returncode == 0, done.stderr
    for text in ("RuntimeError: the first", "RuntimeError: the second", "in first", "in second"):
        assert done.stderr.count(text) == 1, done.stderr


def test_a_graph_that_nobody_waited_for_tells_at_exit():
    done = run_python(
        BEFORE_ALL
        + """
import threading
from cuda_core_cffi.graph import GraphDefinition
called = threading.Event()
graph = GraphDefinition()
graph.callback(called.set).join().callback(lambda: int("x"))
executable = graph.instantiate()
executable.launch(stream)
called.wait(60)
stream.record().close()
while not stream.record().is_done:
    pass
"""
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("ValueError: invalid literal") == 1, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork() here")
def test_a_child_has_neither_functions_under_way_nor_exceptions():
    """Nor does it wait at exit for a thread that is not there: functions registered first run last."""
    text = output_of(
        "import atexit, time\nends = []\natexit.register(lambda: ends and print(time.monotonic() - ends[0] < 4))"
        + BEFORE_ALL
        + """
import os, sys, threading, warnings
from cuda_core_cffi import UnavailableError
warnings.simplefilter("ignore")
running, go_on = threading.Event(), threading.Event()
stream.callback(lambda: int("x"))
stream.callback(lambda: running.set() or go_on.wait(60))
running.wait(60)
pid = os.fork()
if pid == 0:
    try:
        stream.callback(print)
    except UnavailableError as error:
        print("spawn" in str(error), flush=True)
    atexit.register(lambda: ends.append(time.monotonic()))
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
go_on.set()
try:
    stream.sync()
except ValueError:
    print("told")
"""
    )
    assert text == "True\nTrue\ntold"
