# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Functions that take arrays of any library."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from cuda_core_cffi._arrays.interfaces import find_reader
from cuda_core_cffi._arrays.strided_memory_view import StridedMemoryView
from cuda_core_cffi._core.copying import Uncopyable

T = TypeVar("T")


def args_viewable_as_strided_memory(
    arg_indices: tuple[int, ...],
) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Let a function take arrays of any library.

    Inside the decorated function, the arguments named are objects whose ``view(stream_ptr)`` returns a
    :class:`StridedMemoryView`, and whose ``obj`` is the argument itself.

    Parameters
    ----------
    arg_indices : tuple of int
        The positions of the arguments.

    Returns
    -------
    callable
        The decorator. What it makes raises BufferError for an argument that speaks no array protocol, and IndexError
        when it is called with too few positional arguments.

    Examples
    --------
    >>> @args_viewable_as_strided_memory((0,))
    ... def address_of(array, stream):
    ...     return array.view(stream.handle).ptr
    """
    if not isinstance(arg_indices, tuple) or not all(type(index) is int for index in arg_indices):
        raise TypeError(f"arg_indices must be a tuple of int, not {arg_indices!r}")

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> T:
            viewable = list(args)
            for index in arg_indices:
                viewable[index] = _StridedMemoryViewProxy(viewable[index])
            return function(*viewable, **kwargs)

        return call

    return decorate


class _StridedMemoryViewProxy(Uncopyable):
    """An argument that can be viewed."""

    __slots__ = ("_reader", "obj")

    _NOT_COPIED_BECAUSE = "it stands for an argument of a call"

    def __init__(self, obj: object) -> None:
        self.obj = obj
        self._reader = find_reader(obj)

    def view(self, stream_ptr: int | None = None) -> StridedMemoryView:
        """Return :meth:`StridedMemoryView.from_any_interface` of the argument."""
        return StridedMemoryView._read(self._reader, self.obj, stream_ptr)
