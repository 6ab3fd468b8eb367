# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Allocate buffers, with a second try where there was no memory."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import TypeVar

from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._memory.buffer import Buffer
from cuda_core_cffi._memory.resource import MemoryResource
from cuda_core_cffi._streams.stream import Stream

try:
    from __pypy__ import add_memory_pressure  # type: ignore[import-not-found]
except ImportError:
    add_memory_pressure = None

BufferType = TypeVar("BufferType", bound=Buffer)
T = TypeVar("T")


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
    allocate: Callable[[], BufferType | None], size: int, mr: MemoryResource, stream: Stream
) -> BufferType:
    """Return a buffer that a function makes; out of memory, collect garbage once and try again."""
    buffer = allocate()
    if buffer is None:
        buffer = retry_allocation(allocate, size, mr, stream._failure)
    return complete_buffer(buffer, size, mr, stream)


def retry_allocation(
    allocate: Callable[[], T | None],
    size: int,
    place: MemoryResource | Buffer | int,
    explain: Callable[[int], Exception],
) -> T:
    """Allocate again with a function that returned None, where a garbage collection may help, else raise.

    ``place`` is where the memory is to be, or a device; ``explain`` returns the exception for a status.
    """
    status, call = lib.ccc_last_status(), lib.ccc_last_call()
    if status == lib.CUDA_ERROR_OUT_OF_MEMORY:
        if isinstance(place, int):
            may_help = fits_device(size, place)
        else:
            may_help = place.is_host_accessible or fits_device(size, place.device_id)
        if may_help:
            gc.collect()
            lib.ccc_reclaim()
            made = allocate()
            if made is not None:
                lib.ccc_probe_end(lib.ccc_probe_begin(call, status), True)  # no failure that a program should see
                return made
            status = lib.ccc_last_status()
    raise explain(status)


def fits_device(size: int, device: int) -> bool:
    """Return whether a device has so many bytes: if not, no garbage collection helps, which takes milliseconds."""
    total = ffi.new("size_t *")
    return bool(lib.cuDeviceTotalMem(total, device)) or size <= total[0]
