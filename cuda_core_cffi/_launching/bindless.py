# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Textures and surfaces as kernel arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any, Self

from cuda_core_cffi._core.calls import close, make
from cuda_core_cffi._core.ffi import lib
from cuda_core_cffi._core.handle import Handle
from cuda_core_cffi._lifetime.references import Operand, Releaser
from cuda_core_cffi._memory import Buffer

_close = close


class Bindless(Handle):
    """A texture or a surface: kernels get its handle, a number of 64 bits."""

    __slots__ = ("_kept", "_memory", "_releaser")

    _releaser: Releaser  # if Python gives the memory back: releases it when this object is collected
    _kept: list[Callable[[], None]] | None  # what releases it, once
    _memory: Buffer  # whose memory that is

    __eq__ = object.__eq__  # a number is given again to another object
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} handle={self._driver_handle:#x}>"

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Destroy the object, and release what it shows. Closing twice is allowed.

        Kernels that use it must have ended.
        """
        _close(self)
        if self._kept:
            release_all(self._kept)

    @classmethod
    def _create_object(cls, device: int, resource: Handle, what: Any, how: Any) -> Self:
        """Return an object that shows a resource, which it keeps; ``what`` and ``how`` describe it to the driver."""
        kept = releaser = None
        if isinstance(resource, Buffer) and resource._needs_python:
            kept = [resource._retain_memory()]
            releaser = Releaser(partial(release_all, kept))
        self = make(cls, lib.ccc_texture_create, device, resource._c_handle, kept is None, what, how)
        if self is None:
            status = lib.ccc_last_status()
            if status == lib.CCC_ELSEWHERE:
                found = lib.ccc_handle_device(resource._c_handle)
                raise ValueError(f"the array is on device {found}, not on device {device}")
            raise resource._failure(status)
        self._kept = kept
        if releaser is not None and isinstance(resource, Buffer):
            self._releaser, self._memory = releaser, resource
        return self

    @property
    def _needs_python(self) -> bool:
        """Whether what keeps the object must also keep something in Python."""
        return bool(self._kept)

    def _operand(self) -> Operand:
        """Return the object as an operand of a graph's node, which keeps it."""
        if self.is_closed:
            raise self._failure(lib.CCC_CLOSED)
        return Operand(0, (self._c_handle,), (Releaser(self._memory._retain_memory()),) if self._kept else ())


def release_all(kept: list[Callable[[], Any]]) -> None:
    """Release what is kept, once."""
    while kept:
        try:
            release = kept.pop()
        except IndexError:  # another thread was faster
            return
        release()
