// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Objects of ours as _calls.c has them.
#ifndef CCC_OWNER_H
#define CCC_OWNER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stddef.h>

#include <structmember.h>

#include "python/ccc_uses.h"
#include "python/ccc_module.h"

typedef struct owner {
    PyObject_HEAD PyObject *cdata;  // the handle as CFFI functions take it; NULL where nobody has asked for it
    ccc_handle *handle;             // the same; NULL where construction was refused
} owner;

// Set when the module is imported, and never released: objects may go when it has.
static PyTypeObject *owner_type;
static PyObject *handle_ctype;

// CFFI's own, as the module that it made has them.
static PyObject *(*from_pointer)(char *pointer, PyObject *ctype);
static char *(*to_pointer)(PyObject *cdata, PyObject *ctype);

// An attribute of a module. A new reference.
static PyObject *find(const char *module, const char *name)
{
    PyObject *found = PyImport_ImportModule(module);
    PyObject *value = found ? PyObject_GetAttrString(found, name) : NULL;
    Py_XDECREF(found);
    return value;
}

// A handle is exchanged for another while threads use the object: without the GIL the pointer to it is read atomically.
#define HANDLE(object) __atomic_load_n(&((owner *)(object))->handle, __ATOMIC_ACQUIRE)

#ifndef Py_GIL_DISABLED
#undef Py_BEGIN_CRITICAL_SECTION
#undef Py_END_CRITICAL_SECTION
#undef Py_BEGIN_CRITICAL_SECTION2
#undef Py_END_CRITICAL_SECTION2
#define Py_BEGIN_CRITICAL_SECTION(object) {
#define Py_END_CRITICAL_SECTION() }
#define Py_BEGIN_CRITICAL_SECTION2(one, other) {
#define Py_END_CRITICAL_SECTION2() }
#endif

// The handle of an object of ours, if it is of that kind; else NULL, with no error set.
static ccc_handle *handle_of_owner(PyObject *object, ccc_kind kind)
{
    ccc_handle *handle = HANDLE(object);
    return handle && head_of(handle)->kind == kind ? handle : NULL;
}

// The classes that most streams, events and buffers are of, by kind; set when they are made, and never released. Their
// objects have handles of no other kind.
static PyTypeObject *usual_type[CCC_KINDS];

static ccc_handle *handle_of_any(PyObject *argument, ccc_kind kind)
{
    return PyObject_TypeCheck(argument, owner_type) ? handle_of_owner(argument, kind) : NULL;
}

// The same of an argument.
static inline ccc_handle *handle_of(PyObject *argument, ccc_kind kind)
{
    return Py_IS_TYPE(argument, usual_type[kind]) ? HANDLE(argument) : handle_of_any(argument, kind);
}

// The attribute in which a stream has its owner in another library, or None.
static PyObject *owner_name;

// The Python class of stream proxies, found on first use, and its attributes: the stream, and the stream for launches.
// Either may be None. Never released.
static PyObject *stream_proxy_type, *stream_behind_name, *captured_name;

static int is_stream_proxy(PyObject *argument)
{
    if (stream_proxy_type == NULL) {
        PyObject *registry = find("cuda_core_cffi._core.registry", "registry");
        stream_proxy_type = registry ? PyObject_GetAttrString(registry, "stream_proxy") : NULL;
        Py_XDECREF(registry);
    }
    return stream_proxy_type && PyObject_TypeCheck(argument, (PyTypeObject *)stream_proxy_type);
}

// The stream behind a proxy. A new reference; NULL, with no error set, for any other argument.
static inline PyObject *stream_behind(PyObject *argument, int launches)
{
    if (Py_IS_TYPE(argument, usual_type[CCC_STREAM]))
        return NULL;
    PyObject *stream =
        is_stream_proxy(argument) ? PyObject_GetAttr(argument, launches ? captured_name : stream_behind_name) : NULL;
    if (stream == NULL)
        PyErr_Clear();
    return stream;
}

// The handle of a stream, or of the stream behind a proxy; then *behind has a reference to that stream, else it is
// NULL.
static inline ccc_handle *stream_of(PyObject *argument, PyObject **behind)
{
    *behind = stream_behind(argument, 0);
    return handle_of(*behind ? *behind : argument, CCC_STREAM);
}

// The cdata of an object of ours, made for the first who asks. A new reference; NULL: it failed, or there is no handle.
static PyObject *cdata_of(PyObject *object)
{
    owner *self = (owner *)object;
    PyObject *cdata, *made = NULL;
    ccc_handle *handle = HANDLE(self);
    if (handle && __atomic_load_n(&self->cdata, __ATOMIC_ACQUIRE) == NULL) {
        made = from_pointer((char *)handle, handle_ctype);
        if (made == NULL)
            return NULL;
    }
    Py_BEGIN_CRITICAL_SECTION(object);
    if (self->cdata == NULL) {  // else another thread has been here, perhaps to exchange the handle
        self->cdata = made;
        made = NULL;
    }
    cdata = Py_XNewRef(self->cdata);
    Py_END_CRITICAL_SECTION();
    Py_XDECREF(made);
    return cdata;
}

// Raise an exception that a method in Python has made, whose reference is taken; NULL: another one was raised there.
static PyObject *raise_made(PyObject *error)
{
    if (error)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    return NULL;
}

// Set when the module is imported, and never released.
static PyObject *check_cleanup;

// Show failures of cleanup as warnings of the code `stacklevel` calls up. What is raised then is left to the caller.
static int report(int waiting, int stacklevel)
{
    PyObject *result = PyObject_CallFunction(check_cleanup, "ii", waiting, stacklevel);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

// Release the handle of an object that goes.
static void release_handle(PyObject *self)
{
    ccc_handle *handle = ((owner *)self)->handle;
    int waiting = 0;
    if (handle && is_open(handle)) {
        Py_BEGIN_ALLOW_THREADS waiting = helpers->release_object(handle);
        Py_END_ALLOW_THREADS
    } else if (handle) {
        waiting = helpers->release_object(handle);  // which only frees
    }
    Py_XDECREF(((owner *)self)->cdata);
    if (waiting) {
        PyObject *raised, *value, *traceback;
        PyErr_Fetch(&raised, &value, &traceback);
        if (report(waiting, 2))
            PyErr_WriteUnraisable(check_cleanup);
        PyErr_Restore(raised, value, traceback);
    }
}

static void owner_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    release_handle(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

// The handle of an object of ours; NULL with an error set where there is none.
static ccc_handle *handle_or_error(PyObject *argument)
{
    ccc_handle *handle = PyObject_TypeCheck(argument, owner_type) ? HANDLE(argument) : NULL;
    if (handle == NULL)
        PyErr_SetString(PyExc_AttributeError, "_c_handle");
    return handle;
}

static PyObject *owner_value(PyObject *self, void *unused)
{
    ccc_handle *handle = handle_or_error(self);
    return handle ? PyLong_FromUnsignedLongLong(is_open(handle) ? head_of(handle)->value : 0) : NULL;
}

static PyObject *owner_is_closed(PyObject *self, void *unused)
{
    ccc_handle *handle = handle_or_error(self);
    return handle ? PyBool_FromLong(!is_open(handle)) : NULL;
}

static PyGetSetDef owner_properties[] = {
    {"handle", owner_value, NULL, "The driver's handle as an integer, the address; 0 once closed.", NULL},
    {"_driver_handle", owner_value, NULL, "The driver's handle as an integer, whatever programs get.", NULL},
    {"is_closed", owner_is_closed, NULL, "Whether :meth:`close` was called.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef owner_members[] = {
    {"_c_handle", T_OBJECT_EX, offsetof(owner, cdata), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot owner_slots[] = {
    {Py_tp_dealloc, owner_dealloc},
    {Py_tp_members, owner_members},
    {Py_tp_getset, owner_properties},
    {Py_tp_doc, "Owns a C handle, and releases it when it goes."},
    {0, NULL},
};

static PyType_Spec owner_spec = {
    "cuda_core_cffi._calls.Owner", sizeof(owner), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, owner_slots,
};

// Make an object of a class that owns a handle.
static PyObject *make_owner(PyTypeObject *type, ccc_handle *handle)
{
    PyObject *cdata = from_pointer((char *)handle, handle_ctype);
    PyObject *self = cdata ? PyType_GenericAlloc(type, 0) : NULL;
    if (self) {
        ((owner *)self)->cdata = cdata;
        ((owner *)self)->handle = handle;
    } else {
        Py_XDECREF(cdata);
        Py_BEGIN_ALLOW_THREADS helpers->release_object(handle);
        Py_END_ALLOW_THREADS
    }
    return self;
}

// Make a class, and put it into the module. NULL: an error is set.
static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec, PyTypeObject *base)
{
    PyObject *type = PyType_FromSpecWithBases(spec, (PyObject *)base);
    if (type && PyModule_AddType(module, (PyTypeObject *)type))
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}

static int check_class(PyObject *type)
{
    if (PyType_Check(type) && PyType_IsSubtype((PyTypeObject *)type, owner_type))
        return 0;
    PyErr_SetString(PyExc_TypeError, "expected a subclass of Owner");
    return -1;
}

#endif
