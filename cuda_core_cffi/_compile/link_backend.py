# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""What :class:`Linker` asks of the library that links: nvJitLink, or the driver."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from cuda_core_cffi._code.carried_ptx import carried_ptx, without_ptx
from cuda_core_cffi._compile.linker_options import LinkerOptions
from cuda_core_cffi._core.calls import Owner, close
from cuda_core_cffi._core.errors import LinkerError
from cuda_core_cffi._core.ffi import ffi
from cuda_core_cffi._core.handle import has_handle
from cuda_core_cffi._core.options import named
from cuda_core_cffi.typing import CompilerBackendType, ObjectCodeFormatType

if TYPE_CHECKING:
    from cuda_core_cffi._core.ffi import CData


class LinkInput(NamedTuple):
    """One input: its format, the code itself, and its name in messages."""

    code_type: ObjectCodeFormatType
    data: bytes
    name: str

    def padded(self) -> bytes:
        """Return the code as linkers take it: PTX ends at a zero, which counts."""
        return self.data + b"\0" if self.code_type is ObjectCodeFormatType.PTX else without_ptx(self.data)

    def ptx(self) -> bytes:
        """Return the PTX of the input, or the PTX that it carries; empty if it has none."""
        return self.data.rstrip(b"\0") if self.code_type is ObjectCodeFormatType.PTX else carried_ptx(self.data)


class LinkLogs(NamedTuple):
    """What a linker said."""

    error: str
    info: str


class LinkResult(NamedTuple):
    """The result of linking: the code, or the error."""

    data: bytes
    error: LinkerError | None
    is_refused: bool  # the error is about one of the inputs alone
    logs: LinkLogs


class LinkBackend(abc.ABC):
    """A library that links. It has no state: that is in the linkers that owners get, each of which links once.

    nvJitLink 12 and 13 leave a reference to freed memory in the thread that created a linker, if another thread
    completes it or destroys it incomplete: later linking crashes (seen). So a linker is completed, or else destroyed,
    before :meth:`link` returns.
    """

    handle_type: ClassVar[str]  # the C type of its linkers
    targets: ClassVar[tuple[ObjectCodeFormatType, ...]]  # what it makes

    @property
    @abc.abstractmethod
    def backend(self) -> CompilerBackendType:
        """What it is called in the public API."""

    @abc.abstractmethod
    def build(self) -> bytes:
        """Return what tells this build of the library from others, which may make other code of the same source."""

    @abc.abstractmethod
    def resolve(self, options: LinkerOptions) -> LinkerOptions:
        """Return a copy of the options that stays as it is, whatever device is current later; raise for wrong ones."""

    def check_target(self, target: object) -> ObjectCodeFormatType:
        """Return the target; raise if it is not made, or needs a newer library."""
        return named(self.targets, target, "target_type", f"{self.backend} makes")

    @abc.abstractmethod
    def idle(self, owner: Owner, options: LinkerOptions, target: ObjectCodeFormatType) -> None:
        """Give an owner a linker that never links."""

    def link(
        self, owner: Owner, options: LinkerOptions, target: ObjectCodeFormatType, inputs: Sequence[LinkInput]
    ) -> LinkResult:
        """Give an owner a linker, and link; raise :class:`LinkerError` only for options that the library refuses."""
        data, error, is_refused = b"", None, True
        try:
            self._create(owner, options, target, [item.name for item in inputs])
            c_handle = owner._c_handle
            try:
                for index, item in enumerate(inputs):
                    self._add(c_handle, index, item)
                is_refused = False
                data = self._complete(c_handle, target)
            except LinkerError as failed:
                error = failed.with_traceback(None)
            logs = self._logs(c_handle, options)
        except BaseException:
            if has_handle(owner):
                close(owner)  # in this thread
            raise
        if error is not None:
            close(owner)
        return LinkResult(data, error, is_refused, logs)

    @abc.abstractmethod
    def _create(self, owner: Owner, options: LinkerOptions, target: ObjectCodeFormatType, names: Sequence[str]) -> None:
        """Give an owner a new linker that is to make ``target`` of inputs with these names."""

    @abc.abstractmethod
    def _add(self, c_handle: Any, index: int, item: LinkInput) -> None:
        """Add an input, whose name was the ``index``th."""

    @abc.abstractmethod
    def _complete(self, c_handle: Any, target: ObjectCodeFormatType) -> bytes:
        """Link the inputs and return the code."""

    @abc.abstractmethod
    def _logs(self, c_handle: Any, options: LinkerOptions) -> LinkLogs:
        """Return what the linker, which was created with these options, said so far."""


def c_name(name: str) -> CData:
    """Return the name of an input for C; it may have come from anywhere."""
    text: CData = ffi.new("char[]", name.replace("\0", " ").encode(errors="replace"))
    return text
