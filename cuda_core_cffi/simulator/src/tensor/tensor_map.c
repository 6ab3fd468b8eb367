// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Encoding of tensor maps, with the rules that cuda.h gives for each number.

#include "tensor/tensor_map.h"

#include "driver/context.h"
#include "driver/config.h"

#include <string.h>

enum {
    ALIGNMENT = 16,
    WIDE_ALIGNMENT = 32,  // where channels are interleaved by 32 bytes, and for some packed types
    MAP_ALIGNMENT = 64,
    LARGEST_BOX = 256,
    LARGEST_STEP = 8,
    LARGEST_CHANNELS = 256,
    LARGEST_PIXELS = 1024,
    PACKED_BOX = 128,
    HOPPER = 9,
    BLACKWELL = 10,
};
static const uint64_t MARK = 0x70616d726f736e74u, EXTENT_LIMIT = 1ull << 32, STRIDE_LIMIT = 1ull << 40;

static const uint8_t element_bytes[] = {
    [CU_TENSOR_MAP_DATA_TYPE_UINT8] = 1,       [CU_TENSOR_MAP_DATA_TYPE_UINT16] = 2,
    [CU_TENSOR_MAP_DATA_TYPE_UINT32] = 4,      [CU_TENSOR_MAP_DATA_TYPE_INT32] = 4,
    [CU_TENSOR_MAP_DATA_TYPE_UINT64] = 8,      [CU_TENSOR_MAP_DATA_TYPE_INT64] = 8,
    [CU_TENSOR_MAP_DATA_TYPE_FLOAT16] = 2,     [CU_TENSOR_MAP_DATA_TYPE_FLOAT32] = 4,
    [CU_TENSOR_MAP_DATA_TYPE_FLOAT64] = 8,     [CU_TENSOR_MAP_DATA_TYPE_BFLOAT16] = 2,
    [CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ] = 4, [CU_TENSOR_MAP_DATA_TYPE_TFLOAT32] = 4,
    [CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ] = 4,
};
enum { PLAIN_TYPES = sizeof element_bytes };

// What the three ways to encode have in common.
struct description {
    CUtensorMap *map;
    unsigned type, rank;
    const void *address;
    const cuuint64_t *extents, *strides;
    const cuuint32_t *steps;
    unsigned interleave, swizzle, promotion, fill;
    uint64_t row_bytes;  // along the first dimension, of a box or a pixel
};

unsigned sim_tensor_element_bytes(const struct sim_tensor_map *map) { return element_bytes[map->type]; }

const struct sim_tensor_map *sim_tensor_map_of(const void *bytes)
{
    const struct sim_tensor_map *map = bytes;
    return map->mark == MARK ? map : NULL;
}

static bool is_float(unsigned type)
{
    return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
}

static unsigned swizzle_span(unsigned swizzle)
{
    switch (swizzle) {
    case CU_TENSOR_MAP_SWIZZLE_NONE: return UINT32_MAX;
    case CU_TENSOR_MAP_SWIZZLE_32B: return 32;
    case CU_TENSOR_MAP_SWIZZLE_64B: return 64;
    default: return 128;
    }
}

// The device has to know tensor maps of this kind.
static CUresult require_architecture(int least)
{
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    SIM_SUPPORTED(sim_config()->major >= least);
    return CUDA_SUCCESS;
}

static CUresult check_modes(const struct description *d)
{
    SIM_SUPPORTED(d->type < PLAIN_TYPES || d->type > CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B); // packed types
    SIM_REQUIRE(d->type < PLAIN_TYPES);
    SIM_REQUIRE(d->interleave <= CU_TENSOR_MAP_INTERLEAVE_32B && d->swizzle <= CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B);
    SIM_REQUIRE(d->promotion <= CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
    SIM_REQUIRE(d->fill <= CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
    SIM_REQUIRE(d->fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE || is_float(d->type));
    if (d->interleave == CU_TENSOR_MAP_INTERLEAVE_NONE)
        SIM_REQUIRE(d->row_bytes % ALIGNMENT == 0 && d->row_bytes <= swizzle_span(d->swizzle));
    else
        SIM_REQUIRE(d->rank >= 3);
    SIM_REQUIRE(d->interleave != CU_TENSOR_MAP_INTERLEAVE_32B || d->swizzle == CU_TENSOR_MAP_SWIZZLE_32B);
    return CUDA_SUCCESS;
}

static CUresult check_memory(const struct description *d)
{
    uint64_t alignment = d->interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? WIDE_ALIGNMENT : ALIGNMENT;
    SIM_REQUIRE(d->address && (uintptr_t)d->address % alignment == 0);
    SIM_REQUIRE(d->extents && d->steps && (d->strides || d->rank == 1));
    for (unsigned i = 0; i < d->rank; i++) {
        SIM_REQUIRE(d->extents[i] && d->extents[i] <= EXTENT_LIMIT);
        if (i || d->interleave != CU_TENSOR_MAP_INTERLEAVE_NONE)
            SIM_REQUIRE(d->steps[i] && d->steps[i] <= LARGEST_STEP);
        if (i)
            SIM_REQUIRE(d->strides[i - 1] % alignment == 0 && d->strides[i - 1] < STRIDE_LIMIT);
    }
    return CUDA_SUCCESS;
}

// Checks what is common, and begins the map.
static CUresult begin(const struct description *d, unsigned least_rank, struct sim_tensor_map *map)
{
    SIM_REQUIRE(d->map && (uintptr_t)d->map % MAP_ALIGNMENT == 0 && d->rank >= least_rank && d->rank <= SIM_TENSOR_RANK);
    SIM_TRY(check_modes(d));
    SIM_TRY(check_memory(d));
    *map = (struct sim_tensor_map){.mark = MARK,
                                   .address = (uintptr_t)d->address,
                                   .type = (uint8_t)d->type,
                                   .rank = (uint8_t)d->rank,
                                   .interleave = (uint8_t)d->interleave,
                                   .swizzle = (uint8_t)d->swizzle,
                                   .promotion = (uint8_t)d->promotion,
                                   .fill = (uint8_t)d->fill};
    for (unsigned i = 0; i < d->rank; i++) {
        map->last[i] = (uint32_t)(d->extents[i] - 1);
        map->steps[i] = i || d->interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ? (uint8_t)d->steps[i] : 1;
        if (i)
            map->strides[i - 1] = d->strides[i - 1];
    }
    return CUDA_SUCCESS;
}

static CUresult finish(const struct description *d, const struct sim_tensor_map *map)
{
    *d->map = (CUtensorMap){0};
    memcpy(d->map, map, sizeof *map);
    return CUDA_SUCCESS;
}

SIM_API(cuTensorMapEncodeTiled,
        (CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank, void *globalAddress,
         const cuuint64_t *globalDim, const cuuint64_t *globalStrides, const cuuint32_t *boxDim,
         const cuuint32_t *elementStrides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
         CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill),
        (tensorMap, tensorDataType, tensorRank, globalAddress, globalDim, globalStrides, boxDim, elementStrides,
         interleave, swizzle, l2Promotion, oobFill))
{
    SIM_TRY(require_architecture(HOPPER));
    SIM_REQUIRE(boxDim && tensorRank && tensorRank <= SIM_TENSOR_RANK);
    unsigned bytes = (unsigned)tensorDataType < PLAIN_TYPES ? element_bytes[tensorDataType] : 0;
    struct description given = {tensorMap,           tensorDataType,    tensorRank,           globalAddress,
                                globalDim,           globalStrides,     elementStrides,       interleave,
                                swizzle,             l2Promotion,       oobFill,              (uint64_t)boxDim[0] * bytes};
    struct sim_tensor_map map;
    for (unsigned i = 0; i < tensorRank; i++)
        SIM_REQUIRE(boxDim[i] && boxDim[i] <= LARGEST_BOX);
    SIM_TRY(begin(&given, 1, &map));
    map.mode = SIM_TENSOR_TILED;
    for (unsigned i = 0; i < tensorRank; i++)
        map.box[i] = (uint16_t)boxDim[i];
    return finish(&given, &map);
}

// The bounding box has a pixel, and its corners are in the range that hardware has bits for.
static CUresult set_corners(struct sim_tensor_map *map, const int *lower, const int *upper)
{
    static const int limits[] = {1 << 15, 1 << 7, 1 << 4};
    unsigned count = map->rank - 2u;
    int limit = limits[count - 1];
    for (unsigned i = 0; i < count; i++) {
        SIM_REQUIRE(lower[i] >= -limit && lower[i] < limit && upper[i] >= -limit && upper[i] < limit);
        SIM_REQUIRE((int64_t)map->last[i + 1] + 1 + upper[i] - lower[i] > 0);
        map->lower[i] = (int16_t)lower[i];
        map->upper[i] = (int16_t)upper[i];
    }
    return CUDA_SUCCESS;
}

SIM_API(cuTensorMapEncodeIm2col,
        (CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank, void *globalAddress,
         const cuuint64_t *globalDim, const cuuint64_t *globalStrides, const int *pixelBoxLowerCorner,
         const int *pixelBoxUpperCorner, cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn,
         const cuuint32_t *elementStrides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
         CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill),
        (tensorMap, tensorDataType, tensorRank, globalAddress, globalDim, globalStrides, pixelBoxLowerCorner,
         pixelBoxUpperCorner, channelsPerPixel, pixelsPerColumn, elementStrides, interleave, swizzle, l2Promotion,
         oobFill))
{
    SIM_TRY(require_architecture(HOPPER));
    SIM_REQUIRE(pixelBoxLowerCorner && pixelBoxUpperCorner);
    SIM_REQUIRE(channelsPerPixel && channelsPerPixel <= LARGEST_CHANNELS);
    SIM_REQUIRE(pixelsPerColumn && pixelsPerColumn <= LARGEST_PIXELS);
    unsigned bytes = (unsigned)tensorDataType < PLAIN_TYPES ? element_bytes[tensorDataType] : 0;
    struct description given = {tensorMap,  tensorDataType, tensorRank,     globalAddress, globalDim,   globalStrides,
                                elementStrides, interleave, swizzle,        l2Promotion,   oobFill,
                                (uint64_t)channelsPerPixel * bytes};
    struct sim_tensor_map map;
    SIM_TRY(begin(&given, 3, &map));
    SIM_TRY(set_corners(&map, pixelBoxLowerCorner, pixelBoxUpperCorner));
    map.mode = SIM_TENSOR_IM2COL;
    map.channels = (uint16_t)channelsPerPixel;
    map.pixels = (uint16_t)pixelsPerColumn;
    return finish(&given, &map);
}

SIM_API(cuTensorMapEncodeIm2colWide,
        (CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank, void *globalAddress,
         const cuuint64_t *globalDim, const cuuint64_t *globalStrides, int pixelBoxLowerCornerWidth,
         int pixelBoxUpperCornerWidth, cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn,
         const cuuint32_t *elementStrides, CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode,
         CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill),
        (tensorMap, tensorDataType, tensorRank, globalAddress, globalDim, globalStrides, pixelBoxLowerCornerWidth,
         pixelBoxUpperCornerWidth, channelsPerPixel, pixelsPerColumn, elementStrides, interleave, mode, swizzle,
         l2Promotion, oobFill))
{
    SIM_TRY(require_architecture(BLACKWELL));
    SIM_REQUIRE(mode == CU_TENSOR_MAP_IM2COL_WIDE_MODE_W || mode == CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128);
    SIM_REQUIRE(channelsPerPixel && channelsPerPixel <= LARGEST_CHANNELS);
    SIM_REQUIRE(mode == CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128 || (pixelsPerColumn && pixelsPerColumn <= LARGEST_PIXELS));
    // the other swizzles have no such form
    SIM_REQUIRE(swizzle != CU_TENSOR_MAP_SWIZZLE_NONE && swizzle != CU_TENSOR_MAP_SWIZZLE_32B);
    unsigned bytes = (unsigned)tensorDataType < PLAIN_TYPES ? element_bytes[tensorDataType] : 0;
    struct description given = {tensorMap,  tensorDataType, tensorRank,     globalAddress, globalDim,   globalStrides,
                                elementStrides, interleave, swizzle,        l2Promotion,   oobFill,
                                (uint64_t)channelsPerPixel * bytes};
    struct sim_tensor_map map;
    SIM_TRY(begin(&given, 3, &map));
    int lower = pixelBoxLowerCornerWidth, upper = pixelBoxUpperCornerWidth, limit = 1 << 15;
    SIM_REQUIRE(lower >= -limit && lower < limit && upper >= -limit && upper < limit);
    SIM_REQUIRE((int64_t)map.last[1] + 1 + upper - lower > 0);
    map.mode = mode == CU_TENSOR_MAP_IM2COL_WIDE_MODE_W ? SIM_TENSOR_IM2COL_W : SIM_TENSOR_IM2COL_W128;
    map.lower[0] = (int16_t)lower;
    map.upper[0] = (int16_t)upper;
    map.channels = (uint16_t)channelsPerPixel;
    map.pixels = mode == CU_TENSOR_MAP_IM2COL_WIDE_MODE_W ? (uint16_t)pixelsPerColumn : PACKED_BOX;
    return finish(&given, &map);
}

SIM_API(cuTensorMapReplaceAddress, (CUtensorMap *tensorMap, void *globalAddress), (tensorMap, globalAddress))
{
    SIM_TRY(require_architecture(HOPPER));
    SIM_REQUIRE(tensorMap && sim_tensor_map_of(tensorMap));
    struct sim_tensor_map *map = (struct sim_tensor_map *)tensorMap;
    uint64_t alignment = map->interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? WIDE_ALIGNMENT : ALIGNMENT;
    SIM_REQUIRE(globalAddress && (uintptr_t)globalAddress % alignment == 0);
    map->address = (uintptr_t)globalAddress;
    return CUDA_SUCCESS;
}
