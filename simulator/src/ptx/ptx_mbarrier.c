// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// mbarrier: arrive and wait on a 64-bit object in shared memory.
//
// Its layout is ours: bits 0-19 pending arrivals, 20-39 arrivals per phase, 40-60 transactions still expected
// (biased), 63 the parity of the phase. All threads that reach it run on one worker, so plain reads and writes do.
#include "ptx/ptx_mbarrier.h"

#include "ptx/ptx_exec.h"
#include "ptx/ptx_flow.h"
#include "ptx/ptx_mem.h"

#define COUNT_MASK 0xfffffu
#define TX_SHIFT 40
#define TX_BIAS (1 << 20)
#define TX_MASK 0x1fffffu
#define PARITY ((uint64_t)1 << 63)

typedef enum mbar_op {
    MBAR_INIT,
    MBAR_INVAL,
    MBAR_ARRIVE,
    MBAR_ARRIVE_DROP,
    MBAR_TEST_WAIT,
    MBAR_TRY_WAIT,
    MBAR_EXPECT_TX,
    MBAR_COMPLETE_TX,
    MBAR_PENDING_COUNT
} mbar_op;

static uint32_t pending(uint64_t v) { return v & COUNT_MASK; }
static uint32_t expected(uint64_t v) { return v >> 20 & COUNT_MASK; }
static int32_t transactions(uint64_t v) { return (int32_t)(v >> TX_SHIFT & TX_MASK) - TX_BIAS; }

static uint64_t make(uint32_t pend, uint32_t expect, int32_t tx, uint64_t parity)
{
    return (pend & COUNT_MASK) | (uint64_t)(expect & COUNT_MASK) << 20 |
           (uint64_t)((uint32_t)(tx + TX_BIAS) & TX_MASK) << TX_SHIFT | (parity & PARITY);
}

static uint64_t settle(uint32_t pend, uint32_t expect, int32_t tx, uint64_t parity)
{
    if (pend == 0 && tx == 0)
        return make(expect, expect, 0, parity ^ PARITY);
    return make(pend, expect, tx, parity);
}

// in->b: count, state or parity; in->c: bytes of expect_tx; in->stype: waits by parity
static step run(warp *w, const insn *in, uint32_t m)
{
    FOR_LANES (m) {
        uint64_t v = 0;
        uint64_t *p = NULL;
        uint64_t b = in->b == NO_OPERAND ? 1 : src(w, in->b)[l];
        if (in->sub == MBAR_PENDING_COUNT) {
            dst(w, in->d)[l] = pending(b);
            continue;
        }
        p = resolve(w, in, l, effective(w, in, l), 8, 1);
        if (!p)
            return ST_FAULT;
        v = *p;
        switch ((mbar_op)in->sub) {
        case MBAR_INIT: *p = make((uint32_t)b, (uint32_t)b, 0, 0); break;
        case MBAR_INVAL: *p = 0; break;
        case MBAR_ARRIVE:
        case MBAR_ARRIVE_DROP: {
            uint32_t count = (uint32_t)b;
            uint32_t expect = expected(v) - (in->sub == MBAR_ARRIVE_DROP ? count : 0);
            int32_t tx = transactions(v) + (in->c == NO_OPERAND ? 0 : (int32_t)src(w, in->c)[l]);
            if (count > pending(v))
                return fault(w, in, l, PTX_ILLEGAL_INSTRUCTION, 0, "the mbarrier expects %u more arrivals, not %u",
                             pending(v), count);
            if (in->flags & F_NOINC)
                expect = expected(v);
            *p = settle(pending(v) - count, expect, tx, v & PARITY);
            if (in->d != NO_OPERAND)
                dst(w, in->d)[l] = v;
            break;
        }
        case MBAR_EXPECT_TX:
            *p = make(pending(v), expected(v), transactions(v) + (int32_t)src(w, in->c)[l], v & PARITY);
            break;
        case MBAR_COMPLETE_TX:
            *p = settle(pending(v), expected(v), transactions(v) - (int32_t)src(w, in->c)[l], v & PARITY);
            break;
        default: {
            uint64_t phase = in->stype ? (b & 1 ? PARITY : 0) : b & PARITY;
            set_pred(w, in->d, 1u << l, (v & PARITY) != phase ? FULL : 0);
        }
        }
    }
    return ST_NEXT;
}

step mbarrier_complete(warp *w, const insn *in, unsigned lane, uint64_t address, uint32_t bytes)
{
    uint64_t *p = resolve_space(w, in, lane, SP_SHARED, address, sizeof *p, 1);
    if (!p)
        return ST_FAULT;
    *p = settle(pending(*p), expected(*p), transactions(*p) - (int32_t)bytes, *p & PARITY);
    return ST_NEXT;
}

// cp.async.mbarrier.arrive: the copies are complete already. Without .noinc the pending count is raised first.
static step run_cp_arrive(warp *w, const insn *in, uint32_t m)
{
    FOR_LANES (m) {
        uint64_t *p = resolve(w, in, l, effective(w, in, l), 8, 1);
        if (!p)
            return ST_FAULT;
        uint64_t v = *p;
        uint32_t pend = pending(v) + (in->flags & F_NOINC ? 0 : 1);
        if (!pend)
            return fault(w, in, l, PTX_ILLEGAL_INSTRUCTION, 0, "the mbarrier expects no more arrivals");
        *p = settle(pend - 1, expected(v), transactions(v), v & PARITY);
    }
    return ST_NEXT;
}

static void where(decoder *d, unsigned index)
{
    d->in.type = T_B64;
    address(d, &d->st->ops[index]);
}

void decode_cp_async_arrive(decoder *d)
{
    if (!take(d, M_arrive))
        return;
    take_flag(d, M_noinc, F_NOINC);
    d->in.space = (uint8_t)take_space(d);
    take_type(d);
    need(d, 1, 1);
    where(d, 0);
    d->in.run = run_cp_arrive;
}

void decode_mbarrier(decoder *d, int arg)
{
    static const ptx_mod names[] = {M_init,     M_inval,     M_arrive,      M_arrive_drop,  M_test_wait,
                                    M_try_wait, M_expect_tx, M_complete_tx, M_pending_count};
    (void)arg;
    insn *in = &d->in;
    int op = -1;
    for (int i = 0; i < (int)(sizeof names / sizeof *names) && op < 0; i++)
        if (take(d, names[i]))
            op = i;
    if (op < 0)
        return;
    in->sub = (uint8_t)op;
    int tx = op == MBAR_ARRIVE || op == MBAR_ARRIVE_DROP ? take(d, M_expect_tx) : 0;
    if (take(d, M_noComplete))
        in->n = 1;
    in->stype = (uint8_t)take(d, M_parity);
    take_ordering(d);
    in->space = (uint8_t)take_space(d);
    take_type(d);
    unsigned count = d->st->count;
    switch ((mbar_op)op) {
    case MBAR_INIT:
        need(d, 2, 2);
        where(d, 0);
        in->b = source(d, 1, T_U32);
        break;
    case MBAR_INVAL:
        need(d, 1, 1);
        where(d, 0);
        break;
    case MBAR_ARRIVE:
    case MBAR_ARRIVE_DROP: {
        unsigned at = count && d->st->ops[0].kind != OP_ADDR ? 1 : 0;
        need(d, at + 1, at + 2);
        if (at && d->st->ops[0].kind != OP_SINK)
            in->d = destination(d, &d->st->ops[0]);
        where(d, at);
        if (count > at + 1)
            *(tx ? &in->c : &in->b) = source(d, at + 1, T_U32);
        else if (tx)
            return;
        break;
    }
    case MBAR_EXPECT_TX:
    case MBAR_COMPLETE_TX:
        need(d, 2, 2);
        where(d, 0);
        in->c = source(d, 1, T_U32);
        break;
    case MBAR_PENDING_COUNT:
        need(d, 2, 2);
        in->d = destination(d, &d->st->ops[0]);
        in->b = source(d, 1, T_B64);
        break;
    default:  // test_wait and try_wait; a time hint makes no difference
        need(d, 3, op == MBAR_TRY_WAIT ? 4 : 3);
        in->d = destination(d, &d->st->ops[0]);
        if (d->st->ops[0].kind == OP_REG && d->st->ops[0].type != T_PRED)
            bad_operand(d, "the destination must be a predicate");
        where(d, 1);
        in->b = source(d, 2, in->stype ? T_U32 : T_B64);
    }
    in->run = run;
}
