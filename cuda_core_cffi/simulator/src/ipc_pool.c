// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE  // fallocate

#include "ipc_pool.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"

static const char KIND[] = "pool";
enum { DIRECTORY_BYTES = 2 << 20 };
static const uint64_t DIRECTORY_MAGIC = 0x6c6f6f702d6d6973u;  // sim-pool
static const uint64_t POINTER_MAGIC = 0x7274702d6d6973u;      // sim-ptr

// An allocation that was exported; `serial` is 0 in a free entry, and never the same twice in a pool.
struct entry {
    _Atomic uint64_t serial;
    uint64_t offset, size;
    uint64_t padding;
};

struct sim_pool_directory {
    uint64_t magic;
    int32_t device;  // -1 for memory of the host
    int32_t location_type, location_id;
    uint32_t padding;
    uint64_t serial;  // the last one given
    struct entry entries[];
};

enum { ENTRIES = (DIRECTORY_BYTES - sizeof(struct sim_pool_directory)) / sizeof(struct entry) };

// What CUmemPoolPtrExportData holds.
struct pointer {
    struct sim_shared_seal seal;
    struct sim_shared_id pool;
    uint64_t entry, serial, offset, size;
};
_Static_assert(sizeof(struct pointer) == SIM_SHARED_HANDLE, "a handle has 64 bytes");
_Static_assert(sizeof(CUmemPoolPtrExportData) == SIM_SHARED_HANDLE, "a handle has 64 bytes");

// --- Life -----------------------------------------------------------------------------------------------------

static CUresult map(struct sim_pool *pool)
{
    void *memory = sim_shared_map(&pool->shared, 0, pool->size);
    pool->directory = sim_shared_map(&pool->shared, pool->size, DIRECTORY_BYTES);
    pool->start = (uintptr_t)memory;
    return memory && pool->directory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_pool_share(struct sim_pool *pool)
{
    SIM_TRY(sim_shared_new(KIND, pool->size + DIRECTORY_BYTES, &pool->shared));
    SIM_TRY(map(pool));
    struct sim_pool_directory *directory = pool->directory;
    directory->magic = DIRECTORY_MAGIC;
    directory->device = pool->device;
    directory->location_type = (int32_t)pool->props.location.type;
    directory->location_id = pool->props.location.id;
    return CUDA_SUCCESS;
}

void sim_pool_unshare(struct sim_pool *pool)
{
    if (pool->directory)
        munmap(pool->directory, DIRECTORY_BYTES);
    sim_shared_close(&pool->shared);
}

bool sim_pool_punch(struct sim_pool *pool, uintptr_t start, size_t bytes)
{
    return fallocate(pool->shared.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(start - pool->start),
                     (off_t)bytes) == 0;
}

// --- Pools ----------------------------------------------------------------------------------------------------

SIM_API(cuMemPoolExportToShareableHandle,
        (void *handle_out, CUmemoryPool pool, CUmemAllocationHandleType handleType, unsigned long long flags),
        (handle_out, pool, handleType, flags))
{
    SIM_REQUIRE(handle_out && !flags && handleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    SIM_HELD struct sim_pool *found = NULL;
    SIM_TRY(sim_pool_find(pool, &found));
    SIM_REQUIRE(found->directory && !found->imported);
    int fd = fcntl(found->shared.fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    *(int *)handle_out = fd;
    return CUDA_SUCCESS;
}

// Fills in a pool from a descriptor. The pool then has one of its own.
static CUresult adopt(struct sim_pool *pool, int fd)
{
    struct sim_shared given;
    SIM_REQUIRE(sim_shared_examine(KIND, fd, &given));
    SIM_REQUIRE(given.size > DIRECTORY_BYTES && given.size % DIRECTORY_BYTES == 0);
    pool->shared = given;
    pool->shared.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (pool->shared.fd < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    pool->size = given.size - DIRECTORY_BYTES;
    SIM_TRY(map(pool));
    const struct sim_pool_directory *directory = pool->directory;
    int device = directory->device;
    SIM_REQUIRE(directory->magic == DIRECTORY_MAGIC && device >= -1 && device < sim_device_count());
    pool->imported = true;
    pool->device = device;
    pool->props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    pool->props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    pool->props.location.type = (CUmemLocationType)directory->location_type;
    pool->props.location.id = directory->location_id;
    return CUDA_SUCCESS;
}

SIM_API(cuMemPoolImportFromShareableHandle,
        (CUmemoryPool *pool_out, void *handle, CUmemAllocationHandleType handleType, unsigned long long flags),
        (pool_out, handle, handleType, flags))
{
    SIM_REQUIRE(pool_out && !flags && handleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    struct sim_pool *pool = sim_pool_new_bare();
    if (!pool)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult status = adopt(pool, (int)(intptr_t)handle);
    if (status != CUDA_SUCCESS) {
        sim_object_retire(pool);
        return status;
    }
    sim_pool_reset_access(pool);
    *pool_out = (CUmemoryPool)sim_object_handle(pool);
    return CUDA_SUCCESS;
}

// --- Pointers -------------------------------------------------------------------------------------------------

// With the pool's lock held: the entry of an allocation that has one, or a new one; 0 when the directory is full.
static uint32_t entry_of(struct sim_pool *pool, const struct sim_allocation *allocation)
{
    if (allocation->shared_entry)
        return allocation->shared_entry;
    struct sim_pool_directory *directory = pool->directory;
    for (uint32_t i = 1; i < ENTRIES; i++) {
        struct entry *entry = &directory->entries[i];
        if (atomic_load(&entry->serial))
            continue;
        if (!sim_allocation_set_shared_entry(allocation->range.start, i))
            return 0;
        entry->offset = allocation->range.start - pool->start;
        entry->size = allocation->range.size;
        atomic_store(&entry->serial, ++directory->serial);
        return i;
    }
    return 0;
}

SIM_API(cuMemPoolExportPointer, (CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr), (shareData_out, ptr))
{
    SIM_REQUIRE(shareData_out);
    struct sim_allocation allocation;
    SIM_REQUIRE(sim_allocation_at(ptr, &allocation) && allocation.range.start == ptr && allocation.pool);
    struct sim_pool *pool = allocation.pool;
    SIM_REQUIRE(sim_object_hold(pool));
    CUresult status = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&pool->lock);
    // Again, now that nobody frees it or exports it at the same time.
    if (pool->directory && !pool->imported && sim_allocation_at(ptr, &allocation) && allocation.pool == pool) {
        uint32_t number = entry_of(pool, &allocation);
        const struct entry *entry = &pool->directory->entries[number];
        struct pointer pointer = {{0, 0}, pool->shared.id, number, atomic_load(&entry->serial), entry->offset, entry->size};
        sim_shared_seal(&pointer, POINTER_MAGIC);
        status = number ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
        if (number)
            memcpy(shareData_out, &pointer, sizeof pointer);
    }
    pthread_mutex_unlock(&pool->lock);
    sim_object_drop(pool);
    return status;
}

void sim_pool_withdraw(const struct sim_allocation *allocation)
{
    struct sim_pool *pool = allocation->pool;
    if (!allocation->shared_entry)
        return;
    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->directory->entries[allocation->shared_entry].serial, 0);
    pthread_mutex_unlock(&pool->lock);
}

// Is this a pointer that the exporter of the pool has exported and not freed, inside the pool's memory?
static bool genuine(const struct sim_pool *pool, const struct pointer *pointer)
{
    if (!sim_shared_intact(pointer, POINTER_MAGIC) || memcmp(&pointer->pool, &pool->shared.id, sizeof pointer->pool) != 0)
        return false;
    if (pointer->entry == 0 || pointer->entry >= ENTRIES || !pointer->serial)
        return false;
    const struct entry *entry = &pool->directory->entries[pointer->entry];
    if (atomic_load(&entry->serial) != pointer->serial || entry->offset != pointer->offset || entry->size != pointer->size)
        return false;
    return pointer->size && pointer->size <= pool->size && pointer->offset <= pool->size - pointer->size;
}

// The real driver does not count imports: the pointer is the same, and the first free is the last. Memory of the host
// it refuses to import again.
static CUresult adopt_pointer(struct sim_pool *pool, const struct pointer *pointer, CUdeviceptr *out)
{
    struct sim_context *context;
    struct sim_allocation description = {
        .range = {.start = pool->start + pointer->offset, .size = pointer->size},
        .memory = SIM_POOL_MEMORY,
        .device = pool->device,
        .pool = pool,
        .on_host = pool->device < 0,
        .sync_memops = 1,
    };
    if (pool->device < 0) {
        SIM_TRY(sim_current(&context));
        description.device = context->device;
    }
    struct sim_allocation known;
    if (sim_allocation_at(description.range.start, &known) && known.range.start == description.range.start &&
        known.range.size == description.range.size) {
        *out = known.range.start;
        return pool->device < 0 ? CUDA_ERROR_ALREADY_MAPPED : CUDA_SUCCESS;
    }
    SIM_REQUIRE(!sim_allocation_overlaps(description.range.start, description.range.size));
    sim_object_hold(pool);
    if (!sim_allocation_add(&description)) {
        sim_object_drop(pool);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = description.range.start;
    return CUDA_SUCCESS;
}

SIM_API(cuMemPoolImportPointer, (CUdeviceptr *ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData),
        (ptr_out, pool, shareData))
{
    SIM_REQUIRE(ptr_out && shareData);
    SIM_HELD struct sim_pool *found = NULL;
    SIM_TRY(sim_pool_find(pool, &found));
    SIM_REQUIRE(found->imported);
    struct pointer pointer;
    memcpy(&pointer, shareData, sizeof pointer);
    SIM_REQUIRE(genuine(found, &pointer));
    pthread_mutex_lock(&found->lock);
    CUresult status = adopt_pointer(found, &pointer, ptr_out);
    pthread_mutex_unlock(&found->lock);
    return status;
}
