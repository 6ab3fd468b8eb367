// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// What a node does. It is never changed once it is made: a graph, its clones, executables and launches share it, and a
// change of parameters gives a node another one.

#ifndef SIM_GRAPH_WORK_H
#define SIM_GRAPH_WORK_H

#include "memory/copy.h"
#include "streams/event.h"
#include "code/launch.h"
#include "streams/stream_work.h"

struct sim_graph_memory;

struct sim_kernel_work {
    CUDA_KERNEL_NODE_PARAMS_v2 params;  // as they were given; the arrays point to what follows
    struct sim_function *function;
    struct sim_launch_wish wish;
    struct sim_kernel_job *job;
    void **pointers;  // of the parameters in the job
    void *extra[5];
    size_t extra_size;
    CUlaunchAttribute *attributes;  // those that were set
    unsigned attribute_count;
};

struct sim_copy_work {
    CUDA_MEMCPY3D params;
    struct sim_copy_job job;
};

struct sim_fill_work {
    CUDA_MEMSET_NODE_PARAMS_v1 params;
    struct sim_fill_job job;
};

struct sim_host_params {  // of CUDA_HOST_NODE_PARAMS_v2, as the newest headers have it
    CUhostFn function;
    void *data;
    unsigned sync_mode;
    CUcontext context;
};

struct sim_memory_work {
    struct sim_graph_memory *memory;  // a reference
    uintptr_t address;
};

struct sim_values_work {
    CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 params;
    struct sim_value_job *jobs;
};

struct sim_conditional_work {
    struct sim_conditional *conditional;  // a reference
    CUgraphConditionalNodeType type;
    unsigned size;
    CUgraph *graphs;  // for the program
};

struct sim_work {
    _Atomic uint32_t references;
    CUgraphNodeType type;
    struct sim_context *context;  // a reference; NULL where the kind of node has none
    union {
        struct sim_kernel_work kernel;
        struct sim_copy_work copy;
        struct sim_fill_work fill;
        struct sim_host_params host;
        struct sim_event *event;  // a reference
        struct sim_memory_work memory;
        struct sim_values_work values;
        struct sim_conditional_work conditional;
    };
};

void sim_work_hold(struct sim_work *work);
void sim_work_drop(struct sim_work *work);  // NULL is fine
static inline void sim_work_autodrop(struct sim_work **work) { sim_work_drop(*work); }
#define SIM_WORK_HELD __attribute__((cleanup(sim_work_autodrop)))

struct sim_work *sim_work_new(CUgraphNodeType type, struct sim_context *context);  // NULL when out of memory

// Each makes work from parameters as the driver's functions take them, or says what is wrong with those.
CUresult sim_work_empty(struct sim_work **work);
// `like` is the kernel work that this one replaces, whose attributes it keeps; or NULL. With `match`, the context of a
// function must be the one named.
CUresult sim_work_kernel(const CUDA_KERNEL_NODE_PARAMS_v2 *params, const struct sim_work *like, bool match,
                         struct sim_work **work);
CUresult sim_work_copy(const CUDA_MEMCPY3D *params, CUcontext context, struct sim_work **work);
CUresult sim_work_copy_of(const struct sim_copy *copy, struct sim_context *context, struct sim_work **work);
CUresult sim_work_fill(const CUDA_MEMSET_NODE_PARAMS_v1 *params, CUcontext context, struct sim_work **work);
CUresult sim_work_host(const struct sim_host_params *params, struct sim_work **work);
CUresult sim_work_event(CUgraphNodeType type, CUevent event, struct sim_work **work);
CUresult sim_work_alloc(const CUDA_MEM_ALLOC_NODE_PARAMS_v1 *params, struct sim_work **work);
CUDA_MEM_ALLOC_NODE_PARAMS_v1 sim_work_alloc_params(const struct sim_work *work);
CUresult sim_work_free(uintptr_t address, struct sim_work **work);
CUresult sim_work_values(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 *params, struct sim_work **work);

// --- Kernels --------------------------------------------------------------------------------------------------

void sim_kernel_work_free(struct sim_kernel_work *kernel);
// The same kernel with one attribute more, or changed.
CUresult sim_kernel_work_with(const struct sim_work *work, const CUlaunchAttribute *attributes, unsigned count,
                              struct sim_work **changed);
const CUlaunchAttribute *sim_kernel_work_attribute(const struct sim_work *work, CUlaunchAttributeID id);
// Reports a kernel whose library or module was unloaded after the node was made.
CUresult sim_kernel_work_is_loaded(const struct sim_work *work);
// What depends on more than one parameter is looked at when the kernel is about to be used.
CUresult sim_kernel_work_check(const struct sim_work *work);

#endif
