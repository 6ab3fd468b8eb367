// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Virtual memory: buffers made of addresses that were reserved and of memory that was mapped there.
//
// A piece is a reservation with the mappings that fill it. A mapping keeps its physical memory, so the handle of that
// is released as soon as it is mapped, and asked back by address (cuMemRetainAllocationHandle) when the memory is to be
// mapped or exported again. A buffer owns its pieces, together with the buffers that it was grown from or into: one
// that grows in place has their pieces and one more, right behind the last. One that has to move has a piece of its
// own, where the memory is mapped a second time. The last owner of a piece unmaps it, and each waits for its own stream
// before it gives up its share, so all work that may use the memory is done by then.
//
// Every function here does all or nothing. What cannot even be undone is reported as a failure of cleanup.
#ifndef CCC_VIRTUAL_H
#define CCC_VIRTUAL_H

#include <sys/syscall.h>
#include <unistd.h>

#include "memory/ccc_descriptor.h"
#include "memory/ccc_memory.h"

typedef struct ccc_range {
    CUdeviceptr start;
    size_t size;
} ccc_range;

typedef struct ccc_mapping {
    ccc_range range;
    size_t count;
    CUmemAccessDesc *rights;  // who may use the memory: `count` entries
} ccc_mapping;

typedef struct ccc_piece {
    atomic_size_t owners;
    ccc_range reservation;
    size_t count;
    ccc_mapping *mappings;  // in the order of addresses, without gaps
} ccc_piece;

struct ccc_virtual {
    size_t count;
    ccc_piece **pieces;  // in the order of addresses, without gaps
};

typedef struct ccc_virtual_plan {
    CUmemAllocationProp properties;
    size_t alignment;  // of the addresses of a new buffer
    CUdeviceptr hint;  // where those would best start; 0 for anywhere
    int current_node;  // the memory is of the host's node that the calling thread runs on
    size_t count;
    const CUmemAccessDesc *rights;  // who may use the memory: `count` entries
} ccc_virtual_plan;

// --- Pieces ------------------------------------------------------------------------------------------------------

// Give up a share of a piece; NULL is fine. The last owner unmaps and frees everything. Returns the first failure, with
// its call: where memory stays mapped, so do the addresses.
static CUresult ccc_piece_release(ccc_piece *piece, const char **call)
{
    CUresult first = CUDA_SUCCESS;
    if (piece == NULL || atomic_fetch_sub(&piece->owners, 1) > 1)
        return first;
    for (size_t i = 0; i < piece->count; i++) {
        CUresult result = cuMemUnmap(piece->mappings[i].range.start, piece->mappings[i].range.size);
        if (result && !first) {
            first = result;
            *call = "cuMemUnmap";
        }
        free(piece->mappings[i].rights);
    }
    if (!first && piece->reservation.size) {
        first = cuMemAddressFree(piece->reservation.start, piece->reservation.size);
        *call = "cuMemAddressFree";
    }
    free(piece->mappings);
    free(piece);
    return first;
}

// Give up the shares of all pieces; NULL is fine. Returns as ccc_piece_release does.
static CUresult ccc_virtual_end(struct ccc_virtual *memory, const char **call)
{
    CUresult first = CUDA_SUCCESS;
    if (memory == NULL)
        return first;
    for (size_t i = 0; i < memory->count; i++) {
        const char *later = "";
        CUresult result = ccc_piece_release(memory->pieces[i], &later);
        if (result && !first) {
            first = result;
            *call = later;
        }
    }
    free(memory->pieces);
    free(memory);
    return first;
}

// Give up what an operation had made or shared before it failed.
static CCC_COLD void ccc_virtual_undo(struct ccc_virtual *memory)
{
    const char *call = "";
    CUdeviceptr start = memory && memory->count ? memory->pieces[0]->reservation.start : 0;
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

// A piece without addresses, at the end of the list. NULL: out of memory.
static ccc_piece *ccc_virtual_add_piece(struct ccc_virtual *memory)
{
    ccc_piece **grown = realloc(memory->pieces, (memory->count + 1) * sizeof *grown);
    ccc_piece *piece = calloc(1, sizeof *piece);
    if (grown)
        memory->pieces = grown;
    if (grown == NULL || piece == NULL) {
        free(piece);
        ccc_fail(CCC_NO_MEMORY, "malloc");
        return NULL;
    }
    atomic_init(&piece->owners, 1);
    return memory->pieces[memory->count++] = piece;
}

// Become an owner of all pieces of another list.
static int ccc_virtual_share(struct ccc_virtual *memory, const struct ccc_virtual *old)
{
    ccc_piece **grown = realloc(memory->pieces, (memory->count + old->count) * sizeof *grown);
    if (grown == NULL)
        return ccc_fail(CCC_NO_MEMORY, "malloc");
    memory->pieces = grown;
    for (size_t i = 0; i < old->count; i++) {
        atomic_fetch_add(&old->pieces[i]->owners, 1);
        grown[memory->count++] = old->pieces[i];
    }
    return 0;
}

static size_t ccc_virtual_mapped(const struct ccc_virtual *memory)
{
    size_t bytes = 0;
    for (size_t i = 0; memory && i < memory->count; i++)
        bytes += memory->pieces[i]->reservation.size;
    return bytes;
}

static int ccc_piece_reserve(ccc_piece *piece, size_t size, size_t alignment, CUdeviceptr hint)
{
    CUdeviceptr start = 0;
    CCC_TRY(cuMemAddressReserve, &start, size, alignment, hint, 0);
    piece->reservation = (ccc_range){start, size};
    return 0;
}

// Make room for one more mapping, and copy its rights, so that noting it down cannot fail after it was made.
static int ccc_piece_make_room(ccc_piece *piece, const CUmemAccessDesc *rights, size_t count)
{
    ccc_mapping *grown = realloc(piece->mappings, (piece->count + 1) * sizeof *grown);
    CUmemAccessDesc *copy = malloc(count ? count * sizeof *copy : 1);
    if (grown)
        piece->mappings = grown;
    if (grown == NULL || copy == NULL) {
        free(copy);
        return ccc_fail(CCC_NO_MEMORY, "malloc");
    }
    if (count)
        memcpy(copy, rights, count * sizeof *copy);
    grown[piece->count] = (ccc_mapping){{0, 0}, count, copy};
    return 0;
}

// Where the next mapping begins.
static CUdeviceptr ccc_piece_end(const ccc_piece *piece)
{
    const ccc_range *last = piece->count ? &piece->mappings[piece->count - 1].range : NULL;
    return last ? last->start + last->size : piece->reservation.start;
}

// Map physical memory behind the last mapping and release the handle, whatever comes of it. A release that fails is not
// tried again: the handle may be gone all the same, and a driver crashes on one that is.
static int ccc_piece_map(ccc_piece *piece, size_t size, CUmemGenericAllocationHandle value,
                         const CUmemAccessDesc *rights, size_t count)
{
    CUdeviceptr start = ccc_piece_end(piece);
    int status = ccc_piece_make_room(piece, rights, count);
    CUresult mapped = status ? CUDA_SUCCESS : cuMemMap(start, size, 0, value, 0);
    if (!status && mapped == CUDA_SUCCESS)
        piece->mappings[piece->count++].range = (ccc_range){start, size};
    else if (!status)
        free(piece->mappings[piece->count].rights);
    CUresult released = cuMemRelease(value);
    if (released)
        ccc_cleanup_failed((int)released, "cuMemRelease", value);
    return mapped ? ccc_fail((int)mapped, "cuMemMap") : status;
}

// Set the rights to the last mapping.
static int ccc_piece_allow(const ccc_piece *piece)
{
    const ccc_mapping *last = &piece->mappings[piece->count - 1];
    if (last->count > 0)
        CCC_TRY(cuMemSetAccess, last->range.start, last->range.size, last->rights, last->count);
    return 0;
}

// Map new memory behind the last mapping.
static int ccc_piece_create(ccc_piece *piece, const ccc_virtual_plan *plan, size_t size)
{
    CUmemGenericAllocationHandle value = 0;
    CUmemAllocationProp properties = plan->properties;
    unsigned int node = 0;
    if (plan->current_node) {
        syscall(SYS_getcpu, NULL, &node, NULL);
        properties.location.id = (int)node;
    }
    CCC_TRY(cuMemCreate, &value, size, &properties, 0);
    int status = ccc_piece_map(piece, size, value, plan->rights, plan->count);
    return status ? status : ccc_piece_allow(piece);
}

// Map memory that is mapped elsewhere behind the last mapping, with the same rights.
static int ccc_piece_repeat(ccc_piece *piece, const ccc_mapping *mapping)
{
    CUmemGenericAllocationHandle value = 0;
    CCC_TRY(cuMemRetainAllocationHandle, &value, (void *)(uintptr_t)mapping->range.start);
    int status = ccc_piece_map(piece, mapping->range.size, value, mapping->rights, mapping->count);
    return status ? status : ccc_piece_allow(piece);
}

// --- Buffers -----------------------------------------------------------------------------------------------------

// The handle of a buffer of `size` bytes at the start of the memory, which it takes over. NULL on failure: then that is
// given up.
static ccc_handle *ccc_virtual_own(struct ccc_virtual *memory, size_t size, ccc_handle *context, ccc_handle *stream)
{
    ccc_handle *handle = ccc_buffer_new(&ccc_virtual_memory, memory ? memory->pieces[0]->reservation.start : 0, size,
                                        CCC_VIRTUAL | CCC_WAITS, context, NULL, stream);
    if (handle)
        ccc_as_buffer(handle)->mappings = memory;
    else
        ccc_virtual_undo(memory);
    return handle;
}

static struct ccc_virtual *ccc_virtual_list(void)
{
    struct ccc_virtual *memory = calloc(1, sizeof *memory);
    if (memory == NULL)
        ccc_fail(CCC_NO_MEMORY, "malloc");
    return memory;
}

// Fill new addresses with the memory of another list, if any, and with `more` bytes of new memory.
static int ccc_virtual_fill(struct ccc_virtual *memory, const struct ccc_virtual *old, const ccc_virtual_plan *plan,
                            size_t more)
{
    ccc_piece *piece = ccc_virtual_add_piece(memory);
    int status = piece ? ccc_piece_reserve(piece, ccc_virtual_mapped(old) + more, plan->alignment, plan->hint)
                       : ccc_last_status();
    for (size_t i = 0; old && i < old->count; i++)
        for (size_t j = 0; !status && j < old->pieces[i]->count; j++)
            status = ccc_piece_repeat(piece, &old->pieces[i]->mappings[j]);
    return status ? status : ccc_piece_create(piece, plan, more);
}

// Allocate at once: `size` is a multiple of the granularity, or 0. NULL on failure.
static ccc_handle *ccc_virtual_allocate(int device, const ccc_virtual_plan *plan, size_t size)
{
    CCC_SCOPE_OR(NULL, scope, ccc_enter(&scope, device));  // the context whose work is waited for at the end
    struct ccc_virtual *memory = size ? ccc_virtual_list() : NULL;
    if (size && (memory == NULL || ccc_virtual_fill(memory, NULL, plan, size))) {
        ccc_virtual_undo(memory);
        return NULL;
    }
    return ccc_left_with(&scope, ccc_virtual_own(memory, size, scope.context, NULL));
}

// Share the memory of another list, and add `more` bytes right behind it if that many addresses are free there:
// *extended.
static int ccc_virtual_extend(struct ccc_virtual *memory, const struct ccc_virtual *old, const ccc_virtual_plan *plan,
                              size_t more, int *extended)
{
    CUdeviceptr end = old->pieces[0]->reservation.start + ccc_virtual_mapped(old);
    int status = ccc_virtual_share(memory, old);
    *extended = status == 0;
    if (status || more == 0)
        return status;
    ccc_piece *added = ccc_virtual_add_piece(memory);
    if (added == NULL)
        return ccc_last_status();
    *extended = ccc_piece_reserve(added, more, 0, end) == 0 && added->reservation.start == end;
    return *extended ? ccc_piece_create(added, plan, more) : 0;
}

// The handle of a new buffer of `size` bytes, a multiple of the granularity, with the memory of another buffer and
// more: at the same addresses where those behind them are free. NULL on failure. The other buffer is not changed.
static ccc_handle *ccc_virtual_grow(ccc_handle *buffer, const ccc_virtual_plan *plan, size_t size)
{
    CCC_USE_OR(buffer, ccc_closed());
    const struct ccc_virtual *old = ccc_as_buffer(buffer)->mappings;
    size_t mapped = ccc_virtual_mapped(old), more = size > mapped ? size - mapped : 0;
    int extended = 0, status = 0;
    struct ccc_virtual *memory = ccc_virtual_list();
    if (memory && old && !(status = ccc_virtual_extend(memory, old, plan, more, &extended)) && !extended) {
        ccc_virtual_undo(memory);
        memory = ccc_virtual_list();
    }
    if (memory && !status && !extended)
        status = ccc_virtual_fill(memory, old, plan, more);
    if (memory == NULL || status) {
        ccc_virtual_undo(memory);
        return NULL;
    }
    ccc_handle *stream = ccc_buffer_stream_use(buffer);
    ccc_handle *handle = ccc_virtual_own(memory, size, buffer->parent, stream);
    ccc_release(stream);
    return handle;
}

// A status if closing the buffer would wait for a stream that is being captured: `stream`, or if that is NULL the one
// that the buffer has. The status of a default stream depends on the context, so it is looked at when the memory is
// unmapped.
static int ccc_virtual_check_close(ccc_handle *buffer, ccc_handle *stream)
{
    if (!ccc_acquire(buffer))
        return 0;
    int status = 0;
    ccc_handle *used = NULL;
    if (stream == NULL)
        used = ccc_buffer_stream_use(buffer);
    else if (ccc_acquire(stream))
        used = stream;
    else
        status = CCC_CLOSED;
    if (used && !(used->flags & CCC_TOKEN))
        status = ccc_check_capture(used);
    ccc_release(used);
    ccc_release(buffer);
    return status;
}

// --- Sharing -----------------------------------------------------------------------------------------------------

// The number of physical allocations that a buffer has memory of.
static size_t ccc_virtual_count(const ccc_handle *buffer)
{
    size_t count = 0;
    CCC_USE_OR(buffer, 0);
    const struct ccc_virtual *memory = ccc_as_buffer(buffer)->mappings;
    for (size_t i = 0; memory && i < memory->count; i++)
        count += memory->pieces[i]->count;
    return count;
}

static int ccc_mapping_export(const ccc_mapping *mapping, int *descriptor)
{
    CUmemGenericAllocationHandle value = 0;
    int number = CCC_NO_DESCRIPTOR;
    CCC_TRY(cuMemRetainAllocationHandle, &value, (void *)(uintptr_t)mapping->range.start);
    CUresult exported = cuMemExportToShareableHandle(&number, value, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    CUresult released = cuMemRelease(value);
    if (released)
        ccc_cleanup_failed((int)released, "cuMemRelease", value);
    if (exported)
        return ccc_fail((int)exported, "cuMemExportToShareableHandle");
    ccc_descriptor_own(descriptor, number);
    return 0;
}

// Export the physical allocations of a buffer, in the order of addresses: a file descriptor and a size of each.
static int ccc_virtual_export(const ccc_handle *buffer, int *const *descriptors, size_t *sizes)
{
    int status = 0;
    size_t done = 0;
    CCC_USE(buffer);
    const struct ccc_virtual *memory = ccc_as_buffer(buffer)->mappings;
    for (size_t i = 0; memory && i < memory->count; i++)
        for (size_t j = 0; !status && j < memory->pieces[i]->count; j++) {
            const ccc_mapping *mapping = &memory->pieces[i]->mappings[j];
            if (!(status = ccc_mapping_export(mapping, descriptors[done])))
                sizes[done++] = mapping->range.size;
        }
    while (status && done > 0)
        ccc_descriptor_close(descriptors[--done]);
    return status;
}

// Map the memory of a descriptor behind the last mapping; *place is the device that it is on, -1 for the host.
static int ccc_piece_import(ccc_piece *piece, const ccc_virtual_plan *plan, int descriptor, size_t size, int *place)
{
    CUmemGenericAllocationHandle value = 0;
    unsigned int type = 0;
    CUdeviceptr start = ccc_piece_end(piece);
    CCC_TRY(cuMemImportFromShareableHandle, &value, (void *)(intptr_t)descriptor,
            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    int status = ccc_piece_map(piece, size, value, plan->rights, plan->count);
    if (status)
        return status;
    CCC_TRY(cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, start);
    if (type == CU_MEMORYTYPE_DEVICE)
        CCC_TRY(cuPointerGetAttribute, place, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, start);
    else
        *place = -1;
    int wanted = plan->properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE ? plan->properties.location.id : -1;
    return *place == wanted ? ccc_piece_allow(piece) : ccc_fail(CCC_ELSEWHERE, "");
}

// The handle of a buffer of `size` bytes with memory of another process, of which there are `count` allocations of
// these sizes. The descriptors stay the caller's. *place is the device that the memory is on, -1 for the host.
static ccc_handle *ccc_virtual_import(int device, const ccc_virtual_plan *plan, const int *descriptors,
                                      const size_t *sizes, size_t count, size_t size, int *place)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += sizes[i];
    CCC_SCOPE_OR(NULL, scope, ccc_enter(&scope, device));
    struct ccc_virtual *memory = ccc_virtual_list();
    ccc_piece *piece = memory ? ccc_virtual_add_piece(memory) : NULL;
    int status = piece ? ccc_piece_reserve(piece, total, plan->alignment, plan->hint) : ccc_last_status();
    for (size_t i = 0; !status && i < count; i++)
        status = ccc_piece_import(piece, plan, descriptors[i], sizes[i], place);
    if (status) {
        ccc_virtual_undo(memory);
        return NULL;
    }
    return ccc_left_with(&scope, ccc_virtual_own(memory, size, scope.context, NULL));
}

// --- By address --------------------------------------------------------------------------------------------------

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
        if (reservation.start == next) {
            ccc_piece *piece = ccc_virtual_add_piece(memory);
            if (piece == NULL)
                return ccc_last_status();
            piece->reservation = reservation;
        }
        ccc_piece *piece = memory->pieces[memory->count - 1];
        int status = ccc_piece_make_room(piece, NULL, 0);
        if (status)
            return status;
        piece->mappings[piece->count++].range = mapping;
        next += mapping.size;
    }
    return 0;
}

// Forget pieces that are another owner's after all.
static CCC_COLD void ccc_virtual_forget(struct ccc_virtual *memory)
{
    for (size_t i = 0; i < memory->count; i++) {
        for (size_t j = 0; j < memory->pieces[i]->count; j++)
            free(memory->pieces[i]->mappings[j].rights);
        memory->pieces[i]->count = 0;
        memory->pieces[i]->reservation.size = 0;
    }
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
    const char *call = "";
    CCC_USE_MAYBE(stream);
    if (pointer == 0)
        return 0;
    CCC_SCOPE(scope, ccc_enter(&scope, device));
    struct ccc_virtual *memory = ccc_virtual_list();
    if (memory == NULL)
        return CCC_NO_MEMORY;
    int status = ccc_virtual_find(memory, pointer, size);
    if (status == 0)
        status = ccc_virtual_wait(stream);
    if (status)
        ccc_virtual_forget(memory);
    CUresult result = ccc_virtual_end(memory, &call);
    return ccc_left(&scope, result ? ccc_fail((int)result, call) : status);
}

#endif
