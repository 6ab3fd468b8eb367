// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "driver/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "streams/capture.h"
#include "driver/device.h"
#include "driver/green.h"
#include "driver/logs.h"
#include "driver/usage.h"
#include "streams/event.h"
#include "memory/memory.h"
#include "code/module.h"
#include "memory/pool.h"
#include "texture/array.h"
#include "texture/objects.h"

static _Atomic uint64_t last_id;

enum { API_VERSION = 3020 };
static const unsigned KNOWN_FLAGS = CU_CTX_FLAGS_MASK;

static const size_t default_limits[SIM_LIMITS] = {
    [CU_LIMIT_STACK_SIZE] = 1024,
    [CU_LIMIT_PRINTF_FIFO_SIZE] = 8650752,
    [CU_LIMIT_MALLOC_HEAP_SIZE] = 8388608,
    [CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
    [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64,
    [CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = 0,
    [CU_LIMIT_SHMEM_SIZE] = 232448,
};

// --- Life -----------------------------------------------------------------------------------------------------

CUresult sim_context_flags_valid(unsigned flags)
{
    unsigned schedule = flags & CU_CTX_SCHED_MASK;
    SIM_REQUIRE(!(flags & ~KNOWN_FLAGS));
    SIM_REQUIRE(schedule == CU_CTX_SCHED_AUTO || schedule == CU_CTX_SCHED_SPIN || schedule == CU_CTX_SCHED_YIELD ||
                schedule == CU_CTX_SCHED_BLOCKING_SYNC);
    return CUDA_SUCCESS;
}

uint64_t sim_context_next_id(void) { return atomic_fetch_add(&last_id, 1) + 1; }

// Remembers the fault with which the call under way fails; sim_log_fault explains it.
static void meet_fault(int device, CUresult error)
{
    sim_thread()->failed = device;
    sim_thread()->fault = error;
}

CUresult sim_context_init(struct sim_context *context, int device, unsigned flags)
{
    struct sim_device *on = sim_device_at(device);
    CUresult fault = (CUresult)atomic_load(&on->fault);
    if (fault != CUDA_SUCCESS) {
        meet_fault(device, fault);
        return fault;
    }
    // A primary context that comes back keeps its lock and its legacy stream.
    if (!context->legacy) {
        pthread_mutex_init(&context->lock, NULL);
        SIM_TRY(sim_stream_new(context, CU_STREAM_DEFAULT, 0, &context->legacy));
        context->legacy->legacy = true;
        sim_object_hide(context->legacy);
    }
    context->device = device;
    context->flags = flags | CU_CTX_MAP_HOST;
    context->id = sim_context_next_id();
    sim_coredump_init(&context->coredump, flags);
    context->cache = CU_FUNC_CACHE_PREFER_NONE;
    context->shared_config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    for (int i = 0; i < SIM_MAX_DEVICES; i++)
        atomic_store(&context->peers[i], 0);
    for (int i = 0; i < SIM_LIMITS; i++)
        atomic_store(&context->limits[i], default_limits[i]);
    if (!atomic_exchange(&context->active, true))
        atomic_fetch_add(&on->usage->contexts, 1);
    atomic_store(&context->error, atomic_load(&on->fault));  // there may be one by now
    return CUDA_SUCCESS;
}

static void retire_stream(void *object, void *context)
{
    struct sim_stream *stream = object;
    if (stream->context == context && !stream->legacy && sim_object_retire(stream))
        sim_capture_stream_ends(stream);
}

static void retire_event(void *object, void *context)
{
    if (((struct sim_event *)object)->context == context)
        sim_object_retire(object);
}

void sim_context_tear_down(struct sim_context *context)
{
    if (atomic_exchange(&context->active, false))
        atomic_fetch_sub(&sim_device_at(context->device)->usage->contexts, 1);
    sim_context_drain(context);
    sim_greens_retire_of(context);
    sim_object_each(SIM_STREAM, retire_stream, context);
    sim_object_each(SIM_EVENT, retire_event, context);
    sim_modules_retire_of(context);
    sim_libraries_forget(context);
    sim_arrays_retire_of(context);
    sim_texture_objects_retire_of(context);
    struct sim_allocation allocation;
    while (sim_allocation_take_of(context, &allocation))
        sim_memory_release(&allocation);
}

void sim_context_finalize(void *object)
{
    struct sim_context *context = object;
    sim_object_drop(context->green);
    if (!context->legacy)
        return;
    // Every other stream holds a reference to the context, so none is left.
    sim_object_retire(context->legacy);
    pthread_mutex_destroy(&context->lock);
}

// --- The current context --------------------------------------------------------------------------------------

CUcontext sim_context_handle(struct sim_context *context) { return (CUcontext)sim_object_handle(context); }

CUresult sim_context_status(struct sim_context *context)
{
    if (SIM_UNLIKELY(!atomic_load_explicit(&context->active, memory_order_acquire)))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    CUresult error = (CUresult)atomic_load_explicit(&context->error, memory_order_acquire);
    if (SIM_UNLIKELY(error != CUDA_SUCCESS))
        meet_fault(context->device, error);
    return error;
}

static pthread_mutex_t fault_lock = PTHREAD_MUTEX_INITIALIZER;  // guards the reports of devices that have failed

static void mark_failed(void *object, void *failed)
{
    struct sim_context *context = object;
    const struct sim_device *device = failed;
    if (context->device == device->ordinal)
        atomic_store(&context->error, atomic_load(&device->fault));
}

void sim_context_fail(struct sim_context *context, CUresult error, const char *why)
{
    struct sim_device *device = sim_device_at(context->device);
    pthread_mutex_lock(&fault_lock);
    if (atomic_load(&device->fault) == CUDA_SUCCESS) {
        snprintf(device->fault_report, sizeof device->fault_report, "%s", why);
        atomic_store(&device->fault, (int)error);
    }
    pthread_mutex_unlock(&fault_lock);
    sim_object_each(SIM_CONTEXT, mark_failed, device);
    atomic_store(&context->error, atomic_load(&device->fault));
}

static void drain_failed(void *context, void *unused)
{
    (void)unused;
    if (atomic_load(&((struct sim_context *)context)->error))
        sim_context_drain(context);
}

static void forget_failure(void *context, void *unused)
{
    (void)unused;
    atomic_store(&((struct sim_context *)context)->error, CUDA_SUCCESS);
}

void sim_log_fault(CUresult status)
{
    struct sim_thread *self = sim_thread();
    char why[SIM_REPORT_TEXT];
    CUresult fault = self->fault;
    self->fault = CUDA_SUCCESS;  // a later call meets it again, or fails for another reason
    if (status == CUDA_SUCCESS || status != fault)
        return;
    pthread_mutex_lock(&fault_lock);
    memcpy(why, sim_device_at(self->failed)->fault_report, sizeof why);
    pthread_mutex_unlock(&fault_lock);
    sim_log("%s", why);
}

// What hardware has no call for: contexts, those that exist too, work again. Kernels that are being stopped stop first.
SIM_EXPORT void cudaSimRecover(void)
{
    sim_object_each(SIM_CONTEXT, drain_failed, NULL);
    for (int i = 0; i < sim_device_count(); i++)
        atomic_store(&sim_device_at(i)->fault, CUDA_SUCCESS);
    sim_object_each(SIM_CONTEXT, forget_failure, NULL);
}

CUresult sim_current_quiet(struct sim_context **context)
{
    struct sim_thread *thread = sim_thread();
    if (SIM_UNLIKELY(!thread->depth || !thread->contexts[thread->depth - 1]))
        return CUDA_ERROR_INVALID_CONTEXT;
    struct sim_context *top = thread->contexts[thread->depth - 1];
    *context = top->green ? top->green->home : top;
    return atomic_load(&top->active) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult sim_current(struct sim_context **context)
{
    SIM_TRY(sim_current_quiet(context));
    return sim_context_status(*context);
}

CUresult sim_context_find_face(CUcontext handle, struct sim_context **out)
{
    struct sim_context *context;
    switch (sim_object_find(SIM_CONTEXT, handle, (void **)&context)) {
    case SIM_FOUND: break;
    case SIM_STALE: return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    default: return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (!atomic_load(&context->active)) {
        sim_object_drop(context);
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    *out = context;
    return CUDA_SUCCESS;
}

CUresult sim_context_find(CUcontext handle, struct sim_context **out)
{
    struct sim_context *face;
    SIM_TRY(sim_context_find_face(handle, &face));
    *out = face;
    if (!face->green)
        return CUDA_SUCCESS;
    *out = face->green->home;
    sim_object_hold(*out);
    sim_object_drop(face);
    return CUDA_SUCCESS;
}

SIM_API(cuCtxPushCurrent_v2, (CUcontext ctx), (ctx))
{
    SIM_HELD struct sim_context *context = NULL;
    SIM_REQUIRE(ctx);
    SIM_TRY(sim_context_find_face(ctx, &context));
    sim_thread_push(context);
    return CUDA_SUCCESS;
}

SIM_API(cuCtxPopCurrent_v2, (CUcontext *pctx), (pctx))
{
    struct sim_thread *thread = sim_thread();
    if (!thread->depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    struct sim_context *context = thread->contexts[--thread->depth];
    if (pctx)
        *pctx = context ? sim_context_handle(context) : NULL;
    sim_object_drop(context);
    return CUDA_SUCCESS;
}

SIM_API(cuCtxSetCurrent, (CUcontext ctx), (ctx))
{
    SIM_HELD struct sim_context *context = NULL;
    if (ctx)
        SIM_TRY(sim_context_find_face(ctx, &context));
    struct sim_thread *thread = sim_thread();
    if (thread->depth) {
        if (thread->contexts[thread->depth - 1] == context)
            return CUDA_SUCCESS;
        sim_object_drop(thread->contexts[--thread->depth]);
    }
    if (context)
        sim_thread_push(context);
    return CUDA_SUCCESS;
}

SIM_API(cuCtxGetCurrent, (CUcontext *pctx), (pctx))
{
    SIM_REQUIRE(pctx);
    struct sim_thread *thread = sim_thread();
    struct sim_context *context = thread->depth ? thread->contexts[thread->depth - 1] : NULL;
    *pctx = context ? sim_context_handle(context) : NULL;
    return CUDA_SUCCESS;
}

// --- Creation -------------------------------------------------------------------------------------------------

static CUresult create(CUcontext *pctx, unsigned flags, CUdevice dev)
{
    SIM_REQUIRE(pctx);
    struct sim_device *device;
    SIM_TRY(sim_device_find(dev, &device));
    SIM_TRY(sim_context_flags_valid(flags));
    struct sim_context *context = sim_object_new(SIM_CONTEXT);
    if (!context)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult status = sim_context_init(context, dev, flags);
    if (status != CUDA_SUCCESS) {
        sim_object_retire(context);
        return status;
    }
    sim_thread_push(context);
    *pctx = sim_context_handle(context);
    return CUDA_SUCCESS;
}

SIM_API(cuCtxCreate_v2, (CUcontext *pctx, unsigned int flags, CUdevice dev), (pctx, flags, dev))
{
    return create(pctx, flags, dev);
}

SIM_API(cuCtxCreate_v3,
        (CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams, unsigned int flags, CUdevice dev),
        (pctx, paramsArray, numParams, flags, dev))
{
    (void)paramsArray;
    if (numParams)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return create(pctx, flags, dev);
}

SIM_API(cuCtxCreate_v4, (CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev),
        (pctx, ctxCreateParams, flags, dev))
{
    if (ctxCreateParams && ctxCreateParams->numExecAffinityParams)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    if (ctxCreateParams && ctxCreateParams->cigParams)
        return CUDA_ERROR_NOT_SUPPORTED;
    return create(pctx, flags, dev);
}

SIM_API(cuCtxDestroy_v2, (CUcontext ctx), (ctx))
{
    SIM_REQUIRE(ctx);
    SIM_HELD struct sim_context *context = NULL;
    SIM_TRY(sim_context_find(ctx, &context));
    if (context->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!sim_object_retire(context))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    sim_context_tear_down(context);
    sim_thread_forget_context(context);
    return CUDA_SUCCESS;
}

// --- Properties -----------------------------------------------------------------------------------------------

// The context named, or the current one for NULL; takes a reference. What stands for a green context is found itself.
static CUresult named_or_current(CUcontext handle, struct sim_context **context)
{
    if (handle)
        return sim_context_find_face(handle, context);
    SIM_TRY(sim_current_quiet(context));
    const struct sim_thread *thread = sim_thread();
    *context = thread->contexts[thread->depth - 1];
    sim_object_hold(*context);
    return CUDA_SUCCESS;
}

static CUresult device_of(CUdevice *device, CUcontext ctx)
{
    SIM_REQUIRE(device);
    SIM_HELD struct sim_context *context = NULL;
    SIM_TRY(named_or_current(ctx, &context));
    *device = context->device;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxGetDevice, (CUdevice *device), (device)) { return device_of(device, NULL); }
SIM_API(cuCtxGetDevice_v2, (CUdevice *device, CUcontext ctx), (device, ctx)) { return device_of(device, ctx); }

static CUresult synchronize(CUcontext ctx)
{
    SIM_HELD struct sim_context *context = NULL;
    SIM_TRY(named_or_current(ctx, &context));
    struct sim_green *green = context->green;
    struct sim_context *home = green ? green->home : context;
    SIM_TRY(sim_context_status(home));
    SIM_TRY(green ? sim_capture_check_green(green) : sim_capture_check_context(home));
    if (sim_sync_resumes()) {
        SIM_TRY(sim_sync_resume());
    } else {
        size_t count;
        struct sim_point *points = sim_context_points(home, green, &count);
        CUresult waited = sim_sync_begin(points, count);
        free(points);
        SIM_TRY(waited);
    }
    sim_pools_settle(home->device);
    return sim_context_status(home);
}

SIM_API(cuCtxSynchronize, (void), ()) { return synchronize(NULL); }
SIM_API(cuCtxSynchronize_v2, (CUcontext ctx), (ctx)) { return synchronize(ctx); }

SIM_API(cuCtxGetId, (CUcontext ctx, unsigned long long *ctxId), (ctx, ctxId))
{
    SIM_REQUIRE(ctxId);
    SIM_HELD struct sim_context *context = NULL;
    SIM_TRY(named_or_current(ctx, &context));
    SIM_TRY(sim_context_status(context));
    *ctxId = context->id;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxGetApiVersion, (CUcontext ctx, unsigned int *version), (ctx, version))
{
    SIM_REQUIRE(version);
    SIM_HELD struct sim_context *context = NULL;
    SIM_TRY(named_or_current(ctx, &context));
    *version = API_VERSION;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxGetFlags, (unsigned int *flags), (flags))
{
    SIM_REQUIRE(flags);
    struct sim_context *context;
    SIM_TRY(sim_current_quiet(&context));
    *flags = context->flags;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxSetFlags, (unsigned int flags), (flags))
{
    struct sim_context *context;
    SIM_TRY(sim_current_quiet(&context));
    SIM_TRY(sim_context_flags_valid(flags));
    context->flags = flags | CU_CTX_MAP_HOST;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxGetLimit, (size_t *pvalue, CUlimit limit), (pvalue, limit))
{
    SIM_REQUIRE(pvalue);
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    *pvalue = 0;
    switch ((int)limit) {
    case CU_LIMIT_CIG_ENABLED: return CUDA_SUCCESS;
    case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
    case CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED: return CUDA_ERROR_UNSUPPORTED_LIMIT;
    default: break;
    }
    SIM_REQUIRE((int)limit >= 0 && (int)limit < SIM_LIMITS);
    *pvalue = atomic_load(&context->limits[limit]);
    return CUDA_SUCCESS;
}

SIM_API(cuCtxSetLimit, (CUlimit limit, size_t value), (limit, value))
{
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    SIM_TRY(sim_capture_check_unsafe());
    static const size_t largest[SIM_LIMITS] = {
        [CU_LIMIT_STACK_SIZE] = 512 << 10,          [CU_LIMIT_PRINTF_FIFO_SIZE] = SIZE_MAX / 2,
        [CU_LIMIT_MALLOC_HEAP_SIZE] = SIZE_MAX / 2, [CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = SIZE_MAX / 2,
        [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 128,  [CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = SIZE_MAX / 2,
    };
    switch ((int)limit) {
    case CU_LIMIT_SHMEM_SIZE:
    case CU_LIMIT_CIG_ENABLED: return CUDA_ERROR_NOT_PERMITTED;
    case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
    case CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED: return CUDA_ERROR_UNSUPPORTED_LIMIT;
    default: break;
    }
    SIM_REQUIRE((int)limit >= 0 && (int)limit < SIM_LIMITS && value <= largest[limit]);
    atomic_store(&context->limits[limit], value);
    return CUDA_SUCCESS;
}

SIM_API(cuCtxGetCacheConfig, (CUfunc_cache *pconfig), (pconfig))
{
    SIM_REQUIRE(pconfig);
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    *pconfig = context->cache;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxSetCacheConfig, (CUfunc_cache config), (config))
{
    SIM_REQUIRE(config <= CU_FUNC_CACHE_PREFER_EQUAL);
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    context->cache = config;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxGetSharedMemConfig, (CUsharedconfig *pConfig), (pConfig))
{
    SIM_REQUIRE(pConfig);
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    *pConfig = context->shared_config;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxSetSharedMemConfig, (CUsharedconfig config), (config))
{
    // The bank size is fixed; the call is accepted and changes nothing.
    SIM_REQUIRE(config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE);
    struct sim_context *context;
    return sim_current(&context);
}

SIM_API(cuCtxGetStreamPriorityRange, (int *leastPriority, int *greatestPriority), (leastPriority, greatestPriority))
{
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    if (leastPriority)
        *leastPriority = 0;
    if (greatestPriority)
        *greatestPriority = SIM_GREATEST_PRIORITY;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxResetPersistingL2Cache, (void), ())
{
    struct sim_context *context;
    return sim_current(&context);
}

// --- Peers ----------------------------------------------------------------------------------------------------

SIM_API(cuCtxEnablePeerAccess, (CUcontext peerContext, unsigned int Flags), (peerContext, Flags))
{
    SIM_REQUIRE(!Flags);
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    SIM_HELD struct sim_context *peer = NULL;
    if (!peerContext || sim_context_find(peerContext, &peer) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (peer->device == context->device || !sim_config()->peer_access)
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    bool enabled = atomic_exchange(&context->peers[peer->device], peer->id) == peer->id;
    return enabled ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_SUCCESS;
}

SIM_API(cuCtxDisablePeerAccess, (CUcontext peerContext), (peerContext))
{
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    SIM_HELD struct sim_context *peer = NULL;
    if (!peerContext || sim_context_find(peerContext, &peer) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_CONTEXT;
    uint64_t enabled = peer->id;
    if (!atomic_compare_exchange_strong(&context->peers[peer->device], &enabled, 0))
        return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    sim_allocation_access_revoked();
    return CUDA_SUCCESS;
}
