/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of regions of arrays: to and from memory that has rows and layers, and between arrays. */
#ifndef CCC_ARRAY_COPY_H
#define CCC_ARRAY_COPY_H

#include "memory/ccc_copy.h"
#include "texture/ccc_texture.h"

/* One operand. */
typedef struct ccc_box {
    ccc_handle *handle; /* the array; or the buffer that the memory is of, NULL if the caller keeps it */
    uint64_t address;   /* of memory: the first byte; 0 where the buffer begins */
    int on_host;        /* memory that only the host can access */
    size_t x, y, z;     /* of an array: bytes, rows and layers before the region */
    size_t pitch, height; /* of memory: bytes from row to row, rows from layer to layer */
} ccc_box;

typedef struct ccc_box_copy {
    ccc_box target, source; /* at least one is an array */
    size_t width, rows, layers; /* bytes in a row, rows, layers */
} ccc_box_copy;

static int ccc_box_is_array(const ccc_box *box)
{
    return box->handle && box->handle->kind == CCC_ARRAY;
}

static uint64_t ccc_box_address(const ccc_box *box)
{
    return box->address == 0 && box->handle ? box->handle->value : box->address;
}

static CUmemorytype ccc_box_type(const ccc_box *box)
{
    return ccc_box_is_array(box) ? CU_MEMORYTYPE_ARRAY : box->on_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_UNIFIED;
}

/* Make the copy. The caller has a use of the operands and the stream. */
static int ccc_box_submit(const void *data, ccc_handle *stream)
{
    const ccc_box_copy *copy = data;
    const ccc_box *to = &copy->target, *from = &copy->source;
    CUDA_MEMCPY3D box = {
        .srcXInBytes = from->x, .srcY = from->y, .srcZ = from->z,
        .srcMemoryType = ccc_box_type(from),
        .srcPitch = from->pitch, .srcHeight = from->height,
        .dstXInBytes = to->x, .dstY = to->y, .dstZ = to->z,
        .dstMemoryType = ccc_box_type(to),
        .dstPitch = to->pitch, .dstHeight = to->height,
        .WidthInBytes = copy->width, .Height = copy->rows, .Depth = copy->layers,
    };
    if (ccc_box_is_array(from))
        box.srcArray = (CUarray)CCC_POINTER(from->handle);
    else
        box.srcHost = (const void *)(uintptr_t)(box.srcDevice = ccc_box_address(from));
    if (ccc_box_is_array(to))
        box.dstArray = (CUarray)CCC_POINTER(to->handle);
    else
        box.dstHost = (void *)(uintptr_t)(box.dstDevice = ccc_box_address(to));
    CCC_SUBMIT;
    CCC_TRY(cuMemcpy3DAsync, &box, CCC_STRM(stream));
    return 0;
}

/*
 * Make a copy in the order of a stream; a default stream is one of the array's context. With `event`, host memory that the
 * caller keeps takes part: see ccc_copy_with_event.
 */
static int ccc_array_copy(const ccc_box_copy *copy, ccc_handle *stream, ccc_handle **event)
{
    CCC_USE_MAYBE(copy->target.handle);
    CCC_USE_MAYBE(copy->source.handle);
    CCC_USE(stream);
    const ccc_handle *array = ccc_box_is_array(&copy->target) ? copy->target.handle : copy->source.handle;
    int pushed = stream->flags & CCC_TOKEN ? ccc_push(ccc_array_context(array)) : 0;
    int status = event ? ccc_copy_check_capture(stream) : 0;
    if (status == 0)
        status = event ? ccc_copy_with_event(ccc_box_submit, copy, stream, event) : ccc_box_submit(copy, stream);
    ccc_pop(pushed);
    return status;
}

#define CCC_TO_ARRAY 1
#define CCC_ON_HOST 2 /* only the host can access the buffer */

/* Copy between a whole array, of so many bytes in a row, rows and layers, and a buffer with the same one after the other. */
static int ccc_array_copy_buffer(ccc_handle *array, ccc_handle *buffer, int how, const size_t *extents,
                                 ccc_handle *stream)
{
    const ccc_box memory = {.handle = buffer, .on_host = (how & CCC_ON_HOST) != 0, .pitch = extents[0],
                            .height = extents[1]};
    const ccc_box whole = {.handle = array};
    const ccc_box_copy copy = {
        .target = how & CCC_TO_ARRAY ? whole : memory, .source = how & CCC_TO_ARRAY ? memory : whole,
        .width = extents[0], .rows = extents[1], .layers = extents[2],
    };
    return ccc_array_copy(&copy, stream, NULL);
}

#endif
