// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Arrays of other libraries: where their memory is, whose stream waits for whose, and copies between layouts.
#ifndef CCC_VIEW_H
#define CCC_VIEW_H

#include "memory/ccc_region.h"
#include "memory/ccc_tensor.h"

#define CCC_MAX_AXES 64
#define CCC_MAX_PITCH INT32_MAX  // CU_DEVICE_ATTRIBUTE_MAX_PITCH on every device

// Where device-accessible memory is: the device's ordinal times 256, plus DLPack's device type. Negative: a failure,
// whose status ccc_last_status() has. An address that the driver does not know (0, where an array is empty, or system
// memory that the device can use) belongs to the current device.
static int64_t ccc_view_locate(uint64_t pointer)
{
    int kind = 0, device = -1, managed = 0;
    if (pointer && ccc_pointer_query(pointer, &kind, &device, &managed))
        return -1;
    if (device < 0 && (device = ccc_current_device()) < 0) {
        if (device != -1)
            return -1;
        device = 0;
    }
    int type = managed ? CCC_DL_CUDA_MANAGED : kind == CU_MEMORYTYPE_HOST ? CCC_DL_CUDA_HOST : CCC_DL_CUDA;
    return (int64_t)device << 8 | type;
}

// Make the consumer's stream wait for the producer's, both given by driver handle: they are other libraries'. A default
// stream is one of the device's.
static int ccc_view_order(uint64_t consumer, uint64_t producer, int device)
{
    consumer = consumer ? consumer : 1;
    producer = producer ? producer : 1;
    if (consumer == producer)
        return 0;
    ccc_stream waiting = CCC_STREAM_OF(consumer, consumer <= 2 ? CCC_TOKEN : 0);
    ccc_stream awaited = CCC_STREAM_OF(producer, producer <= 2 ? CCC_TOKEN : 0);
    CCC_SCOPE(scope, ccc_enter(&scope, device));
    return ccc_left(&scope, ccc_stream_wait_stream(&waiting.timeline.handle, &awaited.timeline.handle));
}

// The same for a consumer's stream of ours, which another thread may close.
static int ccc_view_order_handle(const ccc_handle *consumer, uint64_t producer, int device)
{
    CCC_USE(consumer);
    return ccc_view_order(consumer->value, producer, device);
}

// One operand of a copy: strides in bytes.
typedef struct ccc_side {
    ccc_handle *handle;  // the buffer that the memory is of; NULL if the caller keeps it
    uint64_t address;
    int64_t strides[CCC_MAX_AXES];
    int on_host;  // ordinary memory, which only the host can access
} ccc_side;

// A copy between two layouts of one shape. ccc_view_plan makes of it what the driver can do in one call.
typedef struct ccc_strided_copy {
    ccc_side target;
    ccc_side source;
    int64_t shape[CCC_MAX_AXES];
    int64_t itemsize;
    int ndim;
    int device;
    size_t width;  // from here on the plan: bytes that are adjacent on both sides, and how often
    int64_t rows, layers;
    int64_t target_pitch, source_pitch, target_height, source_height;
} ccc_strided_copy;

// Remove one axis.
static void ccc_remove_axis(ccc_strided_copy *copy, int axis)
{
    --copy->ndim;
    for (int i = axis; i < copy->ndim; ++i) {
        copy->shape[i] = copy->shape[i + 1];
        copy->target.strides[i] = copy->target.strides[i + 1];
        copy->source.strides[i] = copy->source.strides[i + 1];
    }
}

static void ccc_swap(int64_t *values, int i, int j)
{
    int64_t value = values[i];
    values[i] = values[j];
    values[j] = value;
}

// Bring the axes into the order of the destination's strides, the longest first; none is negative there afterwards.
static void ccc_sort_axes(ccc_strided_copy *copy)
{
    for (int i = copy->ndim; i-- > 0;)
        if (copy->shape[i] == 1) {
            ccc_remove_axis(copy, i);
        } else if (copy->target.strides[i] < 0) {  // walk the axis the other way, on both sides
            copy->target.address += (uint64_t)(copy->target.strides[i] * (copy->shape[i] - 1));
            copy->source.address += (uint64_t)(copy->source.strides[i] * (copy->shape[i] - 1));
            copy->target.strides[i] = -copy->target.strides[i];
            copy->source.strides[i] = -copy->source.strides[i];
        }
    for (int i = 1; i < copy->ndim; ++i)
        for (int j = i; j > 0 && copy->target.strides[j - 1] < copy->target.strides[j]; --j) {
            ccc_swap(copy->shape, j - 1, j);
            ccc_swap(copy->target.strides, j - 1, j);
            ccc_swap(copy->source.strides, j - 1, j);
        }
}

// The height of a layer in rows, where one side has this layer stride; 0 if there is none.
static int64_t ccc_height(int64_t layer, int64_t pitch, int64_t rows)
{
    return pitch > 0 && layer % pitch == 0 && layer / pitch >= rows ? layer / pitch : 0;
}

// Plan the copy. Returns 1 if it can be done in one call: after merging axes, a run of bytes that is adjacent on both
// sides, repeated along at most two axes whose strides fit a pitch and a height. Returns 0 if it cannot.
static int ccc_view_plan(ccc_strided_copy *copy)
{
    ccc_sort_axes(copy);
    for (int i = copy->ndim - 1; i > 0; --i)
        if (copy->target.strides[i - 1] == copy->target.strides[i] * copy->shape[i] &&
            copy->source.strides[i - 1] == copy->source.strides[i] * copy->shape[i]) {
            copy->shape[i] *= copy->shape[i - 1];
            ccc_remove_axis(copy, i - 1);
        }
    int64_t width = copy->itemsize;
    if (copy->ndim && copy->target.strides[copy->ndim - 1] == width && copy->source.strides[copy->ndim - 1] == width)
        width *= copy->shape[--copy->ndim];  // the axes that remain repeat this run of bytes
    copy->width = (size_t)width;
    copy->rows = copy->layers = 1;
    copy->target_pitch = copy->source_pitch = width;
    if (copy->ndim > 2)
        return 0;
    if (copy->ndim) {
        copy->rows = copy->shape[copy->ndim - 1];
        copy->target_pitch = copy->target.strides[copy->ndim - 1];
        copy->source_pitch = copy->source.strides[copy->ndim - 1];
    }
    copy->target_height = copy->source_height = copy->rows;
    if (copy->ndim == 2) {
        copy->layers = copy->shape[0];
        copy->target_height = ccc_height(copy->target.strides[0], copy->target_pitch, copy->rows);
        copy->source_height = ccc_height(copy->source.strides[0], copy->source_pitch, copy->rows);
    }
    if (copy->rows == 1 && copy->layers == 1)
        return 1;
    return copy->target_height && copy->source_height && copy->target_pitch >= width && copy->source_pitch >= width &&
           copy->target_pitch <= CCC_MAX_PITCH && copy->source_pitch <= CCC_MAX_PITCH;
}

static void ccc_copy_axis(const ccc_strided_copy *copy, int axis, char *to, const char *from)
{
    if (axis == copy->ndim) {
        memcpy(to, from, copy->width);
        return;
    }
    for (int64_t i = 0; i < copy->shape[axis]; ++i)
        ccc_copy_axis(copy, axis + 1, to + i * copy->target.strides[axis], from + i * copy->source.strides[axis]);
}

// Make a planned copy, whatever the plan said, between memory that the host can access. No driver is needed.
static int ccc_view_copy_on_host(const ccc_strided_copy *copy)
{
    CCC_USE_MAYBE(copy->target.handle);
    CCC_USE_MAYBE(copy->source.handle);
    ccc_copy_axis(copy, 0, (char *)(uintptr_t)copy->target.address, (const char *)(uintptr_t)copy->source.address);
    return 0;
}

// Whether the stream is being captured.
static int ccc_view_capturing(const ccc_handle *stream, int *capturing)
{
    CUstreamCaptureStatus status;
    CCC_USE(stream);
    CCC_TRY(cuStreamIsCapturing, CCC_STRM(stream), &status);
    *capturing = status != CU_STREAM_CAPTURE_STATUS_NONE;
    return 0;
}

// Make a token, under which Python references the objects that a copy needs; it is among the finished tensors
// afterwards.
static uint64_t ccc_view_refer(void)
{
    ccc_tensor *tensor = calloc(1, sizeof *tensor);
    if (tensor == NULL) {
        ccc_fail(CCC_NO_MEMORY, "malloc");
        return 0;
    }
    tensor->pinned = 1;
    return (uintptr_t)tensor;
}

static void CUDA_CB ccc_view_copied(void *token)
{
    ccc_in_callback++;
    ccc_tensor_end(token);
    ccc_in_callback--;
}

// A planned copy as rows and layers.
static ccc_region_copy ccc_view_region(const ccc_strided_copy *copy)
{
    return (ccc_region_copy){
        .target = {.handle = copy->target.handle,
                   .address = copy->target.address,
                   .on_host = copy->target.on_host,
                   .pitch = (size_t)copy->target_pitch,
                   .height = (size_t)copy->target_height},
        .source = {.handle = copy->source.handle,
                   .address = copy->source.address,
                   .on_host = copy->source.on_host,
                   .pitch = (size_t)copy->source_pitch,
                   .height = (size_t)copy->source_height},
        .width = copy->width,
        .rows = (size_t)copy->rows,
        .layers = (size_t)copy->layers,
    };
}

// Release a buffer of host memory, and the objects that Python references for `token`, when the work now in a stream is
// done.
static int ccc_view_refer_until(uint64_t token, ccc_handle *buffer, const ccc_handle *stream)
{
    ccc_tensor *tensor = (ccc_tensor *)(uintptr_t)token;
    tensor->buffer = buffer && ccc_retain(buffer) ? buffer : NULL;
    CUresult result;
    {
        CCC_SUBMIT;
        result = cuLaunchHostFunc(CCC_STRM(stream), ccc_view_copied, tensor);
    }
    if (result == CUDA_SUCCESS)
        return 0;
    int status = ccc_fail((int)result, "cuLaunchHostFunc");
    if ((result = cuStreamSynchronize(CCC_STRM(stream))))  // the copy must not outlive its operands
        ccc_cleanup_failed((int)result, "cuStreamSynchronize", stream->value);
    ccc_release(tensor->buffer);
    return status;
}

// Make a planned copy in the order of a stream. With `token`, its objects are released when the copy is done, unless
// this fails with another status than CCC_UNRESTORED. With `wait` this returns when the copy is done, 0 or CCC_ATTEND,
// so that no signal handler runs between.
static int ccc_view_copy(const ccc_strided_copy *copy, ccc_handle *stream, uint64_t token, int wait)
{
    CCC_USE(stream);
    CCC_USE_MAYBE(copy->target.handle);
    CCC_USE_MAYBE(copy->source.handle);
    CCC_USES_OBJECTS(stream, copy->target.handle, copy->source.handle);
    CCC_SCOPE(scope, ccc_enter_stream(&scope, stream, copy->device));
    const ccc_region_copy box = ccc_view_region(copy);
    int status = box.rows == 1 && box.layers == 1
                     ? ccc_copy_plain(box.target.address, box.source.address, box.width, stream)
                     : ccc_region_submit(&box, stream);
    const ccc_failure unrestored = ccc_last;
    if (status && status != CCC_UNRESTORED)
        return status;
    int later = 0;  // of what the copy needs, also where a former context is not current again
    if (token)
        later = ccc_view_refer_until(token, copy->target.on_host ? copy->target.handle : copy->source.handle, stream);
    if (later == 0 && wait)
        later = ccc_stream_sync_in(stream);
    if (status == 0 || (later && later != CCC_ATTEND))
        return ccc_left(&scope, later);
    ccc_last = unrestored;
    return status;
}

#endif
