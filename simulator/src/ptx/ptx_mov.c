// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// mov in its forms, special registers, and the stack instructions.
#include <time.h>

#include "ptx/ptx_flow.h"
#include "ptx/ptx_lanes.h"

LANES_BEGIN
INLINE step ptx_run_mov_body(warp *w, const insn *in, uint32_t m, const int wide)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a);
    EACH_LANE(o[l] = A[l];);
    return ST_NEXT;
}
PUBLIC_TWINS(ptx_run_mov)
LANES_END

step ptx_run_mov128(warp *w, const insn *in, uint32_t m)
{
    FOR_LANES (m) {
        uint64_t hi = in->a >= 0 ? dst(w, in->a + 1)[l] : 0;
        dst(w, in->d)[l] = src(w, in->a)[l];
        dst(w, in->d + 1)[l] = hi;
    }
    return ST_NEXT;
}

step ptx_run_mov_pred(warp *w, const insn *in, uint32_t m)
{
    set_pred(w, in->d, m, pred(w, in->a, in->flags & F_NEG_A));
    return ST_NEXT;
}

// mov.b64 d, {a, b}: in->n elements of in->sub bits each.
step ptx_run_pack(warp *w, const insn *in, uint32_t m)
{
    const int32_t *list = w->blk->ln->m->lists + in->list;
    uint64_t mask = in->sub >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << in->sub) - 1;
    FOR_LANES (m) {
        if (in->type == T_B128) {
            uint64_t half[2] = {0, 0};
            for (unsigned i = 0; i < in->n; i++) {
                unsigned at = i * in->sub;
                half[at / 64] |= (src(w, list[i])[l] & mask) << at % 64;
            }
            dst(w, in->d)[l] = half[0];
            dst(w, in->d + 1)[l] = half[1];
        } else {
            uint64_t v = 0;
            for (unsigned i = 0; i < in->n; i++)
                v |= (src(w, list[i])[l] & mask) << i * in->sub;
            dst(w, in->d)[l] = v;
        }
    }
    return ST_NEXT;
}

step ptx_run_unpack(warp *w, const insn *in, uint32_t m)
{
    const int32_t *list = w->blk->ln->m->lists + in->list;
    uint64_t mask = in->sub >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << in->sub) - 1;
    FOR_LANES (m) {
        uint64_t v[2] = {src(w, in->a)[l], in->type == T_B128 && in->a >= 0 ? src(w, in->a + 1)[l] : 0};
        for (unsigned i = 0; i < in->n; i++) {
            unsigned at = i * in->sub;
            if (list[i] != NO_OPERAND)
                dst(w, list[i])[l] = v[at / 64] >> at % 64 & mask;
        }
    }
    return ST_NEXT;
}

LANES_BEGIN

// Of two elements, into or out of at most 64 bits.
INLINE step ptx_run_pack2_body(warp *w, const insn *in, uint32_t m, const int wide)
{
    const int32_t *list = w->blk->ln->m->lists + in->list;
    uint64_t *d = dst(w, in->d), mask = ((uint64_t)1 << in->sub) - 1;
    const uint64_t *A = src(w, list[0]), *B = src(w, list[1]);
    unsigned bits = in->sub;
    EACH_LANE(o[l] = (A[l] & mask) | (B[l] & mask) << bits;);
    return ST_NEXT;
}
PUBLIC_TWINS(ptx_run_pack2)

INLINE step ptx_run_unpack2_body(warp *w, const insn *in, uint32_t m, const int wide)
{
    const int32_t *list = w->blk->ln->m->lists + in->list;
    uint64_t *low = list[0] == NO_OPERAND ? w->temp : dst(w, list[0]);
    uint64_t *high = list[1] == NO_OPERAND ? w->temp : dst(w, list[1]), mask = ((uint64_t)1 << in->sub) - 1;
    const uint64_t *A = src(w, in->a);
    unsigned bits = in->sub;
    (void)wide;
    // Each lane's value is read before one of its destinations may overwrite it.
    if (m == FULL) {
        _Pragma("GCC ivdep") for (unsigned l = 0; l < WARP; l++)
        {
            uint64_t v = A[l];
            low[l] = v & mask;
            high[l] = v >> bits & mask;
        }
    } else
        FOR_LANES (m) {
            uint64_t v = A[l];
            low[l] = v & mask;
            high[l] = v >> bits & mask;
        }
    return ST_NEXT;
}
PUBLIC_TWINS(ptx_run_unpack2)

LANES_END

// The address of a variable in the frame, in the local window.
step ptx_run_frame_address(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    EACH(d[l] = w->lframe[l] + (uint64_t)in->imm;);
    return ST_NEXT;
}

step ptx_run_param_address(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d), a = (uintptr_t)w->blk->ln->params + (uint64_t)in->imm;
    EACH(d[l] = a;);
    return ST_NEXT;
}

// ---- special registers

typedef enum sreg {
    SR_TID_X,
    SR_TID_Y,
    SR_TID_Z,
    SR_NTID_X,
    SR_NTID_Y,
    SR_NTID_Z,
    SR_CTAID_X,
    SR_CTAID_Y,
    SR_CTAID_Z,
    SR_NCTAID_X,
    SR_NCTAID_Y,
    SR_NCTAID_Z,
    SR_LANEID,
    SR_WARPID,
    SR_NWARPID,
    SR_SMID,
    SR_NSMID,
    SR_GRIDID,
    SR_LANEMASK_EQ,
    SR_LANEMASK_LE,
    SR_LANEMASK_LT,
    SR_LANEMASK_GE,
    SR_LANEMASK_GT,
    SR_CLOCK,
    SR_CLOCK_HI,
    SR_CLOCK64,
    SR_GLOBALTIMER,
    SR_GLOBALTIMER_LO,
    SR_GLOBALTIMER_HI,
    SR_DYN_SMEM,
    SR_TOTAL_SMEM,
    SR_AGGR_SMEM,
    SR_CLUSTERID_X,
    SR_CLUSTERID_Y,
    SR_CLUSTERID_Z,
    SR_NCLUSTERID_X,
    SR_NCLUSTERID_Y,
    SR_NCLUSTERID_Z,
    SR_CLUSTER_CTAID_X,
    SR_CLUSTER_CTAID_Y,
    SR_CLUSTER_CTAID_Z,
    SR_CLUSTER_NCTAID_X,
    SR_CLUSTER_NCTAID_Y,
    SR_CLUSTER_NCTAID_Z,
    SR_CLUSTER_CTARANK,
    SR_CLUSTER_NCTARANK,
    SR_IS_EXPLICIT_CLUSTER,
    SR_ENVREG1,
    SR_ENVREG2,
    SR_ZERO,
    SR_WARPSIZE,
    SR_RESERVED_SMEM,
    SR_RESERVED_SMEM_END
} sreg;

static const struct {
    const char *name;
    sreg reg;
} sregs[] = {
    {"%tid.x", SR_TID_X},
    {"%tid.y", SR_TID_Y},
    {"%tid.z", SR_TID_Z},
    {"%ntid.x", SR_NTID_X},
    {"%ntid.y", SR_NTID_Y},
    {"%ntid.z", SR_NTID_Z},
    {"%ctaid.x", SR_CTAID_X},
    {"%ctaid.y", SR_CTAID_Y},
    {"%ctaid.z", SR_CTAID_Z},
    {"%nctaid.x", SR_NCTAID_X},
    {"%nctaid.y", SR_NCTAID_Y},
    {"%nctaid.z", SR_NCTAID_Z},
    {"%laneid", SR_LANEID},
    {"%warpid", SR_WARPID},
    {"%nwarpid", SR_NWARPID},
    {"%smid", SR_SMID},
    {"%nsmid", SR_NSMID},
    {"%gridid", SR_GRIDID},
    {"%lanemask_eq", SR_LANEMASK_EQ},
    {"%lanemask_le", SR_LANEMASK_LE},
    {"%lanemask_lt", SR_LANEMASK_LT},
    {"%lanemask_ge", SR_LANEMASK_GE},
    {"%lanemask_gt", SR_LANEMASK_GT},
    {"%clock", SR_CLOCK},
    {"%clock_hi", SR_CLOCK_HI},
    {"%clock64", SR_CLOCK64},
    {"%globaltimer", SR_GLOBALTIMER},
    {"%globaltimer_lo", SR_GLOBALTIMER_LO},
    {"%globaltimer_hi", SR_GLOBALTIMER_HI},
    {"%dynamic_smem_size", SR_DYN_SMEM},
    {"%total_smem_size", SR_TOTAL_SMEM},
    {"%aggr_smem_size", SR_AGGR_SMEM},
    {"%clusterid.x", SR_CLUSTERID_X},
    {"%clusterid.y", SR_CLUSTERID_Y},
    {"%clusterid.z", SR_CLUSTERID_Z},
    {"%nclusterid.x", SR_NCLUSTERID_X},
    {"%nclusterid.y", SR_NCLUSTERID_Y},
    {"%nclusterid.z", SR_NCLUSTERID_Z},
    {"%cluster_ctaid.x", SR_CLUSTER_CTAID_X},
    {"%cluster_ctaid.y", SR_CLUSTER_CTAID_Y},
    {"%cluster_ctaid.z", SR_CLUSTER_CTAID_Z},
    {"%cluster_nctaid.x", SR_CLUSTER_NCTAID_X},
    {"%cluster_nctaid.y", SR_CLUSTER_NCTAID_Y},
    {"%cluster_nctaid.z", SR_CLUSTER_NCTAID_Z},
    {"%cluster_ctarank", SR_CLUSTER_CTARANK},
    {"%cluster_nctarank", SR_CLUSTER_NCTARANK},
    {"%is_explicit_cluster", SR_IS_EXPLICIT_CLUSTER},
    {"%envreg1", SR_ENVREG1},
    {"%envreg2", SR_ENVREG2},
    {"%envreg0", SR_ZERO},
    {"%pm0", SR_ZERO},
    {"%pm1", SR_ZERO},
    {"%pm2", SR_ZERO},
    {"%pm3", SR_ZERO},
    {"WARP_SZ", SR_WARPSIZE},
    {"%reserved_smem_offset_begin", SR_RESERVED_SMEM},
    {"%reserved_smem_offset_1", SR_RESERVED_SMEM},
    {"%reserved_smem_offset_end", SR_RESERVED_SMEM_END},
    {"%reserved_smem_offset_cap", SR_RESERVED_SMEM_END},
};

int ptx_sreg_find(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof sregs / sizeof *sregs; i++)
        if (strlen(sregs[i].name) == len && memcmp(sregs[i].name, name, len) == 0)
            return (int)sregs[i].reg;
    return -1;
}

static uint64_t now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// What every thread of the block sees alike.
static uint64_t block_value(const warp *w, sreg r)
{
    const block *b = w->blk;
    const launch *ln = b->ln;
    switch (r) {
    case SR_NTID_X:
    case SR_NTID_Y:
    case SR_NTID_Z: return ln->block[r - SR_NTID_X];
    case SR_CTAID_X:
    case SR_CTAID_Y:
    case SR_CTAID_Z: return b->id[r - SR_CTAID_X];
    case SR_NCTAID_X:
    case SR_NCTAID_Y:
    case SR_NCTAID_Z: return ln->grid[r - SR_NCTAID_X];
    case SR_WARPID: return w->index;
    case SR_NWARPID: return b->warps;
    case SR_SMID: {
        uint64_t number = b->id[0] + (uint64_t)ln->grid[0] * (b->id[1] + (uint64_t)ln->grid[1] * b->id[2]);
        return ln->in->sms ? ln->in->sms[number % ln->in->sms_count] : number % ln->sm_count;
    }
    case SR_NSMID: return ln->sm_count;
    case SR_GRIDID: return ln->in->grid_id;
    case SR_CLOCK: return (uint32_t)now(CLOCK_MONOTONIC);
    case SR_CLOCK_HI: return now(CLOCK_MONOTONIC) >> 32;
    case SR_CLOCK64: return now(CLOCK_MONOTONIC);
    case SR_GLOBALTIMER: return now(CLOCK_REALTIME);
    case SR_GLOBALTIMER_LO: return (uint32_t)now(CLOCK_REALTIME);
    case SR_GLOBALTIMER_HI: return now(CLOCK_REALTIME) >> 32;
    case SR_DYN_SMEM: return ln->in->dynamic_shared;
    case SR_TOTAL_SMEM:
    case SR_AGGR_SMEM: return ln->fn->info.shared_bytes + (uint64_t)ln->in->dynamic_shared;
    case SR_CLUSTERID_X:
    case SR_CLUSTERID_Y:
    case SR_CLUSTERID_Z: return b->id[r - SR_CLUSTERID_X] / ln->cluster[r - SR_CLUSTERID_X];
    case SR_NCLUSTERID_X:
    case SR_NCLUSTERID_Y:
    case SR_NCLUSTERID_Z: return ln->grid[r - SR_NCLUSTERID_X] / ln->cluster[r - SR_NCLUSTERID_X];
    case SR_CLUSTER_CTAID_X:
    case SR_CLUSTER_CTAID_Y:
    case SR_CLUSTER_CTAID_Z: return b->id[r - SR_CLUSTER_CTAID_X] % ln->cluster[r - SR_CLUSTER_CTAID_X];
    case SR_CLUSTER_NCTAID_X:
    case SR_CLUSTER_NCTAID_Y:
    case SR_CLUSTER_NCTAID_Z: return ln->cluster[r - SR_CLUSTER_NCTAID_X];
    case SR_CLUSTER_CTARANK: return b->rank;
    case SR_CLUSTER_NCTARANK: return b->cl->blocks;
    case SR_IS_EXPLICIT_CLUSTER: return (uint64_t)(b->cl->blocks > 1 || ln->fn->info.explicit_cluster ? 0xffffffff : 0);
    case SR_ENVREG1: return (uintptr_t)ln->workspace >> 32;
    case SR_ENVREG2: return (uint32_t)(uintptr_t)ln->workspace;
    case SR_WARPSIZE: return WARP;
    case SR_RESERVED_SMEM: return ln->reserved;
    case SR_RESERVED_SMEM_END: return ln->reserved + RESERVED_SHARED;
    default: return 0;
    }
}

static uint64_t lane_value(const warp *w, sreg r, unsigned l)
{
    switch (r) {
    case SR_TID_X:
    case SR_TID_Y:
    case SR_TID_Z: return w->tid[r - SR_TID_X][l];
    case SR_LANEID: return l;
    case SR_LANEMASK_EQ: return 1u << l;
    case SR_LANEMASK_LT: return (1u << l) - 1;
    case SR_LANEMASK_LE: return (1u << l) | ((1u << l) - 1);
    case SR_LANEMASK_GE: return ~((1u << l) - 1);
    default: return ~((1u << l) | ((1u << l) - 1));  // GT
    }
}

LANES_BEGIN
INLINE step ptx_run_sreg_body(warp *w, const insn *in, uint32_t m, const int wide)
{
    sreg r = (sreg)in->imm;
    if (in->type == T_PRED) {
        set_pred(w, in->d, m, (uint32_t)block_value(w, r));
        return ST_NEXT;
    }
    uint64_t *d = dst(w, in->d);
    if (r <= SR_TID_Z) {
        const uint32_t *t = w->tid[r];
        EACH_LANE(o[l] = t[l];);
    } else if (r == SR_LANEID || (r >= SR_LANEMASK_EQ && r <= SR_LANEMASK_GT)) {
        FOR_LANES (m) {
            d[l] = lane_value(w, r, l);
        }
    } else {
        uint64_t v = block_value(w, r);
        EACH_LANE(o[l] = v;);
    }
    return ST_NEXT;
}
PUBLIC_TWINS(ptx_run_sreg)
LANES_END

// ---- the stack: alloca gives local addresses

step ptx_run_alloca(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a);
    uint64_t align = in->imm ? (uint64_t)in->imm : 8;
    FOR_LANES (m) {
        uint64_t at = (w->lsp[l] + align - 1) & ~(align - 1);
        uint64_t size = A[l];
        if (size > w->blk->ln->local_size || at + size > w->blk->ln->local_size)
            return fault(w, in, l, PTX_STACK_ERROR, 0, "the stack of %u bytes per thread is full",
                         w->blk->ln->local_size);
        d[l] = at;
        w->lsp[l] = (uint32_t)(at + size);
    }
    return ST_NEXT;
}

step ptx_run_stacksave(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    FOR_LANES (m) {
        d[l] = w->lsp[l];
    }
    return ST_NEXT;
}

step ptx_run_stackrestore(warp *w, const insn *in, uint32_t m)
{
    const uint64_t *A = src(w, in->a);
    FOR_LANES (m) {
        if ((uint32_t)A[l] > w->lsp[l] || (uint32_t)A[l] < w->lframe[l])
            return fault(w, in, l, PTX_STACK_ERROR, 0, "0x%x is no position of the stack", (uint32_t)A[l]);
        w->lsp[l] = (uint32_t)A[l];
    }
    return ST_NEXT;
}
