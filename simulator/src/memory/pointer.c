// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Pointer attributes.

#include <string.h>

#include "memory/allocation.h"
#include "memory/arena.h"
#include "driver/device.h"
#include "memory/pool.h"
#include "memory/virtual.h"

enum { MAPPING = 2 << 20, NO_DEVICE = -2 };

// The bytes an attribute's value has; 0 for attributes that do not exist.
static size_t size_of(CUpointer_attribute attribute)
{
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: return 8;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS: return sizeof(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE: return 4;
    default: return 0;
    }
}

static CUmemAccess_flags access_of(const struct sim_allocation *allocation)
{
    struct sim_context *context;
    if (sim_current_quiet(&context) != CUDA_SUCCESS)
        return CU_MEM_ACCESS_FLAGS_PROT_NONE;
    // Memory of the host counts as accessible, even that of a pool to which a kernel has no access.
    return allocation->on_host ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : sim_allocation_access(allocation, context);
}

// What a pointer may move in: of mapped virtual memory all that was reserved.
static struct sim_range range_of(const struct sim_allocation *allocation)
{
    struct sim_range range = allocation->range;
    if (allocation->physical)
        sim_reservation_at(range.start, &range.start, &range.size);
    return range;
}

static bool has_context(void)
{
    struct sim_context *context;
    return sim_current_quiet(&context) == CUDA_SUCCESS;
}

static bool open_to_current(struct sim_pool *pool)
{
    struct sim_context *context;
    return sim_current_quiet(&context) == CUDA_SUCCESS &&
           sim_pool_access(pool, context->device) != CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

// The value of an attribute of a known allocation; CUDA_ERROR_INVALID_VALUE (and 0) where it has none.
static CUresult value_of(const struct sim_allocation *allocation, CUpointer_attribute attribute, uintptr_t address,
                         uint64_t value[2])
{
    bool managed = allocation->managed, host = allocation->on_host;
    value[0] = value[1] = 0;
    switch ((int)attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        value[0] = allocation->context ? (uint64_t)(uintptr_t)sim_context_handle(allocation->context) : 0;
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: value[0] = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        if (!has_context())
            return CUDA_ERROR_INVALID_CONTEXT;
        // Memory of a host pool has a device address only for devices that were given access.
        if (host && allocation->pool && !open_to_current(allocation->pool))
            return CUDA_ERROR_INVALID_VALUE;
        value[0] = address;
        break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!host && !managed)
            return CUDA_ERROR_INVALID_VALUE;
        value[0] = address;
        break;
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS: return host ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: value[0] = (uint64_t)allocation->sync_memops; break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: value[0] = allocation->id; break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: value[0] = managed; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: value[0] = (uint64_t)allocation->device; break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        // Of a host pool's memory, drivers tell where it starts in the pool.
        value[0] = range_of(allocation).start - (host && allocation->pool ? allocation->pool->start : 0);
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: value[0] = range_of(allocation).size; break;
    case CU_POINTER_ATTRIBUTE_MAPPED: value[0] = 1; break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        value[0] = allocation->physical ? (uint64_t)allocation->physical->properties.requestedHandleTypes
                   : allocation->pool   ? (uint64_t)allocation->pool->props.handleTypes
                                        : 0;
        break;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        value[0] = allocation->physical && allocation->physical->properties.allocFlags.gpuDirectRDMACapable;
        break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: value[0] = access_of(allocation); break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        value[0] = allocation->pool ? sim_object_handle(allocation->pool) : 0;
        break;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        value[0] = allocation->memory == SIM_REGISTERED ? sim_round_up(allocation->range.size, SIM_PAGE)
                                                        : sim_round_up(allocation->range.size, MAPPING);
        break;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: value[0] = allocation->range.start; break;
    default: break;  // capabilities that the simulator does not have
    }
    return CUDA_SUCCESS;
}

SIM_API(cuPointerGetAttribute, (void *data, CUpointer_attribute attribute, CUdeviceptr ptr), (data, attribute, ptr))
{
    size_t size = size_of(attribute);
    SIM_REQUIRE(data && size);
    struct sim_allocation allocation;
    SIM_REQUIRE(sim_allocation_at(ptr, &allocation));
    uint64_t value[2];
    CUresult status = value_of(&allocation, attribute, ptr, value);
    memcpy(data, value, size);
    return status;
}

SIM_API(cuPointerGetAttributes,
        (unsigned int numAttributes, CUpointer_attribute *attributes, void **data, CUdeviceptr ptr),
        (numAttributes, attributes, data, ptr))
{
    SIM_REQUIRE(numAttributes && attributes && data);
    struct sim_allocation allocation;
    bool known = sim_allocation_at(ptr, &allocation);
    for (unsigned i = 0; i < numAttributes; i++) {
        size_t size = size_of(attributes[i]);
        SIM_REQUIRE(size && data[i]);
        uint64_t value[2] = {0, 0};
        if (known)
            (void)value_of(&allocation, attributes[i], ptr, value);
        else if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            value[0] = (uint64_t)(int64_t)NO_DEVICE;
        else if (attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER)
            value[0] = ptr;  // an ordinary pointer is taken for the host's
        memcpy(data[i], value, size);
    }
    return CUDA_SUCCESS;
}

SIM_API(cuPointerSetAttribute, (const void *value, CUpointer_attribute attribute, CUdeviceptr ptr),
        (value, attribute, ptr))
{
    SIM_REQUIRE(value && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
    SIM_REQUIRE(sim_allocation_set_sync_memops(ptr, *(const int *)value != 0));
    return CUDA_SUCCESS;
}
