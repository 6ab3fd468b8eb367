// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// The primary contexts of devices, and making a context current for one call.
#ifndef CCC_PRIMARY_H
#define CCC_PRIMARY_H

#include <pthread.h>

#include "handles/ccc_handle.h"

#define CCC_MAX_DEVICES 256

static _Atomic(ccc_handle *) ccc_primary[CCC_MAX_DEVICES];  // never released: leaking beats crashing at exit
CCC_LOCK(ccc_primary_lock);
static atomic_int ccc_initialized;

// Start the driver, once.
static int ccc_init(void)
{
    if (CCC_LIKELY(atomic_load_explicit(&ccc_initialized, memory_order_acquire)))
        return CUDA_SUCCESS;
    CCC_TRY(cuInit, 0);
    atomic_store_explicit(&ccc_initialized, 1, memory_order_release);
    return CUDA_SUCCESS;
}

// The handle of a device's primary context, retained from the driver on first use. NULL on failure.
static CCC_COLD ccc_handle *ccc_primary_make(CUdevice device)
{
    CUcontext context = NULL;
    if (ccc_init())
        return NULL;
    pthread_mutex_lock(&ccc_primary_lock);
    ccc_handle *handle = atomic_load(&ccc_primary[device]);
    if (handle == NULL) {
        CUresult status = cuDevicePrimaryCtxRetain(&context, device);
        if (status)
            ccc_fail((int)status, "cuDevicePrimaryCtxRetain");
        else
            handle = ccc_new(CCC_CONTEXT, (uintptr_t)context, CCC_BORROWED | CCC_IMMORTAL, NULL);
        if (handle) {
            handle->device = device;
            atomic_store(&ccc_primary[device], handle);
        }
    }
    pthread_mutex_unlock(&ccc_primary_lock);
    return handle;
}

static ccc_handle *ccc_primary_context(CUdevice device)
{
    if (device < 0 || device >= CCC_MAX_DEVICES) {
        ccc_fail(CUDA_ERROR_INVALID_DEVICE, "cuDevicePrimaryCtxRetain");
        return NULL;
    }
    ccc_handle *handle = atomic_load_explicit(&ccc_primary[device], memory_order_acquire);
    return CCC_LIKELY(handle != NULL) ? handle : ccc_primary_make(device);
}

// Retain anew the primary contexts that were reset behind the back of this package. Returns the status of the driver.
static int ccc_primary_revive(void)
{
    int status = CUDA_SUCCESS;
    pthread_mutex_lock(&ccc_primary_lock);
    for (CUdevice device = 0; device < CCC_MAX_DEVICES && !status; device++) {
        CUcontext context;
        unsigned int flags;
        int active = 1;
        if (atomic_load(&ccc_primary[device]))
            status = (int)cuDevicePrimaryCtxGetState(device, &flags, &active);
        if (!status && !active)
            status = (int)cuDevicePrimaryCtxRetain(&context, device);
    }
    pthread_mutex_unlock(&ccc_primary_lock);
    return status;
}

// Make exactly this context current, for cleanup: whatever was current stays below it. Returns whether it did.
static int ccc_push(ccc_handle *context)
{
    CUcontext current = NULL;
    if (context == NULL || (cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == CCC_CTX(context)))
        return 0;
    return cuCtxPushCurrent(CCC_CTX(context)) == CUDA_SUCCESS;
}

// Take away the context that was pushed. A context that stays would change the meaning of later calls: that is
// reported.
static void ccc_pop(int pushed)
{
    CUcontext popped;
    CUresult result = pushed ? cuCtxPopCurrent(&popped) : CUDA_SUCCESS;
    if (result)
        ccc_cleanup_failed((int)result, "cuCtxPopCurrent");
}

static void ccc_pop_scoped(const int *pushed) { ccc_pop(*pushed); }

// From here to the end of the scope exactly this context is current.
#define CCC_PUSH(context) \
    __attribute__((cleanup(ccc_pop_scoped))) const int CCC_JOIN(ccc_pushed_, __COUNTER__) = ccc_push(context)

#endif
