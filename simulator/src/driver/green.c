// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "driver/green.h"

#include <stdlib.h>
#include <string.h>

#include "driver/device.h"
#include "streams/capture.h"
#include "streams/event.h"

enum { DEFAULT_STREAM = 1 };     // a flag of the creation
enum { STREAM_DETACHED = 917 };  // CUDA_ERROR_STREAM_DETACHED, which older headers lack
enum { FIRST_WITHOUT_DEFAULT_STREAM = 13010, FIRST_WITH_DETACHED = 13010 };  // drivers

static _Atomic uint64_t last_id, last_workqueue;

// --- Life -----------------------------------------------------------------------------------------------------

CUresult sim_green_find(CUgreenCtx handle, struct sim_green **green)
{
    switch (sim_object_find(SIM_GREEN, handle, (void **)green)) {
    case SIM_FOUND: return CUDA_SUCCESS;
    case SIM_STALE: return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    default: return CUDA_ERROR_INVALID_CONTEXT;
    }
}

CUresult sim_green_detached(void)
{
    return sim_config()->driver_version >= FIRST_WITH_DETACHED ? (CUresult)STREAM_DETACHED
                                                               : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

bool sim_green_lets_go(const struct sim_green *green)
{
    return atomic_load(&green->base.live) || sim_config()->driver_version >= FIRST_WITH_DETACHED;
}

struct sim_green *sim_current_green(void)
{
    const struct sim_thread *thread = sim_thread();
    struct sim_context *top = thread->depth ? thread->contexts[thread->depth - 1] : NULL;
    return top ? top->green : NULL;
}

static void nothing(struct sim_stream *stream, void *payload) { (void)stream, (void)payload; }

// A stream comes after what the whole context was told to wait for before.
static CUresult wait_for_fence(struct sim_green *green, struct sim_stream *stream)
{
    uint64_t number = atomic_load(&green->fence->submitted);
    if (sim_reached(green->fence, number))
        return CUDA_SUCCESS;
    struct sim_op *op = sim_op_new(nothing, 0);
    if (op)
        sim_op_wait(op, green->fence, number);
    return sim_submit(stream, op, NULL);
}

CUresult sim_green_stream(struct sim_green *green, int priority, struct sim_stream **stream)
{
    SIM_TRY(sim_stream_new_in(green, CU_STREAM_NON_BLOCKING, priority, stream));
    return wait_for_fence(green, *stream);
}

static CUresult make_streams(struct sim_green *green)
{
    SIM_TRY(sim_stream_new(green->home, CU_STREAM_NON_BLOCKING, 0, &green->fence));
    sim_object_hold(green->home);
    sim_object_hide(green->fence);
    SIM_TRY(sim_green_stream(green, 0, &green->legacy));
    sim_object_hide(green->legacy);
    return CUDA_SUCCESS;
}

static CUresult make_face(struct sim_green *green)
{
    struct sim_context *face = sim_object_new(SIM_CONTEXT);
    if (!face)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_object_hide(face);
    sim_object_hold(green);
    face->green = green;
    face->device = green->home->device;
    face->flags = green->home->flags;
    face->id = sim_context_next_id();
    atomic_store(&face->active, true);
    green->face = face;
    return CUDA_SUCCESS;
}

// The handle is gone: its streams are detached, and threads where it is current have a context that is destroyed.
static void end(struct sim_green *green)
{
    struct sim_context *face = green->face;
    struct sim_stream *legacy = green->legacy;
    green->face = NULL;
    green->legacy = NULL;
    sim_capture_check_green(green);  // which ends captures of its streams
    if (legacy)
        sim_object_retire(legacy);
    if (face) {
        atomic_store(&face->active, false);
        sim_object_retire(face);
    }
}

void sim_green_finalize(void *object)
{
    struct sim_green *green = object;
    if (green->fence)
        sim_object_retire(green->fence);
    sim_object_drop(green->home);
}

static void retire(void *object, void *home)
{
    struct sim_green *green = object;
    if (green->home == home && sim_object_retire(green))
        end(green);
}

void sim_greens_retire_of(struct sim_context *home) { sim_object_each(SIM_GREEN, retire, home); }

static CUresult create(int device, const struct sim_provision *provision, struct sim_green *green)
{
    sim_object_hold(sim_primary(device));
    green->home = sim_primary(device);
    green->provision = *provision;
    if (provision->workqueue == SIM_NEW_WORKQUEUE)
        green->provision.workqueue = atomic_fetch_add(&last_workqueue, 1) + 1;
    green->id = atomic_fetch_add(&last_id, 1) + 1;
    unsigned count = 0;
    for (unsigned sm = 0; sm < SIM_MAX_SMS; sm++)
        if (provision->sms[sm / 64] >> sm % 64 & 1)
            green->sms[count++] = (uint16_t)sm;
    SIM_TRY(make_face(green));
    return make_streams(green);
}

SIM_API(cuGreenCtxCreate, (CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags),
        (phCtx, desc, dev, flags))
{
    SIM_REQUIRE(phCtx && desc && !(flags & ~(unsigned)DEFAULT_STREAM));
    SIM_REQUIRE(flags || sim_config()->driver_version >= FIRST_WITHOUT_DEFAULT_STREAM);
    struct sim_device *device;
    SIM_TRY(sim_device_find(dev, &device));
    const struct sim_provision *provision;
    SIM_TRY(sim_provision_find(desc, &provision));
    if (provision->device != dev)
        return CUDA_ERROR_INVALID_DEVICE;
    SIM_TRY(sim_primary_retain(dev));
    struct sim_green *green = sim_object_new(SIM_GREEN);
    CUresult status = green ? create(dev, provision, green) : CUDA_ERROR_OUT_OF_MEMORY;
    if (status == CUDA_SUCCESS) {
        *phCtx = (CUgreenCtx)sim_object_handle(green);
        return CUDA_SUCCESS;
    }
    if (green && sim_object_retire(green))
        end(green);
    sim_primary_release(dev);
    return status;
}

SIM_API(cuGreenCtxDestroy, (CUgreenCtx hCtx), (hCtx))
{
    SIM_HELD struct sim_green *green = NULL;
    SIM_TRY(sim_green_find(hCtx, &green));
    if (!sim_object_retire(green))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    end(green);
    return sim_primary_release(green->home->device);
}

SIM_API(cuCtxFromGreenCtx, (CUcontext *pContext, CUgreenCtx hCtx), (pContext, hCtx))
{
    SIM_REQUIRE(pContext);
    SIM_HELD struct sim_green *green = NULL;
    SIM_TRY(sim_green_find(hCtx, &green));
    *pContext = sim_context_handle(green->face);
    return CUDA_SUCCESS;
}

SIM_API(cuGreenCtxGetId, (CUgreenCtx greenCtx, unsigned long long *greenCtxId), (greenCtx, greenCtxId))
{
    SIM_REQUIRE(greenCtxId);
    SIM_HELD struct sim_green *green = NULL;
    if (greenCtx) {
        SIM_TRY(sim_green_find(greenCtx, &green));
    } else {
        green = sim_current_green();
        if (!green)
            return CUDA_ERROR_INVALID_CONTEXT;
        sim_object_hold(green);
    }
    *greenCtxId = green->id;
    return CUDA_SUCCESS;
}

// --- Resources ------------------------------------------------------------------------------------------------

SIM_API(cuGreenCtxGetDevResource, (CUgreenCtx hCtx, CUdevResource *resource, CUdevResourceType type),
        (hCtx, resource, type))
{
    SIM_REQUIRE(resource);
    SIM_HELD struct sim_green *green = NULL;
    SIM_TRY(sim_green_find(hCtx, &green));
    return sim_resource_of_provision(&green->provision, (int)type, (struct sim_resource *)resource);
}

SIM_API(cuCtxGetDevResource, (CUcontext hCtx, CUdevResource *resource, CUdevResourceType type), (hCtx, resource, type))
{
    SIM_REQUIRE(resource);
    SIM_HELD struct sim_context *context = NULL;
    SIM_TRY(sim_context_find_face(hCtx, &context));
    if (context->green)
        return sim_resource_of_provision(&context->green->provision, (int)type, (struct sim_resource *)resource);
    return sim_resource_of_device(context->device, (int)type, (struct sim_resource *)resource);
}

CUresult cuStreamGetDevResource(CUstream, CUdevResource *, CUdevResourceType);
SIM_API_STREAM(cuStreamGetDevResource, _ptsz, (CUstream hStream, CUdevResource *resource, CUdevResourceType type),
               (hStream, resource, type))
{
    SIM_REQUIRE(resource);
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_find(hStream, &stream));
    if (stream->green)
        return sim_resource_of_provision(&stream->green->provision, (int)type, (struct sim_resource *)resource);
    return sim_resource_of_device(stream->context->device, (int)type, (struct sim_resource *)resource);
}

// --- Streams and events ---------------------------------------------------------------------------------------

SIM_API(cuGreenCtxStreamCreate, (CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags, int priority),
        (phStream, greenCtx, flags, priority))
{
    SIM_REQUIRE(phStream && flags == CU_STREAM_NON_BLOCKING);
    SIM_HELD struct sim_green *green = NULL;
    SIM_TRY(sim_green_find(greenCtx, &green));
    SIM_TRY(sim_context_status(green->home));
    struct sim_stream *stream;
    SIM_TRY(sim_green_stream(green, priority, &stream));
    *phStream = sim_stream_handle(stream);
    return CUDA_SUCCESS;
}

SIM_API(cuStreamGetGreenCtx, (CUstream hStream, CUgreenCtx *phCtx), (hStream, phCtx))
{
    SIM_REQUIRE(phCtx);
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_find(hStream, &stream));
    *phCtx = stream->green ? (CUgreenCtx)sim_object_handle(stream->green) : NULL;
    return CUDA_SUCCESS;
}

// The green context and the event of a call; no stream of the context may be captured.
static CUresult find_both(CUgreenCtx handle, CUevent event_handle, struct sim_green **green, struct sim_event **event)
{
    SIM_TRY(sim_green_find(handle, green));
    SIM_TRY(sim_event_find(event_handle, event));
    return sim_capture_check_green(*green);
}

SIM_API(cuGreenCtxRecordEvent, (CUgreenCtx hCtx, CUevent hEvent), (hCtx, hEvent))
{
    SIM_HELD struct sim_green *green = NULL;
    SIM_HELD struct sim_event *event = NULL;
    SIM_TRY(find_both(hCtx, hEvent, &green, &event));
    if (event->context != green->home)
        return CUDA_ERROR_INVALID_HANDLE;
    struct sim_op *op = sim_op_new(nothing, 0);
    size_t count;
    struct sim_point *points = sim_context_points(green->home, green, &count);
    for (size_t i = 0; i < count; i++) {
        if (op)
            sim_op_wait(op, points[i].stream, points[i].number);
        sim_object_drop(points[i].stream);
    }
    free(points);
    SIM_TRY(sim_submit(green->fence, op, NULL));
    return sim_event_record(event, green->fence);
}

SIM_API(cuGreenCtxWaitEvent, (CUgreenCtx hCtx, CUevent hEvent), (hCtx, hEvent))
{
    SIM_HELD struct sim_green *green = NULL;
    SIM_HELD struct sim_event *event = NULL;
    SIM_TRY(find_both(hCtx, hEvent, &green, &event));
    SIM_TRY(sim_event_wait(event, green->fence));  // streams that are made later wait for that
    pthread_mutex_lock(&green->home->lock);
    size_t count = 0, capacity = 0;
    struct sim_stream *stream, **streams = NULL;
    for (stream = green->home->streams; stream; stream = stream->context_next)
        capacity += stream->green == green;
    streams = malloc((capacity + 1) * sizeof(struct sim_stream *));
    for (stream = green->home->streams; streams && stream; stream = stream->context_next)
        if (stream->green == green && sim_object_hold(stream))
            streams[count++] = stream;
    pthread_mutex_unlock(&green->home->lock);
    CUresult status = streams ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        if (status == CUDA_SUCCESS)
            status = sim_event_wait(event, streams[i]);
        sim_object_drop(streams[i]);
    }
    free(streams);
    return status;
}
