# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The architecture of the current device, as compilers spell it."""

from __future__ import annotations

from cuda_core_cffi._errors import check
from cuda_core_cffi._ffi import ffi, lib

__all__ = ["current_architecture"]


def current_architecture() -> str | None:
    """Return the architecture of the current device, such as ``"sm_90"``, or None if there is none, or no driver.

    Raises
    ------
    CUDAError
        If the driver cannot tell.
    """
    device = lib.ccc_current_device()
    if device < 0:
        lib.ccc_missing_clear()  # without a driver one can still compile
        return None
    out = ffi.new("int[2]")
    for index, attribute in enumerate(
        (lib.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, lib.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
    ):
        check(lib.cuDeviceGetAttribute(out + index, attribute, device), "cuDeviceGetAttribute")
    return f"sm_{out[0]}{out[1]}"
