/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches from Python: one record holds all of them.
 *
 * A record is one bytes object in Python, because a call of one argument is the cheapest that CFFI makes: addresses,
 * then the packed parameter buffer. A plain launch has those of the stream's box, of the configuration and of what is
 * known of the kernel. In a prepared launch all that stays the same is in a plan: it has those of the stream's box and
 * of the plan. Records of a batch follow one another, and their streams are left out: all of them go to one.
 */
#ifndef CCC_PREPARED_H
#define CCC_PREPARED_H

#include "ccc_launch.h"

typedef struct ccc_target {
    const ccc_box *kernel;
    size_t size; /* of the parameter buffer */
} ccc_target;

typedef struct ccc_call {
    const ccc_box *stream;
    const ccc_config *config;
    const ccc_target *target;
    char arguments[];
} ccc_call;

typedef struct ccc_plan {
    const ccc_box *kernel;
    const ccc_config *config;
    size_t size;   /* of the parameter buffer */
    size_t stride; /* of a whole record, with the padding at its end */
} ccc_plan;

typedef struct ccc_record {
    const ccc_box *stream;
    const ccc_plan *plan;
    char arguments[];
} ccc_record;

/* Records, and every box whose address is in one of them. */
typedef struct ccc_batch {
    const char *records;
    size_t count;
    const ccc_box *const *buffers;
    size_t buffer_count;
} ccc_batch;

static int ccc_launch_record(const char *record)
{
    ccc_call head; /* a copy: bytes objects need not be aligned */
    memcpy(&head, record, sizeof head);
    return ccc_launch(head.config, head.target->kernel, head.stream, record + sizeof head, head.target->size);
}

static int ccc_launch_prepared(const char *record)
{
    ccc_record head;
    memcpy(&head, record, sizeof head);
    return ccc_launch(head.plan->config, head.plan->kernel, head.stream, record + sizeof head, head.plan->size);
}

/* 0 if a launch can be tried, as ccc_launch finds out too. */
static int ccc_plan_ready(const ccc_plan *plan, const ccc_box *stream)
{
    if (!ccc_is_open(plan->kernel))
        return CCC_CLOSED;
    return plan->config->demanding ? ccc_config_ready(plan->config, stream) : 0;
}

/* How many launches of a batch are done when the next one failed. */
static CCC_COLD size_t ccc_batch_failed(size_t done, int status)
{
    if (status == CCC_CLOSED || status == CCC_UNCHECKED) /* which leave nothing behind */
        ccc_fail(status, "");
    return done;
}

/*
 * Launch a batch in order, without the first `done`, and return how many are launched then: all of them, or as many as
 * come before the one that failed. Before anything is launched everything is looked at that can be known to fail.
 */
static size_t ccc_launch_batch(const ccc_batch *batch, const ccc_box *stream, size_t done)
{
    ccc_record head;
    const char *record = batch->records, *next;
    int status = ccc_is_open(stream) ? 0 : CCC_CLOSED;
    for (size_t index = 0; index < batch->buffer_count; index++)
        if (!ccc_is_open(batch->buffers[index]))
            status = CCC_CLOSED;
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
        status = ccc_launch(head.plan->config, head.plan->kernel, stream, record + sizeof head, head.plan->size);
        if (status)
            return ccc_batch_failed(done, status);
    }
    return done;
}

#endif
