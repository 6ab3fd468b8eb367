# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""How a kernel is launched: grid, block and the rest."""

from __future__ import annotations

import copy
import enum
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, Self, TypeVar, overload

from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.locks import new_lock
from cuda_core_cffi._launching.attributes import (
    ATTRIBUTES,
    LARGEST,
    AccessPolicyWindow,
    Dimensions,
    MemSyncDomainMap,
    ProgrammaticEvent,
    blocks,
    check_clusters,
    dimensions,
    require_open,
    whole,
)
from cuda_core_cffi._streams.event import Event
from cuda_core_cffi.typing import (
    ClusterSchedulingPolicyType,
    MemSyncDomainType,
    PortableClusterSizeType,
    SharedMemoryModeType,
)

T = TypeVar("T")
S = TypeVar("S")

FIELDS = ("grid", "cluster", "block", "shmem_size", "is_cooperative", "programmatic_stream_serialization")
# Held while a configuration changes, and while its native structure is made: that would miss a change meanwhile. A
# finalizer or a signal handler in the same thread may still change it then: the count of changes tells.
changing = new_lock()
changes = 0  # of all configurations
EXTRAS = tuple(name for name in ATTRIBUTES if name not in FIELDS)


class Extra(Generic[T, S]):
    """A field of a configuration beyond the first six: a T, assigned as an S; None unless it was given."""

    def __init__(self, doc: str) -> None:
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name
        self._accept = ATTRIBUTES[name].accept

    @overload
    def __get__(self, config: None, owner: type) -> Self: ...
    @overload
    def __get__(self, config: LaunchConfig, owner: type) -> T | None: ...
    def __get__(self, config: LaunchConfig | None, owner: type) -> Self | T | None:
        if config is None:
            return self
        return config._extras.get(self._name)

    def __set__(self, config: LaunchConfig, value: S | None) -> None:
        kept = None if value is None else self._accept(self._name, value)
        global changes
        with changing:
            extras: dict[str, Any] | None = None
            while config._extras is not extras:
                before = changes
                found = {**config._extras, self._name: kept}  # a copy: another thread may be looking at this one
                extras = {name: found[name] for name in EXTRAS if found.get(name) is not None}
                config._extras = extras if changes == before else config._extras
            changes += 1
            config._native_cache = None


class LaunchConfig(Uncopyable):
    """The shape of a launch.

    Parameters
    ----------
    grid : int or tuple of int
        Blocks in the grid, in one to three dimensions. With ``cluster``, clusters in the grid.
    cluster : int or tuple of int, optional
        Blocks in a cluster. Needs compute capability 9.0.
    block : int or tuple of int
        Threads in a block.
    shmem_size : int, optional
        Dynamic shared memory for each block, in bytes. Default 0. Beyond 48 KiB, static shared memory included, the
        first launch of a kernel raises its attribute ``max_dynamic_shared_size_bytes`` to this, if the device has as
        much (``Device.properties.max_shared_memory_per_block_optin``).
    is_cooperative : bool, optional
        Launch so that all blocks are resident at once and can synchronise. Default False.
    programmatic_stream_serialization : bool, optional
        Let the kernel start before its predecessor in the stream has ended. Default False. Needs compute capability
        9.0.
    priority : int, optional
        Run before kernels of higher numbers; the range is that of ``StreamOptions.priority``. Default is the stream's.
    preferred_cluster : int or tuple of int, optional
        Blocks in a cluster where the device has room for so many: a multiple of ``cluster``, with its z. Needs compute
        capability 9.0.
    cluster_scheduling_policy : ClusterSchedulingPolicyType or str, optional
        How the blocks of a cluster are put on multiprocessors: ``"spread"``, ``"load_balancing"``, ... Needs compute
        capability 9.0.
    portable_cluster_size : PortableClusterSizeType or str, optional
        Whether clusters may have more blocks than every device allows, whatever the kernel's attribute says. Needs
        compute capability 9.0, and a driver newer than that of CUDA 13.0.
    programmatic_event : ProgrammaticEvent or Event, optional
        An event that the kernel's blocks trigger. Needs compute capability 9.0.
    launch_completion_event : Event, optional
        An event that is reached when all blocks have started. It must take no times, and be of this process alone.
    mem_sync_domain : MemSyncDomainType or str, optional
        The logical memory synchronization domain to run in: ``"default"`` or ``"remote"``.
    mem_sync_domain_map : MemSyncDomainMap or tuple of int, optional
        Which of the device's domains the default and the remote one are; there are
        ``Device.properties.mem_sync_domain_count``.
    access_policy_window : AccessPolicyWindow, optional
        How accesses to a piece of memory are kept in the L2 cache. Needs compute capability 8.0.
    preferred_shared_memory_carveout : int, optional
        The share of the L1 cache to be shared memory, in percent.
    shared_memory_mode : SharedMemoryModeType or str, optional
        How much shared memory a block may have, whatever the kernel's attribute says. Needs a driver newer than that
        of CUDA 13.0.
    nvlink_util_centric_scheduling : bool, optional
        Whether blocks are placed for the traffic over NVLink. Needs a driver newer than that of CUDA 12.9.

    Raises
    ------
    ValueError
        If ``grid`` or ``block`` is missing, a dimension is less than 1, or another value is out of its range.
    TypeError
        If a value is of another type.
    RuntimeError
        If an event or a buffer is closed.

    Notes
    -----
    Configurations compare and hash by value. The native structure is made once and kept, so that one configuration
    launched many times costs nothing; assigning a field makes it anew. Events and buffers are kept alive. What a
    device or its driver must have is looked up before the first launch there.

    Examples
    --------
    >>> config = LaunchConfig(grid=(4, 2), block=256, shmem_size=1024)
    >>> config.grid, config.block
    ((4, 2, 1), (256, 1, 1))
    >>> config == LaunchConfig(grid=(4, 2, 1), block=256, shmem_size=1024)
    True
    """

    __slots__ = ("__weakref__", "_extras", "_native_cache", *(f"_{name}" for name in FIELDS))

    _NOT_COPIED_BECAUSE: ClassVar[str] = "it may refer to events and buffers of this process"
    _grid: Dimensions
    _cluster: Dimensions | None
    _block: Dimensions
    _shmem_size: int
    _is_cooperative: bool
    _programmatic_stream_serialization: bool
    _extras: Mapping[str, Any]  # those given, in the order of the table; never changed in place
    # The native structure. A launch holds it: another thread may assign to the configuration meanwhile.
    _native_cache: Any

    def __init__(
        self,
        grid: int | tuple[int, ...] | None = None,
        cluster: int | tuple[int, ...] | None = None,
        block: int | tuple[int, ...] | None = None,
        shmem_size: int | None = None,
        is_cooperative: bool = False,
        programmatic_stream_serialization: bool = False,
        *,
        priority: int | None = None,
        preferred_cluster: int | tuple[int, ...] | None = None,
        cluster_scheduling_policy: ClusterSchedulingPolicyType | str | None = None,
        portable_cluster_size: PortableClusterSizeType | str | None = None,
        programmatic_event: ProgrammaticEvent | Event | Mapping[str, Any] | None = None,
        launch_completion_event: Event | None = None,
        mem_sync_domain: MemSyncDomainType | str | None = None,
        mem_sync_domain_map: MemSyncDomainMap | tuple[int, int] | None = None,
        access_policy_window: AccessPolicyWindow | Mapping[str, Any] | None = None,
        preferred_shared_memory_carveout: int | None = None,
        shared_memory_mode: SharedMemoryModeType | str | None = None,
        nvlink_util_centric_scheduling: bool | None = None,
        cluster_scheduling_policy_preference: ClusterSchedulingPolicyType | str | None = None,
    ) -> None:
        if cluster_scheduling_policy is None:
            cluster_scheduling_policy = cluster_scheduling_policy_preference
        elif cluster_scheduling_policy_preference is not None:
            raise TypeError("cluster_scheduling_policy and cluster_scheduling_policy_preference are the same: give one")
        given = {
            "priority": priority, "preferred_cluster": preferred_cluster,
            "cluster_scheduling_policy": cluster_scheduling_policy, "portable_cluster_size": portable_cluster_size,
            "programmatic_event": programmatic_event, "launch_completion_event": launch_completion_event,
            "mem_sync_domain": mem_sync_domain, "mem_sync_domain_map": mem_sync_domain_map,
            "access_policy_window": access_policy_window,
            "preferred_shared_memory_carveout": preferred_shared_memory_carveout,
            "shared_memory_mode": shared_memory_mode,
            "nvlink_util_centric_scheduling": nvlink_util_centric_scheduling,
        }  # fmt: skip
        self._native_cache = None
        self._grid = dimensions("grid", grid)
        if block is None and cluster is not None:
            raise ValueError(
                f"block is required: the second positional parameter is cluster; did you mean block={cluster!r}?"
            )
        self._cluster = None if cluster is None else dimensions("cluster", cluster)
        self._block = dimensions("block", block)
        self._shmem_size = 0 if shmem_size is None else size(shmem_size)
        self._is_cooperative = bool(is_cooperative)
        self._programmatic_stream_serialization = bool(programmatic_stream_serialization)
        self._extras = {name: ATTRIBUTES[name].accept(name, given[name]) for name in EXTRAS if given[name] is not None}

    def __repr__(self) -> str:
        values = {**{name: getattr(self, name) for name in FIELDS}, **self._extras}
        return f"LaunchConfig({', '.join(f'{name}={shown(value)}' for name, value in values.items())})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LaunchConfig):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __copy__(self) -> Self:
        """Return another configuration with the same values, and the same events and buffers."""
        new = type(self).__new__(type(self))
        with changing:
            before = None
            while before != changes:
                before = changes
                for name in LaunchConfig.__slots__:
                    if name != "__weakref__":
                        setattr(new, name, getattr(self, name))
        if hasattr(self, "__dict__"):  # of a subclass
            new.__dict__.update(self.__dict__)
        return new

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return another configuration with the same values; refuse if events or buffers are among them."""
        new = self.__copy__()
        new._extras = copy.deepcopy(self._extras, memo)
        new._native_cache = None
        if hasattr(self, "__dict__"):
            new.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return new

    def _change(self, name: str, value: object) -> None:
        global changes
        with changing:
            changes += 1
            setattr(self, name, value)
            self._native_cache = None

    def _key(self) -> tuple[object, ...]:
        return (*(getattr(self, f"_{name}") for name in FIELDS), *self._extras.items())

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks, or with ``cluster`` clusters, in x, y and z."""
        return self._grid

    @grid.setter
    def grid(self, value: tuple[int, ...]) -> None:
        self._change("_grid", dimensions("grid", only_tuple("grid", value)))

    @property
    def cluster(self) -> tuple[int, int, int] | None:
        """Blocks in a cluster, in x, y and z; None for no clusters."""
        return self._cluster

    @cluster.setter
    def cluster(self, value: int | tuple[int, ...] | None) -> None:
        self._change("_cluster", None if value is None else dimensions("cluster", value))

    @property
    def block(self) -> tuple[int, int, int]:
        """Threads in a block, in x, y and z."""
        return self._block

    @block.setter
    def block(self, value: tuple[int, ...]) -> None:
        self._change("_block", dimensions("block", only_tuple("block", value)))

    @property
    def shmem_size(self) -> int:
        """Dynamic shared memory for each block, in bytes."""
        return self._shmem_size

    @shmem_size.setter
    def shmem_size(self, value: int) -> None:
        self._change("_shmem_size", size(value))

    @property
    def is_cooperative(self) -> bool:
        """Whether all blocks are resident at once."""
        return self._is_cooperative

    @is_cooperative.setter
    def is_cooperative(self, value: bool) -> None:
        self._change("_is_cooperative", bool(value))

    @property
    def programmatic_stream_serialization(self) -> bool:
        """Whether the kernel may start before its predecessor in the stream has ended."""
        return self._programmatic_stream_serialization

    @programmatic_stream_serialization.setter
    def programmatic_stream_serialization(self, value: bool) -> None:
        self._change("_programmatic_stream_serialization", bool(value))

    priority = Extra[int, int]("The priority, lower numbers first; None for the stream's.")
    preferred_cluster = Extra[Dimensions, int | tuple[int, ...]](
        "Blocks in a cluster where there is room for so many, in x, y and z."
    )
    cluster_scheduling_policy = Extra[ClusterSchedulingPolicyType, ClusterSchedulingPolicyType | str](
        "How the blocks of a cluster are put on multiprocessors."
    )

    @property
    def cluster_scheduling_policy_preference(self) -> ClusterSchedulingPolicyType | None:
        """The same as :attr:`cluster_scheduling_policy`, by the name that cuda.core has for it."""
        return self.cluster_scheduling_policy

    @cluster_scheduling_policy_preference.setter
    def cluster_scheduling_policy_preference(self, value: ClusterSchedulingPolicyType | str | None) -> None:
        self.cluster_scheduling_policy = value

    portable_cluster_size = Extra[PortableClusterSizeType, PortableClusterSizeType | str](
        "Whether clusters may have more blocks than every device allows."
    )
    programmatic_event = Extra[ProgrammaticEvent, ProgrammaticEvent | Event | Mapping[str, Any]](
        "The event that the blocks trigger."
    )
    launch_completion_event = Extra[Event, Event]("The event that is reached when all blocks have started.")
    mem_sync_domain = Extra[MemSyncDomainType, MemSyncDomainType | str](
        "The logical memory synchronization domain to run in."
    )
    mem_sync_domain_map = Extra[MemSyncDomainMap, MemSyncDomainMap | tuple[int, int]](
        "Which of the device's domains the default and the remote one are."
    )
    access_policy_window = Extra[AccessPolicyWindow, AccessPolicyWindow | Mapping[str, Any]](
        "How accesses to a piece of memory are kept in the L2 cache."
    )
    preferred_shared_memory_carveout = Extra[int, int]("The share of the L1 cache to be shared memory, in percent.")
    shared_memory_mode = Extra[SharedMemoryModeType, SharedMemoryModeType | str](
        "How much shared memory a block may have."
    )
    nvlink_util_centric_scheduling = Extra[bool, bool]("Whether blocks are placed for the traffic over NVLink.")

    @property
    def _native(self) -> Any:
        """The configuration as a ``ccc_config *``, as it is and as what it refers to is."""
        with changing:
            cached = self._native_cache
            if cached is None or lib.ccc_config_stale(cached):
                cached = None
            while cached is None:
                before = changes
                made = make_native(self)
                cached = self._native_cache = made if changes == before else None
            return cached

    @property
    def _given(self) -> dict[str, Any]:
        """What is kept of each field that becomes a launch attribute, if it was given."""
        given: dict[str, Any] = {}
        if self._cluster is not None:
            given["cluster"] = self._cluster
        if self._is_cooperative:
            given["is_cooperative"] = True
        if self._programmatic_stream_serialization:
            given["programmatic_stream_serialization"] = True
        return {**given, **self._extras}


def make_native(config: LaunchConfig) -> Any:
    """Return the native structure for a configuration."""
    given = config._given
    cluster = config.cluster or (1, 1, 1)
    x, y, z = (blocks("grid", count * factor) for count, factor in zip(config.grid, cluster))
    if config.cluster is not None and "preferred_cluster" in given:
        check_clusters((x, y, z), cluster, given["preferred_cluster"])
    native = ffi.new("ccc_config *")
    if any(ATTRIBUTES[name].refer for name in given):
        native = ffi.gc(native, lib.ccc_config_end)
    driver = native.driver
    driver.gridDimX, driver.gridDimY, driver.gridDimZ = x, y, z
    driver.blockDimX, driver.blockDimY, driver.blockDimZ = config.block
    driver.sharedMemBytes = config.shmem_size
    for index, (name, kept) in enumerate(given.items()):
        row = ATTRIBUTES[name]
        if row.refer is not None:
            referred = row.refer(kept)
            require_open(name, referred)
            lib.ccc_config_refer(native, referred._c_handle)
        attribute = native.attributes[index]
        attribute.id = row.number
        row.write(attribute.value, kept)
    driver.numAttrs = len(given)
    native.demanding = lib.CCC_DEMANDS_DEVICE if given else 0
    if "shared_memory_mode" not in given:  # which says what is allowed, whatever the kernel's attribute does
        native.shared = config.shmem_size
        native.demanding |= lib.CCC_DEMANDS_SHARED if config.shmem_size > lib.CCC_SHARED_PORTABLE else 0
    return native


def shown(value: object) -> str:
    """Return the representation of a value, of an enumeration's member that of its string."""
    return repr(value.value) if isinstance(value, enum.StrEnum) else repr(value)


def size(value: object) -> int:
    """Return a size of shared memory that the driver can take."""
    return whole("shmem_size", value, 0, LARGEST, " bytes")


def only_tuple(name: str, value: object) -> tuple[int, ...]:
    """Return a tuple as it is; the fields of a configuration are tuples."""
    if not isinstance(value, tuple):
        raise TypeError(f"{name} must be assigned a tuple, not {type(value).__name__}")
    return value
