// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Decoders of instructions that read and write textures and surfaces.
#include "ptx/ptx_decode.h"
#include "ptx/ptx_tex.h"

static int take_one_of(decoder *d, const ptx_mod *mods, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (take(d, mods[i]))
            return (int)i;
    return -1;
}
#define TAKE_ONE_OF(d, mods) take_one_of(d, mods, sizeof(mods) / sizeof *(mods))

static const ptx_mod geometries[GEOMETRIES] = {M_geom_1d,  M_geom_2d,   M_geom_3d,   M_geom_a1d,
                                               M_geom_a2d, M_geom_cube, M_geom_acube};

typedef struct slots {
    int32_t items[MAX_LIST];
    uint32_t n;
} slots;

// A vector of so many elements, or without braces a single one.
static const operand *items_of(decoder *d, const operand *o, unsigned n)
{
    if (o->kind != OP_VEC && n == 1)
        return o;
    if (o->kind != OP_VEC || o->n != n)
        bad_operand(d, "the vector has the wrong number of elements");
    return o->items;
}

static void add_destinations(decoder *d, slots *list, const operand *o, unsigned n)
{
    const operand *items = items_of(d, o, n);
    for (unsigned i = 0; i < n; i++)
        list->items[list->n++] = destination(d, &items[i]);
}

static void add_sources(decoder *d, slots *list, const operand *o, unsigned n, ptx_type t)
{
    const operand *items = items_of(d, o, n);
    for (unsigned i = 0; i < n; i++)
        list->items[list->n++] = source_of(d, &items[i], t);
}

// [handle, {coordinates}]; a register holds the handle.
static void add_coordinates(decoder *d, slots *list, const operand *o, ptx_type t)
{
    const geometry_info *g = &ptx_geometries[d->in.sub];
    if (o->kind != OP_TEXELS)
        bad_operand(d, "a handle and coordinates in brackets are expected");
    if (o->type == T_PRED || o->type == T_B128)
        bad_operand(d, "a register with a handle is expected");
    d->in.a = o->slot;
    const operand *items = items_of(d, o->items, g->coordinates);
    for (unsigned i = 0; i < g->coordinates; i++)
        list->items[list->n++] = source_of(d, &items[i], g->layered && i == 0 ? T_U32 : t);
}

static void finish(decoder *d, const slots *list, exec_fn run)
{
    d->in.space = SP_GLOBAL;
    d->in.list = list_add(d->p, list->items, list->n);
    d->in.run = run;
}

static int take_geometry(decoder *d)
{
    int g = TAKE_ONE_OF(d, geometries);
    d->in.sub = (uint8_t)(g < 0 ? 0 : g);
    return g >= 0;
}

// The types of what is read and of the coordinates, and the four destinations with the predicate that may be beside.
static int take_result(decoder *d, slots *list)
{
    insn *in = &d->in;
    int four = take(d, M_v4);
    in->type = (uint8_t)take_type(d);
    in->stype = (uint8_t)take_type(d);
    if (!four || (in->type != T_U32 && in->type != T_S32 && in->type != T_F32))
        return 0;
    const operand *to = &d->st->ops[0];
    add_destinations(d, list, to, 4);
    if (to->second && to->second->kind != OP_SINK)
        in->e = predicate(d, to->second, 0);
    return 1;
}

static void dec_tex(decoder *d, int arg)
{
    (void)arg;
    slots list = {.n = 0};
    insn *in = &d->in;
    in->n = take(d, M_level) ? LOD_LEVEL : take(d, M_grad) ? LOD_GRAD : LOD_BASE;
    take(d, M_base);
    // Texel offsets and depth comparisons are more operands.
    if (!take_geometry(d) || d->st->count != 2u + in->n || !take_result(d, &list))
        return;
    const geometry_info *g = &ptx_geometries[in->sub];
    if (in->stype != T_F32 && (in->stype != T_S32 || g->cube || in->n == LOD_GRAD))
        return;
    add_coordinates(d, &list, &d->st->ops[1], (ptx_type)in->stype);
    if (in->n == LOD_LEVEL)
        add_sources(d, &list, &d->st->ops[2], 1, (ptx_type)in->stype);
    for (unsigned i = 0; i < 2 && in->n == LOD_GRAD; i++)
        add_sources(d, &list, &d->st->ops[2 + i], g->derivatives, T_F32);
    finish(d, &list, ptx_tex_handler());
}

static void dec_tld4(decoder *d, int arg)
{
    (void)arg;
    static const ptx_mod components[] = {M_r, M_g, M_b, M_a};
    slots list = {.n = 0};
    int component = TAKE_ONE_OF(d, components);
    if (component < 0 || !take_geometry(d) || d->st->count != 2 || !take_result(d, &list))
        return;
    d->in.n = (uint8_t)component;
    int g = d->in.sub;
    if (d->in.stype != T_F32 || g == GEO_1D || g == GEO_3D || g == GEO_A1D)
        return;
    add_coordinates(d, &list, &d->st->ops[1], T_F32);
    finish(d, &list, ptx_tld4_handler());
}

// arg: 0 txq, 1 suq. Sizes are what texture and surface objects can be asked for. The rest is for references: drivers
// load no code that asks a surface, and do not find kernels that ask a texture.
static void dec_query(decoder *d, int arg)
{
    static const ptx_mod names[QUERIES] = {M_width, M_height, M_depth};
    static const ptx_mod of_references[] = {M_channel_data_type, M_channel_order, M_array_size, M_memory_layout};
    if (arg && TAKE_ONE_OF(d, of_references) >= 0)
        lex_fail(&d->p->lx, PTX_NOT_SUPPORTED, "surface objects have no answer to 'suq' but for their size");
    insn *in = &d->in;
    int level = !arg && take(d, M_level), query = TAKE_ONE_OF(d, names);
    if (query < 0 || take_type(d) != T_B32)
        return;
    need(d, level ? 3 : 2, level ? 3 : 2);
    const operand *o = &d->st->ops[1];
    if (o->kind != OP_ADDR || o->slot < 0 || o->value || o->type == T_PRED || o->type == T_B128)
        return;
    in->n = (uint8_t)query;
    in->a = o->slot;
    in->d = destination(d, &d->st->ops[0]);
    if (level)
        in->b = source(d, 2, T_U32);
    in->space = SP_GLOBAL;
    in->run = arg ? ptx_suq_handler() : ptx_txq_handler();
}

// The geometries of surfaces, and what is done outside of them.
static int take_surface(decoder *d)
{
    static const ptx_mod boundaries[] = {M_trap, M_clamp, M_zero};
    int boundary = TAKE_ONE_OF(d, boundaries);
    d->in.spare = (uint8_t)(boundary < 0 ? 0 : boundary);
    return take_geometry(d) && boundary >= 0 && d->in.sub <= GEO_A2D && d->st->count == 2;
}

// arg: 0 suld, 1 sust
static void dec_surface(decoder *d, int arg)
{
    slots list = {.n = 0};
    insn *in = &d->in;
    int formatted = !take(d, M_b) && arg && take(d, M_p);
    if (!take_surface(d))
        return;
    take_cache(d);
    in->n = take(d, M_v2) ? 2 : take(d, M_v4) ? 4 : 1;
    in->type = (uint8_t)take_type(d);
    int bits = in->type == T_B8 || in->type == T_B16 || in->type == T_B32 || in->type == T_B64;
    if (!bits || (formatted && in->type != T_B32) || (in->type == T_B64 && in->n == 4))
        return;
    if (arg)
        add_sources(d, &list, &d->st->ops[1], in->n, (ptx_type)in->type);
    else
        add_destinations(d, &list, &d->st->ops[0], in->n);
    add_coordinates(d, &list, &d->st->ops[!arg], T_S32);
    finish(d, &list, arg ? ptx_sust_handler(formatted) : ptx_suld_handler());
}

static void dec_sured(decoder *d, int arg)
{
    (void)arg;
    static const ptx_mod names[SURED_OPS] = {M_add, M_min, M_max, M_and_, M_or_};
    slots list = {.n = 0};
    int bytes = take(d, M_b), op = TAKE_ONE_OF(d, names);
    if (!bytes || op < 0 || !take_surface(d))
        return;
    d->in.n = (uint8_t)op;
    d->in.type = (uint8_t)take_type(d);
    if (d->in.sub > GEO_3D || !ptx_sured_handler((sured_op)op, (ptx_type)d->in.type))
        return;
    add_sources(d, &list, &d->st->ops[1], 1, (ptx_type)d->in.type);
    add_coordinates(d, &list, &d->st->ops[0], T_S32);
    finish(d, &list, ptx_sured_handler((sured_op)op, (ptx_type)d->in.type));
}

const opcode ptx_texture_opcodes[] = {
    {"tex", dec_tex, 0},      {"tld4", dec_tld4, 0},    {"txq", dec_query, 0},   {"suq", dec_query, 1},
    {"suld", dec_surface, 0}, {"sust", dec_surface, 1}, {"sured", dec_sured, 0}, {NULL, NULL, 0},
};
