// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Buffers, for _calls.c: what they have beside their handle, and the methods that allocate and close them. What is not
// usual goes to the methods in Python, for which they stand.
//
// The cdata of a buffer's handle is made when somebody asks for it: most buffers go without.
#ifndef CCC_BUFFERS_H
#define CCC_BUFFERS_H

#include <stddef.h>

#include "python/ccc_export.h"

typedef struct memory {
    owner owner;
    PyObject *resource;
    PyObject *size;
    PyObject *address;       // for launches from Python; see _memory/buffer.py
    PyObject *keep, *whole;  // what the memory needs until it has gone back: here they go after the handle
} memory;

#define KNOWN 4

static PyTypeObject *memory_type;

// The classes of pools, and of what they allocate, set when they are made: they are never released.
static struct {
    PyObject *pool, *buffer;
} known[KNOWN];
static int known_count;

// The methods in Python, and the attributes and arguments that are looked for.
static PyObject *python_close, *python_allocate;
static PyObject *allocates_name, *keep_name, *otherwise_name, *owner_name, *stream_name;

static int memory_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((memory *)self)->resource);
    Py_VISIT(((memory *)self)->keep);
    Py_VISIT(((memory *)self)->whole);
    return 0;
}

static int memory_clear(PyObject *self)
{
    Py_CLEAR(((memory *)self)->resource);
    return 0;
}

static void memory_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_XDECREF(((memory *)self)->resource);
    Py_XDECREF(((memory *)self)->size);
    Py_XDECREF(((memory *)self)->address);
    drop_handle(self);
    Py_XDECREF(((memory *)self)->keep);
    Py_XDECREF(((memory *)self)->whole);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyObject *memory_c_handle(PyObject *self, void *unused)
{
    PyObject *cdata = cdata_of(self);
    (void)unused;
    if (cdata == NULL && !PyErr_Occurred())
        PyErr_SetString(PyExc_AttributeError, "_c_handle");
    return cdata;
}

static PyMemberDef memory_members[] = {
    {"_mr", T_OBJECT_EX, offsetof(memory, resource), 0, NULL},
    {"_size", T_OBJECT_EX, offsetof(memory, size), 0, NULL},
    {"_packed_address", T_OBJECT_EX, offsetof(memory, address), 0, NULL},
    {"_keep", T_OBJECT_EX, offsetof(memory, keep), 0, NULL},
    {"_whole", T_OBJECT_EX, offsetof(memory, whole), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef memory_properties[] = {
    {"_c_handle", memory_c_handle, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot memory_slots[] = {
    {Py_tp_dealloc, memory_dealloc},
    {Py_tp_traverse, memory_traverse},
    {Py_tp_clear, memory_clear},
    {Py_tp_members, memory_members},
    {Py_tp_getset, memory_properties},
    {Py_tp_doc, "Has the handle of a buffer, and what is known of it."},
    {0, NULL},
};

static PyType_Spec memory_spec = {
    "cuda_core_cffi._calls.Memory",
    sizeof(memory),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    memory_slots,
};

// Find the arguments (size, stream=None), which are not looked at. -1: they are given in another way, or wrong.
static int read_request(PyObject *const *arguments, Py_ssize_t count, PyObject *names, PyObject **request)
{
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    if (count < 1 || count + named > 2 || (named && PyTuple_GetItem(names, 0) != stream_name))
        return -1;
    request[0] = arguments[0];
    request[1] = count + named == 2 ? arguments[1] : Py_None;
    return 0;
}

// Have a buffer keep a stream of another library, if that has an owner.
static int keep_stream(PyObject *buffer, PyObject *stream)
{
    PyObject *holder = PyObject_GetAttr(stream, owner_name);
    int result = holder == NULL ? -1 : holder == Py_None ? 0 : PyObject_SetAttr(buffer, keep_name, stream);
    Py_XDECREF(holder);
    return result;
}

// A buffer of a class for a handle.
static PyObject *make_buffer(PyObject *type, ccc_handle *handle, PyObject *resource, PyObject *size)
{
    PyObject *self = PyType_GenericAlloc((PyTypeObject *)type, 0);
    if (self) {
        ((owner *)self)->handle = handle;
        ((memory *)self)->resource = Py_NewRef(resource);
        ((memory *)self)->size = Py_NewRef(size);
    } else {
        Py_BEGIN_ALLOW_THREADS helpers->release_object(handle);
        Py_END_ALLOW_THREADS
    }
    return self;
}

static int is_memory_class(PyObject *type)
{
    return PyType_Check(type) && PyType_IsSubtype((PyTypeObject *)type, memory_type);
}

// The class of what a pool allocates. A new reference; NULL: it is none of ours.
static PyObject *class_of_buffers(PyObject *pool)
{
    for (int index = 0; index < known_count; ++index)
        if ((PyObject *)Py_TYPE(pool) == known[index].pool)
            return Py_NewRef(known[index].buffer);
    PyObject *type = PyObject_GetAttr(pool, allocates_name);
    if (type && !is_memory_class(type))
        Py_CLEAR(type);
    PyErr_Clear();
    return type;
}

// A buffer from a pool. NULL with no error set: Python has to look at the arguments, or *failed is set.
static PyObject *allocate_usual(PyObject *self, PyObject *given_size, PyObject *given_stream, int *failed)
{
    ccc_handle *handle, *pool = handle_of_owner(self, CCC_POOL), *stream = handle_of(given_stream, CCC_STREAM);
    if (pool == NULL || stream == NULL || !PyLong_CheckExact(given_size))
        return NULL;
    size_t size = PyLong_AsSize_t(given_size);
    if (size == (size_t)-1 && PyErr_Occurred()) {
        PyErr_Clear();
        return NULL;
    }
    PyObject *type = class_of_buffers(self);
    if (type == NULL)
        return NULL;
    Py_BEGIN_ALLOW_THREADS handle = helpers->pool_allocate(pool, stream, size);
    Py_END_ALLOW_THREADS *failed = handle == NULL;
    PyObject *buffer = handle ? make_buffer(type, handle, self, given_size) : NULL;
    Py_DECREF(type);
    if (buffer && helpers->is_borrowed(stream) && keep_stream(buffer, given_stream))
        Py_CLEAR(buffer);
    return buffer;
}

static PyObject *pool_allocate(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    PyObject *request[2];
    int failed = 0;
    if (read_request(arguments, count, names, request))
        return call_python(python_allocate, self, arguments, count, names);
    PyObject *buffer = allocate_usual(self, request[0], request[1], &failed);
    if (buffer || PyErr_Occurred())
        return buffer;
    return PyObject_CallMethodObjArgs(self, otherwise_name, request[0], request[1], failed ? Py_True : Py_False, NULL);
}

static PyObject *buffer_close(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    int closed, is_usual = names == NULL && (count == 0 || (count == 1 && arguments[0] == Py_None));
    ccc_handle *handle = is_usual ? HANDLE(self) : NULL;
    PyObject *address;
    if (handle == NULL)
        return call_python(python_close, self, arguments, count, names);
    int waiting = close_handle(handle, &closed);
    Py_BEGIN_CRITICAL_SECTION(self);  // as the member that shows it is read in
    address = ((memory *)self)->address;
    __atomic_store_n(&((memory *)self)->address, Py_NewRef(Py_None), __ATOMIC_RELEASE);
    Py_END_CRITICAL_SECTION();
    Py_XDECREF(address);
    if (waiting && report(waiting, 2))
        return NULL;
    Py_RETURN_NONE;
}

#define METHOD(name, function) {name, (PyCFunction)(void (*)(void))(function), METH_FASTCALL | METH_KEYWORDS, NULL}

static PyMethodDef memory_methods[] = {
    METHOD("close", buffer_close),
    METHOD("allocate", pool_allocate),
};

#undef METHOD

// Give a class a method of ours in place of its own, or of one that it inherits with the others that get it.
static PyObject *give(PyObject *type, PyTypeObject *base, PyMethodDef *definition, const char *signature,
                      PyObject **kept)
{
    if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, base))
        return PyErr_Format(PyExc_TypeError, "expected a subclass of %R", base);
    PyObject *method = PyObject_GetAttrString(type, definition->ml_name);
    int failed = method == NULL;
    if (method && *kept && method != *kept) {
        PyErr_Format(PyExc_TypeError, "%R has a method of its own: %s", type, definition->ml_name);
        failed = 1;
    }
    Py_XDECREF(method);
    return failed || stand_in(type, definition, signature, kept) ? NULL : Py_NewRef(type);
}

static PyObject *calls_buffer_class(PyObject *module, PyObject *type)
{
    (void)module;
    PyObject *done = give(type, memory_type, &memory_methods[0], "($self, stream=None)", &python_close);
    if (done && usual_type[CCC_BUFFER] == NULL)
        usual_type[CCC_BUFFER] = (PyTypeObject *)Py_NewRef(type);
    return done;
}

static PyObject *calls_pool_class(PyObject *module, PyObject *type)
{
    (void)module;
    PyObject *done = give(type, owner_type, &memory_methods[1], "($self, size, stream=None)", &python_allocate);
    PyObject *buffer = done ? PyObject_GetAttrString(type, "_BUFFER") : NULL;
    if (buffer && known_count < KNOWN && is_memory_class(buffer)) {
        known[known_count].pool = Py_NewRef(type);
        known[known_count++].buffer = Py_NewRef(buffer);
    }
    if (buffer == NULL)
        Py_CLEAR(done);
    Py_XDECREF(buffer);
    return done;
}

// Make the class, and the names that are looked for.
static int add_memory(PyObject *module)
{
    static const struct {
        PyObject **slot;
        const char *name;
    } names[] = {
        {&allocates_name, "_allocates"}, {&keep_name, "_keep"},    {&otherwise_name, "_allocate_otherwise"},
        {&owner_name, "_owner"},         {&stream_name, "stream"},
    };
    for (size_t index = 0; index < sizeof names / sizeof *names; ++index)
        if ((*names[index].slot = PyUnicode_InternFromString(names[index].name)) == NULL)
            return -1;
    PyObject *bases = PyTuple_Pack(1, owner_type);
    memory_type = bases ? (PyTypeObject *)PyType_FromSpecWithBases(&memory_spec, bases) : NULL;
    Py_XDECREF(bases);
    return memory_type ? PyModule_AddObjectRef(module, "Memory", (PyObject *)memory_type) : -1;
}

#endif
