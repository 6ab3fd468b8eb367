# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: F403, F405 (type checkers find the names of the modules)
"""The machine: its devices and its driver, as NVML and the CUDA driver tell them.

No context is made, and no CUDA device is initialised. NVML, NVIDIA's management library, comes with the driver. It is
loaded by the first call that needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_core_cffi._core.lazy_imports import add_lazy_names
from cuda_core_cffi.system import typing as typing

if TYPE_CHECKING:  # at run time these are imported when they are first asked for
    from cuda_core_cffi.system._device import Device, get_p2p_status, get_topology_common_ancestor
    from cuda_core_cffi.system._events import register_events
    from cuda_core_cffi.system._nvlink import NvlinkInfo
    from cuda_core_cffi.system._system import (
        get_driver_branch,
        get_kernel_mode_driver_version,
        get_num_devices,
        get_nvml_version,
        get_process_name,
        get_user_mode_driver_version,
    )
    from cuda_core_cffi.system.exceptions import *

__all__ = [
    "CUDA_BINDINGS_NVML_IS_COMPATIBLE",
    "AlreadyInitializedError",
    "ArgumentVersionMismatchError",
    "CorruptedInforomError",
    "DeprecatedError",
    "Device",
    "DriverNotLoadedError",
    "FreqNotSupportedError",
    "FunctionNotFoundError",
    "GpuIsLostError",
    "GpuNotFoundError",
    "InUseError",
    "InsufficientPowerError",
    "InsufficientResourcesError",
    "InsufficientSizeError",
    "InvalidArgumentError",
    "InvalidStateError",
    "IrqIssueError",
    "LibRmVersionMismatchError",
    "LibraryNotFoundError",
    "MemoryError",
    "NoDataError",
    "NoPermissionError",
    "NotFoundError",
    "NotReadyError",
    "NotSupportedError",
    "NvlinkInfo",
    "NvmlError",
    "OperatingSystemError",
    "ResetRequiredError",
    "ResetTypeNotSupportedError",
    "TimeoutError",
    "UninitializedError",
    "UnknownError",
    "VgpuEccNotSupportedError",
    "get_driver_branch",
    "get_kernel_mode_driver_version",
    "get_num_devices",
    "get_nvml_version",
    "get_p2p_status",
    "get_process_name",
    "get_topology_common_ancestor",
    "get_user_mode_driver_version",
    "register_events",
]

CUDA_BINDINGS_NVML_IS_COMPATIBLE = True
"""Whether NVML can be called. cuda-core needs other bindings for that, which may be too old; this package does not."""

add_lazy_names(
    globals(),
    {
        "_device": ("Device", "get_p2p_status", "get_topology_common_ancestor"),
        "_nvlink": ("NvlinkInfo",),
        "_system": (
            "get_driver_branch",
            "get_kernel_mode_driver_version",
            "get_num_devices",
            "get_nvml_version",
            "get_process_name",
            "get_user_mode_driver_version",
        ),
        "_events": ("register_events",),
        "exceptions": tuple(name for name in __all__ if name.endswith("Error")),
    },
)
