// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Meters: how much of a resource is in use, whoever frees it.
//
// A buffer that went through a tracking resource carries a charge of that resource's meter. The charge ends with the
// handle, after the memory went back: on whatever thread that happens, and without Python. Nested resources put several
// charges on one handle.
#ifndef CCC_METER_H
#define CCC_METER_H

#include <pthread.h>
#include <time.h>

#include "memory/ccc_buffer.h"

#define CCC_NO_LIMIT UINT64_MAX

typedef enum ccc_meter_event { CCC_METER_ALLOCATE, CCC_METER_FREE, CCC_METER_REFUSE } ccc_meter_event;

// Fields of 8 bytes, so that Python can read an array of them as numbers.
typedef struct ccc_usage {
    uint64_t bytes, count, peak_bytes, peak_count, total_bytes, total_count;
} ccc_usage;

// What happened: `bytes` and `count` are what was in use after it.
typedef struct ccc_meter_record {
    int64_t time;  // nanoseconds of CLOCK_MONOTONIC
    uint64_t event, address, size, bytes, count;
} ccc_meter_record;

typedef struct ccc_outstanding {
    uint64_t number;  // charges of a meter are numbered from 1
    uint64_t address, size;
    int64_t time;
} ccc_outstanding;

typedef struct ccc_meter {
    uint64_t references;  // the Python object and every charge
    uint64_t limit;
    uint64_t pending;  // bytes that allocations under way have been promised
    ccc_usage usage;
    ccc_charge *newest;         // of the charges not ended
    ccc_meter_record *history;  // a ring
    size_t capacity;
    uint64_t recorded;  // since the beginning, whether or not the ring still has them
} ccc_meter;

struct ccc_charge {
    ccc_outstanding what;
    ccc_meter *meter;
    ccc_charge *older, *newer;  // of the meter
    ccc_charge *next;           // of the handle
};

// One lock for all meters: it is held for some ten nanoseconds, and one can be carried safely through a fork().
static pthread_mutex_t ccc_meter_mutex = PTHREAD_MUTEX_INITIALIZER;

static void ccc_meter_lock(void) { pthread_mutex_lock(&ccc_meter_mutex); }

static void ccc_meter_unlock(void) { pthread_mutex_unlock(&ccc_meter_mutex); }

// A child must not inherit a lock that a thread holds which is not there, nor a list that it was changing.
__attribute__((constructor)) static void ccc_meter_watch_fork(void)
{
    pthread_atfork(ccc_meter_lock, ccc_meter_unlock, ccc_meter_unlock);
}

// A meter that keeps the last `capacity` events. NULL: out of memory.
static ccc_meter *ccc_meter_new(uint64_t limit, size_t capacity)
{
    ccc_meter *meter = calloc(1, sizeof *meter);
    ccc_meter_record *history = capacity ? calloc(capacity, sizeof *history) : NULL;
    if (meter == NULL || (capacity && history == NULL)) {
        free(meter);
        free(history);
        ccc_fail(CCC_NO_MEMORY, "malloc");
        return NULL;
    }
    meter->references = 1;
    meter->limit = limit;
    meter->history = history;
    meter->capacity = capacity;
    return meter;
}

// Free a meter that nothing refers to.
static void ccc_meter_end(ccc_meter *meter, uint64_t references)
{
    if (references)
        return;
    free(meter->history);
    free(meter);
}

// The Python object is gone.
static void ccc_meter_release(ccc_meter *meter)
{
    ccc_meter_lock();
    uint64_t references = --meter->references;
    ccc_meter_unlock();
    ccc_meter_end(meter, references);
}

static int64_t ccc_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Remember an event. The lock is held.
static void ccc_meter_note(ccc_meter *meter, ccc_meter_event event, int64_t time, uint64_t address, uint64_t size)
{
    if (meter->capacity)
        meter->history[meter->recorded++ % meter->capacity] =
            (ccc_meter_record){time, event, address, size, meter->usage.bytes, meter->usage.count};
}

// Promise `size` bytes to an allocation about to be made; 0: they would go beyond the limit.
static int ccc_meter_reserve(ccc_meter *meter, uint64_t size)
{
    ccc_meter_lock();
    int fits = size <= meter->limit - meter->usage.bytes - meter->pending;
    if (fits)
        meter->pending += size;
    ccc_meter_unlock();
    return fits;
}

// Take a promise back.
static void ccc_meter_cancel(ccc_meter *meter, uint64_t size)
{
    ccc_meter_lock();
    meter->pending -= size;
    ccc_meter_unlock();
}

// Remember that an allocation was refused for good.
static void ccc_meter_refuse(ccc_meter *meter, uint64_t size)
{
    ccc_meter_lock();
    ccc_meter_note(meter, CCC_METER_REFUSE, ccc_now(), 0, size);
    ccc_meter_unlock();
}

// Count a buffer, until its memory goes back; where there is a limit, `size` bytes were promised before. Returns the
// number of the charge; 0: the buffer is closed, or memory is out, and the promise stands.
static uint64_t ccc_meter_charge(ccc_meter *meter, ccc_handle *handle, uint64_t size)
{
    ccc_charge *charge = malloc(sizeof *charge);
    if (charge == NULL) {
        ccc_fail(CCC_NO_MEMORY, "malloc");
        return 0;
    }
    if (!ccc_acquire(handle)) {
        free(charge);
        ccc_closed();
        return 0;
    }
    ccc_usage *usage = &meter->usage;
    ccc_meter_lock();
    ++meter->references;
    if (meter->limit != CCC_NO_LIMIT)
        meter->pending -= size;
    uint64_t number = ++usage->total_count;
    usage->total_bytes += size;
    usage->bytes += size;
    if (usage->bytes > usage->peak_bytes)
        usage->peak_bytes = usage->bytes;
    if (++usage->count > usage->peak_count)
        usage->peak_count = usage->count;
    *charge = (ccc_charge){{number, handle->value, size, ccc_now()}, meter, meter->newest, NULL, NULL};
    if (meter->newest)
        meter->newest->newer = charge;
    meter->newest = charge;
    ccc_meter_note(meter, CCC_METER_ALLOCATE, charge->what.time, handle->value, size);
    ccc_meter_unlock();
    charge->next = atomic_load(&ccc_as_buffer(handle)->charges);
    while (!atomic_compare_exchange_weak(&ccc_as_buffer(handle)->charges, &charge->next, charge))
        ;
    ccc_release(handle);
    return number;
}

// The memory of a handle went back: end its charges.
static void ccc_end_charges(ccc_charge *charge)
{
    while (charge) {
        ccc_charge *next = charge->next;
        ccc_meter *meter = charge->meter;
        ccc_meter_lock();
        meter->usage.bytes -= charge->what.size;
        --meter->usage.count;
        if (charge->newer)
            charge->newer->older = charge->older;
        else
            meter->newest = charge->older;
        if (charge->older)
            charge->older->newer = charge->newer;
        if (meter->capacity)
            ccc_meter_note(meter, CCC_METER_FREE, ccc_now(), charge->what.address, charge->what.size);
        uint64_t references = --meter->references;
        ccc_meter_unlock();
        ccc_meter_end(meter, references);
        free(charge);
        charge = next;
    }
}

static void ccc_meter_usage(ccc_meter *meter, ccc_usage *usage)
{
    ccc_meter_lock();
    *usage = meter->usage;
    ccc_meter_unlock();
}

// Copy the newest `capacity` charges not ended, newest first. Returns how many there are; `last` is the newest number.
static size_t ccc_meter_outstanding(ccc_meter *meter, ccc_outstanding *rows, size_t capacity, uint64_t *last)
{
    size_t found = 0;
    ccc_meter_lock();
    for (const ccc_charge *charge = meter->newest; charge; charge = charge->older, ++found)
        if (found < capacity)
            rows[found] = charge->what;
    *last = meter->usage.total_count;
    ccc_meter_unlock();
    return found;
}

// Copy the events that the ring has, oldest first, into an array as long as the ring. Returns how many there are.
static size_t ccc_meter_history(ccc_meter *meter, ccc_meter_record *rows)
{
    ccc_meter_lock();
    size_t start = meter->recorded > meter->capacity ? meter->recorded % meter->capacity : 0;
    size_t found = meter->recorded > meter->capacity ? meter->capacity : meter->recorded;
    if (found) {
        memcpy(rows, meter->history + start, (found - start) * sizeof *rows);
        memcpy(rows + (found - start), meter->history, start * sizeof *rows);
    }
    ccc_meter_unlock();
    return found;
}

#endif
