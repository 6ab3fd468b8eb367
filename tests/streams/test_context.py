# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Contexts, those of other libraries among them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from helpers import output_of

from cuda_core_cffi import Context, Device, UnavailableError, driver, ffi, lib
from cuda_core_cffi._core.errors import check


def address(context: Any) -> int:
    return int(ffi.cast("uintptr_t", context))


@pytest.fixture
def foreign_context(device: Device) -> Iterator[Any]:
    """Make a context current that this package knows nothing of, and destroy it in the end."""
    made = ffi.new("CUcontext *")
    arguments = (ffi.NULL,) if lib.CUDA_VERSION >= 13000 else ()  # the parameters of a green or CIG context
    try:
        check(lib.cuCtxCreate(made, *arguments, 0, 0), "cuCtxCreate")
    except UnavailableError as error:
        pytest.skip(str(error))
    yield made[0]
    assert lib.cuCtxSetCurrent(made[0]) == 0  # in place of what the test made current
    assert lib.cuCtxDestroy(made[0]) == 0  # takes it off the thread's stack
    device.set_current()


def test_it_cannot_be_constructed() -> None:
    with pytest.raises(RuntimeError, match="Context cannot be constructed directly"):
        Context()


def test_it_shows_its_handle_and_device(device: Device) -> None:
    context = device.context
    assert repr(context) == f"<Context handle={context.handle:#x} device=0>"


def test_its_handles_are_the_drivers(device: Device) -> None:
    current = ffi.new("CUcontext *")
    assert lib.cuCtxGetCurrent(current) == 0
    assert device.context.cdata == current[0]
    assert device.context.handle == address(current[0])
    assert ffi.typeof(device.context.cdata) is ffi.typeof("CUcontext")


def test_objects_for_one_context_are_equal(device: Device) -> None:
    first, second = device.context, device.context
    assert first == second
    assert hash(first) == hash(second)


def test_it_is_unequal_to_its_handle(device: Device) -> None:
    assert device.context != device.context.handle


def test_closing_gives_up_this_object_only(device: Device) -> None:
    context = device.context
    context.close()
    context.close()
    assert context.is_closed
    assert context.handle == 0
    assert context.cdata == ffi.NULL
    assert not device.context.is_closed
    device.sync()


def test_a_closed_one_keeps_equality_and_hash(device: Device) -> None:
    context = device.context
    before = hash(context)
    context.close()
    assert context == device.context
    assert hash(context) == before


def test_with_closes_it(device: Device) -> None:
    with device.context as context:
        assert not context.is_closed
    assert context.is_closed


def test_it_can_be_weakly_referenced(device: Device) -> None:
    context = device.context
    assert weakref.ref(context)() is context


def test_the_primary_context_does_not_count_as_live(device: Device) -> None:
    from cuda_core_cffi import live_objects

    before = live_objects()["context"]
    contexts = [device.context for _ in range(3)]
    assert live_objects()["context"] == before
    del contexts


# contexts of other libraries


def test_a_primary_context_that_another_library_retained_is_shared() -> None:
    text = output_of(
        """
        from cuda_core_cffi import Device, driver, handle_return
        handle_return(driver.cuInit(0))
        theirs = handle_return(driver.cuDevicePrimaryCtxRetain(0))
        handle_return(driver.cuCtxSetCurrent(theirs))
        device = Device()
        stream = device.create_stream()
        print(device.device_id, device.context.handle == int(theirs), stream.context.handle == int(theirs))
        stream.close()
        """
    )
    assert text == "0 True True"


def test_a_context_made_by_another_library_is_picked_up(device: Device, foreign_context: Any) -> None:
    primary = driver.cuDevicePrimaryCtxRetain(0)[1]
    assert device.context.handle == address(foreign_context) != int(primary)
    assert Device() is device
    assert driver.cuDevicePrimaryCtxRelease(0)[0] == 0


def test_what_is_made_lives_in_the_current_foreign_context(device: Device, foreign_context: Any) -> None:
    with device.create_stream() as stream, device.create_event() as event, stream.record() as recorded:
        found = {item.context.handle for item in (stream, event, recorded)}
        assert found == {address(foreign_context)}
        assert stream.device is event.device is device


def test_what_was_made_elsewhere_keeps_its_context(device: Device, stream: Any, foreign_context: Any) -> None:
    assert stream.context.handle != address(foreign_context)
    stream.record().close()
    with device.create_stream() as other:
        other.wait(stream)
        stream.wait(other)
        other.sync()
        stream.sync()


def test_objects_are_released_after_their_foreign_context_stopped_being_current(
    device: Device, foreign_context: Any
) -> None:
    stream, event = device.create_stream(), device.create_event()
    buffer = device.allocate(64, stream)
    device.set_current(device_primary(device))
    for item in (buffer, event, stream):
        item.close()


def device_primary(device: Device) -> Context:
    """Return the primary context while another one is current."""
    before = ffi.new("CUcontext *")
    assert lib.cuCtxGetCurrent(before) == 0
    device.set_current()
    context = device.context
    assert lib.cuCtxSetCurrent(before[0]) == 0
    return context


def test_set_current_returns_a_displaced_foreign_context(device: Device, foreign_context: Any) -> None:
    displaced = device.set_current(device_primary(device))
    assert displaced is not None
    assert displaced.handle == address(foreign_context)
    assert device.context.handle != address(foreign_context)
    assert device.set_current(displaced) == device_primary(device)
    assert device.context.handle == address(foreign_context)


def test_set_current_without_a_context_goes_to_the_primary_one(device: Device, foreign_context: Any) -> None:
    assert device.set_current() is None
    assert device.context.handle != address(foreign_context)


def test_a_stream_of_a_foreign_context_knows_it_when_it_is_borrowed(device: Device, foreign_context: Any) -> None:
    from cuda_core_cffi import Stream

    with device.create_stream() as made:
        device.set_current()
        borrowed = Stream.from_handle(made.handle)
        assert borrowed.context.handle == address(foreign_context)
        assert borrowed.device is device
        with borrowed.record() as event:
            assert event.context.handle == address(foreign_context)
        assert device.context.handle != address(foreign_context)  # it is still the primary one that is current


def test_the_current_context_is_left_as_it_was(device: Device, foreign_context: Any) -> None:
    with device.create_stream() as stream:
        device.allocate(16, stream).close()
        stream.record().close()
        device.sync()
        assert stream.device.context.handle == address(foreign_context)
