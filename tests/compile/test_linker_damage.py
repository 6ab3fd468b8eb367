# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Damaged inputs of a linker: nvJitLink takes some of them for empty ones, so they are looked at before."""

from __future__ import annotations

import cuda_core_cffi._cuda
import pytest
from mutations import fatbin_part, make_fatbin

from cuda_core_cffi import Linker, LinkerError, ObjectCode, Program, UnavailableError
from cuda_core_cffi._core.libraries import NVJITLINK_LIBRARY, NVRTC_LIBRARY

ADD = 'extern "C" __device__ int add(int a, int b) { return a + b; }'
KERNEL = """
extern "C" __device__ int add(int a, int b);
extern "C" __global__ void add_to_all(int *values, int b) { values[threadIdx.x] = add(values[threadIdx.x], b); }
"""
SM_90 = {"arch": "sm_90"}


@pytest.fixture(autouse=True, scope="module")
def compilers():
    """Skip where NVRTC or nvJitLink is not installed."""
    try:
        NVRTC_LIBRARY.version()
        NVJITLINK_LIBRARY.version()
    except UnavailableError as error:
        pytest.skip(str(error))


def part(source, target):
    """Return code to be linked."""
    options = {**SM_90, "name": "part.cu"} | ({} if target == "ltoir" else {"relocatable_device_code": True})
    return Program(source, "c++", options).compile(target).code


def archive(member):
    """Return a library with one member."""
    return b"!<arch>\n" + b"part.o/".ljust(48) + str(len(member)).ljust(10).encode() + b"`\n" + member


def given(kind):
    """Return code of one kind."""
    if kind == "fatbin":
        return make_fatbin(fatbin_part(2, 90, part(ADD, "cubin")), fatbin_part(1, 90, part(ADD, "ptx")))
    if kind == "object":
        with open(cuda_core_cffi._cuda.__file__, "rb") as file:
            return file.read()
    return archive(part(ADD, "cubin")) if kind == "library" else part(ADD, kind)


@pytest.mark.parametrize("kind", ["cubin", "fatbin", "object", "library"])
def test_code_that_is_cut_short_is_no_input(kind):
    data = given(kind)
    make = getattr(ObjectCode, f"from_{kind}")
    for size in (len(data) // 3, len(data) - 1):
        with pytest.raises(ValueError, match="object code 'part' is a damaged "):
            Linker(make(data[:size], name="part"), options=SM_90)


@pytest.mark.parametrize("kind", ["cubin", "fatbin", "object", "library", "ptx"])
def test_code_that_is_nothing_is_no_input(kind):
    with pytest.raises(ValueError, match=r"object code 'part' is not .*: it begins with b'noise"):
        Linker(getattr(ObjectCode, f"from_{kind}")(b"noise", name="part"), options=SM_90)


def test_code_of_another_type_is_no_input():
    with pytest.raises(ValueError, match=r"is a cubin, not LTO IR: use from_cubin"):
        Linker(ObjectCode.from_ltoir(part(ADD, "cubin")), options=SM_90)


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
def test_lto_ir_that_is_cut_short_fails_with_the_log(share):
    data = part(ADD, "ltoir")
    cut = ObjectCode.from_ltoir(data[: int(len(data) * share)], name="cut.ltoir")
    whole = ObjectCode.from_ltoir(part(KERNEL, "ltoir"))
    with pytest.raises(LinkerError, match=r"cut\.ltoir|NVVM|bad input"):
        Linker(whole, cut, options={**SM_90, "link_time_optimization": True}).link("cubin")


def test_whole_code_is_linked():
    inputs = [ObjectCode.from_cubin(part(KERNEL, "cubin")), ObjectCode.from_fatbin(given("fatbin"))]
    code = Linker(*inputs, options=SM_90).link("cubin")
    assert b"add_to_all" in code.code
