# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Members of enumerations for the numbers of NVML, and numbers for members.

The numbers are found by name: ``ClockType.SM`` is NVML's ``NVML_CLOCK_SM``. A member for which the header that this
package was built with has no name cannot be asked for. :class:`DeviceArch` and :class:`FieldId` are numbers themselves.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Generic, TypeVar

from cuda_core_cffi._core.errors import UnavailableError
from cuda_core_cffi.system import typing
from cuda_core_cffi.system._library import nvml

Member = TypeVar("Member", bound=enum.StrEnum)

MODULE = "cuda_core_cffi.system.typing"  # where programs find them
ARCHITECTURES = (
    "KEPLER",
    "MAXWELL",
    "PASCAL",
    "VOLTA",
    "TURING",
    "AMPERE",
    "ADA",
    "HOPPER",
    "BLACKWELL",
    "UNKNOWN",
)
ARCHITECTURE_PREFIX, FIELD_PREFIX = "NVML_DEVICE_ARCH_", "NVML_FI_"
NO_FIELDS = ("NVML_FI_MAX",)  # how many there are


def camel_case(name: str) -> str:
    """Return the name as macros of NVML spell it: ``GPU_IDLE`` is ``GpuIdle``."""
    return "".join(word.capitalize() for word in name.split("_"))


class Enumerators(Generic[Member]):
    """An enumeration and the numbers of NVML that its members stand for.

    Parameters
    ----------
    kind : type
        The enumeration.
    what : str
        What messages call a member.
    *prefixes : str
        What NVML's names begin with, before the name of the member. The first that the header has counts.
    **others : str
        NVML's names of members to which that does not apply.
    """

    __slots__ = ("kind", "members", "numbers", "what")

    def __init__(self, kind: type[Member], what: str, *prefixes: str, **others: str) -> None:
        self.kind = kind
        self.what = what
        self.numbers: dict[Member, int] = {}
        self.members: dict[int, Member] = {}
        for member in kind:
            name = member.name
            names = [prefix + (name if prefix.endswith("_") else camel_case(name)) for prefix in prefixes]
            for candidate in (others[name],) if name in others else names:
                number = ENUMERATORS.get(candidate)
                if number is not None:
                    self.numbers[member] = number
                    self.members.setdefault(number, member)
                    break

    def number(self, member: Member | str) -> int:
        """Return the number of a member, or of its text.

        Raises
        ------
        ValueError
            If it is no member.
        UnavailableError
            If the header that this package was built with does not know it.
        """
        try:
            return self.numbers[member]  # type: ignore[index]  # the text of a member finds it
        except (KeyError, TypeError):
            pass
        if isinstance(member, str) and member in list(self.kind):
            raise UnavailableError(
                f"{self.what} {str(member)!r} is not in the nvml.h that cuda-core-cffi was built with"
            )
        raise ValueError(f"{self.what} must be one of {', '.join(repr(str(one)) for one in self.kind)}, not {member!r}")

    def mask(self, members: Member | str | list[Member | str]) -> int:
        """Return the bits of a member, or of several.

        Raises
        ------
        TypeError
            If it is neither.
        ValueError
            If something is no member, or there is none.
        """
        if isinstance(members, str):
            return self.number(members)
        if not isinstance(members, list | tuple | set | frozenset):
            raise TypeError(f"{self.what} must be a str or a list of str, not {type(members).__name__}: {members!r}")
        if not members:
            raise ValueError(f"{self.what}: the list is empty")
        bits = 0
        for member in members:
            bits |= self.number(member)
        return bits

    def in_mask(self, bits: int) -> list[Member]:
        """Return the members whose bits are set. Bits that NVML added later are left out."""
        return [member for number, member in self.members.items() if number & bits]


ENUMERATORS: dict[str, int] = {
    name: int(number)
    for space in (nvml, *(item for item in vars(nvml).values() if isinstance(item, enum.EnumMeta)))
    for name, number in (space.__members__ if isinstance(space, enum.EnumMeta) else vars(space)).items()
    if isinstance(number, int)
}
"""Enumerators and macros of NVML, by name."""

ADDRESSING_MODES = Enumerators(typing.AddressingMode, "addressing mode", "NVML_DEVICE_ADDRESSING_MODE_")
AFFINITY_SCOPES = Enumerators(typing.AffinityScope, "scope", "NVML_AFFINITY_SCOPE_")
CLOCK_IDS = Enumerators(typing.ClockId, "clock_id", "NVML_CLOCK_ID_")
CLOCK_TYPES = Enumerators(typing.ClockType, "clock_type", "NVML_CLOCK_", MEMORY="NVML_CLOCK_MEM")
CLOCKS_EVENT_REASONS = Enumerators(
    typing.ClocksEventReasons, "reason", "nvmlClocksEventReason", "nvmlClocksThrottleReason"
)
COOLER_CONTROLS = Enumerators(typing.CoolerControl, "signal type", "NVML_THERMAL_COOLER_SIGNAL_")
COOLER_TARGETS = Enumerators(typing.CoolerTarget, "target", "NVML_THERMAL_COOLER_TARGET_")
EVENT_TYPES = Enumerators(
    typing.EventType,
    "events",
    "nvmlEventType",
    PSTATE="nvmlEventTypePState",
    MIG_CONFIG_CHANGE="nvmlEventMigConfigChange",
)
FAN_CONTROL_POLICIES = Enumerators(
    typing.FanControlPolicy,
    "policy",
    "NVML_FAN_POLICY_",
    TEMPERATURE_CONTROLLED="NVML_FAN_POLICY_TEMPERATURE_CONTINOUS_SW",
)
INFOROM_OBJECTS = Enumerators(typing.InforomObject, "inforom", "NVML_INFOROM_")
P2P_CAPABILITIES = Enumerators(typing.GpuP2PCapsIndex, "index", "NVML_P2P_CAPS_INDEX_")
P2P_STATUSES = Enumerators(typing.GpuP2PStatus, "status", "NVML_P2P_STATUS_")
SYSTEM_EVENT_TYPES = Enumerators(typing.SystemEventType, "events", "nvmlSystemEventTypeGpuDriver")
TEMPERATURE_THRESHOLDS = Enumerators(typing.TemperatureThresholds, "threshold_type", "NVML_TEMPERATURE_THRESHOLD_")
THERMAL_CONTROLLERS = Enumerators(typing.ThermalController, "controller", "NVML_THERMAL_CONTROLLER_")
THERMAL_TARGETS = Enumerators(typing.ThermalTarget, "sensor_index", "NVML_THERMAL_TARGET_")
TOPOLOGY_LEVELS = Enumerators(typing.GpuTopologyLevel, "level", "NVML_TOPOLOGY_")

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


def numbers(prefix: str) -> dict[str, int]:
    """Return the macros of the header whose names begin so, without that."""
    return {
        name.removeprefix(prefix): number
        for name, number in vars(nvml).items()
        if name.startswith(prefix) and name not in NO_FIELDS
    }


if TYPE_CHECKING:

    class DeviceArch(enum.IntEnum):
        """Architectures. Their order is that of time: ``device.arch >= DeviceArch.AMPERE``."""

        KEPLER = enum.auto()
        MAXWELL = enum.auto()
        PASCAL = enum.auto()
        VOLTA = enum.auto()
        TURING = enum.auto()
        AMPERE = enum.auto()
        ADA = enum.auto()
        HOPPER = enum.auto()
        BLACKWELL = enum.auto()
        UNKNOWN = enum.auto()

    class AnyField(enum.EnumMeta):
        """Lets type checkers take any name for a field's: which there are, the header says."""

        def __getattr__(cls, name: str) -> FieldId: ...

    class FieldId(enum.IntEnum, metaclass=AnyField):
        """What :meth:`Device.get_field_values` can be asked for."""

else:
    known = numbers(ARCHITECTURE_PREFIX)
    DeviceArch = enum.IntEnum("DeviceArch", {name: known[name] for name in ARCHITECTURES if name in known})
    DeviceArch.__module__ = MODULE
    DeviceArch.__doc__ = "Architectures. Their order is that of time: ``device.arch >= DeviceArch.AMPERE``."
    FieldId = enum.IntEnum("FieldId", numbers(FIELD_PREFIX))
    FieldId.__module__ = MODULE
    FieldId.__doc__ = "What :meth:`Device.get_field_values` can be asked for. Each is described in ``nvml.h``."
