/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DLPack's C exchange API, both ways. A type has it in __dlpack_c_exchange_api__; nothing in it orders streams, but it
 * tells the one that the producer works in.
 */
#ifndef CCC_EXCHANGE_H
#define CCC_EXCHANGE_H

#include "ccc_capsule_read.h"

/* The newest version of a type's API that we know; NULL with a Python error set. */
static const DLPackExchangeAPI *ccc_known_api(PyObject *capsule)
{
    const DLPackExchangeAPIHeader *header = PyCapsule_GetPointer(capsule, CCC_DLPACK_EXCHANGE_NAME);
    if (header == NULL)
        return NULL;
    while (header && header->version.major > CCC_DLPACK_MAJOR)
        header = header->prev_api;
    if (header == NULL || header->version.major != CCC_DLPACK_MAJOR) {
        PyErr_SetString(PyExc_BufferError, "the producer's C exchange API is of another major version than 1");
        return NULL;
    }
    return (const DLPackExchangeAPI *)header;
}

/* What owns the tensor of an object whose type has this API. */
static PyObject *ccc_exchanged(PyObject *capsule, PyObject *object)
{
    DLManagedTensorVersioned *tensor = NULL;
    const DLPackExchangeAPI *api = ccc_known_api(capsule);
    if (api == NULL || api->managed_tensor_from_py_object_no_sync(object, &tensor))
        return NULL;
    return ccc_own((ccc_imported){tensor, 1}, NULL, 0);
}

static PyObject *ccc_take_exchanged(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    return ccc_two_arguments("take_exchanged", count) ? ccc_exchanged(arguments[0], arguments[1]) : NULL;
}

/* The stream that a producer works in, where it gave this tensor: a handle, or None for memory of the host. */
static PyObject *ccc_work_stream(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    const DLPackExchangeAPI *api;
    const ccc_uses *uses;
    void *handle = NULL;
    (void)module;
    if (!ccc_two_arguments("work_stream", count) || (api = ccc_known_api(arguments[0])) == NULL ||
        (uses = ccc_uses_of(arguments[1])) == NULL)
        return NULL;
    DLDevice device = ccc_tensor_in(uses->tensor)->device;
    if (device.device_type == CCC_DL_CPU)
        return Py_NewRef(Py_None);
    return api->current_work_stream(device.device_type, device.device_id, &handle)
               ? NULL
               : PyLong_FromUnsignedLongLong((uintptr_t)handle);
}

/* What makes an object of our type from a description; set once, and never dropped. */
static PyObject *ccc_exchange_make;

static int ccc_exchange_allocate(DLTensor *prototype, DLManagedTensorVersioned **out, void *error_context,
                                 void (*set_error)(void *error_context, const char *kind, const char *message))
{
    (void)prototype;
    *out = NULL;
    set_error(error_context, "BufferError", "a StridedMemoryView shows memory of others: none can be allocated for it");
    return -1;
}

static int ccc_exchange_give(void *object, DLManagedTensorVersioned **out)
{
    PyObject *address = PyObject_CallMethod(object, "_give_tensor", NULL);
    if (address == NULL)
        return -1;
    *out = (void *)(uintptr_t)PyLong_AsUnsignedLongLong(address);
    Py_DECREF(address);
    return PyErr_Occurred() ? -1 : 0;
}

static int ccc_exchange_take(DLManagedTensorVersioned *tensor, void **out)
{
    PyObject *owner = ccc_own((ccc_imported){tensor, 1}, NULL, 0);
    *out = owner ? PyObject_CallFunctionObjArgs(ccc_exchange_make, owner, NULL) : NULL;
    Py_XDECREF(owner);
    return *out ? 0 : -1;
}

/* We have no current stream: the legacy default stream is ordered after what a view that is given away waits for. */
static int ccc_exchange_stream(int device_type, int32_t device_id, void **out)
{
    (void)device_type;
    (void)device_id;
    *out = NULL;
    return 0;
}

static DLPackExchangeAPI ccc_exchange = {
    {{CCC_DLPACK_MAJOR, CCC_DLPACK_EXCHANGE_MINOR}, NULL},
    ccc_exchange_allocate,
    ccc_exchange_give,
    ccc_exchange_take,
    NULL,
    ccc_exchange_stream,
};

static PyObject *ccc_exchange_api(PyObject *module, PyObject *make)
{
    (void)module;
    Py_XDECREF(ccc_exchange_make);
    ccc_exchange_make = Py_NewRef(make);
    return PyCapsule_New(&ccc_exchange, CCC_DLPACK_EXCHANGE_NAME, NULL);
}

#endif
