// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Copies in streams of regions of arrays: to and from memory that has rows and layers, and between arrays.
#ifndef CCC_ARRAY_COPY_H
#define CCC_ARRAY_COPY_H

#include "memory/ccc_region.h"

// Make a copy in the order of a stream, in the array's context: drivers refuse an array of a device that is not
// current, and a default stream is one of the current context.
static int ccc_array_copy(const ccc_region_copy *copy, ccc_handle *stream)
{
    CCC_USE_MAYBE(copy->target.handle);
    CCC_USE_MAYBE(copy->source.handle);
    CCC_USE(stream);
    CCC_SCOPE(scope, ccc_enter_context(&scope, ccc_context_of(ccc_region_array(copy))));
    return ccc_left(&scope, ccc_region_submit(copy, stream));
}

// The same with host memory that the caller keeps, and an event: see ccc_copy_with_event.
static ccc_handle *ccc_array_copy_host(const ccc_region_copy *copy, ccc_handle *stream)
{
    CCC_USE_MAYBE_OR(copy->target.handle, ccc_closed());
    CCC_USE_MAYBE_OR(copy->source.handle, ccc_closed());
    CCC_USE_OR(stream, ccc_closed());
    CCC_SCOPE_OR(NULL, scope, ccc_enter_context(&scope, ccc_context_of(ccc_region_array(copy))));
    int status = ccc_check_capture(stream);
    return status ? ccc_not_copied(status) : ccc_copy_with_event(ccc_region_submit, copy, stream, &scope);
}

#define CCC_TO_ARRAY 1
#define CCC_ON_HOST 2  // only the host can access the buffer

// Copy between a whole array, of so many bytes in a row, rows and layers, and a buffer with the same one after the
// other.
static int ccc_array_copy_buffer(ccc_handle *array, ccc_handle *buffer, int how, const size_t *extents,
                                 ccc_handle *stream)
{
    const ccc_region memory = {
        .handle = buffer, .on_host = (how & CCC_ON_HOST) != 0, .pitch = extents[0], .height = extents[1]};
    const ccc_region whole = {.handle = array};
    const ccc_region_copy copy = {
        .target = how & CCC_TO_ARRAY ? whole : memory,
        .source = how & CCC_TO_ARRAY ? memory : whole,
        .width = extents[0],
        .rows = extents[1],
        .layers = extents[2],
    };
    return ccc_array_copy(&copy, stream);
}

#endif
