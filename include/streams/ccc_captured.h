// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The objects that captures use. Work that is given to a stream while a capture begun here goes on, and that belongs to
// the capture, adds the handles of its kernel, buffers, arrays, textures and events to a set: one use of each. When the
// capture ends its graph has the set (ccc_capture.h).
//
// Memory that a graph allocates while it is captured is not added: closing it adds the node that frees it.
#ifndef CCC_CAPTURED_H
#define CCC_CAPTURED_H

#include "driver/ccc_compat.h"
#include "handles/ccc_map.h"
#include "handles/ccc_end.h"

typedef struct ccc_captured {
    struct ccc_captured *next;
    uint64_t id;       // the driver's number of the capture
    ccc_handle *home;  // the root of the graph; not a use
    ccc_map handles;   // by their addresses
} ccc_captured;

CCC_LOCK(ccc_captured_lock);  // of the list and the sets in it
static ccc_captured *ccc_all_captured;
static atomic_uint ccc_capture_changes;  // counts what may have brought streams into a capture, or out of one

static void ccc_capture_changed(void) { atomic_fetch_add(&ccc_capture_changes, 1); }

// Ask the driver for the capture of a stream; pointers may be NULL. The nodes are those that the work the stream is
// given next comes after: the driver writes them down in an array of its own, for which the caller holds
// CCC_LOCK_CAPTURES.
static int ccc_capture_info(const ccc_handle *stream, uint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
                            size_t *count)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUgraphEdgeData *data;  // asked for, because drivers refuse to leave them out where they say something
    const CUgraphEdgeData **edges = nodes ? &data : NULL;
    cuuint64_t number = 0;
#if CUDA_VERSION < 13000
    CCC_TRY(cuStreamGetCaptureInfo_v3, CCC_STRM(stream), &status, &number, graph, nodes, edges, count);
#else
    CCC_TRY(cuStreamGetCaptureInfo, CCC_STRM(stream), &status, &number, graph, nodes, edges, count);
#endif
    if (id)
        *id = number;
    if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return 0;
    return ccc_fail(status == CU_STREAM_CAPTURE_STATUS_NONE ? CUDA_ERROR_ILLEGAL_STATE
                                                            : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                    "cuStreamGetCaptureInfo");
}

// The driver's number of the capture that a stream is part of, or 0: it is not captured, or no graph will come of it.
// It is remembered as long as nothing changes that.
static int ccc_capture_id(const ccc_handle *stream, uint64_t *id)
{
    static _Thread_local struct {
        uint64_t stream, id;
        unsigned int changes;
    } last;
    unsigned int changes = atomic_load(&ccc_capture_changes);
    *id = last.id;
    if (last.id && last.stream == stream->value && last.changes == changes)
        return 0;
    ccc_failure failure = ccc_last;
    last.stream = stream->value;
    last.changes = changes;
    int status = ccc_capture_info(stream, &last.id, NULL, NULL, NULL);
    if (status)
        last.id = 0;
    *id = last.id;
    if (status && status != CUDA_ERROR_ILLEGAL_STATE && status != CUDA_ERROR_STREAM_CAPTURE_INVALIDATED &&
        status != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        return status;
    ccc_last = failure;
    return 0;
}

// Begin to add to a set, which has the number of its capture.
static void ccc_captured_begin(ccc_captured *captured, ccc_handle *home)
{
    captured->home = home;
    pthread_mutex_lock(&ccc_captured_lock);
    captured->next = ccc_all_captured;
    ccc_all_captured = captured;
    pthread_mutex_unlock(&ccc_captured_lock);
    ccc_capture_changed();
}

// Take a set, which is not changed any more, out of the list.
static void ccc_captured_end(ccc_captured *captured)
{
    int locks = ccc_graph_locks();
    if (locks)
        pthread_mutex_lock(&ccc_captured_lock);
    ccc_captured **link = &ccc_all_captured;
    while (*link && *link != captured)
        link = &(*link)->next;
    if (*link)
        *link = captured->next;
    if (locks)
        pthread_mutex_unlock(&ccc_captured_lock);
    ccc_capture_changed();
}

// The handle that has to be used for another to stay valid: a kernel's library, and the whole of a slice. NULL: it is
// not known.
static ccc_handle *ccc_captured_owner(ccc_handle *handle)
{
    while (handle && handle->flags & CCC_PART)
        handle = handle->parent;
    return handle;
}

// Whether a graph that is being captured allocates a buffer, or may do so. Its companion is that graph.
static int ccc_is_captured_memory(const ccc_handle *handle)
{
    if (!(handle->flags & CCC_OF_GRAPH))
        return 0;
    const ccc_handle *graph = ccc_companion(handle);
    const ccc_captured *captured = ccc_all_captured;
    while (captured && captured->home != graph)
        captured = captured->next;
    return captured || graph == NULL;
}

// With the lock held: add a use of a handle, of which the caller has one, to a set.
static int ccc_captured_add(ccc_captured *captured, ccc_handle *given)
{
    ccc_handle *handle = ccc_captured_owner(given);
    if (handle == NULL || handle->flags & CCC_IMMORTAL || ccc_map_find(&captured->handles, (uintptr_t)handle) ||
        ccc_is_captured_memory(handle))
        return 0;
    int status = ccc_map_reserve(&captured->handles, 1);
    if (status == 0 && ccc_retain(handle))
        ccc_map_set(&captured->handles, (uintptr_t)handle, handle);
    return status;
}

// The same as below, while something is captured.
static CCC_COLD int ccc_capture_objects(const ccc_handle *stream, ccc_handle *const *handles, size_t count)
{
    uint64_t id;
    int status = ccc_capture_id(stream, &id);
    if (status || id == 0)
        return status;
    pthread_mutex_lock(&ccc_captured_lock);
    ccc_captured *captured = ccc_all_captured;
    while (captured && captured->id != id)
        captured = captured->next;
    for (size_t i = 0; captured && status == 0 && i < count; i++)
        status = ccc_captured_add(captured, handles[i]);
    pthread_mutex_unlock(&ccc_captured_lock);
    return status;
}

// A stream is about to be given work that uses handles, of which the caller has uses; some may be NULL. If it is
// captured, its graph will use them. 0, or the status of a failure.
static inline int ccc_uses_objects(const ccc_handle *stream, ccc_handle *const *handles, size_t count)
{
    return ccc_capturing() ? ccc_capture_objects(stream, handles, count) : 0;
}

// The same for handles that are listed. On failure the function returns the status.
#define CCC_USES_OBJECTS(stream, ...) \
    do { \
        if (ccc_capturing()) { \
            const ccc_handle *const objects_[] = {__VA_ARGS__}; \
            int captured_ = \
                ccc_capture_objects(stream, (ccc_handle *const *)objects_, sizeof objects_ / sizeof *objects_); \
            if (captured_) \
                return captured_; \
        } \
    } while (0)

#endif
