// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Launches: the grid's clusters are dealt out to worker threads, each of which runs its clusters in slices.
//
// A worker starts with one cluster. If that does not end, it may be waiting for another block, so after a while the
// worker takes in more and runs them in turn. Of a cooperative grid it takes in all from the start.
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "ptx/ptx_lanes.h"

#define SLICE 8192             // instructions of a warp between looks at the clock and the other warps
#define PATIENCE 64            // slices of a cluster before the worker takes in another one
#define MAX_RESIDENT 128       // clusters of a worker, unless the grid is cooperative
#define STACK_FOR_CALLS 32768  // per thread, above the frames of all functions: room for recursion
#define MAX_LOCAL (512u << 10)
#define MAX_WORKERS 64

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int launch_stopped(const launch *ln) { return __atomic_load_n(&ln->result, __ATOMIC_RELAXED) != 0; }

static void stop(warp *w, int result, const char *why) { fault(w, NULL, 0, result, 0, "%s", why); }

static int check_limits(launch *ln, cluster *cl)
{
    if (launch_stopped(ln))
        return 1;
    if (ln->in->cancel && __atomic_load_n(ln->in->cancel, __ATOMIC_RELAXED))
        stop(cl->b[0].w, PTX_LAUNCH_FAILED, "the launch was cancelled");
    else if (ln->deadline && now() > ln->deadline)
        stop(cl->b[0].w, PTX_LAUNCH_TIMEOUT, "the time limit of the launch is over");
    return launch_stopped(ln);
}

// One slice of every warp of a cluster. Returns the instructions' worth of progress: 0 if nothing could run.
static int run_cluster(launch *ln, cluster *cl)
{
    int ran = 0;
    for (uint32_t i = 0; i < cl->blocks; i++) {
        block *b = &cl->b[i];
        if (!b->active)
            continue;
        for (uint32_t k = 0; k < b->warps; k++) {
            if (!b->w[k].live)
                continue;
            ran |= ln->run(&b->w[k], SLICE);
            if (launch_stopped(ln))
                return 1;
        }
        if (!b->live_threads) {
            b->active = 0;
            cl->live_blocks--;
            ran = 1;
        }
    }
    cl->slices++;
    return ran;
}

static int take_one(worker *wk, cluster ***end, unsigned *resident)
{
    launch *ln = wk->ln;
    uint64_t index = __atomic_fetch_add(&ln->next_cluster, 1, __ATOMIC_RELAXED);
    if (index >= ln->cluster_count)
        return 0;
    cluster *cl;
    int r = cluster_start(wk, index, &cl);
    if (r) {
        int32_t none = 0;
        if (__atomic_compare_exchange_n(&ln->result, &none, r, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) && ln->fault)
            snprintf(ln->fault->message, sizeof ln->fault->message, "kernel %s: no host memory to run a block",
                     ln->fn->name);
        return 0;
    }
    **end = cl;
    *end = &cl->next;
    ++*resident;
    return 1;
}

static void *work(void *arg)
{
    worker *wk = arg;
    launch *ln = wk->ln;
    cluster *first = NULL, **end = &first;
    unsigned resident = 0;
    int more = 1;
    while (!launch_stopped(ln)) {
        if (more && !resident)
            more = take_one(wk, &end, &resident);
        if (more && ln->in->cooperative)
            while (more)
                more = take_one(wk, &end, &resident);
        if (!resident)
            break;
        uint64_t fewest = UINT64_MAX;
        for (cluster **at = &first; *at;) {
            cluster *cl = *at;
            int ran = run_cluster(ln, cl);
            if (check_limits(ln, cl))
                break;
            if (!cl->live_blocks) {
                *at = cl->next;
                if (end == &cl->next)
                    end = at;
                cl->next = wk->spare;
                wk->spare = cl;
                resident--;
                continue;
            }
            if (!ran) {
                stop(cl->b[0].w, PTX_LAUNCH_TIMEOUT,
                     "deadlock: every thread waits at a barrier that the others will not reach");
                break;
            }
            if (cl->slices < fewest)
                fewest = cl->slices;
            at = &cl->next;
        }
        if (resident && fewest != UINT64_MAX && fewest % PATIENCE == 0 && more && resident < MAX_RESIDENT)
            more = take_one(wk, &end, &resident);
        if (resident && fewest != UINT64_MAX)
            sched_yield();
    }
    while (first) {
        cluster *next = first->next;
        cluster_free(first);
        first = next;
    }
    while (wk->spare) {
        cluster *next = wk->spare->next;
        cluster_free(wk->spare);
        wk->spare = next;
    }
    return NULL;
}

static int prepare(launch *ln, const sim_ptx_entry *entry, const sim_ptx_launch *in)
{
    const ptx_fn *f = entry->code;
    ln->fn = f;
    ln->run = ptx_is_wide() ? warp_run_wide : warp_run;
    ln->m = entry->module;
    ln->in = in;
    ln->block_count = 1;
    ln->cluster_count = 1;
    uint64_t threads = 1, per_cluster = 1;
    const uint32_t *cluster = in->cluster[0] ? in->cluster : entry->cluster;
    for (int i = 0; i < 3; i++) {
        ln->grid[i] = in->grid[i];
        ln->block[i] = in->block[i];
        ln->cluster[i] = cluster[i] ? cluster[i] : 1;
        if (!in->grid[i] || !in->block[i] || in->block[i] > 1024 || ln->cluster[i] > 64 || in->grid[i] % ln->cluster[i])
            return PTX_INVALID_VALUE;
        ln->block_count *= in->grid[i];
        ln->cluster_count *= in->grid[i] / ln->cluster[i];
        threads *= in->block[i];
        per_cluster *= ln->cluster[i];
    }
    if (threads > 1024 || per_cluster > 64 || (f->param_bytes && !in->params))
        return PTX_INVALID_VALUE;
    ln->threads = (uint32_t)threads;
    ln->warps = (ln->threads + WARP - 1) / WARP;
    ln->static_shared = ln->m->common_shared + (uint32_t)f->shared;
    uint64_t shared = (uint64_t)ln->m->dyn_shared + in->dynamic_shared;
    if (shared >= 1u << 24)
        return PTX_INVALID_VALUE;
    ln->shared_end = (uint32_t)shared;
    ln->reserved = (ln->shared_end + 127) & ~127u;
    ln->shared_size = ln->reserved + (ln->m->uses_reserved ? RESERVED_SHARED : 0);
    uint64_t local = f->frame + (f->calls ? ln->m->frames + STACK_FOR_CALLS : 0);
    if (local > MAX_LOCAL)
        local = f->frame > MAX_LOCAL ? f->frame : MAX_LOCAL;
    ln->local_size = (uint32_t)((local + 15) & ~(uint64_t)15);
    ln->sm_count = in->sm_count ? in->sm_count : 1;
    if (in->time_limit > 0)
        ln->deadline = now() + (uint64_t)(in->time_limit * 1e9);
    ln->params = aligned_alloc(128, (f->param_bytes + 255u) & ~127u);
    if (!ln->params)
        return PTX_OUT_OF_MEMORY;
    if (f->param_bytes)
        memcpy(ln->params, in->params, f->param_bytes);
    if (in->cooperative) {
        ln->workspace = calloc(1, WORKSPACE_BYTES);
        if (!ln->workspace)
            return PTX_OUT_OF_MEMORY;
        *(uint32_t *)ln->workspace = WORKSPACE_BYTES;  // its first word is its size
    }
    return 0;
}

int sim_ptx_launch_grid(const sim_ptx_entry *entry, const sim_ptx_launch *in, sim_ptx_fault *fault_out)
{
    launch ln = {0};
    sim_ptx_fault scratch;
    ln.fault = fault_out ? fault_out : &scratch;
    memset(ln.fault, 0, sizeof *ln.fault);
    int r = prepare(&ln, entry, in);
    unsigned count = in->workers ? in->workers : 1;
    if (count > MAX_WORKERS)
        count = MAX_WORKERS;
    if (count > ln.cluster_count)
        count = (unsigned)ln.cluster_count;
    worker *workers = r ? NULL : calloc(count, sizeof *workers);
    if (!r && !workers)
        r = PTX_OUT_OF_MEMORY;
    if (!r) {
        unsigned started = 1;
        for (unsigned i = 0; i < count; i++) {
            workers[i].ln = &ln;
            workers[i].epoch_now = ln.m->host.epoch;
        }
        // Fewer threads than asked for only make it slower.
        for (; started < count; started++)
            if (pthread_create(&workers[started].thread, NULL, work, &workers[started]))
                break;
        work(&workers[0]);
        for (unsigned i = 1; i < started; i++)
            pthread_join(workers[i].thread, NULL);
        r = ln.result;
    } else {
        snprintf(ln.fault->message, sizeof ln.fault->message, "kernel %s: %s", entry->name,
                 r == PTX_OUT_OF_MEMORY ? "out of memory" : "invalid launch configuration");
    }
    free(workers);
    free(ln.params);
    free(ln.workspace);
    return r;
}
