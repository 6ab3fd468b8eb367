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

if TYPE_CHECKING:  # at run time it is imported by the first copy with options
    from cuda_core_cffi._memory.copy_options import copy_attributes

__all__ = [
    "Buffer",
    "DeviceMemoryResource",
    "GraphMemoryResource",
    "LegacyPinnedMemoryResource",
    "ManagedBuffer",
    "MemoryResource",
    "SynchronousMemoryResource",
    "copy_attributes",
]

add_lazy_names(globals(), {"copy_options": ("copy_attributes",)})
