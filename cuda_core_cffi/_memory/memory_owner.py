# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Memory that Python gives back, rather than a C handle."""

from __future__ import annotations

import collections
import sys
import warnings
from typing import Any

from cuda_core_cffi._core.calls import make
from cuda_core_cffi._core.errors import CUDAWarning, check_cleanup, failure
from cuda_core_cffi._core.ffi import lib
from cuda_core_cffi._core.handle import Use
from cuda_core_cffi._core.locks import new_lock
from cuda_core_cffi._lifetime import pending_calls
from cuda_core_cffi._memory.resource import MemoryResource
from cuda_core_cffi._streams.stream import Stream, default_stream


class MemoryOwner:
    """What has to happen when nobody needs the memory any more: neither the buffer nor what it was exported to.

    The ``deallocate`` of the resource is called, once. The C handle, which holds the deallocation stream, and the owner
    are kept until then.
    """

    __slots__ = ("_address", "_count", "_is_late", "_mr", "_size", "_use", "owner", "stream")

    owner: object | None
    stream: Stream | None

    def __init__(self, c_handle: Any, size: int, mr: MemoryResource | None, owner: object | None) -> None:
        use = make(Use, lib.ccc_view, c_handle)
        if use is None:
            raise failure(lib.ccc_last_status())
        self._use = use
        self._address = int(lib.ccc_identity(c_handle))
        self._size = size
        self._mr = mr
        self._count = 1
        self._is_late = False  # the memory could not go back when the last who needs it went
        self.owner = owner
        self.stream = None

    def retain(self) -> None:
        """Add one who needs the memory."""
        with _lock:
            if self._count == 0:
                raise RuntimeError("this Buffer is closed")
            self._count += 1

    def release(self, _end_use: Any = lib.ccc_use_end) -> None:
        """Remove one; the last gives the memory back.

        Where calls that other threads have begun still use the memory, it goes back soon after them.
        """
        with _lock:
            # it is 0 already where the memory was still in use
            count = self._count = self._count - 1 if self._count else 0
        if count:  # not self._count: a finalizer or a signal handler may have released the last one meanwhile
            return
        if not _is_unused(self._use._c_handle):
            postponed.append(self)
            if not self._is_late:
                self._is_late = True
                _ask_python()  # once: C code may retain the buffer for long
            return
        try:
            if self._mr is not None:
                self._mr.deallocate(self._address, self._size, stream=self._open_stream())
        finally:
            self.owner = None
            if waiting := _end_use(self._use._c_handle):
                check_cleanup(waiting)

    def release_in_cleanup(self) -> None:
        """Remove one where no exception may be raised.

        In a thread of the driver's, where it calls a Python function, a resource must not call the driver: then this is
        done soon, elsewhere.
        """
        if _lock is None:  # the interpreter has ended, and this module
            return
        if _in_host_function():
            postponed.append(self)
            _ask_python()
            return
        try:
            self.release()
        except Exception as error:
            if not sys.is_finalizing():
                text = f"in cleanup of {self._address:#x}: {type(self._mr).__name__}.deallocate failed: {error}"
                warnings.warn(text, CUDAWarning, stacklevel=3)

    def _open_stream(self) -> Stream:
        """Return the deallocation stream, which lives even if the program has closed its own object for it."""
        if self.stream is None:
            return default_stream()
        if not self.stream.is_closed:
            return self.stream
        return Stream.from_handle(int(lib.ccc_buffer_stream(lib.ccc_parent(self._use._c_handle))))


_ask_python = lib.ccc_ask_python
_in_host_function = lib.ccc_in_host_function
_is_unused = lib.ccc_buffer_is_unused
postponed: collections.deque[MemoryOwner] = collections.deque()


def release_postponed() -> None:
    """Do what could not be done in threads of the driver's, or had to wait for calls of other threads."""
    for _ in range(len(postponed)):  # some may be postponed again
        try:
            memory_owner = postponed.popleft()
        except IndexError:  # another thread was faster
            return
        memory_owner.release_in_cleanup()


pending_calls.tasks.append(release_postponed)
_lock = new_lock()
