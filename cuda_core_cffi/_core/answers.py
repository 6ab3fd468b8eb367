# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Properties that the driver or NVML answers: each in one line, with the function that reads it and a docstring."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast, overload

from cuda_core_cffi._core.ffi import lib

T = TypeVar("T")

if TYPE_CHECKING:

    class Answer(Generic[T]):
        """A property of the type that the function returns."""

        def __init__(self, read: Callable[[Any], T], *, doc: str) -> None: ...
        @overload
        def __get__(self, instance: None, owner: type) -> property: ...
        @overload
        def __get__(self, instance: object, owner: type | None = None) -> T: ...
        def __get__(self, instance: object, owner: type | None = None) -> T | property: ...

    class Setting(Answer[T]):
        """The same, and it can be assigned."""

        def __set__(self, instance: object, value: T) -> None: ...

else:
    Answer = property


class DriverAttribute(NamedTuple):
    """An attribute of the driver in the body of a class, in the place of which it puts a property; see `attribute`."""

    convert: Callable[[int], Any]
    doc: str
    how: dict[str, bool]
    settable: bool = False

    def __set_name__(self, owner: Any, name: str) -> None:
        number = int(getattr(lib, owner._PREFIX + name.upper()))
        write = (lambda asked, value: asked._write(number, name, value)) if self.settable else None
        made: Any = property(lambda asked: self.convert(asked._read(number, **self.how)), write, doc=self.doc)
        made.__set_name__(owner, name)  # for messages
        setattr(owner, name, made)


def attribute(convert: Callable[[int], T], doc: str, **how: bool) -> Answer[T]:
    """Return a property that is an attribute of the driver, under the header's name for it in lower case.

    The class has the beginning of the header's names as its ``_PREFIX``. Its method ``_read`` asks for the attribute,
    given the number and the other keyword arguments.
    """
    return cast("Answer[T]", DriverAttribute(convert, doc, how))


def setting(convert: Callable[[int], T], doc: str, **how: bool) -> Setting[T]:
    """Return the same for an attribute that can be set: with ``_write``, given the number, the name and the value."""
    return cast("Setting[T]", DriverAttribute(convert, doc, how, settable=True))


def shown(instance: object) -> str:
    """Return the class of an object, and the values of its properties."""
    names = [name for name, item in vars(type(instance)).items() if isinstance(item, property)]
    return f"{type(instance).__name__}({', '.join(f'{name}={getattr(instance, name)!r}' for name in names)})"
