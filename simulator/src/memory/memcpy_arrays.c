// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Copies of runs of bytes to and from arrays of one dimension.

#include "memory/copy.h"
#include "streams/capture.h"
#include "texture/array.h"

static CUresult run_of(CUarray handle, size_t offset, size_t bytes, unsigned *texel, struct sim_operand *operand)
{
    SIM_HELD struct sim_array *array = NULL;
    SIM_TRY(sim_array_find(handle, &array));
    SIM_REQUIRE(array->image.height == 1 && array->image.depth == 1);
    *texel = sim_texel_bytes(array->image.format);
    return sim_array_operand(handle, &(struct sim_box){offset, 0, 0, bytes, 1, 1}, operand);
}

static CUresult to_array(CUstream handle, CUarray array, size_t offset, struct sim_operand from, size_t bytes,
                         bool wait)
{
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_for_work(handle, &stream));
    struct sim_copy copy = {.from = from, .width = bytes, .height = 1, .depth = 1};
    unsigned texel;
    SIM_TRY(run_of(array, offset, bytes, &texel, &copy.to));
    return sim_copy_submit(stream, &copy, wait);
}

static CUresult from_array(CUstream handle, struct sim_operand to, CUarray array, size_t offset, size_t bytes,
                           bool wait)
{
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_for_work(handle, &stream));
    struct sim_copy copy = {.to = to, .width = bytes, .height = 1, .depth = 1};
    unsigned texel;
    SIM_TRY(run_of(array, offset, bytes, &texel, &copy.from));
    return sim_copy_submit(stream, &copy, wait);
}

static struct sim_operand host(const void *address)
{
    return (struct sim_operand){.address = (uintptr_t)address, .side = SIM_SIDE_ANY};
}

static struct sim_operand device(CUdeviceptr address)
{
    return (struct sim_operand){.address = address, .side = SIM_SIDE_DEVICE};
}

SIM_API_STREAM(cuMemcpyHtoA_v2, _ptds, (CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount),
               (dstArray, dstOffset, srcHost, ByteCount))
{
    return to_array(NULL, dstArray, dstOffset, host(srcHost), ByteCount, true);
}

SIM_API_STREAM(cuMemcpyHtoAAsync_v2, _ptsz,
               (CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount, CUstream hStream),
               (dstArray, dstOffset, srcHost, ByteCount, hStream))
{
    return to_array(hStream, dstArray, dstOffset, host(srcHost), ByteCount, false);
}

SIM_API_STREAM(cuMemcpyAtoH_v2, _ptds, (void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount),
               (dstHost, srcArray, srcOffset, ByteCount))
{
    return from_array(NULL, host(dstHost), srcArray, srcOffset, ByteCount, true);
}

SIM_API_STREAM(cuMemcpyAtoHAsync_v2, _ptsz,
               (void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount, CUstream hStream),
               (dstHost, srcArray, srcOffset, ByteCount, hStream))
{
    return from_array(hStream, host(dstHost), srcArray, srcOffset, ByteCount, false);
}

SIM_API_STREAM(cuMemcpyDtoA_v2, _ptds, (CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount),
               (dstArray, dstOffset, srcDevice, ByteCount))
{
    return to_array(NULL, dstArray, dstOffset, device(srcDevice), ByteCount, true);
}

SIM_API_STREAM(cuMemcpyAtoD_v2, _ptds, (CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount),
               (dstDevice, srcArray, srcOffset, ByteCount))
{
    return from_array(NULL, device(dstDevice), srcArray, srcOffset, ByteCount, true);
}

SIM_API_STREAM(cuMemcpyAtoA_v2, _ptds,
               (CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset, size_t ByteCount),
               (dstArray, dstOffset, srcArray, srcOffset, ByteCount))
{
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_for_work(NULL, &stream));
    struct sim_copy copy = {.width = ByteCount, .height = 1, .depth = 1};
    unsigned to, from;
    SIM_TRY(run_of(dstArray, dstOffset, ByteCount, &to, &copy.to));
    SIM_TRY(run_of(srcArray, srcOffset, ByteCount, &from, &copy.from));
    SIM_REQUIRE(to == from);
    return sim_copy_submit(stream, &copy, true);
}
