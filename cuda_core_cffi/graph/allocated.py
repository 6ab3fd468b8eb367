# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The memory of the allocation nodes of all graphs, of which the driver tells nothing before a graph runs."""

from __future__ import annotations

import bisect
import operator
import weakref

from cuda_core_cffi._core.locks import new_lock

FEW_RANGES = 64  # from so many on, those of owners that are gone are looked for when their number has doubled

_start = operator.itemgetter(0)
_end = operator.itemgetter(1)


class Ranges:
    """Ranges of addresses, each until its owner is gone.

    The driver gives the nodes of graphs that exist addresses of their own. A range that has addresses in common with
    one of another owner therefore takes its place.
    """

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, weakref.ref[object]]] = []  # in order, without common addresses
        self._most = FEW_RANGES
        self._newest: object = None  # what changes the rows now, or has done so last
        self._lock = new_lock()

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, owner: object, address: int, size: int) -> None:
        """Remember a range. Ranges of one owner that touch become one."""
        with self._lock:
            while not self._put(owner, address, address + size):
                pass
            if len(self._rows) > self._most:
                self._forget_gone()

    def _put(self, owner: object, start: int, end: int) -> bool:
        """Put a range in its place; return False if a finalizer or a signal handler has changed the rows meanwhile."""
        self._newest = this = object()
        rows = self._rows
        # of ranges without common addresses the ends are in order, too
        first = bisect.bisect_left(rows, start, key=_end)
        last = bisect.bisect_right(rows, end, key=_start)
        others = []
        for low, high, known in rows[first:last]:
            found = known()
            if found is owner:
                start, end = min(start, low), max(end, high)
            elif found is not None:
                others.append((low, high, known))
        replacement = [
            *((low, start, known) for low, _, known in others if low < start),
            (start, end, weakref.ref(owner)),
            *((end, high, known) for _, high, known in others if high > end),
        ]
        rows[first:last] = replacement if self._newest is this else rows[first:last]
        return self._newest is this

    def _forget_gone(self) -> None:
        self._newest = this = object()
        rows = [row for row in self._rows if row[2]() is not None]
        self._rows = rows if self._newest is this else self._rows
        self._most = max(2 * len(self._rows), FEW_RANGES)

    def __contains__(self, address: int) -> bool:
        with self._lock:
            rows = self._rows
            if not rows or not rows[0][0] <= address < rows[-1][1]:
                return False
            _, end, owner = rows[bisect.bisect_right(rows, address, key=_start) - 1]
            return address < end and owner() is not None


allocated = Ranges()
"""What allocation nodes have given; each range belongs to what is known of the outermost graph."""
