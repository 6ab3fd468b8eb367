// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// What the driver needs kept while it may still run something, and functions of the host that it calls.
//
// A keep holds handles, and a token under which Python holds objects. It belongs to the definitions and executables of
// graphs that use it (ccc_graph.h), or to the driver as a user object: then the driver counts the definitions, clones,
// executables and launches that have it. When the last is gone the driver calls us, in a thread and under locks of its
// own, where nothing may be called and the GIL must not be waited for. There the keep is only queued.
// ccc_flush_releases, called from ordinary threads and from the release thread (ccc_release.h), releases what is
// queued.
//
// A host function is called through its keep (ccc_host_call.h), so that none is called at exit, when the interpreter
// frees functions of ctypes and CFFI. One that a stream calls is called once: then its keep is queued.
#ifndef CCC_KEEP_H
#define CCC_KEEP_H

#include "streams/ccc_stream.h"

typedef struct ccc_keep {
    struct ccc_keep *next;
    struct ccc_keep **link;    // of a definition's or an executable's own: what points to it
    atomic_uint uses;          // of a definition or a function: 1; and one more for each bundle or captured launch
    CUuserObject object;       // of a definition, once the driver has it; else NULL
    struct ccc_keep **bundle;  // of an executable or a copy: what the definition had, one use of each,
    size_t bundled;            // and how many
    ccc_handle *event;         // of an executable, once it is replaced: the event behind the last launch, or its stream
    uint64_t token;            // 0: no Python objects
    CUhostFn function;         // of a host function: what is called,
    void *data;                // with what,
    uint64_t source;           // and by which stream, as ccc_source tells; 0: by a graph
    size_t count;
    uintptr_t handles[];  // addresses; of those that it only holds, with CCC_HELD
} ccc_keep;

// Memory that a graph allocates uses the graph. Were it used by the graph's nodes in turn, neither would ever go: so
// they hold the handle, which may be closed, but not the memory. Its addresses are the graph's as long as the graph is
// there.
#define CCC_HELD ((uintptr_t)1)

static atomic_long ccc_keeps;               // how many there are
static _Atomic(ccc_keep *) ccc_finished;    // those that nobody needs, as whoever was the last pushes them
static _Atomic(ccc_keep *) ccc_finishing;   // taken from there, to be released; ccc_release_lock is held to change it
static _Atomic(ccc_keep *) ccc_unfinished;  // those that wait for an event, oldest first; likewise
static ccc_keep **ccc_unfinished_end;       // where the next is put; NULL: there are none
static atomic_size_t ccc_unfinished_count;

static void ccc_keep_push(_Atomic(ccc_keep *) *list, ccc_keep *keep)
{
    keep->next = atomic_load(list);
    while (!atomic_compare_exchange_weak(list, &keep->next, keep))
        ;
}

// Drop a use of a keep; after the last nobody needs it. The driver calls this as the destructor of user objects.
static void CUDA_CB ccc_keep_finish(void *argument)
{
    ccc_keep *keep = argument;
    if (keep && atomic_fetch_sub(&keep->uses, 1) == 1) {
        ccc_keep_push(&ccc_finished, keep);
        ccc_release_ask();
    }
}

// Queue a keep until its event, of which it has a use, is reached.
static void ccc_keep_await(ccc_keep *keep)
{
    keep->next = NULL;
    ccc_release_lock();
    if (atomic_load(&ccc_unfinished))
        *ccc_unfinished_end = keep;
    else
        atomic_store(&ccc_unfinished, keep);
    ccc_unfinished_end = &keep->next;
    ccc_release_unlock();
    atomic_fetch_add(&ccc_unfinished_count, 1);
}

static void ccc_keep_drop(uintptr_t kept)
{
    if (kept & CCC_HELD)
        ccc_release_memory((ccc_handle *)(kept & ~CCC_HELD));
    else
        ccc_release((ccc_handle *)kept);
}

// Have a keep, made with capacity for that, keep a handle, too. `again` tells that it is kept already: then memory of
// the graph may be closed. On failure there is no keep any more.
static int ccc_keep_hold(ccc_keep *keep, ccc_handle *handle, int again)
{
    if (ccc_retain(handle)) {
        keep->handles[keep->count++] = (uintptr_t)handle;
        return 0;
    }
    if (again && handle->flags & CCC_OF_GRAPH) {
        atomic_fetch_add(&handle->holders, 1);
        keep->handles[keep->count++] = (uintptr_t)handle | CCC_HELD;
        return 0;
    }
    while (keep->count)
        ccc_keep_drop(keep->handles[--keep->count]);
    free(keep);
    atomic_fetch_sub(&ccc_keeps, 1);
    return ccc_fail(CCC_CLOSED, "");
}

// A keep with room for so many handles. NULL: out of memory.
static ccc_keep *ccc_keep_room(size_t count)
{
    ccc_keep *keep = malloc(sizeof *keep + count * sizeof *keep->handles);
    if (keep == NULL) {
        ccc_fail(CCC_NO_MEMORY, "malloc");
        return NULL;
    }
    *keep = (ccc_keep){.uses = 1};
    atomic_fetch_add(&ccc_keeps, 1);
    return keep;
}

// A keep of one use of each handle, of which the first may be NULL; see ccc_keep_hold for `again`. NULL: one of them is
// gone, or out of memory.
static ccc_keep *ccc_keep_of(ccc_handle *first, ccc_handle *const *handles, size_t count, uint64_t token, int again)
{
    ccc_keep *keep = ccc_keep_room(count + 1);
    if (keep == NULL)
        return NULL;
    keep->token = token;
    if (first && ccc_keep_hold(keep, first, 0))
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (ccc_keep_hold(keep, handles[i], again))
            return NULL;
    return keep;
}

static ccc_keep *ccc_keep_new(ccc_handle *const *handles, size_t count, uint64_t token)
{
    return ccc_keep_of(NULL, handles, count, token, 1);
}

// A keep with room for uses of `count` others, which ccc_keep_take adds. NULL: out of memory.
static ccc_keep *ccc_keep_bundle(size_t count)
{
    ccc_keep **bundle = malloc(count * sizeof *bundle);
    ccc_keep *made = bundle ? ccc_keep_new(NULL, 0, 0) : NULL;
    if (made) {
        made->bundle = bundle;
    } else {
        free(bundle);
        ccc_fail(CCC_NO_MEMORY, "malloc");
    }
    return made;
}

static void ccc_keep_take(ccc_keep *bundle, ccc_keep *keep)
{
    atomic_fetch_add(&keep->uses, 1);
    bundle->bundle[bundle->bundled++] = keep;
}

// A keep that has a use of another one. NULL: out of memory.
static ccc_keep *ccc_keep_share(ccc_keep *keep)
{
    ccc_keep *made = ccc_keep_bundle(1);
    if (made)
        ccc_keep_take(made, keep);
    return made;
}

static long ccc_keep_count(void) { return atomic_load(&ccc_keeps); }

// Give a use of a keep to a graph, as a user object. On failure it is released.
static int ccc_keep_give(ccc_keep *keep, CUgraph graph, CUuserObject *object)
{
    CUresult result = cuUserObjectCreate(object, keep, ccc_keep_finish, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    if (result) {
        ccc_keep_finish(keep);
        return ccc_fail((int)result, "cuUserObjectCreate");
    }
    result = cuGraphRetainUserObject(graph, *object, 1, CU_GRAPH_USER_OBJECT_MOVE);
    if (result == CUDA_SUCCESS)
        return 0;
    CUresult released = cuUserObjectRelease(*object, 1);
    if (released)  // then it is the driver's for ever: leaking beats freeing what it may call
        ccc_cleanup_failed((int)released, "cuUserObjectRelease");
    return ccc_fail((int)result, "cuGraphRetainUserObject");
}

// Give the keep, if there is one, to a graph. On failure it is finished.
static int ccc_keep_attach(ccc_keep *keep, CUgraph graph)
{
    return keep ? ccc_keep_give(keep, graph, &keep->object) : 0;
}

// Take the keep, if there is one, from a graph. Clones, executables and launches have it still.
static void ccc_keep_detach(ccc_keep *keep, CUgraph graph)
{
    CUresult result = keep ? cuGraphReleaseUserObject(graph, keep->object, 1) : CUDA_SUCCESS;
    if (result)
        ccc_cleanup_failed((int)result, "cuGraphReleaseUserObject");
}

// Whether ccc_flush_releases has something to do.
static int ccc_releases_pending(void)
{
    return atomic_load(&ccc_finished) || atomic_load(&ccc_finishing) || atomic_load(&ccc_unfinished) ||
           atomic_load(&ccc_deferred);
}

// Release what a keep that is finished holds. What it has the last use of is queued.
static void ccc_keep_free(ccc_keep *keep)
{
    for (size_t i = 0; i < keep->count; i++)
        ccc_keep_drop(keep->handles[i]);
    for (size_t i = 0; i < keep->bundled; i++)
        if (atomic_fetch_sub(&keep->bundle[i]->uses, 1) == 1)
            ccc_keep_push(&ccc_finished, keep->bundle[i]);
    free(keep->bundle);
    free(keep);
    atomic_fetch_sub(&ccc_keeps, 1);
}

// What is waited for is an event, or a stream whose work has to be done. A stream may be gone, and leave work behind:
// then the handle has no uses any more, and is only held.
static ccc_handle *ccc_await_too(ccc_handle *event)
{
    if (!ccc_retain(event))
        atomic_fetch_add(&event->holders, 1);
    return event;
}

static void ccc_await_end(ccc_handle *event)
{
    if (event && ccc_uses(event))
        ccc_release(event);
    else if (event)
        ccc_release_memory(event);
}

// Whether that is reached: a status. An event may be of a context other than the current one.
static CUresult ccc_reached(ccc_handle *event)
{
    if (event->kind == CCC_STREAM)
        return ccc_stream_reached(event);
    CUresult result = cuEventQuery((CUevent)CCC_POINTER(event));
    if (result == CUDA_ERROR_INVALID_CONTEXT && event->parent) {
        int pushed = ccc_push(event->parent);
        result = cuEventQuery((CUevent)CCC_POINTER(event));
        ccc_pop(pushed);
    }
    return result;
}

static ccc_keep *ccc_next_unfinished(void)
{
    ccc_release_lock();
    ccc_keep *keep = atomic_load(&ccc_unfinished);
    if (keep)
        atomic_store(&ccc_unfinished, keep->next);
    ccc_release_unlock();
    if (keep)
        atomic_fetch_sub(&ccc_unfinished_count, 1);
    return keep;
}

// Finish the keeps whose events are reached; after so many that are not, stop looking. Of those looked at, the next
// call looks at the others first. Returns how many wait. An event that cannot be queried is one of a context that has
// failed, or the process is the child of a fork: there is no use in waiting.
static size_t ccc_finish_reached(size_t misses)
{
    size_t waiting = 0;
    ccc_keep *keep;
    for (size_t left = atomic_load(&ccc_unfinished_count); left && misses && (keep = ccc_next_unfinished()); left--) {
        CUresult result = ccc_reached(keep->event);
        if (result) {
            waiting += result == CUDA_ERROR_NOT_READY;
            misses--;
            ccc_keep_await(keep);
            continue;
        }
        ccc_await_end(keep->event);
        ccc_keep_finish(keep);
    }
    return waiting;
}

// Take up to `most` of the finished keeps, as a list.
static ccc_keep *ccc_pop_finished(size_t most)
{
    ccc_release_lock();
    ccc_keep *first = atomic_load(&ccc_finishing);
    if (first == NULL)  // take all at once: no ABA, and each is moved once
        first = atomic_exchange(&ccc_finished, NULL);
    ccc_keep *last = first;
    for (size_t i = 1; last && last->next && i < most; i++)
        last = last->next;
    atomic_store(&ccc_finishing, last ? last->next : NULL);
    ccc_release_unlock();
    if (last)
        last->next = NULL;
    return first;
}

#define CCC_MOST_MISSES 16  // for which a call of the program queries events; the release thread queries all

static size_t ccc_flush_now(uint64_t *tokens, size_t capacity)
{
    size_t found = 0;
    ccc_keep *keep, *next;
    ccc_end_deferred();
    ccc_finish_reached(CCC_MOST_MISSES);
    while (found < capacity && (keep = ccc_pop_finished(capacity - found)))
        for (; keep; keep = next) {
            next = keep->next;
            if (keep->token)
                tokens[found++] = keep->token;
            ccc_keep_free(keep);
        }
    return found;
}

// Release what nobody needs. Returns how many tokens of Python objects it put into `tokens`: if `capacity`, call again.
// This may come between any two calls of a program, also while it captures a stream in a mode that forbids queries and
// frees: so they are made in the mode that does not.
static size_t ccc_flush_releases(uint64_t *tokens, size_t capacity)
{
    if (ccc_in_callback || !ccc_releases_pending())
        return 0;
    ccc_mode mode = ccc_relax_for_all();
    size_t found = ccc_flush_now(tokens, capacity);
    ccc_tense(&mode);
    return found;
}

// Destroy the handles whose device is idle now rather than in the release thread: for a program that is out of memory.
// Returns how many still wait, streams that were destroyed while they had work included.
static int ccc_reclaim(void)
{
    if (ccc_in_callback ||
        !(atomic_load(&ccc_ends_waiting) || atomic_load(&ccc_deferred) || atomic_load(&ccc_tail_count)))
        return 0;
    ccc_mode mode = ccc_relax_for_all();
    ccc_end_deferred();
    ccc_look_for_idle();
    ccc_tense(&mode);
    return atomic_load(&ccc_ends_waiting) + (int)atomic_load(&ccc_tail_count);
}

#endif
