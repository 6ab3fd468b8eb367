/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of ours as _calls.c has them. */
#ifndef CCC_OWNER_H
#define CCC_OWNER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stddef.h>

#include <structmember.h>

#include "python/ccc_calls.h"
#include "python/ccc_gil.h"

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

/* Set when the module is imported, and never dropped. */
static PyObject *check_cleanup;

/* Show failures of cleanup as warnings of the code `stacklevel` calls up. What is raised then is left to the caller. */
static int report(int waiting, int stacklevel)
{
    PyObject *result = PyObject_CallFunction(check_cleanup, "ii", waiting, stacklevel);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

/* Let go of the box of an object that goes. */
static void drop_box(PyObject *self)
{
    ccc_box *box = ((owner *)self)->box;
    int waiting = 0;
    if (box && helpers->is_open(box)) {
        Py_BEGIN_ALLOW_THREADS
        waiting = helpers->drop(box);
        Py_END_ALLOW_THREADS
    } else if (box) {
        waiting = helpers->drop(box); /* which only frees */
    }
    Py_XDECREF(((owner *)self)->cdata);
    if (waiting) {
        PyObject *raised, *value, *traceback;
        PyErr_Fetch(&raised, &value, &traceback);
        if (report(waiting, 2))
            PyErr_WriteUnraisable(check_cleanup);
        PyErr_Restore(raised, value, traceback);
    }
}

static void owner_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    drop_box(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyMemberDef owner_members[] = {
    {"_box", T_OBJECT_EX, offsetof(owner, cdata), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot owner_slots[] = {
    {Py_tp_dealloc, owner_dealloc},
    {Py_tp_members, owner_members},
    {Py_tp_doc, "Has a box, and drops it when it goes."},
    {0, NULL},
};

static PyType_Spec owner_spec = {
    "cuda_core_cffi._calls.Owner", sizeof(owner), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, owner_slots,
};

/* An object of a class for a box that a helper made; False where it made none. */
static PyObject *own_box(PyObject *type, ccc_box *box)
{
    if (box == NULL)
        Py_RETURN_FALSE;
    PyObject *cdata = from_pointer((char *)box, box_ctype);
    PyObject *self = cdata ? PyType_GenericAlloc((PyTypeObject *)type, 0) : NULL;
    if (self) {
        ((owner *)self)->cdata = cdata;
        ((owner *)self)->box = box;
    } else {
        Py_XDECREF(cdata);
        Py_BEGIN_ALLOW_THREADS
        helpers->drop(box);
        Py_END_ALLOW_THREADS
    }
    return self;
}

/* The box of an object of ours; NULL with an error set where there is none. */
static ccc_box *box_or_error(PyObject *argument)
{
    ccc_box *box = PyObject_TypeCheck(argument, owner_type) ? BOX(argument) : NULL;
    if (box == NULL)
        PyErr_SetString(PyExc_AttributeError, "_box");
    return box;
}

static int check_count(const char *name, Py_ssize_t count, Py_ssize_t wanted)
{
    if (count == wanted)
        return 0;
    PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, not %zd", name, wanted, count);
    return -1;
}

static int check_class(PyObject *type)
{
    if (PyType_Check(type) && PyType_IsSubtype((PyTypeObject *)type, owner_type))
        return 0;
    PyErr_SetString(PyExc_TypeError, "expected a subclass of Owner");
    return -1;
}

#endif
