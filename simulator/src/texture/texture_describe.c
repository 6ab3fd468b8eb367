// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// What a texture object reads, from its descriptors.

#include "driver/device.h"
#include "memory/allocation.h"
#include "texture/objects.h"

// --- Resources ------------------------------------------------------------------------------------------------

static CUresult describe_array(CUarray handle, struct sim_texture *texture)
{
    SIM_HELD struct sim_array *array = NULL;
    SIM_REQUIRE(sim_array_find(handle, &array) == CUDA_SUCCESS);
    texture->address = array->memory;
    texture->bytes = array->bytes;
    texture->levels[0] = array->image;
    texture->level_count = 1;
    texture->shape = sim_shape_of(&array->desc);
    return CUDA_SUCCESS;
}

static CUresult describe_mipmap(CUmipmappedArray handle, struct sim_texture *texture)
{
    SIM_HELD struct sim_mipmap *mipmap = NULL;
    SIM_REQUIRE(sim_mipmap_find(handle, &mipmap) == CUDA_SUCCESS);
    texture->address = mipmap->memory;
    texture->bytes = mipmap->bytes;
    texture->level_count = mipmap->level_count;
    for (unsigned i = 0; i < mipmap->level_count; i++)
        texture->levels[i] = mipmap->levels[i]->image;
    texture->shape = sim_shape_of(&mipmap->desc);
    texture->mipmapped = true;
    return CUDA_SUCCESS;
}

static size_t attribute(struct sim_context *context, CUdevice_attribute which)
{
    int value = 0;
    (void)sim_device_attribute(context->device, which, &value);
    return (size_t)value;
}

static CUresult describe_memory(struct sim_context *context, CUdeviceptr address, size_t pitch, size_t width,
                                size_t height, struct sim_format format, struct sim_texture *texture)
{
    SIM_REQUIRE(width && height && address);
    SIM_REQUIRE(address % attribute(context, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT) == 0);
    texture->address = address;
    texture->bytes = (height - 1) * pitch + width * sim_texel_bytes(format);
    texture->levels[0] =
        (struct sim_image){address, pitch, pitch * height, (uint32_t)width, (uint32_t)height, 1, format};
    texture->level_count = 1;
    return sim_check_range(context, address, texture->bytes, false);
}

// Only the formats that are not fractions by themselves.
static CUresult read_plain_format(CUarray_format format, unsigned channels, struct sim_format *out)
{
    SIM_TRY(sim_format_read(format, channels, out));
    SIM_REQUIRE(!out->normalized);
    return CUDA_SUCCESS;
}

static CUresult describe_linear(struct sim_context *context, const CUDA_RESOURCE_DESC *desc,
                                struct sim_texture *texture)
{
    struct sim_format format;
    SIM_TRY(read_plain_format(desc->res.linear.format, desc->res.linear.numChannels, &format));
    size_t width = desc->res.linear.sizeInBytes / sim_texel_bytes(format);
    SIM_REQUIRE(width <= attribute(context, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH));
    texture->linear_memory = true;
    texture->shape = SIM_SHAPE_1D;
    return describe_memory(context, desc->res.linear.devPtr, width * sim_texel_bytes(format), width, 1, format,
                           texture);
}

static CUresult describe_pitched(struct sim_context *context, const CUDA_RESOURCE_DESC *desc,
                                 struct sim_texture *texture)
{
    struct sim_format format;
    SIM_TRY(read_plain_format(desc->res.pitch2D.format, desc->res.pitch2D.numChannels, &format));
    size_t width = desc->res.pitch2D.width, height = desc->res.pitch2D.height, pitch = desc->res.pitch2D.pitchInBytes;
    SIM_REQUIRE(width <= attribute(context, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH));
    SIM_REQUIRE(height <= attribute(context, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT));
    SIM_REQUIRE(pitch <= attribute(context, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH));
    SIM_REQUIRE(pitch % attribute(context, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT) == 0);
    SIM_REQUIRE(pitch >= width * sim_texel_bytes(format));
    texture->shape = SIM_SHAPE_2D;
    return describe_memory(context, desc->res.pitch2D.devPtr, pitch, width, height, format, texture);
}

static CUresult describe_resource(struct sim_context *context, const CUDA_RESOURCE_DESC *desc,
                                  struct sim_texture *texture)
{
    SIM_REQUIRE(!desc->flags);
    switch ((int)desc->resType) {
    case CU_RESOURCE_TYPE_ARRAY: return describe_array(desc->res.array.hArray, texture);
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: return describe_mipmap(desc->res.mipmap.hMipmappedArray, texture);
    case CU_RESOURCE_TYPE_LINEAR: return describe_linear(context, desc, texture);
    case CU_RESOURCE_TYPE_PITCH2D: return describe_pitched(context, desc, texture);
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

// --- Views ----------------------------------------------------------------------------------------------------

static CUresult read_view_format(CUresourceViewFormat format, struct sim_format *out)
{
    static const struct {
        uint8_t component, bytes;
    } kinds[] = {{SIM_UNSIGNED, 1}, {SIM_SIGNED, 1}, {SIM_UNSIGNED, 2}, {SIM_SIGNED, 2},
                 {SIM_UNSIGNED, 4}, {SIM_SIGNED, 4}, {SIM_FLOATING, 2}, {SIM_FLOATING, 4}};
    enum { CHANNELS = 3 };  // each kind with 1, 2 and 4 of them
    SIM_REQUIRE((int)format > CU_RES_VIEW_FORMAT_NONE && (int)format <= CU_RES_VIEW_FORMAT_UNSIGNED_BC7);
    SIM_SUPPORTED(format <= CU_RES_VIEW_FORMAT_FLOAT_4X32);
    unsigned index = format - CU_RES_VIEW_FORMAT_UINT_1X8;
    *out = (struct sim_format){kinds[index / CHANNELS].component, kinds[index / CHANNELS].bytes,
                               (uint8_t)(1u << index % CHANNELS), false};
    return CUDA_SUCCESS;
}

static bool has_layers(enum sim_shape shape)
{
    return shape == SIM_SHAPE_1D_LAYERED || shape == SIM_SHAPE_2D_LAYERED || shape == SIM_SHAPE_CUBEMAP_LAYERED;
}

static CUresult apply_view(const struct sim_texture_object *object, struct sim_texture *texture)
{
    enum { FACES = 6 };
    const CUDA_RESOURCE_VIEW_DESC *view = &object->view;
    const struct sim_image *whole = &texture->levels[0];
    SIM_REQUIRE(object->resource.resType == CU_RESOURCE_TYPE_ARRAY ||
                object->resource.resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY);
    SIM_REQUIRE(view->width == whole->width && (view->height ? view->height : 1) == whole->height &&
                (view->depth ? view->depth : 1) == whole->depth);
    uint32_t last = view->lastMipmapLevel;
    if (texture->mipmapped && last >= texture->level_count)
        last = texture->level_count - 1;
    SIM_REQUIRE(view->firstMipmapLevel <= last && last < texture->level_count);
    bool cubes = texture->shape == SIM_SHAPE_CUBEMAP_LAYERED;
    uint32_t layers = has_layers(texture->shape) ? whole->depth : 1;
    SIM_REQUIRE(view->firstLayer <= view->lastLayer && view->lastLayer < layers);
    uint32_t count = view->lastLayer - view->firstLayer + 1;
    SIM_REQUIRE(!cubes || (view->firstLayer % FACES == 0 && count % FACES == 0));
    struct sim_format format;
    SIM_TRY(read_view_format(view->format, &format));
    SIM_REQUIRE(sim_texel_bytes(format) == sim_texel_bytes(whole->format));
    texture->level_count = last - view->firstMipmapLevel + 1;
    for (uint32_t i = 0; i < texture->level_count; i++) {
        struct sim_image *level = &texture->levels[i];
        *level = texture->levels[view->firstMipmapLevel + i];
        level->format = format;
        if (has_layers(texture->shape)) {
            level->address += view->firstLayer * level->slice;
            level->depth = count;
        }
    }
    return CUDA_SUCCESS;
}

// --- Sampling -------------------------------------------------------------------------------------------------

static CUresult apply_sampler(const CUDA_TEXTURE_DESC *desc, struct sim_texture *texture)
{
    const unsigned flags = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
                           CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP;
    SIM_REQUIRE(!(desc->flags & ~flags));
    SIM_REQUIRE((unsigned)desc->filterMode <= CU_TR_FILTER_MODE_LINEAR);
    SIM_REQUIRE((unsigned)desc->mipmapFilterMode <= CU_TR_FILTER_MODE_LINEAR);
    texture->normalized_coordinates = desc->flags & CU_TRSF_NORMALIZED_COORDINATES;
    SIM_REQUIRE(!texture->mipmapped || texture->normalized_coordinates);
    for (int i = 0; i < 3; i++) {
        SIM_REQUIRE((unsigned)desc->addressMode[i] <= CU_TR_ADDRESS_MODE_BORDER);
        // Wrapping and mirroring are for normalised coordinates.
        bool repeats =
            desc->addressMode[i] == CU_TR_ADDRESS_MODE_WRAP || desc->addressMode[i] == CU_TR_ADDRESS_MODE_MIRROR;
        texture->address_mode[i] =
            repeats && !texture->normalized_coordinates ? SIM_CLAMP : (uint8_t)desc->addressMode[i];
    }
    const struct sim_format *format = &texture->levels[0].format;
    bool as_integer = desc->flags & CU_TRSF_READ_AS_INTEGER;
    texture->fractions = format->component != SIM_FLOATING && format->bytes < 4 && (!as_integer || format->normalized);
    texture->linear = desc->filterMode == CU_TR_FILTER_MODE_LINEAR && !texture->linear_memory;
    texture->linear_levels = desc->mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
    // What is read as integers cannot be interpolated.
    SIM_REQUIRE(format->component == SIM_FLOATING || texture->fractions ||
                (!texture->linear && !(texture->linear_levels && texture->mipmapped)));
    texture->srgb =
        desc->flags & CU_TRSF_SRGB && texture->fractions && format->component == SIM_UNSIGNED && format->bytes == 1;
    bool cube = texture->shape == SIM_SHAPE_CUBEMAP || texture->shape == SIM_SHAPE_CUBEMAP_LAYERED;
    texture->seamless = desc->flags & CU_TRSF_SEAMLESS_CUBEMAP;
    SIM_REQUIRE(!texture->seamless || cube);
    texture->bias = desc->mipmapLevelBias;
    texture->least_level = desc->minMipmapLevelClamp;
    texture->most_level = desc->maxMipmapLevelClamp;
    for (int i = 0; i < 4; i++)
        texture->border[i] = desc->borderColor[i];
    return CUDA_SUCCESS;
}

CUresult sim_texture_describe(struct sim_context *context, struct sim_texture_object *object)
{
    SIM_TRY(describe_resource(context, &object->resource, &object->texture));
    if (object->has_view)
        SIM_TRY(apply_view(object, &object->texture));
    return apply_sampler(&object->desc, &object->texture);
}
