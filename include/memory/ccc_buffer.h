// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Buffers: memory with the stream in whose order it is freed, slices, and the order between streams.
//
// How memory is freed depends on where it is from: its ccc_memory_origin, in the header that allocates it.
#ifndef CCC_BUFFER_H
#define CCC_BUFFER_H

#include <sched.h>
#include <unistd.h>

#include "streams/ccc_refs.h"

typedef struct ccc_charge ccc_charge;  // memory/ccc_meter.h

typedef struct ccc_memory_origin {
    int needs_context;  // it is freed in the current context

    // Free the memory, and set *call to the driver function that does it.
    CUresult (*free)(ccc_handle *buffer, const ccc_handle *stream, const char **call);
    // Return whether it must not be freed yet, because a stream is captured. NULL: not while `stream` is.
    int (*must_wait)(const ccc_handle *buffer, const ccc_handle *stream);
} ccc_memory_origin;

typedef struct ccc_buffer {
    ccc_handle handle;
    const ccc_memory_origin *origin;  // NULL: it owns no memory
    ccc_handle *pool;                 // the pool, graph or graphics resource that the memory is from
    _Atomic(ccc_handle *) stream;     // the buffer is freed in the order of this stream
    _Atomic(size_t) size;
    _Atomic(ccc_charge *) charges;  // who counts the buffer
    _Atomic(ccc_refs *) refs;       // finished when the memory was freed; or NULL
    struct ccc_virtual *mappings;   // of a buffer in reserved addresses
    struct ccc_import *import;      // of a buffer of another process: the import that it shares with others
    _Atomic(uint32_t) readers;      // threads that read the stream, which is not released meanwhile
} ccc_buffer;

static inline ccc_buffer *ccc_as_buffer(const ccc_handle *handle) { return (ccc_buffer *)handle; }

static CUresult ccc_buffer_destroy(ccc_handle *handle, const char **call)
{
    const ccc_memory_origin *origin = ccc_as_buffer(handle)->origin;
    return origin ? origin->free(handle, ccc_stream_of(handle), call) : CUDA_SUCCESS;
}

static int ccc_buffer_needs_context(const ccc_handle *handle)
{
    const ccc_buffer *buffer = ccc_as_buffer(handle);
    return buffer->origin && (buffer->origin->needs_context || atomic_load(&buffer->stream) == NULL);
}

// Whether work that a stream is given now would become a node of a graph, or end a capture.
static int ccc_may_be_captured(const ccc_handle *stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return cuStreamIsCapturing(CCC_STRM(stream), &status) || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static int ccc_buffer_must_wait(const ccc_handle *handle)
{
    const ccc_memory_origin *origin = ccc_as_buffer(handle)->origin;
    const ccc_handle *stream = ccc_stream_of(handle);
    if (origin == NULL || handle->value == 0)
        return 0;
    return origin->must_wait ? origin->must_wait(handle, stream) : stream && ccc_may_be_captured(stream);
}

// Whether buffers use their pool. One that is not ours to destroy needs no use: its count would be what all threads
// write. `pool` may be the graph that memory is allocated in, or NULL.
static int ccc_pool_is_counted(const ccc_handle *pool)
{
    return pool && !(pool->kind == CCC_POOL && pool->flags & CCC_BORROWED);
}

// Make the handle of a new buffer, which takes over the caller's use of its stream, and of its pool unless `pool` is
// borrowed. On failure nothing is taken over, and the memory is the caller's.
static ccc_handle *ccc_buffer_own(const ccc_memory_origin *origin, CUdeviceptr pointer, size_t size, int flags,
                                  ccc_handle *context, ccc_handle *pool, ccc_handle *stream)
{
    ccc_handle *handle = ccc_new(CCC_BUFFER, pointer, flags, context);
    if (handle == NULL)
        return NULL;
    ccc_buffer *buffer = ccc_as_buffer(handle);
    buffer->origin = pointer ? origin : NULL;  // an empty buffer owns no memory
    atomic_init(&buffer->size, size);
    if (pool)
        handle->device = pool->device;
    if (ccc_pool_is_counted(pool))
        buffer->pool = pool;
    atomic_init(&buffer->stream, stream);
    return handle;
}

// The same for a caller that has a use of the pool and the stream and keeps it.
static ccc_handle *ccc_buffer_new(const ccc_memory_origin *origin, CUdeviceptr pointer, size_t size, int flags,
                                  ccc_handle *context, ccc_handle *pool, ccc_handle *stream)
{
    ccc_handle *handle = ccc_buffer_own(origin, pointer, size, flags, context, pool, stream);
    if (handle && ccc_as_buffer(handle)->pool)
        ccc_retain(ccc_as_buffer(handle)->pool);
    if (handle && stream)
        ccc_retain(stream);
    return handle;
}

// Memory that another owner frees.
static ccc_handle *ccc_buffer_borrow(uint64_t pointer, size_t size)
{
    return ccc_buffer_new(NULL, pointer, size, CCC_BORROWED, NULL, NULL, NULL);
}

#define CCC_LONGEST_WAIT 200  // times 50 microseconds

// Whether only this view uses a buffer whose memory Python frees. Calls that other threads have begun are
// waited for, but not for long: the buffer may also be retained by C code.
static int ccc_buffer_is_unused(const ccc_handle *view)
{
    for (int i = 0; ccc_uses(view->parent) > 1; i++) {
        if (i == CCC_LONGEST_WAIT || !ccc_graph_locks())
            return 0;
        usleep(50);
    }
    return 1;
}

// The handle that owns the memory of a buffer, of which the caller has a use: the buffer's own, unless it is a slice.
static const ccc_handle *ccc_allocation(const ccc_handle *buffer)
{
    while (buffer->parent && buffer->parent->kind == CCC_BUFFER)
        buffer = buffer->parent;
    return buffer;
}

// Where the memory begins that a buffer is a part of; 0: the buffer is closed.
static uint64_t ccc_buffer_base(const ccc_handle *buffer)
{
    CCC_USE_OR(buffer, 0);
    return ccc_allocation(buffer)->value;
}

// A part of a buffer, in bounds. It keeps the memory of the whole. NULL: the buffer is closed, or out of memory.
static ccc_handle *ccc_buffer_slice(ccc_handle *buffer, size_t offset, size_t size)
{
    CCC_USE_OR(buffer, ccc_closed());
    ccc_handle *whole = (ccc_handle *)ccc_allocation(buffer);
    int flags = CCC_BORROWED | CCC_PART | (whole->flags & CCC_OF_GRAPH);
    ccc_handle *slice = ccc_buffer_new(NULL, buffer->value + offset, size, flags, whole, NULL, NULL);
    if (slice)
        slice->device = whole->device;
    return slice;
}

// Change the stream in whose order an allocation, of which the caller has a use, is freed.
static int ccc_allocation_set_stream(ccc_handle *whole, ccc_handle *stream)
{
    if (!ccc_acquire(stream))
        return CCC_CLOSED;
    ccc_handle *before = atomic_exchange(&ccc_as_buffer(whole)->stream, stream);
    while (atomic_load(&ccc_as_buffer(whole)->readers) &&
           ccc_driver.reason != CCC_FORKED)  // whose readers are not there
        sched_yield();
    ccc_release(before);
    return 0;
}

// The same of a buffer, or of the whole that it is a slice of.
static int ccc_buffer_set_stream(ccc_handle *buffer, ccc_handle *stream)
{
    CCC_USE(buffer);
    return ccc_allocation_set_stream((ccc_handle *)ccc_allocation(buffer), stream);
}

// Have the stream of a buffer, of which the caller has a use, stay there to be looked at until ccc_buffer_unread. A use
// of the stream cannot be added before it is known that no thread releases it at the same time.
static const ccc_handle *ccc_buffer_read(const ccc_handle *buffer)
{
    ccc_handle *whole = (ccc_handle *)ccc_allocation(buffer);
    atomic_fetch_add(&ccc_as_buffer(whole)->readers, 1);
    return atomic_load(&ccc_as_buffer(whole)->stream);
}

static void ccc_buffer_unread(const ccc_handle *buffer)
{
    atomic_fetch_sub(&ccc_as_buffer(ccc_allocation(buffer))->readers, 1);
}

// A use of the stream that a buffer is freed in; the caller has a use of the buffer. NULL for none.
static ccc_handle *ccc_buffer_stream_use(const ccc_handle *buffer)
{
    ccc_handle *stream = (ccc_handle *)ccc_buffer_read(buffer);
    if (stream)
        ccc_retain(stream);
    ccc_buffer_unread(buffer);
    return stream;
}

// The handle of the stream that a buffer is freed in; 0 for none.
static uint64_t ccc_buffer_stream(ccc_handle *buffer)
{
    if (!ccc_retain(buffer))  // not whether it is open: others may need its memory after it was closed
        return 0;
    const ccc_handle *stream = ccc_buffer_read(buffer);
    uint64_t value = stream ? stream->value : 0;
    ccc_buffer_unread(buffer);
    ccc_release(buffer);
    return value;
}

// Make the context that a buffer was allocated in current, for an operation that would be wrong in another.
static int ccc_enter_buffer(ccc_scope *scope, const ccc_handle *buffer)
{
    return ccc_enter_context(scope, ccc_allocation(buffer)->parent);
}

static int ccc_buffer_wait(const ccc_handle *buffer, ccc_handle *own, ccc_handle *other, int own_waits)
{
    if (own == NULL || own->value == other->value)
        return 0;
    CCC_USE(other);
    CCC_SCOPE(scope, ccc_enter_buffer(&scope, buffer));
    return ccc_left(&scope, own_waits ? ccc_stream_wait_stream_in(own, other)
                                      : ccc_stream_wait_stream_in(other, own));  // own may be closed in Python
}

static int ccc_buffer_relate(ccc_handle *buffer, ccc_handle *other, int own_waits)
{
    if (!ccc_retain(buffer))
        return CCC_CLOSED;
    ccc_handle *own = ccc_buffer_stream_use(buffer);
    int status = ccc_buffer_wait(buffer, own, other, own_waits);
    ccc_release(own);
    ccc_release(buffer);
    return status;
}

// Make the consumer's stream wait for the stream of a buffer; a default stream is one of the buffer's context.
static int ccc_buffer_order(ccc_handle *buffer, ccc_handle *consumer) { return ccc_buffer_relate(buffer, consumer, 0); }

// Make the stream of a buffer wait for another one, so that the memory is freed after the work there.
static int ccc_buffer_follow(ccc_handle *buffer, ccc_handle *other) { return ccc_buffer_relate(buffer, other, 1); }

// Keep the Python objects of a token until the memory of a buffer is freed, if others besides the buffer use the
// memory. Returns whether they are kept; then they replace the objects that were kept in this way before.
static int ccc_buffer_refer(ccc_handle *buffer, uint64_t token)
{
    CCC_USE_OR(buffer, 0);
    ccc_handle *whole = (ccc_handle *)ccc_allocation(buffer);
    if (ccc_uses(whole) <= 2)  // the use of the Python object, and this one
        return 0;
    ccc_refs *refs = ccc_refs_new(NULL, 0, token);
    if (refs == NULL)
        return 0;
    ccc_refs_release(atomic_exchange(&ccc_as_buffer(whole)->refs, refs));
    return 1;
}

#endif
