// SPDX-FileCopyrightText: Copyright (c) 2026 The cuda-core-cffi authors
// SPDX-License-Identifier: Apache-2.0

// The rules of changes in executable graphs.

#include "graph/graph_change.h"

#include <string.h>

#include "driver/logs.h"
#include "memory/allocation.h"

static int priority_of(const struct sim_work *work)
{
    const CUlaunchAttribute *attribute = sim_kernel_work_attribute(work, CU_LAUNCH_ATTRIBUTE_PRIORITY);
    return attribute ? attribute->value.priority : 0;
}

static CUgraphExecUpdateResult change_kernel(const struct sim_work *old, const struct sim_work *fresh, uint64_t flags)
{
    if (fresh->context != old->context)
        return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
    bool by_priority = flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    if (fresh->kernel.wish.cooperative != old->kernel.wish.cooperative ||
        (by_priority && priority_of(fresh) != priority_of(old)))
        return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
    return sim_kernel_work_check(fresh) == CUDA_SUCCESS ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                                                        : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

// Operands stay in memory of the same context and device.
static bool same_home(uintptr_t old, uintptr_t fresh)
{
    struct sim_allocation one, other;
    bool known = sim_allocation_at(old, &one), other_known = sim_allocation_at(fresh, &other);
    if (!known || !other_known)
        return known == other_known || sim_graph_memory_covers(known ? fresh : old, 1);
    return one.context == other.context && one.device == other.device && one.on_host == other.on_host;
}

// What is the host's stays so, whether the device knows it or not.
static bool same_side(CUmemorytype type, uintptr_t old, CUmemorytype fresh_type, uintptr_t fresh)
{
    return type == fresh_type && (type == CU_MEMORYTYPE_HOST || same_home(old, fresh));
}

// Copies of several rows stay as they are.
static bool same_copy(const CUDA_MEMCPY3D *one, const CUDA_MEMCPY3D *other)
{
    return one->srcMemoryType == other->srcMemoryType && one->dstMemoryType == other->dstMemoryType &&
           one->srcHost == other->srcHost && one->srcDevice == other->srcDevice && one->srcArray == other->srcArray &&
           one->dstHost == other->dstHost && one->dstDevice == other->dstDevice && one->dstArray == other->dstArray &&
           one->srcXInBytes == other->srcXInBytes && one->srcY == other->srcY && one->srcZ == other->srcZ &&
           one->dstXInBytes == other->dstXInBytes && one->dstY == other->dstY && one->dstZ == other->dstZ &&
           one->srcLOD == other->srcLOD && one->dstLOD == other->dstLOD && one->srcPitch == other->srcPitch &&
           one->srcHeight == other->srcHeight && one->dstPitch == other->dstPitch &&
           one->dstHeight == other->dstHeight && one->WidthInBytes == other->WidthInBytes &&
           one->Height == other->Height && one->Depth == other->Depth;
}

static bool change_copy(const struct sim_work *old, const struct sim_work *fresh)
{
    const CUDA_MEMCPY3D *one = &old->copy.params, *other = &fresh->copy.params;
    const struct sim_copy *before = &old->copy.job.copy, *after = &fresh->copy.job.copy;
    bool flat = before->height == 1 && before->depth == 1 && after->height == 1 && after->depth == 1;
    if (!flat && !same_copy(one, other)) {
        sim_log("copies of several rows cannot be changed");
        return false;
    }
    return old->context == fresh->context &&
           same_side(one->srcMemoryType, before->from.address, other->srcMemoryType, after->from.address) &&
           same_side(one->dstMemoryType, before->to.address, other->dstMemoryType, after->to.address);
}

static bool change_fill(const struct sim_work *old, const struct sim_work *fresh)
{
    const struct sim_fill *before = &old->fill.job.fill, *after = &fresh->fill.job.fill;
    bool flat = before->height == 1 && after->height == 1;
    bool same_shape = before->height == after->height && before->width == after->width &&
                      before->element == after->element && before->pitch == after->pitch;
    return old->context == fresh->context && (flat || same_shape) && same_home(before->address, after->address);
}

static bool change_values(const struct sim_work *old, const struct sim_work *fresh)
{
    if (old->context != fresh->context || old->values.params.count != fresh->values.params.count)
        return false;
    for (unsigned i = 0; i < old->values.params.count; i++) {
        const struct sim_value_job *before = &old->values.jobs[i], *after = &fresh->values.jobs[i];
        if (before->bytes != after->bytes || before->writes != after->writes)
            return false;
    }
    return true;
}

CUgraphExecUpdateResult sim_work_change(const struct sim_work *old, const struct sim_work *fresh, uint64_t flags)
{
    bool allowed = true;
    switch ((int)old->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return change_kernel(old, fresh, flags);
    case CU_GRAPH_NODE_TYPE_MEMCPY: allowed = change_copy(old, fresh); break;
    case CU_GRAPH_NODE_TYPE_MEMSET: allowed = change_fill(old, fresh); break;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: allowed = old->context == fresh->context; break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: allowed = change_values(old, fresh); break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        // The handle is another graph's, and its own default comes with it.
        if (old->conditional.type != fresh->conditional.type || old->conditional.size != fresh->conditional.size)
            return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
        allowed = old->context == fresh->context;
        break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        // The executable has its memory for good.
        return old->memory.memory == fresh->memory.memory ? CU_GRAPH_EXEC_UPDATE_SUCCESS
                                                          : CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
    default: break;
    }
    return allowed ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}
