// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Bulk copies and reductions between global and shared memory, of bytes and of boxes of tensors.
#include "ptx/ptx_bulk.h"

#include "ptx/ptx_exec.h"
#include "ptx/ptx_float.h"
#include "ptx/ptx_flow.h"
#include "ptx/ptx_mbarrier.h"
#include "ptx/ptx_mem.h"
#include "tensor/tensor_map.h"

enum { BYTES_ALIGNMENT = 16, PIECE = 16, TENSOR_ALIGNMENT = 128, CLUSTER_RANKS = 16, LARGEST_ELEMENT = 8 };
enum { TF32_BITS = ~0x1fff };                         // of a float: the rest of the mantissa is 0
enum { TO_SHARED = 1, IM2COL = 2, FROM_SHARED = 4 };  // in->sub; both: from block to block

// Where the operands are in the instruction's list. An address has two: a base, and what is added.
enum { AT_TARGET, AT_SOURCE = 2, AT_BARRIER = 4, AT_SIZE = 6, AT_COORDINATES = 6 };

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

// in->dtype: 0 for copies, or one more than the operation
static void set_operation(insn *in, int op) { in->dtype = (uint8_t)(op + 1); }

static atom_op operation(const insn *in) { return (atom_op)(in->dtype - 1); }

// ---- bytes

static void move_bytes(const insn *in, uint8_t *to, const uint8_t *from, uint32_t size)
{
    if (!in->dtype) {
        memmove(to, from, size);
        return;
    }
    unsigned bytes = ptx_element_bytes((ptx_type)in->type);
    for (uint32_t i = 0; i < size; i += bytes)
        ptx_reduce((ptx_type)in->type, operation(in), to + i, from + i, 0);
}

// Hardware reduces in shared memory only at an address that mapa made.
static int reduces_own_memory(const insn *in, uint64_t to)
{
    return in->dtype && in->sub & TO_SHARED && !((uint32_t)to >> PTX_RANK_SHIFT);
}

// in->sub: the direction
static step run_bytes(warp *w, const insn *in, uint32_t m)
{
    const int32_t *list = list_of(w, in);
    check_epoch(w->wk);
    FOR_LANES (m) {
        uint64_t to = address_at(w, list, AT_TARGET, l), from = address_at(w, list, AT_SOURCE, l);
        uint32_t size = (uint32_t)item(w, list, AT_SIZE, l);
        if ((to | from | size) % BYTES_ALIGNMENT)
            return fault(w, in, l, PTX_MISALIGNED_ADDRESS, to % BYTES_ALIGNMENT ? to : from,
                         "the addresses and the size, %u, must be multiples of %u", size, BYTES_ALIGNMENT);
        if (!size)
            continue;
        if (reduces_own_memory(in, to))
            return fault(w, in, l, PTX_ILLEGAL_INSTRUCTION, to,
                         "a reduction in shared memory takes an address of mapa");
        uint8_t *p = resolve_space(w, in, l, in->sub & TO_SHARED ? SP_SHARED : SP_GLOBAL, to, size, 1);
        uint8_t *q = p ? resolve_space(w, in, l, in->sub & FROM_SHARED ? SP_SHARED : SP_GLOBAL, from, size, 0) : NULL;
        if (!q)
            return ST_FAULT;
        move_bytes(in, p, q, size);
        if (in->sub & TO_SHARED && mbarrier_complete(w, in, l, address_at(w, list, AT_BARRIER, l), size) == ST_FAULT)
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
    uint32_t row;     // bytes before the row that is copied
    uint32_t done;    // bytes that were copied so far
    uint32_t bytes;   // of an element
    uint32_t cell;    // bytes of one place along the first dimension: an element, or a slice of channels
} box;

// Interleaved channels lie in slices of 16 or 32 bytes. The dimensions are then the width, the height and the depth,
// the slices, and the images. A box or a column has one slice, whatever its extent or number of channels says.
static unsigned slice_axis(const struct sim_tensor_map *map)
{
    return map->interleave ? map->rank - 2u : SIM_TENSOR_RANK;
}

static uint32_t cell_bytes(const struct sim_tensor_map *map, uint32_t element)
{
    return map->interleave ? (uint32_t)PIECE * map->interleave : element;
}

// Swizzled pieces have 16 bytes: the bits of the address above those of the row are added to those of the piece.
static uint64_t swizzled(const struct sim_tensor_map *map, uint64_t address)
{
    static const uint8_t pieces[] = {0, 0x10, 0x30, 0x70};
    return address ^ (address >> 3 & pieces[map->swizzle]);
}

// What elements of a map are for a reduction. Bits have no type of their own.
static ptx_type reduced_type(unsigned type, atom_op op)
{
    static const uint8_t types[] = {
        [CU_TENSOR_MAP_DATA_TYPE_UINT8] = T_U8,         [CU_TENSOR_MAP_DATA_TYPE_UINT16] = T_U16,
        [CU_TENSOR_MAP_DATA_TYPE_UINT32] = T_U32,       [CU_TENSOR_MAP_DATA_TYPE_INT32] = T_S32,
        [CU_TENSOR_MAP_DATA_TYPE_UINT64] = T_U64,       [CU_TENSOR_MAP_DATA_TYPE_INT64] = T_S64,
        [CU_TENSOR_MAP_DATA_TYPE_FLOAT16] = T_F16,      [CU_TENSOR_MAP_DATA_TYPE_FLOAT32] = T_F32,
        [CU_TENSOR_MAP_DATA_TYPE_FLOAT64] = T_F64,      [CU_TENSOR_MAP_DATA_TYPE_BFLOAT16] = T_BF16,
        [CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ] = T_F32,  [CU_TENSOR_MAP_DATA_TYPE_TFLOAT32] = T_F32,
        [CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ] = T_F32,
    };
    ptx_type t = (ptx_type)types[type];
    if (op != ATOM_AND && op != ATOM_OR && op != ATOM_XOR)
        return t;
    return t == T_U32 || t == T_S32 ? T_B32 : t == T_U64 || t == T_S64 ? T_B64 : t;
}

static int reduction_exists(unsigned type, atom_op op)
{
    if (type == CU_TENSOR_MAP_DATA_TYPE_INT64 && op != ATOM_MIN && op != ATOM_MAX)
        return 0;  // UINT64 has them
    return ptx_atom_exists(reduced_type(type, op), op);
}

static void put_element(const box *b, uint8_t *memory, const uint8_t *element)
{
    if (!b->in->dtype) {
        memcpy(memory, element, b->bytes);
        return;
    }
    unsigned type = b->map->type;
    int flush = type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ || type == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
    ptx_reduce(reduced_type(type, operation(b->in)), operation(b->in), memory, element, flush);
}

// Rows that are shorter than the span of the swizzle begin a span all the same; rows of slices do not.
static uint32_t row_pitch(const box *b, unsigned count)
{
    static const uint8_t spans[] = {0, 32, 64, 128};
    uint32_t bytes = count * b->cell, span = b->map->interleave ? 0 : spans[b->map->swizzle];
    return bytes < span ? span : bytes;
}

static int is_tf32(const struct sim_tensor_map *map)
{
    return map->type == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 || map->type == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
}

// What a load leaves of an element, or where there is none. Hardware has one NaN of 16 bits, and repeats it in wider
// types.
static void get_element(const box *b, uint8_t *element, const uint8_t *memory)
{
    static const uint8_t zeros[LARGEST_ELEMENT];
    static const uint8_t nans[LARGEST_ELEMENT] = {0xf7, 0x7f, 0xf7, 0x7f, 0xf7, 0x7f, 0xf7, 0x7f};
    memcpy(element, memory ? memory : b->map->fill ? nans : zeros, b->bytes);
    if (memory && is_tf32(b->map)) {
        float value;
        memcpy(&value, element, sizeof value);
        uint32_t rounded = ptx_tf32_from_float(value, R_RN) & TF32_BITS;
        memcpy(element, &rounded, sizeof rounded);
    }
}

static step move_element(box *b, uint32_t offset, uint8_t *memory)
{
    int to_shared = b->in->sub & TO_SHARED;
    uint64_t at = swizzled(b->map, b->shared + b->row + offset);
    uint8_t *p = resolve_space(b->w, b->in, b->lane, SP_SHARED, at, b->bytes, to_shared);
    if (!p)
        return ST_FAULT;
    b->done += b->bytes;
    if (to_shared)
        get_element(b, p, memory);
    else if (memory)
        put_element(b, memory, p);
    return ST_NEXT;
}

// An H100 stores whole pieces to an array of one dimension, with what of the last one is behind the array. Allocations
// end with a piece there; here, what is behind one is left alone. Arrays of more dimensions are as PTX has them.
static uint8_t *rest_of_piece(const box *b, int64_t x)
{
    const struct sim_tensor_map *map = b->map;
    uint64_t at = (uint64_t)x * b->bytes, end = (map->last[0] + 1ull) * b->bytes;
    if (map->rank > 1 || b->in->sub & TO_SHARED || b->in->dtype || x < 0)
        return NULL;
    if (at >= (end + PIECE - 1) / PIECE * PIECE)
        return NULL;
    return ptx_find_writable(b->w, map->address + at, b->bytes);
}

// `count` places from `at` on along the first dimension. What is outside is filled, or left alone.
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
        int64_t x = at[0] + (int64_t)j * map->steps[0];
        uint8_t *memory = NULL;
        if (inside && x >= 0 && x <= (int64_t)map->last[0]) {
            memory = resolve_space(b->w, b->in, b->lane, SP_GLOBAL, address + (uint64_t)x * b->cell, b->cell,
                                   !(b->in->sub & TO_SHARED));
            if (!memory)
                return ST_FAULT;
        } else {
            memory = rest_of_piece(b, x);
        }
        for (uint32_t k = 0; k < b->cell; k += b->bytes)
            if (move_element(b, j * b->cell + k, memory ? memory + k : NULL) == ST_FAULT)
                return ST_FAULT;
    }
    b->row += row_pitch(b, count);
    return ST_NEXT;
}

static step move_tile(box *b, const int32_t at[SIM_TENSOR_RANK])
{
    const struct sim_tensor_map *map = b->map;
    unsigned index[SIM_TENSOR_RANK] = {0}, count = (map->box[0] + map->steps[0] - 1u) / map->steps[0];
    for (;;) {
        int64_t where[SIM_TENSOR_RANK] = {at[0]};
        for (unsigned i = 1; i < map->rank; i++)
            where[i] = (int64_t)at[i] + index[i];
        if (move_row(b, where, count) == ST_FAULT)
            return ST_FAULT;
        unsigned i = 1;
        for (; i < map->rank; i++) {
            if (i == slice_axis(map))
                continue;
            index[i] += map->steps[i];
            if (index[i] < map->box[i])
                break;
            index[i] = 0;
        }
        if (i == map->rank)
            return ST_NEXT;
    }
}

// Pixels from a first one on, within the pixel box of each image; `offsets` are added to where they are read.
static step move_pixels(box *b, const int32_t at[SIM_TENSOR_RANK], const uint16_t offsets[SIM_TENSOR_CORNERS])
{
    const struct sim_tensor_map *map = b->map;
    unsigned spatial = map->rank - 2u, images = map->rank - 1u, first = !map->interleave;
    int64_t pixel[SIM_TENSOR_RANK];
    for (unsigned i = 0; i < map->rank; i++)
        pixel[i] = at[i];
    for (unsigned n = 0; n < map->pixels; n++) {
        int64_t where[SIM_TENSOR_RANK];
        memcpy(where, pixel, sizeof where);
        for (unsigned i = 0; i < spatial; i++)
            where[i + first] += offsets[i];
        if (move_row(b, where, map->interleave ? 1 : map->channels) == ST_FAULT)
            return ST_FAULT;
        unsigned i = 0;
        for (; i < spatial; i++) {
            pixel[i + first] += map->steps[i + first];
            if (pixel[i + first] <= (int64_t)map->last[i + first] + map->upper[i])
                break;
            pixel[i + first] = map->lower[i];
        }
        if (i == spatial)
            pixel[images]++;
    }
    return ST_NEXT;
}

// Hardware reads and writes from multiples of 16 bytes on, and does not write a box that begins before the array.
static step check_start(const box *b, const int32_t at[SIM_TENSOR_RANK])
{
    int64_t bytes = (int64_t)at[0] * b->cell;
    if (bytes % PIECE)
        return fault(b->w, b->in, b->lane, PTX_ILLEGAL_INSTRUCTION, 0,
                     "the box begins at %lld bytes of the first dimension, which is no multiple of %d",
                     (long long)bytes, PIECE);
    for (unsigned i = 0; i < b->map->rank && !(b->in->sub & TO_SHARED); i++)
        if (at[i] < 0)
            return fault(b->w, b->in, b->lane, PTX_ILLEGAL_INSTRUCTION, 0,
                         "coordinate %u of a store is %d, and must not be negative", i, at[i]);
    return ST_NEXT;
}

// The first pixel must be one of the pixel box.
static step check_pixel(const box *b, const int32_t at[SIM_TENSOR_RANK])
{
    const struct sim_tensor_map *map = b->map;
    for (unsigned i = 0; i < map->rank - 2u; i++) {
        unsigned j = i + !map->interleave;
        int64_t least = map->lower[i], most = (int64_t)map->last[j] + map->upper[i];
        if (at[j] < least || at[j] > most)
            return fault(b->w, b->in, b->lane, PTX_ILLEGAL_INSTRUCTION, 0,
                         "coordinate %u of the first pixel is %d, but the pixel box goes from %lld to %lld", j, at[j],
                         (long long)least, (long long)most);
    }
    return ST_NEXT;
}

static step move_box(box *b, const int32_t *list)
{
    int32_t at[SIM_TENSOR_RANK] = {0};
    uint16_t offsets[SIM_TENSOR_CORNERS] = {0};
    unsigned rank = b->map->rank;
    for (unsigned i = 0; i < rank; i++)
        at[i] = (int32_t)item(b->w, list, AT_COORDINATES + i, b->lane);
    if (check_start(b, at) == ST_FAULT)
        return ST_FAULT;
    if (b->in->sub & IM2COL && check_pixel(b, at) == ST_FAULT)
        return ST_FAULT;
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
    if (!bytes)
        return NULL;
    if (!map)
        why = "the operand is no tensor map";
    else if (map->rank != in->n)
        why = "the tensor map has another number of dimensions";
    else if ((map->mode == SIM_TENSOR_TILED) == !!(in->sub & IM2COL))
        why = "the tensor map is of another mode";
    else if (map->mode > SIM_TENSOR_IM2COL)
        why = "im2col-wide tensor maps are not simulated";
    else if (map->interleave && (in->dtype || (in->sub & (IM2COL | FROM_SHARED)) == (IM2COL | FROM_SHARED)))
        why = "reductions, and stores of pixels, of interleaved channels are not simulated";
    else if (map->swizzle > CU_TENSOR_MAP_SWIZZLE_128B)
        why = "swizzles of larger atoms are not simulated";
    else if (in->dtype && !reduction_exists(map->type, operation(in)))
        why = "the type of the tensor map has no such reduction";
    if (!why)
        return map;
    fault(w, in, lane, PTX_ILLEGAL_INSTRUCTION, address, "%s", why);
    return NULL;
}

// in->n: dimensions; in->c: a mask of the blocks of the cluster that get the box
static step run_tensor(warp *w, const insn *in, uint32_t m)
{
    const int32_t *list = list_of(w, in);
    check_epoch(w->wk);
    FOR_LANES (m) {
        int to_shared = in->sub & TO_SHARED;
        uint64_t shared = address_at(w, list, to_shared ? AT_TARGET : AT_SOURCE, l);
        const struct sim_tensor_map *map =
            find_map(w, in, l, address_at(w, list, to_shared ? AT_SOURCE : AT_TARGET, l));
        if (!map)
            return ST_FAULT;
        if (shared % TENSOR_ALIGNMENT)
            return fault(w, in, l, PTX_MISALIGNED_ADDRESS, shared, "address 0x%llx is not a multiple of %u",
                         (unsigned long long)shared, TENSOR_ALIGNMENT);
        uint32_t blocks = in->c == NO_OPERAND ? 1 : (uint32_t)src(w, in->c)[l] & 0xffff;
        for (unsigned rank = 0; rank < CLUSTER_RANKS; rank++) {
            if (!(blocks >> rank & 1))
                continue;
            int several = in->c != NO_OPERAND;
            unsigned bytes = sim_tensor_element_bytes(map);
            box b = {.w = w,
                     .in = in,
                     .lane = l,
                     .map = map,
                     .bytes = bytes,
                     .cell = cell_bytes(map, bytes),
                     .shared = several ? in_block(shared, rank) : shared};
            if (move_box(&b, list) == ST_FAULT)
                return ST_FAULT;
            uint64_t barrier = address_at(w, list, AT_BARRIER, l);
            if (to_shared &&
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
    if (o->kind != OP_ADDR && o->kind != OP_TEXELS)
        bad_operand(d, "an address in brackets is expected");
    if (o->type == T_PRED || o->type == T_B128)
        bad_operand(d, "a register with an address is expected");
    list->items[at] = o->kind == OP_ADDR && o->var ? const_var(d->p, o->var, 0)
                      : o->slot >= 0               ? o->slot
                                                   : const_ref(d->p, 0);
    list->items[at + 1] = const_ref(d->p, o->kind == OP_ADDR ? o->value : 0);
}

static void add_vector(decoder *d, operands *list, const operand *o, unsigned n, ptx_type t)
{
    if (o->kind != OP_VEC || o->n != n)
        bad_operand(d, "the vector has the wrong number of elements");
    for (unsigned i = 0; i < n; i++)
        list->items[list->n++] = source_of(d, &o->items[i], t);
}

static void finish(decoder *d, const operands *list, exec_fn run)
{
    d->in.space = SP_SHARED;
    d->in.list = list_add(d->p, list->items, list->n);
    d->in.run = run;
}

// The direction, or 0. Copies into shared memory are told to a barrier, others to a group.
static int take_direction(decoder *d)
{
    int group = take(d, M_bulk_group), barrier = take(d, M_mbarrier_bytes), global = take(d, M_global);
    int cluster = take(d, M_shared_cluster), shared = take(d, M_shared_cta) + take(d, M_shared);
    if (group == barrier || global + cluster + shared != 2)
        return 0;
    if (group)
        return global ? FROM_SHARED : 0;
    return global ? TO_SHARED : TO_SHARED | FROM_SHARED;
}

// After the direction: what is done with the bytes. 0 if there is no such instruction.
static int take_reduction(decoder *d, int reduces, int tensor)
{
    if (!reduces)
        return 1;
    int op = take_atom_op(d), noftz = take(d, M_noftz);
    if (op < 0 || op >= ATOM_EXCH)
        return 0;
    set_operation(&d->in, op);
    if (tensor)
        return 1;
    ptx_type type = take_type(d);
    d->in.type = (uint8_t)type;
    int small = op == ATOM_ADD && (type == T_F16 || type == T_BF16);
    return type != T_NONE && noftz == small && ptx_atom_exists(type, (atom_op)op) && (type != T_S64 || op != ATOM_ADD);
}

static void decode_bytes(decoder *d, int reduces)
{
    int direction = take_direction(d);
    int hint = take(d, M_l2_hint);
    if (!direction || !take_reduction(d, reduces, 0) || (reduces && direction == TO_SHARED))
        return;
    int to_shared = direction & TO_SHARED;
    need(d, 3u + (unsigned)to_shared + (unsigned)hint, 3u + (unsigned)to_shared + (unsigned)hint);
    operands list = {.n = AT_SIZE + 1};
    const operand *ops = d->st->ops;
    add_address(d, &list, AT_TARGET, &ops[0]);
    add_address(d, &list, AT_SOURCE, &ops[1]);
    list.items[AT_SIZE] = source(d, 2, T_U32);
    list.items[AT_BARRIER] = list.items[AT_BARRIER + 1] = const_ref(d->p, 0);
    if (to_shared)
        add_address(d, &list, AT_BARRIER, &ops[3]);
    d->in.sub = (uint8_t)direction;
    finish(d, &list, run_bytes);
}

static void decode_tensor(decoder *d, int reduces)
{
    static const ptx_mod ranks[SIM_TENSOR_RANK] = {M_geom_1d, M_geom_2d, M_geom_3d, M_geom_4d, M_geom_5d};
    unsigned rank = 0;
    for (unsigned i = 0; i < SIM_TENSOR_RANK && !rank; i++)
        if (take(d, ranks[i]))
            rank = i + 1;
    int direction = take_direction(d), to_shared = direction & TO_SHARED;
    if (!rank || !direction || direction == (TO_SHARED | FROM_SHARED) || (reduces && to_shared))
        return;
    if (!take_reduction(d, reduces, 1))
        return;
    int im2col = !take(d, M_tile) && (take(d, M_im2col) || take(d, M_im2col_no_offs));
    int several = to_shared && take(d, M_multicast), hint = take(d, M_l2_hint);
    unsigned offsets = to_shared && im2col && rank > 2;
    unsigned count = 2u + (unsigned)to_shared + offsets + (unsigned)several + (unsigned)hint;
    need(d, count, count);
    operands list = {.n = AT_COORDINATES};
    const operand *ops = d->st->ops, *map = &ops[to_shared];
    if (map->kind != OP_TEXELS)
        bad_operand(d, "a tensor map and coordinates in brackets are expected");
    add_address(d, &list, AT_TARGET, &ops[0]);
    add_address(d, &list, AT_SOURCE, &ops[1]);
    list.items[AT_BARRIER] = list.items[AT_BARRIER + 1] = const_ref(d->p, 0);
    if (to_shared)
        add_address(d, &list, AT_BARRIER, &ops[2]);
    add_vector(d, &list, map->items, rank, T_S32);
    if (offsets)
        add_vector(d, &list, &ops[3], rank - 2, T_U16);
    if (im2col && !offsets)
        for (unsigned i = 0; i + 2 < rank; i++)
            list.items[list.n++] = const_ref(d->p, 0);
    if (several)
        d->in.c = source(d, 3 + offsets, T_U16);
    d->in.n = (uint8_t)rank;
    d->in.sub = (uint8_t)(direction | (im2col ? IM2COL : 0));
    finish(d, &list, run_tensor);
}

void decode_bulk(decoder *d, int reduces)
{
    if (!reduces && (take(d, M_commit_group) || take(d, M_wait_group))) {
        take(d, M_read);
        d->in.run = ptx_run_nop;
    } else if (!reduces && take(d, M_prefetch)) {
        for (unsigned i = 0; i < d->st->mod_count; i++)
            d->st->used[i] = 1;
        d->in.run = ptx_run_nop;
    } else if (take(d, M_tensor)) {
        decode_tensor(d, reduces);
    } else {
        decode_bytes(d, reduces);
    }
}
