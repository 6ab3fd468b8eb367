# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""How busy a device is, and its performance states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.integers import integer
from cuda_core_cffi.system._header import nvml
from cuda_core_cffi.system._snapshot import Snapshot, sequence_index

if TYPE_CHECKING:
    from cuda_core_cffi._raw.nvml_generated import _nvmlGpuDynamicPstatesInfo_t_utilization

LOWER = 2**32 - 1
LAST_PSTATE = int(nvml.nvmlPstates_t.NVML_PSTATE_15)


def pstate_number(pstate: int) -> int:
    """Return a performance state that a caller gave.

    Raises
    ------
    TypeError
        If it is no int.
    ValueError
        If it is not 0 to 15.
    """
    number = integer(pstate, "pstate")
    if not 0 <= number <= LAST_PSTATE:
        raise ValueError(f"pstate must be 0 to {LAST_PSTATE}, not {number}")
    return number


class Utilization(Snapshot["nvml.nvmlUtilization_t"]):
    """How busy a device was in the last sample period, of between a sixth of a second and a second.

    Parameters
    ----------
    utilization : nvmlUtilization_t
        What NVML told.
    """

    __slots__ = ("_packed",)

    _STRUCTURE = "nvmlUtilization_t"
    _packed: int  # gpu in the lower 32 bits, memory in the upper ones

    def __init__(self, utilization: nvml.nvmlUtilization_t) -> None:
        self._record = utilization

    @property
    def _record(self) -> nvml.nvmlUtilization_t:  # for pickles
        record = nvml.nvmlUtilization_t()
        record.gpu, record.memory = self.gpu, self.memory
        return record

    @_record.setter
    def _record(self, record: nvml.nvmlUtilization_t) -> None:
        self._packed = record.gpu | record.memory << 32

    @property
    def gpu(self) -> int:
        """Share of the time in which a kernel ran, in percent."""
        return self._packed & LOWER

    @property
    def memory(self) -> int:
        """Share of the time in which memory of the device was read or written, in percent."""
        return self._packed >> 32


class GpuDynamicPstatesUtilization(Uncopyable):
    """How busy one part of a device is.

    Parameters
    ----------
    ptr : structure
        What NVML told of the part.
    owner : object
        What the structure is in; it is kept alive.
    """

    __slots__ = ("_owner", "_record")

    _NOT_COPIED_BECAUSE = "it is a part of what NVML told: copy the whole"

    def __init__(self, ptr: _nvmlGpuDynamicPstatesInfo_t_utilization, owner: object) -> None:
        self._record = ptr
        self._owner = owner

    def __repr__(self) -> str:
        """Return the values."""
        return (
            f"<GpuDynamicPstatesUtilization is_present={self.is_present} percentage={self.percentage} "
            f"inc_threshold={self.inc_threshold} dec_threshold={self.dec_threshold}>"
        )

    @property
    def is_present(self) -> bool:
        """Whether the device has the part."""
        return bool(self._record.bIsPresent)

    @property
    def percentage(self) -> int:
        """Share of the last second in which the part was busy, in percent."""
        return self._record.percentage

    @property
    def inc_threshold(self) -> int:
        """The share, in percent, above which the driver may go to a faster performance state."""
        return self._record.incThreshold

    @property
    def dec_threshold(self) -> int:
        """The share, in percent, below which the driver may go to a slower performance state."""
        return self._record.decThreshold


class GpuDynamicPstatesInfo(Snapshot["nvml.nvmlGpuDynamicPstatesInfo_t"]):
    """How busy the parts of a device are: graphics, frame buffer, video, bus, and others that may be added.

    Parameters
    ----------
    gpu_dynamic_pstates_info : nvmlGpuDynamicPstatesInfo_t
        What NVML told.
    """

    __slots__ = ()

    _STRUCTURE = "nvmlGpuDynamicPstatesInfo_t"

    def __init__(self, gpu_dynamic_pstates_info: nvml.nvmlGpuDynamicPstatesInfo_t) -> None:
        self._record = gpu_dynamic_pstates_info

    @property
    def _parts(self) -> list[GpuDynamicPstatesUtilization]:
        return [GpuDynamicPstatesUtilization(part, self) for part in self._record.utilization]

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, idx: int) -> GpuDynamicPstatesUtilization:
        parts = self._parts
        return parts[sequence_index(idx, len(parts), "part")]

    def __iter__(self) -> Iterator[GpuDynamicPstatesUtilization]:
        return iter(self._parts)

    def __repr__(self) -> str:
        """Return the parts that the device has."""
        return f"<GpuDynamicPstatesInfo {[part for part in self._parts if part.is_present]}>"
