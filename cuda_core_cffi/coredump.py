# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Core dumps of GPUs: files that the driver writes when a kernel fails, or on request, for cuda-gdb to open."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Final

from cuda_core_cffi._core.errors import failure
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.options import member
from cuda_core_cffi._streams.context import Context
from cuda_core_cffi.typing import CoreDumpPartType

__all__ = ["CoreDumpSettings"]

_LONGEST: Final = 1023  # bytes of a path, without the NUL
_ABORT: Final = int(lib.CU_COREDUMP_SKIP_ABORT)
_PARTS: Final = {
    CoreDumpPartType.CODE: int(lib.CU_COREDUMP_SKIP_NONRELOCATED_ELF_IMAGES),
    CoreDumpPartType.GLOBAL_MEMORY: int(lib.CU_COREDUMP_SKIP_GLOBAL_MEMORY),
    CoreDumpPartType.SHARED_MEMORY: int(lib.CU_COREDUMP_SKIP_SHARED_MEMORY),
    CoreDumpPartType.LOCAL_MEMORY: int(lib.CU_COREDUMP_SKIP_LOCAL_MEMORY),
    CoreDumpPartType.CONSTANT_MEMORY: int(lib.CU_COREDUMP_SKIP_CONSTBANK_MEMORY),
}
_ALL_PARTS: Final = sum(_PARTS.values())


class CoreDumpSettings:
    """When core dumps of GPUs are written, where to, and what is in them.

    The object has no state of its own: every attribute is read from the driver, and assigning to one tells the driver.
    Environment variables of cuda-gdb (``CUDA_ENABLE_COREDUMP_ON_EXCEPTION`` and so on) that were set before the driver
    started have precedence.

    Parameters
    ----------
    context : Context, optional
        The context whose settings these are. Without one they are those of the process, with which contexts begin that
        are made later.

    Raises
    ------
    TypeError
        If ``context`` is no context.

    Notes
    -----
    These are the attributes of ``cuCoredumpSetAttributeGlobal`` and ``cuCoredumpSetAttribute``.
    ``docs/core_dumps.md`` tells how to use them.
    """

    __slots__ = ("_context",)

    def __init__(self, context: Context | None = None) -> None:
        if context is not None and not isinstance(context, Context):
            raise TypeError(f"context must be a Context or None, not {type(context).__name__}")
        self._context = context

    def __repr__(self) -> str:
        """Return whose settings these are."""
        owner = "the process" if self._context is None else repr(self._context)
        return f"<CoreDumpSettings of {owner}>"

    @property
    def context(self) -> Context | None:
        """The context whose settings these are; None for those of the process."""
        return self._context

    @property
    def on_exception(self) -> bool:
        """Whether a core dump is written when a kernel fails. Default False.

        Set it once, for the process, before there is a context: for a context that was made without, an H100 with
        driver 580 wrote none, and loaded no more PTX after it was turned off again.

        Raises
        ------
        CUDAError
            If the driver refuses.
        RuntimeError
            If the context is closed.
        TypeError
            If what is assigned is no bool.
        """
        return bool(self._get(lib.CU_COREDUMP_ENABLE_ON_EXCEPTION, "_Bool[1]")[0])

    @on_exception.setter
    def on_exception(self, value: bool) -> None:
        self._write_flag(lib.CU_COREDUMP_ENABLE_ON_EXCEPTION, value, "on_exception")

    @property
    def file(self) -> str:
        """The path of the file. Empty, the default, is ``core.cuda.HOSTNAME.PID`` in the working directory.

        ``%h``, ``%p`` and ``%t`` in it stand for the name of the host, the number of the process and the time in
        seconds.

        Raises
        ------
        CUDAError
            If the driver refuses.
        RuntimeError
            If the context is closed.
        TypeError, ValueError
            If what is assigned is no path, has a NUL in it, or more than 1023 bytes.
        """
        return self._read_path(lib.CU_COREDUMP_FILE)

    @file.setter
    def file(self, value: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> None:
        self._write_path(lib.CU_COREDUMP_FILE, value, "file")

    @property
    def omitted(self) -> frozenset[CoreDumpPartType]:
        """What is left out of core dumps. Default nothing; an iterable of parts, or of their strings, is assigned.

        Raises
        ------
        CUDAError
            If the driver refuses.
        RuntimeError
            If the context is closed.
        TypeError, ValueError
            If what is assigned is not iterable, or has something else in it.
        """
        flags = self._read_flags()
        return frozenset(part for part, flag in _PARTS.items() if flags & flag)

    @omitted.setter
    def omitted(self, value: Iterable[CoreDumpPartType | str]) -> None:
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise TypeError(f"omitted must be an iterable of parts, not {type(value).__name__}")
        flags = sum(_PARTS[part] for part in {member(CoreDumpPartType, part, "a part") for part in value})
        self._write_flags(self._read_flags() & ~_ALL_PARTS | flags)

    @property
    def aborts(self) -> bool:
        """Whether the process is aborted after a core dump. Default True.

        Raises
        ------
        CUDAError
            If the driver refuses.
        RuntimeError
            If the context is closed.
        TypeError
            If what is assigned is no bool.
        """
        return not self._read_flags() & _ABORT

    @aborts.setter
    def aborts(self, value: bool) -> None:
        _check_flag(value, "aborts")
        self._write_flags(self._read_flags() & ~_ABORT | (0 if value else _ABORT))

    @property
    def on_request(self) -> bool:
        """Whether a core dump is written when something is written to :attr:`pipe`. Default False.

        Like :attr:`on_exception`, which becomes True with it, set it before there is a context. The settings of a
        context do not have this.

        Raises
        ------
        CUDAError
            If the driver refuses.
        AttributeError
            If these are the settings of a context.
        TypeError
            If what is assigned is no bool.
        """
        self._check_global("on_request")
        return bool(self._get(lib.CU_COREDUMP_ENABLE_USER_TRIGGER, "_Bool[1]")[0])

    @on_request.setter
    def on_request(self, value: bool) -> None:
        self._check_global("on_request")
        self._write_flag(lib.CU_COREDUMP_ENABLE_USER_TRIGGER, value, "on_request")

    @property
    def pipe(self) -> str:
        """The path of the pipe that requests core dumps. Empty, the default, is ``corepipe.cuda.HOSTNAME.PID``.

        Set it before :attr:`on_request`. The settings of a context do not have this.

        Raises
        ------
        CUDAError
            If the driver refuses.
        AttributeError
            If these are the settings of a context.
        TypeError, ValueError
            If what is assigned is no path, has a NUL in it, or more than 1023 bytes.
        """
        self._check_global("pipe")
        return self._read_path(lib.CU_COREDUMP_PIPE)

    @pipe.setter
    def pipe(self, value: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> None:
        self._check_global("pipe")
        self._write_path(lib.CU_COREDUMP_PIPE, value, "pipe")

    def _check_global(self, name: str) -> None:
        """Raise unless these are the settings of the process."""
        if self._context is not None:
            raise AttributeError(f"only the process has {name}, not a context: use CoreDumpSettings().{name}")

    @property
    def _c_handle(self) -> Any:
        """The C handle of the context, or NULL."""
        return ffi.NULL if self._context is None else self._context._c_handle

    def _check(self, status: int) -> None:
        if status:
            raise failure(status) if self._context is None else self._context._failure(status)

    def _get(self, setting: int, ctype: str) -> Any:
        """Return the value of a setting, which is an array in C."""
        value = ffi.new(ctype)
        self._check(lib.ccc_coredump_get(self._c_handle, setting, value, ffi.sizeof(value)))
        return value

    def _set(self, setting: int, value: Any) -> None:
        """Set the value of a setting: an array."""
        self._check(lib.ccc_coredump_set(self._c_handle, setting, value, ffi.sizeof(value)))

    def _write_flag(self, setting: int, value: bool, name: str) -> None:
        _check_flag(value, name)
        self._set(setting, ffi.new("_Bool[1]", [value]))

    def _read_flags(self) -> int:
        return int(self._get(lib.CU_COREDUMP_GENERATION_FLAGS, "unsigned int[1]")[0])

    def _write_flags(self, flags: int) -> None:
        self._set(lib.CU_COREDUMP_GENERATION_FLAGS, ffi.new("unsigned int[1]", [flags]))

    def _read_path(self, setting: int) -> str:
        return os.fsdecode(ffi.string(self._get(setting, f"char[{_LONGEST + 1}]")))

    def _write_path(self, setting: int, value: object, name: str) -> None:
        if not isinstance(value, str | bytes | os.PathLike):
            raise TypeError(f"{name} must be a path, not {type(value).__name__}")
        path = os.fsencode(value)
        if b"\0" in path:
            raise ValueError(f"{name} must not have a NUL in it")
        if len(path) > _LONGEST:
            raise ValueError(f"{name} must have at most {_LONGEST} bytes, not {len(path)}")
        self._set(setting, ffi.new("char[]", path))


def _check_flag(value: object, name: str) -> None:
    """Raise unless a value is a bool."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be a bool, not {type(value).__name__}")
