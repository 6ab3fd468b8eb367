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
    if (ccc_primary_context(device) == NULL)
        return NULL;
    CCC_TRY_OR(NULL, cuDevResourceGenerateDesc, &description, (CUdevResource *)resources, count);
    ccc_handle *handle = ccc_new(CCC_CONTEXT, 0, CCC_GREEN, NULL);
    CCC_MAKE(handle, (uintptr_t)green, cuGreenCtxCreate, &green, description, device, CU_GREEN_CTX_DEFAULT_STREAM);
    if (handle == NULL)
        return NULL;
    handle->device = device;
    ccc_as_context(handle)->green = green;
    CUresult result = cuCtxFromGreenCtx(&context, green);
    if (result) {
        ccc_release_object(handle);
        ccc_fail((int)result, "cuCtxFromGreenCtx");
        return NULL;
    }
    handle->value = (uintptr_t)context;
    ccc_green_list(handle);
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
    CCC_SCOPE_OR(-1, scope, ccc_enter_context(&scope, context));
    CCC_TRY_OR(-1, cuStreamGetGreenCtx, CU_STREAM_LEGACY, &green);
    return ccc_left(&scope, 0) ? -1 : green != NULL;
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
    CCC_SCOPE_OR(NULL, scope, ccc_enter_context(&scope, context));
    return ccc_left_with(&scope, ccc_stream_create_in(context, CU_STREAM_NON_BLOCKING, priority));
}

#endif
