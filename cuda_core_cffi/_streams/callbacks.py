# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Functions of the host that the driver calls, in graphs and in streams: the whole protocol.

The driver calls ``ccc_host_call`` (``include/streams/ccc_host_call.h``) in a thread of its own, with the keep of a
function. That calls the function: one of C without the GIL; for one of Python it is ``ccc_host_run``
(``include/python/ccc_background.h``), with a token, which takes the GIL and calls the object that is kept under the
token. No driver function may be called in that thread, so the objects that Python collects there are destroyed later,
in another thread.

A graph calls its functions as often as it runs, and has references for each. A stream calls a function once, through
``ccc_host_call_once``, which queues the keep. In neither case is anything released in the driver's thread: what is
queued there goes when the package next looks, or by the release thread (see
``cuda_core_cffi/_lifetime/references.py``).

What a Python function raises is put into ``raised``, with the stream that called it, and raised by the next call that
waits for that stream: its ``sync``, that of an event recorded in it, or ``Device.sync``. Functions do not know in which
stream their graph runs: what they raise, any such call raises. A program may close its streams without waiting, or wait
with another library: only ``MOST_RAISED`` exceptions are kept, and ``sys.unraisablehook`` gets the oldest of more. At
exit it gets the rest.

At exit no more functions are called, and those that run are waited for. A child of ``fork()`` inherits neither
functions that are still to be called nor exceptions.
"""

from __future__ import annotations

import atexit
import gc
import itertools
import numbers
import operator
import os
from collections.abc import Callable, MutableMapping
from types import TracebackType
from typing import Any, NamedTuple

from cuda_core_cffi._core.c_functions import Prototype, c_function_address
from cuda_core_cffi._core.dtypes import holds_objects
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.integers import address_of
from cuda_core_cffi._core.locks import new_lock
from cuda_core_cffi._core.registry import registry
from cuda_core_cffi._lifetime.host_memory import register_after_sync
from cuda_core_cffi._lifetime.pending_calls import Unraisable, run_tasks
from cuda_core_cffi._lifetime.references import NOTHING, Operand, flush_after_sync, flush_releases, kept, new_token
from cuda_core_cffi._lifetime.table import new_table
from cuda_core_cffi._streams.stream import Stream

PROTOTYPE = Prototype("void(*)(void *)", None, "c_void_p")

MOST_RAISED = 256  # exceptions that are kept for calls that wait; each keeps the frames of its traceback

_RUN = int(lib.ccc_host_function())
_call = lib.ccc_stream_call
_source = lib.ccc_source
_lock = new_lock()  # for what was raised
_numbers = itertools.count()


class HostFunction(NamedTuple):
    """A function for the driver to call."""

    address: int  # the C function
    data: int  # what it gets: an address, or a token
    token: int  # under which the Python objects are kept; 0 where there are none

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Nothing but Python objects is kept, under the token."""
        return ()


raised: MutableMapping[int, list[tuple[int, BaseException]]] = new_table()
"""What Python functions have raised, and nobody was told yet, by stream (0 for a graph): a number and the exception."""


def keep_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Keep what a function has raised; the outermost frame, that of ``ccc_call_python``, knows the stream."""
    source = trace.tb_frame.f_locals.get("source", 0) if trace else 0
    item = next(_numbers), error.with_traceback(trace)
    oldest = None
    with _lock:
        raised.setdefault(source, []).append(item)
        if sum(map(len, raised.values())) > MOST_RAISED:
            oldest = pop_oldest()
    if oldest is not None:
        Unraisable(oldest)  # with no lock held: this calls the program's hook


def pop_oldest() -> BaseException:
    """Return the exception that was raised first. The lock is held, and there is one."""
    source = min(raised, key=lambda source: raised[source][0][0])
    _, error = raised[source].pop(0)
    if not raised[source]:
        del raised[source]
    return error


@ffi.def_extern(onerror=keep_error)  # type: ignore[untyped-decorator]
def ccc_call_python(token: int, source: int) -> None:
    """Call a Python function, in a thread of the driver's."""
    kept[token]()


def pop_raised(waited: Any) -> list[BaseException]:
    """Return what functions of graphs, and of a stream, have raised: the C handle of the stream or event; NULL: all."""
    source = _source(waited) if waited else 0
    with _lock:
        sources = {0, source} if waited else set(raised)
        found = [item for source in sources if source in raised for item in raised.pop(source)]
    return [error for _, error in sorted(found, key=operator.itemgetter(0))]


def raise_pending(waited: Any) -> None:
    """Raise what :func:`pop_raised` finds, if anything, and do what the functions left for later."""
    run_tasks()
    if not raised:
        return
    errors = pop_raised(waited)
    if len(errors) == 1:
        raise errors.pop()  # a reference kept here would keep what the traceback refers to
    if errors:
        raise BaseExceptionGroup("several host callbacks raised", errors)


def call_in_stream(stream: Stream, fn: Any, user_data: Any) -> None:
    """Have a stream call a function: :meth:`Stream.callback`."""
    function = host_function(fn, user_data)
    flush_after_sync()
    flush_releases()
    status = _call(stream._c_handle, *function)
    if status:
        kept.pop(function.token, None)
        raise stream._failure(status)


def host_function(fn: Any, user_data: Any) -> HostFunction:
    """Return a Python callable without arguments, or a C function, as something that the driver can call.

    A C function gets the user data: an address, or bytes, which are copied.
    """
    address = c_function_address(fn, PROTOTYPE)
    if address is not None:
        return c_function(fn, address, user_data)
    if not callable(fn):
        raise TypeError(f"fn must be callable, not {type(fn).__name__}")
    if user_data is not None:
        raise ValueError("user_data is for C functions; bind the arguments of a Python function with functools.partial")
    register_after_sync(raise_pending)  # programs without such functions need not look
    token = new_token(fn)
    return HostFunction(_RUN, token, token)


def c_function(fn: Any, address: int, user_data: Any) -> HostFunction:
    """Return a C function with its data; both are kept."""
    data = 0
    objects = [fn]
    if isinstance(user_data, ffi.CData | numbers.Integral):  # arrays of NumPy have __index__, and are bytes-like
        data = address_of(user_data, None)
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


def python_function(address: int, data: int) -> Callable[[], Any] | None:
    """Return the Python function behind what the driver calls; None if that is a C function."""
    return kept.get(data) if address == _RUN else None


def end_calls() -> None:
    """Call nothing any more; what nobody was told of is told."""
    lib.ccc_end_calls()
    for error in pop_raised(NOTHING):
        Unraisable(error)
        gc.collect()  # for PyPy, whose finalizers would run too late


def forget_in_child() -> None:
    """After a fork: threads, what the driver calls, and what that raised, are the parent's."""
    lib.ccc_forget_threads()
    raised.clear()


registry.call_in_stream = call_in_stream
atexit.register(end_calls)
os.register_at_fork(after_in_child=forget_in_child)
