# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The simulated NVML: start and end, what every function refuses, versions, faults and traces."""

from __future__ import annotations

import contextlib
import re
from types import ModuleType

import pytest
from sim_driver import byref, c_char_p, c_int, c_uint, c_void_p, ctypes, run_alone
from sim_nvml import Nvml

# Called before the library is started, these do something.
ALWAYS = {
    "nvmlInit",
    "nvmlInit_v2",
    "nvmlInitWithFlags",
    "nvmlErrorString",
    "nvmlSystemGetCudaDriverVersion",
    "nvmlSystemGetCudaDriverVersion_v2",
}


def declared() -> dict[str, str]:
    """Return the parameters of every function in the newest nvml.h at hand."""
    cuda_headers = pytest.importorskip("cuda_headers", reason="needs the source tree")
    folders = []
    with contextlib.suppress(cuda_headers.headers.HeaderError):
        folders.append(cuda_headers.headers.find_nvml_include_dir())
    found: dict[str, str] = {}
    for folder in {*folders, *cuda_headers.include_dirs()}:
        if (folder / "nvml.h").exists():
            text = re.sub(r"/\*.*?\*/|//[^\n]*", "", (folder / "nvml.h").read_text(), flags=re.DOTALL)
            found |= dict(re.findall(r"\bDECLDIR\s+(nvml\w+)\s*\(([^)]*)\)", text))
    if not found:
        pytest.skip("no nvml.h")
    return found


def test_every_function_of_the_header_is_there(sim: ModuleType) -> None:
    library = ctypes.CDLL(str(sim.library_path()))
    assert [name for name in declared() if not hasattr(library, name)] == []


def test_nothing_works_before_the_start_or_without_a_device() -> None:
    functions = declared()
    of_devices = [name for name, parameters in functions.items() if parameters.split()[0] == "nvmlDevice_t"]
    assert len(of_devices) > 200
    printed = run_alone(
        f"""
        from sim_nvml import Nvml
        nvml = Nvml()
        nothing = [None] * 6
        early = {{nvml.status(name, *nothing) for name in {sorted(set(functions) - ALWAYS)}}}
        print(early, nvml.nvmlInit_v2())
        for handle in (None, c_void_p(nvml.device().value + 8), c_void_p(64)):
            print({{nvml.status(name, handle, *nothing) for name in {of_devices}}})
        """
    )
    assert printed.splitlines() == ["{'Uninitialized'} None", *["{'Invalid Argument'}"] * 3]


def test_what_is_not_modelled_is_not_supported(nvml: Nvml) -> None:
    device = nvml.device()
    value = c_uint()
    for function in ("nvmlDeviceGetSupportedVgpus", "nvmlDeviceSetDriverModel", "nvmlDeviceGetBridgeChipInfo"):
        assert nvml.status(function, device, byref(value), None) == "Not Supported"
    assert nvml.status("nvmlUnitGetHandleByIndex", 0, byref(value)) == "Not Supported"


def test_it_ends_when_it_was_shut_down_as_often_as_started() -> None:
    printed = run_alone(
        """
        from sim_nvml import Nvml
        nvml, count = Nvml(), c_uint()
        def working():
            return nvml.status("nvmlDeviceGetCount_v2", byref(count))
        for step in ("nvmlInit", "nvmlInitWithFlags", "nvmlShutdown", "nvmlShutdown", "nvmlShutdown", "nvmlInit_v2"):
            print(step, nvml.status(step, 0), working())
        print(nvml.status("nvmlInitWithFlags", 1 << 20))
        """
    )
    assert printed.splitlines() == [
        "nvmlInit Success Success",
        "nvmlInitWithFlags Success Success",
        "nvmlShutdown Success Success",
        "nvmlShutdown Success Uninitialized",
        "nvmlShutdown Uninitialized Uninitialized",
        "nvmlInit_v2 Success Success",
        "Invalid Argument",
    ]


def test_it_neither_starts_the_driver_nor_needs_it() -> None:
    printed = run_alone(
        """
        from sim_nvml import Nvml
        nvml = Nvml()
        nvml.nvmlInit_v2()
        print(nvml.text("nvmlDeviceGetName", nvml.device()))
        print(cu.status("cuDeviceGetCount", byref(c_int())), len(os.listdir("/proc/self/task")))
        """
    )
    assert printed.splitlines() == ["Simulated GPU (compute capability 9.0)", "NOT_INITIALIZED 1"]


@pytest.mark.parametrize(
    ("driver", "release", "nvml", "branch"),
    [("12090", "575.00.00", "12.575.00.00", "r575_00"), ("13000", "580.00.00", "13.580.00.00", "r580_00")],
)
def test_the_release_is_that_of_the_version_of_cuda(driver: str, release: str, nvml: str, branch: str) -> None:
    printed = run_alone(
        """
        from sim_nvml import Nvml, Versioned
        class Branch(Versioned):
            _fields_ = [("version", c_uint), ("branch", c_char * 80)]
        nvml, branch = Nvml(), Branch.make()
        print(nvml.get("nvmlSystemGetCudaDriverVersion_v2", kind=c_int))
        nvml.nvmlInit_v2()
        nvml.nvmlSystemGetDriverBranch(byref(branch), 80)
        print(nvml.text("nvmlSystemGetDriverVersion"), nvml.text("nvmlSystemGetNVMLVersion"), branch.branch.decode())
        """,
        CUDA_SIM_DRIVER_VERSION=driver,
    )
    assert printed.split() == [driver, release, nvml, branch]


def test_a_buffer_that_is_too_small_is_refused(nvml: Nvml) -> None:
    device, text = nvml.device(), ctypes.create_string_buffer(64)
    name = nvml.text("nvmlDeviceGetName", device)
    assert nvml.status("nvmlDeviceGetName", device, text, len(name)) == "Insufficient Size"
    assert text.value == b""
    assert nvml.status("nvmlDeviceGetName", device, text, len(name) + 1) == "Success"
    assert nvml.status("nvmlDeviceGetName", device, None, 64) == "Invalid Argument"


def test_errors_have_texts(nvml: Nvml) -> None:
    text = nvml.library.nvmlErrorString
    assert [text(number) for number in (0, 3, 10, 999)] == [b"Success", b"Not Supported", b"Timeout", b"Unknown Error"]
    assert text(12345) == b"Unknown Error"


def test_functions_fail_where_a_fault_is_injected(nvml: Nvml, sim: ModuleType) -> None:
    device, memory = nvml.device(), (c_uint * 16)()
    with sim.fail("nvmlDeviceGetMemoryInfo", "NVML_ERROR_GPU_IS_LOST", nth=2):
        assert nvml.status("nvmlDeviceGetMemoryInfo", device, memory) == "Success"
        assert nvml.status("nvmlDeviceGetMemoryInfo", device, memory) == "GPU is lost"
        assert nvml.status("nvmlDeviceGetMemoryInfo", device, memory) == "Success"
    with sim.fail("nvmlDeviceGetPowerUsage", "NVML_ERROR_NO_PERMISSION"), sim.fail("nvmlUnitGetTemperature", 999):
        assert nvml.status("nvmlDeviceGetPowerUsage", device, memory) == "Insufficient Permissions"
        assert nvml.status("nvmlUnitGetTemperature", None, 0, memory) == "Unknown Error"
    with sim.fail("nvmlInit", "NVML_ERROR_DRIVER_NOT_LOADED"):
        assert nvml.status("nvmlInit_v2") == "Driver Not Loaded"


def test_calls_are_traced(nvml: Nvml, sim: ModuleType) -> None:
    with sim.trace() as calls:
        device = nvml.device()
        nvml.status("nvmlDeviceGetIndex", device, byref(c_uint()))
        nvml.status("nvmlDeviceGetNumFans", device, None)
        nvml.status("nvmlDeviceGetFBCStats", device, None)
    assert [(call.function, call.result) for call in calls] == [
        ("nvmlDeviceGetHandleByIndex_v2", 0),
        ("nvmlDeviceGetIndex", 0),
        ("nvmlDeviceGetNumFans", 2),
        ("nvmlDeviceGetFBCStats", 3),
    ]


def test_a_structure_of_another_version_is_refused(nvml: Nvml) -> None:
    other = (c_uint * 64)(7)
    assert nvml.status("nvmlDeviceGetTemperatureV", nvml.device(), other) == "Argument version mismatch"
    assert nvml.status("nvmlDeviceGetMemoryInfo_v2", nvml.device(), other) == "Function Not Found"  # as on an H100
    assert nvml.status("nvmlDeviceGetMemoryInfo_v2", nvml.device(), None) == "Invalid Argument"


def test_without_devices_there_is_nothing_to_handle() -> None:
    printed = run_alone(
        """
        from sim_nvml import Nvml
        nvml = Nvml()
        print(nvml.status("nvmlInit_v2"), nvml.get("nvmlDeviceGetCount_v2"))
        print(nvml.status("nvmlDeviceGetHandleByIndex_v2", 0, byref(c_void_p())))
        """,
        CUDA_SIM_DEVICES="0",
    )
    assert printed.splitlines() == ["Success 0", "Invalid Argument"]


def test_the_private_table_says_its_size(nvml: Nvml) -> None:
    table = c_void_p()
    nvml.nvmlInternalGetExportTable(byref(table), c_char_p(bytes(16)))
    size = ctypes.cast(table, ctypes.POINTER(ctypes.c_size_t))[0]
    functions = ctypes.cast(table, ctypes.POINTER(ctypes.CFUNCTYPE(c_int)))
    assert functions[size // ctypes.sizeof(c_void_p) - 1]() == 3
