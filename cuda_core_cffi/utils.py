# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Helpers that are not part of the object model itself."""

from __future__ import annotations

from cuda_core_cffi._arrays.strided_memory_view import StridedMemoryView, args_viewable_as_strided_memory
from cuda_core_cffi._compile.program_cache import InMemoryProgramCache, ProgramCacheResource
from cuda_core_cffi._compile.program_cache_file import FileStreamProgramCache
from cuda_core_cffi._compile.program_cache_key import make_program_cache_key
from cuda_core_cffi._lifetime.log_listener import DriverLogListener
from cuda_core_cffi._memory.copy_options import CopyOptions, MemcpyOverlapMode, MemcpySrcAccessOrder, copy_batch
from cuda_core_cffi._memory.managed_buffer import discard_batch, discard_prefetch_batch, prefetch_batch
from cuda_core_cffi._memory.mem_op import FlushRemoteWrites, MemoryBarrier, WaitValue, WriteValue, batch_mem_op
from cuda_core_cffi._memory.tracking import Allocation, MemoryStatistics, TrackingMemoryResource

__all__ = [
    "Allocation",
    "CopyOptions",
    "DriverLogListener",
    "FileStreamProgramCache",
    "FlushRemoteWrites",
    "InMemoryProgramCache",
    "MemcpyOverlapMode",
    "MemcpySrcAccessOrder",
    "MemoryBarrier",
    "MemoryStatistics",
    "ProgramCacheResource",
    "StridedMemoryView",
    "TrackingMemoryResource",
    "WaitValue",
    "WriteValue",
    "args_viewable_as_strided_memory",
    "batch_mem_op",
    "copy_batch",
    "discard_batch",
    "discard_prefetch_batch",
    "make_program_cache_key",
    "prefetch_batch",
]
