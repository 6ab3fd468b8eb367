# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Print what the driver answers in a thread that has no current context.

    CUDA_CORE_CFFI_DRIVER=system python tests/context_probe.py > gpu.txt
    CUDA_CORE_CFFI_DRIVER=simulator python tests/context_probe.py > simulator.txt

Each case makes its objects in a thread whose context is current, and then makes one driver call in a new thread: once
without a current context, once with the context of the objects, and once with another context of the same device. A
line has the name of the case and the first answer, and each of the others if it differs from the one before:
``name WITHOUT [with: WITH] [other: OTHER]``. The cases named ``fact`` print a value after the status.

The cases run in a child process. A case that ends the process is reported as ``CRASHED``, one that does not return in
some seconds as ``TIMEOUT``, and what comes after it runs in a new child.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from cuda_core_cffi import driver
from cuda_core_cffi._ffi import ffi, lib

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
PLAIN_COPY, PLAIN_FILL = 0, 0

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
        self.another = None

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


# contexts and devices

simple("cuCtxGetCurrent", lambda w: lib.cuCtxGetCurrent(ffi.new("CUcontext *")))
simple("cuCtxGetDevice", lambda w: lib.cuCtxGetDevice(ffi.new("CUdevice *")))
simple("cuCtxSynchronize", lambda w: lib.cuCtxSynchronize())
simple("cuCtxGetFlags", lambda w: lib.cuCtxGetFlags(ffi.new("unsigned int *")))
simple("cuCtxGetLimit", lambda w: lib.cuCtxGetLimit(ffi.new("size_t *"), lib.CU_LIMIT_STACK_SIZE))
simple("cuCtxGetApiVersion", lambda w: lib.cuCtxGetApiVersion(w.context, ffi.new("unsigned int *")))
simple("cuCtxGetApiVersion.0", lambda w: lib.cuCtxGetApiVersion(ffi.NULL, ffi.new("unsigned int *")))
simple("cuCtxGetStreamPriorityRange", lambda w: lib.cuCtxGetStreamPriorityRange(ffi.new("int *"), ffi.new("int *")))
simple("cuCtxPopCurrent", lambda w: lib.cuCtxPopCurrent(ffi.new("CUcontext *")))
simple("cuMemGetInfo", lambda w: lib.cuMemGetInfo(ffi.new("size_t *"), ffi.new("size_t *")))
simple(
    "cuDevicePrimaryCtxGetState",
    lambda w: lib.cuDevicePrimaryCtxGetState(w.device, ffi.new("unsigned int *"), ffi.new("int *")),
)
simple("cuDeviceCanAccessPeer", lambda w: lib.cuDeviceCanAccessPeer(ffi.new("int *"), w.device, w.device))
simple("cuDeviceGetDefaultMemPool", lambda w: lib.cuDeviceGetDefaultMemPool(ffi.new("CUmemoryPool *"), w.device))
simple("cuDeviceGetMemPool", lambda w: lib.cuDeviceGetMemPool(ffi.new("CUmemoryPool *"), w.device))
simple("cuDeviceSetMemPool", lambda w: lib.cuDeviceSetMemPool(w.device, w.default_pool))
simple("cuDeviceGraphMemTrim", lambda w: lib.cuDeviceGraphMemTrim(w.device))
simple(
    "cuDeviceGetGraphMemAttribute",
    lambda w: lib.cuDeviceGetGraphMemAttribute(
        w.device, lib.CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, ffi.new("cuuint64_t *")
    ),
)
simple(
    "cuThreadExchangeStreamCaptureMode",
    lambda w: lib.cuThreadExchangeStreamCaptureMode(
        ffi.new("CUstreamCaptureMode *", lib.CU_STREAM_CAPTURE_MODE_RELAXED)
    ),
)

# events

with_place("cuEventCreate", "CUevent *", lambda w, p: lib.cuEventCreate(p, 0), lambda w, e: lib.cuEventDestroy(e))
simple("cuEventQuery", lambda w: lib.cuEventQuery(w.recorded))
simple("cuEventQuery.unrecorded", lambda w: lib.cuEventQuery(w.event))
simple("cuEventSynchronize", lambda w: lib.cuEventSynchronize(w.recorded))
simple("cuEventElapsedTime", lambda w: lib.cuEventElapsedTime(ffi.new("float *"), w.recorded, w.later))
for _name in ("stream", "0", "legacy", "per_thread"):
    simple(f"cuEventRecord.{_name}", lambda w, n=_name: lib.cuEventRecord(w.recorded, w.streams()[n]))


@case("cuEventDestroy")
def event_destroy(w: World) -> Iterator[Any]:
    event = w.new_event()
    if (yield lambda: lib.cuEventDestroy(event)):
        lib.cuEventDestroy(event)


INTERPROCESS = lib.CU_EVENT_INTERPROCESS | lib.CU_EVENT_DISABLE_TIMING


@case("cuIpcGetEventHandle")
def ipc_get_event(w: World) -> Iterator[Any]:
    event = w.new_event(INTERPROCESS)
    handle = ffi.new("CUipcEventHandle *")
    yield lambda: lib.cuIpcGetEventHandle(handle, event)
    lib.cuEventDestroy(event)


# streams

STREAM_CALLS: dict[str, Callable[[World, Any], int]] = {
    "cuStreamQuery": lambda w, s: lib.cuStreamQuery(s),
    "cuStreamSynchronize": lambda w, s: lib.cuStreamSynchronize(s),
    "cuStreamWaitEvent": lambda w, s: lib.cuStreamWaitEvent(s, w.recorded, 0),
    "cuStreamGetCtx": lambda w, s: lib.cuStreamGetCtx(s, ffi.new("CUcontext *")),
    "cuStreamGetId": lambda w, s: lib.cuStreamGetId(s, ffi.new("unsigned long long *")),
    "cuStreamGetFlags": lambda w, s: lib.cuStreamGetFlags(s, ffi.new("unsigned int *")),
    "cuStreamGetPriority": lambda w, s: lib.cuStreamGetPriority(s, ffi.new("int *")),
    "cuStreamGetDevice": lambda w, s: lib.cuStreamGetDevice(s, ffi.new("CUdevice *")),
    "cuStreamIsCapturing": lambda w, s: lib.cuStreamIsCapturing(s, ffi.new("CUstreamCaptureStatus *")),
    "cuStreamGetCaptureInfo": lambda w, s: capture_info(s),
    "cuLaunchHostFunc": lambda w, s: lib.cuLaunchHostFunc(s, w.host, ffi.NULL),
    "cuMemcpyAsync.device": lambda w, s: lib.cuMemcpyAsync(w.memory, w.other, SIZE, s),
    "cuMemcpyAsync.pooled": lambda w, s: lib.cuMemcpyAsync(w.pooled, w.other, SIZE, s),
    "cuMemcpyAsync.pinned": lambda w, s: lib.cuMemcpyAsync(w.memory, number(w.pinned), SIZE, s),
    "cuMemcpyAsync.plain": lambda w, s: lib.cuMemcpyAsync(w.memory, w.plain_address, SIZE, s),
    "cuMemcpyPeerAsync": lambda w, s: lib.cuMemcpyPeerAsync(w.memory, w.context, w.other, w.context, SIZE, s),
    "cuMemcpy3DAsync": lambda w, s: lib.cuMemcpy3DAsync(copy_3d(w), s),
    "cuMemcpyBatchAsync": lambda w, s: copy_batch(w, s),
    "cuMemcpyWithAttributesAsync": lambda w, s: lib.cuMemcpyWithAttributesAsync(
        w.memory, w.other, SIZE, copy_attributes(), s
    ),
    "cuMemPrefetchBatchAsync": lambda w, s: lib.cuMemPrefetchBatchAsync(*one_range(w), *one_place(w), 1, 0, s),
    "cuMemDiscardBatchAsync": lambda w, s: lib.cuMemDiscardBatchAsync(*one_range(w), 0, s),
    "cuMemDiscardAndPrefetchBatchAsync": lambda w, s: lib.cuMemDiscardAndPrefetchBatchAsync(
        *one_range(w), *one_place(w), 1, 0, s
    ),
    "cuMemsetD8Async": lambda w, s: lib.cuMemsetD8Async(w.memory, 1, SIZE, s),
    "cuMemsetD16Async": lambda w, s: lib.cuMemsetD16Async(w.memory, 1, SIZE // 2, s),
    "cuMemsetD32Async": lambda w, s: lib.cuMemsetD32Async(w.memory, 1, SIZE // 4, s),
    "cuMemsetD8Async.pinned": lambda w, s: lib.cuMemsetD8Async(number(w.pinned), 1, SIZE, s),
    "cuMemsetD8Async.managed": lambda w, s: lib.cuMemsetD8Async(w.managed, 1, SIZE, s),
    "cuMemPrefetchAsync": lambda w, s: lib.cuMemPrefetchAsync(w.managed, SIZE, w.location()[0], 0, s),
    "cuLaunchKernel.kernel": lambda w, s: launch(ffi.cast("CUfunction", w.kernel), s),
    "cuLaunchKernel.function": lambda w, s: launch(w.function, s),
    "cuLaunchKernelEx.kernel": lambda w, s: launch_ex(w, ffi.cast("CUfunction", w.kernel), s),
    "cuLaunchKernelEx.function": lambda w, s: launch_ex(w, w.function, s),
}
ALLOCATIONS: dict[str, Callable[[World, Any, Any], int]] = {
    "cuMemAllocAsync": lambda w, p, s: lib.cuMemAllocAsync(p, SIZE, s),
    "cuMemAllocFromPoolAsync": lambda w, p, s: lib.cuMemAllocFromPoolAsync(p, SIZE, w.pool, s),
}


def number(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))


def capture_info(stream: Any) -> int:
    status = ffi.new("CUstreamCaptureStatus *")
    rest = (ffi.new("cuuint64_t *"), ffi.NULL, ffi.NULL, ffi.NULL, ffi.NULL)
    return lib.cuStreamGetCaptureInfo(stream, status, *rest)


def copy_3d(w: World) -> Any:
    copy = ffi.new("CUDA_MEMCPY3D *")
    copy.srcMemoryType = copy.dstMemoryType = lib.CU_MEMORYTYPE_DEVICE
    copy.srcDevice, copy.dstDevice = w.other, w.memory
    copy.WidthInBytes = copy.srcPitch = copy.dstPitch = SIZE
    copy.Height = copy.Depth = copy.srcHeight = copy.dstHeight = 1
    return copy


def copy_attributes() -> Any:
    attributes = ffi.new("CUmemcpyAttributes *")
    attributes.srcAccessOrder = lib.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
    return attributes


def one_range(w: World) -> tuple[Any, Any, int]:
    return ffi.new("CUdeviceptr *", w.managed), ffi.new("size_t *", SIZE), 1


def one_place(w: World) -> tuple[Any, Any]:
    return w.location(), ffi.new("size_t *", 0)


def copy_batch(w: World, stream: Any) -> int:
    attributes = copy_attributes()
    to, source = ffi.new("CUdeviceptr *", w.memory), ffi.new("CUdeviceptr *", w.other)
    sizes, first = ffi.new("size_t *", SIZE), ffi.new("size_t *", 0)
    return lib.cuMemcpyBatchAsync(to, source, sizes, 1, attributes, first, 1, stream)


def launch(function: Any, stream: Any) -> int:
    return lib.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, ffi.NULL, ffi.NULL)


def launch_ex(w: World, function: Any, stream: Any) -> int:
    return lib.cuLaunchKernelEx(w.launch_config(stream), function, ffi.NULL, ffi.NULL)


def add_stream_cases(call: str, stream: str) -> None:
    simple(f"{call}.{stream}", lambda w: STREAM_CALLS[call](w, w.streams()[stream]))


def add_allocation_cases(call: str, stream: str) -> None:
    @case(f"{call}.{stream}")
    def allocate(w: World) -> Iterator[Any]:
        place = ffi.new("CUdeviceptr *")
        if (yield lambda: ALLOCATIONS[call](w, place, w.streams()[stream])) == 0:
            must(lib.cuCtxSynchronize())
            must(lib.cuMemFree(place[0]))


def add_free_cases(stream: str) -> None:
    @case(f"cuMemFreeAsync.{stream}")
    def free(w: World) -> Iterator[Any]:
        pointer = out("CUdeviceptr *", lib.cuMemAllocAsync, SIZE, w.stream)
        must(lib.cuStreamSynchronize(w.stream))
        if (yield lambda: lib.cuMemFreeAsync(pointer, w.streams()[stream])):
            must(lib.cuMemFreeAsync(pointer, w.stream))


for _stream in ("stream", "0", "legacy", "per_thread"):
    for _call in STREAM_CALLS:
        add_stream_cases(_call, _stream)
    for _call in ALLOCATIONS:
        add_allocation_cases(_call, _stream)
    add_free_cases(_stream)

with_place("cuStreamCreate", "CUstream *", lambda w, p: lib.cuStreamCreate(p, 0), lambda w, s: lib.cuStreamDestroy(s))
with_place(
    "cuStreamCreateWithPriority",
    "CUstream *",
    lambda w, p: lib.cuStreamCreateWithPriority(p, lib.CU_STREAM_NON_BLOCKING, 0),
    lambda w, s: lib.cuStreamDestroy(s),
)


@case("cuStreamDestroy")
def stream_destroy(w: World) -> Iterator[Any]:
    stream = out("CUstream *", lib.cuStreamCreate, 0)
    if (yield lambda: lib.cuStreamDestroy(stream)):
        lib.cuStreamDestroy(stream)


# captures


@case("cuStreamBeginCapture")
def begin_capture(w: World) -> Iterator[Any]:
    stream = out("CUstream *", lib.cuStreamCreate, lib.CU_STREAM_NON_BLOCKING)
    if (yield lambda: lib.cuStreamBeginCapture(stream, lib.CU_STREAM_CAPTURE_MODE_RELAXED)) == 0:
        lib.cuGraphDestroy(out_last("CUgraph *", lib.cuStreamEndCapture, stream))
    lib.cuStreamDestroy(stream)


@case("cuStreamBeginCaptureToGraph")
def begin_capture_to_graph(w: World) -> Iterator[Any]:
    stream = out("CUstream *", lib.cuStreamCreate, lib.CU_STREAM_NON_BLOCKING)
    graph = out("CUgraph *", lib.cuGraphCreate, 0)
    null = ffi.NULL
    mode = lib.CU_STREAM_CAPTURE_MODE_RELAXED
    if (yield lambda: lib.cuStreamBeginCaptureToGraph(stream, graph, null, null, 0, mode)) == 0:
        out_last("CUgraph *", lib.cuStreamEndCapture, stream)
    lib.cuGraphDestroy(graph)
    lib.cuStreamDestroy(stream)


def out_last(kind: str, function: Callable[..., int], *arguments: Any) -> Any:
    place = ffi.new(kind)
    must(function(*arguments, place))
    return place[0]


@case("cuStreamEndCapture")
def end_capture(w: World) -> Iterator[Any]:
    stream = w.captured()
    place = ffi.new("CUgraph *")
    if (yield lambda: lib.cuStreamEndCapture(stream, place)):
        must(lib.cuStreamEndCapture(stream, place))
    lib.cuGraphDestroy(place[0])
    lib.cuStreamDestroy(stream)


CAPTURED = [
    "cuStreamWaitEvent",
    "cuStreamIsCapturing",
    "cuStreamGetCaptureInfo",
    "cuLaunchHostFunc",
    "cuMemcpyAsync.device",
    "cuMemcpyPeerAsync",
    "cuMemcpy3DAsync",
    "cuMemsetD8Async",
    "cuLaunchKernel.kernel",
    "cuLaunchKernelEx.kernel",
    "cuLaunchKernelEx.function",
]


def add_captured_case(call: str) -> None:
    @case(f"{call}.captured")
    def run(w: World) -> Iterator[Any]:
        stream = w.captured()
        if call == "cuStreamWaitEvent":
            must(lib.cuEventRecord(w.event, stream))
            status = yield lambda: lib.cuStreamWaitEvent(stream, w.event, 0)
        else:
            status = yield lambda: STREAM_CALLS[call](w, stream)
        place = ffi.new("CUgraph *")
        lib.cuStreamEndCapture(stream, place)
        if place[0]:
            lib.cuGraphDestroy(place[0])
        lib.cuStreamDestroy(stream)
        w.event = w.new_event() if call == "cuStreamWaitEvent" else w.event
        del status


for _call in CAPTURED:
    add_captured_case(_call)


@case("cuEventRecord.captured")
def record_captured(w: World) -> Iterator[Any]:
    stream, event = w.captured(), w.new_event()
    yield lambda: lib.cuEventRecord(event, stream)
    lib.cuGraphDestroy(out_last("CUgraph *", lib.cuStreamEndCapture, stream))
    lib.cuStreamDestroy(stream)
    lib.cuEventDestroy(event)


@case("cuMemAllocFromPoolAsync.captured")
def allocate_captured(w: World) -> Iterator[Any]:
    stream, place = w.captured(), ffi.new("CUdeviceptr *")
    yield lambda: lib.cuMemAllocFromPoolAsync(place, SIZE, w.pool, stream)
    made = ffi.new("CUgraph *")
    lib.cuStreamEndCapture(stream, made)
    if made[0]:
        lib.cuGraphDestroy(made[0])
    lib.cuStreamDestroy(stream)


@case("cuStreamUpdateCaptureDependencies")
def update_dependencies(w: World) -> Iterator[Any]:
    stream, null = w.captured(), ffi.NULL
    flags = lib.CU_STREAM_SET_CAPTURE_DEPENDENCIES
    yield lambda: lib.cuStreamUpdateCaptureDependencies(stream, null, null, 0, flags)
    lib.cuGraphDestroy(out_last("CUgraph *", lib.cuStreamEndCapture, stream))
    lib.cuStreamDestroy(stream)


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


def pointer_attributes(w: World, address: int) -> int:
    kinds = ffi.new(
        "CUpointer_attribute[]", [lib.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, lib.CU_POINTER_ATTRIBUTE_IS_MANAGED]
    )
    values = [ffi.new("unsigned int *"), ffi.new("unsigned int *")]
    return lib.cuPointerGetAttributes(2, kinds, ffi.new("void *[]", values), address)


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


def pool_access(w: World) -> Any:
    access = ffi.new("CUmemAccessDesc *")
    access.location = w.location()[0]
    access.flags = lib.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    return access


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
        command = [sys.executable, __file__, "--export", str(theirs.fileno())]
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


# code


@case("cuLibraryLoadData")
def library_load(w: World) -> Iterator[Any]:
    place, image, null = ffi.new("CUlibrary *"), ffi.new("char[]", KERNEL), ffi.NULL
    if (yield lambda: lib.cuLibraryLoadData(place, image, null, null, 0, null, null, 0)) == 0:
        must(lib.cuLibraryUnload(place[0]))


@case("cuLibraryUnload")
def library_unload(w: World) -> Iterator[Any]:
    library = w.new_library()
    out("CUmodule *", lib.cuLibraryGetModule, library)
    if (yield lambda: lib.cuLibraryUnload(library)):
        must(lib.cuLibraryUnload(library))


simple("cuLibraryGetKernel", lambda w: lib.cuLibraryGetKernel(ffi.new("CUkernel *"), w.library, b"nothing"))
simple("cuLibraryGetKernel.missing", lambda w: lib.cuLibraryGetKernel(ffi.new("CUkernel *"), w.library, b"missing"))
simple("cuLibraryGetKernelCount", lambda w: lib.cuLibraryGetKernelCount(ffi.new("unsigned int *"), w.library))
simple("cuLibraryEnumerateKernels", lambda w: lib.cuLibraryEnumerateKernels(ffi.new("CUkernel *"), 1, w.library))
simple("cuLibraryGetModule", lambda w: lib.cuLibraryGetModule(ffi.new("CUmodule *"), w.library))
simple(
    "cuLibraryGetGlobal",
    lambda w: lib.cuLibraryGetGlobal(ffi.new("CUdeviceptr *"), ffi.new("size_t *"), w.library, b"counter"),
)
simple(
    "cuLibraryGetManaged.missing",
    lambda w: lib.cuLibraryGetManaged(ffi.new("CUdeviceptr *"), ffi.new("size_t *"), w.library, b"counter"),
)
simple("cuKernelGetFunction", lambda w: lib.cuKernelGetFunction(ffi.new("CUfunction *"), w.kernel))
simple("cuKernelGetLibrary", lambda w: lib.cuKernelGetLibrary(ffi.new("CUlibrary *"), w.kernel))
simple("cuKernelGetName", lambda w: lib.cuKernelGetName(ffi.new("char **"), w.kernel))
simple(
    "cuKernelGetParamInfo.missing",
    lambda w: lib.cuKernelGetParamInfo(w.kernel, 0, ffi.new("size_t *"), ffi.new("size_t *")),
)
simple(
    "cuKernelGetAttribute",
    lambda w: lib.cuKernelGetAttribute(
        ffi.new("int *"), lib.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, w.kernel, w.device
    ),
)
simple(
    "cuKernelSetAttribute",
    lambda w: lib.cuKernelSetAttribute(lib.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024, w.kernel, w.device),
)
simple("cuKernelSetCacheConfig", lambda w: lib.cuKernelSetCacheConfig(w.kernel, lib.CU_FUNC_CACHE_PREFER_L1, w.device))
simple("cuModuleGetFunction", lambda w: lib.cuModuleGetFunction(ffi.new("CUfunction *"), w.module, b"nothing"))
with_place(
    "cuModuleLoadData",
    "CUmodule *",
    lambda w, p: lib.cuModuleLoadData(p, w.image),
    lambda w, m: lib.cuModuleUnload(m),
)
FUNCTIONS: dict[str, Callable[[World], Any]] = {
    "function": lambda w: w.function,
    "kernel": lambda w: ffi.cast("CUfunction", w.kernel),
}
FUNCTION_CALLS: dict[str, Callable[[World, Any], int]] = {
    "cuFuncGetAttribute": lambda w, f: lib.cuFuncGetAttribute(
        ffi.new("int *"), lib.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f
    ),
    "cuFuncSetAttribute": lambda w, f: lib.cuFuncSetAttribute(
        f, lib.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024
    ),
    "cuFuncGetName": lambda w, f: lib.cuFuncGetName(ffi.new("char **"), f),
    "cuFuncGetParamInfo.missing": lambda w, f: lib.cuFuncGetParamInfo(f, 0, ffi.new("size_t *"), ffi.new("size_t *")),
    "cuOccupancyAvailableDynamicSMemPerBlock": lambda w, f: lib.cuOccupancyAvailableDynamicSMemPerBlock(
        ffi.new("size_t *"), f, 1, 32
    ),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": lambda w, f: lib.cuOccupancyMaxActiveBlocksPerMultiprocessor(
        ffi.new("int *"), f, 32, 0
    ),
    "cuOccupancyMaxPotentialBlockSize": lambda w, f: lib.cuOccupancyMaxPotentialBlockSize(
        ffi.new("int *"), ffi.new("int *"), f, ffi.NULL, 0, 0
    ),
    "cuOccupancyMaxPotentialClusterSize": lambda w, f: lib.cuOccupancyMaxPotentialClusterSize(
        ffi.new("int *"), f, w.launch_config(w.stream)
    ),
    "cuOccupancyMaxActiveClusters": lambda w, f: max_active_clusters(w, f, w.stream),
    "cuOccupancyMaxActiveClusters.0": lambda w, f: max_active_clusters(w, f, ffi.NULL),
}


def max_active_clusters(w: World, function: Any, stream: Any) -> int:
    config = w.launch_config(stream)
    attribute = ffi.new("CUlaunchAttribute *")
    attribute.id = lib.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    attribute.value.clusterDim.x = attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1
    config.attrs, config.numAttrs = attribute, 1
    return lib.cuOccupancyMaxActiveClusters(ffi.new("int *"), function, config)


def add_function_case(call: str, kind: str) -> None:
    simple(f"{call}.{kind}", lambda w: FUNCTION_CALLS[call](w, FUNCTIONS[kind](w)))


for _call in FUNCTION_CALLS:
    for _kind in FUNCTIONS:
        add_function_case(_call, _kind)

with_place(
    "cuLinkCreate",
    "CUlinkState *",
    lambda w, p: lib.cuLinkCreate(0, ffi.NULL, ffi.NULL, p),
    lambda w, s: lib.cuLinkDestroy(s),
)


def link_add(w: World, state: Any) -> int:
    null = ffi.NULL
    return lib.cuLinkAddData(state, lib.CU_JIT_INPUT_PTX, w.image, len(KERNEL) + 1, null, 0, null, null)


@case("cuLinkAddData")
def link_add_data(w: World) -> Iterator[Any]:
    state = out_last("CUlinkState *", lib.cuLinkCreate, 0, ffi.NULL, ffi.NULL)
    yield lambda: link_add(w, state)
    lib.cuLinkDestroy(state)


@case("cuLinkComplete")
def link_complete(w: World) -> Iterator[Any]:
    state = out_last("CUlinkState *", lib.cuLinkCreate, 0, ffi.NULL, ffi.NULL)
    must(link_add(w, state))
    yield lambda: lib.cuLinkComplete(state, ffi.new("void **"), ffi.new("size_t *"))
    lib.cuLinkDestroy(state)


def add_link_destroy_case(name: str, complete: bool) -> None:
    @case(name)
    def link_destroy(w: World) -> Iterator[Any]:
        state = out_last("CUlinkState *", lib.cuLinkCreate, 0, ffi.NULL, ffi.NULL)
        if complete:
            must(link_add(w, state))
            must(lib.cuLinkComplete(state, ffi.new("void **"), ffi.new("size_t *")))
        if (yield lambda: lib.cuLinkDestroy(state)):
            lib.cuLinkDestroy(state)


add_link_destroy_case("cuLinkDestroy", False)
add_link_destroy_case("cuLinkDestroy.complete", True)


# graphs

with_place("cuGraphCreate", "CUgraph *", lambda w, p: lib.cuGraphCreate(p, 0), lambda w, g: lib.cuGraphDestroy(g))


@case("cuGraphDestroy")
def graph_destroy(w: World) -> Iterator[Any]:
    graph = out("CUgraph *", lib.cuGraphCreate, 0)
    if (yield lambda: lib.cuGraphDestroy(graph)):
        lib.cuGraphDestroy(graph)


@case("cuGraphClone")
def graph_clone(w: World) -> Iterator[Any]:
    graph, place = memset_graph(w), ffi.new("CUgraph *")
    if (yield lambda: lib.cuGraphClone(place, graph)) == 0:
        lib.cuGraphDestroy(place[0])
    lib.cuGraphDestroy(graph)


def node_parameters(w: World, kind: str) -> Any:
    """Return the parameters of a node; those of kernels, copies and fills name no context, or the one of the cases."""
    params = ffi.new("CUgraphNodeParams *")
    name, _, context = kind.partition(".")
    if name == "empty":
        params.type = lib.CU_GRAPH_NODE_TYPE_EMPTY
    elif name == "kernel":
        params.type = lib.CU_GRAPH_NODE_TYPE_KERNEL
        node = params.kernel
        node.kern = w.kernel
        node.gridDimX = node.gridDimY = node.gridDimZ = node.blockDimX = node.blockDimY = node.blockDimZ = 1
        node.ctx = w.context if context else ffi.NULL
    elif name == "function":
        params.type = lib.CU_GRAPH_NODE_TYPE_KERNEL
        node = params.kernel
        node.func = w.function
        node.gridDimX = node.gridDimY = node.gridDimZ = node.blockDimX = node.blockDimY = node.blockDimZ = 1
        node.ctx = w.context if context else ffi.NULL
    elif name == "memset":
        params.type = lib.CU_GRAPH_NODE_TYPE_MEMSET
        node = params.memset
        node.dst, node.value, node.elementSize, node.width, node.height = w.memory, 1, 1, SIZE, 1
        node.ctx = w.context if context else ffi.NULL
    elif name == "memcpy":
        params.type = lib.CU_GRAPH_NODE_TYPE_MEMCPY
        params.memcpy.copyParams = copy_3d(w)[0]
        params.memcpy.copyCtx = w.context if context else ffi.NULL
    elif name == "host":
        params.type = lib.CU_GRAPH_NODE_TYPE_HOST
        params.host.fn = w.host
    elif name == "graph":
        params.type = lib.CU_GRAPH_NODE_TYPE_GRAPH
        params.graph.graph = w.graph
    elif name == "record":
        params.type = lib.CU_GRAPH_NODE_TYPE_EVENT_RECORD
        params.eventRecord.event = w.recorded
    elif name == "wait":
        params.type = lib.CU_GRAPH_NODE_TYPE_WAIT_EVENT
        params.eventWait.event = w.recorded
    elif name == "alloc":
        params.type = lib.CU_GRAPH_NODE_TYPE_MEM_ALLOC
        params.alloc.poolProps = w.pool_options()[0]
        params.alloc.bytesize = SIZE
    return params


def add_node(w: World, graph: Any, params: Any) -> int:
    node = ffi.new("CUgraphNode *")
    return lib.cuGraphAddNode(node, graph, ffi.NULL, ffi.NULL, 0, params)


def memset_graph(w: World) -> Any:
    graph = out("CUgraph *", lib.cuGraphCreate, 0)
    must(add_node(w, graph, node_parameters(w, "memset.context")))
    return graph


NODES = [
    "empty",
    "kernel",
    "kernel.context",
    "function",
    "function.context",
    "memset",
    "memset.context",
    "memcpy",
    "memcpy.context",
    "host",
    "graph",
    "record",
    "wait",
    "alloc",
]


def add_node_case(kind: str) -> None:
    @case(f"cuGraphAddNode.{kind}")
    def run(w: World) -> Iterator[Any]:
        graph = out("CUgraph *", lib.cuGraphCreate, 0)
        params = node_parameters(w, kind)
        yield lambda: add_node(w, graph, params)
        lib.cuGraphDestroy(graph)


for _kind in NODES:
    add_node_case(_kind)


def add_run_case(kind: str) -> None:
    """Add a case for what becomes of a node that is given no context: the graph is launched in the main thread."""

    @case(f"fact.launch_of_added.{kind}")
    def run(w: World) -> Iterator[Any]:
        graph = out("CUgraph *", lib.cuGraphCreate, 0)
        params = node_parameters(w, kind)
        if (yield lambda: add_node(w, graph, params)) == 0:
            executable = out("CUgraphExec *", lib.cuGraphInstantiate, graph, 0)
            must(lib.cuGraphLaunch(executable, w.stream))
            must(lib.cuStreamSynchronize(w.stream))
            lib.cuGraphExecDestroy(executable)
        lib.cuGraphDestroy(graph)


for _kind in ("kernel", "memset", "memcpy"):
    add_run_case(_kind)


def add_set_case(kind: str, name: str) -> None:
    @case(f"{name}.{kind}")
    def run(w: World) -> Iterator[Any]:
        graph = out("CUgraph *", lib.cuGraphCreate, 0)
        params = node_parameters(w, kind.partition(".")[0] + ".context")
        node = out("CUgraphNode *", lib.cuGraphAddNode, graph, ffi.NULL, ffi.NULL, 0, params)
        changed = node_parameters(w, kind)
        if name == "cuGraphNodeSetParams":
            yield lambda: lib.cuGraphNodeSetParams(node, changed)
        else:
            executable = out("CUgraphExec *", lib.cuGraphInstantiate, graph, 0)
            yield lambda: lib.cuGraphExecNodeSetParams(executable, node, changed)
            lib.cuGraphExecDestroy(executable)
        lib.cuGraphDestroy(graph)


for _kind in (
    "kernel",
    "kernel.context",
    "function",
    "function.context",
    "memset",
    "memset.context",
    "memcpy",
    "memcpy.context",
):
    add_set_case(_kind, "cuGraphNodeSetParams")
    add_set_case(_kind, "cuGraphExecNodeSetParams")


@case("cuGraphNodeGetParams.memset")
def get_memset(w: World) -> Iterator[Any]:
    graph = memset_graph(w)
    nodes, count = ffi.new("CUgraphNode *"), ffi.new("size_t *", 1)
    must(lib.cuGraphGetNodes(graph, nodes, count))
    yield lambda: lib.cuGraphMemsetNodeGetParams(nodes[0], ffi.new("CUDA_MEMSET_NODE_PARAMS *"))
    lib.cuGraphDestroy(graph)


@case("cuGraphKernelNodeGetParams")
def get_kernel(w: World) -> Iterator[Any]:
    graph = out("CUgraph *", lib.cuGraphCreate, 0)
    params = node_parameters(w, "kernel.context")
    node = out("CUgraphNode *", lib.cuGraphAddNode, graph, ffi.NULL, ffi.NULL, 0, params)
    yield lambda: lib.cuGraphKernelNodeGetParams(node, ffi.new("CUDA_KERNEL_NODE_PARAMS *"))
    lib.cuGraphDestroy(graph)


@case("cuGraphKernelNodeSetAttribute")
def set_attribute(w: World) -> Iterator[Any]:
    graph = out("CUgraph *", lib.cuGraphCreate, 0)
    params = node_parameters(w, "kernel.context")
    node = out("CUgraphNode *", lib.cuGraphAddNode, graph, ffi.NULL, ffi.NULL, 0, params)
    value = ffi.new("CUlaunchAttributeValue *")
    yield lambda: lib.cuGraphKernelNodeSetAttribute(node, lib.CU_LAUNCH_ATTRIBUTE_PRIORITY, value)
    lib.cuGraphDestroy(graph)


for _name in ("context", "0"):
    simple(
        f"cuGraphConditionalHandleCreate.{_name}",
        lambda w, n=_name: lib.cuGraphConditionalHandleCreate(
            ffi.new("CUgraphConditionalHandle *"), w.graph, w.context if n == "context" else ffi.NULL, 0, 0
        ),
    )


@case("cuGraphAddNode.conditional")
def add_conditional(w: World) -> Iterator[Any]:
    graph = out("CUgraph *", lib.cuGraphCreate, 0)
    params = ffi.new("CUgraphNodeParams *")
    params.type = lib.CU_GRAPH_NODE_TYPE_CONDITIONAL
    params.conditional.handle = out(
        "CUgraphConditionalHandle *", lib.cuGraphConditionalHandleCreate, graph, w.context, 0, 0
    )
    params.conditional.type = lib.CU_GRAPH_COND_TYPE_IF
    params.conditional.size = 1
    params.conditional.ctx = w.context
    yield lambda: add_node(w, graph, params)
    lib.cuGraphDestroy(graph)


GRAPHS: dict[str, list[str]] = {
    "empty": [],
    "memset": ["memset.context"],
    "kernel": ["kernel.context"],
    "host": ["host"],
    "alloc": ["alloc"],
}


def add_instantiate_case(kind: str) -> None:
    @case(f"cuGraphInstantiate.{kind}")
    def run(w: World) -> Iterator[Any]:
        graph, place = out("CUgraph *", lib.cuGraphCreate, 0), ffi.new("CUgraphExec *")
        for node in GRAPHS[kind]:
            must(add_node(w, graph, node_parameters(w, node)))
        params = ffi.new("CUDA_GRAPH_INSTANTIATE_PARAMS *")
        if (yield lambda: lib.cuGraphInstantiateWithParams(place, graph, params)) == 0:
            lib.cuGraphExecDestroy(place[0])
        lib.cuGraphDestroy(graph)


for _kind in GRAPHS:
    add_instantiate_case(_kind)


def add_upload_case(name: str, flags: int) -> None:
    @case(name)
    def instantiate_upload(w: World) -> Iterator[Any]:
        graph, place = memset_graph(w), ffi.new("CUgraphExec *")
        params = ffi.new("CUDA_GRAPH_INSTANTIATE_PARAMS *")
        params.flags = flags
        params.hUploadStream = w.stream
        if (yield lambda: lib.cuGraphInstantiateWithParams(place, graph, params)) == 0:
            must(lib.cuStreamSynchronize(w.stream))
            lib.cuGraphExecDestroy(place[0])
        lib.cuGraphDestroy(graph)


add_upload_case("cuGraphInstantiate.upload", lib.CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
add_upload_case("cuGraphInstantiate.stream", 0)


def add_executable_case(call: str, stream: str) -> None:
    @case(f"{call}.{stream}")
    def run(w: World) -> Iterator[Any]:
        graph = memset_graph(w)
        executable = out("CUgraphExec *", lib.cuGraphInstantiate, graph, 0)
        yield lambda: getattr(lib, call)(executable, w.streams()[stream])
        must(lib.cuCtxSynchronize())
        lib.cuGraphExecDestroy(executable)
        lib.cuGraphDestroy(graph)


for _call in ("cuGraphLaunch", "cuGraphUpload"):
    for _stream in ("stream", "0", "legacy", "per_thread"):
        add_executable_case(_call, _stream)


@case("cuGraphExecUpdate")
def exec_update(w: World) -> Iterator[Any]:
    graph = memset_graph(w)
    executable = out("CUgraphExec *", lib.cuGraphInstantiate, graph, 0)
    yield lambda: lib.cuGraphExecUpdate(executable, graph, ffi.new("CUgraphExecUpdateResultInfo *"))
    lib.cuGraphExecDestroy(executable)
    lib.cuGraphDestroy(graph)


@case("cuGraphExecDestroy")
def exec_destroy(w: World) -> Iterator[Any]:
    graph = memset_graph(w)
    executable = out("CUgraphExec *", lib.cuGraphInstantiate, graph, 0)
    if (yield lambda: lib.cuGraphExecDestroy(executable)):
        lib.cuGraphExecDestroy(executable)
    lib.cuGraphDestroy(graph)


@case("cuUserObjectCreate")
def user_object(w: World) -> Iterator[Any]:
    place = ffi.new("CUuserObject *")
    null, flags = ffi.NULL, lib.CU_USER_OBJECT_NO_DESTRUCTOR_SYNC
    if (yield lambda: lib.cuUserObjectCreate(place, null, w.host, 1, flags)) == 0:
        lib.cuUserObjectRelease(place[0], 1)


simple("cuGraphDebugDotPrint", lambda w: lib.cuGraphDebugDotPrint(w.graph, b"/dev/null", 0))

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


# running the cases


STAGES = ("without", "with", "other")


def answer(w: World, run: Callable[[World], Iterator[Any]], stage: str) -> str:
    """Run a case once, with the context of a stage current in its thread."""
    found: list[Outcome] = []
    try:
        context = w.context_for(stage)
        steps = run(w)
        call = next(steps)
    except Exception as error:  # this driver lacks something
        return f"UNPREPARED({error})"

    def work() -> None:
        try:
            must(lib.cuCtxSetCurrent(context))
            found.append(call())
        except Exception as error:  # a function that this driver does not have, for example
            found.append(type(error).__name__)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(SECONDS)
    if not found:
        return "TIMEOUT"
    outcome = found[0]
    status, value = outcome if isinstance(outcome, tuple) else (outcome, None)
    text = status if isinstance(status, str) else name_of(status)
    try:
        steps.send(status)
    except StopIteration:
        pass
    except Exception as error:
        text += f"(afterwards: {error})"
    return text if value is None else f"{text} {value}"


def serve(names: list[str], stages: list[str]) -> None:
    """Be the child process: print the answers as soon as they are known; the first case begins with the first stage."""
    w = World()
    for name in names:
        for stage in stages:
            faulthandler.dump_traceback_later(4 * SECONDS, exit=True)  # for what is done before and after the call
            print(name, stage, end=" ", flush=True)
            text = answer(w, CASES[name], stage)
            print(text, flush=True)
            if text == "TIMEOUT":
                os._exit(0)  # a thread still waits in the driver
        stages = list(STAGES)
    sys.stdout.flush()
    os._exit(0)


def ask(names: list[str]) -> dict[str, dict[str, str]]:
    """Return what the cases answer, by name and stage."""
    answers: dict[str, dict[str, str]] = {name: {} for name in names}
    left = [(name, stage) for name in names for stage in STAGES]
    while left:
        name, stage = left[0]
        stages = STAGES[STAGES.index(stage) :]
        command = [sys.executable, __file__, "--serve", ",".join(stages), *names[names.index(name) :]]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            lines = process.stdout.read().splitlines()
        if not lines:
            sys.exit(f"the driver cannot be used: exit status {process.returncode}")
        for line in lines:
            name, stage, text = line.split(" ", 2)
            answers[name][stage] = text or f"CRASHED({process.returncode})"
        del left[: len(lines)]
    return answers


def line_of(name: str, answers: dict[str, str]) -> str:
    """Return the line for a case."""
    without, with_own, with_other = (answers[stage] for stage in STAGES)
    line = f"{name} {without}"
    if with_own != without:
        line += f" [with: {with_own}]"
    if with_other != with_own:
        line += f" [other: {with_other}]"
    return line


def main() -> None:
    """Run the cases that the arguments name, or all of them, in as many child processes as it takes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--export", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", help="cases; by default all of them")
    options = parser.parse_args()
    if options.export is not None:
        export(options.export)
    elif options.serve:
        serve(options.names, options.serve.split(","))
    else:
        for name, answers in ask(options.names or list(CASES)).items():
            print(line_of(name, answers))


if __name__ == "__main__":
    main()
