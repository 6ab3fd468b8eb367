# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Processes that use a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi.system._header import nvml
from cuda_core_cffi.system._library import status_of
from cuda_core_cffi.system.exceptions import failure

if TYPE_CHECKING:
    from cuda_core_cffi.system._device import Device

T = TypeVar("T")

FIRST_ROOM = 32
MARGIN = 8  # more of them may come between two calls
ATTEMPTS = 16


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

    _NOT_COPIED_BECAUSE = "it refers to a device of this process"

    def __init__(self, device: Device, process_info: nvml.nvmlProcessInfo_v2_t) -> None:
        self._device = device
        self._record = process_info

    def __repr__(self) -> str:
        """Return the process and the memory."""
        return f"<ProcessInfo pid={self.pid} used_gpu_memory={self.used_gpu_memory}>"

    @property
    def pid(self) -> int:
        """The process. In a container it is its number outside."""
        return self._record.pid

    @property
    def used_gpu_memory(self) -> int:
        """Memory of the device that the process uses, in bytes; 2**64 - 1 where NVML does not know."""
        return self._record.usedGpuMemory

    @property
    def gpu_instance_id(self) -> int:
        """The GPU instance that the process runs in; 0xffffffff without MIG."""
        return self._record.gpuInstanceId

    @property
    def compute_instance_id(self) -> int:
        """The compute instance that the process runs in; 0xffffffff without MIG."""
        return self._record.computeInstanceId


def counted(function: Callable[[int], tuple[int, int, list[T]]], name: str, room: int = 0) -> list[T]:
    """Return what a function of NVML lists, however many there are.

    Parameters
    ----------
    function : callable
        Given a number, it returns the status, how many there are, and so many at most.
    name : str
        NVML's name of the function.
    room : int
        How many to ask for at first; 0 asks how many there are.

    Returns
    -------
    list
        All of them.

    Raises
    ------
    NvmlError
        If the call fails, or more come with each call.
    """
    for _ in range(ATTEMPTS):
        status, count, items = function(room)
        if not status and (room or not count):
            return items[:count]
        if status and status != nvml.nvmlReturn_t.NVML_ERROR_INSUFFICIENT_SIZE:
            break
        room = max(count, room) + (MARGIN if status else 0)
    raise failure(status, name)


def running_processes(device: Device) -> list[ProcessInfo]:
    """Return the processes that have a compute context on a device."""
    handle = device._handle
    function = nvml.nvmlDeviceGetComputeRunningProcesses_v3
    found = counted(lambda room: status_of(function, handle, room), function.__name__, FIRST_ROOM)
    return [ProcessInfo(device, process) for process in found]
