# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest

from cuda_core_cffi import Program

SET = """
extern "C" __device__ __cudart_builtin__ void CUDARTAPI cudaGraphSetConditional(
    cudaGraphConditionalHandle condition, unsigned int value);
extern "C" __global__ void set(cudaGraphConditionalHandle condition, unsigned int value) {
    cudaGraphSetConditional(condition, value);
}
extern "C" __global__ void count_down(cudaGraphConditionalHandle condition, unsigned int *left) {
    *left -= 1;
    cudaGraphSetConditional(condition, *left);
}
"""


@pytest.fixture(scope="module")
def setters(request):
    """Return kernels that set conditions."""
    code = Program(SET, "c++").compile()
    return code.get_kernel("set"), code.get_kernel("count_down")
