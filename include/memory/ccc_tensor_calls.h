// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// What the module _capsule calls: functions of the CFFI module, which it is not linked with.
#ifndef CCC_TENSOR_CALLS_H
#define CCC_TENSOR_CALLS_H

#include "memory/ccc_dlpack.h"

typedef struct ccc_handle ccc_handle;

// How a tensor is made. Below these flags is DLPack's device type, and from bit 16 on the ordinal.
#define CCC_TENSOR_VERSIONED (1 << 8)
#define CCC_TENSOR_COPIED (1 << 9)
#define CCC_TENSOR_PINNED (1 << 10)
#define CCC_TENSOR_READ_ONLY (1 << 11)
#define CCC_TENSOR_ON_HOST (1 << 12)  // with host memory of its own

// What a tensor shows.
typedef struct ccc_array {
    uint64_t data;
    DLDevice device;
    DLDataType dtype;
    int ndim;
    const int64_t *shape;
    const int64_t *strides;  // in elements; NULL: the elements lie without gaps
} ccc_array;

typedef struct ccc_tensor_calls {
    void (*delete_old)(DLManagedTensor *self);
    void (*delete_versioned)(DLManagedTensorVersioned *self);
    uint64_t (*of_buffer)(ccc_handle *buffer, int how);  // the address of a tensor; 0 after a failure
    uint64_t (*of_array)(ccc_array *array, ccc_handle *buffer, int how);
    uint64_t (*with)(const ccc_array *array, int how, void (*end)(void *owner), void *owner);
} ccc_tensor_calls;

#endif
