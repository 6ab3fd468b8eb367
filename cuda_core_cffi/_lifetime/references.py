# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What graphs, and functions that streams call, keep: driver objects and Python objects, until nothing needs them.

The C side (``include/streams/ccc_refs.h``) counts and queues; it holds Python objects by a token. Queued objects are
released when the package creates, changes or closes graphs, or has a stream call a function, when a program
synchronises, and otherwise by the release thread.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any, NamedTuple

from cuda_core_cffi._core.errors import check_cleanup, last_failure
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import Handle
from cuda_core_cffi._lifetime import pending_calls
from cuda_core_cffi._lifetime.host_memory import register_after_sync
from cuda_core_cffi._lifetime.table import new_table

AT_ONCE = 64  # tokens that C hands over in one call
NOTHING = ffi.NULL

_new_references = lib.ccc_refs_new
_releases_pending = lib.ccc_releases_pending
_flush = lib.ccc_flush_releases
_numbers = itertools.count(1)

kept: MutableMapping[int, Any] = new_table()
"""Python objects by the token that C has for them."""


class Operand(NamedTuple):
    """Something that a node uses, with the C handles and the Python objects that keep it."""

    address: int  # what the driver gets
    c_handles: tuple[Any, ...] = ()
    objects: tuple[Any, ...] = ()
    size: int | None = None  # in bytes, where that is known

    def check_capacity(self, size: int, name: str) -> None:
        """Raise if the memory is known to be smaller than what a node does with it."""
        if self.size is not None and size > self.size:
            raise ValueError(f"{name} has {self.size} bytes, fewer than the {size} of the node")


class Releaser:
    """Call a function once: when it is released, or when the last reference to this goes."""

    __slots__ = ("_release",)

    _release: Callable[[], object] | None

    def __init__(self, release: Callable[[], object]) -> None:
        self._release = release

    def __del__(self) -> None:
        self.release()

    def release(self) -> None:
        """Call the function, unless it was called."""
        try:
            release, self._release = self._release, None
        except AttributeError:  # interrupted before it had one
            return
        if release is not None:
            release()


def new_token(value: Any) -> int:
    """Keep a Python object, and return the token under which C releases it."""
    token = next(_numbers)
    kept[token] = value
    return token


def list_references(operands: Iterable[Iterable[Operand]], token: int = 0) -> tuple[list[Any], int]:
    """Return the C handles of groups of operands, and a token for their Python objects, or 0.

    A token passed in, of another Python object, is returned in its place.
    """
    c_handles: list[Any] = []
    objects: list[Any] = []
    for group in operands:
        for _, some, others, _ in group:
            c_handles += some
            objects += others
    if objects and not token:
        token = new_token(objects)
    return c_handles, token


def make_references(operands: Iterable[Iterable[Operand]], token: int = 0) -> Any:
    """Return a new ``ccc_refs *`` for what :func:`list_references` returns, or NULL if that is nothing."""
    c_handles, token = list_references(operands, token)
    if not c_handles and not token:
        return NOTHING
    flush_after_sync()
    keep = _new_references(c_handles, len(c_handles), token)
    if not keep:
        kept.pop(token, None)
        raise last_failure()
    return keep


def refer_with_memory(buffer: Handle, value: Any) -> None:
    """Keep a Python object until the memory of a buffer went back, if somebody besides the buffer keeps the memory."""
    token = new_token(value)
    if lib.ccc_buffer_refer(buffer._c_handle, token):
        flush_after_sync()
    else:
        kept.pop(token, None)


def flush_after_sync() -> None:
    """Flush pending releases after each synchronisation from now on: programs without any need not look."""
    register_after_sync(flush_releases, first=True)


def flush_releases(waited: Any = NOTHING) -> None:
    """Release what nobody needs any more, whatever was waited for."""
    if not _releases_pending():
        return
    tokens = ffi.new("uint64_t[]", AT_ONCE)
    count = AT_ONCE
    while count == AT_ONCE:
        count = _flush(tokens, AT_ONCE)
        for index in range(count):
            kept.pop(tokens[index], None)
    check_cleanup(1)


pending_calls.tasks.append(flush_releases)
