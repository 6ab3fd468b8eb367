# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""References to host memory that copies still use.

A copy between a buffer and, say, a NumPy array runs in stream order, perhaps long after the call that made it. Until an
event behind the copy is reached, the array is kept alive here. Each call that synchronises or queries releases
finished ones; so does the next such copy, and else the release thread. At exit the rest is waited for.
"""

from __future__ import annotations

import atexit
import collections
import itertools
import os
from collections.abc import Callable
from typing import Any

from cuda_core_cffi._core.calls import Owner, close, make_in
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import InUse, has_handle
from cuda_core_cffi._lifetime import pending_calls

_ask_python = lib.ccc_ask_python
_attend = lib.ccc_attend  # with a reason to, a wait returns CCC_ATTEND instead of 0
_event_sync = lib.ccc_event_sync
_query = lib.ccc_event_query
_release_memory = ffi.release
_unattend = lib.ccc_unattend
ATTEND: int = lib.CCC_ATTEND
AT_ONCE = 8  # copies that are queried before the next ones are
COPIES: int = lib.CCC_ATTEND_COPIES
DONE = (0, ATTEND, lib.CCC_CLOSED)
NOT_MADE = None
NOT_READY: int = lib.CUDA_ERROR_NOT_READY


class HostReference(Owner):
    """Keep host memory alive for one copy, and own the event of the copy."""

    __slots__ = ("memory",)

    def __init__(self, memory: Any) -> None:  # from ffi.from_buffer, which keeps the object
        self.memory = memory

    def copy(self, helper: Callable[..., Any], *arguments: Any) -> bool:
        """Make the copy with a helper that returns its event, and return whether it was made."""
        try:
            unfinished[id(self)] = self
            _attend(COPIES)
            return make_in(self, helper, *arguments)
        finally:
            if has_handle(self) and not self.is_closed:
                _ask_python()
            else:
                self.release()

    def release(self) -> None:
        """Release the memory and the event, once: the copy is done, or was not made."""
        if unfinished.pop(id(self), None) is None:
            return
        if not unfinished:
            _unattend(COPIES)
            if unfinished:  # another thread was between the two
                _attend(COPIES)
        memory, self.memory = self.memory, None  # PyPy's dict may keep this object, and what is released its owner
        _release_memory(memory)
        if has_handle(self):
            close(self)

    def wait(self) -> None:
        """Wait until the copy is done, and release the memory."""
        if has_handle(self):
            _event_sync(self._c_handle)  # a failure is the stream's, whose sync raises it
            release_finished()


unfinished: collections.OrderedDict[int, HostReference] = collections.OrderedDict()  # a dict's first is slow to take
"""The references of copies that are not known to be done, by their ids, oldest first."""


after_sync: list[Callable[[Any], None]] = []
"""What else is to be done when a program has waited: called with the C handle waited for, NULL for a device.
Only the last may raise."""


def release_finished(everything: bool = True) -> bool:
    """Release the memory of copies that are done, or only of the oldest; return whether one was found under way."""
    under_way = False
    # few at a time, if the first that is not done ends it: there may be thousands, and as many copies that look
    while found := oldest(None if everything else AT_ONCE):
        for reference in found:
            # without an event another thread is making the copy now, and asks for this afterwards
            status = _query(reference._c_handle) if has_handle(reference) else NOT_MADE
            if status in DONE:
                reference.release()
            else:
                under_way |= status == NOT_READY
                if not everything:
                    return under_way
        if everything:
            break
    return under_way


def oldest(count: int | None) -> list[HostReference]:
    """Return the oldest unfinished copies, or all of them."""
    while True:
        try:
            return list(itertools.islice(unfinished.values(), count))
        except RuntimeError:  # without the GIL another thread may change it meanwhile
            continue


def synchronised(waited: Any = ffi.NULL) -> None:
    """Do what there is to do when a program has waited for a stream, event or device."""
    if unfinished:
        release_finished()
    for task in after_sync:
        task(waited)


def after_wait(status: int, waited: Any) -> None:
    """Act on the status, other than 0, of a wait for a stream or event of ours: it may have failed."""
    if status == NOT_READY:
        status = _resume(waited)
    if status == ATTEND:
        synchronised(waited._c_handle)
    elif status:
        raise waited._failure(status)


def _resume(waited: Any) -> int:
    """Wait on, where the simulated driver has returned for signal handlers to run, and return the status.

    Handlers run between two calls. Their exceptions, such as KeyboardInterrupt, end the wait.
    """
    with InUse(waited):
        while (status := int(waited._sync_slice(waited._c_handle, True))) == NOT_READY:
            pass
    return status


def register_after_sync(task: Callable[[Any], None], first: bool = False) -> None:
    """Have a task done from now on, once however often it is registered; ``first`` of all, or last."""
    if task not in after_sync:
        after_sync.insert(0 if first else len(after_sync), task)
        _attend(lib.CCC_ATTEND_TASKS)


def wait_at_exit() -> None:
    """Wait for the copies that are under way: the interpreter is about to free their memory."""
    for reference in oldest(None):
        reference.wait()


def forget_in_child() -> None:
    """After a fork: the copies are the parent's."""
    unfinished.clear()
    _unattend(COPIES)


pending_calls.thread_tasks.append(release_finished)
atexit.register(wait_at_exit)
os.register_at_fork(after_in_child=forget_in_child)
