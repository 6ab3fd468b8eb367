# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Textures, how they sample, and surfaces."""

from __future__ import annotations

import dataclasses
import numbers
from typing import TYPE_CHECKING, Any, ClassVar

from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi._core.options import check_options, member
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi._launching.bindless import Bindless
from cuda_core_cffi.texture._array import OpaqueArray
from cuda_core_cffi.texture._resource import ResourceDescriptor
from cuda_core_cffi.typing import AddressModeType, ArrayFormatType, FilterModeType, ReadModeType

if TYPE_CHECKING:
    from cuda_core_cffi._device.device import Device
    from cuda_core_cffi.typing._option_dicts import TextureObjectOptionsDict

MOST_AXES = 3
MOST_KNOWN = 128  # ways of sampling
COLOR_CHANNELS = 4
LARGEST_ANISOTROPY = 2**32 - 1
FLOATS = (ArrayFormatType.FLOAT16, ArrayFormatType.FLOAT32)
ADDRESS_MODES = {
    AddressModeType.WRAP: lib.CU_TR_ADDRESS_MODE_WRAP,
    AddressModeType.CLAMP: lib.CU_TR_ADDRESS_MODE_CLAMP,
    AddressModeType.MIRROR: lib.CU_TR_ADDRESS_MODE_MIRROR,
    AddressModeType.BORDER: lib.CU_TR_ADDRESS_MODE_BORDER,
}
FILTER_MODES = {
    FilterModeType.POINT: lib.CU_TR_FILTER_MODE_POINT,
    FilterModeType.LINEAR: lib.CU_TR_FILTER_MODE_LINEAR,
}
FLAGS = (
    lib.CU_TRSF_NORMALIZED_COORDINATES,
    lib.CU_TRSF_SRGB,
    lib.CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION,
    lib.CU_TRSF_SEAMLESS_CUBEMAP,
)
"""What the options from ``normalized_coords`` to ``seamless_cubemap`` are to the driver."""

descriptions: dict[Any, Any] = {}  # by what they describe; functools.lru_cache would take twice as long


@dataclasses.dataclass
class TextureObjectOptions:
    """How a texture samples. Plain strings are accepted for the enumerations.

    Attributes
    ----------
    address_mode : AddressModeType, or tuple of 1 to 3 of them
        What there is outside, along all axes or each. ``"wrap"`` and ``"mirror"`` need normalized coordinates.
        Default ``"clamp"``.
    filter_mode : FilterModeType
        Whether to interpolate between elements. Default ``"point"``, which does not.
    read_mode : ReadModeType
        How integers are read. Default ``"element_type"``: as they are.
    normalized_coords : bool
        Whether coordinates run from 0 to 1, rather than to the number of elements. Default False.
    srgb : bool
        Whether 8-bit values are converted from sRGB to linear ones. Default False.
    disable_trilinear_optimization : bool
        Whether the driver may not simplify the filtering between levels. Default False.
    seamless_cubemap : bool
        Whether to interpolate over the edges of a cube map. Default False.
    max_anisotropy : int
        The largest ratio of anisotropy. Default 0: none.
    mipmap_filter_mode : FilterModeType
        Whether to interpolate between levels. Default ``"point"``.
    mipmap_level_bias : float
        Added to the level. Default 0.
    min_mipmap_level_clamp, max_mipmap_level_clamp : float
        The smallest and the largest level that is used. Default 0.
    border_color : tuple of 4 floats, or None
        What there is outside with the address mode ``"border"``. Default None: zeros.

    Raises
    ------
    ValueError
        If there is no such filter or read mode. The other values are checked when a texture is made.
    """

    address_mode: AddressModeType | str | tuple[AddressModeType | str, ...] = AddressModeType.CLAMP
    filter_mode: FilterModeType | str = FilterModeType.POINT
    read_mode: ReadModeType | str = ReadModeType.ELEMENT_TYPE
    normalized_coords: bool = False
    srgb: bool = False
    disable_trilinear_optimization: bool = False
    seamless_cubemap: bool = False
    max_anisotropy: int = 0
    mipmap_filter_mode: FilterModeType | str = FilterModeType.POINT
    mipmap_level_bias: float = 0.0
    min_mipmap_level_clamp: float = 0.0
    max_mipmap_level_clamp: float = 0.0
    border_color: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Make members of the modes."""
        self.filter_mode = member(FilterModeType, self.filter_mode, "filter_mode")
        self.read_mode = member(ReadModeType, self.read_mode, "read_mode")
        self.mipmap_filter_mode = member(FilterModeType, self.mipmap_filter_mode, "mipmap_filter_mode")


class TextureObject(Bindless):
    """An array or a buffer as kernels sample it: by coordinates, with interpolation and rules for what is outside.

    Textures come from :meth:`Device.create_texture_object`. They are kernel arguments, of the type
    ``cudaTextureObject_t``, and so is their :attr:`handle`. A texture keeps what it shows.
    """

    __slots__ = ("_options", "_resource")

    _CTYPE: ClassVar[str] = "CUtexObject"
    _MADE_BY: ClassVar[str] = "Device.create_texture_object"
    _options: TextureObjectOptions
    _resource: ResourceDescriptor

    @classmethod
    def _create(
        cls, device: int, resource: object, options: TextureObjectOptions | TextureObjectOptionsDict | None
    ) -> TextureObject:
        if not isinstance(resource, ResourceDescriptor):
            raise TypeError(f"resource must be a ResourceDescriptor, not {type(resource).__name__}")
        if not isinstance(options, TextureObjectOptions):
            options = check_options(TextureObjectOptions, options, "Device.create_texture_object")
        how = sampling(options, resource)
        self = cls._create_object(device, resource._source, resource._native(device), how)
        self._resource, self._options = resource, options
        return self

    @property
    def resource(self) -> ResourceDescriptor:
        """What the texture shows."""
        return self._resource

    @property
    def options(self) -> TextureObjectOptions:
        """How it samples: the options that it was made with."""
        return self._options

    @property
    def device(self) -> Device:
        """The :class:`Device` that the texture is on."""
        return registry.device(lib.ccc_handle_device(self._c_handle))


class SurfaceObject(Bindless):
    """An array as kernels read and write it, without sampling.

    Surfaces come from :meth:`Device.create_surface_object`. They are kernel arguments, of the type
    ``cudaSurfaceObject_t``, and so is their :attr:`handle`. A surface keeps its array.
    """

    __slots__ = ("_resource",)

    _CTYPE: ClassVar[str] = "CUsurfObject"
    _MADE_BY: ClassVar[str] = "Device.create_surface_object"
    _resource: ResourceDescriptor

    @classmethod
    def _create(cls, device: int, resource: object) -> SurfaceObject:
        if not isinstance(resource, ResourceDescriptor):
            raise TypeError(f"resource must be a ResourceDescriptor, not {type(resource).__name__}")
        array = resource.source
        if not isinstance(array, OpaqueArray):
            raise ValueError(
                f"a surface shows an opaque array, not a resource of the kind {resource.kind!r}: use "
                "ResourceDescriptor.from_opaque_array"
            )
        if not array.is_surface_load_store:
            raise ValueError("a surface needs an array that was made with is_surface_load_store=True")
        self = cls._create_object(device, array, resource._native(device), ffi.NULL)
        self._resource = resource
        return self

    @property
    def resource(self) -> ResourceDescriptor:
        """What the surface shows."""
        return self._resource

    @property
    def device(self) -> Device:
        """The :class:`Device` that the surface is on."""
        return registry.device(lib.ccc_handle_device(self._c_handle))


def sampling(options: TextureObjectOptions, resource: ResourceDescriptor) -> Any:
    """Return the driver's description of how a texture samples, or raise. It is not to be changed."""
    # written out, since operator.attrgetter takes twice as long
    ratio, bias = options.max_anisotropy, options.mipmap_level_bias
    least, most = options.min_mipmap_level_clamp, options.max_mipmap_level_clamp
    values = (
        resource._shown,
        options.address_mode,
        options.filter_mode,
        options.mipmap_filter_mode,
        options.read_mode,
        ratio,
        bias,
        least,
        most,
        None if options.border_color is None else color(options.border_color),
        options.normalized_coords,
        options.srgb,
        options.disable_trilinear_optimization,
        options.seamless_cubemap,
    )
    key = values, type(ratio), type(bias), type(least), type(most)  # True is no number, although it equals 1
    try:
        native = descriptions.get(key)
    except TypeError:  # a list of modes has no hash
        return description(*values)
    if native is None:
        native = description(*values)
        if len(descriptions) >= MOST_KNOWN:
            descriptions.clear()
        descriptions[key] = native
    return native


def description(
    shown: tuple[ArrayFormatType, str, bool],
    address_mode: Any,
    filter_mode: Any,
    mipmap_filter_mode: Any,
    read_mode: Any,
    max_anisotropy: Any,
    mipmap_level_bias: Any,
    min_mipmap_level_clamp: Any,
    max_mipmap_level_clamp: Any,
    border_color: tuple[float, ...] | None,
    *flags: Any,
) -> Any:
    """Return the same for what a resource shows and for the options."""
    element_format, kind, is_line = shown
    native = ffi.new("CUDA_TEXTURE_DESC *")
    for axis, mode in enumerate(address_modes(address_mode)):
        # An H100 samples an array of one dimension on the edge of its only row: a border would be half of the result.
        native.addressMode[axis] = ADDRESS_MODES[AddressModeType.CLAMP if is_line and axis else mode]
    filtering = member(FilterModeType, filter_mode, "filter_mode")
    reading = member(ReadModeType, read_mode, "read_mode")
    native.filterMode = FILTER_MODES[filtering]
    native.mipmapFilterMode = FILTER_MODES[member(FilterModeType, mipmap_filter_mode, "mipmap_filter_mode")]
    for flag, is_set in zip(FLAGS, flags, strict=True):
        native.flags |= flag if is_set else 0
    as_integers = reading is ReadModeType.ELEMENT_TYPE and element_format not in FLOATS
    if as_integers:
        native.flags |= lib.CU_TRSF_READ_AS_INTEGER
        if filtering is FilterModeType.LINEAR and kind != "linear":
            raise ValueError(
                f"filter_mode 'linear' interpolates floats, and elements of format {element_format.value!r} "
                "are read as integers: use read_mode 'normalized_float', or filter_mode 'point'"
            )
    anisotropy = integer(max_anisotropy, "max_anisotropy")
    if not 0 <= anisotropy <= LARGEST_ANISOTROPY:
        raise ValueError(f"max_anisotropy must be 0 to 2**32 - 1, not {anisotropy}")
    native.maxAnisotropy = anisotropy
    native.mipmapLevelBias = real(mipmap_level_bias, "mipmap_level_bias")
    native.minMipmapLevelClamp = real(min_mipmap_level_clamp, "min_mipmap_level_clamp")
    native.maxMipmapLevelClamp = real(max_mipmap_level_clamp, "max_mipmap_level_clamp")
    if border_color is not None:
        native.borderColor = border_color
    return native


def color(given: Any) -> tuple[float, ...]:
    """Return the values of all channels."""
    values = tuple(given)
    if len(values) != COLOR_CHANNELS:
        raise ValueError(f"border_color must have {COLOR_CHANNELS} values, not {len(values)}")
    return tuple(real(value, "border_color") for value in values)


def address_modes(given: Any) -> tuple[AddressModeType, ...]:
    """Return the address mode of each axis."""
    if isinstance(given, str):
        return (member(AddressModeType, given, "address_mode"),) * MOST_AXES
    if not isinstance(given, tuple | list):
        raise TypeError(f"address_mode must be an AddressModeType or a tuple of them, not {type(given).__name__}")
    if not 1 <= len(given) <= MOST_AXES:
        raise ValueError(f"address_mode must have 1 to {MOST_AXES} modes, not {len(given)}")
    modes = tuple(member(AddressModeType, mode, "address_mode") for mode in given)
    return (*modes, *modes[-1:] * (MOST_AXES - len(modes)))


def real(value: Any, name: str) -> float:
    """Return a number as a float, or raise."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a float, not {type(value).__name__}: {value!r}")
    return float(value)
