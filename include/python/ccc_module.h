// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// What both modules in C have in common.
#ifndef CCC_MODULE_H
#define CCC_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

// Calls without a tuple of arguments, and their arguments. They are in the stable ABI from 3.12 on; CPython 3.11 has
// them all the same.
#if defined(Py_LIMITED_API) && Py_LIMITED_API + 0 < 0x030C0000
PyAPI_FUNC(PyObject *)
    PyObject_Vectorcall(PyObject *callable, PyObject *const *arguments, size_t count, PyObject *names);
PyAPI_FUNC(PyObject *)
    PyObject_VectorcallMethod(PyObject *name, PyObject *const *arguments, size_t count, PyObject *names);
#endif

// -1 with an error set: a function was called with another number of arguments.
static int check_count(const char *name, Py_ssize_t count, Py_ssize_t wanted)
{
    if (count == wanted)
        return 0;
    PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, not %zd", name, wanted, count);
    return -1;
}

// The modules in C have state of the process: types, and references to objects. So one interpreter imports them, and
// once: the objects of the first import would be used with the types of the second.
static int64_t ccc_importer = -1;  // the interpreter that has imported the module

static int64_t ccc_interpreter(void)
{
#ifdef PYPY_VERSION  // which has one
    return 0;
#else
    return PyInterpreterState_GetID(PyInterpreterState_Get());
#endif
}

// Before a module is initialised. -1, with ImportError set: it was imported before.
static int ccc_refuse_second_import(const char *module)
{
    if (ccc_importer < 0)
        return 0;
    if (ccc_interpreter() != ccc_importer)
        PyErr_Format(PyExc_ImportError, "%s was imported by another interpreter of this process, and cannot be shared",
                     module);
    else
        PyErr_Format(PyExc_ImportError,
                     "%s was imported before it was removed from sys.modules, and a process can import it once: "
                     "put the module back, or start another process",
                     module);
    return -1;
}

// Once it is initialised.
static void ccc_import_done(void) { ccc_importer = ccc_interpreter(); }

#endif
