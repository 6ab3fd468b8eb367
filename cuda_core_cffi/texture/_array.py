# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Opaque arrays, and regions of them."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable, Mapping
from types import EllipsisType, TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from cuda_core_cffi._core.calls import make
from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.errors import last_failure
from cuda_core_cffi._core.ffi import lib
from cuda_core_cffi._core.handle import Handle
from cuda_core_cffi._core.options import check_options
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi._memory import Buffer
from cuda_core_cffi._memory.allocation import fits_device
from cuda_core_cffi.texture._copies import Region, copy_buffer, copy_region
from cuda_core_cffi.texture._formats import (
    Description,
    array_format,
    array_shape,
    channel_count,
    describe,
    described_by,
    explain_limits,
)
from cuda_core_cffi.typing import ArrayFormatType, IsStreamType

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from cuda_core_cffi._device.device import Device

T = TypeVar("T")


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


class ArrayBase(Handle):
    """What arrays with and without levels have in common."""

    __slots__ = ("_description", "_keep")

    _description: Description
    _keep: Any  # whatever must live as long

    __eq__ = object.__eq__  # a handle is given again to another array
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._describe()} handle={self._value:#x}>"

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

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
        return ArrayRegion._of(Region(self, tuple(offset), tuple(shape)))

    __iter__: ClassVar[None] = None  # __getitem__ alone would make it iterable

    @classmethod
    def _create(cls, device: int, options: OpaqueArrayOptions | Mapping[str, Any]) -> OpaqueArray:
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


class ArrayRegion(Uncopyable):
    """A part of an opaque array, to copy elements to and from. It refers to the array, and owns nothing."""

    __slots__ = ("_region",)

    _NOT_COPIED_BECAUSE = "it refers to an array of this process"
    _region: Region

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise RuntimeError("ArrayRegion cannot be constructed directly; use slices of an OpaqueArray: array[4:8, 0:2]")

    def __repr__(self) -> str:
        return f"<ArrayRegion offset={self.offset} shape={self.shape} of {self.array!r}>"

    @classmethod
    def _of(cls, region: Region) -> ArrayRegion:
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


def retry(allocate: Callable[[], T | None], device: int, wanted: Description, mipmapped: bool) -> T:
    """Allocate again after a failure that a garbage collection may cure, else raise."""
    status = lib.ccc_last_status()
    error = last_failure()
    if status == lib.CUDA_ERROR_OUT_OF_MEMORY and fits_device(wanted.size_bytes, device):
        gc.collect()
        lib.ccc_reclaim()
        array = allocate()
        if array is not None:
            return array
        if lib.ccc_last_status() != status:
            error = last_failure()
    raise explain_limits(error, device, len(wanted.shape), mipmapped)
