// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The error log.

#ifndef SIM_LOGS_H
#define SIM_LOGS_H

#include "driver/sim.h"

// Adds a line that explains why the call under way is going to fail, or what went wrong in work.
void sim_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Like SIM_REQUIRE, with an explanation.
#define SIM_REQUIRE_THAT(condition, ...) \
    do { \
        if (!(condition)) { \
            sim_log(__VA_ARGS__); \
            return CUDA_ERROR_INVALID_VALUE; \
        } \
    } while (0)

#endif
