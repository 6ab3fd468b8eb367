# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The calls that programs make most: in C on CPython, where that is faster than CFFI, and in Python elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING or sys.implementation.name == "cpython":
    from cuda_core_cffi._calls import *  # noqa: F403  # tests compare the names
    from cuda_core_cffi._calls import lift
else:
    from cuda_core_cffi._core.python_calls import *  # noqa: F403
    from cuda_core_cffi._core.python_calls import lift

T = TypeVar("T")


def native(failed: Callable[..., Any] | None = None) -> Callable[[T], T]:
    """Have the C function of the same qualified name stand before the decorated one, its body, on CPython.

    The C function handles the usual arguments. With others it calls the body, before it has done anything. On PyPy
    there is only the body.

    Parameters
    ----------
    failed : callable, optional
        Called with the status and the arguments after a failure in C. It raises the exception, or returns the result.

    Raises
    ------
    RuntimeError
        If there is no C function of that name, or it has a body already.
    """
    return lambda body: lift(body, failed)
