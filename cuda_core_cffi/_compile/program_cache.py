# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Caches of compiled programs: what each of them does, and the one that lives in memory."""

from __future__ import annotations

import abc
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Self

from cuda_core_cffi._code.object_code import ObjectCode
from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.locks import new_lock

Key = bytes | str
Value = bytes | bytearray | memoryview | ObjectCode


class ProgramCacheResource(abc.ABC):
    """A cache of compiled code, for :meth:`Program.compile`; and the base of caches that others write.

    It maps keys to bytes. A key that is a str stands for its UTF-8, so ``"k"`` and ``b"k"`` are one key;
    :func:`make_program_cache_key` makes them. Of an :class:`ObjectCode` the code alone is kept, neither its name nor
    its symbol mapping.

    There is no ``key in cache``, on purpose: what is there now may be gone when it is read. Ask with :meth:`get`.
    """

    __iter__ = __reversed__ = None  # or Python would look for keys at 0, 1, 2 and so on

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @abc.abstractmethod
    def __getitem__(self, key: bytes | str) -> bytes:
        """Return the code that is stored under ``key``.

        Raises
        ------
        KeyError
            If there is none.
        """

    @abc.abstractmethod
    def __setitem__(self, key: bytes | str, value: bytes | bytearray | memoryview | ObjectCode) -> None:
        """Store ``value`` under ``key``, in place of what was there."""

    @abc.abstractmethod
    def __delitem__(self, key: bytes | str) -> None:
        """Remove what is stored under ``key``.

        Raises
        ------
        KeyError
            If there is nothing.
        """

    @abc.abstractmethod
    def __len__(self) -> int:
        """Return the number of entries."""

    @abc.abstractmethod
    def clear(self) -> None:
        """Remove every entry."""

    def get(self, key: bytes | str, default: bytes | None = None) -> bytes | None:
        """Return the code that is stored under a key, if there is any.

        Parameters
        ----------
        key : bytes or str
            The key.
        default : bytes, optional
            What to return if there is none.

        Returns
        -------
        bytes or None
            The code, or ``default``.
        """
        try:
            return self[key]
        except KeyError:
            return default

    def update(self, items: Mapping[Key, Value] | Iterable[tuple[Key, Value]], /) -> None:
        """Store several entries, one after the other: if one fails, those before it stay.

        Parameters
        ----------
        items : Mapping, or iterable of (key, value)
            The entries.
        """
        for key, value in items.items() if isinstance(items, Mapping) else items:
            self[key] = value

    def close(self) -> None:  # noqa: B027  (a cache that holds nothing has nothing to release)
        """Release what the cache holds besides its entries; here nothing. Leaving a ``with`` block does this."""


class InMemoryProgramCache(Uncopyable, ProgramCacheResource):
    """A cache that lives as long as the process, for any number of threads.

    Parameters
    ----------
    max_size_bytes : int, optional
        The most bytes that the entries may have together. The entries that were not read for the longest time make
        room for others; code that is larger than all the room is not kept. By default there is no limit.

    Raises
    ------
    TypeError, ValueError
        If the limit is no int, or negative.

    Examples
    --------
    >>> from cuda_core_cffi import Program
    >>> cache = InMemoryProgramCache()
    >>> program = Program('extern "C" __global__ void nothing() {}', "c++", {"arch": "sm_90"})
    >>> code = program.compile("ptx", cache=cache)  # compiled
    >>> code = program.compile("ptx", cache=cache)  # read
    >>> len(cache)
    1
    """

    _NOT_COPIED_BECAUSE = "its entries share one limit; another cache can be filled with update"

    def __init__(self, max_size_bytes: int | None = None) -> None:
        self._limit = check_limit(max_size_bytes)
        self._entries: OrderedDict[bytes, bytes] = OrderedDict()  # the least recently read first
        self._lock = new_lock()

    def __getitem__(self, key: bytes | str) -> bytes:
        name = check_key(key)
        with self._lock:
            if name not in self._entries:
                raise KeyError(key)
            self._entries.move_to_end(name)
            return self._entries[name]

    def __setitem__(self, key: bytes | str, value: bytes | bytearray | memoryview | ObjectCode) -> None:
        name, data = check_key(key), check_value(value)
        with self._lock:
            self._entries.pop(name, None)
            if self._limit is None:
                self._entries[name] = data
            elif len(data) <= self._limit:
                self._entries[name] = data
                excess = sum(map(len, self._entries.values())) - self._limit
                while excess > 0 and self._entries:
                    excess -= len(self._entries.popitem(last=False)[1])

    def __delitem__(self, key: bytes | str) -> None:
        name = check_key(key)
        with self._lock:
            if name not in self._entries:
                raise KeyError(key)
            self._entries.pop(name, None)

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        """Remove every entry."""
        with self._lock:
            self._entries.clear()


def check_key(key: object) -> bytes:
    """Return a key as bytes."""
    if isinstance(key, str):
        return key.encode()
    if not isinstance(key, bytes):
        raise TypeError(f"a key must be bytes or str, not {type(key).__name__}: {key!r}")
    return key


def check_value(value: object) -> bytes:
    """Return the bytes that are to be stored."""
    if isinstance(value, ObjectCode):
        return value._data  # the code itself, also if it was read from a file
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(f"a value must be bytes, bytearray, memoryview or ObjectCode, not {type(value).__name__}")
    return bytes(value)


def check_limit(limit: object) -> int | None:
    """Return the most bytes that a cache may hold, or None if there is no limit."""
    if limit is None:
        return None
    if not isinstance(limit, int) or isinstance(limit, bool):
        raise TypeError(f"max_size_bytes must be an int or None, not {type(limit).__name__}: {limit!r}")
    if limit < 0:
        raise ValueError(f"max_size_bytes must not be negative: {limit}")
    return limit
