# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Cubins that carry their PTX, as compilers make them while the simulated driver is in use."""

from __future__ import annotations

import os
import pickle
import re
import sys

import numpy as np
import pytest
from helpers import output_of

from cuda_core_cffi import (
    CUDAError,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Linker,
    ObjectCode,
    Program,
    UnavailableError,
    launch,
)
from cuda_core_cffi._code.carried_ptx import carried_ptx, with_ptx, without_ptx
from cuda_core_cffi._compile.link_backend import LinkInput
from cuda_core_cffi._core.libraries import NVJITLINK_LIBRARY, NVRTC_LIBRARY
from cuda_core_cffi.typing import ObjectCodeFormatType
from cuda_core_cffi.utils import FileStreamProgramCache, InMemoryProgramCache, make_program_cache_key

SOURCE = 'extern "C" __global__ void seven(int *x) { *x = 7; }'
FUNCTION = 'extern "C" __device__ int number() { return 7; }'
CALLER = 'extern "C" __device__ int number(); extern "C" __global__ void seven(int *x) { *x = number(); }'
SM_90 = {"arch": "sm_90", "name": "seven.cu"}


@pytest.fixture(autouse=True, scope="module")
def nvrtc():
    """Skip without a compiler."""
    try:
        NVRTC_LIBRARY.load()
    except UnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def nvjitlink():
    """Skip without nvJitLink."""
    try:
        NVJITLINK_LIBRARY.load()
    except UnavailableError as error:
        pytest.skip(str(error))


def both(source: str, **options: object) -> tuple[bytes, bytes]:
    """Return a program as a cubin alone, and as PTX, for the current device."""
    program = Program(source, "c++", options)
    return without_ptx(program.compile("cubin").code), program.compile("ptx").code


def without_a_driver(expression: str) -> bytes:
    """Evaluate an expression of this module in a process without a driver."""
    code = f"from test_carried_ptx import *\nprint(({expression}).hex())"
    path = os.pathsep.join([os.path.dirname(__file__), *filter(None, sys.path)])
    return bytes.fromhex(output_of(code, PYTHONPATH=path, CUDA_CORE_CFFI_DRIVER="/nonexistent"))


def result_of(code: ObjectCode, stream) -> int:
    """Run the kernel and return its result."""
    with LegacyPinnedMemoryResource().allocate(4) as buffer:
        launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("seven"), buffer)
        stream.sync()
        return int(np.asarray(buffer).view(np.int32)[0])


def test_a_cubin_is_the_compilers_and_carries_ptx_only_on_the_simulated_driver(is_simulated):
    code = Program(SOURCE, "c++", SM_90).compile("cubin").code
    alone = without_a_driver('Program(SOURCE, "c++", SM_90).compile("cubin").code')
    assert without_ptx(code) == alone
    assert (code != alone) is is_simulated
    assert (b".entry seven" in carried_ptx(code)) is is_simulated


@pytest.mark.parametrize("options", [{}, {"relocatable_device_code": True}])
def test_a_cubin_loses_its_ptx_without_a_trace(device, options):
    cubin, ptx = both(SOURCE, **options)
    code = with_ptx(cubin, [ptx])
    assert code != cubin
    assert carried_ptx(code) == ptx
    assert without_ptx(code) == cubin
    assert (without_ptx(cubin), carried_ptx(cubin)) == (cubin, b"")
    assert with_ptx(b"", [ptx]) == b""
    assert with_ptx(cubin, []) == cubin


def test_every_driver_loads_a_cubin_with_ptx(device, stream, tmp_path):
    cubin, ptx = both(SOURCE)
    code = with_ptx(cubin, [ptx])
    (tmp_path / "seven.cubin").write_bytes(code)
    assert result_of(ObjectCode.from_cubin(code), stream) == 7
    assert result_of(ObjectCode.from_cubin(tmp_path / "seven.cubin"), stream) == 7
    assert ObjectCode.from_cubin(code).get_module()


def test_nvjitlink_gets_the_cubin_alone(device, stream, nvjitlink):
    parts = [both(source, relocatable_device_code=True) for source in (FUNCTION, CALLER)]
    for cubin, ptx in parts:
        assert LinkInput(ObjectCodeFormatType.CUBIN, with_ptx(cubin, [ptx]), "part").padded() == cubin
    alone = Linker(*(ObjectCode.from_cubin(cubin, name="part") for cubin, _ in parts)).link("cubin").code
    carrying = (ObjectCode.from_cubin(with_ptx(cubin, [ptx]), name="part") for cubin, ptx in parts)
    linked = Linker(*carrying).link("cubin")
    assert without_ptx(linked.code) == without_ptx(alone)
    assert result_of(linked, stream) == 7


@pytest.mark.parametrize("form", ["program", "pickle", "memory", "file", "linked", "assembled"])
def test_a_cubin_runs_on_every_driver(device, stream, form, tmp_path, request):
    program = Program(SOURCE, "c++")
    code = program.compile("cubin")
    if form == "pickle":
        code = pickle.loads(pickle.dumps(code))
    elif form in ("memory", "file"):
        cache = InMemoryProgramCache() if form == "memory" else FileStreamProgramCache(tmp_path / "cache")
        program.compile("cubin", cache=cache)
        code = program.compile("cubin", cache=cache)
        assert len(cache) == 1
    elif form in ("linked", "assembled"):
        request.getfixturevalue("nvjitlink")
        parts = [Program(source, "c++").compile("ltoir") for source in (FUNCTION, CALLER)]
        code = Linker(*parts, options={"link_time_optimization": True}).link("cubin")
        if form == "assembled":
            code = Program(program.compile("ptx").code, "ptx").compile("cubin")
    assert code.code_type == "cubin"
    assert result_of(code, stream) == 7


def test_the_key_of_a_cache_says_whether_ptx_is_carried(is_simulated):
    arguments = "code=SOURCE, code_type='c++', options=SM_90, target_type='cubin'"
    for target in ("cubin", "ptx"):
        key = make_program_cache_key(code=SOURCE, code_type="c++", options=SM_90, target_type=target)
        alone = without_a_driver(f"make_program_cache_key({arguments.replace('cubin', target)})")
        assert (key != alone) is (is_simulated and target == "cubin")


def test_a_cubin_that_is_cut_short_within_its_ptx_is_refused(device):
    cubin, ptx = both(SOURCE)
    code = with_ptx(cubin, [ptx])
    for size in (len(cubin), len(cubin) + 5, len(code) - 1):
        with pytest.raises(ValueError, match="is a damaged cubin: it is cut short: the PTX behind it is not whole"):
            ObjectCode.from_cubin(code[:size]).get_kernel("seven")


@pytest.mark.simulator_only("a GPU runs machine code")
def test_a_cubin_without_ptx_is_refused_and_the_message_says_why(device):
    cubin, _ = both(SOURCE)
    text = rf"a cubin of sm_{device.arch} on the simulated driver: it runs PTX only"
    with pytest.raises(CUDAError, match=text) as caught:
        ObjectCode.from_cubin(cubin).get_kernel("seven")
    assert caught.value.name == "CUDA_ERROR_NO_BINARY_FOR_GPU"
    assert not re.search("another architecture", str(caught.value))
