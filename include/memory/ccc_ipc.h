// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Sharing between processes. What crosses is 64 bytes that only the driver understands, or a file descriptor.
#ifndef CCC_IPC_H
#define CCC_IPC_H

#include <pthread.h>

#include "memory/ccc_descriptor.h"
#include "memory/ccc_memory.h"

// Guards what is imported here, and importing and freeing it.
CCC_LOCK(ccc_ipc_lock);

// --- Events ------------------------------------------------------------------------------------------------------

// Name an event to other processes; payload has CU_IPC_HANDLE_SIZE bytes. The driver asks for a current context. The
// calling thread may have none: multiprocessing.Queue pickles in a thread of its own.
static int ccc_event_export(const ccc_handle *event, void *payload)
{
    CUipcEventHandle value;
    CCC_USE(event);
    CCC_SCOPE(scope, ccc_enter_context(&scope, event->parent));
    CCC_TRY(cuIpcGetEventHandle, &value, (CUevent)CCC_POINTER(event));
    memcpy(payload, &value, sizeof value);
    return ccc_left(&scope, 0);
}

// An event of another process, in a context of the device.
static ccc_handle *ccc_event_import(int device, const void *payload, unsigned int flags)
{
    CUipcEventHandle value;
    CUevent event = NULL;
    memcpy(&value, payload, sizeof value);
    CCC_SCOPE_OR(NULL, scope, ccc_enter(&scope, device));
    ccc_handle *handle = ccc_new(CCC_EVENT, 0, ccc_event_flags(flags), scope.context);
    CCC_MAKE(handle, (uintptr_t)event, cuIpcOpenEventHandle, &event, value);
    return ccc_left_with(&scope, handle);
}

// --- Points ------------------------------------------------------------------------------------------------------

// Points of streams that something has to wait for.
typedef struct ccc_points {
    CUevent *events;
    size_t count;
} ccc_points;

// A failure in cleanup is told, whether or not there is another way. Returns whether the call worked.
static int ccc_worked(CUresult result, const char *call, uint64_t object)
{
    if (result)
        ccc_cleanup_failed((int)result, call, object);
    return result == CUDA_SUCCESS;
}

// Forget the points that are reached, and return how many are not. The wait takes no time, but has an effect: it lets
// the driver (580 at least) do what it does at the end of a free, which a query does not.
static size_t ccc_points_pending(ccc_points *points)
{
    size_t pending = 0;
    for (size_t i = 0; i < points->count; i++) {
        CUevent event = points->events[i];
        if (cuEventQuery(event) == CUDA_ERROR_NOT_READY) {
            points->events[pending++] = event;
        } else {
            ccc_worked(cuEventSynchronize(event), "cuEventSynchronize", (uintptr_t)event);
            ccc_worked(cuEventDestroy(event), "cuEventDestroy", (uintptr_t)event);
        }
    }
    return points->count = pending;
}

// In the stream's context: add what the stream has to do now.
static void ccc_points_add(ccc_points *points, CUstream stream)
{
    size_t pending = ccc_points_pending(points);
    CUevent *grown = realloc(points->events, (pending + 1) * sizeof *grown);
    if (grown)
        points->events = grown;
    CUevent event = NULL;
    if (grown && ccc_worked(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate", 0)) {
        if (ccc_worked(cuEventRecord(event, stream), "cuEventRecord", (uintptr_t)event)) {
            points->events[points->count++] = event;
            return;
        }
        ccc_worked(cuEventDestroy(event), "cuEventDestroy", (uintptr_t)event);
    }
    ccc_worked(cuStreamSynchronize(stream), "cuStreamSynchronize", (uintptr_t)stream);  // slow, but keeps the order
}

// Let the stream wait for all of them, and forget them.
static void ccc_points_wait(ccc_points *points, CUstream stream)
{
    for (size_t i = 0; i < points->count; i++) {
        CUevent event = points->events[i];
        if (!ccc_worked(cuStreamWaitEvent(stream, event, 0), "cuStreamWaitEvent", (uintptr_t)event))
            ccc_worked(cuEventSynchronize(event), "cuEventSynchronize", (uintptr_t)event);
        ccc_worked(cuEventDestroy(event), "cuEventDestroy", (uintptr_t)event);
    }
    free(points->events);
    *points = (ccc_points){NULL, 0};
}

// --- Pools -------------------------------------------------------------------------------------------------------

// Make a file descriptor by which other processes import the pool.
static int ccc_pool_export(const ccc_handle *pool, int *owner)
{
    int descriptor = CCC_NO_DESCRIPTOR;
    CCC_USE(pool);
    CCC_RELAXED_MODE;
    CCC_TRY(cuMemPoolExportToShareableHandle, &descriptor, (CUmemoryPool)CCC_POINTER(pool),
            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    ccc_descriptor_own(owner, descriptor);
    return 0;
}

// The pools that are imported. The driver gives one CUmemoryPool for a pool, however often it is imported, and destroys
// it at the first request: so the handle that was made first owns it, and the handles of later imports use that one.
//
// Destroyed while a free is under way, a pool leaves a file descriptor open (driver 580). So a pool whose handle is
// gone waits here for the last free, until any of the functions below looks after it.
typedef struct ccc_mapped {
    struct ccc_mapped *next;
    uint64_t value;
    ccc_handle *handle;  // NULL once the pool is to be destroyed
    ccc_points frees;
} ccc_mapped;

static ccc_mapped *ccc_mapped_pools;

// With the lock held: the pool, or NULL.
static ccc_mapped *ccc_mapped_find(uint64_t value)
{
    ccc_mapped *mapped = ccc_mapped_pools;
    while (mapped && mapped->value != value)
        mapped = mapped->next;
    return mapped;
}

// With the lock held: destroy the pools that nothing uses any more.
static void ccc_mapped_sweep(void)
{
    for (ccc_mapped **link = &ccc_mapped_pools, *mapped; (mapped = *link);) {
        if (mapped->handle || ccc_points_pending(&mapped->frees)) {
            link = &mapped->next;
            continue;
        }
        *link = mapped->next;
        ccc_worked(cuMemPoolDestroy((CUmemoryPool)(uintptr_t)mapped->value), "cuMemPoolDestroy", mapped->value);
        free(mapped->frees.events);
        free(mapped);
    }
}

static void ccc_pool_unmap(const ccc_handle *handle)
{
    pthread_mutex_lock(&ccc_ipc_lock);
    ccc_mapped *mapped = ccc_mapped_find(handle->value);
    if (mapped && mapped->handle == handle)  // another thread may have imported the pool again meanwhile
        mapped->handle = NULL;
    ccc_mapped_sweep();
    pthread_mutex_unlock(&ccc_ipc_lock);
}

static CUresult ccc_pool_destroy_any(ccc_handle *handle, const char **call)
{
    if (!(handle->flags & CCC_IMPORTED))
        return ccc_pool_destroy(handle, call);
    ccc_pool_unmap(handle);
    return CUDA_SUCCESS;
}

static int ccc_pool_needs_context(const ccc_handle *handle) { return handle->flags & CCC_IMPORTED; }

// Memory that was freed in stream order is a peer's until the stream has got there, and access ends at once.
static const ccc_handle_type ccc_pool_type = {
    .size = sizeof(ccc_pool),
    .destroy = ccc_pool_destroy_any,
    .needs_context = ccc_pool_needs_context,
    .until_idle = ccc_pool_has_peers,
};

// With the lock held, and the pool imported: the handle for it. `spare` is taken if the pool is new here.
static ccc_handle *ccc_pool_map(uint64_t value, ccc_mapped **spare)
{
    ccc_mapped *mapped = ccc_mapped_find(value);
    ccc_handle *owner = mapped && mapped->handle && ccc_retain(mapped->handle) ? mapped->handle : NULL;
    ccc_handle *handle = ccc_new(CCC_POOL, value, CCC_IMPORTED | (owner ? CCC_BORROWED : 0), owner);
    ccc_release(owner);
    if (handle == NULL) {
        if (mapped == NULL)
            cuMemPoolDestroy((CUmemoryPool)(uintptr_t)value);
        return NULL;
    }
    if (mapped == NULL) {
        mapped = *spare;
        *spare = NULL;
        mapped->value = value;
        mapped->next = ccc_mapped_pools;
        ccc_mapped_pools = mapped;
    }
    if (owner == NULL)
        mapped->handle = handle;
    return handle;
}

// The pool of another process; the descriptor stays the caller's.
static ccc_handle *ccc_pool_import(int descriptor, int device)
{
    CUmemoryPool pool = NULL;
    ccc_handle *handle = NULL;
    if (ccc_init())
        return NULL;
    ccc_mapped *spare = calloc(1, sizeof *spare);
    if (spare == NULL) {
        ccc_fail(CCC_NO_MEMORY, "malloc");
        return NULL;
    }
    CCC_RELAXED_MODE;
    pthread_mutex_lock(&ccc_ipc_lock);
    ccc_mapped_sweep();
    CUresult result = cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)descriptor,
                                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (result == CUDA_SUCCESS)
        handle = ccc_pool_map((uintptr_t)pool, &spare);
    pthread_mutex_unlock(&ccc_ipc_lock);
    free(spare);
    if (result)
        ccc_fail((int)result, "cuMemPoolImportFromShareableHandle");
    if (handle)
        handle->device = device;
    return handle;
}

// --- Buffers -----------------------------------------------------------------------------------------------------

// Memory imported from one pool under one payload. The driver does not count imports: device memory imported twice is
// gone with the first free, and host memory it refuses to import twice (CUDA_ERROR_ALREADY_MAPPED). So all buffers of
// the same memory share one import, and the last of them frees it: in the order of its own stream, which first waits
// for the points at which the streams of the others released it.
typedef struct ccc_import {
    struct ccc_import *next;
    uint64_t pool;
    unsigned char payload[CU_IPC_HANDLE_SIZE];
    CUdeviceptr pointer;
    size_t size;  // what is mapped from the pointer on
    size_t users;
    ccc_points points;
} ccc_import;

static ccc_import *ccc_imports;

// With the lock held: import for the first time. A failure is remembered.
static ccc_import *ccc_import_new(const ccc_handle *pool, const void *payload)
{
    CUmemPoolPtrExportData data;
    ccc_import *import = calloc(1, sizeof *import);
    if (import == NULL) {
        ccc_fail(CCC_NO_MEMORY, "malloc");
        return NULL;
    }
    memcpy(&data, payload, sizeof data);
    memcpy(import->payload, payload, sizeof import->payload);
    import->pool = pool->value;
    const char *call = "cuMemPoolImportPointer";
    CUresult result = cuMemPoolImportPointer(&import->pointer, (CUmemoryPool)CCC_POINTER(pool), &data);
    if (result == CUDA_SUCCESS) {
        call = "cuPointerGetAttribute";
        result = cuPointerGetAttribute(&import->size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, import->pointer);
        if (result)
            cuMemFree(import->pointer);
    }
    if (result) {
        ccc_fail((int)result, call);
        free(import);
        return NULL;
    }
    import->next = ccc_imports;
    ccc_imports = import;
    return import;
}

static ccc_import *ccc_import_acquire(const ccc_handle *pool, const void *payload)
{
    pthread_mutex_lock(&ccc_ipc_lock);
    ccc_import *import = ccc_imports;
    while (import && (import->pool != pool->value || memcmp(import->payload, payload, sizeof import->payload) != 0))
        import = import->next;
    if (import == NULL)
        import = ccc_import_new(pool, payload);
    if (import)
        import->users++;
    pthread_mutex_unlock(&ccc_ipc_lock);
    return import;
}

// A buffer releases its memory, in the stream's context.
static CUresult ccc_import_release(ccc_import *import, CUstream stream, const char **call)
{
    CUresult result = CUDA_SUCCESS;
    *call = "cuMemFreeAsync";
    pthread_mutex_lock(&ccc_ipc_lock);
    if (--import->users > 0) {
        ccc_points_add(&import->points, stream);
    } else {
        ccc_points_wait(&import->points, stream);
        result = cuMemFreeAsync(import->pointer, stream);
        ccc_mapped *mapped = ccc_mapped_find(import->pool);
        if (mapped && result == CUDA_SUCCESS)
            ccc_points_add(&mapped->frees, stream);
        ccc_import **link = &ccc_imports;
        while (*link != import)
            link = &(*link)->next;
        *link = import->next;
        free(import);
        ccc_mapped_sweep();
    }
    pthread_mutex_unlock(&ccc_ipc_lock);
    return result;
}

static CUresult ccc_free_imported(ccc_handle *buffer, const ccc_handle *stream, const char **call)
{
    ccc_import *import = ccc_as_buffer(buffer)->import;
    if (import == NULL)
        return ccc_free_to_pool(buffer, stream, call);
    ccc_as_buffer(buffer)->import = NULL;  // should the free fail for want of a context, only the free is tried again
    return ccc_import_release(import, stream ? CCC_STRM(stream) : NULL, call);
}

static const ccc_memory_origin ccc_imported_memory = {.needs_context = 1, .free = ccc_free_imported};

// Name a buffer to other processes; payload has CU_IPC_HANDLE_SIZE bytes.
static int ccc_buffer_export(const ccc_handle *buffer, void *payload)
{
    CUmemPoolPtrExportData data;
    CCC_USE(buffer);
    CCC_RELAXED_MODE;
    CCC_TRY(cuMemPoolExportPointer, &data, buffer->value);
    memcpy(payload, &data, sizeof data);
    return 0;
}

// Make the context current that a buffer of this stream belongs to; in a new process that may be the first one.
static int ccc_enter_import(ccc_scope *scope, ccc_handle *stream, CUdevice device)
{
    if (stream->flags & CCC_TOKEN) {
        if (device < 0 && (device = ccc_current_device()) < -1)
            return ccc_last_status();
        return ccc_enter(scope, device < 0 ? 0 : device);
    }
    return ccc_enter_home(scope, stream);
}

// Memory of another process, from its pool; it is freed in the order of the stream. NULL on failure.
static ccc_handle *ccc_buffer_import(ccc_handle *pool, ccc_handle *stream, const void *payload, size_t size)
{
    const char *call;
    ccc_handle *handle = NULL;
    CCC_USE_OR(pool, ccc_closed());
    CCC_USE_OR(stream, ccc_closed());
    CCC_SCOPE_OR(NULL, scope, ccc_enter_import(&scope, stream, pool->device));
    CCC_RELAXED_MODE;
    ccc_import *import = ccc_import_acquire(pool, payload);
    if (import && size > import->size)
        ccc_fail(CCC_TOO_LARGE, "");
    else if (import && (handle = ccc_buffer_new(&ccc_imported_memory, import->pointer, size, CCC_IMPORTED,
                                                scope.context, pool, stream)) != NULL)
        ccc_as_buffer(handle)->import = import;
    if (import && handle == NULL)
        ccc_import_release(import, CCC_STRM(stream), &call);
    return ccc_left_with(&scope, handle);
}

#endif
