# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Linking in steps with nvJitLink: to relocatable cubins, and to LTO IR."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cuda_core_cffi import (
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Linker,
    LinkerError,
    LinkerOptions,
    ObjectCode,
    Program,
    ProgramOptions,
    UnavailableError,
    launch,
)
from cuda_core_cffi._compile.nvjitlink import NvJitLink
from cuda_core_cffi._core.libraries import NVJITLINK_LIBRARY, NVRTC_LIBRARY

TWICE = "__device__ int twice(int x) { return 2 * x; }"
FOUR = "__device__ int twice(int x); __device__ int four(int x) { return twice(twice(x)); }"
KERNEL = """
__device__ int four(int x);
template <typename T> __global__ void apply(T *values) { values[threadIdx.x] = four(values[threadIdx.x]); }
"""
NAME = "apply<int>"
COUNT = 32
LTO: dict[str, Any] = {"link_time_optimization": True}
STEP: dict[str, Any] = {"incremental": True}
RELOCATABLE = 1  # ET_REL, the type of an ELF file


@pytest.fixture(autouse=True)
def compilers(request):
    """Skip where a compiler is not installed, or too old for a test that is not about that."""
    try:
        NVRTC_LIBRARY.version()
        version = NVJITLINK_LIBRARY.version()
    except UnavailableError as error:
        pytest.skip(str(error))
    if version < (13, 3) and "version" not in request.fixturenames:
        pytest.skip(f"nvJitLink {version} is older than 13.3")


@pytest.fixture
def version(monkeypatch):
    """Return a function that sets the version that nvJitLink says, with which nothing is linked."""

    def refuse(*arguments: object) -> None:
        raise AssertionError("nvJitLink was called")

    def change(number: tuple[int, int]) -> None:
        monkeypatch.setattr(NVJITLINK_LIBRARY, "version", lambda: number)
        monkeypatch.setattr(NvJitLink, "_create", refuse)

    return change


def compiled(source: str, target: str, names: tuple[str, ...] = ()) -> ObjectCode:
    """Compile for the device that is current, so that it can be linked."""
    options = ProgramOptions(name=f"{len(source)}.cu", relocatable_device_code=True if target != "ltoir" else None)
    with Program(source, "c++", options) as program:
        return program.compile(target, names)


@pytest.fixture(params=["ptx", "cubin"])
def parts(request, device) -> list[ObjectCode]:
    """Return two functions and a kernel, as relocatable code."""
    return [compiled(TWICE, request.param), compiled(FOUR, request.param), compiled(KERNEL, request.param, (NAME,))]


@pytest.fixture
def lto_parts(device) -> list[ObjectCode]:
    """Return the same as LTO IR."""
    return [compiled(TWICE, "ltoir"), compiled(FOUR, "ltoir"), compiled(KERNEL, "ltoir", (NAME,))]


def check_kernel(code: ObjectCode, stream: Any) -> None:
    """Run the kernel and compare what it computes."""
    with LegacyPinnedMemoryResource().allocate(4 * COUNT) as buffer:
        values = np.from_dlpack(buffer).view(np.int32)
        values[:] = np.arange(COUNT)
        launch(stream, LaunchConfig(grid=1, block=COUNT), code.get_kernel(NAME), buffer)
        stream.sync()
        assert (values == 4 * np.arange(COUNT)).all()
        del values


# Relocatable cubins


def test_an_incremental_link_makes_a_relocatable_cubin(parts):
    code = Linker(*parts[:2], options=STEP).link("cubin")
    assert code.code_type == "cubin"
    assert code.code.startswith(b"\x7fELF")
    assert code.code[16] == RELOCATABLE
    assert b"four" in code.code


def test_symbols_may_stay_undefined(parts):
    code = Linker(parts[2], options=STEP).link("cubin")
    assert code.code[16] == RELOCATABLE
    with pytest.raises(LinkerError, match="four"):
        Linker(parts[2]).link("cubin")


def test_what_was_linked_is_linked_further(parts):
    step = Linker(*parts[1:], options=STEP).link("cubin")
    code = Linker(step, parts[0]).link("cubin")
    assert code.code[16] != RELOCATABLE
    assert code.symbol_mapping == parts[2].symbol_mapping
    assert code.symbol_mapping[NAME].encode() in code.code


@pytest.mark.gpu_only("the simulated driver reads PTX, which is not made by linking PTX or cubins")
def test_a_kernel_that_was_linked_in_steps_computes_what_it_should(parts, stream):
    functions = Linker(*parts[:2], options=STEP).link("cubin")
    check_kernel(Linker(functions, parts[2]).link("cubin"), stream)


def test_false_is_no_incremental_link(parts):
    assert Linker(*parts, options={"incremental": False}).link("cubin").code[16] != RELOCATABLE


# LTO IR


@pytest.mark.parametrize("options", [LTO, LTO | STEP], ids=["whole", "incremental"])
def test_lto_ir_is_linked_to_lto_ir(lto_parts, options):
    linker = Linker(*lto_parts, options=options)
    code = linker.link("ltoir")
    assert code.code_type == "ltoir"
    assert len(code.code) > 100
    assert linker.link("LTOIR").code == code.code
    assert linker.link("cubin").code_type == "cubin"


def test_lto_ir_that_was_linked_is_optimised_with_the_rest(lto_parts, stream):
    step = Linker(*lto_parts[1:], options=LTO | STEP).link("ltoir")
    with Linker(step, lto_parts[0], options=LTO) as linker:
        assert b"call" not in linker.link("ptx").code
        check_kernel(linker.link("cubin"), stream)


def test_lto_ir_is_linked_for_a_virtual_architecture(lto_parts, device):
    options = LTO | {"arch": f"compute_{device.arch}"}
    assert Linker(*lto_parts, options=options).link("ltoir").code_type == "ltoir"
    assert Linker(*lto_parts, options=LTO | {"ptx": True}).link("ltoir").code_type == "ltoir"


# What is refused


def test_lto_ir_needs_link_time_optimisation(parts):
    with pytest.raises(ValueError, match="LTO IR is made by link-time optimisation only: set link_time_optimization"):
        Linker(*parts).link("ltoir")


def test_inputs_without_lto_ir_are_refused_by_name(parts, lto_parts):
    linker = Linker(*lto_parts[:2], parts[2], options=LTO)
    kind = "PTX" if parts[2].code_type == "ptx" else "a cubin"
    with pytest.raises(ValueError, match=f"'{len(KERNEL)}.cu' is {kind}, which would be missing in LTO IR: compile it"):
        linker.link("ltoir")
    assert linker.link("cubin").code_type == "cubin"


def test_an_incremental_link_makes_no_ptx(lto_parts, device):
    with pytest.raises(ValueError, match="the options say incremental, so the target cannot be 'ptx'"):
        Linker(*lto_parts, options=LTO | STEP).link("ptx")
    with pytest.raises(ValueError, match="incremental makes no PTX: leave ptx out"):
        Linker(*lto_parts, options=LTO | STEP | {"ptx": True})
    with pytest.raises(ValueError, match="incremental makes no PTX: give an arch such as 'sm_90', not 'compute_90'"):
        Linker(*lto_parts, options=LTO | STEP | {"arch": "compute_90"})


@pytest.mark.parametrize("number", [(12, 9), (13, 1)])
def test_an_older_library_links_nothing_incrementally(version, number):
    version(number)
    code = ObjectCode.from_ltoir(b"LTO IR" * 100)
    found = ".".join(map(str, number))
    with pytest.raises(UnavailableError, match=rf"incremental needs nvJitLink 13\.2 or newer, and this one is {found}"):
        Linker(code, options=LinkerOptions(arch="sm_90", incremental=True))


def test_an_older_library_makes_no_lto_ir(device, version):
    parts = [compiled(TWICE, "ltoir")]
    linker = Linker(*parts, options=LTO)
    version((13, 2))
    with pytest.raises(
        UnavailableError, match=r"the target 'ltoir' needs nvJitLink 13\.3 or newer, .* this one is 13\.2"
    ):
        linker.link("ltoir")
