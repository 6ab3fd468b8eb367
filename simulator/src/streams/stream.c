// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "streams/stream.h"

#include <stdlib.h>
#include <string.h>

#include "streams/capture.h"
#include "driver/device.h"
#include "driver/green.h"
#include "memory/pool.h"

struct sim_thread_stream {
    struct sim_thread_stream *next;
    uint64_t context_id;
    struct sim_stream *stream;
};

static _Atomic uint64_t last_id;

// --- Life -----------------------------------------------------------------------------------------------------

static CUresult make_stream(struct sim_context *context, struct sim_green *green, unsigned flags, int priority,
                            struct sim_stream **out)
{
    struct sim_stream *stream = sim_object_new(SIM_STREAM);
    if (!stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stream->context = context;
    stream->green = green;
    stream->flags = flags;
    stream->priority = priority > 0 ? 0 : priority < SIM_GREATEST_PRIORITY ? SIM_GREATEST_PRIORITY : priority;
    stream->id = atomic_fetch_add(&last_id, 1) + 1;
    stream->sync_policy.syncPolicy = CU_SYNC_POLICY_AUTO;
    stream->domain_map.memSyncDomainMap.remote = 1;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->progress, NULL);
    pthread_mutex_lock(&context->lock);
    stream->context_next = context->streams;
    if (context->streams)
        context->streams->context_link = &stream->context_next;
    context->streams = stream;
    stream->context_link = &context->streams;
    pthread_mutex_unlock(&context->lock);
    *out = stream;
    return CUDA_SUCCESS;
}

CUresult sim_stream_new(struct sim_context *context, unsigned flags, int priority, struct sim_stream **out)
{
    return make_stream(context, NULL, flags, priority, out);
}

CUresult sim_stream_new_in(struct sim_green *green, unsigned flags, int priority, struct sim_stream **out)
{
    SIM_TRY(make_stream(green->home, green, flags, priority, out));
    sim_object_hold(green->home);
    sim_object_hold(green);
    return CUDA_SUCCESS;
}

void sim_stream_finalize(void *object)
{
    struct sim_stream *stream = object;
    struct sim_context *context = stream->context;
    pthread_cond_destroy(&stream->progress);
    pthread_mutex_destroy(&stream->lock);
    // The legacy stream belongs to its context, which may be gone; every other one keeps its context in memory.
    if (stream->legacy)
        return;
    pthread_mutex_lock(&context->lock);
    *stream->context_link = stream->context_next;
    if (stream->context_next)
        stream->context_next->context_link = stream->context_link;
    pthread_mutex_unlock(&context->lock);
    sim_object_drop(stream->green);
    sim_object_drop(context);
}

void sim_thread_end_streams(struct sim_thread *thread)
{
    while (thread->streams) {
        struct sim_thread_stream *entry = thread->streams;
        thread->streams = entry->next;
        sim_object_retire(entry->stream);
        sim_capture_stream_ends(entry->stream);
        sim_object_drop(entry->stream);
        free(entry);
    }
}

static CUresult per_thread_stream(struct sim_context *context, struct sim_stream **out)
{
    struct sim_thread *thread = sim_thread();
    struct sim_thread_stream *entry = thread->streams;
    while (entry && entry->context_id != context->id)
        entry = entry->next;
    if (!entry) {
        entry = malloc(sizeof *entry);
        if (!entry)
            return CUDA_ERROR_OUT_OF_MEMORY;
        CUresult status = sim_stream_new(context, CU_STREAM_DEFAULT, 0, &entry->stream);
        if (status != CUDA_SUCCESS) {
            free(entry);
            return status;
        }
        sim_object_hold(context);
        entry->stream->per_thread = true;
        sim_object_hide(entry->stream);
        sim_object_hold(entry->stream);  // the context's end may retire the handle before the thread ends
        entry->context_id = context->id;
        entry->next = thread->streams;
        thread->streams = entry;
    }
    sim_object_hold(entry->stream);
    *out = entry->stream;
    return CUDA_SUCCESS;
}

CUresult sim_stream_find(CUstream handle, struct sim_stream **out)
{
    if ((uintptr_t)handle <= (uintptr_t)CU_STREAM_PER_THREAD) {
        struct sim_context *context;
        SIM_TRY(sim_current(&context));
        struct sim_green *green = sim_current_green();
        if (handle == CU_STREAM_PER_THREAD || (!handle && sim_thread()->per_thread_default))
            return green ? CUDA_ERROR_INVALID_HANDLE : per_thread_stream(context, out);
        *out = green ? green->legacy : context->legacy;
        sim_object_hold(*out);
        return CUDA_SUCCESS;
    }
    struct sim_stream *stream;
    if (sim_object_find(SIM_STREAM, handle, (void **)&stream) != SIM_FOUND)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult status = sim_context_status(stream->context);
    if (status == CUDA_SUCCESS && stream->green && !atomic_load(&stream->green->base.live))
        status = sim_green_detached();
    if (status != CUDA_SUCCESS) {
        sim_object_drop(stream);
        return status;
    }
    *out = stream;
    return CUDA_SUCCESS;
}

bool sim_stream_is_legacy(CUstream handle)
{
    return handle == CU_STREAM_LEGACY || (!handle && !sim_thread()->per_thread_default);
}

CUresult sim_stream_default(struct sim_stream **stream) { return sim_stream_find(NULL, stream); }

CUstream sim_stream_handle(struct sim_stream *stream)
{
    return stream->legacy ? CU_STREAM_LEGACY : (CUstream)sim_object_handle(stream);
}

SIM_API(cuStreamCreateWithPriority, (CUstream *phStream, unsigned int flags, int priority), (phStream, flags, priority))
{
    SIM_REQUIRE(phStream && !(flags & ~(unsigned)CU_STREAM_NON_BLOCKING));
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    struct sim_stream *stream;
    struct sim_green *green = sim_current_green();
    if (green) {
        SIM_TRY(sim_green_stream(green, priority, &stream));
    } else {
        SIM_TRY(sim_stream_new(context, flags, priority, &stream));
        sim_object_hold(context);
    }
    *phStream = sim_stream_handle(stream);
    return CUDA_SUCCESS;
}

SIM_API(cuStreamCreate, (CUstream *phStream, unsigned int Flags), (phStream, Flags))
{
    return cuStreamCreateWithPriority_body(phStream, Flags, 0);
}

SIM_API(cuStreamDestroy_v2, (CUstream hStream), (hStream))
{
    if ((uintptr_t)hStream <= (uintptr_t)CU_STREAM_PER_THREAD)
        return CUDA_ERROR_INVALID_HANDLE;
    SIM_HELD struct sim_stream *stream = NULL;
    if (sim_object_find(SIM_STREAM, hStream, (void **)&stream) != SIM_FOUND || !sim_object_retire(stream))
        return CUDA_ERROR_INVALID_HANDLE;
    sim_capture_stream_ends(stream);
    if (stream->green && !sim_green_lets_go(stream->green))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return sim_context_status(stream->context);
}

// --- State ----------------------------------------------------------------------------------------------------

SIM_API_STREAM(cuStreamQuery, _ptsz, (CUstream hStream), (hStream))
{
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_for_work(hStream, &stream));
    if (sim_capturing(stream))
        return sim_capture_refuse_to_wait(stream);
    SIM_TRY(sim_capture_check_unsafe());
    if (!sim_reached(stream, atomic_load(&stream->submitted)))
        return CUDA_ERROR_NOT_READY;
    if (stream->legacy) {
        // The legacy stream is done only when the streams it waits for are.
        CUresult status = CUDA_SUCCESS;
        pthread_mutex_lock(&stream->context->lock);
        for (struct sim_stream *other = stream->context->streams; other; other = other->context_next)
            if (sim_stream_blocking(other) && !sim_reached(other, atomic_load(&other->submitted)))
                status = CUDA_ERROR_NOT_READY;
        pthread_mutex_unlock(&stream->context->lock);
        return status;
    }
    return sim_context_status(stream->context);
}

static void nothing(struct sim_stream *stream, void *payload) { (void)stream, (void)payload; }

SIM_API_STREAM(cuStreamSynchronize, _ptsz, (CUstream hStream), (hStream))
{
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_for_work(hStream, &stream));
    if (sim_capturing(stream))
        return sim_capture_refuse_to_wait(stream);
    SIM_TRY(sim_capture_check_unsafe());
    if (sim_sync_resumes()) {
        SIM_TRY(sim_sync_resume());
    } else {
        struct sim_point point = {stream, atomic_load(&stream->submitted)};
        // Waiting for the legacy stream means waiting for what its next operation would wait for.
        if (stream->legacy && !sim_run_now(stream, nothing, NULL, &point.number))
            SIM_TRY(sim_submit(stream, sim_op_new(nothing, 0), &point.number));
        sim_object_hold(stream);
        SIM_TRY(sim_sync_begin(&point, 1));
    }
    sim_pools_settle(stream->context->device);
    return sim_context_status(stream->context);
}

SIM_API_STREAM(cuStreamGetPriority, _ptsz, (CUstream hStream, int *priority), (hStream, priority))
{
    SIM_REQUIRE(priority);
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_find(hStream, &stream));
    *priority = stream->priority;
    return CUDA_SUCCESS;
}

SIM_API_STREAM(cuStreamGetFlags, _ptsz, (CUstream hStream, unsigned int *flags), (hStream, flags))
{
    SIM_REQUIRE(flags);
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_find(hStream, &stream));
    if (sim_capturing(stream))
        return sim_capture_refuse_to_wait(stream);
    *flags = stream->flags;
    return CUDA_SUCCESS;
}

SIM_API_STREAM(cuStreamGetId, _ptsz, (CUstream hStream, unsigned long long *streamId), (hStream, streamId))
{
    SIM_REQUIRE(streamId);
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_find(hStream, &stream));
    if (sim_capturing(stream))
        return sim_capture_refuse_to_wait(stream);
    *streamId = stream->id;
    return CUDA_SUCCESS;
}

SIM_API_STREAM(cuStreamGetDevice, _ptsz, (CUstream hStream, CUdevice *device), (hStream, device))
{
    SIM_REQUIRE(device);
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_find(hStream, &stream));
    if (sim_capturing(stream))
        return sim_capture_refuse_to_wait(stream);
    *device = stream->context->device;
    return CUDA_SUCCESS;
}

SIM_API_STREAM(cuStreamGetCtx, _ptsz, (CUstream hStream, CUcontext *pctx), (hStream, pctx))
{
    SIM_REQUIRE(pctx);
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_find(hStream, &stream));
    *pctx = sim_context_handle(stream->green ? stream->green->face : stream->context);
    return CUDA_SUCCESS;
}

SIM_API_STREAM(cuStreamGetCtx_v2, _ptsz, (CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx),
               (hStream, pCtx, pGreenCtx))
{
    SIM_REQUIRE(pCtx && pGreenCtx);
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_find(hStream, &stream));
    *pCtx = sim_context_handle(stream->context);
    *pGreenCtx = stream->green ? (CUgreenCtx)sim_object_handle(stream->green) : NULL;
    return CUDA_SUCCESS;
}

// --- Attributes -----------------------------------------------------------------------------------------------

// Where a stream keeps an attribute, and how many bytes of the union it is; NULL for what streams do not have.
static void *attribute(struct sim_stream *stream, CUstreamAttrID id, size_t *size)
{
    switch ((int)id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: *size = sizeof(CUaccessPolicyWindow); return &stream->access_window;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        *size = sizeof(CUsynchronizationPolicy);
        return &stream->sync_policy;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY: *size = sizeof(int); return &stream->priority;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: *size = sizeof(CUlaunchMemSyncDomainMap); return &stream->domain_map;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN: *size = sizeof(CUlaunchMemSyncDomain); return &stream->domain;
    default: return NULL;
    }
}

SIM_API_STREAM(cuStreamGetAttribute, _ptsz, (CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue *value),
               (hStream, attr, value))
{
    SIM_REQUIRE(value);
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_find(hStream, &stream));
    size_t size;
    const void *kept = attribute(stream, attr, &size);
    SIM_REQUIRE(kept);
    pthread_mutex_lock(&stream->lock);
    memcpy(value, kept, size);
    pthread_mutex_unlock(&stream->lock);
    return CUDA_SUCCESS;
}

SIM_API_STREAM(cuStreamSetAttribute, _ptsz, (CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue *value),
               (hStream, attr, value))
{
    SIM_REQUIRE(value);
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_find(hStream, &stream));
    size_t size;
    void *kept = attribute(stream, attr, &size);
    // A stream's priority is fixed when it is created.
    SIM_REQUIRE(kept && kept != &stream->priority);
    pthread_mutex_lock(&stream->lock);
    memcpy(kept, value, size);
    pthread_mutex_unlock(&stream->lock);
    return CUDA_SUCCESS;
}

SIM_API_STREAM(cuStreamCopyAttributes, _ptsz, (CUstream dstStream, CUstream srcStream), (dstStream, srcStream))
{
    SIM_HELD struct sim_stream *target = NULL, *source = NULL;
    SIM_TRY(sim_stream_find(dstStream, &target));
    SIM_TRY(sim_stream_find(srcStream, &source));
    if (target == source)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&source->lock);
    CUstreamAttrValue window = source->access_window, policy = source->sync_policy, domain = source->domain;
    CUstreamAttrValue map = source->domain_map;
    pthread_mutex_unlock(&source->lock);
    pthread_mutex_lock(&target->lock);
    target->access_window = window;
    target->sync_policy = policy;
    target->domain = domain;
    target->domain_map = map;
    pthread_mutex_unlock(&target->lock);
    return CUDA_SUCCESS;
}
