// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The one way to put C under Python: a native stands before the function in Python of the same qualified name, its
// body, which has the decorator `native` (_core/calls.py).
//
// A native handles the usual arguments without a frame of the interpreter. For others it calls the body, before it has
// done anything. After a failure it calls the decorator's function with the status and the arguments, and passes its
// result or exception on.
#ifndef CCC_NATIVE_H
#define CCC_NATIVE_H

#include <string.h>

#include "python/ccc_owner.h"
#include "python/ccc_module.h"

typedef struct native {
    const char *name;       // the qualified name of the body
    const char *signature;  // as inspect reads it; NULL for properties and operators
    PyMethodDef method;     // of a method or function
    PyGetSetDef property;   // of a property
    PyTypeObject **base;    // of an operator: the class in C that has it
    PyTypeObject **usual;   // where the class is kept, if its objects are recognized by their type
    PyObject *body;         // these are set by the decorator, and never released
    PyObject *failed;
    PyObject *module;  // the name of the body's
} native;

#define NATIVE_WITH(function, place, text, flags, class) \
    static native native_##function = { \
        .name = place, \
        .signature = text, \
        .method = {NULL, (PyCFunction)(void (*)(void))function, flags, NULL}, \
        .usual = class, \
    }

// Declare a method or function that takes positional and keyword arguments, and its native; `class` is where the class
// is kept, or NULL.
#define NATIVE(function, place, text, class) \
    static PyObject *function(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names); \
    NATIVE_WITH(function, place, text, METH_FASTCALL | METH_KEYWORDS, class)

// The same of a method without arguments.
#define NATIVE_PLAIN(function, place, class) \
    static PyObject *function(PyObject *self, PyObject *unused); \
    NATIVE_WITH(function, place, "($self, /)", METH_NOARGS, class)

// The same of a property.
#define NATIVE_PROPERTY(function, place) \
    static PyObject *function(PyObject *self, void *unused); \
    static native native_##function = {.name = place, .property = {.get = function}}

// Call a function in Python with some arguments, and then with those that a native was given.
static PyObject *call_python(PyObject *function, PyObject *const *first, Py_ssize_t firsts, PyObject *const *arguments,
                             Py_ssize_t count, PyObject *names)
{
    Py_ssize_t all = count + (names ? PyTuple_Size(names) : 0);
    PyObject **together = PyMem_Malloc(sizeof *together * (size_t)(firsts + all + 1));
    if (together == NULL)
        return PyErr_NoMemory();
    for (Py_ssize_t index = 0; index < firsts; ++index)
        together[index] = first[index];
    for (Py_ssize_t index = 0; index < all; ++index)
        together[firsts + index] = arguments[index];
    PyObject *result = PyObject_Vectorcall(function, together, (size_t)(firsts + count), names);
    PyMem_Free(together);
    return result;
}

// Have the body do it. `self` is NULL for a function.
static PyObject *call_body(const native *native, PyObject *self, PyObject *const *arguments, Py_ssize_t count,
                           PyObject *names)
{
    return call_python(native->body, &self, self != NULL, arguments, count, names);
}

// Have the decorator's function act on a status.
static PyObject *call_failed(const native *native, int status, PyObject *self, PyObject *const *arguments,
                             Py_ssize_t count, PyObject *names)
{
    PyObject *first[] = {PyLong_FromLong(status), self};
    if (first[0] == NULL)
        return NULL;
    PyObject *result = call_python(native->failed, first, 1 + (self != NULL), arguments, count, names);
    Py_DECREF(first[0]);
    return result;
}

// The result of a call that ended with a status: an object, of which this is a new reference, where it succeeded.
static PyObject *result_of(const native *native, int status, PyObject *result, PyObject *self,
                           PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    return status ? call_failed(native, status, self, arguments, count, names) : Py_NewRef(result);
}

// The last part of a qualified name.
static const char *short_name(const native *native)
{
    const char *dot = strrchr(native->name, '.');
    return dot ? dot + 1 : native->name;
}

// The documentation of the body, after a signature that inspect reads. It is never released. NULL: an error is set.
static const char *documentation_of(const native *native)
{
    PyObject *text = PyObject_GetAttrString(native->body, "__doc__"), *documentation = NULL;
    if (text && native->signature)
        documentation = PyUnicode_FromFormat("%s%s\n--\n\n%V", short_name(native), native->signature,
                                             text == Py_None ? NULL : text, "");
    else if (text)
        documentation = Py_NewRef(text);
    Py_XDECREF(text);
    return documentation ? PyUnicode_AsUTF8AndSize(documentation, NULL) : NULL;
}

// What a decorated function is until its class exists, which then gets the native in its place.
typedef struct lift {
    PyObject_HEAD native *native;
} lift;

static PyTypeObject *lift_type;

// The descriptor of a native in a class. A new reference.
static PyObject *descriptor_in(PyTypeObject *class, native *native)
{
    if (native->method.ml_meth) {
        native->method.ml_name = short_name(native);
        native->method.ml_doc = documentation_of(native);
        return native->method.ml_doc ? PyDescr_NewMethod(class, &native->method) : NULL;
    }
    if (native->property.get) {
        native->property.name = short_name(native);
        native->property.doc = documentation_of(native);
        return native->property.doc ? PyDescr_NewGetSet(class, &native->property) : NULL;
    }
    // An operator is found without a lookup only if a base in C has it.
    return PyObject_GetAttrString((PyObject *)*native->base, short_name(native));
}

// __set_name__(class, name)
static PyObject *lift_set_name(PyObject *self, PyObject *arguments)
{
    PyObject *class, *name;
    native *native = ((lift *)self)->native;
    if (!PyArg_ParseTuple(arguments, "O!U:__set_name__", &PyType_Type, &class, &name))
        return NULL;
    PyObject *descriptor = descriptor_in((PyTypeObject *)class, native);
    int failed = descriptor == NULL || PyObject_SetAttr(class, name, descriptor);
    Py_XDECREF(descriptor);
    if (failed)
        return NULL;
    if (native->usual)
        *native->usual = (PyTypeObject *)Py_NewRef(class);
    Py_RETURN_NONE;
}

static PyMethodDef lift_methods[] = {
    {"__set_name__", lift_set_name, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot lift_slots[] = {
    {Py_tp_methods, lift_methods},
    {0, NULL},
};

static PyType_Spec lift_spec = {"cuda_core_cffi._calls.lift", sizeof(lift), 0, Py_TPFLAGS_DEFAULT, lift_slots};

// Put a native before its body, once; or again, where the import of a module was interrupted. A new reference.
static PyObject *lift_body(native *native, PyObject *body, PyObject *failed)
{
    PyObject *module = PyObject_GetAttrString(body, "__module__");
    int known = module == NULL ? -1 : native->module ? PyObject_RichCompareBool(native->module, module, Py_EQ) : 1;
    if (known == 0)
        PyErr_Format(PyExc_RuntimeError, "%s has a body already", native->name);
    if (known != 1) {
        Py_XDECREF(module);
        return NULL;
    }
    native->module = module;  // earlier ones stay: a call may be using them
    native->body = Py_NewRef(body);
    native->failed = Py_NewRef(failed);
    if (strchr(native->name, '.')) {
        lift *made = (lift *)PyType_GenericAlloc(lift_type, 0);
        if (made)
            made->native = native;
        return (PyObject *)made;
    }
    native->method.ml_name = native->name;
    native->method.ml_doc = documentation_of(native);
    return native->method.ml_doc ? PyCFunction_NewEx(&native->method, NULL, module) : NULL;
}

#endif
