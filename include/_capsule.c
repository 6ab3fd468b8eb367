/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays travel in PyCapsules, which CFFI cannot make or read. This module does, and nothing else but
 * to wake Python up when a tensor is gone.
 *
 *     new(address, versioned)   a capsule around a managed tensor, whose deleter runs if nobody consumes it
 *     read(capsule)             (address, versioned) of one that has not been consumed
 *     consume(capsule)          the same, and mark it as consumed: its tensor is now the caller's to delete
 *     take(capsule)             consume, and describe: see ccc_capsule_read.h
 *     take_exchanged(api, obj)  describe an object whose type has DLPack's C exchange API, and tell its stream
 *     exchange_api(make)        that API for a type of ours
 *     waker(function)           the address of a C function, for any thread, that has Python call this one soon
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdatomic.h>

#include "ccc_capsule_read.h"
#include "ccc_exchange.h"

static const char *const NAMES[] = {"dltensor", "dltensor_versioned"};
static const char *const USED_NAMES[] = {"used_dltensor", "used_dltensor_versioned"};

static void delete_unconsumed(PyObject *capsule)
{
    for (int versioned = 0; versioned < 2; ++versioned)
        if (PyCapsule_IsValid(capsule, NAMES[versioned])) {
            ccc_imported_delete((ccc_imported){PyCapsule_GetPointer(capsule, NAMES[versioned]), versioned});
            return;
        }
}

static PyObject *capsule_new(PyObject *module, PyObject *args)
{
    unsigned long long address;
    int versioned;
    (void)module;
    if (!PyArg_ParseTuple(args, "Kp:new", &address, &versioned))
        return NULL;
    return PyCapsule_New((void *)(uintptr_t)address, NAMES[versioned], delete_unconsumed);
}

/* The tensor in a capsule; NULL with a Python error set. */
static ccc_imported tensor_of(PyObject *capsule, int consume)
{
    /* without the GIL two threads must not both find the name unused */
    static atomic_flag lock = ATOMIC_FLAG_INIT;
    ccc_imported tensor = {NULL, 0};
    int found = 0;
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
        ;
    for (; tensor.versioned < 2; ++tensor.versioned)
        if ((found = PyCapsule_IsValid(capsule, NAMES[tensor.versioned])))
            break;
    if (found) {
        tensor.address = PyCapsule_GetPointer(capsule, NAMES[tensor.versioned]);
        if (consume && PyCapsule_SetName(capsule, USED_NAMES[tensor.versioned]))
            tensor.address = NULL;
    }
    atomic_flag_clear_explicit(&lock, memory_order_release);
    if (found)
        return tensor;
    if (PyCapsule_IsValid(capsule, USED_NAMES[0]) || PyCapsule_IsValid(capsule, USED_NAMES[1]))
        PyErr_SetString(PyExc_ValueError, "this DLPack capsule has already been consumed");
    else
        PyErr_SetString(PyExc_TypeError, "expected a DLPack capsule");
    return tensor;
}

static PyObject *address_and_kind(ccc_imported tensor)
{
    if (tensor.address == NULL)
        return NULL;
    return Py_BuildValue("KN", (unsigned long long)(uintptr_t)tensor.address, PyBool_FromLong(tensor.versioned));
}

static PyObject *capsule_read(PyObject *module, PyObject *capsule)
{
    (void)module;
    return address_and_kind(tensor_of(capsule, 0));
}

static PyObject *capsule_consume(PyObject *module, PyObject *capsule)
{
    (void)module;
    return address_and_kind(tensor_of(capsule, 1));
}

static PyObject *capsule_take(PyObject *module, PyObject *capsule)
{
    ccc_imported tensor = tensor_of(capsule, 1);
    (void)module;
    return tensor.address ? ccc_describe_tensor(tensor, Py_NewRef(Py_None)) : NULL;
}

static PyObject *woken; /* set once, and never dropped */

#ifndef PYPY_VERSION
static int run_woken(void *unused)
{
    PyObject *result = PyObject_CallNoArgs(woken);
    (void)unused;
    if (result == NULL)
        PyErr_WriteUnraisable(woken); /* it would come up in code that has nothing to do with it */
    Py_XDECREF(result);
    return 0;
}

static void wake(void)
{
    Py_AddPendingCall(run_woken, NULL); /* if too many wait already, one of them will do */
}
#define WAKE ((uintptr_t)wake)
#else
#define WAKE ((uintptr_t)0) /* PyPy does not promise that such a call needs no GIL */
#endif

static PyObject *capsule_waker(PyObject *module, PyObject *function)
{
    (void)module;
    Py_XDECREF(woken);
    woken = Py_NewRef(function);
    return PyLong_FromUnsignedLongLong(WAKE);
}

static PyMethodDef methods[] = {
    {"new", capsule_new, METH_VARARGS, "new(address, versioned)\n--\n\nReturn a capsule around a managed tensor."},
    {"read", capsule_read, METH_O, "read(capsule)\n--\n\nReturn (address, versioned) of the tensor in a capsule."},
    {"consume", capsule_consume, METH_O, "consume(capsule)\n--\n\nTake the tensor out of a capsule."},
    {"take", capsule_take, METH_O, "take(capsule)\n--\n\nConsume a capsule and describe its tensor."},
    {"take_exchanged", (PyCFunction)(void (*)(void))ccc_take_exchanged, METH_FASTCALL,
     "take_exchanged(api, obj)\n--\n\nDescribe an object through DLPack's C exchange API."},
    {"exchange_api", ccc_exchange_api, METH_O, "exchange_api(make)\n--\n\nReturn the C exchange API of a type."},
    {"waker", capsule_waker, METH_O, "waker(function)\n--\n\nReturn a C function that has Python call this one soon."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_capsule", "Makes and reads capsules of arrays.", 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__capsule(void)
{
    return PyModuleDef_Init(&definition);
}
