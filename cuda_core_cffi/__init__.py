# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The CUDA object model for every Python: devices, streams, memory, programs and launches, over CFFI."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cuda_core_cffi._streams.callbacks  # noqa: F401  (Stream.callback reaches it through the registry)
from cuda_core_cffi._core.errors import (
    CUDAError,
    CUDAWarning,
    LinkerError,
    NVRTCError,
    NVVMError,
    UnavailableError,
    handle_return,
    raise_if_driver_error,
)
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import live_objects
from cuda_core_cffi._core.host import Host
from cuda_core_cffi._core.lazy_imports import add_lazy_names
from cuda_core_cffi._core.version import __version__
from cuda_core_cffi._device.device import Device
from cuda_core_cffi._memory import (
    Buffer,
    DeviceMemoryResource,
    GraphMemoryResource,
    LegacyPinnedMemoryResource,
    ManagedBuffer,
    MemoryResource,
)
from cuda_core_cffi._streams.context import Context
from cuda_core_cffi._streams.event import Event
from cuda_core_cffi._streams.stream import LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM, Stream

if TYPE_CHECKING:  # at run time these are imported when they are first asked for
    from cuda_core_cffi._alias.install import install_as_cuda_core
    from cuda_core_cffi._arrays.tensor_map import TensorMapDescriptor, TensorMapDescriptorOptions
    from cuda_core_cffi._code.kernel import Kernel
    from cuda_core_cffi._code.object_code import ObjectCode
    from cuda_core_cffi._compile.linker import Linker
    from cuda_core_cffi._compile.linker_options import LinkerOptions
    from cuda_core_cffi._compile.program import Program
    from cuda_core_cffi._compile.program_options import ProgramOptions
    from cuda_core_cffi._core.embedding import get_c_api, get_include, make_ffi
    from cuda_core_cffi._launching.attributes import AccessPolicyWindow, MemSyncDomainMap, ProgrammaticEvent
    from cuda_core_cffi._launching.batch import LaunchBatch
    from cuda_core_cffi._launching.config import LaunchConfig
    from cuda_core_cffi._launching.launch import launch
    from cuda_core_cffi._launching.prepared import PreparedLaunch
    from cuda_core_cffi._memory.graphics import GraphicsResource
    from cuda_core_cffi._memory.ipc import VirtualMemoryIPCBufferDescriptor
    from cuda_core_cffi._memory.managed import ManagedMemoryResource, ManagedMemoryResourceOptions
    from cuda_core_cffi._memory.pinned import PinnedMemoryResource, PinnedMemoryResourceOptions
    from cuda_core_cffi._memory.pool_options import DeviceMemoryResourceOptions
    from cuda_core_cffi._memory.virtual import VirtualMemoryBuffer, VirtualMemoryResource
    from cuda_core_cffi._memory.virtual_options import VirtualMemoryResourceOptions
    from cuda_core_cffi._streams.options import ContextOptions, EventOptions, StreamOptions
    from cuda_core_cffi._streams.resources import (
        DeviceResources,
        SMResource,
        SMResourceOptions,
        WorkqueueResource,
        WorkqueueResourceOptions,
    )

__all__ = [
    "LEGACY_DEFAULT_STREAM",
    "PER_THREAD_DEFAULT_STREAM",
    "AccessPolicyWindow",
    "Buffer",
    "CUDAError",
    "CUDAWarning",
    "Context",
    "ContextOptions",
    "Device",
    "DeviceMemoryResource",
    "DeviceMemoryResourceOptions",
    "DeviceResources",
    "Event",
    "EventOptions",
    "GraphMemoryResource",
    "GraphicsResource",
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
    "SMResource",
    "SMResourceOptions",
    "Stream",
    "StreamOptions",
    "TensorMapDescriptor",
    "TensorMapDescriptorOptions",
    "UnavailableError",
    "VirtualMemoryBuffer",
    "VirtualMemoryIPCBufferDescriptor",
    "VirtualMemoryResource",
    "VirtualMemoryResourceOptions",
    "WorkqueueResource",
    "WorkqueueResourceOptions",
    "__version__",
    "ffi",
    "get_c_api",
    "get_include",
    "handle_return",
    "install_as_cuda_core",
    "launch",
    "lib",
    "live_objects",
    "make_ffi",
    "raise_if_driver_error",
]

# Not every process launches kernels, compiles, splits devices, has options, or takes memory of the rarer kinds.
add_lazy_names(
    globals(),
    {
        "_alias.install": ("install_as_cuda_core",),
        "_arrays.tensor_map": ("TensorMapDescriptor", "TensorMapDescriptorOptions"),
        "_core.embedding": ("get_c_api", "get_include", "make_ffi"),
        "_code.kernel": ("Kernel",),
        "_launching.launch": ("launch",),
        "_launching.attributes": ("AccessPolicyWindow", "MemSyncDomainMap", "ProgrammaticEvent"),
        "_launching.batch": ("LaunchBatch",),
        "_launching.config": ("LaunchConfig",),
        "_compile.linker": ("Linker",),
        "_compile.linker_options": ("LinkerOptions",),
        "_memory.graphics": ("GraphicsResource",),
        "_memory.managed": ("ManagedMemoryResource", "ManagedMemoryResourceOptions"),
        "_memory.pool_options": ("DeviceMemoryResourceOptions",),
        "_memory.pinned": ("PinnedMemoryResource", "PinnedMemoryResourceOptions"),
        "_memory.ipc": ("VirtualMemoryIPCBufferDescriptor",),
        "_memory.virtual": ("VirtualMemoryBuffer", "VirtualMemoryResource", "VirtualMemoryResourceOptions"),
        "_code.object_code": ("ObjectCode",),
        "_launching.prepared": ("PreparedLaunch",),
        "_compile.program": ("Program",),
        "_compile.program_options": ("ProgramOptions",),
        "_streams.options": ("ContextOptions", "EventOptions", "StreamOptions"),
        "_streams.resources": (
            "DeviceResources",
            "SMResource",
            "SMResourceOptions",
            "WorkqueueResource",
            "WorkqueueResourceOptions",
        ),
    },
)
