# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Programs: source that becomes object code."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from cuda_core_cffi._code.object_code import ObjectCode
from cuda_core_cffi._compile.compiler import Job
from cuda_core_cffi._compile.compilers import check_target, compiler_for
from cuda_core_cffi._compile.program_cache import ProgramCacheResource
from cuda_core_cffi._compile.program_cache_key import program_key
from cuda_core_cffi._compile.program_options import DEFAULT_NAME, ProgramOptions
from cuda_core_cffi._compile.source_file import SourceFile
from cuda_core_cffi._core.calls import Owner, close, make
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import Handle, Use, refuse_again
from cuda_core_cffi._core.options import check_options
from cuda_core_cffi.typing import CompilerBackendType, ObjectCodeFormatType, PCHStatusType, SourceCodeType

if TYPE_CHECKING:
    from cuda_core_cffi._core.ffi import CData
    from cuda_core_cffi.typing._option_dicts import ProgramOptionsDict

_CODE = str | bytes | bytearray

FILE_NAME: Final = re.compile(r"(?!\s*(?://|/\*|#))[^\n;{}()]*\.(?:cu|cuh|cpp|cc|cxx|c|h|hpp|ptx|ll|bc|nvvm)\s*")
MOST_OF_A_PATH: Final = 4096  # characters

_is_open = lib.ccc_is_open


class Program(Handle):
    """Source to be compiled.

    Parameters
    ----------
    code : str or bytes or bytearray
        The source. NVVM IR may be text or bitcode.
    code_type : SourceCodeType or str
        Its language: ``"c++"``, which NVRTC compiles; ``"nvvm"`` for NVVM IR, which libNVVM compiles; or ``"ptx"``,
        which the linker assembles, nvJitLink or else the driver.
    options : ProgramOptions or Mapping, optional
        How to compile it. The program keeps a copy.

    Raises
    ------
    TypeError
        If an argument is of another type, or there is no such option.
    ValueError
        If the source is empty, C++ or PTX with NUL in it, or NVVM IR that was cut off or has no data layout; if an
        option has a wrong value; or if there is neither an architecture nor a current device to assemble PTX for.
    RuntimeError
        If the language is not one that can be compiled.
    UnavailableError
        If the compiler is not installed.
    NVRTCError, NVVMError, LinkerError
        If the compiler refuses the program.

    Warns
    -----
    UserWarning
        If an option is left out, because the linker does not have it.
    RuntimeWarning
        If the source could not be written to a temporary file for debuggers.

    Notes
    -----
    C++ with `debug` or `lineinfo` and without a `name` is written to a temporary file, ``cuda_core_*.cu``, which only
    this user can read. Debugging information and the compiler's messages name that file, and it is the
    :attr:`~ObjectCode.name` of the code, so cuda-gdb and compute-sanitizer find the source. :meth:`close` removes the
    file; so do the finalizer of the program and the end of the interpreter. With precompiled headers no file is
    written, because the ``#line`` directive that names it disables them.

    A program can be compiled any number of times, to any targets, by several threads at once: other Python threads run
    while the compiler does. :attr:`handle` is the program of the first compilation; every other one gets a program of
    its own.

    Examples
    --------
    >>> source = 'extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }'
    >>> program = Program(source, "c++", {"arch": "sm_90", "name": "twice.cu"})
    >>> code = program.compile("ptx")
    >>> ".visible .entry twice" in code.code.decode()
    True
    """

    __slots__ = ("_compiler", "_file", "_name", "_pch_status", "_resolved", "_source", "_text", "_unused")

    _CTYPE = "void *"  # each compiler has a type of its own

    def __init__(
        self,
        code: str | bytes | bytearray,
        code_type: SourceCodeType | Literal["c++", "ptx", "nvvm"],
        options: ProgramOptions | ProgramOptionsDict | None = None,
    ) -> None:
        refuse_again(self)
        self._compiler = compiler = compiler_for(code_type)
        if not isinstance(code, _CODE):
            hint = "; read the file: path.read_text()" if isinstance(code, os.PathLike) else ""
            raise TypeError(f"code must be str, bytes or bytearray, not {type(code).__name__}{hint}")
        if FILE_NAME.fullmatch(code if isinstance(code, str) else code[:MOST_OF_A_PATH].decode(errors="replace")):
            raise ValueError(
                f"code is the source itself, and {code!r} looks like the name of a file: read it, with "
                "pathlib.Path(name).read_text() or, for bitcode, read_bytes()"
            )
        self._resolved = compiler.resolve(check_options(ProgramOptions, options, "Program"))
        resolved = self._resolved.options
        self._source = compiler.check_source(code, resolved)
        self._name = resolved.name or DEFAULT_NAME
        self._pch_status: PCHStatusType | None = None
        self._text = self._source  # the text for the compiler
        self._file: SourceFile | None = None
        try:
            if compiler.needs_source_file(resolved):
                self._write_source()
            compiler.create(self, self._text, self._name, resolved)
        except BaseException:
            self._remove_source()
            raise
        self._unused = [True]  # whether this object's own program was not compiled yet; popped by one thread

    # Two programs are never the same one, even if NVRTC gives the second the address of the first.
    def __eq__(self, other: object) -> bool:
        return True if self is other else NotImplemented

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<Program backend={str(self.backend)!r}>"

    def close(self) -> None:
        """Destroy the program now, and remove the temporary file with its source. Closing twice is allowed."""
        self._remove_source()
        super().close()

    def compile(
        self,
        target_type: ObjectCodeFormatType | Literal["ptx", "cubin", "ltoir"] | None = None,
        name_expressions: Sequence[str] | Literal[False] | None = (),
        logs: Any = None,
        *,
        cache: ProgramCacheResource | None = None,
    ) -> ObjectCode:
        """Compile the program.

        Parameters
        ----------
        target_type : ObjectCodeFormatType or str, optional
            What to make. Of C++: ``"ptx"``, ``"cubin"`` or ``"ltoir"``. Of NVVM IR: ``"ptx"`` or ``"ltoir"``.
            Of PTX: ``"cubin"``. By default what the current device loads: a cubin; PTX of NVVM IR, and for a virtual
            architecture (``"compute_90"``).
        name_expressions : sequence of str, optional
            C++ expressions that name kernels or variables, such as ``"scale<float>"``. Templates are instantiated for
            them, and :meth:`ObjectCode.get_kernel` takes them as names. PTX and NVVM IR have none, and ignore them.
        logs : object with ``write(str)``, optional
            Gets the compiler's messages, also those of a compilation that fails. Code from a cache comes without any.
        cache : ProgramCacheResource, optional
            Where the code is looked for first, and kept once it is compiled. There is no such choice for a program with
            name expressions, because a cache does not keep what they became, nor for one that depends on files or whose
            options make the compiler write any: :func:`~cuda_core_cffi.utils.make_program_cache_key` tells which.
            Code in a cache outlives the temporary file of a program that has no `name`, so its debugging information
            names ``default_program`` instead.

        Returns
        -------
        ObjectCode
            The code, under the name that the options give. While the simulated driver is in use, a cubin carries its
            PTX, which that driver runs; other drivers load the same bytes as the cubin that they begin with.

        Raises
        ------
        TypeError
            If an argument is of another type.
        ValueError
            If there is no such target, the options do not allow it, or there can be no key for a cache.
        UnavailableError
            If the compiler has no option for something that is asked for, or libdevice is not installed.
        NVRTCError, NVVMError, LinkerError
            If the source has errors or an option is wrong, with the compiler's log.
        RuntimeError
            If the program is closed.

        Warns
        -----
        RuntimeWarning
            If the code could not be written to the cache. It is returned all the same.
        """
        compiler = self._compiler
        if target_type is None:
            target_type = compiler.usual_target(self._resolved.options)
        target = check_target(compiler, target_type)
        expressions = _check_expressions(name_expressions)
        if not compiler.knows_expressions:
            expressions = []
        if logs is not None and not callable(getattr(logs, "write", None)):
            raise TypeError(f"logs must have a method write(str); {type(logs).__name__} has none")
        if cache is not None:
            if not isinstance(cache, ProgramCacheResource):
                raise TypeError(f"cache must be a ProgramCacheResource or None, not {type(cache).__name__}: {cache!r}")
            if expressions:
                raise ValueError(
                    f"name_expressions do not go with a cache, which does not keep what they became: {expressions!r}"
                )
        if not _is_open(self._c_handle):
            raise RuntimeError("this Program is closed")
        spelt = compiler.spell(self._resolved, target)
        if cache is None:
            return self._compile(self._text, spelt, target, expressions, logs)
        key = program_key(compiler, self._source, self._resolved, target, spelt)
        data = cache.get(key)
        if data is not None:
            return ObjectCode._create(data, target, self._name, {})
        code = self._compile(self._source, spelt, target, expressions, logs)
        try:
            cache[key] = code
        except OSError as error:  # such as a full disk
            warnings.warn(f"compiled code could not be written to the cache: {error}", RuntimeWarning, stacklevel=2)
        return code

    @property
    def backend(self) -> CompilerBackendType:
        """What compiles the program."""
        return self._compiler.backend

    @property
    def cdata(self) -> CData:
        """The compiler's handle as a typed CFFI object; NULL once closed."""
        cdata: CData = ffi.cast(self._compiler.handle_type, lib.ccc_handle_value(self._c_handle))
        return cdata

    @property
    def pch_status(self) -> PCHStatusType | None:
        """What became of the precompiled header in the last compilation.

        None before that, if the options asked for none, and where NVRTC is older than CUDA 12.8.
        """
        return self._pch_status

    def _write_source(self) -> None:
        try:
            self._file = SourceFile(self, self._source)
            self._text = self._file.text(self._source)
        except OSError as error:  # such as a full disk
            warnings.warn(
                f"the source could not be written for debuggers, which will look for {self._name!r}: {error}",
                RuntimeWarning,
                stacklevel=3,
            )

    def _remove_source(self) -> None:
        file = getattr(self, "_file", None)
        if file is not None:
            file.remove()

    def _compile(
        self, source: bytes, spelt: list[bytes], target: ObjectCodeFormatType, expressions: list[str], logs: Any
    ) -> ObjectCode:
        job = Job(source, self._name, self._resolved.options, spelt, target, expressions, logs)
        use = self._find_uncompiled(source)
        try:
            compiled = self._compiler.compile(use._c_handle, job)
        finally:
            close(use)
        self._pch_status = compiled.pch_status
        name = self._name if self._file is None or source is not self._text else self._file.path
        return ObjectCode._create(compiled.data, target, name, compiled.symbols)

    def _find_uncompiled(self, source: bytes) -> Owner:
        """Return a program of this source that was not compiled yet; it stays alive even if this object is closed."""
        unused = self._unused if source is self._text else []
        try:
            unused.pop()
        except IndexError:
            use = Use()
            self._compiler.create(use, source, self._name, self._resolved.options)
            return use
        kept = make(Use, lib.ccc_view, self._c_handle)
        if kept is None:
            raise RuntimeError("this Program is closed")
        return kept


def _check_expressions(expressions: object) -> list[str]:
    if expressions is None or expressions is False:
        return []
    if not isinstance(expressions, tuple | list) and (
        isinstance(expressions, str | bytes) or not isinstance(expressions, Sequence)
    ):
        raise TypeError(f"name_expressions must be a sequence of str, not {type(expressions).__name__}")
    for expression in expressions:
        if not isinstance(expression, str):
            raise TypeError(f"name_expressions must be str, not {type(expression).__name__}: {expression!r}")
        if not expression or "\0" in expression:
            raise ValueError(f"a name expression must not be empty or contain NUL: {expression!r}")
    return list(expressions)
