// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// What threads may do, and in which order, while streams are captured.
#ifndef CCC_ORDER_H
#define CCC_ORDER_H

#include <pthread.h>

#include "handles/ccc_handle.h"

static atomic_int ccc_captures;  // of streams, that were begun here and have not ended

// The capture mode that a thread had before, if it was changed.
typedef struct ccc_mode {
    int changed;
    CUstreamCaptureMode before;
} ccc_mode;

// The same as below, also while another library captures a stream.
static ccc_mode ccc_force_relaxed_mode(void)
{
    ccc_mode mode = {0, CU_STREAM_CAPTURE_MODE_RELAXED};
    mode.changed = cuThreadExchangeStreamCaptureMode(&mode.before) == CUDA_SUCCESS;
    return mode;
}

// Calls that the driver deems unsafe while this thread or any other captures a stream, by the mode of the capture, are
// refused, and the capture is given up. Cleanup is safe in every mode: the objects freed and destroyed here are in no
// graph. So are pools, and allocations from them in streams that are not captured.
static ccc_mode ccc_enter_relaxed_mode(void)
{
    return atomic_load(&ccc_captures) ? ccc_force_relaxed_mode() : (ccc_mode){0, CU_STREAM_CAPTURE_MODE_RELAXED};
}

static void ccc_restore_mode(ccc_mode *mode)
{
    CUresult result = mode->changed ? cuThreadExchangeStreamCaptureMode(&mode->before) : CUDA_SUCCESS;
    if (result)
        ccc_cleanup_failed((int)result, "cuThreadExchangeStreamCaptureMode", 0);
}

// From here to the end of the scope the thread may make such calls.
#define CCC_RELAXED_MODE \
    __attribute__((cleanup(ccc_restore_mode))) ccc_mode CCC_JOIN(ccc_mode_, __COUNTER__) = ccc_enter_relaxed_mode()

// While streams are captured, calls that give a stream work hold this lock for reading: the driver guards captures
// itself. Three things it does not guard, and they hold the lock for writing: calls on a graph, which may be the one
// that a stream is captured into (drivers crash otherwise, seen with 580); the end of a capture while other threads
// give its stream work (so, too); and reading the array of nodes that the driver keeps for a captured stream, which the
// next call on that stream may free.
static pthread_rwlock_t ccc_capture_order = PTHREAD_RWLOCK_INITIALIZER;
static _Thread_local int ccc_exclusive;  // how often this thread holds it for writing

// In the child of fork() the thread that has a lock, if any, is not there; and every call fails.
static int ccc_graph_locks(void) { return ccc_driver.reason != CCC_FORKED; }

static int ccc_capturing(void)
{
    return !CCC_LIKELY(atomic_load_explicit(&ccc_captures, memory_order_acquire) == 0) && ccc_graph_locks();
}

// Hold the lock for writing, if a stream is captured. Returns whether it is held until ccc_unlock_captures.
static int ccc_lock_captures(void)
{
    if (!ccc_exclusive && !ccc_capturing())
        return 0;
    if (ccc_exclusive++ == 0)
        pthread_rwlock_wrlock(&ccc_capture_order);
    return 1;
}

static void ccc_unlock_captures(const int *held)
{
    if (*held && --ccc_exclusive == 0)
        pthread_rwlock_unlock(&ccc_capture_order);
}

// Returns whether the lock is held for reading until ccc_submitted.
static int ccc_submit(void)
{
    if (!ccc_capturing() || ccc_exclusive)
        return 0;
    pthread_rwlock_rdlock(&ccc_capture_order);
    return 1;
}

static void ccc_submitted(const int *held)
{
    if (*held)
        pthread_rwlock_unlock(&ccc_capture_order);
}

// From here to the end of the scope a stream is given work, or its capture is changed.
#define CCC_SUBMIT __attribute__((cleanup(ccc_submitted))) const int CCC_JOIN(ccc_submit_, __COUNTER__) = ccc_submit()

// From here to the end of the scope a capture ends, its graph is changed, or the driver's data of it is read.
#define CCC_LOCK_CAPTURES \
    __attribute__((cleanup(ccc_unlock_captures))) const int CCC_JOIN(ccc_lock_captures_, __COUNTER__) = \
        ccc_lock_captures()

#endif
