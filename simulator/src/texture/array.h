// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Arrays and mipmapped arrays: their memory is the device's, row after row and layer after layer.

#ifndef SIM_ARRAY_H
#define SIM_ARRAY_H

#include "driver/context.h"
#include "memory/copy.h"
#include "texture/image.h"

struct sim_array {
    struct sim_object base;
    struct sim_context *context;   // a reference
    CUDA_ARRAY3D_DESCRIPTOR desc;  // as it was given
    struct sim_image image;
    uintptr_t memory;  // what was allocated for it, or for the mipmapped array
    size_t bytes;
    bool level;  // of a mipmapped array, which owns it
};

struct sim_mipmap {
    struct sim_object base;
    struct sim_context *context;  // a reference
    CUDA_ARRAY3D_DESCRIPTOR desc;
    uintptr_t memory;
    size_t bytes;
    unsigned level_count;
    struct sim_array *levels[SIM_MOST_LEVELS];  // references
};

CUresult sim_array_find(CUarray handle, struct sim_array **array);  // takes a reference
CUresult sim_mipmap_find(CUmipmappedArray handle, struct sim_mipmap **mipmap);
void sim_array_finalize(void *array);
void sim_mipmap_finalize(void *mipmap);

// The components and channels of a format, or what is wrong with it.
CUresult sim_format_read(CUarray_format format, unsigned channels, struct sim_format *out);
enum sim_shape sim_shape_of(const CUDA_ARRAY3D_DESCRIPTOR *desc);
// Whether an array may be as described; `mipmapped` for the first level of a mipmapped array.
CUresult sim_array_check(int device, const CUDA_ARRAY3D_DESCRIPTOR *desc, bool mipmapped);
// An image of the described size, without an address; returns its bytes.
size_t sim_image_describe(const CUDA_ARRAY3D_DESCRIPTOR *desc, struct sim_format format, struct sim_image *image);

// Where a copy starts in an array; `x` and `width` are bytes.
struct sim_box {
    size_t x, y, z, width, height, depth;
};
CUresult sim_array_operand(CUarray handle, const struct sim_box *box, struct sim_operand *operand);

// The context ends, and what belongs to it.
void sim_arrays_retire_of(struct sim_context *context);

#endif
