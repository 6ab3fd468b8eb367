// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Readers of NVML, for _calls.c: what cuda_core_cffi/_core/nvml_readers.py does elsewhere.
//
// A reader is a function of Python. It asks one question of NVML, with the output on the stack or in a new structure,
// and makes of it what Python gets: a number, a text, several of them, or an object that has the structure.
#ifndef CCC_NVML_READER_H
#define CCC_NVML_READER_H

#include <string.h>

#include "python/ccc_owner.h"
#include "python/ccc_vectorcall.h"

#define MOST_ANSWERS 4
#define LARGEST_ANSWER 512  // bytes, of an output on the stack
#define MOST_OPERANDS 3     // a handle, and what it is asked about

// A part of the output: a member of a structure, say.
typedef struct answer {
    char code;  // as in _core/nvml_readers.py
    unsigned int offset, size;
} answer;

typedef struct reader {
    PyObject_HEAD PyObject *question_kept;  // the cdata of the question
    PyObject *ctype;                        // of a pointer to a new structure; NULL: the output is on the stack
    PyObject *class;                        // of the object that has the structure; NULL: a cdata with it is returned
    PyObject *meanings;                     // a dict of what is returned for numbers; NULL: they themselves are
    PyObject *failed;                       // called with an error status; it raises, or returns for another attempt
    const ccc_nvml_question *question;
    Py_ssize_t count;
    answer answers[MOST_ANSWERS];
} reader;

// An object with a structure that NVML filled: the base of the classes of such.
typedef struct told {
    PyObject_HEAD PyObject *record;  // the structure as Python reads it; NULL: nobody has asked for it
    PyObject
        *ctype;  // of a pointer to it, and the memory that is the object's, where a reader made the object; or NULL
    char *memory;
} told;

static PyTypeObject *reader_type, *told_type;
static PyObject *question_ctype, *new_structure, *handle_name;

static int reader_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((reader *)self)->class);
    Py_VISIT(((reader *)self)->meanings);
    Py_VISIT(((reader *)self)->failed);
    return 0;
}

static void reader_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    reader *gone = (reader *)self;
    PyObject_GC_UnTrack(self);
    Py_XDECREF(gone->question_kept);
    Py_XDECREF(gone->ctype);
    Py_XDECREF(gone->class);
    Py_XDECREF(gone->meanings);
    Py_XDECREF(gone->failed);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyMemberDef reader_members[] = {
    {"question", T_OBJECT, offsetof(reader, question_kept), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot reader_slots[] = {
    {Py_tp_dealloc, reader_dealloc},
    {Py_tp_members, reader_members},
    {Py_tp_traverse, reader_traverse},
    {0, NULL},
};

static PyType_Spec reader_spec = {
    "cuda_core_cffi._calls.NvmlReader",
    sizeof(reader),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    reader_slots,
};

// Ask, until there is an answer. -1, with an error set: there is none.
static int reader_ask(const reader *reader, uintptr_t object, unsigned int first, unsigned int second, void *output)
{
    for (;;) {
        int status;
        Py_BEGIN_ALLOW_THREADS status = helpers->nvml_ask(reader->question, object, first, second, output);
        Py_END_ALLOW_THREADS if (status == 0) return 0;
        PyObject *result = PyObject_CallFunction(reader->failed, "i", status);
        if (result == NULL)
            return -1;
        Py_DECREF(result);
    }
}

// What Python gets of a part of the output.
static PyObject *answer_as_object(const answer *answer, const char *output)
{
    const char *at = output + answer->offset;
    uint32_t number;
    uint64_t large;
    memcpy(&number, at, sizeof number);
    switch (answer->code) {
    case 'I': return PyLong_FromUnsignedLong(number);
    case 'i': return PyLong_FromLong((int32_t)number);
    case 's': return PyUnicode_DecodeUTF8(at, (Py_ssize_t)strnlen(at, answer->size), "replace");
    default:
        memcpy(&large, at, sizeof large);
        return answer->code == 'q' ? PyLong_FromLongLong((int64_t)large) : PyLong_FromUnsignedLongLong(large);
    }
}

// What a number means. The reference to it is taken.
static PyObject *meaning_of(PyObject *meanings, PyObject *number)
{
    if (meanings == NULL || number == NULL)
        return number;
    PyObject *found = PyDict_GetItemWithError(meanings, number);
    if (found == NULL && !PyErr_Occurred())
        found = PyDict_GetItemWithError(meanings, Py_None);
    Py_DECREF(number);
    if (found == NULL && !PyErr_Occurred())
        PyErr_SetString(PyExc_KeyError, "meanings have none for other numbers");
    return Py_XNewRef(found);
}

// Ask for numbers and texts.
static PyObject *reader_values(const reader *reader, uintptr_t object, unsigned int first, unsigned int second)
{
    _Alignas(16) char output[LARGEST_ANSWER + sizeof(uint64_t)];  // of which an answer is read as the largest number
    if (reader->question->size == sizeof(uint32_t))
        memset(output, 0, sizeof(uint32_t));  // which is one store
    else
        memset(output, 0, reader->question->size);
    if (reader_ask(reader, object, first, second, output))
        return NULL;
    if (reader->count == 1)
        return meaning_of(reader->meanings, answer_as_object(reader->answers, output));
    PyObject *tuple = PyTuple_New(reader->count);
    for (Py_ssize_t index = 0; tuple && index < reader->count; ++index) {
        PyObject *value = meaning_of(reader->meanings, answer_as_object(&reader->answers[index], output));
        if (value == NULL || PyTuple_SetItem(tuple, index, value))
            Py_CLEAR(tuple);
    }
    return tuple;
}

// Ask for a structure, in a cdata of its own.
static PyObject *reader_cdata(const reader *reader, uintptr_t object, unsigned int first, unsigned int second)
{
    PyObject *structure = PyObject_CallFunctionObjArgs(new_structure, reader->ctype, NULL);
    char *output = structure ? to_pointer(structure, reader->ctype) : NULL;
    if (output == NULL || reader_ask(reader, object, first, second, output))
        Py_CLEAR(structure);
    return structure;
}

// Ask for a structure, in an object.
static PyObject *reader_object(const reader *reader, uintptr_t object, unsigned int first, unsigned int second)
{
    told *made = (told *)PyType_GenericAlloc((PyTypeObject *)reader->class, 0);
    if (made == NULL)
        return NULL;
    made->memory = PyMem_Calloc(1, reader->question->size);
    made->ctype = Py_NewRef(reader->ctype);
    if (made->memory == NULL)
        PyErr_NoMemory();
    if (made->memory == NULL || reader_ask(reader, object, first, second, made->memory))
        Py_CLEAR(made);
    return (PyObject *)made;
}

static void told_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    told *gone = (told *)self;
    Py_XDECREF(gone->record);
    Py_XDECREF(gone->ctype);
    PyMem_Free(gone->memory);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyObject *told_record(PyObject *self, void *unused)
{
    told *object = (told *)self;
    PyObject *record;
    (void)unused;
    if (object->memory)  // which lives as long as the object
        return from_pointer(object->memory, object->ctype);
    Py_BEGIN_CRITICAL_SECTION(self);
    record = Py_XNewRef(object->record);
    Py_END_CRITICAL_SECTION();
    if (record == NULL)
        PyErr_SetString(PyExc_AttributeError, "_record");
    return record;
}

static int told_set_record(PyObject *self, PyObject *record, void *unused)
{
    told *object = (told *)self;
    PyObject *before;
    (void)unused;
    if (record == NULL || object->memory) {
        PyErr_SetString(PyExc_AttributeError, "_record is set once");
        return -1;
    }
    Py_BEGIN_CRITICAL_SECTION(self);
    before = object->record;
    object->record = Py_NewRef(record);
    Py_END_CRITICAL_SECTION();
    Py_XDECREF(before);
    return 0;
}

static PyGetSetDef told_getset[] = {
    {"_record", told_record, told_set_record, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot told_slots[] = {
    {Py_tp_dealloc, told_dealloc},
    {Py_tp_getset, told_getset},
    {Py_tp_doc, "Has a structure that NVML filled."},
    {0, NULL},
};

static PyType_Spec told_spec = {
    "cuda_core_cffi._calls.Told", sizeof(told), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, told_slots,
};

static PyObject *reader_read(PyObject *self, PyObject *const *operands, Py_ssize_t count)
{
    const reader *reader = (struct reader *)self;
    uintptr_t object = 0;
    unsigned int numbers[MOST_OPERANDS - 1] = {0};
    if (count && !PyLong_Check(operands[0])) {  // what has a handle
        PyObject *all[MOST_OPERANDS], *handle = PyObject_GetAttr(operands[0], handle_name);
        if (handle == NULL)
            return NULL;
        memcpy(all, operands, sizeof *operands * (size_t)count);
        all[0] = handle;
        PyObject *result = PyLong_Check(handle) ? reader_read(self, all, count)
                                                : PyErr_Format(PyExc_TypeError, "a handle is an int, not %R", handle);
        Py_DECREF(handle);
        return result;
    }
    for (Py_ssize_t index = 0; index < count; ++index) {
        unsigned long long value = PyLong_AsUnsignedLongLong(operands[index]);
        if (value == (unsigned long long)-1 && PyErr_Occurred())
            return NULL;
        if (index == 0) {
            object = (uintptr_t)value;
        } else if (value > UINT32_MAX) {
            PyErr_SetString(PyExc_OverflowError, "integer does not fit in 32 bits");
            return NULL;
        } else {
            numbers[index - 1] = (unsigned int)value;
        }
    }
    if (reader->ctype == NULL)
        return reader_values(reader, object, numbers[0], numbers[1]);
    return (reader->class ? reader_object : reader_cdata)(reader, object, numbers[0], numbers[1]);
}

static PyObject *reader_of_nothing(PyObject *self, PyObject *unused)
{
    (void)unused;
    return reader_read(self, NULL, 0);
}

static PyObject *reader_of_object(PyObject *self, PyObject *object)
{
    const reader *reader = (struct reader *)self;
    if (reader->ctype || !PyLong_CheckExact(object))
        return reader_read(self, &object, 1);
    unsigned long long value = PyLong_AsUnsignedLongLong(object);
    if (value == (unsigned long long)-1 && PyErr_Occurred())
        return NULL;
    return reader_values(reader, (uintptr_t)value, 0, 0);
}

static PyObject *reader_of_one(PyObject *self, PyObject *const *operands, Py_ssize_t count)
{
    return check_count("a reader", count, 2) ? NULL : reader_read(self, operands, count);
}

static PyObject *reader_of_two(PyObject *self, PyObject *const *operands, Py_ssize_t count)
{
    return check_count("a reader", count, 3) ? NULL : reader_read(self, operands, count);
}

#define READ_FAST(function) (PyCFunction)(void (*)(void))(function), METH_FASTCALL

static PyMethodDef reader_functions[] = {
    {"read", reader_of_object, METH_O, "read(handle, /)\n--\n\nAsk NVML."},
    {"read", READ_FAST(reader_of_one), "read(handle, of, /)\n--\n\nAsk NVML."},
    {"read", READ_FAST(reader_of_two), "read(handle, of, second, /)\n--\n\nAsk NVML."},
    {"read", reader_of_nothing, METH_NOARGS, "read()\n--\n\nAsk NVML."},
};

// The function of a form.
static PyMethodDef *function_for(ccc_nvml_form form)
{
    switch (form) {
    case CCC_NVML_OUTPUT_OF: return &reader_functions[1];
    case CCC_NVML_OUTPUT_OF_TWO: return &reader_functions[2];
    case CCC_NVML_TOTAL:
    case CCC_NVML_SYSTEM_TEXT: return &reader_functions[3];
    default: return &reader_functions[0];
    }
}

// Read the description of a part of the output: a name, then code, offset and size.
static int read_answer(PyObject *description, answer *answer, unsigned int size)
{
    const char *name;
    int code;
    if (!PyArg_ParseTuple(description, "sCII", &name, &code, &answer->offset, &answer->size))
        return -1;
    if (size > LARGEST_ANSWER || answer->offset >= size || answer->size > size - answer->offset) {
        PyErr_SetString(PyExc_ValueError, "an answer is outside the output of a reader");
        return -1;
    }
    answer->code = (char)code;
    return 0;
}

static PyObject *calls_nvml_reader(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (check_count("nvml_reader", count, 6))
        return NULL;
    PyObject *parts = arguments[1], *class = arguments[3];
    const ccc_nvml_question *question = (const void *)to_pointer(arguments[0], question_ctype);
    Py_ssize_t wanted = question ? PyTuple_Size(parts) : -1;
    if (wanted < 0)
        return NULL;
    if (wanted > MOST_ANSWERS ||
        (class != Py_None && !(PyType_Check(class) && PyType_IsSubtype((PyTypeObject *)class, told_type))) ||
        (arguments[4] != Py_None && !PyDict_CheckExact(arguments[4]))) {
        PyErr_SetString(PyExc_TypeError, "expected a few answers, a subclass of Told or None, and a dict or None");
        return NULL;
    }
    reader *made = (reader *)PyType_GenericAlloc(reader_type, 0);
    if (made == NULL)
        return NULL;
    made->question_kept = Py_NewRef(arguments[0]);
    made->question = question;
    made->ctype = wanted ? NULL : Py_NewRef(arguments[2]);
    made->class = class == Py_None ? NULL : Py_NewRef(class);
    made->meanings = arguments[4] == Py_None ? NULL : Py_NewRef(arguments[4]);
    made->failed = Py_NewRef(arguments[5]);
    made->count = wanted;
    PyObject *function = NULL;
    int failed = 0;
    for (Py_ssize_t index = 0; index < wanted && !failed; ++index)
        failed = read_answer(PyTuple_GetItem(parts, index), &made->answers[index], question->size);
    if (!failed)
        function = PyCFunction_NewEx(function_for(question->form), (PyObject *)made, NULL);
    Py_DECREF(made);
    return function;
}

// Return an object of a class that has what is asked about: a handle, or a device.
static PyObject *make_about(PyObject *self, PyObject *subject)
{
    PyObject *made = PyType_GenericAlloc((PyTypeObject *)PyTuple_GetItem(self, 0), 0);
    if (made && PyObject_SetAttr(made, PyTuple_GetItem(self, 1), subject))
        Py_CLEAR(made);
    return made;
}

static PyMethodDef about_function = {"about", make_about, METH_O, "about(subject, /)\n--\n\nReturn an object."};

static PyObject *calls_about(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (check_count("about", count, 2))
        return NULL;
    if (!PyType_Check(arguments[0]) || !PyType_HasFeature((PyTypeObject *)arguments[0], Py_TPFLAGS_HEAPTYPE)) {
        PyErr_SetString(PyExc_TypeError, "expected a class written in Python");
        return NULL;
    }
    PyObject *both = Py_BuildValue("OO", arguments[0], arguments[1]);
    PyObject *function = both ? PyCFunction_NewEx(&about_function, both, NULL) : NULL;
    Py_XDECREF(both);
    return function;
}

// A property of Python's that has a function in C in the place of its getter: where the object has the attribute
// `subject`, what `function` makes of that; of an object of Told, a member of its structure. Its fields are behind
// those of the base, whose size only the interpreter knows. It is never released, and no more is what it refers to.
typedef struct shortcut {
    PyObject *text;  // __doc__
    PyObject *subject, *function;
    reader *reader;  // that of the function, if it is one of the first form
    answer member;
} shortcut;

static PyTypeObject *shortcut_type;
static Py_ssize_t shortcut_offset;

#define SHORTCUT(property) ((shortcut *)((char *)(property) + shortcut_offset))

static PyObject *shortcut_get(PyObject *self, PyObject *object, PyObject *type)
{
    static descrgetfunc base;
    const shortcut *how = SHORTCUT(self);
    if (object && object != Py_None) {
        if (how->subject) {
            PyObject *subject = PyObject_GetAttr(object, how->subject);
            if (subject == NULL)
                return NULL;
            PyObject *result = how->reader ? reader_of_object((PyObject *)how->reader, subject)
                                           : PyObject_Vectorcall(how->function, &subject, 1, NULL);
            Py_DECREF(subject);
            return result;
        }
        if (how->function)
            return PyObject_Vectorcall(how->function, &object, 1, NULL);
        if (PyObject_TypeCheck(object, told_type) && ((told *)object)->memory)
            return answer_as_object(&how->member, ((told *)object)->memory);
    }
    if (base == NULL)
        base = (descrgetfunc)PyType_GetSlot(&PyProperty_Type, Py_tp_descr_get);
    return base(self, object, type);
}

static PyMemberDef shortcut_members[] = {
    {"__doc__", T_OBJECT, 0, 0, NULL},  // the offset is set when the size of the base is known
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot shortcut_slots[] = {
    {Py_tp_descr_get, shortcut_get},
    {Py_tp_members, shortcut_members},
    {0, NULL},
};

static PyType_Spec shortcut_spec = {
    "cuda_core_cffi._calls.Shortcut", 0, 0, Py_TPFLAGS_DEFAULT, shortcut_slots,
};

static int make_shortcut_type(void)
{
    PyObject *size = PyObject_GetAttrString((PyObject *)&PyProperty_Type, "__basicsize__");
    shortcut_offset = size ? PyLong_AsSsize_t(size) : -1;
    Py_XDECREF(size);
    if (shortcut_offset < 0)
        return -1;
    shortcut_members[0].offset = shortcut_offset + (Py_ssize_t)offsetof(shortcut, text);
    shortcut_spec.basicsize = (int)(shortcut_offset + (Py_ssize_t)sizeof(shortcut));
    shortcut_type = (PyTypeObject *)PyType_FromSpecWithBases(&shortcut_spec, (PyObject *)&PyProperty_Type);
    return shortcut_type ? 0 : -1;
}

// Put a shortcut in the place of a property of a class. A borrowed reference to it; NULL with an error set.
static shortcut *replace_property(PyObject *class, PyObject *name)
{
    PyObject *property = PyObject_GetAttr(class, name), *made = NULL;
    if (property && !PyObject_TypeCheck(property, &PyProperty_Type))
        PyErr_Format(PyExc_TypeError, "%R is no property", name);
    else if (property) {
        PyObject *get = PyObject_GetAttrString(property, "fget"), *set = PyObject_GetAttrString(property, "fset");
        PyObject *text = PyObject_GetAttrString(property, "__doc__");
        made = get && set && text ? PyObject_CallFunctionObjArgs((PyObject *)shortcut_type, get, set, NULL) : NULL;
        Py_XDECREF(get);
        Py_XDECREF(set);
        if (made)
            SHORTCUT(made)->text = text;  // in the place of what some versions put there themselves
        else
            Py_XDECREF(text);
    }
    Py_XDECREF(property);
    PyObject *named = made ? PyObject_CallMethod(made, "__set_name__", "OO", class, name) : NULL;
    Py_XDECREF(named);
    if (named == NULL || PyObject_SetAttr(class, name, made))
        return NULL;
    return SHORTCUT(made);  // the class has a reference to it, and another one keeps it for ever
}

static PyObject *calls_use_functions(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    PyObject *name, *function;
    Py_ssize_t position = 0;
    (void)module;
    if (check_count("use_functions", count, 3))
        return NULL;
    if (!PyDict_CheckExact(arguments[2])) {
        PyErr_SetString(PyExc_TypeError, "expected a dict");
        return NULL;
    }
    while (PyDict_Next(arguments[2], &position, &name, &function)) {
        shortcut *how = replace_property(arguments[0], name);
        if (how == NULL)
            return NULL;
        how->function = Py_NewRef(function);
        how->subject = arguments[1] == Py_None ? NULL : Py_NewRef(arguments[1]);
        if (PyObject_TypeCheck(function, &PyCFunction_Type)) {
            PyObject *of = PyCFunction_GetSelf(function);
            if (of && Py_IS_TYPE(of, reader_type) && PyCFunction_GetFunction(function) == reader_of_object)
                how->reader = (reader *)of;
        }
    }
    Py_RETURN_NONE;
}

static PyObject *calls_use_members(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    PyObject *name, *description;
    Py_ssize_t position = 0;
    (void)module;
    if (check_count("use_members", count, 2))
        return NULL;
    if (!PyDict_CheckExact(arguments[1])) {
        PyErr_SetString(PyExc_TypeError, "expected a dict");
        return NULL;
    }
    while (PyDict_Next(arguments[1], &position, &name, &description)) {
        answer member;
        if (read_answer(description, &member, LARGEST_ANSWER))
            return NULL;
        shortcut *how = replace_property(arguments[0], name);
        if (how == NULL)
            return NULL;
        how->member = member;
    }
    Py_RETURN_NONE;
}

#endif
