# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Linking with nvJitLink, which needs no GPU; what comes out as PTX also runs on the simulated driver."""

from __future__ import annotations

import concurrent.futures
import gc
import weakref

import numpy as np
import pytest
from helpers import in_thread, ticks_during

from cuda_core_cffi import (
    CUDAError,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Linker,
    LinkerError,
    LinkerOptions,
    ObjectCode,
    Program,
    ProgramOptions,
    UnavailableError,
    ffi,
    launch,
    live_objects,
)
from cuda_core_cffi._core.libraries import NVJITLINK_LIBRARY, NVRTC_LIBRARY, found_libraries
from cuda_core_cffi.typing import CompilerBackendType, ObjectCodeFormatType

ADD = """
extern "C" __device__ int add(int a, int b) { return a + b; }
"""
KERNEL = """
extern "C" __device__ int add(int a, int b);
extern "C" __global__ void add_to_all(int *values, int n, int b)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        values[i] = add(values[i], b);
}
"""
LTO = {"link_time_optimization": True}
COUNT = 1000


@pytest.fixture(autouse=True, scope="module")
def compilers():
    """Skip where NVRTC or nvJitLink is not installed."""
    try:
        NVRTC_LIBRARY.version()
        NVJITLINK_LIBRARY.version()
    except UnavailableError as error:
        pytest.skip(str(error))


def compiled(source: str, target: str, name: str = "", **options: object) -> ObjectCode:
    """Compile for the device that is current, so that it can be linked."""
    if target != "ltoir":
        options["relocatable_device_code"] = True
    return Program(source, "c++", ProgramOptions(name=name, **options)).compile(target)


@pytest.fixture
def parts(device) -> list[ObjectCode]:
    """Return a function and a kernel that calls it, as LTO IR."""
    return [compiled(ADD, "ltoir", "add.cu"), compiled(KERNEL, "ltoir", "kernel.cu")]


@pytest.fixture
def ptx_parts(device) -> list[ObjectCode]:
    """Return the same as PTX."""
    return [compiled(ADD, "ptx", "add.cu"), compiled(KERNEL, "ptx", "kernel.cu")]


def check_kernel(code: ObjectCode, device, stream) -> None:
    """Run the kernel and compare what it computes."""
    with LegacyPinnedMemoryResource().allocate(4 * COUNT) as buffer:
        values = np.from_dlpack(buffer).view(np.int32)
        values[:] = np.arange(COUNT)
        launch(stream, LaunchConfig(grid=4, block=256), code.get_kernel("add_to_all"), buffer, COUNT, 42)
        stream.sync()
        assert (values == np.arange(COUNT) + 42).all()
        del values


# what it makes


def test_two_units_are_optimised_into_one_whose_kernel_computes_what_it_should(parts, device, stream, compile_target):
    with Linker(*parts, options=LinkerOptions(**LTO)) as linker:
        code = linker.link(compile_target)
    assert code.code_type == compile_target
    check_kernel(code, device, stream)


def test_linking_to_ptx_leaves_no_call(parts):
    ptx = Linker(*parts, options=LTO).link("ptx").code.decode()
    assert "add_to_all" in ptx
    assert "call" not in ptx
    assert not ptx.endswith("\0")


@pytest.mark.parametrize("target", ["ptx", "cubin"])
@pytest.mark.gpu_only("the simulated driver reads PTX, which is not made by linking PTX or cubins")
def test_relocatable_code_is_linked_to_a_kernel_that_computes_what_it_should(device, stream, target):
    parts = [compiled(ADD, target), compiled(KERNEL, target)]
    check_kernel(Linker(*parts).link("cubin"), device, stream)


@pytest.mark.parametrize("target", ["ptx", "cubin"])
def test_relocatable_code_is_linked_to_a_cubin(device, target):
    code = Linker(compiled(ADD, target), compiled(KERNEL, target)).link(ObjectCodeFormatType.CUBIN)
    assert code.code.startswith(b"\x7fELF")
    assert b"add_to_all" in code.code
    assert code.code_type == "cubin"


def test_the_kinds_of_input_can_be_mixed(device):
    code = Linker(compiled(ADD, "cubin"), compiled(KERNEL, "ptx")).link("cubin")
    assert b"add_to_all" in code.code


def test_upper_case_targets_will_do(parts):
    assert Linker(*parts, options=LTO).link("PTX").code_type == "ptx"


def test_code_carries_the_name_that_the_options_give(ptx_parts):
    assert Linker(*ptx_parts, options={"name": "both"}).link("cubin").name == "both"
    assert Linker(*ptx_parts).link("cubin").name == "<default linker>"
    assert Linker(*ptx_parts, options={"name": None}).link("cubin").name == "<default linker>"


def test_name_expressions_of_the_inputs_name_kernels_of_the_output(device, stream, compile_target):
    source = "template <typename T> __global__ void set(T *out, T value) { *out = value; }"
    part = Program(source, "c++").compile("ltoir", name_expressions=("set<int>", "set<float>"))
    code = Linker(part, options=LTO).link(compile_target)
    assert code.symbol_mapping == part.symbol_mapping
    with LegacyPinnedMemoryResource().allocate(4) as buffer:
        launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("set<int>"), buffer, 7)
        stream.sync()
        assert bytes(np.from_dlpack(buffer)) == (7).to_bytes(4, "little")


def test_a_virtual_architecture_makes_ptx_for_it(parts, device):
    linker = Linker(*parts, options=LinkerOptions(arch=f"compute_{device.arch}", **LTO))
    assert f".target sm_{device.arch}".encode() in linker.link("ptx").code
    with pytest.raises(ValueError, match="link to 'ptx', not 'cubin'"):
        linker.link("cubin")


# linking again, and at the same time


def test_a_linker_links_any_number_of_times_to_any_target(parts):
    linker = Linker(*parts, options=LTO)
    cubins = [linker.link("cubin").code for _ in range(2)]
    assert cubins[0] == cubins[1]
    assert b".entry add_to_all" in linker.link("ptx").code
    assert linker.link("cubin").code == cubins[0]


def test_one_linker_links_in_many_threads_at_once(parts):
    linker = Linker(*parts, options=LinkerOptions(arch="sm_90", **LTO))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(lambda _: linker.link("ptx").code, range(16)))
    assert all(b".entry add_to_all" in code for code in codes)


def test_many_linkers_link_at_once(ptx_parts):
    def link(number: int) -> bytes:
        return Linker(*ptx_parts, options={"arch": "sm_90", "optimization_level": 3 * (number % 2)}).link("cubin").code

    alone = [link(0), link(1)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(link, range(16)))
    assert codes == alone * 8


def test_other_threads_run_while_one_links(device):
    source = "".join(
        f'extern "C" __global__ void k{i}(double *a) {{ for (int j = 0; j < 9; ++j) *a = sin(*a) * cos(*a + {i}); }}\n'
        for i in range(60)
    )
    code = compiled(source, "ltoir")
    with Linker(code, options={**LTO, "no_cache": True}) as linker:
        assert ticks_during(lambda: linker.link("ptx")) > 1


def test_linkers_change_threads_and_outlive_failures(parts, ptx_parts):
    """nvJitLink crashes later where a thread ends the linker of another."""
    broken = ObjectCode.from_ptx(b".version 8.0\n.target sm_80\n.address_size 64\nnonsense\n")
    linkers = []

    def make() -> None:
        linkers.append(Linker(*ptx_parts, options={"arch": "sm_90"}))
        linkers.append(Linker(ptx_parts[1], options={"arch": "sm_90"}))
        with pytest.raises(LinkerError):
            Linker(broken, options={"arch": "sm_90"})

    def use() -> None:
        good, bad = linkers
        good.link("cubin")
        with pytest.raises(LinkerError):
            bad.link("cubin")
        linkers.clear()

    for first, second in ((make, lambda: in_thread(use)), (lambda: in_thread(make), use)) * 4:
        first()
        second()
    many = ADD + "".join(KERNEL.replace("add_to_all", f"kernel{i}").replace(ADD, "") for i in range(100))
    for _ in range(2):
        assert b"kernel99" in Linker(compiled(many, "ptx"), options={"arch": "sm_90"}).link("cubin").code


def test_a_linker_keeps_to_the_architecture_that_was_current_when_it_was_made(parts, device):
    linker = Linker(*parts, options=LTO)
    in_thread(lambda: linker.link("ptx"))  # no device is current there
    assert f"sm_{device.arch}".encode() in linker.link("ptx").code


def test_a_thread_without_a_device_links_for_a_given_architecture(parts):
    in_thread(lambda: Linker(*parts, options=LinkerOptions(arch="sm_90", **LTO)).link("ptx"))


# logs


def test_the_info_log_says_what_was_asked_for(ptx_parts):
    linker = Linker(*ptx_parts, options=LinkerOptions(verbose=True, time=True))
    linker.link("cubin")
    assert "add_to_all" in linker.get_info_log()
    assert "time" in linker.get_info_log()
    assert linker.get_error_log() == ""


def test_logs_are_empty_where_there_is_nothing_to_say(ptx_parts):
    linker = Linker(*ptx_parts)
    assert (linker.get_error_log(), linker.get_info_log()) == ("", "")
    linker.link("cubin")
    assert (linker.get_error_log(), linker.get_info_log()) == ("", "")


def test_logs_survive_close(ptx_parts):
    linker = Linker(*ptx_parts, options=LinkerOptions(verbose=True))
    linker.link("cubin")
    log = linker.get_info_log()
    linker.close()
    assert "add_to_all" in log
    assert linker.get_info_log() == log
    assert linker.get_error_log() == ""


def test_the_error_log_survives_a_failure_and_close(ptx_parts):
    linker = Linker(ptx_parts[1])
    with pytest.raises(LinkerError):
        linker.link("cubin")
    linker.close()
    assert "add" in linker.get_error_log()


# errors


def test_a_missing_function_is_named(ptx_parts):
    with pytest.raises(
        LinkerError, match=r"(?s)nvJitLinkComplete failed: NVJITLINK_ERROR_\w+ \(\d+\).*'add'"
    ) as caught:
        Linker(ptx_parts[1]).link("cubin")
    assert isinstance(caught.value, CUDAError)
    assert caught.value.call == "nvJitLinkComplete"
    assert caught.value.name.startswith("NVJITLINK_ERROR_")
    assert caught.value.status > 0


def test_names_of_inputs_are_kept_for_the_log(ptx_parts):
    linker = Linker(ObjectCode.from_ptx(ptx_parts[1].code, name="".join(["ker", "nel", ".cu"])))
    for _ in range(3):
        gc.collect()
    kept = [bytes(size) for size in range(1, 200)]  # where a name would have been
    with pytest.raises(LinkerError, match=r"Undefined reference to 'add' in 'kernel\.cu'"):
        linker.link("cubin")
    del kept


def test_a_function_defined_twice_is_an_error_that_names_it(parts):
    with pytest.raises(LinkerError, match="'add'"):
        Linker(parts[0], *parts, options=LTO).link("cubin")


def test_lto_ir_without_the_option_is_an_error_that_names_it(parts):
    with pytest.raises(LinkerError, match=r"'add.cu', 'ltoir'"):
        Linker(*parts).link("cubin")


def test_an_architecture_that_nvjitlink_does_not_know_is_an_error_that_names_it(ptx_parts):
    with pytest.raises(LinkerError, match=r"nvJitLinkCreate\(-arch=sm_999\) failed"):
        Linker(*ptx_parts, options={"arch": "sm_999"})


def test_options_that_nvjitlink_refuses_are_an_error_with_its_log(ptx_parts):
    with pytest.raises(LinkerError, match=r"(?s)nvJitLinkCreate.*-O.*Only 0 and 3"):
        Linker(*ptx_parts, options={"optimization_level": 2, "arch": "sm_90"})


def test_ptx_without_link_time_optimisation_is_refused(ptx_parts):
    with pytest.raises(ValueError, match="set link_time_optimization"):
        Linker(*ptx_parts).link("ptx")
    with pytest.raises(LinkerError, match="-ptx requires -lto"):
        Linker(*ptx_parts, options={"ptx": True})


def test_the_option_ptx_and_the_target_must_agree(parts):
    with pytest.raises(ValueError, match="link to 'ptx', not 'cubin'"):
        Linker(*parts, options=LinkerOptions(ptx=True, **LTO)).link("cubin")
    with pytest.raises(ValueError, match="ptx=False"):
        Linker(*parts, options=LinkerOptions(ptx=False, **LTO)).link("ptx")
    assert Linker(*parts, options=LinkerOptions(ptx=True, **LTO)).link("ptx").code_type == "ptx"


def test_broken_ptx_is_an_error_with_the_line():
    code = ObjectCode.from_ptx(b".version 8.0\n.target sm_90\n.address_size 64\nnonsense\n", name="broken.ptx")
    with pytest.raises(LinkerError, match=r"(?s)nvJitLinkAddData\('broken.ptx', 'ptx'\) failed.*line 4"):
        Linker(code, options={"arch": "sm_90"})


def test_nothing_to_link_is_refused():
    with pytest.raises(ValueError, match="at least one ObjectCode"):
        Linker()
    with pytest.raises(ValueError, match="at least one ObjectCode"):
        Linker(options=LinkerOptions(arch="sm_90"))


@pytest.mark.parametrize("wrong", [b"code", "code", None, 1])
def test_what_is_no_object_code_is_refused(wrong):
    with pytest.raises(TypeError, match=f"links ObjectCode, not {type(wrong).__name__}"):
        Linker(ObjectCode.from_ptx(b".version 8.0"), wrong)


def test_wrong_options_are_refused(ptx_parts):
    with pytest.raises(TypeError, match="options must be LinkerOptions, a mapping or None, not int"):
        Linker(*ptx_parts, options=1)
    with pytest.raises(TypeError, match="LinkerOptions has no option 'lto'"):
        Linker(*ptx_parts, options={"lto": True})


@pytest.mark.parametrize("target", ["fatbin", "exe", ""])
def test_an_unknown_target_is_refused(ptx_parts, target):
    with pytest.raises(ValueError, match="nvJitLink makes 'cubin', 'ptx', 'ltoir'"):
        Linker(*ptx_parts).link(target)


def test_a_target_that_is_no_str_is_refused(ptx_parts):
    with pytest.raises(TypeError, match="target_type must be a str, not int: 3"):
        Linker(*ptx_parts).link(3)


def test_closed_code_cannot_be_linked(ptx_parts):
    ptx_parts[0].close()
    with pytest.raises(RuntimeError, match=r"object code 'add.cu' is closed"):
        Linker(*ptx_parts)


# lifetime


def test_a_closed_linker_links_no_more(ptx_parts):
    linker = Linker(*ptx_parts)
    assert linker.handle
    assert not linker.is_closed
    linker.close()
    linker.close()
    assert linker.is_closed
    assert linker.handle == 0
    with pytest.raises(RuntimeError, match="this Linker is closed"):
        linker.link("cubin")


def test_the_handle_is_typed_too(ptx_parts):
    linker = Linker(*ptx_parts)
    assert ffi.typeof(linker.cdata) is ffi.typeof("nvJitLinkHandle")
    assert int(ffi.cast("uintptr_t", linker.cdata)) == linker.handle


def test_linkers_are_counted_until_they_are_closed(ptx_parts):
    before = live_objects()["linker"]
    linker = Linker(*ptx_parts)
    assert live_objects()["linker"] == before + 1
    linker.link("cubin")
    linker.link("cubin")
    assert live_objects()["linker"] == before + 1
    linker.close()
    assert live_objects()["linker"] == before


def test_a_linker_that_fails_leaves_nothing(ptx_parts):
    before = live_objects()["linker"]
    for codes, options in (
        (ptx_parts, {"arch": "sm_999"}),
        ([ObjectCode.from_ptx(b"nonsense")], {"arch": "sm_90"}),
    ):
        with pytest.raises((LinkerError, ValueError)):
            Linker(*codes, options=options)
    assert live_objects()["linker"] == before


def test_a_linker_can_be_weakly_referenced_and_goes_with_its_last_reference(ptx_parts):
    linker = Linker(*ptx_parts)
    reference = weakref.ref(linker)
    assert reference() is linker
    del linker
    for _ in range(3):
        gc.collect()
    assert reference() is None


def test_linkers_are_equal_to_themselves_only(ptx_parts):
    linker, other = Linker(*ptx_parts), Linker(*ptx_parts)
    assert linker == linker
    assert linker != other
    assert len({linker, other, linker}) == 2
    assert repr(linker) == "<Linker backend='nvJitLink'>"


def test_a_linker_cannot_be_pickled(ptx_parts):
    import pickle

    with pytest.raises(TypeError, match="Linker cannot be pickled"):
        pickle.dumps(Linker(*ptx_parts))


# the library


def test_nvjitlink_links_by_default():
    assert Linker.which_backend() is CompilerBackendType.NVJITLINK


def test_nvjitlink_is_among_the_libraries_found():
    found = {item.name: item for item in found_libraries()}["nvJitLink"]
    assert found.path == NVJITLINK_LIBRARY.find()
    assert found.version == ".".join(map(str, NVJITLINK_LIBRARY.version()))
    assert found.problem is None


def test_builds_of_nvjitlink_are_told_apart():
    version, _, build = NVJITLINK_LIBRARY.build().partition(b" ")
    assert version == b"%d.%d" % NVJITLINK_LIBRARY.version()
    assert len(build) in (0, 20)
