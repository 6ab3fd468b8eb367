// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// nvJitLink, found at run time. As with NVRTC, the few prototypes used here are declared by hand, and a test compares
// them with the real header where one is installed. That header calls each function by a name with the version it was
// written for (__nvJitLinkCreate_13_0), unless NVJITLINK_NO_INLINE is defined: then by its plain name, which is what a
// library found at run time is to be asked for. Plain names, and nvJitLinkVersion, exist since CUDA 12.3.
#ifndef CCC_NVJITLINK_H
#define CCC_NVJITLINK_H

#include "code/ccc_foreign.h"
#include "driver/ccc_dynamic.h"
#include "driver/ccc_strings.h"

typedef struct nvJitLink *nvJitLinkHandle;

typedef enum ccc_nvjitlink_result {
    NVJITLINK_SUCCESS = 0,
    NVJITLINK_ERROR_UNRECOGNIZED_OPTION,
    NVJITLINK_ERROR_MISSING_ARCH,
    NVJITLINK_ERROR_INVALID_INPUT,
    NVJITLINK_ERROR_PTX_COMPILE,
    NVJITLINK_ERROR_NVVM_COMPILE,
    NVJITLINK_ERROR_INTERNAL,
    NVJITLINK_ERROR_THREADPOOL,
    NVJITLINK_ERROR_UNRECOGNIZED_INPUT,
    NVJITLINK_ERROR_FINALIZE,
    NVJITLINK_ERROR_NULL_INPUT,
    NVJITLINK_ERROR_INCOMPATIBLE_OPTIONS,
    NVJITLINK_ERROR_INCORRECT_INPUT_TYPE,
    NVJITLINK_ERROR_ARCH_MISMATCH,
    NVJITLINK_ERROR_OUTDATED_LIBRARY,
    NVJITLINK_ERROR_MISSING_FATBIN,
    NVJITLINK_ERROR_UNRECOGNIZED_ARCH,
    NVJITLINK_ERROR_UNSUPPORTED_ARCH,
    NVJITLINK_ERROR_LTO_NOT_ENABLED
} ccc_nvjitlink_result;

typedef enum ccc_nvjitlink_input {
    NVJITLINK_INPUT_CUBIN = 1,
    NVJITLINK_INPUT_PTX,
    NVJITLINK_INPUT_LTOIR,
    NVJITLINK_INPUT_FATBIN,
    NVJITLINK_INPUT_OBJECT,
    NVJITLINK_INPUT_LIBRARY
} ccc_nvjitlink_input;

#define CCC_NVJITLINK_FUNCTIONS(X) \
    X(nvJitLinkVersion, (unsigned int *, unsigned int *)) \
    X(nvJitLinkCreate, (nvJitLinkHandle *, uint32_t, const char **)) \
    X(nvJitLinkDestroy, (nvJitLinkHandle *)) \
    X(nvJitLinkAddData, (nvJitLinkHandle, int, const void *, size_t, const char *)) \
    X(nvJitLinkComplete, (nvJitLinkHandle)) \
    X(nvJitLinkGetLinkedCubinSize, (nvJitLinkHandle, size_t *)) \
    X(nvJitLinkGetLinkedCubin, (nvJitLinkHandle, void *)) \
    X(nvJitLinkGetLinkedPtxSize, (nvJitLinkHandle, size_t *)) \
    X(nvJitLinkGetLinkedPtx, (nvJitLinkHandle, char *)) \
    X(nvJitLinkGetErrorLogSize, (nvJitLinkHandle, size_t *)) \
    X(nvJitLinkGetErrorLog, (nvJitLinkHandle, char *)) \
    X(nvJitLinkGetInfoLogSize, (nvJitLinkHandle, size_t *)) \
    X(nvJitLinkGetInfoLog, (nvJitLinkHandle, char *))

// Newer than the oldest nvJitLink that we accept: NULL where it is missing, before 13.3.
#define CCC_NVJITLINK_OPTIONAL(X) \
    X(nvJitLinkGetLinkedLTOIRSize, (nvJitLinkHandle, size_t *)) \
    X(nvJitLinkGetLinkedLTOIR, (nvJitLinkHandle, void *))

typedef struct ccc_nvjitlink {
    CCC_NVJITLINK_FUNCTIONS(CCC_FIELD)
    CCC_NVJITLINK_OPTIONAL(CCC_FIELD)
} ccc_nvjitlink;

static ccc_nvjitlink ccc_nvjitlink_table;

// Take nvJitLink from the library at `path`. Returns NULL, or the name of the function or the reason that is missing.
CCC_DYNAMIC_LOADER(nvjitlink, CCC_NVJITLINK_FUNCTIONS(CCC_NAME), CCC_NVJITLINK_OPTIONAL(CCC_NAME))

static CUresult ccc_nvjitlink_destroy(uint64_t value)
{
    nvJitLinkHandle linker = (nvJitLinkHandle)(uintptr_t)value;
    return ccc_nvjitlink_table.nvJitLinkDestroy(&linker) ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

// What a linker is told in words. nvJitLink remembers where the names of inputs stand, and quotes them in its log.
typedef struct ccc_nvjitlink_texts {
    unsigned int option_count;
    const char *texts[];  // options, then the names of inputs; and behind them what they point to
} ccc_nvjitlink_texts;

// A linker with the given options, for inputs with the given names; *status is nvJitLink's. Also where that is a
// failure there is a linker, whose log says why, unless nvJitLink made none. NULL: none was made, or (with *status 0)
// out of memory.
static ccc_handle *ccc_nvjitlink_create(unsigned int option_count, const char *const *options, unsigned int input_count,
                                        const char *const *names, int *status)
{
    nvJitLinkHandle linker = NULL;
    size_t size = ccc_strings_size(options, option_count) + ccc_strings_size(names, input_count);
    ccc_handle *handle = ccc_foreign_new(CCC_LINKER, NULL, ccc_nvjitlink_destroy, "nvJitLinkDestroy");
    *status = 0;
    if (handle == NULL)
        return NULL;
    ccc_nvjitlink_texts *stored = handle->memory = malloc(sizeof *stored + size);
    if (stored == NULL) {
        ccc_fail(CCC_NO_MEMORY, "malloc");
        return ccc_foreign_made(handle, NULL);
    }
    stored->option_count = option_count;
    char *buffer = (char *)(stored->texts + option_count + input_count);
    buffer = ccc_strings_copy(stored->texts, buffer, options, option_count);
    ccc_strings_copy(stored->texts + option_count, buffer, names, input_count);
    *status = ccc_nvjitlink_table.nvJitLinkCreate(&linker, option_count, stored->texts);
    return ccc_foreign_made(handle, linker);
}

// Add the input whose name was given as the `index`th. Returns nvJitLink's status.
static int ccc_nvjitlink_add(const ccc_handle *handle, unsigned int index, int type, const void *data, size_t size)
{
    const ccc_nvjitlink_texts *stored = handle->memory;
    return ccc_nvjitlink_table.nvJitLinkAddData((nvJitLinkHandle)CCC_POINTER(handle), type, data, size,
                                                stored->texts[stored->option_count + index]);
}

#endif
