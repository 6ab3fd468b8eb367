// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Methods of streams, events and graphs, for _calls.c: to record, to hold up, to wait, to ask, to tell the time
// between, and to launch.
#ifndef CCC_QUEUE_H
#define CCC_QUEUE_H

#include "python/ccc_method.h"

// The methods in Python, set when the classes get those in C.
static PyObject *python_stream_record, *python_stream_wait, *python_stream_sync, *python_event_sync;
static PyObject *python_event_subtract, *python_event_is_done, *python_graph_launch;

static PyObject *stream_record(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    int status;
    ccc_handle *stream = HANDLE(self);
    ccc_handle *event = count == 1 && !names ? handle_of(arguments[0], CCC_EVENT) : NULL;
    if (stream == NULL || event == NULL || !hold_both(stream, event))
        return call_python(python_stream_record, self, arguments, count, names);
    Py_BEGIN_ALLOW_THREADS status = helpers->event_record_in(event, stream);
    Py_END_ALLOW_THREADS let_go_of_both(stream, event);
    if (status)
        return raise_made(PyObject_CallMethod(self, "_failure", "iO", status, arguments[0]));
    return Py_NewRef(arguments[0]);
}

static PyObject *stream_wait(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    int status;
    int is_usual = count == 1 && !names;
    ccc_handle *stream = HANDLE(self), *event = is_usual ? handle_of(arguments[0], CCC_EVENT) : NULL;
    ccc_handle *other = is_usual && event == NULL ? handle_of(arguments[0], CCC_STREAM) : NULL;
    if (stream == NULL || (event == NULL && other == NULL) || !hold_both(stream, event ? event : other))
        return call_python(python_stream_wait, self, arguments, count, names);
    Py_BEGIN_ALLOW_THREADS status =
        event ? helpers->stream_wait_event_in(stream, event) : helpers->stream_wait_stream_in(stream, other);
    Py_END_ALLOW_THREADS let_go_of_both(stream, event ? event : other);
    if (status)
        return raise_made(PyObject_CallMethod(self, "_failure", "iO", status, arguments[0]));
    Py_RETURN_NONE;
}

static PyObject *sync_with(PyObject *self, int (*helper)(const ccc_handle *handle), PyObject *python)
{
    int status;
    ccc_handle *handle = HANDLE(self);
    if (handle == NULL || !hold(handle))
        return call_python(python, self, NULL, 0, NULL);
    Py_BEGIN_ALLOW_THREADS status = helper(handle);
    Py_END_ALLOW_THREADS let_go(handle);
    if (status)
        return PyObject_CallMethod(self, "_after_wait", "i", status);
    Py_RETURN_NONE;
}

static PyObject *stream_sync(PyObject *self, PyObject *unused)
{
    (void)unused;
    return sync_with(self, helpers->stream_sync_in, python_stream_sync);
}

static PyObject *event_sync(PyObject *self, PyObject *unused)
{
    (void)unused;
    return sync_with(self, helpers->event_sync_in, python_event_sync);
}

static PyObject *graph_launch(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    int status;
    PyObject *behind = NULL;
    ccc_handle *executable = HANDLE(self);
    ccc_handle *stream = count == 1 && !names ? stream_of(arguments[0], &behind) : NULL;
    if (executable == NULL || stream == NULL || !hold(stream)) {
        Py_XDECREF(behind);
        return call_python(python_graph_launch, self, arguments, count, names);
    }
    Py_BEGIN_ALLOW_THREADS status = helpers->graph_launch_in(executable, stream);
    Py_END_ALLOW_THREADS let_go(stream);
    Py_XDECREF(behind);
    if (status)
        return raise_made(PyObject_CallMethod(self, "_failure", "iO", status, arguments[0]));
    Py_RETURN_NONE;
}

// Whether an event was reached.
static PyObject *event_is_done(PyObject *self, void *unused)
{
    int status;
    (void)unused;
    ccc_handle *event = HANDLE(self);
    if (event == NULL || !hold(event))
        return PyObject_CallFunctionObjArgs(python_event_is_done, self, NULL);
    Py_BEGIN_ALLOW_THREADS  // the driver may wait for a lock that another thread has for long
        status = helpers->event_query_in(event);
    Py_END_ALLOW_THREADS let_go(event);
    if (status == 0)
        Py_RETURN_TRUE;
    if (status == CCC_NOT_READY)
        Py_RETURN_FALSE;
    return PyObject_CallMethod(self, "_after_query", "i", status);
}

// What can be subtracted from one another: a base class in C, because an operator that is written in Python, or put
// into a class as a method, is looked up by its name each time.
static PyTypeObject *timed_type;

static PyObject *timed_subtract(PyObject *end, PyObject *start)
{
    double milliseconds;
    ccc_handle *from = handle_of(start, CCC_EVENT), *to = handle_of(end, CCC_EVENT);
    if (from == NULL || to == NULL || !hold_both(from, to)) {
        if (python_event_subtract == NULL || !PyObject_TypeCheck(end, timed_type))
            Py_RETURN_NOTIMPLEMENTED;
        return PyObject_CallFunctionObjArgs(python_event_subtract, end, start, NULL);
    }
    Py_BEGIN_ALLOW_THREADS milliseconds = helpers->event_elapsed_in(from, to);
    Py_END_ALLOW_THREADS let_go_of_both(from, to);
    if (milliseconds == milliseconds)  // not NaN
        return PyFloat_FromDouble(milliseconds);
    return raise_made(PyObject_CallMethod(end, "_elapsed_failure", "O", start));
}

static PyType_Slot timed_slots[] = {
    {Py_nb_subtract, timed_subtract},
    {Py_tp_doc, "What has a time, of which another one can be subtracted."},
    {0, NULL},
};

static PyType_Spec timed_spec = {
    "cuda_core_cffi._calls.Timed", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, timed_slots,
};

static int add_timed(PyObject *module)
{
    PyObject *bases = PyTuple_Pack(1, owner_type);
    timed_type = bases ? (PyTypeObject *)PyType_FromSpecWithBases(&timed_spec, bases) : NULL;
    Py_XDECREF(bases);
    return timed_type ? PyModule_AddObjectRef(module, "Timed", (PyObject *)timed_type) : -1;
}

static PyGetSetDef is_done_property = {"is_done", event_is_done, NULL, NULL, NULL};

// Put the getter in C in the place of that of Event.is_done, whose documentation it takes over.
static int use_fast_query(PyObject *class)
{
    PyObject *property = PyObject_GetAttrString(class, is_done_property.name);
    PyObject *get = property ? PyObject_GetAttrString(property, "fget") : NULL;  // this and the text are never released
    PyObject *text = get ? PyObject_GetAttrString(property, "__doc__") : NULL;
    is_done_property.doc = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    PyObject *made = is_done_property.doc ? PyDescr_NewGetSet((PyTypeObject *)class, &is_done_property) : NULL;
    Py_XDECREF(property);
    if (made == NULL) {
        Py_XDECREF(get);
        Py_XDECREF(text);
        return -1;
    }
    python_event_is_done = get;
    int result = PyObject_SetAttrString(class, is_done_property.name, made);
    Py_DECREF(made);
    return result;
}

// Put the operator in C in the place of Event.__sub__. Both names belong to it: one in Python would bring it back to
// Python.
static int use_fast_subtraction(PyObject *class)
{
    static const char *const names[] = {"__sub__", "__rsub__"};
    python_event_subtract = PyObject_GetAttrString(class, names[0]);  // never released
    int failed = python_event_subtract == NULL;
    for (size_t index = 0; index < sizeof names / sizeof *names && !failed; ++index) {
        PyObject *made = PyObject_GetAttrString((PyObject *)timed_type, names[index]);
        failed = made == NULL || PyObject_SetAttrString(class, names[index], made);
        Py_XDECREF(made);
    }
    return failed ? -1 : 0;
}

#endif
