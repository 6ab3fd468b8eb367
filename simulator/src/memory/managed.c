// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Managed memory: advice, prefetching, discarding. Where the memory is makes no difference here, so a prefetch only
// leaves a note of it; what is discarded is overwritten, so that nobody counts on it.

#include <stdlib.h>
#include <string.h>

#include "streams/capture.h"
#include "memory/copy.h"
#include "driver/device.h"
#include "memory/pages.h"
#include "memory/pool.h"

enum { DISCARDED = 0xDB };

static bool device_exists(int ordinal) { return ordinal >= 0 && ordinal < sim_device_count(); }

// Moving memory needs no rights to it, where memory has any.
static const struct sim_use moving = {.device = 0, .writes = false};

// The managed allocation that holds a range; misuse of memory that was freed is reported.
static CUresult find_managed(uintptr_t address, size_t size, struct sim_allocation *allocation)
{
    SIM_REQUIRE(size && sim_place_of(address, size, moving) == SIM_KNOWN && sim_allocation_at(address, allocation));
    return allocation->managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// --- Advice ---------------------------------------------------------------------------------------------------

struct advice {
    CUmem_advise what;
    CUmemLocation location;
};

static void advise_page(struct sim_page *page, const void *arg)
{
    const struct advice *advice = arg;
    bool host = advice->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
    uint64_t bit = host ? SIM_ACCESSED_BY_HOST : UINT64_C(1) << advice->location.id;
    switch (advice->what) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY: page->read_mostly = true; break;
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY: page->read_mostly = false; break;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
        page->preferred = host ? sim_location(CU_MEM_LOCATION_TYPE_HOST, CU_DEVICE_CPU) : advice->location;
        break;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
        page->preferred = sim_location(CU_MEM_LOCATION_TYPE_INVALID, CU_DEVICE_INVALID);
        break;
    case CU_MEM_ADVISE_SET_ACCESSED_BY: page->accessed |= bit; break;
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY: page->accessed &= ~bit; break;
    }
}

static bool names_a_place(CUmem_advise advice)
{
    return advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION || advice == CU_MEM_ADVISE_SET_ACCESSED_BY ||
           advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
}

static CUresult place_valid(CUmem_advise advice, CUmemLocation location)
{
    switch ((int)location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        SIM_REQUIRE(!names_a_place(advice) || device_exists(location.id));
        return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST: return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        SIM_REQUIRE(!names_a_place(advice) || sim_numa_node_exists(location.id));
        break;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    // Nodes are preferred, but map nothing.
    SIM_REQUIRE(!names_a_place(advice) || advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION);
    return CUDA_SUCCESS;
}

static CUresult advise(uintptr_t address, size_t size, struct advice advice)
{
    struct sim_context *context;
    struct sim_allocation allocation;
    SIM_TRY(sim_current(&context));
    SIM_REQUIRE(size && advice.what >= CU_MEM_ADVISE_SET_READ_MOSTLY && advice.what <= CU_MEM_ADVISE_UNSET_ACCESSED_BY);
    SIM_TRY(place_valid(advice.what, advice.location));
    // As an H200's driver does (580, CUDA 13.0): one host node is as good as none, and memory of pools takes no advice.
    if (advice.location.type > CU_MEM_LOCATION_TYPE_HOST)
        return CUDA_SUCCESS;
    SIM_REQUIRE(sim_allocation_at(address, &allocation) && allocation.managed);
    if (allocation.pool)
        return CUDA_ERROR_NOT_SUPPORTED;
    SIM_TRY(find_managed(address, size, &allocation));
    return sim_pages_change(&allocation, address, size, advise_page, &advice) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API(cuMemAdvise_v2, (CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location),
        (devPtr, count, advice, location))
{
    return advise(devPtr, count, (struct advice){advice, location});
}

// The place that the older functions mean by an ordinal.
static CUresult place_of(CUdevice device, CUmemLocation *location)
{
    if (device != CU_DEVICE_CPU && !device_exists(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *location = device == CU_DEVICE_CPU ? sim_location(CU_MEM_LOCATION_TYPE_HOST, CU_DEVICE_CPU)
                                        : sim_location(CU_MEM_LOCATION_TYPE_DEVICE, device);
    return CUDA_SUCCESS;
}

SIM_API(cuMemAdvise, (CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device),
        (devPtr, count, advice, device))
{
    CUmemLocation location = sim_location(CU_MEM_LOCATION_TYPE_HOST, CU_DEVICE_CPU);
    if (names_a_place(advice))
        SIM_TRY(place_of(device, &location));
    return advise(devPtr, count, (struct advice){advice, location});
}

// --- Attributes of ranges -------------------------------------------------------------------------------------

static int ordinal_of(CUmemLocation location)
{
    if (location.type == CU_MEM_LOCATION_TYPE_INVALID)
        return CU_DEVICE_INVALID;
    return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : CU_DEVICE_CPU;
}

static void list_accessed(uint64_t accessed, int *list, size_t capacity)
{
    size_t used = 0;
    for (int device = 0; device < sim_device_count() && used < capacity; device++)
        if (accessed >> device & 1)
            list[used++] = device;
    if (accessed & SIM_ACCESSED_BY_HOST && used < capacity)
        list[used++] = CU_DEVICE_CPU;
    while (used < capacity)
        list[used++] = CU_DEVICE_INVALID;
}

static CUresult range_attribute(void *data, size_t size, CUmem_range_attribute attribute, uintptr_t address,
                                size_t count)
{
    struct sim_allocation allocation;
    SIM_REQUIRE(data && size && size % sizeof(int) == 0);
    SIM_REQUIRE(size == sizeof(int) || attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY);
    SIM_TRY(find_managed(address, count, &allocation));
    struct sim_page page = sim_pages_common(&allocation, address, count);
    int *value = data;
    switch ((int)attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY: *value = page.read_mostly; break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION: *value = ordinal_of(page.preferred); break;
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: list_accessed(page.accessed, value, size / sizeof(int)); break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION: *value = ordinal_of(page.prefetched); break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE: *value = (int)page.preferred.type; break;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID: *value = page.preferred.id; break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE: *value = (int)page.prefetched.type; break;
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID: *value = page.prefetched.id; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

SIM_API(cuMemRangeGetAttribute,
        (void *data, size_t dataSize, CUmem_range_attribute attribute, CUdeviceptr devPtr, size_t count),
        (data, dataSize, attribute, devPtr, count))
{
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    return range_attribute(data, dataSize, attribute, devPtr, count);
}

SIM_API(cuMemRangeGetAttributes,
        (void **data, size_t *dataSizes, CUmem_range_attribute *attributes, size_t numAttributes, CUdeviceptr devPtr,
         size_t count),
        (data, dataSizes, attributes, numAttributes, devPtr, count))
{
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    SIM_REQUIRE(data && dataSizes && attributes && numAttributes);
    for (size_t i = 0; i < numAttributes; i++)
        SIM_TRY(range_attribute(data[i], dataSizes[i], attributes[i], devPtr, count));
    return CUDA_SUCCESS;
}

// --- Prefetching and discarding -------------------------------------------------------------------------------

// What a stream does with a number of ranges.
struct job {
    const char *function;
    bool discard;
    size_t count;
    struct piece {
        uintptr_t address;
        size_t size;
    } piece[];
};

static void run_job(struct sim_stream *stream, void *payload)
{
    const struct job *job = payload;
    if (atomic_load(&stream->context->error) != CUDA_SUCCESS)
        return;
    for (size_t i = 0; i < job->count; i++) {
        if (!sim_still_there(job->piece[i].address, job->piece[i].size, moving, job->function)) {
            sim_context_fail(stream->context, CUDA_ERROR_ILLEGAL_ADDRESS, sim_last_report());
            return;
        }
        if (job->discard)
            memset((void *)job->piece[i].address, DISCARDED, job->piece[i].size);
    }
}

static void note_prefetch(struct sim_page *page, const void *location)
{
    page->prefetched = *(const CUmemLocation *)location;
}

// `locations` is NULL for discarding alone; otherwise each holds from its index on.
struct batch {
    const CUdeviceptr *pointers;
    const size_t *sizes;
    size_t count;
    const CUmemLocation *locations;
    const size_t *indices;
    size_t location_count;
    bool discard;
};

static CUresult submit(const struct batch *batch, struct sim_stream *stream)
{
    if (sim_capturing(stream))
        return sim_capture_refuse_to_wait(stream);
    struct sim_allocation allocation;
    for (size_t i = 0; i < batch->count; i++)
        SIM_TRY(find_managed(batch->pointers[i], batch->sizes[i], &allocation));
    size_t bytes = sizeof(struct job) + batch->count * sizeof(struct piece);
    struct job *job = calloc(1, bytes);
    if (!job)
        return CUDA_ERROR_OUT_OF_MEMORY;
    job->function = sim_thread()->function;
    job->discard = batch->discard;
    job->count = batch->count;
    size_t next = 0;
    for (size_t i = 0; i < batch->count; i++) {
        job->piece[i] = (struct piece){batch->pointers[i], batch->sizes[i]};
        while (next < batch->location_count && batch->indices[next] <= i)
            next++;
        if (next && sim_allocation_at(batch->pointers[i], &allocation))  // a note that is lost does no harm
            (void)sim_pages_change(&allocation, batch->pointers[i], batch->sizes[i], note_prefetch,
                                   &batch->locations[next - 1]);
    }
    CUresult status = sim_do(stream, run_job, job, bytes, !batch->discard, false);
    free(job);
    return status;
}

static CUresult target_valid(CUmemLocation location, CUresult no_device)
{
    switch ((int)location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE: return device_exists(location.id) ? CUDA_SUCCESS : no_device;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA: SIM_REQUIRE(sim_numa_node_exists(location.id)); return CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult prefetch(CUdeviceptr pointer, size_t size, CUmemLocation location, CUstream handle)
{
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_for_work(handle, &stream));
    const size_t first = 0;
    return submit(&(struct batch){&pointer, &size, 1, &location, &first, 1, false}, stream);
}

SIM_API_STREAM(cuMemPrefetchAsync_v2, _ptsz,
               (CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags, CUstream hStream),
               (devPtr, count, location, flags, hStream))
{
    SIM_REQUIRE(!flags);
    SIM_TRY(target_valid(location, CUDA_ERROR_INVALID_DEVICE));
    if (location.type == CU_MEM_LOCATION_TYPE_HOST)
        location.id = CU_DEVICE_CPU;
    return prefetch(devPtr, count, location, hStream);
}

SIM_API_STREAM(cuMemPrefetchAsync, _ptsz, (CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream),
               (devPtr, count, dstDevice, hStream))
{
    CUmemLocation location;
    SIM_TRY(place_of(dstDevice, &location));
    return prefetch(devPtr, count, location, hStream);
}

static CUresult submit_batch(const struct batch *batch, unsigned long long flags, CUstream handle)
{
    SIM_REQUIRE(!sim_stream_is_legacy(handle));
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_for_work(handle, &stream));
    SIM_REQUIRE(batch->pointers && batch->sizes && batch->count && !flags);
    return submit(batch, stream);
}

static CUresult submit_batch_to(const struct batch *batch, unsigned long long flags, CUstream handle)
{
    SIM_REQUIRE(batch->locations && batch->indices && batch->location_count && batch->location_count <= batch->count);
    for (size_t i = 0; i < batch->location_count; i++) {
        SIM_TRY(target_valid(batch->locations[i], CUDA_ERROR_INVALID_VALUE));
        // The driver takes equal indices, although cuda.h says that each must be greater than the one before.
        SIM_REQUIRE(i ? batch->indices[i] >= batch->indices[i - 1] : batch->indices[i] == 0);
        SIM_REQUIRE(batch->indices[i] < batch->count);
    }
    return submit_batch(batch, flags, handle);
}

SIM_API_STREAM(cuMemPrefetchBatchAsync, _ptsz,
               (CUdeviceptr *dptrs, size_t *sizes, size_t count, CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
                size_t numPrefetchLocs, unsigned long long flags, CUstream hStream),
               (dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, hStream))
{
    struct batch batch = {dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, false};
    return submit_batch_to(&batch, flags, hStream);
}

SIM_API_STREAM(cuMemDiscardBatchAsync, _ptsz,
               (CUdeviceptr *dptrs, size_t *sizes, size_t count, unsigned long long flags, CUstream hStream),
               (dptrs, sizes, count, flags, hStream))
{
    return submit_batch(&(struct batch){dptrs, sizes, count, NULL, NULL, 0, true}, flags, hStream);
}

SIM_API_STREAM(cuMemDiscardAndPrefetchBatchAsync, _ptsz,
               (CUdeviceptr *dptrs, size_t *sizes, size_t count, CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
                size_t numPrefetchLocs, unsigned long long flags, CUstream hStream),
               (dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, hStream))
{
    struct batch batch = {dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, true};
    return submit_batch_to(&batch, flags, hStream);
}
