# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The driver table: when the driver is loaded, which one, and what is asked of it.

Real drivers need no GPU here: ``CUDA_TEST_LIBCUDA`` names the libraries to test with (``.ci/libcuda.sh`` gets two).
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest
from helpers import output_of

from cuda_core_cffi import lib

LIBRARIES = [path for path in os.environ.get("CUDA_TEST_LIBCUDA", "").split(os.pathsep) if path]
REAL = pytest.mark.parametrize(
    "libcuda",
    LIBRARIES
    or [pytest.param(None, marks=pytest.mark.skip(reason="CUDA_TEST_LIBCUDA names no real driver to test with"))],
)
NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}  # where there is one, the tests of a driver without a device hide it

MAPS = """
import pathlib
def loaded():
    text = pathlib.Path("/proc/self/maps").read_text()
    return sorted({line.split("/")[-1] for line in text.splitlines() if "libcuda" in line and ".so" in line})
"""


# loading


def test_importing_loads_no_driver() -> None:
    code = MAPS + "import cuda_core_cffi\nprint(loaded(), cuda_core_cffi.lib.ccc_driver_version())"
    assert output_of(code) == "[] 0"


def test_importing_every_public_module_loads_no_driver() -> None:
    code = MAPS + "import cuda_core_cffi.driver, cuda_core_cffi.typing\nprint(loaded())"
    assert output_of(code) == "[]"


def test_importing_works_where_there_is_no_driver() -> None:
    assert output_of("import cuda_core_cffi; print('fine')", CUDA_CORE_CFFI_DRIVER="/nonexistent") == "fine"


def test_importing_does_not_import_numpy_or_the_compiler_of_cffi() -> None:
    code = """
        import sys
        import cuda_core_cffi
        print([name for name in ("numpy", "pycparser", "cffi.api", "setuptools") if name in sys.modules])
        """
    assert output_of(code) == "[]"


@pytest.mark.simulator_only("the library's name is the simulator's")
def test_the_first_use_loads_the_driver() -> None:
    code = MAPS + "from cuda_core_cffi import Device\nDevice(0)\nprint(loaded())"
    assert output_of(code) == "['libcuda_core_cffi_simulator.so']"


def test_threads_that_use_the_driver_first_at_once_all_succeed() -> None:
    code = """
        import threading
        from cuda_core_cffi import Device
        barrier, found = threading.Barrier(16), []
        def use():
            barrier.wait()
            Device(0).set_current()
            found.append(Device(0).context.handle)
        threads = [threading.Thread(target=use) for _ in range(16)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        print(len(found), len(set(found)))
        """
    assert output_of(code) == "16 1"


@pytest.mark.simulator_only("the choice is the simulator")
def test_python_chooses_the_driver_before_its_first_use() -> None:
    code = """
        from cuda_core_cffi import Device, ffi, lib
        print(lib.ccc_driver_choose(b"simulator"), Device(0).name.split()[0], ffi.string(lib.ccc_driver_name())[-12:])
        """
    assert output_of(code, CUDA_CORE_CFFI_DRIVER="/nonexistent") == "1 Simulated b'simulator.so'"


def test_the_driver_cannot_be_chosen_after_its_first_use() -> None:
    code = """
        from cuda_core_cffi import Device, lib
        Device(0).set_current()
        print(lib.ccc_driver_choose(b"/nonexistent"))
        Device(0).sync()
        """
    assert output_of(code) == "0"


@pytest.mark.simulator_only("the second choice is the simulator")
def test_another_driver_can_be_chosen_after_one_that_could_not_be_loaded() -> None:
    code = """
        from cuda_core_cffi import Device, UnavailableError, lib
        try:
            Device(0)
        except UnavailableError:
            print(lib.ccc_driver_choose(b"simulator"), Device(0).device_id)
        """
    assert output_of(code, CUDA_CORE_CFFI_DRIVER="/nonexistent") == "1 0"


@pytest.mark.parametrize("value", ["system", "", None])
def test_the_systems_driver_is_the_default(value: str | None) -> None:
    code = """
        from cuda_core_cffi import ffi, lib
        lib.cuDriverGetVersion(ffi.new("int *"))
        print(ffi.string(lib.ccc_driver_name()).decode())
        """
    assert output_of(code, CUDA_CORE_CFFI_DRIVER=value) == "libcuda.so.1"


def test_a_path_of_any_length_is_taken_or_refused() -> None:
    code = """
        from cuda_core_cffi import Device, UnavailableError
        try:
            Device(0)
        except UnavailableError as error:
            print(len(str(error)) > 4000)
        """
    assert output_of(code, CUDA_CORE_CFFI_DRIVER="/" + "x" * 20000) == "True"


@pytest.mark.simulator_only("the driver's path is the simulator's")
def test_a_path_chooses_a_driver() -> None:
    from cuda_core_cffi import simulator

    code = "from cuda_core_cffi import Device; print(Device(0).name.split()[0])"
    assert output_of(code, CUDA_CORE_CFFI_DRIVER=str(simulator.library_path())) == "Simulated"


@pytest.mark.simulator_only("traces driver calls")
def test_a_function_is_looked_up_once() -> None:
    code = """
        from cuda_core_cffi import Device, simulator
        device = Device(0)
        device.set_current()
        device.sync()
        with simulator.trace() as trace:
            device.sync()
            device.sync()
        print(sum("GetProcAddress" in name for name in trace.names), trace.names.count("cuCtxSynchronize"))
        """
    assert output_of(code) == "0 2"


# real drivers without a device


@REAL
def test_importing_loads_no_real_driver(libcuda: str) -> None:
    code = MAPS + "import cuda_core_cffi\nprint(loaded())"
    assert output_of(code, CUDA_CORE_CFFI_DRIVER=libcuda) == "[]"


@REAL
def test_a_real_driver_without_a_device_says_so(libcuda: str) -> None:
    code = """
        from cuda_core_cffi import Device, UnavailableError, ffi, lib
        print(lib.cuInit(0))
        try:
            Device(0)
        except UnavailableError as error:
            print(error.call, error.status, error)
        """
    status, text = output_of(code, CUDA_CORE_CFFI_DRIVER=libcuda, **NO_GPU).split("\n")
    assert status == "100"
    assert text.startswith("cuInit 100 cuInit failed: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected")
    assert "nvidia-smi" in text


@REAL
def test_the_command_line_reports_a_driver_without_a_device(libcuda: str, tmp_path: pathlib.Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cuda_core_cffi"],
        cwd=tmp_path,  # not the source tree, which would come first on the path
        env={**os.environ, **NO_GPU, "CUDA_CORE_CFFI_DRIVER": libcuda, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "CUDA_ERROR_NO_DEVICE" in done.stdout
    assert done.stderr == ""


def test_the_command_line_reports_a_package_that_is_missing() -> None:
    code = """
        import sys
        sys.modules["cuda.pathfinder"] = None
        from cuda_core_cffi.__main__ import main
        main()
        """
    printed = output_of(code, CUDA_CORE_CFFI_NVRTC=None)  # a library named there need not be searched for
    assert re.search(r"^libraries:.*cuda\.pathfinder", printed, re.MULTILINE)


@REAL
def test_a_function_newer_than_a_real_driver_is_refused_and_never_called(libcuda: str) -> None:
    """Asked for cuCtxCreate at 13000, libcuda 550 gives an older signature and success: calling it would crash."""
    if lib.CUDA_VERSION < 13000:
        pytest.skip("the header of this build has cuCtxCreate with an older signature")
    code = """
        from cuda_core_cffi import UnavailableError, ffi, lib
        from cuda_core_cffi._core.errors import check
        version, made = ffi.new("int *"), ffi.new("CUcontext *")
        check(lib.cuDriverGetVersion(version), "cuDriverGetVersion")
        assert version[0] < 12050
        try:
            check(lib.cuCtxCreate(made, ffi.NULL, 0, 0), "cuCtxCreate")
        except UnavailableError as error:
            print(error, made[0] == ffi.NULL)
        """
    text = output_of(code, CUDA_CORE_CFFI_DRIVER=libcuda, **NO_GPU)
    assert re.fullmatch(
        r"cuCtxCreate needs a driver for CUDA 12\.5; the installed one is for 12\.\d: update the NVIDIA driver True",
        text,
    )
