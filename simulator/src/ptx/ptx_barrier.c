// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Barriers of a block and of a cluster.
//
// Threads arrive one by one (lanes of a warp may be apart). An exited thread counts as arrived. Where a number of
// threads is given, a warp whose living lanes have all arrived counts as a whole one, as on hardware.
#include "ptx/ptx_exec.h"
#include "ptx/ptx_flow.h"

enum { BAR_SYNC, BAR_ARRIVE, BAR_RED_POPC, BAR_RED_AND, BAR_RED_OR };

static uint32_t arrived_threads(const block *b, const barrier *bar)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->warps; i++) {
        uint32_t a = bar->arrived[i];
        if (a)
            n += b->w[i].live & ~a ? (uint32_t)__builtin_popcount(a) : WARP;
    }
    return n;
}

static int is_complete(const block *b, const barrier *bar)
{
    if (bar->expected)
        return arrived_threads(b, bar) >= bar->expected;
    for (uint32_t i = 0; i < b->warps; i++)
        if (b->w[i].live & ~bar->arrived[i])
            return 0;
    return 1;
}

// The waiting lanes are past the barrier already; its result goes to where their instruction wants it.
static void give_result(warp *w, unsigned l, const barrier *bar)
{
    const insn *in = w->code + w->lane_pc[l] - 1;
    uint64_t *frame = w->regs + (size_t)w->lane_frame[l] * WARP;
    if (in->sub == BAR_RED_POPC) {
        frame[(size_t)in->d * WARP + l] = bar->yes;
    } else if (in->sub == BAR_RED_AND || in->sub == BAR_RED_OR) {
        uint32_t *p = &w->preds[w->lane_frame[l] + (uint32_t)in->d];
        uint32_t r = in->sub == BAR_RED_AND ? bar->yes == bar->votes : bar->yes != 0;
        *p = (*p & ~(1u << l)) | r << l;
    }
}

static void try_release(block *b, barrier *bar)
{
    if (!bar->used || !is_complete(b, bar))
        return;
    for (uint32_t i = 0; i < b->warps; i++) {
        for (uint32_t left = bar->votes ? bar->waiting[i] : 0; left; left &= left - 1)
            give_result(&b->w[i], (unsigned)__builtin_ctz(left), bar);
        b->w[i].at_barrier &= ~bar->waiting[i];
    }
    memset(bar, 0, sizeof *bar);
}

// The usual barrier: its number is a constant, it counts all threads, and the lanes of the group arrive for the first
// time.
static int arrive_together(warp *w, const insn *in, uint32_t m, int waits)
{
    if (in->a >= 0 || in->b != NO_OPERAND || m != w->active)
        return 0;
    uint64_t id = src(w, in->a)[0];
    if (id >= MAX_BARRIERS || !waits)
        return 0;
    barrier *bar = &w->blk->barriers[id];
    if (bar->arrived[w->index] & m)
        return 0;
    bar->used = 1;
    bar->arrived[w->index] |= m;
    bar->waiting[w->index] |= m;
    if (in->c != NO_OPERAND) {
        bar->votes += (uint32_t)__builtin_popcount(m);
        bar->yes += (uint32_t)__builtin_popcount(pred(w, in->c, in->flags & F_NEG_C) & m);
    }
    spill_group(w, w->pc + 1);
    w->at_barrier |= m;
    try_release(w->blk, bar);
    return 1;
}

static step arrive(warp *w, const insn *in, uint32_t m, int waits)
{
    if (arrive_together(w, in, m, waits))
        return ST_SPLIT;
    block *b = w->blk;
    uint32_t pc = w->pc;
    uint64_t id[WARP], count[WARP];
    uint32_t voted = in->c == NO_OPERAND ? 0 : pred(w, in->c, in->flags & F_NEG_C);
    FOR_LANES (m) {
        id[l] = (uint32_t)src(w, in->a)[l];
        count[l] = in->b == NO_OPERAND ? 0 : (uint32_t)src(w, in->b)[l];
        if (id[l] >= MAX_BARRIERS)
            return fault(w, in, l, PTX_ILLEGAL_INSTRUCTION, 0, "there is no barrier %u", (unsigned)id[l]);
        if (count[l] % WARP || (!waits && !count[l]))
            return fault(w, in, l, PTX_ILLEGAL_INSTRUCTION, 0, "a barrier counts whole warps, not %u threads",
                         (unsigned)count[l]);
    }
    spill_group(w, pc + 1);
    FOR_LANES (m) {
        barrier *bar = &b->barriers[id[l]];
        if (bar->arrived[w->index] >> l & 1) {  // the previous use is not over for this lane: come back
            w->lane_pc[l] = pc;
            continue;
        }
        bar->used = 1;
        if (count[l])
            bar->expected = (uint32_t)count[l];
        bar->arrived[w->index] |= 1u << l;
        if (in->c != NO_OPERAND) {
            bar->votes++;
            bar->yes += voted >> l & 1;
        }
        if (waits) {
            bar->waiting[w->index] |= 1u << l;
            w->at_barrier |= 1u << l;
        }
    }
    uint32_t done = 0;
    FOR_LANES (m) {
        if (!(done >> id[l] & 1)) {
            done |= 1u << id[l];
            try_release(b, &b->barriers[id[l]]);
        }
    }
    return ST_SPLIT;
}

step ptx_run_barrier(warp *w, const insn *in, uint32_t m)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return arrive(w, in, m, 1);
}

step ptx_run_barrier_arrive(warp *w, const insn *in, uint32_t m)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return arrive(w, in, m, 0);
}

// ---- the barrier of the cluster

static void try_cluster(cluster *cl)
{
    for (uint32_t i = 0; i < cl->blocks; i++)
        for (uint32_t k = 0; k < cl->b[i].warps; k++)
            if (cl->b[i].w[k].live & ~cl->b[i].w[k].cluster_arrived)
                return;
    cl->phase++;
    for (uint32_t i = 0; i < cl->blocks; i++)
        for (uint32_t k = 0; k < cl->b[i].warps; k++) {
            warp *w = &cl->b[i].w[k];
            w->at_barrier &= ~w->cluster_waiting;
            w->cluster_arrived = w->cluster_waiting = 0;
        }
}

step ptx_run_cluster_arrive(warp *w, const insn *in, uint32_t m)
{
    cluster *cl = w->blk->cl;
    if (w->cluster_arrived & m)
        return fault(w, in, (unsigned)__builtin_ctz(w->cluster_arrived & m), PTX_ILLEGAL_INSTRUCTION, 0,
                     "the thread arrives at the cluster barrier twice");
    FOR_LANES (m) {
        w->cluster_phase[l] = cl->phase;
    }
    w->cluster_arrived |= m;
    try_cluster(cl);
    return ST_NEXT;
}

step ptx_run_cluster_wait(warp *w, const insn *in, uint32_t m)
{
    cluster *cl = w->blk->cl;
    uint32_t wait = 0;
    (void)in;
    FOR_LANES (m) {
        if (w->cluster_arrived >> l & 1 && w->cluster_phase[l] == cl->phase)
            wait |= 1u << l;
    }
    if (!wait)
        return ST_NEXT;
    spill_group(w, w->pc + 1);
    w->cluster_waiting |= wait;
    w->at_barrier |= wait;
    return ST_SPLIT;
}

void barriers_after_exit(block *b)
{
    for (unsigned i = 0; i < MAX_BARRIERS; i++)
        try_release(b, &b->barriers[i]);
    int waiting = 0;
    for (uint32_t i = 0; i < b->cl->blocks && !waiting; i++)
        for (uint32_t k = 0; k < b->cl->b[i].warps; k++)
            waiting |= b->cl->b[i].w[k].cluster_waiting != 0 || b->cl->b[i].w[k].cluster_arrived != 0;
    if (waiting)
        try_cluster(b->cl);
}
