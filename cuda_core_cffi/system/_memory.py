# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Memory of devices, as NVML counts it: that of all processes."""

from __future__ import annotations

from cuda_core_cffi.system._header import nvml
from cuda_core_cffi.system._snapshot import Snapshot


class MemoryInfo(Snapshot["nvml.nvmlMemory_v2_t"]):
    """Memory of a device.

    Parameters
    ----------
    memory_info : nvmlMemory_v2_t
        What NVML told.
    """

    __slots__ = ()

    _STRUCTURE = "nvmlMemory_v2_t"

    def __init__(self, memory_info: nvml.nvmlMemory_v2_t) -> None:
        self._record = memory_info

    @property
    def free(self) -> int:
        """Memory that nobody has allocated, in bytes."""
        return self._record.free

    @property
    def total(self) -> int:
        """All memory of the device, in bytes."""
        return self._record.total

    @property
    def used(self) -> int:
        """Memory that is allocated, by whatever process, in bytes."""
        return self._record.used

    @property
    def reserved(self) -> int:
        """Memory that the driver and the firmware keep for themselves, in bytes."""
        return self._record.reserved


class BAR1MemoryInfo(MemoryInfo):
    """The part of a device's memory that the CPU and other devices can map over PCIe.

    Parameters
    ----------
    memory_info : nvmlBAR1Memory_t
        What NVML told.
    """

    __slots__ = ()

    _STRUCTURE = "nvmlBAR1Memory_t"
    _record: nvml.nvmlBAR1Memory_t  # type: ignore[assignment]  # another structure than that of all memory

    def __init__(self, memory_info: nvml.nvmlBAR1Memory_t) -> None:
        self._record = memory_info

    @property
    def free(self) -> int:
        """What is not mapped, in bytes."""
        return self._record.bar1Free

    @property
    def total(self) -> int:
        """All that can be mapped, in bytes."""
        return self._record.bar1Total

    @property
    def used(self) -> int:
        """What is mapped, in bytes."""
        return self._record.bar1Used

    @property
    def reserved(self) -> int:
        """Not known of BAR1 memory.

        Raises
        ------
        AttributeError
            Always.
        """
        raise AttributeError("BAR1 memory has no reserved part")
