# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest
from sim_driver import Driver, c_size_t, c_void_p, run_alone

# device 1 is current, with a kernel that stores; `pooled` and `plain` are memory of device 0
TWO = """
    from sim_launch import Kernels
    first = cu.start(0)
    pool, plain = cu.pool(), cu.alloc(64)
    pooled = cu.from_pool(pool, 64, None)
    cu.cuCtxSynchronize()
    second = cu.start(1)
    kernels = Kernels(cu)

    def access(flags, device=1):
        return cu.status("cuMemPoolSetAccess", pool, byref(AccessDesc(Location(1, device), flags)), c_size_t(1))

    def store(memory):
        kernels.launch("store", memory, c_uint(3))
        return cu.status("cuCtxSynchronize")
"""


def two(code: str, **environment: str) -> list[str]:
    indented = "\n".join("    " + line.strip() for line in code.strip().split("\n"))
    return run_alone(TWO + indented, CUDA_SIM_DEVICES="2", **environment).split()


def test_links_between_devices() -> None:
    code = """
        cu.cuInit(0)
        print(*(cu.out(c_int, "cuDeviceCanAccessPeer", a, b).value for a, b in ((0, 1), (1, 0), (1, 1))))
        print(*(cu.out(c_int, "cuDeviceGetP2PAttribute", number, 0, 1).value for number in (1, 2, 3, 4, 5)))
        print(cu.status("cuDeviceGetP2PAttribute", byref(c_int()), 6, 0, 1))
        print(cu.status("cuDeviceGetP2PAttribute", byref(c_int()), 2, 1, 1))
        print(cu.status("cuDeviceGetP2PAttribute", byref(c_int()), 2, 0, 2))
        print(cu.status("cuDeviceCanAccessPeer", byref(c_int()), 0, 2))
        """
    errors = ["INVALID_VALUE", *["INVALID_DEVICE"] * 3]
    assert run_alone(code, CUDA_SIM_DEVICES="2").split() == ["1", "1", "0", "0", "1", "1", "1", "0", *errors]
    without = run_alone(code, CUDA_SIM_DEVICES="2", CUDA_SIM_PEER_ACCESS="0")
    assert without.split() == ["0", "0", "0", "0", "0", "0", "0", "0", *errors]


def test_devices_without_a_link_are_given_no_access_but_copy() -> None:
    printed = two(
        """
        print(cu.status("cuCtxEnablePeerAccess", first, 0), access(3), access(0), access(3, 0))
        mine = cu.alloc(64)
        print(cu.status("cuMemcpyPeer", mine, second, plain, first, c_size_t(64)))
        print(cu.status("cuMemcpy", mine, plain, c_size_t(64)))
        """,
        CUDA_SIM_PEER_ACCESS="0",
    )
    assert printed == ["PEER_ACCESS_UNSUPPORTED", "INVALID_DEVICE", "SUCCESS", "SUCCESS", "SUCCESS", "SUCCESS"]


# as two H200s have it: the current device must have access to what has rights of its own, on both sides of a copy
@pytest.mark.parametrize(
    ("memory", "grant"),
    [
        ("pooled", "access(3)"),
        ("mapped", "memory.allow(mapped.value, UNIT, number=1)"),
    ],
)
def test_copies_need_access_to_pooled_and_mapped_memory_unless_they_are_between_contexts(
    memory: str, grant: str
) -> None:
    printed = two(
        f"""
        from sim_virtual import UNIT, Memory
        memory = Memory(cu)
        mapped = c_uint64(memory.new(UNIT))
        memory.allow(mapped.value, UNIT)
        mine, host = cu.alloc(64), ctypes.create_string_buffer(64)
        copies = [
            ("cuMemcpy", mine, {memory}, c_size_t(64)),
            ("cuMemcpyAsync", {memory}, mine, c_size_t(64), None),
            ("cuMemcpyDtoH_v2", host, {memory}, c_size_t(64)),
            ("cuMemcpy", mine, plain, c_size_t(64)),
            ("cuMemcpyPeer", mine, second, {memory}, first, c_size_t(64)),
        ]
        print(*(cu.status(*copy) for copy in copies))
        {grant}
        print(*(cu.status(*copy) for copy in copies), sim.reports())
        """
    )
    assert printed == [*["INVALID_VALUE"] * 3, *["SUCCESS"] * 7, "[]"]


@pytest.mark.parametrize("memory", ["plain", "pooled"])
def test_a_kernel_that_uses_another_device_s_memory_without_access_faults(memory: str) -> None:
    printed = two(
        f"""
        print(store({memory}), sim.reports()[0].kind, sim.reports()[0].allocation_start == {memory}.value)
        """
    )
    assert printed == ["ILLEGAL_ADDRESS", "no", "access", "True"]


@pytest.mark.parametrize(
    ("memory", "grant", "revoke"),
    [
        ("plain", "cu.cuCtxEnablePeerAccess(first, 0)", "cu.cuCtxDisablePeerAccess(first)"),
        ("pooled", "access(3)", "access(0)"),
    ],
)
def test_access_lets_kernels_and_fills_through_until_it_is_taken_back(memory: str, grant: str, revoke: str) -> None:
    printed = two(
        f"""
        stream = cu.stream(NON_BLOCKING)
        def fill(): return cu.status("cuMemsetD8Async", {memory}, 7, c_size_t(64), stream)
        print(fill())
        {grant}
        print(fill(), store({memory}), cu.read({memory}, 5) == bytes([3, 0, 0, 0, 7]))
        {revoke}
        print(fill(), [report.kind for report in sim.reports()] == ["no access"] * 2)
        print(store({memory}))
        """
    )
    allowed = ["SUCCESS", "SUCCESS", "True"]
    assert printed == ["INVALID_VALUE", *allowed, "INVALID_VALUE", "True", "ILLEGAL_ADDRESS"]


def test_access_lets_values_be_written_until_it_is_taken_back() -> None:
    printed = two(
        """
        stream = cu.stream(NON_BLOCKING)
        def write(): return cu.status("cuStreamWriteValue32_v2", stream, plain, 9, 0)
        print(write())
        cu.cuCtxEnablePeerAccess(first, 0)
        print(write(), cu.status("cuStreamSynchronize", stream), cu.read(plain, 1) == bytes([9]))
        cu.cuCtxDisablePeerAccess(first)
        print(write(), [report.kind for report in sim.reports()] == ["no access"] * 2)
        """
    )
    assert printed == ["INVALID_VALUE", "SUCCESS", "SUCCESS", "True", "INVALID_VALUE", "True"]


def test_pool_access_is_for_the_pool_that_it_is_given_for() -> None:
    printed = two(
        """
        other = cu.pool()
        cu.cuMemPoolSetAccess(other, byref(AccessDesc(Location(1, 1), 3)), c_size_t(1))
        print(cu.pointer_attribute(cu.from_pool(other, 64, None), 16), cu.pointer_attribute(pooled, 16))
        """
    )
    assert printed == ["3", "0"]


def test_memory_freed_in_stream_order_needs_access_too() -> None:
    printed = two(
        """
        cu.cuCtxSetCurrent(first)
        stream = cu.stream(NON_BLOCKING)
        gate = cu.block(stream)
        cu.cuMemFreeAsync(pooled, stream)
        cu.cuCtxSetCurrent(second)
        print(store(pooled))
        gate.open()
        """
    )
    assert printed == ["ILLEGAL_ADDRESS"]


@pytest.mark.parametrize(("grant", "status"), [("pass", "ILLEGAL_ADDRESS"), ("access(3, 0)", "SUCCESS")])
def test_a_kernel_needs_access_to_a_pool_of_the_host(grant: str, status: str) -> None:
    printed = two(
        f"""
        pool = cu.pool(location=Location(2, 0))
        {grant}
        cu.cuCtxSetCurrent(first)
        kernels = Kernels(cu)
        print(store(cu.from_pool(pool, 64, None)))
        """
    )
    assert printed == [status]


def test_access_to_a_context_ends_with_it() -> None:
    printed = two(
        """
        cu.cuCtxEnablePeerAccess(first, 0)
        cu.cuDevicePrimaryCtxReset_v2(0)
        print(cu.status("cuCtxDisablePeerAccess", first))
        first = cu.start(0)
        memory = cu.alloc(64)
        cu.cuCtxSetCurrent(second)
        print(cu.pointer_attribute(memory, 16), cu.status("cuCtxDisablePeerAccess", first))
        print(cu.status("cuCtxEnablePeerAccess", first, 0), cu.pointer_attribute(memory, 16))
        """
    )
    assert printed == ["INVALID_CONTEXT", "0", "PEER_ACCESS_NOT_ENABLED", "SUCCESS", "3"]


def test_a_context_is_no_peer_of_its_own_device(cu: Driver) -> None:
    context: c_void_p = cu.out(c_void_p, "cuCtxGetCurrent")
    assert cu.status("cuCtxEnablePeerAccess", context, 0) == "PEER_ACCESS_UNSUPPORTED"
    assert cu.status("cuCtxDisablePeerAccess", context) == "PEER_ACCESS_NOT_ENABLED"
    assert cu.status("cuCtxEnablePeerAccess", None, 0) == "INVALID_CONTEXT"
    assert cu.status("cuCtxEnablePeerAccess", context, 1) == "INVALID_VALUE"


def test_a_copy_between_contexts_needs_none_of_them(cu: Driver) -> None:
    target, source = cu.alloc(64), cu.alloc(64)
    cu.cuMemsetD8_v2(source, 5, c_size_t(64))
    cu.cuMemcpyPeer(target, None, source, None, c_size_t(64))
    assert cu.read(target, 64) == bytes([5]) * 64
    assert cu.status("cuMemcpyPeer", target, c_void_p(64), source, None, c_size_t(64)) == "INVALID_CONTEXT"
    for pointer in (target, source):
        cu.cuMemFree_v2(pointer)


def test_a_new_pool_has_the_access_of_the_one_that_was_destroyed_last() -> None:
    printed = two(
        """
        granted = lambda pool: cu.out(c_int, "cuMemPoolGetAccess", pool, byref(Location(1, 1))).value
        cu.cuMemFreeAsync(pooled, None)
        print(access(3), granted(pool))
        cu.cuMemPoolDestroy(pool)
        print(*map(granted, (cu.pool(), cu.pool())))
        """
    )
    assert printed == ["SUCCESS", "3", "3", "0"]
