// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "driver/watch.h"

#include <stdlib.h>
#include <string.h>

enum { NAME = 64, MAX_FAULTS = 64 };

struct fault {
    char function[NAME];
    CUresult error;
    int skip, count;  // calls still to let pass, calls still to fail
    int id;
};

struct call {
    const char *function;
    CUresult status;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // guards what follows
static struct fault faults[MAX_FAULTS];
static size_t fault_count;
static int last_fault;
static struct call *calls;
static size_t call_count, call_capacity;
static bool tracing;

static _Atomic bool watching;

bool sim_watching(void) { return atomic_load_explicit(&watching, memory_order_relaxed); }

static void update(void)
{
    atomic_store(&watching, tracing || fault_count);
    sim_gate_update();
}

// A rule names a function exactly, or without the suffixes of its versions and variants.
static bool matches(const char *rule, const char *function)
{
    size_t length = strlen(rule);
    if (strncmp(rule, function, length) != 0)
        return false;
    const char *rest = function + length;
    if (rest[0] == '_' && rest[1] == 'v')
        rest += 2 + strspn(rest + 2, "0123456789");
    return !*rest || strcmp(rest, "_ptsz") == 0 || strcmp(rest, "_ptds") == 0;
}

CUresult sim_watch_enter(const char *function)
{
    CUresult status = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < fault_count && status == CUDA_SUCCESS; i++) {
        struct fault *fault = &faults[i];
        if (!matches(fault->function, function))
            continue;
        if (fault->skip > 0) {
            fault->skip--;
            continue;
        }
        status = fault->error;
        if (--fault->count == 0) {
            *fault = faults[--fault_count];
            update();
        }
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void sim_record_call(const char *function, CUresult status)
{
    pthread_mutex_lock(&lock);
    if (tracing && call_count == call_capacity) {
        size_t capacity = call_capacity ? 2 * call_capacity : 1024;
        struct call *grown = realloc(calls, capacity * sizeof *grown);
        if (grown) {
            calls = grown;
            call_capacity = capacity;
        }
    }
    if (tracing && call_count < call_capacity)
        calls[call_count++] = (struct call){function, status};
    pthread_mutex_unlock(&lock);
}

CUresult sim_watch_leave(const char *function, CUresult status)
{
    if (sim_watching())
        sim_record_call(function, status);
    return status;
}

// --- Control --------------------------------------------------------------------------------------------------

// The `nth` next call of the function and the `count` - 1 after it return the error. Returns a number for
// cudaSimFailCancel, 0 if there are too many rules already.
SIM_EXPORT int cudaSimFail(const char *function, int error, int nth, int count)
{
    if (!function || strlen(function) >= NAME || nth < 1 || count < 1)
        return 0;
    int id = 0;
    pthread_mutex_lock(&lock);
    if (fault_count < MAX_FAULTS) {
        struct fault *fault = &faults[fault_count++];
        strcpy(fault->function, function);
        fault->error = (CUresult)error;
        fault->skip = nth - 1;
        fault->count = count;
        id = fault->id = ++last_fault;
        update();
    }
    pthread_mutex_unlock(&lock);
    return id;
}

// Returns how many of the rule's failures had not happened yet.
SIM_EXPORT int cudaSimFailCancel(int id)
{
    int left = 0;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < fault_count; i++)
        if (faults[i].id == id) {
            left = faults[i].count;
            faults[i] = faults[--fault_count];
            update();
            break;
        }
    pthread_mutex_unlock(&lock);
    return left;
}

SIM_EXPORT void cudaSimFailClear(void)
{
    pthread_mutex_lock(&lock);
    fault_count = 0;
    update();
    pthread_mutex_unlock(&lock);
}

SIM_EXPORT void cudaSimTrace(int on)
{
    pthread_mutex_lock(&lock);
    tracing = on != 0;
    update();
    pthread_mutex_unlock(&lock);
}

SIM_EXPORT void cudaSimTraceClear(void)
{
    pthread_mutex_lock(&lock);
    call_count = 0;
    pthread_mutex_unlock(&lock);
}

SIM_EXPORT size_t cudaSimTraceCount(void)
{
    pthread_mutex_lock(&lock);
    size_t count = call_count;
    pthread_mutex_unlock(&lock);
    return count;
}

SIM_EXPORT const char *cudaSimTraceGet(size_t index, int *status)
{
    const char *function = NULL;
    pthread_mutex_lock(&lock);
    if (index < call_count) {
        function = calls[index].function;
        *status = (int)calls[index].status;
    }
    pthread_mutex_unlock(&lock);
    return function;
}
