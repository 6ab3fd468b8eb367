# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""How an argument gets into the parameter buffer of a kernel: a slot says so of each.

On CPython C packs the arguments (``include/python/ccc_packer.h``), from what :func:`describe` makes of the slots.
Elsewhere functions do that are compiled for them (``_core/compiled_packing.py``).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from cuda_core_cffi._core.ffi import ffi

ADDRESS: Final = "Q"

HEAD: Final = f"{ADDRESS}8x"  # of a record: ccc_record
PLAN_HEAD: Final = struct.calcsize(f"={HEAD}")


class Way(NamedTuple):
    """How a value becomes what is packed.

    Attributes
    ----------
    letter : str
        What C knows it by; a dash for what C leaves to the slot's function.
    expression : str
        Python for it, of the variable ``{0}``. What it cannot do raises one of ``NOT_ON_FAST_PATH``.
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
HANDLE_OF: Final = Way("-", "{0}._handle")
ARGUMENT_OF: Final = Way("x", "{0}._argument")
OBJECTS: Final = (ADDRESS_OF, ARGUMENT_OF)
"""The ways of arguments that have C handles: buffers, textures and surfaces."""


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
        The slow path, for one value: with range checks and clear errors.
    guarded : bool
        Whether the way is for values of one type alone.
    """

    code: str
    way: Way
    pack: Callable[[Any], bytes]
    guarded: bool = True


Field = tuple[int, Slot]
"""An argument, after the bytes of padding before it."""


def describe(fields: Sequence[Field], known: Sequence[type] | None) -> tuple[tuple[Any, ...], ...]:
    """Return for each argument what C has to know of it.

    Returns
    -------
    tuple of (int, int, str, str, type or None, callable)
        Offset and size in bytes, code, way, the only type on the fast path, and what packs other values.
    """
    described: list[tuple[Any, ...]] = []
    end = 0
    for index, (gap, slot) in enumerate(fields):
        size = struct.calcsize("=" + slot.code)
        letter = "-" if slot.code == "e" else slot.way.letter  # C has no halves
        only = known[index] if known is not None and slot.guarded else None
        described.append((end + gap, size, slot.code[0], letter, only, slot.pack))
        end += gap + size
    return tuple(described)


def plan_head(native: Any) -> bytes:
    """Return what a record of a batch begins with."""
    return struct.pack(f"={HEAD}", address_of(native))


def address_of(pointer: Any) -> int:
    """Return the address of something in C, as records have it."""
    return int(ffi.cast("intptr_t", pointer))
