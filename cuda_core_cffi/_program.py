# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Programs: source that becomes object code."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from cuda_core_cffi._errors import check_cleanup
from cuda_core_cffi._ffi import ffi, lib
from cuda_core_cffi._handle import Handle
from cuda_core_cffi._module import ObjectCode
from cuda_core_cffi._nvrtc import (
    add_name_expression,
    compile_program,
    create_program,
    grow_pch_heap,
    lowered_name,
    nvrtc_failure,
    pch_heap_is_exhausted,
    pch_status,
    program_log,
    program_output,
)
from cuda_core_cffi._options import check_options
from cuda_core_cffi._program_cache import ProgramCacheResource
from cuda_core_cffi._program_cache_key import program_key
from cuda_core_cffi._program_options import DEFAULT_NAME, ProgramOptions
from cuda_core_cffi.typing import CompilerBackendType, ObjectCodeFormatType, PCHStatusType, SourceCodeType

__all__ = ["Program"]

_SOURCES = (SourceCodeType.CXX,)
_TARGETS = (ObjectCodeFormatType.PTX, ObjectCodeFormatType.CUBIN, ObjectCodeFormatType.LTOIR)

# NVRTC has one heap for precompiled headers: growing it frees the old one, under whoever uses that.
_pch_lock = threading.Lock()


class Program(Handle):
    """Source to be compiled.

    Parameters
    ----------
    code : str or bytes or bytearray
        The source.
    code_type : SourceCodeType or str
        Its language: ``"c++"``, which NVRTC compiles.
    options : ProgramOptions or Mapping, optional
        How to compile it.

    Raises
    ------
    TypeError
        If an argument is of another type, or there is no such option.
    ValueError
        If the source is empty or has NUL in it, or an option has a wrong value.
    RuntimeError
        If the language is not one that can be compiled.
    UnavailableError
        If NVRTC is not installed.
    NVRTCError
        If NVRTC refuses the program.

    Notes
    -----
    A program can be compiled any number of times, to any targets, by several threads at once: other Python threads run
    while the compiler does. :attr:`handle` is the program of the first compilation; every other one gets a program of
    its own.
    """

    __slots__ = ("_name", "_options", "_pch_status", "_source", "_unused")

    _CTYPE = "nvrtcProgram"

    def __init__(
        self,
        code: str | bytes | bytearray,
        code_type: SourceCodeType | str,
        options: ProgramOptions | Mapping[str, Any] | None = None,
    ) -> None:
        _check_code_type(code_type)
        self._source = _check_source(code)
        self._options = check_options(ProgramOptions, options, "Program")
        self._name = self._options.name or DEFAULT_NAME
        self._pch_status: PCHStatusType | None = None
        self._box = create_program(self._source, self._name.encode())
        self._unused = [self._box]

    # Two programs are never the same one, even if NVRTC gives the second the address of the first.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<Program backend={str(self.backend)!r}>"

    def compile(
        self,
        target_type: ObjectCodeFormatType | str,
        name_expressions: Sequence[str] = (),
        logs: Any = None,
        *,
        cache: ProgramCacheResource | None = None,
    ) -> ObjectCode:
        """Compile the program.

        Parameters
        ----------
        target_type : ObjectCodeFormatType or str
            What to make: ``"ptx"``, ``"cubin"`` or ``"ltoir"``.
        name_expressions : sequence of str, optional
            C++ expressions that name kernels or variables, such as ``"scale<float>"``. Templates are instantiated for
            them, and :meth:`ObjectCode.get_kernel` takes them as names.
        logs : object with ``write(str)``, optional
            Gets the compiler's messages, also those of a compilation that fails. Code from a cache comes without any.
        cache : ProgramCacheResource, optional
            Where the code is looked for first, and kept once it is compiled. There is no such choice for a program with
            name expressions, because a cache does not keep what they became, nor for one that depends on files or whose
            options make the compiler write any: :func:`~cuda_core_cffi.utils.make_program_cache_key` tells which.

        Returns
        -------
        ObjectCode
            The code, under the name that the options give.

        Raises
        ------
        TypeError
            If an argument is of another type.
        ValueError
            If there is no such target, the options do not allow it, or there can be no key for a cache.
        NVRTCError
            If the source has errors or an option is wrong, with the compiler's log.
        RuntimeError
            If the program is closed.

        Warns
        -----
        RuntimeWarning
            If the code could not be written to the cache. It is returned all the same.
        """
        target = _check_target(target_type)
        expressions = _check_expressions(name_expressions)
        if logs is not None and not callable(getattr(logs, "write", None)):
            raise TypeError(f"logs must have a method write(str); {type(logs).__name__} has none")
        if cache is not None and not isinstance(cache, ProgramCacheResource):
            raise TypeError(f"cache must be a ProgramCacheResource or None, not {type(cache).__name__}: {cache!r}")
        if cache is not None and expressions:
            raise ValueError(
                f"name_expressions do not go with a cache, which does not keep what they became: {expressions!r}"
            )
        if self.is_closed:
            raise RuntimeError("this Program is closed")
        options = self._options.as_bytes(self.backend, target)
        if cache is not None:
            return self._compile_unless_cached(cache, target, options, logs)
        with _pch_lock if self._uses_pch else contextlib.nullcontext():
            return self._compile(target, expressions, options, logs)

    @property
    def backend(self) -> CompilerBackendType:
        """What compiles the program."""
        return CompilerBackendType.NVRTC

    @property
    def pch_status(self) -> PCHStatusType | None:
        """What became of the precompiled header in the last compilation.

        None before that, if the options asked for none, and where NVRTC is older than CUDA 12.8.
        """
        return self._pch_status

    @property
    def _makes_pch(self) -> bool:
        return bool(self._options.pch or self._options.create_pch)

    @property
    def _uses_pch(self) -> bool:
        return self._makes_pch or self._options.use_pch is not None

    def _compile(
        self, target: ObjectCodeFormatType, expressions: list[str], options: list[bytes], logs: Any
    ) -> ObjectCode:
        box = self._take()
        try:
            program = _run(box, expressions, options, logs)
            if self._makes_pch and pch_heap_is_exhausted(program) and grow_pch_heap(program):
                _drop(box)
                box = create_program(self._source, self._name.encode())
                program = _run(box, expressions, options, logs)
            if self._makes_pch:
                self._pch_status = pch_status(program)
            symbols = {expression: lowered_name(program, expression) for expression in expressions}
            return ObjectCode._make(program_output(program, target), target, self._name, symbols)
        finally:
            _drop(box)

    def _compile_unless_cached(
        self, cache: ProgramCacheResource, target: ObjectCodeFormatType, options: list[bytes], logs: Any
    ) -> ObjectCode:
        key = program_key(self._source, self._options, self.backend, target, options)
        data = cache.get(key)
        if data is not None:
            return ObjectCode._make(data, target, self._name, {})
        code = self._compile(target, [], options, logs)  # without precompiled headers: with them there is no key
        try:
            cache[key] = code
        except OSError as error:  # such as a full disk
            warnings.warn(f"compiled code could not be written to the cache: {error}", RuntimeWarning, stacklevel=3)
        return code

    def _take(self) -> Any:
        """Return the box of a program that was not compiled yet; it stays alive even if this object is closed."""
        try:
            box = lib.ccc_view(self._unused.pop())
        except IndexError:
            return create_program(self._source, self._name.encode())
        if not box:
            raise RuntimeError("this Program is closed")
        return box


def _run(box: Any, expressions: list[str], options: list[bytes], logs: Any) -> Any:
    """Compile the program in ``box`` and return it; raise what the compiler says."""
    program = ffi.cast("nvrtcProgram", lib.ccc_handle(box))
    for expression in expressions:
        add_name_expression(program, expression)
    status = compile_program(program, options)
    log = program_log(program)
    if log and logs is not None:
        logs.write(log)
    if status:
        raise nvrtc_failure(status, "nvrtcCompileProgram", log)
    return program


def _drop(box: Any) -> None:
    if waiting := lib.ccc_drop(box):
        check_cleanup(waiting)


def _check_code_type(code_type: object) -> None:
    if not isinstance(code_type, str):
        raise TypeError(f"code_type must be a str, not {type(code_type).__name__}: {code_type!r}")
    if code_type.lower() not in _SOURCES:
        raise RuntimeError(
            f"unsupported code_type {str(code_type)!r}: Program compiles {', '.join(map(repr, map(str, _SOURCES)))}"
        )


def _check_source(code: object) -> bytes:
    if not isinstance(code, str | bytes | bytearray):
        raise TypeError(f"code must be str, bytes or bytearray, not {type(code).__name__}")
    source = code.encode() if isinstance(code, str) else bytes(code)
    if not source.strip():
        raise ValueError("code must not be empty")
    if (position := source.find(b"\0")) >= 0:
        raise ValueError(f"code must not contain NUL: byte {position} is one, and the compiler would stop there")
    return source


def _check_target(target: object) -> ObjectCodeFormatType:
    if not isinstance(target, str):
        raise TypeError(f"target_type must be a str, not {type(target).__name__}: {target!r}")
    for known in _TARGETS:
        if target.lower() == known:
            return known
    raise ValueError(f"unsupported target_type {str(target)!r}: NVRTC makes {', '.join(map(repr, map(str, _TARGETS)))}")


def _check_expressions(expressions: object) -> list[str]:
    if isinstance(expressions, str | bytes) or not isinstance(expressions, Sequence):
        raise TypeError(f"name_expressions must be a sequence of str, not {type(expressions).__name__}")
    for expression in expressions:
        if not isinstance(expression, str):
            raise TypeError(f"name_expressions must be str, not {type(expression).__name__}: {expression!r}")
        if not expression or "\0" in expression:
            raise ValueError(f"a name expression must not be empty or contain NUL: {expression!r}")
    return list(expressions)
