// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Bit instructions: logic, shifts, fields, permutations, dot products.
#include "ptx/ptx_int.h"
#include "ptx/ptx_lanes.h"

#define UNARY(name, T, expr) \
    static step name(warp *w, const insn *in, uint32_t m) \
    { \
        uint64_t *d = dst(w, in->d); \
        const uint64_t *A = src(w, in->a); \
        EACH(T a = (T)A[l]; d[l] = (uint64_t)(expr);); \
        return ST_NEXT; \
    }

#define BINARY(name, T, U, expr) \
    static step name(warp *w, const insn *in, uint32_t m) \
    { \
        uint64_t *d = dst(w, in->d); \
        const uint64_t *A = src(w, in->a), *B = src(w, in->b); \
        EACH(T a = (T)A[l]; U b = (U)B[l]; d[l] = (uint64_t)(expr);); \
        return ST_NEXT; \
    }

#define TERNARY(name, T, U, V, expr) \
    static step name(warp *w, const insn *in, uint32_t m) \
    { \
        uint64_t *d = dst(w, in->d); \
        const uint64_t *A = src(w, in->a), *B = src(w, in->b), *C = src(w, in->c); \
        EACH(T a = (T)A[l]; U b = (U)B[l]; V c = (V)C[l]; d[l] = (uint64_t)(expr);); \
        return ST_NEXT; \
    }

// ---- the common ones

LANES_BEGIN

LANES2(and_w, uint64_t, uint64_t, a &b)
LANES2(or_w, uint64_t, uint64_t, a | b)
LANES2(xor_w, uint64_t, uint64_t, a ^ b)
LANES1(not_w, uint64_t, ~a)

// Shift amounts beyond the width are clamped to it.
WORDS2(shl_32, u32_word, b > 31 ? 0 : a << (b & 31))
WORDS2(shr_u32, u32_word, b > 31 ? 0 : a >> (b & 31))
WORDS2(shr_s32, s32_word, a >> ((uint32_t)b > 31 ? 31 : b))
LANES2(shl_64, uint64_t, uint32_t, b > 63 ? 0 : a << (b & 63))
LANES2(shr_u64, uint64_t, uint32_t, b > 63 ? 0 : a >> (b & 63))

INLINE step lop3_body(warp *w, const insn *in, uint32_t m, const int wide)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a), *B = src(w, in->b), *C = src(w, in->c);
    uint64_t t[8];
    for (unsigned i = 0; i < 8; i++)
        t[i] = in->imm >> i & 1 ? ~(uint64_t)0 : 0;
    EACH_LANE(uint64_t a = A[l], b = B[l], c = C[l];
              uint64_t none = (t[0] & ~c) | (t[1] & c), only_b = (t[2] & ~c) | (t[3] & c);
              uint64_t only_a = (t[4] & ~c) | (t[5] & c), both = (t[6] & ~c) | (t[7] & c);
              o[l] = (((none & ~b) | (only_b & b)) & ~a) | (((only_a & ~b) | (both & b)) & a););
    return ST_NEXT;
}
TWINS(lop3)

LANES_END

// ---- the others

UNARY(cnot_16, uint16_t, a == 0)
UNARY(cnot_32, uint32_t, a == 0)
UNARY(cnot_64, uint64_t, a == 0)

static step and_p(warp *w, const insn *in, uint32_t m)
{
    set_pred(w, in->d, m, pred(w, in->a, in->flags & F_NEG_A) & pred(w, in->b, in->flags & F_NEG_C));
    return ST_NEXT;
}

static step or_p(warp *w, const insn *in, uint32_t m)
{
    set_pred(w, in->d, m, pred(w, in->a, in->flags & F_NEG_A) | pred(w, in->b, in->flags & F_NEG_C));
    return ST_NEXT;
}

static step xor_p(warp *w, const insn *in, uint32_t m)
{
    set_pred(w, in->d, m, pred(w, in->a, in->flags & F_NEG_A) ^ pred(w, in->b, in->flags & F_NEG_C));
    return ST_NEXT;
}

static step not_p(warp *w, const insn *in, uint32_t m)
{
    set_pred(w, in->d, m, ~pred(w, in->a, in->flags & F_NEG_A));
    return ST_NEXT;
}

BINARY(shl_16, uint16_t, uint32_t, b > 15 ? 0 : (uint32_t)a << b)
BINARY(shr_u16, uint16_t, uint32_t, b > 15 ? 0 : a >> b)
BINARY(shr_s16, int16_t, uint32_t, a >> (b > 15 ? 15 : b))
BINARY(shr_s64, int64_t, uint32_t, a >> (b > 63 ? 63 : b))

static inline uint64_t funnel(uint32_t lo, uint32_t hi) { return (uint64_t)hi << 32 | lo; }
#define CLAMP32(c) ((c) > 32 ? 32 : (c))
TERNARY(shf_l_wrap, uint32_t, uint32_t, uint32_t, funnel(a, b) << (c & 31) >> 32)
TERNARY(shf_l_clamp, uint32_t, uint32_t, uint32_t, funnel(a, b) << CLAMP32(c) >> 32)
TERNARY(shf_r_wrap, uint32_t, uint32_t, uint32_t, (uint32_t)(funnel(a, b) >> (c & 31)))
TERNARY(shf_r_clamp, uint32_t, uint32_t, uint32_t, (uint32_t)(funnel(a, b) >> CLAMP32(c)))

UNARY(popc_32, uint32_t, __builtin_popcount(a))
UNARY(popc_64, uint64_t, __builtin_popcountll(a))
UNARY(clz_32, uint32_t, a ? __builtin_clz(a) : 32)
UNARY(clz_64, uint64_t, a ? __builtin_clzll(a) : 64)

static inline uint64_t reverse64(uint64_t v)
{
    v = (v >> 1 & 0x5555555555555555u) | (v & 0x5555555555555555u) << 1;
    v = (v >> 2 & 0x3333333333333333u) | (v & 0x3333333333333333u) << 2;
    v = (v >> 4 & 0x0f0f0f0f0f0f0f0fu) | (v & 0x0f0f0f0f0f0f0f0fu) << 4;
    return __builtin_bswap64(v);
}
UNARY(brev_32, uint32_t, reverse64(a) >> 32)
UNARY(brev_64, uint64_t, reverse64(a))

static uint64_t extract(uint64_t a, uint32_t b, uint32_t c, unsigned width, int is_signed)
{
    unsigned pos = b & 255, len = c & 255;
    if (width == 32)
        a &= 0xffffffffu;
    uint64_t field = pos < width ? a >> pos : 0;
    unsigned top = pos + len - 1 < width ? pos + len - 1 : width - 1;
    int sign = is_signed && len && (a >> top & 1);
    unsigned have = pos >= width ? 0 : len < width - pos ? len : width - pos;
    uint64_t mask = have >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << have) - 1;
    return (field & mask) | (sign ? ~mask : 0);
}

static uint64_t insert(uint64_t a, uint64_t b, uint32_t c, uint32_t e, unsigned width)
{
    unsigned pos = c & 255, len = e & 255;
    if (pos >= width)
        return b;
    if (len > width - pos)
        len = width - pos;
    uint64_t mask = (len >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << len) - 1) << pos;
    return (b & ~mask) | (a << pos & mask);
}

TERNARY(bfe_u32, uint64_t, uint32_t, uint32_t, extract(a, b, c, 32, 0))
TERNARY(bfe_s32, uint64_t, uint32_t, uint32_t, extract(a, b, c, 32, 1))
TERNARY(bfe_u64, uint64_t, uint32_t, uint32_t, extract(a, b, c, 64, 0))
TERNARY(bfe_s64, uint64_t, uint32_t, uint32_t, extract(a, b, c, 64, 1))

static step bfi(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a), *B = src(w, in->b), *C = src(w, in->c), *E = src(w, in->e);
    unsigned width = in->type == T_B32 ? 32 : 64;
    FOR_LANES (m) {
        d[l] = insert(A[l], B[l], (uint32_t)C[l], (uint32_t)E[l], width);
    }
    return ST_NEXT;
}

static uint32_t find_msb(uint64_t a, unsigned width, int is_signed, int shift)
{
    if (is_signed) {
        int64_t s = width == 32 ? (int32_t)a : (int64_t)a;
        a = (uint64_t)(s < 0 ? ~s : s);
    } else if (width == 32) {
        a &= 0xffffffffu;
    }
    if (!a)
        return 0xffffffffu;
    unsigned bit = 63 - (unsigned)__builtin_clzll(a);
    return shift ? width - 1 - bit : bit;
}
UNARY(bfind_u32, uint64_t, find_msb(a, 32, 0, in->sub))
UNARY(bfind_s32, uint64_t, find_msb(a, 32, 1, in->sub))
UNARY(bfind_u64, uint64_t, find_msb(a, 64, 0, in->sub))
UNARY(bfind_s64, uint64_t, find_msb(a, 64, 1, in->sub))

static uint32_t find_nth(uint32_t mask, uint32_t base, int32_t offset)
{
    if (base > 31)
        return 0xffffffffu;
    if (offset == 0)
        return mask >> base & 1 ? base : 0xffffffffu;
    int inc = offset > 0 ? 1 : -1;
    int64_t count = (offset > 0 ? (int64_t)offset : -(int64_t)offset) - 1;
    for (int pos = (int)base; pos >= 0 && pos < 32; pos += inc)
        if (mask >> pos & 1 && count-- == 0)
            return (uint32_t)pos;
    return 0xffffffffu;
}
TERNARY(fns, uint32_t, uint32_t, int32_t, find_nth(a, b, c))

static inline uint32_t bit_mask(uint32_t a, uint32_t b, int clamp)
{
    uint32_t from = a & 31, sum = from + (b & 31);
    if (clamp && a >= 32)
        return 0;
    uint32_t mask = FULL << from;
    if (sum >= 32 || (clamp && b >= 32))
        return mask;
    return mask & ~(FULL << sum);
}
BINARY(bmsk_wrap, uint32_t, uint32_t, bit_mask(a, b, 0))
BINARY(bmsk_clamp, uint32_t, uint32_t, bit_mask(a, b, 1))

static inline uint32_t extend(uint32_t a, uint32_t b, int is_signed, int clamp)
{
    uint32_t n = b & 31, mask = clamp && b >= 32 ? 0 : FULL << n;
    uint32_t sign = is_signed && n && !(clamp && b >= 32) && (a >> (n - 1) & 1) ? FULL : 0;
    return (a & ~mask) | (sign & mask);
}
BINARY(szext_wrap_u, uint32_t, uint32_t, extend(a, b, 0, 0))
BINARY(szext_wrap_s, uint32_t, uint32_t, extend(a, b, 1, 0))
BINARY(szext_clamp_u, uint32_t, uint32_t, extend(a, b, 0, 1))
BINARY(szext_clamp_s, uint32_t, uint32_t, extend(a, b, 1, 1))

// in->sub: 0, or which special mode
enum { PRMT_DEFAULT, PRMT_F4E, PRMT_B4E, PRMT_RC8, PRMT_ECL, PRMT_ECR, PRMT_RC16 };
static uint32_t permute(uint64_t bytes, uint32_t c, unsigned mode)
{
    uint32_t out = 0, sel = c & 3;
    for (unsigned i = 0; i < 4; i++) {
        unsigned pick = 0;
        uint32_t byte;
        switch (mode) {
        case PRMT_F4E: pick = sel + i; break;
        case PRMT_B4E: pick = (sel - i) & 7; break;
        case PRMT_RC8: pick = sel; break;
        case PRMT_ECL: pick = i > sel ? i : sel; break;
        case PRMT_ECR: pick = i < sel ? i : sel; break;
        case PRMT_RC16: pick = (sel & 1) * 2 + (i & 1); break;
        default: pick = c >> i * 4 & 7;
        }
        byte = bytes >> pick * 8 & 255;
        if (mode == PRMT_DEFAULT && c >> i * 4 & 8)
            byte = byte & 128 ? 255 : 0;
        out |= byte << i * 8;
    }
    return out;
}
TERNARY(prmt, uint32_t, uint32_t, uint32_t, permute(funnel(a, b), c, in->sub))

// dp4a and dp2a: bytes of b with bytes (dp4a) or halves (dp2a) of a; sub says which half of b dp2a takes.
static step dot4(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a), *B = src(w, in->b), *C = src(w, in->c);
    int sa = in->type == T_S32, sb = in->stype == T_S32;
    FOR_LANES (m) {
        uint32_t sum = (uint32_t)C[l];
        for (unsigned i = 0; i < 4; i++) {
            int32_t x = sa ? (int8_t)(A[l] >> i * 8) : (uint8_t)(A[l] >> i * 8);
            int32_t y = sb ? (int8_t)(B[l] >> i * 8) : (uint8_t)(B[l] >> i * 8);
            sum += (uint32_t)(x * y);
        }
        d[l] = sum;
    }
    return ST_NEXT;
}

static step dot2(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a), *B = src(w, in->b), *C = src(w, in->c);
    int sa = in->type == T_S32, sb = in->stype == T_S32;
    FOR_LANES (m) {
        uint32_t sum = (uint32_t)C[l];
        for (unsigned i = 0; i < 2; i++) {
            int32_t x = sa ? (int16_t)(A[l] >> i * 16) : (uint16_t)(A[l] >> i * 16);
            uint64_t b = B[l] >> (i + (in->sub ? 2 : 0)) * 8;
            int32_t y = sb ? (int8_t)b : (uint8_t)b;
            sum += (uint32_t)x * (uint32_t)y;
        }
        d[l] = sum;
    }
    return ST_NEXT;
}

// vabsdiff4 and vabsdiff2: absolute differences of bytes or halves, in place or (in->sub) summed up onto c.
static step absolute_differences(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a), *B = src(w, in->b), *C = src(w, in->c);
    unsigned bits = 32u / in->n;
    FOR_LANES (m) {
        uint32_t out = 0;
        uint32_t sum = (uint32_t)C[l];
        for (unsigned i = 0; i < in->n; i++) {
            int64_t x = (uint32_t)A[l] << (32 - bits * (i + 1)) >> (32 - bits);
            int64_t y = (uint32_t)B[l] << (32 - bits * (i + 1)) >> (32 - bits);
            if (in->type == T_S32)
                x -= x >> (bits - 1) << bits;
            if (in->stype == T_S32)
                y -= y >> (bits - 1) << bits;
            uint32_t difference = (uint32_t)(x < y ? y - x : x - y);
            sum += difference;
            out |= (difference & ((1u << bits) - 1)) << bits * i;
        }
        d[l] = in->sub ? sum : out;
    }
    return ST_NEXT;
}

exec_fn ptx_video_handler(void) { return absolute_differences; }

exec_fn ptx_dot_product(int ways, ptx_type a, ptx_type b)
{
    if ((a != T_U32 && a != T_S32) || (b != T_U32 && b != T_S32))
        return NULL;
    return ways == 4 ? dot4 : dot2;
}

#define LOGIC(f) [T_B16] = f, [T_B32] = f, [T_B64] = f
static const exec_fn table[BIT_OPS][T_COUNT] = {
    [BIT_AND] = {LOGIC(and_w), [T_PRED] = and_p},
    [BIT_OR] = {LOGIC(or_w), [T_PRED] = or_p},
    [BIT_XOR] = {LOGIC(xor_w), [T_PRED] = xor_p},
    [BIT_NOT] = {LOGIC(not_w), [T_PRED] = not_p},
    [BIT_CNOT] = {[T_B16] = cnot_16, [T_B32] = cnot_32, [T_B64] = cnot_64},
    [BIT_SHL] = {[T_B16] = shl_16, [T_B32] = shl_32, [T_B64] = shl_64},
    [BIT_SHR] = {[T_B16] = shr_u16,
                 [T_B32] = shr_u32,
                 [T_B64] = shr_u64,
                 [T_U16] = shr_u16,
                 [T_U32] = shr_u32,
                 [T_U64] = shr_u64,
                 [T_S16] = shr_s16,
                 [T_S32] = shr_s32,
                 [T_S64] = shr_s64},
    [BIT_POPC] = {[T_B32] = popc_32, [T_B64] = popc_64},
    [BIT_CLZ] = {[T_B32] = clz_32, [T_B64] = clz_64},
    [BIT_BREV] = {[T_B32] = brev_32, [T_B64] = brev_64},
    [BIT_BFE] = {[T_U32] = bfe_u32, [T_S32] = bfe_s32, [T_U64] = bfe_u64, [T_S64] = bfe_s64},
    [BIT_BFI] = {[T_B32] = bfi, [T_B64] = bfi},
    [BIT_BFIND] = {[T_U32] = bfind_u32, [T_S32] = bfind_s32, [T_U64] = bfind_u64, [T_S64] = bfind_s64},
    [BIT_FNS] = {[T_B32] = fns},
    [BIT_LOP3] = {[T_B32] = lop3},
    [BIT_SHF_L_WRAP] = {[T_B32] = shf_l_wrap},
    [BIT_SHF_L_CLAMP] = {[T_B32] = shf_l_clamp},
    [BIT_SHF_R_WRAP] = {[T_B32] = shf_r_wrap},
    [BIT_SHF_R_CLAMP] = {[T_B32] = shf_r_clamp},
    [BIT_BMSK_WRAP] = {[T_B32] = bmsk_wrap},
    [BIT_BMSK_CLAMP] = {[T_B32] = bmsk_clamp},
    [BIT_SZEXT_WRAP] = {[T_U32] = szext_wrap_u, [T_S32] = szext_wrap_s},
    [BIT_SZEXT_CLAMP] = {[T_U32] = szext_clamp_u, [T_S32] = szext_clamp_s},
    [BIT_PRMT] = {[T_B32] = prmt},
};

exec_fn ptx_bit_handler(bit_op op, ptx_type type) { return table[op][type]; }
