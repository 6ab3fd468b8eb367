// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Which devices may use the memory of a pool.
#ifndef CCC_PEER_H
#define CCC_PEER_H

#include "memory/ccc_memory.h"

// Whether a device may use the pool's memory: 1 or 0, or -1 on failure.
static int ccc_pool_accessible(const ccc_handle *pool, int device)
{
    CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CCC_USE_OR(pool, (ccc_closed(), -1));
    CCC_RELAXED_MODE;
    CCC_TRY_OR(-1, cuMemPoolGetAccess, &flags, (CUmemoryPool)CCC_POINTER(pool), &location);
    return flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

// The devices, besides the pool's own, that may use its memory, into an array of CCC_MAX_DEVICES. Their number, or -1.
static int ccc_pool_peers(const ccc_handle *pool, int *ordinals)
{
    int devices = 0, found = 0;
    CCC_USE_OR(pool, (ccc_closed(), -1));
    CUresult result = cuDeviceGetCount(&devices);
    if (result)
        ccc_fail((int)result, "cuDeviceGetCount");
    if (devices == 0)
        return -1;
    for (int device = 0; device < devices && device < CCC_MAX_DEVICES; device++) {
        int accessible = device == pool->device ? 0 : ccc_pool_accessible(pool, device);
        if (accessible < 0)
            return -1;
        if (accessible)
            ordinals[found++] = device;
    }
    return found;
}

// Grant access to the first `granted` of the devices and take it from the others, all in one call.
static int ccc_pool_set_peers(const ccc_handle *pool, const int *ordinals, size_t count, size_t granted)
{
    CUmemAccessDesc access[CCC_MAX_DEVICES] = {0};
    CCC_USE(pool);
    if (count > CCC_MAX_DEVICES)
        return ccc_fail(CUDA_ERROR_INVALID_DEVICE, "cuMemPoolSetAccess");
    for (size_t i = 0; i < count; i++) {
        access[i].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        access[i].location.id = ordinals[i];
        access[i].flags = i < granted ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    }
    if (granted && !(pool->flags & (CCC_BORROWED | CCC_IMPORTED)) && pool->device >= 0 &&
        !atomic_exchange(&ccc_as_pool(pool)->granted, 1))
        atomic_fetch_add(&ccc_waits_alive, 1);
    CCC_RELAXED_MODE;
    CCC_TRY(cuMemPoolSetAccess, (CUmemoryPool)CCC_POINTER(pool), access, count);
    return 0;
}

#endif
