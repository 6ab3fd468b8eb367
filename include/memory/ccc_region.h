// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Copies of rows and layers, between memory and opaque arrays: what streams and nodes of graphs give the driver.
#ifndef CCC_REGION_H
#define CCC_REGION_H

#include "memory/ccc_copy.h"

// One operand.
typedef struct ccc_region {
    ccc_handle *handle;    // the array; or the buffer that the memory is of, NULL if the caller keeps it
    uint64_t address;      // of memory: the first byte; 0 where the buffer begins
    int on_host;           // memory that only the host can access
    int on_device;         // memory of a device. With neither, the driver finds out
    size_t x, y, z;        // of an array: bytes, rows and layers before the region
    size_t pitch, height;  // of memory: bytes from row to row, rows from layer to layer
} ccc_region;

typedef struct ccc_region_copy {
    ccc_region target, source;
    size_t width, rows, layers;  // bytes in a row, rows, layers
} ccc_region_copy;

static int ccc_region_is_array(const ccc_region *box) { return box->handle && box->handle->kind == CCC_ARRAY; }

// An array that takes part; NULL if none does.
static const ccc_handle *ccc_region_array(const ccc_region_copy *copy)
{
    return ccc_region_is_array(&copy->target)   ? copy->target.handle
           : ccc_region_is_array(&copy->source) ? copy->source.handle
                                                : NULL;
}

static uint64_t ccc_region_address(const ccc_region *box)
{
    return box->address == 0 && box->handle ? box->handle->value : box->address;
}

static CUmemorytype ccc_region_type(const ccc_region *box)
{
    return ccc_region_is_array(box) ? CU_MEMORYTYPE_ARRAY
           : box->on_host           ? CU_MEMORYTYPE_HOST
           : box->on_device         ? CU_MEMORYTYPE_DEVICE
                                    : CU_MEMORYTYPE_UNIFIED;
}

// Describe a copy to the driver. The caller has a use of arrays, and of buffers whose address is not given.
static CUDA_MEMCPY3D ccc_region_describe(const ccc_region_copy *copy)
{
    const ccc_region *to = &copy->target, *from = &copy->source;
    CUDA_MEMCPY3D box = {
        .srcXInBytes = from->x,
        .srcY = from->y,
        .srcZ = from->z,
        .srcMemoryType = ccc_region_type(from),
        .srcPitch = from->pitch,
        .srcHeight = from->height,
        .dstXInBytes = to->x,
        .dstY = to->y,
        .dstZ = to->z,
        .dstMemoryType = ccc_region_type(to),
        .dstPitch = to->pitch,
        .dstHeight = to->height,
        .WidthInBytes = copy->width,
        .Height = copy->rows,
        .Depth = copy->layers,
    };
    if (box.srcMemoryType == CU_MEMORYTYPE_ARRAY)
        box.srcArray = (CUarray)CCC_POINTER(from->handle);
    else if (box.srcMemoryType == CU_MEMORYTYPE_HOST)
        box.srcHost = (const void *)(uintptr_t)ccc_region_address(from);
    else
        box.srcDevice = ccc_region_address(from);
    if (box.dstMemoryType == CU_MEMORYTYPE_ARRAY)
        box.dstArray = (CUarray)CCC_POINTER(to->handle);
    else if (box.dstMemoryType == CU_MEMORYTYPE_HOST)
        box.dstHost = (void *)(uintptr_t)ccc_region_address(to);
    else
        box.dstDevice = ccc_region_address(to);
    return box;
}

// The context that an array, or memory of a device, is in; NULL for other memory.
static ccc_handle *ccc_region_home(const ccc_region *box)
{
    return ccc_region_is_array(box) ? ccc_context_of(box->handle) : ccc_copy_owner(ccc_region_address(box));
}

// The same copy with the contexts of its operands.
static CUresult ccc_region_submit_between(const CUDA_MEMCPY3D *box, const ccc_handle *target, const ccc_handle *source,
                                          CUstream stream)
{
    const CUDA_MEMCPY3D_PEER between = {
        .srcXInBytes = box->srcXInBytes,
        .srcY = box->srcY,
        .srcZ = box->srcZ,
        .srcMemoryType = box->srcArray ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_DEVICE,
        .srcDevice = box->srcDevice,
        .srcArray = box->srcArray,
        .srcContext = CCC_CTX(source),
        .srcPitch = box->srcPitch,
        .srcHeight = box->srcHeight,
        .dstXInBytes = box->dstXInBytes,
        .dstY = box->dstY,
        .dstZ = box->dstZ,
        .dstMemoryType = box->dstArray ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_DEVICE,
        .dstDevice = box->dstDevice,
        .dstArray = box->dstArray,
        .dstContext = CCC_CTX(target),
        .dstPitch = box->dstPitch,
        .dstHeight = box->dstHeight,
        .WidthInBytes = box->WidthInBytes,
        .Height = box->Height,
        .Depth = box->Depth,
    };
    return cuMemcpy3DPeerAsync(&between, stream);
}

// Make the copy. The caller has a use of the operands and the stream. Where devices have no access to each other, the
// driver has to be told whose memory it is, as for ccc_copy_plain.
static int ccc_region_submit(const void *data, ccc_handle *stream)
{
    const ccc_region_copy *copy = data;
    const CUDA_MEMCPY3D box = ccc_region_describe(copy);
    CCC_USES_OBJECTS(stream, copy->target.handle, copy->source.handle);
    CCC_SUBMIT;
    CUresult result = cuMemcpy3DAsync(&box, CCC_STRM(stream));
    if (CCC_LIKELY(result == CUDA_SUCCESS))
        return 0;
    const ccc_handle *target = result == CUDA_ERROR_INVALID_VALUE ? ccc_region_home(&copy->target) : NULL;
    const ccc_handle *source = target ? ccc_region_home(&copy->source) : NULL;
    if (source == NULL || source == target)
        return ccc_fail((int)result, "cuMemcpy3DAsync");
    result = ccc_region_submit_between(&box, target, source, CCC_STRM(stream));
    return result ? ccc_fail((int)result, "cuMemcpy3DPeerAsync") : 0;
}

#endif
