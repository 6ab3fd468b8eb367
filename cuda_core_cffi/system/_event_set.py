# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Sets of events that NVML records: freed once, and waited on so that a signal ends the wait."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import ClassVar, Self, TypeVar

from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi.system._header import nvml
from cuda_core_cffi.system._library import process
from cuda_core_cffi.system.exceptions import failure

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

    def _own(self, handle: int, free: Callable[[int], object]) -> None:
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
