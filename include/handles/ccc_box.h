/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boxes: what owns a driver handle.
 *
 * A box is kept by two counts. `uses` are the references that need the driver handle alive: the Python object until it
 * is closed, and every box that depends on this one (a stream's box uses its context's). When the last use goes, the
 * handle is destroyed and the parents are released, without Python, on whatever thread that happens. `holders` are
 * those that may still look at the memory of the box: the Python object until it is collected, and the uses as one.
 * So closing from two threads at once, or closing an object that a buffer still needs, is never a use after free.
 */
#ifndef CCC_BOX_H
#define CCC_BOX_H

#include <stdatomic.h>
#include <stdlib.h>

#include "driver/ccc_error.h"
#include "driver/ccc_table.h"
#include "cuda_core_cffi.h"

enum {
    CCC_BORROWED = 1,     /* somebody else destroys the handle */
    CCC_IMMORTAL = 2,     /* lives as long as the process: closing is a no-op */
    CCC_SYNCHRONOUS = 4,  /* buffer from cuMemAlloc */
    CCC_PINNED = 8,       /* buffer from cuMemAllocHost */
    CCC_TIMED = 16,       /* event that takes times */
    CCC_BLOCKING = 32,    /* event that sleeps in sync */
    CCC_TOKEN = 64,       /* stream: one of the default streams, which mean a stream of the current context */
    CCC_SHARED = 128,     /* event that other processes may use */
    CCC_VIRTUAL = 256,    /* buffer of mappings in reserved addresses */
    CCC_IMPORTED = 512,   /* pool of another process, or buffer from one */
    CCC_OF_GRAPH = 1024,  /* buffer of memory that a node of a graph allocates */
    CCC_NONBLOCKING = 2048 /* stream of ours that runs beside the legacy default stream */
};

/* A bit among the uses: the Python object has not been closed. It goes together with the use of that object. */
#define CCC_OPEN (UINT32_C(1) << 31)
#define CCC_FIRST_USE (CCC_OPEN | 1)

typedef struct ccc_charge ccc_charge; /* ccc_meter.h */
typedef struct ccc_import ccc_import; /* ccc_ipc.h */

struct ccc_box {
    _Atomic(uint32_t) uses; /* and CCC_OPEN */
    _Atomic(uint32_t) holders;
    int flags;
    ccc_kind kind;
    CUdevice device;
    uint64_t handle;
    ccc_box *parent;   /* context of a stream, event or buffer; library of a kernel */
    ccc_box *deferred; /* the next of those that wait to end elsewhere */
    void *memory;      /* freed with the box */
    union {            /* what one kind has; the largest first, because that is set to zero */
        struct {
            ccc_box *pool;
            _Atomic(ccc_box *) stream;       /* the buffer is freed in the order of this stream */
            size_t size;
            _Atomic(ccc_charge *) charges;   /* who counts the buffer */
            _Atomic(struct ccc_keep *) keep; /* finished when the memory went back; or NULL */
            struct ccc_virtual *mappings;    /* of a buffer in reserved addresses */
            ccc_import *import;              /* of a buffer of another process: what it has in common with others */
            _Atomic(uint32_t) readers;       /* threads that read the stream, which is not released meanwhile */
        } buffer;
        struct {                      /* of a stream or an event */
            _Atomic(uint64_t) source; /* of a stream: its number; of an event: that of the stream that recorded it */
            _Atomic(CUevent) spare;   /* of a stream: an event for others to wait for it */
            ccc_box *original;        /* of one that stands for another: that one */
        } queue;
        struct {
            _Atomic(ccc_box *) stream;
            ccc_box *graph;
        } capture;
        struct ccc_graph *graph; /* of a graph or an executable: its lock, and what it keeps */
        struct {                 /* of handles of other libraries, and of the driver's linker */
            CUresult (*destroy)(uint64_t handle);
            const char *call; /* the name of what that calls */
        } foreign;
    };
};

static atomic_long ccc_live[CCC_KINDS];

static atomic_int ccc_captures; /* of streams, that were begun here and have not ended */

/*
 * Set while a callback runs in a thread of the driver's, where no driver function may be called: a box whose last use
 * goes there, perhaps because Python collects garbage, ends later, in a thread that looks for such boxes.
 */
static _Thread_local int ccc_in_callback;
static _Atomic(ccc_box *) ccc_deferred;

/* Boxes that cannot end while a stream is captured. When a capture ends they are deferred, and so looked at again. */
static _Atomic(ccc_box *) ccc_captive;
static atomic_ulong ccc_captures_ended;

#define CCC_POINTER(box) ((void *)(uintptr_t)(box)->handle)
#define CCC_CTX(box) ((CUcontext)CCC_POINTER(box))
#define CCC_STRM(box) ((CUstream)CCC_POINTER(box))

/* What the end of a box needs of the headers that come after this one, each of which includes it. */
static void ccc_destroy(ccc_box *box);                   /* ccc_destroy.h */
static int ccc_must_wait(const ccc_box *box);            /* graph/ccc_graph_memory.h */
static void ccc_end_charges(ccc_charge *charge);         /* memory/ccc_meter.h */
static void CUDA_CB ccc_keep_finish(void *argument);     /* ccc_keep.h */
static void ccc_release_ask(void);                       /* ccc_release.h */

static long ccc_live_count(int kind)
{
    return kind >= 0 && kind < CCC_KINDS ? atomic_load(&ccc_live[kind]) : 0;
}

/* Make a box with one use and one holder, both the caller's. Parents given are retained. NULL: out of memory. */
static ccc_box *ccc_new(ccc_kind kind, uint64_t handle, int flags, ccc_box *parent)
{
    ccc_box *box = malloc(sizeof *box); /* the C library's calloc is slower by more than it takes to set everything */
    if (box == NULL) {
        ccc_fail(CCC_NO_MEMORY, "malloc");
        return NULL;
    }
    *box = (ccc_box){
        .uses = CCC_FIRST_USE, .holders = 2, .flags = flags, .kind = kind, .device = parent ? parent->device : -1,
        .handle = handle, .parent = parent,
    };
    if (parent && !(parent->flags & CCC_IMMORTAL))
        atomic_fetch_add_explicit(&parent->uses, 1, memory_order_relaxed);
    if (!(flags & CCC_BORROWED))
        atomic_fetch_add_explicit(&ccc_live[kind], 1, memory_order_relaxed);
    return box;
}

static void ccc_unhold(ccc_box *box)
{
    /* the last holder is alone with the box */
    if (atomic_load_explicit(&box->holders, memory_order_acquire) == 1 ||
        atomic_fetch_sub_explicit(&box->holders, 1, memory_order_acq_rel) == 1) {
        free(box->memory);
        free(box);
    }
}

/*
 * Add a use if the Python object is open, in one atomic step, whatever other threads close meanwhile: the way from an
 * object that somebody may close to its handle. 0: it is closed. The uses of what lives for ever are not counted,
 * because all threads would write the same count.
 */
static int ccc_acquire(const ccc_box *object)
{
    ccc_box *box = (ccc_box *)object;
    if (box->flags & CCC_IMMORTAL)
        return 1;
    uint32_t uses = atomic_load_explicit(&box->uses, memory_order_relaxed);
    while (uses & CCC_OPEN)
        if (atomic_compare_exchange_weak_explicit(&box->uses, &uses, uses + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return 1;
    return 0;
}

/* Add a use unless the handle is already gone, for those who have a use of it or of what depends on it. */
static int ccc_retain(ccc_box *box)
{
    if (box->flags & CCC_IMMORTAL)
        return 1;
    uint32_t uses = atomic_load_explicit(&box->uses, memory_order_relaxed);
    while (uses & ~CCC_OPEN)
        if (atomic_compare_exchange_weak_explicit(&box->uses, &uses, uses + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return 1;
    return 0;
}

static void ccc_release(ccc_box *box);

/* The stream that a buffer is freed in, or that a capture captures; else NULL. */
static ccc_box *ccc_stream_of(const ccc_box *box)
{
    return box->kind == CCC_BUFFER    ? atomic_load(&box->buffer.stream)
           : box->kind == CCC_CAPTURE ? atomic_load(&box->capture.stream)
                                      : NULL;
}

/* What else a box has a use of, besides its parent; or NULL. */
static ccc_box *ccc_companion(const ccc_box *box)
{
    switch (box->kind) {
    case CCC_BUFFER:
        return box->buffer.pool;
    case CCC_CAPTURE:
        return box->capture.graph;
    case CCC_STREAM:
    case CCC_EVENT:
        return box->queue.original;
    default:
        return NULL;
    }
}

/* Destroy the handle of a box that nobody uses. Returns its parent, of which one use is left to drop. */
static ccc_box *ccc_end(ccc_box *box)
{
    int is_buffer = box->kind == CCC_BUFFER;
    ccc_box *parent = box->parent, *stream = ccc_stream_of(box), *companion = ccc_companion(box);
    ccc_charge *charges = is_buffer ? atomic_load(&box->buffer.charges) : NULL;
    struct ccc_keep *keep = is_buffer ? atomic_load(&box->buffer.keep) : NULL;
    if (!(box->flags & CCC_BORROWED)) {
        ccc_destroy(box);
        atomic_fetch_sub_explicit(&ccc_live[box->kind], 1, memory_order_relaxed);
    }
    if (charges)
        ccc_end_charges(charges);
    if (keep)
        ccc_keep_finish(keep);
    ccc_unhold(box);
    if (stream)
        ccc_release(stream);
    if (companion)
        ccc_release(companion);
    return parent;
}

/* Leave the end of a box to another thread, or to a later time. */
static CCC_COLD void ccc_defer(_Atomic(ccc_box *) *list, ccc_box *box)
{
    box->deferred = atomic_load(list);
    while (!atomic_compare_exchange_weak(list, &box->deferred, box))
        ;
}

/* Have the boxes that wait for captures looked at again. */
static void ccc_free_captives(void)
{
    ccc_box *box = atomic_load(&ccc_captive) ? atomic_exchange(&ccc_captive, NULL) : NULL;
    while (box) {
        ccc_box *next = box->deferred;
        ccc_defer(&ccc_deferred, box);
        box = next;
    }
}

/* Whether a box was left to a later time: it goes back in a stream that is captured. */
static int ccc_defer_captive(ccc_box *box)
{
    unsigned long ended = atomic_load(&ccc_captures_ended);
    if (!atomic_load(&ccc_captures) || !ccc_must_wait(box))
        return 0;
    ccc_defer(&ccc_captive, box);
    if (atomic_load(&ccc_captures_ended) != ended) /* perhaps that one: who ended it has not seen this box */
        ccc_free_captives();
    ccc_release_ask(); /* or another library ends it */
    return 1;
}

/* Drop a use. Returns whether it was the last. */
static int ccc_unuse(ccc_box *box)
{
    return box && !(box->flags & CCC_IMMORTAL) &&
           (atomic_fetch_sub_explicit(&box->uses, 1, memory_order_acq_rel) & ~CCC_OPEN) == 1;
}

/*
 * The last use has gone: destroy the handle, and release what it depended on. The failure that a helper has left behind
 * in this thread stays: Python may not have read it yet.
 */
static CCC_COLD void ccc_end_unused(ccc_box *box)
{
    ccc_failure failure = ccc_last;
    do {
        if (ccc_in_callback) {
            ccc_defer(&ccc_deferred, box);
            break;
        }
        if (atomic_load_explicit(&ccc_captures, memory_order_relaxed) && ccc_defer_captive(box))
            break;
        box = ccc_end(box);
    } while (ccc_unuse(box));
    ccc_last = failure;
}

static void ccc_release(ccc_box *box)
{
    if (ccc_unuse(box))
        ccc_end_unused(box);
}

/* For CCC_USE: release at the end of a scope. */
static void ccc_release_scoped(ccc_box **box)
{
    ccc_release(*box);
}

static void ccc_release_all(ccc_box *const *boxes, size_t count)
{
    while (count > 0)
        ccc_release_scoped((ccc_box **)&boxes[--count]);
}

/* Acquire all boxes, or none. 0: one of them is closed. */
static int ccc_acquire_all(ccc_box *const *boxes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!ccc_acquire(boxes[i])) {
            ccc_release_all(boxes, i);
            return 0;
        }
    return 1;
}

/* The failure of a helper that returns a pointer. */
static CCC_COLD void *ccc_closed(void)
{
    ccc_fail(CCC_CLOSED, "");
    return NULL;
}

#define CCC_JOIN_(a, b) a##b
#define CCC_JOIN(a, b) CCC_JOIN_(a, b)
#define CCC_USE_AS(name, box, otherwise)                                                                       \
    __attribute__((cleanup(ccc_release_scoped))) ccc_box *name = ccc_acquire(box) ? (ccc_box *)(box) : NULL; \
    if (!CCC_LIKELY(name != NULL))                                                                             \
    return otherwise
#define CCC_USE_MAYBE_AS(name, box, otherwise)                                                                        \
    __attribute__((cleanup(ccc_release_scoped))) ccc_box *name = (box) && ccc_acquire(box) ? (ccc_box *)(box) : NULL; \
    if ((box) && name == NULL)                                                                                        \
    return otherwise

/* Use an object until the end of the scope. Where it is closed, return `otherwise`, or CCC_CLOSED, from the helper. */
#define CCC_USE_OR(box, otherwise) CCC_USE_AS(CCC_JOIN(ccc_used_, __COUNTER__), box, otherwise)
#define CCC_USE(box) CCC_USE_OR(box, CCC_CLOSED)
/* The same for an object that may be NULL. */
#define CCC_USE_MAYBE_OR(box, otherwise) CCC_USE_MAYBE_AS(CCC_JOIN(ccc_used_, __COUNTER__), box, otherwise)
#define CCC_USE_MAYBE(box) CCC_USE_MAYBE_OR(box, CCC_CLOSED)

/* End the boxes that were left to other threads, and to later. */
static void ccc_end_deferred(void)
{
    ccc_box *box = ccc_in_callback ? NULL : atomic_exchange(&ccc_deferred, NULL);
    while (box) {
        ccc_box *next = box->deferred;
        if (!ccc_defer_captive(box))
            ccc_release(ccc_end(box));
        box = next;
    }
}

static int ccc_is_open(const ccc_box *box)
{
    return (atomic_load_explicit(&box->uses, memory_order_relaxed) & CCC_OPEN) != 0;
}

/* Drop the use of the Python object, and tell whether this call was the one that did: with one atomic operation. */
static int ccc_take(ccc_box *box)
{
    uint32_t uses = atomic_load_explicit(&box->uses, memory_order_relaxed);
    do {
        if (!(uses & CCC_OPEN))
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(&box->uses, &uses, uses - CCC_FIRST_USE, memory_order_acq_rel,
                                                    memory_order_relaxed));
    if (uses == CCC_FIRST_USE && !(box->flags & CCC_IMMORTAL))
        ccc_end_unused(box);
    return 1;
}

/* Close on behalf of the Python object. Returns the number of cleanup failures that wait to be reported. */
static int ccc_close(ccc_box *box)
{
    if (!(box->flags & CCC_IMMORTAL))
        ccc_take(box);
    return (int)atomic_load_explicit(&ccc_cleanup_count, memory_order_relaxed);
}

/* The Python object is gone. Returns as ccc_close does. */
static int ccc_drop(ccc_box *box)
{
    if (!(box->flags & CCC_IMMORTAL)) {
        ccc_take(box);
        ccc_unhold(box);
    }
    return (int)atomic_load_explicit(&ccc_cleanup_count, memory_order_relaxed);
}

/* The handle for the Python object: 0 once closed. */
static uint64_t ccc_handle(const ccc_box *box)
{
    return ccc_is_open(box) ? box->handle : 0;
}

/* The handle whatever happened since: what equality and hash go by. */
static uint64_t ccc_identity(const ccc_box *box)
{
    return box->handle;
}

/* How many need the handle alive. */
static uint32_t ccc_uses(const ccc_box *box)
{
    return atomic_load(&box->uses) & ~CCC_OPEN;
}

static int ccc_flags(const ccc_box *box)
{
    return box->flags;
}

/* Whether somebody else destroys the handle, who may have to be kept until then. */
static int ccc_is_borrowed(const ccc_box *box)
{
    return (box->flags & (CCC_BORROWED | CCC_IMMORTAL)) == CCC_BORROWED;
}

static int ccc_box_device(const ccc_box *box)
{
    return box->device;
}

static ccc_kind ccc_box_kind(const ccc_box *box)
{
    return box->kind;
}

static size_t ccc_box_bytes(const ccc_box *box)
{
    return box->kind == CCC_BUFFER ? box->buffer.size : 0;
}

/*
 * A box of its own for another Python object that shows the same handle (a stream's context, say): it uses the
 * first one and destroys nothing itself. NULL: the handle is gone, or out of memory.
 */
static ccc_box *ccc_view(ccc_box *box)
{
    if (!ccc_retain(box))
        return ccc_closed();
    ccc_box *view = ccc_new(box->kind, box->handle, box->flags | CCC_BORROWED, box);
    if (view)
        view->flags &= ~CCC_IMMORTAL;
    ccc_release(box);
    return view;
}

static ccc_box *ccc_parent(ccc_box *box)
{
    return box->parent;
}

#endif
