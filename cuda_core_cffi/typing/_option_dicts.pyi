# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Options as dictionaries, for type checkers: a misspelt option is an error there too.

The fields match the classes of options, and a test compares them. There is no such module at run time.
"""

from collections.abc import Iterable, Sequence
from typing import Required, TypedDict

from numpy.typing import DTypeLike

from cuda_core_cffi._core.host import Host
from cuda_core_cffi._device.device import Device
from cuda_core_cffi._memory.copy_options import MemcpyOverlapMode, MemcpySrcAccessOrder
from cuda_core_cffi.typing import (
    AddressModeType,
    DeviceResourcesType,
    FilterModeType,
    IsStreamType,
    ManagedMemoryLocationType,
    ReadModeType,
    TensorMapInterleave,
    TensorMapL2Promotion,
    TensorMapOOBFill,
    TensorMapSwizzle,
    VirtualMemoryAccessType,
    VirtualMemoryAllocationType,
    VirtualMemoryGranularityType,
    VirtualMemoryHandleType,
    VirtualMemoryLocationType,
    WorkqueueSharingScopeType,
)

class ContextOptionsDict(TypedDict, total=False):
    """A dictionary of the fields of ``ContextOptions``."""

    resources: Required[DeviceResourcesType]

class CopyOptionsDict(TypedDict, total=False):
    """A dictionary of the fields of ``CopyOptions``."""

    src_access_order: MemcpySrcAccessOrder | str
    src_location_hint: Device | Host | None
    dst_location_hint: Device | Host | None
    overlap_mode: MemcpyOverlapMode | str

class DeviceMemoryResourceOptionsDict(TypedDict, total=False):
    """A dictionary of the fields of ``DeviceMemoryResourceOptions``."""

    ipc_enabled: bool
    max_size: int

class EventOptionsDict(TypedDict, total=False):
    """A dictionary of the fields of ``EventOptions``."""

    timing_enabled: bool | None
    blocking_sync: bool | None
    ipc_enabled: bool | None

class GraphCompleteOptionsDict(TypedDict, total=False):
    """A dictionary of the fields of ``GraphCompleteOptions``."""

    auto_free_on_launch: bool
    upload_stream: IsStreamType | None
    device_launch: bool
    use_node_priority: bool

class GraphDebugPrintOptionsDict(TypedDict, total=False):
    """A dictionary of the fields of ``GraphDebugPrintOptions``."""

    verbose: bool
    runtime_types: bool
    kernel_node_params: bool
    memcpy_node_params: bool
    memset_node_params: bool
    host_node_params: bool
    event_node_params: bool
    ext_semas_signal_node_params: bool
    ext_semas_wait_node_params: bool
    kernel_node_attributes: bool
    handles: bool
    mem_alloc_node_params: bool
    mem_free_node_params: bool
    batch_mem_op_node_params: bool
    extra_topo_info: bool
    conditional_node_params: bool

class LinkerOptionsDict(TypedDict, total=False):
    """A dictionary of the fields of ``LinkerOptions``."""

    name: str | None
    arch: str | None
    max_register_count: int | None
    time: bool | None
    verbose: bool | None
    link_time_optimization: bool | None
    ptx: bool | None
    optimization_level: int | None
    debug: bool | None
    lineinfo: bool | None
    ftz: bool | None
    prec_div: bool | None
    prec_sqrt: bool | None
    fma: bool | None
    kernels_used: str | list[str] | tuple[str, ...] | None
    variables_used: str | list[str] | tuple[str, ...] | None
    optimize_unused_variables: bool | None
    ptxas_options: str | list[str] | tuple[str, ...] | None
    split_compile: int | None
    split_compile_extended: int | None
    no_cache: bool | None
    numba_debug: bool | None
    incremental: bool | None

class ManagedMemoryResourceOptionsDict(TypedDict, total=False):
    """A dictionary of the fields of ``ManagedMemoryResourceOptions``."""

    preferred_location: int | None
    preferred_location_type: ManagedMemoryLocationType | str | None

class MipmappedArrayOptionsDict(TypedDict, total=False):
    """A dictionary of the fields of ``MipmappedArrayOptions``."""

    shape: Required[tuple[int, ...]]
    format: Required[DTypeLike]
    num_channels: Required[int]
    num_levels: Required[int]
    is_surface_load_store: bool

class OpaqueArrayOptionsDict(TypedDict, total=False):
    """A dictionary of the fields of ``OpaqueArrayOptions``."""

    shape: Required[tuple[int, ...]]
    format: Required[DTypeLike]
    num_channels: Required[int]
    is_surface_load_store: bool

class PinnedMemoryResourceOptionsDict(TypedDict, total=False):
    """A dictionary of the fields of ``PinnedMemoryResourceOptions``."""

    ipc_enabled: bool
    max_size: int
    numa_id: int | None

class ProgramOptionsDict(TypedDict, total=False):
    """A dictionary of the fields of ``ProgramOptions``."""

    name: str | None
    arch: str | None
    relocatable_device_code: bool | None
    extensible_whole_program: bool | None
    debug: bool | None
    lineinfo: bool | None
    device_code_optimize: bool | None
    ptxas_options: str | list[str] | tuple[str, ...] | None
    max_register_count: int | None
    ftz: bool | None
    prec_sqrt: bool | None
    prec_div: bool | None
    fma: bool | None
    use_fast_math: bool | None
    extra_device_vectorization: bool | None
    link_time_optimization: bool | None
    gen_opt_lto: bool | None
    define_macro: str | tuple[str, str] | list[str | tuple[str, str]] | tuple[str | tuple[str, str], ...] | None
    undefine_macro: str | list[str] | tuple[str, ...] | None
    include_path: str | list[str] | tuple[str, ...] | None
    use_bundled_headers: bool | None
    pre_include: str | list[str] | tuple[str, ...] | None
    no_source_include: bool | None
    std: str | None
    builtin_move_forward: bool | None
    builtin_initializer_list: bool | None
    disable_warnings: bool | None
    restrict: bool | None
    device_as_default_execution_space: bool | None
    device_int128: bool | None
    optimization_info: str | None
    no_display_error_number: bool | None
    diag_error: int | list[int] | tuple[int, ...] | None
    diag_suppress: int | list[int] | tuple[int, ...] | None
    diag_warn: int | list[int] | tuple[int, ...] | None
    brief_diagnostics: bool | None
    time: str | None
    split_compile: int | None
    fdevice_syntax_only: bool | None
    minimal: bool | None
    no_cache: bool | None
    fdevice_time_trace: str | None
    device_float128: bool | None
    frandom_seed: str | None
    ofast_compile: str | None
    pch: bool | None
    create_pch: str | None
    use_pch: str | None
    pch_dir: str | None
    pch_verbose: bool | None
    pch_messages: bool | None
    instantiate_templates_in_pch: bool | None
    extra_sources: list[tuple[str, str | bytes | bytearray]] | tuple[tuple[str, str | bytes | bytearray], ...] | None
    use_libdevice: bool | None
    numba_debug: bool | None
    extra_headers: list[tuple[str, str | bytes | bytearray]] | tuple[tuple[str, str | bytes | bytearray], ...] | None

class SMResourceOptionsDict(TypedDict, total=False):
    """A dictionary of the fields of ``SMResourceOptions``."""

    count: int | Sequence[int] | None
    coscheduled_sm_count: int | Sequence[int] | None
    preferred_coscheduled_sm_count: int | Sequence[int] | None
    backfill: bool | Sequence[bool]

class StreamOptionsDict(TypedDict, total=False):
    """A dictionary of the fields of ``StreamOptions``."""

    nonblocking: bool | None
    priority: int | None

class TensorMapDescriptorOptionsDict(TypedDict, total=False):
    """A dictionary of the fields of ``TensorMapDescriptorOptions``."""

    box_dim: Required[tuple[int, ...]]
    element_strides: tuple[int, ...] | None
    data_type: object
    interleave: TensorMapInterleave | str
    swizzle: TensorMapSwizzle | str
    l2_promotion: TensorMapL2Promotion | str
    oob_fill: TensorMapOOBFill | str

class TextureObjectOptionsDict(TypedDict, total=False):
    """A dictionary of the fields of ``TextureObjectOptions``."""

    address_mode: AddressModeType | str | tuple[AddressModeType | str, ...]
    filter_mode: FilterModeType | str
    read_mode: ReadModeType | str
    normalized_coords: bool
    srgb: bool
    disable_trilinear_optimization: bool
    seamless_cubemap: bool
    max_anisotropy: int
    mipmap_filter_mode: FilterModeType | str
    mipmap_level_bias: float
    min_mipmap_level_clamp: float
    max_mipmap_level_clamp: float
    border_color: tuple[float, ...] | None

class VirtualMemoryResourceOptionsDict(TypedDict, total=False):
    """A dictionary of the fields of ``VirtualMemoryResourceOptions``."""

    allocation_type: VirtualMemoryAllocationType | str
    location_type: VirtualMemoryLocationType | str
    handle_type: VirtualMemoryHandleType | str | None
    granularity: VirtualMemoryGranularityType | str
    gpu_direct_rdma: bool
    addr_hint: int | None
    addr_align: int | None
    peers: Iterable[int]
    self_access: VirtualMemoryAccessType | str | None
    peer_access: VirtualMemoryAccessType | str | None

class WorkqueueResourceOptionsDict(TypedDict, total=False):
    """A dictionary of the fields of ``WorkqueueResourceOptions``."""

    sharing_scope: WorkqueueSharingScopeType | str | None
    concurrency_limit: int | None
