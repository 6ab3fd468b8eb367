# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Environment variables of the simulated driver: values that it refuses, and CUDA_VISIBLE_DEVICES."""

from __future__ import annotations

import pytest
from sim_driver import run_alone

START = """
    name = c_char_p()
    print(cu.status("cuInit", 0))
    cu.cuGetErrorString(802, byref(name))
    print(name.value.decode())
"""
REFUSED = [
    ("MEMORY", "lots", "a number of bytes from 1M to 1T, with K, M, G or T, such as 4G"),
    ("MEMORY", "1", "a number of bytes"),
    ("MEMORY", "4GX", "a number of bytes"),
    ("MEMORY", "-4G", "a number of bytes"),
    ("MEMORY", "nan", "a number of bytes"),
    ("DEVICES", "two", "a number of devices from 0 to 16"),
    ("DEVICES", "99", "a number of devices from 0 to 16"),
    ("DEVICES", "-1", "a number of devices from 0 to 16"),
    ("DEVICES", "2.5", "a number of devices from 0 to 16"),
    ("COMPUTE_CAPABILITY", "hopper", "a compute capability such as 9.0"),
    ("COMPUTE_CAPABILITY", "90", "a compute capability such as 9.0"),
    ("COMPUTE_CAPABILITY", "9.x", "a compute capability such as 9.0"),
    ("DRIVER_VERSION", "12.8", "13000 for CUDA 13.0; CUDA 12.8 is 12080"),
    ("DRIVER_VERSION", "580.65.06", "1000 * major + 10 * minor of a CUDA version, such as 13000 for CUDA 13.0"),
    ("DRIVER_VERSION", "12085", "1000 * major + 10 * minor"),
    ("PEER_ACCESS", "no", "0 or 1"),
    ("VECTORS", "off", "0 or 1"),
    ("REPORT", "stdout", "stderr"),
    ("KERNEL_SECONDS", "1m", "a number of seconds such as 60; 0 for no limit"),
    ("KERNEL_SECONDS", "inf", "a number of seconds"),
    ("DELAY_SECONDS", "-1", "a number of seconds such as 0.01; 0 for no delay"),
    ("FANS", "9", "a number of fans from 0 to 8"),
    ("NVLINKS", "19", "a number of NVLinks from 0 to 18"),
    ("SENSORS", "temprature=85", "settings such as temperature=85,1:power=300000"),
    ("SENSORS", "temperature=hot", "settings such as temperature=85,1:power=300000"),
    ("SENSORS", "99:temperature=1", "settings such as temperature=85,1:power=300000"),
]
CAPABILITY = "print(*(cu.out(c_int, 'cuDeviceGetAttribute', part, 0).value for part in (75, 76)))"
ACCEPTED = [
    ("MEMORY", "2GiB", "print(cu.out(c_size_t, 'cuDeviceTotalMem_v2', 0).value)", str(2 << 30)),
    ("MEMORY", "1.5g", "print(cu.out(c_size_t, 'cuDeviceTotalMem_v2', 0).value)", str(3 << 29)),
    ("MEMORY", "", "print(cu.out(c_size_t, 'cuDeviceTotalMem_v2', 0).value)", str(1 << 30)),
    ("MEMORY", str(1 << 20), "print(cu.out(c_size_t, 'cuDeviceTotalMem_v2', 0).value)", str(1 << 20)),
    ("COMPUTE_CAPABILITY", "10.3", CAPABILITY, "10 3"),
    ("COMPUTE_CAPABILITY", "8", CAPABILITY, "8 0"),
    ("DRIVER_VERSION", "12080", "print(cu.out(c_int, 'cuDriverGetVersion').value)", "12080"),
    ("DEVICES", "16", "print(cu.out(c_int, 'cuDeviceGetCount').value)", "16"),
    ("KERNEL_SECONDS", "0.5", "print('started')", "started"),
    ("SENSORS", "temperature=85,0:power=300000", "print('started')", "started"),
]


def name_of(variable: str) -> str:
    return f"CUDA_SIM_{variable}"


@pytest.mark.parametrize(("variable", "value", "allowed"), REFUSED)
def test_a_value_that_cannot_be_meant_is_refused_with_what_is_allowed(variable: str, value: str, allowed: str) -> None:
    printed = run_alone(START, **{name_of(variable): value})
    status, explanation, error = printed.splitlines()
    assert status == "SYSTEM_NOT_READY"
    assert explanation.startswith(f"{name_of(variable)}={value} is not valid: it must be ")
    assert allowed in explanation
    assert error == f"cuda simulator: {explanation}"


@pytest.mark.parametrize(("variable", "value", "code", "expected"), ACCEPTED)
def test_usual_spellings_are_accepted(variable: str, value: str, code: str, expected: str) -> None:
    assert run_alone(f"cu.cuInit(0)\n{code}", **{name_of(variable): value}).strip() == expected


def test_an_unknown_variable_is_refused_with_the_known_ones() -> None:
    status, explanation, _ = run_alone(START, CUDA_SIM_MEMROY="4G").splitlines()
    assert status == "SYSTEM_NOT_READY"
    assert explanation.startswith("CUDA_SIM_MEMROY is not a variable of the simulated driver; these are: CUDA_SIM_")
    assert "CUDA_SIM_MEMORY" in explanation
    assert explanation.endswith("CUDA_SIM_VECTORS")


def test_every_call_after_a_refused_start_says_that_nothing_was_started() -> None:
    printed = run_alone(
        'print(cu.status("cuInit", 0), cu.status("cuInit", 0), cu.status("cuDeviceGetCount", byref(c_int())))',
        CUDA_SIM_DEVICES="two",
    )
    assert printed.split("cuda simulator")[0].split() == ["SYSTEM_NOT_READY", "SYSTEM_NOT_READY", "NOT_INITIALIZED"]
    assert printed.count("cuda simulator:") == 1


# CUDA_VISIBLE_DEVICES

UUID = "GPU-73696d75-6c61-4074-8065-6447505500{:02x}"
BUSES = """
    if cu.status("cuInit", 0) == "NO_DEVICE":
        print("none")
        sys.exit()
    found = []
    for device in range(cu.out(c_int, "cuDeviceGetCount").value):
        text = ctypes.create_string_buffer(32)
        cu.cuDeviceGetPCIBusId(text, 32, device)
        assert cu.out(c_int, "cuDeviceGetByPCIBusId", text).value == device
        found.append(int(text.value.split(b":")[1], 16) - 0x10)
    print(*found)
"""


@pytest.mark.parametrize(
    ("visible", "gpus"),
    [
        ("0", "0"),
        ("2,1", "2 1"),
        (" 2 , 0", "2 0"),
        ("0,2,-1,1", "0 2"),
        ("1,7,0", "1"),
        ("1,,0", "1"),
        ("1,two,0", "1"),
        ("", "none"),
        ("-1", "none"),
        ("NoDevFiles", "none"),
        ("0,0", "none"),
        (UUID.format(2), "2"),
        (f"{UUID.format(2)},{UUID.format(0)}", "2 0"),
        (UUID.format(1).upper(), "1"),
        (f"{UUID.format(1)},GPU-00000000,{UUID.format(0)}", "1"),
        (f"{UUID.format(1)},0", "1"),
        (f"0,{UUID.format(1)}", "0"),
        ("GPU-7369", "none"),  # the beginning of several
    ],
)
def test_the_devices_are_those_that_cuda_visible_devices_names(visible: str, gpus: str) -> None:
    assert run_alone(BUSES, CUDA_SIM_DEVICES="3", CUDA_VISIBLE_DEVICES=visible).strip() == gpus


def test_the_beginning_of_a_uuid_is_enough_if_no_other_has_it() -> None:
    assert run_alone(BUSES, CUDA_SIM_DEVICES="1", CUDA_VISIBLE_DEVICES="GPU-7369").strip() == "0"


def test_a_device_has_the_uuid_of_its_gpu() -> None:
    code = """
    cu.cuInit(0)
    uuid = ctypes.create_string_buffer(16)
    cu.cuDeviceGetUuid_v2(uuid, 0)
    print(uuid.raw.hex(), cu.out(c_int, "cuDeviceGetAttribute", 33, 0).value)
    """
    printed = run_alone(code, CUDA_SIM_DEVICES="3", CUDA_VISIBLE_DEVICES="2").split()
    assert printed == [UUID.format(2)[4:].replace("-", ""), str(0x12)]


def test_nvml_shows_every_gpu_and_the_memory_on_the_one_that_has_it() -> None:
    code = """
    from sim_nvml import *
    cu.start()
    address = cu.alloc(64 << 20)
    nvml = Nvml()
    nvml.nvmlInit_v2()
    used = []
    for index in range(nvml.get("nvmlDeviceGetCount_v2")):
        info = MemoryV2.make()
        nvml.nvmlDeviceGetMemoryInfo_v2(nvml.device(index), byref(info))
        used.append(info.used >> 20)
    print(*used)
    """
    assert run_alone(code, CUDA_SIM_DEVICES="3", CUDA_VISIBLE_DEVICES="2,0", CUDA_SIM_SHARED="").strip() == "0 0 64"


def test_nvml_does_not_start_either() -> None:
    printed = run_alone('from sim_nvml import *\nprint(Nvml().status("nvmlInit_v2"))', CUDA_SIM_DEVICES="two")
    assert printed.splitlines()[0] == "Unknown Error"
    assert "cuda simulator: CUDA_SIM_DEVICES=two is not valid" in printed
