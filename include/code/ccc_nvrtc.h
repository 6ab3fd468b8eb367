// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// NVRTC, found at run time. Its header comes in a wheel of 58 MB, so the few prototypes used here are declared by hand;
// a test compares them with the real header where one is installed.
#ifndef CCC_NVRTC_H
#define CCC_NVRTC_H

#include "code/ccc_foreign.h"
#include "driver/ccc_dynamic.h"

typedef struct _nvrtcProgram *nvrtcProgram;

#define CCC_NVRTC_FUNCTIONS(X) \
    X(nvrtcVersion, (int *, int *)) \
    X(nvrtcGetNumSupportedArchs, (int *)) \
    X(nvrtcGetSupportedArchs, (int *)) \
    X(nvrtcCreateProgram, (nvrtcProgram *, const char *, const char *, int, const char *const *, const char *const *)) \
    X(nvrtcDestroyProgram, (nvrtcProgram *)) \
    X(nvrtcCompileProgram, (nvrtcProgram, int, const char *const *)) \
    X(nvrtcAddNameExpression, (nvrtcProgram, const char *)) \
    X(nvrtcGetLoweredName, (nvrtcProgram, const char *, const char **)) \
    X(nvrtcGetProgramLogSize, (nvrtcProgram, size_t *)) \
    X(nvrtcGetProgramLog, (nvrtcProgram, char *)) \
    X(nvrtcGetPTXSize, (nvrtcProgram, size_t *)) \
    X(nvrtcGetPTX, (nvrtcProgram, char *)) \
    X(nvrtcGetCUBINSize, (nvrtcProgram, size_t *)) \
    X(nvrtcGetCUBIN, (nvrtcProgram, char *)) \
    X(nvrtcGetLTOIRSize, (nvrtcProgram, size_t *)) \
    X(nvrtcGetLTOIR, (nvrtcProgram, char *))

// Newer than the oldest NVRTC that we accept: NULL where it is missing.
#define CCC_NVRTC_OPTIONAL(X) \
    X(nvrtcGetPCHHeapSize, (size_t *)) \
    X(nvrtcSetPCHHeapSize, (size_t)) \
    X(nvrtcGetPCHCreateStatus, (nvrtcProgram)) \
    X(nvrtcGetPCHHeapSizeRequired, (nvrtcProgram, size_t *))

typedef struct ccc_nvrtc {
    CCC_NVRTC_FUNCTIONS(CCC_FIELD)
    const char *(*nvrtcGetErrorString)(int);
    CCC_NVRTC_OPTIONAL(CCC_FIELD)
} ccc_nvrtc;

static ccc_nvrtc ccc_nvrtc_table;

// Take NVRTC from the library at `path`. Returns NULL, or the name of the function or the reason that is missing.
CCC_DYNAMIC_LOADER(nvrtc, CCC_NVRTC_FUNCTIONS(CCC_NAME) CCC_NAME(nvrtcGetErrorString, ), CCC_NVRTC_OPTIONAL(CCC_NAME))

static CUresult ccc_program_destroy(uint64_t value)
{
    nvrtcProgram program = (nvrtcProgram)(uintptr_t)value;
    return ccc_nvrtc_table.nvrtcDestroyProgram(&program) ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

// A program for its source; NULL with the NVRTC status in *status on failure.
static ccc_handle *ccc_program_create(const char *source, const char *name, int header_count,
                                      const char *const *headers, const char *const *header_names, int *status)
{
    nvrtcProgram program = NULL;
    ccc_handle *handle = ccc_foreign_new(CCC_PROGRAM, NULL, ccc_program_destroy, "nvrtcDestroyProgram");
    *status = 0;
    if (handle == NULL)
        return NULL;
    *status = ccc_nvrtc_table.nvrtcCreateProgram(&program, source, name, header_count, headers, header_names);
    return ccc_foreign_made(handle, *status ? NULL : program);
}

#endif
