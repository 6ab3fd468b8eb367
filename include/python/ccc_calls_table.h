// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// The helpers that _calls.c calls.
#ifndef CCC_CALLS_TABLE_H
#define CCC_CALLS_TABLE_H

#include "python/ccc_background.h"
#include "python/ccc_calls.h"
#include "graph/ccc_graph_exec.h"
#include "memory/ccc_copy.h"
#include "launch/ccc_prepared.h"
#include "memory/ccc_tensor.h"

_Static_assert(CCC_NOT_READY == CUDA_ERROR_NOT_READY, "what a query answers that is too early");

// Set while _calls has a helper make a handle for an owner. If CFFI has no memory for the object that shows the handle,
// nothing refers to the handle, so it is released.
static _Thread_local int ccc_making;

static void ccc_set_making(int making) { ccc_making = making; }

static ccc_calls ccc_calls_table = {
#define CCC_CALL(name, function, type, parameters) .name = function,
    CCC_CALLS(CCC_CALL)
#undef CCC_CALL
        .gil = &ccc_gil_of_all,
    .event_flags = CU_EVENT_DISABLE_TIMING,
    .stream_flags = CU_STREAM_NON_BLOCKING,
};

// The address of the table. CFFI's functions are known when the module has been imported.
static uint64_t ccc_calls_get(void)
{
#ifndef PYPY_VERSION
    ccc_calls_table.from_pointer = (void *)_cffi_from_c_pointer;
    ccc_calls_table.to_pointer = (void *)_cffi_to_c_pointer;
#endif
    return (uintptr_t)&ccc_calls_table;
}

#ifndef PYPY_VERSION
// CFFI returns a pointer in a new object.
static PyObject *ccc_show_pointer(char *pointer, struct _cffi_ctypedescr *type)
{
    PyObject *shown = _cffi_from_c_pointer(pointer, type);
    if (shown == NULL && pointer && ccc_making) {
        Py_BEGIN_ALLOW_THREADS ccc_release_object((ccc_handle *)(void *)pointer);
        Py_END_ALLOW_THREADS
    }
    return shown;
}

#undef _cffi_from_c_pointer
#define _cffi_from_c_pointer ccc_show_pointer
#endif

// For the module _capsule, which is not linked with this one either.
static uint64_t ccc_gil_address(void) { return (uintptr_t)&ccc_gil_of_all; }

#endif
