// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// How the driver calls functions of the program, for streams and for graphs: through a keep. At exit no more functions
// start, and those that run are waited for. A function of Python takes the GIL in the driver's thread
// (python/ccc_background.h): a thread that waits for the work meanwhile must not hold it.
#ifndef CCC_HOST_CALL_H
#define CCC_HOST_CALL_H

#include "streams/ccc_keep.h"

static _Thread_local uint64_t ccc_calling;  // the stream that calls a function; 0: a graph does
static atomic_int ccc_calls_running;
static atomic_int ccc_calls_ended;

// Call what a graph calls, whenever it runs.
static void CUDA_CB ccc_host_call(void *argument)
{
    const ccc_keep *keep = argument;
    atomic_fetch_add(&ccc_calls_running, 1);
    if (!atomic_load(&ccc_calls_ended)) {
        ccc_in_callback++;
        ccc_calling = keep->source;
        keep->function(keep->data);
        ccc_calling = 0;
        ccc_in_callback--;
        if (atomic_load(&ccc_deferred))
            ccc_release_ask();
    }
    atomic_fetch_sub(&ccc_calls_running, 1);
}

// Call what a stream calls, and queue its keep.
static void CUDA_CB ccc_host_call_once(void *keep)
{
    atomic_fetch_add(&ccc_calls_running, 1);  // until the keep is queued
    ccc_host_call(keep);
    ccc_keep_finish(keep);
    atomic_fetch_sub(&ccc_calls_running, 1);
}

// Have the parameters of a node call a function through its keep; and tell the function that such parameters call.
static void ccc_host_wrap(CUDA_HOST_NODE_PARAMS_v2 *params, ccc_keep *keep)
{
    keep->function = params->fn;
    keep->data = params->userData;
    params->fn = ccc_host_call;
    params->userData = keep;
}

static void ccc_host_unwrap(CUDA_HOST_NODE_PARAMS *params)
{
    const ccc_keep *keep = params->userData;
    if (params->fn == ccc_host_call) {
        params->fn = keep->function;
        params->userData = keep->data;
    }
}

// Whether this thread is the driver's, calling a Python function.
static int ccc_in_host_function(void) { return ccc_in_callback; }

static void ccc_end_calls(void)
{
    atomic_store(&ccc_calls_ended, 1);
    for (int i = 0; atomic_load(&ccc_calls_running) && i < CCC_PATIENCE; i++)
        usleep(1000);
}

#endif
