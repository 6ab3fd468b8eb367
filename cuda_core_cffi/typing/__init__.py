# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: F403, F405 (type checkers find the names of the modules)
"""Types for annotations: enumerations whose plain strings are accepted everywhere, protocols and unions.

It imports the lazy names of ``_core``. Whoever has options or annotations may import it. The enumerations are imported
when one of them is first asked for, because to make them takes longer than to import most of the package.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from cuda_core_cffi._core.lazy_imports import add_lazy_names

if TYPE_CHECKING:  # at run time the enumerations are imported when they are first asked for
    from cuda_core_cffi._streams.resources import SMResource, WorkqueueResource
    from cuda_core_cffi.typing.enumerations import *

__all__ = [
    "AccessPropertyType",
    "AddressModeType",
    "ArrayFormatType",
    "ClusterSchedulingPolicyType",
    "CompilerBackendType",
    "CoreDumpPartType",
    "DevicePointerT",
    "DevicePointerType",
    "DeviceResourcesType",
    "FilterModeType",
    "GraphConditionalType",
    "GraphMemoryType",
    "IsStreamT",
    "IsStreamType",
    "ManagedMemoryLocationType",
    "MemSyncDomainType",
    "ObjectCodeFormatType",
    "PCHStatusType",
    "PortableClusterSizeType",
    "ProcessStateType",
    "ReadModeType",
    "SharedMemoryModeType",
    "SourceCodeType",
    "StreamMemoryBarrierType",
    "StreamWaitValueType",
    "TensorMapDataType",
    "TensorMapIm2ColWideMode",
    "TensorMapInterleave",
    "TensorMapL2Promotion",
    "TensorMapOOBFill",
    "TensorMapSwizzle",
    "VirtualMemoryAccessType",
    "VirtualMemoryAllocationType",
    "VirtualMemoryGranularityType",
    "VirtualMemoryHandleType",
    "VirtualMemoryLocationType",
    "WorkqueueSharingScopeType",
]

DevicePointerType = int | Any | None
"""An address in device or host memory: an integer, a CFFI pointer, or None."""

DevicePointerT = DevicePointerType
"""Older name of :obj:`DevicePointerType`."""

DeviceResourcesType = Sequence["SMResource | WorkqueueResource"]
"""The resources that a context is made with."""

ProcessStateType = Literal["running", "locked", "checkpointed", "failed"]
"""The states of a process, for :mod:`cuda_core_cffi.checkpoint`."""


@runtime_checkable
class IsStreamType(Protocol):
    """Anything that is a CUDA stream: it tells its address through ``__cuda_stream__``."""

    @abc.abstractmethod
    def __cuda_stream__(self) -> tuple[int, int]:
        """Return the version of the protocol, 0, and the address of the stream."""


IsStreamT = IsStreamType
"""Older name of :class:`IsStreamType`."""

add_lazy_names(globals(), {"enumerations": tuple(name for name in __all__ if name not in globals())})
