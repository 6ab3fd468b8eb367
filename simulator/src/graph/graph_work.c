// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "graph/graph_work.h"

#include <stdlib.h>
#include <string.h>

#include "memory/allocation.h"
#include "graph/graph_memory.h"

// --- Life -----------------------------------------------------------------------------------------------------

struct sim_work *sim_work_new(CUgraphNodeType type, struct sim_context *context)
{
    struct sim_work *work = calloc(1, sizeof *work);
    if (!work)
        return NULL;
    atomic_init(&work->references, 1);
    work->type = type;
    if (context) {
        sim_object_hold(context);
        work->context = context;
    }
    return work;
}

void sim_work_hold(struct sim_work *work) { atomic_fetch_add_explicit(&work->references, 1, memory_order_relaxed); }

void sim_work_drop(struct sim_work *work)
{
    if (!work || atomic_fetch_sub_explicit(&work->references, 1, memory_order_acq_rel) != 1)
        return;
    switch ((int)work->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: sim_kernel_work_free(&work->kernel); break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: sim_object_drop(work->event); break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE: sim_graph_memory_drop(work->memory.memory); break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        sim_object_drop(work->conditional.conditional);
        free(work->conditional.graphs);
        break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        free(work->values.params.paramArray);
        free(work->values.jobs);
        break;
    default: break;
    }
    sim_object_drop(work->context);
    free(work);
}

static CUresult made(struct sim_work *work, struct sim_work **out)
{
    *out = work;
    return work ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

// The context named, or the current one for NULL; takes a reference.
static CUresult context_of(CUcontext handle, struct sim_context **context)
{
    if (handle) {
        SIM_TRY(sim_context_find(handle, context));
    } else {
        SIM_TRY(sim_current(context));
        sim_object_hold(*context);
    }
    return sim_context_status(*context);
}

// The same for copies and fills, which are made without any context too: for the device whose memory is at the address.
static CUresult context_for(CUcontext handle, uintptr_t address, struct sim_context **context)
{
    CUresult status = context_of(handle, context);
    if (handle || status != CUDA_ERROR_INVALID_CONTEXT)
        return status;
    struct sim_allocation allocation;
    *context = sim_primary(sim_allocation_at(address, &allocation) ? allocation.device : 0);
    if (!*context)
        return CUDA_ERROR_INVALID_CONTEXT;
    sim_object_hold(*context);
    return sim_context_status(*context);
}

// --- Kinds ----------------------------------------------------------------------------------------------------

CUresult sim_work_empty(struct sim_work **work) { return made(sim_work_new(CU_GRAPH_NODE_TYPE_EMPTY, NULL), work); }

// Memory of allocation nodes need not be there yet. Everything else is looked up now, as the driver does.
static CUresult place(const struct sim_context *context, const struct sim_copy *copy, const struct sim_operand *operand,
                      bool *check)
{
    *check = true;
    if (sim_graph_memory_covers(operand->address, sim_copy_span(copy, operand)))
        return CUDA_SUCCESS;
    return sim_copy_place(context, copy, operand, check);
}

// The parameters are left to the caller.
CUresult sim_work_copy_of(const struct sim_copy *copy, struct sim_context *context, struct sim_work **out)
{
    struct sim_copy_job job = {.copy = *copy, .function = sim_thread()->function};
    SIM_TRY(place(context, copy, &copy->to, &job.check_to));
    SIM_TRY(place(context, copy, &copy->from, &job.check_from));
    struct sim_work *work = sim_work_new(CU_GRAPH_NODE_TYPE_MEMCPY, context);
    if (work)
        work->copy.job = job;
    return made(work, out);
}

CUresult sim_work_copy(const CUDA_MEMCPY3D *params, CUcontext handle, struct sim_work **out)
{
    SIM_REQUIRE(params && params->WidthInBytes && params->Height && params->Depth);
    SIM_HELD struct sim_context *context = NULL;
    SIM_TRY(context_for(handle, params->dstDevice, &context));
    struct sim_copy copy;
    SIM_TRY(sim_copy_of_box(params, &copy));
    SIM_TRY(sim_work_copy_of(&copy, context, out));
    (*out)->copy.params = *params;
    return CUDA_SUCCESS;
}

CUresult sim_work_fill(const CUDA_MEMSET_NODE_PARAMS_v1 *params, CUcontext handle, struct sim_work **out)
{
    SIM_REQUIRE(params && params->dst && params->width && params->height);
    SIM_REQUIRE(params->elementSize == 1 || params->elementSize == 2 || params->elementSize == 4);
    SIM_HELD struct sim_context *context = NULL;
    SIM_TRY(context_for(handle, params->dst, &context));
    struct sim_fill_job job = {
        .fill = {params->dst, params->pitch, params->width, params->height, params->elementSize, params->value},
        .function = sim_thread()->function,
        .check = true,
    };
    SIM_TRY(sim_fill_check(&job.fill));
    if (!sim_graph_memory_covers(params->dst, sim_fill_span(&job.fill)))
        SIM_TRY(sim_check_range(context, params->dst, sim_fill_span(&job.fill), true));
    struct sim_work *work = sim_work_new(CU_GRAPH_NODE_TYPE_MEMSET, context);
    if (work)
        work->fill = (struct sim_fill_work){*params, job};
    return made(work, out);
}

CUresult sim_work_host(const struct sim_host_params *params, struct sim_work **out)
{
    enum { MODES = 2 };
    SIM_REQUIRE(params->function && params->sync_mode < MODES);
    struct sim_work *work = sim_work_new(CU_GRAPH_NODE_TYPE_HOST, NULL);
    if (work)
        work->host = *params;
    return made(work, out);
}

CUresult sim_work_event(CUgraphNodeType type, CUevent handle, struct sim_work **out)
{
    struct sim_event *event;
    SIM_REQUIRE(handle);
    SIM_TRY(sim_event_find(handle, &event));
    struct sim_work *work = sim_work_new(type, event->context);
    if (work)
        work->event = event;
    else
        sim_object_drop(event);
    return made(work, out);
}

CUresult sim_work_alloc(const CUDA_MEM_ALLOC_NODE_PARAMS_v1 *params, struct sim_work **out)
{
    struct sim_graph_memory *memory;
    SIM_TRY(sim_graph_memory_new(&params->poolProps, params->accessDescs, params->accessDescCount, params->bytesize,
                                 &memory));
    struct sim_work *work = sim_work_new(CU_GRAPH_NODE_TYPE_MEM_ALLOC, NULL);
    if (work)
        work->memory = (struct sim_memory_work){memory, memory->range.start};
    else
        sim_graph_memory_drop(memory);
    return made(work, out);
}

CUDA_MEM_ALLOC_NODE_PARAMS_v1 sim_work_alloc_params(const struct sim_work *work)
{
    const struct sim_graph_memory *memory = work->memory.memory;
    return (CUDA_MEM_ALLOC_NODE_PARAMS_v1){memory->props, memory->access, memory->access_count, memory->size,
                                           memory->range.start};
}

CUresult sim_work_free(uintptr_t address, struct sim_work **out)
{
    struct sim_graph_memory *memory = sim_graph_memory_find(address);
    SIM_REQUIRE(memory);
    struct sim_work *work = sim_work_new(CU_GRAPH_NODE_TYPE_MEM_FREE, NULL);
    if (work)
        work->memory = (struct sim_memory_work){memory, address};
    else
        sim_graph_memory_drop(memory);
    return made(work, out);
}

CUresult sim_work_values(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 *params, struct sim_work **out)
{
    enum { MOST = 256 };
    SIM_REQUIRE(params && params->paramArray && params->count && params->count <= MOST && !params->flags);
    SIM_HELD struct sim_context *context = NULL;
    SIM_TRY(context_of(params->ctx, &context));
    SIM_WORK_HELD struct sim_work *work = sim_work_new(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, context);
    if (!work)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct sim_values_work *values = &work->values;
    values->params = *params;
    values->params.paramArray = malloc(params->count * sizeof *params->paramArray);
    values->jobs = malloc(params->count * sizeof *values->jobs);
    if (!values->params.paramArray || !values->jobs)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(values->params.paramArray, params->paramArray, params->count * sizeof *params->paramArray);
    for (unsigned i = 0; i < params->count; i++)
        SIM_TRY(sim_value_read(&params->paramArray[i], &values->jobs[i]));
    *out = work;
    work = NULL;
    return CUDA_SUCCESS;
}
