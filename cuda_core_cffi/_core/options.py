# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Options: wherever one is taken, a dataclass, a mapping of its fields, or None; enumerations or their strings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

if TYPE_CHECKING:
    import enum

T = TypeVar("T")
E = TypeVar("E", bound="enum.StrEnum")


def check_options(cls: type[T], options: T | Mapping[str, Any] | Literal[False] | None, what: str) -> T:
    """Return options as an instance of a dataclass: an instance as it is, or one made of its fields by name.

    None and False stand for the defaults. Messages call what the options are for ``what``: ``"Device.create_stream"``.
    Raise :class:`TypeError` for anything else, and for a field that the dataclass does not have.
    """
    if isinstance(options, cls):
        return options
    if options is None or options is False:
        return cls()
    if not isinstance(options, Mapping):
        raise TypeError(
            f"{what}: options must be {cls.__name__}, a mapping or None, not {type(options).__name__}: {options!r}"
        )
    import dataclasses  # which whoever has a dataclass has imported

    known = [field.name for field in dataclasses.fields(cls) if field.init]  # type: ignore[arg-type]
    for name in options:
        if name not in known:
            import difflib  # for this message only

            near = difflib.get_close_matches(name, known, 1) if isinstance(name, str) else []
            hint = f"did you mean {near[0]!r}?" if near else f"the options are {', '.join(known)}"
            raise TypeError(f"{what}: {cls.__name__} has no option {name!r}; {hint}")
    return cls(**options)


def member(kind: type[E], value: Any, name: str) -> E:
    """Return ``value`` as a member of an enumeration, or raise what says which there are."""
    try:
        return kind(value)
    except ValueError:
        names = ", ".join(repr(item.value) for item in kind)
        raise ValueError(f"{name} must be one of {names}, not {value!r}") from None


def named(members: Collection[E], value: object, name: str, who: str, error: type[Exception] = ValueError) -> E:
    """Return the member that a str names, in upper or lower case.

    What messages call it is ``name``, and what the one about another value says before the members is ``who``: ``"NVRTC
    makes"``.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}: {value!r}")
    for known in members:
        if value.lower() == known:
            return known
    raise error(f"unsupported {name} {str(value)!r}: {who} {', '.join(repr(str(known)) for known in members)}")
