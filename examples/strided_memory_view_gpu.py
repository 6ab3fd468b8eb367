# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Launch a kernel on arrays of CuPy, PyTorch and this package, each in the order of the streams involved.

Without a GPU, run it with ``CUDA_CORE_CFFI_DRIVER=simulator``: CuPy and PyTorch cannot use the simulated device.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from cuda_core_cffi import Device, Kernel, LaunchConfig, Program, ProgramOptions, Stream, launch
from cuda_core_cffi.utils import StridedMemoryView, args_viewable_as_strided_memory

SOURCE = r"""
extern "C" __global__ void add_one(float *x, long long count, long long stride)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < count)
        x[i * stride] += 1;
}
"""
BLOCK = 128
COUNT = 1000


@args_viewable_as_strided_memory((0,))
def add_one(array: Any, kernel: Kernel, stream: Stream) -> StridedMemoryView:
    """Add one to each element of a one-dimensional array, in place."""
    view = array.view(stream.handle)  # from here on, the stream waits for what the array's library still does with it
    if not view.is_device_accessible or view.readonly or view.dtype != np.float32 or len(view.shape) != 1:
        raise ValueError(f"add_one takes a writable one-dimensional array of float32 on a device, not {view!r}")
    stride = 1 if view.strides is None else view.strides[0]
    config = LaunchConfig(grid=(view.size + BLOCK - 1) // BLOCK, block=BLOCK)
    launch(stream, config, kernel, view.ptr, view.size, stride)
    return view


def own_array(device: Device, stream: Stream) -> tuple[Any, Callable[[], Any]]:
    """Return an array in memory of this package, and what reads it back."""
    buffer = device.allocate(COUNT * 4, stream=stream)
    array = StridedMemoryView.from_buffer(buffer, (COUNT,), dtype=np.float32)
    host = np.arange(COUNT, dtype=np.float32)
    array.copy_from(StridedMemoryView.from_any_interface(host, -1), stream)

    def read() -> Any:
        array.copy_to(StridedMemoryView.from_any_interface(host, -1), stream)
        buffer.close()
        return host

    return array, read


def cupy_array(device: Device, stream: Stream) -> tuple[Any, Callable[[], Any]]:
    """Return every second element of a CuPy array, and what reads it back."""
    import cupy

    array = cupy.repeat(cupy.arange(COUNT, dtype=cupy.float32), 2)[::2]
    return array, lambda: cupy.asnumpy(array)


def torch_tensor(device: Device, stream: Stream) -> tuple[Any, Callable[[], Any]]:
    """Return a column of a PyTorch tensor, and what reads it back."""
    import torch

    if not torch.cuda.is_available():
        raise ImportError("this build of PyTorch has no CUDA")
    tensor = torch.arange(COUNT, dtype=torch.float32, device="cuda").reshape(-1, 1).repeat(1, 3)[:, 1]
    return tensor, lambda: tensor.cpu().numpy()


def main() -> int:
    """Run the job and return the exit status."""
    device = Device()
    device.set_current()
    stream = device.create_stream()
    simulated = "Simulated" in device.name
    options = ProgramOptions(arch=f"sm_{device.arch}")
    kernel = Program(SOURCE, "c++", options).compile().get_kernel("add_one")

    sources = {"this package": own_array}
    if not simulated:
        sources |= {"CuPy": cupy_array, "PyTorch": torch_tensor}
    expected = np.arange(COUNT, dtype=np.float32) + 1
    wrong = 0
    for name, make in sources.items():
        try:
            array, read = make(device, stream)
        except ImportError as error:
            print(f"{name} is left out: {error}")
            continue
        view = add_one(array, kernel, stream)
        stream.sync()
        right = bool((read() == expected).all())
        wrong += not right
        print(f"{name} on {device.name}: strides {view.strides}, {'right' if right else 'WRONG'}")
    stream.close()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
