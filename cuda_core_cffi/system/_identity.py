# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Which device it is."""

from __future__ import annotations

from typing import Any

from cuda_core_cffi._core.ffi import ffi
from cuda_core_cffi.system._header import nvml
from cuda_core_cffi.system._library import value, values
from cuda_core_cffi.system.typing import DeviceArch

__all__ = ["UUID_PREFIXES", "DeviceIdentity"]

UUID_PREFIXES = ("GPU-", "MIG-")
UNKNOWN_BRAND = "Unknown"
BRANDS = {
    "QUADRO": "Quadro",
    "TESLA": "Tesla",
    "NVS": "NVS",
    "GRID": "GRID",
    "GEFORCE": "GeForce",
    "TITAN": "Titan",
    "NVIDIA_VAPPS": "NVIDIA vApps",
    "NVIDIA_VPC": "NVIDIA VPC",
    "NVIDIA_VCS": "NVIDIA VCS",
    "NVIDIA_VWS": "NVIDIA VWS",
    "NVIDIA_VGAMING": "NVIDIA vGaming",
    "QUADRO_RTX": "Quadro RTX",
    "NVIDIA_RTX": "NVIDIA RTX",
    "NVIDIA": "NVIDIA",
    "GEFORCE_RTX": "GeForce RTX",
    "TITAN_RTX": "Titan RTX",
}
"""Names of brands, by what follows ``NVML_BRAND_`` in the header."""

BRAND_NAMES = {
    int(member): BRANDS[name.removeprefix("NVML_BRAND_")]
    for name, member in nvml.nvmlBrandType_t.__members__.items()
    if name.removeprefix("NVML_BRAND_") in BRANDS
}


class DeviceIdentity:
    """What does not change of a device."""

    __slots__ = ("__weakref__", "_handle", "_pointer")

    _handle: nvml.nvmlDevice_t
    _pointer: Any  # the same for CFFI

    def _set_handle(self, handle: nvml.nvmlDevice_t) -> None:
        self._handle = handle
        self._pointer = ffi.cast("void *", handle)

    @property
    def index(self) -> int:
        """NVML's number of the device. That of CUDA may be another."""
        return value(nvml.nvmlDeviceGetIndex, self._handle)

    @property
    def uuid(self) -> str:
        """The UUID, with a prefix: ``GPU-`` for a whole device, ``MIG-`` for an instance."""
        return value(nvml.nvmlDeviceGetUUID, self._handle, nvml.NVML_DEVICE_UUID_V2_BUFFER_SIZE).decode()

    @property
    def uuid_without_prefix(self) -> str:
        """The UUID as CUDA has it."""
        uuid = self.uuid
        return uuid[len(UUID_PREFIXES[0]) :] if uuid.startswith(UUID_PREFIXES) else uuid

    @property
    def numa_node_id(self) -> int:
        """The NUMA node that the memory of the device is, where it is one."""
        return value(nvml.nvmlDeviceGetNumaNodeId, self._handle)

    @property
    def arch(self) -> DeviceArch:
        """The architecture; ``DeviceArch.UNKNOWN`` if this version does not know it."""
        try:
            return DeviceArch(value(nvml.nvmlDeviceGetArchitecture, self._handle))
        except ValueError:
            return DeviceArch.UNKNOWN

    @property
    def name(self) -> str:
        """The name: ``"NVIDIA H200"``."""
        return value(nvml.nvmlDeviceGetName, self._handle, nvml.NVML_DEVICE_NAME_V2_BUFFER_SIZE).decode(
            errors="replace"
        )

    @property
    def brand(self) -> str:
        """The brand; ``"Unknown"`` if this version does not know it."""
        return BRAND_NAMES.get(int(value(nvml.nvmlDeviceGetBrand, self._handle)), UNKNOWN_BRAND)

    @property
    def serial(self) -> str:
        """The serial number of the board."""
        return value(nvml.nvmlDeviceGetSerial, self._handle, nvml.NVML_DEVICE_SERIAL_BUFFER_SIZE).decode(
            errors="replace"
        )

    @property
    def module_id(self) -> int:
        """The place of the device on a baseboard; 0 where there is none."""
        return value(nvml.nvmlDeviceGetModuleId, self._handle)

    @property
    def minor_number(self) -> int:
        """The number of the device node: 0 for ``/dev/nvidia0``. Linux only."""
        return value(nvml.nvmlDeviceGetMinorNumber, self._handle)

    @property
    def cuda_compute_capability(self) -> tuple[int, int]:
        """The version of the architecture, as CUDA counts: ``(9, 0)``."""
        return values(nvml.nvmlDeviceGetCudaComputeCapability, self._handle)
