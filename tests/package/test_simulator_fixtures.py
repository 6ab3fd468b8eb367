# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What users' test suites get: the choice from Python, and the pytest fixture."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from helpers import run_python
from scenarios import PTX

PLUGIN = 'pytest_plugins = ["cuda_core_cffi.simulator.fixtures"]\n'


def run_pytest(tmp_path, code):
    """Run pytest on ``code`` in a process that has chosen no driver."""
    (tmp_path / "conftest.py").write_text(PLUGIN)
    (tmp_path / "test_it.py").write_text(code)
    environment = {name: value for name, value in os.environ.items() if name != "CUDA_CORE_CFFI_DRIVER"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
    return done.returncode, done.stdout + done.stderr


def test_the_fixture_gives_a_simulated_device(tmp_path):
    status, output = run_pytest(
        tmp_path,
        "def test_it(simulated_device):\n"
        "    assert 'Simulated' in simulated_device.name\n"
        "    simulated_device.allocate(16).close()\n",
    )
    assert status == 0, output


def test_the_fixture_fails_a_test_that_misuses_the_driver(tmp_path):
    status, output = run_pytest(
        tmp_path,
        "from cuda_core_cffi import lib\n"
        "def test_it(simulated_device):\n"
        "    buffer = simulated_device.allocate(16)\n"
        "    address = buffer.handle\n"
        "    lib.cuMemFreeAsync(address, lib.CU_STREAM_LEGACY)\n"
        "    lib.cuMemFreeAsync(address, lib.CU_STREAM_LEGACY)\n",
    )
    assert status == 1, output
    assert "misused the driver" in output


def test_the_fixture_tells_what_a_kernel_did_and_the_next_tests_have_a_working_device(tmp_path):
    status, output = run_pytest(
        tmp_path,
        "from cuda_core_cffi import Device, LaunchConfig, ObjectCode, launch\n"
        f"PTX = {PTX!r}\n"
        "def test_one(simulated_device):\n"
        "    kernel = ObjectCode.from_ptx(PTX).get_kernel('store')\n"
        "    with simulated_device.create_stream() as stream:\n"
        "        launch(stream, LaunchConfig(grid=1, block=1), kernel, 8, 1)\n"
        "def test_two(simulated_device):\n"
        "    simulated_device.allocate(16).close()\n"
        "    simulated_device.sync()\n"
        "def test_without_the_fixture():\n"
        "    stream = Device(0).create_stream()\n"
        "    launch(stream, LaunchConfig(grid=1, block=1), ObjectCode.from_ptx(PTX).get_kernel('store'), 8, 1)\n"
        "def test_three(simulated_device):\n"
        "    simulated_device.create_stream().sync()\n",
    )
    assert status == 1, output
    assert "the test misused the driver:\nkernel store:" in output
    assert "1 error" in output
    assert "4 passed" in output


RECOVERY = """
import threading
from cuda_core_cffi import CUDAError, Device, LaunchConfig, ObjectCode, launch, lib, simulator

device = Device(0)
device.set_current()
stream, buffer = device.create_stream(), device.allocate(4)
kernel = ObjectCode.from_ptx(PTX).get_kernel("store")
one = LaunchConfig(grid=1, block=1)


def fail():
    try:
        launch(stream, one, kernel, 8, 1)
        stream.sync()
    except CUDAError as error:
        print(error.name)


def work():
    Device(0).set_current()
    with Device(0).create_stream() as other, Device(0).allocate(4, other) as memory:
        launch(other, one, kernel, memory, 7)
        print(int.from_bytes(memory.copy_to(bytearray(4), stream=other), "little"))


def work_everywhere():
    work()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


"""


def test_a_device_recovers_with_all_that_was_made_before():
    done = run_python(
        f"PTX = {PTX!r}\n{RECOVERY}"
        "fail()\n"
        "simulator.recover()\n"
        "launch(stream, one, kernel, buffer, 5)\n"
        "print(int.from_bytes(buffer.copy_to(bytearray(4), stream=stream), 'little'))\n"
        "work_everywhere()\n",
        CUDA_CORE_CFFI_DRIVER="simulator",
    )
    assert (done.stdout.split(), done.stderr) == (["CUDA_ERROR_ILLEGAL_ADDRESS", "5", "7", "7"], "")


def test_a_device_recovers_whose_primary_context_was_reset():
    done = run_python(
        f"PTX = {PTX!r}\n{RECOVERY}"
        "fail()\n"
        "stream.close(), buffer.close()\n"
        "assert lib.cuDevicePrimaryCtxReset(0) == 0\n"
        "simulator.recover()\n"
        "work_everywhere()\n",
        CUDA_CORE_CFFI_DRIVER="simulator",
    )
    assert done.stdout.split() == ["CUDA_ERROR_ILLEGAL_ADDRESS", "7", "7"], done.stderr


def test_the_fixture_takes_faults_back(tmp_path):
    status, output = run_pytest(
        tmp_path,
        "from cuda_core_cffi import simulator\n"
        "def test_one(simulated_device):\n"
        "    simulator.fail('cuMemAllocFromPoolAsync', 'CUDA_ERROR_OUT_OF_MEMORY', count=100)\n"
        "def test_two(simulated_device):\n"
        "    simulated_device.allocate(16).close()\n",
    )
    assert status == 0, output


def test_the_simulator_can_be_chosen_from_python():
    done = run_python(
        "from cuda_core_cffi import Device, simulator; simulator.use(); simulator.use(); print(Device(0).name)",
        CUDA_CORE_CFFI_DRIVER="",
    )
    assert "Simulated" in done.stdout, done.stderr


@pytest.mark.simulator_only("the driver in use must be another than the simulator by its file")
def test_it_is_too_late_to_choose_once_a_driver_is_in_use(tmp_path):
    import shutil

    from cuda_core_cffi import simulator

    other = shutil.copy(simulator.library_path(), tmp_path / "another.so")
    done = run_python(
        "from cuda_core_cffi import Device, simulator; Device(0); simulator.use()", CUDA_CORE_CFFI_DRIVER=str(other)
    )
    assert "RuntimeError" in done.stderr
    assert "another.so" in done.stderr


@pytest.mark.parametrize(("given", "used"), [(None, "60"), ("0", "0"), ("2.5", "2.5")])
def test_the_fixture_limits_the_time_of_kernels_unless_the_environment_does(tmp_path, monkeypatch, given, used):
    monkeypatch.delenv("CUDA_SIM_KERNEL_SECONDS", raising=False)
    if given is not None:
        monkeypatch.setenv("CUDA_SIM_KERNEL_SECONDS", given)
    status, output = run_pytest(
        tmp_path,
        "import os\n"
        "from cuda_core_cffi import lib\n"
        "assert not lib.ccc_driver_used()\n"
        f"def test_it(simulated_device):\n    assert os.environ['CUDA_SIM_KERNEL_SECONDS'] == {used!r}\n",
    )
    assert status == 0, output


def test_a_kernel_that_does_not_end_is_ended_under_the_fixture(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_SIM_KERNEL_SECONDS", "0.2")
    ptx = b".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry spin() { again: bra again; }\n"
    _, output = run_pytest(
        tmp_path,
        "import pytest\n"
        "from cuda_core_cffi import CUDAError, LaunchConfig, ObjectCode, launch\n"
        "def test_it(simulated_device):\n"
        "    stream = simulated_device.create_stream()\n"
        f"    launch(stream, LaunchConfig(grid=1, block=1), ObjectCode.from_ptx({ptx!r}).get_kernel('spin'))\n"
        "    with pytest.raises(CUDAError, match='kernel spin: the time limit of the launch is over'):\n"
        "        stream.sync()\n",
    )
    assert "1 passed" in output, output
