# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Copies between regions of arrays and whatever else has memory."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from cuda_core_cffi._arrays.strided_copy import byte_strides
from cuda_core_cffi._arrays.strided_memory_view import StridedMemoryView
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import Handle
from cuda_core_cffi._memory import Buffer
from cuda_core_cffi._memory.access import copy_failure
from cuda_core_cffi._memory.host_copy import EXPORTS_HOLD, copy_with_memory, host_memory
from cuda_core_cffi._streams.stream import Stream, accept_stream
from cuda_core_cffi.typing import IsStreamType

if TYPE_CHECKING:
    from cuda_core_cffi.texture._array import OpaqueArray

MAX_PITCH = 2**31 - 1  # CU_DEVICE_ATTRIBUTE_MAX_PITCH on every device


class Region(NamedTuple):
    """A part of an array."""

    array: OpaqueArray
    offset: tuple[int, ...]  # the first element, along each axis of the array
    shape: tuple[int, ...]  # how many elements there are

    @property
    def extents(self) -> tuple[int, int, int]:
        """Elements in a row, rows, layers."""
        across, rows, layers = (*self.shape, 1, 1)[:3]
        return across, rows, layers

    @property
    def size_bytes(self) -> int:
        """Bytes in the elements."""
        return math.prod(self.shape) * self.array.element_bytes


def copy_buffer(array: OpaqueArray, buffer: Buffer, to_array: bool, stream: Any, what: str) -> bool:
    """Copy between a whole array and a buffer, the short way; return whether that was done, or raise.

    What is unusual is left to :func:`copy_region`, which tells what is wrong.
    """
    description = array._description
    if not isinstance(stream, Stream) or buffer._size < description.size_bytes or buffer.is_closed:
        return False
    status = lib.ccc_array_copy_buffer(
        array._c_handle,
        buffer._c_handle,
        to_array | (0 if buffer.is_device_accessible else lib.CCC_ON_HOST),
        description.extents,
        stream._c_handle,
    )
    if status:
        raise copy_failure(status, what, stream, array, buffer)
    return True


def copy_region(region: Region, thing: Any, to_array: bool, stream: IsStreamType, what: str) -> None:
    """Copy between a region and something else; ``what`` is the operation."""
    queue = accept_stream(stream, what)
    copy = begin_copy(region)
    ours, theirs = (copy.target, copy.source) if to_array else (copy.source, copy.target)
    place_region(ours, region)
    operands: list[Handle] = [region.array]
    memory, wait = None, False
    if isinstance(thing, Buffer):
        check_size(region, thing.size, to_array)
        theirs.handle, theirs.on_host = thing._c_handle, not (thing.is_closed or thing.is_device_accessible)
        operands.append(thing)
    elif (other := region_of(thing)) is not None:
        check_regions(region, other)
        place_region(theirs, other)
        operands.append(other.array)
    elif isinstance(thing, StridedMemoryView):
        place_view(theirs, region, thing, to_array)
        if isinstance(thing._obj, Buffer):
            theirs.handle = thing._obj._c_handle
            operands.append(thing._obj)
        elif not thing.is_device_accessible:
            memory = ffi.gc(ffi.cast("char *", thing.ptr), functools.partial(forget, thing))
    else:
        memory = host_memory(thing, not to_array)
        check_size(region, len(memory), to_array)
        theirs.address, theirs.on_host = int(ffi.cast("uintptr_t", memory)), True
        wait = not (EXPORTS_HOLD or isinstance(thing, bytes))
    if isinstance(thing, StridedMemoryView) and region.size_bytes:
        thing._make_ready(queue)
    if not region.size_bytes:
        status = lib.CCC_CLOSED if any(item.is_closed for item in (*operands, queue)) else 0
    elif memory is None:
        status = lib.ccc_array_copy(copy, queue._c_handle)
    else:
        status = copy_with_memory(memory, wait, lib.ccc_array_copy_host, copy, queue._c_handle)
    if status:
        raise copy_failure(status, what, queue, *operands)


def region_of(thing: object) -> Region | None:
    """Return what is copied of an array or a region; None for anything else."""
    region = getattr(thing, "_region", None)
    return region if isinstance(region, Region) else None


def begin_copy(region: Region) -> Any:
    """Return a new copy of the elements of a region, which lie one after the other where memory takes part."""
    copy = ffi.new("ccc_region_copy *")
    across, copy.rows, copy.layers = region.extents
    copy.width = across * region.array.element_bytes
    for box in (copy.target, copy.source):
        box.pitch, box.height = copy.width, copy.rows
    return copy


def place_region(box: Any, region: Region) -> None:
    """Say in a box where a region is."""
    across, box.y, box.z = (*region.offset, 0, 0)[:3]
    box.x = across * region.array.element_bytes
    box.handle, box.pitch, box.height = region.array._c_handle, 0, 0


def place_view(box: Any, region: Region, view: StridedMemoryView, to_array: bool) -> None:
    """Say in a box where the elements of a view are, which has the axes of a region in C order, or raise."""
    if not to_array and view.readonly:
        raise ValueError("the destination is read-only")
    layout = view._layout
    element, channels = region.array.element_bytes, region.array.num_channels
    shape, strides = tuple(layout.shape), byte_strides(layout)
    wanted = region.shape[::-1]
    if shape == (*wanted, channels) and layout.itemsize * channels == element:
        if strides[-1] != layout.itemsize and channels > 1:
            raise ValueError(f"the channels of an element must be adjacent, not {strides[-1]} bytes apart")
        strides = strides[:-1]
    elif shape != wanted or layout.itemsize != element:
        alone = "" if channels > 1 else f"{wanted} or "
        raise ValueError(
            f"a view for this region has the shape {alone}{(*wanted, channels)} and elements of "
            f"{element // channels} bytes, or {wanted} and elements of {element} bytes, not {shape} and elements of "
            f"{layout.itemsize} bytes"
        )
    across, rows, layers = region.extents
    step, row, layer = (*strides[::-1], 0, 0)[:3]
    if across > 1 and step != element:
        raise ValueError(f"the elements of a row must be adjacent, not {step} bytes apart")
    pitch = row if rows > 1 else layer if layers > 1 else across * element
    height = layer // pitch if rows > 1 and layers > 1 and pitch > 0 else rows
    if pitch < across * element or pitch > MAX_PITCH or (rows > 1 and layers > 1 and layer != pitch * height):
        raise ValueError(
            f"rows and layers must follow one another, {across * element} to 2**31 - 1 bytes from row to row and a "
            f"number of rows from layer to layer: the strides are {strides} bytes"
        )
    if height < rows:
        raise ValueError(f"layers that overlap cannot be copied: the strides are {strides} bytes")
    box.address, box.on_host, box.pitch, box.height = view.ptr, not view.is_device_accessible, pitch, height


def check_size(region: Region, size: int, to_array: bool) -> None:
    """Raise if memory has fewer bytes than a region."""
    if size < region.size_bytes:
        side = "source" if to_array else "destination"
        raise ValueError(f"the {side} has {size} bytes, fewer than the {region.size_bytes} of the elements to copy")


def check_regions(one: Region, other: Region) -> None:
    """Raise unless one region can be copied to the other."""
    if one.extents != other.extents:
        raise ValueError(f"the shapes differ: {other.shape} does not fit {one.shape}")
    if one.array.element_bytes != other.array.element_bytes:
        raise ValueError(f"the elements differ: {one.array.element_bytes} bytes do not fit {other.array.element_bytes}")
    if one.array._driver_handle == other.array._driver_handle and all(
        abs(first - second) < extent for first, second, extent in zip(one.offset, other.offset, one.shape)
    ):
        raise ValueError("the regions have elements in common")


def forget(view: StridedMemoryView, address: Any) -> None:
    """Do nothing: the view was kept until now."""
