# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Tensor maps: what the hardware needs to know of an array to copy boxes of it between global and shared memory."""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from cuda_core_cffi._arrays.strided_memory_view import StridedMemoryView
from cuda_core_cffi._core.calls import new_object
from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.dtypes import NAMES, numpy_dtype
from cuda_core_cffi._core.errors import failure
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi._core.options import check_options
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi._memory.dlpack import ACCESSIBLE, ADDRESS, CUDA, DEVICE, DEVICE_TYPE, DTYPE, NO_ORDERING, SHAPE
from cuda_core_cffi.typing import (
    TensorMapDataType,
    TensorMapIm2ColWideMode,
    TensorMapInterleave,
    TensorMapL2Promotion,
    TensorMapOOBFill,
    TensorMapSwizzle,
)

if TYPE_CHECKING:
    from cuda_core_cffi._device.device import Device

E = TypeVar("E", bound=enum.IntEnum)

encode_map, replace_map = lib.ccc_tensor_map_encode, lib.ccc_tensor_map_replace

Array = tuple[tuple[int, ...], tuple[int, ...], int, Any]
"""What a map says of an array wherever it is: shape and strides in elements, bytes of an element, and dtype."""

SIZE = ffi.sizeof("CUtensorMap")
MOST_KNOWN = 128  # descriptions of arrays and boxes
LARGEST_RANK, LEAST_IM2COL_RANK = 5, 3
LARGEST_BOX, LARGEST_STEP, LARGEST_CHANNELS, LARGEST_PIXELS = 256, 8, 256, 1024
LARGEST_EXTENT = 2**32
W128_PIXELS = 128  # of a column in that mode
STRIDE_LIMIT = 2**40
LARGEST_BYTES = 228 << 10  # of a box: the shared memory of a multiprocessor
PIXEL_LIMIT = 2**31  # of where a pixel box ends
ALIGNMENT, WIDE_ALIGNMENT = 16, 32
CORNER_BITS = {3: 16, 4: 8, 5: 5}  # of the offsets of a pixel box, by rank

# By the name of a dtype. Types that the hardware does not know are copied as unsigned integers of their size.
DATA_TYPES = {
    **{item.name.lower(): item for item in TensorMapDataType if item.name.lower() in NAMES.values()},
    "int8": TensorMapDataType.UINT8,
    "int16": TensorMapDataType.UINT16,
    "bool": TensorMapDataType.UINT8,
    **{name: TensorMapDataType.UINT8 for name in NAMES.values() if name.startswith("float8_")},
}
FLOATS = tuple(item for item in TensorMapDataType if item >= TensorMapDataType.FLOAT16)
ELEMENT_BYTES = {item: int("".join(filter(str.isdigit, item.name))) // 8 for item in TensorMapDataType}
SPANS = {TensorMapSwizzle.SWIZZLE_32B: 32, TensorMapSwizzle.SWIZZLE_64B: 64}
WIDEST_SPAN = 128
NOT_INTERLEAVED, NOT_SWIZZLED = TensorMapInterleave.NONE, TensorMapSwizzle.NONE
NOT_PROMOTED, NOT_FILLED = TensorMapL2Promotion.NONE, TensorMapOOBFill.NONE

NAMES_OF_KINDS = {
    lib.CCC_TENSOR_TILED: "tiled",
    lib.CCC_TENSOR_IM2COL: "im2col",
    lib.CCC_TENSOR_IM2COL_WIDE: "im2col-wide",
}


@dataclasses.dataclass
class TensorMapDescriptorOptions:
    """Options of :meth:`StridedMemoryView.as_tensor_map`. Dimensions are in the order of the view's shape.

    Attributes
    ----------
    box_dim : tuple of int
        The extents of the box that is copied at a time, in elements: 1 to 256 each.
    element_strides : tuple of int, optional
        Of how many elements along each dimension one is copied: 1 to 8 each. By default all are.
    data_type : dtype or TensorMapDataType, optional
        What the elements are, if not what the view says. Elements of another size share the bytes of the last
        dimension as in :meth:`numpy.ndarray.view`: 64 bytes are 16 of ``float32``, and `box_dim` counts these. Not
        for interleaved channels.
    interleave : TensorMapInterleave, optional
        How channels lie in memory.
    swizzle : TensorMapSwizzle, optional
        How the box is permuted in shared memory.
    l2_promotion : TensorMapL2Promotion, optional
        How much is fetched into the L2 cache at once.
    oob_fill : TensorMapOOBFill, optional
        What elements outside of the tensor are read as.
    """

    box_dim: tuple[int, ...]
    element_strides: tuple[int, ...] | None = None
    data_type: object = None
    interleave: TensorMapInterleave = TensorMapInterleave.NONE
    swizzle: TensorMapSwizzle = TensorMapSwizzle.NONE
    l2_promotion: TensorMapL2Promotion = TensorMapL2Promotion.NONE
    oob_fill: TensorMapOOBFill = TensorMapOOBFill.NONE

    def __post_init__(self) -> None:
        self.box_dim = integers(self.box_dim, "box_dim")
        if self.element_strides is not None:
            self.element_strides = integers(self.element_strides, "element_strides")
        if self.data_type is not None and not isinstance(self.data_type, enum.IntEnum):
            self.data_type = dtype_like(self.data_type)
        self.interleave = number_of(TensorMapInterleave, self.interleave, "interleave")
        self.swizzle = number_of(TensorMapSwizzle, self.swizzle, "swizzle")
        self.l2_promotion = number_of(TensorMapL2Promotion, self.l2_promotion, "l2_promotion")
        self.oob_fill = number_of(TensorMapOOBFill, self.oob_fill, "oob_fill")


get_values = operator.attrgetter(*(field.name for field in dataclasses.fields(TensorMapDescriptorOptions)))


class TensorMapDescriptor(Uncopyable):
    """What the hardware needs to know of an array to copy boxes of it between global and shared memory.

    Made by :meth:`StridedMemoryView.as_tensor_map`, or by :meth:`from_im2col` and :meth:`from_im2col_wide` for
    convolutions. It is an argument of kernels, which declare it as ``const __grid_constant__ CUtensorMap``: 128 bytes,
    by value. It keeps the array. Compute capability 9.0 and newer.
    """

    __slots__ = ("_bytes", "_description", "_device_id", "_view")
    _NOT_COPIED_BECAUSE: ClassVar[str] = "it describes memory of another object; make another one of that"
    _KERNEL_ALIGNMENT: ClassVar[int] = 64  # as an argument of kernels, and their size
    _KERNEL_SIZE: ClassVar[int] = SIZE

    _bytes: bytes  # the map, as kernels get it
    _description: Any  # the ccc_tensor_map that it was made from, which maps share
    _device_id: int
    _view: StridedMemoryView

    def __init__(self) -> None:
        raise RuntimeError("a TensorMapDescriptor is made by StridedMemoryView.as_tensor_map")

    def __repr__(self) -> str:
        described = self._description
        rank = described.rank
        extents = tuple(described.extents[rank - 1 - index] for index in range(rank))
        return (
            f"<TensorMapDescriptor {NAMES_OF_KINDS[described.kind]} {TensorMapDataType(described.type).name} "
            f"shape={extents} address={self._view.ptr:#x} swizzle={TensorMapSwizzle(described.swizzle).name}>"
        )

    @property
    def device(self) -> Device:
        """The device that the array is on; for memory of several, the one that was current."""
        return registry.device(self._device_id)

    @classmethod
    def from_im2col(
        cls,
        view: StridedMemoryView,
        pixel_box_lower_corner: Sequence[int],
        pixel_box_upper_corner: Sequence[int],
        channels_per_pixel: int,
        pixels_per_column: int,
        *,
        element_strides: tuple[int, ...] | None = None,
        data_type: object = None,
        interleave: TensorMapInterleave = TensorMapInterleave.NONE,
        swizzle: TensorMapSwizzle = TensorMapSwizzle.NONE,
        l2_promotion: TensorMapL2Promotion = TensorMapL2Promotion.NONE,
        oob_fill: TensorMapOOBFill = TensorMapOOBFill.NONE,
    ) -> TensorMapDescriptor:
        """Describe images whose pixels are copied as the columns of a matrix, for convolutions.

        Parameters
        ----------
        view : StridedMemoryView
            The images: (images, depth, height, width, channels), of which depth and height may be missing.
        pixel_box_lower_corner, pixel_box_upper_corner : sequence of int
            How far inside of the image, or outside where it is negative, the first pixel lies, and how far from the
            last extent the last one, along depth, height and width. -32768 to 32767 for one of them, -128 to 127 for
            two, -16 to 15 for three.
        channels_per_pixel : int
            How many channels are copied, 1 to 256.
        pixels_per_column : int
            How many pixels are copied, 1 to 1024.
        element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill
            As for :class:`TensorMapDescriptorOptions`.

        Returns
        -------
        TensorMapDescriptor
            The map.

        Raises
        ------
        TypeError, ValueError
            If something cannot be described. The message says what.
        CUDAError
            If the device has no tensor maps.
        """
        options = TensorMapDescriptorOptions(
            (), element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill
        )
        fields = describe(array_of(view), options, lib.CCC_TENSOR_IM2COL)
        lower = corner(pixel_box_lower_corner, "pixel_box_lower_corner", fields["rank"])
        upper = corner(pixel_box_upper_corner, "pixel_box_upper_corner", fields["rank"])
        return cls._from_pixels(view, fields, lower, upper, channels_per_pixel, pixels_per_column)

    @classmethod
    def from_im2col_wide(
        cls,
        view: StridedMemoryView,
        pixel_box_lower_corner_width: int,
        pixel_box_upper_corner_width: int,
        channels_per_pixel: int,
        pixels_per_column: int,
        *,
        element_strides: tuple[int, ...] | None = None,
        data_type: object = None,
        interleave: TensorMapInterleave = TensorMapInterleave.NONE,
        mode: TensorMapIm2ColWideMode = TensorMapIm2ColWideMode.W,
        swizzle: TensorMapSwizzle = TensorMapSwizzle.SWIZZLE_128B,
        l2_promotion: TensorMapL2Promotion = TensorMapL2Promotion.NONE,
        oob_fill: TensorMapOOBFill = TensorMapOOBFill.NONE,
    ) -> TensorMapDescriptor:
        """Describe images whose pixels are copied along the width alone.

        Compute capability 10.0 and newer: a driver may make such a map for an older device, but no instruction of that
        takes it.

        Parameters
        ----------
        view : StridedMemoryView
            The images, as for :meth:`from_im2col`.
        pixel_box_lower_corner_width, pixel_box_upper_corner_width : int
            As the last numbers of the corners there, -32768 to 32767.
        channels_per_pixel : int
            How many channels are copied, 1 to 256.
        pixels_per_column : int
            How many pixels are copied, 1 to 1024. In mode W128 they are 128.
        mode : TensorMapIm2ColWideMode, optional
            How many pixels are loaded.
        element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill
            As for :class:`TensorMapDescriptorOptions`. The swizzle is one of 64 or 128 bytes.

        Returns
        -------
        TensorMapDescriptor
            The map.

        Raises
        ------
        TypeError, ValueError
            If something cannot be described. The message says what.
        UnavailableError
            If the driver is older than that of CUDA 12.8.
        CUDAError
            If the device has no such maps.
        """
        options = TensorMapDescriptorOptions(
            (), element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill
        )
        fields = describe(array_of(view), options, lib.CCC_TENSOR_IM2COL_WIDE)
        if fields["swizzle"] in (TensorMapSwizzle.NONE, TensorMapSwizzle.SWIZZLE_32B):
            raise ValueError(f"swizzle must be one of 64 or 128 bytes, not {TensorMapSwizzle(fields['swizzle']).name}")
        limit = 1 << CORNER_BITS[LEAST_IM2COL_RANK] - 1
        lower = between(pixel_box_lower_corner_width, "pixel_box_lower_corner_width", -limit, limit - 1)
        upper = between(pixel_box_upper_corner_width, "pixel_box_upper_corner_width", -limit, limit - 1)
        fields["wide_mode"] = number_of(TensorMapIm2ColWideMode, mode, "mode")
        return cls._from_pixels(view, fields, [lower], [upper], channels_per_pixel, pixels_per_column)

    @classmethod
    def _from_pixels(
        cls,
        view: StridedMemoryView,
        fields: dict[str, Any],
        lower: list[int],
        upper: list[int],
        channels_per_pixel: int,
        pixels_per_column: int,
    ) -> TensorMapDescriptor:
        """Make a map of images, with the corners of the pixel box in the driver's order."""
        # where channels are interleaved, the first of the driver's dimensions is the width
        first = fields["interleave"] == TensorMapInterleave.NONE
        for axis, (low, high) in enumerate(zip(lower, upper)):
            check_pixels(fields["extents"][axis + first], low, high)
        fields |= {
            "lower": lower,
            "upper": upper,
            "channels": between(channels_per_pixel, "channels_per_pixel", 1, LARGEST_CHANNELS),
            "pixels": between(pixels_per_column, "pixels_per_column", 1, LARGEST_PIXELS),
        }
        check_row(fields, fields["channels"], "channels_per_pixel")
        packed = fields["kind"] == lib.CCC_TENSOR_IM2COL_WIDE and fields["wide_mode"] == TensorMapIm2ColWideMode.W128
        count = W128_PIXELS if packed else fields["pixels"]
        check_bytes(fields, fields["channels"] * count, "channels_per_pixel and the pixels")
        return cls._encode(view, ffi.new("ccc_tensor_map *", fields))

    @classmethod
    def _from_tiled(
        cls,
        view: StridedMemoryView,
        box_dim: Any,
        options: TensorMapDescriptorOptions | Mapping[str, Any] | None,
        given: tuple[Any, ...],
    ) -> TensorMapDescriptor:
        """Describe an array that is copied box by box: :meth:`StridedMemoryView.as_tensor_map`."""
        if options is not None:
            for field, value in zip(dataclasses.fields(TensorMapDescriptorOptions), (box_dim, *given), strict=True):
                if value is not None:
                    raise TypeError(f"give options or {field.name}, not both: options have it")
            options = check_options(TensorMapDescriptorOptions, options, "as_tensor_map")
            box_dim, *rest = get_values(options)
            given = tuple(rest)
        elif box_dim is None:
            raise TypeError("box_dim is missing: give it, or options that have it")
        element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill = given
        if options is None:
            interleave = NOT_INTERLEAVED if interleave is None else interleave
            swizzle = NOT_SWIZZLED if swizzle is None else swizzle
            l2_promotion = NOT_PROMOTED if l2_promotion is None else l2_promotion
            oob_fill = NOT_FILLED if oob_fill is None else oob_fill
        box = box_dim if type(box_dim) is tuple else integers(box_dim, "box_dim")
        steps = None if element_strides is None else integers(element_strides, "element_strides")
        values = (array_of(view), steps, data_type, interleave, swizzle, l2_promotion, oob_fill, *box)
        try:
            description = tiled(*values)
        except TypeError:  # something is wrong, or has no hash
            description = None
        return cls._encode(view, description or tiled.__wrapped__(*values))

    # the names that programs for cuda.core use
    _from_im2col = from_im2col
    _from_im2col_wide = from_im2col_wide

    def replace_address(self, tensor: object) -> None:
        """Describe another array, which has the same shape, strides and type.

        Parameters
        ----------
        tensor : object
            The array: a view, or whatever :meth:`StridedMemoryView.from_any_interface` takes. Its address alone counts.

        Raises
        ------
        ValueError
            If the device cannot access it, it is on another one, or its address is not aligned as the map needs.
        RuntimeError
            If its buffer is closed.
        """
        view = (
            tensor
            if isinstance(tensor, StridedMemoryView)
            else StridedMemoryView.from_any_interface(tensor, NO_ORDERING)
        )
        address, device_id = place(view, self._description)
        if device_id is not None and device_id != self._device_id:
            raise ValueError(f"the array is on device {device_id}, the tensor map is of device {self._device_id}")
        self._bytes = write_map(replace_map, self._device_id, self._bytes, address)
        self._view = view

    @classmethod
    def _encode(cls, view: StridedMemoryView, description: Any) -> TensorMapDescriptor:
        """Have the driver make the map."""
        address, device_id = place(view, description)
        if device_id is None:
            device_id = registry.device(None).device_id
        self = new_object(cls)
        self._view, self._description, self._device_id = view, description, device_id
        self._bytes = write_map(encode_map, device_id, description, address)
        return self

    def _kernel_bytes(self) -> bytes:
        """Return the map, for kernels, or raise RuntimeError if the buffer that it describes is closed."""
        if self._view._is_closed:
            raise RuntimeError("the Buffer that this TensorMapDescriptor describes is closed")
        return self._bytes


@functools.lru_cache(MOST_KNOWN, typed=True)
def tiled(
    array: Array,
    element_strides: tuple[int, ...] | None,
    data_type: object,
    interleave: TensorMapInterleave,
    swizzle: TensorMapSwizzle,
    l2_promotion: TensorMapL2Promotion,
    oob_fill: TensorMapOOBFill,
    *box_dim: int,
) -> Any:
    """Return the ``ccc_tensor_map`` of an array that is copied box by box, or raise. It is not to be changed."""
    options = TensorMapDescriptorOptions(
        box_dim, element_strides, data_type, interleave, swizzle, l2_promotion, oob_fill
    )
    fields = describe(array, options, lib.CCC_TENSOR_TILED)
    rank, box = fields["rank"], options.box_dim
    if len(box) != rank:
        raise ValueError(f"box_dim must have {rank} numbers, as many as the array has dimensions, not {len(box)}")
    for index, extent in enumerate(box):
        between(extent, f"box_dim[{index}]", 1, LARGEST_BOX)
    fields["box"] = box[::-1]
    check_row(fields, box[-1], f"box_dim[{rank - 1}]")
    check_bytes(fields, copied(box, fields["steps"][::-1]), "box_dim")
    return ffi.new("ccc_tensor_map *", fields)


def array_of(view: StridedMemoryView) -> Array:
    """Return what a map says of the array that a view shows, wherever it is."""
    if not isinstance(view, StridedMemoryView):
        raise TypeError(f"view must be a StridedMemoryView, not {type(view).__name__}")
    info, layout = view._info, view._layout
    return info[SHAPE], layout._explicit_strides(), layout.itemsize, info[DTYPE]


def describe(array: Array, options: TensorMapDescriptorOptions, kind: int) -> dict[str, Any]:
    """Return the fields of a ``ccc_tensor_map`` that all kinds have, or raise what cannot be described."""
    shape, strides, itemsize, dtype = array
    rank, least = len(shape), 1 if kind == lib.CCC_TENSOR_TILED else LEAST_IM2COL_RANK
    if options.interleave != TensorMapInterleave.NONE:
        least = LEAST_IM2COL_RANK
    if not least <= rank <= LARGEST_RANK:
        raise ValueError(f"the array must have {least} to {LARGEST_RANK} dimensions for such a tensor map, not {rank}")
    data_type = find_data_type(dtype, options.data_type)
    extents = (*shape[:-1], last_extent(shape[-1], itemsize, data_type, options.interleave))
    for axis, extent in enumerate(extents):
        if not 1 <= extent <= LARGEST_EXTENT:
            raise ValueError(f"shape[{axis}] must be 1 to 2**32 for a tensor map, not {extent}")
    if options.oob_fill != TensorMapOOBFill.NONE and data_type not in FLOATS:
        raise ValueError(f"oob_fill {options.oob_fill.name} is for floating-point types, not for {data_type.name}")
    if options.interleave == TensorMapInterleave.INTERLEAVE_32B and options.swizzle != TensorMapSwizzle.SWIZZLE_32B:
        raise ValueError(f"interleave INTERLEAVE_32B needs swizzle SWIZZLE_32B, not {options.swizzle.name}")
    steps = (1,) * rank if options.element_strides is None else integers(options.element_strides, "element_strides")
    if len(steps) != rank:
        raise ValueError(
            f"element_strides must have {rank} numbers, as many as the array has dimensions, not {len(steps)}"
        )
    for axis, step in enumerate(steps):
        between(step, f"element_strides[{axis}]", 1, LARGEST_STEP)
    if steps[-1] != 1 and options.interleave == TensorMapInterleave.NONE:
        raise ValueError(f"element_strides[{rank - 1}] must be 1, not {steps[-1]}: the hardware ignores it there")
    return {
        "kind": kind,
        "type": data_type,
        "rank": rank,
        "extents": extents[::-1],
        "strides": byte_strides(shape, strides, itemsize, options.interleave),
        "steps": steps[::-1],
        "interleave": options.interleave,
        "swizzle": options.swizzle,
        "promotion": options.l2_promotion,
        "fill": options.oob_fill,
    }


def place(view: StridedMemoryView, description: Any) -> tuple[int, int | None]:
    """Return the address of an array that is described so, and its device; None for memory of several. Or raise."""
    info = view._source  # as in StridedMemoryView.ptr
    if type(info) is not tuple:
        info = view._info
    if not info[ACCESSIBLE]:
        raise ValueError("the array must be in memory that a device can access")
    if view._is_closed:
        raise RuntimeError("this view's Buffer is closed")
    address = info[ADDRESS]
    if not address or address % WIDE_ALIGNMENT:
        alignment = alignment_for(description.interleave)
        if not address or address % alignment:
            raise ValueError(f"the address must be a multiple of {alignment} bytes for a tensor map, not {address:#x}")
    return address, info[DEVICE] if info[DEVICE_TYPE] == CUDA else None


def write_map(write: Callable[..., int], device_id: int, source: Any, address: int) -> bytes:
    """Return the tensor map that a function of ``lib`` writes from a description, or from another map."""
    try:
        memory, content = pair = spare.pop()
    except IndexError:
        memory = ffi.new("char[]", SIZE)
        content = ffi.buffer(memory)
        pair = memory, content
    if status := write(device_id, source, address, memory):
        raise failure(status)
    written: bytes = content[:]
    spare.append(pair)
    return written


spare: list[tuple[Any, Any]] = []  # memory that maps are written in, and a view of it; one call at a time has it


def alignment_for(interleave: int) -> int:
    """Return of how many bytes addresses and strides are multiples."""
    return WIDE_ALIGNMENT if interleave == TensorMapInterleave.INTERLEAVE_32B else ALIGNMENT


def byte_strides(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int, interleave: TensorMapInterleave
) -> list[int]:
    """Return the strides in bytes in the driver's order, without the innermost, which is one element."""
    if shape[-1] != 1 and strides[-1] != 1:
        raise ValueError(
            f"elements along the last dimension must be adjacent, not {strides[-1]} elements apart: copy the array in "
            "C order"
        )
    alignment = alignment_for(interleave)
    found: list[int] = []
    below = shape[-1] * itemsize
    for axis in range(len(shape) - 2, -1, -1):
        stride = strides[axis] * itemsize
        if shape[axis] == 1:  # never used, and libraries give it any value
            stride = min(-(-below // alignment) * alignment, STRIDE_LIMIT - alignment)
        if stride % alignment or not 0 <= stride < STRIDE_LIMIT:
            raise ValueError(
                f"strides[{axis}] must be a multiple of {alignment} bytes, from 0 to 2**40 for a tensor map, not "
                f"{stride} bytes ({strides[axis]} elements of {itemsize}): pad the rows"
            )
        found.append(stride)
        below = stride * shape[axis]
    return found


def check_row(fields: dict[str, Any], elements: int, name: str) -> None:
    """Check how many bytes are copied along the innermost dimension."""
    itemsize, swizzle = ELEMENT_BYTES[fields["type"]], TensorMapSwizzle(fields["swizzle"])
    if elements * itemsize % ALIGNMENT:
        raise ValueError(
            f"{name} must be a multiple of {ALIGNMENT // itemsize}, not {elements}: a row of the box has a multiple of "
            f"{ALIGNMENT} bytes"
        )
    span = SPANS.get(swizzle, WIDEST_SPAN)
    limited = fields["interleave"] == TensorMapInterleave.NONE and swizzle != TensorMapSwizzle.NONE
    if limited and elements * itemsize > span:
        raise ValueError(
            f"{name} must be at most {span // itemsize}, not {elements}: a row of the box has at most {span} bytes with"
            f" swizzle {swizzle.name}"
        )


def copied(box: Sequence[int], steps: Sequence[int]) -> int:
    """Return how many elements of a box are copied: of the last dimension all."""
    return math.prod(-(-extent // step) for extent, step in zip(box, (*steps[:-1], 1)))


def check_bytes(fields: dict[str, Any], elements: int, name: str) -> None:
    """Check that what is copied at a time has room in shared memory."""
    size = elements * ELEMENT_BYTES[fields["type"]]
    if size > LARGEST_BYTES:
        raise ValueError(
            f"{name} must be at most {LARGEST_BYTES} bytes, the shared memory of a multiprocessor, not {size}: "
            f"{elements} elements of {ELEMENT_BYTES[fields['type']]}"
        )


def last_extent(extent: int, itemsize: int, data_type: TensorMapDataType, interleave: TensorMapInterleave) -> int:
    """Return the last extent of a view in elements of ``data_type``, which may have another size than its own."""
    size = ELEMENT_BYTES[data_type]
    if size == itemsize:
        return extent
    if interleave != TensorMapInterleave.NONE:
        raise ValueError(
            f"data_type {data_type.name} has {size} bytes, the elements of the view have {itemsize}: with interleaved "
            "channels they must have the same size"
        )
    count, rest = divmod(extent * itemsize, size)
    if rest:
        raise ValueError(
            f"the last dimension of the view must be a multiple of {size} bytes for data_type {data_type.name}, not "
            f"{extent * itemsize} bytes ({extent} elements of {itemsize})"
        )
    return count


def find_data_type(own: Any, given: object) -> TensorMapDataType:
    """Return the type of the elements: what was given, or what the view says."""
    if given is None:
        name = NAMES.get(own) if type(own) is int else getattr(own, "name", None)
        if name is None:
            raise ValueError("the view has no dtype: give data_type")
        return data_type_of(name)
    if isinstance(given, enum.IntEnum):
        return number_of(TensorMapDataType, given, "data_type")
    return data_type_of(dtype_like(given).name)


def data_type_of(name: str) -> TensorMapDataType:
    """Return the type for the name of a dtype."""
    try:
        return DATA_TYPES[name]
    except KeyError:
        raise ValueError(
            f"tensor maps have no elements of dtype {name}: give data_type, one of {', '.join(DATA_TYPES)} or a "
            "TensorMapDataType"
        ) from None


def dtype_like(given: object) -> Any:
    """Return what names a dtype as one."""
    try:
        if not isinstance(given, int):
            return numpy_dtype(given)
    except TypeError:
        pass
    raise TypeError(f"data_type must be a dtype or a TensorMapDataType, not {type(given).__name__}: {given!r}")


def number_of(kind: type[E], value: object, name: str) -> E:
    """Return a member of an enumeration: given as such, as one of the driver's with the same number, or by its name."""
    if isinstance(value, kind):
        return value
    if isinstance(value, enum.IntEnum) and type(value).__name__.lower() == f"cu{kind.__name__}".lower():
        return kind(value)
    if isinstance(value, str) and value.upper() in kind.__members__:
        return kind[value.upper()]
    names = ", ".join(kind.__members__)
    if isinstance(value, str):
        raise ValueError(f"{name} must be one of {names}, not {value!r}")
    raise TypeError(f"{name} must be a {kind.__name__} ({names}), not {type(value).__name__}")


def integers(values: Iterable[int], name: str) -> tuple[int, ...]:
    """Return several integers as a tuple."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a tuple of int, not {type(values).__name__}")
    return tuple(integer(value, f"{name}[{index}]") for index, value in enumerate(values))


def between(value: int, name: str, least: int, most: int) -> int:
    """Return an integer that is in a range."""
    number = integer(value, name)
    if not least <= number <= most:
        raise ValueError(f"{name} must be {least} to {most}, not {number}")
    return number


def corner(values: Sequence[int], name: str, rank: int) -> list[int]:
    """Return the corner of a pixel box in the driver's order."""
    found, limit = integers(values, name), 1 << CORNER_BITS[rank] - 1
    if len(found) != rank - 2:
        raise ValueError(
            f"{name} must have {rank - 2} numbers, for the dimensions between images and channels, not {len(found)}"
        )
    return [between(found[axis], f"{name}[{axis}]", -limit, limit - 1) for axis in range(rank - 3, -1, -1)]


def check_pixels(extent: int, low: int, high: int) -> None:
    """Check that a pixel box has pixels along a dimension, and not too many."""
    if extent + high - low < 1:
        raise ValueError(f"the pixel box is empty: from {low} to {extent} + {high} along a dimension of {extent}")
    if extent + high >= PIXEL_LIMIT:
        raise ValueError(f"the pixel box must end before 2**31, not at {extent} + {high}")
