# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Launch attributes: which there are, what they accept, what they need, and how the driver is told of them.

:data:`ATTRIBUTES` has a row for each field of ``LaunchConfig`` that becomes an attribute of the driver's. What needs no
device is checked when a field is assigned; what does, before the first launch on a device; the rest is the driver's to
refuse.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from cuda_core_cffi._core.errors import UnavailableError, cuda_version
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import Handle
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi._core.options import check_options, member
from cuda_core_cffi._memory import Buffer
from cuda_core_cffi._streams.event import Event
from cuda_core_cffi._streams.stream import check_priority
from cuda_core_cffi.typing import (
    AccessPropertyType,
    ClusterSchedulingPolicyType,
    MemSyncDomainType,
    PortableClusterSizeType,
    SharedMemoryModeType,
)

T = TypeVar("T")
E = TypeVar("E", bound=enum.StrEnum)

Dimensions = tuple[int, int, int]

LARGEST = 2**32 - 1
LARGEST_INT = 2**31 - 1
LARGEST_DOMAIN = 255
PERCENT = 100

# The last versions of CUDA whose headers lack an attribute or a value.
CUDA_12_9 = 12090
CUDA_13_0 = 13000


def numbers_of(kind: type[E], prefix: str) -> dict[E, int]:
    """Return the driver's numbers for the members of an enumeration, which have the same names there."""
    return {item: getattr(lib, f"{prefix}_{item.name}") for item in kind}


ACCESS_PROPERTIES = numbers_of(AccessPropertyType, "CU_ACCESS_PROPERTY")
CLUSTER_POLICIES = {
    ClusterSchedulingPolicyType.DEFAULT: lib.CU_CLUSTER_SCHEDULING_POLICY_DEFAULT,
    ClusterSchedulingPolicyType.SPREAD: lib.CU_CLUSTER_SCHEDULING_POLICY_SPREAD,
    ClusterSchedulingPolicyType.LOAD_BALANCING: lib.CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING,
    ClusterSchedulingPolicyType.RUBIN_DSMEM_LOCALITY: lib.CCC_CLUSTER_SCHEDULING_RUBIN_DSMEM_LOCALITY,
}
DOMAINS = numbers_of(MemSyncDomainType, "CU_LAUNCH_MEM_SYNC_DOMAIN")
PORTABLE_SIZES = numbers_of(PortableClusterSizeType, "CCC_PORTABLE_CLUSTER")
SHARED_MEMORY_MODES = numbers_of(SharedMemoryModeType, "CCC_SHARED_MEMORY")


@dataclasses.dataclass(frozen=True)
class AccessPolicyWindow:
    """How a kernel's accesses to a piece of memory are kept in the L2 cache.

    Attributes
    ----------
    buffer : Buffer
        The memory, as it is when the configuration is first launched; of a larger buffer take a slice. The device
        limits the size: ``Device.properties.max_access_policy_window_size``, in bytes.
    hit_ratio : float, optional
        The share of the accesses that get ``hit_property``, 0 to 1; the rest get ``miss_property``. Default 1.
    hit_property : AccessPropertyType or str, optional
        ``"normal"``, ``"streaming"`` or ``"persisting"``. Default persisting, which needs a part of the cache that is
        set aside (``CU_LIMIT_PERSISTING_L2_CACHE_SIZE``).
    miss_property : AccessPropertyType or str, optional
        ``"normal"`` or ``"streaming"``. Default streaming.

    Raises
    ------
    TypeError, ValueError
        If a value is not one that it can be.
    RuntimeError
        If the buffer is closed.
    """

    buffer: Buffer
    hit_ratio: float = 1.0
    hit_property: AccessPropertyType | str = AccessPropertyType.PERSISTING
    miss_property: AccessPropertyType | str = AccessPropertyType.STREAMING

    def __post_init__(self) -> None:
        require_type("buffer", self.buffer, Buffer)
        require_open("buffer", self.buffer)
        ratio = self.hit_ratio
        if isinstance(ratio, bool | str) or not hasattr(ratio, "__float__"):
            raise TypeError(f"hit_ratio must be a float, not {type(ratio).__name__}: {ratio!r}")
        if not 0 <= float(ratio) <= 1:
            raise ValueError(f"hit_ratio must be 0 to 1, not {ratio}")
        miss = member(AccessPropertyType, self.miss_property, "miss_property")
        if miss is AccessPropertyType.PERSISTING:
            raise ValueError("miss_property must be 'normal' or 'streaming', not 'persisting'")
        object.__setattr__(self, "hit_ratio", float(ratio))
        object.__setattr__(self, "hit_property", member(AccessPropertyType, self.hit_property, "hit_property"))
        object.__setattr__(self, "miss_property", miss)


class MemSyncDomainMap(NamedTuple):
    """Which memory synchronization domain each of the two logical ones is, for a launch."""

    default: int
    """The domain of kernels with ``mem_sync_domain="default"``."""
    remote: int
    """The domain of kernels with ``mem_sync_domain="remote"``."""


@dataclasses.dataclass(frozen=True)
class ProgrammaticEvent:
    """An event that the blocks of a kernel trigger.

    Attributes
    ----------
    event : Event
        It is reached once every block has called ``cudaTriggerProgrammaticLaunchCompletion`` or ended. It must take no
        times, and be of this process alone.
    trigger_at_block_start : bool, optional
        Let every block trigger the event as it starts. Default False.

    Raises
    ------
    TypeError, ValueError
        If this is no event, or not one of that kind.
    RuntimeError
        If the event is closed.
    """

    event: Event
    trigger_at_block_start: bool = False

    def __post_init__(self) -> None:
        accept_event("event", self.event)
        object.__setattr__(self, "trigger_at_block_start", bool(self.trigger_at_block_start))


# What a field accepts: each returns what is kept, or raises


def require_type(name: str, value: object, kind: type[T]) -> T:
    """Return a value of the right type."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be of type {kind.__name__}, not {type(value).__name__}: {value!r}")
    return value


def require_open(name: str, item: Handle) -> None:
    """Raise if an object that a field refers to is closed."""
    if item.is_closed:
        raise RuntimeError(f"{name}: this {item._NAME or type(item).__name__} is closed")


def whole(name: str, value: object, least: int, most: int, unit: str = "") -> int:
    """Return an integer within bounds."""
    number = integer(value, name)
    if not least <= number <= most:
        raise ValueError(f"{name} must be {least} to {most}{unit}, not {number}")
    return number


def dimensions(name: str, value: int | tuple[int, ...] | None) -> Dimensions:
    """Return one to three dimensions as three."""
    if value is None:
        raise ValueError(f"{name} is required")
    given = value if isinstance(value, (tuple, list)) else (value,)
    if not 1 <= len(given) <= 3:
        raise ValueError(f"{name} must have 1 to 3 dimensions, not {len(given)}")
    x, y, z = (*(blocks(name, item) for item in given), 1, 1)[:3]
    return x, y, z


def blocks(name: str, value: object) -> int:
    """Return a dimension, which is an integer of at least 1."""
    number = integer(value, name, "an int or a tuple of ints")
    if not 1 <= number <= LARGEST:
        raise ValueError(f"every dimension of {name} must be 1 to {LARGEST}, not {number}")
    return number


def accept_flag(name: str, value: object) -> bool:
    """Return a truth value."""
    return bool(value)


def accept_event(name: str, value: object) -> Event:
    """Return an event that a launch can record."""
    event = require_type(name, value, Event)
    require_open(name, event)
    if event.is_timing_enabled or event.is_ipc_enabled:
        kind = "takes times" if event.is_timing_enabled else "is for other processes"
        raise ValueError(f"{name}: a launch records only events of EventOptions(), and this one {kind}")
    return event


def accept_programmatic(name: str, value: object) -> ProgrammaticEvent:
    """Return a programmatic event, which may be given as an event alone or as a mapping."""
    if isinstance(value, Event):
        accept_event(name, value)
        return ProgrammaticEvent(value)
    return options_of(ProgrammaticEvent, name, value)


def accept_window(name: str, value: object) -> AccessPolicyWindow:
    """Return a window, which may be given as a mapping."""
    return options_of(AccessPolicyWindow, name, value)


def options_of(kind: type[T], name: str, value: object) -> T:
    """Return an instance of a dataclass, or one made of a mapping of its fields."""
    return check_options(kind, value, name) if isinstance(value, Mapping) else require_type(name, value, kind)


def accept_domains(name: str, value: object) -> MemSyncDomainMap:
    """Return a pair of domains."""
    if not isinstance(value, (tuple, list)) or len(value) != len(MemSyncDomainMap._fields):
        raise TypeError(f"{name} must be a pair of ints, for the default and the remote domain, not {value!r}")
    return MemSyncDomainMap(*(whole(name, item, 0, LARGEST_DOMAIN) for item in value))


def choice_of(kind: type[E]) -> Callable[[str, Any], E]:
    """Return what accepts a member of an enumeration, or its string."""
    return lambda name, value: member(kind, value, name)


# How the driver is told: each writes into a ``CUlaunchAttributeValue``


def write_int(value: Any, kept: int) -> None:
    """Write an integer; older headers do not name all those of the union."""
    ffi.cast("int *", ffi.addressof(value))[0] = kept


def write_member(numbers: Mapping[Any, int]) -> Callable[[Any, Any], None]:
    """Return what writes the number of a member of an enumeration."""
    return lambda value, kept: write_int(value, numbers[kept])


def write_dimensions(value: Any, kept: Dimensions) -> None:
    """Write the dimensions of a cluster, or of a preferred one: the union has them in the same place."""
    size = value.clusterDim
    size.x, size.y, size.z = kept


def write_domains(value: Any, kept: MemSyncDomainMap) -> None:
    """Write a pair of domains."""
    value.memSyncDomainMap.default_, value.memSyncDomainMap.remote = kept


def write_window(value: Any, kept: AccessPolicyWindow) -> None:
    """Write a window."""
    window = value.accessPolicyWindow
    window.base_ptr = ffi.cast("void *", kept.buffer.handle)
    window.num_bytes = kept.buffer.size
    window.hitRatio = kept.hit_ratio
    window.hitProp = ACCESS_PROPERTIES[AccessPropertyType(kept.hit_property)]
    window.missProp = ACCESS_PROPERTIES[AccessPropertyType(kept.miss_property)]


def write_completion(value: Any, kept: Event) -> None:
    """Write the event that tells that all blocks have started."""
    value.launchCompletionEvent.event = kept.cdata


def write_programmatic(value: Any, kept: ProgrammaticEvent) -> None:
    """Write the event that the blocks trigger."""
    value.programmaticEvent.event = kept.event.cdata
    value.programmaticEvent.triggerAtBlockStart = kept.trigger_at_block_start


# What the device must have: each raises where it does not


def need_nothing(device: Any, name: str, kept: object) -> None:
    """Accept every device: the attribute is a hint, or the driver is the one to tell."""


def lacking(device: Any, name: str, need: str) -> UnavailableError:
    """Return the error for something that a device does not have."""
    return UnavailableError(f"{name} needs {need}, which {device.name} (sm_{device.arch}) does not have")


def need_clusters(device: Any, name: str, kept: object) -> None:
    """Require thread block clusters."""
    if not device.properties.cluster_launch:
        raise lacking(device, name, "thread block clusters (compute capability 9.0)")


def need_policy(device: Any, name: str, kept: ClusterSchedulingPolicyType) -> None:
    """Require clusters, and a driver that knows the policy."""
    need_clusters(device, name, kept)
    if kept is ClusterSchedulingPolicyType.RUBIN_DSMEM_LOCALITY:
        need_driver(f"{name}={kept.value!r}", CUDA_13_0)


def need_cooperative(device: Any, name: str, kept: object) -> None:
    """Require cooperative launches."""
    if not device.properties.cooperative_launch:
        raise lacking(device, name, "cooperative launches")


def need_programmatic(device: Any, name: str, kept: object) -> None:
    """Require programmatic dependent launches."""
    if device.compute_capability < (9, 0):
        raise lacking(device, name, "programmatic dependent launch (compute capability 9.0)")


def need_priority(device: Any, name: str, kept: int) -> None:
    """Require a priority that the device's streams may have."""
    check_priority(device.device_id, kept)


def need_domains(device: Any, name: str, kept: MemSyncDomainMap) -> None:
    """Require as many domains as are named."""
    count = max(device.properties.mem_sync_domain_count, 1)  # 1 before compute capability 9.0, 0 from older drivers
    if max(kept) >= count:
        raise ValueError(f"{name}: the domains of {device.name} are 0 to {count - 1}, not {max(kept)}")


def need_window(device: Any, name: str, kept: AccessPolicyWindow) -> None:
    """Require a cache with windows, and one no larger than they can be."""
    most = device.properties.max_access_policy_window_size
    if not most:
        raise lacking(device, name, "windows in the L2 cache (compute capability 8.0)")
    if kept.buffer.size > most:
        raise ValueError(
            f"{name}: a window of {device.name} has {most} bytes at most, and this buffer {kept.buffer.size}: take a "
            f"slice of it"
        )


def need_driver(what: str, after: int) -> None:
    """Require a driver newer than a version of CUDA."""
    version = lib.ccc_driver_version()
    if version <= after:
        raise UnavailableError(
            f"{what} needs a driver newer than that of CUDA {cuda_version(after)}; the installed one is for "
            f"{cuda_version(version)}: update the NVIDIA driver"
        )


# The table


class Attribute(NamedTuple):
    """A launch attribute, as a field of ``LaunchConfig``."""

    number: int
    """The driver's ``CUlaunchAttributeID``."""
    accept: Callable[[str, Any], Any]
    """From the field's name and a value to what is kept."""
    write: Callable[[Any, Any], None]
    """Writes what is kept into a ``CUlaunchAttributeValue``."""
    need: Callable[[Any, str, Any], None] = need_nothing
    """Raises if a device lacks it."""
    after: int = 0
    """The last version of CUDA that does not know it."""
    refer: Callable[[Any], Handle] | None = None
    """From what is kept to the object that it refers to."""


ATTRIBUTES: dict[str, Attribute] = {
    "cluster": Attribute(lib.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, dimensions, write_dimensions, need_clusters),
    "is_cooperative": Attribute(lib.CU_LAUNCH_ATTRIBUTE_COOPERATIVE, accept_flag, write_int, need_cooperative),
    "programmatic_stream_serialization": Attribute(
        lib.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, accept_flag, write_int, need_programmatic
    ),
    "priority": Attribute(
        lib.CU_LAUNCH_ATTRIBUTE_PRIORITY,
        lambda name, value: whole(name, value, -LARGEST_INT, LARGEST_INT),
        write_int,
        need_priority,
    ),
    "preferred_cluster": Attribute(
        lib.CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, dimensions, write_dimensions, need_clusters
    ),
    "cluster_scheduling_policy": Attribute(
        lib.CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
        choice_of(ClusterSchedulingPolicyType),
        write_member(CLUSTER_POLICIES),
        need_policy,
    ),
    "portable_cluster_size": Attribute(
        lib.CCC_LAUNCH_PORTABLE_CLUSTER_SIZE_MODE,
        choice_of(PortableClusterSizeType),
        write_member(PORTABLE_SIZES),
        need_clusters,
        after=CUDA_13_0,
    ),
    "programmatic_event": Attribute(
        lib.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
        accept_programmatic,
        write_programmatic,
        need_programmatic,
        refer=lambda kept: kept.event,
    ),
    "launch_completion_event": Attribute(
        lib.CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, accept_event, write_completion, refer=lambda kept: kept
    ),
    "mem_sync_domain": Attribute(
        lib.CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, choice_of(MemSyncDomainType), write_member(DOMAINS)
    ),
    "mem_sync_domain_map": Attribute(
        lib.CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, accept_domains, write_domains, need_domains
    ),
    "access_policy_window": Attribute(
        lib.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
        accept_window,
        write_window,
        need_window,
        refer=lambda kept: kept.buffer,
    ),
    "preferred_shared_memory_carveout": Attribute(
        lib.CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
        lambda name, value: whole(name, value, 0, PERCENT, " percent"),
        write_int,
    ),
    "shared_memory_mode": Attribute(
        lib.CCC_LAUNCH_SHARED_MEMORY_MODE,
        choice_of(SharedMemoryModeType),
        write_member(SHARED_MEMORY_MODES),
        after=CUDA_13_0,
    ),
    "nvlink_util_centric_scheduling": Attribute(
        lib.CCC_LAUNCH_NVLINK_UTIL_CENTRIC_SCHEDULING, accept_flag, write_int, after=CUDA_12_9
    ),
}


def check_device(device: Any, given: Mapping[str, Any]) -> None:
    """Raise unless a device, and the driver, have all that is asked for.

    Parameters
    ----------
    device : Device
        The device to launch on.
    given : Mapping
        What is kept of each field of :data:`ATTRIBUTES` that was given.

    Raises
    ------
    UnavailableError
        If the device or the driver lacks something.
    ValueError
        If a value is out of the device's range.
    """
    for name, kept in given.items():
        attribute = ATTRIBUTES[name]
        need_driver(name, attribute.after)
        attribute.need(device, name, kept)


def check_clusters(grid: Dimensions, cluster: Dimensions, preferred: Dimensions) -> None:
    """Raise unless clusters can be grouped into the preferred ones; ``grid`` is in blocks."""
    sizes = list(zip(grid, cluster, preferred))
    if any(wanted % size or count % wanted for count, size, wanted in sizes) or preferred[2] != cluster[2]:
        raise ValueError(
            f"preferred_cluster {preferred} must be a multiple of cluster {cluster} that divides the grid of {grid} "
            f"blocks, and have its z"
        )
