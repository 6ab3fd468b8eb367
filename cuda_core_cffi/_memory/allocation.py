# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Allocate buffers, with a second try where there was no memory."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import TypeVar

from cuda_core_cffi._core.errors import failure
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import Handle
from cuda_core_cffi._memory.buffer import Buffer
from cuda_core_cffi._memory.resource import MemoryResource
from cuda_core_cffi._streams.stream import Stream

try:
    from __pypy__ import add_memory_pressure  # type: ignore[import-not-found]
except ImportError:
    add_memory_pressure = None

BufferType = TypeVar("BufferType", bound=Buffer)


def complete_buffer(self: BufferType, size: int, mr: MemoryResource, stream: Stream) -> BufferType:
    """Set the attributes of a new buffer, and return it."""
    self._size = size
    self._mr = mr
    if stream._owner is not None:
        self._keep = stream
    if add_memory_pressure is not None:
        add_memory_pressure(size)
    return self


def allocate_with(
    allocate: Callable[[], Buffer | None], size: int, mr: MemoryResource, stream: Stream, *involved: Handle
) -> Buffer:
    """Return a buffer that a function makes; out of memory, collect garbage once and try again."""
    buffer = allocate()
    if buffer is None:
        buffer = retry_allocation(allocate, size, mr, stream, *involved)
    return complete_buffer(buffer, size, mr, stream)


def retry_allocation(
    allocate: Callable[[], BufferType | None],
    size: int,
    place: MemoryResource | Buffer,
    stream: Stream,
    *involved: Handle,
) -> BufferType:
    """Allocate again with a function that returned None, where a garbage collection may help, else raise.

    ``place`` is where the memory is to be; the stream and the handles involved are for the error.
    """
    status = lib.ccc_last_status()
    if status == lib.CUDA_ERROR_OUT_OF_MEMORY:
        error = failure(status)
        if not place.is_host_accessible and not fits_device(size, place.device_id):
            raise error
        gc.collect()
        lib.ccc_reclaim()
        buffer = allocate()
        if buffer is not None:
            return buffer
        if lib.ccc_last_status() == status:
            raise error
    raise stream._failure(lib.ccc_last_status(), *involved)


def fits_device(size: int, device: int) -> bool:
    """Return whether a device has so many bytes: if not, no garbage collection helps, which takes milliseconds."""
    total = ffi.new("size_t *")
    return bool(lib.cuDeviceTotalMem(total, device)) or size <= total[0]
