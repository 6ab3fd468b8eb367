# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""NVRTC, which compiles C++."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

from cuda_core_cffi._code.missing_symbols import near_matches
from cuda_core_cffi._compile.compiler import Compiled, Compiler, Job, check_text
from cuda_core_cffi._compile.compiler_options import NVRTC_TARGETS, nvrtc_options
from cuda_core_cffi._compile.program_options import DEFAULT_NAME, ProgramOptions
from cuda_core_cffi._compile.resolved_options import ResolvedOptions
from cuda_core_cffi._core.calls import Owner, close, make_in
from cuda_core_cffi._core.errors import NVRTCError, failure, failure_with_log
from cuda_core_cffi._core.ffi import ffi, lib
from cuda_core_cffi._core.handle import Use
from cuda_core_cffi._core.libraries import NVRTC_LIBRARY
from cuda_core_cffi._core.locks import new_lock
from cuda_core_cffi.typing import CompilerBackendType, ObjectCodeFormatType, PCHStatusType

# By name, because NVRTC itself tells the name of a status.
_PCH_STATUSES = {
    None: None,  # NVRTC is older than the question
    "NVRTC_SUCCESS": PCHStatusType.CREATED,
    "NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED": PCHStatusType.NOT_ATTEMPTED,
}
_PCH_HEAP_EXHAUSTED = "NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED"
_INVALID_OPTION = "NVRTC_ERROR_INVALID_OPTION"

_FILE_OPTIONS: Final = ("include_path", "pre_include", "pch", "use_pch", "pch_dir")

# An #include that may find a file beside the source, which is the working directory if the program's name has none: in
# quotes, or of a macro. What stands in angle brackets comes from the compiler itself, or from include_path. Several
# expressions, because one that begins with a literal is ten times as fast as one that begins with a choice.
_GAP = rb"(?:\s|/\*.*?\*/)*+"
_DIRECTIVE = _GAP + rb"(?:include|include_next|import|embed)\b" + _GAP + rb"(?!<)"
_QUESTION = rb"__has_(?:include|include_next|embed)\b" + _GAP + rb"(?!\(" + _GAP + rb"<)"
_LOCAL_INCLUDES = [
    re.compile(pattern, re.DOTALL)
    for pattern in (rb"#" + _DIRECTIVE, rb"%:" + _DIRECTIVE, rb"\?\?=" + _DIRECTIVE, _QUESTION)
]

# How NVRTC's log complains: it takes name expressions for a file of its own.
_UNKNOWN: Final = re.compile(r'^__nv_name_map\(\d+\): error: (?:identifier|.* has no member) "([^"]+)"', re.MULTILINE)
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_ATTRIBUTE: Final = re.compile(r"\b__(?:launch_bounds|align|cluster_dims|maxnreg)__\s*\([^()]*\)")
_DEFINED: Final = re.compile(r"\b__(?:global|device|constant|managed)__\b[^;{}()\[\]=]*?\b([A-Za-z]\w*)\s*(?=[(;={\[])")

_NULL = ffi.NULL
_create = lib.ccc_program_create
_new = ffi.new

# NVRTC has one heap for precompiled headers: growing it frees the old one, under whoever uses that.
_pch_lock = new_lock()


class NVRTC(Compiler):
    """NVRTC as programs use it."""

    title = "NVRTC"
    targets = NVRTC_TARGETS
    knows_expressions = True

    backend = CompilerBackendType.NVRTC
    handle_type = "nvrtcProgram"

    def check_source(self, code: str | bytes | bytearray, options: ProgramOptions) -> bytes:
        return check_text(code)

    def build(self) -> bytes:
        return NVRTC_LIBRARY.build()

    def files_asked_for(self, options: ProgramOptions) -> str | None:
        found = next((name for name in _FILE_OPTIONS if getattr(options, name)), None)
        return None if found is None else f"with {found} the code depends on files"

    def files_included(self, source: bytes, options: ProgramOptions) -> str | None:
        if options.no_source_include:
            return None
        line = _local_include(source)
        if line is None and options.extra_headers:
            line = next(filter(None, (_local_include(header) for _, header in _extra_headers(options))), None)
        return line and f"{line!r} may find a file beside the source (with no_source_include it does not)"

    def needs_source_file(self, options: ProgramOptions) -> bool:
        has_name = bool(options.name) and options.name != DEFAULT_NAME
        return bool(options.debug or options.lineinfo) and not has_name and not _uses_pch(options)

    def spell(self, resolved: ResolvedOptions, target: ObjectCodeFormatType) -> list[bytes]:
        spelt = resolved.spelt.get(target)
        if spelt is None:
            fields = vars(resolved.options)
            spelt = [os.fsencode(option) for option in nvrtc_options(fields, target, resolved.checked)]
            if fields["arch"] is not None and not fields["use_bundled_headers"]:  # which depend on what is outside
                resolved.spelt[target] = spelt
        return spelt

    def more_inputs(self, options: ProgramOptions) -> Iterable[bytes]:
        return chain.from_iterable(_extra_headers(options))

    def create(self, owner: Owner, source: bytes, name: str, options: ProgramOptions) -> None:
        NVRTC_LIBRARY.load()
        status = _new("int *")
        if options.extra_headers:
            headers = [[_new("char[]", text) for text in header] for header in _extra_headers(options)]
            names, texts = (_new("const char *[]", [header[part] for header in headers]) for part in (0, 1))
            is_made = make_in(owner, _create, source, name.encode(), len(headers), texts, names, status)
        else:
            is_made = make_in(owner, _create, source, name.encode(), 0, _NULL, _NULL, status)
        if not is_made:
            raise nvrtc_failure(status[0], "nvrtcCreateProgram") if status[0] else failure(lib.ccc_last_status())

    def compile(self, c_handle: Any, job: Job) -> Compiled:
        makes_pch = bool(job.options.pch or job.options.create_pch)
        program = _run(c_handle, job)
        if not (makes_pch and _pch_status_name(program) == _PCH_HEAP_EXHAUSTED and grow_pch_heap(program)):
            return _result(program, job, makes_pch)
        again = Use()
        self.create(again, job.source, job.name, job.options)
        try:
            return _result(_run(again._c_handle, job), job, makes_pch)
        finally:
            close(again)


def _run(c_handle: Any, job: Job) -> Any:
    """Compile the program in ``c_handle`` and return it; raise what the compiler says."""
    program = ffi.cast("nvrtcProgram", lib.ccc_handle_value(c_handle))
    for expression in job.expressions:
        _ask_of_expression("nvrtcAddNameExpression", program, expression)
    if _uses_pch(job.options):
        with _pch_lock:
            status = compile_program(program, job.spelt)
    else:
        status = compile_program(program, job.spelt)
    log = program_log(program)
    job.write(log)
    if status:
        hint = _explain_unknown_names(log, job.source) if job.expressions else ""
        raise nvrtc_failure(status, "nvrtcCompileProgram", log, hint)
    return program


def _uses_pch(options: ProgramOptions) -> bool:
    return bool(options.pch or options.create_pch or options.use_pch)


def _result(program: Any, job: Job, makes_pch: bool) -> Compiled:
    return Compiled(
        program_output(program, job.target),
        {expression: _symbol_of(program, expression) for expression in job.expressions},
        _PCH_STATUSES.get(_pch_status_name(program), PCHStatusType.FAILED) if makes_pch else None,
    )


def nvrtc_failure(status: int, call: str, log: str = "", hint: str = "") -> NVRTCError:
    """Return the exception for a status of NVRTC, with the compiler's log at its end."""
    name = _status_name(status)
    text = f"{call} failed: {name} ({status}){hint}"
    if name == _INVALID_OPTION and "architecture" in log:
        version = ".".join(map(str, NVRTC_LIBRARY.version()))
        text += f"; NVRTC {version} compiles for {', '.join(map(str, supported_archs()))}"
    return failure_with_log(NVRTCError, text, log, call, status, name)


def compile_program(program: Any, options: Sequence[bytes]) -> int:
    """Compile and return the status, for the caller to raise once it has the log."""
    texts = [ffi.new("char[]", option) for option in options]
    return int(NVRTC_LIBRARY.load().nvrtcCompileProgram(program, len(texts), ffi.new("const char *[]", texts)))


def _ask_of_expression(call: str, program: Any, expression: str, *out: Any) -> None:
    """Call a function about a name expression: to add it before the program is compiled, to get its symbol after."""
    status = getattr(NVRTC_LIBRARY.load(), call)(program, expression.encode(), *out)
    if status:
        raise nvrtc_failure(status, f"{call}({expression!r})")


def _symbol_of(program: Any, expression: str) -> str:
    out = ffi.new("const char **")
    _ask_of_expression("nvrtcGetLoweredName", program, expression, out)
    return str(ffi.string(out[0]).decode())


def program_log(program: Any) -> str:
    """Return the log of the last compilation; empty if the compiler had nothing to say."""
    # The log quotes the source, which may be anything.
    return NVRTC_LIBRARY.copy_out(program, "nvrtcGetProgramLog", nvrtc_failure).rstrip(b"\0").decode(errors="replace")


def program_output(program: Any, target: str) -> bytes:
    """Return what the compilation made, for a target of ``"ptx"``, ``"cubin"`` or ``"ltoir"``."""
    data = NVRTC_LIBRARY.copy_out(program, f"nvrtcGet{target.upper()}", nvrtc_failure)
    return data.rstrip(b"\0") if target == "ptx" else data  # the size of PTX counts its terminator


def grow_pch_heap(program: Any) -> bool:
    """Make the heap as large as ``program`` needed, unless another thread has meanwhile; return whether it is.

    NVRTC has one such heap for the process, and frees the old one: no other compilation may be using it.
    """
    table = NVRTC_LIBRARY.load()
    sizes = ffi.new("size_t[2]")
    if table.nvrtcGetPCHHeapSizeRequired(program, sizes + 1):
        return False
    with _pch_lock:
        if table.nvrtcGetPCHHeapSize(sizes):
            return False
        return sizes[1] <= sizes[0] or not table.nvrtcSetPCHHeapSize(sizes[1])


def supported_archs() -> list[int]:
    """Return the compute capabilities that this NVRTC compiles for: 90 stands for 9.0."""
    table = NVRTC_LIBRARY.load()
    count = ffi.new("int *")
    if table.nvrtcGetNumSupportedArchs(count):
        return []
    archs = ffi.new("int[]", count[0])
    return [] if table.nvrtcGetSupportedArchs(archs) else list(archs)


def _status_name(status: int) -> str:
    return str(ffi.string(NVRTC_LIBRARY.load().nvrtcGetErrorString(status)).decode())


def _pch_status_name(program: Any) -> str | None:
    function = NVRTC_LIBRARY.load().nvrtcGetPCHCreateStatus
    return _status_name(function(program)) if function else None


def _extra_headers(options: ProgramOptions) -> Iterator[tuple[bytes, bytes]]:
    """Yield the name and the text of each header in memory."""
    for name, text in options.extra_headers or ():
        yield name.encode(), text.encode() if isinstance(text, str) else bytes(text)


def _local_include(source: bytes) -> str | None:
    """Return the line that may include a file beside the source, if there is any."""
    find = source.find
    # Most kernels have nothing that those begin with, which is seen faster than searched. Continued lines may hide it.
    if find(b"#") < 0 and find(b"\\") < 0 and find(b"__has_") < 0 and find(b"%:") < 0 and find(b"??=") < 0:
        return None
    joined = source.replace(b"\\\r\n", b"").replace(b"\\\n", b"")  # as the compiler reads continued lines
    for pattern in _LOCAL_INCLUDES:
        if found := pattern.search(joined):
            return joined[found.start() :].splitlines()[0].decode(errors="replace")
    return None


def _explain_unknown_names(log: str, source: bytes) -> str:
    """Return what to add to the message of a compilation that failed; nothing if no name expression was to blame.

    That is ``"; in a name expression 'scole' is unknown: did you mean 'scale'?"``.
    """
    unknown = list(dict.fromkeys(_UNKNOWN.findall(log)))
    if not unknown:
        return ""
    text = _ATTRIBUTE.sub(" ", _COMMENT.sub(" ", source.decode(errors="replace")))
    defined = list(dict.fromkeys(_DEFINED.findall(text)))
    return "".join(_explain(name, defined) for name in unknown)


def _explain(name: str, defined: list[str]) -> str:
    text = f"; in a name expression {name!r} is unknown"
    if name in defined:
        return f"{text}: it is in a namespace, whose name has to come first"
    near = near_matches(name, defined)
    return f"{text}: did you mean {' or '.join(map(repr, near))}?" if near else text
