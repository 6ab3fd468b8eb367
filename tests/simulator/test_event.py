# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest
from sim_driver import DISABLE_TIMING, NON_BLOCKING, Driver, byref, c_float, c_void_p, time


def elapsed(cu: Driver, start: c_void_p, end: c_void_p) -> str | float:
    value = c_float()
    status = cu.status("cuEventElapsedTime", byref(value), start, end)
    assert status == cu.status("cuEventElapsedTime_v2", byref(c_float()), start, end)
    return value.value if status == "SUCCESS" else status


def test_an_event_never_recorded_is_done_but_has_no_time(cu: Driver) -> None:
    one, two = cu.event(), cu.event()
    cu.cuEventQuery(one)
    cu.cuEventSynchronize(one)
    cu.cuStreamWaitEvent(None, one, 0)
    assert elapsed(cu, one, two) == "INVALID_HANDLE"
    cu.cuEventRecord(one, None)
    assert elapsed(cu, one, two) == "INVALID_HANDLE"
    for event in (one, two):
        cu.cuEventDestroy_v2(event)


def test_an_event_is_done_when_the_work_before_it_is(cu: Driver) -> None:
    stream, start, end = cu.stream(), cu.event(), cu.event()
    cu.cuEventRecord(start, stream)
    cu.cuEventQuery(start)
    gate = cu.block(stream)
    cu.cuEventRecord(end, stream)
    assert cu.status("cuEventQuery", end) == "NOT_READY"
    assert elapsed(cu, start, end) == "NOT_READY"
    time.sleep(0.02)
    gate.open()
    cu.cuEventSynchronize(end)
    milliseconds = elapsed(cu, start, end)
    assert isinstance(milliseconds, float)
    assert milliseconds >= 20
    assert elapsed(cu, end, start) == pytest.approx(-milliseconds)
    for event in (start, end):
        cu.cuEventDestroy_v2(event)
    cu.cuStreamDestroy_v2(stream)


def test_events_order_streams(cu: Driver) -> None:
    first, second, event, order = cu.stream(NON_BLOCKING), cu.stream(NON_BLOCKING), cu.event(DISABLE_TIMING), []
    gate = cu.block(first)
    cu.launch(first, lambda: order.append("first"))
    cu.cuEventRecord(event, first)
    cu.cuStreamWaitEvent(second, event, 0)
    cu.launch(second, lambda: order.append("second"))
    # The wait is for the recording at the time of the call: a later one does not matter.
    cu.launch(first, lambda: order.append("third"))
    cu.cuEventRecord(event, first)
    assert cu.status("cuStreamQuery", second) == "NOT_READY"
    gate.open()
    cu.cuStreamSynchronize(second)
    cu.cuStreamSynchronize(first)
    assert order.index("first") < order.index("second")
    cu.cuEventDestroy_v2(event)
    for stream in (first, second):
        cu.cuStreamDestroy_v2(stream)


def test_chains_of_waits_through_many_streams(cu: Driver) -> None:
    streams, events, order = [cu.stream(NON_BLOCKING) for _ in range(50)], [cu.event() for _ in range(50)], []
    gate = cu.block(streams[0])
    for number, (stream, event) in enumerate(zip(streams, events, strict=True)):
        if number:
            cu.cuStreamWaitEvent(stream, events[number - 1], 0)
        cu.launch(stream, lambda number=number: order.append(number))
        cu.cuEventRecord(event, stream)
    gate.open()
    cu.cuEventSynchronize(events[-1])
    assert order == list(range(50))
    for event in events:
        cu.cuEventDestroy_v2(event)
    for stream in streams:
        cu.cuStreamDestroy_v2(stream)


def test_an_event_outlives_its_stream_and_a_wait_its_event(cu: Driver) -> None:
    first, second, event, order = cu.stream(), cu.stream(NON_BLOCKING), cu.event(), []
    gate = cu.block(first)
    cu.cuEventRecord(event, first)
    cu.cuStreamDestroy_v2(first)
    cu.cuStreamWaitEvent(second, event, 0)
    cu.cuEventDestroy_v2(event)
    cu.launch(second, lambda: order.append("after"))
    assert order == []
    gate.open()
    cu.cuStreamSynchronize(second)
    assert order == ["after"]
    cu.cuStreamDestroy_v2(second)


def test_events_without_timing_have_no_time(cu: Driver) -> None:
    timed, untimed = cu.event(), cu.event(DISABLE_TIMING)
    for event in (timed, untimed):
        cu.cuEventRecord(event, None)
        cu.cuEventSynchronize(event)
    assert elapsed(cu, timed, untimed) == "INVALID_HANDLE"
    for event in (timed, untimed):
        cu.cuEventDestroy_v2(event)


def test_misuse_of_events(cu: Driver) -> None:
    assert cu.status("cuEventCreate", byref(c_void_p()), 4) == "INVALID_VALUE"
    assert cu.status("cuEventCreate", byref(c_void_p()), 64) == "INVALID_VALUE"
    assert cu.status("cuEventCreate", None, 0) == "INVALID_VALUE"
    for handle in (None, 0x1234):
        assert cu.status("cuEventQuery", c_void_p(handle)) == "INVALID_HANDLE"
        assert cu.status("cuEventRecord", c_void_p(handle), None) == "INVALID_HANDLE"
        assert cu.status("cuEventDestroy_v2", c_void_p(handle)) == "INVALID_HANDLE"
    event = cu.event()
    assert cu.status("cuEventRecordWithFlags", event, None, 8) == "INVALID_VALUE"
    assert cu.status("cuEventRecordWithFlags", event, None, 1) == "ILLEGAL_STATE"
    assert cu.status("cuStreamWaitEvent", None, event, 8) == "INVALID_VALUE"
    cu.cuEventDestroy_v2(event)
    assert cu.status("cuEventQuery", event) == "CONTEXT_IS_DESTROYED"
    assert cu.status("cuEventDestroy_v2", event) == "CONTEXT_IS_DESTROYED"
