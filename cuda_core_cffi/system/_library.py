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
from typing import ParamSpec, TypeVar, TypeVarTuple

from cuda_core_cffi.system._header import nvml
from cuda_core_cffi.system.exceptions import failure

__all__ = ["call", "initialise", "process", "status_of", "value", "values"]

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
