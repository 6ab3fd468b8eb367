# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What ``_core.calls`` has where there is no ``_calls``: to make, close and drop objects, fill, copy, launch and query.

A compiler such as PyPy's makes this as fast as C. On CPython, ``include/python/_calls.c`` has the same.

Functions that return None have done nothing: their arguments need a closer look, which tells what is wrong with them.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeVar

from cuda_core_cffi._core.compiled_packing import launch, make_packer, pack, prepare, retarget
from cuda_core_cffi._core.errors import check_cleanup
from cuda_core_cffi._core.ffi import lib

__all__ = [
    "Memory",
    "Owner",
    "adopt",
    "blank",
    "buffer_class",
    "close",
    "copy",
    "create_event",
    "create_stream",
    "fill",
    "launch",
    "make_packer",
    "own",
    "pack",
    "pool_class",
    "prepare",
    "query_event",
    "retarget",
    "use_fast_methods",
]

ClassType = TypeVar("ClassType")
T = TypeVar("T")
OwnerType = TypeVar("OwnerType", bound="Owner")

LARGEST_BYTE = 255
BUFFER, STREAM = "CUdeviceptr", "CUstream"

_close = lib.ccc_close
_copy = lib.ccc_copy
_create_event = lib.ccc_event_create
_create_stream = lib.ccc_stream_create
_drop = lib.ccc_drop
_fill = lib.ccc_fill
_query_event = lib.ccc_event_query


class Owner:
    """Has a box, and drops it when it goes."""

    __slots__ = ("_box",)

    _box: Any
    _CTYPE: ClassVar[str] = ""  # the type of its handle

    def __del__(self, _drop: Any = _drop) -> None:
        try:
            box = self._box
        except AttributeError:  # construction was refused
            return
        if waiting := _drop(box):
            check_cleanup(waiting, stacklevel=2)


class Memory(Owner):
    """Has the box of a buffer, and what is known of it."""

    __slots__ = ("_keep", "_mr", "_packed_address", "_size", "_whole")

    _keep: Any
    _mr: Any
    _packed_address: Any
    _size: Any
    _whole: Any


def own(cls: type[OwnerType], box: Any) -> OwnerType:
    """Return an object of a class for a box."""
    self = cls.__new__(cls)
    self._box = box
    return self


def blank(cls: type[T]) -> T:
    """Return an object of a class written in Python, with nothing set."""
    return object.__new__(cls)


def adopt(owner: Owner, box: Any) -> None:
    """Give an object a box, in place of the one that it has, which is the caller's from now on."""
    owner._box = box


def close(owner: Owner) -> None:
    """Close, and show failures of cleanup."""
    if waiting := _close(owner._box):
        check_cleanup(waiting, stacklevel=4)


def create_event(cls: type[OwnerType], device: int, flags: int) -> OwnerType | Literal[False]:
    """Return an event; False after a failure."""
    box = _create_event(device, flags)
    return own(cls, box) if box else False


def create_stream(cls: type[OwnerType], device: int, flags: int, priority: int) -> OwnerType | Literal[False]:
    """Return a stream; False after a failure."""
    box = _create_stream(device, flags, priority)
    return own(cls, box) if box else False


def fill(buffer: Any, stream: Any, value: Any) -> int | None:
    """Fill a buffer with a byte, and return a status."""
    if not (is_kind(buffer, BUFFER) and is_kind(stream, STREAM)):
        return None
    if type(value) is not int or not 0 <= value <= LARGEST_BYTE:
        return None
    status: int = _fill(buffer._box, stream._box, value, 1)
    return status


def copy(destination: Any, source: Any, stream: Any) -> int | None:
    """Copy a buffer into another of the same size, and return a status."""
    if not (is_kind(destination, BUFFER) and is_kind(source, BUFFER) and is_kind(stream, STREAM)):
        return None
    if destination._size != source._size:
        return None
    status: int = _copy(destination._box, source._box, stream._box)
    return status


def query_event(event: Owner) -> int:
    """Ask whether an event is reached, and return a status."""
    status: int = _query_event(event._box)
    return status


def use_fast_methods(cls: type[OwnerType]) -> type[OwnerType]:
    """Have methods in C stand for those of a class that programs call most: on CPython."""
    return cls


def buffer_class(cls: ClassType) -> ClassType:
    """Return a class of buffers, whose ``close`` may be replaced by a method that does the same."""
    return cls


def pool_class(cls: ClassType) -> ClassType:
    """Return a class of pools, whose ``allocate`` may be replaced by a method that does the same."""
    return cls


def is_kind(item: object, kind: str) -> bool:
    """Tell whether an argument is an object of ours whose handle is of a type."""
    return isinstance(item, Owner) and kind == item._CTYPE
