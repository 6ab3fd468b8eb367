# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""NVML for this folder: what the header that this package was built with lacks is an error when it is used."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

from cuda_core_cffi import nvml as complete
from cuda_core_cffi.system.exceptions import FunctionNotFoundError


def missing(name: str) -> NoReturn:
    """Say that the header lacks a function, or a structure that one needs.

    Raises
    ------
    FunctionNotFoundError
        If it is a name of NVML.
    AttributeError
        If it is none.
    """
    if not name.startswith(("nvml", "NVML_")):
        raise AttributeError(f"NVML has no {name!r}")
    status = complete.nvmlReturn_t.NVML_ERROR_FUNCTION_NOT_FOUND
    error = FunctionNotFoundError(
        f"{name} is not in the nvml.h that cuda-core-cffi was built with: build it with that of a newer CUDA"
    )
    error.call, error.status, error.name = name, int(status), status.name
    raise error


if TYPE_CHECKING:
    nvml = complete
else:
    nvml = ModuleType(complete.__name__, complete.__doc__)
    vars(nvml).update(vars(complete), __getattr__=missing)
