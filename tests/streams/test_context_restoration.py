# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""A call that makes a context current, and cannot make the former one current again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from helpers import collect, no_release_thread, output_of

from cuda_core_cffi import (
    CUDAError,
    Device,
    DeviceMemoryResource,
    Stream,
    ffi,
    lib,
    live_objects,
    simulator,
)
from cuda_core_cffi._memory import SynchronousMemoryResource
from cuda_core_cffi.texture import OpaqueArrayOptions

pytestmark = pytest.mark.simulator_only("injects faults")

POP, ERROR = "cuCtxPopCurrent", "CUDA_ERROR_UNKNOWN"
SIZE = 64


class World:
    """The objects that the operations use."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.stream = device.create_stream()
        self.default = device.default_stream
        self.pool = DeviceMemoryResource(device)
        self.buffer, self.other = (self.pool.allocate(SIZE, self.stream) for _ in range(2))
        self.array = device.create_opaque_array(
            OpaqueArrayOptions(shape=(SIZE,), format="uint8", num_channels=1, is_surface_load_store=True)
        )
        self.host = np.zeros(SIZE, np.int8)

    def close(self) -> None:
        """Close everything."""
        self.stream.sync()
        for thing in (self.array, self.buffer, self.other, self.pool, self.stream):
            thing.close()


@pytest.fixture
def world(device: Device) -> Iterator[World]:
    """Make the objects with the device current; during the test no context is."""
    made = World(device)
    made.stream.sync()
    assert lib.cuCtxSetCurrent(ffi.NULL) == 0
    yield made
    device.set_current()
    made.close()


OPERATIONS: dict[str, Callable[[World], Any]] = {
    "wait for the device": lambda w: w.device.sync(),
    "find the context of a device": lambda w: w.device.context,
    "create a stream": lambda w: w.device.create_stream(),
    "create a stream with options": lambda w: w.device.create_stream(options={"priority": 0}),
    "create an event": lambda w: w.device.create_event(),
    "create an event with options": lambda w: w.device.create_event({"timing_enabled": True}),
    "record a new event": lambda w: w.stream.record(),
    "have a stream wait for another": lambda w: w.stream.wait(w.device.create_graph_builder().stream),
    "allocate in the order of a default stream": lambda w: w.pool.allocate(SIZE, w.default),
    "allocate without a pool": lambda w: SynchronousMemoryResource(0).allocate(SIZE),
    "create an array": lambda w: w.device.create_opaque_array(
        OpaqueArrayOptions(shape=(SIZE,), format="uint8", num_channels=1)
    ),
    "copy to an array": lambda w: w.array.copy_from(w.buffer, stream=w.stream),
    "copy from host memory to an array": lambda w: w.array.copy_from(w.host, stream=w.stream),
    "copy from host memory": lambda w: w.buffer.copy_from(w.host, stream=w.stream),
    "copy to host memory": lambda w: w.buffer.copy_to(w.host, stream=w.stream),
}


def current() -> int:
    """Return the address of the current context, 0 for none."""
    found = ffi.new("CUcontext *")
    assert lib.cuCtxGetCurrent(found) == 0
    return int(ffi.cast("uintptr_t", found[0]))


def pops(operation: Callable[[World], Any], world: World) -> int:
    """Return how many contexts an operation takes away again before its result is closed."""
    operation(world)  # the first call looks functions up
    world.stream.sync()
    with simulator.trace(POP) as trace:
        made = operation(world)
    count = len(trace.names)
    del made
    world.stream.sync()
    return count


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_call_fails_and_what_it_created_is_destroyed(world: World, name: str) -> None:
    operation = OPERATIONS[name]
    try:
        with no_release_thread():
            count = pops(operation, world)
    except (CUDAError, TypeError, AttributeError, NotImplementedError) as error:
        pytest.fail(f"a case that does not run: {error!r}")
    assert count, "a case that makes no context current"
    for nth in range(1, count + 1):
        collect()
        before = live_objects()
        with no_release_thread(), simulator.fail(POP, ERROR, nth), pytest.raises(CUDAError) as caught:
            operation(world)
        assert (caught.value.call, caught.value.name) == (POP, ERROR)
        (note,) = caught.value.__notes__
        assert note == (
            f"context {current():#x} of device 0 is current in this thread; Device(n).set_current() makes another one "
            "current"
        )
        assert current() != 0
        assert lib.cuCtxSetCurrent(ffi.NULL) == 0
        world.stream.sync()
        caught = None
        collect()  # and destroy objects that wait for an idle device
        assert live_objects() == before
    operation(world)
    assert current() == 0


def test_both_failures_are_shown(world: World) -> None:
    first = simulator.fail("cuEventCreate", "CUDA_ERROR_OUT_OF_MEMORY")
    with first, simulator.fail(POP, ERROR), pytest.raises(CUDAError) as caught:
        world.device.create_event()
    assert (caught.value.call, caught.value.name) == ("cuEventCreate", "CUDA_ERROR_OUT_OF_MEMORY")
    (note,) = caught.value.__notes__
    assert note.startswith(f"besides, {POP} failed: {ERROR} (999)")
    assert f"; context {current():#x} of device 0 is current in this thread" in note


def test_the_next_failure_has_no_note_of_it(world: World) -> None:
    with simulator.fail(POP, ERROR), pytest.raises(CUDAError):
        world.device.create_event()
    with simulator.fail("cuEventCreate", ERROR), pytest.raises(CUDAError) as caught:
        world.device.create_event()
    assert not hasattr(caught.value, "__notes__")


def test_a_context_that_cannot_be_made_current_is_an_error(world: World) -> None:
    before = live_objects()
    with simulator.fail("cuCtxPushCurrent", ERROR), pytest.raises(CUDAError, match="cuCtxPushCurrent"):
        world.array.copy_from(world.buffer, stream=world.stream)
    assert current() == 0
    assert live_objects() == before


def test_host_memory_is_not_released_before_its_copy_is_done(world: World) -> None:
    world.host[:] = 7
    with simulator.fail(POP, ERROR), pytest.raises(CUDAError):
        world.buffer.copy_from(world.host, stream=world.stream)
    world.host[:] = 0  # the copy is done, although it has failed
    assert lib.cuCtxSetCurrent(ffi.NULL) == 0
    content = world.buffer.copy_to(bytearray(SIZE), stream=world.stream)
    world.stream.sync()
    assert content == bytes([7]) * SIZE


def test_the_end_of_a_block_names_the_context_that_stays(device: Device) -> None:
    assert lib.cuCtxSetCurrent(ffi.NULL) == 0
    with pytest.raises(CUDAError) as caught, device:
        fault = simulator.fail("cuCtxSetCurrent", ERROR)
    assert fault.cancel() == 0
    assert caught.value.call == "cuCtxSetCurrent"
    assert caught.value.__notes__[0].startswith(f"context {current():#x} of device 0 is current in this thread")
    device.set_current()


def test_a_conditional_node_whose_call_fails_ends_the_capture(device: Device) -> None:
    builder = device.create_graph_builder().begin_building()
    condition = builder.create_condition()
    assert lib.cuCtxSetCurrent(ffi.NULL) == 0
    with simulator.fail(POP, ERROR), pytest.raises(CUDAError) as caught:
        builder.if_then(condition)
    assert caught.value.call == POP
    assert not builder.is_building
    builder.close()
    device.set_current()


def test_the_note_names_the_other_device() -> None:
    text = output_of(
        f"""
        from cuda_core_cffi import CUDAError, Device, Stream, live_objects, simulator
        Device(0).set_current()
        for operation in (Device(1).create_stream, Device(1).sync):
            with simulator.fail("{POP}", "{ERROR}"):
                try:
                    operation()
                except CUDAError as error:
                    print(error.call, error.__notes__[0].split(" is current")[0].split(" of ")[1], Device().device_id)
            print(live_objects()["stream"])
            Device(0).set_current()
        """,
        CUDA_SIM_DEVICES="2",
    )
    assert text.split("\n") == [f"{POP} device 1 1", "0"] * 2


def test_the_views_of_a_copy_are_released_once() -> None:
    text = output_of(
        f"""
        import gc, weakref
        import numpy as np
        from cuda_core_cffi import Device, CUDAError, simulator
        from cuda_core_cffi.utils import StridedMemoryView
        first, second = Device(0), Device(1)
        second.set_current()
        buffer = second.allocate(64, second.default_stream)
        buffer.fill(0, stream=second.default_stream)
        second.sync()
        view = StridedMemoryView.from_any_interface(buffer, stream_ptr=-1)
        first.set_current()
        for blocking in (False, True):
            host = np.full(64, 7, np.int8)
            seen = weakref.ref(host)
            source = StridedMemoryView.from_any_interface(host, stream_ptr=-1)
            with simulator.fail("{POP}", "{ERROR}"):
                try:
                    view.copy_from(source, stream=first.default_stream, blocking=blocking)
                except CUDAError as error:
                    print(error.call)
            second.sync()
            del host, source
            for _ in range(4):  # PyPy runs finalizers later
                gc.collect()
                second.create_event().close()  # releases the views of finished copies
            print(seen())
            first.set_current()
        """,
        CUDA_SIM_DEVICES="2",
    )
    assert text.split() == [POP, "None"] * 2


def test_a_stream_of_another_library_is_asked_for_its_context(world: World) -> None:
    borrowed = Stream.from_handle(world.stream.handle)
    with simulator.fail(POP, ERROR), pytest.raises(CUDAError) as caught:
        borrowed.context  # noqa: B018  (a property that asks the driver)
    assert caught.value.call == POP
    assert lib.cuCtxSetCurrent(ffi.NULL) == 0
    assert borrowed.context.handle == world.stream.context.handle
