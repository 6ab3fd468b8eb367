# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""MIG: a device that is divided into instances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuda_core_cffi._core.answers import Answer
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi.system._library import DISABLED, ENABLED, is_enabled, nvml, reads_number, value, values
from cuda_core_cffi.system._snapshot import Aspect
from cuda_core_cffi.system.exceptions import NotFoundError, failure

if TYPE_CHECKING:
    from cuda_core_cffi.system._device import Device


def switch(state: bool, name: str) -> int:
    """Return NVML's number for on or off.

    Raises
    ------
    TypeError
        If the state is neither a bool, nor 0 or 1.
    """
    if state not in (True, False):
        raise TypeError(f"{name} must be a bool, not {type(state).__name__}: {state!r}")
    return int(ENABLED if state else DISABLED)


class MigInfo(Aspect):
    """How a device is divided; made by :attr:`Device.mig`. Ampere and newer.

    Parameters
    ----------
    device : Device
        The device.
    """

    __slots__ = ()

    is_mig_device = Answer(
        reads_number("nvmlDeviceIsMigDeviceHandle", bool), doc="Whether this device is an instance of another."
    )

    @property
    def mode(self) -> bool:
        """Whether the device is divided. To set it needs root, and may need a reset of the device.

        Raises
        ------
        NotSupportedError
            If the device cannot be divided.
        """
        return is_enabled(values(nvml.nvmlDeviceGetMigMode, self._handle)[0])

    @mode.setter
    def mode(self, mode: bool) -> None:
        function = nvml.nvmlDeviceSetMigMode
        activation = value(function, self._handle, switch(mode, "mode"))
        if activation:
            raise failure(activation, function.__name__, " (the mode is set, and waits for a reset)")

    @property
    def pending_mode(self) -> bool:
        """Whether the device will be divided after the next reset.

        Raises
        ------
        NotSupportedError
            If the device cannot be divided.
        """
        return is_enabled(values(nvml.nvmlDeviceGetMigMode, self._handle)[1])

    device_count = Answer(
        reads_number("nvmlDeviceGetMaxMigDeviceCount", int),
        doc="How many instances there can be at most; 0 if the device is not divided.",
    )

    @property
    def parent(self) -> Device:
        """The device that this one is an instance of."""
        return self._device._from_handle(value(nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle, self._handle))

    def get_device_by_index(self, index: int) -> Device:
        """Return an instance.

        Parameters
        ----------
        index : int
            Its number, from 0 to :attr:`device_count` - 1.

        Returns
        -------
        Device
            The instance. It is invalid once the instance is destroyed.

        Raises
        ------
        NotFoundError
            If there is no such instance.
        """
        number = integer(index, "index")
        if number < 0:
            raise ValueError(f"index must be 0 or more, not {number}")
        return self._device._from_handle(value(nvml.nvmlDeviceGetMigDeviceHandleByIndex, self._handle, number))

    def get_all_devices(self) -> Iterator[Device]:
        """Yield the instances.

        Yields
        ------
        Device
            Each instance that there is.
        """
        for index in range(self.device_count):
            try:
                yield self.get_device_by_index(index)
            except NotFoundError:  # fewer than there could be
                continue
