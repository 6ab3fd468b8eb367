// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// DLPack's C exchange API, both ways. A type has it in __dlpack_c_exchange_api__; nothing in it orders streams, but it
// tells the one that the producer works in.
#ifndef CCC_EXCHANGE_H
#define CCC_EXCHANGE_H

#include "python/ccc_capsule_read.h"

#define CCC_MAX_APIS 64  // older versions that are looked at

// The newest version of a type's API that we know; NULL with a Python error set.
static const DLPackExchangeAPI *ccc_known_api(PyObject *capsule)
{
    const DLPackExchangeAPIHeader *header = PyCapsule_GetPointer(capsule, CCC_DLPACK_EXCHANGE_NAME);
    if (header == NULL)
        return NULL;
    for (int i = 0; i < CCC_MAX_APIS && header && header->version.major > CCC_DLPACK_MAJOR; ++i)
        header = header->prev_api;
    if (header == NULL || header->version.major != CCC_DLPACK_MAJOR) {
        PyErr_SetString(PyExc_BufferError, "the producer's C exchange API is of another major version than 1");
        return NULL;
    }
    return (const DLPackExchangeAPI *)header;
}

// What owns the tensor of an object whose type has this API.
static PyObject *ccc_exchanged(PyObject *capsule, PyObject *object)
{
    DLManagedTensorVersioned *tensor = NULL;
    const DLPackExchangeAPI *api = ccc_known_api(capsule);
    if (api == NULL)
        return NULL;
    int failed = api->managed_tensor_from_py_object_no_sync == NULL ||
                 api->managed_tensor_from_py_object_no_sync(object, &tensor);
    if (!failed && tensor) {
        PyErr_Clear();  // it succeeded
        return ccc_own((ccc_imported){tensor, 1}, NULL, 0);
    }
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_BufferError, "the producer's C exchange API gave no tensor");
    return NULL;
}

static PyObject *ccc_import_exchanged(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    return check_count("import_exchanged", count, 2) ? NULL : ccc_exchanged(arguments[0], arguments[1]);
}

// The stream that a producer works in, where it gave this tensor: a handle, or None for memory of the host.
static PyObject *ccc_work_stream(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    const DLPackExchangeAPI *api;
    const ccc_uses *uses;
    void *value = NULL;
    if (check_count("work_stream", count, 2) || (api = ccc_known_api(arguments[0])) == NULL ||
        (uses = ccc_uses_of(arguments[1])) == NULL)
        return NULL;
    DLDevice device = ccc_tensor_in(uses->tensor)->device;
    if (device.device_type == CCC_DL_CPU)
        return Py_NewRef(Py_None);
    if (api->current_work_stream == NULL || api->current_work_stream(device.device_type, device.device_id, &value)) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_BufferError, "the producer's C exchange API gave no stream");
        return NULL;
    }
    return PyLong_FromUnsignedLongLong((uintptr_t)value);
}

// What makes an object of our type from a description, and the capsule of the API; set once, and never released.
static PyObject *ccc_exchange_make, *ccc_exchange_capsule;

// The functions of our API. Whatever they are given, they return -1 with a Python error set if they cannot do it;
// without the error in a thread that does not hold the GIL, in which only the allocator and the stream may be asked
// for.
static int ccc_exchange_refuse(PyObject *kind, const char *message)
{
    if (ccc_is_attached())
        PyErr_SetString(kind, message);
    return -1;
}

static int ccc_exchange_allocate(DLTensor *prototype, DLManagedTensorVersioned **out, void *error_context,
                                 void (*set_error)(void *error_context, const char *kind, const char *message))
{
    static const char message[] = "a StridedMemoryView shows memory of others: none can be allocated for it";
    if (out)
        *out = NULL;
    if (set_error == NULL)
        return ccc_exchange_refuse(PyExc_BufferError, message);
    set_error(error_context, "BufferError", message);
    return -1;
}

// Whether an object's type has this API. If not, a Python error is set.
static int ccc_exchange_knows(PyObject *object)
{
    PyObject *api = object ? PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__dlpack_c_exchange_api__") : NULL;
    int known = api == ccc_exchange_capsule;
    if (api == NULL)
        PyErr_Clear();
    Py_XDECREF(api);
    if (object == NULL)
        PyErr_SetString(PyExc_TypeError, "expected a StridedMemoryView, not NULL");
    else if (!known)
        PyErr_Format(PyExc_TypeError, "expected a StridedMemoryView, not %R", (PyObject *)Py_TYPE(object));
    return object && known;
}

// The versioned tensor in the capsule that a method of an object returns; NULL with a Python error set.
static DLManagedTensorVersioned *ccc_exchange_ask(PyObject *object, const char *method, int consume)
{
    PyObject *capsule = ccc_exchange_knows(object) ? PyObject_CallMethod(object, method, NULL) : NULL;
    if (capsule == NULL)
        return NULL;
    if (!PyCapsule_IsValid(capsule, NAMES[1])) {
        PyErr_Format(PyExc_BufferError, "%s returned no tensor", method);
        Py_DECREF(capsule);
        return NULL;
    }
    ccc_imported tensor = ccc_in_capsule(capsule, consume);
    Py_DECREF(capsule);
    return tensor.address;
}

static int ccc_exchange_give(void *object, DLManagedTensorVersioned **out)
{
    if (out == NULL)
        return ccc_exchange_refuse(PyExc_ValueError, "there is no place for the tensor: out is NULL");
    *out = ccc_exchange_ask(object, "_give_tensor", 1);
    return *out ? 0 : -1;
}

// The tensor is ours from now on: where it is refused, it is deleted.
static int ccc_exchange_take(DLManagedTensorVersioned *tensor, void **out)
{
    PyObject *owner = ccc_own((ccc_imported){tensor, 1}, NULL, 0);
    if (out) {
        *out = owner ? PyObject_CallFunctionObjArgs(ccc_exchange_make, owner, NULL) : NULL;
        Py_XDECREF(owner);
        return *out ? 0 : -1;
    }
    Py_XDECREF(owner);
    return PyErr_Occurred() ? -1 : ccc_exchange_refuse(PyExc_ValueError, "there is no place for the view: out is NULL");
}

// Shape and strides are the object's, which keeps the memory as long as it exists.
static int ccc_exchange_show(void *object, DLTensor *out)
{
    if (out == NULL)
        return ccc_exchange_refuse(PyExc_ValueError, "there is no place for the tensor: out is NULL");
    const DLManagedTensorVersioned *tensor = ccc_exchange_ask(object, "_share_tensor", 0);
    if (tensor)
        *out = tensor->dl_tensor;
    return tensor ? 0 : -1;
}

// We have no current stream: the legacy default stream is ordered after what a view that is given away waits for.
static int ccc_exchange_stream(int device_type, int32_t device_id, void **out)
{
    if (out == NULL)
        return ccc_exchange_refuse(PyExc_ValueError, "there is no place for the stream: out is NULL");
    *out = NULL;
    return 0;
}

static DLPackExchangeAPI ccc_exchange = {
    {{CCC_DLPACK_MAJOR, CCC_DLPACK_EXCHANGE_MINOR}, NULL},
    ccc_exchange_allocate,
    ccc_exchange_give,
    ccc_exchange_take,
    ccc_exchange_show,
    ccc_exchange_stream,
};

static PyObject *ccc_exchange_api(PyObject *module, PyObject *make)
{
    if (ccc_exchange_capsule == NULL) {
        ccc_exchange_capsule = PyCapsule_New(&ccc_exchange, CCC_DLPACK_EXCHANGE_NAME, NULL);
        ccc_exchange_make = ccc_exchange_capsule ? Py_NewRef(make) : NULL;
    }
    return Py_XNewRef(ccc_exchange_capsule);
}

#endif
