# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Bulk reductions: shared memory combined with memory, that of another block, and boxes of arrays."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import numpy
import pytest
from bulk_kernels import (
    BETWEEN_BLOCKS,
    IN_BOXES,
    IN_MEMORY,
    REDUCTIONS,
    loaded_code,
    needs_bulk_copies,
    reduced,
    swizzle,
)
from helpers import SUPPORT, output_of, run_python

from cuda_core_cffi import CUDAError, Device, LaunchConfig, Program, ProgramOptions, launch
from cuda_core_cffi.utils import StridedMemoryView

BYTES = 1024
DTYPES = {
    "b32": "uint32", "b64": "uint64", "u32": "uint32", "u64": "uint64", "s32": "int32", "s64": "int64",
    "f16": "float16", "f32": "float32", "f64": "float64",
}  # fmt: skip
SUMS = (
    (0x00000001, 0x80000000, 0x00000001),
    (0x007FFFFF, 0x80000000, 0x007FFFFF),
    (0x00000001, 0x80000001, 0x00000000),
    (0x80000001, 0x80000001, 0x80000002),
    (0x80000001, 0x00001000, 0x00000FFF),
    (0x00010000, 0x00010000, 0x00020000),
    (0x7C007BFF, 0xFC017E00, 0xF8810080),
    (0x477FE000, 0x3F803F81, 0x477FE100),
    (0x03FF0400, 0x7F800000, 0x7F800000),
    (0x7F800001, 0x3F800000, 0x7FFFFFFF),
    (0xFFC00000, 0x7FC00000, 0x7FFFFFFF),
    (0x7F807F7F, 0xFF7FFFFF, 0x7FFFFFFF),
    (0x33800000, 0xFFC00000, 0x7FFFFFFF),
)
"""What is there, what is added, and the sum, as bits of 32-bit floats: an H100 gave them."""
ZEROS = (
    ("min", 0x8000, 0x0000, 0x8000),
    ("min", 0x0000, 0x8000, 0x8000),
    ("max", 0x0000, 0x8000, 0x0000),
    ("max", 0x8000, 0x0000, 0x0000),
)
"""The operation, what is there, what is combined with it, and what an H100 left: zeros of 16 bits with their signs."""


@pytest.fixture(autouse=True)
def needs_a_device(device: Device) -> None:
    needs_bulk_copies(device)


@pytest.fixture(scope="module", autouse=True)
def code() -> Any:
    return loaded_code(REDUCTIONS, "memory_add_u32")


def numbers(dtype: str, seed: int) -> Any:
    """Return numbers of all sizes and signs, some of them equal, whose sums and differences are numbers too."""
    pick = numpy.random.default_rng(seed)
    kind = numpy.dtype(dtype)
    count = BYTES // kind.itemsize
    if kind.kind == "f":
        return pick.normal(0, 100, count).astype(kind)
    found = pick.integers(0, 256, BYTES, numpy.uint8).view(kind)
    found[::3] = pick.integers(0, 3, len(found[::3]))
    return found


def combined(device: Device, stream: Any, kernel: Any, config: Any, old: Any, new: Any) -> Any:
    """Return what a kernel leaves of what was there."""
    found = numpy.zeros_like(old)
    with device.allocate(BYTES, stream) as source, device.allocate(BYTES, stream) as target:
        source.copy_from(new, stream=stream)
        target.copy_from(old, stream=stream)
        launch(stream, config, kernel, source, target, BYTES)
        target.copy_to(found, stream=stream)
        stream.sync()
    return found


@pytest.mark.parametrize(("op", "type_"), IN_MEMORY)
def test_memory_is_combined_with_shared_memory(device: Device, stream: Any, code: Any, op: str, type_: str) -> None:
    old, new = numbers(DTYPES[type_], 1), numbers(DTYPES[type_], 2)
    kernel = code.get_kernel(f"memory_{op}_{type_}")
    found = combined(device, stream, kernel, LaunchConfig(grid=1, block=64), old, new)
    assert found.tolist() == reduced(op, old, new).tolist()


def test_sums_of_subnormal_numbers_and_of_nans(device: Device, stream: Any, code: Any) -> None:
    old, new, expected = (numpy.resize(numpy.array(bits, numpy.uint32), BYTES // 4) for bits in zip(*SUMS))
    found = combined(device, stream, code.get_kernel("memory_add_f32"), LaunchConfig(grid=1, block=64), old, new)
    assert found.tolist() == expected.tolist()


def test_boxes_of_subnormal_numbers_and_of_nans_are_added(device: Device, stream: Any, code: Any) -> None:
    old, new, expected = (numpy.resize(numpy.array(bits, numpy.uint32), BYTES // 4) for bits in zip(*SUMS))
    found = numpy.zeros_like(old)
    with device.allocate(BYTES, stream) as source, device.allocate(BYTES, stream) as target:
        source.copy_from(new, stream=stream)
        target.copy_from(old, stream=stream)
        descriptor = StridedMemoryView.from_buffer(target, (16, 16), dtype="float32").as_tensor_map((16, 16))
        kernel = code.get_kernel("box_add")
        launch(stream, LaunchConfig(grid=1, block=64), kernel, descriptor, 0, 0, source, BYTES)
        target.copy_to(found, stream=stream)
        stream.sync()
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(("op", "old", "new", "expected"), ZEROS)
def test_minus_zero_is_less_than_zero(
    device: Device, stream: Any, code: Any, op: str, old: int, new: int, expected: int
) -> None:
    there, other = (numpy.full(BYTES // 2, bits, numpy.uint16) for bits in (old, new))
    kernel = code.get_kernel(f"memory_{op}_f16")
    found = combined(device, stream, kernel, LaunchConfig(grid=1, block=64), there, other)
    assert set(found.tolist()) == {expected}


@pytest.mark.parametrize(("op", "type_"), BETWEEN_BLOCKS)
def test_shared_memory_of_a_block_is_combined_with_that_of_another(
    device: Device, stream: Any, code: Any, op: str, type_: str
) -> None:
    old, new = numbers(DTYPES[type_], 1), numbers(DTYPES[type_], 2)
    kernel = code.get_kernel(f"block_{op}_{type_}")
    found = combined(device, stream, kernel, LaunchConfig(grid=1, cluster=2, block=64), old, new)
    assert found.tolist() == reduced(op, old, new).tolist()


def test_shared_memory_goes_to_another_block(device: Device, stream: Any, code: Any) -> None:
    old, new = numbers("uint32", 1), numbers("uint32", 2)
    kernel = code.get_kernel("block_copy")
    found = combined(device, stream, kernel, LaunchConfig(grid=1, cluster=2, block=64), old, new)
    assert found.tolist() == new.tolist()


@pytest.mark.parametrize("op", sorted({op for op, _ in IN_BOXES}))
def test_boxes_are_combined_with_shared_memory(op: str) -> None:
    # What type a box has only the hardware sees: if it has no such reduction, the context is of no use any more.
    text = output_of(
        """
        import sys
        sys.path[:0] = sys.argv[1:3]
        from test_bulk_reductions import combine_boxes
        combine_boxes(sys.argv[3])
        """,
        str(SUPPORT),
        str(pathlib.Path(__file__).parent),
        op,
    )
    assert text.split("\n") == [f"{dtype} as NumPy" for each, dtype in IN_BOXES if each == op]


@pytest.mark.parametrize(("op", "dtype"), [("add", "int64"), ("xor", "int64"), ("min", "float32"), ("or", "uint8")])
def test_a_reduction_that_the_type_of_a_box_lacks_ends_the_kernel(op: str, dtype: str) -> None:
    done = run_python(
        """
        import sys
        sys.path[:0] = sys.argv[1:3]
        from test_bulk_reductions import combine_boxes
        combine_boxes(*sys.argv[3:])
        """,
        str(SUPPORT),
        str(pathlib.Path(__file__).parent),
        op,
        dtype,
    )
    assert done.stdout.strip() == f"{dtype} CUDA_ERROR_ILLEGAL_INSTRUCTION", done.stderr


@pytest.mark.parametrize("type_", ["and_b32", "add_u32"])
def test_a_reduction_in_shared_memory_of_the_block_itself_ends_the_kernel(type_: str) -> None:
    text = output_of(
        """
        import os, sys
        sys.path.insert(0, sys.argv[1])
        from bulk_kernels import REDUCTIONS
        from cuda_core_cffi import CUDAError, Device, LaunchConfig, Program, ProgramOptions, launch
        device = Device()
        device.set_current()
        stream = device.create_stream()
        program = Program(REDUCTIONS, "c++", ProgramOptions(arch=f"sm_{device.arch}", std="c++17"))
        kernel = program.compile("ptx").get_kernel(f"own_{sys.argv[2]}")
        launch(stream, LaunchConfig(grid=1, block=32), kernel, 512)
        try:
            stream.sync()
        except CUDAError as error:
            print(error.name, flush=True)
        os._exit(0)  # the context is of no use any more
        """,
        str(SUPPORT),
        type_,
    )
    assert text == "CUDA_ERROR_ILLEGAL_INSTRUCTION"


def combine_boxes(op: str, *dtypes: str) -> None:
    """Combine a box of each type with shared memory, and print whether NumPy does the same."""
    device = Device()
    device.set_current()
    stream = device.create_stream()
    with Program(REDUCTIONS, "c++", ProgramOptions(arch=f"sm_{device.arch}", std="c++17")) as program:
        kernel = program.compile("ptx").get_kernel(f"box_{op}")
    for dtype in dtypes or [dtype for each, dtype in IN_BOXES if each == op]:
        try:
            same = combine_box(device, stream, kernel, op, dtype)
        except CUDAError as error:
            print(dtype, error.name, flush=True)
            os._exit(0)
        print(dtype, "as NumPy" if same else "other numbers", flush=True)


def combine_box(device: Device, stream: Any, kernel: Any, op: str, dtype: str) -> bool:
    """Combine a box with shared memory, where a row of it is behind the array, and compare with NumPy."""
    old, new = numbers(dtype, 1).reshape(8, -1), numbers(dtype, 2).reshape(8, -1)
    columns = 64 // old.itemsize
    box = numpy.ascontiguousarray(new[:4, :columns])
    expected, at = old.copy(), (5, columns)
    expected[5:, columns:] = reduced(op, old[5:, columns:], box[:3])
    with device.allocate(BYTES, stream) as source, device.allocate(BYTES, stream) as target:
        source.copy_from(numpy.frombuffer(swizzle(box.tobytes(), "SWIZZLE_64B", 64), numpy.uint8), stream=stream)
        target.copy_from(old, stream=stream)
        view = StridedMemoryView.from_buffer(target, old.shape, dtype=dtype)
        descriptor = view.as_tensor_map(box.shape, swizzle="SWIZZLE_64B")
        launch(stream, LaunchConfig(grid=1, block=64), kernel, descriptor, *at[::-1], source, BYTES)
        found = numpy.zeros_like(old)
        target.copy_to(found, stream=stream)
        stream.sync()
    return bool((expected != old).any()) and found.tolist() == expected.tolist()
