// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// tex, tld4 and txq.
#include "ptx/ptx_tex.h"

#include <string.h>

#include "ptx/ptx_exec.h"
#include "ptx/ptx_sample.h"

const geometry_info ptx_geometries[GEOMETRIES] = {
    [GEO_1D] = {1, 0, 0, 1, 1},    [GEO_2D] = {2, 0, 0, 2, 2},  [GEO_3D] = {3, 0, 0, 4, 4},
    [GEO_A1D] = {1, 1, 0, 2, 1},   [GEO_A2D] = {2, 1, 0, 4, 2}, [GEO_CUBE] = {3, 0, 1, 4, 4},
    [GEO_ACUBE] = {3, 1, 1, 4, 4},
};

int ptx_geometry_fits(geometry g, enum sim_shape shape, const struct sim_image *image)
{
    switch (g) {
    case GEO_1D: return shape == SIM_SHAPE_1D || (shape == SIM_SHAPE_2D && image->height == 1);
    case GEO_2D: return shape == SIM_SHAPE_1D || shape == SIM_SHAPE_2D;
    case GEO_3D: return shape == SIM_SHAPE_3D;
    case GEO_A1D: return shape == SIM_SHAPE_1D_LAYERED || (shape == SIM_SHAPE_2D_LAYERED && image->height == 1);
    case GEO_A2D: return shape == SIM_SHAPE_1D_LAYERED || shape == SIM_SHAPE_2D_LAYERED;
    case GEO_CUBE: return shape == SIM_SHAPE_CUBEMAP;
    default: return shape == SIM_SHAPE_CUBEMAP_LAYERED;
    }
}

// ---- textures

static int bind(warp *w, const insn *in, unsigned lane, uint64_t handle, struct sim_texture *t)
{
    const sim_ptx_host *host = &w->blk->ln->m->host;
    if (!host->texture || host->texture(host->ctx, handle, t)) {
        fault(w, in, lane, PTX_ILLEGAL_ADDRESS, handle, "0x%llx is no texture object of the context",
              (unsigned long long)handle);
        return 0;
    }
    // One look for all of its memory, which the worker remembers.
    uint32_t bytes = t->bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)t->bytes;
    return resolve_space(w, in, lane, SP_GLOBAL, t->address, bytes, 0) != NULL;
}

static int bind_for(warp *w, const insn *in, unsigned lane, uint64_t handle, struct sim_texture *t)
{
    if (!bind(w, in, lane, handle, t))
        return 0;
    if (ptx_geometry_fits((geometry)in->sub, t->shape, &t->levels[0]))
        return 1;
    fault(w, in, lane, PTX_ILLEGAL_INSTRUCTION, handle, "the texture has another shape");
    return 0;
}

static const int32_t *operands_of(const warp *w, const insn *in) { return w->blk->ln->m->lists + in->list; }

// Reads the coordinates; returns the operands after them.
static const int32_t *coordinates(const warp *w, const insn *in, const int32_t *list, unsigned lane, sample_at *at)
{
    const geometry_info *g = &ptx_geometries[in->sub];
    const int32_t *next = list + g->coordinates;
    memset(at, 0, sizeof *at);
    at->dims = g->dims;
    at->cube = g->cube;
    at->whole = in->stype == T_S32;
    if (g->layered)
        at->layer = (uint32_t)src(w, *list++)[lane];
    for (unsigned k = 0; k < g->dims; k++) {
        uint64_t v = src(w, list[k])[lane];
        at->c[k] = as_f32(v);
        at->i[k] = (int32_t)v;
    }
    return next;
}

static void level_of(const warp *w, const insn *in, const int32_t *list, unsigned lane, const struct sim_texture *t,
                     sample_at *at)
{
    float d[2][4] = {{0}};
    unsigned n = ptx_geometries[in->sub].derivatives;
    if (in->n == LOD_BASE)
        return;
    at->lod_given = 1;
    if (in->n == LOD_LEVEL) {
        uint64_t v = src(w, list[0])[lane];
        at->lod = at->whole ? (float)(int32_t)v : as_f32(v);
        return;
    }
    for (unsigned k = 0; k < 2 * n; k++)
        d[k / n][k % n] = as_f32(src(w, list[k])[lane]);
    at->lod = lod_of_gradients(t, at, d[0], d[1]);
}

static step tex(warp *w, const insn *in, uint32_t m)
{
    struct sim_texture t;
    uint64_t bound = 0;
    const int32_t *list = operands_of(w, in);
    const uint64_t *handles = src(w, in->a);
    uint32_t out[WARP][4];
    check_epoch(w->wk);
    FOR_LANES (m) {
        sample_at at;
        if ((handles[l] != bound || !bound) && !bind_for(w, in, l, handles[l], &t))
            return ST_FAULT;
        bound = handles[l];
        const int32_t *rest = coordinates(w, in, list + 4, l, &at);
        level_of(w, in, rest, l, &t, &at);
        sample_texture(&t, &at, out[l]);
    }
    for (int i = 0; i < 4; i++) {
        uint64_t *d = dst(w, list[i]);
        FOR_LANES (m)
            d[l] = out[l][i];
    }
    set_pred(w, in->e, m, m);
    return ST_NEXT;
}

static step tld4(warp *w, const insn *in, uint32_t m)
{
    struct sim_texture t;
    uint64_t bound = 0;
    const int32_t *list = operands_of(w, in);
    const uint64_t *handles = src(w, in->a);
    uint32_t out[WARP][4];
    check_epoch(w->wk);
    FOR_LANES (m) {
        sample_at at;
        if ((handles[l] != bound || !bound) && !bind_for(w, in, l, handles[l], &t))
            return ST_FAULT;
        bound = handles[l];
        coordinates(w, in, list + 4, l, &at);
        gather_texels(&t, &at, in->n, out[l]);
    }
    for (int i = 0; i < 4; i++) {
        uint64_t *d = dst(w, list[i]);
        FOR_LANES (m)
            d[l] = out[l][i];
    }
    set_pred(w, in->e, m, m);
    return ST_NEXT;
}

exec_fn ptx_tex_handler(void) { return tex; }
exec_fn ptx_tld4_handler(void) { return tld4; }

// ---- queries

// Layers are counted where the next dimension would be.
uint32_t ptx_image_query(texture_query query, enum sim_shape shape, const struct sim_image *image)
{
    switch (query) {
    case QUERY_WIDTH: return image->width;
    case QUERY_HEIGHT: return shape == SIM_SHAPE_1D_LAYERED ? image->depth : image->height;
    default:
        return shape == SIM_SHAPE_CUBEMAP_LAYERED                       ? image->depth / 6
               : shape == SIM_SHAPE_3D || shape == SIM_SHAPE_2D_LAYERED ? image->depth
                                                                        : 0;
    }
}

static step txq(warp *w, const insn *in, uint32_t m)
{
    struct sim_texture t;
    uint64_t *d = dst(w, in->d);
    const uint64_t *handles = src(w, in->a);
    check_epoch(w->wk);
    FOR_LANES (m) {
        if (!bind(w, in, l, handles[l], &t))
            return ST_FAULT;
        uint32_t level = in->b == NO_OPERAND ? 0 : (uint32_t)src(w, in->b)[l];
        d[l] = level < t.level_count ? ptx_image_query((texture_query)in->n, t.shape, &t.levels[level]) : 0;
    }
    return ST_NEXT;
}

exec_fn ptx_txq_handler(void) { return txq; }
