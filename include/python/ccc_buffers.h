// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Buffers, for _calls.c: the fields beside the handle, and the methods that allocate, close, fill, copy and export.
//
// The cdata of a buffer's handle is made when somebody asks for it: most buffers go without.
#ifndef CCC_BUFFERS_H
#define CCC_BUFFERS_H

#include <limits.h>
#include <stddef.h>

#include "python/ccc_capsule.h"
#include "python/ccc_native.h"

typedef struct memory {
    owner owner;
    PyObject *resource;
    PyObject *size;
    PyObject *referenced, *whole;  // objects that the memory needs until it is freed: released here after the handle
} memory;

#define LARGEST_BYTE 255

static PyTypeObject *memory_type;

NATIVE(pool_allocate, "MemPool.allocate", "($self, size, stream=None)", NULL);
NATIVE(buffer_close, "Buffer.close", "($self, stream=None)", &usual_type[CCC_BUFFER]);
NATIVE(buffer_fill, "Buffer.fill", "($self, value, width=None, *, stream)", NULL);
NATIVE(buffer_copy_from, "Buffer.copy_from", "($self, src, *, stream, options=None)", NULL);
NATIVE(buffer_copy_to, "Buffer.copy_to", "($self, dst=None, *, stream, options=None)", NULL);

// The names of attributes: what a buffer keeps, and the class of the buffers of a pool; the resource of a buffer, and
// what DLPack calls its memory.
static PyObject *referenced_name, *allocates_name, *resource_name, *device_name;

enum { STREAM, MAX_VERSION, DL_DEVICE, COPY, KEYWORDS };
static PyObject *keywords[KEYWORDS];

// Read an integer that is nothing more. -1, with no error set: it is not.
static int read_plain(PyObject *number, long long *value)
{
    if (!PyLong_CheckExact(number))
        return -1;
    *value = PyLong_AsLongLong(number);
    if (*value != -1 || !PyErr_Occurred())
        return 0;
    PyErr_Clear();
    return -1;
}

static int memory_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((memory *)self)->resource);
    Py_VISIT(((memory *)self)->referenced);
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
    release_handle(self);
    Py_XDECREF(((memory *)self)->referenced);
    Py_XDECREF(((memory *)self)->whole);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyObject *memory_c_handle(PyObject *self, void *unused) { return handle_or_error(self) ? cdata_of(self) : NULL; }

static PyMemberDef memory_members[] = {
    {"_mr", T_OBJECT_EX, offsetof(memory, resource), 0, NULL},
    {"_size", T_OBJECT_EX, offsetof(memory, size), 0, NULL},
    {"_keep", T_OBJECT_EX, offsetof(memory, referenced), 0, NULL},
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

// Have a buffer keep a stream of another library, if that has an owner.
static int keep_stream(PyObject *buffer, PyObject *stream)
{
    PyObject *owner = PyObject_GetAttr(stream, owner_name);
    int result = owner == NULL ? -1 : owner == Py_None ? 0 : PyObject_SetAttr(buffer, referenced_name, stream);
    Py_XDECREF(owner);
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

#ifdef Py_GIL_DISABLED
#define class_of_buffers(pool) PyObject_GetAttr(pool, allocates_name)
#else
// The class of the buffers that a pool allocates. It is cached for the last class of pools. A new reference.
static PyObject *class_of_buffers(PyObject *pool)
{
    static PyTypeObject *pools;
    static PyObject *buffers;
    if (Py_TYPE(pool) != pools) {
        PyObject *found = PyObject_GetAttr(pool, allocates_name), *before[] = {(PyObject *)pools, buffers};
        if (found == NULL)
            return NULL;
        pools = (PyTypeObject *)Py_NewRef(Py_TYPE(pool));
        buffers = found;
        Py_XDECREF(before[0]);
        Py_XDECREF(before[1]);
    }
    return Py_NewRef(buffers);
}
#endif

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
    if (type == NULL || !PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, memory_type)) {
        Py_XDECREF(type);
        return NULL;
    }
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
    const Py_ssize_t named = names ? PyTuple_Size(names) : 0, given = count + named;  // size and perhaps stream
    int failed = 0, is_usual = count > 0 && given <= 2 && (!named || PyTuple_GetItem(names, 0) == keywords[STREAM]);
    PyObject *stream = is_usual && given == 2 ? arguments[1] : Py_None;
    PyObject *buffer = is_usual ? allocate_usual(self, arguments[0], stream, &failed) : NULL;
    if (buffer || PyErr_Occurred())
        return buffer;
    if (failed)
        return call_failed(&native_pool_allocate, helpers->last_status(), self, arguments, count, names);
    return call_body(&native_pool_allocate, self, arguments, count, names);
}

static PyObject *buffer_close(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    int closed, is_usual = names == NULL && (count == 0 || (count == 1 && arguments[0] == Py_None));
    ccc_handle *handle = is_usual ? HANDLE(self) : NULL;
    if (handle == NULL)
        return call_body(&native_buffer_close, self, arguments, count, names);
    int waiting = close_handle(handle, &closed);
    if (waiting && report(waiting, 2))
        return NULL;
    Py_RETURN_NONE;
}

// The stream of a call (value, *, stream) with one value. NULL, with no error set: the arguments are others.
static ccc_handle *stream_of_call(PyObject *const *arguments, Py_ssize_t count, PyObject *names, PyObject **behind)
{
    *behind = NULL;
    if (count != 1 || names == NULL || PyTuple_Size(names) != 1 || PyTuple_GetItem(names, 0) != keywords[STREAM])
        return NULL;
    return stream_of(arguments[1], behind);
}

// Read a byte. Returns -1, with no error set, for another value.
static long byte_of(PyObject *given)
{
    long long value;
    return read_plain(given, &value) == 0 && value >= 0 && value <= LARGEST_BYTE ? (long)value : -1;
}

static PyObject *buffer_fill(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    int status;
    PyObject *behind;
    ccc_handle *buffer = handle_of(self, CCC_BUFFER), *stream = stream_of_call(arguments, count, names, &behind);
    long value = buffer && stream ? byte_of(arguments[0]) : -1;
    if (value < 0 || !begin_both_uses(buffer, stream)) {
        Py_XDECREF(behind);
        return call_body(&native_buffer_fill, self, arguments, count, names);
    }
    Py_BEGIN_ALLOW_THREADS status = helpers->fill_in(buffer, stream, (uint32_t)value, 1);
    Py_END_ALLOW_THREADS end_both_uses(buffer, stream);
    Py_XDECREF(behind);
    return result_of(&native_buffer_fill, status, Py_None, self, arguments, count, names);
}

#define UNUSUAL INT_MIN  // no status: nothing was done

// Copy a buffer into one of the same size. Returns a status, or UNUSUAL.
static int copy_whole(ccc_handle *destination, ccc_handle *source, ccc_handle *stream)
{
    int status;
    if (destination == NULL || source == NULL || stream == NULL ||
        helpers->bytes(destination) != helpers->bytes(source))
        return UNUSUAL;
    ccc_handle *const all[] = {destination, source, stream};
    if (!begin_uses(all, 3))
        return UNUSUAL;
    Py_BEGIN_ALLOW_THREADS status = helpers->copy_in(destination, source, stream);
    Py_END_ALLOW_THREADS end_uses(all, 3);
    return status;
}

// Copy between a buffer and the first argument: into the buffer, or out of it.
static PyObject *copy_between(const native *native, int is_into, PyObject *self, PyObject *const *arguments,
                              Py_ssize_t count, PyObject *names)
{
    PyObject *behind;
    ccc_handle *stream = stream_of_call(arguments, count, names, &behind);
    ccc_handle *own = handle_of(self, CCC_BUFFER), *other = stream ? handle_of(arguments[0], CCC_BUFFER) : NULL;
    int status = is_into ? copy_whole(own, other, stream) : copy_whole(other, own, stream);
    Py_XDECREF(behind);
    if (status == UNUSUAL)
        return call_body(native, self, arguments, count, names);
    return result_of(native, status, is_into ? Py_None : arguments[0], self, arguments, count, names);
}

static PyObject *buffer_copy_from(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    return copy_between(&native_buffer_copy_from, 1, self, arguments, count, names);
}

static PyObject *buffer_copy_to(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    return copy_between(&native_buffer_copy_to, 0, self, arguments, count, names);
}

// DLPack

NATIVE(buffer_dlpack, "Exporter.__dlpack__", "($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)",
       NULL);
NATIVE_PLAIN(buffer_dlpack_device, "Exporter.__dlpack_device__", NULL);

// What DLPack calls the memory of a buffer, if its resource knows; else NULL, with no error set.
static PyObject *device_of(PyObject *buffer)
{
    PyObject *resource = PyObject_GetAttr(buffer, resource_name);
    PyObject *device = resource && resource != Py_None ? PyObject_GetAttr(resource, device_name) : NULL;
    Py_XDECREF(resource);
    if (device && !(PyTuple_CheckExact(device) && PyTuple_Size(device) == 2))
        Py_CLEAR(device);
    if (device == NULL)
        PyErr_Clear();
    return device;
}

// Sort keyword arguments; those that are not given are None. -1: there are others.
static int sort_keywords(PyObject *const *arguments, PyObject *names, PyObject **sorted)
{
    Py_ssize_t count = names ? PyTuple_Size(names) : 0;
    for (int which = 0; which < KEYWORDS; ++which)
        sorted[which] = Py_None;
    for (Py_ssize_t index = 0; index < count; ++index) {
        PyObject *name = PyTuple_GetItem(names, index);
        int which = 0;
        while (which < KEYWORDS && name != keywords[which])
            ++which;
        if (which == KEYWORDS)  // the names that NumPy gives are not interned
            for (which = 0; which < KEYWORDS; ++which)
                if (PyUnicode_Compare(name, keywords[which]) == 0)
                    break;
        if (which == KEYWORDS)
            return -1;
        sorted[which] = arguments[index];
    }
    return 0;
}

// Make the capsule for a buffer. Returns NULL with no error set if the arguments are not usual, Python has a part in
// it, or the work failed with *status.
static PyObject *export_usual(PyObject *self, PyObject *const *given, PyObject *device, int *status)
{
    long long major = 0, stream = 0, kind, ordinal;
    uint64_t tensor;
    ccc_handle *handle = HANDLE(self);
    PyObject *version = given[MAX_VERSION];
    if (read_plain(PyTuple_GetItem(device, 0), &kind) || read_plain(PyTuple_GetItem(device, 1), &ordinal) ||
        given[DL_DEVICE] != Py_None || (given[COPY] != Py_None && given[COPY] != Py_False) || kind == CCC_DL_CPU)
        return NULL;
    if (version != Py_None &&
        (!PyTuple_CheckExact(version) || PyTuple_Size(version) == 0 || read_plain(PyTuple_GetItem(version, 0), &major)))
        return NULL;
    if (given[STREAM] == Py_None)
        stream = kind == CCC_DL_CUDA_HOST ? 0 : CCC_DL_LEGACY_STREAM;
    else if (read_plain(given[STREAM], &stream) || stream < -1 || stream == 0)
        return NULL;
    const DLDevice place = {(int32_t)kind, (int32_t)ordinal};
    const uint64_t consumer = stream == -1 ? 0 : (uint64_t)stream;
    if (consumer == 0) {  // without a call of the driver
        tensor = helpers->tensor_for(handle, place, major >= 1, 0, status);
    } else {
        Py_BEGIN_ALLOW_THREADS tensor = helpers->tensor_for(handle, place, major >= 1, consumer, status);
        Py_END_ALLOW_THREADS
    }
    return tensor ? ccc_capsule_of(tensor, major >= 1) : NULL;
}

static PyObject *buffer_dlpack(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    PyObject *given[KEYWORDS], *capsule = NULL;
    int status = 0;
    int is_usual = handle_of(self, CCC_BUFFER) && count == 0 && sort_keywords(arguments, names, given) == 0;
    PyObject *device = is_usual ? device_of(self) : NULL;
    if (device) {
        capsule = export_usual(self, given, device, &status);
        Py_DECREF(device);
    }
    if (status)
        return call_failed(&native_buffer_dlpack, status, self, arguments, count, names);
    return capsule || PyErr_Occurred() ? capsule : call_body(&native_buffer_dlpack, self, arguments, count, names);
}

static PyObject *buffer_dlpack_device(PyObject *self, PyObject *unused)
{
    PyObject *device = device_of(self);
    return device ? device : call_body(&native_buffer_dlpack_device, self, NULL, 0, NULL);
}

#endif
