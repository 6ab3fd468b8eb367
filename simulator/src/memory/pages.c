// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "memory/pages.h"

#include <stdlib.h>

#include "memory/arena.h"
#include "memory/pool.h"

// The pages of one allocation, from the one that it starts in. Allocations of a pool may share a page; then each has
// its own idea of it.
struct record {
    struct sim_range range;
    uint64_t allocation;  // an address is used again
    size_t count;
    struct sim_page page[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // guards what follows
static struct sim_range *records;

CUmemLocation sim_location(int type, int id)
{
    CUmemLocation location = {.type = (CUmemLocationType)type};
    location.id = id;
    return location;
}

static struct sim_page untold(const struct sim_allocation *allocation)
{
    CUmemLocation nowhere = sim_location(CU_MEM_LOCATION_TYPE_INVALID, CU_DEVICE_INVALID);
    struct sim_page page = {.preferred = nowhere, .prefetched = nowhere};
    if (allocation->pool && allocation->pool->props.location.type != CU_MEM_LOCATION_TYPE_INVALID)
        page.preferred = allocation->pool->props.location;
    return page;
}

static size_t page_of(const struct sim_allocation *allocation, uintptr_t address)
{
    return address / SIM_PAGE - allocation->range.start / SIM_PAGE;
}

// With the lock held.
static struct record *find(const struct sim_allocation *allocation)
{
    struct record *record = (struct record *)sim_ranges_at(records, allocation->range.start);
    return record && record->allocation == allocation->id ? record : NULL;
}

static void drop(struct record *record)
{
    sim_ranges_remove(&records, &record->range);
    free(record);
}

static struct record *make(const struct sim_allocation *allocation)
{
    struct record *stale = (struct record *)sim_ranges_at(records, allocation->range.start);
    if (stale)
        drop(stale);
    size_t count = page_of(allocation, allocation->range.start + allocation->range.size - 1) + 1;
    struct record *record = calloc(1, sizeof *record + count * sizeof record->page[0]);
    if (!record)
        return NULL;
    record->range.start = allocation->range.start;
    record->range.size = allocation->range.size;
    record->allocation = allocation->id;
    record->count = count;
    for (size_t i = 0; i < count; i++)
        record->page[i] = untold(allocation);
    sim_ranges_add(&records, &record->range);
    return record;
}

bool sim_pages_change(const struct sim_allocation *allocation, uintptr_t address, size_t size,
                      void (*change)(struct sim_page *page, const void *arg), const void *arg)
{
    pthread_mutex_lock(&lock);
    struct record *record = find(allocation);
    if (!record)
        record = make(allocation);
    size_t last = page_of(allocation, address + size - 1);
    for (size_t i = page_of(allocation, address); record && i <= last; i++)
        change(&record->page[i], arg);
    pthread_mutex_unlock(&lock);
    return record != NULL;
}

static void meet(CUmemLocation *one, CUmemLocation other)
{
    if (one->type != other.type || one->id != other.id)
        *one = sim_location(CU_MEM_LOCATION_TYPE_INVALID, CU_DEVICE_INVALID);
}

struct sim_page sim_pages_common(const struct sim_allocation *allocation, uintptr_t address, size_t size)
{
    pthread_mutex_lock(&lock);
    const struct record *record = find(allocation);
    size_t first = page_of(allocation, address), last = page_of(allocation, address + size - 1);
    struct sim_page common = record ? record->page[first] : untold(allocation);
    for (size_t i = first + 1; record && i <= last; i++) {
        common.read_mostly = common.read_mostly && record->page[i].read_mostly;
        common.accessed &= record->page[i].accessed;
        meet(&common.preferred, record->page[i].preferred);
        meet(&common.prefetched, record->page[i].prefetched);
    }
    pthread_mutex_unlock(&lock);
    return common;
}

void sim_pages_forget(const struct sim_allocation *allocation)
{
    pthread_mutex_lock(&lock);
    struct record *record = find(allocation);
    if (record)
        drop(record);
    pthread_mutex_unlock(&lock);
}
