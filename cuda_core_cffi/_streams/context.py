# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Contexts."""

from __future__ import annotations

from cuda_core_cffi._core.ffi import lib
from cuda_core_cffi._core.handle import Handle

__all__ = ["Context"]


class Context(Handle):
    """A CUDA context: what streams, events and allocations live in.

    Contexts are reached through :attr:`Device.context`, :attr:`Stream.context` and :attr:`Event.context`. The primary
    context of a device lives as long as the process; closing an object that shows it only gives up that object.
    """

    __slots__ = ()

    _CTYPE = "CUcontext"
    _MADE_BY = "Device.context or Stream.context"

    def __repr__(self) -> str:
        return f"<Context handle={self._value:#x} device={self._device_id}>"

    @property
    def _device_id(self) -> int:
        return int(lib.ccc_handle_device(self._c_handle))
