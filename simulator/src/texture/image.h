// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Texels in memory, and how a texture reads them. Nothing here knows the driver's objects: the interpreter of PTX reads
// textures and surfaces by what is declared here.

#ifndef SIM_IMAGE_H
#define SIM_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_component { SIM_UNSIGNED, SIM_SIGNED, SIM_FLOATING };

struct sim_format {
    uint8_t component;  // an enum sim_component
    uint8_t bytes;      // of a component: 1, 2 or 4
    uint8_t channels;   // 1, 2 or 4
    bool normalized;    // integers that are always read as fractions
};

struct sim_image {
    uintptr_t address;
    size_t pitch, slice;            // bytes from row to row, and from layer to layer
    uint32_t width, height, depth;  // texels, rows and layers; those of dimensions that it does not have are 1
    struct sim_format format;
};

static inline unsigned sim_texel_bytes(struct sim_format format) { return format.bytes * format.channels; }

enum { SIM_MOST_LEVELS = 18 };

enum sim_shape {
    SIM_SHAPE_1D,
    SIM_SHAPE_2D,
    SIM_SHAPE_3D,
    SIM_SHAPE_1D_LAYERED,
    SIM_SHAPE_2D_LAYERED,
    SIM_SHAPE_CUBEMAP,
    SIM_SHAPE_CUBEMAP_LAYERED,
    SIM_SHAPES,
};

// As CUaddress_mode.
enum sim_address { SIM_WRAP, SIM_CLAMP, SIM_MIRROR, SIM_BORDER };

struct sim_texture {
    uintptr_t address;  // of all the memory that it may read
    size_t bytes;
    struct sim_image levels[SIM_MOST_LEVELS];
    uint32_t level_count;
    enum sim_shape shape;
    bool linear_memory;  // a buffer, which only whole numbers address
    bool mipmapped;
    uint8_t address_mode[3];     // enum sim_address
    bool linear, linear_levels;  // filters
    bool normalized_coordinates;
    bool fractions;  // integers of 8 and 16 bits are read as floating point
    bool srgb, seamless;
    float bias, least_level, most_level;
    float border[4];
};

struct sim_surface {
    uintptr_t address;
    size_t bytes;
    struct sim_image image;
    enum sim_shape shape;
};

#endif
