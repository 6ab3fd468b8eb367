// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// DLPack's methods of buffers, for _calls.c.
#ifndef CCC_EXPORT_H
#define CCC_EXPORT_H

#include "python/ccc_capsule.h"
#include "python/ccc_native.h"

NATIVE(buffer_dlpack, "Exporter.__dlpack__", "($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)",
       NULL);
NATIVE_PLAIN(buffer_dlpack_device, "Exporter.__dlpack_device__", NULL);

// The names of attributes.
static PyObject *resource_name, *device_name;

enum { STREAM, MAX_VERSION, DL_DEVICE, COPY, KEYWORDS };
static PyObject *keywords[KEYWORDS];

// What DLPack calls the memory of a buffer, if its resource knows; else NULL, with no error set.
static PyObject *device_of(PyObject *buffer)
{
    PyObject *resource = PyObject_GetAttr(buffer, resource_name);
    PyObject *device = resource && resource != Py_None ? PyObject_GetAttr(resource, device_name) : NULL;
    Py_XDECREF(resource);
    if (device && !(PyTuple_CheckExact(device) && PyTuple_Size(device) == 2))
        Py_CLEAR(device);
    if (device == NULL)
        PyErr_Clear();
    return device;
}

// Sort keyword arguments; those that are not given are None. -1: there are others.
static int sort_keywords(PyObject *const *arguments, PyObject *names, PyObject **sorted)
{
    Py_ssize_t count = names ? PyTuple_Size(names) : 0;
    for (int which = 0; which < KEYWORDS; ++which)
        sorted[which] = Py_None;
    for (Py_ssize_t index = 0; index < count; ++index) {
        PyObject *name = PyTuple_GetItem(names, index);
        int which = 0;
        while (which < KEYWORDS && PyUnicode_Compare(name, keywords[which]))  // the names that NumPy gives are others
            ++which;
        if (which == KEYWORDS)
            return -1;
        sorted[which] = arguments[index];
    }
    return 0;
}

// Read an integer that is nothing more. -1, with no error set: it is not.
static int read_plain(PyObject *number, long long *value)
{
    if (!PyLong_CheckExact(number))
        return -1;
    *value = PyLong_AsLongLong(number);
    if (*value != -1 || !PyErr_Occurred())
        return 0;
    PyErr_Clear();
    return -1;
}

// Make the capsule for a buffer. Returns NULL with no error set if the arguments are not usual, Python has a part in
// it, or the work failed with *status.
static PyObject *export_usual(PyObject *self, PyObject *const *given, PyObject *device, int *status)
{
    long long major = 0, stream = 0, kind, ordinal;
    uint64_t tensor;
    ccc_handle *handle = HANDLE(self);
    PyObject *version = given[MAX_VERSION];
    if (read_plain(PyTuple_GetItem(device, 0), &kind) || read_plain(PyTuple_GetItem(device, 1), &ordinal) ||
        given[DL_DEVICE] != Py_None || (given[COPY] != Py_None && given[COPY] != Py_False) || kind == CCC_DL_CPU)
        return NULL;
    if (version != Py_None &&
        (!PyTuple_CheckExact(version) || PyTuple_Size(version) == 0 || read_plain(PyTuple_GetItem(version, 0), &major)))
        return NULL;
    if (given[STREAM] == Py_None)
        stream = kind == CCC_DL_CUDA_HOST ? 0 : CCC_DL_LEGACY_STREAM;
    else if (read_plain(given[STREAM], &stream) || stream < -1 || stream == 0)
        return NULL;
    const DLDevice place = {(int32_t)kind, (int32_t)ordinal};
    const uint64_t consumer = stream == -1 ? 0 : (uint64_t)stream;
    if (consumer == 0) {  // without a call of the driver
        tensor = helpers->tensor_for(handle, place, major >= 1, 0, status);
    } else {
        Py_BEGIN_ALLOW_THREADS tensor = helpers->tensor_for(handle, place, major >= 1, consumer, status);
        Py_END_ALLOW_THREADS
    }
    return tensor ? ccc_capsule_of(tensor, major >= 1) : NULL;
}

static PyObject *buffer_dlpack(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    PyObject *given[KEYWORDS], *capsule = NULL;
    int status = 0;
    int is_usual = handle_of(self, CCC_BUFFER) && count == 0 && sort_keywords(arguments, names, given) == 0;
    PyObject *device = is_usual ? device_of(self) : NULL;
    if (device) {
        capsule = export_usual(self, given, device, &status);
        Py_DECREF(device);
    }
    if (status)
        return call_failed(&native_buffer_dlpack, status, self, arguments, count, names);
    return capsule || PyErr_Occurred() ? capsule : call_body(&native_buffer_dlpack, self, arguments, count, names);
}

static PyObject *buffer_dlpack_device(PyObject *self, PyObject *unused)
{
    PyObject *device = device_of(self);
    (void)unused;
    return device ? device : call_body(&native_buffer_dlpack_device, self, NULL, 0, NULL);
}

#endif
