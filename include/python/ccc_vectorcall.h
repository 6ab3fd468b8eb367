// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Calls without a tuple of arguments, and their arguments. They are in the stable ABI from 3.12 on; CPython 3.11 has
// them all the same.
#ifndef CCC_VECTORCALL_H
#define CCC_VECTORCALL_H

#include <Python.h>

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

#endif
