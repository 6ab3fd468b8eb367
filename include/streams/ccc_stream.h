// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Streams and events: each public operation is one of these calls.
#ifndef CCC_STREAM_H
#define CCC_STREAM_H

#include <math.h>
#include <stddef.h>

#include "streams/ccc_captured.h"
#include "streams/ccc_idle.h"

static CUresult ccc_stream_destroy(ccc_handle *handle, const char **call)
{
    CUevent spare = atomic_exchange(&ccc_as_stream(handle)->spare, NULL);
    CUresult result = spare ? cuEventDestroy(spare) : CUDA_SUCCESS;
    if (result)
        ccc_cleanup_failed((int)result, "cuEventDestroy", (uintptr_t)spare);
    ccc_work_remove(handle);
    *call = "cuStreamDestroy";
    return cuStreamDestroy(CCC_STRM(handle));
}

static CUresult ccc_event_destroy(ccc_handle *handle, const char **call)
{
    *call = "cuEventDestroy";
    return cuEventDestroy((CUevent)CCC_POINTER(handle));
}

static const ccc_handle_type ccc_stream_type = {
    .size = sizeof(ccc_stream),
    .companion = offsetof(ccc_timeline, original),
    .destroy = ccc_stream_destroy,
};

static const ccc_handle_type ccc_event_type = {
    .size = sizeof(ccc_timeline),
    .companion = offsetof(ccc_timeline, original),
    .destroy = ccc_event_destroy,
};

// A stream by the number of its handle, for one call, or as a variable that lives for ever.
#define CCC_STREAM_OF(number, its_flags) \
    { \
        .timeline.handle = { \
            .uses = CCC_FIRST_USE, \
            .memory_uses = 2, \
            .flags = (its_flags), \
            .kind = CCC_STREAM, \
            .device = -1, \
            .value = (number), \
        } \
    }

static ccc_stream ccc_legacy_stream = CCC_STREAM_OF(1, CCC_BORROWED | CCC_IMMORTAL | CCC_TOKEN);
static ccc_stream ccc_per_thread_stream = CCC_STREAM_OF(2, CCC_BORROWED | CCC_IMMORTAL | CCC_TOKEN);

static ccc_handle *ccc_default_stream(int per_thread)
{
    return &(per_thread ? &ccc_per_thread_stream : &ccc_legacy_stream)->timeline.handle;
}

// Whether a stream is the legacy default one, which the driver's functions for batches refuse.
static int ccc_stream_is_legacy(const ccc_handle *stream)
{
    return stream->value == (uintptr_t)CU_STREAM_LEGACY || (stream->value == 0 && !ccc_driver_per_thread());
}

// What tells streams apart: an event has that of the stream which recorded it, 0 if none did. A stream has a number of
// the driver's, because its handle may be that of another one later. The legacy default streams of all contexts are
// one. A per-thread default stream is known by its thread.
static CCC_COLD uint64_t ccc_find_source(const ccc_handle *handle)
{
    static atomic_ullong threads;
    static _Thread_local unsigned long long thread;
    unsigned long long id = 0;
    uint64_t source = 0;
    if (handle->kind == CCC_EVENT)
        return 0;
    if (handle->flags & CCC_TOKEN) {
        if (ccc_stream_is_legacy(handle))
            return (uintptr_t)CU_STREAM_LEGACY;
        if (thread == 0)
            thread = atomic_fetch_add(&threads, 1) + 1;
        return 2 * thread;  // which no number of a stream is, see below
    }
    ccc_handle *stream = (ccc_handle *)handle;
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;  // this thread may be capturing another stream
    if (!ccc_retain(stream))
        return 0;  // closed by another thread just now
    // to ask for the number of a stream that is captured ends the capture; what it records says nothing of work anyway
    if (cuStreamIsCapturing(CCC_STRM(stream), &capture) == CUDA_SUCCESS && capture == CU_STREAM_CAPTURE_STATUS_NONE &&
        cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS) {
        if (cuStreamGetId(CCC_STRM(stream), &id) == CUDA_SUCCESS) {
            source = 2 * id + 3;
            atomic_store_explicit(&ccc_as_timeline(stream)->source, source, memory_order_relaxed);
        }
        cuThreadExchangeStreamCaptureMode(&mode);
    }
    ccc_release(stream);
    return source;
}

static uint64_t ccc_source(const ccc_handle *handle)
{
    uint64_t source = atomic_load_explicit(&ccc_as_timeline(handle)->source, memory_order_relaxed);
    return CCC_LIKELY(source) ? source : ccc_find_source(handle);
}

// A new stream of a context that is current.
static ccc_handle *ccc_stream_create_in(ccc_handle *context, unsigned int flags, int priority)
{
    CUstream stream = NULL;
    ccc_handle *handle = ccc_new(CCC_STREAM, 0, flags & CU_STREAM_NON_BLOCKING ? CCC_NONBLOCKING : 0, context);
    CCC_MAKE(handle, (uintptr_t)stream, cuStreamCreateWithPriority, &stream, flags, priority);
    if (handle)
        ccc_work_add(handle);
    return handle;
}

static ccc_handle *ccc_stream_create(int device, unsigned int flags, int priority)
{
    CCC_SCOPE_OR(NULL, scope, ccc_enter(&scope, device));
    return ccc_left_with(&scope, ccc_stream_create_in(scope.context, flags, priority));
}

// A stream that somebody else owns. The context is found when it is asked for: the handle may be a default stream.
static ccc_handle *ccc_stream_borrow(uint64_t value)
{
    return ccc_new(CCC_STREAM, value, CCC_BORROWED | (value <= 2 ? CCC_TOKEN : 0), NULL);
}

// One of our streams for another Python object: it is not destroyed before this handle goes. NULL on failure.
static ccc_handle *ccc_stream_again(ccc_handle *stream)
{
    CCC_USE_OR(stream, ccc_closed());
    ccc_handle *again =
        ccc_new(CCC_STREAM, stream->value, (stream->flags & ~CCC_IMMORTAL) | CCC_BORROWED, stream->parent);
    if (again) {
        ccc_retain(stream);
        ccc_as_timeline(again)->original = stream;
    }
    return again;
}

// A use of the context that a stream works in. A default stream works in whichever is current. NULL on failure.
static ccc_handle *ccc_stream_home(ccc_handle *stream)
{
    CUcontext context = NULL;
    if (stream->parent) {
        ccc_retain(stream->parent);
        return stream->parent;
    }
    if (stream->flags & CCC_TOKEN)
        return ccc_needed_context("cuCtxGetCurrent");
    if (ccc_init())
        return NULL;
    CCC_TRY_OR(NULL, cuStreamGetCtx, CCC_STRM(stream), &context);
    // Before CUDA 13 only the current context can be asked for its device.
    CCC_TRY_OR(NULL, cuCtxPushCurrent, context);
    ccc_handle *handle = ccc_context_handle(context);
    if (ccc_restored(1, handle ? 0 : ccc_last_status()) == 0)
        return handle;
    ccc_release(handle);
    return NULL;
}

// Make the context that a stream works in current: a use of it is in scope->context. Returns a status.
static int ccc_enter_home(ccc_scope *scope, ccc_handle *stream)
{
    ccc_handle *home = ccc_stream_home(stream);
    *scope = (ccc_scope){NULL, 0};
    if (home == NULL)
        return ccc_last_status();
    int status = ccc_enter_context(scope, home);
    scope->context = home;
    return status;
}

// Make the context that a stream works in current if none is. Returns 1 if it did, which ccc_restored takes back; 0 if
// it need not; -1 on failure. A default stream is one of the current context's: where there is none, calls say so.
static int ccc_stream_push(ccc_handle *stream)
{
    CUcontext current = NULL;
    if (stream->flags & CCC_TOKEN)
        return 0;
    CUresult result = cuCtxGetCurrent(&current);
    if (CCC_LIKELY(result == CUDA_SUCCESS && current))
        return 0;
    ccc_handle *home = result ? NULL : ccc_stream_home(stream);
    if (result)
        ccc_fail((int)result, "cuCtxGetCurrent");
    else if (home && (result = cuCtxPushCurrent(CCC_CTX(home))))
        ccc_fail((int)result, "cuCtxPushCurrent");
    ccc_release(home);
    return home && result == CUDA_SUCCESS ? 1 : -1;
}

// The context that a stream works in, as a handle for a new Python object.
static ccc_handle *ccc_stream_context(ccc_handle *stream)
{
    CCC_USE_OR(stream, ccc_closed());
    __attribute__((cleanup(ccc_release_scoped))) ccc_handle *home = ccc_stream_home(stream);
    return home ? ccc_view(home) : NULL;
}

// 0 or CCC_ATTEND: done. The caller has a use of the stream.
static int ccc_stream_sync_in(const ccc_handle *stream)
{
    CCC_TRY(cuStreamSynchronize, CCC_STRM(stream));
    return ccc_waited();
}

// The same, but on the simulated driver CUDA_ERROR_NOT_READY at times: see ccc_slice_begin.
static int ccc_stream_sync_slice_in(const ccc_handle *stream)
{
    ccc_slice_begin(0);
    int status = ccc_stream_sync_in(stream);
    ccc_slice_end();
    return status;
}

// 0 or CCC_ATTEND: done.
static int ccc_stream_sync_slice(const ccc_handle *stream, int resumes)
{
    CCC_USE(stream);
    ccc_slice_begin(resumes);
    int waited = ccc_stream_sync_in(stream);
    ccc_slice_end();
    return waited;
}

// To ask for the flags of a stream that is captured ends the capture, so those of our streams are kept.
static int ccc_stream_flags(const ccc_handle *stream, unsigned int *flags)
{
    CUstreamCaptureStatus capture;
    CCC_USE(stream);
    if (!(stream->flags & CCC_BORROWED)) {
        *flags = stream->flags & CCC_NONBLOCKING ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
        return 0;
    }
    CCC_TRY(cuStreamIsCapturing, CCC_STRM(stream), &capture);
    if (capture != CU_STREAM_CAPTURE_STATUS_NONE)
        return ccc_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "cuStreamGetFlags");
    CCC_TRY(cuStreamGetFlags, CCC_STRM(stream), flags);
    return 0;
}

static int ccc_stream_priority(const ccc_handle *stream, int *priority)
{
    CCC_USE(stream);
    CCC_TRY(cuStreamGetPriority, CCC_STRM(stream), priority);
    return 0;
}

// The same as below for a caller who has a use of both.
static int ccc_stream_wait_event_in(const ccc_handle *stream, const ccc_handle *event)
{
    CCC_SUBMIT;
    CCC_TRY(cuStreamWaitEvent, CCC_STRM(stream), (CUevent)CCC_POINTER(event), 0);
    if (ccc_capturing())
        ccc_capture_changed();
    return 0;
}

// What follows in stream waits for event.
static int ccc_stream_wait_event(const ccc_handle *stream, const ccc_handle *event)
{
    CCC_USE(stream);
    CCC_USE(event);
    return ccc_stream_wait_event_in(stream, event);
}

// A new event in the context that a stream works in.
static int ccc_stream_event(ccc_handle *stream, CUevent *event)
{
    CCC_SCOPE(scope, ccc_enter_home(&scope, stream));
    CCC_TRY(cuEventCreate, event, CU_EVENT_DISABLE_TIMING);
    int status = ccc_left(&scope, 0);
    CUresult result = status ? cuEventDestroy(*event) : CUDA_SUCCESS;
    if (result)
        ccc_cleanup_failed((int)result, "cuEventDestroy", (uintptr_t)*event);
    return status;
}

static int ccc_wait_through(const ccc_handle *stream, const ccc_handle *other, CUevent event)
{
    CCC_SUBMIT;
    CCC_TRY(cuEventRecord, event, CCC_STRM(other));
    CCC_TRY(cuStreamWaitEvent, CCC_STRM(stream), event, 0);
    if (ccc_capturing())
        ccc_capture_changed();
    return 0;
}

// What follows in stream waits for everything now in other; the caller has a use of both. A stream of ours keeps the
// event that this takes: the wait is for what the event stands for now, whatever it is recorded for next.
static int ccc_stream_wait_stream_in(const ccc_handle *stream, ccc_handle *other)
{
    int keeps = other->parent && !(other->flags & CCC_BORROWED) && ccc_retain(other);  // not one made for this call
    CUevent event = keeps ? atomic_exchange(&ccc_as_stream(other)->spare, NULL) : NULL, none = NULL;
    int status = event ? 0 : ccc_stream_event(other, &event);
    if (status == 0) {
        status = ccc_wait_through(stream, other, event);
        if (!keeps || !atomic_compare_exchange_strong(&ccc_as_stream(other)->spare, &none, event)) {
            CUresult result = cuEventDestroy(event);  // the driver keeps it until the wait is over
            if (result)
                ccc_cleanup_failed((int)result, "cuEventDestroy", (uintptr_t)event);
        }
    }
    if (keeps)
        ccc_release(other);
    return status;
}

static int ccc_stream_wait_stream(const ccc_handle *stream, ccc_handle *other)
{
    CCC_USE(stream);
    CCC_USE(other);
    return ccc_stream_wait_stream_in(stream, other);
}

static int ccc_event_flags(unsigned int flags)
{
    return ((flags & CU_EVENT_DISABLE_TIMING) ? 0 : CCC_TIMED) | ((flags & CU_EVENT_BLOCKING_SYNC) ? CCC_BLOCKING : 0) |
           ((flags & CU_EVENT_INTERPROCESS) ? CCC_SHARED : 0);
}

// A new event in a context that is current.
static ccc_handle *ccc_event_create_in(ccc_handle *context, unsigned int flags)
{
    CUevent event = NULL;
    ccc_handle *handle = ccc_new(CCC_EVENT, 0, ccc_event_flags(flags), context);
    CCC_MAKE(handle, (uintptr_t)event, cuEventCreate, &event, flags);
    return handle;
}

// A new event in a context of the device.
static ccc_handle *ccc_event_create(int device, unsigned int flags)
{
    CCC_SCOPE_OR(NULL, scope, ccc_enter(&scope, device));
    return ccc_left_with(&scope, ccc_event_create_in(scope.context, flags));
}

// The same as below for a caller who has a use of both.
static int ccc_event_record_in(ccc_handle *event, const ccc_handle *stream)
{
    CCC_SUBMIT;
    CCC_TRY(cuEventRecord, (CUevent)CCC_POINTER(event), CCC_STRM(stream));
    atomic_store_explicit(&ccc_as_timeline(event)->source, ccc_source(stream), memory_order_relaxed);
    return 0;
}

static int ccc_event_record(ccc_handle *event, const ccc_handle *stream)
{
    CCC_USE(event);
    CCC_USE(stream);
    return ccc_event_record_in(event, stream);
}

// The same as below for a caller who has a use of the stream.
static ccc_handle *ccc_stream_record_in(ccc_handle *stream, unsigned int flags)
{
    CCC_SCOPE_OR(NULL, scope, ccc_enter_home(&scope, stream));
    ccc_handle *event = ccc_event_create_in(scope.context, flags);
    if (event && ccc_event_record_in(event, stream)) {
        ccc_release_object(event);
        event = NULL;
    }
    return ccc_left_with(&scope, event);
}

// A new event, already recorded in the stream.
static ccc_handle *ccc_stream_record(ccc_handle *stream, unsigned int flags)
{
    CCC_USE_OR(stream, ccc_closed());
    return ccc_stream_record_in(stream, flags);
}

// The same as below for a caller who has a use of the event.
static int ccc_event_query_in(const ccc_handle *event)
{
    CUresult result = cuEventQuery((CUevent)CCC_POINTER(event));
    if (CCC_LIKELY(result == CUDA_SUCCESS))
        return ccc_waited();
    return result == CUDA_ERROR_NOT_READY ? (int)result : ccc_fail((int)result, "cuEventQuery");
}

// 0 or CCC_ATTEND: done. CUDA_ERROR_NOT_READY: not yet.
static int ccc_event_query(const ccc_handle *event)
{
    CCC_USE(event);
    return ccc_event_query_in(event);
}

// The same as below for a caller who has a use of the event.
static int ccc_event_sync_in(const ccc_handle *event)
{
    CCC_TRY(cuEventSynchronize, (CUevent)CCC_POINTER(event));
    return ccc_waited();
}

// 0 or CCC_ATTEND: done.
static int ccc_event_sync(const ccc_handle *event)
{
    CCC_USE(event);
    return ccc_event_sync_in(event);
}

// The same, but on the simulated driver CUDA_ERROR_NOT_READY at times: see ccc_slice_begin.
static int ccc_event_sync_slice_in(const ccc_handle *event)
{
    ccc_slice_begin(0);
    int status = ccc_event_sync_in(event);
    ccc_slice_end();
    return status;
}

static int ccc_event_sync_slice(const ccc_handle *event, int resumes)
{
    CCC_USE(event);
    ccc_slice_begin(resumes);
    int waited = ccc_event_sync_in(event);
    ccc_slice_end();
    return waited;
}

// The same as below for a caller who has a use of both.
static double ccc_event_elapsed_in(const ccc_handle *start, const ccc_handle *end)
{
    float milliseconds = 0;
    CUresult result = cuEventElapsedTime(&milliseconds, (CUevent)CCC_POINTER(start), (CUevent)CCC_POINTER(end));
    if (CCC_LIKELY(result == CUDA_SUCCESS))
        return milliseconds;
    ccc_fail((int)result, "cuEventElapsedTime");
    return NAN;
}

// Milliseconds from one event to the other; NaN on failure, with the status kept.
static double ccc_event_elapsed(const ccc_handle *start, const ccc_handle *end)
{
    CCC_USE_OR(start, (ccc_closed(), NAN));
    CCC_USE_OR(end, (ccc_closed(), NAN));
    return ccc_event_elapsed_in(start, end);
}

#endif
