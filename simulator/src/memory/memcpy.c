// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Copies of contiguous memory.

#include "streams/capture.h"
#include "driver/device.h"
#include "memory/copy.h"

static CUresult copy(CUstream handle, uintptr_t to, enum sim_side to_side, uintptr_t from, enum sim_side from_side,
                     size_t bytes, bool wait)
{
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_for_work(handle, &stream));
    struct sim_copy job = {{.address = to, .side = to_side}, {.address = from, .side = from_side}, bytes, 1, 1};
    return sim_copy_submit(stream, &job, wait);
}

SIM_API_STREAM(cuMemcpy, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount), (dst, src, ByteCount))
{
    return copy(NULL, dst, SIM_SIDE_ANY, src, SIM_SIDE_ANY, ByteCount, true);
}

SIM_API_STREAM(cuMemcpyAsync, _ptsz, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream),
               (dst, src, ByteCount, hStream))
{
    return copy(hStream, dst, SIM_SIDE_ANY, src, SIM_SIDE_ANY, ByteCount, false);
}

SIM_API_STREAM(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount),
               (dstDevice, srcHost, ByteCount))
{
    return copy(NULL, dstDevice, SIM_SIDE_DEVICE, (uintptr_t)srcHost, SIM_SIDE_ANY, ByteCount, true);
}

SIM_API_STREAM(cuMemcpyHtoDAsync_v2, _ptsz,
               (CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream),
               (dstDevice, srcHost, ByteCount, hStream))
{
    return copy(hStream, dstDevice, SIM_SIDE_DEVICE, (uintptr_t)srcHost, SIM_SIDE_ANY, ByteCount, false);
}

SIM_API_STREAM(cuMemcpyDtoH_v2, _ptds, (void *dstHost, CUdeviceptr srcDevice, size_t ByteCount),
               (dstHost, srcDevice, ByteCount))
{
    return copy(NULL, (uintptr_t)dstHost, SIM_SIDE_ANY, srcDevice, SIM_SIDE_DEVICE, ByteCount, true);
}

SIM_API_STREAM(cuMemcpyDtoHAsync_v2, _ptsz, (void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream),
               (dstHost, srcDevice, ByteCount, hStream))
{
    return copy(hStream, (uintptr_t)dstHost, SIM_SIDE_ANY, srcDevice, SIM_SIDE_DEVICE, ByteCount, false);
}

SIM_API_STREAM(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount),
               (dstDevice, srcDevice, ByteCount))
{
    return copy(NULL, dstDevice, SIM_SIDE_DEVICE, srcDevice, SIM_SIDE_DEVICE, ByteCount, true);
}

SIM_API_STREAM(cuMemcpyDtoDAsync_v2, _ptsz,
               (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream),
               (dstDevice, srcDevice, ByteCount, hStream))
{
    return copy(hStream, dstDevice, SIM_SIDE_DEVICE, srcDevice, SIM_SIDE_DEVICE, ByteCount, false);
}

// --- Between contexts -----------------------------------------------------------------------------------------

static CUresult copy_peer(CUstream handle, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                          CUcontext from_context, size_t bytes, bool wait)
{
    // Without a context the address tells where the memory is, as it does with one.
    SIM_HELD struct sim_context *target = NULL, *source = NULL;
    if (to_context)
        SIM_TRY(sim_context_find(to_context, &target));
    if (from_context)
        SIM_TRY(sim_context_find(from_context, &source));
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_for_work(handle, &stream));
    if (sim_capturing(stream))
        return sim_capture_refuse(stream);
    struct sim_copy job = {{.address = to, .side = SIM_SIDE_DEVICE},
                           {.address = from, .side = SIM_SIDE_DEVICE},
                           .width = bytes,
                           .height = 1,
                           .depth = 1,
                           .between = true};
    return sim_copy_submit(stream, &job, wait);
}

SIM_API_STREAM(cuMemcpyPeer, _ptds,
               (CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
                size_t ByteCount),
               (dstDevice, dstContext, srcDevice, srcContext, ByteCount))
{
    return copy_peer(NULL, dstDevice, dstContext, srcDevice, srcContext, ByteCount, true);
}

SIM_API_STREAM(cuMemcpyPeerAsync, _ptsz,
               (CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
                size_t ByteCount, CUstream hStream),
               (dstDevice, dstContext, srcDevice, srcContext, ByteCount, hStream))
{
    return copy_peer(hStream, dstDevice, dstContext, srcDevice, srcContext, ByteCount, false);
}

// --- Batches --------------------------------------------------------------------------------------------------

static bool hint_is_valid(const CUmemLocation *hint)
{
    if (hint->type == CU_MEM_LOCATION_TYPE_DEVICE)
        return hint->id >= 0 && hint->id < sim_device_count();
    return hint->type >= CU_MEM_LOCATION_TYPE_INVALID && hint->type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

static bool attributes_are_valid(const CUmemcpyAttributes *attributes)
{
    return attributes->srcAccessOrder >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM &&
           attributes->srcAccessOrder <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY &&
           attributes->flags <= CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE && hint_is_valid(&attributes->srcLocHint) &&
           hint_is_valid(&attributes->dstLocHint);
}

static CUresult copy_batch(CUstream handle, CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                           const CUmemcpyAttributes *attrs, const size_t *indices, size_t attribute_count,
                           size_t *failed)
{
    if (failed)
        *failed = SIZE_MAX;
    SIM_REQUIRE(dsts && srcs && sizes && count && attrs && indices && attribute_count && attribute_count <= count);
    SIM_REQUIRE(indices[0] == 0);
    for (size_t i = 0; i < attribute_count; i++) {
        SIM_REQUIRE(i == 0 || (indices[i] > indices[i - 1] && indices[i] < count));
        SIM_REQUIRE(attributes_are_valid(&attrs[i]));
    }
    // Seen with driver 580: a stream with a handle of its own needs a context all the same, and is told so in another
    // way.
    struct sim_context *context;
    SIM_REQUIRE(!sim_stream_is_legacy(handle));
    CUresult current = sim_current(&context);
    SIM_REQUIRE(current != CUDA_ERROR_INVALID_CONTEXT || handle == CU_STREAM_PER_THREAD || !handle);
    SIM_TRY(current);
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_for_work(handle, &stream));
    for (size_t i = 0, attribute = 0; i < count; i++) {
        if (attribute + 1 < attribute_count && indices[attribute + 1] == i)
            attribute++;
        struct sim_copy job = {{.address = dsts[i], .side = SIM_SIDE_ANY},
                               {.address = srcs[i], .side = SIM_SIDE_ANY},
                               sizes[i],
                               1,
                               1,
                               attrs[attribute].srcAccessOrder};
        CUresult status = sizes[i] ? sim_copy_submit(stream, &job, false) : CUDA_ERROR_INVALID_VALUE;
        if (status != CUDA_SUCCESS) {
            if (failed)
                *failed = i;
            return status;
        }
    }
    return CUDA_SUCCESS;
}

SIM_API_STREAM(cuMemcpyBatchAsync, _ptsz,
               (CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
                size_t *attrsIdxs, size_t numAttrs, size_t *failIdx, CUstream hStream),
               (dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failIdx, hStream))
{
    return copy_batch(hStream, dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, failIdx);
}

SIM_API_STREAM(cuMemcpyBatchAsync_v2, _ptsz,
               (CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
                size_t *attrsIdxs, size_t numAttrs, CUstream hStream),
               (dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, hStream))
{
    return copy_batch(hStream, dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, NULL);
}

SIM_API_STREAM(cuMemcpyWithAttributesAsync, _ptsz,
               (CUdeviceptr dst, CUdeviceptr src, size_t size, CUmemcpyAttributes *attr, CUstream hStream),
               (dst, src, size, attr, hStream))
{
    size_t first = 0;
    return copy_batch(hStream, &dst, &src, &size, 1, attr, &first, 1, NULL);
}
