# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Opaque arrays, and the textures and surfaces by which kernels use them.

A :class:`Device` makes them: ``create_opaque_array``, ``create_mipmapped_array``, ``create_texture_object`` and
``create_surface_object``.
"""

from __future__ import annotations

from cuda_core_cffi.texture._array import (
    ArrayRegion,
    MipmappedArray,
    MipmappedArrayOptions,
    OpaqueArray,
    OpaqueArrayOptions,
)
from cuda_core_cffi.texture._resource import ResourceDescriptor
from cuda_core_cffi.texture._texture_object import SurfaceObject, TextureObject, TextureObjectOptions

__all__ = [
    "ArrayRegion",
    "MipmappedArray",
    "MipmappedArrayOptions",
    "OpaqueArray",
    "OpaqueArrayOptions",
    "ResourceDescriptor",
    "SurfaceObject",
    "TextureObject",
    "TextureObjectOptions",
]
