# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Virtual memory of the simulated driver; what the real one answers was seen with driver 580 on an H200."""

from __future__ import annotations

from types import ModuleType

import pytest
from sim_driver import AccessDesc, Driver, Location, byref, c_size_t, c_uint, c_uint64, c_void_p, ctypes, run_alone
from sim_virtual import (
    DEVICE,
    FABRIC,
    HOST,
    KINDS,
    NO_HANDLE,
    NONE,
    NUMA,
    NUMA_CURRENT,
    POSIX_FD,
    READ,
    READ_WRITE,
    UNIT,
    WIN32,
    Memory,
    Properties,
    clean_memory,
    device_used,
    kinds_of,
    properties,
)

memory = pytest.fixture(clean_memory)


def test_memory_lives_until_the_last_handle_and_the_last_mapping_are_gone(
    cu: Driver, memory: Memory, sim: ModuleType
) -> None:
    used, live = device_used(cu), [sim.live()[kind].number for kind in KINDS]
    address, handle = memory.reserve(2 * UNIT), memory.create(2 * UNIT)
    assert device_used(cu) == used + 2 * UNIT
    assert memory.map(address, 2 * UNIT, handle) == "SUCCESS"
    assert memory.release(handle) == "SUCCESS"
    assert device_used(cu) == used + 2 * UNIT
    assert [sim.live()[kind].number for kind in KINDS] == [number + 1 for number in live]
    assert memory.unmap(address, 2 * UNIT) == "SUCCESS"
    assert device_used(cu) == used
    assert memory.free(address, 2 * UNIT) == "SUCCESS"


@pytest.mark.parametrize("size", [0, 1, 4096, UNIT + 4096])
def test_reservations_come_in_whole_granules(cu: Driver, memory: Memory, size: int) -> None:
    status = cu.status("cuMemAddressReserve", byref(c_uint64()), c_size_t(size), c_size_t(0), c_uint64(0), c_uint64(0))
    assert status == "INVALID_VALUE"


@pytest.mark.parametrize(
    ("alignment", "hint", "flags", "status"),
    [
        (3, 0, 0, "INVALID_VALUE"),
        (0, 4096, 0, "INVALID_VALUE"),
        (0, 0, 1, "INVALID_VALUE"),
        (0, 1 << 62, 0, "OUT_OF_MEMORY"),
    ],
)
def test_what_a_reservation_cannot_be(
    cu: Driver, memory: Memory, alignment: int, hint: int, flags: int, status: str
) -> None:
    arguments = c_size_t(UNIT), c_size_t(alignment), c_uint64(hint), c_uint64(flags)
    assert cu.status("cuMemAddressReserve", byref(c_uint64()), *arguments) == status


@pytest.mark.parametrize("alignment", [0, 4096, UNIT, 1 << 30])
def test_a_reservation_is_aligned(memory: Memory, alignment: int) -> None:
    address = memory.reserve(UNIT, alignment=alignment)
    assert address % max(alignment, UNIT) == 0
    assert memory.free(address, UNIT) == "SUCCESS"


def test_a_hint_is_met_where_the_addresses_are_free(memory: Memory) -> None:
    first = memory.reserve(UNIT)
    second = memory.reserve(UNIT, hint=first + UNIT)
    assert second == first + UNIT
    third = memory.reserve(UNIT, hint=first + UNIT)
    assert third not in (first, second)
    assert memory.free(second, UNIT) == "SUCCESS"
    again = memory.reserve(UNIT, hint=second)
    assert again == second
    for address in (first, again, third):
        assert memory.free(address, UNIT) == "SUCCESS"


@pytest.mark.parametrize(("offset", "size"), [(0, UNIT), (UNIT, UNIT), (0, 4 * UNIT), (1 << 40, 2 * UNIT)])
def test_a_reservation_is_freed_as_a_whole(memory: Memory, sim: ModuleType, offset: int, size: int) -> None:
    address = memory.reserve(2 * UNIT)
    assert memory.free(address + offset, size) == "INVALID_VALUE"
    assert kinds_of(sim.reports()) == ["invalid free"]
    assert memory.free(address, 2 * UNIT) == "SUCCESS"
    assert memory.free(address, 2 * UNIT) == "INVALID_VALUE"


def test_a_reservation_that_is_mapped_cannot_be_freed(memory: Memory, sim: ModuleType) -> None:
    address = memory.new(UNIT)
    assert memory.free(address, UNIT) == "INVALID_VALUE"
    assert "mapped" in sim.reports()[0].message
    memory.end(address, UNIT)


@pytest.mark.parametrize(
    ("size", "wanted", "status"),
    [
        (0, properties(), "INVALID_VALUE"),
        (4096, properties(), "INVALID_VALUE"),
        (UNIT + 4096, properties(), "INVALID_VALUE"),
        (2**64 - UNIT, properties(), "OUT_OF_MEMORY"),
        (1 << 50, properties(), "OUT_OF_MEMORY"),
        (UNIT, properties(number=99), "INVALID_DEVICE"),
        (UNIT, properties(type=0), "INVALID_VALUE"),
        (UNIT, properties(type=2), "INVALID_VALUE"),
        (UNIT, properties(handle_types=WIN32), "INVALID_VALUE"),
        (UNIT, properties(handle_types=FABRIC), "NOT_PERMITTED"),
        (UNIT, properties(HOST, handle_types=NO_HANDLE), "SUCCESS"),
        (UNIT, properties(HOST), "INVALID_VALUE"),
        (UNIT, properties(NUMA), "SUCCESS"),
        (UNIT, properties(NUMA, 9999), "INVALID_VALUE"),
        (UNIT, properties(NUMA_CURRENT), "INVALID_VALUE"),
    ],
)
def test_what_can_be_created(memory: Memory, size: int, wanted: Properties, status: str) -> None:
    assert memory.try_create(size, wanted) == status


def test_host_memory_is_not_charged_to_the_device(cu: Driver, memory: Memory) -> None:
    used = device_used(cu)
    handle = memory.create(UNIT, properties(NUMA))
    assert device_used(cu) == used
    memory.release(handle)


def test_device_memory_runs_out_at_the_configured_size() -> None:
    printed = run_alone(
        """
        from sim_virtual import *
        cu.start()
        memory = Memory(cu)
        handles = [memory.create(UNIT) for _ in range(4)]
        print(memory.try_create(UNIT, properties()), cu.status("cuMemAlloc_v2", byref(c_uint64()), c_size_t(1)))
        memory.release(handles.pop())
        print(memory.try_create(UNIT, properties()))
        """,
        CUDA_SIM_MEMORY="8M",
    )
    assert printed.split() == ["OUT_OF_MEMORY", "OUT_OF_MEMORY", "SUCCESS"]


@pytest.mark.parametrize("option", [0, 1])
def test_the_granularity_is_two_mebibytes(cu: Driver, option: int) -> None:
    assert cu.out(c_size_t, "cuMemGetAllocationGranularity", byref(properties()), option).value == UNIT
    assert cu.status("cuMemGetAllocationGranularity", byref(c_size_t()), byref(properties()), 2) == "INVALID_VALUE"


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (properties(rdma=1), (1, POSIX_FD, DEVICE, 0, 1)),
        (properties(HOST, handle_types=NO_HANDLE), (1, NO_HANDLE, NUMA, 0, 0)),
    ],
)
def test_a_handle_tells_its_properties(cu: Driver, memory: Memory, wanted: Properties, told: tuple[int, ...]) -> None:
    handle, read = memory.create(UNIT, wanted), Properties()
    cu.cuMemGetAllocationPropertiesFromHandle(byref(read), c_uint64(handle))
    assert (read.type, read.handle_types, read.location.type, read.location.id, read.rdma) == told
    memory.release(handle)


def test_a_released_handle_is_refused_and_reported(cu: Driver, memory: Memory, sim: ModuleType) -> None:
    address, handle = memory.reserve(UNIT), memory.create(UNIT)
    assert memory.release(handle) == "SUCCESS"
    assert memory.release(handle) == "INVALID_VALUE"
    assert kinds_of(sim.reports()) == ["double free"]
    assert memory.map(address, UNIT, handle) == "INVALID_VALUE"
    assert cu.status("cuMemGetAllocationPropertiesFromHandle", byref(Properties()), c_uint64(handle)) == "INVALID_VALUE"
    memory.free(address, UNIT)


def test_what_can_be_mapped_where(memory: Memory) -> None:
    address, handle, large = memory.reserve(4 * UNIT), memory.create(UNIT), memory.create(2 * UNIT)
    assert memory.map(address, UNIT, handle) == "SUCCESS"
    assert memory.map(address, UNIT, handle) == "INVALID_VALUE", "something is mapped there"
    assert memory.map(address - UNIT, 2 * UNIT, large) == "INVALID_VALUE", "not reserved"
    assert memory.map(address + 3 * UNIT, 2 * UNIT, large) == "INVALID_VALUE", "past the reservation"
    assert memory.map(address + UNIT, 0, large) == "INVALID_VALUE"
    assert memory.map(address + UNIT, UNIT, large) == "NOT_SUPPORTED", "a part of a handle"
    assert memory.map(address + UNIT, UNIT, large, UNIT) == "NOT_SUPPORTED", "an offset"
    assert memory.map(address + UNIT + 4096, 2 * UNIT, large) == "NOT_SUPPORTED", "misaligned"
    assert memory.map(address + 2 * UNIT, UNIT, handle) == "SUCCESS", "one memory at two addresses"
    memory.release(handle)
    memory.release(large)
    assert memory.unmap(address, UNIT) == "SUCCESS"
    assert memory.unmap(address + 2 * UNIT, UNIT) == "SUCCESS"
    memory.free(address, 4 * UNIT)


@pytest.mark.parametrize(
    ("offset", "size"), [(0, UNIT // 2), (UNIT, UNIT), (0, 2 * UNIT), (0, 8 * UNIT), (UNIT, 3 * UNIT), (5 * UNIT, UNIT)]
)
def test_only_whole_mappings_are_unmapped(memory: Memory, sim: ModuleType, offset: int, size: int) -> None:
    address, one, two = memory.reserve(8 * UNIT), memory.create(UNIT), memory.create(2 * UNIT)
    assert memory.map(address, UNIT, one) == memory.map(address + UNIT, 2 * UNIT, two) == "SUCCESS"
    assert memory.unmap(address + offset, size) == "INVALID_VALUE"
    assert kinds_of(sim.reports()) == ["invalid free"]
    assert memory.access(address) == memory.access(address + UNIT) == NONE, "both are still mapped"
    assert memory.unmap(address, 3 * UNIT) == "SUCCESS", "two at once"
    memory.release(one)
    memory.release(two)
    memory.free(address, 8 * UNIT)


def test_a_mapping_starts_without_rights(cu: Driver, memory: Memory) -> None:
    address = memory.new(UNIT)
    handle = cu.out(c_uint64, "cuMemRetainAllocationHandle", c_void_p(address)).value
    assert memory.access(address) == READ_WRITE
    memory.unmap(address, UNIT)
    assert memory.access(address) == "INVALID_VALUE"
    assert memory.map(address, UNIT, handle) == "SUCCESS"
    assert memory.access(address) == NONE
    memory.release(handle)
    memory.end(address, UNIT)


@pytest.mark.parametrize(
    ("offset", "size", "flags", "location", "number", "status"),
    [
        (0, 3 * UNIT, READ, DEVICE, 0, "SUCCESS"),
        (UNIT, 2 * UNIT, READ, DEVICE, 0, "SUCCESS"),
        (0, UNIT // 2, READ, DEVICE, 0, "INVALID_VALUE"),
        (UNIT, UNIT, READ, DEVICE, 0, "INVALID_VALUE"),
        (4096, UNIT, READ, DEVICE, 0, "INVALID_VALUE"),
        (0, 4 * UNIT, READ, DEVICE, 0, "INVALID_VALUE"),
        (3 * UNIT, UNIT, READ, DEVICE, 0, "INVALID_VALUE"),
        (0, UNIT, 2, DEVICE, 0, "INVALID_VALUE"),
        (0, UNIT, READ, DEVICE, 77, "INVALID_DEVICE"),
        (0, UNIT, READ, HOST, 0, "INVALID_VALUE"),
        (0, UNIT, READ, NUMA, 0, "INVALID_VALUE"),
    ],
)
def test_what_rights_can_be_set(
    memory: Memory, offset: int, size: int, flags: int, location: int, number: int, status: str
) -> None:
    address, one, two = memory.reserve(4 * UNIT), memory.create(UNIT), memory.create(2 * UNIT)
    assert memory.map(address, UNIT, one) == memory.map(address + UNIT, 2 * UNIT, two) == "SUCCESS"
    assert memory.allow(address + offset, size, flags, location, number) == status
    expected = READ if status == "SUCCESS" else NONE
    assert memory.access(address + UNIT) == expected
    memory.release(one)
    memory.release(two)
    memory.unmap(address, 3 * UNIT)
    memory.free(address, 4 * UNIT)


def test_no_rights_are_set_for_nobody(cu: Driver, memory: Memory) -> None:
    address = memory.new(UNIT)
    arguments = c_uint64(address), c_size_t(UNIT), byref(AccessDesc(Location(DEVICE, 0), READ)), c_size_t(0)
    assert cu.status("cuMemSetAccess", *arguments) == "INVALID_VALUE"
    memory.end(address, UNIT)


@pytest.mark.parametrize("location", [HOST, NUMA])
def test_the_host_may_be_given_rights_to_host_memory(memory: Memory, location: int) -> None:
    address = memory.new(UNIT, properties(HOST, handle_types=NO_HANDLE))
    assert memory.access(address, location) == NONE
    assert memory.allow(address, UNIT, READ_WRITE, location) == "SUCCESS"
    assert memory.access(address, location) == READ_WRITE
    ctypes.memset(address, 3, UNIT)
    assert memory.cu.read(c_uint64(address), 4) == b"\3\3\3\3"
    memory.end(address, UNIT)


@pytest.mark.parametrize("flags", [NONE, READ, READ_WRITE])
def test_copies_and_fills_need_rights(cu: Driver, memory: Memory, sim: ModuleType, flags: int) -> None:
    address, data = memory.new(UNIT), ctypes.create_string_buffer(8)
    memory.fill(address, UNIT)
    memory.allow(address, UNIT, flags)
    assert memory.access(address) == flags
    read = "SUCCESS" if flags & READ else "INVALID_VALUE"
    write = "SUCCESS" if flags == READ_WRITE else "INVALID_VALUE"
    assert cu.status("cuMemcpyDtoH_v2", data, c_uint64(address), c_size_t(8)) == read
    assert cu.status("cuMemcpyHtoD_v2", c_uint64(address), data, c_size_t(8)) == write
    assert memory.fill(address, 8) == write
    assert cu.status("cuStreamWriteValue32_v2", None, c_uint64(address), c_uint(1), 0) == write
    assert kinds_of(sim.reports()) == ["no access"] * [write, write].count("INVALID_VALUE")
    memory.end(address, UNIT)


def test_rights_taken_away_stop_work_that_has_not_run() -> None:
    printed = run_alone(
        """
        from sim_virtual import *
        cu.start()
        memory, stream = Memory(cu), cu.stream()
        address = memory.new(UNIT)
        gate = cu.block(stream)
        cu.cuMemsetD8Async(c_uint64(address), ctypes.c_uint(1), c_size_t(UNIT), stream)
        memory.allow(address, UNIT, READ)
        gate.open()
        print(cu.status("cuStreamSynchronize", stream), kinds_of(sim.reports()))
        """
    )
    assert printed.strip() == "ILLEGAL_ADDRESS ['no access']"


def test_memory_unmapped_under_work_that_has_not_run_is_a_fault() -> None:
    printed = run_alone(
        """
        from sim_virtual import *
        cu.start()
        memory, stream = Memory(cu), cu.stream()
        address = memory.new(UNIT)
        gate = cu.block(stream)
        cu.cuMemsetD8Async(c_uint64(address), ctypes.c_uint(1), c_size_t(UNIT), stream)
        memory.end(address, UNIT)
        gate.open()
        print(cu.status("cuStreamSynchronize", stream), kinds_of(sim.reports()), sim.reports()[0].freed_by)
        """
    )
    assert printed.strip() == "ILLEGAL_ADDRESS ['use after free'] cuMemUnmap"


@pytest.mark.parametrize(("flags", "status"), [(NONE, "ILLEGAL_ADDRESS"), (READ, "ILLEGAL_ADDRESS"), (3, "SUCCESS")])
def test_kernels_need_rights(flags: int, status: str) -> None:
    printed = run_alone(
        f"""
        from sim_launch import Kernels
        from sim_virtual import *
        cu.start()
        memory = Memory(cu)
        address = memory.new(UNIT)
        memory.allow(address, UNIT, {flags})
        Kernels(cu).launch("store", c_uint64(address), c_uint(5))
        print(cu.status("cuCtxSynchronize"), len(sim.reports()))
        """
    )
    assert printed.split() == [status, str(int(status != "SUCCESS"))]


def test_a_kernel_may_read_what_it_may_not_write() -> None:
    printed = run_alone(
        """
        from sim_launch import Kernels
        from sim_virtual import *
        cu.start()
        memory = Memory(cu)
        source, target = memory.new(UNIT), memory.new(UNIT)
        cu.cuMemsetD32_v2(c_uint64(source), c_uint(0x3f800000), c_size_t(8))
        memory.fill(target, UNIT, 0)
        memory.allow(source, UNIT, READ)
        kernels = Kernels(cu)
        kernels.launch("saxpy", c_uint(8), ctypes.c_float(2), c_uint64(source), c_uint64(target), block=(8, 1, 1))
        print(cu.status("cuCtxSynchronize"), cu.read(c_uint64(target), 4).hex())
        """
    )
    assert printed.split() == ["SUCCESS", "00000040"]


def test_another_device_needs_rights_of_its_own() -> None:
    printed = run_alone(
        """
        from sim_virtual import *
        cu.start(1)
        memory = Memory(cu)
        address = memory.new(UNIT)
        print(memory.fill(address, UNIT), kinds_of(sim.reports()))
        memory.allow(address, UNIT, READ_WRITE, number=1)
        print(memory.fill(address, UNIT), memory.access(address), memory.access(address, number=1))
        """,
        CUDA_SIM_DEVICES="2",
    )
    assert printed.split("\n")[:2] == ["INVALID_VALUE ['no access']", "SUCCESS 3 3"]


@pytest.mark.parametrize("reservations", [1, 2])
def test_work_may_run_over_adjacent_mappings(cu: Driver, memory: Memory, sim: ModuleType, reservations: int) -> None:
    address = memory.reserve(UNIT if reservations == 2 else 2 * UNIT)
    if reservations == 2:
        assert memory.reserve(UNIT, hint=address + UNIT) == address + UNIT
    handles = [memory.create(UNIT), memory.create(UNIT)]
    for index, handle in enumerate(handles):
        memory.map(address + index * UNIT, UNIT, handle)
        memory.release(handle)
    assert memory.allow(address, 2 * UNIT) == "SUCCESS"
    assert memory.fill(address, 2 * UNIT, 9) == "SUCCESS"
    assert cu.read(c_uint64(address + UNIT - 8), 16) == bytes([9]) * 16
    assert not sim.reports()
    assert memory.fill(address + UNIT, 2 * UNIT) == "INVALID_VALUE"
    assert kinds_of(sim.reports()) == ["out of bounds"]
    assert memory.unmap(address, 2 * UNIT) == "SUCCESS"
    for index in range(reservations):
        memory.free(address + index * UNIT, 2 * UNIT // reservations)


def test_two_mappings_show_the_same_memory(cu: Driver, memory: Memory) -> None:
    first = memory.new(UNIT)
    handle = cu.out(c_uint64, "cuMemRetainAllocationHandle", c_void_p(first + 100)).value
    second = memory.reserve(UNIT)
    assert memory.map(second, UNIT, handle) == memory.allow(second, UNIT) == memory.release(handle) == "SUCCESS"
    memory.fill(first, UNIT, 5)
    memory.end(first, UNIT)
    assert cu.read(c_uint64(second), 4) == b"\5\5\5\5"
    memory.end(second, UNIT)


def test_a_handle_is_retained_by_an_address_that_is_mapped(cu: Driver, memory: Memory) -> None:
    address, handle = memory.reserve(2 * UNIT), memory.create(UNIT)
    memory.map(address, UNIT, handle)
    memory.release(handle)
    out = c_uint64()
    assert cu.status("cuMemRetainAllocationHandle", byref(out), c_void_p(address + UNIT)) == "INVALID_VALUE"
    assert cu.status("cuMemRetainAllocationHandle", byref(out), c_void_p(0x1000)) == "INVALID_VALUE"
    cu.cuMemRetainAllocationHandle(byref(out), c_void_p(address + UNIT - 1))
    assert out.value == handle
    memory.release(handle)
    memory.unmap(address, UNIT)
    memory.free(address, 2 * UNIT)


def test_pointer_attributes(cu: Driver, memory: Memory) -> None:
    address, one, two = memory.reserve(4 * UNIT), memory.create(UNIT), memory.create(2 * UNIT)
    assert memory.map(address, UNIT, one) == memory.map(address + UNIT, 2 * UNIT, two) == "SUCCESS"
    memory.allow(address, 3 * UNIT, READ)
    inside = address + UNIT + 5
    expected = {2: 2, 8: 0, 9: 0, 11: address, 12: 4 * UNIT, 13: 1, 14: 1, 15: 0, 16: READ, 18: 2 * UNIT}
    assert {number: cu.pointer_attribute(inside, number, c_uint64) & 2**64 - 1 for number in expected} == expected
    assert cu.pointer_attribute(inside, 19, c_uint64) == address + UNIT
    assert cu.status("cuPointerGetAttribute", byref(c_uint64()), 4, c_uint64(inside)) == "INVALID_VALUE"
    base, size = c_uint64(), c_size_t()
    cu.cuMemGetAddressRange_v2(byref(base), byref(size), c_uint64(inside))
    assert (base.value, size.value) == (address + UNIT, 2 * UNIT)
    for number in expected:
        status = cu.status("cuPointerGetAttribute", byref(c_uint64()), number, c_uint64(address + 3 * UNIT))
        assert status == "INVALID_VALUE", "reserved, not mapped"
    memory.release(one)
    memory.release(two)
    memory.unmap(address, 3 * UNIT)
    memory.free(address, 4 * UNIT)


def test_ordinary_free_does_not_take_mapped_memory(cu: Driver, memory: Memory, sim: ModuleType) -> None:
    address = memory.new(UNIT)
    assert cu.status("cuMemFree_v2", c_uint64(address)) == "INVALID_VALUE"
    assert kinds_of(sim.reports()) == ["invalid free"]
    memory.end(address, UNIT)


def test_virtual_memory_needs_no_context_and_outlives_them() -> None:
    printed = run_alone(
        """
        from sim_virtual import *
        cu.cuInit(0)
        memory = Memory(cu)
        address = memory.new(UNIT)
        cu.start()
        memory.fill(address, UNIT, 8)
        cu.cuDevicePrimaryCtxReset_v2(0)
        cu.start()
        print(cu.read(c_uint64(address), 2).hex())
        cu.cuDevicePrimaryCtxRelease_v2(0)
        memory.end(address, UNIT)
        print(sim.reports(), [sim.live()[kind].number for kind in KINDS])
        """
    )
    assert printed.split("\n")[:2] == ["0808", "[] [0, 0, 0]"]


def test_what_is_left_at_exit_is_reported() -> None:
    printed = run_alone(
        """
        from sim_virtual import *
        cu.start()
        Memory(cu).new(UNIT)
        cu.cuDevicePrimaryCtxRelease_v2(0)
        """,
        CUDA_SIM_REPORT="stderr",
    )
    assert "2097152 bytes were never freed" in printed
    assert "2097152 bytes of addresses were never freed" in printed
    assert "1 physical allocations never destroyed" in printed
