# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""How copies may be made: order of access, hints of places, overlap with kernels; and several copies in one call."""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.host import Host
from cuda_core_cffi._core.options import check_options, member
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi._memory.access import NATIVE_BATCH, copy_failure
from cuda_core_cffi._memory.buffer import Buffer
from cuda_core_cffi._memory.location import encode
from cuda_core_cffi._streams.stream import accept_stream
from cuda_core_cffi.typing import IsStreamType

if TYPE_CHECKING:
    from cuda_core_cffi._device.device import Device
    from cuda_core_cffi.typing._option_dicts import CopyOptionsDict


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


def copy_attributes(options: CopyOptions | CopyOptionsDict | None, what: str) -> Any:
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


def copy_batch(
    stream: IsStreamType,
    srcs: Sequence[Buffer],
    dsts: Sequence[Buffer],
    *,
    options: CopyOptions | CopyOptionsDict | Sequence[CopyOptions | CopyOptionsDict] | None = None,
) -> None:
    r"""Copy each source into the destination at the same place, in one call to the driver.

    The batch runs in stream order; its copies run in any order, or at once. Drivers before CUDA 13.0 get one copy after
    the other: should one of those be refused, those before it are made.

    Parameters
    ----------
    stream : Stream
        A stream that is not being captured, other than the legacy default stream.
    srcs, dsts : sequence of Buffer
        Sources and destinations, as many of each, pair by pair of the same size. Memory may be read more than once, but
        what is written is neither read nor written by another copy.
    options : CopyOptions, or a sequence of them, optional
        How the copies may be made: the same for all, or one for each.

    Raises
    ------
    TypeError
        If the stream or an operand is of the wrong kind.
    ValueError
        If the numbers or sizes differ, or a copy is in another's way.
    UnavailableError
        If the driver is too old for ``src_access_order="during_api_call"``.
    RuntimeError
        If the stream or a buffer is closed.

    Examples
    --------
    >>> one, other = device.allocate(8, stream), device.allocate(8, stream)
    >>> one.fill(b"\x05", stream=stream)
    >>> copy_batch(stream, [one[:4], one[4:]], [other[4:], other[:4]])
    >>> stream.sync()
    >>> one.close()
    >>> other.close()
    """
    queue = accept_stream(stream, "copy_batch")
    for name, buffers in (("srcs", srcs), ("dsts", dsts)):
        if isinstance(buffers, str) or not isinstance(buffers, Sequence):
            raise TypeError(f"copy_batch: {name} must be a sequence of buffers, not {type(buffers).__name__}")
    if len(srcs) != len(dsts):
        raise ValueError(f"copy_batch: {len(srcs)} sources do not pair with {len(dsts)} destinations")
    for index, (src, dst) in enumerate(zip(srcs, dsts, strict=True)):
        if not (isinstance(src, Buffer) and isinstance(dst, Buffer)):
            name, wrong = ("dsts", dst) if isinstance(src, Buffer) else ("srcs", src)
            raise TypeError(f"copy_batch: {name}[{index}] must be a Buffer, not {type(wrong).__name__}")
        if src._size != dst._size:
            raise ValueError(f"copy_batch: the sizes differ: {src._size} bytes of srcs[{index}] do not fit {dst._size}")
    if options is None or isinstance(options, CopyOptions | Mapping):
        attributes = [copy_attributes(options, "copy_batch")]
    elif isinstance(options, str) or not isinstance(options, Sequence):
        raise TypeError(f"copy_batch: options must be CopyOptions or a sequence of them, not {type(options).__name__}")
    elif len(options) != len(srcs):
        raise ValueError(f"copy_batch: {len(options)} options do not pair with {len(srcs)} copies")
    else:
        attributes = [copy_attributes(item, "copy_batch") for item in options]
    bad = ffi.new("size_t[2]")
    status = lib.ccc_copy_batch(
        [dst._c_handle for dst in dsts],
        [src._c_handle for src in srcs],
        len(srcs),
        queue._c_handle,
        attributes,
        len(attributes),
        bad,
    )
    if status == lib.CCC_OVERLAP:
        one, other = bad
        where = f"dsts[{one}] and srcs[{one}]" if one == other else f"copies {one} and {other}"
        raise ValueError(f"copy_batch: {where} have bytes in common, of which at least one is written to")
    if status:
        raise copy_failure(status, "copy_batch", queue, *srcs, *dsts, needed=NATIVE_BATCH)
