// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// atom, red, and the reductions of bulk copies. Blocks run on several threads, so each operation is one of the host's
// atomics, or a compare-and-swap loop around a function of the old value.
#include <float.h>
#include <math.h>

#include "ptx/ptx_float.h"
#include "ptx/ptx_where.h"

static pthread_mutex_t wide_lock = PTHREAD_MUTEX_INITIALIZER;  // 128-bit operations

static float flush(float f) { return f != 0 && fabsf(f) < FLT_MIN ? copysignf(0, f) : f; }

static uint64_t half_pair(atom_op op, uint64_t old, uint64_t b, int bf16, int halves, int nan)
{
    uint64_t out = 0;
    for (int i = 0; i < halves; i++) {
        uint16_t x = (uint16_t)(old >> i * 16), y = (uint16_t)(b >> i * 16), r;
        double u = bf16 ? bf16_to_double(x) : half_to_double(x), v = bf16 ? bf16_to_double(y) : half_to_double(y);
        double s = op == ATOM_ADD   ? fma_to_odd(u, 1, v)
                   : isnan(u)       ? v
                   : isnan(v)       ? u
                   : u == v         ? (signbit(u) != 0) == (op == ATOM_MIN) ? u : v  // -0 is less than 0
                   : op == ATOM_MIN ? fmin(u, v)
                                    : fmax(u, v);
        if (nan && (isnan(u) || isnan(v)))
            s = (double)NAN;
        r = bf16 ? bf16_from_double(s, R_RN) : half_from_double(s, R_RN);
        out |= (uint64_t)r << i * 16;
    }
    return out;
}

static uint64_t combine(ptx_type type, atom_op op, uint64_t old, uint64_t b, uint64_t c, int flush_f32)
{
    switch (type) {
    case T_F32: {
        float x = as_f32(old), y = as_f32(b);
        if (op == ATOM_EXCH)
            return b;
        return canonical(flush_f32 ? flush(flush(x) + flush(y)) : x + y);
    }
    case T_F64: return op == ATOM_EXCH ? b : of_f64(as_f64(old) + as_f64(b));
    case T_F16: return half_pair(op, old, b, 0, 1, 0);
    case T_F16X2: return half_pair(op, old, b, 0, 2, 0);
    case T_BF16: return half_pair(op, old, b, 1, 1, 0);
    case T_BF16X2: return half_pair(op, old, b, 1, 2, 0);
    case T_S32:
        if (op == ATOM_MIN)
            return (int32_t)old < (int32_t)b ? old : b;
        if (op == ATOM_MAX)
            return (int32_t)old > (int32_t)b ? old : b;
        break;
    case T_S64:
        if (op == ATOM_MIN)
            return (int64_t)old < (int64_t)b ? old : b;
        if (op == ATOM_MAX)
            return (int64_t)old > (int64_t)b ? old : b;
        break;
    default: break;
    }
    switch (op) {
    case ATOM_ADD: return old + b;
    case ATOM_MIN: return old < b ? old : b;
    case ATOM_MAX: return old > b ? old : b;
    case ATOM_INC: return old >= b ? 0 : old + 1;
    case ATOM_DEC: return old == 0 || old > b ? b : old - 1;
    case ATOM_AND: return old & b;
    case ATOM_OR: return old | b;
    case ATOM_XOR: return old ^ b;
    case ATOM_EXCH: return b;
    default: return old == b ? c : old;  // cas
    }
}

// Only global atomics on f32 flush denormals.
static int flushes(const warp *w, const insn *in, const void *p)
{
    if (in->type != T_F32)
        return 0;
    const cluster *cl = w->blk->cl;
    const uint8_t *at = p;
    return !(at >= cl->shared && at < cl->shared + (size_t)cl->blocks * w->blk->ln->shared_size);
}

#define SWAP_LOOP(name, T) \
    static uint64_t name(ptx_type type, atom_op op, void *p, uint64_t b, uint64_t c, int flush_f32) \
    { \
        T *at = p, old = __atomic_load_n(at, __ATOMIC_RELAXED), next; \
        do \
            next = (T)combine(type, op, old, (T)b, (T)c, flush_f32); \
        while (!__atomic_compare_exchange_n(at, &old, next, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)); \
        return old; \
    }
SWAP_LOOP(swap_16, uint16_t)
SWAP_LOOP(swap_32, uint32_t)
SWAP_LOOP(swap_64, uint64_t)

static uint64_t swap(ptx_type type, atom_op op, void *p, uint64_t b, uint64_t c, int flush_f32)
{
    switch (ptx_element_bytes(type)) {
    case 2: return swap_16(type, op, p, b, c, flush_f32);
    case 4: return swap_32(type, op, p, b, c, flush_f32);
    default: return swap_64(type, op, p, b, c, flush_f32);
    }
}

void ptx_reduce(ptx_type type, atom_op op, void *p, const void *value, int flush_f32)
{
    uint64_t b = 0;
    memcpy(&b, value, ptx_element_bytes(type));
    swap(type, op, p, b, 0, flush_f32);
}

// Lanes that swap while others are elsewhere may be spinning on what the others hold: their turn comes sooner.
#define SPIN_COST 128
static void maybe_spinning(warp *w)
{
    if (w->active != w->live && w->fair_at > w->steps)
        w->fair_at -= w->fair_at - w->steps < SPIN_COST ? w->fair_at - w->steps : SPIN_COST;
}

static step atom(warp *w, const insn *in, uint32_t m)
{
    unsigned size = ptx_element_bytes((ptx_type)in->type);
    const uint64_t *B = src(w, in->b), *C = in->c == NO_OPERAND ? B : src(w, in->c);
    if (in->sub >= ATOM_EXCH)
        maybe_spinning(w);
    uint64_t *at = w->temp;
    where found = find_where(w, in, m, size, 1, at, 0);
    spread(found, size, at);
    FOR_LANES (m) {
        void *p = (void *)(uintptr_t)at[l];
        if (found == WHERE_UNKNOWN)
            p = resolve(w, in, l, effective(w, in, l), size, 1);
        if (!p)
            return ST_FAULT;
        uint64_t old = swap((ptx_type)in->type, (atom_op)in->sub, p, B[l], C[l], flushes(w, in, p));
        if (in->d != NO_OPERAND)
            dst(w, in->d)[l] = old;
    }
    return ST_NEXT;
}

static step add_32_slowly(warp *w, const insn *in, uint32_t m)
{
    const uint64_t *B = src(w, in->b);
    FOR_LANES (m) {
        uint32_t *p = resolve(w, in, l, effective(w, in, l), 4, 1);
        if (!p)
            return ST_FAULT;
        uint32_t old = __atomic_fetch_add(p, (uint32_t)B[l], __ATOMIC_SEQ_CST);
        if (in->d != NO_OPERAND)
            dst(w, in->d)[l] = old;
    }
    return ST_NEXT;
}

LANES_BEGIN

// Shared memory of a block is accessed by the one thread of the host that runs the block.
INLINE step add_32_body(warp *w, const insn *in, uint32_t m, const int wide)
{
    const uint64_t *B = src(w, in->b);
    uint64_t *at = w->temp, *d = in->d == NO_OPERAND ? w->sum : dst(w, in->d);
    where found = find_where(w, in, m, 4, 1, at, wide);
    if (found == WHERE_UNKNOWN)
        return add_32_slowly(w, in, m);
    spread(found, 4, at);
    if (in->space == SP_SHARED)
        FOR_LANES (m) {
            uint32_t *p = (uint32_t *)(uintptr_t)at[l], b = (uint32_t)B[l], old = *p;
            *p = old + b;
            d[l] = old;
        }
    else
        FOR_LANES (m) {
            d[l] = __atomic_fetch_add((uint32_t *)(uintptr_t)at[l], (uint32_t)B[l], __ATOMIC_SEQ_CST);
        }
    return ST_NEXT;
}
TWINS(add_32)

LANES_END

static step atom_128(warp *w, const insn *in, uint32_t m)
{
    FOR_LANES (m) {
        uint64_t *p = resolve(w, in, l, effective(w, in, l), 16, 1);
        if (!p)
            return ST_FAULT;
        uint64_t old[2];
        uint64_t next[2];
        const uint64_t b[2] = {src(w, in->b)[l], in->b >= 0 ? src(w, in->b + 1)[l] : 0};
        pthread_mutex_lock(&wide_lock);
        memcpy(old, p, 16);
        memcpy(next, b, 16);
        if (in->sub == ATOM_CAS) {
            next[0] = src(w, in->c)[l];
            next[1] = in->c >= 0 ? src(w, in->c + 1)[l] : 0;
            if (old[0] != b[0] || old[1] != b[1])
                memcpy(next, old, 16);
        }
        memcpy(p, next, 16);
        pthread_mutex_unlock(&wide_lock);
        if (in->d != NO_OPERAND) {
            dst(w, in->d)[l] = old[0];
            dst(w, in->d + 1)[l] = old[1];
        }
    }
    return ST_NEXT;
}

// Vectors: each element is an atomic operation of its own, as the architecture has it.
static step atom_vector(warp *w, const insn *in, uint32_t m)
{
    unsigned size = ptx_element_bytes((ptx_type)in->type);
    const int32_t *from = w->blk->ln->m->lists + in->list;
    FOR_LANES (m) {
        uint8_t *p = resolve(w, in, l, effective(w, in, l), size * in->n, 1);
        if (!p)
            return ST_FAULT;
        for (unsigned i = 0; i < in->n; i++) {
            uint64_t b = src(w, from[i])[l], old;
            old = swap((ptx_type)in->type, (atom_op)in->sub, p + i * size, b, 0, flushes(w, in, p));
            if (in->e != NO_OPERAND) {
                int32_t to = w->blk->ln->m->lists[in->e + (int32_t)i];
                if (to != NO_OPERAND)
                    dst(w, to)[l] = old;
            }
        }
    }
    return ST_NEXT;
}

#define SET(op) (1u << ATOM_##op)
int ptx_atom_exists(ptx_type type, atom_op op)
{
    static const uint16_t known[T_COUNT] = {
        [T_U32] = SET(ADD) | SET(MIN) | SET(MAX) | SET(INC) | SET(DEC),
        [T_S32] = SET(ADD) | SET(MIN) | SET(MAX),
        [T_U64] = SET(ADD) | SET(MIN) | SET(MAX),
        [T_S64] = SET(ADD) | SET(MIN) | SET(MAX),
        [T_B32] = SET(AND) | SET(OR) | SET(XOR) | SET(EXCH) | SET(CAS),
        [T_B64] = SET(AND) | SET(OR) | SET(XOR) | SET(EXCH) | SET(CAS),
        [T_B16] = SET(CAS) | SET(EXCH),
        [T_F32] = SET(ADD) | SET(EXCH),
        [T_F64] = SET(ADD),
        [T_F16] = SET(ADD) | SET(MIN) | SET(MAX),
        [T_BF16] = SET(ADD) | SET(MIN) | SET(MAX),
        [T_F16X2] = SET(ADD) | SET(MIN) | SET(MAX),
        [T_BF16X2] = SET(ADD) | SET(MIN) | SET(MAX),
        [T_B128] = SET(CAS) | SET(EXCH),
    };
    return known[type] >> op & 1;
}

exec_fn ptx_atom_handler(const insn *in)
{
    if (!ptx_atom_exists((ptx_type)in->type, (atom_op)in->sub))
        return NULL;
    if (in->n > 1)
        return in->type == T_B128 ? NULL : atom_vector;
    if (in->type == T_B128)
        return atom_128;
    if (in->sub == ATOM_ADD && (in->type == T_U32 || in->type == T_S32))
        return add_32;
    return atom;
}
