# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Compile a kernel that was written in NVVM IR, as a compiler of one's own would write it, and check its result.

The kernel calls functions of libdevice, NVIDIA's library of mathematical functions, and of another module. On a machine
without a GPU this script chooses the simulated driver, and says so, as saxpy.py beside it does.
"""

from __future__ import annotations

import sys

import numpy as np
import saxpy  # noqa: F401  (it chooses the driver)

from cuda_core_cffi import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, ProgramOptions, launch

# What every module begins and ends with: where things lie in memory, what it is for, and the version of the IR.
HEADER = """
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-\
v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
!nvvmir.version = !{!0}
!0 = !{i32 2, i32 0}
"""
KERNEL = (
    HEADER
    + """
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare float @damped(float)

define void @wave(float* %x, i32 %count) {
entry:
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %width = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %start = mul i32 %block, %width
  %index = add i32 %start, %thread
  %inside = icmp ult i32 %index, %count
  br i1 %inside, label %work, label %done
work:
  %place = getelementptr float, float* %x, i32 %index
  %old = load float, float* %place
  %new = call float @damped(float %old)
  store float %new, float* %place
  br label %done
done:
  ret void
}
!nvvm.annotations = !{!1}
!1 = !{void (float*, i32)* @wave, !"kernel", i32 1}
"""
)
DAMPED = (
    HEADER
    + """
declare float @__nv_sinf(float)
declare float @__nv_expf(float)

define float @damped(float %x) {
  %minus = fsub float -0.0, %x
  %height = call float @__nv_expf(float %minus)
  %sine = call float @__nv_sinf(float %x)
  %y = fmul float %height, %sine
  ret float %y
}
"""
)
COUNT = 100_000
BLOCK = 256


def main() -> int:
    """Run the job and return the exit status."""
    device = Device()
    device.set_current()
    stream = device.create_stream()

    arch = f"sm_{device.arch}"
    options = ProgramOptions(name="wave.ll", arch=arch, use_libdevice=True, extra_sources=[("damped.ll", DAMPED)])
    code = Program(KERNEL, "nvvm", options).compile("ptx")
    # the driver may be older than the compiler, and then it does not read the compiler's PTX
    code = Program(code.code, "ptx", ProgramOptions(name="wave.ptx", arch=arch)).compile()
    kernel = code.get_kernel("wave")

    buffer = LegacyPinnedMemoryResource().allocate(COUNT * np.dtype(np.float32).itemsize)
    array = np.asarray(buffer).view(np.float32)
    array[:] = np.linspace(0, 10, COUNT, dtype=np.float32)
    expected = np.exp(-array) * np.sin(array)
    launch(stream, LaunchConfig(grid=(COUNT + BLOCK - 1) // BLOCK, block=BLOCK), kernel, buffer, COUNT)
    stream.sync()

    error = np.abs(array - expected).max()
    print(f"a wave of {COUNT:,} elements on {device.name}: largest difference from NumPy {error:.1e}")
    buffer.close()
    stream.close()
    return 0 if error < 1e-6 else 1


if __name__ == "__main__":
    sys.exit(main())
