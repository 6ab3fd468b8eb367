# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Mipmapped arrays: an array with smaller versions of itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from cuda_core_cffi._core.calls import make
from cuda_core_cffi._core.ffi import lib
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi._core.options import check_options
from cuda_core_cffi.texture._array import ArrayBase, OpaqueArray, retry
from cuda_core_cffi.texture._formats import array_format, array_shape, channel_count, describe

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


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
    def _create(cls, device: int, options: MipmappedArrayOptions | Mapping[str, Any]) -> MipmappedArray:
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
