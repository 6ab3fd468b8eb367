// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Tensor maps, for _calls.c: the driver writes them into bytes of Python, which kernels get.
#ifndef CCC_TENSOR_MAPS_H
#define CCC_TENSOR_MAPS_H

#include "python/ccc_packer.h"

static PyObject *map_ctype;

// The ordinal of a device and an address.
static int read_place(PyObject *device, PyObject *address, int *ordinal, uint64_t *place)
{
    long number = PyLong_AsLong(device);
    if (number == -1 && PyErr_Occurred())
        return -1;
    *ordinal = (int)number;
    *place = PyLong_AsUnsignedLongLong(address);
    return *place == (uint64_t)-1 && PyErr_Occurred() ? -1 : 0;
}

// The bytes, whose reference is taken, unless a status says that they have not been written: then that.
static PyObject *bytes_or_status(PyObject *bytes, int status)
{
    if (status == 0)
        return bytes;
    Py_DECREF(bytes);
    return PyLong_FromLong(status);
}

static PyObject *calls_encode_map(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    int device, status;
    uint64_t address;
    (void)module;
    if (check_count("encode_map", count, 3) || read_place(arguments[0], arguments[2], &device, &address))
        return NULL;
    const struct ccc_tensor_map *description = pointer_of(arguments[1], map_ctype);
    PyObject *bytes = description ? PyBytes_FromStringAndSize(NULL, CCC_MAP_BYTES) : NULL;
    if (bytes == NULL)
        return NULL;
    char *to = PyBytes_AsString(bytes);
    Py_BEGIN_ALLOW_THREADS status = helpers->tensor_map_encode(device, description, address, to);
    Py_END_ALLOW_THREADS return bytes_or_status(bytes, status);
}

static PyObject *calls_replace_map(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    int device, status;
    uint64_t address;
    (void)module;
    if (check_count("replace_map", count, 3) || read_place(arguments[0], arguments[2], &device, &address))
        return NULL;
    if (!PyBytes_Check(arguments[1]) || PyBytes_Size(arguments[1]) != CCC_MAP_BYTES) {
        PyErr_SetString(PyExc_TypeError, "expected the bytes of a tensor map");
        return NULL;
    }
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, CCC_MAP_BYTES);
    if (bytes == NULL)
        return NULL;
    char *to = PyBytes_AsString(bytes);
    const char *from = PyBytes_AsString(arguments[1]);
    Py_BEGIN_ALLOW_THREADS status = helpers->tensor_map_replace(device, from, address, to);
    Py_END_ALLOW_THREADS return bytes_or_status(bytes, status);
}

#endif
