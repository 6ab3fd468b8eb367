# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Make a histogram with thread block clusters: the blocks of a cluster count into each other's shared memory.

Each block keeps a part of the bins, so that a cluster has room for more bins than one block. Needs compute capability
9.0, and CUDA's headers for kernels (the packages nvidia-cuda-runtime, nvidia-cuda-cccl and nvidia-cuda-crt, or a
toolkit). Without a GPU, run it with ``CUDA_CORE_CFFI_DRIVER=simulator``.
"""

from __future__ import annotations

import sys

import numpy as np
from cuda.pathfinder import find_nvidia_header_directory

from cuda_core_cffi import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, ProgramOptions, launch

SOURCE = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void histogram(const unsigned *values, unsigned n, unsigned bins_per_block, unsigned *counts)
{
    extern __shared__ unsigned bins[];
    cg::cluster_group cluster = cg::this_cluster();
    for (unsigned i = threadIdx.x; i < bins_per_block; i += blockDim.x)
        bins[i] = 0;
    cluster.sync();  // every block's bins are there, and zero

    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned *part = cluster.map_shared_rank(bins, values[i] / bins_per_block);  // perhaps of another block
        atomicAdd(&part[values[i] % bins_per_block], 1);
    }
    cluster.sync();  // no block ends, and no bin is read, while another still counts

    unsigned first = cluster.block_rank() * bins_per_block;
    for (unsigned i = threadIdx.x; i < bins_per_block; i += blockDim.x)
        atomicAdd(&counts[first + i], bins[i]);
}
"""
COUNT = 50_000
BINS = 1000
CLUSTER = 4
CLUSTERS = 3
BLOCK = 128


def main() -> int:
    """Run the job and return the exit status."""
    device = Device()
    if not device.properties.cluster_launch:
        print(f"{device.name} has no thread block clusters")
        return 0
    device.set_current()
    stream = device.create_stream()

    folders = [find_nvidia_header_directory(name) for name in ("cudart", "cccl")]
    options = ProgramOptions(arch=f"sm_{device.arch}", include_path=[folder for folder in folders if folder])
    kernel = Program(SOURCE, "c++", options).compile().get_kernel("histogram")

    pinned = LegacyPinnedMemoryResource()
    values, counts = pinned.allocate(4 * COUNT), pinned.allocate(4 * BINS)
    value_array, count_array = (np.asarray(buffer).view(np.uint32) for buffer in (values, counts))
    normal = np.random.default_rng(seed=1).normal(BINS / 2, BINS / 8, COUNT)
    value_array[:] = normal.clip(0, BINS - 1)
    count_array[:] = 0

    # The grid counts clusters, of CLUSTER blocks each.
    bins_per_block = BINS // CLUSTER
    config = LaunchConfig(grid=CLUSTERS, cluster=CLUSTER, block=BLOCK, shmem_size=4 * bins_per_block)
    at_once = kernel.occupancy.max_active_clusters(config, stream=stream)
    launch(stream, config, kernel, values, COUNT, bins_per_block, counts)
    stream.sync()

    right = bool((count_array == np.bincount(value_array, minlength=BINS)).all())
    print(
        f"{COUNT:,} values counted by {CLUSTERS} clusters of {CLUSTER} blocks on {device.name}, which takes {at_once} "
        f"at once: {'right' if right else 'WRONG'}"
    )
    for buffer in (values, counts):
        buffer.close()
    stream.close()
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
