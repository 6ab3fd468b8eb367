# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""NVML, the NVIDIA Management Library, function by function.

Every function of ``nvml.h`` returns a tuple: the :class:`nvmlReturn_t`, then the outputs, which are not among the
arguments:

>>> from cuda_core_cffi import nvml
>>> nvml.nvmlInit()
(<nvmlReturn_t.NVML_SUCCESS: 0>,)
>>> err, count = nvml.nvmlDeviceGetCount()
>>> err, device = nvml.nvmlDeviceGetHandleByIndex(0)
>>> err, memory = nvml.nvmlDeviceGetMemoryInfo(device)
>>> 0 < memory.used <= memory.total
True
>>> nvml.nvmlShutdown()
(<nvmlReturn_t.NVML_SUCCESS: 0>,)

A name without a version is the newest that the header has, as in C: ``nvmlInit`` is ``nvmlInit_v2``. The conventions
are those of :mod:`cuda_core_cffi.driver`, and these:

- A structure that a function fills is an optional last argument and an output: given for its inputs, or new. Its
  field ``version`` is filled in where it is 0.
- ``char *`` with a length is an output of ``bytes``; the length stays an argument.
- An array with a count: the argument is the number of elements that there is room for, and 0 asks for the number that
  there are. Outputs are that number, also where the room was too small (``NVML_ERROR_INSUFFICIENT_SIZE``), and a list.
- The structures in a list for ``nvmlDeviceGetFieldValues`` are changed in place.

The library is found when the first function is called: the simulated one where the simulated driver is chosen, else
``libnvidia-ml.so.1``. Where it is missing, every function returns ``NVML_ERROR_LIBRARY_NOT_FOUND``; a function that the
installed one lacks returns ``NVML_ERROR_FUNCTION_NOT_FOUND``. :func:`explain_missing` says why.
"""

from __future__ import annotations

from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._raw import nvml_generated as _generated
from cuda_core_cffi._raw.convert import string
from cuda_core_cffi._raw.nvml_generated import *  # noqa: F403
from cuda_core_cffi._raw.nvml_generated import nvmlSystemGetDriverVersion

__all__: list[str] = ["explain_missing", "nvmlErrorString"]
__all__ += _generated.__all__


def nvmlErrorString(result: int) -> bytes | None:
    """Return what NVML says of a status.

    Parameters
    ----------
    result : int
        A :class:`nvmlReturn_t`.

    Returns
    -------
    bytes or None
        A text; None where there is no NVML.
    """
    return string(lib.ccc_nvml_error_string(int(result)))


def explain_missing(function: str) -> str:
    """Return why a function could not be called, after it returned that the library or the function is missing.

    Parameters
    ----------
    function : str
        Its name.

    Returns
    -------
    str
        A sentence that names the library, and from which version on it has the function.
    """
    name = ffi.string(lib.ccc_nvml_name()).decode()
    error = ffi.string(lib.ccc_nvml_error()).decode()
    _, version = nvmlSystemGetDriverVersion(_generated.NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE)
    if version is None:
        return f"NVML could not be used: {name!r} could not be loaded ({error}); it comes with the NVIDIA driver"
    since = _generated._SINCE.get(_generated._NAMES.get(function, function), "12.0")
    return (
        f"{function} is not in the installed NVML ({name!r}, driver {version.decode()}): it came with the driver of "
        f"CUDA {since}; update the NVIDIA driver"
    )
