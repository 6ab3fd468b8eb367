/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* What _calls.c calls: helpers of the CFFI module, which it is not linked with. */
#ifndef CCC_CALLS_H
#define CCC_CALLS_H

#include "launch/ccc_target.h"
#include "memory/ccc_dlpack.h"

/* Each call, for those who expand CALL(name, function, type, parameters): the table and its structure. */
#define CCC_CALLS(CALL) \
    CALL(kind, ccc_box_kind, ccc_kind, (const ccc_box *box)) \
    CALL(bytes, ccc_box_bytes, size_t, (const ccc_box *box)) \
    CALL(is_open, ccc_is_open, int, (const ccc_box *box)) \
    CALL(is_borrowed, ccc_is_borrowed, int, (const ccc_box *box)) \
    CALL(handle, ccc_handle, uint64_t, (const ccc_box *box)) \
    CALL(close, ccc_close, int, (ccc_box *box)) \
    CALL(drop, ccc_drop, int, (ccc_box *box)) \
    CALL(pool_allocate, ccc_pool_allocate, ccc_box *, (ccc_box *pool, ccc_box *stream, size_t size)) \
    CALL(event_create, ccc_event_create, ccc_box *, (int device, unsigned int flags)) \
    CALL(stream_create, ccc_stream_create, ccc_box *, (int device, unsigned int flags, int priority)) \
    CALL(fill, ccc_fill, int, (const ccc_box *buffer, const ccc_box *stream, uint32_t value, int width)) \
    CALL(copy, ccc_copy, int, (const ccc_box *destination, const ccc_box *source, const ccc_box *stream)) \
    CALL(event_record, ccc_event_record, int, (ccc_box *event, const ccc_box *stream)) \
    CALL(stream_wait_event, ccc_stream_wait_event, int, (const ccc_box *stream, const ccc_box *event)) \
    CALL(stream_wait_stream, ccc_stream_wait_stream, int, (const ccc_box *stream, ccc_box *other)) \
    CALL(event_elapsed, ccc_event_elapsed, double, (const ccc_box *start, const ccc_box *end)) \
    CALL(event_query, ccc_event_query, int, (const ccc_box *event)) \
    CALL(event_sync, ccc_event_sync, int, (const ccc_box *event)) \
    CALL(stream_sync, ccc_stream_sync, int, (const ccc_box *stream)) \
    CALL(launch_target, ccc_launch_target, int, (const ccc_target *target, const ccc_config *config, \
         const ccc_box *stream, const char *arguments, ccc_box *const *buffers, size_t count)) \
    CALL(launch_plan, ccc_launch_plan, int, (const ccc_plan *plan, const ccc_box *stream, \
         const char *arguments, ccc_box *const *buffers, size_t count)) \
    CALL(tensor_for, ccc_tensor_for, uint64_t, (ccc_box *buffer, DLDevice device, int versioned, \
         uint64_t stream, int *status)) \
    CALL(tensor_delete, ccc_tensor_delete, void, (uint64_t tensor))

typedef struct ccc_calls {
#define CCC_CALL(name, function, type, parameters) type(*name) parameters;
    CCC_CALLS(CCC_CALL)
#undef CCC_CALL
    struct ccc_gil *gil;
    void *from_pointer; /* CFFI's own function that makes cdata of a pointer, */
    void *to_pointer;   /* and the one that takes the pointer out again */
} ccc_calls;

#endif
