// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// What every part of the simulated driver shares: the header of the driver API, the shape of an entry point, and
// the state of the calling thread.

#ifndef SIM_H
#define SIM_H

// Makes cuda.h declare every version of every function under its exported name, so that the compiler checks our
// definitions against it.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_EXPORT __attribute__((visibility("default")))
#define SIM_LIKELY(x) __builtin_expect(!!(x), 1)
#define SIM_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define SIM_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SIM_UNUSED __attribute__((unused))

struct sim_context;
struct sim_point;
struct sim_stream;

// --- The calling thread ---------------------------------------------------------------------------------------

struct sim_thread {
    struct sim_context **contexts;  // the stack of current contexts; an entry may be NULL
    size_t depth, capacity;
    struct sim_thread_stream *streams;  // this thread's default stream in each context it has used
    unsigned slice;                     // milliseconds that synchronising may wait before it returns; 0: no limit
    bool resumes;                       // synchronising goes on with the points that the last slice left
    struct sim_point *points;           // those, with references to the streams
    size_t point_count;
    int failed;               // the device whose fault a call of the thread has met last
    CUresult fault;           // that fault; CUDA_SUCCESS before
    const char *function;     // the entry point being served, for reports
    bool per_thread_default;  // the entry point is a _ptsz or _ptds variant
    bool in_callback;         // a host function runs on this thread
    uint64_t id;              // never that of another thread, however long that is gone
    int capture_mode;         // a CUstreamCaptureMode
    unsigned calls;           // entry points being served, one inside the other
    bool counted;             // among the calls that a lock of the process waits for
};

struct sim_thread *sim_thread(void);

// --- Entry points ---------------------------------------------------------------------------------------------

// One word decides whether a call may go straight to its implementation.
enum { SIM_GATE_CLOSED, SIM_GATE_OPEN, SIM_GATE_WATCHED };
extern _Atomic int sim_gate;

void sim_record_call(const char *function, CUresult status);
void sim_gate_update(void);

// May the call be served? Refuses before initialisation, in host functions and where a fault is injected, and waits
// while the process is locked. Where it succeeds, sim_call_end follows.
CUresult sim_enter(const char *function);

void sim_call_begin(struct sim_thread *self, const char *function);
void sim_call_end(struct sim_thread *self);

void sim_log_failure(const char *function, CUresult status);  // in the error log

static inline CUresult sim_leave(const char *function, CUresult status)
{
    if (SIM_UNLIKELY(status != CUDA_SUCCESS))
        sim_log_failure(function, status);
    if (SIM_UNLIKELY(atomic_load_explicit(&sim_gate, memory_order_relaxed) == SIM_GATE_WATCHED))
        sim_record_call(function, status);
    return status;
}

#define SIM_ENTRY_POINT(name, params, call, setup, teardown) \
    SIM_EXPORT CUresult name params \
    { \
        CUresult sim_status_ = sim_enter(#name); \
        if (SIM_LIKELY(sim_status_ == CUDA_SUCCESS)) { \
            setup; \
            sim_status_ = call; \
            teardown; \
            sim_call_end(sim_thread()); \
        } \
        return sim_leave(#name, sim_status_); \
    }

// Defines the entry point `name`; the function body follows the macro.
#define SIM_API(name, params, args) \
    static CUresult name##_body params; \
    SIM_ENTRY_POINT(name, params, name##_body args, , ) \
    static CUresult name##_body params

// The same for a function whose default stream depends on the variant called; `suffix` is _ptsz or _ptds.
#define SIM_API_STREAM(name, suffix, params, args) \
    static CUresult name##_body params; \
    SIM_ENTRY_POINT(name, params, name##_body args, , ) \
    CUresult name##suffix params; \
    SIM_ENTRY_POINT(name##suffix, params, name##_body args, sim_thread()->per_thread_default = true, \
                    sim_thread()->per_thread_default = false) \
    static CUresult name##_body params

// --- Small helpers --------------------------------------------------------------------------------------------

#define SIM_TRY(expression) \
    do { \
        CUresult sim_try_ = (expression); \
        if (sim_try_ != CUDA_SUCCESS) \
            return sim_try_; \
    } while (0)

#define SIM_REQUIRE(condition) \
    do { \
        if (!(condition)) \
            return CUDA_ERROR_INVALID_VALUE; \
    } while (0)

// The same for what drivers cannot do, though it means something.
#define SIM_SUPPORTED(condition) \
    do { \
        if (!(condition)) \
            return CUDA_ERROR_NOT_SUPPORTED; \
    } while (0)

static inline size_t sim_round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

uint64_t sim_now_ns(void);

#endif
