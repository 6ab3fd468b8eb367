# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Properties of devices: one for each attribute that the driver has."""

from __future__ import annotations

import warnings
from typing import Any

from cuda_core_cffi._core.errors import check
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.registry import registry


class IntProperty:
    """A device attribute, named as the property that holds it; asked for once, then kept.

    Parameters
    ----------
    default : int, optional
        The value where the driver, or the header of this build, does not know the attribute. Default 0.
    """

    def __init__(self, default: int = 0) -> None:
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name
        self._attribute = getattr(lib, f"CU_DEVICE_ATTRIBUTE_{name.upper()}", None)
        self.__doc__ = f"The driver's ``CU_DEVICE_ATTRIBUTE_{name.upper()}``."

    def __get__(self, properties: Any, owner: type | None = None) -> int:
        if properties is None:
            return self  # type: ignore[return-value]  # on the class, the descriptor itself
        value = self._read(properties._device_id)
        properties.__dict__[self._name] = value  # found first from now on
        return value

    def _read(self, device: int) -> int:
        if self._attribute is None:
            return self._default
        value = ffi.new("int *")
        unknown = int(lib.CUDA_ERROR_INVALID_VALUE)  # the attribute is newer than the driver
        probe = lib.ccc_probe_begin(b"cuDeviceGetAttribute", unknown)
        status = lib.cuDeviceGetAttribute(value, self._attribute, device)
        lib.ccc_probe_end(probe, status == unknown)
        if status == unknown:
            return self._default
        check(status, "cuDeviceGetAttribute")
        return int(value[0])


class BoolProperty(IntProperty):
    """A device attribute that is either on or off."""

    def _read(self, device: int) -> bool:
        return bool(super()._read(device))


class DeprecatedProperty(BoolProperty):
    """A device attribute that another one replaces."""

    def __init__(self, instead: str) -> None:
        super().__init__()
        self._instead = instead

    def __get__(self, properties: Any, owner: type | None = None) -> int:
        if properties is None:
            return self  # type: ignore[return-value]
        warnings.warn(f"{self._name} is deprecated: use {self._instead}", DeprecationWarning, stacklevel=2)
        return self._read(properties._device_id)


class DeviceProperties:
    """What a device can do, as :attr:`Device.properties`.

    Every property is named after the driver's attribute in lower case: ``max_threads_per_block`` is
    ``CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK``, and in its unit. An attribute that the driver is too old for is 0 or
    False, and ``host_numa_id`` is -1.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise RuntimeError("DeviceProperties cannot be constructed directly; use Device.properties")

    @classmethod
    def _create(cls, device_id: int) -> DeviceProperties:
        self = cls.__new__(cls)
        self.__dict__["_device_id"] = device_id
        return self

    def __reduce__(self) -> tuple[object, ...]:
        """Refer to the device, whose properties are their own copy."""
        return (getattr, (registry.device(self._device_id), "properties"))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name!r} cannot be set: the properties of a device are read-only")

    _device_id: int

    max_threads_per_block = IntProperty()
    max_block_dim_x = IntProperty()
    max_block_dim_y = IntProperty()
    max_block_dim_z = IntProperty()
    max_grid_dim_x = IntProperty()
    max_grid_dim_y = IntProperty()
    max_grid_dim_z = IntProperty()
    max_shared_memory_per_block = IntProperty()
    total_constant_memory = IntProperty()
    warp_size = IntProperty()
    max_pitch = IntProperty()
    maximum_texture1d_width = IntProperty()
    maximum_texture1d_linear_width = IntProperty()
    maximum_texture1d_mipmapped_width = IntProperty()
    maximum_texture2d_width = IntProperty()
    maximum_texture2d_height = IntProperty()
    maximum_texture2d_linear_width = IntProperty()
    maximum_texture2d_linear_height = IntProperty()
    maximum_texture2d_linear_pitch = IntProperty()
    maximum_texture2d_mipmapped_width = IntProperty()
    maximum_texture2d_mipmapped_height = IntProperty()
    maximum_texture3d_width = IntProperty()
    maximum_texture3d_height = IntProperty()
    maximum_texture3d_depth = IntProperty()
    maximum_texture3d_width_alternate = IntProperty()
    maximum_texture3d_height_alternate = IntProperty()
    maximum_texture3d_depth_alternate = IntProperty()
    maximum_texturecubemap_width = IntProperty()
    maximum_texture1d_layered_width = IntProperty()
    maximum_texture1d_layered_layers = IntProperty()
    maximum_texture2d_layered_width = IntProperty()
    maximum_texture2d_layered_height = IntProperty()
    maximum_texture2d_layered_layers = IntProperty()
    maximum_texturecubemap_layered_width = IntProperty()
    maximum_texturecubemap_layered_layers = IntProperty()
    maximum_surface1d_width = IntProperty()
    maximum_surface2d_width = IntProperty()
    maximum_surface2d_height = IntProperty()
    maximum_surface3d_width = IntProperty()
    maximum_surface3d_height = IntProperty()
    maximum_surface3d_depth = IntProperty()
    maximum_surface1d_layered_width = IntProperty()
    maximum_surface1d_layered_layers = IntProperty()
    maximum_surface2d_layered_width = IntProperty()
    maximum_surface2d_layered_height = IntProperty()
    maximum_surface2d_layered_layers = IntProperty()
    maximum_surfacecubemap_width = IntProperty()
    maximum_surfacecubemap_layered_width = IntProperty()
    maximum_surfacecubemap_layered_layers = IntProperty()
    max_registers_per_block = IntProperty()
    clock_rate = IntProperty()
    texture_alignment = IntProperty()
    texture_pitch_alignment = IntProperty()
    gpu_overlap = DeprecatedProperty("async_engine_count")
    multiprocessor_count = IntProperty()
    kernel_exec_timeout = BoolProperty()
    integrated = BoolProperty()
    can_map_host_memory = BoolProperty()
    compute_mode = IntProperty()
    concurrent_kernels = BoolProperty()
    ecc_enabled = BoolProperty()
    pci_bus_id = IntProperty()
    pci_device_id = IntProperty()
    pci_domain_id = IntProperty()
    tcc_driver = BoolProperty()
    memory_clock_rate = IntProperty()
    global_memory_bus_width = IntProperty()
    l2_cache_size = IntProperty()
    max_threads_per_multiprocessor = IntProperty()
    unified_addressing = BoolProperty()
    compute_capability_major = IntProperty()
    compute_capability_minor = IntProperty()
    global_l1_cache_supported = BoolProperty()
    local_l1_cache_supported = BoolProperty()
    max_shared_memory_per_multiprocessor = IntProperty()
    max_registers_per_multiprocessor = IntProperty()
    managed_memory = BoolProperty()
    multi_gpu_board = BoolProperty()
    multi_gpu_board_group_id = IntProperty()
    host_native_atomic_supported = BoolProperty()
    single_to_double_precision_perf_ratio = IntProperty()
    pageable_memory_access = BoolProperty()
    concurrent_managed_access = BoolProperty()
    compute_preemption_supported = BoolProperty()
    can_use_host_pointer_for_registered_mem = BoolProperty()
    cooperative_launch = BoolProperty()
    max_shared_memory_per_block_optin = IntProperty()
    pageable_memory_access_uses_host_page_tables = BoolProperty()
    direct_managed_mem_access_from_host = BoolProperty()
    virtual_memory_management_supported = BoolProperty()
    handle_type_posix_file_descriptor_supported = BoolProperty()
    handle_type_win32_handle_supported = BoolProperty()
    handle_type_win32_kmt_handle_supported = BoolProperty()
    max_blocks_per_multiprocessor = IntProperty()
    generic_compression_supported = BoolProperty()
    max_persisting_l2_cache_size = IntProperty()
    max_access_policy_window_size = IntProperty()
    gpu_direct_rdma_with_cuda_vmm_supported = BoolProperty()
    reserved_shared_memory_per_block = IntProperty()
    sparse_cuda_array_supported = BoolProperty()
    read_only_host_register_supported = BoolProperty()
    memory_pools_supported = BoolProperty()
    gpu_direct_rdma_supported = BoolProperty()
    gpu_direct_rdma_flush_writes_options = IntProperty()
    gpu_direct_rdma_writes_ordering = IntProperty()
    mempool_supported_handle_types = IntProperty()
    deferred_mapping_cuda_array_supported = BoolProperty()
    numa_config = IntProperty()
    numa_id = IntProperty()
    multicast_supported = BoolProperty()
    surface_alignment = IntProperty()
    async_engine_count = IntProperty()
    can_tex2d_gather = BoolProperty()
    maximum_texture2d_gather_width = IntProperty()
    maximum_texture2d_gather_height = IntProperty()
    stream_priorities_supported = BoolProperty()
    can_flush_remote_writes = BoolProperty()
    host_register_supported = BoolProperty()
    timeline_semaphore_interop_supported = BoolProperty()
    cluster_launch = BoolProperty()
    can_use_64_bit_stream_mem_ops = BoolProperty()
    can_use_stream_wait_value_nor = BoolProperty()
    dma_buf_supported = BoolProperty()
    ipc_event_supported = BoolProperty()
    mem_sync_domain_count = IntProperty()
    tensor_map_access_supported = BoolProperty()
    handle_type_fabric_supported = BoolProperty()
    unified_function_pointers = BoolProperty()
    mps_enabled = BoolProperty()
    host_numa_id = IntProperty(-1)
    d3d12_cig_supported = BoolProperty()
    mem_decompress_algorithm_mask = IntProperty()
    mem_decompress_maximum_length = IntProperty()
    vulkan_cig_supported = BoolProperty()
    gpu_pci_device_id = IntProperty()
    gpu_pci_subsystem_id = IntProperty()
    host_numa_virtual_memory_management_supported = BoolProperty()
    host_numa_memory_pools_supported = BoolProperty()
    host_numa_multinode_ipc_supported = BoolProperty()
    host_memory_pools_supported = BoolProperty()
    host_virtual_memory_management_supported = BoolProperty()
    host_alloc_dma_buf_supported = BoolProperty()
    only_partial_host_native_atomic_supported = BoolProperty()
