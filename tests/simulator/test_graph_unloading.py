# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

"""Graphs whose code was unloaded or whose memory was freed: refused and reported, where driver 580 may crash."""

from __future__ import annotations

from types import ModuleType

import pytest
from sim_conditions import IF, Conditions
from sim_driver import Driver, byref, c_int, c_size_t, c_uint, c_uint64, c_void_p, run_alone
from sim_graphs import RELAXED, Graphs, KernelParams
from sim_kernels import KERNELS


class Code:
    """A library of its own, with the parameters of a node that stores `value` in `memory`."""

    def __init__(self, graphs: Graphs, memory: c_uint64, value: int = 3) -> None:
        self.cu, self.library = graphs.cu, c_void_p()
        self.cu.cuLibraryLoadData(byref(self.library), KERNELS, None, None, 0, None, None, 0)
        self.kernel: c_void_p = self.cu.out(c_void_p, "cuLibraryGetKernel", self.library, b"store")
        self.params = graphs.kernel_params("store", memory, c_uint(value))
        self.params.function, self.params.kernel, self.params.context = None, self.kernel.value, graphs.context.value

    def unload(self) -> None:
        self.cu.cuLibraryUnload(self.library)


def add(graphs: Graphs, graph: c_void_p, params: KernelParams) -> c_void_p:
    return graphs.node("KernelNode_v2", graph, [], byref(params))


def test_an_executable_whose_code_was_unloaded_is_not_launched(graphs: Graphs, cu: Driver, sim: ModuleType) -> None:
    memory = cu.alloc(4)
    cu.cuMemsetD32_v2(memory, 0, c_size_t(1))
    code, graph = Code(graphs, memory), graphs.graph()
    add(graphs, graph, code.params)
    executable = graphs.instantiate(graph)
    code.unload()
    assert cu.status("cuGraphUpload", executable, None) == "INVALID_HANDLE"
    assert cu.status("cuGraphLaunch", executable, None) == "INVALID_HANDLE"
    assert [(report.kind, report.call) for report in sim.reports()] == [
        ("unloaded code", "cuGraphUpload"),
        ("unloaded code", "cuGraphLaunch"),
    ]
    assert "kernel store" in sim.reports()[0].message
    assert cu.read(memory, 4) == bytes(4)
    cu.cuMemFree_v2(memory)


@pytest.mark.parametrize("place", ["graph", "capture", "child", "clone", "body"])
def test_a_graph_whose_code_was_unloaded_is_not_instantiated(
    graphs: Graphs, cu: Driver, sim: ModuleType, place: str
) -> None:
    memory, graph = cu.alloc(4), graphs.graph()
    code = Code(graphs, memory)
    conditions = Conditions(graphs) if place == "body" else None
    if place == "capture":
        stream, p = cu.stream(), code.params
        cu.cuStreamBeginCapture_v2(stream, RELAXED)
        cu.cuLaunchKernel(code.kernel, *p.grid, *p.block, 0, stream, c_void_p(p.params), None)
        graph = c_void_p()
        cu.cuStreamEndCapture(stream, byref(graph))
        graphs.graphs.append(graph)
        cu.cuStreamDestroy_v2(stream)
    elif place == "child":
        child = graphs.graph()
        add(graphs, child, code.params)
        graphs.child(graph, child)
    elif conditions:
        _, (body,) = conditions.node(graph, conditions.handle(graph), IF, 1)
        add(graphs, body, code.params)
    else:
        add(graphs, graph, code.params)
    code.unload()
    if place == "clone":
        graph = cu.out(c_void_p, "cuGraphClone", graph)
        graphs.graphs.append(graph)
    executable = c_void_p()
    assert cu.status("cuGraphInstantiateWithFlags", byref(executable), graph, c_uint64(0)) == "INVALID_HANDLE"
    assert [report.kind for report in sim.reports()] == ["unloaded code"]
    cu.cuMemFree_v2(memory)
    if conditions:
        cu.cuModuleUnload(conditions.module)
        cu.cuMemFree_v2(conditions.memory)


def test_what_replaces_unloaded_code_runs(graphs: Graphs, cu: Driver, sim: ModuleType) -> None:
    memory, graph = cu.alloc(4), graphs.graph()
    first, second = Code(graphs, memory), Code(graphs, memory, 5)
    node = add(graphs, graph, first.params)
    executable = graphs.instantiate(graph)
    first.unload()
    cu.cuGraphNodeSetEnabled(executable, node, 0)
    cu.cuGraphLaunch(executable, None)  # without the node
    cu.cuGraphNodeSetEnabled(executable, node, 1)
    cu.cuGraphExecKernelNodeSetParams_v2(executable, node, byref(second.params))
    cu.cuGraphLaunch(executable, None)
    assert cu.read(memory, 4) == b"\5\0\0\0"
    assert not sim.reports()
    # the graph itself has the code that is gone
    result = (c_int * 8)()
    assert cu.status("cuGraphExecUpdate_v2", executable, graph, byref(result)) == "GRAPH_EXEC_UPDATE_FAILURE"
    assert {report.kind for report in sim.reports()} == {"unloaded code"}
    cu.cuGraphLaunch(executable, None)
    cu.cuStreamSynchronize(None)
    second.unload()
    cu.cuMemFree_v2(memory)


def test_code_that_went_with_its_context_is_refused_without_a_report(
    graphs: Graphs, cu: Driver, sim: ModuleType
) -> None:
    graph, context = graphs.graph(), c_void_p()
    cu.cuCtxCreate_v2(byref(context), 0, 0)
    module: c_void_p = cu.out(c_void_p, "cuModuleLoadData", KERNELS)
    params = graphs.kernel_params("nothing")
    params.function = cu.out(c_void_p, "cuModuleGetFunction", module, b"nothing").value
    add(graphs, graph, params)
    executable = graphs.instantiate(graph)
    cu.cuCtxDestroy_v2(context)
    assert cu.status("cuGraphLaunch", executable, None) == "CONTEXT_IS_DESTROYED"
    assert not sim.reports()


@pytest.mark.parametrize(
    ("work", "freed_by"),
    [
        ("graphs.fill(graph, memory, 1, 64)", "cuMemFree_v2"),
        ("graphs.copy(graph, memory, other, 64)", "cuMemFree_v2"),
        ("graphs.copy(graph, other, memory, 64)", "cuMemFree_v2"),
        ("graphs.kernel(graph, 'store', memory, c_uint(3))", "cuMemFree_v2"),
        ("graphs.fill(graph, variable, 1, 4)", "cuModuleUnload"),
    ],
)
def test_memory_that_was_freed_is_refused_and_reported(work: str, freed_by: str) -> None:
    printed = run_alone(
        f"""
        from sim_graphs import Graphs
        from sim_kernels import KERNELS
        cu.start()
        graphs = Graphs(cu)
        graph, memory, other = graphs.graph(), cu.alloc(64), cu.alloc(64)
        module = cu.out(c_void_p, "cuModuleLoadData", KERNELS)
        variable, size = c_uint64(), c_size_t()
        cu.cuModuleGetGlobal_v2(byref(variable), byref(size), module, b"counters")
        counts = graphs.kernel_params("count")  # refers to the module
        counts.function = cu.out(c_void_p, "cuModuleGetFunction", module, b"count").value
        graphs.node("KernelNode_v2", graph, [], byref(counts))
        graph = graphs.graph()
        {work}
        executable = graphs.instantiate(graph)
        cu.cuModuleUnload(module)
        cu.cuMemFree_v2(memory)
        cu.cuGraphLaunch(executable, None)
        print(cu.status("cuStreamSynchronize", None))
        print([(r.kind, r.freed_by) for r in sim.reports()])
        """
    )
    assert printed.splitlines()[:2] == ["ILLEGAL_ADDRESS", f"[('use after free', '{freed_by}')]"]
