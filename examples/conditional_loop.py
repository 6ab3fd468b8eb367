# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Loop on the device: a graph repeats a body until a kernel in it says that the result is good enough.

The work: Newton's method for square roots. The body, captured from a stream, makes one step for all numbers, and a
kernel decides whether to go on. Afterwards an if-else tells which of two things happened: the steps were enough, or
there were too many. The host launches one graph and waits once, however many steps it takes.

On a machine without a GPU this script chooses the simulated driver, and says so, as saxpy.py beside it does.
"""

from __future__ import annotations

import sys

import numpy
import saxpy  # noqa: F401  (its first lines choose the driver)

from cuda_core_cffi import Device, LaunchConfig, Program, launch

COUNT = 1024
ENOUGH = 1e-3
SOURCE = """
extern "C" __device__ __cudart_builtin__ void CUDARTAPI cudaGraphSetConditional(
    cudaGraphConditionalHandle condition, unsigned int value);

struct State { unsigned int steps, most, largest, verdict; };

extern "C" __global__ void step(float *root, const float *number, State *state, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        float next = 0.5f * (root[i] + number[i] / root[i]);
        float change = next > root[i] ? next - root[i] : root[i] - next;
        root[i] = next;
        atomicMax(&state->largest, __float_as_uint(change));  // positive floats are ordered like their bits
    }
}
extern "C" __global__ void decide(
    cudaGraphConditionalHandle again, cudaGraphConditionalHandle good, State *state, float enough) {
    int is_good = __uint_as_float(state->largest) <= enough;
    state->largest = 0;
    state->steps += 1;
    cudaGraphSetConditional(again, !is_good && state->steps < state->most);
    cudaGraphSetConditional(good, is_good);
}
"""


def main() -> int:
    """Capture a graph with a loop, and launch it; return the exit status."""
    device = Device()
    device.set_current()
    stream = device.create_stream()
    code = Program(SOURCE, "c++").compile()
    step, decide = code.get_kernel("step"), code.get_kernel("decide")
    config, one = LaunchConfig(grid=-(-COUNT // 256), block=256), LaunchConfig(grid=1, block=1)

    numbers = numpy.linspace(1, 1000, COUNT, dtype=numpy.float32)
    number, root = (device.allocate(numbers.nbytes, stream) for _ in range(2))
    state = device.allocate(16, stream)
    number.copy_from(numbers, stream=stream)

    builder = device.create_graph_builder()
    builder.begin_building()
    again, good = builder.create_condition(1), builder.create_condition(0)
    body = builder.while_loop(again)
    body.begin_building()
    launch(body, config, step, root, number, state, COUNT)
    launch(body, one, decide, again, good, state, ENOUGH)
    body.end_building()
    enough, too_many = builder.if_else(good)
    for verdict, branch in ((1, enough), (2, too_many)):
        state[12:].fill(verdict, 4, stream=branch.begin_building())
        branch.end_building()
    graph = builder.end_building().complete()

    def run(most: int) -> tuple[int, int, float]:
        """Return the steps taken, the verdict and the largest error."""
        root.copy_from(numbers, stream=stream)
        found, told = numpy.empty_like(numbers), numpy.array([0, most, 0, 0], numpy.uint32)
        state.copy_from(told, stream=stream)
        graph.launch(stream)
        root.copy_to(found, stream=stream)
        state.copy_to(told, stream=stream)
        stream.sync()
        return int(told[0]), int(told[3]), float(abs(found - numpy.sqrt(numbers)).max())

    steps, verdict, error = run(100)
    print(f"{steps} steps, errors up to {error:.1g}: {'enough' if verdict == 1 else 'too many'}")
    few, refused, large = run(3)
    print(f"{few} steps, errors up to {large:.1g}: {'enough' if refused == 1 else 'too many'}")
    right = (5 < steps < 30 and verdict == 1 and error < ENOUGH) and (few, refused) == (3, 2) and large > ENOUGH
    for item in (graph, builder, body, enough, too_many, number, root, state):
        item.close()
    print(f"2 launches of a loop on {device.name}: {'right' if right else 'WRONG'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
