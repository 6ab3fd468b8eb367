# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Functions of the host that the driver calls, in graphs and in streams: the whole protocol.

The driver calls ``ccc_host_call`` (``include/ccc_keep.h``) in a thread of its own, with the keep of a function. That
calls the function: one of C without the GIL; for one of Python it is ``ccc_host_run``, with a token, which takes the
GIL and calls what is kept under the token. No driver function may be called in such a thread. So whatever Python
collects there is destroyed later, elsewhere.

A graph calls its functions as often as it runs, and has a keep for each. A stream calls a function once, through
``ccc_host_call_once``, which queues the keep. In neither case is anything let go of in the driver's thread: what is
queued there goes when the package next looks (see ``_retain.py``).

What a Python function raises is put into ``raised``, with the stream that called it, and raised by the next call that
waits for that stream: its ``sync``, that of an event recorded in it, or ``Device.sync``. Functions do not know in which
stream their graph runs: what they raise, any such call raises. What is left at exit goes to ``sys.unraisablehook``.

At exit no more functions are called, and those that run are waited for. A child of ``fork()`` inherits neither
functions that are still to be called nor exceptions.
"""

from __future__ import annotations

import atexit
import gc
import itertools
import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple

from cuda_core_cffi._dtypes import holds_objects
from cuda_core_cffi._ffi import ffi, lib
from cuda_core_cffi._keepalive import register_after_sync
from cuda_core_cffi._registry import registry
from cuda_core_cffi._retain import NOTHING, Operand, kept, new_token, settle, settle_after_sync
from cuda_core_cffi._stream import Stream, address_of
from cuda_core_cffi._wake import run_tasks

__all__ = ["HostFunction", "call_in_stream", "host_function", "python_function"]

PROTOTYPE = "void(*)(void *)"
PYTHON_API = 4  # FUNCFLAG_PYTHONAPI of ctypes

_RUN = int(lib.ccc_host_function())
_call = lib.ccc_stream_call
_source = lib.ccc_source
_numbers = itertools.count()


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


raised: dict[int, tuple[int, BaseException]] = {}
"""What Python functions have raised, and nobody was told yet: the stream (0 for a graph) and the exception."""


def keep_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Keep what a function has raised; the outermost frame, that of ``ccc_call_python``, knows the stream."""
    source = trace.tb_frame.f_locals.get("source", 0) if trace else 0
    raised[next(_numbers)] = (source, error.with_traceback(trace))


@ffi.def_extern(onerror=keep_error)  # type: ignore[untyped-decorator]
def ccc_call_python(token: int, source: int) -> None:
    """Call a Python function, in a thread of the driver's."""
    kept[token]()


def take_raised(waited: Any) -> list[BaseException]:
    """Return what functions of graphs, and of a stream, have raised. A box tells which stream, or event; NULL: all."""
    source = _source(waited) if waited else 0
    errors = []
    for number, (origin, _) in raised.copy().items():
        if not waited or origin in (0, source):
            found = raised.pop(number, None)
            if found:  # else another thread was told
                errors.append(found[1])
    return errors


def raise_pending(waited: Any) -> None:
    """Raise what :func:`take_raised` finds, if anything, and do what the functions left for later."""
    run_tasks()
    if not raised:
        return
    errors = take_raised(waited)
    if len(errors) == 1:
        raise errors.pop()  # a reference kept here would keep what the traceback refers to
    if errors:
        raise BaseExceptionGroup("several host callbacks raised", errors)


def call_in_stream(stream: Stream, fn: Any, user_data: Any) -> None:
    """Have a stream call a function: :meth:`Stream.callback`."""
    function = host_function(fn, user_data)
    settle_after_sync()
    settle()
    status = _call(stream._box, *function)
    if status:
        kept.pop(function.token, None)
        raise stream._failure(status)


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
    register_after_sync(raise_pending)  # programs without such functions need not look
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
            view = memoryview(user_data)
        except TypeError:
            raise TypeError(
                f"user_data must be an address or bytes-like, not {type(user_data).__name__}: {user_data!r}"
            ) from None
        if holds_objects(user_data, view):
            raise TypeError(f"user_data of type {type(user_data).__name__} holds references to Python objects")
        copy = ffi.new("char[]", bytes(view))
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


class HostCallbackRaised:
    """Has Python hand an exception to ``sys.unraisablehook``: what a finalizer raises goes there."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __del__(self) -> None:
        raise self.error


def end_calls() -> None:
    """Call nothing any more; what nobody was told of is told."""
    lib.ccc_end_calls()
    for error in take_raised(NOTHING):
        HostCallbackRaised(error)
        gc.collect()  # for PyPy, whose finalizers would run too late


def forget_in_child() -> None:
    """After a fork: threads, what the driver calls, and what that raised, are the parent's."""
    lib.ccc_forget_threads()
    raised.clear()


registry.call_in_stream = call_in_stream
atexit.register(end_calls)
os.register_at_fork(after_in_child=forget_in_child)
