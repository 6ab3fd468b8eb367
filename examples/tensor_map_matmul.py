# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Multiply matrices whose tiles the hardware brings into shared memory, described by tensor maps.

One thread of each block asks for a tile of both matrices and goes on; all wait at a barrier in shared memory that
counts the bytes. What lies outside of a matrix arrives as zeros, so the kernel has no special case for the border when
it reads.

On a machine without a GPU this script chooses the simulated driver, and says so.
"""

from __future__ import annotations

import os
import sys

import numpy as np
from saxpy import system_has_gpu

if "CUDA_CORE_CFFI_DRIVER" not in os.environ and not system_has_gpu():
    print("No GPU found: this run uses the SIMULATED driver.")
    os.environ["CUDA_CORE_CFFI_DRIVER"] = "simulator"

from cuda_core_cffi import Buffer, Device, EventOptions, Kernel, LaunchConfig, Program, ProgramOptions, Stream, launch
from cuda_core_cffi.utils import StridedMemoryView

TILE = 32  # of 4 bytes: a row of a tile has the 128 bytes of the widest swizzle
SOURCE = r"""
struct alignas(64) TensorMap { unsigned long long words[16]; };
const int TILE = 32;
const int TILE_BYTES = TILE * TILE * sizeof(float);

// Where an element of a tile is: the swizzle permutes the pieces of 16 bytes of each row.
__device__ int at(int row, int column) { return row * TILE + ((column / 4 ^ row % 8) * 4 | column % 4); }

__device__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ void load(float *tile, const TensorMap *map, int x, int y, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(shared_address(tile)), "l"(map), "r"(x), "r"(y), "r"(barrier) : "memory");
}

extern "C" __global__ void with_tensor_maps(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
                                            float *c, int rows, int columns, int depth)
{
    __shared__ alignas(1024) float tile_a[TILE * TILE], tile_b[TILE * TILE];
    __shared__ alignas(8) unsigned long long bar;
    unsigned barrier = shared_address(&bar);
    int x = threadIdx.x, y = threadIdx.y, first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
    bool leader = x == 0 && y == 0;
    if (leader) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
    }
    __syncthreads();
    float sum = 0;
    for (int k = 0, phase = 0; k < depth; k += TILE, phase ^= 1) {
        if (leader) {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                         ::"r"(barrier), "r"(2 * TILE_BYTES) : "memory");
            load(tile_a, &a, k, first_row, barrier);
            load(tile_b, &b, first_column, k, barrier);
        }
        for (unsigned done = 0; !done;)
            asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                         : "=r"(done) : "r"(barrier), "r"(phase) : "memory");
        for (int i = 0; i < TILE; i++) sum += tile_a[at(y, i)] * tile_b[at(i, x)];
        __syncthreads(); // before the next tiles take the place of these
    }
    if (first_row + y < rows && first_column + x < columns) c[(first_row + y) * columns + first_column + x] = sum;
}

extern "C" __global__ void with_loads(const float *a, const float *b, float *c, int rows, int columns, int depth)
{
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0;
    for (int k = 0; k < depth; k += TILE) {
        tile_a[y][x] = row < rows && k + x < depth ? a[row * depth + k + x] : 0;
        tile_b[y][x] = k + y < depth && column < columns ? b[(k + y) * columns + column] : 0;
        __syncthreads();
        for (int i = 0; i < TILE; i++) sum += tile_a[y][i] * tile_b[i][x];
        __syncthreads();
    }
    if (row < rows && column < columns) c[row * columns + column] = sum;
}
"""


def milliseconds(
    stream: Stream, config: LaunchConfig, kernel: Kernel, arguments: tuple[object, ...], times: int
) -> float:
    """Return how long a launch takes, the mean of several."""
    launch(stream, config, kernel, *arguments)
    options = EventOptions(timing_enabled=True)
    start = stream.record(options=options)
    for _ in range(times):
        launch(stream, config, kernel, *arguments)
    end = stream.record(options=options)
    end.sync()
    return (end - start) / times


def main() -> int:
    """Run the job and return the exit status."""
    device = Device()
    device.set_current()
    if device.compute_capability < (9, 0):
        print(f"{device.name} has no tensor maps: they came with compute capability 9.0")
        return 0
    simulated = "Simulated" in device.name
    rows, columns, depth = (72, 100, 84) if simulated else (2040, 2020, 2012)
    random = np.random.default_rng(1)
    a = random.random((rows, depth), np.float32)
    b = random.random((depth, columns), np.float32)
    with (
        device.create_stream() as stream,
        device.allocate(a.nbytes, stream) as device_a,
        device.allocate(b.nbytes, stream) as device_b,
        device.allocate(4 * rows * columns, stream) as device_c,
        Program(SOURCE, "c++", ProgramOptions(arch=f"sm_{device.arch}", std="c++17")) as program,
        program.compile() as code,
    ):
        device_a.copy_from(a, stream=stream)
        device_b.copy_from(b, stream=stream)
        maps = [tiles(device_a, a), tiles(device_b, b)]
        config = LaunchConfig(grid=(-(-columns // TILE), -(-rows // TILE)), block=(TILE, TILE))
        sizes = (rows, columns, depth)
        ways = {"with_tensor_maps": (*maps, device_c, *sizes), "with_loads": (device_a, device_b, device_c, *sizes)}
        right = True
        for name, arguments in ways.items():
            device_c.fill(0, stream=stream)
            launch(stream, config, code.get_kernel(name), *arguments)
            c = np.empty((rows, columns), np.float32)
            device_c.copy_to(c, stream=stream)
            stream.sync()
            right = right and np.allclose(c, a @ b, rtol=1e-4)
            if not simulated:
                took = milliseconds(stream, config, code.get_kernel(name), arguments, 20)
                print(f"{name}: {took:.3f} ms, {2e-9 * rows * columns * depth / took:.1f} TFLOP/s")
    print(f"product of {rows} x {depth} and {depth} x {columns} on {device.name}: {'right' if right else 'WRONG'}")
    return 0 if right else 1


def tiles(buffer: Buffer, array: np.ndarray) -> object:
    """Return the tensor map of a matrix in a buffer, by whose tiles it is read."""
    view = StridedMemoryView.from_buffer(buffer, array.shape, dtype=array.dtype)
    return view.as_tensor_map((TILE, TILE), swizzle="SWIZZLE_128B")


if __name__ == "__main__":
    sys.exit(main())
