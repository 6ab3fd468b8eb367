// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The work in threads that Python did not start: in the release thread, and in driver threads that call host functions.
// Both take the GIL only to run Python code.
#ifndef CCC_BACKGROUND_H
#define CCC_BACKGROUND_H

#include "memory/ccc_tensor.h"
#include "python/ccc_gil.h"
#include "streams/ccc_host_call.h"

static ccc_gil ccc_gil_of_all = CCC_GIL_NEW;
#define CCC_GIL (&ccc_gil_of_all)

static int ccc_release_python(void);  // written in Python; whether it has to look again

// Release unneeded objects, in the release thread. Its queries and frees must not break captures of other threads,
// so for the driver it is in the mode that allows them, from the first time on.
static int ccc_look_in_background(void)
{
    static int relaxed;  // this thread is alone here
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (!relaxed && ccc_driver_used())
        relaxed = cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS;
    size_t waiting = ccc_finish_reached(SIZE_MAX);
    ccc_free_captives();
    if (atomic_load(&ccc_deferred) || atomic_load(&ccc_ends_waiting) || atomic_load(&ccc_destroyed_stream_count)) {
        ccc_end_deferred();
        waiting += (size_t)ccc_look_for_idle();
        ccc_report_cleanup();
    }
    if (atomic_exchange(&ccc_python_asked, 0) || atomic_load(&ccc_finished) || atomic_load(&ccc_finishing) ||
        ccc_tensors_finished()) {
        if (ccc_release_python()) {
            atomic_store(&ccc_python_asked, 1);
            waiting++;
        }
        ccc_gil_given_up(CCC_GIL);
    }
    return waiting || atomic_load(&ccc_captive);
}

__attribute__((constructor)) static void ccc_background_set_up(void) { ccc_release_look = ccc_look_in_background; }

static void ccc_call_python(uint64_t token, uint64_t source);  // written in Python

// The function that the driver calls in the place of a Python function, with its token.
static void CUDA_CB ccc_host_run(void *token)
{
    ccc_call_python((uintptr_t)token, ccc_calling);
    ccc_gil_given_up(CCC_GIL);
}

static uint64_t ccc_host_function(void) { return (uintptr_t)ccc_host_run; }

// The child of fork() has no other threads, and no driver threads that call host functions.
static void ccc_forget_threads(void)
{
    atomic_store(&ccc_calls_running, 0);
    ccc_gil_forget(CCC_GIL);
}

#endif
