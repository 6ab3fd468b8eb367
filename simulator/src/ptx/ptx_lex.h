// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Tokens of PTX text, the arena that holds what is read from it, and the way out on an error.
#ifndef SIM_PTX_LEX_H
#define SIM_PTX_LEX_H

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ptx_arena ptx_arena;
ptx_arena *ptx_arena_new(size_t limit);
void *ptx_arena_alloc(ptx_arena *arena, size_t size);  // zeroed; NULL when over the limit
void ptx_arena_free(ptx_arena *arena);

typedef enum tok_kind {
    TK_EOF,
    TK_NAME,
    TK_DOT /* a name that starts with a dot */,
    TK_INT,
    TK_FLOAT,
    TK_STRING,
    TK_PUNCT
} tok_kind;

typedef struct token {
    tok_kind kind;
    char punct;
    uint8_t float_bytes;  // 4 for 0f, 8 for 0d and decimal
    const char *s;        // into the text
    uint32_t len;
    uint32_t line;
    uint64_t value;  // integer, or the bits of a float
} token;

typedef struct lexer {
    const char *text, *p, *end;
    uint32_t line;
    token t;  // the current token
    ptx_arena *arena;
    jmp_buf *fail;
    int result;  // CUresult set by lex_fail
    char *log;
    size_t log_len;
} lexer;

void lex_next(lexer *lx);
_Noreturn void lex_fail(lexer *lx, int result, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
_Noreturn void lex_fail_at(lexer *lx, uint32_t line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void *lex_alloc(lexer *lx, size_t size);
const char *lex_intern(lexer *lx, const char *s, size_t len);

static inline int lex_is(const lexer *lx, char c) { return lx->t.kind == TK_PUNCT && lx->t.punct == c; }
int lex_accept(lexer *lx, char c);
void lex_expect(lexer *lx, char c);
int lex_dot(const lexer *lx, const char *name);  // is the current token .name?
void lex_skip_block(lexer *lx);                  // current token is '{': skip to after its '}'
void lex_skip_statement(lexer *lx);              // skip to after the next ';' outside braces
uint64_t lex_expression(lexer *lx);              // a constant integer expression

#endif
