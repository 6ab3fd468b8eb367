// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// What arrays there may be: formats, shapes and sizes.

#include "driver/device.h"
#include "texture/array.h"

// --- Formats --------------------------------------------------------------------------------------------------

// The formats that say the number of channels follow one another: 1, 2 and 4 channels of each kind.
static const struct sim_format fractions[] = {
    {SIM_UNSIGNED, 1, 1, true}, {SIM_UNSIGNED, 1, 2, true}, {SIM_UNSIGNED, 1, 4, true}, {SIM_UNSIGNED, 2, 1, true},
    {SIM_UNSIGNED, 2, 2, true}, {SIM_UNSIGNED, 2, 4, true}, {SIM_SIGNED, 1, 1, true},   {SIM_SIGNED, 1, 2, true},
    {SIM_SIGNED, 1, 4, true},   {SIM_SIGNED, 2, 1, true},   {SIM_SIGNED, 2, 2, true},   {SIM_SIGNED, 2, 4, true},
};
_Static_assert(CU_AD_FORMAT_SNORM_INT16X4 - CU_AD_FORMAT_UNORM_INT8X1 + 1 == SIM_COUNT(fractions), "a gap");

// Block-compressed and YUV formats lie in these numbers, as the newest headers have them.
static bool known_elsewhere(int format)
{
    enum { FIRST_PACKED = 0x50, LAST_PACKED = 0x5e, FIRST_BLOCK = 0x91, LAST_YUV = 0xb5, RESERVED = 0xa0 };
    return (format >= FIRST_PACKED && format <= LAST_PACKED) ||
           (format >= FIRST_BLOCK && format <= LAST_YUV && format != RESERVED);
}

CUresult sim_format_read(CUarray_format format, unsigned channels, struct sim_format *out)
{
    int number = (int)format;
    if (number >= CU_AD_FORMAT_UNORM_INT8X1 && number <= CU_AD_FORMAT_SNORM_INT16X4) {
        *out = fractions[number - CU_AD_FORMAT_UNORM_INT8X1];
        SIM_REQUIRE(channels == out->channels);
        return CUDA_SUCCESS;
    }
    SIM_SUPPORTED(!known_elsewhere(number));
    SIM_REQUIRE(channels == 1 || channels == 2 || channels == 4);
    out->channels = (uint8_t)channels;
    out->normalized = false;
    switch (number) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
        out->component = SIM_UNSIGNED;
        out->bytes = 1;
        return CUDA_SUCCESS;
    case CU_AD_FORMAT_UNSIGNED_INT16:
        out->component = SIM_UNSIGNED;
        out->bytes = 2;
        return CUDA_SUCCESS;
    case CU_AD_FORMAT_UNSIGNED_INT32:
        out->component = SIM_UNSIGNED;
        out->bytes = 4;
        return CUDA_SUCCESS;
    case CU_AD_FORMAT_SIGNED_INT8:
        out->component = SIM_SIGNED;
        out->bytes = 1;
        return CUDA_SUCCESS;
    case CU_AD_FORMAT_SIGNED_INT16:
        out->component = SIM_SIGNED;
        out->bytes = 2;
        return CUDA_SUCCESS;
    case CU_AD_FORMAT_SIGNED_INT32:
        out->component = SIM_SIGNED;
        out->bytes = 4;
        return CUDA_SUCCESS;
    case CU_AD_FORMAT_HALF:
        out->component = SIM_FLOATING;
        out->bytes = 2;
        return CUDA_SUCCESS;
    case CU_AD_FORMAT_FLOAT:
        out->component = SIM_FLOATING;
        out->bytes = 4;
        return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

// --- Shapes ---------------------------------------------------------------------------------------------------

enum sim_shape sim_shape_of(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
    bool layered = desc->Flags & CUDA_ARRAY3D_LAYERED;
    if (desc->Flags & CUDA_ARRAY3D_CUBEMAP)
        return layered ? SIM_SHAPE_CUBEMAP_LAYERED : SIM_SHAPE_CUBEMAP;
    if (layered)
        return desc->Height ? SIM_SHAPE_2D_LAYERED : SIM_SHAPE_1D_LAYERED;
    return desc->Depth ? SIM_SHAPE_3D : desc->Height ? SIM_SHAPE_2D : SIM_SHAPE_1D;
}

static CUresult check_shape(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
    enum { FACES = 6 };
    bool layered = desc->Flags & CUDA_ARRAY3D_LAYERED, cube = desc->Flags & CUDA_ARRAY3D_CUBEMAP;
    SIM_REQUIRE(desc->Width);
    SIM_REQUIRE(!layered || desc->Depth);
    SIM_REQUIRE(layered || desc->Height || !desc->Depth);
    SIM_REQUIRE(!cube || (desc->Height == desc->Width && (layered ? desc->Depth % FACES == 0 : desc->Depth == FACES)));
    SIM_REQUIRE(!(desc->Flags & CUDA_ARRAY3D_TEXTURE_GATHER) || sim_shape_of(desc) == SIM_SHAPE_2D);
    return CUDA_SUCCESS;
}

// --- Sizes ----------------------------------------------------------------------------------------------------

// The attributes with the largest width, height and depth; 0 for a dimension that the shape does not have.
struct limit {
    int width, height, depth;
};

#define ATTRIBUTE(name) CU_DEVICE_ATTRIBUTE_MAXIMUM_##name
static const struct limit textures[SIM_SHAPES] = {
    [SIM_SHAPE_1D] = {ATTRIBUTE(TEXTURE1D_WIDTH), 0, 0},
    [SIM_SHAPE_2D] = {ATTRIBUTE(TEXTURE2D_WIDTH), ATTRIBUTE(TEXTURE2D_HEIGHT), 0},
    [SIM_SHAPE_3D] = {ATTRIBUTE(TEXTURE3D_WIDTH), ATTRIBUTE(TEXTURE3D_HEIGHT), ATTRIBUTE(TEXTURE3D_DEPTH)},
    [SIM_SHAPE_1D_LAYERED] = {ATTRIBUTE(TEXTURE1D_LAYERED_WIDTH), 0, ATTRIBUTE(TEXTURE1D_LAYERED_LAYERS)},
    [SIM_SHAPE_2D_LAYERED] = {ATTRIBUTE(TEXTURE2D_LAYERED_WIDTH), ATTRIBUTE(TEXTURE2D_LAYERED_HEIGHT),
                              ATTRIBUTE(TEXTURE2D_LAYERED_LAYERS)},
    [SIM_SHAPE_CUBEMAP] = {ATTRIBUTE(TEXTURECUBEMAP_WIDTH), 0, 0},
    [SIM_SHAPE_CUBEMAP_LAYERED] = {ATTRIBUTE(TEXTURECUBEMAP_LAYERED_WIDTH), 0,
                                   ATTRIBUTE(TEXTURECUBEMAP_LAYERED_LAYERS)},
};
static const struct limit surfaces[SIM_SHAPES] = {
    [SIM_SHAPE_1D] = {ATTRIBUTE(SURFACE1D_WIDTH), 0, 0},
    [SIM_SHAPE_2D] = {ATTRIBUTE(SURFACE2D_WIDTH), ATTRIBUTE(SURFACE2D_HEIGHT), 0},
    [SIM_SHAPE_3D] = {ATTRIBUTE(SURFACE3D_WIDTH), ATTRIBUTE(SURFACE3D_HEIGHT), ATTRIBUTE(SURFACE3D_DEPTH)},
    [SIM_SHAPE_1D_LAYERED] = {ATTRIBUTE(SURFACE1D_LAYERED_WIDTH), 0, ATTRIBUTE(SURFACE1D_LAYERED_LAYERS)},
    [SIM_SHAPE_2D_LAYERED] = {ATTRIBUTE(SURFACE2D_LAYERED_WIDTH), ATTRIBUTE(SURFACE2D_LAYERED_HEIGHT),
                              ATTRIBUTE(SURFACE2D_LAYERED_LAYERS)},
    [SIM_SHAPE_CUBEMAP] = {ATTRIBUTE(SURFACECUBEMAP_WIDTH), 0, 0},
    [SIM_SHAPE_CUBEMAP_LAYERED] = {ATTRIBUTE(SURFACECUBEMAP_LAYERED_WIDTH), 0,
                                   ATTRIBUTE(SURFACECUBEMAP_LAYERED_LAYERS)},
};
static const struct limit alternate_3d = {ATTRIBUTE(TEXTURE3D_WIDTH_ALTERNATE), ATTRIBUTE(TEXTURE3D_HEIGHT_ALTERNATE),
                                          ATTRIBUTE(TEXTURE3D_DEPTH_ALTERNATE)};
static const struct limit gathered = {ATTRIBUTE(TEXTURE2D_GATHER_WIDTH), ATTRIBUTE(TEXTURE2D_GATHER_HEIGHT), 0};
static const struct limit mipmapped_1d = {ATTRIBUTE(TEXTURE1D_MIPMAPPED_WIDTH), 0, 0};
static const struct limit mipmapped_2d = {ATTRIBUTE(TEXTURE2D_MIPMAPPED_WIDTH), ATTRIBUTE(TEXTURE2D_MIPMAPPED_HEIGHT),
                                          0};
#undef ATTRIBUTE

static bool reaches(int device, size_t size, int attribute)
{
    int most = 0;
    return !attribute ||
           (sim_device_attribute(device, (CUdevice_attribute)attribute, &most) == 0 && size <= (size_t)most);
}

static bool fits(int device, const CUDA_ARRAY3D_DESCRIPTOR *desc, const struct limit *limit)
{
    return reaches(device, desc->Width, limit->width) && reaches(device, desc->Height, limit->height) &&
           reaches(device, desc->Depth, limit->depth);
}

CUresult sim_array_check(int device, const CUDA_ARRAY3D_DESCRIPTOR *desc, bool mipmapped)
{
    enum { VIDEO = 0x100 };  // CUDA_ARRAY3D_VIDEO_ENCODE_DECODE, which older headers do not have
    const unsigned elsewhere = CUDA_ARRAY3D_DEPTH_TEXTURE | CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING | VIDEO;
    const unsigned here = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |
                          CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_COLOR_ATTACHMENT;
    SIM_REQUIRE(!(desc->Flags & ~(here | elsewhere)));
    SIM_SUPPORTED(!(desc->Flags & elsewhere));
    SIM_TRY(check_shape(desc));
    enum sim_shape shape = sim_shape_of(desc);
    const struct limit *limit = &textures[shape];
    if (mipmapped && shape == SIM_SHAPE_1D)
        limit = &mipmapped_1d;
    if (mipmapped && shape == SIM_SHAPE_2D)
        limit = &mipmapped_2d;
    SIM_REQUIRE(fits(device, desc, limit) || (shape == SIM_SHAPE_3D && fits(device, desc, &alternate_3d)));
    SIM_REQUIRE(!(desc->Flags & CUDA_ARRAY3D_SURFACE_LDST) || fits(device, desc, &surfaces[shape]));
    SIM_REQUIRE(!(desc->Flags & CUDA_ARRAY3D_TEXTURE_GATHER) || fits(device, desc, &gathered));
    return CUDA_SUCCESS;
}

size_t sim_image_describe(const CUDA_ARRAY3D_DESCRIPTOR *desc, struct sim_format format, struct sim_image *image)
{
    *image = (struct sim_image){
        .width = (uint32_t)desc->Width,
        .height = desc->Height ? (uint32_t)desc->Height : 1,
        .depth = desc->Depth ? (uint32_t)desc->Depth : 1,
        .format = format,
    };
    image->pitch = image->width * (size_t)sim_texel_bytes(format);
    image->slice = image->pitch * image->height;
    return image->slice * image->depth;
}
