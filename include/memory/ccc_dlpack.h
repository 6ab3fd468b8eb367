// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// DLPack's structures: https://dmlc.github.io/dlpack
#ifndef CCC_DLPACK_H
#define CCC_DLPACK_H

#include <stdint.h>

#define CCC_DLPACK_MAJOR 1
#define CCC_DLPACK_MINOR 0
#define CCC_DLPACK_READ_ONLY 1u
#define CCC_DLPACK_IS_COPIED 2u
#define CCC_DL_COMPLEX 5
#define CCC_DL_LEGACY_STREAM 1  // as __dlpack__ is told of it

enum { CCC_DL_CPU = 1, CCC_DL_CUDA = 2, CCC_DL_CUDA_HOST = 3, CCC_DL_CUDA_MANAGED = 13 };

typedef struct DLDevice {
    int32_t device_type;
    int32_t device_id;
} DLDevice;

typedef struct DLDataType {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} DLDataType;

typedef struct DLTensor {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides;
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
    struct {
        uint32_t major;
        uint32_t minor;
    } version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

// How C code exchanges tensors with an array type, in its __dlpack_c_exchange_api__: a capsule of this name.
#define CCC_DLPACK_EXCHANGE_NAME "dlpack_exchange_api"
#define CCC_DLPACK_EXCHANGE_MINOR 3

typedef struct DLPackExchangeAPIHeader {
    struct {
        uint32_t major;
        uint32_t minor;
    } version;
    struct DLPackExchangeAPIHeader *prev_api;
} DLPackExchangeAPIHeader;

typedef struct DLPackExchangeAPI {
    DLPackExchangeAPIHeader header;
    int (*managed_tensor_allocator)(DLTensor *prototype, DLManagedTensorVersioned **out, void *error_context,
                                    void (*set_error)(void *error_context, const char *kind, const char *message));
    int (*managed_tensor_from_py_object_no_sync)(void *object, DLManagedTensorVersioned **out);
    int (*managed_tensor_to_py_object_no_sync)(DLManagedTensorVersioned *tensor, void **out);
    int (*dltensor_from_py_object_no_sync)(void *object, DLTensor *out);  // may be NULL
    int (*current_work_stream)(int device_type, int32_t device_id, void **out);
} DLPackExchangeAPI;

#endif
