# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Results of functions of cuda-bindings, which programs written for ``cuda.core`` have checked by it."""

from __future__ import annotations

import importlib
from typing import Any

from cuda_core_cffi._core.errors import CUDAError, NVRTCError, raise_if_driver_error
from cuda_core_cffi._core.errors import handle_return as handle_return_of_ours


def handle_return(result: tuple[Any, ...], handle: Any = None) -> object:
    """Check the result of a function of cuda-bindings, or of :mod:`cuda_core_cffi.driver`, and return its values.

    Parameters
    ----------
    result : tuple
        What the function returned: a ``CUresult``, ``cudaError_t`` or ``nvrtcResult``, then the values.
    handle : nvrtcProgram, optional
        The program whose log an error of NVRTC shows.

    Returns
    -------
    object
        None where there are no values, the value where there is one, else a tuple of them.

    Raises
    ------
    CUDAError
        If a function of the driver or of the runtime has failed.
    NVRTCError
        If a function of NVRTC has.
    """
    status = result[0] if isinstance(result, tuple | list) and result else 0
    kind = type(status).__name__
    if kind == "nvrtcResult":
        raise_if_nvrtc_error(status, handle)
    elif kind == "cudaError_t":
        raise_if_runtime_error(status)
    elif kind == "CUresult":
        raise_if_driver_error(int(status))
    return handle_return_of_ours((0, *result[1:]) if kind in ("nvrtcResult", "cudaError_t") else result)


def raise_if_runtime_error(status: Any) -> None:
    """Raise for a ``cudaError_t`` that is no success."""
    if int(status) == 0:
        return
    runtime = importlib.import_module("cuda.bindings.runtime")
    _, text = runtime.cudaGetErrorString(status)
    raise failure(CUDAError, status, text)


def raise_if_nvrtc_error(status: Any, program: Any) -> None:
    """Raise for an ``nvrtcResult`` that is no success, with the log of the program if that is given."""
    if int(status) == 0:
        return
    nvrtc = importlib.import_module("cuda.bindings.nvrtc")
    _, text = nvrtc.nvrtcGetErrorString(status)
    log = ""
    if program is not None:
        failed, size = nvrtc.nvrtcGetProgramLogSize(program)
        if int(failed) == 0 and size > 1:
            buffer = b" " * size
            nvrtc.nvrtcGetProgramLog(program, buffer)
            log = "; the log says:\n" + buffer.rstrip(bytes(1)).decode(errors="replace")
    raise failure(NVRTCError, status, text, log)


def failure(kind: type[CUDAError], status: Any, text: bytes | None, log: str = "") -> CUDAError:
    """Return the exception for a status of cuda-bindings."""
    error = kind(f"{status.name} ({int(status)}): {(text or b'unknown').decode(errors='replace')}{log}")
    error.status, error.name = int(status), status.name
    return error
