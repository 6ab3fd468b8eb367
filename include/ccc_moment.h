/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The difference of two events, for _calls.c: a slot of a class that events have among their bases. A method in Python
 * would be looked up and called at each subtraction, which costs as much as the driver.
 */
#ifndef CCC_MOMENT_H
#define CCC_MOMENT_H

#include "ccc_owner.h"

/* Set when the module is imported, and never dropped. */
static PyTypeObject *moment_type;

static ccc_box *box_of_moment(PyObject *operand)
{
    return PyObject_TypeCheck(operand, moment_type) ? BOX(operand) : NULL;
}

/* Either operand may be of another type: this is both __sub__ and __rsub__. */
static PyObject *moment_subtract(PyObject *end, PyObject *start)
{
    double milliseconds;
    const ccc_box *from = box_of_moment(start), *to = box_of_moment(end);
    if (from == NULL || to == NULL)
        Py_RETURN_NOTIMPLEMENTED;
    Py_BEGIN_ALLOW_THREADS
    milliseconds = helpers->event_elapsed(from, to);
    Py_END_ALLOW_THREADS
    if (milliseconds == milliseconds) /* not NaN */
        return PyFloat_FromDouble(milliseconds);
    return raise_made(PyObject_CallMethod(end, "_elapsed_failure", "O", start));
}

static PyType_Slot moment_slots[] = {
    {Py_nb_subtract, moment_subtract},
    {Py_tp_doc, "What has a difference from another one in milliseconds."},
    {0, NULL},
};

static PyType_Spec moment_spec = {
    "cuda_core_cffi._calls.Moment", sizeof(owner), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, moment_slots,
};

#endif
