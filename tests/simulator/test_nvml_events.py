# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Events of the simulated NVML, which are injected."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from ctypes import c_ulonglong
from types import ModuleType
from typing import Any

import pytest
from sim_driver import byref, c_uint, c_void_p
from sim_nvml import EventData, Nvml, SystemEvent, SystemEventSet, SystemRegistration, SystemWait

XID, CLOCK = 0x8, 0x10
UNBIND, BIND = 1, 2
NO_INSTANCE = 0xFFFFFFFF


@pytest.fixture
def events(nvml: Nvml) -> Iterator[c_void_p]:
    """A set of events, registered for errors of device 0."""
    events = c_void_p(nvml.get("nvmlEventSetCreate", kind=c_void_p))
    nvml.nvmlDeviceRegisterEvents(nvml.device(), c_ulonglong(XID), events)
    yield events
    nvml.nvmlEventSetFree(events)


@pytest.fixture
def system(nvml: Nvml) -> Iterator[c_void_p]:
    """A set of events of the system, registered for unbinding."""
    created = SystemEventSet.make()
    nvml.nvmlSystemEventSetCreate(byref(created))
    nvml.nvmlSystemRegisterEvents(byref(SystemRegistration.make(types=UNBIND, set=created.set)))
    yield c_void_p(created.set)
    nvml.nvmlSystemEventSetFree(byref(created))


def wait(nvml: Nvml, events: c_void_p, milliseconds: int = 0) -> tuple[str, EventData]:
    data = EventData()
    return nvml.status("nvmlEventSetWait_v2", events, byref(data), milliseconds), data


def test_a_wait_gets_what_was_registered(nvml: Nvml, sim: ModuleType, events: c_void_p) -> None:
    assert sim.inject_event(0, "clock", 1) == 0
    assert sim.inject_event(0, "xid_critical_error", 79) == 1
    status, data = wait(nvml, events)
    assert status == "Success"
    assert (data.device, data.type, data.data) == (nvml.device().value, XID, 79)
    assert (data.gpu_instance, data.compute_instance) == (NO_INSTANCE, NO_INSTANCE)
    assert wait(nvml, events)[0] == "Timeout"


def test_events_come_in_order(nvml: Nvml, sim: ModuleType, events: c_void_p) -> None:
    for number in range(40):
        sim.inject_event(0, "xid_critical_error", number)
    assert [wait(nvml, events)[1].data for _ in range(40)] == list(range(40))


def test_a_wait_takes_as_long_as_it_may(nvml: Nvml, events: c_void_p) -> None:
    start = time.monotonic()
    assert wait(nvml, events, 80)[0] == "Timeout"
    assert 0.07 < time.monotonic() - start < 5


def waiting(nvml: Nvml, events: c_void_p, milliseconds: int) -> tuple[threading.Thread, list[Any]]:
    """Start a thread that waits; what it gets goes into the list."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(wait(nvml, events, milliseconds)))
    thread.start()
    time.sleep(0.05)
    assert not results
    return thread, results


@pytest.mark.parametrize("milliseconds", [20000, 0xFFFFFFFF])
def test_an_event_wakes_who_waits(nvml: Nvml, sim: ModuleType, events: c_void_p, milliseconds: int) -> None:
    thread, results = waiting(nvml, events, milliseconds)
    sim.inject_event(0, "xid_critical_error", 48)
    thread.join(10)
    assert [(status, data.data) for status, data in results] == [("Success", 48)]


def test_freeing_a_set_ends_the_wait_for_it(nvml: Nvml) -> None:
    events = c_void_p(nvml.get("nvmlEventSetCreate", kind=c_void_p))
    thread, results = waiting(nvml, events, 20000)
    nvml.nvmlEventSetFree(events)
    thread.join(10)
    assert [status for status, _ in results] == ["Invalid Argument"]
    assert nvml.status("nvmlEventSetFree", events) == "Invalid Argument"
    assert wait(nvml, events)[0] == "Invalid Argument"


def test_what_cannot_happen_is_not_registered(nvml: Nvml, sim: ModuleType, events: c_void_p) -> None:
    device = nvml.device()
    supported = nvml.get("nvmlDeviceGetSupportedEventTypes", device, kind=c_ulonglong)
    assert supported & XID
    assert nvml.status("nvmlDeviceRegisterEvents", device, c_ulonglong(1 << 40), events) == "Not Supported"
    nvml.nvmlDeviceRegisterEvents(device, c_ulonglong(supported), events)
    assert sim.inject_event(0, "clock") == 1
    for arguments in ((0, "flood"), (99, "clock")):
        with pytest.raises(ValueError, match="no event"):
            sim.inject_event(*arguments)


def test_the_old_wait_writes_the_old_structure(nvml: Nvml, sim: ModuleType, events: c_void_p) -> None:
    data = EventData(gpu_instance=5)
    sim.inject_event(0, "xid_critical_error", 3)
    nvml.nvmlEventSetWait(events, byref(data), 0)
    assert (data.data, data.gpu_instance) == (3, 5)


def test_the_system_tells_of_its_driver(nvml: Nvml, sim: ModuleType, system: c_void_p) -> None:
    data = (SystemEvent * 4)()
    request = SystemWait.make(timeout=0, set=system, data=data, capacity=4)
    assert nvml.status("nvmlSystemEventSetWait", byref(request)) == "Timeout"
    assert sim.inject_event(0, "gpu_driver_bind") == 0
    assert sim.inject_event(0, "gpu_driver_unbind") == sim.inject_event(0, "gpu_driver_unbind") == 1
    nvml.nvmlSystemEventSetWait(byref(request))
    assert (request.count, data[1].type, data[1].gpu) == (2, UNBIND, nvml.get("nvmlDeviceGetBoardId", nvml.device()))


def test_sets_of_the_two_kinds_are_not_exchanged(nvml: Nvml, events: c_void_p, system: c_void_p) -> None:
    assert wait(nvml, system)[0] == "Invalid Argument"
    assert nvml.status("nvmlSystemEventSetFree", byref(SystemEventSet.make(set=events))) == "Invalid Argument"
    assert (
        nvml.status("nvmlSystemRegisterEvents", byref(SystemRegistration.make(types=BIND, set=events)))
        == "Invalid Argument"
    )
    assert nvml.status("nvmlEventSetWait_v2", events, None, 0) == "Invalid Argument"
    request = SystemWait.make(timeout=0, set=system, capacity=1)
    assert nvml.status("nvmlSystemEventSetWait", byref(request)) == "Invalid Argument"
    assert nvml.status("nvmlEventSetCreate", None) == "Invalid Argument"
    assert (
        nvml.status("nvmlDeviceRegisterEvents", nvml.device(), c_ulonglong(CLOCK), c_void_p(64)) == "Invalid Argument"
    )
    assert nvml.status("nvmlDeviceGetSupportedEventTypes", nvml.device(), None) == "Invalid Argument"
    assert nvml.status("nvmlEventSetFree", byref(c_uint())) == "Invalid Argument"
