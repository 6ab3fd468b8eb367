# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Events that several processes share."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from multiprocessing.reduction import ForkingPickler

import ipc_child
import pytest
from helpers import Gate, output_of
from ipc_child import Child

from cuda_core_cffi import CUDAError, Device, Event, EventOptions, Stream
from cuda_core_cffi._core.descriptors import seal
from cuda_core_cffi._streams.event import IPCEventDescriptor

SHARED = EventOptions(ipc_enabled=True)


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    """Return another process, one for all these tests: starting one takes long."""
    with Child() as child:
        yield child


@pytest.fixture
def event(device: Device) -> Iterator[Event]:
    with device.create_event(SHARED) as event:
        yield event


# one process


def test_an_event_is_for_this_process_alone_by_default(device: Device) -> None:
    with device.create_event() as event:
        assert event.is_ipc_enabled is False
        with pytest.raises(RuntimeError, match=r"EventOptions\(ipc_enabled=True\)"):
            event.ipc_descriptor  # noqa: B018


def test_options_make_it_shareable(device: Device, stream: Stream, event: Event) -> None:
    with stream.record(options=SHARED) as recorded:
        assert (event.is_ipc_enabled, recorded.is_ipc_enabled) == (True, True)
    assert event.is_timing_enabled is False


def test_sharing_excludes_timing(device: Device) -> None:
    with pytest.raises(TypeError, match="timing_enabled excludes ipc_enabled"):
        device.create_event({"ipc_enabled": True, "timing_enabled": True})


def test_a_descriptor_names_its_event(device: Device, event: Event) -> None:
    with device.create_event(SHARED) as other:
        assert event.ipc_descriptor == event.get_ipc_descriptor()
        assert event.ipc_descriptor != other.ipc_descriptor
        assert event.ipc_descriptor != 1


def test_a_descriptor_can_be_pickled(event: Event) -> None:
    descriptor = event.ipc_descriptor
    assert pickle.loads(pickle.dumps(descriptor)) == descriptor


def test_a_descriptor_is_not_made_by_hand() -> None:
    with pytest.raises(RuntimeError, match=r"use Event\.ipc_descriptor"):
        IPCEventDescriptor(bytes(64))


def test_a_descriptor_is_not_hashable(event: Event) -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(event.ipc_descriptor)


def test_a_closed_event_has_no_descriptor(device: Device) -> None:
    event = device.create_event(SHARED)
    event.close()
    with pytest.raises(RuntimeError, match="this Event is closed"):
        event.get_ipc_descriptor()


def test_an_event_is_not_pickled_outside_of_multiprocessing(event: Event) -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(event)


def test_an_event_of_this_process_alone_is_not_sent(device: Device, event: Event) -> None:
    with device.create_event() as private, pytest.raises(RuntimeError, match="is not for other processes"):
        ForkingPickler.dumps(private)


@pytest.mark.parametrize("payload", [b"", bytes(64), bytes(67), bytes(69)], ids=len)
def test_a_payload_of_another_length_is_refused(payload: bytes) -> None:
    with pytest.raises(ValueError, match=rf"must have 68 bytes, not {len(payload)}"):
        IPCEventDescriptor._create(payload, False, 0)


@pytest.mark.parametrize(
    "parts", [("x" * 68, False, 0), (seal(bytes(64)), 0, 0), (seal(bytes(64)), False, "0")], ids=repr
)
def test_parts_of_other_types_are_refused(parts: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        IPCEventDescriptor._create(*parts)


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="999"):
        Event.from_ipc_descriptor(IPCEventDescriptor._create(seal(bytes(64)), False, 999))


def test_only_a_descriptor_makes_an_event() -> None:
    with pytest.raises(TypeError, match="must be an IPCEventDescriptor, not bytes"):
        Event.from_ipc_descriptor(bytes(64))


def test_an_event_is_not_imported_where_it_was_created(event: Event) -> None:
    with pytest.raises(CUDAError, match="cuIpcOpenEventHandle"):
        Event.from_ipc_descriptor(event.ipc_descriptor)


def test_a_program_that_shares_nothing_does_not_import_multiprocessing() -> None:
    code = """
        import sys
        from cuda_core_cffi import Device
        Device(0).set_current()
        Device(0).create_event().close()
        print("multiprocessing" in sys.modules)
        """
    assert output_of(code) == "False"


# several processes


def test_an_imported_event_knows_what_it_is(child: Child, device: Device) -> None:
    with device.create_event({"ipc_enabled": True, "blocking_sync": True}) as event:
        assert child(ipc_child.describe_event, event) == (True, False, True, device.device_id)


def test_a_record_in_one_process_holds_up_a_stream_of_the_other(child: Child, stream: Stream, event: Event) -> None:
    with Gate(stream) as gate:
        stream.record(event)
        assert child(ipc_child.wait_for_event, event) == (False, False)
        gate.open()
        assert child(ipc_child.finish_waiting) == (True, True)


def test_what_the_importer_records_the_creator_waits_for(child: Child, event: Event) -> None:
    child(ipc_child.record_behind_a_gate, event)
    assert event.is_done is False
    child(ipc_child.open_the_gate)
    event.sync()
    assert event.is_done is True


def test_no_time_is_known_of_an_imported_event(child: Child, event: Event) -> None:
    assert "no time between these events" in child(ipc_child.subtract_events, event)


def test_an_importer_passes_an_event_on_to_a_third_process(event: Event, stream: Stream) -> None:
    with Child() as first, Child() as second:
        first(ipc_child.keep_event_for, event)
        passed_on = first(ipc_child.descriptor_of_kept_event)
        with Gate(stream) as gate:
            stream.record(event)
            assert second(ipc_child.wait_for_event, passed_on) == (False, False)
            gate.open()
            assert second(ipc_child.finish_waiting) == (True, True)
        first(ipc_child.forget)


def test_an_event_whose_creator_was_killed_does_not_hang(stream: Stream) -> None:
    child = Child()
    event = child(ipc_child.create_and_record_event)
    child.kill()
    with event:
        stream.wait(event)
        stream.sync()
        event.sync()
        stream.record(event)
        event.sync()
        assert event.is_done is True
    child.end()


def test_an_event_of_a_process_that_ended_is_an_error_or_done(device: Device) -> None:
    with Child() as child:
        descriptor = child(ipc_child.create_and_describe_event)
    try:
        event = Event.from_ipc_descriptor(descriptor)
    except CUDAError:  # the simulator; an H200 with driver 580 still has it
        return
    with event:
        assert event.is_done is True


def test_damaged_payloads_are_errors_and_no_crashes(child: Child, event: Event) -> None:
    assert child(ipc_child.import_damaged_events, event.ipc_descriptor) == (0, 202)


def test_nothing_stays_open_in_either_process(child: Child, device: Device) -> None:
    """Not for any event: the driver may open something for itself, once."""
    found = []
    for _ in range(3):
        found.append((ipc_child.descriptors(), child(ipc_child.descriptors)))
        for _ in range(5):
            with device.create_event(SHARED) as event:
                child(ipc_child.describe_event, event)
    assert (ipc_child.descriptors(), child(ipc_child.descriptors)) in found[-2:]


# fork


FORK_WARNINGS = """
import multiprocessing, os, warnings
from cuda_core_cffi import Device, DeviceMemoryResource

Device(0).set_current()
shared = {{"ipc_enabled": True}}
{settle}
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    pool = DeviceMemoryResource(0, {{"max_size": 1 << 20, **shared}})
    with Device(0).create_event(shared) as event, pool.allocate(16) as buffer:
        queue = {queue}
        for _ in range(2):
            for sent in (event, event.ipc_descriptor, pool, pool.allocation_handle, buffer, buffer.ipc_descriptor):
                queue.put(sent)
        queue.close()
        getattr(queue, "join_thread", lambda: None)()  # it pickles in a thread
    pool.close()
print(len([item for item in seen if "multiprocessing starts processes with fork" in str(item.message)]))
"""
SPAWN = "multiprocessing.get_context('spawn')"


@pytest.mark.parametrize(
    ("settle", "queue", "warnings"),
    [
        ("multiprocessing.set_start_method('fork')", "multiprocessing.SimpleQueue()", 1),
        ("multiprocessing.set_start_method('fork')", "multiprocessing.Queue()", 1),
        ("multiprocessing.set_start_method('spawn')", "multiprocessing.Queue()", 0),
        ("", f"{SPAWN}.SimpleQueue()", 0),
        (f"{SPAWN}.Process(target=os.getpid).start()", f"{SPAWN}.Queue()", 0),
        ("", f"{SPAWN}.Queue()", 0),
        ("", "multiprocessing.get_context('forkserver').Queue()", 0),
    ],
)
def test_fork_is_warned_of_once_where_it_is_the_start_method(settle: str, queue: str, warnings: int) -> None:
    assert output_of(FORK_WARNINGS.format(settle=settle, queue=queue)) == str(warnings)
