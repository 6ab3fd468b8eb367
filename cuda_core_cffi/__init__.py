# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The CUDA object model for every Python: devices, streams, memory, programs and launches, over CFFI."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cuda_core_cffi._callbacks  # noqa: F401  (Stream.callback reaches it through the registry)
from cuda_core_cffi._context import Context
from cuda_core_cffi._device import Device
from cuda_core_cffi._errors import (
    CUDAError,
    CUDAWarning,
    LinkerError,
    NVRTCError,
    NVVMError,
    UnavailableError,
    handle_return,
    raise_if_driver_error,
)
from cuda_core_cffi._event import Event, EventOptions
from cuda_core_cffi._ffi import ffi, lib
from cuda_core_cffi._handle import live_objects
from cuda_core_cffi._host import Host
from cuda_core_cffi._late import add_late_names
from cuda_core_cffi._memory import (
    Buffer,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    GraphMemoryResource,
    LegacyPinnedMemoryResource,
    ManagedBuffer,
    MemoryResource,
)
from cuda_core_cffi._stream import LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM, Stream, StreamOptions
from cuda_core_cffi._version import __version__

if TYPE_CHECKING:  # at run time these are imported when they are first asked for
    from cuda_core_cffi._embedding import get_c_api, get_include, make_ffi
    from cuda_core_cffi._kernel import Kernel
    from cuda_core_cffi._launch import launch
    from cuda_core_cffi._launch_attributes import AccessPolicyWindow, MemSyncDomainMap, ProgrammaticEvent
    from cuda_core_cffi._launch_batch import LaunchBatch
    from cuda_core_cffi._launch_config import LaunchConfig
    from cuda_core_cffi._linker import Linker
    from cuda_core_cffi._linker_options import LinkerOptions
    from cuda_core_cffi._memory import (
        ManagedMemoryResource,
        ManagedMemoryResourceOptions,
        PinnedMemoryResource,
        PinnedMemoryResourceOptions,
        VirtualMemoryResource,
        VirtualMemoryResourceOptions,
    )
    from cuda_core_cffi._module import ObjectCode
    from cuda_core_cffi._prepared_launch import PreparedLaunch
    from cuda_core_cffi._program import Program
    from cuda_core_cffi._program_options import ProgramOptions

__all__ = [
    "LEGACY_DEFAULT_STREAM",
    "PER_THREAD_DEFAULT_STREAM",
    "AccessPolicyWindow",
    "Buffer",
    "CUDAError",
    "CUDAWarning",
    "Context",
    "Device",
    "DeviceMemoryResource",
    "DeviceMemoryResourceOptions",
    "Event",
    "EventOptions",
    "GraphMemoryResource",
    "Host",
    "Kernel",
    "LaunchBatch",
    "LaunchConfig",
    "LegacyPinnedMemoryResource",
    "Linker",
    "LinkerError",
    "LinkerOptions",
    "ManagedBuffer",
    "ManagedMemoryResource",
    "ManagedMemoryResourceOptions",
    "MemSyncDomainMap",
    "MemoryResource",
    "NVRTCError",
    "NVVMError",
    "ObjectCode",
    "PinnedMemoryResource",
    "PinnedMemoryResourceOptions",
    "PreparedLaunch",
    "Program",
    "ProgramOptions",
    "ProgrammaticEvent",
    "Stream",
    "StreamOptions",
    "UnavailableError",
    "VirtualMemoryResource",
    "VirtualMemoryResourceOptions",
    "__version__",
    "ffi",
    "get_c_api",
    "get_include",
    "handle_return",
    "launch",
    "lib",
    "live_objects",
    "make_ffi",
    "raise_if_driver_error",
]

# Not every process launches kernels, compiles, or takes memory of the rarer kinds.
add_late_names(
    globals(),
    {
        "_embedding": ("get_c_api", "get_include", "make_ffi"),
        "_kernel": ("Kernel",),
        "_launch": ("launch",),
        "_launch_attributes": ("AccessPolicyWindow", "MemSyncDomainMap", "ProgrammaticEvent"),
        "_launch_batch": ("LaunchBatch",),
        "_launch_config": ("LaunchConfig",),
        "_linker": ("Linker",),
        "_linker_options": ("LinkerOptions",),
        "_memory.managed": ("ManagedMemoryResource", "ManagedMemoryResourceOptions"),
        "_memory.pinned": ("PinnedMemoryResource", "PinnedMemoryResourceOptions"),
        "_memory.virtual": ("VirtualMemoryResource", "VirtualMemoryResourceOptions"),
        "_module": ("ObjectCode",),
        "_prepared_launch": ("PreparedLaunch",),
        "_program": ("Program",),
        "_program_options": ("ProgramOptions",),
    },
)
