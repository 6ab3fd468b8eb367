// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Launches from Python, which packs the parameter buffer: one by one, or as records of a batch that follow one another.
// In a prepared launch all that stays the same is in a plan.
#ifndef CCC_PREPARED_H
#define CCC_PREPARED_H

#include "launch/ccc_launch.h"

// Records, and every handle whose address is in one of them.
typedef struct ccc_batch {
    const char *records;
    size_t count;
    ccc_handle *const *buffers;
    size_t buffer_count;
} ccc_batch;

// 0 if a launch can be tried, as ccc_launch finds out too.
static int ccc_plan_ready(const ccc_plan *plan, const ccc_handle *stream)
{
    if (!ccc_is_open(plan->target.kernel))
        return CCC_CLOSED;
    return plan->config->demanding ? ccc_config_ready(plan->config, plan->target.kernel, stream) : 0;
}

// How many launches of a batch are done when the next one failed.
static CCC_COLD size_t ccc_batch_failed(size_t done, int status)
{
    if (status == CCC_CLOSED || status == CCC_UNCHECKED)  // which leave nothing behind
        ccc_fail(status, "");
    return done;
}

// The same as below for a caller who has a use of the stream and all buffers.
static size_t ccc_launch_records(const ccc_batch *batch, const ccc_handle *stream, size_t done)
{
    ccc_record head;
    const char *record = batch->records, *next;
    int status = 0;
    for (size_t index = 0; index < done; index++, record += head.plan->stride)
        memcpy(&head, record, sizeof head);
    next = record;
    for (size_t index = done; index < batch->count && status == 0; index++, next += head.plan->stride) {
        memcpy(&head, next, sizeof head);
        status = ccc_plan_ready(head.plan, stream);
    }
    if (status)
        return ccc_batch_failed(done, status);
    for (; done < batch->count; done++, record += head.plan->stride) {
        memcpy(&head, record, sizeof head);
        char *arguments = (char *)record + sizeof head;
        status = ccc_launch(&head.plan->target, head.plan->config, stream, arguments, NULL, NULL, 0);
        if (status)
            return ccc_batch_failed(done, status);
    }
    return done;
}

// Launch a batch in order, without the first `done`, and return how many are launched then: all of them, or as many as
// come before the one that failed. Before anything is launched everything is looked at that can be known to fail.
static size_t ccc_launch_batch(const ccc_batch *batch, const ccc_handle *stream, size_t done)
{
    CCC_USE_OR(stream, ccc_batch_failed(done, CCC_CLOSED));
    if (!ccc_acquire_all(batch->buffers, batch->buffer_count))
        return ccc_batch_failed(done, CCC_CLOSED);
    int status = ccc_uses_objects(stream, batch->buffers, batch->buffer_count);
    done = status ? ccc_batch_failed(done, status) : ccc_launch_records(batch, stream, done);
    ccc_release_all(batch->buffers, batch->buffer_count);
    return done;
}

#endif
