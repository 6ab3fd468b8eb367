// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Streams whose work goes into a graph instead of being run. The state of captures is guarded by the lock of graphs;
// while nothing is captured, none of this costs more than a look at a counter.

#ifndef SIM_CAPTURE_H
#define SIM_CAPTURE_H

#include "streams/event.h"
#include "streams/stream.h"

struct sim_capture;
struct sim_graph;
struct sim_dependency;
struct sim_work;

extern _Atomic size_t sim_captures;  // that have begun and not ended

static inline bool sim_capturing(struct sim_stream *stream)
{
    return SIM_UNLIKELY(atomic_load_explicit(&sim_captures, memory_order_acquire)) &&
           atomic_load_explicit(&stream->capture, memory_order_acquire);
}

// Finds a stream that is going to be given work, or asked about it. The legacy stream is out of bounds while a stream
// that it would have to wait for is captured, which ends those captures.
CUresult sim_stream_for_work(CUstream handle, struct sim_stream **stream);

// --- What is captured -----------------------------------------------------------------------------------------

// Each makes a node of a stream that is captured. `wait` is for functions that return when the work is done: those do
// not go together with captures.
struct sim_copy;
struct sim_fill;
struct sim_launch_wish;
CUresult sim_capture_work(struct sim_stream *stream, struct sim_work *work);
CUresult sim_capture_copy(struct sim_stream *stream, const struct sim_copy *copy, bool wait);
CUresult sim_capture_fill(struct sim_stream *stream, const struct sim_fill *fill, bool wait);
CUresult sim_capture_kernel(struct sim_stream *stream, CUfunction function, const struct sim_launch_wish *wish,
                            void **kernel_params, void **extra);
CUresult sim_capture_host(struct sim_stream *stream, CUhostFn function, void *data, unsigned sync_mode);
CUresult sim_capture_values(struct sim_stream *stream, const CUstreamBatchMemOpParams *operations, unsigned count);
struct sim_pool;
CUresult sim_capture_alloc(struct sim_stream *stream, struct sim_pool *pool, size_t bytes, CUdeviceptr *address);
CUresult sim_capture_free(struct sim_stream *stream, uintptr_t address);
CUresult sim_capture_record(struct sim_stream *stream, struct sim_event *event, unsigned flags);
// For waits by any stream, if it is captured or the event is one of a capture.
CUresult sim_capture_wait(struct sim_stream *stream, struct sim_event *event, unsigned flags);

// --- What is not ----------------------------------------------------------------------------------------------

// A call that a captured stream does not go together with: ends the capture. Such a call is either work for the stream,
// or waits for it or asks about it.
CUresult sim_capture_refuse(struct sim_stream *stream);
CUresult sim_capture_refuse_to_wait(struct sim_stream *stream);
// The call may be unsafe while something is captured: is it allowed for this thread now?
CUresult sim_capture_check_unsafe(void);
// A call that concerns all streams of a context.
CUresult sim_capture_check_context(struct sim_context *context);
CUresult sim_capture_check_green(const struct sim_green *green);
// May a call ask about what an event was recorded for? Not of an event of a capture; once that has ended, the event
// means nothing until it is recorded again.
CUresult sim_capture_event_status(struct sim_event *event);
// The same for a call that ends the capture.
CUresult sim_capture_check_event(struct sim_event *event);
void sim_capture_forget_event(struct sim_event *event);  // it is recorded anew, or ends
void sim_capture_stream_ends(struct sim_stream *stream);
void sim_capture_graph_ends(const struct sim_graph *graph);  // while it is captured, which is a misuse

#endif
