// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Tensor maps: the driver encodes them in memory that is aligned as it wants; Python keeps the bytes.
#ifndef CCC_TENSOR_MAP_H
#define CCC_TENSOR_MAP_H

#include "streams/ccc_context.h"

#define CCC_TENSOR_RANK 5
#define CCC_TENSOR_MAP_BYTES 128
_Static_assert(sizeof(CUtensorMap) == CCC_TENSOR_MAP_BYTES, "a tensor map has 128 bytes");

enum { CCC_TENSOR_TILED, CCC_TENSOR_IM2COL, CCC_TENSOR_IM2COL_WIDE };

// What a map describes, but for the address. Dimensions are in the driver's order: the innermost first.
typedef struct ccc_tensor_map {
    int kind;  // CCC_TENSOR_*
    unsigned int type, rank;
    uint64_t extents[CCC_TENSOR_RANK], strides[CCC_TENSOR_RANK - 1];  // strides in bytes, from the second dimension on
    unsigned int box[CCC_TENSOR_RANK], steps[CCC_TENSOR_RANK];
    int lower[CCC_TENSOR_RANK - 2], upper[CCC_TENSOR_RANK - 2];
    unsigned int channels, pixels, wide_mode;
    unsigned int interleave, swizzle, promotion, fill;
} ccc_tensor_map;

// Encode a map of what lies at an address, in a context of the device, into 128 bytes. Returns a status.
static int ccc_tensor_map_encode(int device, const ccc_tensor_map *d, uint64_t at, char *bytes)
{
    _Alignas(CCC_TENSOR_MAP_BYTES) CUtensorMap map;
    CCC_SCOPE(scope, ccc_enter(&scope, device));
    void *address = (void *)(uintptr_t)at;
    const cuuint64_t *extents = (const cuuint64_t *)d->extents, *strides = (const cuuint64_t *)d->strides;
    const CUtensorMapDataType type = (CUtensorMapDataType)d->type;
    const CUtensorMapInterleave interleave = (CUtensorMapInterleave)d->interleave;
    const CUtensorMapSwizzle swizzle = (CUtensorMapSwizzle)d->swizzle;
    const CUtensorMapL2promotion promotion = (CUtensorMapL2promotion)d->promotion;
    const CUtensorMapFloatOOBfill fill = (CUtensorMapFloatOOBfill)d->fill;
    if (d->kind == CCC_TENSOR_TILED)
        CCC_TRY(cuTensorMapEncodeTiled, &map, type, d->rank, address, extents, strides, d->box, d->steps, interleave,
                swizzle, promotion, fill);
    else if (d->kind == CCC_TENSOR_IM2COL)
        CCC_TRY(cuTensorMapEncodeIm2col, &map, type, d->rank, address, extents, strides, d->lower, d->upper,
                d->channels, d->pixels, d->steps, interleave, swizzle, promotion, fill);
    else
        CCC_TRY(cuTensorMapEncodeIm2colWide, &map, type, d->rank, address, extents, strides, d->lower[0], d->upper[0],
                d->channels, d->pixels, d->steps, interleave, (CUtensorMapIm2ColWideMode)d->wide_mode, swizzle,
                promotion, fill);
    memcpy(bytes, &map, sizeof map);
    return ccc_left(&scope, 0);
}

// Write a map that describes the same tensor as another one, at another address. Returns a status.
static int ccc_tensor_map_replace(int device, const char *from, uint64_t address, char *bytes)
{
    _Alignas(CCC_TENSOR_MAP_BYTES) CUtensorMap map;
    CCC_SCOPE(scope, ccc_enter(&scope, device));
    memcpy(&map, from, sizeof map);
    CCC_TRY(cuTensorMapReplaceAddress, &map, (void *)(uintptr_t)address);
    memcpy(bytes, &map, sizeof map);
    return ccc_left(&scope, 0);
}

#endif
