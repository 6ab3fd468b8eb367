// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The release thread: a thread of this package that releases unneeded objects when the program makes no call
// that would. It is started when it is first needed, and sleeps until it is asked.
//
// Any thread may ask, also one of the driver's: asking takes no lock and does not wait for the GIL. The release thread
// first waits for some milliseconds, because most programs soon make a call that releases everything anyway. Then it
// looks (ccc_release_look): it queries the events that are waited for, and calls Python if there is
// something for Python to release. While there are events that are not reached it looks again, at growing intervals.
//
// Before the interpreter ends, the thread is paused for good. It does not exist in the child of fork(), where
// another one is started if it is needed.
#ifndef CCC_RELEASE_H
#define CCC_RELEASE_H

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "driver/ccc_error.h"

#define CCC_FIRST_PAUSE 5  // milliseconds, before the thread looks for the first time after it was asked
#define CCC_LONGEST_PAUSE 80
#define CCC_PATIENCE 5000  // milliseconds: what runs at exit may wait for the exiting thread, for ever

static sem_t ccc_release_bell;
static atomic_int ccc_release_allowed;  // it may look: above 0
static atomic_int ccc_release_started;  // there is a thread
static atomic_int ccc_release_awake;    // it is not asleep, or is about to be woken: no other thread need wake it
static atomic_int ccc_release_asked;    // since it last looked
static atomic_int ccc_release_busy;     // it is looking

static atomic_int ccc_python_asked;  // Python has something to do that C does not know of

// What the thread does; returns whether something has to be waited for. python/ccc_background.h sets it.
static int (*ccc_release_look)(void);

static void *ccc_release_run(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "ccc-release");
    for (;;) {
        int again = 1;
        for (long pause = CCC_FIRST_PAUSE; again;
             pause = 2 * pause < CCC_LONGEST_PAUSE ? 2 * pause : CCC_LONGEST_PAUSE) {
            const struct timespec time = {0, pause * 1000000};
            nanosleep(&time, NULL);
            atomic_store(&ccc_release_busy, 1);  // before it finds out whether it may look: see ccc_release_pause
            if ((again = atomic_load(&ccc_release_allowed) > 0)) {
                atomic_store(&ccc_release_asked, 0);
                again = ccc_release_look();
            }
            atomic_store(&ccc_release_busy, 0);
        }
        atomic_store(&ccc_release_awake, 0);
        if (atomic_load(&ccc_release_allowed) > 0 && atomic_load(&ccc_release_asked) &&
            !atomic_exchange(&ccc_release_awake, 1))
            continue;
        while (sem_wait(&ccc_release_bell))
            ;
    }
    return NULL;
}

// Start the thread. It takes no signals: Python runs its handlers in the main thread.
static int ccc_release_start(void)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread, NULL, ccc_release_run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed)
        pthread_detach(thread);
    return failed;
}

// Ask the release thread to look. Any thread. If no thread can be started, the next call of the program releases.
static void ccc_release_ask(void)
{
    atomic_store(&ccc_release_asked, 1);
    if (atomic_load(&ccc_release_allowed) <= 0 || atomic_exchange(&ccc_release_awake, 1))
        return;
    if (atomic_load(&ccc_release_started)) {
        sem_post(&ccc_release_bell);
    } else {
        atomic_store(&ccc_release_started, 1);
        if (ccc_release_start()) {
            atomic_store(&ccc_release_started, 0);
            atomic_store(&ccc_release_awake, 0);
        }
    }
}

// Have Python look soon, in the release thread. Any thread.
static void ccc_ask_python(void)
{
    atomic_store(&ccc_python_asked, 1);
    ccc_release_ask();
}

// The same after a failure of cleanup in a thread without Python.
static void ccc_report_cleanup(void)
{
    if (atomic_load(&ccc_cleanup_count))
        ccc_ask_python();
}

// Let the thread look. At first it may not: Python has to be there.
static void ccc_release_resume(void)
{
    if (atomic_fetch_add(&ccc_release_allowed, 1) == 0 && atomic_load(&ccc_release_asked))
        ccc_release_ask();
}

// Have it not look until it is resumed as often as it was paused. Waits up to CCC_PATIENCE until it has finished its
// current work.
static void ccc_release_pause(void)
{
    atomic_fetch_sub(&ccc_release_allowed, 1);
    for (int i = 0; atomic_load(&ccc_release_busy) && i < CCC_PATIENCE; i++)
        usleep(1000);
}

// What the thread and the callers of ccc_flush_releases share. It is held for some ten nanoseconds, never in a driver's
// thread.
static pthread_mutex_t ccc_release_mutex = PTHREAD_MUTEX_INITIALIZER;

static void ccc_release_lock(void) { pthread_mutex_lock(&ccc_release_mutex); }

static void ccc_release_unlock(void) { pthread_mutex_unlock(&ccc_release_mutex); }

// The child has neither the thread, nor a lock that another thread holds.
static void ccc_release_forget(void)
{
    ccc_release_unlock();
    sem_init(&ccc_release_bell, 0, 0);
    atomic_store(&ccc_release_started, 0);
    atomic_store(&ccc_release_awake, 0);
    atomic_store(&ccc_release_busy, 0);
}

__attribute__((constructor)) static void ccc_release_watch_fork(void)
{
    sem_init(&ccc_release_bell, 0, 0);
    pthread_atfork(ccc_release_lock, ccc_release_unlock, ccc_release_forget);
}

#endif
