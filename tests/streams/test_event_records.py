# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Events and streams that did the same together before: calls then take a shorter way, and mean what they meant."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from helpers import Gate, collect, in_threads

from cuda_core_cffi import CUDAError, Device, Event, EventOptions, Stream, live_objects

TIMED = EventOptions(timing_enabled=True)
TIMES = 3


@pytest.fixture
def other(device: Device) -> Iterator[Stream]:
    with device.create_stream() as stream:
        yield stream


@pytest.fixture
def event(device: Device) -> Iterator[Event]:
    with device.create_event() as event:
        yield event


@pytest.fixture
def timed(stream: Stream) -> Iterator[list[Event]]:
    """Three events, reached one after the other."""
    events = [stream.record(options=TIMED) for _ in range(3)]
    stream.sync()
    yield events
    for event in events:
        event.close()


# record


def test_an_event_is_recorded_in_the_stream_that_is_asked(stream: Stream, other: Stream, event: Event) -> None:
    for _ in range(TIMES):
        stream.record(event)
    with Gate(stream):
        for _ in range(TIMES):
            assert stream.record(event) is event
            assert not event.is_done
            assert other.record(event) is event
            other.sync()
            assert event.is_done


def test_a_new_event_is_recorded_again_in_another_stream(stream: Stream, other: Stream) -> None:
    with stream.record() as event, Gate(stream):
        other.record(event)
        other.sync()
        assert event.is_done
        stream.record(event)
        assert not event.is_done


def test_a_stream_that_recorded_before_and_is_closed_is_refused(device: Device, event: Event) -> None:
    stream = device.create_stream()
    for _ in range(TIMES):
        stream.record(event)
    stream.close()
    with pytest.raises(RuntimeError, match="this Stream is closed"):
        stream.record(event)


def test_an_event_that_was_recorded_before_and_is_closed_is_refused(device: Device, stream: Stream) -> None:
    event = device.create_event()
    for _ in range(TIMES):
        stream.record(event)
        stream.wait(event)
    event.close()
    with pytest.raises(RuntimeError, match="this Event is closed"):
        stream.record(event)
    with pytest.raises(RuntimeError, match="this Event is closed"):
        stream.wait(event)


def test_an_event_outlives_the_streams_that_recorded_it(device: Device, event: Event) -> None:
    for _ in range(20):  # new streams lie where old ones did
        stream = device.create_stream()
        with Gate(stream):
            stream.wait(event)
            stream.record(event)
            assert not event.is_done
        stream.record(event)
        stream.wait(event)
        stream.sync()
        assert event.is_done
        del stream
        collect()


def test_an_event_does_not_keep_the_stream_that_recorded_it(device: Device, event: Event) -> None:
    before = live_objects()
    stream = device.create_stream()
    for _ in range(TIMES):
        stream.record(event)
        stream.wait(event)
    assert live_objects()["stream"] == before["stream"] + 1
    del stream
    collect()
    assert live_objects() == before


def test_threads_record_one_event_each_in_its_own_stream(device: Device, stream: Stream, event: Event) -> None:
    def work(number: int) -> None:
        device.set_current()
        with device.create_stream() as own:
            for _ in range(200):
                own.record(event)
                own.wait(event)

    with Gate(stream):  # whoever records in it by mistake has an event that is not reached
        in_threads(4, work)
        assert event.is_done


@pytest.mark.simulator_only("injects a fault")
def test_a_record_that_fails_is_told_the_first_time_and_again(stream: Stream, event: Event) -> None:
    from cuda_core_cffi import simulator

    for _ in range(TIMES):
        with (
            simulator.fail("cuEventRecord", "CUDA_ERROR_LAUNCH_FAILED"),
            pytest.raises(CUDAError, match="cuEventRecord"),
        ):
            stream.record(event)
        stream.record(event)


# wait


def test_the_stream_that_is_asked_waits(stream: Stream, other: Stream, event: Event) -> None:
    for _ in range(TIMES):
        other.wait(event)
    with Gate(stream) as gate, stream.record() as reached:
        stream.record(event)
        other.wait(event)
        other.record(reached)
        assert not reached.is_done
        gate.open()
        other.sync()
        assert reached.is_done


def test_any_number_of_streams_wait_for_one_event(device: Device, stream: Stream, event: Event) -> None:
    streams = [device.create_stream() for _ in range(3)]
    for _ in range(TIMES):
        with Gate(stream) as gate:
            stream.record(event)
            for waiter in streams:
                waiter.wait(event)
            reached = [waiter.record() for waiter in streams]
            assert not any(item.is_done for item in reached)
            gate.open()
            for waiter in streams:
                waiter.sync()
            assert all(item.is_done for item in reached)
    for item in (*reached, *streams):
        item.close()


@pytest.mark.simulator_only("injects a fault")
def test_a_wait_that_fails_is_told_the_first_time_and_again(stream: Stream, event: Event) -> None:
    from cuda_core_cffi import simulator

    for _ in range(TIMES):
        with simulator.fail("cuStreamWaitEvent", "CUDA_ERROR_LAUNCH_FAILED"), pytest.raises(CUDAError):
            stream.wait(event)
        stream.wait(event)


def test_a_stream_waits_for_another_each_time(stream: Stream, other: Stream) -> None:
    for _ in range(TIMES):
        with Gate(stream) as gate:
            other.wait(stream)
            with other.record() as reached:
                assert not reached.is_done
                gate.open()
                other.sync()
                assert reached.is_done


@pytest.mark.simulator_only("reads the calls and counts the events of the driver")
def test_a_stream_keeps_the_event_that_others_wait_for(device: Device, stream: Stream) -> None:
    from cuda_core_cffi import simulator

    before = simulator.live()
    with device.create_stream() as awaited:
        with simulator.trace() as trace:
            stream.wait(awaited)
            stream.wait(awaited)
        assert [name for name in trace.names if "Event" in name] == [
            "cuEventCreate", "cuEventRecord", "cuStreamWaitEvent", "cuEventRecord", "cuStreamWaitEvent"
        ]  # fmt: skip
    assert simulator.live() == before


@pytest.mark.simulator_only("injects a fault")
@pytest.mark.parametrize("function", ["cuEventCreate", "cuEventRecord", "cuStreamWaitEvent"])
def test_a_wait_for_a_stream_that_fails_is_told_and_loses_nothing(
    device: Device, stream: Stream, function: str
) -> None:
    from cuda_core_cffi import simulator

    before = simulator.live()
    with device.create_stream() as awaited:
        with simulator.fail(function, "CUDA_ERROR_LAUNCH_FAILED"), pytest.raises(CUDAError, match=function):
            stream.wait(awaited)
        stream.wait(awaited)
    assert simulator.live() == before


def test_streams_wait_for_each_other_in_a_capture_and_after_it(device: Device, stream: Stream, other: Stream) -> None:
    other.wait(stream)
    stream.wait(other)
    with stream.create_graph_builder() as builder:
        builder.begin_building()
        other.wait(stream)
        stream.wait(other)
        builder.end_building()
    with Gate(stream) as gate:
        other.wait(stream)
        with other.record() as reached:
            assert not reached.is_done
            gate.open()
            other.sync()
    stream.sync()


def test_threads_wait_for_one_stream(device: Device, stream: Stream) -> None:
    def work(number: int) -> None:
        device.set_current()
        with device.create_stream() as own:
            for _ in range(200):
                own.wait(stream)
            own.sync()

    in_threads(4, work)


# elapsed time


def test_times_are_taken_from_the_event_that_is_named(timed: list[Event]) -> None:
    first, second, third = timed
    for _ in range(TIMES):
        assert third - second <= third - first
        assert first - third == -(third - first)
        assert second - second == 0


def test_times_are_those_of_the_last_records(stream: Stream, timed: list[Event]) -> None:
    start, end, _ = timed
    for _ in range(TIMES):
        stream.record(end)
        stream.record(start)
        stream.sync()
        assert end - start <= 0
        stream.record(end)
        stream.sync()
        assert end - start >= 0


@pytest.mark.parametrize("closed", [0, 1])
def test_no_time_is_taken_from_closed_events(timed: list[Event], closed: int) -> None:
    start, end, _ = timed
    for _ in range(TIMES):
        assert end - start >= 0
    timed[closed].close()
    with pytest.raises(RuntimeError, match="this Event is closed"):
        assert end - start


def test_what_is_like_an_event_is_none(stream: Stream, timed: list[Event]) -> None:
    class Unlike:
        _c_handle = _recorder = _waiter = None

    for thing in (Unlike(), object(), 1):
        with pytest.raises(TypeError, match="event must be an Event"):
            stream.record(thing)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="wait needs a Stream"):
            stream.wait(thing)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="unsupported operand"):
            assert timed[0] - thing


def test_streams_and_numbers_are_not_subtracted(stream: Stream, timed: list[Event]) -> None:
    for thing in (stream, 1.0, None):
        with pytest.raises(TypeError, match="unsupported operand"):
            assert timed[0] - thing
        with pytest.raises(TypeError, match="unsupported operand"):
            assert thing - timed[0]  # type: ignore[operator]
    with pytest.raises(TypeError, match="unsupported operand"):
        assert stream - stream  # type: ignore[operator]


@pytest.mark.simulator_only("injects a fault")
def test_a_time_that_cannot_be_had_is_told_the_first_time_and_again(timed: list[Event]) -> None:
    from cuda_core_cffi import simulator

    for _ in range(TIMES):
        with simulator.fail("cuEventElapsedTime_v2", "CUDA_ERROR_LAUNCH_FAILED"), pytest.raises(CUDAError):
            assert timed[1] - timed[0]
        assert timed[1] - timed[0] >= 0
