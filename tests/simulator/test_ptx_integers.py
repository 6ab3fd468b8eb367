# SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: UP031 (tables of expressions; fixtures come from conftest.py)
"""Integer arithmetic of kernels is that of the hardware, bit by bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from ptx_runner import Runner

N = 2048
TYPES = {
    "signed char": np.int8,
    "unsigned char": np.uint8,
    "short": np.int16,
    "unsigned short": np.uint16,
    "int": np.int32,
    "unsigned int": np.uint32,
    "long long": np.int64,
    "unsigned long long": np.uint64,
}
OPERATIONS = [
    "a+b",
    "a-b",
    "a*b",
    "a/b",
    "a%b",
    "a&b",
    "a|b",
    "a^b",
    "~a",
    "-a",
    "a<b",
    "a==b",
    "a>b?a:b",
    "a<b?a:b",
    "a<<(b&7)",
    "a>>(b&7)",
]
BODY = "\n".join(f"    o[{k} * n + i] = (T)({expression});" for k, expression in enumerate(OPERATIONS))
SOURCE = r"""
template <typename T> __device__ void all(const T *x, const T *y, T *o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    T a = x[i], b = y[i];
%s
}
#define K(T, name) extern "C" __global__ void name(const T *x, const T *y, T *o, int n) { all<T>(x, y, o, n); }
%s
""" % (BODY, "\n".join(f"K({t}, k_{d.__name__})" for t, d in TYPES.items()))


def values(rng: np.random.Generator, dtype: type, n: int = N) -> np.ndarray:
    info = np.iinfo(dtype)
    numbers = rng.integers(info.min, info.max, n, dtype, endpoint=True)
    edges = np.array([info.min, info.max, 0, 1, 2, info.max // 2], dtype)
    numbers[: n // 4] = rng.choice(edges, n // 4)
    numbers[n // 4 : n // 2] >>= np.array(info.bits // 2, dtype)
    return numbers


def expected(a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
    dtype, bits = a.dtype, np.iinfo(a.dtype).bits
    wide_a, wide_b = a.astype(object), b.astype(object)
    quotient = np.array(
        [int(abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(wide_a, wide_b, strict=True)], object
    )
    shift = (b & np.array(7, dtype)).astype(object)
    results = [
        wide_a + wide_b, wide_a - wide_b, wide_a * wide_b, quotient, wide_a - quotient * wide_b, wide_a & wide_b, wide_a | wide_b,
        wide_a ^ wide_b, ~wide_a, -wide_a, wide_a < wide_b, wide_a == wide_b, np.maximum(a, b), np.minimum(a, b), wide_a << shift, wide_a >> shift,
    ]  # fmt: skip
    return [
        np.array([int(v) & ((1 << bits) - 1) for v in r], np.uint64).astype(f"u{bits // 8}").view(dtype)
        for r in results
    ]


@pytest.mark.parametrize("dtype", TYPES.values(), ids=lambda d: d.__name__)
def test_operators(ptx: Runner, rng: np.random.Generator, dtype: type) -> None:
    a, b = values(rng, dtype), values(rng, dtype)
    b[b == 0] = 3
    if np.iinfo(dtype).min and np.iinfo(dtype).bits >= 32:
        b[(a == np.iinfo(dtype).min) & (b == -1)] = 1  # overflow of a division is undefined
    out = ptx.zeros((len(OPERATIONS), N), dtype)
    ptx.run(SOURCE, f"k_{dtype.__name__}", N // 128, 128, ptx.array(a), ptx.array(b), out, np.int32(N))
    for expression, got, want in zip(OPERATIONS, out.get(), expected(a, b), strict=True):
        np.testing.assert_array_equal(got, want, err_msg=expression)


INTRINSICS = {
    "__mulhi((int)a, (int)b)": lambda a, b: (signed(a) * signed(b)) >> 32,
    "__umulhi(a, b)": lambda a, b: (a * b) >> 32,
    "__mul24((int)a, (int)b)": lambda a, b: signed(a & 0xFFFFFF, 24) * signed(b & 0xFFFFFF, 24),
    "__umul24(a, b)": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "__popc(a)": lambda a, b: a.bit_count(),
    "__clz(a)": lambda a, b: 32 - a.bit_length(),
    "__ffs(a)": lambda a, b: (a & -a).bit_length(),
    "__brev(a)": lambda a, b: int(f"{a:032b}"[::-1], 2),
    "__sad((int)a, (int)b, 7u)": lambda a, b: abs(signed(a) - signed(b)) + 7,
    "__usad(a, b, 9u)": lambda a, b: abs(a - b) + 9,
    "__hadd((int)a, (int)b)": lambda a, b: (signed(a) + signed(b)) >> 1,
    "__uhadd(a, b)": lambda a, b: (a + b) >> 1,
    "__funnelshift_l(a, b, a)": lambda a, b: (((b << 32 | a) << (a & 31)) >> 32),
    "__funnelshift_lc(a, b, b & 63)": lambda a, b: (((b << 32 | a) << min(b & 63, 32)) >> 32),
    "__funnelshift_r(a, b, a)": lambda a, b: (b << 32 | a) >> (a & 31),
    "__funnelshift_rc(a, b, b & 63)": lambda a, b: (b << 32 | a) >> min(b & 63, 32),
    "__byte_perm(a, b, a >> 3)": lambda a, b: permute(a, b, a >> 3),
    "__dp4a(a, b, 5u)": lambda a, b: sum(x * y for x, y in zip(bytes4(a), bytes4(b), strict=True)) + 5,
    "__dp4a((int)a, (int)b, 5)": lambda a, b: sum(signed(x, 8) * signed(y, 8) for x, y in zip(bytes4(a), bytes4(b), strict=True)) + 5,
    "__dp2a_lo((int)a, (int)b, 1)": lambda a, b: signed(a & 0xFFFF, 16) * signed(b & 0xFF, 8) + signed(a >> 16, 16) * signed(b >> 8 & 0xFF, 8) + 1,
    "__vadd2(a, b)": lambda a, b: ((a + b) & 0xFFFF) | (((a >> 16) + (b >> 16)) << 16),
    "__fns(a, b & 31, 2)": lambda a, b: find_nth(a, b & 31, 2),
    "__vabsdiffu4(a, b)": lambda a, b: lanes(a, b, 8, False, lambda x, y: abs(x - y)),
    "__vabsdiffs4(a, b)": lambda a, b: lanes(a, b, 8, True, lambda x, y: abs(x - y)),
    "__vsadu4(a, b)": lambda a, b: sum(abs(x - y) for x, y in zip(bytes4(a), bytes4(b), strict=True)),
    "__vabsdiffu2(a, b)": lambda a, b: lanes(a, b, 16, False, lambda x, y: abs(x - y)),
    "__vavgu4(a, b)": lambda a, b: lanes(a, b, 8, False, lambda x, y: (x + y + 1) >> 1),
    "__vmaxs2(a, b)": lambda a, b: lanes(a, b, 16, True, max),
    "__vminu4(a, b)": lambda a, b: lanes(a, b, 8, False, min),
    "__vcmpgtu4(a, b)": lambda a, b: lanes(a, b, 8, False, lambda x, y: -(x > y)),
    "__vaddss2(a, b)": lambda a, b: lanes(a, b, 16, True, lambda x, y: max(-32768, min(32767, x + y))),
    "a / 7u": lambda a, b: a // 7,
    "(unsigned)((int)a / 7)": lambda a, b: int(signed(a) / 7),
}  # fmt: skip


def signed(v: int, bits: int = 32) -> int:
    return v - (1 << bits) if v >> (bits - 1) else v


def lanes(a: int, b: int, bits: int, is_signed: bool, function: Callable[[int, int], int]) -> int:
    """Apply a function to the pieces of two 32-bit numbers."""
    out, mask = 0, (1 << bits) - 1
    for at in range(0, 32, bits):
        x, y = a >> at & mask, b >> at & mask
        if is_signed:
            x, y = signed(x, bits), signed(y, bits)
        out |= (function(x, y) & mask) << at
    return out


def bytes4(v: int) -> list[int]:
    return list(v.to_bytes(4, "little"))


def permute(a: int, b: int, selector: int) -> int:
    source = bytes4(a) + bytes4(b)
    return sum(source[selector >> 4 * i & 7] << 8 * i for i in range(4))


def find_nth(mask: int, base: int, n: int) -> int:
    found = [i for i in range(base, 32) if mask >> i & 1]
    return found[n - 1] if len(found) >= n else 0xFFFFFFFF


def test_intrinsics(ptx: Runner, rng: np.random.Generator) -> None:
    # NVRTC cannot compile all of them for debugging on every architecture.
    cases = {e: f for e, f in INTRINSICS.items() if not (ptx.debug and "__dp" in e)}
    body = "\n".join(f"    o[{k} * n + i] = (unsigned)({e});" for k, e in enumerate(cases))
    source = (
        'extern "C" __global__ void k(const unsigned *x, const unsigned *y, unsigned *o, int n) {\n'
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i >= n) return;\n    unsigned a = x[i], b = y[i];\n"
        + body
        + "\n}\n"
    )
    a, b = values(rng, np.uint32), values(rng, np.uint32)
    out = ptx.zeros((len(cases), N), np.uint32)
    ptx.run(source, "k", N // 128, 128, ptx.array(a), ptx.array(b), out, np.int32(N))
    for (expression, function), got in zip(cases.items(), out.get(), strict=True):
        want = np.array([function(int(x), int(y)) & 0xFFFFFFFF for x, y in zip(a, b, strict=True)], np.uint32)
        np.testing.assert_array_equal(got, want, err_msg=expression)


def test_64_bit_intrinsics(ptx: Runner, rng: np.random.Generator) -> None:
    cases = {
        "__umul64hi(a, b)": lambda a, b: (a * b) >> 64,
        "__mul64hi(a, b)": lambda a, b: (signed(a, 64) * signed(b, 64)) >> 64,
        "__popcll(a)": lambda a, b: a.bit_count(),
        "__clzll(a)": lambda a, b: 64 - a.bit_length(),
        "__ffsll(a)": lambda a, b: (a & -a).bit_length(),
        "__brevll(a)": lambda a, b: int(f"{a:064b}"[::-1], 2),
        "a / (b | 1)": lambda a, b: a // (b | 1),
        "a % ((b >> 32) | 1)": lambda a, b: a % ((b >> 32) | 1),
    }
    body = "\n".join(f"    o[{k} * n + i] = {e};" for k, e in enumerate(cases))
    source = (
        "typedef unsigned long long T;\n"
        'extern "C" __global__ void k(const T *x, const T *y, T *o, int n) {\n'
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i >= n) return;\n    T a = x[i], b = y[i];\n"
        + body
        + "\n}\n"
    )
    a, b = values(rng, np.uint64), values(rng, np.uint64)
    out = ptx.zeros((len(cases), N), np.uint64)
    ptx.run(source, "k", N // 128, 128, ptx.array(a), ptx.array(b), out, np.int32(N))
    for (expression, function), got in zip(cases.items(), out.get(), strict=True):
        want = np.array([function(int(x), int(y)) & (2**64 - 1) for x, y in zip(a, b, strict=True)], np.uint64)
        np.testing.assert_array_equal(got, want, err_msg=expression)


def test_128_bit_integers(ptx: Runner, rng: np.random.Generator) -> None:
    source = r"""
    typedef unsigned __int128 T;
    extern "C" __global__ void k(const T *x, const T *y, T *o, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= n) return;
        T a = x[i], b = y[i];
        o[i] = a + b; o[n + i] = a - b; o[2 * n + i] = a * b; o[3 * n + i] = a / (b | 1);
        o[4 * n + i] = a % ((b >> 70) | 1);
        o[5 * n + i] = (T)((__int128)a / ((__int128)b | 1));
    }
    """
    n = 256
    words = values(rng, np.uint64, 4 * n).reshape(2, n, 2)
    out = ptx.zeros((6, n, 2), np.uint64)
    ptx.run(
        source,
        "k",
        n // 64,
        64,
        ptx.array(words[0]),
        ptx.array(words[1]),
        out,
        np.int32(n),
        options=("--device-int128",),
    )
    whole = [[int(w[0]) | int(w[1]) << 64 for w in half] for half in words]
    for k, got in enumerate(out.get()):
        for a, b, word in zip(*whole, got, strict=True):
            sa, sb = signed(a, 128), signed(b | 1, 128)
            trunc = abs(sa) // abs(sb) * (1 if (sa < 0) == (sb < 0) else -1)
            want = [a + b, a - b, a * b, a // (b | 1), a % ((b >> 70) | 1), trunc][k]
            assert int(word[0]) | int(word[1]) << 64 == want & (2**128 - 1), (k, a, b)


def test_conversions_between_integers(ptx: Runner, rng: np.random.Generator) -> None:
    lines = []
    for k, (target, _) in enumerate(TYPES.items()):
        for j, (middle, _) in enumerate(TYPES.items()):
            lines.append(f"    o[({k} * 8 + {j}) * n + i] = (long long)({target})({middle})a;")
    source = (
        'extern "C" __global__ void k(const long long *x, long long *o, int n) {\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n'
        "    long long a = x[i];\n" + "\n".join(lines) + "\n}\n"
    )
    n = 256
    a = values(rng, np.int64, n)
    out = ptx.zeros((8, 8, n), np.int64)
    ptx.run(source, "k", n // 64, 64, ptx.array(a), out, np.int32(n))
    got = out.get()
    for k, target in enumerate(TYPES.values()):
        for j, middle in enumerate(TYPES.values()):
            np.testing.assert_array_equal(got[k, j], a.astype(middle).astype(target).astype(np.int64))


# Instructions that the compiler seldom emits, written as PTX: text, and the result for a, b, c.
INLINE = {
    "bfe.u32 %0, %1, %2, %3;": lambda a, b, c: field(a, b & 255, c & 255, False),
    "bfe.s32 %0, %1, %2, %3;": lambda a, b, c: field(a, b & 255, c & 255, True),
    "bfi.b32 %0, %1, %3, 5, 11;": lambda a, b, c: (c & ~(0x7FF << 5)) | ((a & 0x7FF) << 5),
    "bfind.u32 %0, %1;": lambda a, b, c: a.bit_length() - 1,
    "bfind.shiftamt.u32 %0, %1;": lambda a, b, c: 32 - a.bit_length() if a else -1,
    "bfind.s32 %0, %1;": lambda a, b, c: (a if a < 1 << 31 else ~a & 0xFFFFFFFF).bit_length() - 1,
    "lop3.b32 %0, %1, %2, %3, 0xe8;": lambda a, b, c: (a & b) | (a & c) | (b & c),
    "lop3.b32 %0, %1, %2, %3, 0x2d;": lambda a, b, c: sum((0x2D >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i for i in range(32)),
    "add.sat.s32 %0, %1, %2;": lambda a, b, c: max(-(2**31), min(2**31 - 1, signed(a) + signed(b))),
    "sub.sat.s32 %0, %1, %2;": lambda a, b, c: max(-(2**31), min(2**31 - 1, signed(a) - signed(b))),
    "mad.hi.u32 %0, %1, %2, %3;": lambda a, b, c: (a * b >> 32) + c,
    "mad.hi.s32 %0, %1, %2, %3;": lambda a, b, c: (signed(a) * signed(b) >> 32) + c,
    "mad24.hi.s32 %0, %1, %2, %3;": lambda a, b, c: (signed(a & 0xFFFFFF, 24) * signed(b & 0xFFFFFF, 24) >> 16) + c,
    "slct.u32.s32 %0, %1, %2, %3;": lambda a, b, c: a if signed(c) >= 0 else b,
    "set.lt.u32.s32 %0, %1, %2;": lambda a, b, c: -(signed(a) < signed(b)),
    "cnot.b32 %0, %1;": lambda a, b, c: a == 0,
    "prmt.b32.f4e %0, %1, %2, %3;": lambda a, b, c: (b << 32 | a) >> 8 * (c & 3),
    "prmt.b32.rc8 %0, %1, %2, %3;": lambda a, b, c: (a >> 8 * (c & 3) & 255) * 0x01010101,
    "prmt.b32.rc16 %0, %1, %2, %3;": lambda a, b, c: (a >> 16 * (c & 1) & 0xFFFF) * 0x10001,
    "prmt.b32 %0, %1, %2, 0xfb51;": lambda a, b, c: prmt_signs(a, b),
    "shr.s32 %0, %1, %2;": lambda a, b, c: signed(a) >> min(b, 31),
    "shl.b32 %0, %1, %2;": lambda a, b, c: a << b if b < 32 else 0,
    "{.reg .u32 t; add.cc.u32 t, %1, %2; addc.u32 %0, %3, 0;}": lambda a, b, c: c + (a + b >> 32),
    "{.reg .u32 t; sub.cc.u32 t, %1, %2; subc.u32 %0, %3, 0;}": lambda a, b, c: c - (a < b),
    "{.reg .u32 t; mad.lo.cc.u32 t, %1, %2, %3; madc.hi.u32 %0, %1, %2, %3;}": lambda a, b, c: (a * b >> 32) + c + ((a * b & 0xFFFFFFFF) + c >> 32),
    "{.reg .pred p, q; setp.lt.and.u32 p|q, %1, %2, 1; selp.u32 %0, 1, 0, q;}": lambda a, b, c: a >= b,
    "{.reg .b16 h, l; mov.b32 {l, h}, %1; mov.b32 %0, {h, l};}": lambda a, b, c: (a << 16 | a >> 16),
    "{.reg .pred p; setp.ne.u32 p, %1, %2; @!p mov.u32 %0, %3; @p mov.u32 %0, %1;}": lambda a, b, c: a if a != b else c,
}  # fmt: skip


def field(a: int, pos: int, length: int, is_signed: bool) -> int:
    last = min(pos + length - 1, 31)
    sign = (a >> last & 1) if is_signed and length else 0
    return sum(((a >> pos + i & 1) if i < length and pos + i <= 31 else sign) << i for i in range(32))


def prmt_signs(a: int, b: int) -> int:
    source = bytes4(a) + bytes4(b)
    out = 0
    for i, nibble in enumerate((1, 5, 11, 15)):
        byte = source[nibble & 7]
        out |= ((255 if byte & 128 else 0) if nibble & 8 else byte) << 8 * i
    return out


def test_instructions_written_as_ptx(newest: Runner, rng: np.random.Generator) -> None:
    body = "\n".join(
        f'    {{ unsigned r = 0; asm volatile("{text}" : "=r"(r) : "r"(a), "r"(b), "r"(c)); o[{k} * n + i] = r; }}'
        for k, text in enumerate(INLINE)
    )
    source = (
        'extern "C" __global__ void k(const unsigned *x, const unsigned *y, const unsigned *z, unsigned *o, int n) {\n'
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    unsigned a = x[i], b = y[i], c = z[i];\n"
        + body
        + "\n}\n"
    )
    a, b, c = (values(rng, np.uint32, 512) for _ in range(3))
    b[::3] %= 40
    b[::5] = a[::5]
    out = newest.zeros((len(INLINE), 512), np.uint32)
    newest.run(source, "k", 4, 128, newest.array(a), newest.array(b), newest.array(c), out, np.int32(512))
    for (text, function), got in zip(INLINE.items(), out.get(), strict=True):
        want = np.array(
            [int(function(int(x), int(y), int(z))) & 0xFFFFFFFF for x, y, z in zip(a, b, c, strict=True)], np.uint32
        )
        np.testing.assert_array_equal(got, want, err_msg=text)
