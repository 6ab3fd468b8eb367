// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// libNVVM, found at run time. As with NVRTC, the few prototypes used here are declared by hand, and a test compares
// them with the real header where one is installed.
#ifndef CCC_NVVM_H
#define CCC_NVVM_H

#include "code/ccc_foreign.h"
#include "driver/ccc_dynamic.h"

typedef struct _nvvmProgram *nvvmProgram;

#define CCC_NVVM_FUNCTIONS(X) \
    X(nvvmVersion, (int *, int *)) \
    X(nvvmIRVersion, (int *, int *, int *, int *)) \
    X(nvvmCreateProgram, (nvvmProgram *)) \
    X(nvvmDestroyProgram, (nvvmProgram *)) \
    X(nvvmAddModuleToProgram, (nvvmProgram, const char *, size_t, const char *)) \
    X(nvvmLazyAddModuleToProgram, (nvvmProgram, const char *, size_t, const char *)) \
    X(nvvmVerifyProgram, (nvvmProgram, int, const char **)) \
    X(nvvmCompileProgram, (nvvmProgram, int, const char **)) \
    X(nvvmGetProgramLogSize, (nvvmProgram, size_t *)) \
    X(nvvmGetProgramLog, (nvvmProgram, char *)) \
    X(nvvmGetCompiledResultSize, (nvvmProgram, size_t *)) \
    X(nvvmGetCompiledResult, (nvvmProgram, char *))

// Newer than the oldest libNVVM that we accept: NULL where it is missing.
#define CCC_NVVM_OPTIONAL(X) X(nvvmLLVMVersion, (const char *, int *))

typedef struct ccc_nvvm {
    CCC_NVVM_FUNCTIONS(CCC_FIELD)
    const char *(*nvvmGetErrorString)(int);
    CCC_NVVM_OPTIONAL(CCC_FIELD)
} ccc_nvvm;

static ccc_nvvm ccc_nvvm_table;

// Take libNVVM from the library at `path`. Returns NULL, or the name of the function or the reason that is missing.
CCC_DYNAMIC_LOADER(nvvm, CCC_NVVM_FUNCTIONS(CCC_NAME) CCC_NAME(nvvmGetErrorString, ), CCC_NVVM_OPTIONAL(CCC_NAME))

static CUresult ccc_nvvm_destroy(uint64_t value)
{
    nvvmProgram program = (nvvmProgram)(uintptr_t)value;
    return ccc_nvvm_table.nvvmDestroyProgram(&program) ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

// A program without modules; NULL with libNVVM's status in *status on failure.
static ccc_handle *ccc_nvvm_create(int *status)
{
    nvvmProgram program = NULL;
    ccc_handle *handle = ccc_foreign_new(CCC_PROGRAM, NULL, ccc_nvvm_destroy, "nvvmDestroyProgram");
    *status = 0;
    if (handle == NULL)
        return NULL;
    *status = ccc_nvvm_table.nvvmCreateProgram(&program);
    return ccc_foreign_made(handle, *status ? NULL : program);
}

#endif
