// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Handles of compilers and linkers, which other libraries than the driver destroy, or which it destroys as they do.
#ifndef CCC_FOREIGN_H
#define CCC_FOREIGN_H

#include "handles/ccc_end.h"

typedef struct ccc_foreign {
    ccc_handle handle;
    CUresult (*destroy)(uint64_t value);
    const char *call;  // the name of the function that it calls
} ccc_foreign;

static inline ccc_foreign *ccc_as_foreign(const ccc_handle *handle) { return (ccc_foreign *)handle; }

static CUresult ccc_foreign_destroy(ccc_handle *handle, const char **call)
{
    const ccc_foreign *foreign = ccc_as_foreign(handle);
    *call = foreign->call;
    return foreign->destroy ? foreign->destroy(handle->value) : CUDA_SUCCESS;
}

static const ccc_handle_type ccc_program_type = {.size = sizeof(ccc_foreign), .destroy = ccc_foreign_destroy};

static const ccc_handle_type ccc_linker_type = {
    .size = sizeof(ccc_foreign),
    .destroy = ccc_foreign_destroy,
    .needs_context = ccc_always_needs_context,  // cuLinkDestroy crashes without one, in driver 580
};

// A handle for what is about to be made, and is destroyed in this way. NULL: out of memory.
static ccc_handle *ccc_foreign_new(ccc_kind kind, ccc_handle *parent, CUresult (*destroy)(uint64_t value),
                                   const char *call)
{
    ccc_handle *handle = ccc_new(kind, 0, 0, parent);
    if (handle) {
        ccc_as_foreign(handle)->destroy = destroy;
        ccc_as_foreign(handle)->call = call;
    }
    return handle;
}

// The same handle, with what was made; NULL, and no handle any more, if nothing was.
static ccc_handle *ccc_foreign_made(ccc_handle *handle, void *value)
{
    if (value == NULL)
        ccc_discard(handle);
    else
        handle->value = (uintptr_t)value;
    return value ? handle : NULL;
}

#endif
