// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Reading textures, as the appendix "Texture Fetching" of the CUDA C++ Programming Guide says.
#ifndef SIM_PTX_SAMPLE_H
#define SIM_PTX_SAMPLE_H

#include "texture/image.h"

// Where a texture is read. Cubemaps take three coordinates, a direction.
typedef struct sample_at {
    float c[3];
    int32_t i[3];  // texels, with `whole`
    int whole;     // the coordinates are integers: nothing is filtered, and what is outside is 0
    uint32_t layer;
    unsigned dims;  // 1, 2 or 3
    int cube;
    int lod_given;  // else the base level is read
    float lod;
} sample_at;

// The bits of the four components: of floats, or of integers where the texture is read as such. Those that the format
// does not have are 0.
void sample_texture(const struct sim_texture *t, const sample_at *at, uint32_t out[4]);
// One component of the four texels that a linear filter would read, counter-clockwise from (i, j + 1).
void gather_texels(const struct sim_texture *t, const sample_at *at, unsigned component, uint32_t out[4]);
// The level of detail that derivatives of the coordinates ask for.
float lod_of_gradients(const struct sim_texture *t, const sample_at *at, const float *dx, const float *dy);

// Components in memory and as registers hold them. `fractions`: 1 for integers that are read as such, from -1 to 1, and
// 2 where the least of signed ones is not -1, but a little less.
void texel_unpack(const void *memory, struct sim_format format, int fractions, uint32_t out[4]);
void texel_pack(void *memory, struct sim_format format, const uint32_t in[4]);

#endif
