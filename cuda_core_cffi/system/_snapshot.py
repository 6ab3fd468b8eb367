# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The base of what NVML told at one moment: a structure that it filled."""

from __future__ import annotations

import operator
from typing import Any, ClassVar, Generic, Self, TypeVar

from cuda_core_cffi._core.ffi import ffi
from cuda_core_cffi._raw.types import Record
from cuda_core_cffi.system._header import nvml
from cuda_core_cffi.system._readers import NvmlValue

R = TypeVar("R", bound=Record)


class Snapshot(NvmlValue, Generic[R]):
    """Values that NVML told, which do not change; they can be sent to other processes.

    A subclass names the structure that they are in. The CFFI pointer to it may stand for the structure: its fields are
    read the same way.
    """

    __slots__ = ()

    _STRUCTURE: ClassVar[str]

    _record: R

    def __init__(self, record: R) -> None:
        self._record = record

    def __repr__(self) -> str:
        """Return the class and the values."""
        shown = []
        for name in public_properties(type(self)):
            try:
                shown.append(f"{name}={getattr(self, name)!r}")
            except (AttributeError, ValueError):  # what this kind does not have
                continue
        return f"<{type(self).__name__} {' '.join(shown)}>"

    def __copy__(self) -> Self:
        """Return the object itself: nothing changes it."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the object itself, as ``__copy__`` does."""
        return self

    def __reduce__(self) -> tuple[object, ...]:
        """Return what the same values are made from: the bytes of the structure."""
        cdata = self._record._cdata if isinstance(self._record, Record) else self._record
        return restore, (type(self), bytes(ffi.buffer(cdata)))


def restore(cls: type[Snapshot[Any]], data: bytes) -> Snapshot[Any]:
    """Return the snapshot that was pickled."""
    record = getattr(nvml, cls._STRUCTURE)()
    ffi.buffer(record._cdata)[:] = data
    self = cls.__new__(cls)
    Snapshot.__init__(self, record)
    return self


def public_properties(cls: type) -> list[str]:
    """Return the names of the properties of a class and its bases, in the order in which they are defined."""
    found: dict[str, None] = {}
    for base in reversed(cls.__mro__):
        found.update(
            (name, None) for name, item in vars(base).items() if isinstance(item, property) and not name.startswith("_")
        )
    return list(found)


def sequence_index(index: int, length: int, what: str) -> int:
    """Check an index of a sequence.

    Parameters
    ----------
    index : int
        The index; a negative one counts from the end.
    length : int
        How many items there are.
    what : str
        What messages call an item.

    Returns
    -------
    int
        The index.

    Raises
    ------
    TypeError
        If it is no integer.
    IndexError
        If there is no such item.
    """
    number = operator.index(index)
    if not -length <= number < length:
        raise IndexError(f"{what} {number} is out of range: there are {length}")
    return number
