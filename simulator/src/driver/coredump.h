// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Core dumps of kernels that fail.

#ifndef SIM_COREDUMP_H
#define SIM_COREDUMP_H

#include <stdbool.h>

enum { SIM_COREDUMP_PATH = 1024 };

struct sim_coredump {
    bool on_exception;
    bool armed;  // of a context: it was made when core dumps were on; others write none
    unsigned flags;
    char file[SIM_COREDUMP_PATH];
};

// What a new context with these flags begins with.
void sim_coredump_init(struct sim_coredump *settings, unsigned flags);
// Writes a file where the settings say so, and ends the process if they say that, too.
void sim_coredump_write(const struct sim_coredump *settings, const char *message);

#endif
