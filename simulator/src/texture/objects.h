// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Texture and surface objects. Like those of drivers, they belong to a context, which has to be current.

#ifndef SIM_TEXTURE_OBJECTS_H
#define SIM_TEXTURE_OBJECTS_H

#include "texture/array.h"

struct sim_texture_object {
    struct sim_object base;
    struct sim_context *context;  // a reference
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC desc;
    CUDA_RESOURCE_VIEW_DESC view;
    bool has_view;
    struct sim_texture texture;
};

struct sim_surface_object {
    struct sim_object base;
    struct sim_context *context;  // a reference
    CUDA_RESOURCE_DESC resource;
    struct sim_surface surface;
};

void sim_texture_finalize(void *texture);
void sim_surface_finalize(void *surface);
void sim_texture_objects_retire_of(struct sim_context *context);

// What a texture reads, from its descriptors.
CUresult sim_texture_describe(struct sim_context *context, struct sim_texture_object *object);

// For kernels of the context, which is the first argument: copies what is behind a handle. Not 0: there is none.
int sim_texture_for_kernel(void *context, uint64_t handle, struct sim_texture *out);
int sim_surface_for_kernel(void *context, uint64_t handle, struct sim_surface *out);

#endif
