# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What ``python -m cuda_core_cffi.system`` prints: the machine at one moment, as a document and as tables."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TypedDict, TypeVar

from cuda_core_cffi._core.errors import CUDAError
from cuda_core_cffi.system._device import Device
from cuda_core_cffi.system._library import nvml, reads_number
from cuda_core_cffi.system._system import (
    get_nvml_version,
    get_process_name,
    get_user_mode_driver_version,
    read_driver_version,
)

T = TypeVar("T")

MIB = 1 << 20
MILLIWATTS = 1000
NOT_AVAILABLE = "N/A"
NO_NUMBER = nvml.NVML_VALUE_NOT_AVAILABLE % 2**64  # in a field of 64 bits without a sign
COMPUTE_MODE_PREFIX = "NVML_COMPUTEMODE_"
COMPUTE_MODES = {
    int(mode): mode.name.removeprefix(COMPUTE_MODE_PREFIX).lower().replace("_", " ") for mode in nvml.nvmlComputeMode_t
}

read_compute_mode = reads_number("nvmlDeviceGetComputeMode", int)
read_power_usage = reads_number("nvmlDeviceGetPowerUsage", int)
read_enforced_power_limit = reads_number("nvmlDeviceGetEnforcedPowerLimit", int)


class ProcessReport(TypedDict):
    """A process with a compute context: its number, its name, and bytes of the device's memory."""

    pid: int
    name: str | None
    memory_used: int | None


class DeviceReport(TypedDict):
    """A device. Memory is in bytes, power in watts, the temperature in degrees Celsius, utilisation in percent."""

    index: int | None
    uuid: str | None
    name: str | None
    pci_bus_id: str | None
    temperature: int | None
    power_usage: float | None
    power_limit: float | None
    memory_used: int | None
    memory_total: int | None
    gpu_utilization: int | None
    memory_utilization: int | None
    compute_mode: str | None
    processes: list[ProcessReport] | None


class Report(TypedDict):
    """The machine. What NVML does not tell is None."""

    driver_version: str | None
    cuda_version: str | None
    nvml_version: str | None
    devices: list[DeviceReport]


def known(ask: Callable[[], T]) -> T | None:
    """Return what is asked for; None if it is not told."""
    try:
        return ask()
    except (CUDAError, RuntimeError):  # RuntimeError: an instance has no PCI address
        return None


def joined(version: tuple[int, ...] | None) -> str | None:
    """Return a version as text."""
    return None if version is None else ".".join(map(str, version))


def read() -> Report:
    """Ask for everything.

    Raises
    ------
    LibraryNotFoundError
        If there is no NVML.
    NvmlError
        If it does not tell the number of devices.
    """
    devices = [device_report(device) for device in Device.get_all_devices()]
    return {
        "driver_version": known(read_driver_version),
        "cuda_version": joined(known(get_user_mode_driver_version)),
        "nvml_version": joined(known(get_nvml_version)),
        "devices": devices,
    }


def device_report(device: Device) -> DeviceReport:
    """Return what is known of a device."""
    memory, utilization = known(lambda: device.memory_info), known(lambda: device.utilization)
    return {
        "index": known(lambda: device.index),
        "uuid": known(lambda: device.uuid),
        "name": known(lambda: device.name),
        "pci_bus_id": known(lambda: device.pci_bus_id),
        "temperature": known(device.temperature.get_sensor),
        "power_usage": known(lambda: read_power_usage(device) / MILLIWATTS),
        "power_limit": known(lambda: read_enforced_power_limit(device) / MILLIWATTS),
        "memory_used": memory.used if memory else None,
        "memory_total": memory.total if memory else None,
        "gpu_utilization": utilization.gpu if utilization else None,
        "memory_utilization": utilization.memory if utilization else None,
        "compute_mode": known(lambda: compute_mode(device)),
        "processes": known(lambda: process_reports(device)),
    }


def compute_mode(device: Device) -> str:
    """Return who may use a device. What NVML adds later is its number."""
    mode = read_compute_mode(device)
    return COMPUTE_MODES.get(mode, str(mode))


def process_reports(device: Device) -> list[ProcessReport]:
    """Return the processes that use a device."""
    found: list[ProcessReport] = []
    for process in device.compute_running_processes:
        pid, used = process.pid, process.used_gpu_memory
        name = known(functools.partial(get_process_name, pid))  # the process may have ended
        found.append({"pid": pid, "name": name, "memory_used": None if used == NO_NUMBER else used})
    return found


def tables(report: Report) -> Iterator[str]:
    """Yield the lines of the tables that show a report."""
    yield (
        f"Driver {shown(report['driver_version'])}   CUDA {shown(report['cuda_version'])}   "
        f"NVML {shown(report['nvml_version'])}"
    )
    yield ""
    header = ("GPU", "Name", "Bus id", "Temp", "Power", "Memory", "Util", "Compute mode")
    yield from aligned(header, [device_row(device) for device in report["devices"]], "><<>>>><")
    yield ""
    processes = [
        (shown(device["index"]), shown(process["pid"]), mebibytes(process["memory_used"]), shown(process["name"]))
        for device in report["devices"]
        for process in device["processes"] or ()
    ]
    if processes:
        yield from aligned(("GPU", "PID", "Memory", "Process"), processes, ">>><")
    else:
        yield "No process has a compute context."


def device_row(device: DeviceReport) -> tuple[str, ...]:
    """Return the cells of a device."""
    return (
        shown(device["index"]),
        shown(device["name"]),
        shown(device["pci_bus_id"]),
        shown(device["temperature"], " C"),
        f"{watts(device['power_usage'])} / {watts(device['power_limit'])}",
        f"{mebibytes(device['memory_used'])} / {mebibytes(device['memory_total'])}",
        shown(device["gpu_utilization"], " %"),
        shown(device["compute_mode"]),
    )


def shown(item: object, unit: str = "") -> str:
    """Return a cell."""
    return NOT_AVAILABLE if item is None else f"{item}{unit}"


def watts(power: float | None) -> str:
    """Return a power as a cell."""
    return NOT_AVAILABLE if power is None else f"{power:.0f} W"


def mebibytes(size: int | None) -> str:
    """Return a size of memory as a cell."""
    return NOT_AVAILABLE if size is None else f"{size // MIB} MiB"


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], sides: str) -> Iterator[str]:
    """Yield the lines of a table; ``sides`` has ``<`` or ``>`` for each column."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        yield "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)).rstrip()
