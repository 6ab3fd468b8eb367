# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The parameters of nodes that copy: bytes, arrays, regions of arrays, and memory whose rows have gaps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cuda_core_cffi._arrays.layout import _StridedLayout
from cuda_core_cffi._arrays.strided_copy import check_copy, check_target, explain_plan, plan_copy
from cuda_core_cffi._arrays.strided_memory_view import StridedMemoryView
from cuda_core_cffi._core.errors import last_failure
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._lifetime.references import NOTHING, Operand
from cuda_core_cffi._memory import Buffer
from cuda_core_cffi._memory.operands import buffer_operand, operand
from cuda_core_cffi.graph.allocated import allocated
from cuda_core_cffi.graph.parameters import Parameters, count_of
from cuda_core_cffi.texture._copies import Region, begin_copy, check_regions, place_region, place_view, region_of

if TYPE_CHECKING:
    from cuda_core_cffi.graph.memory_nodes import MemcpyNode

FROM_DEVICE: int = lib.CCC_FROM_DEVICE
MEMCPY: int = lib.CU_GRAPH_NODE_TYPE_MEMCPY
TO_DEVICE: int = lib.CCC_TO_DEVICE


def has_shape(value: object) -> bool:
    """Tell whether an operand says itself how much there is to copy."""
    return isinstance(value, StridedMemoryView) or region_of(value) is not None


def copy(dst: Any, src: Any, size: Any, dst_owner: Any, src_owner: Any) -> Parameters[MemcpyNode]:
    """Return the parameters of a memcpy node."""
    if not (has_shape(dst) or has_shape(src)):
        if size is None:
            raise TypeError("size is needed: neither operand has a shape, as arrays and views have")
        count = count_of("size", size)
        return copy_bytes(operand(dst, dst_owner, "dst"), operand(src, src_owner, "src"), count)
    if size is not None:
        raise TypeError("size is for copies between buffers and addresses; arrays and views have shapes")
    target, source = use(dst, dst_owner, "dst"), use(src, src_owner, "src")
    found: Parameters[MemcpyNode] = Parameters(MEMCPY)
    to, whence = region_of(dst), region_of(src)
    if to is not None:
        status = copy_region(found, to, True, src, target, source)
    elif whence is not None:
        status = copy_region(found, whence, False, dst, source, target)
    else:
        status = copy_views(found, dst, src, target, source)
    if status == lib.CCC_CLOSED:
        raise RuntimeError("an operand of the copy was closed meanwhile")
    if status:
        raise last_failure()
    found.operands.update(dst=(target,), src=(source,))
    return found


def copy_bytes(target: Operand, source: Operand, size: int) -> Parameters[MemcpyNode]:
    """Return the parameters of a memcpy node that copies consecutive bytes."""
    target.check_capacity(size, "dst")
    source.check_capacity(size, "src")
    found: Parameters[MemcpyNode] = Parameters(MEMCPY)
    to, whence = (c_handle_of(target), target.address), (c_handle_of(source), source.address)
    box = ffi.new("ccc_region_copy *", (to, whence, size, 1, 1))  # one row
    if lib.ccc_graph_copy_params(found.native, box, on_device(target, source)):
        raise last_failure()
    found.operands["dst"], found.operands["src"] = (target,), (source,)
    return found


def use(value: Any, owner: Any, name: str) -> Operand:
    """Return an array, a region, a view or memory as what a node uses, with what keeps it."""
    region = region_of(value)
    if region is None and not isinstance(value, StridedMemoryView):
        return operand(value, owner, name)
    if owner is not None:
        raise ValueError(f"{name}_owner is for an address; a {type(value).__name__} is kept by itself")
    if region is not None:
        array = region.array
        handle = int(lib.ccc_handle_value(array._c_handle))
        if not handle:
            raise RuntimeError(f"{name}: this {type(array).__name__} is closed")
        return Operand(handle, (array._c_handle,))
    if value._is_closed:
        raise RuntimeError(f"{name}: the view's Buffer is closed")
    if isinstance(value._obj, Buffer):
        return buffer_operand(value._obj, name)._replace(address=value.ptr, size=None)
    return Operand(value.ptr, (), (value,))


def copy_region(
    found: Parameters[Any], region: Region, to_array: bool, thing: Any, ours: Operand, theirs: Operand
) -> int:
    """Describe a copy between a region of an array and something else; return the status."""
    if not region.size_bytes:
        raise ValueError("a region without elements cannot be copied by a node")
    copy = begin_copy(region)
    mine, other = (copy.target, copy.source) if to_array else (copy.source, copy.target)
    place_region(mine, region)
    another = region_of(thing)
    if another is not None:
        check_regions(region, another)
        place_region(other, another)
    elif isinstance(thing, StridedMemoryView):
        place_view(other, region, thing, to_array)
        other.handle = c_handle_of(theirs)
    else:
        theirs.check_capacity(region.size_bytes, "src" if to_array else "dst")
        place_memory(other, theirs)
    sides = (ours, theirs) if to_array else (theirs, ours)
    return int(lib.ccc_graph_copy_params(found.native, copy, on_device(*sides)))


def copy_views(found: Parameters[Any], dst: Any, src: Any, target: Operand, source: Operand) -> int:
    """Describe a copy between views, or a view and memory with the elements in C order; return the status."""
    view = dst if isinstance(dst, StridedMemoryView) else src
    layout = view._layout
    if not layout.volume:
        raise ValueError("a view without elements cannot be copied by a node")
    if isinstance(dst, StridedMemoryView) and isinstance(src, StridedMemoryView):
        check_copy(dst, src)
    elif view is dst:
        check_target(dst)
    dense = _StridedLayout.dense(layout.shape, layout.itemsize)
    places = []
    for thing, place, name in ((dst, target, "dst"), (src, source, "src")):
        shown = isinstance(thing, StridedMemoryView)
        if not shown:
            place.check_capacity(math.prod(layout.shape) * layout.itemsize, name)
        # the driver is asked where it is
        places.append((place.address, thing._layout if shown else dense, True, c_handle_of(place)))
    to, whence = places
    plan, possible = plan_copy(to, whence)
    if not possible:
        raise ValueError(explain_plan(whence[1], to[1]))
    return int(lib.ccc_graph_view_params(found.native, plan, on_device(target, source)))


def place_memory(box: Any, place: Operand) -> None:
    """Say in a box where memory is."""
    box.handle, box.address = c_handle_of(place), place.address


def c_handle_of(place: Operand) -> Any:
    """Return the C handle that keeps an operand, or NULL."""
    return place.c_handles[0] if place.c_handles else NOTHING


def on_device(target: Operand, source: Operand) -> int:
    """Return which operands are memory that a graph allocates."""
    if not allocated:  # in most programs
        return 0
    return TO_DEVICE * (target.address in allocated) | FROM_DEVICE * (source.address in allocated)
