# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Capture work that streams are given as a graph, with branches and memory of its own, and launch it many times.

The work: an array is filled; two branches, which may run at the same time, each make another array from it; when both
are done the sum of the two is copied to the host, and a function there is called. What lies between is memory that the
graph allocates and frees each time it runs.

On a machine without a GPU this script chooses the simulated driver, and says so, as saxpy.py beside it does.
"""

from __future__ import annotations

import struct
import sys

import numpy
import saxpy  # noqa: F401  (its first lines choose the driver)

from cuda_core_cffi import (
    CUDAError,
    Device,
    GraphMemoryResource,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Program,
    launch,
)

COUNT = 4096
LAUNCHES = 5
SOURCE = """
extern "C" __global__ void scale(float *y, const float *x, float a, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) y[i] = a * x[i];
}
extern "C" __global__ void add(float *z, const float *x, const float *y, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) z[i] = x[i] + y[i];
}
"""


def main() -> int:
    """Capture and launch a graph; return the exit status."""
    device = Device()
    device.set_current()
    stream = device.create_stream()
    code = Program(SOURCE, "c++").compile()
    scale, add = code.get_kernel("scale"), code.get_kernel("add")
    config = LaunchConfig(grid=-(-COUNT // 256), block=256)
    size = 4 * COUNT
    sums = []

    # A captured graph does not keep buffers and kernels: they stay here until the last launch is done.
    with LegacyPinnedMemoryResource().allocate(size, stream) as host, device.allocate(size, stream) as x:
        result = numpy.asarray(host).view(numpy.float32)

        with device.create_graph_builder() as builder:
            builder.begin_building()
            own = GraphMemoryResource(device)
            left, right = own.allocate(size, builder), own.allocate(size, builder)
            x.fill(struct.pack("<f", 1), stream=builder)
            one, other = builder.split(2)
            launch(one, config, scale, left, x, 2.0, COUNT)
            launch(other, config, scale, right, x, 5.0, COUNT)
            builder.join(one, other)
            launch(builder, config, add, x, left, right, COUNT)
            left.close()  # in stream order: the graph frees it here
            right.close()
            x.copy_to(host, stream=builder)
            builder.callback(lambda: sums.append(set(result.tolist())))
            builder.end_building()
            kinds = sorted(type(node).__name__ for node in builder.graph_definition.nodes())
            print(f"captured {len(kinds)} nodes: {', '.join(kinds)}")
            graph = builder.complete()

        # Waiting cannot be captured: the driver ends the capture, and the stream can be used again.
        try:
            with stream.create_graph_builder() as failing:
                failing.begin_building()
                stream.sync()
        except CUDAError as error:
            print(f"refused: {error}")

        for _ in range(LAUNCHES):
            graph.launch(stream)
        stream.sync()
        graph.close()
    right_sums = sums == [{7.0}] * LAUNCHES and len(kinds) == 10
    print(f"{len(sums)} launches, each 2 + 5 = {sums[-1]} on {device.name}: {'right' if right_sums else 'WRONG'}")
    return 0 if right_sums else 1


if __name__ == "__main__":
    sys.exit(main())
