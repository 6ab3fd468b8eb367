// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Handles. Each is a structure that owns a driver handle, or memory.
//
// A handle is kept by two counts. `uses` are the references that need the driver handle alive: the Python object until
// it is closed, and every handle that depends on this one (a stream's handle uses its context's). When the last use
// goes, the handle is destroyed and the parents are released, without Python, on whatever thread that happens.
// `memory_uses` are those that may still look at the memory of the handle: the Python object until it is collected, and
// the uses as one. So closing from two threads at once, or closing an object that a buffer still needs, is never a use
// after free.
//
// The structure of each kind begins with a ccc_handle. The differences between kinds are in its ccc_handle_type, in the
// header of the kind; graph/ccc_kinds.h lists them. How a handle ends is in ccc_end.h.
#ifndef CCC_HANDLE_H
#define CCC_HANDLE_H

#include <stdatomic.h>
#include <stdlib.h>

#include "driver/ccc_error.h"
#include "driver/ccc_table.h"
#include "handles/ccc_head.h"

struct ccc_handle {
    CCC_HEAD
    _Atomic(uint32_t) memory_uses;
    CUdevice device;
    ccc_handle *parent;    // context of a stream, event or buffer; library of a kernel
    ccc_handle *deferred;  // the next of those that wait to end elsewhere
    void *memory;          // freed with the handle
};

// What differs between kinds of handles. The members up to `bytes` are offsets into the structure of the kind.
typedef struct ccc_handle_type {
    size_t size;       // of the structure
    size_t stream;     // the stream in whose order the handle ends, an atomic pointer; 0: it has none
    size_t companion;  // the handle that this one uses besides its parent, a pointer; 0: no such member
    size_t bytes;      // the size of its memory, an atomic size_t; 0: it has no memory

    // Destroy the driver handle, and set *call to the driver function that does it.
    CUresult (*destroy)(ccc_handle *handle, const char **call);
    // Return whether only the handle's own context destroys it. NULL: any context does.
    int (*needs_context)(const ccc_handle *handle);
    // Return whether the handle must not be destroyed yet, because a stream is captured. NULL: it always may.
    int (*must_wait)(const ccc_handle *handle);
    // Return whether work of any device may still need the driver handle without a use of it, so that it is destroyed
    // as one with CCC_NEVER_AT_ONCE is. These handles are counted in ccc_waits_alive. NULL: no.
    int (*until_idle)(const ccc_handle *handle);
    // Called after the driver handle was destroyed. NULL: not called.
    void (*ended)(ccc_handle *handle);
} ccc_handle_type;

static const ccc_handle_type *const ccc_types[CCC_KINDS];  // defined in graph/ccc_kinds.h

static atomic_long ccc_live[CCC_KINDS];

static atomic_int ccc_waits_alive;  // how many handles there are that have CCC_WAITS

#define CCC_POINTER(handle) ((void *)(uintptr_t)(handle)->value)
#define CCC_CTX(handle) ((CUcontext)CCC_POINTER(handle))
#define CCC_STRM(handle) ((CUstream)CCC_POINTER(handle))

static long ccc_live_count(int kind) { return kind >= 0 && kind < CCC_KINDS ? atomic_load(&ccc_live[kind]) : 0; }

// Make a handle with one use and one memory use, both the caller's. Parents given are retained. NULL: out of memory.
static inline ccc_handle *ccc_new(ccc_kind kind, uint64_t value, int flags, ccc_handle *parent)
{
    const size_t size = ccc_types[kind]->size;
    // the C library's calloc is slower by more than it takes to set everything
    ccc_handle *handle = malloc(size);
    if (handle == NULL) {
        ccc_fail(CCC_NO_MEMORY, "malloc");
        return NULL;
    }
    *handle = (ccc_handle){
        .uses = CCC_FIRST_USE,
        .memory_uses = 2,
        .flags = flags,
        .kind = kind,
        .device = parent ? parent->device : -1,
        .value = value,
        .parent = parent,
    };
    memset(handle + 1, 0, size - sizeof *handle);
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
    // the last memory use: nothing else has the handle
    if (atomic_load_explicit(&handle->memory_uses, memory_order_acquire) == 1 ||
        atomic_fetch_sub_explicit(&handle->memory_uses, 1, memory_order_acq_rel) == 1) {
        free(handle->memory);
        free(handle);
    }
}

// Add a use if the Python object is open, in one atomic step: other threads may close it at any time. 0: it is closed.
// The uses of what lives for ever are not counted, because all threads would write the same count.
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

// The stream in whose order a handle ends: that a buffer is freed in, or that a capture captures. NULL: it has no
// stream.
static ccc_handle *ccc_stream_of(const ccc_handle *handle)
{
    const size_t at = ccc_types[handle->kind]->stream;
    return at ? atomic_load((_Atomic(ccc_handle *) *)((char *)handle + at)) : NULL;
}

// What else a handle has a use of, besides its parent; or NULL.
static ccc_handle *ccc_companion(const ccc_handle *handle)
{
    const size_t at = ccc_types[handle->kind]->companion;
    return at ? *(ccc_handle **)((char *)handle + at) : NULL;
}

// Release a use. Returns whether it was the last.
static int ccc_unuse(ccc_handle *handle)
{
    return handle && !(handle->flags & CCC_IMMORTAL) &&
           (atomic_fetch_sub_explicit(&handle->uses, 1, memory_order_acq_rel) & ~CCC_OPEN) == 1;
}

static int ccc_is_open(const ccc_handle *handle)
{
    return (atomic_load_explicit(&handle->uses, memory_order_relaxed) & CCC_OPEN) != 0;
}

// The driver handle for the Python object: 0 once closed.
static uint64_t ccc_handle_value(const ccc_handle *handle) { return ccc_is_open(handle) ? handle->value : 0; }

// The driver handle whatever happened since: what equality and hash go by.
static uint64_t ccc_identity(const ccc_handle *handle) { return handle->value; }

// How many need the driver handle alive.
static uint32_t ccc_uses(const ccc_handle *handle) { return atomic_load(&handle->uses) & ~CCC_OPEN; }

static int ccc_flags(const ccc_handle *handle) { return handle->flags; }

// Whether another library destroys the driver handle; its owner may have to be kept until then.
static int ccc_is_borrowed(const ccc_handle *handle)
{
    return (handle->flags & (CCC_BORROWED | CCC_IMMORTAL)) == CCC_BORROWED;
}

static int ccc_handle_device(const ccc_handle *handle) { return handle->device; }

static ccc_kind ccc_handle_kind(const ccc_handle *handle) { return handle->kind; }

// The size in bytes of a buffer; 0 of every other kind.
static size_t ccc_handle_bytes(const ccc_handle *handle)
{
    const size_t at = ccc_types[handle->kind]->bytes;
    return at ? atomic_load((_Atomic(size_t) *)((char *)handle + at)) : 0;
}

static ccc_handle *ccc_parent(ccc_handle *handle) { return handle->parent; }

// The failure of a helper that returns a pointer.
static CCC_COLD void *ccc_closed(void)
{
    ccc_fail(CCC_CLOSED, "");
    return NULL;
}

#define CCC_JOIN_(a, b) a##b
#define CCC_JOIN(a, b) CCC_JOIN_(a, b)

#endif
