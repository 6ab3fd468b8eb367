// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Releasing the GIL in functions that other libraries call with it or without it.
//
// The deleter of a tensor may be the one that frees memory, for which the driver may wait for the device. The device
// may wait for a host callback, and that for the GIL: a thread that frees memory must not hold it. DLPack does not say
// whether the caller of a deleter holds the GIL. NumPy does; C++ threads do not. So the deleter has to find out whether
// this thread has an attached thread state.
//
// CPython: the thread state that _PyThreadState_UncheckedGet returns (PyThreadState_GetUnchecked from 3.13 on) is this
// thread's from 3.12 on. In 3.11 it is the state that holds the GIL, whichever thread that is. Neither function is part
// of the limited API, so they are looked up at run time. PyGILState_Check is no substitute: it returns 1 in every
// thread once a second interpreter was made. PyPy's PyGILState_Check is exact.
#ifndef CCC_DETACH_H
#define CCC_DETACH_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dlfcn.h>

#include "python/ccc_gil.h"

static ccc_gil *ccc_gil_shared;  // that of the CFFI module, which sets it when it is imported

#ifdef PYPY_VERSION

static int ccc_is_attached(void) { return PyGILState_Check(); }

#else

static PyThreadState *(*ccc_current_state)(void);  // NULL: this CPython has neither function
static int ccc_state_is_ours;                      // what it returns is this thread's state

// Look the function up. Called when the module is imported.
static void ccc_find_current_state(void)
{
    *(void **)&ccc_current_state = dlsym(RTLD_DEFAULT, "PyThreadState_GetUnchecked");
    if (ccc_current_state == NULL)
        *(void **)&ccc_current_state = dlsym(RTLD_DEFAULT, "_PyThreadState_UncheckedGet");
    ccc_state_is_ours = Py_Version >= 0x030C0000;
}

static int ccc_is_attached(void)
{
    PyThreadState *state = ccc_current_state ? ccc_current_state() : NULL;
    return state && (ccc_state_is_ours || state == PyGILState_GetThisThreadState());
}

#endif

// An exception put aside while a cleanup function of another library runs. Such functions may run Python code, which
// fails if it starts with an exception set, and they may leave an exception set themselves.
typedef struct ccc_raised {
    int attached;
    PyObject *type, *value, *traceback;
} ccc_raised;

// Put an exception aside, if one is set. `attached` says whether this thread holds the GIL.
static ccc_raised ccc_unraise(int attached)
{
    ccc_raised raised = {.attached = attached};
    if (attached && PyErr_Occurred())
        PyErr_Fetch(&raised.type, &raised.value, &raised.traceback);
    return raised;
}

// Set it again. An exception that was raised meanwhile is reported as unraisable.
static void ccc_raise_again(ccc_raised raised)
{
    if (!raised.attached)
        return;
    if (PyErr_Occurred())
        PyErr_WriteUnraisable(NULL);
    if (raised.type)
        PyErr_Restore(raised.type, raised.value, raised.traceback);
}

// Release the GIL if this thread holds it. Returns what ccc_attach needs; NULL: it does not hold the GIL.
static void *ccc_detach(void)
{
    if (!ccc_is_attached())
        return NULL;
    PyThreadState *state = PyEval_SaveThread();
    ccc_gil_given_up(ccc_gil_shared);
    return state;
}

// Take the GIL again if ccc_detach released it.
static void ccc_attach(void *state)
{
    if (state == NULL)
        return;
#if defined(PYPY_VERSION) || defined(Py_GIL_DISABLED)
    PyEval_RestoreThread(state);
#else
    ccc_gil_acquire(ccc_gil_shared, state);
#endif
}

#endif
