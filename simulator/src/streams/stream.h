// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Streams: in-order queues that worker threads serve.
//
// Work is numbered in each stream. What waits for it (an event, another stream, a host thread) holds the stream and
// a number, and is done waiting once `completed` has reached the number. A number is published only after the
// dependencies of its work are known, so dependencies never form a cycle.

#ifndef SIM_STREAM_H
#define SIM_STREAM_H

#include "driver/context.h"

typedef void (*sim_work)(struct sim_stream *stream, void *payload);

struct sim_point {  // a moment in a stream
    struct sim_stream *stream;
    uint64_t number;
};

// What a worker thread is given to do, once for each time it is handed over.
struct sim_task {
    struct sim_task *next;
    void (*run)(struct sim_task *task);
};

struct sim_op {
    struct sim_op *next;
    uint64_t number;
    sim_work run;
    bool always;  // runs even in a context that has failed
    struct sim_point *waits;
    size_t wait_count, wait_capacity, next_wait;
    _Alignas(16) char payload[];
};

enum { SIM_FOLLOWED = 8, SIM_GREATEST_PRIORITY = -5 };

enum sim_stream_state { SIM_IDLE, SIM_QUEUED, SIM_RUNNING, SIM_PARKED };

struct sim_stream {
    struct sim_object base;
    struct sim_context *context;
    unsigned flags;
    int priority;
    uint64_t id;
    bool legacy, per_thread;
    struct sim_green *green;  // the green context that it belongs to, or NULL; a reference
    struct sim_stream *context_next, **context_link;
    struct sim_task task;
    CUstreamAttrValue sync_policy, access_window, domain, domain_map;

    struct sim_capture_stream *_Atomic capture;  // its part in a capture; NULL if its work is run

    _Atomic uint64_t submitted, completed;
    _Atomic uint64_t known;  // how far the host knows it to be, by having waited
    pthread_mutex_t lock;    // guards what follows
    struct {
        uint64_t id, number;
    } followed[SIM_FOLLOWED];  // how far the streams were that this one was told to wait for, the latest ones
    unsigned follows;
    pthread_cond_t progress;
    unsigned sleepers;
    enum sim_stream_state state;
    struct sim_op *head, *tail;
    struct sim_waiter *waiters;
};

// --- Work -----------------------------------------------------------------------------------------------------

struct sim_op *sim_op_new(sim_work run, size_t payload);
void sim_op_wait(struct sim_op *op, struct sim_stream *stream, uint64_t number);  // before submitting
// Takes the operation, also when it fails. `point` may be NULL; otherwise it receives where the work stands.
CUresult sim_submit(struct sim_stream *stream, struct sim_op *op, uint64_t *number);
// Runs short work on the calling thread if nothing is in its way, also in a context that has failed. Returns false if
// it has to be submitted.
bool sim_run_now(struct sim_stream *stream, sim_work run, void *payload, uint64_t *number);

static inline bool sim_reached(struct sim_stream *stream, uint64_t number)
{
    return atomic_load_explicit(&stream->completed, memory_order_acquire) >= number;
}

// By an event: the stream comes after that point of the other one.
void sim_stream_follow(struct sim_stream *stream, const struct sim_point *point);
bool sim_stream_follows(struct sim_stream *stream, const struct sim_point *point);

// A stream that is never given work stands for the moments of something else: each is announced, and reached later.
uint64_t sim_timeline_announce(struct sim_stream *timeline);
void sim_timeline_reach(struct sim_stream *timeline, uint64_t number);

void sim_wait(struct sim_stream *stream, uint64_t number);
// The streams of a context, or those of a green one in it, that have not reached what was submitted to them, and the
// latest of that. There is a reference to each; the caller frees the array.
struct sim_point *sim_context_points(struct sim_context *context, const struct sim_green *green, size_t *count);
void sim_streams_drain(struct sim_context *context, const struct sim_green *green);

// What cuStreamSynchronize and the like do: if a call does not resume an earlier one, it begins with its points, whose
// references are taken. CUDA_ERROR_NOT_READY: the slice of the thread is over.
bool sim_sync_resumes(void);
CUresult sim_sync_begin(const struct sim_point *points, size_t count);
CUresult sim_sync_resume(void);
void sim_sync_forget(struct sim_thread *thread);  // drops the points that a slice has left
void sim_context_drain(struct sim_context *context);

// --- Streams --------------------------------------------------------------------------------------------------

CUresult sim_stream_new(struct sim_context *context, unsigned flags, int priority, struct sim_stream **stream);
CUresult sim_stream_new_in(struct sim_green *green, unsigned flags, int priority, struct sim_stream **stream);
CUresult sim_stream_find(CUstream handle, struct sim_stream **stream);  // resolves the default streams
bool sim_stream_is_legacy(CUstream handle);                             // asks for no context
CUresult sim_stream_default(struct sim_stream **stream);                // of the variant being called
CUstream sim_stream_handle(struct sim_stream *stream);
void sim_stream_finalize(void *stream);
void sim_thread_end_streams(struct sim_thread *thread);
// Every blocking stream of the context waits for its legacy stream and the other way round.
bool sim_stream_blocking(const struct sim_stream *stream);

// --- Workers --------------------------------------------------------------------------------------------------

void sim_workers_take(struct sim_task *task);

extern _Atomic size_t sim_host_functions_pending;

#endif
