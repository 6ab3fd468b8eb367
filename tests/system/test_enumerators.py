# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Members of enumerations stand for the numbers of nvml.h."""

from __future__ import annotations

import pytest

from cuda_core_cffi import UnavailableError, nvml
from cuda_core_cffi._core.ffi import lib
from cuda_core_cffi.system import _enumerators, typing
from cuda_core_cffi.system._enumerators import Enumerators

NEWEST = 13050  # the version of CUDA whose header has all members
MAPPINGS = {name: item for name, item in vars(_enumerators).items() if isinstance(item, Enumerators)}


@pytest.mark.parametrize("name", MAPPINGS)
def test_every_member_has_a_number(name) -> None:
    mapping = MAPPINGS[name]
    lacking = [member for member in mapping.kind if member not in mapping.numbers]
    assert lacking == [] or lib.CUDA_VERSION < NEWEST  # an older header knows less
    assert list(mapping.numbers) == [member for member in mapping.kind if member not in lacking]
    for member in lacking:
        with pytest.raises(UnavailableError, match=r"not in the nvml\.h"):
            mapping.number(member)
    for member in mapping.numbers:
        assert mapping.number(member) == mapping.number(str(member)) == mapping.numbers[member]


def test_every_enumeration_stands_for_numbers() -> None:
    kinds = {mapping.kind.__name__ for mapping in MAPPINGS.values()} | {"DeviceArch", "FieldId"}
    assert sorted(kinds) == typing.__all__


@pytest.mark.parametrize(
    ("mapping", "member", "number"),
    [
        ("CLOCK_TYPES", "memory", nvml.nvmlClockType_t.NVML_CLOCK_MEM),
        ("CLOCK_IDS", "customer_boost_max", nvml.nvmlClockId_t.NVML_CLOCK_ID_CUSTOMER_BOOST_MAX),
        ("CLOCKS_EVENT_REASONS", "hw_thermal_slowdown", nvml.nvmlClocksThrottleReasonHwThermalSlowdown),
        ("EVENT_TYPES", "pstate", nvml.nvmlEventTypePState),
        ("EVENT_TYPES", "mig_config_change", nvml.nvmlEventMigConfigChange),
        ("SYSTEM_EVENT_TYPES", "unbind", nvml.nvmlSystemEventTypeGpuDriverUnbind),
        ("FAN_CONTROL_POLICIES", "temperature_controlled", nvml.NVML_FAN_POLICY_TEMPERATURE_CONTINOUS_SW),
        ("P2P_CAPABILITIES", "prop", nvml.nvmlGpuP2PCapsIndex_t.NVML_P2P_CAPS_INDEX_PCI),
        ("P2P_STATUSES", "chipset not supported", nvml.nvmlGpuP2PStatus_t.NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED),
        ("THERMAL_TARGETS", "all", nvml.nvmlThermalTarget_t.NVML_THERMAL_TARGET_ALL),
    ],
)
def test_a_member_stands_for_nvml_s_number(mapping, member, number) -> None:
    assert MAPPINGS[mapping].number(member) == number


def test_a_mask_is_read_as_its_members() -> None:
    bits = MAPPINGS["EVENT_TYPES"].mask(["pstate", typing.EventType.CLOCK])
    assert bits == nvml.nvmlEventTypePState | nvml.nvmlEventTypeClock
    assert MAPPINGS["EVENT_TYPES"].in_mask(bits | 1 << 60) == ["pstate", "clock"]
    assert MAPPINGS["COOLER_TARGETS"].in_mask(nvml.nvmlCoolerTarget_t.NVML_THERMAL_COOLER_TARGET_GPU_RELATED) == [
        "gpu",
        "memory",
        "power_supply",
    ]


@pytest.mark.parametrize(("members", "error"), [(3, TypeError), ({}, TypeError), ([], ValueError), (["x"], ValueError)])
def test_what_is_no_member_is_refused(members, error) -> None:
    with pytest.raises(error, match="events"):
        MAPPINGS["EVENT_TYPES"].mask(members)


def test_a_member_that_the_header_lacks_says_so() -> None:
    mapping = Enumerators(typing.ClockId, "clock_id", "NVML_NO_SUCH_PREFIX_")
    with pytest.raises(UnavailableError, match=r"clock_id 'current' is not in the nvml\.h"):
        mapping.number("current")


def test_the_first_prefix_that_the_header_has_counts() -> None:
    mapping = Enumerators(typing.ClockId, "clock_id", "NVML_NO_SUCH_PREFIX_", "NVML_CLOCK_ID_")
    assert mapping.number("current") == nvml.nvmlClockId_t.NVML_CLOCK_ID_CURRENT


def test_architectures_are_in_the_order_of_time() -> None:
    members = list(typing.DeviceArch)
    assert members == sorted(members)
    assert typing.DeviceArch.HOPPER == nvml.NVML_DEVICE_ARCH_HOPPER < typing.DeviceArch.BLACKWELL
    assert typing.DeviceArch.__module__ == typing.FieldId.__module__ == "cuda_core_cffi.system.typing"


def test_a_name_that_the_module_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'NoSuchThing'"):
        _ = typing.NoSuchThing
    assert {"DeviceArch", "FieldId", "EventType"} <= set(dir(typing))
