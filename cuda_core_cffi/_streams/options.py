# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Options of streams, events and contexts, which are imported when a program has any."""

from __future__ import annotations

import dataclasses

from cuda_core_cffi.typing import DeviceResourcesType


@dataclasses.dataclass
class ContextOptions:
    """What a context is made of.

    Attributes
    ----------
    resources : sequence of SMResource or WorkqueueResource
        The resources of the device that the context has.
    """

    resources: DeviceResourcesType


@dataclasses.dataclass
class EventOptions:
    """Options of an event.

    Attributes
    ----------
    timing_enabled : bool, optional
        Take the time when the event is reached, so that events can be subtracted. Default False.
    blocking_sync : bool, optional
        Let a waiting host thread sleep instead of spin. Default False.
    ipc_enabled : bool, optional
        Let other processes use the event, which then takes no times. Default False.
    """

    timing_enabled: bool | None = False
    blocking_sync: bool | None = False
    ipc_enabled: bool | None = False


@dataclasses.dataclass
class StreamOptions:
    """Options of a stream.

    Attributes
    ----------
    nonblocking : bool, optional
        Do not wait for, nor hold up, the legacy default stream. Default True.
    priority : int, optional
        Lower numbers run first; the device tells the range. Default is the lowest priority, 0.
    """

    nonblocking: bool | None = True
    priority: int | None = None
