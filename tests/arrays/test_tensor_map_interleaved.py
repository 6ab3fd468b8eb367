# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Boxes and pixels of arrays with interleaved channels: each place along the width is a slice of 16 or 32 bytes."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from boxes import ONE_BLOCK, loaded, numbered
from bulk_kernels import SOURCE, columns, loaded_code, needs_bulk_copies, swizzle, tile
from helpers import SUPPORT, output_of

from cuda_core_cffi import Device, TensorMapDescriptor, launch
from cuda_core_cffi.utils import StridedMemoryView

SLICE = {"INTERLEAVE_16B": 16, "INTERLEAVE_32B": 32}
SHAPES = {3: (3, 4, 10), 4: (3, 2, 5, 10), 5: (2, 2, 3, 4, 10)}  # images, slices, depth, height, width
BOXES = {3: (2, 1, 8), 4: (2, 1, 3, 8), 5: (2, 1, 2, 3, 8)}


@pytest.fixture(autouse=True)
def needs_a_device(device: Device) -> None:
    needs_bulk_copies(device)


@pytest.fixture(scope="module", autouse=True)
def code() -> Any:
    return loaded_code(SOURCE, "flat")


class Slices:
    """An array of slices on the device, and a view for tensor maps, in which a slice is one place."""

    def __init__(self, device: Device, stream: Any, shape: Any, interleave: str, dtype: str) -> None:
        per = SLICE[interleave] // numpy.dtype(dtype).itemsize
        self.array, self.stream = numbered((*shape, per), dtype), stream
        self.buffer = device.allocate(self.array.nbytes, stream)
        self.buffer.copy_from(self.array, stream=stream)
        strides = [stride // self.array.itemsize for stride in self.array.strides[:-2]]
        self.view = StridedMemoryView.from_buffer(self.buffer, shape, (*strides, 1), dtype=dtype)

    def tile(self, start: Any, box: Any, steps: Any) -> Any:
        """Return the slices of a box; those outside are 0."""
        parts = [tile(self.array[..., at], start, box, steps) for at in range(self.array.shape[-1])]
        return numpy.stack(parts, axis=-1)

    def read(self) -> Any:
        found = numpy.zeros_like(self.array)
        self.buffer.copy_to(found, stream=self.stream)
        self.stream.sync()
        return found


@pytest.fixture
def slices(device: Device, stream: Any) -> Any:
    made: list[Slices] = []

    def make(shape: Any, interleave: str, dtype: str = "float32") -> Slices:
        made.append(Slices(device, stream, shape, interleave, dtype))
        return made[-1]

    yield make
    stream.sync()
    for item in made:
        item.buffer.close()


@pytest.mark.parametrize("where", ["inside", "at the end", "before the start"])
@pytest.mark.parametrize(
    ("interleave", "kind"),
    [
        ("INTERLEAVE_16B", "NONE"),
        ("INTERLEAVE_16B", "SWIZZLE_32B"),
        ("INTERLEAVE_16B", "SWIZZLE_64B"),
        ("INTERLEAVE_16B", "SWIZZLE_128B"),
        ("INTERLEAVE_32B", "SWIZZLE_32B"),
    ],
)
@pytest.mark.parametrize("rank", SHAPES)
def test_a_box_of_slices_is_loaded(
    device: Device, stream: Any, slices: Any, code: Any, rank: int, interleave: str, kind: str, where: str
) -> None:
    shape, box = SHAPES[rank], BOXES[rank]
    start = {
        "inside": [0, *[1] * (rank - 2), 2],
        "at the end": [extent - 1 for extent in shape],
        "before the start": [0, 1, *[-1] * (rank - 2)],
    }[where]
    array = slices(shape, interleave)
    expected = array.tile(start, box, [1] * rank).tobytes()
    descriptor = array.view.as_tensor_map(box, interleave=interleave, swizzle=kind)
    found = loaded(device, stream, code.get_kernel(f"load{rank}"), descriptor, start[::-1], len(expected))
    assert found == swizzle(expected, kind, len(expected))[: len(expected)]


def test_rows_of_slices_that_are_shorter_than_the_span_follow_one_another(
    device: Device, stream: Any, slices: Any, code: Any
) -> None:
    array = slices(SHAPES[3], "INTERLEAVE_16B")
    expected = array.tile((0, 0, 0), (2, 1, 4), (1, 1, 1)).tobytes()
    descriptor = array.view.as_tensor_map((2, 1, 4), interleave="INTERLEAVE_16B", swizzle="SWIZZLE_128B")
    found = loaded(device, stream, code.get_kernel("load3"), descriptor, (0, 0, 0), len(expected))
    assert found == expected  # all of it in the first line of the pattern


@pytest.mark.parametrize(("interleave", "kind"), [("INTERLEAVE_16B", "NONE"), ("INTERLEAVE_32B", "SWIZZLE_32B")])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float16"])
def test_slices_of_every_type_have_as_many_bytes(
    device: Device, stream: Any, slices: Any, code: Any, dtype: str, interleave: str, kind: str
) -> None:
    array = slices((3, 4, 40), interleave, dtype)
    expected = array.tile((0, 1, 2), (2, 1, 32), (1, 1, 1)).tobytes()
    descriptor = array.view.as_tensor_map((2, 1, 32), interleave=interleave, swizzle=kind)
    found = loaded(device, stream, code.get_kernel("load3"), descriptor, (2, 1, 0), len(expected))
    assert found == swizzle(expected, kind, len(expected))[: len(expected)]


@pytest.mark.parametrize("count", [2, 3, 8])
def test_a_box_has_one_slice(device: Device, stream: Any, slices: Any, code: Any, count: int) -> None:
    array = slices(SHAPES[3], "INTERLEAVE_16B")
    expected = array.tile((0, 1, 0), (2, 1, 8), (1, 1, 1)).tobytes()
    descriptor = array.view.as_tensor_map((2, count, 8), interleave="INTERLEAVE_16B")
    found = loaded(device, stream, code.get_kernel("load3"), descriptor, (0, 1, 0), len(expected))
    assert found == expected


@pytest.mark.parametrize("step", [2, 3, 8])
def test_places_between_the_steps_are_left_out(device: Device, stream: Any, slices: Any, code: Any, step: int) -> None:
    array = slices(SHAPES[3], "INTERLEAVE_32B")
    expected = array.tile((0, 0, 0), (2, 1, 8), (1, 1, step)).tobytes()
    descriptor = array.view.as_tensor_map(
        (2, 1, 8), interleave="INTERLEAVE_32B", swizzle="SWIZZLE_32B", element_strides=(1, 1, step)
    )
    found = loaded(device, stream, code.get_kernel("load3"), descriptor, (0, 0, 0), len(expected))
    assert found == swizzle(expected, "SWIZZLE_32B", len(expected))[: len(expected)]


@pytest.mark.parametrize(
    ("interleave", "kind"), [("INTERLEAVE_16B", "SWIZZLE_128B"), ("INTERLEAVE_32B", "SWIZZLE_32B")]
)
@pytest.mark.parametrize("rank", SHAPES)
def test_a_box_of_slices_is_stored(
    device: Device, stream: Any, slices: Any, code: Any, rank: int, interleave: str, kind: str
) -> None:
    array, box = slices(SHAPES[rank], interleave), BOXES[rank]
    start = [0, *[1] * (rank - 2), 4]
    values = -numpy.arange(1, 1 + numpy.prod(box) * array.array.shape[-1], dtype=numpy.float32)
    values = values.reshape(*box, -1)
    expected = array.array.copy()
    inside = tuple(slice(at, at + extent) for at, extent in zip(start, box))
    there = expected[inside]
    there[...] = values[tuple(slice(0, extent) for extent in there.shape)]
    descriptor = array.view.as_tensor_map(box, interleave=interleave, swizzle=kind)
    data = numpy.frombuffer(swizzle(values.tobytes(), kind, values.nbytes), numpy.uint8)
    with device.allocate(data.nbytes, stream) as source:
        source.copy_from(data, stream=stream)
        launch(stream, ONE_BLOCK, code.get_kernel(f"store{rank}"), descriptor, *start[::-1], source, data.nbytes)
        assert array.read().tolist() == expected.tolist()


@pytest.mark.parametrize("channels", [4, 16])
@pytest.mark.parametrize(("interleave", "kind"), [("INTERLEAVE_16B", "NONE"), ("INTERLEAVE_32B", "SWIZZLE_32B")])
def test_pixels_of_one_slice_are_loaded_as_columns(
    device: Device, stream: Any, slices: Any, code: Any, interleave: str, kind: str, channels: int
) -> None:
    array = slices((3, 2, 6, 7), interleave)
    lower, upper, offsets = (-1, -1), (-1, -1), (2, 1)
    per = array.array.shape[-1]
    images = array.array[:, 1]
    expected = columns(images, (0, 1, 3, 0), offsets, lower, upper, per, 40, (1, 1)).tobytes()
    descriptor = TensorMapDescriptor.from_im2col(
        array.view, lower, upper, channels, 40, interleave=interleave, swizzle=kind
    )
    place = (3, 1, 1, 0)  # width, height, slice, image
    found = loaded(device, stream, code.get_kernel("pixels"), descriptor, (*place, *offsets[::-1]), len(expected))
    assert found == swizzle(expected, kind, len(expected))[: len(expected)]


def test_a_box_of_slices_is_not_stored_before_the_array() -> None:
    text = output_of(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        from bulk_kernels import SOURCE
        from cuda_core_cffi import CUDAError, Device, LaunchConfig, Program, ProgramOptions, launch
        from cuda_core_cffi.utils import StridedMemoryView
        device = Device()
        device.set_current()
        stream = device.create_stream()
        memory, box = device.allocate(16 * 16 * 2 * 2, stream), device.allocate(16 * 8, stream)
        view = StridedMemoryView.from_buffer(memory, (2, 2, 16), (128, 64, 1), dtype="float32")
        descriptor = view.as_tensor_map((1, 1, 8), interleave="INTERLEAVE_16B")
        program = Program(SOURCE, "c++", ProgramOptions(arch=f"sm_{device.arch}", std="c++17"))
        kernel = program.compile("ptx").get_kernel("store3")
        launch(stream, LaunchConfig(grid=1, block=32), kernel, descriptor, -1, 0, 0, box, 16 * 8)
        try:
            stream.sync()
        except CUDAError as error:
            print(error.name, flush=True)
        import os
        os._exit(0)  # the context is of no use any more
        """,
        str(SUPPORT),
    )
    assert text == "CUDA_ERROR_ILLEGAL_INSTRUCTION"
