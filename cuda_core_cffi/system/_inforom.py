# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The InfoROM: memory of a board that keeps its data without power."""

from __future__ import annotations

from cuda_core_cffi._core.answers import Answer
from cuda_core_cffi.system._enumerators import INFOROM_OBJECTS
from cuda_core_cffi.system._library import call, nvml, reads_number, reads_text, text_of, value, values
from cuda_core_cffi.system._snapshot import Aspect
from cuda_core_cffi.system.typing import InforomObject

read_configuration_checksum = reads_number("nvmlDeviceGetInforomConfigurationChecksum", int)


class InforomInfo(Aspect):
    """The InfoROM of a device; made by :attr:`Device.inforom`.

    Parameters
    ----------
    device : Device
        The device.
    """

    __slots__ = ()

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
        return text_of(value(nvml.nvmlDeviceGetInforomVersion, self._handle, part, size))

    image_version = Answer(
        reads_text("nvmlDeviceGetInforomImageVersion", "NVML_DEVICE_INFOROM_VERSION_BUFFER_SIZE"),
        doc="The version of the whole InfoROM, which says exactly what is on the board.",
    )

    @property
    def configuration_checksum(self) -> int:
        """The checksum of power and ECC settings: two devices that are set up the same have the same.

        It can change with the driver.
        """
        return read_configuration_checksum(self)

    def validate(self) -> None:
        """Read the InfoROM and check its checksums.

        Raises
        ------
        CorruptedInforomError
            If it is corrupted.
        NotSupportedError
            If the device has none.
        """
        call(nvml.nvmlDeviceValidateInforom, self._handle)

    @property
    def bbx_flush_time(self) -> tuple[int, int]:
        """When the black box was last written since the driver was loaded, and how long that took, in microseconds."""
        return values(nvml.nvmlDeviceGetLastBBXFlushTime, self._handle)

    board_part_number = Answer(
        reads_text("nvmlDeviceGetBoardPartNumber", "NVML_DEVICE_PART_NUMBER_BUFFER_SIZE"),
        doc="The part number of the board.",
    )
