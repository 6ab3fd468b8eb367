// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Every piece of memory that the driver knows, found by any address inside it.

#ifndef SIM_ALLOCATION_H
#define SIM_ALLOCATION_H

#include "driver/context.h"
#include "memory/ranges.h"
#include "driver/report.h"

enum sim_memory {
    SIM_DEVICE_MEMORY,   // cuMemAlloc
    SIM_PINNED_MEMORY,   // cuMemAllocHost, cuMemHostAlloc
    SIM_REGISTERED,      // cuMemHostRegister
    SIM_MANAGED_MEMORY,  // cuMemAllocManaged
    SIM_POOL_MEMORY,     // from a memory pool
    SIM_GLOBAL_MEMORY,   // a module's variables
    SIM_VIRTUAL_MEMORY,  // cuMemMap
    SIM_GRAPH_MEMORY,    // of a graph's allocation node
    SIM_ARRAY_MEMORY,    // of an array or a mipmapped array
    SIM_MEMORY_KINDS,
};

struct sim_pool;
struct sim_physical;
struct sim_graph_memory;

// Who may use mapped virtual memory, or a graph's: a bit for each device, and one for the host.
struct sim_rights {
    uint32_t readers, writers;
};
#define SIM_HOST_RIGHT (1u << 31)

// What somebody is about to do with memory.
struct sim_use {
    int device;
    bool writes;
    bool copies;   // a copy that wants for access is refused, which is no misuse: there are others that need none
    bool between;  // a copy between contexts, which uses each memory from its own device
};

struct sim_allocation {
    struct sim_range range;  // the bytes asked for
    enum sim_memory memory;
    int device;
    struct sim_context *context;  // NULL for pool memory
    struct sim_pool *pool;
    bool on_host;    // the memory is the host's
    bool managed;    // both sides may use it
    unsigned flags;  // of cuMemHostAlloc or cuMemHostRegister
    int sync_memops;
    size_t charged;                  // bytes taken from the device or the arena
    struct sim_physical *physical;   // of mapped virtual memory
    struct sim_graph_memory *graph;  // of a graph's; a reference
    struct sim_rights rights;        // of both
    uint64_t id;
    struct sim_history history;
};

// Registers a filled-in allocation: `range`, `memory` and what belongs to the kind.
struct sim_allocation *sim_allocation_add(const struct sim_allocation *description);  // NULL when out of memory
// Copies what is known about the allocation that holds the address. Returns false if there is none.
bool sim_allocation_at(uintptr_t address, struct sim_allocation *copy);
// Removes the allocation that starts at the address, if `wanted` accepts it, and remembers its history. On success the
// caller owns what is copied out and frees the memory itself.
bool sim_allocation_remove(uintptr_t address, bool (*wanted)(const struct sim_allocation *),
                           struct sim_allocation *copy);
bool sim_allocation_set_sync_memops(uintptr_t address, int value);
bool sim_allocation_overlaps(uintptr_t start, size_t size);
// Of mapped virtual memory: sets the rights of every mapping in the range.
void sim_allocation_set_rights(uintptr_t start, size_t size, struct sim_rights given, struct sim_rights kept);
// Removes the allocations of a context, one at a time; false once none is left.
bool sim_allocation_take_of(const struct sim_context *context, struct sim_allocation *copy);

// What work in a context may do with the memory.
CUmemAccess_flags sim_allocation_access(const struct sim_allocation *allocation, const struct sim_context *context);
// May work in the context use `size` bytes at `address`? Otherwise reports the misuse and returns
// CUDA_ERROR_INVALID_VALUE.
CUresult sim_check_range(const struct sim_context *context, uintptr_t address, size_t size, bool writes);
// What an address is to a copy. Memory that was freed, or that the device has no rights to, is reported and counts as
// bad.
enum sim_place { SIM_BAD, SIM_PAGEABLE, SIM_KNOWN };
enum sim_place sim_place_of(uintptr_t address, size_t size, struct sim_use use);
// When work runs at last: is its memory still there, and still open to the device? Otherwise reports the misuse.
bool sim_still_there(uintptr_t address, size_t size, struct sim_use use, const char *work);
// Reports why an address cannot be freed (freed before, not the start, or nothing the driver knows) and returns the
// error; freeing what went with its context is no misuse.
CUresult sim_report_bad_free(uintptr_t address);
// For kernels: as sim_check_range without a report; `range` receives the bounds for which the answer holds.
int sim_check_kernel_access(const struct sim_context *context, uintptr_t address, size_t size, bool writes,
                            uintptr_t range[2]);
void sim_report_kernel_access(const struct sim_context *context, uintptr_t address, const char *kernel,
                              const char *what);
// Changes whenever memory is freed or access to it is taken back, so that bounds from the call above may be kept.
extern uint64_t sim_allocation_epoch;
void sim_allocation_access_revoked(void);

void sim_allocation_count(enum sim_memory memory, size_t *count, size_t *bytes);
void sim_allocation_report_leaks(void);

// Memory freed in stream order: gone for every new call, still there for the work submitted before. It stays in limbo
// until sim_limbo_leave is called for it.
bool sim_allocation_remove_later(uintptr_t address, bool (*wanted)(const struct sim_allocation *),
                                 struct sim_allocation *copy);
void sim_limbo_leave(uintptr_t start);

#endif
