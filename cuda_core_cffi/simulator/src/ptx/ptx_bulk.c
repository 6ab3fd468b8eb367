// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Bulk copies between global and shared memory, of bytes and of boxes of tensors.
#include "ptx/ptx_bulk.h"

#include "ptx/ptx_exec.h"
#include "ptx/ptx_flow.h"
#include "ptx/ptx_mbarrier.h"
#include "ptx/ptx_mem.h"
#include "tensor/tensor_map.h"

enum { BYTES_ALIGNMENT = 16, PIECE = 16, TENSOR_ALIGNMENT = 128, CLUSTER_RANKS = 16, LARGEST_ELEMENT = 8 };
enum { TO_SHARED = 1, IM2COL = 2 }; // in->sub

// Where the operands are in the instruction's list. An address has two: a base, and what is added.
enum { AT_SHARED, AT_BARRIER = 2, AT_OTHER = 4, AT_SIZE = 6, AT_COORDINATES = 6 };

static uint64_t item(const warp *w, const int32_t *list, unsigned at, unsigned lane) { return src(w, list[at])[lane]; }

static uint64_t address_at(const warp *w, const int32_t *list, unsigned at, unsigned lane)
{
    return item(w, list, at, lane) + item(w, list, at + 1, lane);
}

static const int32_t *list_of(const warp *w, const insn *in) { return w->blk->ln->m->lists + in->list; }

// The shared memory address in another block of the cluster, as mapa makes it.
static uint64_t in_block(uint64_t address, unsigned rank)
{
    return (address & ((1u << PTX_RANK_SHIFT) - 1)) | (uint64_t)(rank + 1) << PTX_RANK_SHIFT;
}

// ---- bytes

// in->sub: TO_SHARED, or from there
static step run_bytes(warp *w, const insn *in, uint32_t m)
{
    const int32_t *list = list_of(w, in);
    check_epoch(w->wk);
    FOR_LANES (m) {
        uint64_t shared = address_at(w, list, AT_SHARED, l), other = address_at(w, list, AT_OTHER, l);
        uint32_t size = (uint32_t)item(w, list, AT_SIZE, l);
        if ((shared | other | size) % BYTES_ALIGNMENT)
            return fault(w, in, l, PTX_MISALIGNED_ADDRESS, shared % BYTES_ALIGNMENT ? shared : other,
                         "the addresses and the size, %u, must be multiples of %u", size, BYTES_ALIGNMENT);
        if (!size) continue;
        int to_shared = in->sub & TO_SHARED;
        uint8_t *p = resolve_space(w, in, l, SP_SHARED, shared, size, to_shared);
        uint8_t *q = p ? resolve_space(w, in, l, SP_GLOBAL, other, size, !to_shared) : NULL;
        if (!q) return ST_FAULT;
        memcpy(to_shared ? p : q, to_shared ? q : p, size);
        if (to_shared && mbarrier_complete(w, in, l, address_at(w, list, AT_BARRIER, l), size) == ST_FAULT)
            return ST_FAULT;
    }
    return ST_NEXT;
}

// ---- tensors

// One copy of a lane.
typedef struct box {
    warp *w;
    const insn *in;
    unsigned lane;
    const struct sim_tensor_map *map;
    uint64_t shared;  // where the box is
    uint32_t done;    // bytes of it so far
    uint32_t bytes;   // of an element
} box;

// Swizzled pieces have 16 bytes: the bits of the address above those of the row are added to those of the piece.
static uint64_t swizzled(const struct sim_tensor_map *map, uint64_t address)
{
    static const uint8_t pieces[] = {0, 0x10, 0x30, 0x70};
    return address ^ (address >> 3 & pieces[map->swizzle]);
}

static step move_element(box *b, uint8_t *memory)
{
    static const uint8_t zeros[LARGEST_ELEMENT];
    static const uint8_t nans[][LARGEST_ELEMENT] = {
        [2] = {0xff, 0x7f}, [4] = {0xff, 0xff, 0xff, 0x7f}, [8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}};
    int to_shared = b->in->sub & TO_SHARED;
    uint8_t *p = resolve_space(b->w, b->in, b->lane, SP_SHARED, swizzled(b->map, b->shared + b->done), b->bytes, to_shared);
    if (!p) return ST_FAULT;
    b->done += b->bytes;
    if (!to_shared && memory) memcpy(memory, p, b->bytes);
    else if (to_shared)
        memcpy(p, memory ? memory : b->map->fill ? nans[b->bytes] : zeros, b->bytes);
    return ST_NEXT;
}

// `count` elements from `at` on along the first dimension. What is outside is filled, or left alone.
static step move_row(box *b, const int64_t at[SIM_TENSOR_RANK], unsigned count)
{
    const struct sim_tensor_map *map = b->map;
    int inside = 1;
    uint64_t address = map->address;
    for (unsigned i = 1; i < map->rank; i++) {
        inside &= at[i] >= 0 && at[i] <= (int64_t)map->last[i];
        address += (uint64_t)at[i] * map->strides[i - 1];
    }
    for (unsigned j = 0; j < count; j++) {
        int64_t x = at[0] + j;
        uint8_t *memory = NULL;
        if (inside && x >= 0 && x <= (int64_t)map->last[0]) {
            memory = resolve_space(b->w, b->in, b->lane, SP_GLOBAL, address + (uint64_t)x * b->bytes, b->bytes,
                                   !(b->in->sub & TO_SHARED));
            if (!memory) return ST_FAULT;
        }
        if (move_element(b, memory) == ST_FAULT) return ST_FAULT;
    }
    return ST_NEXT;
}

static step move_tile(box *b, const int32_t at[SIM_TENSOR_RANK])
{
    const struct sim_tensor_map *map = b->map;
    unsigned index[SIM_TENSOR_RANK] = {0};
    for (;;) {
        int64_t where[SIM_TENSOR_RANK] = {at[0]};
        for (unsigned i = 1; i < map->rank; i++) where[i] = (int64_t)at[i] + index[i];
        if (move_row(b, where, map->box[0]) == ST_FAULT) return ST_FAULT;
        unsigned i = 1;
        for (; i < map->rank; i++) {
            index[i] += map->steps[i];
            if (index[i] < map->box[i]) break;
            index[i] = 0;
        }
        if (i == map->rank) return ST_NEXT;
    }
}

// Pixels from a first one on, within the pixel box of each image; `offsets` are added to where they are read.
static step move_pixels(box *b, const int32_t at[SIM_TENSOR_RANK], const uint16_t offsets[SIM_TENSOR_CORNERS])
{
    const struct sim_tensor_map *map = b->map;
    unsigned spatial = map->rank - 2u, images = map->rank - 1u;
    int64_t pixel[SIM_TENSOR_RANK];
    for (unsigned i = 0; i < map->rank; i++) pixel[i] = at[i];
    for (unsigned n = 0; n < map->pixels; n++) {
        int64_t where[SIM_TENSOR_RANK];
        memcpy(where, pixel, sizeof where);
        for (unsigned i = 0; i < spatial; i++) where[i + 1] += offsets[i];
        if (move_row(b, where, map->channels) == ST_FAULT) return ST_FAULT;
        unsigned i = 0;
        for (; i < spatial; i++) {
            pixel[i + 1] += map->steps[i + 1];
            if (pixel[i + 1] <= (int64_t)map->last[i + 1] + map->upper[i]) break;
            pixel[i + 1] = map->lower[i];
        }
        if (i == spatial) pixel[images]++;
    }
    return ST_NEXT;
}

// Hardware reads and writes from multiples of 16 bytes on, and does not write a box that begins before the array.
static step check_start(const box *b, const int32_t at[SIM_TENSOR_RANK])
{
    int64_t bytes = (int64_t)at[0] * b->bytes;
    if (bytes % PIECE)
        return fault(b->w, b->in, b->lane, PTX_ILLEGAL_INSTRUCTION, 0,
                     "the box begins at %lld bytes of the first dimension, which is no multiple of %d", (long long)bytes,
                     PIECE);
    for (unsigned i = 0; i < b->map->rank && !(b->in->sub & TO_SHARED); i++)
        if (at[i] < 0)
            return fault(b->w, b->in, b->lane, PTX_ILLEGAL_INSTRUCTION, 0,
                         "coordinate %u of a store is %d, and must not be negative", i, at[i]);
    return ST_NEXT;
}

static step move_box(box *b, const int32_t *list)
{
    int32_t at[SIM_TENSOR_RANK] = {0};
    uint16_t offsets[SIM_TENSOR_CORNERS] = {0};
    unsigned rank = b->map->rank;
    for (unsigned i = 0; i < rank; i++) at[i] = (int32_t)item(b->w, list, AT_COORDINATES + i, b->lane);
    if (check_start(b, at) == ST_FAULT) return ST_FAULT;
    for (unsigned i = 0; i + 2 < rank && b->in->sub & IM2COL; i++)
        offsets[i] = (uint16_t)item(b->w, list, AT_COORDINATES + rank + i, b->lane);
    return b->in->sub & IM2COL ? move_pixels(b, at, offsets) : move_tile(b, at);
}

// The map of a lane, or NULL after a fault.
static const struct sim_tensor_map *find_map(warp *w, const insn *in, unsigned lane, uint64_t address)
{
    const CUtensorMap *bytes = resolve_space(w, in, lane, SP_GENERIC, address, sizeof *bytes, 0);
    const struct sim_tensor_map *map = bytes ? sim_tensor_map_of(bytes) : NULL;
    const char *why = NULL;
    if (!bytes) return NULL;
    if (!map) why = "the operand is no tensor map";
    else if (map->rank != in->n) why = "the tensor map has another number of dimensions";
    else if ((map->mode == SIM_TENSOR_TILED) == !!(in->sub & IM2COL)) why = "the tensor map is of another mode";
    else if (map->mode > SIM_TENSOR_IM2COL) why = "im2col-wide tensor maps are not simulated";
    else if (map->interleave) why = "tensor maps with interleaved channels are not simulated";
    else if (map->swizzle > CU_TENSOR_MAP_SWIZZLE_128B) why = "swizzles of larger atoms are not simulated";
    if (!why) return map;
    fault(w, in, lane, PTX_ILLEGAL_INSTRUCTION, address, "%s", why);
    return NULL;
}

// in->n: dimensions; in->c: a mask of the blocks of the cluster that get the box
static step run_tensor(warp *w, const insn *in, uint32_t m)
{
    const int32_t *list = list_of(w, in);
    check_epoch(w->wk);
    FOR_LANES (m) {
        uint64_t shared = address_at(w, list, AT_SHARED, l);
        const struct sim_tensor_map *map = find_map(w, in, l, address_at(w, list, AT_OTHER, l));
        if (!map) return ST_FAULT;
        if (shared % TENSOR_ALIGNMENT)
            return fault(w, in, l, PTX_MISALIGNED_ADDRESS, shared, "address 0x%llx is not a multiple of %u",
                         (unsigned long long)shared, TENSOR_ALIGNMENT);
        uint32_t blocks = in->c == NO_OPERAND ? 1 : (uint32_t)src(w, in->c)[l] & 0xffff;
        for (unsigned rank = 0; rank < CLUSTER_RANKS; rank++) {
            if (!(blocks >> rank & 1)) continue;
            int several = in->c != NO_OPERAND;
            box b = {.w = w, .in = in, .lane = l, .map = map, .bytes = sim_tensor_element_bytes(map),
                     .shared = several ? in_block(shared, rank) : shared};
            if (move_box(&b, list) == ST_FAULT) return ST_FAULT;
            uint64_t barrier = address_at(w, list, AT_BARRIER, l);
            if (in->sub & TO_SHARED &&
                mbarrier_complete(w, in, l, several ? in_block(barrier, rank) : barrier, b.done) == ST_FAULT)
                return ST_FAULT;
        }
    }
    return ST_NEXT;
}

// ---- decoding

typedef struct operands {
    int32_t items[AT_COORDINATES + 2 * SIM_TENSOR_RANK];
    unsigned n;
} operands;

static void add_address(decoder *d, operands *list, unsigned at, const operand *o)
{
    if (o->kind != OP_ADDR && o->kind != OP_TEXELS) bad_operand(d, "an address in brackets is expected");
    if (o->type == T_PRED || o->type == T_B128) bad_operand(d, "a register with an address is expected");
    list->items[at] = o->kind == OP_ADDR && o->var ? const_var(d->p, o->var, 0)
                      : o->slot >= 0              ? o->slot
                                                  : const_ref(d->p, 0);
    list->items[at + 1] = const_ref(d->p, o->kind == OP_ADDR ? o->value : 0);
}

static void add_vector(decoder *d, operands *list, const operand *o, unsigned n, ptx_type t)
{
    if (o->kind != OP_VEC || o->n != n) bad_operand(d, "the vector has the wrong number of elements");
    for (unsigned i = 0; i < n; i++) list->items[list->n++] = source_of(d, &o->items[i], t);
}

static void finish(decoder *d, const operands *list, exec_fn run)
{
    d->in.space = SP_SHARED;
    d->in.list = list_add(d->p, list->items, list->n);
    d->in.run = run;
}

// The direction: 1 into shared memory, 0 out of it, -1 neither. Copies into it are told to a barrier, others to a group.
static int take_direction(decoder *d)
{
    int out = take(d, M_bulk_group);
    int shared = take(d, M_shared_cluster) || take(d, M_shared_cta) || take(d, M_shared);
    return shared && take(d, M_global) && (out || take(d, M_mbarrier_bytes)) ? !out : -1;
}

static void decode_bytes(decoder *d)
{
    int to_shared = take_direction(d);
    if (to_shared < 0) return;
    int hint = take(d, M_l2_hint);
    need(d, 3u + (unsigned)to_shared + (unsigned)hint, 3u + (unsigned)to_shared + (unsigned)hint);
    operands list = {.n = AT_SIZE + 1};
    const operand *ops = d->st->ops;
    add_address(d, &list, AT_SHARED, &ops[!to_shared]);
    add_address(d, &list, AT_OTHER, &ops[to_shared]);
    list.items[AT_SIZE] = source(d, 2, T_U32);
    list.items[AT_BARRIER] = list.items[AT_BARRIER + 1] = const_ref(d->p, 0);
    if (to_shared) add_address(d, &list, AT_BARRIER, &ops[3]);
    d->in.sub = (uint8_t)(to_shared ? TO_SHARED : 0);
    finish(d, &list, run_bytes);
}

static void decode_tensor(decoder *d)
{
    static const ptx_mod ranks[SIM_TENSOR_RANK] = {M_geom_1d, M_geom_2d, M_geom_3d, M_geom_4d, M_geom_5d};
    unsigned rank = 0;
    for (unsigned i = 0; i < SIM_TENSOR_RANK && !rank; i++)
        if (take(d, ranks[i])) rank = i + 1;
    int to_shared = take_direction(d);
    if (!rank || to_shared < 0) return;
    int im2col = !take(d, M_tile) && (take(d, M_im2col) || take(d, M_im2col_no_offs));
    int several = to_shared && take(d, M_multicast), hint = take(d, M_l2_hint);
    unsigned offsets = to_shared && im2col && rank > 2;
    unsigned count = 2u + (unsigned)to_shared + offsets + (unsigned)several + (unsigned)hint;
    need(d, count, count);
    operands list = {.n = AT_COORDINATES};
    const operand *ops = d->st->ops, *map = &ops[to_shared];
    if (map->kind != OP_TEXELS) bad_operand(d, "a tensor map and coordinates in brackets are expected");
    add_address(d, &list, AT_SHARED, &ops[!to_shared]);
    add_address(d, &list, AT_OTHER, map);
    list.items[AT_BARRIER] = list.items[AT_BARRIER + 1] = const_ref(d->p, 0);
    if (to_shared) add_address(d, &list, AT_BARRIER, &ops[2]);
    add_vector(d, &list, map->items, rank, T_S32);
    if (offsets) add_vector(d, &list, &ops[3], rank - 2, T_U16);
    if (im2col && !offsets)
        for (unsigned i = 0; i + 2 < rank; i++) list.items[list.n++] = const_ref(d->p, 0);
    if (several) d->in.c = source(d, 3 + offsets, T_U16);
    d->in.n = (uint8_t)rank;
    d->in.sub = (uint8_t)((to_shared ? TO_SHARED : 0) | (im2col ? IM2COL : 0));
    finish(d, &list, run_tensor);
}

void decode_bulk(decoder *d)
{
    if (take(d, M_commit_group) || take(d, M_wait_group)) {
        take(d, M_read);
        d->in.run = ptx_run_nop;
    } else if (take(d, M_prefetch)) {
        for (unsigned i = 0; i < d->st->mod_count; i++) d->st->used[i] = 1;
        d->in.run = ptx_run_nop;
    } else if (take(d, M_tensor)) {
        decode_tensor(d);
    } else {
        decode_bytes(d);
    }
}
