# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Opaque arrays with and without levels, and regions of them."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable
from types import EllipsisType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

from cuda_core_cffi._core.calls import make
from cuda_core_cffi._core.copying import NoConstructor
from cuda_core_cffi._core.errors import failure
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import Handle
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi._core.options import check_options, member
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi._memory import Buffer
from cuda_core_cffi._memory.allocation import retry_allocation
from cuda_core_cffi.texture._copies import Region, copy_buffer, copy_region
from cuda_core_cffi.typing import ArrayFormatType, IsStreamType

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from cuda_core_cffi._device.device import Device
    from cuda_core_cffi.typing._option_dicts import MipmappedArrayOptionsDict, OpaqueArrayOptionsDict

MOST_AXES = 3
MOST_KNOWN = 128  # kinds of arrays
LARGEST_EXTENT = 2**32 - 1
CHANNELS = (1, 2, 4)

T = TypeVar("T")


class Format(NamedTuple):
    """A format."""

    number: int  # the driver's
    size: int  # bytes in a channel


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


@dataclasses.dataclass
class OpaqueArrayOptions:
    """Options of an opaque array.

    Attributes
    ----------
    shape : tuple of int
        The number of elements along each axis: ``(width,)``, ``(width, height)`` or ``(width, height, depth)``.
    format : ArrayFormatType, str or numpy.dtype
        What each channel of an element is.
    num_channels : int
        Channels of an element: 1, 2 or 4.
    is_surface_load_store : bool
        Whether surfaces can be made of the array, through which kernels write it. Default False.

    Raises
    ------
    ValueError
        If an extent is less than 1, there are more than three, or there is no such format or number of channels.
    TypeError
        If the shape is no tuple of ints.
    """

    shape: tuple[int, ...]
    format: DTypeLike
    num_channels: int
    is_surface_load_store: bool = False

    def __post_init__(self) -> None:
        """Check the values, and make the format a member."""
        self.shape = array_shape(self.shape)
        self.format = array_format(self.format)
        self.num_channels = channel_count(self.num_channels)


@dataclasses.dataclass
class MipmappedArrayOptions:
    """Options of a mipmapped array.

    Attributes
    ----------
    shape : tuple of int
        The number of elements of level 0 along each axis: ``(width,)``, ``(width, height)`` or
        ``(width, height, depth)``. Each further level has half as many, rounded down, but at least one.
    format : ArrayFormatType, str or numpy.dtype
        What each channel of an element is.
    num_channels : int
        Channels of an element: 1, 2 or 4.
    num_levels : int
        The number of levels: 1 to as many as it takes to have a level of one element.
    is_surface_load_store : bool
        Whether surfaces can be made of the levels, through which kernels write them. Default False.

    Raises
    ------
    ValueError
        If an extent is less than 1, there are more than three, or there is no such format or number of channels, or
        fewer levels than 1.
    TypeError
        If the shape is no tuple of ints.
    """

    shape: tuple[int, ...]
    format: DTypeLike
    num_channels: int
    num_levels: int
    is_surface_load_store: bool = False

    def __post_init__(self) -> None:
        """Check the values, and make the format a member."""
        self.shape = array_shape(self.shape)
        self.format = array_format(self.format)
        self.num_channels = channel_count(self.num_channels)
        self.num_levels = integer(self.num_levels, "num_levels")
        if self.num_levels < 1:
            raise ValueError(f"num_levels must be at least 1, not {self.num_levels}")


class Description:
    """What an array is like: the options, checked, and what follows from them.

    For the driver, ``native`` is all of it, which is not changed, and ``extents`` the bytes of a row, rows, and layers.
    """

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


class ArrayBase(Handle):
    """What arrays with and without levels have in common."""

    __slots__ = ("_description", "_keep")

    _description: Description
    _keep: Any  # whatever must live as long

    __eq__ = object.__eq__  # a handle is given again to another array
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._describe()} handle={self._driver_handle:#x}>"

    def _describe(self) -> str:
        return f"shape={self.shape} format={self.format.value!r} num_channels={self.num_channels}"

    def _described(self, description: Description) -> Self:
        """Complete a new object."""
        self._description, self._keep = description, None
        return self

    def _of_image(self, native: Any, surface: bool) -> Self:
        """Complete an object for an array that the driver describes; close it if Python cannot have such an array."""
        try:
            self._description, self._keep = described_by(native, surface), None
        except BaseException:
            self.close()
            raise
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of elements along each axis: width, height, depth; of level 0 where there are levels."""
        return self._description.shape

    @property
    def format(self) -> ArrayFormatType:
        """What each channel is."""
        return self._description.format

    @property
    def num_channels(self) -> int:
        """Channels of an element: 1, 2 or 4."""
        return self._description.num_channels

    @property
    def is_surface_load_store(self) -> bool:
        """Whether surfaces can be made of the array."""
        return self._description.is_surface_load_store

    @property
    def device(self) -> Device:
        """The :class:`Device` that the array is on."""
        return registry.device(lib.ccc_handle_device(self._c_handle))


class OpaqueArray(ArrayBase):
    """Elements in memory of a device, in an order that the driver chooses and nobody knows.

    Arrays come from :meth:`Device.create_opaque_array`, :meth:`MipmappedArray.get_level` and
    :meth:`GraphicsResource.map_array`. They have no address:
    kernels read and write them through a :class:`TextureObject` or a :class:`SurfaceObject`, and copies bring elements
    in and out. ``array[16:32, 0:8]`` is a region, to copy only that.
    """

    __slots__ = ()

    _CTYPE: ClassVar[str] = "CUarray"
    _MADE_BY: ClassVar[str] = "Device.create_opaque_array"
    _NOT_COPIED_BECAUSE: ClassVar[str] = "it owns memory; copy_to copies the memory"

    def __getitem__(self, where: slice | EllipsisType | tuple[slice | EllipsisType, ...]) -> ArrayRegion:
        """Return a region of the array, for copies.

        Parameters
        ----------
        where : slice, or tuple of slices
            Elements along each axis, in the order of :attr:`shape`: x first. Of axes that are left out, all.

        Returns
        -------
        ArrayRegion
            The region. It has as many axes as the array.

        Raises
        ------
        TypeError
            If something is no slice.
        IndexError
            If there are more slices than axes.
        ValueError
            If a step is not 1.
        """
        slices = where if isinstance(where, tuple) else (where,)
        if slices and slices[-1] is Ellipsis:
            slices = slices[:-1]
        if len(slices) > len(self.shape):
            raise IndexError(f"an array of {len(self.shape)} axes takes no {len(slices)} slices")
        offset, shape = [0] * len(self.shape), list(self.shape)
        for axis, item in enumerate(slices):
            if not isinstance(item, slice):
                raise TypeError(f"a region takes slices such as array[4:8, 0:2], not {type(item).__name__}: {item!r}")
            start, stop, step = item.indices(self.shape[axis])
            if step != 1:
                raise ValueError(f"a slice of an array has step 1, not {step}")
            offset[axis], shape[axis] = start, max(stop - start, 0)
        return ArrayRegion._create(Region(self, tuple(offset), tuple(shape)))

    __iter__: ClassVar[None] = None  # __getitem__ alone would make it iterable

    @classmethod
    def _create(cls, device: int, options: OpaqueArrayOptions | OpaqueArrayOptionsDict) -> OpaqueArray:
        if not isinstance(options, OpaqueArrayOptions):
            options = check_options(OpaqueArrayOptions, options, "Device.create_opaque_array")
        wanted = describe(options)
        self = make(cls, lib.ccc_array_create, device, wanted.native)
        if self is None:
            self = retry(lambda: make(cls, lib.ccc_array_create, device, wanted.native), device, wanted, False)
        return self._described(wanted)

    def copy_from(self, src: object, *, stream: IsStreamType) -> None:
        """Copy elements into the whole array.

        Parameters
        ----------
        src : Buffer, StridedMemoryView, OpaqueArray, ArrayRegion, or object with the buffer protocol
            The source. A buffer, a NumPy array or bytes have the elements one after the other, x first: at least
            :attr:`size_bytes` bytes in one piece, of which the rest is not used. A view has the shape of the array in C
            order, ``(depth, height, width)``, or one more axis of the channels; rows and layers may be further apart
            than they are long. Another array has the same shape and elements of the same size.
        stream : Stream or GraphBuilder
            The copy is made in the order of this stream; it may not be done when this returns. Until it is, memory of
            the host is kept; change it after ``stream.sync()``. Other memory is the caller's to keep.

        Raises
        ------
        ValueError
            If the source is too small, or of another shape, or its strides cannot be copied.
        TypeError
            If the source has no memory or holds Python objects, or the stream is being captured and the source is
            memory of the host.
        BufferError
            If the memory of an object is not contiguous.
        RuntimeError
            If the array, the source or the stream is closed.
        """
        if not (isinstance(src, Buffer) and copy_buffer(self, src, True, stream, "OpaqueArray.copy_from")):
            copy_region(self._region, src, True, stream, "OpaqueArray.copy_from")

    def copy_to(self, dst: T, *, stream: IsStreamType) -> T:
        """Copy the elements of the whole array to somewhere else.

        Parameters
        ----------
        dst : Buffer, StridedMemoryView, OpaqueArray, ArrayRegion, or object with the buffer protocol
            The destination, as the source of :meth:`copy_from`; writable.
        stream : Stream or GraphBuilder
            The copy is made in the order of this stream; read memory of the host after ``stream.sync()``.

        Returns
        -------
        object
            The destination.

        Raises
        ------
        ValueError, TypeError, BufferError, RuntimeError
            As for :meth:`copy_from`; also if the destination is read-only.
        """
        if not (isinstance(dst, Buffer) and copy_buffer(self, dst, False, stream, "OpaqueArray.copy_to")):
            copy_region(self._region, dst, False, stream, "OpaqueArray.copy_to")
        return dst

    @property
    def element_bytes(self) -> int:
        """Bytes of an element, with all its channels."""
        return self._description.element_bytes

    @property
    def size_bytes(self) -> int:
        """Bytes of all elements."""
        return self._description.size_bytes

    @property
    def _region(self) -> Region:
        """All of it."""
        return Region(self, (0,) * len(self.shape), self.shape)


class ArrayRegion(NoConstructor):
    """A part of an opaque array, to copy elements to and from. It refers to the array, and owns nothing."""

    __slots__ = ("_region",)

    _MADE_BY = "slices of an OpaqueArray: array[4:8, 0:2]"
    _NOT_COPIED_BECAUSE = "it refers to an array of this process"
    _region: Region

    def __repr__(self) -> str:
        return f"<ArrayRegion offset={self.offset} shape={self.shape} of {self.array!r}>"

    @classmethod
    def _create(cls, region: Region) -> ArrayRegion:
        self = cls.__new__(cls)
        self._region = region
        return self

    def copy_from(self, src: object, *, stream: IsStreamType) -> None:
        """Copy elements into the region.

        Parameters
        ----------
        src, stream
            As for :meth:`OpaqueArray.copy_from`, which also tells what is raised. The shape is that of the region.
        """
        copy_region(self._region, src, True, stream, "ArrayRegion.copy_from")

    def copy_to(self, dst: T, *, stream: IsStreamType) -> T:
        """Copy the elements of the region to somewhere else.

        Parameters
        ----------
        dst, stream
            As for :meth:`OpaqueArray.copy_to`, which also tells what is raised. The shape is that of the region.

        Returns
        -------
        object
            The destination.
        """
        copy_region(self._region, dst, False, stream, "ArrayRegion.copy_to")
        return dst

    @property
    def array(self) -> OpaqueArray:
        """The array."""
        return self._region.array

    @property
    def offset(self) -> tuple[int, ...]:
        """The first element, along each axis of the array."""
        return self._region.offset

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of elements along each axis."""
        return self._region.shape

    @property
    def size_bytes(self) -> int:
        """Bytes of all elements."""
        return self._region.size_bytes


class MipmappedArray(ArrayBase):
    """An array with levels, each of half the size of the one before, between which textures choose or interpolate.

    Mipmapped arrays come from :meth:`Device.create_mipmapped_array` and :meth:`GraphicsResource.map_mipmapped_array`.
    A level is an :class:`OpaqueArray`, which keeps the whole.
    """

    __slots__ = ("_num_levels",)

    _CTYPE: ClassVar[str] = "CUmipmappedArray"
    _MADE_BY: ClassVar[str] = "Device.create_mipmapped_array"
    _NOT_COPIED_BECAUSE: ClassVar[str] = "it owns memory; copy_to of a level copies the memory"
    _num_levels: int

    def _describe(self) -> str:
        return f"{super()._describe()} num_levels={self._num_levels}"

    @classmethod
    def _create(cls, device: int, options: MipmappedArrayOptions | MipmappedArrayOptionsDict) -> MipmappedArray:
        given = dataclasses.replace(check_options(MipmappedArrayOptions, options, "Device.create_mipmapped_array"))
        wanted, levels = describe(given), given.num_levels
        most = max(wanted.shape).bit_length()
        if levels > most:
            raise ValueError(f"an array of shape {wanted.shape} has at most {most} levels, not {levels}")

        def create() -> MipmappedArray | None:
            return make(cls, lib.ccc_mipmap_create, device, wanted.native, levels)

        self = create()
        if self is None:
            self = retry(create, device, wanted, True)
        self._described(wanted)
        self._num_levels = levels
        return self

    def _of_levels(self, native: Any, surface: bool, levels: int) -> MipmappedArray:
        """Complete an object for a mipmapped array that the driver describes."""
        self._of_image(native, surface)
        self._num_levels = levels
        return self

    def get_level(self, level: int) -> OpaqueArray:
        """Return a level.

        Parameters
        ----------
        level : int
            Its number, from 0, the largest.

        Returns
        -------
        OpaqueArray
            The level. It keeps the whole, even if that is closed.

        Raises
        ------
        ValueError
            If there is no such level.
        RuntimeError
            If the array is closed.
        """
        number = integer(level, "level")
        if not 0 <= number < self._num_levels:
            raise ValueError(f"level must be 0 to {self._num_levels - 1}, not {number}")
        found = make(OpaqueArray, lib.ccc_mipmap_level, self._c_handle, number)
        if found is None:
            raise self._failure(lib.ccc_last_status())
        found._described(self._description.of_level(number))
        found._keep = self._keep
        return found

    @property
    def num_levels(self) -> int:
        """The number of levels."""
        return self._num_levels


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


def retry(allocate: Callable[[], T | None], device: int, wanted: Description, mipmapped: bool) -> T:
    """Allocate again after a failure that a garbage collection may cure, else raise."""

    def explain(status: int) -> Exception:
        return explain_limits(failure(status), device, len(wanted.shape), mipmapped)

    return retry_allocation(allocate, wanted.size_bytes, device, explain)
