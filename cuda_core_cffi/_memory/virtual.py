# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Virtual memory: buffers that can grow, because addresses and physical memory are had one by one."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from cuda_core_cffi._core import calls
from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.descriptors import send_with
from cuda_core_cffi._core.errors import check, failure
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.integers import address_of
from cuda_core_cffi._core.options import check_options
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi._memory.allocation import allocate_with, retry_allocation
from cuda_core_cffi._memory.buffer import Buffer
from cuda_core_cffi._memory.ipc import IPCAllocationHandle, VirtualMemoryIPCBufferDescriptor, reduce_virtual_descriptor
from cuda_core_cffi._memory.resource import MemoryResource, whole_size
from cuda_core_cffi._memory.virtual_options import Plan, VirtualMemoryResourceOptions
from cuda_core_cffi._streams.stream import accept_stream, stream_or_default
from cuda_core_cffi.typing import (
    DevicePointerType,
    IsStreamType,
    VirtualMemoryHandleType,
    VirtualMemoryLocationType,
)

if TYPE_CHECKING:
    from cuda_core_cffi._device.device import Device
    from cuda_core_cffi.typing._option_dicts import VirtualMemoryResourceOptionsDict


class VirtualMemoryResource(Uncopyable, MemoryResource):
    """Memory that is mapped at reserved addresses, so that buffers can grow without a copy.

    Allocation is synchronous: the memory may be used at once, in every stream.

    Parameters
    ----------
    device_id : Device or int
        The device that uses the memory and, unless the options say otherwise, has it.
    config : VirtualMemoryResourceOptions, optional
        What memory, for whom. Later changes to the object change nothing here.

    Raises
    ------
    TypeError, ValueError
        If there is no such device, or an option is not what it can be.
    NotImplementedError
        If the handle type is ``"win32"``.
    RuntimeError
        If the device does not support virtual memory, or not what the options ask for.

    Notes
    -----
    With ``handle_type="posix_fd"``, which is the default, buffers can be sent to other processes through
    :mod:`multiprocessing`. There they are mapped: the same memory, at another address. Sending a buffer orders nothing
    between the processes: let the work on it finish first, or share an event too. Either process may close its buffer
    first; the memory is freed with the last. Unpickling maps memory: unpickle only data from processes that you
    trust.
    """

    __slots__ = ("_device", "_plan")

    _IS_UNIFORM = True
    _NOT_COPIED_BECAUSE = (
        "its buffers grow through it alone; create another from the same options, or send it through multiprocessing"
    )

    def __init__(
        self, device_id: Any, config: VirtualMemoryResourceOptions | VirtualMemoryResourceOptionsDict | None = None
    ) -> None:
        self._device: int = registry.device(device_id).device_id
        self._plan = self._make_plan(config)
        is_host = self._plan.options.location_type != VirtualMemoryLocationType.DEVICE
        is_used = self._plan.options.self_access is not None
        self._device_id = -1 if is_host else self._device
        self._access = (is_used, is_used and is_host)
        if self.is_ipc_enabled:
            send_with(VirtualMemoryResource, reduce_resource)
            send_with(VirtualMemoryBuffer, reduce_buffer)
            # now, because a pickler that is at work does not learn of them when a descriptor is made
            send_with(VirtualMemoryIPCBufferDescriptor, reduce_virtual_descriptor)

    @property
    def config(self) -> VirtualMemoryResourceOptions:
        """The options that the resource was made with, and the defaults for the others."""
        return dataclasses.replace(self._plan.options)

    def __repr__(self) -> str:
        options = self._plan.options
        return (
            f"<VirtualMemoryResource device={self._device} location={options.location_type.value!r} "
            f"granularity={self._plan.granularity}>"
        )

    def allocate(self, size: int, stream: IsStreamType | None = None) -> VirtualMemoryBuffer:
        """Allocate a buffer at once.

        Parameters
        ----------
        size : int
            Size in bytes; the buffer's is the next multiple of the granularity, a few MiB. 0 gives a buffer without
            memory.
        stream : Stream, optional
            When the buffer is closed, its memory goes back after the work then in this stream is done. Without, all
            work of the device's context is waited for.

        Returns
        -------
        VirtualMemoryBuffer
            The memory; its content is undefined.

        Raises
        ------
        CUDAError
            If a driver call failed. Nothing is left of the allocation then.
        """
        queue = stream_or_default(stream, "allocate")
        plan = self._plan
        size = plan.round_up(whole_size(size))

        def allocate() -> VirtualMemoryBuffer | None:
            return calls.make(VirtualMemoryBuffer, lib.ccc_virtual_allocate, self._device, plan.cdata, size)

        buffer = allocate_with(allocate, size, self, queue)
        buffer._writable = plan.is_writable
        buffer._imported = False
        if stream is not None:
            buffer.set_deallocation_stream(queue)
        return buffer

    def deallocate(self, ptr: DevicePointerType, size: int, stream: IsStreamType | None = None) -> None:
        """Unmap memory and free its addresses; buffers do so by themselves.

        Parameters
        ----------
        ptr : int
            The address, of mappings that fill their reservations.
        size : int
            The size in bytes.
        stream : Stream, optional
            The work now in this stream is waited for. Default is all work of the device's context.

        Raises
        ------
        CUDAError
            If these are not whole reservations, or a driver call failed.
        """
        queue = None if stream is None else accept_stream(stream, "deallocate")
        address = 0 if ptr is None else address_of(ptr)
        size = self._plan.round_up(whole_size(size))
        check(lib.ccc_virtual_deallocate(self._device, address, size, ffi.NULL if queue is None else queue._c_handle))

    def modify_allocation(
        self,
        buf: Buffer,
        new_size: int,
        config: VirtualMemoryResourceOptions | VirtualMemoryResourceOptionsDict | None = None,
    ) -> VirtualMemoryBuffer:
        """Return a larger buffer over the same memory; nothing is copied.

        If the addresses behind the buffer are free, the new buffer begins at the same address. Otherwise the memory is
        mapped a second time, at new addresses. Both buffers are open and show the same memory. Close them in any
        order: each part of the memory is freed with the last buffer that has it.

        Parameters
        ----------
        buf : VirtualMemoryBuffer
            A buffer that this resource allocated. It is not changed.
        new_size : int
            The size of the new buffer in bytes, rounded up to the granularity.
        config : VirtualMemoryResourceOptions, optional
            The options of the memory that is added, and the access rights to it. The rights to the other memory stay.
            Default is the resource's.

        Returns
        -------
        VirtualMemoryBuffer
            The new buffer, whose memory is unmapped in the order of the same stream. `buf` itself, unchanged, if it has
            that size already.

        Raises
        ------
        TypeError, ValueError
            If `buf` is not a buffer of this resource, or the memory would be in different places.
        RuntimeError
            If the buffer is closed.
        CUDAError
            If a driver call failed. Nothing is left of the new buffer then.
        """
        if not isinstance(buf, Buffer):
            raise TypeError(f"buf must be a Buffer, not {type(buf).__name__}")
        if not isinstance(buf, VirtualMemoryBuffer) or buf.memory_resource is not self:
            raise ValueError(f"{buf!r} was not allocated by this resource: {self!r}")
        plan = self._plan if config is None else self._make_plan(config)
        if plan.options.location_type != self._plan.options.location_type:
            raise ValueError(
                f"the buffer is in memory of location {self._plan.options.location_type.value!r}; it cannot grow by "
                f"memory of location {plan.options.location_type.value!r}"
            )
        size = plan.round_up(whole_size(new_size))
        if buf.is_closed:
            raise buf._failure(lib.CCC_CLOSED)
        return buf if size <= buf._size else self._grow(buf, size, plan)

    def _grow(self, buffer: VirtualMemoryBuffer, size: int, plan: Plan) -> VirtualMemoryBuffer:
        def grow() -> VirtualMemoryBuffer | None:
            return calls.make(VirtualMemoryBuffer, lib.ccc_virtual_grow, buffer._c_handle, plan.cdata, size)

        grown = grow()
        if grown is None:
            grown = retry_allocation(grow, size, buffer, buffer._failure)
        grown._size = size
        grown._mr = self
        grown._writable = buffer._writable and plan.is_writable
        grown._imported = buffer._imported
        stream = getattr(buffer, "_keep", None)
        if stream is not None:
            grown._keep_stream(stream)
        return grown

    def _import_buffer(self, descriptor: Any, stream: IsStreamType | None) -> VirtualMemoryBuffer:
        """Return a buffer of another process; see :meth:`Buffer.from_ipc_descriptor`."""
        if not isinstance(descriptor, VirtualMemoryIPCBufferDescriptor):
            raise TypeError(
                "ipc_descriptor must be a VirtualMemoryIPCBufferDescriptor where mr is a VirtualMemoryResource, not "
                f"{type(descriptor).__name__}"
            )
        self._check_sharing()
        plan = self._plan
        for size in descriptor.sizes:
            if size % plan.granularity:
                raise ValueError(
                    f"the descriptor's sizes must be multiples of the granularity, {plan.granularity} bytes, not {size}"
                )
        queue = None if stream is None else accept_stream(stream, "Buffer.from_ipc_descriptor")
        fds, sizes, size, place = descriptor.fds, descriptor.sizes, descriptor.size, ffi.new("int *")
        buffer = calls.make(
            VirtualMemoryBuffer, lib.ccc_virtual_import, self._device, plan.cdata, fds, sizes, len(fds), size, place
        )
        if buffer is None:
            status = lib.ccc_last_status()
            if status == lib.CCC_ELSEWHERE:
                found = "on the host" if place[0] < 0 else f"on device {place[0]}"
                raise ValueError(
                    f"the memory is {found}, which is not where {self!r} has its memory: import it with a resource of "
                    "that place, whose options name the other devices that use it as peers"
                )
            raise failure(status)
        buffer._size = size
        buffer._mr = self
        buffer._writable = plan.is_writable
        buffer._imported = True
        if queue is not None:
            buffer.set_deallocation_stream(queue)
        return buffer

    def _check_sharing(self) -> None:
        if not self.is_ipc_enabled:
            raise RuntimeError(
                "this VirtualMemoryResource is not for other processes: create it with handle_type='posix_fd'"
            )

    def _make_plan(self, config: VirtualMemoryResourceOptions | VirtualMemoryResourceOptionsDict | None) -> Plan:
        return Plan(self._device, check_options(VirtualMemoryResourceOptions, config, "VirtualMemoryResource"))

    @property
    def device(self) -> Device:
        """The device that the memory is on, or, of host memory, that the resource was made for."""
        return registry.device(self._device)

    @property
    def is_ipc_enabled(self) -> bool:
        """Whether buffers can be shared with other processes: those of ``handle_type="posix_fd"``."""
        return self._plan.options.handle_type == VirtualMemoryHandleType.POSIX_FD


class VirtualMemoryBuffer(Buffer):
    """A piece of virtual memory, which :meth:`VirtualMemoryResource.modify_allocation` makes a larger buffer of.

    It comes from :meth:`VirtualMemoryResource.allocate`, :meth:`VirtualMemoryResource.modify_allocation` and
    :meth:`Buffer.from_ipc_descriptor`. Buffers that were made of each other share memory, which is freed with the last
    buffer that has it.
    """

    __slots__ = ("_imported", "_writable")

    _MADE_BY = "VirtualMemoryResource.allocate"
    _imported: bool  # some of the memory is of another process
    _writable: bool  # devices may write all of the memory

    def __reduce__(self) -> tuple[object, ...]:
        """Refuse: only :mod:`multiprocessing` sends file descriptors."""
        raise TypeError(
            f"VirtualMemoryBuffer cannot be pickled or copied: {self._NOT_COPIED_BECAUSE}; multiprocessing sends one "
            "of a resource with handle_type='posix_fd' to other processes"
        )

    def close(self, stream: IsStreamType | None = None) -> None:
        """Release the buffer's share of the memory, once the work is done that may use it. Closing twice is allowed.

        Parameters
        ----------
        stream : Stream, optional
            The stream whose work is waited for. Default is the one given at allocation or to
            :meth:`set_deallocation_stream`; without one, all work of the device's context.

        Raises
        ------
        RuntimeError
            If that stream is being captured: memory is unmapped at once, which cannot be captured. The buffer is open
            then; close it when the capture has ended, or with another stream. Memory whose stream is a default stream,
            or of a buffer without one, is unmapped when no capture is in the way.
        """
        queue = None if stream is None else accept_stream(stream, "Buffer.close")
        status = lib.ccc_virtual_check_close(self._c_handle, ffi.NULL if queue is None else queue._c_handle)
        if status == lib.CCC_CAPTURING:
            raise RuntimeError(
                "virtual memory is unmapped at once, which cannot be captured: close the buffer when the capture of "
                "its stream has ended, or pass close() a stream that is not being captured"
            )
        if status:
            raise self._failure(status, queue)
        Buffer.close(self, queue)

    def get_ipc_descriptor(self) -> VirtualMemoryIPCBufferDescriptor:  # type: ignore[override]
        """Return a new descriptor, by which another process imports the buffer with :meth:`from_ipc_descriptor`.

        Returns
        -------
        VirtualMemoryIPCBufferDescriptor
            The descriptor, which owns file descriptors: close it when the other process has imported the buffer.

        Raises
        ------
        RuntimeError
            If the buffer is closed, its resource has another ``handle_type`` than ``"posix_fd"``, or some of its memory
            was imported from another process: drivers do not export that.
        ValueError
            If it has no memory.
        CUDAError
            If the driver does not export it.
        """
        resource = self._mr
        if not isinstance(resource, VirtualMemoryResource):  # such as a tracking resource
            raise RuntimeError(
                "this VirtualMemoryBuffer is not for other processes: allocate it from a VirtualMemoryResource, not "
                f"from a {type(resource).__name__}"
            )
        resource._check_sharing()
        if self.is_closed:
            raise self._failure(lib.CCC_CLOSED)
        if self._size == 0:
            raise ValueError("a buffer of 0 bytes has no memory to share")
        if self._imported:
            raise RuntimeError(
                "memory of another process can be shared only there: get the descriptor from the buffer in that process"
            )
        handles = [IPCAllocationHandle._empty() for _ in range(lib.ccc_virtual_count(self._c_handle))]
        sizes = ffi.new("size_t[]", len(handles))
        status = lib.ccc_virtual_export(self._c_handle, [handle._descriptor for handle in handles], sizes)
        if status:
            raise self._failure(status)
        return VirtualMemoryIPCBufferDescriptor._create(handles, list(sizes), self._size)

    @property
    def ipc_descriptor(self) -> VirtualMemoryIPCBufferDescriptor:  # type: ignore[override]
        """A new descriptor, as :meth:`get_ipc_descriptor` returns it."""
        return self.get_ipc_descriptor()

    @property
    def is_mapped(self) -> bool:
        """Whether memory of the buffer was imported from another process."""
        return self._imported

    @property
    def _is_read_only(self) -> bool:
        """Whether there is memory that devices may only read."""
        return not self._writable


def reduce_resource(resource: VirtualMemoryResource) -> tuple[object, ...]:
    """Return what another process makes an equal resource of."""
    if not resource.is_ipc_enabled:
        resource._refuse_copy()
    return VirtualMemoryResource, (resource._device, resource.config)


def reduce_buffer(buffer: VirtualMemoryBuffer) -> tuple[object, ...]:
    """Return what another process imports a buffer of."""
    return receive_buffer, (buffer.memory_resource, buffer.get_ipc_descriptor())


def receive_buffer(resource: VirtualMemoryResource, descriptor: VirtualMemoryIPCBufferDescriptor) -> Buffer:
    """Import the buffer that another process has sent."""
    with descriptor:
        return Buffer.from_ipc_descriptor(resource, descriptor)
