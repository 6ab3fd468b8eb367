# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The simulated driver between processes: pools and pointers that several processes share."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sim_driver import Driver, byref, c_int, c_size_t, c_uint64, c_void_p, ctypes, run_alone
from sim_ipc import (
    MUTATIONS,
    POSIX_FD,
    Handle,
    Peer,
    export_pointer,
    export_pool,
    import_pointer,
    import_pool,
    import_status,
    keep_no_descriptor,
    mutations,
    start_peers,
)

FABRIC = 8
ON_HOST, ON_NODE = 2, 3
MANAGED = 2

peer = pytest.fixture(start_peers)
no_descriptor_left = pytest.fixture(autouse=True)(keep_no_descriptor)


@pytest.fixture
def shared(cu: Driver) -> Iterator[c_void_p]:
    """A pool that can be shared, with nothing allocated from it afterwards."""
    pool = cu.pool(handle_types=POSIX_FD)
    yield pool
    cu.cuMemPoolDestroy(pool)


@pytest.fixture
def descriptor(cu: Driver, shared: c_void_p) -> Iterator[int]:
    number = export_pool(cu, shared)
    yield number
    os.close(number)


@pytest.fixture
def memory(cu: Driver, shared: c_void_p) -> Iterator[c_uint64]:
    """4096 bytes of 1 from the pool."""
    pointer = cu.from_pool(shared, 4096, None)
    cu.cuMemsetD8_v2(pointer, 1, c_size_t(4096))
    yield pointer
    cu.cuMemFree_v2(pointer)


class TestPools:
    def test_device_tells_that_pools_share_by_descriptor(self, cu: Driver) -> None:
        assert cu.out(c_int, "cuDeviceGetAttribute", 119, 0).value == POSIX_FD
        assert cu.out(c_int, "cuDeviceGetAttribute", 125, 0).value == 1

    @pytest.mark.parametrize(
        ("properties", "status"),
        [
            ({"location": (ON_HOST, 0)}, "INVALID_VALUE"),
            ({"alloc_type": MANAGED}, "INVALID_VALUE"),
            ({"handle_types": FABRIC}, "NOT_SUPPORTED"),
            ({"handle_types": 2}, "INVALID_VALUE"),
        ],
    )
    def test_some_pools_cannot_be_shared(self, cu: Driver, properties: dict[str, Any], status: str) -> None:
        with pytest.raises(Exception, match=status):
            cu.pool(**{"handle_types": POSIX_FD, **properties})

    def test_only_a_shared_pool_exports(self, cu: Driver) -> None:
        pool = cu.pool()
        pointer = cu.from_pool(pool, 64, None)
        assert cu.status("cuMemPoolExportPointer", Handle(), pointer) == "INVALID_VALUE"
        with pytest.raises(Exception, match="INVALID_VALUE"):
            export_pool(cu, pool)
        cu.cuMemFree_v2(pointer)
        cu.cuMemPoolDestroy(pool)

    def test_allocation_tells_how_it_can_be_shared(self, cu: Driver, memory: c_uint64) -> None:
        assert cu.pointer_attribute(memory, 14, c_uint64) == POSIX_FD

    @pytest.mark.parametrize("number", [-1, 1 << 20])
    def test_no_descriptor_is_no_pool(self, cu: Driver, number: int) -> None:
        with pytest.raises(Exception, match="UNKNOWN"):
            import_pool(cu, number)

    @pytest.mark.parametrize("size", [0, 4096, 4 << 20])
    def test_other_file_is_no_pool(self, cu: Driver, size: int) -> None:
        # one that even has the name, but that could be made shorter behind our back
        with os.fdopen(os.memfd_create("cuda-sim-pool-" + 32 * "0"), "wb") as file:
            file.truncate(size)
            with pytest.raises(Exception, match="UNKNOWN"):
                import_pool(cu, file.fileno())

    def test_memory_given_back_to_the_system_is_allocated_anew(self, cu: Driver, shared: c_void_p) -> None:
        pointer = cu.from_pool(shared, 1 << 20, None)
        cu.cuMemsetD8_v2(pointer, 7, c_size_t(1 << 20))
        cu.cuMemFree_v2(pointer)
        cu.cuMemPoolTrimTo(shared, c_size_t(0))
        assert cu.pool_attribute(shared, 5) == 0
        pointer = cu.from_pool(shared, 1 << 20, None)
        assert cu.read(pointer, 4) == bytes(4), "the pages were given back"
        cu.cuMemFree_v2(pointer)


class TestImport:
    def test_both_processes_see_the_same_memory(
        self, cu: Driver, peer: Callable[..., Peer], descriptor: int, memory: c_uint64
    ) -> None:
        other = peer(descriptor)
        seen = other.run(
            """
            pool = import_pool(cu, descriptor)
            pointer = import_pointer(cu, pool, handle)
            result = list(cu.read(pointer, 4))
            cu.cuMemsetD8_v2(pointer, 9, c_size_t(2))
            cu.cuMemFree_v2(pointer)
            cu.cuMemPoolDestroy(pool)
            """,
            descriptor=descriptor,
            handle=export_pointer(cu, memory),
        )
        assert seen == [1, 1, 1, 1]
        assert cu.read(memory, 4) == b"\x09\x09\x01\x01"

    def test_imported_pool_cannot_allocate(self, cu: Driver, peer: Callable[..., Peer], descriptor: int) -> None:
        assert peer(descriptor).run(
            """
            pool = import_pool(cu, descriptor)
            result = [
                cu.status("cuMemAllocFromPoolAsync", byref(c_uint64()), c_size_t(64), pool, None),
                cu.status("cuDeviceSetMemPool", 0, pool),
                cu.status("cuMemPoolExportToShareableHandle", byref(c_int()), pool, POSIX_FD, c_uint64(0)),
            ]
            cu.cuMemPoolDestroy(pool)
            """,
            descriptor=descriptor,
        ) == 3 * ["INVALID_VALUE"]

    def test_importing_twice_gives_one_pointer_that_is_freed_once(
        self, cu: Driver, peer: Callable[..., Peer], descriptor: int, memory: c_uint64
    ) -> None:
        assert peer(descriptor).run(
            """
            pool = import_pool(cu, descriptor)
            first, second = import_pointer(cu, pool, handle), import_pointer(cu, pool, handle)
            result = [first.value == second.value, cu.status("cuMemFree_v2", first), cu.status("cuMemFree_v2", second)]
            cu.cuMemPoolDestroy(pool)
            simulator().clear_reports()
            """,
            descriptor=descriptor,
            handle=export_pointer(cu, memory),
        ) == [True, "SUCCESS", "INVALID_VALUE"]

    def test_importer_grants_access_to_peers_itself(self) -> None:
        assert "3 0 3" in run_alone(
            """
            from ctypes import c_int
            cu.start()
            def access(pool):
                return cu.out(c_int, "cuMemPoolGetAccess", pool, byref(Location(1, 1))).value
            def grant(pool):
                cu.cuMemPoolSetAccess(pool, byref(AccessDesc(Location(1, 1), 3)), c_size_t(1))
            pool = cu.pool(handle_types=1)
            grant(pool)
            descriptor = cu.out(c_int, "cuMemPoolExportToShareableHandle", pool, 1, c_uint64(0))
            mapped = cu.out(
                c_void_p, "cuMemPoolImportFromShareableHandle", c_void_p(descriptor.value), 1, c_uint64(0)
            )
            before = access(mapped)
            grant(mapped)
            print(access(pool), before, access(mapped))
            """,
            CUDA_SIM_DEVICES="2",
        )

    def test_host_memory_is_not_imported_twice(self, cu: Driver, peer: Callable[..., Peer]) -> None:
        pool = cu.pool(handle_types=POSIX_FD, location=(ON_NODE, 0))
        pointer = cu.from_pool(pool, 64, None)
        number = export_pool(cu, pool)
        ctypes.memset(pointer.value, 3, 64)
        assert peer(number).run(
            """
            pool = import_pool(cu, descriptor)
            first = import_pointer(cu, pool, handle)
            result = [ctypes.string_at(first.value, 1)[0], import_status(cu, pool, handle)]
            cu.cuMemFree_v2(first)
            result.append(import_status(cu, pool, handle))
            cu.cuMemFree_v2(first)
            cu.cuMemPoolDestroy(pool)
            """,
            descriptor=number,
            handle=export_pointer(cu, pointer),
        ) == [3, "ALREADY_MAPPED", "SUCCESS"]
        os.close(number)
        cu.cuMemFree_v2(pointer)
        cu.cuMemPoolDestroy(pool)

    def test_pointer_outlives_an_exporter_that_is_killed(self, cu: Driver, peer: Callable[..., Peer]) -> None:
        ours, theirs = socket.socketpair()
        other = peer(theirs.fileno())
        handle = other.run(
            """
            import socket
            pool = cu.pool(handle_types=POSIX_FD)
            pointer = cu.from_pool(pool, 64, None)
            cu.cuMemsetD8_v2(pointer, 6, c_size_t(64))
            socket.send_fds(socket.socket(fileno=end), [b"x"], [export_pool(cu, pool)])
            result = export_pointer(cu, pointer).hex()
            """,
            end=theirs.fileno(),
        )
        number = socket.recv_fds(ours, 1, 1)[1][0]
        other.kill()
        pool = import_pool(cu, number)
        pointer = import_pointer(cu, pool, bytes.fromhex(handle))
        assert cu.read(pointer, 2) == b"\x06\x06"
        os.close(number)
        ours.close()
        theirs.close()
        cu.cuMemFree_v2(pointer)
        cu.cuMemPoolDestroy(pool)

    def test_exporter_outlives_an_importer_that_is_killed(
        self, cu: Driver, peer: Callable[..., Peer], descriptor: int, memory: c_uint64
    ) -> None:
        other = peer(descriptor)
        other.run(
            "pool = import_pool(cu, descriptor); pointer = import_pointer(cu, pool, handle)",
            descriptor=descriptor,
            handle=export_pointer(cu, memory),
        )
        other.kill()
        assert cu.read(memory, 2) == b"\x01\x01"

    def test_pool_is_destroyed_after_its_pointers(
        self, cu: Driver, peer: Callable[..., Peer], descriptor: int, memory: c_uint64
    ) -> None:
        assert peer(descriptor).run(
            """
            pool = import_pool(cu, descriptor)
            pointer = import_pointer(cu, pool, handle)
            result = [cu.status("cuMemPoolDestroy", pool)]
            result.append(list(cu.read(pointer, 1)))
            cu.cuMemFree_v2(pointer)
            result.append(cu.status("cuMemPoolDestroy", pool))
            """,
            descriptor=descriptor,
            handle=export_pointer(cu, memory),
        ) == ["INVALID_VALUE", [1], "SUCCESS"]

    def test_pool_has_one_handle_however_often_it_is_imported(
        self, cu: Driver, peer: Callable[..., Peer], descriptor: int, memory: c_uint64
    ) -> None:
        assert peer(descriptor).run(
            """
            pool = import_pool(cu, descriptor)
            result = [import_pool(cu, descriptor).value == pool.value]
            cu.cuMemPoolDestroy(pool)
            result.append(cu.status("cuMemPoolDestroy", pool))
            """,
            descriptor=descriptor,
        ) == [True, "INVALID_VALUE"]

    def test_imported_pool_has_no_attributes(self, cu: Driver, peer: Callable[..., Peer], descriptor: int) -> None:
        assert peer(descriptor).run(
            """
            pool = import_pool(cu, descriptor)
            result = [
                cu.status("cuMemPoolGetAttribute", pool, 4, byref(c_uint64())),
                cu.status("cuMemPoolSetAttribute", pool, 4, byref(c_uint64())),
                cu.status("cuMemPoolTrimTo", pool, c_size_t(0)),
            ]
            cu.cuMemPoolDestroy(pool)
            """,
            descriptor=descriptor,
        ) == 3 * ["INVALID_VALUE"]

    def test_imported_memory_outlives_the_exporters(self, cu: Driver, peer: Callable[..., Peer]) -> None:
        pool = cu.pool(handle_types=POSIX_FD)
        cu.cuMemPoolSetAttribute(pool, 4, byref(c_uint64(1 << 30)))  # what is freed stays with the pool
        pointer = cu.from_pool(pool, 64, None)
        cu.cuMemsetD8_v2(pointer, 5, c_size_t(64))
        number = export_pool(cu, pool)
        handle = export_pointer(cu, pointer)
        other = peer(number)
        other.run(
            "pool = import_pool(cu, descriptor); pointer = import_pointer(cu, pool, handle)",
            descriptor=number,
            handle=handle,
        )
        os.close(number)
        cu.cuMemFree_v2(pointer)
        cu.cuMemPoolDestroy(pool)
        assert other.run(
            """
            result = list(cu.read(pointer, 2))
            cu.cuMemFree_v2(pointer)
            cu.cuMemPoolDestroy(pool)
            """
        ) == [5, 5]

    def test_damaged_handles_are_errors_or_memory_of_the_pool(
        self, cu: Driver, memory: c_uint64, descriptor: int
    ) -> None:
        pool = import_pool(cu, descriptor)
        refused = 0
        for handle in mutations(export_pointer(cu, memory)):
            pointer = c_uint64()
            if cu.status("cuMemPoolImportPointer", byref(pointer), pool, Handle(*handle)) == "SUCCESS":
                cu.read(pointer, 1)
                cu.cuMemFree_v2(pointer)
            else:
                refused += 1
        assert refused > MUTATIONS // 4
        cu.cuMemPoolDestroy(pool)

    @pytest.mark.parametrize(
        ("offset", "size"), [(1 << 40, 1), (0, 1 << 40), (0, 0), (2**64 - 1, 1), (2**64 - 1, 2), (1, 2**64 - 1)]
    )
    def test_handles_that_reach_out_of_the_pool_are_refused(
        self, cu: Driver, memory: c_uint64, descriptor: int, offset: int, size: int
    ) -> None:
        pool = import_pool(cu, descriptor)
        handle = bytearray(export_pointer(cu, memory))
        handle[24:40] = struct.pack("QQ", offset, size)
        assert import_status(cu, pool, bytes(handle)) == "INVALID_VALUE"
        cu.cuMemPoolDestroy(pool)

    def test_memory_is_described_once_its_pool_was_exported(
        self, cu: Driver, shared: c_void_p, memory: c_uint64
    ) -> None:
        assert cu.status("cuMemPoolExportPointer", byref(Handle()), memory) == "INVALID_VALUE"
        os.close(export_pool(cu, shared))
        assert cu.status("cuMemPoolExportPointer", byref(Handle()), memory) == "SUCCESS"

    def test_handle_of_another_pool_is_refused(self, cu: Driver, shared: c_void_p, memory: c_uint64) -> None:
        os.close(export_pool(cu, shared))
        other = cu.pool(handle_types=POSIX_FD)
        number = export_pool(cu, other)
        pool = import_pool(cu, number)
        os.close(number)
        assert import_status(cu, pool, export_pointer(cu, memory)) == "INVALID_VALUE"
        cu.cuMemPoolDestroy(pool)
        cu.cuMemPoolDestroy(other)
