// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Sharing with graphics libraries, as a driver answers in a thread without an OpenGL context: nothing can be
// registered, so that no handle is that of a resource.

#include "streams/capture.h"

// Of cudaGL.h, which needs the headers of OpenGL: their GLuint and GLenum are this type.
typedef unsigned int gl_number;
SIM_EXPORT CUresult cuGraphicsGLRegisterBuffer(CUgraphicsResource *pCudaResource, gl_number buffer, unsigned int Flags);
SIM_EXPORT CUresult cuGraphicsGLRegisterImage(CUgraphicsResource *pCudaResource, gl_number image, gl_number target,
                                              unsigned int Flags);

static CUresult refuse_to_register(const CUgraphicsResource *resource, unsigned flags, unsigned known)
{
    struct sim_context *context;
    SIM_REQUIRE(resource && !(flags & ~known));
    SIM_TRY(sim_current(&context));
    return CUDA_ERROR_INVALID_GRAPHICS_CONTEXT;
}

SIM_API(cuGraphicsGLRegisterBuffer, (CUgraphicsResource *pCudaResource, gl_number buffer, unsigned int Flags),
        (pCudaResource, buffer, Flags))
{
    (void)buffer;
    return refuse_to_register(pCudaResource, Flags,
                              CU_GRAPHICS_REGISTER_FLAGS_READ_ONLY | CU_GRAPHICS_REGISTER_FLAGS_WRITE_DISCARD);
}

SIM_API(cuGraphicsGLRegisterImage,
        (CUgraphicsResource *pCudaResource, gl_number image, gl_number target, unsigned int Flags),
        (pCudaResource, image, target, Flags))
{
    (void)image, (void)target;
    return refuse_to_register(pCudaResource, Flags,
                              CU_GRAPHICS_REGISTER_FLAGS_READ_ONLY | CU_GRAPHICS_REGISTER_FLAGS_WRITE_DISCARD |
                                  CU_GRAPHICS_REGISTER_FLAGS_SURFACE_LDST | CU_GRAPHICS_REGISTER_FLAGS_TEXTURE_GATHER);
}

static CUresult no_resource(void)
{
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    return CUDA_ERROR_INVALID_HANDLE;
}

SIM_API(cuGraphicsUnregisterResource, (CUgraphicsResource resource), (resource))
{
    (void)resource;
    return no_resource();
}

SIM_API(cuGraphicsResourceSetMapFlags_v2, (CUgraphicsResource resource, unsigned int flags), (resource, flags))
{
    (void)resource;
    SIM_REQUIRE(flags <= CU_GRAPHICS_MAP_RESOURCE_FLAGS_WRITE_DISCARD);
    return no_resource();
}

// None of the resources is one; there may be none to map.
static CUresult map(unsigned count, const CUgraphicsResource *resources, CUstream handle)
{
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_REQUIRE(resources || !count);
    SIM_TRY(sim_stream_for_work(handle, &stream));
    return count ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

SIM_API_STREAM(cuGraphicsMapResources, _ptsz, (unsigned int count, CUgraphicsResource *resources, CUstream hStream),
               (count, resources, hStream))
{
    return map(count, resources, hStream);
}

SIM_API_STREAM(cuGraphicsUnmapResources, _ptsz, (unsigned int count, CUgraphicsResource *resources, CUstream hStream),
               (count, resources, hStream))
{
    return map(count, resources, hStream);
}

SIM_API(cuGraphicsSubResourceGetMappedArray,
        (CUarray *pArray, CUgraphicsResource resource, unsigned int arrayIndex, unsigned int mipLevel),
        (pArray, resource, arrayIndex, mipLevel))
{
    (void)resource, (void)arrayIndex, (void)mipLevel;
    SIM_REQUIRE(pArray);
    return no_resource();
}

SIM_API(cuGraphicsResourceGetMappedMipmappedArray, (CUmipmappedArray *pMipmappedArray, CUgraphicsResource resource),
        (pMipmappedArray, resource))
{
    (void)resource;
    SIM_REQUIRE(pMipmappedArray);
    return no_resource();
}

SIM_API(cuGraphicsResourceGetMappedPointer_v2, (CUdeviceptr *pDevPtr, size_t *pSize, CUgraphicsResource resource),
        (pDevPtr, pSize, resource))
{
    (void)resource, (void)pSize;
    SIM_REQUIRE(pDevPtr);
    return no_resource();
}
