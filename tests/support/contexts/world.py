# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The objects that the cases use, and what cases are made with."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from typing import Any

from cuda_core_cffi import driver
from cuda_core_cffi._core.ffi import ffi, lib

SECONDS = 5  # for one call
SIZE = 4096
KERNEL = b"""
.version 8.0
.target sm_90
.address_size 64
.visible .global .align 4 .u32 counter = 7;
.visible .entry nothing()
{
    ret;
}
"""
LEGACY, PER_THREAD = 1, 2

Outcome = Any  # a status, or a status and a value
CASES: dict[str, Callable[[World], Iterator[Any]]] = {}


class World:
    """The objects that the cases use."""

    def __init__(self) -> None:
        must(lib.cuInit(0))
        self.device = 0
        self.context = out("CUcontext *", lib.cuDevicePrimaryCtxRetain, self.device)
        must(lib.cuCtxPushCurrent(self.context))
        self.stream = out("CUstream *", lib.cuStreamCreate, lib.CU_STREAM_NON_BLOCKING)
        self.event = self.new_event()
        self.recorded = self.new_event()
        self.later = self.new_event()
        must(lib.cuEventRecord(self.recorded, self.stream))
        must(lib.cuEventRecord(self.later, self.stream))
        self.memory = out("CUdeviceptr *", lib.cuMemAlloc, SIZE)
        self.other = out("CUdeviceptr *", lib.cuMemAlloc, SIZE)
        self.pinned = out("void **", lib.cuMemAllocHost, SIZE)
        self.managed = out("CUdeviceptr *", lib.cuMemAllocManaged, SIZE, lib.CU_MEM_ATTACH_GLOBAL)
        self.default_pool = out("CUmemoryPool *", lib.cuDeviceGetDefaultMemPool, self.device)
        self.pool = self.new_pool()
        self.pooled = out("CUdeviceptr *", lib.cuMemAllocFromPoolAsync, SIZE, self.pool, self.stream)
        self.plain = ctypes.create_string_buffer(SIZE)
        self.plain_address = ctypes.addressof(self.plain)
        pages = 4096
        self.pages = ctypes.create_string_buffer(3 * pages)
        self.page = ffi.cast("void *", -(-ctypes.addressof(self.pages) // pages) * pages)
        self.library = self.new_library()
        self.kernel = out("CUkernel *", lib.cuLibraryGetKernel, self.library, b"nothing")
        self.module = out("CUmodule *", lib.cuLibraryGetModule, self.library)
        self.function = out("CUfunction *", lib.cuModuleGetFunction, self.module, b"nothing")
        self.graph = out("CUgraph *", lib.cuGraphCreate, 0)
        # free(NULL), as a host function: it takes a pointer and does nothing
        self.host = ffi.cast("CUhostFn", ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p).value)
        must(lib.cuStreamSynchronize(self.stream))
        self.another: Any = None

    def context_for(self, stage: str) -> Any:
        """Return the context that is to be current at a stage."""
        if stage == "without":
            return ffi.NULL
        if stage == "with":
            return self.context
        if self.another is None:
            self.another = out("CUcontext *", lib.cuCtxCreate, ffi.NULL, 0, self.device)
            must(lib.cuCtxPopCurrent(ffi.new("CUcontext *")))
        return self.another

    def new_event(self, flags: int = 0) -> Any:
        return out("CUevent *", lib.cuEventCreate, flags)

    def new_library(self) -> Any:
        self.image = ffi.new("char[]", KERNEL)
        null = ffi.NULL
        return out("CUlibrary *", lib.cuLibraryLoadData, self.image, null, null, 0, null, null, 0)

    def pool_options(self, kind: int = 0) -> Any:
        options = ffi.new("CUmemPoolProps *")
        options.allocType = lib.CU_MEM_ALLOCATION_TYPE_PINNED
        options.handleTypes = kind
        options.location.type = lib.CU_MEM_LOCATION_TYPE_DEVICE
        options.location.id = self.device
        return options

    def new_pool(self, kind: int = 0) -> Any:
        return out("CUmemoryPool *", lib.cuMemPoolCreate, self.pool_options(kind))

    def shared_pool(self) -> Any:
        return self.new_pool(lib.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)

    def location(self) -> Any:
        location = ffi.new("CUmemLocation *")
        location.type = lib.CU_MEM_LOCATION_TYPE_DEVICE
        location.id = self.device
        return location

    def physical_options(self) -> Any:
        options = ffi.new("CUmemAllocationProp *")
        options.type = lib.CU_MEM_ALLOCATION_TYPE_PINNED
        options.location.type = lib.CU_MEM_LOCATION_TYPE_DEVICE
        options.location.id = self.device
        return options

    def launch_config(self, stream: Any) -> Any:
        config = ffi.new("CUlaunchConfig *")
        config.gridDimX = config.gridDimY = config.gridDimZ = 1
        config.blockDimX = config.blockDimY = config.blockDimZ = 1
        config.hStream = stream
        return config

    def streams(self) -> dict[str, Any]:
        return {
            "stream": self.stream,
            "0": ffi.cast("CUstream", 0),
            "legacy": ffi.cast("CUstream", LEGACY),
            "per_thread": ffi.cast("CUstream", PER_THREAD),
        }

    def captured(self) -> Any:
        """Return a stream that captures, so that any thread may end it."""
        stream = out("CUstream *", lib.cuStreamCreate, lib.CU_STREAM_NON_BLOCKING)
        must(lib.cuStreamBeginCapture(stream, lib.CU_STREAM_CAPTURE_MODE_RELAXED))
        return stream


def name_of(status: int) -> str:
    return driver.CUresult(status).name


def must(status: int) -> None:
    if status:
        raise RuntimeError(name_of(status))


def out(kind: str, function: Callable[..., int], *arguments: Any) -> Any:
    """Return what a function puts into its first argument."""
    place = ffi.new(kind)
    must(function(place, *arguments))
    return place[0]


def case(name: str) -> Callable[[Callable[[World], Iterator[Any]]], Callable[[World], Iterator[Any]]]:
    """Add a case: a generator. What it does before the first `yield`, and after the last, happens in the main thread.

    It yields the function that makes the call. The value of `yield` is the status, or None if the call did not return.
    """

    def add(function: Callable[[World], Iterator[Any]]) -> Callable[[World], Iterator[Any]]:
        assert name not in CASES, name
        CASES[name] = function
        return function

    return add


def simple(name: str, call: Callable[[World], Outcome]) -> None:
    """Add a case that needs no objects of its own and leaves none."""

    @case(name)
    def run(w: World) -> Iterator[Any]:
        yield lambda: call(w)


def with_place(name: str, kind: str, call: Callable[[World, Any], int], clean: Callable[[World, Any], Any]) -> None:
    """Add a case whose call makes something, which is cleaned up in the main thread."""

    @case(name)
    def run(w: World) -> Iterator[Any]:
        place = ffi.new(kind)
        status = yield lambda: call(w, place)
        if status == 0:
            clean(w, place[0])


def number(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))


def copy_3d(w: World) -> Any:
    copy = ffi.new("CUDA_MEMCPY3D *")
    copy.srcMemoryType = copy.dstMemoryType = lib.CU_MEMORYTYPE_DEVICE
    copy.srcDevice, copy.dstDevice = w.other, w.memory
    copy.WidthInBytes = copy.srcPitch = copy.dstPitch = SIZE
    copy.Height = copy.Depth = copy.srcHeight = copy.dstHeight = 1
    return copy


def out_last(kind: str, function: Callable[..., int], *arguments: Any) -> Any:
    place = ffi.new(kind)
    must(function(*arguments, place))
    return place[0]


def pool_access(w: World) -> Any:
    access = ffi.new("CUmemAccessDesc *")
    access.location = w.location()[0]
    access.flags = lib.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    return access


def pointer_attributes(w: World, address: int) -> int:
    kinds = ffi.new(
        "CUpointer_attribute[]", [lib.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, lib.CU_POINTER_ATTRIBUTE_IS_MANAGED]
    )
    values = [ffi.new("unsigned int *"), ffi.new("unsigned int *")]
    return lib.cuPointerGetAttributes(2, kinds, ffi.new("void *[]", values), address)
