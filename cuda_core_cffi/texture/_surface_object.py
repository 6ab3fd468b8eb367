# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Surfaces: arrays that kernels read and write by element."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi._launching.bindless import Bindless
from cuda_core_cffi.texture._array import OpaqueArray
from cuda_core_cffi.texture._resource import ResourceDescriptor

if TYPE_CHECKING:
    from cuda_core_cffi._device.device import Device


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
        self = cls._make(device, array, resource._native(device), ffi.NULL)
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
