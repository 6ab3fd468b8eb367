// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Handlers of control flow, synchronisation and moves, and what the callee of a builtin needs.
#ifndef SIM_PTX_FLOW_H
#define SIM_PTX_FLOW_H

#include "ptx/ptx_types.h"

step ptx_run_bra(warp *w, const insn *in, uint32_t m);
step ptx_run_brx(warp *w, const insn *in, uint32_t m);
step ptx_run_call(warp *w, const insn *in, uint32_t m);
step ptx_run_call_indirect(warp *w, const insn *in, uint32_t m);
step ptx_run_ret(warp *w, const insn *in, uint32_t m);
step ptx_run_exit(warp *w, const insn *in, uint32_t m);
step ptx_run_trap(warp *w, const insn *in, uint32_t m);
step ptx_run_nop(warp *w, const insn *in, uint32_t m);
step ptx_run_fence(warp *w, const insn *in, uint32_t m);
step ptx_run_yield(warp *w, const insn *in, uint32_t m);
step ptx_run_unsupported(warp *w, const insn *in, uint32_t m);

// The argument list of a call in module->lists: returns, then arguments, after their two counts. Each is three
// numbers: where it is, its size in bytes, and whether it is at an offset of the frame (1) or an operand (0).
enum { CALL_RETS, CALL_ARGS, CALL_FIRST };
#define CALL_ITEM 3
uint64_t ptx_call_argument(const warp *w, const insn *in, unsigned lane, unsigned index);
void ptx_call_result(warp *w, const insn *in, unsigned lane, uint64_t value);

step ptx_run_barrier(warp *w, const insn *in, uint32_t m);
step ptx_run_barrier_arrive(warp *w, const insn *in, uint32_t m);
step ptx_run_cluster_arrive(warp *w, const insn *in, uint32_t m);
step ptx_run_cluster_wait(warp *w, const insn *in, uint32_t m);

typedef enum sync_op {
    SYNC_SHFL_UP,
    SYNC_SHFL_DOWN,
    SYNC_SHFL_BFLY,
    SYNC_SHFL_IDX,
    SYNC_VOTE_ALL,
    SYNC_VOTE_ANY,
    SYNC_VOTE_UNI,
    SYNC_VOTE_BALLOT,
    SYNC_MATCH_ANY,
    SYNC_MATCH_ALL,
    SYNC_REDUX,
    SYNC_ELECT,
    SYNC_WARP
} sync_op;
typedef enum redux_op { REDUX_ADD, REDUX_MIN, REDUX_MAX, REDUX_AND, REDUX_OR, REDUX_XOR } redux_op;
step ptx_run_sync(warp *w, const insn *in, uint32_t m);
step ptx_run_activemask(warp *w, const insn *in, uint32_t m);

step ptx_run_mov(warp *w, const insn *in, uint32_t m);
step ptx_run_mov128(warp *w, const insn *in, uint32_t m);
step ptx_run_mov_pred(warp *w, const insn *in, uint32_t m);
step ptx_run_pack(warp *w, const insn *in, uint32_t m);
step ptx_run_unpack(warp *w, const insn *in, uint32_t m);
step ptx_run_pack2(warp *w, const insn *in, uint32_t m);
step ptx_run_unpack2(warp *w, const insn *in, uint32_t m);
step ptx_run_frame_address(warp *w, const insn *in, uint32_t m);
step ptx_run_param_address(warp *w, const insn *in, uint32_t m);
step ptx_run_sreg(warp *w, const insn *in, uint32_t m);
step ptx_run_alloca(warp *w, const insn *in, uint32_t m);
step ptx_run_stacksave(warp *w, const insn *in, uint32_t m);
step ptx_run_stackrestore(warp *w, const insn *in, uint32_t m);
int ptx_sreg_find(const char *name, size_t len);  // -1 if unknown

#endif
