# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Events that NVML records: of devices, and of the system, where the driver takes a GPU or lets go of it.

Sets of events are freed once, and waited on so that a signal ends the wait.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

from cuda_core_cffi._core.answers import Answer
from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi.system._enumerators import EVENT_TYPES, SYSTEM_EVENT_TYPES
from cuda_core_cffi.system._library import call, field, nvml, process, value
from cuda_core_cffi.system._pci import bus_id_of_gpu_id
from cuda_core_cffi.system._snapshot import Items, OfDevice, Snapshot
from cuda_core_cffi.system.exceptions import failure
from cuda_core_cffi.system.typing import EventType, SystemEventType

if TYPE_CHECKING:
    from cuda_core_cffi.system._device import Device

T = TypeVar("T")

SLICE_MS = 100
"""How long NVML is waited in at a time: for so long a signal may have to wait, or what another thread closes."""
MS_PER_SECOND = 1000
OPEN = object()


class EventSet(Uncopyable):
    """Base of sets of events."""

    __slots__ = ("__weakref__", "_free", "_generation", "_handle", "_unfreed", "_users")

    _NOT_COPIED_BECAUSE = "it owns an event set of this process"
    _WAIT: ClassVar[str]  # NVML's name of the call
    _handle: int
    _unfreed: list[bool]  # emptied once, by who frees the set
    _users: dict[object, None]  # OPEN until the set is closed, and each wait that goes on: the last one frees

    def _set_handle(self, handle: int, free: Callable[[int], object]) -> None:
        """Take an event set that was made in this process, and what frees it."""
        self._handle = handle
        self._unfreed = [True]
        self._users = {OPEN: None}
        self._free = free
        self._generation = process.generation

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        """Return whether the set is open."""
        return f"<{type(self).__name__} {'closed' if self.is_closed else 'open'}>"

    def __del__(self) -> None:
        # at the end of the interpreter NVML may be gone, and a child of fork() does not own the set
        if not sys.is_finalizing() and getattr(self, "_generation", None) is process.generation:
            self.close()

    def close(self) -> None:
        """Free the event set. To do so twice is allowed.

        A wait that goes on in another thread ends within 100 ms, with RuntimeError, and frees it then.
        """
        self._users.pop(OPEN, None)
        self._free_unused()

    @property
    def is_closed(self) -> bool:
        """Whether the set is closed."""
        return OPEN not in self._users

    def _free_unused(self) -> None:
        """Free the event set unless it is open, or waited on."""
        if self._users or self._generation is not process.generation:
            return
        try:
            self._unfreed.pop()
        except IndexError:
            return
        self._free(self._handle)

    def _check_open(self) -> None:
        if self._generation is not process.generation:
            raise RuntimeError("the event set belongs to the process that this one was forked from: register anew")
        if self.is_closed:
            raise RuntimeError("the event set is closed")

    def _wait(self, timeout_ms: int, wait: Callable[[int, int], tuple[int, T]]) -> T:
        """Wait until events come.

        Parameters
        ----------
        timeout_ms : int
            The longest wait, in milliseconds; 0 waits without end.
        wait : callable
            Given the event set and a number of milliseconds, it waits for so long at most. It returns the status, and
            what came.

        Returns
        -------
        object
            What came.

        Raises
        ------
        TypeError, ValueError
            If that is no int, or negative.
        TimeoutError
            If no event comes.
        RuntimeError
            If the set is closed, or the process is a fork of the one that made it.
        """
        limit = integer(timeout_ms, "timeout_ms")
        if limit < 0:
            raise ValueError(f"timeout_ms must be 0 or more, not {limit}")
        end = time.monotonic() + limit / MS_PER_SECOND
        left = limit or SLICE_MS
        user = object()
        while True:
            try:
                self._users[user] = None  # before the set is looked at: who closes it now leaves it to this wait
                self._check_open()
                status, found = wait(self._handle, min(left, SLICE_MS))
            finally:
                self._users.pop(user, None)
                self._free_unused()
            if not status:
                return found
            if limit:
                left = round((end - time.monotonic()) * MS_PER_SECOND)
            if status != nvml.nvmlReturn_t.NVML_ERROR_TIMEOUT or left <= 0:
                raise failure(status, self._WAIT)


class EventData(Uncopyable):
    """An event that happened.

    Parameters
    ----------
    event_data : nvmlEventData_t
        What NVML told.
    """

    __slots__ = ("_record",)

    _NOT_COPIED_BECAUSE = OfDevice._NOT_COPIED_BECAUSE

    def __init__(self, event_data: nvml.nvmlEventData_t) -> None:
        self._record = event_data

    def __repr__(self) -> str:
        """Return the type of the event."""
        return f"<EventData {self.event_type}>"

    @property
    def device(self) -> Device:
        """The device."""
        from cuda_core_cffi.system._device import Device

        return Device._from_handle(self._record.device)

    @property
    def event_type(self) -> EventType:
        """What happened; ``EventType.NONE`` if this version does not know it."""
        return EVENT_TYPES.members.get(self._record.eventType, EventType.NONE)

    @property
    def event_data(self) -> int:
        """The Xid, NVIDIA's number of the error; 999 if it is unknown.

        Raises
        ------
        ValueError
            If the event is another than ``XID_CRITICAL_ERROR``.
        """
        return self._of_xid("event_data").eventData

    @property
    def gpu_instance_id(self) -> int:
        """The GPU instance that the error is in; 0xffffffff without MIG, or if it is in none.

        Raises
        ------
        ValueError
            If the event is another than ``XID_CRITICAL_ERROR``.
        """
        return self._of_xid("gpu_instance_id").gpuInstanceId

    @property
    def compute_instance_id(self) -> int:
        """The compute instance that the error is in; 0xffffffff without MIG, or if it is in none.

        Raises
        ------
        ValueError
            If the event is another than ``XID_CRITICAL_ERROR``.
        """
        return self._of_xid("compute_instance_id").computeInstanceId

    def _of_xid(self, name: str) -> nvml.nvmlEventData_t:
        if self.event_type != EventType.XID_CRITICAL_ERROR:
            raise ValueError(f"{name} is told of {EventType.XID_CRITICAL_ERROR} only, not of {self.event_type}")
        return self._record


class DeviceEvents(EventSet):
    """Events of a device that are recorded from now on; made by :meth:`Device.register_events`.

    It is a context manager, which closes it. Several threads can wait, one at a time.

    Parameters
    ----------
    device_handle : nvmlDevice_t
        The device.
    events : EventType, str or list of them
        What to record.

    Raises
    ------
    TypeError, ValueError
        If something is no event type.
    NotSupportedError
        If the device records none of them.
    """

    __slots__ = ()

    _WAIT = "nvmlEventSetWait_v2"

    def __init__(self, device_handle: nvml.nvmlDevice_t, events: EventType | str | list[EventType | str]) -> None:
        bits = EVENT_TYPES.mask(events)
        self._set_handle(value(nvml.nvmlEventSetCreate), nvml.nvmlEventSetFree)
        try:
            call(nvml.nvmlDeviceRegisterEvents, device_handle, bits, self._handle)
        except BaseException:
            self.close()
            raise

    def wait(self, timeout_ms: int = 0) -> EventData:
        """Wait for an event.

        Parameters
        ----------
        timeout_ms : int
            The longest wait, in milliseconds; 0 waits without end. Ctrl-C ends the wait.

        Returns
        -------
        EventData
            The event.

        Raises
        ------
        TimeoutError
            If no event comes: the one of this package, an :class:`NvmlError`.
        GpuIsLostError
            If the GPU cannot be reached any more.
        RuntimeError
            If the set is closed, or this process was forked from the one that made it.
        """
        return EventData(self._wait(timeout_ms, nvml.nvmlEventSetWait_v2))


class SystemEvent(Snapshot["nvml.nvmlSystemEventData_v1_t"]):
    """An event that happened.

    Parameters
    ----------
    event_data : nvmlSystemEventData_v1_t
        What NVML told.
    """

    __slots__ = ()

    _STRUCTURE = "nvmlSystemEventData_v1_t"

    def __init__(self, event_data: nvml.nvmlSystemEventData_v1_t) -> None:
        self._record = event_data

    def __repr__(self) -> str:
        """Return the type of the event, and the address of the GPU."""
        return f"<SystemEvent {self._record.eventType} {bus_id_of_gpu_id(self.gpu_id)}>"

    @property
    def event_type(self) -> SystemEventType:
        """What happened.

        Raises
        ------
        ValueError
            If this version does not know it.
        """
        found = SYSTEM_EVENT_TYPES.members.get(self._record.eventType)
        if found is None:
            raise ValueError(f"{self._record.eventType} is no system event that this version knows")
        return found

    gpu_id = Answer(
        field("gpuId"), doc="The address of the GPU: PCI domain in the upper half, then bus and device of a byte each."
    )

    @property
    def device(self) -> Device:
        """The device.

        Raises
        ------
        NotFoundError
            If the driver does not have it any more.
        """
        from cuda_core_cffi.system._device import Device

        return Device(pci_bus_id=bus_id_of_gpu_id(self.gpu_id))


class SystemEvents(Items[SystemEvent]):
    """Events that happened.

    Parameters
    ----------
    event_data : sequence of nvmlSystemEventData_v1_t
        What NVML told.
    """

    __slots__ = ("_items",)

    _ITEM = "event"

    def __init__(self, event_data: Sequence[nvml.nvmlSystemEventData_v1_t]) -> None:
        self._items = [SystemEvent(data) for data in event_data]


class RegisteredSystemEvents(EventSet):
    """Events of the system that are recorded from now on; made by :func:`register_events`.

    It is a context manager, which closes it. Several threads can wait, one at a time.

    Parameters
    ----------
    events : SystemEventType, str or list of them
        What to record.

    Raises
    ------
    TypeError, ValueError
        If something is no event type.
    NotSupportedError
        If none of them can be recorded.
    """

    __slots__ = ()

    _WAIT = "nvmlSystemEventSetWait"

    def __init__(self, events: SystemEventType | str | list[SystemEventType | str]) -> None:
        bits = SYSTEM_EVENT_TYPES.mask(events)
        self._set_handle(value(nvml.nvmlSystemEventSetCreate).set, free)
        try:
            call(
                nvml.nvmlSystemRegisterEvents,
                nvml.nvmlSystemRegisterEventRequest_v1_t(eventTypes=bits, set=self._handle),
            )
        except BaseException:
            self.close()
            raise

    def wait(self, timeout_ms: int = 0, buffer_size: int = 1) -> SystemEvents:
        """Wait for events.

        Parameters
        ----------
        timeout_ms : int
            The longest wait, in milliseconds; 0 waits without end. Ctrl-C ends the wait.
        buffer_size : int
            The most events to return, 1 or more.

        Returns
        -------
        SystemEvents
            The events, at least one.

        Raises
        ------
        TimeoutError
            If no event comes: the one of this package, an :class:`NvmlError`.
        RuntimeError
            If the set is closed, or this process was forked from the one that made it.
        """
        room = integer(buffer_size, "buffer_size")
        if room < 1:
            raise ValueError(f"buffer_size must be 1 or more, not {room}")

        def wait(handle: int, timeout_ms: int) -> tuple[int, nvml.nvmlSystemEventSetWaitRequest_v1_t]:
            request = nvml.nvmlSystemEventSetWaitRequest_v1_t(
                timeoutms=timeout_ms,
                set=handle,
                data=[nvml.nvmlSystemEventData_v1_t() for _ in range(room)],
                dataSize=room,
            )
            return nvml.nvmlSystemEventSetWait(request)

        request = self._wait(timeout_ms, wait)
        return SystemEvents(request.data[: request.numEvent])


def free(handle: int) -> None:
    """Free an event set of the system."""
    nvml.nvmlSystemEventSetFree(nvml.nvmlSystemEventSetFreeRequest_v1_t(set=handle))


def register_events(events: SystemEventType | str | list[SystemEventType | str]) -> RegisteredSystemEvents:
    """Record events of the system from now on. Linux only.

    Parameters
    ----------
    events : SystemEventType, str or list of them
        What to record.

    Returns
    -------
    RegisteredSystemEvents
        What to wait on; close it, or use it in a ``with`` block.

    Raises
    ------
    TypeError, ValueError
        If something is no event type.
    NotSupportedError
        If none of them can be recorded.

    Examples
    --------
    >>> from cuda_core_cffi import system
    >>> with system.register_events(["bind", "unbind"]) as events:  # doctest: +SKIP
    ...     for event in events.wait(timeout_ms=10000, buffer_size=8):
    ...         print(event.event_type, event.gpu_id)
    """
    return RegisteredSystemEvents(events)
