# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What tests of graphs need."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable

from cuda_core_cffi import Buffer, Device, LaunchConfig, Stream, lib, live_objects
from cuda_core_cffi._lifetime.pending_calls import run_tasks
from cuda_core_cffi._lifetime.references import flush_releases
from cuda_core_cffi.graph import GraphBuilder, GraphDefinition

SIZE = 1024
ONE = LaunchConfig(grid=1, block=1)
PATIENCE = 3  # seconds, for what the driver does in its own time
TURNS = 10  # late in a large process one collection may take PyPy a second, and it takes one for each link of a chain


class Owner:
    """Something that can be watched."""


def content(buffer: Buffer, stream: Stream, size: int | None = None) -> bytes:
    """Return what is in a buffer once the work in the stream is done."""
    out = bytearray(buffer.size)
    buffer.copy_to(out, stream=stream)
    stream.sync()
    return bytes(out[:size])


def run(definition: GraphDefinition, stream: Stream) -> None:
    """Run a graph once."""
    with definition.instantiate() as graph:
        graph.launch(stream)
        stream.sync()


def finish(builder: GraphBuilder, stream: Stream) -> None:
    """Run what a builder has captured once."""
    with builder.end_building().complete() as graph:
        graph.launch(stream)
        stream.sync()


def buffers_alive() -> int:
    """Count the buffers that have not gone back."""
    return live_objects()["buffer"]


def keeps(number: int) -> Callable[[], bool]:
    """Return a condition: exactly so many buffers are alive."""
    return lambda: buffers_alive() == number


def filling(device: Device, stream, value: int = 1) -> tuple[GraphDefinition, object]:
    """Return a graph that fills a buffer which only it has, and the node."""
    graph = GraphDefinition()
    buffer = device.allocate(SIZE, stream)
    node = graph.memset(buffer, value, SIZE)
    buffer.close()
    return graph, node


def eventually(reached: Callable[[], object]) -> bool:
    """Tell whether something happens, if the driver and the collector are given some time and some turns."""
    end = time.monotonic() + PATIENCE
    turn = 0
    while not reached() and (turn < TURNS or time.monotonic() < end):
        run_tasks()
        gc.collect()
        time.sleep(0.001)
        turn += 1
    return bool(reached())


def stays(reached: Callable[[], object]) -> bool:
    """Tell whether something is and remains so, for as long as the driver takes to release things."""
    for turn in range(20):
        run_tasks()
        if turn % 6 == 0:  # which takes PyPy a tenth of a second
            gc.collect()
        if not reached():
            return False
        time.sleep(0.001)
    return True


def watched() -> tuple[Owner, weakref.ref[Owner]]:
    """Return an object, and a reference that tells whether it is still there."""
    owner = Owner()
    return owner, weakref.ref(owner)


def wait_for_graphs(count: int, seconds: float = 2) -> None:
    """Let go of what graphs kept, of which the driver tells some time after the graph is gone."""
    if lib.ccc_refs_count() > count:
        gc.collect()
    end = time.monotonic() + seconds
    while (lib.ccc_reclaim() or lib.ccc_refs_count() > count) and time.monotonic() < end:
        flush_releases()
        time.sleep(0.001)
