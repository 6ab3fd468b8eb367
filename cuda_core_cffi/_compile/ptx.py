# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""PTX, which the linker assembles: nvJitLink, or the driver where that is missing."""

from __future__ import annotations

import warnings
from typing import Any

from cuda_core_cffi._code.architecture import current_architecture
from cuda_core_cffi._compile.compiler import Compiled, Compiler, Job, check_text
from cuda_core_cffi._compile.link_backend import LinkInput
from cuda_core_cffi._compile.linker import link_backend, warn_if_the_driver_links
from cuda_core_cffi._compile.linker_options import LinkerOptions
from cuda_core_cffi._compile.program_options import ProgramOptions
from cuda_core_cffi._compile.resolved_options import ResolvedOptions
from cuda_core_cffi._core.calls import Owner, close
from cuda_core_cffi._core.handle import Use
from cuda_core_cffi._core.option_spelling import asked_besides, is_asked_for
from cuda_core_cffi.typing import CompilerBackendType, ObjectCodeFormatType

# Options that the linker knows by the same name.
_SHARED = (
    *("name", "arch", "max_register_count", "debug", "lineinfo", "ftz", "prec_div", "prec_sqrt", "fma"),
    *("ptxas_options", "split_compile", "no_cache"),
)
_LEVELS = {True: 3, False: 0, None: None}
_TIMES_IN_LOG = "-"
_KNOWN = {*_SHARED, "device_code_optimize", "time"}


class PTX(Compiler):
    """The linker as programs use it."""

    title = "the linker"
    targets = (ObjectCodeFormatType.CUBIN,)

    @property
    def backend(self) -> CompilerBackendType:
        return link_backend().backend

    @property
    def handle_type(self) -> str:
        return link_backend().handle_type

    def resolve(self, options: ProgramOptions) -> ResolvedOptions:
        resolved = ResolvedOptions(options, vars(options))  # its own, because it gets an architecture
        warn_if_the_driver_links(stacklevel=3)
        linker_options = _linker_options(resolved.options)
        resolved.options.arch = linker_options.arch
        if ignored := asked_besides(_KNOWN, vars(resolved.options)):
            text = f"PTX is assembled by the linker, which has no option for {', '.join(ignored)}"
            warnings.warn(text, UserWarning, stacklevel=3)
        return resolved

    def check_source(self, code: str | bytes | bytearray, options: ProgramOptions) -> bytes:
        source = code.encode() if isinstance(code, str) else bytes(code)
        if not check_text(source.rstrip(b"\0")).strip():  # C programs end it with a zero
            raise ValueError("PTX must not be empty")
        return source

    def build(self) -> bytes:
        return link_backend().build()

    def spell(self, resolved: ResolvedOptions, target: ObjectCodeFormatType) -> list[bytes]:
        options = resolved.options
        # the driver takes no text, and by default the architecture of the context
        return [repr(_linker_options(options)).encode(), str(options.arch or current_architecture()).encode()]

    def create(self, owner: Owner, source: bytes, name: str, options: ProgramOptions) -> None:
        link_backend().idle(owner, _linker_options(options), self.targets[0])

    def compile(self, c_handle: Any, job: Job) -> Compiled:
        # not with the linker in the C handle: that would have to be used in the thread that created it
        item = LinkInput(ObjectCodeFormatType.PTX, job.source.rstrip(b"\0"), job.name)
        owner = Use()
        result = link_backend().link(owner, _linker_options(job.options), job.target, [item])
        close(owner)
        job.write(result.logs.error)
        job.write(result.logs.info)
        if result.error is not None:
            raise result.error
        return Compiled(result.data, {}, None)


def _linker_options(options: ProgramOptions) -> LinkerOptions:
    """Return what the options are to the linker, with an architecture."""
    if options.extra_sources:
        raise ValueError("extra_sources are for NVVM IR; several pieces of PTX are linked by a Linker")
    if options.link_time_optimization:
        raise ValueError("link_time_optimization is for LTO IR; PTX can only be assembled")
    if is_asked_for(options.time) and options.time not in (True, _TIMES_IN_LOG):
        raise ValueError(f"time must be {_TIMES_IN_LOG!r} for PTX, whose times go to the log, not {options.time!r}")
    linker_options = LinkerOptions(
        **{name: getattr(options, name) for name in _SHARED},
        optimization_level=_LEVELS[options.device_code_optimize],
        time=is_asked_for(options.time),
    )
    return link_backend().resolve(linker_options)
