# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Run a saxpy with NVIDIA's own cuda-core, unmodified, on whatever ``libcuda.so.1`` the loader finds.

``.ci/run`` points it at the simulated driver: independent proof that that is a CUDA driver.
"""

from __future__ import annotations

import numpy as np
from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, ProgramOptions, launch

SOURCE = r"""
extern "C" __global__ void saxpy(float a, const float *x, float *y, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
"""
COUNT = 100_000
BLOCK = 256

device = Device()
device.set_current()
stream = device.create_stream()
program = Program(SOURCE, "c++", ProgramOptions(arch=f"sm_{device.arch}"))
kernel = program.compile("ptx").get_kernel("saxpy")

size = COUNT * 4
pinned = LegacyPinnedMemoryResource()
host_x, host_y = pinned.allocate(size, stream=stream), pinned.allocate(size, stream=stream)
x_array, y_array = (np.from_dlpack(buffer).view(np.float32) for buffer in (host_x, host_y))
random = np.random.default_rng(seed=1)
x_array[:] = random.random(COUNT, dtype=np.float32)
y_array[:] = random.random(COUNT, dtype=np.float32)
expected = np.float32(2) * x_array + y_array

x, y = device.allocate(size, stream=stream), device.allocate(size, stream=stream)
x.copy_from(host_x, stream=stream)
y.copy_from(host_y, stream=stream)
config = LaunchConfig(grid=(COUNT + BLOCK - 1) // BLOCK, block=BLOCK)
launch(stream, config, kernel, np.float32(2), x, y, np.uint64(COUNT))
y.copy_to(host_y, stream=stream)
stream.sync()

error = np.abs(y_array - expected).max()
assert error < 1e-6, error
print(f"cuda-core on {device.name}: saxpy of {COUNT:,} elements, largest difference from NumPy {error:.1e}")
