# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Errors: from a status to an exception that says what failed, why, and what to do."""

from __future__ import annotations

import atexit
import functools
import warnings
from typing import Any, TypeVar, TypeVarTuple, overload

from cuda_core_cffi._core.driver_log import explanation
from cuda_core_cffi._core.ffi import ffi, lib

# What the driver's own explanation does not say. By name: the numbers come from the header.
HINTS = {
    "CUDA_ERROR_OUT_OF_MEMORY": "close buffers that are no longer needed; memory freed in stream order comes back when "
    "the stream reaches that point; memory that pools and graphs keep comes back with trim() of the memory resource",
    "CUDA_ERROR_NOT_INITIALIZED": "create a Device first; in a child of fork(), use multiprocessing's spawn start "
    "method instead",
    "CUDA_ERROR_INVALID_CONTEXT": "call Device(n).set_current() in this thread first",
    "CUDA_ERROR_NO_DEVICE": "check that nvidia-smi lists a GPU and that CUDA_VISIBLE_DEVICES does not hide it, or "
    "choose the simulated driver with CUDA_CORE_CFFI_DRIVER=simulator",
    "CUDA_ERROR_INVALID_DEVICE": "device ordinals run from 0 to the number of visible devices - 1",
    "CUDA_ERROR_NO_BINARY_FOR_GPU": "compile for the device's architecture, or to PTX",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": "the PTX was made by a compiler newer than the driver: compile to cubin, or "
    "update the driver",
    "CUDA_ERROR_ILLEGAL_ADDRESS": "a kernel touched memory outside its allocations; the context is unusable from now "
    "on: restart the process, under compute-sanitizer to find the place",
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": "the block needs more registers or shared memory than there are: use fewer "
    "threads in a block, or less shared memory",
    "CUDA_ERROR_INVALID_CLUSTER_SIZE": "a cluster has 8 blocks at most, more only where the kernel's attribute "
    "non_portable_cluster_size_allowed says so, and exactly those that the kernel was compiled for",
    "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT": "an OpenGL context must be current in this thread, on the GPU of the "
    "current CUDA context",
    "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE": "all blocks of a cooperative launch must fit on the device at once: as "
    "many as kernel.occupancy tells for a multiprocessor, times the number of these",
    "CUDA_ERROR_NOT_PERMITTED": "a function that the driver calls must not call the driver back",
    "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED": "the operation cannot be captured in a graph",
    "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED": "something that was done since the capture began cannot be captured, or "
    "is prohibited in its mode; end the capture, and begin another",
    "CUDA_ERROR_STREAM_CAPTURE_UNJOINED": "streams that take part in the capture have work that nothing waits for: "
    "join the builders that came from split before the end",
    "CUDA_ERROR_STREAM_CAPTURE_MERGE": "work of one capture cannot wait for work of another",
    "CUDA_ERROR_STREAM_CAPTURE_ISOLATION": "what is captured cannot wait for work from before the capture",
    "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT": "the legacy default stream waits for the captured one: capture a stream that "
    "is nonblocking, or use another stream",
    "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD": "only a capture that began in the relaxed mode can end in another thread",
    "CUDA_ERROR_CAPTURED_EVENT": "the event was recorded in a capture, and says nothing of work that runs",
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": "the user-mode and kernel-mode drivers differ: reboot, or reinstall the "
    "driver",
    "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE": "the forward-compatibility libcuda does not support this GPU: remove "
    "it from the library path",
}

# On the simulated driver, whose log has named the kernel and the place.
SIMULATED_HINTS = {
    "CUDA_ERROR_ILLEGAL_ADDRESS": "the context is unusable from now on: restart the process; simulator.reports() "
    "lists the reports",
}

# Allocations in the wrong kind of stream, which no driver call was made for.
CAPTURE = {
    lib.CCC_CAPTURING: "the stream is being captured: what is allocated in a graph comes from a GraphMemoryResource",
    lib.CCC_NOT_CAPTURING: "the stream is not being captured: a GraphMemoryResource allocates in a GraphBuilder that "
    "is building, or a stream that takes part",
}

RESTORE = "cuCtxPopCurrent"  # how helpers make the former context current again

# What the driver says when there is nothing for it to drive.
UNAVAILABLE = {"CUDA_ERROR_NO_DEVICE", "CUDA_ERROR_STUB_LIBRARY"}


E = TypeVar("E", bound="CUDAError")
T = TypeVar("T")
U = TypeVar("U")
Ts = TypeVarTuple("Ts")


class CUDAError(Exception):
    """A CUDA call failed.

    Attributes
    ----------
    call : str or None
        The function that failed.
    status : int or None
        The number it returned.
    name : str or None
        The name of that number, for example ``"CUDA_ERROR_OUT_OF_MEMORY"``.
    driver_log : str or None
        What the driver's error log says of the call, which is in the message, too.
    """

    call: str | None = None
    status: int | None = None
    name: str | None = None
    driver_log: str | None = None


class NVRTCError(CUDAError):
    """The run-time compiler failed; the message ends with its log."""


class NVVMError(CUDAError):
    """The compiler of NVVM IR failed; the message ends with its log."""


class LinkerError(CUDAError):
    """nvJitLink, or the driver's linker, failed; the message ends with its log."""


class UnavailableError(CUDAError):
    """This driver, device or build does not have what was asked for."""


class CUDAWarning(RuntimeWarning):
    """A CUDA call failed during cleanup, where no exception can be raised."""


def check(status: int, call: str | None = None) -> None:
    """Raise what the status of a driver function or a helper of ours means unless it is 0.

    A helper of ours remembers by itself which call failed; for a driver function that is ``call``.
    """
    if status:
        raise failure(status, call)


def last_failure() -> Exception:
    """Return the exception for what a helper that returned nothing left behind."""
    return failure(lib.ccc_last_status())


def failure(status: int, call: str | None = None, detail: str = "") -> Exception:
    """Return the exception for ``status``; ``detail`` is appended to its message.

    A note says which context is current where the failed call could not make the former one current again.
    """
    status, unrestored = int(status), int(lib.ccc_pop_unrestored())
    if status == lib.CCC_UNRESTORED:
        return note_current_context(explain_status(unrestored, RESTORE, detail))
    error = explain_status(status, call, detail)
    return note_current_context(error, describe(unrestored, RESTORE)) if unrestored else error


def explain_status(status: int, call: str | None, detail: str) -> Exception:
    """Return the exception for a status of the driver, or of a helper that has left nothing else behind."""
    if status == lib.CCC_CLOSED:
        return RuntimeError("the operation needs an object that is closed")
    if status == lib.CCC_GONE:  # a moment ago, by another thread
        return RuntimeError("a node that the operation needs was destroyed, or the graph that it is in is gone")
    if status in CAPTURE:
        return RuntimeError(CAPTURE[status])
    if call is None:
        call = ffi.string(lib.ccc_last_call()).decode()
    if status == lib.CCC_NO_MEMORY:
        return MemoryError("no host memory for the bookkeeping of a CUDA object")
    if status == lib.CCC_NO_CONTEXT:
        error = CUDAError(
            f"{call}: no CUDA context is current in this thread; call Device(n).set_current() first{detail}"
        )
        status = lib.CUDA_ERROR_INVALID_CONTEXT
    else:
        missing = explain_missing(call)
        kind = UnavailableError if missing or status_name(status) in UNAVAILABLE else CUDAError
        logged = "" if missing else explanation(status, call)
        error = kind((missing or describe(status, call, logged)) + detail)
        error.driver_log = logged or None
    error.call, error.status, error.name = call, status, status_name(status)
    return error


def note_current_context(error: Exception, besides: str = "") -> Exception:
    """Add a note to an error that names the context which stays current; ``besides`` is another failure."""
    context, device = ffi.new("CUcontext *"), ffi.new("CUdevice *")
    current = "no context is current in this thread"
    if lib.cuCtxGetCurrent(context) == 0 and context[0] != ffi.NULL:
        where = f" of device {device[0]}" if lib.cuCtxGetDevice(device) == 0 else ""
        current = f"context {int(ffi.cast('uintptr_t', context[0])):#x}{where} is current in this thread"
    error.add_note(f"{besides and f'besides, {besides}; '}{current}; Device(n).set_current() makes another one current")
    return error


def failure_with_log(kind: type[E], text: str, log: str, call: str, status: int, name: str) -> E:
    """Return the exception for the status of a compiler or a linker, whose log ends the message."""
    error = kind(f"{text}\n{log.rstrip()}" if log else text)
    error.call, error.status, error.name = call, int(status), name
    return error


def describe(status: int, call: str, logged: str = "") -> str:
    """Return the message for a failed driver call: call, name, number, the driver's explanation and log, our hint."""
    name = status_name(status)
    text = f"{call} failed: {name} ({status})"
    out = ffi.new("const char **")
    if lib.ccc_driver_version() and lib.cuGetErrorString(status, out) == 0 and out[0] != ffi.NULL:
        text += f": {ffi.string(out[0]).decode()}"
    if logged:
        text += f"; the driver says: {logged}"
    if hint := hint_for(name):
        text += f"; {hint}"
    return text


def hint_for(name: str) -> str | None:
    """Return what usually helps after a status, by its name, or None."""
    if name in SIMULATED_HINTS and lib.ccc_driver_simulated():
        return SIMULATED_HINTS[name]
    return HINTS.get(name)


def explain_missing(call: str) -> str | None:
    """Return why ``call`` could not be made at all, or None if it was made."""
    missing = lib.ccc_missing_last()
    reason, needed = missing.reason, cuda_version(missing.needed)
    if reason == lib.CCC_AVAILABLE or ffi.string(missing.function).decode() not in (call, f"{call}_v2"):
        return None
    lib.ccc_missing_clear()
    library = ffi.string(lib.ccc_driver_name()).decode()
    installed = cuda_version(lib.ccc_driver_version())
    if reason == lib.CCC_NO_LIBRARY:
        why = ffi.string(lib.ccc_driver_error()).decode()
        return (
            f"no CUDA driver: {library!r} could not be loaded ({why}); install the NVIDIA driver, or name its "
            "library in CUDA_CORE_CFFI_DRIVER, or choose the simulated driver with CUDA_CORE_CFFI_DRIVER=simulator"
        )
    if reason == lib.CCC_DRIVER_TOO_OLD:
        return f"the CUDA driver {library!r} is too old: version {needed} or newer is needed; update the NVIDIA driver"
    if reason == lib.CCC_FORKED:
        return (
            f"{call}: this process was forked from one that was using CUDA, which CUDA does not survive; start child "
            'processes with multiprocessing.set_start_method("spawn")'
        )
    if reason == lib.CCC_FUNCTION_NEWER:
        return (
            f"{call} needs a driver for CUDA {needed}; the installed one is for {installed}: update the NVIDIA driver"
        )
    if reason == lib.CCC_NOT_BUILT:
        built = cuda_version(lib.CUDA_VERSION)
        return (
            f"{call} needs cuda-core-cffi built with the header of CUDA {needed}; this was built with that of {built}"
        )
    return f"{call} is not in the driver {library!r} (CUDA {installed})"


def cuda_version(number: int) -> str:
    """Return a CUDA version number as text: 12040 is ``"12.4"``."""
    return f"{number // 1000}.{number % 1000 // 10}"


@functools.cache
def status_names() -> dict[int, str]:
    """Return the names of all driver statuses, from the header."""
    return {int(value): name for value, name in ffi.typeof("CUresult").elements.items()}


def status_name(status: int) -> str:
    """Return the name of a driver status; one that our header does not know keeps its number."""
    return status_names().get(status, f"CUresult {status}")


def check_cleanup(waiting: int, stacklevel: int = 3) -> None:
    """Turn failures of cleanup that wait to be reported into warnings."""
    if not waiting:
        return
    call, concerned = ffi.new("const char **"), ffi.new("uint64_t *")
    while status := lib.ccc_cleanup_pop(call, concerned):
        # Python shows a text once for each line of a program, so the handle is in it
        of = f" of {concerned[0]:#x}" if concerned[0] else ""
        text = describe(status, ffi.string(call[0]).decode())
        warnings.warn(f"in cleanup{of}: {text}", CUDAWarning, stacklevel=stacklevel)


@overload
def handle_return(result: tuple[Any]) -> None: ...


@overload
def handle_return(result: tuple[Any, T]) -> T: ...


@overload
def handle_return(result: tuple[Any, T, U, *Ts]) -> tuple[T, U, *Ts]: ...


def handle_return(result: tuple[Any, ...]) -> object:
    """Check the result of a function of :mod:`cuda_core_cffi.driver` and return its values.

    Parameters
    ----------
    result : tuple
        What the function returned: the status, then the values.

    Returns
    -------
    object
        None where there are no values, the value where there is one, else a tuple of them.

    Raises
    ------
    CUDAError
        If the status is not ``CUDA_SUCCESS``.
    """
    if not isinstance(result, tuple | list):
        raise TypeError(f"a result of a driver function is a tuple, not {type(result).__name__}: {result!r:.80}")
    if not result:
        raise ValueError("an empty tuple is no result of a driver function: there is no status")
    raise_if_driver_error(result[0])
    values = result[1:]
    return None if not values else values[0] if len(values) == 1 else values


def raise_if_driver_error(status: int) -> None:
    """Raise unless a call of the driver has succeeded.

    Parameters
    ----------
    status : int
        The ``CUresult``, from :mod:`cuda_core_cffi.driver`.

    Raises
    ------
    CUDAError
        If it is not ``CUDA_SUCCESS``.
    """
    if int(status) != 0:
        missing = lib.ccc_missing_last()
        # what was missing may have been another call, whose status nobody looked at
        known = missing.reason != lib.CCC_AVAILABLE and missing.status == int(status)
        raise failure(status, ffi.string(missing.function).decode() if known else "a driver call")


# At exit the driver may be gone before our handles are: from here on, cleanup that fails is silent.
atexit.register(lib.ccc_set_exiting)
