/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What producers hand over, read in one go: a tuple that describes the memory,
 *
 *     (address, shape, strides or None, device ordinal or -1, accessible to devices, read-only,
 *      DLPack device type, data type, owner, stream)
 *
 * Strides count elements. The data type is DLPack's as an integer: code, bits and lanes from the lowest byte up. The owner
 * is a capsule whose end is the end of the producer's tensor, or None. The stream is the address of the one that the producer works
 * in where it told, else None.
 */
#ifndef CCC_CAPSULE_READ_H
#define CCC_CAPSULE_READ_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "ccc_dlpack.h"

#define CCC_MAX_DIMENSIONS 64 /* NumPy's limit; other libraries have a lower one */

/* A managed tensor of either kind. */
typedef struct ccc_imported {
    void *address;
    int versioned;
} ccc_imported;

static void ccc_imported_delete(ccc_imported tensor)
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

static PyObject *ccc_tuple_of(const int64_t *values, int count)
{
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple && i < count; ++i) {
        PyObject *item = PyLong_FromLongLong(values[i]);
        if (item == NULL || PyTuple_SetItem(tuple, i, item))
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* Make the tuple. Owner and stream are taken over, also on failure; either may be NULL after an error. */
static PyObject *ccc_describe_array(const DLTensor *tensor, int read_only, PyObject *owner, PyObject *stream)
{
    int on_host = tensor->device.device_type == CCC_DL_CPU;
    unsigned long dtype = tensor->dtype.code | (unsigned long)tensor->dtype.bits << 8 |
                          (unsigned long)tensor->dtype.lanes << 16;
    PyObject *fields[] = {
        PyLong_FromUnsignedLongLong((uintptr_t)tensor->data + (tensor->data ? tensor->byte_offset : 0)),
        ccc_tuple_of(tensor->shape, tensor->ndim),
        tensor->strides ? ccc_tuple_of(tensor->strides, tensor->ndim) : Py_NewRef(Py_None),
        PyLong_FromLong(on_host ? -1 : tensor->device.device_id),
        PyBool_FromLong(!on_host),
        PyBool_FromLong(read_only),
        PyLong_FromLong(tensor->device.device_type),
        PyLong_FromUnsignedLong(dtype),
        owner,
        stream,
    };
    const int count = sizeof fields / sizeof *fields;
    PyObject *info = PyTuple_New(count);
    for (int i = 0; i < count; ++i) {
        if (info == NULL || fields[i] == NULL) {
            Py_XDECREF(fields[i]);
            Py_CLEAR(info);
        } else {
            PyTuple_SetItem(info, i, fields[i]);
        }
    }
    return info;
}

static const char OWNER_NAME[] = "cuda_core_cffi.tensor";
static const char OWNER_NAME_VERSIONED[] = "cuda_core_cffi.tensor_versioned";

static void ccc_delete_owned(PyObject *owner)
{
    int versioned = PyCapsule_IsValid(owner, OWNER_NAME_VERSIONED);
    ccc_imported_delete(
        (ccc_imported){PyCapsule_GetPointer(owner, versioned ? OWNER_NAME_VERSIONED : OWNER_NAME), versioned});
}

/* Why a tensor cannot be described, with a Python error set; 0 if it can. */
static int ccc_refuse(const DLTensor *tensor)
{
    if (tensor->ndim < 0 || tensor->ndim > CCC_MAX_DIMENSIONS)
        PyErr_Format(PyExc_BufferError, "the tensor has %d dimensions; 0 to %d are possible", (int)tensor->ndim,
                     CCC_MAX_DIMENSIONS);
    else if (tensor->device.device_type != CCC_DL_CPU && tensor->device.device_type != CCC_DL_CUDA &&
             tensor->device.device_type != CCC_DL_CUDA_HOST && tensor->device.device_type != CCC_DL_CUDA_MANAGED)
        PyErr_Format(PyExc_BufferError, "the memory is on DLPack device type %d, which is neither the host nor CUDA",
                     (int)tensor->device.device_type);
    else
        return 0;
    return 1;
}

/* Describe a tensor that is ours to delete; on failure it is deleted at once. The stream is taken over. */
static PyObject *ccc_describe_tensor(ccc_imported imported, PyObject *stream)
{
    const DLManagedTensor *old = imported.address;
    const DLManagedTensorVersioned *versioned = imported.versioned ? imported.address : NULL;
    const DLTensor *tensor = versioned ? &versioned->dl_tensor : &old->dl_tensor;
    PyObject *owner = NULL;
    if (versioned && versioned->version.major != CCC_DLPACK_MAJOR) /* all that follows its version may differ */
        PyErr_Format(PyExc_BufferError, "the producer speaks DLPack %u.%u; this package knows versions up to 1.x",
                     (unsigned)versioned->version.major, (unsigned)versioned->version.minor);
    else if (stream && !ccc_refuse(tensor))
        owner = PyCapsule_New(imported.address, versioned ? OWNER_NAME_VERSIONED : OWNER_NAME, ccc_delete_owned);
    if (owner == NULL) {
        ccc_imported_delete(imported);
        Py_XDECREF(stream);
        return NULL;
    }
    return ccc_describe_array(tensor, versioned && versioned->flags & CCC_DLPACK_READ_ONLY, owner, stream);
}

#endif
