// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The state of each thread that calls the driver, and what has to happen when a thread or a process ends.

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver/context.h"
#include "driver/report.h"
#include "streams/stream.h"

static __thread struct sim_thread *self;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void end_thread(void *pointer)
{
    struct sim_thread *thread = pointer;
    sim_thread_end_streams(thread);
    sim_sync_forget(thread);
    for (size_t i = 0; i < thread->depth; i++)
        sim_object_drop(thread->contexts[i]);
    free(thread->contexts);
    free(thread);
    self = NULL;
}

static void make_key(void) { pthread_key_create(&key, end_thread); }

// Without memory for its own state a thread shares this one: its calls then fail for want of a context.
static struct sim_thread exhausted;

struct sim_thread *sim_thread(void)
{
    if (SIM_LIKELY(self != NULL))
        return self;
    pthread_once(&once, make_key);
    struct sim_thread *thread = calloc(1, sizeof *thread);
    if (!thread)
        return &exhausted;
    static _Atomic uint64_t last_id;
    thread->id = atomic_fetch_add(&last_id, 1) + 1;
    pthread_setspecific(key, thread);
    return self = thread;
}

void sim_thread_push(struct sim_context *context)
{
    struct sim_thread *thread = sim_thread();
    if (thread->depth == thread->capacity) {
        size_t capacity = thread->capacity ? 2 * thread->capacity : 8;
        struct sim_context **grown = realloc(thread->contexts, capacity * sizeof *grown);
        if (!grown)
            return;
        thread->contexts = grown;
        thread->capacity = capacity;
    }
    if (context)
        sim_object_hold(context);
    thread->contexts[thread->depth++] = context;
}

void sim_thread_forget_context(struct sim_context *context)
{
    struct sim_thread *thread = sim_thread();
    if (thread->depth && thread->contexts[thread->depth - 1] == context) {
        thread->depth--;
        sim_object_drop(context);
    }
}

uint64_t sim_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
