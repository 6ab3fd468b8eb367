# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What :class:`Program` asks of a compiler. Each has a module of its own, and ``compilers.py`` the table of them."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

from cuda_core_cffi._compile.program_options import ProgramOptions
from cuda_core_cffi._compile.resolved_options import ResolvedOptions, resolve
from cuda_core_cffi._core.calls import Owner
from cuda_core_cffi.typing import CompilerBackendType, ObjectCodeFormatType, PCHStatusType


class Job(NamedTuple):
    """One compilation."""

    source: bytes  # what `Compiler.check_source` returned
    name: str  # of the program
    options: ProgramOptions
    spelt: list[bytes]  # the options for the compiler: what `Compiler.spell` returned
    target: ObjectCodeFormatType  # what to make
    expressions: Sequence[str]  # the name expressions
    logs: Any  # an object with write(str), which gets the compiler's messages, or None

    def write(self, log: str) -> None:
        """Hand on what the compiler said, if it said anything."""
        if log and self.logs is not None:
            self.logs.write(log)


class Compiled(NamedTuple):
    """What became of a job: the code, the symbol of each name expression, and what became of a precompiled header."""

    data: bytes
    symbols: dict[str, str]
    pch_status: PCHStatusType | None


class Compiler(abc.ABC):
    """A compiler. It has no state: that is in the C handles that it creates."""

    title: ClassVar[str]  # its name in messages
    targets: ClassVar[tuple[ObjectCodeFormatType, ...]]  # what it makes
    knows_expressions: ClassVar[bool] = False  # whether its language has name expressions

    @property
    @abc.abstractmethod
    def backend(self) -> CompilerBackendType:
        """What it is called in the public API."""

    @property
    @abc.abstractmethod
    def handle_type(self) -> str:
        """The C type of its programs."""

    def resolve(self, options: ProgramOptions) -> ResolvedOptions:
        """Return the options as they are now, for a program."""
        return resolve(options)

    @abc.abstractmethod
    def check_source(self, code: str | bytes | bytearray, options: ProgramOptions) -> bytes:
        """Return the source as bytes; raise :class:`ValueError` for what cannot be one, here or in the options."""

    @abc.abstractmethod
    def build(self) -> bytes:
        """Return what tells this build of the compiler from others, which may make other code of the same source."""

    def more_inputs(self, options: ProgramOptions) -> Iterable[bytes]:
        """Return what is compiled besides the source."""
        return ()

    def files_asked_for(self, options: ProgramOptions) -> str | None:
        """Return which option makes the compiler read files, in words; None if none does."""
        return None

    def files_included(self, source: bytes, options: ProgramOptions) -> str | None:
        """Return what makes the compiler read files that nobody knows beforehand, in words; None if nothing does."""
        return None

    def needs_source_file(self, options: ProgramOptions) -> bool:
        """Return whether debuggers look for the source of a program that has no name in a file."""
        return False

    @abc.abstractmethod
    def spell(self, resolved: ResolvedOptions, target: ObjectCodeFormatType) -> list[bytes]:
        """Return the options as the compiler knows them; raise :class:`ValueError` if they do not go together."""

    @abc.abstractmethod
    def create(self, owner: Owner, source: bytes, name: str, options: ProgramOptions) -> None:
        """Give an owner a new program, for one compilation."""

    @abc.abstractmethod
    def compile(self, c_handle: Any, job: Job) -> Compiled:
        """Compile with the program in ``c_handle``, which was not used before and has an owner."""


def check_text(code: str | bytes | bytearray) -> bytes:
    """Return source that is text as bytes."""
    source = code.encode() if isinstance(code, str) else bytes(code)
    if (position := source.find(b"\0")) >= 0:
        raise ValueError(f"code must not contain NUL: byte {position} is one, and the compiler would stop there")
    return source
