# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

"""Kernel launches: what is refused, how they are ordered, and how they fail."""

from __future__ import annotations

import struct
import threading
from types import ModuleType

import pytest
from sim_driver import (
    DISABLE_TIMING,
    NON_BLOCKING,
    PER_THREAD,
    Driver,
    byref,
    c_float,
    c_size_t,
    c_uint,
    c_uint64,
    c_void_p,
    ctypes,
    offset,
    run_alone,
    time,
)
from sim_kernels import KERNELS
from sim_launch import Kernels


@pytest.fixture
def kernels(cu: Driver) -> Kernels:
    kernels = Kernels(cu)
    yield kernels
    kernels.close()


def test_a_kernel_computes(cu: Driver, kernels: Kernels) -> None:
    n = 1000
    x, y = cu.alloc(4 * n), cu.alloc(4 * n)
    cu.cuMemcpyHtoD_v2(x, (c_float * n)(*range(n)), c_size_t(4 * n))
    cu.cuMemcpyHtoD_v2(y, (c_float * n)(*([1.0] * n)), c_size_t(4 * n))
    assert kernels.launch("saxpy", c_uint(n), c_float(2), x, y, grid=(8, 1, 1), block=(128, 1, 1)) == "SUCCESS"
    assert list((c_float * n).from_buffer_copy(cu.read(y, 4 * n))) == [2.0 * i + 1 for i in range(n)]
    for pointer in (x, y):
        cu.cuMemFree_v2(pointer)


def test_a_kernel_that_waits_for_the_host_does_not_hold_it_up(cu: Driver, kernels: Kernels) -> None:
    stream, flag = cu.stream(NON_BLOCKING), cu.pinned(4)
    assert kernels.launch("spin", c_uint64(ctypes.addressof(flag)), stream=stream) == "SUCCESS"
    assert cu.status("cuStreamQuery", stream) == "NOT_READY"
    flag[0] = b"\1"
    cu.cuStreamSynchronize(stream)
    cu.cuMemFreeHost(flag)
    cu.cuStreamDestroy_v2(stream)


def test_kernels_of_different_streams_run_at_the_same_time(cu: Driver, kernels: Kernels) -> None:
    streams, flags = [cu.stream(NON_BLOCKING) for _ in range(4)], cu.pinned(16)
    address = ctypes.addressof(flags)
    for number, stream in enumerate(streams):
        kernels.launch("spin", c_uint64(address + 4 * number), stream=stream)
    done = cu.stream(NON_BLOCKING)
    for number in reversed(range(4)):
        kernels.launch("store", c_uint64(address + 4 * number), c_uint(1), stream=done)
        cu.cuStreamSynchronize(streams[number])
    cu.cuCtxSynchronize()
    for stream in (*streams, done):
        cu.cuStreamDestroy_v2(stream)
    cu.cuMemFreeHost(flags)


def test_kernels_run_in_stream_order_and_arguments_are_copied(cu: Driver, kernels: Kernels) -> None:
    stream, memory = cu.stream(), cu.alloc(4)
    gate = cu.block(stream)
    value = c_uint(0)
    for number in range(1, 6):
        value.value = number
        kernels.launch("store", memory, value, stream=stream)
    value.value = 99
    gate.open()
    cu.cuStreamSynchronize(stream)
    assert cu.read(memory, 4) == struct.pack("I", 5)
    cu.cuMemFree_v2(memory)
    cu.cuStreamDestroy_v2(stream)


def test_a_module_unloaded_right_after_a_launch_finishes_it(cu: Driver) -> None:
    kernels, stream, memory = Kernels(cu), cu.stream(), cu.alloc(4)
    gate = cu.block(stream)
    kernels.launch("store", memory, c_uint(7), stream=stream)
    threading.Timer(0.02, gate.open).start()
    kernels.close()
    cu.cuStreamSynchronize(stream)
    assert cu.read(memory, 4) == struct.pack("I", 7)
    cu.cuMemFree_v2(memory)
    cu.cuStreamDestroy_v2(stream)


def test_arguments_in_one_buffer(cu: Driver, kernels: Kernels) -> None:
    memory = cu.alloc(4)

    def launch(data: bytes, size: int | None = None, pointers: bool = False, key: int = 2) -> str:
        buffer, length = (
            ctypes.create_string_buffer(data, max(1, len(data))),
            c_size_t(len(data) if size is None else size),
        )
        extra = (c_void_p * 5)(1, ctypes.addressof(buffer), key, ctypes.addressof(length), None)
        both = (c_void_p * 2)() if pointers else None
        return cu.status("cuLaunchKernel", kernels["store"], 1, 1, 1, 1, 1, 1, 0, None, both, extra)

    assert launch(struct.pack("QI", memory.value, 11)) == "SUCCESS"
    assert cu.read(memory, 4) == struct.pack("I", 11)
    for more in (1, 4, 100):
        assert launch(struct.pack("QI", memory.value, 12) + bytes(more)) == "LAUNCH_OUT_OF_RESOURCES"
    assert launch(b"") == "INVALID_VALUE"
    assert launch(struct.pack("QI", memory.value, 12), pointers=True) == "INVALID_VALUE"
    assert launch(struct.pack("QI", memory.value, 12), key=77) == "INVALID_VALUE"
    cu.cuMemFree_v2(memory)


@pytest.mark.parametrize(
    ("name", "options", "status"),
    [
        ("nothing", {}, "SUCCESS"),
        ("nothing", {"grid": (0, 1, 1)}, "INVALID_VALUE"),
        ("nothing", {"block": (1, 0, 1)}, "INVALID_VALUE"),
        ("nothing", {"block": (1025, 1, 1)}, "INVALID_VALUE"),
        ("nothing", {"block": (32, 33, 1)}, "INVALID_VALUE"),
        ("nothing", {"block": (1, 1, 65)}, "INVALID_VALUE"),
        ("nothing", {"grid": (1, 65536, 1)}, "INVALID_VALUE"),
        ("nothing", {"grid": (1 << 31, 1, 1)}, "INVALID_VALUE"),
        ("nothing", {"shared": 49152}, "SUCCESS"),
        ("nothing", {"shared": 49153}, "INVALID_VALUE"),
        ("big_shared", {"shared": 9152}, "SUCCESS"),
        ("big_shared", {"shared": 9153}, "INVALID_VALUE"),
        ("bounded", {"block": (64, 2, 1)}, "SUCCESS"),
        ("bounded", {"block": (129, 1, 1)}, "INVALID_VALUE"),
        ("required", {"block": (64, 1, 1)}, "SUCCESS"),
        ("required", {"block": (32, 1, 1)}, "INVALID_VALUE"),
    ],
)
def test_shapes(kernels: Kernels, name: str, options: dict[str, object], status: str) -> None:
    assert kernels.launch(name, **options) == status


@pytest.mark.parametrize(
    ("attributes", "grid", "status"),
    [
        ([], 4, "SUCCESS"),
        ([(4, (2, 1, 1))], 4, "SUCCESS"),
        ([(4, (3, 1, 1))], 4, "INVALID_CLUSTER_SIZE"),
        ([(4, (0, 1, 1))], 4, "INVALID_CLUSTER_SIZE"),
        ([(4, (16, 1, 1))], 16, "INVALID_CLUSTER_SIZE"),
        ([(2, (1,))], 4, "SUCCESS"),
        ([(2, (1,)), (4, (2, 1, 1))], 4, "SUCCESS"),
        ([(6, (1,))], 4, "SUCCESS"),
        ([(8, (0xFFFFFFFF,))], 4, "SUCCESS"),
        ([(8, (0xFFFFFFFB,))], 4, "SUCCESS"),
        ([(8, (0xFFFFFFFA,))], 4, "INVALID_VALUE"),
        ([(8, (1,))], 4, "INVALID_VALUE"),
        ([(77, (1,))], 4, "INVALID_VALUE"),
        ([(15, (1,))], 4, "INVALID_VALUE"),
        ([(3, (1,))], 4, "INVALID_VALUE"),
        ([(13, (1,))], 4, "INVALID_VALUE"),
        ([(0, (1,))], 4, "SUCCESS"),
        ([(10, (1,))], 4, "SUCCESS"),
        ([(10, (2,))], 4, "INVALID_VALUE"),
        ([(9, (0x0302,))], 4, "SUCCESS"),
        ([(9, (0x0400,))], 4, "INVALID_VALUE"),
        ([(9, (0x0004,))], 4, "INVALID_VALUE"),
        ([(5, (2,))], 4, "SUCCESS"),
        ([(5, (3,))], 4, "INVALID_VALUE"),
        ([(11, (3, 1, 1))], 4, "SUCCESS"),
        ([(11, (0, 1, 1))], 4, "INVALID_CLUSTER_SIZE"),
        ([(4, (2, 1, 1)), (11, (4, 1, 1))], 4, "SUCCESS"),
        ([(4, (2, 1, 1)), (11, (16, 1, 1))], 16, "SUCCESS"),
        ([(4, (2, 1, 1)), (11, (32, 1, 1))], 32, "INVALID_CLUSTER_SIZE"),
        ([(4, (2, 1, 1)), (11, (3, 1, 1))], 6, "INVALID_CLUSTER_SIZE"),
        ([(4, (2, 1, 1)), (11, (4, 1, 1))], 6, "INVALID_CLUSTER_SIZE"),
        ([(4, (2, 1, 1)), (11, (2, 1, 2))], 4, "INVALID_CLUSTER_SIZE"),
        ([(1, (0, 0, 1 << 27, 0, 0x3F000000, 2, 1))], 4, "SUCCESS"),
        ([(1, (0, 0, (1 << 27) + 1, 0, 0x3F000000, 2, 1))], 4, "INVALID_VALUE"),
        ([(1, (0, 0, 64, 0, 0x3FC00000, 2, 1))], 4, "INVALID_VALUE"),
        ([(1, (0, 0, 64, 0, 0x3F000000, 3, 1))], 4, "INVALID_VALUE"),
        ([(1, (0, 0, 64, 0, 0x3F000000, 2, 2))], 4, "INVALID_VALUE"),
        ([(14, (50,))], 4, "SUCCESS"),
        ([(14, (500,))], 4, "INVALID_VALUE"),
        ([(16, (1,))], 4, "SUCCESS"),
        ([(16, (2,))], 4, "INVALID_VALUE"),
        ([(17, (1,))], 4, "INVALID_VALUE"),
        ([(18, (1,))], 4, "INVALID_VALUE"),
        ([], 0, "INVALID_VALUE"),
    ],
)
def test_launch_attributes(
    kernels: Kernels, attributes: list[tuple[int, tuple[int, ...]]], grid: int, status: str
) -> None:
    assert kernels.launch_ex("nothing", *attributes, grid=(grid, 1, 1)) == status


def test_a_larger_cluster_has_to_be_allowed(cu: Driver, kernels: Kernels) -> None:
    cu.cuFuncSetAttribute(kernels["nothing"], 14, 1)
    assert kernels.launch_ex("nothing", (4, (16, 1, 1)), grid=(16, 1, 1)) == "SUCCESS"


def test_cooperative_launches_have_to_fit(cu: Driver, kernels: Kernels) -> None:
    def launch(grid: int, block: int) -> str:
        return cu.status("cuLaunchCooperativeKernel", kernels["nothing"], grid, 1, 1, block, 1, 1, 0, None, None)

    assert launch(4, 32) == "SUCCESS"
    assert launch(100_000, 1024) == "COOPERATIVE_LAUNCH_TOO_LARGE"


def test_missing_arguments_and_functions(cu: Driver, kernels: Kernels) -> None:
    ones = (1,) * 6
    assert cu.status("cuLaunchKernel", kernels["store"], *ones, 0, None, None, None) == "INVALID_VALUE"
    assert cu.status("cuLaunchKernel", kernels["store"], *ones, 0, None, (c_void_p * 2)(), None) == "INVALID_VALUE"
    assert cu.status("cuLaunchKernel", None, *ones, 0, None, None, None) == "INVALID_HANDLE"
    assert cu.status("cuLaunchKernel", c_void_p(0x1234), *ones, 0, None, None, None) == "INVALID_HANDLE"
    assert cu.status("cuLaunchKernelEx", None, kernels["nothing"], None, None) == "INVALID_VALUE"


def test_a_function_runs_only_in_its_context_a_kernel_anywhere(cu: Driver, kernels: Kernels) -> None:
    own = cu.stream()
    library = cu.out(c_void_p, "cuLibraryLoadData", KERNELS, None, None, 0, None, None, 0)
    kernel = cu.out(c_void_p, "cuLibraryGetKernel", library, b"nothing")
    function = kernels["nothing"]
    context = cu.out(c_void_p, "cuCtxCreate_v2", 0, 0)

    def launch(handle: c_void_p, stream: c_void_p | None) -> str:
        return cu.status("cuLaunchKernel", handle, 1, 1, 1, 1, 1, 1, 0, stream, None, None)

    assert launch(function, None) == "INVALID_HANDLE"
    assert launch(function, own) == "SUCCESS"
    assert launch(kernel, None) == "SUCCESS"
    assert launch(kernel, own) == "SUCCESS"
    cu.cuStreamSynchronize(own)
    cu.cuCtxDestroy_v2(context)
    cu.cuLibraryUnload(library)
    assert launch(kernel, None) == "INVALID_HANDLE"
    cu.cuStreamDestroy_v2(own)


def words(event: c_void_p, *more: int) -> tuple[int, ...]:
    """Return the value of an attribute that starts with an event."""
    return (event.value & 0xFFFFFFFF, event.value >> 32, *more)


@pytest.mark.parametrize(("number", "early"), [(12, True), (7, False)])
@pytest.mark.parametrize("at_start", [False, True])
def test_an_event_is_recorded_when_the_kernel_starts_or_when_its_blocks_trigger_it(
    cu: Driver, kernels: Kernels, number: int, early: bool, at_start: bool
) -> None:
    event, flag = cu.event(DISABLE_TIMING), cu.pinned(4)
    address = c_uint64(ctypes.addressof(flag))
    pointer = (c_void_p * 1)(ctypes.addressof(address))
    early = early or at_start
    value = words(event, 0, at_start) if number == 7 else words(event)
    assert kernels.launch_ex("spin", (number, value), grid=(1, 1, 1), block=(1, 1, 1), parameters=pointer) == "SUCCESS"
    if early:
        cu.cuEventSynchronize(event)
    else:
        time.sleep(0.02)
    assert cu.status("cuEventQuery", event) == ("SUCCESS" if early else "NOT_READY")
    flag[0] = b"\1"
    cu.cuCtxSynchronize()
    assert cu.status("cuEventQuery", event) == "SUCCESS"
    cu.cuEventDestroy_v2(event)
    cu.cuMemFreeHost(flag)


@pytest.mark.parametrize("number", [7, 12])
def test_a_launch_records_no_event_of_another_kind(cu: Driver, kernels: Kernels, number: int) -> None:
    for event in (timed := cu.event(), shared := cu.event(DISABLE_TIMING | 4)):
        assert kernels.launch_ex("nothing", (number, words(event))) == "INVALID_VALUE"
    usual = cu.event(DISABLE_TIMING)
    assert kernels.launch_ex("nothing", (number, words(usual, 1))) == "INVALID_VALUE"
    assert kernels.launch_ex("nothing", (number, (0, 0))) == "INVALID_VALUE"
    assert kernels.launch_ex("nothing", (number, words(usual))) == "SUCCESS"
    for event in (timed, shared, usual):
        cu.cuEventDestroy_v2(event)
    assert kernels.launch_ex("nothing", (number, words(usual))) in ("INVALID_HANDLE", "CONTEXT_IS_DESTROYED")


MODES = """
    from sim_launch import Kernels
    cu.start()
    kernels = Kernels(cu)
    for attributes, options in {launches}:
        print(kernels.launch_ex("nothing", *attributes, **options))
    cu.cuCtxSynchronize()
"""


@pytest.mark.parametrize(
    ("attributes", "options", "status"),
    [
        ([(17, (2,)), (4, (16, 1, 1))], {"grid": (16, 1, 1)}, "SUCCESS"),
        ([(17, (1,)), (4, (16, 1, 1))], {"grid": (16, 1, 1)}, "INVALID_CLUSTER_SIZE"),
        ([(17, (3,))], {}, "INVALID_VALUE"),
        ([(18, (2,))], {"shared": 49153}, "SUCCESS"),
        ([(18, (1,))], {"shared": 49153}, "INVALID_VALUE"),
        ([(18, (4,))], {"shared": 1 << 20}, "INVALID_VALUE"),
        ([(18, (5,))], {}, "INVALID_VALUE"),
        ([(5, (3,))], {}, "SUCCESS"),
    ],
)
def test_a_newer_driver_knows_more_attributes(
    attributes: list[tuple[int, tuple[int, ...]]], options: dict[str, object], status: str
) -> None:
    code = MODES.format(launches=[(attributes, options)])
    assert run_alone(code, CUDA_SIM_DRIVER_VERSION="13050").split() == [status]


def test_an_older_device_has_no_programmatic_events_and_no_windows() -> None:
    launches = [([(7, (1, 1))], {}), ([(1, (0, 0, 1, 0, 0, 0, 0))], {}), ([(9, (1,))], {}), ([(16, (1,))], {})]
    environment = {"CUDA_SIM_COMPUTE_CAPABILITY": "7.5", "CUDA_SIM_DRIVER_VERSION": "12090"}
    printed = run_alone(MODES.format(launches=launches), **environment)
    assert printed.split() == ["NOT_SUPPORTED"] + 3 * ["INVALID_VALUE"]


def test_variables_keep_their_values_between_launches(cu: Driver, kernels: Kernels) -> None:
    assert kernels.launch("count", grid=(10, 1, 1), block=(64, 1, 1)) == "SUCCESS"
    size = c_size_t()
    pointer = cu.out(c_uint64, "cuModuleGetGlobal_v2", byref(size), kernels.module, b"counters")
    assert struct.unpack("4I", cu.read(pointer, 16)) == (641, 2, 3, 4)


def test_a_kernel_may_use_memory_whose_free_comes_later(cu: Driver, kernels: Kernels, sim: ModuleType) -> None:
    stream = cu.stream(NON_BLOCKING)
    gate = cu.block(stream)
    memory = cu.out(c_uint64, "cuMemAllocAsync", c_size_t(4), stream)
    kernels.launch("store", memory, c_uint(1), stream=stream)
    cu.cuMemFreeAsync(memory, stream)
    gate.open()
    cu.cuStreamSynchronize(stream)
    assert sim.reports() == []
    cu.cuStreamDestroy_v2(stream)


FAULT = """
    from sim_launch import Kernels
    cu.start()
    kernels, stream, event, memory = Kernels(cu), cu.stream(NON_BLOCKING), cu.event(), cu.alloc(64)
    function = kernels["nothing"]
    cu.cuEventRecord(event, stream)
    {launch}
    print(cu.status("cuStreamSynchronize", stream))
    print(cu.status("cuStreamQuery", None), cu.status("cuCtxSynchronize"))
    print(cu.status("cuMemAlloc_v2", byref(c_uint64()), c_size_t(8)), cu.status("cuEventQuery", event))
    print(cu.status("cuFuncLoad", function), cu.status("cuStreamDestroy_v2", stream))
    print(cu.status("cuDeviceGetAttribute", byref(c_int()), 1, 0), cu.status("cuCtxGetDevice", byref(c_int())))
    (report,) = sim.reports()
    print(report.kind, "/", report.call, "/", report.allocation_size, "/", report.freed_by)
    print(report.message)
"""


@pytest.mark.parametrize(
    ("launch", "error", "report"),
    [
        ('kernels.launch("traps", stream=stream)', "LAUNCH_FAILED", "kernel failure / traps / 0 / "),
        (
            'kernels.launch("store", c_uint64(0), c_uint(1), stream=stream)',
            "ILLEGAL_ADDRESS",
            "illegal access / store / 0 / ",
        ),
        (
            'kernels.launch("store", offset(memory, 64), c_uint(1), stream=stream)',
            "ILLEGAL_ADDRESS",
            "illegal access / store / 64 / ",
        ),
        (
            'kernels.launch("store", offset(memory, 1), c_uint(1), stream=stream)',
            "MISALIGNED_ADDRESS",
            "misaligned access / store / 0 / ",
        ),
        (
            'cu.cuMemFree_v2(memory); kernels.launch("store", memory, c_uint(1), stream=stream)',
            "ILLEGAL_ADDRESS",
            "use after free / store / 64 / cuMemFree_v2",
        ),
    ],
)
def test_a_fault_is_what_every_later_call_reports(launch: str, error: str, report: str) -> None:
    lines = run_alone(FAULT.format(launch=launch)).split("\n")
    assert lines[0] == error
    assert " ".join(lines[1:4]) == " ".join([error] * 6)
    assert lines[4] == "SUCCESS SUCCESS"
    assert lines[5].strip() == report.strip()
    assert lines[6]


def test_a_kernel_that_never_ends_is_ended() -> None:
    printed = run_alone(
        """
        from sim_launch import Kernels
        cu.start()
        kernels, flag = Kernels(cu), cu.pinned(4)
        flag[0] = b"\\0"
        kernels.launch("spin", c_uint64(ctypes.addressof(flag)))
        print(cu.status("cuCtxSynchronize"), sim.reports()[0].kind)
        """,
        CUDA_SIM_KERNEL_SECONDS="0.2",
    )
    assert printed.split(maxsplit=1) == ["LAUNCH_TIMEOUT", "time limit\n"]


def test_a_fault_in_one_stream_stops_the_kernels_of_the_others() -> None:
    printed = run_alone(
        """
        from sim_launch import Kernels
        cu.start()
        kernels, flag, one, two = Kernels(cu), cu.pinned(4), cu.stream(NON_BLOCKING), cu.stream(NON_BLOCKING)
        kernels.launch("spin", c_uint64(ctypes.addressof(flag)), stream=one)
        ran = []
        cu.launch(one, lambda: ran.append(True))
        kernels.launch("traps", stream=two)
        print(cu.status("cuStreamSynchronize", one), ran, len(sim.reports()))
        """
    )
    assert printed.strip() == "LAUNCH_FAILED [] 1"


def test_peers_need_access_in_kernels() -> None:
    printed = run_alone(
        """
        from sim_launch import Kernels
        first = cu.start(0)
        memory = cu.alloc(4)
        second = cu.start(1)
        cu.cuCtxEnablePeerAccess(first, 0)
        kernels = Kernels(cu)
        kernels.launch("store", memory, c_uint(3))
        print(cu.status("cuCtxSynchronize"), cu.read(memory, 4) == b"\\3\\0\\0\\0")
        cu.cuCtxDisablePeerAccess(first)
        kernels.launch("store", memory, c_uint(4))
        print(cu.status("cuCtxSynchronize"))
        """,
        CUDA_SIM_DEVICES="2",
    )
    assert printed.split() == ["SUCCESS", "True", "ILLEGAL_ADDRESS"]


def test_eight_threads_launch(cu: Driver, kernels: Kernels, sim: ModuleType) -> None:
    context, function = cu.out(c_void_p, "cuCtxGetCurrent"), kernels["count"]
    errors: list[str] = []

    def work() -> None:
        cu.cuCtxSetCurrent(context)
        for _ in range(50):
            status = cu.status("cuLaunchKernel", function, 2, 1, 1, 4, 1, 1, 0, PER_THREAD, None, None)
            if status != "SUCCESS":
                errors.append(status)
        cu.cuStreamSynchronize(PER_THREAD)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    size = c_size_t()
    pointer = cu.out(c_uint64, "cuModuleGetGlobal_v2", byref(size), kernels.module, b"counters")
    assert struct.unpack("I", cu.read(pointer, 4)) == (1 + 8 * 50 * 8,)


def test_a_saxpy_of_a_million_elements(cu: Driver, kernels: Kernels) -> None:
    n = 1_000_000
    x, y = cu.alloc(4 * n), cu.alloc(4 * n)
    cu.cuMemsetD32_v2(x, 0x3F800000, c_size_t(n))
    cu.cuMemsetD32_v2(y, 0x3F800000, c_size_t(n))
    kernels.launch("saxpy", c_uint(n), c_float(2), x, y, grid=((n + 255) // 256, 1, 1), block=(256, 1, 1))
    cu.cuCtxSynchronize()
    assert cu.read(offset(y, 4 * n - 4), 4) == struct.pack("f", 3)
    for pointer in (x, y):
        cu.cuMemFree_v2(pointer)
