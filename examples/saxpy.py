# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Compile a kernel, run it on a device, and check the result: the main job, from source text to numbers.

On a machine without a GPU this script chooses the simulated driver, and says so.
"""

from __future__ import annotations

import ctypes
import os
import sys

import numpy as np


def system_has_gpu() -> bool:
    """Tell whether the system's driver finds a GPU."""
    try:
        return ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
    except OSError:
        return False


if "CUDA_CORE_CFFI_DRIVER" not in os.environ and not system_has_gpu():
    print("No GPU found: this run uses the SIMULATED driver.")
    os.environ["CUDA_CORE_CFFI_DRIVER"] = "simulator"

from cuda_core_cffi import (  # noqa: E402  (the driver is chosen first)
    Device,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Program,
    ProgramOptions,
    launch,
)

SOURCE = r"""
extern "C" __global__ void saxpy(float a, const float *x, float *y, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}
"""
COUNT = 1_000_000
BLOCK = 256


def main() -> int:
    """Run the job and return the exit status."""
    device = Device()
    device.set_current()
    stream = device.create_stream()

    program = Program(SOURCE, "c++", ProgramOptions(arch=f"sm_{device.arch}"))
    kernel = program.compile().get_kernel("saxpy")

    size = COUNT * np.dtype(np.float32).itemsize
    pinned = LegacyPinnedMemoryResource()
    host_x, host_y = pinned.allocate(size), pinned.allocate(size)
    x_array, y_array = (np.asarray(buffer).view(np.float32) for buffer in (host_x, host_y))
    random = np.random.default_rng(seed=1)
    x_array[:] = random.random(COUNT, dtype=np.float32)
    y_array[:] = random.random(COUNT, dtype=np.float32)
    expected = np.float32(2) * x_array + y_array

    x, y = device.allocate(size, stream=stream), device.allocate(size, stream=stream)
    x.copy_from(host_x, stream=stream)
    y.copy_from(host_y, stream=stream)
    config = LaunchConfig(grid=(COUNT + BLOCK - 1) // BLOCK, block=BLOCK)
    launch(stream, config, kernel, 2.0, x, y, COUNT)
    y.copy_to(host_y, stream=stream)
    stream.sync()

    error = np.abs(y_array - expected).max()
    print(f"saxpy of {COUNT:,} elements on {device.name}: largest difference from NumPy {error:.1e}")
    for buffer in (x, y, host_x, host_y):
        buffer.close()
    stream.close()
    return 0 if error < 1e-6 else 1


if __name__ == "__main__":
    sys.exit(main())
