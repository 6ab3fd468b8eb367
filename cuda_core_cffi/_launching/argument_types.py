# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Argument types of a prepared launch: how the values to come are packed, decided before there is one.

A type says how wide a parameter is, and which values are packed quickly. Any other value is taken as ``launch`` takes
it for a parameter of that width and kind, or refused with the same words.
"""

from __future__ import annotations

import operator
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from cuda_core_cffi._core.packing import Slot, by_function, if_bool
from cuda_core_cffi._launching.arguments import (
    COMPLEX_CODES,
    CTYPES_KINDS,
    FLOAT_CODES,
    HALF_SIZE,
    INT_CODES,
    KIND_NAMES,
    MAX_ALIGNMENT,
    POINTER_SIZE,
    TAKEN_BY,
    UNSIGNED_CTYPES,
    USER_DEFINED,
    Parameter,
    buffer_slot,
    complex_slot,
    float_slot,
    int_slot,
    make_slot,
)
from cuda_core_cffi._memory import Buffer


class Width(NamedTuple):
    """What a type tells of its values.

    Attributes
    ----------
    family : str
        A key of :data:`FAMILIES`.
    size : int or None
        Bytes. None: as many as the kernel declares.
    signed : bool or None
        Of integers: whether negative values fit, or large ones. None: both, as in :func:`launch`.
    alignment : int or None
        Of structures, in bytes. None: the size, or the largest power of two that divides it.
    """

    family: str
    size: int | None = None
    signed: bool | None = None
    alignment: int | None = None


class Family(NamedTuple):
    """Values that are packed alike.

    Attributes
    ----------
    kinds : str
        Kinds of parameters that they are for.
    sizes : collection of int
        The sizes that they can have, in bytes; empty for any.
    default : int or None
        The size where neither type nor kernel tells it.
    make : callable
        Makes the slot, with the parameter and the width.
    """

    kinds: str
    sizes: Sequence[int]
    default: int | None
    make: Callable[[Parameter, Width], Slot]


def make_type_slot(given: Any, parameter: Parameter) -> tuple[Slot, int]:
    """Return how values for ``parameter`` are packed, if they are of a type, and how they are aligned, in bytes.

    Parameters
    ----------
    given : type or numpy.dtype
        ``Buffer``, ``int``, ``float``, ``bool``, ``complex``, ``bytes`` for a structure, or a type of NumPy or ctypes.
    parameter : Parameter
        What is known of the parameter.

    Returns
    -------
    slot : Slot
        Its ``pack`` takes all that :func:`launch` takes for such a parameter.
    alignment : int
        For kernels that do not tell where a parameter lies.

    Raises
    ------
    TypeError
        If it is no such type, or not one for this parameter.
    """
    where = f"argument type {parameter.position} ({getattr(given, '__name__', given)})"
    width = width_of(given)
    if width is None:
        raise TypeError(
            f"{where}: not a type of kernel arguments; pass Buffer, int, float, bool, complex, bytes for a structure, "
            "or a type of NumPy or ctypes"
        )
    family = FAMILIES[width.family]
    if parameter.kind is not None and parameter.kind not in family.kinds:
        raise TypeError(f"{where}: the kernel declares {KIND_NAMES[parameter.kind]}")
    if None not in (width.size, parameter.size) and width.size != parameter.size:
        raise TypeError(f"{where}: has {width.size} bytes, but the kernel's parameter has {parameter.size}")
    size = width.size or parameter.size or family.default
    if size is None:
        raise TypeError(f"{where}: the driver does not tell how large the parameter is; pass a type that does")
    if family.sizes and size not in family.sizes:
        sizes = ", ".join(map(str, family.sizes))
        raise TypeError(f"{where}: takes {sizes} bytes, not {size}")
    kind = family.kinds[0]
    if width.family == "structure" and parameter.kind is not None:
        kind = parameter.kind  # it says whether a complex number may be one
    known = parameter._replace(size=size, kind=kind, source="this launch is prepared for")
    return family.make(known, width), width.alignment or min(size & -size, MAX_ALIGNMENT)


def infer_types(layout: Sequence[tuple[int, int]] | None, kinds: Sequence[str | None] | None) -> tuple[type, ...]:
    """Return argument types for a kernel that tells the kinds of its parameters.

    Raises
    ------
    TypeError
        If it does not tell them all.
    """
    known = (None,) * len(layout) if kinds is None and layout is not None else kinds
    if known is None:
        raise TypeError("the kernel does not tell what its arguments are: pass their types")
    for index, kind in enumerate(known):
        if kind is None:
            raise TypeError(f"the kernel does not tell the kind of argument {index}: pass the types of all arguments")
    return tuple(DEFAULTS[kind] for kind in known if kind is not None)


def width_of(given: Any) -> Width | None:
    """Return what a type tells; None for what is no type of arguments."""
    numpy, ctypes = sys.modules.get("numpy"), sys.modules.get("ctypes")
    if numpy is not None and (
        isinstance(given, numpy.dtype) or (isinstance(given, type) and issubclass(given, numpy.generic))
    ):
        return numpy_width(numpy.dtype(given))
    if not isinstance(given, type):
        return None
    if ctypes is not None and issubclass(given, (ctypes.Structure, ctypes.Union)):
        return Width("structure", ctypes.sizeof(given), alignment=ctypes.alignment(given))
    if ctypes is not None and issubclass(given, ctypes._SimpleCData):
        code = getattr(given, "_type_", "")
        family = {"i": "bool" if code == "?" else "int", "p": "int", "f": "float"}.get(CTYPES_KINDS.get(code, ""))
        return Width(family, ctypes.sizeof(given), code not in UNSIGNED_CTYPES) if family else None
    size = getattr(given, "_KERNEL_SIZE", None)
    if size is not None:  # a class of this package whose objects are arguments
        return Width("structure", size, alignment=getattr(given, "_KERNEL_ALIGNMENT"))  # noqa: B009
    return next((width for cls, width in PYTHON_TYPES.items() if issubclass(given, cls)), None)


def numpy_width(dtype: Any) -> Width | None:
    """Return what a NumPy type tells."""
    if not dtype.isnative or dtype.hasobject:
        return None
    family = {"i": "int", "u": "int", "b": "bool", "f": "float", "c": "complex", "V": "structure"}.get(dtype.kind)
    if dtype.isbuiltin == USER_DEFINED:
        family = "structure"
    elif family == "float" and dtype.itemsize == HALF_SIZE:
        family = "half"
    if family is None or not dtype.itemsize:
        return None
    return Width(family, dtype.itemsize, dtype.kind != "u", dtype.alignment if family == "structure" else None)


def make_buffer(parameter: Parameter, width: Width) -> Slot:
    """Return the slot for buffers."""
    slot = buffer_slot(None, parameter)

    def pack(value: Any) -> bytes:
        return (slot if isinstance(value, Buffer) else make_slot(type(value), value, parameter)).pack(value)

    return slot._replace(pack=pack)


def make_bool(parameter: Parameter, width: Width) -> Slot:
    """Return the slot for truth values: one byte, or an integer where the kernel declares more."""
    if parameter.size != 1:
        return make_int(parameter, width)

    def pack(value: Any) -> bytes:
        if isinstance(value, int) and value not in (0, 1):
            raise OverflowError(parameter.wrong(value, f"{value} is neither 0 nor 1"))
        return make_slot(type(value), value, parameter).pack(value)

    return Slot("B", if_bool(parameter.position), pack)


def make_int(parameter: Parameter, width: Width) -> Slot:
    """Return the slot for integers and whatever else is one for Python."""
    slot = int_slot(0, parameter)
    bits = 8 * struct.calcsize(slot.code)
    least, most = {None: (-(1 << bits - 1), 1 << bits), True: (-(1 << bits - 1), 1 << bits - 1), False: (0, 1 << bits)}[
        width.signed
    ]

    def pack(value: Any) -> bytes:
        try:
            number = operator.index(value)
        except TypeError:
            return make_slot(type(value), value, parameter).pack(value)
        if not least <= number < most:
            raise OverflowError(parameter.wrong(value, f"{number} is not in the range of {least} to {most - 1}"))
        return slot.pack(number)

    return slot._replace(code=slot.code.upper() if width.signed is False else slot.code, pack=pack)


def make_float(parameter: Parameter, width: Width) -> Slot:
    """Return the slot for floats and whatever Python converts to one."""
    slot = float_slot(0.0, parameter)

    def pack(value: Any) -> bytes:
        if not any(hasattr(value, name) for name in ("__float__", "__index__")):  # float() also takes text
            return make_slot(type(value), value, parameter).pack(value)
        try:
            number = float(value)
        except OverflowError:
            raise OverflowError(parameter.wrong(value, "is too large for a float")) from None
        except TypeError:
            return make_slot(type(value), value, parameter).pack(value)
        return slot.pack(number)

    return slot._replace(pack=pack)


def make_complex(parameter: Parameter, width: Width) -> Slot:
    """Return the slot for complex and real numbers."""
    slot = complex_slot(0j, parameter)

    def pack(value: Any) -> bytes:
        if not isinstance(value, (complex, float, int)):
            return make_slot(type(value), value, parameter).pack(value)
        try:
            number = complex(value)
        except OverflowError:
            raise OverflowError(parameter.wrong(value, "is too large for a float")) from None
        return slot.pack(number)

    return slot._replace(pack=pack)


def make_structure(parameter: Parameter, width: Width) -> Slot:
    """Return the slot for structures: whatever has as many bytes."""

    def pack(value: Any) -> bytes:
        return make_slot(type(value), value, parameter).pack(value)

    return Slot(f"{parameter.size}s", by_function(parameter.position), pack)


FAMILIES = {
    "buffer": Family("pi", (POINTER_SIZE,), POINTER_SIZE, make_buffer),
    "int": Family(TAKEN_BY["i"], tuple(INT_CODES), POINTER_SIZE, make_int),
    "bool": Family("i", tuple(INT_CODES), 1, make_bool),
    "float": Family(TAKEN_BY["f"], tuple(FLOAT_CODES), 8, make_float),
    "half": Family(TAKEN_BY["h"], (HALF_SIZE,), HALF_SIZE, make_float),
    "complex": Family(TAKEN_BY["c"], tuple(COMPLEX_CODES), 16, make_complex),
    "structure": Family("cb", (), None, make_structure),
}
PYTHON_TYPES = {
    Buffer: Width("buffer"),
    bool: Width("bool"),
    int: Width("int"),
    float: Width("float"),
    complex: Width("complex"),
    bytes: Width("structure"),
}
DEFAULTS: dict[str, type] = {"p": Buffer, "i": int, "f": float, "b": bytes, "c": bytes}
