// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "texture/array.h"

#include "memory/arena.h"
#include "memory/memory.h"
#include "streams/capture.h"

// --- Life -----------------------------------------------------------------------------------------------------

void sim_array_finalize(void *array) { sim_object_drop(((struct sim_array *)array)->context); }

void sim_mipmap_finalize(void *object)
{
    struct sim_mipmap *mipmap = object;
    for (unsigned i = 0; i < mipmap->level_count; i++)
        sim_object_drop(mipmap->levels[i]);
    sim_object_drop(mipmap->context);
}

static CUresult find(enum sim_kind kind, const void *handle, void *found)
{
    SIM_REQUIRE(handle);
    switch (sim_object_find(kind, handle, found)) {
    case SIM_FOUND: return CUDA_SUCCESS;
    case SIM_STALE: return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    default: return CUDA_ERROR_INVALID_HANDLE;
    }
}

CUresult sim_array_find(CUarray handle, struct sim_array **array) { return find(SIM_ARRAY, handle, array); }

CUresult sim_mipmap_find(CUmipmappedArray handle, struct sim_mipmap **mipmap)
{
    return find(SIM_MIPMAP, handle, mipmap);
}

static struct sim_array *array_new(struct sim_context *context, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
    struct sim_array *array = sim_object_new(SIM_ARRAY);
    if (!array)
        return NULL;
    sim_object_hold(context);
    array->context = context;
    array->desc = *desc;
    return array;
}

static CUresult create(CUarray *handle, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
    SIM_TRY(sim_capture_check_unsafe());
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    struct sim_format format;
    SIM_TRY(sim_format_read(desc->Format, desc->NumChannels, &format));
    SIM_TRY(sim_array_check(context->device, desc, false));
    struct sim_array *array = array_new(context, desc);
    if (!array)
        return CUDA_ERROR_OUT_OF_MEMORY;
    array->bytes = sim_image_describe(desc, format, &array->image);
    CUresult status = sim_memory_new_array(context, array->bytes, &array->memory);
    if (status != CUDA_SUCCESS) {
        sim_object_retire(array);
        return status;
    }
    array->image.address = array->memory;
    *handle = (CUarray)sim_object_handle(array);
    return CUDA_SUCCESS;
}

static void retire(void *object, void *context)
{
    if (((struct sim_array *)object)->context == context)
        sim_object_retire(object);
}

static void retire_mipmap(void *object, void *context)
{
    if (((struct sim_mipmap *)object)->context == context)
        sim_object_retire(object);
}

// The memory goes with the allocations of the context.
void sim_arrays_retire_of(struct sim_context *context)
{
    sim_object_each(SIM_ARRAY, retire, context);
    sim_object_each(SIM_MIPMAP, retire_mipmap, context);
}

SIM_API(cuArrayCreate_v2, (CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray), (pHandle, pAllocateArray))
{
    SIM_REQUIRE(pHandle && pAllocateArray);
    CUDA_ARRAY3D_DESCRIPTOR desc = {pAllocateArray->Width,  pAllocateArray->Height,      0,
                                    pAllocateArray->Format, pAllocateArray->NumChannels, 0};
    return create(pHandle, &desc);
}

SIM_API(cuArray3DCreate_v2, (CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray),
        (pHandle, pAllocateArray))
{
    SIM_REQUIRE(pHandle && pAllocateArray);
    return create(pHandle, pAllocateArray);
}

SIM_API(cuArrayDestroy, (CUarray hArray), (hArray))
{
    SIM_HELD struct sim_array *array = NULL;
    SIM_TRY(sim_array_find(hArray, &array));
    SIM_TRY(sim_capture_check_unsafe());
    if (array->level)
        return CUDA_ERROR_INVALID_HANDLE;
    // Work that was submitted before may still use it.
    sim_context_drain(array->context);
    if (!sim_object_retire(array))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    sim_memory_free_array(array->memory);
    return sim_context_status(array->context);
}

// --- Descriptors ----------------------------------------------------------------------------------------------

SIM_API(cuArray3DGetDescriptor_v2, (CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray),
        (pArrayDescriptor, hArray))
{
    SIM_REQUIRE(pArrayDescriptor);
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    SIM_HELD struct sim_array *array = NULL;
    SIM_TRY(sim_array_find(hArray, &array));
    *pArrayDescriptor = array->desc;
    return CUDA_SUCCESS;
}

// For arrays of three dimensions and for layers there is the other function.
SIM_API(cuArrayGetDescriptor_v2, (CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray), (pArrayDescriptor, hArray))
{
    SIM_REQUIRE(pArrayDescriptor);
    CUDA_ARRAY3D_DESCRIPTOR desc;
    SIM_TRY(cuArray3DGetDescriptor_v2_body(&desc, hArray));
    SIM_REQUIRE(!desc.Depth);
    *pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR){desc.Width, desc.Height, desc.Format, desc.NumChannels};
    return CUDA_SUCCESS;
}

// Arrays whose memory is mapped later, and those with tiles or planes, cannot be made. What there is gets the answer
// that the header has for all other arrays.

SIM_API(cuArrayGetMemoryRequirements,
        (CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUarray array, CUdevice device),
        (memoryRequirements, array, device))
{
    (void)device;
    SIM_HELD struct sim_array *found = NULL;
    SIM_REQUIRE(memoryRequirements);
    SIM_TRY(sim_array_find(array, &found));
    return CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuArrayGetSparseProperties, (CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUarray array),
        (sparseProperties, array))
{
    SIM_HELD struct sim_array *found = NULL;
    SIM_REQUIRE(sparseProperties);
    SIM_TRY(sim_array_find(array, &found));
    return CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuArrayGetPlane, (CUarray *pPlaneArray, CUarray hArray, unsigned int planeIdx), (pPlaneArray, hArray, planeIdx))
{
    (void)planeIdx;
    SIM_HELD struct sim_array *array = NULL;
    SIM_REQUIRE(pPlaneArray);
    SIM_TRY(sim_array_find(hArray, &array));
    return CUDA_ERROR_INVALID_VALUE;
}

// --- Copies ---------------------------------------------------------------------------------------------------

CUresult sim_array_operand(CUarray handle, const struct sim_box *box, struct sim_operand *operand)
{
    SIM_HELD struct sim_array *array = NULL;
    SIM_TRY(sim_array_find(handle, &array));
    const struct sim_image *image = &array->image;
    unsigned texel = sim_texel_bytes(image->format);
    SIM_REQUIRE(box->x % texel == 0 && box->width % texel == 0);
    SIM_REQUIRE(box->x <= image->pitch && box->width <= image->pitch - box->x);
    SIM_REQUIRE(box->y <= image->height && box->height <= image->height - box->y);
    SIM_REQUIRE(box->z <= image->depth && box->depth <= image->depth - box->z);
    *operand = (struct sim_operand){
        .address = image->address + box->z * image->slice + box->y * image->pitch + box->x,
        .side = SIM_SIDE_DEVICE,
        .pitch = image->pitch,
        .slice = image->slice,
        .array = handle,
        .origin = {box->x, box->y, box->z},
    };
    return CUDA_SUCCESS;
}

// --- Mipmapped arrays -----------------------------------------------------------------------------------------

static size_t halved(size_t size, unsigned level) { return size ? (size >> level ? size >> level : 1) : 0; }

static CUDA_ARRAY3D_DESCRIPTOR level_of(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned level)
{
    CUDA_ARRAY3D_DESCRIPTOR smaller = *desc;
    smaller.Width = halved(desc->Width, level);
    smaller.Height = halved(desc->Height, level);
    if (!(desc->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)))
        smaller.Depth = halved(desc->Depth, level);
    return smaller;
}

static unsigned most_levels(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
    size_t largest = desc->Width > desc->Height ? desc->Width : desc->Height;
    if (sim_shape_of(desc) == SIM_SHAPE_3D && desc->Depth > largest)
        largest = desc->Depth;
    unsigned count = 1;
    while (largest >>= 1)
        count++;
    return count;
}

static CUresult make_levels(struct sim_mipmap *mipmap, struct sim_format format, unsigned count)
{
    size_t offset = 0;
    for (unsigned i = 0; i < count; i++) {
        CUDA_ARRAY3D_DESCRIPTOR desc = level_of(&mipmap->desc, i);
        struct sim_array *array = array_new(mipmap->context, &desc);
        if (!array)
            return CUDA_ERROR_OUT_OF_MEMORY;
        sim_object_hide(array);
        sim_object_hold(array);
        array->level = true;
        size_t bytes = sim_image_describe(&desc, format, &array->image);
        array->image.address = offset;  // the memory is not there yet
        offset += sim_round_up(bytes, SIM_ALIGNMENT);
        mipmap->levels[mipmap->level_count++] = array;
    }
    mipmap->bytes = offset;
    SIM_TRY(sim_memory_new_array(mipmap->context, offset, &mipmap->memory));
    for (unsigned i = 0; i < count; i++) {
        mipmap->levels[i]->image.address += mipmap->memory;
        mipmap->levels[i]->memory = mipmap->memory;
        mipmap->levels[i]->bytes = offset;
    }
    return CUDA_SUCCESS;
}

static bool end_mipmap(struct sim_mipmap *mipmap)
{
    for (unsigned i = 0; i < mipmap->level_count; i++)
        sim_object_retire(mipmap->levels[i]);
    return sim_object_retire(mipmap);
}

SIM_API(cuMipmappedArrayCreate,
        (CUmipmappedArray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc, unsigned int numMipmapLevels),
        (pHandle, pMipmappedArrayDesc, numMipmapLevels))
{
    SIM_REQUIRE(pHandle && pMipmappedArrayDesc);
    SIM_TRY(sim_capture_check_unsafe());
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    struct sim_format format;
    SIM_TRY(sim_format_read(pMipmappedArrayDesc->Format, pMipmappedArrayDesc->NumChannels, &format));
    SIM_TRY(sim_array_check(context->device, pMipmappedArrayDesc, true));
    unsigned most = most_levels(pMipmappedArrayDesc);
    unsigned count = numMipmapLevels < 1 ? 1 : numMipmapLevels > most ? most : numMipmapLevels;
    struct sim_mipmap *mipmap = sim_object_new(SIM_MIPMAP);
    if (!mipmap)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_object_hold(context);
    mipmap->context = context;
    mipmap->desc = *pMipmappedArrayDesc;
    CUresult status = make_levels(mipmap, format, count);
    if (status != CUDA_SUCCESS) {
        end_mipmap(mipmap);
        return status;
    }
    *pHandle = (CUmipmappedArray)sim_object_handle(mipmap);
    return CUDA_SUCCESS;
}

SIM_API(cuMipmappedArrayGetLevel, (CUarray *pLevelArray, CUmipmappedArray hMipmappedArray, unsigned int level),
        (pLevelArray, hMipmappedArray, level))
{
    SIM_REQUIRE(pLevelArray);
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    SIM_HELD struct sim_mipmap *mipmap = NULL;
    SIM_TRY(sim_mipmap_find(hMipmappedArray, &mipmap));
    SIM_REQUIRE(level < mipmap->level_count);
    *pLevelArray = (CUarray)sim_object_handle(mipmap->levels[level]);
    return CUDA_SUCCESS;
}

SIM_API(cuMipmappedArrayDestroy, (CUmipmappedArray hMipmappedArray), (hMipmappedArray))
{
    SIM_HELD struct sim_mipmap *mipmap = NULL;
    SIM_TRY(sim_mipmap_find(hMipmappedArray, &mipmap));
    SIM_TRY(sim_capture_check_unsafe());
    sim_context_drain(mipmap->context);
    if (!end_mipmap(mipmap))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    sim_memory_free_array(mipmap->memory);
    return sim_context_status(mipmap->context);
}

SIM_API(cuMipmappedArrayGetMemoryRequirements,
        (CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUmipmappedArray mipmap, CUdevice device),
        (memoryRequirements, mipmap, device))
{
    (void)device;
    SIM_HELD struct sim_mipmap *found = NULL;
    SIM_REQUIRE(memoryRequirements);
    SIM_TRY(sim_mipmap_find(mipmap, &found));
    return CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuMipmappedArrayGetSparseProperties, (CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUmipmappedArray mipmap),
        (sparseProperties, mipmap))
{
    SIM_HELD struct sim_mipmap *found = NULL;
    SIM_REQUIRE(sparseProperties);
    SIM_TRY(sim_mipmap_find(mipmap, &found));
    return CUDA_ERROR_INVALID_VALUE;
}
