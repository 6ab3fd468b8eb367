// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Recording why a launch failed. The first fault wins; the others only stop.
#include <stdarg.h>
#include <stdio.h>

#include "ptx/ptx_exec.h"

// The instruction as the text has it, on one line.
static void quote(const sim_ptx_module *m, const insn *in, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = in->text; i < m->text_len && m->text[i] != ';' && n + 1 < size; i++) {
        char c = m->text[i];
        if (c == '\n' || c == '\t' || c == '\r')
            c = ' ';
        if (c == ' ' && (n == 0 || out[n - 1] == ' '))
            continue;
        out[n++] = c;
    }
    out[n] = 0;
}

step fault(warp *w, const insn *in, unsigned lane, int result, uint64_t address, const char *fmt, ...)
{
    launch *ln = w->blk->ln;
    int32_t none = 0;
    if (!__atomic_compare_exchange_n(&ln->result, &none, result, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return ST_FAULT;
    sim_ptx_fault *f = ln->fault;
    if (!f)
        return ST_FAULT;
    char what[256], text[128];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    f->address = address;
    for (int i = 0; i < 3; i++) {
        f->block[i] = w->blk->id[i];
        f->thread[i] = w->tid[i][lane];
    }
    if (in) {
        quote(ln->m, in, text, sizeof text);
        f->line = in->line;
        snprintf(f->message, sizeof f->message,
                 "kernel %s: '%s' (line %u): %s; block (%u, %u, %u), thread (%u, %u, %u)", ln->fn->name, text, in->line,
                 what, f->block[0], f->block[1], f->block[2], f->thread[0], f->thread[1], f->thread[2]);
    } else {
        snprintf(f->message, sizeof f->message, "kernel %s: %s; block (%u, %u, %u)", ln->fn->name, what, f->block[0],
                 f->block[1], f->block[2]);
    }
    return ST_FAULT;
}
