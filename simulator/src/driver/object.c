// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "driver/object.h"

#include <stdlib.h>
#include <string.h>

#include "driver/context.h"
#include "streams/event.h"
#include "memory/pool.h"
#include "streams/stream.h"

// Handle layout: 47 bits, so that a handle also fits where programs expect a user-space address.
enum { SLOT_SHIFT = 4, SLOT_BITS = 20, GENERATION_SHIFT = 24, GENERATION_BITS = 18, KIND_SHIFT = 42 };
enum { CHUNK = 256, CHUNKS = (1 << SLOT_BITS) / CHUNK };

struct table {
    pthread_mutex_t lock;
    char *_Atomic chunks[CHUNKS];
    _Atomic uint32_t used;
    struct sim_object *free;
    _Atomic size_t live;
};

static struct table tables[SIM_KINDS] = {[0 ... SIM_KINDS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

static struct sim_object *slot_object(enum sim_kind kind, uint32_t slot)
{
    char *chunk = atomic_load_explicit(&tables[kind].chunks[slot / CHUNK], memory_order_acquire);
    return (struct sim_object *)(chunk + slot % CHUNK * sim_kinds[kind].size);
}

static struct sim_object *take_slot(enum sim_kind kind)
{
    struct table *table = &tables[kind];
    struct sim_object *object = table->free;
    if (object) {
        table->free = object->next_free;
        return object;
    }
    uint32_t slot = atomic_load_explicit(&table->used, memory_order_relaxed);
    if (slot == 1u << SLOT_BITS)
        return NULL;
    if (!atomic_load_explicit(&table->chunks[slot / CHUNK], memory_order_relaxed)) {
        char *chunk = calloc(CHUNK, sim_kinds[kind].size);
        if (!chunk)
            return NULL;
        atomic_store_explicit(&table->chunks[slot / CHUNK], chunk, memory_order_release);
    }
    object = slot_object(kind, slot);
    object->slot = slot;
    object->kind = kind;
    atomic_store_explicit(&table->used, slot + 1, memory_order_release);
    return object;
}

void *sim_object_new(enum sim_kind kind)
{
    struct table *table = &tables[kind];
    pthread_mutex_lock(&table->lock);
    struct sim_object *object = take_slot(kind);
    pthread_mutex_unlock(&table->lock);
    if (!object)
        return NULL;
    memset(object + 1, 0, sim_kinds[kind].size - sizeof *object);
    object->internal = false;
    uint32_t generation = atomic_load(&object->generation) + 1;
    // Generation 0 is left out: it would make handles that look like small numbers.
    if (generation >> GENERATION_BITS)
        generation = 1;
    atomic_store(&object->generation, generation);
    atomic_fetch_add(&table->live, 1);
    atomic_store(&object->live, true);
    atomic_store_explicit(&object->references, 1, memory_order_release);
    return object;
}

uintptr_t sim_object_handle(const void *pointer)
{
    const struct sim_object *object = pointer;
    return (uintptr_t)object->kind << KIND_SHIFT |
           (uintptr_t)atomic_load_explicit(&object->generation, memory_order_relaxed) << GENERATION_SHIFT |
           (uintptr_t)object->slot << SLOT_SHIFT;
}

bool sim_object_hold(void *pointer)
{
    struct sim_object *object = pointer;
    uint32_t count = atomic_load_explicit(&object->references, memory_order_relaxed);
    while (count)
        if (atomic_compare_exchange_weak_explicit(&object->references, &count, count + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    return false;
}

enum sim_lookup sim_object_find(enum sim_kind kind, const void *handle, void **found)
{
    uintptr_t bits = (uintptr_t)handle;
    uint32_t slot = bits >> SLOT_SHIFT & ((1u << SLOT_BITS) - 1);
    uint32_t generation = bits >> GENERATION_SHIFT & ((1u << GENERATION_BITS) - 1);
    *found = NULL;
    if (bits >> KIND_SHIFT != (uintptr_t)kind || bits & ((1u << SLOT_SHIFT) - 1))
        return SIM_UNKNOWN;
    if (slot >= atomic_load_explicit(&tables[kind].used, memory_order_acquire))
        return SIM_UNKNOWN;
    struct sim_object *object = slot_object(kind, slot);
    if (!sim_object_hold(object))
        return SIM_STALE;
    if (atomic_load(&object->generation) == generation && atomic_load(&object->live)) {
        *found = object;
        return SIM_FOUND;
    }
    sim_object_drop(object);
    return SIM_STALE;
}

bool sim_object_retire(void *pointer)
{
    struct sim_object *object = pointer;
    if (!atomic_exchange(&object->live, false))
        return false;
    if (!object->internal)
        atomic_fetch_sub(&tables[object->kind].live, 1);
    sim_object_drop(object);
    return true;
}

void sim_object_hide(void *pointer)
{
    struct sim_object *object = pointer;
    object->internal = true;
    atomic_fetch_sub(&tables[object->kind].live, 1);
}

void sim_object_drop(void *pointer)
{
    struct sim_object *object = pointer;
    if (!object || atomic_fetch_sub_explicit(&object->references, 1, memory_order_acq_rel) != 1)
        return;
    if (sim_kinds[object->kind].finalize)
        sim_kinds[object->kind].finalize(object);
    struct table *table = &tables[object->kind];
    pthread_mutex_lock(&table->lock);
    object->next_free = table->free;
    table->free = object;
    pthread_mutex_unlock(&table->lock);
}

size_t sim_object_live(enum sim_kind kind) { return atomic_load(&tables[kind].live); }

void sim_object_each(enum sim_kind kind, void (*visit)(void *, void *), void *arg)
{
    uint32_t used = atomic_load_explicit(&tables[kind].used, memory_order_acquire);
    for (uint32_t slot = 0; slot < used; slot++) {
        struct sim_object *object = slot_object(kind, slot);
        if (!sim_object_hold(object))
            continue;
        if (atomic_load(&object->live))
            visit(object, arg);
        sim_object_drop(object);
    }
}
