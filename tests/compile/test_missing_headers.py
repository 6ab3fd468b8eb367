# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Headers that NVRTC does not find: the exception names the remedy."""

from __future__ import annotations

import pytest

from cuda_core_cffi import NVRTCError, Program
from cuda_core_cffi._compile import missing_headers
from cuda_core_cffi._compile.missing_headers import explain_missing_header
from cuda_core_cffi._core.libraries import NVRTC_LIBRARY

BUNDLED = "pass ProgramOptions(use_bundled_headers=True)"
FOLDERS = "pass the folders of the CUDA Toolkit's headers as include_path"
SINCE = (13, 3)


def message(header: str, **options: object) -> str:
    """Return the message for a source that includes a header."""
    source = f'#include <{header}>\nextern "C" __global__ void k() {{}}'
    with pytest.raises(NVRTCError) as caught:
        Program(source, "c++", {"arch": "sm_90", **options}).compile("ptx")
    return str(caught.value).splitlines()[0]


def log_of(header: str) -> str:
    return f'default_program(1): catastrophic error: cannot open source file "{header}"\n'


@pytest.mark.parametrize(
    "header", ["cuda_fp16.h", "cooperative_groups.h", "cuda/std/cstdint", "mma.h", "cooperative_groups/reduce.h"]
)
@pytest.mark.usefixtures("nvrtc")
def test_a_header_that_nvrtc_carries_is_found_with_the_option(header: str) -> None:
    remedy = BUNDLED if NVRTC_LIBRARY.version() >= SINCE else FOLDERS
    assert message(header).endswith(f"; for {header!r}, {remedy}") or f"; for {header!r}, {remedy} (" in message(header)
    if NVRTC_LIBRARY.version() >= SINCE:
        source = f'#include <{header}>\nextern "C" __global__ void k() {{}}'
        Program(source, "c++", {"arch": "sm_90", "use_bundled_headers": True}).compile("ptx")


@pytest.mark.parametrize(
    ("header", "hint"),
    [
        ("stdio.h", "printf needs no header in kernels: remove the #include of 'stdio.h'"),
        ("cstdio", "printf needs no header in kernels: remove the #include of 'cstdio'"),
        ("math.h", "mathematical functions need no header in kernels: remove the #include of 'math.h'"),
        ("stdint.h", "'stdint.h' is for host code: kernels include <cuda/std/cstdint>"),
        ("type_traits", "'type_traits' is for host code: kernels include <cuda/std/type_traits>"),
        ("vector", "'vector' is for host code: kernels cannot use it"),
        ("cuda_runtime.h", "'cuda_runtime.h' is for host code: kernels need no header"),
        ("curand_kernel.h", f"for 'curand_kernel.h', {FOLDERS} (pip install nvidia-"),
        ("mine.h", "for 'mine.h', pass its folder as include_path, or its text in extra_headers"),
    ],
)
@pytest.mark.usefixtures("nvrtc")
def test_other_headers_come_with_their_remedy(header: str, hint: str) -> None:
    assert f"; {hint}" in message(header)


def test_a_header_that_the_bundle_lacks_is_not_said_to_be_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing_headers.NVRTC_LIBRARY, "version", lambda: SINCE)
    assert "use_bundled_headers" not in explain_missing_header(log_of("cuda/newer"), True)
    assert "use_bundled_headers" not in explain_missing_header(log_of("type_traits"), True)
    assert BUNDLED in explain_missing_header(log_of("type_traits"), False)


def test_an_nvrtc_without_headers_needs_packages_of_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing_headers.NVRTC_LIBRARY, "version", lambda: (12, 8))
    assert f"{FOLDERS} (pip install nvidia-cuda-runtime-cu12 " in explain_missing_header(log_of("cuda_fp16.h"), False)
    monkeypatch.setattr(missing_headers.NVRTC_LIBRARY, "version", lambda: (13, 2))
    assert f"{FOLDERS} (pip install nvidia-cuda-runtime " in explain_missing_header(log_of("cuda_fp16.h"), False)


def test_another_error_gets_no_such_advice() -> None:
    assert explain_missing_header('default_program(1): error: identifier "x" is undefined\n', False) == ""
