// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Packers of _calls.c: what cuda_core_cffi/_core/compiled_packing.py does elsewhere.
//
// A packer packs the arguments of a kernel, and ccc_launches.h launches with them, in one crossing. What it does not do
// (values of other types, out of range, closed) it leaves to Python, which packs them or tells what is wrong; nothing
// was launched then.
#ifndef CCC_PACKER_H
#define CCC_PACKER_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "python/ccc_native.h"

#define STACK_SIZE 1024  // bytes on the stack for arguments and the handles of buffers; most kernels need less
#define PREPARED_HEAD sizeof(ccc_record)

typedef struct field {
    PyTypeObject *type;  // the only type on the fast path, or NULL
    PyObject *pack;      // what packs every value of the parameter, or tells what is wrong with it
    size_t offset, size;
    char code, way;  // as in a Slot of _launching/arguments.py
} field;

typedef struct packer {
    PyObject_VAR_HEAD PyObject *fields_kept;  // what the fields refer to
    PyObject *native_kept;                    // cdata of a ccc_target; prepared, of a ccc_plan
    PyObject *plan;                           // prepared: what does the rest
    void *native;                             // a ccc_target, with which a ccc_plan begins
    size_t size;                              // of the arguments
    Py_ssize_t count;
    Py_ssize_t objects;  // how many of them are buffers, textures or surfaces
    field fields[1];
} packer;

static PyTypeObject *packer_type;
static PyObject *target_ctype, *plan_ctype, *config_ctype, *value_name;

static int packer_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((packer *)self)->fields_kept);
    Py_VISIT(((packer *)self)->plan);
    return 0;
}

static int packer_clear(PyObject *self)
{
    Py_CLEAR(((packer *)self)->plan);  // the rest is needed as long as something may launch
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

// Store a number as a type, if it is one of that type.
#define STORE_AS(type, number, at) \
    do { \
        type narrow = (type)(number); \
        if ((number) != narrow) \
            return -1; \
        memcpy(at, &narrow, sizeof narrow); \
        return 0; \
    } while (0)

static int store_unsigned_long(PyObject *value, char *at)
{
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
    long long number = code == 'Q' ? 0 : PyLong_AsLongLong(value);
    if (number == -1 && PyErr_Occurred())
        return -1;
    switch (code) {
    case 'b': STORE_AS(int8_t, number, at);
    case 'h': STORE_AS(int16_t, number, at);
    case 'i': STORE_AS(int32_t, number, at);
    case 'q': STORE_AS(int64_t, number, at);
    case 'B': STORE_AS(uint8_t, number, at);
    case 'H': STORE_AS(uint16_t, number, at);
    case 'I': STORE_AS(uint32_t, number, at);
    default: return store_unsigned_long(value, at);
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

// Store a number. A NaN is not the same in four bytes, if it was a signalling one of NumPy or
// ctypes.
static int store_number(PyObject *value, char code, char *at)
{
    if (code == '?') {
        int truth = PyObject_IsTrue(value);
        *at = (char)truth;
        return truth < 0 ? -1 : 0;
    }
    if (code != 'f' && code != 'd')
        return store_integer(value, code, at);
    if (!PyFloat_CheckExact(value) && PyLong_Check(value))  // Python looks whether a float holds it exactly
        return -1;
    double number = PyFloat_AsDouble(value);
    if ((number == -1.0 && PyErr_Occurred()) || (code == 'f' && number != number))
        return -1;
    return store_double(number, code, at);
}

static int store_value_of(PyObject *item, char code, char *at)
{
    PyObject *value = PyObject_GetAttr(item, value_name);
    int result = value ? store_number(value, code, at) : -1;
    Py_XDECREF(value);
    return result;
}

// Whether the arguments of a field have handles.
static int is_object(const field *field) { return field->way == 'o'; }

// The handle of a buffer, a texture or a surface; NULL, with no error set, for any other argument.
static ccc_handle *handle_of_argument(PyObject *value)
{
    ccc_handle *handle = handle_of(value, CCC_BUFFER);
    handle = handle ? handle : handle_of_any(value, CCC_TEXTURE);
    return handle ? handle : handle_of_any(value, CCC_SURFACE);
}

// Store the address of a buffer, or the number of a texture or a surface, and add its handle to those of the launch, if
// there is one: it keeps them from being destroyed.
static int store_object(PyObject *value, char *at, ccc_handle ***handles)
{
    ccc_handle *handle = handle_of_argument(value);
    if (handle == NULL || !is_open(handle))
        return -1;
    memcpy(at, &head_of(handle)->value, sizeof(uint64_t));
    if (*handles)
        *(*handles)++ = handle;
    return 0;
}

static int store_complex(PyObject *value, const field *field, char *at)
{
    return store_double(PyComplex_RealAsDouble(value), field->code, at) ||
                   store_double(PyComplex_ImagAsDouble(value), field->code, at + field->size / 2)
               ? -1
               : 0;
}

// Store what the slot's own function makes of a value.
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

// Store one argument. -1: it is not for the fast path, and an exception may be set.
static int store(PyObject *value, const field *field, char *at, ccc_handle ***handles)
{
    if (field->type && Py_TYPE(value) != field->type)
        return -1;
    switch (field->way) {
    case 'v': return store_number(value, field->code, at);
    case 'o': return store_object(value, at, handles);
    case 'a': return store_value_of(value, field->code, at);
    case 'c':
        if (PyComplex_Check(value))
            return store_complex(value, field, at);
        break;
    default:
        if (PyBytes_CheckExact(value) && (size_t)PyBytes_Size(value) == field->size) {
            memcpy(at, PyBytes_AsString(value), field->size);
            return 0;
        }
    }
    return store_by_function(value, field, at);
}

// Clear an exception which only says that Python has to look at the values. 0: another one is set.
static int not_on_fast_path(void)
{
    PyObject *raised = PyErr_Occurred();
    if (raised == NULL)
        return 1;
    if (!PyErr_GivenExceptionMatches(raised, PyExc_OverflowError) &&
        !PyErr_GivenExceptionMatches(raised, PyExc_TypeError) &&
        !PyErr_GivenExceptionMatches(raised, PyExc_AttributeError) &&
        !PyErr_GivenExceptionMatches(raised, PyExc_ValueError))
        return 0;
    PyErr_Clear();
    return 1;
}

// Store all arguments, which are in a tuple, or else in an array, and the handles of objects unless `handles` is NULL.
// 0: done; 1: they are not for the fast path; -1: an exception is set.
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

// Where the arguments of a launch go, and behind them the handles of buffers: outside of the packer, because any number
// of threads may launch with it at once.
static char *memory_for(const packer *packer, char *stack, ccc_handle ***handles)
{
    const size_t align = sizeof **handles, start = (packer->size + align - 1) / align * align;
    const size_t size = start + align * (size_t)packer->objects;
    char *found = size <= STACK_SIZE ? stack : PyMem_Malloc(size);
    if (found == NULL)
        PyErr_NoMemory();
    else
        *handles = (ccc_handle **)(void *)(found + start);
    return found;
}

// The pointer of cdata of a type. NULL with an exception set for another object.
static void *pointer_of(PyObject *cdata, PyObject *ctype)
{
    void *pointer = to_pointer(cdata, ctype);
    if (pointer == NULL && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "NULL");
    return pointer;
}

static int read_field(PyObject *slot, field *field)
{
    const char *code, *way;
    PyObject *type;
    if (!PyArg_ParseTuple(slot, "ssOOnn", &code, &way, &field->pack, &type, &field->offset, &field->size))
        return -1;
    field->type = type == Py_None ? NULL : (PyTypeObject *)type;
    field->code = *code;
    field->way = *way;
    return 0;
}

// A packer for a tuple of slots, and for the target or the plan that `native` is.
static packer *make_packer(PyObject *slots, PyObject *native, PyObject *ctype)
{
    void *pointer = pointer_of(native, ctype);
    Py_ssize_t count = pointer ? PyTuple_Size(slots) : -1;
    packer *made = count >= 0 ? (packer *)PyType_GenericAlloc(packer_type, count) : NULL;
    if (made == NULL)
        return NULL;
    made->fields_kept = Py_NewRef(slots);
    made->native_kept = Py_NewRef(native);
    made->native = pointer;
    made->count = count;
    made->size = ((const ccc_target *)pointer)->size;
    for (Py_ssize_t index = 0; index < count; ++index) {
        if (read_field(PyTuple_GetItem(slots, index), &made->fields[index])) {
            Py_DECREF(made);
            return NULL;
        }
        made->objects += is_object(&made->fields[index]);
    }
    return made;
}

// The packer that an argument is. NULL with an exception set for another object.
static packer *packer_for(PyObject *argument)
{
    if (Py_IS_TYPE(argument, packer_type))
        return (packer *)argument;
    PyErr_SetString(PyExc_TypeError, "expected a packer");
    return NULL;
}

static PyObject *calls_make_packer(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    if (check_count("make_packer", count, 2))
        return NULL;
    return (PyObject *)make_packer(arguments[0], arguments[1], target_ctype);
}

#endif
