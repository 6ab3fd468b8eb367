// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Libraries of code, and the kernels and variables in them.
#ifndef CCC_LIBRARY_H
#define CCC_LIBRARY_H

#include "code/ccc_kernels.h"
#include "handles/ccc_probe.h"
#include "streams/ccc_context.h"

typedef struct ccc_library {
    ccc_handle handle;
    atomic_int borrowed;  // a program may unload it, so that this package does not
} ccc_library;

static CUresult ccc_library_destroy(ccc_handle *handle, const char **call)
{
    *call = "cuLibraryUnload";
    ccc_kernels_forget(handle);
    if (atomic_load_explicit(&((ccc_library *)handle)->borrowed, memory_order_relaxed))
        return CUDA_SUCCESS;
    return cuLibraryUnload((CUlibrary)CCC_POINTER(handle));
}

static const ccc_handle_type ccc_library_type = {.size = sizeof(ccc_library), .destroy = ccc_library_destroy};

// The handle of a kernel.
typedef struct ccc_kernel {
    ccc_handle handle;
    _Atomic(uint64_t) shared;  // the dynamic shared memory that it may have, see code/ccc_shared_memory.h
} ccc_kernel;

// Kernels are borrowed: unloading their library destroys them.
static const ccc_handle_type ccc_kernel_type = {.size = sizeof(ccc_kernel)};

// Load code; on failure the log of the driver's compiler is in `log` (zero-terminated, log_size bytes at most).
static ccc_handle *ccc_library_load(const void *code, char *log, unsigned int log_size)
{
    CUlibrary library = NULL;
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)log_size};
    if (ccc_init())
        return NULL;
    ccc_handle *handle = ccc_new(CCC_LIBRARY, 0, CCC_WAITS | CCC_NEVER_AT_ONCE, NULL);
    CCC_MAKE(handle, (uintptr_t)library, cuLibraryLoadData, &library, code, options, values, 2, NULL, NULL, 0);
    return handle;
}

// Leave a library loaded when its handle goes, for a program that unloads it itself.
static void ccc_library_borrow(ccc_handle *handle)
{
    while (handle->flags & CCC_BORROWED)  // a view of the handle that unloads the library
        handle = handle->parent;
    atomic_store_explicit(&((ccc_library *)handle)->borrowed, 1, memory_order_relaxed);
}

// Where a variable of a library is in the current context, and how large. The header promises managed variables to the
// second call only; it comes second, because they exist once a context has loaded the library.
static int ccc_library_global(ccc_handle *handle, const char *name, uint64_t *address, size_t *size)
{
    CUdeviceptr pointer = 0;
    CUlibrary library = (CUlibrary)CCC_POINTER(handle);
    CCC_USE_OR(handle, ccc_fail(CCC_CLOSED, ""));
    const char *call = "cuLibraryGetGlobal";
    uint64_t probe = ccc_probe_begin(call, CUDA_ERROR_NOT_FOUND);
    CUresult result = cuLibraryGetGlobal(&pointer, size, library, name), first = result;
    if (result == CUDA_ERROR_NOT_FOUND) {
        result = cuLibraryGetManaged(&pointer, size, library, name);
        if (result != CUDA_ERROR_NOT_FOUND)
            call = "cuLibraryGetManaged";
    }
    ccc_probe_end(probe, first == CUDA_ERROR_NOT_FOUND && result == CUDA_SUCCESS);
    *address = pointer;
    return result ? ccc_fail((int)result, call) : 0;
}

// A kernel of a library, which it keeps loaded.
static ccc_handle *ccc_kernel_get(ccc_handle *library, const char *name)
{
    CUkernel kernel = NULL;
    CCC_USE_OR(library, ccc_closed());
    CCC_TRY_OR(NULL, cuLibraryGetKernel, &kernel, (CUlibrary)CCC_POINTER(library), name);
    if (ccc_kernels_add((uintptr_t)kernel, library))
        return ccc_new(CCC_KERNEL, (uintptr_t)kernel, CCC_BORROWED | CCC_PART, library);
    ccc_fail(CCC_NO_MEMORY, "malloc");
    return NULL;
}

// A kernel by the number of its handle. It keeps `library`, if given; else its own library, if that was loaded
// here. NULL with CCC_OTHER_LIBRARY: it belongs to another library than the given one.
static ccc_handle *ccc_kernel_borrow(uint64_t value, ccc_handle *library)
{
    CCC_USE_MAYBE_OR(library, ccc_closed());
    ccc_handle *handle = NULL, *own = ccc_kernels_library(value);
    if (library && own && own->value != library->value)
        ccc_fail(CCC_OTHER_LIBRARY, "");
    else
        handle = ccc_new(CCC_KERNEL, value, CCC_BORROWED | CCC_PART, library ? library : own);
    ccc_release_scoped(&own);
    return handle;
}

// Offset and size of one kernel parameter; CUDA_ERROR_INVALID_VALUE past the last.
static int ccc_kernel_parameter(const ccc_handle *kernel, size_t index, size_t *offset, size_t *size)
{
    CCC_USE(kernel);
    CCC_SCOPE(scope, ccc_enter_any(&scope));  // they are the same in every context, but the driver asks for one
    CUresult result;
    CCC_PROBE(result, CUDA_ERROR_INVALID_VALUE, cuKernelGetParamInfo, (CUkernel)CCC_POINTER(kernel), index, offset,
              size);
    if (result && result != CUDA_ERROR_INVALID_VALUE)
        return ccc_fail((int)result, "cuKernelGetParamInfo");
    int status = ccc_left(&scope, 0);
    return status ? status : (int)result;  // an invalid value is the regular end of the list
}

#endif
