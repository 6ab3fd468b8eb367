// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Decoders of loads, stores, atomics, moves and address conversions.
#include "ptx/ptx_bulk.h"
#include "ptx/ptx_decode.h"
#include "ptx/ptx_flow.h"
#include "ptx/ptx_mbarrier.h"
#include "ptx/ptx_mem.h"

static unsigned take_vector(decoder *d) { return take(d, M_v2) ? 2 : take(d, M_v4) ? 4 : take(d, M_v8) ? 8 : 1; }

// A 128-bit value needs a 128-bit register: it is two slots.
static void same_width(decoder *d, const operand *o, ptx_type t)
{
    if (o->kind == OP_REG && (o->type == T_B128) != (t == T_B128))
        bad_operand(d, "128-bit registers need a 128-bit type");
    if (o->kind == OP_REG && o->type == T_PRED)
        bad_operand(d, "a predicate and a number do not mix");
}

// The elements of a vector operand as a list; `into` says that they are written.
static int32_t elements(decoder *d, const operand *o, unsigned n, ptx_type t, int into)
{
    int32_t list[MAX_LIST];
    if (o->second)
        bad_operand(d, "there is no second result");
    if (n > 1 && (o->kind != OP_VEC || o->n != n))
        bad_operand(d, "the vector has the wrong number of elements");
    if (n == 1 && o->kind == OP_VEC && o->n != 1)
        bad_operand(d, "the vector has the wrong number of elements");
    for (unsigned i = 0; i < n; i++) {
        const operand *e = o->kind == OP_VEC ? &o->items[i] : o;
        same_width(d, e, t);
        list[i] = into ? (e->kind == OP_SINK ? NO_OPERAND : destination(d, e)) : source_of(d, e, t);
    }
    return list_add(d->p, list, n);
}

// Sets what a load or a store moves: in->d or in->b for one element, in->list for more.
static void payload(decoder *d, const operand *o, int into)
{
    insn *in = &d->in;
    ptx_type t = (ptx_type)in->type;
    if (in->n > 1 || t == T_B128 || o->kind == OP_VEC) {
        in->list = elements(d, o, in->n, t, into);
        if (in->n == 1 && t != T_B128) {
            const operand *e = o->kind == OP_VEC ? &o->items[0] : o;
            if (into)
                in->d = destination(d, e);
            else
                in->b = source_of(d, e, t);
        }
    } else {
        same_width(d, o, t);
        if (into)
            in->d = destination(d, o);
        else
            in->b = source_of(d, o, t);
    }
}

static void dec_ld(decoder *d, int arg)
{
    (void)arg;
    insn *in = &d->in;
    take_ordering(d);
    in->space = (uint8_t)take_space(d);
    take_cache(d);
    in->n = (uint8_t)take_vector(d);
    in->type = (uint8_t)take_type(d);
    need(d, 2, 3);
    if (in->type == T_NONE || in->type == T_PRED)
        return;
    const operand *o = &d->st->ops[1];
    payload(d, &d->st->ops[0], 1);
    if (o->kind == OP_ADDR && o->var && o->var->slot < 0 && o->var->space == SP_PARAM && o->var->entry_param) {
        // A kernel's own parameter: the offset is known, and so is whether it is inside.
        uint64_t bytes = (uint64_t)ptx_element_bytes((ptx_type)in->type) * in->n, at = o->var->address + o->value;
        if (o->value > o->var->size || bytes > o->var->size - o->value)
            bad_operand(d, "outside of the parameter");
        if (at % ptx_element_bytes((ptx_type)in->type))
            bad_operand(d, "misaligned in the parameters");
        in->imm = (int64_t)at;
        in->run = ptx_load_handler(in, 1);
        return;
    }
    address(d, o);
    in->run = ptx_load_handler(in, 0);
}

static void dec_st(decoder *d, int arg)
{
    (void)arg;
    insn *in = &d->in;
    take_ordering(d);
    in->space = (uint8_t)take_space(d);
    take_cache(d);
    in->n = (uint8_t)take_vector(d);
    in->type = (uint8_t)take_type(d);
    need(d, 2, 3);
    if (in->type == T_NONE || in->type == T_PRED)
        return;
    payload(d, &d->st->ops[1], 0);
    if (take(d, M_async_))
        return;
    address(d, &d->st->ops[0]);
    in->run = in->space == SP_CONST || in->space == SP_PARAM ? NULL : ptx_store_handler(in);
}

// arg: 0 atom, 1 red
static void dec_atom(decoder *d, int arg)
{
    insn *in = &d->in;
    take_ordering(d);
    in->space = (uint8_t)take_space(d);
    take_cache(d);
    take(d, M_noftz);
    int op = take_atom_op(d);
    in->n = (uint8_t)take_vector(d);
    ptx_type t = take_type(d);
    if (op < 0 || t == T_NONE || t == T_PRED || take(d, M_async_))
        return;
    in->sub = (uint8_t)op;
    in->type = (uint8_t)t;
    unsigned first = arg ? 0 : 1;
    need(d, first + 2, first + 4);
    address(d, &d->st->ops[first]);
    if (in->n > 1) {
        in->list = elements(d, &d->st->ops[first + 1], in->n, t, 0);
        if (!arg)
            in->e = elements(d, &d->st->ops[0], in->n, t, 1);
        in->b = const_ref(d->p, 0);
    } else {
        same_width(d, &d->st->ops[first + 1], t);
        in->b = source(d, first + 1, t);
        if (!arg && d->st->ops[0].kind != OP_SINK) {
            same_width(d, &d->st->ops[0], t);
            in->d = destination(d, &d->st->ops[0]);
        }
        if (op == ATOM_CAS) {
            need(d, first + 3, first + 4);
            same_width(d, &d->st->ops[first + 2], t);
            in->c = source(d, first + 2, t);
        }
    }
    in->run = ptx_atom_handler(in);
}

static void dec_cvta(decoder *d, int arg)
{
    (void)arg;
    insn *in = &d->in;
    int to = take(d, M_to);
    in->space = (uint8_t)take_space(d);
    ptx_type t = take_type(d);
    need(d, 2, 2);
    if (t != T_U64 && t != T_B64 && t != T_S64)
        return;
    in->d = destination(d, &d->st->ops[0]);
    in->a = source(d, 1, T_U64);
    // The address of a parameter of a function is an offset in local memory.
    if (in->space == SP_PARAM && !d->p->fn->entry)
        in->space = SP_LOCAL;
    in->run = ptx_cvta_handler(in->space == SP_SHARED || in->space == SP_LOCAL ? to : 2);
}

static void dec_isspacep(decoder *d, int arg)
{
    (void)arg;
    d->in.sub = (uint8_t)take(d, M_shared_cluster);
    d->in.space = d->in.sub ? SP_SHARED : (uint8_t)take_space(d);
    need(d, 2, 2);
    d->in.d = destination(d, &d->st->ops[0]);
    d->in.a = source(d, 1, T_U64);
    d->in.run = ptx_isspacep_handler();
}

// arg: 0 mapa, 1 getctarank
static void dec_mapa(decoder *d, int arg)
{
    d->in.space = (uint8_t)take_space(d);
    take_type(d);
    need(d, arg ? 2 : 3, arg ? 2 : 3);
    d->in.d = destination(d, &d->st->ops[0]);
    d->in.a = source(d, 1, T_U64);
    if (!arg)
        d->in.b = source(d, 2, T_U32);
    d->in.run = arg ? ptx_getctarank_handler() : ptx_mapa_handler();
}

// ---- mov

static unsigned total_bits(ptx_type t) { return ptx_element_bytes(t) * 8; }

static void dec_mov(decoder *d, int arg)
{
    (void)arg;
    insn *in = &d->in;
    ptx_type t = take_type(d);
    need(d, 2, 2);
    const operand *to = &d->st->ops[0], *from = &d->st->ops[1];
    in->type = (uint8_t)t;
    if (t == T_NONE)
        return;
    if (to->kind == OP_VEC || from->kind == OP_VEC) {
        const operand *v = to->kind == OP_VEC ? to : from;
        if (to->kind == from->kind || (v->n != 2 && v->n != 4 && v->n != 8) || t == T_PRED)
            bad_operand(d, "one vector of 2, 4 or 8 elements is expected");
        in->n = (uint8_t)v->n;
        in->sub = (uint8_t)(total_bits(t) / v->n);
        const operand *scalar = v == to ? from : to;
        same_width(d, scalar, t);
        if (scalar->kind == OP_SINK)
            bad_operand(d, "a register is expected");
        in->list = elements(d, v, v->n, in->sub == 64 ? T_B64 : T_B32, v == to);
        if (v == to)
            in->a = source_of(d, from, t);
        else
            in->d = destination(d, to);
        if (v->n == 2 && in->sub < 64)
            in->run = v == to ? ptx_run_unpack2 : ptx_run_pack2;
        else
            in->run = v == to ? ptx_run_unpack : ptx_run_pack;
        return;
    }
    if (from->kind == OP_SREG || from->kind == OP_NAME) {
        int reg = special_register(d, from);
        if ((to->kind == OP_REG && to->type == T_PRED) != (t == T_PRED))
            bad_operand(d, "a predicate and a number do not mix");
        in->d = destination(d, to);
        in->imm = reg;
        in->run = ptx_run_sreg;
        return;
    }
    if (to->kind == OP_REG && (to->type == T_PRED) != (t == T_PRED))
        bad_operand(d, "a predicate and a number do not mix");
    if (t != T_PRED)
        same_width(d, to, t);
    in->d = destination(d, to);
    if (t == T_PRED) {
        in->a = predicate(d, from, F_NEG_A);
        in->run = ptx_run_mov_pred;
    } else {
        in->a = source_of(d, from, t);
        in->run = t == T_B128 ? ptx_run_mov128 : ptx_run_mov;
    }
}

// ---- asynchronous copies: done at once, so waiting for them is nothing

static void dec_cp(decoder *d, int arg)
{
    insn *in = &d->in;
    (void)arg;
    int reduces = take(d, M_reduce);
    if (!take(d, M_async_))
        return;
    if (take(d, M_bulk)) {
        decode_bulk(d, reduces);
        return;
    }
    if (reduces)
        return;
    if (take(d, M_commit_group) || take(d, M_wait_group) || take(d, M_wait_all)) {
        in->run = ptx_run_nop;
        return;
    }
    if (take(d, M_mbarrier)) {
        decode_cp_async_arrive(d);
        return;
    }
    take(d, M_ca), take(d, M_cg);
    take_cache(d);
    int shared = take(d, M_shared) || take(d, M_shared_cta);
    if (!shared || !take(d, M_global))
        return;
    need(d, 3, 5);
    const operand *to = &d->st->ops[0], *from = &d->st->ops[1], *size = &d->st->ops[2];
    if (to->kind != OP_ADDR || from->kind != OP_ADDR || size->kind != OP_INT)
        bad_operand(d, "two addresses and a size are expected");
    if (size->value != 4 && size->value != 8 && size->value != 16)
        bad_operand(d, "the size is 4, 8 or 16");
    if ((to->var && to->var->space != SP_SHARED) || (from->var && from->var->space != SP_GLOBAL))
        bad_operand(d, "the address is in the wrong state space");
    in->n = (uint8_t)size->value;
    in->d = to->var ? const_var(d->p, to->var, 0) : to->slot >= 0 ? to->slot : const_ref(d->p, 0);
    in->a = from->var ? const_var(d->p, from->var, 0) : from->slot >= 0 ? from->slot : const_ref(d->p, 0);
    in->imm = (int64_t)((uint64_t)(uint32_t)to->value | from->value << 32);
    if (d->st->count >= 4 && d->st->ops[3].kind != OP_NONE) {
        const operand *o = &d->st->ops[3];
        if (o->kind == OP_REG && o->type == T_PRED)
            in->e = o->slot;
        else
            in->c = source(d, 3, T_U32);
    }
    if (d->st->count == 5)
        return;  // a cache policy beside a size: not in use
    in->run = ptx_copy_handler();
}

static void dec_nop(decoder *d, int arg)
{
    (void)arg;
    for (unsigned i = 0; i < d->st->mod_count; i++)
        d->st->used[i] = 1;
    d->in.run = ptx_run_nop;
}

const opcode ptx_memory_opcodes[] = {
    {"ld", dec_ld, 0},
    {"ldu", dec_ld, 0},
    {"st", dec_st, 0},
    {"atom", dec_atom, 0},
    {"red", dec_atom, 1},
    {"cvta", dec_cvta, 0},
    {"isspacep", dec_isspacep, 0},
    {"mapa", dec_mapa, 0},
    {"getctarank", dec_mapa, 1},
    {"mov", dec_mov, 0},
    {"cp", dec_cp, 0},
    {"prefetch", dec_nop, 0},
    {"prefetchu", dec_nop, 0},
    {"applypriority", dec_nop, 0},
    {"mbarrier", decode_mbarrier, 0},
    {NULL, NULL, 0},
};
