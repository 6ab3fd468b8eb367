# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What bulk copies through tensor maps do to numbers, bit by bit: an H100 gave the numbers that are expected."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from boxes import loaded, numbered
from bulk_kernels import SOURCE, loaded_code, needs_bulk_copies

from cuda_core_cffi import Device
from cuda_core_cffi.typing import TensorMapDataType, TensorMapOOBFill

FILL = 0x7FF7  # 16 bits, repeated in wider types


@pytest.fixture(autouse=True)
def needs_a_device(device: Device) -> None:
    needs_bulk_copies(device)


@pytest.fixture(scope="module", autouse=True)
def code() -> Any:
    return loaded_code(SOURCE, "flat")


@pytest.mark.parametrize(
    ("dtype", "data_type"),
    [
        ("float16", None),
        ("uint16", TensorMapDataType.BFLOAT16),
        ("float32", None),
        ("float32", TensorMapDataType.FLOAT32_FTZ),
        ("float32", TensorMapDataType.TFLOAT32),
        ("float32", TensorMapDataType.TFLOAT32_FTZ),
        ("float64", None),
    ],
    ids=str,
)
def test_elements_outside_are_filled_with_one_nan(
    device: Device, stream: Any, tensor: Any, code: Any, dtype: str, data_type: Any
) -> None:
    array = numbered((8, 128 // numpy.dtype(dtype).itemsize), dtype)
    box = (4, 64 // array.itemsize)
    descriptor = tensor(array).view.as_tensor_map(
        box, data_type=data_type, oob_fill=TensorMapOOBFill.NAN_REQUEST_ZERO_FMA
    )
    found = loaded(device, stream, code.get_kernel("load2"), descriptor, (96 // array.itemsize, 6), 256)
    halves = numpy.frombuffer(found, numpy.uint16).reshape(4, 32)
    assert (halves[2:] == FILL).all()
    assert (halves[:2, 16:] == FILL).all()
    assert (halves[:2, :16] != FILL).all()
