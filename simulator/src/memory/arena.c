// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "memory/arena.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/ranges.h"

// Freed ranges rest here before they are handed out again, so that a program's use of them can be told from a use of
// what came next at that address.
enum { RESTING = 512 };
enum { COMMIT_STEP = 64 << 20, RELEASE_AT = 64 << 10 };
static const size_t HOST_ADDRESSES = (size_t)1 << 37;
static const size_t SMALLEST_ARENA = (size_t)1 << 30;

struct sim_arena {
    pthread_mutex_t lock;
    uintptr_t base, end;
    uintptr_t top;        // nothing at or above it was ever handed out
    uintptr_t committed;  // accessible up to here
    struct sim_range *free;
    struct sim_range *resting[RESTING];
    size_t next_resting;
};

struct sim_arena *sim_arena_new(size_t bytes)
{
    struct sim_arena *arena = calloc(1, sizeof *arena);
    if (!arena)
        return NULL;
    void *base = MAP_FAILED;
    // Under a limit on address space a smaller arena is better than none.
    for (; base == MAP_FAILED && bytes >= SMALLEST_ARENA; bytes /= 2) {
        base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        arena->end = (uintptr_t)base + bytes;
    }
    if (base == MAP_FAILED) {
        free(arena);
        return NULL;
    }
    arena->base = arena->top = arena->committed = (uintptr_t)base;
    pthread_mutex_init(&arena->lock, NULL);
    return arena;
}

static void put_back(struct sim_arena *arena, struct sim_range *range)
{
    struct sim_range *before = sim_ranges_before(arena->free, range->start);
    if (before && before->start + before->size == range->start) {
        sim_ranges_remove(&arena->free, before);
        range->start = before->start;
        range->size += before->size;
        free(before);
    }
    struct sim_range *after = sim_ranges_after(arena->free, range->start);
    if (after && range->start + range->size == after->start) {
        sim_ranges_remove(&arena->free, after);
        range->size += after->size;
        free(after);
    }
    sim_ranges_add(&arena->free, range);
}

static uintptr_t take_top(struct sim_arena *arena, size_t bytes, size_t alignment)
{
    uintptr_t address = (arena->top + alignment - 1) / alignment * alignment;
    if (address > arena->end || bytes > arena->end - address)
        return 0;
    if (address + bytes > arena->committed) {
        size_t step = (address + bytes - arena->committed + COMMIT_STEP - 1) / COMMIT_STEP * COMMIT_STEP;
        if (step > arena->end - arena->committed)
            step = arena->end - arena->committed;
        if (mprotect((void *)arena->committed, step, PROT_READ | PROT_WRITE))
            return 0;
        arena->committed += step;
    }
    // What the alignment skips is lost, which only costs address space.
    arena->top = address + bytes;
    return address;
}

static uintptr_t take_free(struct sim_arena *arena, size_t bytes, size_t alignment)
{
    struct sim_range *range = sim_ranges_first_fit(arena->free, bytes + alignment - SIM_ALIGNMENT, NULL, NULL);
    if (!range)
        return 0;
    sim_ranges_remove(&arena->free, range);
    uintptr_t address = (range->start + alignment - 1) / alignment * alignment;
    size_t tail = range->start + range->size - address - bytes;
    if (tail) {
        struct sim_range *rest = calloc(1, sizeof *rest);
        if (rest) {
            rest->start = address + bytes;
            rest->size = tail;
            sim_ranges_add(&arena->free, rest);
        }
    }
    range->size = address - range->start;
    if (range->size)
        sim_ranges_add(&arena->free, range);
    else
        free(range);
    return address;
}

uintptr_t sim_arena_take(struct sim_arena *arena, size_t bytes, size_t alignment)
{
    if (!arena)
        return 0;
    pthread_mutex_lock(&arena->lock);
    uintptr_t address = take_free(arena, bytes, alignment);
    if (!address)
        address = take_top(arena, bytes, alignment);
    if (!address) {
        for (size_t i = 0; i < RESTING; i++)
            if (arena->resting[i]) {
                put_back(arena, arena->resting[i]);
                arena->resting[i] = NULL;
            }
        address = take_free(arena, bytes, alignment);
    }
    pthread_mutex_unlock(&arena->lock);
    return address;
}

void sim_arena_discard(uintptr_t start, size_t bytes)
{
    // 64 KiB on some machines with Arm processors. The kernel rounds a length up: the neighbour's contents would go
    // too.
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = (start + page - 1) / page * page, last = (start + bytes) / page * page;
    if (last > first)
        madvise((void *)first, last - first, MADV_DONTNEED);
}

void sim_arena_give(struct sim_arena *arena, uintptr_t address, size_t bytes)
{
    if (bytes >= RELEASE_AT)
        sim_arena_discard(address, bytes);
    struct sim_range *range = calloc(1, sizeof *range);
    if (!range)
        return;
    range->start = address;
    range->size = bytes;
    pthread_mutex_lock(&arena->lock);
    struct sim_range **slot = &arena->resting[arena->next_resting++ % RESTING];
    if (*slot)
        put_back(arena, *slot);
    *slot = range;
    pthread_mutex_unlock(&arena->lock);
}

static struct sim_arena *host, *managed;

static void make_host(void) { host = sim_arena_new(HOST_ADDRESSES); }
static void make_managed(void) { managed = sim_arena_new(HOST_ADDRESSES); }

struct sim_arena *sim_arena_host(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_host);
    return host;
}

struct sim_arena *sim_arena_managed(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_managed);
    return managed;
}
