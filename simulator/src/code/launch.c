// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Kernel launches: what hardware would refuse is refused, the rest runs in stream order.

#include "code/launch.h"

#include <stdlib.h>
#include <string.h>

#include "memory/allocation.h"
#include "streams/capture.h"
#include "driver/device.h"
#include "driver/green.h"
#include "driver/logs.h"
#include "streams/event.h"
#include "driver/usage.h"

enum { PORTABLE_CLUSTER = 8, LARGEST_CLUSTER = 16, BLOCKS_WORTH_A_THREAD = 4 };
enum { FIRST_WITH_PROGRAMMATIC_EVENTS = 9 };  // compute capability

// What older headers do not name: attributes, their values, and the last driver that does not know them.
enum { NVLINK_UTIL_CENTRIC_SCHEDULING = 16, PORTABLE_CLUSTER_SIZE_MODE = 17, SHARED_MEMORY_MODE = 18 };
enum { RUBIN_DSMEM_LOCALITY = 3, PREFER_OVERSIZED_SHARED_MEMORY = 4 };
enum { CUDA_12_9 = 12090, CUDA_13_0 = 13000 };

static _Atomic uint64_t last_grid;

// --- Running --------------------------------------------------------------------------------------------------

static const char *kind_of(int error)
{
    switch (error) {
    case CUDA_ERROR_MISALIGNED_ADDRESS: return "misaligned access";
    case CUDA_ERROR_ASSERT: return "assertion";
    case CUDA_ERROR_LAUNCH_TIMEOUT: return "time limit";
    case CUDA_ERROR_ILLEGAL_INSTRUCTION: return "illegal instruction";
    default: return "kernel failure";
    }
}

void sim_kernel_run(struct sim_context *context, const struct sim_kernel_job *job,
                    const struct sim_conditions *conditions)
{
    if (atomic_load(&context->error) != CUDA_SUCCESS)
        return;
    sim_ptx_fault fault = {.message = ""};
    sim_ptx_launch launch = job->launch;
    launch.params = job->params;
    launch.cancel = (const int *)&context->error;
    launch.grid_id = atomic_fetch_add(&last_grid, 1) + 1;
    if (conditions) {
        launch.set_condition = conditions->set;
        launch.condition_ctx = conditions->ctx;
    }
    sim_usage_begin(sim_device_at(context->device)->usage);
    int error = sim_ptx_launch_grid(job->entry, &launch, &fault);
    sim_usage_end(sim_device_at(context->device)->usage);
    // A kernel that was stopped because another one failed has nothing to add.
    if (!error || atomic_load(&context->error) != CUDA_SUCCESS)
        return;
    if (error == CUDA_ERROR_ILLEGAL_ADDRESS)
        sim_report_kernel_access(context, fault.address, job->entry->name, fault.message);
    else
        sim_report(kind_of(error), job->entry->name, fault.address, 0, NULL, "%s", fault.message);
    sim_coredump_write(&context->coredump, fault.message);
    sim_context_fail(context, (CUresult)error, sim_last_report());
}

static void run_kernel(struct sim_stream *stream, void *payload)
{
    struct sim_kernel_job *job = payload;
    sim_kernel_run(stream->context, job, NULL);
    sim_kernel_job_end(job);
}

// --- Reading the request --------------------------------------------------------------------------------------

static CUresult read_dimensions(const CUlaunchAttributeValue *value, uint32_t *size)
{
    // The preferred dimensions lie in the same place. Only zeros mean that nothing is asked for.
    memset(size, 0, 3 * sizeof *size);
    if (!value->clusterDim.x && !value->clusterDim.y && !value->clusterDim.z)
        return CUDA_SUCCESS;
    if (!value->clusterDim.x || !value->clusterDim.y || !value->clusterDim.z)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    size[0] = value->clusterDim.x;
    size[1] = value->clusterDim.y;
    size[2] = value->clusterDim.z;
    return CUDA_SUCCESS;
}

static CUresult check_window(const CUaccessPolicyWindow *window)
{
    SIM_REQUIRE(window->num_bytes <= (size_t)sim_device_value(CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE));
    SIM_REQUIRE(window->hitRatio >= 0 && window->hitRatio <= 1);
    SIM_REQUIRE((unsigned)window->hitProp <= CU_ACCESS_PROPERTY_PERSISTING);
    SIM_REQUIRE((unsigned)window->missProp <= CU_ACCESS_PROPERTY_STREAMING);
    return CUDA_SUCCESS;
}

static CUresult read_event(CUevent event, int flags, CUevent *wish)
{
    SIM_REQUIRE(event && !flags);
    *wish = event;
    return CUDA_SUCCESS;
}

CUresult sim_launch_read_attribute(const CUlaunchAttribute *attribute, struct sim_launch_wish *wish)
{
    const CUlaunchAttributeValue *value = &attribute->value;
    const int driver = sim_config()->driver_version;
    unsigned number;  // of the values that are one
    memcpy(&number, value, sizeof number);
    switch ((int)attribute->id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        return CUDA_SUCCESS;  // a hint: the simulator runs every kernel after the one before it
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: return check_window(&value->accessPolicyWindow);
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE: wish->cooperative = value->cooperative != 0; return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION: return read_dimensions(value, wish->cluster);
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION: return read_dimensions(value, wish->preferred_cluster);
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        SIM_REQUIRE(number <= CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING ||
                    (number == RUBIN_DSMEM_LOCALITY && driver > CUDA_13_0));
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        SIM_REQUIRE(value->priority >= SIM_GREATEST_PRIORITY && value->priority <= 0);
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        SIM_REQUIRE(number <= CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: {
        const CUlaunchMemSyncDomainMap *map = &value->memSyncDomainMap;
        const int count = sim_device_value(CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT);
        SIM_REQUIRE(map->default_ < count && map->remote < count);
        return CUDA_SUCCESS;
    }
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        SIM_REQUIRE((int)value->sharedMemCarveout >= -1 && (int)value->sharedMemCarveout <= 100);
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        if (sim_config()->major < FIRST_WITH_PROGRAMMATIC_EVENTS)
            return CUDA_ERROR_NOT_SUPPORTED;
        wish->at_block_start = value->programmaticEvent.triggerAtBlockStart != 0;
        return read_event(value->programmaticEvent.event, value->programmaticEvent.flags, &wish->programmatic);
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        return read_event(value->launchCompletionEvent.event, value->launchCompletionEvent.flags, &wish->starts);
    case NVLINK_UTIL_CENTRIC_SCHEDULING: SIM_REQUIRE(driver > CUDA_12_9 && number <= 1); return CUDA_SUCCESS;
    case PORTABLE_CLUSTER_SIZE_MODE:
        SIM_REQUIRE(driver > CUDA_13_0 && number <= SIM_NON_PORTABLE_ALLOWED);
        wish->cluster_size = (enum sim_portable)number;
        return CUDA_SUCCESS;
    case SHARED_MEMORY_MODE:
        SIM_REQUIRE(driver > CUDA_13_0 && number <= PREFER_OVERSIZED_SHARED_MEMORY);
        wish->shared_mode = number;
        return CUDA_SUCCESS;
    default:  // unknown, of streams (the synchronization policy), or of graphs (nodes that the device can update)
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult sim_launch_read(const CUlaunchConfig *config, struct sim_launch_wish *wish)
{
    SIM_REQUIRE(config && (!config->numAttrs || config->attrs));
    *wish = (struct sim_launch_wish){
        .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
        .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
        .dynamic_shared = config->sharedMemBytes,
        .stream = config->hStream,
        .attributes = config->attrs,
        .attribute_count = config->numAttrs,
    };
    for (unsigned i = 0; i < config->numAttrs; i++)
        SIM_TRY(sim_launch_read_attribute(&config->attrs[i], wish));
    return CUDA_SUCCESS;
}

static CUresult check_shape(const struct sim_launch_wish *wish, const sim_ptx_entry *entry,
                            const struct sim_settings *settings)
{
    static const CUdevice_attribute grid_limits[] = {
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z};
    static const CUdevice_attribute block_limits[] = {
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z};
    size_t threads = 1;
    for (int i = 0; i < 3; i++) {
        SIM_REQUIRE_THAT(wish->grid[i] && wish->grid[i] <= (uint32_t)sim_device_value(grid_limits[i]),
                         "dimension %d of the grid is %u, and must be 1 to %d", i, wish->grid[i],
                         sim_device_value(grid_limits[i]));
        SIM_REQUIRE_THAT(wish->block[i] && wish->block[i] <= (uint32_t)sim_device_value(block_limits[i]),
                         "dimension %d of the block is %u, and must be 1 to %d", i, wish->block[i],
                         sim_device_value(block_limits[i]));
        SIM_REQUIRE(!entry->reqntid[0] || wish->block[i] == (entry->reqntid[i] ? entry->reqntid[i] : 1));
        threads *= wish->block[i];
    }
    SIM_REQUIRE(threads <= (size_t)sim_device_value(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
    SIM_REQUIRE(threads <= entry->max_threads);
    // No shared memory here is larger than what a block can opt in to.
    if (wish->shared_mode == SIM_PORTABLE_DEFAULT)
        SIM_REQUIRE_THAT(wish->dynamic_shared <= (size_t)settings->max_dynamic_shared,
                         "%zu bytes of dynamic shared memory are more than %d", (size_t)wish->dynamic_shared,
                         settings->max_dynamic_shared);
    int most = sim_device_value(wish->shared_mode == SIM_PORTABLE_REQUIRED
                                    ? CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK
                                    : CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    SIM_REQUIRE_THAT(wish->dynamic_shared + entry->shared_bytes <= (size_t)most,
                     "%zu bytes of shared memory are more than %d", wish->dynamic_shared + entry->shared_bytes, most);
    return CUDA_SUCCESS;
}

static CUresult check_cluster(struct sim_launch_wish *wish, const sim_ptx_entry *entry,
                              const struct sim_settings *settings)
{
    bool asked = wish->cluster[0] != 0;
    bool required = settings->cluster[0] || settings->cluster[1] || settings->cluster[2];
    for (int i = 0; i < 3 && required; i++) {
        uint32_t size = settings->cluster[i] ? (uint32_t)settings->cluster[i] : 1;
        if (asked && wish->cluster[i] != size)
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
        wish->cluster[i] = size;
    }
    if (!asked && !required)
        return entry->explicit_cluster ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
    if (!sim_device_value(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH))
        return CUDA_ERROR_NOT_SUPPORTED;
    size_t blocks = 1, preferred = 1;
    for (int i = 0; i < 3; i++) {
        if (wish->grid[i] % wish->cluster[i])
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
        blocks *= wish->cluster[i];
        // Preferred clusters are never made, but have to be possible.
        if (wish->preferred_cluster[0] &&
            (wish->preferred_cluster[i] % wish->cluster[i] || wish->grid[i] % wish->preferred_cluster[i]))
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
        preferred *= wish->preferred_cluster[i];
    }
    if (wish->preferred_cluster[0] && wish->preferred_cluster[2] != wish->cluster[2])
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    bool large = wish->cluster_size == SIM_PORTABLE_DEFAULT ? settings->non_portable != 0
                                                            : wish->cluster_size == SIM_NON_PORTABLE_ALLOWED;
    size_t most = large ? LARGEST_CLUSTER : PORTABLE_CLUSTER;
    size_t most_preferred = LARGEST_CLUSTER;
    if (entry->max_cluster_rank && entry->max_cluster_rank < most)
        most = entry->max_cluster_rank;
    if (entry->max_cluster_rank)
        most_preferred = entry->max_cluster_rank;
    return blocks <= most && preferred <= most_preferred ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

static unsigned multiprocessors(const struct sim_launch_wish *wish)
{
    return wish->green ? wish->green->provision.sm_count
                       : (unsigned)sim_device_value(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

static CUresult check_resident(const struct sim_launch_wish *wish, const sim_ptx_entry *entry,
                               const struct sim_settings *settings)
{
    int threads = (int)(wish->block[0] * wish->block[1] * wish->block[2]);
    uint64_t capacity =
        (uint64_t)sim_blocks_per_multiprocessor(entry, threads, wish->dynamic_shared, settings) * multiprocessors(wish);
    return (uint64_t)wish->grid[0] * wish->grid[1] * wish->grid[2] <= capacity
               ? CUDA_SUCCESS
               : CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
}

CUresult sim_launch_check_shape(const struct sim_launch_wish *wish, struct sim_function *function)
{
    struct sim_settings settings = sim_function_settings(function);
    return check_shape(wish, function->entry, &settings);
}

CUresult sim_launch_check(struct sim_launch_wish *wish, struct sim_function *function)
{
    struct sim_settings settings = sim_function_settings(function);
    SIM_TRY(check_shape(wish, function->entry, &settings));
    SIM_TRY(check_cluster(wish, function->entry, &settings));
    return wish->cooperative ? check_resident(wish, function->entry, &settings) : CUDA_SUCCESS;
}

// --- Parameters -----------------------------------------------------------------------------------------------

static CUresult from_buffer(char *params, const sim_ptx_entry *entry, void **extra)
{
    const void *buffer = NULL;
    const size_t *size = NULL;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = extra[1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    SIM_REQUIRE(size && (buffer || !*size) && (*size || !entry->param_bytes));
    if (*size > entry->param_bytes)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    // A buffer that is too short is accepted, as on hardware; the rest is zero here.
    if (*size)
        memcpy(params, buffer, *size);
    return CUDA_SUCCESS;
}

static CUresult read_params(char *params, const sim_ptx_entry *entry, void **kernel_params, void **extra)
{
    SIM_REQUIRE(!kernel_params || !extra);
    if (extra)
        return from_buffer(params, entry, extra);
    SIM_REQUIRE(kernel_params || !entry->param_count);
    for (uint32_t i = 0; i < entry->param_count; i++) {
        SIM_REQUIRE(kernel_params[i]);
        memcpy(params + entry->params[i].offset, kernel_params[i], entry->params[i].size);
    }
    return CUDA_SUCCESS;
}

// --- Launching ------------------------------------------------------------------------------------------------

size_t sim_kernel_job_size(const struct sim_function *function)
{
    return sizeof(struct sim_kernel_job) + function->entry->param_bytes;
}

CUresult sim_kernel_job_init(struct sim_kernel_job *job, struct sim_function *function,
                             const struct sim_launch_wish *wish, void **kernel_params, void **extra)
{
    const sim_ptx_entry *entry = function->entry;
    memset(job, 0, sim_kernel_job_size(function));
    SIM_TRY(read_params(job->params, entry, kernel_params, extra));
    uint64_t blocks = (uint64_t)wish->grid[0] * wish->grid[1] * wish->grid[2];
    unsigned workers = sim_config()->workers;
    if (blocks / BLOCKS_WORTH_A_THREAD < workers)
        workers = blocks < BLOCKS_WORTH_A_THREAD ? 1 : (unsigned)(blocks / BLOCKS_WORTH_A_THREAD);
    job->entry = entry;
    job->launch = (sim_ptx_launch){
        .dynamic_shared = (uint32_t)wish->dynamic_shared,
        .cooperative = wish->cooperative,
        .time_limit = sim_config()->kernel_seconds,
        .workers = workers,
        .sm_count = (unsigned)sim_device_value(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        .sms = wish->green ? wish->green->sms : NULL,
        .sms_count = multiprocessors(wish),
    };
    memcpy(job->launch.grid, wish->grid, sizeof wish->grid);
    memcpy(job->launch.block, wish->block, sizeof wish->block);
    memcpy(job->launch.cluster, wish->cluster, sizeof wish->cluster);
    sim_object_hold(function->module);
    job->module = function->module;
    if (wish->green)
        sim_object_hold(wish->green);
    job->green = wish->green;
    return CUDA_SUCCESS;
}

void sim_kernel_job_end(struct sim_kernel_job *job)
{
    sim_object_drop(job->module);
    sim_object_drop(job->green);
}

static CUresult submit(struct sim_stream *stream, struct sim_function *function, const struct sim_launch_wish *wish,
                       void **kernel_params, void **extra)
{
    struct sim_op *op = sim_op_new(run_kernel, sim_kernel_job_size(function));
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->always = true;  // there is a reference to give back
    CUresult status = sim_kernel_job_init((struct sim_kernel_job *)op->payload, function, wish, kernel_params, extra);
    if (status != CUDA_SUCCESS) {
        free(op);
        return status;
    }
    return sim_submit(stream, op, NULL);
}

// The event of an attribute; NULL where there is none.
static CUresult find_event(CUevent handle, const struct sim_stream *stream, struct sim_event **event)
{
    if (!handle)
        return CUDA_SUCCESS;
    SIM_TRY(sim_event_find(handle, event));
    SIM_REQUIRE((*event)->flags & CU_EVENT_DISABLE_TIMING && !((*event)->flags & CU_EVENT_INTERPROCESS));
    return (*event)->context == stream->context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult launch(CUfunction handle, struct sim_launch_wish *wish, void **kernel_params, void **extra)
{
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_for_work(wish->stream, &stream));
    wish->green = stream->green;
    if (sim_capturing(stream))
        return sim_capture_kernel(stream, handle, wish, kernel_params, extra);
    SIM_HELD struct sim_function *function = NULL;
    SIM_TRY(sim_function_find(handle, stream->context, &function));
    if (function->module->context != stream->context)
        return CUDA_ERROR_INVALID_HANDLE;
    SIM_TRY(sim_launch_check(wish, function));
    SIM_HELD struct sim_event *starts = NULL;
    SIM_HELD struct sim_event *programmatic = NULL;
    SIM_TRY(find_event(wish->starts, stream, &starts));
    SIM_TRY(find_event(wish->programmatic, stream, &programmatic));
    // The stream reaches an event before the kernel exactly when the kernel starts.
    if (starts)
        SIM_TRY(sim_event_record(starts, stream));
    if (programmatic && wish->at_block_start)
        SIM_TRY(sim_event_record(programmatic, stream));
    SIM_TRY(submit(stream, function, wish, kernel_params, extra));
    // A block that ends has triggered the event. Whether it did so before is never looked at.
    return programmatic && !wish->at_block_start ? sim_event_record(programmatic, stream) : CUDA_SUCCESS;
}

SIM_API_STREAM(cuLaunchKernel, _ptsz,
               (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes,
                CUstream hStream, void **kernelParams, void **extra),
               (f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream, kernelParams,
                extra))
{
    struct sim_launch_wish wish = {
        .grid = {gridDimX, gridDimY, gridDimZ},
        .block = {blockDimX, blockDimY, blockDimZ},
        .dynamic_shared = sharedMemBytes,
        .stream = hStream,
    };
    return launch(f, &wish, kernelParams, extra);
}

SIM_API_STREAM(cuLaunchKernelEx, _ptsz, (const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra),
               (config, f, kernelParams, extra))
{
    struct sim_launch_wish wish;
    SIM_TRY(sim_launch_read(config, &wish));
    return launch(f, &wish, kernelParams, extra);
}

SIM_API_STREAM(cuLaunchCooperativeKernel, _ptsz,
               (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
                unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes,
                CUstream hStream, void **kernelParams),
               (f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream,
                kernelParams))
{
    struct sim_launch_wish wish = {
        .grid = {gridDimX, gridDimY, gridDimZ},
        .block = {blockDimX, blockDimY, blockDimZ},
        .dynamic_shared = sharedMemBytes,
        .cooperative = true,
        .stream = hStream,
    };
    return launch(f, &wish, kernelParams, NULL);
}
