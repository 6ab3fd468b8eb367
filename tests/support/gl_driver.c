// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// A driver with an OpenGL of its own: the driver that WRAPPED_DRIVER names, but that a few names are those of buffers.
//
// Buffers have the names 1 to 7, and as many times 256 bytes of device memory. Name 9 is an image with three levels,
// the first of 16 by 8 elements of four bytes; 10 is an image of fractions, and 11 has layers. Images have no pointer.
// Whatever is wrong (mapped twice, unmapped while it is not mapped, unregistered while it is) is counted, and refused.
// Tests look at `gl_counts` and set `gl_fail_unmap` through ctypes.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#define UNIT 256
#define IMAGE 9
#define FRACTIONS 10
#define LAYERS 11
#define LEVELS 3
#define EXPORT __attribute__((visibility("default")))

struct CUgraphicsResource_st {
    CUdeviceptr memory;
    size_t size;
    CUmipmappedArray image;
    int mapped;
    unsigned int flags;
};

EXPORT struct {
    int registered, mapped, faults;
    unsigned int flags;  // of the last that was registered
    CUstream stream;     // in which something was mapped or unmapped last
} gl_counts;
EXPORT int gl_fail_unmap;  // how often unmapping fails
EXPORT int gl_fail_register;

static void *driver;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *find(const char *name)
{
    if (driver == NULL)
        driver = dlopen(getenv("WRAPPED_DRIVER"), RTLD_NOW | RTLD_LOCAL);
    return driver ? dlsym(driver, name) : NULL;
}

static CUresult refuse(void)
{
    gl_counts.faults++;
    return CUDA_ERROR_INVALID_VALUE;
}

static CUresult register_name(CUgraphicsResource *resource, unsigned int name, unsigned int flags)
{
    CUresult (*allocate)(CUdeviceptr *, size_t);
    CUresult (*create)(CUmipmappedArray *, const CUDA_ARRAY3D_DESCRIPTOR *, unsigned int);
    *(void **)&allocate = find("cuMemAlloc_v2");
    *(void **)&create = find("cuMipmappedArrayCreate");
    if (gl_fail_register)
        return CUDA_ERROR_OPERATING_SYSTEM;
    struct CUgraphicsResource_st *made = calloc(1, sizeof *made);
    CUDA_ARRAY3D_DESCRIPTOR shape = {
        16,
        8,
        name == LAYERS ? 2 : 0,
        name == FRACTIONS ? CU_AD_FORMAT_UNORM_INT8X4 : CU_AD_FORMAT_UNSIGNED_INT8,
        4,
        (name == LAYERS ? CUDA_ARRAY3D_LAYERED : 0) |
            (flags & CU_GRAPHICS_REGISTER_FLAGS_SURFACE_LDST ? CUDA_ARRAY3D_SURFACE_LDST : 0),
    };
    made->size = name >= IMAGE ? 0 : UNIT * name;
    made->flags = gl_counts.flags = flags;
    CUresult result = made->size ? allocate(&made->memory, made->size) : create(&made->image, &shape, LEVELS);
    if (result) {
        free(made);
        return result;
    }
    gl_counts.registered++;
    *resource = made;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI register_buffer(CUgraphicsResource *resource, unsigned int name, unsigned int flags)
{
    return name == 0 || name > 7 ? CUDA_ERROR_INVALID_VALUE : register_name(resource, name, flags);
}

static CUresult CUDAAPI register_image(CUgraphicsResource *resource, unsigned int name, unsigned int target,
                                       unsigned int flags)
{
    return name < IMAGE || name > LAYERS || target == 0 ? CUDA_ERROR_INVALID_VALUE
                                                        : register_name(resource, name, flags);
}

static CUresult CUDAAPI unregister(CUgraphicsResource resource)
{
    CUresult (*deallocate)(CUdeviceptr);
    CUresult (*destroy)(CUmipmappedArray);
    *(void **)&deallocate = find("cuMemFree_v2");
    *(void **)&destroy = find("cuMipmappedArrayDestroy");
    if (resource->mapped)
        return refuse();
    CUresult result = resource->memory ? deallocate(resource->memory) : destroy(resource->image);
    if (result)
        return result;
    gl_counts.registered--;
    free(resource);
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI map(unsigned int count, CUgraphicsResource *resources, CUstream stream)
{
    if (count != 1 || resources[0]->mapped)
        return refuse();
    gl_counts.mapped += resources[0]->mapped = 1;
    gl_counts.stream = stream;
    return CUDA_SUCCESS;
}

static CUresult CUDAAPI unmap(unsigned int count, CUgraphicsResource *resources, CUstream stream)
{
    if (count != 1 || !resources[0]->mapped)
        return refuse();
    resources[0]->mapped = 0;
    gl_counts.mapped--;
    gl_counts.stream = stream;
    return gl_fail_unmap-- > 0 ? CUDA_ERROR_OPERATING_SYSTEM : (gl_fail_unmap = 0, CUDA_SUCCESS);
}

static CUresult CUDAAPI get_pointer(CUdeviceptr *pointer, size_t *size, CUgraphicsResource resource)
{
    if (!resource->mapped)
        return refuse();
    *pointer = resource->memory;
    *size = resource->size;
    return resource->size ? CUDA_SUCCESS : CUDA_ERROR_NOT_MAPPED_AS_POINTER;
}

static CUresult CUDAAPI get_mipmap(CUmipmappedArray *mipmap, CUgraphicsResource resource)
{
    if (!resource->mapped)
        return refuse();
    *mipmap = resource->image;
    return resource->image ? CUDA_SUCCESS : CUDA_ERROR_NOT_MAPPED_AS_ARRAY;
}

static CUresult CUDAAPI get_array(CUarray *array, CUgraphicsResource resource, unsigned int index, unsigned int level)
{
    CUmipmappedArray mipmap;
    CUresult (*get_level)(CUarray *, CUmipmappedArray, unsigned int);
    *(void **)&get_level = find("cuMipmappedArrayGetLevel");
    CUresult result = get_mipmap(&mipmap, resource);
    return result ? result : index ? CUDA_ERROR_INVALID_VALUE : get_level(array, mipmap, level);
}

EXPORT CUresult CUDAAPI cuDriverGetVersion(int *version)
{
    CUresult (*get)(int *);
    *(void **)&get = find("cuDriverGetVersion");
    return get ? get(version) : CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult CUDAAPI cuGetProcAddress_v2(const char *name, void **address, int version, cuuint64_t flags,
                                            CUdriverProcAddressQueryResult *found)
{
    static const struct {
        const char *name;
        void *function;
    } ours[] = {
        {"cuGraphicsGLRegisterBuffer", register_buffer},
        {"cuGraphicsGLRegisterImage", register_image},
        {"cuGraphicsMapResources", map},
        {"cuGraphicsResourceGetMappedMipmappedArray", get_mipmap},
        {"cuGraphicsResourceGetMappedPointer", get_pointer},
        {"cuGraphicsSubResourceGetMappedArray", get_array},
        {"cuGraphicsUnmapResources", unmap},
        {"cuGraphicsUnregisterResource", unregister},
    };
    CUresult (*look_up)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strcmp(name, ours[i].name) == 0) {
            *address = getenv("WITHOUT_GL") ? NULL : ours[i].function;
            return *address ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
        }
    pthread_mutex_lock(&lock);
    *(void **)&look_up = find("cuGetProcAddress_v2");
    pthread_mutex_unlock(&lock);
    return look_up(name, address, version, flags, found);
}
