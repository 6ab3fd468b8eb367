// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Tokens of PTX text.
#include "ptx/ptx_lex.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/ptx_types.h"

// ---- arena

struct chunk {
    struct chunk *next;
    size_t used, size;
    _Alignas(16) char data[];
};

struct ptx_arena {
    struct chunk *chunks;
    size_t left;  // what may still be taken: text cannot make us allocate without bound
};

ptx_arena *ptx_arena_new(size_t limit)
{
    ptx_arena *arena = calloc(1, sizeof *arena);
    if (arena)
        arena->left = limit;
    return arena;
}

void *ptx_arena_alloc(ptx_arena *arena, size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + 15) & ~(size_t)15;
    struct chunk *c = arena->chunks;
    if (!c || c->size - c->used < size) {
        size_t want = size > 65536 ? size : 65536;
        if (want > arena->left)
            return NULL;
        c = malloc(sizeof *c + want);
        if (!c)
            return NULL;
        arena->left -= want;
        c->used = 0;
        c->size = want;
        c->next = arena->chunks;
        arena->chunks = c;
    }
    void *p = c->data + c->used;
    c->used += size;
    return memset(p, 0, size);
}

void ptx_arena_free(ptx_arena *arena)
{
    if (!arena)
        return;
    for (struct chunk *c = arena->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(arena);
}

void *lex_alloc(lexer *lx, size_t size)
{
    void *p = ptx_arena_alloc(lx->arena, size);
    if (!p)
        lex_fail(lx, PTX_OUT_OF_MEMORY, "the module needs too much memory");
    return p;
}

const char *lex_intern(lexer *lx, const char *s, size_t len)
{
    char *p = lex_alloc(lx, len + 1);
    memcpy(p, s, len);
    return p;
}

// ---- errors

static _Noreturn void fail(lexer *lx, int result, uint32_t line, const char *fmt, va_list ap)
{
    if (lx->log && lx->log_len) {
        int n = snprintf(lx->log, lx->log_len, "line %u: ", line);
        if (n > 0 && (size_t)n < lx->log_len)
            vsnprintf(lx->log + n, lx->log_len - (size_t)n, fmt, ap);
    }
    lx->result = result;
    longjmp(*lx->fail, 1);
}

void lex_fail(lexer *lx, int result, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fail(lx, result, lx->t.line, fmt, ap);
}

void lex_fail_at(lexer *lx, uint32_t line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fail(lx, PTX_INVALID_PTX, line, fmt, ap);
}

// ---- tokens

static int is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}

static int is_digit(char c) { return c >= '0' && c <= '9'; }

static int is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' || c == '$';
}

static int hex_value(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static char peek(const lexer *lx, size_t n) { return (size_t)(lx->end - lx->p) > n ? lx->p[n] : '\0'; }

static void skip_space(lexer *lx)
{
    while (lx->p < lx->end) {
        char c = *lx->p;
        if (c == '\n') {
            lx->line++;
            lx->p++;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
            lx->p++;
        } else if (c == '/' && peek(lx, 1) == '/') {
            while (lx->p < lx->end && *lx->p != '\n')
                lx->p++;
        } else if (c == '/' && peek(lx, 1) == '*') {
            lx->p += 2;
            while (lx->p < lx->end && !(*lx->p == '*' && peek(lx, 1) == '/')) {
                if (*lx->p == '\n')
                    lx->line++;
                lx->p++;
            }
            lx->p = lx->end - lx->p >= 2 ? lx->p + 2 : lx->end;
        } else {
            return;
        }
    }
}

static void lex_hex_float(lexer *lx, int digits)
{
    uint64_t v = 0;
    lx->p += 2;
    for (int i = 0; i < digits; i++) {
        int h = hex_value(peek(lx, 0));
        if (h < 0)
            lex_fail(lx, PTX_INVALID_PTX, "a float constant needs %d hexadecimal digits", digits);
        v = v * 16 + (unsigned)h;
        lx->p++;
    }
    lx->t.kind = TK_FLOAT;
    lx->t.float_bytes = (uint8_t)(digits / 2);
    lx->t.value = v;
}

static void lex_number(lexer *lx)
{
    char c1 = peek(lx, 1);
    if (*lx->p == '0' && (c1 == 'f' || c1 == 'F')) {
        lex_hex_float(lx, 8);
        return;
    }
    if (*lx->p == '0' && (c1 == 'd' || c1 == 'D')) {
        lex_hex_float(lx, 16);
        return;
    }
    unsigned base = 10;
    if (*lx->p == '0') {
        if (c1 == 'x' || c1 == 'X')
            base = 16;
        else if (c1 == 'b' || c1 == 'B')
            base = 2;
        else if (is_digit(c1))
            base = 8;
    }
    if (base == 10 || base == 8) {
        // A decimal float needs its own look-ahead; strtod wants a NUL, which the text need not have.
        const char *q = lx->p;
        while (q < lx->end && is_digit(*q))
            q++;
        if (q < lx->end && (*q == '.' || *q == 'e' || *q == 'E')) {
            char buf[64];
            size_t n = 0;
            q = lx->p;
            while (q < lx->end && n < sizeof buf - 1 &&
                   (is_digit(*q) || *q == '.' || *q == 'e' || *q == 'E' ||
                    ((*q == '+' || *q == '-') && n && (buf[n - 1] == 'e' || buf[n - 1] == 'E'))))
                buf[n++] = *q++;
            buf[n] = 0;
            double d = strtod(buf, NULL);
            memcpy(&lx->t.value, &d, 8);
            lx->t.kind = TK_FLOAT;
            lx->t.float_bytes = 8;
            lx->p = q;
            return;
        }
    }
    if (base == 16 || base == 2)
        lx->p += 2;
    uint64_t v = 0;
    int any = 0;
    for (;;) {
        int h = hex_value(peek(lx, 0));
        if (h < 0 || (unsigned)h >= base)
            break;
        if (v > (UINT64_MAX - (unsigned)h) / base)
            lex_fail(lx, PTX_INVALID_PTX, "integer constant too large");
        v = v * base + (unsigned)h;
        lx->p++;
        any = 1;
    }
    if (!any)
        lex_fail(lx, PTX_INVALID_PTX, "malformed integer constant");
    if (peek(lx, 0) == 'U' || peek(lx, 0) == 'u')
        lx->p++;
    lx->t.kind = TK_INT;
    lx->t.value = v;
}

void lex_next(lexer *lx)
{
    skip_space(lx);
    lx->t.line = lx->line;
    lx->t.s = lx->p;
    lx->t.len = 0;
    if (lx->p >= lx->end || *lx->p == '\0') {
        lx->t.kind = TK_EOF;
        lx->p = lx->end;
        return;
    }
    char c = *lx->p;
    if (is_name_start(c)) {
        lx->t.kind = TK_NAME;
        lx->p++;
        while (lx->p < lx->end && is_name(*lx->p))
            lx->p++;
    } else if (is_digit(c)) {
        lex_number(lx);
    } else if (c == '.' && (is_name(peek(lx, 1)))) {
        lx->t.kind = TK_DOT;
        lx->p++;
        // "::" joins the parts of a qualifier (.shared::cta, .L2::128B).
        while (lx->p < lx->end && (is_name(*lx->p) || (*lx->p == ':' && peek(lx, 1) == ':' && is_name(peek(lx, 2)))))
            lx->p += *lx->p == ':' ? 2 : 1;
    } else if (c == '"') {
        lx->t.kind = TK_STRING;
        lx->p++;
        while (lx->p < lx->end && *lx->p != '"') {
            if (*lx->p == '\n')
                lx->line++;
            if (*lx->p == '\\' && lx->end - lx->p > 1)
                lx->p++;
            lx->p++;
        }
        if (lx->p >= lx->end)
            lex_fail(lx, PTX_INVALID_PTX, "a string without an end");
        lx->p++;
    } else {
        lx->t.kind = TK_PUNCT;
        lx->t.punct = c;
        lx->p++;
    }
    lx->t.len = (uint32_t)(lx->p - lx->t.s);
}

int lex_accept(lexer *lx, char c)
{
    if (!lex_is(lx, c))
        return 0;
    lex_next(lx);
    return 1;
}

void lex_expect(lexer *lx, char c)
{
    if (!lex_accept(lx, c)) {
        int n = lx->t.len > 40 ? 40 : (int)lx->t.len;
        if (lx->t.kind == TK_EOF)
            lex_fail(lx, PTX_INVALID_PTX, "'%c' expected, the text ends", c);
        lex_fail(lx, PTX_INVALID_PTX, "'%c' expected before '%.*s'", c, n, lx->t.s);
    }
}

int lex_dot(const lexer *lx, const char *name)
{
    size_t n = strlen(name);
    return lx->t.kind == TK_DOT && lx->t.len == n + 1 && memcmp(lx->t.s + 1, name, n) == 0;
}

void lex_skip_block(lexer *lx)
{
    unsigned depth = 0;
    do {
        if (lx->t.kind == TK_EOF)
            lex_fail(lx, PTX_INVALID_PTX, "'}' expected, the text ends");
        if (lex_is(lx, '{'))
            depth++;
        else if (lex_is(lx, '}'))
            depth--;
        lex_next(lx);
    } while (depth);
}

void lex_skip_statement(lexer *lx)
{
    unsigned depth = 0;
    for (;;) {
        if (lx->t.kind == TK_EOF)
            lex_fail(lx, PTX_INVALID_PTX, "';' expected, the text ends");
        if (lex_is(lx, '{'))
            depth++;
        else if (lex_is(lx, '}')) {
            if (!depth)
                lex_fail(lx, PTX_INVALID_PTX, "';' expected before '}'");
            depth--;
        } else if (lex_is(lx, ';') && !depth) {
            lex_next(lx);
            return;
        }
        lex_next(lx);
    }
}

// ---- constant expressions

static uint64_t expr(lexer *lx, int min_prec, unsigned depth);

static uint64_t primary(lexer *lx, unsigned depth)
{
    if (depth > 64)
        lex_fail(lx, PTX_INVALID_PTX, "expression nested too deeply");
    if (lx->t.kind == TK_INT) {
        uint64_t v = lx->t.value;
        lex_next(lx);
        return v;
    }
    if (lex_accept(lx, '-'))
        return 0 - primary(lx, depth + 1);
    if (lex_accept(lx, '+'))
        return primary(lx, depth + 1);
    if (lex_accept(lx, '~'))
        return ~primary(lx, depth + 1);
    if (lex_accept(lx, '!'))
        return !primary(lx, depth + 1);
    if (lex_accept(lx, '(')) {
        if (lx->t.kind == TK_DOT) {  // a cast, (.s64) or (.u64): both are 64 bits here already
            lex_next(lx);
            lex_expect(lx, ')');
            return primary(lx, depth + 1);
        }
        uint64_t v = expr(lx, 0, depth + 1);
        lex_expect(lx, ')');
        return v;
    }
    lex_fail(lx, PTX_INVALID_PTX, "a constant is expected");
}

// Two-character operators are recognised by their first character; the lexer gives single characters.
static int precedence(const lexer *lx)
{
    if (lx->t.kind != TK_PUNCT)
        return -1;
    switch (lx->t.punct) {
    case '|': return 1;
    case '^': return 2;
    case '&': return 3;
    case '<':
    case '>': return peek(lx, 0) == lx->t.punct ? 4 : -1;
    case '+':
    case '-': return 5;
    case '*':
    case '/':
    case '%': return 6;
    default: return -1;
    }
}

static uint64_t expr(lexer *lx, int min_prec, unsigned depth)
{
    uint64_t v = primary(lx, depth);
    for (;;) {
        int prec = precedence(lx);
        if (prec < 0 || prec <= min_prec)
            return v;
        char op = lx->t.punct;
        lex_next(lx);
        if (op == '<' || op == '>')
            lex_next(lx);
        uint64_t r = expr(lx, prec, depth + 1);
        switch (op) {
        case '|': v |= r; break;
        case '^': v ^= r; break;
        case '&': v &= r; break;
        case '<': v = r < 64 ? v << r : 0; break;
        case '>': v = r < 64 ? v >> r : 0; break;
        case '+': v += r; break;
        case '-': v -= r; break;
        case '*': v *= r; break;
        default:
            if (!r)
                lex_fail(lx, PTX_INVALID_PTX, "division by zero in a constant");
            v = op == '/' ? v / r : v % r;
        }
    }
}

uint64_t lex_expression(lexer *lx) { return expr(lx, 0, 0); }
