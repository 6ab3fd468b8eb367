# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays on the device that tensor maps describe, and what kernels find in the boxes that they load."""

from __future__ import annotations

from typing import Any

import numpy
from bulk_kernels import SHARED_BYTES

from cuda_core_cffi import Device, LaunchConfig, launch
from cuda_core_cffi.utils import StridedMemoryView

ONE_BLOCK = LaunchConfig(grid=1, block=64)


class Tensor:
    """An array on the device, with rows that a tensor map can have."""

    def __init__(self, device: Device, stream: Any, array: Any) -> None:
        self.array, self.stream = array, stream
        itemsize = array.dtype.itemsize
        row = -(-array.shape[-1] * itemsize // 16) * 16 // itemsize
        self.padded = numpy.zeros((*array.shape[:-1], row), array.dtype)
        self.padded[..., : array.shape[-1]] = array
        self.buffer = device.allocate(self.padded.nbytes, stream)
        self.buffer.copy_from(self.padded, stream=stream)
        strides = tuple(stride // itemsize for stride in self.padded.strides)
        self.view = StridedMemoryView.from_buffer(self.buffer, array.shape, strides, dtype=array.dtype)

    def read(self) -> Any:
        found = numpy.zeros_like(self.padded)
        self.buffer.copy_to(found, stream=self.stream)
        self.stream.sync()
        return found[..., : self.array.shape[-1]]


def numbered(shape: Any, dtype: Any) -> Any:
    """Return an array whose elements differ as long as the type can tell them apart."""
    return (numpy.arange(1, 1 + numpy.prod(shape)) % 251).astype(dtype).reshape(shape)


def loaded(
    device: Device, stream: Any, kernel: Any, descriptor: Any, numbers: Any, bytes_: int, told: int | None = None
) -> bytes:
    """Return what a kernel found in shared memory after so many bytes were copied."""
    with device.allocate(SHARED_BYTES, stream) as out:
        launch(stream, ONE_BLOCK, kernel, descriptor, *numbers, out, bytes_)
        found = numpy.zeros(SHARED_BYTES, numpy.uint8)
        out.copy_to(found, stream=stream)
        stream.sync()
    return found.tobytes()[: bytes_ if told is None else told]
