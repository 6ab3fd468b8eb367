# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What graphs, and functions that streams call, keep: driver objects and Python objects, until nothing needs them.

The C side (``include/ccc_keep.h``) counts and queues; it holds Python objects by a token. What is queued is let go of
when the package creates, changes or closes graphs, or has a stream call a function, when a program synchronises, and
else by the release thread.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, NamedTuple

from cuda_core_cffi import _wake
from cuda_core_cffi._errors import check_cleanup, last_failure
from cuda_core_cffi._ffi import ffi, lib
from cuda_core_cffi._integers import address_of
from cuda_core_cffi._keepalive import register_after_sync
from cuda_core_cffi._memory import Buffer
from cuda_core_cffi._memory.exporter import Hold
from cuda_core_cffi._registry import registry

__all__ = ["NOTHING", "Operand", "kept", "make_keep", "new_token", "operand", "settle", "settle_after_sync"]

AT_ONCE = 64  # tokens that C hands over in one call
NOTHING = ffi.NULL

_handle = lib.ccc_handle
_is_open = lib.ccc_is_open
_keep_new = lib.ccc_keep_new
_unsettled = lib.ccc_unsettled
_settle = lib.ccc_settle
_numbers = itertools.count(1)

kept: dict[int, Any] = {}
"""Python objects by the token that C has for them."""


class Operand(NamedTuple):
    """Something that a node uses.

    Attributes
    ----------
    address : int
        What the driver gets.
    boxes : tuple
        The boxes that keep it.
    objects : tuple
        The Python objects that keep it.
    size : int or None
        Its size in bytes, where that is known.
    """

    address: int
    boxes: tuple[Any, ...] = ()
    objects: tuple[Any, ...] = ()
    size: int | None = None

    def check_room(self, size: int, name: str) -> None:
        """Raise if the memory is known to be smaller than what a node does with it."""
        if self.size is not None and size > self.size:
            raise ValueError(f"{name} has {self.size} bytes, fewer than the {size} of the node")


def operand(value: Any, owner: Any, name: str) -> Operand:
    """Return memory that a node uses, with what keeps it.

    Parameters
    ----------
    value : Buffer or int
        The memory.
    owner : object
        For an address: what keeps the memory there; None if the caller does.
    name : str
        What messages call it.
    """
    if isinstance(value, Buffer):
        if owner is not None:
            raise ValueError(f"{name}_owner is for an address; a Buffer is kept by itself")
        return buffer_operand(value, name)
    if isinstance(value, bool):
        raise TypeError(f"{name} must be a Buffer or an address, not bool")
    try:
        address = address_of(value)
    except TypeError:
        raise TypeError(f"{name} must be a Buffer or an address, not {type(value).__name__}") from None
    if isinstance(owner, Buffer):
        return buffer_operand(owner, f"{name}_owner")._replace(address=address, size=None)
    return Operand(address, (), () if owner is None else (owner,))


def buffer_operand(buffer: Buffer, name: str) -> Operand:
    """Return a buffer as an operand: its memory stays, even if the buffer is closed."""
    box = buffer._box
    if not _is_open(box):
        raise RuntimeError(f"{name}: this {buffer._NAME or type(buffer).__name__} is closed")
    objects = (Hold(buffer._hold()),) if buffer._needs_python else ()
    return Operand(_handle(box), (box,), objects, buffer._size)


def new_token(value: Any) -> int:
    """Keep a Python object, and return the token under which C lets go of it."""
    token = next(_numbers)
    kept[token] = value
    return token


def make_keep(operands: Iterable[Operand], token: int = 0) -> Any:
    """Return a ``ccc_keep *`` for operands, which a function of C takes over; NULL if there is nothing to keep.

    Parameters
    ----------
    operands : iterable of Operand
        What is kept.
    token : int, optional
        That of a Python object which is kept as well, instead of those of the operands.
    """
    boxes: list[Any] = []
    objects: list[Any] = []
    for _, some, others, _ in operands:
        boxes += some
        objects += others
    if objects and not token:
        token = new_token(objects)
    if not boxes and not token:
        return NOTHING
    settle_after_sync()
    keep = _keep_new(boxes, len(boxes), token)
    if not keep:
        kept.pop(token, None)
        raise last_failure()
    return keep


def keep_with_memory(buffer: Buffer, value: Any) -> None:
    """Keep a Python object until the memory of a buffer went back, if somebody besides the buffer keeps the memory."""
    token = new_token(value)
    if lib.ccc_buffer_keep(buffer._box, token):
        settle_after_sync()
    else:
        kept.pop(token, None)


registry.keep_with_memory = keep_with_memory


def settle_after_sync() -> None:
    """Let go after each synchronisation from now on: programs that keep nothing need not look."""
    register_after_sync(settle, first=True)


def settle(waited: Any = NOTHING) -> None:
    """Let go of what nobody needs any more, whatever was waited for."""
    if not _unsettled():
        return
    tokens = ffi.new("uint64_t[]", AT_ONCE)
    count = AT_ONCE
    while count == AT_ONCE:
        count = _settle(tokens, AT_ONCE)
        for index in range(count):
            kept.pop(tokens[index], None)
    check_cleanup(1)


_wake.tasks.append(settle)
