// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// Dynamic shared memory beyond 48 KiB, static memory included: a kernel may have it on a device once its attribute
// CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES says so.
#ifndef CCC_SHARED_MEMORY_H
#define CCC_SHARED_MEMORY_H

#include <limits.h>

#include "code/ccc_library.h"

#define CCC_SHARED_PORTABLE 49152u  // bytes that no kernel without static shared memory needs the attribute for

CCC_LOCK(ccc_shared_lock);               // guards reading and setting the attribute, so that no thread makes it smaller
static atomic_uint ccc_shared_replaced;  // how often a program has set the attribute here

// What a kernel remembers: the device, and so many bytes that were allowed on it before a program set the attribute.
static uint64_t ccc_shared_known(unsigned replaced, int device, uint32_t bytes)
{
    return (uint64_t)(replaced & 0xffffff) << 40 | (uint64_t)((unsigned)device & 0xff) << 32 | bytes;
}

static CCC_COLD int ccc_shared_raise(ccc_handle *kernel, int device, uint32_t bytes, unsigned replaced)
{
    const CUfunction_attribute attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    const CUkernel value = (CUkernel)CCC_POINTER(kernel);
    int allowed = 0;
    CCC_RELAXED_MODE;  // it may load the code
    CCC_TRY(cuKernelGetAttribute, &allowed, attribute, value, device);
    if (bytes > (uint32_t)allowed) {
        if (bytes > INT_MAX)
            return ccc_fail(CUDA_ERROR_INVALID_VALUE, "cuKernelSetAttribute");
        CCC_TRY(cuKernelSetAttribute, attribute, (int)bytes, value, device);
        allowed = (int)bytes;
    }
    atomic_store(&((ccc_kernel *)kernel)->shared, ccc_shared_known(replaced, device, (uint32_t)allowed));
    return 0;
}

// Have a kernel's attribute allow so many bytes on a device. The driver is asked once for a kernel, device and size.
// The caller has a use of the kernel. Returns a status.
static int ccc_shared_allow(ccc_handle *kernel, int device, uint32_t bytes)
{
    unsigned replaced = atomic_load(&ccc_shared_replaced);
    uint64_t known = atomic_load_explicit(&((ccc_kernel *)kernel)->shared, memory_order_relaxed);
    if (CCC_LIKELY(known >> 32 == ccc_shared_known(replaced, device, 0) >> 32 && (uint32_t)known >= bytes))
        return 0;
    pthread_mutex_lock(&ccc_shared_lock);
    int status = ccc_shared_raise(kernel, device, bytes, replaced);
    pthread_mutex_unlock(&ccc_shared_lock);
    return status;
}

static int ccc_kernel_allow_shared(ccc_handle *kernel, int device, uint32_t bytes)
{
    CCC_USE(kernel);
    return ccc_shared_allow(kernel, device, bytes);
}

// Set an attribute of a kernel on a device.
static int ccc_kernel_set_attribute(const ccc_handle *kernel, int attribute, int value, int device)
{
    CCC_USE(kernel);
    CCC_RELAXED_MODE;
    pthread_mutex_lock(&ccc_shared_lock);
    CUresult result =
        cuKernelSetAttribute((CUfunction_attribute)attribute, value, (CUkernel)CCC_POINTER(kernel), device);
    atomic_fetch_add(&ccc_shared_replaced, 1);
    pthread_mutex_unlock(&ccc_shared_lock);
    return result ? ccc_fail((int)result, "cuKernelSetAttribute") : 0;
}

#endif
