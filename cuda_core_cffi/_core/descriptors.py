# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What sharing between processes needs everywhere: opaque payloads, and the warning about fork.

A payload is 64 bytes that the driver makes in one process and understands in another. What arrives may come from
anywhere, so it travels with a checksum, and a descriptor checks both when it is made: driver 580 trusts the content.

:mod:`multiprocessing` is imported by the first object that can be shared: it takes longer to import than this package.
"""

from __future__ import annotations

import sys
import warnings
import zlib
from collections.abc import Callable
from typing import Any, ClassVar, Self

from cuda_core_cffi._core.ffi import lib

PAYLOAD_BYTES = int(lib.CU_IPC_HANDLE_SIZE)
SEALED_BYTES = PAYLOAD_BYTES + 4
OTHER_METHODS = {"multiprocessing.popen_forkserver", "multiprocessing.popen_spawn_posix"}
"""Modules that are imported when a process is started in another way than with fork."""


class Descriptor:
    """Name something of this process to another. Descriptors can be pickled in any way."""

    __slots__ = ("_payload",)

    _MADE_BY: ClassVar[str]
    _payload: bytes

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise RuntimeError(f"{type(self).__name__} cannot be constructed directly; use {self._MADE_BY}")

    @classmethod
    def _from_payload(cls, sealed: bytes) -> Self:
        """Return a descriptor for what :func:`seal` made, which may come from another process.

        Raises
        ------
        TypeError
            If it is not bytes.
        ValueError
            If it has the wrong length, or was damaged.
        """
        if type(sealed) is not bytes:
            raise TypeError(f"the payload of {cls.__name__} must be bytes, not {type(sealed).__name__}")
        if len(sealed) != SEALED_BYTES:
            raise ValueError(f"the payload of {cls.__name__} must have {SEALED_BYTES} bytes, not {len(sealed)}")
        self = cls.__new__(cls)
        self._payload = sealed[:PAYLOAD_BYTES]
        if seal(self._payload) != sealed:
            raise ValueError(f"the payload of {cls.__name__} is damaged")
        return self


def seal(payload: bytes) -> bytes:
    """Return the driver's payload with a checksum behind it: drivers trust what they are given, and crash on damage."""
    return payload + zlib.crc32(payload).to_bytes(SEALED_BYTES - PAYLOAD_BYTES, "little")


def send_with(cls: type, reduce: Callable[[Any], Any]) -> None:
    """Let objects of a class pass through multiprocessing, and through nothing else that pickles."""
    from multiprocessing.reduction import ForkingPickler  # here for the reason that the module's text gives

    def reduce_and_warn(instance: Any) -> Any:
        warn_about_fork()
        return reduce(instance)

    ForkingPickler.register(cls, reduce_and_warn)


_unwarned = [True]  # emptied once


def warn_about_fork() -> None:
    """Warn, once in a process, if its children are made with fork: they cannot use CUDA if the parent has."""
    import multiprocessing  # likewise
    from multiprocessing.context import get_spawning_popen

    if get_spawning_popen() is not None:  # an argument of a process that is being spawned
        return
    # There is no method before the default context is used, and asking without allow_none would settle it. Starting a
    # process of another context settles it, too, though the program does not use it.
    if multiprocessing.get_start_method(allow_none=True) != "fork" or not OTHER_METHODS.isdisjoint(sys.modules):
        return
    try:
        _unwarned.pop()
    except IndexError:
        return
    warnings.warn(
        "multiprocessing starts processes with fork, and a forked child of a process that uses CUDA cannot use it: "
        "call multiprocessing.set_start_method('spawn') first, or take processes and queues from "
        "multiprocessing.get_context('spawn')",
        UserWarning,
        stacklevel=4,
    )
