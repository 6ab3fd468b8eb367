// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Memory: pools, allocation in stream order, synchronous and pinned allocation, and fill.
#ifndef CCC_MEMORY_H
#define CCC_MEMORY_H

#include "driver/ccc_compat.h"
#include "memory/ccc_meter.h"

#define CCC_CAPTURING (-22)  // the stream is being captured in a graph

static void ccc_buffer_ended(ccc_handle *handle)
{
    ccc_buffer *buffer = ccc_as_buffer(handle);
    ccc_charge *charges = atomic_load(&buffer->charges);
    ccc_refs *refs = atomic_load(&buffer->refs);
    if (charges)
        ccc_end_charges(charges);
    if (refs)
        ccc_refs_release(refs);
}

static const ccc_handle_type ccc_buffer_type = {
    .size = sizeof(ccc_buffer),
    .stream = offsetof(ccc_buffer, stream),
    .companion = offsetof(ccc_buffer, pool),
    .bytes = offsetof(ccc_buffer, size),
    .destroy = ccc_buffer_destroy,
    .needs_context = ccc_buffer_needs_context,
    .must_wait = ccc_buffer_must_wait,
    .ended = ccc_buffer_ended,
};

static CUresult ccc_free_to_pool(ccc_handle *buffer, const ccc_handle *stream, const char **call)
{
    *call = "cuMemFreeAsync";
    return cuMemFreeAsync(buffer->value, stream ? CCC_STRM(stream) : NULL);
}

// Let the work finish that may use memory which goes back at once.
static void ccc_finish_work(const ccc_handle *stream)
{
    CUresult result = stream ? cuStreamSynchronize(CCC_STRM(stream)) : CUDA_SUCCESS;
    if (result)
        ccc_cleanup_failed((int)result, "cuStreamSynchronize", stream->value);
}

static CUresult ccc_free_on_device(ccc_handle *buffer, const ccc_handle *stream, const char **call)
{
    ccc_finish_work(stream);
    *call = "cuMemFree";
    return cuMemFree(buffer->value);
}

static CUresult ccc_free_pinned(ccc_handle *buffer, const ccc_handle *stream, const char **call)
{
    ccc_finish_work(stream);
    *call = "cuMemFreeHost";
    return cuMemFreeHost(CCC_POINTER(buffer));
}

static const ccc_memory_origin ccc_pool_memory = {.free = ccc_free_to_pool};
static const ccc_memory_origin ccc_device_memory = {.needs_context = 1, .free = ccc_free_on_device};
static const ccc_memory_origin ccc_pinned_memory = {.needs_context = 1, .free = ccc_free_pinned};

typedef struct ccc_pool {
    ccc_handle handle;
    atomic_int granted;  // other devices than its own have been given access
} ccc_pool;

static ccc_pool *ccc_as_pool(const ccc_handle *handle) { return (ccc_pool *)handle; }

// Whether the pool is destroyed with the handle, and has memory of a device that others may be given access to.
static int ccc_pool_has_peers(const ccc_handle *pool)
{
    return !(pool->flags & (CCC_BORROWED | CCC_IMPORTED)) && pool->device >= 0 &&
           atomic_load(&ccc_as_pool(pool)->granted);
}

// Take the access from all other devices. Drivers give it to the next pool otherwise, which reuses the handle. Each
// device has a call of its own, because the driver refuses a call as a whole.
static CCC_COLD void ccc_pool_revoke_access(const ccc_handle *pool)
{
    int devices = 0;
    CUresult result = cuDeviceGetCount(&devices);
    if (result)
        ccc_cleanup_failed((int)result, "cuDeviceGetCount", pool->value);
    for (int device = 0; device < devices; device++) {
        CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
        CUmemAccessDesc none = {.location = location, .flags = CU_MEM_ACCESS_FLAGS_PROT_NONE};
        CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
        const char *call = "cuMemPoolGetAccess";
        result = device == pool->device ? CUDA_SUCCESS
                                        : cuMemPoolGetAccess(&flags, (CUmemoryPool)CCC_POINTER(pool), &location);
        if (result == CUDA_SUCCESS && flags != CU_MEM_ACCESS_FLAGS_PROT_NONE) {
            call = "cuMemPoolSetAccess";
            result = cuMemPoolSetAccess((CUmemoryPool)CCC_POINTER(pool), &none, 1);
        }
        if (result)
            ccc_cleanup_failed((int)result, call, pool->value);
    }
}

static CUresult ccc_pool_destroy(ccc_handle *handle, const char **call)
{
    if (ccc_pool_has_peers(handle))
        ccc_pool_revoke_access(handle);
    *call = "cuMemPoolDestroy";
    return cuMemPoolDestroy((CUmemoryPool)CCC_POINTER(handle));
}

// A pool of our own; max_size 0 leaves the limit to the system.
static ccc_handle *ccc_pool_create(const CUmemPoolProps *properties)
{
    CUmemoryPool pool = NULL;
    if (ccc_init())
        return NULL;
    CCC_RELAXED_MODE;
    ccc_handle *handle = ccc_new(CCC_POOL, 0, 0, NULL);
    CCC_MAKE(handle, (uintptr_t)pool, cuMemPoolCreate, &pool, properties);
    if (handle)
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
    CCC_RELAXED_MODE;
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
    CCC_RELAXED_MODE;
    CCC_TRY(cuMemPoolGetAttribute, (CUmemoryPool)CCC_POINTER(pool), attribute, value);
    return 0;
}

static int ccc_pool_set(const ccc_handle *pool, CUmemPool_attribute attribute, void *value)
{
    CCC_USE(pool);
    CCC_RELAXED_MODE;
    CCC_TRY(cuMemPoolSetAttribute, (CUmemoryPool)CCC_POINTER(pool), attribute, value);
    return 0;
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

// A status if the stream, of which the caller has a use, is being captured.
static int ccc_check_capture(const ccc_handle *stream)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    CCC_TRY(cuStreamIsCapturing, CCC_STRM(stream), &capture);
    return capture == CU_STREAM_CAPTURE_STATUS_NONE ? 0 : ccc_fail(CCC_CAPTURING, "");
}

// The same for a caller who has a use of both, which the buffer takes over.
static ccc_handle *ccc_pool_allocate_in(ccc_handle *pool, ccc_handle *stream, size_t size)
{
    CUdeviceptr pointer = 0;
    CCC_SCOPE_OR(NULL, scope, ccc_enter_stream(&scope, stream, pool->device));
    ccc_handle *handle = NULL;
    CUresult result = CUDA_SUCCESS;
    // pools give memory now, graphs later; captures that are not begun here are not asked for
    if (!CCC_LIKELY(atomic_load_explicit(&ccc_captures, memory_order_relaxed) == 0) && ccc_check_capture(stream))
        return NULL;
    CCC_RELAXED_MODE;
    if (size > 0)  // the driver refuses 0; an empty buffer owns no memory
        result = cuMemAllocFromPoolAsync(&pointer, size, (CUmemoryPool)CCC_POINTER(pool), CCC_STRM(stream));
    if (result) {
        ccc_fail((int)result, "cuMemAllocFromPoolAsync");
        return NULL;
    }
    if (ccc_left(&scope, 0) == 0)  // before the buffer takes over the uses
        handle = ccc_buffer_own(&ccc_pool_memory, pointer, size, 0, scope.context, pool, stream);
    if (!CCC_LIKELY(handle != NULL) && size > 0) {
        int pushed = ccc_push(scope.context);  // of which a default stream is
        if ((result = cuMemFreeAsync(pointer, CCC_STRM(stream))))
            ccc_cleanup_failed((int)result, "cuMemFreeAsync", pointer);
        ccc_pop(pushed);
    }
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

// Have a buffer free its memory in this way, if it has any.
static ccc_handle *ccc_buffer_filled(ccc_handle *buffer, const ccc_memory_origin *origin)
{
    if (buffer && buffer->value)
        ccc_as_buffer(buffer)->origin = origin;
    return buffer;
}

// Allocate on a device that has no pools.
static ccc_handle *ccc_device_allocate(int device, size_t size)
{
    CUdeviceptr pointer = 0;
    CCC_SCOPE_OR(NULL, scope, ccc_enter(&scope, device));
    ccc_handle *handle = ccc_buffer_new(NULL, 0, size, CCC_SYNCHRONOUS | CCC_WAITS, scope.context, NULL, NULL);
    if (size > 0)
        CCC_MAKE(handle, pointer, cuMemAlloc, &pointer, size);
    return ccc_left_with(&scope, ccc_buffer_filled(handle, &ccc_device_memory));
}

// Allocate page-locked host memory that every context may use. A context must be current, as the driver asks.
static ccc_handle *ccc_pinned_allocate(size_t size)
{
    void *pointer = NULL;
    ccc_handle *context = ccc_needed_context("cuMemHostAlloc");
    if (context == NULL)
        return NULL;
    ccc_handle *handle = ccc_buffer_new(NULL, 0, size, CCC_PINNED | CCC_WAITS, context, NULL, NULL);
    ccc_release(context);
    if (size > 0)
        CCC_MAKE(handle, (uintptr_t)pointer, cuMemHostAlloc, &pointer, size, CU_MEMHOSTALLOC_PORTABLE);
    return ccc_buffer_filled(handle, &ccc_pinned_memory);
}

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
    CCC_USE(stream);
    CCC_SCOPE(scope, ccc_enter_stream(&scope, stream, pool->device));
    CCC_RELAXED_MODE;
    if (pointer)
        CCC_TRY(cuMemFreeAsync, pointer, CCC_STRM(stream));
    return ccc_left(&scope, 0);
}

// Free memory from cuMemAlloc, by address.
static int ccc_device_deallocate(int device, uint64_t pointer)
{
    CCC_SCOPE(scope, ccc_enter(&scope, device));
    if (pointer)
        CCC_TRY(cuMemFree, pointer);
    return ccc_left(&scope, 0);
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
    size_t size = ccc_as_buffer(buffer)->size;
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
