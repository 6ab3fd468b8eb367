# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Integers, handles and addresses that callers give.

``__index__`` and ``__int__`` alone do not make an object an integer: a :class:`Device` has both, arrays of one element
have them, and the types of cuda-bindings have them with different meanings. So known classes are looked at first.
"""

from __future__ import annotations

import enum
import numbers
import operator
import re
from typing import Any, Final

from cuda_core_cffi._core.ffi import ffi

PACKAGE = __name__.partition(".")[0]

HANDLE_CLASSES: Final[dict[str, tuple[str, ...]]] = {
    "stream": ("CUstream", "cudaStream_t"),
    "kernel": ("CUkernel", "cudaKernel_t", "CUfunction", "cudaFunction_t"),
    "address": ("CUdeviceptr",),
}
"""The classes of typed handles, in the driver module and in cuda-bindings, for each kind of handle."""

STRUCTURES: Final = {"stream": ("CUstream_st",), "kernel": ("CUkern_st", "CUfunc_st"), "address": ()}
"""The structures that such handles point to; pointers to others of the driver are other handles."""

ARRAY_PROTOCOLS: Final = ("__dlpack__", "__array_interface__", "__cuda_array_interface__")


def class_of_handle(value: object) -> str | None:
    """Return the class of an object of this package, or of a typed handle of cuda-bindings; None for anything else."""
    cls = type(value)
    package = cls.__module__.partition(".")[0]
    if isinstance(value, enum.Enum) or package not in (PACKAGE, "cuda"):
        return None
    return None if package == "cuda" and isinstance(value, int) else cls.__name__


def is_integer(value: object) -> bool:
    """Tell whether a value can be a count, a size or an index: an int, or an integer of another library."""
    if isinstance(value, bool) or class_of_handle(value) is not None:
        return False
    return isinstance(value, int) or hasattr(value, "__index__")


def integer(value: Any, name: str, wanted: str = "an int") -> int:
    """Return a count, size or index that a caller gave as an int.

    Raise :class:`TypeError`, which says that ``name`` must be ``wanted``, for anything else: also for a bool, and for
    what stands for a device or a handle.
    """
    if type(value) is int:
        return value
    if is_integer(value):
        try:
            return operator.index(value)
        except TypeError:  # such as an array of several elements
            pass
    raise TypeError(f"{name} must be {wanted}, not {type(value).__name__}: {value!r}")


def address_of(handle: Any, kind: str | None = "address") -> int:
    """Return a handle or an address, given as int, CFFI pointer or typed handle, as an integer.

    ``kind`` is what it must be a handle of, a key of :data:`HANDLE_CLASSES`; None for any. Raise :class:`TypeError` if
    it is none, or one of another kind, and :class:`OverflowError` if it does not fit in 64 bits.
    """
    if type(handle) is int:
        address = handle
    elif isinstance(handle, ffi.CData):
        address = cffi_address(handle, kind)
    else:
        address = converted(handle, kind)
    if not 0 <= address < 2**64:
        raise OverflowError(f"a handle must fit in 64 bits, not {address}")
    return address


def cffi_address(handle: Any, kind: str | None) -> int:
    """Return the address in a CFFI object."""
    ctype = ffi.typeof(handle)
    wrong = ctype.kind not in ("pointer", "array", "primitive") or ctype.cname in ("float", "double", "long double")
    if kind is not None and ctype.kind == "pointer":
        handle_of = re.fullmatch(r"struct (CU\w+_st)", ctype.item.cname)
        wrong = handle_of is not None and handle_of[1] not in STRUCTURES[kind]
    if wrong:
        raise TypeError(f"a handle must be an int or a CFFI pointer of its kind, {kind}, not a {ctype.cname}")
    return int(ffi.cast("uintptr_t", handle))


def converted(handle: Any, kind: str | None) -> int:
    """Return a handle that an object converts to."""
    known = class_of_handle(handle)
    if known is not None:
        if kind is None and isinstance(handle, int):
            return int(handle)
        if known not in HANDLE_CLASSES.get(kind or "", ()):
            raise TypeError(f"a handle must be an int or a CFFI pointer of its kind, {kind}, not {known}: {handle!r}")
        return int(handle)
    if isinstance(handle, numbers.Integral):  # NumPy's integers too, which are arrays besides
        usable = not isinstance(handle, bool | enum.Enum)
    else:
        usable = not isinstance(handle, numbers.Number | str | bytes | type)
        usable = usable and not any(hasattr(type(handle), name) for name in ARRAY_PROTOCOLS)
    if usable and hasattr(handle, "__index__"):
        return operator.index(handle)
    if usable and hasattr(handle, "__int__"):  # addresses of other libraries, such as CuPy's MemoryPointer
        return int(handle)
    raise TypeError(f"a handle must be an int or a CFFI pointer, not {type(handle).__name__}")
