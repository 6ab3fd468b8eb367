// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The devices of a thread, for _calls.c. Most calls of the class find the device that the thread has already: that
// takes less than it does to get to a method in Python. The others go to _find of the class.
#ifndef CCC_DEVICES_H
#define CCC_DEVICES_H

#include <stddef.h>

#include "python/ccc_native.h"

NATIVE(device_create_event, "Device.create_event", "($self, /, options=None)", NULL);
NATIVE(device_create_stream, "Device.create_stream", "($self, /, obj=None, options=None)", NULL);
NATIVE(device_set_current, "Device.set_current", "($self, /, ctx=None)", NULL);

typedef struct device {
    PyObject_HEAD int ordinal;
} device;

static PyTypeObject *finder_type;
static PyObject *devices_name, *find_name, *last_failure;

// This thread's devices by their ordinals. Borrowed; NULL: an error is set.
static PyObject *devices_of_thread(void)
{
    PyObject *of_thread = PyThreadState_GetDict();
    PyObject *devices = of_thread ? PyDict_GetItemWithError(of_thread, devices_name) : PyErr_NoMemory();
    if (devices || PyErr_Occurred())
        return devices;
    devices = PyDict_New();
    int failed = devices == NULL || PyDict_SetItem(of_thread, devices_name, devices);
    Py_XDECREF(devices);
    return failed ? NULL : devices;
}

static PyObject *calls_thread_devices(PyObject *module, PyObject *unused) { return Py_XNewRef(devices_of_thread()); }

#define NONE_CURRENT (-1)  // or not known yet; less is a failure

// The ordinal that is asked for, by an int, or by nothing or None. NULL: that is for Python, or an error is set.
static PyObject *ordinal_of(PyObject *arguments, PyObject *names)
{
    Py_ssize_t count = names && PyDict_Size(names) ? 2 : PyTuple_Size(arguments);
    PyObject *given = count == 0 ? Py_None : count == 1 ? PyTuple_GetItem(arguments, 0) : NULL;
    if (given && PyLong_CheckExact(given))  // False and 0.0 equal 0, but are no ordinals
        return Py_NewRef(given);
    int now = given == Py_None ? helpers->device_now() : -1;
    if (now < NONE_CURRENT)
        return raise_made(PyObject_CallFunction(last_failure, NULL));
    return now >= 0 ? PyLong_FromLong(now) : NULL;
}

static PyObject *finder_new(PyTypeObject *type, PyObject *arguments, PyObject *names)
{
    PyObject *ordinal = ordinal_of(arguments, names), *devices = ordinal ? devices_of_thread() : NULL;
    PyObject *found = devices ? Py_XNewRef(PyDict_GetItemWithError(devices, ordinal)) : NULL;
    Py_XDECREF(ordinal);
    if (found || PyErr_Occurred())
        return found;
    PyObject *find = PyObject_GetAttr((PyObject *)type, find_name);
    if (find)
        found = PyObject_Call(find, arguments, names);
    Py_XDECREF(find);
    return found;
}

static PyObject *device_create_event(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    ccc_handle *handle;
    if (count || names || usual_type[CCC_EVENT] == NULL)
        return call_body(&native_device_create_event, self, arguments, count, names);
    Py_BEGIN_ALLOW_THREADS handle = helpers->event_create(((device *)self)->ordinal, helpers->event_flags);
    Py_END_ALLOW_THREADS return handle
        ? make_owner(usual_type[CCC_EVENT], handle)
        : call_failed(&native_device_create_event, helpers->last_status(), self, arguments, count, names);
}

static PyObject *device_create_stream(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    ccc_handle *handle;
    if (count || names || usual_type[CCC_STREAM] == NULL)
        return call_body(&native_device_create_stream, self, arguments, count, names);
    Py_BEGIN_ALLOW_THREADS handle = helpers->stream_create(((device *)self)->ordinal, helpers->stream_flags, 0);
    Py_END_ALLOW_THREADS if (handle == NULL) return call_failed(&native_device_create_stream, helpers->last_status(),
                                                                self, arguments, count, names);
    PyObject *stream = make_owner(usual_type[CCC_STREAM], handle);
    if (stream && PyObject_SetAttr(stream, owner_name, Py_None))
        Py_CLEAR(stream);
    return stream;
}

static PyObject *device_set_current(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    int status;
    if (count || names)
        return call_body(&native_device_set_current, self, arguments, count, names);
    Py_BEGIN_ALLOW_THREADS status = helpers->device_set_current(((device *)self)->ordinal);
    Py_END_ALLOW_THREADS return result_of(&native_device_set_current, status, Py_None, self, arguments, count, names);
}

static PyMemberDef finder_members[] = {
    {"_device_id", T_INT, offsetof(device, ordinal), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot finder_slots[] = {
    {Py_tp_new, finder_new},
    {Py_tp_members, finder_members},
    {Py_tp_doc, "Finds the device that the thread has, and has its ordinal."},
    {0, NULL},
};

static PyType_Spec finder_spec = {
    "cuda_core_cffi._calls.DeviceFinder", sizeof(device), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, finder_slots,
};

#endif
