# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Just-in-time link-time optimisation: a kernel, and a function that the user of the kernel writes, become one.

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
    Linker,
    LinkerOptions,
    Program,
    ProgramOptions,
    launch,
)

# A library would have this compiled once, to LTO IR, and keep it.
KERNEL = r"""
extern "C" __device__ float map(float x);

extern "C" __global__ void map_all(float *values, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        values[i] = map(values[i]);
}
"""

# This comes from whoever uses it, at run time.
FUNCTION = r"""
extern "C" __device__ float map(float x) { return x * x + 1; }
"""

COUNT = 10_000
BLOCK = 256


def main() -> int:
    """Run the job and return the exit status."""
    device = Device()
    device.set_current()

    options = ProgramOptions(arch=f"sm_{device.arch}")
    parts = [Program(source, "c++", options).compile("ltoir") for source in (KERNEL, FUNCTION)]
    with Linker(*parts, options=LinkerOptions(arch=f"sm_{device.arch}", link_time_optimization=True)) as linker:
        calls = linker.link("ptx").code.decode().count("call")
        code = linker.link("cubin")

    size = COUNT * np.dtype(np.float32).itemsize
    with LegacyPinnedMemoryResource().allocate(size) as buffer, device.create_stream() as stream:
        values = np.asarray(buffer).view(np.float32)
        values[:] = np.arange(COUNT) / 100
        expected = values * values + 1
        config = LaunchConfig(grid=(COUNT + BLOCK - 1) // BLOCK, block=BLOCK)
        launch(stream, config, code.get_kernel("map_all"), buffer, COUNT)
        stream.sync()
        error = np.abs(values / expected - 1).max()
        del values

    print(
        f"{len(parts)} units linked for {device.name}, with {calls} calls left: "
        f"largest relative difference from NumPy {error:.1e}"
    )
    return 0 if error < 1e-6 and calls == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
