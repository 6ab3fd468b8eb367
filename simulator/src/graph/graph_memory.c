// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "graph/graph_memory.h"

#include <stdlib.h>
#include <string.h>

#include "memory/arena.h"
#include "driver/device.h"
#include "memory/pool.h"

// What is reserved for graphs grows and shrinks by so much, or by pages where the device has no more.
enum { RESERVE_STEP = 32 << 20, RESERVE_PAGE = 2 << 20 };
static const size_t ADDRESSES = (size_t)1 << 40;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // guards what follows
static struct sim_range *memories;
static struct {
    uint64_t needed;  // by what is backed or live
    uint64_t reserved, reserved_high;
    uint64_t used_high;  // all that is reserved counts as used
} accounts[SIM_MAX_DEVICES];

static struct sim_arena *arena;
static void make_arena(void) { arena = sim_arena_new(ADDRESSES); }

// --- Life -----------------------------------------------------------------------------------------------------

static CUresult check(const CUmemPoolProps *props, const CUmemAccessDesc *access, size_t count, size_t size)
{
    enum { MANAGED = 2 };  // CU_MEM_ALLOCATION_TYPE_MANAGED, which headers before 13.0 do not have
    SIM_REQUIRE(size && (props->allocType == CU_MEM_ALLOCATION_TYPE_PINNED || (int)props->allocType == MANAGED));
    SIM_SUPPORTED(!props->handleTypes);
    SIM_REQUIRE(props->location.type != CU_MEM_LOCATION_TYPE_INVALID);
    SIM_SUPPORTED(props->location.type == CU_MEM_LOCATION_TYPE_DEVICE);
    SIM_REQUIRE(props->location.id >= 0 && props->location.id < sim_device_count());
    SIM_REQUIRE(!count || (access && count <= (size_t)sim_device_count() + 1));
    for (size_t i = 0; i < count; i++) {
        if (access[i].location.type == CU_MEM_LOCATION_TYPE_HOST)
            continue;
        SIM_REQUIRE(access[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE);
        if (access[i].location.id < 0 || access[i].location.id >= sim_device_count())
            return CUDA_ERROR_INVALID_DEVICE;
        SIM_SUPPORTED(access[i].location.id != props->location.id ||
                      access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        SIM_REQUIRE(access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                    access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    }
    return size <= ADDRESSES ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_graph_memory_new(const CUmemPoolProps *props, const CUmemAccessDesc *access, size_t access_count,
                              size_t size, struct sim_graph_memory **out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    SIM_TRY(check(props, access, access_count, size));
    pthread_once(&once, make_arena);
    struct sim_graph_memory *memory = calloc(1, sizeof *memory);
    CUmemAccessDesc *kept = malloc((access_count + 1) * sizeof *kept);
    size_t bytes = sim_round_up(size, SIM_ALIGNMENT);
    uintptr_t address = memory && kept ? sim_arena_take(arena, bytes, SIM_ALIGNMENT) : 0;
    if (!address) {
        free(memory);
        free(kept);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (access_count)
        memcpy(kept, access, access_count * sizeof *kept);
    atomic_init(&memory->references, 1);
    memory->range.start = address;
    memory->range.size = bytes;
    memory->size = size;
    memory->device = props->location.id;
    memory->props = *props;
    memory->access = kept;
    memory->access_count = access_count;
    pthread_mutex_lock(&lock);
    sim_ranges_add(&memories, &memory->range);
    pthread_mutex_unlock(&lock);
    *out = memory;
    return CUDA_SUCCESS;
}

void sim_graph_memory_hold(struct sim_graph_memory *memory) { atomic_fetch_add(&memory->references, 1); }

void sim_graph_memory_drop(struct sim_graph_memory *memory)
{
    if (!memory)
        return;
    // Under the lock, so that nobody finds what is about to go.
    pthread_mutex_lock(&lock);
    bool last = atomic_fetch_sub(&memory->references, 1) == 1;
    if (last)
        sim_ranges_remove(&memories, &memory->range);
    pthread_mutex_unlock(&lock);
    if (!last)
        return;
    sim_arena_give(arena, memory->range.start, memory->range.size);
    free(memory->access);
    free(memory);
}

struct sim_graph_memory *sim_graph_memory_find(uintptr_t address)
{
    pthread_mutex_lock(&lock);
    struct sim_graph_memory *memory = (struct sim_graph_memory *)sim_ranges_at(memories, address);
    bool found = memory && memory->range.start == address;
    if (found)
        sim_graph_memory_hold(memory);
    pthread_mutex_unlock(&lock);
    return found ? memory : NULL;
}

bool sim_graph_memory_covers(uintptr_t address, size_t size)
{
    pthread_mutex_lock(&lock);
    const struct sim_graph_memory *memory = (const struct sim_graph_memory *)sim_ranges_at(memories, address);
    bool covers = memory && size <= memory->size && address - memory->range.start <= memory->size - size;
    pthread_mutex_unlock(&lock);
    return covers;
}

// --- Accounts, with the lock held -----------------------------------------------------------------------------

static bool counted(const struct sim_graph_memory *memory) { return memory->backed || memory->live; }

static bool reserve(int device, uint64_t bytes)
{
    uint64_t reserved = accounts[device].reserved;
    if (bytes > reserved && !sim_device_charge(sim_device_at(device), bytes - reserved))
        return false;
    if (bytes > reserved)
        accounts[device].reserved = bytes;
    return true;
}

static bool charge(const struct sim_graph_memory *memory)
{
    const int device = memory->device;
    uint64_t needed = accounts[device].needed + memory->range.size;
    if (!reserve(device, sim_round_up(needed, RESERVE_STEP)) && !reserve(device, sim_round_up(needed, RESERVE_PAGE)))
        return false;
    accounts[device].needed = needed;
    if (accounts[device].reserved > accounts[device].used_high)
        accounts[device].used_high = accounts[device].reserved;
    if (accounts[device].reserved > accounts[device].reserved_high)
        accounts[device].reserved_high = accounts[device].reserved;
    return true;
}

static void refund_if_idle(const struct sim_graph_memory *memory)
{
    if (!counted(memory))
        accounts[memory->device].needed -= memory->range.size;
}

// --- Backing --------------------------------------------------------------------------------------------------

CUresult sim_graph_memory_back(struct sim_graph_memory *memory)
{
    CUresult status = CUDA_SUCCESS;
    for (int attempt = 0; attempt < 2; attempt++) {
        pthread_mutex_lock(&lock);
        status = counted(memory) || charge(memory) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
        if (status == CUDA_SUCCESS)
            memory->backed = true;
        pthread_mutex_unlock(&lock);
        if (status == CUDA_SUCCESS)
            break;
        sim_pools_trim_all(memory->device);
    }
    return status;
}

void sim_graph_memory_unback(struct sim_graph_memory *memory)
{
    pthread_mutex_lock(&lock);
    if (memory->backed) {
        memory->backed = false;
        refund_if_idle(memory);
    }
    pthread_mutex_unlock(&lock);
}

void sim_graph_memory_fly(struct sim_graph_memory *memory, int launches)
{
    pthread_mutex_lock(&lock);
    memory->flights += (unsigned)launches;
    pthread_mutex_unlock(&lock);
}

static void trim_one(struct sim_range *range, void *arg)
{
    struct sim_graph_memory *memory = (struct sim_graph_memory *)range;
    const int *device = arg;
    if (memory->device != *device || memory->live || memory->flights || !memory->backed)
        return;
    memory->backed = false;
    refund_if_idle(memory);
    // What is left of the contents goes with the memory.
    sim_arena_discard(range->start, range->size);
}

SIM_API(cuDeviceGraphMemTrim, (CUdevice device), (device))
{
    struct sim_device *found;
    SIM_TRY(sim_device_find(device, &found));
    pthread_mutex_lock(&lock);
    sim_ranges_each(memories, trim_one, &device);
    uint64_t keep = sim_round_up(accounts[device].needed, RESERVE_STEP);
    if (keep > accounts[device].reserved)
        keep = accounts[device].reserved;
    sim_device_refund(found, accounts[device].reserved - keep);
    accounts[device].reserved = keep;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

// --- Allocating and freeing -----------------------------------------------------------------------------------

bool sim_graph_memory_is_live(struct sim_graph_memory *memory)
{
    pthread_mutex_lock(&lock);
    bool live = memory->live;
    pthread_mutex_unlock(&lock);
    return live;
}

static struct sim_allocation describe(struct sim_graph_memory *memory)
{
    struct sim_allocation description = {
        .range = {.start = memory->range.start, .size = memory->size},
        .memory = SIM_GRAPH_MEMORY,
        .device = memory->device,
        .graph = memory,
        .charged = memory->range.size,
        .rights = {1u << memory->device, 1u << memory->device},
    };
    for (size_t i = 0; i < memory->access_count; i++) {
        if (memory->access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            continue;
        uint32_t who = 1u << memory->access[i].location.id;
        description.rights.readers |= who;
        if (memory->access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            description.rights.writers |= who;
    }
    return description;
}

CUresult sim_graph_memory_allocate(struct sim_graph_memory *memory)
{
    struct sim_allocation description = describe(memory);
    pthread_mutex_lock(&lock);
    bool ready = memory->live || counted(memory) || charge(memory);
    memory->live = memory->live || ready;
    pthread_mutex_unlock(&lock);
    if (!ready)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_graph_memory_hold(memory);  // of the allocation's
    if (sim_allocation_add(&description))
        return CUDA_SUCCESS;
    sim_graph_memory_freed(&description);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

void sim_graph_memory_freed(const struct sim_allocation *allocation)
{
    struct sim_graph_memory *memory = allocation->graph;
    pthread_mutex_lock(&lock);
    memory->live = false;
    refund_if_idle(memory);
    pthread_mutex_unlock(&lock);
    sim_graph_memory_drop(memory);
}

static bool is_graph_memory(const struct sim_allocation *allocation) { return allocation->memory == SIM_GRAPH_MEMORY; }

bool sim_graph_memory_free(struct sim_graph_memory *memory)
{
    struct sim_allocation allocation;
    if (!sim_allocation_remove_later(memory->range.start, is_graph_memory, &allocation))
        return false;
    sim_graph_memory_freed(&allocation);
    return true;
}

void sim_graph_memory_leave(uintptr_t address) { sim_limbo_leave(address); }

// --- Attributes -----------------------------------------------------------------------------------------------

SIM_API(cuDeviceGetGraphMemAttribute, (CUdevice device, CUgraphMem_attribute attr, void *value), (device, attr, value))
{
    struct sim_device *found;
    SIM_TRY(sim_device_find(device, &found));
    SIM_REQUIRE(value);
    CUresult status = CUDA_SUCCESS;
    uint64_t *out = value;
    pthread_mutex_lock(&lock);
    switch ((int)attr) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: *out = accounts[device].used_high; break;
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT: *out = accounts[device].reserved; break;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: *out = accounts[device].reserved_high; break;
    default: status = CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

SIM_API(cuDeviceSetGraphMemAttribute, (CUdevice device, CUgraphMem_attribute attr, void *value), (device, attr, value))
{
    struct sim_device *found;
    SIM_TRY(sim_device_find(device, &found));
    SIM_REQUIRE(value && *(const uint64_t *)value == 0);
    SIM_REQUIRE(attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH);
    pthread_mutex_lock(&lock);
    if (attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
        accounts[device].used_high = accounts[device].reserved;
    else
        accounts[device].reserved_high = accounts[device].reserved;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}
