# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What :mod:`copy` and :mod:`pickle` do with objects of this package.

Values, such as options, are copied. Objects of which there is one, such as a :class:`Device`, are their own copy.
Everything else owns or refers to a resource of this process: a copy would be a second owner, so it is refused.
"""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn, Self


class Uncopyable:
    """Base of the classes whose objects can be neither copied nor pickled.

    A subclass whose objects can be sent to other processes overrides ``__reduce__``; copying stays refused.
    """

    __slots__ = ()

    _NOT_COPIED_BECAUSE: ClassVar[str] = "it owns a handle of this process"  # the end of the message

    def __copy__(self) -> Self:
        """Refuse: a copy would have the same owner."""
        self._refuse_copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Refuse, as ``__copy__`` does."""
        self._refuse_copy()

    def __reduce__(self) -> str | tuple[object, ...]:
        """Refuse to be pickled."""
        self._refuse_copy()

    def _refuse_copy(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} cannot be pickled or copied: {self._NOT_COPIED_BECAUSE}")


class NoConstructor(Uncopyable):
    """Base of the classes whose objects come from methods of others."""

    __slots__ = ()

    _MADE_BY: ClassVar[str]  # which these are

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise RuntimeError(f"{type(self).__name__} cannot be constructed directly; use {self._MADE_BY}")
