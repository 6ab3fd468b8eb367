// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Variables: declarations, parameters, initialisers, and where they lie.
#include <stdlib.h>
#include <string.h>

#include "ptx/ptx_parse.h"

#define MAX_VARIABLE ((uint64_t)1 << 40)
#define MAX_INITIALISERS (1u << 24)
#define GLOBAL_ALIGN 256
#define DYNAMIC_ALIGN 128

static const struct {
    const char *name;
    ptx_type type;
} type_names[] = {
    {"b8", T_B8},     {"b16", T_B16},       {"b32", T_B32}, {"b64", T_B64}, {"b128", T_B128},
    {"u8", T_U8},     {"u16", T_U16},       {"u32", T_U32}, {"u64", T_U64}, {"s8", T_S8},
    {"s16", T_S16},   {"s32", T_S32},       {"s64", T_S64}, {"f16", T_F16}, {"f16x2", T_F16X2},
    {"bf16", T_BF16}, {"bf16x2", T_BF16X2}, {"f32", T_F32}, {"f64", T_F64}, {"pred", T_PRED},
};

int type_of_token(const lexer *lx, ptx_type *type)
{
    for (size_t i = 0; i < sizeof type_names / sizeof *type_names; i++)
        if (lex_dot(lx, type_names[i].name)) {
            *type = type_names[i].type;
            return 1;
        }
    return 0;
}

unsigned type_size(ptx_type type)
{
    static const uint8_t sizes[T_COUNT] = {
        [T_B8] = 1,    [T_B16] = 2,    [T_B32] = 4,    [T_B64] = 8,   [T_B128] = 16, [T_U8] = 1,    [T_U16] = 2,
        [T_U32] = 4,   [T_U64] = 8,    [T_S8] = 1,     [T_S16] = 2,   [T_S32] = 4,   [T_S64] = 8,   [T_F16] = 2,
        [T_F16X2] = 4, [T_BF16] = 2,   [T_BF16X2] = 4, [T_F32] = 4,   [T_F64] = 8,   [T_F32X2] = 8, [T_PRED] = 1,
        [T_TF32] = 4,  [T_E4M3X2] = 2, [T_E5M2X2] = 2, [T_U16X2] = 4, [T_S16X2] = 4,
    };
    return sizes[type];
}

int space_of_token(const lexer *lx, ptx_space *space)
{
    static const struct {
        const char *name;
        ptx_space space;
    } names[] = {{"global", SP_GLOBAL}, {"shared", SP_SHARED}, {"local", SP_LOCAL},
                 {"const", SP_CONST},   {"param", SP_PARAM},   {"reg", SP_REG}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (lex_dot(lx, names[i].name)) {
            *space = names[i].space;
            return 1;
        }
    return 0;
}

static uint64_t align_up(uint64_t v, uint64_t a) { return (v + a - 1) & ~(a - 1); }

static uint32_t parse_align(lexer *lx)
{
    if (lx->t.kind != TK_INT || !lx->t.value || lx->t.value > 4096 || (lx->t.value & (lx->t.value - 1)))
        lex_fail(lx, PTX_INVALID_PTX, "an alignment is a power of two");
    uint32_t a = (uint32_t)lx->t.value;
    lex_next(lx);
    return a;
}

// What stands between the state space and the name: alignment, attributes, vector, type, in any order.
static ptx_type parse_type(parser *p, uint32_t *align, unsigned *vector, uint8_t *managed, uint8_t *ptr)
{
    lexer *lx = &p->lx;
    ptx_type type = T_NONE, ignored_type;
    ptx_space ignored;
    *align = 0;
    *vector = 1;
    while (lx->t.kind == TK_DOT) {
        if (lex_dot(lx, "align")) {
            lex_next(lx);
            uint32_t a = parse_align(lx);
            if (!*ptr)
                *align = a;  // after .ptr it is that of the memory pointed to
        } else if (lex_dot(lx, "ptr")) {
            *ptr = 1;
            lex_next(lx);
        } else if (lex_dot(lx, "v2") || lex_dot(lx, "v4")) {
            *vector = lx->t.s[2] == '2' ? 2 : 4;
            lex_next(lx);
        } else if (lex_dot(lx, "attribute")) {
            lex_next(lx);
            lex_expect(lx, '(');
            while (!lex_is(lx, ')')) {
                if (lx->t.kind == TK_EOF)
                    lex_fail(lx, PTX_INVALID_PTX, "')' expected, the text ends");
                if (lex_dot(lx, "managed"))
                    *managed = 1;
                lex_next(lx);
                if (lex_accept(lx, '(')) {
                    while (!lex_is(lx, ')') && lx->t.kind != TK_EOF)
                        lex_next(lx);
                    lex_expect(lx, ')');
                }
            }
            lex_next(lx);
        } else if (type_of_token(lx, &ignored_type)) {
            type = ignored_type;
            lex_next(lx);
        } else if (*ptr && space_of_token(lx, &ignored)) {
            lex_next(lx);
        } else {
            break;
        }
    }
    if (type == T_NONE) {
        if (lx->t.kind == TK_DOT && (lex_dot(lx, "texref") || lex_dot(lx, "surfref") || lex_dot(lx, "samplerref")))
            lex_fail(lx, PTX_INVALID_PTX, "texture, surface and sampler references are not supported");
        lex_fail(lx, PTX_INVALID_PTX, "a type is expected before '%.*s'", (int)(lx->t.len > 40 ? 40 : lx->t.len),
                 lx->t.s);
    }
    return type;
}

static const char *parse_name(parser *p, uint32_t *len)
{
    lexer *lx = &p->lx;
    if (lx->t.kind != TK_NAME)
        lex_fail(lx, PTX_INVALID_PTX, "a name is expected before '%.*s'", (int)(lx->t.len > 40 ? 40 : lx->t.len),
                 lx->t.s);
    const char *s = lx->t.s;
    *len = lx->t.len;
    lex_next(lx);
    return s;
}

// The dimensions after a name. Returns the number of elements; 0 for an open first dimension.
static uint64_t parse_dimensions(parser *p, uint8_t *is_array)
{
    lexer *lx = &p->lx;
    uint64_t count = 1;
    *is_array = 0;
    while (lex_accept(lx, '[')) {
        *is_array = 1;
        uint64_t n = lex_is(lx, ']') ? 0 : lex_expression(lx);
        lex_expect(lx, ']');
        if (n > MAX_VARIABLE || (count && n > MAX_VARIABLE / count))
            lex_fail(lx, PTX_INVALID_PTX, "variable too large");
        count *= n;
    }
    return count;
}

static uint64_t float_bits(lexer *lx, ptx_type type, int negative)
{
    double d;
    float f;
    if (lx->t.float_bytes == 4) {
        memcpy(&f, &lx->t.value, 4);
        d = f;
    } else {
        memcpy(&d, &lx->t.value, 8);
    }
    if (negative)
        d = -d;
    uint64_t bits = 0;
    if (type_size(type) == 8)
        memcpy(&bits, &d, 8);
    else {
        f = (float)d;
        memcpy(&bits, &f, 4);
        if (lx->t.float_bytes == 4 && !negative)
            bits = lx->t.value;  // keeps a NaN's payload
    }
    return bits;
}

static void parse_element(parser *p, ptx_var *v, uint64_t *index, unsigned size, ptx_init ***end)
{
    lexer *lx = &p->lx;
    ptx_init *init = lex_alloc(lx, sizeof *init);
    init->line = lx->t.line;
    init->size = (uint8_t)size;
    init->offset = *index * size;
    lexer saved = *lx;
    int negative = lex_accept(lx, '-');
    if (lx->t.kind == TK_FLOAT) {
        init->value = float_bits(lx, v->type, negative);
        lex_next(lx);
    } else if (lx->t.kind == TK_NAME) {
        int generic = 0;
        uint32_t len;
        const char *s = parse_name(p, &len);
        if (len == 7 && !memcmp(s, "generic", 7) && lex_accept(lx, '(')) {
            generic = 1;
            s = parse_name(p, &len);
            lex_expect(lx, ')');
        }
        init->symbol = lex_intern(lx, s, len);
        init->generic = (uint8_t)generic;
        if (lex_is(lx, '+') || lex_is(lx, '-')) {
            int minus = lex_is(lx, '-');
            lex_next(lx);
            uint64_t off = lex_expression(lx);
            init->value = minus ? 0 - off : off;
        }
    } else {
        *lx = saved;
        uint64_t value = lex_expression(lx);
        if (lex_accept(lx, '(')) {  // 0xFF00(name): one byte of the address
            uint32_t len;
            const char *s = parse_name(p, &len);
            if (lex_accept(lx, '(')) {
                s = parse_name(p, &len);
                lex_expect(lx, ')');
            }
            if (lex_accept(lx, '+'))
                init->value = lex_expression(lx);
            lex_expect(lx, ')');
            init->symbol = lex_intern(lx, s, len);
            init->shift = value ? (uint8_t)__builtin_ctzll(value) : 0;
        } else {
            init->value = value;
        }
    }
    ++*index;
    if (!init->symbol && !init->value)
        return;  // memory starts as zeros
    **end = init;
    *end = &init->next;
}

static uint64_t parse_initialiser(parser *p, ptx_var *v, unsigned size)
{
    lexer *lx = &p->lx;
    ptx_init **end = &v->init;
    uint64_t index = 0;
    unsigned depth = 0;
    do {
        if (lex_accept(lx, '{')) {
            depth++;
        } else if (lex_accept(lx, '}')) {
            if (!depth)
                lex_fail(lx, PTX_INVALID_PTX, "'}' without '{'");
            depth--;
            if (depth)
                lex_accept(lx, ',');
        } else {
            if (index >= MAX_INITIALISERS)
                lex_fail(lx, PTX_INVALID_PTX, "initialiser too long");
            parse_element(p, v, &index, size, &end);
            if (depth && !lex_is(lx, '}'))
                lex_expect(lx, ',');
        }
    } while (depth);
    return index;
}

static void add_module_var(parser *p, ptx_var *v)
{
    *p->vars_end = v;
    p->vars_end = &v->next;
}

static ptx_var *declare(parser *p, const char *name, uint32_t len, ptx_space space, linkage link)
{
    int is_local = p->depth == 0 && link == LINK_LOCAL;
    symbol *old = p->depth ? sym_find(p, name, len) : sym_own(p, name, len, is_local);
    // A declaration of something extern may be repeated, and its definition may follow.
    if (old && old->scope == p->depth) {
        if (old->kind != SYM_VAR || old->var->space != space || (old->var->defined && p->depth))
            lex_fail(&p->lx, PTX_INVALID_PTX, "'%.*s' is declared twice", (int)(len > 80 ? 80 : len), name);
        old->local &= (uint8_t)is_local;
        return old->var;
    }
    ptx_var *v = lex_alloc(&p->lx, sizeof *v);
    v->name = lex_intern(&p->lx, name, len);
    v->space = (uint8_t)space;
    v->slot = -1;
    v->line = p->lx.t.line;
    symbol *s = sym_add(p, name, len, SYM_VAR);
    s->var = v;
    s->local = (uint8_t)is_local;
    return v;
}

// As define_again of functions.
static ptx_var *define_again(parser *p, ptx_var *v, linkage link)
{
    if (v->unit == p->unit || !(v->weak || link == LINK_WEAK))
        return NULL;
    if (link != LINK_WEAK) {
        v->init = NULL;
        return v;
    }
    ptx_var *unused = lex_alloc(&p->lx, sizeof *unused);
    unused->name = v->name;
    unused->defined = 1;
    return unused;
}

// Current token: the one after the state space. Also .param inside a body.
void parse_variable(parser *p, ptx_space space, linkage link)
{
    int is_extern = link == LINK_EXTERN;
    lexer *lx = &p->lx;
    uint32_t align;
    unsigned vector;
    uint8_t managed = 0, ptr = 0;
    ptx_type type = parse_type(p, &align, &vector, &managed, &ptr);
    if (type == T_PRED)
        lex_fail(lx, PTX_INVALID_PTX, "a predicate lives in a register only");
    unsigned size = type_size(type) * vector;
    do {
        uint32_t len;
        const char *name = parse_name(p, &len);
        ptx_var *v = declare(p, name, len, space, link);
        int fresh = v->size == 0 && !v->defined && !v->is_extern;
        if (v->defined && !is_extern) {
            ptx_var *other = define_again(p, v, link);
            if (!other)
                lex_fail(lx, PTX_INVALID_PTX, "'%s' is defined twice", v->name);
            v = other;
        }
        uint8_t is_array;
        uint64_t count = parse_dimensions(p, &is_array);
        if (count > MAX_VARIABLE / size)
            lex_fail(lx, PTX_INVALID_PTX, "variable '%s' is too large", v->name);
        if (!v->defined || !is_extern) {  // else all that counts is known
            v->is_array = is_array;
            v->type = (uint8_t)type;
            v->managed |= managed;
            v->align = align ? align : size;
            v->size = count * size;
        }
        if (lex_accept(lx, '=')) {
            if (space != SP_GLOBAL && space != SP_CONST)
                lex_fail(lx, PTX_INVALID_PTX, "only .global and .const variables are initialised");
            uint64_t n = parse_initialiser(p, v, type_size(type));
            if (!v->size)
                v->size = n * type_size(type);
            if (n * type_size(type) > v->size)
                lex_fail(lx, PTX_INVALID_PTX, "too many values for '%s'", v->name);
        }
        if (!is_extern) {
            v->defined = 1;
            v->weak = link == LINK_WEAK;
            v->unit = p->unit;
        }
        v->is_extern = (uint8_t)(is_extern && !v->defined);
        if (space == SP_LOCAL || space == SP_PARAM) {
            if (p->depth == 0)
                lex_fail(lx, PTX_INVALID_PTX, "'%s': this state space needs a function around it", v->name);
            v->address = frame_place(p, v->size, v->align);
        } else if (fresh) {
            v->owner = p->depth ? p->fn : NULL;
            add_module_var(p, v);
        }
    } while (lex_accept(lx, ','));
    lex_expect(lx, ';');
}

// Reserve bytes in the frame of the current function; what a scope took is free again after its end.
uint32_t frame_place(parser *p, uint64_t size, uint32_t align)
{
    uint64_t at = align_up(p->frame_now, align ? align : 1);
    if (size > (1u << 20) || at + size > (1u << 20))
        lex_fail(&p->lx, PTX_INVALID_PTX, "too much local memory");
    p->frame_now = (uint32_t)(at + size);
    if (p->frame_now > p->fn->frame)
        p->fn->frame = p->frame_now;
    return (uint32_t)at;
}

// One parameter of an .entry or .func; the current token is .param or .reg.
ptx_var *parse_param(parser *p, int in_body)
{
    lexer *lx = &p->lx;
    ptx_space space;
    if (!space_of_token(lx, &space) || (space != SP_PARAM && space != SP_REG))
        lex_fail(lx, PTX_INVALID_PTX, ".param or .reg expected");
    lex_next(lx);
    uint32_t align, len;
    unsigned vector;
    uint8_t managed = 0, ptr = 0;
    ptx_type type = parse_type(p, &align, &vector, &managed, &ptr);
    const char *name = parse_name(p, &len);
    ptx_var *v = lex_alloc(lx, sizeof *v);
    v->name = lex_intern(lx, name, len);
    v->space = (uint8_t)space;
    v->slot = -1;
    v->is_ptr = ptr;
    unsigned size = type_size(type) * vector;
    uint64_t count = parse_dimensions(p, &v->is_array);
    if (count > (1u << 16))
        lex_fail(lx, PTX_INVALID_PTX, "parameter '%s' is too large", v->name);
    v->size = count * size;
    v->align = align ? align : size;
    v->type = (uint8_t)type;
    v->defined = 1;
    if (in_body && !(len == 1 && *name == '_')) {
        if (space == SP_REG) {
            symbol *s = sym_add(p, name, len, SYM_REG);
            s->type = (uint8_t)type;
            v->slot = sym_slot(p, s);
        } else {
            sym_add(p, name, len, SYM_VAR)->var = v;
        }
    }
    return v;
}

// ---- placement, once everything is read

static int place_window(parser *p, ptx_space space, uint64_t *base, uint64_t *end)
{
    sim_ptx_module *m = p->m;
    uint64_t size = 0;
    for (ptx_var *v = p->vars; v; v = v->next) {
        if (v->space != space || !v->defined)
            continue;
        uint32_t a = v->align > 16 ? v->align : 16;  // apart, as real modules lay them out
        size = align_up(size, a);
        v->address = size;
        size += v->size;
        if (size > MAX_VARIABLE)
            return PTX_OUT_OF_MEMORY;
    }
    *base = *end = 0;
    if (!size)
        return 0;
    if (m->host.alloc) {
        int r = m->host.alloc(m->host.ctx, size, GLOBAL_ALIGN, base);
        if (r)
            return r;
    } else {
        void *mem = aligned_alloc(GLOBAL_ALIGN, align_up(size, GLOBAL_ALIGN));
        if (!mem)
            return PTX_OUT_OF_MEMORY;
        memset(mem, 0, size);
        *base = (uintptr_t)mem;
    }
    *end = *base + size;
    for (ptx_var *v = p->vars; v; v = v->next)
        if (v->space == space && v->defined)
            v->address += *base;
    return 0;
}

static void place_shared(parser *p)
{
    sim_ptx_module *m = p->m;
    uint64_t common = 0, most = 0;
    for (ptx_var *v = p->vars; v; v = v->next) {
        if (v->space != SP_SHARED || v->is_extern || (v->owner && v->owner->entry))
            continue;
        common = align_up(common, v->align);
        v->address = common;
        common += v->size;
        if (common > UINT32_MAX / 2)
            lex_fail(&p->lx, PTX_INVALID_PTX, "too much shared memory");
    }
    m->common_shared = (uint32_t)common;
    for (ptx_var *v = p->vars; v; v = v->next) {
        if (v->space != SP_SHARED || v->is_extern || !v->owner || !v->owner->entry)
            continue;
        uint64_t at = align_up(common + v->owner->shared, v->align);
        v->address = at;
        v->owner->shared = at + v->size - common;
        if (at + v->size > UINT32_MAX / 2)
            lex_fail(&p->lx, PTX_INVALID_PTX, "too much shared memory");
    }
    most = common;
    for (ptx_fn *f = p->fns; f; f = f->next)
        if (f->entry && common + f->shared > most)
            most = common + f->shared;
    m->dyn_shared = (uint32_t)align_up(most, DYNAMIC_ALIGN);
    for (ptx_var *v = p->vars; v; v = v->next)
        if (v->space == SP_SHARED && v->is_extern)
            v->address = m->dyn_shared;
}

void place_variables(parser *p)
{
    place_shared(p);
    int r = place_window(p, SP_GLOBAL, &p->m->global_base, &p->m->global_end);
    if (!r)
        r = place_window(p, SP_CONST, &p->m->const_base, &p->m->const_end);
    if (r)
        lex_fail(&p->lx, r, "no memory for the variables of the module");
}

// What initialisers name means what it does in the text that has them.
void resolve_initialisers(parser *p)
{
    for (ptx_var *v = p->vars; v; v = v->next) {
        for (ptx_init *i = v->init; i; i = i->next) {
            if (!i->symbol || i->var || i->fn)
                continue;
            symbol *s = sym_find(p, i->symbol, strlen(i->symbol));
            if (s && s->kind == SYM_VAR)
                i->var = s->var;
            else if (s && s->kind == SYM_FN)
                i->fn = s->fn;
            else
                lex_fail_at(&p->lx, i->line, "initialiser of '%s': '%s' is not defined", v->name, i->symbol);
        }
    }
}

void fill_variables(parser *p)
{
    for (ptx_var *v = p->vars; v; v = v->next) {
        for (const ptx_init *i = v->init; i; i = i->next) {
            uint64_t value = i->value;
            if (i->symbol) {
                if (i->var && !i->var->defined)
                    lex_fail_at(&p->lx, i->line, "initialiser of '%s': '%s' is not defined", v->name, i->symbol);
                value += i->var ? i->var->address : (uintptr_t)&p->m->fn_tokens[i->fn->index];
                value >>= i->shift;
            }
            if (i->offset + i->size <= v->size && v->defined)
                memcpy((char *)(uintptr_t)v->address + i->offset, &value, i->size < 8 ? i->size : 8);
        }
    }
}
