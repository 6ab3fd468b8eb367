# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Tensor maps as Python describes them, and as the driver encodes them."""

from __future__ import annotations

from typing import Any

import numpy

from cuda_core_cffi import Buffer, TensorMapDescriptor, driver
from cuda_core_cffi.utils import StridedMemoryView


def view(buffer: Buffer, shape: Any = (64, 64), dtype: Any = numpy.float32, strides: Any = None) -> StridedMemoryView:
    """Return a view of a buffer, of a type."""
    return StridedMemoryView.from_buffer(buffer, shape, strides, dtype=numpy.dtype(dtype))


def words(descriptor: TensorMapDescriptor) -> list[int]:
    """Return the map, as kernels get it."""
    return numpy.frombuffer(descriptor._kernel_bytes(), numpy.uint64).tolist()


def encoded(*arguments: Any, kind: str = "Tiled") -> list[int]:
    """Return what the driver itself makes of a description, the innermost dimension first."""
    status, made = getattr(driver, f"cuTensorMapEncode{kind}")(*arguments)
    assert status == 0, status
    return list(made.opaque)
