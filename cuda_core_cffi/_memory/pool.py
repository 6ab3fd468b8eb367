# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Memory pools: allocation in stream order. What they have in common, and those of a device."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from cuda_core_cffi._core import calls
from cuda_core_cffi._core.answers import attribute, shown
from cuda_core_cffi._core.calls import native
from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.errors import check, failure
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import Handle, InUse, refuse_again
from cuda_core_cffi._core.integers import address_of, integer
from cuda_core_cffi._core.options import check_options
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi._memory.allocation import complete_buffer, retry_allocation
from cuda_core_cffi._memory.buffer import Buffer
from cuda_core_cffi._memory.ipc import IPCAllocationHandle, IPCPool, Share
from cuda_core_cffi._memory.peer_access import PeerAccessibleBySetProxy
from cuda_core_cffi._memory.resource import LARGEST_SIZE, MemoryResource, whole_number, whole_size
from cuda_core_cffi._streams.stream import Stream, stream_or_default
from cuda_core_cffi.typing import DevicePointerType, IsStreamType

if TYPE_CHECKING:
    from uuid import UUID

    from cuda_core_cffi._core.ffi import CData
    from cuda_core_cffi._memory.pool_options import DeviceMemoryResourceOptions
    from cuda_core_cffi.typing._option_dicts import DeviceMemoryResourceOptionsDict

KEEP_ALL = LARGEST_SIZE
SHARED = lib.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

BufferType = TypeVar("BufferType", bound=Buffer)

_allocate = lib.ccc_pool_allocate


class PoolView(Handle):
    """A use of a driver's pool."""

    _CTYPE = "CUmemoryPool"


class MemPoolAttributes(Uncopyable):
    """What the driver tells about a pool. Each read asks the driver; byte counts are integers.

    It keeps the driver's pool, and so can be read after the resource was closed.
    """

    __slots__ = ("_pool",)

    _NOT_COPIED_BECAUSE = "it shows a pool of this process"
    _PREFIX = "CU_MEMPOOL_ATTR_"
    _pool: PoolView

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise RuntimeError(f"{type(self).__name__} cannot be constructed directly; use the pool's attributes")

    def __repr__(self) -> str:
        return shown(self)

    @classmethod
    def _create(cls, pool: MemPool[Any]) -> MemPoolAttributes:
        if pool.is_closed:
            raise pool._failure(lib.CCC_CLOSED)
        self = cls.__new__(cls)
        self._pool = PoolView._made_by(lib.ccc_view, pool._c_handle)
        return self

    def _read(self, number: int) -> int:
        value = ffi.new("cuuint64_t *")  # of which the driver writes the lower half where the attribute is an int
        status = lib.ccc_pool_get(self._pool._c_handle, number, value)
        if status:
            raise self._pool._failure(status)
        return int(value[0])

    reuse_follow_event_dependencies = attribute(
        bool, "Whether memory freed in one stream is reused in another that waits for it by an event."
    )
    reuse_allow_opportunistic = attribute(bool, "Whether memory is reused when its free happens to be done.")
    reuse_allow_internal_dependencies = attribute(
        bool, "Whether the driver may make a stream wait in order to reuse memory."
    )
    release_threshold = attribute(int, "How many bytes the pool keeps before it gives memory back to the system.")
    reserved_mem_current = attribute(int, "Bytes that the pool holds now.")
    reserved_mem_high = attribute(int, "The most bytes that the pool has held.")
    used_mem_current = attribute(int, "Bytes allocated from the pool now.")
    used_mem_high = attribute(int, "The most bytes that were allocated from the pool.")


def allocate_again(status: int, pool: MemPool[BufferType], size: Any, stream: Any) -> BufferType:
    """Allocate from a pool that has failed to, after a garbage collection, or raise the exception."""
    return pool._allocate_carefully(size, stream, failed=True)


class MemPool(Uncopyable, MemoryResource, calls.Owner, Generic[BufferType]):
    """What the pools have in common: a driver pool, allocation from it in stream order."""

    __slots__ = ("_owned", "_share")

    _CTYPE = "CUmemoryPool"
    _NOT_COPIED_BECAUSE = "it is a pool of this process"
    _IS_UNIFORM = True
    _is_pool = True
    _BUFFER: type[BufferType]  # the class that a subclass allocates; C reads it, too
    _owned: bool
    _share: Share | None

    @native(allocate_again)
    def allocate(self, size: int, stream: IsStreamType | None = None) -> BufferType:
        """Allocate a buffer in stream order.

        Parameters
        ----------
        size : int
            Size in bytes. 0 gives a buffer without memory.
        stream : Stream, optional
            The memory may be used by work that follows in this stream, and goes back in its order. Default is the
            default stream, in the current context or else the primary one of the pool's device, if it has one.

        Returns
        -------
        Buffer
            The memory; its content is undefined.

        Raises
        ------
        CUDAError
            If the driver has no such memory left, even after a garbage collection.
        RuntimeError
            If the resource or the stream is closed.
        TypeError
            If the pool is another process's.
        """
        if not isinstance(stream, Stream) or type(size) is not int or not 0 <= size <= LARGEST_SIZE:
            return self._allocate_carefully(size, stream)
        buffer = calls.make(self._BUFFER, _allocate, self._c_handle, stream._c_handle, size)
        if buffer is None:
            return self._allocate_carefully(size, stream, failed=True)
        return complete_buffer(buffer, size, self, stream)

    def deallocate(self, ptr: DevicePointerType, size: int, stream: IsStreamType | None = None) -> None:
        """Give memory of this pool back, by address; buffers do so by themselves.

        Parameters
        ----------
        ptr : int
            The address.
        size : int
            The size in bytes.
        stream : Stream, optional
            The memory goes back when the work now in this stream is done. Default is the default stream.
        """
        queue = stream_or_default(stream, "deallocate")
        address = 0 if ptr is None else address_of(ptr)
        check(lib.ccc_pool_deallocate(self._c_handle, address, queue._c_handle))

    def trim(self, min_bytes_to_keep: int = 0) -> None:
        """Return memory that the pool keeps for later allocations to the system.

        Memory of open buffers stays, and so does memory that was freed in the order of a stream which has not reached
        that point: synchronise the stream first.

        Parameters
        ----------
        min_bytes_to_keep : int
            Bytes that the pool keeps at least, in use or not. Default is 0.

        Raises
        ------
        CUDAError
            If the driver refuses, as for a pool of another process.
        RuntimeError
            If the pool is closed.
        TypeError, ValueError
            If ``min_bytes_to_keep`` is no size.

        Notes
        -----
        This is ``cuMemPoolTrimTo``.
        """
        number = integer(min_bytes_to_keep, "min_bytes_to_keep")
        size = whole_number(number, "min_bytes_to_keep", LARGEST_SIZE, "2**64 - 1 bytes")
        if self.is_closed:
            raise self._failure(lib.CCC_CLOSED)
        pool = PoolView._made_by(lib.ccc_view, self._c_handle)
        with InUse(pool):
            check(lib.cuMemPoolTrimTo(self.cdata, size), "cuMemPoolTrimTo")

    def close(self) -> None:
        """Allocate no more from this pool; buffers that it gave stay valid. Closing twice is allowed."""
        try:
            if self._owned:
                calls.close(self)
        finally:
            if self._share is not None:  # last: a handle that is made meanwhile finds the pool closed
                self._share.close()

    def _allocate_carefully(self, size: Any, stream: Any, failed: bool = False) -> BufferType:
        """Allocate with arguments that are not of the usual types, or again after a failure."""
        queue = stream if isinstance(stream, Stream) else stream_or_default(stream, "allocate")
        size = whole_size(size)

        def allocate() -> BufferType | None:
            return calls.make(self._BUFFER, _allocate, self._c_handle, queue._c_handle, size)

        buffer = None if failed else allocate()
        if buffer is None:
            if self.is_closed:
                raise self._failure(lib.CCC_CLOSED)
            if self.is_mapped:
                raise TypeError("only the process that created a pool allocates from it: this one is mapped")
            buffer = retry_allocation(allocate, size, self, queue._failure)
        return complete_buffer(buffer, size, self, queue)

    def _failure(self, status: int) -> Exception:
        if status == lib.CCC_CLOSED and self.is_closed:
            return RuntimeError(f"this {type(self).__name__} is closed")
        return failure(status)

    def _create_or_borrow(
        self,
        helper: Callable[..., Any],
        *arguments: Any,
        owned: bool = True,
        hint: str = "",
        share: Share | None = None,
    ) -> None:
        """Get the pool that a helper makes or finds, or raise the helper's failure, with a hint of what to do."""
        if not calls.make_in(self, helper, *arguments):
            raise failure(lib.ccc_last_status(), detail=hint)
        self._owned = owned
        self._share = share
        if not self.is_mapped:  # which holds no memory of its own
            self._keep_freed_memory()

    def _keep_freed_memory(self) -> None:
        """Raise the release threshold, whose default of 0 returns all memory to the system at each synchronisation."""
        value = ffi.new("cuuint64_t *")
        check(lib.ccc_pool_get(self._c_handle, lib.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, value))
        if value[0] == 0:
            value[0] = KEEP_ALL
            check(lib.ccc_pool_set(self._c_handle, lib.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, value))

    @property
    def attributes(self) -> MemPoolAttributes:
        """What the driver tells about the pool."""
        return MemPoolAttributes._create(self)

    @property
    def cdata(self) -> CData:
        """The driver's pool as a typed CFFI object."""
        cdata: CData = ffi.cast("CUmemoryPool", self._driver_handle)
        return cdata

    @property
    def is_handle_owned(self) -> bool:
        """Whether the pool was created here, rather than borrowed from the driver, and is not closed."""
        return self._owned and not self.is_closed

    @property
    def is_ipc_enabled(self) -> bool:
        """Whether other processes can use the pool's buffers."""
        return self._share is not None

    @property
    def is_mapped(self) -> bool:
        """Whether the pool is another process's: buffers are imported from it, not allocated."""
        return self._share is not None and self._share.is_mapped

    @property
    def uuid(self) -> UUID | None:
        """What identifies the pool in every process that uses it; None for a pool of this process alone."""
        return self._share.uuid if self._share is not None else None


class DeviceMemoryResource(IPCPool, MemPool[Buffer]):
    """A pool of device memory.

    Parameters
    ----------
    device_id : Device or int
        The device.
    options : DeviceMemoryResourceOptions, optional
        With options, a new pool is created. Without, the device's current pool is used, which other libraries may
        share.

    Raises
    ------
    ValueError
        If there is no such device, or an option is out of range.
    CUDAError
        If the device has no memory pools, or the driver refuses the options.

    Notes
    -----
    A pool that is created with ``ipc_enabled`` can be sent to another process through :mod:`multiprocessing`, and so
    can its buffers. There they are mapped: the same memory, at another address. Sending a buffer orders nothing between
    the processes: let the work on it finish first, or share an event too. The other process closes its buffer before
    this one does. What is unpickled makes the driver map memory: accept it only from processes that you trust.

    Examples
    --------
    >>> pool = DeviceMemoryResource(device, {"max_size": 32 << 20})
    >>> buffer = pool.allocate(1024, stream)
    >>> pool.attributes.used_mem_current >= 1024  # bytes
    True
    >>> buffer.close()
    >>> pool.close()
    """

    __slots__ = ("_device_id",)

    _access = (True, False)
    _BUFFER = Buffer

    def __init__(
        self, device_id: Any, options: DeviceMemoryResourceOptions | DeviceMemoryResourceOptionsDict | None = None
    ) -> None:
        refuse_again(self)
        ordinal: int = registry.device(device_id).device_id
        share = None
        place = (lib.CU_MEM_ALLOCATION_TYPE_PINNED, lib.CU_MEM_LOCATION_TYPE_DEVICE, ordinal)
        if options is None:
            self._create_or_borrow(lib.ccc_pool_current, *place, owned=False)
        else:
            from cuda_core_cffi._memory.pool_options import DeviceMemoryResourceOptions  # few pools have any

            options = check_options(DeviceMemoryResourceOptions, options, "DeviceMemoryResource")
            share = Share(is_mapped=False) if options.ipc_enabled else None
            properties = pool_properties(*place, check_max_size(options.max_size), share is not None)
            self._create_or_borrow(lib.ccc_pool_create, properties, share=share)
        self._device_id = ordinal
        if share is not None:
            self._announce()

    @classmethod
    def from_allocation_handle(cls, device_id: Any, alloc_handle: int | IPCAllocationHandle) -> Self:
        """Return the pool of another process, mapped into this one.

        Parameters
        ----------
        device_id : Device or int
            The device whose memory it is.
        alloc_handle : IPCAllocationHandle or int
            The other pool's ``allocation_handle``, as received here; or a file descriptor, which stays the caller's.

        Returns
        -------
        DeviceMemoryResource
            The mapped pool. If the handle's pool is known here already, that one.

        Raises
        ------
        ValueError
            If there is no such device or descriptor.
        CUDAError
            If the descriptor is not a pool's.
        """
        ordinal: int = registry.device(device_id).device_id
        known = cls._find(alloc_handle)
        if known is not None:
            return known
        self = cls.__new__(cls)
        self._map(alloc_handle, ordinal)
        self._device_id = ordinal
        return self._announce()

    def _sent_as(self) -> tuple[object, ...]:
        return self._device_id, self.allocation_handle

    def __repr__(self) -> str:
        return f"<DeviceMemoryResource device={self._device_id} handle={self._driver_handle:#x}>"

    @property
    def peer_accessible_by(self) -> PeerAccessibleBySetProxy:
        """The other devices that may use the memory of this pool, as a live set.

        Changing the set, or assigning devices to it, changes the access to all memory of the pool, also what is
        allocated already.
        """
        return PeerAccessibleBySetProxy(self)

    @peer_accessible_by.setter
    def peer_accessible_by(self, devices: Iterable[Any]) -> None:
        self.peer_accessible_by._replace(devices)


def check_max_size(size: Any) -> int:
    """Return the option ``max_size`` of a pool, or raise."""
    return whole_number(size, "max_size", LARGEST_SIZE, "2**64 - 1 bytes")


def pool_properties(allocation: int, location: int, number: int, max_size: int = 0, shared: bool = False) -> Any:
    """Return the properties of a new pool: the type of its memory, its place, its size, and whether it is shared."""
    properties = ffi.new("CUmemPoolProps *")
    properties.allocType = allocation
    properties.handleTypes = SHARED if shared else lib.CU_MEM_HANDLE_TYPE_NONE
    properties.location.type = location
    properties.location.id = number
    properties.maxSize = max_size
    return properties
