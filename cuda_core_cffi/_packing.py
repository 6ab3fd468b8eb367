# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Packing: functions compiled for one row of arguments, which put them into the one bytes object that C takes.

Such a record begins with addresses, and the parameter buffer of the kernel follows (``include/ccc_prepared.h``). What a
function has for itself alone is in its closure, because PyPy would keep globals long after the kernel has gone. It is
little, because CPython copies it in every call. What all functions have in common are the globals of a module, which
PyPy finds faster than those in a plain dictionary. Functions for rows of the same form share their code.
"""

from __future__ import annotations

import functools
import itertools
import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

__all__ = ["ADDRESS", "NOT_QUICK", "NOWHERE", "Slot", "compile_maker", "keep_address", "make_pack", "make_record"]

# What a quick function ends in for what it cannot do. ValueError: a wrong number of values, and PyPy's for a sign.
NOT_QUICK: Final = (struct.error, OverflowError, TypeError, AttributeError, ValueError)

# How an address is kept that goes into many records. CPython copies bytes faster than it converts a large integer; for
# PyPy an integer is a register.
ADDRESS, keep_address = ("8s", struct.Struct("=Q").pack) if sys.implementation.name == "cpython" else ("Q", int)
NOWHERE: Final = keep_address(0)

# PyPy compiles no function that does more than so much: rows are packed in parts.
PART: Final = 256 if sys.implementation.name == "cpython" else 32

RECORD = """\
def make(pack, target, slots, types):
    {types} = types
    def record(stream, config, values):
        {values} = values
        if {guards}:
            return pack(stream, config, target{expressions})
        return None
    return record
# {form}
"""
PART_OF_RECORD = """\
def make(pack, slots, types):
    {types} = types
    def part(values):
        {values} = values
        if {guards}:
            return pack({expressions})
        return None
    return part
# {form}
"""


class Slot(NamedTuple):
    """How one argument is packed.

    Attributes
    ----------
    code : str
        Its part of the ``struct`` format.
    expression : str
        Python for the value or values packed, of the variable ``{0}``. What it cannot do ends in one of
        :data:`NOT_QUICK`.
    pack : callable
        The same thing done slowly, for one value: with range checks and clear errors.
    guarded : bool
        Whether the expression is for values of one type alone.
    """

    code: str
    expression: str
    pack: Callable[[Any], bytes]
    guarded: bool = True


Field = tuple[int, Slot]
"""An argument, after the bytes of padding before it."""


@functools.lru_cache(maxsize=512)
def compile_maker(source: str, module: str) -> Callable[..., Any]:
    """Return the function ``make`` of some source, which is compiled once, with the globals of a module."""
    scope: dict[str, Any] = {}
    exec(compile(source, "<launch>", "exec"), vars(sys.modules[module]), scope)
    make: Callable[..., Any] = scope["make"]
    return make


def make_pack(addresses: int, fields: Iterable[Field], size: int | None = None) -> tuple[str, Callable[..., bytes]]:
    """Return the ``struct`` format, and the function that packs it, for addresses and then arguments.

    Parameters
    ----------
    addresses : int
        How many addresses come first.
    fields : iterable of (int, Slot)
        The arguments.
    size : int, optional
        Bytes, with padding at the end. By default there is none.
    """
    form = ADDRESS * addresses + "".join(f"{gap}x{slot.code}" if gap else slot.code for gap, slot in fields)
    if size is not None:
        form += f"{size - struct.calcsize('=' + form)}x"
    # Native integers are converted faster. But they align themselves, and a native float that is too large is infinite.
    native = "f" not in form and struct.calcsize("@" + form) == struct.calcsize("=" + form)
    form = ("@" if native else "=") + form
    return form, struct.Struct(form).pack


def make_record(fields: Sequence[Field], types: Sequence[type], target: Any) -> Callable[..., bytes | None]:
    """Return a function from the addresses of stream and configuration, and values, to the record of a launch.

    Parameters
    ----------
    fields : sequence of (int, Slot)
        The arguments.
    types : sequence of type
        Their types.
    target : bytes or int
        The address that comes third in the record.

    Returns
    -------
    callable
        It returns None for values of other types.
    """
    slots = [slot.pack for _, slot in fields]
    if len(fields) <= PART:
        return compile_row(RECORD, 3, fields, types, target, slots)
    bounds = [*range(0, len(fields), PART), None]  # the last part finds out whether there are too many values
    parts = [
        (compile_row(PART_OF_RECORD, 0, fields[start:end], types[start:end], slots), slice(start, end))
        for start, end in itertools.pairwise(bounds)
    ]
    _, head = make_pack(3, ())

    def record(stream: Any, config: Any, values: tuple[Any, ...]) -> bytes:
        return head(stream, config, target) + b"".join([part(values[where]) for part, where in parts])

    return record


def compile_row(
    template: str, addresses: int, fields: Sequence[Field], types: Sequence[type], *others: Any
) -> Callable[..., Any]:
    """Return the function of a template for some arguments; ``others`` are what only it needs, and all slots."""
    form, pack = make_pack(addresses, fields)
    names = [f"value_{index}" for index in range(len(fields))]
    guards = {name: given for name, given, (_, slot) in zip(names, types, fields) if slot.guarded}
    known = {given: f"type_{index}" for index, given in enumerate(dict.fromkeys(guards.values()))}
    expressions = [slot.expression.format(name) for name, (_, slot) in zip(names, fields)]
    make = compile_maker(
        template.format(
            types=f"({''.join(f'{name}, ' for name in known.values())})",
            values=f"({''.join(f'{name}, ' for name in names)})",
            guards=" and ".join(f"type({name}) is {known[given]}" for name, given in guards.items()) or "True",
            expressions="".join(f", {text}" for text in expressions) if addresses else ", ".join(expressions),
            form=form,
        ),
        __name__,
    )
    row: Callable[..., Any] = make(pack, *others, tuple(known))
    return row
