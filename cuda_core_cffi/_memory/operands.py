# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Memory that nodes of graphs use: buffers and addresses, with what keeps them alive."""

from __future__ import annotations

from typing import Any

from cuda_core_cffi._core.ffi import lib
from cuda_core_cffi._core.integers import address_of
from cuda_core_cffi._lifetime.references import Operand, Releaser
from cuda_core_cffi._memory.buffer import Buffer

_handle = lib.ccc_handle_value
_is_open = lib.ccc_is_open


def operand(value: Any, owner: Any, name: str) -> Operand:
    """Return memory that a node uses, with what keeps it: of an address the owner, None where the caller keeps it.

    Messages call the memory ``name``.
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
    c_handle = buffer._c_handle
    if not _is_open(c_handle):
        raise RuntimeError(f"{name}: this {buffer._NAME or type(buffer).__name__} is closed")
    objects = (Releaser(buffer._retain_memory()),) if buffer._needs_python else ()
    return Operand(_handle(c_handle), (c_handle,), objects, buffer._size)
