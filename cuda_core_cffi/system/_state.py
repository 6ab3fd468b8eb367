# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What a device does, and how it is set up."""

from __future__ import annotations

from collections.abc import Iterable

from cuda_core_cffi._core.integers import integer
from cuda_core_cffi.system._attributes import DeviceAttributes, RepairStatus
from cuda_core_cffi.system._clocks import ClockInfo
from cuda_core_cffi.system._cooling import CoolerInfo, FanInfo, Temperature
from cuda_core_cffi.system._enumerators import ADDRESSING_MODES, CLOCKS_EVENT_REASONS
from cuda_core_cffi.system._fields import FieldValues, clear_fields, field_values
from cuda_core_cffi.system._header import nvml
from cuda_core_cffi.system._identity import DeviceIdentity
from cuda_core_cffi.system._library import call, reads_number, reads_structure, value, values
from cuda_core_cffi.system._memory import BAR1MemoryInfo, MemoryInfo
from cuda_core_cffi.system._mig import ENABLED, switch
from cuda_core_cffi.system._performance import GpuDynamicPstatesInfo, Utilization
from cuda_core_cffi.system.typing import AddressingMode, ClocksEventReasons, ClockType, FieldId

__all__ = ["DeviceState"]

PSTATE_UNKNOWN = nvml.nvmlPstates_t.NVML_PSTATE_UNKNOWN
PSTATES_SIZE = nvml.NVML_MAX_GPU_PERF_PSTATES * 4  # in bytes, of an enumeration each

read_memory_info = reads_structure("nvmlDeviceGetMemoryInfo_v2", "nvmlMemory_v2_t")
read_utilization = reads_structure("nvmlDeviceGetUtilizationRates", "nvmlUtilization_t")
read_performance_state = reads_number("nvmlDeviceGetPerformanceState")
read_persistence_mode = reads_number("nvmlDeviceGetPersistenceMode")
read_display_mode = reads_number("nvmlDeviceGetDisplayMode")
read_display_active = reads_number("nvmlDeviceGetDisplayActive")
read_num_fans = reads_number("nvmlDeviceGetNumFans")
read_bar1_memory_info = reads_structure("nvmlDeviceGetBAR1MemoryInfo", "nvmlBAR1Memory_t")


class DeviceState(DeviceIdentity):
    """What can change of a device."""

    __slots__ = ()

    @property
    def memory_info(self) -> MemoryInfo:
        """The memory of the device: what all processes use, and what is free."""
        return MemoryInfo(read_memory_info(self._handle))

    @property
    def bar1_memory_info(self) -> BAR1MemoryInfo:
        """The part of the memory that the CPU and other devices can map over PCIe."""
        return BAR1MemoryInfo(read_bar1_memory_info(self._handle))

    @property
    def utilization(self) -> Utilization:
        """How busy the device is. Not told of a device that is divided (MIG)."""
        return Utilization(read_utilization(self._handle))

    @property
    def performance_state(self) -> int | None:
        """The performance state, from 0, the fastest, to 15; None if it is unknown."""
        return known_pstate(read_performance_state(self._handle))

    @property
    def supported_pstates(self) -> list[int]:
        """The performance states that the device has, from 0, the fastest, to 15."""
        found = value(nvml.nvmlDeviceGetSupportedPerformanceStates, self._handle, PSTATES_SIZE)
        return [state for state in map(known_pstate, found) if state is not None]

    @property
    def dynamic_pstates_info(self) -> GpuDynamicPstatesInfo:
        """How busy the parts of the device are, and when the driver changes the performance state for that."""
        return GpuDynamicPstatesInfo(value(nvml.nvmlDeviceGetDynamicPstatesInfo, self._handle))

    def get_field_values(self, field_ids: Iterable[FieldId | int | tuple[FieldId | int, int]]) -> FieldValues:
        """Return several fields at once.

        Parameters
        ----------
        field_ids : list of FieldId, or of tuple of FieldId and int
            The fields; an int with it says of what, such as a link.

        Returns
        -------
        FieldValues
            The values in the same order. A field that could not be read raises when its ``value`` is asked for, or by
            :meth:`FieldValues.validate`.

        Raises
        ------
        TypeError, ValueError
            If something is no identifier of a field.
        NvmlError
            If nothing could be read.
        """
        return field_values(self._handle, field_ids)

    def clear_field_values(self, field_ids: Iterable[FieldId | int | tuple[FieldId | int, int]]) -> None:
        """Set several fields, which are counters, to 0.

        Parameters
        ----------
        field_ids : list of FieldId, or of tuple of FieldId and int
            The fields; an int with it says of what, such as a link.

        Raises
        ------
        TypeError, ValueError
            If something is no identifier of a field.
        NvmlError
            If a field cannot be set to 0.
        """
        clear_fields(self._handle, field_ids)

    @property
    def addressing_mode(self) -> AddressingMode | None:
        """How the device reaches memory that the system allocated; None if it does not."""
        return ADDRESSING_MODES.members.get(value(nvml.nvmlDeviceGetAddressingMode, self._handle).value)

    @property
    def is_c2c_enabled(self) -> bool:
        """Whether chip-to-chip links are enabled."""
        return bool(value(nvml.nvmlDeviceGetC2cModeInfoV, self._handle).isC2cEnabled)

    @property
    def is_persistence_mode_enabled(self) -> bool:
        """Whether the driver stays loaded while nobody uses the device. To set it needs root. Linux only."""
        return read_persistence_mode(self._handle) == ENABLED

    @is_persistence_mode_enabled.setter
    def is_persistence_mode_enabled(self, enabled: bool) -> None:
        call(nvml.nvmlDeviceSetPersistenceMode, self._handle, switch(enabled, "is_persistence_mode_enabled"))

    @property
    def is_display_connected(self) -> bool:
        """Whether a display is connected."""
        return read_display_mode(self._handle) == ENABLED

    @property
    def is_display_active(self) -> bool:
        """Whether the device has memory for a screen, also without a display."""
        return read_display_active(self._handle) == ENABLED

    @property
    def attributes(self) -> DeviceAttributes:
        """How many engines the device has, or the instance. Ampere and newer, Linux only."""
        return DeviceAttributes(value(nvml.nvmlDeviceGetAttributes_v2, self._handle))

    @property
    def repair_status(self) -> RepairStatus:
        """Repairs that the next reset makes. Ampere and newer."""
        return RepairStatus(self._handle)

    def get_clock(self, clock_type: ClockType | str) -> ClockInfo:
        """Return a clock.

        Parameters
        ----------
        clock_type : ClockType or str
            The clock domain.

        Returns
        -------
        ClockInfo
            What asks for its values.

        Raises
        ------
        ValueError
            If there is no such clock domain.
        """
        return ClockInfo(self._handle, clock_type)

    @property
    def is_auto_boosted_clocks_enabled(self) -> tuple[bool, bool]:
        """Whether clocks go above their base by themselves, and whether that is the default. Kepler and Maxwell."""
        now, default = values(nvml.nvmlDeviceGetAutoBoostedClocksEnabled, self._handle)
        return now == ENABLED, default == ENABLED

    @property
    def current_clock_event_reasons(self) -> list[ClocksEventReasons]:
        """Why clocks are lower than they could be. Reasons that NVML added later are left out."""
        return CLOCKS_EVENT_REASONS.in_mask(value(nvml.nvmlDeviceGetCurrentClocksEventReasons, self._handle))

    @property
    def supported_clock_event_reasons(self) -> list[ClocksEventReasons]:
        """The reasons that the device can have. Those that NVML added later are left out."""
        return CLOCKS_EVENT_REASONS.in_mask(value(nvml.nvmlDeviceGetSupportedClocksEventReasons, self._handle))

    @property
    def cooler(self) -> CoolerInfo:
        """The cooler."""
        return CoolerInfo(value(nvml.nvmlDeviceGetCoolerInfo, self._handle))

    def get_fan(self, fan: int = 0) -> FanInfo:
        """Return a fan.

        Parameters
        ----------
        fan : int
            Its number, from 0.

        Returns
        -------
        FanInfo
            What asks for its speed, and sets it.

        Raises
        ------
        ValueError
            If the device does not have it.
        """
        number, count = integer(fan, "fan"), self.num_fans
        if not 0 <= number < count:
            raise ValueError(f"fan must be 0 to {count - 1}, not {number}" if count else "the device has no fans")
        return FanInfo(self._handle, number)

    @property
    def num_fans(self) -> int:
        """The number of fans."""
        return read_num_fans(self._handle)

    @property
    def temperature(self) -> Temperature:
        """Temperatures."""
        return Temperature(self._handle)


def known_pstate(state: int) -> int | None:
    """Return a performance state; None if NVML does not know it."""
    return None if state == PSTATE_UNKNOWN else int(state)
