# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Enumerations of :mod:`cuda_core_cffi.system`, whose plain strings are accepted everywhere.

:class:`DeviceArch` and :class:`FieldId` are numbers of NVML. They are made when they are first asked for, from the
``nvml.h`` that this package was built with.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cuda_core_cffi.system._enumerators import DeviceArch, FieldId

__all__ = [
    "AddressingMode",
    "AffinityScope",
    "ClockId",
    "ClockType",
    "ClocksEventReasons",
    "CoolerControl",
    "CoolerTarget",
    "DeviceArch",
    "EventType",
    "FanControlPolicy",
    "FieldId",
    "GpuP2PCapsIndex",
    "GpuP2PStatus",
    "GpuTopologyLevel",
    "InforomObject",
    "SystemEventType",
    "TemperatureThresholds",
    "ThermalController",
    "ThermalTarget",
]


class AddressingMode(enum.StrEnum):
    """How a device reaches memory that the system allocated, such as that of ``malloc``."""

    HMM = "hmm"
    """Heterogeneous memory management: software mirrors the page tables of the CPU on the GPU."""
    ATS = "ats"
    """Address translation services: CPU and GPU use one set of page tables."""


class AffinityScope(enum.StrEnum):
    """What an affinity is asked for."""

    NODE = "node"
    """The NUMA node."""
    SOCKET = "socket"
    """The socket of the CPU."""


class ClockId(enum.StrEnum):
    """Which value of a clock."""

    CURRENT = "current"
    """What the clock runs at."""
    CUSTOMER_BOOST_MAX = "customer_boost_max"
    """The maximum that the vendor of the board defined."""


class ClocksEventReasons(enum.StrEnum):
    """Why clocks are lower than they could be."""

    NONE = "none"
    """Nothing holds them down."""
    GPU_IDLE = "gpu_idle"
    """Nothing runs on the GPU."""
    APPLICATIONS_CLOCKS_SETTING = "applications_clocks_setting"
    """A program set the clocks of applications."""
    SW_POWER_CAP = "sw_power_cap"
    """The driver keeps the power below its limit."""
    HW_SLOWDOWN = "hw_slowdown"
    """The hardware halved the clocks, or lowered them further: temperature, or a lack of power."""
    SYNC_BOOST = "sync_boost"
    """The GPU is in a group that runs at the clocks of its slowest."""
    SW_THERMAL_SLOWDOWN = "sw_thermal_slowdown"
    """The driver keeps the temperature below its maximum."""
    HW_THERMAL_SLOWDOWN = "hw_thermal_slowdown"
    """The hardware slowed down because of the temperature."""
    HW_POWER_BRAKE_SLOWDOWN = "hw_power_brake_slowdown"
    """The power supply told the hardware to slow down."""
    DISPLAY_CLOCK_SETTING = "display_clock_setting"
    """What a display needs."""
    BOARD_LIMIT = "board_limit"
    """A limit of the board."""
    RELIABILITY = "reliability"
    """What the reliability of the chip needs."""


class ClockType(enum.StrEnum):
    """Clock domains. All clocks are in MHz."""

    GRAPHICS = "graphics"
    SM = "sm"
    MEMORY = "memory"
    VIDEO = "video"


class CoolerControl(enum.StrEnum):
    """How a cooler is controlled."""

    TOGGLE = "toggle"
    """It is on or off."""
    VARIABLE = "variable"
    """Its level can be set between a minimum and a maximum."""


class CoolerTarget(enum.StrEnum):
    """What a cooler cools."""

    NONE = "none"
    GPU = "gpu"
    MEMORY = "memory"
    POWER_SUPPLY = "power_supply"


class EventType(enum.StrEnum):
    """Events of a device."""

    NONE = "none"
    """No event, or one that this version does not know."""
    SINGLE_BIT_ECC_ERROR = "single_bit_ecc_error"
    DOUBLE_BIT_ECC_ERROR = "double_bit_ecc_error"
    PSTATE = "pstate"
    """The performance state changed."""
    XID_CRITICAL_ERROR = "xid_critical_error"
    """The driver logged an error; its number is the Xid."""
    CLOCK = "clock"
    """Clocks changed."""
    POWER_SOURCE_CHANGE = "power_source_change"
    """The device went from mains to battery, or back."""
    MIG_CONFIG_CHANGE = "mig_config_change"
    """Instances were made or destroyed."""
    SINGLE_BIT_ECC_ERROR_STORM = "single_bit_ecc_error_storm"
    DRAM_RETIREMENT_EVENT = "dram_retirement_event"
    DRAM_RETIREMENT_FAILURE = "dram_retirement_failure"
    NON_FATAL_POISON_ERROR = "non_fatal_poison_error"
    FATAL_POISON_ERROR = "fatal_poison_error"
    GPU_UNAVAILABLE_ERROR = "gpu_unavailable_error"
    GPU_RECOVERY_ACTION = "gpu_recovery_action"


class FanControlPolicy(enum.StrEnum):
    """Who sets the speed of a fan."""

    TEMPERATURE_CONTROLLED = "temperature_controlled"
    """The driver, by the temperature."""
    MANUAL = "manual"
    """The user."""


class GpuP2PCapsIndex(enum.StrEnum):
    """What one GPU may do with another."""

    READ = "read"
    WRITE = "write"
    NVLINK = "nvlink"
    ATOMICS = "atomics"
    PCI = "pci"
    PROP = "prop"
    """Older name of ``PCI``."""
    UNKNOWN = "unknown"


class GpuP2PStatus(enum.StrEnum):
    """Whether one GPU may do something with another, or why not."""

    OK = "ok"
    CHIPSET_NOT_SUPPORTED = "chipset not supported"
    GPU_NOT_SUPPORTED = "GPU not supported"
    IOH_TOPOLOGY_NOT_SUPPORTED = "IOH topology not supported"
    DISABLED_BY_REGKEY = "disabled by regkey"
    NOT_SUPPORTED = "not supported"
    UNKNOWN = "unknown"
    """NVML does not know, or gave a reason that this version does not know."""


class GpuTopologyLevel(enum.StrEnum):
    """What two GPUs have in common, from near to far."""

    INTERNAL = "internal"
    """They are on one board."""
    SINGLE = "single"
    """One PCIe switch is between them."""
    MULTIPLE = "multiple"
    """Several PCIe switches are between them, but no host bridge."""
    HOSTBRIDGE = "hostbridge"
    """They are below one host bridge."""
    NODE = "node"
    """They are in one NUMA node."""
    SYSTEM = "system"
    """They are in one system."""


class InforomObject(enum.StrEnum):
    """Parts of the InfoROM, the memory of a board that keeps its data without power."""

    OEM = "oem"
    """What the vendor of the board defined."""
    ECC = "ecc"
    """What there is of error correction."""
    POWER = "power"
    """Power management."""
    DEN = "den"
    """Encryption of the DRAM."""


class SystemEventType(enum.StrEnum):
    """Events of the system."""

    UNBIND = "unbind"
    """The driver let go of a GPU."""
    BIND = "bind"
    """The driver took a GPU."""


class TemperatureThresholds(enum.StrEnum):
    """Temperatures at which something happens."""

    SHUTDOWN = "shutdown"
    """The GPU shuts down."""
    SLOWDOWN = "slowdown"
    """The hardware slows down."""
    MEM_MAX = "mem_max"
    """The driver slows down because of the memory."""
    GPU_MAX = "gpu_max"
    """The driver slows down because of the GPU."""
    ACOUSTIC_MIN = "acoustic_min"
    """The least that can be set as the acoustic threshold."""
    ACOUSTIC_CURR = "acoustic_curr"
    """The acoustic threshold."""
    ACOUSTIC_MAX = "acoustic_max"
    """The most that can be set as the acoustic threshold."""
    GPS_CURR = "gps_curr"
    """The threshold of the platform."""


class ThermalController(enum.StrEnum):
    """The chip that a thermal sensor belongs to."""

    GPU_INTERNAL = "gpu_internal"
    ADM1032 = "adm1032"
    ADT7461 = "adt7461"
    MAX6649 = "max6649"
    MAX1617 = "max1617"
    LM99 = "lm99"
    LM89 = "lm89"
    LM64 = "lm64"
    G781 = "g781"
    ADT7473 = "adt7473"
    SBMAX6649 = "sbmax6649"
    VBIOSEVT = "vbiosevt"
    OS = "os"
    NVSYSCON_CANOAS = "nvsyscon_canoas"
    NVSYSCON_E551 = "nvsyscon_e551"
    MAX6649R = "max6649r"
    ADT7473S = "adt7473s"
    UNKNOWN = "unknown"
    """None, or one that this version does not know."""


class ThermalTarget(enum.StrEnum):
    """What a thermal sensor measures."""

    NONE = "none"
    """Nothing, or something that this version does not know."""
    GPU = "gpu"
    """The core of the GPU."""
    MEMORY = "memory"
    POWER_SUPPLY = "power_supply"
    BOARD = "board"
    """The air on the board."""
    VCD_BOARD = "vcd_board"
    """The board of a visual computing device."""
    VCD_INLET = "vcd_inlet"
    """The air inlet of a visual computing device."""
    VCD_OUTLET = "vcd_outlet"
    """The air outlet of a visual computing device."""
    ALL = "all"


if not TYPE_CHECKING:  # a type checker would take any name for one of this module's

    def __getattr__(name: str) -> object:
        """Return what is made of numbers of NVML; nothing of NVML is imported before."""
        if name not in ("DeviceArch", "FieldId"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from cuda_core_cffi.system import _enumerators

        value = globals()[name] = getattr(_enumerators, name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
