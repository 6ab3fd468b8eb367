# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

"""Modules, libraries, functions and kernels."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from sim_driver import Driver, byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p, ctypes, run_alone
from sim_kernels import CUBIN, FATBIN, HEADER, HOST_ELF, KERNELS, NAMES, carrying, fatbin_part, make_fatbin

MAX_THREADS, SHARED, CONST, LOCAL, REGISTERS, PTX, BINARY, MAX_DYNAMIC, CARVEOUT = 0, 1, 2, 3, 4, 5, 6, 8, 9
CLUSTER_WIDTH, NON_PORTABLE, POLICY = 11, 14, 15

BROKEN = HEADER + b".visible .entry k( { ret; }\0"
TOO_NEW = b".version 99.0\n.target sm_52\n.address_size 64\n.visible .entry k() { ret; }\0"
OTHER_DEVICE = b".version 8.6\n.target sm_100\n.address_size 64\n.visible .entry k() { ret; }\0"

UNUSABLE = [
    (b"this is not code\0", "INVALID_IMAGE"),
    (b"\0", "INVALID_IMAGE"),
    (HOST_ELF, "INVALID_IMAGE"),
    (BROKEN, "INVALID_PTX"),
    (OTHER_DEVICE, "INVALID_PTX"),
    (TOO_NEW, "UNSUPPORTED_PTX_VERSION"),
]


def load_library(cu: Driver, image: bytes = KERNELS) -> c_void_p:
    return cu.out(c_void_p, "cuLibraryLoadData", image, None, None, 0, None, None, 0)


@pytest.mark.parametrize(("image", "status"), UNUSABLE)
def test_what_a_module_cannot_be_made_of(cu: Driver, image: bytes, status: str) -> None:
    assert cu.status("cuModuleLoadData", byref(c_void_p()), image) == status


@pytest.mark.parametrize(("image", "status"), UNUSABLE)
def test_a_library_tells_what_is_wrong_when_it_is_used(cu: Driver, image: bytes, status: str) -> None:
    library = load_library(cu, image)
    assert cu.status("cuLibraryGetKernel", byref(c_void_p()), library, b"k") == status
    assert cu.status("cuLibraryGetModule", byref(c_void_p()), library) == status
    cu.cuLibraryUnload(library)


@pytest.mark.parametrize("image", [CUBIN, FATBIN])
def test_code_for_a_real_gpu_is_refused_at_once(cu: Driver, image: bytes) -> None:
    assert cu.status("cuModuleLoadData", byref(c_void_p()), image) == "NO_BINARY_FOR_GPU"
    status = cu.status("cuLibraryLoadData", byref(c_void_p()), image, None, None, 0, None, None, 0)
    assert status == "NO_BINARY_FOR_GPU"


def explanation(cu: Driver, image: bytes) -> str:
    """Return the error and the log of a module that is refused."""
    log = ctypes.create_string_buffer(512)
    values = (c_void_p * 2)(ctypes.addressof(log), 512)
    status = cu.status("cuModuleLoadDataEx", byref(c_void_p()), image, 2, (c_int * 2)(5, 6), values)
    return f"{status}: {log.value.decode()}"


def test_the_text_behind_a_cubin_is_loaded(cu: Driver, tmp_path: Path) -> None:
    image = carrying(KERNELS.rstrip(b"\0"))
    path = tmp_path / "a.cubin"
    path.write_bytes(image + b"more")
    for call, code in (("cuModuleLoadData", image), ("cuModuleLoad", str(path).encode())):
        module = cu.out(c_void_p, call, code)
        assert cu.out(c_void_p, "cuModuleGetFunction", module, b"four").value
        cu.cuModuleUnload(module)
    library = load_library(cu, image)
    assert cu.out(c_void_p, "cuLibraryGetKernel", library, b"four").value
    cu.cuLibraryUnload(library)


def test_a_cubin_without_text_behind_it_is_refused_and_the_log_says_why(cu: Driver) -> None:
    said = "NO_BINARY_FOR_GPU: a cubin of sm_90 on the simulated driver: it runs PTX only"
    assert explanation(cu, carrying(b"", mark=b"xyz")).startswith(said)


@pytest.mark.parametrize("arch", [75, 89, 100, 120])
def test_a_cubin_for_another_device_is_refused_whatever_is_behind_it(cu: Driver, arch: int) -> None:
    said = f"NO_BINARY_FOR_GPU: a cubin of sm_{arch} does not run on a device of sm_90"
    assert explanation(cu, carrying(KERNELS.rstrip(b"\0"), arch)) == said


def test_a_cubin_runs_on_newer_devices_of_its_major_compute_capability() -> None:
    code = """
        from sim_kernels import KERNELS, carrying
        cu.start()
        for arch in (80, 86, 89):
            print(cu.status("cuModuleLoadData", byref(c_void_p()), carrying(KERNELS.rstrip(b"\\0"), arch)))
        """
    printed = run_alone(code, CUDA_SIM_COMPUTE_CAPABILITY="8.6")
    assert printed.split() == ["SUCCESS", "SUCCESS", "NO_BINARY_FOR_GPU"]


def test_a_file_that_ends_within_the_text_behind_a_cubin_is_refused(cu: Driver, tmp_path: Path) -> None:
    image = carrying(KERNELS.rstrip(b"\0"))
    path = tmp_path / "a.cubin"
    for size in (63, 64, 79, 80, len(image) - 1):
        path.write_bytes(image[:size])
        assert cu.status("cuModuleLoad", byref(c_void_p()), str(path).encode()) == "INVALID_IMAGE"


def named(name: bytes) -> bytes:
    """Return PTX with one kernel."""
    return HEADER + b".visible .entry " + name + b"() { ret; }\0"


def test_the_text_in_a_fat_binary_is_loaded(cu: Driver) -> None:
    image = make_fatbin(fatbin_part(bytes(99), 90, kind=2), fatbin_part(KERNELS, 52))
    module = cu.out(c_void_p, "cuModuleLoadData", image)
    assert cu.out(c_void_p, "cuModuleGetFunction", module, b"four").value
    cu.cuModuleUnload(module)
    library = load_library(cu, image)
    assert cu.out(c_void_p, "cuLibraryGetKernel", library, b"four").value
    cu.cuLibraryUnload(library)


def test_a_fat_binary_gives_the_newest_text_that_the_device_runs(cu: Driver) -> None:
    image = make_fatbin(
        fatbin_part(named(b"old"), 52),
        fatbin_part(named(b"right"), 80),
        fatbin_part(named(b"too_new"), 100),
        fatbin_part(named(b"compressed"), 90, flags=0x2011),
        fatbin_part(b"no text\0", 90),
    )
    module = cu.out(c_void_p, "cuModuleLoadData", image)
    assert cu.out(c_void_p, "cuModuleGetFunction", module, b"right").value
    assert cu.status("cuModuleGetFunction", byref(c_void_p()), module, b"old") == "NOT_FOUND"
    cu.cuModuleUnload(module)


@pytest.mark.parametrize(
    "image",
    [
        make_fatbin(),
        make_fatbin(fatbin_part(named(b"compressed"), 90, flags=0x8011)),
        make_fatbin(fatbin_part(named(b"new"), 100)),
        make_fatbin(fatbin_part(b".version 8.0 without an end at all.", 90)[:-5]),
        make_fatbin(fatbin_part(KERNELS, 52)[:-8] + bytes(8)).replace((64).to_bytes(4, "little"), bytes(4), 1),
        make_fatbin(fatbin_part(KERNELS, 52)[:400]),
    ],
)
def test_a_fat_binary_without_text_for_this_device_is_refused(cu: Driver, image: bytes) -> None:
    assert cu.status("cuModuleLoadData", byref(c_void_p()), image) == "NO_BINARY_FOR_GPU"


def test_eager_loading_tells_at_once() -> None:
    printed = run_alone(
        """
        cu.start()
        print(cu.status("cuLibraryLoadData", byref(c_void_p()), b"no code", None, None, 0, None, None, 0))
        print(cu.out(c_int, "cuModuleGetLoadingMode").value)
        """,
        CUDA_MODULE_LOADING="EAGER",
    )
    assert printed.split() == ["INVALID_IMAGE", "1"]


def test_the_error_log_says_what_is_wrong(cu: Driver) -> None:
    log = ctypes.create_string_buffer(512)
    options = (c_int * 2)(5, 6)
    values = (c_void_p * 2)(ctypes.addressof(log), 512)
    assert cu.status("cuModuleLoadDataEx", byref(c_void_p()), BROKEN, 2, options, values) == "INVALID_PTX"
    assert log.value
    assert values[1] == len(log.value)
    log.value = b""
    library = cu.out(c_void_p, "cuLibraryLoadData", BROKEN, options, values, 2, None, None, 0)
    assert log.value
    cu.cuLibraryUnload(library)
    options[0] = 9999
    assert cu.status("cuModuleLoadDataEx", byref(c_void_p()), KERNELS, 1, options, values) == "INVALID_VALUE"


def test_a_log_is_cut_to_its_buffer(cu: Driver) -> None:
    log = ctypes.create_string_buffer(b"x" * 16, 16)
    values = (c_void_p * 2)(ctypes.addressof(log), 8)
    cu.status("cuModuleLoadDataEx", byref(c_void_p()), BROKEN, 2, (c_int * 2)(5, 6), values)
    assert log.raw[7:9] == b"\0x"
    assert values[1] == 7


def test_a_module_gives_functions_and_variables(cu: Driver, sim: ModuleType) -> None:
    before = sim.live()["modules"].number
    module = cu.out(c_void_p, "cuModuleLoadData", KERNELS)
    assert sim.live()["modules"].number == before + 1
    function = cu.out(c_void_p, "cuModuleGetFunction", module, b"four")
    assert cu.out(c_void_p, "cuModuleGetFunction", module, b"four").value == function.value
    assert cu.out(c_void_p, "cuFuncGetModule", function).value == module.value
    assert cu.out(c_char_p, "cuFuncGetName", function).value == b"four"
    assert cu.status("cuModuleGetFunction", byref(c_void_p()), module, b"five") == "NOT_FOUND"
    count = cu.out(c_uint, "cuModuleGetFunctionCount", module).value
    functions = (c_void_p * count)()
    cu.cuModuleEnumerateFunctions(functions, count, module)
    names = {cu.out(c_char_p, "cuFuncGetName", c_void_p(handle)).value.decode() for handle in functions}
    assert names == NAMES
    size = c_size_t()
    pointer = cu.out(c_uint64, "cuModuleGetGlobal_v2", byref(size), module, b"counters")
    assert size.value == 16
    assert list((c_uint * 4).from_buffer_copy(cu.read(pointer, 16))) == [1, 2, 3, 4]
    assert cu.status("cuModuleGetGlobal_v2", byref(pointer), byref(size), module, b"nothing") == "NOT_FOUND"
    assert cu.status("cuModuleGetGlobal_v2", None, None, module, b"counters") == "INVALID_VALUE"
    cu.cuModuleUnload(module)
    assert sim.live()["modules"].number == before
    assert cu.status("cuFuncLoad", function) == "INVALID_HANDLE"
    assert cu.status("cuModuleUnload", module) == "INVALID_HANDLE"
    assert cu.status("cuModuleUnload", None) == "INVALID_HANDLE"


def test_a_library_needs_no_context(driver: Driver, sim: ModuleType) -> None:
    library = load_library(driver)
    kernel = driver.out(c_void_p, "cuLibraryGetKernel", library, b"four")
    assert driver.out(c_char_p, "cuKernelGetName", kernel).value == b"four"
    assert driver.out(c_void_p, "cuKernelGetLibrary", kernel).value == library.value
    assert driver.out(c_int, "cuKernelGetAttribute", MAX_THREADS, kernel, 0).value == 1024
    assert driver.status("cuKernelGetFunction", byref(c_void_p()), kernel) == "INVALID_CONTEXT"
    assert driver.status("cuLibraryGetModule", byref(c_void_p()), library) == "INVALID_CONTEXT"
    driver.cuLibraryUnload(library)
    assert driver.status("cuKernelGetName", byref(c_char_p()), kernel) == "INVALID_HANDLE"
    assert driver.status("cuLibraryUnload", library) == "INVALID_HANDLE"
    assert [report.kind for report in sim.reports()] == ["double unload"]
    assert driver.status("cuLibraryUnload", None) == "INVALID_HANDLE"
    assert len(sim.reports()) == 1


def test_a_library_is_a_module_in_each_context(cu: Driver, sim: ModuleType) -> None:
    live, library = sim.live(), load_library(cu)
    kernel = cu.out(c_void_p, "cuLibraryGetKernel", library, b"four")
    function = cu.out(c_void_p, "cuKernelGetFunction", kernel)
    assert cu.out(c_void_p, "cuKernelGetFunction", kernel).value == function.value != kernel.value
    module = cu.out(c_void_p, "cuLibraryGetModule", library)
    assert cu.out(c_void_p, "cuModuleGetFunction", module, b"four").value == function.value
    assert cu.status("cuModuleUnload", module) == "NOT_PERMITTED"
    other = cu.out(c_void_p, "cuCtxCreate_v2", 0, 0)
    assert cu.out(c_void_p, "cuKernelGetFunction", kernel).value != function.value
    size = c_size_t()
    there = cu.out(c_uint64, "cuLibraryGetGlobal", byref(size), library, b"counters").value
    cu.cuCtxDestroy_v2(other)
    here = cu.out(c_uint64, "cuLibraryGetGlobal", byref(size), library, b"counters").value
    assert here != there
    cu.cuLibraryUnload(library)
    assert sim.live() == live


def test_the_contents_of_a_library(cu: Driver) -> None:
    library, count = load_library(cu), c_uint()
    cu.cuLibraryGetKernelCount(byref(count), library)
    kernels = (c_void_p * count.value)()
    cu.cuLibraryEnumerateKernels(kernels, count, library)
    assert {cu.out(c_char_p, "cuKernelGetName", c_void_p(k)).value.decode() for k in kernels} == NAMES
    assert cu.status("cuLibraryGetKernel", byref(c_void_p()), library, b"five") == "NOT_FOUND"
    assert cu.status("cuLibraryGetKernel", byref(c_void_p()), library, None) == "INVALID_VALUE"
    size = c_size_t()
    cu.out(c_uint64, "cuLibraryGetManaged", byref(size), library, b"shared_with_host")
    assert size.value == 4
    missing = cu.status("cuLibraryGetManaged", byref(c_uint64()), byref(size), library, b"counters")
    assert missing == "NOT_FOUND"
    cu.cuLibraryUnload(library)


def test_files(cu: Driver, tmp_path: Path) -> None:
    path = tmp_path / "kernels.ptx"
    path.write_bytes(KERNELS.rstrip(b"\0"))
    cu.cuModuleUnload(cu.out(c_void_p, "cuModuleLoad", str(path).encode()))
    cu.cuLibraryUnload(cu.out(c_void_p, "cuLibraryLoadFromFile", str(path).encode(), None, None, 0, None, None, 0))
    missing = str(tmp_path / "missing").encode()
    assert cu.status("cuModuleLoad", byref(c_void_p()), missing) == "FILE_NOT_FOUND"
    whole = make_fatbin(fatbin_part(KERNELS, 52))
    path.write_bytes(whole)
    cu.cuModuleUnload(cu.out(c_void_p, "cuModuleLoad", str(path).encode()))
    for size in (4, 15, 16, 80, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert cu.status("cuModuleLoad", byref(c_void_p()), str(path).encode()) == "INVALID_IMAGE"
    path.write_bytes(b"")
    assert cu.status("cuModuleLoad", byref(c_void_p()), str(path).encode()) == "INVALID_IMAGE"


def test_parameters(cu: Driver) -> None:
    library, offset, size = load_library(cu), c_size_t(), c_size_t()
    kernel = cu.out(c_void_p, "cuLibraryGetKernel", library, b"four")
    function = cu.out(c_void_p, "cuKernelGetFunction", kernel)
    for name, handle in (("Kernel", kernel), ("Func", function)):
        found = []
        index = 0
        while cu.status(f"cu{name}GetParamInfo", handle, c_size_t(index), byref(offset), byref(size)) == "SUCCESS":
            found.append((offset.value, size.value))
            index += 1
        assert found == [(0, 8), (8, 4), (16, 24), (40, 1)]
        count = c_size_t()
        getattr(cu, f"cu{name}GetParamCount")(handle, byref(count))
        assert count.value == 4
        getattr(cu, f"cu{name}GetParamInfo")(handle, c_size_t(1), byref(offset), None)
    cu.cuLibraryUnload(library)


def test_attributes_of_functions(cu: Driver) -> None:
    module = cu.out(c_void_p, "cuModuleLoadData", KERNELS)

    def attributes(name: bytes, *numbers: int) -> list[int]:
        function = cu.out(c_void_p, "cuModuleGetFunction", module, name)
        return [cu.out(c_int, "cuFuncGetAttribute", number, function).value for number in numbers]

    numbers = (MAX_THREADS, SHARED, CONST, LOCAL, PTX, BINARY, MAX_DYNAMIC, CARVEOUT)
    assert attributes(b"nothing", *numbers) == [1024, 0, 8, 0, 52, 90, 49152, -1]
    assert attributes(b"big_shared", SHARED, MAX_DYNAMIC) == [40000, 9152]
    assert attributes(b"bounded", MAX_THREADS) == [128]
    assert 0 < attributes(b"nothing", REGISTERS)[0] <= 255
    function = cu.out(c_void_p, "cuModuleGetFunction", module, b"nothing")
    assert cu.status("cuFuncGetAttribute", byref(c_int()), 99, function) == "INVALID_VALUE"
    cu.cuModuleUnload(module)


@pytest.mark.parametrize(
    ("number", "value", "status"),
    [
        (MAX_THREADS, 8, "INVALID_VALUE"),
        (REGISTERS, 8, "INVALID_VALUE"),
        (MAX_DYNAMIC, 232448, "SUCCESS"),
        (MAX_DYNAMIC, 232449, "INVALID_VALUE"),
        (MAX_DYNAMIC, -1, "INVALID_VALUE"),
        (CARVEOUT, 100, "SUCCESS"),
        (CARVEOUT, 101, "INVALID_VALUE"),
        (CLUSTER_WIDTH, 2, "SUCCESS"),
        (NON_PORTABLE, 1, "SUCCESS"),
        (POLICY, 8, "INVALID_VALUE"),
    ],
)
def test_attributes_that_can_be_set(cu: Driver, number: int, value: int, status: str) -> None:
    library = load_library(cu)
    kernel = cu.out(c_void_p, "cuLibraryGetKernel", library, b"nothing")
    function = cu.out(c_void_p, "cuKernelGetFunction", kernel)
    assert cu.status("cuFuncSetAttribute", function, number, value) == status
    assert cu.status("cuKernelSetAttribute", number, value, kernel, 0) == status
    if status == "SUCCESS":
        assert cu.out(c_int, "cuFuncGetAttribute", number, function).value == value
        assert cu.out(c_int, "cuKernelGetAttribute", number, kernel, 0).value == value
    assert cu.status("cuKernelSetAttribute", number, value, kernel, 9) == "INVALID_DEVICE"
    cu.cuLibraryUnload(library)


def test_configurations_are_accepted(cu: Driver) -> None:
    library = load_library(cu)
    kernel = cu.out(c_void_p, "cuLibraryGetKernel", library, b"nothing")
    function = cu.out(c_void_p, "cuKernelGetFunction", kernel)
    cu.cuFuncSetCacheConfig(function, 2)
    cu.cuKernelSetCacheConfig(kernel, 1, 0)
    cu.cuFuncSetSharedMemConfig(function, 1)
    cu.cuFuncLoad(function)
    assert cu.out(c_int, "cuFuncIsLoaded", function).value == 1
    assert cu.status("cuFuncSetCacheConfig", function, 9) == "INVALID_VALUE"
    cu.cuLibraryUnload(library)


def test_occupancy(cu: Driver) -> None:
    module = cu.out(c_void_p, "cuModuleLoadData", KERNELS)
    function = cu.out(c_void_p, "cuModuleGetFunction", module, b"nothing")
    big = cu.out(c_void_p, "cuModuleGetFunction", module, b"big_shared")

    def blocks(handle: c_void_p, threads: int, dynamic: int = 0) -> int:
        name = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
        return cu.out(c_int, name, handle, threads, c_size_t(dynamic)).value

    # What an H200 answers for the same kernels.
    assert [blocks(function, n) for n in (1, 32, 128, 256, 1024, 2000)] == [32, 32, 16, 8, 2, 0]
    assert [blocks(big, n) for n in (1, 128, 1024)] == [5, 5, 2]
    assert (blocks(function, 128, 49152), blocks(big, 128, 10000)) == (4, 0)
    name = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
    assert cu.status(name, byref(c_int()), function, 0, c_size_t(0)) == "INVALID_VALUE"

    def potential(handle: c_void_p, limit: int) -> tuple[int, int]:
        grid, block = c_int(), c_int()
        cu.cuOccupancyMaxPotentialBlockSize(byref(grid), byref(block), handle, None, c_size_t(0), limit)
        return grid.value, block.value

    assert [potential(function, 0), potential(function, 200)] == [(264, 1024), (2112, 128)]
    assert potential(big, 200) == (660, 200)

    def available(handle: c_void_p, number: int, threads: int) -> int | str:
        value = c_size_t()
        status = cu.status("cuOccupancyAvailableDynamicSMemPerBlock", byref(value), handle, number, threads)
        return value.value if status == "SUCCESS" else status

    assert [available(function, n, 64) for n in (1, 32, 33)] == [49152, 7296, "INVALID_VALUE"]
    assert available(big, 16, 128) == "INVALID_VALUE"
    cu.cuModuleUnload(module)
