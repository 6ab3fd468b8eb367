// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// What a helper leaves behind when it fails, and what cleanup could not do.
//
// A helper returns a status: 0, a CUresult, or one of our own (negative). The call that failed is kept per thread,
// because the Python code that builds the message runs later. Cleanup has nobody to return a status to: failures are
// queued for the whole process, and Python turns them into warnings when it next looks.
#ifndef CCC_ERROR_H
#define CCC_ERROR_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include <cuda.h>

#define CCC_CLOSED (-1)      // an object that the call needs was closed
#define CCC_NO_MEMORY (-2)   // malloc failed
#define CCC_NO_CONTEXT (-3)  // no context is current and none was given
#define CCC_TOO_LARGE (-4)   // the memory of another process is smaller than was claimed
#define CCC_FOREIGN (-5)     // only the process that created the pool allocates from it
#define CCC_UNCHECKED (-6)   // whether a launch can have what it asks for has to be looked up first
#define CCC_ATTEND (-7)      // no failure: it is done, and Python has something to do now
#define CCC_ELSEWHERE (-8)   // an array, or shared memory, is on another device
#define CCC_UNRESTORED (-9)  // it is done, but the context that was current before could not be made current again

#define CCC_COLD __attribute__((cold, noinline))
#define CCC_LIKELY(x) __builtin_expect(!!(x), 1)

typedef struct ccc_failure {
    const char *call;  // name of the function that failed; a string constant
    int status;
    int unrestored;  // the status of a failure to make the former context current again, besides; or 0
} ccc_failure;

static _Thread_local ccc_failure ccc_last;

// Remember a failure and return its status.
static CCC_COLD int ccc_fail(int status, const char *call)
{
    ccc_last = (ccc_failure){.call = call, .status = status};
    return status;
}

// Call a driver function; on failure remember its name and return its status from the enclosing helper.
#define CCC_TRY(function, ...) \
    do { \
        CUresult ccc_status_ = function(__VA_ARGS__); \
        if (!CCC_LIKELY(ccc_status_ == CUDA_SUCCESS)) \
            return ccc_fail((int)ccc_status_, #function); \
    } while (0)

// The same in a helper that returns no status.
#define CCC_TRY_OR(otherwise, function, ...) \
    do { \
        CUresult ccc_status_ = function(__VA_ARGS__); \
        if (!CCC_LIKELY(ccc_status_ == CUDA_SUCCESS)) { \
            ccc_fail((int)ccc_status_, #function); \
            return otherwise; \
        } \
    } while (0)

static int ccc_last_status(void) { return ccc_last.status; }

static const char *ccc_last_call(void) { return ccc_last.call; }

// Return the CUresult of a failure to make the former context current again, and forget it; 0: there was no failure.
static int ccc_pop_unrestored(void)
{
    int unrestored = ccc_last.unrestored;
    ccc_last.unrestored = 0;
    return unrestored;
}

// Failures of cleanup, and the driver object concerned.
typedef struct ccc_cleanup {
    const char *call;
    int status;
    uint64_t object;  // its driver handle, or its address; 0: none
} ccc_cleanup;

// Failures of cleanup, oldest first. In a storm of them the first are enough: later ones are dropped.
#define CCC_CLEANUP_SLOTS 32u
static ccc_cleanup ccc_cleanup_queue[CCC_CLEANUP_SLOTS];
static atomic_uint ccc_cleanup_count;  // recorded and not yet taken
static atomic_flag ccc_cleanup_lock = ATOMIC_FLAG_INIT;
static atomic_int ccc_exiting;

static CCC_COLD void ccc_cleanup_failed(int status, const char *call, uint64_t object)
{
    // A driver that is shutting down has already freed everything; at interpreter exit nobody can be warned.
    if (status == CUDA_ERROR_DEINITIALIZED || atomic_load(&ccc_exiting))
        return;
    while (atomic_flag_test_and_set_explicit(&ccc_cleanup_lock, memory_order_acquire))
        ;
    unsigned count = atomic_load(&ccc_cleanup_count);
    if (count < CCC_CLEANUP_SLOTS) {
        ccc_cleanup_queue[count] = (ccc_cleanup){call, status, object};
        atomic_store(&ccc_cleanup_count, count + 1);
    }
    atomic_flag_clear_explicit(&ccc_cleanup_lock, memory_order_release);
}

// Take one recorded failure of cleanup: its status, with the call and the driver object. 0: none is recorded.
static int ccc_cleanup_pop(const char **call, uint64_t *object)
{
    int status = 0;
    while (atomic_flag_test_and_set_explicit(&ccc_cleanup_lock, memory_order_acquire))
        ;
    unsigned count = atomic_load(&ccc_cleanup_count);
    if (count > 0) {
        *call = ccc_cleanup_queue[0].call;
        *object = ccc_cleanup_queue[0].object;
        status = ccc_cleanup_queue[0].status;
        memmove(ccc_cleanup_queue, ccc_cleanup_queue + 1, (count - 1) * sizeof *ccc_cleanup_queue);
        atomic_store(&ccc_cleanup_count, count - 1);
    }
    atomic_flag_clear_explicit(&ccc_cleanup_lock, memory_order_release);
    return status;
}

// Why Python has to act when a program has waited: a set of these. Without any, a wait returns 0.
#define CCC_ATTEND_COPIES 1  // it keeps host memory for copies
#define CCC_ATTEND_TASKS 2   // it has registered functions
static atomic_int ccc_attention;

static void ccc_attend(int reason) { atomic_fetch_or(&ccc_attention, reason); }

static void ccc_unattend(int reason) { atomic_fetch_and(&ccc_attention, ~reason); }

// What a helper returns that has waited.
static int ccc_waited(void)
{
    return CCC_LIKELY(atomic_load_explicit(&ccc_attention, memory_order_acquire) == 0) ? 0 : CCC_ATTEND;
}

static void ccc_set_exiting(void) { atomic_store(&ccc_exiting, 1); }

#endif
