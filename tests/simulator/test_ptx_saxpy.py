# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""The job that everybody tries first."""

from __future__ import annotations

import numpy as np
from ptx_runner import Runner

SAXPY = r"""
extern "C" __global__ void saxpy(int n, float a, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __fadd_rn(__fmul_rn(a, x[i]), y[i]);
}
"""


def test_saxpy_of_a_million_elements(ptx: Runner, rng: np.random.Generator) -> None:
    n = 1_000_000
    x, y = rng.random(n, np.float32), rng.random(n, np.float32)
    out = ptx.array(y)
    ptx.run(SAXPY, "saxpy", (n + 255) // 256, 256, np.int32(n), np.float32(2.5), ptx.array(x), out)
    np.testing.assert_array_equal(out.get(), np.float32(2.5) * x + y)
