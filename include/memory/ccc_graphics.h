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
    ccc_handle *context = ccc_needed_context(call);
    ccc_handle *handle = context ? ccc_new(CCC_GRAPHICS, 0, 0, context) : NULL;
    ccc_release(context);
    if (handle == NULL)
        return NULL;
    CUresult result = ccc_gl_register(&resource, name, target, is_image, flags, call);
    return ccc_made(handle, (uintptr_t)resource, result, call);
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

// In the context of a resource: map it in the order of a stream, for a caller with uses of both. The handle is the
// mapping, and has no memory yet. NULL: CCC_ALREADY_MAPPED, or a failure.
static ccc_handle *ccc_graphics_mapping(ccc_handle *graphics, ccc_handle *stream)
{
    CUgraphicsResource resource = (CUgraphicsResource)CCC_POINTER(graphics);
    if (atomic_exchange(&ccc_as_graphics(graphics)->mapped, 1)) {
        ccc_fail(CCC_ALREADY_MAPPED, "");
        return NULL;
    }
    ccc_handle *mapping = ccc_buffer_new(NULL, 0, 0, CCC_MAPPED, graphics->parent, graphics, stream);
    CCC_MAKE(mapping, 0, cuGraphicsMapResources, 1, &resource, CCC_STRM(stream));
    if (mapping)
        ccc_as_buffer(mapping)->origin = &ccc_mapped_memory;  // although it has no address yet
    else
        atomic_store(&ccc_as_graphics(graphics)->mapped, 0);
    return mapping;
}

// Map a buffer object. NULL on failure: CCC_ALREADY_MAPPED if something uses its memory.
static ccc_handle *ccc_graphics_map(ccc_handle *graphics, ccc_handle *stream, size_t *size)
{
    CUdeviceptr pointer = 0;
    CCC_USE_OR(graphics, ccc_closed());
    CCC_USE_OR(stream, ccc_closed());
    CCC_SCOPE_OR(NULL, scope, ccc_enter_context(&scope, graphics->parent));
    ccc_handle *buffer = ccc_graphics_mapping(graphics, stream);
    if (buffer == NULL)
        return NULL;
    CUresult result = cuGraphicsResourceGetMappedPointer(&pointer, size, (CUgraphicsResource)CCC_POINTER(graphics));
    if (result) {
        ccc_fail((int)result, "cuGraphicsResourceGetMappedPointer");
        ccc_release_object(buffer);
        return NULL;
    }
    buffer->value = pointer;
    ccc_as_buffer(buffer)->size = *size;
    return ccc_left_with(&scope, buffer);
}

// In the context of a resource that is mapped: one of its arrays, with its description.
static int ccc_graphics_array(CUgraphicsResource resource, unsigned int index, unsigned int level, uint64_t *value,
                              CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    CUarray array = NULL;
    CCC_TRY(cuGraphicsSubResourceGetMappedArray, &array, resource, index, level);
    *value = (uintptr_t)array;
    CCC_TRY(cuArray3DGetDescriptor, shape, array);
    return 0;
}

// The same: its mipmapped array, with the description of the first level, and how many levels there are.
static int ccc_graphics_mipmap(CUgraphicsResource resource, uint64_t *value, CUDA_ARRAY3D_DESCRIPTOR *shape,
                               unsigned int *levels)
{
    CUmipmappedArray mipmap = NULL;
    CUarray level = NULL, next = NULL;
    CCC_TRY(cuGraphicsResourceGetMappedMipmappedArray, &mipmap, resource);
    *value = (uintptr_t)mipmap;
    CCC_TRY(cuMipmappedArrayGetLevel, &level, mipmap, 0);
    *levels = 1;  // the driver tells only which there are
    while (*levels < CCC_MOST_LEVELS && cuMipmappedArrayGetLevel(&next, mipmap, *levels) == CUDA_SUCCESS)
        ++*levels;
    CCC_TRY(cuArray3DGetDescriptor, shape, level);
    return 0;
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
    uint64_t value = 0;
    CCC_SCOPE_OR(NULL, scope, ccc_enter_context(&scope, graphics->parent));
    ccc_handle *mapping = ccc_graphics_mapping(graphics, stream);
    if (mapping == NULL)
        return NULL;
    if ((levels ? ccc_graphics_mipmap(resource, &value, shape, levels)
                : ccc_graphics_array(resource, index, level, &value, shape)) == 0)
        image = ccc_new(levels ? CCC_MIPMAP : CCC_ARRAY, value, CCC_BORROWED, mapping);
    ccc_release_object(mapping);
    return ccc_left_with(&scope, image);
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
