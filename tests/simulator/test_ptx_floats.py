# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
"""Floating-point arithmetic of kernels: IEEE operations bit by bit, functions within their stated error."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from ptx_runner import Runner

N = 2048
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    math.inf,
    -math.inf,
    math.nan,
    2.0**-126,
    -(2.0**-149),
    2.0**-130,
    65504.0,
    3.4028234e38,
    0.5,
    1.5,
    2.5,
]


def floats(rng: np.random.Generator, dtype: type, n: int = N) -> np.ndarray:
    exponents = rng.integers(-30, 30, n) if dtype is np.float32 else rng.integers(-200, 200, n)
    numbers = (rng.standard_normal(n) * np.exp2(exponents)).astype(dtype)
    numbers[: n // 8] = rng.choice(np.array(SPECIAL, dtype), n // 8)
    return rng.permutation(numbers)


def assert_same(got: np.ndarray, want: np.ndarray, message: str = "") -> None:
    """Bits are equal; every NaN is equal to every NaN."""
    both = np.isnan(got) & np.isnan(want)
    unsigned = f"u{got.dtype.itemsize}"
    np.testing.assert_array_equal(
        np.where(both, 0, got.view(unsigned)), np.where(both, 0, want.view(unsigned)), err_msg=message
    )


def kernel(expressions: list[str], kind: str, head: str = "") -> str:
    body = "\n".join(f"    o[{k} * n + i] = {e};" for k, e in enumerate(expressions))
    return (
        f"{head}\ntypedef {kind} T;\n"
        'extern "C" __global__ void k(const T *x, const T *y, const T *z, T *o, int n) {\n'
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i >= n) return;\n    T a = x[i], b = y[i], c = z[i];\n"
        + body
        + "\n}\n"
    )


def run(ptx: Runner, source: str, count: int, *inputs: np.ndarray, out: type | None = None) -> np.ndarray:
    n = len(inputs[0])
    result = ptx.zeros((count, n), out or inputs[0].dtype)
    ptx.run(source, "k", (n + 127) // 128, 128, *[ptx.array(a) for a in inputs], result, np.int32(n))
    return result.get()


@pytest.mark.parametrize(("kind", "dtype"), [("float", np.float32), ("double", np.float64)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_basic_operations(ptx: Runner, rng: np.random.Generator, kind: str, dtype: type) -> None:
    f = "f" if dtype is np.float32 else "d"
    cases = {
        f"__{f}add_rn(a, b)": lambda a, b, c: a + b,
        f"__{f}sub_rn(a, b)" if f == "f" else "__dsub_rn(a, b)": lambda a, b, c: a - b,
        f"__{f}mul_rn(a, b)": lambda a, b, c: a * b,
        f"__{f}div_rn(a, b)": lambda a, b, c: a / b,
        f"__{f}sqrt_rn(a)": lambda a, b, c: np.sqrt(a),
        f"__{f}rcp_rn(a)": lambda a, b, c: dtype(1) / a,
        "-a": lambda a, b, c: -a,
        "a < b ? a : c": lambda a, b, c: np.where(a < b, a, c),
        "a >= b ? a : c": lambda a, b, c: np.where(a >= b, a, c),
        "a != b ? a : c": lambda a, b, c: np.where(a != b, a, c),
        "!(a > b) ? a : c": lambda a, b, c: np.where(~(a > b), a, c),
        "fmin(a, b)": lambda a, b, c: zero_aware(np.fmin, a, b, -1),
        "fmax(a, b)": lambda a, b, c: zero_aware(np.fmax, a, b, 1),
        "fabs(a)": lambda a, b, c: np.abs(a),
        "copysign(a, b)": lambda a, b, c: np.copysign(a, b),
        "trunc(a)": lambda a, b, c: np.trunc(a),
        "floor(a)": lambda a, b, c: np.floor(a),
        "ceil(a)": lambda a, b, c: np.ceil(a),
        "rint(a)": lambda a, b, c: np.rint(a),
    }  # fmt: skip
    a, b, c = (floats(rng, dtype) for _ in range(3))
    b[::7] = a[::7]
    got = run(ptx, kernel(list(cases), kind), len(cases), a, b, c)
    for (expression, function), result in zip(cases.items(), got, strict=True):
        assert_same(result, np.asarray(function(a, b, c), dtype), expression)


def zero_aware(function: np.ufunc, a: np.ndarray, b: np.ndarray, sign: int) -> np.ndarray:
    zeros = (a == 0) & (b == 0)
    picked = np.where(np.signbit(a) == (sign < 0), a, b)
    return np.where(zeros, picked, function(a, b))


def rounded(value: Fraction, mode: str, bits: int, emin: int) -> float:
    """The nearest float of `bits` of precision in a direction; for finite results only."""
    if value == 0:
        return 0.0
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2) ** exponent:
        exponent -= 1
    quantum = Fraction(2) ** (max(exponent, emin) - bits + 1)
    whole, rest = divmod(value / quantum, 1)
    if mode == "rn":
        whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1)
    elif mode == "ru" or (mode == "rz" and value < 0):
        whole += rest > 0
    return float(whole * quantum)


@pytest.mark.parametrize(
    ("kind", "dtype", "bits", "emin"), [("float", np.float32, 24, -126), ("double", np.float64, 53, -1022)]
)
def test_rounding_modes(newest: Runner, rng: np.random.Generator, kind: str, dtype: type, bits: int, emin: int) -> None:
    f = "f" if dtype is np.float32 else "d"
    exact = {
        "add": lambda a, b, c: a + b,
        "mul": lambda a, b, c: a * b,
        "div": lambda a, b, c: a / b,
        "fma": lambda a, b, c: a * b + c,
    }
    n = 200
    a, b, c = ((rng.standard_normal(n) * np.exp2(rng.integers(-20, 20, n))).astype(dtype) for _ in range(3))
    c[: n // 2] = -(a[: n // 2] * b[: n // 2])
    names = [(op, mode) for op in exact for mode in ("rn", "rz", "rd", "ru")]
    prefix = {"fma": "__fmaf" if f == "f" else "__fma"}
    source = kernel(
        [f"{prefix.get(op, f'__{f}{op}')}_{mode}(a, b{', c' if op == 'fma' else ''})" for op, mode in names], kind
    )
    for (op, mode), result in zip(names, run(newest, source, len(names), a, b, c), strict=True):
        for x, y, z, got in zip(a, b, c, result, strict=True):
            want = rounded(exact[op](Fraction(float(x)), Fraction(float(y)), Fraction(float(z))), mode, bits, emin)
            assert got == dtype(want), (op, mode, x, y, z)


def test_fused_multiply_add_rounds_once(ptx: Runner, rng: np.random.Generator) -> None:
    a, b = (rng.standard_normal(N).astype(np.float32) for _ in range(2))
    c = -(a * b)
    got = run(ptx, kernel(["fmaf(a, b, c)"], "float"), 1, a, b, c)[0]
    assert_same(got, (a.astype(np.float64) * b + c).astype(np.float32))


def test_flush_to_zero(newest: Runner) -> None:
    tiny = np.full(32, 2.0**-130, np.float32)
    one = np.ones(32, np.float32)
    source = kernel(["__fmul_rn(a, b)", "__fadd_rn(a, a)"], "float")
    kept = run(newest, source, 2, tiny, one, one)
    assert (kept[0] == tiny).all()
    assert (kept[1] == 2 * tiny).all()
    flushed = newest.zeros((2, 32), np.float32)
    newest.run(
        source,
        "k",
        1,
        32,
        newest.array(tiny),
        newest.array(one),
        newest.array(one),
        flushed,
        np.int32(32),
        options=("--ftz=true",),
    )
    assert not flushed.get().any()


FUNCTIONS = {
    "sin": (np.sin, 4), "cos": (np.cos, 4), "exp": (np.exp, 4), "exp2": (np.exp2, 4), "log": (np.log, 4),
    "log2": (np.log2, 4),
    "log10": (np.log10, 4), "tanh": (np.tanh, 4), "atan": (np.arctan, 4), "cbrt": (np.cbrt, 4),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 4),
    "erf": (np.vectorize(math.erf, otypes=[float]), 6), "expm1": (np.expm1, 4), "log1p": (np.log1p, 4),
    "sinh": (np.sinh, 6),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "dtype"), [("float", np.float32), ("double", np.float64)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_mathematical_functions(ptx: Runner, rng: np.random.Generator, kind: str, dtype: type) -> None:
    a = (rng.standard_normal(N) * 5).astype(dtype)
    a[:16] *= dtype(1e4)
    got = run(ptx, kernel([f"{name}(a)" for name in FUNCTIONS], kind), len(FUNCTIONS), a, a, a)
    for (name, (function, ulps)), result in zip(FUNCTIONS.items(), got, strict=True):
        want = function(a.astype(np.float64))
        with np.errstate(over="ignore"):
            near = np.abs(result.astype(np.float64) - want) <= ulps * np.spacing(np.abs(want.astype(dtype))).astype(
                np.float64
            )
        same = near | (np.isnan(result) & np.isnan(want)) | (result == want.astype(dtype))
        if name in ("sin", "cos") and kind == "float":
            same |= np.abs(result - want) < 1e-6
        assert same.all(), (name, a[~same][:4], result[~same][:4], want[~same][:4])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_fast_math_is_close(newest: Runner, rng: np.random.Generator) -> None:
    a = rng.uniform(0.1, 3, N).astype(np.float32)
    names = ["__sinf", "__cosf", "__expf", "__logf", "__log2f", "__exp10f", "__fsqrt_rn", "__tanhf"]
    functions = [np.sin, np.cos, np.exp, np.log, np.log2, lambda x: 10**x, np.sqrt, np.tanh]
    got = run(
        newest, kernel([f"{n}(a)" for n in names[:-1]] + ["__fdividef(a, 3.0f)", "__saturatef(a)"], "float"), 9, a, a, a
    )
    for result, function in zip(got, functions[:-1], strict=False):
        np.testing.assert_allclose(result, function(a.astype(np.float64)), rtol=2e-5, atol=2e-6)
    np.testing.assert_allclose(got[7], a / 3, rtol=1e-6)
    np.testing.assert_array_equal(got[8], np.clip(a, 0, 1))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_float_to_integer_saturates(ptx: Runner, rng: np.random.Generator) -> None:
    values = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 1e10, -1e10, 1e20, -1e20, 3e9, 2147483647.5, -3.0], np.float64)
    values = np.concatenate([values, rng.standard_normal(100) * 1e9])
    source = r"""
    extern "C" __global__ void k(const double *x, long long *o, int n) {
        int i = threadIdx.x; double a = x[i];
        o[i] = __double2int_rn(a); o[n + i] = __double2int_rz(a); o[2 * n + i] = __double2int_rd(a);
        o[3 * n + i] = __double2int_ru(a);
        o[4 * n + i] = __double2ll_rn(a); o[5 * n + i] = __double2uint_rz(a); o[6 * n + i] = __float2int_rn((float)a);
    }
    """
    n = len(values)
    out = ptx.zeros((7, n), np.int64)
    ptx.run(source, "k", 1, n, ptx.array(values), out, np.int32(n))
    got = out.get()
    for row, function in enumerate([np.rint, np.trunc, np.floor, np.ceil]):
        np.testing.assert_array_equal(got[row], np.clip(function(values), -(2**31), 2**31 - 1).astype(np.int64))
    wide = [max(-(2**63), min(2**63 - 1, round(v))) for v in values]
    np.testing.assert_array_equal(got[4], np.array(wide, np.int64))
    np.testing.assert_array_equal(got[5], np.clip(np.trunc(values), 0, 2**32 - 1).astype(np.int64))
    np.testing.assert_array_equal(
        got[6], np.clip(np.rint(values.astype(np.float32).astype(np.float64)), -(2**31), 2**31 - 1).astype(np.int64)
    )


def test_integer_to_float_rounds_correctly(ptx: Runner, rng: np.random.Generator) -> None:
    values = rng.integers(-(2**63), 2**63 - 1, 256, np.int64)
    values[:64] >>= 30
    source = r"""
    extern "C" __global__ void k(const long long *x, float *f, double *d, int n) {
        int i = threadIdx.x; long long a = x[i];
        f[i] = __ll2float_rn(a); f[n + i] = __ll2float_rz(a); f[2 * n + i] = __ll2float_rd(a);
        f[3 * n + i] = __ll2float_ru(a);
        f[4 * n + i] = (unsigned long long)a; d[i] = __ll2double_rn(a); d[n + i] = __ll2double_ru(a);
        d[2 * n + i] = __ull2double_rz(a);
    }
    """
    n = len(values)
    f, d = ptx.zeros((5, n), np.float32), ptx.zeros((3, n), np.float64)
    ptx.run(source, "k", 1, n, ptx.array(values), f, d, np.int32(n))
    singles, doubles = f.get(), d.get()
    for i, v in enumerate(map(int, values)):
        for row, mode in enumerate(["rn", "rz", "rd", "ru"]):
            assert singles[row, i] == rounded(Fraction(v), mode, 24, -126), (v, mode)
        assert singles[4, i] == rounded(Fraction(v % 2**64), "rn", 24, -126)
        assert doubles[0, i] == rounded(Fraction(v), "rn", 53, -1022)
        assert doubles[1, i] == rounded(Fraction(v), "ru", 53, -1022)
        assert doubles[2, i] == rounded(Fraction(v % 2**64), "rz", 53, -1022)


HALF = r"""
#include <cuda_fp16.h>
#include <cuda_bf16.h>
"""


def all_halves() -> np.ndarray:
    return np.arange(65536, dtype=np.uint16)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_half_conversions_are_exact(ptx: Runner, rng: np.random.Generator) -> None:
    source = (
        HALF
        + r"""
    extern "C" __global__ void widen(const __half *x, float *o, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) o[i] = __half2float(x[i]); }
    extern "C" __global__ void narrow(const float *x, __half *o, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) { o[i] = __float2half_rn(x[i]); o[n + i] = __float2half_rz(x[i]);
        o[2 * n + i] = __float2half_rd(x[i]); o[3 * n + i] = __float2half_ru(x[i]); }
    }
    extern "C" __global__ void brain(const float *x, __nv_bfloat16 *o, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) o[i] = __float2bfloat16_rn(x[i]); }
    """
    )
    halves = all_halves()
    out = ptx.zeros(65536, np.float32)
    ptx.run(source, "widen", 256, 256, ptx.array(halves), out, np.int32(65536))
    assert_same(out.get(), halves.view(np.float16).astype(np.float32))
    singles = (rng.standard_normal(N) * np.exp2(rng.integers(-30, 18, N))).astype(np.float32)
    singles[:15] = np.array(SPECIAL, np.float32)
    narrow = ptx.zeros((4, N), np.uint16)
    ptx.run(source, "narrow", N // 256, 256, ptx.array(singles), narrow, np.int32(N))
    got = narrow.get().view(np.float16)
    assert_same(got[0], singles.astype(np.float16))
    finite = np.isfinite(singles) & (np.abs(singles) < 65504)
    for row, mode in ((1, "rz"), (2, "rd"), (3, "ru")):
        for value, result in zip(singles[finite], got[row][finite], strict=True):
            assert result == rounded(Fraction(float(value)), mode, 11, -14), (value, mode)
    brain = ptx.zeros(N, np.uint16)
    ptx.run(source, "brain", N // 256, 256, ptx.array(singles), brain, np.int32(N))
    bits = singles.view(np.uint32).astype(np.uint64)
    want = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    number = ~np.isnan(singles)
    np.testing.assert_array_equal(brain.get()[number], want[number])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_half_arithmetic(ptx: Runner, rng: np.random.Generator) -> None:
    expressions = [
        "__hadd(a, b)",
        "__hsub(a, b)",
        "__hmul(a, b)",
        "__hfma(a, b, c)",
        "__hneg(a)",
        "__habs(a)",
        "__hmul_sat(a, b)",
    ]
    source = kernel(expressions, "__half", HALF)
    a, b, c = (rng.integers(0, 65536, 8192, np.uint16).view(np.float16) for _ in range(3))
    c[::2] = -(a[::2] * b[::2])
    got = run(ptx, source, len(expressions), a, b, c)
    wide = [v.astype(np.float64) for v in (a, b, c)]
    assert_same(got[0], (wide[0] + wide[1]).astype(np.float16))
    assert_same(got[1], (wide[0] - wide[1]).astype(np.float16))
    assert_same(got[2], (wide[0] * wide[1]).astype(np.float16))
    finite = np.isfinite(wide[0]) & np.isfinite(wide[1]) & np.isfinite(wide[2])
    for x, y, z, result in zip(a[finite], b[finite], c[finite], got[3][finite], strict=True):
        value = rounded(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)), "rn", 11, -14)
        assert result == (value if abs(value) < 65520 else math.copysign(math.inf, value)), (x, y, z)
    assert_same(got[4], -a)
    assert_same(got[5], np.abs(a))
    clipped = np.clip((wide[0] * wide[1]).astype(np.float16), 0, 1)
    np.testing.assert_array_equal(np.where(np.isnan(clipped), 0, clipped), got[6])


def test_pairs_of_halves_and_brain_floats(newest: Runner, rng: np.random.Generator) -> None:
    source = (
        HALF
        + r"""
    extern "C" __global__ void k(const __half2 *x, const __half2 *y, __half2 *o, const __nv_bfloat162 *u,
        const __nv_bfloat162 *v, __nv_bfloat162 *p, int n) {
        int i = threadIdx.x;
        o[i] = __hadd2(x[i], y[i]); o[n + i] = __hfma2(x[i], y[i], x[i]); o[2 * n + i] = __hmax2(x[i], y[i]);
        o[3 * n + i] = __hgt2(x[i], y[i]);
        p[i] = __hadd2(u[i], v[i]); p[n + i] = __hmul2(u[i], v[i]); p[2 * n + i] = __hmin2(u[i], v[i]);
        o[4 * n + i] = __h2div(x[i], y[i]); o[5 * n + i] = h2sqrt(__habs2(x[i]));
    }
    """
    )
    n = 128
    x, y = (rng.standard_normal(2 * n).astype(np.float16) for _ in range(2))
    u, v = (rng.standard_normal(2 * n).astype(np.float32).view(np.uint32) >> 16 for _ in range(2))
    o, p = newest.zeros((6, 2 * n), np.float16), newest.zeros((3, 2 * n), np.uint16)
    newest.run(
        source,
        "k",
        1,
        n,
        newest.array(x),
        newest.array(y),
        o,
        newest.array(u.astype(np.uint16)),
        newest.array(v.astype(np.uint16)),
        p,
        np.int32(n),
    )
    got = o.get()
    wide = x.astype(np.float64), y.astype(np.float64)
    assert_same(got[0], (wide[0] + wide[1]).astype(np.float16))
    assert_same(got[1], (wide[0] * wide[1] + wide[0]).astype(np.float16))
    assert_same(got[2], np.maximum(x, y))
    np.testing.assert_array_equal(got[3], x > y)
    np.testing.assert_allclose(got[4], x / y, rtol=2e-3)
    np.testing.assert_allclose(got[5], np.sqrt(np.abs(x)), rtol=2e-3)
    fu, fv = ((b << 16).view(np.float32).astype(np.float64) for b in (u, v))
    result = (p.get().astype(np.uint32) << 16).view(np.float32)
    for row, want in enumerate([fu + fv, fu * fv, np.minimum(fu, fv)]):
        for value, r in zip(want, result[row], strict=True):
            assert r == rounded(Fraction(float(value)), "rn", 8, -126)


def test_eight_bit_floats(newest: Runner, rng: np.random.Generator) -> None:
    if newest.architecture < 89:
        pytest.skip("the instruction needs compute capability 8.9")
    source = r"""
    #include <cuda_fp8.h>
    #include <cuda_fp16.h>
    extern "C" __global__ void k(const float *x, unsigned char *o, float *back, int n) {
        int i = threadIdx.x; __nv_fp8_e4m3 a(x[i]); __nv_fp8_e5m2 b(x[i]);
        o[i] = a.__x; o[n + i] = b.__x; back[i] = (float)a; back[n + i] = (float)b;
    }
    """
    n = 512
    x = (rng.standard_normal(n) * np.exp2(rng.integers(-12, 10, n))).astype(np.float32)
    codes, back = newest.zeros((2, n), np.uint8), newest.zeros((2, n), np.float32)
    newest.run(source, "k", 1, n, newest.array(x), codes, back, np.int32(n))
    for row, (bits, emin, limit) in enumerate([(4, -6, 448.0), (3, -14, 57344.0)]):
        for value, got in zip(x, back.get()[row], strict=True):
            want = rounded(Fraction(float(value)), "rn", bits, emin)
            assert got == math.copysign(min(abs(want), limit), value), (value, got)
