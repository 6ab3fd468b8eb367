# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""For code that builds on this package: its C header, its functions for C, and its CFFI declarations."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING

from cuda_core_cffi._core.ffi import ffi, lib

if TYPE_CHECKING:
    from cffi import FFI

MODULE = "cuda_core_cffi._cuda"
PACKAGE = pathlib.Path(__file__).parent.parent


def get_include() -> str:
    """Return the folder of ``cuda_core_cffi.h``, which needs a ``cuda.h`` of the user's own.

    Returns
    -------
    str
        An absolute path.
    """
    return str(PACKAGE / "include")


def get_c_api() -> int:
    """Return the address of the ``ccc_api`` structure: functions for C code that keeps our objects alive.

    Returns
    -------
    int
        The address, which stays valid as long as the process lives.
    """
    return int(ffi.cast("uintptr_t", lib.ccc_get_api()))


def make_ffi(nvml: bool = False) -> FFI:
    """Make a build-time ``FFI`` that another CFFI builder can include.

    Parameters
    ----------
    nvml : bool, default False
        Whether to declare the types of NVML too. The C source of the builder then has to include ``nvml.h``.

    Returns
    -------
    cffi.FFI
        Declares every type of the driver's API that this package was built with. In C, structures are taken by pointer
        and enumerations as integers, so that any version of ``cuda.h`` will do. At run time, functions and constants
        of the driver are there as well.

    Examples
    --------
    In a builder of an API-mode extension, whose C source includes ``cuda.h``::

        builder = cffi.FFI()
        builder.include(cuda_core_cffi.make_ffi())
        builder.cdef("int my_function(CUstream stream);")
        builder.set_source("_my_extension", source, include_dirs=[cuda_include])

    The compiled module takes the typed handles of this package (``stream.cdata``) without casts.
    """
    import cffi  # only builders need the compile-time half of cffi, and its parser

    names = ("types.cdef", "nvml_types.cdef") if nvml else ("types.cdef",)
    cdef = "".join((PACKAGE / "_raw" / name).read_text(encoding="utf-8") for name in names)
    builder = cffi.FFI()
    builder.cdef(cdef)
    builder.set_source(MODULE, "")  # never compiled: None would mean a module without C, which C cannot include
    return builder
