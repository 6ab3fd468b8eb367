# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Events of devices and of the system: registered, waited for, freed."""

from __future__ import annotations

import copy
import gc
import signal
import subprocess
import sys
import threading
import time

import pytest
from helpers import LIMIT, child_environment, system_events_or_skip, take_interrupts, ticks_during

from cuda_core_cffi import system
from cuda_core_cffi.system import _events
from cuda_core_cffi.system._library import nvml
from cuda_core_cffi.system.typing import EventType

SUCCESS, TIMEOUT = nvml.nvmlReturn_t.NVML_SUCCESS, nvml.nvmlReturn_t.NVML_ERROR_TIMEOUT


@pytest.fixture
def device() -> system.Device:
    return system.Device(index=0)


# A device that others use changes its clocks, and its performance state, at any time.
COMMON = ("clock", "pstate", "xid_critical_error")  # kernels of other tests, which fail, make the last


@pytest.fixture(scope="module")
def supported() -> list[EventType]:
    """Events that no test makes happen, without those that the device tells of at once, or again and again."""
    device = system.Device(index=0)
    found = [item for item in device.get_supported_event_types() if item not in COMMON]
    heard: EventType | None = None
    while found:
        with device.register_events(found) as events:
            try:
                heard = events.wait(timeout_ms=400).event_type
            except system.TimeoutError:
                return found
        if heard not in found:
            break
        found.remove(heard)
    pytest.skip(f"the device records no events that it does not tell of all the time, such as {heard}")


def test_a_wait_without_events_times_out(device, supported) -> None:
    with device.register_events(supported) as events:
        begin = time.monotonic()
        with pytest.raises(system.TimeoutError, match="nvmlEventSetWait_v2 failed: NVML_ERROR_TIMEOUT") as caught:
            events.wait(timeout_ms=250)
        assert time.monotonic() - begin > 0.2
    assert isinstance(caught.value, system.NvmlError)


def test_one_event_is_a_text_a_member_or_a_list(device, supported) -> None:
    for events in (supported[0], str(supported[0]), [supported[0]], (str(supported[0]),)):
        device.register_events(events).close()


@pytest.mark.parametrize(
    ("events", "error"), [("explosion", ValueError), (["pstate", "x"], ValueError), (3, TypeError), ([], ValueError)]
)
def test_what_is_no_event_is_refused(device, events, error) -> None:
    with pytest.raises(error, match="events"):
        device.register_events(events)
    with pytest.raises(error, match="events"):
        system.register_events(events)


@pytest.mark.parametrize(
    ("timeout", "error"), [("1", TypeError), (1.5, TypeError), (True, TypeError), (-1, ValueError)]
)
def test_a_wrong_timeout_is_refused(device, supported, timeout, error) -> None:
    with device.register_events(supported) as events, pytest.raises(error, match="timeout_ms"):
        events.wait(timeout)


def test_a_closed_set_is_told(device, supported) -> None:
    with device.register_events(supported) as events:
        assert not events.is_closed
        assert "open" in repr(events)
    assert events.is_closed
    assert "closed" in repr(events)
    events.close()
    with pytest.raises(RuntimeError, match="the event set is closed"):
        events.wait(timeout_ms=1)
    with pytest.raises(RuntimeError, match="the event set is closed"), events:
        pass


def counted(events) -> list[int]:
    """Return a list that gets the handles that are freed."""
    freed: list[int] = []
    free = events._free
    events._free = lambda handle: (freed.append(handle), free(handle))
    return freed


@pytest.mark.parametrize("end", ["close", "garbage", "both"])
def test_a_set_is_freed_once(device, supported, end) -> None:
    events = device.register_events(supported)
    freed, handle = counted(events), events._handle
    if end != "garbage":
        events.close()
    del events
    gc.collect()
    gc.collect()
    assert freed == [handle]


def test_a_set_that_cannot_be_registered_is_freed(device, supported, monkeypatch) -> None:
    freed: list[int] = []
    free = nvml.nvmlEventSetFree

    def register(*arguments):
        return (nvml.nvmlReturn_t.NVML_ERROR_NOT_SUPPORTED,)

    register.__name__ = "nvmlDeviceRegisterEvents"
    monkeypatch.setattr(nvml, "nvmlDeviceRegisterEvents", register)
    monkeypatch.setattr(nvml, "nvmlEventSetFree", lambda handle: (freed.append(handle), free(handle)))
    with pytest.raises(system.NotSupportedError, match="nvmlDeviceRegisterEvents") as caught:
        device.register_events(supported)
    assert len(freed) == 1, "at once, although the traceback refers to the set"
    del caught
    gc.collect()
    assert len(freed) == 1


def test_a_set_is_not_copied(device, supported) -> None:
    with device.register_events(supported) as events:
        for action in (copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="DeviceEvents cannot be pickled or copied"):
                action(events)


def test_a_wait_lets_other_threads_run(device, supported) -> None:
    def wait() -> None:
        with device.register_events(supported) as events, pytest.raises(system.TimeoutError):
            events.wait(timeout_ms=300)

    assert ticks_during(wait) > 20


def test_a_close_in_another_thread_ends_an_endless_wait(device, supported) -> None:
    events = device.register_events(supported)
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            events.wait()
        except RuntimeError as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.05)
    events.close()
    thread.join(LIMIT)
    assert str(errors.pop()) == "the event set is closed"


@pytest.mark.parametrize("whose", ["device", "system"])
def test_ctrl_c_ends_an_endless_wait(whose, request) -> None:
    if whose == "system":
        request.getfixturevalue("system_events")  # which skips where there are none
        wait = "system.register_events('bind')"
    else:
        wait = f"device.register_events({[str(item) for item in request.getfixturevalue('supported')]})"
    code = (
        "from cuda_core_cffi import system; device = system.Device(index=0)\n"
        "try:\n"
        f"    with {wait} as events:\n"
        "        print('waiting', flush=True)\n"
        "        events.wait()\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', events.is_closed)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        env=child_environment(),
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=take_interrupts,
    )
    try:
        assert child.stdout.readline() == "waiting\n"
        time.sleep(0.15)
        begin = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.communicate(timeout=LIMIT)[0] == "interrupted True\n"
        assert time.monotonic() - begin < LIMIT / 10
    finally:
        child.kill()
        child.wait()


def test_a_long_wait_is_made_of_short_ones(device, supported, monkeypatch) -> None:
    waits: list[int] = []

    def wait(handle, timeout_ms):
        waits.append(timeout_ms)
        time.sleep(timeout_ms / 1000)
        return (SUCCESS, nvml.nvmlEventData_t()) if len(waits) == 4 else (TIMEOUT, None)

    monkeypatch.setattr(nvml, "nvmlEventSetWait_v2", wait)
    with device.register_events(supported) as events:
        events.wait(timeout_ms=0)
        assert waits == [_events.SLICE_MS] * 4
        del waits[:]
        with pytest.raises(system.TimeoutError):
            events.wait(timeout_ms=150)
        assert waits[0] == 100
        assert 0 < sum(waits[1:]) <= 51


def test_an_event_says_what_happened(device) -> None:
    xid = nvml.nvmlEventTypeXidCriticalError
    record = nvml.nvmlEventData_t(
        device=device._handle, eventType=xid, eventData=79, gpuInstanceId=2**32 - 1, computeInstanceId=3
    )
    event = _events.EventData(record)
    assert event.device == device
    assert event.event_type is EventType.XID_CRITICAL_ERROR
    assert (event.event_data, event.gpu_instance_id, event.compute_instance_id) == (79, 2**32 - 1, 3)
    assert "xid_critical_error" in repr(event)


@pytest.mark.parametrize("name", ["event_data", "gpu_instance_id", "compute_instance_id"])
def test_only_an_xid_has_a_number(name) -> None:
    event = _events.EventData(nvml.nvmlEventData_t(eventType=nvml.nvmlEventTypeClock))
    with pytest.raises(ValueError, match=f"{name} is told of xid_critical_error only, not of clock"):
        getattr(event, name)


def test_an_event_that_is_not_known_is_none() -> None:
    assert _events.EventData(nvml.nvmlEventData_t(eventType=1 << 60)).event_type is EventType.NONE


# The system


@pytest.fixture
def system_events():
    with system_events_or_skip(["bind", "unbind"]) as events:
        yield events


def test_a_wait_without_events_of_the_system_times_out(system_events) -> None:
    with pytest.raises(system.TimeoutError, match="nvmlSystemEventSetWait failed"):
        system_events.wait(timeout_ms=150, buffer_size=4)


@pytest.mark.parametrize(("size", "error"), [(0, ValueError), (-1, ValueError), ("1", TypeError)])
def test_a_wrong_buffer_size_is_refused(system_events, size, error) -> None:
    with pytest.raises(error, match="buffer_size"):
        system_events.wait(timeout_ms=1, buffer_size=size)


def test_a_set_of_the_system_is_freed_once(system_events) -> None:
    freed, handle = counted(system_events), system_events._handle
    system_events.close()
    system_events.close()
    assert freed == [handle]
    with pytest.raises(RuntimeError, match="the event set is closed"):
        system_events.wait(timeout_ms=1)


def test_events_of_the_system_say_what_happened(device) -> None:
    pci = device.pci_info
    gpu_id = pci.domain << 16 | pci.bus << 8 | pci.device
    records = [
        nvml.nvmlSystemEventData_v1_t(eventType=number, gpuId=gpu_id)
        for number in (nvml.nvmlSystemEventTypeGpuDriverBind, nvml.nvmlSystemEventTypeGpuDriverUnbind)
    ]
    events = _events.SystemEvents(records)
    assert [event.event_type for event in events] == ["bind", "unbind"]
    assert (len(events), events[-1].event_type, events[0].gpu_id) == (2, "unbind", gpu_id)
    assert events[0].device == device
    with pytest.raises(IndexError, match="event 2 is out of range"):
        _ = events[2]
    unknown = _events.SystemEvent(nvml.nvmlSystemEventData_v1_t(eventType=64))
    with pytest.raises(ValueError, match="64 is no system event"):
        _ = unknown.event_type


def test_a_gpu_id_is_an_address() -> None:
    from cuda_core_cffi.system._pci import bus_id_of_gpu_id

    assert bus_id_of_gpu_id(0x12345678) == "00001234:56:78.0"
