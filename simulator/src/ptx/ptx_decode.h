// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Turning statements into instructions.
//
// A decoder takes the qualifiers it understands and fills in an instruction. If a qualifier is left over, or
// there is no handler for the types, the instruction becomes one that fails when it is run.
#ifndef SIM_PTX_DECODE_H
#define SIM_PTX_DECODE_H

#include "ptx/ptx_mods.h"
#include "ptx/ptx_parse.h"

typedef struct decoder {
    parser *p;
    statement *st;
    insn in;  // becomes the instruction; in.run NULL: not supported
} decoder;

typedef void (*decode_fn)(decoder *d, int arg);

int take(decoder *d, ptx_mod mod);
ptx_type take_type(decoder *d);  // the next type, T_NONE if there is none
ptx_type peek_type(const decoder *d);
ptx_round take_round(decoder *d);
void take_flag(decoder *d, ptx_mod mod, uint32_t flag);
void take_ordering(decoder *d);  // .relaxed, .acquire, .gpu, ...
void take_cache(decoder *d);     // .ca, .L1::evict_last, ...
int take_space(decoder *d);      // ptx_space; SP_GENERIC if there is none
int take_atom_op(decoder *d);    // atom_op; -1 if there is none

void need(decoder *d, unsigned least, unsigned most);  // number of operands
int32_t source(decoder *d, unsigned index, ptx_type type);
int32_t source_of(decoder *d, const operand *o, ptx_type type);
int32_t predicate(decoder *d, const operand *o, uint32_t negated_flag);
int32_t destination(decoder *d, const operand *o);
int special_register(decoder *d, const operand *o);
void address(decoder *d, const operand *o);  // fills a, imm, flags, space
_Noreturn void bad_operand(decoder *d, const char *what);
insn blank_insn(void);
void append(decoder *d, insn in);  // an instruction before the one being decoded

typedef struct opcode {
    const char *name;
    decode_fn decode;
    int arg;
} opcode;
extern const opcode ptx_alu_opcodes[], ptx_memory_opcodes[], ptx_flow_opcodes[], ptx_texture_opcodes[];

#endif
