# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The methods of devices that make arrays, textures and surfaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cuda_core_cffi._core.registry import registry

if TYPE_CHECKING:
    from cuda_core_cffi.texture import (
        MipmappedArray,
        MipmappedArrayOptions,
        OpaqueArray,
        OpaqueArrayOptions,
        ResourceDescriptor,
        SurfaceObject,
        TextureObject,
        TextureObjectOptions,
    )


class TextureMaker:
    """Makes arrays, textures and surfaces on a device."""

    __slots__ = ()

    _device_id: int

    def create_opaque_array(self, options: OpaqueArrayOptions | Mapping[str, Any]) -> OpaqueArray:
        """Allocate an array that kernels use through textures and surfaces.

        Parameters
        ----------
        options : OpaqueArrayOptions
            Its shape, and what its elements are.

        Returns
        -------
        OpaqueArray
            The array; its content is undefined.

        Raises
        ------
        CUDAError
            If there is no memory, or the device has no arrays of this size.
        """
        return registry.create_opaque_array(self._device_id, options)

    def create_mipmapped_array(self, options: MipmappedArrayOptions | Mapping[str, Any]) -> MipmappedArray:
        """Allocate an array with levels.

        Parameters
        ----------
        options : MipmappedArrayOptions
            Its shape, its levels, and what its elements are.

        Returns
        -------
        MipmappedArray
            The array; its content is undefined.

        Raises
        ------
        ValueError
            If an array of this shape has fewer levels.
        CUDAError
            If there is no memory, or the device has no arrays of this size.
        """
        found: MipmappedArray = registry.texture.MipmappedArray._create(self._device_id, options)
        return found

    def create_texture_object(
        self, resource: ResourceDescriptor, options: TextureObjectOptions | Mapping[str, Any] | None = None
    ) -> TextureObject:
        """Make a texture, through which kernels sample an array or a buffer.

        Parameters
        ----------
        resource : ResourceDescriptor
            What the texture shows. It is kept as long as the texture is open.
        options : TextureObjectOptions, optional
            How it samples.

        Returns
        -------
        TextureObject
            The texture.

        Raises
        ------
        ValueError
            If an option has no such value, the array is on another device, or the buffer is not aligned.
        RuntimeError
            If the array or the buffer is closed.
        CUDAError
            If the driver has no such textures.
        """
        return registry.create_texture_object(self._device_id, resource, options)

    def create_surface_object(self, resource: ResourceDescriptor) -> SurfaceObject:
        """Make a surface, through which kernels read and write an array.

        Parameters
        ----------
        resource : ResourceDescriptor
            An array that was made with ``is_surface_load_store``. It is kept as long as the surface is open.

        Returns
        -------
        SurfaceObject
            The surface.

        Raises
        ------
        ValueError
            If this is no such array, or one on another device.
        RuntimeError
            If the array is closed.
        """
        found: SurfaceObject = registry.texture.SurfaceObject._create(self._device_id, resource)
        return found
