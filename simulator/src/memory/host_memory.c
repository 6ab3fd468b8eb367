// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Host memory that the driver allocated or that a program registered.

#include "memory/arena.h"
#include "streams/capture.h"
#include "driver/device.h"
#include "memory/memory.h"
#include "streams/stream.h"

static CUresult allocate(void **pp, size_t bytes, unsigned flags)
{
    SIM_TRY(sim_capture_check_unsafe());
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    if (!bytes) {
        *pp = NULL;
        return CUDA_SUCCESS;
    }
    if (bytes > SIZE_MAX / 2)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct sim_allocation description = {
        .range = {.size = bytes},
        .memory = SIM_PINNED_MEMORY,
        .device = context->device,
        .context = context,
        .on_host = true,
        // With unified addressing all pinned memory is mapped.
        .flags = flags | CU_MEMHOSTALLOC_DEVICEMAP,
        .charged = sim_round_up(bytes, SIM_PAGE),
    };
    description.range.start = sim_arena_take(sim_arena_host(), description.charged, SIM_PAGE);
    if (!description.range.start)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!sim_allocation_add(&description)) {
        sim_memory_release(&description);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *pp = (void *)description.range.start;
    return CUDA_SUCCESS;
}

SIM_API(cuMemAllocHost_v2, (void **pp, size_t bytesize), (pp, bytesize))
{
    SIM_REQUIRE(pp);
    return allocate(pp, bytesize, 0);
}

SIM_API(cuMemHostAlloc, (void **pp, size_t bytesize, unsigned int Flags), (pp, bytesize, Flags))
{
    const unsigned known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    SIM_REQUIRE(pp && !(Flags & ~known));
    return allocate(pp, bytesize, Flags);
}

static bool is_pinned(const struct sim_allocation *allocation) { return allocation->memory == SIM_PINNED_MEMORY; }

SIM_API(cuMemFreeHost, (void *p), (p))
{
    if (!p)
        return CUDA_SUCCESS;
    SIM_TRY(sim_capture_check_unsafe());
    struct sim_allocation allocation;
    uintptr_t address = (uintptr_t)p;
    if (sim_allocation_at(address, &allocation) && allocation.range.start == address && is_pinned(&allocation)) {
        sim_context_drain(allocation.context);
        if (sim_allocation_remove(address, is_pinned, &allocation)) {
            sim_memory_release(&allocation);
            return sim_context_status(allocation.context);
        }
    }
    return sim_report_bad_free(address);
}

static CUresult find_host(void *p, struct sim_allocation *allocation)
{
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    SIM_REQUIRE(p && sim_allocation_at((uintptr_t)p, allocation) && allocation->on_host && !allocation->pool);
    return CUDA_SUCCESS;
}

SIM_API(cuMemHostGetDevicePointer_v2, (CUdeviceptr *pdptr, void *p, unsigned int Flags), (pdptr, p, Flags))
{
    SIM_REQUIRE(pdptr && !Flags);
    struct sim_allocation allocation;
    SIM_TRY(find_host(p, &allocation));
    *pdptr = (CUdeviceptr)(uintptr_t)p;
    return CUDA_SUCCESS;
}

SIM_API(cuMemHostGetFlags, (unsigned int *pFlags, void *p), (pFlags, p))
{
    SIM_REQUIRE(pFlags);
    struct sim_allocation allocation;
    SIM_TRY(find_host(p, &allocation));
    *pFlags = allocation.flags;
    return CUDA_SUCCESS;
}

// --- Registered memory ----------------------------------------------------------------------------------------

static CUresult register_memory(void *p, size_t bytesize, unsigned flags)
{
    const unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY |
                           CU_MEMHOSTREGISTER_READ_ONLY;
    SIM_REQUIRE(p && bytesize && !(flags & ~known) && bytesize <= UINTPTR_MAX - (uintptr_t)p);
    SIM_TRY(sim_capture_check_unsafe());
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    if (sim_allocation_overlaps((uintptr_t)p, bytesize))
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    struct sim_allocation description = {
        .range = {.start = (uintptr_t)p, .size = bytesize},
        .memory = SIM_REGISTERED,
        .device = context->device,
        .context = context,
        .on_host = true,
        .flags = flags | CU_MEMHOSTREGISTER_DEVICEMAP,
    };
    return sim_allocation_add(&description) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API(cuMemHostRegister_v2, (void *p, size_t bytesize, unsigned int Flags), (p, bytesize, Flags))
{
    return register_memory(p, bytesize, Flags);
}

SIM_API(cuMemHostRegister, (void *p, size_t bytesize, unsigned int Flags), (p, bytesize, Flags))
{
    return register_memory(p, bytesize, Flags);
}

static bool is_registered(const struct sim_allocation *allocation) { return allocation->memory == SIM_REGISTERED; }

SIM_API(cuMemHostUnregister, (void *p), (p))
{
    SIM_REQUIRE(p);
    struct sim_allocation allocation;
    uintptr_t address = (uintptr_t)p;
    if (!sim_allocation_at(address, &allocation))
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    SIM_REQUIRE(is_registered(&allocation) && allocation.range.start == address);
    sim_context_drain(allocation.context);
    return sim_allocation_remove(address, is_registered, &allocation) ? CUDA_SUCCESS
                                                                      : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}
