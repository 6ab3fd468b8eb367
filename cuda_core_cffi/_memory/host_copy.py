# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Copies between buffers and Python objects that have memory of the host: bytes, arrays, memory maps."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from cuda_core_cffi._core.dtypes import holds_objects
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._lifetime.host_memory import Hold, held, release_finished
from cuda_core_cffi._memory.access import copy_failure
from cuda_core_cffi._memory.exporter import Exporter
from cuda_core_cffi._streams.stream import Stream

# PyPy's bytearrays, arrays and memory maps can be resized or closed while somebody uses their memory
EXPORTS_HOLD = sys.implementation.name != "pypy"

_copy_host = lib.ccc_copy_host


def copy_host(buffer: Exporter, thing: Any, to_host: bool, stream: Stream, attributes: Any, what: str) -> None:
    """Copy a whole buffer to the memory of a Python object, or from it; ``what`` is the operation.

    Raises
    ------
    TypeError
        If the object has no memory that can be reached, or its memory holds references to Python objects.
    BufferError
        If its memory is not contiguous, or cannot be written to.
    ValueError
        If the sizes differ, or the object shows the memory of the buffer itself.
    """
    memory = host_memory(thing, to_host)
    size = len(memory)
    if size != buffer._size:
        one, other = (buffer._size, size) if to_host else (size, buffer._size)
        raise ValueError(f"the sizes differ: {one} bytes do not fit {other}")

    def make(event: Any) -> int:
        status: int = _copy_host(
            buffer._c_handle, memory, size, to_host, stream._c_handle, attributes or ffi.NULL, event
        )
        return status

    status = copy_while_held(memory, make, wait=not (EXPORTS_HOLD or isinstance(thing, bytes)))
    if status:
        raise copy_failure(status, what, stream, buffer)


def copy_while_held(memory: Any, make: Callable[[Any], int], wait: bool) -> int:
    """Make a copy that uses memory of the host, which is held until the copy is done. Return its status.

    Parameters
    ----------
    memory : cdata
        What holds the memory, until ``ffi.release`` is called with it.
    make : callable
        Makes the copy. It is given where its event goes (``ccc_copy_with_event``).
    wait : bool
        Whether to wait until the copy is done.
    """
    if held:
        release_finished(everything=False)
    hold = Hold(memory)
    try:
        status = make(hold.event)
    finally:
        hold.release_unless_busy()
    if wait:
        hold.wait()
    return status


def host_memory(thing: Any, writable: bool) -> Any:
    """Return the memory of an object with the buffer protocol, as a ``char[]`` that holds it."""
    try:
        view = memoryview(thing)
    except TypeError:
        raise TypeError(
            f"expected a Buffer, or an object with the buffer protocol, not {type(thing).__name__}"
        ) from None
    except ValueError as error:  # NumPy has types that the buffer protocol does not
        raise BufferError(f"{type(thing).__name__} does not show its memory: {error}") from error
    if holds_objects(thing, view):
        raise TypeError(f"the memory of this {type(thing).__name__} holds references to Python objects, not plain data")
    if not view.c_contiguous:
        raise BufferError(f"the memory of this {type(thing).__name__} is not contiguous; copy a contiguous one")
    if writable and view.readonly:
        raise BufferError(f"the memory of this {type(thing).__name__} is read-only")
    return ffi.from_buffer("char[]", view, require_writable=writable)
