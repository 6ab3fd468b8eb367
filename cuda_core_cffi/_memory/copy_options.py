# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""How a copy may be made: its source's order of access, hints of places, overlap with kernels."""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.host import Host
from cuda_core_cffi._core.options import check_options, member
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi._memory.location import encode

if TYPE_CHECKING:
    from cuda_core_cffi._device.device import Device


class MemcpySrcAccessOrder(enum.StrEnum):
    """When the source of a copy may be read. The destination is always written in stream order."""

    STREAM = "stream"
    """In stream order: after the work that is in the stream already."""

    DURING_API_CALL = "during_api_call"
    """Before the call returns, and perhaps before earlier work in the stream: the source may change after the call."""

    ANY = "any"
    """At any time until the copy is done, and perhaps before earlier work in the stream."""


class MemcpyOverlapMode(enum.StrEnum):
    """Whether a copy should run beside kernels. A hint."""

    DEFAULT = "default"
    """As the driver finds best."""

    PREFER_OVERLAP_WITH_COMPUTE = "prefer_overlap_with_compute"
    """Rather beside kernels than as fast as possible."""


@dataclasses.dataclass(frozen=True)
class CopyOptions:
    """How a copy may be made. None of it changes what is copied.

    Drivers for CUDA 13.0 and newer heed it in :func:`copy_batch`, for 13.2 and newer in :meth:`Buffer.copy_to` and
    :meth:`Buffer.copy_from`. Where the driver is older the copy is made in stream order, which keeps every promise but
    that of ``"during_api_call"``: that raises.

    Attributes
    ----------
    src_access_order : MemcpySrcAccessOrder or str
        When the source may be read. Default ``"stream"``.
    src_location_hint : Device or Host, optional
        Where the source is, for memory that has no fixed place: managed memory, and ordinary host memory on systems
        whose devices can use it. Ignored for all other memory.
    dst_location_hint : Device or Host, optional
        Where the destination is, likewise.
    overlap_mode : MemcpyOverlapMode or str
        Whether the copy should run beside kernels. Default ``"default"``.

    Raises
    ------
    ValueError
        If an order or a mode does not exist.
    TypeError
        If a hint is something else.
    """

    src_access_order: MemcpySrcAccessOrder | str = MemcpySrcAccessOrder.STREAM
    src_location_hint: Device | Host | None = None
    dst_location_hint: Device | Host | None = None
    overlap_mode: MemcpyOverlapMode | str = MemcpyOverlapMode.DEFAULT

    def __post_init__(self) -> None:
        """Turn strings into members, and check the hints."""
        for name, kind in (("src_access_order", MemcpySrcAccessOrder), ("overlap_mode", MemcpyOverlapMode)):
            object.__setattr__(self, name, member(kind, getattr(self, name), name))
        for name in ("src_location_hint", "dst_location_hint"):
            hint = getattr(self, name)
            if hint is not None and not isinstance(hint, Host | registry.device):
                raise TypeError(f"{name} must be a Device, a Host or None, not {type(hint).__name__}: {hint!r}")


ORDERS = {
    MemcpySrcAccessOrder.STREAM: lib.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
    MemcpySrcAccessOrder.DURING_API_CALL: lib.CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL,
    MemcpySrcAccessOrder.ANY: lib.CU_MEMCPY_SRC_ACCESS_ORDER_ANY,
}
FLAGS = {
    MemcpyOverlapMode.DEFAULT: lib.CU_MEMCPY_FLAG_DEFAULT,
    MemcpyOverlapMode.PREFER_OVERLAP_WITH_COMPUTE: lib.CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE,
}


def copy_attributes(options: CopyOptions | Mapping[str, Any] | None, what: str) -> Any:
    """Return the driver's attributes for options; ``what`` is the operation. Equal options have the same ones."""
    return native(check_options(CopyOptions, options, what))


@functools.lru_cache
def native(options: CopyOptions) -> Any:
    """Return the driver's attributes for checked options."""
    attributes = ffi.new("CUmemcpyAttributes *")
    attributes.srcAccessOrder = ORDERS[MemcpySrcAccessOrder(options.src_access_order)]
    attributes.flags = FLAGS[MemcpyOverlapMode(options.overlap_mode)]
    for location, hint in (
        (attributes.srcLocHint, options.src_location_hint),
        (attributes.dstLocHint, options.dst_location_hint),
    ):
        if hint is not None:
            location.type, location.id = encode(hint)
    return attributes
