# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Resources of a device or a context, above all its multiprocessors (SMs), and how these are split."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeVar

from cuda_core_cffi._core.copying import NoConstructor
from cuda_core_cffi._core.errors import UnavailableError, check, cuda_version, failure
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi._core.options import check_options, member
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi.typing import WorkqueueSharingScopeType

if TYPE_CHECKING:
    from cuda_core_cffi._device.device import Device
    from cuda_core_cffi._streams.context import Context
    from cuda_core_cffi.typing._option_dicts import SMResourceOptionsDict, WorkqueueResourceOptionsDict

T = TypeVar("T")

_SM: Final[int] = lib.CU_DEV_RESOURCE_TYPE_SM
_WORKQUEUE_CONFIG: Final[int] = lib.CCC_RESOURCE_WORKQUEUE_CONFIG
_BACKFILL: Final[int] = lib.CCC_SM_GROUP_BACKFILL
_FIRST_WITH_GROUPS: Final = 13010  # the version of CUDA that brought groups and workqueues
_LARGEST_UNSIGNED: Final = 2**32 - 1

_SCOPES: Final = {
    WorkqueueSharingScopeType.DEVICE_CTX: lib.CCC_WORKQUEUE_DEVICE_CTX,
    WorkqueueSharingScopeType.GREEN_CTX_BALANCED: lib.CCC_WORKQUEUE_GREEN_CTX_BALANCED,
}


@dataclasses.dataclass
class SMResourceOptions:
    """How the multiprocessors of a resource are split.

    A field is one value for all groups, or a sequence with one for each.

    Attributes
    ----------
    count : int or sequence of int, optional
        How many multiprocessors the group has, or each of several groups. None, or 0, leaves that to the driver: as
        many as there are from CUDA 13.1 on, and before that the smallest group that is possible.
    coscheduled_sm_count : int or sequence of int, optional
        The multiprocessors of a group come in sets of so many, each of which can run the blocks of a cluster at the
        same time. By default what the device has, :attr:`SMResource.coscheduled_alignment`.
    preferred_coscheduled_sm_count : int or sequence of int, optional
        The size of larger sets, where that is possible.
    backfill : bool or sequence of bool, optional
        Fill the group up with multiprocessors of incomplete sets, so that it can have any even number. Default False.

    Notes
    -----
    Groups of different sizes, and the numbers of coscheduled multiprocessors, need a driver for CUDA 13.1 or newer.
    An older one rounds ``count`` up to what is possible.
    """

    count: int | Sequence[int] | None = None
    coscheduled_sm_count: int | Sequence[int] | None = None
    preferred_coscheduled_sm_count: int | Sequence[int] | None = None
    backfill: bool | Sequence[bool] = False


@dataclasses.dataclass
class WorkqueueResourceOptions:
    """What a workqueue resource is to be. None leaves a setting as it is.

    Attributes
    ----------
    sharing_scope : WorkqueueSharingScopeType or str, optional
        ``"device_ctx"``: all contexts of the device share all workqueues, as is usual. ``"green_ctx_balanced"``: green
        contexts with this scope have different workqueues, as far as there are enough.
    concurrency_limit : int, optional
        How many streams are expected to have work at the same time, from 1 on. The driver has as many workqueues as
        ``CUDA_DEVICE_MAX_CONNECTIONS`` says, 1 to 32; beyond that, work may wait for other work.

    Raises
    ------
    TypeError
        If the limit is no int.
    ValueError
        If there is no such scope, or the limit is less than 1.
    OverflowError
        If the limit does not fit into 32 bits.
    """

    sharing_scope: WorkqueueSharingScopeType | str | None = None
    concurrency_limit: int | None = None

    def __post_init__(self) -> None:
        if self.sharing_scope is not None:
            member(WorkqueueSharingScopeType, self.sharing_scope, "sharing_scope")
        limit = self.concurrency_limit
        if limit is None:
            return
        limit = int(limit) if isinstance(limit, bool) else integer(limit, "concurrency_limit", "an int or None")
        if limit < 1:
            raise ValueError(f"concurrency_limit must be 1 or more, not {limit}")
        if limit > _LARGEST_UNSIGNED:
            raise OverflowError(f"concurrency_limit must be {_LARGEST_UNSIGNED} or less, not {limit}")


class Group(NamedTuple):
    """What is asked of a group. 0 leaves a number to the driver."""

    size: int
    coscheduled: int
    preferred: int
    backfill: bool


class SMResource(NoConstructor):
    """A set of multiprocessors of a device. It is a resource that a green context can be made with.

    :attr:`DeviceResources.sm` is the whole set of a device or a context, and :meth:`split` makes smaller ones.
    """

    __slots__ = ("__weakref__", "_alignment", "_device_id", "_is_dry", "_least", "_native")

    _MADE_BY = "DeviceResources.sm or SMResource.split"
    _native: Any  # a ccc_resource *
    _device_id: int
    _least: int  # drivers before 13.1 say these two of no part
    _alignment: int
    _is_dry: bool

    def __repr__(self) -> str:
        return f"<SMResource sm_count={self.sm_count}{' dry run' if self._is_dry else ''}>"

    def split(
        self, options: SMResourceOptions | SMResourceOptionsDict, *, dry_run: bool = False
    ) -> tuple[list[SMResource], SMResource]:
        """Split the set into groups that have no multiprocessor in common, and what is left.

        Parameters
        ----------
        options : SMResourceOptions
            What the groups are to be.
        dry_run : bool, optional
            Only find out how large the groups would be. No context can be made with them.

        Returns
        -------
        tuple of list of SMResource and SMResource
            The groups, and the rest, whose :attr:`sm_count` may be 0.

        Raises
        ------
        TypeError, ValueError
            If an option is of another type, negative, or a sequence that does not fit to ``count``; or this set comes
            from a dry run.
        UnavailableError
            If that needs a newer driver: groups of different sizes, and numbers of coscheduled multiprocessors.
        CUDAError
            If there are not enough multiprocessors, or groups of such sizes are not possible; or this set comes from a
            split itself: first make a context with it, whose set can be split again.
        """
        groups = read_groups(check_options(SMResourceOptions, options, "SMResource.split"))
        if self._is_dry:
            raise ValueError("a set of multiprocessors from a dry run cannot be split")
        alike = all(group == (groups[0].size, 0, 0, groups[0].backfill) for group in groups)
        if alike and min(lib.ccc_driver_version(), lib.CUDA_VERSION) < _FIRST_WITH_GROUPS:
            return self._split_by_count(groups, bool(dry_run))
        return self._split(groups, bool(dry_run))

    @property
    def handle(self) -> int:
        """The address of the ``CUdevResource``, which is valid as long as this object."""
        return int(ffi.cast("uintptr_t", self._native))

    @property
    def sm_count(self) -> int:
        """How many multiprocessors there are."""
        return int(self._native.sm.count)

    @property
    def min_partition_size(self) -> int:
        """How many multiprocessors a group has at least."""
        return self._least

    @property
    def coscheduled_alignment(self) -> int:
        """How many multiprocessors are in a set that can run the blocks of a cluster at the same time."""
        return self._alignment

    @property
    def flags(self) -> int:
        """The driver's flags of the set (``CUdevSmResourceGroup_flags``)."""
        return int(self._native.sm.flags)

    @classmethod
    def _create(cls, native: Any, device_id: int, like: SMResource | None = None, is_dry: bool = False) -> Self:
        self = object.__new__(cls)
        self._native = native
        self._device_id = device_id
        self._least = int(native.sm.least) or (like._least if like else 0)
        self._alignment = int(native.sm.alignment) or (like._alignment if like else 0)
        self._is_dry = is_dry
        return self

    def _parts(self, natives: Any, count: int, rest: Any, is_dry: bool) -> tuple[list[SMResource], SMResource]:
        """Return objects for the parts that the driver wrote, each with a structure of its own."""
        copies = [ffi.new("ccc_resource *", natives[i]) for i in range(count)]
        return (
            [SMResource._create(native, self._device_id, self, is_dry) for native in copies],
            SMResource._create(rest, self._device_id, self, is_dry),
        )

    def _split_by_count(self, groups: list[Group], is_dry: bool) -> tuple[list[SMResource], SMResource]:
        parts, rest = ffi.new("ccc_resource[]", len(groups)), ffi.new("ccc_resource *")
        made = ffi.new("unsigned int *", len(groups))
        flags = lib.CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING if groups[0].backfill else 0
        check(lib.ccc_sm_split_by_count(self._native, flags, groups[0].size, parts, made, rest))
        if made[0] < len(groups):
            raise failure(
                lib.CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                "cuDevSmResourceSplitByCount",
                f"; {self.sm_count} multiprocessors make {made[0]} such groups, not {len(groups)}",
            )
        return self._parts(parts, len(groups), rest, is_dry)

    def _split(self, groups: list[Group], is_dry: bool) -> tuple[list[SMResource], SMResource]:
        parts, rest = ffi.new("ccc_resource[]", len(groups)), ffi.new("ccc_resource *")
        wanted = ffi.new("ccc_sm_group[]", len(groups))
        for native, group in zip(wanted, groups, strict=True):
            native.count, native.coscheduled, native.preferred = group.size, group.coscheduled, group.preferred
            native.flags = _BACKFILL if group.backfill else 0
        if not is_dry:
            check(lib.ccc_sm_split(self._native, wanted, len(groups), parts, rest))
            return self._parts(parts, len(groups), rest, False)
        check(lib.ccc_sm_split(self._native, wanted, len(groups), ffi.NULL, ffi.NULL))
        for part, native in zip(parts, wanted, strict=True):
            part.type = _SM
            part.sm.count, part.sm.alignment, part.sm.flags = native.count, native.coscheduled, native.flags
        rest.type = _SM
        rest.sm.count = self.sm_count - sum(native.count for native in wanted)
        return self._parts(parts, len(groups), rest, True)


class WorkqueueResource(NoConstructor):
    """How the work of a context reaches its device. It is a resource that a green context can be made with.

    :attr:`DeviceResources.workqueue` makes it. Changing it changes no context: only those that are made with it later.
    """

    __slots__ = ("__weakref__", "_native")

    _MADE_BY = "DeviceResources.workqueue"
    _native: Any  # a ccc_resource *

    def __repr__(self) -> str:
        return f"<WorkqueueResource sharing_scope={self.sharing_scope!s} concurrency_limit={self.concurrency_limit}>"

    def configure(self, options: WorkqueueResourceOptions | WorkqueueResourceOptionsDict) -> None:
        """Change the resource itself.

        Parameters
        ----------
        options : WorkqueueResourceOptions
            What to change.

        Raises
        ------
        TypeError, ValueError, OverflowError
            As :class:`WorkqueueResourceOptions`. Then nothing is changed.
        """
        options = check_options(WorkqueueResourceOptions, options, "WorkqueueResource.configure")
        options.__post_init__()  # the fields may have been changed since
        if options.sharing_scope is not None:
            self._native.workqueue.scope = _SCOPES[WorkqueueSharingScopeType(options.sharing_scope)]
        if options.concurrency_limit is not None:
            self._native.workqueue.limit = int(options.concurrency_limit)

    @property
    def handle(self) -> int:
        """The address of the ``CUdevResource`` with the configuration, which is valid as long as this object."""
        return int(ffi.cast("uintptr_t", self._native))

    @property
    def sharing_scope(self) -> WorkqueueSharingScopeType:
        """Who else has the workqueues.

        Raises
        ------
        RuntimeError
            If the driver says what has no name here.
        """
        number = self._native.workqueue.scope
        for scope, known in _SCOPES.items():
            if known == number:
                return scope
        raise RuntimeError(f"the sharing scope of the workqueues is {number}, which has no name")

    @property
    def concurrency_limit(self) -> int:
        """How many streams are expected to have work at the same time."""
        return int(self._native.workqueue.limit)

    @property
    def device(self) -> Device:
        """The :class:`Device` that the workqueues are of."""
        return registry.device(self._device_id)

    @property
    def _device_id(self) -> int:
        return int(self._native.workqueue.device)

    @classmethod
    def _create(cls, native: Any) -> Self:
        self = object.__new__(cls)
        self._native = native
        return self


class DeviceResources(NoConstructor):
    """What resources there are: all those of a device, or those that a context has.

    They come from :attr:`Device.resources`, :attr:`Context.resources` and :attr:`Stream.resources`.
    """

    __slots__ = ("__weakref__", "_context", "_device_id")

    _MADE_BY = "Device.resources, Context.resources or Stream.resources"
    _context: Context | None  # None: the whole device is meant
    _device_id: int

    def __repr__(self) -> str:
        return f"<DeviceResources of {self._context if self._context else f'device {self._device_id}'}>"

    @property
    def sm(self) -> SMResource:
        """The multiprocessors.

        Raises
        ------
        CUDAError
            If the driver cannot tell.
        RuntimeError
            If the context is closed.
        UnavailableError
            If the driver is older than CUDA 12.4.
        """
        return SMResource._create(self._query(_SM), self._device_id)

    @property
    def workqueue(self) -> WorkqueueResource:
        """The workqueues.

        Raises
        ------
        CUDAError
            If the driver cannot tell.
        RuntimeError
            If the context is closed.
        UnavailableError
            If the driver is older than CUDA 13.1.
        """
        check(lib.ccc_init())
        installed = lib.ccc_driver_version()
        if installed < _FIRST_WITH_GROUPS:
            raise UnavailableError(
                f"workqueues as resources need a driver for CUDA {cuda_version(_FIRST_WITH_GROUPS)}; the installed one "
                f"is for {cuda_version(installed)}: update the NVIDIA driver"
            )
        return WorkqueueResource._create(self._query(_WORKQUEUE_CONFIG))

    @classmethod
    def _create(cls, device_id: int, context: Context | None = None) -> Self:
        self = object.__new__(cls)
        self._context, self._device_id = context, device_id
        return self

    def _query(self, kind: int) -> Any:
        native = ffi.new("ccc_resource *")
        if self._context is None:
            check(lib.ccc_device_resource(self._device_id, kind, native))
        else:
            status = lib.ccc_context_resource(self._context._c_handle, kind, native)
            if status:
                raise self._context._failure(status)
        return native


def read_groups(options: SMResourceOptions) -> list[Group]:
    """Return what the options ask of each group, or raise what is wrong with them."""
    several = is_sequence(options.count)
    counts = [read_number(count, "count") for count in (options.count if several else (options.count,))]  # type: ignore[union-attr]
    if not counts:
        raise ValueError("count is an empty sequence: it has one number for each group")

    def spread(name: str, read: Callable[[Any, str], T]) -> list[T]:
        value = getattr(options, name)
        if not is_sequence(value):
            return [read(value, name)] * len(counts)
        if not several:
            raise ValueError(f"{name} is a sequence and count is not: it is count that says how many groups there are")
        if len(value) != len(counts):
            raise ValueError(f"{name} has {len(value)} values, and count has {len(counts)}: one for each group")
        return [read(item, name) for item in value]

    return [
        Group(*fields)
        for fields in zip(
            counts,
            spread("coscheduled_sm_count", read_number),
            spread("preferred_coscheduled_sm_count", read_number),
            spread("backfill", read_flag),
            strict=True,
        )
    ]


def is_sequence(value: object) -> bool:
    """Tell whether an option has a value for each group."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def read_number(value: Any, name: str) -> int:
    """Return a number of multiprocessors, 0 for None."""
    if value is None or value is False:
        return 0
    number = 1 if value is True else integer(value, name, "an int, a sequence of ints or None")
    if number < 0:
        raise ValueError(f"{name} must be 0 or more, not {number}")
    return number


def read_flag(value: Any, name: str) -> bool:
    """Return whether a group has a property."""
    if isinstance(value, str | bytes):
        raise TypeError(f"{name} must be a bool or a sequence of bools, not {type(value).__name__}: {value!r}")
    return bool(value)
