# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""C functions for the driver to call: function pointers of CFFI and functions of ctypes."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from cuda_core_cffi._core.ffi import ffi

PYTHON_API = 4  # FUNCFLAG_PYTHONAPI of ctypes


class Prototype(NamedTuple):
    """What a function has to be declared as.

    Attributes
    ----------
    c : str
        In C, as CFFI writes it.
    result : str or None
        The name of ctypes' type of the result; None for void.
    argument : str
        The name of ctypes' type of the one argument.
    """

    c: str
    result: str | None
    argument: str


def c_function_address(function: Any, prototype: Prototype) -> int | None:
    """Return the address of a C function; None for an object that is none.

    Raises
    ------
    TypeError
        If it is declared in another way, or is a CFFI object that is no function.
    ValueError
        If it is NULL.
    """
    ctypes = sys.modules.get("ctypes")
    if isinstance(function, ffi.CData):
        if (name := ffi.typeof(function).cname) != prototype.c:
            raise TypeError(f"a CFFI function must be a {prototype.c}, not a {name}")
        address: int | None = int(ffi.cast("uintptr_t", function))
    elif ctypes is not None and isinstance(function, ctypes._CFuncPtr):
        check_ctypes(function, prototype, ctypes)
        address = ctypes.cast(function, ctypes.c_void_p).value
    else:
        return None
    if not address:
        raise ValueError("the function is a NULL pointer")
    return address


def check_ctypes(function: Any, prototype: Prototype, ctypes: Any) -> None:
    """Raise unless a ctypes function is declared as one that the driver can call."""
    result = None if prototype.result is None else getattr(ctypes, prototype.result)
    declared = "None" if prototype.result is None else f"ctypes.{prototype.result}"
    wanted = (
        f"declare it as ctypes.CFUNCTYPE({declared}, ctypes.{prototype.argument}), the driver's "
        f"{prototype.c.replace('(*)', ' (*)')}"
    )
    if function.restype is not result:
        raise TypeError(f"the ctypes function returns {name_of(function.restype)}; {wanted}")
    if function.argtypes is None or list(function.argtypes) != [getattr(ctypes, prototype.argument)]:
        given = "unspecified" if function.argtypes is None else ", ".join(map(name_of, function.argtypes)) or "none"
        raise TypeError(f"the arguments of the ctypes function are {given}; {wanted}")
    if getattr(function, "_flags_", 0) & PYTHON_API:
        raise TypeError(f"the ctypes function expects the GIL, which the driver does not hold; {wanted}")


def name_of(ctype: Any) -> str:
    """Return what a ctypes type is called."""
    return str(getattr(ctype, "__name__", ctype))
