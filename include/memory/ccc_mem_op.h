// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Stream memory operations: writes of values in stream order, waits for values, and batches of both.
#ifndef CCC_MEM_OP_H
#define CCC_MEM_OP_H

#include "memory/ccc_memory.h"

// Write a value of 32 or 64 bits at an offset, which is in bounds.
static int ccc_write_value(const ccc_handle *buffer, size_t offset, uint64_t value, int bits, const ccc_handle *stream)
{
    CCC_USE(buffer);
    CCC_USE(stream);
    CCC_USES_OBJECTS(stream, buffer);
    CCC_SUBMIT;
    if (bits == 32)
        CCC_TRY(cuStreamWriteValue32, CCC_STRM(stream), buffer->value + offset, (uint32_t)value, 0);
    else
        CCC_TRY(cuStreamWriteValue64, CCC_STRM(stream), buffer->value + offset, value, 0);
    return 0;
}

// Have a stream wait until a value at an offset, which is in bounds, is as the flags say.
static int ccc_wait_value(const ccc_handle *buffer, size_t offset, uint64_t value, int bits, unsigned int flags,
                          const ccc_handle *stream)
{
    CCC_USE(buffer);
    CCC_USE(stream);
    CCC_USES_OBJECTS(stream, buffer);
    CCC_SUBMIT;
    if (bits == 32)
        CCC_TRY(cuStreamWaitValue32, CCC_STRM(stream), buffer->value + offset, (uint32_t)value, flags);
    else
        CCC_TRY(cuStreamWaitValue64, CCC_STRM(stream), buffer->value + offset, value, flags);
    return 0;
}

// Where an operation has its address; NULL for barriers and flushes, which have none.
static CUdeviceptr *ccc_mem_op_address(CUstreamBatchMemOpParams *operation)
{
    switch (operation->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64: return &operation->waitValue.address;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64: return &operation->writeValue.address;
    default: return NULL;
    }
}

static void ccc_batch_mem_op_release(ccc_handle *const *buffers, unsigned int count)
{
    while (count-- > 0)
        if (buffers[count])
            ccc_release(buffers[count]);
}

// Submit operations to a stream in one call. Each has its buffer, whose address is added to the operation's, which is
// an offset in bounds; or NULL, if the address is one or there is none.
static int ccc_batch_mem_op(CUstreamBatchMemOpParams *operations, ccc_handle *const *buffers, unsigned int count,
                            const ccc_handle *stream)
{
    CCC_USE(stream);
    for (unsigned int i = 0; i < count; i++) {
        if (buffers[i] == NULL)
            continue;
        if (!ccc_acquire(buffers[i])) {
            ccc_batch_mem_op_release(buffers, i);
            return CCC_CLOSED;
        }
        *ccc_mem_op_address(&operations[i]) += buffers[i]->value;
    }
    CUresult result = CUDA_SUCCESS;
    int status = ccc_uses_objects(stream, buffers, count);
    if (status == 0) {
        CCC_SUBMIT;
        result = cuStreamBatchMemOp(CCC_STRM(stream), count, operations, 0);
    }
    ccc_batch_mem_op_release(buffers, count);
    return result ? ccc_fail((int)result, "cuStreamBatchMemOp") : status;
}

#endif
