# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Enumerations of options, whose plain strings are accepted everywhere."""

from __future__ import annotations

import enum


class SourceCodeType(enum.StrEnum):
    """Languages that :class:`~cuda_core_cffi.Program` compiles."""

    CXX = "c++"
    PTX = "ptx"
    NVVM = "nvvm"


class ObjectCodeFormatType(enum.StrEnum):
    """Formats of compiled code."""

    PTX = "ptx"
    CUBIN = "cubin"
    LTOIR = "ltoir"
    FATBIN = "fatbin"
    OBJECT = "object"
    LIBRARY = "library"


class CompilerBackendType(enum.StrEnum):
    """What compiles or links."""

    NVRTC = "NVRTC"
    NVVM = "NVVM"
    NVJITLINK = "nvJitLink"
    DRIVER = "driver"


class GraphConditionalType(enum.StrEnum):
    """What a conditional node of a graph does with its condition."""

    IF = "if"
    WHILE = "while"
    SWITCH = "switch"


class GraphMemoryType(enum.StrEnum):
    """Where an allocation node of a graph takes memory from."""

    DEVICE = "device"
    HOST = "host"
    MANAGED = "managed"


class WorkqueueSharingScopeType(enum.StrEnum):
    """Which contexts share the workqueues of a device: all, or as few green ones as possible."""

    DEVICE_CTX = "device_ctx"
    GREEN_CTX_BALANCED = "green_ctx_balanced"


class StreamWaitValueType(enum.StrEnum):
    """What a stream waits for: how the value in memory, ``now``, compares to the one given, ``value``.

    ``"geq"`` is ``now - value >= 0`` in signed arithmetic that wraps around, so that a counter may overflow; ``"eq"``
    is ``now == value``, ``"and"`` is ``now & value != 0``, and ``"nor"`` is ``~(now | value) != 0``.
    """

    GEQ = "geq"
    EQ = "eq"
    AND = "and"
    NOR = "nor"


class StreamMemoryBarrierType(enum.StrEnum):
    """For whom a memory barrier in a stream orders writes."""

    SYSTEM = "system"
    DEVICE = "device"


class CoreDumpPartType(enum.StrEnum):
    """What core dumps of GPUs can leave out: code that is not relocated, or kinds of memory."""

    CODE = "code"
    GLOBAL_MEMORY = "global_memory"
    SHARED_MEMORY = "shared_memory"
    LOCAL_MEMORY = "local_memory"
    CONSTANT_MEMORY = "constant_memory"


class PCHStatusType(enum.StrEnum):
    """What became of a precompiled header."""

    CREATED = "created"
    NOT_ATTEMPTED = "not_attempted"
    FAILED = "failed"


class ManagedMemoryLocationType(enum.StrEnum):
    """Where managed memory should be."""

    DEVICE = "device"
    HOST = "host"
    HOST_NUMA = "host_numa"


class VirtualMemoryAccessType(enum.StrEnum):
    """What a device may do with virtual memory."""

    READ_WRITE = "rw"
    READ = "r"


class VirtualMemoryAllocationType(enum.StrEnum):
    """Whether the physical memory stays where it is."""

    PINNED = "pinned"
    MANAGED = "managed"


class VirtualMemoryGranularityType(enum.StrEnum):
    """What sizes of virtual memory are rounded up to: the smallest unit possible, or the fastest."""

    MINIMUM = "minimum"
    RECOMMENDED = "recommended"


class VirtualMemoryHandleType(enum.StrEnum):
    """What physical memory can be shared by with other processes."""

    POSIX_FD = "posix_fd"
    WIN32_KMT = "win32_kmt"
    FABRIC = "fabric"


class VirtualMemoryLocationType(enum.StrEnum):
    """Where physical memory is."""

    DEVICE = "device"
    HOST = "host"
    HOST_NUMA = "host_numa"
    HOST_NUMA_CURRENT = "host_numa_current"


class ArrayFormatType(enum.StrEnum):
    """What each channel of an element of an opaque array is."""

    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    FLOAT16 = "float16"
    FLOAT32 = "float32"


class AddressModeType(enum.StrEnum):
    """What a texture gives where a coordinate is out of range."""

    WRAP = "wrap"
    CLAMP = "clamp"
    MIRROR = "mirror"
    BORDER = "border"


class FilterModeType(enum.StrEnum):
    """Whether a texture gives the nearest element, or interpolates between the nearest ones."""

    POINT = "point"
    LINEAR = "linear"


class ReadModeType(enum.StrEnum):
    """Whether a texture gives integers as they are, or as floats: of 0 to 1, or -1 to 1 if they are signed."""

    ELEMENT_TYPE = "element_type"
    NORMALIZED_FLOAT = "normalized_float"


class AccessPropertyType(enum.StrEnum):
    """How long what a kernel accesses stays in the L2 cache."""

    NORMAL = "normal"
    STREAMING = "streaming"
    PERSISTING = "persisting"


class ClusterSchedulingPolicyType(enum.StrEnum):
    """How the blocks of a cluster are put on multiprocessors."""

    DEFAULT = "default"
    SPREAD = "spread"
    LOAD_BALANCING = "load_balancing"
    RUBIN_DSMEM_LOCALITY = "rubin_dsmem_locality"


class MemSyncDomainType(enum.StrEnum):
    """The logical memory synchronization domains: a fence waits for the writes of its own domain only."""

    DEFAULT = "default"
    REMOTE = "remote"


class PortableClusterSizeType(enum.StrEnum):
    """Whether clusters may be larger than every device allows; the default is what the kernel's attribute says."""

    DEFAULT = "default"
    REQUIRE_PORTABLE = "require_portable"
    ALLOW_NON_PORTABLE = "allow_non_portable"


class SharedMemoryModeType(enum.StrEnum):
    """How much shared memory a block may have; the default is what the kernel's attribute says."""

    DEFAULT = "default"
    REQUIRE_PORTABLE = "require_portable"
    ALLOW_NON_PORTABLE = "allow_non_portable"
    ALLOW_OVERSIZED = "allow_oversized"
    PREFER_OVERSIZED = "prefer_oversized"


class TensorMapDataType(enum.IntEnum):
    """What the elements of a tensor map are, with the numbers of the driver's ``CUtensorMapDataType``."""

    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    INT32 = 3
    UINT64 = 4
    INT64 = 5
    FLOAT16 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    BFLOAT16 = 9
    FLOAT32_FTZ = 10
    TFLOAT32 = 11
    TFLOAT32_FTZ = 12


class TensorMapInterleave(enum.IntEnum):
    """How channels lie in memory: together, or in groups of 16 or 32 bytes (NC/8HWC8 and NC/16HWC16)."""

    NONE = 0
    INTERLEAVE_16B = 1
    INTERLEAVE_32B = 2


class TensorMapSwizzle(enum.IntEnum):
    """How pieces of a box are permuted in shared memory, so that threads that read a column meet no bank conflict.

    The span is how many bytes are permuted among each other. Pieces have 16 bytes, or as many as an atom says.
    """

    NONE = 0
    SWIZZLE_32B = 1
    SWIZZLE_64B = 2
    SWIZZLE_128B = 3
    SWIZZLE_128B_ATOM_32B = 4
    SWIZZLE_128B_ATOM_32B_FLIP_8B = 5
    SWIZZLE_128B_ATOM_64B = 6


class TensorMapL2Promotion(enum.IntEnum):
    """How much is fetched into the L2 cache at once."""

    NONE = 0
    L2_64B = 1
    L2_128B = 2
    L2_256B = 3


class TensorMapOOBFill(enum.IntEnum):
    """What elements outside of the tensor are read as: 0, or a NaN that a multiplication takes for 0."""

    NONE = 0
    NAN_REQUEST_ZERO_FMA = 1


class TensorMapIm2ColWideMode(enum.IntEnum):
    """How many pixels along the width are loaded: as many as the map says, or 128."""

    W = 0
    W128 = 1
