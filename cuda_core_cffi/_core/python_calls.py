# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What ``_core.calls`` has where there is no ``_calls``: to make, close and release objects, and launch.

A compiler such as PyPy's makes this as fast as C. On CPython, ``include/python/_calls.c`` has the same.

Functions that return None have done nothing: their arguments need a closer look, which tells what is wrong with them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from cuda_core_cffi._core.compiled_packing import launch, make_packer, pack, prepare
from cuda_core_cffi._core.errors import check_cleanup, last_failure
from cuda_core_cffi._core.ffi import ffi, lib

__all__ = [
    "DeviceFinder",
    "ElapsedOperand",
    "Memory",
    "Owner",
    "close",
    "close_once",
    "launch",
    "lift",
    "make",
    "make_in",
    "make_packer",
    "new_object",
    "pack",
    "prepare",
    "thread_devices",
]

T = TypeVar("T")
OwnerType = TypeVar("OwnerType", bound="Owner")

NONE_CURRENT = -1  # or not known yet; less is a failure

_close = lib.ccc_close
_close_once = lib.ccc_close_once
_device_now = lib.ccc_device_now
_handle = lib.ccc_handle_value
_is_open = lib.ccc_is_open
_release_object = lib.ccc_release_object

storing = {getattr(lib, name.removesuffix("_into")): getattr(lib, name) for name in dir(lib) if name.endswith("_into")}
"""The form of each helper that stores the C handle it makes, by the form that returns it (generator/generate.py)."""
slots: list[Any] = []
"""Memory for one C handle each that no owner uses now: as many as were used at once."""


class Owner:
    """Owns a C handle, and releases it when it goes."""

    __slots__ = ("_c_handle", "_slot")

    _c_handle: Any
    _slot: Any  # where a helper stores the C handle; None once it is in _c_handle

    def __del__(self, _release_object: Any = _release_object) -> None:
        try:
            c_handle = self._c_handle
        except AttributeError:  # construction was refused, or interrupted after the call that made the handle
            slot = getattr(self, "_slot", None)
            if slot is None or not slot[0]:
                return
            c_handle = slot[0]
        if waiting := _release_object(c_handle):
            check_cleanup(waiting, stacklevel=2)

    @property
    def handle(self) -> int:
        """The driver's handle as an integer, the address; 0 once closed."""
        return self._driver_handle

    @property
    def _driver_handle(self) -> int:
        """The driver's handle as an integer, whatever programs get."""
        return int(_handle(self._c_handle))

    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return not _is_open(self._c_handle)


class ElapsedOperand(Owner):
    """An operand of the elapsed time between two events."""

    __slots__ = ()


class Memory(Owner):
    """Has the C handle of a buffer, and what is known of it."""

    __slots__ = ("_keep", "_mr", "_size", "_whole")

    _keep: Any
    _mr: Any
    _size: Any
    _whole: Any


class Devices(threading.local):
    """The devices of a thread."""

    def __init__(self) -> None:
        self.by_ordinal: dict[object, Any] = {}


devices = Devices()


class DeviceFinder:
    """Finds the device that the thread has, and has its ordinal."""

    __slots__ = ("_device_id",)

    _device_id: int
    _find: ClassVar[Callable[..., Any]]

    def __new__(cls, device_id: Any = None) -> Any:
        if device_id is None:
            now = _device_now()
            if now < NONE_CURRENT:
                raise last_failure()
        elif type(device_id) is int:  # False and 0.0 equal 0, but are no ordinals
            now = device_id
        else:
            return cls._find(device_id)
        try:
            return devices.by_ordinal[now]
        except KeyError:
            pass
        return cls._find(device_id)  # not in the except block: an error shows alone


DeviceFinder.__new__.__qualname__ = "Device.__new__"  # so messages say what was called


def thread_devices() -> dict[object, Any]:
    """Return the devices of this thread by their ordinals."""
    return devices.by_ordinal


def make(cls: type[OwnerType], function: Callable[..., Any], *arguments: Any) -> OwnerType | None:
    """Return an object of a class for the C handle that a function of CFFI makes; None after a failure."""
    self = cls.__new__(cls)
    return self if make_in(self, function, *arguments) else None


def make_in(owner: Owner, function: Callable[..., Any], *arguments: Any) -> bool:
    """Give an object, which has none, the C handle that a function of CFFI makes; return whether it made one."""
    try:
        slot = slots.pop()
    except IndexError:
        slot = ffi.new("ccc_handle **")
    owner._slot = slot  # before the call, so that a new handle has an owner if this is interrupted
    try:
        storing[function](slot, *arguments)
    finally:
        made = bool(slot[0])
        if made:
            owner._c_handle = slot[0]
    owner._slot = None
    slot[0] = ffi.NULL
    slots.append(slot)
    return made


def new_object(cls: type[T]) -> T:
    """Return an object of a class written in Python, with nothing set."""
    return object.__new__(cls)


def close(owner: Owner) -> None:
    """Close, and show failures of cleanup."""
    if waiting := _close(owner._c_handle):
        check_cleanup(waiting, stacklevel=4)


def close_once(owner: Owner) -> bool:
    """Close, and return whether this call did, rather than an earlier one or another thread."""
    return bool(_close_once(owner._c_handle))


def lift(body: T, failed: object) -> T:
    """Return the body: without CPython there is no C to stand before it."""
    return body
