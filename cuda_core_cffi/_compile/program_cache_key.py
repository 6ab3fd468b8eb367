# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Keys of compiled programs: everything that the compiled code depends on, in a few bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cuda_core_cffi._code.carried_ptx import carries_ptx
from cuda_core_cffi._compile.compiler import Compiler
from cuda_core_cffi._compile.compilers import check_target, compiler_for
from cuda_core_cffi._compile.program_options import DEFAULT_NAME, ProgramOptions
from cuda_core_cffi._compile.resolved_options import ResolvedOptions, resolve
from cuda_core_cffi._core.option_spelling import is_asked_for
from cuda_core_cffi._core.options import check_options
from cuda_core_cffi.typing import ObjectCodeFormatType, SourceCodeType

_FORMAT = b"cuda-core-cffi program 2"  # to be changed with what goes into a key, so that old entries are not found

_SIDE_EFFECTS = {
    "create_pch": "writes a precompiled header",
    "time": "reports how long each phase took",
    "fdevice_time_trace": "writes a time trace",
}


def make_program_cache_key(
    *,
    code: str | bytes,
    code_type: SourceCodeType | str,
    options: ProgramOptions | Mapping[str, Any],
    target_type: ObjectCodeFormatType | str,
    name_expressions: Sequence[str | bytes | bytearray] = (),
    extra_digest: bytes | None = None,
) -> bytes:
    """Return the key under which a cache keeps a compiled program.

    ``Program.compile(..., cache=cache)`` does this itself. Call it where that refuses: for code that depends on files.

    Parameters
    ----------
    code : str or bytes
        The source.
    code_type : SourceCodeType or str
        Its language, as for :class:`~cuda_core_cffi.Program`.
    options : ProgramOptions or Mapping
        How it is compiled. With `arch` None, the architecture of the current device is part of the key.
    target_type : ObjectCodeFormatType or str
        What is made, as for :meth:`Program.compile() <cuda_core_cffi.Program.compile>`.
    name_expressions : sequence of str or bytes, optional
        What is instantiated, in any order. A cache keeps no symbol mapping: with code from a cache, kernels are got by
        their mangled names.
    extra_digest : bytes, optional
        A digest of everything else that the code depends on: the content of headers and precompiled headers.

    Returns
    -------
    bytes
        The key: the same in every process, and another one if anything changes that the code may depend on, such as an
        option or the build of the compiler.

    Raises
    ------
    TypeError
        If an argument is of another type.
    ValueError
        If there is no such target; if an option makes the compiler do more than compile, which it would not do when the
        code comes from the cache (`create_pch`, `time`, `fdevice_time_trace`); or if the code depends on files, by an
        option (`include_path`, `pre_include`, `pch`, `use_pch`, `pch_dir`) or an ``#include`` that looks beside the
        source, and there is no ``extra_digest``.
    RuntimeError
        If the language is not one that can be compiled.
    UnavailableError
        If the compiler, whose version is part of the key, is not installed.
    """
    compiler = compiler_for(code_type)
    if not isinstance(code, str | bytes | bytearray):
        raise TypeError(f"code must be str or bytes, not {type(code).__name__}")
    target = check_target(compiler, target_type)
    if extra_digest is not None and not isinstance(extra_digest, bytes):
        raise TypeError(f"extra_digest must be bytes or None, not {type(extra_digest).__name__}")
    resolved = resolve(check_options(ProgramOptions, options, "make_program_cache_key"))
    spelt = compiler.spell(resolved, target)
    expressions = _check_expressions(name_expressions)
    source = code.encode() if isinstance(code, str) else bytes(code)
    begun = _begin(compiler, resolved.options, target, spelt, _build(compiler, target), expressions, extra_digest)
    if extra_digest is None:
        _refuse_files(compiler.files_included(source, resolved.options))
    return _finish(begun, source)


def program_key(
    compiler: Compiler, source: bytes, resolved: ResolvedOptions, target: ObjectCodeFormatType, spelt: list[bytes]
) -> bytes:
    """Return the key for what is checked already, and spelt for the compiler."""
    build = _build(compiler, target)
    kept = resolved.begun.get(target)
    if kept is None or kept[0] is not spelt or kept[1] != build:
        kept = spelt, build, _begin(compiler, resolved.options, target, spelt, build)
        if resolved.spelt.get(target) is spelt:
            resolved.begun[target] = kept
    _refuse_files(compiler.files_included(source, resolved.options))
    return _finish(kept[2].copy(), source)


def _build(compiler: Compiler, target: ObjectCodeFormatType) -> bytes:
    """Return what compiles, and whether the code carries its PTX."""
    return compiler.build() + (b" with PTX" if carries_ptx(target) else b"")


def _begin(
    compiler: Compiler,
    options: ProgramOptions,
    target: ObjectCodeFormatType,
    spelt: list[bytes],
    build: bytes,
    expressions: Iterable[bytes] = (),
    extra_digest: bytes | None = None,
) -> Any:
    """Return the digest of everything but the source, which is to come."""
    # On first need: it brings OpenSSL, which takes 4 ms.
    import hashlib

    _refuse_side_effects(options)
    if extra_digest is None:
        _refuse_files(compiler.files_asked_for(options))
    parts = [_FORMAT, compiler.backend.encode(), build, target.encode()]
    parts.append((options.name or DEFAULT_NAME).encode())  # it is in messages, in debugging information, and __FILE__
    parts.append(b"" if extra_digest is None else b"+" + extra_digest)
    more = list(compiler.more_inputs(options))
    parts += [b"%d more" % len(more), *more]
    parts += [*spelt, *sorted(set(expressions))]  # an option begins with a dash, and an expression does not
    # With their number, and its length before each part, no two lists of parts and no two sources make one text.
    text = b"%d:" % len(parts) + b"".join([b"%d:%b" % (len(part), part) for part in parts])
    return hashlib.sha256(text, usedforsecurity=False)


def _finish(begun: Any, source: bytes) -> bytes:
    begun.update(source)
    digest: bytes = begun.digest()
    return digest


def _refuse_files(reason: str | None) -> None:
    if reason is not None:
        raise ValueError(
            f"{reason}, which no key can know: call make_program_cache_key with an extra_digest of their content, and "
            "read and write the cache with that key"
        )


def _refuse_side_effects(options: ProgramOptions) -> None:
    for name, effect in _SIDE_EFFECTS.items():
        if is_asked_for(getattr(options, name)):
            raise ValueError(
                f"with {name} the compiler {effect}, and would not if the code came from a cache: compile without one"
            )


def _check_expressions(expressions: object) -> list[bytes]:
    if isinstance(expressions, str | bytes) or not isinstance(expressions, Sequence):
        raise TypeError(f"name_expressions must be a sequence of str or bytes, not {type(expressions).__name__}")
    for expression in expressions:
        if not isinstance(expression, str | bytes):
            raise TypeError(f"name_expressions must be str or bytes, not {type(expression).__name__}: {expression!r}")
    # Text and bytes are apart, because a symbol mapping tells them apart.
    return [b"s" + item.encode() if isinstance(item, str) else b"b" + item for item in expressions]
