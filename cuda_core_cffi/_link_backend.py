# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What :class:`Linker` asks of the library that links: nvJitLink, or the driver."""

from __future__ import annotations

import abc
from typing import Any, ClassVar, NamedTuple

from cuda_core_cffi._errors import LinkerError
from cuda_core_cffi._linker_options import LinkerOptions
from cuda_core_cffi.typing import CompilerBackendType, ObjectCodeFormatType

__all__ = ["LinkBackend", "LinkInput", "LinkLogs", "linker_failure"]


class LinkInput(NamedTuple):
    """One input: its format, the code itself, and its name in messages."""

    code_type: ObjectCodeFormatType
    data: bytes
    name: str


class LinkLogs(NamedTuple):
    """What a linker said."""

    error: str
    info: str


class LinkBackend(abc.ABC):
    """A library that links. It has no state: that is in the boxes that it creates, each of which links once.

    Attributes
    ----------
    handle_type : str
        The C type of its linkers.
    targets : tuple of ObjectCodeFormatType
        What it makes.
    """

    handle_type: ClassVar[str]
    targets: ClassVar[tuple[ObjectCodeFormatType, ...]]

    @property
    @abc.abstractmethod
    def backend(self) -> CompilerBackendType:
        """What it is called in the public API."""

    @abc.abstractmethod
    def create(self, options: LinkerOptions, target: ObjectCodeFormatType) -> Any:
        """Return the box of a new linker, which is to make ``target``."""

    @abc.abstractmethod
    def add(self, box: Any, item: LinkInput) -> None:
        """Add an input."""

    @abc.abstractmethod
    def complete(self, box: Any, target: ObjectCodeFormatType) -> bytes:
        """Link what was added and return the code."""

    @abc.abstractmethod
    def logs(self, box: Any) -> LinkLogs:
        """Return what the linker said so far."""


def linker_failure(call: str, status: int, name: str, detail: str, log: str) -> LinkerError:
    """Return the exception for a linker's status, with its log at the end."""
    text = f"{call} failed: {name} ({status}){detail}"
    error = LinkerError(f"{text}\n{log.rstrip()}" if log else text)
    error.call, error.status, error.name = call.partition("(")[0], int(status), name
    return error
