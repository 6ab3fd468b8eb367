# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers and views as DLPack capsules."""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

from cuda_core_cffi import _capsule
from cuda_core_cffi._core.errors import last_failure
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.locks import new_lock
from cuda_core_cffi._lifetime import pending_calls
from cuda_core_cffi._lifetime.references import Releaser
from cuda_core_cffi._lifetime.table import new_table
from cuda_core_cffi._streams.stream import LEGACY_DEFAULT_STREAM, Stream

if TYPE_CHECKING:
    from cuda_core_cffi._core.ffi import CData


class DLDeviceType(enum.IntEnum):
    """What DLPack calls the kinds of memory that CUDA knows."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLCUDAManaged = 13


CPU, CUDA, CUDA_HOST, CUDA_MANAGED = (kind.value for kind in DLDeviceType)
ON_DEVICE = (CUDA, CUDA_MANAGED)
NO_ORDERING = -1
# The fields of what is known of an array: see ccc_capsule_read.h.
ADDRESS, SHAPE, STRIDES, DEVICE, ACCESSIBLE, READ_ONLY, DEVICE_TYPE, DTYPE, OWNER = range(9)
SIGNED_BYTE = 0 | 8 << 8 | 1 << 16

# What Python keeps alive for tensors that are out, and for copies under way: see ccc_tensor.h.
releases: MutableMapping[int, Callable[[], object]] = new_table()

COPIED: int = lib.CCC_TENSOR_COPIED
ON_HOST: int = lib.CCC_TENSOR_ON_HOST
PINNED: int = lib.CCC_TENSOR_PINNED
TENSOR_READ_ONLY: int = lib.CCC_TENSOR_READ_ONLY
VERSIONED: int = lib.CCC_TENSOR_VERSIONED

_capsule_of = _capsule.of
_read_capsule = _capsule.read
_share = _capsule.share


class Exported(NamedTuple):
    """What a tensor shows."""

    address: int
    device: tuple[int, int]  # DLPack's device type, and the ordinal
    dtype: int  # DLPack's type, as cuda_core_cffi._core.dtypes has it
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in elements
    readonly: bool = False

    def array(self) -> tuple[CData, CData, CData]:
        """Return the C structure that describes this, and what it points to."""
        shape, strides = ffi.new("int64_t[]", self.shape), ffi.new("int64_t[]", self.strides)
        dtype = (self.dtype & 0xFF, self.dtype >> 8 & 0xFF, self.dtype >> 16)
        array = ffi.new("ccc_array *", (self.address, self.device, dtype, len(self.shape), shape, strides))
        return array, shape, strides


def export_buffer(
    buffer: Any,
    stream: int | None,
    max_version: tuple[int, int] | None,
    wanted: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """Return the capsule for ``buffer``, or raise BufferError; the other parameters are the standard's."""
    if releases:
        release_deleted_tensors()
    if buffer.is_closed:
        raise BufferError("this Buffer is closed")
    device = buffer._device_type()
    versioned, on_host, consumer = read_request(device, stream, max_version, wanted, copy)
    if on_host:
        return host_copy(buffer, versioned)
    if copy:
        with device_copy(buffer, consumer) as made:
            return show(made, device, versioned, True)
    if consumer is not None:
        order(buffer, consumer)
    return show(buffer, device, versioned, False)


def export_view(
    view: Any,
    stream: int | None,
    max_version: tuple[int, int] | None,
    wanted: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """Return the capsule for a view, or raise BufferError; the other parameters are the standard's."""
    if releases:
        release_deleted_tensors()
    info = view._info
    tensor = info[OWNER]
    exported = view._exported() if type(tensor) is tuple else None
    versioned, on_host, consumer = read_request(view.__dlpack_device__(), stream, max_version, wanted, copy)
    if on_host:
        return view._host_copy(exported or view._exported(), versioned)
    if copy:
        raise BufferError("a view has no memory resource to take a copy from: use StridedMemoryView.copy_to")
    if not versioned and info[READ_ONLY]:
        raise BufferError("the view is read-only, which DLPack before 1.0 cannot say: ask with max_version=(1, 0)")
    if consumer is not None:
        view._order(consumer)
    return _share(tensor, versioned) if exported is None else show_view(view, exported, versioned)


def read_request(
    device: tuple[int, int],
    stream: int | None,
    max_version: tuple[int, int] | None,
    wanted: tuple[int, int] | None,
    copy: bool | None,
) -> tuple[bool, bool, Stream | None]:
    """Return what a consumer of memory on ``device`` gets: whether a versioned tensor, whether host memory, the order.

    The order is that of the stream, or None.
    """
    versioned = max_version is not None and max_version[0] >= 1
    if wanted is not None and wants_host_copy(device, wanted, copy):
        return versioned, True, None
    consumer = None
    if stream != NO_ORDERING and (stream is not None or device[0] in ON_DEVICE):
        consumer = consumer_stream(stream, device[0])
    return versioned, bool(copy) and device[0] == CPU, consumer


def give_view(view: Any) -> Any:
    """Return a capsule with a versioned tensor for a view, in the order of the legacy default stream."""
    release_deleted_tensors()
    exported = view._exported()
    if exported.device[0] in ON_DEVICE:
        view._order(LEGACY_DEFAULT_STREAM)
    return show_view(view, exported, True)


def share_view(view: Any) -> Any:
    """Return a capsule, which the view keeps, with a versioned tensor in the order of the legacy default stream.

    The tensor keeps the memory, so what it shows is good as long as the view exists.
    """
    release_deleted_tensors()
    info = view._info
    if view._is_closed:
        raise BufferError("this view's Buffer is closed")
    if info[DEVICE_TYPE] in ON_DEVICE:
        view._order(LEGACY_DEFAULT_STREAM)
    try:
        return view._shared_capsule
    except AttributeError:
        pass
    if type(info[OWNER]) is tuple:
        capsule = show_view(view, view._exported(), True, shared=True)
    else:
        capsule = _share(info[OWNER], True)
    with _sharing:  # another thread may have been here
        try:
            _ = view._shared_capsule
        except AttributeError:
            view._shared_capsule = capsule
    return view._shared_capsule


def show_view(view: Any, exported: Exported, versioned: bool, shared: bool = False) -> Any:
    """Return a capsule that shows what a view shows, and keeps it; a ``shared`` one is kept by the view."""
    c_handle, release = view._keeper()
    if shared and not c_handle:  # the memory is the view's to keep
        release = None
    array, *_kept = exported.array()
    how = VERSIONED if versioned else 0
    if exported.readonly:
        how |= TENSOR_READ_ONLY
    if release is not None:
        how |= PINNED
    return pinned(_capsule_of(address_in(array), address_in(c_handle), how), release)


def wants_host_copy(device: tuple[int, int], wanted: tuple[int, int], copy: bool | None) -> bool:
    """Return whether the consumer wants memory on ``device`` copied to the host."""
    if tuple(wanted) == device:
        return False
    if tuple(wanted) != (CPU, 0):
        raise BufferError(f"the memory is on DLPack device {device}; it can be exported there or to (1, 0)")
    if copy is False:
        raise BufferError(
            f"the memory is on DLPack device {device}: host memory needs a copy, which copy=False forbids"
        )
    return True


def show(buffer: Any, device: tuple[int, int], versioned: bool, copied: bool) -> Any:
    """Return a capsule that shows ``buffer`` and keeps its memory."""
    release = Releaser(buffer._retain_memory()).release if buffer._needs_python else None
    how = device[0] | device[1] << 16
    if versioned:
        how |= VERSIONED
    if copied:
        how |= COPIED
    if release is not None:
        how |= PINNED
    capsule = _capsule_of(0, buffer.c_handle, how)
    if capsule is None:
        raise buffer._failure(lib.ccc_last_status())
    return pinned(capsule, release)


def pinned(capsule: Any, release: Callable[[], object] | None) -> Any:
    """Return a new capsule, whose tensor is to be deleted before ``release`` is called; raise if it was not made."""
    if capsule is None:
        raise last_failure()
    if release is not None:
        releases[_read_capsule(capsule)[0]] = release
    return capsule


def address_in(pointer: CData) -> int:
    """Return the address that a pointer of CFFI holds."""
    return int(ffi.cast("uintptr_t", pointer))


def consumer_stream(stream: int | None, kind: int) -> Stream:
    """Return the stream of a consumer, for memory of this kind."""
    if kind == CPU:
        raise BufferError(f"memory of the host only takes no stream, but the consumer gave {stream!r}")
    if stream is None:
        return LEGACY_DEFAULT_STREAM
    if type(stream) is not int:
        if isinstance(stream, bool) or not isinstance(stream, SupportsIndex):
            raise TypeError(f"stream must be an int or None, not {type(stream).__name__}")
        stream = operator.index(stream)
    if stream >= 1 << 64:
        raise ValueError(f"stream {stream} is not an address")
    if stream <= 0:
        raise BufferError(f"stream {stream} is ambiguous or none: 1 is the legacy default stream, 2 the per-thread one")
    return Stream.from_handle(stream)


def order(buffer: Any, consumer: Stream) -> None:
    """Make the consumer's stream wait for what the buffer's own stream still does with the memory."""
    status = lib.ccc_buffer_order(buffer._c_handle, consumer._c_handle)
    if status:
        raise buffer._failure(status, consumer)


def follow(buffer: Any, consumer: Stream) -> None:
    """Make the buffer's own stream, in which the memory goes back, wait for the consumer's."""
    status = lib.ccc_buffer_follow(buffer._c_handle, consumer._c_handle)
    if status:
        raise buffer._failure(status, consumer)


def device_copy(buffer: Any, consumer: Stream | None) -> Any:
    """Return a copy of ``buffer`` from the same resource, ready in the consumer's stream."""
    if buffer.memory_resource is None:
        raise BufferError("copy=True needs a memory resource to take the copy from; this buffer has none")
    stream = consumer or LEGACY_DEFAULT_STREAM
    order(buffer, stream)
    made = buffer.copy_to(stream=stream)
    try:
        made.set_deallocation_stream(LEGACY_DEFAULT_STREAM)  # the consumer may destroy its stream before the tensor
        if consumer is None:
            stream.sync()
        else:  # neither the copy nor what it is made of goes back before it is made
            follow(made, stream)
            follow(buffer, stream)
    except BaseException:
        made.close(stream)  # the copy may be under way
        raise
    return made


def host_copy(buffer: Any, versioned: bool) -> Any:
    """Return a capsule with a copy of ``buffer`` in host memory."""
    size = buffer.size
    capsule, data = host_tensor(Exported(0, (CPU, 0), SIGNED_BYTE, (size,), (1,)), versioned)
    copy = lib.ccc_copy_to_host if buffer.is_device_accessible else lib.ccc_read_host
    status = copy(ffi.cast("void *", data), buffer._c_handle, size)
    if status:
        raise buffer._failure(status)
    return capsule


def host_tensor(exported: Exported, versioned: bool) -> tuple[Any, int]:
    """Return a capsule with host memory of its own, laid out without gaps, and the address, for the caller to fill."""
    array: Any
    array, *_kept = exported.array()
    how = ON_HOST | COPIED | VERSIONED if versioned else ON_HOST
    capsule = pinned(_capsule_of(address_in(array), 0, how), None)
    return capsule, int(array.data)


def release_deleted_tensors() -> None:
    """Let go of what was kept for tensors that their consumers have deleted."""
    while tensor := lib.ccc_tensor_finished():
        release = releases.pop(tensor, None)
        lib.ccc_tensor_free(tensor)  # not before: a new tensor could get this address
        if release is not None:
            release()


pending_calls.tasks.append(release_deleted_tensors)
_sharing = new_lock()
