# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Enumerations whose members are numbers of NVML, from the header that this package was built with."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from cuda_core_cffi.system._header import nvml

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
