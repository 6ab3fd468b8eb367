# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Which compiler compiles which language, and to what."""

from __future__ import annotations

from cuda_core_cffi._compile.compiler import Compiler
from cuda_core_cffi._compile.nvrtc import NVRTC
from cuda_core_cffi._compile.nvvm import NVVM
from cuda_core_cffi._compile.ptx import PTX
from cuda_core_cffi.typing import ObjectCodeFormatType, SourceCodeType

_COMPILERS: dict[SourceCodeType, Compiler] = {
    SourceCodeType.CXX: NVRTC(),
    SourceCodeType.NVVM: NVVM(),
    SourceCodeType.PTX: PTX(),
}


def compiler_for(code_type: object) -> Compiler:
    """Return the compiler for a language.

    Raises
    ------
    TypeError
        If the language is no str.
    RuntimeError
        If it is not one that can be compiled.
    """
    if not isinstance(code_type, str):
        raise TypeError(f"code_type must be a str, not {type(code_type).__name__}: {code_type!r}")
    for known, compiler in _COMPILERS.items():
        if code_type.lower() == known:
            return compiler
    raise RuntimeError(
        f"unsupported code_type {str(code_type)!r}: Program compiles {', '.join(map(repr, map(str, _COMPILERS)))}"
    )


def check_target(compiler: Compiler, target: object) -> ObjectCodeFormatType:
    """Return the target, which must be one that the compiler makes.

    Raises
    ------
    TypeError
        If the target is no str.
    ValueError
        If the compiler does not make it.
    """
    if not isinstance(target, str):
        raise TypeError(f"target_type must be a str, not {type(target).__name__}: {target!r}")
    for known in compiler.targets:
        if target.lower() == known:
            return known
    raise ValueError(
        f"unsupported target_type {str(target)!r}: {compiler.title} makes "
        f"{', '.join(map(repr, map(str, compiler.targets)))}"
    )
