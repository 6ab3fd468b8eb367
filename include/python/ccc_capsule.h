// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Managed tensors, and the capsules that they travel in.
#ifndef CCC_CAPSULE_H
#define CCC_CAPSULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "memory/ccc_dlpack.h"

static const char *const NAMES[] = {"dltensor", "dltensor_versioned"};

// A managed tensor of either kind.
typedef struct ccc_imported {
    void *address;
    int versioned;
} ccc_imported;

// Call the deleter of a tensor. One that is not ours may be written in Python: see ccc_unraise.
static void ccc_call_deleter(ccc_imported tensor)
{
    DLManagedTensor *old = tensor.address;
    DLManagedTensorVersioned *versioned = tensor.address;
    if (tensor.versioned ? versioned->deleter != NULL : old->deleter != NULL) {
        if (tensor.versioned)
            versioned->deleter(versioned);
        else
            old->deleter(old);
    }
}

// The tensor in a capsule that nobody has consumed; its address is NULL if there is none.
static ccc_imported ccc_unconsumed(PyObject *capsule)
{
    for (int versioned = 0; versioned < 2; ++versioned)
        if (PyCapsule_IsValid(capsule, NAMES[versioned]))
            return (ccc_imported){PyCapsule_GetPointer(capsule, NAMES[versioned]), versioned};
    return (ccc_imported){NULL, 0};
}

// The destructor of capsules around tensors of ours: their deleters release the GIL where that is needed.
static void ccc_delete_unconsumed(PyObject *capsule)
{
    ccc_imported tensor = ccc_unconsumed(capsule);
    if (tensor.address)
        ccc_call_deleter(tensor);
}

// A capsule around a tensor of ours that was just made, whose deleter runs if nobody consumes it; or at once if there
// is no capsule. No Python runs between, which a signal handler could interrupt. NULL with a Python error set.
static PyObject *ccc_capsule_of(uint64_t tensor, int versioned)
{
    void *address = (void *)(uintptr_t)tensor;
    PyObject *capsule = PyCapsule_New(address, NAMES[versioned], ccc_delete_unconsumed);
    if (capsule == NULL)
        ccc_call_deleter((ccc_imported){address, versioned});
    return capsule;
}

#endif
