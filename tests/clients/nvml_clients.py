# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Have programs that read NVML show the simulated devices, and a process that uses one of them.

    python tests/clients/nvml_clients.py [path of nvidia-smi]

The programs are installed for this interpreter: nvidia-ml-py, nvitop, gpustat and rapids-cli. A loop over NVLinks
reads ``cuda.core.system``, of cuda-core if that is installed, and of this package. Prints a line for each program,
followed by the output of a failed one. A program that is not installed is skipped.
"""

from __future__ import annotations

import ctypes
import importlib.util
import inspect
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from simulated import simulated_environment

from cuda_core_cffi import simulator

MB = 1 << 20
MEMORY = 192 * MB
DEVICES = 2
LINK_COUNT = 18
TEMPERATURE = 61
TIMEOUT = 120
# What NVML may answer for a device without the feature, or for a question about nothing.
REFUSALS = {"NVML_ERROR_NOT_SUPPORTED", "NVML_ERROR_NOT_FOUND"}


def main() -> int:
    """Run every program; return 1 if one does not show what it should."""
    smi = sys.argv[1] if len(sys.argv) > 1 else shutil.which("nvidia-smi")
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        environment = environment_in(pathlib.Path(temporary))
        with worker(environment) as pid:
            for name, command, check in programs(smi, pid):
                missing = command is None
                problem = None if command is None else problem_of(command, check, environment)
                print(f"{name:24} {'not there' if missing else 'FAILED' if problem else 'ok'}")
                if problem:
                    print(problem)
                    failed = 1
    return failed


def environment_in(folder: pathlib.Path) -> dict[str, str]:
    """Return the environment of a program that finds the simulated libraries through links in a folder."""
    shared = folder / "shared"
    shared.mkdir(mode=0o700)
    (folder / "libnvidia-ml.so.1").symlink_to(simulator.library_path())
    return {
        **simulated_environment(folder),
        "CUDA_SIM_SHARED": str(shared),
        "CUDA_SIM_DEVICES": str(DEVICES),
        "CUDA_SIM_SENSORS": f"temperature={TEMPERATURE}",
        "COLUMNS": "120",
        "TERM": "dumb",
    }


# --- Programs ---------------------------------------------------------------------------------------------------------

Check = Callable[[str], str | None]


def programs(smi: str | None, pid: int) -> list[tuple[str, list[str] | None, Check]]:
    """Return the name, the command and the check of each program."""

    def of_module(name: str, *arguments: str) -> list[str] | None:
        package = name.partition(".")[0]
        return [sys.executable, "-m", name, *arguments] if importlib.util.find_spec(package) else None

    def of_smi(*arguments: str) -> list[str] | None:
        return [smi, *arguments] if smi else None

    pynvml = [sys.executable, __file__, "--pynvml"] if importlib.util.find_spec("pynvml") else None
    alias = [sys.executable, "-m", "cuda_core_cffi.as_cuda_core"]
    doctor = of_module("rapids_cli.cli", "doctor", "--verbose", "gpu", "memory", "nvlink", "cuda_driver")
    peer = [sys.executable, __file__, "--links"] if has_cuda_core() else None
    used = str(MEMORY // MB)
    return [
        ("nvidia-ml-py", pynvml, shows(f"{DEVICES} devices", f"process {pid} has {used} MiB", "0 unexpected")),
        ("nvitop", of_module("nvitop", "-1"), shows("NVITOP", f"{TEMPERATURE}C", str(pid), f"{used}.0MiB")),
        ("gpustat", of_module("gpustat", "--json", "--show-all"), lambda text: problem_of_gpustat(text, pid)),
        ("rapids-cli", doctor and [*alias, *doctor[1:]], shows(*DOCTOR, without=["failed"])),
        ("links with cuda-core", peer, shows(*LINKS)),
        ("links with this package", [*alias, __file__, "--links"], shows(*LINKS)),
        ("nvidia-smi", of_smi(), shows("Simulated GPU", f"{TEMPERATURE}C", f"{used}MiB")),
        ("nvidia-smi -q", of_smi("-q"), shows(*SMI_QUERY, f": {used} MiB", without=["Uninitialized", "Unknown Error"])),
        ("nvidia-smi -L", of_smi("-L"), shows("GPU 1: Simulated GPU", "UUID: GPU-73696d75-6c61")),
        ("nvidia-smi nvlink -s", of_smi("nvlink", "-s"), shows(f"Link {LINK_COUNT - 1}: 26.562 GB/s")),
    ]


DOCTOR = (
    f"GPU(s) detected: {DEVICES}",
    f"All NVLinks active across {DEVICES} GPUs",
    "All checks passed!",
)
LINKS = tuple(f"GPU {device}: {LINK_COUNT} of {LINK_COUNT} links active" for device in range(DEVICES))
SMI_QUERY = (
    f"Attached GPUs                             : {DEVICES}",
    "Product Name                          : Simulated GPU",
    "Board Part Number                     : N/A",
    f"GPU Current Temp                  : {TEMPERATURE} C",
    "Total                             : 1024 MiB",
)


def has_cuda_core() -> bool:
    """Return whether cuda-core is installed."""
    try:
        return importlib.util.find_spec("cuda.core") is not None
    except ModuleNotFoundError:  # no cuda at all
        return False


def shows(*expected: str, without: list[str] | None = None) -> Check:
    """Return a check that a program prints some texts, and others not."""

    def check(text: str) -> str | None:
        missing = [part for part in expected if part not in text]
        unwanted = [part for part in without or [] if part in text]
        return f"missing {missing}, unwanted {unwanted}" if missing or unwanted else None

    return check


def problem_of_gpustat(text: str, pid: int) -> str | None:
    """Return what is wrong with the JSON of gpustat."""
    gpus = json.loads(text)["gpus"]
    right = (
        [gpu["index"] for gpu in gpus] == list(range(DEVICES))
        and gpus[0]["name"].startswith("Simulated GPU")
        and gpus[0]["temperature.gpu"] == TEMPERATURE
        and [(process["pid"], process["gpu_memory_usage"]) for process in gpus[0]["processes"]] == [(pid, MEMORY // MB)]
        and gpus[1]["processes"] == []
    )
    return None if right else "other values"


def problem_of(command: list[str], check: Check, environment: dict[str, str]) -> str | None:
    """Return what is wrong with a program, and what it printed; None if nothing is."""
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT)
    printed = finished.stdout + finished.stderr
    problem = f"exit status {finished.returncode}" if finished.returncode else check(finished.stdout)
    return f"{problem}\n{printed}" if problem else None


# --- The process that uses a device -----------------------------------------------------------------------------------


@contextmanager
def worker(environment: dict[str, str]) -> Iterator[int]:
    """Run a process that has memory of device 0; yield its pid."""
    with subprocess.Popen(
        [sys.executable, __file__, "--worker"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process.pid
        process.communicate()


def work() -> None:
    """Allocate memory of device 0, and keep it until the standard input ends."""
    cuda = ctypes.CDLL("libcuda.so.1")
    context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    assert cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(MEMORY)) == 0
    print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)


# --- nvidia-ml-py -----------------------------------------------------------------------------------------------------


def call_pynvml() -> None:
    """Call every function of nvidia-ml-py that needs a device only; print what came of it."""
    import pynvml

    pynvml.nvmlInit()
    names = {getattr(pynvml, name): name for name in dir(pynvml) if name.startswith("NVML_ERROR_")}
    print(f"{pynvml.nvmlDeviceGetCount()} devices, driver {pynvml.nvmlSystemGetDriverVersion()}")
    device = pynvml.nvmlDeviceGetHandleByIndex(0)
    for process in pynvml.nvmlDeviceGetComputeRunningProcesses(device):
        print(f"process {process.pid} has {process.usedGpuMemory // MB} MiB")
    answers: dict[str, list[str]] = {"values": [], "refusals": [], "unexpected": []}
    for name in dir(pynvml):
        function = getattr(pynvml, name)
        if not name.startswith("nvmlDevice") or not inspect.isfunction(function):
            continue
        needed = [p.name for p in inspect.signature(function).parameters.values() if p.default is p.empty]
        if needed not in (["handle"], ["device"]):
            continue
        try:
            function(device)
        except pynvml.NVMLError as error:
            expected = names.get(error.value) in REFUSALS
            answers["refusals" if expected else "unexpected"].append(f"{name}: {error}")
        except Exception as error:
            answers["unexpected"].append(f"{name}: {type(error).__name__} {error}")
        else:
            answers["values"].append(name)
    for kind, found in answers.items():
        print(len(found), kind)
    print(*answers["unexpected"], sep="\n")
    pynvml.nvmlShutdown()


# --- cuda.core.system -------------------------------------------------------------------------------------------------


def count_links() -> None:
    """Print how many NVLinks of each device are active, with a loop that ends at the first link that is not there."""
    from cuda.core import system

    warnings.simplefilter("ignore", DeprecationWarning)  # of max_links
    for device in system.Device.get_all_devices():
        states = []
        for link in range(system.NvlinkInfo.max_links):
            try:
                states.append(bool(device.get_nvlink(link).state))
            except (ValueError, system.InvalidArgumentError, system.NotSupportedError):
                break
        print(f"GPU {device.index}: {sum(states)} of {len(states)} links active")


if __name__ == "__main__":
    modes = {"--worker": work, "--pynvml": call_pynvml, "--links": count_links}
    mode = modes.get(sys.argv[1]) if len(sys.argv) > 1 else None
    sys.exit(mode() if mode else main())
