// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The addresses of a whole warp, checked at once.
#include "ptx/ptx_where.h"

// Of which addresses the one of the first lane is part: [lo, hi), and what turns them into host addresses.
typedef struct window {
    uint64_t lo, hi, delta;
    uint64_t mask;    // what of an address counts
    uint64_t stride;  // between the windows of two lanes
} window;

INLINE int find_window(const warp *w, const insn *in, uint64_t address, int is_write, window *out)
{
    const launch *ln = w->blk->ln;
    out->delta = out->stride = 0;
    out->mask = ~(uint64_t)0;
    switch (in->space) {
    case SP_SHARED: {
        // A rank in the upper bits is beyond both windows.
        uint32_t off = (uint32_t)address;
        out->lo = off < ln->static_shared ? 0 : ln->m->dyn_shared;
        out->hi = off < ln->static_shared ? ln->static_shared : ln->shared_end;
        out->delta = (uintptr_t)w->blk->shared;
        out->mask = 0xffffffffu;
        return 1;
    }
    case SP_LOCAL:
        out->lo = 0;
        out->hi = ln->local_size;
        out->delta = (uintptr_t)w->local;
        out->mask = 0xffffffffu;
        out->stride = ln->local_size;
        return 1;
    default: {
        const range_cache *c = is_write ? &w->wk->writable : &w->wk->readable;
        for (unsigned i = 0; i < CACHED_RANGES; i++)
            if (address >= c->lo[i] && address < c->hi[i]) {
                out->lo = c->lo[i];
                out->hi = c->hi[i];
                return 1;
            }
        return 0;
    }
    }
}

static const uint64_t zeros[WARP] __attribute__((aligned(64))) = {0};

LANES_BEGIN

INLINE where find(warp *w, const insn *in, uint32_t m, uint64_t size, int is_write, uint64_t *at, const int wide)
{
    const uint64_t *A = in->a == NO_OPERAND ? zeros : src(w, in->a);
    unsigned lead = (unsigned)__builtin_ctz(m);
    check_epoch(w->wk);
    if (in->flags & F_FRAME) {
        for (unsigned l = 0; l < WARP; l++)
            w->sum[l] = A[l] + w->lframe[l];
        A = w->sum;
    }
    uint64_t imm = (uint64_t)in->imm, first = A[lead] + imm;
    window win;
    if (!find_window(w, in, first, is_write, &win))
        return WHERE_UNKNOWN;
    first &= win.mask;
    if (first < win.lo || first >= win.hi || size > win.hi - first || first & (size - 1))
        return WHERE_UNKNOWN;
    uint64_t limit = win.hi - win.lo - size;  // of an offset in the window
    if (limit >> 63)
        return WHERE_UNKNOWN;
    unsigned shift = (unsigned)__builtin_ctzll(size);
    uint64_t span = (A[WARP - 1] - A[0]) & win.mask;
    if (m == FULL && !win.stride && (!span || span == (uint64_t)(WARP - 1) << shift)) {
        uint64_t row = 0, same = 0, base = A[0];
        for (uint64_t l = 0; l < WARP; l++) {
            uint64_t apart = A[l] - base;
            same |= apart;
            row |= apart ^ (l << shift);
        }
        *at = first + win.delta;
        if (!(same & win.mask))
            return WHERE_SAME;
        if (!(row & win.mask))
            return first - win.lo + (WARP - 1) * size <= limit ? WHERE_ROW : WHERE_UNKNOWN;
    }
    // The sign of one of two differences is set if an offset in the window is more than the limit, which is positive.
    uint64_t outside = 0, low = 0;
    if (m == FULL) {
        _Pragma("GCC ivdep") for (uint64_t l = 0; l < WARP; l++)
        {
            uint64_t a = (A[l] + imm) & win.mask;
            outside |= (a - win.lo) | (limit - (a - win.lo));
            low |= a;
            at[l] = a + win.delta;
        }
    } else if (!are_few(m, wide)) {
        _Pragma("GCC ivdep") for (uint64_t l = 0; l < WARP; l++)
        {
            uint64_t a = (A[l] + imm) & win.mask;
            a = (m & ptx_lane_bit64[l]) != 0 ? a : first;
            outside |= (a - win.lo) | (limit - (a - win.lo));
            low |= a;
            at[l] = a + win.delta;
        }
    } else {
        for (uint32_t left = m; left; left &= left - 1) {
            unsigned l = (unsigned)__builtin_ctz(left);
            uint64_t a = (A[l] + imm) & win.mask;
            outside |= (a - win.lo) | (limit - (a - win.lo));
            low |= a;
            at[l] = a + win.delta;
        }
    }
    if (win.stride)
        for (unsigned l = 0; l < WARP; l++)
            at[l] += l * win.stride;
    return outside >> 63 || low & (size - 1) ? WHERE_UNKNOWN : WHERE_ANY;
}

where ptx_find(warp *w, const insn *in, uint32_t m, uint64_t size, int is_write, uint64_t *at)
{
    return find(w, in, m, size, is_write, at, 0);
}

#if HAS_WIDE
WIDE_TARGET where ptx_find_wide(warp *w, const insn *in, uint32_t m, uint64_t size, int is_write, uint64_t *at)
{
    return find(w, in, m, size, is_write, at, 1);
}
#endif

LANES_END
