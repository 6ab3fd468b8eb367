# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
from types import ModuleType

import pytest
from sim_driver import (
    NON_BLOCKING,
    AccessDesc,
    Driver,
    Location,
    PoolProps,
    byref,
    c_int,
    c_size_t,
    c_uint64,
    c_void_p,
    ctypes,
    run_alone,
)

THRESHOLD, RESERVED, RESERVED_HIGH, USED, USED_HIGH = 4, 5, 6, 7, 8
MEBI = 1 << 20


def figures(cu: Driver, pool: c_void_p) -> tuple[int, ...]:
    return tuple(cu.pool_attribute(pool, number) for number in (RESERVED, RESERVED_HIGH, USED, USED_HIGH))


def set_threshold(cu: Driver, pool: c_void_p, value: int) -> None:
    cu.cuMemPoolSetAttribute(pool, THRESHOLD, byref(c_uint64(value)))


def test_a_pool_counts_what_it_holds_and_what_is_used(cu: Driver) -> None:
    pool, stream = cu.pool(), cu.stream()
    assert [cu.pool_attribute(pool, number) for number in range(1, 9)] == [1, 1, 1, 0, 0, 0, 0, 0]
    one = cu.from_pool(pool, 1000, stream)
    two = cu.from_pool(pool, 1000, stream)
    assert two.value - one.value == 1024
    assert figures(cu, pool) == (32 * MEBI, 32 * MEBI, 2000, 2000)
    cu.cuMemFreeAsync(one, stream)
    assert figures(cu, pool) == (32 * MEBI, 32 * MEBI, 1000, 2000)
    cu.cuMemFreeAsync(two, stream)
    assert figures(cu, pool) == (32 * MEBI, 32 * MEBI, 0, 2000)
    cu.cuStreamSynchronize(stream)
    assert figures(cu, pool) == (0, 32 * MEBI, 0, 2000)
    cu.cuMemPoolDestroy(pool)
    cu.cuStreamDestroy_v2(stream)


@pytest.mark.parametrize("synchronise", ["stream", "event", "context"])
def test_memory_beyond_the_threshold_goes_back_at_a_synchronisation(cu: Driver, synchronise: str) -> None:
    pool, stream, event = cu.pool(), cu.stream(), cu.event()
    set_threshold(cu, pool, 64 * MEBI)
    cu.cuMemFreeAsync(cu.from_pool(pool, 100 * MEBI, stream), stream)
    assert cu.pool_attribute(pool, RESERVED) == 128 * MEBI
    if synchronise == "stream":
        cu.cuStreamSynchronize(stream)
    elif synchronise == "event":
        cu.cuEventRecord(event, stream)
        cu.cuEventSynchronize(event)
    else:
        cu.cuCtxSynchronize()
    assert cu.pool_attribute(pool, RESERVED) == 64 * MEBI
    cu.cuMemPoolDestroy(pool)
    cu.cuEventDestroy_v2(event)
    cu.cuStreamDestroy_v2(stream)


def test_trimming_keeps_at_least_what_was_asked(cu: Driver) -> None:
    pool = cu.pool()
    set_threshold(cu, pool, 1 << 40)
    kept = cu.from_pool(pool, 1000, None)
    cu.cuMemFreeAsync(cu.from_pool(pool, 100 * MEBI, None), None)
    cu.cuStreamSynchronize(None)
    assert cu.pool_attribute(pool, RESERVED) == 128 * MEBI
    cu.cuMemPoolTrimTo(pool, c_size_t(50 * MEBI))
    assert cu.pool_attribute(pool, RESERVED) == 64 * MEBI
    cu.cuMemPoolTrimTo(pool, c_size_t(0))
    assert cu.pool_attribute(pool, RESERVED) == 32 * MEBI  # the kept allocation is there
    cu.cuMemsetD8_v2(kept, 1, c_size_t(1000))
    cu.cuMemFreeAsync(kept, None)
    cu.cuMemPoolDestroy(pool)


def test_high_water_marks_can_only_be_reset(cu: Driver) -> None:
    pool = cu.pool()
    cu.cuMemFreeAsync(cu.from_pool(pool, 1000, None), None)
    cu.cuStreamSynchronize(None)
    for number in (RESERVED_HIGH, USED_HIGH):
        assert cu.status("cuMemPoolSetAttribute", pool, number, byref(c_uint64(1))) == "INVALID_VALUE"
        cu.cuMemPoolSetAttribute(pool, number, byref(c_uint64(0)))
    assert figures(cu, pool) == (0, 0, 0, 0)
    for number in (RESERVED, USED, 99):
        assert cu.status("cuMemPoolSetAttribute", pool, number, byref(c_uint64(0))) == "INVALID_VALUE"
    assert cu.status("cuMemPoolGetAttribute", pool, 99, byref(c_uint64(0))) == "INVALID_VALUE"
    cu.cuMemPoolDestroy(pool)


def test_memory_freed_in_a_stream_is_used_again_there_at_once_and_elsewhere_later(cu: Driver) -> None:
    pool, first, second = cu.pool(), cu.stream(NON_BLOCKING), cu.stream(NON_BLOCKING)
    one = cu.from_pool(pool, 1000, first)
    gate = cu.block(first)
    cu.cuMemFreeAsync(one, first)
    elsewhere = cu.from_pool(pool, 1000, second)
    assert elsewhere.value != one.value
    same = cu.from_pool(pool, 1000, first)
    assert same.value == one.value
    cu.cuMemFreeAsync(same, first)
    gate.open()
    cu.cuStreamSynchronize(first)
    later = cu.from_pool(pool, 1000, second)
    assert later.value == one.value
    for pointer in (elsewhere, later):
        cu.cuMemFreeAsync(pointer, second)
    cu.cuMemPoolDestroy(pool)
    for stream in (first, second):
        cu.cuStreamDestroy_v2(stream)


def test_when_memory_is_short_an_allocation_waits_for_the_stream_that_freed_it() -> None:
    printed = run_alone(
        """
        cu.start()
        pool, first, second = cu.pool(), cu.stream(NON_BLOCKING), cu.stream(NON_BLOCKING)
        one = cu.from_pool(pool, 6 << 20, first)
        gate = cu.block(first)
        cu.cuMemFreeAsync(one, first)
        two = cu.from_pool(pool, 6 << 20, second)
        print(two.value == one.value, cu.status("cuStreamQuery", second))
        cu.cuMemPoolSetAttribute(pool, 3, byref(c_int(0)))
        cu.cuMemFreeAsync(two, second)
        print(cu.status("cuMemAllocFromPoolAsync", byref(two), c_size_t(6 << 20), pool, cu.stream()))
        gate.open()
        cu.cuCtxSynchronize()
        print(cu.status("cuStreamQuery", second), sim.reports())
        """,
        CUDA_SIM_MEMORY="8M",
    )
    assert printed.split("\n") == ["True NOT_READY", "OUT_OF_MEMORY", "SUCCESS []", ""]


def test_the_contents_survive_what_comes_later_in_the_stream(cu: Driver, sim: ModuleType) -> None:
    pool, stream, target = cu.pool(), cu.stream(), cu.pinned(1000)
    gate = cu.block(stream)
    pointer = cu.from_pool(pool, 1000, stream)
    cu.cuMemsetD8Async(pointer, 5, c_size_t(1000), stream)
    cu.cuMemcpyDtoHAsync_v2(target, pointer, c_size_t(1000), stream)
    cu.cuMemFreeAsync(pointer, stream)
    cu.cuMemPoolDestroy(pool)
    gate.open()
    cu.cuStreamSynchronize(stream)
    assert target.raw == b"\5" * 1000
    assert sim.reports() == []
    cu.cuMemFreeHost(target)
    cu.cuStreamDestroy_v2(stream)


def test_work_that_runs_after_its_memory_was_freed_fails_the_context() -> None:
    printed = run_alone(
        """
        cu.start()
        first, second = cu.stream(NON_BLOCKING), cu.stream(NON_BLOCKING)
        pointer = cu.out(c_uint64, "cuMemAllocAsync", c_size_t(1000), first)
        gate = cu.block(second)
        cu.cuMemsetD8Async(pointer, 5, c_size_t(1000), second)
        cu.cuMemFreeAsync(pointer, first)   # wrong: not ordered after the fill
        cu.cuStreamSynchronize(first)
        gate.open()
        print(cu.status("cuStreamSynchronize", second), cu.status("cuMemAlloc_v2", byref(c_uint64()), c_size_t(1)))
        print(sim.reports()[0].kind, "/", sim.reports()[0].call, "/", sim.reports()[0].freed_by)
        """
    )
    assert printed.split("\n")[:2] == [
        "ILLEGAL_ADDRESS ILLEGAL_ADDRESS",
        "use after free / cuMemsetD8Async / cuMemFreeAsync",
    ]


@pytest.mark.parametrize(("seconds", "statuses"), [("0", ["SUCCESS"]), ("0.02", ["ILLEGAL_ADDRESS"])])
def test_delayed_work_shows_that_memory_was_freed_too_early(seconds: str, statuses: list[str]) -> None:
    printed = run_alone(
        """
        cu.start()
        first, second = cu.stream(NON_BLOCKING), cu.stream(NON_BLOCKING)
        for _ in range(40):
            pointer = c_uint64()
            cu.status("cuMemAllocAsync", byref(pointer), c_size_t(1000), first)
            cu.status("cuStreamSynchronize", first)
            cu.status("cuMemsetD8Async", pointer, 5, c_size_t(1000), second)
            cu.status("cuMemFreeAsync", pointer, first)   # wrong: not ordered after the fill
            cu.status("cuStreamSynchronize", second)
        print(cu.status("cuCtxSynchronize"))
        """,
        CUDA_SIM_DELAY_SECONDS=seconds,
    )
    assert printed.split() == statuses


def test_misuse_of_pool_memory(cu: Driver, sim: ModuleType) -> None:
    pointer = cu.out(c_uint64, "cuMemAllocAsync", c_size_t(100), None)
    assert cu.status("cuMemsetD8Async", pointer, 0, c_size_t(1000), None) == "INVALID_VALUE"
    cu.cuMemFreeAsync(pointer, None)
    assert cu.status("cuMemFreeAsync", pointer, None) == "INVALID_VALUE"
    assert cu.status("cuMemsetD8Async", pointer, 0, c_size_t(10), None) == "INVALID_VALUE"
    assert [report.kind for report in sim.reports()] == ["out of bounds", "double free", "use after free"]
    assert cu.status("cuMemAllocAsync", byref(pointer), c_size_t(1 << 45), None) == "OUT_OF_MEMORY"
    cu.cuMemAllocAsync(byref(pointer), c_size_t(0), None)
    assert pointer.value == 0


def test_either_free_takes_either_memory(cu: Driver, sim: ModuleType) -> None:
    live = sim.live()
    cu.cuMemFree_v2(cu.out(c_uint64, "cuMemAllocAsync", c_size_t(100), None))
    cu.cuMemFreeAsync(cu.alloc(100), None)
    cu.cuStreamSynchronize(None)
    assert sim.live() == live


def test_a_plain_free_of_pool_memory_waits_for_nothing_and_leaves_it_counted(cu: Driver) -> None:
    pool, stream, other = cu.pool(), cu.stream(NON_BLOCKING), cu.stream(NON_BLOCKING)
    set_threshold(cu, pool, 64 * MEBI)
    memory = cu.from_pool(pool, MEBI, stream)
    gate = cu.block(other)
    cu.cuMemFree_v2(memory)
    assert cu.status("cuStreamQuery", other) == "NOT_READY"
    again = cu.from_pool(pool, MEBI, stream)
    assert again.value == memory.value
    assert cu.pool_attribute(pool, USED) == 2 * MEBI  # as driver 580 has it
    set_threshold(cu, pool, 0)
    cu.cuMemFree_v2(again)
    assert cu.pool_attribute(pool, RESERVED) == 0
    gate.open()
    for handle in (stream, other):
        cu.cuStreamSynchronize(handle)
        cu.cuStreamDestroy_v2(handle)
    cu.cuMemPoolDestroy(pool)


@pytest.mark.parametrize("gated", [False, True])
# flags of the pool that are off: 1 follows events, 2 is opportunistic, 3 makes streams wait
@pytest.mark.parametrize(
    ("off", "wait", "reused"),
    [
        ((2, 3), "pass", False),
        ((2, 3), "cu.cuStreamSynchronize(cu.stream())", False),
        ((2, 3), "cu.cuEventQuery(event)", False),
        ((2, 3), "cu.cuStreamQuery(stream)", False),
        ((2, 3), "cu.cuMemcpyHtoD_v2(ordinary, b'x' * 8, c_size_t(8))", False),
        ((2, 3), "cu.cuStreamSynchronize(stream)", True),
        ((2, 3), "cu.cuEventSynchronize(event)", True),
        ((2, 3), "cu.cuCtxSynchronize()", True),
        ((2, 3), "cu.cuStreamWaitEvent(other, event, 0)", True),
        ((1, 2, 3), "cu.cuStreamWaitEvent(other, event, 0)", False),
        ((1, 2, 3), "cu.cuStreamSynchronize(stream)", True),
        ((), "pass", True),
    ],
)
def test_what_makes_memory_freed_in_one_stream_reusable_in_another(
    off: tuple[int, ...], wait: str, reused: bool, gated: bool
) -> None:
    printed = run_alone(
        f"""
        cu.start()
        pool, stream, other, event = cu.pool(), cu.stream(NON_BLOCKING), cu.stream(NON_BLOCKING), cu.event()
        ordinary = cu.alloc(64)
        cu.cuMemPoolSetAttribute(pool, 4, byref(c_uint64(1 << 40)))
        for number in {off}:
            cu.cuMemPoolSetAttribute(pool, number, byref(c_int(0)))
        memory = cu.from_pool(pool, 4096, stream)
        gate = cu.block(stream) if {gated} else None
        cu.cuMemFreeAsync(memory, stream)
        cu.cuEventRecord(event, stream)
        if gate:
            gate.open()
            while cu.status("cuStreamQuery", stream) == "NOT_READY":
                time.sleep(0.001)
        {wait}
        print(cu.from_pool(pool, 4096, other).value == memory.value)
        """
    )
    assert printed.strip() == str(reused)


def test_a_stream_that_waits_for_the_free_gets_the_memory_before_it_is_free(cu: Driver) -> None:
    pool, stream, other, event = cu.pool(), cu.stream(NON_BLOCKING), cu.stream(NON_BLOCKING), cu.event()
    memory = cu.from_pool(pool, MEBI, stream)
    gate = cu.block(stream)
    cu.cuMemFreeAsync(memory, stream)
    cu.cuEventRecord(event, stream)
    early = cu.from_pool(pool, MEBI, other)
    cu.cuStreamWaitEvent(other, event, 0)
    late = cu.from_pool(pool, MEBI, other)
    assert (early.value == memory.value, late.value == memory.value) == (False, True)
    gate.open()
    for pointer in (early, late):
        cu.cuMemFreeAsync(pointer, other)
    for handle in (stream, other):
        cu.cuStreamSynchronize(handle)
        cu.cuStreamDestroy_v2(handle)
    cu.cuEventDestroy_v2(event)
    cu.cuMemPoolDestroy(pool)


def test_a_destroyed_pool_lives_on_in_its_allocations(cu: Driver, sim: ModuleType) -> None:
    free, total = c_size_t(), c_size_t()
    cu.cuStreamSynchronize(None)
    cu.cuMemGetInfo_v2(byref(free), byref(total))
    before, pool = free.value, cu.pool()
    pointer = cu.from_pool(pool, 1000, None)
    cu.cuMemPoolDestroy(pool)
    assert cu.status("cuMemPoolDestroy", pool) == "INVALID_VALUE"
    assert cu.status("cuMemAllocFromPoolAsync", byref(c_uint64()), c_size_t(8), pool, None) == "INVALID_VALUE"
    cu.cuMemsetD8Async(pointer, 0, c_size_t(1000), None)
    cu.cuMemFreeAsync(pointer, None)
    cu.cuStreamSynchronize(None)
    cu.cuMemGetInfo_v2(byref(free), byref(total))
    assert free.value == before
    assert sim.reports() == []


def test_default_and_current_pools(cu: Driver, sim: ModuleType) -> None:
    standard = cu.out(c_void_p, "cuDeviceGetDefaultMemPool", 0)
    assert cu.out(c_void_p, "cuDeviceGetMemPool", 0).value == standard.value
    assert cu.status("cuMemPoolDestroy", standard) == "INVALID_VALUE"
    pool = cu.pool()
    cu.cuDeviceSetMemPool(0, pool)
    pointer = cu.out(c_uint64, "cuMemAllocAsync", c_size_t(100), None)
    assert cu.pointer_attribute(pointer, 17, c_void_p) == pool.value
    assert cu.out(c_void_p, "cuMemGetMemPool", byref(Location(1, 0)), 1).value == pool.value
    cu.cuMemFreeAsync(pointer, None)
    cu.cuMemPoolDestroy(pool)
    assert cu.out(c_void_p, "cuDeviceGetMemPool", 0).value == standard.value
    assert cu.status("cuDeviceSetMemPool", 0, None) == "INVALID_VALUE"
    host = cu.out(c_void_p, "cuMemGetDefaultMemPool", byref(Location(2, 0)), 1)
    managed = cu.out(c_void_p, "cuMemGetDefaultMemPool", byref(Location(1, 0)), 2)
    assert len({host.value, managed.value, standard.value}) == 3
    assert cu.status("cuMemGetDefaultMemPool", byref(c_void_p()), byref(Location(4, 0)), 1) == "NOT_SUPPORTED"
    assert cu.status("cuMemGetDefaultMemPool", byref(c_void_p()), byref(Location(0, 0)), 1) == "INVALID_VALUE"


@pytest.mark.parametrize(
    ("properties", "status"),
    [
        ({"alloc_type": 0}, "INVALID_VALUE"),
        ({"location": Location(0, 0)}, "INVALID_VALUE"),
        ({"location": Location(1, 44)}, "INVALID_VALUE"),
        ({"location": Location(4, 0)}, "INVALID_VALUE"),
        ({"handle_types": 64}, "INVALID_VALUE"),
        ({"location": Location(2, 0)}, "SUCCESS"),
        ({"location": Location(3, 0)}, "SUCCESS"),
        ({"alloc_type": 2}, "SUCCESS"),
        ({"alloc_type": 2, "location": Location(0, 0)}, "SUCCESS"),
    ],
)
def test_properties_of_pools(cu: Driver, properties: dict[str, object], status: str) -> None:
    props, pool = PoolProps(alloc_type=1, location=Location(1, 0)), c_void_p()
    for name, value in properties.items():
        setattr(props, name, value)
    assert cu.status("cuMemPoolCreate", byref(pool), byref(props)) == status
    if status == "SUCCESS":
        cu.cuMemPoolDestroy(pool)


def test_the_largest_size_of_a_pool(cu: Driver) -> None:
    pool = cu.pool(max_size=100 * MEBI)
    assert cu.status("cuMemAllocFromPoolAsync", byref(c_uint64()), c_size_t(200 * MEBI), pool, None) == "OUT_OF_MEMORY"
    cu.cuMemFreeAsync(cu.from_pool(pool, 50 * MEBI, None), None)
    cu.cuMemPoolDestroy(pool)


def test_host_pools_give_host_memory(cu: Driver) -> None:
    pool = cu.pool(location=Location(2, 0))
    pointer = cu.from_pool(pool, 1000, None)
    cu.cuStreamSynchronize(None)
    ctypes.memset(pointer.value, 3, 1000)
    assert cu.read(pointer, 1000) == b"\3" * 1000
    assert cu.pointer_attribute(pointer, 2) == 1
    assert cu.status("cuPointerGetAttribute", byref(c_uint64()), 3, pointer) == "INVALID_VALUE"
    cu.cuMemPoolSetAccess(pool, byref(AccessDesc(Location(1, 0), 3)), c_size_t(1))
    assert cu.pointer_attribute(pointer, 3, c_uint64) == pointer.value
    cu.cuMemFreeAsync(pointer, None)
    cu.cuMemPoolDestroy(pool)


def test_access_to_a_pool(cu: Driver) -> None:
    pool, flags = cu.pool(), c_int()

    def set_access(location: Location, rights: int) -> str:
        return cu.status("cuMemPoolSetAccess", pool, byref(AccessDesc(location, rights)), c_size_t(1))

    cu.cuMemPoolGetAccess(byref(flags), pool, byref(Location(1, 0)))
    assert flags.value == 3
    cu.cuMemPoolGetAccess(byref(flags), pool, byref(Location(2, 0)))
    assert flags.value == 0
    assert cu.status("cuMemPoolGetAccess", byref(flags), pool, byref(Location(1, 55))) == "INVALID_VALUE"
    assert set_access(Location(1, 0), 3) == "SUCCESS"
    assert set_access(Location(1, 0), 0) == "INVALID_DEVICE"
    assert set_access(Location(1, 0), 1) == "NOT_SUPPORTED"
    assert set_access(Location(2, 0), 3) == "NOT_SUPPORTED"
    assert set_access(Location(1, 77), 3) == "INVALID_DEVICE"
    cu.cuMemPoolDestroy(pool)


def test_peers_need_access_to_a_pool() -> None:
    printed = run_alone(
        """
        cu.start(0)
        pool = cu.pool()
        pointer = cu.from_pool(pool, 64, None)
        cu.start(1)
        print(cu.pointer_attribute(pointer, 16))
        cu.cuMemPoolSetAccess(pool, byref(AccessDesc(Location(1, 1), 3)), c_size_t(1))
        print(cu.pointer_attribute(pointer, 16))
        """,
        CUDA_SIM_DEVICES="2",
    )
    assert printed.split() == ["0", "3"]


def test_many_allocations_in_many_sizes_leave_nothing_behind(cu: Driver, sim: ModuleType) -> None:
    import random

    generator, pool, streams = random.Random(5), cu.pool(), [cu.stream(NON_BLOCKING) for _ in range(4)]
    held: list[tuple[c_uint64, int]] = []
    for _ in range(4000):
        stream = generator.choice(streams)
        if held and generator.random() < 0.5:
            pointer, size = held.pop(generator.randrange(len(held)))
            cu.cuMemFreeAsync(pointer, stream)
        else:
            size = generator.choice((1, 512, 513, 4096, 70_000))
            held.append((cu.from_pool(pool, size, stream), size))
    taken = sorted((pointer.value, size) for pointer, size in held)
    assert all(start + size <= following for (start, size), (following, _) in itertools.pairwise(taken))
    assert cu.pool_attribute(pool, USED) == sum(size for _, size in held)
    for pointer, _ in held:
        cu.cuMemFreeAsync(pointer, streams[0])
    cu.cuCtxSynchronize()
    assert figures(cu, pool)[0] == figures(cu, pool)[2] == 0
    for stream in streams:
        cu.cuStreamDestroy_v2(stream)
    cu.cuMemPoolDestroy(pool)
    assert sim.reports() == []
