// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Managed memory: advice about where it is used, and moving it there. An empty buffer has no pages: nothing is done.
#ifndef CCC_MANAGED_H
#define CCC_MANAGED_H

#include "memory/ccc_memory.h"

#define CCC_FIRST_TYPED_LOCATIONS 12020  // before it, the driver knows devices and the host only, as numbers
#define CCC_FIRST_MANAGED_BATCHES 13000

// Tell the driver how a whole buffer is used. The names with _v2 are in every header; see cuda.h.
static int ccc_managed_advise(const ccc_handle *buffer, int advice, int location, int id)
{
    CUmemLocation place = {.type = (CUmemLocationType)location, .id = id};
    CCC_USE(buffer);
    if (ccc_as_buffer(buffer)->size == 0)
        return 0;
    CCC_SCOPE(scope, ccc_enter_buffer(&scope, buffer));
    CUresult result = cuMemAdvise_v2(buffer->value, ccc_as_buffer(buffer)->size, (CUmem_advise)advice, place);
    return ccc_left(&scope, result ? ccc_fail((int)result, "cuMemAdvise") : 0);
}

// Read an attribute that holds for a whole buffer; the values of an empty one stay as they are.
static int ccc_managed_attribute(const ccc_handle *buffer, int attribute, int *values, size_t count)
{
    CCC_USE(buffer);
    if (ccc_as_buffer(buffer)->size == 0)
        return 0;
    CCC_SCOPE(scope, ccc_enter_buffer(&scope, buffer));
    CCC_TRY(cuMemRangeGetAttribute, values, count * sizeof *values, (CUmem_range_attribute)attribute, buffer->value,
            ccc_as_buffer(buffer)->size);
    return ccc_left(&scope, 0);
}

// Where a whole buffer should be or, with `last`, where it was told to go last: CU_MEM_LOCATION_TYPE_INVALID for
// nowhere in particular, and for parts that differ.
static int ccc_managed_location(const ccc_handle *buffer, int last, int *location, int *id)
{
    *location = CU_MEM_LOCATION_TYPE_INVALID;
    if (ccc_driver_version() >= CCC_FIRST_TYPED_LOCATIONS) {
        int status = ccc_managed_attribute(buffer,
                                           last ? CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE
                                                : CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE,
                                           location, 1);
        return status ? status
                      : ccc_managed_attribute(buffer,
                                              last ? CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID
                                                   : CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID,
                                              id, 1);
    }
    *id = CU_DEVICE_INVALID;
    int status = ccc_managed_attribute(
        buffer, last ? CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION : CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, id,
        1);
    if (status == 0 && *id != CU_DEVICE_INVALID)
        *location = *id == CU_DEVICE_CPU ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
    return status;
}

// Move a whole buffer, in stream order.
static int ccc_managed_prefetch(const ccc_handle *buffer, const ccc_handle *stream, int location, int id)
{
    CUmemLocation place = {.type = (CUmemLocationType)location, .id = id};
    CCC_USE(buffer);
    CCC_USE(stream);
    if (ccc_as_buffer(buffer)->size == 0)
        return 0;
    CUresult result = cuMemPrefetchAsync_v2(buffer->value, ccc_as_buffer(buffer)->size, place, 0, CCC_STRM(stream));
    return result ? ccc_fail((int)result, "cuMemPrefetchAsync") : 0;
}

typedef enum ccc_migration { CCC_PREFETCH, CCC_DISCARD, CCC_DISCARD_PREFETCH } ccc_migration;

// What the functions for batches take: each place goes with the pointers from its index on.
typedef struct ccc_moves {
    CUdeviceptr *pointers;
    size_t *sizes, *indices;
    CUmemLocation *places;
    size_t count, place_count;
} ccc_moves;

static int ccc_same_place(const CUmemLocation *one, const CUmemLocation *other)
{
    return one->type == other->type && one->id == other->id;
}

static void ccc_moves_add(ccc_moves *batch, const ccc_handle *buffer, const CUmemLocation *place)
{
    if (ccc_as_buffer(buffer)->size == 0)
        return;
    batch->pointers[batch->count] = buffer->value;
    batch->sizes[batch->count] = ccc_as_buffer(buffer)->size;
    if (place && (batch->place_count == 0 || !ccc_same_place(place, &batch->places[batch->place_count - 1]))) {
        batch->places[batch->place_count] = *place;
        batch->indices[batch->place_count++] = batch->count;
    }
    batch->count++;
}

static int ccc_moves_submit(ccc_migration how, ccc_moves *batch, CUstream stream)
{
    switch (how) {
    case CCC_PREFETCH:
        CCC_TRY(cuMemPrefetchBatchAsync, batch->pointers, batch->sizes, batch->count, batch->places, batch->indices,
                batch->place_count, 0, stream);
        return 0;
    case CCC_DISCARD: CCC_TRY(cuMemDiscardBatchAsync, batch->pointers, batch->sizes, batch->count, 0, stream); return 0;
    default:
        CCC_TRY(cuMemDiscardAndPrefetchBatchAsync, batch->pointers, batch->sizes, batch->count, batch->places,
                batch->indices, batch->place_count, 0, stream);
        return 0;
    }
}

// The same as below for a caller who has a use of all of them.
static int ccc_managed_migrate_in(ccc_migration how, ccc_handle *const *buffers, const CUmemLocation *places,
                                  size_t count, const ccc_handle *stream)
{
    int status = 0;
    if (how == CCC_PREFETCH && (CUDA_VERSION < CCC_FIRST_MANAGED_BATCHES || ccc_stream_is_legacy(stream) ||
                                ccc_driver_version() < CCC_FIRST_MANAGED_BATCHES)) {
        for (size_t i = 0; i < count && status == 0; i++)
            status = ccc_managed_prefetch(buffers[i], stream, places[i].type, places[i].id);
        return status;
    }
    ccc_moves batch = {
        .pointers = calloc(count, sizeof *batch.pointers),
        .sizes = calloc(count, sizeof *batch.sizes),
        .indices = calloc(count, sizeof *batch.indices),
        .places = calloc(count, sizeof *batch.places),
    };
    if (batch.pointers && batch.sizes && batch.indices && batch.places) {
        for (size_t i = 0; i < count; i++)
            ccc_moves_add(&batch, buffers[i], places ? &places[i] : NULL);
        status = batch.count ? ccc_moves_submit(how, &batch, CCC_STRM(stream)) : 0;
    } else {
        status = ccc_fail(CCC_NO_MEMORY, "calloc");
    }
    free(batch.pointers);
    free(batch.sizes);
    free(batch.indices);
    free(batch.places);
    return status;
}

// Prefetch or discard whole buffers, in stream order; each has its place, none (NULL) for discarding alone.
static int ccc_managed_migrate(ccc_migration how, ccc_handle *const *buffers, const CUmemLocation *places, size_t count,
                               const ccc_handle *stream)
{
    CCC_USE(stream);
    if (!ccc_acquire_all(buffers, count))
        return CCC_CLOSED;
    int status = ccc_managed_migrate_in(how, buffers, places, count, stream);
    ccc_release_all(buffers, count);
    return status;
}

#endif
