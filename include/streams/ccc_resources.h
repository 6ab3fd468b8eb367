// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0
// Resources of devices and contexts, and the green contexts that are made of them.
#ifndef CCC_RESOURCES_H
#define CCC_RESOURCES_H

#include <stddef.h>

#include "driver/ccc_compat.h"
#include "streams/ccc_stream.h"

// CUdevResource, with what newer headers have in it.
typedef struct ccc_resource {
    int type;
    unsigned char hidden[92];
    union {
        struct {
            unsigned int count, least, alignment, flags, locality;
        } sm;
        struct {
            int device;
            unsigned int limit;
            int scope;
        } workqueue;
        unsigned char bytes[48];
    };
} ccc_resource;
_Static_assert(sizeof(ccc_resource) == sizeof(CUdevResource) &&
                   offsetof(ccc_resource, sm) == offsetof(CUdevResource, sm),
               "CUdevResource");

// CU_DEV_SM_RESOURCE_GROUP_PARAMS
typedef struct ccc_sm_group {
    unsigned int count, coscheduled, preferred, flags, locality, reserved[11];
} ccc_sm_group;
#if CUDA_VERSION >= 13050
#define CCC_SAME_FIELD(type, ours, theirs, name) \
    _Static_assert(offsetof(type, ours) == offsetof(theirs, name), #theirs "." #name)
CCC_SAME_FIELD(ccc_resource, sm.count, CUdevResource, sm.smCount);
CCC_SAME_FIELD(ccc_resource, sm.least, CUdevResource, sm.minSmPartitionSize);
CCC_SAME_FIELD(ccc_resource, sm.alignment, CUdevResource, sm.smCoscheduledAlignment);
CCC_SAME_FIELD(ccc_resource, sm.flags, CUdevResource, sm.flags);
CCC_SAME_FIELD(ccc_resource, workqueue.device, CUdevResource, wqConfig.device);
CCC_SAME_FIELD(ccc_resource, workqueue.limit, CUdevResource, wqConfig.wqConcurrencyLimit);
CCC_SAME_FIELD(ccc_resource, workqueue.scope, CUdevResource, wqConfig.sharingScope);
_Static_assert(sizeof(ccc_sm_group) == sizeof(CU_DEV_SM_RESOURCE_GROUP_PARAMS), "CU_DEV_SM_RESOURCE_GROUP_PARAMS");
CCC_SAME_FIELD(ccc_sm_group, count, CU_DEV_SM_RESOURCE_GROUP_PARAMS, smCount);
CCC_SAME_FIELD(ccc_sm_group, coscheduled, CU_DEV_SM_RESOURCE_GROUP_PARAMS, coscheduledSmCount);
CCC_SAME_FIELD(ccc_sm_group, preferred, CU_DEV_SM_RESOURCE_GROUP_PARAMS, preferredCoscheduledSmCount);
CCC_SAME_FIELD(ccc_sm_group, flags, CU_DEV_SM_RESOURCE_GROUP_PARAMS, flags);
#endif

static int ccc_device_resource(int device, int type, ccc_resource *resource)
{
    int status = ccc_init();
    if (status)
        return status;
    CCC_TRY(cuDeviceGetDevResource, device, (CUdevResource *)resource, (CUdevResourceType)type);
    return 0;
}

static int ccc_context_resource(const ccc_handle *context, int type, ccc_resource *resource)
{
    CCC_USE(context);
    CCC_TRY(cuCtxGetDevResource, CCC_CTX(context), (CUdevResource *)resource, (CUdevResourceType)type);
    return 0;
}

// Split into up to *groups parts of the same size, and tell how many there are.
static int ccc_sm_split_by_count(const ccc_resource *from, unsigned int flags, unsigned int count, ccc_resource *parts,
                                 unsigned int *groups, ccc_resource *rest)
{
    CCC_TRY(cuDevSmResourceSplitByCount, (CUdevResource *)parts, groups, (const CUdevResource *)from,
            (CUdevResource *)rest, flags, count);
    return 0;
}

// Split into groups, which tell how large they became. Without parts, only that is done.
static int ccc_sm_split(const ccc_resource *from, ccc_sm_group *groups, unsigned int count, ccc_resource *parts,
                        ccc_resource *rest)
{
    CCC_TRY(cuDevSmResourceSplit, (CUdevResource *)parts, count, (const CUdevResource *)from, (CUdevResource *)rest, 0,
            (CU_DEV_SM_RESOURCE_GROUP_PARAMS *)groups);
    return 0;
}

// A green context of a device with these resources. The primary context is there as long as this package is.
static ccc_handle *ccc_green_create(int device, ccc_resource *resources, unsigned int count)
{
    CUdevResourceDesc description = NULL;
    CUgreenCtx green = NULL;
    CUcontext context = NULL;
    const char *call = "cuDevResourceGenerateDesc";
    if (ccc_primary_context(device) == NULL)
        return NULL;
    CUresult result = cuDevResourceGenerateDesc(&description, (CUdevResource *)resources, count);
    if (result == CUDA_SUCCESS) {
        call = "cuGreenCtxCreate";
        result = cuGreenCtxCreate(&green, description, device, CU_GREEN_CTX_DEFAULT_STREAM);
    }
    if (result == CUDA_SUCCESS) {
        call = "cuCtxFromGreenCtx";
        result = cuCtxFromGreenCtx(&context, green);
    }
    ccc_handle *handle = result ? NULL : ccc_new(CCC_CONTEXT, (uintptr_t)context, CCC_GREEN, NULL);
    if (result)
        ccc_fail((int)result, call);
    if (handle) {
        handle->device = device;
        ccc_as_context(handle)->green = green;
        ccc_green_list(handle);
    } else if (green) {
        ccc_failure failure = ccc_last;
        cuGreenCtxDestroy(green);
        ccc_last = failure;
    }
    return handle;
}

// Whether a context is green, also one of another library. Negative: a failure, see ccc_last_status.
static int ccc_context_is_green(ccc_handle *context)
{
    CUgreenCtx green = NULL;
    if (context->flags & CCC_GREEN)
        return 1;
    CCC_USE_OR(context, (ccc_closed(), -1));
    if (context->device >= 0 && ccc_primary_context(context->device) &&
        CCC_CTX(ccc_primary_context(context->device)) == CCC_CTX(context))
        return 0;
    if (ccc_driver_version() < 12040)
        return 0;  // a driver that has none
    CUresult result = cuCtxPushCurrent(CCC_CTX(context));
    if (result) {
        ccc_fail((int)result, "cuCtxPushCurrent");
        return -1;
    }
    result = cuStreamGetGreenCtx(CU_STREAM_LEGACY, &green);
    ccc_pop(1);
    if (result == CUDA_SUCCESS)
        return green != NULL;
    ccc_fail((int)result, "cuStreamGetGreenCtx");
    return -1;
}

// Whether this thread has the context current.
static int ccc_context_is_current(const ccc_handle *context)
{
    CUcontext current = NULL;
    return cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == CCC_CTX(context);
}

// A stream of a green context: streams that are made where one is current are its own.
static ccc_handle *ccc_green_stream(ccc_handle *context, int priority)
{
    CCC_USE_OR(context, ccc_closed());
    CUcontext current = NULL;
    CUresult result = cuCtxGetCurrent(&current);
    const char *call = "cuCtxGetCurrent";
    int push = result == CUDA_SUCCESS && current != CCC_CTX(context);
    if (push) {
        call = "cuCtxPushCurrent";
        result = cuCtxPushCurrent(CCC_CTX(context));
    }
    if (result) {
        ccc_fail((int)result, call);
        return NULL;
    }
    ccc_handle *stream = ccc_stream_create_in(context, CU_STREAM_NON_BLOCKING, priority);
    ccc_pop(push);
    return stream;
}

#endif
