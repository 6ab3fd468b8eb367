# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Properties whose value the driver or NVML tells: in one line, with the function that reads it and a docstring."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from cuda_core_cffi._core.ffi import lib

T = TypeVar("T")

if TYPE_CHECKING:

    class Answer(Generic[T]):
        """A property, whose type is what the function returns."""

        def __init__(self, read: Callable[[Any], T], *, doc: str) -> None: ...
        @overload
        def __get__(self, instance: None, owner: type) -> property: ...
        @overload
        def __get__(self, instance: object, owner: type | None = None) -> T: ...
        def __get__(self, instance: object, owner: type | None = None) -> T | property: ...

else:
    Answer = property


def attribute(name: str, convert: Callable[[int], T], doc: str) -> Answer[T]:
    """Return a property that is an attribute of the driver, by the header's name: ``_read`` of the object reads it."""
    number = int(getattr(lib, name))

    def read(asked: Any) -> T:
        return convert(asked._read(number))

    return Answer(read, doc=doc)


def shown(instance: object) -> str:
    """Return the class of an object, and the values of its properties."""
    names = [name for name, item in vars(type(instance)).items() if isinstance(item, property)]
    return f"{type(instance).__name__}({', '.join(f'{name}={getattr(instance, name)!r}' for name in names)})"
