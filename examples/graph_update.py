# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Describe work as a graph, launch it many times, and change what it does between launches.

The work: fill an array, add a number to its elements several times, copy it to the host, and tell. It is changed in
three ways: one node of the executable is set; a node is disabled; the executable is updated from a changed definition.

On a machine without a GPU this script chooses the simulated driver, and says so, as saxpy.py beside it does.
"""

from __future__ import annotations

import struct
import sys

import numpy
import saxpy  # noqa: F401  (its first lines choose the driver)

from cuda_core_cffi import CUDAError, Device, LaunchConfig, LegacyPinnedMemoryResource, Program
from cuda_core_cffi.graph import GraphDefinition

COUNT = 4096
STEPS = 5
SOURCE = """
extern "C" __global__ void add(float *x, float value, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) x[i] += value;
}
"""


def main() -> int:
    """Build, launch and change a graph; return the exit status."""
    device = Device()
    device.set_current()
    stream = device.create_stream()
    add = Program(SOURCE, "c++").compile().get_kernel("add")
    config = LaunchConfig(grid=-(-COUNT // 256), block=256)
    launches = 0

    with LegacyPinnedMemoryResource().allocate(4 * COUNT, stream) as host, device.allocate(4 * COUNT, stream) as x:
        result = numpy.asarray(host).view(numpy.float32)

        def told() -> None:
            nonlocal launches
            launches += 1

        graph = GraphDefinition()
        fill = node = graph.memset(x, struct.pack("<f", 1), COUNT)
        steps = []
        for _ in range(STEPS):
            node = node.launch(config, add, x, 1.0, COUNT)
            steps.append(node)
        node.memcpy(host, x, 4 * COUNT).callback(told)
        # What the nodes use is kept by the graph, and by what is made of it.

        executable = graph.instantiate()
        wanted, got = [], []

        def run(expected: float, what: str) -> None:
            executable.launch(stream)
            stream.sync()
            wanted.append(expected)
            got.append(set(result.tolist()))
            print(f"{what}: {result[0]}")

        run(6, "by hand 1 + 5 steps of 1")
        executable[fill].update(dst=x, value=struct.pack("<f", 10), width=COUNT)
        run(15, "one node of the executable set: 10 + 5 steps of 1")
        executable[steps[0]].disable()
        run(14, "one step disabled")
        executable[steps[0]].enable()
        for step in steps:
            step.update(args=(x, 2.0, COUNT))
        executable.update(graph)
        run(11, "updated from the definition: 1 + 5 steps of 2")

        shorter = GraphDefinition()
        shorter.memset(x, struct.pack("<f", 1), COUNT)
        try:
            executable.update(shorter)
        except CUDAError as error:
            print(f"refused: {error}")
        clone = graph.clone()
        for item in (executable, clone, shorter, graph):
            item.close()
        right = got == [{value} for value in wanted] and launches == len(wanted)
    print(f"3 graphs, {launches} launches on {device.name}: {'right' if right else 'WRONG'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
