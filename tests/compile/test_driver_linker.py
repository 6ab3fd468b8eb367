# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Linking with the driver, where there is no nvJitLink."""

from __future__ import annotations

import ast
import concurrent.futures
import gc
import re
import warnings

import numpy as np
import pytest
from helpers import SUPPORT, in_thread, linked_by_the_driver, output_of, run_python
from mutations import fatbin_part, make_fatbin

from cuda_core_cffi import (
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Linker,
    LinkerError,
    LinkerOptions,
    ObjectCode,
    Program,
    _cuda,
    ffi,
    launch,
    lib,
    live_objects,
)
from cuda_core_cffi._compile.driver_linker import driver_options
from cuda_core_cffi._core.libraries import NVJITLINK_LIBRARY, found_libraries
from cuda_core_cffi.typing import CompilerBackendType

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
ADD = """
.visible .func (.param .b32 r) add(.param .b32 a, .param .b32 b)
{
    .reg .b32 x, y;
    ld.param.b32 x, [a];
    ld.param.b32 y, [b];
    add.s32 x, x, y;
    st.param.b32 [r], x;
    ret;
}
"""
EXTERN = ".extern .func (.param .b32 r) add(.param .b32 a, .param .b32 b);"
KERNEL = f"""
{EXTERN}
.visible .entry add_to(.param .u64 value, .param .u32 summand)
{{
    .reg .u64 p;
    .reg .b32 x, y;
    ld.param.u64 p, [value];
    ld.param.u32 y, [summand];
    ld.global.b32 x, [p];
    {{ .param .b32 a; .param .b32 b; .param .b32 r;
      st.param.b32 [a], x;
      st.param.b32 [b], y;
      call.uni (r), add, (a, b);
      ld.param.b32 x, [r]; }}
    st.global.b32 [p], x;
    ret;
}}
"""


@pytest.fixture(autouse=True)
def by_the_driver(device):
    """Link with the driver."""
    with linked_by_the_driver():
        yield


def ptx(text: str, name: str = "") -> ObjectCode:
    return ObjectCode.from_ptx((HEADER + text).encode(), name=name)


@pytest.fixture
def parts() -> list[ObjectCode]:
    """Return a function, and a kernel that calls it."""
    return [ptx(ADD, "add.ptx"), ptx(KERNEL, "kernel.ptx")]


def check_kernel(code: ObjectCode, stream) -> None:
    """Run the kernel and compare what it computes."""
    with LegacyPinnedMemoryResource().allocate(4) as buffer:
        value = np.from_dlpack(buffer).view(np.int32)
        value[0] = 40
        launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("add_to"), buffer, 2)
        stream.sync()
        assert value[0] == 42
        del value


# what it makes


def test_two_units_become_one_whose_kernel_computes_what_it_should(parts, stream):
    with Linker(*parts, options={"name": "both"}) as linker:
        code = linker.link("cubin")
    assert (code.code_type, code.name) == ("cubin", "both")
    check_kernel(code, stream)


@pytest.mark.simulator_only("real code is final once it is linked")
def test_what_was_linked_can_be_linked_again(stream):
    first = Linker(ptx(ADD + KERNEL.replace(EXTERN, ""))).link("cubin")
    check_kernel(Linker(first).link("cubin"), stream)


def test_a_linker_links_any_number_of_times(parts, stream):
    linker = Linker(*parts)
    for _ in range(3):
        check_kernel(linker.link("cubin"), stream)


def test_links_in_many_threads_at_once(parts, device, stream):
    def link(_: int) -> ObjectCode:
        device.set_current()
        return linker.link("cubin")

    linker = Linker(*parts)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(link, range(16)))
    for code in codes:
        check_kernel(code, stream)


def test_the_first_link_happens_in_the_context_of_the_linker(parts):
    linker = Linker(*parts)
    in_thread(lambda: linker.link("cubin"))  # where none is current


@pytest.mark.simulator_only("a real driver has options with names for LTO IR of CUDA 11 only")
def test_the_inputs_and_options_may_go_once_the_linker_is_made(stream):
    linker = Linker(ptx(ADD), ptx(KERNEL), options=LinkerOptions(kernels_used=["add" + "_to"], variables_used="v" * 9))
    for _ in range(3):
        gc.collect()
    check_kernel(linker.link("cubin"), stream)


# options


@pytest.mark.parametrize(
    ("field", "value", "option", "number"),
    [
        ("max_register_count", 32, lib.CU_JIT_MAX_REGISTERS, 32),
        ("verbose", True, lib.CU_JIT_LOG_VERBOSE, 1),
        ("verbose", False, lib.CU_JIT_LOG_VERBOSE, 0),
        ("link_time_optimization", True, lib.CU_JIT_LTO, 1),
        ("optimization_level", 4, lib.CU_JIT_OPTIMIZATION_LEVEL, 4),
        ("optimization_level", 0, lib.CU_JIT_OPTIMIZATION_LEVEL, 0),
        ("debug", True, lib.CU_JIT_GENERATE_DEBUG_INFO, 1),
        ("lineinfo", True, lib.CU_JIT_GENERATE_LINE_INFO, 1),
        ("ftz", False, lib.CU_JIT_FTZ, 0),
        ("prec_div", True, lib.CU_JIT_PREC_DIV, 1),
        ("prec_sqrt", False, lib.CU_JIT_PREC_SQRT, 0),
        ("fma", True, lib.CU_JIT_FMA, 1),
        ("optimize_unused_variables", True, lib.CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES, 1),
        ("split_compile", 2, 34, 2),
        ("arch", "sm_90", lib.CU_JIT_TARGET, lib.CU_TARGET_COMPUTE_90),
        ("arch", "sm_90a", lib.CU_JIT_TARGET, lib.CU_TARGET_COMPUTE_90A),
        ("arch", "compute_80", lib.CU_JIT_TARGET, lib.CU_TARGET_COMPUTE_80),
    ],
)
def test_an_option_becomes_the_drivers(field, value, option, number):
    assert driver_options(LinkerOptions(**{field: value})) == {option: number}


def test_options_that_are_not_set_are_left_to_the_driver():
    assert driver_options(LinkerOptions()) == {}
    assert driver_options(LinkerOptions(name="x", time=True, kernels_used="k", variables_used="v")) == {}


@pytest.mark.parametrize(
    ("field", "value"),
    [("ptx", True), ("ptxas_options", "-v"), ("split_compile_extended", 0), ("no_cache", True), ("incremental", True)],
)
def test_an_option_that_the_driver_does_not_have_is_refused_by_name(parts, field, value):
    with pytest.raises(ValueError, match=f"the driver's linker has no option {field}: leave it out, or install nvJit"):
        Linker(*parts, options={field: value})


@pytest.mark.parametrize("field", ["ptx", "no_cache"])
def test_an_option_that_the_driver_does_not_have_may_be_false(parts, field):
    Linker(*parts, options={field: False}).link("cubin")


def test_what_an_incremental_link_needs_is_said(parts):
    with pytest.raises(ValueError, match=r"no option incremental: leave it out, or install nvJitLink of CUDA 13\.2 or"):
        Linker(*parts, options={"incremental": True})


def test_an_architecture_that_the_header_does_not_know_is_refused(parts):
    with pytest.raises(ValueError, match="does not know arch 'sm_999'"):
        Linker(*parts, options={"arch": "sm_999"})


@pytest.mark.parametrize(
    "options",
    [
        {"max_register_count": 32},
        {"optimization_level": 3},
        {"debug": True},
        {"lineinfo": True},
        {"verbose": True},
        {"time": True},
    ],
)
def test_the_driver_takes_its_options(parts, options, stream):
    check_kernel(Linker(*parts, options=options).link("cubin"), stream)


# logs


def test_the_time_is_in_the_info_log_if_asked_for(parts):
    linker = Linker(*parts, options={"time": True})
    linker.link("cubin")
    linker.close()
    assert float(linker.get_info_log().rpartition("cuLink time: ")[2].split()[0]) > 0
    assert "time" not in Linker(*parts).get_info_log()


# errors


def test_a_missing_function_is_named_and_the_log_survives_the_failure_and_close():
    """In a process of its own: where much else ran before, driver 580 now and then links what is missing."""
    found = output_of(
        f"""
        import sys
        sys.path.append({str(SUPPORT)!r})
        from helpers import linked_by_the_driver
        from cuda_core_cffi import Device, Linker, LinkerError, ObjectCode

        Device(0).set_current()
        with linked_by_the_driver():
            linker = Linker(ObjectCode.from_ptx({(HEADER + KERNEL).encode()!r}, name="kernel.ptx"))
            try:
                linker.link("cubin")
            except LinkerError as error:
                print([str(error), error.call, error.name])
            linker.close()
            print("add" in linker.get_error_log())
        """
    )
    error, has_log = found.splitlines()
    text, call, name = ast.literal_eval(error)
    assert re.search(r"(?s)cuLink\w+ failed: CUDA_ERROR_\w+ \(\d+\).*'add'", text)
    assert (call[:6], name[:11], has_log) == ("cuLink", "CUDA_ERROR_", "True")


@pytest.mark.simulator_only("newer drivers may take one of the two, as nvJitLink does")
def test_a_function_defined_twice_is_named(parts):
    with pytest.raises(LinkerError, match="'add'"):
        Linker(parts[0], *parts).link("cubin")


def test_broken_ptx_is_an_error_with_the_line():
    with pytest.raises(LinkerError, match=r"(?s)cuLinkAddData failed: CUDA_ERROR_INVALID_PTX.*'broken.ptx'.*line 4"):
        Linker(ptx("nonsense;\n", "broken.ptx"))


@pytest.mark.simulator_only("a real driver may find out later, and says so in its own words")
def test_lto_ir_of_today_is_refused_with_what_to_install():
    with pytest.raises(LinkerError, match="the driver links LTO IR of CUDA 11 only: install nvJitLink"):
        Linker(ObjectCode.from_ltoir(b"\xedCN\x7f" + bytes(100)), options={"link_time_optimization": True}).link(
            "cubin"
        )


@pytest.mark.simulator_only("a real driver links them")
def test_a_fatbin_is_refused_by_the_simulated_driver_with_the_reason():
    with pytest.raises(LinkerError, match=r"(?s)CUDA_ERROR_NO_BINARY_FOR_GPU.*links PTX, not a fatbin: compile to PTX"):
        Linker(ObjectCode.from_fatbin(make_fatbin(fatbin_part(1, 80, (HEADER + ADD).encode() + b"\0"))))


def test_only_cubins_are_made(parts):
    with pytest.raises(ValueError, match="unsupported target_type 'ptx': driver makes 'cubin'"):
        Linker(*parts).link("ptx")


def test_a_context_must_be_current(parts):
    def link() -> None:
        with pytest.raises(LinkerError, match=r"cuLinkCreate: no CUDA context is current.*set_current"):
            Linker(*parts)

    in_thread(link)


# programs


def test_a_program_of_ptx_is_assembled_by_the_driver(stream):
    program = Program(HEADER + ADD + KERNEL.replace(EXTERN, ""), "ptx")
    assert program.backend is CompilerBackendType.DRIVER
    assert ffi.typeof(program.cdata) is ffi.typeof("CUlinkState")
    check_kernel(program.compile("cubin"), stream)


def test_a_warning_says_so_where_the_program_is_made():
    with pytest.warns(RuntimeWarning, match="the driver links, because nvJitLink cannot: for a test") as caught:
        Program(HEADER + ADD, "ptx")
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Program(HEADER + ADD, "ptx")  # once is enough


# lifetime


def test_the_handle_is_the_drivers(parts):
    linker = Linker(*parts)
    assert ffi.typeof(linker.cdata) is ffi.typeof("CUlinkState")
    assert int(ffi.cast("uintptr_t", linker.cdata)) == linker.handle != 0
    assert repr(linker) == "<Linker backend='driver'>"
    linker.close()
    assert linker.handle == 0
    with pytest.raises(RuntimeError, match="this Linker is closed"):
        linker.link("cubin")


def test_linkers_are_counted_until_they_are_closed(parts):
    before = live_objects()["linker"]
    linker = Linker(*parts)
    linker.link("cubin")
    linker.link("cubin")
    assert live_objects()["linker"] == before + 1
    linker.close()
    assert live_objects()["linker"] == before


# the choice

CHOICE = """
    import warnings
    warnings.simplefilter("always")
    from cuda_core_cffi import Device, Linker, ObjectCode
    Device().set_current()
    print(Linker.which_backend())
    code = ObjectCode.from_ptx(b".version 8.0\\n.target sm_80\\n.address_size 64\\n.visible .entry k() { ret; }")
    Linker(code).link("cubin").get_kernel("k")
    """


def test_without_nvjitlink_the_driver_links_and_a_warning_says_why():
    done = run_python(CHOICE, **{NVJITLINK_LIBRARY.variable: "/no/such/file"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == CompilerBackendType.DRIVER
    assert done.stderr.count("RuntimeWarning") == 1
    assert done.stderr.startswith("<string>:6: RuntimeWarning: the driver links, because nvJitLink cannot: ")
    assert "names '/no/such/file', and there is no such file" in done.stderr


def test_an_nvjitlink_that_is_too_old_is_not_used():
    done = run_python(CHOICE, **{NVJITLINK_LIBRARY.variable: _cuda.__file__})  # lacks what was new in CUDA 12.3
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == CompilerBackendType.DRIVER
    assert "it has no function nvJitLinkVersion, so it is too old, or no nvJitLink" in done.stderr


def test_the_report_says_why_nvjitlink_cannot_be_used():
    code = """
        from cuda_core_cffi._core.libraries import found_libraries
        print({item.name: item for item in found_libraries()}["nvJitLink"])
        """
    printed = output_of(code, **{NVJITLINK_LIBRARY.variable: "/no/such/file"})
    assert "path='/no/such/file', version=None, problem=" in printed
    assert "nvJitLink" in {item.name for item in found_libraries()}
