// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// State of the reader while it turns text into a module.
#ifndef SIM_PTX_PARSE_H
#define SIM_PTX_PARSE_H

#include "ptx/ptx_lex.h"
#include "ptx/ptx_types.h"

#define MAX_OPERANDS 12
#define MAX_MODS 16
#define MAX_LIST 256
#define MAX_SCOPES 64
#define SYM_BUCKETS 8192

typedef enum sym_kind { SYM_REG, SYM_RANGE, SYM_VAR, SYM_FN, SYM_PROTO } sym_kind;

typedef struct symbol {
    const char *name;
    uint32_t len, hash;
    sym_kind kind;
    struct symbol *next;        // in its bucket
    struct symbol *scope_next;  // in its scope
    uint32_t scope;             // depth
    uint32_t unit;              // the text that declared it
    uint8_t local;              // at module scope: other texts do not see it
    int32_t slot;               // register, -1 until it is used
    uint32_t count;             // of a range
    uint8_t type;
    ptx_var *var;
    ptx_fn *fn;
} symbol;

typedef enum op_kind {
    OP_NONE,
    OP_REG,
    OP_INT,
    OP_FLOAT,
    OP_VAR,
    OP_FN,
    OP_NAME,
    OP_VEC,
    OP_ADDR,
    OP_SREG,
    OP_SINK,
    OP_LIST,
    OP_TEXELS  // [handle, {coordinates}]
} op_kind;

typedef struct operand {
    op_kind kind;
    uint8_t neg;   // '!' before a predicate
    uint8_t type;  // of a register
    uint8_t float_bytes;
    int32_t slot;    // register, or base of an address (-1: none)
    uint64_t value;  // constant, or offset of an address or a variable
    ptx_var *var;    // variable, or base of an address
    ptx_fn *fn;
    const char *name;
    uint32_t len;
    uint32_t n;  // of a vector or list
    struct operand *items;
    struct operand *second;  // p|q
} operand;

typedef struct statement {
    const char *op;  // points into the text, not terminated
    uint32_t op_len;
    uint32_t line, text;
    uint16_t mods[MAX_MODS];
    uint8_t used[MAX_MODS];
    unsigned mod_count;
    unsigned count;
    operand ops[MAX_OPERANDS];
    int32_t pred;  // as insn.pred
} statement;

typedef struct label {
    const char *name;
    uint32_t len, hash, scope, pc, line;
    int is_ref;  // a use, with pc the instruction to patch and list the element of a list, if any
    int64_t list;
    struct label *next;
} label;

typedef struct const_key {
    uint64_t value;
    const void *object;  // ptx_var or ptx_fn whose address is added, or NULL
    uint8_t kind;        // 0 plain, 1 variable, 2 function
} const_key;

// What stands before a declaration at module scope.
typedef enum linkage {
    LINK_LOCAL,  // nothing: other texts may have another thing of that name
    LINK_VISIBLE,
    LINK_WEAK,  // gives way to another definition
    LINK_EXTERN
} linkage;

typedef struct parser {
    lexer lx;
    sim_ptx_module *m;
    uint32_t unit;   // which of the texts that are linked is being read
    int check_only;  // what is extern stays so
    symbol *buckets[SYM_BUCKETS];
    symbol *scopes[MAX_SCOPES];
    uint32_t depth;  // 0 at module scope
    uint32_t frame_mark[MAX_SCOPES];
    uint32_t scope_id[MAX_SCOPES];
    uint32_t *scope_parent;  // per scope of the current function, for labels
    uint32_t scope_count, scope_cap;
    ptx_fn *fn;  // the function being read
    uint32_t frame_now;
    label *labels, *refs;  // of the current function
    label **label_buckets;
    ptx_var *vars, **vars_end;  // module variables and all shared ones, in order
    ptx_fn *fns, **fns_end;
    uint32_t fn_count;
    uint32_t code_cap, list_count, list_cap;
    const_key *keys;
    uint32_t key_cap, *key_hash, key_hash_cap;
} parser;

// ptx_symbols.c
symbol *sym_find(parser *p, const char *name, size_t len);
symbol *sym_add(parser *p, const char *name, size_t len, sym_kind kind);
int32_t sym_slot(parser *p, symbol *s);
symbol *sym_own(parser *p, const char *name, size_t len, int is_local);
void symbols_end_unit(parser *p);
void scope_enter(parser *p);
void scope_leave(parser *p);
insn *emit(parser *p, const statement *st);
int32_t const_ref(parser *p, uint64_t value);
int32_t const_var(parser *p, ptx_var *var, uint64_t offset);
int32_t const_fn(parser *p, ptx_fn *fn);
int32_t list_add(parser *p, const int32_t *items, uint32_t n);
int32_t new_slot(parser *p, unsigned n);
void label_define(parser *p, const char *name, size_t len);
void label_use(parser *p, const char *name, size_t len, uint32_t pc, int64_t list);
void labels_resolve(parser *p);

// ptx_vars.c
int type_of_token(const lexer *lx, ptx_type *type);
unsigned type_size(ptx_type type);
int space_of_token(const lexer *lx, ptx_space *space);
void parse_variable(parser *p, ptx_space space, linkage link);
void resolve_initialisers(parser *p);
ptx_var *parse_param(parser *p, int in_body);
uint32_t frame_place(parser *p, uint64_t size, uint32_t align);
void place_variables(parser *p);
void fill_variables(parser *p);

// ptx_parse.c
int ptx_read(parser *p);

// ptx_body.c
void parse_body(parser *p);
void parse_registers(parser *p);

// ptx_decode.c
void decode(parser *p, statement *st);
int is_known_opcode(const char *name, size_t len);

#endif
