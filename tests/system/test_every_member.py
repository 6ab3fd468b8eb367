# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Every property and method that reads: its type, a plausible value, and what NVML itself says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from cuda_core_cffi import nvml, system
from cuda_core_cffi.system import _device, exceptions
from cuda_core_cffi.system.typing import (
    AddressingMode,
    ClocksEventReasons,
    CoolerControl,
    CoolerTarget,
    DeviceArch,
    EventType,
    FanControlPolicy,
    ThermalController,
    ThermalTarget,
)

N = nvml
SIZE = 96  # of texts, more than any of these needs


class Row(NamedTuple):
    """A member: how it is read, its type, what NVML is asked for, and what of that is the value."""

    name: str
    read: Callable[[system.Device], Any]
    kind: type | tuple[type, ...]
    raw: Callable[[Any], tuple[Any, ...]]
    value: Callable[..., Any] | None = None  # None: it changes from call to call
    plausible: Callable[[Any], bool] = lambda value: True


def text(raw: bytes) -> str:
    return raw.decode()


def same(value: Any) -> Any:
    return value


def percent(value: int) -> bool:
    return 0 <= value <= 100


def celsius(value: int) -> bool:
    return -50 < value < 150


def megahertz(value: int) -> bool:
    return 0 <= value < 100_000


def each_is(kind: type) -> Callable[[list[Any]], bool]:
    return lambda found: all(type(item) is kind for item in found)


IDENTITY = [
    Row("index", lambda d: d.index, int, N.nvmlDeviceGetIndex, same),
    Row(
        "uuid", lambda d: d.uuid, str, lambda h: N.nvmlDeviceGetUUID(h, SIZE), text, lambda v: v[:4] in ("GPU-", "MIG-")
    ),
    Row(
        "uuid_without_prefix",
        lambda d: d.uuid_without_prefix,
        str,
        lambda h: N.nvmlDeviceGetUUID(h, SIZE),
        lambda raw: text(raw)[4:],
        lambda v: len(v) == 36,
    ),
    Row("name", lambda d: d.name, str, lambda h: N.nvmlDeviceGetName(h, SIZE), text, bool),
    Row("brand", lambda d: d.brand, str, N.nvmlDeviceGetBrand, plausible=bool),
    Row("arch", lambda d: d.arch, DeviceArch, N.nvmlDeviceGetArchitecture, same),
    Row("serial", lambda d: d.serial, str, lambda h: N.nvmlDeviceGetSerial(h, SIZE), text, str.isalnum),
    Row("module_id", lambda d: d.module_id, int, N.nvmlDeviceGetModuleId, same),
    Row("minor_number", lambda d: d.minor_number, int, N.nvmlDeviceGetMinorNumber, same),
    Row("numa_node_id", lambda d: d.numa_node_id, int, N.nvmlDeviceGetNumaNodeId, same),
    Row(
        "cuda_compute_capability",
        lambda d: d.cuda_compute_capability,
        tuple,
        N.nvmlDeviceGetCudaComputeCapability,
        lambda *both: both,
        lambda v: v >= (3, 0),
    ),
    Row(
        "pci_bus_id",
        lambda d: d.pci_bus_id,
        str,
        N.nvmlDeviceGetPciInfoExt,
        lambda r: text(r.busId.rstrip(b"\0")),
        lambda v: v.count(":") == 2,
    ),
]

STATE = [
    Row("addressing_mode", lambda d: d.addressing_mode, (AddressingMode, type(None)), N.nvmlDeviceGetAddressingMode),
    Row("is_c2c_enabled", lambda d: d.is_c2c_enabled, bool, N.nvmlDeviceGetC2cModeInfoV, lambda r: r.isC2cEnabled),
    Row(
        "is_persistence_mode_enabled",
        lambda d: d.is_persistence_mode_enabled,
        bool,
        N.nvmlDeviceGetPersistenceMode,
        same,
    ),
    Row("is_display_connected", lambda d: d.is_display_connected, bool, N.nvmlDeviceGetDisplayMode, same),
    Row("is_display_active", lambda d: d.is_display_active, bool, N.nvmlDeviceGetDisplayActive, same),
    Row(
        "performance_state",
        lambda d: d.performance_state,
        int,
        N.nvmlDeviceGetPerformanceState,
        plausible=lambda v: v < 16,
    ),
    Row(
        "supported_pstates",
        lambda d: d.supported_pstates,
        list,
        lambda h: N.nvmlDeviceGetSupportedPerformanceStates(h, 64),
        lambda found: [item for item in found if item < 16],
        lambda v: len(set(v)) == len(v) > 0,
    ),
    Row(
        "is_auto_boosted_clocks_enabled",
        lambda d: d.is_auto_boosted_clocks_enabled,
        tuple,
        N.nvmlDeviceGetAutoBoostedClocksEnabled,
        lambda *both: both,
        each_is(bool),
    ),
    Row(
        "current_clock_event_reasons",
        lambda d: d.current_clock_event_reasons,
        list,
        N.nvmlDeviceGetCurrentClocksEventReasons,
        plausible=each_is(ClocksEventReasons),
    ),
    Row(
        "supported_clock_event_reasons",
        lambda d: d.supported_clock_event_reasons,
        list,
        N.nvmlDeviceGetSupportedClocksEventReasons,
        plausible=each_is(ClocksEventReasons),
    ),
    Row("num_fans", lambda d: d.num_fans, int, N.nvmlDeviceGetNumFans, same),
    Row(
        "get_supported_event_types",
        lambda d: d.get_supported_event_types(),
        list,
        N.nvmlDeviceGetSupportedEventTypes,
        plausible=each_is(EventType),
    ),
]

MEMORY = [
    Row("memory_info.total", lambda d: d.memory_info.total, int, N.nvmlDeviceGetMemoryInfo_v2, lambda r: r.total, bool),
    Row(
        "memory_info.reserved",
        lambda d: d.memory_info.reserved,
        int,
        N.nvmlDeviceGetMemoryInfo_v2,
        lambda r: r.reserved,
    ),
    Row("memory_info.free", lambda d: d.memory_info.free, int, N.nvmlDeviceGetMemoryInfo_v2),
    Row("memory_info.used", lambda d: d.memory_info.used, int, N.nvmlDeviceGetMemoryInfo_v2),
    Row(
        "bar1_memory_info.total",
        lambda d: d.bar1_memory_info.total,
        int,
        N.nvmlDeviceGetBAR1MemoryInfo,
        lambda r: r.bar1Total,
    ),
    Row("bar1_memory_info.free", lambda d: d.bar1_memory_info.free, int, N.nvmlDeviceGetBAR1MemoryInfo),
    Row("bar1_memory_info.used", lambda d: d.bar1_memory_info.used, int, N.nvmlDeviceGetBAR1MemoryInfo),
    Row("utilization.gpu", lambda d: d.utilization.gpu, int, N.nvmlDeviceGetUtilizationRates, plausible=percent),
    Row("utilization.memory", lambda d: d.utilization.memory, int, N.nvmlDeviceGetUtilizationRates, plausible=percent),
]

ATTRIBUTES = [
    Row(
        f"attributes.{name}",
        lambda d, name=name: getattr(d.attributes, name),
        int,
        N.nvmlDeviceGetAttributes_v2,
        lambda r, field=field: getattr(r, field),
    )
    for name, field in {
        "multiprocessor_count": "multiprocessorCount",
        "shared_copy_engine_count": "sharedCopyEngineCount",
        "shared_decoder_count": "sharedDecoderCount",
        "shared_encoder_count": "sharedEncoderCount",
        "shared_jpeg_count": "sharedJpegCount",
        "shared_ofa_count": "sharedOfaCount",
        "gpu_instance_slice_count": "gpuInstanceSliceCount",
        "compute_instance_slice_count": "computeInstanceSliceCount",
        "memory_size_mb": "memorySizeMB",
    }.items()
] + [
    Row(
        "repair_status.channel_repair_pending",
        lambda d: d.repair_status.channel_repair_pending,
        bool,
        N.nvmlDeviceGetRepairStatus,
        lambda r: r.bChannelRepairPending,
    ),
    Row(
        "repair_status.tpc_repair_pending",
        lambda d: d.repair_status.tpc_repair_pending,
        bool,
        N.nvmlDeviceGetRepairStatus,
        lambda r: r.bTpcRepairPending,
    ),
]

CLOCK = N.nvmlClockType_t.NVML_CLOCK_SM
CLOCKS = [
    Row(
        "clock.get_current_mhz",
        lambda d: d.get_clock("sm").get_current_mhz(),
        int,
        lambda h: N.nvmlDeviceGetClock(h, CLOCK, 0),
        plausible=megahertz,
    ),
    Row(
        "clock.get_max_mhz",
        lambda d: d.get_clock("sm").get_max_mhz(),
        int,
        lambda h: N.nvmlDeviceGetMaxClockInfo(h, CLOCK),
        same,
        megahertz,
    ),
    Row(
        "clock.get_max_customer_boost_mhz",
        lambda d: d.get_clock("sm").get_max_customer_boost_mhz(),
        int,
        lambda h: N.nvmlDeviceGetMaxCustomerBoostClock(h, CLOCK),
        same,
        megahertz,
    ),
    Row(
        "clock.get_min_max_clock_of_pstate_mhz",
        lambda d: d.get_clock("sm").get_min_max_clock_of_pstate_mhz(0),
        tuple,
        lambda h: N.nvmlDeviceGetMinMaxClockOfPState(h, CLOCK, 0),
        lambda *both: both,
        lambda v: v[0] <= v[1],
    ),
] + [
    Row(
        f"clock.get_offsets.{name}",
        lambda d, name=name: getattr(d.get_clock("memory").get_offsets(0), name),
        int,
        lambda h: N.nvmlDeviceGetClockOffsets(h, N.nvmlClockOffset_v1_t(type=N.nvmlClockType_t.NVML_CLOCK_MEM)),
        lambda r, field=field: getattr(r, field),
    )
    for name, field in {
        "clock_offset_mhz": "clockOffsetMHz",
        "min_offset_mhz": "minClockOffsetMHz",
        "max_offset_mhz": "maxClockOffsetMHz",
    }.items()
]


def sensor(name: str) -> Callable[[system.Device], Any]:
    return lambda d: getattr(d.temperature.get_thermal_settings("all")[0], name)


def thermal(handle: Any) -> tuple[Any, ...]:
    return N.nvmlDeviceGetThermalSettings(handle, N.nvmlThermalTarget_t.NVML_THERMAL_TARGET_ALL)


COOLING = [
    Row("cooler.signal_type", lambda d: d.cooler.signal_type, (CoolerControl, type(None)), N.nvmlDeviceGetCoolerInfo),
    Row("cooler.target", lambda d: d.cooler.target, list, N.nvmlDeviceGetCoolerInfo, plausible=each_is(CoolerTarget)),
    Row(
        "temperature.get_sensor",
        lambda d: d.temperature.get_sensor(),
        int,
        N.nvmlDeviceGetTemperatureV,
        plausible=celsius,
    ),
    Row("temperature.margin", lambda d: d.temperature.margin, int, N.nvmlDeviceGetMarginTemperature, plausible=celsius),
    Row("thermal_settings", lambda d: len(d.temperature.get_thermal_settings("all")), int, thermal, lambda r: r.count),
    Row("thermal_sensor.controller", sensor("controller"), ThermalController, thermal),
    Row("thermal_sensor.target", sensor("target"), ThermalTarget, thermal),
    Row("thermal_sensor.current_temp", sensor("current_temp"), int, thermal, plausible=celsius),
    Row("thermal_sensor.default_min_temp", sensor("default_min_temp"), int, thermal),
    Row("thermal_sensor.default_max_temp", sensor("default_max_temp"), int, thermal),
] + [
    Row(
        f"temperature.get_threshold({name})",
        lambda d, name=name: d.temperature.get_threshold(name),
        int,
        lambda h, number=number: N.nvmlDeviceGetTemperatureThreshold(h, number),
        same,
        celsius,
    )
    for number, name in enumerate(
        ("shutdown", "slowdown", "mem_max", "gpu_max", "acoustic_min", "acoustic_curr", "acoustic_max", "gps_curr")
    )
]

PCI = [
    Row(
        f"pci_info.{name}",
        lambda d, name=name: getattr(d.pci_info, name),
        int,
        N.nvmlDeviceGetPciInfoExt,
        lambda r, field=field: getattr(r, field),
    )
    for name, field in {
        "bus": "bus",
        "device": "device",
        "domain": "domain",
        "subsystem_id": "pciSubSystemId",
        "base_class": "baseClass",
        "sub_class": "subClass",
    }.items()
] + [
    Row("pci_info.bus_id", lambda d: d.pci_info.bus_id, str, N.nvmlDeviceGetPciInfoExt),
    Row(
        "pci_info.vendor_id",
        lambda d: d.pci_info.vendor_id,
        int,
        N.nvmlDeviceGetPciInfoExt,
        lambda r: r.pciDeviceId & 0xFFFF,
        lambda v: v == 0x10DE,
    ),
    Row(
        "pci_info.device_id",
        lambda d: d.pci_info.device_id,
        int,
        N.nvmlDeviceGetPciInfoExt,
        lambda r: r.pciDeviceId >> 16,
    ),
    Row(
        "pci_info.link_generation",
        lambda d: d.pci_info.link_generation,
        int,
        N.nvmlDeviceGetMaxPcieLinkGeneration,
        same,
    ),
    Row(
        "pci_info.max_link_generation",
        lambda d: d.pci_info.max_link_generation,
        int,
        N.nvmlDeviceGetGpuMaxPcieLinkGeneration,
        same,
    ),
    Row("pci_info.max_link_width", lambda d: d.pci_info.max_link_width, int, N.nvmlDeviceGetMaxPcieLinkWidth, same),
    Row(
        "pci_info.current_link_generation",
        lambda d: d.pci_info.current_link_generation,
        int,
        N.nvmlDeviceGetCurrPcieLinkGeneration,
        plausible=lambda v: 0 < v < 10,
    ),
    Row(
        "pci_info.current_link_width",
        lambda d: d.pci_info.current_link_width,
        int,
        N.nvmlDeviceGetCurrPcieLinkWidth,
        same,
    ),
    Row(
        "pci_info.rx_throughput", lambda d: d.pci_info.rx_throughput, int, lambda h: N.nvmlDeviceGetPcieThroughput(h, 1)
    ),
    Row(
        "pci_info.tx_throughput", lambda d: d.pci_info.tx_throughput, int, lambda h: N.nvmlDeviceGetPcieThroughput(h, 0)
    ),
    Row("pci_info.replay_counter", lambda d: d.pci_info.replay_counter, int, N.nvmlDeviceGetPcieReplayCounter),
]

INFOROM = [
    Row(
        "inforom.image_version",
        lambda d: d.inforom.image_version,
        str,
        lambda h: N.nvmlDeviceGetInforomImageVersion(h, SIZE),
        text,
    ),
    Row(
        "inforom.configuration_checksum",
        lambda d: d.inforom.configuration_checksum,
        int,
        N.nvmlDeviceGetInforomConfigurationChecksum,
        same,
    ),
    Row(
        "inforom.bbx_flush_time",
        lambda d: d.inforom.bbx_flush_time,
        tuple,
        N.nvmlDeviceGetLastBBXFlushTime,
        lambda *both: both,
    ),
    Row(
        "inforom.board_part_number",
        lambda d: d.inforom.board_part_number,
        str,
        lambda h: N.nvmlDeviceGetBoardPartNumber(h, SIZE),
        text,
    ),
    Row("inforom.validate", lambda d: d.inforom.validate(), type(None), N.nvmlDeviceValidateInforom),
] + [
    Row(
        f"inforom.get_version({name})",
        lambda d, name=name: d.inforom.get_version(name),
        str,
        lambda h, number=number: N.nvmlDeviceGetInforomVersion(h, number, SIZE),
        text,
    )
    for number, name in enumerate(("oem", "ecc", "power", "den"))
]

OTHERS = [
    Row("mig.is_mig_device", lambda d: d.mig.is_mig_device, bool, N.nvmlDeviceIsMigDeviceHandle, same),
    Row("mig.mode", lambda d: d.mig.mode, bool, N.nvmlDeviceGetMigMode, lambda now, pending: now),
    Row("mig.pending_mode", lambda d: d.mig.pending_mode, bool, N.nvmlDeviceGetMigMode, lambda now, pending: pending),
    Row("mig.device_count", lambda d: d.mig.device_count, int, N.nvmlDeviceGetMaxMigDeviceCount, same),
    Row("mig.get_all_devices", lambda d: list(d.mig.get_all_devices()), list, N.nvmlDeviceGetMaxMigDeviceCount),
    Row("mig.parent", lambda d: d.mig.parent, system.Device, N.nvmlDeviceGetDeviceHandleFromMigDeviceHandle),
    Row(
        "dynamic_pstates_info",
        lambda d: len(d.dynamic_pstates_info),
        int,
        N.nvmlDeviceGetDynamicPstatesInfo,
        lambda r: len(r.utilization),
    ),
    Row(
        "get_cpu_affinity",
        lambda d: d.get_cpu_affinity(),
        list,
        lambda h: N.nvmlDeviceGetCpuAffinityWithinScope(h, 16, N.NVML_AFFINITY_SCOPE_NODE),
        plausible=each_is(int),
    ),
    Row(
        "get_memory_affinity",
        lambda d: d.get_memory_affinity("socket"),
        list,
        lambda h: N.nvmlDeviceGetMemoryAffinity(h, 16, N.NVML_AFFINITY_SCOPE_SOCKET),
        plausible=each_is(int),
    ),
    Row(
        "get_topology_nearest_gpus",
        lambda d: list(d.get_topology_nearest_gpus("system")),
        list,
        lambda h: N.nvmlDeviceGetTopologyNearestGpus(h, N.nvmlGpuTopologyLevel_t.NVML_TOPOLOGY_SYSTEM),
        plausible=each_is(system.Device),
    ),
    Row(
        "compute_running_processes",
        lambda d: d.compute_running_processes,
        list,
        lambda h: N.nvmlDeviceGetComputeRunningProcesses_v3(h, 100),
    ),
] + [
    Row(
        f"dynamic_pstates_info.{name}",
        lambda d, name=name: getattr(d.dynamic_pstates_info[0], name),
        kind,
        N.nvmlDeviceGetDynamicPstatesInfo,
    )
    for name, kind in {"is_present": bool, "percentage": int, "inc_threshold": int, "dec_threshold": int}.items()
]

ROWS = [*IDENTITY, *STATE, *MEMORY, *ATTRIBUTES, *CLOCKS, *COOLING, *PCI, *INFOROM, *OTHERS]


@pytest.mark.filterwarnings("ignore:the threshold:DeprecationWarning")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_member_is_what_nvml_says(row: Row) -> None:
    device = system.Device(index=0)
    status, *told = row.raw(device._handle)
    if status and status != nvml.nvmlReturn_t.NVML_ERROR_INSUFFICIENT_SIZE:
        with pytest.raises(exceptions.class_of(status.name)):
            row.read(device)
        return
    value = row.read(device)
    assert isinstance(value, row.kind)
    assert type(value) is not int or not isinstance(value, bool)
    assert row.plausible(value)
    if row.value is not None:
        assert value == row.value(*told)


FANS = {
    "speed": (int, lambda h: N.nvmlDeviceGetFanSpeed_v2(h, 0)),
    "speed_rpm": (int, N.nvmlDeviceGetFanSpeedRPM),
    "target_speed": (int, lambda h: N.nvmlDeviceGetTargetFanSpeed(h, 0)),
    "min_max_speed": (tuple, N.nvmlDeviceGetMinMaxFanSpeed),
    "control_policy": (FanControlPolicy, lambda h: N.nvmlDeviceGetFanControlPolicy_v2(h, 0)),
}


@pytest.mark.parametrize("name", FANS)
def test_a_fan_is_what_nvml_says(name: str) -> None:
    device = system.Device(index=0)
    if not device.num_fans:
        with pytest.raises(ValueError, match="the device has no fans"):
            device.get_fan()
        return
    kind, raw = FANS[name]
    status = raw(device._handle)[0]
    if status:
        with pytest.raises(exceptions.class_of(status.name)):
            getattr(device.get_fan(), name)
    else:
        assert isinstance(getattr(device.get_fan(), name), kind)


def test_links_are_what_nvml_says() -> None:
    device = system.Device(index=0)
    links = list(device.get_nvlinks())
    assert len(links) == device.get_nvlink_count()
    for number, link in enumerate(links):
        status, active = nvml.nvmlDeviceGetNvLinkState(device._handle, number)
        assert not status
        assert link.state is (active == nvml.nvmlEnableState_t.NVML_FEATURE_ENABLED)
        assert link.version >= (0, 0)
    with pytest.raises(ValueError, match="link"):
        device.get_nvlink(len(links))


def test_every_class_has_all_its_members_read() -> None:
    read = " ".join(row.name for row in ROWS) + " ".join(FANS) + "version state"
    tested_elsewhere = {
        "mig",
        "inforom",
        "cooler",
        "temperature",
        "attributes",
        "repair_status",
        "memory_info",
        "utilization",
        "bar1_memory_info",
        "pci_info",
    }
    classes = [
        _device.Device,
        *(getattr(_device, name) for name in _device.__all__ if name.endswith(("Info", "Status"))),
    ]
    for cls in classes:
        for base in cls.__mro__:
            for name, item in vars(base).items():
                if isinstance(item, property) and not name.startswith("_") and cls is not _device.ProcessInfo:
                    assert name in tested_elsewhere or name in read, f"{cls.__name__}.{name}"
