# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Tensor maps of pixels: what is described, and what is refused and why."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from bulk_kernels import needs_bulk_copies
from helpers import output_of
from tensor_maps import encoded, view, words

from cuda_core_cffi import Buffer, Device, TensorMapDescriptor
from cuda_core_cffi.typing import TensorMapInterleave, TensorMapSwizzle


@pytest.fixture(autouse=True)
def needs_a_device(device: Device) -> None:
    needs_bulk_copies(device)


@pytest.fixture
def buffer(device: Device) -> Any:
    with device.allocate(1 << 16) as memory:
        yield memory
    device.sync()


@pytest.mark.parametrize(
    ("shape", "lower", "upper"),
    [
        ((4, 8, 16), (-1,), (2,)),
        ((4, 8, 8, 16), (-1, -2), (1, 2)),
        ((2, 4, 8, 8, 16), (-1, -2, -3), (1, 2, 3)),
    ],
    ids=["NWC", "NHWC", "NDHWC"],
)
def test_im2col_is_described_with_the_width_first(buffer: Buffer, shape: Any, lower: Any, upper: Any) -> None:
    made = TensorMapDescriptor.from_im2col(view(buffer, shape), lower, upper, 8, 32, swizzle="SWIZZLE_32B")
    rank = len(shape)
    strides = [int(numpy.prod(shape[axis + 1 :])) * 4 for axis in range(rank)]
    assert words(made) == encoded(
        7, rank, buffer.handle, shape[::-1], strides[-2::-1], lower[::-1], upper[::-1], 8, 32, [1] * rank, 0, 1, 0, 0,
        kind="Im2col",
    )  # fmt: skip
    assert "im2col FLOAT32" in repr(made)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pixel_box_lower_corner": (0,)}, "pixel_box_lower_corner must have 2 numbers, for the dimensions between"),
        ({"pixel_box_lower_corner": (0, -129)}, r"pixel_box_lower_corner\[1\] must be -128 to 127, not -129"),
        ({"pixel_box_upper_corner": (128, 0)}, r"pixel_box_upper_corner\[0\] must be -128 to 127, not 128"),
        ({"pixel_box_upper_corner": (0, -8)}, "the pixel box is empty: from 0 to 8 [+] -8 along a dimension of 8"),
        ({"channels_per_pixel": 0}, "channels_per_pixel must be 1 to 256, not 0"),
        ({"channels_per_pixel": 6}, "channels_per_pixel must be a multiple of 4, not 6"),
        ({"pixels_per_column": 1025}, "pixels_per_column must be 1 to 1024, not 1025"),
        (
            {"channels_per_pixel": 256, "pixels_per_column": 229},
            "channels_per_pixel and the pixels must be at most 233472 bytes, .* not 234496: 58624 elements of 4",
        ),
    ],
)
def test_what_im2col_cannot_describe_is_refused(buffer: Buffer, change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "pixel_box_lower_corner": (0, 0),
        "pixel_box_upper_corner": (0, 0),
        "channels_per_pixel": 8,
        "pixels_per_column": 32,
    }
    array = view(buffer, (4, 8, 8, 16))
    TensorMapDescriptor.from_im2col(array, **given)
    with pytest.raises(ValueError, match=message):
        TensorMapDescriptor.from_im2col(array, **(given | change))


def test_a_pixel_box_ends_before_the_largest_number(buffer: Buffer) -> None:
    array = view(buffer, (2, 2**31 - 1, 64), strides=(64, 0, 1))
    TensorMapDescriptor.from_im2col(array, (0,), (0,), 8, 32)
    with pytest.raises(ValueError, match=r"the pixel box must end before 2\*\*31, not at 2147483647 [+] 1"):
        TensorMapDescriptor.from_im2col(array, (0,), (1,), 8, 32)


def test_the_width_comes_last_where_channels_are_interleaved(buffer: Buffer) -> None:
    array = view(buffer, (2, 4, 8, 64))
    interleave = TensorMapInterleave.INTERLEAVE_16B
    TensorMapDescriptor.from_im2col(array, (0, 32), (0, -31), 8, 32, interleave=interleave)
    with pytest.raises(ValueError, match=r"the pixel box is empty: from 32 to 64 [+] -32 along a dimension of 64"):
        TensorMapDescriptor.from_im2col(array, (0, 32), (0, -32), 8, 32, interleave=interleave)


def test_im2col_needs_three_dimensions(buffer: Buffer) -> None:
    with pytest.raises(ValueError, match="the array must have 3 to 5 dimensions for such a tensor map, not 2"):
        TensorMapDescriptor.from_im2col(view(buffer), (), (), 8, 32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"swizzle": TensorMapSwizzle.NONE}, "swizzle must be one of 64 or 128 bytes, not NONE"),
        ({"pixel_box_lower_corner_width": 40000}, "pixel_box_lower_corner_width must be -32768 to 32767, not 40000"),
        ({"pixel_box_upper_corner_width": -8}, "the pixel box is empty"),
        ({"mode": "W256"}, "mode must be one of W, W128, not 'W256'"),
        ({"channels_per_pixel": 64}, "channels_per_pixel must be at most 32, not 64: a row of the box has at most 128"),
    ],
)
def test_what_im2col_wide_cannot_describe_is_refused(buffer: Buffer, change: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "pixel_box_lower_corner_width": 0,
        "pixel_box_upper_corner_width": 0,
        "channels_per_pixel": 8,
        "pixels_per_column": 32,
    }
    with pytest.raises(ValueError, match=message):
        TensorMapDescriptor.from_im2col_wide(view(buffer, (4, 8, 8, 64)), **(given | change))


@pytest.mark.simulator_only("needs compute capability 10.0, whatever the machine has")
def test_im2col_wide_is_described_for_a_device_that_has_it() -> None:
    text = output_of(
        """
        import numpy
        from cuda_core_cffi import Device, TensorMapDescriptor, driver
        from cuda_core_cffi.utils import StridedMemoryView
        device = Device()
        device.set_current()
        buffer = device.allocate(1 << 16)
        array = StridedMemoryView.from_buffer(buffer, (4, 8, 8, 16), dtype=numpy.dtype("float32"))
        for mode in "W", "W128":
            made = TensorMapDescriptor.from_im2col_wide(array, -1, 2, 16, 32, mode=mode)
            status, raw = driver.cuTensorMapEncodeIm2colWide(
                7, 4, buffer.handle, [16, 8, 8, 4], [64, 512, 4096], -1, 2, 16, 32, [1] * 4, 0,
                int(mode == "W128"), 3, 0, 0
            )
            print(status == 0, numpy.frombuffer(made._kernel_bytes(), numpy.uint64).tolist() == list(raw.opaque))
        buffer.close()
        """,
        CUDA_SIM_COMPUTE_CAPABILITY="10.0",
    )
    assert text.split("\n") == ["True True", "True True"]
