// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Memory: pools, allocation in stream order, synchronous and pinned allocation, slices and fill.
#ifndef CCC_MEMORY_H
#define CCC_MEMORY_H

#include <sched.h>
#include <unistd.h>

#include "driver/ccc_compat.h"
#include "handles/ccc_stream.h"

#define CCC_CAPTURING (-22)  // the stream is being captured in a graph

// Whether buffers use their pool. One that is not ours to destroy needs no use: its count would be what all threads
// write. `pool` may be the graph that memory is allocated in, or NULL.
static int ccc_pool_is_counted(const ccc_handle *pool)
{
    return pool && !(pool->kind == CCC_POOL && pool->flags & CCC_BORROWED);
}

// A pool of our own; max_size 0 leaves the limit to the system.
static ccc_handle *ccc_pool_create(const CUmemPoolProps *properties)
{
    CUmemoryPool pool = NULL;
    if (ccc_init())
        return NULL;
    CCC_RELAX;
    CUresult result = cuMemPoolCreate(&pool, properties);
    if (result) {
        ccc_fail((int)result, "cuMemPoolCreate");
        return NULL;
    }
    ccc_handle *handle = ccc_new(CCC_POOL, (uintptr_t)pool, 0, NULL);
    if (handle == NULL)
        cuMemPoolDestroy(pool);
    else
        handle->device = properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? properties->location.id : -1;
    return handle;
}

// The current pool of a place, which is not ours to destroy: a device's, or another place's from CUDA 13.0 on.
static ccc_handle *ccc_pool_current(int allocation, int location, int id)
{
    CUmemoryPool pool = NULL;
    CUmemLocation place = {.type = (CUmemLocationType)location, .id = id};
    int of_device = location == CU_MEM_LOCATION_TYPE_DEVICE && allocation == CU_MEM_ALLOCATION_TYPE_PINNED;
    if (ccc_init())
        return NULL;
    CCC_RELAX;
    CUresult result =
        of_device ? cuDeviceGetMemPool(&pool, id) : cuMemGetMemPool(&pool, &place, (CUmemAllocationType)allocation);
    if (result) {
        ccc_fail((int)result, of_device ? "cuDeviceGetMemPool" : "cuMemGetMemPool");
        return NULL;
    }
    ccc_handle *handle = ccc_new(CCC_POOL, (uintptr_t)pool, CCC_BORROWED, NULL);
    if (handle)
        handle->device = location == CU_MEM_LOCATION_TYPE_DEVICE ? id : -1;
    return handle;
}

static int ccc_pool_get(const ccc_handle *pool, CUmemPool_attribute attribute, void *value)
{
    CCC_USE(pool);
    CCC_RELAX;
    CCC_TRY(cuMemPoolGetAttribute, (CUmemoryPool)CCC_POINTER(pool), attribute, value);
    return 0;
}

static int ccc_pool_set(const ccc_handle *pool, CUmemPool_attribute attribute, void *value)
{
    CCC_USE(pool);
    CCC_RELAX;
    CCC_TRY(cuMemPoolSetAttribute, (CUmemoryPool)CCC_POINTER(pool), attribute, value);
    return 0;
}

// Make the handle of a new buffer, which takes over the caller's use of its stream, and of its pool unless `pool` is
// borrowed. On failure nothing is taken over, and the memory is the caller's.
static ccc_handle *ccc_buffer_adopt(CUdeviceptr pointer, size_t size, int flags, ccc_handle *context, ccc_handle *pool,
                                    ccc_handle *stream)
{
    ccc_handle *handle = ccc_new(CCC_BUFFER, pointer, flags, context);
    if (handle == NULL)
        return NULL;
    atomic_init(&handle->buffer.size, size);
    if (pool)
        handle->device = pool->device;
    if (ccc_pool_is_counted(pool))
        handle->buffer.pool = pool;
    atomic_init(&handle->buffer.stream, stream);
    return handle;
}

// The same for a caller who has a use of the pool and the stream and keeps it.
static ccc_handle *ccc_buffer_new(CUdeviceptr pointer, size_t size, int flags, ccc_handle *context, ccc_handle *pool,
                                  ccc_handle *stream)
{
    ccc_handle *handle = ccc_buffer_adopt(pointer, size, flags, context, pool, stream);
    if (handle && handle->buffer.pool)
        ccc_retain(handle->buffer.pool);
    if (handle && stream)
        ccc_retain(stream);
    return handle;
}

// Make the context current that work in this stream on behalf of `device` needs: only a default stream needs one. For
// memory of no device (-1) it is the context that the stream works in, so that the memory can go back without any.
static int ccc_enter_stream(ccc_scope *scope, ccc_handle *stream, CUdevice device)
{
    scope->pushed = 0;
    scope->context = stream->parent;
    if (device < 0 && stream->parent == NULL) {
        scope->context = ccc_stream_home(stream);
        return scope->context ? 0 : ccc_last_status();
    }
    if (!(stream->flags & CCC_TOKEN) || device < 0) {
        if (scope->context)
            ccc_retain(scope->context);
        return 0;
    }
    return ccc_enter(scope, device);
}

// A status if the stream is being captured, as far as captures are begun here: pools give memory now, graphs later.
static int ccc_check_capture(const ccc_handle *stream)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    if (CCC_LIKELY(atomic_load_explicit(&ccc_captures, memory_order_relaxed) == 0))
        return 0;
    CCC_TRY(cuStreamIsCapturing, CCC_STRM(stream), &capture);
    return capture == CU_STREAM_CAPTURE_STATUS_NONE ? 0 : ccc_fail(CCC_CAPTURING, "");
}

// The same for a caller who has a use of both, which the buffer takes over.
static ccc_handle *ccc_pool_allocate_in(ccc_handle *pool, ccc_handle *stream, size_t size)
{
    CUdeviceptr pointer = 0;
    ccc_scope scope;
    if (ccc_enter_stream(&scope, stream, pool->device))
        return NULL;
    ccc_handle *handle = NULL;
    CUresult result = CUDA_SUCCESS;
    if (!CCC_LIKELY(ccc_check_capture(stream) == 0)) {
        ccc_leave(&scope);
        return NULL;
    }
    CCC_RELAX;
    if (size > 0)  // the driver refuses 0; an empty buffer owns no memory
        result = cuMemAllocFromPoolAsync(&pointer, size, (CUmemoryPool)CCC_POINTER(pool), CCC_STRM(stream));
    if (result)
        ccc_fail((int)result, "cuMemAllocFromPoolAsync");
    else if ((handle = ccc_buffer_adopt(pointer, size, 0, scope.context, pool, stream)) == NULL && size > 0)
        cuMemFreeAsync(pointer, CCC_STRM(stream));
    ccc_leave(&scope);
    return handle;
}

// Allocate from a pool, in stream order; the memory goes back in the order of the same stream. NULL on failure.
static ccc_handle *ccc_pool_allocate(ccc_handle *pool, ccc_handle *stream, size_t size)
{
    int counted = ccc_pool_is_counted(pool);
    if (!(counted ? ccc_acquire(pool) : ccc_is_open(pool)))
        return ccc_closed();
    ccc_handle *handle = NULL;
    if (!ccc_acquire(stream)) {
        ccc_closed();
    } else {
        if (pool->flags & CCC_IMPORTED)
            ccc_fail(CCC_FOREIGN, "");
        else
            handle = ccc_pool_allocate_in(pool, stream, size);
        if (handle == NULL)
            ccc_release_scoped(&stream);
    }
    if (handle == NULL && counted)
        ccc_release_scoped(&pool);
    return handle;
}

// Allocate on a device that has no pools.
static ccc_handle *ccc_device_allocate(int device, size_t size)
{
    CUdeviceptr pointer = 0;
    ccc_scope scope;
    ccc_handle *handle = NULL;
    CUresult result = CUDA_SUCCESS;
    if (ccc_enter(&scope, device))
        return NULL;
    if (size > 0)
        result = cuMemAlloc(&pointer, size);
    if (result)
        ccc_fail((int)result, "cuMemAlloc");
    else if ((handle = ccc_buffer_new(pointer, size, CCC_SYNCHRONOUS | CCC_WAITS, scope.context, NULL, NULL)) == NULL &&
             size > 0)
        cuMemFree(pointer);
    ccc_leave(&scope);
    return handle;
}

// Allocate page-locked host memory that every context may use. A context must be current, as the driver asks.
static ccc_handle *ccc_pinned_allocate(size_t size)
{
    void *pointer = NULL;
    int status;
    ccc_handle *context = ccc_current_context(&status);
    if (context == NULL) {
        if (status == 0)
            ccc_fail(CCC_NO_CONTEXT, "cuMemHostAlloc");
        return NULL;
    }
    ccc_handle *handle = NULL;
    CUresult result = CUDA_SUCCESS;
    if (size > 0)
        result = cuMemHostAlloc(&pointer, size, CU_MEMHOSTALLOC_PORTABLE);
    if (result)
        ccc_fail((int)result, "cuMemHostAlloc");
    else if ((handle = ccc_buffer_new((uintptr_t)pointer, size, CCC_PINNED | CCC_WAITS, context, NULL, NULL)) == NULL &&
             size > 0)
        cuMemFreeHost(pointer);
    ccc_release(context);
    return handle;
}

// Memory that somebody else owns.
static ccc_handle *ccc_buffer_borrow(uint64_t pointer, size_t size)
{
    return ccc_buffer_new(pointer, size, CCC_BORROWED, NULL, NULL, NULL);
}

#define CCC_LONGEST_WAIT 200  // times 50 microseconds

// Whether nobody but this view uses a buffer whose memory Python gives back. Calls that other threads have begun are
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
    ccc_handle *slice =
        ccc_buffer_new(buffer->value + offset, size, CCC_BORROWED | (whole->flags & CCC_OF_GRAPH), whole, NULL, NULL);
    if (slice)
        slice->device = whole->device;
    return slice;
}

// Change the stream in whose order an allocation, of which the caller has a use, goes back.
static int ccc_allocation_set_stream(ccc_handle *whole, ccc_handle *stream)
{
    if (!ccc_acquire(stream))
        return CCC_CLOSED;
    ccc_handle *before = atomic_exchange(&whole->buffer.stream, stream);
    while (atomic_load(&whole->buffer.readers) && ccc_driver.reason != CCC_FORKED)  // whose readers are not there
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
// of the stream cannot be added before it is known that nobody releases it at the same time.
static const ccc_handle *ccc_buffer_read(const ccc_handle *buffer)
{
    ccc_handle *whole = (ccc_handle *)ccc_allocation(buffer);
    atomic_fetch_add(&whole->buffer.readers, 1);
    return atomic_load(&whole->buffer.stream);
}

static void ccc_buffer_unread(const ccc_handle *buffer)
{
    atomic_fetch_sub(&((ccc_handle *)ccc_allocation(buffer))->buffer.readers, 1);
}

// A use of the stream that a buffer goes back in; the caller has a use of the buffer. NULL for none.
static ccc_handle *ccc_buffer_stream_use(const ccc_handle *buffer)
{
    ccc_handle *stream = (ccc_handle *)ccc_buffer_read(buffer);
    if (stream)
        ccc_retain(stream);
    ccc_buffer_unread(buffer);
    return stream;
}

// The handle of the stream that a buffer goes back in; 0 for none.
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
    CUcontext current = NULL;
    const ccc_handle *home = ccc_allocation(buffer)->parent;
    *scope = (ccc_scope){NULL, 0};
    if (home == NULL)
        return 0;
    CCC_TRY(cuCtxGetCurrent, &current);
    if (current == CCC_CTX(home))
        return 0;
    CCC_TRY(cuCtxPushCurrent, CCC_CTX(home));
    scope->pushed = 1;
    return 0;
}

static int ccc_buffer_wait(const ccc_handle *buffer, ccc_handle *own, ccc_handle *other, int own_waits)
{
    ccc_scope scope;
    if (own == NULL || own->value == other->value)
        return 0;
    CCC_USE(other);
    int status = ccc_enter_buffer(&scope, buffer);
    if (status)
        return status;
    status = own_waits ? ccc_stream_wait_stream_in(own, other)
                       : ccc_stream_wait_stream_in(other, own);  // own may be closed in Python
    ccc_leave(&scope);
    return status;
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

// Make the stream of a buffer wait for another one, so that the memory goes back after what that one does with it.
static int ccc_buffer_follow(ccc_handle *buffer, ccc_handle *other) { return ccc_buffer_relate(buffer, other, 1); }

// What the driver knows of an address: kind 0 is memory that it does not know, ordinary memory of the host.
static int ccc_pointer_query(uint64_t pointer, int *kind, int *device, int *managed)
{
    CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                    CU_POINTER_ATTRIBUTE_IS_MANAGED};
    unsigned int type = 0, is_managed = 0;
    int ordinal = -1;
    void *values[] = {&type, &ordinal, &is_managed};
    int status = ccc_init();
    if (status)
        return status;
    CCC_TRY(cuPointerGetAttributes, 3, wanted, values, (CUdeviceptr)pointer);
    *kind = (int)type;
    *device = type ? ordinal : -1;
    *managed = (int)is_managed;
    return 0;
}

// What a node is told of an address: CU_MEMORYTYPE_DEVICE, also of managed memory, or CU_MEMORYTYPE_HOST; -1: it
// failed.
static int ccc_pointer_kind(uint64_t pointer)
{
    int kind, device, managed;
    if (ccc_pointer_query(pointer, &kind, &device, &managed))
        return -1;
    return kind == CU_MEMORYTYPE_DEVICE || managed ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
}

// Free memory that a pool gave, by address: for MemoryResource.deallocate, which has no handle.
static int ccc_pool_deallocate(const ccc_handle *pool, uint64_t pointer, ccc_handle *stream)
{
    ccc_scope scope;
    CCC_USE(stream);
    int status = ccc_enter_stream(&scope, stream, pool->device);
    if (status)
        return status;
    CCC_RELAX;
    CUresult result = pointer ? cuMemFreeAsync(pointer, CCC_STRM(stream)) : CUDA_SUCCESS;
    ccc_leave(&scope);
    return result ? ccc_fail((int)result, "cuMemFreeAsync") : 0;
}

// Free memory from cuMemAlloc, by address.
static int ccc_device_deallocate(int device, uint64_t pointer)
{
    ccc_scope scope;
    int status = ccc_enter(&scope, device);
    if (status)
        return status;
    CUresult result = pointer ? cuMemFree(pointer) : CUDA_SUCCESS;
    ccc_leave(&scope);
    return result ? ccc_fail((int)result, "cuMemFree") : 0;
}

// Free memory from cuMemHostAlloc, by address.
static int ccc_pinned_deallocate(uint64_t pointer)
{
    if (pointer)
        CCC_TRY(cuMemFreeHost, (void *)(uintptr_t)pointer);
    return 0;
}

// The same as below for a caller who has a use of both.
static int ccc_fill_in(const ccc_handle *buffer, const ccc_handle *stream, uint32_t value, int width)
{
    CUstream queue = CCC_STRM(stream);
    CUdeviceptr pointer = buffer->value;
    size_t size = buffer->buffer.size;
    if (size == 0)
        return 0;
    CCC_USES_OBJECTS(stream, buffer);
    CCC_SUBMIT;
    switch (width) {
    case 1: CCC_TRY(cuMemsetD8Async, pointer, (unsigned char)value, size, queue); return 0;
    case 2: CCC_TRY(cuMemsetD16Async, pointer, (unsigned short)value, size / 2, queue); return 0;
    default: CCC_TRY(cuMemsetD32Async, pointer, value, size / 4, queue); return 0;
    }
}

// Fill with a pattern of width 1, 2 or 4 bytes. The size is a multiple of the width.
static int ccc_fill(const ccc_handle *buffer, const ccc_handle *stream, uint32_t value, int width)
{
    CCC_USE(buffer);
    CCC_USE(stream);
    return ccc_fill_in(buffer, stream, value, width);
}

#endif
