# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Pools and buffers that processes share.

Virtual memory is sent as file descriptors, one for each physical allocation of a buffer.

A pool crosses as a file descriptor, once; each of its buffers then as a few bytes. In the other process the pool is a
mapped one, which cannot allocate, but which buffers are imported from. A UUID says which mapped pool belongs to which
original, so that a buffer can be sent with just a reference to its pool.

Importing the same memory more than once in one process is allowed, although drivers do not count it: of device memory
they give the same address, which is gone after the first free, and host memory they refuse to import again. The buffers
therefore share one import (``include/memory/ccc_ipc.h``).
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Self

from cuda_core_cffi._core.copying import NoConstructor
from cuda_core_cffi._core.descriptors import Descriptor, seal, send_with
from cuda_core_cffi._core.errors import failure
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.locks import new_lock
from cuda_core_cffi._memory.resource import LARGEST_SIZE, whole_size

if TYPE_CHECKING:  # uuid brings more modules than all of a pool
    from uuid import UUID

NO_DESCRIPTOR = -1
HANDLE = "handle"  # the key of the one handle of a share


class IPCAllocationHandle(NoConstructor):
    """Own a file descriptor by which other processes map a pool, or a physical allocation of virtual memory.

    It can be sent through :mod:`multiprocessing`, which duplicates the descriptor for the other process.
    """

    __slots__ = ("_descriptor", "_uuid")

    _MADE_BY: ClassVar[str] = "a pool's allocation_handle"
    _NOT_COPIED_BECAUSE: ClassVar[str] = "it owns a file descriptor, and is sent through multiprocessing only"
    _descriptor: Any  # an int * whose content is closed with it; -1 once closed
    _uuid: UUID | None

    def __int__(self) -> int:
        number = self.handle
        if number == NO_DESCRIPTOR:
            raise RuntimeError(f"this {type(self).__name__} is closed")
        return number

    @classmethod
    def _create(cls, handle: int, uuid: UUID | None) -> Self:
        """Return a handle that owns a file descriptor."""
        check_descriptor(handle)
        self = cls._empty(uuid)
        self._descriptor[0] = handle
        return self

    @classmethod
    def _empty(cls, uuid: UUID | None = None) -> Self:
        """Return a handle for a file descriptor that C stores in it."""
        self = cls.__new__(cls)
        self._descriptor = ffi.gc(ffi.new("int *", NO_DESCRIPTOR), lib.ccc_descriptor_close)
        self._uuid = uuid
        send_with(cls, reduce_allocation_handle)
        return self

    def close(self) -> None:
        """Close the file descriptor. Closing twice is allowed."""
        lib.ccc_descriptor_close(self._descriptor)

    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self.handle == NO_DESCRIPTOR

    @property
    def handle(self) -> int:
        """The file descriptor; -1 once closed."""
        number: int = self._descriptor[0]
        return number

    @property
    def uuid(self) -> UUID | None:
        """What identifies the pool in every process; None if the pool is not known by one, and of virtual memory."""
        return self._uuid


class IPCBufferDescriptor(Descriptor):
    """Names a buffer to another process. Descriptors can be pickled.

    Notes
    -----
    Whoever sends a descriptor decides what is in it. A damaged one is refused, one of another pool, and one that
    claims more than the memory that it names; what was forged with care the driver trusts.
    """

    __slots__ = ("_pool", "_size")

    _MADE_BY: ClassVar[str] = "Buffer.ipc_descriptor"
    _pool: UUID | None
    _size: int

    def __reduce__(self) -> tuple[object, ...]:
        return IPCBufferDescriptor._create, (seal(self._payload), self._size, self._pool)

    @classmethod
    def _create(cls, sealed: bytes, size: int, pool: UUID | None = None) -> IPCBufferDescriptor:
        self = cls._from_payload(sealed)
        if type(size) is not int:
            raise TypeError(f"size must be an int, not {type(size).__name__}")
        if pool is not None and not is_uuid(pool):
            raise TypeError(f"pool must be a UUID, not {type(pool).__name__}")
        self._size = whole_size(size)
        self._pool = pool
        return self

    def _check_pool(self, uuid: UUID | None) -> None:
        """Raise ValueError if the pool is known to be another: drivers may not notice."""
        if None not in (self._pool, uuid) and self._pool != uuid:
            raise ValueError(f"the descriptor names memory of the pool {self._pool}, not of {uuid}")

    @property
    def size(self) -> int:
        """The size of the buffer in bytes."""
        return self._size


class VirtualMemoryIPCBufferDescriptor(NoConstructor):
    """Describe a buffer of virtual memory to another process.

    A descriptor owns a file descriptor for each physical allocation of the buffer, and closes them when it is closed or
    collected. Until then the memory is not freed. Each export makes a new one.

    It can be sent through :mod:`multiprocessing`, which duplicates the file descriptors for the other process. To send
    them in another way, for example with :func:`socket.send_fds`, send :attr:`fds`, :attr:`sizes` and :attr:`size`, and
    call :meth:`from_fds` in the other process.

    Notes
    -----
    A descriptor may name any memory of the process that sends it. Accept it only from processes that you trust.
    """

    __slots__ = ("_handles", "_size", "_sizes")

    _MADE_BY: ClassVar[str] = "VirtualMemoryBuffer.ipc_descriptor or from_fds"
    _NOT_COPIED_BECAUSE: ClassVar[str] = "it owns file descriptors, and is sent through multiprocessing only"
    _handles: tuple[IPCAllocationHandle, ...]
    _sizes: tuple[int, ...]
    _size: int

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @classmethod
    def _create(cls, handles: Iterable[IPCAllocationHandle], sizes: Iterable[int], size: int | None) -> Self:
        """Return a descriptor that owns these handles, after checking what may come from another process."""
        self = cls.__new__(cls)
        self._handles = tuple(handles)
        self._sizes = tuple(whole_size(part) for part in sizes)
        self._size = whole_size(sum(self._sizes) if size is None else size)
        if not self._handles:
            raise ValueError("a descriptor needs at least one file descriptor")
        if len(self._handles) != len(self._sizes):
            raise ValueError(
                f"each file descriptor needs a size: there are {len(self._handles)} file descriptors and "
                f"{len(self._sizes)} sizes"
            )
        if 0 in self._sizes or not 0 < self._size <= sum(self._sizes) <= LARGEST_SIZE:
            raise ValueError(
                f"the sizes must be positive, and size 1 to their sum, not {self._sizes} bytes and {self._size}"
            )
        send_with(cls, reduce_virtual_descriptor)
        return self

    @classmethod
    def from_fds(cls, fds: Iterable[int], sizes: Iterable[int], *, size: int | None = None) -> Self:
        """Return a descriptor for file descriptors that were received by other means than multiprocessing.

        Parameters
        ----------
        fds : iterable of int
            The file descriptors, in the order of :attr:`fds` of the original. They are duplicated, and stay the
            caller's.
        sizes : iterable of int
            The size in bytes of the allocation of each.
        size : int, optional
            The size of the buffer in bytes. Default is the sum of the sizes.

        Returns
        -------
        VirtualMemoryIPCBufferDescriptor
            The descriptor, for :meth:`Buffer.from_ipc_descriptor`.

        Raises
        ------
        TypeError, ValueError
            If a number is not an open file descriptor, or there is not one size for each.
        """
        return cls._create([own_handle(check_descriptor(number)) for number in fds], sizes, size)

    def close(self) -> None:
        """Close the file descriptors. Closing twice is allowed."""
        for handle in self._handles:
            handle.close()

    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return any(handle.is_closed for handle in self._handles)

    @property
    def handle_type(self) -> str:
        """How the memory is shared: ``"posix_fd"``."""
        return "posix_fd"

    @property
    def handles(self) -> tuple[IPCAllocationHandle, ...]:
        """The owners of the file descriptors, in the order of addresses."""
        return self._handles

    @property
    def fds(self) -> tuple[int, ...]:
        """The file descriptors, in the order of addresses. They stay the descriptor's.

        Raises
        ------
        RuntimeError
            If the descriptor is closed.
        """
        return tuple(map(int, self._handles))

    @property
    def sizes(self) -> tuple[int, ...]:
        """The size in bytes of each physical allocation."""
        return self._sizes

    @property
    def size(self) -> int:
        """The size of the buffer in bytes."""
        return self._size


class Share:
    """What a pool has that processes share.

    A mapped pool, which is another process's, keeps the handle that it came by, for passing the pool on. A pool's own
    handle is made when it is first asked for.
    """

    __slots__ = ("_handles", "is_mapped", "uuid")

    _handles: dict[str, IPCAllocationHandle]  # at most one, once published

    def __init__(self, is_mapped: bool, handle: IPCAllocationHandle | None = None) -> None:
        from uuid import uuid4

        self.is_mapped = is_mapped
        self.uuid = handle.uuid if handle is not None else uuid4()
        self._handles = {} if handle is None else {HANDLE: handle}

    def handle_of(self, c_handle: Any) -> IPCAllocationHandle:
        """Return the handle of the pool with this C handle."""
        known = self._handles.get(HANDLE)
        if known is not None:
            return known
        made = IPCAllocationHandle._empty(self.uuid)
        status = lib.ccc_pool_export(c_handle, made._descriptor)
        if status:
            raise failure(status)
        handle = self._handles.setdefault(HANDLE, made)
        if handle is not made:  # another thread was first
            made.close()
        elif not lib.ccc_is_open(c_handle):  # and another one has closed the pool meanwhile
            self.close()
        return handle

    def identify(self, key: UUID) -> None:
        """Take the UUID of the original."""
        if self.uuid is not None and self.uuid != key:
            raise ValueError(f"this pool is {self.uuid}, not {key}")
        self.uuid = key
        for handle in self._handles.values():
            handle._uuid = key

    def close(self) -> None:
        """Close the handle, if there is one."""
        handle = self._handles.get(HANDLE)
        if handle is not None:
            handle.close()


class IPCPool:
    """What the kinds of pools have in common that can be shared; their class is a MemPool besides."""

    __slots__ = ()

    _c_handle: Any
    _create_or_borrow: Callable[..., None]
    _owned: bool
    _share: Share | None

    def __reduce__(self) -> tuple[object, ...]:
        """Refer to the pool by its UUID: where this is unpickled, it must be registered."""
        share = self._share
        if share is None:
            raise TypeError(
                f"{type(self).__name__} cannot be pickled or copied: only with ipc_enabled=True can others use it"
            )
        if share.uuid is None:
            raise RuntimeError("this mapped pool has no UUID yet: call register(uuid) with that of the original")
        return type(self).from_registry, (share.uuid,)

    @classmethod
    def from_registry(cls, uuid: UUID) -> Self:
        """Return the pool that is registered here under a UUID.

        Parameters
        ----------
        uuid : UUID
            The ``uuid`` of the original pool, in whichever process that is.

        Returns
        -------
        IPCPool
            The pool: the original one, or one that is mapped.

        Raises
        ------
        RuntimeError
            If there is none.
        """
        with pools_lock:
            pool = pools.get(check_uuid(uuid))
        if pool is None:
            raise RuntimeError(
                f"no pool is registered as {uuid}: receive the pool itself, or its allocation handle, first"
            )
        if not isinstance(pool, cls):
            raise TypeError(f"the pool {uuid} is a {type(pool).__name__}, not a {cls.__name__}")
        return pool

    def _map(self, alloc_handle: int | IPCAllocationHandle, device: int) -> None:
        """Get the pool of another process that a handle stands for."""
        own = own_handle(alloc_handle)
        try:
            self._create_or_borrow(lib.ccc_pool_import, int(own), device, share=Share(True, own))
        except BaseException:
            own.close()
            raise

    def register(self, uuid: UUID) -> Self:
        """Let buffers find this pool by the UUID of the original.

        Parameters
        ----------
        uuid : UUID
            The ``uuid`` of the original pool.

        Returns
        -------
        IPCPool
            This pool, or the one that was registered before.

        Raises
        ------
        RuntimeError
            If the pool is not for other processes.
        ValueError
            If it is known by another UUID.
        """
        share = self._shared()
        check_uuid(uuid)
        with pools_lock:
            known = pools.get(uuid)
            if known is not None and not known.is_closed:
                if not isinstance(known, type(self)):
                    raise ValueError(f"{uuid} is a {type(known).__name__}")
                return known
            share.identify(uuid)
            pools[uuid] = self
        return self

    @property
    def allocation_handle(self) -> IPCAllocationHandle:
        """What another process maps the pool by. It belongs to the pool, and is closed with it.

        Raises
        ------
        RuntimeError
            If the pool was not created with ``ipc_enabled``, or is closed.
        """
        share = self._shared()
        if not lib.ccc_is_open(self._c_handle):
            raise RuntimeError(f"this {type(self).__name__} is closed")
        return share.handle_of(self._c_handle)

    def _shared(self) -> Share:
        if self._share is None:
            raise RuntimeError(
                f"this {type(self).__name__} is not for other processes: create it with ipc_enabled=True"
            )
        return self._share

    def _announce(self) -> Self:
        """Become known to multiprocessing, and here by the UUID. Returns the pool that is known by it."""
        send_with(type(self), reduce_pool)
        # now, because a pickler that is at work does not learn of it when the handle is made
        send_with(IPCAllocationHandle, reduce_allocation_handle)
        key = self._shared().uuid
        return self if key is None else self.register(key)

    @classmethod
    def _find(cls, handle: int | IPCAllocationHandle) -> Self | None:
        """Return the pool of a handle if there is one already, else None; raise if it is no handle."""
        if not isinstance(handle, IPCAllocationHandle):
            check_descriptor(handle)
            return None
        int(handle)
        if handle.uuid is None:
            return None
        with pools_lock:
            pool = pools.get(handle.uuid)
        return None if pool is None or pool.is_closed else cls.from_registry(handle.uuid)

    def _sent_as(self) -> tuple[object, ...]:
        """Return what another process makes the pool of, with from_allocation_handle."""
        raise TypeError


def own_handle(handle: int | IPCAllocationHandle) -> IPCAllocationHandle:
    """Return an allocation handle with a descriptor of its own, for the pool that another one stands for."""
    number = int(handle)
    try:
        duplicate = os.dup(number)
    except OSError as error:
        raise ValueError(f"{number} is not an open file descriptor") from error
    return IPCAllocationHandle._create(duplicate, handle.uuid if isinstance(handle, IPCAllocationHandle) else None)


# Pools of this process that others may know, or the other way round, by UUID.
pools: weakref.WeakValueDictionary[UUID, Any] = weakref.WeakValueDictionary()
pools_lock = new_lock()


def check_descriptor(number: Any) -> int:
    """Return a file descriptor, or raise."""
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"an allocation handle must be an int or an IPCAllocationHandle, not {type(number).__name__}")
    if not 0 <= number < 2**31:
        raise ValueError(f"a file descriptor must be 0 to 2**31 - 1, not {number}")
    return number


def is_uuid(value: object) -> bool:
    """Tell whether an object is a UUID."""
    from uuid import UUID

    return isinstance(value, UUID)


def check_uuid(key: Any) -> Any:
    """Return a UUID, or raise."""
    if not is_uuid(key):
        raise TypeError(f"uuid must be a uuid.UUID, not {type(key).__name__}")
    return key


def reduce_allocation_handle(handle: IPCAllocationHandle) -> tuple[object, tuple[Any, UUID | None]]:
    """Take a handle apart for another process."""
    from multiprocessing.reduction import DupFd  # imported by send_with already

    return receive_allocation_handle, (DupFd(int(handle)), handle.uuid)


def receive_allocation_handle(duplicate: Any, key: UUID | None) -> IPCAllocationHandle:
    """Put a handle together again."""
    if key is not None:
        check_uuid(key)
    return IPCAllocationHandle._create(duplicate.detach(), key)


def reduce_pool(pool: IPCPool) -> tuple[object, ...]:
    """Take a pool apart for another process."""
    return type(pool).from_allocation_handle, pool._sent_as()  # type: ignore[attr-defined]


def reduce_virtual_descriptor(descriptor: VirtualMemoryIPCBufferDescriptor) -> tuple[object, ...]:
    """Return what another process makes a descriptor of."""
    from multiprocessing.context import get_spawning_popen  # imported by send_with already

    popen = get_spawning_popen()
    if popen is not None:  # the child inherits the file descriptors themselves, when the pickle is done
        vars(popen).setdefault("_shared_virtual_memory", []).append(descriptor)
    parts = tuple(reduce_allocation_handle(handle)[1][0] for handle in descriptor.handles)
    return receive_virtual_descriptor, (parts, descriptor.sizes, descriptor.size)


def receive_virtual_descriptor(
    duplicates: tuple[Any, ...], sizes: tuple[int, ...], size: int
) -> VirtualMemoryIPCBufferDescriptor:
    """Return the descriptor that another process has sent."""
    handles = [receive_allocation_handle(duplicate, None) for duplicate in duplicates]
    return VirtualMemoryIPCBufferDescriptor._create(handles, sizes, size)
