/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* What _calls.c calls: helpers of the CFFI module, which it is not linked with. */
#ifndef CCC_CALLS_H
#define CCC_CALLS_H

#include "launch/ccc_target.h"
#include "memory/ccc_dlpack.h"

typedef struct ccc_calls {
    ccc_kind (*kind)(const ccc_box *box);
    size_t (*bytes)(const ccc_box *box);
    int (*is_open)(const ccc_box *box);
    int (*is_borrowed)(const ccc_box *box);
    uint64_t (*handle)(const ccc_box *box);
    int (*close)(ccc_box *box);
    int (*drop)(ccc_box *box);
    ccc_box *(*pool_allocate)(ccc_box *pool, ccc_box *stream, size_t size);
    ccc_box *(*event_create)(int device, unsigned int flags);
    ccc_box *(*stream_create)(int device, unsigned int flags, int priority);
    int (*fill)(const ccc_box *buffer, const ccc_box *stream, uint32_t value, int width);
    int (*copy)(const ccc_box *destination, const ccc_box *source, const ccc_box *stream);
    int (*event_record)(ccc_box *event, const ccc_box *stream);
    int (*stream_wait_event)(const ccc_box *stream, const ccc_box *event);
    int (*stream_wait_stream)(const ccc_box *stream, ccc_box *other);
    double (*event_elapsed)(const ccc_box *start, const ccc_box *end);
    int (*event_query)(const ccc_box *event);
    int (*event_sync)(const ccc_box *event);
    int (*stream_sync)(const ccc_box *stream);
    int (*launch_target)(const ccc_target *target, const ccc_config *config, const ccc_box *stream,
                         const char *arguments, ccc_box *const *buffers, size_t count);
    int (*launch_plan)(const ccc_plan *plan, const ccc_box *stream, const char *arguments, ccc_box *const *buffers,
                       size_t count);
    uint64_t (*tensor_for)(ccc_box *buffer, DLDevice device, int versioned, uint64_t stream, int *status);
    void (*tensor_delete)(uint64_t tensor);
    struct ccc_gil *gil;
    void *from_pointer; /* CFFI's own function that makes cdata of a pointer, */
    void *to_pointer;   /* and the one that takes the pointer out again */
} ccc_calls;

#endif
