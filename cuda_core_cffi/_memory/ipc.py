# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Pools and buffers that processes share.

A pool crosses as a file descriptor, once; each of its buffers then as a few bytes. In the other process the pool is a
mapped one, which cannot allocate, but which buffers are imported from. A UUID says which mapped pool belongs to which
original, so that a buffer can be sent with just a reference to its pool.

Importing the same memory more than once in one process is allowed, although drivers do not count it: of device memory
they give the same address, which is gone after the first free, and host memory they refuse to import again. The buffers
therefore share one import (``include/memory/ccc_ipc.h``).
"""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self

from cuda_core_cffi._core.copying import NoConstructor
from cuda_core_cffi._core.descriptors import Descriptor, seal, send_with
from cuda_core_cffi._core.errors import failure
from cuda_core_cffi._core.ffi import lib
from cuda_core_cffi._core.locks import new_lock
from cuda_core_cffi._memory.resource import whole_size

if TYPE_CHECKING:  # uuid brings more modules than all of a pool
    from uuid import UUID

NO_DESCRIPTOR = -1
HANDLE = "handle"  # the key of the one handle of a share


class IPCAllocationHandle(NoConstructor):
    """A file descriptor by which other processes map a pool, and its owner.

    It can be sent through :mod:`multiprocessing`, which duplicates the descriptor for the other process.
    """

    __slots__ = ("_descriptors", "_uuid")

    _MADE_BY: ClassVar[str] = "a pool's allocation_handle"
    _NOT_COPIED_BECAUSE: ClassVar[str] = "it owns a file descriptor, and is sent through multiprocessing only"
    _descriptors: list[int]  # one, or none once closed: taking it out is what closes
    _uuid: UUID | None

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, OSError):  # construction was refused; somebody else closed it
            self.close()

    def __int__(self) -> int:
        try:
            return self._descriptors[0]
        except IndexError:
            raise RuntimeError(f"this {type(self).__name__} is closed") from None

    @classmethod
    def _init(cls, handle: int, uuid: UUID | None) -> Self:
        """Return a handle that owns a file descriptor."""
        check_descriptor(handle)
        self = cls.__new__(cls)
        self._descriptors = [handle]
        self._uuid = uuid
        send_with(cls, reduce_allocation_handle)
        return self

    def close(self) -> None:
        """Close the file descriptor. Closing twice is allowed."""
        with contextlib.suppress(IndexError):
            os.close(self._descriptors.pop())

    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return not self._descriptors

    @property
    def handle(self) -> int:
        """The file descriptor; -1 once closed."""
        with contextlib.suppress(IndexError):
            return self._descriptors[0]
        return NO_DESCRIPTOR

    @property
    def uuid(self) -> UUID | None:
        """What identifies the pool in every process; None if the pool is not known by one."""
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
        return IPCBufferDescriptor._init, (seal(self._payload), self._size, self._pool)

    @classmethod
    def _init(cls, sealed: bytes, size: int, pool: UUID | None = None) -> IPCBufferDescriptor:
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
        descriptor = lib.ccc_pool_export(c_handle)
        if descriptor < 0:
            raise failure(lib.ccc_last_status())
        os.set_inheritable(descriptor, False)  # drivers leave it open to programs that are executed
        made = IPCAllocationHandle._init(descriptor, self.uuid)
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
    return IPCAllocationHandle._init(duplicate, handle.uuid if isinstance(handle, IPCAllocationHandle) else None)


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


def reduce_allocation_handle(handle: IPCAllocationHandle) -> tuple[object, ...]:
    """Take a handle apart for another process."""
    from multiprocessing.reduction import DupFd  # imported by send_with already

    return receive_allocation_handle, (DupFd(int(handle)), handle.uuid)


def receive_allocation_handle(duplicate: Any, key: UUID | None) -> IPCAllocationHandle:
    """Put a handle together again."""
    if key is not None:
        check_uuid(key)
    return IPCAllocationHandle._init(duplicate.detach(), key)


def reduce_pool(pool: IPCPool) -> tuple[object, ...]:
    """Take a pool apart for another process."""
    return type(pool).from_allocation_handle, pool._sent_as()  # type: ignore[attr-defined]
