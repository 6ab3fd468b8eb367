# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Contexts, streams, events and the functions that streams call on the host.

It imports ``_core`` and ``_lifetime``. Memory and all that is above it may import it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cuda_core_cffi._core.lazy_imports import add_lazy_names

if TYPE_CHECKING:  # at run time these are imported when they are first asked for
    from cuda_core_cffi._streams.options import ContextOptions, EventOptions, StreamOptions
    from cuda_core_cffi._streams.resources import DeviceResources, SMResource, WorkqueueResource

__all__ = [
    "ContextOptions",
    "DeviceResources",
    "EventOptions",
    "SMResource",
    "StreamOptions",
    "WorkqueueResource",
]

# Most programs have the usual streams and do not split devices. The standard library's dataclasses, which options are,
# take as long to import as this package.
add_lazy_names(
    globals(),
    {
        "options": ("ContextOptions", "EventOptions", "StreamOptions"),
        "resources": ("DeviceResources", "SMResource", "WorkqueueResource"),
    },
)
