# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Virtual memory of the simulated driver through ctypes."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

from sim_driver import AccessDesc, Driver, Location, byref, c_int, c_size_t, c_uint64, c_void_p, ctypes

UNIT = 2 << 20
DEVICE, HOST, NUMA, NUMA_CURRENT = 1, 2, 3, 4
NONE, READ, READ_WRITE = 0, 1, 3
NO_HANDLE, POSIX_FD, WIN32, FABRIC = 0, 1, 2, 8
KINDS = ("physical allocations", "virtual mappings", "address reservations")


class Properties(ctypes.Structure):
    _fields_ = [
        ("type", c_int),
        ("handle_types", c_int),
        ("location", Location),
        ("win32", c_void_p),
        ("compression", ctypes.c_ubyte),
        ("rdma", ctypes.c_ubyte),
        ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 4),
    ]


def properties(location: int = DEVICE, number: int = 0, handle_types: int = POSIX_FD, **others: Any) -> Properties:
    return Properties(
        type=others.pop("type", 1), handle_types=handle_types, location=Location(location, number), **others
    )


class Memory:
    """Virtual memory through the driver; what is left at the end of a test is given back."""

    def __init__(self, cu: Driver) -> None:
        self.cu = cu

    def reserve(self, size: int, hint: int = 0, alignment: int = 0) -> int:
        return self.cu.out(
            c_uint64, "cuMemAddressReserve", c_size_t(size), c_size_t(alignment), c_uint64(hint), c_uint64(0)
        ).value

    def free(self, address: int, size: int) -> str:
        return self.cu.status("cuMemAddressFree", c_uint64(address), c_size_t(size))

    def create(self, size: int, wanted: Properties | None = None) -> int:
        return self.cu.out(c_uint64, "cuMemCreate", c_size_t(size), byref(wanted or properties()), c_uint64(0)).value

    def try_create(self, size: int, wanted: Properties) -> str:
        handle = c_uint64(0)
        status = self.cu.status("cuMemCreate", byref(handle), c_size_t(size), byref(wanted), c_uint64(0))
        if status == "SUCCESS":
            self.release(handle.value)
        return status

    def release(self, handle: int) -> str:
        return self.cu.status("cuMemRelease", c_uint64(handle))

    def map(self, address: int, size: int, handle: int, offset: int = 0) -> str:
        return self.cu.status(
            "cuMemMap", c_uint64(address), c_size_t(size), c_size_t(offset), c_uint64(handle), c_uint64(0)
        )

    def unmap(self, address: int, size: int) -> str:
        return self.cu.status("cuMemUnmap", c_uint64(address), c_size_t(size))

    def allow(self, address: int, size: int, flags: int = READ_WRITE, location: int = DEVICE, number: int = 0) -> str:
        wanted = AccessDesc(Location(location, number), flags)
        return self.cu.status("cuMemSetAccess", c_uint64(address), c_size_t(size), byref(wanted), c_size_t(1))

    def access(self, address: int, location: int = DEVICE, number: int = 0) -> int | str:
        flags, where = c_uint64(99), Location(location, number)
        status = self.cu.status("cuMemGetAccess", byref(flags), byref(where), c_uint64(address))
        return flags.value if status == "SUCCESS" else status

    def fill(self, address: int, size: int, value: int = 7) -> str:
        return self.cu.status("cuMemsetD8_v2", c_uint64(address), ctypes.c_uint(value), c_size_t(size))

    def new(self, size: int, wanted: Properties | None = None) -> int:
        """Return the address of new memory, mapped at a reservation of its own, with all rights."""
        address, handle = self.reserve(size), self.create(size, wanted)
        assert self.map(address, size, handle) == "SUCCESS"
        assert self.allow(address, size) == "SUCCESS"
        assert self.release(handle) == "SUCCESS"
        return address

    def end(self, address: int, size: int) -> None:
        assert self.unmap(address, size) == "SUCCESS"
        assert self.free(address, size) == "SUCCESS"


def clean_memory(cu: Driver, sim: ModuleType) -> Iterator[Memory]:
    """Return virtual memory, of which a test must leave nothing: a fixture."""
    before = [sim.live()[kind] for kind in KINDS]
    yield Memory(cu)
    assert [sim.live()[kind] for kind in KINDS] == before


def device_used(cu: Driver) -> int:
    free, total = c_size_t(), c_size_t()
    cu.cuMemGetInfo_v2(byref(free), byref(total))
    return total.value - free.value


def kinds_of(reports: list[Any]) -> list[str]:
    return [report.kind for report in reports]


def export(cu: Driver, handle: int, kind: int = POSIX_FD, flags: int = 0) -> tuple[str, int]:
    file = c_int(-1)
    return cu.status("cuMemExportToShareableHandle", byref(file), c_uint64(handle), kind, c_uint64(flags)), file.value


def import_(cu: Driver, file: int, kind: int = POSIX_FD) -> tuple[str, int]:
    handle = c_uint64()
    return cu.status("cuMemImportFromShareableHandle", byref(handle), c_void_p(file), kind), handle.value
