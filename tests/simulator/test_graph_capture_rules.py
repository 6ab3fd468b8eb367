# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

"""What must not be done while a stream is captured, and what becomes of the capture then."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import ModuleType

import pytest
from sim_driver import (
    LEGACY,
    NON_BLOCKING,
    PER_THREAD,
    AccessDesc,
    Driver,
    Location,
    PoolProps,
    StreamCallback,
    byref,
    c_int,
    c_size_t,
    c_uint64,
    c_void_p,
    ctypes,
)
from sim_graphs import GLOBAL, RELAXED, THREAD_LOCAL, Graphs, ask
from sim_kernels import KERNELS

NONE, ACTIVE, INVALIDATED = range(3)


@pytest.fixture
def stream(cu: Driver) -> c_void_p:
    stream = cu.stream(NON_BLOCKING)
    yield stream
    cu.status("cuStreamEndCapture", stream, byref(c_void_p()))
    cu.cuStreamDestroy_v2(stream)


def in_thread(function: Callable[[], object]) -> object:
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def status(cu: Driver, stream: c_void_p) -> int:
    return int(ask(cu, c_int, "cuStreamIsCapturing", stream).value)


def finish(cu: Driver, stream: c_void_p) -> str:
    graph = c_void_p()
    result = cu.status("cuStreamEndCapture", stream, byref(graph))
    assert (graph.value is not None) == (result == "SUCCESS")
    if result == "SUCCESS":
        cu.cuGraphDestroy(graph)
    return result


def test_captures_begin_once_and_end_where_they_began(cu: Driver, stream: c_void_p) -> None:
    assert finish(cu, stream) == "ILLEGAL_STATE"
    assert cu.status("cuStreamBeginCapture_v2", stream, 3) == "INVALID_VALUE"
    cu.cuStreamBeginCapture_v2(stream, RELAXED)
    assert cu.status("cuStreamBeginCapture_v2", stream, RELAXED) == "ILLEGAL_STATE"
    assert cu.status("cuStreamEndCapture", stream, None) == "INVALID_VALUE"
    other, event = cu.stream(NON_BLOCKING), cu.event(2)
    cu.cuEventRecord(event, stream)
    cu.cuStreamWaitEvent(other, event, 0)
    assert finish(cu, other) == "STREAM_CAPTURE_UNMATCHED"
    assert finish(cu, stream) == "STREAM_CAPTURE_INVALIDATED"
    cu.cuStreamDestroy_v2(other)
    cu.cuEventDestroy_v2(event)


@pytest.mark.parametrize("mode", [GLOBAL, THREAD_LOCAL, RELAXED])
def test_another_thread_gets_the_graph_of_a_relaxed_capture_only(cu: Driver, stream: c_void_p, mode: int) -> None:
    cu.cuStreamBeginCapture_v2(stream, mode)
    ended = in_thread(lambda: finish(cu, stream))
    assert ended == ("SUCCESS" if mode == RELAXED else "STREAM_CAPTURE_WRONG_THREAD")
    assert status(cu, stream) == NONE
    assert finish(cu, stream) == "ILLEGAL_STATE"


def test_what_a_captured_stream_does_not_do(cu: Driver, graphs: Graphs, stream: c_void_p, sim: ModuleType) -> None:
    memory, managed = cu.alloc(64), cu.out(c_uint64, "cuMemAllocManaged", c_size_t(64), 1)
    executable = graphs.instantiate(graphs.graph())
    callback = StreamCallback(lambda *_: None)
    live = sim.live()["graphs"]
    for call in (
        ("cuStreamSynchronize", stream),
        ("cuStreamQuery", stream),
        ("cuStreamAddCallback", stream, callback, None, 0),
        ("cuGraphLaunch", executable, stream),
        ("cuGraphUpload", executable, stream),
        ("cuMemPrefetchAsync", managed, c_size_t(64), 0, stream),
        ("cuCtxSynchronize",),
        ("cuCtxSynchronize_v2", None),
    ):
        cu.cuStreamBeginCapture_v2(stream, RELAXED)
        assert cu.status(*call) == "STREAM_CAPTURE_UNSUPPORTED", call
        assert status(cu, stream) == INVALIDATED
        assert cu.status("cuMemsetD8Async", memory, 1, c_size_t(4), stream) == "STREAM_CAPTURE_INVALIDATED"
        assert cu.status("cuGraphLaunch", executable, stream) == "STREAM_CAPTURE_UNSUPPORTED"
        assert cu.status("cuStreamSynchronize", stream) == "STREAM_CAPTURE_UNSUPPORTED"
        assert finish(cu, stream) == "STREAM_CAPTURE_INVALIDATED"
        cu.cuMemsetD8Async(memory, 1, c_size_t(4), stream)
        cu.cuStreamSynchronize(stream)
    assert sim.live()["graphs"] == live
    for pointer in (memory, managed):
        cu.cuMemFree_v2(pointer)


@pytest.mark.parametrize("mode", [0, 1, RELAXED])
@pytest.mark.parametrize("name", ["cuStreamGetId", "cuStreamGetFlags", "cuStreamGetDevice"])
def test_asking_a_captured_stream_what_it_is_ends_the_capture(
    cu: Driver, stream: c_void_p, name: str, mode: int
) -> None:
    answer, other = ctypes.c_uint64(), cu.stream()
    cu.cuStreamBeginCapture_v2(stream, mode)
    assert cu.status(name, other, byref(answer)) == "SUCCESS"
    for harmless in ("cuStreamGetPriority", "cuStreamGetCtx"):
        assert cu.status(harmless, stream, byref(answer)) == "SUCCESS"
    assert status(cu, stream) == ACTIVE
    assert cu.status(name, stream, byref(answer)) == "STREAM_CAPTURE_UNSUPPORTED"
    assert status(cu, stream) == INVALIDATED
    assert finish(cu, stream) == "STREAM_CAPTURE_INVALIDATED"
    cu.cuStreamDestroy_v2(other)


def test_the_calling_threads_synchronous_copies_are_refused_while_its_stream_is_captured(cu: Driver) -> None:
    memory, host = cu.alloc(64), ctypes.create_string_buffer(64)
    cu.cuStreamBeginCapture_v2(PER_THREAD, RELAXED)
    assert cu.status("cuMemcpyHtoD_v2_ptds", memory, host, c_size_t(64)) == "STREAM_CAPTURE_UNSUPPORTED"
    assert finish(cu, PER_THREAD) == "STREAM_CAPTURE_INVALIDATED"
    cu.cuMemFree_v2(memory)


def test_the_legacy_stream_is_out_of_bounds_while_a_blocking_stream_is_captured(cu: Driver, stream: c_void_p) -> None:
    blocking, memory, host = cu.stream(), cu.alloc(64), ctypes.create_string_buffer(64)
    for call in (
        ("cuMemcpyHtoD_v2", memory, host, c_size_t(64)),
        ("cuMemsetD8Async", memory, 0, c_size_t(4), None),
        ("cuStreamSynchronize", LEGACY),
        ("cuStreamQuery", None),
    ):
        cu.cuStreamBeginCapture_v2(blocking, RELAXED)
        assert cu.status("cuStreamIsCapturing", LEGACY, byref(c_int())) == "STREAM_CAPTURE_IMPLICIT"
        assert cu.status("cuStreamGetCaptureInfo", LEGACY, byref(c_int()), None) == "STREAM_CAPTURE_IMPLICIT"
        assert status(cu, blocking) == ACTIVE
        assert cu.status(*call) == "STREAM_CAPTURE_IMPLICIT", call
        assert finish(cu, blocking) == "STREAM_CAPTURE_INVALIDATED"
        cu.cuStreamBeginCapture_v2(stream, RELAXED)
        assert cu.status(*call) == "SUCCESS", call
        assert finish(cu, stream) == "SUCCESS"
    cu.cuMemFree_v2(memory)
    cu.cuStreamDestroy_v2(blocking)


STACK_SIZE = 0  # a limit of contexts
RELEASE_THRESHOLD = 4  # an attribute of pools


class World:
    """What there is beside a captured stream."""

    def __init__(self, cu: Driver, graphs: Graphs) -> None:
        self.cu, self.graph, self.pool = cu, graphs.graph(), cu.pool()
        self.memory, self.event, self.other = cu.alloc(64), cu.event(2), cu.stream(NON_BLOCKING)
        cu.cuEventRecord(self.event, self.other)
        self.limit = cu.out(c_size_t, "cuCtxGetLimit", STACK_SIZE)
        self.executable = cu.out(c_void_p, "cuGraphInstantiateWithFlags", self.graph, c_uint64(0))
        self.module = cu.out(c_void_p, "cuModuleLoadData", KERNELS)

    def close(self) -> None:
        self.cu.cuGraphExecDestroy(self.executable)
        self.cu.cuModuleUnload(self.module)
        self.cu.cuMemFree_v2(self.memory)
        self.cu.cuEventDestroy_v2(self.event)
        self.cu.cuStreamDestroy_v2(self.other)
        self.cu.cuMemPoolDestroy(self.pool)


UNSAFE: dict[str, Callable[[World], tuple[object, ...]]] = {
    "allocating": lambda w: ("cuMemAlloc_v2", byref(c_uint64()), c_size_t(64)),
    "allocating of the host": lambda w: ("cuMemAllocHost_v2", byref(c_void_p()), c_size_t(64)),
    "allocating managed": lambda w: ("cuMemAllocManaged", byref(c_uint64()), c_size_t(64), 1),
    "allocating in the order of another stream": lambda w: (
        "cuMemAllocAsync",
        byref(c_uint64()),
        c_size_t(64),
        w.other,
    ),
    "freeing": lambda w: ("cuMemFree_v2", w.memory),
    "asking an event": lambda w: ("cuEventQuery", w.event),
    "asking another stream": lambda w: ("cuStreamQuery", w.other),
    "waiting for another stream": lambda w: ("cuStreamSynchronize", w.other),
    "waiting for the legacy stream": lambda w: ("cuStreamSynchronize", None),
    "instantiating": lambda w: ("cuGraphInstantiateWithFlags", byref(c_void_p()), w.graph, c_uint64(0)),
    "making a pool": lambda w: (
        "cuMemPoolCreate",
        byref(c_void_p()),
        byref(PoolProps(alloc_type=1, location=Location(1, 0))),
    ),
    "destroying a pool": lambda w: ("cuMemPoolDestroy", w.pool),
    "setting an attribute of a pool": lambda w: ("cuMemPoolSetAttribute", w.pool, RELEASE_THRESHOLD, byref(c_uint64())),
    "giving access to a pool": lambda w: (
        "cuMemPoolSetAccess",
        w.pool,
        byref(AccessDesc(Location(1, 0), 3)),
        c_size_t(1),
    ),
    "freeing in the order of another stream": lambda w: ("cuMemFreeAsync", w.memory, w.other),
    "allocating nothing in the order of another stream": lambda w: (
        "cuMemAllocAsync",
        byref(c_uint64()),
        c_size_t(0),
        w.other,
    ),
    "unloading code": lambda w: ("cuModuleUnload", w.module),
    "destroying an executable": lambda w: ("cuGraphExecDestroy", w.executable),
    "trimming a pool": lambda w: ("cuMemPoolTrimTo", w.pool, c_size_t(0)),
    "setting a limit": lambda w: ("cuCtxSetLimit", STACK_SIZE, w.limit),
}


@pytest.fixture
def world(cu: Driver, graphs: Graphs) -> World:
    world = World(cu, graphs)
    yield world
    world.close()


@pytest.mark.parametrize("mode", [GLOBAL, THREAD_LOCAL])
@pytest.mark.parametrize("what", UNSAFE)
def test_calls_that_may_be_unsafe_end_a_capture(
    cu: Driver, world: World, stream: c_void_p, what: str, mode: int
) -> None:
    cu.cuStreamBeginCapture_v2(stream, mode)
    assert cu.status(*UNSAFE[what](world)) == "STREAM_CAPTURE_UNSUPPORTED"
    assert finish(cu, stream) == "STREAM_CAPTURE_INVALIDATED"


@pytest.mark.parametrize("what", ["asking another stream", "waiting for the legacy stream", "setting a limit"])
def test_relaxed_captures_leave_it_to_the_program_what_is_safe(
    cu: Driver, world: World, stream: c_void_p, what: str
) -> None:
    cu.cuStreamBeginCapture_v2(stream, RELAXED)
    assert cu.status(*UNSAFE[what](world)) == "SUCCESS"
    assert finish(cu, stream) == "SUCCESS"


def test_an_invalid_capture_forbids_until_it_is_ended(cu: Driver, world: World, stream: c_void_p) -> None:
    cu.cuStreamBeginCapture_v2(stream, GLOBAL)
    for _ in range(2):
        assert cu.status("cuMemFree_v2", world.memory) == "STREAM_CAPTURE_UNSUPPORTED"
    assert finish(cu, stream) == "STREAM_CAPTURE_INVALIDATED"


def test_code_is_loaded_during_a_capture(cu: Driver, stream: c_void_p) -> None:
    cu.cuStreamBeginCapture_v2(stream, GLOBAL)
    module: c_void_p = cu.out(c_void_p, "cuModuleLoadData", KERNELS)
    library: c_void_p = cu.out(c_void_p, "cuLibraryLoadData", KERNELS, None, None, 0, None, None, 0)
    assert finish(cu, stream) == "SUCCESS"
    cu.cuModuleUnload(module)
    cu.cuLibraryUnload(library)


def exchange(cu: Driver, mode: int) -> int:
    value = c_int(mode)
    cu.cuThreadExchangeStreamCaptureMode(byref(value))
    return value.value


@pytest.mark.parametrize(
    ("capture", "same_thread", "other_thread"),
    [(GLOBAL, [0, 0, 1], [0, 1, 1]), (THREAD_LOCAL, [0, 0, 1], [1, 1, 1]), (RELAXED, [1, 1, 1], [1, 1, 1])],
)
def test_modes_say_whose_calls_are_refused(
    cu: Driver, stream: c_void_p, capture: int, same_thread: list[int], other_thread: list[int]
) -> None:
    context: c_void_p = cu.out(c_void_p, "cuCtxGetCurrent")

    def allowed(mode: int) -> int:
        cu.cuCtxSetCurrent(context)
        before, memory = exchange(cu, mode), c_uint64()
        result = cu.status("cuMemAlloc_v2", byref(memory), c_size_t(64))
        exchange(cu, before)
        if result == "SUCCESS":
            cu.library.cuThreadExchangeStreamCaptureMode(byref(c_int(RELAXED)))
            cu.cuMemFree_v2(memory)
            cu.library.cuThreadExchangeStreamCaptureMode(byref(c_int(before)))
        return int(result == "SUCCESS")

    for mode in (GLOBAL, THREAD_LOCAL, RELAXED):
        for expected, call in (
            (same_thread[mode], lambda mode=mode: allowed(mode)),
            (other_thread[mode], lambda mode=mode: in_thread(lambda: allowed(mode))),
        ):
            cu.cuStreamBeginCapture_v2(stream, capture)
            assert call() == expected, mode
            assert finish(cu, stream) == ("SUCCESS" if expected else "STREAM_CAPTURE_INVALIDATED")


def test_a_thread_starts_with_the_strictest_mode(cu: Driver) -> None:
    assert exchange(cu, RELAXED) == GLOBAL
    assert exchange(cu, GLOBAL) == RELAXED
    assert in_thread(lambda: exchange(cu, THREAD_LOCAL)) == GLOBAL
    assert cu.status("cuThreadExchangeStreamCaptureMode", byref(c_int(3))) == "INVALID_VALUE"
    assert cu.status("cuThreadExchangeStreamCaptureMode", None) == "INVALID_VALUE"


def test_a_stream_that_is_destroyed_takes_its_capture_along(cu: Driver, sim: ModuleType) -> None:
    before = sim.live()["graphs"]
    stream, other, event = cu.stream(NON_BLOCKING), cu.stream(NON_BLOCKING), cu.event(2)
    cu.cuStreamBeginCapture_v2(stream, GLOBAL)
    cu.cuEventRecord(event, stream)
    cu.cuStreamWaitEvent(other, event, 0)
    cu.cuStreamDestroy_v2(stream)
    assert status(cu, other) == NONE
    assert sim.live()["graphs"] == before
    cu.cuMemFree_v2(cu.alloc(64))
    cu.cuStreamDestroy_v2(other)
    cu.cuEventDestroy_v2(event)


def test_streams_outside_go_on(cu: Driver, stream: c_void_p) -> None:
    other, ran, memory = cu.stream(NON_BLOCKING), threading.Event(), cu.alloc(64)
    cu.cuStreamBeginCapture_v2(stream, GLOBAL)
    cu.cuMemsetD8Async(memory, 0, c_size_t(64), other)
    cu.launch(other, ran.set)
    assert ran.wait(10)
    assert finish(cu, stream) == "SUCCESS"
    cu.cuMemFree_v2(memory)
    cu.cuStreamDestroy_v2(other)


def test_captures_in_many_threads_do_not_meet(cu: Driver, graphs: Graphs) -> None:
    failures: list[object] = []

    def work(number: int) -> None:
        cu.cuCtxSetCurrent(graphs.context)
        stream, ran = cu.stream(NON_BLOCKING), []
        for _ in range(20):
            cu.cuStreamBeginCapture_v2(stream, THREAD_LOCAL)
            for _ in range(5):
                cu.launch(stream, lambda: ran.append(number))
            graph, executable = c_void_p(), c_void_p()
            cu.cuStreamEndCapture(stream, byref(graph))
            cu.cuGraphInstantiateWithFlags(byref(executable), graph, c_uint64(0))
            cu.cuGraphLaunch(executable, stream)
            cu.cuGraphExecDestroy(executable)
            cu.cuGraphDestroy(graph)
        cu.cuStreamSynchronize(stream)
        cu.cuStreamDestroy_v2(stream)
        if ran != [number] * 100:
            failures.append(ran)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
