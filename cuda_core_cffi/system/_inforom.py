# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The InfoROM: memory of a board that keeps its data without power."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi.system._enumerators import INFOROM_OBJECTS
from cuda_core_cffi.system._header import nvml
from cuda_core_cffi.system._library import call, reads_number, reads_text, value, values
from cuda_core_cffi.system.typing import InforomObject

if TYPE_CHECKING:
    from cuda_core_cffi.system._device import Device

read_inforom_image_version = reads_text("nvmlDeviceGetInforomImageVersion", "NVML_DEVICE_INFOROM_VERSION_BUFFER_SIZE")
read_board_part_number = reads_text("nvmlDeviceGetBoardPartNumber", "NVML_DEVICE_PART_NUMBER_BUFFER_SIZE")
read_inforom_configuration_checksum = reads_number("nvmlDeviceGetInforomConfigurationChecksum")


class InforomInfo(Uncopyable):
    """The InfoROM of a device; made by :attr:`Device.inforom`.

    Parameters
    ----------
    device : Device
        The device.
    """

    __slots__ = ("_device",)

    _NOT_COPIED_BECAUSE = "it refers to a device of this process"

    def __init__(self, device: Device) -> None:
        self._device = device

    def __repr__(self) -> str:
        """Return the device."""
        return f"<InforomInfo of {self._device!r}>"

    def get_version(self, inforom: InforomObject | str) -> str:
        """Return the version of a part.

        Parameters
        ----------
        inforom : InforomObject or str
            The part.

        Returns
        -------
        str
            Its version.

        Raises
        ------
        ValueError
            If there is no such part.
        NotSupportedError
            If the device does not have it.
        """
        part = INFOROM_OBJECTS.number(inforom)
        size = nvml.NVML_DEVICE_INFOROM_VERSION_BUFFER_SIZE
        return value(nvml.nvmlDeviceGetInforomVersion, self._device._handle, part, size).decode(errors="replace")

    @property
    def image_version(self) -> str:
        """The version of the whole InfoROM, which says exactly what is on the board."""
        return read_inforom_image_version(self._device._handle)

    @property
    def configuration_checksum(self) -> int:
        """The checksum of power and ECC settings: two devices that are set up the same have the same.

        It can change with the driver.
        """
        return read_inforom_configuration_checksum(self._device._handle)

    def validate(self) -> None:
        """Read the InfoROM and check its checksums.

        Raises
        ------
        CorruptedInforomError
            If it is corrupted.
        NotSupportedError
            If the device has none.
        """
        call(nvml.nvmlDeviceValidateInforom, self._device._handle)

    @property
    def bbx_flush_time(self) -> tuple[int, int]:
        """When the black box was last written since the driver was loaded, and how long that took, in microseconds."""
        return values(nvml.nvmlDeviceGetLastBBXFlushTime, self._device._handle)

    @property
    def board_part_number(self) -> str:
        """The part number of the board."""
        return read_board_part_number(self._device._handle)
