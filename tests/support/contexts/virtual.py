# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Virtual memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from contexts.memory import FACTS, fact
from contexts.world import SIZE, World, case, must, out, pointer_attributes, pool_access, simple
from cuda_core_cffi._core.ffi import ffi, lib

# virtual memory


def granularity(w: World) -> int:
    least = lib.CU_MEM_ALLOC_GRANULARITY_MINIMUM
    return int(out("size_t *", lib.cuMemGetAllocationGranularity, w.physical_options(), least))


simple(
    "cuMemGetAllocationGranularity",
    lambda w: lib.cuMemGetAllocationGranularity(
        ffi.new("size_t *"), w.physical_options(), lib.CU_MEM_ALLOC_GRANULARITY_MINIMUM
    ),
)


class Mapping:
    """Reserved addresses, and physical memory, mapped to them as far as a case asks for."""

    def __init__(self, w: World, steps: int) -> None:
        self.size = granularity(w)
        self.steps = 0
        self.address = out("CUdeviceptr *", lib.cuMemAddressReserve, self.size, 0, 0, 0)
        self.memory = out("CUmemGenericAllocationHandle *", lib.cuMemCreate, self.size, w.physical_options(), 0)
        if steps > 0:
            must(self.map())
        if steps > 1:
            must(self.set_access(w))

    def map(self) -> int:
        status: int = lib.cuMemMap(self.address, self.size, 0, self.memory, 0)
        self.steps = 1 if status == 0 else self.steps
        return status

    def set_access(self, w: World) -> int:
        return int(lib.cuMemSetAccess(self.address, self.size, pool_access(w), 1))

    def unmap(self) -> int:
        status: int = lib.cuMemUnmap(self.address, self.size)
        self.steps = 0 if status == 0 else self.steps
        return status

    def close(self) -> None:
        if self.steps:
            must(self.unmap())
        must(lib.cuMemRelease(self.memory))
        must(lib.cuMemAddressFree(self.address, self.size))


@case("cuMemAddressReserve")
def reserve(w: World) -> Iterator[Any]:
    size, place = granularity(w), ffi.new("CUdeviceptr *")
    if (yield lambda: lib.cuMemAddressReserve(place, size, 0, 0, 0)) == 0:
        must(lib.cuMemAddressFree(place[0], size))


@case("cuMemAddressFree")
def address_free(w: World) -> Iterator[Any]:
    size = granularity(w)
    address = out("CUdeviceptr *", lib.cuMemAddressReserve, size, 0, 0, 0)
    if (yield lambda: lib.cuMemAddressFree(address, size)):
        must(lib.cuMemAddressFree(address, size))


@case("cuMemCreate")
def create(w: World) -> Iterator[Any]:
    size, place = granularity(w), ffi.new("CUmemGenericAllocationHandle *")
    if (yield lambda: lib.cuMemCreate(place, size, w.physical_options(), 0)) == 0:
        must(lib.cuMemRelease(place[0]))


@case("cuMemRelease")
def release(w: World) -> Iterator[Any]:
    memory = out("CUmemGenericAllocationHandle *", lib.cuMemCreate, granularity(w), w.physical_options(), 0)
    if (yield lambda: lib.cuMemRelease(memory)):
        must(lib.cuMemRelease(memory))


MAPPING_CALLS: dict[str, tuple[int, Callable[[World, Mapping], int]]] = {
    "cuMemMap": (0, lambda w, m: m.map()),
    "cuMemSetAccess": (1, lambda w, m: m.set_access(w)),
    "cuMemUnmap": (2, lambda w, m: m.unmap()),
    "cuMemGetAccess": (
        2,
        lambda w, m: lib.cuMemGetAccess(ffi.new("unsigned long long *"), w.location(), m.address),
    ),
    "cuPointerGetAttributes.mapped": (2, lambda w, m: pointer_attributes(w, m.address)),
    "cuMemsetD8Async.mapped": (2, lambda w, m: mapped_fill(w, m)),
}


def mapped_fill(w: World, mapping: Mapping) -> int:
    return int(lib.cuMemsetD8Async(mapping.address, 1, SIZE, w.stream) or lib.cuStreamSynchronize(w.stream))


def add_mapping_case(call: str) -> None:
    @case(call)
    def run(w: World) -> Iterator[Any]:
        steps, function = MAPPING_CALLS[call]
        mapping = Mapping(w, steps)
        yield lambda: function(w, mapping)
        mapping.close()


for _call in MAPPING_CALLS:
    add_mapping_case(_call)


def add_mapped_fact(which: str) -> None:
    @case(f"fact.{which}.mapped")
    def run(w: World) -> Iterator[Any]:
        mapping = Mapping(w, 2)
        yield lambda: fact(w, which, mapping.address)
        mapping.close()


for _fact in FACTS:
    add_mapped_fact(_fact)


@case("cuMemRetainAllocationHandle")
def retain_allocation(w: World) -> Iterator[Any]:
    mapping, place = Mapping(w, 2), ffi.new("CUmemGenericAllocationHandle *")
    address = ffi.cast("void *", mapping.address)
    if (yield lambda: lib.cuMemRetainAllocationHandle(place, address)) == 0:
        must(lib.cuMemRelease(place[0]))
    mapping.close()
