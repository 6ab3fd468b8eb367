# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The kernels and the variables of object code, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, TypeVar

from cuda_core_cffi._code.missing_symbols import KERNEL, near_matches
from cuda_core_cffi._core.copying import Uncopyable

T = TypeVar("T")


class Symbols(Uncopyable, Mapping[str, T]):
    """The kernels, or the variables, of object code. Iterating gives their names; an item is got when it is asked for.

    Parameters
    ----------
    names : sequence of str
        The names, which ``get`` takes.
    get : callable
        From a name to the kernel or the memory.
    what : str
        What messages call an item.
    """

    __slots__ = ("_get", "_names", "_what")

    _NOT_COPIED_BECAUSE: ClassVar[str] = "it shows object code of this process"

    def __init__(self, names: Sequence[str], get: Callable[[str], T], what: str) -> None:
        self._names, self._get, self._what = tuple(names), get, what

    def __getitem__(self, name: str) -> T:
        if name not in self._names:
            known = near_matches(name, self._names) if isinstance(name, str) else []
            hint = f"did you mean {' or '.join(map(repr, known))}?" if known else f"it has {', '.join(self._names)}"
            raise KeyError(f"the code has no {self._what} {name!r}; {hint if self._names else 'it has none'}")
        return self._get(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<{'kernels' if self._what == KERNEL else 'globals'} {list(self._names)}>"


def named_by(symbols: Sequence[str], expressions: Mapping[str, str]) -> list[str]:
    """Return the name of each symbol: the expression that the code was compiled with for it, or the symbol."""
    names = expressions_of(expressions)
    return [names.get(symbol, symbol) for symbol in symbols]


def expressions_of(mapping: Mapping[str, str]) -> dict[str, str]:
    """Return the first name expression of each symbol."""
    names: dict[str, str] = {}
    for expression, symbol in mapping.items():
        names.setdefault(symbol, expression)
    return names
