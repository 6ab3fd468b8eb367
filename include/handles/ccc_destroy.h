// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// How each kind of handle ends: whatever context is current, or none. Failures are queued as warnings.
#ifndef CCC_DESTROY_H
#define CCC_DESTROY_H

#include "memory/ccc_ipc.h"
#include "handles/ccc_kernels.h"
#include "memory/ccc_graphics.h"
#include "memory/ccc_virtual.h"

// Of headers that come after this one.
static CUresult ccc_destroy_graph(ccc_handle *handle, const char **call);                   // graph/ccc_graph_exec.h
static CUresult ccc_destroy_capture(ccc_handle *capture, const char **call);                // graph/ccc_capture.h
static CUresult ccc_graph_memory_free(const ccc_handle *buffer, const ccc_handle *stream);  // graph/ccc_graph_memory.h

// Drivers unmap memory under work that still uses it, so that is waited for: in the buffer's stream, or else all work.
static CUresult ccc_destroy_virtual(ccc_handle *handle, const ccc_handle *stream, const char **call)
{
    const char *later = "";
    *call = stream ? "cuStreamSynchronize" : "cuCtxSynchronize";
    CUresult waited = stream ? cuStreamSynchronize(CCC_STRM(stream)) : cuCtxSynchronize();
    CUresult ended = ccc_virtual_end(handle->buffer.mappings, &later);
    handle->buffer.mappings = NULL;
    if (waited == CUDA_SUCCESS)
        *call = later;
    return waited ? waited : ended;
}

static CUresult ccc_destroy_in_context(ccc_handle *handle, const char **call)
{
    const ccc_handle *stream = ccc_stream_of(handle);
    ccc_import *import;
    CUevent spare;
    CUresult result;
    switch (handle->kind) {
    case CCC_CONTEXT:
        *call = "cuGreenCtxDestroy";
        ccc_green_unlist(handle);
        return cuGreenCtxDestroy(handle->green.context);
    case CCC_STREAM:
        if ((spare = atomic_exchange(&handle->queue.spare, NULL)) && (result = cuEventDestroy(spare)))
            ccc_cleanup_failed((int)result, "cuEventDestroy");
        ccc_work_remove(handle);
        *call = "cuStreamDestroy";
        return cuStreamDestroy(CCC_STRM(handle));
    case CCC_EVENT: *call = "cuEventDestroy"; return cuEventDestroy((CUevent)CCC_POINTER(handle));
    case CCC_POOL:
        *call = "cuMemPoolDestroy";
        if (handle->flags & CCC_IMPORTED)
            return ccc_pool_unmap(handle);
        return cuMemPoolDestroy((CUmemoryPool)CCC_POINTER(handle));
    case CCC_LIBRARY:
        *call = "cuLibraryUnload";
        ccc_kernels_forget(handle);
        if (atomic_load_explicit(&handle->lent, memory_order_relaxed))
            return CUDA_SUCCESS;
        return cuLibraryUnload((CUlibrary)CCC_POINTER(handle));
    case CCC_GRAPH:
    case CCC_EXECUTABLE: return ccc_destroy_graph(handle, call);
    case CCC_CAPTURE: return ccc_destroy_capture(handle, call);
    case CCC_ARRAY: *call = "cuArrayDestroy"; return cuArrayDestroy((CUarray)CCC_POINTER(handle));
    case CCC_MIPMAP:
        *call = "cuMipmappedArrayDestroy";
        return cuMipmappedArrayDestroy((CUmipmappedArray)CCC_POINTER(handle));
    case CCC_TEXTURE: *call = "cuTexObjectDestroy"; return cuTexObjectDestroy(handle->value);
    case CCC_SURFACE: *call = "cuSurfObjectDestroy"; return cuSurfObjectDestroy(handle->value);
    case CCC_GRAPHICS:
        *call = "cuGraphicsUnregisterResource";
        return cuGraphicsUnregisterResource((CUgraphicsResource)CCC_POINTER(handle));
    case CCC_BUFFER:
        if (handle->flags & CCC_MAPPED)
            return ccc_graphics_unmap(handle, stream, call);
        if (handle->value == 0)
            return CUDA_SUCCESS;
        if (handle->flags & CCC_VIRTUAL)
            return ccc_destroy_virtual(handle, stream, call);
        if ((import = handle->buffer.import)) {
            handle->buffer.import = NULL;  // should the free fail for want of a context, only the free is tried again
            return ccc_import_release(import, stream ? CCC_STRM(stream) : NULL, call);
        }
        if (handle->flags & CCC_OF_GRAPH) {
            *call = "cuMemFreeAsync";
            return ccc_graph_memory_free(handle, stream);
        }
        if (!(handle->flags & (CCC_PINNED | CCC_SYNCHRONOUS))) {
            *call = "cuMemFreeAsync";
            return cuMemFreeAsync(handle->value, stream ? CCC_STRM(stream) : NULL);
        }
        if (stream) {  // such memory goes back at once: first let the work finish that may use it
            *call = "cuStreamSynchronize";
            if ((result = cuStreamSynchronize(CCC_STRM(stream))))
                ccc_cleanup_failed((int)result, *call);
        }
        *call = handle->flags & CCC_PINNED ? "cuMemFreeHost" : "cuMemFree";
        return handle->flags & CCC_PINNED ? cuMemFreeHost(CCC_POINTER(handle)) : cuMemFree(handle->value);
    default:
        *call = handle->foreign.call;
        return handle->foreign.destroy ? handle->foreign.destroy(handle->value) : CUDA_SUCCESS;
    }
}

// Whether a handle is of a kind that only its own context destroys.
static int ccc_is_of_context(const ccc_handle *handle)
{
    return handle->kind == CCC_ARRAY || handle->kind == CCC_MIPMAP || handle->kind == CCC_TEXTURE ||
           handle->kind == CCC_SURFACE || handle->kind == CCC_GRAPHICS;
}

static void ccc_destroy(ccc_handle *handle)
{
    ccc_mode mode = ccc_relax();
    const ccc_handle *stream = ccc_stream_of(handle);
    // A default stream is one of the current context's; synchronous calls act in the current context too.
    int needs_context = handle->kind == CCC_LINKER ||  // cuLinkDestroy crashes without one, in driver 580
                        ccc_is_of_context(handle) ||
                        (handle->flags & (CCC_PINNED | CCC_SYNCHRONOUS | CCC_VIRTUAL | CCC_IMPORTED | CCC_MAPPED)) ||
                        (handle->kind == CCC_BUFFER && stream == NULL) || (stream && (stream->flags & CCC_TOKEN));
    const char *call = "";
    ccc_handle *home = handle->parent;
    if (home == NULL && needs_context && handle->device >= 0)  // allocated in the stream of another library
        home = ccc_primary_context(handle->device);
    int pushed = needs_context ? ccc_push(home) : 0;
    CUresult result = ccc_destroy_in_context(handle, &call);
    if (result == CUDA_ERROR_INVALID_CONTEXT && !pushed && (pushed = ccc_push(home)))
        result = ccc_destroy_in_context(handle, &call);
    ccc_pop(pushed);
    ccc_tense(&mode);
    if (result && ccc_driver.reason != CCC_FORKED)  // what a child inherits is its parent's to destroy
        ccc_cleanup_failed((int)result, call);
}

#endif
