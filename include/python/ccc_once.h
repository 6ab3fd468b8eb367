/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The modules in C have state of the process: types, and references to objects. So one interpreter imports them. */
#ifndef CCC_ONCE_H
#define CCC_ONCE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

/* When a module is imported. -1, with ImportError set: another interpreter of this process has imported it. */
static int ccc_refuse_second_interpreter(const char *module)
{
#ifdef PYPY_VERSION /* which has one */
    (void)module;
#else
    static int64_t first = -1;
    int64_t interpreter = PyInterpreterState_GetID(PyInterpreterState_Get());
    if (first < 0)
        first = interpreter;
    if (interpreter != first) {
        PyErr_Format(PyExc_ImportError, "%s was imported by another interpreter of this process, and cannot be shared",
                     module);
        return -1;
    }
#endif
    return 0;
}

#endif
