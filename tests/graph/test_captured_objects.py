# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""A captured graph keeps the objects that its nodes use: kernels with their code, buffers, arrays and textures."""

from __future__ import annotations

import gc
from collections.abc import Callable

import numpy as np
import pytest
from graphs import ONE, SIZE
from helpers import alive, collect, soon
from spinning import Spinning, fresh

from cuda_core_cffi import (
    Buffer,
    Device,
    GraphMemoryResource,
    LaunchBatch,
    PreparedLaunch,
    Stream,
    launch,
    live_objects,
)
from cuda_core_cffi.graph import Graph, GraphBuilder
from cuda_core_cffi.texture import OpaqueArrayOptions
from cuda_core_cffi.utils import StridedMemoryView


def number(buffer: Buffer, stream: Stream) -> int:
    """Return the first number in a buffer once the work in a stream is done."""
    found = np.zeros(buffer.size // 4, np.int32)
    buffer.copy_to(found, stream=stream)
    stream.sync()
    return int(found[0])


def capture(device: Device, work: Callable[[GraphBuilder], object]) -> Graph:
    """Return the executable of captured work, to whose objects nothing else refers."""
    with device.create_graph_builder() as builder:
        builder.begin_building()
        work(builder)
        return builder.end_building().complete()


def plain(stream, buffer: Buffer) -> None:
    launch(stream, ONE, fresh("add"), buffer, 1)


def prepared(stream, buffer: Buffer) -> None:
    PreparedLaunch(ONE, fresh("add"), Buffer, int).launch(stream, buffer, 1)


def batch(stream, buffer: Buffer) -> None:
    LaunchBatch([(PreparedLaunch(ONE, fresh("add"), Buffer, int), buffer, 1)]).launch(stream)


@pytest.mark.parametrize("work", [plain, prepared, batch])
def test_a_kernel_is_kept_with_its_code(device: Device, stream: Stream, work: Callable[..., None]) -> None:
    with device.allocate(SIZE, stream) as buffer:
        buffer.fill(0, stream=stream)
        before = alive()["library"]
        graph = capture(device, lambda builder: [work(builder, buffer) for _ in range(3)])
        collect()
        assert alive()["library"] > before
        for _ in range(2):
            graph.launch(stream)
        assert number(buffer, stream) == 6
        graph.close()
        assert alive()["library"] == before


def launched(device: Device, stream: Stream, builder: GraphBuilder, buffer: Buffer) -> None:
    launch(builder, ONE, fresh("add"), buffer, 1)


def filled(device: Device, stream: Stream, builder: GraphBuilder, buffer: Buffer) -> None:
    buffer.fill(1, stream=builder)


def source(device: Device, stream: Stream, builder: GraphBuilder, buffer: Buffer) -> None:
    with device.allocate(SIZE, stream) as other:
        buffer.copy_to(other, stream=builder)


def target(device: Device, stream: Stream, builder: GraphBuilder, buffer: Buffer) -> None:
    with device.allocate(SIZE, stream) as other:
        buffer.copy_from(other, stream=builder)


def sliced(device: Device, stream: Stream, builder: GraphBuilder, buffer: Buffer) -> None:
    with buffer[4:8] as part:
        part.fill(1, stream=builder)


def array(device: Device, stream: Stream, builder: GraphBuilder, buffer: Buffer) -> None:
    with device.create_opaque_array(OpaqueArrayOptions((SIZE,), "uint8", 1)) as found:
        found.copy_from(buffer, stream=builder)


def viewed(device: Device, stream: Stream, builder: GraphBuilder, buffer: Buffer) -> None:
    with device.allocate(SIZE, stream) as other:
        source, target = (StridedMemoryView.from_buffer(each, (SIZE,), dtype=np.uint8) for each in (buffer, other))
        target.copy_from(source, stream=builder)


def in_a_branch(device: Device, stream: Stream, builder: GraphBuilder, buffer: Buffer) -> None:
    one, other = builder.split(2)
    launch(other, ONE, fresh("add"), buffer, 1)
    GraphBuilder.join(one, other)


def in_a_joined_stream(device: Device, stream: Stream, builder: GraphBuilder, buffer: Buffer) -> None:
    with device.create_stream() as other:
        other.wait(builder.stream)
        launch(other, ONE, fresh("add"), buffer, 1)
        builder.stream.wait(other)


def in_a_body(device: Device, stream: Stream, builder: GraphBuilder, buffer: Buffer) -> None:
    body = builder.if_then(builder.create_condition(1))
    with body:
        body.begin_building()
        launch(body, ONE, fresh("add"), buffer, 1)
        body.end_building()


@pytest.mark.parametrize(
    "work",
    [launched, filled, source, target, sliced, array, viewed, in_a_branch, in_a_joined_stream, in_a_body],
)
def test_memory_that_was_closed_is_kept(device: Device, stream: Stream, work: Callable[..., None]) -> None:
    collect()
    before = alive()
    buffer = device.allocate(SIZE, stream)
    stream.sync()
    graph = capture(device, lambda builder: work(device, stream, builder, buffer))
    buffer.close()
    collect()
    assert alive()["buffer"] >= before["buffer"] + 1
    graph.launch(stream)
    stream.sync()
    graph.close()
    collect()
    assert soon(lambda: alive() == before)


def test_memory_that_the_graph_allocates_is_freed_by_closing_it(device: Device, stream: Stream) -> None:
    resource = GraphMemoryResource(device)
    with device.allocate(SIZE, stream) as buffer, device.create_graph_builder() as builder:
        builder.begin_building()
        with resource.allocate(SIZE, builder) as between:
            launch(builder, ONE, fresh("add"), between, 1)
            buffer.copy_to(between, stream=builder)
        definition = builder.end_building().graph_definition
        assert [type(node).__name__ for node in definition.nodes()].count("FreeNode") == 1
        with definition.instantiate() as graph:
            graph.launch(stream)
            stream.sync()
        del definition


def test_a_capture_that_is_given_up_lets_go(device: Device, stream: Stream) -> None:
    before = alive()
    with device.create_graph_builder() as builder, device.allocate(SIZE, stream) as buffer:
        builder.begin_building()
        launch(builder, ONE, fresh("add"), buffer, 1)
        buffer.close()
        assert alive()["library"] == before["library"] + 1
    collect()
    assert alive() == before


def test_an_executable_that_is_closed_while_it_runs_keeps_its_memory(device: Device, stream: Stream) -> None:
    buffer = device.allocate(SIZE, stream)
    stream.sync()
    graph = capture(device, lambda builder: launch(builder, ONE, fresh("add"), buffer, 1))
    buffer.close()
    before = alive()["buffer"]
    other = device.create_stream()
    with Spinning(other) as kernel:
        graph.launch(other)
        other.close()
        graph.close()
        gc.collect()
        assert kernel.runs
        assert live_objects()["buffer"] == before + 1  # without a wait for the device to be idle
        kernel.end()
        assert soon(lambda: alive()["buffer"] == before)  # with the flag of the kernel that spins


def test_rounds_of_captures_leave_nothing(device: Device, stream: Stream) -> None:
    with device.allocate(SIZE, stream) as buffer:
        buffer.fill(0, stream=stream)
        before = alive()
        for _ in range(100):
            graph = capture(device, lambda builder: launch(builder, ONE, fresh("add"), buffer, 1))
            graph.launch(stream)
            graph.close()
        assert number(buffer, stream) == 100
        assert soon(lambda: alive() == before)
