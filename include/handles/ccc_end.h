// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The end of handles. Releasing the last use of a handle destroys its driver handle and releases its parents: at once,
// with any context current or with none. It happens later if the thread is in a function that the driver calls, if it
// would break a capture, or if the driver would wait for the device. Failures are queued as warnings.
#ifndef CCC_END_H
#define CCC_END_H

#include "handles/ccc_handle.h"
#include "handles/ccc_order.h"
#include "handles/ccc_primary.h"
#include "handles/ccc_release.h"

// Set while a callback runs in a thread of the driver, where no driver function may be called. A handle whose last use
// is released there, for example by Python's garbage collector, ends later, in another thread.
static _Thread_local int ccc_in_callback;
static _Atomic(ccc_handle *) ccc_deferred;

// Handles that cannot end while a stream is captured. When a capture ends they are deferred, and so looked at again.
static _Atomic(ccc_handle *) ccc_captive;
static atomic_ulong ccc_captures_ended;

// Handles that the driver waits for the device to destroy. The release thread ends them when that is idle.
static _Atomic(ccc_handle *) ccc_until_idle;
static atomic_int ccc_ends_waiting;  // how many there are, also those that the look for idle devices has taken

// For kinds that only their own context destroys.
static int ccc_always_needs_context(const ccc_handle *handle)
{
    (void)handle;
    return 1;
}

static int ccc_needs_context(const ccc_handle *handle)
{
    const ccc_handle_type *type = ccc_types[handle->kind];
    const ccc_handle *stream = ccc_stream_of(handle);
    // a default stream is one of the current context's
    return (type->needs_context && type->needs_context(handle)) || (stream && stream->flags & CCC_TOKEN);
}

static void ccc_destroy(ccc_handle *handle)
{
    CUresult (*const destroy)(ccc_handle *, const char **) = ccc_types[handle->kind]->destroy;
    ccc_mode mode = ccc_enter_relaxed_mode();
    int needs_context = ccc_needs_context(handle);
    const char *call = "";
    ccc_handle *home = handle->parent;
    if (home == NULL && needs_context && handle->device >= 0)  // allocated in the stream of another library
        home = ccc_primary_context(handle->device);
    int pushed = needs_context ? ccc_push(home) : 0;
    CUresult result = destroy(handle, &call);
    if (result == CUDA_ERROR_INVALID_CONTEXT && !pushed && (pushed = ccc_push(home)))
        result = destroy(handle, &call);
    ccc_pop(pushed);
    ccc_restore_mode(&mode);
    if (result && ccc_driver.reason != CCC_FORKED)  // a child of fork() destroys nothing of its parent
        ccc_cleanup_failed((int)result, call, handle->value);
}

static void ccc_release(ccc_handle *handle);

// Destroy the driver handle of a handle without uses. Returns its parent, of which one use is left to release.
static ccc_handle *ccc_end(ccc_handle *handle)
{
    void (*const ended)(ccc_handle *) = ccc_types[handle->kind]->ended;
    ccc_handle *parent = handle->parent, *stream = ccc_stream_of(handle), *companion = ccc_companion(handle);
    if (!(handle->flags & CCC_BORROWED)) {
        ccc_destroy(handle);
        atomic_fetch_sub_explicit(&ccc_live[handle->kind], 1, memory_order_relaxed);
    }
    if (handle->flags & CCC_WAITS)
        atomic_fetch_sub(&ccc_waits_alive, 1);
    if (ended)
        ended(handle);
    ccc_release_memory(handle);
    if (stream)
        ccc_release(stream);
    if (companion)
        ccc_release(companion);
    return parent;
}

// Leave the end of a handle to another thread, or to a later time.
static CCC_COLD void ccc_defer(_Atomic(ccc_handle *) *list, ccc_handle *handle)
{
    handle->deferred = atomic_load(list);
    while (!atomic_compare_exchange_weak(list, &handle->deferred, handle))
        ;
}

// Have the handles that wait for captures looked at again.
static void ccc_free_captives(void)
{
    ccc_handle *handle = atomic_load(&ccc_captive) ? atomic_exchange(&ccc_captive, NULL) : NULL;
    while (handle) {
        ccc_handle *next = handle->deferred;
        ccc_defer(&ccc_deferred, handle);
        handle = next;
    }
}

// Leave the end of a handle to a later time if it has to wait for a capture. Returns whether it has.
static int ccc_defer_captive(ccc_handle *handle)
{
    unsigned long ended = atomic_load(&ccc_captures_ended);
    int (*const must_wait)(const ccc_handle *) = ccc_types[handle->kind]->must_wait;
    if (!atomic_load(&ccc_captures) || must_wait == NULL || handle->flags & CCC_BORROWED || !must_wait(handle))
        return 0;
    ccc_defer(&ccc_captive, handle);
    if (atomic_load(&ccc_captures_ended) != ended)  // perhaps that one: who ended it has not seen this handle
        ccc_free_captives();
    ccc_release_ask();  // or another library ends it
    return 1;
}

// Leave the end of a handle to the release thread, which waits until the device is idle. A stream of another library
// may be gone by then, so memory that is freed in its order is freed when all work is done.
static CCC_COLD void ccc_end_when_idle(ccc_handle *handle)
{
    ccc_handle *stream = ccc_stream_of(handle);
    if (stream && (stream->flags & (CCC_BORROWED | CCC_TOKEN)) == CCC_BORROWED) {
        atomic_store((_Atomic(ccc_handle *) *)((char *)handle + ccc_types[handle->kind]->stream), NULL);
        ccc_release(stream);
    }
    atomic_fetch_add(&ccc_ends_waiting, 1);
    ccc_defer(&ccc_until_idle, handle);
    ccc_release_ask();
}

// End a handle without uses, and release the handles that it depended on. With `closing` the program has called
// close(), and this may wait for the device; code is never unloaded here. The failure that a helper has left in this
// thread stays: Python may not have read it yet.
static CCC_COLD void ccc_end_unused(ccc_handle *handle, int closing)
{
    ccc_failure failure = ccc_last;
    do {
        int (*const until_idle)(const ccc_handle *) = ccc_types[handle->kind]->until_idle;
        if (until_idle && until_idle(handle))
            handle->flags |= CCC_WAITS | CCC_NEVER_AT_ONCE;  // no other thread has a handle without uses
        if (ccc_in_callback) {
            ccc_defer(&ccc_deferred, handle);
            break;
        }
        if (handle->flags & CCC_WAITS && (!closing || handle->flags & CCC_NEVER_AT_ONCE)) {
            ccc_end_when_idle(handle);
            break;
        }
        closing = closing && handle->parent && handle->parent->kind == handle->kind;  // the whole of a slice
        if (atomic_load_explicit(&ccc_captures, memory_order_relaxed) && ccc_defer_captive(handle))
            break;
        handle = ccc_end(handle);
    } while (ccc_unuse(handle));
    ccc_last = failure;
}

static void ccc_release(ccc_handle *handle)
{
    if (ccc_unuse(handle))
        ccc_end_unused(handle, 0);
}

// For CCC_USE: release at the end of a scope.
static void ccc_release_scoped(ccc_handle **handle) { ccc_release(*handle); }

static void ccc_release_all(ccc_handle *const *handles, size_t count)
{
    while (count > 0)
        ccc_release_scoped((ccc_handle **)&handles[--count]);
}

// Acquire all handles, or none. 0: one of them is closed.
static int ccc_acquire_all(ccc_handle *const *handles, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!ccc_acquire(handles[i])) {
            ccc_release_all(handles, i);
            return 0;
        }
    return 1;
}

#define CCC_USE_AS(name, owner, otherwise) \
    __attribute__((cleanup(ccc_release_scoped))) ccc_handle *name = ccc_acquire(owner) ? (ccc_handle *)(owner) : NULL; \
    if (!CCC_LIKELY(name != NULL)) \
    return otherwise
#define CCC_USE_MAYBE_AS(name, owner, otherwise) \
    __attribute__((cleanup(ccc_release_scoped))) ccc_handle *name = \
        (owner) && ccc_acquire(owner) ? (ccc_handle *)(owner) : NULL; \
    if ((owner) && name == NULL) \
    return otherwise

// Use an object until the end of the scope. If it is closed, return `otherwise`, or CCC_CLOSED, from the helper.
#define CCC_USE_OR(handle, otherwise) CCC_USE_AS(CCC_JOIN(ccc_used_, __COUNTER__), handle, otherwise)
#define CCC_USE(handle) CCC_USE_OR(handle, CCC_CLOSED)
// The same for an object that may be NULL.
#define CCC_USE_MAYBE_OR(handle, otherwise) CCC_USE_MAYBE_AS(CCC_JOIN(ccc_used_, __COUNTER__), handle, otherwise)
#define CCC_USE_MAYBE(handle) CCC_USE_MAYBE_OR(handle, CCC_CLOSED)

// End the handles that were left to other threads, and to later.
static void ccc_end_deferred(void)
{
    ccc_handle *handle = ccc_in_callback ? NULL : atomic_exchange(&ccc_deferred, NULL);
    while (handle) {
        ccc_handle *next = handle->deferred;
        if (handle->flags & CCC_WAITS)
            ccc_end_when_idle(handle);
        else if (!ccc_defer_captive(handle))
            ccc_release(ccc_end(handle));
        handle = next;
    }
}

// The same as below; `closing` as for ccc_end_unused.
static int ccc_close_now(ccc_handle *handle, int closing)
{
    uint32_t uses = atomic_load_explicit(&handle->uses, memory_order_relaxed);
    do {
        if (!(uses & CCC_OPEN))
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(&handle->uses, &uses, uses - CCC_FIRST_USE, memory_order_acq_rel,
                                                    memory_order_relaxed));
    if (uses == CCC_FIRST_USE && !(handle->flags & CCC_IMMORTAL))
        ccc_end_unused(handle, closing);
    return 1;
}

// Release the use of the Python object in one atomic operation. Returns whether this call did, rather than an earlier
// one.
static int ccc_close_once(ccc_handle *handle) { return ccc_close_now(handle, 1); }

// The number of cleanup failures that wait to be reported.
static int ccc_cleanup_waiting(void) { return (int)atomic_load_explicit(&ccc_cleanup_count, memory_order_relaxed); }

// End a handle that the module _calls has closed, and which had no other use. Returns as ccc_close does.
static int ccc_end_closed(ccc_handle *handle)
{
    ccc_end_unused(handle, 1);
    return ccc_cleanup_waiting();
}

// Close on behalf of the Python object. Returns the number of cleanup failures that wait to be reported.
static int ccc_close(ccc_handle *handle)
{
    if (!(handle->flags & CCC_IMMORTAL))
        ccc_close_once(handle);
    return ccc_cleanup_waiting();
}

// The Python object is gone. Returns as ccc_close does.
static int ccc_release_object(ccc_handle *handle)
{
    if (!(handle->flags & CCC_IMMORTAL)) {
        ccc_close_now(handle, 0);
        ccc_release_memory(handle);
    }
    return ccc_cleanup_waiting();
}

// Free a handle whose driver object was not made.
static CCC_COLD void ccc_discard(ccc_handle *handle)
{
    atomic_fetch_sub_explicit(&ccc_live[handle->kind], 1, memory_order_relaxed);
    if (handle->flags & CCC_WAITS)
        atomic_fetch_sub(&ccc_waits_alive, 1);
    handle->flags = CCC_BORROWED;
    ccc_release_object(handle);
}

static ccc_handle *ccc_made(ccc_handle *handle, uint64_t value, CUresult result, const char *call)
{
    if (CCC_LIKELY(result == CUDA_SUCCESS)) {
        handle->value = value;
        return handle;
    }
    ccc_discard(handle);
    ccc_fail((int)result, call);
    return NULL;
}

// Call the driver function that makes the object of a new handle, which is NULL without memory for it; and set the
// handle to NULL if it fails. The handle is there first, so that no object has to be destroyed for want of memory.
// The function sets `object`.
#define CCC_MAKE(handle, object, function, ...) \
    do { \
        if (CCC_LIKELY((handle) != NULL)) { \
            const CUresult made_ = function(__VA_ARGS__); \
            handle = ccc_made(handle, (uint64_t)(object), made_, #function); \
        } \
    } while (0)

// End a use that was kept in an object of its own, in a finalizer perhaps: unlike a close, this never waits for the
// device. Returns as ccc_close does.
static int ccc_use_end(ccc_handle *use)
{
    ccc_close_now(use, 0);
    return ccc_cleanup_waiting();
}

// A handle for another Python object that shows the same driver handle (a stream's context, say): it uses the first
// one and destroys nothing itself. NULL: the driver handle is gone, or out of memory.
static ccc_handle *ccc_view(ccc_handle *handle)
{
    if (!ccc_retain(handle))
        return ccc_closed();
    int flags = (handle->flags & ~(CCC_IMMORTAL | CCC_WAITS)) | CCC_BORROWED | CCC_PART;
    ccc_handle *view = ccc_new(handle->kind, handle->value, flags, handle);
    ccc_release(handle);
    return view;
}

// The same for an object that must be open. NULL: it is closed, or out of memory.
static ccc_handle *ccc_view_open(ccc_handle *handle)
{
    CCC_USE_OR(handle, ccc_closed());
    return ccc_view(handle);
}

#endif
