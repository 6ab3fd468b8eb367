# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Workqueues: the ways by which the work of streams reaches a device, as a resource of a device or a context."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Self

from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi._core.options import check_options, member
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi.typing import WorkqueueSharingScopeType

if TYPE_CHECKING:
    from cuda_core_cffi._device.device import Device

_LARGEST_UNSIGNED: Final = 2**32 - 1

_SCOPES: Final = {
    WorkqueueSharingScopeType.DEVICE_CTX: lib.CCC_WORKQUEUE_DEVICE_CTX,
    WorkqueueSharingScopeType.GREEN_CTX_BALANCED: lib.CCC_WORKQUEUE_GREEN_CTX_BALANCED,
}


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


class WorkqueueResource(Uncopyable):
    """How the work of a context reaches its device. It is a resource that a green context can be made with.

    :attr:`DeviceResources.workqueue` makes it. Changing it changes no context: only those that are made with it later.
    """

    __slots__ = ("__weakref__", "_native")

    _native: Any  # a ccc_resource *

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise RuntimeError("WorkqueueResource cannot be constructed directly; use DeviceResources.workqueue")

    def __repr__(self) -> str:
        return f"<WorkqueueResource sharing_scope={self.sharing_scope!s} concurrency_limit={self.concurrency_limit}>"

    def configure(self, options: WorkqueueResourceOptions | Mapping[str, Any]) -> None:
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
    def _of(cls, native: Any) -> Self:
        self = object.__new__(cls)
        self._native = native
        return self
