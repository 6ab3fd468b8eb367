# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

"""Conditional nodes: what they run, how kernels decide it, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ptx_runner import compiled
from sim_conditions import ASSIGN, IF, SWITCH, WHILE, ConditionalParams, Conditions
from sim_driver import Driver, byref, c_size_t, c_uint, c_uint64, c_void_p, ctypes, run_alone
from sim_graphs import (
    CONDITIONAL,
    GRAPH,
    RELAXED,
    ChildParams,
    Graphs,
    InstantiateParams,
    KernelParams,
    NodeParams,
)

SOURCE = """
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);
extern "C" __global__ void step(unsigned long long handle, unsigned *sum, unsigned most)
{
    *sum += 3;
    cudaGraphSetConditional(handle, *sum < most);
}
"""


@pytest.fixture
def conditions(graphs: Graphs) -> Iterator[Conditions]:
    conditions = Conditions(graphs)
    yield conditions
    conditions.cu.cuCtxSynchronize()
    conditions.cu.cuModuleUnload(conditions.module)
    conditions.cu.cuMemFree_v2(conditions.memory)


@pytest.mark.parametrize(
    ("value", "size", "expected"), [(0, 1, [0, 0]), (5, 1, [1, 0]), (0, 2, [0, 1]), (5, 2, [1, 0])]
)
def test_if_runs_one_of_its_graphs(
    graphs: Graphs, conditions: Conditions, value: int, size: int, expected: list[int]
) -> None:
    graph = graphs.graph()
    handle = conditions.handle(graph)
    decide = conditions.kernel(graph, "set", handle, c_uint(value))
    node, bodies = conditions.node(graph, handle, IF, size, (decide,))
    for place, body in enumerate(bodies):
        conditions.mark(body, place)
    conditions.mark(graph, 2, (node,))
    graphs.run(graph)
    assert conditions.marks(3) == [*expected, 1]


@pytest.mark.parametrize("value", range(5))
def test_switch_runs_the_graph_with_the_number_of_the_value(graphs: Graphs, conditions: Conditions, value: int) -> None:
    graph = graphs.graph()
    handle = conditions.handle(graph, 99)
    decide = conditions.kernel(graph, "set", handle, c_uint(value))
    _, bodies = conditions.node(graph, handle, SWITCH, 4, (decide,))
    for place, body in enumerate(bodies):
        conditions.mark(body, place)
    graphs.run(graph)
    assert conditions.marks(4) == [int(place == value) for place in range(4)]


def test_while_runs_its_graph_until_the_condition_is_false(cu: Driver, graphs: Graphs, conditions: Conditions) -> None:
    graph = graphs.graph()
    handle = conditions.handle(graph, 1)
    _, (body,) = conditions.node(graph, handle, WHILE)
    counted = graphs.kernel(body, "count")
    conditions.kernel(body, "count_down", handle, conditions.memory, after=(counted,))
    counters: c_uint64 = cu.out(c_uint64, "cuModuleGetGlobal_v2", byref(c_size_t()), graphs.module, b"counters")
    executable = graphs.instantiate(graph)
    for rounds in (100, 7):
        cu.cuMemsetD32_v2(counters, 0, c_size_t(1))
        cu.cuMemsetD32_v2(conditions.memory, rounds, c_size_t(1))
        cu.cuGraphLaunch(executable, None)
        assert c_uint.from_buffer_copy(cu.read(counters, 4)).value == rounds
        assert conditions.marks(1) == [0]


def test_a_kernel_that_nvrtc_compiled_sets_a_condition(cu: Driver, graphs: Graphs, conditions: Conditions) -> None:
    module: c_void_p = cu.out(c_void_p, "cuModuleLoadData", compiled(SOURCE) + b"\0")
    function: c_void_p = cu.out(c_void_p, "cuModuleGetFunction", module, b"step")
    graph = graphs.graph()
    handle = conditions.handle(graph, 1)
    _, (body,) = conditions.node(graph, handle, WHILE)
    arguments = (handle, conditions.memory, c_uint(10))
    pointers = (c_void_p * 3)(*(ctypes.addressof(argument) for argument in arguments))
    params = KernelParams(function.value, (1, 1, 1), (1, 1, 1), 0, ctypes.addressof(pointers))
    graphs.node("KernelNode_v2", body, [], byref(params))
    graphs.run(graph)
    assert conditions.marks(1) == [12]
    cu.cuModuleUnload(module)


def test_defaults_are_assigned_at_each_launch_if_the_handle_says_so(
    cu: Driver, graphs: Graphs, conditions: Conditions
) -> None:
    for flags, second in ((ASSIGN, 1), (0, 0)):
        graph = graphs.graph()
        handle = conditions.handle(graph, 1, flags)
        first, (body,) = conditions.node(graph, handle, IF)
        conditions.mark(body, 0)
        conditions.kernel(graph, "set", handle, c_uint(0), after=(first,))
        executable = graphs.instantiate(graph)
        for expected in (1 if flags else 0, second):
            conditions.clear()
            cu.cuGraphLaunch(executable, None)
            assert conditions.marks(1) == [expected]


def test_conditions_nest(cu: Driver, graphs: Graphs, conditions: Conditions) -> None:
    graph = graphs.graph()
    outer, inner = conditions.handle(graph, 1), conditions.handle(graph)
    _, (loop,) = conditions.node(graph, outer, WHILE)
    counted = conditions.kernel(loop, "count_down", outer, conditions.memory)
    decide = conditions.kernel(loop, "set", inner, c_uint(1), after=(counted,))
    child = graphs.graph()
    conditions.mark(child, 1)
    _, (body,) = conditions.node(loop, inner, IF, 1, (decide,))
    graphs.child(body, child)
    cu.cuMemsetD32_v2(conditions.memory, 3, c_size_t(1))
    graphs.run(graph)
    assert conditions.marks(2) == [0, 1]


def test_deeply_nested_conditions_run(graphs: Graphs, conditions: Conditions) -> None:
    graph = graphs.graph()
    body = graph
    for _ in range(500):
        _, (body,) = conditions.node(body, conditions.handle(body, 1), IF)
    conditions.mark(body, 0)
    graphs.run(graph)
    assert conditions.marks(1) == [1]


def test_a_loop_of_many_rounds_with_branches(cu: Driver, graphs: Graphs, conditions: Conditions) -> None:
    graph = graphs.graph()
    handle = conditions.handle(graph, 1)
    _, (body,) = conditions.node(graph, handle, WHILE)
    first = conditions.kernel(body, "count_down", handle, conditions.memory)
    for place in range(1, 5):
        conditions.mark(body, place, (first,))
    cu.cuMemsetD32_v2(conditions.memory, 500, c_size_t(1))
    graphs.run(graph)
    assert conditions.marks(5) == [0, 1, 1, 1, 1]


def test_bodies_are_captured_into(cu: Driver, graphs: Graphs, conditions: Conditions) -> None:
    graph, stream = graphs.graph(), cu.stream(1)
    handle = conditions.handle(graph, 1)
    _, (body,) = conditions.node(graph, handle, IF)
    cu.cuStreamBeginCaptureToGraph(stream, body, None, None, c_size_t(0), RELAXED)
    cu.cuMemsetD8Async(conditions.memory, 1, c_size_t(4), stream)
    cu.cuStreamEndCapture(stream, byref(c_void_p()))
    graphs.run(graph, stream)
    assert cu.read(conditions.memory, 4) == b"\1\1\1\1"
    cu.cuStreamDestroy_v2(stream)


def test_executables_have_values_of_their_own(cu: Driver, graphs: Graphs, conditions: Conditions) -> None:
    graph = graphs.graph()
    handle = conditions.handle(graph, 0, 0)
    node, (body,) = conditions.node(graph, handle, IF)
    conditions.mark(body, 0)
    conditions.kernel(graph, "set", handle, c_uint(1), after=(node,))
    one, other = graphs.instantiate(graph), graphs.instantiate(graph)
    for executable, expected in ((one, 0), (other, 0), (one, 1)):
        conditions.clear()
        cu.cuGraphLaunch(executable, None)
        assert conditions.marks(1) == [expected]


def test_an_update_brings_the_handle_along(cu: Driver, graphs: Graphs, conditions: Conditions) -> None:
    def build(value: int, size: int = 2) -> c_void_p:
        graph = graphs.graph()
        handle = conditions.handle(graph, value)
        _, bodies = conditions.node(graph, handle, SWITCH, size)
        for place, body in enumerate(bodies):
            conditions.mark(body, place)
        return graph

    executable = graphs.instantiate(build(0))
    info = (c_uint64 * 3)()
    cu.cuGraphExecUpdate_v2(executable, build(1), info)
    cu.cuGraphLaunch(executable, None)
    assert conditions.marks(2) == [0, 1]
    assert cu.status("cuGraphExecUpdate_v2", executable, build(1, 3), info) == "GRAPH_EXEC_UPDATE_FAILURE"
    assert info[0] & 0xFFFFFFFF == 6


def test_nodes_and_handles_that_cannot_be(cu: Driver, graphs: Graphs, conditions: Conditions) -> None:
    graph, other = graphs.graph(), graphs.graph()

    def add(handle: c_uint64, kind: int, size: int, into: c_void_p = graph) -> str:
        params = conditions.params(handle, kind, size)
        return cu.status("cuGraphAddNode_v2", byref(c_void_p()), into, None, None, c_size_t(0), byref(params))

    handle = conditions.handle(graph)
    for kind, size in ((IF, 0), (IF, 3), (WHILE, 2), (SWITCH, 0), (3, 1)):
        assert add(handle, kind, size) == "INVALID_VALUE"
    assert add(handle, IF, 1, other) == add(c_uint64(12345), IF, 1) == "INVALID_VALUE"
    assert add(handle, IF, 1) == "SUCCESS"
    assert add(handle, IF, 1) == "INVALID_VALUE"
    for call in (
        ("cuGraphConditionalHandleCreate", None, graph, graphs.context, 0, 0),
        ("cuGraphConditionalHandleCreate", byref(c_uint64()), None, graphs.context, 0, 0),
        ("cuGraphConditionalHandleCreate", byref(c_uint64()), graph, graphs.context, 0, 2),
    ):
        assert cu.status(*call) == "INVALID_VALUE", call
    for context in (None, c_void_p(7)):
        wrong = ("cuGraphConditionalHandleCreate", byref(c_uint64()), graph, context, 0, 0)
        assert cu.status(*wrong) == "INVALID_CONTEXT"
    _, (body,) = conditions.node(graph, conditions.handle(graph), IF)
    for inner in (graph, body):
        embed = ("cuGraphAddChildGraphNode", byref(c_void_p()), other, None, c_size_t(0), inner)
        assert cu.status(*embed) == "NOT_SUPPORTED"
        assert cu.status("cuGraphClone", byref(c_void_p()), inner) == "NOT_SUPPORTED"
    move = NodeParams(type=GRAPH)
    move.child = ChildParams(graph.value, 1)
    call = ("cuGraphAddNode_v2", byref(c_void_p()), other, None, None, c_size_t(0), byref(move))
    assert cu.status(*call) == "NOT_SUPPORTED"


def test_handles_without_a_node_and_bodies_with_other_work_are_refused_at_last(
    cu: Driver, graphs: Graphs, conditions: Conditions
) -> None:
    graph = graphs.graph()
    handle = conditions.handle(graph)
    params = InstantiateParams()
    call = ("cuGraphInstantiateWithParams", byref(c_void_p()), graph, byref(params))
    assert cu.status(*call) == "INVALID_VALUE"
    assert (params.result, params.node) == (5, None)
    node, (body,) = conditions.node(graph, handle, IF)
    host = graphs.host(body, lambda: None)
    assert cu.status(*call) == "INVALID_VALUE"
    assert (params.result, params.node) == (3, host.value)
    cu.cuGraphDestroyNode(host)
    assert cu.status("cuGraphDestroy", body) == "INVALID_VALUE"
    graphs.run(graph)
    cu.cuGraphDestroyNode(node)
    assert cu.status("cuGraphGetNodes", body, None, byref(c_size_t())) == "INVALID_VALUE"
    assert cu.status(*call) == "INVALID_VALUE"
    again, _ = conditions.node(graph, handle, IF)
    graphs.run(graph)
    assert again.value != node.value


@pytest.mark.parametrize("what", ["alloc", "alloc and free", "free", "pageable copy"])
def test_what_bodies_cannot_run_is_refused_at_instantiation(
    cu: Driver, graphs: Graphs, conditions: Conditions, what: str
) -> None:
    graph = graphs.graph()
    _, address = graphs.alloc(graph, 64)
    _, (body,) = conditions.node(graph, conditions.handle(graph), IF)
    if what.startswith("alloc"):
        node, inner = graphs.alloc(body, 64)
        if what == "alloc and free":
            graphs.free(body, inner, node)
    elif what == "free":
        node = graphs.free(body, address)
    else:
        memory, host = cu.alloc(16), ctypes.create_string_buffer(16)
        node = graphs.copy(body, memory, ctypes.addressof(host), 16)
    params = InstantiateParams()
    call = ("cuGraphInstantiateWithParams", byref(c_void_p()), graph, byref(params))
    assert cu.status(*call) == "INVALID_VALUE"
    assert (params.result, params.node) == (4 if what == "pageable copy" else 3, node.value)


def test_a_handle_is_free_again_when_a_body_goes_with_its_node(graphs: Graphs, conditions: Conditions) -> None:
    graph = graphs.graph()
    outer, inner = conditions.handle(graph, 1), conditions.handle(graph, 1)
    node, (body,) = conditions.node(graph, outer, IF)
    conditions.node(body, inner, IF)
    graphs.cu.cuGraphDestroyNode(node)
    for place, handle in enumerate((outer, inner)):
        _, (body,) = conditions.node(graph, handle, IF)
        conditions.mark(body, place)
    graphs.run(graph)
    assert conditions.marks(2) == [1, 1]


def test_nodes_tell_what_they_are(cu: Driver, graphs: Graphs, conditions: Conditions, tmp_path: Path) -> None:
    graph = graphs.graph()
    handle = conditions.handle(graph)
    node, bodies = conditions.node(graph, handle, SWITCH, 3)
    params = NodeParams()
    cu.cuGraphNodeGetParams(node, byref(params))
    read = ConditionalParams.from_buffer(params, NodeParams.of.offset)
    assert (params.type, read.handle, read.type, read.size) == (CONDITIONAL, handle.value, SWITCH, 3)
    assert list((c_void_p * 3).from_address(read.graphs)) == [body.value for body in bodies]
    assert cu.status("cuGraphNodeSetParams", node, byref(params)) == "NOT_SUPPORTED"
    assert "SWITCH" in graphs.dot(graph, tmp_path / "graph.dot")


def test_a_condition_that_is_not_the_graphs_fails_the_kernel() -> None:
    printed = run_alone(
        """
        from sim_graphs import Graphs
        from sim_conditions import Conditions
        cu.start()
        graphs = Graphs(cu)
        conditions = Conditions(graphs)
        graph, other = graphs.graph(), graphs.graph()
        conditions.kernel(graph, "set", conditions.handle(other), c_uint(1))
        executable = graphs.instantiate(graph)
        cu.cuGraphLaunch(executable, None)
        print(cu.status("cuStreamSynchronize", None), sim.reports()[0].message)
        """
    )
    assert printed.startswith("LAUNCH_FAILED")
    assert "is no handle of a conditional node" in printed


@pytest.mark.parametrize("empty", [True, False])
def test_an_endless_loop_ends_by_the_limit_of_kernels(empty: bool) -> None:
    printed = run_alone(
        f"""
        from sim_graphs import Graphs
        from sim_conditions import Conditions, WHILE
        cu.start()
        graphs = Graphs(cu)
        conditions = Conditions(graphs)
        graph = graphs.graph()
        _, (body,) = conditions.node(graph, conditions.handle(graph, 1), WHILE)
        if not {empty}:
            conditions.mark(body, 0)
        executable = graphs.instantiate(graph)
        cu.cuGraphLaunch(executable, None)
        print(cu.status("cuStreamSynchronize", None), [report.kind for report in sim.reports()])
        """,
        CUDA_SIM_KERNEL_SECONDS="0.2",
    )
    assert printed.strip() == "LAUNCH_TIMEOUT ['time limit']"
