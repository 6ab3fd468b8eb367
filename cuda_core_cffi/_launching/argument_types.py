# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The types of kernel arguments: for each family of values, the parameters that take it, its sizes and its codes.

A plain launch has the types of the values that it is given, and a prepared launch those that it is declared with.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from cuda_core_cffi._memory import Buffer

POINTER_SIZE = 8
HALF_SIZE = 2
USER_DEFINED = 2  # numpy.dtype.isbuiltin of types that another library adds, such as bfloat16
UNSIGNED_CTYPES = "BHILQP"


class Family(NamedTuple):
    """Values that are packed alike.

    Attributes
    ----------
    kinds : str
        The kinds of parameters (``_code/mangling.py``) that take them. An address is often kept as a number.
    codes : dict of int to str
        Their code of ``struct`` by their size, in bytes; empty for any size.
    default : int or None
        The size where neither type nor kernel tells it.
    """

    kinds: str
    codes: dict[int, str]
    default: int | None


INT_CODES = {1: "b", 2: "h", 4: "i", 8: "q"}
FAMILIES = {
    "address": Family("pi", {POINTER_SIZE: "Q"}, POINTER_SIZE),
    "int": Family("ip", INT_CODES, POINTER_SIZE),
    "bool": Family("i", {**INT_CODES, 1: "?"}, 1),
    "float": Family("f", {HALF_SIZE: "e", 4: "f", 8: "d"}, 8),
    "half": Family("fc", {HALF_SIZE: "e"}, HALF_SIZE),
    "complex": Family("c", {8: "ff", 16: "dd"}, 16),
    "structure": Family("cb", {}, None),
}
NUMPY_FAMILIES = {"i": "int", "u": "int", "b": "bool", "f": "float", "c": "complex", "V": "structure"}
CTYPES_FAMILIES = {
    **dict.fromkeys("bBhHiIlLqQcuPzZ", "int"),
    "?": "bool",
    **dict.fromkeys("fd", "float"),
    **dict.fromkeys(["F", "D", "Zf", "Zd"], "complex"),  # in CPython 3.14, and from 3.15 on
}


class ArgumentType(NamedTuple):
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

    @property
    def code(self) -> str:
        """The ``struct`` code of a number of this type and size; nothing where there is none."""
        code = FAMILIES[self.family].codes.get(self.size or 0, "")
        return code.upper() if self.signed is False else code


PYTHON_TYPES = {
    Buffer: ArgumentType("address"),
    bool: ArgumentType("bool"),
    int: ArgumentType("int"),
    float: ArgumentType("float"),
    complex: ArgumentType("complex"),
    bytes: ArgumentType("structure"),
}
DEFAULTS: dict[str, type] = {"p": Buffer, "i": int, "f": float, "b": bytes, "c": bytes}


def argument_type(given: Any) -> ArgumentType | None:
    """Return what a type tells; None for what is no type of arguments."""
    numpy, ctypes = sys.modules.get("numpy"), sys.modules.get("ctypes")
    if numpy is not None and (
        isinstance(given, numpy.dtype) or (isinstance(given, type) and issubclass(given, numpy.generic))
    ):
        return numpy_type(numpy.dtype(given))
    if not isinstance(given, type):
        return None
    if ctypes is not None and issubclass(given, (ctypes._SimpleCData, ctypes.Structure, ctypes.Union)):
        return ctypes_type(given)
    size = getattr(given, "_KERNEL_SIZE", None)
    if size is not None:  # a class of this package whose objects are arguments
        return ArgumentType("structure", size, alignment=getattr(given, "_KERNEL_ALIGNMENT"))  # noqa: B009
    return next((found for cls, found in PYTHON_TYPES.items() if issubclass(given, cls)), None)


def numpy_type(dtype: Any) -> ArgumentType | None:
    """Return what a NumPy type tells."""
    if not dtype.isnative or dtype.hasobject:
        return None
    family = NUMPY_FAMILIES.get(dtype.kind)
    if dtype.isbuiltin == USER_DEFINED:  # numbers that are classes in C++
        family = "structure"
    elif family == "float" and dtype.itemsize == HALF_SIZE:
        family = "half"
    if family is None or not dtype.itemsize:
        return None
    return ArgumentType(family, dtype.itemsize, dtype.kind != "u", dtype.alignment if family == "structure" else None)


def ctypes_type(cls: Any) -> ArgumentType | None:
    """Return what a ctypes type tells."""
    ctypes = sys.modules["ctypes"]
    if not issubclass(cls, ctypes._SimpleCData):
        return ArgumentType("structure", ctypes.sizeof(cls), alignment=ctypes.alignment(cls))
    code = getattr(cls, "_type_", "")
    family = CTYPES_FAMILIES.get(code)
    return ArgumentType(family, ctypes.sizeof(cls), code not in UNSIGNED_CTYPES) if family else None


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
