# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Events: points in a stream, and the time between them."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from helpers import Gate

from cuda_core_cffi import CUDAError, Device, Event, EventOptions, Stream, ffi, lib, live_objects
from cuda_core_cffi._core import calls

TIMED = EventOptions(timing_enabled=True)


@pytest.fixture
def event(device: Device) -> Iterator[Event]:
    with device.create_event() as event:
        yield event


# making one


def test_it_cannot_be_constructed() -> None:
    with pytest.raises(RuntimeError, match=r"use Stream\.record or Device\.create_event"):
        Event()


def test_a_subclass_cannot_be_constructed_either() -> None:
    class Special(Event):
        pass

    with pytest.raises(RuntimeError, match="Special cannot be constructed directly"):
        Special(1, option=2)


def test_the_defaults_are_neither_timing_nor_blocking(event: Event) -> None:
    assert event.is_timing_enabled is False
    assert event.is_blocking_sync is False


@pytest.mark.parametrize("as_mapping", [True, False])
@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("blocking", [True, False])
def test_options_are_honoured(device: Device, stream: Stream, timed: bool, blocking: bool, as_mapping: bool) -> None:
    mapping = {"timing_enabled": timed, "blocking_sync": blocking}
    options = mapping if as_mapping else EventOptions(**mapping)
    with device.create_event(options) as made, stream.record(options=options) as recorded:
        for event in (made, recorded):
            assert (event.is_timing_enabled, event.is_blocking_sync) == (timed, blocking)


def test_the_driver_gets_the_flags_of_the_options() -> None:
    from cuda_core_cffi._streams.event import DEFAULT_FLAGS, event_flags

    assert event_flags(EventOptions()) == DEFAULT_FLAGS == lib.CU_EVENT_DISABLE_TIMING
    assert event_flags(TIMED) == lib.CU_EVENT_DEFAULT
    assert event_flags(EventOptions(True, True)) == lib.CU_EVENT_BLOCKING_SYNC


@pytest.mark.parametrize(
    "make", [Device.create_event, lambda device, options: device.default_stream.record(None, options)]
)
def test_an_unknown_option_is_refused(device: Device, make: Any) -> None:
    with pytest.raises(TypeError, match="EventOptions has no option 'timing'; did you mean 'timing_enabled'"):
        make(device, {"timing": True})


@pytest.mark.parametrize("options", [1, "timed", [True]], ids=repr)
def test_options_must_be_options(device: Device, options: Any) -> None:
    with pytest.raises(TypeError, match="options must be EventOptions, a mapping or None"):
        device.create_event(options)


def test_options_are_unhashable() -> None:
    with pytest.raises(TypeError):
        hash(EventOptions())


# what it tells


def test_its_handles_agree(event: Event) -> None:
    assert type(event.handle) is int
    assert event.handle == int(ffi.cast("uintptr_t", event.cdata)) != 0
    assert ffi.typeof(event.cdata) is ffi.typeof("CUevent")


def test_its_repr_shows_the_handle(event: Event) -> None:
    assert repr(event) == f"<Event handle={event.handle:#x}>"


def test_it_knows_its_device_and_context(device: Device, event: Event) -> None:
    assert event.device is device
    assert event.context == device.context


def test_one_never_recorded_is_done(event: Event) -> None:
    assert event.is_done is True
    event.sync()


def test_it_is_done_when_the_work_before_it_is(stream: Stream, event: Event) -> None:
    with Gate(stream) as gate:
        stream.record(event)
        assert event.is_done is False
        gate.open()
        event.sync()
        assert event.is_done is True


def test_recording_again_moves_it(stream: Stream, event: Event) -> None:
    stream.record(event)
    event.sync()
    with Gate(stream):
        stream.record(event)
        assert not event.is_done


def test_it_works_in_a_thread_without_a_context(stream: Stream, event: Event) -> None:
    results: list[Any] = []

    def use() -> None:
        stream.record(event)
        event.sync()
        results.append(event.is_done)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert results == [True]


@pytest.mark.parametrize("blocking", [True, False])
def test_sync_waits(device: Device, stream: Stream, blocking: bool) -> None:
    with device.create_event({"blocking_sync": blocking}) as event, Gate(stream) as gate:
        stream.record(event)
        start = time.perf_counter()
        threading.Timer(0.1, gate.open).start()
        event.sync()
        assert time.perf_counter() - start >= 0.09


# time


def test_the_difference_is_milliseconds(device: Device, stream: Stream) -> None:
    with device.create_event(TIMED) as start, device.create_event(TIMED) as end:
        stream.record(start)
        start.sync()  # a device that others use as well may record it late
        with Gate(stream) as gate:
            stream.record(end)
            time.sleep(0.05)
            gate.open()
            end.sync()
        elapsed = end - start
        assert isinstance(elapsed, float)
        assert 40 < elapsed < 20_000
        assert start - end == pytest.approx(-elapsed, rel=1e-3)


def test_an_event_is_no_time_from_itself(stream: Stream) -> None:
    with stream.record(options=TIMED) as event:
        event.sync()
        assert event - event == 0.0


def test_events_of_two_streams_can_be_compared(device: Device, stream: Stream) -> None:
    with device.create_stream() as other, stream.record(options=TIMED) as start:
        other.wait(start)
        with other.record(options=TIMED) as end:
            end.sync()
            assert end - start >= 0


@pytest.mark.parametrize("timed", [(False, False), (True, False), (False, True)])
def test_untimed_events_have_no_difference(stream: Stream, timed: tuple[bool, bool]) -> None:
    start, end = (stream.record(options={"timing_enabled": item}) for item in timed)
    with start, end:
        stream.sync()
        with pytest.raises(RuntimeError, match=r"both events must be created with EventOptions\(timing_enabled=True\)"):
            _ = end - start


@pytest.mark.parametrize("recorded", ["start", "end", "none"])
def test_events_that_were_not_recorded_have_no_difference(device: Device, stream: Stream, recorded: str) -> None:
    with device.create_event(TIMED) as start, device.create_event(TIMED) as end:
        if recorded != "none":
            stream.record(start if recorded == "start" else end).sync()
        with pytest.raises(RuntimeError, match="never recorded"):
            _ = end - start


def test_unfinished_events_have_no_difference(stream: Stream) -> None:
    with stream.record(options=TIMED) as start, Gate(stream), stream.record(options=TIMED) as end:
        start.sync()
        with pytest.raises(RuntimeError, match="not been reached yet"):
            _ = end - start


def test_the_drivers_error_is_the_cause(device: Device) -> None:
    with device.create_event(TIMED) as start, device.create_event(TIMED) as end:
        with pytest.raises(RuntimeError) as caught:
            _ = end - start
        assert isinstance(caught.value.__cause__, CUDAError)
        assert caught.value.__cause__.call == "cuEventElapsedTime"


@pytest.mark.parametrize("closed", ["start", "end"])
def test_a_closed_event_has_no_difference(stream: Stream, closed: str) -> None:
    with stream.record(options=TIMED) as start, stream.record(options=TIMED) as end:
        (start if closed == "start" else end).close()
        with pytest.raises(RuntimeError, match="this Event is closed"):
            _ = end - start


@pytest.mark.parametrize("other", [0, 1.0, None, "event", Device(0).default_stream], ids=repr)
def test_only_events_can_be_subtracted(event: Event, other: Any) -> None:
    with pytest.raises(TypeError, match=f"for -: 'Event' and '{type(other).__name__}'"):
        _ = event - other
    with pytest.raises(TypeError, match=f"for -: '{type(other).__name__}' and 'Event'"):
        _ = other - event
    with pytest.raises(TypeError, match=f"for -=: 'Event' and '{type(other).__name__}'"):
        event -= other


def test_other_types_may_subtract_an_event_in_their_way(event: Event) -> None:
    class Other:
        def __sub__(self, other: object) -> tuple[str, object]:
            return "less", other

        def __rsub__(self, other: object) -> tuple[str, object]:
            return "from", other

    subtracted: Any = event - Other()
    assert subtracted == ("from", event)
    assert Other() - event == ("less", event)


def test_an_event_without_a_handle_has_no_difference(event: Event) -> None:
    empty = Event.__new__(Event)
    for start, end in ((event, empty), (empty, event), (empty, empty)):
        with pytest.raises((TypeError, AttributeError)):
            _ = end - start


def test_subclasses_have_differences_as_events_have(stream: Stream) -> None:
    class Plain(Event):
        pass

    class Seconds(Event):
        def __sub__(self, other: object) -> float:
            return super().__sub__(other) / 1000

        def __rsub__(self, other: Any) -> float:
            return -self.__sub__(other)

    with stream.record(options=TIMED) as start, stream.record(options=TIMED) as end:
        stream.sync()
        elapsed = end - start
        for same in (calls.make(Plain, lib.ccc_view, end._c_handle), calls.make(Plain, lib.ccc_view, start._c_handle)):
            assert same - start == end - start - (end - same)
            assert start - same == -(same - start)
            assert same - same == 0
        in_seconds = calls.make(Seconds, lib.ccc_view, start._c_handle)
        assert in_seconds - end == -elapsed / 1000
        assert end - in_seconds == elapsed / 1000
        in_seconds.close()
        with pytest.raises(RuntimeError, match="this Seconds is closed"):
            _ = in_seconds - end


@pytest.mark.simulator_only("injects a fault")
def test_another_error_of_the_clock_stays_a_driver_error(stream: Stream) -> None:
    from cuda_core_cffi import simulator

    with stream.record(options=TIMED) as event:
        event.sync()
        with (
            simulator.fail("cuEventElapsedTime", "CUDA_ERROR_UNKNOWN"),
            pytest.raises(CUDAError, match="cuEventElapsedTime failed: CUDA_ERROR_UNKNOWN"),
        ):
            _ = event - event


# equality, closing, life


def test_it_is_equal_to_itself_only(device: Device, event: Event) -> None:
    with device.create_event() as other:
        assert event == event
        assert event != other
        assert event != event.handle
        assert len({event, other, event}) == 2


def test_a_closed_one_stays_equal_to_itself(device: Device) -> None:
    event = device.create_event()
    before = hash(event)
    event.close()
    assert event in [event]
    assert hash(event) == before


def test_an_event_is_unequal_to_a_stream_of_the_same_handle(event: Event) -> None:
    assert event != Stream.from_handle(event.handle)


def test_closing_twice_is_allowed(device: Device) -> None:
    event = device.create_event()
    event.close()
    event.close()
    assert event.is_closed
    assert event.handle == 0
    assert event.cdata == ffi.NULL


def test_with_closes_it(device: Device) -> None:
    with device.create_event() as event:
        assert not event.is_closed
    assert event.is_closed


@pytest.mark.parametrize(
    "use",
    [
        lambda event: event.sync(),
        lambda event: event.is_done,
        lambda event: event.context,
        lambda event: event.device,
        lambda event: event - event,
        lambda event: Device(0).default_stream.record(event),
        lambda event: Device(0).default_stream.wait(event),
    ],
)
def test_use_of_a_closed_one_says_so(device: Device, use: Any) -> None:
    event = device.create_event()
    event.close()
    with pytest.raises(RuntimeError, match="this Event is closed"):
        use(event)


def test_the_options_of_a_closed_one_are_still_known(device: Device) -> None:
    event = device.create_event(TIMED)
    event.close()
    assert event.is_timing_enabled is True


def test_it_can_be_weakly_referenced(device: Device) -> None:
    event = device.create_event()
    reference = weakref.ref(event)
    assert reference() is event
    del event
    gc.collect()
    assert reference() is None


def test_collecting_it_destroys_the_event(stream: Stream) -> None:
    before = live_objects()["event"]
    event = stream.record()
    assert live_objects()["event"] == before + 1
    del event
    gc.collect()
    assert live_objects()["event"] == before


def test_it_can_be_closed_before_it_is_reached(stream: Stream) -> None:
    with Gate(stream):
        stream.record().close()


@pytest.mark.simulator_only("injects faults")
@pytest.mark.parametrize("call", ["cuEventCreate", "cuEventRecord"])
def test_a_record_that_fails_leaves_nothing_behind(stream: Stream, call: str) -> None:
    from cuda_core_cffi import simulator

    before = live_objects()
    with (
        simulator.fail(call, "CUDA_ERROR_OUT_OF_MEMORY"),
        pytest.raises(CUDAError, match=f"{call} failed: CUDA_ERROR_OUT_OF_MEMORY"),
    ):
        stream.record()
    assert live_objects() == before


@pytest.mark.simulator_only("injects faults")
@pytest.mark.parametrize("call", ["cuEventCreate", "cuEventRecord", "cuStreamWaitEvent"])
def test_a_wait_that_fails_leaves_nothing_behind(device: Device, stream: Stream, call: str) -> None:
    from cuda_core_cffi import simulator

    before = simulator.live()
    with (
        simulator.fail(call, "CUDA_ERROR_OUT_OF_MEMORY"),
        pytest.raises(CUDAError, match=f"{call} failed: CUDA_ERROR_OUT_OF_MEMORY"),
    ):
        stream.wait(device.default_stream)
    assert simulator.live() == before
