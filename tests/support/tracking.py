# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Tracking resources for tests, over resources of every kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from buffers import HostResource

from cuda_core_cffi import (
    Device,
    DeviceMemoryResource,
    LegacyPinnedMemoryResource,
    MemoryResource,
    PinnedMemoryResource,
    VirtualMemoryResource,
)
from cuda_core_cffi._memory import SynchronousMemoryResource
from cuda_core_cffi.utils import TrackingMemoryResource

THREADS = 8
ROUNDS = 200

UPSTREAMS: dict[str, Callable[[Device], MemoryResource]] = {
    "pool": DeviceMemoryResource,
    "synchronous": SynchronousMemoryResource,
    "pinned": lambda device: LegacyPinnedMemoryResource(),
    "pinned pool": lambda device: PinnedMemoryResource({}),
    "virtual": VirtualMemoryResource,
    "Python": lambda device: HostResource(),
    "tracking": lambda device: TrackingMemoryResource(DeviceMemoryResource(device)),
}


def make_upstream(request: pytest.FixtureRequest, device: Device) -> Iterator[MemoryResource]:
    """Return a resource of each kind: a fixture with :data:`UPSTREAMS` for its parameters."""
    made = UPSTREAMS[request.param](device)
    yield made
    if isinstance(made, PinnedMemoryResource):
        made.close()


def host_tracked() -> TrackingMemoryResource:
    """Return a tracking resource over one that is written in Python: a fixture."""
    return TrackingMemoryResource(HostResource())


class RecordingResource(HostResource):
    """Remembers what it was asked for and what came back."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, ...]] = []

    def allocate(self, size, stream=None):
        self.calls.append(("allocate", size, stream))
        return super().allocate(size, stream)

    def deallocate(self, ptr, size, stream=None):
        self.calls.append(("deallocate", size, stream))
        super().deallocate(ptr, size, stream)


def used(mr: TrackingMemoryResource) -> tuple[int, int]:
    """Return how many bytes are in use, and in how many allocations."""
    return (mr.statistics.current_bytes, mr.statistics.current_count)
