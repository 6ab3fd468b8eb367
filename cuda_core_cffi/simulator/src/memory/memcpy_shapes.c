// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Copies of rectangles and boxes in linear memory.

#include <string.h>

#include "streams/capture.h"
#include "memory/copy.h"

struct box {
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    size_t x, y, z, pitch, height;
};

// Where a box starts; `rows` is how many rows a layer has in the copy.
static CUresult operand(const struct box *box, size_t width, size_t rows, struct sim_operand *operand)
{
    switch (box->type) {
    case CU_MEMORYTYPE_HOST:
        *operand = (struct sim_operand){.address = (uintptr_t)box->host, .side = SIM_SIDE_ANY};
        break;
    case CU_MEMORYTYPE_DEVICE:
        *operand = (struct sim_operand){.address = box->device, .side = SIM_SIDE_DEVICE};
        break;
    case CU_MEMORYTYPE_UNIFIED:
        *operand = (struct sim_operand){.address = box->device, .side = SIM_SIDE_ANY};
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;  // arrays are not simulated
    }
    size_t pitch = box->pitch ? box->pitch : box->x + width, height = box->height ? box->height : box->y + rows;
    SIM_REQUIRE(operand->address && pitch >= box->x + width && height >= rows);
    operand->pitch = pitch;
    operand->slice = pitch * height;
    operand->address += box->z * operand->slice + box->y * pitch + box->x;
    return CUDA_SUCCESS;
}

static CUresult copy(CUstream handle, const struct box *to, const struct box *from, size_t width, size_t height,
                     size_t depth, bool between, bool wait)
{
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_for_work(handle, &stream));
    if (!width || !height || !depth)
        return CUDA_SUCCESS;
    struct sim_copy job = {.width = width, .height = height, .depth = depth, .between = between};
    SIM_TRY(operand(to, width, height, &job.to));
    SIM_TRY(operand(from, width, height, &job.from));
    return sim_copy_submit(stream, &job, wait);
}

static CUresult copy_2d(CUstream stream, const CUDA_MEMCPY2D *p, bool wait)
{
    SIM_REQUIRE(p);
    struct box to = {p->dstMemoryType, p->dstHost, p->dstDevice, p->dstXInBytes, p->dstY, 0, p->dstPitch, 0};
    struct box from = {p->srcMemoryType, p->srcHost, p->srcDevice, p->srcXInBytes, p->srcY, 0, p->srcPitch, 0};
    return copy(stream, &to, &from, p->WidthInBytes, p->Height, 1, false, wait);
}

CUresult sim_copy_of_box(const CUDA_MEMCPY3D *p, struct sim_copy *job)
{
    SIM_REQUIRE(!p->srcLOD && !p->dstLOD);
    struct box to = {p->dstMemoryType, p->dstHost, p->dstDevice, p->dstXInBytes, p->dstY, p->dstZ, p->dstPitch,
                     p->dstHeight};
    struct box from = {p->srcMemoryType, p->srcHost, p->srcDevice, p->srcXInBytes, p->srcY, p->srcZ, p->srcPitch,
                       p->srcHeight};
    *job = (struct sim_copy){.width = p->WidthInBytes, .height = p->Height, .depth = p->Depth};
    SIM_TRY(operand(&to, job->width, job->height, &job->to));
    return operand(&from, job->width, job->height, &job->from);
}

static CUresult copy_3d(CUstream stream, const CUDA_MEMCPY3D *p, bool wait)
{
    SIM_REQUIRE(p && !p->srcLOD && !p->dstLOD);
    struct box to = {p->dstMemoryType, p->dstHost, p->dstDevice, p->dstXInBytes, p->dstY, p->dstZ, p->dstPitch,
                     p->dstHeight};
    struct box from = {p->srcMemoryType, p->srcHost, p->srcDevice, p->srcXInBytes, p->srcY, p->srcZ, p->srcPitch,
                       p->srcHeight};
    return copy(stream, &to, &from, p->WidthInBytes, p->Height, p->Depth, false, wait);
}

static CUresult copy_3d_peer(CUstream stream, const CUDA_MEMCPY3D_PEER *p, bool wait)
{
    SIM_REQUIRE(p && !p->srcLOD && !p->dstLOD);
    struct box to = {p->dstMemoryType, p->dstHost, p->dstDevice, p->dstXInBytes, p->dstY, p->dstZ, p->dstPitch,
                     p->dstHeight};
    struct box from = {p->srcMemoryType, p->srcHost, p->srcDevice, p->srcXInBytes, p->srcY, p->srcZ, p->srcPitch,
                       p->srcHeight};
    return copy(stream, &to, &from, p->WidthInBytes, p->Height, p->Depth, true, wait);
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
