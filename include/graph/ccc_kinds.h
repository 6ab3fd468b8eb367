// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// The types of all kinds of handles.
#ifndef CCC_KINDS_H
#define CCC_KINDS_H

#include "code/ccc_foreign.h"
#include "code/ccc_library.h"
#include "graph/ccc_capture.h"
#include "memory/ccc_graphics.h"
#include "memory/ccc_ipc.h"
#include "texture/ccc_texture.h"

static const ccc_handle_type *const ccc_types[CCC_KINDS] = {
    [CCC_CONTEXT] = &ccc_context_type, [CCC_STREAM] = &ccc_stream_type,     [CCC_EVENT] = &ccc_event_type,
    [CCC_POOL] = &ccc_pool_type,       [CCC_BUFFER] = &ccc_buffer_type,     [CCC_LIBRARY] = &ccc_library_type,
    [CCC_KERNEL] = &ccc_kernel_type,   [CCC_PROGRAM] = &ccc_program_type,   [CCC_LINKER] = &ccc_linker_type,
    [CCC_GRAPH] = &ccc_graph_type,     [CCC_EXECUTABLE] = &ccc_graph_type,  [CCC_CAPTURE] = &ccc_capture_type,
    [CCC_ARRAY] = &ccc_array_type,     [CCC_MIPMAP] = &ccc_mipmap_type,     [CCC_TEXTURE] = &ccc_texture_type,
    [CCC_SURFACE] = &ccc_surface_type, [CCC_GRAPHICS] = &ccc_graphics_type,
};

#endif
