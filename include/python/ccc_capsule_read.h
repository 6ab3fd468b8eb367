// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// What producers hand over. Taking a tensor checks it and gives a capsule that owns it; nothing else is made of it
// until somebody asks, in one go, for a tuple that describes the memory:
//
//     (address, shape, strides or None, device ordinal or -1, accessible to devices, read-only,
//      DLPack device type, data type, owner)
//
// Strides count elements. The data type is DLPack's as an integer: code, bits and lanes from the lowest byte up. The
// owner is that capsule, whose end is the end of the producer's tensor, unless a tensor that shows the same memory
// still uses it.
#ifndef CCC_CAPSULE_READ_H
#define CCC_CAPSULE_READ_H

#include <stdatomic.h>
#include <stdlib.h>

#include "memory/ccc_tensor_calls.h"
#include "python/ccc_capsule.h"
#include "python/ccc_detach.h"
#include "python/ccc_module.h"

#define CCC_MAX_DIMENSIONS 64  // NumPy's limit; other libraries have a lower one

static const char *const USED_NAMES[] = {"used_dltensor", "used_dltensor_versioned"};

// The uses of a tensor that was taken: its owner's, and those of the tensors that show the same memory.
typedef struct ccc_uses {
    ccc_imported tensor;
    atomic_int count;
    int takes_gil;                   // its deleter takes the GIL, and so does not wait for the device
    PyCapsule_Destructor producers;  // what the producer's capsule, now the owner, is to end with; or NULL
} ccc_uses;

static const ccc_tensor_calls *ccc_own_tensors;  // of the CFFI module, which sets it when it is imported

// Whether the deleter of a tensor releases the GIL itself if needed, and runs no Python.
static int ccc_has_own_deleter(ccc_imported tensor)
{
    return tensor.versioned ? ((DLManagedTensorVersioned *)tensor.address)->deleter == ccc_own_tensors->delete_versioned
                            : ((DLManagedTensor *)tensor.address)->deleter == ccc_own_tensors->delete_old;
}

// Delete a tensor of any library. Its deleter may wait for the device, so it runs without the GIL, unless `takes_gil`
// says that it takes it.
static void ccc_delete_imported(ccc_imported tensor, int takes_gil)
{
    if (ccc_has_own_deleter(tensor)) {
        ccc_call_deleter(tensor);
        return;
    }
    ccc_raised raised = ccc_unraise(ccc_is_attached());
    void *state = takes_gil ? NULL : ccc_detach();
    ccc_call_deleter(tensor);
    ccc_attach(state);
    ccc_raise_again(raised);
}

// The destructor of capsules around tensors of any library.
static void ccc_delete_any(PyObject *capsule)
{
    ccc_imported tensor = ccc_unconsumed(capsule);
    if (tensor.address)
        ccc_delete_imported(tensor, 0);
}

// The tensor in a capsule that nobody has consumed; NULL with a Python error set.
static ccc_imported ccc_in_capsule(PyObject *capsule, int consume)
{
    // without the GIL two threads must not both find the name unused
    static atomic_flag lock = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
        ;
    ccc_imported tensor = ccc_unconsumed(capsule);
    int failed = tensor.address && consume && PyCapsule_SetName(capsule, USED_NAMES[tensor.versioned]);
    atomic_flag_clear_explicit(&lock, memory_order_release);
    if (failed)
        return (ccc_imported){NULL, 0};
    if (tensor.address)
        return tensor;
    if (PyCapsule_IsValid(capsule, USED_NAMES[0]) || PyCapsule_IsValid(capsule, USED_NAMES[1]))
        PyErr_SetString(PyExc_ValueError, "this DLPack capsule has already been consumed");
    else
        PyErr_SetString(PyExc_TypeError, "expected a DLPack capsule");
    return tensor;
}

static const DLTensor *ccc_tensor_in(ccc_imported tensor)
{
    return tensor.versioned ? &((const DLManagedTensorVersioned *)tensor.address)->dl_tensor
                            : &((const DLManagedTensor *)tensor.address)->dl_tensor;
}

// The address of the first element; 0 if there is no memory.
static unsigned long long ccc_address(const DLTensor *tensor)
{
    return (uintptr_t)tensor->data + (tensor->data ? tensor->byte_offset : 0);
}

static int ccc_is_read_only(ccc_imported tensor)
{
    return tensor.versioned && ((const DLManagedTensorVersioned *)tensor.address)->flags & CCC_DLPACK_READ_ONLY;
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

// End one use. Like a tensor's deleter, any thread may call it, with the GIL or without.
static void ccc_end_use(void *owner)
{
    ccc_uses *uses = owner;
    if (atomic_fetch_sub(&uses->count, 1) == 1) {
        ccc_delete_imported(uses->tensor, uses->takes_gil);
        free(uses);
    }
}

// PyPy aborts when what ends a capsule changes it, or calls much else of the API.
static void ccc_delete_owner(PyObject *owner)
{
    ccc_uses *uses = PyCapsule_GetContext(owner);
    if (uses->producers) {
        ccc_raised raised = ccc_unraise(1);
        uses->producers(owner);  // which sees by the name that the tensor is not the capsule's any more
        ccc_raise_again(raised);
    }
    ccc_end_use(uses);
}

// The uses of the tensor that a capsule owns; NULL with a Python error set if it is no owner.
static ccc_uses *ccc_uses_of(PyObject *owner)
{
    int known = PyCapsule_IsValid(owner, USED_NAMES[0]) || PyCapsule_IsValid(owner, USED_NAMES[1]);
    ccc_uses *uses = known && PyCapsule_GetDestructor(owner) == ccc_delete_owner ? PyCapsule_GetContext(owner) : NULL;
    if (uses)
        return uses;
    PyErr_SetString(PyExc_TypeError, "expected a tensor that was taken");
    return NULL;
}

// Return the tuple for what a capsule owns.
static PyObject *ccc_describe(PyObject *module, PyObject *owner)
{
    const ccc_uses *uses = ccc_uses_of(owner);
    if (uses == NULL)
        return NULL;
    const DLTensor *tensor = ccc_tensor_in(uses->tensor);
    int on_host = tensor->device.device_type == CCC_DL_CPU;
    unsigned long dtype =
        tensor->dtype.code | (unsigned long)tensor->dtype.bits << 8 | (unsigned long)tensor->dtype.lanes << 16;
    PyObject *shape = ccc_tuple_of(tensor->shape, tensor->ndim);
    PyObject *strides = shape && tensor->strides ? ccc_tuple_of(tensor->strides, tensor->ndim) : Py_NewRef(Py_None);
    return Py_BuildValue("KNNiOOikO", ccc_address(tensor), shape, strides, on_host ? -1 : tensor->device.device_id,
                         on_host ? Py_False : Py_True, ccc_is_read_only(uses->tensor) ? Py_True : Py_False,
                         (int)tensor->device.device_type, dtype, owner);
}

// Whether no element is complex, and some stride is 1.
static int ccc_is_simple(const DLTensor *tensor)
{
    int adjacent = tensor->strides == NULL;
    for (int i = 0; i < tensor->ndim && !adjacent; ++i)
        adjacent = tensor->strides[i] == 1;
    return adjacent && tensor->dtype.code != CCC_DL_COMPLEX;
}

// Whether the elements of a tensor with possible dimensions lie in the address space, and their offsets in bytes fit in
// 64 bits. A broadcast axis, whose stride is 0, may be of any extent.
static int ccc_is_in_address_space(const DLTensor *tensor)
{
    const __int128 itemsize = ((__int128)tensor->dtype.bits * tensor->dtype.lanes + 7) / 8;
    __int128 low = 0, high = 1, stride = 1;
    for (int i = 0; i < tensor->ndim; ++i)
        if (tensor->shape[i] == 0)
            return 1;
    for (int i = tensor->ndim; i-- > 0;) {
        __int128 reach = (tensor->shape[i] - 1) * (tensor->strides ? tensor->strides[i] : stride);
        *(reach < 0 ? &low : &high) += reach;
        stride *= tensor->shape[i];
        if (low < INT64_MIN || high > INT64_MAX || (tensor->strides == NULL && stride > INT64_MAX))
            return 0;
    }
    __int128 start = (__int128)(uintptr_t)tensor->data + tensor->byte_offset;
    return high * itemsize <= INT64_MAX && low * itemsize >= INT64_MIN &&
           (tensor->data == NULL || (start + low * itemsize >= 0 && start + high * itemsize <= UINTPTR_MAX));
}

// Why a tensor of a known version cannot be described; NULL if it can.
static const char *ccc_fault(const DLTensor *tensor)
{
    if (tensor->ndim && tensor->shape == NULL)
        return "the tensor has no shape";
    if (tensor->dtype.bits == 0 || tensor->dtype.lanes == 0)
        return "the elements of the tensor have no size";
    for (int i = 0; i < tensor->ndim; ++i)
        if (tensor->shape[i] < 0)
            return "an extent of the tensor is negative";
    return ccc_is_in_address_space(tensor) ? NULL : "the tensor reaches beyond the address space";
}

// -1 with a Python error set: memory is on a device of a type that is not known here.
static int ccc_check_device(long type)
{
    if (type == CCC_DL_CPU || type == CCC_DL_CUDA || type == CCC_DL_CUDA_HOST || type == CCC_DL_CUDA_MANAGED)
        return 0;
    PyErr_Format(PyExc_BufferError, "the memory is on DLPack device type %ld, which is neither the host nor CUDA",
                 type);
    return -1;
}

// Why a tensor cannot be described, with a Python error set; 0 if it can.
static int ccc_refuse(ccc_imported imported)
{
    const DLManagedTensorVersioned *versioned = imported.versioned ? imported.address : NULL;
    const DLTensor *tensor = imported.address ? ccc_tensor_in(imported) : NULL;
    const char *fault = NULL;
    if (tensor == NULL)
        PyErr_SetString(PyExc_BufferError, "there is no tensor: its address is NULL");
    else if (versioned && versioned->version.major != CCC_DLPACK_MAJOR)  // all that follows its version may differ
        PyErr_Format(PyExc_BufferError, "the producer speaks DLPack %u.%u; this package knows versions up to 1.x",
                     (unsigned)versioned->version.major, (unsigned)versioned->version.minor);
    else if (tensor->ndim < 0 || tensor->ndim > CCC_MAX_DIMENSIONS)
        PyErr_Format(PyExc_BufferError, "the tensor has %d dimensions; 0 to %d are possible", (int)tensor->ndim,
                     CCC_MAX_DIMENSIONS);
    else if (ccc_check_device(tensor->device.device_type))
        return 1;
    else if ((fault = ccc_fault(tensor)))
        PyErr_SetString(PyExc_BufferError, fault);
    else
        return 0;
    return 1;
}

// A capsule that owns a tensor which is ours to delete; on failure it is deleted at once. The capsule that it came in,
// if it did, is made the owner: that is quicker than another, but for PyPy. `takes_gil` says that its deleter takes the
// GIL.
static PyObject *ccc_own(ccc_imported tensor, PyObject *capsule, int takes_gil)
{
#ifdef PYPY_VERSION
    capsule = NULL;
#endif
    ccc_uses *uses = ccc_refuse(tensor) ? NULL : malloc(sizeof *uses);
    if (uses == NULL) {
        if (!PyErr_Occurred())
            PyErr_NoMemory();
        if (tensor.address)
            ccc_delete_imported(tensor, takes_gil);
        return NULL;
    }
    uses->tensor = tensor;
    uses->takes_gil = takes_gil;
    uses->producers = NULL;
    atomic_init(&uses->count, 1);
    if (capsule && PyCapsule_GetContext(capsule) == NULL) {  // else the producer needs the context for itself
        uses->producers = PyCapsule_GetDestructor(capsule);
        Py_INCREF(capsule);
    } else {
        capsule = PyCapsule_New(tensor.address, USED_NAMES[tensor.versioned], NULL);
        if (capsule == NULL) {
            ccc_end_use(uses);
            return NULL;
        }
    }
    PyCapsule_SetContext(capsule, uses);
    PyCapsule_SetDestructor(capsule, ccc_delete_owner);
    return capsule;
}

// Take the tensor out of a capsule. Returns what owns it.
static PyObject *ccc_own_capsule(PyObject *capsule, int takes_gil)
{
    ccc_imported tensor = ccc_in_capsule(capsule, 1);
    return tensor.address ? ccc_own(tensor, capsule, takes_gil) : NULL;
}

// The address of a managed tensor for a consumer, of the memory that a capsule owns: it is a use of what was taken. 0
// with a Python error set.
static uint64_t ccc_show(PyObject *owner, int versioned)
{
    ccc_uses *uses = ccc_uses_of(owner);
    if (uses == NULL)
        return 0;
    const DLTensor *tensor = ccc_tensor_in(uses->tensor);
    const int on_host = tensor->device.device_type == CCC_DL_CPU;
    const ccc_array array = {
        .data = ccc_address(tensor),
        .device = {tensor->device.device_type, on_host ? 0 : tensor->device.device_id},
        .dtype = tensor->dtype,
        .ndim = tensor->ndim,
        .shape = tensor->shape,
        .strides = tensor->strides,
    };
    const int how =
        (versioned ? CCC_TENSOR_VERSIONED : 0) | (ccc_is_read_only(uses->tensor) ? CCC_TENSOR_READ_ONLY : 0);
    atomic_fetch_add(&uses->count, 1);
    uint64_t shown = ccc_own_tensors->with(&array, how, ccc_end_use, uses);
    if (shown == 0) {
        ccc_end_use(uses);
        PyErr_NoMemory();
    }
    return shown;
}

#endif
