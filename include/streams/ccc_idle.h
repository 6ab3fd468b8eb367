// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Handles that the driver waits for the device to destroy.
//
// Driver 580 on an H200 waits until all work on the device is done, also work that has nothing to do with the handle,
// and meanwhile holds a lock without which no other thread launches, copies, records an event or creates a stream, in:
//
//     cuLibraryUnload of code that has run; cuMemFree; cuMemFreeHost; cuArrayDestroy; cuMipmappedArrayDestroy;
//     cuGraphExecDestroy of a graph with conditional nodes
//
// It does not wait in the calls that destroy streams, events, graphs and other executables, pools, textures, surfaces,
// linkers and green contexts, in cuMemFreeAsync, and in cuMemUnmap and the calls after it. (Memory is unmapped under
// work that uses it, so a buffer of mappings waits before it is unmapped.)
//
// These handles have the flag CCC_WAITS. So has a pool with peers when it ends: it takes their access away first, at
// once, while they may still use memory that was freed in stream order. Only close() makes it at once; code is never
// unloaded at once. Else the handle is queued, and the release thread destroys it when no stream that was created here
// has work left on its device. A device that always has some is not waited for for ever: streams are marked with
// events, and once each has passed its mark all earlier work is done, and the driver waits for recent work only.
//
// A stream that is being captured can be neither queried nor marked: the capture would be lost. So how it was before
// counts. Streams of other libraries are not looked at, since they may be destroyed at any time. The driver waits for
// their work, in the release thread.
#ifndef CCC_IDLE_H
#define CCC_IDLE_H

#include "streams/ccc_context.h"
#include "streams/ccc_timeline.h"

CCC_LOCK(ccc_work_lock);
static struct {
    ccc_handle *streams;  // those that were created here; not uses
    size_t count;
} ccc_work;

// Handles of streams that were destroyed while they had work, which their marks are behind. One memory use of each is
// here.
static _Atomic(ccc_handle *) ccc_destroyed_streams;
static atomic_uint ccc_destroyed_stream_count;
static atomic_int ccc_default_used;  // a kernel was launched in a default stream

// Held between the question whether a stream is captured and its query, which would end the capture; and to begin one.
CCC_LOCK(ccc_query_lock);

CCC_LOCK(ccc_look_lock);  // held while the driver is asked about streams, and while nothing else is waited for
static struct {
    ccc_handle *first_round;  // handles that wait until the streams are marked anew
    ccc_handle *last_round;   // handles that were there when the streams were marked
    ccc_handle *tails;
    unsigned int round;  // of marks
} ccc_look = {.round = 1};

// What a look at all streams has found.
typedef struct ccc_busy {
    int any;                            // some device has work
    int marked;                         // some stream has not passed its mark
    unsigned char on[CCC_MAX_DEVICES];  // this device has work
} ccc_busy;

// A new stream, which has no work yet.
static void ccc_work_add(ccc_handle *stream)
{
    ccc_stream *own = ccc_as_stream(stream);
    own->quiet = 1;
    pthread_mutex_lock(&ccc_work_lock);
    own->next = ccc_work.streams;
    own->link = &ccc_work.streams;
    if (own->next)
        ccc_as_stream(own->next)->link = &own->next;
    ccc_work.streams = stream;
    ccc_work.count++;
    pthread_mutex_unlock(&ccc_work_lock);
}

static int ccc_is_captured(const ccc_handle *stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return cuStreamIsCapturing(CCC_STRM(stream), &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

// Whether a stream, which is not captured, has work left. A context that has failed runs nothing. The thread is in the
// relaxed mode of captures, here and below: a query would end captures of other streams.
static int ccc_has_work(const ccc_handle *stream) { return cuStreamQuery(CCC_STRM(stream)) == CUDA_ERROR_NOT_READY; }

static void ccc_mark_end(ccc_handle *stream)
{
    ccc_stream *own = ccc_as_stream(stream);
    CUevent mark = own->mark;
    CUresult result = mark ? cuEventDestroy(mark) : CUDA_SUCCESS;
    own->mark = NULL;
    if (result)
        ccc_cleanup_failed((int)result, "cuEventDestroy", (uintptr_t)mark);
}

// Take a stream that is about to be destroyed off the list. If it has work left, the mark stands for that work.
static void ccc_work_remove(ccc_handle *stream)
{
    ccc_stream *own = ccc_as_stream(stream);
    if (own->link == NULL)  // the second try, in another context
        return;
    pthread_mutex_lock(&ccc_work_lock);
    *own->link = own->next;
    if (own->next)
        ccc_as_stream(own->next)->link = own->link;
    ccc_work.count--;
    pthread_mutex_unlock(&ccc_work_lock);
    own->link = NULL;
    if (atomic_load(&ccc_waits_alive) == 0 && !own->followed && own->mark == NULL)
        return;  // no handle waits for its work
    ccc_mode mode = ccc_force_relaxed_mode();
    if (!ccc_is_captured(stream) && ccc_has_work(stream) &&
        (own->mark || cuEventCreate(&own->mark, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS) &&
        cuEventRecord(own->mark, CCC_STRM(stream)) == CUDA_SUCCESS) {
        atomic_fetch_add(&stream->memory_uses, 1);
        ccc_defer(&ccc_destroyed_streams, stream);
        atomic_fetch_add(&ccc_destroyed_stream_count, 1);
        ccc_release_ask();  // to destroy the event when it is reached
    } else {
        ccc_mark_end(stream);
    }
    ccc_restore_mode(&mode);
}

// Begin to capture a stream. Whether it has work cannot be found out from now on: for a stream that was created here it
// is noted.
static CUresult ccc_begin_capture(ccc_handle *stream, CUstreamCaptureMode capture_mode, CUgraph inside)
{
    ccc_mode mode = ccc_force_relaxed_mode();
    int locks = ccc_graph_locks();
    if (locks)
        pthread_mutex_lock(&ccc_query_lock);
    if (ccc_as_stream(stream)->link && !ccc_is_captured(stream))
        ccc_as_stream(stream)->quiet = !ccc_has_work(stream);
    ccc_restore_mode(&mode);
    CUresult result = inside ? cuStreamBeginCaptureToGraph(CCC_STRM(stream), inside, NULL, NULL, 0, capture_mode)
                             : cuStreamBeginCapture(CCC_STRM(stream), capture_mode);
    if (locks)
        pthread_mutex_unlock(&ccc_query_lock);
    return result;
}

static void ccc_found_work(ccc_busy *busy, CUdevice device, int marked)
{
    busy->any = 1;
    busy->marked |= marked;
    if (device >= 0 && device < CCC_MAX_DEVICES)
        busy->on[device] = 1;
    else
        memset(busy->on, 1, sizeof busy->on);
}

// Record the mark of this round in a stream that has work. Returns whether the stream has not passed it.
static int ccc_mark_stream(ccc_handle *stream)
{
    ccc_stream *own = ccc_as_stream(stream);
    if (own->marked == ccc_look.round)
        return cuEventQuery(own->mark) == CUDA_ERROR_NOT_READY;
    if (own->mark == NULL && cuEventCreate(&own->mark, CU_EVENT_DISABLE_TIMING))
        return 1;  // it counts as not marked, and this is tried again
    if (cuEventRecord(own->mark, CCC_STRM(stream)) == CUDA_SUCCESS)
        own->marked = ccc_look.round;
    return 1;
}

static void ccc_look_at_stream(ccc_handle *stream, ccc_busy *busy)
{
    int pushed = ccc_push(stream->parent);
    pthread_mutex_lock(&ccc_query_lock);
    int excludes = ccc_lock_captures();  // no work is captured meanwhile, so that the stream does not join a capture
    if (ccc_is_captured(stream)) {
        if (!ccc_as_stream(stream)->quiet)
            ccc_found_work(busy, stream->device, 1);
    } else if (!(ccc_as_stream(stream)->quiet = !ccc_has_work(stream))) {
        ccc_found_work(busy, stream->device, ccc_mark_stream(stream));
    }
    ccc_unlock_captures(&excludes);
    pthread_mutex_unlock(&ccc_query_lock);
    ccc_pop(pushed);
}

// Look at the legacy default stream of each device's primary context. It must not be queried while others are captured.
static void ccc_look_at_defaults(ccc_busy *busy)
{
    for (int device = 0; device < CCC_MAX_DEVICES; device++) {
        ccc_handle *context = atomic_load(&ccc_primary[device]);
        if (context == NULL)
            continue;
        int pushed = ccc_push(context);
        pthread_mutex_lock(&ccc_query_lock);
        if (atomic_load(&ccc_captures) == 0 && cuStreamQuery(CU_STREAM_LEGACY) == CUDA_ERROR_NOT_READY)
            ccc_found_work(busy, device, 1);
        pthread_mutex_unlock(&ccc_query_lock);
        ccc_pop(pushed);
    }
}

// Uses of all streams, in an array that the caller frees; NULL with a count: out of memory.
static ccc_handle **ccc_work_streams(size_t *count)
{
    size_t found = 0;
    pthread_mutex_lock(&ccc_work_lock);
    ccc_handle **streams = ccc_work.count ? malloc(ccc_work.count * sizeof *streams) : NULL;
    for (ccc_handle *stream = ccc_work.streams; stream && streams; stream = ccc_as_stream(stream)->next)
        if (ccc_retain(stream))
            streams[found++] = stream;
    *count = streams ? found : ccc_work.count;
    pthread_mutex_unlock(&ccc_work_lock);
    return streams;
}

static ccc_handle *ccc_join_lists(ccc_handle *first, ccc_handle *second)
{
    ccc_handle **end = &first;
    while (*end)
        end = &(*end)->deferred;
    *end = second;
    return first;
}

// Look at the work of destroyed streams, and forget the streams that have finished.
static void ccc_look_at_destroyed_streams(ccc_busy *busy)
{
    ccc_look.tails = ccc_join_lists(atomic_exchange(&ccc_destroyed_streams, NULL), ccc_look.tails);
    for (ccc_handle **link = &ccc_look.tails, *tail; (tail = *link);) {
        if (cuEventQuery(ccc_as_stream(tail)->mark) == CUDA_ERROR_NOT_READY) {
            ccc_found_work(busy, tail->device, 1);
            link = &tail->deferred;
            continue;
        }
        *link = tail->deferred;
        ccc_mark_end(tail);
        ccc_release_memory(tail);
        atomic_fetch_sub(&ccc_destroyed_stream_count, 1);
    }
}

// Find out which devices have work.
static ccc_busy ccc_look_at_work(void)
{
    ccc_busy busy = {0};
    size_t count;
    ccc_handle **streams = ccc_work_streams(&count);
    if (streams == NULL && count)
        ccc_found_work(&busy, -1, 1);
    for (size_t i = 0; streams && i < count; i++)
        ccc_look_at_stream(streams[i], &busy);
    if (streams)
        ccc_release_all(streams, count);  // the last use of one may be among them: then it is a tail from now on
    free(streams);
    if (atomic_load(&ccc_default_used))
        ccc_look_at_defaults(&busy);
    ccc_look_at_destroyed_streams(&busy);
    return busy;
}

static int ccc_is_idle_for(const ccc_handle *handle, const ccc_busy *busy)
{
    if (handle->flags & (CCC_PINNED | CCC_NEVER_AT_ONCE) || handle->device < 0)
        return !busy->any;
    return !busy->on[handle->device];
}

// Destroy a handle of the look, unless it has to wait for a capture.
static void ccc_end_looked(ccc_handle *handle)
{
    if (!ccc_defer_captive(handle))
        ccc_release(ccc_end(handle));
    atomic_fetch_sub(&ccc_ends_waiting, 1);
}

// Destroy the listed handles whose devices have no work; after each, find that out anew. Returns the others.
static ccc_handle *ccc_end_idle(ccc_handle *handle)
{
    ccc_handle *left = NULL, **end = &left;
    ccc_busy busy;
    for (int looked = 0; handle;) {
        ccc_handle *next = handle->deferred;
        if (!looked) {
            pthread_mutex_lock(&ccc_look_lock);
            busy = ccc_look_at_work();
            pthread_mutex_unlock(&ccc_look_lock);
        }
        if ((looked = !ccc_is_idle_for(handle, &busy))) {
            *end = handle;
            end = &handle->deferred;
        } else {
            ccc_end_looked(handle);
        }
        handle = next;
    }
    *end = NULL;
    return left;
}

// Destroy the handles whose devices are idle. Returns whether something is left to look at again.
static int ccc_look_for_idle(void)
{
    pthread_mutex_lock(&ccc_look_lock);
    ccc_handle *arrived =
        atomic_exchange(&ccc_until_idle, NULL);  // before the look, which then sees all work they need
    ccc_handle *first = ccc_join_lists(ccc_look.first_round, arrived), *last = ccc_look.last_round, *passed = NULL;
    ccc_look.first_round = ccc_look.last_round = NULL;
    ccc_busy busy = {0};
    if (first || last)
        busy = ccc_look_at_work();
    else
        ccc_look_at_destroyed_streams(&busy);
    if (!busy.marked && (passed = last)) {  // all work from before the marks of this round is done
        last = passed->deferred;            // one at a time: meanwhile the streams may be given work without an end
        ccc_look.round++;
    } else if (!busy.marked) {
        last = first;
        first = NULL;
        ccc_look.round++;
    }
    pthread_mutex_unlock(&ccc_look_lock);
    if (passed)
        ccc_end_looked(passed);
    first = ccc_end_idle(first);
    last = ccc_end_idle(last);
    pthread_mutex_lock(&ccc_look_lock);
    ccc_look.first_round = ccc_join_lists(first, ccc_look.first_round);
    ccc_look.last_round = ccc_join_lists(last, ccc_look.last_round);
    int left = ccc_look.first_round || ccc_look.last_round || ccc_look.tails;
    pthread_mutex_unlock(&ccc_look_lock);
    return left;
}

// Whether the work of a stream is done, also of one that is gone; of one that is captured it is not known. The caller
// has a use of the stream, or holds its handle.
static CUresult ccc_stream_reached(ccc_handle *stream)
{
    ccc_busy busy = {0};
    CUresult result;
    pthread_mutex_lock(&ccc_look_lock);
    if (ccc_uses(stream)) {
        ccc_look_at_stream(stream, &busy);
        result = busy.any ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
    } else {
        ccc_look_at_destroyed_streams(&busy);
        result = ccc_as_stream(stream)->mark ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&ccc_look_lock);
    return result;
}

#endif
