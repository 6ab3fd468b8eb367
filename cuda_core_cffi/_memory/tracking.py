# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""A memory resource that counts, limits and remembers what goes through it.

Its buffers are those of the resource below it, each with a charge on a meter in C (``include/memory/ccc_meter.h``). The
charge ends when the memory goes back, in the thread in which that happens and without Python, so the count is right
whoever releases a buffer last: the program, the garbage collector, or the consumer of a DLPack tensor.
"""

from __future__ import annotations

import gc
import importlib
import sys
import traceback
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.errors import last_failure
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._lifetime.pending_calls import run_all_tasks
from cuda_core_cffi._memory.buffer import Buffer
from cuda_core_cffi._memory.resource import LARGEST_SIZE, MemoryResource, whole_number, whole_size
from cuda_core_cffi.typing import DevicePointerType, IsStreamType

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy import void
    from numpy.typing import NDArray

PACKAGE = __name__.partition(".")[0]
NANOSECONDS = 1e-9
EVENTS = ("allocate", "free", "refuse")  # in the order of ccc_meter_event
HISTORY_TYPE = [("time", "f8"), ("event", "U8"), ("address", "u8"), ("size", "u8"), ("bytes", "u8"), ("count", "u8")]
RECORD_TYPE = [("time", "i8"), ("event", "u8"), *HISTORY_TYPE[2:]]
MOST = (lib.CCC_NO_LIMIT - 1, "2**64 - 2")  # bytes, events or frames
FEW_PLACES = 1024  # places of allocations long freed are forgotten when there are more than this, and twice the live

_cancel = lib.ccc_meter_cancel
_charge = lib.ccc_meter_charge
_reserve = lib.ccc_meter_reserve


class MemoryStatistics(NamedTuple):
    """What went through a :class:`TrackingMemoryResource`.

    Attributes
    ----------
    current_bytes, current_count : int
        Allocations that have not gone back, and their bytes.
    peak_bytes, peak_count : int
        The most there has been of either.
    total_bytes, total_count : int
        All allocations since the beginning.
    """

    current_bytes: int
    current_count: int
    peak_bytes: int
    peak_count: int
    total_bytes: int
    total_count: int


class Allocation(NamedTuple):
    """Memory that has not gone back.

    Attributes
    ----------
    address : int
        Where it is.
    size : int
        How many bytes were asked for.
    time : float
        When it was allocated, in the seconds of :func:`time.monotonic`.
    stack : traceback.StackSummary
        Where it was allocated, innermost call last; empty where that is not remembered.
    """

    address: int
    size: int
    time: float
    stack: traceback.StackSummary


class TrackingMemoryResource(Uncopyable, MemoryResource):
    """Count, limit and remember what is allocated from another memory resource.

    Buffers are those of the other resource, except that their :attr:`Buffer.memory_resource` is this one. They count
    until their memory goes back, which is when a buffer is closed or collected and nothing that it was exported to
    needs the memory any more; in which order of which stream makes no difference. Tracking resources can be nested.
    Memory that was not allocated through this resource is not counted when it goes back through :meth:`deallocate`.
    Tracked buffers of virtual memory cannot grow, and tracked buffers of pools cannot go to other processes: for that
    they have to be the other resource's own.

    Parameters
    ----------
    upstream : MemoryResource
        Where the memory comes from. It is kept alive.
    limit : int, optional
        The most bytes that may be in use at any time. Default is no limit.
    max_history : int, optional
        How many events :attr:`history` keeps: the newest. Default 0.
    max_frames : int, optional
        How many calls, innermost, :meth:`outstanding` tells about the place of an allocation. Default 0.

    Raises
    ------
    TypeError
        If ``upstream`` is not a memory resource, or a number is not an int.
    ValueError
        If a number is negative.

    Examples
    --------
    >>> tracking = TrackingMemoryResource(device.memory_resource, limit=1 << 20)
    >>> with tracking.allocate(1000, stream):
    ...     tracking.statistics.current_bytes
    1000
    >>> tracking.statistics.current_bytes, tracking.statistics.peak_bytes
    (0, 1000)
    """

    __slots__ = ("_limit", "_max_frames", "_max_history", "_meter", "_places", "_places_capacity", "_upstream")

    _NOT_COPIED_BECAUSE = "what is allocated through it is counted once"
    _places: dict[int, list[tuple[CodeType, int]]]  # by the number of the charge: code and line, innermost first

    def __init__(
        self, upstream: MemoryResource, *, limit: int | None = None, max_history: int = 0, max_frames: int = 0
    ) -> None:
        if not isinstance(upstream, MemoryResource):
            raise TypeError(f"upstream must be a MemoryResource, not {type(upstream).__name__}")
        self._upstream = upstream
        self._limit = None if limit is None else whole_number(limit, "limit", *MOST)
        self._max_history = whole_number(max_history, "max_history", *MOST)
        self._max_frames = whole_number(max_frames, "max_frames", *MOST)
        self._places = {}
        self._places_capacity = FEW_PLACES
        meter = lib.ccc_meter_new(lib.CCC_NO_LIMIT if limit is None else self._limit, self._max_history)
        if not meter:
            raise last_failure()
        self._meter = meter

    def __del__(self, _release_object: Any = lib.ccc_meter_release) -> None:
        try:
            meter = self._meter
        except AttributeError:  # construction failed
            return
        _release_object(meter)

    def __repr__(self) -> str:
        usage = self.statistics
        return (
            f"<TrackingMemoryResource of {self._upstream!r}: {usage.current_bytes} bytes in {usage.current_count} "
            f"allocation{'s' * (usage.current_count != 1)}>"
        )

    def allocate(self, size: int, stream: IsStreamType | None = None) -> Buffer:
        """Allocate a buffer from the resource below.

        Parameters
        ----------
        size : int
            Size in bytes.
        stream : Stream, optional
            As the resource below takes it.

        Returns
        -------
        Buffer
            The memory.

        Raises
        ------
        MemoryError
            If the allocation would go beyond the limit, even after a garbage collection. The driver is not asked.
        """
        if type(size) is not int or not 0 <= size < LARGEST_SIZE:
            size = whole_size(size)
        if self._limit is not None:
            self._promise(size)
        try:
            buffer: Buffer = self._upstream.allocate(size, stream=stream)
        except BaseException:
            self._cancel_charge(size)
            raise
        number = _charge(self._meter, buffer._c_handle, size) if isinstance(buffer, Buffer) else 0
        if not number:
            self._cancel_charge(size)
            if isinstance(buffer, Buffer):
                raise buffer._failure(lib.ccc_last_status())
            raise TypeError(f"{type(self._upstream).__name__}.allocate returned no Buffer, but {buffer!r}")
        buffer._mr = self
        if self._max_frames:
            self._remember(number)
        return buffer

    def deallocate(self, ptr: DevicePointerType, size: int, stream: IsStreamType | None = None) -> None:
        """Give memory back to the resource below, by address; buffers do so by themselves.

        Parameters
        ----------
        ptr : int
            Its address.
        size : int
            Its size in bytes.
        stream : Stream, optional
            As the resource below takes it.
        """
        self._upstream.deallocate(ptr, size, stream=stream)

    def outstanding(self) -> list[Allocation]:
        """Tell what has not gone back, and where it was allocated.

        Returns
        -------
        list of Allocation
            The oldest first.
        """
        return [
            Allocation(address, size, time * NANOSECONDS, stack_summary(self._places.get(number, [])))
            for number, address, size, time in reversed(self._live()[0])
        ]

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the bytes in use over time with matplotlib.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw. Default is a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            Where it was drawn.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If there is no history.
        """
        history = self.history
        if not len(history):
            raise ValueError(f"there is no history to draw: max_history is {self._max_history}, and no event was kept")
        try:
            pyplot = importlib.import_module("matplotlib.pyplot")
        except ImportError as error:
            raise ImportError("plot needs matplotlib; without it, history has the same as a NumPy array") from error
        if axes is None:
            axes = pyplot.subplots()[1]
        seconds = history["time"] - history["time"][0]
        axes.step(seconds, history["bytes"], where="post", label="in use")
        refused = history["event"] == "refuse"
        if refused.any():
            axes.plot(seconds[refused], history["bytes"][refused], "rx", label="refused")
        if self._limit is not None:
            axes.axhline(self._limit, linestyle="--", color="gray", label="limit")
        axes.set_xlabel("time (s)")
        axes.set_ylabel("memory (bytes)")
        axes.legend()
        return axes

    def _promise(self, size: int) -> None:
        """Reserve bytes up to the limit for an allocation."""
        if _reserve(self._meter, size):
            return
        if size <= (self._limit or 0):  # otherwise no garbage is large enough
            gc.collect()
            lib.ccc_reclaim()
            run_all_tasks()
        if not _reserve(self._meter, size):
            lib.ccc_meter_refuse(self._meter, size)
            used = self.statistics.current_bytes
            raise MemoryError(f"{size} bytes more would go beyond the limit of {self._limit}: {used} are in use")

    def _cancel_charge(self, size: int) -> None:
        """Free bytes that were promised to an allocation which was not made."""
        if self._limit is not None:
            _cancel(self._meter, size)

    def _find_dlpack_device(self, buffer: Any) -> tuple[int, int]:
        return self._upstream._dlpack_device or self._upstream._find_dlpack_device(buffer)

    def _remember(self, number: int) -> None:
        """Note where an allocation is being made; of what has gone back, forget it now and then."""
        self._places[number] = calling_places(self._max_frames)
        if len(self._places) > self._places_capacity:
            rows, last = self._live()
            live = {number for number, *_ in rows}
            for known in list(self._places):
                if known <= last and known not in live:
                    self._places.pop(known, None)
            self._places_capacity = max(FEW_PLACES, 2 * len(live))

    def _live(self) -> tuple[list[tuple[int, int, int, int]], int]:
        """Return number, address, size and time of what is outstanding, newest first, and the last charge's number."""
        run_all_tasks()
        last = ffi.new("uint64_t *")
        capacity = self.statistics.current_count
        while True:
            rows = ffi.new("ccc_outstanding[]", capacity)
            found = lib.ccc_meter_outstanding(self._meter, rows, capacity, last)
            if found <= capacity:
                # as values: the rows of an array do not keep it
                return [(row.number, row.address, row.size, row.time) for row in rows[0:found]], last[0]
            capacity = found  # others are allocating

    @property
    def upstream(self) -> MemoryResource:
        """The resource below, where the memory comes from."""
        return self._upstream

    @property
    def limit(self) -> int | None:
        """The most bytes that may be in use at any time; None for no limit."""
        return self._limit

    @property
    def statistics(self) -> MemoryStatistics:
        """How much is in use, was at most, and has been altogether."""
        run_all_tasks()
        usage = ffi.new("ccc_usage *")
        lib.ccc_meter_usage(self._meter, usage)
        names = (name.removeprefix("current_") for name in MemoryStatistics._fields)
        return MemoryStatistics(*(int(getattr(usage, name)) for name in names))

    @property
    def history(self) -> NDArray[void]:
        """The newest events, at most ``max_history`` of them, oldest first.

        A structured NumPy array: ``time`` in the seconds of :func:`time.monotonic`, ``event`` (``"allocate"``,
        ``"free"`` or ``"refuse"``), ``address`` and ``size`` of the allocation concerned, ``bytes`` and ``count`` in
        use after the event.
        """
        import numpy as np  # on first need: importing the package does without

        run_all_tasks()
        rows = ffi.new("ccc_meter_record[]", max(self._max_history, 1))
        found = lib.ccc_meter_history(self._meter, rows)
        records = np.frombuffer(ffi.buffer(rows), np.dtype(RECORD_TYPE))[:found]
        history = np.empty(found, np.dtype(HISTORY_TYPE))
        for name, _ in RECORD_TYPE:
            history[name] = records[name]
        history["time"] = records["time"] * NANOSECONDS
        history["event"] = np.array(EVENTS)[records["event"]]
        return history

    @property
    def device_id(self) -> int:
        """The ordinal of the device, as the resource below has it."""
        return self._upstream.device_id

    @property
    def is_device_accessible(self) -> bool:
        """Whether kernels can use the memory."""
        return self._upstream.is_device_accessible

    @property
    def is_host_accessible(self) -> bool:
        """Whether host code can use the memory."""
        return self._upstream.is_host_accessible

    @property
    def is_managed(self) -> bool:
        """Whether the driver moves the memory between host and device."""
        return self._upstream.is_managed

    @property
    def _is_pool(self) -> bool:  # type: ignore[override]
        """Whether the resource below is a pool."""
        return self._upstream._is_pool


def calling_places(limit: int) -> list[tuple[CodeType, int]]:
    """Return code and line of the calls, innermost first, that led into this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
        frame = frame.f_back
    places: list[tuple[CodeType, int]] = []
    while frame is not None and len(places) < limit:
        places.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return places


def stack_summary(places: list[tuple[CodeType, int]]) -> traceback.StackSummary:
    """Return places as the standard library shows them."""
    return traceback.StackSummary.from_list(
        [traceback.FrameSummary(code.co_filename, line, code.co_name) for code, line in reversed(places)]
    )
