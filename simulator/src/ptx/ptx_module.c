// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Loading and unloading of modules, and looking things up in them.
#include <stdlib.h>
#include <string.h>

#include "ptx/ptx_heap.h"
#include "ptx/ptx_parse.h"

// What a text may make us take for names and tables: generous for what compilers emit, bounded for what they do not.
#define ARENA_BASE ((size_t)32 << 20)
#define ARENA_PER_BYTE 64

static int load(const char *text, size_t len, const sim_ptx_host *host, int check_only, sim_ptx_module **out, char *log,
                size_t log_len)
{
    *out = NULL;
    if (log && log_len)
        log[0] = 0;
    if (len > UINT32_MAX / 2)
        return PTX_INVALID_PTX;
    sim_ptx_module *m = calloc(1, sizeof *m);
    parser *p = calloc(1, sizeof *p);
    char *copy = malloc(len + 1);
    ptx_arena *arena = ptx_arena_new(ARENA_BASE + len * ARENA_PER_BYTE);
    int result = PTX_OUT_OF_MEMORY;
    if (m && p && copy && arena) {
        memcpy(copy, text, len);
        copy[len] = 0;
        m->text = copy;
        m->text_len = len;
        m->arena = arena;
        if (host)
            m->host = *host;
        p->m = m;
        p->lx.text = copy;
        p->check_only = check_only;
        p->lx.arena = arena;
        p->lx.log = log;
        p->lx.log_len = log_len;
        m->heap = ptx_heap_new();
        result = m->heap ? ptx_read(p) : PTX_OUT_OF_MEMORY;
    } else {
        free(m);
        m = NULL;
        free(copy);
        ptx_arena_free(arena);
    }
    if (p) {
        free(p->keys);
        free(p->key_hash);
        free(p->scope_parent);
        free(p);
    }
    if (result) {
        sim_ptx_unload(m);
        return result;
    }
    *out = m;
    return 0;
}

int sim_ptx_load(const char *text, size_t len, const sim_ptx_host *host, sim_ptx_module **out, char *log,
                 size_t log_len)
{
    return load(text, len, host, 0, out, log, log_len);
}

int sim_ptx_check(const char *text, size_t len, char *log, size_t log_len)
{
    sim_ptx_module *m;
    int result = load(text, len, NULL, 1, &m, log, log_len);
    if (!result)
        sim_ptx_unload(m);
    return result;
}

static void release(sim_ptx_module *m, uint64_t *base)
{
    if (!*base)
        return;
    if (m->host.alloc) {
        if (m->host.release)
            m->host.release(m->host.ctx, *base);
    } else {
        free((void *)(uintptr_t)*base);
    }
    *base = 0;
}

void sim_ptx_free_variables(sim_ptx_module *m)
{
    release(m, &m->global_base);
    release(m, &m->const_base);
}

void sim_ptx_unload(sim_ptx_module *m)
{
    if (!m)
        return;
    sim_ptx_free_variables(m);
    ptx_heap_delete(m->heap);
    free(m->code);
    free(m->consts);
    free(m->lists);
    ptx_arena_free(m->arena);
    free((char *)(uintptr_t)m->text);
    free(m);
}

unsigned sim_ptx_entry_count(const sim_ptx_module *m) { return m->entry_count; }

const sim_ptx_entry *sim_ptx_entry_at(const sim_ptx_module *m, unsigned i)
{
    return i < m->entry_count ? &m->entries[i]->info : NULL;
}

const sim_ptx_entry *sim_ptx_entry_find(const sim_ptx_module *m, const char *name)
{
    for (unsigned i = 0; i < m->entry_count; i++)
        if (strcmp(m->entries[i]->name, name) == 0)
            return &m->entries[i]->info;
    return NULL;
}

unsigned sim_ptx_global_count(const sim_ptx_module *m) { return m->global_count; }

const sim_ptx_global *sim_ptx_global_at(const sim_ptx_module *m, unsigned i)
{
    return i < m->global_count ? &m->globals[i] : NULL;
}

const sim_ptx_global *sim_ptx_global_find(const sim_ptx_module *m, const char *name)
{
    for (unsigned i = 0; i < m->global_count; i++)
        if (strcmp(m->globals[i].name, name) == 0)
            return &m->globals[i];
    return NULL;
}
