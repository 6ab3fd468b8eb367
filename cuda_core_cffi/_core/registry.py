# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What lower layers need of higher ones, registered by those when they are imported.

A stream names its device, yet a device makes streams: the class below reaches the one above through here.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuda_core_cffi._device.device import Device
    from cuda_core_cffi._launching.config import LaunchConfig
    from cuda_core_cffi.graph.builder import GraphBuilder
    from cuda_core_cffi.system import Device as SystemDevice
    from cuda_core_cffi.texture import OpaqueArray, TextureObject


class Registry:
    """Classes and functions by role.

    Attributes
    ----------
    device : type
        :class:`Device`, which makes one of an ordinal.
    call_in_stream : callable
        What has a stream call a function.
    """

    device: type[Device]
    call_in_stream: Callable[[Any, Any, Any], None]

    @property
    def graph_builder(self) -> type[GraphBuilder]:
        """:class:`GraphBuilder`. Most programs have no graphs: their modules are imported when this is asked for."""
        found: type[GraphBuilder] = importlib.import_module("cuda_core_cffi.graph").GraphBuilder
        return found

    @property
    def launch_config(self) -> type[LaunchConfig]:
        """:class:`LaunchConfig`, which a kernel's occupancy takes; imported when this is asked for."""
        found: type[LaunchConfig] = importlib.import_module("cuda_core_cffi._launching.config").LaunchConfig
        return found

    @property
    def system_device(self) -> type[SystemDevice]:
        """:class:`system.Device`, which a device is for NVML; imported when this is asked for."""
        found: type[SystemDevice] = importlib.import_module("cuda_core_cffi.system").Device
        return found

    @functools.cached_property
    def texture(self) -> ModuleType:
        """:mod:`cuda_core_cffi.texture`, whose objects a device makes; imported when this is asked for."""
        return importlib.import_module("cuda_core_cffi.texture")

    @functools.cached_property
    def create_opaque_array(self) -> Callable[[int, Any], OpaqueArray]:
        """What makes an array of options on a device: found once, because programs make many."""
        found: Callable[[int, Any], OpaqueArray] = self.texture.OpaqueArray._create
        return found

    @functools.cached_property
    def create_texture_object(self) -> Callable[[int, Any, Any], TextureObject]:
        """What makes a texture of a resource and options on a device: likewise."""
        found: Callable[[int, Any, Any], TextureObject] = self.texture.TextureObject._create
        return found


registry = Registry()
