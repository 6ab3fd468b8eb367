# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Normalise numbers in one launch: every block needs the sum of all, so all blocks wait for each other in between.

Needs CUDA's headers for kernels (the packages nvidia-cuda-runtime, nvidia-cuda-cccl and nvidia-cuda-crt, or a toolkit).
Without a GPU, run it with ``CUDA_CORE_CFFI_DRIVER=simulator``.
"""

from __future__ import annotations

import sys

import numpy as np
from cuda.pathfinder import find_nvidia_header_directory

from cuda_core_cffi import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, ProgramOptions, launch

SOURCE = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void normalize(float *x, unsigned n, double *total)
{
    cg::grid_group grid = cg::this_grid();
    cg::thread_block block = cg::this_thread_block();
    __shared__ double sum;
    if (block.thread_rank() == 0)
        sum = 0;
    block.sync();
    double mine = 0;
    for (unsigned i = grid.thread_rank(); i < n; i += grid.num_threads())
        mine += x[i];
    atomicAdd(&sum, mine);
    block.sync();
    if (block.thread_rank() == 0)
        atomicAdd(total, sum);

    grid.sync();  // now the total is there, for every block

    for (unsigned i = grid.thread_rank(); i < n; i += grid.num_threads())
        x[i] /= *total;
}
"""
COUNT = 100_000
BLOCK = 256


def main() -> int:
    """Run the job and return the exit status."""
    device = Device()
    if not device.properties.cooperative_launch:
        print(f"{device.name} has no cooperative launches")
        return 0
    device.set_current()
    stream = device.create_stream()

    folders = [find_nvidia_header_directory(name) for name in ("cudart", "cccl")]
    options = ProgramOptions(arch=f"sm_{device.arch}", include_path=[folder for folder in folders if folder])
    kernel = Program(SOURCE, "c++", options).compile().get_kernel("normalize")

    # Blocks that wait for each other must be on the device at the same time: no more than fit.
    fit = kernel.occupancy.max_active_blocks_per_multiprocessor(BLOCK, 0) * device.properties.multiprocessor_count
    config = LaunchConfig(grid=min(fit, (COUNT + BLOCK - 1) // BLOCK), block=BLOCK, is_cooperative=True)

    pinned = LegacyPinnedMemoryResource()
    x, total = pinned.allocate(4 * COUNT), pinned.allocate(8)
    x_array, total_array = np.asarray(x).view(np.float32), np.asarray(total).view(np.float64)
    x_array[:] = np.random.default_rng(seed=1).random(COUNT, dtype=np.float32)
    total_array[:] = 0
    expected = x_array / x_array.sum(dtype=np.float64)

    launch(stream, config, kernel, x, COUNT, total)
    stream.sync()
    right = bool(np.allclose(x_array, expected, rtol=1e-6, atol=0))
    print(f"{COUNT:,} numbers normalised by {config.grid[0]} blocks on {device.name}: {'right' if right else 'WRONG'}")
    for buffer in (x, total):
        buffer.close()
    stream.close()
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
