# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Memory, what the driver says of addresses, pools and sharing."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from contexts.world import (
    SECONDS,
    SIZE,
    Outcome,
    World,
    case,
    must,
    number,
    out,
    pointer_attributes,
    pool_access,
    simple,
    with_place,
)
from cuda_core_cffi._core.ffi import ffi, lib

INTERPROCESS = lib.CU_EVENT_INTERPROCESS | lib.CU_EVENT_DISABLE_TIMING

# memory

with_place("cuMemAlloc", "CUdeviceptr *", lambda w, p: lib.cuMemAlloc(p, SIZE), lambda w, p: lib.cuMemFree(p))
with_place("cuMemAllocHost", "void **", lambda w, p: lib.cuMemAllocHost(p, SIZE), lambda w, p: lib.cuMemFreeHost(p))
for _flags in (0, lib.CU_MEMHOSTALLOC_PORTABLE):
    with_place(
        f"cuMemHostAlloc.{_flags}",
        "void **",
        lambda w, p, f=_flags: lib.cuMemHostAlloc(p, SIZE, f),
        lambda w, p: lib.cuMemFreeHost(p),
    )
with_place(
    "cuMemAllocManaged",
    "CUdeviceptr *",
    lambda w, p: lib.cuMemAllocManaged(p, SIZE, lib.CU_MEM_ATTACH_GLOBAL),
    lambda w, p: lib.cuMemFree(p),
)


@case("cuMemFree")
def free(w: World) -> Iterator[Any]:
    pointer = out("CUdeviceptr *", lib.cuMemAlloc, SIZE)
    if (yield lambda: lib.cuMemFree(pointer)):
        must(lib.cuMemFree(pointer))


@case("cuMemFree.managed")
def free_managed(w: World) -> Iterator[Any]:
    pointer = out("CUdeviceptr *", lib.cuMemAllocManaged, SIZE, lib.CU_MEM_ATTACH_GLOBAL)
    if (yield lambda: lib.cuMemFree(pointer)):
        must(lib.cuMemFree(pointer))


@case("cuMemFree.pooled")
def free_pooled(w: World) -> Iterator[Any]:
    pointer = out("CUdeviceptr *", lib.cuMemAllocAsync, SIZE, w.stream)
    must(lib.cuStreamSynchronize(w.stream))
    if (yield lambda: lib.cuMemFree(pointer)):
        must(lib.cuMemFree(pointer))


@case("cuMemFreeHost")
def free_host(w: World) -> Iterator[Any]:
    pointer = out("void **", lib.cuMemAllocHost, SIZE)
    if (yield lambda: lib.cuMemFreeHost(pointer)):
        must(lib.cuMemFreeHost(pointer))


@case("cuMemHostRegister")
def register(w: World) -> Iterator[Any]:
    if (yield lambda: lib.cuMemHostRegister(w.page, SIZE, 0)) == 0:
        must(lib.cuMemHostUnregister(w.page))


@case("cuMemHostUnregister")
def unregister(w: World) -> Iterator[Any]:
    must(lib.cuMemHostRegister(w.page, SIZE, 0))
    if (yield lambda: lib.cuMemHostUnregister(w.page)):
        must(lib.cuMemHostUnregister(w.page))


simple("cuMemHostGetDevicePointer", lambda w: lib.cuMemHostGetDevicePointer(ffi.new("CUdeviceptr *"), w.pinned, 0))
simple(
    "cuMemGetAddressRange",
    lambda w: lib.cuMemGetAddressRange(ffi.new("CUdeviceptr *"), ffi.new("size_t *"), w.memory),
)
for _name in ("memory", "pooled", "managed"):
    simple(f"cuMemcpy.{_name}", lambda w, n=_name: lib.cuMemcpy(getattr(w, n), w.other, SIZE))
simple("cuMemcpy.plain", lambda w: lib.cuMemcpy(w.memory, w.plain_address, SIZE))
simple("cuMemcpy.pinned", lambda w: lib.cuMemcpy(w.memory, number(w.pinned), SIZE))
simple("cuMemcpy.hosts", lambda w: lib.cuMemcpy(w.plain_address, number(w.pinned), SIZE))
simple("cuMemsetD8", lambda w: lib.cuMemsetD8(w.memory, 1, SIZE))
simple(
    "cuMemAdvise",
    lambda w: lib.cuMemAdvise(w.managed, SIZE, lib.CU_MEM_ADVISE_SET_PREFERRED_LOCATION, w.location()[0]),
)
simple(
    "cuMemAdvise.read_mostly",
    lambda w: lib.cuMemAdvise(w.managed, SIZE, lib.CU_MEM_ADVISE_SET_READ_MOSTLY, w.location()[0]),
)
simple(
    "cuMemRangeGetAttribute",
    lambda w: lib.cuMemRangeGetAttribute(
        ffi.new("int *"), 4, lib.CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, w.managed, SIZE
    ),
)


simple("cuPointerGetAttributes.device", lambda w: pointer_attributes(w, w.memory))
simple("cuPointerGetAttributes.pooled", lambda w: pointer_attributes(w, w.pooled))
simple("cuPointerGetAttributes.pinned", lambda w: pointer_attributes(w, number(w.pinned)))
simple("cuPointerGetAttributes.managed", lambda w: pointer_attributes(w, w.managed))
simple("cuPointerGetAttributes.plain", lambda w: pointer_attributes(w, w.plain_address))
# what the driver says of addresses

FACTS = {
    "device_ordinal": ("int *", lib.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL),
    "memory_type": ("unsigned int *", lib.CU_POINTER_ATTRIBUTE_MEMORY_TYPE),
    "is_managed": ("unsigned int *", lib.CU_POINTER_ATTRIBUTE_IS_MANAGED),
    "range_size": ("size_t *", lib.CU_POINTER_ATTRIBUTE_RANGE_SIZE),
    "device_pointer": ("CUdeviceptr *", lib.CU_POINTER_ATTRIBUTE_DEVICE_POINTER),
    "host_pointer": ("void **", lib.CU_POINTER_ATTRIBUTE_HOST_POINTER),
    "context": ("CUcontext *", lib.CU_POINTER_ATTRIBUTE_CONTEXT),
    "mempool": ("CUmemoryPool *", lib.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE),
    "sync_memops": ("int *", lib.CU_POINTER_ATTRIBUTE_SYNC_MEMOPS),
}


def fact(w: World, which: str, address: int) -> Outcome:
    """Ask for an attribute; addresses and handles are compared with ones that are known, so that runs compare."""
    kind, attribute = FACTS[which]
    place = ffi.new(kind)
    status = lib.cuPointerGetAttribute(place, attribute, address)
    if status:
        return status
    if which in ("device_pointer", "host_pointer"):
        value = int(ffi.cast("uintptr_t", place[0]))
        return status, "the address" if value == address else "0" if value == 0 else "another"
    if which == "context":
        return status, "the context" if place[0] == w.context else "0" if place[0] == ffi.NULL else "another"
    if which == "mempool":
        known = {w.pool: "the pool", ffi.NULL: "0"}
        return status, known.get(place[0], "another")
    return status, str(place[0])


def add_fact(which: str, memory: str) -> None:
    @case(f"fact.{which}.{memory}")
    def run(w: World) -> Iterator[Any]:
        registered = memory in ("registered", "registered_portable")
        allocated = None
        if memory == "portable":
            allocated = out("void **", lib.cuMemHostAlloc, SIZE, lib.CU_MEMHOSTALLOC_PORTABLE)
            address = number(allocated)
        elif registered:
            flags = lib.CU_MEMHOSTREGISTER_PORTABLE if memory == "registered_portable" else 0
            must(lib.cuMemHostRegister(w.page, SIZE, flags))
            address = number(w.page)
        else:
            address = {
                "device": w.memory,
                "pooled": w.pooled,
                "pinned": number(w.pinned),
                "managed": w.managed,
                "plain": w.plain_address,
            }[memory]
        yield lambda: fact(w, which, address)
        if allocated is not None:
            lib.cuMemFreeHost(allocated)
        if registered:
            must(lib.cuMemHostUnregister(w.page))


for _fact in FACTS:
    for _memory in (
        "device",
        "pooled",
        "pinned",
        "portable",
        "registered",
        "registered_portable",
        "managed",
        "plain",
    ):
        add_fact(_fact, _memory)

# after the facts: it may change what the driver says of other memory as well
simple(
    "cuPointerSetAttribute",
    lambda w: lib.cuPointerSetAttribute(ffi.new("int *", 1), lib.CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, w.other),
)

# pools

with_place(
    "cuMemPoolCreate",
    "CUmemoryPool *",
    lambda w, p: lib.cuMemPoolCreate(p, w.pool_options()),
    lambda w, p: lib.cuMemPoolDestroy(p),
)


@case("cuMemPoolDestroy")
def pool_destroy(w: World) -> Iterator[Any]:
    pool = w.new_pool()
    if (yield lambda: lib.cuMemPoolDestroy(pool)):
        must(lib.cuMemPoolDestroy(pool))


simple(
    "cuMemPoolGetAttribute",
    lambda w: lib.cuMemPoolGetAttribute(w.pool, lib.CU_MEMPOOL_ATTR_USED_MEM_CURRENT, ffi.new("cuuint64_t *")),
)
simple(
    "cuMemPoolSetAttribute",
    lambda w: lib.cuMemPoolSetAttribute(w.pool, lib.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, ffi.new("cuuint64_t *", SIZE)),
)
simple("cuMemPoolTrimTo", lambda w: lib.cuMemPoolTrimTo(w.pool, 0))
simple(
    "cuMemPoolGetAccess",
    lambda w: lib.cuMemPoolGetAccess(ffi.new("CUmemAccess_flags *"), w.pool, w.location()),
)


simple("cuMemPoolSetAccess", lambda w: lib.cuMemPoolSetAccess(w.pool, pool_access(w), 1))
simple(
    "cuMemGetDefaultMemPool",
    lambda w: lib.cuMemGetDefaultMemPool(ffi.new("CUmemoryPool *"), w.location(), lib.CU_MEM_ALLOCATION_TYPE_PINNED),
)
simple(
    "cuMemGetMemPool",
    lambda w: lib.cuMemGetMemPool(ffi.new("CUmemoryPool *"), w.location(), lib.CU_MEM_ALLOCATION_TYPE_PINNED),
)

# sharing between processes

DESCRIPTOR = lib.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR


@case("cuMemPoolExportToShareableHandle")
def pool_export(w: World) -> Iterator[Any]:
    pool, place = w.shared_pool(), ffi.new("int *")
    if (yield lambda: lib.cuMemPoolExportToShareableHandle(place, pool, DESCRIPTOR, 0)) == 0:
        os.close(place[0])
    lib.cuMemPoolDestroy(pool)


def add_export_case(name: str, exported: bool) -> None:
    """Add a case for a pointer of a pool that was exported before, or was not."""

    @case(name)
    def pointer_export(w: World) -> Iterator[Any]:
        pool, data = w.shared_pool(), ffi.new("CUmemPoolPtrExportData *")
        if exported:
            os.close(out("int *", lib.cuMemPoolExportToShareableHandle, pool, DESCRIPTOR, 0))
        pointer = out("CUdeviceptr *", lib.cuMemAllocFromPoolAsync, SIZE, pool, w.stream)
        must(lib.cuStreamSynchronize(w.stream))
        yield lambda: lib.cuMemPoolExportPointer(data, pointer)
        lib.cuMemFree(pointer)
        lib.cuMemPoolDestroy(pool)


add_export_case("cuMemPoolExportPointer", True)
add_export_case("cuMemPoolExportPointer.not_exported", False)


class Exporter:
    """Another process that shares an event, a pool and an allocation."""

    def __init__(self) -> None:
        self.socket, theirs = socket.socketpair()
        command = [sys.executable, sys.argv[0], "--export", str(theirs.fileno())]
        self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        theirs.close()
        self.socket.settimeout(SECONDS * 2)
        message, descriptors, _, _ = socket.recv_fds(self.socket, 4096, 1)
        self.event = ffi.new("CUipcEventHandle *")
        self.data = ffi.new("CUmemPoolPtrExportData *")
        ffi.buffer(self.event)[:] = message[: ffi.sizeof(self.event[0])]
        ffi.buffer(self.data)[:] = message[ffi.sizeof(self.event[0]) :]
        self.descriptor = ffi.cast("void *", descriptors[0])

    def close(self) -> None:
        os.close(int(ffi.cast("intptr_t", self.descriptor)))
        self.socket.close()
        self.process.wait(SECONDS * 2)


def export(descriptor: int) -> None:
    """Share an event, a pool and an allocation with the process at the other end of the socket, until it closes."""
    w = World()
    event, pool = w.new_event(INTERPROCESS), w.shared_pool()
    pointer = out("CUdeviceptr *", lib.cuMemAllocFromPoolAsync, SIZE, pool, w.stream)
    must(lib.cuStreamSynchronize(w.stream))
    handle, data, place = ffi.new("CUipcEventHandle *"), ffi.new("CUmemPoolPtrExportData *"), ffi.new("int *")
    must(lib.cuIpcGetEventHandle(handle, event))
    must(lib.cuMemPoolExportToShareableHandle(place, pool, DESCRIPTOR, 0))
    must(lib.cuMemPoolExportPointer(data, pointer))
    with socket.socket(fileno=descriptor) as theirs:
        socket.send_fds(theirs, [ffi.buffer(handle)[:], ffi.buffer(data)[:]], [place[0]])
        theirs.recv(1)


@case("cuIpcOpenEventHandle")
def ipc_open_event(w: World) -> Iterator[Any]:
    exporter, place = Exporter(), ffi.new("CUevent *")
    if (yield lambda: lib.cuIpcOpenEventHandle(place, exporter.event[0])) == 0:
        lib.cuEventDestroy(place[0])
    exporter.close()


@case("cuMemPoolImportFromShareableHandle")
def pool_import(w: World) -> Iterator[Any]:
    exporter, place = Exporter(), ffi.new("CUmemoryPool *")
    if (yield lambda: lib.cuMemPoolImportFromShareableHandle(place, exporter.descriptor, DESCRIPTOR, 0)) == 0:
        lib.cuMemPoolDestroy(place[0])
    exporter.close()


@case("cuMemPoolImportPointer")
def pointer_import(w: World) -> Iterator[Any]:
    exporter, place = Exporter(), ffi.new("CUdeviceptr *")
    pool = out("CUmemoryPool *", lib.cuMemPoolImportFromShareableHandle, exporter.descriptor, DESCRIPTOR, 0)
    if (yield lambda: lib.cuMemPoolImportPointer(place, pool, exporter.data)) == 0:
        lib.cuMemFreeAsync(place[0], w.stream)
        lib.cuStreamSynchronize(w.stream)
    lib.cuMemPoolDestroy(pool)
    exporter.close()
