// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// What the reader produces and the interpreter runs: instructions, functions, variables, the module.
#ifndef SIM_PTX_TYPES_H
#define SIM_PTX_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "ptx/ptx.h"

#define WARP 32
#define FULL 0xffffffffu

// CUresult numbers that this part returns; it has no need of cuda.h.
enum {
    PTX_OK = 0,
    PTX_INVALID_VALUE = 1,
    PTX_OUT_OF_MEMORY = 2,
    PTX_INVALID_PTX = 218,
    PTX_UNSUPPORTED_VERSION = 222,
    PTX_ILLEGAL_ADDRESS = 700,
    PTX_LAUNCH_OUT_OF_RESOURCES = 701,
    PTX_LAUNCH_TIMEOUT = 702,
    PTX_ASSERT = 710,
    PTX_STACK_ERROR = 714,
    PTX_ILLEGAL_INSTRUCTION = 715,
    PTX_MISALIGNED_ADDRESS = 716,
    PTX_INVALID_PC = 718,
    PTX_LAUNCH_FAILED = 719,
    PTX_COOPERATIVE_TOO_LARGE = 720,
    PTX_NOT_SUPPORTED = 801,
};

typedef enum ptx_type {
    T_NONE,
    T_B8,
    T_B16,
    T_B32,
    T_B64,
    T_B128,
    T_U8,
    T_U16,
    T_U32,
    T_U64,
    T_S8,
    T_S16,
    T_S32,
    T_S64,
    T_F16,
    T_F16X2,
    T_BF16,
    T_BF16X2,
    T_F32,
    T_F64,
    T_F32X2,
    T_PRED,
    T_TF32,
    T_E4M3X2,
    T_E5M2X2,
    T_U16X2,
    T_S16X2,
    T_COUNT
} ptx_type;

typedef enum ptx_space { SP_GENERIC, SP_GLOBAL, SP_SHARED, SP_LOCAL, SP_CONST, SP_PARAM, SP_REG } ptx_space;

typedef enum ptx_round { R_NONE, R_RN, R_RZ, R_RM, R_RP, R_RNI, R_RZI, R_RMI, R_RPI, R_RNA } ptx_round;

// Instruction flags. One set for all instructions, so that a message can always name them.
enum {
    F_FTZ = 1,
    F_SAT = 2,
    F_NAN = 4,
    F_ABS = 8,
    F_RELU = 16,
    F_XORSIGN = 32,
    F_NEG_C = 64,  // the predicate source is negated
    F_ACQUIRE = 128,
    F_RELEASE = 256,
    F_FRAME = 512,  // the address is relative to the frame in local memory
    F_CC_OUT = 1024,
    F_CC_IN = 2048,
    F_HI = 4096,
    F_NEG_A = 16384,  // the first predicate source is negated
    F_NOINC = 32768,
    F_SATFINITE = 65536,
};

typedef struct warp warp;
typedef struct insn insn;

// What a handler tells the loop of the warp.
typedef enum step {
    ST_NEXT,   // go on with the next instruction
    ST_JUMP,   // w->pc is set, the group is unchanged
    ST_SPLIT,  // every lane of the group has its own state now; pick a group anew
    ST_FAULT,  // the launch has failed; the fault is recorded
} step;

// `m` holds the lanes that execute (never 0), a subset of w->active.
typedef step (*exec_fn)(warp *w, const insn *in, uint32_t m);

// Operands are references: >= 0 a register slot, < 0 the complement of an index into the constant pool.
#define NO_OPERAND INT32_MIN
struct insn {
    exec_fn run;
    int64_t imm;  // address offset, branch target, constant modifier
    int32_t d, a, b, c, e;
    int32_t pred;  // -1, or slot * 2 + negated
    int32_t list;  // index into module->lists, for vectors and argument lists
    uint32_t flags;
    uint32_t line;
    uint32_t text;  // offset in the source, for messages
    uint8_t type, stype, n, space, sub, round;
    uint8_t dtype, spare;
};

typedef struct ptx_fn ptx_fn;
typedef struct ptx_var {
    const char *name;
    struct ptx_var *next;
    uint64_t address;  // host address, offset in its window, or offset in the frame
    uint64_t size;     // bytes
    uint32_t align;
    uint32_t line;
    uint32_t unit;  // the text that defines it
    uint8_t space, type, defined, is_extern, managed, is_array, is_ptr, entry_param, weak;
    ptx_fn *owner;  // the function of a shared variable, NULL at module scope
    int32_t slot;   // for a parameter in a register, else -1
    struct ptx_init *init;
} ptx_var;

// One initialised piece of a variable: bytes, or an address to be filled in.
typedef struct ptx_init {
    struct ptx_init *next;
    uint64_t offset, value;
    const char *symbol;  // whose address is added: that of a variable or of a function
    struct ptx_var *var;
    ptx_fn *fn;
    uint32_t line;
    uint8_t size, generic, shift;
} ptx_init;

struct ptx_fn {
    const char *name;
    ptx_fn *next;
    uint32_t index;
    uint32_t first, count;  // its instructions in module->code
    uint32_t slots;         // register slots
    uint32_t frame;         // bytes of its local frame
    uint32_t line;
    ptx_var **params, **rets;
    uint32_t param_count, ret_count;
    uint32_t param_bytes;
    uint64_t shared;  // bytes of its own .shared variables
    uint32_t unit;    // the text that defines it
    uint8_t entry, defined, is_extern, uses_common, calls, called, weak;
    exec_fn builtin;  // an extern function that the interpreter provides
    sim_ptx_entry info;
};

struct sim_ptx_module {
    sim_ptx_host host;
    struct ptx_arena *arena;
    struct ptx_heap *heap;  // of device-side malloc, unless the host has one
    const char *text;
    size_t text_len;
    uint32_t version, target;
    insn *code;
    uint32_t code_count;
    uint64_t *consts;  // WARP copies of each, so that a constant reads like a register
    uint32_t const_count;
    int32_t *lists;
    ptx_fn **fns;
    uint32_t fn_count;
    ptx_fn **entries;
    uint32_t entry_count;
    sim_ptx_global *globals;
    uint32_t global_count;
    uint64_t global_base, global_end;  // one allocation for .global
    uint64_t const_base, const_end;    // and one for .const
    uint8_t *fn_tokens;                // the address of fn_tokens[i] is the address of function i
    uint32_t dyn_shared;               // where dynamic shared memory starts in the window of every kernel
    uint32_t common_shared;            // .shared of device functions and at module scope, at the start of the window
    int uses_reserved;                 // the text names %reserved_smem_offset
    uint64_t frames;                   // sum of the frames of all device functions
};

#endif
