# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""A device as a scope: current in a block, and after it what was current before."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from helpers import output_of

from cuda_core_cffi import CUDAError, Device, ffi, lib

TWO_DEVICES = "needs two devices, whatever the machine has"


def current() -> Any:
    """Return the driver's current context."""
    found = ffi.new("CUcontext *")
    assert lib.cuCtxGetCurrent(found) == 0
    return found[0]


@pytest.fixture
def other_context(device: Device) -> Iterator[Any]:
    """A context of the device beside its primary one, and current."""
    made = ffi.new("CUcontext *")
    assert lib.cuCtxCreate(made, ffi.NULL, 0, device.device_id) == 0
    assert current() == made[0]
    yield made[0]
    assert lib.cuCtxDestroy(made[0]) == 0
    device.set_current()


@pytest.fixture
def none_current(device: Device) -> Iterator[None]:
    """Run with no context current."""
    assert lib.cuCtxSetCurrent(ffi.NULL) == 0
    yield
    device.set_current()


def test_it_gives_the_device(device: Device) -> None:
    with device as entered:
        assert entered is device


def test_where_none_was_current_none_is_afterwards(device: Device, none_current: None) -> None:
    with device:
        assert current() != ffi.NULL
        assert device.context.handle == int(ffi.cast("uintptr_t", current()))
    assert current() == ffi.NULL


def test_it_is_the_primary_context_that_is_current(device: Device, other_context: Any) -> None:
    with device:
        primary = current()
        assert primary != other_context
    assert current() == other_context
    device.set_current()
    assert current() == primary
    assert lib.cuCtxSetCurrent(other_context) == 0


def test_what_the_block_makes_current_goes_with_it(device: Device, other_context: Any) -> None:
    with device:
        assert lib.cuCtxSetCurrent(ffi.NULL) == 0
        device.set_current()
    assert current() == other_context
    with device:
        assert lib.cuCtxSetCurrent(ffi.NULL) == 0
    assert current() == other_context


@pytest.mark.simulator_only("a driver takes the context that is gone, and may crash")
def test_a_context_that_was_destroyed_in_the_block_is_told(device: Device, none_current: None) -> None:
    made = ffi.new("CUcontext *")
    assert lib.cuCtxCreate(made, ffi.NULL, 0, device.device_id) == 0
    with pytest.raises(CUDAError, match="cuCtxSetCurrent failed"), device:
        assert lib.cuCtxDestroy(made[0]) == 0


def test_blocks_nest(device: Device, none_current: None) -> None:
    with device:
        with device, device:
            assert Device() is device
        assert current() != ffi.NULL
    assert current() == ffi.NULL


def test_an_exception_passes_through(device: Device, none_current: None) -> None:
    with pytest.raises(ZeroDivisionError), device:
        _ = 1 // 0
    assert current() == ffi.NULL


def test_each_thread_has_its_own(device: Device, none_current: None) -> None:
    inside, over = threading.Event(), threading.Event()
    seen = []

    def work() -> None:
        with device:  # the object of another thread
            inside.set()
            over.wait(60)
            seen.append(current() != ffi.NULL)
        seen.append(current() == ffi.NULL)

    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(60)
    assert current() == ffi.NULL
    with device:
        pass
    over.set()
    thread.join()
    assert seen == [True, True]


def test_the_end_of_a_block_that_did_not_begin_is_an_error(device: Device, none_current: None) -> None:
    def end() -> None:
        with pytest.raises(RuntimeError, match="no block that a device is current in has begun in this thread"):
            device.__exit__(None, None, None)
        ended.append(True)

    ended: list[bool] = []
    with device:
        thread = threading.Thread(target=end)
        thread.start()
        thread.join()
    assert ended == [True]


@pytest.mark.simulator_only("injects a fault")
def test_a_device_that_cannot_be_used_is_an_error_before_the_block(device: Device) -> None:
    from cuda_core_cffi import simulator

    before = current()
    with simulator.fail("cuCtxSetCurrent", "CUDA_ERROR_DEINITIALIZED"), pytest.raises(CUDAError) as caught, device:
        pytest.fail("the block ran")
    assert caught.value.call == "cuCtxSetCurrent"
    assert current() == before


@pytest.mark.simulator_only(TWO_DEVICES)
def test_another_device_is_current_in_the_block() -> None:
    text = output_of(
        """
        from cuda_core_cffi import Device
        first, second = Device(0), Device(1)
        first.set_current()
        with second:
            print(Device() is second)
            with first:
                print(Device() is first)
            print(Device() is second)
            buffer = Device().allocate(64, Device().create_stream())
            print(buffer.device_id)
        print(Device() is first)
        buffer.close()
        """,
        CUDA_SIM_DEVICES="2",
    )
    assert text.split() == ["True", "True", "True", "1", "True"]


@pytest.mark.simulator_only(TWO_DEVICES)
def test_streams_of_two_devices_wait_for_each_other() -> None:
    text = output_of(
        """
        import threading
        from cuda_core_cffi import Device
        order, opened = [], threading.Event()
        with Device(0) as first:
            producer = first.create_stream()
            producer.callback(lambda: (opened.wait(100), order.append("produced")))
            done = producer.record()
        with Device(1) as second:
            consumer = second.create_stream()
            consumer.wait(done)
            consumer.callback(lambda: order.append("consumed"))
            other = second.create_stream()
            other.wait(consumer)
            other.callback(lambda: order.append("last"))
        print(done.is_done)
        opened.set()
        with first:
            other.sync()  # of the other device than the current one
        print(*order)
        print(done.is_done, done.device is first)
        """,
        CUDA_SIM_DEVICES="2",
    )
    assert text.split("\n") == ["False", "produced consumed last", "True True"]
