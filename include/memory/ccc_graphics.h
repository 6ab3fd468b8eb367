// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Buffers and images of OpenGL.
//
// A resource is mapped as long as there is a buffer for its memory, which has the resource in the place of a pool. The
// last use of the buffer unmaps, in the order of the buffer's stream. Images have no address: their arrays are
// borrowed, and their parent is a buffer of no bytes, which is only the mapping.
//
// cudaGL.h includes the headers of OpenGL, which are rarely there. So its two functions are declared here, and looked
// up each time: registering is rare.
#ifndef CCC_GRAPHICS_H
#define CCC_GRAPHICS_H

#include "memory/ccc_memory.h"

#define CCC_ALREADY_MAPPED (-50)
#define CCC_STILL_MAPPED (-51)  // something besides the buffer or array uses the memory
#define CCC_MOST_LEVELS 32      // of a mipmapped array: its extents have 32 bits

typedef struct ccc_graphics {
    ccc_handle handle;
    atomic_int mapped;   // there is a buffer of its memory
    atomic_int watched;  // a failure to unmap is kept rather than reported
    atomic_int failure;
} ccc_graphics;

static inline ccc_graphics *ccc_as_graphics(const ccc_handle *handle) { return (ccc_graphics *)handle; }

static CUresult ccc_graphics_destroy(ccc_handle *handle, const char **call)
{
    *call = "cuGraphicsUnregisterResource";
    return cuGraphicsUnregisterResource((CUgraphicsResource)CCC_POINTER(handle));
}

static const ccc_handle_type ccc_graphics_type = {
    .size = sizeof(ccc_graphics),
    .destroy = ccc_graphics_destroy,
    .needs_context = ccc_always_needs_context,
};

#define CCC_GL_VERSION 3000          // of the signatures, in cudaGLTypedefs.h
typedef unsigned int ccc_gl_number;  // GLuint and GLenum
typedef CUresult(CUDAAPI *ccc_register_buffer)(CUgraphicsResource *resource, ccc_gl_number buffer, unsigned int flags);
typedef CUresult(CUDAAPI *ccc_register_image)(CUgraphicsResource *resource, ccc_gl_number image, ccc_gl_number target,
                                              unsigned int flags);

// A function of the driver for OpenGL; NULL if there is none.
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

// Register a buffer or an image of the current OpenGL context in the current CUDA context. NULL on failure.
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

static CUresult ccc_free_mapped(ccc_handle *buffer, const ccc_handle *stream, const char **call)
{
    ccc_handle *graphics = ccc_as_buffer(buffer)->pool;
    CUgraphicsResource resource = (CUgraphicsResource)CCC_POINTER(graphics);
    *call = "cuGraphicsUnmapResources";
    CUresult result = cuGraphicsUnmapResources(1, &resource, stream ? CCC_STRM(stream) : NULL);
    atomic_store(&ccc_as_graphics(graphics)->mapped, 0);
    if (result == CUDA_SUCCESS || !atomic_load(&ccc_as_graphics(graphics)->watched))
        return result;
    atomic_store(&ccc_as_graphics(graphics)->failure, (int)result);
    return CUDA_SUCCESS;
}

static const ccc_memory_origin ccc_mapped_memory = {.needs_context = 1, .free = ccc_free_mapped};

// In the context of the resource, which is marked as mapped: map it. The handle is the mapping, and has no memory yet.
static ccc_handle *ccc_graphics_map_in(ccc_handle *graphics, ccc_handle *stream)
{
    CUgraphicsResource resource = (CUgraphicsResource)CCC_POINTER(graphics);
    CUresult result = cuGraphicsMapResources(1, &resource, CCC_STRM(stream));
    if (result) {
        ccc_fail((int)result, "cuGraphicsMapResources");
        return NULL;
    }
    ccc_handle *mapping = ccc_buffer_new(NULL, 0, 0, CCC_MAPPED, graphics->parent, graphics, stream);
    if (mapping)
        ccc_as_buffer(mapping)->origin = &ccc_mapped_memory;  // although it has no address yet
    else if ((result = cuGraphicsUnmapResources(1, &resource, CCC_STRM(stream))))
        ccc_cleanup_failed((int)result, "cuGraphicsUnmapResources");
    return mapping;
}

// Map a resource in the order of a stream, for a caller with uses of both. NULL: CCC_ALREADY_MAPPED, or a failure.
static ccc_handle *ccc_graphics_mapping(ccc_handle *graphics, ccc_handle *stream)
{
    if (atomic_exchange(&ccc_as_graphics(graphics)->mapped, 1)) {
        ccc_fail(CCC_ALREADY_MAPPED, "");
        return NULL;
    }
    ccc_handle *mapping = ccc_graphics_map_in(graphics, stream);
    if (mapping == NULL)
        atomic_store(&ccc_as_graphics(graphics)->mapped, 0);
    return mapping;
}

// Map a buffer object. NULL on failure: CCC_ALREADY_MAPPED if something uses its memory.
static ccc_handle *ccc_graphics_map(ccc_handle *graphics, ccc_handle *stream, size_t *size)
{
    CUdeviceptr pointer = 0;
    CCC_USE_OR(graphics, ccc_closed());
    CCC_USE_OR(stream, ccc_closed());
    int pushed = ccc_push(graphics->parent);
    ccc_handle *buffer = ccc_graphics_mapping(graphics, stream);
    CUresult result =
        buffer == NULL ? CUDA_SUCCESS
                       : cuGraphicsResourceGetMappedPointer(&pointer, size, (CUgraphicsResource)CCC_POINTER(graphics));
    if (result) {
        ccc_fail((int)result, "cuGraphicsResourceGetMappedPointer");
        ccc_release_object(buffer);
        buffer = NULL;
    } else if (buffer) {
        buffer->value = pointer;
        ccc_as_buffer(buffer)->size = *size;
    }
    ccc_pop(pushed);
    return buffer;
}

// In the context of a resource that is mapped: one of its arrays, with its description.
static CUresult ccc_graphics_array(CUgraphicsResource resource, unsigned int index, unsigned int level, uint64_t *value,
                                   CUDA_ARRAY3D_DESCRIPTOR *shape, const char **call)
{
    CUarray array = NULL;
    *call = "cuGraphicsSubResourceGetMappedArray";
    CUresult result = cuGraphicsSubResourceGetMappedArray(&array, resource, index, level);
    *value = (uintptr_t)array;
    if (result)
        return result;
    *call = "cuArray3DGetDescriptor";
    return cuArray3DGetDescriptor(shape, array);
}

// The same: its mipmapped array, with the description of the first level, and how many levels there are.
static CUresult ccc_graphics_mipmap(CUgraphicsResource resource, uint64_t *value, CUDA_ARRAY3D_DESCRIPTOR *shape,
                                    unsigned int *levels, const char **call)
{
    CUmipmappedArray mipmap = NULL;
    CUarray level = NULL;
    *call = "cuGraphicsResourceGetMappedMipmappedArray";
    CUresult result = cuGraphicsResourceGetMappedMipmappedArray(&mipmap, resource);
    *value = (uintptr_t)mipmap;
    if (result)
        return result;
    *call = "cuMipmappedArrayGetLevel";
    if ((result = cuMipmappedArrayGetLevel(&level, mipmap, 0)))
        return result;
    *levels = 1;  // the driver tells only which there are
    while (*levels < CCC_MOST_LEVELS) {
        CUarray next = NULL;
        if (cuMipmappedArrayGetLevel(&next, mipmap, *levels))
            break;
        ++*levels;
    }
    *call = "cuArray3DGetDescriptor";
    return cuArray3DGetDescriptor(shape, level);
}

// Map an image, as one of its arrays, or where `levels` is given as a mipmapped array. The handle is borrowed, and its
// parent is the mapping. NULL on failure, as ccc_graphics_map.
static ccc_handle *ccc_graphics_map_image(ccc_handle *graphics, ccc_handle *stream, unsigned int index,
                                          unsigned int level, CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int *levels)
{
    CCC_USE_OR(graphics, ccc_closed());
    CCC_USE_OR(stream, ccc_closed());
    CUgraphicsResource resource = (CUgraphicsResource)CCC_POINTER(graphics);
    ccc_handle *image = NULL;
    const char *call = "";
    uint64_t value = 0;
    int pushed = ccc_push(graphics->parent);
    ccc_handle *mapping = ccc_graphics_mapping(graphics, stream);
    if (mapping) {
        CUresult result = levels ? ccc_graphics_mipmap(resource, &value, shape, levels, &call)
                                 : ccc_graphics_array(resource, index, level, &value, shape, &call);
        if (result)
            ccc_fail((int)result, call);
        else
            image = ccc_new(levels ? CCC_MIPMAP : CCC_ARRAY, value, CCC_BORROWED, mapping);
        ccc_release_object(mapping);
    }
    ccc_pop(pushed);
    return image;
}

// Change the stream in whose order an image that is mapped goes back.
static int ccc_graphics_set_stream(ccc_handle *image, ccc_handle *stream)
{
    CCC_USE(image);
    return ccc_allocation_set_stream(image->parent, stream);
}

// From now on a failure to unmap is kept for ccc_graphics_watched.
static void ccc_graphics_watch(ccc_handle *graphics) { atomic_store(&ccc_as_graphics(graphics)->watched, 1); }

// How unmapping has ended: a status, CCC_STILL_MAPPED if it has not.
static int ccc_graphics_watched(ccc_handle *graphics)
{
    atomic_store(&ccc_as_graphics(graphics)->watched, 0);
    int failure = atomic_exchange(&ccc_as_graphics(graphics)->failure, 0);
    if (failure)
        return ccc_fail(failure, "cuGraphicsUnmapResources");
    return atomic_load(&ccc_as_graphics(graphics)->mapped) ? CCC_STILL_MAPPED : 0;
}

static int ccc_graphics_is_mapped(const ccc_handle *graphics)
{
    return atomic_load(&ccc_as_graphics(graphics)->mapped);
}

#endif
