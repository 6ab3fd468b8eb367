// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Formats narrower than float: exact conversions in software, and arithmetic that rounds once.
// Each operation rounds as written; some targets would otherwise fuse a product and a sum.
#pragma GCC optimize("fp-contract=off")

#include <math.h>

#include "ptx/ptx_float.h"
#include "ptx/ptx_lanes.h"

// Rounds v to `bits` of precision with least normal exponent `emin`, and encodes it with a biased exponent.
// `inf` is the encoding of infinity, past which everything overflows.
static uint32_t encode(double v, int bits, int emin, uint32_t inf, ptx_round mode)
{
    double a = fabs(v);
    if (a == 0)
        return 0;
    if (isinf(a))
        return inf;
    int e;
    frexp(a, &e);
    e -= 1;
    if (e < emin)
        e = emin;
    int quantum = e - (bits - 1);
    double s = ldexp(a, -quantum), r;
    int neg = signbit(v) != 0;
    switch (mode) {
    case R_RZ: r = trunc(s); break;
    case R_RM: r = neg ? ceil(s) : floor(s); break;
    case R_RP: r = neg ? floor(s) : ceil(s); break;
    case R_RNA: r = round(s); break;
    default: r = nearbyint(s);
    }
    int64_t code = ((int64_t)(e - emin) << (bits - 1)) + (int64_t)r;
    if (code < inf)
        return (uint32_t)code;
    int to_max = mode == R_RZ || (mode == R_RM && !neg) || (mode == R_RP && neg);
    return to_max ? inf - 1 : inf;
}

uint16_t half_from_double(double v, ptx_round mode)
{
    if (isnan(v))
        return 0x7fff;
    return (uint16_t)(encode(v, 11, -14, 0x7c00, mode) | (signbit(v) ? 0x8000 : 0));
}

uint16_t bf16_from_double(double v, ptx_round mode)
{
    if (isnan(v))
        return 0x7fff;
    return (uint16_t)(encode(v, 8, -126, 0x7f80, mode) | (signbit(v) ? 0x8000 : 0));
}

double half_to_double(uint16_t h)
{
    unsigned e = h >> 10 & 31, f = h & 0x3ff;
    double v;
    if (e == 31)
        v = f ? NAN : INFINITY;
    else if (e == 0)
        v = f * 0x1p-24;
    else
        v = as_f64((uint64_t)(e + 1023 - 15) << 52 | (uint64_t)f << 42);
    return h & 0x8000 ? -v : v;
}

double bf16_to_double(uint16_t h) { return as_f32((uint32_t)h << 16); }

float f32_from_double(double v, ptx_round mode)
{
    float f = (float)v;
    switch (mode) {
    case R_RZ: return fabs((double)f) > fabs(v) ? nextafterf(f, 0) : f;
    case R_RM: return (double)f > v ? nextafterf(f, -INFINITY) : f;
    case R_RP: return (double)f < v ? nextafterf(f, INFINITY) : f;
    default: return f;
    }
}

double fma_to_odd(double a, double b, double c)
{
    double p = a * b, s = p + c;  // the product of two floats is exact in a double
    if (!isfinite(s))
        return s;
    double t = s - p, err = (p - (s - t)) + (c - t);
    if (err == 0)
        return s;
    uint64_t bits = of_f64(s);
    if (bits & 1)
        return s;
    // Even and inexact: step to the odd neighbour on the side of the exact value.
    return as_f64((err > 0) == (s > 0) ? bits + 1 : bits - 1);
}

// ---- fp8 and tf32, which exist in conversions only

uint8_t ptx_fp8_from_double(double v, int e5m2, int relu)
{
    if (isnan(v))
        return 0x7f;
    if (relu && v < 0)
        v = 0;
    uint32_t code = e5m2 ? encode(v, 3, -14, 0x7c, R_RN) : encode(v, 4, -6, 0x7f, R_RN);
    if (code >= (e5m2 ? 0x7cu : 0x7fu))
        code = e5m2 ? 0x7b : 0x7e;  // these conversions saturate
    return (uint8_t)(code | (signbit(v) ? 0x80 : 0));
}

double ptx_fp8_to_double(uint8_t b, int e5m2)
{
    if (e5m2)
        return half_to_double((uint16_t)(b << 8));
    unsigned e = b >> 3 & 15, f = b & 7;
    double v = e == 15 && f == 7 ? NAN : e ? ldexp(8 + f, (int)e - 10) : ldexp(f, -9);
    return b & 0x80 ? -v : v;
}

uint32_t ptx_tf32_from_float(double v, ptx_round mode)
{
    if (isnan(v))
        return 0x7fffffff;
    return encode(v, 11, -126, 0x3fc00, mode) << 13 | (signbit(v) ? 0x80000000u : 0);
}

// ---- arithmetic on f16, f16x2, bf16 and bf16x2

static double flush_half(double v, const insn *in, int bf16)
{
    // .ftz exists for f16 only
    return in->flags & F_FTZ && !bf16 && v != 0 && fabs(v) < 0x1p-14 ? copysign(0, v) : v;
}

static double select_min_max(double a, double b, const insn *in, int is_max)
{
    int negative = 0;
    if (in->flags & F_XORSIGN) {
        negative = signbit(a) != signbit(b);
        a = fabs(a);
        b = fabs(b);
    }
    double r;
    if (isnan(a) || isnan(b))
        r = in->flags & F_NAN || (isnan(a) && isnan(b)) ? NAN : isnan(a) ? b : a;
    else if (a == 0 && b == 0)
        r = is_max ? (signbit(a) ? b : a) : (signbit(a) ? a : b);
    else
        r = is_max ? (a > b ? a : b) : (a < b ? a : b);
    return in->flags & F_XORSIGN && negative && !isnan(r) ? -r : r;
}

static uint16_t half_op(const insn *in, float_op op, int bf16, uint16_t x, uint16_t y, uint16_t z)
{
    if (op == FOP_NEG || op == FOP_ABS) {
        if ((x & 0x7fff) > (bf16 ? 0x7f80 : 0x7c00))
            return 0x7fff;
        if (in->flags & F_FTZ && !bf16 && (x & 0x7c00) == 0)
            x &= 0x8000;
        return op == FOP_NEG ? x ^ 0x8000 : x & 0x7fff;
    }
    double a = bf16 ? bf16_to_double(x) : half_to_double(x), b = bf16 ? bf16_to_double(y) : half_to_double(y);
    double c = bf16 ? bf16_to_double(z) : half_to_double(z), r;
    a = flush_half(a, in, bf16);
    b = flush_half(b, in, bf16);
    c = flush_half(c, in, bf16);
    switch (op) {
    case FOP_ADD: r = fma_to_odd(a, 1, b); break;
    case FOP_SUB: r = fma_to_odd(a, 1, -b); break;
    case FOP_MUL: r = a * b; break;
    case FOP_FMA: r = fma_to_odd(a, b, c); break;
    case FOP_MIN: r = select_min_max(a, b, in, 0); break;
    case FOP_MAX: r = select_min_max(a, b, in, 1); break;
    case FOP_EX2: r = exp2(a); break;
    case FOP_TANH: r = tanh(a); break;
    default: r = NAN;
    }
    if (in->flags & F_SAT)
        r = r > 0 ? (r < 1 ? r : 1) : 0;
    if (in->flags & F_RELU && !isnan(r) && (r < 0 || (r == 0 && signbit(r))))
        r = 0;
    uint16_t h = bf16 ? bf16_from_double(r, R_RN) : half_from_double(r, R_RN);
    if (in->flags & F_FTZ && !bf16 && (h & 0x7c00) == 0)
        h &= 0x8000;
    return h;
}

static step half_run(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a), *B = in->b == NO_OPERAND ? A : src(w, in->b),
                   *C = in->c == NO_OPERAND ? A : src(w, in->c);
    int bf16 = in->type == T_BF16 || in->type == T_BF16X2, pair = in->type == T_F16X2 || in->type == T_BF16X2;
    FOR_LANES (m) {
        uint32_t a = (uint32_t)A[l];
        uint32_t b = (uint32_t)B[l];
        uint32_t c = (uint32_t)C[l];
        uint32_t r = half_op(in, (float_op)in->sub, bf16, (uint16_t)a, (uint16_t)b, (uint16_t)c);
        if (pair)
            r |= (uint32_t)half_op(in, (float_op)in->sub, bf16, (uint16_t)(a >> 16), (uint16_t)(b >> 16),
                                   (uint16_t)(c >> 16))
                 << 16;
        d[l] = r;
    }
    return ST_NEXT;
}

// ---- f16 and f16x2, rounded to nearest, without modifiers
//
// The upper half of a register is computed in any case; of f16 nobody reads it.

static step plain_f16(warp *w, const insn *in, uint32_t m) { return half_run(w, in, m); }

#if HAS_WIDE
LANES_BEGIN

// Eight of a * b + c, where the product of two halves is exact in a float, as fma_to_odd() does it.
WIDE_TARGET static inline __m128i fused(__m128i x, __m128i y, __m128i z, float_op op)
{
    __m256 a = _mm256_cvtph_ps(x), b = _mm256_cvtph_ps(y), s;
    if (op == FOP_MUL)
        s = _mm256_mul_ps(a, b);
    else {
        const __m256 sign = _mm256_set1_ps(-0.0f), zero = _mm256_setzero_ps();
        __m256 p = op == FOP_FMA ? _mm256_mul_ps(a, b) : a;
        __m256 c = op == FOP_FMA ? _mm256_cvtph_ps(z) : op == FOP_SUB ? _mm256_xor_ps(b, sign) : b;
        s = _mm256_add_ps(p, c);
        __m256 t = _mm256_sub_ps(s, p);
        __m256 error = _mm256_add_ps(_mm256_sub_ps(p, _mm256_sub_ps(s, t)), _mm256_sub_ps(c, t));
        // Even and inexact: step to the odd neighbour on the side of the exact value. NaN is neither.
        __m256i bits = _mm256_castps_si256(s), one = _mm256_set1_epi32(1);
        __m256i even = _mm256_cmpeq_epi32(_mm256_and_si256(bits, one), _mm256_setzero_si256());
        __m256i inexact = _mm256_castps_si256(_mm256_cmp_ps(error, zero, _CMP_NEQ_OQ));
        __m256i away =
            _mm256_srai_epi32(_mm256_castps_si256(_mm256_xor_ps(error, s)), 31);  // 0: up in magnitude; -1: down
        __m256i by = _mm256_and_si256(_mm256_or_si256(away, one), _mm256_and_si256(even, inexact));
        s = _mm256_castsi256_ps(_mm256_add_epi32(bits, by));
    }
    __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    s = _mm256_blendv_ps(s, nan, _mm256_cmp_ps(s, s, _CMP_UNORD_Q));
    return _mm256_cvtps_ph(s, _MM_FROUND_TO_NEAREST_INT);
}

// The lower words of eight lanes, in an order that spread_words() undoes.
WIDE_TARGET static inline __m256i gather_words(const uint64_t *v)
{
    __m256 low = _mm256_loadu_ps((const float *)v), high = _mm256_loadu_ps((const float *)(v + 4));
    return _mm256_castps_si256(_mm256_shuffle_ps(low, high, 0x88));
}

WIDE_TARGET static inline void spread_words(uint64_t *v, __m256i words)
{
    _mm256_storeu_si256((__m256i *)v, _mm256_unpacklo_epi32(words, _mm256_setzero_si256()));
    _mm256_storeu_si256((__m256i *)(v + 4), _mm256_unpackhi_epi32(words, _mm256_setzero_si256()));
}

WIDE_TARGET static step plain_f16_wide(warp *w, const insn *in, uint32_t m)
{
    if (m != FULL && are_few(m, 1))
        return half_run(w, in, m);
    uint64_t *d = dst(w, in->d), *o = m == FULL ? d : w->temp;
    const uint64_t *A = src(w, in->a), *B = src(w, in->b), *C = in->c == NO_OPERAND ? B : src(w, in->c);
    float_op op = (float_op)in->sub;
    for (unsigned l = 0; l < WARP; l += 8) {
        __m256i a = gather_words(A + l), b = gather_words(B + l), c = gather_words(C + l);
        __m128i low = fused(_mm256_castsi256_si128(a), _mm256_castsi256_si128(b), _mm256_castsi256_si128(c), op);
        __m128i high =
            fused(_mm256_extracti128_si256(a, 1), _mm256_extracti128_si256(b, 1), _mm256_extracti128_si256(c, 1), op);
        spread_words(o + l, _mm256_set_m128i(high, low));
    }
    if (m != FULL)
        ptx_merge(w, d, m);
    return ST_NEXT;
}
ARE_TWINS(plain_f16)

LANES_END
#endif

exec_fn ptx_half_handler(float_op op, ptx_type type, uint32_t flags)
{
    static const uint8_t known[FOP_OPS] = {
        [FOP_ADD] = 1, [FOP_SUB] = 1, [FOP_MUL] = 1,  [FOP_FMA] = 1, [FOP_MIN] = 1,
        [FOP_MAX] = 1, [FOP_EX2] = 1, [FOP_TANH] = 1, [FOP_NEG] = 1, [FOP_ABS] = 1,
    };
    if (!known[op] || !is_half_type(type))
        return NULL;
    int is_plain = !flags && (op == FOP_ADD || op == FOP_SUB || op == FOP_MUL || op == FOP_FMA);
    return is_plain && (type == T_F16 || type == T_F16X2) ? plain_f16 : half_run;
}
