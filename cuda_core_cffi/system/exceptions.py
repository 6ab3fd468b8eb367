# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of NVML, one class for each error status.

The class of ``NVML_ERROR_GPU_IS_LOST`` is :class:`GpuIsLostError`, and so on. A status that NVML adds later is an
:class:`NvmlError`.
"""

from __future__ import annotations

import functools

from cuda_core_cffi._core.errors import CUDAError, UnavailableError

PREFIX = "NVML_ERROR_"

# What NVML's own explanation does not say, by name.
HINTS = {
    "NVML_ERROR_NO_PERMISSION": "this needs root or an administrator, or a setting of the driver that root has made",
    "NVML_ERROR_DRIVER_NOT_LOADED": "load the kernel module of the NVIDIA driver; nvidia-smi does so for root",
    "NVML_ERROR_LIB_RM_VERSION_MISMATCH": "the library and the kernel module are of different drivers: reboot, or "
    "reinstall the driver",
    "NVML_ERROR_GPU_IS_LOST": "the GPU fell off the bus: the machine must be rebooted, or the GPU reset",
    "NVML_ERROR_RESET_REQUIRED": "the GPU must be reset (nvidia-smi --gpu-reset) before it can be used again",
}


class NvmlError(CUDAError):
    """A call of NVML failed.

    Attributes
    ----------
    call : str or None
        The function that failed.
    status : int or None
        The ``nvmlReturn_t`` it returned.
    name : str or None
        The name of that number, for example ``"NVML_ERROR_NOT_SUPPORTED"``.
    """


class UninitializedError(NvmlError):
    """NVML was not initialised."""


class InvalidArgumentError(NvmlError):
    """An argument is invalid, such as the index of a device that does not exist."""


class NotSupportedError(NvmlError):
    """The device does not have what was asked for."""


class NoPermissionError(NvmlError):
    """The user may not do that."""


class AlreadyInitializedError(NvmlError):
    """NVML was initialised before. Newer versions of NVML allow that."""


class NotFoundError(NvmlError):
    """What was looked for, such as a device with a UUID or a process, does not exist."""


class InsufficientSizeError(NvmlError):
    """The memory for the result is too small."""


class InsufficientPowerError(NvmlError):
    """A power cable of the device is not attached as it must be."""


class DriverNotLoadedError(NvmlError):
    """The kernel module of the NVIDIA driver is not loaded."""


class TimeoutError(NvmlError):
    """The time passed, and no event arrived."""


class IrqIssueError(NvmlError):
    """The kernel found a problem with the interrupts of a GPU."""


class LibraryNotFoundError(NvmlError, UnavailableError, RuntimeError):
    """There is no NVML library, or it cannot be loaded. It is a RuntimeError, as in cuda-core."""


class FunctionNotFoundError(NvmlError, UnavailableError):
    """The installed NVML library, or the header that this package was built with, lacks the function."""


class CorruptedInforomError(NvmlError):
    """The InfoROM of the device is corrupted."""


class GpuIsLostError(NvmlError):
    """The GPU has fallen off the bus, or cannot be reached for another reason."""


class ResetRequiredError(NvmlError):
    """The GPU must be reset before it can be used again."""


class OperatingSystemError(NvmlError):
    """The operating system refused the call."""


class LibRmVersionMismatchError(NvmlError):
    """The NVML library and the kernel module are of different versions."""


class InUseError(NvmlError):
    """The GPU is in use."""


class MemoryError(NvmlError):
    """There is not enough memory."""


class NoDataError(NvmlError):
    """There is no data."""


class VgpuEccNotSupportedError(NvmlError):
    """The operation on a virtual GPU is not possible while ECC is enabled."""


class InsufficientResourcesError(NvmlError):
    """A resource other than memory is used up."""


class FreqNotSupportedError(NvmlError):
    """The device cannot run at that frequency."""


class ArgumentVersionMismatchError(NvmlError):
    """The installed library does not know the version of a structure."""


class DeprecatedError(NvmlError):
    """What was asked for is no longer there."""


class NotReadyError(NvmlError):
    """The system is not ready for the request."""


class GpuNotFoundError(NvmlError):
    """There are no GPUs."""


class InvalidStateError(NvmlError):
    """A resource is not in the state that the operation needs."""


class ResetTypeNotSupportedError(NvmlError):
    """The device cannot be reset that way."""


class UnknownError(NvmlError):
    """The driver failed for a reason that NVML does not know."""


__all__ = [name for name, item in globals().items() if isinstance(item, type) and issubclass(item, NvmlError)]


def class_of(name: str) -> type[NvmlError]:
    """Return the class for the name of an error status: the words of the name, capitalised."""
    words = name.removeprefix(PREFIX).split("_")
    found = globals().get("".join(word.capitalize() for word in words) + "Error")
    return found if isinstance(found, type) and issubclass(found, NvmlError) else NvmlError


@functools.cache
def known(status: int) -> tuple[type[NvmlError], str, str]:
    """Return the class of an error status, its name, and what messages say of it."""
    from cuda_core_cffi import nvml

    try:
        name = nvml.nvmlReturn_t(status).name
    except ValueError:
        name = f"nvmlReturn_t {status}"
    text = f"{name} ({status}): {(nvml.nvmlErrorString(status) or b'').decode(errors='replace')}"
    return class_of(name), name, f"{text}; {HINTS[name]}" if name in HINTS else text


def failure(status: int, call: str, detail: str = "") -> NvmlError:
    """Return the exception for an error status.

    Parameters
    ----------
    status : int
        What the function returned.
    call : str
        The function.
    detail : str
        What the message says besides.

    Returns
    -------
    NvmlError
        The exception, not raised.
    """
    number = int(status)
    kind, name, explanation = known(number)
    text = missing(call) if issubclass(kind, UnavailableError) else f"{call} failed: {explanation}"
    error: NvmlError = kind(text + detail)
    error.call, error.status, error.name = call, number, name
    return error


def missing(call: str) -> str:
    """Return why a function could not be called."""
    from cuda_core_cffi import nvml

    return nvml.explain_missing(call)
