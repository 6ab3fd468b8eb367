# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The two default streams: constants that stand for a stream of whichever context is current."""

from __future__ import annotations

import gc
import threading

import pytest
from helpers import Gate, output_of

from cuda_core_cffi import LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM, CUDAError, Device, Stream, live_objects

DEFAULTS = pytest.mark.parametrize(
    "default", [LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM], ids=["legacy", "ptds"]
)


def test_their_handles_are_the_drivers_tokens() -> None:
    assert LEGACY_DEFAULT_STREAM.handle == 1
    assert PER_THREAD_DEFAULT_STREAM.handle == 2


def test_they_differ() -> None:
    assert LEGACY_DEFAULT_STREAM != PER_THREAD_DEFAULT_STREAM


@DEFAULTS
def test_closing_one_does_nothing(device: Device, default: Stream) -> None:
    before = default.handle
    default.close()
    with default:
        pass
    assert not default.is_closed
    assert default.handle == before
    default.sync()


@DEFAULTS
def test_one_speaks_the_protocol(default: Stream) -> None:
    assert default.__cuda_stream__() == (0, default.handle)


@DEFAULTS
def test_a_handle_stands_for_one(default: Stream) -> None:
    assert Stream.from_handle(default.handle) == default


@DEFAULTS
def test_the_context_is_the_current_one(device: Device, default: Stream) -> None:
    assert default.context == device.context
    assert default.device is device


@DEFAULTS
def test_without_a_context_the_error_says_what_to_do(device: Device, default: Stream) -> None:
    found: list[BaseException] = []

    def use() -> None:
        for read in (lambda: default.context, lambda: default.device, default.record):
            try:
                read()
            except CUDAError as error:
                found.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert [str(error) for error in found] == [
        "cuCtxGetCurrent: no CUDA context is current in this thread; call Device(n).set_current() first"
    ] * 3


@DEFAULTS
def test_without_a_context_the_repr_still_works(device: Device, default: Stream) -> None:
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(repr(default)))
    thread.start()
    thread.join()
    assert found == [f"<Stream handle={default.handle:#x} context=unknown (CUDAError)>"]


@DEFAULTS
def test_the_repr_shows_the_current_context(device: Device, default: Stream) -> None:
    assert repr(default) == f"<Stream handle={default.handle:#x} context={device.context.handle:#x}>"


@DEFAULTS
def test_events_can_be_recorded_and_waited_for(device: Device, stream: Stream, default: Stream) -> None:
    with default.record() as event:
        stream.wait(event)
        stream.wait(default)
        default.wait(stream)
        default.sync()
        event.sync()
        assert event.is_done


@DEFAULTS
def test_one_has_the_default_priority(device: Device, default: Stream) -> None:
    assert default.priority == 0


def test_the_legacy_one_is_blocking(device: Device) -> None:
    assert LEGACY_DEFAULT_STREAM.is_nonblocking is False


def test_the_legacy_one_waits_for_blocking_streams(device: Device) -> None:
    with (
        device.create_stream(options={"nonblocking": False}) as blocking,
        Gate(blocking) as gate,
        LEGACY_DEFAULT_STREAM.record() as event,
    ):
        assert not event.is_done
        gate.open()
        event.sync()


def test_the_legacy_one_does_not_wait_for_nonblocking_streams(device: Device, stream: Stream) -> None:
    with Gate(stream), LEGACY_DEFAULT_STREAM.record() as event:
        event.sync()
        assert event.is_done


@DEFAULTS
def test_wrappers_of_one_come_and_go(device: Device, default: Stream) -> None:
    before = live_objects()
    for _ in range(10):
        Stream.from_handle(default.handle).close()
        device.create_stream(default)
    gc.collect()
    assert live_objects() == before
    default.sync()


def test_handle_0_is_the_default_stream_too(device: Device) -> None:
    stream = Stream.from_handle(0)
    assert stream.context == device.context
    stream.record().close()
    stream.sync()


@pytest.mark.simulator_only("needs two devices, whatever the machine has")
def test_context_and_device_follow_the_current_context() -> None:
    text = output_of(
        """
        from cuda_core_cffi import LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM, Device
        for ordinal in (1, 0, 1):
            Device(ordinal).set_current()
            for stream in (LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM):
                print(int(stream.device), stream.context == Device(ordinal).context)
        """,
        CUDA_SIM_DEVICES="2",
    )
    assert text.split("\n") == ["1 True"] * 2 + ["0 True"] * 2 + ["1 True"] * 2


@pytest.mark.parametrize(("value", "handle"), [(None, 1), ("0", 1), ("1", 2), ("", 1)])
def test_the_environment_says_which_is_the_default(value: str | None, handle: int) -> None:
    code = "from cuda_core_cffi import Device, lib; print(Device(0).default_stream.handle, lib.ccc_driver_per_thread())"
    assert output_of(code, CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM=value) == f"{handle} {handle - 1}"


@pytest.mark.simulator_only("traces driver calls")
@pytest.mark.parametrize(("value", "name"), [("0", "cuStreamSynchronize"), ("1", "cuStreamSynchronize_ptsz")])
def test_the_environment_says_which_variant_of_the_driver_is_called(value: str, name: str) -> None:
    code = """
        from cuda_core_cffi import Device, Stream, simulator
        Device(0).set_current()
        with simulator.trace("cuStreamSynchronize") as trace:
            Stream.from_handle(0).sync()
        print(*trace.names)
        """
    assert output_of(code, CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM=value) == name


def test_they_can_be_imported_and_shown_without_a_driver() -> None:
    text = output_of(
        """
        from cuda_core_cffi import LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM
        print(LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM.handle)
        """,
        CUDA_CORE_CFFI_DRIVER="/nonexistent/libcuda.so",
    )
    assert text == "<Stream handle=0x1 context=unknown (UnavailableError)> 2"
