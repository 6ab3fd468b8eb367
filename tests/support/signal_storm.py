# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Signal handlers that raise in the middle of operations, as Ctrl-C does: the program of test_signal_storm.py.

    python tests/support/signal_storm.py SECONDS [OPERATION...]
    tests/sanitize.sh python tests/support/signal_storm.py 600

Each operation, by default all of them, runs again and again for its share of the seconds, and a timer interrupts it.
The program fails if an operation raises anything but the interruption, or does not work afterwards. It prints how often
each was interrupted, and how many driver objects were leaked by the interruptions. To add an operation, write a
function with the decorator `operation`.
"""

from __future__ import annotations

import faulthandler
import gc
import random
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy
from buffers import HostResource
from helpers import collect
from scenarios import PTX

from cuda_core_cffi import (
    Buffer,
    Device,
    DeviceMemoryResource,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    ObjectCode,
    PinnedMemoryResource,
    VirtualMemoryResource,
    launch,
    live_objects,
)
from cuda_core_cffi.graph import GraphDefinition
from cuda_core_cffi.texture import ResourceDescriptor
from cuda_core_cffi.utils import StridedMemoryView

SIZE = 4096
SHORTEST, LONGEST = 1e-6, 1e-3  # seconds from the start of some work to the signal
ONE = LaunchConfig(grid=1, block=1)
READERS = ("from_dlpack", "from_any_interface")

Operation = Callable[["World"], object]
OPERATIONS: dict[str, Operation] = {}


def operation(work: Operation) -> Operation:
    """Enter an operation under the name of its function."""
    OPERATIONS[work.__name__] = work
    return work


class World:
    """Hold the objects that the operations use."""

    def __init__(self) -> None:
        self.device = Device()
        self.device.set_current()
        self.stream = self.device.create_stream()
        self.buffer = self.device.allocate(SIZE, stream=self.stream)
        self.pinned = LegacyPinnedMemoryResource()
        self.pool = DeviceMemoryResource(self.device, {"max_size": 1 << 21})
        self.virtual = VirtualMemoryResource(self.device)
        self.resource = HostResource()
        self.kernel = ObjectCode.from_ptx(PTX).get_kernel("store")
        self.random = random.Random(1)

    def host_buffer(self) -> Buffer:
        """Return a buffer in memory of an array, which Python gives back."""
        array = numpy.zeros(SIZE, "u1")
        return Buffer.from_handle(array.ctypes.data, SIZE, owner=array)


@operation
def export(w: World) -> None:
    """Make capsules of buffers and views, unused ones and some for NumPy."""
    for buffer in (w.buffer, w.pinned.allocate(SIZE), w.host_buffer(), w.resource.allocate(SIZE)):
        version = w.random.choice([None, (1, 0)])
        buffer.__dlpack__(max_version=version)
        view = StridedMemoryView.from_buffer(buffer, (8, 8), dtype="f4")
        view.__dlpack__(max_version=version)
        view.view(dtype="i4").__dlpack__()
        if buffer is not w.buffer:
            numpy.from_dlpack(buffer)
            numpy.from_dlpack(view)
            numpy.asarray(buffer)
            memoryview(buffer.__buffer__(0))
            buffer.close()


@operation
def take(w: World) -> None:
    """Make views of arrays and buffers, and of views."""
    for thing in (numpy.zeros((4, 4)), numpy.zeros(4, "M8[s]"), w.buffer, w.host_buffer()):
        read = getattr(StridedMemoryView, w.random.choice(READERS[isinstance(thing, numpy.ndarray) :]))
        view = read(thing, -1)
        assert view.ptr
        if view.dtype is not None and view.dtype.kind == "f":
            StridedMemoryView.from_dlpack(view, -1).__dlpack__()
            StridedMemoryView.from_any_interface(view.view(dtype="i8"), w.stream.handle)


@operation
def copy(w: World) -> None:
    """Copy between buffers, views, arrays and capsules, with and without waiting."""
    array = numpy.zeros(SIZE // 4, "f4")
    with w.host_buffer() as host, w.pinned.allocate(SIZE) as pinned:
        on_device, on_host, whole = (
            StridedMemoryView.from_buffer(buffer, (SIZE // 4,), dtype="f4") for buffer in (w.buffer, host, pinned)
        )
        shown = StridedMemoryView.from_any_interface(array, -1)
        for one, other in ((shown, on_device), (on_host, on_device), (whole, on_device), (shown, on_host)):
            one.copy_from(other, w.stream, blocking=w.random.choice([None, False, True]))
            other.copy_from(one, w.stream)
        for buffer in (w.buffer, host, pinned):
            buffer.__dlpack__(copy=True, dl_device=(1, 0))
        host.__dlpack__(copy=True)
        w.buffer.__dlpack__(copy=True)
        on_device.__dlpack__(dl_device=(1, 0))
        w.buffer.copy_to(array, stream=w.stream)
        w.buffer.copy_from(bytes(SIZE), stream=w.stream)
        w.buffer.copy_to(pinned, stream=w.stream)
        w.stream.sync()


@operation
def allocate(w: World) -> None:
    """Allocate memory of every kind, and cut and close it."""
    made = [
        w.device.allocate(SIZE, stream=w.stream), w.pool.allocate(SIZE, stream=w.stream), w.pinned.allocate(SIZE),
        w.resource.allocate(SIZE), w.host_buffer(),
    ]  # fmt: skip
    parts = [buffer[8:16] for buffer in made]
    for buffer in made + parts:
        buffer.close()


@operation
def grow(w: World) -> None:
    """Grow a buffer in virtual memory."""
    with (
        w.virtual.allocate(1, stream=w.stream) as buffer,
        w.virtual.modify_allocation(buffer, 2 * buffer.size) as grown,
    ):
        grown.fill(1, stream=w.stream)


@operation
def streams(w: World) -> None:
    """Make, order, ask and close streams."""
    with w.device.create_stream() as stream:
        stream.wait(w.stream)
        w.stream.wait(stream)
        assert stream.context.handle
        stream.callback(int)
        stream.sync()


@operation
def events(w: World) -> None:
    """Make, record, ask and close events."""
    with w.device.create_event({"timing_enabled": True}) as start, w.stream.record() as end:
        w.stream.record(start)
        w.stream.wait(end)
        start.sync()
        assert end.is_done in (False, True)


@operation
def capture(w: World) -> None:
    """Capture a stream, and run the graph."""
    with w.device.create_graph_builder().begin_building() as builder:
        w.buffer.fill(1, stream=builder)
        builder.callback(int)
        with builder.end_building().complete() as graph:
            graph.launch(w.stream)
            w.stream.sync()


@operation
def graphs(w: World) -> None:
    """Make a graph of nodes, and run it."""
    with GraphDefinition() as definition:
        definition.memset(w.buffer, 1, SIZE).memcpy(w.buffer[:8], w.buffer[8:16], 8).callback(int)
        with definition.instantiate() as graph:
            graph.launch(w.stream)


@operation
def launches(w: World) -> None:
    """Load code, get its kernel and launch it."""
    code = ObjectCode.from_ptx(PTX)
    with code.get_kernel("store") as kernel:
        code.close()
        launch(w.stream, ONE, kernel, w.buffer, 1)
        assert kernel.attributes.num_regs >= 0
    launch(w.stream, ONE, w.kernel, w.buffer, 1)


@operation
def pools(w: World) -> None:
    """Make pools and borrow one, read and close them."""
    for pool in (DeviceMemoryResource(w.device), DeviceMemoryResource(w.device, {}), PinnedMemoryResource({})):
        assert pool.attributes.used_mem_current >= 0
        pool.allocate(SIZE, stream=w.stream).close()
        pool.close()


@operation
def textures(w: World) -> None:
    """Make arrays, textures and surfaces."""
    options = {"shape": (4, 4), "format": "float32", "num_channels": 1, "is_surface_load_store": True}
    with w.device.create_opaque_array(options) as array:
        array.copy_from(numpy.zeros((4, 4), "f4"), stream=w.stream)
        resource = ResourceDescriptor.from_opaque_array(array)
        w.device.create_texture_object(resource).close()
        w.device.create_surface_object(resource).close()
    with w.device.create_mipmapped_array({**options, "num_levels": 2}) as mipmap:
        mipmap.get_level(1).close()


@operation
def contexts(w: World) -> None:
    """Make green contexts and streams in them, and make them current."""
    context = w.device.create_context({"resources": [w.device.resources.sm]})
    w.device.set_current(context)
    context.create_stream().close()
    w.device.set_current()
    context.close()


@operation
def clones(w: World) -> None:
    """Clone a graph, embed the clone, and launch an executable."""
    with GraphDefinition() as definition:
        definition.memset(w.buffer, 1, SIZE)
        with definition.clone() as clone, definition.instantiate() as graph:
            clone.memset(w.buffer, 2, SIZE)
            definition.embed(clone)
            graph.launch(w.stream)


class Interruption(BaseException):
    """The exception of the signal handler."""


class Storm:
    """Interrupts work by a timer."""

    def __init__(self) -> None:
        self.count = 0
        self.random = random.Random(2)
        signal.signal(signal.SIGALRM, self.interrupt)
        sys.unraisablehook = self.unraisable

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Handle the signal."""
        self.count += 1
        raise Interruption

    def unraisable(self, raised: Any) -> None:
        """Let an interruption of a finalizer be lost, and nothing else."""
        if raised.exc_type is not Interruption:
            sys.__unraisablehook__(raised)

    def run(self, work: Callable[[], object]) -> None:
        """Work until it was interrupted once."""
        before = self.count
        try:
            signal.setitimer(signal.ITIMER_REAL, self.random.uniform(SHORTEST, LONGEST))
            self.repeat(work, before)
        except Interruption:
            pass

    def repeat(self, work: Callable[[], object], before: int) -> None:
        """Work until the handler was called more than `before` times.

        This is a function of its own because CPython 3.13 handles no exception at the jump back of a loop that ends a
        ``try``.
        """
        while self.count == before:
            work()


def lost_since(before: dict[str, int]) -> dict[str, int]:
    """Return how many driver objects of each kind there are more, once garbage is collected.

    PyPy runs the finalizers of a chain of objects one collection after another.
    """
    for _ in range(10):
        collect()
        more = {kind: count - before[kind] for kind, count in live_objects().items() if count > before[kind]}
        if not more:
            break
    return more


def main(seconds: float, *names: str) -> None:
    """Run operations in a storm, and print what became of them."""
    faulthandler.enable()
    world, storm = World(), Storm()
    chosen = names or tuple(OPERATIONS)
    for name in chosen:
        work, before, interruptions = OPERATIONS[name], live_objects(), storm.count
        until = time.monotonic() + seconds / len(chosen)
        while time.monotonic() < until:
            storm.run(lambda: work(world))  # noqa: B023  # called at once
        gc.collect()
        for _ in range(3):
            work(world)
        world.stream.sync()
        more = lost_since(before)
        print(name, storm.count - interruptions, more, flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]), *sys.argv[2:])
