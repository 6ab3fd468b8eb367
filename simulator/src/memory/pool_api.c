// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include <string.h>

#include "streams/capture.h"
#include "driver/device.h"
#include "graph/graph_memory.h"
#include "memory/memory.h"
#include "memory/pages.h"
#include "memory/pool.h"

// --- Default and current pools --------------------------------------------------------------------------------

// For pinned and for managed memory: one row for each device, one for the host, one for its only node; and one for
// managed memory that is at home nowhere.
enum { HOST_ROW = SIM_MAX_DEVICES, NODE_ROW, MANAGED_ROW, NOWHERE_ROW = MANAGED_ROW + MANAGED_ROW, ROWS };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    struct sim_pool *standard, *current;  // current holds a reference
} rows[ROWS];

static CUresult row_of(CUmemLocation location, CUmemAllocationType type, int *row)
{
    bool managed = (int)type == SIM_POOL_MANAGED_TYPE;
    SIM_REQUIRE(managed || type == CU_MEM_ALLOCATION_TYPE_PINNED);
    switch ((int)location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        SIM_REQUIRE(location.id >= 0 && location.id < sim_device_count());
        *row = location.id;
        break;
    case CU_MEM_LOCATION_TYPE_HOST: *row = HOST_ROW; break;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        SIM_REQUIRE(sim_numa_node_exists(location.id));
        *row = NODE_ROW;
        break;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: return CUDA_ERROR_NOT_SUPPORTED;
    case CU_MEM_LOCATION_TYPE_INVALID:
        SIM_REQUIRE(managed);
        *row = NOWHERE_ROW;
        return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    *row += managed ? MANAGED_ROW : 0;
    return CUDA_SUCCESS;
}

// With the lock held.
static CUresult standard_of(int row, CUmemLocation location, CUmemAllocationType type, struct sim_pool **pool)
{
    if (!rows[row].standard) {
        CUmemPoolProps props = {.allocType = type, .location = location};
        SIM_TRY(sim_pool_new(&props, &rows[row].standard));
        sim_object_hide(rows[row].standard);
        rows[row].standard->is_default = true;
    }
    *pool = rows[row].standard;
    return CUDA_SUCCESS;
}

CUresult sim_pool_default(CUmemLocation location, CUmemAllocationType type, struct sim_pool **pool)
{
    int row;
    SIM_TRY(row_of(location, type, &row));
    pthread_mutex_lock(&lock);
    CUresult status = standard_of(row, location, type, pool);
    pthread_mutex_unlock(&lock);
    return status;
}

CUresult sim_pool_get_current(CUmemLocation location, CUmemAllocationType type, struct sim_pool **pool)
{
    int row;
    SIM_TRY(row_of(location, type, &row));
    CUresult status = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    // A destroyed pool stops being current.
    if (rows[row].current && !atomic_load(&rows[row].current->base.live)) {
        sim_object_drop(rows[row].current);
        rows[row].current = NULL;
    }
    *pool = rows[row].current;
    if (!*pool)
        status = standard_of(row, location, type, pool);
    if (status == CUDA_SUCCESS)
        sim_object_hold(*pool);
    pthread_mutex_unlock(&lock);
    return status;
}

CUresult sim_pool_set_current(CUmemLocation location, CUmemAllocationType type, struct sim_pool *pool)
{
    int row;
    SIM_TRY(row_of(location, type, &row));
    SIM_REQUIRE(pool->props.allocType == type && !pool->imported);
    SIM_REQUIRE(row >= HOST_ROW ? pool->props.location.type == location.type : pool->device == row);
    pthread_mutex_lock(&lock);
    struct sim_pool *old = rows[row].current;
    sim_object_hold(pool);
    rows[row].current = pool;
    pthread_mutex_unlock(&lock);
    sim_object_drop(old);
    return CUDA_SUCCESS;
}

static CUmemLocation device_location(int device) { return sim_location(CU_MEM_LOCATION_TYPE_DEVICE, device); }

CUresult sim_pool_current(int device, struct sim_pool **pool)
{
    return sim_pool_get_current(device_location(device), CU_MEM_ALLOCATION_TYPE_PINNED, pool);
}

static CUresult default_handle(CUmemLocation location, CUmemAllocationType type, CUmemoryPool *out)
{
    SIM_REQUIRE(out);
    struct sim_pool *pool;
    SIM_TRY(sim_pool_default(location, type, &pool));
    *out = (CUmemoryPool)sim_object_handle(pool);
    return CUDA_SUCCESS;
}

static CUresult current_handle(CUmemLocation location, CUmemAllocationType type, CUmemoryPool *out)
{
    SIM_REQUIRE(out);
    SIM_HELD struct sim_pool *pool = NULL;
    SIM_TRY(sim_pool_get_current(location, type, &pool));
    *out = (CUmemoryPool)sim_object_handle(pool);
    return CUDA_SUCCESS;
}

static CUresult set_current_handle(CUmemLocation location, CUmemAllocationType type, CUmemoryPool handle)
{
    SIM_HELD struct sim_pool *pool = NULL;
    SIM_TRY(sim_pool_find(handle, &pool));
    return sim_pool_set_current(location, type, pool);
}

SIM_API(cuDeviceGetDefaultMemPool, (CUmemoryPool *pool_out, CUdevice dev), (pool_out, dev))
{
    struct sim_device *device;
    SIM_TRY(sim_device_find(dev, &device));
    return default_handle(device_location(dev), CU_MEM_ALLOCATION_TYPE_PINNED, pool_out);
}

SIM_API(cuDeviceGetMemPool, (CUmemoryPool *pool, CUdevice dev), (pool, dev))
{
    struct sim_device *device;
    SIM_TRY(sim_device_find(dev, &device));
    return current_handle(device_location(dev), CU_MEM_ALLOCATION_TYPE_PINNED, pool);
}

SIM_API(cuDeviceSetMemPool, (CUdevice dev, CUmemoryPool pool), (dev, pool))
{
    struct sim_device *device;
    SIM_TRY(sim_device_find(dev, &device));
    return set_current_handle(device_location(dev), CU_MEM_ALLOCATION_TYPE_PINNED, pool);
}

SIM_API(cuMemGetDefaultMemPool, (CUmemoryPool *pool_out, CUmemLocation *location, CUmemAllocationType type),
        (pool_out, location, type))
{
    SIM_REQUIRE(location);
    return default_handle(*location, type, pool_out);
}

SIM_API(cuMemGetMemPool, (CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type),
        (pool, location, type))
{
    SIM_REQUIRE(location);
    return current_handle(*location, type, pool);
}

SIM_API(cuMemSetMemPool, (CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool), (location, type, pool))
{
    SIM_REQUIRE(location);
    return set_current_handle(*location, type, pool);
}

// --- Pools ----------------------------------------------------------------------------------------------------

// The first drivers with pools of host memory that is on no node, and of managed memory.
enum { FIRST_WITH_HOST_POOLS = 12060, FIRST_WITH_MANAGED_POOLS = 13000 };

static CUresult props_valid(const CUmemPoolProps *props)
{
    bool managed = (int)props->allocType == SIM_POOL_MANAGED_TYPE;
    int driver = sim_config()->driver_version;
    SIM_REQUIRE(managed || props->allocType == CU_MEM_ALLOCATION_TYPE_PINNED);
    SIM_REQUIRE(!managed || (driver >= FIRST_WITH_MANAGED_POOLS && !props->maxSize));
    const unsigned known = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_FABRIC;
    SIM_REQUIRE(!((unsigned)props->handleTypes & ~known));
    switch ((int)props->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        SIM_REQUIRE(props->location.id >= 0 && props->location.id < sim_device_count());
        break;
    case CU_MEM_LOCATION_TYPE_HOST: SIM_REQUIRE(driver >= FIRST_WITH_HOST_POOLS); break;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA: SIM_REQUIRE(sim_numa_node_exists(props->location.id)); break;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
    case CU_MEM_LOCATION_TYPE_INVALID: SIM_REQUIRE(managed); break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    if (!props->handleTypes)
        return CUDA_SUCCESS;
    SIM_REQUIRE(!managed && props->location.type != CU_MEM_LOCATION_TYPE_HOST);
    return props->handleTypes & CU_MEM_HANDLE_TYPE_FABRIC ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

SIM_API(cuMemPoolCreate, (CUmemoryPool *pool, const CUmemPoolProps *poolProps), (pool, poolProps))
{
    SIM_REQUIRE(pool && poolProps);
    SIM_TRY(sim_capture_check_unsafe());
    SIM_TRY(props_valid(poolProps));
    struct sim_pool *created;
    SIM_TRY(sim_pool_new(poolProps, &created));
    sim_pool_inherit(created);
    *pool = (CUmemoryPool)sim_object_handle(created);
    return CUDA_SUCCESS;
}

SIM_API(cuMemPoolDestroy, (CUmemoryPool pool), (pool))
{
    SIM_HELD struct sim_pool *found = NULL;
    SIM_TRY(sim_pool_find(pool, &found));
    SIM_TRY(sim_capture_check_unsafe());
    pthread_mutex_lock(&found->lock);
    bool in_use = found->imports > 0;  // other pools last as long as their allocations
    pthread_mutex_unlock(&found->lock);
    SIM_REQUIRE(!found->is_default && !in_use && sim_object_retire(found));
    sim_pool_recycle(found);
    return CUDA_SUCCESS;
}

SIM_API(cuMemPoolTrimTo, (CUmemoryPool pool, size_t minBytesToKeep), (pool, minBytesToKeep))
{
    SIM_HELD struct sim_pool *found = NULL;
    SIM_TRY(sim_pool_find(pool, &found));
    SIM_REQUIRE(!found->imported);
    SIM_TRY(sim_capture_check_unsafe());
    sim_pool_trim(found, minBytesToKeep);
    return CUDA_SUCCESS;
}

static int *flag_of(struct sim_pool *pool, CUmemPool_attribute attribute)
{
    switch ((int)attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: return &pool->follow_events;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: return &pool->opportunistic;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: return &pool->internal_dependencies;
    default: return NULL;
    }
}

static CUresult read_attribute(struct sim_pool *pool, CUmemPool_attribute attribute, void *value)
{
    const int *flag = flag_of(pool, attribute);
    if (flag) {
        *(int *)value = *flag;
        return CUDA_SUCCESS;
    }
    uint64_t *number = value;
    switch ((int)attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *number = pool->threshold; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: *number = pool->reserved; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: *number = pool->reserved_high; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *number = pool->used; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *number = pool->used_high; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

SIM_API(cuMemPoolGetAttribute, (CUmemoryPool pool, CUmemPool_attribute attr, void *value), (pool, attr, value))
{
    SIM_REQUIRE(value);
    SIM_HELD struct sim_pool *found = NULL;
    SIM_TRY(sim_pool_find(pool, &found));
    SIM_REQUIRE(!found->imported);
    pthread_mutex_lock(&found->lock);
    CUresult status = read_attribute(found, attr, value);
    pthread_mutex_unlock(&found->lock);
    return status;
}

static CUresult write_attribute(struct sim_pool *pool, CUmemPool_attribute attribute, const void *value)
{
    int *flag = flag_of(pool, attribute);
    if (flag) {
        *flag = *(const int *)value != 0;
        return CUDA_SUCCESS;
    }
    uint64_t number = *(const uint64_t *)value;
    switch ((int)attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: pool->threshold = number; return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        SIM_REQUIRE(number == 0);
        pool->reserved_high = pool->reserved;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        SIM_REQUIRE(number == 0);
        pool->used_high = pool->used;
        return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

SIM_API(cuMemPoolSetAttribute, (CUmemoryPool pool, CUmemPool_attribute attr, void *value), (pool, attr, value))
{
    SIM_REQUIRE(value);
    SIM_HELD struct sim_pool *found = NULL;
    SIM_TRY(sim_pool_find(pool, &found));
    SIM_TRY(sim_capture_check_unsafe());
    SIM_REQUIRE(!found->imported);
    pthread_mutex_lock(&found->lock);
    CUresult status = write_attribute(found, attr, value);
    pthread_mutex_unlock(&found->lock);
    return status;
}

SIM_API(cuMemPoolSetAccess, (CUmemoryPool pool, const CUmemAccessDesc *map, size_t count), (pool, map, count))
{
    SIM_REQUIRE(map && count);
    SIM_HELD struct sim_pool *found = NULL;
    SIM_TRY(sim_pool_find(pool, &found));
    SIM_TRY(sim_capture_check_unsafe());
    for (size_t i = 0; i < count; i++) {
        int device = map[i].location.id;
        if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            return CUDA_ERROR_NOT_SUPPORTED;
        if (map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
            return CUDA_ERROR_NOT_SUPPORTED;
        if (device < 0 || device >= sim_device_count())
            return CUDA_ERROR_INVALID_DEVICE;
        SIM_REQUIRE(map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
                    map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        // A device always has access to its own memory, and to another's only where there is a link.
        bool peer = found->device >= 0 && device != found->device, none = map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE;
        if (none ? device == found->device : peer && !sim_config()->peer_access)
            return CUDA_ERROR_INVALID_DEVICE;
    }
    for (size_t i = 0; i < count; i++)
        atomic_store(&found->access[map[i].location.id], (int)map[i].flags);
    sim_allocation_access_revoked();
    return CUDA_SUCCESS;
}

SIM_API(cuMemPoolGetAccess, (CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location),
        (flags, memPool, location))
{
    SIM_REQUIRE(flags && location);
    SIM_HELD struct sim_pool *found = NULL;
    SIM_TRY(sim_pool_find(memPool, &found));
    if (location->type == CU_MEM_LOCATION_TYPE_DEVICE) {
        SIM_REQUIRE(location->id >= 0 && location->id < sim_device_count());
        *flags = (CUmemAccess_flags)atomic_load(&found->access[location->id]);
        return CUDA_SUCCESS;
    }
    SIM_REQUIRE(location->type == CU_MEM_LOCATION_TYPE_HOST || location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA);
    bool on_host = found->device < 0 && (int)found->props.allocType != SIM_POOL_MANAGED_TYPE;
    *flags = on_host ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

// --- Allocation -----------------------------------------------------------------------------------------------

static CUresult allocate(struct sim_pool *pool, struct sim_stream *stream, size_t bytes, CUdeviceptr *address)
{
    if (sim_capturing(stream))
        return sim_capture_alloc(stream, pool, bytes, address);
    SIM_TRY(sim_capture_check_unsafe());
    return sim_pool_allocate(pool, stream, bytes, address);
}

SIM_API_STREAM(cuMemAllocAsync, _ptsz, (CUdeviceptr *dptr, size_t bytesize, CUstream hStream),
               (dptr, bytesize, hStream))
{
    SIM_REQUIRE(dptr);
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_for_work(hStream, &stream));
    *dptr = 0;
    if (!bytesize)
        return sim_capturing(stream) ? CUDA_SUCCESS : sim_capture_check_unsafe();
    SIM_HELD struct sim_pool *pool = NULL;
    SIM_TRY(sim_pool_current(stream->context->device, &pool));
    return allocate(pool, stream, bytesize, dptr);
}

SIM_API_STREAM(cuMemAllocFromPoolAsync, _ptsz,
               (CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream),
               (dptr, bytesize, pool, hStream))
{
    SIM_REQUIRE(dptr);
    SIM_HELD struct sim_pool *found = NULL;
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_pool_find(pool, &found));
    SIM_TRY(sim_stream_for_work(hStream, &stream));
    *dptr = 0;
    if (!bytesize)
        return sim_capturing(stream) ? CUDA_SUCCESS : sim_capture_check_unsafe();
    return allocate(found, stream, bytesize, dptr);
}

static bool freed_in_order(const struct sim_allocation *allocation)
{
    return allocation->memory == SIM_POOL_MEMORY || allocation->memory == SIM_DEVICE_MEMORY ||
           allocation->memory == SIM_GRAPH_MEMORY;
}

static void release_later(struct sim_stream *stream, void *payload)
{
    (void)stream;
    const struct sim_allocation *allocation = payload;
    sim_limbo_leave(allocation->range.start);
    if (allocation->memory != SIM_GRAPH_MEMORY)
        sim_memory_release(allocation);
}

SIM_API_STREAM(cuMemFreeAsync, _ptsz, (CUdeviceptr dptr, CUstream hStream), (dptr, hStream))
{
    SIM_HELD struct sim_stream *stream = NULL;
    SIM_TRY(sim_stream_for_work(hStream, &stream));
    if (!dptr)
        return CUDA_SUCCESS;
    if (sim_capturing(stream))
        return sim_capture_free(stream, dptr);
    SIM_TRY(sim_capture_check_unsafe());
    struct sim_allocation allocation;
    if (sim_allocation_at(dptr, &allocation) && allocation.memory == SIM_MANAGED_MEMORY)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!sim_allocation_remove_later(dptr, freed_in_order, &allocation)) {
        // Who has memory of a graph need not know whether the graph has run since it was freed last.
        struct sim_graph_memory *idle = sim_graph_memory_find(dptr);
        sim_graph_memory_drop(idle);
        if (idle)
            return CUDA_ERROR_INVALID_VALUE;
        return sim_report_bad_free(dptr);
    }
    if (allocation.memory == SIM_POOL_MEMORY)
        return sim_pool_free_async(&allocation, stream);
    // The addresses stay the graph's: only work that was submitted before has a use for them.
    if (allocation.memory == SIM_GRAPH_MEMORY)
        sim_memory_release(&allocation);
    struct sim_op *op = sim_op_new(release_later, sizeof allocation);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->always = true;
    memcpy(op->payload, &allocation, sizeof allocation);
    return sim_submit(stream, op, NULL);
}
