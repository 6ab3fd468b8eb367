# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Architectures, as compilers and linkers spell them: ``"sm_90"``, ``"compute_90"``."""

from __future__ import annotations

import re

from cuda_core_cffi._core.errors import check
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.option_spelling import text

_ARCH = re.compile(r"(sm|compute)_[1-9][0-9]{1,2}[af]?")


def check_arch(field: str, value: object) -> None:
    """Raise unless the value of an option, which messages call ``field``, names an architecture."""
    if not _ARCH.fullmatch(text(field, value)):
        raise ValueError(f"{field} must look like 'sm_90', 'sm_90a' or 'compute_90', not {value!r}")


def current_architecture() -> str | None:
    """Return the architecture of the current device, such as ``"sm_90"``, or None if there is none, or no driver."""
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
