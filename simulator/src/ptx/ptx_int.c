// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Integer arithmetic.
#include "ptx/ptx_int.h"

#include "ptx/ptx_lanes.h"

typedef unsigned __int128 u128;
typedef __int128 s128;

#define UNARY(name, T, expr) \
    static step name(warp *w, const insn *in, uint32_t m) \
    { \
        uint64_t *d = dst(w, in->d); \
        const uint64_t *A = src(w, in->a); \
        EACH(T a = (T)A[l]; d[l] = (uint64_t)(expr);); \
        return ST_NEXT; \
    }

#define BINARY(name, T, expr) \
    static step name(warp *w, const insn *in, uint32_t m) \
    { \
        uint64_t *d = dst(w, in->d); \
        const uint64_t *A = src(w, in->a), *B = src(w, in->b); \
        EACH(T a = (T)A[l]; T b = (T)B[l]; d[l] = (uint64_t)(expr);); \
        return ST_NEXT; \
    }

#define TERNARY(name, T, expr) \
    static step name(warp *w, const insn *in, uint32_t m) \
    { \
        uint64_t *d = dst(w, in->d); \
        const uint64_t *A = src(w, in->a), *B = src(w, in->b), *C = src(w, in->c); \
        EACH(T a = (T)A[l]; T b = (T)B[l]; uint64_t c = C[l]; d[l] = (uint64_t)(expr);); \
        return ST_NEXT; \
    }

// ---- the common ones

LANES_BEGIN

// Addition and the like do not depend on the width: 64-bit results are right in their low bits.
LANES2(add_w, uint64_t, uint64_t, a + b)
LANES2(sub_w, uint64_t, uint64_t, a - b)
LANES2(mul_w, uint64_t, uint64_t, a *b)
LANES3(mad_w, uint64_t, uint64_t, uint64_t, a *b + c)
LANES1(neg_w, uint64_t, 0 - a)

WORDS2(mul_32, u32_word, a *b)
WORDS3(mad_32, u32_word, a *b + c)
WORDS2(min_u32, u32_word, a < b ? a : b)
WORDS2(max_u32, u32_word, a > b ? a : b)
WORDS2(min_s32, s32_word, a < b ? a : b)
WORDS2(max_s32, s32_word, a > b ? a : b)

LANES_END

// ---- the others

static inline int64_t clamp32(int64_t v) { return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v; }
BINARY(add_sat, int32_t, clamp32((int64_t)a + b))
BINARY(sub_sat, int32_t, clamp32((int64_t)a - b))
TERNARY(mad_hi_sat, int32_t, clamp32((((int64_t)a * b) >> 32) + (int32_t)c))

BINARY(mul_hi_u16, uint16_t, (uint32_t)a *b >> 16)
BINARY(mul_hi_s16, int16_t, (int32_t)a *b >> 16)
BINARY(mul_hi_u32, uint32_t, (uint64_t)a *b >> 32)
BINARY(mul_hi_s32, int32_t, (int64_t)a *b >> 32)
BINARY(mul_hi_u64, uint64_t, (u128)a *b >> 64)
BINARY(mul_hi_s64, int64_t, (s128)a *b >> 64)
BINARY(mul_wide_u16, uint16_t, (uint32_t)a *b)
BINARY(mul_wide_s16, int16_t, (int32_t)a *b)
BINARY(mul_wide_u32, uint32_t, (uint64_t)a *b)
BINARY(mul_wide_s32, int32_t, (int64_t)a *b)
TERNARY(mad_hi_u16, uint16_t, ((uint32_t)a * b >> 16) + c)
TERNARY(mad_hi_s16, int16_t, (uint64_t)((int32_t)a * b >> 16) + c)
TERNARY(mad_hi_u32, uint32_t, ((uint64_t)a * b >> 32) + c)
TERNARY(mad_hi_s32, int32_t, (uint64_t)((int64_t)a * b >> 32) + c)
TERNARY(mad_hi_u64, uint64_t, (uint64_t)((u128)a * b >> 64) + c)
TERNARY(mad_hi_s64, int64_t, (uint64_t)((s128)a * b >> 64) + c)
TERNARY(mad_wide_u16, uint16_t, (uint32_t)a *b + c)
TERNARY(mad_wide_s16, int16_t, (uint64_t)((int32_t)a * b) + c)
TERNARY(mad_wide_u32, uint32_t, (uint64_t)a *b + c)
TERNARY(mad_wide_s32, int32_t, (uint64_t)((int64_t)a * b) + c)

LANES_BEGIN
WIDE3(mul_hi_u32, _mm256_srli_epi64(_mm256_mul_epu32(a, b), 32))
WIDE3(mul_hi_s32, _mm256_srli_epi64(_mm256_mul_epi32(a, b), 32))
WIDE3(mul_wide_u32, _mm256_mul_epu32(a, b))
WIDE3(mul_wide_s32, _mm256_mul_epi32(a, b))
WIDE3(mad_wide_u32, _mm256_add_epi64(_mm256_mul_epu32(a, b), c))
WIDE3(mad_wide_s32, _mm256_add_epi64(_mm256_mul_epi32(a, b), c))
LANES_END

#define U24(x) ((uint32_t)(x) & 0xffffff)
#define S24(x) ((int64_t)((int32_t)((uint32_t)(x) << 8) >> 8))
BINARY(mul24_lo_u, uint32_t, (uint32_t)((uint64_t)U24(a) * U24(b)))
BINARY(mul24_lo_s, uint32_t, (uint32_t)(S24(a) * S24(b)))
BINARY(mul24_hi_u, uint32_t, (uint32_t)((uint64_t)U24(a) * U24(b) >> 16))
BINARY(mul24_hi_s, uint32_t, (uint32_t)(S24(a) * S24(b) >> 16))
TERNARY(mad24_lo_u, uint32_t, (uint32_t)((uint64_t)U24(a) * U24(b)) + c)
TERNARY(mad24_lo_s, uint32_t, (uint32_t)(S24(a) * S24(b)) + c)
TERNARY(mad24_hi_u, uint32_t, (uint32_t)((uint64_t)U24(a) * U24(b) >> 16) + c)
TERNARY(mad24_hi_s, uint32_t, (uint32_t)(S24(a) * S24(b) >> 16) + c)
TERNARY(mad24_hi_sat, uint32_t, clamp32((int32_t)(S24(a) * S24(b) >> 16) + (int64_t)(int32_t)c))

// The hardware's division by zero: all ones for a quotient, the dividend for a remainder.
#define DIVISION(U, u, S, s, MIN) \
    BINARY(div_##u, U, b ? a / b : (U) ~(U)0) \
    BINARY(rem_##u, U, b ? a % b : a) \
    BINARY(div_##s, S, b == 0 ? (S) - 1 : b == -1 ? (S)(0 - (U)a) : a / b) \
    BINARY(rem_##s, S, b == 0 ? a : b == -1 ? 0 : a % b)
DIVISION(uint16_t, u16, int16_t, s16, )
DIVISION(uint32_t, u32, int32_t, s32, )
DIVISION(uint64_t, u64, int64_t, s64, )

#define ORDERED(T, t) \
    BINARY(min_##t, T, a < b ? a : b) \
    BINARY(max_##t, T, a > b ? a : b)
ORDERED(uint16_t, u16)
ORDERED(int16_t, s16)
ORDERED(uint64_t, u64)
ORDERED(int64_t, s64)
BINARY(min_relu, int32_t, (a < b ? a : b) < 0 ? 0 : (a < b ? a : b))
BINARY(max_relu, int32_t, (a > b ? a : b) < 0 ? 0 : (a > b ? a : b))

#define ABSOLUTE(U, u, S, s) \
    UNARY(abs_##s, S, a < 0 ? (U)(0 - (U)a) : (U)a) \
    TERNARY(sad_##u, U, (a > b ? a - b : b - a) + c) \
    TERNARY(sad_##s, S, (a > b ? (U)a - (U)b : (U)b - (U)a) + c)
ABSOLUTE(uint16_t, u16, int16_t, s16)
ABSOLUTE(uint32_t, u32, int32_t, s32)
ABSOLUTE(uint64_t, u64, int64_t, s64)

// Two 16-bit halves at once.
#define HALVES(name, T, expr) \
    static inline uint32_t name##_half(T a, T b) { return (uint16_t)(expr); } \
    BINARY(name, uint32_t, (name##_half((T)a, (T)b) | name##_half((T)(a >> 16), (T)(b >> 16)) << 16))
HALVES(add_x2, uint16_t, a + b)
HALVES(sub_x2, uint16_t, a - b)
HALVES(min_u16x2, uint16_t, a < b ? a : b)
HALVES(max_u16x2, uint16_t, a > b ? a : b)
HALVES(min_s16x2, int16_t, a < b ? a : b)
HALVES(max_s16x2, int16_t, a > b ? a : b)
HALVES(min_s16x2_relu, int16_t, (a < b ? a : b) < 0 ? 0 : a < b ? a : b)
HALVES(max_s16x2_relu, int16_t, (a > b ? a : b) < 0 ? 0 : a > b ? a : b)
UNARY(neg_x2, uint32_t, (((0 - a) & 0xffff) | ((0 - (a & 0xffff0000)) & 0xffff0000)))

// ---- extended precision: the condition code is predicate 0 of the frame
//
// It holds the carry out of the adder. A subtraction is a + ~b + carry, so after it the flag is the inverted
// borrow; the compiler's 128-bit division reads it with addc after subc and counts on that.
#define CARRY(name, U, WIDE, bits) \
    static step name(warp *w, const insn *in, uint32_t m) \
    { \
        uint64_t *d = dst(w, in->d); \
        const uint64_t *A = src(w, in->a), *B = src(w, in->b), *C = in->c == NO_OPERAND ? NULL : src(w, in->c); \
        uint32_t flags = w->p[0], out = 0; \
        for (uint32_t left = m; left; left &= left - 1) { \
            unsigned l = (unsigned)__builtin_ctz(left); \
            U a = (U)A[l], b = (U)B[l]; \
            WIDE sum; \
            if (C) { \
                WIDE product = in->type == T_S32 || in->type == T_S64 ? (WIDE)signed_##name(a, b) : (WIDE)a * b; \
                a = in->flags & F_HI ? (U)(product >> bits) : (U)product; \
                b = (U)C[l]; \
            } \
            if (in->sub) { \
                b = (U)~b; \
                sum = (WIDE)a + b + (in->flags & F_CC_IN ? flags >> l & 1 : 1); \
            } else { \
                sum = (WIDE)a + b + (in->flags & F_CC_IN ? flags >> l & 1 : 0); \
            } \
            d[l] = (U)sum; \
            out |= (uint32_t)(sum >> bits & 1) << l; \
        } \
        if (in->flags & F_CC_OUT) \
            w->p[0] = (flags & ~m) | out; \
        return ST_NEXT; \
    }
static inline int64_t signed_carry32(uint32_t a, uint32_t b) { return (int64_t)(int32_t)a * (int32_t)b; }
static inline s128 signed_carry64(uint64_t a, uint64_t b) { return (s128)(int64_t)a * (int64_t)b; }
CARRY(carry32, uint32_t, uint64_t, 32)
CARRY(carry64, uint64_t, u128, 64)

exec_fn ptx_int_carry(ptx_type t)
{
    return t == T_U32 || t == T_S32 || t == T_B32 ? carry32 : t == T_U64 || t == T_S64 ? carry64 : NULL;
}

#define BOTH(f) [T_U16] = f, [T_S16] = f, [T_U32] = f, [T_S32] = f, [T_U64] = f, [T_S64] = f
#define EVERY(p) \
    [T_U16] = p##u16, [T_S16] = p##s16, [T_U32] = p##u32, [T_S32] = p##s32, [T_U64] = p##u64, [T_S64] = p##s64
#define NARROW(p) [T_U16] = p##u16, [T_S16] = p##s16, [T_U32] = p##u32, [T_S32] = p##s32
#define LOW_HALF(f, f32) [T_U16] = f, [T_S16] = f, [T_U32] = f32, [T_S32] = f32, [T_U64] = f, [T_S64] = f

static const exec_fn table[INT_OPS][T_COUNT] = {
    [INT_ADD] = {BOTH(add_w), [T_U16X2] = add_x2, [T_S16X2] = add_x2},
    [INT_SUB] = {BOTH(sub_w), [T_U16X2] = sub_x2, [T_S16X2] = sub_x2},
    [INT_ADD_SAT] = {[T_S32] = add_sat},
    [INT_SUB_SAT] = {[T_S32] = sub_sat},
    [INT_MUL_LO] = {LOW_HALF(mul_w, mul_32)},
    [INT_MUL_HI] = {EVERY(mul_hi_)},
    [INT_MUL_WIDE] = {NARROW(mul_wide_)},
    [INT_MAD_LO] = {LOW_HALF(mad_w, mad_32)},
    [INT_MAD_HI] = {EVERY(mad_hi_)},
    [INT_MAD_WIDE] = {NARROW(mad_wide_)},
    [INT_MAD_HI_SAT] = {[T_S32] = mad_hi_sat},
    [INT_MUL24_LO] = {[T_U32] = mul24_lo_u, [T_S32] = mul24_lo_s},
    [INT_MUL24_HI] = {[T_U32] = mul24_hi_u, [T_S32] = mul24_hi_s},
    [INT_MAD24_LO] = {[T_U32] = mad24_lo_u, [T_S32] = mad24_lo_s},
    [INT_MAD24_HI] = {[T_U32] = mad24_hi_u, [T_S32] = mad24_hi_s},
    [INT_MAD24_HI_SAT] = {[T_S32] = mad24_hi_sat},
    [INT_DIV] = {EVERY(div_)},
    [INT_REM] = {EVERY(rem_)},
    [INT_MIN] = {EVERY(min_), [T_U16X2] = min_u16x2, [T_S16X2] = min_s16x2},
    [INT_MAX] = {EVERY(max_), [T_U16X2] = max_u16x2, [T_S16X2] = max_s16x2},
    [INT_MIN_RELU] = {[T_S32] = min_relu, [T_S16X2] = min_s16x2_relu},
    [INT_MAX_RELU] = {[T_S32] = max_relu, [T_S16X2] = max_s16x2_relu},
    [INT_NEG] = {[T_S16] = neg_w, [T_S32] = neg_w, [T_S64] = neg_w, [T_S16X2] = neg_x2},
    [INT_ABS] = {[T_S16] = abs_s16, [T_S32] = abs_s32, [T_S64] = abs_s64},
    [INT_SAD] = {EVERY(sad_)},
};

exec_fn ptx_int_handler(int_op op, ptx_type type) { return table[op][type]; }
