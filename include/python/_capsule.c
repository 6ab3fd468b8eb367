// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Arrays travel in PyCapsules, which CFFI cannot make or read. This module does, and nothing else. What is taken out of
// a capsule: ccc_capsule_read.h; DLPack's C exchange API: ccc_exchange.h; reading objects in one call: ccc_reader.h.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "python/ccc_capsule_read.h"
#include "python/ccc_exchange.h"
#include "python/ccc_reader.h"

// of(array, handle, how): `array` is 0 for a buffer, which the handle is.
static PyObject *capsule_of(PyObject *module, PyObject *arguments)
{
    unsigned long long array, handle;
    int how;
    if (!PyArg_ParseTuple(arguments, "KKi:of", &array, &handle, &how))
        return NULL;
    ccc_handle *owner = (ccc_handle *)(uintptr_t)handle;
    uint64_t tensor = array ? ccc_own_tensors->of_array((ccc_array *)(uintptr_t)array, owner, how)
                            : ccc_own_tensors->of_buffer(owner, how);
    return tensor ? ccc_capsule_of(tensor, (how & CCC_TENSOR_VERSIONED) != 0) : Py_NewRef(Py_None);
}

static PyObject *capsule_new(PyObject *module, PyObject *arguments)
{
    unsigned long long tensor;
    int versioned;
    if (!PyArg_ParseTuple(arguments, "Kp:new", &tensor, &versioned))
        return NULL;
    if (tensor == 0)
        return PyErr_Format(PyExc_ValueError, "new called with a null pointer");
    return PyCapsule_New((void *)(uintptr_t)tensor, NAMES[versioned], ccc_delete_any);
}

static PyObject *address_and_kind(PyObject *capsule, int consume)
{
    ccc_imported tensor = ccc_in_capsule(capsule, consume);
    if (tensor.address == NULL)
        return NULL;
    return Py_BuildValue("KN", (unsigned long long)(uintptr_t)tensor.address, PyBool_FromLong(tensor.versioned));
}

static PyObject *capsule_read(PyObject *module, PyObject *capsule) { return address_and_kind(capsule, 0); }

static PyObject *capsule_consume(PyObject *module, PyObject *capsule) { return address_and_kind(capsule, 1); }

static PyObject *capsule_own(PyObject *module, PyObject *capsule) { return ccc_own_capsule(capsule, 0); }

static PyObject *capsule_own_numpy(PyObject *module, PyObject *capsule) { return ccc_own_capsule(capsule, 1); }

static PyObject *capsule_is_simple(PyObject *module, PyObject *owner)
{
    const ccc_uses *uses = ccc_uses_of(owner);
    return uses ? PyBool_FromLong(ccc_is_simple(ccc_tensor_in(uses->tensor))) : NULL;
}

static PyObject *capsule_share(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    if (check_count("share", count, 2))
        return NULL;
    int versioned = PyObject_IsTrue(arguments[1]);
    uint64_t shown = versioned < 0 ? 0 : ccc_show(arguments[0], versioned);
    return shown ? ccc_capsule_of(shown, versioned) : NULL;
}

static PyObject *capsule_connect(PyObject *module, PyObject *arguments)
{
    unsigned long long gil, tensors;
    if (!PyArg_ParseTuple(arguments, "KK:connect", &gil, &tensors))
        return NULL;
    ccc_gil_shared = (ccc_gil *)(uintptr_t)gil;
    ccc_own_tensors = (const ccc_tensor_calls *)(uintptr_t)tensors;
    return Py_BuildValue("KK", (unsigned long long)(uintptr_t)ccc_detach, (unsigned long long)(uintptr_t)ccc_attach);
}

#define FAST(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef methods[] = {
    {"of", capsule_of, METH_VARARGS,
     "of(array, handle, how, /)\n--\n\nReturn a capsule around a tensor of an array or buffer, None after a failure."},
    {"new", capsule_new, METH_VARARGS, "new(address, versioned, /)\n--\n\nReturn a capsule around a managed tensor."},
    {"read", capsule_read, METH_O, "read(capsule, /)\n--\n\nReturn (address, versioned) of the tensor in a capsule."},
    {"consume", capsule_consume, METH_O, "consume(capsule, /)\n--\n\nTake the tensor out of a capsule."},
    {"own", capsule_own, METH_O, "own(capsule, /)\n--\n\nConsume a capsule and return what owns its tensor."},
    {"own_numpy", capsule_own_numpy, METH_O,
     "own_numpy(capsule, /)\n--\n\nConsume a capsule of NumPy and return what owns its tensor."},
    {"describe", ccc_describe, METH_O, "describe(owner, /)\n--\n\nDescribe a tensor that was taken."},
    {"is_simple", capsule_is_simple, METH_O,
     "is_simple(owner, /)\n--\n\nWhether no element is complex, and a stride is 1."},
    {"share", FAST(capsule_share), METH_FASTCALL,
     "share(owner, versioned, /)\n--\n\nReturn a capsule for a consumer, of a tensor that was taken."},
    {"import_exchanged", FAST(ccc_import_exchanged), METH_FASTCALL,
     "import_exchanged(api, obj, /)\n--\n\nTake the tensor of an object through DLPack's C exchange API."},
    {"work_stream", FAST(ccc_work_stream), METH_FASTCALL,
     "work_stream(api, owner, /)\n--\n\nReturn the stream that the producer of a tensor works in."},
    {"reader", FAST(ccc_reader), METH_FASTCALL,
     "reader(read, on_device_or_refuse, api=None, /)\n--\n\n"
     "Return what reads objects as a function in Python does: that speak DLPack, or of a type with the C exchange API."},
    {"exchange_api", ccc_exchange_api, METH_O, "exchange_api(make, /)\n--\n\nReturn the C exchange API of a type."},
    {"connect", capsule_connect, METH_VARARGS,
     "connect(gil, tensors, /)\n--\n\nReturn two C functions, which release the GIL and take it again."},
    {NULL, NULL, 0, NULL},
};

static int capsule_exec(PyObject *module)
{
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
