// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Reports of misuse, each with the history of the allocation concerned.

#ifndef SIM_REPORT_H
#define SIM_REPORT_H

#include <stddef.h>
#include <stdint.h>

enum { SIM_REPORT_TEXT = 1664 };  // a kind, a call and a message

struct sim_history {
    uintptr_t start;
    size_t size;
    const char *allocated_by;  // the call
    uint64_t order;            // allocations are numbered from 1
    const char *freed_by;      // NULL while it lives
    uint64_t freed_order;      // how many allocations had been made when it was freed
    int with_context;          // it went with its context
};

// `history` may be NULL. `kind` and the calls are string constants.
void sim_report(const char *kind, const char *call, uintptr_t address, size_t size, const struct sim_history *history,
                const char *format, ...) __attribute__((format(printf, 6, 7)));

// What this thread has reported last, with its kind; empty if nothing. Valid until it reports again.
const char *sim_last_report(void);

#endif
