# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Every option of a program reaches NVRTC, which knows it and does what it says."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import stat

import pytest

from cuda_core_cffi import NVRTCError, Program, ProgramOptions, UnavailableError
from cuda_core_cffi._core.ffi import ffi
from cuda_core_cffi._core.libraries import NVRTC_LIBRARY
from cuda_core_cffi.typing import PCHStatusType

SOURCE = 'extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }'
REFUSED = 5  # NVRTC_ERROR_INVALID_OPTION

# An option, a value, and the code to make where not every kind can be made.
OPTIONS = [
    ("relocatable_device_code", True, "cubin"),
    ("extensible_whole_program", True, "cubin"),
    ("debug", True, "cubin"),
    ("lineinfo", True, "cubin"),
    ("device_code_optimize", True, "cubin"),
    ("ptxas_options", ["-v", "-O2"], "cubin"),
    ("max_register_count", 32, "cubin"),
    ("ftz", True, "cubin"),
    ("prec_sqrt", False, "cubin"),
    ("prec_div", False, "cubin"),
    ("fma", False, "cubin"),
    ("use_fast_math", True, "cubin"),
    ("extra_device_vectorization", True, "cubin"),
    ("link_time_optimization", True, "ltoir"),
    ("gen_opt_lto", True, "ltoir"),
    ("define_macro", ["A", ("B", "2")], "cubin"),
    ("undefine_macro", ["A", "B"], "cubin"),
    ("include_path", ["folder", "another folder"], "cubin"),
    ("use_bundled_headers", True, "cubin"),
    ("pre_include", "header.h", "cubin"),
    ("no_source_include", True, "cubin"),
    ("std", "c++20", "cubin"),
    ("builtin_move_forward", False, "cubin"),
    ("builtin_initializer_list", False, "cubin"),
    ("disable_warnings", True, "cubin"),
    ("restrict", True, "cubin"),
    ("device_as_default_execution_space", True, "cubin"),
    ("device_int128", True, "cubin"),
    ("optimization_info", "inline", "cubin"),
    ("no_display_error_number", True, "cubin"),
    ("diag_error", 177, "cubin"),
    ("diag_suppress", [177, 550], "cubin"),
    ("diag_warn", (177, 550), "cubin"),
    ("brief_diagnostics", True, "cubin"),
    ("time", "-", "cubin"),
    ("split_compile", 2, "cubin"),
    ("fdevice_syntax_only", True, "cubin"),
    ("minimal", True, "cubin"),
    ("no_cache", True, "cubin"),
    ("fdevice_time_trace", "trace", "ptx"),
    ("device_float128", True, "cubin"),
    ("frandom_seed", "1", "cubin"),
    ("ofast_compile", "min", "cubin"),
    ("pch", True, "cubin"),
    ("create_pch", "a.pch", "cubin"),
    ("use_pch", "a.pch", "cubin"),
    ("pch_dir", "folder", "cubin"),
    ("pch_verbose", True, "cubin"),
    ("pch_messages", False, "cubin"),
    ("instantiate_templates_in_pch", False, "cubin"),
    ("numba_debug", True, "cubin"),
]
# What an option goes with.
TOGETHER = {
    "device_code_optimize": {"debug": True},
    "numba_debug": {"debug": True},
    "device_float128": {"arch": "sm_100"},
    "pch_verbose": {"pch": True},
    "pch_messages": {"pch": True},
    "instantiate_templates_in_pch": {"create_pch": "a.pch"},
}
# What reaches NVRTC otherwise, or is for another compiler.
OTHERWISE = {"name", "arch", "extra_headers", "extra_sources", "use_libdevice"}


@pytest.fixture(scope="module", autouse=True)
def nvrtc():
    """Skip without a compiler."""
    try:
        return NVRTC_LIBRARY.load()
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in a folder of its own, with a header and a cache in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "header.h").write_text("struct Unused {};\n")
    (tmp_path / "folder").mkdir()
    return tmp_path


@contextlib.contextmanager
def spied_on(table):
    """Replace NVRTC's function that compiles by one that fails and keeps the options that it was given."""
    given: list[list[str]] = []

    @ffi.callback("int(nvrtcProgram, int, const char *const *)")
    def compile_program(program, count, options):
        given.append([ffi.string(options[index]).decode() for index in range(count)])
        return REFUSED

    original = table.nvrtcCompileProgram
    table.nvrtcCompileProgram = compile_program
    try:
        yield given
    finally:
        table.nvrtcCompileProgram = original


def compile_with(target="cubin", logs=None, **options):
    """Compile; skip what this NVRTC is too old for."""
    try:
        return Program(SOURCE, "c++", {"arch": "sm_90", **options}).compile(target, logs=logs)
    except NVRTCError as error:
        if error.name == "NVRTC_ERROR_INVALID_OPTION" and "unrecognized option" in str(error):
            pytest.skip(f"this NVRTC is too old: {error}")
        raise


def test_every_option_is_here():
    fields = {field.name for field in dataclasses.fields(ProgramOptions)}
    assert {name for name, _, _ in OPTIONS} == fields - OTHERWISE


@pytest.mark.parametrize(("name", "value", "target"), OPTIONS)
def test_an_option_changes_what_nvrtc_is_given(nvrtc, folder, name, value, target):
    together = TOGETHER.get(name, {})
    with spied_on(nvrtc) as given:
        for options in (together, {**together, name: value}):
            with pytest.raises(NVRTCError, match="NVRTC_ERROR_INVALID_OPTION"):
                Program(SOURCE, "c++", {"arch": "sm_90", **options}).compile(target)
    without, with_it = given
    if name == "link_time_optimization":  # which LTO IR goes without saying
        assert with_it.count("--dlink-time-opt") == without.count("--dlink-time-opt") == 1
    else:
        assert len(with_it) > len(without)
        assert set(without) <= set(with_it)


@pytest.mark.parametrize(("name", "value", "target"), OPTIONS)
def test_nvrtc_knows_an_option(folder, name, value, target):
    together = TOGETHER.get(name, {})
    if name == "use_pch":
        compile_with(target, create_pch=value)
    compile_with(target, **together, **{name: value})


@pytest.mark.parametrize("level", ["0", "min", "mid", "max"])
def test_nvrtc_knows_every_level_of_fast_compilation(level):
    compile_with(ofast_compile=level)


@pytest.mark.parametrize("std", ["c++03", "c++11", "c++14", "c++17", "c++20"])
def test_nvrtc_knows_every_dialect(std):
    compile_with(std=std)


def test_an_option_that_is_false_or_none_is_not_the_same(nvrtc):
    with spied_on(nvrtc) as given:
        for ftz in (None, False, True):
            with pytest.raises(NVRTCError):
                Program(SOURCE, "c++", {"arch": "sm_90", "ftz": ftz}).compile("ptx")
    assert given == [["-arch=sm_90"], ["-arch=sm_90", "--ftz=false"], ["-arch=sm_90", "--ftz=true"]]


def test_options_for_other_compilers_do_not_reach_nvrtc(nvrtc):
    options = {"arch": "sm_90", "extra_sources": [("a", "; IR")], "use_libdevice": True}
    with spied_on(nvrtc) as given, pytest.raises(NVRTCError):
        Program(SOURCE, "c++", options).compile("ptx")
    assert given == [["-arch=sm_90"]]


def test_the_architecture_of_the_current_device_reaches_nvrtc(nvrtc, device):
    with spied_on(nvrtc) as given, pytest.raises(NVRTCError):
        Program(SOURCE, "c++").compile("cubin")
    assert given == [[f"-arch=sm_{device.arch}"]]


# What options do


def test_a_time_trace_is_written(folder):
    compile_with("ptx", fdevice_time_trace=folder / "trace")
    trace = json.loads((folder / "trace.json").read_text())  # NVRTC adds the suffix
    assert trace["traceEvents"]


def test_the_time_of_each_phase_is_written(folder):
    compile_with(time=folder / "phases.csv")
    assert "CUDA C++ Frontend" in (folder / "phases.csv").read_text()


def test_the_time_of_each_phase_goes_to_the_log():
    logs = io.StringIO()
    compile_with(time="-", logs=logs)
    assert "CUDA C++ Frontend" in logs.getvalue()


def test_the_assembler_reports_to_the_log():
    logs = io.StringIO()
    compile_with(ptxas_options="-v", no_cache=True, logs=logs)  # code from a cache comes without a log
    assert "registers" in logs.getvalue()


def test_optimisations_are_reported_to_the_log():
    logs = io.StringIO()
    source = "__device__ int f(int i) { return i + 1; } __global__ void k(int *x) { *x = f(*x); }"
    Program(source, "c++", {"arch": "sm_90", "optimization_info": "inline", "no_cache": True}).compile(
        "cubin", logs=logs
    )
    assert "inline" in logs.getvalue()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "#177-D"),
        ({"diag_warn": 177}, "warning #177-D"),
        ({"no_display_error_number": True}, "warning: variable"),
        ({"brief_diagnostics": True}, "warning #177-D"),
        ({"diag_suppress": 177}, ""),
        ({"disable_warnings": True}, ""),
    ],
)
def test_warnings_are_as_told(options, said):
    logs = io.StringIO()
    Program("__global__ void k() { int unused; }", "c++", {"arch": "sm_90", **options}).compile("ptx", logs=logs)
    assert said in logs.getvalue()
    assert bool(logs.getvalue()) == bool(said)
    assert ("int unused;" in logs.getvalue()) == (bool(said) and not options.get("brief_diagnostics", False))


def test_a_warning_becomes_an_error():
    with pytest.raises(NVRTCError, match=r"\(1\): error: variable \"unused\""):
        Program("__global__ void k() { int unused; }", "c++", {"arch": "sm_90", "diag_error": 177}).compile("ptx")


def test_a_header_that_is_included_beforehand_is_seen(folder):
    (folder / "names.h").write_text("#define NAME renamed\n")
    source = 'extern "C" __global__ void NAME() {}'
    code = Program(source, "c++", {"arch": "sm_90", "pre_include": folder / "names.h"}).compile("ptx").code
    assert b".entry renamed(" in code


def test_a_macro_is_undefined():
    source = '#ifdef GONE\n#error "it is defined"\n#endif\n' + SOURCE
    options = {"arch": "sm_90", "define_macro": "GONE"}
    with pytest.raises(NVRTCError, match="it is defined"):
        Program(source, "c++", options).compile("ptx")
    Program(source, "c++", {**options, "undefine_macro": "GONE"}).compile("ptx")


def test_registers_are_limited():
    body = " ".join(f"float y{i} = x[{i}];" for i in range(64))
    body += " __syncthreads(); " + " ".join(f"x[{i}] = y{63 - i} * y{i};" for i in range(64))
    source = f'extern "C" __global__ void k(float *x) {{ {body} }}'

    def registers(**options):
        logs = io.StringIO()
        everything = {"arch": "sm_90", "ptxas_options": "-v", "no_cache": True, **options}
        Program(source, "c++", everything).compile("cubin", logs=logs)
        return int(logs.getvalue().split("Used ")[1].split()[0])

    assert registers(max_register_count=32) <= 32 < registers()


def test_bundled_headers_are_unpacked_once_and_found(folder):
    source = "#include <cuda/std/limits>\n#include <cooperative_groups.h>\n" + SOURCE
    options = {"arch": "sm_90", "use_bundled_headers": True}
    compile_with(use_bundled_headers=True)
    Program(source, "c++", options).compile("ptx")
    (unpacked,) = (folder / "cache" / "cuda-core-cffi").iterdir()
    before = unpacked.stat().st_mtime_ns
    Program(source, "c++", options).compile("ptx")
    assert unpacked.stat().st_mtime_ns == before
    assert os.listdir(unpacked)


@pytest.mark.parametrize("name", [".", "nvrtc-headers"])
def test_bundled_headers_in_a_folder_of_another_user_are_refused(folder, monkeypatch, name):
    compile_with(use_bundled_headers=True)
    (unpacked,) = (folder / "cache" / "cuda-core-cffi").iterdir()
    inode = (unpacked if name != "." else unpacked.parent).stat().st_ino
    real = os.stat

    def stat_of_another(path, **options):
        status = list(real(path, **options))
        if status[stat.ST_INO] == inode:
            status[stat.ST_UID] += 1
        return os.stat_result(status)

    monkeypatch.setattr(os, "stat", stat_of_another)
    with pytest.raises(PermissionError, match="set XDG_CACHE_HOME to another"):
        compile_with(use_bundled_headers=True)


def compile_with_pch(folder, **options):
    """Compile with precompiled headers, and return what became of them and what NVRTC says."""
    logs = io.StringIO()
    program = Program('#include "header.h"\n' + SOURCE, "c++", {"arch": "sm_90", "pch_dir": folder, **options})
    try:
        program.compile("ptx", logs=logs)
    except NVRTCError as error:
        if "unrecognized option" in str(error):
            pytest.skip(f"this NVRTC is too old: {error}")
        raise
    return program.pch_status, logs.getvalue()


def test_automatic_precompiled_headers_are_made_once_and_used_then(folder):
    status, log = compile_with_pch(folder, pch=True)
    assert (status, "creating precompiled header" in log) == (PCHStatusType.CREATED, True)
    assert len(list(folder.glob("*.pch"))) == 1
    status, log = compile_with_pch(folder, pch=True)
    assert (status, "using precompiled header" in log) == (PCHStatusType.NOT_ATTEMPTED, True)
    assert len(list(folder.glob("*.pch"))) == 1


def test_an_automatic_precompiled_header_of_other_options_is_not_used_and_the_log_says_why(folder):
    compile_with_pch(folder, pch=True)
    _, log = compile_with_pch(folder, pch=True, pch_verbose=True, define_macro="OTHER")
    assert "using precompiled header" not in log
    assert "creating precompiled header" in log


def test_a_precompiled_header_is_made_and_used_by_name(folder):
    status, log = compile_with_pch(folder, create_pch="mine.pch")
    assert (status, "creating precompiled header" in log) == (PCHStatusType.CREATED, True)
    assert (folder / "mine.pch").stat().st_size > 0
    status, log = compile_with_pch(folder, use_pch="mine.pch")
    assert (status, "using precompiled header" in log) == (None, True)


def test_a_precompiled_header_that_does_not_exist_is_an_error(folder):
    with pytest.raises(NVRTCError, match=r"cannot open precompiled header file .*none\.pch"):
        compile_with_pch(folder, use_pch="none.pch")


def test_what_becomes_of_precompiled_headers_is_not_told_to_those_who_do_not_want_to_know(folder):
    assert compile_with_pch(folder, pch=True, pch_messages=False) == (PCHStatusType.CREATED, "")


def test_without_its_folder_the_compiler_does_not_search_the_sources_headers(folder):
    source = '#include "header.h"\n' + SOURCE
    Program(source, "c++", {"arch": "sm_90", "name": "a.cu"}).compile("ptx")
    with pytest.raises(NVRTCError, match=r"could not open source file \"header\.h\""):
        Program(source, "c++", {"arch": "sm_90", "name": "a.cu", "no_source_include": True}).compile("ptx")


# Headers in memory


def compile_with_headers(source, *headers, **options):
    """Compile with headers that are in no file, and return the PTX."""
    return Program(source, "c++", {"arch": "sm_90", "extra_headers": headers, **options}).compile("ptx").code


@pytest.mark.parametrize("include", ['"values.h"', "<values.h>"])
@pytest.mark.parametrize("header", ["#define VALUE 4711\n", b"#define VALUE 4711\n", bytearray(b"#define VALUE 4711")])
def test_a_header_in_memory_is_included_by_its_name(include, header):
    source = f'#include {include}\nextern "C" __global__ void k(int *x) {{ *x = VALUE; }}'
    assert b"4711" in compile_with_headers(source, ("values.h", header))
    assert b"4711" in compile_with_headers(source, ("values.h", header), no_source_include=True)


def test_headers_in_memory_include_one_another():
    headers = [("a.h", "#include <lib/b.h>\n"), ("lib/b.h", "#define VALUE 4711\n")]
    source = '#include "a.h"\nextern "C" __global__ void k(int *x) { *x = VALUE; }'
    assert b"4711" in compile_with_headers(source, *headers)


def test_every_compilation_of_a_program_has_its_headers():
    source = '#include "a.h"\ntemplate <class T> __global__ void k(T *x) { *x = VALUE; }'
    program = Program(source, "c++", {"arch": "sm_90", "extra_headers": [("a.h", "#define VALUE 4711")]})
    for name in ("k<int>", "k<long>"):
        assert b"4711" in program.compile("ptx", [name]).code


def test_a_mistake_in_a_header_in_memory_is_told_with_its_name_and_line():
    with pytest.raises(NVRTCError, match=r'a\.h\(2\): error: identifier "missing" is undefined'):
        compile_with_headers('#include "a.h"', ("a.h", "\n__device__ int f() { return missing; }\n"))


def test_a_header_in_memory_comes_before_a_file(folder):
    source = '#include "values.h"\nextern "C" __global__ void k(int *x) { *x = VALUE; }'
    (folder / "values.h").write_text("#define VALUE 1234\n")
    assert b"4711" in compile_with_headers(source, ("values.h", "#define VALUE 4711\n"), include_path=folder)


def test_a_header_in_memory_may_be_empty_or_never_included():
    compile_with_headers('#include "empty.h"\n' + SOURCE, ("empty.h", ""), ("other.h", "nonsense"))


@pytest.mark.parametrize(
    ("headers", "error", "said"),
    [
        ("a.h", TypeError, "must be a sequence of"),
        ([("a.h", 3)], TypeError, "must be a sequence of"),
        ([("a.h",)], TypeError, "must be a sequence of"),
        ([(b"a.h", "")], TypeError, "must be a sequence of"),
        ({"a.h": ""}, TypeError, "must be a sequence of"),
        ([("", "")], ValueError, "must not be empty"),
        ([("a\0.h", "")], ValueError, "must not be empty or contain NUL"),
        ([("a.h", "a\0")], ValueError, "'a.h' must not contain NUL"),
        ([("a.h", b"a\0")], ValueError, "'a.h' must not contain NUL"),
        ([("a.h", bytearray(1))], ValueError, "'a.h' must not contain NUL"),
        ([("a.h", ""), ("a.h", "")], ValueError, "there are two headers 'a.h'"),  # NVRTC crashes
    ],
)
def test_headers_in_memory_that_cannot_be_are_refused(headers, error, said):
    with pytest.raises(error, match=f"ProgramOptions: extra_headers.*{said}"):
        ProgramOptions(extra_headers=headers)
