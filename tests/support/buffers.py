# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers of every kind for tests, and what is in them."""

from __future__ import annotations

from typing import Any

from cuda_core_cffi import (
    LEGACY_DEFAULT_STREAM,
    Buffer,
    LegacyPinnedMemoryResource,
    ManagedBuffer,
    MemoryResource,
    Stream,
    ffi,
    lib,
)
from cuda_core_cffi._core.errors import check

SIZE = 64
DATA = bytes(range(SIZE))
PINNED = LegacyPinnedMemoryResource()


class ForeignStream:
    """A stream of another library."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, self.stream.handle)


def fresh(kind: str, device, stream, size: int = SIZE) -> Buffer:
    """Return a new buffer of a kind."""
    return device.allocate(size, stream) if kind == "device" else PINNED.allocate(size, stream)


def write(buffer: Buffer, data: bytes, stream: Stream) -> None:
    """Put data into a buffer."""
    with PINNED.allocate(len(data)) as staging:
        ffi.buffer(ffi.cast("char *", staging.handle), len(data))[:] = data
        buffer.copy_from(staging, stream=stream)
        stream.sync()


def content(buffer: Buffer, stream: Stream) -> bytes:
    """Return what is in a buffer, when the work in the stream is done."""
    with PINNED.allocate(buffer.size) as staging:
        buffer.copy_to(staging, stream=stream)
        stream.sync()
        return bytes(ffi.buffer(ffi.cast("char *", staging.handle), buffer.size))


def legacy_streams() -> list[Stream]:
    """Return what stands for the legacy default stream."""
    streams = [LEGACY_DEFAULT_STREAM, Stream.from_handle(1)]
    return streams if lib.ccc_driver_per_thread() else [*streams, Stream.from_handle(0)]


class Owner:
    """Owns ordinary host memory."""

    def __init__(self, data: bytes = DATA) -> None:
        self.memory = ffi.new("char[]", data)
        self.address = int(ffi.cast("uintptr_t", self.memory))


class HostResource(MemoryResource):
    """A resource written in Python, which records what goes back to it."""

    is_device_accessible = False
    is_host_accessible = True
    device_id = -1

    def __init__(self) -> None:
        self.live: dict[int, Any] = {}

    def allocate(self, size, stream=None):
        memory = ffi.new("char[]", max(size, 1))
        address = int(ffi.cast("uintptr_t", memory))
        self.live[address] = memory
        return Buffer.from_handle(address, size, mr=self, stream=stream)

    def deallocate(self, ptr, size, stream=None):
        del self.live[ptr]


class ManagedResource(MemoryResource):
    """Managed memory from ``cuMemAllocManaged``, for which drivers take advice; a context must be current."""

    is_device_accessible = True
    is_host_accessible = True
    is_managed = True
    device_id = -1

    def allocate(self, size, stream=None):
        pointer = ffi.new("CUdeviceptr *")
        check(lib.cuMemAllocManaged(pointer, size, lib.CU_MEM_ATTACH_GLOBAL), "cuMemAllocManaged")
        return ManagedBuffer.from_handle(int(pointer[0]), size, mr=self, stream=stream)

    def deallocate(self, ptr, size, stream=None):
        stream.sync()
        check(lib.cuMemFree(ptr), "cuMemFree")
