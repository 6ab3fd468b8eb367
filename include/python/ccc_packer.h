/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches of _calls.c: what cuda_core_cffi/_core/packing.py does elsewhere.
 *
 * A packer packs the arguments of a kernel and launches with them, in one crossing. What it does not do (values of other
 * types, out of range, closed) it leaves to Python, which packs them or tells what is wrong; nothing was launched then.
 */
#ifndef CCC_PACKER_H
#define CCC_PACKER_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "python/ccc_method.h"

#define STACK_SIZE 1024 /* bytes on the stack for arguments and the handles of buffers; most kernels need less */
#define PREPARED_HEAD sizeof(ccc_record)

typedef struct field {
    PyTypeObject *type; /* the only type on the fast path, or NULL */
    PyObject *pack;     /* what packs every value of the parameter, or tells what is wrong with it */
    size_t offset, size;
    char code, way; /* those of _core/packing.py */
} field;

typedef struct packer {
    PyObject_VAR_HEAD
    PyObject *fields_kept; /* what the fields refer to */
    PyObject *native_kept; /* cdata of a ccc_target; prepared, of a ccc_plan */
    PyObject *plan;        /* prepared: what does the rest */
    void *native;
    size_t size; /* of the arguments */
    Py_ssize_t count;
    Py_ssize_t buffers; /* how many of them are addresses of buffers */
    field fields[1];
} packer;

static PyTypeObject *packer_type;
static PyObject *target_ctype, *plan_ctype, *config_ctype, *describe_fields, *value_name;

static int packer_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((packer *)self)->fields_kept);
    Py_VISIT(((packer *)self)->plan);
    return 0;
}

static int packer_clear(PyObject *self)
{
    Py_CLEAR(((packer *)self)->plan); /* the rest is needed as long as something may launch */
    return 0;
}

static void packer_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_XDECREF(((packer *)self)->fields_kept);
    Py_XDECREF(((packer *)self)->native_kept);
    Py_XDECREF(((packer *)self)->plan);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyType_Slot packer_slots[] = {
    {Py_tp_dealloc, packer_dealloc},
    {Py_tp_traverse, packer_traverse},
    {Py_tp_clear, packer_clear},
    {Py_tp_doc, "Packs the arguments of a kernel."},
    {0, NULL},
};

static PyType_Spec packer_spec = {
    "cuda_core_cffi._calls.Packer",
    offsetof(packer, fields),
    sizeof(field),
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    packer_slots,
};

/* Store a number as a type, if it is one of that type. */
#define STORE_AS(type, number, at) \
    do { \
        type narrow = (type)(number); \
        if ((number) != narrow) \
            return -1; \
        memcpy(at, &narrow, sizeof narrow); \
        return 0; \
    } while (0)

/* An unsigned one of 8 bytes, past the signed range. */
static int store_large(PyObject *value, char *at)
{
    if (!PyErr_ExceptionMatches(PyExc_OverflowError))
        return -1;
    PyErr_Clear();
    PyObject *index = PyNumber_Index(value);
    unsigned long long number = index ? PyLong_AsUnsignedLongLong(index) : 0;
    Py_XDECREF(index);
    if (PyErr_Occurred())
        return -1;
    memcpy(at, &number, sizeof number);
    return 0;
}

static int store_integer(PyObject *value, char code, char *at)
{
    long long number = PyLong_AsLongLong(value);
    if (number == -1 && PyErr_Occurred())
        return code == 'Q' ? store_large(value, at) : -1;
    switch (code) {
    case 'b':
        STORE_AS(int8_t, number, at);
    case 'h':
        STORE_AS(int16_t, number, at);
    case 'i':
        STORE_AS(int32_t, number, at);
    case 'q':
        STORE_AS(int64_t, number, at);
    case 'B':
        STORE_AS(uint8_t, number, at);
    case 'H':
        STORE_AS(uint16_t, number, at);
    case 'I':
        STORE_AS(uint32_t, number, at);
    default:
        if (number < 0)
            return -1;
        memcpy(at, &number, sizeof number);
        return 0;
    }
}

static int store_double(double number, char code, char *at)
{
    float narrow = (float)number;
    if (code == 'd') {
        memcpy(at, &number, sizeof number);
        return 0;
    }
    if (isinf(narrow) && !isinf(number))
        return -1;
    memcpy(at, &narrow, sizeof narrow);
    return 0;
}

/* Store what is a number for Python. One of NumPy or ctypes that is not one for itself may not be the same afterwards. */
static int store_number(PyObject *value, char code, int unless_nan, char *at)
{
    if (code == '?') {
        int truth = PyObject_IsTrue(value);
        *at = (char)truth;
        return truth < 0 ? -1 : 0;
    }
    if (code != 'f' && code != 'd')
        return store_integer(value, code, at);
    double number = PyFloat_AsDouble(value);
    if ((number == -1.0 && PyErr_Occurred()) || (unless_nan && number != number))
        return -1;
    return store_double(number, code, at);
}

static int store_value_of(PyObject *item, char code, int unless_nan, char *at)
{
    PyObject *value = PyObject_GetAttr(item, value_name);
    int result = value ? store_number(value, code, unless_nan, at) : -1;
    Py_XDECREF(value);
    return result;
}

/*
 * Store the address of a buffer, and add its handle to those of the launch, if there is one: it keeps them from being
 * freed.
 */
static int store_buffer(PyObject *value, char *at, ccc_handle ***handles)
{
    ccc_handle *handle = handle_of(value, CCC_BUFFER);
    uint64_t address = handle ? helpers->handle_value(handle) : 0;
    if (handle == NULL || !helpers->is_open(handle))
        return -1;
    memcpy(at, &address, sizeof address);
    if (*handles)
        *(*handles)++ = handle;
    return 0;
}

static int store_complex(PyObject *value, const field *field, char *at)
{
    if (!PyComplex_Check(value))
        return -1;
    return store_double(PyComplex_RealAsDouble(value), field->code, at) ||
                   store_double(PyComplex_ImagAsDouble(value), field->code, at + field->size / 2)
               ? -1
               : 0;
}

/* Store what the slot's own function makes of a value. */
static int store_by_function(PyObject *value, const field *field, char *at)
{
    PyObject *data = PyObject_CallFunctionObjArgs(field->pack, value, NULL);
    int result = -1;
    if (data && PyBytes_Check(data) && (size_t)PyBytes_Size(data) == field->size) {
        memcpy(at, PyBytes_AsString(data), field->size);
        result = 0;
    }
    Py_XDECREF(data);
    return result;
}

/* Store one argument. -1: it is not for the fast path, and an exception may be set. */
static int store(PyObject *value, const field *field, char *at, ccc_handle ***handles)
{
    if (field->type && Py_TYPE(value) != field->type)
        return -1;
    switch (field->way) {
    case 'v':
        return store_number(value, field->code, 0, at);
    case 'n':
        return store_number(value, field->code, 1, at);
    case 'b':
        return store_buffer(value, at, handles);
    case 'a':
        return store_value_of(value, field->code, 0, at);
    case 'm':
        return store_value_of(value, field->code, 1, at);
    case 'c':
        if (PyComplex_Check(value))
            return store_complex(value, field, at);
        break;
    case 't':
        if (PyBool_Check(value)) {
            *at = value == Py_True;
            return 0;
        }
        break;
    case 'y':
        if (PyBytes_CheckExact(value) && (size_t)PyBytes_Size(value) == field->size) {
            memcpy(at, PyBytes_AsString(value), field->size);
            return 0;
        }
        break;
    }
    return store_by_function(value, field, at);
}

/* Clear an exception which only says that Python has to look at the values. 0: another one is set. */
static int not_on_fast_path(void)
{
    PyObject *raised = PyErr_Occurred();
    if (raised == NULL)
        return 1;
    if (!PyErr_GivenExceptionMatches(raised, PyExc_OverflowError) && !PyErr_GivenExceptionMatches(raised, PyExc_TypeError) &&
        !PyErr_GivenExceptionMatches(raised, PyExc_AttributeError) && !PyErr_GivenExceptionMatches(raised, PyExc_ValueError))
        return 0;
    PyErr_Clear();
    return 1;
}

/*
 * Store all arguments, which are in a tuple, or else in an array, and the handles of buffers unless `handles` is NULL.
 * 0: done; 1: they are not for the fast path; -1: an exception is set.
 */
static int store_all(const packer *packer, PyObject *tuple, PyObject *const *array, char *arguments,
                     ccc_handle **handles)
{
    memset(arguments, 0, packer->size);
    for (Py_ssize_t index = 0; index < packer->count; ++index) {
        const field *field = &packer->fields[index];
        PyObject *value = tuple ? PyTuple_GetItem(tuple, index) : array[index];
        if (store(value, field, arguments + field->offset, &handles))
            return not_on_fast_path() ? 1 : -1;
    }
    return 0;
}

/*
 * Where the arguments of a launch go, and behind them the handles of buffers: outside of the packer, because any number
 * of threads may launch with it at once.
 */
static char *memory_for(const packer *packer, char *stack, ccc_handle ***handles)
{
    const size_t align = sizeof **handles, start = (packer->size + align - 1) / align * align;
    const size_t size = start + align * (size_t)packer->buffers;
    char *found = size <= STACK_SIZE ? stack : PyMem_Malloc(size);
    if (found == NULL)
        PyErr_NoMemory();
    else
        *handles = (ccc_handle **)(void *)(found + start);
    return found;
}

static void memory_done(char *used, char *stack)
{
    if (used != stack)
        PyMem_Free(used);
}

/* The pointer of cdata of a type. NULL with an exception where it is none. */
static void *pointer_of(PyObject *cdata, PyObject *ctype)
{
    void *pointer = to_pointer(cdata, ctype);
    if (pointer == NULL && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "NULL");
    return pointer;
}

static int read_field(PyObject *description, field *field)
{
    const char *code, *way;
    PyObject *type;
    if (!PyArg_ParseTuple(description, "nnssOO", &field->offset, &field->size, &code, &way, &type, &field->pack))
        return -1;
    field->type = type == Py_None ? NULL : (PyTypeObject *)type;
    field->code = *code;
    field->way = *way;
    return 0;
}

/* A packer for some fields, and for the target or the plan that `native` is. */
static packer *make_packer(PyObject *fields, PyObject *types, PyObject *native, PyObject *ctype)
{
    void *pointer = pointer_of(native, ctype);
    PyObject *descriptions = pointer ? PyObject_CallFunctionObjArgs(describe_fields, fields, types, NULL) : NULL;
    Py_ssize_t count = descriptions ? PyTuple_Size(descriptions) : -1;
    packer *made = count >= 0 ? (packer *)PyType_GenericAlloc(packer_type, count) : NULL;
    if (made == NULL) {
        Py_XDECREF(descriptions);
        return NULL;
    }
    made->fields_kept = descriptions;
    made->native_kept = Py_NewRef(native);
    made->native = pointer;
    made->count = count;
    made->size = ctype == plan_ctype ? ((const ccc_plan *)pointer)->size : ((const ccc_target *)pointer)->size;
    for (Py_ssize_t index = 0; index < count; ++index) {
        if (read_field(PyTuple_GetItem(descriptions, index), &made->fields[index])) {
            Py_DECREF(made);
            return NULL;
        }
        made->buffers += made->fields[index].way == 'b';
    }
    return made;
}

static PyObject *calls_make_packer(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (check_count("make_packer", count, 3))
        return NULL;
    return (PyObject *)make_packer(arguments[0], arguments[1], arguments[2], target_ctype);
}

/* A packer like another one, for another target that has the same parameters. */
static PyObject *calls_retarget(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (check_count("retarget", count, 2))
        return NULL;
    const packer *like = (const packer *)arguments[0];
    if (!Py_IS_TYPE(arguments[0], packer_type) || like->plan) {
        PyErr_SetString(PyExc_TypeError, "expected a packer");
        return NULL;
    }
    void *target = pointer_of(arguments[1], target_ctype);
    packer *made = target ? (packer *)PyType_GenericAlloc(packer_type, like->count) : NULL;
    if (made == NULL)
        return NULL;
    made->fields_kept = Py_NewRef(like->fields_kept);
    made->native_kept = Py_NewRef(arguments[1]);
    made->native = target;
    made->size = like->size;
    made->count = like->count;
    made->buffers = like->buffers;
    memcpy(made->fields, like->fields, (size_t)like->count * sizeof(field));
    return (PyObject *)made;
}

/* The packer of an argument. NULL with an exception where it is none. */
static packer *packer_for(PyObject *argument)
{
    if (!Py_IS_TYPE(argument, packer_type) || ((packer *)argument)->plan) {
        PyErr_SetString(PyExc_TypeError, "expected a packer");
        return NULL;
    }
    return (packer *)argument;
}

/*
 * Launch with arguments that are in a tuple, or else in an array. 0: it was tried, with this status; 1: nothing was done,
 * Python has to look at it; -1: an exception is set.
 */
static int launch_with(PyObject *with, PyObject *in, PyObject *native, PyObject *tuple, PyObject *const *array,
                       Py_ssize_t count, int *status)
{
    _Alignas(16) char stack[STACK_SIZE];
    ccc_handle **handles = NULL;
    if (with == Py_None) /* the kernel has no packer yet */
        return 1;
    const packer *packer = packer_for(with);
    if (packer == NULL)
        return -1;
    const ccc_handle *stream = handle_of(in, CCC_STREAM);
    if (stream == NULL || native == Py_None || count != packer->count)
        return 1;
    const ccc_config *config = pointer_of(native, config_ctype);
    char *packed = config ? memory_for(packer, stack, &handles) : NULL;
    if (packed == NULL)
        return -1;
    int stored = store_all(packer, tuple, array, packed, handles);
    if (stored == 0) {
        Py_BEGIN_ALLOW_THREADS
        *status = helpers->launch_target(packer->native, config, stream, packed, handles, (size_t)packer->buffers);
        Py_END_ALLOW_THREADS
    }
    memory_done(packed, stack);
    return stored;
}

static PyObject *calls_launch(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    int status;
    (void)module;
    if (check_count("launch", count, 4))
        return NULL;
    if (!PyTuple_Check(arguments[3])) {
        PyErr_SetString(PyExc_TypeError, "expected a tuple");
        return NULL;
    }
    int done = launch_with(arguments[0], arguments[1], arguments[2], arguments[3], NULL, PyTuple_Size(arguments[3]), &status);
    if (done == 0)
        return PyLong_FromLong(status);
    return done < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *calls_pack(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    packer *packer = check_count("pack", count, 2) ? NULL : packer_for(arguments[0]);
    Py_ssize_t given = packer ? PyTuple_Size(arguments[1]) : -1;
    if (given < 0)
        return NULL;
    if (given != packer->count)
        Py_RETURN_NONE;
    PyObject *data = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)packer->size);
    int stored = data ? store_all(packer, arguments[1], NULL, PyBytes_AsString(data), NULL) : -1;
    if (stored == 0)
        return data;
    Py_XDECREF(data);
    return stored < 0 ? NULL : Py_NewRef(Py_None);
}

/* The values of a prepared launch as a tuple. */
static PyObject *tuple_of(PyObject *const *values, Py_ssize_t count)
{
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t index = 0; tuple && index < count; ++index)
        PyTuple_SetItem(tuple, index, Py_NewRef(values[index]));
    return tuple;
}

/* What is not on the fast path: call a method of the plan with something and the values. */
static PyObject *on_slow_path(const packer *packer, const char *method, PyObject *first, PyObject *second, PyObject *const *values)
{
    PyObject *tuple = tuple_of(values, packer->count), *result = NULL;
    if (tuple && packer->plan) {
        PyObject *function = PyObject_GetAttrString(packer->plan, method);
        if (function)
            result = second ? PyObject_CallFunctionObjArgs(function, first, second, tuple, NULL)
                            : PyObject_CallFunctionObjArgs(function, first, tuple, NULL);
        Py_XDECREF(function);
    } else if (tuple) {
        PyErr_SetString(PyExc_RuntimeError, "this prepared launch is being collected");
    }
    Py_XDECREF(tuple);
    return result;
}

/* The function in Python, and the attributes of kernels and configurations that are looked at. */
static PyObject *python_launch, *packer_name, *native_name;

/* Raise what launch_failure of _launching/launch.py makes of a status. */
static PyObject *launch_failed(int status, PyObject *const *arguments, Py_ssize_t count)
{
    PyObject *values = tuple_of(arguments + 3, count - 3), *error = NULL;
    PyObject *module = values ? PyImport_ImportModule("cuda_core_cffi._launching.launch") : NULL;
    if (module)
        error = PyObject_CallMethod(module, "launch_failure", "iOOOO", status, arguments[0], arguments[1], arguments[2],
                                    values);
    Py_XDECREF(module);
    Py_XDECREF(values);
    return raise_made(error);
}

/* launch(stream, config, kernel, *values). What was not tried, the function in Python looks at. */
static PyObject *launch_usual(PyObject *unused, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    int status;
    (void)unused;
    if (count >= 3 && names == NULL) {
        PyObject *packer = PyObject_GetAttr(arguments[2], packer_name);
        PyObject *native = packer ? PyObject_GetAttr(arguments[1], native_name) : NULL;
        int done = native ? launch_with(packer, arguments[0], native, NULL, arguments + 3, count - 3, &status)
                   : not_on_fast_path() ? 1 : -1;
        Py_XDECREF(packer);
        Py_XDECREF(native);
        if (done < 0)
            return NULL;
        if (done == 0 && status > 0)
            return launch_failed(status, arguments, count);
        if (done == 0 && status == 0)
            Py_RETURN_NONE;
    }
    return PyObject_Vectorcall(python_launch, arguments, (size_t)count, names);
}

static PyMethodDef launch_function = {"launch", (PyCFunction)(void (*)(void))launch_usual, METH_FASTCALL | METH_KEYWORDS,
                                      NULL};

static PyObject *calls_fast_launch(PyObject *module, PyObject *function)
{
    (void)module;
    packer_name = PyUnicode_InternFromString("_fast_packer");
    native_name = PyUnicode_InternFromString("_native_cache");
    return packer_name && native_name ? stand_for(function, &launch_function, "(stream, config, kernel, *kernel_args)", &python_launch)
                                      : NULL;
}

static int check_values(const packer *packer, Py_ssize_t count)
{
    if (count == packer->count)
        return 0;
    PyErr_Format(PyExc_TypeError, "this launch is prepared for %zd value%s, not %zd", packer->count,
                 packer->count == 1 ? "" : "s", count < 0 ? 0 : count);
    return -1;
}

static PyObject *prepared_launch(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    _Alignas(16) char stack[STACK_SIZE];
    const packer *packer = (struct packer *)self;
    ccc_handle **handles = NULL;
    int status = 0, stored = 1;
    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "a stream is missing, in which to launch");
        return NULL;
    }
    if (check_values(packer, count - 1))
        return NULL;
    ccc_handle *stream = handle_of(arguments[0], CCC_STREAM);
    if (stream) {
        char *packed = memory_for(packer, stack, &handles);
        if (packed == NULL)
            return NULL;
        stored = store_all(packer, NULL, arguments + 1, packed, handles);
        if (stored == 0) {
            Py_BEGIN_ALLOW_THREADS
            status = helpers->launch_plan(packer->native, stream, packed, handles, (size_t)packer->buffers);
            Py_END_ALLOW_THREADS
        }
        memory_done(packed, stack);
        if (stored < 0)
            return NULL;
        if (stored == 0 && status == 0)
            Py_RETURN_NONE;
    }
    PyObject *number = stored ? Py_NewRef(Py_None) : PyLong_FromLong(status);
    PyObject *result = number ? on_slow_path(packer, "launch_on_slow_path", number, arguments[0], arguments + 1) : NULL;
    Py_XDECREF(number);
    return result;
}

/* Add the handles of the buffers among the values to a list. */
static int add_handles(const packer *packer, PyObject *const *values, PyObject *list)
{
    for (Py_ssize_t index = 0; index < packer->count; ++index)
        if (packer->fields[index].way == 'b' && handle_of(values[index], CCC_BUFFER)) {
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
    if (check_count("record", count < 2 ? count : 2, 2) || check_values(packer, count - 2))
        return NULL;
    Py_ssize_t end = PyList_Size(arguments[0]);
    PyObject *data = end >= 0 ? PyBytes_FromStringAndSize(NULL, (Py_ssize_t)head.plan->stride) : NULL;
    if (data == NULL)
        return NULL;
    /* the handles first: a buffer that moves in between has left the one that is found here */
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
    return on_slow_path(packer, "record_on_slow_path", arguments[0], NULL, arguments + 2);
}

static PyMethodDef prepared_methods[] = {
    {"launch", (PyCFunction)(void (*)(void))prepared_launch, METH_FASTCALL,
     "launch(stream, *values)\n--\n\nStart the kernel in a stream, with these values."},
    {"record", (PyCFunction)(void (*)(void))prepared_record, METH_FASTCALL, NULL},
};

static PyObject *calls_prepare(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (check_count("prepare", count, 3))
        return NULL;
    packer *packer = make_packer(arguments[0], Py_None, arguments[1], plan_ctype);
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
