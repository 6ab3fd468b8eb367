# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What lower layers need of higher ones, registered by those when they are imported.

A stream names its device, yet a device makes streams: the class below reaches the one above through here.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuda_core_cffi._device.device import Device
    from cuda_core_cffi._launching.config import LaunchConfig
    from cuda_core_cffi._streams.stream import StreamProxy
    from cuda_core_cffi.graph.builder import GraphBuilder
    from cuda_core_cffi.system import Device as SystemDevice

# What most programs do without, and where it is.
LATE = {
    "graph_builder": "cuda_core_cffi.graph:GraphBuilder",
    "launch_config": "cuda_core_cffi._launching.config:LaunchConfig",
    "system_device": "cuda_core_cffi.system:Device",
    "texture": "cuda_core_cffi.texture",
}


class Registry:
    """Classes and functions by role; those of `LATE` are imported when they are first asked for, and found once.

    Attributes
    ----------
    device : type
        :class:`Device`, which makes one of an ordinal.
    call_in_stream : callable
        What has a stream call a function.
    stream_proxy : type
        :class:`StreamProxy`, for C.
    graph_builder : type
        :class:`GraphBuilder`, which stands for a stream.
    launch_config : type
        :class:`LaunchConfig`, which a kernel's occupancy takes.
    system_device : type
        :class:`system.Device`, which a device is for NVML.
    texture : module
        :mod:`cuda_core_cffi.texture`, whose objects a device makes.
    """

    device: type[Device]
    call_in_stream: Callable[[Any, Any, Any], None]
    stream_proxy: type[StreamProxy]
    graph_builder: type[GraphBuilder]
    launch_config: type[LaunchConfig]
    system_device: type[SystemDevice]
    texture: ModuleType

    def __getattr__(self, name: str) -> Any:
        import pkgutil

        if name not in LATE:
            raise AttributeError(f"nothing is registered as {name!r}")
        found = pkgutil.resolve_name(LATE[name])
        setattr(self, name, found)
        return found


registry = Registry()
