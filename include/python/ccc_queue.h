/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of streams and events, for _calls.c: to record, to hold up, to wait, to ask, and to tell the time between. */
#ifndef CCC_QUEUE_H
#define CCC_QUEUE_H

#include "python/ccc_method.h"

/* The methods in Python, set when the classes get those in C. */
static PyObject *python_stream_record, *python_stream_wait, *python_stream_sync, *python_event_sync;
static PyObject *python_event_subtract, *python_event_is_done;

static PyObject *stream_record(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    int status;
    ccc_handle *stream = handle_of(self, CCC_STREAM);
    ccc_handle *event = count == 1 && !names ? handle_of(arguments[0], CCC_EVENT) : NULL;
    if (stream == NULL || event == NULL)
        return call_python(python_stream_record, self, arguments, count, names);
    Py_BEGIN_ALLOW_THREADS
    status = helpers->event_record(event, stream);
    Py_END_ALLOW_THREADS
    if (status)
        return raise_made(PyObject_CallMethod(self, "_failure", "iO", status, arguments[0]));
    return Py_NewRef(arguments[0]);
}

static PyObject *stream_wait(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    int status;
    int is_usual = count == 1 && !names;
    ccc_handle *stream = handle_of(self, CCC_STREAM), *event = is_usual ? handle_of(arguments[0], CCC_EVENT) : NULL;
    ccc_handle *other = is_usual && event == NULL ? handle_of(arguments[0], CCC_STREAM) : NULL;
    if (stream == NULL || (event == NULL && other == NULL))
        return call_python(python_stream_wait, self, arguments, count, names);
    Py_BEGIN_ALLOW_THREADS
    status = event ? helpers->stream_wait_event(stream, event) : helpers->stream_wait_stream(stream, other);
    Py_END_ALLOW_THREADS
    if (status)
        return raise_made(PyObject_CallMethod(self, "_failure", "iO", status, arguments[0]));
    Py_RETURN_NONE;
}

static PyObject *sync_with(PyObject *self, ccc_handle *handle, int (*helper)(const ccc_handle *handle),
                           PyObject *python)
{
    int status;
    if (handle == NULL)
        return call_python(python, self, NULL, 0, NULL);
    Py_BEGIN_ALLOW_THREADS
    status = helper(handle);
    Py_END_ALLOW_THREADS
    if (status)
        return PyObject_CallMethod(self, "_after_wait", "i", status);
    Py_RETURN_NONE;
}

static PyObject *stream_sync(PyObject *self, PyObject *unused)
{
    (void)unused;
    return sync_with(self, handle_of(self, CCC_STREAM), helpers->stream_sync, python_stream_sync);
}

static PyObject *event_sync(PyObject *self, PyObject *unused)
{
    (void)unused;
    return sync_with(self, handle_of(self, CCC_EVENT), helpers->event_sync, python_event_sync);
}

/* Whether an event was reached: the getter of a property. */
static PyObject *event_is_done(PyObject *unused, PyObject *self)
{
    int status;
    (void)unused;
    const ccc_handle *event = handle_of(self, CCC_EVENT);
    if (event == NULL)
        return PyObject_CallFunctionObjArgs(python_event_is_done, self, NULL);
    Py_BEGIN_ALLOW_THREADS /* the driver may wait for a lock that another thread has for long */
    status = helpers->event_query(event);
    Py_END_ALLOW_THREADS
    if (status == 0)
        Py_RETURN_TRUE;
    if (status == CCC_NOT_READY)
        Py_RETURN_FALSE;
    return PyObject_CallMethod(self, "_after_query", "i", status);
}

static PyObject *event_subtract(PyObject *self, PyObject *other)
{
    double milliseconds;
    const ccc_handle *start = handle_of(other, CCC_EVENT), *end = handle_of(self, CCC_EVENT);
    if (start == NULL || end == NULL)
        return PyObject_CallFunctionObjArgs(python_event_subtract, self, other, NULL);
    Py_BEGIN_ALLOW_THREADS
    milliseconds = helpers->event_elapsed(start, end);
    Py_END_ALLOW_THREADS
    if (milliseconds == milliseconds) /* not NaN */
        return PyFloat_FromDouble(milliseconds);
    return raise_made(PyObject_CallMethod(self, "_elapsed_failure", "O", other));
}

#endif
