// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Handlers of integer and bit instructions, by operation and type.
#ifndef SIM_PTX_INT_H
#define SIM_PTX_INT_H

#include "ptx/ptx_types.h"

typedef enum int_op {
    INT_ADD,
    INT_SUB,
    INT_ADD_SAT,
    INT_SUB_SAT,
    INT_MUL_LO,
    INT_MUL_HI,
    INT_MUL_WIDE,
    INT_MAD_LO,
    INT_MAD_HI,
    INT_MAD_WIDE,
    INT_MAD_HI_SAT,
    INT_MUL24_LO,
    INT_MUL24_HI,
    INT_MAD24_LO,
    INT_MAD24_HI,
    INT_MAD24_HI_SAT,
    INT_DIV,
    INT_REM,
    INT_MIN,
    INT_MAX,
    INT_MIN_RELU,
    INT_MAX_RELU,
    INT_NEG,
    INT_ABS,
    INT_SAD,
    INT_OPS
} int_op;

typedef enum bit_op {
    BIT_AND,
    BIT_OR,
    BIT_XOR,
    BIT_NOT,
    BIT_CNOT,
    BIT_SHL,
    BIT_SHR,
    BIT_POPC,
    BIT_CLZ,
    BIT_BREV,
    BIT_BFE,
    BIT_BFI,
    BIT_BFIND,
    BIT_FNS,
    BIT_LOP3,
    BIT_SHF_L_WRAP,
    BIT_SHF_L_CLAMP,
    BIT_SHF_R_WRAP,
    BIT_SHF_R_CLAMP,
    BIT_BMSK_WRAP,
    BIT_BMSK_CLAMP,
    BIT_SZEXT_WRAP,
    BIT_SZEXT_CLAMP,
    BIT_PRMT,
    BIT_OPS
} bit_op;

// NULL if there is no such instruction.
exec_fn ptx_int_handler(int_op op, ptx_type type);
exec_fn ptx_int_carry(ptx_type type);
exec_fn ptx_bit_handler(bit_op op, ptx_type type);
exec_fn ptx_video_handler(void);
exec_fn ptx_dot_product(int ways, ptx_type a, ptx_type b);

#endif
