# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import mmap
import random
from types import ModuleType

import pytest
from sim_driver import (
    Driver,
    byref,
    c_int,
    c_size_t,
    c_uint,
    c_uint64,
    c_void_p,
    ctypes,
    offset,
    run_alone,
)

CONTEXT, MEMORY_TYPE, DEVICE_POINTER, HOST_POINTER, SYNC_MEMOPS, BUFFER_ID, MANAGED, ORDINAL = 1, 2, 3, 4, 6, 7, 8, 9
RANGE_START, RANGE_SIZE, MAPPED, POOL = 11, 12, 13, 17
HOST, DEVICE = 1, 2


def test_an_allocation_is_counted_and_given_back(cu: Driver, sim: ModuleType) -> None:
    free, total = c_size_t(), c_size_t()
    cu.cuMemGetInfo_v2(byref(free), byref(total))
    before, live = free.value, sim.live()["device allocations"]
    pointer = cu.alloc(1_000_000)
    cu.cuMemGetInfo_v2(byref(free), byref(total))
    assert before - free.value >= 1_000_000
    assert sim.live()["device allocations"] == (live.number + 1, live.size + 1_000_000)
    cu.cuMemFree_v2(pointer)
    cu.cuMemGetInfo_v2(byref(free), byref(total))
    assert free.value == before
    assert sim.live()["device allocations"] == live


def test_device_memory_is_aligned_and_apart(cu: Driver) -> None:
    pointers = [cu.alloc(size) for size in (1, 511, 512, 513, 100_000)]
    assert all(pointer.value % 512 == 0 for pointer in pointers)
    for pointer in pointers:
        cu.cuMemFree_v2(pointer)


def test_memory_runs_out_at_the_configured_size() -> None:
    printed = run_alone(
        """
        cu.start()
        pointers = [cu.alloc(1 << 20) for _ in range(8)]
        print(cu.status("cuMemAlloc_v2", byref(c_uint64()), c_size_t(1)))
        print(cu.status("cuMemAllocAsync", byref(c_uint64()), c_size_t(1), None))
        cu.cuMemFree_v2(pointers.pop())
        print(cu.status("cuMemAlloc_v2", byref(c_uint64()), c_size_t(1 << 20)))
        print(cu.status("cuMemAlloc_v2", byref(c_uint64()), c_size_t(2**64 - 1)))
        for pointer in pointers[:4]:
            cu.cuMemFree_v2(pointer)
        pooled = cu.out(c_uint64, "cuMemAllocAsync", c_size_t(4 << 20), None)
        cu.cuMemFreeAsync(pooled, None)
        # The pool still holds the memory, and gives it up when it is short.
        print(cu.status("cuMemAlloc_v2", byref(c_uint64()), c_size_t(4 << 20)))
        """,
        CUDA_SIM_MEMORY="8M",
    )
    assert printed.split() == ["OUT_OF_MEMORY", "OUT_OF_MEMORY", "SUCCESS", "OUT_OF_MEMORY", "SUCCESS"]


def test_a_hundred_thousand_buffers(cu: Driver, sim: ModuleType) -> None:
    alloc, free, out = cu.library.cuMemAlloc_v2, cu.library.cuMemFree_v2, c_uint64()
    live = sim.live()["device allocations"].number
    pointers = []
    for _ in range(100_000):
        assert alloc(byref(out), c_size_t(64)) == 0
        pointers.append(out.value)
    assert len(set(pointers)) == 100_000
    assert sim.live()["device allocations"].number == live + 100_000
    assert cu.pointer_attribute(pointers[77_777] + 63, RANGE_START, c_uint64) == pointers[77_777]
    random.Random(1).shuffle(pointers)
    for pointer in pointers:
        assert free(c_uint64(pointer)) == 0
    assert sim.live()["device allocations"].number == live


def test_sizes_and_pitches(cu: Driver) -> None:
    assert cu.status("cuMemAlloc_v2", byref(c_uint64()), c_size_t(0)) == "INVALID_VALUE"
    assert cu.status("cuMemAlloc_v2", None, c_size_t(8)) == "INVALID_VALUE"
    pitch = c_size_t()
    pointer = cu.out(c_uint64, "cuMemAllocPitch_v2", byref(pitch), c_size_t(513), c_size_t(10), 16)
    assert pitch.value == 1024
    assert cu.pointer_attribute(pointer, RANGE_SIZE, c_size_t) == 10240
    cu.cuMemFree_v2(pointer)
    assert cu.status("cuMemAllocPitch_v2", byref(pointer), byref(pitch), c_size_t(8), c_size_t(8), 3) == "INVALID_VALUE"


def test_address_ranges(cu: Driver) -> None:
    pointer, base, size = cu.alloc(1000), c_uint64(), c_size_t()
    cu.cuMemGetAddressRange_v2(byref(base), byref(size), offset(pointer, 999))
    assert (base.value, size.value) == (pointer.value, 1000)
    cu.cuMemGetAddressRange_v2(None, byref(size), pointer)
    assert cu.status("cuMemGetAddressRange_v2", byref(base), byref(size), offset(pointer, 1000)) == "NOT_FOUND"
    assert cu.status("cuMemGetAddressRange_v2", byref(base), byref(size), c_uint64(0x1234)) == "NOT_FOUND"
    cu.cuMemFree_v2(pointer)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("device", {MEMORY_TYPE: DEVICE, MANAGED: 0, ORDINAL: 0, MAPPED: 1, SYNC_MEMOPS: 0}),
        ("managed", {MEMORY_TYPE: DEVICE, MANAGED: 1, ORDINAL: 0, MAPPED: 1}),
        ("pinned", {MEMORY_TYPE: HOST, MANAGED: 0, ORDINAL: 0, MAPPED: 1, SYNC_MEMOPS: 0}),
        ("pool", {MEMORY_TYPE: DEVICE, MANAGED: 0, ORDINAL: 0, MAPPED: 1}),
    ],
)
def test_pointer_attributes(cu: Driver, kind: str, expected: dict[int, int]) -> None:
    if kind == "device":
        pointer = cu.alloc(1000)
    elif kind == "managed":
        pointer = cu.out(c_uint64, "cuMemAllocManaged", c_size_t(1000), 1)
    elif kind == "pinned":
        pointer = c_uint64(ctypes.addressof(cu.pinned(1000)))
    else:
        pointer = cu.out(c_uint64, "cuMemAllocAsync", c_size_t(1000), None)
    inside = offset(pointer, 8)
    assert {number: cu.pointer_attribute(inside, number) for number in expected} == expected
    assert cu.pointer_attribute(inside, RANGE_START, c_uint64) == pointer.value
    assert cu.pointer_attribute(inside, RANGE_SIZE, c_size_t) == 1000
    assert cu.pointer_attribute(inside, DEVICE_POINTER, c_uint64) == inside.value
    context = cu.out(c_void_p, "cuCtxGetCurrent").value
    assert cu.pointer_attribute(inside, CONTEXT, c_void_p) == (None if kind == "pool" else context)
    on_host = kind in ("managed", "pinned")
    host = c_uint64(5)
    assert cu.status("cuPointerGetAttribute", byref(host), HOST_POINTER, inside) == (
        "SUCCESS" if on_host else "INVALID_VALUE"
    )
    assert host.value == (inside.value if on_host else 0)
    pool = cu.pointer_attribute(inside, POOL, c_void_p)
    assert (pool == cu.out(c_void_p, "cuDeviceGetMemPool", 0).value) if kind == "pool" else pool is None
    if kind == "pinned":
        cu.cuMemFreeHost(c_void_p(pointer.value))
    else:
        cu.cuMemFree_v2(pointer)
    assert cu.status("cuPointerGetAttribute", byref(c_int()), MEMORY_TYPE, pointer) == "INVALID_VALUE"


def test_ordinary_memory_has_no_attributes_but_the_list_call_answers(cu: Driver) -> None:
    buffer = ctypes.create_string_buffer(16)
    address = c_uint64(ctypes.addressof(buffer))
    assert cu.status("cuPointerGetAttribute", byref(c_int()), MEMORY_TYPE, address) == "INVALID_VALUE"
    numbers = (c_int * 4)(MEMORY_TYPE, DEVICE_POINTER, HOST_POINTER, ORDINAL)
    values = [c_int(7), c_uint64(7), c_uint64(7), c_int(7)]
    places = (c_void_p * 4)(*(ctypes.addressof(value) for value in values))
    cu.cuPointerGetAttributes(4, numbers, places, address)
    assert [value.value for value in values] == [0, 0, address.value, -2]


def test_buffer_ids_are_unique(cu: Driver) -> None:
    one = cu.alloc(8)
    first = cu.pointer_attribute(one, BUFFER_ID, c_uint64)
    cu.cuMemFree_v2(one)
    two = cu.alloc(8)
    assert cu.pointer_attribute(two, BUFFER_ID, c_uint64) != first
    cu.cuMemFree_v2(two)


def test_sync_memops_is_the_only_attribute_to_set(cu: Driver) -> None:
    pointer = c_uint64(ctypes.addressof(cu.pinned(8)))
    cu.cuPointerSetAttribute(byref(c_int(1)), SYNC_MEMOPS, pointer)
    assert cu.pointer_attribute(pointer, SYNC_MEMOPS) == 1
    assert cu.status("cuPointerSetAttribute", byref(c_int(1)), MEMORY_TYPE, pointer) == "INVALID_VALUE"
    cu.cuMemFreeHost(c_void_p(pointer.value))


def test_managed_memory_is_shared_with_the_host(cu: Driver) -> None:
    pointer = cu.out(c_uint64, "cuMemAllocManaged", c_size_t(16), 1)
    cu.cuMemsetD8_v2(pointer, 9, c_size_t(16))
    assert ctypes.string_at(pointer.value, 16) == b"\t" * 16
    cu.cuMemFree_v2(pointer)
    assert cu.status("cuMemAllocManaged", byref(pointer), c_size_t(16), 0) == "INVALID_VALUE"


def test_pinned_memory(cu: Driver) -> None:
    pointer, flags = cu.out(c_void_p, "cuMemHostAlloc", c_size_t(100), 1), c_uint()
    cu.cuMemHostGetFlags(byref(flags), pointer)
    assert flags.value == 3
    assert cu.out(c_uint64, "cuMemHostGetDevicePointer_v2", pointer, 0).value == pointer.value
    assert cu.status("cuMemHostGetDevicePointer_v2", byref(c_uint64()), pointer, 1) == "INVALID_VALUE"
    assert cu.status("cuMemHostAlloc", byref(c_void_p()), c_size_t(100), 64) == "INVALID_VALUE"
    cu.cuMemFreeHost(pointer)
    assert cu.out(c_void_p, "cuMemAllocHost_v2", c_size_t(0)).value is None
    cu.cuMemFreeHost(None)


def test_registered_memory(cu: Driver) -> None:
    block = mmap.mmap(-1, 1 << 16)
    address = ctypes.addressof(ctypes.c_char.from_buffer(block))
    cu.cuMemHostRegister_v2(c_void_p(address), c_size_t(8192), 0)
    assert cu.pointer_attribute(address + 100, MEMORY_TYPE) == HOST
    for again in (address, address + 4096):
        status = cu.status("cuMemHostRegister_v2", c_void_p(again), c_size_t(8192), 0)
        assert status == "HOST_MEMORY_ALREADY_REGISTERED"
    assert cu.status("cuMemHostUnregister", c_void_p(address + 4096)) == "INVALID_VALUE"
    cu.cuMemHostUnregister(c_void_p(address))
    assert cu.status("cuMemHostUnregister", c_void_p(address)) == "HOST_MEMORY_NOT_REGISTERED"
    assert cu.status("cuMemHostRegister_v2", c_void_p(address), c_size_t(0), 0) == "INVALID_VALUE"
    assert cu.status("cuMemHostRegister_v2", None, c_size_t(10), 0) == "INVALID_VALUE"
    # Memory that is no longer registered is ordinary memory, not freed memory.
    device = cu.alloc(16)
    cu.cuMemcpyHtoD_v2(device, c_void_p(address), c_size_t(16))
    cu.cuMemFree_v2(device)


@pytest.mark.parametrize(
    ("free", "argument", "kind"),
    [
        ("cuMemFree_v2", "interior", "invalid free"),
        ("cuMemFree_v2", "invented", "foreign free"),
        ("cuMemFree_v2", "freed", "double free"),
        ("cuMemFree_v2", "pinned", "invalid free"),
        ("cuMemFreeHost", "device", "invalid free"),
        ("cuMemFreeHost", "heap", "foreign free"),
    ],
)
def test_wrong_frees_fail_and_are_reported(cu: Driver, sim: ModuleType, free: str, argument: str, kind: str) -> None:
    device, pinned, heap = cu.alloc(1024), cu.pinned(64), ctypes.create_string_buffer(64)
    freed = cu.alloc(96)
    cu.cuMemFree_v2(freed)
    pointers = {
        "interior": device.value + 256,
        "invented": 0x12345000,
        "freed": freed.value,
        "pinned": ctypes.addressof(pinned),
        "device": device.value,
        "heap": ctypes.addressof(heap),
    }
    assert cu.status(free, c_void_p(pointers[argument])) == "INVALID_VALUE"
    (report,) = sim.reports()
    assert (report.kind, report.call, report.address) == (kind, free, pointers[argument])
    if argument == "freed":
        assert (report.allocation_size, report.allocated_by, report.freed_by) == (96, "cuMemAlloc_v2", "cuMemFree_v2")
        assert report.allocation_order <= report.freed_order
    cu.cuMemFree_v2(device)
    cu.cuMemFreeHost(pinned)


def test_freeing_nothing_is_fine(cu: Driver, sim: ModuleType) -> None:
    cu.cuMemFree_v2(c_uint64(0))
    cu.cuMemFreeAsync(c_uint64(0), None)
    cu.cuMemFreeHost(None)
    assert sim.reports() == []


def test_free_waits_for_the_work_submitted_before(cu: Driver) -> None:
    stream, memory, done = cu.stream(), cu.alloc(8), []
    gate = cu.block(stream)
    cu.launch(stream, lambda: done.append(True))
    cu.launch(stream, lambda: None)
    import threading

    threading.Timer(0.05, gate.open).start()
    cu.cuMemFree_v2(memory)
    assert done == [True]
    cu.cuStreamDestroy_v2(stream)
