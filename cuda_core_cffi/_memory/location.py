# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Places for memory: a device, the host or one of its NUMA nodes, as the driver tells them apart."""

from __future__ import annotations

from typing import Any

from cuda_core_cffi._core.errors import check, cuda_version
from cuda_core_cffi._core.ffi import lib
from cuda_core_cffi._core.host import Host
from cuda_core_cffi._core.registry import registry

FIRST_WITH_NUMA = 13000
NUMA_NODES = (lib.CU_MEM_LOCATION_TYPE_HOST_NUMA, lib.CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)


def to_driver(location: Any, what: str) -> tuple[int, int]:
    """Return a place as the driver's type and number, or raise TypeError; ``what`` is the operation that wants it.

    Drivers before CUDA 13.0 know no NUMA nodes of the host.
    """
    if not isinstance(location, Host | registry.device):
        raise TypeError(f"{what} needs a Device or a Host, not {type(location).__name__}: {location!r}")
    kind, number = encode(location)
    if kind not in NUMA_NODES:
        return kind, number
    check(lib.ccc_init())
    if lib.ccc_driver_version() < FIRST_WITH_NUMA:
        raise TypeError(
            f"{what}: {location!r} needs a driver for CUDA {cuda_version(FIRST_WITH_NUMA)}; the installed one is for "
            f"{cuda_version(lib.ccc_driver_version())}, where Host() is the only place on the host"
        )
    return kind, number


def encode(location: Any) -> tuple[int, int]:
    """Return the driver's type and number of a :class:`Device` or a ``Host``, whatever the driver's age."""
    if not isinstance(location, Host):
        return lib.CU_MEM_LOCATION_TYPE_DEVICE, location.device_id
    if location.is_numa_current:
        return lib.CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0
    if location.numa_id is not None:
        return lib.CU_MEM_LOCATION_TYPE_HOST_NUMA, location.numa_id
    return lib.CU_MEM_LOCATION_TYPE_HOST, 0


def from_driver(kind: int, number: int) -> Any:
    """Return the place that a type and a number of the driver mean; None for none."""
    if kind == lib.CU_MEM_LOCATION_TYPE_DEVICE:
        return registry.device(number)
    if kind == lib.CU_MEM_LOCATION_TYPE_HOST:
        return Host()
    return Host(number) if kind == lib.CU_MEM_LOCATION_TYPE_HOST_NUMA else None
