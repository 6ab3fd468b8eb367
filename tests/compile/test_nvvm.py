# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Programs in NVVM IR: compiled with libNVVM, for real, and run."""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
import shutil
import threading

import numpy as np
import pytest
from helpers import SUPPORT, output_of, run_python, ticks_during
from nvvm_modules import ANSWER, DOUBLING, INDEX, LAYOUT, SINES, TWICE, kernel, module

from cuda_core_cffi import (
    LaunchConfig,
    LegacyPinnedMemoryResource,
    NVVMError,
    ObjectCode,
    Program,
    ProgramOptions,
    UnavailableError,
    ffi,
    launch,
)
from cuda_core_cffi._compile import nvvm as nvvm_module
from cuda_core_cffi._core.libraries import NVVM_LIBRARY, find_libdevice, found_libraries
from cuda_core_cffi.typing import CompilerBackendType, ObjectCodeFormatType, SourceCodeType

SM_90 = ProgramOptions(arch="sm_90", name="k.ll")


@pytest.fixture(scope="module", autouse=True)
def nvvm():
    """Skip without a compiler."""
    try:
        return NVVM_LIBRARY.load()
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def applied(device, stream, is_simulated):
    """Return what a kernel ``apply`` makes of values: a function of its PTX and the values."""

    def apply(ptx: ObjectCode, values: list[float]) -> list[float]:
        # the compiler may be newer than the driver, which then cannot read its PTX: the linker can
        code = ptx if is_simulated else Program(ptx.code, "ptx").compile("cubin")
        with code, LegacyPinnedMemoryResource().allocate(4 * len(values)) as buffer:
            array = np.asarray(buffer).view(np.float32)
            array[:] = values
            launch(stream, LaunchConfig(grid=1, block=len(values)), code.get_kernel("apply"), buffer)
            stream.sync()
            return array.tolist()

    return apply


# What is compiled, and to what


@pytest.mark.parametrize("code", [DOUBLING, DOUBLING.encode(), bytearray(DOUBLING.encode())])
def test_a_kernel_in_text_runs(code, applied):
    assert applied(Program(code, "nvvm").compile("ptx"), [1.5, -2.0, 3.25]) == [3.0, -4.0, 6.5]


@pytest.mark.parametrize("wrap", [bytes, bytearray])
def test_a_kernel_in_bitcode_is_compiled(wrap):
    ptx = Program(wrap(ANSWER), "nvvm", SM_90).compile("ptx").code
    assert b".entry answer(" in ptx
    assert b"1109917696" in ptx  # the bits of 42.0


def test_ptx_is_text_for_the_architecture():
    code = Program(DOUBLING, "nvvm", SM_90).compile("ptx")
    assert b".target sm_90" in code.code
    assert b"\0" not in code.code
    assert (code.code_type, code.name, code.symbol_mapping) == ("ptx", "k.ll", {})


def test_the_current_device_is_compiled_for(device):
    assert f".target sm_{device.arch}".encode() in Program(DOUBLING, "nvvm").compile("ptx").code


def test_lto_ir_is_made():
    code = Program(DOUBLING, "nvvm", SM_90).compile("ltoir")
    assert code.code_type == "ltoir"
    assert len(code.code) > 100
    assert b".entry" not in code.code


@pytest.mark.parametrize("target", ["cubin", "fatbin", "object", "exe", ""])
def test_a_target_that_libnvvm_does_not_make_is_refused(target):
    with pytest.raises(ValueError, match="libNVVM makes 'ptx', 'ltoir'"):
        Program(DOUBLING, "nvvm", SM_90).compile(target)


@pytest.mark.parametrize("code_type", ["nvvm", "NVVM", SourceCodeType.NVVM])
def test_the_backend_is_nvvm(code_type):
    program = Program(DOUBLING, code_type, SM_90)
    assert program.backend is CompilerBackendType.NVVM
    assert repr(program) == "<Program backend='NVVM'>"
    assert ffi.typeof(program.cdata) is ffi.typeof("nvvmProgram")
    assert program.handle == int(ffi.cast("uintptr_t", program.cdata)) != 0
    assert program.pch_status is None


def test_a_program_is_compiled_again_to_something_else():
    with Program(DOUBLING, "nvvm", SM_90) as program:
        codes = [program.compile(target) for target in ("ptx", ObjectCodeFormatType.LTOIR, "PTX")]
    assert [code.code_type for code in codes] == ["ptx", "ltoir", "ptx"]
    assert codes[0].code == codes[2].code != codes[1].code


def test_a_closed_program_says_so():
    program = Program(DOUBLING, "nvvm", SM_90)
    program.close()
    assert program.handle == 0
    with pytest.raises(RuntimeError, match="this Program is closed"):
        program.compile("ptx")


def test_name_expressions_are_ignored():
    with Program(DOUBLING, "nvvm", SM_90) as program:
        assert program.compile("ptx", ["apply"]).symbol_mapping == {}


# libdevice and further modules


def test_mathematical_functions_come_from_libdevice(applied):
    values = [0.0, 0.5, -2.0, 30.0]
    result = applied(Program(SINES, "nvvm", {"use_libdevice": True}).compile("ptx"), values)
    assert result == pytest.approx(np.sin(np.array(values, np.float32)).tolist(), abs=2e-7)


def test_only_what_is_called_is_taken_from_libdevice():
    ptx = Program(SINES, "nvvm", ProgramOptions(arch="sm_90", use_libdevice=True)).compile("ptx").code
    assert b"__nv_sinf" not in ptx  # it was made part of the kernel
    assert b"__nv_cosf" not in ptx
    assert len(ptx) < 20_000


def test_without_libdevice_its_functions_remain_to_be_linked():
    ptx = Program(SINES, "nvvm", SM_90).compile("ptx").code
    assert b".extern .func  (.param .b32 func_retval0) __nv_sinf" in ptx


@pytest.mark.parametrize(
    ("options", "instruction"),
    [
        ({}, b"sqrt.rn.f32"),
        ({"ftz": True}, b"sqrt.rn.ftz.f32"),
        ({"prec_sqrt": False}, b"sqrt.approx.f32"),
        ({"ftz": True, "prec_sqrt": False}, b"sqrt.approx.ftz.f32"),
    ],
)
def test_libdevice_obeys_the_options(options, instruction):
    program = Program(kernel("apply", "__nv_sqrtf"), "nvvm", {"arch": "sm_90", "use_libdevice": True, **options})
    assert instruction in program.compile("ptx").code


def test_libdevice_that_was_cut_off_is_an_error_that_names_the_file(tmp_path, monkeypatch):
    path = tmp_path / "libdevice.10.bc"
    path.write_bytes(pathlib.Path(find_libdevice()).read_bytes()[:100_000])
    monkeypatch.setattr("cuda_core_cffi._compile.nvvm.find_libdevice", lambda: str(path))
    nvvm_module._libdevice.cache_clear()
    with pytest.raises(ValueError, match=r"the file '.*libdevice\.10\.bc' is bitcode that was cut off"):
        Program(SINES, "nvvm", ProgramOptions(arch="sm_90", use_libdevice=True)).compile("ptx")


@pytest.mark.parametrize("convert", [str, str.encode, lambda text: bytearray(text.encode())])
def test_a_kernel_calls_a_function_of_another_module(convert, applied):
    options = ProgramOptions(extra_sources=[("twice.ll", convert(module(TWICE)))])
    assert applied(Program(kernel("apply", "twice"), "nvvm", options).compile("ptx"), [1.5, -2.0]) == [3.0, -4.0]


def test_another_module_may_be_bitcode():
    libdevice = pathlib.Path(find_libdevice()).read_bytes()
    options = ProgramOptions(arch="sm_90", extra_sources=(("libdevice", libdevice), ("answer", ANSWER)))
    ptx = Program(kernel("apply", "__nv_fabsf"), "nvvm", options).compile("ptx").code
    assert b".entry apply(" in ptx
    assert b".entry answer(" in ptx
    assert b"abs.f32" in ptx


def test_a_function_defined_twice_is_an_error_that_names_it():
    options = ProgramOptions(arch="sm_90", extra_sources=[("again.ll", module(TWICE))])
    with pytest.raises(NVVMError, match=r"(?s)again\.ll.*'twice'.*multiply defined"):
        Program(DOUBLING, "nvvm", options).compile("ptx")


def test_what_is_assigned_to_the_options_later_does_not_matter():
    options = ProgramOptions(arch="sm_90")
    program = Program(DOUBLING, "nvvm", options)
    options.extra_sources, options.arch = [("answer", ANSWER)], "sm_80"
    ptx = program.compile("ptx").code
    assert b".entry answer(" not in ptx
    assert b".target sm_90" in ptx


# Options


@pytest.mark.parametrize(
    "options",
    [
        {"debug": True},
        {"debug": True, "device_code_optimize": True},
        {"device_code_optimize": False},
        {"ftz": True, "prec_sqrt": False, "prec_div": False, "fma": False},
        {"ftz": False, "prec_sqrt": True, "prec_div": True, "fma": True},
        {"no_cache": True, "lineinfo": False, "restrict": False},
    ],
)
@pytest.mark.parametrize("target", ["ptx", "ltoir"])
def test_libnvvm_accepts_how_options_are_spelt(options, target):
    assert Program(DOUBLING, "nvvm", {"arch": "sm_90", **options}).compile(target).code


def test_fma_is_an_option():
    body = "%y = fmul float %x, %x\n%z = fadd float %y, %x\nret float %z"
    source = kernel("apply", "polynomial", declared=f"define float @polynomial(float %x) {{\n{body}\n}}")
    codes = [Program(source, "nvvm", {"arch": "sm_90", "fma": fma}).compile("ptx").code for fma in (False, True)]
    assert [b"fma.rn.f32" in code for code in codes] == [False, True]


@pytest.mark.parametrize("name", ["lineinfo", "use_fast_math", "relocatable_device_code", "pch"])
def test_an_option_that_libnvvm_does_not_have_is_refused(name):
    with pytest.raises(UnavailableError, match=f"libNVVM has no option for {name}; it has for debug, .*ftz"):
        Program(DOUBLING, "nvvm", {"arch": "sm_90", name: True}).compile("ptx")


def test_an_architecture_that_libnvvm_does_not_know_fails_with_its_log():
    with pytest.raises(NVVMError, match=r"NVVM_ERROR_INVALID_OPTION.*\n.*-arch=compute_10 is an unsupported option"):
        Program(DOUBLING, "nvvm", ProgramOptions(arch="sm_10")).compile("ptx")


# Errors


def test_an_error_has_the_log_with_the_modules_name_and_the_line():
    with pytest.raises(NVVMError, match=r"k\.ll \(13, 9\): parse expected instruction opcode") as caught:
        Program(DOUBLING.replace("%old = load", "%old = laod"), "nvvm", SM_90).compile("ptx")
    error = caught.value
    assert (error.call, error.name, error.status) == ("nvvmVerifyProgram", "NVVM_ERROR_INVALID_IR", 6)


def test_an_error_in_another_module_names_that():
    options = ProgramOptions(arch="sm_90", extra_sources=[("other.ll", module(TWICE.replace("fadd", "fsum")))])
    with pytest.raises(NVVMError, match=r"other\.ll \(4, \d+\): parse"):
        Program(kernel("apply", "twice"), "nvvm", options).compile("ptx")


def test_what_the_compiler_would_let_pass_is_verified():
    source = DOUBLING.replace("%y = fadd float %x, %x", "%y = fadd float %x, %z\n  %z = fadd float %x, %x")
    with pytest.raises(NVVMError, match="does not dominate all uses"):
        Program(source, "nvvm", SM_90).compile("ptx")


def test_the_version_of_the_ir_must_be_right_and_the_error_says_which_is():
    source = module(f"{INDEX}\n{TWICE}", version=3)
    with pytest.raises(
        NVVMError, match=r"this libNVVM reads NVVM IR 2\.\d with debugging information \d\.\d"
    ) as caught:
        Program(source, "nvvm", SM_90).compile("ptx")
    assert caught.value.name == "NVVM_ERROR_IR_VERSION_MISMATCH"
    assert "IR version 3.0 incompatible" in str(caught.value)


def test_ir_of_another_llvm_is_an_error_that_says_which_is_read():
    source = module("define void @k(ptr %x) {\nret void\n}")
    with pytest.raises(NVVMError, match=r"reads the IR of LLVM 7, which has pointers to a type, such as i32\*\n"):
        Program(source, "nvvm", SM_90).compile("ptx")


def test_ir_of_a_newer_llvm_is_read_for_newer_architectures(nvvm):
    out = ffi.new("int *")
    if not nvvm.nvvmLLVMVersion or nvvm.nvvmLLVMVersion(b"compute_100", out) or out[0] <= 7:
        pytest.skip("this libNVVM reads the IR of LLVM 7 only, or does not tell")
    source = module("define void @k(ptr %x) {\nstore i32 1, ptr %x\nret void\n}")
    assert b"k" in Program(source, "nvvm", ProgramOptions(arch="sm_100")).compile("ptx").code
    with pytest.raises(NVVMError, match=rf"reads the IR of LLVM {out[0]}, which has pointers without type: ptr\n"):
        Program(source.replace("store", "stoer"), "nvvm", ProgramOptions(arch="sm_100")).compile("ptx")


def test_the_log_of_a_failure_goes_to_logs_too():
    logs = io.StringIO()
    with pytest.raises(NVVMError):
        Program(DOUBLING.replace("fadd", "fsum"), "nvvm", SM_90).compile("ptx", logs=logs)
    assert "k.ll (4, " in logs.getvalue()


def test_nothing_goes_to_logs_when_there_is_nothing_to_say():
    logs = io.StringIO()
    Program(DOUBLING, "nvvm", SM_90).compile("ptx", logs=logs)
    assert logs.getvalue() == ""


def test_a_program_that_failed_can_be_tried_again():
    program = Program(DOUBLING.replace("fadd", "fsum"), "nvvm", SM_90)
    for _ in range(2):
        with pytest.raises(NVVMError, match="parse expected"):
            program.compile("ptx")


@pytest.mark.parametrize("code", ["", b"", " \n"])
def test_empty_source_is_refused(code):
    with pytest.raises(ValueError, match="code must not be empty"):
        Program(code, "nvvm")


@pytest.mark.parametrize("code", [None, 3, ["a"], memoryview(b"a")])
def test_source_of_another_type_is_refused(code):
    with pytest.raises(TypeError, match="code must be str, bytes or bytearray"):
        Program(code, "nvvm")


def test_an_empty_module_among_others_is_named():
    with pytest.raises(ValueError, match=r"the extra source 'b\.ll' must not be empty"):
        Program(DOUBLING, "nvvm", ProgramOptions(extra_sources=[("a.ll", module(TWICE)), ("b.ll", "")]))


@pytest.fixture
def reads_new_ir():
    """Skip with a libNVVM from before Blackwell, which does not survive bitcode that cannot be read."""
    with contextlib.suppress(NVVMError):
        Program(DOUBLING, "nvvm", ProgramOptions(arch="sm_100")).compile("ptx")
        return
    pytest.skip("this libNVVM does not know compute_100")


def test_bitcode_that_was_damaged_is_an_error(reads_new_ir):
    damaged = bytearray(ANSWER)
    damaged[100] ^= 0x5A  # among the types
    with pytest.raises(NVVMError, match=r"NVVM_ERROR_(COMPILATION|INVALID_IR)"):
        Program(damaged, "nvvm", SM_90).compile("ptx")


def test_damaged_modules_never_do_more_than_fail():
    code = """
        import random, sys
        sys.path.insert(0, sys.argv[1])
        from nvvm_modules import ANSWER, DOUBLING
        from cuda_core_cffi import NVVMError, Program
        chance = random.Random(7)
        failed = 0
        for index in range(80):
            code = bytearray(DOUBLING.encode())
            if index % 4 == 0:
                code = bytearray(ANSWER)[: chance.randrange(1, len(ANSWER))]
            elif index % 4 == 1:
                del code[chance.randrange(1, len(code)) :]
            else:
                for _ in range(chance.choice((1, 1, 4))):
                    code[chance.randrange(len(code))] = chance.randrange(256)
            try:
                Program(code, "nvvm", {"arch": "sm_90"}).compile("ptx")
            except (NVVMError, ValueError):
                failed += 1
        print(failed)
    """
    assert int(output_of(code, str(SUPPORT))) > 50


def test_what_is_wrong_in_bitcode_is_verified():
    source = DOUBLING.replace("%y = fadd float %x, %x", "%y = fadd float %x, %z\n  %z = fadd float %x, %x")
    with pytest.raises(NVVMError, match="nvvmVerifyProgram failed"):
        Program(source, "nvvm", {"arch": "sm_90", "extra_sources": [("answer", ANSWER)]}).compile("ptx")


# Threads


def test_threads_compile_one_program_at_once():
    program = Program(SINES, "nvvm", ProgramOptions(arch="sm_90", use_libdevice=True))
    codes: list[bytes] = []
    threads = [threading.Thread(target=lambda: codes.append(program.compile("ptx").code)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(codes) == 8
    assert len(set(codes)) == 1


def test_threads_compile_different_programs_at_once():
    names = [f"kernel{index}" for index in range(8)]
    found: dict[str, bytes] = {}

    def compile_it(name: str) -> None:
        for _ in range(3):
            found[name] = Program(kernel(name, "twice", declared=TWICE), "nvvm", SM_90).compile("ptx").code

    threads = [threading.Thread(target=compile_it, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(f".entry {name}(".encode() in found[name] for name in names)


def long_module() -> str:
    """Return a module that takes long to compile."""
    body = "\n  ".join(f"%y{i + 1} = call float @__nv_tgammaf(float %y{i})" for i in range(8))
    names = [f"k{index}" for index in range(8)]
    kernels = [
        f"define void @{name}(float* %x) {{\n  %y0 = load float, float* %x\n  {body}\n  store float %y8, float* %x\n"
        "  ret void\n}"
        for name in names
    ]
    return module("\n".join(["declare float @__nv_tgammaf(float)", *kernels]), *names)


def test_other_threads_run_while_libnvvm_compiles():
    program = Program(long_module(), "nvvm", ProgramOptions(arch="sm_90", use_libdevice=True))
    assert ticks_during(lambda: program.compile("ptx")) > 1


# Finding libNVVM


def test_libnvvm_is_among_the_libraries_found():
    found = {item.name: item for item in found_libraries()}["libNVVM"]
    assert os.path.isfile(found.path)
    assert found.version == ".".join(map(str, NVVM_LIBRARY.version()))
    assert found.problem is None


COMPILE = f"from cuda_core_cffi import Program; Program({DOUBLING!r}, 'nvvm', {{'use_libdevice': True}}).compile('ptx')"


def test_a_variable_that_names_no_file_is_an_error_that_names_it():
    result = run_python(COMPILE, **{NVVM_LIBRARY.variable: "/no/such/file"})
    assert "UnavailableError" in result.stderr
    assert "CUDA_CORE_CFFI_NVVM names '/no/such/file'" in result.stderr


def test_a_file_that_is_no_library_is_an_error_that_names_it():
    result = run_python(COMPILE, **{NVVM_LIBRARY.variable: __file__})
    assert f"{__file__!r} cannot be used as libNVVM" in result.stderr


def test_a_library_that_is_not_libnvvm_is_an_error_that_says_what_it_lacks():
    import cuda_core_cffi._cuda

    result = run_python(COMPILE, **{NVVM_LIBRARY.variable: cuda_core_cffi._cuda.__file__})
    assert "it has no function nvvmVersion" in result.stderr


def test_libdevice_that_is_not_beside_libnvvm_is_an_error_that_says_where_it_was_sought(tmp_path):
    found = {item.name: item for item in found_libraries()}["libNVVM"]
    alone = tmp_path / "libnvvm.so"
    shutil.copy(found.path, alone)
    result = run_python(COMPILE, **{NVVM_LIBRARY.variable: str(alone)})
    assert "libdevice was not found" in result.stderr
    assert repr(str(tmp_path)) in result.stderr


def test_the_layout_in_messages_is_one_that_is_read():
    with pytest.raises(ValueError, match=f"such as {LAYOUT!r}"):
        Program("define void @k() {\nret void\n}", "nvvm")
