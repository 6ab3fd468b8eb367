/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of ours as _calls.c has them. */
#ifndef CCC_OWNER_H
#define CCC_OWNER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "python/ccc_calls.h"
#include "handles/ccc_gil.h"

typedef struct owner {
    PyObject_HEAD
    PyObject *cdata; /* the box as CFFI functions take it; NULL where nobody has asked for it */
    ccc_box *box;    /* the same; NULL where construction was refused */
} owner;

/* Set when the module is imported, and never dropped: objects may go when it has. */
static const ccc_calls *helpers;
static PyTypeObject *owner_type;
#define CCC_GIL (helpers->gil)

static PyObject *box_ctype;

/* CFFI's own, as the module that it made has them. */
static PyObject *(*from_pointer)(char *pointer, PyObject *ctype);
static char *(*to_pointer)(PyObject *cdata, PyObject *ctype);

/* A box is exchanged for another while threads use the object: without the GIL the pointer to it is read atomically. */
#define BOX(object) __atomic_load_n(&((owner *)(object))->box, __ATOMIC_ACQUIRE)

#ifndef Py_GIL_DISABLED
#undef Py_BEGIN_CRITICAL_SECTION
#undef Py_END_CRITICAL_SECTION
#define Py_BEGIN_CRITICAL_SECTION(object) {
#define Py_END_CRITICAL_SECTION() }
#endif

/* The box of an object of ours, if it is of that kind; else NULL, with no error set. */
static ccc_box *box_of_owner(PyObject *object, ccc_kind kind)
{
    ccc_box *box = BOX(object);
    return box && helpers->kind(box) == kind ? box : NULL;
}

/* The same of an argument. */
static ccc_box *box_of(PyObject *argument, ccc_kind kind)
{
    return PyObject_TypeCheck(argument, owner_type) ? box_of_owner(argument, kind) : NULL;
}

/* The cdata of an object of ours, made for the first who asks. A new reference; NULL: it failed, or there is no box. */
static PyObject *cdata_of(PyObject *object)
{
    owner *self = (owner *)object;
    PyObject *cdata, *made = NULL;
    ccc_box *box = BOX(self);
    if (box && __atomic_load_n(&self->cdata, __ATOMIC_ACQUIRE) == NULL) {
        made = from_pointer((char *)box, box_ctype);
        if (made == NULL)
            return NULL;
    }
    Py_BEGIN_CRITICAL_SECTION(object);
    if (self->cdata == NULL) { /* else another thread has been here, perhaps to exchange the box */
        self->cdata = made;
        made = NULL;
    }
    cdata = Py_XNewRef(self->cdata);
    Py_END_CRITICAL_SECTION();
    Py_XDECREF(made);
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
