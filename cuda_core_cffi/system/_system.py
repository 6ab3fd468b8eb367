# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What the CUDA driver and NVML tell of the machine as a whole."""

from __future__ import annotations

from cuda_core_cffi._core.integers import integer
from cuda_core_cffi._device.device import device_count, driver_version
from cuda_core_cffi.system._library import nvml, text_of, value
from cuda_core_cffi.system.exceptions import LibraryNotFoundError

PROCESS_NAME_SIZE = 4096  # a path


def get_num_devices() -> int:
    """Return the number of devices of the machine.

    Returns
    -------
    int
        What NVML says: ``CUDA_VISIBLE_DEVICES`` hides none, and a device that is divided (MIG) counts once. Where there
        is no NVML, what the CUDA driver says, of the devices that programs can use.

    Raises
    ------
    UnavailableError
        If there is neither NVML nor a CUDA driver.
    NvmlError
        If NVML fails.
    """
    try:
        return value(nvml.nvmlDeviceGetCount_v2)
    except LibraryNotFoundError:
        return device_count()


def get_user_mode_driver_version() -> tuple[int, ...]:
    """Return the newest version of CUDA that the installed driver serves.

    Returns
    -------
    tuple of int
        Major and minor number: ``(13, 0)``. From ``cuDriverGetVersion``.

    Raises
    ------
    CUDAError
        If there is no driver.
    """
    return driver_version()[:2]


def get_kernel_mode_driver_version() -> tuple[int, ...]:
    """Return the version of the driver's kernel module.

    Returns
    -------
    tuple of int
        ``(580, 65, 6)`` for 580.65.06; two numbers on WSL.

    Raises
    ------
    LibraryNotFoundError
        If there is no NVML; it is a RuntimeError.
    """
    return version_of(read_driver_version())


def get_nvml_version() -> tuple[int, ...]:
    """Return the version of the NVML library.

    Returns
    -------
    tuple of int
        The major version of CUDA, then the version of the driver: ``(13, 580, 65, 6)``.

    Raises
    ------
    LibraryNotFoundError
        If there is no NVML.
    """
    return version_of(text_of(value(nvml.nvmlSystemGetNVMLVersion, nvml.NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE)))


def get_driver_branch() -> str:
    """Return the branch that the driver was built from.

    Returns
    -------
    str
        Its name, such as ``"r580_00"``.

    Raises
    ------
    FunctionNotFoundError
        If the driver is too old to tell.
    """
    info = value(nvml.nvmlSystemGetDriverBranch, nvml.NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE)
    return text_of(info.branch)


def get_process_name(pid: int) -> str:
    """Return the name of a process that uses a device.

    Parameters
    ----------
    pid : int
        The process.

    Returns
    -------
    str
        Its path, or its command line.

    Raises
    ------
    TypeError, ValueError
        If it is no int, or negative.
    NotFoundError
        If there is no such process.
    NoPermissionError
        If the user may not know.
    """
    number = integer(pid, "pid")
    if number < 0:
        raise ValueError(f"pid must be 0 or more, not {number}")
    return text_of(value(nvml.nvmlSystemGetProcessName, number, PROCESS_NAME_SIZE))


def read_driver_version() -> str:
    """Return the version of the driver's kernel module as text."""
    return text_of(value(nvml.nvmlSystemGetDriverVersion, nvml.NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE))


def version_of(text: str) -> tuple[int, ...]:
    """Return the numbers of a version; what is no number ends it."""
    found: list[int] = []
    for part in text.split("."):
        if not part.isdecimal():
            break
        found.append(int(part))
    return tuple(found)
