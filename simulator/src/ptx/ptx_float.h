// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Handlers of floating-point, half, comparison and conversion instructions, and the conversions they share.
#ifndef SIM_PTX_FLOAT_H
#define SIM_PTX_FLOAT_H

#include "ptx/ptx_types.h"

typedef enum float_op {
    FOP_ADD,
    FOP_SUB,
    FOP_MUL,
    FOP_FMA,
    FOP_DIV,
    FOP_RCP,
    FOP_SQRT,
    FOP_RSQRT,
    FOP_SIN,
    FOP_COS,
    FOP_LG2,
    FOP_EX2,
    FOP_TANH,
    FOP_ABS,
    FOP_NEG,
    FOP_MIN,
    FOP_MAX,
    FOP_COPYSIGN,
    FOP_OPS
} float_op;

// NULL if there is no such instruction.
exec_fn ptx_float_handler(float_op op, ptx_type type, ptx_round round, uint32_t flags);
exec_fn ptx_half_handler(float_op op, ptx_type type, uint32_t flags);
exec_fn ptx_testp_handler(ptx_type type);
exec_fn ptx_cvt_handler(const insn *in);

// Relations that a comparison accepts, as a set of: less, equal, greater, unordered.
enum { REL_LT = 1, REL_EQ = 2, REL_GT = 4, REL_UN = 8 };

// ptx_half.c. `mode` is R_RN, R_RZ, R_RM, R_RP or R_RNA; the double is rounded once.
uint16_t half_from_double(double v, ptx_round mode);
uint16_t bf16_from_double(double v, ptx_round mode);
double half_to_double(uint16_t h);
double bf16_to_double(uint16_t h);
float f32_from_double(double v, ptx_round mode);
// a * b + c as a double whose later rounding to at most 24 bits is as if rounded once (round to odd).
double fma_to_odd(double a, double b, double c);

uint8_t ptx_fp8_from_double(double v, int e5m2, int relu);
double ptx_fp8_to_double(uint8_t b, int e5m2);
uint32_t ptx_tf32_from_float(double v, ptx_round mode);

static inline int is_half_type(ptx_type t) { return t == T_F16 || t == T_BF16 || t == T_F16X2 || t == T_BF16X2; }

#endif
