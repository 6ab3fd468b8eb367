// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Handles. Each is a structure that owns one object of the driver, called its driver handle here, or memory.
//
// A handle is kept by two counts. `uses` are the references that need the driver handle alive: the Python object until
// it is closed, and every handle that depends on this one (a stream's handle uses its context's). When the last use
// goes, the handle is destroyed and the parents are released, without Python, on whatever thread that happens.
// `holders` are those that may still look at the memory of the handle: the Python object until it is collected, and the
// uses as one. So closing from two threads at once, or closing an object that a buffer still needs, is never a use
// after free.
#ifndef CCC_HANDLE_H
#define CCC_HANDLE_H

#include <stdatomic.h>
#include <stdlib.h>

#include "driver/ccc_error.h"
#include "driver/ccc_table.h"
#include "handles/ccc_head.h"

typedef struct ccc_charge ccc_charge;  // ccc_meter.h
typedef struct ccc_import ccc_import;  // ccc_ipc.h

struct ccc_handle {
    CCC_HEAD
    _Atomic(uint32_t) holders;
    CUdevice device;
    ccc_handle *parent;    // context of a stream, event or buffer; library of a kernel
    ccc_handle *deferred;  // the next of those that wait to end elsewhere
    void *memory;          // freed with the handle
    union {                // what one kind has; the largest first, because that is set to zero
        struct {
            ccc_handle *pool;
            _Atomic(ccc_handle *) stream;     // the buffer is freed in the order of this stream
            _Atomic(size_t) size;             // memory in reserved addresses grows
            _Atomic(ccc_charge *) charges;    // who counts the buffer
            _Atomic(struct ccc_keep *) keep;  // finished when the memory went back; or NULL
            struct ccc_virtual *mappings;     // of a buffer in reserved addresses
            ccc_import *import;               // of a buffer of another process: what it has in common with others
            _Atomic(uint32_t) readers;        // threads that read the stream, which is not released meanwhile
        } buffer;
        struct {                       // of a stream or an event
            _Atomic(uint64_t) source;  // of a stream: its number; of an event: that of the stream that recorded it
            _Atomic(CUevent) spare;    // of a stream: an event for others to wait for it
            ccc_handle *original;      // of one that stands for another: that one
            ccc_handle *next, **link;  // of a stream of ours: the next of them, and what points to this one
            CUevent mark;              // of a stream of ours, like the next members: see ccc_idle.h
            unsigned int marked;       // in which round the mark was recorded
            int quiet;                 // it had no work when it was last seen outside of a capture
            int followed;              // an executable of a graph was launched in it, which keeps something
        } queue;
        struct {
            _Atomic(ccc_handle *) stream;  // NULL once the capture was ended by its builder
            ccc_handle *graph;
            atomic_int given;  // somebody has the graph: it is not released with this handle as well
        } capture;
        struct {  // of a green context that was made here
            CUgreenCtx context;
            ccc_handle *next;
        } green;
        atomic_int lent;  // of a library: whether a program may unload it, so that this package does not
        struct {
            struct ccc_graph *graph;  // of a graph or an executable: its lock, and what it keeps
            uint64_t node;            // of a graph inside a node, which has no such thing: that node
        };
        struct {                 // of a graphics resource
            atomic_int mapped;   // there is a buffer of its memory
            atomic_int watched;  // a failure to unmap is kept rather than reported
            atomic_int failure;
        } graphics;
        ccc_handle *resource;  // of a texture or a surface: the array, mipmapped array or buffer
        struct {               // of handles of other libraries, and of the driver's linker
            CUresult (*destroy)(uint64_t value);
            const char *call;  // the name of what that calls
        } foreign;
    };
};

static atomic_long ccc_live[CCC_KINDS];

static atomic_int ccc_captures;  // of streams, that were begun here and have not ended

// Set while a callback runs in a thread of the driver's, where no driver function may be called: a handle whose last
// use goes there, perhaps because Python collects garbage, ends later, in a thread that looks for such handles.
static _Thread_local int ccc_in_callback;
static _Atomic(ccc_handle *) ccc_deferred;

// Handles that cannot end while a stream is captured. When a capture ends they are deferred, and so looked at again.
static _Atomic(ccc_handle *) ccc_captive;
static atomic_ulong ccc_captures_ended;

#define CCC_POINTER(handle) ((void *)(uintptr_t)(handle)->value)
#define CCC_CTX(handle) ((CUcontext)CCC_POINTER(handle))
#define CCC_STRM(handle) ((CUstream)CCC_POINTER(handle))

// Handles that the driver waits for the device to destroy. The release thread ends them when that is idle.
static _Atomic(ccc_handle *) ccc_until_idle;
static atomic_int ccc_waits_alive;   // how many handles there are that have CCC_WAITS
static atomic_int ccc_ends_waiting;  // how many there are, also those that the look for idle devices has taken

// What the end of a handle needs of the headers that come after this one, each of which includes it.
static void ccc_destroy(ccc_handle *handle);          // ccc_destroy.h
static int ccc_must_wait(const ccc_handle *handle);   // graph/ccc_graph_memory.h
static void ccc_end_charges(ccc_charge *charge);      // memory/ccc_meter.h
static void CUDA_CB ccc_keep_finish(void *argument);  // ccc_keep.h
static void ccc_release_ask(void);                    // ccc_release.h

static long ccc_live_count(int kind) { return kind >= 0 && kind < CCC_KINDS ? atomic_load(&ccc_live[kind]) : 0; }

// Make a handle with one use and one holder, both the caller's. Parents given are retained. NULL: out of memory.
static ccc_handle *ccc_new(ccc_kind kind, uint64_t value, int flags, ccc_handle *parent)
{
    // the C library's calloc is slower by more than it takes to set everything
    ccc_handle *handle = malloc(sizeof *handle);
    if (handle == NULL) {
        ccc_fail(CCC_NO_MEMORY, "malloc");
        return NULL;
    }
    *handle = (ccc_handle){
        .uses = CCC_FIRST_USE,
        .holders = 2,
        .flags = flags,
        .kind = kind,
        .device = parent ? parent->device : -1,
        .value = value,
        .parent = parent,
    };
    if (parent && !(parent->flags & CCC_IMMORTAL))
        atomic_fetch_add_explicit(&parent->uses, 1, memory_order_relaxed);
    if (!(flags & CCC_BORROWED))
        atomic_fetch_add_explicit(&ccc_live[kind], 1, memory_order_relaxed);
    if (flags & CCC_WAITS)
        atomic_fetch_add(&ccc_waits_alive, 1);
    return handle;
}

static void ccc_release_memory(ccc_handle *handle)
{
    // the last holder is alone with the handle
    if (atomic_load_explicit(&handle->holders, memory_order_acquire) == 1 ||
        atomic_fetch_sub_explicit(&handle->holders, 1, memory_order_acq_rel) == 1) {
        free(handle->memory);
        free(handle);
    }
}

// Add a use if the Python object is open, in one atomic step, whatever other threads close meanwhile: the way from an
// object that somebody may close to its driver handle. 0: it is closed. The uses of what lives for ever are not
// counted, because all threads would write the same count.
static int ccc_acquire(const ccc_handle *object)
{
    ccc_handle *handle = (ccc_handle *)object;
    if (handle->flags & CCC_IMMORTAL)
        return 1;
    uint32_t uses = atomic_load_explicit(&handle->uses, memory_order_relaxed);
    while (uses & CCC_OPEN)
        if (atomic_compare_exchange_weak_explicit(&handle->uses, &uses, uses + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return 1;
    return 0;
}

// Add a use unless the driver handle is already gone, for those who have a use of it or of what depends on it.
static int ccc_retain(ccc_handle *handle)
{
    if (handle->flags & CCC_IMMORTAL)
        return 1;
    uint32_t uses = atomic_load_explicit(&handle->uses, memory_order_relaxed);
    while (uses & ~CCC_OPEN)
        if (atomic_compare_exchange_weak_explicit(&handle->uses, &uses, uses + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return 1;
    return 0;
}

static void ccc_release(ccc_handle *handle);

// The stream that a buffer is freed in, or that a capture captures; else NULL.
static ccc_handle *ccc_stream_of(const ccc_handle *handle)
{
    return handle->kind == CCC_BUFFER    ? atomic_load(&handle->buffer.stream)
           : handle->kind == CCC_CAPTURE ? atomic_load(&handle->capture.stream)
                                         : NULL;
}

// What else a handle has a use of, besides its parent; or NULL.
static ccc_handle *ccc_companion(const ccc_handle *handle)
{
    switch (handle->kind) {
    case CCC_BUFFER: return handle->buffer.pool;
    case CCC_CAPTURE: return handle->capture.graph;
    case CCC_STREAM:
    case CCC_EVENT: return handle->queue.original;
    case CCC_TEXTURE:
    case CCC_SURFACE: return handle->resource;
    default: return NULL;
    }
}

// Destroy what a handle owns, which nobody uses. Returns its parent, of which one use is left to release.
static ccc_handle *ccc_end(ccc_handle *handle)
{
    int is_buffer = handle->kind == CCC_BUFFER;
    ccc_handle *parent = handle->parent, *stream = ccc_stream_of(handle), *companion = ccc_companion(handle);
    ccc_charge *charges = is_buffer ? atomic_load(&handle->buffer.charges) : NULL;
    struct ccc_keep *keep = is_buffer ? atomic_load(&handle->buffer.keep) : NULL;
    if (!(handle->flags & CCC_BORROWED)) {
        ccc_destroy(handle);
        atomic_fetch_sub_explicit(&ccc_live[handle->kind], 1, memory_order_relaxed);
    }
    if (handle->flags & CCC_WAITS)
        atomic_fetch_sub(&ccc_waits_alive, 1);
    if (charges)
        ccc_end_charges(charges);
    if (keep)
        ccc_keep_finish(keep);
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

// Whether a handle was left to a later time: it goes back in a stream that is captured.
static int ccc_defer_captive(ccc_handle *handle)
{
    unsigned long ended = atomic_load(&ccc_captures_ended);
    if (!atomic_load(&ccc_captures) || !ccc_must_wait(handle))
        return 0;
    ccc_defer(&ccc_captive, handle);
    if (atomic_load(&ccc_captures_ended) != ended)  // perhaps that one: who ended it has not seen this handle
        ccc_free_captives();
    ccc_release_ask();  // or another library ends it
    return 1;
}

// Release a use. Returns whether it was the last.
static int ccc_unuse(ccc_handle *handle)
{
    return handle && !(handle->flags & CCC_IMMORTAL) &&
           (atomic_fetch_sub_explicit(&handle->uses, 1, memory_order_acq_rel) & ~CCC_OPEN) == 1;
}

// Leave the end of a handle to the release thread, which waits until the device is idle. A stream of another library
// may be gone by then, so memory that is freed in its order is freed when all work is done.
static CCC_COLD void ccc_end_when_idle(ccc_handle *handle)
{
    ccc_handle *stream = ccc_stream_of(handle);
    if (stream && (stream->flags & (CCC_BORROWED | CCC_TOKEN)) == CCC_BORROWED) {
        atomic_store(&handle->buffer.stream, NULL);
        ccc_release(stream);
    }
    atomic_fetch_add(&ccc_ends_waiting, 1);
    ccc_defer(&ccc_until_idle, handle);
    ccc_release_ask();
}

// The last use has gone: destroy what the handle owns, and release what it depended on. With `closing` the program
// has called close(), and this may wait for the device; code is never unloaded here. The failure that a helper has
// left behind in this thread stays: Python may not have read it yet.
static CCC_COLD void ccc_end_unused(ccc_handle *handle, int closing)
{
    ccc_failure failure = ccc_last;
    do {
        if (ccc_in_callback) {
            ccc_defer(&ccc_deferred, handle);
            break;
        }
        if (handle->flags & CCC_WAITS && (!closing || handle->kind == CCC_LIBRARY)) {
            ccc_end_when_idle(handle);
            break;
        }
        closing =
            closing && handle->kind == CCC_BUFFER && handle->parent && handle->parent->kind == CCC_BUFFER;  // a slice
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

// The failure of a helper that returns a pointer.
static CCC_COLD void *ccc_closed(void)
{
    ccc_fail(CCC_CLOSED, "");
    return NULL;
}

#define CCC_JOIN_(a, b) a##b
#define CCC_JOIN(a, b) CCC_JOIN_(a, b)
#define CCC_USE_AS(name, owner, otherwise) \
    __attribute__((cleanup(ccc_release_scoped))) ccc_handle *name = ccc_acquire(owner) ? (ccc_handle *)(owner) : NULL; \
    if (!CCC_LIKELY(name != NULL)) \
    return otherwise
#define CCC_USE_MAYBE_AS(name, owner, otherwise) \
    __attribute__((cleanup(ccc_release_scoped))) ccc_handle *name = \
        (owner) && ccc_acquire(owner) ? (ccc_handle *)(owner) : NULL; \
    if ((owner) && name == NULL) \
    return otherwise

// Use an object until the end of the scope. Where it is closed, return `otherwise`, or CCC_CLOSED, from the helper.
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

static int ccc_is_open(const ccc_handle *handle)
{
    return (atomic_load_explicit(&handle->uses, memory_order_relaxed) & CCC_OPEN) != 0;
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

// Release the use of the Python object, and tell whether this call was the one that did: in one atomic operation.
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

// The driver handle for the Python object: 0 once closed.
static uint64_t ccc_handle_value(const ccc_handle *handle) { return ccc_is_open(handle) ? handle->value : 0; }

// The driver handle whatever happened since: what equality and hash go by.
static uint64_t ccc_identity(const ccc_handle *handle) { return handle->value; }

// How many need the driver handle alive.
static uint32_t ccc_uses(const ccc_handle *handle) { return atomic_load(&handle->uses) & ~CCC_OPEN; }

static int ccc_flags(const ccc_handle *handle) { return handle->flags; }

// Whether somebody else destroys the driver handle, who may have to be kept until then.
static int ccc_is_borrowed(const ccc_handle *handle)
{
    return (handle->flags & (CCC_BORROWED | CCC_IMMORTAL)) == CCC_BORROWED;
}

static int ccc_handle_device(const ccc_handle *handle) { return handle->device; }

static ccc_kind ccc_handle_kind(const ccc_handle *handle) { return handle->kind; }

static size_t ccc_handle_bytes(const ccc_handle *handle)
{
    return handle->kind == CCC_BUFFER ? handle->buffer.size : 0;
}

// A handle for another Python object that shows the same driver handle (a stream's context, say): it uses the first
// one and destroys nothing itself. NULL: the driver handle is gone, or out of memory.
static ccc_handle *ccc_view(ccc_handle *handle)
{
    if (!ccc_retain(handle))
        return ccc_closed();
    ccc_handle *view = ccc_new(handle->kind, handle->value, handle->flags | CCC_BORROWED, handle);
    if (view)
        view->flags &= ~(CCC_IMMORTAL | CCC_WAITS);
    ccc_release(handle);
    return view;
}

static ccc_handle *ccc_parent(ccc_handle *handle) { return handle->parent; }

#endif
