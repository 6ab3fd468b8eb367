// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Blocks and clusters: their memory, and how they start.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include "ptx/ptx_exec.h"

static size_t align_up(size_t v, size_t a) { return (v + a - 1) & ~(a - 1); }

void cluster_free(cluster *cl)
{
    if (!cl)
        return;
    for (uint32_t i = 0; cl->b && i < cl->blocks; i++) {
        block *b = &cl->b[i];
        for (uint32_t k = 0; b->w && k < b->warps; k++) {
            free(b->w[k].regs);
            free(b->w[k].preds);
            free(b->w[k].calls);
        }
        free(b->w);
    }
    free(cl->b);
    if (cl->memory)
        munmap(cl->memory, cl->memory_bytes);
    free(cl);
}

static void number_threads(warp *w, const launch *ln)
{
    for (uint32_t l = 0; l < WARP; l++) {
        uint32_t t = w->index * WARP + l;
        w->tid[0][l] = t % ln->block[0];
        w->tid[1][l] = t / ln->block[0] % ln->block[1];
        w->tid[2][l] = t / ln->block[0] / ln->block[1];
    }
}

static cluster *cluster_new(worker *wk)
{
    launch *ln = wk->ln;
    cluster *cl = calloc(1, sizeof *cl);
    if (!cl)
        return NULL;
    uint32_t n = ln->cluster[0] * ln->cluster[1] * ln->cluster[2];
    cl->blocks = n;
    cl->b = calloc(n, sizeof *cl->b);
    // Shared memory first. Pages that nobody touches cost nothing, and big stacks are mostly that.
    size_t shared = align_up((size_t)ln->shared_size * n, 4096),
           local = align_up((size_t)ln->local_size * ln->warps * WARP, 4096);
    cl->memory_bytes = shared + local * n + 4096;
    void *memory =
        mmap(NULL, cl->memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED)
        cl->memory = memory;
    if (!cl->b || !cl->memory) {
        cluster_free(cl);
        return NULL;
    }
    cl->shared = cl->memory;
    for (uint32_t i = 0; i < n; i++) {
        block *b = &cl->b[i];
        b->cl = cl;
        b->ln = ln;
        b->rank = i;
        b->warps = ln->warps;
        b->threads = ln->threads;
        b->shared = cl->shared + (size_t)i * ln->shared_size;
        b->local = (uint8_t *)cl->memory + shared + (size_t)i * local;
        b->w = aligned_alloc(64, align_up(ln->warps * sizeof *b->w, 64));
        if (b->w)
            memset(b->w, 0, ln->warps * sizeof *b->w);
        for (uint32_t k = 0; b->w && k < ln->warps; k++) {
            warp *w = &b->w[k];
            w->blk = b;
            w->wk = wk;
            w->code = ln->m->code;
            w->consts = ln->m->consts;
            w->index = k;
            w->local = b->local + (size_t)k * WARP * ln->local_size;
            uint32_t lanes = ln->threads - k * WARP;
            w->exists = lanes >= WARP ? FULL : (1u << lanes) - 1;
            number_threads(w, ln);
            if (!grow_registers(w, ln->fn->slots))
                b->live_threads = 1;  // out of memory, seen below
        }
        if (!b->w || b->live_threads) {
            cluster_free(cl);
            return NULL;
        }
    }
    return cl;
}

static void block_start(block *b, uint64_t first_x, uint64_t first_y, uint64_t first_z)
{
    launch *ln = b->ln;
    b->id[0] = (uint32_t)(first_x + b->rank % ln->cluster[0]);
    b->id[1] = (uint32_t)(first_y + b->rank / ln->cluster[0] % ln->cluster[1]);
    b->id[2] = (uint32_t)(first_z + b->rank / ln->cluster[0] / ln->cluster[1]);
    b->live_threads = b->threads;
    b->active = 1;
    if (ln->m->uses_reserved)
        memset(b->shared + ln->reserved, 0, RESERVED_SHARED);
    memset(b->barriers, 0, sizeof b->barriers);
    for (uint32_t k = 0; k < b->warps; k++) {
        warp *w = &b->w[k];
        w->live = w->active = w->exists;
        w->at_barrier = w->at_sync = w->cluster_arrived = w->cluster_waiting = 0;
        w->pc = ln->fn->first;
        set_frame(w, 0);
        w->next_pc = UINT32_MAX;
        w->fair_at = w->steps + 2048;
        w->favour_until = 0;
        w->lowest = 1;
        memset(w->depth, 0, sizeof w->depth);
        memset(w->lframe, 0, sizeof w->lframe);
        for (unsigned l = 0; l < WARP; l++)
            w->lsp[l] = ln->fn->frame;
    }
}

// Starts cluster number `index` of the grid on a worker. Returns 0 or a CUresult.
int cluster_start(worker *wk, uint64_t index, cluster **out)
{
    launch *ln = wk->ln;
    cluster *cl = wk->spare;
    if (cl)
        wk->spare = cl->next;
    else if (!(cl = cluster_new(wk)))
        return PTX_OUT_OF_MEMORY;
    uint64_t nx = ln->grid[0] / ln->cluster[0], ny = ln->grid[1] / ln->cluster[1];
    cl->next = NULL;
    cl->live_blocks = cl->blocks;
    cl->phase = 0;
    cl->slices = 0;
    for (uint32_t i = 0; i < cl->blocks; i++)
        block_start(&cl->b[i], index % nx * ln->cluster[0], index / nx % ny * ln->cluster[1],
                    index / nx / ny * ln->cluster[2]);
    *out = cl;
    return 0;
}
