# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The base of every object that owns a driver handle.

The driver handle is in a C handle (``include/handles/ccc_handle.h``), which knows what it depends on and destroys it
without Python. What is here is the Python end: one C handle, closed once, released when the object goes.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from cuda_core_cffi._core.calls import Owner, close, make
from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.errors import failure
from cuda_core_cffi._core.ffi import ffi, lib

if TYPE_CHECKING:
    from cuda_core_cffi._core.ffi import CData

_close = close
_end_use = lib.ccc_use_end
_handle = lib.ccc_handle_value
_identity = lib.ccc_identity
_is_open = lib.ccc_is_open
_view_open = lib.ccc_view_open


class Handle(Uncopyable, Owner):
    """Own a C handle. Factory methods make instances, with :meth:`_made_by`."""

    __slots__ = ("__weakref__",)

    _CTYPE: ClassVar[str]
    _MADE_BY: ClassVar[str] = "the method that creates it"
    _NAME: ClassVar[str] = ""  # what messages call a class that is not public

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise RuntimeError(f"{type(self).__name__} cannot be constructed directly; use {self._MADE_BY}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        self.close()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Handle) or other._CTYPE != self._CTYPE:
            return NotImplemented
        return bool(_identity(self._c_handle) == _identity(other._c_handle))

    def __hash__(self) -> int:
        return hash((self._CTYPE, _identity(self._c_handle)))

    @classmethod
    def _made_by(cls, helper: Callable[..., Any], *arguments: Any) -> Self:
        """Return an object for the C handle that a helper makes, or raise the helper's failure."""
        self = make(cls, helper, *arguments)
        if self is None:
            raise failure(lib.ccc_last_status())
        return self

    def _failure(self, status: int, *others: object) -> Exception:
        """Return the exception for a helper's ``status``; says which of the objects involved is closed."""
        if status == lib.CCC_CLOSED:
            for item in (self, *others):
                if isinstance(item, Handle) and not _is_open(item._c_handle):
                    return RuntimeError(f"this {item._NAME or type(item).__name__} is closed")
        return failure(status)

    def close(self) -> None:
        """Give the handle up now rather than when this object is collected. Closing twice is allowed."""
        _close(self)

    @property
    def cdata(self) -> CData:
        """The driver's handle as a typed CFFI object; NULL once closed."""
        cdata: CData = ffi.cast(self._CTYPE, _handle(self._c_handle))
        return cdata

    @property
    def c_handle(self) -> int:
        """The address of the C handle, for C code that uses ``cuda_core_cffi.h``."""
        return int(ffi.cast("uintptr_t", self._c_handle))


def raise_failure(status: int, item: Any, *others: Any, **named: Any) -> NoReturn:
    """Raise the exception for a method that failed in C with a status, and was called with these arguments."""
    raise item._failure(status, *others, *named.values())


class Use(Owner):
    """Keep a driver handle from being destroyed, until this is closed or collected."""

    __slots__ = ()


class InUse:
    """Keep handles from being destroyed while a ``with`` block passes them to the driver.

    Another thread may close an object at any time. A handle that is read outside of such a block may be gone when the
    driver gets it. What C is given as a C handle needs none of this: it does the same itself.

    Parameters
    ----------
    *handles : Handle
        The objects. RuntimeError says which of them is closed.
    """

    __slots__ = ("_handles", "_uses")

    def __init__(self, *handles: Handle) -> None:
        self._handles = handles
        self._uses: list[Use] = []

    def __enter__(self) -> None:
        c_handles = [handle._c_handle for handle in self._handles]  # raises where one was not initialised
        for handle, c_handle in zip(self._handles, c_handles, strict=True):
            use = make(Use, _view_open, c_handle)
            if use is None:
                status = lib.ccc_last_status()
                self.__exit__()
                raise handle._failure(status)
            self._uses.append(use)

    def __exit__(self, *exception: object) -> None:
        while self._uses:
            use = self._uses.pop()  # a name, so that it is not freed before the call
            _end_use(use._c_handle)


def has_handle(owner: Owner) -> bool:
    """Return whether an owner was given a C handle, open or closed."""
    return getattr(owner, "_c_handle", None) is not None


def refuse_again(owner: Owner) -> None:
    """Raise if an object has a C handle: a second ``__init__`` would lose it."""
    if has_handle(owner):
        raise RuntimeError(f"this {type(owner).__name__} is initialised already")


def live_objects() -> dict[str, int]:
    """Count the driver objects that this package keeps alive, by kind.

    Returns
    -------
    dict of str to int
        Kind, in lower case (``"stream"``, ``"buffer"``, ...), to the number of handles not yet destroyed. Code and
        other objects that wait until the device is idle count until they are destroyed. Handles that belong to
        somebody else, and the devices' primary contexts, do not count.
    """
    kinds = ffi.typeof("ccc_kind").elements
    return {
        name.removeprefix("CCC_").lower(): int(lib.ccc_live_count(value))
        for value, name in kinds.items()
        if value < lib.CCC_KINDS
    }
