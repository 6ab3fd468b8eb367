// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Arrays travel in PyCapsules, which CFFI cannot make or read. This module does, and nothing else.
//
//     of_buffer(handle, how)    a capsule around a new tensor of a buffer; None after a failure
//     of_array(array, handle, how)  the same of a ccc_array: see ccc_tensor.h
//     new(address, versioned)   a capsule around a managed tensor, whose deleter runs if nobody consumes it
//     read(capsule)             (address, versioned) of one that has not been consumed
//     consume(capsule)          the same, and mark it as consumed: its tensor is now the caller's to delete
//     take(capsule)             consume, and return what owns the tensor: see ccc_capsule_read.h
//     take_numpy(capsule)       the same for a capsule of NumPy, whose deleter takes the GIL
//     import_exchanged(api, obj)  the same for an object whose type has DLPack's C exchange API
//     work_stream(api, owner)   the stream that its producer works in
//     describe(owner)           where the memory is and how it is laid out
//     is_simple(owner)          whether the elements are no complex numbers and adjacent along some axis
//     share(owner, versioned)   a capsule around a tensor of the same memory, for a consumer
//     exchange_api(make)        that API for a type of ours
//     reader(read, on_device)   what reads objects that speak DLPack in Python's form: see ccc_reader.h
//     exchange_reader(api, read, refuse)  what reads objects whose type has DLPack's C exchange API, likewise
//     describe_array(array)     the same as describe, of a NumPy array: see ccc_array.h
//     new_struct(capsule)       consume a capsule of bytes, and return a capsule __array_struct__ that owns the tensor
//     connect(gil, tensors)     (release, take), the addresses of C functions: see ccc_detach.h; the arguments are
//     those of
//                               the CFFI module's ccc_gil and ccc_tensor_calls
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "python/ccc_array.h"
#include "python/ccc_capsule_read.h"
#include "python/ccc_exchange.h"
#include "python/ccc_once.h"
#include "python/ccc_reader.h"

// A capsule around a tensor that was just made, with which it is deleted if there is no capsule: no Python runs
// between, which a signal handler could interrupt.
static PyObject *capsule_around(uint64_t tensor, int how)
{
    const int versioned = (how & CCC_TENSOR_VERSIONED) != 0;
    if (tensor == 0)
        Py_RETURN_NONE;
    PyObject *capsule = ccc_capsule_of((void *)(uintptr_t)tensor, versioned);
    if (capsule == NULL)
        ccc_call_deleter((ccc_imported){(void *)(uintptr_t)tensor, versioned});
    return capsule;
}

// Read the arguments of the next two: addresses, and then flags. -1 with a Python error set: they are others.
static int read_addresses(PyObject *const *arguments, Py_ssize_t count, Py_ssize_t wanted, uintptr_t *addresses,
                          int *how)
{
    if (count != wanted) {
        PyErr_Format(PyExc_TypeError, "expected %zd arguments, not %zd", wanted, count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < wanted - 1; ++i) {
        addresses[i] = (uintptr_t)PyLong_AsUnsignedLongLong(arguments[i]);
        if (PyErr_Occurred())
            return -1;
    }
    *how = (int)PyLong_AsLong(arguments[wanted - 1]);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *capsule_of_buffer(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    uintptr_t handle;
    int how;
    (void)module;
    if (read_addresses(arguments, count, 2, &handle, &how))
        return NULL;
    return capsule_around(ccc_own_tensors->of_buffer((ccc_handle *)handle, how), how);
}

static PyObject *capsule_of_array(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    uintptr_t addresses[2];
    int how;
    (void)module;
    if (read_addresses(arguments, count, 3, addresses, &how))
        return NULL;
    struct ccc_array *array = (struct ccc_array *)addresses[0];
    return capsule_around(ccc_own_tensors->of_array(array, (ccc_handle *)addresses[1], how), how);
}

static PyObject *capsule_new(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (!ccc_two_arguments("new", count))
        return NULL;
    void *tensor = (void *)(uintptr_t)PyLong_AsUnsignedLongLong(arguments[0]);
    int versioned = PyErr_Occurred() ? -1 : PyObject_IsTrue(arguments[1]);
    if (versioned < 0)
        return NULL;
    if (tensor == NULL)
        return PyErr_Format(PyExc_ValueError, "new called with a null pointer");
    return PyCapsule_New(tensor, NAMES[versioned], ccc_delete_any);
}

static PyObject *address_and_kind(ccc_imported tensor)
{
    if (tensor.address == NULL)
        return NULL;
    return Py_BuildValue("KN", (unsigned long long)(uintptr_t)tensor.address, PyBool_FromLong(tensor.versioned));
}

static PyObject *capsule_read(PyObject *module, PyObject *capsule)
{
    (void)module;
    return address_and_kind(ccc_in_capsule(capsule, 0));
}

static PyObject *capsule_consume(PyObject *module, PyObject *capsule)
{
    (void)module;
    return address_and_kind(ccc_in_capsule(capsule, 1));
}

static PyObject *capsule_take(PyObject *module, PyObject *capsule)
{
    ccc_imported tensor = ccc_in_capsule(capsule, 1);
    (void)module;
    return tensor.address ? ccc_own(tensor, capsule, 0) : NULL;
}

static PyObject *capsule_take_numpy(PyObject *module, PyObject *capsule)
{
    ccc_imported tensor = ccc_in_capsule(capsule, 1);
    (void)module;
    return tensor.address ? ccc_own(tensor, capsule, 1) : NULL;
}

static PyObject *capsule_describe(PyObject *module, PyObject *owner)
{
    (void)module;
    return ccc_describe(owner);
}

static PyObject *capsule_is_simple(PyObject *module, PyObject *owner)
{
    const ccc_uses *uses = ccc_uses_of(owner);
    (void)module;
    return uses ? PyBool_FromLong(ccc_is_simple(ccc_tensor_in(uses->tensor))) : NULL;
}

static PyObject *capsule_share(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (!ccc_two_arguments("share", count))
        return NULL;
    int versioned = PyObject_IsTrue(arguments[1]);
    ccc_shown *shown = versioned < 0 ? NULL : ccc_show(arguments[0], versioned);
    if (shown == NULL)
        return NULL;
    PyObject *capsule = ccc_capsule_of(shown, versioned);
    if (capsule == NULL)
        ccc_end_shown(shown);
    return capsule;
}

static PyObject *capsule_connect(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    uintptr_t addresses[2];
    (void)module;
    if (!ccc_two_arguments("connect", count))
        return NULL;
    for (int i = 0; i < 2; ++i)
        addresses[i] = (uintptr_t)PyLong_AsUnsignedLongLong(arguments[i]);
    if (PyErr_Occurred())
        return NULL;
    ccc_gil_shared = (ccc_gil *)addresses[0];
    ccc_own_tensors = (const ccc_tensor_calls *)addresses[1];
    return Py_BuildValue("KK", (unsigned long long)(uintptr_t)ccc_detach, (unsigned long long)(uintptr_t)ccc_attach);
}

#define FAST(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef methods[] = {
    {"of_buffer", FAST(capsule_of_buffer), METH_FASTCALL,
     "of_buffer(handle, how, /)\n--\n\nReturn a capsule around a tensor of a buffer, or None after a failure."},
    {"of_array", FAST(capsule_of_array), METH_FASTCALL,
     "of_array(array, handle, how, /)\n--\n\nReturn a capsule around a tensor of an array, or None after a failure."},
    {"new", FAST(capsule_new), METH_FASTCALL,
     "new(address, versioned, /)\n--\n\nReturn a capsule around a managed tensor."},
    {"read", capsule_read, METH_O, "read(capsule, /)\n--\n\nReturn (address, versioned) of the tensor in a capsule."},
    {"consume", capsule_consume, METH_O, "consume(capsule, /)\n--\n\nTake the tensor out of a capsule."},
    {"take", capsule_take, METH_O, "take(capsule, /)\n--\n\nConsume a capsule and return what owns its tensor."},
    {"take_numpy", capsule_take_numpy, METH_O,
     "take_numpy(capsule, /)\n--\n\nConsume a capsule of NumPy and return what owns its tensor."},
    {"describe", capsule_describe, METH_O, "describe(owner, /)\n--\n\nDescribe a tensor that was taken."},
    {"is_simple", capsule_is_simple, METH_O,
     "is_simple(owner, /)\n--\n\nWhether no element is complex, and a stride is 1."},
    {"share", FAST(capsule_share), METH_FASTCALL,
     "share(owner, versioned, /)\n--\n\nReturn a capsule for a consumer, of a tensor that was taken."},
    {"import_exchanged", FAST(ccc_import_exchanged), METH_FASTCALL,
     "import_exchanged(api, obj, /)\n--\n\nTake the tensor of an object through DLPack's C exchange API."},
    {"work_stream", FAST(ccc_work_stream), METH_FASTCALL,
     "work_stream(api, owner, /)\n--\n\nReturn the stream that the producer of a tensor works in."},
    {"reader", FAST(ccc_reader), METH_FASTCALL,
     "reader(read, on_device, /)\n--\n\nReturn what reads objects that speak DLPack, as a function in Python does."},
    {"exchange_reader", FAST(ccc_exchange_reader), METH_FASTCALL,
     "exchange_reader(api, read, refuse, /)\n--\n\nReturn what reads objects of a type with the C exchange API."},
    {"describe_array", ccc_describe_array, METH_O,
     "describe_array(array, /)\n--\n\nDescribe a NumPy array, or return None if its dtype needs a closer look."},
    {"new_struct", ccc_new_struct, METH_O,
     "new_struct(capsule, /)\n--\n\nReturn the capsule __array_struct__ for a tensor of bytes in a capsule."},
    {"exchange_api", ccc_exchange_api, METH_O, "exchange_api(make, /)\n--\n\nReturn the C exchange API of a type."},
    {"connect", FAST(capsule_connect), METH_FASTCALL,
     "connect(gil, tensors, /)\n--\n\nReturn two C functions, which release the GIL and take it again."},
    {NULL, NULL, 0, NULL},
};

static int capsule_exec(PyObject *module)
{
    (void)module;
    if (ccc_refuse_second_import("cuda_core_cffi._capsule"))
        return -1;
    ccc_import_done();
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, capsule_exec},
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_capsule", "Makes and reads capsules of arrays.", 0, methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__capsule(void)
{
#ifndef PYPY_VERSION
    ccc_find_current_state();
#endif
    return PyModuleDef_Init(&definition);
}
