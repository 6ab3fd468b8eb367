// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "memory/pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "memory/arena.h"
#include "driver/device.h"
#include "memory/ipc_pool.h"

// Memory that is not in use. A block freed in a stream may be used again in that stream at once. Elsewhere it may once
// the stream has got there, which without opportunistic reuse the host has to have waited for, or in a stream that by
// an event comes after the free.
struct block {
    struct sim_range range;
    struct sim_point freed;  // no stream once it is reached
};

enum { LARGE_CHUNK = 32 << 20, SMALL_CHUNK = 2 << 20 };
static const size_t LARGE_DEVICE = (size_t)512 << 20;
static const size_t HOST_POOL_ADDRESSES = (size_t)1 << 34;

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;  // before any pool's lock
static struct sim_pool *pools;
static _Atomic bool excess;

// --- Life -----------------------------------------------------------------------------------------------------

struct sim_pool *sim_pool_new_bare(void)
{
    struct sim_pool *pool = sim_object_new(SIM_POOL);
    if (pool) {
        pool->shared.fd = -1;
        pthread_mutex_init(&pool->lock, NULL);
    }
    return pool;
}

void sim_pool_reset_access(struct sim_pool *pool)
{
    for (int i = 0; i < SIM_MAX_DEVICES; i++)
        atomic_store(&pool->access[i],
                     i == pool->device ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE);
}

// What other devices may do with the pool of a device that was destroyed last. Drivers give it to the next one, which
// reuses the handle (nvbug 5698116).
static struct recycled {
    bool present;
    int access[SIM_MAX_DEVICES];
} recycled[SIM_MAX_DEVICES];  // guarded by the list's lock

void sim_pool_recycle(struct sim_pool *pool)
{
    if (pool->device < 0 || pool->imported)
        return;
    pthread_mutex_lock(&list_lock);
    struct recycled *left = &recycled[pool->device];
    left->present = true;
    for (int i = 0; i < SIM_MAX_DEVICES; i++)
        left->access[i] = atomic_load(&pool->access[i]);
    pthread_mutex_unlock(&list_lock);
}

void sim_pool_inherit(struct sim_pool *pool)
{
    if (pool->device < 0)
        return;
    pthread_mutex_lock(&list_lock);
    struct recycled *left = &recycled[pool->device];
    for (int i = 0; left->present && i < SIM_MAX_DEVICES; i++)
        atomic_store(&pool->access[i], left->access[i]);
    left->present = false;
    pthread_mutex_unlock(&list_lock);
}

static CUresult reserve_addresses(struct sim_pool *pool)
{
    if (pool->props.handleTypes)
        return sim_pool_share(pool);
    void *start = mmap(NULL, pool->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pool->start = (uintptr_t)start;
    return CUDA_SUCCESS;
}

CUresult sim_pool_new(const CUmemPoolProps *props, struct sim_pool **out)
{
    struct sim_pool *pool = sim_pool_new_bare();
    if (!pool)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pool->props = *props;
    bool on_device =
        props->location.type == CU_MEM_LOCATION_TYPE_DEVICE && (int)props->allocType != SIM_POOL_MANAGED_TYPE;
    pool->device = on_device ? props->location.id : -1;
    pool->follow_events = pool->opportunistic = pool->internal_dependencies = 1;
    size_t memory = on_device ? sim_device_at(pool->device)->memory : HOST_POOL_ADDRESSES;
    pool->chunk = memory >= LARGE_DEVICE ? LARGE_CHUNK : SMALL_CHUNK;
    // Twice the memory, so that fragmentation does not make an allocation fail.
    pool->size = sim_round_up(2 * memory, pool->chunk);
    pool->backed = calloc(pool->size / pool->chunk, 1);
    struct block *block = calloc(1, sizeof *block);
    CUresult status = pool->backed && block ? reserve_addresses(pool) : CUDA_ERROR_OUT_OF_MEMORY;
    if (status != CUDA_SUCCESS) {
        free(block);
        sim_object_retire(pool);
        return status;
    }
    block->range.start = pool->start;
    block->range.size = pool->size;
    sim_ranges_add(&pool->free, &block->range);
    sim_pool_reset_access(pool);
    pthread_mutex_lock(&list_lock);
    pool->next = pools;
    pool->link = &pools;
    if (pools)
        pools->link = &pool->next;
    pools = pool;
    pthread_mutex_unlock(&list_lock);
    *out = pool;
    return CUDA_SUCCESS;
}

static void free_block(struct sim_range *range, void *unused)
{
    (void)unused;
    struct block *block = (struct block *)range;
    sim_object_drop(block->freed.stream);
    free(block);
}

static void refund(struct sim_pool *pool, size_t bytes)
{
    if (pool->device >= 0)
        sim_device_refund(sim_device_at(pool->device), bytes);
}

void sim_pool_finalize(void *object)
{
    struct sim_pool *pool = object;
    pthread_mutex_lock(&list_lock);  // others write the link
    if (pool->link) {
        *pool->link = pool->next;
        if (pool->next)
            pool->next->link = pool->link;
    }
    pthread_mutex_unlock(&list_lock);
    sim_ranges_each(pool->free, free_block, NULL);
    refund(pool, pool->reserved);
    if (pool->start)
        munmap((void *)pool->start, pool->size);
    sim_pool_unshare(pool);
    free(pool->backed);
    pthread_mutex_destroy(&pool->lock);
}

CUresult sim_pool_find(CUmemoryPool handle, struct sim_pool **pool)
{
    return sim_object_find(SIM_POOL, handle, (void **)pool) == SIM_FOUND ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUmemAccess_flags sim_pool_access(struct sim_pool *pool, int device)
{
    // All have access to managed memory, although such a pool says that it grants none.
    if ((int)pool->props.allocType == SIM_POOL_MANAGED_TYPE)
        return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return (CUmemAccess_flags)atomic_load(&pool->access[device]);
}

// --- Chunks, with the pool's lock held ------------------------------------------------------------------------

static size_t chunk_of(const struct sim_pool *pool, uintptr_t address) { return (address - pool->start) / pool->chunk; }

static size_t unbacked(const struct sim_pool *pool, uintptr_t address, size_t bytes)
{
    size_t count = 0;
    for (size_t i = chunk_of(pool, address); i <= chunk_of(pool, address + bytes - 1); i++)
        count += !pool->backed[i];
    return count * pool->chunk;
}

static bool back(struct sim_pool *pool, uintptr_t address, size_t bytes)
{
    size_t needed = unbacked(pool, address, bytes);
    if (!needed)
        return true;
    size_t limit = pool->props.maxSize ? sim_round_up(pool->props.maxSize, pool->chunk) : SIZE_MAX;
    if (needed > limit - pool->reserved)
        return false;
    if (pool->device >= 0 && !sim_device_charge(sim_device_at(pool->device), needed))
        return false;
    size_t first = chunk_of(pool, address), last = chunk_of(pool, address + bytes - 1);
    if (mprotect((void *)(pool->start + first * pool->chunk), (last - first + 1) * pool->chunk,
                 PROT_READ | PROT_WRITE)) {
        refund(pool, needed);
        return false;
    }
    memset(pool->backed + first, 1, last - first + 1);
    pool->reserved += needed;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    return true;
}

// --- Blocks, with the pool's lock held ------------------------------------------------------------------------

static bool settled(const struct sim_pool *pool, struct block *block)
{
    struct sim_point freed = block->freed;
    if (freed.stream && (pool->opportunistic ? sim_reached(freed.stream, freed.number)
                                             : atomic_load(&freed.stream->known) >= freed.number)) {
        sim_object_drop(block->freed.stream);
        block->freed.stream = NULL;
    }
    return !block->freed.stream;
}

static bool mergeable(const struct sim_pool *pool, struct block *low, struct block *high)
{
    return low && high && low->range.start + low->range.size == high->range.start &&
           settled(pool, low) + settled(pool, high) != 1 && low->freed.stream == high->freed.stream;
}

static struct block *absorb(struct sim_pool *pool, struct block *low, struct block *high)
{
    sim_ranges_remove(&pool->free, &low->range);
    sim_ranges_remove(&pool->free, &high->range);
    low->range.size += high->range.size;
    if (high->freed.number > low->freed.number)
        low->freed.number = high->freed.number;
    sim_ranges_add(&pool->free, &low->range);
    free_block(&high->range, NULL);
    return low;
}

static void merge_around(struct sim_pool *pool, struct block *block)
{
    struct block *before = (struct block *)sim_ranges_before(pool->free, block->range.start - 1);
    if (mergeable(pool, before, block))
        block = absorb(pool, before, block);
    struct block *after = (struct block *)sim_ranges_after(pool->free, block->range.start);
    if (mergeable(pool, block, after))
        absorb(pool, block, after);
}

static void merge_all(struct sim_pool *pool)
{
    struct block *block = (struct block *)sim_ranges_after(pool->free, 0), *after;
    while (block && (after = (struct block *)sim_ranges_after(pool->free, block->range.start)) != NULL)
        block = mergeable(pool, block, after) ? absorb(pool, block, after) : after;
}

struct request {
    struct sim_pool *pool;
    struct sim_stream *stream;
    size_t bytes;
};

static int usable(struct sim_range *range, void *arg)
{
    const struct request *request = arg;
    struct block *block = (struct block *)range;
    if (block->freed.stream == request->stream || settled(request->pool, block))
        return true;
    return request->pool->follow_events && sim_stream_follows(request->stream, &block->freed);
}

static int usable_and_backed(struct sim_range *range, void *arg)
{
    const struct request *request = arg;
    return usable(range, arg) && unbacked(request->pool, range->start, request->bytes) == 0;
}

static int backed_whoever_freed(struct sim_range *range, void *arg)
{
    const struct request *request = arg;
    return unbacked(request->pool, range->start, request->bytes) == 0;
}

static struct block *find(const struct request *request)
{
    struct sim_pool *pool = request->pool;
    struct sim_range **free = &pool->free;
    struct sim_range *found = sim_ranges_first_fit(*free, request->bytes, usable, (void *)request);
    if (found && back(pool, found->start, request->bytes))
        return (struct block *)found;
    merge_all(pool);
    found = sim_ranges_first_fit(*free, request->bytes, usable_and_backed, (void *)request);
    if (!found) {
        found = sim_ranges_first_fit(*free, request->bytes, usable, (void *)request);
        if (found && !back(pool, found->start, request->bytes))
            found = NULL;
    }
    if (!found && pool->internal_dependencies)
        found = sim_ranges_first_fit(*free, request->bytes, backed_whoever_freed, (void *)request);
    return (struct block *)found;
}

// Cuts the front off a block; `after` tells what has to be waited for, with a reference.
static uintptr_t cut(struct sim_pool *pool, struct block *block, size_t bytes, struct sim_point *after)
{
    uintptr_t address = block->range.start;
    *after = block->freed;
    sim_ranges_remove(&pool->free, &block->range);
    if (block->range.size == bytes) {
        free(block);
    } else {
        if (after->stream)
            sim_object_hold(after->stream);
        block->range.start += bytes;
        block->range.size -= bytes;
        sim_ranges_add(&pool->free, &block->range);
    }
    pool->used_high = pool->used > pool->used_high ? pool->used : pool->used_high;
    return address;
}

static void give_block(struct sim_pool *pool, uintptr_t start, size_t bytes, struct sim_point freed)
{
    struct block *block = pool->imported ? NULL : calloc(1, sizeof *block);
    if (!block) {
        sim_object_drop(freed.stream);
        return;
    }
    block->range.start = start;
    block->range.size = bytes;
    block->freed = freed;
    pthread_mutex_lock(&pool->lock);
    sim_ranges_add(&pool->free, &block->range);
    merge_around(pool, block);
    if (pool->reserved > pool->threshold)
        atomic_store(&excess, true);
    pthread_mutex_unlock(&pool->lock);
}

// --- Allocation -----------------------------------------------------------------------------------------------

static void nothing(struct sim_stream *stream, void *payload) { (void)stream, (void)payload; }

static CUresult order_after(struct sim_stream *stream, struct sim_point point)
{
    if (!point.stream)
        return CUDA_SUCCESS;
    CUresult status = CUDA_SUCCESS;
    if (point.stream != stream && !sim_reached(point.stream, point.number)) {
        struct sim_op *op = sim_op_new(nothing, 0);
        if (op)
            sim_op_wait(op, point.stream, point.number);
        status = sim_submit(stream, op, NULL);
    }
    sim_object_drop(point.stream);
    return status;
}

static void account_free(const struct sim_allocation *allocation)
{
    struct sim_pool *pool = allocation->pool;
    pthread_mutex_lock(&pool->lock);
    if (pool->imported)
        pool->imports--;
    else
        pool->used -= allocation->range.size;
    pthread_mutex_unlock(&pool->lock);
}

CUresult sim_pool_allocate(struct sim_pool *pool, struct sim_stream *stream, size_t bytes, CUdeviceptr *address)
{
    if (pool->imported)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > pool->size)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct request request = {pool, stream, sim_round_up(bytes, SIM_ALIGNMENT)};
    struct sim_point after = {NULL, 0};
    uintptr_t start = 0;
    for (int attempt = 0; attempt < 2 && !start; attempt++) {
        if (attempt)
            sim_pools_trim_all(pool->device);
        pthread_mutex_lock(&pool->lock);
        struct block *block = find(&request);
        if (block) {
            pool->used += bytes;
            start = cut(pool, block, request.bytes, &after);
        }
        pthread_mutex_unlock(&pool->lock);
    }
    if (!start)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult status = order_after(stream, after);
    struct sim_allocation description = {
        .range = {.start = start, .size = bytes},
        .memory = SIM_POOL_MEMORY,
        .device = pool->device < 0 ? stream->context->device : pool->device,
        .pool = pool,
        .on_host = pool->device < 0 && (int)pool->props.allocType != SIM_POOL_MANAGED_TYPE,
        .managed = (int)pool->props.allocType == SIM_POOL_MANAGED_TYPE,
        .sync_memops = (int)pool->props.allocType == SIM_POOL_MANAGED_TYPE,
        .charged = request.bytes,
    };
    sim_object_hold(pool);
    if (status == CUDA_SUCCESS && !sim_allocation_add(&description))
        status = CUDA_ERROR_OUT_OF_MEMORY;
    if (status != CUDA_SUCCESS) {
        account_free(&description);
        sim_pool_free_now(&description);
    } else {
        *address = start;
    }
    return status;
}

void sim_pool_free_now(const struct sim_allocation *allocation)
{
    struct sim_pool *pool = allocation->pool;
    if (pool->imported)
        account_free(allocation);
    give_block(pool, allocation->range.start, allocation->charged, (struct sim_point){NULL, 0});
    sim_object_drop(pool);
}

struct free_job {
    uintptr_t start;
    struct sim_pool *pool;
};

static void run_free(struct sim_stream *stream, void *payload)
{
    (void)stream;
    const struct free_job *job = payload;
    sim_limbo_leave(job->start);
    sim_object_drop(job->pool);
}

CUresult sim_pool_free_async(const struct sim_allocation *allocation, struct sim_stream *stream)
{
    struct sim_pool *pool = allocation->pool;
    account_free(allocation);
    struct sim_point freed = {NULL, 0};
    // Work submitted earlier may still use the memory, and a destroyed pool has to last as long.
    struct free_job job = {allocation->range.start, pool};
    sim_object_hold(pool);
    if (!sim_run_now(stream, run_free, &job, &freed.number)) {
        struct sim_op *op = sim_op_new(run_free, sizeof job);
        if (!op)
            return CUDA_ERROR_OUT_OF_MEMORY;
        op->always = true;
        memcpy(op->payload, &job, sizeof job);
        SIM_TRY(sim_submit(stream, op, &freed.number));
        freed.stream = stream;
    } else if (!pool->opportunistic) {
        freed.stream = stream;
    }
    if (freed.stream)
        sim_object_hold(stream);
    give_block(pool, allocation->range.start, allocation->charged, freed);
    sim_object_drop(pool);
    return CUDA_SUCCESS;
}

// --- Giving back ----------------------------------------------------------------------------------------------

static bool release(struct sim_pool *pool, uintptr_t start, size_t bytes)
{
    if (pool->directory)
        return sim_pool_punch(pool, start, bytes);
    return mmap((void *)start, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) !=
           MAP_FAILED;
}

void sim_pool_trim(struct sim_pool *pool, size_t keep)
{
    pthread_mutex_lock(&pool->lock);
    merge_all(pool);
    for (size_t i = pool->size / pool->chunk; i-- > 0 && pool->reserved > keep;) {
        if (!pool->backed[i] || pool->reserved - pool->chunk < keep)
            continue;
        uintptr_t start = pool->start + i * pool->chunk;
        struct block *block = (struct block *)sim_ranges_at(pool->free, start);
        if (!block || !settled(pool, block) || block->range.start + block->range.size < start + pool->chunk)
            continue;
        if (!release(pool, start, pool->chunk))
            continue;
        pool->backed[i] = 0;
        pool->reserved -= pool->chunk;
        refund(pool, pool->chunk);
    }
    pthread_mutex_unlock(&pool->lock);
}

void sim_pools_settle(int device)
{
    if (!atomic_load_explicit(&excess, memory_order_relaxed) || !atomic_exchange(&excess, false))
        return;
    pthread_mutex_lock(&list_lock);
    for (struct sim_pool *pool = pools; pool; pool = pool->next) {
        pthread_mutex_lock(&pool->lock);
        uint64_t threshold = pool->threshold;
        bool over = pool->reserved > threshold;
        bool mine = pool->device == device || pool->device < 0;
        pthread_mutex_unlock(&pool->lock);
        if (over && mine)
            sim_pool_trim(pool, threshold);
        // What is still in use, or freed in a stream that has not got there, is for a later synchronisation.
        pthread_mutex_lock(&pool->lock);
        if (pool->reserved > threshold)
            atomic_store(&excess, true);
        pthread_mutex_unlock(&pool->lock);
    }
    pthread_mutex_unlock(&list_lock);
}

void sim_pools_trim_all(int device)
{
    pthread_mutex_lock(&list_lock);
    for (struct sim_pool *pool = pools; pool; pool = pool->next)
        if (pool->device == device)
            sim_pool_trim(pool, 0);
    pthread_mutex_unlock(&list_lock);
}
