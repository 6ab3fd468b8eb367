# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of what is kept for others. Nothing in a table keeps an object that was taken out of it.

A dict does that, too, but for PyPy's: to use the places of deleted entries again, it moves the others together, and
leaves them in their old places as well until new entries come there. So it may keep an object that was deleted after
that for as long as the program runs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, MutableMapping
from typing import Any, TypeVar

MISSING = object()
T = TypeVar("T")


class Table(MutableMapping[int, T]):
    """A mapping that keeps nothing that was deleted: its dict has a list for each value, which is emptied."""

    __slots__ = ("_cells",)

    def __init__(self) -> None:
        self._cells: dict[int, list[Any]] = {}

    def __getitem__(self, key: int) -> T:
        value: T = self._cells[key][0]
        return value

    def __setitem__(self, key: int, value: T) -> None:
        self._cells.setdefault(key, [value])[0] = value

    def __delitem__(self, key: int) -> None:
        self._cells.pop(key)[0] = None

    def pop(self, key: int, /, default: Any = MISSING) -> Any:
        """Delete an entry in one step, and return its value; without one, the default, or raise KeyError."""
        cell = self._cells.pop(key, None)
        if cell is not None:
            value, cell[0] = cell[0], None
            return value
        if default is MISSING:
            raise KeyError(key)
        return default

    def clear(self) -> None:
        self._cells.clear()

    def __iter__(self) -> Iterator[int]:
        return iter(self._cells)

    def __len__(self) -> int:
        return len(self._cells)


def new_table() -> MutableMapping[int, T]:
    """Return an empty table: a dict where that does."""
    return Table() if sys.implementation.name == "pypy" else {}
