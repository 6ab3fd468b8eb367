# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Capture, define and run graphs with NVIDIA's cuda-core, unmodified, on whatever ``libcuda.so.1`` the loader finds.

``.ci/run`` points it at the simulated driver, as it does with ``peer_saxpy.py``.
"""

from __future__ import annotations

import numpy as np
from cuda.core import (
    Device,
    GraphMemoryResource,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Program,
    ProgramOptions,
    launch,
)
from cuda.core.graph import GraphBuilder, GraphDefinition

SOURCE = r"""
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);
extern "C" __global__ void add_one(int *value) { atomicAdd(value, 1); }
extern "C" __global__ void below(unsigned long long handle, const int *value, int limit)
{
    cudaGraphSetConditional(handle, *value < limit);
}
"""
LIMIT = 10

device = Device()
device.set_current()
stream = device.create_stream()
code = Program(SOURCE, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("ptx")
add_one, below = code.get_kernel("add_one"), code.get_kernel("below")
one = LaunchConfig(grid=1, block=1)
memory = LegacyPinnedMemoryResource().allocate(4, stream=stream)
value = np.from_dlpack(memory).view(np.int32)
address = value.ctypes.data


def run(graph: object) -> int:
    value[0] = 0
    graph.launch(stream)
    stream.sync()
    return int(value[0])


builder = device.create_graph_builder().begin_building()
launch(builder, one, add_one, address)
left, right = builder.split(2)
launch(left, one, add_one, address)
launch(right, one, add_one, address)
builder = GraphBuilder.join(left, right)
assert run(builder.end_building().complete()) == 3

builder = device.create_graph_builder().begin_building()
condition = builder.create_condition(default_value=1)
body = builder.while_loop(condition).begin_building()
launch(body, one, add_one, address)
launch(body, one, below, condition.handle, address, np.int32(LIMIT))
body.end_building()
assert run(builder.end_building().complete()) == LIMIT

resource = GraphMemoryResource(device)
builder = device.create_graph_builder().begin_building()
scratch = resource.allocate(1024, stream=builder)
launch(builder, one, add_one, int(scratch.handle))
launch(builder, one, add_one, address)
scratch.close(builder)
graph = builder.end_building().complete()
assert run(graph) == 1
assert resource.attributes.used_mem_high >= 1024

definition = GraphDefinition()
node = definition.launch(one, add_one, address).launch(one, add_one, address)
node.if_then(definition.create_condition(default_value=1)).then.launch(one, add_one, address)
assert len(definition.nodes()) == 3
assert len(definition.edges()) == 2
assert run(definition.instantiate()) == 3
print(f"cuda-core's graphs on {device.name}: 4 run")
