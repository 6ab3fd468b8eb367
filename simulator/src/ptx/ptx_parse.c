// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Directives at module scope, function headers, and what is settled once the whole text is read.
#include <stdlib.h>
#include <string.h>

#include "ptx/ptx_builtin.h"
#include "ptx/ptx_parse.h"

#define MAX_PARAMS 1024
#define MAX_PARAM_BYTES 32764
#define DEFAULT_SHARED 49152
#define DEFAULT_MAX_THREADS 1024

static void parse_version(parser *p)
{
    lexer *lx = &p->lx;
    lex_next(lx);
    unsigned major = 0, minor = 0;
    uint32_t i = 0;
    if (lx->t.kind != TK_FLOAT || !memchr(lx->t.s, '.', lx->t.len))
        lex_fail(lx, PTX_INVALID_PTX, ".version needs a number");
    for (; i < lx->t.len && lx->t.s[i] >= '0' && lx->t.s[i] <= '9' && major < 1000; i++)
        major = major * 10 + (unsigned)(lx->t.s[i] - '0');
    if (i < lx->t.len && lx->t.s[i] == '.')
        for (i++; i < lx->t.len && lx->t.s[i] >= '0' && lx->t.s[i] <= '9' && minor < 10; i++)
            minor = minor * 10 + (unsigned)(lx->t.s[i] - '0');
    if (major < 1 || major > 9 || minor > 9)
        lex_fail(lx, PTX_UNSUPPORTED_VERSION, "PTX version %u.%u is not supported", major, minor);
    p->m->version = major * 10 + minor;
    lex_next(lx);
}

static void parse_target(parser *p)
{
    lexer *lx = &p->lx;
    do {
        lex_next(lx);
        if (lx->t.kind != TK_NAME)
            lex_fail(lx, PTX_INVALID_PTX, ".target needs a name");
        if (lx->t.len > 3 && !memcmp(lx->t.s, "sm_", 3))
            for (uint32_t i = 3; i < lx->t.len && lx->t.s[i] >= '0' && lx->t.s[i] <= '9' && p->m->target < 10000; i++)
                p->m->target = p->m->target * 10 + (uint32_t)(lx->t.s[i] - '0');
        lex_next(lx);
    } while (lex_is(lx, ','));
    if (!p->m->target)
        lex_fail(lx, PTX_INVALID_PTX, ".target names no architecture");
}

// A .file or .loc directive has no end mark: it is numbers, strings, names and commas, up to what starts a line.
static void skip_line(parser *p)
{
    lexer *lx = &p->lx;
    uint32_t line = lx->t.line;
    do
        lex_next(lx);
    while (lx->t.kind != TK_EOF && lx->t.line == line && !lex_is(lx, '}'));
}

static ptx_fn *function_named(parser *p, const char *name, size_t len, int is_local)
{
    symbol *s = sym_own(p, name, len, is_local);
    if (s) {
        if (s->kind != SYM_FN)
            lex_fail(&p->lx, PTX_INVALID_PTX, "'%.*s' is not a function", (int)(len > 80 ? 80 : len), name);
        s->local &= (uint8_t)is_local;
        return s->fn;
    }
    ptx_fn *f = lex_alloc(&p->lx, sizeof *f);
    f->name = lex_intern(&p->lx, name, len);
    f->index = p->fn_count++;
    f->line = p->lx.t.line;
    f->builtin = ptx_builtin_find(f->name);
    *p->fns_end = f;
    p->fns_end = &f->next;
    s = sym_add(p, name, len, SYM_FN);
    s->fn = f;
    s->local = (uint8_t)is_local;
    return f;
}

// What the body of a function goes to that is defined already: of two texts that are linked, both may define it if one
// of them does so weakly. NULL: it is defined twice.
static ptx_fn *define_again(parser *p, ptx_fn *f, linkage link)
{
    if (f->unit == p->unit || !(f->weak || link == LINK_WEAK))
        return NULL;
    if (link != LINK_WEAK) {
        f->defined = f->calls = f->uses_common = 0;
        f->shared = 0;
        return f;
    }
    ptx_fn *unused = lex_alloc(&p->lx, sizeof *unused);
    unused->name = f->name;
    return unused;
}

static uint32_t parse_params(parser *p, ptx_var ***out, int in_body)
{
    lexer *lx = &p->lx;
    ptx_var *list[MAX_PARAMS];
    uint32_t n = 0;
    lex_expect(lx, '(');
    while (!lex_is(lx, ')')) {
        if (n == MAX_PARAMS)
            lex_fail(lx, PTX_INVALID_PTX, "too many parameters");
        list[n++] = parse_param(p, in_body);
        if (!lex_accept(lx, ','))
            break;
    }
    lex_expect(lx, ')');
    *out = lex_alloc(lx, (n + 1) * sizeof **out);
    memcpy(*out, list, n * sizeof *list);
    return n;
}

static uint64_t align_up(uint64_t v, uint64_t a) { return (v + a - 1) & ~(a - 1); }

static void place_params(parser *p, ptx_fn *f)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < f->param_count; i++) {
        ptx_var *v = f->params[i];
        if (f->entry) {
            v->entry_param = 1;
            bytes = align_up(bytes, v->align);
            v->address = bytes;
            bytes += v->size;
        } else if (v->space == SP_PARAM) {
            v->address = frame_place(p, v->size, v->align);
        }
    }
    if (bytes > MAX_PARAM_BYTES)
        lex_fail(&p->lx, PTX_INVALID_PTX, "too many bytes of parameters");
    f->param_bytes = (uint32_t)bytes;
    for (uint32_t i = 0; i < f->ret_count; i++)
        if (f->rets[i]->space == SP_PARAM)
            f->rets[i]->address = frame_place(p, f->rets[i]->size, f->rets[i]->align);
}

static uint32_t small_int(lexer *lx)
{
    if (lx->t.kind != TK_INT || lx->t.value > 0x7fffffff)
        lex_fail(lx, PTX_INVALID_PTX, "a small number is expected");
    uint32_t v = (uint32_t)lx->t.value;
    lex_next(lx);
    return v;
}

static void three_ints(lexer *lx, uint32_t out[3])
{
    out[0] = small_int(lx);
    out[1] = out[2] = 1;
    for (int i = 1; i < 3 && lex_accept(lx, ','); i++)
        out[i] = small_int(lx);
}

static void parse_performance(parser *p, sim_ptx_entry *e)
{
    lexer *lx = &p->lx;
    while (lx->t.kind == TK_DOT) {
        if (lex_dot(lx, "maxntid"))
            lex_next(lx), three_ints(lx, e->maxntid);
        else if (lex_dot(lx, "reqntid"))
            lex_next(lx), three_ints(lx, e->reqntid);
        else if (lex_dot(lx, "minnctapersm") || lex_dot(lx, "maxnctapersm"))
            lex_next(lx), e->minnctapersm = small_int(lx);
        else if (lex_dot(lx, "reqnctapercluster"))
            lex_next(lx), three_ints(lx, e->cluster);
        else if (lex_dot(lx, "maxclusterrank"))
            lex_next(lx), e->max_cluster_rank = small_int(lx);
        else if (lex_dot(lx, "explicitcluster"))
            lex_next(lx), e->explicit_cluster = 1;
        else if (lex_dot(lx, "pragma")) {
            lex_skip_statement(lx);
        } else {  // .maxnreg 32, .noreturn, .abi_preserve 4, ...: nothing that changes what is computed
            lex_next(lx);
            while (lx->t.kind == TK_INT || lx->t.kind == TK_STRING || lex_is(lx, ','))
                lex_next(lx);
        }
    }
}

static void parse_function(parser *p, int entry, linkage link)
{
    lexer *lx = &p->lx;
    uint32_t line = lx->t.line;
    lex_next(lx);
    p->frame_now = 0;
    // The parameters' names belong to the body's scope, but stand before the function's name is known.
    ptx_fn scratch = {0};
    p->fn = &scratch;
    scratch.slots = 1;  // slot 0 is the condition code
    scope_enter(p);
    if (lex_dot(lx, "attribute")) {  // .attribute(.unified(..))
        lex_next(lx);
        while (!lex_is(lx, ')') && lx->t.kind != TK_EOF)
            lex_next(lx);
        while (lex_accept(lx, ')')) {
        }
    }
    if (!entry && lex_is(lx, '('))
        scratch.ret_count = parse_params(p, &scratch.rets, 1);
    if (lx->t.kind != TK_NAME)
        lex_fail(lx, PTX_INVALID_PTX, "the name of a function is expected");
    const char *name = lx->t.s;
    uint32_t len = lx->t.len;
    lex_next(lx);
    scratch.entry = (uint8_t)entry;
    if (lex_is(lx, '('))
        scratch.param_count = parse_params(p, &scratch.params, 1);
    place_params(p, &scratch);
    parse_performance(p, &scratch.info);
    uint32_t depth = p->depth;
    p->depth = 0;
    ptx_fn *f = function_named(p, name, len, link == LINK_LOCAL);
    p->depth = depth;
    int body = lex_is(lx, '{');
    if (!body)
        lex_expect(lx, ';');
    if (body && f->is_extern == 1 && !f->defined && f->unit == p->unit)
        lex_fail_at(lx, line, "function '%s' is declared as .extern in the text that defines it", f->name);
    if (body && f->defined) {
        ptx_fn *other = define_again(p, f, link);
        if (!other)
            lex_fail_at(lx, line, "function '%s' is defined twice", f->name);
        f = other;
    }
    if (body && f->builtin)
        f->builtin = NULL;  // the text brings its own
    if (body || !f->defined) {
        f->entry = (uint8_t)entry;
        f->is_extern = link == LINK_EXTERN;
        f->unit = p->unit;
        f->params = scratch.params;
        f->param_count = scratch.param_count;
        f->rets = scratch.rets;
        f->ret_count = scratch.ret_count;
        f->param_bytes = scratch.param_bytes;
        f->slots = scratch.slots;
        f->frame = scratch.frame;
        f->info = scratch.info;
    }
    if (body) {
        f->defined = 1;
        f->weak = link == LINK_WEAK;
        f->line = line;
        p->fn = f;
        f->first = p->m->code_count;
        parse_body(p);
        labels_resolve(p);
        f->count = p->m->code_count - f->first;
        f->frame = (uint32_t)align_up(f->frame, 16);
    }
    scope_leave(p);
    p->scope_count = 0;
    p->fn = NULL;
}

static void parse_alias(parser *p)
{
    lexer *lx = &p->lx;
    lex_next(lx);
    token a = lx->t;
    lex_next(lx);
    lex_expect(lx, ',');
    token b = lx->t;
    if (a.kind != TK_NAME || b.kind != TK_NAME)
        lex_fail(lx, PTX_INVALID_PTX, ".alias needs two functions");
    lex_next(lx);
    lex_expect(lx, ';');
    symbol *from = sym_find(p, a.s, a.len), *to = sym_find(p, b.s, b.len);
    if (!from || from->kind != SYM_FN || from->fn->defined || !to || to->kind != SYM_FN)
        lex_fail(lx, PTX_INVALID_PTX, ".alias needs a declared and a defined function");
    from->fn->is_extern = 2;  // resolved in settle_functions
    from->fn->info.code = to->fn;
}

static void parse_directive(parser *p)
{
    lexer *lx = &p->lx;
    linkage link = LINK_LOCAL;
    if (lex_dot(lx, "file") || lex_dot(lx, "loc")) {
        skip_line(p);
        return;
    }
    if (lex_dot(lx, "section")) {
        lex_next(lx);
        while (lx->t.kind == TK_DOT || lx->t.kind == TK_NAME)
            lex_next(lx);
        if (!lex_is(lx, '{'))
            lex_fail(lx, PTX_INVALID_PTX, "'{' expected after .section");
        lex_skip_block(lx);
        return;
    }
    if (lex_dot(lx, "pragma")) {
        lex_skip_statement(lx);
        return;
    }
    if (lex_dot(lx, "alias")) {
        parse_alias(p);
        return;
    }
    for (;; lex_next(lx)) {
        if (lex_dot(lx, "extern"))
            link = LINK_EXTERN;
        else if (lex_dot(lx, "weak") || lex_dot(lx, "common"))
            link = LINK_WEAK;
        else if (lex_dot(lx, "visible"))
            link = LINK_VISIBLE;
        else
            break;
    }
    ptx_space space;
    if (lex_dot(lx, "func") || lex_dot(lx, "entry")) {
        parse_function(p, lex_dot(lx, "entry"), link);
    } else if (space_of_token(lx, &space) && (space == SP_GLOBAL || space == SP_CONST || space == SP_SHARED)) {
        lex_next(lx);
        if (space == SP_CONST && lex_is(lx, '[')) {  // a constant bank of old texts
            lex_fail(lx, PTX_INVALID_PTX, "constant banks are not supported");
        }
        parse_variable(p, space, link);
    } else if (lex_dot(lx, "tex") || lex_dot(lx, "local") || lex_dot(lx, "reg")) {
        lex_fail(lx, PTX_INVALID_PTX, "'%.*s' is not supported at module scope", (int)lx->t.len, lx->t.s);
    } else {
        lex_fail(lx, PTX_INVALID_PTX, "unknown directive '%.*s'", (int)(lx->t.len > 40 ? 40 : lx->t.len), lx->t.s);
    }
}

static void parse_module(parser *p)
{
    lexer *lx = &p->lx;
    p->m->target = 0;
    lex_next(lx);
    if (!lex_dot(lx, "version"))
        lex_fail(lx, PTX_INVALID_PTX, "a PTX module starts with .version");
    parse_version(p);
    if (!lex_dot(lx, "target"))
        lex_fail(lx, PTX_INVALID_PTX, ".target expected");
    parse_target(p);
    while (lx->t.kind != TK_EOF) {
        if (lex_dot(lx, "address_size")) {
            lex_next(lx);
            if (lx->t.kind != TK_INT || lx->t.value != 64)
                lex_fail(lx, PTX_INVALID_PTX, "only .address_size 64 is supported");
            lex_next(lx);
        } else if (lex_dot(lx, "version")) {
            parse_version(p);
        } else if (lex_dot(lx, "target")) {
            p->m->target = 0;
            parse_target(p);
        } else if (lx->t.kind == TK_DOT) {
            parse_directive(p);
        } else if (lex_is(lx, ';')) {
            lex_next(lx);
        } else {
            lex_fail(lx, PTX_INVALID_PTX, "a directive is expected before '%.*s'",
                     (int)(lx->t.len > 40 ? 40 : lx->t.len), lx->t.s);
        }
    }
}

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

// Several texts, each after the NUL of the one before, are read as one module.
static void parse_texts(parser *p)
{
    sim_ptx_module *m = p->m;
    const char *text = m->text, *end = m->text + m->text_len;
    uint32_t version = 0, target = 0;
    do {
        size_t len = strlen(text);
        p->lx.p = text;
        p->lx.end = text + len;
        p->lx.line = 1;
        parse_module(p);
        resolve_initialisers(p);
        symbols_end_unit(p);
        m->version = version = larger(version, m->version);
        m->target = target = larger(target, m->target);
        p->unit++;
        text += len + 1;
    } while (text < end && *text);
}

// ---- after everything is read

static void settle_functions(parser *p)
{
    sim_ptx_module *m = p->m;
    m->fn_count = p->fn_count;
    m->fns = lex_alloc(&p->lx, (p->fn_count + 1) * sizeof *m->fns);
    m->entries = lex_alloc(&p->lx, (p->fn_count + 1) * sizeof *m->entries);
    m->fn_tokens = lex_alloc(&p->lx, p->fn_count + 1);
    for (ptx_fn *f = p->fns; f; f = f->next)
        m->fns[f->index] = f;
    for (ptx_fn *f = p->fns; f; f = f->next) {
        if (f->is_extern == 2 && !f->defined) {
            const ptx_fn *to = f->info.code;
            if (to->defined) {
                uint32_t index = f->index;
                ptx_fn *next = f->next;
                const char *name = f->name;
                *f = *to;
                f->index = index;
                f->next = next;
                f->name = name;
                f->entry = 0;
            }
        }
        if (f->entry && f->defined)
            m->entries[m->entry_count++] = f;
        else if (f->defined)
            m->frames += f->frame + 16;
    }
}

static void settle_consts(parser *p)
{
    sim_ptx_module *m = p->m;
    if (posix_memalign((void **)&m->consts, 64, ((size_t)m->const_count + 1) * WARP * sizeof *m->consts)) {
        m->consts = NULL;
        lex_fail(&p->lx, PTX_OUT_OF_MEMORY, "out of memory");
    }
    for (uint32_t i = 0; i < m->const_count; i++) {
        const const_key *k = &p->keys[i];
        uint64_t value = k->value;
        if (k->kind == 1) {
            const ptx_var *v = k->object;
            if (!v->defined && !(v->space == SP_SHARED && v->is_extern))
                lex_fail_at(&p->lx, v->line, "unresolved extern variable '%s'", v->name);
            value += v->address;
        } else if (k->kind == 2) {
            value += (uintptr_t)&m->fn_tokens[((const ptx_fn *)k->object)->index];
        }
        for (int l = 0; l < WARP; l++)
            m->consts[(size_t)i * WARP + (size_t)l] = value;
    }
}

static sim_ptx_class param_class(const ptx_var *v)
{
    if (v->is_array)
        return SIM_PTX_BYTES;
    return v->type == T_F16 || v->type == T_BF16 || v->type == T_F32 || v->type == T_F64 ? SIM_PTX_FLOAT : SIM_PTX_INT;
}

static void describe_entry(parser *p, ptx_fn *f)
{
    sim_ptx_module *m = p->m;
    sim_ptx_entry *e = &f->info;
    e->module = m;
    e->name = f->name;
    e->code = f;
    e->param_count = f->param_count;
    e->param_bytes = f->param_bytes;
    sim_ptx_param *params = lex_alloc(&p->lx, (f->param_count + 1) * sizeof *params);
    for (uint32_t i = 0; i < f->param_count; i++) {
        const ptx_var *v = f->params[i];
        params[i] = (sim_ptx_param){(uint32_t)v->address, (uint32_t)v->size, v->align, param_class(v), v->is_ptr};
    }
    e->params = params;
    e->shared_bytes = (uint32_t)f->shared + (f->calls || f->uses_common ? m->common_shared : 0);
    e->local_bytes = f->frame;
    e->const_bytes = (uint32_t)(m->const_end - m->const_base);
    e->registers = f->slots < 12 ? 16 : f->slots / 2 + 10 > 255 ? 255 : (f->slots / 2 + 10) & ~1u;
    const uint32_t *n = e->reqntid[0] ? e->reqntid : e->maxntid;
    uint64_t threads = n[0] ? (uint64_t)n[0] * n[1] * n[2] : DEFAULT_MAX_THREADS;
    e->max_threads = threads > DEFAULT_MAX_THREADS ? DEFAULT_MAX_THREADS : (uint32_t)threads;
    e->max_dynamic_shared = e->shared_bytes < DEFAULT_SHARED ? DEFAULT_SHARED - e->shared_bytes : 0;
    e->ptx_version = m->version;
    e->target_sm = m->target;
}

static void describe_globals(parser *p)
{
    sim_ptx_module *m = p->m;
    uint32_t n = 0;
    for (const ptx_var *v = p->vars; v; v = v->next)
        n++;
    m->globals = lex_alloc(&p->lx, (n + 1) * sizeof *m->globals);
    for (const ptx_var *v = p->vars; v; v = v->next) {
        if ((v->space != SP_GLOBAL && v->space != SP_CONST) || !v->defined || v->owner)
            continue;
        m->globals[m->global_count++] =
            (sim_ptx_global){v->name, v->address, v->size, v->space == SP_CONST, v->managed};
    }
}

int ptx_read(parser *p)
{
    jmp_buf fail;
    p->lx.fail = &fail;
    if (setjmp(fail))
        return p->lx.result;
    p->vars_end = &p->vars;
    p->fns_end = &p->fns;
    parse_texts(p);
    if (p->check_only)
        return 0;
    settle_functions(p);
    for (ptx_fn *f = p->fns; f; f = f->next)
        if (!f->defined && !f->builtin && f->called)
            lex_fail_at(&p->lx, f->line, "unresolved extern function '%s'", f->name);
    place_variables(p);
    fill_variables(p);
    settle_consts(p);
    for (uint32_t i = 0; i < p->m->entry_count; i++)
        describe_entry(p, p->m->entries[i]);
    describe_globals(p);
    return 0;
}
