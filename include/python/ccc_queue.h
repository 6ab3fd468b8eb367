// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Methods of streams, events and graphs, for _calls.c: record, wait, sync, query, elapsed time and graph launch.
#ifndef CCC_QUEUE_H
#define CCC_QUEUE_H

#include "python/ccc_native.h"

NATIVE(stream_record, "Stream.record", "($self, /, event=None, options=None)", NULL);
NATIVE(stream_wait, "Stream.wait", "($self, /, event_or_stream)", NULL);
NATIVE_PLAIN(stream_sync, "Stream.sync", &usual_type[CCC_STREAM]);
NATIVE_PLAIN(event_sync, "Event.sync", &usual_type[CCC_EVENT]);
NATIVE_PROPERTY(event_is_done, "Event.is_done");
NATIVE(graph_launch, "Graph.launch", "($self, /, stream)", NULL);

// The base of events, for the operator alone: one that is written in Python, or put into a class as a method, is looked
// up by its name each time. Both names belong to it: one in Python would bring it back to Python.
static PyTypeObject *operand_type;
static native native_event_sub = {.name = "Event.__sub__", .base = &operand_type};
static native native_event_rsub = {.name = "Event.__rsub__", .base = &operand_type};

static PyObject *stream_record(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    int status;
    ccc_handle *stream = HANDLE(self);
    ccc_handle *event = count == 1 && !names ? handle_of(arguments[0], CCC_EVENT) : NULL;
    if (stream == NULL || event == NULL || !begin_both_uses(stream, event))
        return call_body(&native_stream_record, self, arguments, count, names);
    Py_BEGIN_ALLOW_THREADS status = helpers->event_record_in(event, stream);
    Py_END_ALLOW_THREADS end_both_uses(stream, event);
    return result_of(&native_stream_record, status, arguments[0], self, arguments, count, names);
}

static PyObject *stream_wait(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    int status;
    int is_usual = count == 1 && !names;
    ccc_handle *stream = HANDLE(self), *event = is_usual ? handle_of(arguments[0], CCC_EVENT) : NULL;
    ccc_handle *other = is_usual && event == NULL ? handle_of(arguments[0], CCC_STREAM) : NULL;
    if (stream == NULL || (event == NULL && other == NULL) || !begin_both_uses(stream, event ? event : other))
        return call_body(&native_stream_wait, self, arguments, count, names);
    Py_BEGIN_ALLOW_THREADS status =
        event ? helpers->stream_wait_event_in(stream, event) : helpers->stream_wait_stream_in(stream, other);
    Py_END_ALLOW_THREADS end_both_uses(stream, event ? event : other);
    return result_of(&native_stream_wait, status, Py_None, self, arguments, count, names);
}

static PyObject *sync_with(PyObject *self, int (*helper)(const ccc_handle *handle), const native *native)
{
    int status;
    ccc_handle *handle = HANDLE(self);
    if (handle == NULL || !begin_use(handle))
        return call_body(native, self, NULL, 0, NULL);
    Py_BEGIN_ALLOW_THREADS status = helper(handle);
    Py_END_ALLOW_THREADS end_use(handle);
    return result_of(native, status, Py_None, self, NULL, 0, NULL);
}

static PyObject *stream_sync(PyObject *self, PyObject *unused)
{
    return sync_with(self, helpers->stream_sync_in, &native_stream_sync);
}

static PyObject *event_sync(PyObject *self, PyObject *unused)
{
    return sync_with(self, helpers->event_sync_in, &native_event_sync);
}

static PyObject *graph_launch(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    int status;
    PyObject *behind = NULL;
    ccc_handle *executable = HANDLE(self);
    ccc_handle *stream = count == 1 && !names ? stream_of(arguments[0], &behind) : NULL;
    if (executable == NULL || stream == NULL || !begin_use(stream)) {
        Py_XDECREF(behind);
        return call_body(&native_graph_launch, self, arguments, count, names);
    }
    Py_BEGIN_ALLOW_THREADS status = helpers->graph_launch_in(executable, stream);
    Py_END_ALLOW_THREADS end_use(stream);
    Py_XDECREF(behind);
    return result_of(&native_graph_launch, status, Py_None, self, arguments, count, names);
}

static PyObject *event_is_done(PyObject *self, void *unused)
{
    int status;
    ccc_handle *event = HANDLE(self);
    if (event == NULL || !begin_use(event))
        return call_body(&native_event_is_done, self, NULL, 0, NULL);
    Py_BEGIN_ALLOW_THREADS  // the driver may wait for a lock that another thread has for long
        status = helpers->event_query_in(event);
    Py_END_ALLOW_THREADS end_use(event);
    if (status == 0)
        Py_RETURN_TRUE;
    if (status == CCC_NOT_READY)
        Py_RETURN_FALSE;
    return call_failed(&native_event_is_done, status, self, NULL, 0, NULL);
}

static PyObject *operand_subtract(PyObject *end, PyObject *start)
{
    double milliseconds;
    ccc_handle *from = handle_of(start, CCC_EVENT), *to = handle_of(end, CCC_EVENT);
    if (from == NULL || to == NULL || !begin_both_uses(from, to)) {
        if (native_event_sub.body == NULL || !PyObject_TypeCheck(end, operand_type))
            Py_RETURN_NOTIMPLEMENTED;
        return call_body(&native_event_sub, end, &start, 1, NULL);
    }
    Py_BEGIN_ALLOW_THREADS milliseconds = helpers->event_elapsed_in(from, to);
    Py_END_ALLOW_THREADS end_both_uses(from, to);
    if (milliseconds == milliseconds)  // not NaN
        return PyFloat_FromDouble(milliseconds);
    return call_failed(&native_event_sub, helpers->last_status(), end, &start, 1, NULL);
}

static PyType_Slot operand_slots[] = {
    {Py_nb_subtract, operand_subtract},
    {Py_tp_doc, "An operand of the elapsed time between two events."},
    {0, NULL},
};

static PyType_Spec operand_spec = {
    "cuda_core_cffi._calls.ElapsedOperand", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, operand_slots,
};

#endif
