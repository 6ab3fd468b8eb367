# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Virtual memory for tests: addresses with room behind them or without, and what is in the memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from buffers import content

from cuda_core_cffi import Buffer, VirtualMemoryResource, ffi, lib

UNIT = 2 << 20  # the granularity of every GPU so far
ROOM = 64 * UNIT
VIRTUAL_KINDS = ("physical allocations", "virtual mappings", "address reservations")


def reserve(size: int, hint: int = 0) -> int:
    """Reserve addresses as another library does."""
    pointer = ffi.new("CUdeviceptr *")
    assert lib.cuMemAddressReserve(pointer, size, 0, hint, 0) == 0
    return int(pointer[0])


def free(address: int, size: int) -> None:
    """Free addresses that :func:`reserve` gave."""
    assert lib.cuMemAddressFree(address, size) == 0


def roomy(device: Any, **options: Any) -> VirtualMemoryResource:
    """Return a resource that asks for addresses with free ones behind them; real drivers seldom follow such a hint."""
    address = reserve(ROOM)
    free(address, ROOM)
    return VirtualMemoryResource(device, {"addr_hint": address, **options})


@contextlib.contextmanager
def buffer_with_room(resource: VirtualMemoryResource, size: int, room: int, stream) -> Iterator[Buffer]:
    """Allocate buffers until one has that many free bytes of addresses behind it: drivers fill small gaps first."""
    with contextlib.ExitStack() as buffers:
        for _ in range(100):
            buffer = buffers.enter_context(resource.allocate(size, stream))
            end = buffer.handle + buffer.size
            found = reserve(room, end)
            free(found, room)
            if found == end:
                yield buffer
                return
        raise AssertionError("none of 100 buffers has free addresses behind it")


@contextlib.contextmanager
def blocked(buffer: Buffer) -> Iterator[None]:
    """Take the addresses behind a buffer, so that it has to move to grow."""
    end = buffer.handle + buffer.size
    taken = reserve(UNIT, end)  # somewhere else if the addresses are taken already
    try:
        yield
    finally:
        free(taken, UNIT)


def raw_allocation(device_id: int, size: int, sizes: tuple[int, ...] | None = None) -> int:
    """Map new memory at new addresses as another library does; ``sizes`` splits it up."""
    address = reserve(size)
    properties = ffi.new("CUmemAllocationProp *")
    properties.type = lib.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = lib.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = device_id
    start = address
    for part in sizes or (size,):
        handle = ffi.new("CUmemGenericAllocationHandle *")
        assert lib.cuMemCreate(handle, part, properties, 0) == 0
        assert lib.cuMemMap(start, part, 0, handle[0], 0) == 0
        assert lib.cuMemRelease(handle[0]) == 0
        start += part
    return address


def access(address: int, kind: int, number: int) -> int:
    """Return the rights that a location has to an address."""
    flags, location = ffi.new("unsigned long long *"), ffi.new("CUmemLocation *")
    location.type, location.id = kind, number
    assert lib.cuMemGetAccess(flags, location, address) == 0
    return int(flags[0])


def mark(buffer: Buffer, stream) -> list[int]:
    """Fill each granule with a value of its own, and return those."""
    values = []
    for start in range(0, buffer.size, UNIT):
        value = (start // UNIT * 37 + 11) % 251
        Buffer.from_handle(buffer.handle + start, UNIT, owner=buffer).fill(value, stream=stream)
        values.append(value)
    stream.sync()
    return values


def marks(buffer: Buffer, stream, count: int) -> list[int]:
    """Return the value that fills each of the first granules, having looked at both ends of it."""
    data = content(buffer, stream)
    found = []
    for start in range(0, count * UNIT, UNIT):
        assert data[start] == data[start + UNIT - 1]
        found.append(data[start])
    return found
