# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Memory of Python objects that copies still use.

A copy between a buffer and, say, a NumPy array runs in stream order, perhaps long after the call that made it. Until an
event behind the copy is reached the array's memory is held here. Whoever finds that work is done, by synchronising or
asking, releases what was held for it; so does the next such copy, and else the release thread. At exit what is left
is waited for.
"""

from __future__ import annotations

import atexit
import collections
import itertools
import os
from collections.abc import Callable
from typing import Any

from cuda_core_cffi._core.errors import check_cleanup
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.locks import new_lock
from cuda_core_cffi._lifetime import pending_calls

_ask_python = lib.ccc_ask_python
_attend = lib.ccc_attend  # while there is anything to look at, what has waited returns CCC_ATTEND instead of 0
_release_object = lib.ccc_release_object
_query = lib.ccc_event_query
_unattend = lib.ccc_unattend
ATTEND: int = lib.CCC_ATTEND
AT_ONCE = 8  # copies that are looked at before the next ones are
DONE = (0, ATTEND)
NOT_READY: int = lib.CUDA_ERROR_NOT_READY


class Hold:
    """Memory of the host, held for one copy.

    It is in place before the copy is made, so that an interrupt just after that does not lose it.

    Parameters
    ----------
    memory : cdata
        From ``ffi.from_buffer``: it keeps the object, where it is and as large as it is.

    Attributes
    ----------
    memory : cdata or None
        The same; None once it is released.
    event : ccc_handle **
        Where the copy puts its event; NULL while the copy is being made, and after one that is already done.
    waiting : int
        How many threads wait for the event: nobody releases it meanwhile.
    """

    __slots__ = ("event", "memory", "waiting")

    def __init__(self, memory: Any) -> None:
        self.memory = memory
        self.waiting = 0
        self.event = ffi.new("ccc_handle **")
        _attend()
        held[id(self)] = self

    def release_unless_busy(self) -> None:
        """Release the memory unless the copy is under way."""
        if self.event[0]:
            _ask_python()
        elif held.pop(id(self), None) is not None:
            _unattend()
            self.release()

    def release(self) -> None:
        """Release the memory, which no copy uses any more."""
        memory, self.memory = self.memory, None  # PyPy's dict may keep this object, and what is released its owner
        ffi.release(memory)

    def wait(self) -> None:
        """Wait until the copy is done, and release the memory."""
        with state.lock:
            if not self.event[0] or id(self) not in held:
                return
            self.waiting += 1  # where an interrupt comes now, the memory is held to the end of the process
        try:
            lib.ccc_event_sync(self.event[0])  # a failure is the stream's, which its sync tells
        finally:
            with state.lock:
                self.waiting -= 1
        release_finished()


held: collections.OrderedDict[int, Hold] = collections.OrderedDict()  # from a dict the first is not taken so fast
"""What copies use, oldest first."""


after_sync: list[Callable[[Any], None]] = []
"""What else is to be done when a program has waited: called with the C handle waited for, NULL for a device.
Only the last may raise."""


class State:
    """Who is releasing."""

    __slots__ = ("busy", "lock")

    def __init__(self) -> None:
        self.lock = new_lock()
        self.busy = False


state = State()


def release_finished(everything: bool = True) -> bool:
    """Let go of the memory of copies that are done; or only of the oldest, up to the first that is not.

    Returns
    -------
    bool
        Whether one was found that is under way.
    """
    finished: list[Hold] = []
    under_way = False
    with state.lock:
        if state.busy:  # we are in a finalizer that ran in this very function
            return False
        state.busy = True
        try:
            # few at a time, if the first that is not done ends it: there may be thousands, and as many copies that look
            while found := oldest(None if everything else AT_ONCE):
                for hold in found:
                    # without an event another thread is making it now
                    status = _query(hold.event[0]) if hold.event[0] and not hold.waiting else NOT_READY
                    if status in DONE:
                        finished.append(held.pop(id(hold)))
                        _unattend()
                    else:
                        under_way |= status == NOT_READY
                        if not everything:
                            break
                else:
                    if not everything:
                        continue
                break
        finally:
            state.busy = False
    for hold in finished:
        hold.release()
        if failures := _release_object(hold.event[0]):
            check_cleanup(failures)
    return under_way


def oldest(count: int | None) -> list[Hold]:
    """Return the oldest of ``held``, or all of them."""
    while True:
        try:
            return list(itertools.islice(held.values(), count))
        except RuntimeError:  # without the GIL another thread may change it meanwhile
            continue


def synchronised(waited: Any = ffi.NULL) -> None:
    """Do what there is to do when a program has waited for a stream, event or device."""
    if held:
        release_finished()
    for task in after_sync:
        task(waited)


def after_wait(waited: Any, status: int) -> None:
    """Do what the status says, other than 0, of a wait for a stream or event of ours: it may have failed."""
    if status != ATTEND:
        raise waited._failure(status)
    synchronised(waited._c_handle)


def register_after_sync(task: Callable[[Any], None], first: bool = False) -> None:
    """Have a task done from now on, once however often it is registered; ``first`` of all, or last."""
    if task not in after_sync:
        after_sync.insert(0 if first else len(after_sync), task)
        _attend()


def wait_at_exit() -> None:
    """Wait for the copies that are under way: the interpreter is about to free their memory."""
    for hold in oldest(None):
        hold.wait()


def forget_in_child() -> None:
    """After a fork: the copies are the parent's."""
    state.busy = False
    while held:
        held.popitem()
        _unattend()


pending_calls.thread_tasks.append(release_finished)
atexit.register(wait_at_exit)
os.register_at_fork(after_in_child=forget_in_child)
