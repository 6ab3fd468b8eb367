// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Work of streams that is neither memory nor kernels: host functions, and waiting for and writing values in memory.

#include "streams/stream_work.h"

#include <string.h>
#include <time.h>

#include "driver/logs.h"
#include "memory/allocation.h"
#include "streams/capture.h"
#include "memory/copy.h"

_Atomic size_t sim_host_functions_pending;

// --- Host functions -------------------------------------------------------------------------------------------

struct host_job {
    CUhostFn function;          // or
    CUstreamCallback callback;  // which also hears of errors
    void *data;
    CUstream handle;
};

void sim_host_run(CUhostFn function, void *data)
{
    struct sim_thread *thread = sim_thread();
    thread->in_callback = true;
    function(data);
    thread->in_callback = false;
}

static void run_host(struct sim_stream *stream, void *payload)
{
    const struct host_job *job = payload;
    CUresult status = (CUresult)atomic_load(&stream->context->error);
    if (job->callback) {
        struct sim_thread *thread = sim_thread();
        thread->in_callback = true;
        job->callback(job->handle, status, job->data);
        thread->in_callback = false;
    } else if (status == CUDA_SUCCESS) {
        sim_host_run(job->function, job->data);
    }
    atomic_fetch_sub(&sim_host_functions_pending, 1);
}

static CUresult submit_host(const struct host_job *job, unsigned sync_mode)
{
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_for_work(job->handle, &stream));
    if (sim_capturing(stream))
        return job->callback ? sim_capture_refuse_to_wait(stream)
                             : sim_capture_host(stream, job->function, job->data, sync_mode);
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
    return submit_host(&(struct host_job){.function = fn, .data = userData, .handle = hStream}, 0);
}

SIM_API_STREAM(cuLaunchHostFunc_v2, _ptsz, (CUstream hStream, CUhostFn fn, void *userData, unsigned int syncMode),
               (hStream, fn, userData, syncMode))
{
    enum { MODES = 2 };
    SIM_REQUIRE(fn && syncMode < MODES);
    return submit_host(&(struct host_job){.function = fn, .data = userData, .handle = hStream}, syncMode);
}

SIM_API_STREAM(cuStreamAddCallback, _ptsz,
               (CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags),
               (hStream, callback, userData, flags))
{
    SIM_REQUIRE(callback && !flags);
    return submit_host(&(struct host_job){.callback = callback, .data = userData, .handle = hStream}, 0);
}

// --- Values in memory -----------------------------------------------------------------------------------------

static uint64_t load(const struct sim_value_job *job)
{
    if (job->bytes == 4)
        return __atomic_load_n((const uint32_t *)job->address, __ATOMIC_ACQUIRE);
    return __atomic_load_n((const uint64_t *)job->address, __ATOMIC_ACQUIRE);
}

static bool holds(const struct sim_value_job *job)
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

static bool usable(struct sim_context *context, const struct sim_value_job *job)
{
    struct sim_use use = {.device = context->device, .writes = job->writes};
    if (sim_still_there(job->address, job->bytes, use, job->function))
        return true;
    sim_context_fail(context, CUDA_ERROR_ILLEGAL_ADDRESS, sim_last_report());
    return false;
}

static void wait_for(struct sim_context *context, const struct sim_value_job *job)
{
    const struct timespec pause = {.tv_nsec = 50000};
    while (atomic_load(&context->error) == CUDA_SUCCESS && usable(context, job) && !holds(job))
        nanosleep(&pause, NULL);
}

void sim_value_run(struct sim_context *context, const struct sim_value_job *job)
{
    if (!job->writes)
        wait_for(context, job);
    else if (atomic_load(&context->error) != CUDA_SUCCESS || !usable(context, job))
        return;
    else if (job->bytes == 4)
        __atomic_store_n((uint32_t *)job->address, (uint32_t)job->value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint64_t *)job->address, job->value, __ATOMIC_RELEASE);
}

static void run_value(struct sim_stream *stream, void *payload) { sim_value_run(stream->context, payload); }

static CUresult check_value(const struct sim_value_job *job, unsigned flags)
{
    // Drivers refuse CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER here.
    const unsigned known = job->writes ? 0 : CU_STREAM_WAIT_VALUE_NOR | CU_STREAM_WAIT_VALUE_FLUSH;
    SIM_REQUIRE(!(flags & ~known) && job->address % job->bytes == 0);
    // Flushing remote writes is not offered, as CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES says.
    if (!job->writes && flags & CU_STREAM_WAIT_VALUE_FLUSH)
        return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

CUresult sim_value_check(const struct sim_context *context, const struct sim_value_job *job)
{
    struct sim_allocation found;
    if (!job->bytes)
        return CUDA_SUCCESS;
    SIM_TRY(sim_check_range(context, job->address, job->bytes, job->writes));
    SIM_REQUIRE_THAT(sim_allocation_at(job->address, &found) && !found.managed && found.memory != SIM_POOL_MEMORY &&
                         found.memory != SIM_GRAPH_MEMORY,
                     "operations on values cannot use %#zx: the memory is managed, of a pool or of a graph",
                     (size_t)job->address);
    return CUDA_SUCCESS;
}

CUresult sim_value_read(const CUstreamBatchMemOpParams *p, struct sim_value_job *job)
{
    unsigned flags;
    *job = (struct sim_value_job){.function = sim_thread()->function};
    switch ((int)p->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        job->bytes = p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ? 4 : 8;
        job->address = p->waitValue.address;
        job->value = job->bytes == 4 ? p->waitValue.value : p->waitValue.value64;
        flags = job->condition = p->waitValue.flags;
        break;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        job->bytes = p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 ? 4 : 8;
        job->address = p->writeValue.address;
        job->value = job->bytes == 4 ? p->writeValue.value : p->writeValue.value64;
        job->writes = true;
        flags = p->writeValue.flags;
        break;
    case CU_STREAM_MEM_OP_BARRIER:  // every write of the simulator is visible at once
        SIM_REQUIRE(p->memoryBarrier.flags <= CU_STREAM_MEMORY_BARRIER_TYPE_GPU);
        return CUDA_SUCCESS;
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES: return CUDA_ERROR_NOT_SUPPORTED;  // as for waits
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return check_value(job, flags);
}

static CUresult value_work(CUstream handle, const CUstreamBatchMemOpParams *operations, unsigned count)
{
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_for_work(handle, &stream));
    if (sim_capturing(stream))
        return sim_capture_values(stream, operations, count);
    struct sim_value_job job;
    for (unsigned i = 0; i < count; i++) {  // first, so that of a batch with a wrong operation none is done
        SIM_TRY(sim_value_read(&operations[i], &job));
        SIM_TRY(sim_value_check(stream->context, &job));
    }
    for (unsigned i = 0; i < count; i++) {
        SIM_TRY(sim_value_read(&operations[i], &job));
        if (job.bytes)
            SIM_TRY(sim_do(stream, run_value, &job, sizeof job, job.writes, false));
    }
    return CUDA_SUCCESS;
}

#define VALUE_FUNCTIONS(bits, type, member) \
    SIM_API_STREAM(cuStreamWaitValue##bits##_v2, _ptsz, \
                   (CUstream stream, CUdeviceptr addr, type value, unsigned int flags), (stream, addr, value, flags)) \
    { \
        CUstreamBatchMemOpParams p = { \
            .waitValue = { \
                .operation = CU_STREAM_MEM_OP_WAIT_VALUE_##bits, .address = addr, .member = value, .flags = flags}}; \
        return value_work(stream, &p, 1); \
    } \
    SIM_API_STREAM(cuStreamWriteValue##bits##_v2, _ptsz, \
                   (CUstream stream, CUdeviceptr addr, type value, unsigned int flags), (stream, addr, value, flags)) \
    { \
        CUstreamBatchMemOpParams p = { \
            .writeValue = { \
                .operation = CU_STREAM_MEM_OP_WRITE_VALUE_##bits, .address = addr, .member = value, .flags = flags}}; \
        return value_work(stream, &p, 1); \
    }

VALUE_FUNCTIONS(32, cuuint32_t, value)
VALUE_FUNCTIONS(64, cuuint64_t, value64)

SIM_API_STREAM(cuStreamBatchMemOp_v2, _ptsz,
               (CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray, unsigned int flags),
               (stream, count, paramArray, flags))
{
    enum { MOST = 256 };
    SIM_REQUIRE(paramArray && count && count <= MOST && !flags);
    return value_work(stream, paramArray, count);
}
