// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Memory pools: address space of their own, backed in chunks that count as the device's memory while the pool keeps
// them.

#ifndef SIM_POOL_H
#define SIM_POOL_H

#include "memory/allocation.h"
#include "driver/config.h"
#include "memory/ipc_shared.h"
#include "streams/stream.h"

struct sim_pool {
    struct sim_object base;
    CUmemPoolProps props;
    int device;                            // whose memory it is; -1 for the host's
    bool is_default;                       // cannot be destroyed
    bool imported;                         // another process allocates
    _Atomic bool exported;                 // other processes may have it
    struct sim_shared shared;              // where the memory of a pool lies that processes share
    struct sim_pool_directory *directory;  // NULL for every other pool; see ipc_pool.c
    struct sim_pool *next, **link;
    _Atomic int access[SIM_MAX_DEVICES];

    pthread_mutex_t lock;  // guards what follows
    uintptr_t start;
    size_t size, chunk;
    unsigned char *backed;   // by chunk
    struct sim_range *free;  // blocks; see pool.c
    int follow_events, opportunistic, internal_dependencies;
    uint64_t threshold;
    uint64_t reserved, reserved_high, used, used_high;
    size_t imports;  // pointers of an imported pool that are not freed
};

// CU_MEM_ALLOCATION_TYPE_MANAGED, which headers before 13.0 do not have.
enum { SIM_POOL_MANAGED_TYPE = 2 };

CUresult sim_pool_new(const CUmemPoolProps *props, struct sim_pool **pool);
struct sim_pool *sim_pool_new_bare(void);  // without memory; NULL when out of memory
void sim_pool_reset_access(struct sim_pool *pool);
// A new pool inherits the access rights of the pool that was destroyed last on its device.
void sim_pool_recycle(struct sim_pool *destroyed);
void sim_pool_inherit(struct sim_pool *created);
void sim_pool_finalize(void *pool);
CUresult sim_pool_find(CUmemoryPool handle, struct sim_pool **pool);
CUresult sim_pool_allocate(struct sim_pool *pool, struct sim_stream *stream, size_t bytes, CUdeviceptr *address);
CUresult sim_pool_free_async(const struct sim_allocation *allocation, struct sim_stream *stream);
// Leaves the memory counted as used: cuMemFree never takes it off, seen with driver 580.
void sim_pool_free_now(const struct sim_allocation *allocation);
void sim_pool_trim(struct sim_pool *pool, size_t keep);
CUmemAccess_flags sim_pool_access(struct sim_pool *pool, int device);

// After a synchronisation: pools give back what is beyond their release thresholds.
void sim_pools_settle(int device);
// Memory is short: every pool of the device gives back what it does not use.
void sim_pools_trim_all(int device);

CUresult sim_pool_default(CUmemLocation location, CUmemAllocationType type, struct sim_pool **pool);  // borrowed
CUresult sim_pool_current(int device, struct sim_pool **pool);                                        // a reference
CUresult sim_pool_set_current(CUmemLocation location, CUmemAllocationType type, struct sim_pool *pool);
CUresult sim_pool_get_current(CUmemLocation location, CUmemAllocationType type, struct sim_pool **pool);

#endif
