# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Calls of NVML: the library is initialised before the first one, and an error status is raised.

NVML is initialised once in a process, and never shut down: it ends with the process. A child of ``fork()`` initialises
it anew with its first call.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar, TypeVarTuple, cast, overload

from cuda_core_cffi._core.calls import blank
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.locks import new_lock
from cuda_core_cffi.system._header import missing, nvml
from cuda_core_cffi.system._readers import TEXT, UNSIGNED, Answer, NvmlValue, nvml_reader
from cuda_core_cffi.system.exceptions import failure

P = ParamSpec("P")
S = TypeVar("S", bound=NvmlValue)
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Meanings(NamedTuple, Generic[T]):
    """What a reader returns in the place of a number, and in the place of all others."""

    numbers: Mapping[int, T]
    other: T


IS_NOT_ZERO = Meanings({0: False}, True)
IS_ENABLED = Meanings({int(nvml.nvmlEnableState_t.NVML_FEATURE_ENABLED): True}, False)

NUMBER: Answer = ("", UNSIGNED, 0, 4)
INTEGERS = {(4, False): UNSIGNED, (4, True): "i", (8, False): "Q", (8, True): "q"}
"""Codes of integers by size in bytes, and whether they have a sign."""
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


def call(function: Callable[P, tuple[int]], *arguments: P.args, **others: P.kwargs) -> None:
    """Call a function of NVML that returns nothing but a status.

    Parameters
    ----------
    function : callable
        A function of :mod:`cuda_core_cffi.nvml`.
    *arguments, **others
        What it takes.

    Raises
    ------
    NvmlError
        If the call fails.
    """
    if not process.ready:
        initialise()
    status = function(*arguments, **others)[0]
    if status:
        raise failure(status, function.__name__)


def value(function: Callable[P, tuple[int, T]], *arguments: P.args, **others: P.kwargs) -> T:
    """Call a function of NVML that returns a value.

    Parameters
    ----------
    function : callable
        A function of :mod:`cuda_core_cffi.nvml`.
    *arguments, **others
        What it takes.

    Returns
    -------
    object
        The value.

    Raises
    ------
    NvmlError
        If the call fails.
    """
    if not process.ready:
        initialise()
    status, result = function(*arguments, **others)
    if status:
        raise failure(status, function.__name__)
    return result


def values(function: Callable[P, tuple[int, *Ts]], *arguments: P.args, **others: P.kwargs) -> tuple[*Ts]:
    """Call a function of NVML that returns several values.

    Parameters
    ----------
    function : callable
        A function of :mod:`cuda_core_cffi.nvml`.
    *arguments, **others
        What it takes.

    Returns
    -------
    tuple
        The values.

    Raises
    ------
    NvmlError
        If the call fails.
    """
    if not process.ready:
        initialise()
    result = function(*arguments, **others)
    if result[0]:
        raise failure(result[0], function.__name__)
    return result[1:]


def status_of(function: Callable[P, tuple[int, *Ts]], *arguments: P.args, **others: P.kwargs) -> tuple[int, *Ts]:
    """Call a function of NVML some of whose error statuses are answers.

    Parameters
    ----------
    function : callable
        A function of :mod:`cuda_core_cffi.nvml`.
    *arguments, **others
        What it takes.

    Returns
    -------
    tuple
        The status and the values.
    """
    if not process.ready:
        initialise()
    return function(*arguments, **others)


# What programs ask for again and again. A reader has the number of its function, and no layer in between.


@overload
def reads_number(name: str) -> Callable[[int], int]: ...
@overload
def reads_number(name: str, meanings: Meanings[T]) -> Callable[[int], T]: ...
def reads_number(name: str, meanings: Meanings[Any] | None = None) -> Callable[[int], Any]:
    """Return what asks for a number.

    Parameters
    ----------
    name : str
        A function of NVML that takes a handle, and a pointer to 32 bits.
    meanings : Meanings, optional
        What is returned in the place of a number.

    Returns
    -------
    callable
        It takes the handle, and returns the number, or its meaning. It raises :class:`NvmlError` if the call fails.
    """
    return reader(name, lib.CCC_NVML_OUTPUT, "unsigned int[1]", (NUMBER,), meanings=meanings)


def reads_number_of(name: str, arguments: int = 1) -> Callable[..., int]:
    """Return what asks for one of several numbers.

    Parameters
    ----------
    name : str
        A function of NVML that takes a handle, one or two integers without a sign, and a pointer to 32 bits.
    arguments : int
        How many integers it takes.

    Returns
    -------
    callable
        It takes the handle and the integers, and returns the number. It raises :class:`NvmlError` if the call fails.
    """
    form = lib.CCC_NVML_OUTPUT_OF if arguments == 1 else lib.CCC_NVML_OUTPUT_OF_TWO
    return reader(name, form, "unsigned int[1]", (NUMBER,))


def reads_system_text(name: str, size: str) -> Callable[[], str]:
    """Return what asks for a text that is not that of a device.

    Parameters
    ----------
    name : str
        A function of NVML that takes an array of characters, and its size.
    size : str
        The macro for the size.

    Returns
    -------
    callable
        It returns the text. It raises :class:`NvmlError` if the call fails.
    """
    length: int = getattr(nvml, size)
    return reader(name, lib.CCC_NVML_SYSTEM_TEXT, f"char[{length}]", (("", TEXT, 0, length),))


def reads_total(name: str) -> Callable[[], int]:
    """Return what asks for a number that is not that of a device.

    Parameters
    ----------
    name : str
        A function of NVML that takes a pointer to 32 bits.

    Returns
    -------
    callable
        It returns the number. It raises :class:`NvmlError` if the call fails.
    """
    return reader(name, lib.CCC_NVML_TOTAL, "unsigned int[1]", (NUMBER,))


@overload
def reads_pair(name: str) -> Callable[[int], tuple[int, int]]: ...
@overload
def reads_pair(name: str, meanings: Meanings[T]) -> Callable[[int], tuple[T, T]]: ...
def reads_pair(name: str, meanings: Meanings[Any] | None = None) -> Callable[[int], tuple[Any, Any]]:
    """Return what asks for two numbers.

    Parameters
    ----------
    name : str
        A function of NVML that takes a handle, and two pointers to 32 bits.
    meanings : Meanings, optional
        What is returned in the place of a number.

    Returns
    -------
    callable
        It takes the handle, and returns the numbers, or their meanings. It raises :class:`NvmlError` if the call fails.
    """
    return reader(name, lib.CCC_NVML_PAIR, "unsigned int[2]", (NUMBER, ("", UNSIGNED, 4, 4)), meanings=meanings)


def reads_one_of_pair(name: str, index: int, meanings: Meanings[T]) -> Callable[[int], T]:
    """Return what asks for one of two numbers.

    Parameters
    ----------
    name : str
        A function of NVML that takes a handle, and two pointers to 32 bits.
    index : int
        0 for the first number, 1 for the second.
    meanings : Meanings
        What is returned in the place of the number.

    Returns
    -------
    callable
        It takes the handle, and returns the meaning. It raises :class:`NvmlError` if the call fails.
    """
    return reader(name, lib.CCC_NVML_PAIR, "unsigned int[2]", (("", UNSIGNED, 4 * index, 4),), meanings=meanings)


def reads_text(name: str, size: str) -> Callable[[int], str]:
    """Return what asks for a text.

    Parameters
    ----------
    name : str
        A function of NVML that takes a handle, an array of characters, and its size.
    size : str
        The macro for the size.

    Returns
    -------
    callable
        It takes the handle, and returns the text. It raises :class:`NvmlError` if the call fails.
    """
    length: int = getattr(nvml, size)
    return reader(name, lib.CCC_NVML_TEXT, f"char[{length}]", (("", TEXT, 0, length),))


@overload
def reads_member(name: str, structure: str, member: str) -> Callable[[int], int]: ...
@overload
def reads_member(name: str, structure: str, member: str, meanings: Meanings[T]) -> Callable[[int], T]: ...
def reads_member(name: str, structure: str, member: str, meanings: Meanings[Any] | None = None) -> Callable[[int], Any]:
    """Return what asks for a member of a structure.

    Parameters
    ----------
    name : str
        A function of NVML that takes a handle, and a pointer to a structure without inputs.
    structure : str
        The type of the structure.
    member : str
        The member, a number.
    meanings : Meanings, optional
        What is returned in the place of a number.

    Returns
    -------
    callable
        It takes the handle, and returns the value of the member, or its meaning. It raises :class:`NvmlError` if the
        call fails.
    """
    if structure not in vars(nvml):
        return lambda handle: missing(name)
    answers = (answer_of(structure, member),)
    return reader(name, lib.CCC_NVML_OUTPUT, structure + " *", answers, structure, meanings=meanings)


def reads_member_text(name: str, structure: str, member: str) -> Callable[[int], str]:
    """Return what asks for a text in a structure.

    Parameters
    ----------
    name : str
        A function of NVML that takes a handle, and a pointer to a structure without inputs.
    structure : str
        The type of the structure.
    member : str
        The member, an array of characters.

    Returns
    -------
    callable
        It takes the handle, and returns the text. It raises :class:`NvmlError` if the call fails.
    """
    read: Callable[[int], Any] = reads_member(name, structure, member)
    return read


def reads_structure(name: str, structure: str, cls: type[S]) -> Callable[[int], S]:
    """Return what asks for a structure.

    Parameters
    ----------
    name : str
        A function of NVML that takes a handle, and a pointer to a structure without inputs.
    structure : str
        The type of the structure.
    cls : type
        The class of what is returned.

    Returns
    -------
    callable
        It takes the handle, and returns an instance of the class, which was not initialised, with the structure as its
        ``_record``. It raises :class:`NvmlError` if the call fails.
    """
    if structure not in vars(nvml):
        return lambda handle: missing(name)
    return reader(name, lib.CCC_NVML_OUTPUT, structure + " *", (), structure, cls)


def reads_packed(name: str, structure: str, cls: type[T]) -> Callable[[int], T]:
    """Return what asks for a structure of two numbers below 2 ** 31.

    It is as :func:`reads_structure`, but an instance has both numbers as its ``_packed``, the first in the lower 32
    bits: no structure has to be made.
    """
    if structure not in vars(nvml):
        return lambda handle: missing(name)
    question, failed, ask = question_of(name, lib.CCC_NVML_OUTPUT), after_failure_of(name), lib.ccc_nvml_pair

    def read(handle: int) -> T:
        while (packed := ask(question, handle)) < 0:
            failed(-packed)
        made: Any = blank(cls)
        made._packed = packed
        return cast("T", made)

    return read


def fills_array(name: str) -> Callable[[int, int, Any], None]:
    """Return what has an array filled.

    Parameters
    ----------
    name : str
        A function of NVML that takes a handle, a number of structures, and a pointer to so many.

    Returns
    -------
    callable
        It takes the handle, the number, and an array of CFFI. It raises :class:`NvmlError` if the call fails.
    """
    if name not in vars(nvml):
        return lambda handle, count, array: missing(name)
    question, failed, ask = question_of(name, lib.CCC_NVML_OUTPUT_OF), after_failure_of(name), lib.ccc_nvml_ask

    def fill(handle: int, count: int, array: Any) -> None:
        while status := ask(question, handle, count, 0, array):
            failed(status)

    return fill


def answer_of(structure: str, member: str) -> Answer:
    """Return what a reader needs to know of a member of a structure."""
    field = dict(ffi.typeof(structure).fields)[member]
    size = ffi.sizeof(field.type)
    if field.type.kind == "array":
        return member, TEXT, field.offset, size
    has_sign = int(ffi.cast(field.type, -1)) < 0
    return member, INTEGERS[size, has_sign], field.offset, size


def reader(
    name: str,
    form: int,
    output: str,
    answers: tuple[Answer, ...],
    structure: str = "",
    cls: type[NvmlValue] | None = None,
    meanings: Meanings[Any] | None = None,
) -> Callable[..., Any]:
    """Return what asks NVML; see :func:`cuda_core_cffi.system._readers.nvml_reader`."""
    if name not in vars(nvml):
        return lambda *arguments: missing(name)
    ctype = ffi.typeof(output)
    question = question_of(name, form)
    question.version = vars(nvml).get(structure.removesuffix("_t"), 0)
    question.size = ffi.sizeof(structure or output)
    mapping = meanings and dict([*meanings.numbers.items(), (None, meanings.other)])
    return nvml_reader(question, answers, ctype, cls, mapping, after_failure_of(name))


def question_of(name: str, form: int) -> Any:
    """Return the question of a function, without what depends on the output."""
    question = ffi.new("ccc_nvml_question *")
    question.form = form
    question.function = lib.ccc_nvml_find(name.encode())
    return question


def after_failure_of(name: str) -> Callable[[int], None]:
    """Return what is called with the error status of a function: it raises, or returns to have it called again."""

    def failed(status: int) -> None:
        if status != UNINITIALIZED or process.ready:
            raise failure(status, name)
        initialise()

    return failed
