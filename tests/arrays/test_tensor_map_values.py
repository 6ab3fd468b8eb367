# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What bulk copies through tensor maps do to numbers, bit by bit: an H100 gave the numbers that are expected."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from boxes import ONE_BLOCK, loaded, numbered
from bulk_kernels import SOURCE, loaded_code, needs_bulk_copies

from cuda_core_cffi import Device, launch
from cuda_core_cffi.typing import TensorMapDataType, TensorMapOOBFill
from cuda_core_cffi.utils import StridedMemoryView

FILL = 0x7FF7  # 16 bits, repeated in wider types
TF32 = {
    0x00000001: 0x00000000,
    0x00001000: 0x00000000,  # half of the last bit, to even
    0x007FFFFF: 0x00800000,
    0x80000001: 0x80000000,
    0x3F800001: 0x3F800000,
    0x3F801000: 0x3F800000,
    0x3F801001: 0x3F802000,
    0x3F802FFF: 0x3F802000,
    0x3F803F81: 0x3F804000,
    0x477FF000: 0x47800000,
    0xFC017E00: 0xFC018000,
    0x7F7FFFFF: 0x7F800000,
    0xFF7FFFFF: 0xFF800000,
    0x7F800000: 0x7F800000,
    0x7F800001: 0x7FFFE000,
    0xFFC00000: 0x7FFFE000,
}
"""Floats, and what is loaded of them, as bits."""


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


@pytest.mark.parametrize("data_type", [TensorMapDataType.TFLOAT32, TensorMapDataType.TFLOAT32_FTZ])
def test_tf32_is_rounded_when_it_is_loaded(device: Device, stream: Any, tensor: Any, code: Any, data_type: Any) -> None:
    array = numpy.array(list(TF32), numpy.uint32).view(numpy.float32)
    descriptor = tensor(array).view.as_tensor_map(array.shape, data_type=data_type)
    found = loaded(device, stream, code.get_kernel("load1"), descriptor, (0,), array.nbytes)
    assert numpy.frombuffer(found, numpy.uint32).tolist() == list(TF32.values())


@pytest.mark.parametrize("data_type", [TensorMapDataType.FLOAT32_FTZ, TensorMapDataType.FLOAT32])
def test_other_floats_are_loaded_as_they_are(
    device: Device, stream: Any, tensor: Any, code: Any, data_type: Any
) -> None:
    array = numpy.array(list(TF32), numpy.uint32).view(numpy.float32)
    descriptor = tensor(array).view.as_tensor_map(array.shape, data_type=data_type)
    found = loaded(device, stream, code.get_kernel("load1"), descriptor, (0,), array.nbytes)
    assert found == array.tobytes()


@pytest.mark.parametrize(
    ("dtype", "data_type"), [("uint8", "float32"), ("float32", "uint8"), ("uint16", "float64")], ids=str
)
def test_elements_of_another_size_are_the_same_bytes(
    device: Device, stream: Any, tensor: Any, code: Any, dtype: str, data_type: str
) -> None:
    array = numbered((8, 128 // numpy.dtype(dtype).itemsize), dtype)
    item = numpy.dtype(data_type).itemsize
    descriptor = tensor(array).view.as_tensor_map((4, 32 // item), data_type=data_type)
    found = loaded(device, stream, code.get_kernel("load2"), descriptor, (64 // item, 2), 128)
    assert found == array.view("uint8")[2:6, 64:96].tobytes()


@pytest.mark.parametrize("data_type", [TensorMapDataType.TFLOAT32, TensorMapDataType.TFLOAT32_FTZ])
def test_tf32_is_stored_as_it_is(device: Device, stream: Any, tensor: Any, code: Any, data_type: Any) -> None:
    array = numpy.array(list(TF32), numpy.uint32).view(numpy.float32)
    target = tensor(numpy.zeros_like(array))
    descriptor = target.view.as_tensor_map(array.shape, data_type=data_type)
    with device.allocate(array.nbytes, stream) as source:
        source.copy_from(array, stream=stream)
        launch(stream, ONE_BLOCK, code.get_kernel("store1"), descriptor, 0, source, array.nbytes)
        assert target.read().tobytes() == array.tobytes()


def test_the_last_piece_of_one_dimension_is_stored_whole(device: Device, stream: Any, tensor: Any, code: Any) -> None:
    target = tensor(numbered((101,), "float32"))
    values = -numbered((32,), "float32")
    expected = target.padded.copy()
    expected[100:] = values[:4]  # the last element, and three behind the array
    descriptor = target.view.as_tensor_map((32,))
    found = numpy.zeros_like(expected)
    with device.allocate(values.nbytes, stream) as source:
        source.copy_from(values, stream=stream)
        launch(stream, ONE_BLOCK, code.get_kernel("store1"), descriptor, 100, source, values.nbytes)
        target.buffer.copy_to(found, stream=stream)
        stream.sync()
    assert found.tolist() == expected.tolist()


def test_the_last_piece_may_be_longer_than_the_memory(device: Device, stream: Any, code: Any) -> None:
    values, found = numbered((32,), "float32"), numpy.zeros(101, numpy.float32)
    with device.allocate(found.nbytes, stream) as target, device.allocate(values.nbytes, stream) as source:
        source.copy_from(values, stream=stream)
        target.fill(0, stream=stream)
        descriptor = StridedMemoryView.from_buffer(target, (101,), dtype="float32").as_tensor_map((32,))
        launch(stream, ONE_BLOCK, code.get_kernel("store1"), descriptor, 100, source, values.nbytes)
        target.copy_to(found, stream=stream)
        stream.sync()
    assert found.tolist() == [0] * 100 + [1]
