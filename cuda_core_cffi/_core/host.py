# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The host, as a place for memory."""

from __future__ import annotations

import functools


class Host:
    """The host, or one of its NUMA nodes. One object stands for the same place throughout the process.

    Parameters
    ----------
    numa_id : int, optional
        A NUMA node. By default the host as a whole.
    is_numa_current : bool, optional
        The NUMA node of whichever thread asks. Excludes ``numa_id``.

    Raises
    ------
    ValueError
        If ``numa_id`` is negative, or given together with ``is_numa_current``.
    """

    __slots__ = ("__weakref__", "_is_numa_current", "_numa_id")

    _numa_id: int | None
    _is_numa_current: bool

    def __new__(cls, numa_id: int | None = None, *, is_numa_current: bool = False) -> Host:
        if numa_id is not None:
            if is_numa_current:
                raise ValueError("numa_id and is_numa_current exclude each other")
            if isinstance(numa_id, bool) or not isinstance(numa_id, int):
                raise TypeError(f"numa_id must be an int, not {type(numa_id).__name__}")
            if numa_id < 0:
                raise ValueError(f"numa_id must not be negative, not {numa_id}")
        key = (cls, numa_id, bool(is_numa_current))
        known = _hosts.get(key)
        if known is not None:
            return known
        self = super().__new__(cls)
        self._numa_id = numa_id
        self._is_numa_current = bool(is_numa_current)
        return _hosts.setdefault(key, self)  # another thread may have been first

    def __reduce__(self) -> tuple[object, ...]:
        return functools.partial(type(self), is_numa_current=self._is_numa_current), (self._numa_id,)

    def __repr__(self) -> str:
        if self._is_numa_current:
            return "Host.numa_current()"
        return "Host()" if self._numa_id is None else f"Host(numa_id={self._numa_id})"

    @classmethod
    def numa_current(cls) -> Host:
        """Return the NUMA node of whichever thread asks.

        Returns
        -------
        Host
            The location.
        """
        return cls(is_numa_current=True)

    @property
    def numa_id(self) -> int | None:
        """The NUMA node; None for the host as a whole and for the current node."""
        return self._numa_id

    @property
    def is_numa_current(self) -> bool:
        """Whether this is the NUMA node of whichever thread asks."""
        return self._is_numa_current


_hosts: dict[tuple[type[Host], int | None, bool], Host] = {}
