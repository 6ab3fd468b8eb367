# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Functions that the tests of shared virtual memory call in another process (:mod:`ipc_child`)."""

from __future__ import annotations

import os
import socket
from typing import Any

from buffers import content
from ipc_child import kept, use_device
from scenarios import PTX
from virtual_memory import UNIT, access

from cuda_core_cffi import (
    Buffer,
    Device,
    LaunchConfig,
    ObjectCode,
    VirtualMemoryBuffer,
    VirtualMemoryIPCBufferDescriptor,
    VirtualMemoryResource,
    launch,
    lib,
)

ONE = LaunchConfig(grid=1, block=1)


def describe(buffer: VirtualMemoryBuffer) -> dict[str, Any]:
    """Return the properties of a received buffer and its resource."""
    with buffer:
        resource: Any = buffer.memory_resource
        return {
            "kind": type(buffer),
            "size": buffer.size,
            "mapped": buffer.is_mapped,
            "device": buffer.device_id,
            "place": buffer.__dlpack_device__(),
            "config": resource.config,
            "shared": resource.is_ipc_enabled,
        }


def first_bytes(buffer: Buffer) -> list[int]:
    """Return the first byte of each granule."""
    with use_device().create_stream() as stream:
        data = content(buffer, stream)
    return [data[start] for start in range(0, buffer.size, UNIT)]


def store(buffer: Buffer, value: int) -> list[int]:
    """Write an int with a kernel, and return the first bytes from before."""
    with buffer, use_device().create_stream() as stream, ObjectCode.from_ptx(PTX) as code:
        before = first_bytes(buffer)
        launch(stream, ONE, code.get_kernel("store"), buffer, value)
        stream.sync()
        return before


def import_by_hand(descriptor: VirtualMemoryIPCBufferDescriptor, **options: Any) -> list[int]:
    """Import a buffer with a resource of this process, and return its first bytes."""
    with Buffer.from_ipc_descriptor(VirtualMemoryResource(use_device(), options), descriptor) as buffer:
        descriptor.close()  # the buffer needs it no more
        return first_bytes(buffer)


def import_read_only(descriptor: VirtualMemoryIPCBufferDescriptor) -> tuple[int, bool]:
    """Import a buffer that the device may only read; return its rights, and whether a value can be written."""
    resource = VirtualMemoryResource(use_device(), {"self_access": "r"})
    with Buffer.from_ipc_descriptor(resource, descriptor) as buffer, use_device().create_stream() as stream:
        rights = access(buffer.handle, lib.CU_MEM_LOCATION_TYPE_DEVICE, 0)
        try:
            buffer.write_value(1, stream=stream)
        except ValueError:
            return rights, False
        return rights, True


def import_twice(descriptor: VirtualMemoryIPCBufferDescriptor) -> list[list[int]]:
    """Import a buffer twice, and use one after the other is closed."""
    resource = VirtualMemoryResource(use_device())
    one, other = (Buffer.from_ipc_descriptor(resource, descriptor) for _ in range(2))
    assert one.handle != other.handle
    with use_device().create_stream() as stream:
        one.fill(4, stream=stream)
        stream.sync()
    seen = [first_bytes(other)]
    one.close()
    seen.append(first_bytes(other))
    other.close()
    return seen


def send_on(buffer: VirtualMemoryBuffer) -> str:
    """Return the message that refuses a descriptor of a buffer of another process."""
    with buffer:
        try:
            buffer.get_ipc_descriptor().close()
        except RuntimeError as error:
            return str(error)
    return ""


def send_on_larger(buffer: VirtualMemoryBuffer) -> str:
    """Return the same of a larger buffer over that memory."""
    resource: Any = buffer.memory_resource
    with buffer, resource.modify_allocation(buffer, 2 * buffer.size) as grown:
        return send_on(grown)


def grow(buffer: VirtualMemoryBuffer, size: int) -> int:
    """Fill a larger buffer over the memory of another process, and return its size."""
    resource: Any = buffer.memory_resource
    with buffer, resource.modify_allocation(buffer, size) as grown:
        assert grown.is_mapped
        with use_device().create_stream() as stream:
            grown.fill(9, stream=stream)
            stream.sync()
        return grown.size


def allocate_and_keep(value: int) -> VirtualMemoryIPCBufferDescriptor:
    """Allocate a buffer that lives as long as this process, and return its descriptor."""
    with use_device().create_stream() as stream:
        kept["buffer"] = buffer = VirtualMemoryResource(Device(0)).allocate(UNIT, stream)
        buffer.fill(value, stream=stream)
        stream.sync()
    buffer.set_deallocation_stream(Device(0).default_stream)
    return buffer.ipc_descriptor


def receive_by_socket(connection: socket.socket) -> list[int]:
    """Import a buffer whose file descriptors come through a socket."""
    with connection:
        message, fds, _, _ = socket.recv_fds(connection, 100, 8)
        sizes = [int(size) for size in message.split()]
        with VirtualMemoryIPCBufferDescriptor.from_fds(fds, sizes) as descriptor:
            for fd in fds:
                os.close(fd)  # the descriptor has its own
            return import_by_hand(descriptor)


def use_from_two_devices(buffer: VirtualMemoryBuffer) -> list[int]:
    """Write to memory of device 0 from device 1, and return the first bytes from before."""
    before = first_bytes(buffer)
    with buffer:
        other = Device(1)
        other.set_current()
        with other.create_stream() as stream, ObjectCode.from_ptx(PTX) as code:
            launch(stream, ONE, code.get_kernel("store"), buffer, 6)
            stream.sync()
        use_device()
    return before


def import_on_another_device(descriptor: VirtualMemoryIPCBufferDescriptor) -> None:
    """Import memory of device 0 with a resource of device 1."""
    Buffer.from_ipc_descriptor(VirtualMemoryResource(1), descriptor).close()
