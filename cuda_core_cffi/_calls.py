# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The calls that programs make most: to make, close and drop objects, fill, copy, launch, record, query and wait.

On CPython ``include/python/_calls.c`` takes the place of this module: there it is faster than CFFI. A compiler such as
PyPy's makes the best of what is here.

The functions take what the public methods get, and do what is usual. None says that nothing was done: the arguments
need a closer look, which tells what is wrong with them.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from cuda_core_cffi._core.errors import check_cleanup
from cuda_core_cffi._core.ffi import lib
from cuda_core_cffi._core.packing import launch, make_row, pack, prepare, retarget

try:
    from __pypy__ import add_memory_pressure  # type: ignore[import-not-found]
except ImportError:
    add_memory_pressure = None

__all__ = [
    "Memory",
    "Owner",
    "adopt",
    "allocate",
    "blank",
    "buffer_class",
    "close",
    "copy",
    "create_event",
    "create_stream",
    "fill",
    "launch",
    "make_row",
    "own",
    "pack",
    "pool_class",
    "prepare",
    "query_event",
    "quicken",
    "record",
    "retarget",
    "sync_event",
    "sync_stream",
    "wait",
]

ClassType = TypeVar("ClassType")

LARGEST_BYTE = 255
LARGEST_SIZE = 2**64 - 1
BUFFER, EVENT, STREAM = "CUdeviceptr", "CUevent", "CUstream"

_allocate = lib.ccc_pool_allocate
_close = lib.ccc_close
_copy = lib.ccc_copy
_create_event = lib.ccc_event_create
_create_stream = lib.ccc_stream_create
_drop = lib.ccc_drop
_fill = lib.ccc_fill
_query_event = lib.ccc_event_query
_record = lib.ccc_event_record
_sync_event = lib.ccc_event_sync
_sync_stream = lib.ccc_stream_sync
_wait_event = lib.ccc_stream_wait_event
_wait_stream = lib.ccc_stream_wait_stream


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


def own(cls: type[Any], box: Any) -> Any:
    """Return an object of a class for a box."""
    self = cls.__new__(cls)
    self._box = box
    return self


def blank(cls: type[Any]) -> Any:
    """Return an object of a class written in Python, with nothing set."""
    return object.__new__(cls)


def adopt(owner: Any, box: Any) -> None:
    """Give an object a box, in place of the one that it has, which is the caller's from now on."""
    owner._box = box


def close(owner: Any) -> None:
    """Close, and show failures of cleanup."""
    if waiting := _close(owner._box):
        check_cleanup(waiting, stacklevel=4)


def allocate(cls: type[Any], pool: Any, stream: Any, size: Any) -> Any:
    """Return a buffer from a pool, of which only the box is set; False after a failure."""
    if not is_kind(stream, STREAM) or type(size) is not int or not 0 <= size <= LARGEST_SIZE:
        return None
    box = _allocate(pool._box, stream._box, size)
    if not box:
        return False
    if add_memory_pressure is not None:
        add_memory_pressure(size)
    return own(cls, box)


def create_event(cls: type[Any], device: int, flags: int) -> Any:
    """Return an event; False after a failure."""
    box = _create_event(device, flags)
    return own(cls, box) if box else False


def create_stream(cls: type[Any], device: int, flags: int, priority: int) -> Any:
    """Return a stream; False after a failure."""
    box = _create_stream(device, flags, priority)
    return own(cls, box) if box else False


def fill(buffer: Any, stream: Any, value: Any) -> int | None:
    """Fill a buffer with a byte, and return a status."""
    if not is_kind(stream, STREAM) or type(value) is not int or not 0 <= value <= LARGEST_BYTE:
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


def record(event: Any, stream: Any) -> int | None:
    """Record an event, and return a status."""
    if not is_kind(event, EVENT):
        return None
    status: int = _record(event._box, stream._box)
    return status


def wait(stream: Any, awaited: Any) -> int | None:
    """Have a stream wait for an event, or for another stream, and return a status."""
    if is_kind(awaited, EVENT):
        status: int = _wait_event(stream._box, awaited._box)
    elif is_kind(awaited, STREAM):
        status = _wait_stream(stream._box, awaited._box)
    else:
        return None
    return status


def query_event(event: Any) -> int:
    """Ask whether an event is reached, and return a status."""
    status: int = _query_event(event._box)
    return status


def sync_event(event: Any) -> int:
    """Wait for an event, and return a status."""
    status: int = _sync_event(event._box)
    return status


def sync_stream(stream: Any) -> int:
    """Wait for a stream, and return a status."""
    status: int = _sync_stream(stream._box)
    return status


def quicken(cls: type[Any]) -> type[Any]:
    """Make the methods of a class quicker that programs call most: on CPython, others in C stand for them."""
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
