# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Options of compilers and linkers: how a field is checked, and spelt on a command line.

A *spelling* is a function of the field, as messages name it (``"ProgramOptions: ftz"``), and of its value, which is not
None; it returns the options that say so. False and an empty list stand for None where a text, a path or a list is
wanted, a bool for an int where an int is, and 0 and 1 for a bool.
"""

from __future__ import annotations

import dataclasses
import operator
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, SupportsIndex

Spelling = Callable[[str, Any], list[str]]


def option(spelling: Spelling, default: str | None = None) -> Any:
    """Return a field of a dataclass of options, which knows how it is spelt."""
    return dataclasses.field(default=default, metadata={"spelling": spelling})


def spellings(cls: type) -> dict[str, Spelling]:
    """Return how each field of a dataclass of options is spelt."""
    return {field.name: field.metadata["spelling"] for field in dataclasses.fields(cls)}


def spell(title: str, spelt_by: Mapping[str, Spelling], fields: Mapping[str, Any]) -> list[str]:
    """Check all fields of a dataclass, which messages call ``title``, and return the options that they stand for."""
    options: list[str] = []
    for name, spelling in spelt_by.items():
        if (value := fields[name]) is not None:
            options += spelling(f"{title}: {name}", value)
    return options


def flag(option: str) -> Spelling:
    """Return the spelling of a bool as an option that is there or not."""
    return lambda field, value: [option] if boolean(field, value) else []


def choice(option: str) -> Spelling:
    """Return the spelling of a bool as ``option=true`` or ``option=false``."""
    return lambda field, value: [f"{option}={'true' if boolean(field, value) else 'false'}"]


def _texts(wanted: str) -> Callable[[str], Spelling]:
    """Return what makes the spelling of texts as ``option=value``."""

    def make(option: str) -> Spelling:
        def spell(field: str, value: object) -> list[str]:
            items = several(value) if " or " in wanted or not is_asked_for(value) else [value]
            return [f"{option}={text(field, item, wanted)}" for item in items]

        return spell

    return make


string, path = _texts("a str"), _texts("a path")
strings, paths = _texts("a str or a sequence of str"), _texts("a path or a sequence of paths")


def number(option: str, least: int) -> Spelling:
    """Return the spelling of an int, which must not be less than ``least``, as ``option=value``."""
    return lambda field, value: [f"{option}={_integer(field, value, least)}"]


def numbers(option: str) -> Spelling:
    """Return the spelling of one or several int that are not negative, each as ``option=value``."""
    wanted = "an int or a sequence of int"

    def spell(field: str, value: object) -> list[str]:
        return [f"{option}={_integer(field, item, 0, wanted)}" for item in several(value)]

    return spell


def only_checked(verify: Callable[[str, Any], object]) -> Spelling:
    """Return the spelling of what has no option of its own, but must be right."""

    def spell(field: str, value: object) -> list[str]:
        verify(field, value)
        return []

    return spell


def check_name(field: str, value: object) -> None:
    """Check the value of a field ``name``, which may be empty."""
    if value != "":
        text(field, value)


def asked_besides(known: Collection[str], fields: Mapping[str, Any]) -> list[str]:
    """Return the names of the fields that ask for something, other than those that are known."""
    asked = {name for name, value in fields.items() if is_asked_for(value)}
    return [name for name in fields if name in asked and name not in known]


def is_asked_for(value: object) -> bool:
    """Tell whether the value of an optional field asks for something."""
    return value is not None and value is not False and not (isinstance(value, list | tuple) and not value)


def boolean(field: str, value: object) -> bool:
    """Return the value, which must be True or False, or 1 or 0, as a bool."""
    if isinstance(value, bool):
        return value
    if not isinstance(value, SupportsIndex) or operator.index(value) not in (0, 1):
        raise wrong(field, "a bool", value)
    return bool(operator.index(value))


def several(value: object) -> Sequence[Any]:
    """Return what a field asks for: a list or tuple as it is, anything else as a list of one."""
    if not is_asked_for(value):
        return ()
    return value if isinstance(value, list | tuple) else [value]


def text(field: str, value: object, wanted: str = "a str") -> str:
    """Return the value, which must be a str, or a path if that is wanted, with something in it."""
    if not isinstance(value, str):
        if not isinstance(value, os.PathLike) or "path" not in wanted:
            raise wrong(field, wanted, value)
        value = os.fsdecode(value)
    if not value or "\0" in value:
        raise ValueError(f"{field} must not be empty or contain NUL: {value!r}")
    return str(value)


def wrong(field: str, wanted: str, value: object) -> TypeError:
    """Return the exception for a value of another type."""
    return TypeError(f"{field} must be {wanted} or None, not {type(value).__name__}: {value!r}")


def _integer(field: str, value: object, least: int, wanted: str = "an int") -> int:
    if not isinstance(value, SupportsIndex):
        raise wrong(field, wanted, value)
    number = operator.index(value)
    if number < least:
        raise ValueError(f"{field} must be {least} or more, not {value}")
    return number
