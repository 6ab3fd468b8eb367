# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import threading
from types import ModuleType

import pytest
from sim_driver import (
    LEGACY,
    NON_BLOCKING,
    PER_THREAD,
    Driver,
    StreamCallback,
    byref,
    c_int,
    c_size_t,
    c_uint,
    c_uint64,
    c_void_p,
    ctypes,
)


def pending(cu: Driver, stream: c_void_p | None) -> bool:
    return cu.status("cuStreamQuery", stream) == "NOT_READY"


def test_work_runs_off_the_calling_thread_and_in_order(cu: Driver) -> None:
    stream, order, threads = cu.stream(), [], set()
    gate = cu.block(stream)
    for number in range(50):
        cu.launch(stream, lambda number=number: (order.append(number), threads.add(threading.get_ident())))
    assert pending(cu, stream)
    assert order == []
    gate.open()
    cu.cuStreamSynchronize(stream)
    assert order == list(range(50))
    assert threading.get_ident() not in threads
    assert not pending(cu, stream)
    cu.cuStreamDestroy_v2(stream)


def test_a_blocked_stream_blocks_no_other(cu: Driver) -> None:
    streams = [cu.stream(NON_BLOCKING) for _ in range(20)]
    gates = [cu.block(stream) for stream in streams]
    free, done = cu.stream(NON_BLOCKING), []
    cu.launch(free, lambda: done.append(True))
    cu.cuStreamSynchronize(free)
    assert done == [True]
    assert all(pending(cu, stream) for stream in streams)
    for gate in gates:
        gate.open()
    for stream in (*streams, free):
        cu.cuStreamSynchronize(stream)
        cu.cuStreamDestroy_v2(stream)


def test_a_thousand_streams(cu: Driver, sim: ModuleType) -> None:
    before = sim.live()["streams"].number
    streams = [cu.stream(NON_BLOCKING if number % 2 else 0) for number in range(1000)]
    memory = cu.alloc(4000)
    for number, stream in enumerate(streams):
        cu.cuMemsetD32Async(c_uint64(memory.value + 4 * number), number, c_size_t(1), stream)
    hits: list[int] = []
    for stream in streams[:200]:
        cu.launch(stream, lambda: hits.append(1))
    cu.cuCtxSynchronize()
    assert len(hits) == 200
    assert list((ctypes.c_uint32 * 1000).from_buffer_copy(cu.read(memory, 4000))) == list(range(1000))
    assert sim.live()["streams"].number == before + 1000
    for stream in streams:
        cu.cuStreamDestroy_v2(stream)
    assert sim.live()["streams"].number == before
    cu.cuMemFree_v2(memory)


def test_a_host_function_that_polls_pinned_memory_sees_the_host_write_it(cu: Driver) -> None:
    stream = cu.stream()
    flag = cu.pinned(4)
    seen: list[bytes] = []

    def spin() -> None:
        while flag[0] == b"\0":
            pass
        seen.append(flag[0])

    cu.launch(stream, spin)
    assert pending(cu, stream)
    flag[0] = b"\7"
    cu.cuStreamSynchronize(stream)
    assert seen == [b"\7"]
    cu.cuMemFreeHost(flag)
    cu.cuStreamDestroy_v2(stream)


def test_the_legacy_stream_waits_for_blocking_streams_and_they_for_it(cu: Driver) -> None:
    blocking, free, order = cu.stream(), cu.stream(NON_BLOCKING), []
    gate = cu.block(blocking)
    cu.launch(None, lambda: order.append("legacy"))
    cu.launch(blocking, lambda: order.append("blocking"))
    cu.launch(free, lambda: order.append("free"))
    cu.cuStreamSynchronize(free)
    assert order == ["free"]
    assert pending(cu, None)
    assert pending(cu, LEGACY)
    gate.open()
    cu.cuStreamSynchronize(blocking)
    assert order == ["free", "legacy", "blocking"]
    for stream in (blocking, free):
        cu.cuStreamDestroy_v2(stream)


def test_synchronising_the_legacy_stream_waits_for_blocking_streams(cu: Driver) -> None:
    stream, order = cu.stream(), []
    gate = cu.block(stream)
    cu.launch(stream, lambda: order.append("done"))
    threading.Timer(0.05, gate.open).start()
    cu.cuStreamSynchronize(None)
    assert order == ["done"]
    cu.cuStreamDestroy_v2(stream)


def test_per_thread_streams_belong_to_their_threads(cu: Driver) -> None:
    context = cu.out(c_void_p, "cuCtxGetCurrent")
    gate = cu.block(PER_THREAD)
    results: list[str] = []

    def elsewhere() -> None:
        cu.cuCtxSetCurrent(context)
        results.append(cu.status("cuStreamQuery", PER_THREAD))
        number = c_uint64()
        cu.cuStreamGetId(PER_THREAD, byref(number))
        results.append(str(number.value))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    number = c_uint64()
    cu.cuStreamGetId(PER_THREAD, byref(number))
    assert results[0] == "SUCCESS"
    assert results[1] != str(number.value)
    assert pending(cu, PER_THREAD)
    assert pending(cu, None)
    gate.open()
    cu.cuStreamSynchronize(PER_THREAD)


def test_ptsz_variants_use_the_per_thread_stream(cu: Driver) -> None:
    blocking = cu.stream()
    gate = cu.block(blocking)
    # The legacy stream has to wait for the blocked one; the per-thread stream does not.
    assert cu.status("cuStreamQuery_ptsz", None) == "SUCCESS"
    assert cu.status("cuStreamQuery", None) == "NOT_READY"
    memory, data = cu.out(c_uint64, "cuMemAllocAsync_ptsz", c_size_t(16), None), ctypes.create_string_buffer(b"x" * 16)
    cu.cuMemcpyHtoD_v2_ptds(memory, data, c_size_t(16))
    cu.cuMemFreeAsync_ptsz(memory, None)
    cu.cuStreamSynchronize_ptsz(None)
    assert pending(cu, blocking)
    gate.open()
    cu.cuStreamSynchronize(blocking)
    cu.cuStreamDestroy_v2(blocking)


def test_a_destroyed_stream_finishes_its_work(cu: Driver, sim: ModuleType) -> None:
    stream, order = cu.stream(), []
    gate = cu.block(stream)
    cu.launch(stream, lambda: order.append("ran"))
    cu.cuStreamDestroy_v2(stream)
    assert cu.status("cuStreamQuery", stream) == "INVALID_HANDLE"
    assert sim.live()["host functions pending"].number == 2
    gate.open()
    cu.cuCtxSynchronize()
    assert order == ["ran"]
    assert sim.live()["host functions pending"].number == 0


@pytest.mark.parametrize("handle", [None, 1, 2])
def test_default_streams_cannot_be_destroyed(cu: Driver, handle: int | None) -> None:
    assert cu.status("cuStreamDestroy_v2", c_void_p(handle)) == "INVALID_HANDLE"


@pytest.mark.parametrize("handle", [3, 0x1234, 0x7F0012345678, 2**64 - 1])
def test_invented_handles_are_refused(cu: Driver, handle: int) -> None:
    assert cu.status("cuStreamQuery", c_void_p(handle)) == "INVALID_HANDLE"
    assert cu.status("cuStreamDestroy_v2", c_void_p(handle)) == "INVALID_HANDLE"


def test_a_handle_of_another_kind_is_refused(cu: Driver) -> None:
    event = cu.event()
    assert cu.status("cuStreamQuery", event) == "INVALID_HANDLE"
    cu.cuEventDestroy_v2(event)


def test_priorities_are_clamped_and_flags_kept(cu: Driver) -> None:
    for asked, given in ((-100, -5), (-2, -2), (0, 0), (9, 0)):
        stream = cu.out(c_void_p, "cuStreamCreateWithPriority", NON_BLOCKING, asked)
        priority, flags = c_int(), c_uint()
        cu.cuStreamGetPriority(stream, byref(priority))
        cu.cuStreamGetFlags(stream, byref(flags))
        assert (priority.value, flags.value) == (given, NON_BLOCKING)
        cu.cuStreamDestroy_v2(stream)
    assert cu.status("cuStreamCreate", byref(c_void_p()), 64) == "INVALID_VALUE"
    assert cu.status("cuStreamCreate", None, 0) == "INVALID_VALUE"


def test_a_stream_knows_its_context_and_device(cu: Driver) -> None:
    stream, context, device = cu.stream(), c_void_p(), c_int(7)
    cu.cuStreamGetCtx(stream, byref(context))
    cu.cuStreamGetDevice(stream, byref(device))
    assert context.value == cu.out(c_void_p, "cuCtxGetCurrent").value
    assert device.value == 0
    cu.cuStreamDestroy_v2(stream)


def test_nothing_is_captured(cu: Driver) -> None:
    status = c_int(9)
    cu.cuStreamIsCapturing(None, byref(status))
    assert status.value == 0
    status = c_int(9)
    cu.cuStreamGetCaptureInfo_v2(None, byref(status), None, None, None, None)
    assert status.value == 0


def test_callbacks_get_the_stream_the_status_and_their_data(cu: Driver) -> None:
    stream, got = cu.stream(), []
    callback = StreamCallback(lambda stream, status, data: got.append((stream, status, data)))
    cu.cuStreamAddCallback(stream, callback, c_void_p(42), 0)
    cu.cuStreamSynchronize(stream)
    assert got == [(stream.value, 0, 42)]
    assert cu.status("cuStreamAddCallback", stream, callback, None, 1) == "INVALID_VALUE"
    assert cu.status("cuLaunchHostFunc", stream, None, None) == "INVALID_VALUE"
    cu.cuStreamDestroy_v2(stream)


def test_host_functions_may_not_call_the_driver(cu: Driver) -> None:
    got: list[str] = []
    cu.launch(None, lambda: got.append(cu.status("cuMemAlloc_v2", byref(c_uint64()), c_size_t(8))))
    cu.cuStreamSynchronize(None)
    assert got == ["NOT_PERMITTED"]


def test_attributes_are_kept_and_copied(cu: Driver) -> None:
    one, two = cu.stream(), cu.stream()
    value = (c_uint64 * 8)(3)
    cu.cuStreamSetAttribute(one, 3, value)
    cu.cuStreamCopyAttributes(two, one)
    back = (c_uint64 * 8)()
    cu.cuStreamGetAttribute(two, 3, back)
    assert back[0] & 0xFFFFFFFF == 3
    assert cu.status("cuStreamGetAttribute", one, 2, back) == "INVALID_VALUE"
    for stream in (one, two):
        cu.cuStreamDestroy_v2(stream)


def test_waiting_for_a_value_in_memory(cu: Driver) -> None:
    stream, other = cu.stream(NON_BLOCKING), cu.stream(NON_BLOCKING)
    memory = cu.alloc(16)
    cu.cuMemsetD8_v2(memory, 0, c_size_t(16))
    cu.cuStreamWaitValue32_v2(stream, memory, 5, 1)
    order: list[str] = []
    cu.launch(stream, lambda: order.append("after"))
    assert pending(cu, stream)
    cu.cuStreamWriteValue32_v2(other, memory, 5, 0)
    cu.cuStreamSynchronize(stream)
    assert order == ["after"]
    assert cu.status("cuStreamWriteValue32_v2", stream, c_uint64(memory.value + 2), 1, 0) == "INVALID_VALUE"
    assert cu.status("cuStreamWaitValue64_v2", stream, c_uint64(0x1000), c_uint64(1), 0) == "INVALID_VALUE"
    cu.cuMemFree_v2(memory)
    for handle in (stream, other):
        cu.cuStreamDestroy_v2(handle)


def test_of_a_batch_with_a_wrong_operation_none_is_done(cu: Driver) -> None:
    stream, memory = cu.stream(NON_BLOCKING), cu.pinned(16)
    address = ctypes.addressof(memory)
    good, misaligned, barrier, flush = (2, address, 7, 0, 0, 0), (2, address + 2, 7), (6 | 2 << 32,), (3,)
    for wrong, status in ((misaligned, "INVALID_VALUE"), (barrier, "INVALID_VALUE"), (flush, "NOT_SUPPORTED")):
        operations = (c_uint64 * 12)(*good, *wrong)
        assert cu.status("cuStreamBatchMemOp_v2", stream, 2, operations, 0) == status
        cu.cuStreamSynchronize(stream)
        assert memory.raw == bytes(16)
    cu.cuStreamBatchMemOp_v2(stream, 1, (c_uint64 * 6)(*good), 0)
    cu.cuStreamSynchronize(stream)
    assert memory.raw == b"\7" + bytes(15)
    cu.cuMemFreeHost(memory)
    cu.cuStreamDestroy_v2(stream)


def test_eight_threads_hammer_streams_events_and_memory(cu: Driver, sim: ModuleType) -> None:
    context = cu.out(c_void_p, "cuCtxGetCurrent")
    before = sim.live()
    shared = cu.stream()
    errors: list[BaseException] = []

    def hammer(seed: int) -> None:
        try:
            cu.cuCtxSetCurrent(context)
            for turn in range(60):
                stream, event = cu.stream(turn % 2), cu.event()
                memory = cu.alloc(256 + seed)
                pooled = cu.out(c_uint64, "cuMemAllocAsync", c_size_t(1000), stream)
                cu.cuMemsetD8Async(memory, seed, c_size_t(256), stream)
                cu.cuMemcpyAsync(pooled, memory, c_size_t(256), stream)
                cu.cuEventRecord(event, stream)
                cu.cuStreamWaitEvent(shared, event, 0)
                cu.cuStreamWaitEvent(PER_THREAD, event, 0)
                cu.cuMemFreeAsync(pooled, PER_THREAD)
                cu.cuEventSynchronize(event)
                assert cu.read(memory, 256) == bytes([seed]) * 256
                cu.cuEventDestroy_v2(event)
                cu.cuMemFree_v2(memory)
                cu.cuStreamDestroy_v2(stream)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=hammer, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    cu.cuStreamDestroy_v2(shared)
    cu.cuCtxSynchronize()
    assert sim.live() == before
    assert sim.reports() == []


@pytest.mark.parametrize("function", ["cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize"])
def test_a_wait_in_slices_is_for_the_work_that_was_there_at_first(cu: Driver, function: str) -> None:
    stream, event = cu.stream(NON_BLOCKING), cu.event()
    first = cu.block(stream)
    cu.cuEventRecord(event, stream)
    arguments = {"cuStreamSynchronize": [stream], "cuEventSynchronize": [event], "cuCtxSynchronize": []}[function]
    cu.library.cudaSimSlice(1, 0)
    assert cu.status(function, *arguments) == "NOT_READY"
    second = cu.block(stream)
    cu.library.cudaSimSlice(1, 1)
    assert cu.status(function, *arguments) == "NOT_READY"
    first.open()
    cu.library.cudaSimSlice(60000, 1)
    assert cu.status(function, *arguments) == "SUCCESS"
    assert cu.status("cuStreamQuery", stream) == "NOT_READY"
    cu.library.cudaSimSlice(0, 0)
    second.open()
    cu.cuStreamSynchronize(stream)
    cu.cuEventDestroy_v2(event)
    cu.cuStreamDestroy_v2(stream)
