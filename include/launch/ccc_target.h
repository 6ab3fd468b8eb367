// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// What is launched: kernels and prepared launches, as the modules that pack arguments hand them to the launch.
#ifndef CCC_TARGET_H
#define CCC_TARGET_H

#include <stddef.h>
#include <stdint.h>

#include "cuda_core_cffi.h"

typedef struct ccc_config ccc_config;  // launch/ccc_launch.h

// What is known of a kernel that is launched.
typedef struct ccc_target {
    ccc_handle *kernel;
    size_t size;              // of the parameter buffer
    const uint32_t *offsets;  // of the parameters in it, for nodes; NULL where the driver does not tell
    size_t count;             // of parameters
} ccc_target;

// What stays the same in a prepared launch.
typedef struct ccc_plan {
    ccc_target target;
    const ccc_config *config;
    size_t stride;  // of a whole record, with the padding at its end
} ccc_plan;

// A prepared launch of a batch: what is prepared, and the packed parameter buffer.
typedef struct ccc_record {
    const ccc_plan *plan;
    _Alignas(16) char arguments[];  // as the largest may have to be
} ccc_record;

#endif
