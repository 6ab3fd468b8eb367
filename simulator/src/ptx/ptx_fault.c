// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Recording why a launch failed. The first fault wins; the others only stop.
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/ptx_exec.h"

enum { PATH = 160, SOURCE = 2 * PATH + 40, PLACE = SOURCE + 256 };

static const char inlined_at[] = "inlined_at ";

// --- The line of the source -------------------------------------------------------------------------------------

// What a line of the text begins with, without white space before it; NULL if it is not the directive.
static const char *directive(const char *line, const char *end, const char *name)
{
    size_t length = strlen(name);
    while (line < end && (*line == ' ' || *line == '\t'))
        line++;
    return (size_t)(end - line) > length && !memcmp(line, name, length) && (line[length] == ' ' || line[length] == '\t')
               ? line + length
               : NULL;
}

static const char *line_end(const char *line, const char *end)
{
    const char *feed = memchr(line, '\n', (size_t)(end - line));
    return feed ? feed : end;
}

// The path that `.file N "path"` of a text gives; its end if it is long; empty if the text has none.
static void find_file(const char *text, const char *end, unsigned number, char path[PATH])
{
    path[0] = 0;
    for (const char *line = text, *next; line < end; line = next + 1) {
        next = line_end(line, end);
        const char *at = directive(line, next, ".file");
        char *rest;
        if (!at || strtoul(at, &rest, 10) != number)
            continue;
        const char *begin = memchr(rest, '"', (size_t)(next - rest));
        const char *close = begin ? memchr(begin + 1, '"', (size_t)(next - begin - 1)) : NULL;
        if (!close)
            continue;
        begin++;
        bool is_long = close - begin >= PATH;
        if (is_long)
            begin = close - (PATH - 4);
        snprintf(path, PATH, "%s%.*s", is_long ? "..." : "", (int)(close - begin), begin);
        return;
    }
}

// Is this where a function begins?
static int is_header(const char *line, const char *end)
{
    for (; line + 6 < end && line[0] != '/'; line++)
        if (!memcmp(line, ".entry ", 7) || !memcmp(line, ".func ", 6))
            return 1;
    return 0;
}

// Appends "path:line" for the file and the line that stand at `numbers`. Returns whether they are known.
static int add_line(const char *text, const char *numbers, const char *before, char source[SOURCE])
{
    char path[PATH], *rest;
    unsigned file = (unsigned)strtoul(numbers, &rest, 10), line = (unsigned)strtoul(rest, NULL, 10);
    size_t length = strlen(source);
    find_file(text, text + strlen(text), file, path);
    if (!line || !path[0])
        return 0;
    snprintf(source + length, SOURCE - length, "%s%s:%u", before, path, line);
    return 1;
}

// Finds the line that the last .loc before an instruction in its function gives, and where that was inlined.
static int find_source(const sim_ptx_module *m, const insn *in, char source[SOURCE])
{
    const char *text = m->text + in->text;
    while (text > m->text && text[-1])  // to the beginning of the text, if the module has several
        text--;
    for (const char *at = m->text + in->text; at > text;) {
        const char *end = at;
        do
            at--;
        while (at > text && at[-1] != '\n');
        const char *loc = directive(at, end, ".loc");
        if (loc) {
            const char *inlined = memmem(loc, (size_t)(end - loc), inlined_at, sizeof inlined_at - 1);
            source[0] = 0;
            if (!add_line(text, loc, "", source))
                return 0;
            if (inlined)
                add_line(text, inlined + sizeof inlined_at - 1, ", inlined at ", source);
            return 1;
        }
        if (is_header(at, end))
            return 0;
    }
    return 0;
}

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

static void describe_place(const sim_ptx_module *m, const insn *in, char place[PLACE])
{
    char text[128], source[SOURCE];
    quote(m, in, text, sizeof text);
    if (find_source(m, in, source))
        snprintf(place, PLACE, "%s; PTX line %u: '%s'", source, in->line, text);
    else
        snprintf(place, PLACE, "PTX line %u: '%s'; compile with lineinfo=True for the line of your source", in->line,
                 text);
}

// --- The fault --------------------------------------------------------------------------------------------------

step fault(warp *w, const insn *in, unsigned lane, int result, uint64_t address, const char *fmt, ...)
{
    launch *ln = w->blk->ln;
    int32_t none = 0;
    if (!__atomic_compare_exchange_n(&ln->result, &none, result, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return ST_FAULT;
    sim_ptx_fault *f = ln->fault;
    if (!f)
        return ST_FAULT;
    char what[256], place[PLACE];
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
        describe_place(ln->m, in, place);
        f->line = in->line;
        snprintf(f->message, sizeof f->message, "kernel %.160s: %s; block (%u, %u, %u), thread (%u, %u, %u); %s",
                 ln->fn->name, what, f->block[0], f->block[1], f->block[2], f->thread[0], f->thread[1], f->thread[2],
                 place);
    } else {
        snprintf(f->message, sizeof f->message, "kernel %.160s: %s; block (%u, %u, %u)", ln->fn->name, what,
                 f->block[0], f->block[1], f->block[2]);
    }
    return ST_FAULT;
}
