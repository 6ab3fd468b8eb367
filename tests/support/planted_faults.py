# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""A module with faults of every kind, for the tests of the fuzzer."""

from __future__ import annotations

import os
import signal
import threading
import time

if os.environ.get("PLANTED_FAULT"):
    __all__ = [os.environ["PLANTED_FAULT"]]


class Crashing:
    """Crashes when it is used after it was closed."""

    def __init__(self) -> None:
        self._is_closed = False

    def close(self) -> None:
        self._is_closed = True

    def use(self) -> None:
        if self._is_closed:
            os.kill(os.getpid(), signal.SIGSEGV)


class Hanging:
    """Waits for itself when it is locked twice."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def lock(self) -> None:
        self._lock.acquire()


class Wrong:
    """Raises what no public function may raise, at the third push."""

    def __init__(self) -> None:
        self._count = 0

    def push(self) -> None:
        self._count += 1
        if self._count == 3:
            raise SystemError("a broken invariant")


class Endless:
    """Has items without an end."""

    def __getitem__(self, index: int) -> int:
        return index


class Leaking:
    """Leaves a stream of the driver behind."""

    def leak(self) -> None:
        from cuda_core_cffi import Device, ffi, lib

        Device(0).set_current()
        assert lib.cuStreamCreate(ffi.new("CUstream *"), 0) == 0


class Racing:
    """Crashes when two threads use and close it at the same time."""

    def __init__(self) -> None:
        self._busy = False

    def use(self) -> None:
        self._busy = True
        time.sleep(0)
        self._busy = False

    def close(self) -> None:
        if self._busy:
            os.kill(os.getpid(), signal.SIGSEGV)
