# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from types import ModuleType

import pytest
from sim_driver import Driver, byref, c_size_t, c_uint64, run_alone


def allocate(cu: Driver) -> str:
    pointer = c_uint64()
    status = cu.status("cuMemAlloc_v2", byref(pointer), c_size_t(8))
    if status == "SUCCESS":
        cu.cuMemFree_v2(pointer)
    return status


def test_the_nth_call_fails(cu: Driver, sim: ModuleType) -> None:
    sim.fail("cuMemAlloc_v2", "CUDA_ERROR_OUT_OF_MEMORY", nth=3, count=2)
    assert [allocate(cu) for _ in range(6)] == [
        "SUCCESS",
        "SUCCESS",
        "OUT_OF_MEMORY",
        "OUT_OF_MEMORY",
        "SUCCESS",
        "SUCCESS",
    ]


def test_a_fault_names_any_version_or_variant(cu: Driver, sim: ModuleType) -> None:
    sim.fail("cuMemAlloc", 999)
    assert allocate(cu) == "UNKNOWN"
    sim.fail("cuStreamQuery", 700)
    assert cu.status("cuStreamQuery_ptsz", None) == "ILLEGAL_ADDRESS"
    sim.fail("cuMem", 700)
    assert allocate(cu) == "SUCCESS"


def test_a_fault_does_nothing_else(cu: Driver, sim: ModuleType) -> None:
    pointer = cu.alloc(8)
    sim.fail("cuMemFree", "CUDA_ERROR_INVALID_CONTEXT")
    assert cu.status("cuMemFree_v2", pointer) == "INVALID_CONTEXT"
    cu.cuMemFree_v2(pointer)


def test_a_fault_is_taken_back(cu: Driver, sim: ModuleType) -> None:
    with sim.fail("cuMemAlloc", 2, count=5) as fault:
        assert allocate(cu) == "OUT_OF_MEMORY"
    assert fault.left == 4
    assert allocate(cu) == "SUCCESS"
    sim.fail("cuMemAlloc", 2)
    sim.clear_faults()
    assert allocate(cu) == "SUCCESS"


def test_wrong_faults_are_refused(sim: ModuleType) -> None:
    for arguments in (("cuMemAlloc", 2, 0), ("cuMemAlloc", 2, 1, 0), ("c" * 100, 2)):
        with pytest.raises(ValueError, match="cannot inject"):
            sim.fail(*arguments)
    with pytest.raises(ValueError, match="unknown driver error"):
        sim.fail("cuMemAlloc", "CUDA_ERROR_NO_SUCH_THING")


def test_faults_reach_the_calls_before_initialisation() -> None:
    printed = run_alone(
        """
        sim.fail("cuInit", "CUDA_ERROR_SYSTEM_NOT_READY")
        sim.fail("cuDriverGetVersion", "CUDA_ERROR_UNKNOWN")
        sim.fail("cuGetProcAddress", "CUDA_ERROR_NOT_SUPPORTED")
        print(cu.status("cuInit", 0), cu.status("cuInit", 0), cu.status("cuDriverGetVersion", byref(c_int())))
        print(cu.status("cuGetProcAddress_v2", b"cuInit", byref(c_void_p()), 12000, c_uint64(0), None))
        """
    )
    assert printed.split() == ["SYSTEM_NOT_READY", "SUCCESS", "UNKNOWN", "NOT_SUPPORTED"]


def test_a_trace_lists_the_calls(cu: Driver, sim: ModuleType) -> None:
    with sim.trace() as trace:
        allocate(cu)
        cu.status("cuMemAlloc_v2", None, c_size_t(8))
        assert sim.calls() == trace.calls
    allocate(cu)
    assert trace.calls == [("cuMemAlloc_v2", 0), ("cuMemFree_v2", 0), ("cuMemAlloc_v2", 1)]
    assert len(trace) == 3
    assert sim.calls() == []


def test_a_trace_keeps_the_functions_asked_for(cu: Driver, sim: ModuleType) -> None:
    with sim.trace("cuMemFree", "cuStreamQuery_ptsz") as trace:
        allocate(cu)
        cu.status("cuStreamQuery_ptsz", None)
        cu.status("cuStreamQuery", None)
    assert trace.names == ["cuMemFree_v2", "cuStreamQuery_ptsz"]


def test_traces_nest(cu: Driver, sim: ModuleType) -> None:
    with sim.trace() as outer:
        allocate(cu)
        with sim.trace() as inner:
            allocate(cu)
        allocate(cu)
    assert (len(outer), len(inner)) == (6, 2)


def test_injected_failures_are_traced(cu: Driver, sim: ModuleType) -> None:
    with sim.trace() as trace, sim.fail("cuMemAlloc", 2):
        allocate(cu)
    assert trace.calls == [("cuMemAlloc_v2", 2)]


def test_the_library_is_loaded(driver: Driver, sim: ModuleType) -> None:
    assert sim.is_loaded()
    assert sim.library_path().name.endswith(".so")


def test_reports_are_printed_on_demand_and_leaks_at_exit() -> None:
    printed = run_alone(
        """
        cu.start()
        first, second = cu.alloc(100), cu.alloc(200)
        cu.cuMemFree_v2(first)
        cu.status("cuMemFree_v2", first)
        streams = cu.stream(), cu.stream()
        """,
        CUDA_SIM_REPORT="stderr",
    )
    lines = printed.strip().split("\n")
    assert len(lines) == 3
    assert lines[0].startswith("cuda simulator: double free in cuMemFree_v2: ")
    assert "100 bytes] is number 1, made by cuMemAlloc_v2, freed by cuMemFree_v2 after allocation 2" in lines[0]
    assert lines[1].startswith("cuda simulator: leak in exit: 200 bytes were never freed")
    assert lines[2] == "cuda simulator: leak in exit: 2 streams never destroyed"


def test_without_the_wish_nothing_is_printed() -> None:
    assert run_alone("cu.start(); cu.alloc(100); cu.status('cuMemFree_v2', c_uint64(0x5000))") == ""
