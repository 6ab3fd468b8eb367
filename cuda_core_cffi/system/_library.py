# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Calls of NVML: the library is initialised before the first one, and an error status is raised.

NVML is initialised once in a process, and never shut down: it ends with the process. A child of ``fork()`` initialises
it anew with its first call.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, TypeVarTuple

from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi.system._header import missing, nvml
from cuda_core_cffi.system.exceptions import failure

__all__ = [
    "call",
    "initialise",
    "process",
    "reads_number",
    "reads_number_of",
    "reads_structure",
    "reads_text",
    "status_of",
    "value",
    "values",
]

P = ParamSpec("P")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Process:
    """What is known of this process.

    Attributes
    ----------
    ready : bool
        Whether NVML is initialised in it.
    generation : object
        Another object in each child of ``fork()``. What NVML made for the parent has the parent's.
    lock : threading.Lock
        Held while NVML is initialised.
    """

    __slots__ = ("generation", "lock", "ready")

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forget what the parent knew. Its lock may have been held by a thread that the child does not have."""
        self.ready = False
        self.generation = object()
        self.lock = threading.Lock()


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


def reads_number(name: str) -> Callable[[int], int]:
    """Return what asks for a number.

    Parameters
    ----------
    name : str
        A function of NVML that takes a handle, and a pointer to 32 bits.

    Returns
    -------
    callable
        It takes the handle, and returns the number. It raises :class:`NvmlError` if the call fails.
    """
    if name not in vars(nvml):
        return lambda handle: missing(name)
    function, ask = lib.ccc_nvml_find(name.encode()), lib.ccc_nvml_number

    def read(handle: int) -> int:
        if not process.ready:
            initialise()
        result: int = ask(function, handle)
        if result < 0:
            raise failure(-result, name)
        return result

    return read


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
    if name not in vars(nvml):
        return lambda handle, *asked: missing(name)
    function, ask = lib.ccc_nvml_find(name.encode()), lib.ccc_nvml_number_of
    ask_two = lib.ccc_nvml_number_of_two

    def read(handle: int, argument: int) -> int:
        if not process.ready:
            initialise()
        result: int = ask(function, handle, argument)
        if result < 0:
            raise failure(-result, name)
        return result

    def read_two(handle: int, first: int, second: int) -> int:
        if not process.ready:
            initialise()
        result: int = ask_two(function, handle, first, second)
        if result < 0:
            raise failure(-result, name)
        return result

    return read if arguments == 1 else read_two


def reads_structure(name: str, structure: str) -> Callable[[int], Any]:
    """Return what asks for a structure.

    Parameters
    ----------
    name : str
        A function of NVML that takes a handle, and a pointer to a structure without inputs.
    structure : str
        The type of the structure.

    Returns
    -------
    callable
        It takes the handle, and returns a CFFI pointer to a new structure. It raises :class:`NvmlError` if the call
        fails.
    """
    if not {name, structure} <= vars(nvml).keys():
        return lambda handle: missing(name)
    function, fill = lib.ccc_nvml_find(name.encode()), lib.ccc_nvml_fill
    new, ctype = ffi.new, ffi.typeof(structure + " *")
    version: int = vars(nvml).get(structure.removesuffix("_t"), 0)

    def read(handle: int) -> Any:
        if not process.ready:
            initialise()
        record = new(ctype)
        status = fill(function, handle, record, version)
        if status:
            raise failure(status, name)
        return record

    return read


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
    function, fill = lib.ccc_nvml_find(name.encode()), lib.ccc_nvml_text
    new, string, ctype, length = ffi.new, ffi.string, ffi.typeof("char[]"), getattr(nvml, size)

    def read(handle: int) -> str:
        if not process.ready:
            initialise()
        text = new(ctype, length)
        status = fill(function, handle, text, length)
        if status:
            raise failure(status, name)
        return str(string(text), "utf-8", "replace")

    return read
