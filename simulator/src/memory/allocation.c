// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "memory/allocation.h"

#include <stdio.h>
#include <stdlib.h>

#include "driver/device.h"
#include "driver/logs.h"
#include "driver/usage.h"
#include "memory/pages.h"
#include "memory/pool.h"
#include "streams/stream.h"

enum { FREED_KEPT = 8192, DISTANCE = 128, FIRST_PAGES = 1 << 16 };
static const size_t FARTHEST_MISS = (size_t)1 << 32;  // beyond it, the nearest allocation has nothing to do with it

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;  // guards what follows
static struct sim_range *root;
static size_t counts[SIM_MEMORY_KINDS], sizes[SIM_MEMORY_KINDS];
static uint64_t made;
static struct sim_history freed[FREED_KEPT];
static size_t freed_next;
static struct sim_range *limbo;

uint64_t sim_allocation_epoch;

static void advance_epoch(void) { __atomic_add_fetch(&sim_allocation_epoch, 1, __ATOMIC_ACQ_REL); }

void sim_allocation_access_revoked(void) { advance_epoch(); }

static const char *caller(void)
{
    const char *function = sim_thread()->function;
    return function ? function : "?";
}

static struct sim_allocation *at(uintptr_t address) { return (struct sim_allocation *)sim_ranges_at(root, address); }

struct sim_allocation *sim_allocation_add(const struct sim_allocation *description)
{
    struct sim_allocation *allocation = malloc(sizeof *allocation);
    if (!allocation)
        return NULL;
    *allocation = *description;
    pthread_rwlock_wrlock(&lock);
    allocation->id = ++made;
    allocation->history = (struct sim_history){
        .start = allocation->range.start, .size = allocation->range.size, .allocated_by = caller(), .order = made};
    sim_ranges_add(&root, &allocation->range);
    counts[allocation->memory]++;
    sizes[allocation->memory] += allocation->range.size;
    atomic_fetch_add(&sim_control->managed, allocation->managed);
    pthread_rwlock_unlock(&lock);
    return allocation;
}

// With the lock held for writing.
static void take_out(struct sim_allocation *allocation, struct sim_allocation *copy)
{
    sim_ranges_remove(&root, &allocation->range);
    counts[allocation->memory]--;
    sizes[allocation->memory] -= allocation->range.size;
    allocation->history.freed_by = caller();
    allocation->history.freed_order = made;
    // Memory that is no longer registered is still the program's.
    if (allocation->memory != SIM_REGISTERED)
        freed[freed_next++ % FREED_KEPT] = allocation->history;
    if (allocation->managed)
        sim_pages_forget(allocation);
    atomic_fetch_sub(&sim_control->managed, allocation->managed);
    advance_epoch();
    *copy = *allocation;
    free(allocation);
}

bool sim_allocation_remove(uintptr_t address, bool (*wanted)(const struct sim_allocation *),
                           struct sim_allocation *copy)
{
    pthread_rwlock_wrlock(&lock);
    struct sim_allocation *allocation = at(address);
    bool found = allocation && allocation->range.start == address && wanted(allocation);
    if (found)
        take_out(allocation, copy);
    pthread_rwlock_unlock(&lock);
    return found;
}

static int belongs(struct sim_range *range, void *arg)
{
    const struct sim_allocation *allocation = (const struct sim_allocation *)range;
    // A module's variables go with the module.
    return allocation->context == arg && allocation->memory != SIM_GLOBAL_MEMORY;
}

bool sim_allocation_take_of(const struct sim_context *context, struct sim_allocation *copy)
{
    pthread_rwlock_wrlock(&lock);
    struct sim_range *found = sim_ranges_first_fit(root, 0, belongs, (void *)context);
    if (found) {
        ((struct sim_allocation *)found)->history.with_context = 1;
        take_out((struct sim_allocation *)found, copy);
    }
    pthread_rwlock_unlock(&lock);
    return found != NULL;
}

bool sim_allocation_at(uintptr_t address, struct sim_allocation *copy)
{
    pthread_rwlock_rdlock(&lock);
    struct sim_allocation *allocation = at(address);
    if (allocation)
        *copy = *allocation;
    pthread_rwlock_unlock(&lock);
    return allocation != NULL;
}

bool sim_allocation_set_sync_memops(uintptr_t address, int value)
{
    pthread_rwlock_wrlock(&lock);
    struct sim_allocation *allocation = at(address);
    if (allocation)
        allocation->sync_memops = value;
    pthread_rwlock_unlock(&lock);
    return allocation != NULL;
}

void sim_allocation_set_rights(uintptr_t start, size_t size, struct sim_rights given, struct sim_rights kept)
{
    pthread_rwlock_wrlock(&lock);
    for (uintptr_t address = start; address - start < size;) {
        struct sim_allocation *mapping = at(address);
        mapping->rights.readers = (mapping->rights.readers & kept.readers) | given.readers;
        mapping->rights.writers = (mapping->rights.writers & kept.writers) | given.writers;
        address = mapping->range.start + mapping->range.size;
    }
    advance_epoch();
    pthread_rwlock_unlock(&lock);
}

bool sim_allocation_overlaps(uintptr_t start, size_t size)
{
    pthread_rwlock_rdlock(&lock);
    struct sim_range *before = sim_ranges_before(root, start + size - 1);
    bool overlaps = before && before->start + before->size > start;
    pthread_rwlock_unlock(&lock);
    return overlaps;
}

// --- Checks ---------------------------------------------------------------------------------------------------

// With the lock held: the latest allocation that was freed and held the address.
static bool find_freed(uintptr_t address, struct sim_history *history)
{
    size_t kept = freed_next < FREED_KEPT ? freed_next : FREED_KEPT;
    for (size_t i = 1; i <= kept; i++) {
        const struct sim_history *entry = &freed[(freed_next - i) % FREED_KEPT];
        if (address - entry->start < entry->size) {
            *history = *entry;
            return true;
        }
    }
    return false;
}

static bool within(const struct sim_range *range, uintptr_t address, size_t size)
{
    return range && size <= range->size - (address - range->start);
}

// Does mapped virtual memory give one of `who` the rights that a use needs?
static bool permits(const struct sim_allocation *mapping, uint32_t who, bool writes)
{
    return ((writes ? mapping->rights.writers : mapping->rights.readers) & who) != 0;
}

// May the device use memory that has its rights from its pool or its mapping? All other memory may be copied.
static bool is_open_to(const struct sim_allocation *allocation, struct sim_use use)
{
    int device = use.between ? allocation->device : use.device;
    if (allocation->memory == SIM_VIRTUAL_MEMORY)
        return permits(allocation, 1u << device | SIM_HOST_RIGHT, use.writes);
    return !allocation->pool || allocation->on_host || allocation->managed ||
           sim_pool_access(allocation->pool, device) == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

enum finding { FOUND, OUTSIDE, FORBIDDEN };

// With the lock held. A range may run from one mapping of virtual memory into the next; `found` is where it is left.
static enum finding look_up(uintptr_t address, size_t size, struct sim_use use, struct sim_allocation **found)
{
    *found = at(address);
    for (struct sim_allocation *next = *found; next; next = at(address)) {
        *found = next;
        if (!is_open_to(next, use))
            return FORBIDDEN;
        if (next->memory != SIM_VIRTUAL_MEMORY)
            return within(&next->range, address, size) ? FOUND : OUTSIDE;
        if (within(&next->range, address, size))
            return FOUND;
        size -= next->range.start + next->range.size - address;
        address = next->range.start + next->range.size;
    }
    return OUTSIDE;
}

static void report_forbidden(const char *work, uintptr_t address, size_t size, struct sim_use use,
                             const struct sim_history *history)
{
    sim_report("no access", work, address, size, history,
               "device %d may not %s 0x%llx: cuMemSetAccess or cuMemPoolSetAccess gives the right", use.device,
               use.writes ? "write" : "read", (unsigned long long)address);
}

enum sim_place sim_place_of(uintptr_t address, size_t size, struct sim_use use)
{
    struct sim_history history;
    bool overrun = false, stale = false;
    pthread_rwlock_rdlock(&lock);
    struct sim_allocation *allocation;
    enum finding finding = look_up(address, size, use, &allocation);
    if (finding == FOUND) {
        pthread_rwlock_unlock(&lock);
        return SIM_KNOWN;
    }
    if (allocation) {
        overrun = finding == OUTSIDE;
        history = allocation->history;
    } else {
        stale = find_freed(address, &history);
    }
    pthread_rwlock_unlock(&lock);
    if (finding == OUTSIDE && !overrun && !stale)
        return SIM_PAGEABLE;
    if (finding == FORBIDDEN && !use.copies)
        report_forbidden(caller(), address, size, use, &history);
    else if (overrun)
        sim_report("out of bounds", caller(), address, size, &history, "%zu bytes at 0x%llx reach past the end", size,
                   (unsigned long long)address);
    else if (stale)
        sim_report("use after free", caller(), address, size, &history, "%zu bytes at 0x%llx were freed", size,
                   (unsigned long long)address);
    return SIM_BAD;
}

CUmemAccess_flags sim_allocation_access(const struct sim_allocation *allocation, const struct sim_context *context)
{
    if (allocation->memory == SIM_VIRTUAL_MEMORY || allocation->memory == SIM_GRAPH_MEMORY)
        return permits(allocation, 1u << context->device, true)    ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
               : permits(allocation, 1u << context->device, false) ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                                                   : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    if (allocation->pool)
        return sim_pool_access(allocation->pool, context->device);
    bool own = allocation->device == context->device || allocation->on_host || allocation->managed;
    bool peer = allocation->context && atomic_load(&context->peers[allocation->device]) == allocation->context->id;
    return own || peer ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

static bool reaches(const struct sim_context *context, const struct sim_allocation *allocation, bool writes)
{
    CUmemAccess_flags access = sim_allocation_access(allocation, context);
    return access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE || (!writes && access == CU_MEM_ACCESS_FLAGS_PROT_READ);
}

CUresult sim_check_range(const struct sim_context *context, uintptr_t address, size_t size, bool writes)
{
    struct sim_use use = {.device = context->device, .writes = writes};
    struct sim_allocation allocation;
    SIM_REQUIRE(sim_place_of(address, size, use) == SIM_KNOWN && sim_allocation_at(address, &allocation));
    // The rights to virtual memory have been looked at, also where the range goes on in another mapping.
    if (allocation.memory == SIM_VIRTUAL_MEMORY || reaches(context, &allocation, writes))
        return CUDA_SUCCESS;
    sim_report("no access", caller(), address, size, &allocation.history, "device %d has no access to the memory",
               context->device);
    return CUDA_ERROR_INVALID_VALUE;
}

bool sim_still_there(uintptr_t address, size_t size, struct sim_use use, const char *work)
{
    struct sim_history history;
    struct sim_allocation *allocation;
    pthread_rwlock_rdlock(&lock);
    enum finding finding = look_up(address, size, use, &allocation);
    bool there = finding == FOUND || within(sim_ranges_at(limbo, address), address, size);
    bool stale = !there && find_freed(address, &history);
    if (finding == FORBIDDEN)
        history = allocation->history;
    pthread_rwlock_unlock(&lock);
    if (finding == FORBIDDEN)
        report_forbidden(work, address, size, use, &history);
    else if (!there)
        sim_report("use after free", work, address, size, stale ? &history : NULL,
                   "%zu bytes at 0x%llx were freed before the work ran", size, (unsigned long long)address);
    return there;
}

CUresult sim_report_bad_free(uintptr_t address)
{
    struct sim_history history;
    pthread_rwlock_rdlock(&lock);
    struct sim_allocation *allocation = at(address);
    bool inside = allocation != NULL;
    if (inside)
        history = allocation->history;
    bool stale = !inside && find_freed(address, &history);
    pthread_rwlock_unlock(&lock);
    if (stale && history.with_context)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (inside)
        sim_report("invalid free", caller(), address, 0, &history,
                   "0x%llx is not the start of an allocation that this call frees", (unsigned long long)address);
    else if (stale)
        sim_report("double free", caller(), address, 0, &history, "0x%llx has been freed before",
                   (unsigned long long)address);
    else
        sim_report("foreign free", caller(), address, 0, NULL, "0x%llx was not allocated by the driver",
                   (unsigned long long)address);
    return CUDA_ERROR_INVALID_VALUE;
}

// --- Kernels --------------------------------------------------------------------------------------------------

struct limbo {
    struct sim_range range;
    struct sim_allocation last;
    unsigned uses;  // a block can be freed again before its first free was reached in stream order
};

bool sim_allocation_remove_later(uintptr_t address, bool (*wanted)(const struct sim_allocation *),
                                 struct sim_allocation *copy)
{
    struct limbo *fresh = calloc(1, sizeof *fresh);
    // Both steps under one lock: a worker must find the memory in one place or the other.
    pthread_rwlock_wrlock(&lock);
    struct sim_allocation *allocation = at(address);
    bool found = fresh && allocation && allocation->range.start == address && wanted(allocation);
    if (found) {
        struct limbo *entry = (struct limbo *)sim_ranges_before(limbo, address);
        if (entry && entry->range.start == address) {
            sim_ranges_remove(&limbo, &entry->range);
        } else {
            entry = fresh;
            fresh = NULL;
        }
        entry->range.start = address;
        if (entry->range.size < allocation->range.size)
            entry->range.size = allocation->range.size;
        entry->uses++;
        sim_ranges_add(&limbo, &entry->range);
        take_out(allocation, copy);
        entry->last = *copy;
    }
    pthread_rwlock_unlock(&lock);
    free(fresh);
    return found;
}

void sim_limbo_leave(uintptr_t start)
{
    pthread_rwlock_wrlock(&lock);
    struct limbo *entry = (struct limbo *)sim_ranges_before(limbo, start);
    if (entry && entry->range.start == start && --entry->uses == 0) {
        sim_ranges_remove(&limbo, &entry->range);
        free(entry);
    }
    advance_epoch();
    pthread_rwlock_unlock(&lock);
}

int sim_check_kernel_access(const struct sim_context *context, uintptr_t address, size_t size, bool writes,
                            uintptr_t range[2])
{
    pthread_rwlock_rdlock(&lock);
    struct sim_range *found = sim_ranges_at(root, address);
    const struct sim_allocation *allocation = (const struct sim_allocation *)found;
    if (!within(found, address, size)) {
        found = sim_ranges_at(limbo, address);
        allocation = found ? &((const struct limbo *)found)->last : NULL;
    }
    bool allowed = within(found, address, size) && reaches(context, allocation, writes);
    if (allowed) {
        range[0] = found->start;
        range[1] = found->start + found->size;
    }
    pthread_rwlock_unlock(&lock);
    return allowed ? 0 : CUDA_ERROR_ILLEGAL_ADDRESS;
}

// The allocation that an access may have missed, and text that says by how much. The lock is held.
static struct sim_range *find_nearest(uintptr_t address, char distance[DISTANCE])
{
    struct sim_range *before = sim_ranges_before(root, address), *after = sim_ranges_after(root, address);
    size_t past = before ? address - (before->start + before->size) + 1 : SIZE_MAX;
    size_t ahead = after ? after->start - address : SIZE_MAX;
    bool is_past = past <= ahead;
    size_t bytes = is_past ? past : ahead;
    if (address < FIRST_PAGES)
        snprintf(distance, DISTANCE, "; the address is next to the null pointer");
    if (address < FIRST_PAGES || bytes > FARTHEST_MISS)
        return NULL;
    snprintf(distance, DISTANCE, "; the address is %zu byte%s %s the nearest allocation", bytes, bytes == 1 ? "" : "s",
             is_past ? "after" : "before");
    return is_past ? before : after;
}

void sim_report_kernel_access(const struct sim_context *context, uintptr_t address, const char *kernel,
                              const char *what)
{
    struct sim_history history;
    char distance[DISTANCE] = "";
    pthread_rwlock_rdlock(&lock);
    struct sim_allocation *allocation = at(address);
    bool known = allocation != NULL, stale = false;
    bool refused = known && sim_allocation_access(allocation, context) == CU_MEM_ACCESS_FLAGS_PROT_NONE;
    int owner = known ? allocation->device : context->device;
    if (known)
        history = allocation->history;
    else
        known = stale = find_freed(address, &history);
    if (!known) {
        struct sim_range *nearest = find_nearest(address, distance);
        if (nearest) {
            history = ((struct sim_allocation *)nearest)->history;
            known = true;
        }
    }
    pthread_rwlock_unlock(&lock);
    if (refused && owner != context->device)
        snprintf(distance, DISTANCE,
                 "; device %d has no access to memory of device %d: give it, with peer_accessible_by of the pool",
                 context->device, owner);
    sim_report(refused ? "no access"
               : stale ? "use after free"
                       : "illegal access",
               kernel, address, 0, known ? &history : NULL, "%s%s", what, distance);
}

// --- Accounts -------------------------------------------------------------------------------------------------

void sim_allocation_count(enum sim_memory memory, size_t *count, size_t *bytes)
{
    pthread_rwlock_rdlock(&lock);
    *count = counts[memory];
    *bytes = sizes[memory];
    pthread_rwlock_unlock(&lock);
}

static void report_leak(struct sim_range *range, void *unused)
{
    (void)unused;
    struct sim_allocation *allocation = (struct sim_allocation *)range;
    if (allocation->memory != SIM_GLOBAL_MEMORY)
        sim_report("leak", "exit", range->start, range->size, &allocation->history, "%zu bytes were never freed",
                   range->size);
}

void sim_allocation_report_leaks(void)
{
    pthread_rwlock_rdlock(&lock);
    sim_ranges_each(root, report_leak, NULL);
    pthread_rwlock_unlock(&lock);
}
