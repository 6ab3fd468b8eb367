# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Functions of the host that the driver calls: the whole protocol.

The driver calls ``ccc_host_run`` (``include/ccc_keep.h``) in a thread of its own, with a token. That takes the GIL and
calls the Python function which is kept under the token. No driver function may be called in such a thread. So whatever
Python collects there is destroyed later, elsewhere. What the function raises is kept, and raised where a program next
synchronises. Functions of C are called by the driver directly.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from cuda_core_cffi._ffi import ffi, lib
from cuda_core_cffi._keepalive import after_sync
from cuda_core_cffi._retain import Operand, kept, new_token
from cuda_core_cffi._stream import address_of
from cuda_core_cffi._wake import run_tasks

__all__ = ["HostFunction", "host_function", "python_function"]

PROTOTYPE = "void(*)(void *)"
PYTHON_API = 4  # FUNCFLAG_PYTHONAPI of ctypes

_RUN = int(lib.ccc_host_function())


class HostFunction(NamedTuple):
    """A function for the driver to call.

    Attributes
    ----------
    address : int
        The C function.
    data : int
        What it gets: an address, or a token.
    token : int
        Under which the Python objects are kept; 0 where there are none.
    """

    address: int
    data: int
    token: int

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Nothing but Python objects is kept, under the token."""
        return ()


raised: list[BaseException] = []  # what Python functions have raised, and nobody was told yet


@ffi.def_extern()  # type: ignore[untyped-decorator]
def ccc_call_python(token: int) -> None:
    """Call a Python function, in a thread of the driver's."""
    try:
        kept[token]()
    except BaseException as error:
        raised.append(error)


def raise_pending() -> None:
    """Raise what Python functions have raised since this was last asked, and do what they left for later."""
    run_tasks()
    if raised:
        errors = [raised.pop(0) for _ in range(len(raised))]
        if len(errors) == 1:
            raise errors[0]
        raise BaseExceptionGroup("several host callbacks raised", errors)


def host_function(fn: Any, user_data: Any) -> HostFunction:
    """Return ``fn`` as something that the driver can call.

    Parameters
    ----------
    fn : callable or C function pointer
        A Python callable that takes no argument, or a ``void (*)(void *)`` of CFFI or ctypes.
    user_data : int, CFFI pointer, bytes-like or None
        What a C function gets: an address, or bytes, which are copied.
    """
    ctypes = sys.modules.get("ctypes")
    if isinstance(fn, ffi.CData):
        check_cffi(fn)
        return c_function(fn, int(ffi.cast("uintptr_t", fn)), user_data)
    if ctypes is not None and isinstance(fn, ctypes._CFuncPtr):
        check_ctypes(fn, ctypes)
        return c_function(fn, ctypes.cast(fn, ctypes.c_void_p).value, user_data)
    if not callable(fn):
        raise TypeError(f"fn must be callable, not {type(fn).__name__}")
    if user_data is not None:
        raise ValueError("user_data is for C functions; bind the arguments of a Python function with functools.partial")
    if raise_pending not in after_sync:  # programs without such functions need not look
        after_sync.append(raise_pending)
    token = new_token(fn)
    return HostFunction(_RUN, token, token)


def c_function(fn: Any, address: int | None, user_data: Any) -> HostFunction:
    """Return a C function with its data; both are kept."""
    if not address:
        raise ValueError("fn is a NULL pointer")
    data = 0
    objects = [fn]
    if isinstance(user_data, ffi.CData) or hasattr(user_data, "__index__"):
        data = address_of(user_data)
        objects.append(user_data)
    elif user_data is not None:
        try:
            copy = ffi.new("char[]", bytes(memoryview(user_data)))
        except TypeError:
            raise TypeError(
                f"user_data must be an address or bytes-like, not {type(user_data).__name__}: {user_data!r}"
            ) from None
        data = int(ffi.cast("uintptr_t", copy))
        objects.append(copy)
    return HostFunction(address, data, new_token(objects))


def check_cffi(fn: Any) -> None:
    """Raise unless a CFFI object is a function that the driver can call."""
    name = ffi.typeof(fn).cname
    if name != PROTOTYPE:
        raise TypeError(f"a CFFI function must be a {PROTOTYPE}, not a {name}")


def check_ctypes(fn: Any, ctypes: Any) -> None:
    """Raise unless a ctypes function is declared as one that the driver can call."""
    wanted = "declare it as ctypes.CFUNCTYPE(None, ctypes.c_void_p), the driver's void (*)(void *)"
    if fn.restype is not None:
        raise TypeError(f"the ctypes function returns {name_of(fn.restype)}; {wanted}")
    if fn.argtypes is None or list(fn.argtypes) != [ctypes.c_void_p]:
        given = "unspecified" if fn.argtypes is None else ", ".join(map(name_of, fn.argtypes)) or "none"
        raise TypeError(f"the arguments of the ctypes function are {given}; {wanted}")
    if getattr(fn, "_flags_", 0) & PYTHON_API:
        raise TypeError(f"the ctypes function expects the GIL, which threads of the driver do not have; {wanted}")


def name_of(ctype: Any) -> str:
    """Return what a ctypes type is called."""
    return str(getattr(ctype, "__name__", ctype))


def python_function(address: int, data: int) -> Callable[[], Any] | None:
    """Return the Python function behind what the driver calls; None if that is a C function."""
    return kept.get(data) if address == _RUN else None


atexit.register(lib.ccc_end_calls)
