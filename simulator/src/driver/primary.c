// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The primary context of each device: made once, alive while something retains it.

#include <stdlib.h>

#include "driver/context.h"
#include "driver/device.h"

static struct {
    pthread_mutex_t lock;
    struct sim_context *context;
    unsigned retained;
    unsigned flags;
} primaries[SIM_MAX_DEVICES] = {[0 ... SIM_MAX_DEVICES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

struct sim_context *sim_primary(int device) { return primaries[device].context; }

size_t sim_primary_retained(void)
{
    size_t total = 0;
    for (int i = 0; i < sim_device_count(); i++) {
        pthread_mutex_lock(&primaries[i].lock);
        total += primaries[i].retained;
        pthread_mutex_unlock(&primaries[i].lock);
    }
    return total;
}

CUresult sim_primary_retain(int dev)
{
    CUresult status = CUDA_SUCCESS;
    pthread_mutex_lock(&primaries[dev].lock);
    struct sim_context *context = primaries[dev].context;
    if (!context) {
        context = sim_object_new(SIM_CONTEXT);
        if (context) {
            context->primary = true;
            sim_object_hide(context);
        }
        primaries[dev].context = context;
    }
    if (!context)
        status = CUDA_ERROR_OUT_OF_MEMORY;
    else if (!primaries[dev].retained)
        status = sim_context_init(context, dev, primaries[dev].flags);
    if (status == CUDA_SUCCESS)
        primaries[dev].retained++;
    pthread_mutex_unlock(&primaries[dev].lock);
    return status;
}

SIM_API(cuDevicePrimaryCtxRetain, (CUcontext *pctx, CUdevice dev), (pctx, dev))
{
    SIM_REQUIRE(pctx);
    struct sim_device *device;
    SIM_TRY(sim_device_find(dev, &device));
    SIM_TRY(sim_primary_retain(dev));
    *pctx = sim_context_handle(primaries[dev].context);
    return CUDA_SUCCESS;
}

CUresult sim_primary_release(int dev)
{
    CUresult status = CUDA_SUCCESS;
    pthread_mutex_lock(&primaries[dev].lock);
    if (!primaries[dev].retained)
        status = CUDA_ERROR_INVALID_CONTEXT;
    else if (--primaries[dev].retained == 0)
        sim_context_tear_down(primaries[dev].context);
    pthread_mutex_unlock(&primaries[dev].lock);
    return status;
}

static CUresult release(CUdevice dev)
{
    struct sim_device *device;
    SIM_TRY(sim_device_find(dev, &device));
    return sim_primary_release(dev);
}

SIM_API(cuDevicePrimaryCtxRelease, (CUdevice dev), (dev)) { return release(dev); }
SIM_API(cuDevicePrimaryCtxRelease_v2, (CUdevice dev), (dev)) { return release(dev); }

static CUresult reset(CUdevice dev)
{
    struct sim_device *device;
    SIM_TRY(sim_device_find(dev, &device));
    pthread_mutex_lock(&primaries[dev].lock);
    // Whoever retained it before has nothing left to release.
    if (primaries[dev].retained) {
        primaries[dev].retained = 0;
        sim_context_tear_down(primaries[dev].context);
    }
    pthread_mutex_unlock(&primaries[dev].lock);
    return CUDA_SUCCESS;
}

SIM_API(cuDevicePrimaryCtxReset, (CUdevice dev), (dev)) { return reset(dev); }
SIM_API(cuDevicePrimaryCtxReset_v2, (CUdevice dev), (dev)) { return reset(dev); }

static CUresult set_flags(CUdevice dev, unsigned flags)
{
    struct sim_device *device;
    SIM_TRY(sim_device_find(dev, &device));
    SIM_TRY(sim_context_flags_valid(flags));
    pthread_mutex_lock(&primaries[dev].lock);
    primaries[dev].flags = flags;
    if (primaries[dev].retained)
        primaries[dev].context->flags = flags | CU_CTX_MAP_HOST;
    pthread_mutex_unlock(&primaries[dev].lock);
    return CUDA_SUCCESS;
}

SIM_API(cuDevicePrimaryCtxSetFlags, (CUdevice dev, unsigned int flags), (dev, flags)) { return set_flags(dev, flags); }

SIM_API(cuDevicePrimaryCtxSetFlags_v2, (CUdevice dev, unsigned int flags), (dev, flags))
{
    return set_flags(dev, flags);
}

SIM_API(cuDevicePrimaryCtxGetState, (CUdevice dev, unsigned int *flags, int *active), (dev, flags, active))
{
    SIM_REQUIRE(flags && active);
    struct sim_device *device;
    SIM_TRY(sim_device_find(dev, &device));
    pthread_mutex_lock(&primaries[dev].lock);
    *flags = primaries[dev].flags;
    *active = primaries[dev].retained != 0;
    pthread_mutex_unlock(&primaries[dev].lock);
    return CUDA_SUCCESS;
}
