# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The devices of the simulated NVML: they are the driver's, and their values can be set."""

from __future__ import annotations

import itertools
import os
from ctypes import c_ulonglong
from types import ModuleType

import pytest
from sim_driver import Driver, byref, c_char, c_int, c_size_t, c_uint, c_void_p, ctypes, run_alone
from sim_nvml import FieldValue, Memory, Nvml, Pci, Temperature, Utilization, Versioned

ENABLED, DISABLED = 1, 0
GRAPHICS, SM, MEMORY, VIDEO = range(4)


class Uuid(Versioned):
    _fields_ = [("version", c_uint), ("type", c_uint), ("value", c_char * 41)]


@pytest.fixture
def device(nvml: Nvml) -> c_void_p:
    return nvml.device()


def test_the_devices_are_those_of_the_driver(nvml: Nvml, driver: Driver, device: c_void_p) -> None:
    assert nvml.get("nvmlDeviceGetCount_v2") == driver.out(c_int, "cuDeviceGetCount").value
    name, bus, uuid = (ctypes.create_string_buffer(64) for _ in range(3))
    driver.cuDeviceGetName(name, 64, 0)
    driver.cuDeviceGetPCIBusId(bus, 64, 0)
    driver.cuDeviceGetUuid_v2(uuid, 0)
    assert nvml.text("nvmlDeviceGetName", device) == name.value.decode()
    pci = nvml.get("nvmlDeviceGetPciInfo_v3", device, kind=Pci)
    assert (pci.legacy, pci.bus_id) == (bus.value, b"0000" + bus.value)
    text = nvml.text("nvmlDeviceGetUUID", device)
    assert text.startswith("GPU-")
    assert bytes.fromhex(text.removeprefix("GPU-").replace("-", "")) == uuid.raw[:16]
    total = driver.out(c_size_t, "cuDeviceTotalMem_v2", 0).value
    assert nvml.get("nvmlDeviceGetMemoryInfo", device, kind=Memory).total == total
    capability = nvml.numbers("nvmlDeviceGetCudaComputeCapability", device, count=2, kind=c_int)
    assert capability == [driver.out(c_int, "cuDeviceGetAttribute", number, 0).value for number in (75, 76)]


def test_a_device_is_found_by_what_identifies_it() -> None:
    printed = run_alone(
        """
        from sim_nvml import Nvml, Pci
        nvml = Nvml()
        nvml.nvmlInit_v2()
        device = nvml.device(2)
        pci = nvml.get("nvmlDeviceGetPciInfo_v3", device, kind=Pci)
        ways = [("UUID", nvml.text("nvmlDeviceGetUUID", device)), ("Serial", nvml.text("nvmlDeviceGetSerial", device)),
                ("PciBusId_v2", pci.bus_id.decode()), ("PciBusId", pci.legacy.decode()), ("PciBusId_v2", "12:0.0")]
        for way, text in ways:
            found = c_void_p()
            print(nvml.status("nvmlDeviceGetHandleBy" + way, text.encode(), byref(found)), found.value == device.value)
            print(nvml.status("nvmlDeviceGetHandleBy" + way, text.replace("2", "9").encode(), byref(found)))
        print([nvml.get(f"nvmlDeviceGet{what}", device) for what in ("Index", "MinorNumber", "ModuleId", "BoardId")])
        print(nvml.status("nvmlDeviceGetHandleByIndex", 4, byref(found)))
        print([nvml.get("nvmlDeviceOnSameBoard", device, other) for other in (device, nvml.device(0))])
        """,
        CUDA_SIM_DEVICES="4",
        CUDA_VISIBLE_DEVICES="0",
    )
    assert printed.splitlines() == [
        *["Success True", "Not Found"] * 5,
        "[2, 2, 2, 4608]",
        "Invalid Argument",
        "[1, 0]",
    ]


@pytest.mark.parametrize("address", ["1:10:0.0", "0:10:1.0", "0:10:0.1", "0:0f:0.0", "0:11:0.0"])
def test_no_other_address_is_a_device(nvml: Nvml, address: str) -> None:
    assert nvml.status("nvmlDeviceGetHandleByPciBusId_v2", address.encode(), byref(c_void_p())) == "Not Found"
    assert nvml.status("nvmlDeviceGetHandleByPciBusId_v2", b"nowhere", byref(c_void_p())) == "Invalid Argument"


def test_a_uuid_may_be_text_or_bytes(nvml: Nvml, device: c_void_p) -> None:
    text = nvml.text("nvmlDeviceGetUUID", device).encode()
    raw = bytes.fromhex(text[4:].decode().replace("-", ""))
    for kind, value in ((1, text), (2, raw)):
        uuid = Uuid.make(type=kind)
        ctypes.memmove(ctypes.addressof(uuid) + Uuid.value.offset, value, len(value))
        found = c_void_p()
        assert nvml.status("nvmlDeviceGetHandleByUUIDV", byref(uuid), byref(found)) == "Success"
        assert found.value == device.value
    assert nvml.status("nvmlDeviceGetHandleByUUIDV", byref(Uuid.make(type=3)), byref(c_void_p())) == "Invalid Argument"


def test_old_structures_are_not_written_beyond_their_end(nvml: Nvml, device: c_void_p) -> None:
    for function, end in (
        ("nvmlDeviceGetPciInfo", Pci.pci_subsystem.offset),
        ("nvmlDeviceGetPciInfo_v2", Pci.bus_id.offset),
    ):
        pci = Pci()
        ctypes.memset(byref(pci), 0x55, ctypes.sizeof(pci))
        getattr(nvml, function)(device, byref(pci))
        assert bytes(pci)[end:] == b"\x55" * (ctypes.sizeof(pci) - end)
        assert pci.bus == 0x10


@pytest.mark.parametrize(
    ("capability", "architecture", "cores"),
    [("7.5", 6, 64), ("8.0", 7, 64), ("8.9", 8, 128), ("9.0", 9, 128), ("10.0", 10, 128)],
)
def test_the_architecture_is_that_of_the_compute_capability(capability: str, architecture: int, cores: int) -> None:
    printed = run_alone(
        """
        from sim_nvml import Nvml
        nvml = Nvml()
        nvml.nvmlInit_v2()
        print(nvml.get("nvmlDeviceGetArchitecture", nvml.device()), nvml.get("nvmlDeviceGetNumGpuCores", nvml.device()))
        """,
        CUDA_SIM_COMPUTE_CAPABILITY=capability,
    )
    assert printed.split() == [str(architecture), str(132 * cores)]


# What a sensor changes: a function of one number, and the sensor.
READINGS = {
    "temperature": ("nvmlDeviceGetTemperature", 0),
    "power": ("nvmlDeviceGetPowerUsage",),
    "power_limit": ("nvmlDeviceGetEnforcedPowerLimit",),
    "graphics_clock": ("nvmlDeviceGetClockInfo", GRAPHICS),
    "sm_clock": ("nvmlDeviceGetClock", SM, 0),
    "memory_clock": ("nvmlDeviceGetClockInfo", MEMORY),
    "video_clock": ("nvmlDeviceGetClockInfo", VIDEO),
    "pstate": ("nvmlDeviceGetPerformanceState",),
    "pcie_generation": ("nvmlDeviceGetCurrPcieLinkGeneration",),
    "pcie_width": ("nvmlDeviceGetCurrPcieLinkWidth",),
    "pcie_tx": ("nvmlDeviceGetPcieThroughput", 0),
    "pcie_rx": ("nvmlDeviceGetPcieThroughput", 1),
    "pcie_replays": ("nvmlDeviceGetPcieReplayCounter",),
    "persistence_mode": ("nvmlDeviceGetPersistenceMode",),
    "compute_mode": ("nvmlDeviceGetComputeMode",),
    "accounting_mode": ("nvmlDeviceGetAccountingMode",),
}


@pytest.mark.parametrize("sensor", READINGS)
def test_a_sensor_says_what_was_set(nvml: Nvml, sim: ModuleType, device: c_void_p, sensor: str) -> None:
    function, *arguments = READINGS[sensor]
    before = sim.sensors()[sensor]
    assert nvml.get(function, device, *arguments) == before
    sim.set_sensor(0, sensor, before + 1)
    assert nvml.get(function, device, *arguments) == sim.sensors()[sensor] == before + 1
    sim.reset_sensors()
    assert nvml.get(function, device, *arguments) == before


def test_sensors_that_are_unknown_are_refused(sim: ModuleType) -> None:
    for arguments in ((0, "humidity", 1), (99, "temperature", 1)):
        with pytest.raises(ValueError, match="no sensor"):
            sim.set_sensor(*arguments)
    with pytest.raises(ValueError, match="no simulated device 99"):
        sim.sensors(99)


def test_the_environment_sets_sensors() -> None:
    printed = run_alone(
        """
        print([(sim.sensors(i)["temperature"], sim.sensors(i)["power"], sim.sensors(i)["pstate"]) for i in range(2)])
        """,
        CUDA_SIM_SENSORS="temperature=85,1:power=300000",
        CUDA_SIM_DEVICES="2",
    )
    assert printed.strip() == "[(85, 70000, 0), (85, 300000, 0)]"


def test_temperatures_and_their_limits_fit_together(nvml: Nvml, sim: ModuleType, device: c_void_p) -> None:
    sim.set_sensor(0, "temperature", 50)
    reading = Temperature.make()
    nvml.nvmlDeviceGetTemperatureV(device, byref(reading))
    margin = Temperature.make()  # has its number where this one has the sensor
    margin.version = 8 | 1 << 24
    nvml.nvmlDeviceGetMarginTemperature(device, byref(margin))
    limits = [nvml.get("nvmlDeviceGetTemperatureThreshold", device, kind) for kind in range(4)]
    assert (reading.temperature, margin.sensor) == (50, limits[3] - 50)
    assert limits[3] < limits[1] < limits[0]
    assert nvml.status("nvmlDeviceGetTemperatureThreshold", device, 4, byref(c_uint())) == "Not Supported"
    assert nvml.status("nvmlDeviceGetTemperature", device, 1, byref(c_uint())) == "Invalid Argument"


def test_only_the_first_thermal_sensor_has_temperatures(nvml: Nvml, sim: ModuleType, device: c_void_p) -> None:
    sim.set_sensor(0, "temperature", 61)
    first, internal, unchanged = [1, 0, 87, 61, 1], [1, 0, 0, 0, 1], [7] * 5
    told = {
        0: [first, unchanged, unchanged],
        1: [unchanged, internal, unchanged],
        2: [unchanged, unchanged, internal],
        4: [unchanged] * 3,
        15: [first, unchanged, unchanged],
    }
    for number, sensors in told.items():
        settings = (c_int * 16)(*[7] * 16)
        nvml.nvmlDeviceGetThermalSettings(device, number, byref(settings))
        assert list(settings) == [1, *itertools.chain(*sensors)]


def test_utilisation_can_be_set(nvml: Nvml, sim: ModuleType, device: c_void_p) -> None:
    sim.set_sensor(0, "gpu_utilization", 90)
    sim.set_sensor(0, "memory_utilization", 20)
    sim.set_sensor(0, "encoder_utilization", 5)
    utilization = nvml.get("nvmlDeviceGetUtilizationRates", device, kind=Utilization)
    assert (utilization.gpu, utilization.memory) == (90, 20)
    assert nvml.numbers("nvmlDeviceGetEncoderUtilization", device, count=2)[0] == 5


def test_modes_are_set_as_they_may_be(nvml: Nvml, device: c_void_p) -> None:
    for mode, value, wrong in (("PersistenceMode", DISABLED, 2), ("ComputeMode", 3, 4), ("AccountingMode", ENABLED, 2)):
        getattr(nvml, f"nvmlDeviceSet{mode}")(device, value)
        assert nvml.get(f"nvmlDeviceGet{mode}", device) == value
        assert nvml.status(f"nvmlDeviceSet{mode}", device, wrong) == "Invalid Argument"
        assert nvml.get(f"nvmlDeviceGet{mode}", device) == value


def test_the_power_limit_stays_within_its_constraints(nvml: Nvml, device: c_void_p) -> None:
    least, most = nvml.numbers("nvmlDeviceGetPowerManagementLimitConstraints", device, count=2)
    nvml.nvmlDeviceSetPowerManagementLimit(device, least)
    assert nvml.get("nvmlDeviceGetPowerManagementLimit", device) == least
    for wrong in (least - 1, most + 1):
        assert nvml.status("nvmlDeviceSetPowerManagementLimit", device, wrong) == "Invalid Argument"
    assert nvml.get("nvmlDeviceGetPowerManagementDefaultLimit", device) == most


def test_energy_is_power_over_time_until_it_is_set(nvml: Nvml, sim: ModuleType, device: c_void_p) -> None:
    first = nvml.get("nvmlDeviceGetTotalEnergyConsumption", device, kind=c_ulonglong)
    sim.set_sensor(0, "power", 140000)
    second = nvml.get("nvmlDeviceGetTotalEnergyConsumption", device, kind=c_ulonglong)
    assert 1.9 < second / first < 2.1
    sim.set_sensor(0, "energy", 5)
    assert nvml.get("nvmlDeviceGetTotalEnergyConsumption", device, kind=c_ulonglong) == 5


def test_clocks_of_applications_are_supported_ones(nvml: Nvml, device: c_void_p) -> None:
    count, memory = c_uint(0), c_uint()
    assert nvml.status("nvmlDeviceGetSupportedMemoryClocks", device, byref(count), None) == "Insufficient Size"
    nvml.nvmlDeviceGetSupportedMemoryClocks(device, byref(count), byref(memory))
    count = c_uint(0)
    assert (
        nvml.status("nvmlDeviceGetSupportedGraphicsClocks", device, memory, byref(count), None) == "Insufficient Size"
    )
    clocks = (c_uint * count.value)()
    nvml.nvmlDeviceGetSupportedGraphicsClocks(device, memory, byref(count), clocks)
    assert list(clocks) == sorted(clocks, reverse=True)
    assert clocks[0] == nvml.get("nvmlDeviceGetMaxClockInfo", device, GRAPHICS)
    nvml.nvmlDeviceSetApplicationsClocks(device, memory, clocks[3])
    assert nvml.get("nvmlDeviceGetApplicationsClock", device, GRAPHICS) == clocks[3]
    assert nvml.status("nvmlDeviceSetApplicationsClocks", device, memory, clocks[3] + 1) == "Invalid Argument"
    nvml.nvmlDeviceResetApplicationsClocks(device)
    assert nvml.get("nvmlDeviceGetApplicationsClock", device, GRAPHICS) == clocks[0]
    assert nvml.status("nvmlDeviceGetSupportedGraphicsClocks", device, 1, byref(count), clocks) == "Not Found"


def test_errors_of_the_memory_are_counted_and_cleared(nvml: Nvml, sim: ModuleType, device: c_void_p) -> None:
    sim.set_sensor(0, "ecc_uncorrected_volatile", 3)
    sim.set_sensor(0, "ecc_corrected_aggregate", 7)

    def totals() -> list[int]:
        return [
            nvml.get("nvmlDeviceGetTotalEccErrors", device, kind, counter, kind=c_ulonglong)
            for kind in (0, 1)
            for counter in (0, 1)
        ]

    assert totals() == [0, 7, 3, 0]
    assert nvml.get("nvmlDeviceGetMemoryErrorCounter", device, 1, 0, 2, kind=c_ulonglong) == 3
    assert (nvml.field(device, 4), nvml.field(device, 5)) == (("Success", 3), ("Success", 7))
    nvml.nvmlDeviceClearEccErrorCounts(device, 0)
    assert totals() == [0, 7, 0, 0]
    nvml.nvmlDeviceSetEccMode(device, DISABLED)
    assert nvml.numbers("nvmlDeviceGetEccMode", device, count=2) == [ENABLED, DISABLED]
    sim.set_sensor(0, "ecc_mode", DISABLED)
    assert nvml.status("nvmlDeviceGetTotalEccErrors", device, 0, 0, byref(c_ulonglong())) == "Not Supported"
    sim.set_sensor(0, "remapped_pending", 1)
    assert nvml.numbers("nvmlDeviceGetRemappedRows", device, count=4) == [0, 0, 1, 0]


def test_mig_is_off(nvml: Nvml, device: c_void_p) -> None:
    assert nvml.numbers("nvmlDeviceGetMigMode", device, count=2) == [0, 0]
    assert nvml.get("nvmlDeviceIsMigDeviceHandle", device) == nvml.get("nvmlDeviceGetMaxMigDeviceCount", device) == 0
    assert nvml.status("nvmlDeviceGetMigDeviceHandleByIndex", device, 0, byref(c_void_p())) == "Not Found"
    assert nvml.status("nvmlDeviceSetMigMode", device, 1, byref(c_uint())) == "Not Supported"


def test_without_fans_there_is_no_speed(nvml: Nvml, device: c_void_p) -> None:
    assert nvml.get("nvmlDeviceGetNumFans", device) == 0
    assert nvml.status("nvmlDeviceGetFanSpeed", device, byref(c_uint())) == "Not Supported"


def test_fans_are_as_many_as_the_environment_says() -> None:
    printed = run_alone(
        """
        from sim_nvml import Nvml
        nvml = Nvml()
        nvml.nvmlInit_v2()
        device = nvml.device()
        print(nvml.get("nvmlDeviceGetNumFans", device))
        print(nvml.status("nvmlDeviceGetFanSpeed_v2", device, 2, byref(c_uint())))
        nvml.nvmlDeviceSetFanSpeed_v2(device, 1, 70)
        print(nvml.get("nvmlDeviceGetFanSpeed_v2", device, 1), nvml.get("nvmlDeviceGetFanControlPolicy_v2", device, 0))
        nvml.nvmlDeviceSetDefaultFanSpeed_v2(device, 1)
        print(nvml.get("nvmlDeviceGetFanSpeed", device), nvml.get("nvmlDeviceGetFanControlPolicy_v2", device, 0))
        """,
        CUDA_SIM_FANS="2",
    )
    assert printed.splitlines() == ["2", "Invalid Argument", "70 1", "30 0"]


def test_field_values_have_a_status_each(nvml: Nvml, sim: ModuleType, device: c_void_p) -> None:
    sim.set_sensor(0, "memory_temperature", 77)
    values = (FieldValue * 3)(FieldValue(id=82), FieldValue(id=250), FieldValue(id=100000))
    nvml.nvmlDeviceGetFieldValues(device, 3, values)
    assert [value.status for value in values] == [0, 3, 2]
    assert (values[0].value, values[0].type) == (77, 1)
    sim.set_sensor(0, "pcie_replays", 4)
    assert nvml.field(device, 94) == ("Success", 4)
    nvml.nvmlDeviceClearFieldValues(device, 1, byref(FieldValue(id=94)))
    assert nvml.field(device, 94) == ("Success", 0)


def test_affinity_is_to_the_processors_there_are(nvml: Nvml, device: c_void_p) -> None:
    words = (ctypes.c_ulong * 16)()
    nvml.nvmlDeviceGetCpuAffinity(device, 16, words)
    bits = {i * 64 + j for i, word in enumerate(words) for j in range(64) if word >> j & 1}
    assert len(bits) == os.sysconf("SC_NPROCESSORS_ONLN")
    assert nvml.status("nvmlDeviceGetCpuAffinityWithinScope", device, 16, words, 2) == "Invalid Argument"
    nvml.nvmlDeviceGetMemoryAffinity(device, 16, words, 0)
    assert words[0] & 1
