# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Tensors as C code gets them: the functions in ``StridedMemoryView.__dlpack_c_exchange_api__``, through ctypes.

The structures are those of DLPack 1.3. A tensor that is taken is deleted once, by whom the protocol makes its owner.
"""

from __future__ import annotations

import ctypes
import platform
from typing import Any

from cuda_core_cffi.utils import StridedMemoryView


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class ManagedTensor(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


SET_ERROR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
Managed = ctypes.POINTER(ManagedTensor)


class ExchangeAPI(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("older", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("give", ctypes.c_void_p),
        ("take", ctypes.c_void_p),
        ("show", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    )


PROTOTYPES = {
    "allocate": (ctypes.POINTER(Tensor), ctypes.POINTER(Managed), ctypes.c_void_p, SET_ERROR),
    "give": (ctypes.py_object, ctypes.POINTER(Managed)),
    "take": (Managed, ctypes.POINTER(ctypes.c_void_p)),
    "show": (ctypes.py_object, ctypes.POINTER(Tensor)),
    "stream": (ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)),
}


class Given:
    """A tensor that C code got; it deletes it, unless it gave it away."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def take(self) -> Any:
        """Give the tensor away, once."""
        tensor, self.tensor = self.tensor, None
        return tensor

    def __del__(self) -> None:
        tensor = self.take()
        if tensor and tensor.contents.deleter:
            DELETER(tensor.contents.deleter)(ctypes.cast(tensor, ctypes.c_void_p))


def function(name: str) -> Any:
    """Return a function of the API, or None where it has none; exceptions it leaves come out of its call."""
    capsule = StridedMemoryView.__dlpack_c_exchange_api__
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    api = ExchangeAPI.from_address(pointer(capsule, b"dlpack_exchange_api"))
    address = getattr(api, name)
    return ctypes.PYFUNCTYPE(ctypes.c_int, *PROTOTYPES[name])(address) if address else None


def exchange_give(value: Any, with_place: bool = True) -> Given | None:
    """Take a tensor from an object."""
    out = Managed()
    status = function("give")(value, ctypes.byref(out) if with_place else None)
    return Given(out) if status == 0 and out else None


def exchange_take(given: Any, with_place: bool = True) -> object:
    """Make a view of a tensor; of NULL, where there is none."""
    out = ctypes.c_void_p()
    tensor = given.take() if isinstance(given, Given) and with_place else None
    status = function("take")(tensor, ctypes.byref(out) if with_place else None)
    if status or not out.value:
        return None
    view = ctypes.cast(out, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(view))  # ctypes counted one of its own
    return view


def exchange_show(value: Any, with_place: bool = True) -> int:
    """Describe an object's memory."""
    show = function("show")
    return show(value, ctypes.byref(Tensor()) if with_place else None) if show else 0


def exchange_allocate(with_error: bool = True, with_place: bool = True) -> int:
    """Ask for memory."""
    heard = []
    hear = SET_ERROR(lambda context, kind, message: heard.append((kind, message))) if with_error else SET_ERROR()
    out = Managed()
    return function("allocate")(ctypes.byref(Tensor()), ctypes.byref(out) if with_place else None, None, hear)


def exchange_stream(device_type: int = 2, device: int = 0, with_place: bool = True) -> int:
    """Ask for the stream of a device."""
    out = ctypes.c_void_p()
    return function("stream")(device_type, device, ctypes.byref(out) if with_place else None)


def names() -> dict[str, Any]:
    """Return the functions; those of an interpreter whose C functions ctypes cannot reach only refuse."""
    found = (exchange_give, exchange_take, exchange_show, exchange_allocate, exchange_stream)
    if platform.python_implementation() != "CPython":
        return {function.__name__: refuse for function in found}
    return {function.__name__: function for function in found}


def refuse(*arguments: object) -> None:
    """Stand where the functions cannot be."""
    raise TypeError("there is no ctypes.pythonapi to find the functions by")
