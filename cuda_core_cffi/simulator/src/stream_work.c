// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Work of streams that is neither memory nor kernels: host functions, and waiting for and writing values in memory.

#include <string.h>
#include <time.h>

#include "copy.h"
#include "allocation.h"

_Atomic size_t sim_host_functions_pending;

// --- Host functions -------------------------------------------------------------------------------------------

struct host_job {
    CUhostFn function;          // or
    CUstreamCallback callback;  // which also hears of errors
    void *data;
    CUstream handle;
};

static void run_host(struct sim_stream *stream, void *payload)
{
    const struct host_job *job = payload;
    CUresult status = (CUresult)atomic_load(&stream->context->error);
    struct sim_thread *thread = sim_thread();
    thread->in_callback = true;
    if (job->callback)
        job->callback(job->handle, status, job->data);
    else if (status == CUDA_SUCCESS)
        job->function(job->data);
    thread->in_callback = false;
    atomic_fetch_sub(&sim_host_functions_pending, 1);
}

static CUresult submit_host(const struct host_job *job)
{
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_find(job->handle, &stream));
    struct sim_op *op = sim_op_new(run_host, sizeof *job);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->always = true;
    memcpy(op->payload, job, sizeof *job);
    atomic_fetch_add(&sim_host_functions_pending, 1);
    return sim_submit(stream, op, NULL);
}

SIM_API_STREAM(cuLaunchHostFunc, _ptsz, (CUstream hStream, CUhostFn fn, void *userData), (hStream, fn, userData))
{
    SIM_REQUIRE(fn);
    return submit_host(&(struct host_job){.function = fn, .data = userData, .handle = hStream});
}

SIM_API_STREAM(cuLaunchHostFunc_v2, _ptsz,
               (CUstream hStream, CUhostFn fn, void *userData, unsigned int syncMode),
               (hStream, fn, userData, syncMode))
{
    enum { MODES = 2 };
    SIM_REQUIRE(fn && syncMode < MODES);
    return submit_host(&(struct host_job){.function = fn, .data = userData, .handle = hStream});
}

SIM_API_STREAM(cuStreamAddCallback, _ptsz,
               (CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags),
               (hStream, callback, userData, flags))
{
    SIM_REQUIRE(callback && !flags);
    return submit_host(&(struct host_job){.callback = callback, .data = userData, .handle = hStream});
}

// --- Values in memory -----------------------------------------------------------------------------------------

struct value_job {
    uintptr_t address;
    uint64_t value;
    unsigned bytes;      // 4 or 8
    unsigned condition;  // of a wait
    const char *function;
};

static uint64_t load(const struct value_job *job)
{
    if (job->bytes == 4)
        return __atomic_load_n((const uint32_t *)job->address, __ATOMIC_ACQUIRE);
    return __atomic_load_n((const uint64_t *)job->address, __ATOMIC_ACQUIRE);
}

static bool holds(const struct value_job *job)
{
    uint64_t now = load(job), mask = job->bytes == 4 ? UINT32_MAX : UINT64_MAX;
    switch (job->condition) {
    case CU_STREAM_WAIT_VALUE_EQ: return now == job->value;
    case CU_STREAM_WAIT_VALUE_AND: return (now & job->value) != 0;
    case CU_STREAM_WAIT_VALUE_NOR: return (~(now | job->value) & mask) != 0;
    default:  // at or after, in the arithmetic of a counter that wraps
        return job->bytes == 4 ? (int32_t)((uint32_t)now - (uint32_t)job->value) >= 0
                               : (int64_t)(now - job->value) >= 0;
    }
}

static struct sim_use use_of(const struct sim_stream *stream, bool writes)
{
    return (struct sim_use){.device = stream->context->device, .writes = writes};
}

static void run_wait(struct sim_stream *stream, void *payload)
{
    const struct value_job *job = payload;
    const struct timespec pause = {.tv_nsec = 50000};
    while (atomic_load(&stream->context->error) == CUDA_SUCCESS) {
        if (!sim_still_there(job->address, job->bytes, use_of(stream, false), job->function)) {
            sim_context_fail(stream->context, CUDA_ERROR_ILLEGAL_ADDRESS);
            return;
        }
        if (holds(job))
            return;
        nanosleep(&pause, NULL);
    }
}

static void run_write(struct sim_stream *stream, void *payload)
{
    const struct value_job *job = payload;
    if (atomic_load(&stream->context->error) != CUDA_SUCCESS)
        return;
    if (!sim_still_there(job->address, job->bytes, use_of(stream, true), job->function))
        sim_context_fail(stream->context, CUDA_ERROR_ILLEGAL_ADDRESS);
    else if (job->bytes == 4)
        __atomic_store_n((uint32_t *)job->address, (uint32_t)job->value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint64_t *)job->address, job->value, __ATOMIC_RELEASE);
}

static CUresult value_work(CUstream handle, sim_work work, CUdeviceptr address, uint64_t value, unsigned bytes,
                           unsigned flags)
{
    const unsigned known = work == run_wait ? CU_STREAM_WAIT_VALUE_NOR | CU_STREAM_WAIT_VALUE_FLUSH
                                            : CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
    SIM_REQUIRE(!(flags & ~known) && address % bytes == 0);
    // Flushing remote writes is not offered, as CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES says.
    if (work == run_wait && flags & CU_STREAM_WAIT_VALUE_FLUSH)
        return CUDA_ERROR_NOT_SUPPORTED;
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_find(handle, &stream));
    SIM_TRY(sim_check_range(stream->context, address, bytes, work == run_write));
    struct value_job job = {address, value, bytes, flags, sim_thread()->function};
    return sim_do(stream, work, &job, sizeof job, work == run_write, false);
}

#define VALUE_FUNCTIONS(bits, type)                                                                                  \
    SIM_API_STREAM(cuStreamWaitValue##bits##_v2, _ptsz,                                                              \
                   (CUstream stream, CUdeviceptr addr, type value, unsigned int flags), (stream, addr, value, flags)) \
    {                                                                                                                \
        return value_work(stream, run_wait, addr, value, bits / 8, flags);                                           \
    }                                                                                                                \
    SIM_API_STREAM(cuStreamWriteValue##bits##_v2, _ptsz,                                                             \
                   (CUstream stream, CUdeviceptr addr, type value, unsigned int flags), (stream, addr, value, flags)) \
    {                                                                                                                \
        return value_work(stream, run_write, addr, value, bits / 8, flags);                                          \
    }

VALUE_FUNCTIONS(32, cuuint32_t)
VALUE_FUNCTIONS(64, cuuint64_t)

SIM_API_STREAM(cuStreamBatchMemOp_v2, _ptsz,
               (CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray, unsigned int flags),
               (stream, count, paramArray, flags))
{
    enum { MOST = 256 };
    SIM_REQUIRE(paramArray && count && count <= MOST && !flags);
    for (unsigned i = 0; i < count; i++) {
        const CUstreamBatchMemOpParams *p = &paramArray[i];
        switch ((int)p->operation) {
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
            SIM_TRY(value_work(stream, run_wait, p->waitValue.address, p->waitValue.value, 4, p->waitValue.flags));
            break;
        case CU_STREAM_MEM_OP_WAIT_VALUE_64:
            SIM_TRY(value_work(stream, run_wait, p->waitValue.address, p->waitValue.value64, 8, p->waitValue.flags));
            break;
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
            SIM_TRY(value_work(stream, run_write, p->writeValue.address, p->writeValue.value, 4, p->writeValue.flags));
            break;
        case CU_STREAM_MEM_OP_WRITE_VALUE_64:
            SIM_TRY(
                value_work(stream, run_write, p->writeValue.address, p->writeValue.value64, 8, p->writeValue.flags));
            break;
        case CU_STREAM_MEM_OP_BARRIER:
        case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
            break;  // every write of the simulator is visible at once
        default:
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}
