/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DLPack travels in PyCapsules, which CFFI cannot make or read. This module does, and nothing else.
 *
 *     new(address, versioned)   a capsule around a managed tensor, whose deleter runs if nobody consumes it
 *     read(capsule)             (address, versioned) of one that has not been consumed
 *     consume(capsule)          the same, and mark it as consumed: its tensor is now the caller's to delete
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "ccc_dlpack.h"

static const char *const NAMES[] = {"dltensor", "dltensor_versioned"};
static const char *const USED_NAMES[] = {"used_dltensor", "used_dltensor_versioned"};

static void delete_unconsumed(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, NAMES[0])) {
        DLManagedTensor *tensor = PyCapsule_GetPointer(capsule, NAMES[0]);
        if (tensor->deleter)
            tensor->deleter(tensor);
    } else if (PyCapsule_IsValid(capsule, NAMES[1])) {
        DLManagedTensorVersioned *tensor = PyCapsule_GetPointer(capsule, NAMES[1]);
        if (tensor->deleter)
            tensor->deleter(tensor);
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

/* The tensor in a capsule, and which kind it is in *versioned; NULL with a Python error set. */
static void *tensor_of(PyObject *capsule, int *versioned)
{
    for (*versioned = 0; *versioned < 2; ++*versioned)
        if (PyCapsule_IsValid(capsule, NAMES[*versioned]))
            return PyCapsule_GetPointer(capsule, NAMES[*versioned]);
    if (PyCapsule_IsValid(capsule, USED_NAMES[0]) || PyCapsule_IsValid(capsule, USED_NAMES[1]))
        PyErr_SetString(PyExc_ValueError, "this DLPack capsule has already been consumed");
    else
        PyErr_SetString(PyExc_TypeError, "expected a DLPack capsule");
    return NULL;
}

static PyObject *capsule_read(PyObject *module, PyObject *capsule)
{
    int versioned;
    void *tensor = tensor_of(capsule, &versioned);
    (void)module;
    return tensor ? Py_BuildValue("KN", (unsigned long long)(uintptr_t)tensor, PyBool_FromLong(versioned)) : NULL;
}

static PyObject *capsule_consume(PyObject *module, PyObject *capsule)
{
    int versioned;
    void *tensor = tensor_of(capsule, &versioned);
    (void)module;
    if (tensor == NULL || PyCapsule_SetName(capsule, USED_NAMES[versioned]))
        return NULL;
    return Py_BuildValue("KN", (unsigned long long)(uintptr_t)tensor, PyBool_FromLong(versioned));
}

static PyMethodDef methods[] = {
    {"new", capsule_new, METH_VARARGS, "new(address, versioned)\n--\n\nReturn a capsule around a managed tensor."},
    {"read", capsule_read, METH_O, "read(capsule)\n--\n\nReturn (address, versioned) of the tensor in a capsule."},
    {"consume", capsule_consume, METH_O, "consume(capsule)\n--\n\nTake the tensor out of a capsule."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_capsule", "Makes and reads DLPack capsules.", 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__capsule(void)
{
    return PyModuleDef_Init(&definition);
}
