# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Conversions between Python values and C arguments, for :mod:`cuda_core_cffi.driver`.

``where`` names function and parameter in the message of an error. What cffi itself refuses gets those names
afterwards, in :func:`refused`, so that a good call pays nothing for them.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence, Set
from enum import IntEnum
from typing import Any, TypeAlias, TypeVar, cast

from cuda_core_cffi._core.dtypes import holds_objects
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.integers import class_of_handle, is_integer

# A handle: an integer, a cffi pointer, an object with an integer ``handle``, or None
HandleLike: TypeAlias = Any
# Memory: an address, a cffi pointer, an object with the buffer protocol, a structure, or None
PointerLike: TypeAlias = Any
Text: TypeAlias = str | bytes
Array: TypeAlias = Sequence[Any] | Any

SomeEnum = TypeVar("SomeEnum", bound=IntEnum)

CData = ffi.CData
null = ffi.NULL
new = ffi.new
typeof = ffi.typeof

ADDRESS = ffi.typeof("uintptr_t")
VOID_POINTER = ffi.typeof("void *")
VOID_POINTERS = ffi.typeof("void *[]")
CHARACTERS = ffi.typeof("char[]")


def address(pointer: Any) -> int:
    """Return the address that a cffi pointer holds."""
    return int(ffi.cast(ADDRESS, pointer))


def member(enum: type[SomeEnum], value: int) -> SomeEnum:
    """Return the member of ``enum``; a value of a newer driver that it does not have stays an integer."""
    return cast(SomeEnum, enum._value2member_map_.get(value, value))


def check_kind(ctype: Any, value: Any, known: str, where: str) -> None:
    """Raise unless a handle of this package is open, and of a type: the drivers take a kernel for a function.

    Raises
    ------
    TypeError
        If it is of another type.
    RuntimeError
        If it is closed. Its handle is 0, which is a default stream, for instance.
    """
    if isinstance(value, int):
        given = ffi.typeof(known)
    elif isinstance(typed := getattr(value, "cdata", None), CData):
        given = ffi.typeof(typed)
    else:
        return
    if given is not ctype and (given.cname, ctype.cname) != ("struct CUkern_st *", "struct CUfunc_st *"):
        raise TypeError(f"{where}: expected {ctype.cname}, not {known}, which is a {given.cname}")
    if getattr(value, "is_closed", False):
        raise RuntimeError(f"{where}: this {known} is closed")


def handle(ctype: Any, value: HandleLike, where: str) -> Any:
    """Return a handle that is a pointer in C."""
    if type(value) is int:
        return ffi.cast(ctype, value)
    if value is None:
        return null
    if isinstance(value, CData):
        return value
    known = class_of_handle(value)
    if known is not None:
        check_kind(ctype, value, known, where)
    if isinstance(value, int) and not isinstance(value, bool):
        return ffi.cast(ctype, value)
    inner = getattr(value, "handle", None)
    if isinstance(inner, (int, CData)) and not isinstance(inner, bool):
        return ffi.cast(ctype, inner)
    raise TypeError(
        f"{where}: expected {ctype.cname}: an integer, a cffi pointer, None or an object with an integer handle, "
        f"not {type(value).__name__}"
    )


def typed_handle(cls: type, ctype: Any, value: HandleLike, where: str) -> Any:
    """Return a handle for a function that takes any pointer: a cffi pointer has to be of the type."""
    if type(value) is cls:
        return ffi.cast(ctype, value)
    found = handle(ctype, value, where)
    if found is value and ffi.typeof(found) is not ctype:
        raise TypeError(f"{where}: expected {ctype.cname}, not {ffi.typeof(found).cname}")
    return found


def number(value: HandleLike, where: str) -> int:
    """Return a handle that is an integer in C."""
    if isinstance(value, int):
        return value
    if value is None:
        return 0
    inner: Any = getattr(value, "handle", value)
    typed = getattr(value, "cdata", None) if class_of_handle(value) is not None else None
    if isinstance(typed, CData) and ffi.typeof(typed).kind == "pointer":
        raise TypeError(f"{where}: expected an integer handle or an address, not {type(value).__name__}")
    if isinstance(inner, CData) and ffi.typeof(inner).kind == "pointer":
        return address(inner)
    if not isinstance(inner, float):
        try:
            return int(operator.index(inner) if not isinstance(inner, CData) else inner)
        except TypeError:
            pass
    raise TypeError(
        f"{where}: expected an integer, a cffi pointer, None or an object with an integer handle, "
        f"not {type(value).__name__}"
    )


def buffer(value: PointerLike, where: str) -> Any:
    """Return a pointer to memory that is read."""
    return memory(value, where, False)


def target(value: PointerLike, where: str) -> Any:
    """Return a pointer to memory that is written."""
    return memory(value, where, True)


def memory(value: PointerLike, where: str, writable: bool) -> Any:
    """Return a pointer for an address, a cffi pointer, a buffer, a structure or None."""
    if isinstance(value, int):
        return ffi.cast(VOID_POINTER, value)
    if value is None:
        return null
    if isinstance(value, CData):
        return value
    inner = getattr(value, "_cdata", None)
    if isinstance(inner, CData):
        return inner
    if is_integer(value) and not hasattr(type(value), "__len__"):
        # an integer of NumPy is an address, although it exports its own bytes
        return ffi.cast(VOID_POINTER, operator.index(value))
    data = exported(value, where, writable)
    if type(value) is not bytes and holds_objects(value, memoryview(value)):
        raise TypeError(f"{where}: the memory of this {type(value).__name__} holds references to Python objects")
    return data


def exported(value: Any, where: str, writable: bool) -> Any:
    """Return a pointer to the memory that an object exports through the buffer protocol."""
    try:
        return ffi.from_buffer(CHARACTERS, value, require_writable=writable)
    except (TypeError, BufferError, ValueError) as exc:
        raise TypeError(
            f"{where}: expected an address, a cffi pointer, None or a contiguous{' writable' if writable else ''} "
            f"buffer, not {type(value).__name__} ({exc})"
        ) from None


def text(value: Text | None, where: str) -> Any:
    """Return the bytes of a string; None is NULL."""
    if isinstance(value, str):
        value = value.encode()
    if value is None:
        return null
    if not isinstance(value, (bytes, CData)):
        raise TypeError(f"{where}: expected str or bytes, not {type(value).__name__}")
    if isinstance(value, bytes) and b"\0" in value:
        raise ValueError(f"{where}: embedded null byte")
    return value


def string(pointer: Any) -> bytes | None:
    """Return the C string at ``pointer``; None where that is NULL."""
    return cast(bytes, ffi.string(pointer)) if pointer else None


def raw(pointer: Any) -> bytes:
    """Return all of an array of characters."""
    return bytes(ffi.buffer(pointer))


def callback(ctype: Any, value: Any, where: str) -> Any:
    """Return a pointer to a C function from an address or a cffi pointer."""
    if isinstance(value, int):
        return ffi.cast(ctype, value)
    if value is None:
        return null
    if isinstance(value, CData):
        return value
    raise TypeError(f"{where}: expected an address or a cffi function pointer, not {type(value).__name__}")


def array(ctype: Any, values: Array, count: int | None, where: str) -> Any:
    """Return an array of numbers or handles; cffi pointers and None pass through."""
    if values is None:
        return null
    if isinstance(values, CData):
        return values
    items = sequence(values, count, where)
    item = ctype.item
    if item.kind == "pointer":
        return new(ctype, [handle(item, value, f"{where}[{index}]") for index, value in enumerate(items)])
    try:
        return new(ctype, [value if isinstance(value, (int, float)) else number(value, where) for value in items])
    except (TypeError, OverflowError) as exc:
        raise type(exc)(f"{where}: {exc}") from None


def sequence(values: Any, count: int | None, where: str) -> list[Any]:
    """Return ``values`` as a list of at least ``count`` items."""
    if (
        isinstance(values, (str, bytes, Set, Mapping))
        or not hasattr(values, "__len__")
        or not hasattr(values, "__iter__")
    ):
        raise TypeError(f"{where}: expected a sequence, a cffi pointer or None, not {type(values).__name__}")
    items = list(values)
    if count is not None and not hasattr(count, "__index__"):
        raise TypeError(f"{where}: the count must be an integer, not {type(count).__name__}")
    if count is not None and count > len(items):
        raise ValueError(f"{where}: the count is {count}, but there are {len(items)}")
    return items


class Pointers:
    """An array of pointers, with what they point to."""

    __slots__ = ("cdata", "kept")

    def __init__(self, cdata: Any, kept: Any) -> None:
        self.cdata = cdata
        self.kept = kept


def pointers(values: Any, count: int | None, where: str) -> Pointers:
    """Return a ``void **``: an array from a sequence of addresses, buffers and so on, or a pointer as it is."""
    if values is None or isinstance(values, (int, CData)):
        return Pointers(null if values is None else ffi.cast("void **", values), values)
    kept = [buffer(value, f"{where}[{index}]") for index, value in enumerate(sequence(values, count, where))]
    # an array from from_buffer() is no pointer for an initializer
    return Pointers(new(VOID_POINTERS, [ffi.cast(VOID_POINTER, item) for item in kept]), (values, kept))


def kernel_parameters(values: Any, where: str) -> Pointers:
    """Return the ``kernelParams`` of a launch.

    Beside what :func:`pointers` takes, ``values`` may be a pair of tuples (values, types): each type makes of its value
    an object with the buffer protocol, as NumPy's and ctypes' types do; for the type None the value is a structure,
    or an integer or handle of 64 bits.
    """
    if not (isinstance(values, tuple) and len(values) == 2 and all(isinstance(item, tuple) for item in values)):
        return pointers(values, None, where)
    if len(values[0]) != len(values[1]):
        raise ValueError(f"{where}: {len(values[0])} values for {len(values[1])} types")
    made = []
    for value, cls in zip(*values, strict=True):
        if cls is not None:
            made.append(exported(value if isinstance(value, cls) else cls(value), where, False))
        elif hasattr(value, "_cdata"):
            made.append(value)
        else:
            made.append(new("unsigned long long *", number(value, where) & 0xFFFF_FFFF_FFFF_FFFF))
    return pointers(made, None, where)


def new_array(ctype: Any, count: int, where: str) -> Any:
    """Return a new array of ``count`` elements; NULL for none, which asks many functions for the number."""
    try:
        return new(ctype, count) if count else null
    except (TypeError, ValueError, OverflowError) as exc:
        raise type(exc)(f"{where}: {exc}") from None


def inout(ctype: Any, value: Any, where: str) -> Any:
    """Return a new variable that holds ``value``; NULL for None."""
    if value is None:
        return null
    try:
        return new(ctype, value)
    except (TypeError, OverflowError) as exc:
        raise type(exc)(f"{where}: {exc}") from None


def refused(
    exc: Exception, function: str, arguments: Mapping[int, tuple[str, Any]], through: str | None = None
) -> Exception:
    """Return the error to raise for what cffi refused, with the names of the function and of the parameter.

    Parameters
    ----------
    exc : Exception
        The TypeError or OverflowError of cffi.
    function : str
        Name of the driver function.
    arguments : mapping of int to tuple
        Python name and value of each argument, by its position in C.
    through : str, optional
        The function of ``lib`` that calls it, whose first argument says which one to call.
    """
    types = ffi.typeof(getattr(lib, through)).args[1:] if through else ffi.typeof(getattr(lib, function)).args
    for index, (name, value) in arguments.items():
        try:
            new(ffi.typeof(ffi.getctype(types[index], "*")), value)
        except (TypeError, OverflowError) as found:
            return type(exc)(f"{function}: {name}: {found}")
    return type(exc)(f"{function}: {exc}")
