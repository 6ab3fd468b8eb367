/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prepared launches: all that stays the same is in a plan, and one record holds what a launch adds to it.
 *
 * A record is one bytes object in Python, because a call of one argument is the cheapest that CFFI makes: the addresses
 * of the stream's box and of the plan, then the packed parameter buffer. Records of a batch follow one another, and
 * their streams are left out: all of them go to one.
 */
#ifndef CCC_PREPARED_H
#define CCC_PREPARED_H

#include "ccc_launch.h"

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

static int ccc_launch_prepared(const char *record)
{
    ccc_record head; /* a copy: bytes objects need not be aligned */
    memcpy(&head, record, sizeof head);
    return ccc_launch(head.plan->config, head.plan->kernel, head.stream, record + sizeof head, head.plan->size);
}

/*
 * Launch a batch, in order, and return how many were launched: all of them, or as many as came before the one that
 * failed. None is if an object that any of them needs is closed.
 */
static size_t ccc_launch_batch(const ccc_batch *batch, const ccc_box *stream)
{
    ccc_record head;
    const char *record = batch->records;
    int open = ccc_is_open(stream);
    for (size_t index = 0; index < batch->buffer_count; index++)
        open &= ccc_is_open(batch->buffers[index]);
    for (size_t index = 0; index < batch->count; index++, record += head.plan->stride) {
        memcpy(&head, record, sizeof head);
        open &= ccc_is_open(head.plan->kernel);
    }
    if (!open) {
        ccc_fail(CCC_CLOSED, "");
        return 0;
    }
    record = batch->records;
    for (size_t index = 0; index < batch->count; index++, record += head.plan->stride) {
        memcpy(&head, record, sizeof head);
        int status =
            ccc_launch(head.plan->config, head.plan->kernel, stream, record + sizeof head, head.plan->size);
        if (status == CCC_CLOSED) /* just now, in another thread */
            ccc_fail(status, "");
        if (status)
            return index;
    }
    return batch->count;
}

#endif
