# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Exceptions between any two lines of the package, as signal handlers raise them: a program that tests run.

    python tests/support/interruptions.py SCENARIO
    python tests/support/interruptions.py storm

Does the work of a scenario again and again, with an exception before the first line of the package, the second, and so
on, until the work ends without one. After each time streams, captures and buffers have to work. In a storm, a timer
interrupts all scenarios in turn, wherever it comes.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import itertools
import linecache
import os
import pathlib
import random
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from helpers import PYPY, SUPPORT, run_python
from scenarios import PTX
from virtual_memory import UNIT, reserve

import cuda_core_cffi
from cuda_core_cffi import Buffer, CUDAError, Device, LaunchConfig, ObjectCode, Stream, VirtualMemoryResource
from cuda_core_cffi.graph import GraphBuilder, GraphDefinition

PACKAGE = str(pathlib.Path(cuda_core_cffi.__file__).parent)
PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); import interruptions; interruptions.main(sys.argv[2])"
SIZE = 1024
STEP = 3 if PYPY else 1  # lines from one interruption to the next; PyPy traces slowly
ROUNDS = 300  # of a storm


class Interruption(BaseException):
    """Raised between two lines."""


def interrupt(work: Callable[[], object], number: int) -> bool:
    """Do some work, with an exception before one line of the package; return whether there were as many lines."""
    left = number
    entered: set[tuple[FrameType, int]] = set()

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal left
        name, line = frame.f_code.co_filename, frame.f_lineno
        if not name.startswith(PACKAGE):
            return None
        if event != "line":
            return trace
        if linecache.getline(name, line).lstrip().startswith("with "):
            if (frame, line) in entered:  # left again: an interpreter looks for signals when that is done
                return trace
            entered.add((frame, line))
        left -= 1
        if left == 0:
            raise Interruption
        return trace

    sys.settrace(trace)
    try:
        work()
    except Interruption:
        pass
    finally:
        sys.settrace(None)
        entered.clear()
    return left <= 0


class Storm:
    """Interrupts work by signals, each some time after the work began."""

    def __init__(self) -> None:
        self.armed = False
        self.random = random.Random(1)
        signal.signal(signal.SIGALRM, self.handle)

    def handle(self, number: int, frame: object) -> None:
        """Interrupt the work, unless it has ended since the signal came."""
        if self.armed:
            self.armed = False
            raise Interruption

    def interrupt(self, work: Callable[[], object], longest: float) -> bool:
        """Do some work, with an exception within some seconds; return whether it came."""
        self.armed = True
        try:
            signal.setitimer(signal.ITIMER_REAL, self.random.uniform(1e-6, longest))
            work()
            self.armed = False
        except Interruption:
            return True
        finally:
            self.armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
        return False


class World:
    """The objects that the scenarios use."""

    def __init__(self) -> None:
        self.device = Device()
        self.device.set_current()
        self.stream = self.device.create_stream()
        self.memory = self.device.allocate(SIZE, self.stream)
        self.kernel = ObjectCode.from_ptx(PTX).get_kernel("store")
        self.virtual = VirtualMemoryResource(self.device)
        self.check()

    def building(self) -> GraphBuilder:
        """Return a builder that captures the stream."""
        return self.stream.create_graph_builder().begin_building()

    def child(self) -> GraphDefinition:
        """Return a graph with another one inside."""
        with GraphDefinition() as innermost:
            innermost.memset(self.memory, 3, SIZE)
            child = GraphDefinition()
            child.embed(innermost)
        return child

    def check(self) -> None:
        """See that nothing is captured any more, and that the stream can be."""
        self.device.sync()
        with self.building() as builder:
            self.memory.fill(1, stream=builder)
            with builder.end_building().complete() as graph:
                graph.launch(self.stream)
                self.stream.sync()
        assert content(self.memory, self.stream, SIZE) == b"\1" * SIZE


def content(buffer: Buffer, stream: Stream, size: int) -> bytes:
    """Return the first bytes of a buffer."""
    out = bytearray(buffer.size)
    buffer.copy_to(out, stream=stream)
    stream.sync()
    return bytes(out[:size])


@contextlib.contextmanager
def begin_building(w: World) -> Any:
    with w.stream.create_graph_builder() as builder:
        yield builder.begin_building
        w.memory.fill(2, stream=w.stream)  # into the capture, if there is one


@contextlib.contextmanager
def begin_building_again(w: World) -> Any:
    with w.stream.create_graph_builder() as builder:
        yield builder.begin_building
        with contextlib.suppress(RuntimeError):  # it has begun, or was given up
            builder.begin_building()
        with contextlib.suppress(RuntimeError, CUDAError):
            builder.end_building()
        w.stream.sync()


@contextlib.contextmanager
def begin_a_body(w: World) -> Any:
    with w.building() as builder, builder.if_then(builder.create_condition(1)) as body:
        yield body.begin_building
        w.memory.fill(2, stream=body.stream)


@contextlib.contextmanager
def end_building(w: World) -> Any:
    with w.building() as builder:
        w.memory.fill(2, stream=builder)
        yield builder.end_building
        with contextlib.suppress(RuntimeError, CUDAError):
            builder.end_building()
        w.stream.sync()


@contextlib.contextmanager
def end_with_a_body(w: World) -> Any:
    with w.building() as builder, builder.if_then(builder.create_condition(1)) as body:
        w.memory.fill(2, stream=body.begin_building())
        yield builder.end_building


@contextlib.contextmanager
def close(w: World) -> Any:
    builder = w.building()
    with builder.if_then(builder.create_condition(1)) as body:
        w.memory.fill(2, stream=body.begin_building())
        yield builder.close
        builder.close()
        w.device.sync()  # although there is a reference to the builder


@contextlib.contextmanager
def split(w: World) -> Any:
    with w.building() as builder:
        yield lambda: builder.split(3)
        with contextlib.suppress(CUDAError):
            builder.end_building()


@contextlib.contextmanager
def join(w: World) -> Any:
    with w.building() as builder:
        branches = builder.split(3)
        w.memory.fill(2, stream=branches[1])
        yield lambda: builder.join(*branches)
        with contextlib.suppress(CUDAError, RuntimeError):
            builder.end_building()
        for branch in branches:
            branch.close()


@contextlib.contextmanager
def if_then(w: World) -> Any:
    with w.building() as builder:
        condition = builder.create_condition(1)
        yield lambda: builder.if_then(condition)
        with contextlib.suppress(CUDAError, RuntimeError):
            builder.end_building()


@contextlib.contextmanager
def embed(w: World) -> Any:
    with w.building() as builder, w.child() as child:
        yield lambda: builder.embed(child)
        with contextlib.suppress(CUDAError, RuntimeError):
            builder.end_building()


@contextlib.contextmanager
def complete(w: World) -> Any:
    with w.building() as builder:
        w.memory.fill(2, stream=builder)
        builder.end_building()
        yield lambda: builder.complete().close()


@contextlib.contextmanager
def update_a_node(w: World) -> Any:
    with (
        GraphDefinition() as graph,
        w.device.allocate(SIZE, w.stream) as one,
        w.device.allocate(SIZE, w.stream) as other,
    ):
        nodes = [graph.memset(one, 1, SIZE), graph.launch(LaunchConfig(grid=1, block=1), w.kernel, one, 1)]

        def update() -> None:
            nodes[0].update(dst=other)
            nodes[1].update(args=(other, 2))
            nodes[0].destroy()

        yield update
        for node in nodes:
            with contextlib.suppress(RuntimeError):
                node.update(**({"dst": one} if node is nodes[0] else {"args": (one, 3)}))
        for node in nodes:
            with contextlib.suppress(RuntimeError):
                node.destroy()
        with graph.instantiate() as executable:
            executable.launch(w.stream)
            w.stream.sync()


@contextlib.contextmanager
def replace_a_graph(w: World) -> Any:
    with GraphDefinition() as graph, w.child() as child, w.child() as other:
        node = graph.embed(child)
        inside = node.child_graph
        (within,) = inside.nodes()
        yield lambda: node.update(other)
        for graphs in (inside, within.child_graph if within.is_valid else inside):
            with contextlib.suppress(RuntimeError):
                graphs.empty()
        with graph.instantiate() as executable:
            executable.launch(w.stream)
            w.stream.sync()


def modify(w: World, moves: bool) -> Any:
    with w.virtual.allocate(UNIT, w.stream) as buffer:
        taken = reserve(UNIT, buffer.handle + buffer.size) if moves else 0
        buffer.fill(5, stream=w.stream)
        yield lambda: w.virtual.modify_allocation(buffer, 2 * UNIT).close()
        assert content(buffer, w.stream, UNIT) == b"\5" * UNIT
        with w.virtual.modify_allocation(buffer, 3 * UNIT) as grown:
            assert content(grown, w.stream, UNIT) == b"\5" * UNIT
        if taken:
            assert cuda_core_cffi.lib.cuMemAddressFree(taken, UNIT) == 0


@contextlib.contextmanager
def share(w: World) -> Any:
    """Export a buffer and import it again."""

    def work() -> None:
        with buffer.ipc_descriptor as descriptor, Buffer.from_ipc_descriptor(w.virtual, descriptor) as again:
            assert again.size == buffer.size

    with w.virtual.allocate(UNIT, w.stream) as buffer:
        before = count_descriptors()
        yield work
        assert count_descriptors() == before


def count_descriptors() -> int:
    """Return the number of open file descriptors, once buffers that were not closed have been unmapped."""
    gc.collect()
    while cuda_core_cffi.lib.ccc_reclaim():
        time.sleep(0.001)
    return len(os.listdir("/proc/self/fd"))


@contextlib.contextmanager
def grow(w: World) -> Any:
    yield from modify(w, False)


@contextlib.contextmanager
def move(w: World) -> Any:
    yield from modify(w, True)


SCENARIOS: dict[str, Callable[[World], Any]] = {
    scenario.__name__: scenario
    for scenario in (
        begin_building,
        begin_building_again,
        begin_a_body,
        end_building,
        end_with_a_body,
        close,
        split,
        join,
        if_then,
        embed,
        complete,
        update_a_node,
        replace_a_graph,
        share,
        grow,
        move,
    )
}


def at_every_line(w: World, scenario: Callable[[World], Any]) -> int:
    """Interrupt the work of a scenario at every line, or at some, and return how many lines there are, about."""
    number = 1
    while True:
        with scenario(w) as work:
            came = interrupt(work, number)
        w.check()
        if not came:
            return number - 1
        number += STEP


def in_a_storm(w: World) -> int:
    """Do the work of all scenarios in turn, interrupted by a timer, and return how often that came before the end."""
    storm, came = Storm(), 0
    took = dict.fromkeys(SCENARIOS, 0.0)
    for name, scenario in SCENARIOS.items():
        with scenario(w) as work:
            start = time.perf_counter()
            work()
            took[name] = time.perf_counter() - start
    for name, _ in zip(itertools.cycle(SCENARIOS), range(ROUNDS)):
        with SCENARIOS[name](w) as work:
            came += storm.interrupt(work, took[name])
        w.check()
    return came


def times_interrupted(name: str) -> int:
    """Run a scenario, or a storm, in a process of its own, which must end well; return how often it was interrupted."""
    done = run_python(PROGRAM, str(SUPPORT), name)
    assert done.returncode == 0, done.stderr  # which also shows exceptions of finalizers
    return int(done.stdout)


def main(name: str) -> None:
    """Run a scenario, or a storm."""
    faulthandler.enable()
    w = World()
    print(in_a_storm(w) if name == "storm" else at_every_line(w, SCENARIOS[name]))


if __name__ == "__main__":
    main(sys.argv[1])
