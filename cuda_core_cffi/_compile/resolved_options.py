# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Options of a program as they were when it was made, and what was worked out about them.

Programs are often made one after the other with the same options. So those which were resolved last are kept, by the
values of all fields; as marshal writes them, 1 and True are not the same value, and later changes make another one.
"""

from __future__ import annotations

import dataclasses
import marshal
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from cuda_core_cffi._compile.program_options import ProgramOptions, check_fields
from cuda_core_cffi.typing import ObjectCodeFormatType

_MOST_KEPT = 64
_LARGEST_KEPT = 4096  # bytes
_MARSHAL_VERSION = 0  # in which the same values are always the same bytes
_NAMES = [field.name for field in dataclasses.fields(ProgramOptions)]

_kept: dict[bytes, ResolvedOptions] = {}


class ResolvedOptions:
    """Options that are checked, and do not change: a copy, on which later changes to the original do not work."""

    __slots__ = ("begun", "checked", "options", "spelt")

    def __init__(self, options: ProgramOptions, fields: Mapping[str, Any]) -> None:
        self.checked = check_fields(fields)
        self.options = object.__new__(type(options))
        vars(self.options).update({name: _copy(value) for name, value in fields.items()})
        # What NVRTC gets, by target; only what does not depend on anything else.
        self.spelt: dict[ObjectCodeFormatType, list[bytes]] = {}
        # Digests for keys of cached code that lack the source, by target, each after what it was made from.
        self.begun: dict[ObjectCodeFormatType, tuple[list[bytes], bytes, Any]] = {}


def _copy(value: Any) -> Any:
    """Return a value, or a copy of one that can be changed."""
    if isinstance(value, list):  # which stays one: two names are no tuple of a name and a value
        return [_copy(item) for item in value]
    if isinstance(value, tuple):
        return tuple(_copy(item) for item in value)
    return bytes(value) if isinstance(value, bytearray) else value


def resolve(options: ProgramOptions) -> ResolvedOptions:
    """Return options as they are now, after a check."""
    values = _written(options) if type(options) is ProgramOptions else None
    if values is None:
        return ResolvedOptions(options, vars(options))
    resolved = _kept.get(values)
    if resolved is not None:
        return resolved
    check_fields(vars(options))
    fields = dict(zip(_NAMES, marshal.loads(values)))  # even if another thread changes a list
    if _has_bytes(fields.values()):  # NumPy's integers, as marshal writes them
        return ResolvedOptions(options, vars(options))
    resolved = ResolvedOptions(options, fields)
    if len(values) <= _LARGEST_KEPT:
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        _kept[values] = resolved
    return resolved


def _written(options: ProgramOptions) -> bytes | None:
    """Return the values of all fields; None if one is a path, or what must not be there, or they have another order."""
    # Sources in memory, which may be large, are the only values that may be bytes: what marshal makes of any buffer.
    if options.extra_headers or options.extra_sources:
        return None
    values = _values(options)
    try:
        return None if values is None else marshal.dumps(values, _MARSHAL_VERSION)
    except ValueError:
        return None


def _has_bytes(values: Iterable[Any]) -> bool:
    """Tell whether there are bytes among the values, or in lists of them, however deep."""
    return any(_has_bytes(value) if isinstance(value, list | tuple) else isinstance(value, bytes) for value in values)


def _values_in_order(options: ProgramOptions) -> list[Any] | None:
    """Return the values of all fields; None if they have another order, because one was deleted and set anew."""
    fields = vars(options)
    return [*fields.values()] if [*fields] == _NAMES else None


# PyPy takes several microseconds for those, and next to nothing for a function that names all fields.
_values: Callable[[ProgramOptions], list[Any] | None] = (
    _values_in_order
    if sys.implementation.name == "cpython"
    else eval(f"lambda options: [{', '.join(f'options.{name}' for name in _NAMES)}]")
)
