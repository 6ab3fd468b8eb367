// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The driver calls functions of the program, for streams and graphs, through a ccc_refs. At exit no more
// functions start, and those that run are waited for. A function of Python takes the GIL in the driver's thread
// (python/ccc_background.h): a thread that waits for the work meanwhile must not hold it.
#ifndef CCC_HOST_CALL_H
#define CCC_HOST_CALL_H

#include "streams/ccc_refs.h"

static _Thread_local uint64_t ccc_calling;  // the stream that calls a function; 0: a graph does
static atomic_int ccc_calls_running;
static atomic_int ccc_calls_ended;

// Call what a graph calls, whenever it runs.
static void CUDA_CB ccc_host_call(void *argument)
{
    const ccc_refs *refs = argument;
    atomic_fetch_add(&ccc_calls_running, 1);
    if (!atomic_load(&ccc_calls_ended)) {
        ccc_in_callback++;
        ccc_calling = refs->source;
        refs->function(refs->data);
        ccc_calling = 0;
        ccc_in_callback--;
        if (atomic_load(&ccc_deferred))
            ccc_release_ask();
    }
    atomic_fetch_sub(&ccc_calls_running, 1);
}

// Call the function that a stream calls, and queue its ccc_refs.
static void CUDA_CB ccc_host_call_once(void *refs)
{
    atomic_fetch_add(&ccc_calls_running, 1);  // until the ccc_refs is queued
    ccc_host_call(refs);
    ccc_refs_release(refs);
    atomic_fetch_sub(&ccc_calls_running, 1);
}

// Have the parameters of a node call a function through its ccc_refs; and find the function that parameters call.
static void ccc_host_wrap(CUDA_HOST_NODE_PARAMS_v2 *params, ccc_refs *refs)
{
    refs->function = params->fn;
    refs->data = params->userData;
    params->fn = ccc_host_call;
    params->userData = refs;
}

static void ccc_host_unwrap(CUDA_HOST_NODE_PARAMS *params)
{
    const ccc_refs *refs = params->userData;
    if (params->fn == ccc_host_call) {
        params->fn = refs->function;
        params->userData = refs->data;
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
