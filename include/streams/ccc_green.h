// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The green contexts that were made here, by their CUcontext: what is made where one of them is current uses the handle
// that owns it. A thread that made one current with this package has a use of it until it makes another one current.
#ifndef CCC_GREEN_H
#define CCC_GREEN_H

#include <pthread.h>

#include "handles/ccc_end.h"

typedef struct ccc_context {
    ccc_handle handle;
    CUgreenCtx green;  // of a green context that was made here, like the next member
    ccc_handle *next;
} ccc_context;

static inline ccc_context *ccc_as_context(const ccc_handle *handle) { return (ccc_context *)handle; }

CCC_LOCK(ccc_green_lock);                         // held for some ten nanoseconds
static ccc_handle *ccc_greens;                    // not uses
static _Thread_local ccc_handle *ccc_green_here;  // a use of what this thread has current, or NULL
static pthread_key_t ccc_green_key;               // the same, for the end of the thread

// A thread ends: another one destroys what this one has the last use of.
static void ccc_green_end_thread(void *context)
{
    ccc_in_callback++;
    ccc_release(context);
    ccc_in_callback--;
    ccc_release_ask();
}

__attribute__((constructor)) static void ccc_green_set_up(void)
{
    pthread_key_create(&ccc_green_key, ccc_green_end_thread);
}

static void ccc_green_list(ccc_handle *context)
{
    pthread_mutex_lock(&ccc_green_lock);
    ccc_as_context(context)->next = ccc_greens;
    ccc_greens = context;
    pthread_mutex_unlock(&ccc_green_lock);
}

static void ccc_green_unlist(const ccc_handle *context)
{
    pthread_mutex_lock(&ccc_green_lock);
    ccc_handle **link = &ccc_greens;
    while (*link && *link != context)
        link = &ccc_as_context(*link)->next;
    if (*link)
        *link = ccc_as_context(context)->next;
    pthread_mutex_unlock(&ccc_green_lock);
}

static CUresult ccc_context_destroy(ccc_handle *handle, const char **call)
{
    *call = "cuGreenCtxDestroy";
    ccc_green_unlist(handle);
    return cuGreenCtxDestroy(ccc_as_context(handle)->green);
}

static const ccc_handle_type ccc_context_type = {.size = sizeof(ccc_context), .destroy = ccc_context_destroy};

// A use of the handle that owns a green context; NULL if none of those that were made here is meant.
static ccc_handle *ccc_green_find(CUcontext context)
{
    pthread_mutex_lock(&ccc_green_lock);
    ccc_handle *found = ccc_greens;
    while (found && CCC_CTX(found) != context)
        found = ccc_as_context(found)->next;
    if (found && !ccc_retain(found))
        found = NULL;
    pthread_mutex_unlock(&ccc_green_lock);
    return found;
}

static atomic_int ccc_green_used;  // a thread has made one current

// This thread has a context current now, of which the caller has a use; NULL for one that is not green.
static void ccc_green_stay(ccc_handle *context)
{
    ccc_handle *before = ccc_green_here;
    ccc_handle *now = context && context->flags & CCC_GREEN && ccc_retain(context) ? context : NULL;
    if (now || before) {
        atomic_store_explicit(&ccc_green_used, 1, memory_order_relaxed);
        ccc_green_here = now;
        pthread_setspecific(ccc_green_key, now);
        ccc_release(before);
    }
}

// This thread has a context current now that is not green. Where no thread ever had one that is, there is nothing to
// look at.
static inline void ccc_green_leave(void)
{
    if (!CCC_LIKELY(atomic_load_explicit(&ccc_green_used, memory_order_relaxed) == 0))
        ccc_green_stay(NULL);
}

// The green context that this thread has made current, as a handle for a new Python object; NULL for none.
static ccc_handle *ccc_green_referenced(void) { return ccc_green_here ? ccc_view(ccc_green_here) : NULL; }

#endif
