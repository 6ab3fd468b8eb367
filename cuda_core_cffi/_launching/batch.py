# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Batches: prepared launches with their values, started by one call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._launching.launch import UNCHECKED, launch_failure
from cuda_core_cffi._launching.prepared import PreparedLaunch
from cuda_core_cffi._memory import Buffer
from cuda_core_cffi._streams.stream import Stream, launch_stream
from cuda_core_cffi.typing import IsStreamType

_launch_batch = lib.ccc_launch_batch


class LaunchBatch(Uncopyable):
    """Prepared launches with their values, which one call starts in order, as often as wanted.

    The values are packed when the batch is made, and the buffers among them are kept. Starting the batch is one call
    from Python, however many launches it has, and other threads run until the last one is with the driver.

    Parameters
    ----------
    launches : iterable of tuple
        For each launch its :class:`PreparedLaunch` and the values.

    Raises
    ------
    TypeError
        If an element is no such tuple, or has a wrong number of values.
    TypeError, OverflowError, RuntimeError
        If a value is one that the prepared launch refuses. A note on every error says which launch it is about.

    Notes
    -----
    A batch does not change, and any number of threads may use it at once.

    Examples
    --------
    >>> from cuda_core_cffi import Buffer, LaunchConfig, PreparedLaunch
    >>> store = PreparedLaunch(LaunchConfig(grid=1, block=1), kernel, Buffer, int)
    >>> batch = LaunchBatch([(store, memory, value) for value in range(3)])
    >>> batch.launch(stream)
    >>> stream.sync()
    """

    __slots__ = ("__weakref__", "_c_handles", "_launches", "_native", "_records")

    _NOT_COPIED_BECAUSE: ClassVar[str] = "its kernels are of this process"
    _c_handles: Any  # of the buffers among the values, in order
    _launches: list[tuple[Any, ...]]
    _native: Any
    _records: Any

    def __init__(self, launches: Iterable[tuple[Any, ...]]) -> None:
        kept = list(launches)  # the buffers in it live as long as the batch
        c_handles: list[Any] = []
        records: list[bytes] = []
        try:
            for entry in kept:
                if not isinstance(entry, tuple):
                    raise TypeError  # a list may change
                records.append(entry[0]._record(c_handles, *entry))
        except Exception as error:
            check_entry(kept[len(records)], len(records))
            error.add_note(f"in launch {len(records)} of the batch")
            raise
        self._records = ffi.new("char[]", b"".join(records))
        self._c_handles = ffi.new("ccc_handle *[]", c_handles)
        self._native = ffi.new("ccc_batch *", [self._records, len(kept), self._c_handles, len(c_handles)])
        self._launches = kept

    def __len__(self) -> int:
        return len(self._launches)

    def __repr__(self) -> str:
        return f"<LaunchBatch of {len(self)} launch{'es' * (len(self) != 1)}>"

    def launch(self, stream: IsStreamType) -> None:
        """Start all launches, in order.

        Parameters
        ----------
        stream : Stream
            The kernels run in the order of this stream.

        Raises
        ------
        TypeError
            If `stream` is none.
        RuntimeError
            If something is closed: the stream, a kernel, a buffer, or what a configuration refers to; or if the stream
            is a :class:`~cuda_core_cffi.graph.GraphBuilder` that is not building. Then nothing was launched.
        UnavailableError
            If the device or the driver lacks what a configuration asks for. Then nothing was launched either.
        CUDAError
            If the driver refuses a launch. Those before it are started, and those after it are not; a note says which
            it is.
        """
        if not isinstance(stream, Stream):
            stream = launch_stream(stream, "LaunchBatch.launch")
        done = _launch_batch(self._native, stream._c_handle, 0)
        while done != len(self._launches):
            status = lib.ccc_last_status()
            if status != UNCHECKED:
                raise self._failure(status, done, stream)
            self._allow(stream)
            done = _launch_batch(self._native, stream._c_handle, done)

    def _allow(self, stream: Stream) -> None:
        """Look whether the stream's device has what the configurations ask for."""
        looked_at = set()
        for number, (prepared, *_) in enumerate(self._launches):
            if prepared not in looked_at:
                looked_at.add(prepared)
                try:
                    prepared._plan.allow(stream)
                except Exception as error:
                    error.add_note(f"in launch {number} of the batch")
                    raise

    def _failure(self, status: int, done: int, stream: Stream) -> Exception:
        if status == lib.CCC_CLOSED:
            return self._what_is_closed() or stream._failure(status)
        plan = self._launches[done][0]._plan
        error = launch_failure(status, stream, plan.config, plan.kernel)
        error.add_note(f"in launch {done} of the batch of {len(self)}: those before it are started")
        return error

    def _what_is_closed(self) -> Exception | None:
        c_handles = iter(self._c_handles)
        for number, (prepared, *values) in enumerate(self._launches):
            where = f"launch {number} of the batch"
            if prepared.kernel.is_closed:
                return RuntimeError(f"{where}: the Kernel is closed")
            for value in values:
                if isinstance(value, Buffer) and not lib.ccc_is_open(next(c_handles)):
                    return RuntimeError(f"{where}: a Buffer is closed")
        return None


def check_entry(entry: Any, number: int) -> None:
    """Raise if an element of a batch is not a prepared launch and its values."""
    if not isinstance(entry, tuple) or not entry or not isinstance(entry[0], PreparedLaunch):
        raise TypeError(
            f"launch {number} of the batch must be a tuple of a PreparedLaunch and values, not {entry!r:.80}"
        ) from None
    wanted = len(entry[0].argument_types)
    if len(entry) - 1 != wanted:
        raise TypeError(
            f"launch {number} of the batch has {len(entry) - 1} values for {wanted} argument types"
        ) from None
