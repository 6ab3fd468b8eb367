# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Virtual memory: buffers that can grow, because addresses and physical memory are had one by one."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any, ClassVar

from cuda_core_cffi._core import calls
from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.errors import check
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.integers import address_of
from cuda_core_cffi._core.locks import new_lock
from cuda_core_cffi._core.options import check_options
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi._memory.allocation import allocate_with, retry_allocation
from cuda_core_cffi._memory.buffer import Buffer
from cuda_core_cffi._memory.resource import MemoryResource, whole_size
from cuda_core_cffi._memory.virtual_options import Plan, VirtualMemoryResourceOptions
from cuda_core_cffi._streams.stream import accept_stream, stream_or_default
from cuda_core_cffi.typing import (
    DevicePointerType,
    IsStreamType,
    VirtualMemoryAccessType,
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
    """

    __slots__ = ("_device", "_plan")

    _IS_UNIFORM = True
    _NOT_COPIED_BECAUSE = "its buffers grow through it alone; create another from the same options"

    def __init__(
        self, device_id: Any, config: VirtualMemoryResourceOptions | VirtualMemoryResourceOptionsDict | None = None
    ) -> None:
        self._device: int = registry.device(device_id).device_id
        self._plan = self._make_plan(config)
        is_host = self._plan.options.location_type != VirtualMemoryLocationType.DEVICE
        is_used = self._plan.options.self_access is not None
        self._device_id = -1 if is_host else self._device
        self._access = (is_used, is_used and is_host)

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

    def allocate(self, size: int, stream: IsStreamType | None = None) -> Buffer:
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
        Buffer
            The memory; its content is undefined.

        Raises
        ------
        CUDAError
            If a driver call failed. Nothing is left of the allocation then.
        """
        queue = stream_or_default(stream, "allocate")
        plan = self._plan
        size = plan.round_up(whole_size(size))

        def allocate() -> VirtualBuffer | None:
            return calls.make(VirtualBuffer, lib.ccc_virtual_allocate, self._device, plan.cdata, size)

        buffer = allocate_with(allocate, size, self, queue)
        buffer._plan = plan
        buffer._lock = new_lock()
        buffer._left = []
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
    ) -> Buffer:
        """Grow a buffer; its content stays, and nothing is copied.

        Where the addresses behind the buffer are free, it keeps its own. Otherwise its memory is mapped at new
        addresses: the old ones end when the work that is waited for as in closing is done, or later if something that
        the buffer was exported to still needs them.

        Parameters
        ----------
        buf : Buffer
            A buffer that this resource allocated. Its size, and perhaps its address, change; so do its hash and what
            it is equal to.
        new_size : int
            The size to have, in bytes, rounded up to the granularity. A size that the buffer has already only sets its
            access rights anew; no memory is given back.
        config : VirtualMemoryResourceOptions, optional
            What the new memory is like, and the access rights to the whole buffer. Default is the resource's.

        Returns
        -------
        Buffer
            The same object.

        Raises
        ------
        TypeError, ValueError
            If this is no buffer of this resource, or the memory would be in different places.
        RuntimeError
            If the buffer is closed.
        CUDAError
            If a driver call failed. The buffer is then what it was.
        """
        if not isinstance(buf, Buffer):
            raise TypeError(f"buf must be a Buffer, not {type(buf).__name__}")
        if not isinstance(buf, VirtualBuffer) or buf.memory_resource is not self:
            raise ValueError(f"{buf!r} was not allocated by this resource: {self!r}")
        plan = self._plan if config is None else self._make_plan(config)
        if plan.options.location_type != self._plan.options.location_type:
            raise ValueError(
                f"the buffer is in memory of location {self._plan.options.location_type.value!r}; it cannot grow by "
                f"memory of location {plan.options.location_type.value!r}"
            )
        buf._grow_to(plan.round_up(whole_size(new_size)), plan)
        return buf

    def _make_plan(self, config: VirtualMemoryResourceOptions | VirtualMemoryResourceOptionsDict | None) -> Plan:
        return Plan(self._device, check_options(VirtualMemoryResourceOptions, config, "VirtualMemoryResource"))

    @property
    def device(self) -> Device:
        """The device that the memory is on, or, of host memory, that the resource was made for."""
        return registry.device(self._device)


class VirtualBuffer(Buffer):
    """A buffer whose memory is mapped, and may get more."""

    __slots__ = ("_left", "_lock", "_plan")

    _NAME: ClassVar[str] = "Buffer"
    _plan: Plan  # the rights that are set are those of this
    _lock: Any  # reentrant
    # The C handles of addresses that the buffer has left: another thread may still hold one that it read before.
    _left: list[Buffer]

    def close(self, stream: IsStreamType | None = None) -> None:
        """Give the memory back, once the work is done that may use it. Closing twice is allowed.

        Parameters
        ----------
        stream : Stream, optional
            The stream whose work is waited for. Default is the one given at allocation or to
            :meth:`set_deallocation_stream`; without one, all work of the device's context.
        """
        with self._lock:
            super().close(stream)

    @property
    def _is_read_only(self) -> bool:
        options = self._plan.options
        rights = (options.self_access, options.peer_access if options.peers else None)
        return VirtualMemoryAccessType.READ_WRITE not in rights

    def _grow_to(self, size: int, plan: Plan) -> None:
        """Get more memory, or else only other rights."""
        with self._lock:
            frame = sys._getframe().f_back
            while frame is not None:  # a flag would stay set where an exception interrupts this call
                if frame.f_code is VirtualBuffer._grow_now.__code__ and frame.f_locals.get("self") is self:
                    raise RuntimeError(
                        "this Buffer is being modified by the call that the signal handler or finalizer has "
                        "interrupted: modify it when that call has returned"
                    )
                frame = frame.f_back
            self._size = lib.ccc_handle_bytes(self._c_handle)  # after an interrupted call
            self._grow_now(size, plan.after(self._plan))

    def _grow_now(self, size: int, plan: Plan) -> None:
        before = self._plan
        if size <= self._size:
            status = lib.ccc_virtual_set_rights(self._c_handle, plan.cdata, before.cdata)
            if status:
                raise self._failure(status)
            self._plan = plan
            return

        extended = ffi.new("int *")

        def grow() -> Buffer | None:
            if lib.ccc_virtual_grow(self._c_handle, plan.cdata, before.cdata, size, extended):
                return None
            return self if extended[0] else calls.make(Buffer, lib.ccc_virtual_move, self._c_handle, plan.cdata, size)

        moved = grow()
        if moved is None:
            moved = retry_allocation(grow, size, self, self._failure)
        self._plan = plan
        if moved is self:
            self._size = size
            return
        self._left.append(moved)
        calls.exchange(self, moved)
        self._size = size
        if moved.is_closed:  # a signal handler or a finalizer has closed this buffer before it had the new memory
            self.close()
        else:
            moved.close()
