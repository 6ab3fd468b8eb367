# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Events of the system: the driver takes a GPU, or lets go of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cuda_core_cffi._core.integers import integer
from cuda_core_cffi.system._enumerators import SYSTEM_EVENT_TYPES
from cuda_core_cffi.system._event_set import EventSet
from cuda_core_cffi.system._header import nvml
from cuda_core_cffi.system._library import call, value
from cuda_core_cffi.system._pci import bus_id_of_gpu_id
from cuda_core_cffi.system._snapshot import Snapshot, sequence_index
from cuda_core_cffi.system.typing import SystemEventType

if TYPE_CHECKING:
    from cuda_core_cffi.system._device import Device


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

    @property
    def gpu_id(self) -> int:
        """The address of the GPU: PCI domain in the upper half, then bus and device of a byte each."""
        return self._record.gpuId

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


class SystemEvents:
    """Events that happened.

    Parameters
    ----------
    event_data : sequence of nvmlSystemEventData_v1_t
        What NVML told.
    """

    __slots__ = ("_events",)

    def __init__(self, event_data: Sequence[nvml.nvmlSystemEventData_v1_t]) -> None:
        self._events = [SystemEvent(data) for data in event_data]

    def __len__(self) -> int:
        return len(self._events)

    def __getitem__(self, idx: int) -> SystemEvent:
        return self._events[sequence_index(idx, len(self._events), "event")]

    def __iter__(self) -> Iterator[SystemEvent]:
        return iter(self._events)

    def __repr__(self) -> str:
        """Return the events."""
        return f"<SystemEvents {self._events}>"


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
        self._own(value(nvml.nvmlSystemEventSetCreate).set, free)
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
