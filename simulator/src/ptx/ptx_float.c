// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Arithmetic on f32, f32x2 and f64.
// Each operation rounds as written; some targets would otherwise fuse a product and a sum.
#pragma GCC optimize("fp-contract=off")

#include <fenv.h>
#include <float.h>
#include <math.h>

#include "ptx/ptx_float.h"
#include "ptx/ptx_lanes.h"

// ---- the common case: round to nearest, nothing else

LANES_BEGIN

INLINE uint32_t bits_of_f32(float f) { return f == f ? (uint32_t)of_f32(f) : NAN32; }
INLINE float canonical_f32(float f) { return f == f ? f : __builtin_nanf("0x3fffff"); }

WORDS2(add_f32, f32_word, canonical_f32(a + b))
WORDS2(sub_f32, f32_word, canonical_f32(a - b))
WORDS2(mul_f32, f32_word, canonical_f32(a *b))
WORDS2(div_f32, f32_word, canonical_f32(a / b))

#define FAST64(name, expr) \
    INLINE step name##_body(warp *w, const insn *in, uint32_t m, const int wide) \
    { \
        uint64_t *d = dst(w, in->d); \
        const uint64_t *A = src(w, in->a), *B = src(w, in->b); \
        EACH_LANE(double a = as_f64(A[l]); double b = as_f64(B[l]); o[l] = of_f64(expr);); \
        return ST_NEXT; \
    } \
    TWINS(name)
FAST64(add_f64, a + b)
FAST64(sub_f64, a - b)
FAST64(mul_f64, a *b)
FAST64(div_f64, a / b)

// Without an instruction for it, fma is a function of libm.
#ifdef __FP_FAST_FMA
#define HAS_FMA(wide) 1
#else
#define HAS_FMA(wide) (wide)
#endif

INLINE step fma_f32_body(warp *w, const insn *in, uint32_t m, const int wide)
{
    uint64_t *d = dst(w, in->d);
    const f32_word *A = (const f32_word *)src(w, in->a), *B = (const f32_word *)src(w, in->b),
                   *C = (const f32_word *)src(w, in->c);
    if (HAS_FMA(wide))
        EACH_WORD(f32_word, o[i] = canonical_f32(fmaf(A[i], B[i], C[i])););
    else
        FOR_LANES (m) {
            d[l] = canonical(fmaf(A[2 * l], B[2 * l], C[2 * l]));
        }
    return ST_NEXT;
}
TWINS(fma_f32)

INLINE step fma_f64_body(warp *w, const insn *in, uint32_t m, const int wide)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a), *B = src(w, in->b), *C = src(w, in->c);
    if (HAS_FMA(wide))
        EACH_LANE(o[l] = of_f64(fma(as_f64(A[l]), as_f64(B[l]), as_f64(C[l]))););
    else
        FOR_LANES (m) {
            d[l] = of_f64(fma(as_f64(A[l]), as_f64(B[l]), as_f64(C[l])));
        }
    return ST_NEXT;
}
TWINS(fma_f64)

#define SIGN32 0x80000000u
#define SIGN64 ((uint64_t)1 << 63)
LANES1(neg_f32, uint64_t, a ^ SIGN32)
LANES1(abs_f32, uint64_t, (uint32_t)a & ~SIGN32)
LANES1(neg_f64, uint64_t, a ^ SIGN64)
LANES1(abs_f64, uint64_t, a & ~SIGN64)

// Of a number and a NaN the number; -0 is less than 0. Equal operands have the same bits, but for the sign of zero.
WORDS2(min_f32, u32_word,
       bits_of_f32(as_f32(a) < as_f32(b)    ? as_f32(a)
                   : as_f32(a) > as_f32(b)  ? as_f32(b)
                   : as_f32(a) == as_f32(b) ? as_f32(a | b)
                   : as_f32(a) == as_f32(a) ? as_f32(a)
                                            : as_f32(b)))
WORDS2(max_f32, u32_word,
       bits_of_f32(as_f32(a) > as_f32(b)    ? as_f32(a)
                   : as_f32(a) < as_f32(b)  ? as_f32(b)
                   : as_f32(a) == as_f32(b) ? as_f32(a & b)
                   : as_f32(a) == as_f32(a) ? as_f32(a)
                                            : as_f32(b)))

LANES_END

// ---- everything else, one lane at a time

static double min_max(double a, double b, uint32_t flags, int is_max)
{
    int negative = 0;
    if (flags & F_XORSIGN) {
        negative = signbit(a) != signbit(b);
        a = fabs(a);
        b = fabs(b);
    }
    double r;
    if (isnan(a) || isnan(b))
        r = flags & F_NAN || (isnan(a) && isnan(b)) ? (double)NAN : isnan(a) ? b : a;
    else if (a == 0 && b == 0)
        r = is_max ? (signbit(a) ? b : a) : (signbit(a) ? a : b);
    else
        r = is_max ? (a > b ? a : b) : (a < b ? a : b);
    return negative && !isnan(r) ? -r : r;
}

static float flush(float f) { return f != 0 && fabsf(f) < FLT_MIN ? copysignf(0, f) : f; }

// Move an inexact double to its odd neighbour on the side of the exact value, so that it can be rounded again.
static double to_odd(double v, double remainder)
{
    uint64_t bits = of_f64(v);
    if (remainder == 0 || !isfinite(v) || v == 0 || bits & 1)
        return v;
    return as_f64((remainder > 0) == (v > 0) ? bits + 1 : bits - 1);
}

static double quotient(double a, double b)
{
    double q = a / b;
    if (!isfinite(q) || q == 0 || isinf(b))
        return q;
    double r = fma(-q, b, a);
    return to_odd(q, b > 0 ? r : -r);
}

static float run32(const insn *in, float a, float b, float c)
{
    ptx_round mode = in->round == R_NONE ? R_RN : (ptx_round)in->round;
    if (in->flags & F_FTZ) {
        a = flush(a);
        b = flush(b);
        c = flush(c);
    }
    double r;
    switch ((float_op)in->sub) {
    case FOP_SUB: b = -b;  // fall through
    case FOP_ADD:
        r = fma_to_odd(a, 1, b);
        if (r == 0 && a != 0 && mode == R_RM)
            r = -0.0;  // x + -x
        else if (r == 0 && a == 0 && b == 0 && mode == R_RM && (signbit(a) || signbit(b)))
            r = -0.0;
        break;
    case FOP_MUL: r = (double)a * b; break;
    case FOP_FMA:
        r = fma_to_odd(a, b, c);
        if (r == 0 && mode == R_RM && (((double)a * b != 0) || signbit((double)a * b) || signbit(c)))
            r = -0.0;
        break;
    case FOP_DIV: r = quotient(a, b); break;
    case FOP_RCP: r = quotient(1, a); break;
    case FOP_SQRT: r = sqrt(a), r = to_odd(r, fma(-r, r, a)); break;
    case FOP_RSQRT: r = 1 / sqrt(a); break;
    case FOP_SIN: r = sin(a); break;
    case FOP_COS: r = cos(a); break;
    case FOP_LG2: r = log2(a); break;
    case FOP_EX2: r = exp2(a); break;
    case FOP_TANH: r = tanh(a); break;
    case FOP_ABS: r = fabsf(a); break;
    case FOP_NEG: r = -a; break;
    case FOP_MIN: r = min_max(a, b, in->flags, 0); break;
    case FOP_MAX: r = min_max(a, b, in->flags, 1); break;
    case FOP_COPYSIGN: r = copysign(b, a); break;  // the sign of the first, the magnitude of the second
    default: r = NAN;
    }
    float f = f32_from_double(r, mode);
    if (in->flags & F_FTZ)
        f = flush(f);
    if (in->flags & F_SAT)
        f = f > 0 ? (f < 1 ? f : 1) : 0;
    return f;
}

static step general_f32(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a), *B = in->b == NO_OPERAND ? A : src(w, in->b),
                   *C = in->c == NO_OPERAND ? A : src(w, in->c);
    FOR_LANES (m) {
        d[l] = canonical(run32(in, as_f32(A[l]), as_f32(B[l]), as_f32(C[l])));
    }
    return ST_NEXT;
}

static step general_f32x2(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a), *B = in->b == NO_OPERAND ? A : src(w, in->b),
                   *C = in->c == NO_OPERAND ? A : src(w, in->c);
    FOR_LANES (m) {
        uint64_t lo = canonical(run32(in, as_f32(A[l]), as_f32(B[l]), as_f32(C[l])));
        uint64_t hi = canonical(run32(in, as_f32(A[l] >> 32), as_f32(B[l] >> 32), as_f32(C[l] >> 32)));
        d[l] = hi << 32 | lo;
    }
    return ST_NEXT;
}

// Not to be merged, moved or folded: the rounding mode of the thread is part of what it computes.
static __attribute__((noipa)) double rounded64(unsigned op, double a, double b, double c)
{
    switch ((float_op)op) {
    case FOP_ADD: return a + b;
    case FOP_SUB: return a - b;
    case FOP_MUL: return a * b;
    case FOP_FMA: return fma(a, b, c);
    case FOP_DIV: return a / b;
    case FOP_RCP: return 1 / a;
    case FOP_SQRT: return sqrt(a);
    default: return (double)NAN;
    }
}

static double run64(const insn *in, double a, double b, double c)
{
    switch ((float_op)in->sub) {
    case FOP_MIN: return min_max(a, b, in->flags, 0);
    case FOP_MAX: return min_max(a, b, in->flags, 1);
    case FOP_COPYSIGN: return copysign(b, a);
    case FOP_RSQRT: return 1 / sqrt(a);
    case FOP_LG2: return log2(a);
    case FOP_EX2: return exp2(a);
    default: return rounded64(in->sub, a, b, c);
    }
}

static step general_f64(warp *w, const insn *in, uint32_t m)
{
    static const int modes[] = {[R_RZ] = FE_TOWARDZERO, [R_RM] = FE_DOWNWARD, [R_RP] = FE_UPWARD};
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a), *B = in->b == NO_OPERAND ? A : src(w, in->b),
                   *C = in->c == NO_OPERAND ? A : src(w, in->c);
    int directed = in->round == R_RZ || in->round == R_RM || in->round == R_RP;
    if (directed)
        fesetround(modes[in->round]);
    FOR_LANES (m) {
        d[l] = of_f64(run64(in, as_f64(A[l]), as_f64(B[l]), as_f64(C[l])));
    }
    if (directed)
        fesetround(FE_TONEAREST);
    return ST_NEXT;
}

// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 see and give the upper halves of doubles only.
static step coarse_f64(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a);
    FOR_LANES (m) {
        double a = as_f64(A[l] & ~(uint64_t)0xffffffff);
        if (fabs(a) < DBL_MIN)
            a = copysign(0, a);
        double r = in->sub == FOP_RCP ? 1 / a : 1 / sqrt(a);
        if (fabs(r) < DBL_MIN)
            r = copysign(0, r);
        d[l] = of_f64(r) & ~(uint64_t)0xffffffff;
    }
    return ST_NEXT;
}

static step testp(warp *w, const insn *in, uint32_t m)
{
    const uint64_t *A = src(w, in->a);
    uint32_t out = 0;
    FOR_LANES (m) {
        int k = in->type == T_F32 ? fpclassify(as_f32(A[l])) : fpclassify(as_f64(A[l]));
        int yes = 0;
        switch (in->sub) {
        case 0: yes = k != FP_NAN && k != FP_INFINITE; break;
        case 1: yes = k == FP_INFINITE; break;
        case 2: yes = k != FP_NAN; break;
        case 3: yes = k == FP_NAN; break;
        case 4: yes = k == FP_NORMAL || k == FP_ZERO; break;
        default: yes = k == FP_SUBNORMAL;
        }
        out |= (uint32_t)(yes != 0) << l;
    }
    set_pred(w, in->d, m, out);
    return ST_NEXT;
}

exec_fn ptx_testp_handler(ptx_type type) { return type == T_F32 || type == T_F64 ? testp : NULL; }

exec_fn ptx_float_handler(float_op op, ptx_type type, ptx_round round, uint32_t flags)
{
    static const exec_fn fast32[FOP_OPS] = {
        [FOP_ADD] = add_f32, [FOP_SUB] = sub_f32, [FOP_MUL] = mul_f32, [FOP_DIV] = div_f32, [FOP_FMA] = fma_f32,
        [FOP_NEG] = neg_f32, [FOP_ABS] = abs_f32, [FOP_MIN] = min_f32, [FOP_MAX] = max_f32,
    };
    static const exec_fn fast64[FOP_OPS] = {
        [FOP_ADD] = add_f64, [FOP_SUB] = sub_f64, [FOP_MUL] = mul_f64, [FOP_DIV] = div_f64,
        [FOP_FMA] = fma_f64, [FOP_NEG] = neg_f64, [FOP_ABS] = abs_f64,
    };
    int nearest = round == R_NONE || round == R_RN;
    if (type == T_F32)
        return nearest && !flags && fast32[op] ? fast32[op] : general_f32;
    if (type == T_F32X2)
        return general_f32x2;
    if (type != T_F64)
        return NULL;
    if ((op == FOP_RCP || op == FOP_RSQRT) && flags & F_FTZ)
        return coarse_f64;
    if (flags & (F_FTZ | F_SAT | F_NAN | F_XORSIGN))
        return NULL;
    if (op == FOP_SIN || op == FOP_COS || op == FOP_TANH || op == FOP_LG2 || op == FOP_EX2)
        return NULL;
    return nearest && fast64[op] ? fast64[op] : general_f64;
}
