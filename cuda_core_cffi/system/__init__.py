# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The machine: its devices and its driver, as the CUDA driver tells them."""

from __future__ import annotations

from cuda_core_cffi._device.device import device_count, driver_version

__all__ = ["get_num_devices", "get_user_mode_driver_version"]


def get_num_devices() -> int:
    """Return the number of devices that programs can use.

    Returns
    -------
    int
        What ``cuDeviceGetCount`` says: ``CUDA_VISIBLE_DEVICES`` hides others. No context is needed.

    Raises
    ------
    CUDAError
        If there is no driver, or it finds no device.
    """
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
