# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Events of a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi.system._enumerators import EVENT_TYPES
from cuda_core_cffi.system._event_set import EventSet
from cuda_core_cffi.system._header import nvml
from cuda_core_cffi.system._library import call, value
from cuda_core_cffi.system.typing import EventType

if TYPE_CHECKING:
    from cuda_core_cffi.system._device import Device


class EventData(Uncopyable):
    """An event that happened.

    Parameters
    ----------
    event_data : nvmlEventData_t
        What NVML told.
    """

    __slots__ = ("_record",)

    _NOT_COPIED_BECAUSE = "it refers to a device of this process"

    def __init__(self, event_data: nvml.nvmlEventData_t) -> None:
        self._record = event_data

    def __repr__(self) -> str:
        """Return the type of the event."""
        return f"<EventData {self.event_type}>"

    @property
    def device(self) -> Device:
        """The device."""
        from cuda_core_cffi.system._device import Device

        return Device._of(self._record.device)

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
        self._own(value(nvml.nvmlEventSetCreate), nvml.nvmlEventSetFree)
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
