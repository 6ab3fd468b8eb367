// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Instructions that the lanes of a warp carry out together: shuffles, votes, matches, reductions, warp barriers.
//
// A lane that reaches one waits (w->at_sync) until every living lane of its member mask waits at the same
// operation with the same mask; that may be at another place of the program.
#include "ptx/ptx_flow.h"
#include "ptx/ptx_lanes.h"

static const insn *insn_of(const warp *w, unsigned l) { return w->code + w->lane_pc[l]; }

static uint64_t lane_src(const warp *w, unsigned l, int32_t o)
{
    return o >= 0 ? w->regs[((size_t)w->lane_frame[l] + (size_t)o) * WARP + l] : w->consts[(size_t)~o * WARP];
}

static uint64_t *lane_dst(const warp *w, unsigned l, int32_t o)
{
    return &w->regs[((size_t)w->lane_frame[l] + (size_t)o) * WARP + l];
}

static int lane_pred(const warp *w, unsigned l, int32_t o, int negated)
{
    uint32_t p = o >= 0 ? w->preds[w->lane_frame[l] + (uint32_t)o] : (uint32_t)w->consts[(size_t)~o * WARP];
    return (int)((p >> l & 1) ^ (unsigned)negated);
}

static void lane_set_pred(const warp *w, unsigned l, int32_t o, int value)
{
    if (o == NO_OPERAND)
        return;
    uint32_t *p = &w->preds[w->lane_frame[l] + (uint32_t)o];
    *p = (*p & ~(1u << l)) | (uint32_t)(value != 0) << l;
}

static void shuffle(warp *w, uint32_t m, sync_op op)
{
    uint64_t value[WARP];
    FOR_LANES (m) {
        value[l] = lane_src(w, l, insn_of(w, l)->a);
    }
    FOR_LANES (m) {
        const insn *in = insn_of(w, l);
        uint32_t b = (uint32_t)lane_src(w, l, in->b) & 31;
        uint32_t c = (uint32_t)lane_src(w, l, in->c);
        uint32_t seg = c >> 8 & 31;
        uint32_t clamp = c & 31;
        uint32_t low = l & seg;
        uint32_t high = low | (clamp & ~seg & 31);
        int32_t from;
        int ok;
        switch (op) {
        case SYNC_SHFL_UP:
            from = (int32_t)l - (int32_t)b;
            ok = from >= (int32_t)high;
            break;
        case SYNC_SHFL_DOWN:
            from = (int32_t)(l + b);
            ok = from <= (int32_t)high;
            break;
        case SYNC_SHFL_BFLY:
            from = (int32_t)(l ^ b);
            ok = from <= (int32_t)high;
            break;
        default: from = (int32_t)(low | (b & ~seg & 31)); ok = from <= (int32_t)high;
        }
        if (!ok || !(m >> from & 1))
            from = (int32_t)l;
        if (in->d != NO_OPERAND)
            *lane_dst(w, l, in->d) = (uint32_t)value[from];
        lane_set_pred(w, l, in->e, ok);
    }
}

static void vote(warp *w, uint32_t m, sync_op op)
{
    uint32_t yes = 0;
    FOR_LANES (m) {
        const insn *in = insn_of(w, l);
        yes |= (uint32_t)lane_pred(w, l, in->a, (in->flags & F_NEG_A) != 0) << l;
    }
    FOR_LANES (m) {
        const insn *in = insn_of(w, l);
        switch (op) {
        case SYNC_VOTE_BALLOT:
            if (in->d != NO_OPERAND)
                *lane_dst(w, l, in->d) = yes;
            break;
        case SYNC_VOTE_ALL: lane_set_pred(w, l, in->d, yes == m); break;
        case SYNC_VOTE_ANY: lane_set_pred(w, l, in->d, yes != 0); break;
        default: lane_set_pred(w, l, in->d, yes == 0 || yes == m);
        }
    }
}

static void match(warp *w, uint32_t m, sync_op op)
{
    uint64_t value[WARP];
    FOR_LANES (m) {
        const insn *in = insn_of(w, l);
        value[l] = lane_src(w, l, in->a);
        if (in->type == T_B32)
            value[l] = (uint32_t)value[l];
    }
    uint32_t lanes = m;
    FOR_LANES (m) {
        const insn *in = insn_of(w, l);
        uint32_t same = 0;
        for (uint32_t r = lanes; r; r &= r - 1) {
            unsigned k = (unsigned)__builtin_ctz(r);
            if (value[k] == value[l])
                same |= 1u << k;
        }
        if (op == SYNC_MATCH_ALL) {
            lane_set_pred(w, l, in->e, same == lanes);
            if (same != lanes)
                same = 0;
        }
        if (in->d != NO_OPERAND)
            *lane_dst(w, l, in->d) = same;
    }
}

static float redux_float(const insn *in, float a, float b)
{
    if (in->flags & F_ABS)
        a = __builtin_fabsf(a), b = __builtin_fabsf(b);
    if (a != a || b != b)
        return in->flags & F_NAN ? as_f32(0x7fffffff) : a != a ? b : a;
    return (in->stype == REDUX_MIN) == (a < b) ? a : b;
}

static void redux(warp *w, uint32_t m)
{
    const insn *one = insn_of(w, (unsigned)__builtin_ctz(m));
    uint32_t r = (uint32_t)lane_src(w, (unsigned)__builtin_ctz(m), one->a), all = m;
    m &= m - 1;
    FOR_LANES (m) {
        uint32_t v = (uint32_t)lane_src(w, l, insn_of(w, l)->a);
        if (one->type == T_F32)
            r = (uint32_t)of_f32(redux_float(one, as_f32(r), as_f32(v)));
        else
            switch (one->stype) {
            case REDUX_ADD: r += v; break;
            case REDUX_AND: r &= v; break;
            case REDUX_OR: r |= v; break;
            case REDUX_XOR: r ^= v; break;
            case REDUX_MIN: r = one->type == T_S32 ? ((int32_t)v < (int32_t)r ? v : r) : v < r ? v : r; break;
            default: r = one->type == T_S32 ? ((int32_t)v > (int32_t)r ? v : r) : v > r ? v : r;
            }
    }
    m = all;
    FOR_LANES (m) {
        const insn *in = insn_of(w, l);
        if (in->d != NO_OPERAND)
            *lane_dst(w, l, in->d) = r;
    }
}

static void elect(warp *w, uint32_t m)
{
    unsigned leader = (unsigned)__builtin_ctz(m);
    FOR_LANES (m) {
        const insn *in = insn_of(w, l);
        if (in->d != NO_OPERAND)
            *lane_dst(w, l, in->d) = leader;
        lane_set_pred(w, l, in->e, l == leader);
    }
}

// Every lane of m is at its instruction, with lane_pc and lane_frame set.
static void together(warp *w, uint32_t m)
{
    sync_op op = (sync_op)insn_of(w, (unsigned)__builtin_ctz(m))->sub;
    switch (op) {
    case SYNC_SHFL_UP:
    case SYNC_SHFL_DOWN:
    case SYNC_SHFL_BFLY:
    case SYNC_SHFL_IDX: shuffle(w, m, op); break;
    case SYNC_VOTE_ALL:
    case SYNC_VOTE_ANY:
    case SYNC_VOTE_UNI:
    case SYNC_VOTE_BALLOT: vote(w, m, op); break;
    case SYNC_MATCH_ANY:
    case SYNC_MATCH_ALL: match(w, m, op); break;
    case SYNC_REDUX: redux(w, m); break;
    case SYNC_ELECT: elect(w, m); break;
    default: __atomic_thread_fence(__ATOMIC_SEQ_CST);
    }
}

static int same_operation(const insn *a, const insn *b)
{
    return a->sub == b->sub && a->type == b->type && a->stype == b->stype && a->run == b->run;
}

// Does lane `lead`, which waits, have everybody it waits for? Then do it and let them go.
static int try_together(warp *w, unsigned lead)
{
    uint32_t mask = w->sync_mask[lead], m = mask & w->live;
    if (m & ~w->at_sync)
        return 0;
    const insn *in = insn_of(w, lead);
    FOR_LANES (m) {
        if (w->sync_mask[l] != mask || !same_operation(in, insn_of(w, l)))
            return 0;
    }
    together(w, m);
    FOR_LANES (m) {
        w->lane_pc[l]++;
    }
    w->at_sync &= ~m;
    return 1;
}

// Some of the lanes of the mask are elsewhere, or the masks differ: wait.
static step meet(warp *w, const insn *in, uint32_t m)
{
    uint32_t pc = w->pc;
    FOR_LANES (m) {
        w->sync_mask[l] = (in->list == NO_OPERAND ? m : (uint32_t)src(w, in->list)[l]) | 1u << l;
    }
    uint32_t others = w->active & ~m;
    spill_group(w, pc);
    for (uint32_t left = others; left; left &= left - 1)
        w->lane_pc[__builtin_ctz(left)] = pc + 1;
    w->at_sync |= m;
    FOR_LANES (m) {
        if (w->at_sync >> l & 1)
            try_together(w, l);
    }
    return ST_SPLIT;
}

LANES_BEGIN

// A shuffle or a vote whose members are all at this instruction.
INLINE void shuffle_here(warp *w, const insn *in, uint32_t m, const int wide)
{
    const uint64_t *A = src(w, in->a), *B = src(w, in->b), *C = src(w, in->c);
    uint32_t from[WARP], good[WARP], ok = 0;
    sync_op op = (sync_op)in->sub;
    for (uint32_t l = 0; l < WARP; l++) {
        uint32_t b = (uint32_t)B[l] & 31, c = (uint32_t)C[l], seg = c >> 8 & 31, low = l & seg;
        uint32_t high = low | (c & ~seg & 31);
        int32_t f = (int32_t)(op == SYNC_SHFL_UP     ? l - b
                              : op == SYNC_SHFL_DOWN ? l + b
                              : op == SYNC_SHFL_BFLY ? l ^ b
                                                     : low | (b & ~seg & 31));
        int valid = op == SYNC_SHFL_UP ? f >= (int32_t)high : f <= (int32_t)high;
        good[l] = valid ? ptx_lane_bit[l] : 0;
        from[l] = (uint32_t)f & 31;
    }
    for (unsigned l = 0; l < WARP; l++)
        ok |= good[l];
    if (in->d != NO_OPERAND) {
        uint64_t *d = dst(w, in->d);
        // A lane without a source, or whose source does not take part, gets its own value.
        for (unsigned l = 0; l < WARP; l++) {
            unsigned f = good[l] && m >> from[l] & 1 ? from[l] : l;
            w->sum[l] = (uint32_t)A[f];
        }
        EACH_LANE(o[l] = w->sum[l];);
    }
    set_pred(w, in->e, m, ok);
}

INLINE void vote_here(warp *w, const insn *in, uint32_t m, const int wide)
{
    uint32_t yes = pred(w, in->a, in->flags & F_NEG_A) & m;
    switch ((sync_op)in->sub) {
    case SYNC_VOTE_BALLOT:
        if (in->d != NO_OPERAND) {
            uint64_t *d = dst(w, in->d);
            EACH_LANE(o[l] = yes;);
        }
        break;
    case SYNC_VOTE_ALL: set_pred(w, in->d, m, yes == m ? FULL : 0); break;
    case SYNC_VOTE_ANY: set_pred(w, in->d, m, yes ? FULL : 0); break;
    default: set_pred(w, in->d, m, yes == 0 || yes == m ? FULL : 0);
    }
}

INLINE step ptx_run_sync_body(warp *w, const insn *in, uint32_t m, const int wide)
{
    unsigned lead = (unsigned)__builtin_ctz(m);
    // Without .sync (old texts) the lanes that are here are the members.
    uint32_t mask = in->list == NO_OPERAND ? m : (uint32_t)src(w, in->list)[lead];
    int uniform = 1;
    if (in->list >= 0)
        FOR_LANES (m) {
            if ((uint32_t)src(w, in->list)[l] != mask)
                uniform = 0;
        }
    if (!uniform || (mask & w->live) != m)
        return meet(w, in, m);
    if (in->sub <= SYNC_SHFL_IDX)
        shuffle_here(w, in, m, wide);
    else if (in->sub <= SYNC_VOTE_BALLOT)
        vote_here(w, in, m, wide);
    else {
        FOR_LANES (m) {
            w->lane_pc[l] = w->pc;
            w->lane_frame[l] = w->frame;
        }
        together(w, m);
    }
    return ST_NEXT;
}
PUBLIC_TWINS(ptx_run_sync)

LANES_END

void sync_after_exit(warp *w)
{
    uint32_t m = w->at_sync;
    FOR_LANES (m) {
        if (w->at_sync >> l & 1)
            try_together(w, l);
    }
}

step ptx_run_activemask(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    FOR_LANES (m) {
        d[l] = m;
    }
    return ST_NEXT;
}
