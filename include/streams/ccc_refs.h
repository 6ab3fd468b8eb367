// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// References to the objects that the driver may still use, and host functions that it calls.
//
// A ccc_refs holds handles, and a token under which Python holds objects. It belongs to the definitions and executables
// of graphs that use it (ccc_graph.h), or to the driver as a user object: then the driver counts the definitions,
// clones, executables and launches that have it. When the last is gone the driver calls us, in a thread and under locks
// of its own, where nothing may be called and the GIL must not be waited for. There the ccc_refs is only queued.
// ccc_flush_releases, called from ordinary threads and from the release thread (ccc_release.h), releases what is
// queued.
//
// A host function is called through its ccc_refs (ccc_host_call.h), so that none is called at exit, when the
// interpreter frees functions of ctypes and CFFI. One that a stream calls is called once: then its ccc_refs is queued.
#ifndef CCC_REFS_H
#define CCC_REFS_H

#include "streams/ccc_stream.h"

typedef struct ccc_refs {
    struct ccc_refs *next;
    struct ccc_refs **link;    // of a definition's or an executable's own: what points to it
    atomic_uint uses;          // of a definition or a function: 1; and one more for each bundle or captured launch
    CUuserObject object;       // of a definition, once the driver has it; else NULL
    struct ccc_refs **bundle;  // of an executable or a copy: what the definition had, one use of each,
    size_t bundled;            // and how many
    ccc_handle *event;         // of an executable, once it is replaced: the event behind the last launch, or its stream
    uint64_t token;            // 0: no Python objects
    CUhostFn function;         // of a host function: what is called,
    void *data;                // with what,
    uint64_t source;           // and by which stream, as ccc_source tells; 0: by a graph
    size_t count;
    uintptr_t handles[];  // addresses; with CCC_MEMORY_ONLY where there is only a memory use
} ccc_refs;

// Memory that a graph allocates uses the graph. If the graph's nodes used that memory in turn, neither would ever be
// released: so they have a memory use of the handle only, which may be closed. The addresses are valid as long as the
// graph exists.
#define CCC_MEMORY_ONLY ((uintptr_t)1)

static atomic_long ccc_refs_alive;          // how many there are
static _Atomic(ccc_refs *) ccc_finished;    // those without a use; the release of the last use pushes them
static _Atomic(ccc_refs *) ccc_finishing;   // taken from there, to be released; ccc_release_lock is held to change it
static _Atomic(ccc_refs *) ccc_unfinished;  // those that wait for an event, oldest first; likewise
static ccc_refs **ccc_unfinished_end;       // where the next is put; NULL: there are none
static atomic_size_t ccc_unfinished_count;

static void ccc_refs_push(_Atomic(ccc_refs *) *list, ccc_refs *refs)
{
    refs->next = atomic_load(list);
    while (!atomic_compare_exchange_weak(list, &refs->next, refs))
        ;
}

// Release a use of a ccc_refs; after the last one it is queued. The driver calls this as the destructor of user
// objects.
static void CUDA_CB ccc_refs_release(void *argument)
{
    ccc_refs *refs = argument;
    if (refs && atomic_fetch_sub(&refs->uses, 1) == 1) {
        ccc_refs_push(&ccc_finished, refs);
        ccc_release_ask();
    }
}

// Queue a ccc_refs until its event, of which it has a use, is reached.
static void ccc_refs_release_later(ccc_refs *refs)
{
    refs->next = NULL;
    ccc_release_lock();
    if (atomic_load(&ccc_unfinished))
        *ccc_unfinished_end = refs;
    else
        atomic_store(&ccc_unfinished, refs);
    ccc_unfinished_end = &refs->next;
    ccc_release_unlock();
    atomic_fetch_add(&ccc_unfinished_count, 1);
}

static void ccc_refs_release_one(uintptr_t reference)
{
    if (reference & CCC_MEMORY_ONLY)
        ccc_release_memory((ccc_handle *)(reference & ~CCC_MEMORY_ONLY));
    else
        ccc_release((ccc_handle *)reference);
}

// Add a reference to a handle; the ccc_refs has the capacity. `again` says that the handle is referenced already: then
// memory of the graph may be closed. On failure the ccc_refs is freed.
static int ccc_refs_add(ccc_refs *refs, ccc_handle *handle, int again)
{
    if (ccc_retain(handle)) {
        refs->handles[refs->count++] = (uintptr_t)handle;
        return 0;
    }
    if (again && handle->flags & CCC_OF_GRAPH) {
        atomic_fetch_add(&handle->memory_uses, 1);
        refs->handles[refs->count++] = (uintptr_t)handle | CCC_MEMORY_ONLY;
        return 0;
    }
    while (refs->count)
        ccc_refs_release_one(refs->handles[--refs->count]);
    free(refs);
    atomic_fetch_sub(&ccc_refs_alive, 1);
    return ccc_fail(CCC_CLOSED, "");
}

// A ccc_refs with room for so many handles. NULL: out of memory.
static ccc_refs *ccc_refs_with_room(size_t count)
{
    ccc_refs *refs = malloc(sizeof *refs + count * sizeof *refs->handles);
    if (refs == NULL) {
        ccc_fail(CCC_NO_MEMORY, "malloc");
        return NULL;
    }
    *refs = (ccc_refs){.uses = 1};
    atomic_fetch_add(&ccc_refs_alive, 1);
    return refs;
}

// A ccc_refs of one use of each handle, of which the first may be NULL; see ccc_refs_add for `again`. NULL: one of them
// is gone, or out of memory.
static ccc_refs *ccc_refs_of(ccc_handle *first, ccc_handle *const *handles, size_t count, uint64_t token, int again)
{
    ccc_refs *refs = ccc_refs_with_room(count + 1);
    if (refs == NULL)
        return NULL;
    refs->token = token;
    if (first && ccc_refs_add(refs, first, 0))
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (ccc_refs_add(refs, handles[i], again))
            return NULL;
    return refs;
}

static ccc_refs *ccc_refs_new(ccc_handle *const *handles, size_t count, uint64_t token)
{
    return ccc_refs_of(NULL, handles, count, token, 1);
}

// A ccc_refs with room for uses of `count` others, which ccc_refs_bundle_add adds. NULL: out of memory.
static ccc_refs *ccc_refs_bundle(size_t count)
{
    ccc_refs **bundle = malloc(count * sizeof *bundle);
    ccc_refs *made = bundle ? ccc_refs_new(NULL, 0, 0) : NULL;
    if (made) {
        made->bundle = bundle;
    } else {
        free(bundle);
        ccc_fail(CCC_NO_MEMORY, "malloc");
    }
    return made;
}

static void ccc_refs_bundle_add(ccc_refs *bundle, ccc_refs *refs)
{
    atomic_fetch_add(&refs->uses, 1);
    bundle->bundle[bundle->bundled++] = refs;
}

// A ccc_refs that has a use of another one. NULL: out of memory.
static ccc_refs *ccc_refs_share(ccc_refs *refs)
{
    ccc_refs *made = ccc_refs_bundle(1);
    if (made)
        ccc_refs_bundle_add(made, refs);
    return made;
}

static long ccc_refs_count(void) { return atomic_load(&ccc_refs_alive); }

// Give a use of a ccc_refs to a graph, as a user object. On failure it is released.
static int ccc_refs_give(ccc_refs *refs, CUgraph graph, CUuserObject *object)
{
    CUresult result = cuUserObjectCreate(object, refs, ccc_refs_release, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
    if (result) {
        ccc_refs_release(refs);
        return ccc_fail((int)result, "cuUserObjectCreate");
    }
    result = cuGraphRetainUserObject(graph, *object, 1, CU_GRAPH_USER_OBJECT_MOVE);
    if (result == CUDA_SUCCESS)
        return 0;
    CUresult released = cuUserObjectRelease(*object, 1);
    if (released)  // then it is the driver's for ever: leaking beats freeing what it may call
        ccc_cleanup_failed((int)released, "cuUserObjectRelease", (uintptr_t)*object);
    return ccc_fail((int)result, "cuGraphRetainUserObject");
}

// Give the ccc_refs, if there is one, to a graph. On failure it is finished.
static int ccc_refs_attach(ccc_refs *refs, CUgraph graph)
{
    return refs ? ccc_refs_give(refs, graph, &refs->object) : 0;
}

// Take the ccc_refs, if there is one, from a graph. Clones, executables and launches have it still.
static void ccc_refs_detach(ccc_refs *refs, CUgraph graph)
{
    CUresult result = refs ? cuGraphReleaseUserObject(graph, refs->object, 1) : CUDA_SUCCESS;
    if (result)
        ccc_cleanup_failed((int)result, "cuGraphReleaseUserObject", (uintptr_t)refs->object);
}

// Whether ccc_flush_releases has something to do.
static int ccc_releases_pending(void)
{
    return atomic_load(&ccc_finished) || atomic_load(&ccc_finishing) || atomic_load(&ccc_unfinished) ||
           atomic_load(&ccc_deferred);
}

// Release what a ccc_refs that is finished holds. What it has the last use of is queued.
static void ccc_refs_free(ccc_refs *refs)
{
    for (size_t i = 0; i < refs->count; i++)
        ccc_refs_release_one(refs->handles[i]);
    for (size_t i = 0; i < refs->bundled; i++)
        if (atomic_fetch_sub(&refs->bundle[i]->uses, 1) == 1)
            ccc_refs_push(&ccc_finished, refs->bundle[i]);
    free(refs->bundle);
    free(refs);
    atomic_fetch_sub(&ccc_refs_alive, 1);
}

// What is waited for is an event, or a stream whose work has to be done. A stream may be gone, and leave work behind:
// then the handle has no uses any more, and is only held.
static ccc_handle *ccc_await_too(ccc_handle *event)
{
    if (!ccc_retain(event))
        atomic_fetch_add(&event->memory_uses, 1);
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

static ccc_refs *ccc_next_unfinished(void)
{
    ccc_release_lock();
    ccc_refs *refs = atomic_load(&ccc_unfinished);
    if (refs)
        atomic_store(&ccc_unfinished, refs->next);
    ccc_release_unlock();
    if (refs)
        atomic_fetch_sub(&ccc_unfinished_count, 1);
    return refs;
}

// Finish the references whose events are reached; after so many that are not, stop looking. Of those looked at, the
// next call looks at the others first. Returns how many wait. An event that cannot be queried is one of a context that
// has failed, or the process is the child of a fork: there is no use in waiting.
static size_t ccc_finish_reached(size_t misses)
{
    size_t waiting = 0;
    ccc_refs *refs;
    for (size_t left = atomic_load(&ccc_unfinished_count); left && misses && (refs = ccc_next_unfinished()); left--) {
        CUresult result = ccc_reached(refs->event);
        if (result) {
            waiting += result == CUDA_ERROR_NOT_READY;
            misses--;
            ccc_refs_release_later(refs);
            continue;
        }
        ccc_await_end(refs->event);
        ccc_refs_release(refs);
    }
    return waiting;
}

// Take up to `most` of the finished keeps, as a list.
static ccc_refs *ccc_pop_finished(size_t most)
{
    ccc_release_lock();
    ccc_refs *first = atomic_load(&ccc_finishing);
    if (first == NULL)  // take all at once: no ABA, and each is moved once
        first = atomic_exchange(&ccc_finished, NULL);
    ccc_refs *last = first;
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
    ccc_refs *refs, *next;
    ccc_end_deferred();
    ccc_finish_reached(CCC_MOST_MISSES);
    while (found < capacity && (refs = ccc_pop_finished(capacity - found)))
        for (; refs; refs = next) {
            next = refs->next;
            if (refs->token)
                tokens[found++] = refs->token;
            ccc_refs_free(refs);
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
    ccc_mode mode = ccc_force_relaxed_mode();
    size_t found = ccc_flush_now(tokens, capacity);
    ccc_restore_mode(&mode);
    return found;
}

// Destroy the handles whose device is idle now rather than in the release thread: for a program that is out of memory.
// Returns how many still wait, streams that were destroyed while they had work included.
static int ccc_reclaim(void)
{
    if (ccc_in_callback ||
        !(atomic_load(&ccc_ends_waiting) || atomic_load(&ccc_deferred) || atomic_load(&ccc_destroyed_stream_count)))
        return 0;
    ccc_mode mode = ccc_force_relaxed_mode();
    ccc_end_deferred();
    ccc_look_for_idle();
    ccc_restore_mode(&mode);
    return atomic_load(&ccc_ends_waiting) + (int)atomic_load(&ccc_destroyed_stream_count);
}

#endif
