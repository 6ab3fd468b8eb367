// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Decoders of arithmetic, bit, comparison and conversion instructions.
#include "ptx/ptx_cmp.h"
#include "ptx/ptx_decode.h"
#include "ptx/ptx_float.h"
#include "ptx/ptx_int.h"

static int is_float(ptx_type t) { return t == T_F32 || t == T_F64 || t == T_F32X2 || is_half_type(t); }

static void operands(decoder *d, unsigned count, ptx_type type)
{
    d->in.d = destination(d, &d->st->ops[0]);
    int32_t *const at[] = {&d->in.a, &d->in.b, &d->in.c, &d->in.e};
    for (unsigned i = 1; i < count; i++)
        *at[i - 1] = source(d, i, type);
}

static void decode_float(decoder *d, float_op op, unsigned count, ptx_type t)
{
    take_flag(d, M_ftz, F_FTZ);
    take_flag(d, M_sat, F_SAT);
    take_flag(d, M_relu, F_RELU);
    take_flag(d, M_NaN, F_NAN);
    if (op == FOP_MIN || op == FOP_MAX) {
        take_flag(d, M_xorsign, F_XORSIGN);
        if (d->in.flags & F_XORSIGN)
            take(d, M_abs);
    }
    d->in.type = (uint8_t)t;
    d->in.sub = op;
    d->in.round = (uint8_t)take_round(d);
    if (op == FOP_MIN && d->st->count == 4)
        return;  // three-input forms
    if (op == FOP_MAX && d->st->count == 4)
        return;
    need(d, count, count);
    operands(d, count, t);
    if (is_half_type(t))
        d->in.run = d->in.round > R_RN ? NULL : ptx_half_handler(op, t, d->in.flags);
    else if (!(d->in.flags & F_RELU) && d->in.round <= R_RP)
        d->in.run = ptx_float_handler(op, t, (ptx_round)d->in.round, d->in.flags);
}

static void decode_int(decoder *d, int_op op, unsigned count, ptx_type t)
{
    need(d, count, count);
    d->in.type = (uint8_t)t;
    operands(d, count, t);
    d->in.run = ptx_int_handler(op, t);
}

static void decode_carry(decoder *d, unsigned count, ptx_type t)
{
    need(d, count, count);
    d->in.type = (uint8_t)t;
    operands(d, count, t);
    d->in.run = ptx_int_carry(t);
}

// arg: 0 add, 1 sub
static void dec_add(decoder *d, int arg)
{
    ptx_type t = take_type(d);
    if (is_float(t)) {
        decode_float(d, arg ? FOP_SUB : FOP_ADD, 3, t);
    } else if (take(d, M_cc)) {
        d->in.flags |= F_CC_OUT;
        d->in.sub = (uint8_t)arg;
        decode_carry(d, 3, t);
    } else if (take(d, M_sat)) {
        decode_int(d, arg ? INT_SUB_SAT : INT_ADD_SAT, 3, t);
    } else {
        decode_int(d, arg ? INT_SUB : INT_ADD, 3, t);
    }
}

static void dec_addc(decoder *d, int arg)
{
    ptx_type t = take_type(d);
    d->in.flags |= F_CC_IN;
    take_flag(d, M_cc, F_CC_OUT);
    d->in.sub = (uint8_t)arg;
    decode_carry(d, 3, t);
}

static void dec_mul(decoder *d, int arg)
{
    (void)arg;
    ptx_type t = take_type(d);
    if (is_float(t))
        decode_float(d, FOP_MUL, 3, t);
    else {
        int_op op = take(d, M_hi) ? INT_MUL_HI : take(d, M_wide) ? INT_MUL_WIDE : INT_MUL_LO;
        if (op == INT_MUL_LO && !take(d, M_lo))
            return;
        decode_int(d, op, 3, t);
    }
}

static void wide_addend(decoder *d, ptx_type t)
{
    static const ptx_type twice[T_COUNT] = {[T_U16] = T_U32, [T_S16] = T_S32, [T_U32] = T_U64, [T_S32] = T_S64};
    d->in.c = source(d, 3, twice[t]);
}

// arg: 0 mad, 1 madc
static void dec_mad(decoder *d, int arg)
{
    ptx_type t = take_type(d);
    if (is_float(t)) {
        decode_float(d, FOP_FMA, 4, t);
        return;
    }
    int hi = take(d, M_hi), wide = !hi && take(d, M_wide);
    if (!hi && !wide && !take(d, M_lo))
        return;
    if (arg || take(d, M_cc)) {
        d->in.flags |= (arg ? F_CC_IN : F_CC_OUT) | (hi ? F_HI : 0);
        take_flag(d, M_cc, F_CC_OUT);
        if (wide)
            return;
        decode_carry(d, 4, t);
        return;
    }
    int sat = hi && take(d, M_sat);
    decode_int(d, sat ? INT_MAD_HI_SAT : hi ? INT_MAD_HI : wide ? INT_MAD_WIDE : INT_MAD_LO, 4, t);
    if (wide)
        wide_addend(d, t);
}

// arg: 0 mul24, 1 mad24
static void dec_mul24(decoder *d, int arg)
{
    ptx_type t = take_type(d);
    int hi = take(d, M_hi);
    if (!hi)
        take(d, M_lo);
    int sat = arg && hi && take(d, M_sat);
    decode_int(d,
               arg  ? (sat  ? INT_MAD24_HI_SAT
                       : hi ? INT_MAD24_HI
                            : INT_MAD24_LO)
               : hi ? INT_MUL24_HI
                    : INT_MUL24_LO,
               arg ? 4 : 3, t);
}

static void dec_fma(decoder *d, int arg)
{
    (void)arg;
    decode_float(d, FOP_FMA, 4, take_type(d));
}

static void dec_div(decoder *d, int arg)
{
    ptx_type t = take_type(d);
    if (is_float(t) && !arg && !is_half_type(t)) {
        if (!take(d, M_approx))
            take(d, M_full);
        decode_float(d, FOP_DIV, 3, t);
    } else {
        decode_int(d, arg ? INT_REM : INT_DIV, 3, t);
    }
}

// arg: 0 min, 1 max
static void dec_min(decoder *d, int arg)
{
    ptx_type t = take_type(d);
    if (is_float(t))
        decode_float(d, arg ? FOP_MAX : FOP_MIN, 3, t);
    else if (take(d, M_relu))
        decode_int(d, arg ? INT_MAX_RELU : INT_MIN_RELU, 3, t);
    else
        decode_int(d, arg ? INT_MAX : INT_MIN, 3, t);
}

// arg: 0 neg, 1 abs
static void dec_neg(decoder *d, int arg)
{
    ptx_type t = take_type(d);
    if (is_float(t))
        decode_float(d, arg ? FOP_ABS : FOP_NEG, 2, t);
    else
        decode_int(d, arg ? INT_ABS : INT_NEG, 2, t);
}

static void dec_unary_float(decoder *d, int arg)
{
    ptx_type t = take_type(d);
    take(d, M_approx);
    if (is_float(t))
        decode_float(d, (float_op)arg, 2, t);
}

static void dec_copysign(decoder *d, int arg)
{
    (void)arg;
    ptx_type t = take_type(d);
    if (t == T_F32 || t == T_F64)
        decode_float(d, FOP_COPYSIGN, 3, t);
}

static void dec_testp(decoder *d, int arg)
{
    static const ptx_mod names[] = {M_finite, M_infinite, M_number, M_notanumber, M_normal, M_subnormal};
    (void)arg;
    unsigned which = 0;
    while (which < 6 && !take(d, names[which]))
        which++;
    if (which == 6)
        return;
    ptx_type t = take_type(d);
    need(d, 2, 2);
    d->in.type = (uint8_t)t;
    d->in.sub = (uint8_t)which;
    d->in.d = destination(d, &d->st->ops[0]);
    d->in.a = source(d, 1, t);
    d->in.run = ptx_testp_handler(t);
}

static void dec_sad(decoder *d, int arg)
{
    (void)arg;
    decode_int(d, INT_SAD, 4, take_type(d));
}

// ---- bits

static void dec_logic(decoder *d, int arg)
{
    ptx_type t = take_type(d);
    unsigned count = arg == BIT_NOT || arg == BIT_CNOT ? 2 : 3;
    need(d, count, count);
    d->in.d = destination(d, &d->st->ops[0]);
    if (t == T_PRED) {
        d->in.a = predicate(d, &d->st->ops[1], F_NEG_A);
        if (count == 3)
            d->in.b = predicate(d, &d->st->ops[2], F_NEG_C);
    } else {
        d->in.a = source(d, 1, t);
        if (count == 3)
            d->in.b = source(d, 2, t);
    }
    d->in.run = ptx_bit_handler((bit_op)arg, t);
}

static void dec_shift(decoder *d, int arg)
{
    ptx_type t = take_type(d);
    need(d, 3, 3);
    d->in.d = destination(d, &d->st->ops[0]);
    d->in.a = source(d, 1, t);
    d->in.b = source(d, 2, T_U32);
    d->in.run = ptx_bit_handler((bit_op)arg, t);
}

static void dec_bits(decoder *d, int arg)
{  // all operands of one type, or 32 bits where they are counts
    static const uint8_t counts[BIT_OPS] = {
        [BIT_POPC] = 2, [BIT_CLZ] = 2, [BIT_BREV] = 2, [BIT_BFE] = 4, [BIT_BFI] = 5, [BIT_BFIND] = 2, [BIT_FNS] = 4,
    };
    ptx_type t = take_type(d);
    if (arg == BIT_BFIND)
        d->in.sub = (uint8_t)take(d, M_shiftamt);
    need(d, counts[arg], counts[arg]);
    d->in.type = (uint8_t)t;
    operands(d, counts[arg], t);
    d->in.run = ptx_bit_handler((bit_op)arg, t);
}

static int immediate(decoder *d, unsigned index, int64_t *value)
{
    const operand *o = &d->st->ops[index];
    while (o->kind == OP_LIST && o->n == 1)
        o = &o->items[0];
    *value = (int64_t)o->value;
    return o->kind == OP_INT;
}

static void dec_lop3(decoder *d, int arg)
{
    (void)arg;
    if (d->st->ops[0].second)
        return;  // lop3.BoolOp
    need(d, 5, 5);
    operands(d, 4, T_B32);
    if (!immediate(d, 4, &d->in.imm))
        bad_operand(d, "the look-up table must be a constant");
    d->in.run = ptx_bit_handler(BIT_LOP3, take_type(d));
}

static void dec_shf(decoder *d, int arg)
{
    (void)arg;
    int left = take(d, M_l);
    if (!left && !take(d, M_r))
        return;
    int wrap = take(d, M_wrap);
    if (!wrap && !take(d, M_clamp))
        return;
    need(d, 4, 4);
    operands(d, 4, T_B32);
    d->in.run = ptx_bit_handler(left   ? (wrap ? BIT_SHF_L_WRAP : BIT_SHF_L_CLAMP)
                                : wrap ? BIT_SHF_R_WRAP
                                       : BIT_SHF_R_CLAMP,
                                take_type(d));
}

// arg: 0 bmsk, 1 szext
static void dec_bmsk(decoder *d, int arg)
{
    int wrap = take(d, M_wrap);
    if (!wrap && !take(d, M_clamp))
        return;
    ptx_type t = take_type(d);
    need(d, 3, 3);
    operands(d, 3, T_B32);
    d->in.run = ptx_bit_handler(arg    ? (wrap ? BIT_SZEXT_WRAP : BIT_SZEXT_CLAMP)
                                : wrap ? BIT_BMSK_WRAP
                                       : BIT_BMSK_CLAMP,
                                t);
}

static void dec_prmt(decoder *d, int arg)
{
    static const ptx_mod modes[] = {M_f4e, M_b4e, M_rc8, M_ecl, M_ecr, M_rc16};
    (void)arg;
    ptx_type t = take_type(d);
    for (unsigned i = 0; i < 6; i++)
        if (take(d, modes[i]))
            d->in.sub = (uint8_t)(i + 1);
    need(d, 4, 4);
    operands(d, 4, T_B32);
    d->in.run = ptx_bit_handler(BIT_PRMT, t);
}

// arg: 4 dp4a, 2 dp2a
static void dec_dot(decoder *d, int arg)
{
    if (arg == 2) {
        d->in.sub = (uint8_t)take(d, M_hi);
        if (!d->in.sub && !take(d, M_lo))
            return;
    }
    ptx_type a = take_type(d), b = take_type(d);
    need(d, 4, 4);
    d->in.type = (uint8_t)a;
    d->in.stype = (uint8_t)b;
    operands(d, 4, T_U32);
    d->in.run = ptx_dot_product(arg, a, b);
}

// vabsdiff4 and vabsdiff2 (arg: elements), without masks and selectors; the types are those of d, a and b.
static void dec_video(decoder *d, int arg)
{
    ptx_type to = take_type(d), a = take_type(d), b = take_type(d);
    need(d, 4, 4);
    d->in.sub = (uint8_t)take(d, M_add);
    d->in.n = (uint8_t)arg;
    d->in.type = (uint8_t)a;
    d->in.stype = (uint8_t)b;
    operands(d, 4, T_U32);
    if ((to == T_U32 || to == T_S32) && (a == T_U32 || a == T_S32) && (b == T_U32 || b == T_S32))
        d->in.run = ptx_video_handler();
}

// ---- comparisons

static int take_comparison(decoder *d)
{
    static const struct {
        ptx_mod mod;
        int relations;
    } names[] = {
        {M_eq, REL_EQ},
        {M_ne, REL_LT | REL_GT},
        {M_lt, REL_LT},
        {M_le, REL_LT | REL_EQ},
        {M_gt, REL_GT},
        {M_ge, REL_GT | REL_EQ},
        {M_lo, REL_LT},
        {M_ls, REL_LT | REL_EQ},
        {M_hi, REL_GT},
        {M_hs, REL_GT | REL_EQ},
        {M_equ, REL_EQ | REL_UN},
        {M_neu, REL_LT | REL_GT | REL_UN},
        {M_ltu, REL_LT | REL_UN},
        {M_leu, REL_LT | REL_EQ | REL_UN},
        {M_gtu, REL_GT | REL_UN},
        {M_geu, REL_GT | REL_EQ | REL_UN},
        {M_num, REL_LT | REL_EQ | REL_GT},
        {M_nan, REL_UN},
    };
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (take(d, names[i].mod))
            return names[i].relations;
    return 0;
}

static int comparison(decoder *d)
{
    d->in.imm = take_comparison(d);
    if (!d->in.imm)
        return 0;
    d->in.sub = take(d, M_and_) ? BOOL_AND : take(d, M_or_) ? BOOL_OR : take(d, M_xor_) ? BOOL_XOR : BOOL_NONE;
    take_flag(d, M_ftz, F_FTZ);
    return 1;
}

static void compared(decoder *d, ptx_type t)
{
    need(d, d->in.sub ? 4 : 3, d->in.sub ? 4 : 3);
    d->in.stype = (uint8_t)t;
    d->in.a = source(d, 1, t);
    d->in.b = source(d, 2, t);
    if (d->in.sub)
        d->in.c = predicate(d, &d->st->ops[3], F_NEG_C);
}

static void dec_setp(decoder *d, int arg)
{
    (void)arg;
    if (!comparison(d))
        return;
    ptx_type t = take_type(d);
    compared(d, t);
    const operand *o = &d->st->ops[0];
    d->in.d = o->kind == OP_SINK ? NO_OPERAND : destination(d, o);
    if (o->second && o->second->kind != OP_SINK)
        d->in.e = destination(d, o->second);
    if ((o->kind == OP_REG && o->type != T_PRED) ||
        (o->second && o->second->kind == OP_REG && o->second->type != T_PRED))
        bad_operand(d, "the destination must be a predicate");
    d->in.run = ptx_setp_handler(t);
}

static void dec_set(decoder *d, int arg)
{
    (void)arg;
    if (!comparison(d))
        return;
    ptx_type to = take_type(d), from = take_type(d);
    compared(d, from);
    d->in.type = (uint8_t)to;
    d->in.d = destination(d, &d->st->ops[0]);
    d->in.run = ptx_set_handler(from);
}

static void dec_selp(decoder *d, int arg)
{
    (void)arg;
    ptx_type t = take_type(d);
    need(d, 4, 4);
    d->in.d = destination(d, &d->st->ops[0]);
    d->in.a = source(d, 1, t);
    d->in.b = source(d, 2, t);
    d->in.c = predicate(d, &d->st->ops[3], F_NEG_C);
    d->in.run = t == T_PRED || t == T_NONE || t == T_B128 ? NULL : ptx_selp_handler();
}

static void dec_slct(decoder *d, int arg)
{
    (void)arg;
    take_flag(d, M_ftz, F_FTZ);
    ptx_type t = take_type(d), by = take_type(d);
    need(d, 4, 4);
    d->in.d = destination(d, &d->st->ops[0]);
    d->in.a = source(d, 1, t);
    d->in.b = source(d, 2, t);
    d->in.c = source(d, 3, by);
    d->in.run = ptx_slct_handler(by);
}

static void dec_cvt(decoder *d, int arg)
{
    (void)arg;
    ptx_type to = take_type(d), from = take_type(d);
    d->in.round = (uint8_t)take_round(d);
    take_flag(d, M_ftz, F_FTZ);
    take_flag(d, M_sat, F_SAT);
    take_flag(d, M_satfinite, F_SATFINITE);
    take_flag(d, M_relu, F_RELU);
    need(d, 2, 3);
    d->in.type = (uint8_t)to;
    d->in.stype = (uint8_t)from;
    d->in.d = destination(d, &d->st->ops[0]);
    d->in.a = source(d, 1, from);
    if (d->st->count == 3)
        d->in.b = source(d, 2, from);
    d->in.run = ptx_cvt_handler(&d->in);
}

const opcode ptx_alu_opcodes[] = {
    {"add", dec_add, 0},
    {"sub", dec_add, 1},
    {"addc", dec_addc, 0},
    {"subc", dec_addc, 1},
    {"mul", dec_mul, 0},
    {"mad", dec_mad, 0},
    {"madc", dec_mad, 1},
    {"mul24", dec_mul24, 0},
    {"mad24", dec_mul24, 1},
    {"fma", dec_fma, 0},
    {"div", dec_div, 0},
    {"rem", dec_div, 1},
    {"min", dec_min, 0},
    {"max", dec_min, 1},
    {"neg", dec_neg, 0},
    {"abs", dec_neg, 1},
    {"sad", dec_sad, 0},
    {"rcp", dec_unary_float, FOP_RCP},
    {"sqrt", dec_unary_float, FOP_SQRT},
    {"rsqrt", dec_unary_float, FOP_RSQRT},
    {"sin", dec_unary_float, FOP_SIN},
    {"cos", dec_unary_float, FOP_COS},
    {"lg2", dec_unary_float, FOP_LG2},
    {"ex2", dec_unary_float, FOP_EX2},
    {"tanh", dec_unary_float, FOP_TANH},
    {"copysign", dec_copysign, 0},
    {"testp", dec_testp, 0},
    {"and", dec_logic, BIT_AND},
    {"or", dec_logic, BIT_OR},
    {"xor", dec_logic, BIT_XOR},
    {"not", dec_logic, BIT_NOT},
    {"cnot", dec_logic, BIT_CNOT},
    {"shl", dec_shift, BIT_SHL},
    {"shr", dec_shift, BIT_SHR},
    {"popc", dec_bits, BIT_POPC},
    {"clz", dec_bits, BIT_CLZ},
    {"brev", dec_bits, BIT_BREV},
    {"bfe", dec_bits, BIT_BFE},
    {"bfi", dec_bits, BIT_BFI},
    {"bfind", dec_bits, BIT_BFIND},
    {"fns", dec_bits, BIT_FNS},
    {"lop3", dec_lop3, 0},
    {"shf", dec_shf, 0},
    {"bmsk", dec_bmsk, 0},
    {"szext", dec_bmsk, 1},
    {"prmt", dec_prmt, 0},
    {"dp4a", dec_dot, 4},
    {"dp2a", dec_dot, 2},
    {"vabsdiff4", dec_video, 4},
    {"vabsdiff2", dec_video, 2},
    {"setp", dec_setp, 0},
    {"set", dec_set, 0},
    {"selp", dec_selp, 0},
    {"slct", dec_slct, 0},
    {"cvt", dec_cvt, 0},
    {NULL, NULL, 0},
};
