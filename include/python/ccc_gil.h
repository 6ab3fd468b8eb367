// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Giving up the GIL for a call of the driver, and getting it back.
//
// Where several threads call the driver, one that comes back finds the GIL taken, and goes to sleep. To be woken up
// takes it longer than the call did, and whoever wakes it up pays for that, too. But who has the GIL is mostly such a
// thread itself, which needs it for less than a microsecond. So one that comes back looks for a while, awake, whether
// it is given up. With that, eight threads launch six times as often. Only these threads tell one another. Others take
// the GIL and leave it as ever, and then what is believed here is wrong, which costs time and nothing else: it is
// always Python that hands the GIL out.
//
// This is for what CFFI generates, too, so the names of Python's macros are kept. CCC_GIL is the address of the one
// ccc_gil, where they are used.
#ifndef CCC_GIL_H
#define CCC_GIL_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdatomic.h>
#include <time.h>

#define CCC_LEAST_LOOKS 16
#define CCC_MOST_LOOKS 1024  // about 40 microseconds
#define CCC_NAP 20000        // nanoseconds
#define CCC_MOST_NAPS 500    // 10 ms: twice the time after which Python has the GIL given up, by default

typedef struct ccc_gil {
    atomic_int given_up;  // by one of these threads, and none of them has come back for it since
    atomic_int asleep;    // one of them waits in Python, which asks for the GIL on behalf of all
    atomic_int several;   // there are several such threads, as far as is known
    atomic_int looks;     // after which one goes to sleep: fewer after each time in vain
} ccc_gil;

#define CCC_GIL_NEW {.looks = CCC_MOST_LOOKS}

// The GIL was given up without the macros.
static inline void ccc_gil_given_up(ccc_gil *gil)
{
    if (!atomic_load_explicit(&gil->asleep, memory_order_relaxed))
        atomic_store_explicit(&gil->given_up, 1, memory_order_release);
}

// In the child of fork() only one thread is there.
static inline void ccc_gil_forget(ccc_gil *gil)
{
    atomic_store(&gil->asleep, 0);
    atomic_store(&gil->several, 0);
}

#if !defined(PYPY_VERSION) && !defined(Py_GIL_DISABLED)

static inline void ccc_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

static inline int ccc_gil_found(ccc_gil *gil)
{
    return atomic_load_explicit(&gil->given_up, memory_order_relaxed) && atomic_exchange(&gil->given_up, 0);
}

// Wait until one of these threads gives it up, or until the caller is to wait in Python. One does that at a time, and
// is let through by the next that gives it up: if several slept there, each time one would be woken up in vain.
static int ccc_gil_look(ccc_gil *gil)
{
    const struct timespec nap = {0, CCC_NAP};
    int looks = atomic_load_explicit(&gil->looks, memory_order_relaxed);
    atomic_store_explicit(&gil->several, 1, memory_order_relaxed);
    for (int look = 0; look < looks; look++) {
        if (ccc_gil_found(gil)) {
            atomic_store_explicit(&gil->looks, CCC_MOST_LOOKS, memory_order_relaxed);
            return 0;
        }
        ccc_pause();
    }
    atomic_store_explicit(&gil->looks, looks > CCC_LEAST_LOOKS ? looks - looks / 4 : looks, memory_order_relaxed);
    for (int naps = 0; naps < CCC_MOST_NAPS; naps++) {
        if (!atomic_exchange(&gil->asleep, 1))
            return 1;
        nanosleep(&nap, NULL);
        if (ccc_gil_found(gil))
            return 0;
    }
    atomic_store(&gil->asleep, 0);  // it may have ended there, as daemon threads do at exit
    return 0;
}

static inline PyThreadState *ccc_gil_give_up(ccc_gil *gil)
{
    PyThreadState *state = PyEval_SaveThread();
    ccc_gil_given_up(gil);
    return state;
}

static inline void ccc_gil_acquire(ccc_gil *gil, PyThreadState *state)
{
    int asleep = 0;
    if (!atomic_load_explicit(&gil->several, memory_order_relaxed) &&
        atomic_load_explicit(&gil->given_up, memory_order_relaxed))
        atomic_store_explicit(&gil->given_up, 0, memory_order_relaxed);  // what is atomic takes longer
    else if (!ccc_gil_found(gil))
        asleep = ccc_gil_look(gil);
    PyEval_RestoreThread(state);
    if (asleep)
        atomic_store(&gil->asleep, 0);
}

// Whether the code between the two macros keeps the GIL nevertheless: see ccc_generated_calls.h.
#define CCC_KEEPS_GIL 0

#undef Py_BEGIN_ALLOW_THREADS
#undef Py_END_ALLOW_THREADS
#define Py_BEGIN_ALLOW_THREADS \
    { \
        PyThreadState *ccc_state = CCC_KEEPS_GIL ? NULL : ccc_gil_give_up(CCC_GIL);
#define Py_END_ALLOW_THREADS \
    if (!CCC_KEEPS_GIL) \
        ccc_gil_acquire(CCC_GIL, ccc_state); \
    }

#endif

#endif
