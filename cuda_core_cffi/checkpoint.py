# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of processes: a process gives its GPUs up, and later has them back with what was in their memory."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final

from cuda_core_cffi._core.errors import UnavailableError, check, cuda_version, failure, status_name
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.integers import class_of_handle, integer
from cuda_core_cffi.typing import ProcessStateType

__all__ = ["Process"]

_LARGEST_INT: Final = 2**31 - 1
_LARGEST_UNSIGNED: Final = 2**32 - 1
_FIRST_WITH_MAPPING: Final = 13000
_UUID_BYTES: Final = 16

_STATES: Final[dict[int, ProcessStateType]] = {
    int(lib.CU_PROCESS_STATE_RUNNING): "running",
    int(lib.CU_PROCESS_STATE_LOCKED): "locked",
    int(lib.CU_PROCESS_STATE_CHECKPOINTED): "checkpointed",
    int(lib.CU_PROCESS_STATE_FAILED): "failed",
}

# The state that each call changes.
_NEEDED: Final[dict[str, ProcessStateType]] = {
    "cuCheckpointProcessLock": "running",
    "cuCheckpointProcessCheckpoint": "locked",
    "cuCheckpointProcessRestore": "checkpointed",
    "cuCheckpointProcessUnlock": "locked",
}


class Process:
    """A process that uses CUDA, as something to lock, checkpoint, restore and unlock.

    The process may be the calling one. All members need a driver for CUDA 12.8 or newer.

    Parameters
    ----------
    pid : int
        The number of the process. It is looked at only when a member is used.

    Raises
    ------
    TypeError
        If ``pid`` is no int, or a bool.
    ValueError
        If it is not positive.
    OverflowError
        If it does not fit into a C int.
    """

    __slots__ = ("_pid",)

    def __init__(self, pid: int) -> None:
        pid = integer(pid, "pid")
        if pid <= 0:
            raise ValueError(f"pid must be positive, not {pid}")
        if pid > _LARGEST_INT:
            raise OverflowError(f"pid must be {_LARGEST_INT} or less, not {pid}")
        self._pid = pid

    def __repr__(self) -> str:
        """Return the number of the process."""
        return f"<Process pid={self._pid}>"

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._pid

    @property
    def state(self) -> ProcessStateType:
        """The state of the process: ``"running"``, ``"locked"``, ``"checkpointed"`` or ``"failed"``.

        Raises
        ------
        CUDAError
            If the process does not use CUDA.
        UnavailableError
            If the driver is too old.
        RuntimeError
            If the process is in a state that has no name here: another program is copying its memory to storage.
        """
        state = ffi.new("CUprocessState *")
        self._check(lib.cuCheckpointProcessGetState(self._pid, state), "cuCheckpointProcessGetState")
        number = int(state[0])
        if number not in _STATES:
            raise RuntimeError(
                f"process {self._pid} is in state {number}, which is none of {', '.join(_STATES.values())}"
            )
        return _STATES[number]

    @property
    def restore_thread_id(self) -> int:
        """The number of the thread that restores the process, and that has to run for that.

        Raises
        ------
        CUDAError
            If the process does not use CUDA.
        UnavailableError
            If the driver is too old.
        """
        thread = ffi.new("int *")
        call = "cuCheckpointProcessGetRestoreThreadId"
        self._check(lib.cuCheckpointProcessGetRestoreThreadId(self._pid, thread), call)
        return int(thread[0])

    def lock(self, timeout_ms: int = 0) -> None:
        """Hold back the CUDA calls of the process, and wait until those under way and the work in its streams are done.

        A call that is held back waits until the process is unlocked, in whatever thread it is made.

        Parameters
        ----------
        timeout_ms : int, optional
            How long to wait, in milliseconds; 0 is without limit. When the time is over, the process runs on.

        Raises
        ------
        CUDAError
            If the process is not running (``CUDA_ERROR_ILLEGAL_STATE``), or the time is over
            (``CUDA_ERROR_NOT_READY``).
        UnavailableError
            If the driver is too old.
        TypeError, ValueError, OverflowError
            If ``timeout_ms`` is no int, negative, or does not fit into 32 bits.
        """
        timeout_ms = integer(timeout_ms, "timeout_ms")
        if timeout_ms < 0:
            raise ValueError(f"timeout_ms must be 0 or more, not {timeout_ms}")
        if timeout_ms > _LARGEST_UNSIGNED:
            raise OverflowError(f"timeout_ms must be {_LARGEST_UNSIGNED} or less, not {timeout_ms}")
        arguments = ffi.new("CUcheckpointLockArgs *")
        arguments.timeoutMs = timeout_ms
        status = lib.cuCheckpointProcessLock(self._pid, arguments)
        late = f"; after {timeout_ms} ms, calls or work were not done: the process runs on"
        self._check(status, "cuCheckpointProcessLock", {"CUDA_ERROR_NOT_READY": late})

    def checkpoint(self) -> None:
        """Bring the memory of the GPUs that the locked process uses into host memory, and give the GPUs up.

        Raises
        ------
        CUDAError
            If the process is not locked (``CUDA_ERROR_ILLEGAL_STATE``), or has what the driver cannot checkpoint, such
            as managed memory (``CUDA_ERROR_NOT_SUPPORTED``, or ``CUDA_ERROR_UNKNOWN``): then it stays locked.
        UnavailableError
            If the driver is too old.
        """
        status = lib.cuCheckpointProcessCheckpoint(self._pid, ffi.NULL)
        locked = "what the driver cannot checkpoint, such as managed memory, and stays locked: call unlock()"
        # An H100 with driver 580 answered the first attempt with the one, and most others with the other.
        refusals = {"CUDA_ERROR_NOT_SUPPORTED": f"; it has {locked}", "CUDA_ERROR_UNKNOWN": f"; it may have {locked}"}
        self._check(status, "cuCheckpointProcessCheckpoint", refusals)

    def restore(self, gpu_mapping: Mapping[Any, Any] | None = None) -> None:
        """Give the checkpointed process its GPUs back, or others, with what was in their memory; it stays locked.

        Parameters
        ----------
        gpu_mapping : mapping, optional
            For each GPU, the one that takes its place, both as a ``CUuuid`` or the text of the UUID. All GPUs of the
            machine have to be in it, also those that ``CUDA_VISIBLE_DEVICES`` hides. Needs a driver for CUDA 13.0.

        Raises
        ------
        CUDAError
            If the process is not checkpointed (``CUDA_ERROR_ILLEGAL_STATE``), or the driver refuses the mapping.
        UnavailableError
            If the driver, or the header that this was built with, is too old.
        TypeError
            If ``gpu_mapping`` is no mapping, or what is in it is no UUID.
        ValueError
            If a text is no UUID, or a GPU is there twice.
        """
        pairs = _read_mapping(gpu_mapping)
        arguments = _restore_arguments(pairs)
        if self._pid != os.getpid():  # which has been initialised, and where the call might wait
            check(lib.ccc_init())
        status = lib.cuCheckpointProcessRestore(self._pid, ffi.NULL if arguments is None else arguments[0])
        self._check(status, "cuCheckpointProcessRestore")

    def unlock(self) -> None:
        """Let the CUDA calls of the locked process go on.

        Raises
        ------
        CUDAError
            If the process is not locked (``CUDA_ERROR_ILLEGAL_STATE``).
        UnavailableError
            If the driver is too old.
        """
        self._check(lib.cuCheckpointProcessUnlock(self._pid, ffi.NULL), "cuCheckpointProcessUnlock")

    def _check(self, status: int, call: str, details: Mapping[str, str] | None = None) -> None:
        """Raise what a status means, with the process, and what is known about it, in the message."""
        if not status:
            return
        error = failure(status, call)
        if isinstance(error, UnavailableError):
            raise error
        name = status_name(int(status))
        detail = (details or {}).get(name, "")
        if name == "CUDA_ERROR_NOT_INITIALIZED":
            detail = ": it is that process which does not use CUDA"
        if name == "CUDA_ERROR_ILLEGAL_STATE" and call in _NEEDED:
            detail = f"; it must be {_NEEDED[call]}"
            found = ffi.new("CUprocessState *")
            if not lib.cuCheckpointProcessGetState(self._pid, found) and int(found[0]) in _STATES:
                detail += f", and is {_STATES[int(found[0])]}"
        raise failure(status, call, f" (process {self._pid}){detail}")


def _read_mapping(gpu_mapping: Mapping[Any, Any] | None) -> list[tuple[bytes, bytes]]:
    """Return the UUIDs of the old and the new GPUs, as bytes."""
    if gpu_mapping is None:
        return []
    if not isinstance(gpu_mapping, Mapping):
        raise TypeError(f"gpu_mapping must be a mapping of GPUs to GPUs, not {type(gpu_mapping).__name__}")
    pairs = [(_uuid_bytes(old), _uuid_bytes(new)) for old, new in gpu_mapping.items()]
    for role, uuids in zip(("old", "new"), zip(*pairs, strict=True), strict=False):
        for uuid in uuids:
            if uuids.count(uuid) > 1:
                raise ValueError(f"the {role} GPU {uuid.hex()} is there twice in gpu_mapping")
    return pairs


def _uuid_bytes(value: Any) -> bytes:
    """Return a UUID as bytes."""
    if isinstance(value, str):
        digits = value.removeprefix("GPU-").replace("-", "")
        if not re.fullmatch("[0-9a-fA-F]{32}", digits):
            raise ValueError(f"the text of a UUID has 32 hexadecimal digits, which this has not: {value!r}")
        return bytes.fromhex(digits)
    if isinstance(value, ffi.CData):
        pointer = ffi.addressof(value) if ffi.typeof(value) == ffi.typeof("CUuuid") else value
        if pointer and ffi.typeof(pointer) == ffi.typeof("CUuuid *"):
            return bytes(ffi.buffer(pointer))
    if class_of_handle(value) == "CUuuid":
        return bytes(value.bytes)
    raise TypeError(f"a GPU must be given as a CUuuid or the text of its UUID, not {type(value).__name__}: {value!r}")


def _restore_arguments(pairs: list[tuple[bytes, bytes]]) -> tuple[Any, Any] | None:
    """Return the native arguments and the array that they point to; None if there is no mapping."""
    if not pairs:
        return None
    version = ffi.new("int *")
    check(lib.cuDriverGetVersion(version), "cuDriverGetVersion")
    needed = cuda_version(_FIRST_WITH_MAPPING)
    if version[0] < _FIRST_WITH_MAPPING:
        found = cuda_version(version[0])
        raise UnavailableError(f"gpu_mapping needs a driver for CUDA {needed}; the installed one is for {found}")
    if lib.CUDA_VERSION < _FIRST_WITH_MAPPING:
        built = cuda_version(lib.CUDA_VERSION)
        raise UnavailableError(f"gpu_mapping needs a build with the header of CUDA {needed}, not with that of {built}")
    array = ffi.new("CUcheckpointGpuPair[]", len(pairs))
    for native, (old, new) in zip(array, pairs, strict=True):
        ffi.memmove(ffi.addressof(native, "oldUuid"), old, _UUID_BYTES)
        ffi.memmove(ffi.addressof(native, "newUuid"), new, _UUID_BYTES)
    arguments = ffi.new("CUcheckpointRestoreArgs *")
    arguments.gpuPairs, arguments.gpuPairsCount = array, len(pairs)
    return arguments, array
