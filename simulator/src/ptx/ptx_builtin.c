// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Functions that device code calls and the driver provides.
#include "ptx/ptx_builtin.h"

#include <stdio.h>

#include "ptx/ptx_exec.h"
#include "ptx/ptx_flow.h"
#include "ptx/ptx_heap.h"
#include "ptx/ptx_printf.h"

typedef struct lane_ctx {
    warp *w;
    const insn *in;
    unsigned lane;
} lane_ctx;

static int read_value(void *ctx, uint64_t address, unsigned size, uint64_t *value)
{
    lane_ctx *c = ctx;
    const void *p = resolve_space(c->w, c->in, c->lane, SP_GENERIC, address, size, 0);
    if (!p)
        return 0;
    memcpy(value, p, size);
    return 1;
}

static int read_string(void *ctx, uint64_t address, char *out, size_t size)
{
    lane_ctx *c = ctx;
    size_t len;
    const char *s = resolve_string(c->w, c->in, c->lane, address, size - 1, &len);
    if (!s)
        return 0;
    memcpy(out, s, len);
    out[len] = 0;
    return 1;
}

static void emit_text(void *ctx, const char *text, size_t len)
{
    const sim_ptx_host *host = &((const warp *)ctx)->blk->ln->m->host;
    if (host->print) {
        host->print(host->ctx, text, len);
        return;
    }
    fwrite(text, 1, len, stdout);
    fflush(stdout);  // whoever waits for the kernel finds its output written
}

static step run_vprintf(warp *w, const insn *in, uint32_t m)
{
    FOR_LANES (m) {
        lane_ctx c = {w, in, l};
        ptx_reader reader = {&c, read_value, read_string};
        int n = ptx_format(&reader, ptx_call_argument(w, in, l, 0), ptx_call_argument(w, in, l, 1), emit_text, w);
        if (n < 0)
            return ST_FAULT;
        ptx_call_result(w, in, l, (uint64_t)(uint32_t)n);
    }
    return ST_NEXT;
}

static step run_malloc(warp *w, const insn *in, uint32_t m)
{
    const sim_ptx_host *host = &w->blk->ln->m->host;
    FOR_LANES (m) {
        uint64_t address = 0;
        uint64_t size = ptx_call_argument(w, in, l, 0);
        if (host->heap_alloc) {
            if (host->heap_alloc(host->ctx, size, &address))
                address = 0;
        } else
            address = ptx_heap_alloc(w->blk->ln->m->heap, size);
        ptx_call_result(w, in, l, address);
    }
    return ST_NEXT;
}

static step run_free(warp *w, const insn *in, uint32_t m)
{
    const sim_ptx_host *host = &w->blk->ln->m->host;
    FOR_LANES (m) {
        uint64_t address = ptx_call_argument(w, in, l, 0);
        if (!address)
            continue;
        int known =
            host->heap_free ? host->heap_free(host->ctx, address) == 0 : ptx_heap_free(w->blk->ln->m->heap, address);
        if (!known)
            return fault(w, in, l, PTX_ILLEGAL_ADDRESS, address, "free of 0x%llx, which malloc did not give",
                         (unsigned long long)address);
    }
    return ST_NEXT;
}

// __assertfail(message, file, line, function, char size): the text goes where printf goes, as on hardware.
static step run_assertfail(warp *w, const insn *in, uint32_t m)
{
    unsigned l = (unsigned)__builtin_ctz(m);
    lane_ctx c = {w, in, l};
    char message[512], file[512], function[512], text[2048];
    if (!read_string(&c, ptx_call_argument(w, in, l, 0), message, sizeof message) ||
        !read_string(&c, ptx_call_argument(w, in, l, 1), file, sizeof file) ||
        !read_string(&c, ptx_call_argument(w, in, l, 3), function, sizeof function))
        return ST_FAULT;
    unsigned line = (unsigned)ptx_call_argument(w, in, l, 2);
    const uint32_t *id = w->blk->id;
    int n = snprintf(text, sizeof text, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
                     file, line, function, id[0], id[1], id[2], w->tid[0][l], w->tid[1][l], w->tid[2][l], message);
    emit_text(w, text, n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
    return fault(w, in, l, PTX_ASSERT, 0, "%.80s:%u: assertion `%.120s` failed", file, line, message);
}

static step run_set_conditional(warp *w, const insn *in, uint32_t m)
{
    const sim_ptx_launch *launch = w->blk->ln->in;
    FOR_LANES (m) {
        uint64_t handle = ptx_call_argument(w, in, l, 0);
        uint32_t value = (uint32_t)ptx_call_argument(w, in, l, 1);
        if (!launch->set_condition)
            return fault(w, in, l, PTX_LAUNCH_FAILED, 0, "cudaGraphSetConditional in a kernel that no graph launched");
        if (!launch->set_condition(launch->condition_ctx, handle, value))
            return fault(w, in, l, PTX_LAUNCH_FAILED, 0, "0x%llx is no handle of a conditional node of the graph",
                         (unsigned long long)handle);
    }
    return ST_NEXT;
}

exec_fn ptx_builtin_find(const char *name)
{
    static const struct {
        const char *name;
        exec_fn run;
    } table[] = {{"vprintf", run_vprintf},
                 {"malloc", run_malloc},
                 {"free", run_free},
                 {"__assertfail", run_assertfail},
                 {"cudaGraphSetConditional", run_set_conditional}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].name, name) == 0)
            return table[i].run;
    return NULL;
}
