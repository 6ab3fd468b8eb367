// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// suld, sust, sured and suq.
#include "ptx/ptx_tex.h"

#include <string.h>

#include "ptx/ptx_exec.h"
#include "ptx/ptx_mem.h"
#include "ptx/ptx_sample.h"

static int bind(warp *w, const insn *in, unsigned lane, uint64_t handle, struct sim_surface *s)
{
    const sim_ptx_host *host = &w->blk->ln->m->host;
    if (host->surface && !host->surface(host->ctx, handle, s))
        return 1;
    fault(w, in, lane, PTX_ILLEGAL_ADDRESS, handle, "0x%llx is no surface object of the context",
          (unsigned long long)handle);
    return 0;
}

// The faces of cubemaps are layers.
static int fits(const insn *in, const struct sim_surface *s)
{
    int cube = s->shape == SIM_SHAPE_CUBEMAP || s->shape == SIM_SHAPE_CUBEMAP_LAYERED;
    return ptx_geometry_fits((geometry)in->sub, s->shape, &s->image) || (in->sub == GEO_A2D && cube);
}

// The memory that an access means, or NULL: `*failed` says whether the launch fails or nothing is there. `unit` is what
// the first coordinate counts: bytes, or texels.
static void *locate(warp *w, const insn *in, const int32_t *list, unsigned lane, uint32_t unit, uint32_t size,
                    int is_write, int *failed)
{
    struct sim_surface s;
    uint64_t handle = src(w, in->a)[lane];
    const geometry_info *g = &ptx_geometries[in->sub];
    *failed = 1;
    if (!bind(w, in, lane, handle, &s))
        return NULL;
    if (!fits(in, &s)) {
        fault(w, in, lane, PTX_ILLEGAL_INSTRUCTION, handle, "the surface has another shape");
        return NULL;
    }
    int64_t at[3] = {0, 0, 0};
    if (g->layered)
        at[2] = (uint32_t)src(w, *list++)[lane];
    for (unsigned k = 0; k < g->dims; k++)
        at[k] = (int32_t)src(w, list[k])[lane];
    if (!unit)
        unit = size = sim_texel_bytes(s.image.format);
    at[0] *= unit;
    const int64_t last[3] = {(int64_t)s.image.width * sim_texel_bytes(s.image.format) - size,
                             (int64_t)s.image.height - 1, (int64_t)s.image.depth - 1};
    for (int k = 0; k < 3; k++) {
        if (at[k] >= 0 && at[k] <= last[k])
            continue;
        if (in->spare == BOUND_ZERO) {
            *failed = 0;
            return NULL;
        }
        if (in->spare == BOUND_TRAP || last[k] < 0) {
            fault(w, in, lane, PTX_ILLEGAL_ADDRESS, 0, "coordinate %lld is outside of the surface",
                  (long long)(k ? at[k] : at[k] / unit));
            return NULL;
        }
        at[k] = at[k] < 0 ? 0 : last[k];
    }
    uint64_t address =
        s.image.address + (uint64_t)at[2] * s.image.slice + (uint64_t)at[1] * s.image.pitch + (uint64_t)at[0];
    if (unit == 1 && at[0] % size) {
        fault(w, in, lane, PTX_MISALIGNED_ADDRESS, address, "the offset %lld is not a multiple of %u", (long long)at[0],
              size);
        return NULL;
    }
    return resolve_space(w, in, lane, SP_GLOBAL, address, size, is_write);
}

static const int32_t *operands_of(const warp *w, const insn *in) { return w->blk->ln->m->lists + in->list; }

static step suld(warp *w, const insn *in, uint32_t m)
{
    const int32_t *list = operands_of(w, in);
    uint32_t each = ptx_element_bytes((ptx_type)in->type);
    uint64_t out[WARP][4];
    check_epoch(w->wk);
    FOR_LANES (m) {
        int failed;
        const uint8_t *p = locate(w, in, list + in->n, l, 1, each * in->n, 0, &failed);
        if (!p && failed)
            return ST_FAULT;
        memset(out[l], 0, sizeof out[l]);
        for (unsigned i = 0; p && i < in->n; i++)
            memcpy(&out[l][i], p + i * each, each);
    }
    for (unsigned i = 0; i < in->n; i++) {
        uint64_t *d = dst(w, list[i]);
        FOR_LANES (m)
            d[l] = out[l][i];
    }
    return ST_NEXT;
}

static step sust_bytes(warp *w, const insn *in, uint32_t m)
{
    const int32_t *list = operands_of(w, in);
    uint32_t each = ptx_element_bytes((ptx_type)in->type);
    check_epoch(w->wk);
    FOR_LANES (m) {
        int failed;
        uint8_t *p = locate(w, in, list + in->n, l, 1, each * in->n, 1, &failed);
        if (!p && failed)
            return ST_FAULT;
        for (unsigned i = 0; p && i < in->n; i++)
            memcpy(p + i * each, &src(w, list[i])[l], each);
    }
    return ST_NEXT;
}

// The components are converted to the format of the surface.
static step sust_formatted(warp *w, const insn *in, uint32_t m)
{
    const int32_t *list = operands_of(w, in);
    check_epoch(w->wk);
    FOR_LANES (m) {
        int failed;
        struct sim_surface s;
        uint32_t components[4] = {0, 0, 0, 0};
        void *p = locate(w, in, list + in->n, l, 0, 0, 1, &failed);
        if (!p && failed)
            return ST_FAULT;
        if (!p || !bind(w, in, l, src(w, in->a)[l], &s))
            continue;
        for (unsigned i = 0; i < in->n; i++)
            components[i] = (uint32_t)src(w, list[i])[l];
        texel_pack(p, s.image.format, components);
    }
    return ST_NEXT;
}

exec_fn ptx_suld_handler(void) { return suld; }
exec_fn ptx_sust_handler(int formatted) { return formatted ? sust_formatted : sust_bytes; }

// ---- reductions

// Applies an operation to memory; `p` is aligned.
#define REDUCE(name, type, result) \
    static void name(void *p, uint64_t value) \
    { \
        type b = (type)value, a = __atomic_load_n((type *)p, __ATOMIC_RELAXED); \
        while (!__atomic_compare_exchange_n((type *)p, &a, (type)(result), 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) \
            ; \
    }

REDUCE(add32, uint32_t, a + b)
REDUCE(add64, uint64_t, a + b)
REDUCE(and32, uint32_t, a &b)
REDUCE(or32, uint32_t, a | b)
REDUCE(min_u32, uint32_t, a < b ? a : b)
REDUCE(min_s32, int32_t, a < b ? a : b)
REDUCE(min_u64, uint64_t, a < b ? a : b)
REDUCE(min_s64, int64_t, a < b ? a : b)
REDUCE(max_u32, uint32_t, a > b ? a : b)
REDUCE(max_s32, int32_t, a > b ? a : b)
REDUCE(max_u64, uint64_t, a > b ? a : b)
REDUCE(max_s64, int64_t, a > b ? a : b)

typedef void (*reduce_fn)(void *p, uint64_t value);
static const reduce_fn reductions[SURED_OPS][T_COUNT] = {
    [SURED_ADD] = {[T_U32] = add32, [T_S32] = add32, [T_U64] = add64},
    [SURED_MIN] = {[T_U32] = min_u32, [T_S32] = min_s32, [T_U64] = min_u64, [T_S64] = min_s64},
    [SURED_MAX] = {[T_U32] = max_u32, [T_S32] = max_s32, [T_U64] = max_u64, [T_S64] = max_s64},
    [SURED_AND] = {[T_B32] = and32},
    [SURED_OR] = {[T_B32] = or32},
};

static step sured(warp *w, const insn *in, uint32_t m)
{
    const int32_t *list = operands_of(w, in);
    uint32_t size = ptx_element_bytes((ptx_type)in->type);
    check_epoch(w->wk);
    FOR_LANES (m) {
        int failed;
        void *p = locate(w, in, list + 1, l, 1, size, 1, &failed);
        if (!p && failed)
            return ST_FAULT;
        if (!p)
            continue;
        if ((uintptr_t)p % size)
            return fault(w, in, l, PTX_MISALIGNED_ADDRESS, (uintptr_t)p, "rows of the surface are not aligned");
        reductions[in->n][in->type](p, src(w, list[0])[l]);
    }
    return ST_NEXT;
}

exec_fn ptx_sured_handler(sured_op op, ptx_type type) { return reductions[op][type] ? sured : NULL; }

// ---- queries

static step suq(warp *w, const insn *in, uint32_t m)
{
    struct sim_surface s;
    uint64_t *d = dst(w, in->d);
    const uint64_t *handles = src(w, in->a);
    FOR_LANES (m) {
        if (!bind(w, in, l, handles[l], &s))
            return ST_FAULT;
        d[l] = ptx_image_query((texture_query)in->n, s.shape, &s.image);
        // A one-dimensional surface has no rows, and cubes are layers.
        if (in->n == QUERY_HEIGHT && s.shape == SIM_SHAPE_1D)
            d[l] = 0;
        if (in->n == QUERY_DEPTH && s.shape == SIM_SHAPE_CUBEMAP_LAYERED)
            d[l] = s.image.depth;
    }
    return ST_NEXT;
}

exec_fn ptx_suq_handler(void) { return suq; }
