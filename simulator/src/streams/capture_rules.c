// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// What must not be done while streams are captured.

#include <stdlib.h>

#include "streams/capture_state.h"

static bool any(void) { return atomic_load_explicit(&sim_captures, memory_order_acquire) != 0; }

// The captures with a stream that `concerns` accepts are over. Returns whether there was one.
static bool invalidate_where(bool (*concerns)(const struct sim_capture_stream *, const void *), const void *arg)
{
    bool found = false;
    for (struct sim_capture *capture = sim_capture_first; capture; capture = capture->next) {
        bool concerned = false;
        for (struct sim_capture_stream *part = capture->streams; part && !concerned; part = part->next)
            concerned = concerns(part, arg);
        if (concerned)
            sim_capture_invalidate(capture);
        found = found || concerned;
    }
    return found;
}

static bool blocks_legacy(const struct sim_capture_stream *part, const void *context)
{
    return part->stream->context == context && sim_stream_blocking(part->stream);
}

CUresult sim_stream_for_work(CUstream handle, struct sim_stream **out)
{
    struct sim_stream *stream;
    SIM_TRY(sim_stream_find(handle, &stream));
    if (SIM_UNLIKELY(any()) && stream->legacy) {
        SIM_GRAPHS_LOCKED();
        if (invalidate_where(blocks_legacy, stream->context)) {
            sim_object_drop(stream);
            return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    }
    *out = stream;
    return CUDA_SUCCESS;
}

CUresult sim_capture_refuse(struct sim_stream *stream)
{
    SIM_GRAPHS_LOCKED();
    struct sim_capture_stream *part = atomic_load(&stream->capture);
    if (part && part->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    return sim_capture_refuse_to_wait(stream);
}

CUresult sim_capture_refuse_to_wait(struct sim_stream *stream)
{
    SIM_GRAPHS_LOCKED();
    struct sim_capture_stream *part = atomic_load(&stream->capture);
    if (part)
        sim_capture_invalidate(part->capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult sim_capture_check_unsafe(void)
{
    const struct sim_thread *thread = sim_thread();
    if (SIM_LIKELY(!any()) || thread->capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    SIM_GRAPHS_LOCKED();
    CUresult status = CUDA_SUCCESS;
    for (struct sim_capture *capture = sim_capture_first; capture; capture = capture->next) {
        bool own = capture->thread == thread->id && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        bool others = capture->thread != thread->id && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                      thread->capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (own || others) {
            sim_capture_invalidate(capture);
            status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return status;
}

static bool in_context(const struct sim_capture_stream *part, const void *context)
{
    return part->stream->context == context;
}

CUresult sim_capture_check_context(struct sim_context *context)
{
    if (SIM_LIKELY(!any()))
        return CUDA_SUCCESS;
    SIM_GRAPHS_LOCKED();
    return invalidate_where(in_context, context) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

static bool in_green(const struct sim_capture_stream *part, const void *green) { return part->stream->green == green; }

CUresult sim_capture_check_green(const struct sim_green *green)
{
    if (SIM_LIKELY(!any()))
        return CUDA_SUCCESS;
    SIM_GRAPHS_LOCKED();
    return invalidate_where(in_green, green) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

// --- Events ---------------------------------------------------------------------------------------------------

static CUresult status_of(const struct sim_capture_event *captured)
{
    if (!captured)
        return CUDA_SUCCESS;
    return captured->capture->graph ? CUDA_ERROR_CAPTURED_EVENT : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_capture_event_status(struct sim_event *event)
{
    if (SIM_LIKELY(!atomic_load_explicit(&event->capture, memory_order_acquire)))
        return CUDA_SUCCESS;
    SIM_GRAPHS_LOCKED();
    return status_of(atomic_load(&event->capture));
}

CUresult sim_capture_check_event(struct sim_event *event)
{
    if (SIM_LIKELY(!atomic_load_explicit(&event->capture, memory_order_acquire)))
        return sim_capture_check_unsafe();
    SIM_GRAPHS_LOCKED();
    struct sim_capture_event *captured = atomic_load(&event->capture);
    CUresult status = status_of(captured);
    if (status == CUDA_ERROR_CAPTURED_EVENT)
        sim_capture_invalidate(captured->capture);
    return status;
}

void sim_capture_forget_event(struct sim_event *event)
{
    if (SIM_LIKELY(!atomic_load_explicit(&event->capture, memory_order_acquire)))
        return;
    SIM_GRAPHS_LOCKED();
    struct sim_capture_event *captured = atomic_exchange(&event->capture, NULL);
    if (!captured)
        return;
    sim_capture_drop(captured->capture);
    free(captured->set.nodes);
    free(captured);
}
