# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The error log of the driver, from CUDA 12.9 on: for Python's ``logging``, and for the exceptions of failed calls.

The driver logs ``[HH:MM:SS.mmm][thread][CUDA][E] text``. The lines of a call that fails end with ``Returning 1
(CUDA_ERROR_INVALID_VALUE) from cuMemAlloc_v2``; a call that succeeds may log as well. The log is read when an exception
is made, and where a program asks for every line, by the release thread (``include/handles/ccc_log.h``). What was logged
of the last calls is kept by thread, because their exceptions may be made later.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from typing import Final, NamedTuple

from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.locks import new_lock

LOGGER: Final = "cuda_core_cffi.driver"
_CAPACITY: Final = int(lib.CCC_LOG_CAPACITY)
_MOST_THREADS: Final = 64  # of which something is kept
_MOST_CALLS: Final = 4  # of each thread, the newest
_MOST_LINES: Final = 16  # of one call
_ONE_CALL: Final = 1.0  # seconds: what was logged longer before the end of a call is not of that call
_DAY: Final = 24 * 60 * 60

# texts, which re compiles when a call has failed, and keeps
_LINE: Final = r"\[(\d+):(\d+):([\d.]+)\]\[(\d+)\]\[[^]]*\]\[([A-Z])\] ?(.*)"
_END: Final = r"Returning (\d+) \(\w+\) from (\w+)"
VARIANT: Final = r"(_v\d+)?(_ptsz|_ptds)?$"

_new_buffer = ffi.new_allocator(should_clear_after_alloc=False)
_lock = new_lock()


class FailedCall(NamedTuple):
    """What the driver logged of a call."""

    status: int  # what the call returned
    name: str  # the function, without the suffixes of versions
    text: str  # why it failed, in the words of the driver; empty where it does not say


class ThreadLog(NamedTuple):
    """What was logged in a thread."""

    failed: deque[FailedCall]  # the last calls
    lines: deque[tuple[float, str]]  # of calls that have not ended yet, with their times of day in seconds

    def add(self, seconds: float, text: str) -> None:
        """Add a line."""
        end = re.match(_END, text)
        if end is None:
            self.lines.append((seconds, text))
            return
        explained = [line for when, line in self.lines if (seconds - when) % _DAY <= _ONE_CALL]
        self.lines.clear()
        self.failed.append(FailedCall(int(end[1]), re.sub(VARIANT, "", end[2]), "; ".join(explained)))


_threads: dict[int, ThreadLog] = {}  # by get_ident, the one that logged last at the end


def explanation(status: int, call: str) -> str:
    """Return what the driver logged of a call that has just failed in this thread with a status, or an empty text.

    If ``call`` is none of the driver's functions, the last call with that status is meant.
    """
    forward()
    with _lock:
        thread = _threads.get(threading.get_ident())
        calls = list(thread.failed) if thread is not None else []
    name = re.sub(VARIANT, "", call) if call.startswith("cu") else None
    for failed in reversed(calls):
        if failed.status == status and name in (None, failed.name):
            return failed.text
    return ""


def forward() -> None:
    """Read what is new in the log, and give it to the logger."""
    buffer = _new_buffer("char[]", _CAPACITY)
    with _lock:  # so that lines stay in order
        probes = lib.ccc_probe_last()
        size = lib.ccc_log_read(buffer, _CAPACITY)
        lines = ffi.buffer(buffer, size)[:].decode(errors="replace").splitlines() if size else []
        probed = _sort(lines)
        if lines:
            lib.ccc_probe_forget(probes)
    if shown := [line for index, line in enumerate(lines) if index not in probed]:
        _give_to_logger(shown)


def _sort(lines: list[str]) -> set[int]:
    """Put lines to their threads, and return the indices of lines of calls whose failure is a regular answer."""
    probed: set[int] = set()
    unended: dict[int, list[int]] = {}  # by thread, the indices of lines whose call has not ended yet
    for index, line in enumerate(lines):
        found = re.match(_LINE, line)
        if found is None:
            continue
        number, text = int(found[4]), found[6]
        thread = _threads.pop(number, None) or ThreadLog(deque(maxlen=_MOST_CALLS), deque(maxlen=_MOST_LINES))
        end = re.match(_END, text)
        if end is None:
            unended.setdefault(number, []).append(index)
        else:
            explained = unended.pop(number, [])
            if lib.ccc_probe_match(number, re.sub(VARIANT, "", end[2]).encode(), int(end[1])):
                thread.lines.clear()
                probed.update(explained, (index,))
        if index not in probed:
            thread.add(int(found[1]) * 3600 + int(found[2]) * 60 + float(found[3]), text)
        _threads[number] = thread
        if len(_threads) > _MOST_THREADS:
            del _threads[next(iter(_threads))]
    return probed


def _give_to_logger(lines: list[str]) -> None:
    """Log lines: those of errors as such, others as warnings."""
    import logging  # which only programs need whose calls fail

    logger = logging.getLogger(LOGGER)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())  # so that nothing is printed where logging is not set up
    for line in lines:
        found = re.match(_LINE, line)
        level = logging.ERROR if found is not None and found[5] == "E" else logging.WARNING
        logger.log(level, "%s", line)
