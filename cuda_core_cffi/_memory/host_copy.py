# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Copies between buffers and Python objects with host memory: bytes, arrays, memory maps."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from cuda_core_cffi._core.dtypes import holds_objects
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._lifetime.host_memory import HostReference, release_finished, unfinished
from cuda_core_cffi._memory.access import copy_failure
from cuda_core_cffi._memory.exporter import Exporter
from cuda_core_cffi._streams.stream import Stream

# PyPy's bytearrays, arrays and memory maps can be resized or closed while somebody uses their memory
EXPORTS_HOLD = sys.implementation.name != "pypy"

_copy_host = lib.ccc_copy_host


def copy_host(buffer: Exporter, thing: Any, to_host: bool, stream: Stream, attributes: Any, what: str) -> None:
    """Copy a whole buffer to the memory of a Python object, or from it; ``what`` is the operation."""
    memory = host_memory(thing, to_host)
    size = len(memory)
    if size != buffer._size:
        one, other = (buffer._size, size) if to_host else (size, buffer._size)
        raise ValueError(f"the sizes differ: {one} bytes do not fit {other}")

    wait = not (EXPORTS_HOLD or isinstance(thing, bytes))
    arguments = (buffer._c_handle, memory, size, to_host, stream._c_handle, attributes or ffi.NULL)
    if status := copy_with_memory(memory, wait, _copy_host, *arguments):
        raise copy_failure(status, what, stream, buffer)


def copy_with_memory(memory: Any, wait: bool, helper: Callable[..., Any], *arguments: Any) -> int:
    """Make a copy that uses host memory, keep the memory alive until the copy is done, and return the status.

    The memory goes with ``ffi.release``. The helper makes the copy and returns its event (``ccc_copy_with_event``);
    ``wait`` says whether this waits for that.
    """
    if unfinished:
        release_finished(everything=False)
    reference = HostReference(memory)
    if not reference.copy(helper, *arguments):
        status: int = lib.ccc_last_status()
        return status
    if wait:
        reference.wait()
    return 0


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
