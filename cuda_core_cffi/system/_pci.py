# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""A device on the PCI bus."""

from __future__ import annotations

from typing import Any

from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.ffi import ffi
from cuda_core_cffi.system._header import nvml
from cuda_core_cffi.system._library import (
    reads_member_text,
    reads_number,
    reads_number_of,
    reads_structure,
)
from cuda_core_cffi.system._readers import NvmlValue

ID_BITS = 16
ID_MASK = (1 << ID_BITS) - 1
BYTE_BITS, BYTE_MASK = 8, 0xFF

read_max_pcie_link_generation = reads_number("nvmlDeviceGetMaxPcieLinkGeneration")
read_gpu_max_pcie_link_generation = reads_number("nvmlDeviceGetGpuMaxPcieLinkGeneration")
read_max_pcie_link_width = reads_number("nvmlDeviceGetMaxPcieLinkWidth")
read_curr_pcie_link_generation = reads_number("nvmlDeviceGetCurrPcieLinkGeneration")
read_curr_pcie_link_width = reads_number("nvmlDeviceGetCurrPcieLinkWidth")
read_pcie_replay_counter = reads_number("nvmlDeviceGetPcieReplayCounter")
read_pcie_throughput = reads_number_of("nvmlDeviceGetPcieThroughput")


class PciInfo(Uncopyable, NvmlValue):
    """What a device is on the PCI bus, and how fast its link is.

    Parameters
    ----------
    pci_info_ext : nvmlPciInfoExt_v1_t
        What NVML told, or a CFFI pointer to it. The properties of the link ask anew.
    handle : nvmlDevice_t
        The device.
    """

    __slots__ = ("_handle",)

    _record: nvml.nvmlPciInfoExt_v1_t
    _NOT_COPIED_BECAUSE = "it refers to a device of this process"

    def __init__(self, pci_info_ext: nvml.nvmlPciInfoExt_v1_t, handle: nvml.nvmlDevice_t) -> None:
        self._record = pci_info_ext
        self._handle = handle

    def __repr__(self) -> str:
        """Return the address."""
        return f"<PciInfo {self.bus_id}>"

    @property
    def bus(self) -> int:
        """The bus that the device is on, 0 to 255."""
        return self._record.bus

    @property
    def bus_id(self) -> str:
        """The address, as domain:bus:device.function in hexadecimal: ``"00000000:3B:00.0"``."""
        return text_of(self._record.busId)

    @property
    def device(self) -> int:
        """The number of the device on the bus, 0 to 31."""
        return self._record.device

    @property
    def domain(self) -> int:
        """The PCI domain that the bus is in."""
        return self._record.domain

    @property
    def vendor_id(self) -> int:
        """The PCI number of the vendor: 0x10de is NVIDIA's."""
        return self._record.pciDeviceId & ID_MASK

    @property
    def device_id(self) -> int:
        """The vendor's number of the device."""
        return self._record.pciDeviceId >> ID_BITS

    @property
    def subsystem_id(self) -> int:
        """The number of the board, of 32 bits."""
        return self._record.pciSubSystemId

    @property
    def base_class(self) -> int:
        """The PCI base class, of 8 bits."""
        return self._record.baseClass

    @property
    def sub_class(self) -> int:
        """The PCI sub class, of 8 bits."""
        return self._record.subClass

    @property
    def link_generation(self) -> int:
        """The fastest generation of PCIe that this device can use in this system."""
        return read_max_pcie_link_generation(self._handle)

    @property
    def max_link_generation(self) -> int:
        """The fastest generation of PCIe that the device can use."""
        return read_gpu_max_pcie_link_generation(self._handle)

    @property
    def max_link_width(self) -> int:
        """How many lanes this device can use in this system."""
        return read_max_pcie_link_width(self._handle)

    @property
    def current_link_generation(self) -> int:
        """The generation of PCIe that the link runs at. An idle device goes to a slower one."""
        return read_curr_pcie_link_generation(self._handle)

    @property
    def current_link_width(self) -> int:
        """How many lanes are used."""
        return read_curr_pcie_link_width(self._handle)

    @property
    def rx_throughput(self) -> int:
        """What the device received in the last 20 ms, in KB/s. To ask takes as long."""
        return read_pcie_throughput(self._handle, nvml.nvmlPcieUtilCounter_t.NVML_PCIE_UTIL_RX_BYTES)

    @property
    def tx_throughput(self) -> int:
        """What the device sent in the last 20 ms, in KB/s. To ask takes as long."""
        return read_pcie_throughput(self._handle, nvml.nvmlPcieUtilCounter_t.NVML_PCIE_UTIL_TX_BYTES)

    @property
    def replay_counter(self) -> int:
        """How often something had to be sent again."""
        return read_pcie_replay_counter(self._handle)


read_pci_info_ext = reads_structure("nvmlDeviceGetPciInfoExt", "nvmlPciInfoExt_v1_t", PciInfo)
read_bus_id = reads_member_text("nvmlDeviceGetPciInfoExt", "nvmlPciInfoExt_v1_t", "busId")


def text_of(field: Any) -> str:
    """Return the text in an array of characters, which ends at the first zero: bytes, or what CFFI has."""
    text = field.partition(b"\0")[0] if isinstance(field, bytes) else ffi.string(field)
    return str(text, "utf-8", "replace")


def bus_id_of_gpu_id(gpu_id: int) -> str:
    """Return the address on the PCI bus for the number that system events have.

    Parameters
    ----------
    gpu_id : int
        Domain in the upper half, then bus and device of a byte each.

    Returns
    -------
    str
        The address, as :attr:`PciInfo.bus_id` has it.
    """
    bus, device = gpu_id >> BYTE_BITS & BYTE_MASK, gpu_id & BYTE_MASK
    return f"{gpu_id >> ID_BITS:08X}:{bus:02X}:{device:02X}.0"
