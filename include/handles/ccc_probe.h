// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Driver calls whose failure is a regular answer, such as the end of a list. The driver logs them as errors. They are
// noted here, so that Python leaves their lines out of the log that programs see (cuda_core_cffi/_core/driver_log.py).
#ifndef CCC_PROBE_H
#define CCC_PROBE_H

#include "handles/ccc_log.h"

#define CCC_PROBES 128  // more than the lines that the driver keeps
#define CCC_PROBE_NAME 48

typedef struct ccc_probe {
    uint64_t thread;  // 0: none
    uint64_t number;
    int status;
    int under_way;
    char function[CCC_PROBE_NAME];
} ccc_probe;

CCC_LOCK(ccc_probe_lock);
static ccc_probe ccc_probes[CCC_PROBES];
static uint64_t ccc_probe_count;

// Note that a function is about to be called in this thread, and may fail with a status. Returns the probe's number, or
// 0 if the driver has no log. It is noted before the call, because another thread may read the log at any time.
static uint64_t ccc_probe_begin(const char *function, int status)
{
    if (!ccc_log_exists())
        return 0;
    pthread_mutex_lock(&ccc_probe_lock);
    uint64_t number = ++ccc_probe_count;
    ccc_probe *probe = &ccc_probes[number % CCC_PROBES];
    *probe = (ccc_probe){(uint64_t)pthread_self(), number, status, 1, ""};
    snprintf(probe->function, sizeof probe->function, "%s", function);
    pthread_mutex_unlock(&ccc_probe_lock);
    return number;
}

// The call has returned. Unless it failed as expected, its lines are shown.
static void ccc_probe_end(uint64_t number, int is_expected)
{
    if (number == 0)
        return;
    pthread_mutex_lock(&ccc_probe_lock);
    ccc_probe *probe = &ccc_probes[number % CCC_PROBES];
    if (probe->number == number) {
        probe->under_way = 0;
        if (!is_expected)
            probe->thread = 0;
    }
    pthread_mutex_unlock(&ccc_probe_lock);
}

// The same where only later calls show that a failure was one to go on from.
static void ccc_probe_note(const char *function, int status) { ccc_probe_end(ccc_probe_begin(function, status), 1); }

#define CCC_PROBE(result, expected, function, ...) \
    do { \
        uint64_t ccc_probe_ = ccc_probe_begin(#function, expected); \
        result = function(__VA_ARGS__); \
        ccc_probe_end(ccc_probe_, result == expected); \
    } while (0)

// Forget the oldest probe that a logged failure matches. Returns whether there was one.
static int ccc_probe_match(uint64_t thread, const char *function, int status)
{
    ccc_probe *oldest = NULL;
    pthread_mutex_lock(&ccc_probe_lock);
    for (int i = 0; i < CCC_PROBES; i++) {
        ccc_probe *probe = &ccc_probes[i];
        if (probe->thread == thread && probe->status == status && strcmp(probe->function, function) == 0 &&
            (oldest == NULL || probe->number < oldest->number))
            oldest = probe;
    }
    if (oldest)
        oldest->thread = 0;
    pthread_mutex_unlock(&ccc_probe_lock);
    return oldest != NULL;
}

static uint64_t ccc_probe_last(void)
{
    pthread_mutex_lock(&ccc_probe_lock);
    uint64_t number = ccc_probe_count;
    pthread_mutex_unlock(&ccc_probe_lock);
    return number;
}

// Forget the probes up to a number that have ended: the log has been read since, and the driver had lost their lines.
static void ccc_probe_forget(uint64_t number)
{
    pthread_mutex_lock(&ccc_probe_lock);
    for (int i = 0; i < CCC_PROBES; i++)
        if (ccc_probes[i].number <= number && !ccc_probes[i].under_way)
            ccc_probes[i].thread = 0;
    pthread_mutex_unlock(&ccc_probe_lock);
}

#endif
