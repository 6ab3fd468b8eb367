# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What every memory resource is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from cuda_core_cffi._core.integers import integer
from cuda_core_cffi._memory.dlpack import CPU, CUDA, CUDA_HOST, CUDA_MANAGED
from cuda_core_cffi.typing import DevicePointerType, IsStreamType

if TYPE_CHECKING:
    from cuda_core_cffi._memory.buffer import Buffer

LARGEST_SIZE = 2**64 - 1


class MemoryResource:
    """Where buffers come from, and where their memory goes back to.

    A subclass defines :meth:`allocate`, :meth:`deallocate` and the properties. Its :meth:`allocate` makes the buffer
    with ``Buffer.from_handle(pointer, size, mr=self, stream=stream)``; closing or collecting that buffer calls
    :meth:`deallocate`.
    """

    __slots__ = ("__dict__", "__weakref__")

    _IS_UNIFORM: ClassVar[bool] = False  # whether all its memory is of one kind, for ever
    _access: tuple[bool, bool] | None = None  # whether devices and the host can use it, where that is fixed
    _device_id: int
    _is_pool = False  # whether its memory comes from a pool of the driver's, or from a graph
    _dlpack_device: tuple[int, int] | None = None  # what DLPack calls that kind, once somebody has asked

    def allocate(self, size: int, stream: IsStreamType | None = None) -> Buffer:
        """Allocate a buffer.

        Parameters
        ----------
        size : int
            Size in bytes.
        stream : Stream, optional
            The memory may be used by work that follows in this stream. Default is the default stream.

        Returns
        -------
        Buffer
            The memory.
        """
        self._missing("allocate")

    def deallocate(self, ptr: DevicePointerType, size: int, stream: IsStreamType | None = None) -> None:
        """Give memory back.

        Parameters
        ----------
        ptr : int
            Its address.
        size : int
            Its size in bytes.
        stream : Stream, optional
            The memory goes back when the work now in this stream is done.
        """
        self._missing("deallocate")

    def _find_dlpack_device(self, buffer: Any) -> tuple[int, int]:
        """Return what DLPack calls the kind of memory of a buffer of this resource."""
        if self._IS_UNIFORM:
            self._dlpack_device = dlpack_device(self)
            return self._dlpack_device
        if self.is_managed or (self.is_device_accessible and self.is_host_accessible):
            return dlpack_device(buffer, buffer._query())
        return dlpack_device(self)

    def _missing(self, name: str) -> NoReturn:
        raise TypeError(f"{type(self).__name__} must define {name}")

    @property
    def is_device_accessible(self) -> bool:
        """Whether kernels can use the memory."""
        return self._access[0] if self._access else self._missing("is_device_accessible")

    @property
    def is_host_accessible(self) -> bool:
        """Whether host code can use the memory."""
        return self._access[1] if self._access else self._missing("is_host_accessible")

    @property
    def is_managed(self) -> bool:
        """Whether the driver moves the memory between host and device."""
        return False

    @property
    def device_id(self) -> int:
        """The ordinal of the device that the memory is on; -1 for host memory."""
        return self._device_id if self._access else self._missing("device_id")


def dlpack_device(where: Any, known: tuple[int, bool, bool, bool] | None = None) -> tuple[int, int]:
    """Return what DLPack calls the kind of memory of a resource or a buffer, and the ordinal.

    ``known`` is what the driver says of the memory: ordinal, whether devices and the host can use it, whether it is
    managed. BufferError is raised if neither a device nor the host can use it.
    """
    ordinal, on_device, on_host, managed = known or (-1, False, True, False)
    if managed or where.is_managed:
        return (CUDA_MANAGED, ordinal if ordinal >= 0 else max(where.device_id, 0))
    if on_device and not on_host:
        return (CUDA, ordinal)
    if where.is_device_accessible:
        return (CUDA_HOST, 0) if where.is_host_accessible else (CUDA, where.device_id)
    if where.is_host_accessible:
        return (CPU, 0)
    raise BufferError("neither a device nor the host can use the memory, so it cannot be exported")


def whole_size(size: Any) -> int:
    """Return a size in bytes as an int that the driver can take, or raise."""
    number = integer(size, "size")
    if number < 0:
        raise ValueError(f"size must not be negative, not {number}")
    if number > LARGEST_SIZE:
        raise OverflowError(f"size must be less than 2**64 bytes, not {number}")
    return number


def whole_number(value: Any, name: str, most: int, largest: str, wanted: str = "an int") -> int:
    """Return an int of 0 to ``most``, which messages call ``largest``, or raise."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be {wanted}, not {type(value).__name__}")
    if not 0 <= value <= most:
        raise ValueError(f"{name} must be 0 to {largest}, not {value}")
    return value
