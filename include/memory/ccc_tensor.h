// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Memory of ours as DLPack tensors. A consumer may delete a tensor on any thread, with the GIL or without (ccc_api.h):
// no Python object is involved. Where Python must keep something alive as long as the tensor (memory that a resource
// written in Python gave), Python references it under the tensor's address, and the deleter only queues that address
// and asks the release thread to look.
#ifndef CCC_TENSOR_H
#define CCC_TENSOR_H

#include "handles/ccc_api.h"
#include "handles/ccc_release.h"
#include "memory/ccc_memory.h"
#include "memory/ccc_tensor_calls.h"

#define CCC_DL_INT 0

typedef struct ccc_tensor {
    union {
        DLManagedTensor old;
        DLManagedTensorVersioned versioned;
    } managed;                 // first: its address is the tensor's
    ccc_handle *buffer;        // one use of it, or NULL
    void *memory;              // our own, or NULL
    void (*end)(void *owner);  // what the owner of memory of others is told by, or NULL
    void *owner;
    int pinned;
    struct ccc_tensor *next;
    int64_t shape[];  // and then the strides
} ccc_tensor;

static _Atomic(ccc_tensor *) ccc_finished_tensors;  // pushed by deleters
static _Atomic(ccc_tensor *) ccc_tensors_to_free;   // taken from there; the mutex of ccc_release.h is for this list

static void ccc_tensor_end(ccc_tensor *tensor)
{
    ccc_release_any(tensor->buffer);
    ccc_report_cleanup();
    free(tensor->memory);
    if (tensor->end)
        tensor->end(tensor->owner);
    if (!tensor->pinned) {
        free(tensor);
        return;
    }
    tensor->next = atomic_load(&ccc_finished_tensors);
    while (!atomic_compare_exchange_weak(&ccc_finished_tensors, &tensor->next, tensor))
        ;
    ccc_release_ask();
}

static int ccc_tensors_finished(void)
{
    return atomic_load(&ccc_finished_tensors) || atomic_load(&ccc_tensors_to_free);
}

// The address of a deleted tensor that Python has pinned something for, to be freed with ccc_tensor_free; 0 for none.
static uint64_t ccc_tensor_finished(void)
{
    if (!ccc_tensors_finished())
        return 0;
    ccc_release_lock();
    ccc_tensor *tensor = atomic_load(&ccc_tensors_to_free);
    if (tensor == NULL)  // take all at once: no ABA, and each is moved once
        tensor = atomic_exchange(&ccc_finished_tensors, NULL);
    if (tensor)
        atomic_store(&ccc_tensors_to_free, tensor->next);
    ccc_release_unlock();
    return (uintptr_t)tensor;
}

// Free a finished tensor, once Python has released what it pinned under this address.
static void ccc_tensor_free(uint64_t tensor) { free((void *)(uintptr_t)tensor); }

static void ccc_delete_old(DLManagedTensor *self) { ccc_tensor_end((ccc_tensor *)self); }

static void ccc_delete_versioned(DLManagedTensorVersioned *self) { ccc_tensor_end((ccc_tensor *)self); }

static ccc_tensor *ccc_tensor_new(const ccc_array *array, int how)
{
    const int versioned = (how & CCC_TENSOR_VERSIONED) != 0;
    size_t size = (size_t)array->ndim * sizeof(int64_t);
    ccc_tensor *tensor = calloc(1, sizeof *tensor + 2 * size);
    if (tensor == NULL) {
        ccc_fail(CCC_NO_MEMORY, "malloc");
        return NULL;
    }
    DLTensor *inner = versioned ? &tensor->managed.versioned.dl_tensor : &tensor->managed.old.dl_tensor;
    int64_t *strides = tensor->shape + array->ndim;
    if (size)
        memcpy(tensor->shape, array->shape, size);
    uint64_t stride = 1;
    for (int i = array->ndim; i-- > 0; stride *= (uint64_t)array->shape[i])
        strides[i] = array->strides ? array->strides[i] : (int64_t)stride;
    *inner = (DLTensor){.data = (void *)(uintptr_t)array->data,
                        .device = array->device,
                        .ndim = array->ndim,
                        .dtype = array->dtype,
                        .shape = tensor->shape,
                        .strides = strides};
    if (versioned) {
        tensor->managed.versioned.version.major = CCC_DLPACK_MAJOR;
        tensor->managed.versioned.version.minor = CCC_DLPACK_MINOR;
        tensor->managed.versioned.flags = (how & CCC_TENSOR_READ_ONLY ? CCC_DLPACK_READ_ONLY : 0) |
                                          (how & CCC_TENSOR_COPIED ? CCC_DLPACK_IS_COPIED : 0);
        tensor->managed.versioned.deleter = ccc_delete_versioned;
    } else {
        tensor->managed.old.deleter = ccc_delete_old;
    }
    tensor->pinned = (how & CCC_TENSOR_PINNED) != 0;
    return tensor;
}

// Bytes in the elements of an array without gaps; at least 1.
static size_t ccc_array_bytes(const ccc_array *array)
{
    size_t size = ((size_t)array->dtype.bits * array->dtype.lanes + 7) / 8;
    for (int i = 0; i < array->ndim; ++i)
        size *= (size_t)array->shape[i];
    return size ? size : 1;
}

// A tensor that shows memory, and keeps the buffer that it is part of, if any; or has memory of its own, whose address
// the array gets, for the caller to fill. `how` are flags. Returns its address; 0 on failure.
static uint64_t ccc_tensor_of(ccc_array *array, ccc_handle *buffer, int how)
{
    void *memory = NULL;
    if (how & CCC_TENSOR_ON_HOST) {
        memory = malloc(ccc_array_bytes(array));
        if (memory == NULL) {
            ccc_fail(CCC_NO_MEMORY, "malloc");
            return 0;
        }
        array->data = (uintptr_t)memory;
    }
    int is_open = buffer == NULL || ccc_acquire(buffer);
    ccc_tensor *tensor = is_open ? ccc_tensor_new(array, how) : ccc_closed();
    if (tensor == NULL) {
        free(memory);
        if (is_open)
            ccc_release_any(buffer);
        return 0;
    }
    tensor->buffer = buffer;
    tensor->memory = memory;
    return (uintptr_t)tensor;
}

// A tensor that shows memory whose owner is told when it is deleted. Returns its address; 0 on failure.
static uint64_t ccc_tensor_with(const ccc_array *array, int how, void (*end)(void *owner), void *owner)
{
    ccc_tensor *tensor = ccc_tensor_new(array, how);
    if (tensor) {
        tensor->end = end;
        tensor->owner = owner;
    }
    return (uintptr_t)tensor;
}

// A buffer as signed bytes.
static uint64_t ccc_tensor_of_buffer(ccc_handle *buffer, int how)
{
    const int device_type = how & 0xFF, device_id = how >> 16;
    const int64_t shape = (int64_t)ccc_as_buffer(buffer)->size, stride = 1;
    ccc_array array = {.data = buffer->value,
                       .device = {device_type, device_id},
                       .dtype = {CCC_DL_INT, 8, 1},
                       .ndim = 1,
                       .shape = &shape,
                       .strides = &stride};
    return ccc_tensor_of(&array, buffer, how);
}

// The address of the table for the module _capsule, which puts tensors into capsules.
static uint64_t ccc_get_tensor_calls(void)
{
    static const ccc_tensor_calls calls = {
        ccc_delete_old, ccc_delete_versioned, ccc_tensor_of_buffer, ccc_tensor_of, ccc_tensor_with,
    };
    return (uintptr_t)&calls;
}

// Whether a buffer goes back in the order of a stream of another library, whose owner Python has to keep.
static int ccc_has_foreign_stream(const ccc_handle *buffer)
{
    const ccc_handle *stream = ccc_buffer_read(buffer);
    int found = stream && (stream->flags & (CCC_BORROWED | CCC_TOKEN)) == CCC_BORROWED;
    ccc_buffer_unread(buffer);
    return found;
}

// The same, in the order of the consumer's stream, which is given by handle; 0 for no ordering. Returns 0 with a status
// if the ordering failed, and without where Python has a part in it: it owns the memory, has to look for finished
// tensors, or tells what is wrong.
static uint64_t ccc_tensor_for(ccc_handle *buffer, DLDevice device, int versioned, uint64_t stream, int *status)
{
    ccc_stream consumer = CCC_STREAM_OF(stream, stream <= 2 ? CCC_TOKEN : 0);
    *status = 0;
    CCC_USE_OR(buffer, 0);
    if (ccc_allocation(buffer)->flags & CCC_BORROWED || ccc_has_foreign_stream(buffer) || ccc_tensors_finished() ||
        (stream && (*status = ccc_buffer_order(buffer, &consumer.timeline.handle))))
        return 0;
    return ccc_tensor_of_buffer(buffer,
                                device.device_type | device.device_id << 16 | (versioned ? CCC_TENSOR_VERSIONED : 0));
}

#endif
