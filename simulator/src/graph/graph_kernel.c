// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Kernels as nodes of graphs.

#include <stdlib.h>
#include <string.h>

#include "driver/green.h"
#include "driver/report.h"
#include "graph/graph_work.h"

void sim_kernel_work_free(struct sim_kernel_work *kernel)
{
    if (kernel->job)
        sim_kernel_job_end(kernel->job);
    free(kernel->job);
    free(kernel->pointers);
    free(kernel->attributes);
    sim_object_drop(kernel->function);
}

// --- Making ---------------------------------------------------------------------------------------------------

static CUresult function_of(const CUDA_KERNEL_NODE_PARAMS_v2 *params, bool match, struct sim_function **function)
{
    if (!params->func && !params->kern)
        return CUDA_ERROR_INVALID_HANDLE;
    // Other than a launch, a node takes a function in the place of functions only.
    SIM_HELD struct sim_kernel *kernel = NULL;
    if (params->func && sim_kernel_find((CUkernel)params->func, &kernel) == CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_HANDLE;
    SIM_HELD struct sim_context *context = NULL;
    if (params->ctx && (match || !params->func))
        SIM_TRY(sim_context_find(params->ctx, &context));
    SIM_TRY(sim_function_find(params->func ? params->func : (CUfunction)params->kern, context, function));
    if (!params->func || !context || (*function)->module->context == context)
        return CUDA_SUCCESS;
    sim_object_drop(*function);
    *function = NULL;
    return CUDA_ERROR_INVALID_CONTEXT;
}

// The green context that a node is for: that of its context, or the current one for a kernel that names none.
static CUresult green_of(const CUDA_KERNEL_NODE_PARAMS_v2 *params, struct sim_green **green)
{
    SIM_HELD struct sim_context *face = NULL;
    if (params->ctx)
        SIM_TRY(sim_context_find_face(params->ctx, &face));
    *green = face ? face->green : params->func ? NULL : sim_current_green();
    if (*green)
        sim_object_hold(*green);
    return CUDA_SUCCESS;
}

static CUresult read_wish(struct sim_kernel_work *kernel, struct sim_green *green)
{
    const CUDA_KERNEL_NODE_PARAMS_v2 *params = &kernel->params;
    kernel->wish = (struct sim_launch_wish){
        .grid = {params->gridDimX, params->gridDimY, params->gridDimZ},
        .block = {params->blockDimX, params->blockDimY, params->blockDimZ},
        .dynamic_shared = params->sharedMemBytes,
        .green = green,
    };
    for (unsigned i = 0; i < kernel->attribute_count; i++)
        SIM_TRY(sim_launch_read_attribute(&kernel->attributes[i], &kernel->wish));
    // A launch may name events; a node has none but those around it.
    SIM_REQUIRE(!kernel->wish.starts && !kernel->wish.programmatic);
    SIM_TRY(sim_launch_check_shape(&kernel->wish, kernel->function));
    // The check also finds the cluster that a kernel requires.
    return sim_launch_check(&kernel->wish, kernel->function);
}

// What a program reads of the node: the function in its context, and the kernel of a library that it is of.
static void name_function(struct sim_kernel_work *kernel, const struct sim_green *green)
{
    struct sim_function *function = kernel->function;
    kernel->params.func = (CUfunction)sim_object_handle(function);
    kernel->params.kern = function->kernel ? (CUkernel)sim_object_handle(function->kernel) : NULL;
    kernel->params.ctx = sim_context_handle(green ? green->face : function->module->context);
}

// A buffer is read as far as it goes. Where launches have a limit of their own, nodes just refuse.
static CUresult check_buffer(const struct sim_kernel_work *kernel)
{
    const uint32_t most = kernel->function->entry->param_bytes;
    void **extra = kernel->params.extra;
    for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2)
        if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1])
            SIM_REQUIRE(*(const size_t *)extra[1] <= most || !most);
    return CUDA_SUCCESS;
}

// Keeps the values of the parameters, and points the arrays that a program may ask for to them.
static CUresult keep_values(struct sim_kernel_work *kernel)
{
    const sim_ptx_entry *entry = kernel->function->entry;
    // What is given to a kernel without parameters is not looked at.
    size_t none = 0;
    void *nothing[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &none, CU_LAUNCH_PARAM_END};
    SIM_TRY(check_buffer(kernel));
    kernel->job = malloc(sim_kernel_job_size(kernel->function));
    kernel->pointers = malloc((entry->param_count + 1) * sizeof *kernel->pointers);
    if (!kernel->job || !kernel->pointers) {
        free(kernel->job);
        kernel->job = NULL;
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult status = sim_kernel_job_init(kernel->job, kernel->function, &kernel->wish, kernel->params.kernelParams,
                                          kernel->params.extra && !entry->param_bytes ? nothing : kernel->params.extra);
    if (status != CUDA_SUCCESS) {
        free(kernel->job);
        kernel->job = NULL;
        return status;
    }
    for (uint32_t i = 0; i < entry->param_count; i++)
        kernel->pointers[i] = kernel->job->params + entry->params[i].offset;
    kernel->extra_size = entry->param_bytes;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, kernel->job->params, CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &kernel->extra_size, CU_LAUNCH_PARAM_END};
    memcpy(kernel->extra, extra, sizeof extra);
    bool packed = kernel->params.extra != NULL;
    kernel->params.kernelParams = packed || !entry->param_count ? NULL : kernel->pointers;
    kernel->params.extra = packed ? kernel->extra : NULL;
    return CUDA_SUCCESS;
}

// Takes the array of attributes over, also when it fails.
static CUresult make(const CUDA_KERNEL_NODE_PARAMS_v2 *params, struct sim_function *function,
                     CUlaunchAttribute *attributes, unsigned count, struct sim_work **out)
{
    SIM_WORK_HELD struct sim_work *work = sim_work_new(CU_GRAPH_NODE_TYPE_KERNEL, function->module->context);
    if (!work) {
        free(attributes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct sim_kernel_work *kernel = &work->kernel;
    SIM_HELD struct sim_green *green = NULL;
    CUresult status = green_of(params, &green);
    if (status != CUDA_SUCCESS) {
        free(attributes);
        return status;
    }
    kernel->params = *params;
    sim_object_hold(function);
    kernel->function = function;
    name_function(kernel, green);
    kernel->attributes = attributes;
    kernel->attribute_count = count;
    SIM_TRY(read_wish(kernel, green));
    SIM_REQUIRE(!params->extra || !kernel->wish.cooperative);
    SIM_TRY(keep_values(kernel));
    *out = work;
    work = NULL;
    return CUDA_SUCCESS;
}

CUresult sim_work_kernel(const CUDA_KERNEL_NODE_PARAMS_v2 *params, const struct sim_work *like, bool match,
                         struct sim_work **work)
{
    SIM_REQUIRE(params);
    SIM_HELD struct sim_function *function = NULL;
    SIM_TRY(function_of(params, match, &function));
    CUlaunchAttribute *attributes = NULL;
    unsigned count = like ? like->kernel.attribute_count : 0;
    if (count) {
        attributes = malloc(count * sizeof *attributes);
        if (!attributes)
            return CUDA_ERROR_OUT_OF_MEMORY;
        memcpy(attributes, like->kernel.attributes, count * sizeof *attributes);
    }
    return make(params, function, attributes, count, work);
}

// Driver 580 reads the code without a check, and crashes.
CUresult sim_kernel_work_is_loaded(const struct sim_work *work)
{
    const struct sim_function *function = work->kernel.function;
    if (SIM_LIKELY(atomic_load(&function->base.live)))
        return CUDA_SUCCESS;
    if (sim_context_status(function->module->context) == CUDA_ERROR_CONTEXT_IS_DESTROYED)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    sim_report("unloaded code", sim_thread()->function, 0, 0, NULL,
               "the code of kernel %s, a node of the graph, was unloaded", function->entry->name);
    return CUDA_ERROR_INVALID_HANDLE;
}

CUresult sim_kernel_work_check(const struct sim_work *work)
{
    SIM_TRY(sim_kernel_work_is_loaded(work));
    struct sim_launch_wish wish = work->kernel.wish;
    return sim_launch_check(&wish, work->kernel.function);
}

// --- Attributes -----------------------------------------------------------------------------------------------

const CUlaunchAttribute *sim_kernel_work_attribute(const struct sim_work *work, CUlaunchAttributeID id)
{
    for (unsigned i = 0; i < work->kernel.attribute_count; i++)
        if (work->kernel.attributes[i].id == id)
            return &work->kernel.attributes[i];
    return NULL;
}

CUresult sim_kernel_work_with(const struct sim_work *work, const CUlaunchAttribute *given, unsigned count,
                              struct sim_work **changed)
{
    const struct sim_kernel_work *kernel = &work->kernel;
    CUlaunchAttribute *attributes = malloc((kernel->attribute_count + count + 1) * sizeof *attributes);
    if (!attributes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    unsigned total = kernel->attribute_count;
    if (total)
        memcpy(attributes, kernel->attributes, total * sizeof *attributes);
    for (unsigned i = 0; i < count; i++) {
        unsigned place = 0;
        while (place < total && attributes[place].id != given[i].id)
            place++;
        attributes[place] = given[i];
        total += place == total;
    }
    return make(&kernel->params, kernel->function, attributes, total, changed);
}
