// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Decoders of control flow and of what threads do together.
#include "ptx/ptx_decode.h"
#include "ptx/ptx_flow.h"
#include "ptx/ptx_mem.h"

// arg: the handler's place in this table
static const exec_fn plain[] = {ptx_run_ret, ptx_run_exit, ptx_run_trap, ptx_run_fence, ptx_run_yield, ptx_run_nop};
enum { P_RET, P_EXIT, P_TRAP, P_FENCE, P_YIELD, P_NOP };

static void dec_plain(decoder *d, int arg)
{
    for (unsigned i = 0; i < d->st->mod_count; i++)
        d->st->used[i] = 1;
    d->in.run = plain[arg];
    d->in.e = (int32_t)d->p->fn->index;  // ret looks for its function's results
}

static void dec_bra(decoder *d, int arg)
{
    (void)arg;
    take(d, M_uni);
    need(d, 1, 1);
    const operand *o = &d->st->ops[0];
    if (!o->name || o->kind == OP_REG)
        bad_operand(d, "a label is expected");
    label_use(d->p, o->name, o->len, d->p->m->code_count, -1);
    d->in.run = ptx_run_bra;
}

static void dec_brx(decoder *d, int arg)
{
    (void)arg;
    take(d, M_uni);
    if (!take(d, M_idx))
        return;
    need(d, 2, 2);
    const operand *o = &d->st->ops[1];
    symbol *s = o->name ? sym_find(d->p, o->name, o->len) : NULL;
    if (!s || s->kind != SYM_PROTO || !s->count)
        bad_operand(d, "a .branchtargets list is expected");
    d->in.a = source(d, 0, T_U32);
    d->in.list = s->slot;
    d->in.imm = s->count;
    d->in.run = ptx_run_brx;
}

// ---- calls

static void argument(decoder *d, const operand *o, int32_t item[CALL_ITEM], int into)
{
    if (o->kind == OP_VAR && (o->var->space == SP_PARAM || o->var->space == SP_LOCAL) && !o->var->entry_param &&
        o->var->slot < 0) {
        if (o->value)
            bad_operand(d, "a parameter is passed as a whole");
        item[0] = (int32_t)o->var->address;
        item[1] = (int32_t)o->var->size;
        item[2] = 1;
    } else if (o->kind == OP_SINK) {
        item[0] = item[1] = 0;
        item[2] = 1;
    } else {
        item[0] = into ? destination(d, o) : source_of(d, o, T_B64);
        item[1] = o->kind == OP_REG ? (int32_t)type_size((ptx_type)o->type) : 8;
        item[2] = 0;
    }
}

static void dec_call(decoder *d, int arg)
{
    int32_t list[CALL_FIRST + 2 * MAX_LIST * CALL_ITEM] = {0};
    unsigned at = 0, n = 0;
    (void)arg;
    take(d, M_uni);
    need(d, 1, 4);
    operand *ops = d->st->ops;
    int32_t *item = list + CALL_FIRST;
    if (ops[0].kind == OP_LIST && d->st->count > 1) {
        for (n = 0; n < ops[0].n && n < MAX_LIST; n++, item += CALL_ITEM)
            argument(d, &ops[0].items[n], item, 1);
        list[CALL_RETS] = (int32_t)n;
        at = 1;
    }
    operand *target = &ops[at++];
    if (at < d->st->count && ops[at].kind == OP_LIST) {
        for (n = 0; n < ops[at].n && n < MAX_LIST; n++, item += CALL_ITEM)
            argument(d, &ops[at].items[n], item, 0);
        list[CALL_ARGS] = (int32_t)n;
        at++;
    }
    d->p->fn->calls = 1;
    d->in.e = (int32_t)d->p->fn->index;
    if (target->kind == OP_FN) {
        target->fn->called = 1;
        if (target->fn->entry)
            bad_operand(d, "a kernel cannot be called");
        d->in.imm = target->fn->index;
        d->in.run = ptx_run_call;
    } else if (target->kind == OP_REG) {
        d->in.a = source_of(d, target, T_B64);
        d->in.run = ptx_run_call_indirect;
    } else {
        lex_fail_at(&d->p->lx, d->st->line, "'%.*s' is no function", (int)(target->len > 80 ? 80 : target->len),
                    target->name ? target->name : "");
    }
    d->in.list = list_add(d->p, list, (uint32_t)(item - list));
}

// ---- warps

static void member_mask(decoder *d, unsigned index, int sync)
{
    if (sync)
        d->in.list = source(d, index, T_B32);
    d->in.run = ptx_run_sync;
}

static void pair_destination(decoder *d)
{
    const operand *o = &d->st->ops[0];
    if (o->kind != OP_SINK)
        d->in.d = destination(d, o);
    if (o->second && o->second->kind != OP_SINK) {
        if (o->second->kind != OP_REG || o->second->type != T_PRED)
            bad_operand(d, "the second destination must be a predicate");
        d->in.e = o->second->slot;
    }
}

static void dec_shfl(decoder *d, int arg)
{
    static const ptx_mod modes[] = {M_up, M_down, M_bfly, M_idx};
    (void)arg;
    int sync = take(d, M_sync), mode = 0;
    while (mode < 4 && !take(d, modes[mode]))
        mode++;
    if (mode == 4)
        return;
    d->in.type = (uint8_t)take_type(d);
    d->in.sub = (uint8_t)(SYNC_SHFL_UP + mode);
    need(d, sync ? 5 : 4, sync ? 5 : 4);
    pair_destination(d);
    d->in.a = source(d, 1, T_B32);
    d->in.b = source(d, 2, T_U32);
    d->in.c = source(d, 3, T_U32);
    member_mask(d, 4, sync);
}

static void dec_vote(decoder *d, int arg)
{
    static const ptx_mod modes[] = {M_all, M_any, M_uni, M_ballot};
    (void)arg;
    int sync = take(d, M_sync), mode = 0;
    while (mode < 4 && !take(d, modes[mode]))
        mode++;
    if (mode == 4)
        return;
    take_type(d);
    d->in.sub = (uint8_t)(SYNC_VOTE_ALL + mode);
    need(d, sync ? 3 : 2, sync ? 3 : 2);
    pair_destination(d);
    d->in.a = predicate(d, &d->st->ops[1], F_NEG_A);
    member_mask(d, 2, sync);
}

static void dec_match(decoder *d, int arg)
{
    (void)arg;
    int any = take(d, M_any);
    if ((!any && !take(d, M_all)) || !take(d, M_sync))
        return;
    ptx_type t = take_type(d);
    d->in.type = (uint8_t)t;
    d->in.sub = any ? SYNC_MATCH_ANY : SYNC_MATCH_ALL;
    need(d, 3, 3);
    pair_destination(d);
    d->in.a = source(d, 1, t);
    member_mask(d, 2, 1);
}

static void dec_redux(decoder *d, int arg)
{
    static const ptx_mod ops[] = {M_add, M_min, M_max, M_and_, M_or_, M_xor_};
    (void)arg;
    int op = 0;
    if (!take(d, M_sync))
        return;
    while (op < 6 && !take(d, ops[op]))
        op++;
    if (op == 6)
        return;
    take_flag(d, M_abs, F_ABS);
    take_flag(d, M_NaN, F_NAN);
    ptx_type t = take_type(d);
    d->in.type = (uint8_t)t;
    d->in.stype = (uint8_t)op;
    d->in.sub = SYNC_REDUX;
    need(d, 3, 3);
    pair_destination(d);
    d->in.a = source(d, 1, t);
    member_mask(d, 2, 1);
    if (t != T_U32 && t != T_S32 && t != T_B32 && t != T_F32)
        d->in.run = NULL;
}

static void dec_elect(decoder *d, int arg)
{
    (void)arg;
    if (!take(d, M_sync))
        return;
    d->in.sub = SYNC_ELECT;
    need(d, 2, 2);
    pair_destination(d);
    member_mask(d, 1, 1);
}

static void dec_activemask(decoder *d, int arg)
{
    (void)arg;
    take_type(d);
    need(d, 1, 1);
    d->in.d = destination(d, &d->st->ops[0]);
    d->in.run = ptx_run_activemask;
}

// ---- blocks and clusters

static void barrier_reduction(decoder *d)
{
    static const ptx_mod ops[] = {M_popc, M_and_, M_or_};
    int op = 0;
    while (op < 3 && !take(d, ops[op]))
        op++;
    if (op == 3)
        return;
    take_type(d);
    need(d, 3, 4);
    unsigned last = d->st->count - 1;
    d->in.sub = (uint8_t)(2 + op);
    d->in.d = destination(d, &d->st->ops[0]);
    d->in.a = source(d, 1, T_U32);
    if (d->st->count == 4)
        d->in.b = source(d, 2, T_U32);
    d->in.c = predicate(d, &d->st->ops[last], F_NEG_C);
    d->in.run = ptx_run_barrier;
}

static void dec_bar(decoder *d, int arg)
{
    (void)arg;
    if (take(d, M_warp)) {
        if (!take(d, M_sync))
            return;
        need(d, 1, 1);
        d->in.sub = SYNC_WARP;
        member_mask(d, 0, 1);
        return;
    }
    int cluster = take(d, M_cluster);
    take(d, M_cta);
    take(d, M_aligned);
    if (cluster) {
        take_ordering(d);
        if (take(d, M_arrive))
            d->in.run = ptx_run_cluster_arrive;
        else if (take(d, M_wait))
            d->in.run = ptx_run_cluster_wait;
        return;
    }
    if (take(d, M_red)) {
        barrier_reduction(d);
        return;
    }
    int wait = take(d, M_sync);
    if (!wait && !take(d, M_arrive))
        return;
    need(d, 1, 2);
    d->in.a = source(d, 0, T_U32);
    if (d->st->count == 2)
        d->in.b = source(d, 1, T_U32);
    d->in.sub = wait ? 0 : 1;
    d->in.run = wait ? ptx_run_barrier : ptx_run_barrier_arrive;
}

// ---- the stack

static void dec_alloca(decoder *d, int arg)
{
    (void)arg;
    take_type(d);
    need(d, 2, 3);
    d->in.d = destination(d, &d->st->ops[0]);
    d->in.a = source(d, 1, T_U64);
    d->in.imm = 8;
    if (d->st->count == 3) {
        const operand *o = &d->st->ops[2];
        if (o->kind != OP_INT || !o->value || o->value > 4096 || (o->value & (o->value - 1)))
            bad_operand(d, "an alignment is a power of two");
        d->in.imm = (int64_t)o->value;
    }
    d->in.run = ptx_run_alloca;
}

// arg: 0 stacksave, 1 stackrestore
static void dec_stack(decoder *d, int arg)
{
    take_type(d);
    need(d, 1, 1);
    if (arg)
        d->in.a = source(d, 0, T_U64);
    else
        d->in.d = destination(d, &d->st->ops[0]);
    d->in.run = arg ? ptx_run_stackrestore : ptx_run_stacksave;
}

const opcode ptx_flow_opcodes[] = {
    {"bra", dec_bra, 0},
    {"brx", dec_brx, 0},
    {"call", dec_call, 0},
    {"ret", dec_plain, P_RET},
    {"exit", dec_plain, P_EXIT},
    {"trap", dec_plain, P_TRAP},
    {"brkpt", dec_plain, P_TRAP},
    {"membar", dec_plain, P_FENCE},
    {"fence", dec_plain, P_FENCE},
    {"nanosleep", dec_plain, P_YIELD},
    {"griddepcontrol", dec_plain, P_NOP},
    {"pmevent", dec_plain, P_NOP},
    {"setmaxnreg", dec_plain, P_NOP},
    {"shfl", dec_shfl, 0},
    {"vote", dec_vote, 0},
    {"match", dec_match, 0},
    {"redux", dec_redux, 0},
    {"elect", dec_elect, 0},
    {"activemask", dec_activemask, 0},
    {"bar", dec_bar, 0},
    {"barrier", dec_bar, 0},
    {"alloca", dec_alloca, 0},
    {"stacksave", dec_stack, 0},
    {"stackrestore", dec_stack, 0},
    {NULL, NULL, 0},
};
