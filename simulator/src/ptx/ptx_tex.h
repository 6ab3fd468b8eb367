// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Handlers of instructions that name textures and surfaces by handle.
#ifndef SIM_PTX_TEX_H
#define SIM_PTX_TEX_H

#include "ptx/ptx_types.h"
#include "texture/image.h"

typedef enum geometry { GEO_1D, GEO_2D, GEO_3D, GEO_A1D, GEO_A2D, GEO_CUBE, GEO_ACUBE, GEOMETRIES } geometry;

typedef struct geometry_info {
    uint8_t dims;     // of a layer
    uint8_t layered;  // the first coordinate is a layer
    uint8_t cube;
    uint8_t coordinates;  // operands of an instruction, with those that are ignored
    uint8_t derivatives;
} geometry_info;
extern const geometry_info ptx_geometries[GEOMETRIES];

typedef enum lod_mode { LOD_BASE, LOD_LEVEL, LOD_GRAD } lod_mode;
typedef enum boundary { BOUND_TRAP, BOUND_CLAMP, BOUND_ZERO } boundary;

typedef enum texture_query { QUERY_WIDTH, QUERY_HEIGHT, QUERY_DEPTH, QUERIES } texture_query;

typedef enum sured_op { SURED_ADD, SURED_MIN, SURED_MAX, SURED_AND, SURED_OR, SURED_OPS } sured_op;

// The handle is in->a. in->sub is the geometry, in->list the operands one after the other:
//   tex    four destinations, the coordinates, and the level or two vectors of derivatives (in->n is a lod_mode)
//   tld4   four destinations, the coordinates (in->n is the component)
//   suld   in->n destinations, the coordinates (in->spare is the boundary; the same for the rest)
//   sust   in->n sources, the coordinates
//   sured  the source, the coordinates (in->n is a sured_op)
// in->d is the destination of a query, which in->n names, and in->b the level that it asks for, or NO_OPERAND.
// in->e is a predicate that says whether the texels are there.
exec_fn ptx_tex_handler(void);
exec_fn ptx_tld4_handler(void);
exec_fn ptx_txq_handler(void);
exec_fn ptx_suld_handler(void);
exec_fn ptx_sust_handler(int formatted);
exec_fn ptx_sured_handler(sured_op op, ptx_type type);  // NULL if there is no such instruction
exec_fn ptx_suq_handler(void);

// Whether instructions of a geometry can use what has a shape.
int ptx_geometry_fits(geometry g, enum sim_shape shape, const struct sim_image *image);
uint32_t ptx_image_query(texture_query query, enum sim_shape shape, const struct sim_image *image);

#endif
