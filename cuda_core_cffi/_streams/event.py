# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Events: points in a stream to wait for, and to measure between."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from cuda_core_cffi import _streams
from cuda_core_cffi._core import calls
from cuda_core_cffi._core.calls import native
from cuda_core_cffi._core.descriptors import PAYLOAD_BYTES, Descriptor, seal, send_with
from cuda_core_cffi._core.errors import CUDAError
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import Handle, InUse
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi._lifetime.host_memory import after_wait, release_finished, unfinished
from cuda_core_cffi._streams.context import Context

if TYPE_CHECKING:
    from cuda_core_cffi._device.device import Device
    from cuda_core_cffi._streams.options import EventOptions

_query = lib.ccc_event_query
_sync = lib.ccc_event_sync_slice
_elapsed: Callable[[Any, Any], float] = lib.ccc_event_elapsed
ATTEND: int = lib.CCC_ATTEND
NOT_READY = lib.CUDA_ERROR_NOT_READY
DEFAULT_FLAGS: int = lib.CU_EVENT_DISABLE_TIMING  # those of EventOptions()


def elapsed_failed(status: int, end: Event, start: Event) -> NoReturn:
    """Raise the exception for an elapsed time that is not known."""
    error = end._failure(status, start)
    if not isinstance(error, CUDAError):
        raise error
    if not (end.is_timing_enabled and start.is_timing_enabled):
        why = "both events must be created with EventOptions(timing_enabled=True)"
    elif error.name == "CUDA_ERROR_NOT_READY":
        why = "an event has not been reached yet: call sync() on the later one first"
    elif error.name == "CUDA_ERROR_INVALID_HANDLE":
        why = "an event was never recorded, or the events belong to different devices"
    else:
        raise error
    raise RuntimeError(f"no time between these events: {why}") from error


def after_query(status: int, event: Event) -> bool:
    """Act on the status of a query that is neither 0 nor "not ready": it may have failed."""
    if status != ATTEND:
        raise event._failure(status)
    if unfinished:
        release_finished()
    return True


class Event(Handle, calls.ElapsedOperand):
    """A point in the work of a stream.

    Events come from :meth:`Stream.record` and :meth:`Device.create_event`. The difference of two events that were
    created with ``timing_enabled`` is the time between them in milliseconds.

    An event that was created with ``ipc_enabled`` may be sent to other processes through :mod:`multiprocessing`, where
    it is the same event: what one process records, the others wait for.

    Examples
    --------
    >>> start = stream.record(options={"timing_enabled": True})
    >>> end = stream.record(options={"timing_enabled": True})
    >>> end.sync()
    >>> end - start >= 0  # milliseconds
    True
    """

    __slots__ = ("_imported_from",)
    _sync_slice = staticmethod(_sync)

    _imported_from: IPCEventDescriptor  # absent for events of this process

    _CTYPE = "CUevent"
    _MADE_BY = "Stream.record or Device.create_event"

    def __repr__(self) -> str:
        return f"<Event handle={self._driver_handle:#x}>"

    @native(elapsed_failed)
    def __sub__(self, other: object) -> float:
        """Return the milliseconds from ``other`` to this event.

        Raises
        ------
        RuntimeError
            If an event takes no times, was never recorded, is not reached yet, or is closed.
        """
        if not isinstance(other, Event):
            return NotImplemented
        milliseconds = _elapsed(other._c_handle, self._c_handle)
        if milliseconds == milliseconds:  # not NaN
            return milliseconds
        return elapsed_failed(lib.ccc_last_status(), self, other)

    @native()
    def __rsub__(self, other: object) -> None:
        """Refuse: only an event can be subtracted from an event."""
        return NotImplemented

    def __isub__(self, other: object) -> None:
        """Leave ``event -= other`` to :meth:`__sub__`."""
        return NotImplemented

    @native(after_wait)
    def sync(self) -> None:
        """Wait on the host until the event is reached.

        Raises
        ------
        CUDAError
            If work before the event failed.
        """
        status = _sync(self._c_handle, False)
        if status:
            after_wait(status, self)

    @native(after_query)  # type: ignore[prop-decorator]
    @property
    def is_done(self) -> bool:
        """Whether the event was reached. True also for one never recorded."""
        status = _query(self._c_handle)
        if status == 0:
            return True
        return False if status == NOT_READY else after_query(status, self)

    @property
    def is_timing_enabled(self) -> bool:
        """Whether the event takes times."""
        return bool(lib.ccc_flags(self._c_handle) & lib.CCC_TIMED)

    @property
    def is_blocking_sync(self) -> bool:
        """Whether a host thread that waits for the event sleeps."""
        return bool(lib.ccc_flags(self._c_handle) & lib.CCC_BLOCKING)

    @property
    def context(self) -> Context:
        """The context that the event belongs to."""
        with InUse(self):
            return Context._made_by(lib.ccc_view, lib.ccc_parent(self._c_handle))

    @property
    def device(self) -> Device:
        """The :class:`Device` that the event belongs to."""
        return registry.device(self.context._device_id)

    @property
    def is_ipc_enabled(self) -> bool:
        """Whether other processes may use the event."""
        return bool(lib.ccc_flags(self._c_handle) & lib.CCC_SHARED)

    @property
    def ipc_descriptor(self) -> IPCEventDescriptor:
        """What another process makes this event from, with :meth:`from_ipc_descriptor`.

        An imported event has the descriptor that it was made from, also after :meth:`close`.

        Raises
        ------
        RuntimeError
            If the event was not created with ``ipc_enabled``, or was created here and is closed.
        """
        return self.get_ipc_descriptor()

    def get_ipc_descriptor(self) -> IPCEventDescriptor:
        """Return :attr:`ipc_descriptor`.

        Returns
        -------
        IPCEventDescriptor
            What another process imports the event by.

        Raises
        ------
        RuntimeError
            If the event is closed, or was not created with ``ipc_enabled``.
        CUDAError
            If the driver does not export it.
        """
        if not self.is_ipc_enabled:
            raise RuntimeError("this Event is not for other processes: create it with EventOptions(ipc_enabled=True)")
        try:
            return self._imported_from  # the driver exports only what this process created
        except AttributeError:
            pass
        if self.is_closed:
            raise self._failure(lib.CCC_CLOSED)
        payload = ffi.new("char[]", PAYLOAD_BYTES)
        status = lib.ccc_event_export(self._c_handle, payload)
        if status:
            raise self._failure(status)
        device = lib.ccc_handle_device(self._c_handle)
        return IPCEventDescriptor._create(seal(bytes(ffi.buffer(payload))), self.is_blocking_sync, device)

    @classmethod
    def from_ipc_descriptor(cls, ipc_descriptor: IPCEventDescriptor) -> Event:
        """Return an event that another process created.

        Parameters
        ----------
        ipc_descriptor : IPCEventDescriptor
            What the other process has from :attr:`ipc_descriptor`. The event belongs to the device of the same
            ordinal here.

        Returns
        -------
        Event
            The event. It must not be used any more once its creator has destroyed it.

        Raises
        ------
        CUDAError
            If there is no such event: its process has destroyed it or ended, or is this process itself.
        """
        if not isinstance(ipc_descriptor, IPCEventDescriptor):
            raise TypeError(f"ipc_descriptor must be an IPCEventDescriptor, not {type(ipc_descriptor).__name__}")
        flags = event_flags(_streams.EventOptions(blocking_sync=ipc_descriptor._is_blocking_sync, ipc_enabled=True))
        device = registry.device(ipc_descriptor._device_id).device_id
        self = cls._made_by(lib.ccc_event_import, device, ipc_descriptor._payload, flags)
        self._imported_from = ipc_descriptor
        return self


def event_flags(options: EventOptions) -> int:
    """Return the driver's flags for options."""
    if options.timing_enabled and options.ipc_enabled:
        raise TypeError("an event for other processes takes no times: timing_enabled excludes ipc_enabled")
    flags: Any = 0
    if not options.timing_enabled:
        flags |= lib.CU_EVENT_DISABLE_TIMING
    if options.blocking_sync:
        flags |= lib.CU_EVENT_BLOCKING_SYNC
    if options.ipc_enabled:
        flags |= lib.CU_EVENT_INTERPROCESS
        send_with(Event, reduce_event)
    return int(flags)


class IPCEventDescriptor(Descriptor):
    """Names an event to another process. Descriptors can be pickled, and are equal if they name the same event."""

    __slots__ = ("_device_id", "_is_blocking_sync")

    _MADE_BY: ClassVar[str] = "Event.ipc_descriptor"
    _device_id: int
    _is_blocking_sync: bool
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IPCEventDescriptor):
            return NotImplemented
        return self._payload == other._payload

    def __reduce__(self) -> tuple[object, ...]:
        return IPCEventDescriptor._create, (seal(self._payload), self._is_blocking_sync, self._device_id)

    @classmethod
    def _create(cls, sealed: bytes, is_blocking_sync: bool, device_id: int) -> IPCEventDescriptor:
        if type(is_blocking_sync) is not bool or type(device_id) is not int:
            raise TypeError(f"not the parts of a descriptor of an event: {is_blocking_sync!r}, {device_id!r}")
        self = cls._from_payload(sealed)
        self._is_blocking_sync = is_blocking_sync
        self._device_id = device_id
        return self


def reduce_event(event: Event) -> tuple[object, ...]:
    """Take an event apart for another process."""
    return Event.from_ipc_descriptor, (event.ipc_descriptor,)
