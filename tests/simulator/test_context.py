# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import threading
from types import ModuleType

import pytest
from sim_driver import (
    DISABLE_TIMING,
    Driver,
    byref,
    c_int,
    c_size_t,
    c_uint,
    c_uint64,
    c_void_p,
    run_alone,
)


def current(cu: Driver) -> int | None:
    return cu.out(c_void_p, "cuCtxGetCurrent").value


def test_calls_that_need_a_context_say_so(driver: Driver) -> None:
    assert driver.status("cuMemAlloc_v2", byref(c_uint64()), c_size_t(8)) == "INVALID_CONTEXT"
    assert driver.status("cuStreamCreate", byref(c_void_p()), 0) == "INVALID_CONTEXT"
    assert driver.status("cuStreamQuery", None) == "INVALID_CONTEXT"
    assert driver.status("cuCtxSynchronize") == "INVALID_CONTEXT"
    assert driver.status("cuCtxGetDevice", byref(c_int())) == "INVALID_CONTEXT"
    assert driver.status("cuCtxPopCurrent_v2", None) == "INVALID_CONTEXT"


def test_handles_work_without_a_current_context(cu: Driver) -> None:
    stream, event, memory = cu.stream(), cu.event(), cu.alloc(64)
    context = current(cu)
    cu.cuCtxSetCurrent(None)
    cu.cuEventRecord(event, stream)
    cu.cuStreamWaitEvent(stream, event, 0)
    cu.cuMemsetD8Async(memory, 1, c_size_t(64), stream)
    cu.cuStreamSynchronize(stream)
    cu.cuEventSynchronize(event)
    cu.cuMemFree_v2(memory)
    cu.cuEventDestroy_v2(event)
    cu.cuStreamDestroy_v2(stream)
    cu.cuCtxSetCurrent(c_void_p(context))


def test_the_primary_context_is_counted(driver: Driver, sim: ModuleType) -> None:
    before = sim.live()["primary contexts retained"].number
    first = driver.start()
    second = driver.start()
    assert first.value == second.value
    assert sim.live()["primary contexts retained"].number == before + 2
    driver.cuDevicePrimaryCtxRelease_v2(0)
    driver.cuCtxGetDevice(byref(c_int()))
    driver.cuDevicePrimaryCtxRelease_v2(0)


def test_releasing_the_last_reference_ends_everything_in_the_context() -> None:
    printed = run_alone(
        """
        first = cu.start()
        stream, event, memory = cu.stream(), cu.event(), cu.alloc(64)
        print(cu.status("cuDevicePrimaryCtxRelease_v2", 0), cu.status("cuDevicePrimaryCtxRelease_v2", 0))
        print(cu.status("cuMemAlloc_v2", byref(c_uint64()), c_size_t(8)), cu.status("cuMemFree_v2", memory))
        print(cu.status("cuStreamQuery", stream), cu.status("cuEventQuery", event))
        print([name for name, live in sim.live().items() if live.number])
        print(cu.start().value == first.value, cu.status("cuMemAlloc_v2", byref(c_uint64()), c_size_t(8)))
        print(sim.reports())
        """
    )
    assert printed.split("\n") == [
        "SUCCESS INVALID_CONTEXT",
        "CONTEXT_IS_DESTROYED CONTEXT_IS_DESTROYED",
        "INVALID_HANDLE CONTEXT_IS_DESTROYED",
        "[]",
        "True SUCCESS",
        "[]",
        "",
    ]


def test_reset_ends_the_primary_context_whoever_holds_it() -> None:
    printed = run_alone(
        """
        cu.start(); cu.start()
        cu.cuDevicePrimaryCtxReset_v2(0)
        print(cu.status("cuCtxSynchronize"), cu.status("cuDevicePrimaryCtxRelease_v2", 0))
        """
    )
    assert printed.split() == ["CONTEXT_IS_DESTROYED", "INVALID_CONTEXT"]


def test_created_contexts_form_a_stack(cu: Driver, sim: ModuleType) -> None:
    primary = current(cu)
    first = cu.out(c_void_p, "cuCtxCreate_v2", 0, 0)
    second = cu.out(c_void_p, "cuCtxCreate_v4", None, 0, 0)
    assert current(cu) == second.value
    assert sim.live()["contexts"].number == 2
    assert cu.out(c_void_p, "cuCtxPopCurrent_v2").value == second.value
    assert current(cu) == first.value
    cu.cuCtxDestroy_v2(second)
    cu.cuCtxDestroy_v2(first)
    assert current(cu) == primary
    assert sim.live()["contexts"].number == 0
    assert cu.status("cuCtxSetCurrent", first) == "CONTEXT_IS_DESTROYED"
    assert cu.status("cuCtxDestroy_v2", first) == "CONTEXT_IS_DESTROYED"


def test_a_context_destroyed_elsewhere_stays_current_and_fails(cu: Driver) -> None:
    context = cu.out(c_void_p, "cuCtxCreate_v3", None, 0, 0, 0)
    thread = threading.Thread(target=lambda: cu.cuCtxDestroy_v2(context))
    thread.start()
    thread.join()
    assert current(cu) == context.value
    assert cu.status("cuMemAlloc_v2", byref(c_uint64()), c_size_t(8)) == "CONTEXT_IS_DESTROYED"
    cu.cuCtxPopCurrent_v2(None)


def test_the_primary_context_cannot_be_destroyed(cu: Driver) -> None:
    assert cu.status("cuCtxDestroy_v2", c_void_p(current(cu))) == "INVALID_CONTEXT"


@pytest.mark.parametrize("handle", [0x1234, 0x7F0012345678, 2**63])
def test_an_invented_context_is_refused(cu: Driver, handle: int) -> None:
    assert cu.status("cuCtxSetCurrent", c_void_p(handle)) == "INVALID_CONTEXT"
    assert cu.status("cuCtxPushCurrent_v2", c_void_p(handle)) == "INVALID_CONTEXT"


def test_each_thread_has_its_own_current_context(cu: Driver) -> None:
    seen: list[int | None] = []
    thread = threading.Thread(target=lambda: seen.append(current(cu)))
    thread.start()
    thread.join()
    assert seen == [None]
    assert current(cu) is not None


def test_flags_limits_and_ranges(cu: Driver) -> None:
    assert cu.out(c_uint, "cuCtxGetFlags").value & 8
    cu.cuCtxSetFlags(4)
    assert cu.out(c_uint, "cuCtxGetFlags").value == 12
    cu.cuCtxSetFlags(0)
    assert cu.status("cuCtxSetFlags", 3) == "INVALID_VALUE"
    cu.cuCtxSetLimit(0, c_size_t(4096))
    assert cu.out(c_size_t, "cuCtxGetLimit", 0).value == 4096
    assert cu.status("cuCtxSetLimit", 0, c_size_t(1 << 40)) == "INVALID_VALUE"
    assert cu.status("cuCtxSetLimit", 7, c_size_t(1)) == "NOT_PERMITTED"
    assert cu.status("cuCtxGetLimit", byref(c_size_t()), 3) == "UNSUPPORTED_LIMIT"
    assert cu.status("cuCtxGetLimit", byref(c_size_t()), 77) == "INVALID_VALUE"
    least, greatest = c_int(), c_int()
    cu.cuCtxGetStreamPriorityRange(byref(least), byref(greatest))
    assert (least.value, greatest.value) == (0, -5)


def test_a_context_by_name_or_the_current_one(cu: Driver) -> None:
    context = c_void_p(current(cu))
    assert cu.out(c_int, "cuCtxGetDevice_v2", context).value == cu.out(c_int, "cuCtxGetDevice").value == 0
    cu.cuCtxSynchronize_v2(context)
    cu.cuCtxSynchronize_v2(None)
    number, again = c_uint64(), c_uint64()
    cu.cuCtxGetId(context, byref(number))
    cu.cuCtxGetId(None, byref(again))
    assert number.value == again.value != 0


def test_peer_access_is_switched_once() -> None:
    printed = run_alone(
        """
        cu.start(0)
        other = cu.out(c_void_p, "cuDevicePrimaryCtxRetain", 1)
        print(cu.status("cuCtxDisablePeerAccess", other), cu.status("cuCtxEnablePeerAccess", other, 0))
        print(cu.status("cuCtxEnablePeerAccess", other, 0), cu.status("cuCtxDisablePeerAccess", other))
        print(cu.status("cuCtxEnablePeerAccess", None, 0), cu.status("cuCtxEnablePeerAccess", other, 1))
        """,
        CUDA_SIM_DEVICES="2",
    )
    assert printed.split() == [
        "PEER_ACCESS_NOT_ENABLED",
        "SUCCESS",
        "PEER_ACCESS_ALREADY_ENABLED",
        "SUCCESS",
        "INVALID_CONTEXT",
        "INVALID_VALUE",
    ]


def test_events_and_streams_of_different_contexts_do_not_mix(cu: Driver) -> None:
    context = cu.out(c_void_p, "cuCtxCreate_v2", 0, 0)
    event = cu.event(DISABLE_TIMING)
    cu.cuCtxPopCurrent_v2(None)
    stream = cu.stream()
    assert cu.status("cuEventRecord", event, stream) == "INVALID_HANDLE"
    cu.cuStreamWaitEvent(stream, event, 0)
    cu.cuStreamDestroy_v2(stream)
    cu.cuCtxDestroy_v2(context)
