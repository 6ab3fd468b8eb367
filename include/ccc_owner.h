/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of ours as _calls.c has them. */
#ifndef CCC_OWNER_H
#define CCC_OWNER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "ccc_calls.h"
#include "ccc_gil.h"

typedef struct owner {
    PyObject_HEAD
    PyObject *cdata; /* the box as CFFI functions take it; NULL where construction was refused */
    ccc_box *box;    /* the same */
} owner;

/* Set when the module is imported, and never dropped: objects may go when it has. */
static const ccc_calls *helpers;
static PyTypeObject *owner_type;
#define CCC_GIL (helpers->gil)

/* A box is exchanged for another while threads use the object: without the GIL the pointer to it is read atomically. */
#define BOX(object) __atomic_load_n(&((owner *)(object))->box, __ATOMIC_ACQUIRE)

#ifndef Py_GIL_DISABLED
#undef Py_BEGIN_CRITICAL_SECTION
#undef Py_END_CRITICAL_SECTION
#define Py_BEGIN_CRITICAL_SECTION(object) {
#define Py_END_CRITICAL_SECTION() }
#endif

/* The box of an argument, if it is an object of ours of that kind; else NULL, with no error set. */
static ccc_box *box_of(PyObject *argument, ccc_kind kind)
{
    ccc_box *box = PyObject_TypeCheck(argument, owner_type) ? BOX(argument) : NULL;
    return box && helpers->kind(box) == kind ? box : NULL;
}

/* The cdata of an object of ours that has a box. A new reference. */
static PyObject *cdata_of(PyObject *object)
{
    PyObject *cdata;
    Py_BEGIN_CRITICAL_SECTION(object);
    cdata = Py_NewRef(((owner *)object)->cdata);
    Py_END_CRITICAL_SECTION();
    return cdata;
}

/* Raise an exception that a method in Python has made, whose reference is taken; NULL: another one was raised there. */
static PyObject *raise_made(PyObject *error)
{
    if (error)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    return NULL;
}

#endif
