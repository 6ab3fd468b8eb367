# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from types import ModuleType

import pytest
from sim_driver import (
    LEGACY,
    PER_THREAD,
    Driver,
    Location,
    byref,
    c_int,
    c_size_t,
    c_uint64,
    c_void_p,
    offset,
    run_alone,
)

NONE, DEVICE, HOST, NODE, CURRENT_NODE, INVISIBLE = range(6)
READ_MOSTLY, PREFERRED, ACCESSED_BY, PREFETCHED = 1, 2, 3, 4
PREFERRED_TYPE, PREFERRED_ID, PREFETCHED_TYPE, PREFETCHED_ID = 5, 6, 7, 8
SET_MOSTLY, UNSET_MOSTLY, SET_PREFERRED, UNSET_PREFERRED, SET_ACCESSED, UNSET_ACCESSED = range(1, 7)
PINNED, MANAGED = 1, 2
PAGE = 4096
SIZE = 8 * PAGE
NOWHERE = -2
DISCARDED = b"\xdb"
NO_FLAGS = ctypes.c_ulonglong(0)


@pytest.fixture
def memory(cu: Driver) -> Iterator[c_uint64]:
    """Managed memory from cuMemAllocManaged, filled with sevens."""
    memory = cu.out(c_uint64, "cuMemAllocManaged", c_size_t(SIZE), 1)
    ctypes.memset(memory.value, 7, SIZE)
    yield memory
    cu.cuMemFree_v2(memory)


@pytest.fixture
def pooled(cu: Driver) -> Iterator[c_uint64]:
    """Managed memory of a pool that prefers device 0."""
    pool = cu.pool(alloc_type=MANAGED)
    memory = cu.from_pool(pool, SIZE, None)
    yield memory
    cu.cuMemFreeAsync(memory, None)
    cu.cuMemPoolDestroy(pool)


def advise(cu: Driver, memory: c_uint64, advice: int, location: Location, size: int = SIZE) -> str:
    return cu.status("cuMemAdvise_v2", memory, c_size_t(size), advice, location)


def told(cu: Driver, memory: c_uint64, attribute: int, size: int = SIZE, room: int = 1) -> list[int]:
    values = (c_int * room)(*[77] * room)
    cu.cuMemRangeGetAttribute(values, c_size_t(4 * room), attribute, memory, c_size_t(size))
    return list(values)


def prefetch(cu: Driver, memory: c_uint64, location: Location, stream: c_void_p | None = None, size: int = SIZE) -> str:
    return cu.status("cuMemPrefetchAsync_v2", memory, c_size_t(size), location, 0, stream)


def arrays(pieces: list[tuple[c_uint64, int]]) -> tuple[object, object, c_size_t]:
    pointers = (c_uint64 * len(pieces))(*[pointer.value for pointer, _ in pieces])
    return pointers, (c_size_t * len(pieces))(*[size for _, size in pieces]), c_size_t(len(pieces))


def places(locations: list[Location], indices: list[int]) -> tuple[object, object, c_size_t]:
    return (
        (Location * len(locations))(*locations),
        (c_size_t * len(indices))(*indices),
        c_size_t(len(locations)),
    )


# Advice


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        (READ_MOSTLY, 0), (PREFERRED, NOWHERE), (PREFERRED_TYPE, NONE), (PREFERRED_ID, NOWHERE),
        (PREFETCHED, NOWHERE), (PREFETCHED_TYPE, NONE), (PREFETCHED_ID, NOWHERE), (ACCESSED_BY, NOWHERE),
    ],
)  # fmt: skip
def test_of_new_memory_nothing_is_known(cu: Driver, memory: c_uint64, attribute: int, value: int) -> None:
    assert told(cu, memory, attribute) == [value]


def test_read_mostly_ignores_the_place(cu: Driver, memory: c_uint64) -> None:
    assert advise(cu, memory, SET_MOSTLY, Location(DEVICE, 99)) == "SUCCESS"
    assert told(cu, memory, READ_MOSTLY) == [1]
    assert advise(cu, memory, UNSET_MOSTLY, Location(HOST, 99)) == "SUCCESS"
    assert told(cu, memory, READ_MOSTLY) == [0]
    assert advise(cu, memory, SET_MOSTLY, Location(NONE, 0)) == "INVALID_VALUE"


def test_a_preferred_place_is_told_in_both_ways(cu: Driver, memory: c_uint64) -> None:
    kinds = (PREFERRED, PREFERRED_TYPE, PREFERRED_ID)
    assert advise(cu, memory, SET_PREFERRED, Location(DEVICE, 0)) == "SUCCESS"
    assert [told(cu, memory, kind) for kind in kinds] == [[0], [DEVICE], [0]]
    assert advise(cu, memory, SET_PREFERRED, Location(HOST, 5)) == "SUCCESS"
    assert [told(cu, memory, kind) for kind in kinds] == [[-1], [HOST], [-1]]
    assert advise(cu, memory, UNSET_PREFERRED, Location(HOST, 0)) == "SUCCESS"
    assert [told(cu, memory, kind) for kind in kinds] == [[NOWHERE], [NONE], [NOWHERE]]


def test_who_accesses_is_a_list_with_devices_first(cu: Driver, memory: c_uint64) -> None:
    for place in (Location(HOST, 0), Location(DEVICE, 0), Location(HOST, 3)):
        assert advise(cu, memory, SET_ACCESSED, place) == "SUCCESS"
    assert told(cu, memory, ACCESSED_BY, room=4) == [0, -1, NOWHERE, NOWHERE]
    assert told(cu, memory, ACCESSED_BY, room=1) == [0]
    for _ in range(2):
        assert advise(cu, memory, UNSET_ACCESSED, Location(DEVICE, 0)) == "SUCCESS"
    assert told(cu, memory, ACCESSED_BY, room=2) == [-1, NOWHERE]


@pytest.mark.parametrize("advice", [SET_PREFERRED, SET_ACCESSED, UNSET_ACCESSED])
@pytest.mark.parametrize(
    "place", [Location(DEVICE, 99), Location(DEVICE, -1), Location(NODE, 99), Location(NONE, 0), Location(INVISIBLE, 0)]
)
def test_places_that_do_not_exist_are_refused(cu: Driver, memory: c_uint64, advice: int, place: Location) -> None:
    assert advise(cu, memory, advice, place) == "INVALID_VALUE"


@pytest.mark.parametrize("place", [Location(NODE, 0), Location(CURRENT_NODE, 0)])
def test_nodes_are_preferred_without_effect_and_map_nothing(cu: Driver, memory: c_uint64, place: Location) -> None:
    assert advise(cu, memory, SET_PREFERRED, place) == "SUCCESS"
    assert told(cu, memory, PREFERRED_TYPE) == [NONE]
    assert advise(cu, memory, SET_ACCESSED, place) == "INVALID_VALUE"


def test_advice_is_kept_by_the_page(cu: Driver, memory: c_uint64) -> None:
    middle = offset(memory, PAGE + 100)
    assert advise(cu, middle, SET_MOSTLY, Location(HOST, 0), 100) == "SUCCESS"
    assert advise(cu, middle, SET_ACCESSED, Location(HOST, 0), 100) == "SUCCESS"
    assert advise(cu, middle, SET_PREFERRED, Location(HOST, 0), 100) == "SUCCESS"
    page = offset(memory, PAGE)
    for kind, value, otherwise in ((READ_MOSTLY, 1, 0), (ACCESSED_BY, -1, NOWHERE), (PREFERRED, -1, NOWHERE)):
        assert told(cu, page, kind, PAGE) == [value]
        assert told(cu, memory, kind, PAGE) == [otherwise]
        assert told(cu, page, kind, PAGE + 1) == [otherwise]
        assert told(cu, memory, kind) == [otherwise]


def test_advice_goes_with_the_memory(cu: Driver) -> None:
    for _ in range(2):
        memory = cu.out(c_uint64, "cuMemAllocManaged", c_size_t(SIZE), 1)
        assert told(cu, memory, READ_MOSTLY) == [0]
        assert advise(cu, memory, SET_MOSTLY, Location(HOST, 0)) == "SUCCESS"
        cu.cuMemFree_v2(memory)


def test_memory_of_pools_takes_no_advice(cu: Driver, pooled: c_uint64) -> None:
    for advice in (SET_MOSTLY, UNSET_MOSTLY, SET_PREFERRED, UNSET_PREFERRED, SET_ACCESSED, UNSET_ACCESSED):
        for place in (Location(DEVICE, 0), Location(HOST, 0)):
            assert advise(cu, pooled, advice, place) == "NOT_SUPPORTED"
    assert advise(cu, pooled, SET_PREFERRED, Location(NODE, 0)) == "SUCCESS"
    assert [told(cu, pooled, kind) for kind in (PREFERRED, PREFERRED_TYPE, PREFERRED_ID)] == [[0], [DEVICE], [0]]


@pytest.mark.parametrize(
    ("place", "values"),
    [
        (Location(NONE, 0), (NOWHERE, NONE, NOWHERE)),
        (Location(HOST, 0), (-1, HOST, 0)),
        (Location(NODE, 0), (-1, NODE, 0)),
    ],
)
def test_memory_of_a_pool_prefers_what_the_pool_does(cu: Driver, place: Location, values: tuple[int, ...]) -> None:
    pool = cu.pool(alloc_type=MANAGED, location=place)
    memory = cu.from_pool(pool, SIZE, None)
    assert tuple(told(cu, memory, kind)[0] for kind in (PREFERRED, PREFERRED_TYPE, PREFERRED_ID)) == values
    cu.cuMemFreeAsync(memory, None)
    cu.cuMemPoolDestroy(pool)


def test_the_older_function_takes_ordinals(cu: Driver, memory: c_uint64) -> None:
    def old(advice: int, ordinal: int) -> str:
        return cu.status("cuMemAdvise", memory, c_size_t(SIZE), advice, ordinal)

    assert old(SET_PREFERRED, -1) == "SUCCESS"
    assert told(cu, memory, PREFERRED_TYPE) == [HOST]
    assert old(SET_PREFERRED, 0) == "SUCCESS"
    assert told(cu, memory, PREFERRED) == [0]
    assert old(SET_MOSTLY, 99) == "SUCCESS"
    for ordinal in (99, -2):
        assert old(SET_PREFERRED, ordinal) == "INVALID_DEVICE"


@pytest.mark.parametrize("advice", [0, 7])
def test_advice_that_there_is_not(cu: Driver, memory: c_uint64, advice: int) -> None:
    assert advise(cu, memory, advice, Location(HOST, 0)) == "INVALID_VALUE"


def test_ranges_have_to_be_managed_memory(cu: Driver, memory: c_uint64, sim: ModuleType) -> None:
    device, pinned = cu.alloc(PAGE), cu.pinned(PAGE)
    pageable = ctypes.create_string_buffer(PAGE)
    for address in (device.value, ctypes.addressof(pinned), ctypes.addressof(pageable), 0):
        where, size = c_uint64(address), c_size_t(PAGE)
        assert advise(cu, where, SET_MOSTLY, Location(HOST, 0), PAGE) == "INVALID_VALUE"
        assert cu.status("cuMemRangeGetAttribute", byref(c_int()), c_size_t(4), 1, where, size) == "INVALID_VALUE"
        assert prefetch(cu, where, Location(HOST, 0), size=PAGE) == "INVALID_VALUE"
    assert advise(cu, memory, SET_MOSTLY, Location(HOST, 0), 0) == "INVALID_VALUE"
    assert sim.reports() == []
    assert advise(cu, memory, SET_MOSTLY, Location(HOST, 0), SIZE + 1) == "INVALID_VALUE"
    assert [report.kind for report in sim.reports()] == ["out of bounds"]
    sim.clear_reports()
    cu.cuMemFree_v2(device)
    cu.cuMemFreeHost(pinned)


def test_attributes_have_a_size(cu: Driver, memory: c_uint64) -> None:
    values = (c_int * 4)()
    for attribute, size in ((READ_MOSTLY, 8), (READ_MOSTLY, 0), (ACCESSED_BY, 0), (ACCESSED_BY, 6), (99, 4)):
        arguments = (values, c_size_t(size), attribute, memory, c_size_t(SIZE))
        assert cu.status("cuMemRangeGetAttribute", *arguments) == "INVALID_VALUE"


def test_several_attributes_at_once(cu: Driver, memory: c_uint64) -> None:
    assert advise(cu, memory, SET_PREFERRED, Location(DEVICE, 0)) == "SUCCESS"
    values = (c_int * 4)()
    targets = (c_void_p * 2)(ctypes.addressof(values), ctypes.addressof(values) + 4)
    sizes, kinds = (c_size_t * 2)(4, 12), (c_int * 2)(PREFERRED_TYPE, ACCESSED_BY)
    cu.cuMemRangeGetAttributes(targets, sizes, kinds, c_size_t(2), memory, c_size_t(SIZE))
    assert list(values) == [DEVICE, NOWHERE, NOWHERE, NOWHERE]
    arguments = (targets, sizes, kinds, c_size_t(0), memory, c_size_t(SIZE))
    assert cu.status("cuMemRangeGetAttributes", *arguments) == "INVALID_VALUE"


def test_advice_needs_a_context_and_a_prefetch_its_stream(cu: Driver, memory: c_uint64) -> None:
    stream = cu.stream()
    context = cu.out(c_void_p, "cuCtxGetCurrent")
    cu.cuCtxSetCurrent(None)
    assert advise(cu, memory, SET_MOSTLY, Location(HOST, 0)) == "INVALID_CONTEXT"
    arguments = (byref(c_int()), c_size_t(4), READ_MOSTLY, memory, c_size_t(SIZE))
    assert cu.status("cuMemRangeGetAttribute", *arguments) == "INVALID_CONTEXT"
    assert prefetch(cu, memory, Location(HOST, 0), stream) == "SUCCESS"
    assert prefetch(cu, memory, Location(HOST, 0)) == "INVALID_CONTEXT"
    cu.cuCtxSetCurrent(context)
    cu.cuStreamSynchronize(stream)
    cu.cuStreamDestroy_v2(stream)


# Prefetching


@pytest.mark.parametrize(
    ("place", "values"),
    [
        (Location(DEVICE, 0), (0, DEVICE, 0)), (Location(HOST, 0), (-1, HOST, -1)), (Location(NODE, 0), (-1, NODE, 0)),
        (Location(CURRENT_NODE, 0), (-1, CURRENT_NODE, 0)),
    ],
)  # fmt: skip
def test_the_last_prefetch_is_remembered(
    cu: Driver, memory: c_uint64, pooled: c_uint64, place: Location, values: tuple[int, ...]
) -> None:
    for stream in (None, LEGACY, PER_THREAD):
        for where in (memory, pooled):
            assert prefetch(cu, where, place, stream) == "SUCCESS"
            kinds = (PREFETCHED, PREFETCHED_TYPE, PREFETCHED_ID)
            assert tuple(told(cu, where, kind)[0] for kind in kinds) == values
    assert cu.read(memory, SIZE) == b"\7" * SIZE


def test_wrong_prefetches(cu: Driver, memory: c_uint64) -> None:
    for place, status in [
        (Location(DEVICE, 99), "INVALID_DEVICE"), (Location(NODE, 99), "INVALID_VALUE"),
        (Location(NONE, 0), "INVALID_VALUE"), (Location(INVISIBLE, 0), "INVALID_VALUE"),
    ]:  # fmt: skip
        assert prefetch(cu, memory, place) == status
    assert prefetch(cu, memory, Location(HOST, 0), size=0) == "INVALID_VALUE"
    flagged = (memory, c_size_t(SIZE), Location(HOST, 0), 1, None)
    assert cu.status("cuMemPrefetchAsync_v2", *flagged) == "INVALID_VALUE"
    assert told(cu, memory, PREFETCHED) == [NOWHERE]


def test_the_older_prefetch_takes_ordinals(cu: Driver, memory: c_uint64) -> None:
    for ordinal, status in ((0, "SUCCESS"), (-1, "SUCCESS"), (99, "INVALID_DEVICE"), (-2, "INVALID_DEVICE")):
        assert cu.status("cuMemPrefetchAsync", memory, c_size_t(SIZE), ordinal, None) == status
    assert told(cu, memory, PREFETCHED) == [-1]


def test_each_place_of_a_batch_holds_from_its_index_on(cu: Driver, memory: c_uint64) -> None:
    stream = cu.stream()
    pages = [offset(memory, number * PAGE) for number in range(4)]
    where = places([Location(HOST, 0), Location(DEVICE, 0)], [0, 3])
    cu.cuMemPrefetchBatchAsync(*arrays([(page, PAGE) for page in pages]), *where, NO_FLAGS, stream)
    assert [told(cu, page, PREFETCHED, PAGE) for page in pages] == [[-1], [-1], [-1], [0]]
    assert told(cu, memory, PREFETCHED_ID, PAGE) == [0]  # as it was given
    assert told(cu, memory, PREFETCHED) == [NOWHERE]
    cu.cuStreamDestroy_v2(stream)


@pytest.mark.parametrize("name", ["cuMemPrefetchBatchAsync", "cuMemDiscardAndPrefetchBatchAsync"])
def test_wrong_batches_do_nothing(cu: Driver, memory: c_uint64, name: str) -> None:
    stream, device, host = cu.stream(), Location(DEVICE, 0), Location(HOST, 0)
    two = [(memory, PAGE), (offset(memory, PAGE), PAGE)]

    def status(
        pieces: list[tuple[c_uint64, int]],
        locations: list[Location],
        indices: list[int],
        flags: int = 0,
        queue: c_void_p | None = stream,
    ) -> str:
        return cu.status(name, *arrays(pieces), *places(locations, indices), ctypes.c_ulonglong(flags), queue)

    for pieces, locations, indices in [
        ([], [], []), (two, [], []), (two, [device], [1]), (two, [device] * 3, [0, 1, 2]),
        (two, [device, host], [0, 2]), (two, [device, Location(DEVICE, 99)], [0, 1]), (two, [Location(NONE, 0)], [0]),
        (two, [Location(NODE, 99)], [0]), ([(memory, PAGE), (memory, 0)], [device], [0]),
        ([(memory, PAGE), (c_uint64(0), PAGE)], [device], [0]),
    ]:  # fmt: skip
        assert status(pieces, locations, indices) == "INVALID_VALUE"
    assert status(two, [device], [0], flags=1) == "INVALID_VALUE"
    for legacy in (None, LEGACY):
        assert status(two, [device], [0], queue=legacy) == "INVALID_VALUE"
    assert told(cu, memory, PREFETCHED, PAGE) == [NOWHERE]
    assert cu.read(memory, SIZE) == b"\7" * SIZE
    for locations, indices, queue in (([device, host], [0, 0], stream), ([host], [0], PER_THREAD)):
        assert status(two, locations, indices, queue=queue) == "SUCCESS"
    cu.cuStreamSynchronize(stream)
    cu.cuStreamSynchronize(PER_THREAD)
    cu.cuStreamDestroy_v2(stream)


# Discarding


def test_discarded_content_is_gone_in_stream_order(cu: Driver, memory: c_uint64, pooled: c_uint64) -> None:
    stream = cu.stream()
    gate = cu.block(stream)
    part = offset(memory, 100)
    cu.cuMemDiscardBatchAsync(*arrays([(part, PAGE), (pooled, SIZE)]), NO_FLAGS, stream)
    assert ctypes.string_at(memory.value, SIZE) == b"\7" * SIZE
    gate.open()
    cu.cuStreamSynchronize(stream)
    assert cu.read(memory, SIZE) == b"\7" * 100 + DISCARDED * PAGE + b"\7" * (SIZE - PAGE - 100)
    assert cu.read(pooled, SIZE) == DISCARDED * SIZE
    assert told(cu, memory, PREFETCHED) == [NOWHERE]
    cu.cuStreamDestroy_v2(stream)


def test_discarding_and_prefetching_at_once(cu: Driver, memory: c_uint64) -> None:
    stream = cu.stream()
    where = places([Location(DEVICE, 0)], [0])
    cu.cuMemDiscardAndPrefetchBatchAsync(*arrays([(memory, SIZE)]), *where, NO_FLAGS, stream)
    cu.cuStreamSynchronize(stream)
    assert cu.read(memory, SIZE) == DISCARDED * SIZE
    assert told(cu, memory, PREFETCHED) == [0]
    cu.cuStreamDestroy_v2(stream)


def test_wrong_discards_do_nothing(cu: Driver, memory: c_uint64) -> None:
    stream, device = cu.stream(), cu.alloc(PAGE)
    good, one = (memory, PAGE), ctypes.c_ulonglong(1)
    for pieces, flags, queue in [
        ([], NO_FLAGS, stream), ([good], one, stream), ([good], NO_FLAGS, None), ([good], NO_FLAGS, LEGACY),
        ([good, (memory, 0)], NO_FLAGS, stream), ([good, (device, PAGE)], NO_FLAGS, stream),
    ]:  # fmt: skip
        assert cu.status("cuMemDiscardBatchAsync", *arrays(pieces), flags, queue) == "INVALID_VALUE"
    cu.cuStreamSynchronize(stream)
    assert cu.read(memory, SIZE) == b"\7" * SIZE
    cu.cuMemFree_v2(device)
    cu.cuStreamDestroy_v2(stream)


def test_a_range_that_was_freed_before_its_turn_fails_the_context() -> None:
    printed = run_alone(
        """
        cu.start()
        stream, other = cu.stream(NON_BLOCKING), cu.stream(NON_BLOCKING)
        pool = cu.pool(alloc_type=2)
        memory = cu.from_pool(pool, 4096, other)
        gate = cu.block(stream)
        sizes = (c_size_t * 1)(4096)
        cu.cuMemDiscardBatchAsync(byref(memory), sizes, c_size_t(1), ctypes.c_ulonglong(0), stream)
        cu.cuMemFreeAsync(memory, other)  # wrong: not ordered after the discard
        cu.cuStreamSynchronize(other)
        gate.open()
        print(cu.status("cuStreamSynchronize", stream), sim.reports()[0].kind, "/", sim.reports()[0].call)
        """
    )
    assert printed.splitlines()[0] == "ILLEGAL_ADDRESS use after free / cuMemDiscardBatchAsync"


# Pools


def test_default_pools_are_by_kind_and_place(cu: Driver) -> None:
    found = [
        cu.out(c_void_p, function, byref(Location(*place)), kind).value
        for function in ("cuMemGetDefaultMemPool", "cuMemGetMemPool")
        for kind, place in [
            (PINNED, (DEVICE, 0)), (PINNED, (HOST, 0)), (PINNED, (NODE, 0)), (MANAGED, (NONE, 0)),
            (MANAGED, (DEVICE, 0)), (MANAGED, (HOST, 0)), (MANAGED, (NODE, 0)),
        ]
    ]  # fmt: skip
    assert len(set(found)) == 7
    assert found[:7] == found[7:]
    assert cu.out(c_void_p, "cuMemGetMemPool", byref(Location(HOST, 7)), PINNED).value == found[1]
    for kind, place, status in [
        (PINNED, (NONE, 0), "INVALID_VALUE"), (PINNED, (NODE, 1), "INVALID_VALUE"),
        (MANAGED, (DEVICE, 99), "INVALID_VALUE"), (MANAGED, (NODE, 99), "INVALID_VALUE"),
        (MANAGED, (CURRENT_NODE, 0), "NOT_SUPPORTED"), (PINNED, (CURRENT_NODE, 0), "NOT_SUPPORTED"),
        (0, (DEVICE, 0), "INVALID_VALUE"),
    ]:  # fmt: skip
        assert cu.status("cuMemGetMemPool", byref(c_void_p()), byref(Location(*place)), kind) == status


def test_a_current_pool_is_of_its_kind_and_place(cu: Driver) -> None:
    pool = cu.pool(alloc_type=MANAGED, location=Location(HOST, 0))
    assert cu.status("cuMemSetMemPool", byref(Location(HOST, 0)), PINNED, pool) == "INVALID_VALUE"
    assert cu.status("cuMemSetMemPool", byref(Location(NONE, 0)), MANAGED, pool) == "INVALID_VALUE"
    cu.cuMemSetMemPool(byref(Location(HOST, 0)), MANAGED, pool)
    assert cu.out(c_void_p, "cuMemGetMemPool", byref(Location(HOST, 0)), MANAGED).value == pool.value
    cu.cuMemPoolDestroy(pool)
    assert cu.out(c_void_p, "cuMemGetMemPool", byref(Location(HOST, 0)), MANAGED).value != pool.value


def test_managed_pools_grant_no_access_and_yet_all_have_it(cu: Driver, pooled: c_uint64) -> None:
    pool = cu.pointer_attribute(pooled, 17, c_void_p)
    for place in (Location(DEVICE, 0), Location(HOST, 0), Location(NODE, 0)):
        assert cu.out(c_int, "cuMemPoolGetAccess", c_void_p(pool), byref(place)).value == 0
    assert cu.pointer_attribute(pooled, 16) == 3
    cu.cuMemsetD8_v2(pooled, 1, c_size_t(SIZE))
    assert ctypes.string_at(pooled.value, SIZE) == b"\1" * SIZE


def test_memory_of_managed_pools_knows_what_it_is(cu: Driver, memory: c_uint64, pooled: c_uint64) -> None:
    for where in (memory, pooled):
        assert [cu.pointer_attribute(where, number) for number in (2, 8, 9)] == [2, 1, 0]
        assert [cu.pointer_attribute(where, number, c_uint64) for number in (3, 4)] == [where.value] * 2
    assert cu.pointer_attribute(pooled, 1, c_void_p) is None
    assert cu.pointer_attribute(memory, 1, c_void_p) is not None
    assert cu.status("cuMemFreeAsync", memory, None) == "NOT_SUPPORTED"


def test_memory_of_host_pools_knows_where_it_is_in_its_pool(cu: Driver) -> None:
    pool = cu.pool(location=Location(HOST, 0))
    one, other = cu.from_pool(pool, PAGE, None), cu.from_pool(pool, PAGE, None)
    assert [cu.pointer_attribute(where, 11, c_uint64) for where in (one, other)] == [0, PAGE]
    assert [cu.pointer_attribute(one, number) for number in (2, 8, 16)] == [1, 0, 3]
    for where in (one, other):
        cu.cuMemFreeAsync(where, None)
    cu.cuMemPoolDestroy(pool)


DRIVERS = """
    cu.start()
    for properties in ({"alloc_type": 2}, {"location": Location(2, 0)}, {"location": Location(3, 0)}):
        try:
            cu.cuMemPoolDestroy(cu.pool(**properties))
            print("SUCCESS")
        except DriverError as error:
            print(error)
"""


@pytest.mark.parametrize(
    ("version", "statuses"),
    [
        ("13000", "SUCCESS SUCCESS SUCCESS"), ("12090", "INVALID_VALUE SUCCESS SUCCESS"),
        ("12050", "INVALID_VALUE INVALID_VALUE SUCCESS"),
    ],
)  # fmt: skip
def test_older_drivers_have_fewer_kinds_of_pools(version: str, statuses: str) -> None:
    assert run_alone(DRIVERS, CUDA_SIM_DRIVER_VERSION=version).split() == statuses.split()
