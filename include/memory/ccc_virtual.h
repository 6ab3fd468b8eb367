// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Virtual memory: buffers made of addresses that were reserved and of memory that was mapped there.
//
// A buffer owns reservations and mappings. A mapping keeps its physical memory, so the handle of that is released as
// soon as it is mapped, and asked back by address (cuMemRetainAllocationHandle) when the memory is to be mapped
// elsewhere too. One that grows in place gets one more reservation, right behind the last, with one more mapping. One
// that has to move gets a handle of its own: its memory is mapped at the new addresses beside the old ones, and those
// end with the old handle, which lives on while an exported tensor needs them.
//
// Every function here does all or nothing. What cannot even be undone is reported as a failure of cleanup.
#ifndef CCC_VIRTUAL_H
#define CCC_VIRTUAL_H

#include <sys/syscall.h>
#include <unistd.h>

#include "memory/ccc_memory.h"

typedef struct ccc_range {
    CUdeviceptr start;
    size_t size;
} ccc_range;

struct ccc_virtual {
    size_t mapping_count, reservation_count;
    ccc_range *mappings, *reservations;  // each in the order of addresses, without gaps
};

typedef struct ccc_virtual_plan {
    CUmemAllocationProp properties;
    size_t alignment;  // of the addresses of a new buffer
    CUdeviceptr hint;  // where those would best start; 0 for anywhere
    int current_node;  // the memory is of the host's node that the calling thread runs on
    size_t count;
    const CUmemAccessDesc *rights;  // who may use the memory: `count` entries
} ccc_virtual_plan;

static int ccc_range_holds(const ccc_range *range, const ccc_range *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (parts[i].start - range->start < range->size)
            return 1;
    return 0;
}

// Unmap and free everything; NULL is fine. Returns the first failure, with its call: where memory stays mapped, so do
// the addresses.
static CUresult ccc_virtual_end(struct ccc_virtual *memory, const char **call)
{
    CUresult first = CUDA_SUCCESS;
    size_t stuck = 0;
    if (memory == NULL)
        return first;
    for (size_t i = 0; i < memory->mapping_count; i++) {
        const ccc_range mapping = memory->mappings[i];
        CUresult result = cuMemUnmap(mapping.start, mapping.size);
        if (result == CUDA_SUCCESS)
            continue;
        memory->mappings[stuck++] = mapping;
        if (!first) {
            first = result;
            *call = "cuMemUnmap";
        }
    }
    for (size_t i = 0; i < memory->reservation_count; i++) {
        const ccc_range *reservation = &memory->reservations[i];
        if (ccc_range_holds(reservation, memory->mappings, stuck))
            continue;
        CUresult result = cuMemAddressFree(reservation->start, reservation->size);
        if (result && !first) {
            first = result;
            *call = "cuMemAddressFree";
        }
    }
    free(memory->mappings);
    free(memory->reservations);
    free(memory);
    return first;
}

// Unmap and free what an operation had made before it failed.
static CCC_COLD void ccc_virtual_undo(struct ccc_virtual *memory)
{
    const char *call;
    CUdeviceptr start = memory && memory->reservation_count ? memory->reservations[0].start : 0;
    CUresult result = ccc_virtual_end(memory, &call);
    if (result)
        ccc_cleanup_failed((int)result, call, start);
}

// Drivers unmap memory under work that still uses it, so that is waited for: in the buffer's stream, or else all work.
static CUresult ccc_free_virtual(ccc_handle *buffer, const ccc_handle *stream, const char **call)
{
    const char *later = "";
    *call = stream ? "cuStreamSynchronize" : "cuCtxSynchronize";
    CUresult waited = stream ? cuStreamSynchronize(CCC_STRM(stream)) : cuCtxSynchronize();
    CUresult ended = ccc_virtual_end(ccc_as_buffer(buffer)->mappings, &later);
    ccc_as_buffer(buffer)->mappings = NULL;
    if (waited == CUDA_SUCCESS)
        *call = later;
    return waited ? waited : ended;
}

// All work of its context is waited for where it has no stream.
static int ccc_virtual_must_wait(const ccc_handle *buffer, const ccc_handle *stream)
{
    (void)buffer;
    return stream == NULL || ccc_may_be_captured(stream);
}

static const ccc_memory_origin ccc_virtual_memory = {
    .needs_context = 1,
    .free = ccc_free_virtual,
    .must_wait = ccc_virtual_must_wait,
};

static int ccc_range_allocate(ccc_range **ranges, size_t count)
{
    ccc_range *grown = realloc(*ranges, count * sizeof *grown);
    if (grown)
        *ranges = grown;
    return grown != NULL;
}

// Make room for more reservations and mappings, so that noting one down cannot fail after it was made.
static int ccc_virtual_allocate_lists(struct ccc_virtual *memory, size_t reservations, size_t mappings)
{
    if (ccc_range_allocate(&memory->reservations, memory->reservation_count + reservations) &&
        ccc_range_allocate(&memory->mappings, memory->mapping_count + mappings))
        return 0;
    return ccc_fail(CCC_NO_MEMORY, "malloc");
}

static int ccc_virtual_reserve(struct ccc_virtual *memory, size_t size, size_t alignment, CUdeviceptr hint)
{
    CUdeviceptr start = 0;
    CCC_TRY(cuMemAddressReserve, &start, size, alignment, hint, 0);
    memory->reservations[memory->reservation_count++] = (ccc_range){start, size};
    return 0;
}

// Map physical memory and release the handle, whatever comes of it. A release that fails is not tried again: the
// handle may be gone all the same, and a driver crashes on one that is.
static int ccc_virtual_map(struct ccc_virtual *memory, CUdeviceptr start, size_t size,
                           CUmemGenericAllocationHandle value)
{
    CUresult mapped = cuMemMap(start, size, 0, value, 0);
    if (mapped == CUDA_SUCCESS)
        memory->mappings[memory->mapping_count++] = (ccc_range){start, size};
    CUresult released = cuMemRelease(value);
    if (released)
        ccc_cleanup_failed((int)released, "cuMemRelease", value);
    return mapped ? ccc_fail((int)mapped, "cuMemMap") : 0;
}

static int ccc_virtual_create(struct ccc_virtual *memory, const ccc_virtual_plan *plan, CUdeviceptr start, size_t size)
{
    CUmemGenericAllocationHandle value = 0;
    CUmemAllocationProp properties = plan->properties;
    unsigned int node = 0;
    if (plan->current_node) {
        syscall(SYS_getcpu, NULL, &node, NULL);
        properties.location.id = (int)node;
    }
    CCC_TRY(cuMemCreate, &value, size, &properties, 0);
    return ccc_virtual_map(memory, start, size, value);
}

static int ccc_virtual_allow(CUdeviceptr start, size_t size, const ccc_virtual_plan *plan)
{
    if (plan->count > 0)
        CCC_TRY(cuMemSetAccess, start, size, plan->rights, plan->count);
    return 0;
}

// Change the rights to all of the memory; on failure they are again what they were.
static int ccc_virtual_change(const struct ccc_virtual *memory, const ccc_virtual_plan *plan,
                              const ccc_virtual_plan *before)
{
    for (size_t i = 0; memory && i < memory->mapping_count; i++) {
        int status = ccc_virtual_allow(memory->mappings[i].start, memory->mappings[i].size, plan);
        if (status == 0)
            continue;
        const char *call = ccc_last_call();
        while (i-- > 0)
            if (ccc_virtual_allow(memory->mappings[i].start, memory->mappings[i].size, before))
                ccc_cleanup_failed(ccc_last_status(), ccc_last_call(), memory->mappings[i].start);
        return ccc_fail(status, call);
    }
    return 0;
}

// Fill new addresses with the memory that is mapped at the old ones, if any, and with `more` bytes of new memory.
static int ccc_virtual_fill(struct ccc_virtual *memory, const struct ccc_virtual *old, const ccc_virtual_plan *plan,
                            size_t size, size_t more)
{
    int status = ccc_virtual_reserve(memory, size, plan->alignment, plan->hint);
    if (status)
        return status;
    CUdeviceptr start = memory->reservations[0].start, next = start;
    for (size_t i = 0; old && i < old->mapping_count; i++) {
        CUmemGenericAllocationHandle value = 0;
        CCC_TRY(cuMemRetainAllocationHandle, &value, (void *)(uintptr_t)old->mappings[i].start);
        if ((status = ccc_virtual_map(memory, next, old->mappings[i].size, value)))
            return status;
        next += old->mappings[i].size;
    }
    if ((status = ccc_virtual_create(memory, plan, next, more)))
        return status;
    return ccc_virtual_allow(start, size, plan);
}

// The handle of a new buffer of `size` bytes, of which the last `more` are new memory. NULL on failure.
static ccc_handle *ccc_virtual_new(ccc_handle *context, ccc_handle *stream, const struct ccc_virtual *old,
                                   const ccc_virtual_plan *plan, size_t size, size_t more)
{
    struct ccc_virtual *memory = NULL;
    if (size > 0) {
        memory = calloc(1, sizeof *memory);
        if (memory == NULL) {
            ccc_fail(CCC_NO_MEMORY, "malloc");
            return NULL;
        }
        if (ccc_virtual_allocate_lists(memory, 1, (old ? old->mapping_count : 0) + 1) ||
            ccc_virtual_fill(memory, old, plan, size, more)) {
            ccc_virtual_undo(memory);
            return NULL;
        }
    }
    ccc_handle *handle = ccc_buffer_new(&ccc_virtual_memory, memory ? memory->reservations[0].start : 0, size,
                                        CCC_VIRTUAL | CCC_WAITS, context, NULL, stream);
    if (handle)
        ccc_as_buffer(handle)->mappings = memory;
    else
        ccc_virtual_undo(memory);
    return handle;
}

// Allocate at once: `size` is a multiple of the granularity, or 0. NULL on failure.
static ccc_handle *ccc_virtual_allocate(int device, const ccc_virtual_plan *plan, size_t size)
{
    CCC_SCOPE_OR(NULL, scope, ccc_enter(&scope, device));  // the context whose work is waited for at the end
    return ccc_left_with(&scope, ccc_virtual_new(scope.context, NULL, NULL, plan, size, size));
}

// Add `more` bytes right behind a buffer. Returns 0 with *extended unset where those addresses are not to be had.
static int ccc_virtual_extend(ccc_handle *buffer, const ccc_virtual_plan *plan, const ccc_virtual_plan *before,
                              size_t more, int *extended)
{
    struct ccc_virtual *memory = ccc_as_buffer(buffer)->mappings;
    CUdeviceptr end = buffer->value + ccc_as_buffer(buffer)->size, start = 0;
    int status = ccc_virtual_allocate_lists(memory, 1, 1);
    if (status)
        return status;
    struct ccc_virtual *added = calloc(1, sizeof *added);
    if (added == NULL || ccc_virtual_allocate_lists(added, 1, 1)) {
        ccc_virtual_undo(added);
        return ccc_fail(CCC_NO_MEMORY, "malloc");
    }
    if (ccc_virtual_reserve(added, more, 0, end) == 0)
        start = added->reservations[0].start;
    *extended = start == end;
    if (*extended) {
        status = ccc_virtual_create(added, plan, end, more);
        if (status == 0)
            status = ccc_virtual_allow(end, more, plan);
        if (status == 0 && plan != before)
            status = ccc_virtual_change(memory, plan, before);
    }
    if (*extended && status == 0) {
        memory->reservations[memory->reservation_count++] = added->reservations[--added->reservation_count];
        memory->mappings[memory->mapping_count++] = added->mappings[--added->mapping_count];
        ccc_as_buffer(buffer)->size += more;
    }
    ccc_virtual_undo(added);
    return status;
}

// Grow a buffer to `size` bytes, a larger multiple of the granularity, if the addresses behind it are free: *extended.
// Otherwise, and on failure, everything is as it was. One call at a time for each buffer.
static int ccc_virtual_grow(ccc_handle *buffer, const ccc_virtual_plan *plan, const ccc_virtual_plan *before,
                            size_t size, int *extended)
{
    CCC_USE_OR(buffer, ccc_fail(CCC_CLOSED, ""));
    *extended = 0;
    size_t own = ccc_as_buffer(buffer)->size;
    return own ? ccc_virtual_extend(buffer, plan, before, size - own, extended) : 0;
}

// The handle of a new buffer of `size` bytes at other addresses, with the memory of another buffer and more. NULL on
// failure, with everything as it was.
static ccc_handle *ccc_virtual_move(ccc_handle *buffer, const ccc_virtual_plan *plan, size_t size)
{
    CCC_USE_OR(buffer, ccc_closed());
    const ccc_buffer *old = ccc_as_buffer(buffer);
    return ccc_virtual_new(buffer->parent, atomic_load(&old->stream), old->mappings, plan, size, size - old->size);
}

// Set the rights to a buffer. On failure they are again what they were before.
static int ccc_virtual_set_rights(ccc_handle *buffer, const ccc_virtual_plan *plan, const ccc_virtual_plan *before)
{
    CCC_USE(buffer);
    return ccc_virtual_change(ccc_as_buffer(buffer)->mappings, plan, before);
}

// Find the mappings and the reservations that make up a range of addresses.
static int ccc_virtual_find(struct ccc_virtual *memory, CUdeviceptr start, size_t size)
{
    CUdeviceptr end = start + size;
    for (CUdeviceptr next = start; next < end;) {
        ccc_range mapping = {0, 0}, reservation = {0, 0};
        // not cuMemGetAddressRange, which finds only what some device has access to
        CCC_TRY(cuPointerGetAttribute, &mapping.start, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, next);
        CCC_TRY(cuPointerGetAttribute, &mapping.size, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, next);
        CCC_TRY(cuPointerGetAttribute, &reservation.start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, next);
        CCC_TRY(cuPointerGetAttribute, &reservation.size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, next);
        if (mapping.start != next || mapping.size == 0 || mapping.size > end - next || reservation.start < start ||
            reservation.size > end - reservation.start)
            return ccc_fail(CUDA_ERROR_INVALID_VALUE, "cuMemUnmap");
        int status = ccc_virtual_allocate_lists(memory, 1, 1);
        if (status)
            return status;
        memory->mappings[memory->mapping_count++] = mapping;
        if (reservation.start == next)
            memory->reservations[memory->reservation_count++] = reservation;
        next += mapping.size;
    }
    return 0;
}

static int ccc_virtual_wait(const ccc_handle *stream)
{
    if (stream)
        CCC_TRY(cuStreamSynchronize, CCC_STRM(stream));
    else
        CCC_TRY(cuCtxSynchronize);
    return 0;
}

// Free a range of addresses with all that is mapped there, when the work in the stream, or in the device, is done.
static int ccc_virtual_deallocate(int device, uint64_t pointer, size_t size, const ccc_handle *stream)
{
    const char *call;
    CCC_USE_MAYBE(stream);
    if (pointer == 0)
        return 0;
    CCC_SCOPE(scope, ccc_enter(&scope, device));
    struct ccc_virtual *memory = calloc(1, sizeof *memory);
    if (memory == NULL)
        return ccc_fail(CCC_NO_MEMORY, "malloc");
    int status = ccc_virtual_find(memory, pointer, size);
    if (status == 0)
        status = ccc_virtual_wait(stream);
    if (status)
        memory->mapping_count = memory->reservation_count = 0;  // nothing is given back
    CUresult result = ccc_virtual_end(memory, &call);
    return ccc_left(&scope, result ? ccc_fail((int)result, call) : status);
}

#endif
