# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What several tests need: a Python process of their own, and a way to hold a stream up."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar
from unittest import mock

import pytest

import cuda_core_cffi
from cuda_core_cffi import Stream, ffi, lib, live_objects, system
from cuda_core_cffi._compile.driver_linker import DriverLinker
from cuda_core_cffi._lifetime.pending_calls import run_all_tasks
from cuda_core_cffi.system._events import RegisteredSystemEvents
from cuda_core_cffi.system.exceptions import FunctionNotFoundError, NotSupportedError, UnknownError

T = TypeVar("T")

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUPPORT = pathlib.Path(__file__).resolve().parent
LIMIT = 600  # seconds, for anything that could hang
PYPY = sys.implementation.name == "pypy"
FREE_THREADED = not getattr(sys, "_is_gil_enabled", lambda: True)()


def child_environment(*folders: str, **environment: str | None) -> dict[str, str]:
    """Return the environment of a new Python process, which imports from these folders, and the package under test."""
    tested = str(pathlib.Path(cuda_core_cffi.__file__).parents[1])
    variables = dict(os.environ)
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, [tested, *folders, variables.get("PYTHONPATH")]))
    for name, value in environment.items():
        variables.pop(name, None)
        if value is not None:
            variables[name] = value
    return variables


def run_python(code: str, *arguments: str, **environment: str | None) -> subprocess.CompletedProcess[str]:
    """Run code in a new Python process; an environment variable set to None is removed."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        env=child_environment(**environment),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


def without_comments(source: str) -> str:
    """Return C source without its comments."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", source, flags=re.DOTALL)


def output_of(code: str, *arguments: str, **environment: str | None) -> str:
    """Return what code prints in a new Python process, which must end well and print no errors."""
    done = run_python(code, *arguments, **environment)
    assert (done.returncode, done.stderr) == (0, ""), f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()


def in_thread(work: Callable[[], Any]) -> None:
    """Work in a new thread, where no context is current and no device has been used; raise what it raises."""
    in_threads(1, lambda _: work())


def in_threads(count: int, work: Callable[[int], T]) -> list[T]:
    """Work in new threads, which start at once, each with its number; return what each returned, or raise an error."""
    barrier = threading.Barrier(count, timeout=LIMIT)
    results: dict[int, T] = {}
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            barrier.wait()
            results[number] = work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        del errors[1:]
        raise errors.pop()  # a reference kept here would keep what the traceback refers to
    return [results[number] for number in range(count)]


def collect() -> None:
    """Collect garbage; PyPy runs finalizers some time after. Destroy the objects that wait for an idle device."""
    for _ in range(3):
        gc.collect()
    destroy_idle()


def destroy_idle() -> None:
    """Destroy what waits for the device to be idle, which the release thread does else."""
    end = time.monotonic() + 10
    while lib.ccc_reclaim() and time.monotonic() < end:
        time.sleep(0.001)


def alive() -> dict[str, int]:
    """Return how many driver objects there are of each kind, when those that wait for the device are destroyed."""
    destroy_idle()
    return live_objects()


def collect_and_release() -> None:
    """Collect garbage, and let go of what was kept for objects that are gone, such as tensors of other libraries."""
    collect()
    run_all_tasks()


def soon(reached: Callable[[], object], collecting: bool = PYPY) -> bool:
    """Tell whether something happens while the program sleeps in short steps: within a second, on an idle machine."""
    end = time.monotonic() + 10
    while not reached() and time.monotonic() < end:
        time.sleep(0.001)
        if collecting:
            gc.collect()
    return bool(reached())


def system_events_or_skip(events: Any) -> RegisteredSystemEvents:
    """Register events of the system, or skip where nobody tells NVML of them, as in a virtual machine."""
    try:
        return system.register_events(events)
    except (NotSupportedError, FunctionNotFoundError, UnknownError) as error:  # "unknown" is of driver 580
        pytest.skip(str(error))


def ticks_during(work: Callable[[], object]) -> int:
    """Do some work, and return how often another thread, which wants to run every millisecond, ran meanwhile.

    It runs only while this thread lets go of the interpreter by itself.
    """
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.wait(0.001):
            ticks += 1

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        while not ticks:
            time.sleep(0.001)
        with switch_interval(LIMIT):
            before = ticks
            work()
            return ticks - before
    finally:
        done.set()
        thread.join()


@contextlib.contextmanager
def switch_interval(seconds: float) -> Iterator[None]:
    """Have threads that wait for the GIL ask for it after so many seconds."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextlib.contextmanager
def linked_by_the_driver() -> Iterator[None]:
    """Make new linkers use the driver, as if there were no nvJitLink."""
    choice = mock.patch("cuda_core_cffi._compile.linker._choose_backend", return_value=(DriverLinker(), "for a test"))
    with choice, mock.patch("cuda_core_cffi._compile.linker._told", set()), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the driver links", RuntimeWarning)
        yield


def take_interrupts() -> None:
    """Have a child that is about to start take SIGINT, also where this process ignores it, as under nohup."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextlib.contextmanager
def no_release_thread() -> Iterator[None]:
    """Leave all releasing to the calls that are made."""
    lib.ccc_release_pause()
    try:
        yield
    finally:
        lib.ccc_release_resume()


class Gate:
    """Holds up what follows in a stream until the gate is opened, or the ``with`` block left."""

    def __init__(self, stream: Stream) -> None:
        self._opened = threading.Event()
        self._stream = stream
        self._function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: self._opened.wait(LIMIT) and None)
        address = ctypes.cast(self._function, ctypes.c_void_p).value
        assert lib.cuLaunchHostFunc(stream.cdata, ffi.cast("CUhostFn", address), ffi.NULL) == 0

    def open(self) -> None:
        """Let the stream go on."""
        self._opened.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.open()
        self._stream.sync()  # the driver must not call a function that is gone


def opened_before(gate: Gate, work: Callable[[], object]) -> None:
    """Do what has to wait for the gate, which is opened a little later; fail if it did not wait."""
    order = []
    timer = threading.Timer(0.1, lambda: (order.append("opened"), gate.open()))
    timer.start()
    work()
    order.append("done")
    timer.join()
    assert order == ["opened", "done"]
