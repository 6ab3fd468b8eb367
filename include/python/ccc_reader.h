// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Reading what speaks DLPack in Python's form: asking where the memory is, asking for the capsule in the order of the
// consumer's stream, and taking its tensor, in one call.
//
// A reader of ours in Python does the same, and whatever is unusual: nothing was done then. It is for types all of
// whose instances have the methods. On PyPy, where calls from C are slow, it does everything. So does that of a type
// with DLPack's C exchange API where streams are to be ordered.
#ifndef CCC_READER_H
#define CCC_READER_H

#include "python/ccc_exchange.h"

#ifndef PYPY_VERSION

#define CCC_NO_ORDERING (-1)

// Made when the first reader is, and never released.
static PyObject *ccc_export_name, *ccc_device_name, *ccc_version, *ccc_keywords, *ccc_old_keywords, *ccc_legacy;

static int ccc_reader_constants(void)
{
    if (ccc_legacy)
        return 0;
    ccc_export_name = PyUnicode_InternFromString("__dlpack__");
    ccc_device_name = PyUnicode_InternFromString("__dlpack_device__");
    ccc_version = Py_BuildValue("ii", CCC_DLPACK_MAJOR, CCC_DLPACK_MINOR);
    ccc_keywords = Py_BuildValue("NN", PyUnicode_InternFromString("stream"), PyUnicode_InternFromString("max_version"));
    ccc_old_keywords = Py_BuildValue("(N)", PyUnicode_InternFromString("stream"));
    ccc_legacy = PyLong_FromLong(CCC_DL_LEGACY_STREAM);
    return PyErr_Occurred() ? -1 : 0;
}

// Whether an object says that its memory is the host's alone: 0 or 1, or -1 with a Python error set, also for memory
// that is neither the host's nor CUDA's.
static int ccc_is_on_host(PyObject *object)
{
    PyObject *device = PyObject_VectorcallMethod(ccc_device_name, &object, 1, NULL);
    PyObject *kind = device ? PySequence_GetItem(device, 0) : NULL;
    long type = kind ? PyLong_AsLong(kind) : -1;
    Py_XDECREF(device);
    Py_XDECREF(kind);
    if (type == -1 && PyErr_Occurred())
        return -1;
    return ccc_check_device(type) ? -1 : type == CCC_DL_CPU;
}

// Ask an object for its tensor and take it.
static PyObject *ccc_request_tensor(PyObject *object, PyObject *stream)
{
    PyObject *arguments[] = {object, stream, ccc_version};
    PyObject *capsule = PyObject_VectorcallMethod(ccc_export_name, arguments, 1, ccc_keywords);
    if (capsule == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {  // a producer older than DLPack 1.0
        PyErr_Clear();
        capsule = PyObject_VectorcallMethod(ccc_export_name, arguments, 1, ccc_old_keywords);
    }
    if (capsule == NULL)
        return NULL;
    PyObject *owner = ccc_own_capsule(capsule, 0);
    Py_DECREF(capsule);
    return owner;
}

// The consumer's stream as DLPack numbers it, borrowed; NULL, with no error set, if it is not of the usual kind.
static PyObject *ccc_consumer(PyObject *stream)
{
    if (!PyLong_CheckExact(stream))
        return NULL;
    long long value = PyLong_AsLongLong(stream);
    if (value < CCC_NO_ORDERING || (value == -1 && PyErr_Occurred())) {
        PyErr_Clear();
        return NULL;
    }
    return value ? stream : ccc_legacy;
}

static PyObject *ccc_read(PyObject *read, PyObject *const *arguments, Py_ssize_t count)
{
    PyObject *stream = count == 2 ? ccc_consumer(arguments[1]) : NULL;
    int on_host = stream ? ccc_is_on_host(arguments[0]) : 0;
    if (on_host < 0) {  // what is wrong with the device, the reader in Python tells
        if (!PyErr_ExceptionMatches(PyExc_AttributeError) && !PyErr_ExceptionMatches(PyExc_LookupError) &&
            !PyErr_ExceptionMatches(PyExc_TypeError))
            return NULL;
        PyErr_Clear();
        stream = NULL;
    }
    return stream ? ccc_request_tensor(arguments[0], on_host ? Py_None : stream)
                  : PyObject_Vectorcall(read, arguments, (size_t)count, NULL);
}

static PyObject *ccc_read_on_device(PyObject *read, PyObject *const *arguments, Py_ssize_t count)
{
    PyObject *stream = count == 2 ? ccc_consumer(arguments[1]) : NULL;
    return stream ? ccc_request_tensor(arguments[0], stream)
                  : PyObject_Vectorcall(read, arguments, (size_t)count, NULL);
}

// `parts` are the reader in Python, None or what refuses objects whose tensors are not simple, and the type's API.
static PyObject *ccc_read_exchanged(PyObject *parts, PyObject *const *arguments, Py_ssize_t count)
{
    PyObject *read = PyTuple_GetItem(parts, 0), *refuse = PyTuple_GetItem(parts, 1);
    PyObject *stream = count == 2 ? ccc_consumer(arguments[1]) : NULL, *owner = NULL;
    if (stream && PyLong_AsLongLong(stream) == CCC_NO_ORDERING) {
        owner = ccc_exchanged(PyTuple_GetItem(parts, 2), arguments[0]);
        if (owner == NULL && PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
            return NULL;
        PyErr_Clear();
    }
    if (owner == NULL)
        return PyObject_Vectorcall(read, arguments, (size_t)count, NULL);
    const ccc_uses *uses = PyCapsule_GetContext(owner);
    if (refuse != Py_None && !ccc_is_simple(ccc_tensor_in(uses->tensor))) {
        PyObject *accepted = PyObject_Vectorcall(refuse, arguments, 1, NULL);
        if (accepted == NULL)
            Py_CLEAR(owner);
        Py_XDECREF(accepted);
    }
    return owner;
}

static PyMethodDef ccc_readers[] = {
    {"read", (PyCFunction)(void (*)(void))ccc_read, METH_FASTCALL, NULL},
    {"read_on_device", (PyCFunction)(void (*)(void))ccc_read_on_device, METH_FASTCALL, NULL},
    {"read_exchanged", (PyCFunction)(void (*)(void))ccc_read_exchanged, METH_FASTCALL, NULL},
};

#endif

// reader(read, on_device), or reader(read, refuse, api)
static PyObject *ccc_reader(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 3 && check_count("reader", count, 2))
        return NULL;
#ifdef PYPY_VERSION
    return Py_NewRef(arguments[0]);
#else
    int which = count == 3 ? 2 : PyObject_IsTrue(arguments[1]);
    if (which < 0 || ccc_reader_constants())
        return NULL;
    PyObject *self = which < 2 ? Py_NewRef(arguments[0]) : PyTuple_Pack(3, arguments[0], arguments[1], arguments[2]);
    PyObject *reader = self ? PyCFunction_New(&ccc_readers[which], self) : NULL;
    Py_XDECREF(self);
    return reader;
#endif
}

#endif
