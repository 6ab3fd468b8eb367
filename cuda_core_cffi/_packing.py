# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Packing: how arguments get into the parameter buffer of a kernel, quickly.

A slot says so of one argument. C packs whole rows of them on CPython (``include/ccc_rows.h``, which :func:`describe` is
for). Elsewhere functions do that which are compiled for one row of arguments (:func:`make_row`, :func:`prepare`). They
pack a record into one bytes object: addresses, and then the parameter buffer (``include/ccc_prepared.h``).

What such a function has for itself alone is in its closure, because PyPy would keep globals long after the kernel has
gone. What all functions have in common are the globals of this module, which PyPy finds faster than those in a plain
dictionary. Functions for rows of the same form share their code.
"""

from __future__ import annotations

import functools
import itertools
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from cuda_core_cffi._ffi import ffi, lib

__all__ = [
    "ADDRESS",
    "ADDRESS_OF",
    "AS_IS",
    "HANDLE_OF",
    "PARTS",
    "PLAN_HEAD",
    "UNLESS_NAN",
    "VALUE_OF",
    "VALUE_UNLESS_NAN",
    "Field",
    "Slot",
    "Way",
    "by_function",
    "describe",
    "if_bool",
    "if_bytes",
    "launch",
    "make_row",
    "pack",
    "plan_head",
    "prepare",
    "retarget",
]

_start = lib.ccc_launch_record
_start_prepared = lib.ccc_launch_prepared

# What a quick function ends in for what it cannot do. ValueError: a wrong number of values, and PyPy's for a sign.
NOT_QUICK: Final = (struct.error, OverflowError, TypeError, AttributeError, ValueError)

ADDRESS: Final = "Q"
NOWHERE: Final = 0

CALL_HEAD: Final = struct.calcsize(f"={3 * ADDRESS}")  # bytes of a record before the arguments: ccc_call
PLAN_HEAD: Final = struct.calcsize(f"={2 * ADDRESS}")  # of one of a prepared launch: ccc_record

PART: Final = 32  # PyPy compiles no function that does much more: rows are packed in parts

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

# `launch` does not call `record`: a call costs a tenth of a launch. Records of a batch have NOWHERE for a stream.
PREPARED = '''\
def make(pack, plan, address, slots):
    def launch(stream{parameters}, /):
        """Start the kernel in a stream, with these values."""
        try:
            record = pack(stream._packed_box, address{expressions})
        except NOT_QUICK:
            plan.launch_slowly(None, stream, ({arguments}))
        else:
            if status := _start_prepared(record):
                plan.launch_slowly(status, stream, ({arguments}))

    def record(boxes, prepared{parameters}, /):
        try:
            found = ({boxes})
            data = pack(NOWHERE, address{expressions})
        except NOT_QUICK:
            return plan.record_slowly(boxes, ({arguments}))
        boxes += found
        return data

    return launch, record
# {form}
'''


class Way(NamedTuple):
    """How a value becomes what is packed.

    Attributes
    ----------
    letter : str
        What C knows it by; a dash for what C leaves to the slot's function.
    expression : str
        Python for it, of the variable ``{0}``. What it cannot do ends in one of :data:`NOT_QUICK`.
    """

    letter: str
    expression: str


AS_IS: Final = Way("v", "{0}")
VALUE_OF: Final = Way("a", "{0}.value")
# What is converted to Python's float and back is the same again, but a signalling NaN is quiet then.
UNLESS_NAN: Final = Way("n", "number if (number := {0}) == number else None")
VALUE_UNLESS_NAN: Final = Way("m", "number if (number := {0}.value) == number else None")
PARTS: Final = Way("c", "{0}.real, {0}.imag")
ADDRESS_OF: Final = Way("b", "{0}._packed_address")
HANDLE_OF: Final = Way("-", "{0}.handle")


def by_function(position: int) -> Way:
    """Return the way of an argument that only the slot's function packs."""
    return Way("-", f"slots[{position}]({{0}})")


def if_bytes(position: int, code: str) -> Way:
    """Return the way of bytes: as they are if there are as many as the code says."""
    return Way("y", f"{{0}} if len({{0}}) == {code[:-1]} else {by_function(position).expression}")


def if_bool(position: int) -> Way:
    """Return the way of truth values of one byte, for which the ``?`` of struct would take anything."""
    return Way("t", f"{{0}} if {{0}}.__class__ is bool else {by_function(position).expression}[0]")


class Slot(NamedTuple):
    """How one argument is packed.

    Attributes
    ----------
    code : str
        Its part of the ``struct`` format.
    way : Way
        What becomes of the value.
    pack : callable
        The same thing done slowly, for one value: with range checks and clear errors.
    guarded : bool
        Whether the way is for values of one type alone.
    """

    code: str
    way: Way
    pack: Callable[[Any], bytes]
    guarded: bool = True


Field = tuple[int, Slot]
"""An argument, after the bytes of padding before it."""


def describe(fields: Sequence[Field], types: Sequence[type] | None) -> tuple[tuple[Any, ...], ...]:
    """Return for each argument what C has to know of it.

    Returns
    -------
    tuple of (int, int, str, str, type or None, callable)
        Offset and size in bytes, code, way, the only type that is quick, and what packs other values.
    """
    described: list[tuple[Any, ...]] = []
    end = 0
    for index, (gap, slot) in enumerate(fields):
        size = struct.calcsize("=" + slot.code)
        letter = "-" if slot.code == "e" else slot.way.letter  # C has no halves
        only = types[index] if types is not None and slot.guarded else None
        described.append((end + gap, size, slot.code[0], letter, only, slot.pack))
        end += gap + size
    return tuple(described)


def launch(row: Callable[..., Any], stream: Any, native: Any, values: tuple[Any, ...]) -> int | None:
    """Launch with a row, and return a status; None for what is not quick."""
    try:
        record = row(stream._packed_box, native[0], values)
    except NOT_QUICK:
        return None
    if record is None:
        return None
    status: int = _start(record)
    return status


def pack(row: Callable[..., Any], values: tuple[Any, ...]) -> bytes | None:
    """Return the parameter buffer for values; None for what is not quick."""
    try:
        record: bytes | None = row(NOWHERE, NOWHERE, values)
    except NOT_QUICK:
        return None
    return None if record is None else record[CALL_HEAD:]


def make_row(fields: Sequence[Field], types: Sequence[type], target: Any) -> Callable[..., bytes | None]:
    """Return what launches take that are not prepared: a function to the record of one.

    Parameters
    ----------
    fields : sequence of (int, Slot)
        The arguments.
    types : sequence of type
        Their types.
    target : CFFI pointer
        The ``ccc_target``. It must live as long as the row.

    Returns
    -------
    callable
        From the addresses of stream and configuration, and the values. It returns None for values of other types.
    """
    slots = [slot.pack for _, slot in fields]
    if len(fields) <= PART:
        make = compile_row(RECORD, 3, fields, types)
        return aim(lambda address: make(address, slots), target)
    bounds = [*range(0, len(fields), PART), None]  # the last part finds out whether there are too many values
    parts = [
        (compile_row(PART_OF_RECORD, 0, fields[start:end], types[start:end])(slots), slice(start, end))
        for start, end in itertools.pairwise(bounds)
    ]
    _, head = make_pack(3, ())

    def bind(address: int) -> Callable[..., bytes]:
        def record(stream: Any, config: Any, values: tuple[Any, ...]) -> bytes:
            return head(stream, config, address) + b"".join([part(values[where]) for part, where in parts])

        return record

    return aim(bind, target)


def retarget(row: Any, target: Any) -> Callable[..., bytes | None]:
    """Return a row like another one, for another target that has the same parameters."""
    return aim(row.bind, target)


def aim(bind: Callable[[int], Any], target: Any) -> Callable[..., bytes | None]:
    """Return a row for a target, which knows how others are made."""
    row: Any = bind(address_of(target))
    row.bind = bind
    made: Callable[..., bytes | None] = row
    return made


def prepare(fields: Sequence[Field], native: Any, plan: Any) -> tuple[Callable[..., None], Callable[..., bytes]]:
    """Return the functions of a prepared launch.

    Parameters
    ----------
    fields : sequence of (int, Slot)
        The arguments.
    native : CFFI pointer
        The ``ccc_plan``.
    plan : object
        Has `native`, and does what is not quick: ``launch_slowly(status, stream, values)`` and
        ``record_slowly(boxes, values)``.

    Returns
    -------
    launch : callable
        From stream and values.
    record : callable
        From a list that the boxes of buffers are added to, anything, and values, to the record for a batch.
    """
    form, pack = make_pack(2, fields, native.stride)
    names = [f"argument_{index}" for index in range(len(fields))]
    slots = [slot for _, slot in fields]
    make: Callable[..., tuple[Callable[..., None], Callable[..., bytes]]] = compile_maker(
        PREPARED.format(
            parameters="".join(f", {name}" for name in names),
            boxes="".join(f"{name}._box, " for name, slot in zip(names, slots) if slot.way is ADDRESS_OF),
            arguments="".join(f"{name}, " for name in names),
            expressions="".join(f", {slot.way.expression.format(name)}" for name, slot in zip(names, slots)),
            form=form,
        ),
    )
    return make(pack, plan, address_of(native), [slot.pack for slot in slots])


def plan_head(native: Any) -> bytes:
    """Return what a record of a batch begins with."""
    return struct.pack(f"={2 * ADDRESS}", NOWHERE, address_of(native))


def address_of(pointer: Any) -> int:
    """Return the address of something in C, as records have it."""
    return int(ffi.cast("uintptr_t", pointer))


@functools.lru_cache(maxsize=512)
def compile_maker(source: str) -> Callable[..., Any]:
    """Return the function ``make`` of some source, which is compiled once."""
    scope: dict[str, Any] = {}
    exec(compile(source, "<launch>", "exec"), globals(), scope)
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


def compile_row(
    template: str, addresses: int, fields: Sequence[Field], types: Sequence[type]
) -> Callable[..., Callable[..., Any]]:
    """Return what makes the function of a template for some arguments, from what only it needs, and all slots."""
    form, pack = make_pack(addresses, fields)
    names = [f"value_{index}" for index in range(len(fields))]
    guards = {name: given for name, given, (_, slot) in zip(names, types, fields) if slot.guarded}
    known = {given: f"type_{index}" for index, given in enumerate(dict.fromkeys(guards.values()))}
    expressions = [slot.way.expression.format(name) for name, (_, slot) in zip(names, fields)]
    make = compile_maker(
        template.format(
            types=f"({''.join(f'{name}, ' for name in known.values())})",
            values=f"({''.join(f'{name}, ' for name in names)})",
            guards=" and ".join(f"type({name}) is {known[given]}" for name, given in guards.items()) or "True",
            expressions="".join(f", {text}" for text in expressions) if addresses else ", ".join(expressions),
            form=form,
        ),
    )
    return lambda *others: make(pack, *others, tuple(known))
