# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Pools of managed memory, which moves between the host and the devices that use it."""

from __future__ import annotations

import dataclasses
import warnings
from typing import TYPE_CHECKING, Any

from cuda_core_cffi._core.errors import UnavailableError, check, cuda_version, failure, last_failure
from cuda_core_cffi._core.ffi import lib
from cuda_core_cffi._core.handle import refuse_again
from cuda_core_cffi._core.options import check_options
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi._memory.managed_buffer import ManagedBuffer
from cuda_core_cffi._memory.pool import MemPool, pool_properties
from cuda_core_cffi.typing import ManagedMemoryLocationType

if TYPE_CHECKING:
    from cuda_core_cffi.typing._option_dicts import ManagedMemoryResourceOptionsDict

FIRST_DRIVER = 13000
HOST_ORDINAL = -1
LARGEST_ID = 2**31 - 1

DEVICE, HOST, HOST_NUMA = ManagedMemoryLocationType
LOCATION_TYPES = {
    None: lib.CU_MEM_LOCATION_TYPE_INVALID,
    DEVICE: lib.CU_MEM_LOCATION_TYPE_DEVICE,
    HOST: lib.CU_MEM_LOCATION_TYPE_HOST,
    HOST_NUMA: lib.CU_MEM_LOCATION_TYPE_HOST_NUMA,
}


@dataclasses.dataclass
class ManagedMemoryResourceOptions:
    """Options of a pool of managed memory.

    Attributes
    ----------
    preferred_location : int or None
        Where the memory should be. Without a type: the ordinal of a device, -1 for the host, or None for no preference.
        With ``"device"``, an ordinal; with ``"host"``, None; with ``"host_numa"``, a NUMA node of the host, or None for
        the one nearest to the current device.
    preferred_location_type : ManagedMemoryLocationType or str or None
        What ``preferred_location`` is: ``"device"``, ``"host"`` or ``"host_numa"``.
    """

    preferred_location: int | None = None
    preferred_location_type: ManagedMemoryLocationType | str | None = None


class ManagedMemoryResource(MemPool[ManagedBuffer]):
    """A pool of managed memory, which the host and every device can use and which moves to where it is used.

    Parameters
    ----------
    options : ManagedMemoryResourceOptions, optional
        With options, a new pool is created. Without, the current pool of managed memory is used, which other libraries
        may share.

    Raises
    ------
    TypeError, ValueError
        If an option makes no sense, or there is no such device.
    UnavailableError
        If the driver is older than CUDA 13.0, which brought pools of managed memory.
    CUDAError
        If the driver refuses the options.

    Warns
    -----
    UserWarning
        If a device cannot use managed memory together with the host: then the host must not touch any while the device
        works, and advice and prefetching are refused.
    """

    __slots__ = ("_preferred",)

    _access = (True, True)
    _BUFFER = ManagedBuffer
    _preferred: tuple[ManagedMemoryLocationType, int | None] | None

    def __init__(self, options: ManagedMemoryResourceOptions | ManagedMemoryResourceOptionsDict | None = None) -> None:
        refuse_again(self)
        preferred = None
        if options is not None:
            options = check_options(ManagedMemoryResourceOptions, options, "ManagedMemoryResource")
            preferred = check_preference(options.preferred_location, options.preferred_location_type)
        check(lib.ccc_init())
        if lib.ccc_driver_version() < FIRST_DRIVER:
            raise UnavailableError(
                f"pools of managed memory need a driver for CUDA {cuda_version(FIRST_DRIVER)}; the installed one is "
                f"for {cuda_version(lib.ccc_driver_version())}: update the NVIDIA driver"
            )
        warn_of_exclusive_access()
        kind, number = preferred or (None, None)
        place = (lib.CCC_ALLOCATION_TYPE_MANAGED, LOCATION_TYPES[kind], number or 0)
        if options is None:
            self._create_or_borrow(lib.ccc_pool_current, *place, owned=False)
        else:
            self._create_or_borrow(lib.ccc_pool_create, pool_properties(*place))
        self._preferred = preferred
        self._device_id = number if kind is DEVICE and number is not None else -1  # where the memory should be

    def __repr__(self) -> str:
        if self._preferred is None:
            return f"<ManagedMemoryResource handle={self._driver_handle:#x}>"
        kind, number = self._preferred
        where = kind.value if number is None else f"{kind.value}:{number}"
        return f"<ManagedMemoryResource preferred={where} handle={self._driver_handle:#x}>"

    @property
    def preferred_location(self) -> tuple[ManagedMemoryLocationType, int | None] | None:
        """Where the memory should be: a type and the number of the device or NUMA node; None for no preference."""
        return self._preferred

    @property
    def is_managed(self) -> bool:
        """True: the driver moves the memory between host and device."""
        return True


def check_preference(location: Any, kind: Any) -> tuple[ManagedMemoryLocationType, int | None] | None:
    """Return where memory should be as a type and a number, or raise."""
    if location is not None and (isinstance(location, bool) or not isinstance(location, int)):
        raise TypeError(f"preferred_location must be an int or None, not {type(location).__name__}")
    if kind is None:
        if location is None:
            return None
        if location == HOST_ORDINAL:
            return (HOST, None)
        if location < 0:
            raise ValueError(
                "preferred_location must be the ordinal of a device, -1 for the host or None for no preference, not "
                f"{location}"
            )
        return (DEVICE, registry.device(location).device_id)
    try:
        kind = ManagedMemoryLocationType(kind)
    except ValueError:
        known = ", ".join(repr(item.value) for item in ManagedMemoryLocationType)
        raise ValueError(f"preferred_location_type must be one of {known} or None, not {kind!r}") from None
    if kind is HOST:
        if location is not None:
            raise ValueError(f"preferred_location must be None for 'host', not {location}")
        return (HOST, None)
    if kind is DEVICE:
        if location is None or location < 0:
            raise ValueError(f"preferred_location must be the ordinal of a device for 'device', not {location}")
        return (DEVICE, registry.device(location).device_id)
    if location is None:
        return (HOST_NUMA, nearest_node())
    if not 0 <= location <= LARGEST_ID:
        raise ValueError(f"preferred_location must be a NUMA node, 0 to {LARGEST_ID}, for 'host_numa', not {location}")
    return (HOST_NUMA, location)


def nearest_node() -> int:
    """Return the NUMA node of the host that is nearest to the current device."""
    ordinal = lib.ccc_current_device()
    if ordinal < -1:
        raise last_failure()
    if ordinal < 0:
        raise failure(lib.CCC_NO_CONTEXT, "preferred_location_type='host_numa'")
    node: int = registry.device(ordinal).properties.host_numa_id
    if node < 0:
        raise ValueError(f"device {ordinal} knows no NUMA node of the host: give its number as preferred_location")
    return node


def warn_of_exclusive_access() -> None:
    """Warn if a device cannot use managed memory together with the host."""
    for device in registry.device.get_all_devices():
        if not device.properties.concurrent_managed_access:
            warnings.warn(
                f"device {device.device_id} has no concurrent managed access: the host must not touch managed memory "
                "while it works, and advice and prefetching are refused",
                UserWarning,
                stacklevel=3,
            )
