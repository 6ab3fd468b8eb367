// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// What all decoders share: the table of opcodes, qualifiers, operands.
#include "ptx/ptx_decode.h"

#include <pthread.h>
#include <string.h>

#include "ptx/ptx_float.h"
#include "ptx/ptx_flow.h"
#include "ptx/ptx_lanes.h"
#include "ptx/ptx_mem.h"

#define BUCKETS 512

static const opcode *table[BUCKETS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static unsigned hash(const char *s, size_t n)
{
    unsigned h = 5381;
    for (size_t i = 0; i < n; i++)
        h = h * 33 ^ (unsigned char)s[i];
    return h % BUCKETS;
}

static void fill(void)
{
    const opcode *const lists[] = {ptx_alu_opcodes, ptx_memory_opcodes, ptx_flow_opcodes, ptx_texture_opcodes};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        for (const opcode *o = lists[k]; o->name; o++) {
            unsigned h = hash(o->name, strlen(o->name));
            while (table[h])
                h = (h + 1) % BUCKETS;
            table[h] = o;
        }
}

static const opcode *find(const char *name, size_t len)
{
    pthread_once(&once, fill);
    for (unsigned h = hash(name, len); table[h]; h = (h + 1) % BUCKETS)
        if (strncmp(table[h]->name, name, len) == 0 && table[h]->name[len] == 0)
            return table[h];
    return NULL;
}

int is_known_opcode(const char *name, size_t len) { return find(name, len) != NULL; }

insn blank_insn(void)
{
    insn in;
    memset(&in, 0, sizeof in);
    in.d = in.a = in.b = in.c = in.e = in.list = NO_OPERAND;
    in.n = 1;
    return in;
}

void append(decoder *d, insn in)
{
    insn *at = emit(d->p, d->st);
    in.pred = at->pred;
    in.line = at->line;
    in.text = at->text;
    in.run = in.run ? ptx_widest(in.run) : ptx_run_unsupported;
    *at = in;
}

void decode(parser *p, statement *st)
{
    decoder d = {p, st, blank_insn()};
    const opcode *o = st->op_len ? find(st->op, st->op_len) : NULL;
    if (o) {
        o->decode(&d, o->arg);
        for (unsigned i = 0; i < st->mod_count; i++)
            if (!st->used[i])
                d.in.run = NULL;
    }
    append(&d, d.in);
}

// ---- qualifiers

int take(decoder *d, ptx_mod mod)
{
    for (unsigned i = 0; i < d->st->mod_count; i++)
        if (d->st->mods[i] == mod && !d->st->used[i])
            return d->st->used[i] = 1;
    return 0;
}

// The types among the qualifiers have the same numbers as ptx_type.
ptx_type peek_type(const decoder *d)
{
    for (unsigned i = 0; i < d->st->mod_count; i++)
        if (!d->st->used[i] && d->st->mods[i] >= M_FIRST_TYPE && d->st->mods[i] <= M_LAST_TYPE)
            return (ptx_type)d->st->mods[i];
    return T_NONE;
}

ptx_type take_type(decoder *d)
{
    ptx_type t = peek_type(d);
    if (t != T_NONE)
        take(d, (ptx_mod)t);
    return t;
}

ptx_round take_round(decoder *d)
{
    static const ptx_mod names[] = {M_rn, M_rz, M_rm, M_rp, M_rni, M_rzi, M_rmi, M_rpi, M_rna};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (take(d, names[i]))
            return (ptx_round)(R_RN + i);
    return R_NONE;
}

void take_flag(decoder *d, ptx_mod mod, uint32_t flag)
{
    if (take(d, mod))
        d->in.flags |= flag;
}

static int take_any(decoder *d, const ptx_mod *mods, unsigned n)
{
    int any = 0;
    for (unsigned i = 0; i < n; i++)
        any |= take(d, mods[i]);
    return any;
}

void take_ordering(decoder *d)
{
    static const ptx_mod plain[] = {M_weak, M_relaxed, M_volatile_, M_mmio, M_cta, M_cluster, M_gpu, M_sys};
    take_any(d, plain, sizeof plain / sizeof *plain);
    take_flag(d, M_acquire, F_ACQUIRE);
    take_flag(d, M_release, F_RELEASE);
    take_flag(d, M_acq_rel, F_ACQUIRE | F_RELEASE);
}

void take_cache(decoder *d)
{
    static const ptx_mod hints[] = {M_ca,     M_cg,        M_cs,      M_lu,       M_cv,        M_wb,           M_wt,
                                    M_nc,     M_l1_normal, M_l1_last, M_l1_first, M_l1_none,   M_l1_unchanged, M_l2_64,
                                    M_l2_128, M_l2_256,    M_l2_hint, M_l2_last,  M_l2_normal, M_l2_first};
    take_any(d, hints, sizeof hints / sizeof *hints);
}

int take_space(decoder *d)
{
    static const struct {
        ptx_mod mod;
        ptx_space space;
    } names[] = {{M_global, SP_GLOBAL},         {M_shared, SP_SHARED},     {M_shared_cta, SP_SHARED},
                 {M_shared_cluster, SP_SHARED}, {M_local, SP_LOCAL},       {M_const_, SP_CONST},
                 {M_param, SP_PARAM},           {M_param_entry, SP_PARAM}, {M_param_func, SP_PARAM}};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (take(d, names[i].mod))
            return names[i].space;
    return SP_GENERIC;
}

// ---- operands

void bad_operand(decoder *d, const char *what)
{
    lex_fail_at(&d->p->lx, d->st->line, "'%.*s': %s", (int)(d->st->op_len > 40 ? 40 : d->st->op_len), d->st->op, what);
}

int take_atom_op(decoder *d)
{
    static const ptx_mod names[ATOM_OPS] = {M_add, M_min, M_max, M_inc, M_dec, M_and_, M_or_, M_xor_, M_exch, M_cas};
    for (int i = 0; i < ATOM_OPS; i++)
        if (take(d, names[i]))
            return i;
    return -1;
}

void need(decoder *d, unsigned least, unsigned most)
{
    if (d->st->count < least || d->st->count > most)
        bad_operand(d, "wrong number of operands");
}

static uint64_t constant_bits(const operand *o, ptx_type type)
{
    double v;
    float f;
    if (o->kind == OP_INT) {
        if (type == T_F32) {
            uint32_t bits;
            f = (float)(int64_t)o->value;
            memcpy(&bits, &f, 4);
            return bits;
        }
        if (type == T_F64) {
            uint64_t bits;
            v = (double)(int64_t)o->value;
            memcpy(&bits, &v, 8);
            return bits;
        }
        return o->value;
    }
    if (o->float_bytes == 4) {
        uint32_t bits = (uint32_t)o->value;
        memcpy(&f, &bits, 4);
        v = f;
    } else {
        memcpy(&v, &o->value, 8);
    }
    switch (type) {
    case T_F64:
    case T_B64:
    case T_U64:
    case T_S64:
        if (o->float_bytes == 8)
            return o->value;
        {
            uint64_t bits;
            memcpy(&bits, &v, 8);
            return bits;
        }
    case T_F16: return half_from_double(v, R_RN);
    case T_BF16: return bf16_from_double(v, R_RN);
    default:
        if (o->float_bytes == 4)
            return o->value;
        {
            uint32_t bits;
            f = (float)v;
            memcpy(&bits, &f, 4);
            return bits;
        }
    }
}

// The number of a special register. Reading the system's part of shared memory makes every block have one.
int special_register(decoder *d, const operand *o)
{
    int reg = ptx_sreg_find(o->name, o->len);
    if (reg < 0)
        lex_fail_at(&d->p->lx, d->st->line, "'%.*s' is not declared", (int)(o->len > 80 ? 80 : o->len), o->name);
    if (o->len > 14 && memcmp(o->name, "%reserved_smem", 14) == 0)
        d->p->m->uses_reserved = 1;
    return reg;
}

static int32_t computed(decoder *d, exec_fn run, int64_t imm, ptx_type type)
{
    insn in = blank_insn();
    in.run = run;
    in.imm = imm;
    in.type = (uint8_t)type;
    in.d = new_slot(d->p, 1);
    append(d, in);
    return in.d;
}

static int32_t variable_address(decoder *d, ptx_var *v, uint64_t offset)
{
    if (v->space == SP_SHARED && !v->owner && !v->is_extern)
        d->p->fn->uses_common = 1;
    if (v->space == SP_PARAM && v->entry_param)
        return computed(d, ptx_run_param_address, (int64_t)(v->address + offset), T_B64);
    if (v->space == SP_PARAM || v->space == SP_LOCAL)
        return computed(d, ptx_run_frame_address, (int64_t)(v->address + offset), T_B64);
    return const_var(d->p, v, offset);
}

int32_t source_of(decoder *d, const operand *o, ptx_type type)
{
    switch (o->kind) {
    case OP_REG:
        if ((o->type == T_PRED) != (type == T_PRED))
            bad_operand(d, "a predicate and a number do not mix");
        if ((o->type == T_B128) != (type == T_B128))
            bad_operand(d, "128-bit registers need a 128-bit type");
        return o->slot;
    case OP_INT:
    case OP_FLOAT:
        if (type == T_PRED)
            return const_ref(d->p, o->value ? ~(uint64_t)0 : 0);
        return const_ref(d->p, constant_bits(o, type));
    case OP_VAR: return variable_address(d, o->var, o->value);
    case OP_FN: o->fn->called = 1; return const_fn(d->p, o->fn);
    case OP_SREG:
    case OP_NAME:  // WARP_SZ
        return computed(d, ptx_run_sreg, special_register(d, o), type);
    case OP_LIST:
        if (o->n == 1)
            return source_of(d, &o->items[0], type);
        bad_operand(d, "a list is no value");
    default: bad_operand(d, "a value is expected");
    }
}

int32_t source(decoder *d, unsigned index, ptx_type type) { return source_of(d, &d->st->ops[index], type); }

int32_t predicate(decoder *d, const operand *o, uint32_t negated_flag)
{
    if (o->neg)
        d->in.flags |= negated_flag;
    return source_of(d, o, T_PRED);
}

int32_t destination(decoder *d, const operand *o)
{
    if (o->kind == OP_SINK)
        return new_slot(d->p, 2);
    if (o->kind != OP_REG)
        bad_operand(d, "the destination must be a register");
    return o->slot;
}

void address(decoder *d, const operand *o)
{
    if (o->kind != OP_ADDR)
        bad_operand(d, "an address in brackets is expected");
    insn *in = &d->in;
    int entry = d->p->fn->entry;
    in->imm = (int64_t)o->value;
    if (o->var) {
        ptx_var *v = o->var;
        if (in->space == SP_GENERIC)
            in->space = v->space;
        if (v->space == SP_LOCAL || (v->space == SP_PARAM && !v->entry_param)) {
            if (v->slot >= 0)
                bad_operand(d, "a parameter in a register has no address");
            in->space = SP_LOCAL;
            in->flags |= F_FRAME;
            in->imm += (int64_t)v->address;
        } else {
            in->a = variable_address(d, v, o->value);
            in->imm = 0;
        }
    } else if (o->slot >= 0) {
        in->a = o->slot;
        if (in->space == SP_PARAM && !entry)
            in->space = SP_LOCAL;
    }
}
