# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays, textures and surfaces of the simulated driver through ctypes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sim_driver import Driver, byref, c_int, c_size_t, c_uint, c_uint64, c_void_p, ctypes
from sim_graphs import CopyParams, CopySide

HOST, DEVICE, ARRAY, UNIFIED = 1, 2, 3, 4  # CUmemorytype
UINT8, UINT16, UINT32, SINT8, SINT16, SINT32, HALF, FLOAT = 1, 2, 3, 8, 9, 10, 16, 32  # CUarray_format
UNORM8X1, UNORM8X4, SNORM16X2, NV12, BC1 = 0xC0, 0xC2, 0xCA, 0xB0, 0x91
LAYERED, SURFACE, CUBEMAP, GATHER, DEPTH_TEXTURE, COLOR, SPARSE, DEFERRED = (1 << bit for bit in range(8))
WRAP, CLAMP, MIRROR, BORDER = range(4)
POINT, LINEAR = 0, 1
READ_AS_INTEGER, NORMALIZED, SRGB, NO_TRILINEAR, SEAMLESS = 1, 2, 16, 32, 64
FROM_ARRAY, FROM_MIPMAP, FROM_LINEAR, FROM_PITCH2D = range(4)  # CUresourcetype

FORMATS = {
    "uint8": UINT8,
    "uint16": UINT16,
    "uint32": UINT32,
    "int8": SINT8,
    "int16": SINT16,
    "int32": SINT32,
    "float16": HALF,
    "float32": FLOAT,
}


class ArrayDesc(ctypes.Structure):
    _fields_ = [("width", c_size_t), ("height", c_size_t), ("format", c_int), ("channels", c_uint)]


class Array3DDesc(ctypes.Structure):
    _fields_ = [
        ("width", c_size_t),
        ("height", c_size_t),
        ("depth", c_size_t),
        ("format", c_int),
        ("channels", c_uint),
        ("flags", c_uint),
    ]


class Linear(ctypes.Structure):
    _fields_ = [("pointer", c_uint64), ("format", c_int), ("channels", c_uint), ("size", c_size_t)]


class Pitch2D(ctypes.Structure):
    _fields_ = [
        ("pointer", c_uint64),
        ("format", c_int),
        ("channels", c_uint),
        ("width", c_size_t),
        ("height", c_size_t),
        ("pitch", c_size_t),
    ]


class Resources(ctypes.Union):
    _fields_ = [("handle", c_void_p), ("linear", Linear), ("pitch2d", Pitch2D), ("reserved", c_int * 32)]


class ResourceDesc(ctypes.Structure):
    _anonymous_ = ("of",)
    _fields_ = [("type", c_int), ("of", Resources), ("flags", c_uint)]


class TextureDesc(ctypes.Structure):
    _fields_ = [
        ("address", c_int * 3),
        ("filter", c_int),
        ("flags", c_uint),
        ("anisotropy", c_uint),
        ("mipmap_filter", c_int),
        ("bias", ctypes.c_float),
        ("least_level", ctypes.c_float),
        ("most_level", ctypes.c_float),
        ("border", ctypes.c_float * 4),
        ("reserved", c_int * 12),
    ]


class ViewDesc(ctypes.Structure):
    _fields_ = [
        ("format", c_int),
        ("width", c_size_t),
        ("height", c_size_t),
        ("depth", c_size_t),
        ("first_level", c_uint),
        ("last_level", c_uint),
        ("first_layer", c_uint),
        ("last_layer", c_uint),
        ("reserved", c_uint * 16),
    ]


class Copy2D(ctypes.Structure):
    _fields_ = [
        (f"{side}_{name}", kind)
        for side in ("src", "dst")
        for name, kind in (
            ("x", c_size_t),
            ("y", c_size_t),
            ("type", c_uint),
            ("host", c_void_p),
            ("device", c_uint64),
            ("array", c_void_p),
            ("pitch", c_size_t),
        )
    ] + [("width", c_size_t), ("height", c_size_t)]


class PeerSide(ctypes.Structure):
    """One side of ``CUDA_MEMCPY3D_PEER``: a context where the other structure has a reserved member."""

    _fields_ = CopySide._fields_


class CopyPeer(ctypes.Structure):
    _fields_ = [
        ("source", PeerSide),
        ("target", PeerSide),
        ("width", c_size_t),
        ("height", c_size_t),
        ("depth", c_size_t),
    ]


def described(
    shape: tuple[int, ...], flags: int = 0, kind: int = FLOAT, channels: int = 1, *, layers: int = 0
) -> Array3DDesc:
    """Describe an array of up to three dimensions, the slowest first, or of layers of up to two."""
    depth, height, width = (0,) * (3 - len(shape)) + shape
    return Array3DDesc(width, height, layers or depth, kind, channels, flags | (LAYERED if layers else 0))


def create(cu: Driver, desc: Array3DDesc) -> c_void_p:
    return cu.out(c_void_p, "cuArray3DCreate_v2", byref(desc))


def box_of(array: c_void_p, data: np.ndarray[Any, Any]) -> tuple[CopySide, CopySide, tuple[int, int, int]]:
    """Return an array, the host's memory, and the size of a copy of all the data; its last axis is the channels."""
    depth, height, width = (1,) * (4 - data.ndim) + data.shape[:-1]
    row = width * data.shape[-1] * data.itemsize
    memory = CopySide(type=HOST, host=data.ctypes.data, pitch=row, height=height)
    return CopySide(type=ARRAY, array=array.value), memory, (row, height, depth)


def upload(cu: Driver, array: c_void_p, data: np.ndarray[Any, Any]) -> None:
    data = np.ascontiguousarray(data)
    target, source, size = box_of(array, data)
    cu.cuMemcpy3D_v2(byref(CopyParams(source, target, *size)))


def download(cu: Driver, array: c_void_p, like: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    data = np.zeros_like(like, order="C")
    source, target, size = box_of(array, data)
    cu.cuMemcpy3D_v2(byref(CopyParams(source, target, *size)))
    return data


def texture_of(handle: c_void_p | ResourceDesc, *, mipmapped: bool = False) -> ResourceDesc:
    """Describe an array or a mipmapped array as a resource."""
    if isinstance(handle, ResourceDesc):
        return handle
    desc = ResourceDesc(type=FROM_MIPMAP if mipmapped else FROM_ARRAY)
    desc.handle = handle.value
    return desc


def linear(pointer: c_uint64 | int, kind: int, channels: int, size: int) -> ResourceDesc:
    desc = ResourceDesc(type=FROM_LINEAR)
    desc.linear = Linear(pointer if isinstance(pointer, int) else pointer.value, kind, channels, size)
    return desc


def pitch2d(pointer: c_uint64 | int, kind: int, channels: int, width: int, height: int, pitch: int) -> ResourceDesc:
    desc = ResourceDesc(type=FROM_PITCH2D)
    address = pointer if isinstance(pointer, int) else pointer.value
    desc.pitch2d = Pitch2D(address, kind, channels, width, height, pitch)
    return desc


def view_of(desc: Array3DDesc, kind: int = 0, **more: int) -> ViewDesc:
    return ViewDesc(format=kind, width=desc.width, height=desc.height, depth=desc.depth, **more)


def sampler(
    address: int = CLAMP, filtering: int = POINT, flags: int = 0, border: tuple[float, ...] = (0,) * 4, **more: Any
) -> TextureDesc:
    modes, color = (c_int * 3)(*(address,) * 3), (ctypes.c_float * 4)(*border)
    return TextureDesc(address=modes, filter=filtering, flags=flags, border=color, **more)


@contextmanager
def an_array(cu: Driver, desc: Array3DDesc) -> Iterator[c_void_p]:
    array = create(cu, desc)
    yield array
    cu.cuArrayDestroy(array)


@contextmanager
def a_mipmap(cu: Driver, desc: Array3DDesc, levels: int) -> Iterator[c_void_p]:
    mipmap: c_void_p = cu.out(c_void_p, "cuMipmappedArrayCreate", byref(desc), levels)
    yield mipmap
    cu.cuMipmappedArrayDestroy(mipmap)


@contextmanager
def a_texture(
    cu: Driver, resource: ResourceDesc, desc: TextureDesc, view: ViewDesc | None = None
) -> Iterator[c_uint64]:
    texture: c_uint64 = cu.out(
        c_uint64, "cuTexObjectCreate", byref(resource), byref(desc), None if view is None else byref(view)
    )
    yield texture
    cu.cuTexObjectDestroy(texture)


@contextmanager
def a_surface(cu: Driver, array: c_void_p) -> Iterator[c_uint64]:
    surface: c_uint64 = cu.out(c_uint64, "cuSurfObjectCreate", byref(texture_of(array)))
    yield surface
    cu.cuSurfObjectDestroy(surface)
