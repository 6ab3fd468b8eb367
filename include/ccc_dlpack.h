/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* DLPack's structures: https://dmlc.github.io/dlpack */
#ifndef CCC_DLPACK_H
#define CCC_DLPACK_H

#include <stdint.h>

#define CCC_DLPACK_MAJOR 1
#define CCC_DLPACK_MINOR 0

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

#endif
