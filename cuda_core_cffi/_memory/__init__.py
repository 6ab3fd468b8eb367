# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Buffers and the resources that they come from, copies, sharing between processes, and DLPack.

It imports ``_streams``, ``_lifetime`` and ``_core``. Devices, code, arrays, launches and graphs may import it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_core_cffi._core.lazy_imports import add_lazy_names
from cuda_core_cffi._memory.buffer import Buffer
from cuda_core_cffi._memory.graph_memory import GraphMemoryResource
from cuda_core_cffi._memory.legacy import LegacyPinnedMemoryResource, SynchronousMemoryResource
from cuda_core_cffi._memory.managed_buffer import ManagedBuffer
from cuda_core_cffi._memory.pool import DeviceMemoryResource
from cuda_core_cffi._memory.resource import MemoryResource

if TYPE_CHECKING:  # at run time these are imported when they are first asked for
    from cuda_core_cffi._memory.copy_batch import copy_batch
    from cuda_core_cffi._memory.copy_options import (
        CopyOptions,
        MemcpyOverlapMode,
        MemcpySrcAccessOrder,
        copy_attributes,
    )
    from cuda_core_cffi._memory.graphics import GraphicsResource
    from cuda_core_cffi._memory.managed import ManagedMemoryResource, ManagedMemoryResourceOptions
    from cuda_core_cffi._memory.pinned import PinnedMemoryResource, PinnedMemoryResourceOptions
    from cuda_core_cffi._memory.pool_options import DeviceMemoryResourceOptions
    from cuda_core_cffi._memory.virtual import VirtualMemoryResource
    from cuda_core_cffi._memory.virtual_options import VirtualMemoryResourceOptions

__all__ = [
    "Buffer",
    "CopyOptions",
    "DeviceMemoryResource",
    "DeviceMemoryResourceOptions",
    "GraphMemoryResource",
    "GraphicsResource",
    "LegacyPinnedMemoryResource",
    "ManagedBuffer",
    "ManagedMemoryResource",
    "ManagedMemoryResourceOptions",
    "MemcpyOverlapMode",
    "MemcpySrcAccessOrder",
    "MemoryResource",
    "PinnedMemoryResource",
    "PinnedMemoryResourceOptions",
    "SynchronousMemoryResource",
    "VirtualMemoryResource",
    "VirtualMemoryResourceOptions",
    "copy_attributes",
    "copy_batch",
]

add_lazy_names(
    globals(),
    {
        "copy_batch": ("copy_batch",),
        "copy_options": ("CopyOptions", "MemcpyOverlapMode", "MemcpySrcAccessOrder", "copy_attributes"),
        "graphics": ("GraphicsResource",),
        "managed": ("ManagedMemoryResource", "ManagedMemoryResourceOptions"),
        "pinned": ("PinnedMemoryResource", "PinnedMemoryResourceOptions"),
        "pool_options": ("DeviceMemoryResourceOptions",),
        "virtual": ("VirtualMemoryResource",),
        "virtual_options": ("VirtualMemoryResourceOptions",),
    },
)
