// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "streams/event.h"

#include <string.h>

#include "streams/capture.h"
#include "memory/pool.h"

CUresult sim_event_find(CUevent handle, struct sim_event **out)
{
    struct sim_event *event;
    switch (sim_object_find(SIM_EVENT, handle, (void **)&event)) {
    case SIM_FOUND: break;
    case SIM_STALE: return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    default: return CUDA_ERROR_INVALID_HANDLE;
    }
    CUresult status = sim_context_status(event->context);
    if (status != CUDA_SUCCESS) {
        sim_object_drop(event);
        return status;
    }
    *out = event;
    return CUDA_SUCCESS;
}

void sim_event_finalize(void *object)
{
    struct sim_event *event = object;
    sim_capture_forget_event(event);
    sim_object_drop(event->point.stream);
    sim_object_drop(event->context);
    sim_event_share_free(event->share);
    pthread_mutex_destroy(&event->lock);
}

CUresult sim_event_new(struct sim_context *context, unsigned flags, struct sim_event_share *share, CUevent *handle)
{
    struct sim_event *event = sim_object_new(SIM_EVENT);
    if (!event) {
        sim_event_share_free(share);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sim_object_hold(context);
    event->context = context;
    event->flags = flags;
    event->share = share;
    pthread_mutex_init(&event->lock, NULL);
    *handle = (CUevent)sim_object_handle(event);
    return CUDA_SUCCESS;
}

SIM_API(cuEventCreate, (CUevent *phEvent, unsigned int Flags), (phEvent, Flags))
{
    const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    SIM_REQUIRE(phEvent && !(Flags & ~known));
    SIM_REQUIRE(!(Flags & CU_EVENT_INTERPROCESS) || Flags & CU_EVENT_DISABLE_TIMING);
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    struct sim_event_share *share = NULL;
    if (Flags & CU_EVENT_INTERPROCESS)
        SIM_TRY(sim_event_share_new(&share));
    return sim_event_new(context, Flags, share, phEvent);
}

SIM_API(cuEventDestroy_v2, (CUevent hEvent), (hEvent))
{
    SIM_HELD struct sim_event *event = NULL;
    switch (sim_object_find(SIM_EVENT, hEvent, (void **)&event)) {
    case SIM_FOUND:
        // In a context that has failed the call says so, as every call does, and the event goes all the same.
        return sim_object_retire(event) ? sim_context_status(event->context) : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    case SIM_STALE: return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    default: return CUDA_ERROR_INVALID_HANDLE;
    }
}

// --- Recording ------------------------------------------------------------------------------------------------

struct recording {
    struct sim_event *event;
    uint64_t number, shared_number;
};

static void stamp_now(struct sim_stream *stream, void *payload)
{
    (void)stream;
    const struct recording *recording = payload;
    struct sim_event *event = recording->event;
    uint64_t now = sim_now_ns();
    pthread_mutex_lock(&event->lock);
    if (event->recording == recording->number)
        event->time_ns = now;
    pthread_mutex_unlock(&event->lock);
    if (event->share)
        sim_event_share_finish(event->share, recording->shared_number);
}

static void stamp_later(struct sim_stream *stream, void *payload)
{
    stamp_now(stream, payload);
    sim_object_drop(((struct recording *)payload)->event);
}

static struct recording begin(struct sim_event *event)
{
    pthread_mutex_lock(&event->lock);
    struct recording recording = {event, ++event->recording, 0};
    if (event->share)
        recording.shared_number = sim_event_share_begin(event->share);
    pthread_mutex_unlock(&event->lock);
    return recording;
}

// Another thread may have recorded the event since; then the later recording stays.
static void set_point(const struct recording *recording, struct sim_stream *stream, uint64_t number)
{
    struct sim_event *event = recording->event;
    struct sim_stream *old = NULL;
    pthread_mutex_lock(&event->lock);
    if (event->recording == recording->number) {
        old = event->point.stream;
        if (old == stream)
            old = NULL;
        else
            sim_object_hold(stream);
        event->point = (struct sim_point){stream, number};
        event->shared_number = recording->shared_number;
    }
    pthread_mutex_unlock(&event->lock);
    sim_object_drop(old);
}

void sim_event_mark_begin(struct sim_event *event, struct sim_stream *timeline, struct sim_event_mark *mark)
{
    struct recording recording = begin(event);
    sim_object_hold(event);
    sim_object_hold(timeline);
    *mark = (struct sim_event_mark){event, timeline, sim_timeline_announce(timeline), recording.number,
                                    recording.shared_number};
    set_point(&recording, timeline, mark->number);
}

void sim_event_mark_end(struct sim_event_mark *mark)
{
    struct recording recording = {mark->event, mark->recording, mark->shared_number};
    stamp_now(mark->timeline, &recording);
    sim_timeline_reach(mark->timeline, mark->number);
    sim_object_drop(mark->timeline);
    sim_object_drop(mark->event);
    *mark = (struct sim_event_mark){0};
}

CUresult sim_event_record(struct sim_event *event, struct sim_stream *stream)
{
    struct recording recording = begin(event);
    uint64_t number;
    if (!sim_run_now(stream, stamp_now, &recording, &number)) {
        struct sim_op *op = sim_op_new(stamp_later, sizeof recording);
        if (!op) {
            if (event->share)
                sim_event_share_finish(event->share, recording.shared_number);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        op->always = true;
        memcpy(op->payload, &recording, sizeof recording);
        sim_object_hold(event);
        SIM_TRY(sim_submit(stream, op, &number));
    }
    set_point(&recording, stream, number);
    return CUDA_SUCCESS;
}

SIM_API_STREAM(cuEventRecordWithFlags, _ptsz, (CUevent hEvent, CUstream hStream, unsigned int flags),
               (hEvent, hStream, flags))
{
    SIM_REQUIRE(!(flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL));
    SIM_HELD struct sim_event *event = NULL;
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_event_find(hEvent, &event));
    SIM_TRY(sim_stream_for_work(hStream, &stream));
    if (event->context != stream->context)
        return CUDA_ERROR_INVALID_HANDLE;
    if (sim_capturing(stream))
        return sim_capture_record(stream, event, flags);
    // External recordings exist only as nodes of a captured graph.
    if (flags & CU_EVENT_RECORD_EXTERNAL)
        return CUDA_ERROR_ILLEGAL_STATE;
    sim_capture_forget_event(event);
    return sim_event_record(event, stream);
}

SIM_API_STREAM(cuEventRecord, _ptsz, (CUevent hEvent, CUstream hStream), (hEvent, hStream))
{
    return cuEventRecordWithFlags_body(hEvent, hStream, CU_EVENT_RECORD_DEFAULT);
}

// --- Waiting --------------------------------------------------------------------------------------------------

// The moment an event stands for, with a reference to its stream; no stream if it was never recorded.
static struct sim_point point_of(struct sim_event *event)
{
    pthread_mutex_lock(&event->lock);
    struct sim_point point = event->point;
    if (point.stream)
        sim_object_hold(point.stream);
    pthread_mutex_unlock(&event->lock);
    return point;
}

// Was the event last recorded by another process? `number` tells the recording.
static bool recorded_elsewhere(struct sim_event *event, uint64_t *number)
{
    if (!event->share)
        return false;
    pthread_mutex_lock(&event->lock);
    *number = sim_event_share_latest(event->share);
    bool elsewhere = *number != event->shared_number;
    pthread_mutex_unlock(&event->lock);
    return elsewhere;
}

static void wait_elsewhere(struct sim_stream *stream, void *payload)
{
    const struct recording *recording = payload;
    if (atomic_load(&stream->context->error) == CUDA_SUCCESS)
        sim_event_share_wait(recording->event->share, recording->shared_number);
    sim_object_drop(recording->event);
}

static CUresult submit_wait_elsewhere(struct sim_stream *stream, struct sim_event *event, uint64_t number)
{
    if (!sim_event_share_pending(event->share, number))
        return CUDA_SUCCESS;
    struct recording recording = {event, 0, number};
    struct sim_op *op = sim_op_new(wait_elsewhere, sizeof recording);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->always = true;  // for the sake of the reference
    memcpy(op->payload, &recording, sizeof recording);
    sim_object_hold(event);
    return sim_submit(stream, op, NULL);
}

bool sim_event_is_recorded(struct sim_event *event)
{
    uint64_t number;
    if (recorded_elsewhere(event, &number))
        return true;
    struct sim_point point = point_of(event);
    sim_object_drop(point.stream);
    return point.stream != NULL;
}

void sim_event_wait_begin(struct sim_event *event, struct sim_event_wait *wait)
{
    *wait = (struct sim_event_wait){0};
    if (recorded_elsewhere(event, &wait->number)) {
        sim_object_hold(event);
        wait->shared = event;
    } else {
        wait->point = point_of(event);
    }
}

bool sim_event_wait_over(const struct sim_event_wait *wait)
{
    if (wait->shared)
        return !sim_event_share_pending(wait->shared->share, wait->number);
    return !wait->point.stream || sim_reached(wait->point.stream, wait->point.number);
}

void sim_event_wait_end(struct sim_event_wait *wait, bool wait_for_it)
{
    if (wait_for_it && wait->shared)
        sim_event_share_wait(wait->shared->share, wait->number);
    else if (wait_for_it && wait->point.stream)
        sim_wait(wait->point.stream, wait->point.number);
    sim_object_drop(wait->shared);
    sim_object_drop(wait->point.stream);
    *wait = (struct sim_event_wait){0};
}

static void waited(struct sim_stream *stream, void *payload) { (void)stream, (void)payload; }

CUresult sim_event_wait(struct sim_event *event, struct sim_stream *stream)
{
    uint64_t number;
    if (recorded_elsewhere(event, &number))
        return submit_wait_elsewhere(stream, event, number);
    struct sim_point point = point_of(event);
    if (!point.stream)
        return CUDA_SUCCESS;
    CUresult status = CUDA_SUCCESS;
    if (point.stream != stream)
        sim_stream_follow(stream, &point);
    if (point.stream != stream && !sim_reached(point.stream, point.number)) {
        struct sim_op *op = sim_op_new(waited, 0);
        if (op)
            sim_op_wait(op, point.stream, point.number);
        status = sim_submit(stream, op, NULL);
    }
    sim_object_drop(point.stream);
    return status;
}

SIM_API_STREAM(cuStreamWaitEvent, _ptsz, (CUstream hStream, CUevent hEvent, unsigned int Flags),
               (hStream, hEvent, Flags))
{
    SIM_REQUIRE(!(Flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL));
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_HELD struct sim_event *event = NULL;
    SIM_TRY(sim_stream_for_work(hStream, &stream));
    SIM_TRY(sim_event_find(hEvent, &event));
    if (sim_capturing(stream) || atomic_load_explicit(&event->capture, memory_order_acquire))
        return sim_capture_wait(stream, event, Flags);
    if (Flags & CU_EVENT_WAIT_EXTERNAL)
        return CUDA_ERROR_ILLEGAL_STATE;
    return sim_event_wait(event, stream);
}

SIM_API(cuEventQuery, (CUevent hEvent), (hEvent))
{
    SIM_HELD struct sim_event *event = NULL;
    SIM_TRY(sim_event_find(hEvent, &event));
    SIM_TRY(sim_capture_check_event(event));
    uint64_t number;
    if (recorded_elsewhere(event, &number))
        return sim_event_share_pending(event->share, number) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
    pthread_mutex_lock(&event->lock);
    bool done = !event->point.stream || sim_reached(event->point.stream, event->point.number);
    pthread_mutex_unlock(&event->lock);
    return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

SIM_API(cuEventSynchronize, (CUevent hEvent), (hEvent))
{
    SIM_HELD struct sim_event *event = NULL;
    SIM_TRY(sim_event_find(hEvent, &event));
    SIM_TRY(sim_capture_check_event(event));
    uint64_t number;
    if (sim_sync_resumes()) {
        SIM_TRY(sim_sync_resume());
    } else if (recorded_elsewhere(event, &number)) {
        sim_event_share_wait(event->share, number);
    } else {
        struct sim_point point = point_of(event);
        if (!point.stream && !event->share)
            return CUDA_SUCCESS;
        SIM_TRY(sim_sync_begin(&point, point.stream ? 1 : 0));
    }
    sim_pools_settle(event->context->device);
    return sim_context_status(event->context);
}

static CUresult elapsed(float *milliseconds, CUevent hStart, CUevent hEnd)
{
    SIM_REQUIRE(milliseconds);
    SIM_HELD struct sim_event *start = NULL, *end = NULL;
    SIM_TRY(sim_event_find(hStart, &start));
    SIM_TRY(sim_event_find(hEnd, &end));
    SIM_TRY(sim_capture_event_status(start));
    SIM_TRY(sim_capture_event_status(end));
    if ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING)
        return CUDA_ERROR_INVALID_HANDLE;
    struct sim_event *events[2] = {start, end};
    uint64_t times[2];
    bool done = true;
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&events[i]->lock);
        struct sim_point point = events[i]->point;
        bool recorded = point.stream != NULL;
        done = done && recorded && sim_reached(point.stream, point.number);
        times[i] = events[i]->time_ns;
        pthread_mutex_unlock(&events[i]->lock);
        if (!recorded)
            return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!done)
        return CUDA_ERROR_NOT_READY;
    *milliseconds = (float)((double)(int64_t)(times[1] - times[0]) / 1e6);
    return CUDA_SUCCESS;
}

SIM_API(cuEventElapsedTime, (float *pMilliseconds, CUevent hStart, CUevent hEnd), (pMilliseconds, hStart, hEnd))
{
    return elapsed(pMilliseconds, hStart, hEnd);
}

SIM_API(cuEventElapsedTime_v2, (float *pMilliseconds, CUevent hStart, CUevent hEnd), (pMilliseconds, hStart, hEnd))
{
    return elapsed(pMilliseconds, hStart, hEnd);
}
