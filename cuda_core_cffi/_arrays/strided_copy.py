# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Copies between arrays of one shape, whatever their layouts."""

from __future__ import annotations

import functools
from typing import Any

from cuda_core_cffi._arrays.layout import _StridedLayout
from cuda_core_cffi._arrays.strides import fitting
from cuda_core_cffi._core.errors import last_failure
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._lifetime.host_memory import ATTEND, after_wait
from cuda_core_cffi._memory.access import explain_access
from cuda_core_cffi._memory.dlpack import CPU, DTYPE, Exported, host_tensor, release_deleted_tensors, releases
from cuda_core_cffi._streams.stream import LEGACY_DEFAULT_STREAM, Stream, stream_or_default
from cuda_core_cffi.typing import IsStreamType


def copy_view(target: Any, source: Any, stream: IsStreamType | None, blocking: bool | None) -> None:
    """Copy one view into another: see ``StridedMemoryView.copy_from``."""
    queue = stream_or_default(stream, "a copy between views")
    check_copy(target, source)
    if not target.size:
        return
    to, what = ((view.ptr, view._layout, view.is_device_accessible, view._c_handle) for view in (target, source))
    copy, possible = plan_copy(to, what, max(target.device_id, source.device_id))
    with_device = target.is_device_accessible, source.is_device_accessible
    if not any(with_device):
        if stream is not None:
            queue.sync()
        copy_on_host(copy)
        return
    if not possible:
        raise ValueError(explain_plan(source._layout, target._layout))
    for view in (target, source):
        view._make_ready(queue)
    with_host = not all(with_device)
    copy_strided(copy, queue, with_host, with_host if blocking is None else bool(blocking), target, source)


def host_copy(view: Any, exported: Exported, versioned: bool) -> Any:
    """Return a capsule with a copy of a view in host memory, in C order."""
    layout = view._layout
    dense = _StridedLayout.dense(layout.shape, layout.itemsize)
    shown = exported._replace(device=(CPU, 0), strides=dense._explicit_strides(), readonly=False)
    capsule, address = host_tensor(shown, versioned)
    if not layout.volume:
        return capsule
    source = view.ptr, layout, view.is_device_accessible, view._c_handle
    copy, possible = plan_copy((address, dense, False, ffi.NULL), source, view.device_id)
    if not view.is_device_accessible:
        copy_on_host(copy)
    elif not possible:
        raise BufferError(f"the driver cannot copy {layout!r} to dense memory in one call")
    else:
        view._order(LEGACY_DEFAULT_STREAM)
        copy_strided(copy, LEGACY_DEFAULT_STREAM, True, True, view)
    return capsule


def check_copy(target: Any, source: Any) -> None:
    """Raise unless one view can be copied into the other."""
    for view in (target, source):
        if view._is_closed:
            raise RuntimeError("the view's Buffer is closed")
    check_target(target)
    if target.shape != source.shape:
        raise ValueError(f"the shapes differ: {source.shape} does not fit {target.shape}")
    if target._layout.itemsize != source._layout.itemsize or not same_type(target, source):
        raise ValueError(f"the types differ: {source._dtype_name()} does not fit {target._dtype_name()}")


def check_target(target: Any) -> None:
    """Raise unless all elements of a view can be written."""
    if target.readonly:
        raise ValueError("the destination is read-only")
    if not target._layout.is_unique:
        raise ValueError(f"several elements of the destination share memory: {target._layout!r}")


def same_type(target: Any, source: Any) -> bool:
    """Return whether two views are of one type, or one of them of none."""
    one, other = target._info[DTYPE], source._info[DTYPE]
    if one is None or other is None:
        return True
    if isinstance(one, int) and isinstance(other, int):  # DLPack's types: NumPy need not know them
        return one == other
    return bool(target.dtype == source.dtype)


def plan_copy(target: tuple[Any, ...], source: tuple[Any, ...], device: int = -1) -> tuple[Any, bool]:
    """Return the C structure of a copy, and whether the driver can do it in one call.

    Target and source, of one shape and element size, are the address of the first element, the layout, whether devices
    can access the memory, and the C handle of the buffer that it is of, or NULL. The device, by default the current
    one, is that whose default stream a default stream means.
    """
    copy = ffi.new("ccc_strided_copy *")
    for side, (address, layout, on_device, c_handle) in ((copy.target, target), (copy.source, source)):
        side.handle, side.address, side.on_host = c_handle, address, not on_device
        for axis, stride in enumerate(byte_strides(layout)):
            side.strides[axis] = stride
    layout = target[1]
    for axis, extent in enumerate(layout.shape):
        copy.shape[axis] = extent
    copy.itemsize, copy.ndim, copy.device = layout.itemsize, layout.ndim, device
    return copy, bool(lib.ccc_view_plan(copy))


def explain_plan(source: _StridedLayout, target: _StridedLayout) -> str:
    """Return why a copy cannot be made."""
    return (
        f"the driver cannot copy {source!r} to {target!r} in one call: make one of the views contiguous in the order "
        "of the other"
    )


def byte_range(start: int, layout: _StridedLayout) -> tuple[int, int]:
    """Return the addresses between which the elements of a layout lie."""
    low, high = layout.offset_bounds
    return start + low * layout.itemsize, start + (high + 1) * layout.itemsize


def byte_strides(layout: _StridedLayout) -> tuple[int, ...]:
    """Return the strides in bytes, spelt out."""
    return tuple([fitting("stride in bytes", stride * layout.itemsize) for stride in layout._explicit_strides()])


def copy_on_host(copy: Any) -> None:
    """Make a planned copy between memory that the host can access."""
    if lib.ccc_view_copy_on_host(copy):
        raise RuntimeError("the view's Buffer is closed")


def copy_strided(copy: Any, stream: Stream, with_host: bool, blocking: bool, *views: Any) -> None:
    """Make a planned copy in the order of a stream, and wait for it if ``blocking``.

    ``with_host`` says whether one side is memory that only the host can access: then the views are kept until the copy
    is done. A stream that is being captured can neither do that nor wait.
    """
    release_deleted_tensors()
    if with_host or blocking:
        capturing = ffi.new("int *")
        status = lib.ccc_view_capturing(stream._c_handle, capturing)
        if status:
            raise stream._failure(status)
        if capturing[0]:
            raise RuntimeError(
                "the stream is being captured: a graph can neither keep memory of the host nor wait for a copy; copy "
                "between buffers, or after the capture"
            )
    token = 0
    if with_host and not blocking:
        token = lib.ccc_view_refer()
        if not token:
            raise last_failure()
        releases[token] = functools.partial(id, views)
    status = lib.ccc_view_copy(copy, stream._c_handle, token, blocking)
    if status == ATTEND:  # which only what waits returns
        after_wait(status, stream)
        return
    if status and status != lib.CCC_UNRESTORED and token:
        del releases[token]
        lib.ccc_tensor_free(token)
    if status:
        buffers = [view._obj for view in views]
        raise explain_access(stream._failure(status, *buffers), stream, *views)
