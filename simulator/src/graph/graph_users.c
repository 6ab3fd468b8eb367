// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "graph/graph_users.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "streams/stream_work.h"

struct row {
    struct sim_user_object *object;
    uint64_t count;
};

struct sim_user_set {
    _Atomic uint32_t references;
    size_t count, capacity;
    struct row rows[];
};

struct line {
    struct sim_user_object *first, *last;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // guards what follows, and the objects
static struct line line;                                  // of what ends on a thread of the driver's
static bool draining;
static struct sim_task task;

static _Thread_local struct line own_line;  // of what ends in this thread

// --- The end of an object -------------------------------------------------------------------------------------

static void join(struct line *line, struct sim_user_object *object)
{
    object->next = NULL;
    if (line->last)
        line->last->next = object;
    else
        line->first = object;
    line->last = object;
}

static struct sim_user_object *leave(struct line *line)
{
    struct sim_user_object *object = line->first;
    if (object)
        line->first = object->next;
    if (!line->first)
        line->last = NULL;
    return object;
}

// A destructor runs with nothing locked.
static void destroy(struct sim_user_object *object)
{
    sim_host_run(object->destroy, object->data);
    sim_object_drop(object);
}

static void drain(struct sim_task *unused)
{
    (void)unused;
    struct sim_user_object *object;
    pthread_mutex_lock(&lock);
    while ((object = leave(&line))) {
        pthread_mutex_unlock(&lock);
        destroy(object);
        pthread_mutex_lock(&lock);
    }
    draining = false;
    pthread_mutex_unlock(&lock);
}

void sim_user_objects_end(void)
{
    struct sim_user_object *object;
    while ((object = leave(&own_line)))
        destroy(object);
}

static bool release(struct sim_user_object *object, uint64_t count, bool later)
{
    pthread_mutex_lock(&lock);
    bool enough = object->count >= count;
    if (enough)
        object->count -= count;
    bool start = false;
    if (enough && !object->count) {
        sim_object_hold(object);  // until it is destroyed
        sim_object_retire(object);
        join(later ? &line : &own_line, object);
        start = later && !draining;
        draining = draining || later;
    }
    pthread_mutex_unlock(&lock);
    if (start) {
        task.run = drain;
        sim_workers_take(&task);
    }
    return enough;
}

static bool retain(struct sim_user_object *object, uint64_t count)
{
    pthread_mutex_lock(&lock);
    bool alive = object->count != 0;
    if (alive)
        object->count += count;
    pthread_mutex_unlock(&lock);
    return alive;
}

static bool has_only(struct sim_user_object *object, uint64_t count)
{
    pthread_mutex_lock(&lock);
    bool only = object->count == count;
    pthread_mutex_unlock(&lock);
    return only;
}

// --- Sets -----------------------------------------------------------------------------------------------------

void sim_user_set_hold(struct sim_user_set *set)
{
    if (set)
        atomic_fetch_add(&set->references, 1);
}

void sim_user_set_drop(struct sim_user_set *set, bool later)
{
    if (!set || atomic_fetch_sub(&set->references, 1) != 1)
        return;
    for (size_t i = 0; i < set->count; i++) {
        release(set->rows[i].object, set->rows[i].count, later);
        sim_object_drop(set->rows[i].object);
    }
    free(set);
}

static struct row *row_of(struct sim_user_set *set, const struct sim_user_object *object)
{
    for (size_t i = 0; set && i < set->count; i++)
        if (set->rows[i].object == object)
            return &set->rows[i];
    return NULL;
}

// A set of its own for a holder that is going to change it, with capacity for one more row.
static struct sim_user_set *own(struct sim_user_set *set)
{
    size_t count = set ? set->count : 0, capacity = 2 * count + 1;
    bool shared = set && atomic_load(&set->references) > 1;
    if (set && !shared && count < set->capacity)
        return set;
    struct sim_user_set *fresh = shared ? NULL : set;
    fresh = realloc(fresh, sizeof *fresh + capacity * sizeof(struct row));
    if (!fresh)
        return NULL;
    fresh->capacity = capacity;
    if (set && !shared)
        return fresh;
    atomic_init(&fresh->references, 1);
    fresh->count = count;
    for (size_t i = 0; i < count; i++) {
        fresh->rows[i] = set->rows[i];
        retain(fresh->rows[i].object, fresh->rows[i].count);
        sim_object_hold(fresh->rows[i].object);
    }
    sim_user_set_drop(set, false);
    return fresh;
}

CUresult sim_user_set_add(struct sim_user_set **set, struct sim_user_object *object, unsigned count, bool move)
{
    struct sim_user_set *changed = own(*set);
    if (!changed)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *set = changed;
    // References that are moved have been the program's, and stay counted. Where there are no others, no set has any.
    SIM_REQUIRE(move || retain(object, count));
    struct row *row = move && has_only(object, count) ? NULL : row_of(changed, object);
    if (!row) {
        row = &changed->rows[changed->count++];
        *row = (struct row){.object = object};
        sim_object_hold(object);
    }
    row->count += count;
    return CUDA_SUCCESS;
}

CUresult sim_user_set_remove(struct sim_user_set **set, struct sim_user_object *object, unsigned count)
{
    struct row *row = row_of(*set, object);
    SIM_REQUIRE(row && row->count >= count);
    struct sim_user_set *changed = own(*set);
    if (!changed)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *set = changed;
    row = row_of(changed, object);
    row->count -= count;
    bool gone = !row->count;
    if (gone)
        *row = changed->rows[--changed->count];
    release(object, count, false);
    if (gone)
        sim_object_drop(object);
    return CUDA_SUCCESS;
}

// --- Entry points ---------------------------------------------------------------------------------------------

CUresult sim_user_object_find(CUuserObject handle, struct sim_user_object **object)
{
    return sim_object_find(SIM_USER_OBJECT, handle, (void **)object) == SIM_FOUND ? CUDA_SUCCESS
                                                                                  : CUDA_ERROR_INVALID_VALUE;
}

static bool valid(unsigned count) { return count && count <= INT_MAX; }

SIM_API(cuUserObjectCreate,
        (CUuserObject *object_out, void *ptr, CUhostFn destroy, unsigned int initialRefcount, unsigned int flags),
        (object_out, ptr, destroy, initialRefcount, flags))
{
    SIM_REQUIRE(object_out && destroy && valid(initialRefcount) && flags == CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    struct sim_user_object *object = sim_object_new(SIM_USER_OBJECT);
    if (!object)
        return CUDA_ERROR_OUT_OF_MEMORY;
    object->destroy = destroy;
    object->data = ptr;
    object->count = initialRefcount;
    *object_out = (CUuserObject)sim_object_handle(object);
    return CUDA_SUCCESS;
}

SIM_API(cuUserObjectRetain, (CUuserObject object, unsigned int count), (object, count))
{
    SIM_REQUIRE(valid(count));
    SIM_HELD struct sim_user_object *found = NULL;
    SIM_TRY(sim_user_object_find(object, &found));
    return retain(found, count) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuUserObjectRelease, (CUuserObject object, unsigned int count), (object, count))
{
    SIM_REQUIRE(valid(count));
    SIM_HELD struct sim_user_object *found = NULL;
    SIM_TRY(sim_user_object_find(object, &found));
    SIM_REQUIRE(release(found, count, false));
    sim_user_objects_end();
    return CUDA_SUCCESS;
}
