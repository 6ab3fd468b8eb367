// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// What _calls.c calls: helpers of the CFFI module, which it is not linked with.
#ifndef CCC_CALLS_H
#define CCC_CALLS_H

#include "launch/ccc_target.h"
#include "memory/ccc_dlpack.h"

// Each call, for those who expand CALL(name, function, type, parameters): the table and its structure.
#define CCC_CALLS(CALL) \
    CALL(set_making, ccc_set_making, void, (int making)) \
    CALL(last_status, ccc_last_status, int, (void)) \
    CALL(bytes, ccc_handle_bytes, size_t, (const ccc_handle *handle)) \
    CALL(is_borrowed, ccc_is_borrowed, int, (const ccc_handle *handle)) \
    CALL(acquire, ccc_acquire, int, (const ccc_handle *handle)) \
    CALL(release, ccc_release, void, (ccc_handle *handle)) \
    CALL(end_unused, ccc_end_closed, int, (ccc_handle *handle)) \
    CALL(cleanup_waiting, ccc_cleanup_waiting, int, (void)) \
    CALL(release_object, ccc_release_object, int, (ccc_handle *handle)) \
    CALL(device_now, ccc_device_now, int, (void)) \
    CALL(device_set_current, ccc_device_set_current, int, (int device)) \
    CALL(pool_allocate, ccc_pool_allocate, ccc_handle *, (ccc_handle *pool, ccc_handle *stream, size_t size)) \
    CALL(event_create, ccc_event_create, ccc_handle *, (int device, unsigned int flags)) \
    CALL(stream_create, ccc_stream_create, ccc_handle *, (int device, unsigned int flags, int priority)) \
    CALL(fill_in, ccc_fill_in, int, (const ccc_handle *buffer, const ccc_handle *stream, uint32_t value, int width)) \
    CALL(copy_in, ccc_copy_in, int, \
         (const ccc_handle *destination, const ccc_handle *source, const ccc_handle *stream)) \
    CALL(event_record_in, ccc_event_record_in, int, (ccc_handle *event, const ccc_handle *stream)) \
    CALL(stream_wait_event_in, ccc_stream_wait_event_in, int, (const ccc_handle *stream, const ccc_handle *event)) \
    CALL(stream_wait_stream_in, ccc_stream_wait_stream_in, int, (const ccc_handle *stream, ccc_handle *other)) \
    CALL(event_elapsed_in, ccc_event_elapsed_in, double, (const ccc_handle *start, const ccc_handle *end)) \
    CALL(event_query_in, ccc_event_query_in, int, (const ccc_handle *event)) \
    CALL(event_sync_in, ccc_event_sync_slice_in, int, (const ccc_handle *event)) \
    CALL(stream_sync_in, ccc_stream_sync_slice_in, int, (const ccc_handle *stream)) \
    CALL(graph_launch_in, ccc_graph_launch_in, int, (ccc_handle *executable, ccc_handle *stream)) \
    CALL(launch_in, ccc_launch_in, int, \
         (const ccc_config *config, const ccc_handle *kernel, const ccc_handle *stream, const char *arguments, \
          size_t size, ccc_handle *const *objects, size_t count)) \
    CALL(tensor_for, ccc_tensor_for, uint64_t, \
         (ccc_handle *buffer, DLDevice device, int versioned, uint64_t stream, int *status))

// For those without the driver's header: CUDA_ERROR_NOT_READY.
#define CCC_NOT_READY 600

typedef struct ccc_calls {
#define CCC_CALL(name, function, type, parameters) type(*name) parameters;
    CCC_CALLS(CCC_CALL)
#undef CCC_CALL
    struct ccc_gil *gil;
    unsigned int event_flags, stream_flags;  // of new ones without options
    void *from_pointer;                      // CFFI's own function that makes cdata of a pointer,
    void *to_pointer;                        // and the one that takes the pointer out again
} ccc_calls;

#endif
