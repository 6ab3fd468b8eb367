# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Print what a bug report needs: ``python -m cuda_core_cffi``."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from importlib import metadata

import cffi

from cuda_core_cffi import CUDAError, Device, __version__, lib
from cuda_core_cffi._core.errors import cuda_version
from cuda_core_cffi._core.libraries import found_libraries

MIB = 1 << 20
VARIABLES = ("CUDA_CORE_CFFI_DRIVER", "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM", "CUDA_VISIBLE_DEVICES")


def lines() -> Iterator[tuple[str, str]]:
    """Yield what is known, as label and text."""
    yield "cuda-core-cffi", f"{__version__}, built with the header of CUDA {cuda_version(lib.CUDA_VERSION)}"
    yield "python", f"{platform.python_implementation()} {sys.version.split()[0]}, {sys.executable}"
    yield "platform", platform.platform()
    yield "cffi", str(cffi.__version__)
    for package in ("numpy", "cuda-pathfinder"):
        try:
            yield package, metadata.version(package)
        except metadata.PackageNotFoundError:
            yield package, "not installed"
    for variable in VARIABLES:
        if variable in os.environ:
            yield variable, os.environ[variable]
    try:
        for library in found_libraries():
            yield library.name, library.problem or f"{library.version or 'version unknown'}, {library.path}"
    except ImportError as error:  # a report is for broken installations too
        yield "libraries", str(error)
    yield from device_lines()


def device_lines() -> Iterator[tuple[str, str]]:
    """Yield what the driver tells about its devices, or why it cannot."""
    try:
        for device in Device.get_all_devices():
            text = f"{device.name}, sm_{device.arch}, {device.pci_bus_id}, {device.uuid}, {memory_of(device)}"
            yield f"device {device.device_id}", text
    except CUDAError as error:
        yield "devices", f"none ({error.name})"


def memory_of(device: Device) -> str:
    """Return how much memory of a device is in use, by whatever process, or why NVML does not tell."""
    try:
        memory = device.to_system_device().memory_info
        return f"{memory.used // MIB} of {memory.total // MIB} MiB in use"
    except CUDAError as error:
        return f"memory in use unknown ({error.name})"


def main() -> int:
    """Print the report."""
    for label, text in lines():
        print(f"{label + ':':16} {text}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
