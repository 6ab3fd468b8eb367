// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Device and managed memory that belongs to a context.

#include "memory/memory.h"

#include <string.h>

#include "memory/arena.h"
#include "streams/capture.h"
#include "driver/device.h"
#include "driver/usage.h"
#include "graph/graph_memory.h"
#include "memory/pool.h"
#include "streams/stream.h"

enum { PITCH = 512 };

void sim_memory_release(const struct sim_allocation *allocation)
{
    struct sim_device *device = sim_device_at(allocation->device);
    switch (allocation->memory) {
    case SIM_DEVICE_MEMORY:
    case SIM_GLOBAL_MEMORY:
    case SIM_ARRAY_MEMORY:
        sim_arena_give(device->arena, allocation->range.start, allocation->charged);
        sim_device_refund(device, allocation->charged);
        break;
    case SIM_MANAGED_MEMORY: sim_arena_give(sim_arena_managed(), allocation->range.start, allocation->charged); break;
    case SIM_PINNED_MEMORY: sim_arena_give(sim_arena_host(), allocation->range.start, allocation->charged); break;
    case SIM_POOL_MEMORY: sim_pool_free_now(allocation); break;
    case SIM_GRAPH_MEMORY: sim_graph_memory_freed(allocation); break;
    case SIM_REGISTERED:
    case SIM_VIRTUAL_MEMORY:  // of no context: only cuMemUnmap ends it
    case SIM_MEMORY_KINDS: break;
    }
}

static CUresult allocate(struct sim_context *context, enum sim_memory memory, size_t bytes, uintptr_t *address)
{
    struct sim_device *device = sim_device_at(context->device);
    if (bytes > SIZE_MAX / 2)
        return CUDA_ERROR_OUT_OF_MEMORY;
    size_t charged = sim_round_up(bytes, SIM_ALIGNMENT);
    if (!sim_device_charge(device, charged)) {
        // Memory that pools keep for later is given up first.
        sim_pools_trim_all(context->device);
        if (!sim_device_charge(device, charged))
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct sim_allocation description = {
        .range = {.start = sim_arena_take(device->arena, charged, SIM_ALIGNMENT), .size = bytes},
        .memory = memory,
        .device = context->device,
        .context = context,
        .charged = charged,
    };
    if (!description.range.start || !sim_allocation_add(&description)) {
        if (description.range.start)
            sim_arena_give(device->arena, description.range.start, charged);
        sim_device_refund(device, charged);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = description.range.start;
    return CUDA_SUCCESS;
}

SIM_API(cuMemAlloc_v2, (CUdeviceptr *dptr, size_t bytesize), (dptr, bytesize))
{
    SIM_REQUIRE(dptr && bytesize);
    SIM_TRY(sim_capture_check_unsafe());
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    uintptr_t address;
    SIM_TRY(allocate(context, SIM_DEVICE_MEMORY, bytesize, &address));
    *dptr = address;
    return CUDA_SUCCESS;
}

SIM_API(cuMemAllocPitch_v2,
        (CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes, size_t Height, unsigned int ElementSizeBytes),
        (dptr, pPitch, WidthInBytes, Height, ElementSizeBytes))
{
    SIM_REQUIRE(dptr && pPitch && WidthInBytes && Height);
    SIM_REQUIRE(ElementSizeBytes == 4 || ElementSizeBytes == 8 || ElementSizeBytes == 16);
    if (WidthInBytes > SIZE_MAX / 4 || Height > SIZE_MAX / 4 / sim_round_up(WidthInBytes, PITCH))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pPitch = sim_round_up(WidthInBytes, PITCH);
    return cuMemAlloc_v2_body(dptr, *pPitch * Height);
}

SIM_API(cuMemAllocManaged, (CUdeviceptr *dptr, size_t bytesize, unsigned int flags), (dptr, bytesize, flags))
{
    SIM_REQUIRE(dptr && bytesize && (flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST));
    SIM_TRY(sim_capture_check_unsafe());
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    // Managed memory may exceed the device's, so nothing is taken from the device.
    struct sim_allocation description = {
        .range = {.size = bytesize},
        .memory = SIM_MANAGED_MEMORY,
        .device = context->device,
        .context = context,
        .managed = true,
        .flags = flags,
        .sync_memops = 1,
        .charged = bytesize > SIZE_MAX / 2 ? bytesize : sim_round_up(bytesize, SIM_PAGE),
    };
    description.range.start = sim_arena_take(sim_arena_managed(), description.charged, SIM_PAGE);
    if (!description.range.start)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!sim_allocation_add(&description)) {
        sim_memory_release(&description);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *dptr = description.range.start;
    return CUDA_SUCCESS;
}

static bool freed_by_mem_free(const struct sim_allocation *allocation)
{
    return allocation->memory == SIM_DEVICE_MEMORY || allocation->memory == SIM_MANAGED_MEMORY ||
           allocation->memory == SIM_POOL_MEMORY || allocation->memory == SIM_GRAPH_MEMORY;
}

SIM_API(cuMemFree_v2, (CUdeviceptr dptr), (dptr))
{
    if (!dptr)
        return CUDA_SUCCESS;
    SIM_TRY(sim_capture_check_unsafe());
    struct sim_allocation allocation;
    if (sim_allocation_at(dptr, &allocation) && allocation.range.start == dptr && freed_by_mem_free(&allocation)) {
        // Work that was submitted before may still use the memory; that of a pool is taken without a wait, as on
        // hardware.
        if (allocation.context)
            sim_context_drain(allocation.context);
        if (sim_allocation_remove(dptr, freed_by_mem_free, &allocation)) {
            sim_memory_release(&allocation);
            if (allocation.pool)
                sim_pools_settle(allocation.device);
            return allocation.context ? sim_context_status(allocation.context) : CUDA_SUCCESS;
        }
    }
    return sim_report_bad_free(dptr);
}

SIM_API(cuMemGetInfo_v2, (size_t *free, size_t *total), (free, total))
{
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    struct sim_device *device = sim_device_at(context->device);
    if (free)
        *free = device->memory - atomic_load(&device->usage->memory);
    if (total)
        *total = device->memory;
    return CUDA_SUCCESS;
}

SIM_API(cuMemGetAddressRange_v2, (CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr), (pbase, psize, dptr))
{
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    struct sim_allocation allocation;
    if (!sim_allocation_at(dptr, &allocation))
        return CUDA_ERROR_NOT_FOUND;
    if (allocation.memory == SIM_VIRTUAL_MEMORY && !allocation.rights.readers)
        return CUDA_ERROR_NOT_FOUND;
    if (pbase)
        *pbase = allocation.range.start;
    if (psize)
        *psize = allocation.range.size;
    return CUDA_SUCCESS;
}

// --- Module variables -----------------------------------------------------------------------------------------

CUresult sim_memory_new_global(struct sim_context *context, size_t bytes, uintptr_t *address)
{
    SIM_TRY(allocate(context, SIM_GLOBAL_MEMORY, bytes ? bytes : 1, address));
    memset((void *)*address, 0, bytes);
    return CUDA_SUCCESS;
}

static bool is_global(const struct sim_allocation *allocation) { return allocation->memory == SIM_GLOBAL_MEMORY; }

void sim_memory_free_global(uintptr_t address)
{
    struct sim_allocation allocation;
    if (sim_allocation_remove(address, is_global, &allocation))
        sim_memory_release(&allocation);
}

// --- Arrays ---------------------------------------------------------------------------------------------------

CUresult sim_memory_new_array(struct sim_context *context, size_t bytes, uintptr_t *address)
{
    return allocate(context, SIM_ARRAY_MEMORY, bytes, address);
}

static bool is_array(const struct sim_allocation *allocation) { return allocation->memory == SIM_ARRAY_MEMORY; }

void sim_memory_free_array(uintptr_t address)
{
    struct sim_allocation allocation;
    if (sim_allocation_remove(address, is_array, &allocation))
        sim_memory_release(&allocation);
}
