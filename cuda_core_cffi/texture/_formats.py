# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What the elements of arrays are, how many there are, and what the driver is told of them."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi._core.options import member
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi.typing import ArrayFormatType

MOST_AXES = 3
MOST_KNOWN = 128  # kinds of arrays
LARGEST_EXTENT = 2**32 - 1
CHANNELS = (1, 2, 4)


class Format(NamedTuple):
    """A format.

    Attributes
    ----------
    number : int
        The driver's.
    size : int
        Bytes in a channel.
    """

    number: int
    size: int


FORMATS = {
    ArrayFormatType.UINT8: Format(lib.CU_AD_FORMAT_UNSIGNED_INT8, 1),
    ArrayFormatType.UINT16: Format(lib.CU_AD_FORMAT_UNSIGNED_INT16, 2),
    ArrayFormatType.UINT32: Format(lib.CU_AD_FORMAT_UNSIGNED_INT32, 4),
    ArrayFormatType.INT8: Format(lib.CU_AD_FORMAT_SIGNED_INT8, 1),
    ArrayFormatType.INT16: Format(lib.CU_AD_FORMAT_SIGNED_INT16, 2),
    ArrayFormatType.INT32: Format(lib.CU_AD_FORMAT_SIGNED_INT32, 4),
    ArrayFormatType.FLOAT16: Format(lib.CU_AD_FORMAT_HALF, 2),
    ArrayFormatType.FLOAT32: Format(lib.CU_AD_FORMAT_FLOAT, 4),
}


OF_NUMBERS = {item.number: kind for kind, item in FORMATS.items()}


def array_format(value: Any) -> ArrayFormatType:
    """Return a format that is given as a member, its string, or what names a NumPy dtype, or raise."""
    if value is None or isinstance(value, str):
        return member(ArrayFormatType, value, "format")
    import numpy

    try:
        dtype = numpy.dtype(value)
    except TypeError:
        return member(ArrayFormatType, value, "format")
    return member(ArrayFormatType, dtype.name if dtype.isnative else str(dtype), "format")


def channel_count(value: Any) -> int:
    """Return a number of channels, or raise."""
    count = integer(value, "num_channels")
    if count not in CHANNELS:
        raise ValueError(f"num_channels must be 1, 2 or 4, not {count}")
    return count


def array_shape(value: Any) -> tuple[int, ...]:
    """Return a shape as a tuple of 1 to 3 extents, or raise."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError(f"shape must be a tuple of ints, not {type(value).__name__}: {value!r}")
    shape = tuple(integer(extent, f"shape[{axis}]") for axis, extent in enumerate(value))
    if not 1 <= len(shape) <= MOST_AXES:
        raise ValueError(f"shape must have 1 to {MOST_AXES} extents, not {len(shape)}")
    for axis, extent in enumerate(shape):
        if not 1 <= extent <= LARGEST_EXTENT:
            raise ValueError(f"shape[{axis}] must be 1 to 2**32 - 1, not {extent}")
    return shape


class Description:
    """What an array is like.

    Attributes
    ----------
    shape, format, num_channels, is_surface_load_store
        As in the options, checked.
    element_bytes, size_bytes : int
        Bytes of an element, and of all.
    native : CUDA_ARRAY3D_DESCRIPTOR *
        All of it for the driver. It is not changed.
    extents : size_t *
        Bytes of a row, rows, and layers.
    """

    __slots__ = (
        "element_bytes",
        "extents",
        "format",
        "is_surface_load_store",
        "native",
        "num_channels",
        "shape",
        "size_bytes",
    )

    def __init__(self, shape: tuple[int, ...], kind: ArrayFormatType, channels: int, surface: bool) -> None:
        self.shape, self.format, self.num_channels, self.is_surface_load_store = shape, kind, channels, surface
        self.element_bytes = FORMATS[kind].size * channels
        self.size_bytes = math.prod(shape) * self.element_bytes
        self.native = found = ffi.new("CUDA_ARRAY3D_DESCRIPTOR *")
        found.Width, found.Height, found.Depth = (*shape, 0, 0)[:MOST_AXES]
        found.Format, found.NumChannels = FORMATS[kind].number, channels
        found.Flags = lib.CUDA_ARRAY3D_SURFACE_LDST if surface else 0
        across, rows, layers = (*shape, 1, 1)[:MOST_AXES]
        self.extents = ffi.new("size_t[]", [across * self.element_bytes, rows, layers])

    def of_level(self, level: int) -> Description:
        """Return what a level is like."""
        shape = tuple(max(extent >> level, 1) for extent in self.shape)
        return Description(shape, self.format, self.num_channels, self.is_surface_load_store)


def describe(options: Any) -> Description:
    """Return what options of an array say, after checking them: they may have been changed since they were made."""
    try:
        return checked(options.shape, options.format, options.num_channels, options.is_surface_load_store)
    except TypeError:  # a list for a shape, say, or something that is wrong
        return checked.__wrapped__(options.shape, options.format, options.num_channels, options.is_surface_load_store)


def described_by(native: Any, surface: bool) -> Description:
    """Return what an array that the driver describes is like, or raise where no array here is like that."""
    if native.Flags & (lib.CUDA_ARRAY3D_LAYERED | lib.CUDA_ARRAY3D_CUBEMAP):
        raise ValueError("the image has layers or faces: map each of them with map_array")
    kind, channels = OF_NUMBERS.get(int(native.Format)), int(native.NumChannels)
    if kind is None or channels not in CHANNELS:
        raise ValueError(f"no array here has elements of format {int(native.Format):#x} with {channels} channels")
    shape = tuple(int(extent) for extent in (native.Width, native.Height, native.Depth) if extent)
    return Description(shape, kind, channels, surface or bool(native.Flags & lib.CUDA_ARRAY3D_SURFACE_LDST))


@functools.lru_cache(MOST_KNOWN, typed=True)
def checked(shape: Any, kind: Any, channels: Any, surface: Any) -> Description:
    """Return the description for options; the same one for the same options, for it takes a while to make."""
    return Description(array_shape(shape), array_format(kind), channel_count(channels), bool(surface))


def explain_limits(error: Exception, device: int, rank: int, mipmapped: bool) -> Exception:
    """Return an error with a note on how large arrays can be, where the driver only says that a value is wrong."""
    if getattr(error, "status", None) == lib.CUDA_ERROR_INVALID_VALUE:
        names = ("width", "height", "depth")[:rank]
        kind = f"{rank}d_mipmapped" if mipmapped and rank < MOST_AXES else f"{rank}d"
        properties = registry.device(device).properties
        most = [str(getattr(properties, f"maximum_texture{kind}_{name}")) for name in names]
        error.add_note(f"arrays of this rank on device {device} have at most {' x '.join(most)} elements")
    return error
