# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""libNVVM, which compiles NVVM IR: the dialect of LLVM IR that is for GPUs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cuda_core_cffi._compile.compiler import Compiled, Compiler, Job
from cuda_core_cffi._compile.compiler_options import NVVM_TARGETS
from cuda_core_cffi._compile.nvvm_ir import check_module, is_bitcode
from cuda_core_cffi._compile.program_options import ProgramOptions
from cuda_core_cffi._compile.resolved_options import ResolvedOptions
from cuda_core_cffi._core.calls import Owner, make_in
from cuda_core_cffi._core.errors import NVVMError, failure, failure_with_log
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.libraries import NVVM_LIBRARY, find_libdevice
from cuda_core_cffi.typing import CompilerBackendType, ObjectCodeFormatType

# By name, because libNVVM itself tells the name of a status.
_WRONG_DIALECT = ("NVVM_ERROR_INVALID_IR", "NVVM_ERROR_COMPILATION")
_WRONG_VERSION = "NVVM_ERROR_IR_VERSION_MISMATCH"
_SYNTAX_ERROR = "): parse "  # in text, after line and column
_UNREADABLE = ": parse "

_OLD_LLVM = 7
_NEW_LLVM_SINCE = 100  # the architecture
_ARCH_OPTION = b"-arch="


class NVVM(Compiler):
    """libNVVM as programs use it."""

    title = "libNVVM"
    targets = NVVM_TARGETS

    backend = CompilerBackendType.NVVM
    handle_type = "nvvmProgram"

    def check_source(self, code: str | bytes | bytearray, options: ProgramOptions) -> bytes:
        for _ in _extra_modules(options):
            pass  # so that a mistake shows where it was made
        return check_module("code", code)

    def build(self) -> bytes:
        return NVVM_LIBRARY.build()

    def more_inputs(self, options: ProgramOptions) -> Iterable[bytes]:
        for name, module in _extra_modules(options):
            yield name
            yield module
        if options.use_libdevice:
            yield _libdevice()

    def usual_target(self, options: ProgramOptions) -> ObjectCodeFormatType:
        return ObjectCodeFormatType.PTX

    def spell(self, resolved: ResolvedOptions, target: ObjectCodeFormatType) -> list[bytes]:
        return resolved.options.as_bytes(CompilerBackendType.NVVM, target)

    def create(self, owner: Owner, source: bytes, name: str, options: ProgramOptions) -> None:
        NVVM_LIBRARY.load()
        status = ffi.new("int *")
        if not make_in(owner, lib.ccc_nvvm_create, status):
            raise _failure(status[0], "nvvmCreateProgram") if status[0] else failure(lib.ccc_last_status())

    def compile(self, c_handle: Any, job: Job) -> Compiled:
        table = NVVM_LIBRARY.load()
        program = ffi.cast("nvvmProgram", lib.ccc_handle_value(c_handle))
        modules = [(job.name.encode(), job.source), *_extra_modules(job.options)]
        for name, module in modules:
            _add(table.nvvmAddModuleToProgram, "nvvmAddModuleToProgram", program, module, name)
        if job.options.use_libdevice:
            _add(table.nvvmLazyAddModuleToProgram, "nvvmLazyAddModuleToProgram", program, _libdevice(), b"libdevice")
        llvm = _llvm_version(job.spelt)
        if llvm == _OLD_LLVM and any(is_bitcode(module) for _, module in modules):
            _refuse_unreadable(program)
        for step in ("nvvmVerifyProgram", "nvvmCompileProgram"):
            status, log = _run(step, program, job.spelt)
            job.write(log)
            if status:
                raise _failure(status, step, log, llvm)
        data = NVVM_LIBRARY.copy_out(program, "nvvmGetCompiledResult", _failure)
        if job.target is ObjectCodeFormatType.PTX:
            data = data.rstrip(b"\0")  # its size counts the terminator
        return Compiled(data, {}, None)


def _failure(status: int, call: str, log: str = "", llvm: int | None = None) -> NVVMError:
    """Return the exception for a status of libNVVM, with the compiler's log at its end."""
    name = str(ffi.string(NVVM_LIBRARY.load().nvvmGetErrorString(status)).decode())
    text = f"{call} failed: {name} ({status})"
    if name == _WRONG_VERSION:
        text += f"; this libNVVM reads {_ir_version()}: the module's !nvvmir.version must say so"
    elif name in _WRONG_DIALECT and _SYNTAX_ERROR in log and llvm is not None:
        pointers = "pointers to a type, such as i32*" if llvm == _OLD_LLVM else "pointers without type: ptr"
        text += f"; for this arch, this libNVVM reads the IR of LLVM {llvm}, which has {pointers}"
    return failure_with_log(NVVMError, text, log, call, status, name)


def _run(call: str, program: Any, options: list[bytes]) -> tuple[int, str]:
    """Verify or compile, and return the status and what libNVVM says."""
    texts = [ffi.new("char[]", option) for option in options]
    status = getattr(NVVM_LIBRARY.load(), call)(program, len(texts), ffi.new("const char *[]", texts))
    log = NVVM_LIBRARY.copy_out(program, "nvvmGetProgramLog", _failure)
    return int(status), log.rstrip(b"\0").decode(errors="replace")


def _refuse_unreadable(program: Any) -> None:
    """Raise for bitcode that cannot be read.

    Where libNVVM reads the IR of LLVM 7, it ends the process for that (seen with 12.4 to 13.5). Where it reads that of
    a newer LLVM, which reads the old one too, it says why. An older libNVVM does not know such an architecture.
    """
    status, log = _run("nvvmVerifyProgram", program, [_ARCH_OPTION + b"compute_%d" % _NEW_LLVM_SINCE])
    if status and _UNREADABLE in log:
        raise _failure(status, "nvvmVerifyProgram", log)


def _add(function: Callable[..., int], call: str, program: Any, module: bytes, name: bytes) -> None:
    status = function(program, ffi.from_buffer("char[]", module), len(module), ffi.new("char[]", name))
    if status:
        raise _failure(status, f"{call}({name.decode()!r})")


def _extra_modules(options: ProgramOptions) -> Iterator[tuple[bytes, bytes]]:
    for name, code in options.extra_sources or ():
        yield name.encode(), check_module(f"the extra source {name!r}", code)


@functools.cache
def _libdevice() -> bytes:
    path = find_libdevice()
    with open(path, "rb") as file:
        return check_module(f"the file {path!r}", file.read())


def _ir_version() -> str:
    out = ffi.new("int[4]")
    if NVVM_LIBRARY.load().nvvmIRVersion(out, out + 1, out + 2, out + 3):
        return "another version of NVVM IR"
    return f"NVVM IR {out[0]}.{out[1]} with debugging information {out[2]}.{out[3]}"


def _llvm_version(options: list[bytes]) -> int | None:
    """Return whose IR is read with these options; None where this libNVVM does not tell and it could be any."""
    arch = next((option.removeprefix(_ARCH_OPTION) for option in options if option.startswith(_ARCH_OPTION)), None)
    if arch is None or int(arch.removeprefix(b"compute_").rstrip(b"af")) < _NEW_LLVM_SINCE:
        return _OLD_LLVM
    function, out = NVVM_LIBRARY.load().nvvmLLVMVersion, ffi.new("int *")
    return None if not function or function(arch, out) else int(out[0])
