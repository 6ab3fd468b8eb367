# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Options of virtual memory, and what the driver is told of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from cuda_core_cffi._core.errors import check
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.options import member
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi._memory.resource import LARGEST_SIZE, whole_number
from cuda_core_cffi.typing import (
    VirtualMemoryAccessType,
    VirtualMemoryAllocationType,
    VirtualMemoryGranularityType,
    VirtualMemoryHandleType,
    VirtualMemoryLocationType,
)

ACCESS_FLAGS = {
    None: lib.CU_MEM_ACCESS_FLAGS_PROT_NONE,
    VirtualMemoryAccessType.READ: lib.CU_MEM_ACCESS_FLAGS_PROT_READ,
    VirtualMemoryAccessType.READ_WRITE: lib.CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
}
ALLOCATION_TYPES = {
    VirtualMemoryAllocationType.PINNED: lib.CU_MEM_ALLOCATION_TYPE_PINNED,
    VirtualMemoryAllocationType.MANAGED: lib.CCC_ALLOCATION_TYPE_MANAGED,
}
GRANULARITIES = {
    VirtualMemoryGranularityType.MINIMUM: lib.CU_MEM_ALLOC_GRANULARITY_MINIMUM,
    VirtualMemoryGranularityType.RECOMMENDED: lib.CU_MEM_ALLOC_GRANULARITY_RECOMMENDED,
}
HANDLE_TYPES = {
    None: lib.CU_MEM_HANDLE_TYPE_NONE,
    VirtualMemoryHandleType.POSIX_FD: lib.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    VirtualMemoryHandleType.WIN32_KMT: lib.CU_MEM_HANDLE_TYPE_WIN32_KMT,
    VirtualMemoryHandleType.FABRIC: lib.CU_MEM_HANDLE_TYPE_FABRIC,
}
# Memory of the current node is asked for by the node's number: cuMemCreate takes no other.
LOCATIONS = {
    VirtualMemoryLocationType.DEVICE: lib.CU_MEM_LOCATION_TYPE_DEVICE,
    VirtualMemoryLocationType.HOST: lib.CU_MEM_LOCATION_TYPE_HOST,
    VirtualMemoryLocationType.HOST_NUMA: lib.CU_MEM_LOCATION_TYPE_HOST_NUMA,
    VirtualMemoryLocationType.HOST_NUMA_CURRENT: lib.CU_MEM_LOCATION_TYPE_HOST_NUMA,
}
# Which property of a device says that it can.
LOCATION_SUPPORT = {
    VirtualMemoryLocationType.DEVICE: "virtual_memory_management_supported",
    VirtualMemoryLocationType.HOST: "host_virtual_memory_management_supported",
    VirtualMemoryLocationType.HOST_NUMA: "host_numa_virtual_memory_management_supported",
    VirtualMemoryLocationType.HOST_NUMA_CURRENT: "host_numa_virtual_memory_management_supported",
}
HANDLE_SUPPORT = {
    VirtualMemoryHandleType.POSIX_FD: "handle_type_posix_file_descriptor_supported",
    VirtualMemoryHandleType.WIN32_KMT: "handle_type_win32_kmt_handle_supported",
    VirtualMemoryHandleType.FABRIC: "handle_type_fabric_supported",
}
ENUMERATIONS = (  # the options that are members, of what, and whether they may be None
    ("allocation_type", VirtualMemoryAllocationType, False),
    ("location_type", VirtualMemoryLocationType, False),
    ("handle_type", VirtualMemoryHandleType, True),
    ("granularity", VirtualMemoryGranularityType, False),
    ("self_access", VirtualMemoryAccessType, True),
    ("peer_access", VirtualMemoryAccessType, True),
)


@dataclasses.dataclass
class VirtualMemoryResourceOptions:
    """Options of virtual memory. Plain strings are accepted for the enumerations.

    Attributes
    ----------
    allocation_type : VirtualMemoryAllocationType
        Whether the physical memory stays where it is. Default pinned; drivers refuse the other so far.
    location_type : VirtualMemoryLocationType
        Where the physical memory is: on the device, on the host, on the host's NUMA node nearest to the device, or on
        the node where the thread that allocates runs. Default the device.
    handle_type : VirtualMemoryHandleType or None
        What the memory can be shared by with other processes; None if it cannot, which is all that location ``"host"``
        can have. Default a file descriptor.
    granularity : VirtualMemoryGranularityType
        Which of the driver's granularities sizes are rounded up to. Default the recommended one.
    gpu_direct_rdma : bool
        Whether other hardware shall access the memory directly. Default False.
    addr_hint : int or None
        The address where a new buffer would best start; 0 and None leave it to the driver. It is only a hint.
    addr_align : int or None
        A power of two that the addresses of new buffers are multiples of; None for the granularity.
    peers : iterable of int
        Other devices that may use the memory. Default none.
    self_access : VirtualMemoryAccessType or None
        What the device, and for host memory the host, may do with the memory; None for nothing. Default read and write.
    peer_access : VirtualMemoryAccessType or None
        The same for the peers.
    """

    allocation_type: VirtualMemoryAllocationType = VirtualMemoryAllocationType.PINNED
    location_type: VirtualMemoryLocationType = VirtualMemoryLocationType.DEVICE
    handle_type: VirtualMemoryHandleType | None = VirtualMemoryHandleType.POSIX_FD
    granularity: VirtualMemoryGranularityType = VirtualMemoryGranularityType.RECOMMENDED
    gpu_direct_rdma: bool = False
    addr_hint: int | None = 0
    addr_align: int | None = None
    peers: Iterable[int] = dataclasses.field(default_factory=tuple)
    self_access: VirtualMemoryAccessType | None = VirtualMemoryAccessType.READ_WRITE
    peer_access: VirtualMemoryAccessType | None = VirtualMemoryAccessType.READ_WRITE


class Plan:
    """Options that were checked, as the driver takes them."""

    __slots__ = ("_keep", "_rights", "cdata", "granularity", "options")

    options: VirtualMemoryResourceOptions  # a copy, of which every enumeration is a member
    granularity: int  # what sizes are multiples of, in bytes
    cdata: Any  # a ccc_virtual_plan *: all of it, for the helpers in C

    def __init__(self, device: int, options: VirtualMemoryResourceOptions) -> None:
        self.options = options = checked(options)
        check_support(device, options)
        cdata = ffi.new("ccc_virtual_plan *")
        self.cdata = cdata
        fill_properties(cdata.properties, device, options)
        size = ffi.new("size_t *")
        status = lib.cuMemGetAllocationGranularity(
            size, ffi.addressof(cdata, "properties"), GRANULARITIES[options.granularity]
        )
        check(status, "cuMemGetAllocationGranularity")
        self.granularity = int(size[0])
        cdata.alignment = max(options.addr_align or 0, self.granularity)
        cdata.hint = options.addr_hint or 0
        cdata.current_node = options.location_type == VirtualMemoryLocationType.HOST_NUMA_CURRENT
        if cdata.hint % self.granularity:
            raise ValueError(
                f"addr_hint must be a multiple of the granularity, {self.granularity} bytes, not {options.addr_hint:#x}"
            )
        self._set_rights(rights_of(device, options))

    @property
    def is_writable(self) -> bool:
        """Whether some place may write the memory."""
        return lib.CU_MEM_ACCESS_FLAGS_PROT_READWRITE in self._rights.values()

    def round_up(self, size: int) -> int:
        """Return the size in whole granules, or raise OverflowError."""
        rounded = -(-size // self.granularity) * self.granularity
        if rounded > LARGEST_SIZE:
            raise OverflowError(f"size must be less than 2**64 bytes in whole granules, not {size}")
        return rounded

    def _set_rights(self, rights: dict[tuple[int, int], int]) -> None:
        self._rights = rights
        self._keep = ffi.new("CUmemAccessDesc[]", len(rights))
        for entry, (place, flags) in zip(self._keep, rights.items(), strict=True):
            entry.location.type, entry.location.id = place
            entry.flags = flags
        self.cdata.rights, self.cdata.count = self._keep, len(rights)


def address_option(value: Any, name: str) -> int:
    """Return an option that is a number of bytes, or None for 0, as an int."""
    return 0 if value is None else whole_number(value, name, LARGEST_SIZE, "2**64 - 1", "an int or None")


def checked(options: VirtualMemoryResourceOptions) -> VirtualMemoryResourceOptions:
    """Return a copy of the options in which every value is of its type, or raise."""
    if options.handle_type == "win32":
        raise NotImplementedError("handle_type 'win32' is for Windows, where this package does not run")
    if not isinstance(options.gpu_direct_rdma, bool):
        raise TypeError(f"gpu_direct_rdma must be a bool, not {type(options.gpu_direct_rdma).__name__}")
    alignment = address_option(options.addr_align, "addr_align")
    if alignment & (alignment - 1):
        raise ValueError(f"addr_align must be a power of two, not {alignment}")
    if isinstance(options.peers, str) or not isinstance(options.peers, Iterable):
        raise TypeError(f"peers must be an iterable of device ordinals, not {type(options.peers).__name__}")
    done = dataclasses.replace(
        options,
        addr_hint=address_option(options.addr_hint, "addr_hint"),
        addr_align=alignment,
        peers=tuple(registry.device(peer).device_id for peer in options.peers),
    )
    for name, kind, is_optional in ENUMERATIONS:
        value = getattr(done, name)
        if not (is_optional and value is None):
            setattr(done, name, member(kind, value, name))
    if done.location_type == VirtualMemoryLocationType.HOST and done.handle_type is not None:
        raise ValueError(
            f"memory of location 'host' cannot be shared with other processes: handle_type must be None, not "
            f"{done.handle_type.value!r}"
        )
    return done


def check_support(device: int, options: VirtualMemoryResourceOptions) -> None:
    """Raise RuntimeError if a device cannot do what the options ask for."""
    required = [
        ("virtual_memory_management_supported", "virtual memory management"),
        (LOCATION_SUPPORT[options.location_type], f"virtual memory of location {options.location_type.value!r}"),
    ]
    if options.handle_type is not None:
        required.append(
            (HANDLE_SUPPORT[options.handle_type], f"sharing memory by {options.handle_type.value!r} handles")
        )
    if options.gpu_direct_rdma:
        required.append(("gpu_direct_rdma_with_cuda_vmm_supported", "GPUDirect RDMA with virtual memory"))
    for name, what in required:
        if not getattr(registry.device(device).properties, name):
            raise RuntimeError(f"device {device} does not support {what}")


def fill_properties(properties: Any, device: int, options: VirtualMemoryResourceOptions) -> None:
    """Say what physical memory is to be created."""
    properties.type = ALLOCATION_TYPES[options.allocation_type]
    properties.requestedHandleTypes = HANDLE_TYPES[options.handle_type]
    properties.location.type = LOCATIONS[options.location_type]
    if options.location_type == VirtualMemoryLocationType.DEVICE:
        properties.location.id = device
    elif options.location_type == VirtualMemoryLocationType.HOST_NUMA:
        # -1 on machines without NUMA, whose only node is 0
        properties.location.id = max(registry.device(device).properties.host_numa_id, 0)
    properties.allocFlags.gpuDirectRDMACapable = options.gpu_direct_rdma


def rights_of(device: int, options: VirtualMemoryResourceOptions) -> dict[tuple[int, int], int]:
    """Return who may do what: the driver's flags by type and number of location."""
    own, theirs = ACCESS_FLAGS[options.self_access], ACCESS_FLAGS[options.peer_access]
    rights = {(lib.CU_MEM_LOCATION_TYPE_DEVICE, peer): theirs for peer in options.peers}
    rights[lib.CU_MEM_LOCATION_TYPE_DEVICE, device] = own
    if options.location_type != VirtualMemoryLocationType.DEVICE:
        rights[lib.CU_MEM_LOCATION_TYPE_HOST_NUMA, 0] = own
    return {place: flags for place, flags in rights.items() if flags != lib.CU_MEM_ACCESS_FLAGS_PROT_NONE}
