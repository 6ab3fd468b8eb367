# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Which compiler compiles which language, and to what."""

from __future__ import annotations

from cuda_core_cffi._compile.compiler import Compiler
from cuda_core_cffi._compile.nvrtc import NVRTC
from cuda_core_cffi._compile.nvvm import NVVM
from cuda_core_cffi._compile.ptx import PTX
from cuda_core_cffi._core.options import named
from cuda_core_cffi.typing import ObjectCodeFormatType, SourceCodeType

_COMPILERS: dict[SourceCodeType, Compiler] = {
    SourceCodeType.CXX: NVRTC(),
    SourceCodeType.NVVM: NVVM(),
    SourceCodeType.PTX: PTX(),
}


def compiler_for(code_type: object) -> Compiler:
    """Return the compiler for a language; raise TypeError for no str, RuntimeError for one that cannot be compiled."""
    return _COMPILERS[named(_COMPILERS, code_type, "code_type", "Program compiles", RuntimeError)]


def check_target(compiler: Compiler, target: object) -> ObjectCodeFormatType:
    """Return the target; raise TypeError if it is no str, ValueError if the compiler does not make it."""
    return named(compiler.targets, target, "target_type", f"{compiler.title} makes")
