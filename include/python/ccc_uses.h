// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Uses of handles for the time of a call, for _calls.c; and closing them.
//
// To add a use of a handle and to release it are two atomic operations, which take as long as a short call of the
// driver. Where there is a GIL, what has it counts the calls that go on with the handle of an object, and that is
// enough: an object is closed with the GIL, too (close_handle), and if calls go on with its handle then, it leaves its
// use to the last of those calls. The helpers that such calls are made of end with `_in`: their caller has a use of
// every handle.
//
// An object cannot go while a call uses its handle, because the caller has it as an argument.
#ifndef CCC_USES_H
#define CCC_USES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "handles/ccc_head.h"
#include "python/ccc_calls.h"
#include "python/ccc_gil.h"

// Set when the module is imported. The second is in the first, too: to read one after the other takes a nanosecond or
// two.
static const ccc_calls *helpers;
static ccc_gil *gil_of_all;
#define CCC_GIL gil_of_all

// A bit of `calls`: the object is closed, and its use is to be released with the last of the calls.
#define LEFT_USE (UINT32_C(1) << 31)

static inline ccc_head *head_of(const ccc_handle *handle) { return (ccc_head *)handle; }

static inline int is_open(const ccc_handle *handle)
{
    return (atomic_load_explicit(&head_of(handle)->uses, memory_order_relaxed) & CCC_OPEN) != 0;
}

#ifdef Py_GIL_DISABLED

static inline int begin_use(ccc_handle *handle) { return helpers->acquire(handle); }

static inline void end_use(ccc_handle *handle) { helpers->release(handle); }

#else

// Use the handle of an object until end_use. 0: the object is closed.
static inline int begin_use(ccc_handle *handle)
{
    if (!is_open(handle))
        return 0;
    ++head_of(handle)->calls;
    return 1;
}

static inline void end_use(ccc_handle *handle)
{
    if (--head_of(handle)->calls == LEFT_USE) {
        head_of(handle)->calls = 0;
        Py_BEGIN_ALLOW_THREADS helpers->release(handle);
        Py_END_ALLOW_THREADS
    }
}

#endif

// Use two handles, or none. 0: one of the objects is closed.
static inline int begin_both_uses(ccc_handle *first, ccc_handle *second)
{
    if (!begin_use(first))
        return 0;
    if (begin_use(second))
        return 1;
    end_use(first);
    return 0;
}

static inline void end_both_uses(ccc_handle *first, ccc_handle *second)
{
    end_use(first);
    end_use(second);
}

static void end_uses(ccc_handle *const *handles, Py_ssize_t count)
{
    while (count > 0)
        end_use(handles[--count]);
}

// Use all handles, or none. 0: one of the objects is closed.
static int begin_uses(ccc_handle *const *handles, Py_ssize_t count)
{
    for (Py_ssize_t index = 0; index < count; ++index)
        if (!begin_use(handles[index])) {
            end_uses(handles, index);
            return 0;
        }
    return 1;
}

// Close the handle of an object, and tell in `closed` whether this call was the one that did. From the first step on,
// which needs the GIL, nobody can begin a use of the handle. Returns the number of cleanup failures that wait to be
// reported.
static int close_handle(ccc_handle *handle, int *closed)
{
    ccc_head *head = head_of(handle);
    uint32_t uses = atomic_load_explicit(&head->uses, memory_order_relaxed), left;
    int waiting;
    *closed = 0;
    do {
        if (!(uses & CCC_OPEN) || (head->flags & CCC_IMMORTAL))
            return helpers->cleanup_waiting();
        left = uses - (head->calls ? CCC_OPEN : CCC_FIRST_USE);
    } while (
        !atomic_compare_exchange_weak_explicit(&head->uses, &uses, left, memory_order_acq_rel, memory_order_relaxed));
    *closed = 1;
    if (head->calls)
        head->calls |= LEFT_USE;
    if (left)
        return helpers->cleanup_waiting();
    Py_BEGIN_ALLOW_THREADS waiting = helpers->end_unused(handle);
    Py_END_ALLOW_THREADS return waiting;
}

#endif
