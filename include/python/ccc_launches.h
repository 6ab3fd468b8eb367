// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Launches for _calls.c, prepared or not, with what a packer packs.
#ifndef CCC_LAUNCHES_H
#define CCC_LAUNCHES_H

#include "python/ccc_packer.h"

static int check_tuple(PyObject *values)
{
    if (PyTuple_Check(values))
        return 0;
    PyErr_SetString(PyExc_TypeError, "expected a tuple");
    return -1;
}

// Launch with arguments that are stored. 0: it was tried, with this status; 1: nothing was done, something is closed.
static int launch_stored(const packer *packer, const ccc_config *config, ccc_handle *kernel, ccc_handle *stream,
                         const char *packed, ccc_handle *const *objects, int *status)
{
    if (!begin_both_uses(stream, kernel))
        return 1;
    int calls = begin_uses(objects, packer->objects);
    if (calls) {
        Py_BEGIN_ALLOW_THREADS *status =
            helpers->launch_in(config, kernel, stream, packed, packer->size, objects, (size_t)packer->objects);
        Py_END_ALLOW_THREADS end_uses(objects, packer->objects);
    }
    end_both_uses(stream, kernel);
    return !calls;
}

// Launch with arguments that are in a tuple, or else in an array, in the order of a stream. 0: it was tried, with this
// status; 1: nothing was done, Python has to look at it; -1: an exception is set.
static int launch_with(const packer *packer, const ccc_config *config, PyObject *in, PyObject *tuple,
                       PyObject *const *array, int *status)
{
    _Alignas(16) char stack[STACK_SIZE];
    ccc_handle **handles = NULL;
    ccc_handle *stream = handle_of(in, CCC_STREAM);
    if (stream == NULL)
        return 1;
    char *packed = memory_for(packer, stack, &handles);
    if (packed == NULL)
        return -1;
    int stored = store_all(packer, tuple, array, packed, handles);
    if (stored == 0)
        stored = launch_stored(packer, config, ((const ccc_target *)packer->native)->kernel, stream, packed, handles,
                               status);
    if (packed != stack)
        PyMem_Free(packed);
    return stored;
}

// The same for a launch that is not prepared. The kernel may have no packer yet, and the configuration nothing native.
static int launch_plain(PyObject *with, PyObject *native, PyObject *in, PyObject *tuple, PyObject *const *array,
                        Py_ssize_t count, int *status)
{
    if (with == Py_None || native == Py_None)
        return 1;
    const packer *packer = packer_for(with);
    const ccc_config *config = packer ? pointer_of(native, config_ctype) : NULL;
    if (config == NULL)
        return -1;
    return count == packer->count ? launch_with(packer, config, in, tuple, array, status) : 1;
}

static PyObject *calls_launch(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    int status;
    if (check_count("launch", count, 4))
        return NULL;
    if (check_tuple(arguments[3]))
        return NULL;
    int done =
        launch_plain(arguments[0], arguments[2], arguments[1], arguments[3], NULL, PyTuple_Size(arguments[3]), &status);
    if (done == 0)
        return PyLong_FromLong(status);
    return done < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *calls_pack(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    packer *packer = check_count("pack", count, 2) ? NULL : packer_for(arguments[0]);
    if (packer == NULL || check_tuple(arguments[1]))
        return NULL;
    if (PyTuple_Size(arguments[1]) != packer->count)
        Py_RETURN_NONE;
    PyObject *data = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)packer->size);
    int stored = data ? store_all(packer, arguments[1], NULL, PyBytes_AsString(data), NULL) : -1;
    if (stored == 0)
        return data;
    Py_XDECREF(data);
    return stored < 0 ? NULL : Py_NewRef(Py_None);
}

// What is not on the fast path: call a method of the plan with something and the arguments.
static PyObject *on_slow_path(const packer *packer, const char *method, PyObject *first, PyObject *const *arguments,
                              Py_ssize_t count)
{
    if (packer->plan == NULL)
        return PyErr_Format(PyExc_RuntimeError, "this prepared launch is being collected");
    PyObject *function = PyObject_GetAttrString(packer->plan, method);
    PyObject *result = function ? call_python(function, &first, 1, arguments, count, NULL) : NULL;
    Py_XDECREF(function);
    return result;
}

NATIVE(launch_usual, "launch", "(stream, config, kernel, *kernel_args)", NULL);

// The names of attributes of kernels and configurations.
static PyObject *packer_name, *native_name;

static PyObject *launch_usual(PyObject *unused, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    int status;
    if (count >= 3 && names == NULL) {
        PyObject *packer = PyObject_GetAttr(arguments[2], packer_name);
        PyObject *native = packer ? PyObject_GetAttr(arguments[1], native_name) : NULL;
        PyObject *behind = native ? stream_behind(arguments[0], 1) : NULL;
        PyObject *stream = behind ? behind : arguments[0];
        int done = native               ? launch_plain(packer, native, stream, NULL, arguments + 3, count - 3, &status)
                   : not_on_fast_path() ? 1
                                        : -1;
        Py_XDECREF(packer);
        Py_XDECREF(native);
        Py_XDECREF(behind);
        if (done < 0)
            return NULL;
        if (done == 0 && status == 0)
            Py_RETURN_NONE;
        if (done == 0 && status > 0)  // else Python checks the configuration, or names the closed object
            return call_failed(&native_launch_usual, status, NULL, arguments, count, NULL);
    }
    return PyObject_Vectorcall(native_launch_usual.body, arguments, (size_t)count, names);
}

static PyObject *prepared_launch(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    const packer *packer = (struct packer *)self;
    const ccc_plan *plan = packer->native;
    int status = 0, done = 1;
    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "a stream is missing, in which to launch");
        return NULL;
    }
    if (count - 1 == packer->count) {
        PyObject *behind = stream_behind(arguments[0], 1);
        done = launch_with(packer, plan->config, behind ? behind : arguments[0], NULL, arguments + 1, &status);
        Py_XDECREF(behind);
    }
    if (done < 0)
        return NULL;
    if (done == 0 && status == 0)
        Py_RETURN_NONE;
    PyObject *number = done ? Py_NewRef(Py_None) : PyLong_FromLong(status);
    PyObject *result = number ? on_slow_path(packer, "launch_on_slow_path", number, arguments, count) : NULL;
    Py_XDECREF(number);
    return result;
}

// Add the handles of the buffers, textures and surfaces among the values to a list.
static int add_handles(const packer *packer, PyObject *const *values, PyObject *list)
{
    for (Py_ssize_t index = 0; index < packer->count; ++index)
        if (is_object(&packer->fields[index]) && handle_of_argument(values[index])) {
            PyObject *cdata = cdata_of(values[index]);
            int failed = cdata == NULL || PyList_Append(list, cdata);
            Py_XDECREF(cdata);
            if (failed)
                return -1;
        }
    return 0;
}

static PyObject *prepared_record(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    const packer *packer = (struct packer *)self;
    ccc_record head = {packer->native};
    if (check_count("record", count < 2 ? count : 2, 2))
        return NULL;
    if (count - 2 != packer->count)
        return on_slow_path(packer, "record", arguments[0], arguments + 2, count - 2);
    Py_ssize_t end = PyList_Size(arguments[0]);
    PyObject *data = end >= 0 ? PyBytes_FromStringAndSize(NULL, (Py_ssize_t)head.plan->stride) : NULL;
    if (data == NULL)
        return NULL;
    // the handles first: a buffer that moves in between has left the one that is found here
    int stored = add_handles(packer, arguments + 2, arguments[0]);
    if (stored == 0) {
        char *record = PyBytes_AsString(data);
        memcpy(record, &head, PREPARED_HEAD);
        memset(record + PREPARED_HEAD + packer->size, 0, head.plan->stride - PREPARED_HEAD - packer->size);
        stored = store_all(packer, NULL, arguments + 2, record + PREPARED_HEAD, NULL);
    }
    if (stored == 0)
        return data;
    Py_DECREF(data);
    if (stored < 0 || PyList_SetSlice(arguments[0], end, PyList_Size(arguments[0]), NULL))
        return NULL;
    return on_slow_path(packer, "record", arguments[0], arguments + 2, count - 2);
}

static PyMethodDef prepared_methods[] = {
    {"launch", (PyCFunction)(void (*)(void))prepared_launch, METH_FASTCALL,
     "launch(stream, *values)\n--\n\nStart the kernel in a stream, with these values."},
    {"record", (PyCFunction)(void (*)(void))prepared_record, METH_FASTCALL, NULL},
};

static PyObject *calls_prepare(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    if (check_count("prepare", count, 3))
        return NULL;
    packer *packer = make_packer(arguments[0], arguments[1], plan_ctype);
    if (packer == NULL)
        return NULL;
    packer->plan = Py_NewRef(arguments[2]);
    PyObject *launch = PyCFunction_NewEx(&prepared_methods[0], (PyObject *)packer, NULL);
    PyObject *record = PyCFunction_NewEx(&prepared_methods[1], (PyObject *)packer, NULL);
    PyObject *both = launch && record ? Py_BuildValue("OO", launch, record) : NULL;
    Py_XDECREF(launch);
    Py_XDECREF(record);
    Py_DECREF(packer);
    return both;
}

#endif
