# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of NVML: their classes, what they say, and what is said where NVML or a function of it is missing."""

from __future__ import annotations

import pickle

import pytest
from helpers import output_of

from cuda_core_cffi import CUDAError, UnavailableError, system
from cuda_core_cffi.system import _cooling, exceptions
from cuda_core_cffi.system._library import nvml, value
from cuda_core_cffi.system.exceptions import failure

STATUSES = [status for status in nvml.nvmlReturn_t if status]


@pytest.mark.parametrize("status", STATUSES, ids=lambda status: status.name)
def test_every_status_has_its_class(status) -> None:
    kind = exceptions.class_of(status.name)
    assert kind is not exceptions.NvmlError
    assert kind.__name__ in exceptions.__all__
    assert kind.__name__.lower() == status.name.removeprefix("NVML_ERROR_").replace("_", "").lower() + "error"
    error = exceptions.failure(status, "nvmlDeviceGetName")
    assert type(error) is kind
    assert isinstance(error, CUDAError)
    assert (error.call, error.status, error.name) == ("nvmlDeviceGetName", status, status.name)
    assert type(error.status) is int
    other = pickle.loads(pickle.dumps(error))
    assert (type(other), str(other), vars(other)) == (kind, str(error), vars(error))


def test_there_is_no_class_without_a_status() -> None:
    kinds = {exceptions.class_of(status.name).__name__ for status in STATUSES}
    assert sorted(exceptions.__all__) == sorted({*kinds, "NvmlError"})


def test_a_status_that_is_not_known_is_an_error_with_its_number() -> None:
    error = exceptions.failure(998, "nvmlDeviceGetName")
    assert type(error) is exceptions.NvmlError
    assert (error.status, error.name) == (998, "nvmlReturn_t 998")
    assert str(error).startswith("nvmlDeviceGetName failed: nvmlReturn_t 998 (998)")


def test_the_message_says_what_failed_and_why() -> None:
    with pytest.raises(system.InvalidArgumentError) as caught:
        system.Device(index=1000)
    text = "nvmlDeviceGetHandleByIndex_v2 failed: NVML_ERROR_INVALID_ARGUMENT (2): "
    assert str(caught.value) == text + nvml.nvmlErrorString(2).decode()


def test_a_permission_that_is_missing_comes_with_a_hint() -> None:
    error = exceptions.failure(nvml.nvmlReturn_t.NVML_ERROR_NO_PERMISSION, "nvmlDeviceSetMigMode")
    assert "; this needs root" in str(error)


def test_the_errors_of_cuda_core_are_the_errors_here() -> None:
    assert issubclass(system.LibraryNotFoundError, RuntimeError)
    for kind in (system.LibraryNotFoundError, system.FunctionNotFoundError):
        assert issubclass(kind, UnavailableError)
        assert issubclass(kind, system.NvmlError)
    assert system.TimeoutError is exceptions.TimeoutError is not TimeoutError


def test_a_function_that_the_library_lacks_is_told(monkeypatch) -> None:
    def missing(*arguments):
        return nvml.nvmlReturn_t.NVML_ERROR_FUNCTION_NOT_FOUND, None

    missing.__name__ = "nvmlDeviceGetRepairStatus"
    with pytest.raises(
        system.FunctionNotFoundError, match="nvmlDeviceGetRepairStatus is not in the installed NVML"
    ) as caught:
        value(missing)
    assert caught.value.name == "NVML_ERROR_FUNCTION_NOT_FOUND"


def test_an_older_driver_tells_the_temperature_another_way(monkeypatch) -> None:
    device = system.Device(index=0)

    def missing(handle):
        raise failure(nvml.nvmlReturn_t.NVML_ERROR_FUNCTION_NOT_FOUND, "nvmlDeviceGetTemperatureV")

    monkeypatch.setattr(_cooling, "read_gpu_temperature", missing)
    assert 0 < device.temperature.get_sensor() < 150


NEWER = [
    "nvmlClockOffset_v1_t", "nvmlCoolerInfo_v1_t", "nvmlDeviceGetAddressingMode", "nvmlDeviceGetC2cModeInfoV",
    "nvmlDeviceGetClockOffsets", "nvmlDeviceGetCoolerInfo", "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetFanSpeedRPM", "nvmlDeviceGetLastBBXFlushTime", "nvmlDeviceGetMarginTemperature",
    "nvmlDeviceGetModuleId", "nvmlDeviceGetNumaNodeId", "nvmlDeviceGetPciInfoExt", "nvmlDeviceGetRepairStatus",
    "nvmlDeviceGetSupportedClocksEventReasons", "nvmlDeviceGetTemperatureV", "nvmlFanSpeedInfo_v1_t",
    "nvmlNvlinkVersion_t", "nvmlPciInfoExt_v1_t", "nvmlRepairStatus_v1_t", "nvmlSystemEventData_v1_t",
    "nvmlSystemEventSetCreate", "nvmlSystemEventSetFree", "nvmlSystemEventSetFreeRequest_v1_t",
    "nvmlSystemEventSetWait", "nvmlSystemEventSetWaitRequest_v1_t", "nvmlSystemGetDriverBranch",
    "nvmlSystemRegisterEventRequest_v1_t", "nvmlSystemRegisterEvents", "NVML_DEVICE_ARCH_BLACKWELL",
    "nvmlEventTypeGpuRecoveryAction", "nvmlSystemEventTypeGpuDriverBind",
]  # fmt: skip


def test_what_an_old_header_lacks_is_told_when_it_is_used() -> None:
    code = f"""
        from cuda_core_cffi import nvml
        for name in {NEWER}:
            if hasattr(nvml, name):
                delattr(nvml, name)
        from cuda_core_cffi import system
        device = system.Device(index=0)
        print(device.memory_info.total > 0, device.temperature.get_sensor() > 0, device.pci_bus_id.count(":"))
        for ask in (
            lambda: device.cooler, lambda: device.repair_status, lambda: device.get_clock("sm").get_offsets(0),
            lambda: device.pci_info, lambda: system.get_driver_branch(), lambda: device.is_c2c_enabled,
        ):
            try:
                ask()
            except system.FunctionNotFoundError as error:
                print(error.name, "not in the nvml.h" in str(error), hasattr(nvml, error.call))
        for ask in (lambda: system.register_events("bind"), lambda: device.register_events("gpu_recovery_action")):
            try:
                ask()
            except Exception as error:
                print("not in the nvml.h" in str(error))
        print(hasattr(system.typing.DeviceArch, "BLACKWELL"))
    """
    lines = output_of(code).splitlines()
    assert lines[0] == "True True 2"
    assert lines[1:-1] == ["NVML_ERROR_FUNCTION_NOT_FOUND True False"] * 6 + ["True"] * 2
    assert lines[-1] == "False"


WITHOUT_NVML = """
    import os, sys
    from cuda_core_cffi import UnavailableError, system
    from cuda_core_cffi.system._library import nvml

    def missing():
        return (nvml.nvmlReturn_t.NVML_ERROR_LIBRARY_NOT_FOUND,)

    missing.__name__ = "nvmlInit_v2"
    nvml.nvmlInit_v2 = missing
"""


@pytest.mark.parametrize(
    "ask",
    [
        "system.Device(index=0)",
        "system.Device.get_device_count()",
        "system.get_nvml_version()",
        "system.get_kernel_mode_driver_version()",
        "system.get_driver_branch()",
        "system.get_process_name(1)",
        "system.register_events('bind')",
        "__import__('cuda_core_cffi').Device(0).to_system_device()",
    ],
)
def test_without_nvml_that_is_told(ask) -> None:
    code = f"""
{WITHOUT_NVML}
    try:
        {ask}
    except RuntimeError as error:
        print(isinstance(error, UnavailableError), error.name)
    """
    assert output_of(code) == "True NVML_ERROR_LIBRARY_NOT_FOUND"


def test_without_nvml_the_cuda_driver_counts_the_devices() -> None:
    code = f"""
{WITHOUT_NVML}
    print(system.get_num_devices())
    """
    assert output_of(code) == str(system.get_num_devices())


@pytest.mark.simulator_only("no driver at all: the machine has one")
def test_without_any_driver_the_message_names_the_library() -> None:
    code = """
        from cuda_core_cffi import system
        try:
            system.Device(index=0)
        except system.LibraryNotFoundError as error:
            print("libnvidia-ml.so.1" in str(error), error.call)
    """
    assert output_of(code, CUDA_CORE_CFFI_DRIVER="/no/such/file") == "True nvmlInit_v2"
