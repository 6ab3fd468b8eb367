# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

"""Graphs with work on two devices."""

from __future__ import annotations

import pytest
from sim_driver import run_alone

PROLOGUE = """
from sim_graphs import *
from sim_kernels import KERNELS

def on(device):
    cu.cuCtxSetCurrent(contexts[device])

cu.cuInit(0)
contexts = [cu.out(c_void_p, "cuDevicePrimaryCtxRetain", device) for device in range(2)]
on(1)
module = cu.out(c_void_p, "cuModuleLoadData", KERNELS)
store = cu.out(c_void_p, "cuModuleGetFunction", module, b"store")
there = cu.alloc(64)
on(0)
graphs = Graphs(cu)
here = cu.alloc(64)

def store_there(graph, address, value, *after):
    params = graphs.kernel_params("store", address, c_uint(value))
    params.function = store.value
    return graphs.node("KernelNode_v2", graph, after, byref(params))
"""


def alone(code: str) -> list[str]:
    return run_alone(PROLOGUE + code, CUDA_SIM_DEVICES="2").split()


def test_each_node_runs_on_its_device() -> None:
    code = """
graph = graphs.graph()
a = graphs.kernel(graph, "store", here, c_uint(1))
b = store_there(graph, there, 2, a)
params = copy_params(offset(here, 4), there, 4)
graphs.node("MemcpyNode", graph, [b], byref(params), contexts[1])
graphs.run(graph)
print(cu.read(here, 8).hex())
params = graphs.kernel_params("store", there, c_uint(3))
params.function, params.context = graphs.function("store").value, contexts[1].value
call = (byref(c_void_p()), graph, None, c_size_t(0))
node = NodeParams(type=KERNEL)
node.kernel = params
print(cu.status("cuGraphAddNode_v2", *call[:3], None, call[3], byref(node)))
print(cu.status("cuGraphAddNode_v3", *call[:3], None, call[3], byref(node)))
plain = InstantiateParams(flags=DEVICE_LAUNCH)
print(cu.status("cuGraphInstantiateWithParams", byref(c_void_p()), graph, byref(plain)), plain.result)
"""
    assert alone(code) == ["0100000002000000", "SUCCESS", "INVALID_CONTEXT", "INVALID_VALUE", "4"]


def test_a_capture_may_go_over_to_another_device() -> None:
    code = """
stream, fork = cu.stream(1), cu.event(2)
on(1)
other, back = cu.stream(1), cu.event(2)
on(0)
cu.cuStreamBeginCapture_v2(stream, GLOBAL)
cu.cuMemsetD8Async(here, 1, c_size_t(4), stream)
cu.cuEventRecord(fork, stream)
cu.cuStreamWaitEvent(other, fork, 0)
cu.cuMemsetD8Async(there, 1, c_size_t(4), other)
cu.cuEventRecord(back, other)
cu.cuStreamWaitEvent(stream, back, 0)
graph = c_void_p()
cu.cuStreamEndCapture(stream, byref(graph))
graphs.run(graph, stream)
print(cu.read(there, 4).hex(), len(graphs.nodes(graph)))
"""
    assert alone(code) == ["01010101", "2"]


@pytest.mark.parametrize("shared", [True, False])
def test_memory_of_a_graph_is_open_to_the_devices_that_it_was_made_for(shared: bool) -> None:
    code = f"""
graph = graphs.graph()
access = AccessDesc(Location(1, 1), 3)
params = AllocParams(props=PoolProps(alloc_type=1, location=Location(1, 0)), size=64)
if {shared}:
    params.access, params.access_count = ctypes.addressof(access), 1
allocated = graphs.node("MemAllocNode", graph, [], byref(params))
address = c_uint64(params.address)
stored = store_there(graph, address, 5, allocated)
graphs.free(graph, address, graphs.copy(graph, here, address, 4, stored))
executable = graphs.instantiate(graph)
cu.cuGraphLaunch(executable, None)
on(1)
cu.status("cuCtxSynchronize")
on(0)
print(cu.status("cuCtxSynchronize"), cu.read(here, 4).hex() if {shared} else [r.kind for r in sim.reports()][0])
"""
    assert alone(code) == (["SUCCESS", "05000000"] if shared else ["SUCCESS", "no", "access"])
