// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver/config.h"
#include "driver/usage.h"
#include "streams/stream.h"

struct sim_waiter {
    struct sim_waiter *next;
    struct sim_stream *parked;
    uint64_t number;
};

// --- Operations -----------------------------------------------------------------------------------------------

struct sim_op *sim_op_new(sim_work run, size_t payload)
{
    struct sim_op *op = malloc(sizeof *op + payload);
    if (op) {
        memset(op, 0, sizeof *op);
        op->run = run;
    }
    return op;
}

static void op_free(struct sim_op *op)
{
    for (size_t i = 0; i < op->wait_count; i++)
        sim_object_drop(op->waits[i].stream);
    free(op->waits);
    free(op);
}

void sim_op_wait(struct sim_op *op, struct sim_stream *stream, uint64_t number)
{
    if (sim_reached(stream, number) || !sim_object_hold(stream))
        return;
    if (op->wait_count == op->wait_capacity) {
        size_t capacity = op->wait_capacity ? 2 * op->wait_capacity : 4;
        struct sim_point *grown = realloc(op->waits, capacity * sizeof *grown);
        if (!grown) {
            // Waiting now costs concurrency, never order.
            sim_wait(stream, number);
            sim_object_drop(stream);
            return;
        }
        op->waits = grown;
        op->wait_capacity = capacity;
    }
    op->waits[op->wait_count++] = (struct sim_point){stream, number};
}

bool sim_stream_blocking(const struct sim_stream *stream)
{
    return !stream->legacy && !(stream->flags & CU_STREAM_NON_BLOCKING);
}

static bool busy(struct sim_stream *stream)
{
    return !sim_reached(stream, atomic_load_explicit(&stream->submitted, memory_order_acquire));
}

static bool implicit_waits_pending(struct sim_stream *stream)
{
    struct sim_context *context = stream->context;
    if (sim_stream_blocking(stream))
        return context->legacy && busy(context->legacy);
    if (!stream->legacy)
        return false;
    bool pending = false;
    pthread_mutex_lock(&context->lock);
    for (struct sim_stream *other = context->streams; other && !pending; other = other->context_next)
        pending = sim_stream_blocking(other) && busy(other);
    pthread_mutex_unlock(&context->lock);
    return pending;
}

static void add_implicit_waits(struct sim_stream *stream, struct sim_op *op)
{
    struct sim_context *context = stream->context;
    if (sim_stream_blocking(stream)) {
        if (context->legacy && busy(context->legacy))
            sim_op_wait(op, context->legacy, atomic_load(&context->legacy->submitted));
        return;
    }
    if (!stream->legacy)
        return;
    pthread_mutex_lock(&context->lock);
    for (struct sim_stream *other = context->streams; other; other = other->context_next)
        if (sim_stream_blocking(other) && busy(other))
            sim_op_wait(op, other, atomic_load(&other->submitted));
    pthread_mutex_unlock(&context->lock);
}

// --- Progress -------------------------------------------------------------------------------------------------

// With the stream's lock held: marks work as done and returns who waited for it.
static struct sim_waiter *complete(struct sim_stream *stream, uint64_t number)
{
    atomic_store_explicit(&stream->completed, number, memory_order_release);
    if (stream->sleepers)
        pthread_cond_broadcast(&stream->progress);
    struct sim_waiter *ready = NULL;
    for (struct sim_waiter **link = &stream->waiters; *link;) {
        struct sim_waiter *waiter = *link;
        if (waiter->number <= number) {
            *link = waiter->next;
            waiter->next = ready;
            ready = waiter;
        } else {
            link = &waiter->next;
        }
    }
    return ready;
}

static void hand_over(struct sim_stream *stream);

static void wake(struct sim_waiter *waiter)
{
    while (waiter) {
        struct sim_waiter *next = waiter->next;
        struct sim_stream *parked = waiter->parked;
        pthread_mutex_lock(&parked->lock);
        parked->state = SIM_QUEUED;
        pthread_mutex_unlock(&parked->lock);
        hand_over(parked);
        free(waiter);
        waiter = next;
    }
}

// Leaves the stream until the point is reached. Returns false if it has been reached already.
static bool park(struct sim_stream *stream, struct sim_point point)
{
    struct sim_waiter *waiter = malloc(sizeof *waiter);
    if (!waiter) {
        sim_wait(point.stream, point.number);
        return false;
    }
    pthread_mutex_lock(&stream->lock);
    stream->state = SIM_PARKED;
    pthread_mutex_unlock(&stream->lock);
    pthread_mutex_lock(&point.stream->lock);
    bool wait = !sim_reached(point.stream, point.number) && sim_object_hold(stream);
    if (wait) {
        *waiter = (struct sim_waiter){point.stream->waiters, stream, point.number};
        point.stream->waiters = waiter;
    }
    pthread_mutex_unlock(&point.stream->lock);
    if (!wait) {
        free(waiter);
        pthread_mutex_lock(&stream->lock);
        stream->state = SIM_RUNNING;
        pthread_mutex_unlock(&stream->lock);
    }
    return wait;
}

// Waits up to the time that the environment names, so that what relies on work being done already is found.
static void delay(void)
{
    static _Atomic uint32_t turns;
    double seconds = sim_config()->delay_seconds;
    if (!(seconds > 0))
        return;
    uint32_t mixed = atomic_fetch_add(&turns, 1) * UINT32_C(2654435769);
    mixed = (mixed ^ mixed >> 15) * UINT32_C(2246822519);
    seconds *= (double)(mixed ^ mixed >> 13) / UINT32_MAX;
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

static void run(struct sim_stream *stream, struct sim_op *op)
{
    delay();
    if (op->always || atomic_load_explicit(&stream->context->error, memory_order_relaxed) == CUDA_SUCCESS)
        op->run(stream, op->payload);
}

static void serve(struct sim_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->state = SIM_RUNNING;
    struct sim_op *op;
    while ((op = stream->head) != NULL) {
        pthread_mutex_unlock(&stream->lock);
        for (; op->next_wait < op->wait_count; op->next_wait++) {
            struct sim_point point = op->waits[op->next_wait];
            if (!sim_reached(point.stream, point.number) && park(stream, point))
                return;
        }
        run(stream, op);
        pthread_mutex_lock(&stream->lock);
        stream->head = op->next;
        if (!stream->head)
            stream->tail = NULL;
        struct sim_waiter *ready = complete(stream, op->number);
        pthread_mutex_unlock(&stream->lock);
        wake(ready);
        op_free(op);
        atomic_fetch_sub(&sim_control->work, 1);
        pthread_mutex_lock(&stream->lock);
    }
    stream->state = SIM_IDLE;
    pthread_mutex_unlock(&stream->lock);
}

static void serve_and_drop(struct sim_task *task)
{
    struct sim_stream *stream = (struct sim_stream *)((char *)task - offsetof(struct sim_stream, task));
    serve(stream);
    sim_object_drop(stream);
}

// The stream has work; a reference goes along.
static void hand_over(struct sim_stream *stream)
{
    stream->task.run = serve_and_drop;
    sim_workers_take(&stream->task);
}

CUresult sim_submit(struct sim_stream *stream, struct sim_op *op, uint64_t *number)
{
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    atomic_fetch_add(&sim_control->work, 1);
    pthread_mutex_lock(&stream->lock);
    add_implicit_waits(stream, op);
    op->number = atomic_load_explicit(&stream->submitted, memory_order_relaxed) + 1;
    if (number)
        *number = op->number;
    if (stream->tail)
        stream->tail->next = op;
    else
        stream->head = op;
    stream->tail = op;
    bool start = stream->state == SIM_IDLE;
    if (start) {
        stream->state = SIM_QUEUED;
        sim_object_hold(stream);
    }
    atomic_store_explicit(&stream->submitted, op->number, memory_order_release);
    pthread_mutex_unlock(&stream->lock);
    if (start)
        hand_over(stream);
    return CUDA_SUCCESS;
}

bool sim_run_now(struct sim_stream *stream, sim_work work, void *payload, uint64_t *number)
{
    if (sim_config()->delay_seconds > 0)
        return false;
    pthread_mutex_lock(&stream->lock);
    if (stream->state != SIM_IDLE || stream->head || implicit_waits_pending(stream)) {
        pthread_mutex_unlock(&stream->lock);
        return false;
    }
    stream->state = SIM_RUNNING;
    uint64_t mine = atomic_load_explicit(&stream->submitted, memory_order_relaxed) + 1;
    atomic_store_explicit(&stream->submitted, mine, memory_order_release);
    pthread_mutex_unlock(&stream->lock);

    work(stream, payload);

    pthread_mutex_lock(&stream->lock);
    struct sim_waiter *ready = complete(stream, mine);
    bool more = stream->head != NULL;
    stream->state = more ? SIM_QUEUED : SIM_IDLE;
    if (more)
        sim_object_hold(stream);
    pthread_mutex_unlock(&stream->lock);
    wake(ready);
    if (more)
        hand_over(stream);
    if (number)
        *number = mine;
    return true;
}

// --- Order between streams ------------------------------------------------------------------------------------

void sim_stream_follow(struct sim_stream *stream, const struct sim_point *point)
{
    pthread_mutex_lock(&stream->lock);
    unsigned place = stream->follows++ % SIM_FOLLOWED;
    stream->followed[place].id = point->stream->id;
    stream->followed[place].number = point->number;
    pthread_mutex_unlock(&stream->lock);
}

bool sim_stream_follows(struct sim_stream *stream, const struct sim_point *point)
{
    bool follows = false;
    pthread_mutex_lock(&stream->lock);
    for (int i = 0; i < SIM_FOLLOWED; i++)
        follows |= stream->followed[i].id == point->stream->id && stream->followed[i].number >= point->number;
    pthread_mutex_unlock(&stream->lock);
    return follows;
}

// --- Timelines ------------------------------------------------------------------------------------------------

uint64_t sim_timeline_announce(struct sim_stream *timeline)
{
    return atomic_fetch_add_explicit(&timeline->submitted, 1, memory_order_acq_rel) + 1;
}

void sim_timeline_reach(struct sim_stream *timeline, uint64_t number)
{
    pthread_mutex_lock(&timeline->lock);
    struct sim_waiter *ready = complete(timeline, number);
    pthread_mutex_unlock(&timeline->lock);
    wake(ready);
}

// --- Waiting --------------------------------------------------------------------------------------------------

static void note_known(struct sim_stream *stream, uint64_t number)
{
    uint64_t known = atomic_load_explicit(&stream->known, memory_order_relaxed);
    while (known < number && !atomic_compare_exchange_weak(&stream->known, &known, number))
        ;
}

void sim_wait(struct sim_stream *stream, uint64_t number)
{
    if (!sim_reached(stream, number)) {
        pthread_mutex_lock(&stream->lock);
        stream->sleepers++;
        while (!sim_reached(stream, number))
            pthread_cond_wait(&stream->progress, &stream->lock);
        stream->sleepers--;
        pthread_mutex_unlock(&stream->lock);
    }
    note_known(stream, number);
}

struct sim_point *sim_context_points(struct sim_context *context, const struct sim_green *green, size_t *found)
{
    size_t count = 0, capacity = 16;
    struct sim_point *points = malloc(capacity * sizeof *points);
    pthread_mutex_lock(&context->lock);
    for (struct sim_stream *stream = context->streams; stream && points; stream = stream->context_next) {
        if (green && stream->green != green)
            continue;
        uint64_t number = atomic_load(&stream->submitted);
        if (count == capacity) {
            struct sim_point *grown = realloc(points, 2 * capacity * sizeof *points);
            if (!grown)
                break;
            points = grown;
            capacity *= 2;
        }
        if (sim_reached(stream, number))
            note_known(stream, number);
        else if (sim_object_hold(stream))
            points[count++] = (struct sim_point){stream, number};
    }
    pthread_mutex_unlock(&context->lock);
    *found = count;
    return points;
}

// --- Synchronising in slices ----------------------------------------------------------------------------------

// As sim_wait, but returns false at a time.
static bool wait_until(struct sim_stream *stream, uint64_t number, const struct timespec *until)
{
    int expired = 0;
    if (!sim_reached(stream, number)) {
        pthread_mutex_lock(&stream->lock);
        stream->sleepers++;
        while (!sim_reached(stream, number) && !expired)
            expired = pthread_cond_timedwait(&stream->progress, &stream->lock, until);
        stream->sleepers--;
        pthread_mutex_unlock(&stream->lock);
    }
    if (!sim_reached(stream, number))
        return false;
    note_known(stream, number);
    return true;
}

static struct timespec after_milliseconds(unsigned milliseconds)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_nsec += (long)(milliseconds % 1000) * 1000000;
    time.tv_sec += milliseconds / 1000 + time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

void sim_sync_forget(struct sim_thread *thread)
{
    for (size_t i = 0; i < thread->point_count; i++)
        sim_object_drop(thread->points[i].stream);
    free(thread->points);
    thread->points = NULL;
    thread->point_count = 0;
}

bool sim_sync_resumes(void)
{
    struct sim_thread *self = sim_thread();
    if (self->resumes && self->point_count)
        return true;
    sim_sync_forget(self);
    return false;
}

// Returns how many of the points were reached in the slice of the thread, and drops these.
static size_t sync_some(const struct sim_point *points, size_t count)
{
    unsigned slice = sim_thread()->slice;
    struct timespec until = slice ? after_milliseconds(slice) : (struct timespec){0};
    for (size_t i = 0; i < count; i++) {
        if (!slice)
            sim_wait(points[i].stream, points[i].number);
        else if (!wait_until(points[i].stream, points[i].number, &until))
            return i;
        sim_object_drop(points[i].stream);
    }
    return count;
}

CUresult sim_sync_begin(const struct sim_point *points, size_t count)
{
    struct sim_thread *self = sim_thread();
    size_t reached = sync_some(points, count);
    if (reached == count)
        return CUDA_SUCCESS;
    self->point_count = count - reached;
    self->points = malloc(self->point_count * sizeof *points);
    if (!self->points) {
        self->point_count = 0;
        for (size_t i = reached; i < count; i++)
            sim_object_drop(points[i].stream);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(self->points, points + reached, self->point_count * sizeof *points);
    return CUDA_ERROR_NOT_READY;
}

CUresult sim_sync_resume(void)
{
    struct sim_thread *self = sim_thread();
    size_t reached = sync_some(self->points, self->point_count);
    self->point_count -= reached;
    memmove(self->points, self->points + reached, self->point_count * sizeof *self->points);
    if (self->point_count)
        return CUDA_ERROR_NOT_READY;
    sim_sync_forget(self);
    return CUDA_SUCCESS;
}

// Control: from now on cuStreamSynchronize, cuEventSynchronize and cuCtxSynchronize of this thread return
// CUDA_ERROR_NOT_READY after so many milliseconds, for the caller to look for signals; 0 for never. The next call waits
// for all work that there is then; with `resumes`, for the work that the last one has not waited for.
SIM_EXPORT void cudaSimSlice(unsigned milliseconds, int resumes)
{
    struct sim_thread *self = sim_thread();
    self->slice = milliseconds;
    self->resumes = resumes != 0;
}

void sim_streams_drain(struct sim_context *context, const struct sim_green *green)
{
    // Only what was submitted before the call counts, so the points are taken first.
    size_t count;
    struct sim_point *points = sim_context_points(context, green, &count);
    for (size_t i = 0; i < count; i++) {
        sim_wait(points[i].stream, points[i].number);
        sim_object_drop(points[i].stream);
    }
    free(points);
}

void sim_context_drain(struct sim_context *context) { sim_streams_drain(context, NULL); }
