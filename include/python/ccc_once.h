// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The modules in C have state of the process: types, and references to objects. So one interpreter imports them, and
// once: the objects of the first import would be used with the types of the second.
#ifndef CCC_ONCE_H
#define CCC_ONCE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

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
