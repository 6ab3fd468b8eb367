/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers and images of OpenGL.
 *
 * A resource is mapped as long as there is a buffer for its memory, which has the resource in the place of a pool. The
 * last use of the buffer unmaps, in the order of the buffer's stream.
 *
 * cudaGL.h includes the headers of OpenGL, which are rarely there. So its two functions are declared here, and looked up
 * each time: registering is rare.
 */
#ifndef CCC_GRAPHICS_H
#define CCC_GRAPHICS_H

#include "memory/ccc_memory.h"

#define CCC_ALREADY_MAPPED (-50)
#define CCC_STILL_MAPPED (-51) /* something besides the buffer uses the memory */

#define CCC_GL_VERSION 3000 /* of the signatures, in cudaGLTypedefs.h */
typedef unsigned int ccc_gl_number; /* GLuint and GLenum */
typedef CUresult(CUDAAPI *ccc_register_buffer)(CUgraphicsResource *resource, ccc_gl_number buffer, unsigned int flags);
typedef CUresult(CUDAAPI *ccc_register_image)(CUgraphicsResource *resource, ccc_gl_number image, ccc_gl_number target,
                                              unsigned int flags);

/* A function of the driver for OpenGL; NULL if there is none. */
static void *ccc_gl_function(const char *name)
{
    CUdriverProcAddressQueryResult found;
    void *address = NULL;
    if (ccc_driver.reason != CCC_AVAILABLE)
        return ccc_miss(ccc_driver.reason, name, CCC_GL_VERSION);
    if (ccc_driver.get_proc(name, &address, CCC_GL_VERSION, CU_GET_PROC_ADDRESS_DEFAULT, &found) || address == NULL)
        return ccc_miss(CCC_FUNCTION_ABSENT, name, CCC_GL_VERSION);
    return address;
}

static CUresult ccc_gl_register(CUgraphicsResource *resource, unsigned int name, unsigned int target, int is_image,
                                unsigned int flags, const char *call)
{
    ccc_register_buffer register_buffer;
    ccc_register_image register_image;
    void *address = ccc_gl_function(call);
    if (address == NULL)
        return ccc_unavailable_status();
    *(void **)&register_buffer = *(void **)&register_image = address;
    return is_image ? register_image(resource, name, target, flags) : register_buffer(resource, name, flags);
}

/* Register a buffer or an image of the current OpenGL context in the current CUDA context. NULL on failure. */
static ccc_handle *ccc_graphics_register(unsigned int name, unsigned int target, int is_image, unsigned int flags)
{
    const char *call = is_image ? "cuGraphicsGLRegisterImage" : "cuGraphicsGLRegisterBuffer";
    CUgraphicsResource resource = NULL;
    int status;
    ccc_handle *context = ccc_current_context(&status);
    if (context == NULL) {
        if (status == 0)
            ccc_fail(CCC_NO_CONTEXT, call);
        return NULL;
    }
    ccc_handle *handle = NULL;
    CUresult result = ccc_gl_register(&resource, name, target, is_image, flags, call);
    if (result)
        ccc_fail((int)result, call);
    else if ((handle = ccc_new(CCC_GRAPHICS, (uintptr_t)resource, 0, context)) == NULL)
        cuGraphicsUnregisterResource(resource);
    ccc_release(context);
    return handle;
}

/* In the context of the resource, which is marked as mapped: map it, and make a buffer of its memory. */
static ccc_handle *ccc_graphics_map_in(ccc_handle *graphics, ccc_handle *stream, size_t *size)
{
    CUgraphicsResource resource = (CUgraphicsResource)CCC_POINTER(graphics);
    CUdeviceptr pointer = 0;
    const char *call = "cuGraphicsMapResources";
    CUresult result = cuGraphicsMapResources(1, &resource, CCC_STRM(stream));
    if (result) {
        ccc_fail((int)result, call);
        return NULL;
    }
    call = "cuGraphicsResourceGetMappedPointer";
    ccc_handle *buffer = NULL;
    result = cuGraphicsResourceGetMappedPointer(&pointer, size, resource);
    if (result)
        ccc_fail((int)result, call);
    else
        buffer = ccc_buffer_new(pointer, *size, CCC_MAPPED, graphics->parent, graphics, stream);
    if (buffer == NULL && (result = cuGraphicsUnmapResources(1, &resource, CCC_STRM(stream))))
        ccc_cleanup_failed((int)result, "cuGraphicsUnmapResources");
    if (buffer)
        buffer->device = graphics->device;
    return buffer;
}

/* Map a resource in the order of a stream. NULL on failure: CCC_ALREADY_MAPPED if there is a buffer of it. */
static ccc_handle *ccc_graphics_map(ccc_handle *graphics, ccc_handle *stream, size_t *size)
{
    CCC_USE_OR(graphics, ccc_closed());
    CCC_USE_OR(stream, ccc_closed());
    if (atomic_exchange(&graphics->graphics.mapped, 1)) {
        ccc_fail(CCC_ALREADY_MAPPED, "");
        return NULL;
    }
    int pushed = ccc_push(graphics->parent);
    ccc_handle *buffer = ccc_graphics_map_in(graphics, stream, size);
    ccc_pop(pushed);
    if (buffer == NULL)
        atomic_store(&graphics->graphics.mapped, 0);
    return buffer;
}

/* The last use of a buffer has gone. */
static CUresult ccc_graphics_unmap(ccc_handle *buffer, const ccc_handle *stream, const char **call)
{
    ccc_handle *graphics = buffer->buffer.pool;
    CUgraphicsResource resource = (CUgraphicsResource)CCC_POINTER(graphics);
    *call = "cuGraphicsUnmapResources";
    CUresult result = cuGraphicsUnmapResources(1, &resource, stream ? CCC_STRM(stream) : NULL);
    atomic_store(&graphics->graphics.mapped, 0);
    if (result == CUDA_SUCCESS || !atomic_load(&graphics->graphics.watched))
        return result;
    atomic_store(&graphics->graphics.failure, (int)result);
    return CUDA_SUCCESS;
}

/* From now on a failure to unmap is kept for ccc_graphics_watched. */
static void ccc_graphics_watch(ccc_handle *graphics)
{
    atomic_store(&graphics->graphics.watched, 1);
}

/* How unmapping has ended: a status, CCC_STILL_MAPPED if it has not. */
static int ccc_graphics_watched(ccc_handle *graphics)
{
    atomic_store(&graphics->graphics.watched, 0);
    int failure = atomic_exchange(&graphics->graphics.failure, 0);
    if (failure)
        return ccc_fail(failure, "cuGraphicsUnmapResources");
    return atomic_load(&graphics->graphics.mapped) ? CCC_STILL_MAPPED : 0;
}

static int ccc_graphics_is_mapped(const ccc_handle *graphics)
{
    return atomic_load(&graphics->graphics.mapped);
}

#endif
