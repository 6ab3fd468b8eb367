// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Names of the text and the tables that grow while it is read: instructions, constants, lists, labels.
#include <stdlib.h>
#include <string.h>

#include "ptx/ptx_parse.h"

// Bounds on what a text may ask for; far above what a compiler emits.
#define MAX_SLOTS (1u << 18)
#define MAX_CODE (1u << 24)

static uint32_t hash_bytes(const char *s, size_t n)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (uint8_t)s[i]) * 16777619u;
    return h ^ (h >> 15);
}

// ---- symbols

static symbol *find_exact(parser *p, const char *name, size_t len)
{
    uint32_t h = hash_bytes(name, len);
    for (symbol *s = p->buckets[h % SYM_BUCKETS]; s; s = s->next)
        if (s->hash == h && s->len == len && memcmp(s->name, name, len) == 0)
            return s;
    return NULL;
}

static symbol *add_in_scope(parser *p, const char *name, size_t len, sym_kind kind, uint32_t scope)
{
    symbol *s = lex_alloc(&p->lx, sizeof *s);
    s->name = lex_intern(&p->lx, name, len);
    s->len = (uint32_t)len;
    s->hash = hash_bytes(name, len);
    s->kind = kind;
    s->slot = -1;
    s->scope = scope;
    s->unit = p->unit;
    symbol **bucket = &p->buckets[s->hash % SYM_BUCKETS];
    s->next = *bucket;
    *bucket = s;
    s->scope_next = p->scopes[scope];
    p->scopes[scope] = s;
    return s;
}

symbol *sym_add(parser *p, const char *name, size_t len, sym_kind kind)
{
    return add_in_scope(p, name, len, kind, p->depth);
}

// A register of a range (%r<40>) becomes a symbol of its own when it is first used.
symbol *sym_find(parser *p, const char *name, size_t len)
{
    symbol *s = find_exact(p, name, len);
    size_t digits = 0;
    while (digits < 9 && digits + 1 < len && name[len - 1 - digits] >= '0' && name[len - 1 - digits] <= '9')
        digits++;
    for (; digits; digits--) {
        symbol *range = find_exact(p, name, len - digits);
        while (range && range->kind != SYM_RANGE) {
            symbol *r = range->next;
            while (r && !(r->hash == range->hash && r->len == len - digits && !memcmp(r->name, name, len - digits)))
                r = r->next;
            range = r;
        }
        if (!range || (s && s->scope >= range->scope))
            continue;
        uint32_t n = 0;
        for (size_t i = len - digits; i < len; i++)
            n = n * 10 + (uint32_t)(name[i] - '0');
        if (n >= range->count || (digits > 1 && name[len - digits] == '0'))
            continue;
        s = add_in_scope(p, name, len, SYM_REG, range->scope);
        s->type = range->type;
        return s;
    }
    return s;
}

int32_t new_slot(parser *p, unsigned n)
{
    if (p->fn->slots + n > MAX_SLOTS)
        lex_fail(&p->lx, PTX_INVALID_PTX, "too many registers in one function");
    int32_t slot = (int32_t)p->fn->slots;
    p->fn->slots += n;
    return slot;
}

int32_t sym_slot(parser *p, symbol *s)
{
    if (s->slot < 0)
        s->slot = new_slot(p, s->type == T_B128 ? 2 : 1);
    return s->slot;
}

// What this text means by a name at module scope; NULL if it means something of its own that is not declared yet.
symbol *sym_own(parser *p, const char *name, size_t len, int is_local)
{
    symbol *s = sym_find(p, name, len);
    return s && s->unit != p->unit && is_local ? NULL : s;
}

static void hide(parser *p, symbol *s)
{
    symbol **at = &p->buckets[s->hash % SYM_BUCKETS];
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
}

// The end of a text: what it kept for itself is out of sight of the next.
void symbols_end_unit(parser *p)
{
    symbol **at = &p->scopes[0];
    while (*at) {
        symbol *s = *at;
        if (s->local) {
            hide(p, s);
            *at = s->scope_next;
        } else {
            at = &s->scope_next;
        }
    }
}

void scope_enter(parser *p)
{
    if (p->depth + 1 >= MAX_SCOPES)
        lex_fail(&p->lx, PTX_INVALID_PTX, "blocks nested too deeply");
    if (p->scope_count == p->scope_cap) {
        uint32_t cap = p->scope_cap ? p->scope_cap * 2 : 64;
        uint32_t *grown = realloc(p->scope_parent, cap * sizeof *grown);
        if (!grown)
            lex_fail(&p->lx, PTX_OUT_OF_MEMORY, "out of memory");
        p->scope_parent = grown;
        p->scope_cap = cap;
    }
    uint32_t id = p->scope_count++;
    p->scope_parent[id] = p->depth ? p->scope_id[p->depth] : UINT32_MAX;
    p->depth++;
    p->scope_id[p->depth] = id;
    p->scopes[p->depth] = NULL;
    p->frame_mark[p->depth] = p->frame_now;
}

void scope_leave(parser *p)
{
    for (symbol *s = p->scopes[p->depth]; s; s = s->scope_next)
        hide(p, s);
    p->scopes[p->depth] = NULL;
    p->depth--;
}

// ---- growing tables

static void *grow(parser *p, void *array, uint32_t count, uint32_t *cap, size_t item, uint32_t limit)
{
    if (count < *cap)
        return array;
    if (count >= limit)
        lex_fail(&p->lx, PTX_INVALID_PTX, "the module is too large");
    uint32_t next = *cap ? *cap * 2 : 256;
    void *grown = realloc(array, next * item);
    if (!grown)
        lex_fail(&p->lx, PTX_OUT_OF_MEMORY, "out of memory");
    *cap = next;
    return grown;
}

insn *emit(parser *p, const statement *st)
{
    sim_ptx_module *m = p->m;
    m->code = grow(p, m->code, m->code_count, &p->code_cap, sizeof *m->code, MAX_CODE);
    insn *in = &m->code[m->code_count++];
    memset(in, 0, sizeof *in);
    in->d = in->a = in->b = in->c = in->e = in->list = NO_OPERAND;
    in->pred = st ? st->pred : -1;
    in->line = st ? st->line : p->lx.t.line;
    in->text = st ? st->text : 0;
    return in;
}

static uint32_t hash_key(const const_key *k)
{
    uint64_t h = (k->value + (uintptr_t)k->object * 31 + k->kind) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 32);
}

static int32_t const_add(parser *p, const_key key)
{
    sim_ptx_module *m = p->m;
    if (m->const_count * 2 >= p->key_hash_cap) {
        uint32_t cap = p->key_hash_cap ? p->key_hash_cap * 2 : 1024;
        if (cap > MAX_CODE)
            lex_fail(&p->lx, PTX_INVALID_PTX, "the module is too large");
        uint32_t *table = calloc(cap, sizeof *table);
        if (!table)
            lex_fail(&p->lx, PTX_OUT_OF_MEMORY, "out of memory");
        for (uint32_t i = 0; i < m->const_count; i++) {
            uint32_t h = hash_key(&p->keys[i]) & (cap - 1);
            while (table[h])
                h = (h + 1) & (cap - 1);
            table[h] = i + 1;
        }
        free(p->key_hash);
        p->key_hash = table;
        p->key_hash_cap = cap;
    }
    uint32_t h = hash_key(&key) & (p->key_hash_cap - 1);
    for (uint32_t i; (i = p->key_hash[h]); h = (h + 1) & (p->key_hash_cap - 1)) {
        const const_key *k = &p->keys[i - 1];
        if (k->value == key.value && k->object == key.object && k->kind == key.kind)
            return ~(int32_t)(i - 1);
    }
    p->keys = grow(p, p->keys, m->const_count, &p->key_cap, sizeof *p->keys, MAX_CODE);
    p->keys[m->const_count++] = key;
    p->key_hash[h] = m->const_count;
    return ~(int32_t)(m->const_count - 1);
}

int32_t const_ref(parser *p, uint64_t value) { return const_add(p, (const_key){value, NULL, 0}); }
int32_t const_var(parser *p, ptx_var *var, uint64_t offset) { return const_add(p, (const_key){offset, var, 1}); }
int32_t const_fn(parser *p, ptx_fn *fn) { return const_add(p, (const_key){0, fn, 2}); }

int32_t list_add(parser *p, const int32_t *items, uint32_t n)
{
    sim_ptx_module *m = p->m;
    int32_t first = (int32_t)p->list_count;
    for (uint32_t i = 0; i < n; i++) {
        m->lists = grow(p, m->lists, p->list_count, &p->list_cap, sizeof *m->lists, MAX_CODE);
        m->lists[p->list_count++] = items[i];
    }
    return first;
}

// ---- labels

#define LABEL_BUCKETS 4096

static label *label_new(parser *p, const char *name, size_t len)
{
    label *l = lex_alloc(&p->lx, sizeof *l);
    l->name = name;
    l->len = (uint32_t)len;
    l->hash = hash_bytes(name, len);
    l->scope = p->scope_id[p->depth];
    l->line = p->lx.t.line;
    return l;
}

static label *label_find(parser *p, const label *key, uint32_t scope)
{
    for (label *l = p->label_buckets[key->hash % LABEL_BUCKETS]; l; l = l->next)
        if (l->scope == scope && l->len == key->len && memcmp(l->name, key->name, key->len) == 0)
            return l;
    return NULL;
}

void label_define(parser *p, const char *name, size_t len)
{
    if (!p->label_buckets)
        p->label_buckets = lex_alloc(&p->lx, LABEL_BUCKETS * sizeof *p->label_buckets);
    label *l = label_new(p, name, len);
    if (label_find(p, l, l->scope))
        lex_fail(&p->lx, PTX_INVALID_PTX, "label '%.*s' is defined twice", (int)(len > 80 ? 80 : len), name);
    l->pc = p->m->code_count;
    label **bucket = &p->label_buckets[l->hash % LABEL_BUCKETS];
    l->next = *bucket;
    *bucket = l;
}

void label_use(parser *p, const char *name, size_t len, uint32_t pc, int64_t list)
{
    label *l = label_new(p, name, len);
    l->pc = pc;
    l->list = list;
    l->next = p->refs;
    p->refs = l;
}

void labels_resolve(parser *p)
{
    if (p->refs && !p->label_buckets)
        p->label_buckets = lex_alloc(&p->lx, LABEL_BUCKETS * sizeof *p->label_buckets);
    for (label *ref = p->refs; ref; ref = ref->next) {
        label *l = NULL;
        for (uint32_t s = ref->scope; s != UINT32_MAX && !l; s = p->scope_parent[s])
            l = label_find(p, ref, s);
        if (!l)
            lex_fail_at(&p->lx, ref->line, "label '%.*s' is not defined", (int)(ref->len > 80 ? 80 : ref->len),
                        ref->name);
        if (ref->list >= 0)
            p->m->lists[ref->list] = (int32_t)l->pc;
        else
            p->m->code[ref->pc].imm = l->pc;
    }
    p->refs = NULL;
    if (p->label_buckets)
        memset(p->label_buckets, 0, LABEL_BUCKETS * sizeof *p->label_buckets);
    p->scope_count = 0;
}
