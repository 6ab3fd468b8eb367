// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Comparisons and selections: setp, set, selp, slct.
//
// Each comparison finds how its operands relate (less, equal, greater, unordered); in->imm is the set of
// relations that the instruction accepts, so every comparison of a type is one function.
#include "ptx/ptx_cmp.h"

#include <math.h>

#include "ptx/ptx_float.h"
#include "ptx/ptx_lanes.h"

// Returns the lanes of m for which the comparison holds.
typedef uint32_t (*compare_fn)(const warp *w, const insn *in, uint32_t m);

#define INTEGER(name, T) \
    static uint32_t name(const warp *w, const insn *in, uint32_t m) \
    { \
        const uint64_t *A = src(w, in->a), *B = src(w, in->b); \
        uint32_t accept = (uint32_t)in->imm, out = 0; \
        FOR_LANES (m) { \
            T a = (T)A[l]; \
            T b = (T)B[l]; \
            unsigned rel = a < b ? 0 : a == b ? 1 : 2; \
            out |= (accept >> rel & 1) << l; \
        } \
        return out; \
    }
INTEGER(cmp_u16, uint16_t)
INTEGER(cmp_s16, int16_t)
INTEGER(cmp_u32, uint32_t)
INTEGER(cmp_s32, int32_t)
INTEGER(cmp_u64, uint64_t)
INTEGER(cmp_s64, int64_t)

static inline double flush32(double v, const insn *in) { return in->flags & F_FTZ && fabs(v) < 0x1p-126 ? 0 : v; }

#define FLOATING(name, load) \
    static uint32_t name(const warp *w, const insn *in, uint32_t m) \
    { \
        const uint64_t *A = src(w, in->a), *B = src(w, in->b); \
        uint32_t accept = (uint32_t)in->imm, out = 0; \
        FOR_LANES (m) { \
            double a = load(A[l]); \
            double b = load(B[l]); \
            unsigned rel = a < b ? 0 : a == b ? 1 : a > b ? 2 : 3; \
            out |= (accept >> rel & 1) << l; \
        } \
        return out; \
    }
#define LOAD32(v) flush32(as_f32(v), in)
#define LOAD_HALF(v) half_to_double((uint16_t)(v))
#define LOAD_BF16(v) bf16_to_double((uint16_t)(v))
FLOATING(cmp_f32, LOAD32)
FLOATING(cmp_f64, as_f64)
FLOATING(cmp_f16, LOAD_HALF)
FLOATING(cmp_bf16, LOAD_BF16)
#define LOAD_HALF_HI(v) half_to_double((uint16_t)((v) >> 16))
#define LOAD_BF16_HI(v) bf16_to_double((uint16_t)((v) >> 16))
FLOATING(cmp_f16_hi, LOAD_HALF_HI)
FLOATING(cmp_bf16_hi, LOAD_BF16_HI)

static const compare_fn compare[T_COUNT] = {
    [T_B16] = cmp_u16, [T_B32] = cmp_u32, [T_B64] = cmp_u64,   [T_U16] = cmp_u16,   [T_U32] = cmp_u32,
    [T_U64] = cmp_u64, [T_S16] = cmp_s16, [T_S32] = cmp_s32,   [T_S64] = cmp_s64,   [T_F32] = cmp_f32,
    [T_F64] = cmp_f64, [T_F16] = cmp_f16, [T_BF16] = cmp_bf16, [T_F16X2] = cmp_f16, [T_BF16X2] = cmp_bf16,
};

static uint32_t combine(uint32_t r, unsigned how, uint32_t c)
{
    switch (how) {
    case BOOL_AND: return r & c;
    case BOOL_OR: return r | c;
    case BOOL_XOR: return r ^ c;
    default: return r;
    }
}

static inline void set_both(warp *w, const insn *in, uint32_t m, uint32_t r)
{
    uint32_t c = in->c == NO_OPERAND ? 0 : pred(w, in->c, in->flags & F_NEG_C);
    set_pred(w, in->d, m, combine(r, in->sub, c));
    set_pred(w, in->e, m, combine(~r, in->sub, c));
}

static step setp(warp *w, const insn *in, uint32_t m)
{
    set_both(w, in, m, compare[in->stype](w, in, m));
    return ST_NEXT;
}

LANES_BEGIN

// Every element has the bit of its lane, or none, if `relation` holds for it; it is one of four masks.
#define SETP(name, E, T, count, relation) \
    INLINE step name##_body(warp *w, const insn *in, uint32_t m, const int wide) \
    { \
        typedef E element __attribute__((may_alias)); \
        const element *A = (const element *)src(w, in->a), *B = (const element *)src(w, in->b); \
        const T *bit = (const T *)ptx_lane_bit64; \
        const T less = -(T)(in->imm & 1), equal = -(T)(in->imm >> 1 & 1), greater = -(T)(in->imm >> 2 & 1), \
                unordered = -(T)(in->imm >> 3 & 1); \
        T out = 0; \
        (void)unordered; \
        if (in->flags & F_FTZ) \
            return setp(w, in, m); \
        if (m != FULL && are_few(m, wide)) \
            for (uint32_t left = m; left; left &= left - 1) { \
                unsigned i = (unsigned)__builtin_ctz(left) * (count / WARP); \
                E a = A[i], b = B[i]; \
                out |= (relation) & bit[i]; \
            } \
        else \
            for (unsigned i = 0; i < count; i++) { \
                E a = A[i], b = B[i]; \
                out |= (relation) & bit[i]; \
            } \
        set_both(w, in, m, (uint32_t)out); \
        return ST_NEXT; \
    } \
    TWINS(name)
#define ORDERED a < b ? less : a == b ? equal : greater
#define PARTLY_ORDERED a<b ? less : a == b ? equal : a> b ? greater : unordered
SETP(setp_u32, uint32_t, u32_word, 2 * WARP, ORDERED)
SETP(setp_s32, int32_t, u32_word, 2 * WARP, ORDERED)
SETP(setp_u64, uint64_t, uint64_t, WARP, ORDERED)
SETP(setp_s64, int64_t, uint64_t, WARP, ORDERED)
SETP(setp_f32, float, u32_word, 2 * WARP, PARTLY_ORDERED)
SETP(setp_f64, double, uint64_t, WARP, PARTLY_ORDERED)

INLINE step selp_body(warp *w, const insn *in, uint32_t m, const int wide)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a), *B = src(w, in->b);
    uint32_t c = pred(w, in->c, in->flags & F_NEG_C);
    EACH_LANE(o[l] = (c & ptx_lane_bit64[l]) != 0 ? A[l] : B[l];);
    return ST_NEXT;
}
TWINS(selp)

LANES_END

// On a pair type the two destinations are the two halves.
static step setp_pair(warp *w, const insn *in, uint32_t m)
{
    uint32_t lo = compare[in->stype](w, in, m);
    uint32_t hi = in->stype == T_F16X2 ? cmp_f16_hi(w, in, m) : cmp_bf16_hi(w, in, m);
    uint32_t c = in->c == NO_OPERAND ? 0 : pred(w, in->c, in->flags & F_NEG_C);
    set_pred(w, in->d, m, combine(lo, in->sub, c));
    set_pred(w, in->e, m, combine(hi, in->sub, c));
    return ST_NEXT;
}

exec_fn ptx_setp_handler(ptx_type type)
{
    if (type == T_F16X2 || type == T_BF16X2)
        return setp_pair;
    static const exec_fn common[T_COUNT] = {
        [T_B32] = setp_u32, [T_U32] = setp_u32, [T_S32] = setp_s32, [T_B64] = setp_u64,
        [T_U64] = setp_u64, [T_S64] = setp_s64, [T_F32] = setp_f32, [T_F64] = setp_f64,
    };
    if (common[type])
        return common[type];
    return compare[type] ? setp : NULL;
}

static uint64_t truth(ptx_type type, int yes)
{
    if (!yes)
        return 0;
    switch (type) {
    case T_F32: return of_f32(1);
    case T_F16: return 0x3c00;
    case T_BF16: return 0x3f80;
    default: return 0xffffffffffffffffu;
    }
}

static step set(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    uint32_t c = in->c == NO_OPERAND ? 0 : pred(w, in->c, in->flags & F_NEG_C);
    uint32_t r = combine(compare[in->stype](w, in, m), in->sub, c);
    FOR_LANES (m) {
        d[l] = truth((ptx_type)in->type, r >> l & 1);
    }
    return ST_NEXT;
}

static step set_pair(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    uint32_t c = in->c == NO_OPERAND ? 0 : pred(w, in->c, in->flags & F_NEG_C);
    uint32_t lo = combine(compare[in->stype](w, in, m), in->sub, c);
    uint32_t hi = combine(in->stype == T_F16X2 ? cmp_f16_hi(w, in, m) : cmp_bf16_hi(w, in, m), in->sub, c);
    ptx_type t = in->type == T_F16X2 ? T_F16 : in->type == T_BF16X2 ? T_BF16 : T_U16;
    FOR_LANES (m) {
        d[l] = (truth(t, lo >> l & 1) & 0xffff) | (truth(t, hi >> l & 1) & 0xffff) << 16;
    }
    return ST_NEXT;
}

exec_fn ptx_set_handler(ptx_type type)
{
    if (type == T_F16X2 || type == T_BF16X2)
        return set_pair;
    return compare[type] ? set : NULL;
}

static step slct_s32(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a), *B = src(w, in->b), *C = src(w, in->c);
    EACH(d[l] = (int32_t)C[l] >= 0 ? A[l] : B[l];);
    return ST_NEXT;
}

static step slct_f32(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a), *B = src(w, in->b), *C = src(w, in->c);
    FOR_LANES (m) {
        d[l] = flush32(as_f32(C[l]), in) >= 0 ? A[l] : B[l];
    }
    return ST_NEXT;
}

exec_fn ptx_selp_handler(void) { return selp; }
exec_fn ptx_slct_handler(ptx_type by) { return by == T_S32 ? slct_s32 : by == T_F32 ? slct_f32 : NULL; }
