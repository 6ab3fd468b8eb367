# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Pools of page-locked host memory."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Self

from cuda_core_cffi._core.errors import check
from cuda_core_cffi._core.ffi import lib
from cuda_core_cffi._core.handle import refuse_again
from cuda_core_cffi._core.options import check_options
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi._memory.buffer import Buffer
from cuda_core_cffi._memory.ipc import IPCAllocationHandle, IPCPool, Share
from cuda_core_cffi._memory.pool import MemPool, check_max_size, pool_properties
from cuda_core_cffi._memory.resource import whole_number

if TYPE_CHECKING:
    from cuda_core_cffi.typing._option_dicts import PinnedMemoryResourceOptionsDict

NO_DEVICE = -1
NO_NODE = -1
NO_CURRENT_POOL = "; with options, {} for example, a new pool is created"
NO_NEW_POOL = "; drivers before CUDA 12.6 need a numa_id, and LegacyPinnedMemoryResource works everywhere"


@dataclasses.dataclass
class PinnedMemoryResourceOptions:
    """Options of a pool of pinned host memory.

    Attributes
    ----------
    ipc_enabled : bool
        Let other processes use the pool's buffers. Default False.
    max_size : int
        The most memory that the pool may hold, in bytes; 0 leaves it to the system. Default 0.
    numa_id : int or None
        The NUMA node of the host that the memory is on. By default the operating system places it, or for
        ``ipc_enabled`` it is the node next to the current device, because the driver wants one then.
    """

    ipc_enabled: bool = False
    max_size: int = 0
    numa_id: int | None = None


class PinnedMemoryResource(IPCPool, MemPool[Buffer]):
    """A pool of page-locked host memory, which the host and every device can use.

    Parameters
    ----------
    options : PinnedMemoryResourceOptions, optional
        With options, a new pool is created. Without, the host's current pool is used, which other libraries may share;
        that needs a driver for CUDA 13.0.

    Raises
    ------
    ValueError
        If an option is out of range.
    UnavailableError
        Without options, if the driver is older than CUDA 13.0.
    CUDAError
        If the driver refuses the options. Drivers for CUDA 12 have host pools from 12.6 on, and before that only on a
        NUMA node; :class:`LegacyPinnedMemoryResource` works everywhere.
    """

    __slots__ = ("_numa_id",)

    _access = (True, True)
    _BUFFER = Buffer
    _device_id = NO_DEVICE

    def __init__(self, options: PinnedMemoryResourceOptions | PinnedMemoryResourceOptionsDict | None = None) -> None:
        refuse_again(self)
        kind, node, share = lib.CU_MEM_ALLOCATION_TYPE_PINNED, NO_NODE, None
        if options is None:
            place = (kind, lib.CU_MEM_LOCATION_TYPE_HOST, 0)
            self._create_or_borrow(lib.ccc_pool_current, *place, owned=False, hint=NO_CURRENT_POOL)
        else:
            options = check_options(PinnedMemoryResourceOptions, options, "PinnedMemoryResource")
            max_size = check_max_size(options.max_size)
            share = Share(is_mapped=False) if options.ipc_enabled else None
            if options.numa_id is not None:
                node = whole_number(options.numa_id, "numa_id", 2**31 - 1, "2**31 - 1")
            elif share is not None:
                node = nearest_node()
            place = (kind, lib.CU_MEM_LOCATION_TYPE_HOST_NUMA, node)
            if node == NO_NODE:
                place = (kind, lib.CU_MEM_LOCATION_TYPE_HOST, 0)
            properties = pool_properties(*place, max_size, share is not None)
            self._create_or_borrow(lib.ccc_pool_create, properties, hint=NO_NEW_POOL, share=share)
        self._numa_id = node
        self._open_to_devices()
        if share is not None:
            self._announce()

    @classmethod
    def from_allocation_handle(cls, alloc_handle: int | IPCAllocationHandle) -> Self:
        """Return the pool of another process, mapped into this one.

        Parameters
        ----------
        alloc_handle : IPCAllocationHandle or int
            The other pool's ``allocation_handle``, as received here; or a file descriptor, which stays the caller's.

        Returns
        -------
        PinnedMemoryResource
            The mapped pool, whose ``numa_id`` is not known here. If the handle's pool is known here already, that one.

        Raises
        ------
        ValueError
            If there is no such descriptor.
        CUDAError
            If the descriptor is not a pool's.
        """
        known = cls._find(alloc_handle)
        if known is not None:
            return known
        self = cls.__new__(cls)
        self._map(alloc_handle, NO_DEVICE)
        self._numa_id = NO_NODE
        self._open_to_devices()
        return self._announce()

    def __repr__(self) -> str:
        where = "" if self._numa_id == NO_NODE else f" numa={self._numa_id}"
        return f"<PinnedMemoryResource{where} handle={self._driver_handle:#x}>"

    def _sent_as(self) -> tuple[object, ...]:
        return (self.allocation_handle,)

    def _open_to_devices(self) -> None:
        """Let every device use the memory, which at first only the host may."""
        devices = registry.device.get_all_devices()
        able = [device.device_id for device in devices if device.properties.memory_pools_supported]
        check(lib.ccc_pool_set_peers(self._c_handle, able, len(able), len(able)))

    @property
    def numa_id(self) -> int:
        """The NUMA node that the memory is on; -1 where the operating system places it."""
        return self._numa_id


def nearest_node() -> int:
    """Return the NUMA node of the host that is next to the current device, or to device 0 where none is current."""
    device = registry.device()
    node: int = device.properties.host_numa_id
    if node < 0:
        raise RuntimeError(f"the driver tells no NUMA node for device {device.device_id}: give numa_id")
    return node
