# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What textures and surfaces show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from cuda_core_cffi._core.copying import NoConstructor
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi._memory import Buffer
from cuda_core_cffi.texture._array import FORMATS, MipmappedArray, OpaqueArray, array_format, channel_count
from cuda_core_cffi.typing import ArrayFormatType

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

TYPES = {
    "array": lib.CU_RESOURCE_TYPE_ARRAY,
    "mipmapped_array": lib.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
    "linear": lib.CU_RESOURCE_TYPE_LINEAR,
    "pitch2d": lib.CU_RESOURCE_TYPE_PITCH2D,
}

OF_ARRAYS = {kind: ffi.new("CUDA_RESOURCE_DESC *", {"resType": TYPES[kind]}) for kind in ("array", "mipmapped_array")}
"""Descriptions of arrays, in which only the array is missing."""


class ResourceDescriptor(NoConstructor):
    """What a texture or a surface shows: an array, or a buffer and how its memory is understood.

    Descriptors come from the class methods. They refer to the array or the buffer, and own nothing.
    """

    __slots__ = ("_format", "_kind", "_numbers", "_shown", "_source")

    _MADE_BY: ClassVar[str] = "from_opaque_array, from_mipmapped_array, from_linear or from_pitch2d"
    _NOT_COPIED_BECAUSE: ClassVar[str] = "it refers to memory of this process"
    _kind: str
    _source: OpaqueArray | MipmappedArray | Buffer
    _shown: tuple[ArrayFormatType, str, bool]  # what each channel is; the kind; whether an array has one dimension
    _format: ArrayFormatType | None
    _numbers: dict[str, int]  # what else describes a buffer

    def __repr__(self) -> str:
        known = [] if self._format is None else [f"format={self._format}"]
        known += [f"{name}={value}" for name, value in self._numbers.items()]
        return f"<ResourceDescriptor {' '.join([f'kind={self._kind!r}', *known])} source={self._source!r}>"

    @classmethod
    def _create(
        cls,
        kind: str,
        source: OpaqueArray | MipmappedArray | Buffer,
        format: ArrayFormatType | None = None,
        **numbers: int,
    ) -> ResourceDescriptor:
        if source.is_closed:
            raise source._failure(lib.CCC_CLOSED)
        self = cls.__new__(cls)
        self._kind, self._source, self._format, self._numbers = kind, source, format, numbers
        if isinstance(source, Buffer):
            assert format is not None
            self._shown = format, kind, False
        else:
            self._shown = source.format, kind, len(source.shape) == 1
        return self

    @classmethod
    def from_opaque_array(cls, array: OpaqueArray) -> ResourceDescriptor:
        """Describe an array, for textures and surfaces.

        Parameters
        ----------
        array : OpaqueArray
            The array.

        Returns
        -------
        ResourceDescriptor
            The descriptor.
        """
        if not isinstance(array, OpaqueArray):
            raise TypeError(f"array must be an OpaqueArray, not {type(array).__name__}")
        return cls._create("array", array)

    @classmethod
    def from_mipmapped_array(cls, mipmapped_array: MipmappedArray) -> ResourceDescriptor:
        """Describe a mipmapped array, for textures. For a surface, describe a level with :meth:`from_opaque_array`.

        Parameters
        ----------
        mipmapped_array : MipmappedArray
            The array.

        Returns
        -------
        ResourceDescriptor
            The descriptor.
        """
        if not isinstance(mipmapped_array, MipmappedArray):
            raise TypeError(f"mipmapped_array must be a MipmappedArray, not {type(mipmapped_array).__name__}")
        return cls._create("mipmapped_array", mipmapped_array)

    @classmethod
    def from_linear(
        cls, buffer: Buffer, *, format: DTypeLike, num_channels: int, size_bytes: int | None = None
    ) -> ResourceDescriptor:
        """Describe the memory of a buffer as a row of elements, for textures that kernels read by index.

        Such textures neither interpolate nor have addressing modes: those options are not used.

        Parameters
        ----------
        buffer : Buffer
            The memory. Its address is a multiple of the device's ``texture_alignment``.
        format : ArrayFormatType, str or numpy.dtype
            What each channel of an element is.
        num_channels : int
            Channels of an element: 1, 2 or 4.
        size_bytes : int, optional
            How many bytes of the buffer are shown, a multiple of the size of an element. Default is all.

        Returns
        -------
        ResourceDescriptor
            The descriptor.

        Raises
        ------
        ValueError
            If there are no such elements, or more than the buffer has.
        """
        kind, channels, element = check_memory(buffer, format, num_channels)
        size = buffer.size if size_bytes is None else integer(size_bytes, "size_bytes")
        if size > buffer.size:
            raise ValueError(f"size_bytes must be at most the {buffer.size} bytes of the buffer, not {size}")
        if size < element or size % element:
            raise ValueError(f"size_bytes must be a multiple of the {element} bytes of an element, not {size}")
        return cls._create("linear", buffer, format=kind, num_channels=channels, size_bytes=size)

    @classmethod
    def from_pitch2d(
        cls, buffer: Buffer, *, format: DTypeLike, num_channels: int, width: int, height: int, pitch_bytes: int
    ) -> ResourceDescriptor:
        """Describe the memory of a buffer as rows of elements, for textures of two dimensions.

        Parameters
        ----------
        buffer : Buffer
            The memory. Its address is a multiple of the device's ``texture_alignment``.
        format : ArrayFormatType, str or numpy.dtype
            What each channel of an element is.
        num_channels : int
            Channels of an element: 1, 2 or 4.
        width : int
            Elements in a row.
        height : int
            Rows.
        pitch_bytes : int
            Bytes from one row to the next: a multiple of the device's ``texture_pitch_alignment``.

        Returns
        -------
        ResourceDescriptor
            The descriptor.

        Raises
        ------
        ValueError
            If there are no such rows, or they take more memory than the buffer has.
        """
        kind, channels, element = check_memory(buffer, format, num_channels)
        across, rows = integer(width, "width"), integer(height, "height")
        for name, value in (("width", across), ("height", rows)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        pitch = integer(pitch_bytes, "pitch_bytes")
        if pitch < across * element:
            raise ValueError(f"pitch_bytes must be at least the {across * element} bytes of a row, not {pitch}")
        if pitch * rows > buffer.size:
            raise ValueError(f"{rows} rows of {pitch} bytes are more than the {buffer.size} bytes of the buffer")
        return cls._create(
            "pitch2d", buffer, format=kind, num_channels=channels, width=across, height=rows, pitch_bytes=pitch
        )

    @property
    def kind(self) -> str:
        """``"array"``, ``"mipmapped_array"``, ``"linear"`` or ``"pitch2d"``."""
        return self._kind

    @property
    def source(self) -> OpaqueArray | MipmappedArray | Buffer:
        """The array or the buffer."""
        return self._source

    @property
    def format(self) -> ArrayFormatType | None:
        """What each channel of an element of a buffer is; None for arrays, which say so themselves."""
        return self._format

    @property
    def num_channels(self) -> int | None:
        """Channels of an element of a buffer; None for arrays."""
        return self._numbers.get("num_channels")

    @property
    def size_bytes(self) -> int | None:
        """Bytes of a buffer that are shown as one row; else None."""
        return self._numbers.get("size_bytes")

    @property
    def width(self) -> int | None:
        """Elements in a row, where a buffer is shown in rows; else None."""
        return self._numbers.get("width")

    @property
    def height(self) -> int | None:
        """Rows of a buffer; else None."""
        return self._numbers.get("height")

    @property
    def pitch_bytes(self) -> int | None:
        """Bytes from one row of a buffer to the next; else None."""
        return self._numbers.get("pitch_bytes")

    def _native(self, device: int) -> Any:
        """Return the driver's description, in which the source is still missing; raise unless textures can show it."""
        if native := OF_ARRAYS.get(self._kind):
            return native
        source = self._source
        assert isinstance(source, Buffer)
        if source.is_closed:
            raise source._failure(lib.CCC_CLOSED)
        native = ffi.new("CUDA_RESOURCE_DESC *")
        native.resType = TYPES[self._kind]
        assert self._format is not None
        if not source.is_device_accessible:
            raise ValueError("a texture shows memory that a device can use, not ordinary memory of the host")
        self._check_alignment(device)
        number = FORMATS[self._format].number
        if self._kind == "linear":
            linear = native.res.linear
            linear.format, linear.numChannels, linear.sizeInBytes = number, self.num_channels, self.size_bytes
        else:
            rows = native.res.pitch2D
            rows.format, rows.numChannels, rows.pitchInBytes = number, self.num_channels, self.pitch_bytes
            rows.width, rows.height = self.width, self.height
        return native

    def _check_alignment(self, device: int) -> None:
        properties = registry.device(device).properties
        boundary = properties.texture_alignment
        if boundary and self._source._driver_handle % boundary:
            raise ValueError(
                f"the address of the buffer must be a multiple of {boundary} bytes, the texture_alignment of device "
                f"{device}, and {self._source._driver_handle:#x} is not"
            )
        boundary = properties.texture_pitch_alignment
        if boundary and self.pitch_bytes is not None and self.pitch_bytes % boundary:
            raise ValueError(
                f"pitch_bytes must be a multiple of {boundary}, the texture_pitch_alignment of device {device}, not "
                f"{self.pitch_bytes}"
            )


def check_memory(buffer: Any, kind: Any, channels: Any) -> tuple[ArrayFormatType, int, int]:
    """Return the format, the number of channels and the size of the elements of a buffer, or raise."""
    if not isinstance(buffer, Buffer):
        raise TypeError(f"buffer must be a Buffer, not {type(buffer).__name__}")
    found, count = array_format(kind), channel_count(channels)
    return found, count, FORMATS[found].size * count
