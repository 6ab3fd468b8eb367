# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The simulated driver between processes: pools, pointers and events that several processes share."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ptx_runner import SEED
from sim_driver import (
    DISABLE_TIMING,
    HERE,
    Driver,
    byref,
    c_char,
    c_int,
    c_size_t,
    c_uint64,
    c_void_p,
    ctypes,
    run_alone,
)

POSIX_FD = 1
FABRIC = 8
ON_DEVICE, ON_HOST, ON_NODE = 1, 2, 3
MANAGED = 2
INTERPROCESS = 4
MUTATIONS = 300

Handle = c_char * 64

PROLOGUE = f"""
import json, sys
sys.path.insert(0, {str(HERE)!r})
from sim_driver import *
from test_ipc import *
cu = Driver()
cu.start()
names = {{"cu": cu, **globals()}}
for line in sys.stdin:
    names["result"] = None
    exec(json.loads(line), names)
    print(json.dumps(names["result"]), flush=True)
"""


class Peer:
    """Another process with the simulated driver, which runs what it is told to; ``result`` comes back."""

    def __init__(self, *descriptors: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROLOGUE],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=descriptors,
        )

    def run(self, code: str, **values: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        given = "\n".join(f"{name} = {value!r}" for name, value in values.items())
        self.process.stdin.write(json.dumps(given + "\n" + textwrap.dedent(code)) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, f"the peer died: {self.process.wait()}"
        return json.loads(answer)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        status = self.process.wait(60)
        self.process.stdout.close()
        return status


@pytest.fixture
def peer() -> Iterator[Callable[..., Peer]]:
    """Return what starts another process; all of them have to end well, unless they were killed."""
    peers: list[Peer] = []

    def start(*descriptors: int) -> Peer:
        peers.append(Peer(*descriptors))
        return peers[-1]

    yield start
    assert {one.end() for one in peers} <= {0, -signal.SIGKILL}


@pytest.fixture(autouse=True)
def no_descriptor_left() -> Iterator[None]:
    before = shared_descriptors()
    yield
    assert shared_descriptors() == before


def shared_descriptors() -> list[str]:
    links = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            links.append(os.readlink(entry))
        except FileNotFoundError:  # the one that lists the folder
            continue
    return sorted(link for link in links if "cuda-sim" in link)


# What both sides do.


def export_pool(cu: Driver, pool: c_void_p) -> int:
    return cu.out(c_int, "cuMemPoolExportToShareableHandle", pool, POSIX_FD, c_uint64(0)).value


def import_pool(cu: Driver, descriptor: int) -> c_void_p:
    return cu.out(c_void_p, "cuMemPoolImportFromShareableHandle", c_void_p(descriptor), POSIX_FD, c_uint64(0))


def export_pointer(cu: Driver, pointer: c_uint64) -> bytes:
    return bytes(cu.out(Handle, "cuMemPoolExportPointer", pointer).raw)


def import_pointer(cu: Driver, pool: c_void_p, handle: bytes) -> c_uint64:
    return cu.out(c_uint64, "cuMemPoolImportPointer", pool, Handle(*handle))


def import_status(cu: Driver, pool: c_void_p, handle: bytes) -> str:
    return cu.status("cuMemPoolImportPointer", byref(c_uint64()), pool, Handle(*handle))


class EventHandle(ctypes.Structure):
    _fields_ = [("data", Handle)]


def export_event(cu: Driver, event: c_void_p) -> bytes:
    return ctypes.string_at(byref(cu.out(EventHandle, "cuIpcGetEventHandle", event)), 64)


def event_handle(data: bytes) -> EventHandle:
    return EventHandle.from_buffer_copy(data)


def import_event(cu: Driver, data: bytes) -> c_void_p:
    return cu.out(c_void_p, "cuIpcOpenEventHandle", event_handle(data))


def mutations(data: bytes) -> Iterator[bytes]:
    """Give handles that are nearly right, and some that are not at all."""
    source = random.Random(SEED)
    yield bytes(64)
    yield bytes([255]) * 64
    for _ in range(MUTATIONS):
        changed = bytearray(data)
        for _ in range(source.randint(1, 4)):
            changed[source.randrange(64)] ^= source.randint(1, 255)
        yield bytes(changed)


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

    def test_handle_of_another_pool_is_refused(self, cu: Driver, memory: c_uint64) -> None:
        other = cu.pool(handle_types=POSIX_FD)
        number = export_pool(cu, other)
        pool = import_pool(cu, number)
        os.close(number)
        assert import_status(cu, pool, export_pointer(cu, memory)) == "INVALID_VALUE"
        cu.cuMemPoolDestroy(pool)
        cu.cuMemPoolDestroy(other)


class TestEvents:
    @pytest.fixture
    def event(self, cu: Driver) -> Iterator[c_void_p]:
        event = cu.event(INTERPROCESS | DISABLE_TIMING)
        yield event
        cu.cuEventDestroy_v2(event)

    def test_event_of_this_process_alone_has_no_handle(self, cu: Driver) -> None:
        event = cu.event(DISABLE_TIMING)
        assert cu.status("cuIpcGetEventHandle", byref(EventHandle()), event) == "INVALID_HANDLE"
        cu.cuEventDestroy_v2(event)

    def test_own_handle_is_not_opened(self, cu: Driver, event: c_void_p) -> None:
        handle = event_handle(export_event(cu, event))
        assert cu.status("cuIpcOpenEventHandle", byref(c_void_p()), handle) == "INVALID_CONTEXT"

    def test_event_never_recorded_is_done(self, cu: Driver, peer: Callable[..., Peer], event: c_void_p) -> None:
        assert peer().run(
            """
            event = import_event(cu, handle)
            result = [cu.status("cuEventQuery", event), cu.status("cuStreamWaitEvent", None, event, 0)]
            cu.cuEventSynchronize(event)
            cu.cuEventDestroy_v2(event)
            """,
            handle=export_event(cu, event),
        ) == ["SUCCESS", "SUCCESS"]

    def test_stream_waits_for_a_record_of_the_other_process(
        self, cu: Driver, peer: Callable[..., Peer], event: c_void_p
    ) -> None:
        stream = cu.stream(1)
        gate = cu.block(stream)
        cu.cuEventRecord(event, stream)
        other = peer()
        before = other.run(
            """
            event, stream = import_event(cu, handle), cu.stream(1)
            cu.cuStreamWaitEvent(stream, event, 0)
            result = [cu.status("cuEventQuery", event), cu.status("cuStreamQuery", stream)]
            """,
            handle=export_event(cu, event),
        )
        gate.open()
        cu.cuStreamSynchronize(stream)
        after = other.run(
            """
            cu.cuStreamSynchronize(stream)
            result = cu.status("cuEventQuery", event)
            cu.cuEventDestroy_v2(event)
            cu.cuStreamDestroy_v2(stream)
            """
        )
        assert (before, after) == (["NOT_READY", "NOT_READY"], "SUCCESS")
        cu.cuStreamDestroy_v2(stream)

    def test_importer_records_and_the_exporter_waits(
        self, cu: Driver, peer: Callable[..., Peer], event: c_void_p
    ) -> None:
        cu.cuEventRecord(event, None)
        cu.cuCtxSynchronize()
        other = peer()
        other.run(
            """
            event, stream = import_event(cu, handle), cu.stream(1)
            gate = cu.block(stream)
            cu.cuEventRecord(event, stream)
            """,
            handle=export_event(cu, event),
        )
        assert cu.status("cuEventQuery", event) == "NOT_READY"
        other.run("gate.open()")
        cu.cuEventSynchronize(event)
        assert cu.status("cuEventQuery", event) == "SUCCESS"
        other.run("cu.cuEventDestroy_v2(event); cu.cuStreamDestroy_v2(stream)")

    def test_wait_is_for_the_record_made_before_it(
        self, cu: Driver, peer: Callable[..., Peer], event: c_void_p
    ) -> None:
        stream = cu.stream(1)
        cu.cuEventRecord(event, stream)
        cu.cuStreamSynchronize(stream)
        other = peer()
        other.run(
            "event = import_event(cu, handle); cu.cuStreamWaitEvent(None, event, 0)", handle=export_event(cu, event)
        )
        gate = cu.block(stream)
        cu.cuEventRecord(event, stream)
        assert other.run("cu.cuStreamSynchronize(None); result = cu.status('cuEventQuery', event)") == "NOT_READY"
        gate.open()
        other.run("cu.cuEventSynchronize(event); cu.cuEventDestroy_v2(event)")
        cu.cuStreamDestroy_v2(stream)

    def test_nobody_waits_for_a_process_that_was_killed(self, cu: Driver, peer: Callable[..., Peer]) -> None:
        other = peer()
        handle = other.run(
            """
            event, stream = cu.event(INTERPROCESS | DISABLE_TIMING), cu.stream(1)
            gate = cu.block(stream)
            cu.cuEventRecord(event, stream)
            result = export_event(cu, event).hex()
            """
        )
        event = import_event(cu, bytes.fromhex(handle))
        stream = cu.stream(1)
        cu.cuStreamWaitEvent(stream, event, 0)
        assert cu.status("cuStreamQuery", stream) == "NOT_READY"
        other.kill()
        cu.cuStreamSynchronize(stream)
        cu.cuEventSynchronize(event)
        cu.cuEventRecord(event, stream)
        cu.cuEventSynchronize(event)
        assert cu.status("cuIpcOpenEventHandle", byref(c_void_p()), event_handle(bytes.fromhex(handle))) != "SUCCESS"
        cu.cuEventDestroy_v2(event)
        cu.cuStreamDestroy_v2(stream)

    def test_imported_event_outlives_the_exporters(self, cu: Driver, peer: Callable[..., Peer]) -> None:
        event = cu.event(INTERPROCESS | DISABLE_TIMING)
        other = peer()
        other.run("event = import_event(cu, handle)", handle=export_event(cu, event))
        cu.cuEventDestroy_v2(event)
        assert (
            other.run(
                """
            cu.cuEventRecord(event, None)
            cu.cuEventSynchronize(event)
            result = cu.status("cuEventQuery", event)
            cu.cuEventDestroy_v2(event)
            """
            )
            == "SUCCESS"
        )

    def test_imported_event_takes_no_time(self, cu: Driver, peer: Callable[..., Peer], event: c_void_p) -> None:
        assert (
            peer().run(
                """
            event = import_event(cu, handle)
            cu.cuEventRecord(event, None)
            cu.cuEventSynchronize(event)
            result = cu.status("cuEventElapsedTime", byref(c_float()), event, event)
            cu.cuEventDestroy_v2(event)
            """,
                handle=export_event(cu, event),
            )
            == "INVALID_HANDLE"
        )

    def test_damaged_handles_are_errors_or_events(self, cu: Driver, peer: Callable[..., Peer], event: c_void_p) -> None:
        refused = peer().run(
            """
            result = 0
            for changed in mutations(handle):
                event = c_void_p()
                if cu.status("cuIpcOpenEventHandle", byref(event), event_handle(changed)) == "SUCCESS":
                    cu.cuEventQuery(event)
                    cu.cuEventDestroy_v2(event)
                else:
                    result += 1
            """,
            handle=export_event(cu, event),
        )
        assert refused > MUTATIONS // 4
