# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Events: points in a stream to wait for, and to measure between."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

from cuda_core_cffi._context import Context
from cuda_core_cffi._errors import CUDAError
from cuda_core_cffi._ffi import lib
from cuda_core_cffi._handle import Handle
from cuda_core_cffi._registry import registry

__all__ = ["DEFAULT_FLAGS", "Event", "EventOptions", "event_flags"]

_create = lib.ccc_event_create
_query = lib.ccc_event_query
_sync = lib.ccc_event_sync
_elapsed = lib.ccc_event_elapsed
NOT_READY = lib.CUDA_ERROR_NOT_READY
DEFAULT_FLAGS: int = lib.CU_EVENT_DISABLE_TIMING  # those of EventOptions()


@dataclasses.dataclass
class EventOptions:
    """Options of an event.

    Attributes
    ----------
    timing_enabled : bool, optional
        Take the time when the event is reached, so that events can be subtracted. Default False.
    blocking_sync : bool, optional
        Let a waiting host thread sleep instead of spin. Default False.
    """

    timing_enabled: bool | None = False
    blocking_sync: bool | None = False


class Event(Handle):
    """A point in the work of a stream.

    Events come from :meth:`Stream.record` and :meth:`Device.create_event`. The difference of two events that were
    created with ``timing_enabled`` is the time between them in milliseconds.
    """

    __slots__ = ()

    _CTYPE = "CUevent"
    _MADE_BY = "Stream.record or Device.create_event"

    def __repr__(self) -> str:
        return f"<Event handle={self.handle:#x}>"

    def __sub__(self, other: object) -> float:
        """Return the milliseconds from ``other`` to this event.

        Raises
        ------
        RuntimeError
            If an event takes no times, was never recorded, is not reached yet, or is closed.
        """
        if not isinstance(other, Event):
            return NotImplemented
        elapsed: float = _elapsed(other._box, self._box)
        if elapsed == elapsed:  # not NaN
            return elapsed
        raise self._elapsed_failure(other)

    def __rsub__(self, other: object) -> None:
        """Refuse: only an event can be subtracted from an event."""
        return NotImplemented

    def __isub__(self, other: object) -> None:
        """Leave ``event -= other`` to :meth:`__sub__`."""
        return NotImplemented

    def _elapsed_failure(self, start: Event) -> Exception:
        """Say why no time is known between two events."""
        error = self._failure(lib.ccc_last_status(), start)
        if not isinstance(error, CUDAError):
            return error
        if not (self.is_timing_enabled and start.is_timing_enabled):
            why = "both events must be created with EventOptions(timing_enabled=True)"
        elif error.name == "CUDA_ERROR_NOT_READY":
            why = "an event has not been reached yet: call sync() on the later one first"
        elif error.name == "CUDA_ERROR_INVALID_HANDLE":
            why = "an event was never recorded, or the events belong to different devices"
        else:
            return error
        wrapped = RuntimeError(f"no time between these events: {why}")
        wrapped.__cause__ = error
        return wrapped

    def sync(self) -> None:
        """Wait on the host until the event is reached.

        Raises
        ------
        CUDAError
            If work before the event failed.
        """
        status = _sync(self._box)
        if status:
            raise self._failure(status)

    @property
    def is_done(self) -> bool:
        """Whether the event was reached. True also for one never recorded."""
        status = _query(self._box)
        if status == 0:
            return True
        if status == NOT_READY:
            return False
        raise self._failure(status)

    @property
    def is_timing_enabled(self) -> bool:
        """Whether the event takes times."""
        return bool(lib.ccc_flags(self._box) & lib.CCC_TIMED)

    @property
    def is_blocking_sync(self) -> bool:
        """Whether a host thread that waits for the event sleeps."""
        return bool(lib.ccc_flags(self._box) & lib.CCC_BLOCKING)

    @property
    def context(self) -> Context:
        """The context that the event belongs to."""
        parent = lib.ccc_parent(self._box)
        if self.is_closed:
            raise RuntimeError("this Event is closed")
        return Context._own(lib.ccc_view(parent))

    @property
    def device(self) -> Any:
        """The :class:`Device` that the event belongs to."""
        return registry.device(self.context._device_id)

    @classmethod
    def _create(cls, device: int, options: EventOptions | None) -> Self:
        return cls._own(_create(device, DEFAULT_FLAGS if options is None else event_flags(options)))


def event_flags(options: EventOptions) -> int:
    """Return the driver's flags for options."""
    flags: Any = 0
    if not options.timing_enabled:
        flags |= lib.CU_EVENT_DISABLE_TIMING
    if options.blocking_sync:
        flags |= lib.CU_EVENT_BLOCKING_SYNC
    return int(flags)
