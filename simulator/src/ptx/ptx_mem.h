// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Handlers of instructions that read and write memory or convert addresses.
#ifndef SIM_PTX_MEM_H
#define SIM_PTX_MEM_H

#include "ptx/ptx_types.h"

#define PTX_RANK_SHIFT 24  // of the rank plus one in a shared address of another block of the cluster

typedef enum atom_op {
    ATOM_ADD,
    ATOM_MIN,
    ATOM_MAX,
    ATOM_INC,
    ATOM_DEC,
    ATOM_AND,
    ATOM_OR,
    ATOM_XOR,
    ATOM_EXCH,
    ATOM_CAS,
    ATOM_OPS
} atom_op;

// `in` has its type, n, space, operands set.
exec_fn ptx_load_handler(const insn *in, int uniform_param);
exec_fn ptx_store_handler(const insn *in);
int ptx_atom_exists(ptx_type type, atom_op op);
exec_fn ptx_atom_handler(const insn *in);  // NULL if the operation does not exist on the type
// Combines what is at `p` with a value, atomically.
void ptx_reduce(ptx_type type, atom_op op, void *p, const void *value, int flush_f32);
// Global memory that the kernel may write, or NULL.
void *ptx_find_writable(const warp *w, uint64_t address, uint32_t size);
exec_fn ptx_cvta_handler(int to_space);
exec_fn ptx_isspacep_handler(void);
exec_fn ptx_mapa_handler(void);
exec_fn ptx_getctarank_handler(void);
exec_fn ptx_copy_handler(void);  // cp.async, done at once
unsigned ptx_element_bytes(ptx_type type);

#endif
