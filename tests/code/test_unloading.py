# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Code is unloaded, and other objects are destroyed, when the device is idle: nothing that is dropped waits for it."""

from __future__ import annotations

import gc
import threading
import time
import warnings
from collections.abc import Callable, Iterator

import pytest
from graphs import ONE, SIZE
from helpers import collect, soon
from spinning import Spinning, fresh

from cuda_core_cffi import (
    Device,
    LegacyPinnedMemoryResource,
    Stream,
    VirtualMemoryResource,
    launch,
    live_objects,
)
from cuda_core_cffi._memory import SynchronousMemoryResource
from cuda_core_cffi.graph import GraphDefinition
from cuda_core_cffi.texture import MipmappedArrayOptions, OpaqueArrayOptions


def libraries() -> int:
    """Return how many libraries are loaded."""
    return live_objects()["library"]


@pytest.fixture
def loaded(device: Device) -> int:
    """Return how many libraries are loaded before the test."""
    collect()
    return libraries()


@pytest.fixture
def own_stream(device: Device) -> Iterator[Stream]:
    """Return a stream that the test may close."""
    stream = device.create_stream()
    yield stream
    stream.close()


def in_own(own: Stream, device: Device) -> Stream:
    return own


def in_default(own: Stream, device: Device) -> Stream:
    return device.default_stream


@pytest.mark.parametrize("choose", [in_own, in_default])
def test_a_launch_returns_while_the_only_reference_to_its_code_goes(
    device: Device, own_stream: Stream, loaded: int, choose: Callable[[Stream, Device], Stream]
) -> None:
    with Spinning(choose(own_stream, device)) as kernel:
        assert kernel.runs
        assert libraries() == loaded + 1
        kernel.end()
        assert soon(lambda: libraries() == loaded)  # without a call of the program


def test_code_that_was_closed_is_not_unloaded_while_it_runs(device: Device, own_stream: Stream, loaded: int) -> None:
    with Spinning(own_stream) as kernel, fresh("add") as other:
        other.close()
        time.sleep(0.2)  # the release thread looks
        assert kernel.runs
        assert libraries() == loaded + 2


def test_other_streams_go_on_while_code_waits(device: Device, own_stream: Stream, stream: Stream) -> None:
    kernels = [fresh("add") for _ in range(5)]
    with device.allocate(SIZE, stream) as buffer:
        for kernel in kernels:  # before: the driver may wait for the device to load code
            launch(stream, ONE, kernel, buffer, 1)
        stream.sync()
        with Spinning(own_stream) as spinning:
            while kernels:
                launch(stream, ONE, kernels.pop(), buffer, 1)
                for _ in range(10):
                    buffer.fill(0, stream=stream)
                    stream.sync()
                    time.sleep(0.002)
            assert spinning.runs


def test_a_stream_may_be_closed_while_its_kernel_runs(device: Device, own_stream: Stream, loaded: int) -> None:
    with Spinning(own_stream) as kernel:
        own_stream.close()
        time.sleep(0.2)
        assert kernel.runs
        assert libraries() == loaded + 1
        kernel.end()
        assert soon(lambda: libraries() == loaded)


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_unloading_ends_no_capture(device: Device, own_stream: Stream, stream: Stream, loaded: int, mode: str) -> None:
    with (
        device.allocate(SIZE, stream) as buffer,
        device.create_graph_builder() as builder,
        Spinning(own_stream) as kernel,
    ):
        builder.begin_building(mode)
        buffer.fill(1, stream=builder)
        kernel.end()
        assert soon(lambda: libraries() == loaded)
        buffer.fill(2, stream=builder)
        with builder.end_building().complete() as graph:
            graph.launch(stream)
            stream.sync()


def test_a_device_that_always_has_work_does_not_keep_code_loaded(device: Device, own_stream: Stream) -> None:
    stop = threading.Event()
    kernel = fresh("add")

    def feed() -> None:
        device.set_current()
        with device.create_stream() as busy, device.allocate(SIZE, busy) as buffer:
            while not stop.is_set():
                for _ in range(100):
                    launch(busy, ONE, kernel, buffer, 1)
                middle = busy.record()
                for _ in range(100):
                    launch(busy, ONE, kernel, buffer, 1)
                middle.sync()
            busy.sync()

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        with device.allocate(SIZE, own_stream) as buffer:
            own_stream.sync()
            before = libraries()
            launch(own_stream, ONE, fresh("add"), buffer, 1)
            assert soon(lambda: libraries() == before)
    finally:
        stop.set()
        thread.join()
        kernel.close()


def test_many_rounds_of_code_leave_nothing_loaded(device: Device, stream: Stream, loaded: int) -> None:
    with device.allocate(SIZE, stream) as buffer:
        for _ in range(300):
            launch(stream, ONE, fresh("add"), buffer, 1)
            stream.sync()
        assert soon(lambda: libraries() == loaded)


def collect_only() -> None:
    """Collect garbage, and destroy nothing that waits for the device."""
    for _ in range(3):
        gc.collect()


def conditional(device: Device, stream: Stream) -> object:
    """Return an executable with a conditional node."""
    with GraphDefinition() as definition:
        definition.if_then(definition.create_condition(default_value=0))
        return definition.instantiate()


MAKERS: dict[str, tuple[str, Callable[[Device, Stream], object]]] = {
    "pinned": ("buffer", lambda device, stream: LegacyPinnedMemoryResource().allocate(SIZE)),
    "synchronous": ("buffer", lambda device, stream: SynchronousMemoryResource(device).allocate(SIZE)),
    "virtual": ("buffer", lambda device, stream: VirtualMemoryResource(device).allocate(SIZE)),
    "virtual, in stream": (
        "buffer",
        lambda device, stream: VirtualMemoryResource(device).allocate(SIZE, stream=stream),
    ),
    "array": ("array", lambda device, stream: device.create_opaque_array(OpaqueArrayOptions((64,), "uint8", 1))),
    "mipmaps": (
        "mipmap",
        lambda device, stream: device.create_mipmapped_array(MipmappedArrayOptions((64,), "uint8", 1, num_levels=2)),
    ),
    "conditional": ("executable", conditional),
}


def test_memory_may_outlive_the_stream_of_another_library(device: Device) -> None:
    before = live_objects()["buffer"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for make in (LegacyPinnedMemoryResource, lambda: VirtualMemoryResource(device)):
            with device.create_stream() as owner:
                made = [make().allocate(SIZE, Stream.from_handle(owner.handle))]
                made.clear()
                collect_only()
        assert soon(lambda: live_objects()["buffer"] == before)
        device.create_event().close()  # reports failures of cleanup
    assert [str(item.message) for item in caught] == []


@pytest.mark.parametrize("what", MAKERS)
def test_what_is_collected_does_not_wait_for_the_device(device: Device, own_stream: Stream, what: str) -> None:
    kind, make = MAKERS[what]
    if what.startswith("virtual") and not device.properties.virtual_memory_management_supported:
        pytest.skip("the device has no virtual memory management")
    made = [make(device, own_stream)]
    with Spinning(own_stream) as kernel:
        before = live_objects()[kind]
        made.clear()
        collect_only()
        assert kernel.runs
        assert live_objects()[kind] == before
        kernel.end()
        assert soon(lambda: live_objects()[kind] == before - 1)


def test_an_export_of_a_closed_buffer_does_not_wait_for_the_device(device: Device, own_stream: Stream) -> None:
    buffer = LegacyPinnedMemoryResource().allocate(SIZE)
    exported = [buffer.__buffer__(0)]
    with Spinning(own_stream) as kernel:
        before = live_objects()["buffer"]
        buffer.close()
        exported.clear()
        collect_only()
        assert kernel.runs
        assert live_objects()["buffer"] == before
        kernel.end()
        assert soon(lambda: live_objects()["buffer"] == before - 1)
