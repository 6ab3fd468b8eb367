# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays for views of them: of NumPy, and objects that have no more of an array than its interface."""

from __future__ import annotations

from typing import Any

import numpy

from cuda_core_cffi.utils import StridedMemoryView

FLOATS = numpy.arange(24, dtype=numpy.float32).reshape(4, 6)


def view(array: Any, stream: int = -1) -> StridedMemoryView:
    """Return a view, for a consumer that waits for a stream, or for none."""
    return StridedMemoryView.from_any_interface(array, stream)


class Interface:
    """Has one of the array interfaces, with fields that a test may change."""

    def __init__(self, name: str, address: int, **fields: Any) -> None:
        described = {"version": 3, "shape": (4, 6), "typestr": "<f4", "data": (address, False)}
        setattr(self, name, described | fields)


def on_cuda(address: int = 0, **fields: Any) -> Interface:
    """Return what shows memory of a device."""
    return Interface("__cuda_array_interface__", address, **fields)


def on_host(address: int = 0x1000, **fields: Any) -> Interface:
    """Return what shows memory of the host."""
    return Interface("__array_interface__", address, **fields)
