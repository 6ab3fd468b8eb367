// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Host functions, and waiting for and writing values in memory, as streams and graphs run them.

#ifndef SIM_STREAM_WORK_H
#define SIM_STREAM_WORK_H

#include "streams/stream.h"

void sim_host_run(CUhostFn function, void *data);  // which may make no call of the driver

struct sim_value_job {
    uintptr_t address;
    uint64_t value;
    unsigned bytes;  // 4 or 8; 0 if there is nothing to do
    bool writes;
    unsigned condition;  // of a wait
    const char *function;
};

CUresult sim_value_read(const CUstreamBatchMemOpParams *operation, struct sim_value_job *job);
// May the operation use its memory? Graphs find out when they are launched.
CUresult sim_value_check(const struct sim_context *context, const struct sim_value_job *job);
void sim_value_run(struct sim_context *context, const struct sim_value_job *job);

#endif
