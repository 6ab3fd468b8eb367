// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Memory that is allocated while a stream is captured, by a node of the graph. A buffer of it keeps the graph, so that
// the driver gives the addresses to nobody else. Where it goes while the same capture is under way, a node frees the
// memory; later it is freed if it happens to be allocated, by the last launch.
#ifndef CCC_GRAPH_MEMORY_H
#define CCC_GRAPH_MEMORY_H

#include "graph/ccc_capture.h"

#define CCC_NOT_CAPTURING (-24)  // the stream is not being captured

// A use of the handle for a graph that is being captured from here; NULL for one that another library captures.
static ccc_handle *ccc_captured_graph(CUgraph graph)
{
    ccc_handle *found = NULL;
    ccc_capture_enter();
    for (ccc_handle *at = ccc_captures_begun; at && found == NULL; at = ccc_as_capture(at)->next) {
        ccc_handle *home = ccc_as_capture(at)->graph;
        if (CCC_GRAPH_OF(home) == graph && ccc_graph_data(home) && ccc_graph_data(home)->captured == CCC_CAPTURE_ACTIVE)
            found = home;
    }
    if (found && !ccc_retain(found))
        found = NULL;
    ccc_capture_leave();
    return found;
}

// Free such memory: in the graph, if that is being captured; otherwise what the last launch has allocated. Only the
// driver knows whether there is something to free: that there is nothing is no failure.
static CUresult ccc_graph_memory_free(ccc_handle *buffer, const ccc_handle *stream, const char **call)
{
    *call = "cuMemFreeAsync";
    const ccc_handle *home = ccc_as_buffer(buffer)->pool;
    if (home && ccc_graph_data(home)->captured == CCC_CAPTURE_LOST)
        return CUDA_SUCCESS;  // another allocation may have the addresses by now
    CCC_SUBMIT;
    CUresult result = cuMemFreeAsync(buffer->value, CCC_STRM(stream));
    if (result == CUDA_ERROR_INVALID_VALUE && !(home && ccc_graph_data(home)->captured))
        return CUDA_SUCCESS;
    return result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ? CUDA_SUCCESS : result;  // no graph will come of it
}

// What the same graph allocates is meant to be freed there.
static int ccc_graph_memory_must_wait(const ccc_handle *buffer, const ccc_handle *stream)
{
    const ccc_handle *home = ccc_as_buffer(buffer)->pool;
    CUgraph graph = NULL;
    if (stream == NULL)
        return 0;
    ccc_failure failure = ccc_last;  // if the operation that releases the buffer has failed
    int result = ccc_capture_info(stream, NULL, &graph, NULL, NULL);
    ccc_last = failure;
    if (result)  // perhaps a capture that was invalidated, of this graph or another
        return result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED && home && !ccc_graph_data(home)->captured;
    return home && graph != CCC_GRAPH_OF(home);
}

static const ccc_memory_origin ccc_graph_memory = {
    .free = ccc_graph_memory_free,
    .must_wait = ccc_graph_memory_must_wait,
};

// Allocate memory of a device in a stream that is being captured. NULL on failure.
static ccc_handle *ccc_graph_memory_allocate(int device, ccc_handle *stream, size_t size)
{
    CUdeviceptr pointer = 0;
    CUmemoryPool pool = NULL;
    CUgraph graph = NULL;
    CCC_USE_OR(stream, ccc_closed());
    CCC_SUBMIT;
    int status = ccc_capture_info(stream, NULL, &graph, NULL, NULL);
    if (status) {
        ccc_fail(status == CUDA_ERROR_ILLEGAL_STATE ? CCC_NOT_CAPTURING : status, ccc_last.call);
        return NULL;
    }
    const char *call = "cuDeviceGetDefaultMemPool";  // of which the node gets the properties, and nothing else
    CUresult result = size ? cuDeviceGetDefaultMemPool(&pool, device) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS && size) {
        call = "cuMemAllocFromPoolAsync";
        result = cuMemAllocFromPoolAsync(&pointer, size, pool, CCC_STRM(stream));
    }
    if (result) {
        ccc_fail((int)result, call);
        return NULL;
    }
    ccc_handle *home = ccc_captured_graph(graph);
    ccc_handle *handle = ccc_buffer_new(&ccc_graph_memory, pointer, size, CCC_OF_GRAPH, stream->parent, home, stream);
    if (handle)
        handle->device = device;
    else if (size)
        cuMemFreeAsync(pointer, CCC_STRM(stream));
    ccc_release(home);
    return handle;
}

#endif
