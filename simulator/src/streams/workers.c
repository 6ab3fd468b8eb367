// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The threads that serve streams, and the branches of graphs. There are as many as there is to run at this moment,
// because any of it may block: a host function may wait for another stream, a kernel for the host.

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "streams/stream.h"

enum { IDLE_SECONDS = 5, STACK_BYTES = 1 << 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static struct sim_task *first, **last = &first;
static size_t queued, idle;

static struct sim_task *next_task(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += IDLE_SECONDS;
    while (!first) {
        idle++;
        int timed_out = pthread_cond_timedwait(&work, &lock, &until);
        idle--;
        if (timed_out == ETIMEDOUT && !first)
            return NULL;
    }
    struct sim_task *task = first;
    first = task->next;
    if (!first)
        last = &first;
    queued--;
    return task;
}

static void *worker(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    for (struct sim_task *task; (task = next_task()) != NULL;) {
        pthread_mutex_unlock(&lock);
        task->run(task);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void start_worker(void)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    // Signals belong to the program's threads.
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_t thread;
    // On failure the task stays queued for a worker that is running already.
    (void)!pthread_create(&thread, &attributes, worker, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
}

void sim_workers_take(struct sim_task *task)
{
    pthread_mutex_lock(&lock);
    task->next = NULL;
    *last = task;
    last = &task->next;
    queued++;
    bool start = queued > idle;
    if (!start)
        pthread_cond_signal(&work);
    pthread_mutex_unlock(&lock);
    if (start)
        start_worker();
}
