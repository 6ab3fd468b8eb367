// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// A warp: which of its lanes run next, and the loop that runs them.
//
// Lanes at the same pc of the same frame run together. The group that is deepest in calls and then at the lowest
// pc goes first, which makes lanes meet again after a branch. That alone could starve lanes at a higher pc for
// which the others wait, so now and then the lanes that have waited longest are favoured for a while: lanes of one
// warp may spin on each other.
#include <stdlib.h>

#include "ptx/ptx_lanes.h"

#define FAIR_PERIOD 2048
#define FAVOUR 256
#define MAX_SLOTS ((uint64_t)1 << 19)  // per lane: 128 MiB for a warp

LANES_BEGIN

INLINE void spill(warp *w, uint32_t pc)
{
    leave_group(w, w->active, pc);
    w->active = 0;
}

void spill_group(warp *w, uint32_t pc) { spill(w, pc); }

LANES_END

int grow_registers(warp *w, uint64_t slots)
{
    if (slots <= w->slots)
        return 1;
    if (slots > MAX_SLOTS)
        return 0;
    uint64_t next = w->slots * 2 > slots ? w->slots * 2 : slots;
    uint64_t *grown = aligned_alloc(64, next * WARP * sizeof *grown);
    uint32_t *preds = grown ? realloc(w->preds, next * sizeof *preds) : NULL;
    if (!preds) {
        free(grown);
        return 0;
    }
    memset(preds + w->slots, 0, (next - w->slots) * sizeof *preds);
    w->preds = preds;
    if (w->slots)
        memcpy(grown, w->regs, (size_t)w->slots * WARP * sizeof *grown);
    memset(grown + (size_t)w->slots * WARP, 0, (next - w->slots) * WARP * sizeof *grown);
    free(w->regs);
    w->regs = grown;
    w->slots = (uint32_t)next;
    set_frame(w, w->frame);
    return 1;
}

static unsigned first_choice(const warp *w, uint32_t candidates)
{
    unsigned best = (unsigned)__builtin_ctz(candidates);
    for (uint32_t left = candidates & (candidates - 1); left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        if (w->depth[l] > w->depth[best] || (w->depth[l] == w->depth[best] && w->lane_pc[l] < w->lane_pc[best]))
            best = l;
    }
    return best;
}

static unsigned longest_waiting(const warp *w, uint32_t candidates)
{
    unsigned best = (unsigned)__builtin_ctz(candidates);
    for (uint32_t left = candidates & (candidates - 1); left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        if ((int32_t)(w->last_run[l] - w->last_run[best]) < 0)
            best = l;
    }
    return best;
}

// Makes the lanes that are where `lead` is the running group.
static void group_of(warp *w, unsigned lead, uint32_t candidates)
{
    uint32_t group = 0, pc = w->lane_pc[lead], frame = w->lane_frame[lead], meet = UINT32_MAX;
    for (uint32_t left = candidates; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        if (w->lane_frame[l] != frame)
            continue;
        if (w->lane_pc[l] == pc)
            group |= 1u << l;
        else if (w->lane_pc[l] > pc && w->lane_pc[l] < meet)
            meet = w->lane_pc[l];
    }
    w->active = group;
    w->pc = pc;
    w->next_pc = meet;
    w->lowest = 0;
    set_frame(w, frame);
}

LANES_BEGIN

// Without calls all lanes are in one frame: the ones at the lowest pc run, until they meet others at the next higher
// one.
INLINE void pick_lowest(warp *w, uint32_t candidates)
{
    uint32_t pc = UINT32_MAX, meet = UINT32_MAX, group = 0;
    for (unsigned l = 0; l < WARP; l++) {
        uint32_t at = (candidates & ptx_lane_bit[l]) != 0 ? w->lane_pc[l] : UINT32_MAX;
        pc = at < pc ? at : pc;
    }
    for (unsigned l = 0; l < WARP; l++) {
        uint32_t at = (candidates & ptx_lane_bit[l]) != 0 ? w->lane_pc[l] : UINT32_MAX;
        uint32_t later = at == pc ? UINT32_MAX : at;
        group |= at == pc ? ptx_lane_bit[l] : 0;
        meet = later < meet ? later : meet;
    }
    w->active = group;
    w->pc = pc;
    w->next_pc = meet;
    w->lowest = 1;
}

INLINE int pick(warp *w)
{
    uint32_t candidates = w->live & ~w->at_barrier & ~w->at_sync;
    if (!candidates)
        return 0;
    unsigned lead;
    if (w->steps >= w->fair_at) {
        lead = longest_waiting(w, candidates);
        w->favoured = lead;
        w->favour_until = w->steps + FAVOUR;
        w->fair_at = w->steps + FAIR_PERIOD;
    } else if (w->steps < w->favour_until && candidates >> w->favoured & 1) {
        lead = w->favoured;
    } else if (!w->call_cap) {
        pick_lowest(w, candidates);
        return 1;
    } else {
        lead = first_choice(w, candidates);
    }
    group_of(w, lead, candidates);
    return 1;
}

INLINE int run(warp *w, unsigned budget)
{
    int ran = 0;
    while (budget) {
        if (!w->active && !pick(w))
            return ran;
        ran = 1;
        for (;;) {
            const insn *in = w->code + w->pc;
            uint32_t m = w->active;
            step s = ST_NEXT;
            w->steps++;
            budget--;
            if (in->pred >= 0)
                m &= pred(w, in->pred >> 1, in->pred & 1);
            if (m)
                s = in->run(w, in, m);
            if (s == ST_NEXT)
                w->pc++;
            else if (s == ST_SPLIT)
                break;
            else if (s == ST_FAULT)
                return 1;
            if (w->pc >= w->next_pc) {
                spill(w, w->pc);
                break;
            }
            if (!budget) {
                if (w->active != w->live)
                    spill(w, w->pc);
                return 1;
            }
        }
    }
    return ran;
}

int warp_run(warp *w, unsigned budget) { return run(w, budget); }

#if HAS_WIDE
WIDE_TARGET int warp_run_wide(warp *w, unsigned budget) { return run(w, budget); }
#else
int warp_run_wide(warp *w, unsigned budget) { return run(w, budget); }  // not called
#endif

LANES_END
