# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Moving managed memory to where it is going to be used, and discarding what is in it, many buffers at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._memory.buffer import Buffer
from cuda_core_cffi._memory.location import to_driver
from cuda_core_cffi._streams.stream import accept_stream
from cuda_core_cffi.typing import IsStreamType


def prefetch_batch(stream: IsStreamType, buffers: Sequence[Buffer], locations: Any) -> None:
    """Move managed buffers to where they are going to be used.

    Parameters
    ----------
    stream : Stream
        The moves are made in the order of this stream, in any order among themselves; they may not be done when this
        returns.
    buffers : sequence of Buffer
        The buffers.
    locations : Device or Host, or a sequence of them
        Where to: one place for all, or one for each.

    Raises
    ------
    TypeError
        If ``buffers`` is no sequence of buffers, or a location is neither a Device nor a Host.
    ValueError
        If there are no buffers, one is not managed memory, or there are not as many locations.

    Notes
    -----
    One call of the driver. Drivers for CUDA 12, and the legacy default stream, take one call for each buffer; if one of
    those fails, the buffers before it are moved nevertheless.
    """
    what = "prefetch_batch"
    targets = check_buffers(buffers, what)
    migrate(lib.CCC_PREFETCH, stream, targets, encode_locations(locations, len(targets), what), what)


def discard_batch(stream: IsStreamType, buffers: Sequence[Buffer]) -> None:
    """Tell that the content of managed buffers is not needed any more; it is undefined from then on.

    Parameters
    ----------
    stream : Stream
        The content goes in the order of this stream, which must not be the legacy default stream.
    buffers : sequence of Buffer
        The buffers.

    Raises
    ------
    TypeError
        If ``buffers`` is no sequence of buffers.
    ValueError
        If there are no buffers, one is not managed memory, or the stream is the legacy default stream.
    UnavailableError
        If the driver is older than CUDA 13.0.
    """
    what = "discard_batch"
    migrate(lib.CCC_DISCARD, stream, check_buffers(buffers, what), ffi.NULL, what)


def discard_prefetch_batch(stream: IsStreamType, buffers: Sequence[Buffer], locations: Any) -> None:
    """Discard the content of managed buffers, and move them to where they are going to be used.

    Parameters
    ----------
    stream : Stream
        This is done in the order of this stream, which must not be the legacy default stream.
    buffers : sequence of Buffer
        The buffers.
    locations : Device or Host, or a sequence of them
        Where to: one place for all, or one for each.

    Raises
    ------
    TypeError
        If ``buffers`` is no sequence of buffers, or a location is neither a Device nor a Host.
    ValueError
        If there are no buffers, one is not managed memory, there are not as many locations, or the stream is the legacy
        default stream.
    UnavailableError
        If the driver is older than CUDA 13.0.
    """
    what = "discard_prefetch_batch"
    targets = check_buffers(buffers, what)
    migrate(lib.CCC_DISCARD_PREFETCH, stream, targets, encode_locations(locations, len(targets), what), what)


def migrate(how: int, stream: Any, buffers: Sequence[Buffer], places: Any, what: str) -> None:
    """Prefetch or discard managed buffers to places that :func:`encode_locations` made."""
    queue = accept_stream(stream, what)
    if how != lib.CCC_PREFETCH and lib.ccc_stream_is_legacy(queue._c_handle):
        raise ValueError(f"{what}: the driver discards nothing in the legacy default stream; give another stream")
    c_handles = ffi.new("ccc_handle *[]", [buffer._c_handle for buffer in buffers])
    status = lib.ccc_managed_migrate(how, c_handles, places, len(buffers), queue._c_handle)
    if status:
        raise buffers[0]._failure(status, *buffers, queue)


def check_buffers(buffers: Any, what: str) -> Sequence[Buffer]:
    """Return the buffers of a batch, or raise."""
    if isinstance(buffers, Buffer):
        raise TypeError(f"{what} needs a sequence of buffers; for one buffer, ManagedBuffer has a method")
    if not isinstance(buffers, Sequence):
        raise TypeError(f"{what} needs a sequence of buffers, not {type(buffers).__name__}")
    if not buffers:
        raise ValueError(f"{what} needs at least one buffer")
    for buffer in buffers:
        require_managed(buffer, what)
    return buffers


def require_managed(buffer: Any, what: str) -> None:
    """Raise unless ``buffer`` is managed memory; the driver knows, where its resource does not say so."""
    if not isinstance(buffer, Buffer):
        raise TypeError(f"{what} needs a Buffer, not {type(buffer).__name__}")
    if not (buffer.is_managed or buffer._query()[3]):
        raise ValueError(f"{what} needs managed memory, which {buffer!r} is not")


def encode_locations(locations: Any, count: int, what: str) -> Any:
    """Return places for a number of buffers as an array for the driver; one place is for all."""
    if isinstance(locations, Sequence) and not isinstance(locations, (str, bytes)):
        if len(locations) != count:
            raise ValueError(f"{what}: {len(locations)} locations do not go with {count} buffers")
        encoded = [to_driver(location, what) for location in locations]
    else:
        encoded = [to_driver(locations, what)] * count
    places = ffi.new("CUmemLocation[]", count)
    for place, (kind, number) in zip(places, encoded, strict=True):
        place.type = kind
        place.id = number
    return places
