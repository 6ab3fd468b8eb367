# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Contexts, devices, events, streams and captures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from contexts.world import SIZE, World, case, copy_3d, must, number, out, out_last, simple, with_place
from cuda_core_cffi._core.ffi import ffi, lib

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


def capture_info(stream: Any) -> int:
    status = ffi.new("CUstreamCaptureStatus *")
    rest = (ffi.new("cuuint64_t *"), ffi.NULL, ffi.NULL, ffi.NULL, ffi.NULL)
    return lib.cuStreamGetCaptureInfo(stream, status, *rest)


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
