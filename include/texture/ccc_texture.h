// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Opaque arrays, mipmapped arrays, textures and surfaces.
//
// A level of a mipmapped array is a borrowed handle whose parent is the mipmapped array. A texture or a surface is in
// the context of its array, which is its parent, and has a use of what it shows.
#ifndef CCC_TEXTURE_H
#define CCC_TEXTURE_H

#include "streams/ccc_context.h"

// The handle of a texture or a surface.
typedef struct ccc_texture {
    ccc_handle handle;
    ccc_handle *resource;  // what it shows: an array, a mipmapped array or a buffer
} ccc_texture;

static CUresult ccc_array_destroy(ccc_handle *handle, const char **call)
{
    *call = "cuArrayDestroy";
    return cuArrayDestroy((CUarray)CCC_POINTER(handle));
}

static CUresult ccc_mipmap_destroy(ccc_handle *handle, const char **call)
{
    *call = "cuMipmappedArrayDestroy";
    return cuMipmappedArrayDestroy((CUmipmappedArray)CCC_POINTER(handle));
}

static CUresult ccc_texture_destroy(ccc_handle *handle, const char **call)
{
    *call = "cuTexObjectDestroy";
    return cuTexObjectDestroy(handle->value);
}

static CUresult ccc_surface_destroy(ccc_handle *handle, const char **call)
{
    *call = "cuSurfObjectDestroy";
    return cuSurfObjectDestroy(handle->value);
}

static const ccc_handle_type ccc_array_type = {
    .size = sizeof(ccc_handle),
    .destroy = ccc_array_destroy,
    .needs_context = ccc_always_needs_context,
};
static const ccc_handle_type ccc_mipmap_type = {
    .size = sizeof(ccc_handle),
    .destroy = ccc_mipmap_destroy,
    .needs_context = ccc_always_needs_context,
};
static const ccc_handle_type ccc_texture_type = {
    .size = sizeof(ccc_texture),
    .companion = offsetof(ccc_texture, resource),
    .destroy = ccc_texture_destroy,
    .needs_context = ccc_always_needs_context,
};
static const ccc_handle_type ccc_surface_type = {
    .size = sizeof(ccc_texture),
    .companion = offsetof(ccc_texture, resource),
    .destroy = ccc_surface_destroy,
    .needs_context = ccc_always_needs_context,
};

// A new array in a context of the device. NULL on failure.
static ccc_handle *ccc_array_create(int device, const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    CUarray array = NULL;
    CCC_SCOPE_OR(NULL, scope, ccc_enter(&scope, device));
    ccc_handle *handle = ccc_new(CCC_ARRAY, 0, CCC_WAITS, scope.context);
    CCC_MAKE(handle, (uintptr_t)array, cuArray3DCreate, &array, shape);
    return ccc_left_with(&scope, handle);
}

// The same with several levels.
static ccc_handle *ccc_mipmap_create(int device, const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int levels)
{
    CUmipmappedArray mipmap = NULL;
    CCC_SCOPE_OR(NULL, scope, ccc_enter(&scope, device));
    ccc_handle *handle = ccc_new(CCC_MIPMAP, 0, CCC_WAITS, scope.context);
    CCC_MAKE(handle, (uintptr_t)mipmap, cuMipmappedArrayCreate, &mipmap, shape, levels);
    return ccc_left_with(&scope, handle);
}

// A level, which keeps the mipmapped array. NULL on failure.
static ccc_handle *ccc_mipmap_level(ccc_handle *mipmap, unsigned int level)
{
    CUarray array = NULL;
    CCC_USE_OR(mipmap, ccc_closed());
    CCC_SCOPE_OR(NULL, scope, ccc_enter_context(&scope, ccc_context_of(mipmap)));
    CCC_TRY_OR(NULL, cuMipmappedArrayGetLevel, &array, (CUmipmappedArray)CCC_POINTER(mipmap), level);
    return ccc_left_with(&scope, ccc_new(CCC_ARRAY, (uintptr_t)array, CCC_BORROWED, mipmap));
}

// Name the resource, of which the caller has a use, in its description.
static void ccc_describe_resource(CUDA_RESOURCE_DESC *what, const ccc_handle *resource)
{
    switch (what->resType) {
    case CU_RESOURCE_TYPE_ARRAY: what->res.array.hArray = (CUarray)CCC_POINTER(resource); break;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        what->res.mipmap.hMipmappedArray = (CUmipmappedArray)CCC_POINTER(resource);
        break;
    case CU_RESOURCE_TYPE_LINEAR: what->res.linear.devPtr = resource->value; break;
    default: what->res.pitch2D.devPtr = resource->value;
    }
}

// In the current context: a texture, or with `how` NULL a surface.
static ccc_handle *ccc_texture_create_in(ccc_handle *context, ccc_handle *resource, int refer,
                                         const CUDA_RESOURCE_DESC *what, const CUDA_TEXTURE_DESC *how)
{
    CUtexObject value = 0;
    ccc_handle *handle = ccc_new(how ? CCC_TEXTURE : CCC_SURFACE, 0, 0, context);
    if (how)
        CCC_MAKE(handle, value, cuTexObjectCreate, &value, what, how, NULL);
    else
        CCC_MAKE(handle, value, cuSurfObjectCreate, &value, what);
    if (handle && refer) {
        ccc_retain(resource);
        ((ccc_texture *)handle)->resource = resource;
    }
    return handle;
}

// A texture of an array, a mipmapped array or a buffer, which the description does not name yet; or with `how` NULL a
// surface of an array. Of a buffer it is in a context of the device, which an array has to be on. It does not keep
// memory that Python gives back: `refer` is 0. NULL on failure.
static ccc_handle *ccc_texture_create(int device, ccc_handle *resource, int refer, const CUDA_RESOURCE_DESC *shared,
                                      const CUDA_TEXTURE_DESC *how)
{
    CUDA_RESOURCE_DESC named = *shared, *what = &named;  // other threads may use the same description
    CCC_USE_OR(resource, ccc_closed());
    ccc_describe_resource(what, resource);
    if (resource->kind == CCC_BUFFER) {
        CCC_SCOPE_OR(NULL, scope, ccc_enter(&scope, device));
        return ccc_left_with(&scope, ccc_texture_create_in(scope.context, resource, refer, what, how));
    }
    if (resource->device != device) {
        ccc_fail(CCC_ELSEWHERE, "");
        return NULL;
    }
    ccc_handle *context = ccc_context_of(resource);
    CCC_SCOPE_OR(NULL, scope, ccc_enter_context(&scope, context));
    return ccc_left_with(&scope, ccc_texture_create_in(context, resource, refer, what, how));
}

#endif
