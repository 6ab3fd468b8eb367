// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// cvt: conversions between all types, with rounding and saturation.
#include <fenv.h>
#include <float.h>
#include <math.h>

#include "ptx/ptx_float.h"
#include "ptx/ptx_lanes.h"

typedef enum kind { K_NONE, K_SIGNED, K_UNSIGNED, K_FLOAT } kind;

static kind kind_of(ptx_type t)
{
    switch (t) {
    case T_S8:
    case T_S16:
    case T_S32:
    case T_S64: return K_SIGNED;
    case T_U8:
    case T_U16:
    case T_U32:
    case T_U64: return K_UNSIGNED;
    case T_F16:
    case T_BF16:
    case T_F32:
    case T_F64: return K_FLOAT;
    default: return K_NONE;
    }
}

static unsigned bits_of(ptx_type t)
{
    switch (t) {
    case T_S8:
    case T_U8: return 8;
    case T_S16:
    case T_U16:
    case T_F16:
    case T_BF16: return 16;
    case T_S32:
    case T_U32:
    case T_F32: return 32;
    default: return 64;
    }
}

// ---- integer to integer: sign or zero extension from the narrower of the two types

LANES_BEGIN
LANES1(ext_u8, uint8_t, a)
LANES1(ext_s8, int8_t, a)
LANES1(ext_u16, uint16_t, a)
LANES1(ext_s16, int16_t, a)
LANES1(ext_u32, uint64_t, a & 0xffffffffu)
LANES1(ext_s32, int32_t, a)
LANES1(ext_64, uint64_t, a)
LANES_END

static const exec_fn extend[T_COUNT] = {
    [T_U8] = ext_u8,   [T_S8] = ext_s8,   [T_U16] = ext_u16, [T_S16] = ext_s16,
    [T_U32] = ext_u32, [T_S32] = ext_s32, [T_U64] = ext_64,  [T_S64] = ext_64,
};

static uint64_t extract_int(uint64_t v, ptx_type t)
{
    switch (t) {
    case T_S8: return (uint64_t)(int8_t)v;
    case T_S16: return (uint64_t)(int16_t)v;
    case T_S32: return (uint64_t)(int32_t)v;
    case T_U8: return (uint8_t)v;
    case T_U16: return (uint16_t)v;
    case T_U32: return (uint32_t)v;
    default: return v;
    }
}

static uint64_t clamp_int(uint64_t v, kind from, ptx_type to)
{
    unsigned bits = bits_of(to);
    uint64_t top = kind_of(to) == K_SIGNED ? ((uint64_t)1 << (bits - 1)) - 1
                   : bits == 64            ? UINT64_MAX
                                           : ((uint64_t)1 << bits) - 1;
    if (from == K_SIGNED && (int64_t)v < 0) {
        if (kind_of(to) == K_UNSIGNED)
            return 0;
        int64_t low = bits == 64 ? INT64_MIN : -((int64_t)1 << (bits - 1));
        return (int64_t)v < low ? (uint64_t)low : v;
    }
    return v > top ? top : v;
}

static step int_to_int_sat(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a);
    FOR_LANES (m) {
        d[l] = clamp_int(extract_int(A[l], (ptx_type)in->stype), kind_of((ptx_type)in->stype), (ptx_type)in->type);
    }
    return ST_NEXT;
}

// ---- floating point

static double load_float(uint64_t v, ptx_type t, const insn *in)
{
    double d;
    switch (t) {
    case T_F16: return half_to_double((uint16_t)v);
    case T_BF16: return bf16_to_double((uint16_t)v);
    case T_F32: d = as_f32(v); return in->flags & F_FTZ && d != 0 && fabs(d) < FLT_MIN ? copysign(0, d) : d;
    default: return as_f64(v);
    }
}

static uint64_t store_float(double v, ptx_type t, const insn *in)
{
    ptx_round mode =
        in->round == R_RZ || in->round == R_RM || in->round == R_RP || in->round == R_RNA ? (ptx_round)in->round : R_RN;
    if (in->flags & F_SAT)
        v = v > 0 ? (v < 1 ? v : 1) : 0;
    if (in->flags & F_RELU && !isnan(v) && (v < 0 || v == 0))
        v = v < 0 ? 0 : fabs(v);
    switch (t) {
    case T_F16: {
        uint16_t h = half_from_double(v, mode);
        return in->flags & F_SATFINITE && (h & 0x7fff) == 0x7c00 ? h - 1u : h;
    }
    case T_BF16: {
        uint16_t h = bf16_from_double(v, mode);
        return in->flags & F_SATFINITE && (h & 0x7fff) == 0x7f80 ? h - 1u : h;
    }
    case T_F32: {
        if (v != v)
            return 0x7fffffff;
        float f = f32_from_double(v, mode);
        if (in->flags & F_FTZ && f != 0 && fabsf(f) < FLT_MIN)
            f = copysignf(0, f);
        return of_f32(f);
    }
    default: return of_f64(v);
    }
}

static double to_integral(double v, ptx_round mode)
{
    switch (mode) {
    case R_RNI: return nearbyint(v);
    case R_RZI: return trunc(v);
    case R_RMI: return floor(v);
    case R_RPI: return ceil(v);
    default: return v;
    }
}

static uint64_t float_to_int(double v, ptx_type from, ptx_type to, ptx_round mode)
{
    unsigned bits = bits_of(to);
    if (isnan(v))  // zero, except that 64-bit sources or destinations give the indefinite value
        return from != T_F64 && bits != 64 ? 0 : (uint64_t)1 << (bits - 1);
    v = to_integral(v, mode == R_NONE ? R_RZI : mode);
    if (kind_of(to) == K_SIGNED) {
        double limit = ldexp(1, (int)bits - 1);
        if (v >= limit)
            return ((uint64_t)1 << (bits - 1)) - 1;
        if (v < -limit)
            return bits == 64 ? (uint64_t)1 << 63 : (uint64_t)(-((int64_t)1 << (bits - 1)));
        return (uint64_t)(int64_t)v;
    }
    if (v <= 0)
        return 0;
    if (v >= ldexp(1, (int)bits))
        return bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    return (uint64_t)v;
}

// An integer as a double whose later rounding to fewer bits is as if rounded once.
static double int_to_odd(uint64_t v, kind k)
{
    int negative = k == K_SIGNED && (int64_t)v < 0;
    uint64_t a = negative ? 0 - v : v;
    if (a >> 53)
        a = (a & ~(uint64_t)0xfff) | ((a & 0xfff) ? 0x800 : 0);
    return negative ? -(double)a : (double)a;
}

static __attribute__((noipa)) double int_to_f64(uint64_t v, kind k)
{
    return k == K_SIGNED ? (double)(int64_t)v : (double)v;
}

static uint64_t int_to_float(uint64_t v, kind k, ptx_type to, const insn *in)
{
    if (to != T_F64)
        return store_float(int_to_odd(v, k), to, in);
    static const int modes[] = {[R_RZ] = FE_TOWARDZERO, [R_RM] = FE_DOWNWARD, [R_RP] = FE_UPWARD};
    int directed = in->round == R_RZ || in->round == R_RM || in->round == R_RP;
    if (directed)
        fesetround(modes[in->round]);
    double d = int_to_f64(v, k);
    if (directed)
        fesetround(FE_TONEAREST);
    return store_float(d, T_F64, in);
}

static step general(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a);
    ptx_type to = (ptx_type)in->type, from = (ptx_type)in->stype;
    kind kt = kind_of(to), kf = kind_of(from);
    FOR_LANES (m) {
        if (kf != K_FLOAT)
            d[l] = int_to_float(extract_int(A[l], from), kf, to, in);
        else if (kt != K_FLOAT)
            d[l] = float_to_int(load_float(A[l], from, in), from, to, (ptx_round)in->round);
        else
            d[l] = store_float(to_integral(load_float(A[l], from, in), (ptx_round)in->round), to, in);
    }
    return ST_NEXT;
}

// Rounds towards zero; what is out of range becomes the nearest integer that there is, and NaN 0.
INLINE int32_t truncated(float v)
{
    int32_t r = (int32_t)(v >= -0x1p31f && v < 0x1p31f ? v : 0);
    return v >= 0x1p31f ? INT32_MAX : v < -0x1p31f ? INT32_MIN : r;
}

INLINE uint64_t narrow(double v) { return v == v ? of_f32((float)v) : 0x7fffffff; }

LANES_BEGIN
WORDS1(s32_to_f32, u32_word, (uint32_t)of_f32((float)(int32_t)a))
WORDS1(u32_to_f32, u32_word, (uint32_t)of_f32((float)a))
WORDS1(f32_to_s32, u32_word, (uint32_t)truncated(as_f32(a)))
LANES1(s32_to_f64, int32_t, of_f64(a))
LANES1(u32_to_f64, uint32_t, of_f64(a))
LANES1(f64_to_f32, uint64_t, narrow(as_f64(a)))
LANES1(f32_to_f64, uint64_t, of_f64(as_f32(a)))
LANES_END

// Between f16 and f32, without modifiers. NaN becomes the NaN of the hardware.
static step f16_to_f32(warp *w, const insn *in, uint32_t m) { return general(w, in, m); }
static step f32_to_f16(warp *w, const insn *in, uint32_t m) { return general(w, in, m); }

#if HAS_WIDE
WIDE_TARGET static step f16_to_f32_wide(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a);
    FOR_LANES (m) {
        float f = _cvtsh_ss((uint16_t)A[l]);
        d[l] = f == f ? of_f32(f) : 0x7fffffff;
    }
    return ST_NEXT;
}
ARE_TWINS(f16_to_f32)

WIDE_TARGET static step f32_to_f16_wide(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a);
    FOR_LANES (m) {
        float f = as_f32(A[l]);
        d[l] = f == f ? _cvtss_sh(f, _MM_FROUND_TO_NEAREST_INT) : 0x7fff;
    }
    return ST_NEXT;
}
ARE_TWINS(f32_to_f16)
#endif

// ---- two floats into one register, and back; fp8 and tf32

static step pack_halves(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a), *B = src(w, in->b);
    ptx_type to = in->type == T_F16X2 ? T_F16 : T_BF16;
    FOR_LANES (m) {
        uint64_t hi = store_float(load_float(A[l], T_F32, in), to, in);
        uint64_t lo = store_float(load_float(B[l], T_F32, in), to, in);
        d[l] = hi << 16 | lo;
    }
    return ST_NEXT;
}

static step to_fp8(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a), *B = in->b == NO_OPERAND ? A : src(w, in->b);
    int e5m2 = in->type == T_E5M2X2, relu = (in->flags & F_RELU) != 0;
    FOR_LANES (m) {
        double hi;
        double lo;
        if (in->stype == T_F16X2) {
            hi = half_to_double((uint16_t)(A[l] >> 16));
            lo = half_to_double((uint16_t)A[l]);
        } else {
            hi = as_f32(A[l]);
            lo = as_f32(B[l]);
        }
        d[l] = (uint64_t)ptx_fp8_from_double(hi, e5m2, relu) << 8 | ptx_fp8_from_double(lo, e5m2, relu);
    }
    return ST_NEXT;
}

static step from_fp8(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a);
    int e5m2 = in->stype == T_E5M2X2;
    FOR_LANES (m) {
        uint64_t hi = store_float(ptx_fp8_to_double((uint8_t)(A[l] >> 8), e5m2), T_F16, in);
        uint64_t lo = store_float(ptx_fp8_to_double((uint8_t)A[l], e5m2), T_F16, in);
        d[l] = hi << 16 | lo;
    }
    return ST_NEXT;
}

static step to_tf32(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a);
    FOR_LANES (m) {
        double v = as_f32(A[l]);
        if (in->flags & F_RELU && v < 0)
            v = 0;
        d[l] = ptx_tf32_from_float(v, (ptx_round)in->round);
    }
    return ST_NEXT;
}

// The caller has set in's type, stype, round, flags and operands.
exec_fn ptx_cvt_handler(const insn *in)
{
    ptx_type to = (ptx_type)in->type, from = (ptx_type)in->stype;
    kind kt = kind_of(to), kf = kind_of(from);
    if ((to == T_F16X2 || to == T_BF16X2) && from == T_F32)
        return in->b == NO_OPERAND ? NULL : pack_halves;
    if (to == T_E4M3X2 || to == T_E5M2X2)
        return (from == T_F32 && in->b != NO_OPERAND) || (from == T_F16X2 && in->b == NO_OPERAND) ? to_fp8 : NULL;
    if ((from == T_E4M3X2 || from == T_E5M2X2) && to == T_F16X2)
        return from_fp8;
    if (to == T_TF32 && from == T_F32)
        return to_tf32;
    if (in->b != NO_OPERAND || !kt || !kf)
        return NULL;
    if (kt != K_FLOAT && kf != K_FLOAT)
        return in->flags & F_SAT ? int_to_int_sat : extend[bits_of(from) <= bits_of(to) ? from : to];
    if (!in->flags && (in->round == R_RN || (in->round == R_NONE && kf == K_FLOAT))) {
        if (to == T_F32 && from == T_S32)
            return s32_to_f32;
        if (to == T_F32 && from == T_U32)
            return u32_to_f32;
        if (to == T_F64 && from == T_S32)
            return s32_to_f64;
        if (to == T_F64 && from == T_U32)
            return u32_to_f64;
        if (to == T_F32 && from == T_F64)
            return f64_to_f32;
        if (to == T_F64 && from == T_F32)
            return f32_to_f64;
    }
    if (to == T_F32 && from == T_F16 && !in->flags && in->round == R_NONE)
        return f16_to_f32;
    if (to == T_F16 && from == T_F32 && !in->flags && in->round == R_RN)
        return f32_to_f16;
    if (to == T_S32 && from == T_F32 && !in->flags && in->round == R_RZI)
        return f32_to_s32;
    return general;
}
