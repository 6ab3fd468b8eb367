// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Copies of rectangles and boxes, in linear memory and in arrays.

#include <string.h>

#include "streams/capture.h"
#include "memory/copy.h"
#include "texture/array.h"

// One side of a copy.
struct side {
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    CUarray array;
    size_t x, y, z, pitch, height;
};

// Both sides of a structure that describes a copy. Those for two dimensions lack some members.
#define SIDES_2D(p) \
    { \
        (p)->dstMemoryType, \
        (p)->dstHost, \
        (p)->dstDevice, \
        (p)->dstArray, \
        (p)->dstXInBytes, \
        (p)->dstY, \
        0, \
        (p)->dstPitch, \
        0}, \
        {(p)->srcMemoryType, \
         (p)->srcHost, \
         (p)->srcDevice, \
         (p)->srcArray, \
         (p)->srcXInBytes, \
         (p)->srcY, \
         0, \
         (p)->srcPitch, \
         0}
#define SIDES_3D(p) \
    {(p)->dstMemoryType, (p)->dstHost, (p)->dstDevice, (p)->dstArray, (p)->dstXInBytes, \
     (p)->dstY,          (p)->dstZ,    (p)->dstPitch,  (p)->dstHeight}, \
    { \
        (p)->srcMemoryType, (p)->srcHost, (p)->srcDevice, (p)->srcArray, (p)->srcXInBytes, (p)->srcY, (p)->srcZ, \
            (p)->srcPitch, (p)->srcHeight \
    }

static CUresult operand(const struct side *side, const struct sim_copy *copy, struct sim_operand *operand)
{
    switch (side->type) {
    case CU_MEMORYTYPE_HOST:
        *operand = (struct sim_operand){.address = (uintptr_t)side->host, .side = SIM_SIDE_ANY};
        break;
    case CU_MEMORYTYPE_DEVICE: *operand = (struct sim_operand){.address = side->device, .side = SIM_SIDE_DEVICE}; break;
    case CU_MEMORYTYPE_UNIFIED: *operand = (struct sim_operand){.address = side->device, .side = SIM_SIDE_ANY}; break;
    case CU_MEMORYTYPE_ARRAY:
        return sim_array_operand(
            side->array, &(struct sim_box){side->x, side->y, side->z, copy->width, copy->height, copy->depth}, operand);
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    size_t pitch = side->pitch ? side->pitch : side->x + copy->width;
    size_t height = side->height ? side->height : side->y + copy->height;
    SIM_REQUIRE(operand->address && pitch >= side->x + copy->width && height >= copy->height);
    operand->pitch = pitch;
    operand->slice = pitch * height;
    operand->address += side->z * operand->slice + side->y * pitch + side->x;
    return CUDA_SUCCESS;
}

// An array takes part where its device is current, unless the call tells the contexts.
static CUresult check_device(const struct side *side)
{
    if (side->type != CU_MEMORYTYPE_ARRAY)
        return CUDA_SUCCESS;
    SIM_HELD struct sim_array *array = NULL;
    struct sim_context *current;
    SIM_TRY(sim_array_find(side->array, &array));
    SIM_TRY(sim_current(&current));
    SIM_REQUIRE(array->context->device == current->device);
    return CUDA_SUCCESS;
}

// `sides` are the destination and the source.
static CUresult copy(CUstream handle, const struct side sides[2], struct sim_copy job, bool wait)
{
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_for_work(handle, &stream));
    if (!job.width || !job.height || !job.depth)
        return CUDA_SUCCESS;
    SIM_TRY(operand(&sides[0], &job, &job.to));
    SIM_TRY(operand(&sides[1], &job, &job.from));
    if (!job.between) {
        SIM_TRY(check_device(&sides[0]));
        SIM_TRY(check_device(&sides[1]));
    }
    return sim_copy_submit(stream, &job, wait);
}

static CUresult copy_2d(CUstream stream, const CUDA_MEMCPY2D *p, bool wait)
{
    SIM_REQUIRE(p);
    const struct side sides[2] = {SIDES_2D(p)};
    return copy(stream, sides, (struct sim_copy){.width = p->WidthInBytes, .height = p->Height, .depth = 1}, wait);
}

CUresult sim_copy_of_box(const CUDA_MEMCPY3D *p, struct sim_copy *job)
{
    SIM_REQUIRE(!p->srcLOD && !p->dstLOD);
    const struct side sides[2] = {SIDES_3D(p)};
    *job = (struct sim_copy){.width = p->WidthInBytes, .height = p->Height, .depth = p->Depth};
    SIM_TRY(operand(&sides[0], job, &job->to));
    return operand(&sides[1], job, &job->from);
}

static CUresult copy_3d(CUstream stream, const CUDA_MEMCPY3D *p, bool wait)
{
    SIM_REQUIRE(p && !p->srcLOD && !p->dstLOD);
    const struct side sides[2] = {SIDES_3D(p)};
    return copy(stream, sides, (struct sim_copy){.width = p->WidthInBytes, .height = p->Height, .depth = p->Depth},
                wait);
}

static CUresult copy_3d_peer(CUstream stream, const CUDA_MEMCPY3D_PEER *p, bool wait)
{
    SIM_REQUIRE(p && !p->srcLOD && !p->dstLOD);
    const struct side sides[2] = {SIDES_3D(p)};
    struct sim_copy job = {.width = p->WidthInBytes, .height = p->Height, .depth = p->Depth, .between = true};
    return copy(stream, sides, job, wait);
}

SIM_API_STREAM(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D *pCopy), (pCopy)) { return copy_2d(NULL, pCopy, true); }

SIM_API_STREAM(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D *pCopy), (pCopy))
{
    return copy_2d(NULL, pCopy, true);
}

SIM_API_STREAM(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D *pCopy, CUstream hStream), (pCopy, hStream))
{
    return copy_2d(hStream, pCopy, false);
}

SIM_API_STREAM(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D *pCopy), (pCopy)) { return copy_3d(NULL, pCopy, true); }

SIM_API_STREAM(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D *pCopy, CUstream hStream), (pCopy, hStream))
{
    return copy_3d(hStream, pCopy, false);
}

SIM_API_STREAM(cuMemcpy3DPeer, _ptds, (const CUDA_MEMCPY3D_PEER *pCopy), (pCopy))
{
    return copy_3d_peer(NULL, pCopy, true);
}

SIM_API_STREAM(cuMemcpy3DPeerAsync, _ptsz, (const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream), (pCopy, hStream))
{
    return copy_3d_peer(hStream, pCopy, false);
}
