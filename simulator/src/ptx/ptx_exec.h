// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// State of a running kernel, and what instruction handlers are written with.
//
// Registers of a warp are kept lane-wise: slot s of a frame is WARP consecutive 64-bit values. A predicate is
// one 32-bit mask, bit = lane, in an array beside them with one element per slot (not in the values: lanes at
// different depths have frames that overlap, and then a mask would lie in another lane's value). Values narrower
// than 64 bits have anything in the bits above: whoever reads a register casts to the type of the instruction.
//
// Every lane has its own pc, frame and call depth. The lanes that are at the same pc of the same frame run
// together as a group: w->active, w->pc, w->frame. Which group runs next is decided in ptx_warp.c.
#ifndef SIM_PTX_EXEC_H
#define SIM_PTX_EXEC_H

#include <pthread.h>
#include <string.h>

#include "ptx/ptx_types.h"

// Functions compiled for speed or for a newer processor inline it too.
#define INLINE static inline __attribute__((always_inline))

#define MAX_BARRIERS 16
#define MAX_WARPS 32
#define CACHED_RANGES 4

typedef struct launch launch;
typedef struct worker worker;
typedef struct block block;
typedef struct cluster cluster;

typedef struct call_record {
    uint32_t return_pc, frame, lframe, lsp;
} call_record;

struct warp {
    uint64_t *r;  // the frame of the running group
    uint32_t *p;  // its predicates
    const uint64_t *consts;
    uint32_t active;  // lanes of the running group, 0: pick one
    uint32_t pc;
    uint32_t frame;       // first slot of the frame
    uint32_t next_pc;     // the group meets other lanes here; UINT32_MAX: nobody to meet
    uint32_t live;        // lanes that have not exited
    uint32_t at_barrier;  // lanes that wait for the block (or cluster)
    uint32_t at_sync;     // lanes that wait for other lanes of the warp
    uint32_t exists;      // lanes that ever lived
    block *blk;
    worker *wk;
    const insn *code;
    uint64_t *regs;
    uint32_t *preds;
    uint32_t slots;      // capacity of regs and preds
    call_record *calls;  // [depth][lane]
    uint32_t call_cap;
    uint32_t index;         // of the warp in its block
    uint64_t steps;         // instructions run so far
    uint64_t fair_at;       // when the lanes that waited longest get a turn
    uint64_t favour_until;  // until then the favoured lane's group runs
    unsigned favoured;
    int lowest;  // no other lane that can run is at a lower pc than the group, nor has been called more deeply
    uint32_t cluster_arrived, cluster_waiting;  // lanes
    uint32_t lane_pc[WARP], lane_frame[WARP], depth[WARP];
    uint32_t lframe[WARP];         // frame in local memory
    uint32_t lsp[WARP];            // first free byte above it
    uint32_t last_run[WARP];       // the lower half of `steps` then
    uint32_t sync_mask[WARP];      // what the lanes in at_sync wait for
    uint32_t cluster_phase[WARP];  // the phase of the cluster barrier at which the lane arrived
    uint32_t tid[3][WARP];
    uint8_t *local;  // local memory of lane 0
    uint64_t temp[WARP] __attribute__((aligned(64))), sum[WARP];
};

typedef struct barrier {
    uint32_t arrived[MAX_WARPS];  // lanes, per warp
    uint32_t waiting[MAX_WARPS];
    uint32_t expected;    // threads; 0: all of the block
    uint32_t yes, votes;  // running result of barrier.red: how many said yes, of how many
    int used;
} barrier;

struct block {
    cluster *cl;
    launch *ln;
    uint32_t id[3], rank;  // rank in its cluster
    uint32_t warps, threads, live_threads;
    int active;  // not finished yet
    warp *w;
    uint8_t *shared;
    uint8_t *local;
    barrier barriers[MAX_BARRIERS];
};

// The unit of scheduling: the blocks of one cluster stay on one worker.
struct cluster {
    cluster *next;
    uint64_t first_block;  // linear index of the cluster
    uint32_t blocks, live_blocks;
    block *b;
    uint8_t *shared;  // of all its blocks, one after the other
    uint32_t phase;   // of the cluster barrier
    uint64_t slices;  // how often it has been run
    void *memory;     // one mapping: shared and local memory
    size_t memory_bytes;
};

typedef struct range_cache {
    uint64_t lo[CACHED_RANGES], hi[CACHED_RANGES];
    unsigned next;
} range_cache;

struct worker {
    launch *ln;
    pthread_t thread;
    uint64_t epoch;
    const uint64_t *epoch_now;  // of the host
    range_cache readable, writable;
    cluster *spare;  // blocks of finished clusters, for reuse
};

struct launch {
    int (*run)(warp *w, unsigned budget);  // warp_run, or what this processor runs faster
    const sim_ptx_module *m;
    const ptx_fn *fn;
    const sim_ptx_launch *in;
    sim_ptx_fault *fault;
    uint32_t grid[3], block[3], cluster[3];
    uint64_t block_count, cluster_count;
    uint64_t next_cluster;               // atomic
    int32_t result;                      // atomic: the first fault wins
    uint32_t threads, warps;             // per block
    uint32_t static_shared, shared_end;  // bytes; where dynamic shared memory ends
    uint32_t reserved;                   // offset of RESERVED_SHARED bytes of the system's, for cooperative groups
    uint32_t shared_size;                // from one block's window to the next
    uint32_t local_size;                 // per thread
    uint8_t *params;
    uint8_t *workspace;  // of grid synchronisation; cooperative launches
    uint64_t deadline;   // CLOCK_MONOTONIC ns, 0: none
    uint32_t sm_count;
};

#define WORKSPACE_BYTES 4096
#define RESERVED_SHARED 1024

// ---- operands

INLINE uint64_t *dst(const warp *w, int32_t o) { return w->r + (size_t)o * WARP; }

INLINE const uint64_t *src(const warp *w, int32_t o)
{
    return o >= 0 ? w->r + (size_t)o * WARP : w->consts + (size_t)~o * WARP;
}

// A predicate operand as a mask. Constant predicates are constants of all ones or zero.
INLINE uint32_t pred(const warp *w, int32_t o, int negated)
{
    uint32_t p = o >= 0 ? w->p[o] : (uint32_t)w->consts[(size_t)~o * WARP];
    return negated ? ~p : p;
}

INLINE void set_pred(const warp *w, int32_t o, uint32_t m, uint32_t value)
{
    if (o == NO_OPERAND)
        return;
    w->p[o] = (w->p[o] & ~m) | (value & m);
}

static inline void set_frame(warp *w, uint32_t frame)
{
    w->frame = frame;
    w->r = w->regs + (size_t)frame * WARP;
    w->p = w->preds + frame;
}

// Run a statement for every lane of m, with the lane in l. A full warp takes the loop that the compiler can
// turn into vector code.
#define EACH(...) \
    do { \
        if (m == FULL) { \
            _Pragma("GCC ivdep") for (unsigned l = 0; l < WARP; l++) { __VA_ARGS__ } \
        } else { \
            for (uint32_t left_ = m; left_; left_ &= left_ - 1) { \
                unsigned l = (unsigned)__builtin_ctz(left_); \
                __VA_ARGS__ \
            } \
        } \
    } while (0)

// The same without the vector loop, for bodies that are large or leave the function.
#define FOR_LANES(m) \
    for (uint32_t left_ = (m), l = 0; left_ && (l = (uint32_t)__builtin_ctz(left_), 1); left_ &= left_ - 1)

INLINE float as_f32(uint64_t v)
{
    uint32_t b = (uint32_t)v;
    float f;
    memcpy(&f, &b, 4);
    return f;
}

INLINE uint64_t of_f32(float f)
{
    uint32_t b;
    memcpy(&b, &f, 4);
    return b;
}

#define NAN32 0x7fffffffu  // what the hardware makes of every f32 NaN

INLINE uint64_t canonical(float f) { return f == f ? of_f32(f) : NAN32; }

INLINE double as_f64(uint64_t v)
{
    double d;
    memcpy(&d, &v, 8);
    return d;
}

INLINE uint64_t of_f64(double d)
{
    uint64_t b;
    memcpy(&b, &d, 8);
    return b;
}

// ---- faults (ptx_fault.c)

// Records the fault of the launch (the first one wins) and returns ST_FAULT.
step fault(warp *w, const insn *in, unsigned lane, int result, uint64_t address, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));

// ---- memory (ptx_mem.c)

// The host pointer behind an address, or NULL after recording a fault.
void *resolve(warp *w, const insn *in, unsigned lane, uint64_t address, uint32_t size, int is_write);
void *resolve_space(warp *w, const insn *in, unsigned lane, ptx_space space, uint64_t address, uint32_t size,
                    int is_write);
void forget_ranges(worker *wk, uint64_t epoch);
// Forgets what may be accessed if memory has been freed since. For instructions that access memory, before they do.
INLINE void check_epoch(worker *wk)
{
    uint64_t now = wk->epoch_now ? __atomic_load_n(wk->epoch_now, __ATOMIC_ACQUIRE) : wk->epoch;
    if (now != wk->epoch)
        forget_ranges(wk, now);
}
// The address that an instruction with an address operand means for a lane.
uint64_t effective(const warp *w, const insn *in, unsigned lane);
// Like resolve for a NUL-terminated string of device memory; NULL after a fault.
const char *resolve_string(warp *w, const insn *in, unsigned lane, uint64_t address, size_t limit, size_t *len);

// ---- scheduling (ptx_warp.c, ptx_sync.c, ptx_barrier.c, ptx_block.c, ptx_launch.c)

// Dissolve the group: each of its lanes is at `pc` of the group's frame from now on.
void spill_group(warp *w, uint32_t pc);
// Runs about `budget` instructions. Returns 0 if there was nothing to run.
int warp_run(warp *w, unsigned budget);
int warp_run_wide(warp *w, unsigned budget);
int grow_registers(warp *w, uint64_t slots);  // 0 if there is no memory for so many
void sync_after_exit(warp *w);
void barriers_after_exit(block *b);
int launch_stopped(const launch *ln);
int cluster_start(worker *wk, uint64_t index, cluster **out);
void cluster_free(cluster *cl);

#endif
