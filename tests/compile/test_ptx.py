# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Programs in PTX: assembled with nvJitLink, for real."""

from __future__ import annotations

import io
import random
import threading

import numpy as np
import pytest
from helpers import in_thread, output_of, ticks_during

from cuda_core_cffi import (
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Linker,
    LinkerError,
    ObjectCode,
    Program,
    ProgramOptions,
    UnavailableError,
    ffi,
    launch,
)
from cuda_core_cffi._core.libraries import NVJITLINK_LIBRARY, driver_build
from cuda_core_cffi.typing import CompilerBackendType, SourceCodeType
from cuda_core_cffi.utils import InMemoryProgramCache, make_program_cache_key

TWICE = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry twice(.param .u64 x)
{
    .reg .b64 %at<2>;
    .reg .f32 %value<3>;
    ld.param.u64 %at1, [x];
    ld.global.f32 %value1, [%at1];
    add.f32 %value2, %value1, %value1;
    st.global.f32 [%at1], %value2;
    ret;
}
"""
SM_90 = ProgramOptions(arch="sm_90", name="twice.ptx")


@pytest.fixture(scope="module", autouse=True)
def nvjitlink():
    """Skip without a linker that needs no GPU."""
    try:
        NVJITLINK_LIBRARY.load()
    except UnavailableError as error:
        pytest.skip(str(error))


# What is assembled, and to what


@pytest.mark.parametrize(
    "code", [TWICE, TWICE.encode(), bytearray(TWICE.encode()), TWICE + "\0", TWICE.encode() + b"\0"]
)
def test_a_cubin_is_made(code):
    cubin = Program(code, "ptx", SM_90).compile("cubin")
    assert cubin.code.startswith(b"\x7fELF")
    assert b"twice" in cubin.code
    assert (cubin.code_type, cubin.name, cubin.symbol_mapping) == ("cubin", "twice.ptx", {})


@pytest.mark.gpu_only("the simulated driver reads PTX only")
def test_a_kernel_runs(device, stream):
    with (
        Program(TWICE, "ptx").compile("cubin") as code,
        LegacyPinnedMemoryResource().allocate(4) as buffer,
    ):
        array = np.asarray(buffer).view(np.float32)
        array[:] = 1.5
        launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("twice"), buffer)
        stream.sync()
        assert array.tolist() == [3.0]


@pytest.mark.parametrize("target", ["ptx", "ltoir", "fatbin", "exe", ""])
def test_a_target_that_is_not_made_of_ptx_is_refused(target):
    with pytest.raises(ValueError, match="the linker makes 'cubin'"):
        Program(TWICE, "ptx", SM_90).compile(target)


@pytest.mark.parametrize("code_type", ["ptx", "PTX", SourceCodeType.PTX])
def test_the_backend_is_the_linkers(code_type):
    program = Program(TWICE, code_type, SM_90)
    assert program.backend is Linker.which_backend() is CompilerBackendType.NVJITLINK
    assert repr(program) == "<Program backend='nvJitLink'>"
    assert ffi.typeof(program.cdata) is ffi.typeof("nvJitLinkHandle")
    assert program.handle == int(ffi.cast("uintptr_t", program.cdata)) != 0
    assert program.pch_status is None


def test_a_program_is_assembled_again():
    with Program(TWICE, "ptx", SM_90) as program:
        assert program.compile("cubin").code == program.compile("cubin").code


def test_a_closed_program_says_so():
    program = Program(TWICE, "ptx", SM_90)
    program.close()
    assert program.handle == 0
    with pytest.raises(RuntimeError, match="this Program is closed"):
        program.compile("cubin")


def test_name_expressions_are_ignored():
    with Program(TWICE, "ptx", SM_90) as program, InMemoryProgramCache() as cache:
        code = program.compile("cubin", ["twice", "scale<float>"])
        assert code.symbol_mapping == {}
        assert code.code == program.compile("cubin", ["twice"], cache=cache).code
        with pytest.raises(TypeError, match="name_expressions must be str"):
            program.compile("cubin", [3])


# Options


def test_the_current_device_is_assembled_for(device):
    with_default = Program(TWICE, "ptx").compile("cubin").code
    assert with_default == Program(TWICE, "ptx", {"arch": f"sm_{device.arch}"}).compile("cubin").code


def test_without_a_device_an_architecture_is_needed():
    def make() -> None:
        with pytest.raises(ValueError, match="no device is current: give arch, such as 'sm_90'"):
            Program(TWICE, "ptx")

    in_thread(make)


@pytest.mark.parametrize(
    "options",
    [
        {"arch": "sm_80"},
        {"debug": True},
        {"lineinfo": True},
        {"max_register_count": 32},
        {"device_code_optimize": False},
    ],
)
def test_an_option_changes_the_code(options):
    cubin = Program(TWICE, "ptx", SM_90).compile("cubin").code
    assert Program(TWICE, "ptx", {"arch": "sm_90"} | options).compile("cubin").code != cubin


@pytest.mark.parametrize(
    "options",
    [
        {"device_code_optimize": True},
        {"ftz": True, "prec_div": False, "prec_sqrt": False, "fma": False},
        {"split_compile": 2, "no_cache": True},
        {"std": None, "restrict": False, "define_macro": []},
    ],
)
def test_an_option_is_accepted(options):
    assert Program(TWICE, "ptx", {"arch": "sm_90"} | options).compile("cubin").code


@pytest.mark.parametrize(("options", "said"), [({"ptxas_options": "-v"}, "ptxas info"), ({"time": "-"}, "time")])
def test_what_the_linker_reports_goes_to_logs(options, said):
    logs = io.StringIO()  # code from the linker's own cache comes without a report
    Program(TWICE, "ptx", {"arch": "sm_90", "no_cache": True} | options).compile("cubin", logs=logs)
    assert said in logs.getvalue()


def test_nothing_goes_to_logs_when_there_is_nothing_to_say():
    logs = io.StringIO()
    Program(TWICE, "ptx", SM_90).compile("cubin", logs=logs)
    assert logs.getvalue() == ""


def test_options_that_the_linker_does_not_have_are_left_out_with_a_warning():
    with pytest.warns(UserWarning, match="the linker, which has no option for std, numba_debug$") as caught:
        program = Program(TWICE, "ptx", {"arch": "sm_90", "std": "c++20", "numba_debug": True})
    assert caught[0].filename == __file__
    assert program.compile("cubin").code


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"extra_sources": [("a", "b")]}, "extra_sources are for NVVM IR"),
        ({"link_time_optimization": True}, "link_time_optimization is for LTO IR"),
        ({"time": "times.csv"}, "time must be '-' for PTX, .*'times.csv'"),
        ({"arch": "sm90"}, "arch must look like"),
    ],
)
def test_options_that_make_no_sense_for_ptx_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        Program(TWICE, "ptx", {"arch": "sm_90"} | options)


# Errors


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("ret;", "rot;", r"line 13; error   : Not a name of any known instruction: 'rot'"),
        (".version 8.0", ".version 99.0", r"line 2; fatal   : Unsupported \.version 99\.0"),
        ("sm_80", "sm_99", "line 3; fatal   : Unsupported .target 'sm_99'"),
        ("[%at1], %value2", "[%at1], %value3", "line 12; error   : Unknown symbol '%value3'"),
        ("}", "", "error|fatal"),
    ],
)
def test_an_error_has_the_log_with_the_line(old, new, said):
    logs = io.StringIO()
    with pytest.raises(LinkerError, match=rf"(?s)'twice\.ptx'.*NVJITLINK_ERROR_PTX_COMPILE.*({said})") as caught:
        Program(TWICE.replace(old, new), "ptx", SM_90).compile("cubin", logs=logs)
    assert caught.value.name == "NVJITLINK_ERROR_PTX_COMPILE"
    assert logs.getvalue().rstrip() in str(caught.value)
    assert logs.getvalue()


def test_a_program_that_failed_can_be_tried_again():
    program = Program(TWICE.replace("ret;", "rot;"), "ptx", SM_90)
    for _ in range(2):
        with pytest.raises(LinkerError, match="'rot'"):
            program.compile("cubin")


@pytest.mark.parametrize("code", ["", b"", " \n", "\0", b"\0\0"])
def test_empty_source_is_refused(code):
    with pytest.raises(ValueError, match="PTX must not be empty"):
        Program(code, "ptx", SM_90)


def test_source_with_nul_in_it_is_refused():
    with pytest.raises(ValueError, match=f"byte {len(TWICE)} is one"):
        Program(TWICE + "\0" + TWICE, "ptx", SM_90)


@pytest.mark.parametrize("code", [None, 3, ["a"], memoryview(b"a")])
def test_source_of_another_type_is_refused(code):
    with pytest.raises(TypeError, match="code must be str, bytes or bytearray"):
        Program(code, "ptx", SM_90)


@pytest.mark.parametrize("code", ["hello", b"\x7fELF\2\1\1", b"BC\xc0\xde", b"\xff\xfe\xfd"])
def test_what_is_no_ptx_is_an_error(code):
    with pytest.raises(LinkerError, match="NVJITLINK_ERROR"):
        Program(code, "ptx", SM_90).compile("cubin")


def test_damaged_ptx_never_does_more_than_fail():
    chance = random.Random(5)
    failed = 0
    for _ in range(60):
        code = bytearray(TWICE.strip().encode())
        if chance.random() < 0.3:
            del code[chance.randrange(1, len(code)) :]
        for _ in range(chance.choice((1, 1, 4))):
            code[chance.randrange(len(code))] = chance.randrange(1, 256)
        try:
            Program(code, "ptx", SM_90).compile("cubin")
        except LinkerError:
            failed += 1
    assert failed > 30


# Caches


def key_of(code=TWICE, **options) -> bytes:
    """Return the key of PTX."""
    options = ProgramOptions(**{"arch": "sm_90"} | options)
    return make_program_cache_key(code=code, code_type="ptx", options=options, target_type="cubin")


def test_code_is_assembled_once(monkeypatch):
    cache = InMemoryProgramCache()
    first = Program(TWICE, "ptx", SM_90).compile("cubin", cache=cache)
    monkeypatch.setattr("cuda_core_cffi._compile.ptx.PTX.compile", None)  # whoever assembles now fails
    second = Program(TWICE, "ptx", SM_90).compile("cubin", cache=cache)
    assert second.code == first.code == cache.get(key_of(name="twice.ptx"))
    assert isinstance(second, ObjectCode)


def test_the_key_of_ptx_with_a_zero_at_its_end_is_the_one_that_compile_uses():
    cache = InMemoryProgramCache()
    code = Program(TWICE + "\0", "ptx", SM_90).compile("cubin", cache=cache)
    assert cache.get(key_of(TWICE + "\0", name="twice.ptx")) == code.code


def test_whatever_the_code_depends_on_changes_the_key(monkeypatch):
    keys = {key_of(), key_of(TWICE + "\n")}
    changes = [
        {"name": "a"},
        {"arch": "sm_80"},
        {"max_register_count": 32},
        {"debug": True},
        {"lineinfo": True},
        {"device_code_optimize": True},
        {"device_code_optimize": False},
        {"ftz": True},
        {"prec_div": False},
        {"prec_sqrt": False},
        {"fma": False},
        {"ptxas_options": "-v"},
        {"split_compile": 2},
        {"no_cache": True},
    ]
    keys |= {key_of(**change) for change in changes}
    monkeypatch.setattr(NVJITLINK_LIBRARY, "build", lambda: b"13.0 other")
    keys.add(key_of())
    assert len(keys) == 2 + len(changes) + 1


def test_without_an_architecture_the_current_device_is_in_the_key(device):
    assert key_of(arch=None) == key_of(arch=f"sm_{device.arch}")


def test_the_build_of_the_driver_begins_with_its_version():
    version, _, build = driver_build().partition(b" ")
    assert int(version) >= 12000
    assert len(build) in (0, 20)


# Threads


def test_threads_assemble_one_program_at_once():
    program = Program(TWICE, "ptx", SM_90)
    codes: list[bytes] = []
    threads = [threading.Thread(target=lambda: codes.append(program.compile("cubin").code)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(codes) == 8
    assert len(set(codes)) == 1


def many_kernels() -> str:
    """Return PTX that takes long to assemble, and much memory."""
    head, _, body = TWICE.partition(".visible")
    kernels = [(".visible" + body).replace("twice", f"twice{index}") for index in range(300)]
    return head + "\n".join(kernels)


def test_other_threads_run_while_the_linker_assembles():
    program = Program(many_kernels(), "ptx", {"arch": "sm_90", "no_cache": True})
    assert ticks_during(lambda: program.compile("cubin")) > 1


@pytest.mark.parametrize("use", [lambda program: program.compile("cubin"), Program.close])
def test_a_program_may_be_used_by_another_thread_than_made_it(use):
    # where nvJitLink notices the thread, this one's memory is damaged, and the next program crashes
    for _ in range(3):
        program = Program(TWICE, "ptx", SM_90)
        in_thread(lambda program=program: use(program))
        assert Program(many_kernels(), "ptx", {"arch": "sm_90", "no_cache": True}).compile("cubin").code


def test_a_forked_child_ends_without_the_linkers_of_its_parent():
    code = f"""
        import os, warnings
        from cuda_core_cffi import Program
        warnings.simplefilter("ignore", DeprecationWarning)  # Python's, of forking where there are threads
        program = Program({TWICE!r}, "ptx", {{"arch": "sm_90"}})
        child = os.fork()
        if child == 0:
            program.close()
            os._exit(0)
        print(os.waitpid(child, 0)[1])
        assert program.compile("cubin").code
    """
    assert output_of(code) == "0"
