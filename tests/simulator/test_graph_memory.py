# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

"""Memory of allocation nodes: when it is there, who frees it, and how it is accounted for."""

from __future__ import annotations

import time
from types import ModuleType
from typing import Any

import pytest
from sim_driver import (
    AccessDesc,
    Driver,
    Gate,
    Location,
    PoolProps,
    byref,
    c_int,
    c_size_t,
    c_uint64,
    c_void_p,
    ctypes,
    run_alone,
)
from sim_graphs import (
    AUTO_FREE,
    GRAPH,
    MEM_ALLOC,
    MEM_FREE,
    AllocParams,
    ChildParams,
    Graphs,
    NodeParams,
    ask,
    handles,
)

USED, USED_HIGH, RESERVED, RESERVED_HIGH = range(4)


@pytest.fixture(autouse=True)
def trimmed(cu: Driver) -> None:
    cu.cuDeviceGraphMemTrim(0)
    for attribute in (USED_HIGH, RESERVED_HIGH):
        cu.cuDeviceSetGraphMemAttribute(0, attribute, byref(c_uint64(0)))


def account(cu: Driver, attribute: int) -> int:
    value = c_uint64(99)
    cu.cuDeviceGetGraphMemAttribute(0, attribute, byref(value))
    return value.value


def live(sim: ModuleType) -> int:
    return int(sim.live()["graph allocations"].number)


def test_memory_lives_between_its_nodes(graphs: Graphs, cu: Driver, sim: ModuleType) -> None:
    graph, target = graphs.graph(), ctypes.create_string_buffer(1000)
    allocated, address = graphs.alloc(graph, 1000)
    filled = graphs.fill(graph, address, 5, 1000, allocated)
    copied = graphs.copy(graph, ctypes.addressof(target), address, 1000, filled)
    graphs.free(graph, address, copied)
    assert address.value
    executable = graphs.instantiate(graph)
    for _ in range(3):
        cu.cuGraphLaunch(executable, None)
    cu.cuStreamSynchronize(None)
    assert target.raw == b"\5" * 1000
    assert live(sim) == 0
    assert sim.reports() == []


def test_a_graph_that_frees_its_memory_is_launched_again_while_it_has_it(
    graphs: Graphs, cu: Driver, sim: ModuleType
) -> None:
    graph, stream, gate, target = graphs.graph(), cu.stream(), Gate(), cu.alloc(64)
    allocated, address = graphs.alloc(graph, 64)
    filled = graphs.fill(graph, address, 5, 64, allocated)
    held = graphs.host(graph, gate.wait, filled)
    copied = graphs.copy(graph, target, address, 64, held)
    graphs.free(graph, address, copied)
    executable = graphs.instantiate(graph)
    cu.cuGraphLaunch(executable, stream)
    while not gate.reached:
        time.sleep(0.001)
    assert live(sim) == 1
    cu.cuGraphLaunch(executable, stream)
    assert live(sim) == 1
    gate.open()
    cu.cuStreamSynchronize(stream)
    assert cu.read(target, 64) == b"\5" * 64
    assert live(sim) == 0
    assert sim.reports() == []
    cu.cuMemFree_v2(target)
    cu.cuStreamDestroy_v2(stream)


def test_memory_that_the_graph_does_not_free_is_the_programs(graphs: Graphs, cu: Driver, sim: ModuleType) -> None:
    graph, stream = graphs.graph(), cu.stream()
    allocated, address = graphs.alloc(graph, 64)
    graphs.fill(graph, address, 3, 64, allocated)
    executable = graphs.instantiate(graph)
    gate = cu.block(stream)
    cu.cuGraphLaunch(executable, stream)
    assert live(sim) == 1
    cu.cuMemsetD8Async(address, 7, c_size_t(4), stream)
    assert cu.status("cuGraphLaunch", executable, stream) == "INVALID_VALUE"
    gate.open()
    cu.cuStreamSynchronize(stream)
    assert cu.read(address, 8) == b"\7" * 4 + b"\3" * 4
    cu.cuMemFreeAsync(address, stream)
    assert live(sim) == 0
    cu.cuGraphLaunch(executable, stream)
    cu.cuStreamSynchronize(stream)
    cu.cuMemFree_v2(address)
    assert live(sim) == 0
    assert sim.reports() == []
    cu.cuStreamDestroy_v2(stream)


def test_another_graph_may_free_it(graphs: Graphs, cu: Driver, sim: ModuleType) -> None:
    graph, other = graphs.graph(), graphs.graph()
    _, address = graphs.alloc(graph, 64)
    read = ctypes.create_string_buffer(64)
    copied = graphs.copy(other, ctypes.addressof(read), address, 64)
    graphs.free(other, address, copied)
    maker, taker = graphs.instantiate(graph), graphs.instantiate(other)
    assert cu.status("cuGraphLaunch", taker, None) == "INVALID_VALUE"
    for value in (1, 2):
        cu.cuGraphLaunch(maker, None)
        cu.cuMemsetD8_v2(address, value, c_size_t(64))
        cu.cuGraphLaunch(taker, None)
        assert live(sim) == 0
        cu.cuStreamSynchronize(None)
        assert read.raw == bytes([value]) * 64
    assert sim.reports() == []


def test_launching_again_may_free_what_is_left(graphs: Graphs, cu: Driver, sim: ModuleType) -> None:
    graph = graphs.graph()
    allocated, address = graphs.alloc(graph, 64)
    graphs.fill(graph, address, 3, 64, allocated)
    executable = graphs.instantiate(graph, AUTO_FREE)
    for _ in range(3):
        cu.cuGraphLaunch(executable, None)
    cu.cuStreamSynchronize(None)
    assert live(sim) == 1
    assert cu.read(address, 4) == b"\3" * 4
    cu.cuMemFree_v2(address)
    assert sim.reports() == []


def test_memory_outlives_its_graph_and_executable(graphs: Graphs, cu: Driver, sim: ModuleType) -> None:
    graph = graphs.graph()
    _, address = graphs.alloc(graph, 64)
    executable = graphs.instantiate(graph)
    cu.cuGraphLaunch(executable, None)
    cu.cuStreamSynchronize(None)
    cu.cuGraphExecDestroy(executable)
    cu.cuGraphDestroy(graph)
    cu.cuMemsetD8_v2(address, 1, c_size_t(64))
    assert account(cu, USED) > 0
    cu.cuMemFree_v2(address)
    assert live(sim) == 0
    cu.cuDeviceGraphMemTrim(0)
    assert account(cu, USED) == 0
    assert cu.status("cuMemFree_v2", address) == "INVALID_VALUE"
    assert [report.kind for report in sim.reports()] == ["double free"]
    sim.clear_reports()


def test_what_is_backed_is_accounted_for_until_it_is_trimmed(graphs: Graphs, cu: Driver) -> None:
    graph, size, step = graphs.graph(), 40 << 20, 32 << 20
    allocated, address = graphs.alloc(graph, size)
    graphs.free(graph, address, allocated)
    executable = graphs.instantiate(graph)
    assert [account(cu, which) for which in range(4)] == [0, 0, 0, 0]
    free, total = c_size_t(), c_size_t()
    cu.cuMemGetInfo_v2(byref(free), byref(total))
    before = free.value
    cu.cuGraphUpload(executable, None)
    assert [account(cu, which) for which in range(4)] == [2 * step] * 4
    cu.cuMemGetInfo_v2(byref(free), byref(total))
    assert before - free.value == account(cu, RESERVED)
    cu.cuGraphLaunch(executable, None)
    cu.cuStreamSynchronize(None)
    assert account(cu, USED) == 2 * step
    cu.cuGraphExecDestroy(executable)
    assert [account(cu, which) for which in range(4)] == [2 * step] * 4
    cu.cuDeviceGraphMemTrim(0)
    assert [account(cu, which) for which in range(4)] == [0, 2 * step, 0, 2 * step]
    cu.cuDeviceSetGraphMemAttribute(0, USED_HIGH, byref(c_uint64(0)))
    assert (account(cu, USED_HIGH), account(cu, RESERVED_HIGH)) == (0, 2 * step)
    cu.cuDeviceSetGraphMemAttribute(0, RESERVED_HIGH, byref(c_uint64(0)))
    assert account(cu, RESERVED_HIGH) == 0
    cu.cuMemGetInfo_v2(byref(free), byref(total))
    assert free.value == before


def test_what_runs_is_not_trimmed(graphs: Graphs, cu: Driver) -> None:
    graph, gate, stream = graphs.graph(), Gate(), cu.stream()
    allocated, address = graphs.alloc(graph, 4096, graphs.host(graph, gate.wait))
    graphs.free(graph, address, allocated)
    executable = graphs.instantiate(graph)
    cu.cuGraphLaunch(executable, stream)
    cu.cuDeviceGraphMemTrim(0)
    assert account(cu, USED) == 32 << 20
    gate.open()
    cu.cuStreamSynchronize(stream)
    cu.cuDeviceGraphMemTrim(0)
    assert account(cu, USED) == account(cu, RESERVED) == 0
    cu.cuGraphLaunch(executable, stream)
    cu.cuStreamSynchronize(stream)
    cu.cuStreamDestroy_v2(stream)


def test_attributes_that_cannot_be_asked_or_set(cu: Driver) -> None:
    for call, status in (
        (("cuDeviceGetGraphMemAttribute", 99, 0, byref(c_uint64())), "INVALID_DEVICE"),
        (("cuDeviceSetGraphMemAttribute", 99, 1, byref(c_uint64())), "INVALID_DEVICE"),
        (("cuDeviceGraphMemTrim", 99), "INVALID_DEVICE"),
        (("cuDeviceGetGraphMemAttribute", 0, 9, byref(c_uint64())), "INVALID_VALUE"),
        (("cuDeviceGetGraphMemAttribute", 0, 0, None), "INVALID_VALUE"),
        (("cuDeviceSetGraphMemAttribute", 0, USED, byref(c_uint64())), "INVALID_VALUE"),
        (("cuDeviceSetGraphMemAttribute", 0, USED_HIGH, byref(c_uint64(1))), "INVALID_VALUE"),
    ):
        assert cu.status(*call) == status, call


def test_what_graphs_with_memory_do_not_allow(graphs: Graphs, cu: Driver) -> None:
    graph, outer = graphs.graph(), graphs.graph()
    allocated, address = graphs.alloc(graph, 64)
    last = graphs.empty(graph, allocated)
    pair = handles([allocated]), handles([last]), c_size_t(1)
    count = c_size_t(0)
    refused = [
        ("cuGraphDestroyNode", last),
        ("cuGraphRemoveDependencies", graph, *pair),
        ("cuGraphClone", byref(c_void_p()), graph),
        ("cuGraphAddChildGraphNode", byref(c_void_p()), outer, None, count, graph),
    ]
    executable = graphs.instantiate(graph)
    refused.append(("cuGraphInstantiateWithFlags", byref(c_void_p()), graph, c_uint64(0)))
    for call in refused:
        assert cu.status(*call) == "NOT_SUPPORTED", call
    cu.cuGraphExecDestroy(executable)
    graphs.instantiate(graph)
    child: c_void_p = ask(cu, c_void_p, "cuGraphChildGraphNodeGetGraph", graphs.child(outer, graphs.graph()))
    params = AllocParams(props=PoolProps(alloc_type=1, location=Location(1, 0)), size=64)
    call = ("cuGraphAddMemAllocNode", byref(c_void_p()), child, None, count, byref(params))
    assert cu.status(*call) == "NOT_SUPPORTED"
    assert address.value


def test_memory_is_freed_once(graphs: Graphs, cu: Driver) -> None:
    graph, other = graphs.graph(), graphs.graph()

    def free(graph: c_void_p, address: c_uint64 | int) -> str:
        pointer = address if isinstance(address, c_uint64) else c_uint64(address)
        return cu.status("cuGraphAddMemFreeNode", byref(c_void_p()), graph, None, c_size_t(0), pointer)

    (_, a), (_, b) = graphs.alloc(graph, 64), graphs.alloc(graph, 64)
    assert free(graph, a) == "SUCCESS"
    assert free(graph, a) == free(other, a) == "INVALID_VALUE"
    assert free(other, b) == "SUCCESS"
    assert free(graph, b) == free(other, b) == "INVALID_VALUE"
    cu.cuGraphDestroy(other)
    for _ in range(3):  # graphs that may lie where the other one did
        _, c = graphs.alloc(graph, 64)
        assert free(graphs.graph(), b) == free(graphs.graph(), c) == "SUCCESS"
    memory = cu.alloc(64)
    assert free(graph, memory) == free(graph, 0) == free(graph, a.value + 8) == "INVALID_VALUE"
    cu.cuMemFree_v2(memory)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"size": 0}, "INVALID_VALUE"),
        ({"type": 0}, "INVALID_VALUE"),
        ({"type": 3}, "INVALID_VALUE"),
        ({"handle": 1}, "NOT_SUPPORTED"),
        ({"location": (0, 0)}, "INVALID_VALUE"),
        ({"location": (1, 99)}, "INVALID_VALUE"),
        ({"location": (2, 0)}, "NOT_SUPPORTED"),
        ({"location": (3, 0)}, "NOT_SUPPORTED"),
        ({"access": None}, "INVALID_VALUE"),
        ({"access": (1, 99, 3)}, "INVALID_DEVICE"),
        ({"access": (1, 0, 1)}, "NOT_SUPPORTED"),
        ({"access": (1, 0, 0)}, "NOT_SUPPORTED"),
    ],
)
def test_allocations_that_cannot_be(graphs: Graphs, cu: Driver, change: dict[str, Any], status: str) -> None:
    params = AllocParams(props=PoolProps(change.get("type", 1), change.get("handle", 0), Location(1, 0)))
    params.size = change.get("size", 64)
    if "location" in change:
        params.props.location = Location(*change["location"])
    access = AccessDesc()
    if "access" in change:
        params.access_count = 1
    if change.get("access"):
        *location, flags = change["access"]
        access.location, access.flags = Location(*location), flags
        params.access = ctypes.addressof(access)
    call = ("cuGraphAddMemAllocNode", byref(c_void_p()), graphs.graph(), None, c_size_t(0), byref(params))
    assert cu.status(*call) == status
    assert params.address == 0


@pytest.mark.parametrize(("kind", "access"), [(2, (1, 0, 3)), (1, (1, 0, 3)), (1, (2, 0, 3))])
def test_allocations_may_be_managed_and_open_to_the_host(
    graphs: Graphs, cu: Driver, kind: int, access: tuple[int, int, int]
) -> None:
    desc = AccessDesc(Location(*access[:2]), access[2])
    params = AllocParams(PoolProps(alloc_type=kind, location=Location(1, 0)), ctypes.addressof(desc), 1, 64)
    graph = graphs.graph()
    node = graphs.node("MemAllocNode", graph, [], byref(params))
    read = ask(cu, AllocParams, "cuGraphMemAllocNodeGetParams", node)
    assert (read.props.alloc_type, read.access_count, read.size) == (kind, 1, 64)
    graphs.fill(graph, c_uint64(params.address), 1, 64, node)
    graphs.run(graph)
    cu.cuMemFree_v2(c_uint64(params.address))


def test_memory_nodes_tell_what_they_were_made_with(graphs: Graphs, cu: Driver) -> None:
    graph = graphs.graph()
    node, address = graphs.alloc(graph, 100)
    read = ask(cu, AllocParams, "cuGraphMemAllocNodeGetParams", node)
    assert (read.size, read.address, read.props.location.id) == (100, address.value, 0)
    freed = graphs.free(graph, address, node)
    assert ask(cu, c_uint64, "cuGraphMemFreeNodeGetParams", freed).value == address.value
    assert [ask(cu, c_int, "cuGraphNodeGetType", n).value for n in (node, freed)] == [MEM_ALLOC, MEM_FREE]
    params = NodeParams(type=MEM_FREE)
    params.address = address.value
    assert cu.status("cuGraphNodeSetParams", freed, byref(params)) == "NOT_SUPPORTED"


def test_the_memory_is_not_known_before_it_is_there(graphs: Graphs, cu: Driver) -> None:
    graph = graphs.graph()
    _, address = graphs.alloc(graph, 100)
    device_ordinal, memory_type, range_size, is_managed, sync_memops = 9, 2, 12, 8, 6
    attributes = (device_ordinal, memory_type, range_size, is_managed)

    def ask() -> list[str]:
        return [cu.status("cuPointerGetAttribute", byref(c_uint64()), number, address) for number in attributes]

    executable = graphs.instantiate(graph)
    assert ask() == ["INVALID_VALUE"] * 4
    cu.cuGraphUpload(executable, None)
    assert ask() == ["INVALID_VALUE"] * 4
    cu.cuGraphLaunch(executable, None)
    assert cu.pointer_attribute(address, device_ordinal) == 0
    assert cu.pointer_attribute(address, memory_type) == 2
    assert cu.pointer_attribute(address, range_size, c_size_t) == 100
    assert cu.pointer_attribute(address, is_managed) == cu.pointer_attribute(address, sync_memops) == 0
    cu.cuMemFreeAsync(address, None)
    assert ask() == ["INVALID_VALUE"] * 4


def test_memory_that_an_executable_leaves_is_not_freed_by_its_graph_any_more(graphs: Graphs, cu: Driver) -> None:
    graph = graphs.graph()
    node, address = graphs.alloc(graph, 64)
    executable = graphs.instantiate(graph)
    call = ("cuGraphAddMemFreeNode", byref(c_void_p()), graph, handles([node]), c_size_t(1), address)
    assert cu.status(*call) == "INVALID_VALUE"
    graphs.empty(graph)
    cu.cuGraphExecDestroy(executable)
    assert cu.status(*call) == "SUCCESS"


def test_freeing_what_no_launch_has_allocated_is_refused_and_no_misuse(
    graphs: Graphs, cu: Driver, sim: ModuleType
) -> None:
    graph = graphs.graph()
    _, address = graphs.alloc(graph, 100)
    assert cu.status("cuMemFreeAsync", address, None) == "INVALID_VALUE"
    graphs.run(graph)
    assert cu.status("cuMemFreeAsync", address, None) == "SUCCESS"
    assert cu.status("cuMemFreeAsync", address, None) == "INVALID_VALUE"
    cu.cuStreamSynchronize(None)
    assert (live(sim), sim.reports()) == (0, [])


def test_a_graph_with_memory_may_be_moved_into_another(graphs: Graphs, cu: Driver, sim: ModuleType) -> None:
    graph, inner = graphs.graph(), graphs.graph()
    allocated, address = graphs.alloc(inner, 64)
    graphs.free(inner, address, graphs.fill(inner, address, 1, 64, allocated))
    params = NodeParams(type=GRAPH)
    params.child = ChildParams(inner.value, 1)
    cu.cuGraphAddNode_v2(byref(c_void_p()), graph, None, None, c_size_t(0), byref(params))
    assert cu.status("cuGraphClone", byref(c_void_p()), graph) == "NOT_SUPPORTED"
    graphs.run(graph)
    assert live(sim) == 0


def test_more_than_the_device_has_is_refused_when_it_is_needed(graphs: Graphs, cu: Driver) -> None:
    graph = graphs.graph()
    graphs.alloc(graph, 64 << 30)
    executable = graphs.instantiate(graph)
    assert cu.status("cuGraphLaunch", executable, None) == "OUT_OF_MEMORY"
    assert cu.status("cuGraphUpload", executable, None) == "OUT_OF_MEMORY"
    assert account(cu, USED) == 0


def test_use_outside_of_its_life_is_reported() -> None:
    printed = run_alone(
        """
        from sim_graphs import Graphs
        cu.start()
        graphs = Graphs(cu)
        graph = graphs.graph()
        allocated, address = graphs.alloc(graph, 64)
        freed = graphs.free(graph, address, allocated)
        graphs.fill(graph, address, 1, 64, freed)
        executable = graphs.instantiate(graph)
        cu.cuGraphLaunch(executable, None)
        print(cu.status("cuStreamSynchronize", None), [r.kind for r in sim.reports()])
        """
    )
    assert printed.strip() == "ILLEGAL_ADDRESS ['use after free']"
