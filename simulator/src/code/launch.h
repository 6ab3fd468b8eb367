// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SIM_LAUNCH_H
#define SIM_LAUNCH_H

#include "code/module.h"
#include "streams/stream.h"

enum sim_portable { SIM_PORTABLE_DEFAULT, SIM_PORTABLE_REQUIRED, SIM_NON_PORTABLE_ALLOWED };  // as the header has them

struct sim_launch_wish {  // what a launch asks for, whichever call it came through
    uint32_t grid[3], block[3], cluster[3], preferred_cluster[3];
    size_t dynamic_shared;
    bool cooperative;
    enum sim_portable cluster_size;
    unsigned shared_mode;  // the values that the cluster's size can have, and two more
    CUstream stream;
    struct sim_green *green;              // whose multiprocessors the kernel runs on; NULL for all
    CUevent starts;                       // recorded when the kernel starts; NULL for none
    CUevent programmatic;                 // recorded when the blocks have triggered it
    bool at_block_start;                  // which they do as they start
    const CUlaunchAttribute *attributes;  // as they were given
    unsigned attribute_count;
};

// A kernel that is ready to run, any number of times.
struct sim_kernel_job {
    struct sim_module *module;  // a reference: the code outlives its handle
    struct sim_green *green;    // a reference, or NULL
    const sim_ptx_entry *entry;
    sim_ptx_launch launch;
    _Alignas(16) char params[];
};

CUresult sim_launch_read(const CUlaunchConfig *config, struct sim_launch_wish *wish);
CUresult sim_launch_read_attribute(const CUlaunchAttribute *attribute, struct sim_launch_wish *wish);
// Can the kernel be launched like that? Looks at the grid and blocks only, or at all that depends on them too.
CUresult sim_launch_check_shape(const struct sim_launch_wish *wish, struct sim_function *function);
CUresult sim_launch_check(struct sim_launch_wish *wish, struct sim_function *function);

size_t sim_kernel_job_size(const struct sim_function *function);
CUresult sim_kernel_job_init(struct sim_kernel_job *job, struct sim_function *function,
                             const struct sim_launch_wish *wish, void **kernel_params, void **extra);
void sim_kernel_job_end(struct sim_kernel_job *job);  // gives the references back
// Who is told of the values that a kernel gives to conditions; `set` returns 0 for a handle that it does not know.
struct sim_conditions {
    int (*set)(void *ctx, uint64_t handle, uint32_t value);
    void *ctx;
};
// `conditions` is NULL outside of graphs.
void sim_kernel_run(struct sim_context *context, const struct sim_kernel_job *job,
                    const struct sim_conditions *conditions);

#endif
