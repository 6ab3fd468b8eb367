# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Calls of NVML: the library is initialised before the first one, and an error status is raised.

NVML is initialised once in a process, and never shut down: it ends with the process. A child of ``fork()`` initialises
it anew with its first call. A name that the header of this build lacks is an error when it is used.

Readers, which the ``reads_`` functions make, ask NVML for one number, text or structure. They take an object that has
a handle of NVML as its ``_handle``, so that a reader is all that a property needs.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from operator import attrgetter
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, Protocol, TypeVar, TypeVarTuple

from cuda_core_cffi import nvml as complete
from cuda_core_cffi._core.calls import new_object
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.locks import new_lock
from cuda_core_cffi.system.exceptions import FunctionNotFoundError, failure

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Ts = TypeVarTuple("Ts")

FORMS = (lib.CCC_NVML_OUTPUT, lib.CCC_NVML_OUTPUT_OF, lib.CCC_NVML_OUTPUT_OF_TWO)
"""Forms of calls, by how many numbers they take beside the handle."""
ATTEMPTS = 16
MARGIN = 8  # more items may come between two calls


def missing(name: str) -> NoReturn:
    """Say that the header lacks a function, or a structure that one needs.

    Raises
    ------
    FunctionNotFoundError
        If it is a name of NVML.
    AttributeError
        If it is none.
    """
    if not name.startswith(("nvml", "NVML_")):
        raise AttributeError(f"NVML has no {name!r}")
    status = complete.nvmlReturn_t.NVML_ERROR_FUNCTION_NOT_FOUND
    error = FunctionNotFoundError(
        f"{name} is not in the nvml.h that cuda-core-cffi was built with: build it with that of a newer CUDA"
    )
    error.call, error.status, error.name = name, int(status), status.name
    raise error


if TYPE_CHECKING:
    nvml = complete
else:
    nvml = ModuleType(complete.__name__, complete.__doc__)
    vars(nvml).update(vars(complete), __getattr__=missing)


ENABLED, DISABLED = nvml.nvmlEnableState_t.NVML_FEATURE_ENABLED, nvml.nvmlEnableState_t.NVML_FEATURE_DISABLED
UNINITIALIZED = nvml.nvmlReturn_t.NVML_ERROR_UNINITIALIZED


class Process:
    """What is known of this process.

    Attributes
    ----------
    generation : object
        Another object in each child of ``fork()``. What NVML made for the parent has the parent's.
    lock : threading.RLock
        Held while NVML is initialised.
    """

    __slots__ = ("generation", "lock")

    def __init__(self) -> None:
        self.lock = new_lock()
        self.begin()

    def begin(self) -> None:
        """Forget what the parent knew."""
        self.generation = object()

    @property
    def ready(self) -> bool:
        """Whether NVML is initialised in the process. A child of ``fork()`` starts anew."""
        return bool(lib.ccc_nvml_is_ready())

    @ready.setter
    def ready(self, ready: bool) -> None:
        lib.ccc_nvml_set_ready(ready)


process = Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=process.begin)


def initialise() -> None:
    """Initialise NVML, unless that was done in this process.

    Raises
    ------
    LibraryNotFoundError
        If there is no NVML library.
    NvmlError
        If NVML cannot be initialised.
    """
    with process.lock:
        if not process.ready:
            (status,) = nvml.nvmlInit_v2()
            if status:
                raise failure(status, "nvmlInit_v2")
            process.ready = True


def status_of(function: Callable[P, tuple[int, *Ts]], *arguments: P.args, **others: P.kwargs) -> tuple[int, *Ts]:
    """Call a function of NVML some of whose error statuses are answers: return the status and the values."""
    if not process.ready:
        initialise()
    return function(*arguments, **others)


def values(function: Callable[P, tuple[int, *Ts]], *arguments: P.args, **others: P.kwargs) -> tuple[*Ts]:
    """Call a function of NVML, and return its values. An error status raises :class:`NvmlError`."""
    if not process.ready:
        initialise()
    result = function(*arguments, **others)
    if result[0]:
        raise failure(result[0], function.__name__)
    return result[1:]


def value(function: Callable[P, tuple[int, T]], *arguments: P.args, **others: P.kwargs) -> T:
    """Call a function of NVML that returns one value; see :func:`values`."""
    return values(function, *arguments, **others)[0]


def call(function: Callable[P, tuple[int]], *arguments: P.args, **others: P.kwargs) -> None:
    """Call a function of NVML that returns nothing but a status; see :func:`values`."""
    values(function, *arguments, **others)


def counted(function: Callable[[int], tuple[int, int, list[T]]], name: str, room: int = 0) -> list[T]:
    """Return all that a function of NVML lists, however many there are.

    Parameters
    ----------
    function : callable
        Given a number, it returns the status, how many there are, and so many at most.
    name : str
        NVML's name of the function.
    room : int
        How many to ask for at first; 0 asks how many there are.

    Raises
    ------
    NvmlError
        If the call fails, or more come with each call.
    """
    for _ in range(ATTEMPTS):
        status, count, items = function(room)
        if not status and (room or not count):
            return items[:count]
        if status and status != nvml.nvmlReturn_t.NVML_ERROR_INSUFFICIENT_SIZE:
            break
        room = max(count, room) + (MARGIN if status else 0)
    raise failure(status, name)


def text_of(field: Any) -> str:
    """Return the text in an array of characters, which ends at the first zero: bytes, or what CFFI has."""
    text = field.partition(b"\0")[0] if isinstance(field, bytes) else ffi.string(field)
    return str(text, "utf-8", "replace")


def is_enabled(state: int) -> bool:
    """Return whether a state of NVML is on."""
    return state == ENABLED


class NumberReader(Protocol[T_co]):
    """A reader that takes up to two numbers beside the object."""

    def __call__(self, asked: Any, first: int = 0, second: int = 0, /) -> T_co: ...


def reads_number(name: str, meaning: Callable[[int], T], arguments: int = 0) -> NumberReader[T]:
    """Return a reader of a number of 32 bits.

    Parameters
    ----------
    name : str
        A function of NVML that takes a handle, integers without a sign, and a pointer to 32 bits.
    meaning : callable
        Given the number, it returns what the reader does.
    arguments : int
        How many integers the function takes.
    """
    if name not in vars(nvml):
        return lambda *arguments: missing(name)
    question, failed, ask = question_of(name, FORMS[arguments]), after_failure_of(name), lib.ccc_nvml_number

    def read(asked: Any, first: int = 0, second: int = 0) -> T:
        while (number := ask(question, asked._handle, first, second)) < 0:
            failed(-number)
        return meaning(number)

    return read


def reads_text(name: str, size: str) -> Callable[[Any], str]:
    """Return a reader of a text, from a function that takes a handle, characters and their number: a macro."""
    return reads_output(name, f"char[{getattr(nvml, size)}]", text_of, lib.CCC_NVML_TEXT)


def reads_structure(name: str, structure: str, cls: type[T]) -> Callable[[Any], T]:
    """Return a reader of a structure, which the ``_record`` of a new object of the class is."""

    def make(record: Any) -> T:
        made: Any = new_object(cls)
        made._record = record
        return made  # type: ignore[no-any-return]

    read = reads_output(name, structure, make)
    read.__annotations__ = {"return": cls.__name__}  # for tools that look up the type of a property
    return read


def reads_member(name: str, structure: str, member: str, meaning: Callable[[Any], T]) -> Callable[[Any], T]:
    """Return a reader of a member of a structure; ``meaning`` makes of its value what the reader returns."""
    return reads_output(name, structure, lambda record: meaning(getattr(record, member)))


def reads_output(
    name: str, ctype: str, make: Callable[[Any], T], form: int = lib.CCC_NVML_OUTPUT
) -> Callable[[Any], T]:
    """Return a reader of a structure, or an array, by its C type; ``make`` makes of it what the reader returns."""
    is_array = ctype.endswith("]")
    if name not in vars(nvml) or not (is_array or ctype in vars(nvml)):
        return lambda asked: missing(name)
    question, failed, ask, new = question_of(name, form, ctype), after_failure_of(name), lib.ccc_nvml_ask, ffi.new
    pointer = ffi.typeof(ctype if is_array else f"{ctype} *")

    def read(asked: Any) -> T:
        output = new(pointer)
        while status := ask(question, asked._handle, 0, 0, output):
            failed(status)
        return make(output)

    return read


def reads_packed(name: str, cls: type[T]) -> Callable[[Any], T]:
    """Return a reader of a structure of two numbers below 2 ** 31, for which no structure is made.

    A new object of the class has both as its ``_packed``, the first in the lower 32 bits.
    """
    if name not in vars(nvml):
        return lambda asked: missing(name)
    question, failed, ask = question_of(name, lib.CCC_NVML_OUTPUT), after_failure_of(name), lib.ccc_nvml_pair

    def read(asked: Any) -> T:
        while (packed := ask(question, asked._handle)) < 0:
            failed(-packed)
        made: Any = new_object(cls)
        made._packed = packed
        return made  # type: ignore[no-any-return]

    read.__annotations__ = {"return": cls.__name__}
    return read


def field(name: str) -> Callable[[Any], int]:
    """Return what reads a number in the ``_record`` of an object."""
    return attrgetter(f"_record.{name}")


def flag(name: str) -> Callable[[Any], bool]:
    """Return what reads a number in the ``_record`` of an object, which is 0 or not."""
    return lambda asked: bool(getattr(asked._record, name))


def question_of(name: str, form: int, ctype: str = "unsigned int") -> Any:
    """Return the question of a function, whose output has a type."""
    question = ffi.new("ccc_nvml_question *")
    question.form = form
    question.function = lib.ccc_nvml_find(name.encode())
    question.version = vars(nvml).get(ctype.removesuffix("_t"), 0)
    question.size = ffi.sizeof(ctype)
    return question


def after_failure_of(name: str) -> Callable[[int], None]:
    """Return what is called with the error status of a function: it raises, or returns to have it called again."""

    def failed(status: int) -> None:
        if status != UNINITIALIZED or process.ready:
            raise failure(status, name)
        initialise()

    return failed
