// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Branches, calls, returns, and the ways a thread ends.
#include "ptx/ptx_flow.h"

#include <sched.h>
#include <stdlib.h>

#include "ptx/ptx_lanes.h"

#define MAX_DEPTH 8192

// Would the scheduler choose the lanes of the group that go on at a pc below those of all others?
static inline int goes_on(const warp *w) { return w->lowest && w->steps < w->fair_at; }

LANES_BEGIN

INLINE step ptx_run_bra_body(warp *w, const insn *in, uint32_t m, const int wide)
{
    uint32_t target = (uint32_t)in->imm;
    (void)wide;
    if (m == w->active) {
        // Jumping back while other lanes are elsewhere may pass them: choose again.
        if (target <= w->pc && w->active != w->live && !goes_on(w)) {
            leave_group(w, m, target);
            w->active = 0;
            return ST_SPLIT;
        }
        w->pc = target;
        return ST_JUMP;
    }
    leave_group(w, m, target);
    w->active &= ~m;
    if (target > w->pc && goes_on(w)) {
        if (target < w->next_pc)
            w->next_pc = target;
        return ST_NEXT;
    }
    leave_group(w, w->active, w->pc + 1);
    w->active = 0;
    return ST_SPLIT;
}
PUBLIC_TWINS(ptx_run_bra)

LANES_END

// brx.idx: an index beyond the list is undefined; here it is an error.
step ptx_run_brx(warp *w, const insn *in, uint32_t m)
{
    const uint64_t *A = src(w, in->a);
    const int32_t *targets = w->blk->ln->m->lists + in->list;
    FOR_LANES (m) {
        if ((uint32_t)A[l] >= (uint32_t)in->imm)
            return fault(w, in, l, PTX_INVALID_PC, 0, "branch index %u of %u targets", (uint32_t)A[l],
                         (uint32_t)in->imm);
    }
    spill_group(w, w->pc + 1);
    FOR_LANES (m) {
        w->lane_pc[l] = (uint32_t)targets[(uint32_t)A[l]];
    }
    return ST_SPLIT;
}

// ---- calls

static uint8_t *lane_local(const warp *w, unsigned lane) { return w->local + (size_t)lane * w->blk->ln->local_size; }

static const int32_t *call_list(const warp *w, const insn *in) { return w->blk->ln->m->lists + in->list; }

uint64_t ptx_call_argument(const warp *w, const insn *in, unsigned lane, unsigned index)
{
    const int32_t *list = call_list(w, in);
    if (index >= (unsigned)list[CALL_ARGS])
        return 0;
    const int32_t *item = list + CALL_FIRST + ((unsigned)list[CALL_RETS] + index) * CALL_ITEM;
    if (!item[2])
        return src(w, item[0])[lane];
    uint64_t v = 0;
    memcpy(&v, lane_local(w, lane) + w->lframe[lane] + item[0], item[1] < 8 ? (size_t)item[1] : 8);
    return v;
}

void ptx_call_result(warp *w, const insn *in, unsigned lane, uint64_t value)
{
    const int32_t *list = call_list(w, in);
    if (!list[CALL_RETS])
        return;
    const int32_t *item = list + CALL_FIRST;
    if (!item[2])
        dst(w, item[0])[lane] = value;
    else
        memcpy(lane_local(w, lane) + w->lframe[lane] + item[0], &value, item[1] < 8 ? (size_t)item[1] : 8);
}

// Copies one value between the frames of a caller and a callee; either side is memory or a register.
static void pass(warp *w, unsigned lane, const int32_t *item, const ptx_var *v, uint32_t outer_l, uint32_t inner_l,
                 uint64_t *outer_r, uint64_t *inner_r, int inwards)
{
    uint8_t *local = lane_local(w, lane);
    int in_memory = v->space == SP_PARAM;
    size_t size = (size_t)item[1] < v->size || !item[2] ? (size_t)item[1] : v->size;
    if (!item[2] && size > 8)
        size = 8;
    if (size > v->size)
        size = v->size;
    if (inwards) {
        const uint64_t *reg =
            item[0] >= 0 ? outer_r + (size_t)item[0] * WARP + lane : w->consts + (size_t)~item[0] * WARP + lane;
        const void *from = item[2] ? (void *)(local + outer_l + item[0]) : (const void *)reg;
        if (in_memory)
            memmove(local + inner_l + v->address, from, size);
        else if (v->slot >= 0) {
            uint64_t value = 0;
            memcpy(&value, from, size < 8 ? size : 8);
            inner_r[(size_t)v->slot * WARP + lane] = value;
        }
    } else {
        uint64_t value = 0;
        const void *from = in_memory      ? (const void *)(local + inner_l + v->address)
                           : v->slot >= 0 ? (const void *)(inner_r + (size_t)v->slot * WARP + lane)
                                          : &value;
        if (item[2])
            memmove(local + outer_l + item[0], from, size);
        else {
            memcpy(&value, from, size < 8 ? size : 8);
            outer_r[(size_t)item[0] * WARP + lane] = value;
        }
    }
}

static int grow_calls(warp *w, uint32_t depth)
{
    if (depth < w->call_cap)
        return 1;
    uint32_t cap = w->call_cap ? w->call_cap * 2 : 16;
    call_record *grown = realloc(w->calls, (size_t)cap * WARP * sizeof *grown);
    if (!grown)
        return 0;
    w->calls = grown;
    w->call_cap = cap;
    return 1;
}

static step enter(warp *w, const insn *in, uint32_t m, const ptx_fn *f)
{
    const launch *ln = w->blk->ln;
    const int32_t *list = call_list(w, in);
    if (!f->defined)
        return f->builtin ? f->builtin(w, in, m)
                          : fault(w, in, (unsigned)__builtin_ctz(m), PTX_INVALID_PC, 0,
                                  "call of '%s', which is not defined", f->name);
    if ((uint32_t)list[CALL_ARGS] != f->param_count)
        return fault(w, in, (unsigned)__builtin_ctz(m), PTX_INVALID_PC, 0, "'%s' takes %u arguments, not %d", f->name,
                     f->param_count, list[CALL_ARGS]);
    uint32_t frame = w->frame + ln->m->fns[in->e]->slots;
    FOR_LANES (m) {
        if (w->depth[l] >= MAX_DEPTH || !grow_calls(w, w->depth[l]) || !grow_registers(w, (uint64_t)frame + f->slots))
            return fault(w, in, l, PTX_STACK_ERROR, 0, "calls nested too deeply (%u)", w->depth[l]);
        if (((w->lsp[l] + 15) & ~15u) + f->frame > ln->local_size)
            return fault(w, in, l, PTX_STACK_ERROR, 0, "the stack of %u bytes per thread is full, %u calls deep",
                         ln->local_size, w->depth[l]);
    }
    uint64_t *outer = w->r, *inner = w->regs + (size_t)frame * WARP;
    FOR_LANES (m) {
        uint32_t lframe = (w->lsp[l] + 15) & ~15u;
        const int32_t *item = list + CALL_FIRST + list[CALL_RETS] * CALL_ITEM;
        for (uint32_t i = 0; i < f->param_count; i++, item += CALL_ITEM)
            pass(w, l, item, f->params[i], w->lframe[l], lframe, outer, inner, 1);
        w->calls[(size_t)w->depth[l] * WARP + l] = (call_record){w->pc + 1, w->frame, w->lframe[l], w->lsp[l]};
        w->depth[l]++;
        w->lframe[l] = lframe;
        w->lsp[l] = lframe + f->frame;
    }
    if (m == w->active && m == w->live) {
        set_frame(w, frame);
        w->pc = f->first;
        w->next_pc = UINT32_MAX;
        return ST_JUMP;
    }
    spill_group(w, w->pc + 1);
    FOR_LANES (m) {
        w->lane_pc[l] = f->first;
        w->lane_frame[l] = frame;
    }
    return ST_SPLIT;
}

step ptx_run_call(warp *w, const insn *in, uint32_t m) { return enter(w, in, m, w->blk->ln->m->fns[in->imm]); }

// Lanes that call different functions part here, one function at a time.
step ptx_run_call_indirect(warp *w, const insn *in, uint32_t m)
{
    const sim_ptx_module *mod = w->blk->ln->m;
    const uint64_t *A = src(w, in->a);
    unsigned lead = (unsigned)__builtin_ctz(m);
    uint64_t target = A[lead], index = target - (uintptr_t)mod->fn_tokens;
    if (index >= mod->fn_count)
        return fault(w, in, lead, PTX_INVALID_PC, target, "call through 0x%llx, which is no function",
                     (unsigned long long)target);
    uint32_t same = 0;
    FOR_LANES (m) {
        if (A[l] == target)
            same |= 1u << l;
    }
    if (same != m) {
        // The rest stays at this instruction and comes back to it.
        uint32_t pc = w->pc, others = w->active & ~m;
        spill_group(w, pc);
        for (uint32_t left = others; left; left &= left - 1)
            w->lane_pc[__builtin_ctz(left)] = pc + 1;
        w->active = same;
        w->next_pc = UINT32_MAX;
    }
    step s = enter(w, in, same, mod->fns[index]);
    if (s == ST_NEXT && same != m) {
        spill_group(w, w->pc + 1);
        return ST_SPLIT;
    }
    return s;
}

step ptx_run_ret(warp *w, const insn *in, uint32_t m)
{
    uint32_t top = 0;
    FOR_LANES (m) {
        if (!w->depth[l])
            top |= 1u << l;
    }
    if (top == m)
        return ptx_run_exit(w, in, m);
    // Depth belongs to the frame, so all lanes of a group have returned to their kernel or none has.
    const launch *ln = w->blk->ln;
    const ptx_fn *f = ln->m->fns[in->e];
    uint64_t *inner = w->r;
    uint32_t all = w->active;
    spill_group(w, w->pc + 1);
    uint32_t pc = 0, frame = 0;
    int same = 1, first = 1;
    FOR_LANES (m) {
        w->depth[l]--;
        const call_record *c = &w->calls[(size_t)w->depth[l] * WARP + l];
        const insn *call = w->code + c->return_pc - 1;
        const int32_t *list = call_list(w, call);
        const int32_t *item = list + CALL_FIRST;
        // What a caller takes of a function that returns nothing is undefined, as on hardware.
        for (uint32_t i = 0; i < (uint32_t)list[CALL_RETS] && i < f->ret_count; i++, item += CALL_ITEM)
            pass(w, l, item, f->rets[i], c->lframe, w->lframe[l], w->regs + (size_t)c->frame * WARP, inner, 0);
        w->lane_pc[l] = c->return_pc;
        w->lane_frame[l] = c->frame;
        w->lframe[l] = c->lframe;
        w->lsp[l] = c->lsp;
        if (first) {
            pc = c->return_pc;
            frame = c->frame;
            first = 0;
        } else if (pc != c->return_pc || frame != c->frame)
            same = 0;
    }
    if (!same || m != all || m != w->live)
        return ST_SPLIT;
    w->active = m;
    w->pc = pc;
    set_frame(w, frame);
    w->next_pc = UINT32_MAX;
    return ST_JUMP;
}

static void exit_lanes(warp *w, uint32_t m)
{
    block *b = w->blk;
    w->live &= ~m;
    w->active &= ~m;
    b->live_threads -= (uint32_t)__builtin_popcount(m);
    sync_after_exit(w);
    barriers_after_exit(b);
}

step ptx_run_exit(warp *w, const insn *in, uint32_t m)
{
    (void)in;
    if (w->active != m && goes_on(w) && !w->at_barrier && !w->at_sync) {
        exit_lanes(w, m);
        return ST_NEXT;
    }
    if (w->active != m)
        spill_group(w, w->pc + 1);
    w->active = 0;
    exit_lanes(w, m);
    return ST_SPLIT;
}

step ptx_run_trap(warp *w, const insn *in, uint32_t m)
{
    return fault(w, in, (unsigned)__builtin_ctz(m), PTX_LAUNCH_FAILED, 0, "the kernel trapped");
}

step ptx_run_nop(warp *w, const insn *in, uint32_t m)
{
    (void)w, (void)in, (void)m;
    return ST_NEXT;
}

step ptx_run_fence(warp *w, const insn *in, uint32_t m)
{
    (void)w, (void)in, (void)m;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return ST_NEXT;
}

// nanosleep: let other lanes go first.
step ptx_run_yield(warp *w, const insn *in, uint32_t m)
{
    (void)in, (void)m;
    sched_yield();
    if (w->active == w->live)
        return ST_NEXT;
    w->fair_at = w->steps;
    spill_group(w, w->pc + 1);
    return ST_SPLIT;
}

step ptx_run_unsupported(warp *w, const insn *in, uint32_t m)
{
    return fault(w, in, (unsigned)__builtin_ctz(m), PTX_NOT_SUPPORTED, 0,
                 "the simulator does not know this instruction");
}
