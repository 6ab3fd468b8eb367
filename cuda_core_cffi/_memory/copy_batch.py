# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Many copies at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._memory.access import NATIVE_BATCH, copy_failure
from cuda_core_cffi._memory.buffer import Buffer
from cuda_core_cffi._memory.copy_options import CopyOptions, copy_attributes
from cuda_core_cffi._streams.stream import accept_stream
from cuda_core_cffi.typing import IsStreamType


def copy_batch(
    stream: IsStreamType,
    srcs: Sequence[Buffer],
    dsts: Sequence[Buffer],
    *,
    options: CopyOptions | Mapping[str, Any] | Sequence[CopyOptions | Mapping[str, Any]] | None = None,
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
