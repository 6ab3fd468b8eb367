# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What the release thread does in Python, on behalf of C code that must not wait for the GIL.

C queues what Python is to release, and asks the release thread (``include/handles/ccc_release.h``), which calls Python
some milliseconds later unless a call of the program has released everything before. Finalizers run there.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from threading import get_ident
from types import TracebackType

from cuda_core_cffi._core.errors import check_cleanup
from cuda_core_cffi._core.ffi import ffi, lib

tasks: list[Callable[[], None]] = []
"""What is done. A module that C may ask for something appends to this when it is imported."""

thread_tasks: list[Callable[[], bool]] = []
"""What is done besides in the release thread, and otherwise by the calls that wait. They return whether something is
left that has to be waited for, so that the thread looks again."""


class Unraisable:
    """Has Python hand an exception to ``sys.unraisablehook``: what a finalizer raises goes there."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __del__(self) -> None:
        raise self.error


def run_tasks() -> None:
    """Do everything that may have been asked for."""
    for task in tasks:
        task()


_release_thread = 0  # as get_ident tells, once it has called Python


def run_all_tasks() -> None:
    """Do everything that may have been asked for, and wait for what the release thread is doing."""
    if get_ident() == _release_thread:  # a finalizer that it calls: it cannot wait for itself
        run_tasks()
        return
    lib.ccc_release_pause()
    try:
        run_tasks()
    finally:
        lib.ccc_release_resume()


def report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Report what a task has raised: nobody else would."""
    Unraisable(error.with_traceback(trace))


@ffi.def_extern(onerror=report)  # type: ignore[untyped-decorator]
def ccc_release_python() -> bool:
    """Do it in the release thread."""
    global _release_thread
    _release_thread = get_ident()
    again = [task() for task in thread_tasks]
    run_tasks()
    check_cleanup(1)
    return any(again)


lib.ccc_release_resume()
atexit.register(lib.ccc_release_pause)  # the interpreter is about to end
