// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "streams/capture.h"
#include "memory/copy.h"

static CUresult fill(CUstream handle, const struct sim_fill *fill, bool wait)
{
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_for_work(handle, &stream));
    return sim_fill_submit(stream, fill, wait);
}

// The four functions of one element type: 1D and 2D, synchronous and not.
#define FILLS(bits, type, value) \
    SIM_API_STREAM(cuMemsetD##bits##_v2, _ptds, (CUdeviceptr dstDevice, type value, size_t N), (dstDevice, value, N)) \
    { \
        struct sim_fill job = {dstDevice, 0, N, 1, bits / 8, value}; \
        return fill(NULL, &job, true); \
    } \
    SIM_API_STREAM(cuMemsetD##bits##Async, _ptsz, (CUdeviceptr dstDevice, type value, size_t N, CUstream hStream), \
                   (dstDevice, value, N, hStream)) \
    { \
        struct sim_fill job = {dstDevice, 0, N, 1, bits / 8, value}; \
        return fill(hStream, &job, false); \
    } \
    SIM_API_STREAM(cuMemsetD2D##bits##_v2, _ptds, \
                   (CUdeviceptr dstDevice, size_t dstPitch, type value, size_t Width, size_t Height), \
                   (dstDevice, dstPitch, value, Width, Height)) \
    { \
        struct sim_fill job = {dstDevice, dstPitch, Width, Height, bits / 8, value}; \
        return fill(NULL, &job, true); \
    } \
    SIM_API_STREAM( \
        cuMemsetD2D##bits##Async, _ptsz, \
        (CUdeviceptr dstDevice, size_t dstPitch, type value, size_t Width, size_t Height, CUstream hStream), \
        (dstDevice, dstPitch, value, Width, Height, hStream)) \
    { \
        struct sim_fill job = {dstDevice, dstPitch, Width, Height, bits / 8, value}; \
        return fill(hStream, &job, false); \
    }

FILLS(8, unsigned char, uc)
FILLS(16, unsigned short, us)
FILLS(32, unsigned int, ui)
