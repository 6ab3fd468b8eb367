// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Addresses: what they mean, whether they may be touched, and conversions between state spaces.
//
// Global, constant and generic addresses are host pointers. Shared and local addresses are offsets in the
// block's or thread's own window; as generic addresses they are the host pointers of that memory. A shared
// address of another block of the cluster has that block's rank plus one in the bits from RANK_SHIFT up.
#include "ptx/ptx_mem.h"

#include <stdio.h>

#include "ptx/ptx_exec.h"
#include "ptx/ptx_heap.h"

#define RANK_SHIFT PTX_RANK_SHIFT
#define OFFSET_MASK ((1u << RANK_SHIFT) - 1)

static const char *const space_names[] = {"generic", "global", "shared", "local", "const", "param", "reg"};

static void *outside(warp *w, const insn *in, unsigned lane, ptx_space space, uint64_t address, uint32_t size,
                     int is_write)
{
    const launch *ln = w->blk->ln;
    char owner[64] = "allocation that the kernel may use";
    if (space == SP_SHARED)
        snprintf(owner, sizeof owner, "shared memory of the block, which has %u bytes", ln->shared_end);
    else if (space == SP_LOCAL)
        snprintf(owner, sizeof owner, "local memory of the thread, which has %u bytes", ln->local_size);
    fault(w, in, lane, PTX_ILLEGAL_ADDRESS, address, "%s of %u bytes at %s address 0x%llx, which is in no %s",
          is_write ? "write" : "read", size, space_names[space], (unsigned long long)address, owner);
    return NULL;
}

static uint8_t *shared_of(const warp *w, uint32_t rank)
{
    const cluster *cl = w->blk->cl;
    return cl->shared + (size_t)rank * w->blk->ln->shared_size;
}

static int in_shared_window(const launch *ln, uint32_t off, uint32_t size)
{
    uint64_t end = (uint64_t)off + size;
    return end <= ln->static_shared || (off >= ln->m->dyn_shared && end <= ln->shared_end) ||
           (off >= ln->reserved && end <= (uint64_t)ln->reserved + RESERVED_SHARED && ln->m->uses_reserved);
}

static uint8_t *local_of(const warp *w, unsigned lane) { return w->local + (size_t)lane * w->blk->ln->local_size; }

static void *find_range(const range_cache *c, uint64_t address, uint32_t size)
{
    for (unsigned i = 0; i < CACHED_RANGES; i++)
        if (address >= c->lo[i] && address < c->hi[i] && size <= c->hi[i] - address)
            return (void *)(uintptr_t)address;
    return NULL;
}

static void remember(range_cache *c, uint64_t lo, uint64_t hi)
{
    c->lo[c->next] = lo;
    c->hi[c->next] = hi;
    c->next = (c->next + 1) % CACHED_RANGES;
}

static int inside(uint64_t lo, uint64_t hi, uint64_t address, uint32_t size)
{
    return address >= lo && address < hi && size <= hi - address;
}

// NULL if it is not global memory that the kernel may use so.
static void *find_global(const warp *w, uint64_t address, uint32_t size, int is_write)
{
    const launch *ln = w->blk->ln;
    const sim_ptx_module *m = ln->m;
    range_cache *c = is_write ? &w->wk->writable : &w->wk->readable;
    uint64_t range[2] = {address, address + size};
    if (inside(m->global_base, m->global_end, address, size)) {
        range[0] = m->global_base;
        range[1] = m->global_end;
    } else if (!is_write && inside(m->const_base, m->const_end, address, size)) {
        range[0] = m->const_base;
        range[1] = m->const_end;
    } else if (!is_write && inside((uintptr_t)ln->params, (uintptr_t)ln->params + ln->fn->param_bytes, address, size)) {
        return (void *)(uintptr_t)address;
    } else if (ln->workspace &&
               inside((uintptr_t)ln->workspace, (uintptr_t)ln->workspace + WORKSPACE_BYTES, address, size)) {
        return (void *)(uintptr_t)address;
    } else if (!m->host.heap_alloc && ptx_heap_contains(m->heap, address, size)) {
        return (void *)(uintptr_t)address;  // not remembered: the next free would make it wrong
    } else if (address < 4096 || address + size < address) {
        return NULL;
    } else if (m->host.check) {
        if (m->host.check(m->host.ctx, address, size, is_write, range))
            return NULL;
        if (!inside(range[0], range[1], address, size))
            return (void *)(uintptr_t)address;
    } else {
        range[0] = 4096;
        range[1] = UINT64_MAX;
    }
    remember(c, range[0], range[1]);
    return (void *)(uintptr_t)address;
}

static void *global_slow(warp *w, const insn *in, unsigned lane, uint64_t address, uint32_t size, int is_write)
{
    void *p = find_global(w, address, size, is_write);
    return p ? p : outside(w, in, lane, (ptx_space)in->space, address, size, is_write);
}

void *ptx_find_writable(const warp *w, uint64_t address, uint32_t size)
{
    void *p = find_range(&w->wk->writable, address, size);
    return p ? p : find_global(w, address, size, 1);
}

void forget_ranges(worker *wk, uint64_t epoch)
{
    wk->epoch = epoch;
    memset(&wk->readable, 0, sizeof wk->readable);
    memset(&wk->writable, 0, sizeof wk->writable);
}

void *resolve_space(warp *w, const insn *in, unsigned lane, ptx_space space, uint64_t address, uint32_t size,
                    int is_write)
{
    const launch *ln = w->blk->ln;
    switch (space) {
    case SP_SHARED: {
        uint32_t rank = (uint32_t)address >> RANK_SHIFT, off = (uint32_t)address & OFFSET_MASK;
        rank = rank ? rank - 1 : w->blk->rank;
        if (rank >= w->blk->cl->blocks || !in_shared_window(ln, off, size))
            return outside(w, in, lane, space, (uint32_t)address, size, is_write);
        return shared_of(w, rank) + off;
    }
    case SP_LOCAL: {
        uint64_t off = (uint32_t)address;
        if (off + size > ln->local_size)
            return outside(w, in, lane, space, off, size, is_write);
        return local_of(w, lane) + off;
    }
    default: break;
    }
    void *p = find_range(is_write ? &w->wk->writable : &w->wk->readable, address, size);
    if (p)
        return p;
    if (space == SP_GENERIC) {
        uint64_t base = (uintptr_t)w->blk->cl->shared, all = (uint64_t)ln->shared_size * w->blk->cl->blocks;
        if (address >= base && address < base + all) {
            if (!in_shared_window(ln, (uint32_t)((address - base) % ln->shared_size), size))
                return outside(w, in, lane, SP_SHARED, (address - base) % ln->shared_size, size, is_write);
            return (void *)(uintptr_t)address;
        }
        if (inside((uintptr_t)local_of(w, lane), (uintptr_t)local_of(w, lane) + ln->local_size, address, size))
            return (void *)(uintptr_t)address;
    }
    return global_slow(w, in, lane, address, size, is_write);
}

uint64_t effective(const warp *w, const insn *in, unsigned lane)
{
    uint64_t address = (uint64_t)in->imm;
    if (in->flags & F_FRAME)
        address += w->lframe[lane];
    if (in->a != NO_OPERAND)
        address += src(w, in->a)[lane];
    return address;
}

void *resolve(warp *w, const insn *in, unsigned lane, uint64_t address, uint32_t size, int is_write)
{
    if (address & (size - 1)) {
        fault(w, in, lane, PTX_MISALIGNED_ADDRESS, address, "address 0x%llx is not a multiple of %u",
              (unsigned long long)address, size);
        return NULL;
    }
    return resolve_space(w, in, lane, (ptx_space)in->space, address, size, is_write);
}

const char *resolve_string(warp *w, const insn *in, unsigned lane, uint64_t address, size_t limit, size_t *len)
{
    for (size_t i = 0; i < limit; i++) {
        const char *p = resolve_space(w, in, lane, SP_GENERIC, address + i, 1, 0);
        if (!p)
            return NULL;
        if (!*p) {
            *len = i;
            return (const char *)(uintptr_t)address;
        }
    }
    *len = limit;
    return (const char *)(uintptr_t)address;
}

// ---- sizes and copies

unsigned ptx_element_bytes(ptx_type t)
{
    switch (t) {
    case T_B8:
    case T_U8:
    case T_S8: return 1;
    case T_B16:
    case T_U16:
    case T_S16:
    case T_F16:
    case T_BF16: return 2;
    case T_B64:
    case T_U64:
    case T_S64:
    case T_F64:
    case T_F32X2: return 8;
    case T_B128: return 16;
    default: return 4;
    }
}

// cp.async: n bytes (in->n) from global to shared, of which src(c) bytes are copied and the rest are zeros.
static step copy_async(warp *w, const insn *in, uint32_t m)
{
    const uint64_t *D = src(w, in->d), *A = src(w, in->a);
    check_epoch(w->wk);
    FOR_LANES (m) {
        uint32_t have = in->c == NO_OPERAND ? in->n : (uint32_t)src(w, in->c)[l];
        if (in->e != NO_OPERAND && (pred(w, in->e, 0) >> l & 1))
            have = 0;
        if (have > in->n)
            have = in->n;
        uint64_t to = D[l] + (uint64_t)(uint32_t)in->imm;
        uint64_t from = A[l] + (uint64_t)(in->imm >> 32);
        if ((to | from) & (in->n - 1u))
            return fault(w, in, l, PTX_MISALIGNED_ADDRESS, to & (in->n - 1u) ? to : from,
                         "address is not a multiple of %u", in->n);
        uint8_t *p = resolve_space(w, in, l, SP_SHARED, to, in->n, 1);
        if (!p)
            return ST_FAULT;
        const uint8_t *q = have ? resolve_space(w, in, l, SP_GLOBAL, from, have, 0) : p;
        if (!q)
            return ST_FAULT;
        if (have)
            memcpy(p, q, have);
        memset(p + have, 0, in->n - have);
    }
    return ST_NEXT;
}

exec_fn ptx_copy_handler(void) { return copy_async; }

// ---- address conversions

static uint64_t to_generic(const warp *w, ptx_space space, uint64_t a, unsigned lane)
{
    if (space == SP_LOCAL)
        return (uintptr_t)local_of(w, lane) + (uint32_t)a;
    if (space != SP_SHARED)
        return a;
    uint32_t rank = (uint32_t)a >> RANK_SHIFT;
    return (uintptr_t)shared_of(w, rank ? rank - 1 : w->blk->rank) + ((uint32_t)a & OFFSET_MASK);
}

// Whose shared memory a generic address is in; -1: nobody's.
static int64_t rank_of(const warp *w, uint64_t a)
{
    uint64_t base = (uintptr_t)w->blk->cl->shared, size = w->blk->ln->shared_size;
    return size && a >= base && a < base + size * w->blk->cl->blocks ? (int64_t)((a - base) / size) : -1;
}

static uint64_t from_generic(const warp *w, ptx_space space, uint64_t a, unsigned lane)
{
    if (space == SP_LOCAL)
        return a - (uintptr_t)local_of(w, lane);
    if (space != SP_SHARED)
        return a;
    int64_t rank = rank_of(w, a);
    if (rank < 0 || rank == w->blk->rank)
        return a - (uintptr_t)shared_of(w, w->blk->rank);
    return (a - (uintptr_t)shared_of(w, (uint32_t)rank)) | (uint64_t)(rank + 1) << RANK_SHIFT;
}

static step cvta(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a);
    FOR_LANES (m) {
        d[l] = to_generic(w, (ptx_space)in->space, A[l] + (in->flags & F_FRAME ? w->lframe[l] : 0), l);
    }
    return ST_NEXT;
}

static step cvta_to(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a);
    FOR_LANES (m) {
        d[l] = from_generic(w, (ptx_space)in->space, A[l], l);
    }
    return ST_NEXT;
}

static step cvta_same(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a);
    (void)w;
    EACH(d[l] = A[l];);
    return ST_NEXT;
}

exec_fn ptx_cvta_handler(int to_space) { return to_space == 2 ? cvta_same : to_space ? cvta_to : cvta; }

static step isspacep(warp *w, const insn *in, uint32_t m)
{
    const uint64_t *A = src(w, in->a);
    const launch *ln = w->blk->ln;
    uint32_t out = 0;
    FOR_LANES (m) {
        uint64_t a = A[l];
        int64_t rank = rank_of(w, a);
        int yes = 0;
        int local = inside((uintptr_t)local_of(w, l), (uintptr_t)local_of(w, l) + ln->local_size, a, 1);
        int constant = inside(ln->m->const_base, ln->m->const_end, a, 1);
        int param = inside((uintptr_t)ln->params, (uintptr_t)ln->params + ln->fn->param_bytes, a, 1);
        switch (in->space) {
        case SP_SHARED: yes = in->sub ? rank >= 0 : rank == w->blk->rank; break;
        case SP_LOCAL: yes = local; break;
        case SP_CONST: yes = constant; break;
        case SP_PARAM: yes = param; break;
        default: yes = rank < 0 && !local && !constant && !param;
        }
        out |= (uint32_t)yes << l;
    }
    set_pred(w, in->d, m, out);
    return ST_NEXT;
}

exec_fn ptx_isspacep_handler(void) { return isspacep; }

// mapa: the address that corresponds to a in the shared memory of block b of the cluster.
static step mapa(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a), *B = src(w, in->b);
    FOR_LANES (m) {
        uint32_t rank = (uint32_t)B[l];
        uint64_t a = A[l];
        if (rank >= w->blk->cl->blocks)
            return fault(w, in, l, PTX_ILLEGAL_INSTRUCTION, 0, "the cluster has no block %u", rank);
        if (in->space == SP_SHARED)
            d[l] = ((uint32_t)a & OFFSET_MASK) | (rank + 1) << RANK_SHIFT;
        else {
            int64_t own = rank_of(w, a);
            d[l] = own < 0 ? a : a + (rank - (uint64_t)own) * w->blk->ln->shared_size;
        }
    }
    return ST_NEXT;
}

exec_fn ptx_mapa_handler(void) { return mapa; }

static step getctarank(warp *w, const insn *in, uint32_t m)
{
    uint64_t *d = dst(w, in->d);
    const uint64_t *A = src(w, in->a);
    FOR_LANES (m) {
        uint32_t tag = (uint32_t)A[l] >> RANK_SHIFT;
        int64_t own = rank_of(w, A[l]);
        d[l] = in->space == SP_SHARED ? (tag ? tag - 1 : w->blk->rank) : own < 0 ? 0 : (uint64_t)own;
    }
    return ST_NEXT;
}

exec_fn ptx_getctarank_handler(void) { return getctarank; }
