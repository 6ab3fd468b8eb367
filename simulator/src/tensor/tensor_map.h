// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Tensor maps: what a CUtensorMap of the simulated driver holds. Hardware has a form of its own.
#ifndef SIM_TENSOR_MAP_H
#define SIM_TENSOR_MAP_H

#include "driver/sim.h"

enum { SIM_TENSOR_RANK = 5, SIM_TENSOR_CORNERS = SIM_TENSOR_RANK - 2 };
enum sim_tensor_mode { SIM_TENSOR_TILED, SIM_TENSOR_IM2COL, SIM_TENSOR_IM2COL_W, SIM_TENSOR_IM2COL_W128 };

// Dimensions are in the order of the driver: the innermost first.
struct sim_tensor_map {
    uint64_t mark;
    uint64_t address;
    uint64_t strides[SIM_TENSOR_RANK - 1];                         // in bytes, of all dimensions but the first
    uint32_t last[SIM_TENSOR_RANK];                                // index of the last element: the extent may be 2^32
    uint16_t box[SIM_TENSOR_RANK];                                 // of tiled maps, in elements
    int16_t lower[SIM_TENSOR_CORNERS], upper[SIM_TENSOR_CORNERS];  // of im2col
    uint16_t channels, pixels;
    uint8_t steps[SIM_TENSOR_RANK];  // element strides
    uint8_t mode, type, rank, interleave, swizzle, promotion, fill;
};
_Static_assert(sizeof(struct sim_tensor_map) <= sizeof(CUtensorMap), "a tensor map has 128 bytes");

// The map in 128 bytes, or NULL if they are none.
const struct sim_tensor_map *sim_tensor_map_of(const void *bytes);
unsigned sim_tensor_element_bytes(const struct sim_tensor_map *map);

#endif
