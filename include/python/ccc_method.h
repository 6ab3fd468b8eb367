// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Methods in C, for _calls.c, that stand for methods in Python: they do what is usual without a frame of the
// interpreter. What is not usual goes to the methods in Python, where it is told what is wrong.
#ifndef CCC_METHOD_H
#define CCC_METHOD_H

#include "python/ccc_owner.h"
#include "python/ccc_vectorcall.h"

// An attribute of a module. A new reference.
static PyObject *find(const char *module, const char *name)
{
    PyObject *found = PyImport_ImportModule(module);
    PyObject *value = found ? PyObject_GetAttrString(found, name) : NULL;
    Py_XDECREF(found);
    return value;
}

typedef struct method {
    const char *place;  // the class of the method in Python
    const char *signature;
    PyMethodDef definition;
    PyObject **python;  // where the method in Python is kept, for ever
} method;

// Call a method in Python with what the one in C was given.
static PyObject *call_python(PyObject *function, PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                             PyObject *names)
{
    Py_ssize_t all = count + (names ? PyTuple_Size(names) : 0);
    PyObject **together = PyMem_Malloc(sizeof *together * (size_t)(all + 1));
    if (together == NULL)
        return PyErr_NoMemory();
    together[0] = self;
    for (Py_ssize_t index = 0; index < all; ++index)
        together[index + 1] = arguments[index];
    PyObject *result = PyObject_Vectorcall(function, together, (size_t)count + 1, names);
    PyMem_Free(together);
    return result;
}

// The documentation of something in Python, for what stands for it in C. It is never released. NULL: an error is set.
static const char *documentation_of(PyObject *python, const char *name, const char *signature)
{
    PyObject *text = PyObject_GetAttrString(python, "__doc__");
    PyObject *documentation =
        text ? PyUnicode_FromFormat("%s%s\n--\n\n%V", name, signature, text == Py_None ? NULL : text, "") : NULL;
    Py_XDECREF(text);
    return documentation ? PyUnicode_AsUTF8AndSize(documentation, NULL) : NULL;
}

// Put a method in C in the place of the one in Python, whose documentation it takes over, and which is kept in `kept`.
// Interpreters call it without looking any further where the object is of that very class, not of one that inherits.
// -1, with an error set: they did not change places.
static int stand_in(PyObject *class, PyMethodDef *definition, const char *signature, PyObject **kept)
{
    PyObject *python = PyObject_GetAttrString(class, definition->ml_name);  // never released
    const char *words = python ? documentation_of(python, definition->ml_name, signature) : NULL;
    PyObject *made = words ? PyDescr_NewMethod((PyTypeObject *)class, definition) : NULL;
    if (made) {
        definition->ml_doc = words;
        *kept = python;
    } else {
        Py_XDECREF(python);
    }
    int result = made ? PyObject_SetAttrString(class, definition->ml_name, made) : -1;
    Py_XDECREF(made);
    return result;
}

// The same for a function of a module. A new reference; NULL, with an error set: there is none.
static PyObject *stand_for(PyObject *function, PyMethodDef *definition, const char *signature, PyObject **kept)
{
    PyObject *module = PyObject_GetAttrString(function, "__module__");
    definition->ml_doc = module ? documentation_of(function, definition->ml_name, signature) : NULL;
    PyObject *made = definition->ml_doc ? PyCFunction_NewEx(definition, NULL, module) : NULL;
    Py_XDECREF(module);
    if (made)
        *kept = Py_NewRef(function);
    return made;
}

#endif
