# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Compilation in several threads at once: each gets its own code and log."""

from __future__ import annotations

import io
import threading

import pytest

from cuda_core_cffi import NVRTCError, Program, UnavailableError
from cuda_core_cffi._core.ffi import ffi
from cuda_core_cffi._core.libraries import NVRTC_LIBRARY
from cuda_core_cffi.typing import PCHStatusType

THREADS = 8
STRUCTURES = [f"struct S{index} {{ __device__ int m(int, float); }};\n" for index in range(2000)]
SMALL = 1 << 16  # bytes
TARGETS = {"ptx": b".entry k", "cubin": b"\x7fELF", "ltoir": b""}


@pytest.fixture(scope="module", autouse=True)
def nvrtc():
    """Skip without a compiler."""
    try:
        return NVRTC_LIBRARY.load()
    except UnavailableError as error:
        pytest.skip(str(error))


def in_threads(work):
    """Call a function with the number of each thread, all of them at once, and return what they return."""
    results: dict[int, object] = {}
    start = threading.Barrier(THREADS)

    def run(number):
        start.wait()
        results[number] = work(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [results.get(number) for number in range(THREADS)]


def test_threads_compile_different_programs_at_once():
    def work(number):
        target = list(TARGETS)[number % len(TARGETS)]
        source = f'extern "C" __global__ void k{number}(int *x) {{ *x = {number}; }}'
        return target, Program(source, "c++", {"arch": "sm_90", "name": f"{number}.cu"}).compile(target)

    for number, (target, code) in enumerate(in_threads(work)):
        assert (code.name, code.code_type) == (f"{number}.cu", target)
        assert TARGETS[target] in code.code
        if target != "ltoir":  # which is not readable
            assert f"k{number}".encode() in code.code


def test_every_thread_gets_its_own_log():
    def work(number):
        logs = io.StringIO()
        body = f"int unused{number};" if number % 2 else f"missing{number} = 1;"
        try:
            Program(f"__global__ void k() {{ {body} }}", "c++", {"arch": "sm_90"}).compile("ptx", logs=logs)
        except NVRTCError as error:
            return str(error)
        return logs.getvalue()

    for number, said in enumerate(in_threads(work)):
        wanted = f"unused{number}" if number % 2 else f"missing{number}"
        assert f'"{wanted}"' in said
        assert not [other for other in range(THREADS) if other != number and f'd{other}"' in said]


def test_threads_share_the_heap_of_precompiled_headers(nvrtc, tmp_path):
    if not nvrtc.nvrtcGetPCHCreateStatus:
        pytest.skip("this NVRTC has no precompiled headers")
    (tmp_path / "long.h").write_text("".join(STRUCTURES))
    size = ffi.new("size_t *")
    assert nvrtc.nvrtcGetPCHHeapSize(size) == 0
    assert nvrtc.nvrtcSetPCHHeapSize(SMALL) == 0  # too small: it has to grow, under whoever uses it

    def work(number):
        source = '#include "long.h"\n#pragma nv_hdr_stop\nextern "C" __global__ void k() {}'
        options = {"arch": "sm_90", "create_pch": f"{number}.pch", "pch_dir": tmp_path, "include_path": tmp_path}
        program = Program(source, "c++", options)
        program.compile("ptx")
        return program.pch_status

    try:
        assert in_threads(work) == [PCHStatusType.CREATED] * THREADS
        grown = ffi.new("size_t *")
        assert nvrtc.nvrtcGetPCHHeapSize(grown) == 0
        assert grown[0] > SMALL
    finally:
        nvrtc.nvrtcSetPCHHeapSize(size[0])
    assert len(list(tmp_path.glob("*.pch"))) == THREADS
