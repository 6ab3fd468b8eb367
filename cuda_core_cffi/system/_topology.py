# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What devices are near to: each other, processors and memory of the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from cuda_core_cffi._core.integers import integer
from cuda_core_cffi.system._enumerators import AFFINITY_SCOPES, P2P_CAPABILITIES, P2P_STATUSES, TOPOLOGY_LEVELS
from cuda_core_cffi.system._header import nvml
from cuda_core_cffi.system._library import status_of, value
from cuda_core_cffi.system._processes import counted
from cuda_core_cffi.system.exceptions import failure
from cuda_core_cffi.system.typing import AffinityScope, GpuP2PCapsIndex, GpuP2PStatus, GpuTopologyLevel

if TYPE_CHECKING:
    from cuda_core_cffi.system._device import Device

WORD_BITS = 64  # of an unsigned long, on the platforms that there is CUDA for
FIRST_WORDS, MOST_WORDS = 16, 1024


def cpu_affinity(handle: nvml.nvmlDevice_t, scope: AffinityScope | str) -> list[int]:
    """Return the processors that are near to a device."""
    function = nvml.nvmlDeviceGetCpuAffinityWithinScope
    number = AFFINITY_SCOPES.number(scope)
    return bits_of(lambda words: status_of(function, handle, words, number), function.__name__)


def memory_affinity(handle: nvml.nvmlDevice_t, scope: AffinityScope | str) -> list[int]:
    """Return the NUMA nodes that are near to a device."""
    function = nvml.nvmlDeviceGetMemoryAffinity
    number = AFFINITY_SCOPES.number(scope)
    return bits_of(lambda words: status_of(function, handle, words, number), function.__name__)


def bits_of(function: Callable[[int], tuple[int, list[int]]], name: str) -> list[int]:
    """Return the numbers of the bits that a function of NVML sets, however many words there are."""
    words = FIRST_WORDS
    status, found = function(words)
    while status == nvml.nvmlReturn_t.NVML_ERROR_INSUFFICIENT_SIZE and words < MOST_WORDS:
        words *= 2
        status, found = function(words)
    if status:
        raise failure(status, name)
    return [index * WORD_BITS + bit for index, word in enumerate(found) for bit in range(WORD_BITS) if word >> bit & 1]


def near_cpu(cls: type[Device], cpu_index: int) -> Iterator[Device]:
    """Yield the devices that are near to a processor."""
    number = integer(cpu_index, "cpu_index")
    if number < 0:
        raise ValueError(f"cpu_index must be 0 or more, not {number}")
    function = nvml.nvmlSystemGetTopologyGpuSet
    for handle in counted(lambda room: status_of(function, number, room), function.__name__):
        yield cls._of(handle)


def nearest(device: Device, level: GpuTopologyLevel | str) -> Iterator[Device]:
    """Yield the devices that have so much in common with a device."""
    number = TOPOLOGY_LEVELS.number(level)
    function = nvml.nvmlDeviceGetTopologyNearestGpus
    for handle in counted(lambda room: status_of(function, device._handle, number, room), function.__name__):
        yield device._of(handle)


def topology_common_ancestor(device1: nvml.nvmlDevice_t, device2: nvml.nvmlDevice_t) -> GpuTopologyLevel:
    """Return what two devices have in common; a level that NVML added later counts as the next farther one."""
    found = int(value(nvml.nvmlDeviceGetTopologyCommonAncestor, device1, device2))
    farther = [level for number, level in sorted(TOPOLOGY_LEVELS.members.items()) if number >= found]
    return farther[0] if farther else GpuTopologyLevel.SYSTEM


def p2p_status(device1: nvml.nvmlDevice_t, device2: nvml.nvmlDevice_t, index: GpuP2PCapsIndex | str) -> GpuP2PStatus:
    """Return whether a device may do something with another."""
    found = value(nvml.nvmlDeviceGetP2PStatus, device1, device2, P2P_CAPABILITIES.number(index))
    return P2P_STATUSES.members.get(int(found), GpuP2PStatus.UNKNOWN)
