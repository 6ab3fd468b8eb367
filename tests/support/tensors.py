# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""DLPack tensors made by hand, and a producer that hands them over."""

from __future__ import annotations

import ctypes
from typing import Any, ClassVar

from cuda_core_cffi import _capsule

MOST_DELETIONS = 5
FLOAT32 = (2, 32, 1)
READ_ONLY = 1
STATE_SIZE = 6
Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
libc = ctypes.CDLL(None)


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


class ManagedTensor(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("manager", ctypes.c_void_p), ("deleter", Deleter)]


class ManagedTensorVersioned(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("manager", ctypes.c_void_p),
        ("deleter", Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


class Managed:
    """A managed tensor whose deleter's runs can be counted.

    The deleter is a C function of the system that changes the first bytes of what it is given, each time to the next
    of a series: PyPy cannot run Python from a capsule's destructor. Tensors stay until the process ends, so that a
    deleter that runs too late finds what it counts in.
    """

    made: ClassVar[list[Managed]] = []

    def __init__(
        self,
        versioned: bool,
        *,
        data: int = 0,
        shape: tuple[int, ...] = (),
        strides: tuple[int, ...] | None = None,
        dtype: tuple[int, int, int] = FLOAT32,
        device: tuple[int, int] = (1, 0),
        byte_offset: int = 0,
        flags: int = 0,
        version: tuple[int, int] = (1, 0),
    ) -> None:
        self.versioned = versioned
        self.tensor: Any = ManagedTensorVersioned() if versioned else ManagedTensor()
        self.address = ctypes.addressof(self.tensor)
        self.tensor.deleter = ctypes.cast(libc.nrand48, Deleter)
        if versioned:
            self.tensor.version[:] = version
            self.tensor.flags = flags
        inner = self.tensor.tensor
        inner.data, inner.byte_offset, inner.ndim = data, byte_offset, len(shape)
        inner.device[:] = device
        inner.dtype = DataType(*dtype)
        self.extents = [
            (ctypes.c_int64 * len(values))(*values) if values is not None else None for values in (shape, strides)
        ]
        inner.shape, inner.strides = (ctypes.addressof(item) if item is not None else None for item in self.extents)
        self.made.append(self)
        self.before = ctypes.string_at(self.address, STATE_SIZE)

    @property
    def deletions(self) -> int:
        """How often the deleter ran."""
        state = ctypes.create_string_buffer(self.before, STATE_SIZE)
        for count in range(MOST_DELETIONS):
            if state.raw == ctypes.string_at(self.address, STATE_SIZE):
                return count
            libc.nrand48(state)
        raise AssertionError("the tensor was overwritten")

    def capsule(self) -> Any:
        """Return a capsule around the tensor."""
        return _capsule.new(self.address, self.versioned)


class Producer:
    """Hands a tensor over, and records how it was asked. One older than DLPack 1.0 takes no version."""

    def __init__(self, managed: Managed, takes_version: bool = True) -> None:
        self.managed = managed
        self.takes_version = takes_version
        self.asked: list[dict[str, Any]] = []

    def __dlpack__(self, **how: Any) -> Any:
        if "max_version" in how and not self.takes_version:
            raise TypeError("unexpected keyword argument 'max_version'")
        self.asked.append(how)
        return self.managed.capsule()

    def __dlpack_device__(self) -> tuple[int, int]:
        device = self.managed.tensor.tensor.device
        return (device[0], device[1])
