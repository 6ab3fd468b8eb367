# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Programs: compiling C++ with NVRTC, for real. No test here loads what it compiles."""

from __future__ import annotations

import io
import os
import threading
import weakref

import pytest
from helpers import run_python, ticks_during

from cuda_core_cffi import NVRTCError, ObjectCode, Program, ProgramOptions, UnavailableError
from cuda_core_cffi._core.ffi import ffi
from cuda_core_cffi._core.libraries import NVRTC_LIBRARY, NvidiaLibrary, found_libraries
from cuda_core_cffi.typing import CompilerBackendType, ObjectCodeFormatType, PCHStatusType, SourceCodeType

SOURCE = 'extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }'
TEMPLATE = "template <class T> __global__ void scale(T *x, T by) { x[threadIdx.x] *= by; }"
HEADER = "struct S {\n" + "\n".join(f"int m{index};" for index in range(2000)) + "\n};\n"
LONG_HEADER = "".join(f"struct S{index} {{ __device__ int m(int, float); }};\n" for index in range(20000))
SM_90 = ProgramOptions(arch="sm_90")
MIB = 1 << 20


@pytest.fixture(scope="module", autouse=True)
def nvrtc():
    """Skip without a compiler."""
    try:
        return NVRTC_LIBRARY.load()
    except UnavailableError as error:
        pytest.skip(str(error))


# Targets


def test_ptx_is_text_with_the_kernel_in_it():
    code = Program(SOURCE, "c++", SM_90).compile("ptx").code
    assert b".entry twice(" in code
    assert b"\0" not in code


def test_a_cubin_is_an_elf_file():
    assert Program(SOURCE, "c++", SM_90).compile("cubin").code.startswith(b"\x7fELF")


def test_lto_ir_is_made_without_further_options():
    code = Program(SOURCE, "c++", SM_90).compile("ltoir")
    assert len(code.code) > 100
    assert code.code_type == "ltoir"


@pytest.mark.parametrize("target", [ObjectCodeFormatType.PTX, "ptx", "PTX"])
def test_a_target_is_a_str_or_an_enum(target):
    assert Program(SOURCE, "c++", SM_90).compile(target).code_type == "ptx"


@pytest.mark.parametrize("target", ["fatbin", "object", "exe", ""])
def test_a_target_that_nvrtc_does_not_make_is_refused(target):
    with pytest.raises(ValueError, match="NVRTC makes 'ptx', 'cubin', 'ltoir'"):
        Program(SOURCE, "c++", SM_90).compile(target)


@pytest.mark.parametrize(("arch", "target"), [("sm_90", "cubin"), ("sm_90a", "cubin"), ("compute_90", "ptx")])
def test_without_a_target_what_a_device_loads_is_made(arch, target):
    program = Program(SOURCE, "c++", {"arch": arch})
    assert program.compile().code_type == target
    assert program.compile(None).code == program.compile(target).code


def test_without_a_target_code_for_the_current_device_is_made(device):
    code = Program('extern "C" __global__ void k() {}', "c++").compile()
    assert code.code_type == "cubin"
    assert code.get_kernel("k").handle


@pytest.mark.parametrize("target", [3, b"ptx"])
def test_a_target_of_another_type_is_refused(target):
    with pytest.raises(TypeError, match="target_type must be a str"):
        Program(SOURCE, "c++", SM_90).compile(target)


def test_ptx_needs_neither_a_device_nor_an_architecture():
    def compile_elsewhere():  # in a thread of its own, where no device is current
        found.append(Program(SOURCE, "c++").compile("ptx").code)

    found: list[bytes] = []
    thread = threading.Thread(target=compile_elsewhere)
    thread.start()
    thread.join()
    assert b".entry twice(" in found[0]


def test_the_current_device_is_compiled_for(device):
    assert f".target sm_{device.arch}".encode() in Program(SOURCE, "c++").compile("ptx").code


def test_an_architecture_that_nvrtc_does_not_know_fails_and_names_those_it_does():
    with pytest.raises(NVRTCError, match=r"compiles for .*90") as caught:
        Program(SOURCE, "c++", ProgramOptions(arch="sm_10")).compile("ptx")
    assert caught.value.name == "NVRTC_ERROR_INVALID_OPTION"


# Sources


@pytest.mark.parametrize("code", [SOURCE, SOURCE.encode(), bytearray(SOURCE.encode())])
def test_source_is_str_bytes_or_bytearray(code):
    assert b"twice" in Program(code, "c++", SM_90).compile("ptx").code


def test_source_may_hold_any_character():
    assert Program("// größer — 大\n" + SOURCE, "c++", SM_90).compile("ptx").code


@pytest.mark.parametrize("code", [None, 3, ["a"], memoryview(b"a")])
def test_source_of_another_type_is_refused(code):
    with pytest.raises(TypeError, match="code must be str, bytes or bytearray"):
        Program(code, "c++")


@pytest.mark.parametrize("code", ["", b"", " \n\t"])
def test_empty_source_is_compiled(code):
    assert b".target sm_90" in Program(code, "c++", {"arch": "sm_90"}).compile("ptx").code


@pytest.mark.parametrize("code", ["a\0b", b"a\0"])
def test_source_with_nul_is_refused(code):
    with pytest.raises(ValueError, match="byte 1"):
        Program(code, "c++")


@pytest.mark.parametrize("code_type", ["c++", "C++", SourceCodeType.CXX])
def test_a_code_type_is_a_str_or_an_enum(code_type):
    assert Program(SOURCE, code_type, SM_90).backend is CompilerBackendType.NVRTC


@pytest.mark.parametrize("code_type", ["fortran", "", "c"])
def test_an_unsupported_code_type_names_what_is_supported(code_type):
    with pytest.raises(RuntimeError, match=r"unsupported code_type .*c\+\+"):
        Program(SOURCE, code_type)


def test_a_code_type_of_another_type_is_refused():
    with pytest.raises(TypeError, match="code_type must be a str"):
        Program(SOURCE, 3)


# Options


def test_options_may_be_a_mapping():
    assert b".target sm_80" in Program(SOURCE, "c++", {"arch": "sm_80"}).compile("ptx").code


def test_an_option_that_is_assigned_later_does_not_matter():
    options = ProgramOptions(arch="sm_90")
    program = Program(SOURCE, "c++", options)
    options.arch, options.debug = "sm_80", "yes"
    assert b".target sm_90" in program.compile("ptx").code


def test_an_option_that_was_assigned_a_wrong_value_is_refused():
    options = ProgramOptions(arch="sm_90")
    options.debug = "yes"
    with pytest.raises(TypeError, match="debug must be a bool"):
        Program(SOURCE, "c++", options)


def test_an_unknown_option_is_refused():
    with pytest.raises(TypeError, match="Program: ProgramOptions has no option 'archs'; did you mean 'arch'"):
        Program(SOURCE, "c++", {"archs": "sm_80"})


def test_macros_reach_the_compiler():
    source = 'extern "C" __global__ void NAME(int *x) { *x = VALUE + FLAG; }'
    options = ProgramOptions(arch="sm_90", define_macro=[("NAME", "renamed"), "VALUE=40", "FLAG"])
    ptx = Program(source, "c++", options).compile("ptx").code
    assert b".entry renamed(" in ptx
    assert b"41;" in ptx


def test_headers_are_found_in_the_include_path(tmp_path):
    (tmp_path / "name.h").write_text("#define NAME from_header\n")
    source = '#include "name.h"\nextern "C" __global__ void NAME() {}'
    options = ProgramOptions(arch="sm_90", include_path=tmp_path)
    assert b"from_header" in Program(source, "c++", options).compile("ptx").code


@pytest.mark.parametrize(
    "options",
    [
        {"debug": True},
        {"debug": True, "device_code_optimize": True},
        {"relocatable_device_code": True, "max_register_count": 32},
        {"ftz": True, "prec_sqrt": False, "prec_div": False},
        {"fma": False, "use_fast_math": True, "lineinfo": True},
        {"extra_device_vectorization": True, "restrict": True, "ptxas_options": ["-O1"]},
        {"std": "c++20", "builtin_move_forward": False, "builtin_initializer_list": False},
        {"disable_warnings": True, "no_display_error_number": True, "brief_diagnostics": True},
        {"diag_error": 177, "diag_suppress": [1, 2], "diag_warn": (20,)},
        {"device_int128": True, "device_as_default_execution_space": True, "no_source_include": True},
        {"optimization_info": "inline", "split_compile": 2, "undefine_macro": "FOO"},
        {"fdevice_syntax_only": True},
        {"time": "-", "extensible_whole_program": True},
        {"use_libdevice": True, "extra_sources": [("a", "b")]},
    ],
)
def test_nvrtc_accepts_how_options_are_spelt(options):
    Program(SOURCE, "c++", {"arch": "sm_90", **options}).compile("ptx")


def test_an_option_that_nvrtc_refuses_fails_with_its_log():
    with pytest.raises(NVRTCError, match=r"NVRTC_ERROR_INVALID_OPTION.*\n.*std"):
        Program(SOURCE, "c++", {"arch": "sm_90", "std": "c++99"}).compile("ptx")


# Names


def test_the_name_goes_to_the_code():
    assert Program(SOURCE, "c++", {"arch": "sm_90", "name": "filter.cu"}).compile("ptx").name == "filter.cu"


@pytest.mark.parametrize("name", [None, ""])
def test_without_a_name_there_is_a_default(name):
    assert Program(SOURCE, "c++", {"arch": "sm_90", "name": name}).compile("ptx").name == "default_program"


def test_name_expressions_instantiate_templates():
    code = Program(TEMPLATE, "c++", SM_90).compile("ptx", ["scale<float>", "scale<int>"])
    mapping = code.symbol_mapping
    assert sorted(mapping) == ["scale<float>", "scale<int>"]
    assert all(f".entry {symbol}(" in code.code.decode() for symbol in mapping.values())


def test_a_program_is_compiled_again_with_other_name_expressions():
    program = Program(TEMPLATE, "c++", SM_90)
    first = program.compile("ptx", ("scale<float>",))
    second = program.compile("cubin", ("scale<double>",))
    assert (list(first.symbol_mapping), list(second.symbol_mapping)) == (["scale<float>"], ["scale<double>"])


def test_a_wrong_name_expression_fails_with_the_log():
    with pytest.raises(NVRTCError, match="scole"):
        Program(TEMPLATE, "c++", SM_90).compile("ptx", ["scole<float>"])


@pytest.mark.parametrize("names", ["scale<float>", b"scale", 3, [b"scale"], [None], {"scale"}])
def test_name_expressions_of_another_type_are_refused(names):
    with pytest.raises(TypeError, match="name_expressions must be"):
        Program(TEMPLATE, "c++", SM_90).compile("ptx", names)


@pytest.mark.parametrize("name", ["", "a\0"])
def test_an_empty_name_expression_is_refused(name):
    with pytest.raises(ValueError, match="name expression"):
        Program(TEMPLATE, "c++", SM_90).compile("ptx", [name])


# Logs and errors


def test_an_error_has_the_log_with_the_programs_name_and_the_line():
    with pytest.raises(NVRTCError, match=r'broken\.cu\(2\): error: identifier "y" is undefined') as caught:
        Program("\n__global__ void k() { y = 1; }", "c++", {"arch": "sm_90", "name": "broken.cu"}).compile("ptx")
    error = caught.value
    assert (error.call, error.name, error.status) == ("nvrtcCompileProgram", "NVRTC_ERROR_COMPILATION", 6)


def test_warnings_go_to_logs():
    logs = io.StringIO()
    Program("__global__ void k() { int unused; }", "c++", SM_90).compile("ptx", logs=logs)
    assert '"unused" was declared but never referenced' in logs.getvalue()


def test_the_log_of_a_failure_goes_to_logs_too():
    logs = io.StringIO()
    with pytest.raises(NVRTCError):
        Program("nonsense", "c++", SM_90).compile("ptx", logs=logs)
    assert "error" in logs.getvalue()


def test_nothing_goes_to_logs_when_there_is_nothing_to_say():
    logs = io.StringIO()
    Program(SOURCE, "c++", SM_90).compile("ptx", logs=logs)
    assert logs.getvalue() == ""


def test_logs_that_cannot_be_written_to_are_refused():
    with pytest.raises(TypeError, match=r"write\(str\)"):
        Program(SOURCE, "c++", SM_90).compile("ptx", logs=[])


def test_a_log_that_is_no_utf_8_is_shown_all_the_same():
    with pytest.raises(NVRTCError, match="error"):
        Program(b"__global__ void k() { \xff\xfe; }", "c++", SM_90).compile("ptx")


def test_a_program_that_failed_can_be_tried_again():
    program = Program("__global__ void k() { y = 1; }", "c++", SM_90)
    for _ in range(2):
        with pytest.raises(NVRTCError, match="NVRTC_ERROR_COMPILATION"):
            program.compile("ptx")


# The object


def test_a_program_has_a_handle_and_a_backend():
    with Program(SOURCE, "c++", SM_90) as program:
        assert program.handle != 0
        assert int(ffi.cast("uintptr_t", program.cdata)) == program.handle
        assert program.backend == "NVRTC"
        assert repr(program) == "<Program backend='NVRTC'>"


def test_a_closed_program_says_so():
    with Program(SOURCE, "c++", SM_90) as program:
        assert not program.is_closed
    program.close()
    assert program.is_closed
    assert program.handle == 0
    with pytest.raises(RuntimeError, match="this Program is closed"):
        program.compile("ptx")


def test_code_outlives_its_program():
    with Program(TEMPLATE, "c++", SM_90) as program:
        code = program.compile("ptx", ["scale<float>"])
    assert isinstance(code, ObjectCode)
    assert code.symbol_mapping["scale<float>"].startswith("_Z5scale")


def test_programs_are_equal_only_to_themselves():
    programs = [Program(SOURCE, "c++", SM_90) for _ in range(2)]
    assert programs[0] == programs[0] != programs[1]
    assert len(set(programs)) == 2


def test_a_program_can_be_referred_to_weakly():
    program = Program(SOURCE, "c++", SM_90)
    assert weakref.ref(program)() is program


def test_threads_compile_one_program_at_once():
    program = Program(TEMPLATE, "c++", SM_90)
    types = ["float", "double", "int", "long", "short", "char", "unsigned", "bool"]
    codes: dict[str, ObjectCode] = {}

    def compile_for(name):
        codes[name] = program.compile("ptx", [f"scale<{name}>"])

    threads = [threading.Thread(target=compile_for, args=(name,)) for name in types]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {name: list(code.symbol_mapping) for name, code in codes.items()} == {
        name: [f"scale<{name}>"] for name in types
    }


def test_other_threads_run_while_nvrtc_compiles():
    program = Program(LONG_HEADER + SOURCE, "c++", SM_90)
    assert ticks_during(lambda: program.compile("ptx")) > 1


def test_closing_a_program_while_it_compiles_is_safe():
    program = Program(SOURCE + HEADER, "c++", SM_90)
    results: list[object] = []

    def compile_it():
        try:
            results.append(program.compile("ptx"))
        except RuntimeError as error:  # closed before it began
            results.append(error)

    threads = [threading.Thread(target=compile_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    program.close()
    for thread in threads:
        thread.join()
    assert len(results) == 4


# Precompiled headers


@pytest.fixture
def pch_options(tmp_path, nvrtc):
    """Return options under which NVRTC makes a precompiled header of everything before ``#pragma nv_hdrstop``."""
    if not nvrtc.nvrtcGetPCHCreateStatus:
        pytest.skip("this NVRTC has no precompiled headers")
    return ProgramOptions(arch="sm_90", create_pch="s.pch", pch_dir=tmp_path, include_path=tmp_path)


@pytest.fixture
def with_header(tmp_path):
    """Return a source with a header that is worth precompiling."""
    (tmp_path / "s.h").write_text(HEADER)
    return '#include "s.h"\n#pragma nv_hdr_stop\n' + SOURCE


def test_without_a_precompiled_header_there_is_no_status():
    program = Program(SOURCE, "c++", SM_90)
    program.compile("ptx")
    assert program.pch_status is None


def test_before_the_compilation_there_is_no_status(pch_options):
    assert Program(SOURCE, "c++", pch_options).pch_status is None


def test_a_precompiled_header_is_made(pch_options, with_header, tmp_path):
    program = Program(with_header, "c++", pch_options)
    program.compile("ptx")
    assert program.pch_status is PCHStatusType.CREATED
    assert (tmp_path / "s.pch").stat().st_size > 0


def test_a_precompiled_header_is_used(pch_options, with_header, tmp_path):
    Program(with_header, "c++", pch_options).compile("ptx")
    logs = io.StringIO()
    options = ProgramOptions(arch="sm_90", use_pch="s.pch", pch_dir=tmp_path, include_path=tmp_path)
    assert b"twice" in Program(with_header, "c++", options).compile("ptx", logs=logs).code
    assert "s.pch" in logs.getvalue()


@pytest.fixture
def small_heap(nvrtc):
    """Make NVRTC's heap for precompiled headers too small for the long header."""
    size = ffi.new("size_t *")
    assert nvrtc.nvrtcGetPCHHeapSize(size) == 0
    assert nvrtc.nvrtcSetPCHHeapSize(MIB) == 0
    yield MIB
    nvrtc.nvrtcSetPCHHeapSize(size[0])


def test_a_precompiled_header_that_does_not_fit_its_heap_gets_a_larger_one(pch_options, small_heap, tmp_path, nvrtc):
    (tmp_path / "s.h").write_text(LONG_HEADER)
    program = Program('#include "s.h"\n#pragma nv_hdr_stop\n' + TEMPLATE, "c++", pch_options)
    code = program.compile("ptx", ["scale<int>"])
    size = ffi.new("size_t *")
    assert nvrtc.nvrtcGetPCHHeapSize(size) == 0
    assert size[0] > small_heap
    assert program.pch_status is PCHStatusType.CREATED
    assert list(code.symbol_mapping) == ["scale<int>"]


def test_automatic_precompiled_headers_have_a_status(tmp_path, with_header, pch_options):
    options = ProgramOptions(arch="sm_90", pch=True, pch_dir=tmp_path, include_path=tmp_path)
    program = Program(with_header, "c++", options)
    program.compile("ptx")
    assert program.pch_status in tuple(PCHStatusType)


# Finding NVRTC


def test_nvrtc_tells_its_version():
    major, minor = NVRTC_LIBRARY.version()
    assert major >= 12
    assert minor >= 0


def test_nvrtc_is_among_the_libraries_found():
    found = {item.name: item for item in found_libraries()}["NVRTC"]
    assert os.path.isfile(found.path)
    assert found.version == ".".join(map(str, NVRTC_LIBRARY.version()))
    assert found.problem is None


def test_the_driver_is_among_the_libraries_found():
    found = {item.name: item for item in found_libraries()}["CUDA driver"]
    assert found.version
    assert found.path


def test_a_variable_overrides_the_search(monkeypatch):
    monkeypatch.setenv(NVRTC_LIBRARY.variable, __file__)
    assert NVRTC_LIBRARY.find() == __file__


def test_a_library_that_does_not_exist_says_what_to_install(monkeypatch):
    monkeypatch.delenv(NVRTC_LIBRARY.variable, raising=False)
    with pytest.raises(UnavailableError, match=r"pip install cuda-core-cffi\[cu1[23]\]"):
        NvidiaLibrary("no-such-library", "NVRTC", lambda path: None).find()


COMPILE = "from cuda_core_cffi import Program; Program('int x;', 'c++')"


def test_a_variable_that_names_no_file_is_an_error_that_names_it():
    result = run_python(COMPILE, **{NVRTC_LIBRARY.variable: "/no/such/file"})
    assert "UnavailableError" in result.stderr
    assert "CUDA_CORE_CFFI_NVRTC names '/no/such/file'" in result.stderr


def test_a_file_that_is_no_library_is_an_error_that_names_it():
    result = run_python(COMPILE, **{NVRTC_LIBRARY.variable: __file__})
    assert f"{__file__!r} cannot be used as NVRTC" in result.stderr


def test_a_library_that_is_not_nvrtc_is_an_error_that_says_what_it_lacks():
    import cuda_core_cffi._cuda

    result = run_python(COMPILE, **{NVRTC_LIBRARY.variable: cuda_core_cffi._cuda.__file__})
    assert "it has no function nvrtc" in result.stderr


def test_importing_neither_loads_nvrtc_nor_looks_for_it():
    code = "import sys, cuda_core_cffi; print('cuda.pathfinder' in sys.modules, open('/proc/self/maps').read())"
    result = run_python(code)
    assert result.stdout.startswith("False")
    assert "libnvrtc" not in result.stdout
