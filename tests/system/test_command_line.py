# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""python -m cuda_core_cffi.system: tables, JSON, and again and again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest
from helpers import LIMIT, child_environment, output_of, take_interrupts

from cuda_core_cffi import system
from cuda_core_cffi.system import __main__ as command_line
from cuda_core_cffi.system import _cooling, _report
from cuda_core_cffi.system._library import nvml
from cuda_core_cffi.system.exceptions import failure

DEVICE_KEYS = {
    *(
        "index",
        "uuid",
        "name",
        "pci_bus_id",
        "temperature",
        "power_usage",
        "power_limit",
        "memory_used",
        "memory_total",
    ),
    *("gpu_utilization", "memory_utilization", "compute_mode", "processes"),
}


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cuda_core_cffi.system", *arguments]
    return subprocess.run(
        command, env=child_environment(**environment), capture_output=True, text=True, timeout=LIMIT, check=False
    )


def test_the_tables_name_every_device(capsys) -> None:
    assert command_line.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Driver ")
    assert lines[2].split() == ["GPU", "Name", "Bus", "id", "Temp", "Power", "Memory", "Util", "Compute", "mode"]
    for line, device in zip(lines[3:], system.Device.get_all_devices(), strict=False):
        assert line.split()[0] == str(device.index)
        assert device.name in line
        assert device.pci_bus_id in line
    assert lines[-1] == "No process has a compute context." or "PID  " in "\n".join(lines[4:])


def test_the_document_has_every_key(capsys) -> None:
    assert command_line.main(["--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert set(report) == {"driver_version", "cuda_version", "nvml_version", "devices"}
    assert len(report["devices"]) == system.get_num_devices()
    device = system.Device(index=0)
    told = report["devices"][0]
    assert set(told) == DEVICE_KEYS
    assert (told["uuid"], told["name"], told["memory_total"]) == (device.uuid, device.name, device.memory_info.total)
    assert all(set(process) == {"pid", "name", "memory_used"} for process in told["processes"] or ())


def test_what_a_device_does_not_tell_is_null_and_not_available(monkeypatch) -> None:
    def unsupported(handle):
        raise failure(nvml.nvmlReturn_t.NVML_ERROR_NOT_SUPPORTED, "nvmlDeviceGet")

    for module, name in ((_report, "power_usage"), (_cooling, "gpu_temperature"), (_report, "compute_mode")):
        monkeypatch.setattr(module, f"read_{name}", unsupported)
    report = _report.read()
    told = report["devices"][0]
    assert told["power_usage"] is told["temperature"] is told["compute_mode"] is None
    row = "\n".join(_report.tables(report)).splitlines()[3]
    assert row.count("N/A") == 3


def test_a_process_is_listed_with_its_memory(monkeypatch) -> None:
    record = nvml.nvmlProcessInfo_v2_t(pid=4321, usedGpuMemory=3 << 20)
    unknown = nvml.nvmlProcessInfo_v2_t(pid=4322, usedGpuMemory=_report.NO_NUMBER)

    def running(handle, room):
        return nvml.nvmlReturn_t.NVML_SUCCESS, 2, [record, unknown]

    running.__name__ = "nvmlDeviceGetComputeRunningProcesses_v3"
    monkeypatch.setattr(nvml, running.__name__, running)
    monkeypatch.setattr(_report, "get_process_name", lambda pid: "python")
    lines = list(_report.tables(_report.read()))
    rows = [line.split() for line in lines]
    assert [row for row in rows if row[1:2] in (["4321"], ["4322"])][:2] == [
        ["0", "4321", "3", "MiB", "python"],
        ["0", "4322", "N/A", "python"],
    ]


def test_a_compute_mode_has_a_name(monkeypatch) -> None:
    names = [_report.COMPUTE_MODES[int(mode)] for mode in nvml.nvmlComputeMode_t]
    assert names[:4] == ["default", "exclusive thread", "prohibited", "exclusive process"]
    assert _report.read()["devices"][0]["compute_mode"] in names


def test_a_compute_mode_that_is_not_known_has_nvml_s_number(monkeypatch) -> None:
    monkeypatch.setattr(_report, "read_compute_mode", lambda handle: 77)
    assert _report.read()["devices"][0]["compute_mode"] == "77"


def test_watching_prints_until_it_is_interrupted() -> None:
    command = [sys.executable, "-m", "cuda_core_cffi.system", "--watch", "0.05"]
    child = subprocess.Popen(
        command,
        env=child_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=take_interrupts,
    )
    try:
        seen = 0
        while seen < 3:
            seen += child.stdout.readline().startswith("Driver ")
        child.send_signal(signal.SIGINT)
        rest, errors = child.communicate(timeout=LIMIT)
        assert (child.returncode, errors) == (0, "")
        assert "\x1b" not in rest
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("arguments", [["--watch", "0"], ["--watch", "x"], ["--json", "--watch"], ["--what"]])
def test_a_wrong_argument_is_told(arguments) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert "usage: python -m cuda_core_cffi.system" in done.stderr


@pytest.mark.simulator_only("no driver at all: the machine has one")
@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_without_nvml_it_says_so(arguments) -> None:
    done = run(*arguments, CUDA_CORE_CFFI_DRIVER="/no/such/file")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("NVML could not be used: ")


def test_the_report_tells_the_memory_of_each_device() -> None:
    lines = output_of("import cuda_core_cffi.__main__ as report; report.main()").splitlines()
    told = [line for line in lines if line.startswith("device ")]
    assert told
    assert all("MiB in use" in line for line in told)


def test_the_report_does_without_nvml() -> None:
    code = """
        from cuda_core_cffi.system._library import nvml
        missing = lambda: (nvml.nvmlReturn_t.NVML_ERROR_LIBRARY_NOT_FOUND,)
        nvml.nvmlInit_v2 = missing
        import cuda_core_cffi.__main__ as report
        report.main()
    """
    told = [line for line in output_of(code).splitlines() if line.startswith("device ")]
    assert told
    assert all("memory in use unknown (NVML_ERROR_LIBRARY_NOT_FOUND)" in line for line in told)
