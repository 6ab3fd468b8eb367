# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""NVLink: links between devices."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING

from cuda_core_cffi._core import typed_handles
from cuda_core_cffi.system._enumerators import ENUMERATORS
from cuda_core_cffi.system._fields import field_values
from cuda_core_cffi.system._library import nvml, reads_number
from cuda_core_cffi.system._snapshot import Aspect
from cuda_core_cffi.system.exceptions import NotSupportedError

if TYPE_CHECKING:
    from cuda_core_cffi.system._device import Device

VERSION_NAME = re.compile(r"NVML_NVLINK_VERSION_(\d+)_(\d+)")
UNKNOWN_VERSION = (0, 0)
CUDA_CORE_MAX_LINKS = 18  # which programs written for it take for the number of links of every device that has any
VERSIONS = {
    int(member): (int(found[1]), int(found[2]))
    for name, member in ENUMERATORS.items()
    if (found := VERSION_NAME.fullmatch(name))
}

read_nvlink_version = reads_number("nvmlDeviceGetNvLinkVersion", int, arguments=1)
read_nvlink_state = reads_number("nvmlDeviceGetNvLinkState", bool, arguments=1)


class NvlinkInfoType(type):
    """The type of :class:`NvlinkInfo`, for what is asked of the class itself."""

    @property
    def max_links(cls) -> int:
        """The most links that a device can have by NVML's header; 18 where this package stands for ``cuda.core``.

        Deprecated: ask a device, with :meth:`Device.get_nvlink_count`.
        """
        warnings.warn(
            "NvlinkInfo.max_links is deprecated: use Device.get_nvlink_count()", DeprecationWarning, stacklevel=2
        )
        return CUDA_CORE_MAX_LINKS if typed_handles.is_used else int(nvml.NVML_NVLINK_MAX_LINKS)


class _NvlinkInfo(Aspect):
    """A link of a device.

    Parameters
    ----------
    device : Device
        The device.
    link : int
        The number of the link, from 0.
    """

    __slots__ = ("__weakref__", "_link")

    def __init__(self, device: Device, link: int) -> None:
        super().__init__(device)
        self._link = link

    def __repr__(self) -> str:
        """Return the number of the link."""
        return f"<{type(self).__name__} {self._link}>"

    @property
    def version(self) -> tuple[int, int]:
        """The version of NVLink, as major and minor; (0, 0) if the link has none, or one that is not known here."""
        return VERSIONS.get(read_nvlink_version(self, self._link), UNKNOWN_VERSION)

    @property
    def state(self) -> bool:
        """Whether the link is active."""
        return read_nvlink_state(self, self._link)


class NvlinkInfo(_NvlinkInfo, metaclass=NvlinkInfoType):
    """A link of a device; made by :meth:`Device.get_nvlink`.

    Parameters
    ----------
    device : Device
        The device.
    link : int
        The number of the link, from 0.
    """

    __slots__ = ()


def link_count(device: Device) -> int:
    """Return how many links a device has; a device without NVLink has none."""
    (count,) = field_values(device._handle, [nvml.NVML_FI_DEV_NVLINK_LINK_COUNT])
    try:
        return int(count.value)
    except NotSupportedError:
        return 0
