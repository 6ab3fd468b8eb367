# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What to say of a symbol that is not there: which ones are like it, and why it may go by another name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Final

from cuda_core_cffi._code.mangling import is_mangled, readable_name

KERNEL: Final = "kernel"
VARIABLE: Final = "variable"

_GETTERS: Final = {KERNEL: "get_kernel", VARIABLE: "get_global"}
_MOST_SHOWN: Final = 5


def describe_missing_symbol(
    what: str, name: str, expressions: Mapping[str, str], symbols: Mapping[str, Sequence[str]]
) -> str:
    """Return the end of a message, from the kind of the symbol on: ``"kernel 'twise'; did you mean 'twice'?"``.

    ``what`` is `KERNEL` or `VARIABLE`, ``expressions`` are the name expressions that the code knows, with their
    symbols, and ``symbols`` is what the code has of either kind.
    """
    text = f"{what} {name!r}"
    others = {item: other for other, names in symbols.items() if other != what for item in names}
    if other := others.get(expressions.get(name, name)):
        return f"{text}; it is a {other}: use {_GETTERS[other]}"
    mine = {expression: symbol for expression, symbol in expressions.items() if symbol not in others}
    known = _names(mine, symbols[what], is_mangled(name))
    shown = near_matches(name, known)
    if shown:
        text += f"; did you mean {' or '.join(map(_show, shown))}?"
    elif known:
        rest = ", ..." if len(known) > _MOST_SHOWN else ""
        text += f"; it has {', '.join(map(_show, known[:_MOST_SHOWN]))}{rest}"
    if "<" in name:
        text += " Templates are instantiated for the name_expressions that a program is compiled with"
    elif any(map(is_mangled, shown)) and not is_mangled(name):
        text += f' C++ mangles names: declare the {what} extern "C", or compile with name_expressions'
    return text


def near_matches(name: str, known: Sequence[str]) -> list[str]:
    """Return the names that are like one, the likeliest first: as they are, or as C++ source has them."""
    plain = _plain(name)
    by_source: dict[str, list[str]] = {}
    for item in known:
        by_source.setdefault(_plain(readable_name(item)), []).append(item)
    near = [item for item in known if name in item]
    near += [item for source, items in by_source.items() if plain and plain in source for item in items]
    if not near:
        near = difflib.get_close_matches(name, known, _MOST_SHOWN)
        last = {source: source.rpartition("::")[2] for source in by_source}
        like = difflib.get_close_matches(plain.rpartition("::")[2], last.values(), _MOST_SHOWN)
        near += [item for source, items in by_source.items() if last[source] in like for item in items]
    return list(dict.fromkeys(near))[:_MOST_SHOWN]


def _names(expressions: Mapping[str, str], symbols: Sequence[str], with_symbols: bool) -> list[str]:
    """Return the names of symbols: their expressions where they have any, unless the symbols are wanted, too."""
    by_symbol: dict[str, list[str]] = {symbol: [] for symbol in symbols}
    for expression, symbol in expressions.items():
        by_symbol.setdefault(symbol, []).append(expression)
    names = [expression for found in by_symbol.values() for expression in found]
    return names + [symbol for symbol, found in by_symbol.items() if with_symbols or not found]


def _plain(expression: str) -> str:
    """Return a name without the arguments of templates, and without the operator that a variable's expression has."""
    return expression.partition("<")[0].lstrip("& ").rstrip()


def _show(name: str) -> str:
    readable = readable_name(name)
    return repr(name) if readable == name else f"{name!r} ({readable})"
