# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Work on part of a matrix in place: views and layouts tell a kernel where the elements are, and nothing is copied.

Without a GPU, run it with ``CUDA_CORE_CFFI_DRIVER=simulator``.
"""

from __future__ import annotations

import sys

import numpy as np

from cuda_core_cffi import Device, Kernel, LaunchConfig, Program, ProgramOptions, Stream, launch
from cuda_core_cffi.utils import StridedMemoryView, args_viewable_as_strided_memory

SOURCE = r"""
extern "C" __global__ void scale(float *x, long long rows, long long columns, long long row_stride,
                                 long long column_stride, float factor)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < rows * columns)
        x[i / columns * row_stride + i % columns * column_stride] *= factor;
}
"""
BLOCK = 128
ROWS, COLUMNS = 30, 40


@args_viewable_as_strided_memory((0,))
def scale(matrix, factor: float, kernel: Kernel, stream: Stream) -> None:
    """Multiply a matrix of any library by a factor, in place."""
    view = matrix.view(stream.handle)
    layout = view._layout
    if not view.is_device_accessible or view.readonly or view.dtype != np.float32:
        raise ValueError(f"scale takes a writable float32 matrix that the device can access, not {view!r}")
    if not layout.is_unique:
        raise ValueError(f"elements that share memory would be scaled more than once: {layout!r}")
    if layout.volume == 0:
        return
    strides = layout.strides or layout.to_dense((0, 1)).strides
    config = LaunchConfig(grid=(layout.volume + BLOCK - 1) // BLOCK, block=BLOCK)
    launch(stream, config, kernel, view.ptr, *layout.shape, *strides, factor)


def main() -> int:
    """Run the job and return the exit status."""
    device = Device()
    device.set_current()
    stream = device.create_stream()
    kernel = Program(SOURCE, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile().get_kernel("scale")

    array = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
    on_host = StridedMemoryView.from_any_interface(array, -1)
    size = on_host._layout.to_dense().required_size_in_bytes()
    buffer = device.allocate(size, stream=stream)
    on_device = StridedMemoryView.from_buffer(buffer, array.shape, dtype=array.dtype)
    on_device.copy_from(on_host, stream)

    inner = on_device.view(on_device._layout[1:-1, ::2])
    scale(inner, 10.0, kernel, stream)
    scale(on_device.view(on_device._layout.permuted((1, 0))), 0.5, kernel, stream)
    result = np.empty_like(array)
    on_device.copy_to(StridedMemoryView.from_any_interface(result, -1), stream)
    stream.sync()

    array[1:-1, ::2] *= 10
    array *= 0.5
    right = bool((result == array).all())
    print(f"{inner.size} of {array.size} elements scaled in place on {device.name}: {'right' if right else 'WRONG'}")
    buffer.close()
    stream.close()
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
