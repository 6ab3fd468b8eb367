# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What is left of a process after a kernel failed: as on hardware, nothing that needs a context of the device."""

from __future__ import annotations

import pytest
from sim_driver import run_alone

PREPARE = """
    from sim_launch import Kernels
    from sim_kernels import KERNELS
    primary = cu.start()

    def works():
        alloc = cu.status("cuMemAlloc_v2", byref(c_uint64()), c_size_t(64))
        return alloc, cu.status("cuModuleLoadData", byref(c_void_p()), KERNELS), cu.status("cuCtxSynchronize")

    def fail():
        kernels = Kernels(cu)
        {fault}
        return cu.status("cuCtxSynchronize")
"""
FAULTS = {
    "LAUNCH_FAILED": 'kernels.launch("traps")',
    "ILLEGAL_ADDRESS": 'kernels.launch("store", c_uint64(16), c_uint(1))',
    "MISALIGNED_ADDRESS": 'kernels.launch("store", offset(cu.alloc(64), 1), c_uint(1))',
    "LAUNCH_TIMEOUT": 'kernels.launch("spin", c_uint64(ctypes.addressof(cu.pinned(4))))',
}
DESTROYED = ["CONTEXT_IS_DESTROYED"] * 3


def after(code: str, fault: str = "LAUNCH_FAILED", **environment: str) -> list[str]:
    indented = "\n".join("    " + line.strip() for line in code.strip().split("\n"))
    seconds = {"CUDA_SIM_KERNEL_SECONDS": "0.2"} if fault == "LAUNCH_TIMEOUT" else {}
    return run_alone(PREPARE.format(fault=FAULTS[fault]) + indented, **seconds, **environment).split()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("ending", ["cuDevicePrimaryCtxReset_v2", "cuDevicePrimaryCtxRelease_v2"])
def test_the_primary_context_does_not_come_back(fault: str, ending: str) -> None:
    printed = after(
        f"""
        print(fail(), cu.status("{ending}", 0), *works())
        print(cu.status("cuDevicePrimaryCtxRetain", byref(c_void_p()), 0))
        """,
        fault,
    )
    assert printed == [fault, "SUCCESS", *DESTROYED, fault]


def test_while_it_lives_the_primary_context_may_be_retained() -> None:
    printed = after('print(fail(), cu.status("cuDevicePrimaryCtxRetain", byref(c_void_p()), 0), *works())')
    assert printed == ["LAUNCH_FAILED", "SUCCESS", *["LAUNCH_FAILED"] * 3]


def test_no_context_can_be_created() -> None:
    printed = after(
        """
        print(fail(), cu.status("cuCtxCreate_v2", byref(c_void_p()), 0, 0))
        print(cu.out(c_void_p, "cuCtxGetCurrent").value == primary.value)
        """
    )
    assert printed == ["LAUNCH_FAILED", "LAUNCH_FAILED", "True"]


def test_the_other_contexts_of_the_device_fail_with_it() -> None:
    printed = after(
        """
        created = cu.out(c_void_p, "cuCtxCreate_v2", 0, 0)
        print(fail())
        cu.cuCtxSetCurrent(primary)
        print(*works())
        print(cu.status("cuCtxDestroy_v2", created), *works())
        """
    )
    assert printed == [*["LAUNCH_FAILED"] * 4, "SUCCESS", *["LAUNCH_FAILED"] * 3]


def test_another_device_goes_on() -> None:
    printed = after("print(fail()); cu.start(1); print(*works())", CUDA_SIM_DEVICES="2")
    assert printed == ["LAUNCH_FAILED", "SUCCESS", "SUCCESS", "SUCCESS"]


def test_the_first_fault_is_the_one_that_is_told() -> None:
    printed = after(
        """
        stream = cu.stream(NON_BLOCKING)
        kernels = Kernels(cu)
        memory = cu.alloc(64)
        gate = cu.block(stream)
        kernels.launch("store", offset(memory, 1), c_uint(1), stream=stream)
        print(fail())
        gate.open()
        print(cu.status("cuStreamSynchronize", stream), len(sim.reports()))
        """
    )
    assert printed == ["LAUNCH_FAILED", "LAUNCH_FAILED", "1"]


def test_what_needs_no_context_still_works() -> None:
    printed = after(
        """
        pool, memory = cu.pool(), cu.alloc(64)
        print(fail())
        print(cu.status("cuCtxGetDevice", byref(c_int())), cu.status("cuCtxGetFlags", byref(c_uint())))
        print(cu.pool_attribute(pool, 4), cu.pointer_attribute(memory, 2), cu.status("cuMemPoolDestroy", pool))
        print(cu.status("cuCtxSetLimit", 0, c_size_t(2048)), cu.status("cuCtxGetId", None, byref(c_uint64())))
        """
    )
    assert printed == ["LAUNCH_FAILED", *["SUCCESS"] * 2, "0", "2", "SUCCESS", *["LAUNCH_FAILED"] * 2]


def test_the_simulator_can_recover_where_hardware_cannot() -> None:
    printed = after(
        """
        created = cu.out(c_void_p, "cuCtxCreate_v2", 0, 0)
        print(fail())
        sim.recover()
        print(*works())
        cu.cuCtxSetCurrent(primary)
        print(*works())
        """
    )
    assert printed == ["LAUNCH_FAILED"] + ["SUCCESS"] * 6


def test_what_was_made_before_the_failure_works_after_the_recovery() -> None:
    printed = after(
        """
        stream, event, memory = cu.stream(NON_BLOCKING), cu.event(), cu.alloc(4)
        kernels = Kernels(cu)
        cu.cuMemsetD32_v2(memory, 1, c_size_t(1))
        print(fail())
        print(cu.status("cuMemsetD32Async", memory, 5, c_size_t(1), stream))
        sim.recover()
        print(int.from_bytes(cu.read(memory, 4), "little"))
        kernels.launch("store", memory, c_uint(7), stream=stream)
        cu.cuEventRecord(event, stream)
        cu.cuEventSynchronize(event)
        print(int.from_bytes(cu.read(memory, 4), "little"))
        """
    )
    assert printed == ["LAUNCH_FAILED", "LAUNCH_FAILED", "1", "7"]


def test_a_device_that_recovered_may_fail_again() -> None:
    printed = after(
        """
        print(fail(), cu.status("cuCtxSynchronize"))
        sim.recover()
        print(fail(), cu.status("cuCtxSynchronize"))
        sim.recover()
        print(*works())
        """
    )
    assert printed == ["LAUNCH_FAILED"] * 4 + ["SUCCESS"] * 3
