# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""A device on the PCI bus."""

from __future__ import annotations

from cuda_core_cffi._core.answers import Answer
from cuda_core_cffi.system._library import field, nvml, reads_member, reads_number, reads_structure, text_of
from cuda_core_cffi.system._snapshot import OfDevice

ID_BITS = 16
ID_MASK = (1 << ID_BITS) - 1
BYTE_BITS, BYTE_MASK = 8, 0xFF

read_pcie_throughput = reads_number("nvmlDeviceGetPcieThroughput", int, arguments=1)


class PciInfo(OfDevice):
    """What a device is on the PCI bus, and how fast its link is.

    Parameters
    ----------
    pci_info_ext : nvmlPciInfoExt_v1_t
        What NVML told, or a CFFI pointer to it. The properties of the link ask anew.
    handle : nvmlDevice_t
        The device.
    """

    __slots__ = ("_record",)

    _record: nvml.nvmlPciInfoExt_v1_t

    def __init__(self, pci_info_ext: nvml.nvmlPciInfoExt_v1_t, handle: nvml.nvmlDevice_t) -> None:
        self._record = pci_info_ext
        self._handle = handle

    def __repr__(self) -> str:
        """Return the address."""
        return f"<PciInfo {self.bus_id}>"

    bus = Answer(field("bus"), doc="The bus that the device is on, 0 to 255.")

    @property
    def bus_id(self) -> str:
        """The address, as domain:bus:device.function in hexadecimal: ``"00000000:3B:00.0"``."""
        return text_of(self._record.busId)

    device = Answer(field("device"), doc="The number of the device on the bus, 0 to 31.")
    domain = Answer(field("domain"), doc="The PCI domain that the bus is in.")

    @property
    def vendor_id(self) -> int:
        """The PCI number of the vendor: 0x10de is NVIDIA's."""
        return self._record.pciDeviceId & ID_MASK

    @property
    def device_id(self) -> int:
        """The vendor's number of the device."""
        return self._record.pciDeviceId >> ID_BITS

    subsystem_id = Answer(field("pciSubSystemId"), doc="The number of the board, of 32 bits.")
    base_class = Answer(field("baseClass"), doc="The PCI base class, of 8 bits.")
    sub_class = Answer(field("subClass"), doc="The PCI sub class, of 8 bits.")
    link_generation = Answer(
        reads_number("nvmlDeviceGetMaxPcieLinkGeneration", int),
        doc="The fastest generation of PCIe that this device can use in this system.",
    )
    max_link_generation = Answer(
        reads_number("nvmlDeviceGetGpuMaxPcieLinkGeneration", int),
        doc="The fastest generation of PCIe that the device can use.",
    )
    max_link_width = Answer(
        reads_number("nvmlDeviceGetMaxPcieLinkWidth", int), doc="How many lanes this device can use in this system."
    )
    current_link_generation = Answer(
        reads_number("nvmlDeviceGetCurrPcieLinkGeneration", int),
        doc="The generation of PCIe that the link runs at. An idle device goes to a slower one.",
    )
    current_link_width = Answer(reads_number("nvmlDeviceGetCurrPcieLinkWidth", int), doc="How many lanes are used.")

    @property
    def rx_throughput(self) -> int:
        """What the device received in the last 20 ms, in KB/s. To ask takes as long."""
        return read_pcie_throughput(self, nvml.nvmlPcieUtilCounter_t.NVML_PCIE_UTIL_RX_BYTES)

    @property
    def tx_throughput(self) -> int:
        """What the device sent in the last 20 ms, in KB/s. To ask takes as long."""
        return read_pcie_throughput(self, nvml.nvmlPcieUtilCounter_t.NVML_PCIE_UTIL_TX_BYTES)

    replay_counter = Answer(
        reads_number("nvmlDeviceGetPcieReplayCounter", int), doc="How often something had to be sent again."
    )


read_pci_info_ext = reads_structure("nvmlDeviceGetPciInfoExt", "nvmlPciInfoExt_v1_t", PciInfo)
read_bus_id = reads_member("nvmlDeviceGetPciInfoExt", "nvmlPciInfoExt_v1_t", "busId", text_of)


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
