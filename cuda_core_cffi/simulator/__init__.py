# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Control the simulated CUDA driver and NVML: faults, traces, live objects, misuse reports, sensors and events.

The simulated driver is a shared library that implements the CUDA driver API on the CPU, and NVML for its devices. This
module does not choose it; it talks to a simulator that is loaded in this process (loading the library if it is not),
whoever uses it.

The simulated machine is described by environment variables that are read once, when the driver is first used:

``CUDA_SIM_DEVICES``
    Number of devices, default 1, at most 16.
``CUDA_SIM_MEMORY``
    Bytes of memory of each device, from ``1M`` to ``1T``, with an optional suffix ``K``, ``M``, ``G`` or ``T``; default
    ``1G``.
``CUDA_SIM_COMPUTE_CAPABILITY``
    Compute capability of the devices, default ``9.0``.
``CUDA_SIM_DRIVER_VERSION``
    What ``cuDriverGetVersion`` reports, default ``13000``; ``12080`` for CUDA 12.8. Newer functions are not found.
``CUDA_SIM_PEER_ACCESS``
    ``0`` for devices that cannot be given access to each other's memory; by default all can.
``CUDA_SIM_KERNEL_SECONDS``
    Ends a kernel that runs longer with ``CUDA_ERROR_LAUNCH_TIMEOUT``; default 0, never.
``CUDA_SIM_DELAY_SECONDS``
    Up to how long each piece of work waits before it begins, a different time each; default 0. Programs that rely on
    work being done without waiting for it fail sooner.
``CUDA_SIM_SHARED``
    Folder where the processes of a user publish what they use of the devices, for the simulated NVML; by default one in
    ``/dev/shm``. Empty: each process knows of itself only.
``CUDA_SIM_SENSORS``
    What NVML says at first, as ``temperature=85,1:power=300000``: names of `sensors`, with the index of a device or for
    all of them.
``CUDA_SIM_FANS``
    Number of fans of each device, default 0, at most 8.
``CUDA_SIM_NVLINKS``
    Number of NVLinks of each device, at most 18, which is the default if there is more than one device.
``CUDA_SIM_VECTORS``
    ``0``: kernels run without the vector instructions of the processor, with the same results.
``CUDA_SIM_REPORT``
    ``stderr`` prints every report when it is made, and at exit what was never freed or destroyed.

Other names that begin with ``CUDA_SIM_``, and other values, are refused: ``cuInit`` returns
``CUDA_ERROR_SYSTEM_NOT_READY``, and the exception names the variable, the value and the allowed values. stderr gets a
line with the same text. ``CUDA_VISIBLE_DEVICES`` hides and orders devices as with any driver.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from cuda_core_cffi._core.copying import Uncopyable
from cuda_core_cffi._core.driver_log import VARIANT
from cuda_core_cffi._core.errors import check
from cuda_core_cffi._core.ffi import ffi, lib

__all__ = [
    "Call",
    "Fault",
    "Live",
    "Report",
    "Trace",
    "calls",
    "clear_faults",
    "clear_reports",
    "fail",
    "inject_event",
    "is_loaded",
    "library_path",
    "live",
    "recover",
    "reports",
    "reset_sensors",
    "sensors",
    "set_sensor",
    "trace",
    "use",
]

LIBRARY_NAME = "libcuda_core_cffi_simulator.so"
LIBRARY_VARIABLE = "CUDA_SIM_LIBRARY"
_MOST_ERRORS = 1000

_TEXT_LENGTHS = {"kind": 32, "call": 64, "message": 1536, "allocated_by": 64, "freed_by": 64}  # in a report


class Call(NamedTuple):
    """A call of the driver or of NVML that was made: the function's symbol and the status it returned."""

    function: str
    result: int


class Live(NamedTuple):
    """How many objects of a kind are alive, and for memory how many bytes they hold."""

    number: int
    size: int


class Report(NamedTuple):
    """A misuse of the driver.

    Attributes
    ----------
    kind : str
        ``"double free"``, ``"foreign free"``, ``"invalid free"``, ``"use after free"``, ``"out of bounds"``,
        ``"illegal access"``, ``"no access"`` (virtual memory without rights) or ``"leak"``; for kernels also
        ``"misaligned access"``, ``"assertion"``, ``"time limit"``, ``"illegal instruction"`` or ``"kernel failure"``.
    call : str
        The driver function, or the kernel, that did it.
    message : str
        What happened, with the history of the allocation concerned.
    address, size : int
        The bytes the call was about; 0 where that has no meaning.
    allocation_start, allocation_size : int
        The allocation concerned; 0 if there is none.
    allocation_order : int
        Allocations are numbered from 1 in the order in which they are made.
    allocated_by, freed_by : str
        The functions that made and freed it; ``freed_by`` is empty while it lives.
    freed_order : int
        How many allocations had been made when it was freed.
    """

    kind: str
    call: str
    message: str
    address: int
    size: int
    allocation_start: int
    allocation_size: int
    allocation_order: int
    freed_order: int
    allocated_by: str
    freed_by: str


class Fault(Uncopyable):
    """A fault that `fail` injected; a context manager that takes back what is left of it.

    In a ``with`` block the package makes no calls of its own accord, in its release thread: only what the program calls
    counts. So it is with `Trace`.
    """

    _NOT_COPIED_BECAUSE = "it stands for one fault of the simulated driver"

    def __init__(self, number: int) -> None:
        self._number = number
        self._left = 0

    def cancel(self) -> int:
        """Take the fault back.

        Returns
        -------
        int
            How many of its failures had not happened; 0 once the fault is used up or was taken back.
        """
        self._left = int(_library().cudaSimFailCancel(self._number))
        return self._left

    @property
    def left(self) -> int:
        """Failures that had not happened when the fault was taken back."""
        return self._left

    def __enter__(self) -> Fault:
        lib.ccc_release_pause()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.cancel()
        lib.ccc_release_resume()


class Trace(Uncopyable):
    """The driver calls made while the trace is on; a context manager.

    Parameters
    ----------
    *functions : str
        Names to keep; none keeps every call. A name without a version or ``_ptsz`` suffix stands for all of them.

    Notes
    -----
    The driver keeps one trace. Traces may be nested, not run at the same time from several threads.
    """

    _NOT_COPIED_BECAUSE = "it stands for one trace of the simulated driver"
    _depth = 0

    def __init__(self, *functions: str) -> None:
        self._functions = frozenset(functions)
        self._start = 0
        self._calls: list[Call] | None = None

    def __enter__(self) -> Trace:
        lib.ccc_release_pause()
        if not Trace._depth:
            _library().cudaSimTraceClear()
        Trace._depth += 1
        self._start = int(_library().cudaSimTraceCount())
        self._calls = None
        _library().cudaSimTrace(1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._calls = self._read()
        Trace._depth -= 1
        if not Trace._depth:
            _library().cudaSimTrace(0)
            _library().cudaSimTraceClear()
        lib.ccc_release_resume()

    @property
    def calls(self) -> list[Call]:
        """The calls so far, in order; after the ``with`` block, the calls made in it."""
        return self._read() if self._calls is None else self._calls

    @property
    def names(self) -> list[str]:
        """The functions called, in order."""
        return [call.function for call in self.calls]

    def __len__(self) -> int:
        return len(self.calls)

    def __iter__(self) -> Iterator[Call]:
        return iter(self.calls)

    def _read(self) -> list[Call]:
        found = _read_trace(self._start)
        if self._functions:
            found = [
                c for c in found if c.function in self._functions or re.sub(VARIANT, "", c.function) in self._functions
            ]
        return found


def fail(function: str, error: int | str, nth: int = 1, count: int = 1) -> Fault:
    """Make coming calls of a function of the driver or of NVML return an error instead of doing anything.

    Parameters
    ----------
    function : str
        The function, with its version (``"cuMemAlloc_v2"``) or without (``"cuMemAlloc"``: any version).
    error : int or str
        A ``CUresult`` or ``nvmlReturn_t`` by number or by name (``"CUDA_ERROR_OUT_OF_MEMORY"``,
        ``"NVML_ERROR_GPU_IS_LOST"``).
    nth : int
        Which of the next calls is the first to fail; 1 is the very next.
    count : int
        How many calls fail in a row.

    Returns
    -------
    Fault
        May be used as a context manager, or ignored.

    Raises
    ------
    ValueError
        If the error is unknown, a number is not positive, the name is too long or too many faults are waiting.
    """
    number = _library().cudaSimFail(function.encode(), _error_number(error), nth, count)
    if not number:
        raise ValueError(f"cannot inject a fault into {function!r} (nth={nth}, count={count})")
    return Fault(int(number))


def clear_faults() -> None:
    """Take back every injected fault."""
    _library().cudaSimFailClear()


def trace(*functions: str) -> Trace:
    """Record the driver calls made in a ``with`` block.

    Parameters
    ----------
    *functions : str
        The functions to record. Default is all.

    Returns
    -------
    Trace
        The context manager, which has the calls.
    """
    return Trace(*functions)


def calls() -> list[Call]:
    """Return the driver calls recorded by the trace that is on.

    Returns
    -------
    list of Call
        In order; empty when no trace is on.
    """
    return _read_trace(0)


def live() -> dict[str, Live]:
    """Return how many driver objects and allocations of each kind are alive.

    The default memory pools, the default streams, the graphs that belong to a node and primary contexts themselves are
    not counted; the number of times that primary contexts are retained is, and so are launches of graphs under way.

    Returns
    -------
    dict of str to Live
        Counts, and sizes in bytes, by kind.
    """
    found: dict[str, Live] = {}
    count, size = ctypes.c_uint64(), ctypes.c_uint64()
    library = _library()
    index = 0
    while (name := library.cudaSimLive(index, ctypes.byref(count), ctypes.byref(size))) is not None:
        if name:
            found[name.decode()] = Live(count.value, size.value)
        index += 1
    return found


def reports() -> list[Report]:
    """Return the misuse reports made so far.

    Returns
    -------
    list of Report
        Oldest first; at most the first 1024.
    """
    found: list[Report] = []
    library = _library()
    for index in range(library.cudaSimReportCount()):
        raw = _RawReport()
        if library.cudaSimReportGet(index, ctypes.byref(raw)):
            values = (getattr(raw, name) for name in Report._fields)
            found.append(Report._make(v.decode(errors="replace") if isinstance(v, bytes) else v for v in values))
    return found


def clear_reports() -> None:
    """Forget the misuse reports made so far."""
    _library().cudaSimReportClear()


def recover() -> None:
    """Make the devices work again after a kernel failed, as a real driver does in a new process only.

    Contexts and their objects work as before the failure. Work submitted since then was not done. A primary context
    that was reset since then is retained again; its objects are gone.

    Raises
    ------
    CUDAError
        If a primary context cannot be retained again.
    """
    _library().cudaSimRecover()
    if lib.ccc_driver_simulated():
        check(lib.ccc_primary_revive(), "cuDevicePrimaryCtxRetain")


def sensors(device: int = 0) -> dict[str, int]:
    """Return what the simulated NVML says about a device and can be told to say.

    Parameters
    ----------
    device : int
        The index of the device.

    Returns
    -------
    dict of str to int
        By name, in NVML's units (degrees Celsius, milliwatts, millijoules, MHz, percent, KB/s) and numbers of modes.

    Raises
    ------
    ValueError
        If there is no such device.
    """
    library = _library()
    found: dict[str, int] = {}
    value = ctypes.c_int64()
    while (name := library.cudaSimSensorName(len(found))) is not None:
        if not library.cudaSimSensorGet(device, name, ctypes.byref(value)):
            raise ValueError(f"no simulated device {device}")
        found[name.decode()] = value.value
    return found


def set_sensor(device: int, name: str, value: int) -> None:
    """Set what the simulated NVML of this process says about a device.

    Parameters
    ----------
    device : int
        The index of the device.
    name : str
        A key of `sensors`, such as ``"temperature"``.
    value : int
        The value, in NVML's unit; -1 for what follows from what happens, where there is such a thing.

    Raises
    ------
    ValueError
        If there is no such device or sensor.
    """
    if not _library().cudaSimSensorSet(device, name.encode(), value):
        raise ValueError(f"no sensor {name!r} of a simulated device {device}")


def reset_sensors() -> None:
    """Set every sensor of every device to what it was at first."""
    _library().cudaSimSensorsReset()


def inject_event(device: int, event: str, data: int = 0) -> int:
    """Make an event happen, which wakes those in this process that wait for it in an event set of NVML.

    Parameters
    ----------
    device : int
        The index of the device.
    event : str
        The type in ``nvml.h``, as ``"xid_critical_error"`` or, for an event of the system, ``"gpu_driver_bind"``.
    data : int
        What comes with it: the number of the Xid.

    Returns
    -------
    int
        How many event sets were registered for it.

    Raises
    ------
    ValueError
        If there is no such device or event.
    """
    told = int(_library().cudaSimEvent(device, event.encode(), data))
    if told < 0:
        raise ValueError(f"no event {event!r} of a simulated device {device}")
    return told


def library_path() -> Path:
    """Return the path of the simulator's library.

    It lies beside this module, unless the environment variable ``CUDA_SIM_LIBRARY`` names another file.

    Returns
    -------
    pathlib.Path
        The path. There may be no such file.
    """
    override = os.environ.get(LIBRARY_VARIABLE)
    return Path(override) if override else Path(__file__).with_name(LIBRARY_NAME)


def is_loaded() -> bool:
    """Tell whether the simulator's library is loaded in this process.

    Returns
    -------
    bool
        Also true where another library has loaded it.
    """
    if _loaded is not None:
        return True
    try:
        # RTLD_NOLOAD finds a library only if it is there already.
        ctypes.CDLL(str(library_path()), mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return False
    return True


def use() -> None:
    """Choose the simulated driver for this process, before the first driver call.

    Raises
    ------
    RuntimeError
        If another driver is in use already.
    """
    if lib.ccc_driver_choose(b"simulator"):
        return
    name = ffi.string(lib.ccc_driver_name()).decode()
    if not Path(name).exists() or not library_path().samefile(name):
        raise RuntimeError(f"this process already uses the driver {name}: choose the simulator before the first call")


class _RawReport(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_char * _TEXT_LENGTHS[name] if name in _TEXT_LENGTHS else ctypes.c_uint64)
        for name in Report._fields
    ]


_INT, _SIZE, _TEXT = ctypes.c_int, ctypes.c_size_t, ctypes.c_char_p
# The arguments and the result of each function; those without an entry take an int or nothing, and return such.
_PROTOTYPES: dict[str, tuple[list[Any], Any]] = {
    "cudaSimFail": ([_TEXT, _INT, _INT, _INT], _INT),
    "cudaSimTraceCount": ([], _SIZE),
    "cudaSimTraceGet": ([_SIZE, ctypes.POINTER(_INT)], _TEXT),
    "cudaSimReportCount": ([], _SIZE),
    "cudaSimReportSize": ([], _SIZE),
    "cudaSimReportGet": ([_SIZE, ctypes.POINTER(_RawReport)], _INT),
    "cudaSimLive": ([_SIZE, ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint64)], _TEXT),
    "cudaSimSensorName": ([ctypes.c_uint], _TEXT),
    "cudaSimSensorGet": ([ctypes.c_uint, _TEXT, ctypes.POINTER(ctypes.c_int64)], _INT),
    "cudaSimSensorSet": ([ctypes.c_uint, _TEXT, ctypes.c_int64], _INT),
    "cudaSimEvent": ([ctypes.c_uint, _TEXT, ctypes.c_ulonglong], _INT),
    "cuGetErrorName": ([_INT, ctypes.POINTER(_TEXT)], _INT),
}
_loaded: ctypes.CDLL | None = None


def _library() -> ctypes.CDLL:
    global _loaded
    if _loaded is None:
        library = ctypes.CDLL(str(library_path()))
        for name, (arguments, result) in _PROTOTYPES.items():
            function = getattr(library, name)
            function.argtypes, function.restype = arguments, result
        if library.cudaSimReportSize() != ctypes.sizeof(_RawReport):
            raise ImportError(f"{library_path()} does not belong to this version of the module")
        _loaded = library
    return _loaded


def _read_trace(start: int) -> list[Call]:
    library = _library()
    found: list[Call] = []
    result = ctypes.c_int()
    for index in range(start, library.cudaSimTraceCount()):
        name = library.cudaSimTraceGet(index, ctypes.byref(result))
        if name is not None:
            found.append(Call(name.decode(), result.value))
    return found


def _error_number(error: int | str) -> int:
    if not isinstance(error, str):
        return int(error)
    number = int(_library().cudaSimNvmlError(error.encode()))
    if number >= 0:
        return number
    name = ctypes.c_char_p()
    for number in range(_MOST_ERRORS):
        if not _library().cuGetErrorName(number, ctypes.byref(name)) and name.value == error.encode():
            return number
    raise ValueError(f"unknown driver error {error!r}")
