# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Data types: DLPack's codes and NumPy's dtypes.

DLPack's type is handled as one integer, as it lies in memory: its code in the lowest byte, then its bits, then its
lanes in two bytes.
"""

from __future__ import annotations

import functools
import re
import sys
from typing import Any

ONE_LANE = 1 << 16
BITS_OF_BYTE = 8
FIELD_NAME = re.compile(":[^:]*:")  # in a format of the buffer protocol

# Types of NumPy itself, by their name there.
NUMPY_TYPES = {
    **{f"int{bits}": (0, bits) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (1, bits) for bits in (8, 16, 32, 64)},
    **{f"float{bits}": (2, bits) for bits in (16, 32, 64)},
    **{f"complex{bits}": (5, bits) for bits in (64, 128)},
    "bool": (6, 8),
}
# Types that the package ml_dtypes adds.
ML_TYPES = {
    "bfloat16": (4, 16),
    "float8_e3m4": (7, 8),
    "float8_e4m3": (8, 8),
    "float8_e4m3b11fnuz": (9, 8),
    "float8_e4m3fn": (10, 8),
    "float8_e4m3fnuz": (11, 8),
    "float8_e5m2": (12, 8),
    "float8_e5m2fnuz": (13, 8),
    "float8_e8m0fnu": (14, 8),
}
CODES = {name: code | bits << BITS_OF_BYTE | ONE_LANE for name, (code, bits) in (NUMPY_TYPES | ML_TYPES).items()}
NAMES = {code: name for name, code in CODES.items()}


def itemsize_of(code: int) -> int:
    """Return the size in bytes of an element of a DLPack type."""
    bits, lanes = code >> BITS_OF_BYTE & 0xFF, code >> 16
    return (bits * lanes + BITS_OF_BYTE - 1) // BITS_OF_BYTE


@functools.cache
def dtype_of(code: int) -> Any:
    """Return the ``numpy.dtype`` for a DLPack type.

    Raise :class:`BufferError` if NumPy has none, and :class:`ModuleNotFoundError` if it needs the package ml_dtypes,
    which is not installed.
    """
    import numpy

    name = NAMES.get(code)
    if name is None:
        kind, bits, lanes = code & 0xFF, code >> BITS_OF_BYTE & 0xFF, code >> 16
        raise BufferError(f"no NumPy dtype for DLPack's type with code {kind}, {bits} bits and {lanes} lanes")
    if name in NUMPY_TYPES:
        return numpy.dtype(name)
    try:
        import ml_dtypes
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"dtype {name} needs the package ml_dtypes: pip install ml_dtypes", name=error.name
        ) from error
    return numpy.dtype(getattr(ml_dtypes, name))


def code_of(dtype: Any) -> int:
    """Return the DLPack type for a ``numpy.dtype``; raise :class:`BufferError` if there is none."""
    code = CODES.get(dtype.name) if dtype.isnative and dtype.subdtype is None else None
    if code is None:
        raise BufferError(f"DLPack has no type for dtype {dtype}")
    return code


def numpy_dtype(dtype: Any) -> Any:
    """Return anything that names a dtype as a ``numpy.dtype``."""
    import numpy

    return numpy.dtype(dtype)


def element_dtype(dtype: Any) -> Any:
    """Return anything that names a dtype as a ``numpy.dtype``; raise :class:`TypeError` if it holds Python objects."""
    found = numpy_dtype(dtype)
    if found.hasobject:
        raise TypeError(f"dtype {found} holds Python objects: a view shows plain data")
    return found


def holds_objects(thing: Any, view: memoryview) -> bool:
    """Return whether the memory that an object exports, as ``view``, holds references to Python objects.

    References in a union or a packed structure of ctypes are found in its type: the format of those is bytes.
    """
    if "O" in view.format and "O" in FIELD_NAME.sub("", view.format):
        return True
    ctypes = sys.modules.get("ctypes")
    if ctypes is None or "B" not in view.format:
        return False
    return holds_py_object(type(view.obj if isinstance(thing, memoryview) else thing), ctypes)


def holds_py_object(kind: Any, ctypes: Any) -> bool:
    """Return whether instances of a type are ctypes data that holds a ``py_object``."""
    if issubclass(kind, (ctypes.Structure, ctypes.Union)):
        return any(
            holds_py_object(field[1], ctypes) for base in kind.__mro__ for field in base.__dict__.get("_fields_", ())
        )
    if issubclass(kind, ctypes.Array):
        return holds_py_object(kind._type_, ctypes)
    return issubclass(kind, ctypes.py_object)


def check_itemsize(dtype: Any, itemsize: int) -> None:
    """Raise ValueError unless elements of the dtype are of the layout's size."""
    if dtype is not None and dtype.itemsize != itemsize:
        raise ValueError(f"dtype {dtype} has {dtype.itemsize} bytes, but the layout's elements have {itemsize}")
