// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Encoding of tensor maps. The rules are those of driver 580 on an H100, which was asked with some 390,000
// descriptions; where cuda.h says something else, a comment does.

#include "tensor/tensor_map.h"

#include "driver/context.h"
#include "driver/config.h"

#include <string.h>

enum {
    ALIGNMENT = 16,
    WIDE_ALIGNMENT = 32,  // where channels are interleaved by 32 bytes
    LARGEST_BOX = 256,
    LARGEST_STEP = 8,
    LARGEST_CHANNELS = 256,
    LARGEST_PIXELS = 1024,
    LARGEST_BYTES = 228 << 10,  // of a box: the shared memory of a multiprocessor
    PACKED_BOX = 128,
    HOPPER = 9,
    BLACKWELL = 10,
};
static const uint64_t MARK = 0x70616d726f736e74u, EXTENT_LIMIT = 1ull << 32, STRIDE_LIMIT = 1ull << 40,
                      ADDRESS_LIMIT = 1ull << 57;

static const uint8_t element_bytes[] = {
    [CU_TENSOR_MAP_DATA_TYPE_UINT8] = 1,        [CU_TENSOR_MAP_DATA_TYPE_UINT16] = 2,
    [CU_TENSOR_MAP_DATA_TYPE_UINT32] = 4,       [CU_TENSOR_MAP_DATA_TYPE_INT32] = 4,
    [CU_TENSOR_MAP_DATA_TYPE_UINT64] = 8,       [CU_TENSOR_MAP_DATA_TYPE_INT64] = 8,
    [CU_TENSOR_MAP_DATA_TYPE_FLOAT16] = 2,      [CU_TENSOR_MAP_DATA_TYPE_FLOAT32] = 4,
    [CU_TENSOR_MAP_DATA_TYPE_FLOAT64] = 8,      [CU_TENSOR_MAP_DATA_TYPE_BFLOAT16] = 2,
    [CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ] = 4,  [CU_TENSOR_MAP_DATA_TYPE_TFLOAT32] = 4,
    [CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ] = 4,
};
enum { PLAIN_TYPES = sizeof element_bytes };

// What the three ways to encode have in common.
struct description {
    void *map;  // anywhere: cuda.h wants a multiple of 64 bytes, the driver does not
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

// Packed types and swizzles of larger atoms came with Blackwell, of which no driver was asked: there cuda.h counts.
static CUresult check_modes(const struct description *d)
{
    bool later = sim_config()->major >= BLACKWELL;
    SIM_SUPPORTED(!later || d->type < PLAIN_TYPES || d->type > CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B);
    SIM_REQUIRE(d->type < PLAIN_TYPES);
    SIM_REQUIRE(d->interleave <= CU_TENSOR_MAP_INTERLEAVE_32B);
    SIM_REQUIRE(d->swizzle <= (later ? CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B : CU_TENSOR_MAP_SWIZZLE_128B));
    SIM_REQUIRE(d->promotion <= CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
    SIM_REQUIRE(d->fill <= CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
    SIM_REQUIRE(d->fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE || is_float(d->type));
    SIM_REQUIRE(d->row_bytes % ALIGNMENT == 0);
    if (d->interleave == CU_TENSOR_MAP_INTERLEAVE_NONE)
        SIM_REQUIRE(d->row_bytes <= swizzle_span(d->swizzle));
    else
        SIM_REQUIRE(d->rank >= 3);
    return CUDA_SUCCESS;
}

static CUresult check_memory(const struct description *d)
{
    uint64_t alignment = d->interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? WIDE_ALIGNMENT : ALIGNMENT;
    SIM_REQUIRE((uintptr_t)d->address % alignment == 0 && (uintptr_t)d->address < ADDRESS_LIMIT);
    SIM_REQUIRE(d->extents && d->steps && d->strides);
    for (unsigned i = 0; i < d->rank; i++) {
        SIM_REQUIRE(d->extents[i] && d->extents[i] <= EXTENT_LIMIT);
        SIM_REQUIRE(d->steps[i] && d->steps[i] <= LARGEST_STEP);
        if (i)
            SIM_REQUIRE(d->strides[i - 1] % alignment == 0 && d->strides[i - 1] < STRIDE_LIMIT);
    }
    return CUDA_SUCCESS;
}

// Checks what is common, and begins the map.
static CUresult begin(const struct description *d, unsigned least_rank, struct sim_tensor_map *map)
{
    SIM_REQUIRE(d->map && d->rank >= least_rank && d->rank <= SIM_TENSOR_RANK);
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
    memset(d->map, 0, sizeof(CUtensorMap));
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
    struct description given = {tensorMap, tensorDataType, tensorRank,     globalAddress,
                                globalDim, globalStrides,  elementStrides, interleave,
                                swizzle,   l2Promotion,    oobFill,        (uint64_t)boxDim[0] * bytes};
    struct sim_tensor_map map;
    for (unsigned i = 0; i < tensorRank; i++)
        SIM_REQUIRE(boxDim[i] && boxDim[i] <= LARGEST_BOX);
    SIM_TRY(begin(&given, 1, &map));
    uint64_t count = bytes;
    for (unsigned i = 0; i < tensorRank; i++)
        count *= boxDim[i] / elementStrides[i];  // rounded down, where the copy rounds up
    SIM_REQUIRE(count <= LARGEST_BYTES);
    map.mode = SIM_TENSOR_TILED;
    for (unsigned i = 0; i < tensorRank; i++)
        map.box[i] = (uint16_t)boxDim[i];
    return finish(&given, &map);
}

// How far a corner may be from the image, by the number of dimensions.
static int corner_limit(unsigned rank)
{
    static const int limits[] = {1 << 15, 1 << 7, 1 << 4};
    return limits[rank - 3];
}

// What both kinds of im2col have of their own. Where channels are interleaved, the first dimension is the width.
static CUresult set_pixels(struct sim_tensor_map *map, const struct description *d, const int *lower, const int *upper,
                           unsigned pixels, int limit)
{
    unsigned first = map->interleave == CU_TENSOR_MAP_INTERLEAVE_NONE;
    SIM_REQUIRE(d->row_bytes * pixels <= LARGEST_BYTES);
    for (unsigned i = 0; i < map->rank - 2u; i++) {
        SIM_REQUIRE(lower[i] >= -limit && lower[i] < limit && upper[i] >= -limit && upper[i] < limit);
        // the box has a pixel; the driver takes its end for a signed number of 32 bits
        SIM_REQUIRE((int32_t)(map->last[first + i] + 1 + (uint32_t)upper[i]) > lower[i]);
        map->lower[i] = (int16_t)lower[i];
        map->upper[i] = (int16_t)upper[i];
    }
    map->channels = d->row_bytes / element_bytes[d->type];
    map->pixels = (uint16_t)pixels;
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
    struct description given = {tensorMap, tensorDataType, tensorRank,     globalAddress,
                                globalDim, globalStrides,  elementStrides, interleave,
                                swizzle,   l2Promotion,    oobFill,        (uint64_t)channelsPerPixel * bytes};
    struct sim_tensor_map map;
    SIM_TRY(begin(&given, 3, &map));
    SIM_TRY(
        set_pixels(&map, &given, pixelBoxLowerCorner, pixelBoxUpperCorner, pixelsPerColumn, corner_limit(tensorRank)));
    map.mode = SIM_TENSOR_IM2COL;
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
    SIM_TRY(require_architecture(HOPPER));  // which has no instruction for such maps
    SIM_REQUIRE(mode == CU_TENSOR_MAP_IM2COL_WIDE_MODE_W || mode == CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128);
    SIM_REQUIRE(channelsPerPixel && channelsPerPixel <= LARGEST_CHANNELS);
    SIM_REQUIRE(mode == CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128 || (pixelsPerColumn && pixelsPerColumn <= LARGEST_PIXELS));
    unsigned bytes = (unsigned)tensorDataType < PLAIN_TYPES ? element_bytes[tensorDataType] : 0;
    struct description given = {tensorMap, tensorDataType, tensorRank,     globalAddress,
                                globalDim, globalStrides,  elementStrides, interleave,
                                swizzle,   l2Promotion,    oobFill,        (uint64_t)channelsPerPixel * bytes};
    struct sim_tensor_map map;
    SIM_TRY(begin(&given, 3, &map));
    int is_w = mode == CU_TENSOR_MAP_IM2COL_WIDE_MODE_W;
    int lower[SIM_TENSOR_CORNERS] = {pixelBoxLowerCornerWidth}, upper[SIM_TENSOR_CORNERS] = {pixelBoxUpperCornerWidth};
    bool later = sim_config()->major >= BLACKWELL;  // where cuda.h counts
    SIM_REQUIRE(!later || (swizzle != CU_TENSOR_MAP_SWIZZLE_NONE && swizzle != CU_TENSOR_MAP_SWIZZLE_32B));
    SIM_TRY(set_pixels(&map, &given, lower, upper, is_w ? pixelsPerColumn : PACKED_BOX,
                       corner_limit(later ? 3 : tensorRank)));
    map.mode = is_w ? SIM_TENSOR_IM2COL_W : SIM_TENSOR_IM2COL_W128;
    return finish(&given, &map);
}

// A map whose channels are interleaved by 32 bytes may get an address that it could not be made with. What is no map is
// refused, where the driver writes into it.
SIM_API(cuTensorMapReplaceAddress, (CUtensorMap *tensorMap, void *globalAddress), (tensorMap, globalAddress))
{
    SIM_TRY(require_architecture(HOPPER));
    SIM_REQUIRE(tensorMap && globalAddress);
    struct sim_tensor_map map;
    memcpy(&map, tensorMap, sizeof map);
    SIM_REQUIRE(sim_tensor_map_of(&map));
    SIM_REQUIRE((uintptr_t)globalAddress % ALIGNMENT == 0 && (uintptr_t)globalAddress < ADDRESS_LIMIT);
    map.address = (uintptr_t)globalAddress;
    memcpy(tensorMap, &map, sizeof map);
    return CUDA_SUCCESS;
}
