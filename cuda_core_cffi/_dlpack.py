# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers as DLPack capsules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuda_core_cffi import _capsule
from cuda_core_cffi._errors import failure
from cuda_core_cffi._ffi import ffi, lib
from cuda_core_cffi._stream import LEGACY_DEFAULT_STREAM, Stream

__all__ = ["CPU", "CUDA", "CUDA_HOST", "CUDA_MANAGED", "export_buffer"]

# DLPack's device types
CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
ON_DEVICE = (CUDA, CUDA_MANAGED)
NO_ORDERING = -1

# What Python keeps alive for tensors that are out: see ccc_tensor.h.
pins: dict[int, Callable[[], None]] = {}


def export_buffer(
    buffer: Any,
    stream: int | None,
    max_version: tuple[int, int] | None,
    wanted: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """Return the capsule for ``buffer``; the other parameters are the standard's.

    Raises
    ------
    BufferError
        If the request cannot be met.
    """
    release_pins()
    if buffer.is_closed:
        raise BufferError("this Buffer is closed")
    device = buffer._device_type()
    versioned = max_version is not None and max_version[0] >= 1
    if wanted is not None and tuple(wanted) != device:
        if tuple(wanted) != (CPU, 0):
            raise BufferError(f"the memory is on DLPack device {device}; it can be exported there or to (1, 0)")
        if copy is False:
            raise BufferError(
                f"the memory is on DLPack device {device}: host memory needs a copy, which copy=False forbids"
            )
        return host_copy(buffer, versioned)
    consumer = consumer_stream(stream, device)
    if copy and device[0] == CPU:
        return host_copy(buffer, versioned)
    if copy:
        with device_copy(buffer, consumer) as made:
            return show(made, device, versioned, True)
    if consumer is not None:
        order(buffer, consumer)
    return show(buffer, device, versioned, False)


def show(buffer: Any, device: tuple[int, int], versioned: bool, copied: bool) -> Any:
    """Return a capsule that shows ``buffer`` and keeps its memory."""
    release = buffer._hold() if buffer._python_owned else None
    tensor = lib.ccc_tensor_of_buffer(buffer._box, *device, versioned, copied, release is not None)
    if not tensor:
        if release is not None:
            release()
        raise buffer._failure(lib.ccc_last_status())
    if release is not None:
        pins[tensor] = release
    return wrap(tensor, versioned)


def wrap(tensor: int, versioned: bool) -> Any:
    """Return a capsule that owns ``tensor``."""
    try:
        return _capsule.new(tensor, versioned)
    except BaseException:
        lib.ccc_tensor_delete(tensor)
        raise


def consumer_stream(stream: int | None, device: tuple[int, int]) -> Stream | None:
    """Return the stream that the consumer will use, or None where nothing needs to be ordered."""
    if stream == NO_ORDERING or (stream is None and device[0] not in ON_DEVICE):
        return None
    if device[0] == CPU:
        raise BufferError(f"memory of the host only takes no stream, but the consumer gave {stream!r}")
    if stream is None:
        return LEGACY_DEFAULT_STREAM
    if isinstance(stream, bool) or not isinstance(stream, int):
        raise TypeError(f"stream must be an int or None, not {type(stream).__name__}")
    if stream <= 0:
        raise BufferError(f"stream {stream} is ambiguous or none: 1 is the legacy default stream, 2 the per-thread one")
    return Stream.from_handle(stream)


def order(buffer: Any, consumer: Stream) -> None:
    """Make the consumer's stream wait for what the buffer's own stream still does with the memory."""
    status = lib.ccc_buffer_order(buffer._box, consumer._box)
    if status:
        raise buffer._failure(status, consumer)


def device_copy(buffer: Any, consumer: Stream | None) -> Any:
    """Return a copy of ``buffer`` from the same resource, ready in the consumer's stream."""
    if buffer.memory_resource is None:
        raise BufferError("copy=True needs a memory resource to take the copy from; this buffer has none")
    stream = consumer or LEGACY_DEFAULT_STREAM
    order(buffer, stream)
    made = buffer.copy_to(stream=stream)
    made.set_deallocation_stream(LEGACY_DEFAULT_STREAM)  # the consumer may destroy its stream before the tensor
    if consumer is None:
        stream.sync()
    return made


def host_copy(buffer: Any, versioned: bool) -> Any:
    """Return a capsule with a copy of ``buffer`` in host memory."""
    data = ffi.new("void **")
    tensor = lib.ccc_tensor_on_host(buffer.size, versioned, data)
    if not tensor:
        raise failure(lib.ccc_last_status())
    try:
        if buffer.is_device_accessible:
            status = lib.ccc_copy_to_host(data[0], buffer._box)
            if status:
                raise buffer._failure(status)
        else:  # no driver is needed, nor a context
            ffi.memmove(data[0], ffi.cast("char *", buffer.handle), buffer.size)
    except BaseException:
        lib.ccc_tensor_delete(tensor)
        raise
    return wrap(tensor, versioned)


def release_pins() -> None:
    """Let go of what was kept for tensors that their consumers have deleted."""
    while tensor := lib.ccc_tensor_finished():
        release = pins.pop(tensor, None)
        lib.ccc_tensor_free(tensor)  # not before: a new tensor could get this address
        if release is not None:
            release()
