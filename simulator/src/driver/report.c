// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "driver/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "driver/config.h"
#include "driver/logs.h"
#include "driver/sim.h"

enum { MAX_REPORTS = 1024, KIND = 32, CALL = 64, MESSAGE = 1536 };

// What cudaSimReportGet hands out; plain types, so that any language can read it.
struct cudaSimReport {
    char kind[KIND], call[CALL], message[MESSAGE];
    uint64_t address, size;
    uint64_t allocation_start, allocation_size, allocation_order, freed_order;
    char allocated_by[CALL], freed_by[CALL];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cudaSimReport reports[MAX_REPORTS];
static size_t count;
static _Thread_local char last[SIM_REPORT_TEXT];

static void copy(char *target, size_t size, const char *text) { snprintf(target, size, "%s", text ? text : ""); }

void sim_report(const char *kind, const char *call, uintptr_t address, size_t size, const struct sim_history *history,
                const char *format, ...)
{
    struct cudaSimReport report = {.address = address, .size = size};
    copy(report.kind, KIND, kind);
    copy(report.call, CALL, call);
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(report.message, MESSAGE, format, arguments);
    va_end(arguments);
    if (history) {
        report.allocation_start = history->start;
        report.allocation_size = history->size;
        report.allocation_order = history->order;
        report.freed_order = history->freed_order;
        copy(report.allocated_by, CALL, history->allocated_by);
        copy(report.freed_by, CALL, history->freed_by);
        if (length >= 0 && length < MESSAGE) {
            char *rest = report.message + length;
            size_t left = (size_t)(MESSAGE - length);
            int more = snprintf(rest, left, "; the allocation [0x%llx, %zu bytes] is number %llu, made by %s",
                                (unsigned long long)history->start, history->size, (unsigned long long)history->order,
                                history->allocated_by);
            if (history->freed_by && more > 0 && (size_t)more < left)
                snprintf(rest + more, left - (size_t)more, ", freed by %s after allocation %llu", history->freed_by,
                         (unsigned long long)history->freed_order);
        }
    }
    if (!strncmp(report.message, "kernel ", 7))  // which names it
        snprintf(last, sizeof last, "%s: %s", report.kind, report.message);
    else
        snprintf(last, sizeof last, "%s in %s: %s", report.kind, report.call, report.message);
    sim_log("%s", last);
    if (sim_config()->report_stderr)
        fprintf(stderr, "cuda simulator: %s\n", last);
    pthread_mutex_lock(&lock);
    if (count < MAX_REPORTS)
        reports[count++] = report;
    pthread_mutex_unlock(&lock);
}

const char *sim_last_report(void) { return last; }

SIM_EXPORT size_t cudaSimReportSize(void) { return sizeof(struct cudaSimReport); }

SIM_EXPORT size_t cudaSimReportCount(void)
{
    pthread_mutex_lock(&lock);
    size_t now = count;
    pthread_mutex_unlock(&lock);
    return now;
}

SIM_EXPORT int cudaSimReportGet(size_t index, struct cudaSimReport *report)
{
    pthread_mutex_lock(&lock);
    int found = index < count;
    if (found)
        *report = reports[index];
    pthread_mutex_unlock(&lock);
    return found;
}

SIM_EXPORT void cudaSimReportClear(void)
{
    pthread_mutex_lock(&lock);
    count = 0;
    pthread_mutex_unlock(&lock);
}
