/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NumPy arrays, of any dtype, through the array interface in C's form. It says what __array_interface__ does, of which
 * NumPy makes a dictionary each time.
 */
#ifndef CCC_ARRAY_H
#define CCC_ARRAY_H

#include <string.h>

#include "ccc_capsule_read.h"

#define CCC_ARRAY_C_ORDER 0x1
#define CCC_ARRAY_WRITABLE 0x400
#define CCC_PLAIN_KINDS "biufcSUmM" /* the others hold Python objects, or fields, or are somebody's own */

/* What is in the capsule __array_struct__: https://numpy.org/doc/stable/reference/arrays.interface.html */
typedef struct ccc_array_struct {
    int two;
    int ndim;
    char kind;
    int itemsize;
    int flags;
    Py_ssize_t *shape;
    Py_ssize_t *strides; /* in bytes */
    void *data;
    PyObject *description;
} ccc_array_struct;

/* Return the strides in elements; None for C order. NULL, perhaps with a Python error set, if they are none. */
static PyObject *ccc_array_strides(const ccc_array_struct *array)
{
    int64_t strides[CCC_MAX_DIMENSIONS];
    if (array->flags & CCC_ARRAY_C_ORDER)
        return Py_NewRef(Py_None);
    for (int i = 0; i < array->ndim; ++i) {
        if (array->strides[i] % array->itemsize)
            return NULL;
        strides[i] = array->strides[i] / array->itemsize;
    }
    return ccc_tuple_of(strides, array->ndim);
}

/* Return the tuple for an array, its dtype as it is; NULL, perhaps with a Python error set, if it is not plain. */
static PyObject *ccc_describe_struct(const ccc_array_struct *array, PyObject *object)
{
    int64_t shape[CCC_MAX_DIMENSIONS];
    if (array->two != 2 || array->ndim < 0 || array->ndim > CCC_MAX_DIMENSIONS || array->itemsize <= 0 ||
        memchr(CCC_PLAIN_KINDS, array->kind, sizeof CCC_PLAIN_KINDS - 1) == NULL)
        return NULL;
    for (int i = 0; i < array->ndim; ++i)
        shape[i] = array->shape[i];
    PyObject *strides = ccc_array_strides(array);
    if (strides == NULL)
        return NULL;
    return ccc_filled((PyObject *[CCC_FIELDS]){
        PyLong_FromVoidPtr(array->data),
        ccc_tuple_of(shape, array->ndim),
        strides,
        PyLong_FromLong(-1),
        PyBool_FromLong(0),
        PyBool_FromLong(!(array->flags & CCC_ARRAY_WRITABLE)),
        PyLong_FromLong(CCC_DL_CPU),
        PyObject_GetAttrString(object, "dtype"),
        PyTuple_New(0),
    });
}

static PyObject *ccc_describe_array(PyObject *module, PyObject *object)
{
    PyObject *capsule = PyObject_GetAttrString(object, "__array_struct__");
    const ccc_array_struct *array = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
    PyObject *info = array ? ccc_describe_struct(array, object) : NULL;
    (void)module;
    Py_XDECREF(capsule);
    if (info)
        return info;
    PyErr_Clear(); /* __array_interface__ tells what is wrong */
    Py_RETURN_NONE;
}

#endif
