# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Processes that use a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_core_cffi._core.answers import Answer
from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi.system._library import counted, field, nvml, status_of
from cuda_core_cffi.system._snapshot import OfDevice

if TYPE_CHECKING:
    from cuda_core_cffi.system._device import Device

FIRST_ROOM = 32


class ProcessInfo(Uncopyable):
    """A process that has a compute context on a device.

    Parameters
    ----------
    device : Device
        The device.
    process_info : nvmlProcessInfo_t
        What NVML told.
    """

    __slots__ = ("__weakref__", "_device", "_record")

    _NOT_COPIED_BECAUSE = OfDevice._NOT_COPIED_BECAUSE

    def __init__(self, device: Device, process_info: nvml.nvmlProcessInfo_v2_t) -> None:
        self._device = device
        self._record = process_info

    def __repr__(self) -> str:
        """Return the process and the memory."""
        return f"<ProcessInfo pid={self.pid} used_gpu_memory={self.used_gpu_memory}>"

    pid = Answer(field("pid"), doc="The process. In a container it is its number outside.")
    used_gpu_memory = Answer(
        field("usedGpuMemory"),
        doc="Memory of the device that the process uses, in bytes; 2**64 - 1 where NVML does not know.",
    )
    gpu_instance_id = Answer(
        field("gpuInstanceId"), doc="The GPU instance that the process runs in; 0xffffffff without MIG."
    )
    compute_instance_id = Answer(
        field("computeInstanceId"), doc="The compute instance that the process runs in; 0xffffffff without MIG."
    )


def running_processes(device: Device) -> list[ProcessInfo]:
    """Return the processes that have a compute context on a device."""
    handle = device._handle
    function = nvml.nvmlDeviceGetComputeRunningProcesses_v3
    found = counted(lambda room: status_of(function, handle, room), function.__name__, FIRST_ROOM)
    return [ProcessInfo(device, process) for process in found]
