# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that copy boxes through tensor maps, compared with NumPy."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from boxes import ONE_BLOCK, loaded, numbered
from bulk_kernels import SOURCE, columns, loaded_code, needs_bulk_copies, swizzle, tile
from helpers import SUPPORT, output_of

from cuda_core_cffi import Device, LaunchConfig, TensorMapDescriptor, launch
from cuda_core_cffi.typing import TensorMapOOBFill

SHAPES = {1: (100,), 2: (20, 36), 3: (5, 9, 20), 4: (3, 4, 5, 12), 5: (2, 3, 3, 4, 12)}
BOXES = {1: (32,), 2: (8, 16), 3: (2, 4, 8), 4: (2, 2, 3, 8), 5: (1, 2, 2, 3, 4)}


@pytest.fixture(autouse=True)
def needs_a_device(device: Device) -> None:
    needs_bulk_copies(device)


@pytest.fixture(scope="module", autouse=True)
def code() -> Any:
    return loaded_code(SOURCE, "flat")


@pytest.mark.parametrize("where", ["inside", "at the end", "before the start", "outside"])
@pytest.mark.parametrize("rank", SHAPES)
def test_a_box_is_loaded(device: Device, stream: Any, tensor: Any, code: Any, rank: int, where: str) -> None:
    array, box = numbered(SHAPES[rank], numpy.int32), BOXES[rank]
    start = {
        "inside": [min(1, extent - 1) for extent in array.shape],
        "at the end": [extent - 1 for extent in array.shape],
        "before the start": [-1] * rank,
        "outside": [extent + 5 for extent in array.shape],
    }[where]
    start[-1] = start[-1] // 4 * 4  # hardware reads from multiples of 16 bytes
    descriptor = tensor(array).view.as_tensor_map(box)
    expected = tile(array, start, box, [1] * rank)
    found = loaded(device, stream, code.get_kernel(f"load{rank}"), descriptor, start[::-1], expected.nbytes)
    assert numpy.frombuffer(found, array.dtype).reshape(box).tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "uint64", "float16", "float32", "float64"])
def test_elements_of_every_type_are_loaded(device: Device, stream: Any, tensor: Any, code: Any, dtype: str) -> None:
    array = numbered((20, 48), dtype)
    descriptor = tensor(array).view.as_tensor_map((8, 16))
    expected = tile(array, (15, 32), (8, 16), (1, 1))
    found = loaded(device, stream, code.get_kernel("load2"), descriptor, (32, 15), expected.nbytes)
    assert numpy.frombuffer(found, dtype).reshape(8, 16).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("NONE", 64),
        ("SWIZZLE_32B", 32),
        ("SWIZZLE_64B", 64),
        ("SWIZZLE_128B", 128),
        # each row begins a span
        ("SWIZZLE_32B", 16),
        ("SWIZZLE_64B", 16),
        ("SWIZZLE_64B", 48),
        ("SWIZZLE_128B", 32),
        ("SWIZZLE_128B", 112),
    ],
)
def test_a_box_is_swizzled(device: Device, stream: Any, tensor: Any, code: Any, kind: str, row: int) -> None:
    array = numbered((40, 64), numpy.uint16)
    width = row // 2
    descriptor = tensor(array).view.as_tensor_map((32, width), swizzle=kind)
    values = tile(array, (3, 0), (32, width), (1, 1))
    expected = swizzle(values.tobytes(), kind, row)
    kernel = code.get_kernel("load2")
    found = loaded(device, stream, kernel, descriptor, (0, 3), values.nbytes, told=len(expected))
    assert found == expected


def test_elements_between_the_steps_are_left_out(device: Device, stream: Any, tensor: Any, code: Any) -> None:
    array = numbered((9, 12, 20), numpy.int32)
    descriptor = tensor(array).view.as_tensor_map((5, 6, 8), element_strides=(2, 3, 1))
    expected = tile(array, (1, 2, 4), (5, 6, 8), (2, 3, 1))
    assert expected.shape == (3, 2, 8)
    found = loaded(device, stream, code.get_kernel("load3"), descriptor, (4, 2, 1), expected.nbytes)
    assert numpy.frombuffer(found, numpy.int32).reshape(expected.shape).tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_what_is_outside_can_be_no_number(device: Device, stream: Any, tensor: Any, code: Any, dtype: str) -> None:
    array = numbered((8, 16), dtype)
    descriptor = tensor(array).view.as_tensor_map((8, 16), oob_fill=TensorMapOOBFill.NAN_REQUEST_ZERO_FMA)
    expected = tile(array, (4, -8), (8, 16), (1, 1), fill=numpy.nan)
    found = loaded(device, stream, code.get_kernel("load2"), descriptor, (-8, 4), expected.nbytes)
    numpy.testing.assert_array_equal(numpy.frombuffer(found, dtype).reshape(8, 16), expected)


@pytest.mark.parametrize("kind", ["NONE", "SWIZZLE_128B"])
@pytest.mark.parametrize("rank", SHAPES)
def test_a_box_is_stored_and_nothing_beside_it(
    device: Device, stream: Any, tensor: Any, code: Any, rank: int, kind: str
) -> None:
    array, box = numbered(SHAPES[rank], numpy.float32), BOXES[rank]
    target = tensor(array)
    start = [extent - (extents + 1) // 2 for extent, extents in zip(array.shape, box)]
    start[-1] = start[-1] // 4 * 4  # hardware writes from multiples of 16 bytes on
    values = -numpy.arange(1, 1 + numpy.prod(box), dtype=numpy.float32).reshape(box)
    expected = array.copy()
    for index in numpy.ndindex(*box):
        place = tuple(first + at for first, at in zip(start, index))
        if all(0 <= at < extent for at, extent in zip(place, array.shape)):
            expected[place] = values[index]
    descriptor = target.view.as_tensor_map(box, swizzle=kind)
    data = numpy.frombuffer(swizzle(values.tobytes(), kind, 4 * box[-1]), numpy.uint8)
    with device.allocate(data.nbytes, stream) as source:
        source.copy_from(data, stream=stream)
        launch(stream, ONE_BLOCK, code.get_kernel(f"store{rank}"), descriptor, *start[::-1], source, data.nbytes)
        stream.sync()
    assert (expected != array).any()
    assert target.read().tolist() == expected.tolist()


@pytest.mark.parametrize("steps", [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("offsets", [(0, 0), (1, 2), (2, 0)])
def test_pixels_are_loaded_as_columns(
    device: Device, stream: Any, tensor: Any, code: Any, offsets: Any, steps: Any
) -> None:
    images = numbered((3, 6, 7, 16), numpy.int32)
    lower, upper = (-1, -1), (-1, -1)
    descriptor = TensorMapDescriptor.from_im2col(
        tensor(images).view, lower, upper, 8, 40, element_strides=(1, *steps, 1)
    )
    start = (0, 1, 3, 4)
    expected = columns(images, start, offsets, lower, upper, 8, 40, steps)
    found = loaded(
        device, stream, code.get_kernel("pixels"), descriptor, (*start[::-1], *offsets[::-1]), expected.nbytes
    )
    assert numpy.frombuffer(found, numpy.int32).reshape(40, 8).tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("kernel", "start"),
    [("load2", (2, 0)), ("store2", (2, 0)), ("store2", (-4, 0)), ("store2", (0, -1))],
    ids=[
        "a load between multiples of 16 bytes",
        "a store there",
        "a store before a row",
        "a store before the first row",
    ],
)
def test_a_box_that_begins_elsewhere_ends_the_kernel(kernel: str, start: tuple[int, int]) -> None:
    text = output_of(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        from bulk_kernels import SOURCE
        import numpy
        from cuda_core_cffi import CUDAError, Device, LaunchConfig, Program, ProgramOptions, launch
        from cuda_core_cffi.utils import StridedMemoryView
        device = Device()
        device.set_current()
        stream = device.create_stream()
        memory, box = device.allocate(4 * 32 * 32, stream), device.allocate(4 * 8 * 8, stream)
        view = StridedMemoryView.from_buffer(memory, (32, 32), dtype="float32")
        descriptor = view.as_tensor_map((8, 8))
        program = Program(SOURCE, "c++", ProgramOptions(arch=f"sm_{device.arch}", std="c++17"))
        kernel = program.compile("ptx").get_kernel(sys.argv[2])
        x, y = map(int, sys.argv[3:])
        launch(stream, LaunchConfig(grid=1, block=32), kernel, descriptor, x, y, box, 4 * 8 * 8)
        try:
            stream.sync()
        except CUDAError as error:
            print(error.name, flush=True)
        import os
        os._exit(0)  # the context is of no use any more
        """,
        str(SUPPORT),
        kernel,
        *map(str, start),
    )
    assert text == "CUDA_ERROR_ILLEGAL_INSTRUCTION"


@pytest.mark.parametrize(
    ("lower", "upper", "first", "expected"),
    [
        (0, 0, 6, "SUCCESS"),
        (1, -2, 3, "SUCCESS"),
        (0, 0, -1, "CUDA_ERROR_ILLEGAL_INSTRUCTION"),
        (1, -2, 0, "CUDA_ERROR_ILLEGAL_INSTRUCTION"),
        (-1, -1, 6, "CUDA_ERROR_ILLEGAL_INSTRUCTION"),
    ],
)
def test_the_first_pixel_is_one_of_the_pixel_box(lower: int, upper: int, first: int, expected: str) -> None:
    text = output_of(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        from bulk_kernels import SOURCE
        from cuda_core_cffi import CUDAError, Device, LaunchConfig, Program, ProgramOptions, TensorMapDescriptor, launch
        from cuda_core_cffi.utils import StridedMemoryView
        device = Device()
        device.set_current()
        stream = device.create_stream()
        memory, out = device.allocate(4 * 16 * 7 * 3, stream), device.allocate(4 * 8 * 40, stream)
        lower, upper, first = map(int, sys.argv[2:])
        view = StridedMemoryView.from_buffer(memory, (3, 7, 16), dtype="int32")
        descriptor = TensorMapDescriptor.from_im2col(view, (lower,), (upper,), 8, 40)
        program = Program(SOURCE, "c++", ProgramOptions(arch=f"sm_{device.arch}", std="c++17"))
        kernel = program.compile("ptx").get_kernel("pixels3")
        launch(stream, LaunchConfig(grid=1, block=32), kernel, descriptor, 0, first, 0, 1, out, 4 * 8 * 40)
        try:
            stream.sync()
            print("SUCCESS", flush=True)
        except CUDAError as error:
            print(error.name, flush=True)
        import os
        os._exit(0)  # the context may be of no use any more
        """,
        str(SUPPORT),
        *map(str, (lower, upper, first)),
    )
    assert text == expected


def test_bytes_go_there_and_back(device: Device, stream: Any, code: Any) -> None:
    data = numpy.random.default_rng(1).integers(0, 256, 4096, numpy.uint8)
    back = numpy.zeros_like(data)
    with device.allocate(4096, stream) as source, device.allocate(4096, stream) as target:
        source.copy_from(data, stream=stream)
        target.fill(0, stream=stream)
        launch(stream, ONE_BLOCK, code.get_kernel("flat"), source, target, 4080)
        target.copy_to(back, stream=stream)
        stream.sync()
    assert back.tolist() == [*data[:4080].tolist(), *[0] * 16]


def test_several_blocks_of_a_cluster_get_the_box(device: Device, stream: Any, tensor: Any, code: Any) -> None:
    array = numbered((16, 32), numpy.int32)
    descriptor = tensor(array).view.as_tensor_map((8, 16))
    config = LaunchConfig(grid=1, cluster=2, block=64)
    expected = tile(array, (3, 4), (8, 16), (1, 1)).tobytes()
    with device.allocate(2 * len(expected), stream) as out:
        launch(stream, config, code.get_kernel("several"), descriptor, 4, 3, out, len(expected))
        found = numpy.zeros(2 * len(expected), numpy.uint8)
        out.copy_to(found, stream=stream)
        stream.sync()
    assert found.tobytes() == expected * 2


def test_a_replaced_address_is_used(device: Device, stream: Any, tensor: Any, code: Any) -> None:
    first, second = numbered((8, 16), numpy.int32), -numbered((8, 16), numpy.int32)
    descriptor = tensor(first).view.as_tensor_map((8, 16))
    for array in (first, second):  # a kernel has got the one when the other takes its place
        found = loaded(device, stream, code.get_kernel("load2"), descriptor, (0, 0), array.nbytes)
        assert numpy.frombuffer(found, numpy.int32).reshape(8, 16).tolist() == array.tolist()
        descriptor.replace_address(tensor(second).view)
