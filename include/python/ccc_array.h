// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The array interface in C's form, __array_struct__: of NumPy arrays, of any dtype, where __array_interface__ would
// take a dictionary each time; and for NumPy, of bytes, in a capsule that keeps the memory.
#ifndef CCC_ARRAY_H
#define CCC_ARRAY_H

#include <string.h>

#include "python/ccc_capsule_read.h"

#define CCC_ARRAY_C_ORDER 0x1
#define CCC_ARRAY_F_ORDER 0x2
#define CCC_ARRAY_ALIGNED 0x100
#define CCC_ARRAY_NATIVE 0x200
#define CCC_ARRAY_WRITABLE 0x400
#define CCC_ARRAY_BYTES \
    (CCC_ARRAY_C_ORDER | CCC_ARRAY_F_ORDER | CCC_ARRAY_ALIGNED | CCC_ARRAY_NATIVE | CCC_ARRAY_WRITABLE)
#define CCC_PLAIN_KINDS "biufcSUmM"  // the others hold Python objects, or fields, or are somebody's own

// What is in the capsule __array_struct__: https://numpy.org/doc/stable/reference/arrays.interface.html
typedef struct ccc_array_struct {
    int two;
    int ndim;
    char kind;
    int itemsize;
    int flags;
    Py_ssize_t *shape;
    Py_ssize_t *strides;  // in bytes
    void *data;
    PyObject *description;
} ccc_array_struct;

// Return the strides in elements; None for C order. NULL, perhaps with a Python error set, if they are none.
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

// Return the tuple for an array, its dtype as it is; NULL, perhaps with a Python error set, if it is not plain.
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
    PyErr_Clear();  // __array_interface__ tells what is wrong
    Py_RETURN_NONE;
}

// Bytes, and the tensor that keeps their memory.
typedef struct ccc_bytes {
    ccc_array_struct array;
    Py_ssize_t size, stride;
    ccc_imported tensor;
} ccc_bytes;

static void ccc_end_bytes(PyObject *capsule)
{
    ccc_bytes *bytes = PyCapsule_GetPointer(capsule, NULL);
    if (bytes->tensor.address)
        ccc_delete_imported(bytes->tensor, 0);
    free(bytes);
}

// Make the capsule __array_struct__ for a tensor of bytes, which it takes out of a DLPack capsule.
static PyObject *ccc_new_struct(PyObject *module, PyObject *given)
{
    (void)module;
    ccc_bytes *bytes = calloc(1, sizeof *bytes);
    if (bytes == NULL)
        return PyErr_NoMemory();
    PyObject *capsule = PyCapsule_New(bytes, NULL, ccc_end_bytes);
    if (capsule == NULL) {
        free(bytes);
        return NULL;
    }
    bytes->tensor = ccc_in_capsule(given, 1);
    if (bytes->tensor.address == NULL) {
        Py_DECREF(capsule);
        return NULL;
    }
    const DLTensor *tensor = ccc_tensor_in(bytes->tensor);
    bytes->size = (Py_ssize_t)tensor->shape[0];
    bytes->stride = 1;
    bytes->array = (ccc_array_struct){.two = 2,
                                      .ndim = 1,
                                      .kind = 'u',
                                      .itemsize = 1,
                                      .flags = CCC_ARRAY_BYTES,
                                      .shape = &bytes->size,
                                      .strides = &bytes->stride,
                                      .data = tensor->data};
    return capsule;
}

#endif
