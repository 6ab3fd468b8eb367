// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Function bodies: declarations, labels, and instructions with their operands, still undecoded.
#include <string.h>

#include "ptx/ptx_mods.h"
#include "ptx/ptx_parse.h"

#define MAX_OPERAND_DEPTH 4

static operand parse_operand(parser *p, unsigned depth);

// `.reg .b32 %r<40>, a;`
void parse_registers(parser *p)
{
    lexer *lx = &p->lx;
    ptx_type type;
    if (lex_dot(lx, "v2") || lex_dot(lx, "v4"))
        lex_fail(lx, PTX_INVALID_PTX, "vector registers are not supported");
    if (!type_of_token(lx, &type))
        lex_fail(lx, PTX_INVALID_PTX, "a type is expected after .reg");
    lex_next(lx);
    do {
        if (lx->t.kind != TK_NAME)
            lex_fail(lx, PTX_INVALID_PTX, "the name of a register is expected");
        token name = lx->t;
        lex_next(lx);
        sym_kind kind = SYM_REG;
        uint32_t count = 0;
        if (lex_accept(lx, '<')) {
            if (lx->t.kind != TK_INT || lx->t.value > UINT32_MAX)
                lex_fail(lx, PTX_INVALID_PTX, "a number of registers is expected");
            kind = SYM_RANGE;
            count = (uint32_t)lx->t.value;
            lex_next(lx);
            lex_expect(lx, '>');
        }
        symbol *s = sym_find(p, name.s, name.len);
        if (s && s->scope == p->depth && s->kind != SYM_RANGE)
            lex_fail(lx, PTX_INVALID_PTX, "register '%.*s' is declared twice", (int)(name.len > 80 ? 80 : name.len),
                     name.s);
        s = sym_add(p, name.s, name.len, kind);
        s->type = (uint8_t)type;
        s->count = count;
    } while (lex_accept(lx, ','));
    lex_expect(lx, ';');
}

// ---- operands

static void parse_number(parser *p, operand *o)
{
    lexer *lx = &p->lx;
    int negative = 0;
    lexer saved = *lx;
    while (lex_is(lx, '-')) {
        negative = !negative;
        lex_next(lx);
    }
    if (lx->t.kind == TK_FLOAT) {
        o->kind = OP_FLOAT;
        o->float_bytes = lx->t.float_bytes;
        o->value = lx->t.value;
        if (negative)
            o->value ^= o->float_bytes == 4 ? 0x80000000u : (uint64_t)1 << 63;
        lex_next(lx);
    } else {
        *lx = saved;
        o->kind = OP_INT;
        o->value = lex_expression(lx);
    }
}

static uint64_t parse_offset(lexer *lx)
{
    uint64_t off = 0;
    while (lex_is(lx, '+') || lex_is(lx, '-')) {
        int minus = lex_is(lx, '-');
        lex_next(lx);
        uint64_t v = lex_expression(lx);
        off += minus ? 0 - v : v;
    }
    return off;
}

static void parse_named(parser *p, operand *o)
{
    lexer *lx = &p->lx;
    token t = lx->t;
    lex_next(lx);
    if (t.len == 1 && *t.s == '_') {
        o->kind = OP_SINK;
        return;
    }
    if (lx->t.kind == TK_DOT && *t.s == '%') {  // %tid.x
        o->kind = OP_SREG;
        o->name = t.s;
        o->len = (uint32_t)(lx->t.s + lx->t.len - t.s);
        lex_next(lx);
        return;
    }
    symbol *s = sym_find(p, t.s, t.len);
    o->name = t.s;
    o->len = t.len;
    if (!s) {
        o->kind = *t.s == '%' ? OP_SREG : OP_NAME;
        return;
    }
    switch (s->kind) {
    case SYM_REG:
        o->kind = OP_REG;
        o->slot = sym_slot(p, s);
        o->type = s->type;
        break;
    case SYM_VAR:
        o->kind = OP_VAR;
        o->var = s->var;
        break;
    case SYM_FN:
        o->kind = OP_FN;
        o->fn = s->fn;
        break;
    default: o->kind = OP_NAME;
    }
}

static void parse_address(parser *p, operand *o)
{
    lexer *lx = &p->lx;
    operand base = parse_operand(p, MAX_OPERAND_DEPTH);
    o->kind = OP_ADDR;
    o->slot = -1;
    switch (base.kind) {
    case OP_REG:
        o->slot = base.slot;
        o->type = base.type;
        break;
    case OP_VAR: o->var = base.var; break;
    case OP_INT: break;
    default:
        lex_fail(lx, PTX_INVALID_PTX, "'%.*s' is no address", (int)(base.len > 80 ? 80 : base.len),
                 base.name ? base.name : "");
    }
    o->value = base.value + parse_offset(lx);
    if (base.kind == OP_REG && !o->value && lex_accept(lx, ',')) {
        // A texture or a surface, and coordinates.
        o->kind = OP_TEXELS;
        o->n = 1;
        o->items = lex_alloc(lx, sizeof *o->items);
        *o->items = parse_operand(p, 1);
    }
    lex_expect(lx, ']');
}

static void parse_list(parser *p, operand *o, op_kind kind, char end, unsigned depth)
{
    lexer *lx = &p->lx;
    operand items[MAX_LIST];
    uint32_t n = 0;
    o->kind = kind;
    while (!lex_is(lx, end)) {
        if (n == sizeof items / sizeof *items)
            lex_fail(lx, PTX_INVALID_PTX, "too many operands");
        items[n++] = parse_operand(p, depth + 1);
        if (!lex_accept(lx, ','))
            break;
    }
    lex_expect(lx, end);
    o->n = n;
    o->items = lex_alloc(lx, (n + 1) * sizeof *items);
    memcpy(o->items, items, n * sizeof *items);
}

// p|q
static void parse_second(parser *p, operand *o)
{
    if (!lex_accept(&p->lx, '|'))
        return;
    o->second = lex_alloc(&p->lx, sizeof *o);
    *o->second = parse_operand(p, 1);
}

static operand parse_operand(parser *p, unsigned depth)
{
    lexer *lx = &p->lx;
    operand o;
    memset(&o, 0, sizeof o);
    o.slot = -1;
    if (depth > MAX_OPERAND_DEPTH)
        lex_fail(lx, PTX_INVALID_PTX, "operands nested too deeply");
    if (lex_accept(lx, '!'))
        o.neg = 1;
    if (lx->t.kind == TK_NAME) {
        parse_named(p, &o);
        if (depth < MAX_OPERAND_DEPTH && (o.kind == OP_VAR) && (lex_is(lx, '+') || lex_is(lx, '-')))
            o.value = parse_offset(lx);
        if (depth == 0)
            parse_second(p, &o);
    } else if (depth < MAX_OPERAND_DEPTH && lex_accept(lx, '{')) {
        parse_list(p, &o, OP_VEC, '}', depth);
        if (depth == 0)
            parse_second(p, &o);
    } else if (depth < MAX_OPERAND_DEPTH && lex_accept(lx, '[')) {
        parse_address(p, &o);
    } else if (depth < MAX_OPERAND_DEPTH - 1 && lex_is(lx, '(')) {
        // An argument list of a call, or a constant expression in parentheses.
        lexer saved = *lx;
        lex_next(lx);
        int constant = lx->t.kind == TK_INT || lx->t.kind == TK_DOT || lex_is(lx, '-') || lex_is(lx, '~');
        if (constant && !(p->lx.t.kind == TK_DOT) && depth == 0) {
            // (5) as an argument list of one constant and (5) as a constant read the same: decode tells them apart.
            parse_list(p, &o, OP_LIST, ')', depth);
        } else if (constant) {
            *lx = saved;
            parse_number(p, &o);
        } else {
            parse_list(p, &o, OP_LIST, ')', depth);
        }
    } else {
        parse_number(p, &o);
    }
    return o;
}

// ---- statements

static void parse_predicate(parser *p, statement *st)
{
    lexer *lx = &p->lx;
    lex_next(lx);
    int neg = lex_accept(lx, '!');
    symbol *s = lx->t.kind == TK_NAME ? sym_find(p, lx->t.s, lx->t.len) : NULL;
    if (!s || s->kind != SYM_REG || s->type != T_PRED)
        lex_fail(lx, PTX_INVALID_PTX, "'%.*s' is no predicate", (int)(lx->t.len > 40 ? 40 : lx->t.len), lx->t.s);
    st->pred = sym_slot(p, s) * 2 + neg;
    lex_next(lx);
}

static void parse_instruction(parser *p, statement *st)
{
    lexer *lx = &p->lx;
    st->op = lx->t.s;
    st->op_len = lx->t.len;
    st->mod_count = st->count = 0;
    int known = is_known_opcode(st->op, st->op_len);
    lex_next(lx);
    while (lx->t.kind == TK_DOT) {
        uint16_t mod = mod_find(lx->t.s + 1, lx->t.len - 1);
        if (st->mod_count == MAX_MODS)
            lex_fail(lx, PTX_INVALID_PTX, "too many qualifiers");
        if (!mod)
            known = 0;
        st->used[st->mod_count] = 0;
        st->mods[st->mod_count++] = mod;
        lex_next(lx);
    }
    if (!known) {
        // Accepted here; running it makes the launch fail with a message that names it.
        lex_skip_statement(lx);
        st->mod_count = 0;
        st->op_len = 0;
        decode(p, st);
        return;
    }
    while (!lex_is(lx, ';')) {
        if (st->count == MAX_OPERANDS)
            lex_fail(lx, PTX_INVALID_PTX, "too many operands");
        st->ops[st->count++] = parse_operand(p, 0);
        if (!lex_accept(lx, ','))
            break;
    }
    lex_expect(lx, ';');
    decode(p, st);
}

// `name : .callprototype ... ;` and `name : .branchtargets a, b;`. The latter is kept for brx.idx.
static void parse_labelled_directive(parser *p, token name)
{
    lexer *lx = &p->lx;
    symbol *s = sym_add(p, name.s, name.len, SYM_PROTO);
    if (lex_dot(lx, "branchtargets")) {
        int32_t zero = 0;
        s->slot = INT32_MAX;
        s->count = 0;
        do {
            lex_next(lx);
            if (lx->t.kind != TK_NAME)
                lex_fail(lx, PTX_INVALID_PTX, "a label is expected");
            int32_t at = list_add(p, &zero, 1);
            if (!s->count++)
                s->slot = at;
            label_use(p, lx->t.s, lx->t.len, 0, at);
            lex_next(lx);
        } while (lex_is(lx, ','));
        lex_expect(lx, ';');
    } else {
        lex_skip_statement(lx);
    }
}

static void parse_body_directive(parser *p)
{
    lexer *lx = &p->lx;
    ptx_space space;
    if (lex_dot(lx, "reg")) {
        lex_next(lx);
        parse_registers(p);
    } else if (space_of_token(lx, &space)) {
        lex_next(lx);
        parse_variable(p, space, LINK_LOCAL);
    } else if (lex_dot(lx, "extern")) {
        lex_next(lx);
        if (!space_of_token(lx, &space))
            lex_fail(lx, PTX_INVALID_PTX, "a state space is expected after .extern");
        lex_next(lx);
        parse_variable(p, space, LINK_EXTERN);
    } else if (lex_dot(lx, "loc") || lex_dot(lx, "file")) {
        uint32_t line = lx->t.line;
        do
            lex_next(lx);
        while (lx->t.kind != TK_EOF && lx->t.line == line);
    } else if (lex_dot(lx, "pragma")) {
        lex_skip_statement(lx);
    } else {
        lex_fail(lx, PTX_INVALID_PTX, "unknown directive '%.*s'", (int)(lx->t.len > 40 ? 40 : lx->t.len), lx->t.s);
    }
}

// Current token: the '{' of the function. Its own scope, with the parameters, is open already.
void parse_body(parser *p)
{
    lexer *lx = &p->lx;
    uint32_t outer = p->depth;
    statement st = {0};
    lex_expect(lx, '{');
    for (;;) {
        if (lx->t.kind == TK_EOF)
            lex_fail(lx, PTX_INVALID_PTX, "'}' expected, the text ends");
        if (lex_accept(lx, '{')) {
            scope_enter(p);
        } else if (lex_is(lx, '}')) {
            if (p->depth == outer)
                break;
            p->frame_now = p->frame_mark[p->depth];
            scope_leave(p);
            lex_next(lx);
        } else if (lex_accept(lx, ';')) {
            continue;
        } else if (lx->t.kind == TK_DOT) {
            parse_body_directive(p);
        } else if (lx->t.kind == TK_NAME || lex_is(lx, '@')) {
            st.line = lx->t.line;
            st.text = (uint32_t)(lx->t.s - lx->text);
            st.pred = -1;
            if (lex_is(lx, '@'))
                parse_predicate(p, &st);
            if (lx->t.kind != TK_NAME)
                lex_fail(lx, PTX_INVALID_PTX, "an instruction is expected");
            lexer saved = *lx;
            token name = lx->t;
            lex_next(lx);
            if (st.pred < 0 && lex_accept(lx, ':')) {
                if (lex_dot(lx, "callprototype") || lex_dot(lx, "branchtargets") || lex_dot(lx, "calltargets"))
                    parse_labelled_directive(p, name);
                else
                    label_define(p, name.s, name.len);
            } else {
                *lx = saved;
                parse_instruction(p, &st);
            }
        } else {
            lex_fail(lx, PTX_INVALID_PTX, "an instruction is expected before '%.*s'",
                     (int)(lx->t.len > 40 ? 40 : lx->t.len), lx->t.s);
        }
    }
    // Running off the end returns, and gives labels at the end something to name.
    st = (statement){.op = "ret", .op_len = 3, .line = lx->t.line, .text = (uint32_t)(lx->t.s - lx->text), .pred = -1};
    decode(p, &st);
    lex_next(lx);
}
