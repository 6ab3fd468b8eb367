// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Copies: between buffers, alone and as a batch, and between a buffer and memory of a Python object.
//
// A copy with attributes says how its source may be read. Drivers have such copies from CUDA 13.0 on as a batch and
// from 13.2 on alone. A plain copy, in stream order, keeps every promise that attributes make but one: that the source
// was read when the call returns.
#ifndef CCC_COPY_H
#define CCC_COPY_H

#include "handles/ccc_probe.h"
#include "memory/ccc_memory.h"

#define CCC_OVERLAP (-20)        // what is written is also read, or written twice
#define CCC_LEGACY_STREAM (-21)  // the legacy default stream takes no attributes
#define CCC_READ_LATER (-23)     // this driver cannot promise that the source is read during the call

// Whether two ranges of the same size have bytes in common.
static int ccc_overlap(uint64_t one, uint64_t other, size_t size)
{
    return (one > other ? one - other : other - one) < size;
}

// Whether the driver has copies with attributes, and so had the headers of this build.
static int ccc_copy_has_attributes(int batch)
{
#if CUDA_VERSION >= 13020
    if (!batch)
        return ccc_driver_version() >= 13020;
#endif
#if CUDA_VERSION >= 13000
    if (batch)
        return ccc_driver_version() >= 13000;
#endif
    return 0;
}

// A status unless copies with these attributes can be made in the stream, of which the caller has a use.
static int ccc_copy_check(const ccc_handle *stream, const CUmemcpyAttributes *const *attributes, size_t count,
                          int batch)
{
    if (ccc_stream_is_legacy(stream))
        return CCC_LEGACY_STREAM;
    for (size_t i = 0; i < count && !ccc_copy_has_attributes(batch); i++)
        if (attributes[i]->srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL)
            return CCC_READ_LATER;
    return ccc_check_capture(stream);
}

// The primary context of the device whose memory is at an address; NULL if that is no memory of a device.
static ccc_handle *ccc_copy_owner(uint64_t address)
{
    int kind = 0, device = -1, managed = 0;
    if (ccc_pointer_query(address, &kind, &device, &managed) || kind != CU_MEMORYTYPE_DEVICE || managed)
        return NULL;
    return ccc_primary_context(device);
}

// A plain copy in stream order. Drivers refuse it when the device that is current has no access to memory that is in a
// pool or mapped: then it is made in the context whose memory it is, or, between devices, with both contexts said.
static int ccc_copy_plain(uint64_t to, uint64_t from, size_t size, const ccc_handle *stream)
{
    CCC_SUBMIT;
    CUresult result = cuMemcpyAsync(to, from, size, CCC_STRM(stream));
    if (CCC_LIKELY(result == CUDA_SUCCESS))
        return 0;
    ccc_handle *target = result == CUDA_ERROR_INVALID_VALUE ? ccc_copy_owner(to) : NULL;
    ccc_handle *source = result == CUDA_ERROR_INVALID_VALUE ? ccc_copy_owner(from) : NULL;
    if (target && source) {
        CCC_TRY(cuMemcpyPeerAsync, to, CCC_CTX(target), from, CCC_CTX(source), size, CCC_STRM(stream));
        ccc_probe_note("cuMemcpyAsync", CUDA_ERROR_INVALID_VALUE);
        return 0;
    }
    int pushed = ccc_push(target ? target : source);
    if (pushed)
        result = cuMemcpyAsync(to, from, size, CCC_STRM(stream));
    if (result == CUDA_SUCCESS)
        ccc_probe_note("cuMemcpyAsync", CUDA_ERROR_INVALID_VALUE);
    return ccc_restored(pushed, result ? ccc_fail((int)result, "cuMemcpyAsync") : 0);
}

// One copy, whose operands have been checked.
static int ccc_copy_submit(uint64_t to, uint64_t from, size_t size, const ccc_handle *stream,
                           const CUmemcpyAttributes *attributes)
{
#if CUDA_VERSION >= 13020
    if (attributes && ccc_copy_has_attributes(0)) {
        int pushed = ccc_stream_push((ccc_handle *)stream);
        if (pushed < 0)
            return ccc_last_status();
        CUresult result =
            cuMemcpyWithAttributesAsync(to, from, size, (CUmemcpyAttributes *)attributes, CCC_STRM(stream));
        return ccc_restored(pushed, result ? ccc_fail((int)result, "cuMemcpyWithAttributesAsync") : 0);
    }
#endif
    return ccc_copy_plain(to, from, size, stream);
}

// The bytes to copy between two buffers of one size, of which one may have grown since Python compared the sizes.
static size_t ccc_copy_size(const ccc_handle *destination, const ccc_handle *source)
{
    size_t to = ccc_as_buffer(destination)->size, from = ccc_as_buffer(source)->size;
    return to < from ? to : from;
}

// The same as below for a caller who has a use of all three.
static int ccc_copy_in(const ccc_handle *destination, const ccc_handle *source, const ccc_handle *stream)
{
    size_t size = ccc_copy_size(destination, source);
    if (ccc_overlap(destination->value, source->value, size))
        return CCC_OVERLAP;
    if (size == 0)
        return 0;
    CCC_USES_OBJECTS(stream, destination, source);
    return ccc_copy_plain(destination->value, source->value, size, stream);
}

// Copy a whole buffer into one of the same size.
static int ccc_copy(const ccc_handle *destination, const ccc_handle *source, const ccc_handle *stream)
{
    CCC_USE(destination);
    CCC_USE(source);
    CCC_USE(stream);
    return ccc_copy_in(destination, source, stream);
}

// The same, with attributes.
static int ccc_copy_with(const ccc_handle *destination, const ccc_handle *source, const ccc_handle *stream,
                         const CUmemcpyAttributes *attributes)
{
    CCC_USE(destination);
    CCC_USE(source);
    CCC_USE(stream);
    int status = ccc_copy_check(stream, &attributes, 1, 0);
    if (status)
        return status;
    size_t size = ccc_copy_size(destination, source);
    if (ccc_overlap(destination->value, source->value, size))
        return CCC_OVERLAP;
    return size > 0 ? ccc_copy_submit(destination->value, source->value, size, stream, attributes) : 0;
}

// Makes a copy in a stream, of which the caller has a use.
typedef int (*ccc_copy_maker)(const void *copy, ccc_handle *stream);

// The failure of a copy that returns an event.
static CCC_COLD ccc_handle *ccc_not_copied(int status)
{
    if (ccc_last_status() != status)
        ccc_fail(status, "");
    return NULL;
}

// Make a copy that uses host memory which the caller keeps until the event is reached. Returns the event, which is
// closed if the copy is done; NULL if none was made, or the copy is done and the former context is not current again:
// also that of `outer`, which may be NULL. The caller has a use of the stream.
static ccc_handle *ccc_copy_with_event(ccc_copy_maker make, const void *copy, ccc_handle *stream, ccc_scope *outer)
{
    CCC_SCOPE_OR(NULL, scope, ccc_enter_home(&scope, stream));
    // before the copy: only the event says how long the memory is needed
    ccc_handle *event = ccc_event_create_in(scope.context, CU_EVENT_DISABLE_TIMING);
    if (event == NULL)
        return NULL;
    int status = make(copy, stream);
    CUresult result = status ? CUDA_SUCCESS : cuEventRecord((CUevent)CCC_POINTER(event), CCC_STRM(stream));
    if (result) {
        // The copy is under way: wait for it instead.
        ccc_cleanup_failed((int)result, "cuEventRecord", event->value);
        if ((result = cuStreamSynchronize(CCC_STRM(stream))))
            status = ccc_fail((int)result, "cuStreamSynchronize");
    }
    status = ccc_left(&scope, status);
    if (outer)
        status = ccc_left(outer, status);
    if (status == CCC_UNRESTORED && (result = cuStreamSynchronize(CCC_STRM(stream))))  // the caller frees its memory
        ccc_cleanup_failed((int)result, "cuStreamSynchronize", stream->value);
    if (status) {
        ccc_release_object(event);
        return ccc_not_copied(status);
    }
    if (cuEventQuery((CUevent)CCC_POINTER(event)) == CUDA_SUCCESS)
        ccc_close(event);
    return event;
}

// A copy between bytes that are in one piece.
typedef struct ccc_line {
    uint64_t to, from;
    size_t size;
    const CUmemcpyAttributes *attributes;
} ccc_line;

static int ccc_copy_line(const void *copy, ccc_handle *stream)
{
    const ccc_line *line = copy;
    return line->size ? ccc_copy_submit(line->to, line->from, line->size, stream, line->attributes) : 0;
}

// Copy between a whole buffer and `size` bytes of host memory, as ccc_copy_with_event says. The buffer has more if
// it has grown since the sizes were compared. With attributes NULL it is a plain copy.
static ccc_handle *ccc_copy_host(const ccc_handle *buffer, void *host, size_t size, int to_host, ccc_handle *stream,
                                 const CUmemcpyAttributes *attributes)
{
    uint64_t from = (uintptr_t)host, to = buffer->value;
    CCC_USE_OR(buffer, ccc_closed());
    CCC_USE_OR(stream, ccc_closed());
    int status = attributes ? ccc_copy_check(stream, &attributes, 1, 0) : ccc_check_capture(stream);
    if (status == 0 && ccc_overlap(to, from, size))
        status = CCC_OVERLAP;
    if (status)
        return ccc_not_copied(status);
    const ccc_line line = {to_host ? from : to, to_host ? to : from, size, attributes};
    return ccc_copy_with_event(ccc_copy_line, &line, stream, NULL);
}

// Copy a buffer that had this size, and may have grown since, to ordinary host memory, when the work that its stream
// has for it is done, and wait.
static int ccc_copy_to_host(void *destination, const ccc_handle *source, size_t size)
{
    CCC_USE(source);
    if (size == 0)
        return 0;
    CCC_SCOPE(scope, ccc_enter_buffer(&scope, source));
    __attribute__((cleanup(ccc_release_scoped))) ccc_handle *stream = ccc_buffer_stream_use(source);
    if (stream)
        CCC_TRY(cuStreamSynchronize, CCC_STRM(stream));
    CCC_TRY(cuMemcpy, (CUdeviceptr)(uintptr_t)destination, source->value, size);
    return ccc_left(&scope, 0);
}

// The same of memory that only the host can access: no driver is needed, nor a context.
static int ccc_read_host(void *destination, const ccc_handle *source, size_t size)
{
    CCC_USE(source);
    memcpy(destination, CCC_POINTER(source), size);
    return 0;
}

// A range that a batch reads or writes.
typedef struct ccc_extent {
    uint64_t start, end;
    size_t copy;  // whose it is
    int written;
} ccc_extent;

static int ccc_extent_order(const void *one, const void *other)
{
    uint64_t first = ((const ccc_extent *)one)->start, second = ((const ccc_extent *)other)->start;
    return (first > second) - (first < second);
}

static ccc_extent ccc_extent_of(const ccc_handle *buffer, size_t copy, int written)
{
    uint64_t end = buffer->value + ccc_as_buffer(buffer)->size;
    return (ccc_extent){buffer->value, end < buffer->value ? UINT64_MAX : end, copy, written};
}

// Whether what one copy writes has bytes in common with what any copy reads, or another writes; *bad tells which two.
static int ccc_extents_collide(ccc_extent *ranges, size_t count, size_t *bad)
{
    const ccc_extent *reaching = NULL, *writing = NULL;  // those before that end last: of all, and of what is written
    qsort(ranges, count, sizeof *ranges, ccc_extent_order);
    for (size_t i = 0; i < count; i++) {
        const ccc_extent *range = &ranges[i], *before = range->written ? reaching : writing;
        if (before && before->end > range->start) {
            bad[0] = before->copy < range->copy ? before->copy : range->copy;
            bad[1] = before->copy < range->copy ? range->copy : before->copy;
            return 1;
        }
        if (reaching == NULL || range->end > reaching->end)
            reaching = range;
        if (range->written && (writing == NULL || range->end > writing->end))
            writing = range;
    }
    return 0;
}

// What a batch is made of, in one piece of memory.
typedef struct ccc_copies {
    CUdeviceptr *to, *from;
    size_t *sizes, *starts, count, attribute_count;
    CUmemcpyAttributes *attributes;
} ccc_copies;

static int ccc_copies_submit(const ccc_copies *batch, const ccc_handle *stream)
{
#if CUDA_VERSION >= 13000
    if (ccc_copy_has_attributes(1)) {
        // refused without a current context, by driver 580 at least
        int pushed = ccc_stream_push((ccc_handle *)stream);
        if (pushed < 0)
            return ccc_last_status();
        CUresult result = cuMemcpyBatchAsync(batch->to, batch->from, batch->sizes, batch->count, batch->attributes,
                                             batch->starts, batch->attribute_count, CCC_STRM(stream));
        return ccc_restored(pushed, result ? ccc_fail((int)result, "cuMemcpyBatchAsync") : 0);
    }
#endif
    int status = 0;
    for (size_t i = 0; i < batch->count && status == 0; i++)
        status = ccc_copy_plain(batch->to[i], batch->from[i], batch->sizes[i], stream);
    return status;
}

// The same as below for a caller who has a use of all of them.
static int ccc_copy_batch_in(ccc_handle *const *destinations, ccc_handle *const *sources, size_t count,
                             const ccc_handle *stream, const CUmemcpyAttributes *const *attributes,
                             size_t attribute_count, size_t *bad)
{
    int status = ccc_copy_check(stream, attributes, attribute_count, 1);
    if (status || count == 0)
        return status;
    size_t each = 2 * sizeof(CUdeviceptr) + 2 * sizeof(size_t) + sizeof(CUmemcpyAttributes) + 2 * sizeof(ccc_extent);
    ccc_extent *ranges = count <= SIZE_MAX / each ? malloc(count * each) : NULL;
    if (ranges == NULL)
        return ccc_fail(CCC_NO_MEMORY, "malloc");
    ccc_copies batch = {.to = (CUdeviceptr *)(ranges + 2 * count)};
    batch.from = batch.to + count;
    batch.sizes = (size_t *)(batch.from + count);
    batch.starts = batch.sizes + count;
    batch.attributes = (CUmemcpyAttributes *)(batch.starts + count);
    const CUmemcpyAttributes *last = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t size = ccc_copy_size(destinations[i], sources[i]);
        if (size == 0)  // the driver refuses it
            continue;
        const CUmemcpyAttributes *own = attributes[attribute_count == 1 ? 0 : i];
        if (own != last) {
            batch.starts[batch.attribute_count] = batch.count;
            batch.attributes[batch.attribute_count++] = *own;
            last = own;
        }
        ranges[2 * batch.count] = ccc_extent_of(sources[i], i, 0);
        ranges[2 * batch.count + 1] = ccc_extent_of(destinations[i], i, 1);
        batch.to[batch.count] = destinations[i]->value;
        batch.from[batch.count] = sources[i]->value;
        batch.sizes[batch.count++] = size;
    }
    if (ccc_extents_collide(ranges, 2 * batch.count, bad))
        status = CCC_OVERLAP;
    else if (batch.count > 0)
        status = ccc_copies_submit(&batch, stream);
    free(ranges);
    return status;
}

// Copy each source into its destination, which is of the same size, in any order. `attributes` has one pointer for all
// copies, or one for each. After CCC_OVERLAP, bad[0] and bad[1] are the copies that are in each other's way.
static int ccc_copy_batch(ccc_handle *const *destinations, ccc_handle *const *sources, size_t count,
                          const ccc_handle *stream, const CUmemcpyAttributes *const *attributes, size_t attribute_count,
                          size_t *bad)
{
    CCC_USE(stream);
    if (!ccc_acquire_all(destinations, count))
        return CCC_CLOSED;
    int status = CCC_CLOSED;
    if (ccc_acquire_all(sources, count)) {
        status = ccc_copy_batch_in(destinations, sources, count, stream, attributes, attribute_count, bad);
        ccc_release_all(sources, count);
    }
    ccc_release_all(destinations, count);
    return status;
}

#endif
