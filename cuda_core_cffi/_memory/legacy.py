# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Memory that is allocated and freed at once, rather than in stream order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuda_core_cffi._core.calls import make
from cuda_core_cffi._core.errors import check
from cuda_core_cffi._core.ffi import lib
from cuda_core_cffi._core.integers import address_of
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi._memory.allocation import allocate_with
from cuda_core_cffi._memory.buffer import Buffer
from cuda_core_cffi._memory.resource import MemoryResource, whole_size
from cuda_core_cffi._streams.stream import Stream, accept_stream, stream_or_default
from cuda_core_cffi.typing import DevicePointerType, IsStreamType


class SynchronousMemoryResource(MemoryResource):
    """Device memory without a pool, for devices that have none.

    Parameters
    ----------
    device_id : Device or int
        The device.
    """

    __slots__ = ("_device_id",)

    _access = (True, False)
    _IS_UNIFORM = True

    def __init__(self, device_id: Any) -> None:
        self._device_id: int = registry.device(device_id).device_id

    def __repr__(self) -> str:
        return f"<SynchronousMemoryResource device={self._device_id}>"

    def allocate(self, size: int, stream: IsStreamType | None = None) -> Buffer:
        """Allocate a buffer at once.

        Parameters
        ----------
        size : int
            Size in bytes. 0 gives a buffer without memory.
        stream : Stream, optional
            When the buffer is closed, its memory goes back after the work then in this stream is done.

        Returns
        -------
        Buffer
            The memory; its content is undefined.

        Raises
        ------
        CUDAError
            If the driver has no such memory left, even after a garbage collection.
        """
        return allocate_now(size, self, stream, lib.ccc_device_allocate, self._device_id)

    def deallocate(self, ptr: DevicePointerType, size: int, stream: IsStreamType | None = None) -> None:
        """Give memory back, by address, once the work now in ``stream`` is done; buffers do so by themselves."""
        synchronize(stream)
        check(lib.ccc_device_deallocate(self._device_id, 0 if ptr is None else address_of(ptr)))


class LegacyPinnedMemoryResource(MemoryResource):
    """Page-locked host memory, which every device can use.

    Examples
    --------
    >>> import numpy
    >>> buffer = LegacyPinnedMemoryResource().allocate(16)
    >>> array = numpy.from_dlpack(buffer).view("f4")  # the same memory
    >>> array[:] = 1
    >>> del array
    >>> buffer.close()
    """

    __slots__ = ()

    _access = (True, True)
    _IS_UNIFORM = True
    _device_id = -1

    def __repr__(self) -> str:
        return "<LegacyPinnedMemoryResource>"

    def allocate(self, size: int, stream: IsStreamType | None = None) -> Buffer:
        """Allocate a buffer at once. A context must be current.

        Parameters
        ----------
        size : int
            Size in bytes. 0 gives a buffer without memory.
        stream : Stream, optional
            When the buffer is closed, its memory goes back after the work then in this stream is done.

        Returns
        -------
        Buffer
            The memory; its content is undefined.

        Raises
        ------
        CUDAError
            If no context is current, or the host has no such memory left.
        """
        return allocate_now(size, self, stream, lib.ccc_pinned_allocate)

    def deallocate(self, ptr: DevicePointerType, size: int, stream: IsStreamType | None = None) -> None:
        """Give memory back, by address, once the work now in ``stream`` is done; buffers do so by themselves.

        Parameters
        ----------
        ptr : int or CFFI pointer
            The address.
        size : int
            Bytes; not looked at.
        stream : Stream, optional
            What is waited for. Default is nothing.

        Raises
        ------
        CUDAError
            If there is no such allocation.
        """
        synchronize(stream)
        check(lib.ccc_pinned_deallocate(0 if ptr is None else address_of(ptr)))


def allocate_now(
    size: int, mr: MemoryResource, stream: IsStreamType | None, helper: Callable[..., Any], *place: int
) -> Buffer:
    """Return a buffer from a helper that allocates at once; its end is in the order of a stream, if one is given."""
    queue = stream_or_default(stream, "allocate")
    size = whole_size(size)
    buffer = allocate_with(lambda: make(Buffer, helper, *place, size), size, mr, queue)
    if stream is not None:
        buffer.set_deallocation_stream(queue)
    return buffer


def synchronize(stream: IsStreamType | None) -> None:
    """Wait for a stream, if one is given."""
    if stream is not None:
        queue: Stream = accept_stream(stream, "deallocate")
        queue.sync()
