// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE  // fallocate

#include "memory/ipc_pool.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver/device.h"

static const char KIND[] = "pool";
static const uint64_t DIRECTORY_MAGIC = 0x6c6f6f702d6d6973u;  // sim-pool
static const uint64_t POINTER_MAGIC = 0x7274702d6d6973u;      // sim-ptr

// What describes the pool, behind its memory.
struct sim_pool_directory {
    uint64_t magic;
    int32_t gpu;  // -1 for memory of the host
    int32_t location_type, location_id;
};

enum { DIRECTORY_BYTES = 2 << 20 };

// What CUmemPoolPtrExportData holds. As with the real driver the importer goes by the numbers in it, so that a pointer
// that was freed or never allocated can be imported; but never one outside of the pool.
struct pointer {
    uint64_t magic;
    struct sim_shared_id pool;
    uint64_t offset, size;
    uint64_t unused[3];
};
_Static_assert(sizeof(struct pointer) == sizeof(CUmemPoolPtrExportData), "they are copied");

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
    directory->gpu = pool->device < 0 ? -1 : sim_device_at(pool->device)->gpu;
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
    int fd = fcntl(found->shared.fd, F_DUPFD, 0);  // which a program that is executed inherits, as with the real driver
    if (fd < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    atomic_store(&found->exported, true);
    *(int *)handle_out = fd;
    return CUDA_SUCCESS;
}

// Fills in a pool from a descriptor. The pool then has one of its own.
static CUresult adopt(struct sim_pool *pool, int fd, const struct sim_shared *given)
{
    SIM_REQUIRE(given->size > DIRECTORY_BYTES && given->size % DIRECTORY_BYTES == 0);
    pool->shared = *given;
    pool->shared.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (pool->shared.fd < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    pool->size = given->size - DIRECTORY_BYTES;
    SIM_TRY(map(pool));
    const struct sim_pool_directory *directory = pool->directory;
    SIM_REQUIRE(directory->magic == DIRECTORY_MAGIC);
    int device = directory->gpu < 0 ? -1 : sim_device_of_gpu(directory->gpu);
    if (directory->gpu >= 0 && device < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    pool->imported = true;
    pool->device = device;
    pool->props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    pool->props.location.type = (CUmemLocationType)directory->location_type;
    pool->props.location.id = device < 0 ? directory->location_id : device;
    return CUDA_SUCCESS;
}

struct search {
    struct sim_shared_id id;
    uintptr_t handle;  // 0 until it is found
};

static void visit(void *object, void *arg)
{
    const struct sim_pool *pool = object;
    struct search *search = arg;
    if (pool->imported && sim_shared_same(pool->shared.id, search->id))
        search->handle = sim_object_handle(pool);
}

// With the lock held: the handle of the pool, which is the same for every import until it is destroyed.
static CUresult import(int fd, uintptr_t *handle)
{
    struct sim_shared given;
    if (!sim_shared_examine(KIND, fd, &given))
        return CUDA_ERROR_UNKNOWN;  // so says the real driver
    struct search search = {given.id, 0};
    sim_object_each(SIM_POOL, visit, &search);
    *handle = search.handle;
    if (search.handle)
        return CUDA_SUCCESS;
    struct sim_pool *pool = sim_pool_new_bare();
    if (!pool)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult status = adopt(pool, fd, &given);
    sim_pool_reset_access(pool);
    *handle = sim_object_handle(pool);
    if (status != CUDA_SUCCESS)
        sim_object_retire(pool);
    return status;
}

SIM_API(cuMemPoolImportFromShareableHandle,
        (CUmemoryPool *pool_out, void *handle, CUmemAllocationHandleType handleType, unsigned long long flags),
        (pool_out, handle, handleType, flags))
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    SIM_REQUIRE(pool_out && !flags && handleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    uintptr_t imported = 0;
    pthread_mutex_lock(&lock);
    CUresult status = import((int)(intptr_t)handle, &imported);
    pthread_mutex_unlock(&lock);
    if (status == CUDA_SUCCESS)
        *pool_out = (CUmemoryPool)imported;
    return status;
}

// --- Pointers -------------------------------------------------------------------------------------------------

SIM_API(cuMemPoolExportPointer, (CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr), (shareData_out, ptr))
{
    SIM_REQUIRE(shareData_out);
    struct sim_allocation allocation;
    SIM_REQUIRE(sim_allocation_at(ptr, &allocation) && allocation.range.start == ptr && allocation.pool);
    struct sim_pool *pool = allocation.pool;
    // Only memory of a pool that was exported before is described.
    SIM_REQUIRE(pool->directory && !pool->imported && atomic_load(&pool->exported));
    struct pointer pointer = {
        .magic = POINTER_MAGIC, .pool = pool->shared.id, .offset = ptr - pool->start, .size = allocation.range.size};
    memcpy(shareData_out, &pointer, sizeof pointer);
    return CUDA_SUCCESS;
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
    pool->imports++;
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
    SIM_REQUIRE(pointer.magic == POINTER_MAGIC && sim_shared_same(pointer.pool, found->shared.id));
    SIM_REQUIRE(pointer.size && pointer.size <= found->size && pointer.offset <= found->size - pointer.size);
    pthread_mutex_lock(&found->lock);
    CUresult status = adopt_pointer(found, &pointer, ptr_out);
    pthread_mutex_unlock(&found->lock);
    return status;
}
