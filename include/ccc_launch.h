/* SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Code and launches: libraries, kernels, and the one call that starts a kernel. */
#ifndef CCC_LAUNCH_H
#define CCC_LAUNCH_H

#include "ccc_destroy.h"
#include "ccc_tensor.h"

#define CCC_MAX_LAUNCH_ATTRIBUTES 16

/* A launch configuration as the driver takes it, all but the stream: made once for each Python LaunchConfig. */
typedef struct ccc_config {
    CUlaunchConfig driver;
    CUlaunchAttribute attributes[CCC_MAX_LAUNCH_ATTRIBUTES];
} ccc_config;

/* Load code; on failure the log of the driver's compiler is in `log` (zero-terminated, log_size bytes at most). */
static ccc_box *ccc_library_load(const void *code, char *log, unsigned int log_size)
{
    CUlibrary library = NULL;
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)log_size};
    if (ccc_init())
        return NULL;
    CUresult result = cuLibraryLoadData(&library, code, options, values, 2, NULL, NULL, 0);
    if (result) {
        ccc_fail((int)result, "cuLibraryLoadData");
        return NULL;
    }
    ccc_box *box = ccc_new(CCC_LIBRARY, (uintptr_t)library, 0, NULL);
    if (box == NULL)
        cuLibraryUnload(library);
    return box;
}

/*
 * Where a variable of a library is in the current context, and how large. The header promises managed variables to the
 * second call only; it comes second, because they exist once a context has loaded the library.
 */
static int ccc_library_global(const ccc_box *box, const char *name, uint64_t *address, size_t *size)
{
    CUdeviceptr pointer = 0;
    CUlibrary library = (CUlibrary)CCC_POINTER(box);
    if (!ccc_is_open(box))
        return CCC_CLOSED;
    const char *call = "cuLibraryGetGlobal";
    CUresult result = cuLibraryGetGlobal(&pointer, size, library, name);
    if (result == CUDA_ERROR_NOT_FOUND) {
        result = cuLibraryGetManaged(&pointer, size, library, name);
        if (result != CUDA_ERROR_NOT_FOUND)
            call = "cuLibraryGetManaged";
    }
    *address = pointer;
    return result ? ccc_fail((int)result, call) : 0;
}

/* A kernel of a library, which it keeps loaded. */
static ccc_box *ccc_kernel_get(ccc_box *library, const char *name)
{
    CUkernel kernel = NULL;
    CUresult result = cuLibraryGetKernel(&kernel, (CUlibrary)CCC_POINTER(library), name);
    if (result) {
        ccc_fail((int)result, "cuLibraryGetKernel");
        return NULL;
    }
    return ccc_new(CCC_KERNEL, (uintptr_t)kernel, CCC_BORROWED, library);
}

/* A kernel that somebody else loaded; `library`, if known, is kept. */
static ccc_box *ccc_kernel_borrow(uint64_t handle, ccc_box *library)
{
    return ccc_new(CCC_KERNEL, handle, CCC_BORROWED, library);
}

/* Offset and size of one kernel parameter; CUDA_ERROR_INVALID_VALUE past the last. */
static int ccc_kernel_parameter(const ccc_box *kernel, size_t index, size_t *offset, size_t *size)
{
    CUresult result = cuKernelGetParamInfo((CUkernel)CCC_POINTER(kernel), index, offset, size);
    if (result == CUDA_ERROR_INVALID_VALUE)
        return (int)result; /* the regular end of the list */
    return result ? ccc_fail((int)result, "cuKernelGetParamInfo") : 0;
}

/*
 * Start a kernel. `arguments` is the packed parameter buffer. The configuration is shared by every thread that
 * launches with it, so the stream goes into a copy.
 */
static int ccc_launch(const ccc_config *config, const ccc_box *kernel, const ccc_box *stream, const char *arguments,
                      size_t size)
{
    if (!ccc_is_open(stream) || !ccc_is_open(kernel))
        return CCC_CLOSED;
    CUlaunchConfig driver = config->driver;
    driver.hStream = CCC_STRM(stream);
    driver.attrs = (CUlaunchAttribute *)config->attributes;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)arguments, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    CCC_TRY(cuLaunchKernelEx, &driver, (CUfunction)CCC_POINTER(kernel), NULL, size ? extra : NULL);
    return 0;
}

#endif
