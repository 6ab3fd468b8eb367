// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SIM_DISPATCH_H
#define SIM_DISPATCH_H

struct sim_function {
    const char *base;
    int version;
    void (*function)(void);
    void (*per_thread)(void);  // NULL where the default stream does not matter
    int per_thread_version;
};

// Sorted by base name, then by version; ends with an empty row.
extern const struct sim_function sim_functions[];

#endif
