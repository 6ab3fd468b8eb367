// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

#include "texture/objects.h"

// --- Life -----------------------------------------------------------------------------------------------------

void sim_texture_finalize(void *texture) { sim_object_drop(((struct sim_texture_object *)texture)->context); }
void sim_surface_finalize(void *surface) { sim_object_drop(((struct sim_surface_object *)surface)->context); }

static void retire_texture(void *object, void *context)
{
    if (((struct sim_texture_object *)object)->context == context)
        sim_object_retire(object);
}

static void retire_surface(void *object, void *context)
{
    if (((struct sim_surface_object *)object)->context == context)
        sim_object_retire(object);
}

void sim_texture_objects_retire_of(struct sim_context *context)
{
    sim_object_each(SIM_TEXTURE, retire_texture, context);
    sim_object_each(SIM_SURFACE, retire_surface, context);
}

// --- Textures -------------------------------------------------------------------------------------------------

static CUresult find_texture(CUtexObject handle, struct sim_texture_object **texture)
{
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    SIM_REQUIRE(sim_object_find(SIM_TEXTURE, (void *)(uintptr_t)handle, (void **)texture) == SIM_FOUND);
    SIM_REQUIRE((*texture)->context == context);
    return CUDA_SUCCESS;
}

SIM_API(cuTexObjectCreate,
        (CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc, const CUDA_TEXTURE_DESC *pTexDesc,
         const CUDA_RESOURCE_VIEW_DESC *pResViewDesc),
        (pTexObject, pResDesc, pTexDesc, pResViewDesc))
{
    SIM_REQUIRE(pTexObject && pResDesc && pTexDesc);
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    struct sim_texture_object *object = sim_object_new(SIM_TEXTURE);
    if (!object)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_object_hold(context);
    object->context = context;
    object->resource = *pResDesc;
    object->desc = *pTexDesc;
    object->has_view = pResViewDesc;
    if (pResViewDesc)
        object->view = *pResViewDesc;
    CUresult status = sim_texture_describe(context, object);
    if (status != CUDA_SUCCESS) {
        sim_object_retire(object);
        return status;
    }
    *pTexObject = sim_object_handle(object);
    return CUDA_SUCCESS;
}

SIM_API(cuTexObjectDestroy, (CUtexObject texObject), (texObject))
{
    SIM_HELD struct sim_texture_object *texture = NULL;
    SIM_TRY(find_texture(texObject, &texture));
    SIM_REQUIRE(sim_object_retire(texture));
    return CUDA_SUCCESS;
}

SIM_API(cuTexObjectGetResourceDesc, (CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject), (pResDesc, texObject))
{
    SIM_REQUIRE(pResDesc);
    SIM_HELD struct sim_texture_object *texture = NULL;
    SIM_TRY(find_texture(texObject, &texture));
    *pResDesc = texture->resource;
    return CUDA_SUCCESS;
}

SIM_API(cuTexObjectGetTextureDesc, (CUDA_TEXTURE_DESC *pTexDesc, CUtexObject texObject), (pTexDesc, texObject))
{
    SIM_REQUIRE(pTexDesc);
    SIM_HELD struct sim_texture_object *texture = NULL;
    SIM_TRY(find_texture(texObject, &texture));
    *pTexDesc = texture->desc;
    return CUDA_SUCCESS;
}

SIM_API(cuTexObjectGetResourceViewDesc, (CUDA_RESOURCE_VIEW_DESC *pResViewDesc, CUtexObject texObject),
        (pResViewDesc, texObject))
{
    SIM_REQUIRE(pResViewDesc);
    SIM_HELD struct sim_texture_object *texture = NULL;
    SIM_TRY(find_texture(texObject, &texture));
    SIM_REQUIRE(texture->has_view);
    *pResViewDesc = texture->view;
    return CUDA_SUCCESS;
}

// --- Surfaces -------------------------------------------------------------------------------------------------

static CUresult find_surface(CUsurfObject handle, struct sim_surface_object **surface)
{
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    SIM_REQUIRE(sim_object_find(SIM_SURFACE, (void *)(uintptr_t)handle, (void **)surface) == SIM_FOUND);
    SIM_REQUIRE((*surface)->context == context);
    return CUDA_SUCCESS;
}

SIM_API(cuSurfObjectCreate, (CUsurfObject *pSurfObject, const CUDA_RESOURCE_DESC *pResDesc), (pSurfObject, pResDesc))
{
    SIM_REQUIRE(pSurfObject && pResDesc);
    struct sim_context *context;
    SIM_TRY(sim_current(&context));
    SIM_REQUIRE(pResDesc->resType == CU_RESOURCE_TYPE_ARRAY && !pResDesc->flags);
    SIM_HELD struct sim_array *array = NULL;
    SIM_REQUIRE(sim_array_find(pResDesc->res.array.hArray, &array) == CUDA_SUCCESS);
    SIM_REQUIRE(array->desc.Flags & CUDA_ARRAY3D_SURFACE_LDST);
    struct sim_surface_object *object = sim_object_new(SIM_SURFACE);
    if (!object)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_object_hold(context);
    object->context = context;
    object->resource = *pResDesc;
    object->surface = (struct sim_surface){array->memory, array->bytes, array->image, sim_shape_of(&array->desc)};
    *pSurfObject = sim_object_handle(object);
    return CUDA_SUCCESS;
}

SIM_API(cuSurfObjectDestroy, (CUsurfObject surfObject), (surfObject))
{
    SIM_HELD struct sim_surface_object *surface = NULL;
    SIM_TRY(find_surface(surfObject, &surface));
    SIM_REQUIRE(sim_object_retire(surface));
    return CUDA_SUCCESS;
}

SIM_API(cuSurfObjectGetResourceDesc, (CUDA_RESOURCE_DESC *pResDesc, CUsurfObject surfObject), (pResDesc, surfObject))
{
    SIM_REQUIRE(pResDesc);
    SIM_HELD struct sim_surface_object *surface = NULL;
    SIM_TRY(find_surface(surfObject, &surface));
    *pResDesc = surface->resource;
    return CUDA_SUCCESS;
}

// --- Kernels --------------------------------------------------------------------------------------------------

int sim_texture_for_kernel(void *context, uint64_t handle, struct sim_texture *out)
{
    SIM_HELD struct sim_texture_object *object = NULL;
    if (sim_object_find(SIM_TEXTURE, (void *)(uintptr_t)handle, (void **)&object) != SIM_FOUND ||
        object->context != context)
        return 1;
    *out = object->texture;
    return 0;
}

int sim_surface_for_kernel(void *context, uint64_t handle, struct sim_surface *out)
{
    SIM_HELD struct sim_surface_object *object = NULL;
    if (sim_object_find(SIM_SURFACE, (void *)(uintptr_t)handle, (void **)&object) != SIM_FOUND ||
        object->context != context)
        return 1;
    *out = object->surface;
    return 0;
}
