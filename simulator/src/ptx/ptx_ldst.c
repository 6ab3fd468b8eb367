// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Loads and stores.
//
// Each looks first whether the whole warp's addresses are found at once (ptx_where.h), and else goes lane by lane. A
// row is read and written in vectors; elements that are aligned are not torn by that, whoever writes them meanwhile.
#include "ptx/ptx_where.h"

LANES_BEGIN

// One lane at a time, with a check for each.
#define LOAD_SLOWLY(name, T) \
    static __attribute__((noinline, cold)) step name##_slowly(warp *w, const insn *in, uint32_t m) \
    { \
        uint64_t *d = dst(w, in->d); \
        FOR_LANES (m) { \
            const T *p = resolve(w, in, l, effective(w, in, l), sizeof(T), 0); \
            if (!p) \
                return ST_FAULT; \
            d[l] = (uint64_t)__atomic_load_n(p, __ATOMIC_RELAXED); \
        } \
        if (in->flags & F_ACQUIRE) \
            __atomic_thread_fence(__ATOMIC_ACQUIRE); \
        return ST_NEXT; \
    }

#define LOAD(name, T) \
    LOAD_SLOWLY(name, T) \
    INLINE step name##_body(warp *w, const insn *in, uint32_t m, const int wide) \
    { \
        typedef T element __attribute__((may_alias)); \
        uint64_t *d = dst(w, in->d), *at = w->temp; \
        where found = find_where(w, in, m, sizeof(T), 0, at, wide); \
        const element *p = (const element *)(uintptr_t)at[0]; \
        if (found == WHERE_ROW) { \
            _Pragma("GCC ivdep") for (unsigned l = 0; l < WARP; l++) d[l] = (uint64_t)p[l]; \
        } else if (found == WHERE_ANY) { \
            if (m == FULL) \
                for (unsigned l = 0; l < WARP; l++) \
                    d[l] = (uint64_t)__atomic_load_n((const element *)(uintptr_t)at[l], __ATOMIC_RELAXED); \
            else \
                FOR_LANES (m) { \
                    d[l] = (uint64_t)__atomic_load_n((const element *)(uintptr_t)at[l], __ATOMIC_RELAXED); \
                } \
        } else if (found == WHERE_SAME) { \
            uint64_t v = (uint64_t)__atomic_load_n(p, __ATOMIC_RELAXED); \
            for (unsigned l = 0; l < WARP; l++) \
                d[l] = v; \
        } else \
            return name##_slowly(w, in, m); \
        if (in->flags & F_ACQUIRE) \
            __atomic_thread_fence(__ATOMIC_ACQUIRE); \
        return ST_NEXT; \
    } \
    TWINS(name)
LOAD(load_u8, uint8_t)
LOAD(load_s8, int8_t)
LOAD(load_u16, uint16_t)
LOAD(load_s16, int16_t)
LOAD(load_u32, uint32_t)
LOAD(load_s32, int32_t)
LOAD(load_u64, uint64_t)

#define STORE_SLOWLY(name, T) \
    static __attribute__((noinline, cold)) step name##_slowly(warp *w, const insn *in, uint32_t m) \
    { \
        const uint64_t *v = src(w, in->b); \
        FOR_LANES (m) { \
            T *p = resolve(w, in, l, effective(w, in, l), sizeof(T), 1); \
            if (!p) \
                return ST_FAULT; \
            __atomic_store_n(p, (T)v[l], __ATOMIC_RELAXED); \
        } \
        return ST_NEXT; \
    }

// Of lanes that store to one place the last one wins.
#define STORE(name, T) \
    STORE_SLOWLY(name, T) \
    INLINE step name##_body(warp *w, const insn *in, uint32_t m, const int wide) \
    { \
        typedef T element __attribute__((may_alias)); \
        const uint64_t *v = src(w, in->b); \
        uint64_t *at = w->temp; \
        if (in->flags & F_RELEASE) \
            __atomic_thread_fence(__ATOMIC_SEQ_CST); \
        where found = find_where(w, in, m, sizeof(T), 1, at, wide); \
        element *p = (element *)(uintptr_t)at[0]; \
        if (found == WHERE_ROW) { \
            _Pragma("GCC ivdep") for (unsigned l = 0; l < WARP; l++) p[l] = (T)v[l]; \
        } else if (found == WHERE_ANY) { \
            if (m == FULL) \
                for (unsigned l = 0; l < WARP; l++) \
                    __atomic_store_n((element *)(uintptr_t)at[l], (T)v[l], __ATOMIC_RELAXED); \
            else \
                FOR_LANES (m) { \
                    __atomic_store_n((element *)(uintptr_t)at[l], (T)v[l], __ATOMIC_RELAXED); \
                } \
        } else if (found == WHERE_SAME) \
            __atomic_store_n(p, (T)v[WARP - 1], __ATOMIC_RELAXED); \
        else \
            return name##_slowly(w, in, m); \
        return ST_NEXT; \
    } \
    TWINS(name)
STORE(store_8, uint8_t)
STORE(store_16, uint16_t)
STORE(store_32, uint32_t)
STORE(store_64, uint64_t)

LANES_END

// ---- vectors

typedef uint64_t u64_element __attribute__((may_alias));

static uint64_t get_element(const uint8_t *p, ptx_type t)
{
    switch (ptx_element_bytes(t)) {
    case 1: return t == T_S8 ? (uint64_t)*(const int8_t *)p : *p;
    case 2: return t == T_S16 ? (uint64_t)*(const int16_t *)p : *(const uint16_t *)p;
    case 4: return t == T_S32 ? (uint64_t)*(const int32_t *)p : *(const uint32_t *)p;
    default: return *(const uint64_t *)p;
    }
}

static void put_element(uint8_t *p, ptx_type t, uint64_t v)
{
    switch (ptx_element_bytes(t)) {
    case 1: *p = (uint8_t)v; break;
    case 2: *(uint16_t *)p = (uint16_t)v; break;
    case 4: *(uint32_t *)p = (uint32_t)v; break;
    default: *(uint64_t *)p = v;
    }
}

static void fill_lane(warp *w, const insn *in, const uint8_t *p, unsigned l)
{
    const int32_t *list = w->blk->ln->m->lists + in->list;
    unsigned size = ptx_element_bytes((ptx_type)in->type);
    for (unsigned i = 0; i < in->n; i++) {
        if (list[i] == NO_OPERAND)
            continue;
        dst(w, list[i])[l] = get_element(p + i * size, (ptx_type)in->type);
        if (size == 16)
            dst(w, list[i] + 1)[l] = *(const uint64_t *)(p + i * size + 8);
    }
}

// A load of several elements or of one of 128 bits; the address is read before a destination may overwrite it.
static step load_vector_slowly(warp *w, const insn *in, uint32_t m)
{
    uint32_t bytes = ptx_element_bytes((ptx_type)in->type) * in->n;
    check_epoch(w->wk);
    FOR_LANES (m) {
        const uint8_t *p = resolve(w, in, l, effective(w, in, l), bytes, 0);
        if (!p)
            return ST_FAULT;
        fill_lane(w, in, p, l);
    }
    if (in->flags & F_ACQUIRE)
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return ST_NEXT;
}

LANES_BEGIN

// Elements of 32 or 64 bits whose signs are not extended.
static inline int is_plain(const insn *in, unsigned size) { return (size == 4 && in->type != T_S32) || size == 8; }

INLINE step load_vector_body(warp *w, const insn *in, uint32_t m, const int wide)
{
    unsigned size = ptx_element_bytes((ptx_type)in->type), bytes = size * in->n;
    const int32_t *list = w->blk->ln->m->lists + in->list;
    uint64_t *at = w->temp;
    where found = is_plain(in, size) ? find_where(w, in, m, bytes, 0, at, wide) : WHERE_UNKNOWN;
    if (found == WHERE_UNKNOWN)
        return load_vector_slowly(w, in, m);
    spread(found, bytes, at);
    for (unsigned i = 0; i < in->n; i++) {
        if (list[i] == NO_OPERAND)
            continue;
        uint64_t *d = dst(w, list[i]), offset = (uint64_t)i * size;
        if (size == 4)
            FOR_LANES (m) {
                d[l] = __atomic_load_n((const u32_word *)(uintptr_t)(at[l] + offset), __ATOMIC_RELAXED);
            }
        else
            FOR_LANES (m) {
                d[l] = __atomic_load_n((const u64_element *)(uintptr_t)(at[l] + offset), __ATOMIC_RELAXED);
            }
    }
    if (in->flags & F_ACQUIRE)
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return ST_NEXT;
}
TWINS(load_vector)

LANES_END

static step store_vector_slowly(warp *w, const insn *in, uint32_t m)
{
    const int32_t *list = w->blk->ln->m->lists + in->list;
    unsigned size = ptx_element_bytes((ptx_type)in->type);
    check_epoch(w->wk);
    if (in->flags & F_RELEASE)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    FOR_LANES (m) {
        uint8_t *p = resolve(w, in, l, effective(w, in, l), size * in->n, 1);
        if (!p)
            return ST_FAULT;
        for (unsigned i = 0; i < in->n; i++) {
            put_element(p + i * size, (ptx_type)in->type, src(w, list[i])[l]);
            if (size == 16)
                *(uint64_t *)(p + i * size + 8) = list[i] >= 0 ? src(w, list[i] + 1)[l] : 0;
        }
    }
    return ST_NEXT;
}

LANES_BEGIN

// Element by element, and so in the order of the lanes wherever two of them store to one place: both are aligned.
INLINE step store_vector_body(warp *w, const insn *in, uint32_t m, const int wide)
{
    unsigned size = ptx_element_bytes((ptx_type)in->type), bytes = size * in->n;
    const int32_t *list = w->blk->ln->m->lists + in->list;
    uint64_t *at = w->temp;
    where found = is_plain(in, size) || size == 4 ? find_where(w, in, m, bytes, 1, at, wide) : WHERE_UNKNOWN;
    if (found == WHERE_UNKNOWN)
        return store_vector_slowly(w, in, m);
    if (in->flags & F_RELEASE)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    spread(found, bytes, at);
    for (unsigned i = 0; i < in->n; i++) {
        const uint64_t *v = src(w, list[i]);
        uint64_t offset = (uint64_t)i * size;
        if (size == 4)
            FOR_LANES (m) {
                __atomic_store_n((u32_word *)(uintptr_t)(at[l] + offset), (uint32_t)v[l], __ATOMIC_RELAXED);
            }
        else
            FOR_LANES (m) {
                __atomic_store_n((u64_element *)(uintptr_t)(at[l] + offset), v[l], __ATOMIC_RELAXED);
            }
    }
    return ST_NEXT;
}
TWINS(store_vector)

LANES_END

// A kernel parameter at a fixed offset is the same for every lane.
LANES_BEGIN
INLINE step load_param_body(warp *w, const insn *in, uint32_t m, const int wide)
{
    const uint8_t *p = w->blk->ln->params + in->imm;
    if (in->n == 1 && in->type != T_B128) {
        uint64_t *d = dst(w, in->d), v = get_element(p, (ptx_type)in->type);
        EACH_LANE(o[l] = v;);
    } else {
        FOR_LANES (m) {
            fill_lane(w, in, p, l);
        }
    }
    return ST_NEXT;
}
TWINS(load_param)
LANES_END

exec_fn ptx_load_handler(const insn *in, int uniform_param)
{
    static const exec_fn table[T_COUNT] = {
        [T_U8] = load_u8,   [T_B8] = load_u8,     [T_S8] = load_s8,      [T_U16] = load_u16, [T_B16] = load_u16,
        [T_S16] = load_s16, [T_F16] = load_u16,   [T_BF16] = load_u16,   [T_U32] = load_u32, [T_B32] = load_u32,
        [T_S32] = load_s32, [T_F32] = load_u32,   [T_U64] = load_u64,    [T_B64] = load_u64, [T_S64] = load_u64,
        [T_F64] = load_u64, [T_F16X2] = load_u32, [T_BF16X2] = load_u32,
    };
    if (uniform_param)
        return load_param;
    if (in->n > 1 || in->type == T_B128)
        return load_vector;
    return table[in->type];
}

exec_fn ptx_store_handler(const insn *in)
{
    if (in->n > 1 || in->type == T_B128)
        return store_vector;
    switch (ptx_element_bytes((ptx_type)in->type)) {
    case 1: return store_8;
    case 2: return store_16;
    case 4: return store_32;
    default: return store_64;
    }
}
