# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

"""Executable graphs: what their nodes do, in which order, and how launches follow each other."""

from __future__ import annotations

import threading
from types import ModuleType

import pytest
from sim_driver import (
    NON_BLOCKING,
    PER_THREAD,
    Driver,
    Gate,
    byref,
    c_float,
    c_size_t,
    c_uint,
    c_uint64,
    c_void_p,
    ctypes,
    offset,
    run_alone,
)
from sim_graphs import (
    AUTO_FREE,
    DEVICE_LAUNCH,
    KERNEL,
    NODE_PRIORITY,
    UPLOAD,
    CopyParams,
    FillParams,
    Graphs,
    HostParams,
    InstantiateParams,
    KernelParams,
    NodeParams,
    ask,
    copy_params,
)
from sim_kernels import KERNELS


def test_nodes_run_after_what_they_depend_on(graphs: Graphs, cu: Driver) -> None:
    graph, order = graphs.graph(), []
    lock = threading.Lock()

    def step(name: str) -> object:
        def run() -> None:
            with lock:
                order.append(name)

        return run

    a = graphs.host(graph, step("a"))
    left, right = graphs.host(graph, step("l"), a), graphs.host(graph, step("r"), a)
    graphs.host(graph, step("z"), left, right)
    executable, stream = graphs.instantiate(graph), cu.stream()
    for _ in range(20):
        cu.cuGraphLaunch(executable, stream)
    cu.cuStreamSynchronize(stream)
    for start in range(0, 80, 4):
        assert order[start] == "a"
        assert sorted(order[start + 1 : start + 3]) == ["l", "r"]
        assert order[start + 3] == "z"
    cu.cuStreamDestroy_v2(stream)


def test_kernels_copies_and_fills_work_together(graphs: Graphs, cu: Driver) -> None:
    n, graph = 256, graphs.graph()
    x, y = cu.alloc(4 * n), cu.alloc(4 * n)
    source, target = (c_float * n)(*range(n)), (c_float * n)()
    filled = graphs.fill(graph, y, 0, 4 * n)
    copied = graphs.copy(graph, x, ctypes.addressof(source), 4 * n)
    params = graphs.kernel_params("saxpy", c_uint(n), c_float(3), x, y, grid=2, block=128)
    kernel = graphs.node("KernelNode_v2", graph, [filled, copied], byref(params))
    graphs.copy(graph, ctypes.addressof(target), y, 4 * n, kernel)
    executable = graphs.instantiate(graph)
    for factor in (1, 2):
        for i in range(n):
            source[i] = factor * i  # copies read when they run
        cu.cuGraphLaunch(executable, None)
        cu.cuStreamSynchronize(None)
        assert list(target) == [3.0 * factor * i for i in range(n)]
    for memory in (x, y):
        cu.cuMemFree_v2(memory)


def test_copies_of_boxes_and_fills_of_rectangles(graphs: Graphs, cu: Driver) -> None:
    graph, memory, target = graphs.graph(), cu.alloc(256), cu.alloc(64)
    rectangle = FillParams(memory.value, 64, 0x0102, 2, 8, 4)
    filled = graphs.node("MemsetNode", graph, [], byref(rectangle), graphs.context)
    box = copy_params(target, memory, 16)
    box.height, box.source.pitch, box.target.pitch = 4, 64, 16
    graphs.node("MemcpyNode", graph, [filled], byref(box), graphs.context)
    graphs.run(graph)
    assert cu.read(target, 64) == b"\x02\x01" * 32
    for pointer in (memory, target):
        cu.cuMemFree_v2(pointer)


def test_a_launch_is_one_item_of_its_stream(graphs: Graphs, cu: Driver) -> None:
    graph, order, stream = graphs.graph(), [], cu.stream()
    graphs.host(graph, lambda: order.append("graph"))
    executable = graphs.instantiate(graph)
    gate = cu.block(stream)
    cu.launch(stream, lambda: order.append("before"))
    cu.cuGraphLaunch(executable, stream)
    cu.launch(stream, lambda: order.append("after"))
    assert order == []
    assert cu.status("cuStreamQuery", stream) == "NOT_READY"
    gate.open()
    cu.cuStreamSynchronize(stream)
    assert order == ["before", "graph", "after"]
    cu.cuStreamDestroy_v2(stream)


def test_launches_of_one_executable_follow_each_other(graphs: Graphs, cu: Driver) -> None:
    graph, running, most = graphs.graph(), [0], [0]
    gate = Gate()

    def inside() -> None:
        running[0] += 1
        most[0] = max(most[0], running[0])
        gate.wait()
        running[0] -= 1

    graphs.host(graph, inside)
    executable = graphs.instantiate(graph)
    streams = [cu.stream(NON_BLOCKING) for _ in range(3)]
    for stream in streams:
        cu.cuGraphLaunch(executable, stream)
    free = cu.stream(NON_BLOCKING)
    cu.cuStreamSynchronize(free)
    assert all(cu.status("cuStreamQuery", stream) == "NOT_READY" for stream in streams)
    gate.open()
    for stream in (*streams, free):
        cu.cuStreamSynchronize(stream)
        cu.cuStreamDestroy_v2(stream)
    assert most == [1]


def test_branches_run_at_the_same_time(graphs: Graphs, cu: Driver) -> None:
    graph, met = graphs.graph(), threading.Barrier(8)
    for _ in range(8):
        graphs.host(graph, lambda: met.wait(30))
    graphs.run(graph)
    assert not met.broken


def test_a_branch_may_open_the_way_for_another(graphs: Graphs, cu: Driver) -> None:
    graph, flag = graphs.graph(), cu.pinned(4)
    graphs.kernel(graph, "spin", c_uint64(ctypes.addressof(flag)))
    last = graphs.empty(graph)
    for _ in range(100):
        last = graphs.empty(graph, last)

    def write() -> None:
        flag[0] = b"\1"

    graphs.host(graph, write, last)
    graphs.run(graph)
    cu.cuMemFreeHost(flag)


def test_child_graphs_run_in_their_place(graphs: Graphs, cu: Driver) -> None:
    inner, graph, order = graphs.graph(), graphs.graph(), []
    one = graphs.host(inner, lambda: order.append("in 1"))
    graphs.host(inner, lambda: order.append("in 2"), one)
    before = graphs.host(graph, lambda: order.append("before"))
    child = graphs.child(graph, inner, before)
    nothing = graphs.child(graph, graphs.graph(), child)
    graphs.host(graph, lambda: order.append("after"), nothing)
    graphs.run(graph)
    assert order == ["before", "in 1", "in 2", "after"]


def test_an_empty_graph_can_be_launched(graphs: Graphs, cu: Driver) -> None:
    graphs.run(graphs.graph())
    executable = graphs.instantiate(graphs.graph())
    cu.cuGraphUpload(executable, None)
    cu.cuGraphLaunch(executable, PER_THREAD)
    cu.cuGraphLaunch_ptsz(executable, None)
    cu.cuStreamSynchronize(PER_THREAD)


def test_what_changes_in_a_graph_does_not_change_its_executables(graphs: Graphs, cu: Driver) -> None:
    graph, memory = graphs.graph(), cu.alloc(4)
    node = graphs.kernel(graph, "store", memory, c_uint(1))
    executable = graphs.instantiate(graph)
    params = graphs.kernel_params("store", memory, c_uint(2))
    cu.cuGraphKernelNodeSetParams_v2(node, byref(params))
    graphs.run(graph)
    assert cu.read(memory, 4) == b"\2\0\0\0"
    cu.cuGraphDestroy(graph)
    cu.cuGraphLaunch(executable, None)
    cu.cuStreamSynchronize(None)
    assert cu.read(memory, 4) == b"\1\0\0\0"
    cu.cuMemFree_v2(memory)


def test_kernel_nodes_keep_their_arguments(graphs: Graphs, cu: Driver) -> None:
    graph, memory, value = graphs.graph(), cu.alloc(4), c_uint(5)
    node = graphs.kernel(graph, "store", memory, value)
    value.value = 6
    read = KernelParams()
    cu.cuGraphKernelNodeGetParams_v2(node, byref(read))
    assert (read.function, list(read.grid), list(read.block)) == (graphs.function("store").value, [1] * 3, [1] * 3)
    pointers = (c_void_p * 2).from_address(read.params)
    assert c_uint.from_address(pointers[1]).value == 5
    other = graphs.node("KernelNode_v2", graph, [node], byref(read))  # what was read can be used again
    packed = (c_uint64 * 2)(memory.value, 7)
    size = c_size_t(12)
    extra = (c_void_p * 5)(1, ctypes.addressof(packed), 2, ctypes.addressof(size), None)
    params = KernelParams(graphs.function("store").value, (1, 1, 1), (1, 1, 1), 0, None, ctypes.addressof(extra))
    graphs.node("KernelNode_v2", graph, [other], byref(params))
    graphs.run(graph)
    assert cu.read(memory, 4) == b"\7\0\0\0"
    cu.cuMemFree_v2(memory)


def test_a_node_tells_function_kernel_and_context_whichever_it_was_given(graphs: Graphs, cu: Driver) -> None:
    library: c_void_p = cu.out(c_void_p, "cuLibraryLoadData", KERNELS, None, None, 0, None, None, 0)
    kernel: c_void_p = cu.out(c_void_p, "cuLibraryGetKernel", library, b"nothing")
    function: c_void_p = cu.out(c_void_p, "cuKernelGetFunction", kernel)
    of_module = graphs.function("nothing").value
    graph = graphs.graph()
    for given, told in (
        ((None, kernel.value), (function.value, kernel.value)),
        ((function.value, None), (function.value, kernel.value)),
        ((of_module, None), (of_module, None)),
        ((of_module, kernel.value), (of_module, None)),
    ):
        params = KernelParams(given[0], (1, 1, 1), (1, 1, 1), 0, None, None, given[1])
        node = graphs.node("KernelNode_v2", graph, [], byref(params))
        read = ask(cu, KernelParams, "cuGraphKernelNodeGetParams_v2", node)
        assert (read.function, read.kernel) == told
        assert (read.context, read.params) == (graphs.context.value, None)
    params = KernelParams(kernel.value, (1, 1, 1), (1, 1, 1))
    assert (
        cu.status("cuGraphAddKernelNode_v2", byref(c_void_p()), graph, None, c_size_t(0), byref(params))
        == "INVALID_HANDLE"
    )
    graphs.run(graph)
    cu.cuLibraryUnload(library)


@pytest.mark.parametrize(
    ("name", "size", "status"),
    [
        ("store", 8, "SUCCESS"),
        ("store", 12, "SUCCESS"),
        ("store", 0, "INVALID_VALUE"),
        ("store", 13, "INVALID_VALUE"),
        ("store", 32, "INVALID_VALUE"),
        ("nothing", 0, "SUCCESS"),
        ("nothing", 8, "SUCCESS"),
    ],
)
def test_a_buffer_with_arguments_may_be_short_but_not_long(
    graphs: Graphs, cu: Driver, name: str, size: int, status: str
) -> None:
    memory, length = cu.alloc(4), c_size_t(size)
    packed = (c_uint64 * 4)(memory.value, 7)
    extra = (c_void_p * 5)(1, ctypes.addressof(packed), 2, ctypes.addressof(length), None)
    params = KernelParams(graphs.function(name).value, (1, 1, 1), (1, 1, 1), 0, None, ctypes.addressof(extra))
    graph = graphs.graph()
    call = ("cuGraphAddKernelNode_v2", byref(c_void_p()), graph, None, c_size_t(0), byref(params))
    assert cu.status(*call) == status
    graphs.run(graph)
    cu.cuMemFree_v2(memory)


def test_parameters_that_a_node_cannot_have_are_refused(graphs: Graphs, cu: Driver, sim: ModuleType) -> None:
    graph, memory = graphs.graph(), cu.alloc(64)

    def add(kind: str, *params: object) -> str:
        return cu.status(f"cuGraphAdd{kind}", byref(c_void_p()), graph, None, c_size_t(0), *params)

    for change in ("grid", "block", "params", "shared", "function"):
        params = graphs.kernel_params("store", memory, c_uint(1))
        bad = {"grid": (0, 1, 1), "block": (1025, 1, 1), "params": None, "shared": 1 << 20, "function": None}[change]
        setattr(params, change, bad)
        status = "INVALID_HANDLE" if change == "function" else "INVALID_VALUE"
        assert add("KernelNode_v2", byref(params)) == status, change
    params = graphs.kernel_params("nothing")
    params.function = 12345
    assert add("KernelNode_v2", byref(params)) == "INVALID_HANDLE"
    assert (
        add("KernelNode_v2", None) == add("HostNode", None) == add("HostNode", byref(HostParams())) == "INVALID_VALUE"
    )
    for fill in (
        FillParams(memory.value, 0, 0, 3, 4, 1),
        FillParams(memory.value, 0, 0, 1, 65, 1),
        FillParams(memory.value, 0, 0, 1, 0, 1),
        FillParams(memory.value + 1, 0, 0, 4, 1, 1),
        FillParams(memory.value, 8, 0, 1, 16, 2),
    ):
        assert add("MemsetNode", byref(fill), graphs.context) == "INVALID_VALUE"
    host = ctypes.create_string_buffer(64)
    for copy in (
        copy_params(memory, ctypes.addressof(host), 65),
        copy_params(memory, ctypes.addressof(host), 0),
        copy_params(c_uint64(0), memory, 4),
        CopyParams(width=1, height=1, depth=1),
    ):
        assert add("MemcpyNode", byref(copy), graphs.context) == "INVALID_VALUE"
    assert add("MemsetNode", byref(FillParams(memory.value, 0, 0, 1, 4, 1)), c_void_p(7)) == "INVALID_CONTEXT"
    assert add("EventRecordNode", None) == "INVALID_VALUE"
    assert graphs.nodes(graph) == []
    cu.cuMemFree_v2(memory)
    assert {report.kind for report in sim.reports()} == {"out of bounds"}
    sim.clear_reports()


def test_event_nodes_record_and_wait(graphs: Graphs, cu: Driver) -> None:
    graph, gate, order = graphs.graph(), Gate(), []
    started, ended, outside = cu.event(), cu.event(), cu.event(2)
    a = graphs.node("EventRecordNode", graph, [], started)
    b = graphs.host(graph, gate.wait, a)
    c = graphs.node("EventRecordNode", graph, [b], ended)
    d = graphs.node("EventWaitNode", graph, [c], outside)
    graphs.host(graph, lambda: order.append("graph"), d)
    executable, stream, other = graphs.instantiate(graph), cu.stream(NON_BLOCKING), cu.stream(NON_BLOCKING)
    hold = cu.block(other)
    cu.launch(other, lambda: order.append("other"))
    cu.cuEventRecord(outside, other)
    cu.cuGraphLaunch(executable, stream)
    cu.cuEventSynchronize(started)
    assert cu.status("cuEventQuery", ended) == "NOT_READY"
    third = cu.stream(NON_BLOCKING)
    cu.cuStreamWaitEvent(third, ended, 0)
    cu.launch(third, lambda: order.append("third"))
    gate.open()
    cu.cuEventSynchronize(ended)
    cu.cuStreamSynchronize(third)
    assert order == ["third"]
    hold.open()
    cu.cuStreamSynchronize(stream)
    assert order == ["third", "other", "graph"]
    milliseconds = c_float(-1)
    cu.cuEventElapsedTime(byref(milliseconds), started, ended)
    assert milliseconds.value >= 0
    assert ask(cu, c_void_p, "cuGraphEventRecordNodeGetEvent", a).value == started.value
    cu.cuGraphEventWaitNodeSetEvent(d, ended)
    assert ask(cu, c_void_p, "cuGraphEventWaitNodeGetEvent", d).value == ended.value
    for event in (started, ended, outside):
        cu.cuEventDestroy_v2(event)
    for which in (stream, other, third):
        cu.cuStreamDestroy_v2(which)


class MemOpParams(ctypes.Structure):
    _fields_ = [("context", c_void_p), ("count", c_uint), ("operations", c_void_p), ("flags", c_uint)]


def test_values_are_awaited_and_written(graphs: Graphs, cu: Driver) -> None:
    graph, flag = graphs.graph(), cu.pinned(8)
    address = ctypes.addressof(flag)
    operations = (ctypes.c_uint64 * 12)(1, address, 3, 1, 0, 0, 2, address + 4, 9, 0, 0, 0)
    params = MemOpParams(graphs.context.value, 2, ctypes.addressof(operations), 0)
    graphs.node("BatchMemOpNode", graph, [], byref(params))
    executable, stream = graphs.instantiate(graph), cu.stream(NON_BLOCKING)
    cu.cuGraphLaunch(executable, stream)
    assert cu.status("cuStreamQuery", stream) == "NOT_READY"
    flag[0] = b"\3"
    cu.cuStreamSynchronize(stream)
    assert flag.raw == b"\3\0\0\0\x09\0\0\0"
    cu.cuMemFreeHost(flag)
    cu.cuStreamDestroy_v2(stream)


def test_an_executable_that_is_destroyed_runs_to_its_end(graphs: Graphs, cu: Driver, sim: ModuleType) -> None:
    graph, gate, done, stream = graphs.graph(), Gate(), [], cu.stream()
    graphs.host(graph, lambda: done.append(1), graphs.host(graph, gate.wait))
    executable = graphs.instantiate(graph)
    before = sim.live()
    cu.cuGraphLaunch(executable, stream)
    cu.cuGraphLaunch(executable, stream)
    cu.cuGraphExecDestroy(executable)
    assert cu.status("cuGraphLaunch", executable, stream) == cu.status("cuGraphExecDestroy", executable)
    cu.cuGraphDestroy(graph)
    assert sim.live()["executable graphs"].number == before["executable graphs"].number - 1
    assert sim.live()["graph launches pending"].number == 2
    gate.open()
    cu.cuStreamSynchronize(stream)
    assert done == [1, 1]
    assert sim.live()["graph launches pending"].number == 0
    cu.cuStreamDestroy_v2(stream)


def test_instantiation_can_upload(graphs: Graphs, cu: Driver) -> None:
    graph, stream = graphs.graph(), cu.stream()
    params = InstantiateParams(flags=UPLOAD, stream=stream.value)
    executable = c_void_p()
    cu.cuGraphInstantiateWithParams(byref(executable), graph, byref(params))
    assert ask(cu, c_uint64, "cuGraphExecGetFlags", executable).value == 0
    assert ask(cu, c_uint, "cuGraphExecGetId", executable).value > 0
    cu.cuGraphExecDestroy(executable)
    assert cu.status("cuGraphInstantiateWithFlags", byref(executable), graph, c_uint64(UPLOAD)) == "INVALID_VALUE"
    cu.cuStreamDestroy_v2(stream)


def test_graphs_for_launches_from_the_device_hold_plain_work_only(graphs: Graphs, cu: Driver) -> None:
    graph, mixed = graphs.graph(), graphs.graph()
    params, executable = InstantiateParams(flags=DEVICE_LAUNCH), c_void_p()
    call = "cuGraphInstantiateWithParams"
    assert cu.status(call, byref(executable), graph, byref(params)) == "INVALID_VALUE"
    graphs.kernel(graph, "nothing")
    graphs.kernel(mixed, "nothing")
    memory, buffer = cu.alloc(16), ctypes.create_string_buffer(16)
    host = graphs.host(mixed, lambda: None)
    pageable = graphs.graph()
    copy = graphs.copy(pageable, memory, ctypes.addressof(buffer), 16)
    for other, node in ((mixed, host), (pageable, copy)):
        assert cu.status(call, byref(executable), other, byref(params)) == "INVALID_VALUE"
        assert (params.result, params.node) == (3, node.value)
    cu.cuMemFree_v2(memory)
    cu.cuGraphInstantiateWithParams(byref(executable), graph, byref(params))
    assert ask(cu, c_uint64, "cuGraphExecGetFlags", executable).value == DEVICE_LAUNCH
    cu.cuGraphLaunch(executable, None)
    cu.cuStreamSynchronize(None)
    cu.cuGraphExecDestroy(executable)


@pytest.mark.parametrize("flags", [0, AUTO_FREE, DEVICE_LAUNCH, NODE_PRIORITY, AUTO_FREE | NODE_PRIORITY])
def test_an_executable_tells_how_it_is_launched_only(graphs: Graphs, cu: Driver, flags: int) -> None:
    graph = graphs.graph()
    graphs.kernel(graph, "nothing")
    executable = graphs.instantiate(graph, flags)
    assert ask(cu, c_uint64, "cuGraphExecGetFlags", executable).value == flags & ~NODE_PRIORITY


def test_kernels_by_library_run_in_the_context_of_the_node(graphs: Graphs, cu: Driver) -> None:
    library = c_void_p()
    cu.cuLibraryLoadData(byref(library), KERNELS, None, None, 0, None, None, 0)
    kernel: c_void_p = cu.out(c_void_p, "cuLibraryGetKernel", library, b"store")
    graph, memory = graphs.graph(), cu.alloc(4)
    params = graphs.kernel_params("store", memory, c_uint(3))
    params.function, params.kernel, params.context = None, kernel.value, graphs.context.value
    node = graphs.node("KernelNode_v2", graph, [], byref(params))
    read = NodeParams()
    cu.cuGraphNodeGetParams(node, byref(read))
    function: c_void_p = cu.out(c_void_p, "cuKernelGetFunction", kernel)
    assert (read.type, read.kernel.kernel, read.kernel.function) == (KERNEL, kernel.value, function.value)
    graphs.run(graph)
    assert cu.read(memory, 4) == b"\3\0\0\0"
    cu.cuLibraryUnload(library)
    cu.cuMemFree_v2(memory)


def test_memory_that_is_freed_before_a_launch_is_reported() -> None:
    printed = run_alone(
        """
        from sim_graphs import Graphs
        context = cu.start()
        graphs = Graphs(cu)
        graph, memory = graphs.graph(), cu.alloc(64)
        graphs.fill(graph, memory, 1, 64)
        executable = graphs.instantiate(graph)
        cu.cuMemFree_v2(memory)
        cu.cuGraphLaunch(executable, None)
        print(cu.status("cuStreamSynchronize", None), [r.kind for r in sim.reports()], sim.reports()[0].call)
        print(cu.status("cuGraphLaunch", executable, None))
        """
    )
    assert printed.split("\n")[:2] == ["ILLEGAL_ADDRESS ['use after free'] cuGraphAddMemsetNode", "ILLEGAL_ADDRESS"]


def test_a_kernel_that_fails_ends_the_launch_and_nothing_waits_for_ever() -> None:
    printed = run_alone(
        """
        from sim_graphs import Graphs
        cu.start()
        graphs = Graphs(cu)
        graph, after, event = graphs.graph(), [], cu.event()
        failing = graphs.kernel(graph, "traps")
        graphs.host(graph, lambda: after.append(1), failing)
        graphs.node("EventRecordNode", graph, [failing], event)
        executable = graphs.instantiate(graph)
        cu.cuGraphLaunch(executable, None)
        while cu.status("cuStreamQuery", None) == "NOT_READY":
            time.sleep(0.001)
        for _ in range(1000):  # from then on nothing can be waited for
            if not sim.live()["graph launches pending"].number:
                break
            time.sleep(0.01)
        print(cu.status("cuStreamSynchronize", None), after, sim.live()["graph launches pending"].number)
        print(cu.status("cuEventSynchronize", event), cu.status("cuGraphExecDestroy", executable))
        """
    )
    first, second = printed.split("\n")[:2]
    assert first.endswith("[] 0")
    assert not first.startswith("SUCCESS")
    assert second.endswith("SUCCESS")


def test_launches_from_many_threads(graphs: Graphs, cu: Driver) -> None:
    memory = cu.alloc(128)
    executables = []
    for part in range(2):  # each with memory of its own, because their launches overlap
        graph = graphs.graph()
        for place in range(16):
            graphs.fill(graph, offset(memory, 64 * part + 4 * place), place, 4)
        executables.append(graphs.instantiate(graph))
    failures: list[str] = []

    def work(number: int) -> None:
        cu.cuCtxSetCurrent(graphs.context)
        stream = cu.stream(NON_BLOCKING)
        for _ in range(50):
            status = cu.status("cuGraphLaunch", executables[number % 2], stream)
            if status != "SUCCESS":
                failures.append(status)
        cu.cuStreamSynchronize(stream)
        cu.cuStreamDestroy_v2(stream)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert cu.read(memory, 128) == 2 * b"".join(bytes([place]) * 4 for place in range(16))
    cu.cuMemFree_v2(memory)


@pytest.mark.parametrize("function", ["cuGraphCreate", "cuGraphAddEmptyNode", "cuGraphLaunch", "cuGraphExecDestroy"])
def test_faults_are_injected_and_calls_traced(graphs: Graphs, cu: Driver, sim: ModuleType, function: str) -> None:
    graph = graphs.graph()
    arguments = {
        "cuGraphCreate": (byref(c_void_p()), 0),
        "cuGraphAddEmptyNode": (byref(c_void_p()), graph, None, c_size_t(0)),
        "cuGraphLaunch": (graphs.instantiate(graph), None),
        "cuGraphExecDestroy": (graphs.instantiate(graph),),
    }[function]
    with sim.fail(function, "CUDA_ERROR_OUT_OF_MEMORY"), sim.trace() as calls:
        assert cu.status(function, *arguments) == "OUT_OF_MEMORY"
    assert calls.names == [function]
