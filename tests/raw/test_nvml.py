# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""``cuda_core_cffi.nvml``: NVML, function by function."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from helpers import output_of, ticks_during

from cuda_core_cffi import ffi, nvml

SUCCESS = nvml.nvmlReturn_t.NVML_SUCCESS
NAME_LENGTH = nvml.NVML_DEVICE_NAME_V2_BUFFER_SIZE
# an NVML that has hardly anything
OLD_NVML = """
#include <string.h>
int nvmlInit_v2(void) { return 0; }
int nvmlSystemGetDriverVersion(char *version, unsigned int length) { strncpy(version, "525.1", length); return 0; }
const char *nvmlErrorString(int status) { return "as old as that"; }
"""


@pytest.fixture(scope="module", autouse=True)
def library() -> Iterator[None]:
    """Keep NVML initialised."""
    (err,) = nvml.nvmlInit()
    assert err == SUCCESS
    yield
    (err,) = nvml.nvmlShutdown()
    assert err == SUCCESS


@pytest.fixture
def device() -> nvml.nvmlDevice_t:
    """Return the first device."""
    err, device = nvml.nvmlDeviceGetHandleByIndex(0)
    assert err == SUCCESS
    return device


@pytest.fixture
def old_library(tmp_path: pathlib.Path) -> str:
    """Return the path of a driver that is not there, with an old NVML beside it."""
    if shutil.which("gcc") is None:
        pytest.skip("there is no C compiler")
    (tmp_path / "nvml.c").write_text(OLD_NVML)
    target = tmp_path / "libnvidia-ml.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(target), str(tmp_path / "nvml.c")], check=True)
    return str(tmp_path / "libcuda.so.1")


def test_a_number_comes_back_with_the_status() -> None:
    err, count = nvml.nvmlDeviceGetCount()
    assert err is SUCCESS
    assert count >= 1


def test_a_handle_has_a_class_of_its_own(device: nvml.nvmlDevice_t) -> None:
    assert isinstance(device, nvml.nvmlDevice_t)
    assert nvml.nvmlDeviceGetIndex(device) == (SUCCESS, 0)


def test_a_failure_has_no_values() -> None:
    assert nvml.nvmlDeviceGetHandleByIndex(10_000) == (nvml.nvmlReturn_t.NVML_ERROR_INVALID_ARGUMENT, None)


def test_a_text_is_bytes(device: nvml.nvmlDevice_t) -> None:
    err, name = nvml.nvmlDeviceGetName(device, NAME_LENGTH)
    assert err == SUCCESS
    assert name
    assert b"\0" not in name


def test_a_text_that_does_not_fit_is_said(device: nvml.nvmlDevice_t) -> None:
    assert nvml.nvmlDeviceGetName(device, 2) == (nvml.nvmlReturn_t.NVML_ERROR_INSUFFICIENT_SIZE, None)


def test_a_structure_states_its_version(device: nvml.nvmlDevice_t) -> None:
    err, memory = nvml.nvmlDeviceGetMemoryInfo_v2(device)
    assert err == SUCCESS
    assert memory.version == nvml.nvmlMemory_v2 == ffi.sizeof("nvmlMemory_v2_t") | 2 << 24
    assert memory.total >= memory.used + memory.free > 0


def test_a_structure_that_is_given_is_the_one_that_comes_back(device: nvml.nvmlDevice_t) -> None:
    given = nvml.nvmlTemperature_v1_t(sensorType=nvml.nvmlTemperatureSensors_t.NVML_TEMPERATURE_GPU)
    err, temperature = nvml.nvmlDeviceGetTemperatureV(device, given)
    assert err == SUCCESS
    assert temperature is given
    assert given.version == nvml.nvmlTemperature_v1
    assert 0 < given.temperature < 150


def test_a_version_that_is_given_is_left(device: nvml.nvmlDevice_t) -> None:
    err, memory = nvml.nvmlDeviceGetMemoryInfo_v2(device, nvml.nvmlMemory_v2_t(version=1))
    assert (err, memory) == (nvml.nvmlReturn_t.NVML_ERROR_FUNCTION_NOT_FOUND, None)  # as driver 580 says


def test_no_room_tells_how_many_there_are(device: nvml.nvmlDevice_t) -> None:
    clocks = nvml.nvmlDeviceGetSupportedMemoryClocks(device)
    assert clocks[0] == nvml.nvmlReturn_t.NVML_ERROR_INSUFFICIENT_SIZE
    assert clocks[1] > 0
    assert clocks[2] is None


def test_room_for_more_gives_those_that_there_are(device: nvml.nvmlDevice_t) -> None:
    _, count, _ = nvml.nvmlDeviceGetSupportedMemoryClocks(device)
    err, found, clocks = nvml.nvmlDeviceGetSupportedMemoryClocks(device, count + 5)
    assert (err, found, len(clocks)) == (SUCCESS, count, count)
    assert all(clocks)


def test_fields_are_read_in_place(device: nvml.nvmlDevice_t) -> None:
    fields = [
        nvml.nvmlFieldValue_t(fieldId=nvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION),
        nvml.nvmlFieldValue_t(fieldId=9999),
    ]
    assert nvml.nvmlDeviceGetFieldValues(device, 2, fields) == (SUCCESS,)
    assert fields[0].nvmlReturn == SUCCESS
    assert fields[0].value.ullVal > 0
    assert fields[1].nvmlReturn != SUCCESS


def test_more_fields_than_there_are_is_an_error(device: nvml.nvmlDevice_t) -> None:
    with pytest.raises(ValueError, match="the count is 3, but there are 1"):
        nvml.nvmlDeviceGetFieldValues(device, 3, [nvml.nvmlFieldValue_t()])


def test_a_name_without_a_version_is_the_newest() -> None:
    assert nvml.nvmlInit is nvml.nvmlInit_v2
    assert nvml.nvmlDeviceGetPciInfo is nvml.nvmlDeviceGetPciInfo_v3


def test_an_array_of_structures_is_a_list_of_views() -> None:
    made = nvml.nvmlGpuDynamicPstatesInfo_t()
    made.utilization[1].percentage = 40
    assert [item.percentage for item in made.utilization] == [0, 40, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("GPU-1", r"nvmlDeviceGetIndex: device: expected struct nvmlDevice_st \*: an integer, a cffi pointer, None or"),
        (
            ffi.new("unsigned int *"),
            r"nvmlDeviceGetIndex: device: expected struct nvmlDevice_st \*, not unsigned int \*",
        ),
    ],
    ids=["str", "another pointer"],
)
def test_what_is_no_handle_is_refused(value: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        nvml.nvmlDeviceGetIndex(value)


def test_a_number_out_of_range_is_refused_with_its_name() -> None:
    with pytest.raises(OverflowError, match=r"nvmlDeviceGetHandleByIndex_v2: index: "):
        nvml.nvmlDeviceGetHandleByIndex(-1)


def test_another_structure_is_refused(device: nvml.nvmlDevice_t) -> None:
    with pytest.raises(
        TypeError, match="nvmlDeviceGetMemoryInfo_v2: memory: expected nvmlMemory_v2_t, not nvmlMemory_t"
    ):
        nvml.nvmlDeviceGetMemoryInfo_v2(device, nvml.nvmlMemory_t())


def test_a_setter_wants_its_structure(device: nvml.nvmlDevice_t) -> None:
    with pytest.raises(TypeError, match="required positional argument: 'info'"):
        nvml.nvmlDeviceSetClockOffsets(device)


def test_statuses_are_explained() -> None:
    assert nvml.nvmlErrorString(nvml.nvmlReturn_t.NVML_ERROR_NOT_SUPPORTED)


def test_a_wait_lets_other_threads_run() -> None:
    err, events = nvml.nvmlEventSetCreate()
    assert err == SUCCESS
    result = []
    ticks = ticks_during(lambda: result.append(nvml.nvmlEventSetWait(events, 300)))
    assert nvml.nvmlEventSetFree(events) == (SUCCESS,)
    assert result == [(nvml.nvmlReturn_t.NVML_ERROR_TIMEOUT, None)]
    assert ticks > 10


def test_a_library_that_is_missing_is_explained(tmp_path: pathlib.Path) -> None:
    code = """
        from cuda_core_cffi import nvml
        (err,) = nvml.nvmlInit()
        print(int(err), nvml.nvmlErrorString(err), nvml.explain_missing("nvmlInit"))
    """
    if shutil.which("ldconfig") and "libnvidia-ml.so.1" in os.popen("ldconfig -p").read():
        pytest.skip("this system has an NVML")
    out = output_of(code, CUDA_CORE_CFFI_DRIVER=str(tmp_path / "libcuda.so.1"), LD_LIBRARY_PATH=None)
    assert out.startswith("12 None NVML could not be used: 'libnvidia-ml.so.1' could not be loaded (")
    assert out.endswith("; it comes with the NVIDIA driver")


def test_the_library_beside_the_driver_is_taken(old_library: str) -> None:
    code = """
        from cuda_core_cffi import nvml
        print(nvml.nvmlInit(), nvml.nvmlSystemGetDriverVersion(80), nvml.nvmlErrorString(1))
    """
    out = output_of(code, CUDA_CORE_CFFI_DRIVER=old_library)
    assert out == f"{(SUCCESS,)} {(SUCCESS, b'525.1')} {b'as old as that'}"


def test_a_function_that_is_missing_is_explained(old_library: str) -> None:
    code = """
        from cuda_core_cffi import nvml
        nvml.nvmlInit()
        print(nvml.nvmlDeviceGetCount(), nvml.nvmlDeviceGetSramEccErrorStatus(0))
        print(nvml.explain_missing("nvmlDeviceGetCount"))
        print(nvml.explain_missing("nvmlDeviceGetSramEccErrorStatus"))
    """
    statuses, count, ecc = output_of(code, CUDA_CORE_CFFI_DRIVER=old_library).splitlines()
    missing = nvml.nvmlReturn_t.NVML_ERROR_FUNCTION_NOT_FOUND
    assert statuses == f"{(missing, None)} {(missing, None)}"
    assert count.startswith("nvmlDeviceGetCount is not in the installed NVML (")
    assert count.endswith(", driver 525.1): it came with the driver of CUDA 12.0; update the NVIDIA driver")
    assert ecc.endswith("it came with the driver of CUDA 12.4; update the NVIDIA driver")


@pytest.mark.simulator_only("whether a GPU answers a process that was forked is not promised")
def test_a_forked_process_finds_the_library() -> None:
    code = """
        import os
        from cuda_core_cffi import nvml
        nvml.nvmlInit()
        if (pid := os.fork()) == 0:
            os._exit(0 if nvml.nvmlInit() == (0,) and nvml.nvmlDeviceGetCount()[0] == 0 else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """
    assert output_of(code) == "0"


def test_nothing_of_nvml_is_imported_by_the_package() -> None:
    code = """
        import sys
        import cuda_core_cffi, cuda_core_cffi.system
        print([name for name in sys.modules if "nvml" in name])
    """
    assert output_of(code) == "[]"
