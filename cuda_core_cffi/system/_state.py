# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What a device does, and how it is set up."""

from __future__ import annotations

from collections.abc import Iterable

from cuda_core_cffi._core.calls import blank
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi.system._attributes import DeviceAttributes, RepairStatus
from cuda_core_cffi.system._clocks import ClockInfo
from cuda_core_cffi.system._cooling import CoolerInfo, FanInfo, Temperature
from cuda_core_cffi.system._enumerators import ADDRESSING_MODES, CLOCK_TYPES, CLOCKS_EVENT_REASONS
from cuda_core_cffi.system._fields import FieldValues, clear_fields, field_values
from cuda_core_cffi.system._header import nvml
from cuda_core_cffi.system._identity import DeviceIdentity
from cuda_core_cffi.system._library import (
    IS_ENABLED,
    IS_NOT_ZERO,
    Meanings,
    call,
    reads_member,
    reads_number,
    reads_packed,
    reads_pair,
    reads_structure,
    value,
)
from cuda_core_cffi.system._memory import BAR1MemoryInfo, MemoryInfo
from cuda_core_cffi.system._mig import switch
from cuda_core_cffi.system._performance import GpuDynamicPstatesInfo, Utilization
from cuda_core_cffi.system.typing import AddressingMode, ClocksEventReasons, ClockType, FieldId

PSTATE_UNKNOWN = nvml.nvmlPstates_t.NVML_PSTATE_UNKNOWN
PSTATES_SIZE = nvml.NVML_MAX_GPU_PERF_PSTATES * 4  # in bytes, of an enumeration each

PSTATES: Meanings[int | None] = Meanings(
    {int(state): int(state) for state in nvml.nvmlPstates_t if state != PSTATE_UNKNOWN}, None
)

KNOWN_ADDRESSING_MODES: Meanings[AddressingMode | None] = Meanings(ADDRESSING_MODES.members, None)

read_memory_info = reads_structure("nvmlDeviceGetMemoryInfo_v2", "nvmlMemory_v2_t", MemoryInfo)
read_bar1_memory_info = reads_structure("nvmlDeviceGetBAR1MemoryInfo", "nvmlBAR1Memory_t", BAR1MemoryInfo)
read_utilization = reads_packed("nvmlDeviceGetUtilizationRates", "nvmlUtilization_t", Utilization)
read_performance_state = reads_number("nvmlDeviceGetPerformanceState", PSTATES)
read_dynamic_pstates_info = reads_structure(
    "nvmlDeviceGetDynamicPstatesInfo", "nvmlGpuDynamicPstatesInfo_t", GpuDynamicPstatesInfo
)
read_addressing_mode = reads_member(
    "nvmlDeviceGetAddressingMode", "nvmlDeviceAddressingMode_v1_t", "value", KNOWN_ADDRESSING_MODES
)
read_c2c_mode = reads_member("nvmlDeviceGetC2cModeInfoV", "nvmlC2cModeInfo_v1_t", "isC2cEnabled", IS_NOT_ZERO)
read_persistence_mode = reads_number("nvmlDeviceGetPersistenceMode", IS_ENABLED)
read_display_mode = reads_number("nvmlDeviceGetDisplayMode", IS_ENABLED)
read_display_active = reads_number("nvmlDeviceGetDisplayActive", IS_ENABLED)
read_attributes = reads_structure("nvmlDeviceGetAttributes_v2", "nvmlDeviceAttributes_t", DeviceAttributes)
read_repair_status = reads_structure("nvmlDeviceGetRepairStatus", "nvmlRepairStatus_v1_t", RepairStatus)
read_auto_boosted_clocks = reads_pair("nvmlDeviceGetAutoBoostedClocksEnabled", IS_ENABLED)
read_cooler_info = reads_structure("nvmlDeviceGetCoolerInfo", "nvmlCoolerInfo_v1_t", CoolerInfo)
read_num_fans = reads_number("nvmlDeviceGetNumFans")


class DeviceState(DeviceIdentity):
    """What can change of a device."""

    __slots__ = ()

    @property
    def memory_info(self) -> MemoryInfo:
        """The memory of the device: what all processes use, and what is free."""
        return read_memory_info(self._handle)

    @property
    def bar1_memory_info(self) -> BAR1MemoryInfo:
        """The part of the memory that the CPU and other devices can map over PCIe."""
        return read_bar1_memory_info(self._handle)

    @property
    def utilization(self) -> Utilization:
        """How busy the device is. Not told of a device that is divided (MIG)."""
        return read_utilization(self._handle)

    @property
    def performance_state(self) -> int | None:
        """The performance state, from 0, the fastest, to 15; None if it is unknown."""
        return read_performance_state(self._handle)

    @property
    def supported_pstates(self) -> list[int]:
        """The performance states that the device has, from 0, the fastest, to 15."""
        found = value(nvml.nvmlDeviceGetSupportedPerformanceStates, self._handle, PSTATES_SIZE)
        return [int(state) for state in found if state != PSTATE_UNKNOWN]

    @property
    def dynamic_pstates_info(self) -> GpuDynamicPstatesInfo:
        """How busy the parts of the device are, and when the driver changes the performance state for that."""
        return read_dynamic_pstates_info(self._handle)

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
        return read_addressing_mode(self._handle)

    @property
    def is_c2c_enabled(self) -> bool:
        """Whether chip-to-chip links are enabled."""
        return read_c2c_mode(self._handle)

    @property
    def is_persistence_mode_enabled(self) -> bool:
        """Whether the driver stays loaded while nobody uses the device. To set it needs root. Linux only."""
        return read_persistence_mode(self._handle)

    @is_persistence_mode_enabled.setter
    def is_persistence_mode_enabled(self, enabled: bool) -> None:
        call(nvml.nvmlDeviceSetPersistenceMode, self._handle, switch(enabled, "is_persistence_mode_enabled"))

    @property
    def is_display_connected(self) -> bool:
        """Whether a display is connected."""
        return read_display_mode(self._handle)

    @property
    def is_display_active(self) -> bool:
        """Whether the device has memory for a screen, also without a display."""
        return read_display_active(self._handle)

    @property
    def attributes(self) -> DeviceAttributes:
        """How many engines the device has, or the instance. Ampere and newer, Linux only."""
        return read_attributes(self._handle)

    @property
    def repair_status(self) -> RepairStatus:
        """Repairs that the next reset makes. Ampere and newer."""
        return read_repair_status(self._handle)

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
        try:
            number = CLOCK_TYPES.numbers[clock_type]  # type: ignore[index]  # the text of a member finds it
        except (KeyError, TypeError):
            return ClockInfo(self._handle, clock_type)  # which says what is wrong
        clock = blank(ClockInfo)
        clock._clock = number
        clock._handle = self._handle
        return clock

    @property
    def is_auto_boosted_clocks_enabled(self) -> tuple[bool, bool]:
        """Whether clocks go above their base by themselves, and whether that is the default. Kepler and Maxwell."""
        return read_auto_boosted_clocks(self._handle)

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
        return read_cooler_info(self._handle)

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
