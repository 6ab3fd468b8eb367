# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The locks of the package, which are free in a child of ``fork()``.

Between any two lines of a thread that holds a lock, the collector may run a finalizer and the interpreter a signal
handler. Either may call the package, and acquire the same lock in the same thread. So locks are reentrant, and the
guarded state is consistent at every line. If losing a race costs only a second computation there is no lock: the result
is published with ``dict.setdefault``.

A child of ``fork()`` has only the thread that forked. A lock that another thread held would never be released there.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def new_lock() -> threading.RLock:
    """Return a reentrant lock that is free in a child of ``fork()`` unless the thread that forked holds it."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def _free_locks() -> None:
    """Free the locks of the threads that are not in the child, with the methods that Python's own modules use."""
    for lock in list(_locks):
        if not lock._is_owned():
            lock._at_fork_reinit()


os.register_at_fork(after_in_child=_free_locks)
